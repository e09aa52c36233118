"""The place of a number from data among sorted constants, and whether such a number is close to zero.

bisect.bisect_right(EDGES, t.item())        ->    torch.bucketize(t.double(), torch.tensor(EDGES, ...), right=True).item()
math.isclose(n, 0.0, abs_tol=1e-6)          ->    (abs(n) <= 1e-6)
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Sequence, Shape, Tensor, TensorScalar, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.numbers.python_numbers import is_item

BISECTING = frozenset({"bisect.bisect", "bisect.bisect_left", "bisect.bisect_right"})


def bucketized(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The fix that lets torch.bucketize find where a number belongs among constants."""
    try:
        draft, node = plain_call(place, context)
        if len(node.args) != 2 or node.keywords:
            raise Refused(
                "a part of the list is searched, or by a key: cut the list before, and search for the number itself"
            )
        edges, value = place.args
        whole = _whole(edges)
        if whole is None:
            raise Refused(
                f"`{draft.source.of(node.args[0])}` is not known to be a list of sorted numbers: write it as constants"
            )
        number = _searched(draft, node.args[1], value)
        ints = whole and number[1] == "int"
        right = not place.name.endswith("_left")
        if number[1] != "int" and not right:
            # Of nan, bisect_left says 0, and torch the number of edges.
            text = f"({_edges(draft, node, ints)} < {number[0]}).sum().item()"
        else:
            side = ", right=True" if right else ""
            text = f"{draft.torch}.bucketize({_as(draft, number, ints)}, {_edges(draft, node, ints)}{side}).item()"
        return draft.replace(f"Use `{draft.torch}.bucketize`", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _edges(draft: Draft, node: ast.Call, ints: bool) -> str:
    return f"{draft.torch}.tensor({draft.source.of(node.args[0])}, dtype={draft.torch}.{'int64' if ints else 'float64'})"


def _as(draft: Draft, number: tuple[str, str], ints: bool) -> str:
    """The tensor `number`, of the dtype that the edges have."""
    text, kind = number
    return text if ints or kind != "int" else f"{primary(text)}.double()"


def _whole(edges: Value) -> bool | None:
    """Whether all of the sorted numbers are ints, None where they are no constants in order."""
    if not isinstance(edges, Sequence) or not edges.items or edges.kind not in ("list", "tuple"):
        return None
    numbers: list[float] = []
    for each in edges.items:
        number = each.value if isinstance(each, Const) else None
        if not isinstance(number, (int, float)) or type(number) is bool or number != number:
            return None
        numbers.append(number)
    if any(type(each) is int and abs(each) >= 2**53 for each in numbers) or numbers != sorted(numbers):
        return None
    return all(type(each) is int for each in numbers)


def _searched(draft: Draft, node: ast.expr, value: Value) -> tuple[str, str]:
    """The text of `node` as a tensor without dimensions, of int64 or float64, and its type. Raises Refused."""
    text, found = draft.source.of(node), list(options(value))
    if all(isinstance(each, Tensor) and each.rank == 0 for each in found):
        return _of_tensor(text, found)
    kinds = {each.type for each in found if isinstance(each, (TensorScalar, Shape))}
    if not all(isinstance(each, (TensorScalar, Shape)) for each in found):
        raise Refused(f"`{text}` is not known to be a number from data on each way")
    kind = kinds.pop() if len(kinds) == 1 else ""
    called = isinstance(node, ast.Call) and not node.keywords
    if kind == "float" and isinstance(node, ast.Call) and called and is_item(node) and not node.args:
        assert isinstance(node.func, ast.Attribute)
        owner = draft.source.of(node.func.value)
        return (owner if owner.endswith(".double()") else f"{primary(owner)}.double()"), kind
    if (
        kind == "float"
        and isinstance(node, ast.Call)
        and called
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
        and len(node.args) == 1
        and isinstance(node.args[0], (ast.Name, ast.Attribute, ast.Subscript))
    ):
        return f"{draft.torch}.as_tensor({draft.source.of(node.args[0])}).double().reshape(())", kind
    # No int is rounded to the other side of an edge, all of which doubles tell apart from the next whole number.
    dtype = "int64" if kind == "int" else "float64"
    return f"{draft.torch}.full((), {text}, dtype={draft.torch}.{dtype})", kind


def _of_tensor(text: str, found: list[Value]) -> tuple[str, str]:
    dtypes = {each.dtype or "" for each in found if isinstance(each, Tensor)}
    if all(each.startswith(("int", "uint")) for each in dtypes):
        return f"{primary(text)}.long()", "int"
    if all(each.startswith(("float", "bfloat")) for each in dtypes):
        # A tensor is compared in its own dtype, in which an edge may be another number.
        raise Refused(f"`{text}` is compared in the dtype of the tensor: read the number with `.item()`")
    raise Refused(f"of what dtype `{text}` is is not known: read the number with `.item()`")


def close_to_zero(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The fix that compares a number with the tolerance, where it is asked whether it is close to zero: no relative one holds there."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or len(node.args) != 2:
            raise Refused("the two numbers are not written one after the other")
        given = {each.arg: each.value for each in node.keywords}
        tolerance, relative = given.get("abs_tol"), given.get("rel_tol")
        if relative is not None and not _is_small(relative):
            raise Refused("the relative tolerance is not known to be below 1")
        zero = next((at for at, each in enumerate(place.args[:2]) if _is_zero(each)), None)
        if zero is None:
            raise Refused(
                "`math.isclose` takes the larger of the two tolerances, and `torch.isclose` their sum: write the comparison that is meant"
            )
        other = place.args[1 - zero]
        if not all(isinstance(each, TensorScalar) and each.type != "complex" for each in options(other)):
            raise Refused(f"`{draft.source.of(node.args[1 - zero])}` is not known to be a number from data")
        text = draft.source.of(node.args[1 - zero])
        bound = "0.0" if tolerance is None else draft.source.of(tolerance)
        if tolerance is not None and not isinstance(tolerance, (ast.Constant, ast.Name, ast.Attribute)):
            bound = f"({bound})"
        text = f"abs({text}) <= {bound}"
        if not _holds(draft, node):
            text = f"({text})"
        return draft.replace("Compare with the tolerance", [draft.source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _holds(draft: Draft, node: ast.expr) -> bool:
    """Whether what is around `node` takes a comparison without brackets."""
    parent = draft.source.parents[node]
    return isinstance(parent, (ast.stmt, ast.BoolOp)) or (
        isinstance(parent, ast.Call) and parent.func is not node
    )


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) in (int, float) and value.value == 0


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and 0 <= node.value < 0.5
