"""What the uses of lists become that a loop fills in all of its rounds, where eager filled them until data stopped it.

    for s, p in zip(states, probs):        for s, p, run in zip(states, probs, runs):
        out += s * p                  ->       out += torch.where(run, s * p, 0)
    return out, torch.stack(states)        return out, torch.stack(states)[:count]

`runs` holds for each round whether eager had it, `count` how many it had, `rounds` the same as a tensor.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, exits, live_before
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.padded_lists import Padding
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects
from exportlens.rewriting.memory.moving import writes

Comprehension = ast.ListComp | ast.GeneratorExp
# What adds nothing to a sum, and nothing to a product.
_NEUTRAL: dict[type[ast.operator], str] = {ast.Add: "0", ast.Sub: "0", ast.Mult: "1"}


@dataclass
class Uses:
    """The uses of `lists`, each with the kind of its items, between `loop` and those of `ends`, where the name is bound anew;
    `count`, `rounds`, `runs` and `run` are fresh names."""

    source: Source
    function: Function
    loop: ast.For
    kinds: Kinds
    torch: str
    lists: dict[str, Kind]
    ends: dict[str, int]
    count: str
    rounds: str
    runs: str
    run: str
    late: bool = False
    swaps: list[Replacement] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    raises: bool = False

    def known(self) -> bool:
        """Whether all uses are known: `swaps` are then what they become, and `asked` the fresh names that these read."""
        waiting = list(self.lists)
        done = 0
        while done < len(waiting):
            name = waiting[done]
            done += 1
            for each in self._reads_behind(name):
                made = self._swaps_of(each)
                if made is None:
                    return False
                if isinstance(made, str):
                    waiting += [made] if made not in waiting else []
                    continue
                self.swaps += [one for one in made if one not in self.swaps]
        return True

    def fill(self, name: str, fill: Padding) -> bool:
        """Whether what fills the list `name` up is known: `swaps` hold then what it becomes."""
        if self.late or self.lists[name].what != "tensor":
            return False
        self.asked.add(self.runs)
        source = self.source
        item, begun = ("" if fill.item is None else source.of(fill.item)), ""
        if not item.isidentifier():
            item = fresh("last" if fill.item is None else "filled", every_name(source.tree))
            value = self.last(name) if fill.item is None else source.of(fill.item)
            begun = f"{item} = {value}{source.newline}{source.indent_of(fill.statement)}"
        chosen = (
            f"{self.torch}.where({self.run}, each, {item}) for each, {self.run} in zip({name}, {self.runs})"
        )
        self.swaps.append(source.swap(fill.statement, f"{begun}{name} = [{chosen}]"))
        return True

    def last(self, name: str) -> str:
        """The item of the last round that eager had."""
        self.asked.add(self.rounds)
        return f"{self.torch}.stack({name}).index_select(0, ({self.rounds} - 1).reshape(1)).squeeze(0)"

    def _reads_behind(self, name: str) -> Iterator[ast.Name]:
        begin, end = self.source.span([self.loop])[1], self.ends.get(name, len(self.source.text))
        names = (each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == name)
        for each in names:
            if isinstance(each.ctx, ast.Load) and begin <= self.source.start(each) < end:
                yield each

    def _swaps_of(self, each: ast.Name) -> list[Replacement] | str | None:
        """What the use `each` becomes; the name of a list that has an item for each round, too, where it makes one; None where it
        is none that is known."""
        source = self.source
        whole = source.parents[each]
        if self.late and not (isinstance(whole, ast.Call) and self._may_be_empty(whole)):
            return None
        if isinstance(whole, ast.Subscript) and whole.value is each:
            return self._item(whole, each.id)
        if isinstance(whole, ast.Call) and each in whole.args:
            called = ast.unparse(whole.func)
            if called == "len":
                return self._counted(whole)
            if called == "sum":
                return self._summed(whole, each.id)
            if called.startswith(f"{self.torch}.") and whole.args[0] is each:
                return self._joined(whole, self.lists[each.id])
        return self._gone_through(each)

    def _may_be_empty(self, call: ast.Call) -> bool:
        """Whether `call` takes the list where it stays empty, too, or raises there and always runs."""
        called = ast.unparse(call.func)
        if called == "len":
            return True
        block, index = self.source.block_of(self.loop)
        statement = self.source.enclosing_statement(call)
        if called not in (f"{self.torch}.stack", f"{self.torch}.cat") or statement not in block[index + 1 :]:
            return False
        between = block[index + 1 : block.index(statement)]
        around = itertools.takewhile(lambda each: each is not statement, self.source.ancestors(call))
        plain = isinstance(statement, (ast.Assign, ast.Return)) and exits(between) == {"falls"}
        self.raises = True
        return plain and all(
            isinstance(each, (ast.Call, ast.Attribute, ast.keyword, ast.Tuple, ast.BinOp)) for each in around
        )

    def _counted(self, whole: ast.Call) -> list[Replacement]:
        self.asked.add(self.count)
        return [self.source.swap(whole, self.count)]

    def _item(self, node: ast.Subscript, name: str) -> list[Replacement] | None:
        at = _int(node.slice)
        if at == 0:
            return []
        if at != -1 or self.lists[name].what != "tensor":
            return None
        return [self.source.swap(node, self.last(name))]

    def _summed(self, call: ast.Call, name: str) -> list[Replacement] | None:
        if call.keywords or self.lists[name].what != "tensor" or name == "each":
            return None
        self.asked.add(self.runs)
        text = f"{self.torch}.where({self.run}, each, 0) for each, {self.run} in zip({name}, {self.runs})"
        return [self.source.swap(call.args[0], text if len(call.args) == 1 else f"[{text}]")]

    def _joined(self, call: ast.Call, item: Kind) -> list[Replacement] | None:
        """The brackets behind `torch.stack(name, dim)` that take the first `count` along that dimension."""
        named = {each.arg: each.value for each in call.keywords}
        if len(call.args) > 2:
            return None
        along = named.pop("dim", call.args[1] if len(call.args) == 2 else ast.Constant(0))
        called, dim = ast.unparse(call.func).removeprefix(f"{self.torch}."), _int(along)
        if named or called not in ("stack", "cat") or dim is None or dim < -1:
            return None
        self.asked.add(self.count)
        end = self.source.end(call)
        if called == "stack" or _is_one_row(self._items_of(call), dim):
            cut = f"[..., :{self.count}]" if dim == -1 else f"[{':, ' * dim}:{self.count}]"
            return [Replacement(end, end, cut)]
        # All rounds give as much along that dimension, or the stack raises.
        items = self.source.of(call.args[0])
        if dim == -1:
            text = f"{self.torch}.stack({items}, -2)[..., :{self.count}, :].flatten(-2, -1)"
        else:
            more = f", {dim}" if dim else ""
            text = f"{self.torch}.stack({items}{more})[{':, ' * dim}:{self.count}].flatten({dim}, {dim + 1})"
        return [self.source.swap(call, text)] if item.what == "tensor" else None

    def _items_of(self, call: ast.Call) -> ast.expr | None:
        """The expression that gives each item of the list that `call` joins."""
        given = call.args[0]
        if isinstance(given, (ast.ListComp, ast.GeneratorExp)):
            return given.elt
        for each in ast.walk(self.loop):
            if (
                isinstance(given, ast.Name)
                and isinstance(each, ast.Call)
                and ast.unparse(each.func) == f"{given.id}.append"
            ):
                return each.args[0]
        return None

    # --- going through them ------------------------------------------------------------------------------------

    def _gone_through(self, each: ast.Name) -> list[Replacement] | str | None:
        """What `for` and comprehensions over the list become."""
        source = self.source
        node: ast.AST = each
        while isinstance(source.parents[node], ast.Call):
            node = source.parents[node]
        around = source.parents[node]
        if isinstance(around, ast.For) and around.iter is node:
            return self._in_loop(around)
        if isinstance(around, ast.comprehension) and around.iter is node:
            return self._in_comprehension(around)
        return None

    def _in_comprehension(self, made: ast.comprehension) -> list[Replacement] | str | None:
        source = self.source
        node = source.parents[made]
        whole = source.parents[node]
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
            return None
        pairs = self._pairs(made.target, made.iter)
        if made.ifs or pairs is None or writes([node]):
            return None
        statement = source.enclosing_statement(node)
        item = self._inside(statement, made.target, made.iter).of(node.elt)
        if isinstance(whole, ast.Assign) and whole.value is node and isinstance(node, ast.ListComp):
            return self._as_list(whole, item)
        if not isinstance(whole, ast.Call) or not whole.args or whole.args[0] is not node:
            return None
        called = ast.unparse(whole.func)
        if called in (f"{self.torch}.stack", f"{self.torch}.cat"):
            return self._joined(whole, item)
        if called != "sum" or whole.keywords or item.what != "tensor":
            return None
        return self._masked(node.elt, "0") + self._with_runs(made.target, made.iter, pairs)

    def _as_list(self, statement: ast.Assign, item: Kind) -> str | None:
        """The name of the list that `statement` makes, which takes part from there."""
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Name):
            return None
        stores = [
            each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == target.id
        ]
        stores = [each for each in stores if not isinstance(each.ctx, ast.Load)]
        if len(stores) != 1 or target.id in self.ends:
            return None
        self.lists[target.id] = item
        return target.id

    def _in_loop(self, loop: ast.For) -> list[Replacement] | None:
        """A `for` that adds up what the items give, with what the rounds that eager had not give weighed with zero."""
        live = Liveness(self.function).live_after(loop)
        pairs = self._pairs(loop.target, loop.iter)
        if pairs is None or loop.orelse or exits(loop.body) != {"falls"} or set(bound(loop.target)) & live:
            return None
        now = self._inside(loop, loop.target, loop.iter)
        try:
            refuse_effects(self.source, loop.body, now, self.function)
        except Refused:
            return None
        swaps = self._with_runs(loop.target, loop.iter, pairs)
        carried = live_before(loop.body, frozenset(), self.function) & set(bound(loop.body))
        sums = [each for each in loop.body if self._added(each) is not None]
        totals = [name for each in sums for name in bound(each)]
        for each in loop.body:
            added = self._added(each)
            if added is None:
                plain = isinstance(each, ast.Assign) and not writes([each])
                if not plain or set(bound(each)) & (live | carried | set(totals)):
                    return None
            elif now.of(added[0]).what != "tensor" or reads(added[0]) & set(totals):
                return None
            else:
                swaps += self._masked(*added)
            now.run([each])
        others = [each for each in loop.body if each not in sums]
        return swaps if sums and not reads(others) & set(totals) and len(set(totals)) == len(totals) else None

    def _added(self, node: ast.stmt) -> tuple[ast.expr, str] | None:
        """What `node` adds to or multiplies into a name, and what leaves that as it is: `total += value`."""
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            neutral = _NEUTRAL.get(type(node.op))
            return None if neutral is None else (node.value, neutral)
        if not (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp)
        ):
            return None
        target, value = node.targets[0], node.value
        neutral = _NEUTRAL.get(type(value.op))
        if not isinstance(target, ast.Name) or neutral is None:
            return None
        if isinstance(value.left, ast.Name) and value.left.id == target.id:
            return value.right, neutral
        swapped = isinstance(value.right, ast.Name) and value.right.id == target.id
        return (value.left, neutral) if swapped and not isinstance(value.op, ast.Sub) else None

    def _masked(self, node: ast.expr, neutral: str) -> list[Replacement]:
        """`node` where eager had the round, and else `neutral`."""
        return [self.source.swap(node, f"{self.torch}.where({self.run}, {self.source.of(node)}, {neutral})")]

    def _with_runs(self, target: ast.expr, over: ast.expr, texts: tuple[str, str]) -> list[Replacement]:
        self.asked.add(self.runs)
        return [self.source.swap(target, texts[0]), self.source.swap(over, texts[1])]

    def _pairs(self, target: ast.expr, over: ast.expr) -> tuple[str, str] | None:
        """The texts of `target` and of what it goes over, with `run` out of `runs` beside."""
        source = self.source
        if isinstance(over, ast.Name) and over.id in self.lists:
            text = source.of(target)
            text = f"({text})" if isinstance(target, ast.Tuple) and not text.startswith("(") else text
            return f"{text}, {self.run}", f"zip({over.id}, {self.runs})"
        if not isinstance(over, ast.Call) or not isinstance(target, ast.Tuple):
            return None
        called = ast.unparse(over.func)
        if called == "enumerate" and over.args and len(target.elts) == 2:
            inner = self._pairs(target.elts[1], over.args[0])
            if inner is None:
                return None
            right = source.of(over, [source.swap(over.args[0], inner[1])])
            return f"{source.of(target.elts[0])}, ({inner[0]})", right
        if called != "zip" or over.keywords or len(over.args) != len(target.elts):
            return None
        starred = any(isinstance(each, ast.Starred) for each in (*over.args, *target.elts))
        if starred or not any(isinstance(each, ast.Name) and each.id in self.lists for each in over.args):
            return None
        names = ", ".join(map(source.of, target.elts))
        return f"{names}, {self.run}", f"zip({', '.join(map(source.of, over.args))}, {self.runs})"

    def _inside(self, statement: ast.stmt, target: ast.expr, over: ast.expr) -> Kinds:
        """The kinds where `target` is gone through."""
        now = kinds_before(self.function, statement, self.kinds)
        now._assign_iteration(ast.For(target=target, iter=over, body=[], orelse=[]))
        for part, one in _parts(target, over):
            if isinstance(one, ast.Name) and one.id in self.lists:
                now.assign(part, self.lists[one.id])
        return now


def _parts(target: ast.expr, over: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What each part of `target` goes over."""
    if not isinstance(over, ast.Call):
        yield target, over
    elif isinstance(target, ast.Tuple) and ast.unparse(over.func) == "zip":
        yield from zip(target.elts, over.args, strict=False)
    elif isinstance(target, ast.Tuple) and ast.unparse(over.func) == "enumerate" and len(target.elts) == 2:
        yield from _parts(target.elts[1], over.args[0])


def _is_one_row(value: ast.expr | None, dim: int) -> bool:
    """Whether `value` certainly has one element along `dim`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return ast.unparse(value).endswith((f".unsqueeze({dim})", f".unsqueeze(dim={dim})"))


def _int(node: ast.expr) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    return sign * node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
