"""Export calls: a wrapper Module for a callable, `dynamic_shapes` for a static batch."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import called_as, class_attribute
from exportlens.inference.places import ExportCall
from exportlens.inference.values import (
    Bound,
    ClassValue,
    Function,
    Instance,
    Mapping_,
    Named,
    Partial,
    Sequence,
    Tensor,
    Value,
    options,
)
from exportlens.outcome import TorchVersion
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, first_line
from exportlens.rewriting.code.names import arguments, bound, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.source.parsing import parse_python


def wrap_callable(place: ExportCall, context: RewriteContext) -> Fix | Refusal:
    """A wrapper nn.Module for the function, lambda or bound method that is exported.

    The wrapper registers the Modules that the callable uses, so that their parameters are the program's.
    """
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.nodes["mod"])
        if not isinstance(node, ast.expr):
            raise Refused("what is exported is not written in the call")
        if isinstance(node, ast.Attribute) and node.attr == "forward" and not isinstance(place.model, Bound):
            owner = draft.source.of(node.value)
            return draft.replace("Export the Module", [draft.source.swap(node, owner)], uses_torch=False)
        call = _wrapper(draft, node, place.model)
        statement = draft.source.enclosing_statement(node)
        while isinstance(draft.source.parents.get(statement), ast.stmt) and isinstance(
            draft.source.parents[statement], (ast.With, ast.Try)
        ):
            statement = draft.source.parents[statement]  # type: ignore[assignment]
        local = draft.source.enclosing_function(node) is not None
        if not local:
            # At the file's top level the class can be used by everyone, and stays when the call goes.
            statement = draft.source.tree.body[0]
        indent = draft.source.indent_of(statement)
        unit = draft.source.indent_unit()
        name = fresh(call.name, draft.taken(draft.source.tree) | _defined(draft))
        base = _module_base(draft)
        lines = [
            f"{indent}class {name}({base}):",
            f"{indent}{unit}def __init__(self{''.join(', ' + each for each in call.parameters)}):",
            f"{indent}{unit * 2}super().__init__()",
            *(f"{indent}{unit * 2}self.{each} = {text}" for each, text in call.attributes),
            "",
            f"{indent}{unit}def forward(self, {call.signature}):",
            call.block(indent + unit * 2) if call.block else f"{indent}{unit * 2}return {call.body}",
            *([""] if local else ["", ""]),
            "",
        ]
        if not local and isinstance(node, ast.Lambda) and not call.attributes and _reads_locals(draft, node):
            raise Refused("the lambda reads names that are bound where it is written")
        start, _ = draft.source.span([statement])
        if not local:
            lines = [*_missing_blank_lines(draft, start), *lines]
        text = replaced(
            draft.source.text,
            [
                Replacement(start, start, draft.source.newline.join(lines)),
                draft.source.swap(node, f"{name}({', '.join(call.given)})"),
            ],
        )
        return draft.fix("Export a Module that calls it", text)
    except (Refused, LookupError, SyntaxError, KeyError) as refused:
        return Refusal(str(refused))


def _defined(draft: Draft) -> set[str]:
    """The classes of the file."""
    return {
        each.name
        for placed in draft.context.document.placed
        for each in placed.chunk.body
        if isinstance(each, ast.ClassDef)
    }


def _missing_blank_lines(draft: Draft, start: int) -> list[str]:
    """What is missing of the two empty lines before a definition at `start` of the chunk."""
    row = first_line(draft.context.document, draft.chunk) + draft.source.line_and_column(start)[0]
    before = draft.context.document.text.splitlines()[:row]
    empty = len(before) - len("\n".join(before).rstrip().splitlines())
    return [""] * (2 - empty) if before else []


def _reads_locals(draft: Draft, node: ast.Lambda) -> bool:
    free = reads(node) - set(draft.modules)
    return bool(free & set(bound(draft.source.tree.body)))


class _Wrapper:
    """How the wrapper is made (`parameters`, `attributes`, `given`) and what its forward does: return `body`, or the
    statements that `block` gives at an indentation.
    """

    def __init__(self, name: str, signature: str, body: str) -> None:
        self.name, self.signature, self.body = name, signature, body
        self.parameters: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.given: list[str] = []
        self.block: Callable[[str], str] | None = None


def _wrapper(draft: Draft, node: ast.expr, model: Value) -> _Wrapper:
    if isinstance(node, ast.Lambda):
        return _of_lambda(draft, node)
    if isinstance(model, Bound) and isinstance(node, ast.Attribute) and isinstance(model.function, Function):
        wrapper = _Wrapper(_title(node.attr), _signature(model.function, bound=True), "")
        _own(wrapper, draft, node.value, model.receiver)
        wrapper.body = f"self.owner.{node.attr}({_passed(model.function, bound=True)})"
        return wrapper
    called = called_as(model)
    if called is not None and isinstance(called.function, Function) and isinstance(model, Instance):
        name = model.cls.name if isinstance(model.cls, ClassValue) else "Wrapper"
        wrapper = _Wrapper(f"{name}Module", _signature(called.function, bound=True), "")
        _own(wrapper, draft, node, model)
        wrapper.body = f"self.owner({_passed(called.function, bound=True)})"
        return wrapper
    if isinstance(model, Partial):
        return _of_partial(draft, node, model)
    if isinstance(model, Function) and isinstance(node, ast.Name):
        wrapper = _Wrapper(
            _title(node.id), _signature(model, bound=False), f"{node.id}({_passed(model, bound=False)})"
        )
        for name in _module_globals(model):
            wrapper.parameters.append(name)
            wrapper.given.append(name)
            wrapper.attributes.append((name, name))
        if wrapper.attributes:
            # Strict mode does not take a Module's parameters by way of a global name.
            wrapper.block = _own_body(model, [name for name, _ in wrapper.attributes], draft)
        return wrapper
    raise Refused("what is exported is neither a function of this file, a bound method nor a lambda")


def _of_lambda(draft: Draft, node: ast.Lambda) -> _Wrapper:
    body = draft.source.of(node.body)
    wrapper = _Wrapper("Wrapper", ast.unparse(node.args), body)
    own = {each.arg for each in arguments(node.args)} | set(draft.modules) | set(dir(builtins))
    for each in ast.walk(node.body):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id not in own:
            _hold(wrapper, each.func.id)
    for held, _ in wrapper.attributes:
        wrapper.body = _renamed(wrapper.body, held)
    return wrapper


def _own(wrapper: _Wrapper, draft: Draft, node: ast.expr, owner: Value) -> None:
    """Let the wrapper keep the object that `node` gives, and register the Modules that are in it."""
    wrapper.parameters.append("owner")
    wrapper.given.append(draft.source.of(node))
    wrapper.attributes.append(("owner", "owner"))
    if not _is_module(owner):
        wrapper.attributes += _modules_of(owner, _module_base(draft))


def _of_partial(draft: Draft, node: ast.expr, model: Partial) -> _Wrapper:
    """The wrapper for a partial of a Module, a method or a function: what it gives is given by the partial still."""
    function, bound, held = model.function, False, ""
    if isinstance(function, Instance) and _is_module(function):
        forward, _, _ = class_attribute(function.cls, "forward")
        function, bound, held = forward or function, True, "function.func"
    elif isinstance(function, Bound):
        if not _is_module(function.receiver):
            raise Refused("the partial is of a method of an object that is no Module")
        function, bound, held = function.function, True, "function.func.__self__"
    if not isinstance(function, Function):
        raise Refused("what the partial calls is not in this file")
    args = function.node.args
    names = [each.arg for each in [*args.posonlyargs, *args.args]]
    left = names[len(model.args) + bound :]
    given = [name for name in left if name in model.kwargs]
    if args.vararg or args.kwarg or args.kwonlyargs or left[len(left) - len(given) :] != given:
        raise Refused("the partial gives an argument in the middle of others")
    defaults = dict(zip(names[::-1], args.defaults[::-1], strict=False))
    left = left[: len(left) - len(given)]
    signature = [f"{each}={ast.unparse(defaults[each])}" if each in defaults else each for each in left]
    wrapper = _Wrapper("PartialModule", ", ".join(signature), f"self.function({', '.join(left)})")
    wrapper.parameters.append("function")
    wrapper.given.append(draft.source.of(node))
    wrapper.attributes.append(("function", "function"))
    if held:
        wrapper.attributes.append(("module", held))
    return wrapper


def _own_body(function: Function, held: list[str], draft: Draft) -> Callable[[str], str] | None:
    """The function's statements with the `held` names as attributes of self; None where they cannot be copied."""
    if function.scope.path != draft.context.document.path:
        return None
    source = Source(function.chunk.text)
    node = source.find(function.node)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    inner = [each for each in ast.walk(node) if each is not node]
    if any(
        isinstance(each, (ast.Yield, ast.YieldFrom, ast.Global, ast.FunctionDef, ast.Lambda))
        for each in inner
    ):
        return None
    names = {
        name for name in held if name not in {*bound(node.body), *(each.arg for each in arguments(node.args))}
    }
    swaps = [
        source.swap(each, f"self.{each.id}")
        for statement in node.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and each.id in names
    ]
    return lambda indent: source.block(node.body, indent, swaps)


