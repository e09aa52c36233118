"""Loops that take the first of some rows and leave those that a mask picks, until none is left:

    order = scores.argsort(descending=True)     order = scores.argsort(descending=True)
    while order.numel() > 0:                    alive = torch.ones_like(order, dtype=torch.bool)
        i = order[0]                            while alive.any():
        keep.append(i)                 ->           first = alive.int().argmax().reshape(1)
        rest = order[1:]                            left = alive.index_fill(0, first, False)
        iou = overlap(boxes[i], boxes[rest])        i = order[first].reshape(())
        order = rest[iou < 0.5]                     keep.append(i)
                                                    rest = order
                                                    iou = overlap(boxes[i], boxes[rest])
                                                    alive = left & (iou < 0.5)

A mask says which rows are left, and all keep their places: only where what is computed of a row hangs on no other row.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import TypeVar

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.sizes.row_by_row import RowByRow
from exportlens.source.walking import walk

_Statement = TypeVar("_Statement", bound=ast.stmt)
MARK = "Mark in a mask what is left"
_SIZES = ("{}.numel()", "len({})", "{}.size(0)", "{}.shape[0]", "{}.nelement()")
_FOUND = (
    "{}.nonzero().squeeze(1)",
    "{}.nonzero().squeeze()",
    "{}.nonzero().flatten()",
    "torch.where({})[0]",
    "torch.nonzero({}).squeeze(1)",
)


def marked_rows(source: Source, loop: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text where a mask says which rows are left; None where `loop` is another one."""
    function = source.enclosing_function(loop)
    if not isinstance(loop, ast.While) or loop.orelse or function is None or not source.begins_line(loop):
        return None
    for name in sorted(reads(loop.test) & set(bound(loop.body))):
        text = _Shrinking(source, function, loop, name, kinds, torch).text()
        if text is not None:
            return text
    return None


