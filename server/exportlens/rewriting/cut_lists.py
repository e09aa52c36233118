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

Nothing else that the loop binds may be read behind it, and the loop may not write to what was there before: the rounds
after the last one leave nothing behind.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.conditions import scalar_bool
from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import kinds_before, refuse_effects
from exportlens.rewriting.kind import LOCAL
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.liveness import Liveness, exits
from exportlens.rewriting.moving import writes
from exportlens.rewriting.names import appended_to, bound, every_name, fresh, reads
from exportlens.rewriting.predicates import Predicates
from exportlens.rewriting.text import Function, Replacement, Source, replaced

_ITERATORS = (
    "iter",
    "map",
    "filter",
    "zip",
    "enumerate",
    "reversed",
    "count",
    "cycle",
    "repeat",
    "islice",
    "chain",
)


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
        # A list that is filled behind the break may stay empty, of which nothing is stacked.
        late = any(appended_to(each) is not None for each in self.loop.body[at + 1 :])
        if not lists or late or not self._leaves_nothing(lists) or not self._may_go_on():
            return None
        taken = every_name(source.tree)
        stopped, rounds, count = (fresh(wish, taken) for wish in ("stopped", "rounds", "count"))
        swaps: list[Replacement] = []
        for name in lists:
            uses = self._uses(name, count)
            if uses is None:
                return None
            swaps += uses
        now = kinds_before(self.function, self.leaving, self.kinds)
        predicates = Predicates(source, now, torch)
        condition = predicates.read(self.leaving.test)
        if condition.form != "tensor":
            return None
        nl, indent = source.newline, source.indent_of(self.loop)
        inner = source.indent_of(self.leaving)
        test = scalar_bool(condition)
        lines = [
            f"{rounds} = {rounds} + {torch}.logical_not({stopped})",
            f"{inner}{stopped} = {torch}.logical_or({stopped}, {test})",
        ]
        left = source.start(self.leaving)
        swaps.append(Replacement(left, source.span([self.leaving])[1], nl.join(lines)))
        begin, end = source.start(self.loop), source.span([self.loop])[1]
        head = f"{stopped} = {torch}.zeros((), dtype={torch}.bool){nl}{indent}"
        head += f"{rounds} = {torch}.full((), 0){nl}{indent}"
        tail = f"{nl}{indent}{count} = {rounds}.item()"
        return replaced(source.text, [*swaps, Replacement(begin, begin, head), Replacement(end, end, tail)])

    def _may_go_on(self) -> bool:
        """Whether rounds more come to an end, take nothing from an iterator that others read, and find what they index: what is
        indexed by what the loop binds must say how many rounds there are."""
        if not self._ends(self.loop.iter):
            return False
        changing, asked = set(bound(self.loop)), ast.unparse(self.loop.iter)
        indexed = (
            each
            for each in ast.walk(self.loop)
            if isinstance(each, ast.Subscript)
            and any(reads(part) & changing for part in _index_parts(each) if not isinstance(part, ast.Slice))
        )
        return all(
            f"{name}." in asked or f"len({name})" in asked
            for name in (ast.unparse(each.value) for each in indexed)
        )

    def _ends(self, node: ast.expr) -> bool:
        """Whether `node` is gone through from its beginning whenever it is, and certainly has an end."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("enumerate", "reversed", "zip"):
            return all(map(self._ends, node.args))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
            return True
        if self._is_iterator(node):
            return False
        if isinstance(node, (ast.List, ast.Tuple)) or self.kinds.of(node).what in ("tensor", "container"):
            return True
        known = self.kinds.of(node).value
        return isinstance(known, Instance) and isinstance(known.cls, Named)

    def _is_iterator(self, node: ast.expr) -> bool:
        """Whether `node`, or what its name is bound to, may be what goes on where it was left."""
        values = [node]
        if isinstance(node, ast.Name):
            values = [
                each.value
                for each in ast.walk(self.function)
                if isinstance(each, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
                and each.value is not None
                and node.id in bound(each)
            ]
        return any(
            isinstance(each, ast.GeneratorExp)
            or (isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] in _ITERATORS)
            for one in values
            for each in ast.walk(one)
        )

    def _leaves_nothing(self, lists: list[str]) -> bool:
        """Whether a round more changes nothing but `lists`, each once."""
        if len(set(lists)) != len(lists):
            return False
        own = [each for each in self.loop.body if each is not self.leaving and appended_to(each) is None]
        if set(bound(self.loop)) & Liveness(self.function).live_after(self.loop):
            return False
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

    def _uses(self, name: str, count: str) -> list[Replacement] | None:
        """What the uses of the list behind the loop become; None where one is another than stacking it."""
        source = self.source
        same = [each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == name]
        stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
        start = source.parents[stores[0]] if stores else None
        block, index = source.block_of(self.loop)
        # Behind `outs = torch.stack(outs)` the name is that of a tensor.
        anew = next((each for each in block[index + 1 :] if name in bound(each)), None)
        if anew is not None:
            if not isinstance(anew, ast.Assign):
                return None
            end = source.end(anew)
            same = [each for each in same if source.start(each) < end]
            given = {each for target in anew.targets for each in ast.walk(target)}
            same = [each for each in same if each not in given]
            stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
        if not (
            len(stores) == 1
            and isinstance(start, ast.Assign)
            and start in block[:index]
            and ast.unparse(start.value) in ("[]", "list()")
            and len(start.targets) == 1
        ):
            return None
        swaps = []
        for each in same:
            if each in stores or any(each is one for one in ast.walk(self.loop)):
                continue
            whole = source.parents[each]
            if isinstance(whole, ast.Call) and ast.unparse(whole) == f"len({name})":
                swaps.append(source.swap(whole, count))
                continue
            cut = self._cut(whole, each, name, count) if isinstance(whole, ast.Call) else None
            if cut is None:
                return None
            swaps.append(Replacement(source.end(whole), source.end(whole), cut))
        inside = [each for each in ast.walk(self.loop) if isinstance(each, ast.Name) and each.id == name]
        return swaps if len(inside) == 1 and swaps else None

    def _cut(self, call: ast.Call, given: ast.Name, name: str, count: str) -> str | None:
        """The brackets behind `torch.stack(name, dim)` that take the first `count` along that dimension."""
        if not call.args or call.args[0] is not given or len(call.args) > 2:
            return None
        called = ast.unparse(call.func).removeprefix(f"{self.torch}.")
        named = {each.arg: each.value for each in call.keywords}
        along = named.pop("dim", call.args[1] if len(call.args) == 2 else ast.Constant(0))
        dim = _int(along)
        if named or called not in ("stack", "cat") or dim is None or dim < -1:
            return None
        if called == "cat" and not self._is_one_row(name, dim):
            return None
        return f"[..., :{count}]" if dim == -1 else f"[{':, ' * dim}:{count}]"

    def _is_one_row(self, name: str, dim: int) -> bool:
        """Whether what is appended certainly has one element along `dim`."""
        for each in self.loop.body:
            if appended_to(each) == name:
                [value] = _arguments(each)
                made = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
                text = ast.unparse(value)
                return made and text.endswith((f".unsqueeze({dim})", f".unsqueeze(dim={dim})"))
        return False


def _index_parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _int(node: ast.expr) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    return sign * node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _arguments(node: ast.stmt) -> list[ast.expr]:
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return node.value.args
