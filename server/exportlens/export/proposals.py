"""Proposed constructor arguments and inputs of a model, from what its file (and its tests) say."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from exportlens.export.configured import configured_inputs
from exportlens.export.constructors import (
    Constructor,
    constructor_proposal,
    returned_call,
    run_by_default,
    written_constructor,
)
from exportlens.export.dimensions import examples_of, proposed_shapes
from exportlens.export.inlining import inlined
from exportlens.export.layers import LayerReader
from exportlens.export.models import FileNames, is_main_guard, parameters_of
from exportlens.export.request import ModelInputs
from exportlens.source.parsing import parse_python

EXPORTS = frozenset({"torch.export.export", "torch.export.draft_export", "torch.export.export_for_training"})
TRACES = frozenset({"torch.jit.trace", "torch.onnx.export"})
PROVIDERS = ("get_example_inputs", "example_inputs", "get_dummy_inputs", "dummy_inputs", "sample_inputs")
SAFE_NAMES = frozenset({"torch", "nn", "F", "np", "numpy", "Dim", "math", "Namespace", *dir(builtins)})
MOST_TEST_FILES = 40


class _Scope:
    """One function's, the main block's or the file's statements: what each name was last bound to, in
    order.
    """

    def __init__(self, body: list[ast.stmt], outer: _Scope | None = None) -> None:
        self.bound: dict[str, ast.expr] = dict(outer.bound) if outer else {}
        self.local = set(self.bound)
        self.calls: list[tuple[ast.Call, dict[str, ast.expr]]] = []
        self._read(body)

    def _read(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                continue
            for part in _expressions(node):
                for call in ast.walk(part):
                    if isinstance(call, ast.Call):
                        self.calls.append((call, dict(self.bound)))
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._bind(node.target, node.value)
            elif isinstance(node, (ast.With, ast.For, ast.If, ast.Try, ast.While)):
                if isinstance(node, ast.For):
                    self._forget(node.target)
                self._read(node.body)
                self._read(getattr(node, "orelse", []))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bound[target.id] = inlined(value, self.bound)
            self.local.add(target.id)
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            for part, item in zip(target.elts, value.elts, strict=True):
                self._bind(part, item)
        else:
            self._forget(target)

    def _forget(self, target: ast.expr) -> None:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.bound.pop(name.id, None)


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, not of the statements inside it."""
    for _, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.expr):
                yield item
            elif isinstance(item, ast.withitem):
                yield item.context_expr


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    """The main block (which sees the file's names as its own), then each function, then the file's top
    level.
    """
    top = _Scope([node for node in tree.body if not is_main_guard(node)])
    for node in tree.body:
        if is_main_guard(node) and isinstance(node, ast.If):
            yield _Scope(node.body, top)
    for walked in ast.walk(tree):
        if isinstance(walked, ast.FunctionDef) and walked.name not in ("forward", "__init__"):
            yield _Scope(walked.body, top)
    yield top


def _usable(text: str | None, names: FileNames, *, foreign: bool) -> bool:
    """Whether an expression can be evaluated beside the model's file: all its names are torch's or the
    file's.
    """
    if text is None:
        return True
    try:
        tree = parse_python(f"__call__({text}\n)", mode="eval")
    except SyntaxError:
        return False
    inner = {
        part.id
        for part in ast.walk(tree)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    }
    inner |= {part.arg for part in ast.walk(tree) if isinstance(part, ast.arg)}
    known = {*names.imports, *names.classes, *names.functions} | (
        {*names.constants} if not foreign else set()
    )
    used = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)} - {"__call__"} - inner
    return used <= known | SAFE_NAMES