@dataclass
class _Shrinking:
    source: Source
    function: Function
    loop: ast.While
    name: str
    kinds: Kinds
    torch: str
    swaps: list[Replacement] = field(default_factory=list)
    # What is told of `order[1:]`, as of a name, and which names hold what was computed of it.
    tail: str = ""
    without_first: set[str] = field(default_factory=set)
    rows: RowByRow = field(init=False)
    # Places that were found by a mask.
    found: dict[str, ast.expr] = field(default_factory=dict)

    def text(self) -> str | None:
        source, name, torch = self.source, self.name, self.torch
        last = self._leaving()
        whole = self.kinds.names.get(name)
        if last is None or whole is None or whole.what != "tensor" or whole.rank not in (None, 1):
            return None
        if name in Liveness(self.function).live_after(self.loop):
            return None
        if any(map(self._is_of_open_size, reads(self.loop) - set(bound(self.loop.body)) | {name})):
            # Of sizes from data torch does not know which are the same.
            return None
        taken = every_name(source.tree)
        alive, first, left = (fresh(wish, taken) for wish in ("alive", "first", "left"))
        self.tail = f"{name}[1:]"
        both = {name, self.tail}
        self.rows = RowByRow(
            self.kinds.copy(), set(both), dict.fromkeys(both, 1), self.kinds.functions, set(both)
        )
        self.without_first = {self.tail}
        for statement in self.loop.body:
            if statement is last:
                break
            if not self._statement(statement, alive, first):
                return None
        condition = self._condition(self._told(last).value)
        if condition is None or self.loop.body[-1] is not last:
            return None
        text, rest = condition
        self.swaps.append(source.swap(last, f"{alive} = {left if rest else alive} & {text}"))
        if not self._ask(self.loop.test, alive):
            return None
        nl, indent = source.newline, source.indent_of(self.loop)
        begin, top = source.start(self.loop), source.start(self.loop.body[0])
        inner = nl + source.indent_of(self.loop.body[0])
        head = f"{alive} = {torch}.ones_like({name}, dtype={torch}.bool){nl}{indent}"
        lines = f"{first} = {alive}.int().argmax().reshape(1){inner}"
        lines += f"{left} = {alive}.index_fill(0, {first}, False){inner}" if rest else ""
        self.swaps += [Replacement(begin, begin, head), Replacement(top, top, lines)]
        return replaced(source.text, self.swaps)

    def _is_of_open_size(self, name: str) -> bool:
        kind = self.kinds.names.get(name)
        return kind is not None and isinstance(kind.value, Tensor) and kind.value.unbacked

    def _leaving(self) -> ast.Assign | None:
        """The one statement of the loop that binds the rows anew."""
        stores = [
            each
            for each in walk(self.loop)
            if isinstance(each, ast.Name) and each.id == self.name and not isinstance(each.ctx, ast.Load)
        ]
        statement = self.source.parents[stores[0]] if len(stores) == 1 else None
        plain = (
            isinstance(statement, ast.Assign) and statement.targets == stores and statement in self.loop.body
        )
        return statement if plain and isinstance(statement, ast.Assign) else None

    def _told(self, statement: _Statement) -> _Statement:
        """`statement` with a name in the place of `order[1:]`."""
        return _Tails(self.name, self.tail).visit(copy.deepcopy(statement))  # type: ignore[no-any-return]

    def _statement(self, statement: ast.stmt, alive: str, first: str) -> bool:
        """Follow a statement in front of the last one; false where it does with the rows what a mask cannot follow."""
        source, name, rows = self.source, self.name, self.rows
        heads = [
            each
            for each in walk(statement)
            if isinstance(each, ast.Subscript) and ast.unparse(each) == f"{name}[0]"
        ]
        told = self._told(statement)
        inside = _Tails(name, "", "0").visit(copy.deepcopy(told))
        if reads(told) & set(self.found):
            return False
        given = reads(inside) & rows.names
        if isinstance(statement, ast.If) and name in given:
            # Whether there is more than one row is asked.
            blocks = [*statement.body, *statement.orelse]
            return (
                not heads
                and self._ask(statement.test, alive)
                and not any(reads(each) & rows.names for each in blocks)
            )
        if heads and given:
            return False
        self.swaps += [source.swap(each, f"{name}[{first}].{self._one()}") for each in heads]
        if not given:
            return not set(bound(statement)) & rows.names
        if given & self.without_first and given - self.without_first:
            return False
        self.swaps += [
            source.swap(each, name)
            for each in walk(statement)
            if isinstance(each, ast.Subscript) and ast.unparse(each) == self.tail
        ]
        target = told.targets[0] if isinstance(told, ast.Assign) and len(told.targets) == 1 else None
        mask = self._mask_of(told.value) if isinstance(told, ast.Assign) else None
        if isinstance(target, ast.Name) and mask is not None and rows.of(mask) and self._is_mask(mask, rows):
            self.found[target.id] = mask
            return True
        if not rows.bind(told):
            return False
        if given & self.without_first:
            self.without_first |= set(bound(told))
        return True

    def _one(self) -> str:
        """What takes the only row: a number, where the rows are numbers that index others, or any."""
        indices = (
            each.slice.elts[0] if isinstance(each.slice, ast.Tuple) else each.slice
            for each in walk(self.loop)
            if isinstance(each, ast.Subscript)
        )
        numbers = any(ast.unparse(each) in (*self.rows.places, self.tail) for each in indices)
        return "reshape(())" if numbers or self.kinds.names[self.name].rank == 1 else "select(0, 0)"

    def _mask_of(self, node: ast.expr) -> ast.expr | None:
        """The mask of `torch.where(mask)[0]` and its kin."""
        forms = [*_FOUND, *(each.replace("torch.", f"{self.torch}.") for each in _FOUND)]
        for each in walk(node):
            if isinstance(each, ast.expr):
                texts = (ast.unparse(each), f"({ast.unparse(each)})")
                if any(ast.unparse(node) == form.format(text) for text in texts for form in forms):
                    return each
        return None

    def _condition(self, value: ast.expr) -> tuple[str, bool] | None:
        """The mask of those that the last statement leaves, and whether it leaves the first one out."""
        if not isinstance(value, ast.Subscript):
            return None
        base, index, rows = ast.unparse(value.value), value.slice, self.rows
        if (
            isinstance(index, ast.BinOp)
            and isinstance(index.op, ast.Add)
            and isinstance(index.left, ast.Name)
        ):
            # `order[inds + 1]`: found among those behind the first.
            mask = self.found.get(index.left.id)
            behind = base == self.name and ast.unparse(index.right) == "1"
            if mask is None or not behind or not reads(mask) & rows.names <= self.without_first:
                return None
            return primary(ast.unparse(mask).replace(self.tail, self.name)), True
        mask = self.found.get(index.id, index) if isinstance(index, ast.Name) else index
        if not rows.of(mask) or not self._is_mask(mask, rows):
            return None
        given = reads(mask) & rows.names
        rest = base in self.without_first
        if (rest and not given <= self.without_first) or (
            not rest and (base != self.name or given & self.without_first)
        ):
            return None
        return primary(ast.unparse(mask).replace(self.tail, self.name)), rest

    def _is_mask(self, node: ast.expr, rows: RowByRow) -> bool:
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._is_mask(node.operand, rows)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._is_mask(node.left, rows) and self._is_mask(node.right, rows)
        if isinstance(node, ast.Name):
            made = [
                each.value
                for each in self.loop.body
                if isinstance(each, ast.Assign) and [dotted(one) for one in each.targets] == [node.id]
            ]
            return len(made) == 1 and self._is_mask(made[0], rows)
        return False

    def _ask(self, test: ast.expr, alive: str) -> bool:
        """Swap what asks how many rows are left; false where the test does more with them."""
        source, name = self.source, self.name
        sizes = [form.format(name) for form in _SIZES]
        asked: set[int] = set()
        for each in walk(test):
            if not isinstance(each, ast.expr) or ast.unparse(each) not in sizes:
                continue
            outer = source.parents[each]
            asked |= {id(one) for one in walk(each)}
            if isinstance(outer, ast.Compare) and outer.left is each and len(outer.ops) == 1:
                said = f"{type(outer.ops[0]).__name__} {ast.unparse(outer.comparators[0])}"
                if said in ("Gt 0", "NotEq 0", "GtE 1"):
                    self.swaps.append(source.swap(outer, f"{alive}.any()"))
                elif said in ("Eq 0", "LtE 0", "Lt 1"):
                    self.swaps.append(source.swap(outer, f"not {alive}.any()"))
                else:
                    self.swaps.append(source.swap(each, f"{alive}.sum()"))
            elif isinstance(outer, (ast.While, ast.If, ast.BoolOp)):
                self.swaps.append(source.swap(each, f"{alive}.any()"))
            else:
                return False
        return all(id(each) in asked for each in walk(test) if isinstance(each, ast.Name) and each.id == name)


class _Tails(ast.NodeTransformer):
    """`order[1:]` as the name `tail`, or `order[0]` as a number where `item` is "0"."""

    def __init__(self, name: str, tail: str, item: str = "1:") -> None:
        self.text, self.tail = f"{name}[{item}]", tail

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node) == self.text:
            return ast.Name(self.tail, node.ctx) if self.tail else ast.Constant(0)
        self.generic_visit(node)
        return node
