"""What a list is filled with in a first round, of zeros in the place of the rows that the loop goes through: it tells the shape."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.liveness import certainly_bound_before, live_before
from exportlens.rewriting.code.names import append_of, bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.most_rounds import MostRounds, stored_in
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

# What gives as many rows as data says, which may be none.
_PICKING = frozenset({"masked_select", "nonzero", "unique", "unique_consecutive", "argwhere"})


@dataclass
class Examples:
    """Of what `appends` add to a list in `loop`; `kinds` are those before it."""

    source: Source
    function: Function
    loop: ast.For | ast.While
    appends: list[ast.stmt]
    kinds: Kinds
    torch: str
    rounds: MostRounds

    def kind(self, append: ast.stmt) -> Kind:
        return kinds_before(self.function, append, self.kinds).of(appended_value(append))

    def held(self) -> str | None:
        """The name that is appended, where it is a tensor of the same kind before the loop."""
        values = [appended_value(each) for each in self.appends]
        names = {each.id for each in values if isinstance(each, ast.Name)}
        if len(names) != 1 or not all(isinstance(each, ast.Name) for each in values):
            return None
        name = names.pop()
        row, known = self.kind(self.appends[0]), self.kinds.names.get(name, UNKNOWN_KIND)
        certain = certainly_bound_before(self.function, self.loop) & self._carried()
        if name not in certain or row.rank is None:
            return None
        return name if (known.what, known.rank) == ("tensor", row.rank) else None

    def _carried(self) -> frozenset[str]:
        """The names that a round finds as the one before, or what stands before the loop, has left them."""
        return frozenset(live_before(self.loop.body, frozenset(), self.function))

    def computed(self) -> str | None:
        """What is appended, computed of zeros in the place of the loop's own rows, which index what there is."""
        for append in self.appends:
            value = self._of_first_round(appended_value(append), append, 4)
            if value is None or any(map(_is_before, walk(value))):
                continue
            if any(
                isinstance(each, ast.Call) and getattr(each.func, "attr", "") in _PICKING
                for each in walk(value)
            ):
                continue
            if any(map(self._may_divide_by_zero, walk(value))):
                continue
            picked = (each for each in walk(value) if isinstance(each, ast.Subscript))
            if not all(map(self._takes_what_is_there, picked)):
                continue
            there = certainly_bound_before(self.function, self.loop)
            own = set(bound(self.function.body))
            text = ast.unparse(value)
            if reads(value) & own - there or "\n" in text:
                continue
            if is_plain(parse_python(text, mode="eval").body, self.kinds):
                return text
        return None

    def _may_divide_by_zero(self, node: ast.AST) -> bool:
        """Whether Python divides numbers of its own, which may begin with 0."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            return False
        sides = [parse_python(ast.unparse(each), mode="eval").body for each in (node.left, node.right)]
        return not isinstance(node.right, ast.Constant) and all(
            self.kinds.of(each).what in ("number", "size", "scalar") for each in sides
        )

    def _takes_what_is_there(self, node: ast.Subscript) -> bool:
        """Whether `node` takes items by number: a mask may pick none, of which there may be no maximum."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for each in parts:
            kind = (
                self.kinds.of(parse_python(ast.unparse(each), mode="eval").body)
                if not isinstance(each, ast.Slice)
                else None
            )
            if kind is None or kind.what in ("number", "size", "static", "none"):
                continue
            whole = (kind.dtype or "").startswith("int") or "zeros_like(" in ast.unparse(each)
            if any(isinstance(one, ast.Compare) for one in walk(each)) or kind.what != "tensor" or not whole:
                return False
        return True

    def _of_first_round(self, value: ast.expr, append: ast.stmt, depth: int) -> ast.expr | None:
        """`value` by what was there before the loop; None where it hangs on what rounds hand on."""
        given, carried = self._given(), self._carried()
        changed = set(bound(self.loop))
        value = copy.deepcopy(value)
        for name in sorted(reads(value) & changed):
            text: str | None = given.get(name) if stored_in(self.loop).count(name) == 1 else None
            if (
                text is None
                and name in carried
                and self.kinds.names.get(name, UNKNOWN_KIND).what in ("tensor", "number")
            ):
                # What the rounds hand on begins before them, and keeps its shape.
                continue
            if text is None:
                binding = self._only_binding(name, append)
                if binding is None or depth == 0:
                    return None
                inner = self._of_first_round(binding, append, depth - 1)
                if inner is None:
                    return None
                text = ast.unparse(inner)
            value = _With(name, parse_python(text, mode="eval").body).visit(value)
        return value

    def _only_binding(self, name: str, append: ast.stmt) -> ast.expr | None:
        """What gives `name` its value in each round, in front of `append`."""
        stores = [
            each
            for each in walk(self.loop)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        same = [self.source.parents[each] for each in stores]
        if all(isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) for each in same):
            return next((each.value for each in same if isinstance(each, ast.Assign)), None)
        if len(stores) != 1:
            return None
        node = same[0]
        if not isinstance(node, ast.Assign) or node.targets != stores or name in reads(node.value):
            return None
        if not any(node in block[:at] for block, at in self._blocks_above(append)):
            return None
        return node.value

    def _blocks_above(self, node: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], int]]:
        while node is not self.loop:
            yield self.source.block_of(node)
            outer = self.source.parents[node]
            if not isinstance(outer, ast.stmt):
                return
            node = outer

    def _given(self) -> dict[str, str]:
        """What stands for the names that the loops' own targets bind: numbers index what is there at 0."""
        inside = [each for each in walk(self.loop) if isinstance(each, ast.For)]
        pairs: list[tuple[ast.expr, ast.expr]] = [(each.target, each.iter) for each in inside]
        found: dict[str, str] = {}
        while pairs:
            part, one = pairs.pop()
            called = ast.unparse(one.func) if isinstance(one, ast.Call) else ""
            if isinstance(one, ast.Call) and called == "enumerate" and isinstance(part, ast.Tuple):
                if len(part.elts) == 2 and isinstance(part.elts[0], ast.Name):
                    found[part.elts[0].id] = "0"
                    pairs.append((part.elts[1], one.args[0]))
            elif isinstance(one, ast.Call) and called == "zip" and isinstance(part, ast.Tuple):
                pairs += list(zip(part.elts, one.args, strict=False))
            elif isinstance(part, ast.Name) and called == "range" and isinstance(one, ast.Call):
                found[part.id] = "0"
            elif isinstance(part, ast.Name) and self.kinds.of(one).what == "tensor" and self.rounds.of(one):
                found[part.id] = f"{self.torch}.zeros_like({self.source.of(one)}[0])"
        return found


def appended_value(append: ast.stmt) -> ast.expr:
    found = append_of(append)
    assert found is not None
    return found[1]


class _With(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.value) if node.id == self.name else node


def _is_before(node: ast.AST) -> bool:
    """Whether `node` picks an item by its distance to another: `x[i - 2]`."""
    return isinstance(node, ast.Subscript) and any(
        isinstance(each, (ast.Sub, ast.USub)) for each in walk(node.slice)
    )
