"""Tensors that one arm turns around by sizes and the other leaves as they are: `y = y.reshape(-1).view(n, k)`.

Measured on torch 2.13: non-strict tracing gives an arm the sizes of tensors as symbols. What it computes of them, `(s0*s1)//4`, is
not known to be the size that the other arm gives, and torch.cond raises. What is copied into a tensor that is made like the one
from before the branch has its sizes, and lies in memory as it does.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.inference.values import ClassValue, Instance, Named
from exportlens.rewriting.code.names import bound, dotted, fresh
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.function_kinds import own_function
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.outside_writes import Arm
from exportlens.source.walking import walk


def shaped_as_before(
    arm: Arm, other: Arm, name: str, ends: tuple[Kind, Kind], kinds: Kinds, torch: str, taken: set[str]
) -> str | None:
    """The text of the output `name` of `arm` in the shape that `name` has before the branch, which `other` keeps; None where the
    arm computes no shape. `ends` are what `name` is at the ends of the two."""
    before = kinds.names.get(name)
    given, kept = ends
    if before is None or {before.what, given.what, kept.what} != {"tensor"}:
        return None
    rank = before.rank if given.rank is None else given.rank
    if rank is None or rank < 2:
        # One size alone is told by the number of elements.
        return None
    if not _keeps(name, other.statements, kinds) or name not in _reshaped(arm.statements, kinds):
        return None
    old = fresh(f"old_{name}", taken)
    arm.first_lines.append(f"{old} = {name}")
    if name in bound(arm.statements) and name not in arm.parameters:
        # Else the arm would know only its own.
        arm.parameters.append(name)
    arm.last_lines.append(f"{torch}._check({name}.shape == {old}.shape)")
    options = [old]
    if given.dtype is None or given.dtype != before.dtype or given.dtype in ("float", "int"):
        options.append(f"dtype={name}.dtype")
    if kept.moved or kept.parted:
        options.append(f"memory_format={torch}.contiguous_format")
    return f"{torch}.empty_like({', '.join(options)}).copy_({name})"


def _keeps(name: str, statements: Sequence[ast.stmt], kinds: Kinds) -> bool:
    """Whether `name` has the shape at the end of `statements` that it has before: it stays, or is computed with numbers."""
    if name not in bound(statements):
        return True
    stores = [
        each
        for statement in statements
        for each in walk(statement)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    values = [
        each.value
        for each in statements
        if isinstance(each, ast.Assign) and [dotted(target) for target in each.targets] == [name]
    ]
    return len(stores) == len(values) and all(_is_elementwise(each, name, kinds) for each in values)


def _is_elementwise(node: ast.expr, name: str, kinds: Kinds) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.UnaryOp):
        return _is_elementwise(node.operand, name, kinds)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
        tensors = [each for each in sides if kinds.of(each).what not in ("number", "size", "scalar")]
        return len(tensors) == 1 and _is_elementwise(tensors[0], name, kinds)
    return False


def _reshaped(statements: Sequence[ast.stmt], kinds: Kinds) -> set[str]:
    """The names that `statements` bind to what has sizes that they compute."""
    found: set[str] = set()
    for statement in statements:
        for each in walk(statement):
            if isinstance(each, ast.Assign) and any(
                (isinstance(node, ast.Call) and _resizes(node, kinds, frozenset()))
                or (isinstance(node, ast.Name) and node.id in found)
                for node in walk(each.value)
            ):
                found |= set(bound([each]))
    return found


def _resizes(call: ast.Call, kinds: Kinds, seen: frozenset[Function]) -> bool:
    """Whether `call` computes sizes of those that it is given."""
    if _called(call) in _RESHAPES:
        return True
    helper = own_function(kinds, call)
    if helper is not None:
        return helper not in seen and any(
            isinstance(each, ast.Call) and _resizes(each, kinds, seen | {helper}) for each in walk(helper)
        )
    module = kinds.of(call.func).value
    if not isinstance(module, Instance):
        return False
    if isinstance(module.cls, Named):
        last = module.cls.name.rpartition(".")[2]
        return module.cls.name.startswith("torch.nn.") and any(part in last for part in _LAYERS)
    return isinstance(module.cls, ClassValue)


def _called(call: ast.Call) -> str:
    """The last part of the name of what `call` calls."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else (dotted(call.func) or "")


_RESHAPES = frozenset(
    {"view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "unflatten", "unfold", "fold", "interpolate", "upsample",
     "pixel_shuffle", "pixel_unshuffle", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"}
)  # fmt: skip
# Parts of the names of layers that change sizes, or run others.
_LAYERS = (
    "Sequential",
    "Pool",
    "Upsampl",
    "PixelShuffle",
    "PixelUnshuffle",
    "Fold",
    "Unfold",
    "ConvTranspose",
    "latten",
)
