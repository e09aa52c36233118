"""Where tensors have sizes from data: `torch.zeros(3, n)` behind its first dimension, `torch.arange(n)` in the first alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.knowledge import lookup_function, lookup_method
from exportlens.inference.values import Instance, Tensor
from exportlens.rewriting.code.names import assigned_pairs
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.placed_views import handed_in
from exportlens.rewriting.sizes.no_rows import is_rowwise

_FIRST, LATER = 1, 2
# How many names and callers behind one another are followed.
_NAMES, _CALLERS = 30, 2
_SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn", "new_zeros", "new_ones", "new_empty"})
_FILLED = frozenset({"full", "new_full"})
_RANGES = frozenset({"arange", "range", "linspace", "logspace", "randperm"})
_RESIZED = frozenset({"expand", "view", "reshape", "repeat", "tile", "broadcast_to"})
_KEPT = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int", "bool", "clone", "detach", "contiguous", "cpu",
     "cuda", "where", "requires_grad_", "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "cumsum",
     "cumprod", "softmax", "log_softmax", "flip", "tril", "triu", "masked_fill", "fill_diagonal_"}
)  # fmt: skip
# Operators without a pole: what they give in vain harms no gradient.
_BY_CONSTANTS = (ast.Add, ast.Sub, ast.Mult)


class OpenShapes:
    """Where the sizes from data are that tensors of one function have."""

    def __init__(self, source: Source, kinds: Kinds, function: Function, depth: int = 0) -> None:
        self.source, self.kinds, self.function, self.depth = source, kinds, function, depth
        # What names were found to be: a name is asked for wherever it is read, and so are those that it was made of.
        self._known: dict[str, int] = {}
        self._circles: set[str] = set()
        self._callers: dict[Function, OpenShapes] = {}

    def opened(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> int:
        """LATER where a size behind the first comes from data, _FIRST where the first alone does, and 0 where nothing tells."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        found: int = method(node, seen) if method else 0
        value = self.kinds.of(node).value
        if isinstance(value, Tensor) and value.unbacked and value.open_dim is not None:
            # What it is here counts beside what the function makes of it elsewhere.
            return max(found, _FIRST if value.open_dim == 0 else LATER)
        return found

    def is_harmless(self, node: ast.expr) -> bool:
        """Whether `node` computes in vain at no cost and without harm to a gradient: by operators that know no pole, or of
        numbers that nothing is learned from."""
        operators = [each for each in ast.walk(node) if isinstance(each, ast.operator)]
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        if not all(self._is_pointwise(each) for each in calls):
            return False
        plain: tuple[type[ast.AST], ...] = (
            ast.BinOp,
            ast.UnaryOp,
            ast.Constant,
            ast.Name,
            ast.Attribute,
            ast.Compare,
            ast.Call,
            ast.keyword,
        )
        plain += (ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
        if not all(isinstance(each, plain) for each in ast.walk(node)):
            return False
        if not calls and all(isinstance(each, _BY_CONSTANTS) for each in operators):
            return True
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return all(self._learns_nothing(each, frozenset()) for each in names)

    def _learns_nothing(self, name: str, seen: frozenset[str]) -> bool:
        """Whether `name` is no tensor of floats, or made of nothing but sizes and numbers of Python."""
        if name in self.kinds.modules or name in seen:
            return True
        kind = self.kinds.of(ast.Name(name, ast.Load()))
        if kind.what in ("number", "size", "scalar", "static"):
            return True
        if kind.what == "tensor" and (kind.dtype or "").startswith(("int", "uint", "bool")):
            return True
        given = list(self._given(name))
        used = {
            each.id
            for value in given
            for each in ast.walk(value)
            if isinstance(each, ast.Name)
            if each.id != name
        }
        # What a size is made of has no gradient.
        sizes = {
            each.id
            for value in given
            for call in ast.walk(value)
            if isinstance(call, ast.Call) and _short(call) in _SIZED | _RANGES
            for one in call.args
            for each in ast.walk(one)
            if isinstance(each, ast.Name)
        }
        return bool(given) and all(self._learns_nothing(each, seen | {name}) for each in used - sizes)

    def _is_pointwise(self, node: ast.Call) -> bool:
        name = self.kinds.qualified(node.func)
        op = lookup_function(name) if name else None
        if op is None and name is None and isinstance(node.func, ast.Attribute):
            op = lookup_method(node.func.attr)
        return op is not None and op.pointwise and not op.name.endswith("_")

    def _given(self, name: str) -> Iterator[ast.expr]:
        """What `name` is bound to in the function."""
        for each in ast.walk(self.function):
            if not isinstance(each, (ast.Assign, ast.AnnAssign)):
                continue
            for target, value in assigned_pairs(each):
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if any(isinstance(one, ast.Name) and one.id == name for one in parts):
                    yield value

    def _from_data(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether `node` is a number from data, or a tensor that stands for one."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            return True
        if isinstance(node, ast.Name) and self.depth and node.id not in seen:
            return any(self._from_data(each, seen | {node.id}) for each in self._given(node.id))
        return self.kinds.of(node).what in ("scalar", "tensor")

    def _of_Name(self, node: ast.Name, seen: frozenset[str]) -> int:
        if node.id in self._known:
            return self._known[node.id]
        if node.id in seen or len(seen) > _NAMES:
            self._circles.add(node.id)
            return 0
        inner = seen | {node.id}
        found = [self.opened(each, inner) for each in self._given(node.id)]
        if self.depth <= _CALLERS:
            for each, caller in handed_in(node.id, self.function, self.source):
                if caller not in self._callers:
                    self._callers[caller] = OpenShapes(self.source, self.kinds, caller, self.depth + 1)
                found.append(self._callers[caller].opened(each))
        result = max(found, default=0)
        self._circles.discard(node.id)
        # Inside of a circle of names not all of it was seen, but for whether anything is open.
        if result == LATER or not self._circles & seen:
            self._known[node.id] = result
        return result

    def _of_Attribute(self, node: ast.Attribute, seen: frozenset[str]) -> int:
        found = self.opened(node.value, seen) if node.attr in ("T", "mT", "data", "real", "imag") else 0
        return LATER if found and node.attr in ("T", "mT") else found

    def _of_Subscript(self, node: ast.Subscript, seen: frozenset[str]) -> int:
        found = self.opened(node.value, seen)
        place = 0
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for each in parts:
            if isinstance(each, ast.Constant) and each.value is Ellipsis:
                place += self._left_out(node, parts)
            elif isinstance(each, ast.Constant) and each.value is None:
                if place == 0 and found == _FIRST:
                    return LATER
                place += 1
            elif isinstance(each, ast.Slice):
                ends = [one for one in (each.lower, each.upper) if one is not None]
                if any(map(self._from_data, ends)):
                    found = max(found, LATER if place else _FIRST)
                place += 1
            elif self.kinds.of(each).dtype == "bool" or self.opened(each, seen) == _FIRST:
                found = max(found, LATER if place else _FIRST)
                place += 1
            elif place == 0 and found == _FIRST:
                return 0
        return found

    def _left_out(self, node: ast.Subscript, parts: list[ast.expr]) -> int:
        """How many dimensions `...` stands for in the index `parts`: one where that is not known, as few write it for none."""
        rank = self.kinds.of(node.value).rank
        told = [
            each
            for each in parts
            if not (isinstance(each, ast.Constant) and (each.value is None or each.value is Ellipsis))
        ]
        return 1 if rank is None else max(rank - len(told), 0)

    def _of_UnaryOp(self, node: ast.UnaryOp, seen: frozenset[str]) -> int:
        return self.opened(node.operand, seen)

    def _of_BinOp(self, node: ast.BinOp, seen: frozenset[str]) -> int:
        found = [self.opened(each, seen) for each in (node.left, node.right)]
        if isinstance(node.op, ast.MatMult):
            return LATER if found[1] == LATER else found[0]
        ranks = [self.kinds.of(each).rank for each in (node.left, node.right)]
        spread = ranks[0] is not None and ranks[1] is not None and ranks[0] != ranks[1]
        if spread and any(
            each == _FIRST and rank != max(one or 0 for one in ranks)
            for each, rank in zip(found, ranks, strict=True)
        ):
            return LATER
        return max(found)

    def _of_Compare(self, node: ast.Compare, seen: frozenset[str]) -> int:
        return max(self.opened(each, seen) for each in (node.left, *node.comparators))

    def _of_IfExp(self, node: ast.IfExp, seen: frozenset[str]) -> int:
        return max(self.opened(each, seen) for each in (node.body, node.orelse))

    def _of_Call(self, node: ast.Call, seen: frozenset[str]) -> int:
        short, named = _short(node), self.kinds.qualified(node.func)
        is_method = named is None and isinstance(node.func, ast.Attribute)
        owner = node.func.value if is_method and isinstance(node.func, ast.Attribute) else None
        operands = ([owner] if owner is not None else []) + list(node.args)
        if named is not None and not named.startswith("torch."):
            return 0
        layer = self.kinds.of(node.func).value if named is None else None
        if isinstance(layer, Instance) and is_rowwise(layer):
            return self.opened(node.args[0], seen) if node.args else 0
        if short in _SIZED or short in _FILLED:
            return self._sized(node.args[:1] if short in _FILLED else node.args)
        if short in _RANGES:
            return _FIRST if any(map(self._from_data, node.args)) else 0
        if short == "eye":
            return LATER if any(map(self._from_data, node.args)) else 0
        if short in ("meshgrid", "outer", "cartesian_prod"):
            parts = [
                one
                for each in operands
                for one in (each.elts if isinstance(each, (ast.List, ast.Tuple)) else [each])
            ]
            opened = any(self.opened(each, seen) for each in parts)
            return (_FIRST if short == "cartesian_prod" else LATER) if opened else 0
        if not operands:
            return 0
        found = self.opened(operands[0], seen)
        if short == "unsqueeze" and found == _FIRST:
            place = operands[1] if len(operands) > 1 else None
            return LATER if isinstance(place, ast.Constant) and place.value == 0 else _FIRST
        if short in ("t", "transpose", "permute", "swapaxes") and found:
            return LATER
        if short in _RESIZED:
            return max(found, self._sized(operands[1:]))
        if short in ("narrow", "index_select") and len(operands) > 2:
            dim = operands[1]
            open_rows = (
                self.opened(operands[2], seen) > 0
                if short == "index_select"
                else any(map(self._from_data, operands[3:]))
            )
            first = isinstance(dim, ast.Constant) and dim.value == 0
            return max(found, (_FIRST if first else LATER) if open_rows else 0)
        if short in _KEPT or self._is_pointwise(node):
            return max([found, *(self.opened(each, seen) for each in operands[1:])])
        return 0

    def _sized(self, sizes: list[ast.expr]) -> int:
        """What a tensor of these sizes is."""
        if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
            sizes = sizes[0].elts
        data = [self._from_data(each) for each in sizes]
        return LATER if any(data[1:]) else _FIRST if any(data) else 0


def _short(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
