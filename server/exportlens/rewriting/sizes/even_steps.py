"""`torch.linspace` by a number of steps that data tells: the same numbers by `torch.arange`, which takes such a number."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Tensor, TensorScalar, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.source.walking import walk

_NAMES = ("start", "end", "steps")
# What makes a step of the last digit, by which both differ, one of a whole number.
_ROUNDING = frozenset(
    {"long", "int", "short", "to", "type", "type_as", "floor", "ceil", "round", "trunc", "frac", "bool"}
    | {"fix", "floor_", "ceil_", "round_", "trunc_", "tolist", "item", "floor_divide", "fmod", "remainder"}
)


def steps_by_arange(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.linspace(a, b, n)` -> `torch.arange(n) * (b - a) / torch.sym_max(n - 1, 1) + a`, equal up to the last digit.

    Of a tensor `n` it is `torch.as_tensor(n - 1).clamp(min=1)` by which is divided.
    """
    try:
        draft, node = plain_call(place, context)
        given = dict(zip(_NAMES, node.args, strict=False))
        values: dict[str, Value] = dict(zip(_NAMES, place.args, strict=False))
        given |= {key.arg: key.value for key in node.keywords if key.arg is not None}
        values |= place.kwargs
        if len(node.args) > len(_NAMES) or not set(_NAMES) <= set(given) <= {*_NAMES, "device"}:
            raise Refused("which dtype the steps have is given, or how they are laid out")
        for each in ("start", "end"):
            if not all(_is_number(value) for value in options(values[each])):
                raise Refused(f"`{draft.source.of(given[each])}` is not known to be a number")
        steps = draft.source.of(given["steps"])
        if not _is_repeatable(given["steps"]):
            raise Refused(f"`{steps}` would be read twice: give it a name first")
        _refuse_rounded(draft, node)
        start, end = (_operand(draft.source.of(given[each]), given[each]) for each in ("start", "end"))
        device = f", device={draft.source.of(given['device'])}" if "device" in given else ""
        span = end if start == "0" else f"({end} - {start})"
        count = f"{_operand(steps, given['steps'])} - 1"
        last = f"{draft.torch}.sym_max({count}, 1)"
        if isinstance(values["steps"], Tensor):
            # `max(2, t)` is a number where that is the larger one.
            last = f"{draft.torch}.as_tensor({count}).clamp(min=1)"
        times = "" if span == "1" else f" * {span}"
        text = f"{draft.torch}.arange({steps}{device}){times} / {last}"
        text = f"({text})" if start == "0" else f"({text} + {start})"
        return draft.replace("Count with torch.arange", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _operand(text: str, node: ast.expr) -> str:
    return text if isinstance(node, (ast.Constant, ast.Name, ast.Attribute, ast.Subscript)) else primary(text)


def _is_number(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    return isinstance(value, TensorScalar) and value.type in ("int", "float")


def _is_repeatable(node: ast.expr) -> bool:
    """Whether a number is the same when it is read again: names, sizes, and what they add up to."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if isinstance(node, ast.BinOp):
        return _is_repeatable(node.left) and _is_repeatable(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        given = [*node.args, *(each.value for each in node.keywords)]
        return dotted(node.func) is not None and all(isinstance(each, ast.Constant) for each in given)
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
        and dotted(node.value) is not None
        and isinstance(node.slice, ast.Constant)
    )


def _refuse_rounded(draft: Draft, node: ast.Call) -> None:
    """Raise Refused where the steps, or a name that they are given, become whole numbers."""
    source = draft.source
    statement = source.enclosing_statement(node)
    names = {
        each.id for each in walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    function = source.enclosing_function(node)
    for each in walk(function if function is not None else source.tree):
        reads = any(one is node or (isinstance(one, ast.Name) and one.id in names) for one in ast.walk(each))
        called = (dotted(each.func) or "") if isinstance(each, ast.Call) else ""
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            called = each.func.attr
        whole = isinstance(each, ast.BinOp) and isinstance(each.op, (ast.FloorDiv, ast.Mod))
        if reads and (called in _ROUNDING or whole or isinstance(each, ast.Compare)):
            raise Refused(
                f"`{source.of(each)}` rounds or compares the steps, which torch.arange makes up to the last digit only"
            )
