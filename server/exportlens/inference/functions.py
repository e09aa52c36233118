"""Functions of the workspace: their arguments bound, their bodies followed, and calls like earlier ones remembered."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from exportlens.inference.assumed import constant, is_assumed
from exportlens.inference.classes import switches_gradients_off
from exportlens.inference.expressions import evaluate
from exportlens.inference.lattice import join
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import taken_up
from exportlens.inference.places import Place
from exportlens.inference.state import Locals
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)
from exportlens.source.walking import children

_MAX_DEPTH = 36


_MAX_RECURSION = 2


_MAX_LIBRARY_CALLS = 400


_OPERATOR_DECORATORS = frozenset({"custom_op", "triton_op"})


class Spread(Value):
    """Any number of positional arguments, as `*values` of unknown length gives them."""

    __slots__ = ("element",)

    def __init__(self, element: Value) -> None:
        self.element = element


def plain_items(args: list[Value]) -> list[Value]:
    return [value.element if isinstance(value, Spread) else value for value in args]


def closed_items(kwargs: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in kwargs.items() if key != "**"} if "**" in kwargs else kwargs


def call_function(
    machine: Machine,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame | None,
    node: ast.AST,
) -> Value:
    """Interpret a function's body for these arguments; Unknown where it nests or recurs too deeply."""
    if len(machine.active) >= _MAX_DEPTH or _recurs(machine, function):
        return Unknown(f"`{function.name}` calls itself too deeply")
    opaque = _opaque_result(machine, function)
    if opaque is not None:
        return opaque
    if function.scope.library and not _worth_following(machine, function):
        return Unknown(f"`{function.name}` of an installed package is not followed here")
    machine.step()
    inner = Frame(function.scope, function.chunk, Locals(), function, function.closure)
    inner.traced = machine.tracing
    inner.locals = _bind(machine, function, args, kwargs, inner)
    if isinstance(function.node, ast.Lambda):
        body = function.node.body
        return _in_frame(machine, function, frame, node, lambda: evaluate(machine, body, inner))
    parameters = [*function.node.args.posonlyargs, *function.node.args.args]
    if parameters and function.owner is not None and "staticmethod" not in function.decorators:
        inner.receiver = inner.locals.get(parameters[0].arg)
    if "yield" in function.chunk.text and _yields(function.node):
        inner.yields = []
    key = _memo_key(machine, function, inner.locals)
    if key is not None:
        known: _Remembered | None = machine.memo.get(key)
        if known is not None and known.doubt <= machine.doubt:
            return known.replay(machine)
    mark, first = machine.journal.mark(), len(machine.log)
    given = dict(inner.locals) if key is not None else {}
    assumed = is_assumed(function)
    machine.assumed += assumed
    try:
        result = _in_frame(machine, function, frame, node, lambda: _run_body(machine, function, inner))
    finally:
        machine.assumed -= assumed
    if assumed:
        result = constant(result)
    if key is not None and _is_pure(machine, mark, given):
        machine.memo[key] = _Remembered(
            result, tuple(machine.log[first:]), machine.doubt, machine.entry, given
        )
    return result


def _recurs(machine: Machine, function: Function) -> bool:
    times = 0
    for other in machine.active:
        if other.node is function.node:
            times += 1
    return times >= _MAX_RECURSION


def _opaque_result(machine: Machine, function: Function) -> Value | None:
    """What a custom operator returns, by its annotation: tracing never looks into its body. None for other functions."""
    if not any(name.rpartition(".")[2] in _OPERATOR_DECORATORS for name in function.decorators) or isinstance(
        function.node, ast.Lambda
    ):
        return None
    from exportlens.inference.parameters import from_annotation

    returns = function.node.returns
    made = from_annotation(machine, function, returns, "") if returns is not None else None
    return _fresh(made) if made is not None else Unknown(f"the custom operator `{function.name}`")


def _fresh(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, origin="fresh", name="")
    if isinstance(value, Sequence) and value.items is not None:
        return Sequence(value.kind, [_fresh(item) for item in value.items])
    return value


def _worth_following(machine: Machine, function: Function) -> bool:
    """Whether the body of an installed package's function may tell something of tensors, within a bounded effort per entry point."""
    if machine.tracing:
        machine.library_calls += 1
        return machine.library_calls <= _MAX_LIBRARY_CALLS
    return machine.decorating or function.name in ("__init__", "__post_init__")


