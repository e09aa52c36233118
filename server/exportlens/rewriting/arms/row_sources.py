"""From which tensors outside an arm has its rows: what is picked, computed row by row, and cut."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from exportlens.rewriting.arms.shared_masks import found_by
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# What these give has as many rows as something else, or none that data tells.
_REDUCING = frozenset(
    {
        "sum",
        "mean",
        "max",
        "min",
        "std",
        "var",
        "norm",
        "any",
        "all",
        "prod",
        "median",
        "size",
        "numel",
        "item",
    }
)
_CUTTING = frozenset(
    {"narrow", "unfold", "chunk", "split", "view", "reshape", "flatten", "nonzero", "unique", "masked_select", "diff", "t", "transpose",
     "permute"}
)  # fmt: skip


def written_index(index: ast.expr) -> int | None:
    """How many rows there must be for a row by this number, written out."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    try:
        number = ast.literal_eval(first)
    except ValueError:
        return None
    return None if type(number) is not int else -number if number < 0 else number + 1


def _keeps_rows(call: ast.Call) -> bool:
    """Whether `call` is `rows.reshape(rows.shape[0], ...)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("view", "reshape"):
        return False
    rows, first = ast.unparse(call.func.value), ast.unparse(call.args[0]) if call.args else ""
    return first in (f"{rows}.shape[0]", f"{rows}.size(0)", f"len({rows})")


def _row_numbers(call: ast.Call) -> ast.expr | None:
    """`index` of `rows[index.unsqueeze(0)].select(0, 0)`, which is `rows[index]`; None where `call` is anything else."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(owner, ast.Subscript) or not ast.unparse(call).endswith(".select(0, 0)"):
        return None
    first = owner.slice.elts[0] if isinstance(owner.slice, ast.Tuple) and owner.slice.elts else owner.slice
    inner = (
        first.func.value if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) else None
    )
    return inner if isinstance(first, ast.Call) and _is_one_row(first) else None


def _is_one_row(call: ast.Call) -> bool:
    """Whether `call` is `rows.unsqueeze(0)`: one row of rows, however many these are."""
    return isinstance(call.func, ast.Attribute) and ast.unparse(call).endswith(".unsqueeze(0)")


@dataclass
class RowSources:
    statements: Sequence[ast.stmt]
    kinds: Kinds
    names: set[str]
    followed: set[str]
    cut: bool = False
    masks: set[str] = field(default_factory=set)
    given: Collection[str] = ()
    picks: bool = False

    def see(self, node: ast.expr) -> None:
        """Collect the names outside that `node` has its rows from."""
        if isinstance(node, ast.Name):
            self._name(node.id)
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in _REDUCING or called == "select" or _is_one_row(node):
                numbers = _row_numbers(node)
                if numbers is not None:
                    self.see(numbers)
                return
            for each in found_by(node):
                self._mask(each)
                self.picks = True
            before = set(self.names)
            inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            for each in [*inner, *node.args, *(one.value for one in node.keywords)]:
                self.see(each)
            self.cut |= called in _CUTTING and self.names != before and not _keeps_rows(node)
        elif isinstance(node, ast.Subscript):
            first = (
                node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            )
            if written_index(first) is not None:
                return
            index = self.kinds.of(first)
            if index.what == "tensor" and index.dtype == "bool":
                self._mask(first)
                self.picks = True
                return
            if index.what == "tensor" and index.rank != 0:
                # There are as many rows as row numbers.
                self.see(first)
                return
            before = set(self.names)
            self.see(node.value)
            whole = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
            self.cut |= not whole and self.names != before
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.List, ast.Tuple, ast.Starred)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.see(child)

    def _mask(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and node.id not in bound(self.statements):
            self.masks.add(node.id)

    def _name(self, name: str) -> None:
        if name in self.followed:
            return
        self.followed.add(name)
        if name in self.given:
            # Of what a helper is given it may bind the name anew to what has as many rows.
            self.names.add(name)
        known = self.kinds.names.get(name)
        first = next((at for at, each in enumerate(self.statements) if name in bound([each])), None)
        if first is None or name in reads(self.statements[: first + 1]):
            # From outside, be it that the statements bind the name anew once they have read it.
            self.names |= {name} if known is not None and length_from_data(known) else set()
        if first is None:
            return
        for statement in self.statements:
            for each in walk(statement):
                if isinstance(each, ast.Assign) and any(
                    isinstance(one, ast.Name) and one.id == name for one in each.targets
                ):
                    self.see(each.value)


def sources_of(
    node: ast.expr, statements: Sequence[ast.stmt], kinds: Kinds
) -> tuple[set[str], bool, set[str], bool]:
    """The names bound outside of `statements` whose rows, as many as data says, are those of `node`; whether some may be cut off;
    the masks from outside that pick them; and whether any are picked there."""
    found = RowSources(statements, kinds, set(), set())
    found.see(node)
    return found.names, found.cut, found.masks, found.picks
