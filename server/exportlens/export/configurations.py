"""Configuration objects that constructors take (`args`, `cfg`, `config`): what a model reads of one tells what it has to
hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from exportlens.export.flows import in_order
from exportlens.source.parsing import parse_python

if TYPE_CHECKING:
    from exportlens.export.models import FileNames

DEEPEST = 4
_NO_VALUES = frozenset({"items", "keys", "values", "get", "copy", "to_dict", "pop", "update"})
_STRINGS = {"device": "cpu"}


@dataclass
class Reads:
    """What is read of one value: its parts by name, whether by `["key"]`, and what the code says of the value itself."""

    parts: dict[str, Reads] = field(default_factory=dict)
    by_key: bool = False
    default: ast.expr | None = None
    compared: ast.expr | None = None
    decides: bool = False
    """Whether an `if` asks for nothing but its truth."""
    items: int | None = None
    """How many items it has to hold, where it is used as a sequence."""

    def part(self, name: str, by_key: bool) -> Reads:
        self.by_key = self.by_key or by_key
        return self.parts.setdefault(name, Reads())


def reads_of(cls: ast.ClassDef, parameter: str, names: FileNames) -> Reads:
    """What a class and the classes of this file that it hands the constructor's parameter to read of it."""
    found = Reads()
    _collect(cls, parameter, names, found, 0)
    return found


def _collect(cls: ast.ClassDef, parameter: str, names: FileNames, into: Reads, depth: int) -> None:
    init = names.method(cls, "__init__")
    if init is None or depth > DEEPEST:
        return
    kept = {parameter: into}
    _read_function(init, kept, names, depth)
    held = {root: read for root, read in kept.items() if "." in root}
    for each in names.lineage(cls):
        for method in each.body:
            if isinstance(method, ast.FunctionDef) and method is not init:
                _read_function(method, dict(held), names, depth)


def _read_function(method: ast.FunctionDef, roots: dict[str, Reads], names: FileNames, depth: int) -> None:
    """Add what a function reads; `roots` has what is read of a name or of an attribute, and gets those that are bound here."""
    for node in in_order(method):
        if isinstance(node, ast.Assign) and (bound := _at(node.value, roots)) is not None:
            roots.update(
                {ast.unparse(t): bound for t in node.targets if isinstance(t, (ast.Name, ast.Attribute))}
            )
        if isinstance(node, ast.Call):
            _read_call(node, roots, names, depth)
        elif isinstance(node, (ast.For, ast.ListComp, ast.GeneratorExp)):
            sources = [node.iter] if isinstance(node, ast.For) else [each.iter for each in node.generators]
            for part in (part for source in sources for part in _gone_through(source)):
                if (read := _at(part, roots)) is not None:
                    read.items = max(read.items or 2, 2)
        elif isinstance(node, (ast.If, ast.IfExp)):
            test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
            if (read := _at(test, roots)) is not None:
                read.decides = True
        elif isinstance(node, ast.Compare) and (read := _at(node.left, roots)) is not None:
            constants = [
                c for other in node.comparators for c in ast.walk(other) if isinstance(c, ast.Constant)
            ]
            read.compared = next((c for c in constants if isinstance(c.value, str)), read.compared)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            place = node.slice.value
            if isinstance(place, int) and (read := _at(node.value, roots)) is not None:
                read.items = max(read.items or 2, place + 1)
            else:
                _at(node, roots)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            _at(node, roots)