def _model_class(node: ast.expr) -> ast.Call | None:
    """The constructor call in `Net(8)`, `Net(8).eval()`, `torch.compile(Net(8))` or `Net(8).to("cpu")`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Call)
    ):
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _arguments_text(call: ast.Call) -> str:
    parts = [ast.unparse(argument) for argument in call.args]
    parts += [
        f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}" for k in call.keywords
    ]
    return ", ".join(parts)


def _argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[position] if len(call.args) > position else None


def exported_callables(
    tree: ast.Module, names: FileNames
) -> list[tuple[str, str, ast.FunctionDef | ast.ClassDef]]:
    """Functions and bound methods that the file passes to an export: (name, kind, where it is defined)."""
    found: dict[str, tuple[str, str, ast.FunctionDef | ast.ClassDef]] = {}
    for scope in _scopes(tree):
        for call, bound in scope.calls:
            if names.full(call.func) not in EXPORTS:
                continue
            subject = _argument(call, 0, "mod", "f")
            if isinstance(subject, ast.Name) and subject.id in names.functions:
                found[subject.id] = (subject.id, "function", names.functions[subject.id])
            elif isinstance(subject, ast.Attribute):
                made = _model_class(inlined(subject.value, bound))
                owner = names.full(made.func) if made else ""
                if owner in names.classes and not names.is_model(names.classes[owner]):
                    method = names.method(names.classes[owner], subject.attr)
                    if method is not None:
                        name = f"{owner}.{subject.attr}"
                        found[name] = (name, "method", method)
    return list(found.values())


class Proposer:
    """Proposals for the models of one file."""

    def __init__(self, path: Path, tree: ast.Module, names: FileNames) -> None:
        self._path = path
        self._names = names
        self._scopes = list(_scopes(tree))
        self._found_tests: list[Path] | None = None

    def for_class(self, cls: ast.ClassDef) -> tuple[ModelInputs, ...]:
        """All proposals for a Module class, the most trusted first."""
        forward = self._names.method(cls, "forward")
        parameters = parameters_of(forward, method=True) if forward else []
        found: list[ModelInputs] = []
        stated = configured_inputs(self._path, f"{self._path}:{cls.name}")
        ways = self._ways(cls)
        if stated is not None:
            found.append(stated)
            if stated.inputs is not None or stated.kwargs is not None:
                return (_complete(stated, ways[0].text if ways else None),)  # nothing is tried in their place
        found += self._exports(cls.name)
        found += self._providers(cls, found)
        found += self._calls(self._scopes, cls.name, self._names, "a call in this file")
        found += self._tests(cls.name) if not found else []
        for made in ways:
            if forward is None:
                break
            reader = LayerReader(cls, forward, self._names, made)
            for inputs, source in reader.proposals(parameters):
                found.append(ModelInputs(made.text, inputs, reader.keyword_only(), None, source))
        return tuple(_complete(proposal, ways[0].text if ways else None) for proposal in dict.fromkeys(found))

    def for_factory(self, function: ast.FunctionDef) -> tuple[ModelInputs, ...]:
        """Proposals for a function that makes a model of this file: its inputs are the model's."""
        call = returned_call(function)
        cls = self._names.classes.get(self._names.full(call.func)) if call is not None else None
        if cls is None or not self._names.is_model(cls) or _required(function):
            return ()
        of_class = [proposal for proposal in self.for_class(cls) if proposal.inputs is not None]
        return tuple(dict.fromkeys(replace(proposal, init="") for proposal in of_class))

    def _ways(self, cls: ast.ClassDef) -> list[Constructor]:
        """How to make a model: as the project states; else as the file makes it, with a function of the file, with arguments
        made up.
        """
        stated = configured_inputs(self._path, f"{self._path}:{cls.name}")
        if stated is not None and stated.init and _usable(stated.init, self._names, foreign=False):
            written = parse_python(f"{cls.name}({stated.init}\n)", mode="eval").body
            said = written_constructor(cls, written, self._names)
            if said is not None:
                return [said]
        called = [
            written_constructor(cls, inlined(call, bound), self._names)
            for scope in self._scopes
            for call, bound in scope.calls
            if self._names.full(call.func) == cls.name
        ]
        usable = [made for made in called if made is not None and self._is_plain(made.text)]
        factories = [
            Constructor(f"{function.name}()", made.values)
            for function in self._names.functions.values()
            if not _required(function)
            and (call := returned_call(function)) is not None
            and self._names.full(call.func) == cls.name
            and self._only_makes(function)
            and (made := written_constructor(cls, call, self._names))
            and self._is_plain(made.text)
        ]
        guessed = constructor_proposal(cls, self._names)
        ways = [*usable[:1], *factories[:1], *([guessed] if guessed is not None else [])]
        return list({made.text: made for made in reversed(ways)}.values())[::-1]

    def _is_plain(self, text: str) -> bool:
        """Whether constructor arguments are values and objects of classes: nothing that is read or computed first."""
        if not _usable(text, self._names, foreign=False):
            return False
        calls = [n for n in ast.walk(parse_python(f"__call__({text}\n)")) if isinstance(n, ast.Call)]
        return all(map(self._makes, calls[1:]))

    def _only_makes(self, function: ast.FunctionDef) -> bool:
        """Whether a function makes objects and returns one, and does nothing else: it is called to try out a model."""
        run = run_by_default(function)
        if run is None:
            return False
        return all(self._makes(n) for each in run for n in ast.walk(each) if isinstance(n, ast.Call))

    def _makes(self, call: ast.Call) -> bool:
        """Whether a class is called, or a function of the file."""
        name = self._names.full(call.func)
        return name.rpartition(".")[2][:1].isupper() or name in self._names.functions

    def for_callable(self, name: str, kind: str) -> tuple[ModelInputs, ...]:
        """Proposals for a function or a method: configuration and the export calls."""
        stated = configured_inputs(self._path, f"{self._path}:{name}")
        return (*([stated] if stated else []), *self._exports(name))

    def exported(self) -> list[tuple[ast.Call, str, ModelInputs]]:
        """Every export call whose model and arguments can be named outside of it, in the order of the text."""
        found = []
        for scope in self._scopes:
            for call, bound in scope.calls:
                name = self._subject_name(call, bound) if self._names.full(call.func) in EXPORTS else None
                proposal = self._proposal(call, bound, name) if name else None
                if name and proposal:
                    found.append((call, name, proposal))
        return sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset))

    def _subject_name(self, call: ast.Call, bound: dict[str, ast.expr]) -> str | None:
        """The name of what is exported: a class or function of this file, or `Class.method`."""
        subject = _argument(call, 0, "mod", "f")
        if isinstance(subject, ast.Name) and subject.id in self._names.functions:
            return subject.id
        method = isinstance(subject, ast.Attribute)
        owner = subject.value if isinstance(subject, ast.Attribute) else subject
        made = _model_class(inlined(owner, bound)) if owner is not None else None
        name = self._names.full(made.func) if made is not None else ""
        if name not in self._names.classes:
            return None
        return f"{name}.{subject.attr}" if method and isinstance(subject, ast.Attribute) else name

    def _exports(self, name: str) -> list[ModelInputs]:
        found = []
        for scope in self._scopes:
            for call, bound in scope.calls:
                if self._names.full(call.func) in EXPORTS | TRACES:
                    proposal = self._proposal(call, bound, name)
                    if proposal is not None:
                        found.append(proposal)
        return found

    def _proposal(self, call: ast.Call, bound: dict[str, ast.expr], name: str) -> ModelInputs | None:
        """What one export call says of the model `name`; None where it exports another."""
        function = self._names.full(call.func)
        subject = _argument(call, 0, "mod", "model", "f", "func")
        inputs = _argument(call, 1, "args", "example_inputs")
        init = self._init_of(subject, bound, name)
        if subject is None or init is None:
            return None
        kwargs = _argument(call, 2 if function in EXPORTS else 99, "kwargs")
        shapes = _argument(call, 99, "dynamic_shapes")
        proposal = ModelInputs(
            init or None,
            _text(inputs, bound),
            _text(kwargs, bound),
            _text(shapes, bound),
            f"the {function} call in line {call.lineno}",
            call.lineno,
        )
        words = (init, proposal.inputs, proposal.kwargs, proposal.dynamic_shapes)
        return proposal if all(_usable(text, self._names, foreign=False) for text in words) else None

    def _init_of(self, subject: ast.expr | None, bound: dict[str, ast.expr], name: str) -> str | None:
        """Constructor arguments with which `subject` is an instance of `name` (or `name` itself: ""); else
        None.
        """
        if subject is None:
            return None
        owner, _, attribute = name.partition(".")
        if attribute:
            if not (isinstance(subject, ast.Attribute) and subject.attr == attribute):
                return None
            subject = subject.value
        elif isinstance(subject, ast.Name) and subject.id == name:
            return ""
        made = _model_class(inlined(subject, bound))
        if made is None or self._names.full(made.func) != owner:
            return None
        return _arguments_text(made)

    def _providers(self, cls: ast.ClassDef, known: list[ModelInputs]) -> list[ModelInputs]:
        init = known[0].init if known else None
        for provider in PROVIDERS:
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == provider:
                    decorators = {self._names.full(d) for d in node.decorator_list}
                    if decorators & {"staticmethod", "classmethod"}:
                        return [
                            ModelInputs(init, f"{cls.name}.{provider}()", source=f"{cls.name}.{provider}")
                        ]
            function = self._names.functions.get(provider)
            if function is not None and not _required(function):
                return [ModelInputs(init, f"{provider}()", source=f"{provider}() in this file")]
            if provider in self._names.constants:
                return [ModelInputs(init, provider, source=f"{provider} in this file")]
        return []

    def _calls(self, scopes: list[_Scope], name: str, names: FileNames, source: str) -> list[ModelInputs]:
        """Calls of an instance: `net = Net(8); net(torch.randn(2, 8))`."""
        found = []
        for scope in scopes:
            for call, bound in scope.calls:
                if not isinstance(call.func, (ast.Name, ast.Call)) or not (call.args or call.keywords):
                    continue
                made = (
                    _model_class(inlined(call.func, bound)) if not isinstance(call.func, ast.Call) else None
                )
                if made is None and isinstance(call.func, ast.Call):
                    made = _model_class(inlined(call.func, bound))
                if made is None or names.full(made.func).rpartition(".")[2] != name:
                    continue
                if any(isinstance(argument, ast.Starred) for argument in call.args):
                    continue
                arguments = [ast.unparse(inlined(a, bound)) for a in call.args]
                inputs = f"({', '.join(arguments)},)" if arguments else "()"
                keywords = [
                    f"{k.arg!r}: {ast.unparse(inlined(k.value, bound))}" for k in call.keywords if k.arg
                ]
                kwargs = "{" + ", ".join(keywords) + "}" if keywords else None
                init = _arguments_text(made)
                if all(
                    _usable(text, self._names, foreign=names is not self._names)
                    for text in (init, inputs, kwargs)
                ):
                    found.append(
                        ModelInputs(init or None, inputs, kwargs, source=f"{source}, line {call.lineno}")
                    )
        return found

    def _tests(self, name: str) -> list[ModelInputs]:
        """Calls of the model in the project's tests, as far as their expressions stand by themselves."""
        for file in self._test_files():
            try:
                text = file.read_text(encoding="utf-8")
                tree = parse_python(text) if name in text else None
            except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
                continue
            if tree is None:
                continue
            names = FileNames(tree)
            module = names.imports.get(name, "").split(".")[-2:-1]
            if module not in ([self._path.stem], [self._path.parent.name]):
                continue  # another class of this name
            found = self._calls(list(_scopes(tree)), name, names, f"a call in {file.name}")
            if found:
                return found
        return []

    def _test_files(self) -> list[Path]:
        """The test files of the project, nearest first; the folders are gone through once for all models of the file."""
        if self._found_tests is None:
            self._found_tests = [
                file
                for folder in self._project_folders()
                for file in [*sorted(folder.glob("test_*.py")), *sorted(folder.glob("test*/**/test_*.py"))][
                    :MOST_TEST_FILES
                ]
            ]
        return self._found_tests

    def _project_folders(self) -> list[Path]:
        """The file's folder, and those above it up to the project's own; of a file in no project, its
        folder.
        """
        folders: list[Path] = []
        for folder in self._path.absolute().parents:
            folders.append(folder)
            if any((folder / mark).exists() for mark in ("pyproject.toml", "setup.py", "setup.cfg", ".git")):
                return folders
        return folders[:1]

    def dynamic_shapes(self, cls: ast.ClassDef, proposals: tuple[ModelInputs, ...]) -> str | None:
        """`dynamic_shapes` that a Module class suggests, by its example inputs and by what takes them first."""
        forward = self._names.method(cls, "forward")
        if forward is None:
            return None
        names = [p.arg for p in parameters_of(forward, method=True)]
        layers: dict[str, str] = {}
        longest = None
        for made in self._ways(cls)[:1]:
            reader = LayerReader(cls, forward, self._names, made)
            layers, longest = reader.first_layers(names), reader.longest_sequence()
        for proposal in proposals:
            examples = examples_of(proposal.inputs, proposal.kwargs, names, layers)
            if examples is not None:
                return proposal.dynamic_shapes or proposed_shapes(examples, longest)
        return None


def _text(node: ast.expr | None, bound: dict[str, ast.expr]) -> str | None:
    return ast.unparse(inlined(node, bound)) if node is not None else None


def _required(function: ast.FunctionDef) -> list[str]:
    arguments = [*function.args.posonlyargs, *function.args.args]
    bare = arguments[: len(arguments) - len(function.args.defaults)]
    return [a.arg for a in bare if a.arg not in ("self", "cls")]


_ANY_ARGUMENT = re.compile(r"\S")


def _complete(proposal: ModelInputs, init: str | None) -> ModelInputs:
    """A proposal that says nothing of the constructor gets the arguments that the constructor needs."""
    if proposal.init is None and init and _ANY_ARGUMENT.search(init):
        return replace(proposal, init=init)
    return proposal
