"""A loop over the distinct numbers of a tensor that changes one cell for each of them changes all cells at once.

    for token in set(seen.tolist()):             tokens = seen
        if scores[i, token] < 0:                 cells = scores[i, tokens]
            scores[i, token] *= penalty    ->    scores[i, tokens] = torch.where(cells < 0, cells * penalty, cells / penalty)
        else:
            scores[i, token] /= penalty

A number that is there twice names the same cell, which gets the same value twice: each is computed of what was there before. Only
a tensor of one dimension has numbers that a set takes. Unsafe: a negative number and the one that counts the same cell from the
front are two rounds of the loop, and one cell here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import arguments, bound, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OPPOSITE: dict[type[ast.cmpop], str] = dict(zip(_COMPARED, ("!=", "==", ">=", ">", "<=", "<"), strict=True))


def cells_at_once(
    source: Source, loop: ast.For, tensor: ast.expr, kinds: Kinds, torch: str
) -> list[Replacement]:
    """What takes the place of `loop`, which goes through the set of the numbers of `tensor`. Raises Refused."""
    function = source.enclosing_function(loop)
    if (
        function is None
        or not isinstance(loop.target, ast.Name)
        or loop.orelse
        or not source.begins_line(loop)
    ):
        raise Refused("the loop over the set has an `else`, or does not begin a line")
    number = loop.target.id
    cells = [each for each in walk(loop) if _is_cell(each, number)]
    written = [each for each in cells if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)]
    if not written:
        raise Refused(f"the loop over the set changes no cell at `{number}`")
    cell = written[0]
    assert isinstance(cell, ast.Subscript)
    _refuse_others(source, loop, cell, cells, number)
    if number in Liveness(function).live_after(loop):
        raise Refused(f"`{number}` is read behind the loop over the set")
    taken = every_name(source.tree) | {each.arg for each in arguments(function.args)}
    numbers, values = fresh(f"{number}s", taken), fresh("cells", taken)
    at = _Cells(source, kinds, torch, ast.dump(cell.value), number, numbers)
    tokens, rest = at.kept(loop.body)
    result = at.block(rest, values)
    where = source.of(
        cell, [source.swap(each, numbers) for each in walk(cell.slice) if _is_name(each, number)]
    )
    lines = [f"{numbers} = {source.of(tensor)}"]
    lines += [f"{numbers} = {numbers}[{test}]" for test in tokens]
    if at.reads_cells:
        lines.append(f"{values} = {where}")
    lines.append(f"{where} = {result}")
    line = source.newline + source.indent_of(loop)
    lines[:0] = source.comments_between(source.start(loop), source.span([loop])[1])
    return [Replacement(source.start(loop), source.span([loop])[1], line.join(lines))]


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_cell(node: ast.AST, number: str) -> bool:
    """Whether `node` is `x[..., number]`, with the number as one whole index."""
    return isinstance(node, ast.Subscript) and any(_is_name(each, number) for each in _parts(node))


def _refuse_others(
    source: Source, loop: ast.For, cell: ast.Subscript, cells: list[ast.AST], number: str
) -> None:
    """Raise Refused where the loop does more than to change the one `cell` by what it was."""
    shown, same = source.of(cell), ast.dump(cell.slice)
    owner = ast.dump(cell.value)
    for each in cells:
        assert isinstance(each, ast.Subscript)
        if ast.dump(each.value) != owner or ast.dump(each.slice) != same:
            raise Refused(f"the loop over the set reads or changes other cells than `{shown}`")
    inside = {id(one) for each in cells for one in walk(each)}
    for each in walk(loop):
        if id(each) in inside or each is loop.target:
            continue
        if isinstance(each, (ast.Name, ast.Attribute)) and ast.dump(each) == owner:
            raise Refused(f"the loop over the set takes more of `{source.of(cell.value)}` than `{shown}`")
    named = [each for each in _parts(cell) if not _is_name(each, number)]
    if len(_parts(cell)) - len(named) != 1 or any(
        isinstance(one, (ast.Slice, ast.List, ast.Call)) for each in named for one in walk(each)
    ):
        raise Refused(f"it is not certain that `{shown}` is one cell")
    if set(bound(loop.body)):
        raise Refused(f"the loop over the set binds `{min(bound(loop.body))}`")


@dataclass
class _Cells:
    """Writes what the loop makes of one cell as what becomes of all of them."""

    source: Source
    kinds: Kinds
    torch: str
    owner: str
    number: str
    numbers: str
    reads_cells: bool = False

    def kept(self, body: list[ast.stmt]) -> tuple[list[str], list[ast.stmt]]:
        """The tests for the numbers that are not passed over, by `if token == 0: continue` or around all there is, and what
        is done for these."""
        tests: list[str] = []
        while body:
            first = body[0]
            if not isinstance(first, ast.If) or not self._asks_number(first.test):
                break
            if len(first.body) == 1 and isinstance(first.body[0], ast.Continue) and not first.orelse:
                tests.append(self._opposite(first.test))
                body = body[1:]
            elif len(body) == 1 and not first.orelse:
                tests.append(self._text(first.test, ""))
                body = first.body
            else:
                break
        return tests, body

    def _opposite(self, test: ast.expr) -> str:
        """What is true of the numbers, which are ints, of which `test` is not."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _OPPOSITE:
            raise Refused(f"`{self.source.of(test)}` is not followed in a loop over a set")
        left, right = self._text(test.left, ""), self._text(test.comparators[0], "")
        return f"{left} {_OPPOSITE[type(test.ops[0])]} {right}"

    def _asks_number(self, test: ast.expr) -> bool:
        return self.number in reads(test) and not any(_is_cell(each, self.number) for each in walk(test))

    def block(self, statements: list[ast.stmt], value: str) -> str:
        """What cells that are `value` are behind `statements`."""
        for each in statements:
            if isinstance(each, ast.If):
                if self.number not in reads(each.test):
                    raise Refused(f"`{self.source.of(each.test)}` asks nothing of the cell")
                test = self._text(each.test, value)
                then, other = self.block(each.body, value), self.block(each.orelse, value)
                value = f"{self.torch}.where({test}, {then}, {other})"
            elif (
                isinstance(each, ast.Assign)
                and len(each.targets) == 1
                and _is_cell(each.targets[0], self.number)
            ):
                value = self._text(each.value, value)
            elif isinstance(each, ast.AugAssign) and _is_cell(each.target, self.number):
                operator = _OPERATORS.get(type(each.op))
                if operator is None:
                    raise Refused(f"`{self.source.of(each)}` is not followed in a loop over a set")
                self.reads_cells |= value.isidentifier()
                right = self._text(each.value, value)
                value = f"{primary(value)} {operator} {right if right.isalnum() else primary(right)}"
            elif not isinstance(each, ast.Pass):
                raise Refused(f"`{self.source.of(each)}` is not followed in a loop over a set")
        return value

    def _text(self, node: ast.expr, value: str) -> str:
        """`node` for all cells, which are `value` now."""
        swaps: list[Replacement] = []
        self._follow(node, value, swaps)
        return self.source.of(node, swaps)

    def _follow(self, node: ast.expr, value: str, swaps: list[Replacement]) -> None:
        read = node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            read = node.func.value
        if _is_cell(read, self.number):
            self.reads_cells |= value.isidentifier()
            swaps.append(self.source.swap(node, value))
        elif _is_name(node, self.number):
            swaps.append(self.source.swap(node, self.numbers))
        elif self.number not in reads(node):
            if self.kinds.of(node).what not in ("number", "size") and not _is_infinity(node):
                raise Refused(f"it is not known that `{self.source.of(node)}` is one number")
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _COMPARED):
            self._follow(node.left, value, swaps)
            self._follow(node.comparators[0], value, swaps)
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            self._follow(node.left, value, swaps)
            self._follow(node.right, value, swaps)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self._follow(node.operand, value, swaps)
        else:
            raise Refused(f"`{self.source.of(node)}` is not followed in a loop over a set")


def _is_infinity(node: ast.expr) -> bool:
    return ast.unparse(node) in ("float('inf')", "-float('inf')", "float('-inf')")
