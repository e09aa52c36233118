"""Loops that run as often as data says, over tensors that they read in each round: all rounds that these have run, and a mask says
which of them count.

    back = []                                      back, runs = [], []
    for t in range(1, int(length)):                for t in range(1, em.shape[0]):
        best, ptr = step(score)                        run = t < length
        score = best + em[t]               ->          runs.append(run)
        back.append(ptr)                               best, ptr = step(score)
                                                       score = torch.where(run, best + em[t], score)
                                                       back.append(ptr)
    path = [last]                                  path = [last]
    for ptr in reversed(back):                     for ptr, run in zip(reversed(back), reversed(runs)):
        last = ptr[last]                               last = torch.where(run, ptr[last], last)
        path.append(last)                              path.append(last)

Eager raises where data asks for more rounds than `em[t]` has, so that there are never more than those.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.counting_rounds import PLAIN, Round
from exportlens.rewriting.loops.walked_lists import Walked
from exportlens.rewriting.numbers.operands import read_out, scalar
from exportlens.source.walking import walk

MASKED = "Run all rounds that the tensors have, and keep what those beyond the number from data would change"
_DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def masked_rounds(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> str | None:
    """The whole text with all rounds of `loop`, `kinds` being those before it; None where the rounds are not known to be bounded, or
    do more than binding names and appending to lists."""
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop) or not source.begins_line(loop.body[0]):
        return None
    try:
        return _Masked(source, function, loop, kinds, torch).text()
    except Refused:
        return None


class _Masked:
    def __init__(self, source: Source, function: Function, loop: ast.For, kinds: Kinds, torch: str) -> None:
        self.source, self.function, self.loop, self.kinds, self.torch = source, function, loop, kinds, torch
        self.taken = every_name(source.tree)

    def text(self) -> str | None:
        source, loop, torch = self.source, self.loop, self.torch
        call, target = loop.iter, loop.target
        if not (isinstance(call, ast.Call) and isinstance(target, ast.Name)) or call.keywords:
            return None
        if dotted(call.func) != "range" or not 1 <= len(call.args) <= 2:
            return None
        begin = written_int(call.args[0]) if len(call.args) == 2 else 0
        if begin is None or begin < 0:
            return None
        stop, counter = call.args[-1], target.id
        run, runs, count = (fresh(wish, self.taken) for wish in ("run", "runs", "count"))
        end = fresh(f"end_of_{'t' if counter == '_' else counter}", self.taken)
        limit = self._limit(stop)
        made = Round(source, self.function, loop, self.kinds, torch, self.taken, run)
        sizes = self._sizes(counter, begin)
        if limit is None or not sizes or not made.is_known():
            return None
        lists = {
            name: made.kinds_at(self._statement_of(value)).of(value) for name, value in made.lists.items()
        }
        more = {name: self._begun_with(name) for name in lists}
        if None in more.values():
            return None
        ends = {name: self._end_of(name) for name in lists}
        uses = Walked(
            source, self.function, loop, self.kinds, torch, lists, ends, count, f"{count}_of", runs, run, True
        )
        uses.taken = self.taken
        # How many items more than rounds a list has.
        uses.more = {name: number for name, number in more.items() if number}
        if not uses.known() or not (lists or made.carried):
            return None
        if not uses.raises and any(map(self._may_be_spread, made.carried)):
            return None
        most = sizes[0] if len(sizes) == 1 else f"min({', '.join(sizes)})"
        nl, indent = source.newline, source.indent_of(loop)
        rounds = f"({end} - {begin})" if begin else end
        # Eager fails where data asks for more.
        head = [f"{end} = {limit}", f"{torch}._check({end}.item() <= {most})"]
        first, tail = [f"{run} = {counter} < {end}"], []
        if runs in uses.asked:
            head.append(f"{runs} = []")
            first.append(f"{runs}.append({run})")
        if any(count in each for each in uses.asked):
            tail.append(f"{count} = {rounds}.clamp(min=0).item()")
        if uses.raises:
            tail.append(f"{torch}._check({count} > 0)")
        start, stop_at = source.start(loop), source.span([loop])[1]
        rounds_text = f"range({f'{begin}, ' if begin else ''}{most})"
        swaps = [
            *uses.swaps,
            *made.swaps,
            Replacement(start, start, "".join(each + nl + indent for each in head)),
            source.swap(call, rounds_text),
        ]
        behind = "".join(nl + indent + each for each in tail)
        for each in made.lines(first, []):
            # What stands behind the loop stands behind what the last round ends with.
            at_end = each.start == each.end == stop_at
            swaps.append(Replacement(each.start, each.end, each.text + behind) if at_end else each)
            behind = "" if at_end else behind
        if behind:
            swaps.append(Replacement(stop_at, stop_at, behind))
        return replaced(source.text, swaps)

    def _statement_of(self, node: ast.AST) -> ast.stmt:
        return self.source.enclosing_statement(node)

    def _limit(self, stop: ast.expr) -> str | None:
        """A tensor of int64 that holds `stop`, which tensor data decides."""
        kind = self.kinds.of(stop)
        found = read_out(stop)
        if found is not None and found[0] in ("item", "int"):
            held = self.kinds.of(found[1])
            if held.what == "tensor":
                text = scalar(self.source, found[1], self.kinds)
                return text if held.dtype == "int64" else f"{primary(text)}.long()"
        if kind.what != "scalar":
            return None
        return f"{self.torch}.full((), {self.source.of(stop)})"

    def _sizes(self, counter: str, begin: int) -> list[str]:
        """The sizes that bound the counter, as each round takes an item by it; none where another item may be missing."""
        source = self.source
        found: list[str] = []
        for use in walk(self.loop):
            if not isinstance(use, ast.Name) or use.id != counter or use is self.loop.target:
                continue
            item = self._taken_by(use, begin)
            if item is None:
                continue
            if isinstance(item, str):
                return []
            node, at = item
            path = dotted(node.value)
            if path is None or path.partition(".")[0] in bound(self.loop):
                return []
            part = node.slice.elts[at] if isinstance(node.slice, ast.Tuple) else node.slice
            back = _minus(part, counter)
            if back is None or back > begin or self._is_conditional(node):
                return []
            if self.kinds.of(node.value).what != "tensor":
                return []
            found.append(f"{source.of(node.value)}.shape[{at}]" + (f" + {back}" if back else ""))
        own = dict.fromkeys(found)
        return [each for each in own if not any(each.startswith(f"{other} +") for other in own)]

    def _taken_by(self, use: ast.Name, begin: int) -> tuple[ast.Subscript, int] | str | None:
        """The item that `use` takes, and in which dimension; None where it only computes or slices, a text where it may fail."""
        node: ast.AST = use
        for outer in self.source.ancestors(use):
            if outer is self.loop or isinstance(outer, (ast.Slice, ast.Compare)):
                return None
            divides = isinstance(outer, ast.BinOp) and isinstance(outer.op, _DIVIDING) and node is outer.right
            if divides and isinstance(node, ast.expr) and not _is_above_zero(node, begin):
                return "divided"
            if isinstance(outer, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Call)):
                # A method may take what is there no longer.
                return "called"
            if isinstance(outer, ast.Subscript):
                if node is outer.value:
                    return None
                parts = outer.slice.elts if isinstance(outer.slice, ast.Tuple) else [outer.slice]
                at = next((index for index, part in enumerate(parts) if use in walk(part)), None)
                plain = at is not None and all(
                    isinstance(part, ast.Slice) or written_int(part) is not None for part in parts[:at]
                )
                return (outer, at) if plain and at is not None else "index"
            node = outer
        return None

    def _is_conditional(self, node: ast.AST) -> bool:
        """Whether a round may leave `node` out."""
        inside = (
            ast.IfExp,
            ast.BoolOp,
            ast.Lambda,
            ast.ListComp,
            ast.GeneratorExp,
            ast.DictComp,
            ast.SetComp,
        )
        for outer in self.source.ancestors(node):
            if outer is self.loop:
                return False
            if isinstance(outer, inside) or (isinstance(outer, ast.stmt) and not isinstance(outer, PLAIN)):
                return True
        return True

    def _may_be_spread(self, name: str) -> bool:
        """Whether `name` may begin with fewer elements than a round gives it, which torch.where would give it without a round."""
        block, index = self.source.block_of(self.loop)
        begun = next((each for each in reversed(block[:index]) if name in bound(each)), None)
        value = begun.value if isinstance(begun, (ast.Assign, ast.AnnAssign)) else None
        if value is None or dotted(value) is not None:
            return True
        return any(
            (isinstance(each, ast.Constant) and type(each.value) is int and each.value == 1)
            or (
                isinstance(each, ast.Call)
                and getattr(each.func, "attr", "") in ("unsqueeze", "expand", "view")
            )
            for each in walk(value)
            if not (isinstance(each, ast.Constant) and self._only_says_where(each))
        )

    def _only_says_where(self, node: ast.Constant) -> bool:
        """Whether a number is an index, or names a dimension."""
        parent = self.source.parents[node]
        return isinstance(parent, (ast.Subscript, ast.keyword)) or (
            isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") in ("select", "argmax", "size")
        )

    def _begun_with(self, name: str) -> int | None:
        """How many items the list `name` is begun with, once and in front of the loop; None where it is used there, or begun in
        another way."""
        source = self.source
        block, index = source.block_of(self.loop)
        begins = [
            each
            for each in walk(self.function)
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and name in bound(each)
        ]
        if not begins or begins[0] not in block[:index]:
            return None
        begun, anew = begins[0], begins[1:]
        value = begun.value
        made = value is not None and ast.unparse(value) == "list()"
        if not made and not (isinstance(value, ast.List) and all(map(_is_plain, value.elts))):
            return None
        targets = begun.targets if isinstance(begun, ast.Assign) else [begun.target]
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or any(map(self._is_not_behind, anew)):
            return None
        behind = source.span([self.loop])[1]
        same = [each for each in walk(self.function) if isinstance(each, ast.Name) and each.id == name]
        read = [each for each in same if source.start(each) < behind and each is not targets[0]]
        return (
            len(value.elts)
            if isinstance(value, ast.List) and len(read) == 1
            else 0
            if len(read) == 1
            else None
        )

    def _is_not_behind(self, node: ast.stmt) -> bool:
        block, index = self.source.block_of(self.loop)
        return node not in block[index + 1 :]

    def _end_of(self, name: str) -> int:
        """Where the name is that of the list no longer."""
        source = self.source
        block, index = source.block_of(self.loop)
        anew = next((each for each in block[index + 1 :] if name in bound(each)), None)
        return len(source.text) if anew is None else source.end(anew)


def _is_above_zero(node: ast.expr, begin: int) -> bool:
    """Whether `t` and `t + k` are above zero, `t` being `begin` at least."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.left, ast.Name):
        number = written_int(node.right)
        return number is not None and begin + number > 0
    return isinstance(node, ast.Name) and begin > 0


def _is_plain(node: ast.expr) -> bool:
    return dotted(node) is not None


def _minus(part: ast.expr, counter: str) -> int | None:
    """`k` of `t - k`, 0 of `t`."""
    if isinstance(part, ast.Name):
        return 0
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and isinstance(part.left, ast.Name):
        number = written_int(part.right)
        return number if part.left.id == counter and number is not None and number >= 0 else None
    return None