def _read_call(call: ast.Call, roots: dict[str, Reads], names: FileNames, depth: int) -> None:
    function = call.func
    first = call.args[0] if call.args else None
    if isinstance(function, ast.Attribute) and function.attr == "get" and _key(first):
        if (read := _at(function.value, roots)) is not None:
            part = read.part(_key(first), True)
            part.default = part.default or (call.args[1] if len(call.args) > 1 else None)
    elif (
        isinstance(function, ast.Name)
        and function.id == "getattr"
        and len(call.args) > 1
        and _key(call.args[1])
    ):
        if (read := _at(call.args[0], roots)) is not None:
            part = read.part(_key(call.args[1]), False)
            part.default = part.default or (call.args[2] if len(call.args) > 2 else None)
    elif (
        isinstance(function, ast.Name)
        and function.id == "len"
        and first is not None
        and (read := _at(first, roots)) is not None
    ):
        read.items = read.items or 2
    inner = names.classes.get(names.full(function))
    init = names.method(inner, "__init__") if inner is not None else None
    if inner is None or init is None:
        return
    taken = [a.arg for a in (*init.args.posonlyargs, *init.args.args)][1:]
    given = [*zip(taken, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
    for name, value in given:
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            read = _at(value, roots)
            if read is not None:
                _collect(inner, name, names, read, depth + 1)


def _gone_through(node: ast.expr) -> Iterator[ast.expr]:
    """What a loop goes through: `a`, and both of `enumerate(zip(a, b))`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("enumerate", "zip", "reversed", "sorted", "list"):
            for argument in node.args:
                yield from _gone_through(argument)
    else:
        yield node


def _key(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _at(node: ast.expr, roots: dict[str, Reads]) -> Reads | None:
    """The place of `cfg.a["b"].c` in what is read; None for what is no part of it, or no value."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (known := roots.get(ast.unparse(node))) is not None:
        return known
    if isinstance(node, ast.Attribute) and node.attr not in _NO_VALUES and not node.attr.startswith("__"):
        owner = _at(node.value, roots)
        return owner.part(node.attr, False) if owner is not None else None
    if isinstance(node, ast.Subscript) and _key(node.slice):
        owner = _at(node.value, roots)
        return owner.part(_key(node.slice), True) if owner is not None else None
    return None


ValueByName = Callable[[str, str, "int | None"], "ast.expr | None"]
"""What an argument with this name, this annotation and so many items is to be."""


# What is read of a model rather than of a configuration.
_OF_MODULES = frozenset(
    [
        "parameters",
        "named_parameters",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "buffers",
        "state_dict",
        "zero_grad",
    ]
)


def configuration(
    reads: Reads, annotation: str, names: FileNames, by_name: ValueByName, *, unread: bool = False
) -> ast.expr | None:
    """An expression for an object with what is read of it: a configuration class or a dict of the file that has it all,
    else a namespace or a dict made up. None where nothing is read of it by name; or an empty namespace, if that is
    what is to be made of one that is `unread`.
    """
    if not reads.parts:
        return ast.Call(ast.Name("Namespace", ast.Load()), [], []) if unread else None
    wanted = set(reads.parts)
    if wanted & _OF_MODULES and not annotation and not reads.by_key:
        return parse_python("torch.nn.Linear(8, 8)", mode="eval").body
    for constant, value in names.constants.items():
        if isinstance(value, ast.Dict) and reads.by_key and wanted <= {_key(key) for key in value.keys}:
            return ast.Name(constant, ast.Load())
    known = [names.classes[annotation]] if annotation in names.classes else []
    for cls in known or [cls for cls in names.classes.values() if not names.is_model(cls)]:
        made = _made(cls, wanted, names, by_name)
        if made is not None:
            return made
    return None if known else _made_up(reads, _command_line(names), by_name)


def _made(cls: ast.ClassDef, wanted: set[str], names: FileNames, by_name: ValueByName) -> ast.expr | None:
    """The constructor call of a configuration class that has all that is wanted; None where it has not."""
    fields = {
        n.target.id: n for n in cls.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    plain = {
        t.id for n in cls.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    set_later = {
        target.attr
        for method in cls.body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }
    others = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)}
    if not wanted <= fields.keys() | plain | set_later | others or not (fields or plain or set_later):
        return None
    words = []
    if any("dataclass" in ast.unparse(decorator) for decorator in cls.decorator_list):
        needed = [(name, ast.unparse(n.annotation)) for name, n in fields.items() if n.value is None]
    else:
        init = names.method(cls, "__init__")
        arguments = (
            init.args.args[1 : len(init.args.args) - len(init.args.defaults)] if init is not None else []
        )
        needed = [(a.arg, ast.unparse(a.annotation) if a.annotation is not None else "") for a in arguments]
    for name, said in needed:
        value = by_name(name, said, None)
        if value is None:
            return None
        words.append(ast.keyword(name, value))
    return ast.Call(ast.Name(cls.name, ast.Load()), [], words)


def _command_line(names: FileNames) -> dict[str, ast.expr]:
    """The defaults of the options that the file's functions declare with argparse."""
    found: dict[str, ast.expr] = {}
    for call in (
        n for function in names.functions.values() for n in ast.walk(function) if isinstance(n, ast.Call)
    ):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args):
            continue
        options = [_key(argument) for argument in call.args]
        said = {k.arg: k.value for k in call.keywords}
        name = _key(said.get("dest")) or max(options, key=len).lstrip("-").replace("-", "_")
        if _key(said.get("action")) in ("store_true", "store_false"):
            found[name] = ast.Constant(_key(said["action"]) == "store_false")
        elif isinstance(said.get("default"), (ast.Constant, ast.List, ast.Tuple)):
            found[name] = said["default"]
    return found


def _made_up(reads: Reads, known: dict[str, ast.expr], by_name: ValueByName) -> ast.expr | None:
    values: dict[str, ast.expr] = {}
    for name, read in reads.parts.items():
        value = _value(name, read, known, by_name)
        if value is None:
            return None
        values[name] = value
    if reads.by_key:
        return ast.Dict([ast.Constant(name) for name in values], list(values.values()))
    if not all(re.fullmatch(r"[^\W\d]\w*", name) for name in values):
        return None
    return ast.Call(ast.Name("Namespace", ast.Load()), [], [ast.keyword(n, v) for n, v in values.items()])


def _value(name: str, read: Reads, known: dict[str, ast.expr], by_name: ValueByName) -> ast.expr | None:
    if read.parts:
        return _made_up(read, known, by_name)
    if name in known:
        return known[name]
    if isinstance(read.default, ast.Constant) and read.default.value is not None:
        return read.default
    if read.compared is not None:
        return read.compared
    if read.decides and read.items is None:
        return ast.Constant(False)
    if name in _STRINGS:
        return ast.Constant(_STRINGS[name])
    return by_name(name, "", read.items) or parse_python("8", mode="eval").body
