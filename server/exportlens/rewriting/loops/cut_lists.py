"""Loops that fill lists until data stops them run all their rounds, and as much of the lists is taken as was filled.

    outs = []                              outs = []
    for _ in range(n):                     stopped, rounds = torch.zeros((), dtype=torch.bool), torch.full((), 0)
        y = step(y)                        for _ in range(n):
        outs.append(y)                         y = step(y)
        if done(y):                ->          outs.append(y)
            break                              rounds = rounds + torch.logical_not(stopped)
    return torch.stack(outs, 1)                stopped = torch.logical_or(stopped, done(y))
                                           count = rounds.item()
                                           return torch.stack(outs, 1)[:, :count]

What else the loop binds and is read behind it is kept in lists as well, and the loop may not write to what was there before:
the rounds after the last one leave nothing behind.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import appended_to, assigned_pairs, bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import LOCAL, UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.most_rounds import is_iterator
from exportlens.rewriting.lists.padded_behind import padded_behind
from exportlens.rewriting.loops.cut_names import Counted, Listed, kept_names, shares
from exportlens.rewriting.loops.cut_uses import Uses
from exportlens.rewriting.loops.padded_lists import Padding, padding_of, rounds_of
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects
from exportlens.rewriting.memory.moving import writes

_JOINING = ("stack", "cat", "concat", "vstack", "hstack")
# Operators that raise where a matrix has no inverse or a weight is no number.
_FAILING = frozenset(
    {"bernoulli", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "inv", "inverse", "lstsq", "multinomial", "solve", "svd"}
    | {"svdvals", "solve_triangular", "lu", "lu_factor", "lu_solve", "_assert", "_check", "allclose"}
)  # fmt: skip


def cut_behind(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> str | None:
    """The whole text with all rounds of `loop`; None where it fills no lists, or does more than that."""
    function = source.enclosing_function(loop)
    leaving = _leaving(loop)
    if function is None or leaving is None or loop.orelse or not source.begins_line(loop):
        return None
    return _Cut(source, function, loop, leaving, kinds, torch).text()


def _leaving(loop: ast.For) -> ast.If | None:
    """The one statement `if test: break` of the loop's own block."""
    found = [each for each in loop.body if exits([each]) != {"falls"}]
    node = found[0] if len(found) == 1 else None
    if not isinstance(node, ast.If):
        return None
    alone = not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Break)
    return node if alone else None


