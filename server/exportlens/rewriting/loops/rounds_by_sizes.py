"""Loops in what an arm calls, over tensors as long as data says: `for k in range(1, len(steps))`, `steps` being `torch.arange(n)`.

Where the size is lost on the way, as beside a tensor of unknown rank, no rule finds such a loop. torch.cond compiles its arms in eager
too, and raises there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.inference.op_results import MADE_IN_A_SIZE
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.function_kinds import own_function
from exportlens.rewriting.kinds.kind import SEVERAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.source.walking import walk

_MAKING = MADE_IN_A_SIZE | {"linspace", "logspace"}
# What gives a size of its own, or a number.
_REDUCING = frozenset(
    {"sum", "mean", "max", "min", "amax", "amin", "any", "all", "norm", "std", "var", "item", "size", "dim", "numel", "prod", "len",
     "while_loop", "scan", "searchsorted", "select", "int", "float", "bool"}
)  # fmt: skip


def refuse_rounds_by_sizes(statements: Sequence[ast.stmt], kinds: Kinds) -> None:
    """Raise Refused where `statements`, or what they call, go through as many rounds as a tensor is long that was made in a size from data."""
    _Sizes(set(), frozenset()).follow(statements, kinds.copy())


class _Sizes:
    """Follows `names`, which hold tensors as long as data says, through the statements of a function; `around` are those that
    are being followed."""

    def __init__(self, names: set[str], around: frozenset[Function]) -> None:
        self.names, self.around = names, around
        self.returns = False

    def follow(self, statements: Sequence[ast.stmt], kinds: Kinds) -> None:
        visit(statements, kinds, self._see)

    def _see(self, node: ast.stmt, kinds: Kinds) -> None:
        if isinstance(node, ast.For) and self._counts(node.iter, kinds):
            raise Refused(
                f"`for {ast.unparse(node.target)} in {ast.unparse(node.iter)}` has as many rounds as data says"
            )
        value = getattr(node, "value", None)
        if not isinstance(value, ast.expr):
            return
        open_ = self._is_open(value, kinds)
        if isinstance(node, ast.Return):
            self.returns = self.returns or open_
        elif open_:
            self.names |= set(bound([node]))
        elif isinstance(node, ast.Assign):
            self.names -= set(bound([node]))

    def _counts(self, node: ast.expr, kinds: Kinds) -> bool:
        """Whether a loop over `node` has a round for each element of a tensor that is as long as data says."""
        if not isinstance(node, ast.Call):
            return self._is_open(node, kinds)
        if not isinstance(node.func, ast.Name):
            return False
        if node.func.id in ("enumerate", "reversed", "zip"):
            return any(self._counts(each, kinds) for each in node.args)
        sizes = [each for given in node.args for each in walk(given)] if node.func.id == "range" else []
        return any(
            (
                isinstance(each, ast.Call)
                and ast.unparse(each.func) == "len"
                and self._any_open(each.args, kinds)
            )
            or (isinstance(each, ast.Attribute) and each.attr == "shape" and self._is_open(each.value, kinds))
            for each in sizes
        )

    def _any_open(self, nodes: Sequence[ast.expr], kinds: Kinds) -> bool:
        return any(self._is_open(each, kinds) for each in nodes)

    def _is_open(self, node: ast.expr, kinds: Kinds) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.BinOp):
            return self._any_open([node.left, node.right], kinds)
        if isinstance(node, ast.UnaryOp):
            return self._is_open(node.operand, kinds)
        if isinstance(node, ast.Subscript):
            first = (
                node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            )
            return isinstance(first, ast.Slice) and self._is_open(node.value, kinds)
        if not isinstance(node, ast.Call):
            return False
        given = [*node.args, *(each.value for each in node.keywords)]
        helper = own_function(kinds, node)
        if helper is None and isinstance(node.func, ast.Name):
            helper = kinds.arms.get(node.func.id)
        if helper is not None:
            return self._calls(helper, node, kinds)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in _MAKING and isinstance(node.func, ast.Attribute):
            return any(_is_number_of_data(kinds.of(each)) for each in _sizes(last, node))
        if last in _REDUCING:
            return False
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return self._any_open([*receiver, *given], kinds)

    def _calls(self, helper: ast.FunctionDef, node: ast.Call, kinds: Kinds) -> bool:
        if helper in self.around:
            return False
        inside = kinds.inside_of(helper)
        names = [each.arg for each in arguments(helper.args)]
        if names[:1] == ["self"]:
            inside.names["self"] = (
                kinds.of(node.func.value) if isinstance(node.func, ast.Attribute) else Kind("object")
            )
            names = names[1:]
        given = dict(zip(names, node.args, strict=False)) | {
            each.arg: each.value for each in node.keywords if each.arg
        }
        inside.names |= {name: kinds.of(value) for name, value in given.items()}
        held = {name for name, value in given.items() if self._is_open(value, kinds)}
        followed = _Sizes(held, self.around | {helper})
        followed.follow(helper.body, inside)
        return followed.returns


def _sizes(name: str, call: ast.Call) -> list[ast.expr]:
    """What tells `torch.zeros` and the like how large to make the tensor."""
    named = [each.value for each in call.keywords if each.arg in ("size", "end", "steps", "n")]
    given = list(call.args)
    if name in ("linspace", "logspace"):
        given = given[2:3]
    elif name in ("full", "new_full"):
        given = given[:1]
    elif name == "randint":
        given = [each for each in given if isinstance(each, (ast.Tuple, ast.List))]
    flat = (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each] for each in [*given, *named])
    return [size for sizes in flat for size in sizes]


def _is_number_of_data(kind: Kind) -> bool:
    if kind.type == SEVERAL:
        # `max(2, t.int())`
        return any(map(_is_number_of_data, kind.items or ()))
    if kind.what == "tensor":
        return kind.rank in (0, None) and (kind.dtype or "int").startswith("int")
    return kind.what == "scalar" and kind.type in ("int", "")
