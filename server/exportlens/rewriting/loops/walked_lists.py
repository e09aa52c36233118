"""Loops over lists that have an item for each round of another loop, of which not all count: they hand something on from item to item,
as where pointers are followed back."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import append_of, bound, reads
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.loops.counting_rounds import Round
from exportlens.rewriting.loops.cut_uses import Uses
from exportlens.source.walking import walk


@dataclass
class Walked(Uses):
    """The uses of the lists, and loops over them that hand something on from item to item."""

    taken: set[str] = field(default_factory=set)
    # How many items more than rounds a list has.
    more: dict[str, int] = field(default_factory=dict)
    # Those that a loop over others fills, and of these those in which what does not count comes first.
    filled: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    walks: list[ast.For] = field(default_factory=list)

    def _swaps_of(self, each: ast.Name) -> list[Replacement] | str | None:
        source = self.source
        if each.id in self.filled:
            statement = source.enclosing_statement(each)
            if any(statement in walked.body for walked in self.walks) and append_of(statement) is not None:
                return []
            if each.id in self.turned:
                turning = self._turning(each.id)
                if statement is turning:
                    return []
                if turning is None or source.start(each) < source.start(turning):
                    return None
        elif each.id not in self.more:
            walked_over = self._walk_over(each)
            if walked_over is not None:
                return walked_over
        more, count, call = self.more.get(each.id, 0), self.count, source.parents[each]
        if more:
            whole = ast.unparse(call).startswith("len(") and not isinstance(source.parents[call], ast.Slice)
            self.count = f"({count} + {more})" if whole else f"{count} + {more}"
        try:
            return super()._swaps_of(each)
        finally:
            self.count = count

    def _may_be_empty(self, call: ast.Call) -> bool:
        own = [each.id for each in call.args if isinstance(each, ast.Name) and self.more.get(each.id)]
        if own and ast.unparse(call.func) in ("len", f"{self.torch}.stack"):
            return True
        return super()._may_be_empty(call)

    def _turning(self, name: str) -> ast.stmt | None:
        """The statement `name.reverse()`, of which there is one, behind the loop that fills it."""
        calls = [
            each
            for each in walk(self.function)
            if isinstance(each, ast.Expr) and ast.unparse(each) == f"{name}.reverse()"
        ]
        block, index = self.source.block_of(self.walks[-1])
        return calls[0] if len(calls) == 1 and calls[0] in block[index + 1 :] else None

    def _walk_over(self, each: ast.Name) -> list[Replacement] | str | None:
        """What `for item in reversed(name)` becomes, which binds names and appends to one list."""
        source = self.source
        over: ast.AST = source.parents[each]
        turned = isinstance(over, ast.Call) and ast.unparse(over) == f"reversed({each.id})"
        if isinstance(over, ast.Subscript) and ast.unparse(over) == f"{each.id}[::-1]":
            turned = True
        node = over if turned else each
        loop = source.parents[node]
        block, index = source.block_of(self.loop)
        if not isinstance(loop, ast.For) or loop.iter is not node or loop not in block[index + 1 :]:
            return None
        if not source.begins_line(loop) or not source.begins_line(loop.body[0]):
            return None
        made = Round(source, self.function, loop, self.kinds, self.torch, self.taken, self.run)
        try:
            if not made.is_known() or not made.carried or len(made.lists) > 1:
                return None
        except Refused:
            return None
        self.walks.append(loop)
        self.asked.add(self.runs)
        over_text = [f"reversed({name})" if turned else name for name in (each.id, self.runs)]
        target = source.of(loop.target)
        target = (
            f"({target})" if isinstance(loop.target, ast.Tuple) and not target.startswith("(") else target
        )
        self.swaps += [
            source.swap(loop.target, f"{target}, {self.run}"),
            source.swap(loop.iter, f"zip({', '.join(over_text)})"),
            *made.swaps,
            *(one for one in made.lines([], []) if one.text),
        ]
        for name, value in made.lists.items():
            more = self._seeds(name, value, loop, made, turned)
            if more is None or name in self.lists:
                return None
            self.filled.add(name)
            self.more[name] = more
            self.turned |= {name} if turned else set()
            self.lists[name] = Kind("tensor")
            return name
        return []

    def _seeds(self, name: str, value: ast.expr, loop: ast.For, made: Round, turned: bool) -> int | None:
        """How many items the list `name` has before `loop`; None where they may be mixed with what does not count."""
        source = self.source
        block, index = source.block_of(loop)
        begun = [each for each in walk(self.function) if isinstance(each, ast.stmt) and name in bound(each)]
        if len(begun) != 1 or begun[0] not in block[:index] or not isinstance(begun[0], ast.Assign):
            return None
        given = begun[0].value
        if len(begun[0].targets) != 1 or not isinstance(given, ast.List) or len(given.elts) > 1:
            return None
        between = block[block.index(begun[0]) + 1 : index]
        if any(name in reads(each) for each in between):
            return None
        if given.elts and turned:
            # What the rounds that do not count append is what the list begins with: they come first, and hand it on.
            [seed] = given.elts
            held = isinstance(seed, ast.Name) and isinstance(value, ast.Name) and seed.id == value.id
            if (
                not held
                or ast.unparse(seed) not in made.carried
                or any(ast.unparse(seed) in bound(each) for each in between)
            ):
                return None
        return len(given.elts)