@dataclass
class _Cut:
    source: Source
    function: Function
    loop: ast.For
    leaving: ast.If
    kinds: Kinds
    torch: str

    def text(self) -> str | None:
        source, torch = self.source, self.torch
        at = self.loop.body.index(self.leaving)
        lists = [name for each in self.loop.body[:at] if (name := appended_to(each)) is not None]
        late = [name for each in self.loop.body[at + 1 :] if (name := appended_to(each)) is not None]
        if lists and late:
            return None
        lists = lists or late
        if any(map(self._is_asked_for, lists)):
            return None
        if not lists or self._holds_sums() or not self._leaves_nothing(lists) or not self._may_go_on():
            return None
        taken = every_name(source.tree)
        stopped, rounds, count, runs, run = (
            fresh(wish, taken) for wish in ("stopped", "rounds", "count", "runs", "run")
        )
        items = {name: self._item(name) for name in lists}
        fills = {name: padding_of(source, self.loop, name, set(lists)) for name in lists}
        ends = {name: self._end_of(name, fills[name]) for name in lists}
        known = {name: end for name, end in ends.items() if end is not None}
        if len(known) != len(ends):
            return None
        uses = Uses(
            source,
            self.function,
            self.loop,
            self.kinds,
            torch,
            items,
            known,
            count,
            rounds,
            runs,
            run,
            bool(late),
        )
        kept = self._kept_names(lists)
        if any(fill is not None and not uses.fill(name, fill) for name, fill in fills.items()):
            return None
        if not uses.known() or kept is None or not (uses.swaps or kept) or (late and kept):
            return None
        now = kinds_before(self.function, self.leaving, self.kinds)
        condition = Predicates(source, now, torch).read(self.leaving.test)
        if condition.form != "tensor" and condition.alone is None:
            return None
        # What configuration and data decide together is asked as a tensor.
        test = scalar_bool(condition) if condition.alone is None else condition.alone
        nl, indent, inner = source.newline, source.indent_of(self.loop), source.indent_of(self.leaving)
        head, lines, tail = [f"{stopped} = {torch}.zeros((), dtype={torch}.bool)"], [], []
        for name, values in kept.items():
            if isinstance(values, Counted):
                uses.asked.add(count)
                tail.append(f"{name} = {values.text(count)}")
            else:
                if values.appended is not None:
                    values.name = fresh(values.name, taken)
                    head.append(f"{values.name} = []")
                    lines.append(f"{values.name}.append({values.appended})")
                tail.append(f"{name} = {uses.last(values.name)}")
        if runs in uses.asked:
            head.append(f"{runs} = []")
            lines.append(f"{runs}.append({torch}.logical_not({stopped}))")
        if uses.asked & {rounds, count}:
            head.append(f"{rounds} = {torch}.full((), 0)")
            lines.append(f"{rounds} = {rounds} + {torch}.logical_not({stopped})")
        if count in uses.asked:
            tail.insert(0, f"{count} = {rounds}.item()")
        if uses.raises:
            # Of a list that stayed empty nothing is stacked.
            tail.append(f"{torch}._check({count} > 0)")
        # What is filled behind the break has no part of the round that is left.
        lines.insert(0 if late else len(lines), f"{stopped} = {torch}.logical_or({stopped}, {test})")
        left, begin, end = source.start(self.leaving), source.start(self.loop), source.span([self.loop])[1]
        swaps = [
            *uses.swaps,
            Replacement(begin, begin, "".join(each + nl + indent for each in head)),
            Replacement(left, source.span([self.leaving])[1], (nl + inner).join(lines)),
            Replacement(end, end, "".join(nl + indent + each for each in tail)),
        ]
        return replaced(source.text, swaps)

    def _is_asked_for(self, name: str) -> bool:
        """Whether a branch asks behind the loop if what joins the list is too short: it has all items then from the beginning."""
        rounds, place = rounds_of(self.loop), self.source.block_of(self.loop)
        total = None if rounds is None else ast.parse(rounds, mode="eval").body
        padded = None if total is None else padded_behind(place, name, total, self.function)
        return padded is not None and padded.asks

    def _item(self, name: str) -> Kind:
        """What each round appends to the list `name`."""
        for each in self.loop.body:
            if appended_to(each) == name:
                [value] = _arguments(each)
                return kinds_before(self.function, each, self.kinds).of(value)
        return UNKNOWN_KIND

    def _holds_sums(self) -> bool:
        """Whether a list may hold a tensor that later rounds write: `total += y` and `outs.append(total)`."""
        sums = [each for each in self.loop.body if self._is_own_sum(each)]
        totals = {name for each in sums for name in bound(each)}
        for each in self.loop.body:
            if appended_to(each) is not None:
                now = kinds_before(self.function, each, self.kinds)
                if any(shares(now.of(value), totals, now) for value in _arguments(each)):
                    return True
        return False

    def _kept_names(self, lists: list[str]) -> dict[str, Counted | Listed] | None:
        """What says what the names that the loop binds were in the last round that eager had, where they are read behind it."""
        read = set(bound(self.loop)) & Liveness(self.function).live_after(self.loop)
        return kept_names(self.source, self.function, self.loop, self.leaving, self.kinds, sorted(read))

    def _may_go_on(self) -> bool:
        """Whether rounds more come to an end, take nothing from an iterator that others read, and find what they index: what is
        indexed by what the loop binds must say how many rounds there are, or be held by the model: its tables and layers are made
        for all rounds, since data may need them all."""
        if not self._ends(self.loop.iter) or any(map(may_fail, ast.walk(self.loop))):
            return False
        changing, asked = set(bound(self.loop)), ast.unparse(self.loop.iter)
        indexed = (
            each
            for each in ast.walk(self.loop)
            if isinstance(each, ast.Subscript)
            and any(reads(part) & changing for part in _index_parts(each) if not isinstance(part, ast.Slice))
        )
        return all(
            name.startswith("self.") or f"{name}." in asked or f"len({name})" in asked
            for name in (ast.unparse(each.value) for each in indexed)
        )

    def _ends(self, node: ast.expr) -> bool:
        """Whether `node` is gone through from its beginning whenever it is, and certainly has an end."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("enumerate", "reversed", "zip"):
            return all(map(self._ends, node.args))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
            return True
        if is_iterator(node, self.function):
            return False
        if isinstance(node, (ast.List, ast.Tuple)) or self.kinds.of(node).what in ("tensor", "container"):
            return True
        known = self.kinds.of(node).value
        return isinstance(known, Instance) and isinstance(known.cls, Named)

    def _leaves_nothing(self, lists: list[str]) -> bool:
        """Whether a round more changes nothing but `lists`, each once."""
        if len(set(lists)) != len(lists):
            return False
        own = [each for each in self.loop.body if each is not self.leaving and appended_to(each) is None]
        try:
            refuse_effects(self.source, own, self.kinds, self.function)
        except Refused:
            return False
        appended = [each for each in self.loop.body if appended_to(each) is not None]
        plain = [each for each in own if not self._is_own_sum(each)]
        return not writes([*plain, *(arg for each in appended for arg in _arguments(each))])

    def _is_own_sum(self, node: ast.stmt) -> bool:
        """Whether `node` is `name += value` of a number, or of a tensor that no one else holds."""
        if not (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)) or writes(
            [node.value]
        ):
            return False
        kind = kinds_before(self.function, node, self.kinds).names.get(node.target.id)
        if kind is None:
            return False
        held = kind.roots is None or not all(root.startswith(LOCAL) for root in kind.roots)
        return kind.what in ("number", "size") or (kind.what == "tensor" and not held)

    def _end_of(self, name: str, fill: Padding | None) -> int | None:
        """Where the list `name` ends to be it, at the latest at the end of the text; None where it does not begin empty in front
        of the loop, or is used before its end."""
        source = self.source
        same = [each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == name]
        same.sort(key=source.start)
        stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
        start = source.enclosing_statement(stores[0]) if stores else None
        block, index = source.block_of(self.loop)
        end = len(source.text)
        # Behind `outs = torch.stack(outs)` the name is that of a tensor, and what fills it up makes a list for all rounds.
        anew = next((each for each in block[index + 1 :] if name in bound(each)), None)
        if fill is not None:
            end = source.start(fill.statement)
            anew = None if anew is fill.statement else anew
            behind_it = block[block.index(fill.statement) :]
            stores = [each for each in stores if not any(each in ast.walk(one) for one in behind_it)]
            if anew is not None and anew not in behind_it:
                return None
        elif anew is not None:
            if not isinstance(anew, ast.Assign):
                return None
            end = source.end(anew)
            same = [each for each in same if source.start(each) < end]
            given = {each for target in anew.targets for each in ast.walk(target)}
            stores = [each for each in same if each not in given and not isinstance(each.ctx, ast.Load)]
        begins = (
            len(stores) == 1
            and isinstance(start, (ast.Assign, ast.AnnAssign))
            and start in block[:index]
            and self._is_empty(start, stores[0])
        )
        behind = source.span([self.loop])[1]
        used = [each for each in same if isinstance(each.ctx, ast.Load) and source.start(each) < behind]
        # A round that eager has finds in the list what it finds in eager.
        filling = [each for each in used if not self._is_read_within(each)]
        return end if begins and len(filling) == 1 else None

    def _is_read_within(self, use: ast.Name) -> bool:
        """Whether `use` takes a list in the loop for a tensor of its own, for its length, or an item of it for an operand."""
        source, outer = self.source, self.source.parents[use]
        if not any(each is self.loop for each in source.ancestors(use)):
            return False
        if isinstance(outer, ast.Call) and use in outer.args[:1]:
            return ast.unparse(outer.func) in ("len", *(f"{self.torch}.{each}" for each in _JOINING))
        if not isinstance(outer, ast.Subscript) or outer.value is not use or reads(outer.slice):
            return False
        around = source.parents[outer]
        if isinstance(outer.slice, ast.Slice):
            return (
                isinstance(around, ast.Call)
                and outer in around.args[:1]
                and ast.unparse(around.func) in [f"{self.torch}.{each}" for each in _JOINING]
            )
        return isinstance(around, (ast.BinOp, ast.Compare))

    def _is_empty(self, start: ast.Assign | ast.AnnAssign, target: ast.Name) -> bool:
        """Whether `start` makes `target` an empty list of its own."""
        value: ast.expr | None = start.value
        if isinstance(start, ast.Assign):
            if len(start.targets) != 1:
                return False
            value = next((part for one, part in assigned_pairs(start) if one is target), None)
        return value is not None and ast.unparse(value) in ("[]", "list()")


def may_fail(node: ast.AST) -> bool:
    """Whether `node` raises for some values of tensors, which rounds that eager does not have may give."""
    if isinstance(node, ast.Assert):
        return True
    called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return called in _FAILING


def _index_parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _arguments(node: ast.stmt) -> list[ast.expr]:
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return node.value.args