def _hold(wrapper: _Wrapper, name: str) -> None:
    if name not in wrapper.parameters:
        wrapper.parameters.append(name)
        wrapper.given.append(name)
        wrapper.attributes.append((name, name))


def _renamed(body: str, name: str) -> str:
    source = Source(body)
    return replaced(
        body,
        [
            source.swap(each, f"self.{name}")
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Name) and each.id == name
        ],
    )


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_") if part) + "Module"


def _signature(function: Function, bound: bool) -> str:
    args = function.node.args
    if args.vararg or args.kwarg:
        raise Refused("the callable takes any number of arguments")
    copy = parse_python(f"def f({ast.unparse(args)}): ...").body[0]
    assert isinstance(copy, ast.FunctionDef)
    if bound:
        copy.args.args = copy.args.args[1:]
    for each in copy.args.args:
        each.annotation = None
    return ast.unparse(copy.args)


def _passed(function: Function, bound: bool) -> str:
    args = function.node.args
    positional = [each.arg for each in [*args.posonlyargs, *args.args]][1 if bound else 0 :]
    return ", ".join([*positional, *(f"{each.arg}={each.arg}" for each in args.kwonlyargs)])


def _modules_of(owner: Value, base: str) -> list[tuple[str, str]]:
    """(attribute of the wrapper, its value) for the Modules that the object `owner` holds, also in lists and dicts; `base`
    is what the file calls torch.nn.Module."""
    if not isinstance(owner, Instance):
        return []
    found = []
    for name, value in owner.attributes.items():
        if name == "owner":
            continue
        if _is_module(value):
            found.append((name, f"owner.{name}"))
        elif isinstance(value, Sequence) and _are_modules(value.items, value.element):
            found.append((name, f"{base}List(owner.{name})"))
        elif (
            isinstance(value, Mapping_)
            and value.rest is None
            and all(isinstance(key, str) for key in value.items)
            and _are_modules(list(value.items.values()), None)
        ):
            found.append((name, f"{base}Dict(owner.{name})"))
    return found