@dataclass(slots=True)
class _Remembered:
    """A call that was followed once: its result, the places that it passed, and the arguments (kept alive, as the key holds their ids)."""

    result: Value
    places: tuple[Place, ...]
    doubt: int
    entry: str | None
    arguments: dict[str, Value]

    def replay(self, machine: Machine) -> Value:
        """The result; the places are noted again where another entry point comes by."""
        if self.entry != machine.entry:
            for place in self.places:
                machine.notice(replace(place, site=replace(place.site, entry=machine.entry)))
        return self.result


def _is_pure(machine: Machine, mark: int, given: dict[str, Value]) -> bool:
    """Whether a call wrote to nothing that it was given: then its result is all that it did."""
    written = machine.journal.written_since(mark)
    if not written:
        return True
    for value in given.values():
        owned = [value, *(value.attributes.values() if isinstance(value, Instance) else [])]
        for item in owned:
            if id(item) in written:
                return False
            if isinstance(item, Instance) and id(item.attributes) in written:
                return False
            if isinstance(item, Mapping_) and id(item.items) in written:
                return False
    return True


def _in_frame(machine: Machine, function: Function, frame: Frame | None, node: ast.AST, run: Any) -> Value:
    if frame is not None:
        machine.trail.append((frame.scope, frame.chunk, node))
    machine.active.append(function)
    off = sum(map(switches_gradients_off, function.decorators)) if function.decorators else 0
    machine.without_gradients += off
    try:
        return run()  # type: ignore[no-any-return]
    finally:
        machine.without_gradients -= off
        machine.active.pop()
        if frame is not None:
            machine.trail.pop()


def _run_body(machine: Machine, function: Function, inner: Frame) -> Value:
    from exportlens.inference.statements import run_block

    assert not isinstance(function.node, ast.Lambda)
    journal = machine.journal
    inner.mark = mark = journal.mark()
    falls = False
    error: Raised | None = None
    doubt, conditions = machine.doubt, len(machine.conditions)
    try:
        falls = run_block(machine, function.node.body, inner)
    except Raised as raised:
        error = raised
    finally:
        machine.doubt = doubt
        del machine.conditions[conditions:]
    if inner.yields is not None:
        items = inner.yields
        exact = not any(isinstance(child, (ast.For, ast.While, ast.If)) for child in ast.walk(function.node))
        if exact:
            return Sequence("generator", items)
        cover = items[0] if items else Unknown("element of a generator")
        for item in items[1:]:
            cover = join(cover, item)
        return Sequence("generator", None, cover)
    if len(machine.active) == 1:
        machine.returned = [(value, where) for value, _, where in inner.returns]
    elif function.node is machine.written:
        machine.returned_inside = [(value, where) for value, _, where in inner.returns]
    if not inner.returns:
        if error is not None:
            raise error
        return Const(None)
    result = inner.returns[0][0]
    for value, _, _ in inner.returns[1:]:
        result = join(result, value)
    if falls:
        result = join(result, Const(None))
    paths = [changes for _, changes, _ in inner.returns if changes is not None]
    if paths:
        if falls or inner.returns[-1][1] is None:
            paths.append(journal.changes_since(mark))
        journal.roll_back(mark)
        journal.apply([_without(changes, inner.locals) for changes in paths])
    return result


