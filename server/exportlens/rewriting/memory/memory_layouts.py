"""How the result of an operation lies in memory: in memory of its own, in another order, with gaps, or behind where the input
begins."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.inference.knowledge import Op
from exportlens.inference.values import Const
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kind import Kind


def out_of_place(op: Op, kinds: Mapping[str, object]) -> bool:
    """Whether an operation that writes its input where it is told to is not told so: it gives memory of its own.

    Dropout does not, it hands on its input outside of training.
    """
    if not op.mutates_when or any(each.name == "training" for each in op.params):
        return False
    told = kinds.get(op.mutates_when)
    return told is None or (
        isinstance(told, Kind) and isinstance(told.value, Const) and told.value.value is False
    )


# After these the dimensions of a tensor lie in memory in another order, or share it.
_MOVING = frozenset(
    {"t", "transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "adjoint", "expand", "expand_as", "broadcast_to"}
)  # fmt: skip
# These give a view, as it lies, wherever one is possible, and else a copy in order: of one dimension only a view in order is.
_VIEWED_OR_COPIED = frozenset({"reshape", "flatten", "reshape_as", "ravel"})
# What LAPACK computes lies by columns (measured on torch 2.13).
_BY_COLUMNS = frozenset(
    {"cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "eig", "eigh", "inv", "inv_ex", "inverse", "lstsq", "lu_solve",
     "matrix_power", "qr", "solve", "solve_ex", "solve_triangular", "svd", "tensorinv", "tensorsolve", "triangular_solve"}
)  # fmt: skip


def lies_otherwise(op: Op, rank: int | None, given: list[Kind]) -> bool:
    """Whether the dimensions of what the call gives may lie in memory in another order than they have."""
    name = op.name.rpartition(".")[2]
    if name == "einsum" or name in _BY_COLUMNS:
        return True
    if name in _MOVING:
        return rank is None or rank > 1
    keeps = (
        op.pointwise
        or bool(op.aliases)
        or name in ("where", "clone", "zeros_like", "ones_like", "empty_like")
    )
    if name == "contiguous" or (name in _VIEWED_OR_COPIED and rank == 1):
        return False
    return keeps and any(each.moved for each in given)


def asks_for(node: ast.Call, order: str) -> bool:
    """Whether the call asks for its result in this order in memory."""
    return any(
        each.arg == "memory_format" and (dotted(each.value) or "").rpartition(".")[2].startswith(order)
        for each in node.keywords
    )


# What gives a part of each row, where the dimension is not the first, and what does so at any.
_PARTS = frozenset({"select", "narrow", "chunk", "split", "tensor_split", "unbind"})
# What keeps the strides of a part where all that stands around it is of size 1, as in a batch of one (measured on torch 2.13).
_OF_ONE = frozenset(
    {"clone", "contiguous", "to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int", "bool", "short", "cpu",
     "cuda", "flip", "sort", "dropout", "nan_to_num", "hardtanh", "relu6", "prelu", "index_fill", "index_put", "pad"}
)  # fmt: skip
_GAPS = frozenset({"diagonal", "unfold", "expand", "expand_as", "broadcast_to"})


def leaves_gaps(op: Op, given: list[Kind], operands: Mapping[str, object] | None) -> bool:
    """Whether there may be gaps between the elements of what the call gives."""
    name = op.name.rpartition(".")[2]
    if any(each.parted for each in given) and (name in _OF_ONE or name.endswith(("_", "_like"))):
        return True
    if not op.aliases or name == "contiguous":
        return False
    if name in _GAPS or any(each.parted for each in given):
        return True
    dim = operands.get("dim") if operands is not None else None
    known = dim.value if isinstance(dim, Kind) else None
    return name in _PARTS and dim is not None and not (isinstance(known, Const) and known.value == 0)


def may_begin_later(op: Op, operands: Mapping[str, object] | None) -> bool:
    """Whether the call gives a part of what it is given that may not begin where that begins."""
    name = op.name.rpartition(".")[2]
    first = (operands or {}).get({"select": "index", "narrow": "start"}.get(name, ""))
    known = first.value if isinstance(first, Kind) else None
    return name in (*_PARTS, "diagonal") and not (isinstance(known, Const) and known.value == 0)


def squeezes_another(op: Op, node: ast.Call, receiver: Kind) -> bool:
    """Whether the call is `squeeze` of another dimension than the first."""
    if not op.name.endswith(".squeeze") or len(node.args) != 1 or receiver.rank is None:
        return False
    given = node.args[0]
    negative = isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.USub)
    dim = given.operand if isinstance(given, ast.UnaryOp) else given
    if not isinstance(dim, ast.Constant) or type(dim.value) is not int:
        return False
    return 0 < (receiver.rank - dim.value if negative else dim.value) < receiver.rank
