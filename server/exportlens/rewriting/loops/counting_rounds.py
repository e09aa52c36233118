"""What rounds of a loop bind and append where some of them do not count: names keep what they were, and a mask goes with lists."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from exportlens.rewriting.arms.kept_in_training import trains
from exportlens.rewriting.code.liveness import Liveness, certainly_bound_before, exits, live_before
from exportlens.rewriting.code.names import append_of, bound, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import same_kind
from exportlens.rewriting.loops.changing_sizes import refuse_changing_sizes
from exportlens.rewriting.loops.cut_lists import may_fail
from exportlens.rewriting.loops.cut_names import shares
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects
from exportlens.rewriting.memory.moving import may_write
from exportlens.source.walking import walk

PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


@dataclass
class Round:
    """What a round binds and appends, of which `run` says whether eager has it."""

    source: Source
    function: Function
    loop: ast.For
    kinds: Kinds
    torch: str
    taken: set[str]
    run: str
    carried: list[str] = field(default_factory=list)
    # What is appended to each list.
    lists: dict[str, ast.expr] = field(default_factory=dict)
    swaps: list[Replacement] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

    def is_known(self) -> bool:
        loop, body = self.loop, self.loop.body
        if loop.orelse or exits(body) != {"falls"} or any(map(may_fail, walk(loop))):
            return False
        for each in body:
            if not isinstance(each, PLAIN) or not self.source.begins_line(each):
                return False
            found = append_of(each)
            if found is not None:
                if found[0] in self.lists:
                    return False
                self.lists[found[0]] = found[1]
            elif isinstance(each, ast.Expr):
                return False
        own = [each for each in body if append_of(each) is None]
        if self.kinds_at(body[0]) is None:
            return False
        refuse_effects(self.source, own, self.kinds_at(body[0]), self.function)
        if any(trains(each, self.kinds_at(body[0]), "self") for each in body):
            return False
        sums = [each for each in own if isinstance(each, ast.AugAssign)]
        if not all(isinstance(each.target, ast.Name) for each in sums):
            return False
        plain = [each for each in own if each not in sums]
        if may_write([*plain, *self.lists.values(), *(each.value for each in sums)], self.kinds_at(body[0])):
            return False
        return self._keeps()

    def kinds_at(self, statement: ast.stmt) -> Kinds:
        return kinds_before(self.function, statement, self.kinds)

    def _keeps(self) -> bool:
        """Whether what the rounds hand on is known; `swaps` and lines then keep it where a round does not count."""
        source, loop, torch = self.source, self.loop, self.torch
        live = Liveness(self.function).live_after(loop)
        if set(bound(loop.target)) & (live | set(bound(loop.body))):
            return False
        entering = live_before(loop.body, frozenset(), self.function)
        names = [name for name in dict.fromkeys(bound(loop.body)) if name in entering or name in live]
        self.carried = [name for name in names if name not in self.lists]
        certain = certainly_bound_before(self.function, loop)
        before, after = self.kinds_at(loop), self.kinds_at(loop.body[0]).copy()
        after.run(loop.body)
        for name in self.carried:
            kind, later = before.names.get(name), after.names.get(name)
            if name not in certain or kind is None or later is None or kind.what != "tensor":
                return False
            if later.what not in ("tensor", "unknown"):
                return False
            same_kind(f"`{name}`", kind, later)
        refuse_changing_sizes(None, loop.body, self.carried, after)
        for name in self.carried:
            stores = [each for each in loop.body if name in bound(each)]
            [only, *more] = stores
            if any(isinstance(each, ast.AugAssign) and not self._is_own_sum(each) for each in stores):
                return False
            if any(
                each.arg in ("keepdim", "keepdims")
                for one in stores
                for each in walk(one)
                if isinstance(each, ast.keyword)
            ):
                # torch.where would spread what has fewer elements than it had.
                return False
            value = self._value(only)
            if value is not None and not more:
                self.swaps.append(source.swap(only, f"{name} = {torch}.where({self.run}, {value}, {name})"))
                continue
            if any(isinstance(each, ast.AugAssign) for each in stores):
                return False
            kept = fresh(f"last_{name}", self.taken)
            self.first.append(f"{kept} = {name}")
            self.last.append(f"{name} = {torch}.where({self.run}, {name}, {kept})")
        # Of what is left, nothing adds up in place.
        others = [each for each in loop.body if isinstance(each, ast.AugAssign)]
        return all(set(bound(each)) <= set(self.carried) for each in others)

    def _value(self, node: ast.stmt) -> str | None:
        if isinstance(node, ast.AugAssign):
            return self.source.computed(node)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = self.source.of(node.value)
            return f"({text})" if isinstance(node.value, ast.Tuple) else text
        return None

    def _is_own_sum(self, node: ast.AugAssign) -> bool:
        """Whether no one else holds the tensor that `node` adds to in place."""
        if not isinstance(node.target, ast.Name):
            return False
        now = self.kinds_at(node)
        kind = now.names.get(node.target.id)
        if kind is None or kind.roots is None or not all(root.startswith(LOCAL) for root in kind.roots):
            return False
        if shares(kind, set(now.names) - {node.target.id}, now):
            return False
        return not any(node.target.id in reads(each) for each in self.lists.values())

    def lines(self, head: list[str], tail: list[str]) -> list[Replacement]:
        """The replacements that put `head` and what keeps names around the body."""
        source = self.source
        indent = source.newline + source.indent_of(self.loop.body[0])
        begin, end = source.start(self.loop.body[0]), source.span([self.loop.body[-1]])[1]
        made = [Replacement(begin, begin, "".join(each + indent for each in [*head, *self.first]))]
        tail = [*self.last, *tail]
        return [*made, Replacement(end, end, "".join(indent + each for each in tail))] if tail else made