def _without(changes: Any, local: dict[str, Value]) -> Any:
    """Changes that outlive the call."""
    return {slot: change for slot, change in changes.items() if change[0] is not local}


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a generator; kept on the node, as the tree never changes."""
    known: bool | None = getattr(node, "yields", None)
    if known is None:
        known = _own_yields(node.body)
        node.yields = known  # type: ignore[union-attr]
    return known


def _own_yields(body: list[ast.stmt]) -> bool:
    """Whether a body yields by itself, not in a function within it."""
    todo: list[ast.AST] = list(body)
    for node in todo:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += children(node)
    return False


def _bind(
    machine: Machine, function: Function, args: list[Value], kwargs: dict[str, Value], inner: Frame
) -> dict[str, Value]:
    """Local variables at the start of a call."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    bound = Locals()
    spread = next((index for index, value in enumerate(args) if isinstance(value, Spread)), None)
    rest: Value | None = None
    if spread is not None:
        rest = args[spread].element  # type: ignore[attr-defined]
        args = [*args[:spread], *[value for value in args[spread + 1 :] if False]]
    for parameter, value in zip(positional, args, strict=False):
        bound[parameter.arg] = value
    extra = args[len(positional) :]
    if spec.vararg is not None:
        bound[spec.vararg.arg] = (
            Sequence("tuple", list(extra)) if rest is None else Sequence("tuple", None, rest)
        )
    names = {parameter.arg for parameter in (*spec.args, *spec.kwonlyargs)}
    others: dict[Any, Value] = {}
    open_kwargs = kwargs.get("**")
    for keyword, value in kwargs.items():
        if keyword == "**":
            continue
        if keyword in names:
            bound[keyword] = value
        else:
            others[keyword] = value
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = Mapping_(others, open_kwargs)
    offset = len(positional) - len(function.defaults)
    for index, parameter in enumerate(positional):
        if parameter.arg in bound:
            continue
        if rest is not None and index < len(positional):
            bound[parameter.arg] = rest
        elif index >= offset:
            default = function.defaults[index - offset]
            bound[parameter.arg] = taken_up(machine, default) if default is not None else Unknown("a default")
        else:
            bound[parameter.arg] = Unknown(f"the argument `{parameter.arg}` is not given")
    for parameter, default in zip(spec.kwonlyargs, function.kw_defaults, strict=False):
        if parameter.arg not in bound:
            bound[parameter.arg] = (
                taken_up(machine, default)
                if default is not None
                else Unknown(f"the argument `{parameter.arg}` is not given")
            )
    del inner
    return bound


def _memo_key(machine: Machine, function: Function, local: dict[str, Value]) -> Any:
    """A key under which the same call gives the same result and the same places; None where that is not sure."""
    if function.closure is not None:
        return None
    parts: list[Any] = [
        id(function.node),
        machine.version,
        machine.tracing,
        machine.without_gradients > 0,
        machine.autocast,
        machine.assumed > 0,
    ]
    for name, value in local.items():
        key = _key(value, 0)
        if key is None:
            return None
        parts.append((name, key))
    return tuple(parts)


def _key(value: Value, depth: int) -> Any:
    if isinstance(value, Tensor):
        # Which storage it is matters to no result.
        return (
            "tensor",
            value.origin,
            value.name,
            value.dtype,
            value.rank,
            value.unbacked,
            value.requires_grad,
            value.recast,
            value.dims,
        )
    if isinstance(value, (Const, Static, Shape, TensorScalar, Array, Unknown)):
        return value
    if isinstance(value, Instance):
        return value.fingerprint if value.fingerprint is not None else (id(value), value.stamp)
    if isinstance(value, (Function, ClassValue, Native)):
        return id(value)
    if isinstance(value, Named):
        return value.name
    if depth > 3:
        return None
    if isinstance(value, Sequence):
        if value.items is None:
            element = None if value.element is None else _key(value.element, depth + 1)
            return None if element is None else (value.kind, "*", element)
        if len(value.items) > 16:
            return None
        keys = [_key(item, depth + 1) for item in value.items]
        return None if None in keys else (value.kind, *keys)
    if isinstance(value, Mapping_):
        if len(value.items) > 16:
            return None
        rest = None if value.rest is None else _key(value.rest, depth + 1)
        pairs = [(key, _key(item, depth + 1)) for key, item in value.items.items()]
        if any(item is None for _, item in pairs) or (rest is None and value.rest is not None):
            return None
        return ("dict", tuple(pairs), rest)
    if isinstance(value, Choice):
        keys = [_key(option, depth + 1) for option in value.options]
        return None if None in keys else ("choice", *keys)
    if isinstance(value, Bound):
        receiver = _key(value.receiver, depth + 1)
        return None if receiver is None else (receiver, value.name)
    return None


def key_of(value: Value) -> Any:
    """What makes two values interchangeable; None where that cannot be told."""
    return _key(value, 0)


def fingerprint(maker: Any, args: list[Value], kwargs: Mapping[str, Value]) -> Any:
    """What tells apart the objects that one constructor makes; None where the arguments have no key."""
    keys = [_key(value, 0) for value in args]
    named = [(name, _key(value, 0)) for name, value in kwargs.items()]
    if None in keys or any(key is None for _, key in named):
        return None
    return (maker, *keys, *named)
