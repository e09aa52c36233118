"""`torch.diff` along a size that data tells: the same by slices, which torch takes of any size (measured with torch 2.13)."""

from __future__ import annotations

import ast
import itertools

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Tensor, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.names import dotted

_BINDING_NOTHING = (ast.comprehension, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def differences_by_slices(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.diff(x)` -> `(x[1:] - x[:-1])`."""
    try:
        draft, node = plain_call(place, context)
        value = place.receiver if place.name.startswith("torch.Tensor.") else place.argument(0, "input")
        given, rest = _given(node, place)
        dim = _dim(node, rest, place)
        kinds = [each for each in options(value) if isinstance(each, Tensor)] if value is not None else []
        text = draft.source.of(given)
        dtypes = {each.dtype == "bool" for each in kinds if each.dtype is not None}
        if not kinds or None in {each.dtype for each in kinds} or len(dtypes) != 1:
            raise Refused(
                f"whether `{text}` holds bools, of which torch asks whether they differ, is not known"
            )
        ranks = {each.rank for each in kinds}
        before = "" if ranks == {1} else "..., " if dim == -1 else ":, " * dim
        sign = "!=" if dtypes == {True} else "-"
        first, again = _twice(draft, given, text)
        made = f"({first}[{before}1:] {sign} {again}[{before}:-1])"
        return draft.replace("Subtract slices", [draft.source.swap(node, made)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _given(node: ast.Call, place: Call) -> tuple[ast.expr, list[ast.expr]]:
    """What the call takes differences of, and what else it is given in order."""
    if place.name.startswith("torch.Tensor."):
        assert isinstance(node.func, ast.Attribute)
        return node.func.value, node.args
    if node.args:
        return node.args[0], node.args[1:]
    raise Refused("what differences are taken of has a name in the call")


def _dim(node: ast.Call, rest: list[ast.expr], place: Call) -> int:
    shift = 0 if place.name.startswith("torch.Tensor.") else 1
    n, dim = place.argument(shift, "n"), place.argument(shift + 1, "dim")
    if len(rest) > 2 or not {key.arg for key in node.keywords} <= {"n", "dim"} or not _is(n, 1):
        raise Refused("differences are taken several times, or of more than the tensor")
    value = -1 if dim is None else dim.value if isinstance(dim, Const) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < -1:
        raise Refused("along which dimension differences are taken is not written out")
    return value


def _is(value: Value | None, number: int) -> bool:
    return value is None or (isinstance(value, Const) and value.value == number)


def _twice(draft: Draft, node: ast.expr, text: str) -> tuple[str, str]:
    """The text of the tensor where it is computed, and where it is read again."""
    if dotted(node) is not None:
        return text, text
    if any(isinstance(each, _BINDING_NOTHING) for each in draft.source.ancestors(node)):
        raise Refused(f"`{text}` would be computed twice: give it a name first")
    taken = draft.taken(draft.source.tree)
    name = next(name for number in itertools.count() if (name := f"steps{number or ''}") not in taken)
    return f"({name} := {text})", name
