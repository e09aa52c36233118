"""Which steps of slices tell tracing too little: tensors, and numbers from data whose sign nothing tells."""

from __future__ import annotations

import ast

from exportlens.inference.places import ItemRead, ItemWrite, Place
from exportlens.inference.values import Sequence, Shape, Slice, Tensor, TensorScalar, Value, options
from exportlens.source.walking import walk

# What takes a number and tells tracing nothing about it.
TELLING_NOTHING = frozenset(
    {"item", "int", "float", "full", "full_like", "masked_fill", "masked_fill_", "fill_", "tensor", "print", "embedding", "enumerate",
     "zip", "min", "sym_min"}
)  # fmt: skip


def has_open_step(place: ItemRead | ItemWrite) -> bool:
    """Whether a slice has a step of which tracing cannot know enough: a tensor, or a number that was read out of one.

    Writing asks whether the step is one. Reading asks for its sign only, and that follows from a check, from `max(n, 1)`, or
    where the number was a size: a number that was read out and is only compared, computed with or an index has none that is known.
    """
    key, index = place.key, getattr(place.node, "slice", None)
    parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
    nodes = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(part, Slice)
        and (
            (part.step is not None and is_scalar_index(part.step))
            or (
                _is_open_number(part.step)
                and (
                    isinstance(place, ItemWrite)
                    or (isinstance(node, ast.Slice) and _is_read_out(node.step, place))
                )
            )
        )
        for part, node in zip(parts, nodes, strict=False)
    )


def is_number_step(place: ItemRead) -> bool:
    """Whether each step from data is a number that was read out, not a tensor."""
    parts = (
        place.key.items if isinstance(place.key, Sequence) and place.key.items is not None else [place.key]
    )
    steps = [part.step for part in parts if isinstance(part, Slice) and part.step is not None]
    return not any(map(is_scalar_index, steps))


def _is_read_out(step: ast.expr | None, place: Place) -> bool:
    """Whether `step` is `t.item()`, a name that is bound to that and of which nothing tells the sign, or a sum or product of one such."""
    if isinstance(step, ast.BinOp) and isinstance(step.op, (ast.Add, ast.Mult)):
        if not isinstance(step.right, ast.Constant):
            return isinstance(step.left, ast.Constant) and _is_read_out(step.right, place)
        return _is_read_out(step.left, place)
    if isinstance(step, ast.Name) and place.site.function is not None:
        function = place.site.function.node
        values = _bound_to(step.id, function)
        return len(values) == 1 and not _is_told(step.id, function) and _is_read_out(values[0], place)
    return isinstance(step, ast.Call) and isinstance(step.func, ast.Attribute) and step.func.attr == "item"


def _bound_to(name: str, function: ast.AST) -> list[ast.expr]:
    """What `function` binds `name` to; nothing where it does so by other than assignments to it alone."""
    nodes = list(walk(function))
    bindings = [each for each in nodes if isinstance(each, ast.Assign) and len(each.targets) == 1]
    found = [each.value for each in bindings if ast.unparse(each.targets[0]) == name]
    stored = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    return found if len(found) == sum(isinstance(each.ctx, ast.Store) for each in stored) else []


# What takes a number and tells tracing nothing about its sign (measured on torch 2.13).
_TELLING_NO_SIGN = TELLING_NOTHING | {"range", "cond", "select", "roll"}


def _is_told(name: str, function: ast.AST) -> bool:
    """Whether a call or an assertion in `function` takes what is computed with `name`, which may tell its sign to tracing."""

    def reads(node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id == name
        return any(reads(each) for each in ast.iter_child_nodes(node) if not isinstance(each, ast.Call))

    for each in walk(function):
        if isinstance(each, ast.Assert) and reads(each):
            return True
        if isinstance(each, ast.Call):
            called = each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func)
            given = [one for one in (*each.args, *each.keywords) if not isinstance(one, ast.Call)]
            if called not in _TELLING_NO_SIGN and any(reads(one) for one in given if not _picks(one)):
                return True
    return False


def _picks(node: ast.AST) -> bool:
    """Whether what is given to a call is a part of a tensor, whose indices the call does not see."""
    return isinstance(node, ast.Subscript)


def _is_open_number(step: Value | None) -> bool:
    """Whether the step of a slice is a number of Python that depends on tensor data."""
    return step is not None and all(
        (isinstance(option, TensorScalar) and option.type != "bool")
        or (isinstance(option, Shape) and option.unbacked)
        for option in options(step)
    )


def is_scalar_index(part: Value) -> bool:
    return all(
        isinstance(option, Tensor)
        and option.origin != "constant"
        and option.rank == 0
        and (option.dtype is None or option.dtype.startswith(("int", "uint")))
        for option in options(part)
    )