def _are_modules(items: list[Value] | None, rest: Value | None) -> bool:
    """Whether the items of a container, or what stands for those that are not told, are Modules."""
    known = [*(items or ()), *([rest] if rest is not None else [])]
    return bool(known) and all(map(_is_module, known))


def _module_globals(function: Function) -> list[str]:
    """The names of the file's top level that a function calls and that a call made: the Modules that it
    uses."""
    called = {
        each.func.id
        for each in ast.walk(function.node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    made = {
        name
        for name in called
        for _, statement in function.scope.bindings.get(name, ())
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
    }
    own = {*bound(function.node), *(each.arg for each in arguments(function.node.args))}
    values = function.scope.values
    made |= {name for name in reads(function.node) - own if name in values and _is_module(values[name])}
    return sorted(made)


def _is_module(value: Value) -> bool:
    if not isinstance(value, Instance):
        return False
    cls: Value = value.cls
    seen: list[Value] = [cls]
    while seen:
        cls = seen.pop()
        if isinstance(cls, Named) and cls.name.startswith("torch.nn."):
            return True
        if isinstance(cls, ClassValue):
            seen += cls.bases
    return False


def _module_base(draft: Draft) -> str:
    for local, qualified in draft.modules.items():
        if qualified == "torch.nn":
            return f"{local}.Module"
    return f"{draft.torch}.nn.Module"


def add_dynamic_shapes(place: ExportCall, context: RewriteContext) -> Fix | Refusal:
    """`dynamic_shapes` with one Dim for the first dimension of every tensor among the example inputs."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        if any(key.arg in ("dynamic_shapes", None) for key in node.keywords):
            raise Refused("the call gives dynamic_shapes already, or unpacks its arguments")
        inputs = place.arguments.get("args")
        if not isinstance(inputs, Sequence) or inputs.items is None:
            raise Refused("the example inputs are not written where they can be read")
        names = forward_parameters(place.model)
        sizes = {_first_size(item) for item in inputs.items if _is_tensor(item)} - {None}
        if len(sizes) > 1:
            raise Refused(
                "the example inputs differ in their first dimension: one batch dimension is not all of it"
            )
        if sizes & {0, 1}:
            raise Refused(
                "the example inputs have a first dimension of 0 or 1, which export specialises: use 2 or more"
            )
        # AUTO keeps a dimension static where the model's own code ties it down; a named Dim stops there.
        newer = context.version >= TorchVersion(2, 6)
        dim = f"{draft.torch}.export.Dim.AUTO" if newer else f'{draft.torch}.export.Dim("batch")'
        each = [f"{{0: {dim}}}" if _is_tensor(item) else "None" for item in inputs.items]
        if names is not None and len(names) >= len(inputs.items):
            named = (f'"{name}": {text}' for name, text in zip(names, each, strict=False))
            shapes = f"{{{', '.join(named)}}}"
        else:
            shapes = f"({', '.join(each)},)"
        keywords = place.arguments.get("kwargs")
        if keywords is not None and getattr(keywords, "value", keywords) is not None:
            raise Refused("the call gives keyword inputs: write dynamic_shapes for all of them")
        if not any(_is_tensor(item) for item in inputs.items):
            raise Refused("no example input is known to be a tensor")
        last = max([*node.args, *(key.value for key in node.keywords)], key=draft.source.end)
        addition = f", dynamic_shapes={shapes}"
        end = draft.source.end(last)
        swap = Replacement(end, end, addition)
        return draft.replace("Make the batch dimension dynamic", [swap])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def trace_in_mode(strict: bool, line: int, context: RewriteContext) -> Fix | Refusal:
    """`strict=` in the export call on `line` (from 0): one mode traces what the other does not take."""
    try:
        placed = context.document.chunk_at(line)
        if placed is None:
            raise Refused("the export call is not in this file")
        draft = Draft.of_chunk(placed.chunk, context)
        row = line - first_line(context.document, placed.chunk) + 1
        calls = [
            node
            for node in ast.walk(draft.source.tree)
            if isinstance(node, ast.Call)
            and node.lineno == row
            and ast.unparse(node.func).rpartition(".")[2] == "export"
        ]
        if len(calls) != 1 or any(key.arg is None for key in calls[0].keywords):
            raise Refused("the export call does not show its arguments")
        call, words = calls[0], "strict" if strict else "non-strict"
        given = next((key for key in call.keywords if key.arg == "strict"), None)
        if given is not None:
            swap = draft.source.swap(given.value, str(strict))
        else:
            last = max([*call.args, *(key.value for key in call.keywords)], key=draft.source.end)
            end = draft.source.end(last)
            swap = Replacement(end, end, f", strict={strict}")
        return draft.replace(f"Trace in {words} mode, which takes it", [swap], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_tensor(value: Value) -> bool:
    return any(isinstance(option, Tensor) and option.rank != 0 for option in options(value))


def _first_size(value: Value) -> int | None:
    dims = getattr(value, "dims", None)
    size = getattr(dims[0], "value", None) if dims else None
    return size if isinstance(size, int) else None


def forward_parameters(model: Value) -> list[str] | None:
    """The names of the forward parameters of a Module of the workspace, without self."""
    cls = model.cls if isinstance(model, Instance) else None
    while isinstance(cls, ClassValue):
        for statement in cls.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                args = statement.args
                return None if args.vararg else [each.arg for each in [*args.posonlyargs, *args.args]][1:]
        cls = next((base for base in cls.bases if isinstance(base, ClassValue)), None)
    return None
