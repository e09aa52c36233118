"""Tensors where torch's functions take numbers: the same value by functions that take tensors.

`x.clamp(0, t)` -> `x.clamp(min=0).clamp(max=t)`: of one bound torch takes a tensor, and where the lower bound is above the
upper one both give the upper one. `torch.full_like(x, t)` -> `torch.empty_like(x).fill_(t)`. A number has no gradient, so
that a tensor in its place is detached.

Where torch asks which number it is given, one from data is handed to the function's kin that takes tensors:
`torch.quantile(x, n)` -> `torch.quantile(x, x.new_full((), n))`, `torch.nan_to_num(x, nan=n)` ->
`torch.nan_to_num(x).masked_fill(x.isnan(), n)`.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Static, Tensor, TensorScalar, Value
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.sizes.numbers_read_out import may_be_number

_FOR_THE_USER = (
    "how the number is to be computed with tensors is for you to say: a product, a `torch.where`, a constant"
)
_EMPTY = {"full_like": "empty_like", "new_full": "new_empty"}


def tensors_for_numbers(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The call by functions that take tensors."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused("the arguments are not written in the call")
        if any(each.arg is None for each in node.keywords):
            raise Refused("the arguments are not written in the call")
        name = place.name.rpartition(".")[2]
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if called != name:
            raise Refused(f"the function is called by another name than `{name}`")
        if name in _EMPTY:
            text = _filled(draft, node, place, name)
        elif name.rstrip("_") in ("clamp", "clip"):
            text = _bounded(draft, node, place)
        elif name in ("fake_quantize_per_tensor_affine", "quantile", "nanquantile"):
            text = _of_tensors(draft, node, place, name)
        elif name == "nan_to_num":
            text = _without_nan(draft, node, place)
        else:
            raise Refused(_FOR_THE_USER)
        return draft.replace("Use tensors only", [draft.source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _argument(node: ast.Call, position: int, keyword: str) -> ast.expr | None:
    named = {each.arg: each.value for each in node.keywords}
    return named.get(keyword) or (node.args[position] if position < len(node.args) else None)


def _bounded(draft: Draft, node: ast.Call, place: Call) -> str:
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    if {each.arg for each in node.keywords} - {"min", "max", "input"}:
        raise Refused("the call is given more than its bounds")
    bounds = [
        (name, _argument(node, at - shift, name), place.argument(at - shift, name))
        for at, name in ((1, "min"), (2, "max"))
    ]
    low, high = (
        f"{name}={_as_number(draft, each, value)}" for name, each, value in bounds if each is not None
    )
    function = draft.source.of(node.func)
    if shift:
        return f"{function}({low}).{place.name.rpartition('.')[2]}({high})"
    given = _argument(node, 0, "input")
    if given is None:
        raise Refused("what is bounded is not written in the call")
    return f"{function}({function}({draft.source.of(given)}, {low}), {high})"


def _without_nan(draft: Draft, node: ast.Call, place: Call) -> str:
    """`torch.nan_to_num(x).masked_fill(x.isnan(), n)` for `torch.nan_to_num(x, nan=n)`."""
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    owner = node.func.value if shift and isinstance(node.func, ast.Attribute) else _argument(node, 0, "input")
    value = _argument(node, 1 - shift, "nan")
    if owner is None or value is None or len(node.args) > 2 - shift:
        raise Refused("what stands for NaN is not written in the call")
    for at, keyword in ((2, "posinf"), (3, "neginf")):
        given = place.argument(at - shift, keyword)
        if given is not None and not isinstance(given, (Const, Static)):
            raise Refused(f"`{keyword}` is read out of tensor data as well")
    if not _is_picked_from_name(owner):
        raise Refused("the tensor that the call works on has no name: give it one before the call")
    others = [draft.source.of(each) for each in node.args if each is not value]
    others += [
        f"{each.arg}={draft.source.of(each.value)}" for each in node.keywords if each.value is not value
    ]
    number = _as_number(draft, value, place.argument(1 - shift, "nan"))
    text = primary(draft.source.of(owner))
    return f"{draft.source.of(node.func)}({', '.join(others)}).masked_fill({text}.isnan(), {number})"


def _is_picked_from_name(node: ast.expr) -> bool:
    """Whether `node` is a name, an attribute, or what numbers, names and slices pick from one."""
    while isinstance(node, ast.Subscript):
        if not all(
            isinstance(
                each,
                (ast.Constant, ast.Name, ast.Slice, ast.Tuple, ast.UnaryOp, ast.expr_context, ast.unaryop),
            )
            for each in ast.walk(node.slice)
        ):
            return False
        node = node.value
    return dotted(node) is not None


def _filled(draft: Draft, node: ast.Call, place: Call, name: str) -> str:
    value = _argument(node, 1, "fill_value")
    if value is None:
        raise Refused("the number is not written in the call")
    if any(each.arg == "requires_grad" and not _is_false(each.value) for each in node.keywords):
        raise Refused("what requires gradients is not filled in place")
    others = [draft.source.of(each) for each in node.args if each is not value]
    others += [
        f"{each.arg}={draft.source.of(each.value)}" for each in node.keywords if each.value is not value
    ]
    function = draft.source.of(node.func).removesuffix(name) + _EMPTY[name]
    number = _as_number(draft, value, place.argument(1, "fill_value"))
    return f"{function}({', '.join(others)}).fill_({number})"


def _of_tensors(draft: Draft, node: ast.Call, place: Call, name: str) -> str:
    """The call with tensors for its numbers: torch makes the same ones of numbers."""
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    owner = node.func.value if shift and isinstance(node.func, ast.Attribute) else _argument(node, 0, "input")
    if owner is None or dotted(owner) is None:
        # It would be computed twice.
        raise Refused("the tensor that the call works on has no name: give it one before the call")
    dtypes = {"scale": "float", "zero_point": "int"} if name.startswith("fake") else {"q": ""}
    texts: dict[ast.expr, str] = {}
    for at, (keyword, dtype) in enumerate(dtypes.items(), start=1 - shift):
        given, value = _argument(node, at, keyword), place.argument(at, keyword)
        if given is None or not (
            isinstance(value, TensorScalar)
            or (isinstance(value, Const) and type(value.value) in (int, float))
            or (isinstance(value, Static) and value.type in ("int", "float"))
        ):
            raise Refused(f"`{keyword}` is not known to be one number")
        typed = f", dtype={draft.torch}.{dtype}" if dtype else ""
        texts[given] = f"{draft.source.of(owner)}.new_full((), {draft.source.of(given)}{typed})"
    parts = [texts.get(each) or draft.source.of(each) for each in node.args]
    parts += [f"{each.arg}={texts.get(each.value) or draft.source.of(each.value)}" for each in node.keywords]
    return f"{draft.source.of(node.func)}({', '.join(parts)})"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _as_number(draft: Draft, node: ast.expr, value: Value | None) -> str:
    """The text of a bound: of a tensor without dimensions and without gradients, as the number would be."""
    text = draft.source.of(node)
    if not isinstance(value, Tensor):
        return text
    if may_be_number(draft, node):
        # Another call of the function may give a number.
        if value.rank != 0:
            raise Refused(f"`{text}` may be a number or a tensor, and is not known to have no dimensions")
        return text
    if value.origin not in ("buffer", "attribute") and value.requires_grad is not False:
        text = f"{primary(text)}.detach()"
    return text if value.rank == 0 else f"{primary(text)}.reshape(())"
