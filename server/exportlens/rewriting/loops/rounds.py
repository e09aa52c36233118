"""Loops of few rounds that tensor data leaves early, where a flag cannot say all: each round is a call of a function.

    for i in range(4):             def next_round(rounds, step):
        y = x - step * g               if not rounds:
        if low(y):                         return x - step * g
            break                      i = rounds[0]
        step = step * 0.5              y = x - step * g
    return x - step * g                if low(y):
                                           return x - step * g
                                       step = step * 0.5
                                       return next_round(rounds[1:], step)
                                   return next_round(list(range(4)), 1.0)

The branches of the function hang on tensor data like any other, and are rewritten as such. Each round is traced inside of
the branch that leads to it, with the Python numbers that it has there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from exportlens.inference.values import Const, Instance
from exportlens.inference.values import Sequence as Items
from exportlens.rewriting.branches.outputs import Outputs, is_again
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import (
    Liveness,
    always_bound,
    certainly_bound_before,
    exits,
    live_before,
)
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import AGAIN, Kind, numbers
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects, visit, writes_of
from exportlens.rewriting.state.begun_questions import asks_for_none

# Where gradients are recorded torch traces a branch in a branch twice as long for each level (measured on torch 2.13).
_DEEPEST = 8
# Each way on through a round leads to all rounds after it.
_MOST_WAYS = 4
# What follows the loop is written out wherever the loop is left.
_MOST_COPIED = 16
# What may ask for more than whether a name is None.
_DECIDING = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.For, ast.Assert, ast.Match)


def ways_out(loop: ast.For) -> int:
    """In how many ways the loop's body may leave it: by `break`, and by each value that it returns."""
    values = {ast.unparse(each) for each in ast.walk(loop) if isinstance(each, ast.Return)}
    return len(values) + ("breaks" in exits(loop.body))


def in_rounds(source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str) -> tuple[str, str, Kinds]:
    """The whole text with `loop` as a function that calls itself, the name of that function, and the kinds in it; `kinds`
    are those inside of the loop. Raises Refused."""
    if not isinstance(loop, ast.For):
        raise Refused("how many rounds the loop has is not known")
    return _Rounds(source, loop, kinds, torch).result()


class _Rounds:
    def __init__(self, source: Source, loop: ast.For, kinds: Kinds, torch: str) -> None:
        self.source, self.loop, self.kinds, self.torch = source, loop, kinds, torch
        function = source.enclosing_function(loop)
        if function is None:
            raise Refused("the loop is not inside a function")
        self.function: Function = function
        self.before = kinds_before(function, loop, kinds)
        self.unit, self.nl = source.indent_unit(), source.newline
        block, index = source.block_of(loop)
        self.after = block[index + 1 :]
        self._refuse_places()
        self.taken = every_name(source.tree)
        self.name, self.rounds = fresh("next_round", self.taken), fresh("rounds", self.taken)
        self.carried = self._carried()
        self.calls = 0

    # --- what is taken ---------------------------------------------------------------------------------------

    def _refuse_places(self) -> None:
        source, loop = self.source, self.loop
        if not source.begins_line(loop) or loop.orelse:
            raise Refused("the loop has an `else`, or shares its line")
        for each in source.ancestors(loop):
            if each is self.function:
                break
            if not isinstance(each, ast.If):
                raise Refused("the loop stands in another loop, a `with` or a `try`")
        at_the_end = not self.after and loop in self.function.body and self._last_returns()
        if not at_the_end and (
            not self.after or "falls" in exits(self.after) or exits(self.after) - {"returns"}
        ):
            raise Refused("what follows the loop does not return a value")
        if exits(loop.body) & {"raises"}:
            raise Refused("the loop's body may raise")
        ways = sum(isinstance(each, ast.Break) for each in ast.walk(loop)) + 1
        if (
            ways * sum(isinstance(each, ast.stmt) for one in self.after for each in ast.walk(one))
            > _MOST_COPIED
        ):
            raise Refused("much of what follows the loop would have to be written out wherever it is left")
        for each in ast.walk(loop):
            if isinstance(each, (ast.Try, ast.With)) or (
                each is not loop and isinstance(each, (ast.For, ast.While)) and "returns" in exits([each])
            ):
                raise Refused("the loop is left from inside of another statement than an `if`")
        for name in sorted(reads([loop, *self.after])):
            known = self.before.names.get(name)
            if known is not None and known.what == "scalar":
                raise Refused(f"`{name}` is a number from data, and torch.cond takes in none")
        refuse_effects(source, [loop, *self.after], self.before, self.function)
        self._refuse_writes()

    def _last_returns(self) -> bool:
        """Whether the last round certainly returns: `if found or i == len(self.steps) - 1: return x`."""
        for each in self.loop.body:
            if not isinstance(each, ast.If) or "falls" in exits(each.body) or exits(each.body) - {"returns"}:
                continue
            is_any = isinstance(each.test, ast.BoolOp) and isinstance(each.test.op, ast.Or)
            tests = each.test.values if is_any else [each.test]  # type: ignore[attr-defined]
            if any(map(self._asks_for_last, tests)):
                return not any(isinstance(one, ast.Continue) for one in ast.walk(self.loop))
        return False

    def _asks_for_last(self, test: ast.expr) -> bool:
        loop = self.loop
        called = loop.iter if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1 else None
        name = dotted(called.func) if called is not None else None
        target = (
            loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
        )
        if called is None or called.keywords or name != ("range" if target is loop.target else "enumerate"):
            return False
        if set(bound(target)) & set(bound(loop.body)):
            return False
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) > 1:
            return False
        count = ast.unparse(called.args[0])
        last = ast.unparse(test.comparators[0])
        return ast.unparse(test.left) == ast.unparse(target) and last in (
            f"{count} - 1" if name == "range" else f"len({count}) - 1",
            f"{(count_of(loop.iter, self.before) or 0) - 1}",
        )

    def _refuse_writes(self) -> None:
        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                if not (now.of(write.base).fresh or self._is_of_the_round(write.base)):
                    raise Refused(f"`{self.source.of(write.base)}` is written in place")
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                own = isinstance(target, ast.Subscript) and self._is_of_the_round(target.value)
                if isinstance(target, (ast.Attribute, ast.Subscript)) and not own:
                    raise Refused(f"the loop sets `{self.source.of(target)}`")

        visit([self.loop, *self.after], self.before.copy(), see)

    def _is_of_the_round(self, base: ast.expr) -> bool:
        """Whether `base` is a tensor that each round makes for itself: torch.cond lets an arm write what it has made."""
        stores = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and each.id == getattr(base, "id", "")
            and not isinstance(each.ctx, ast.Load)
        ]
        inside = set(ast.walk(self.loop))
        entering = live_before(self.loop.body, frozenset(), self.function)
        if not stores or not isinstance(base, ast.Name) or base.id in entering:
            return False
        if base not in inside or not inside.issuperset(stores):
            return False
        for each in stores:
            statement = self.source.enclosing_statement(each)
            if isinstance(statement, ast.AugAssign):
                continue
            if not isinstance(statement, ast.Assign) or statement.targets != [each]:
                return False
            now = kinds_before(self.function, statement, self.kinds)
            if not now.of(statement.value).fresh:
                return False
        return True

    def _carried(self) -> list[str]:
        """The names that a round takes from the one before it, or from before the loop."""
        changed = bound([self.loop, *self.after])
        entering = live_before(self.loop.body, frozenset(), self.function) - set(bound(self.loop.target))
        needed = entering | Liveness(self.function).live_after(self.loop)
        return [name for name in changed if name in needed]

    def _anew(self) -> set[str]:
        """The names that each round binds before it reads them: what they were before the loop, as None, no round sees."""
        entering = live_before(self.loop.body, frozenset(), self.function)
        # A round may break, or lead to the next, before it comes to the others.
        leaving = (at for at, each in enumerate(self.loop.body) if exits([each]) & {"breaks", "continues"})
        certain = self.loop.body[: next(leaving, len(self.loop.body))]
        return always_bound(certain) - entering

    def _refuse_late(self, name: str) -> None:
        """Raise Refused where `name`, which has no value yet, is bound first in a loop of a round that may break off: what becomes of
        that gives the value of the round before where it is left."""
        binding = next((each for each in self.loop.body if name in bound([each])), None)
        if isinstance(binding, (ast.For, ast.While)) and exits(binding.body) & {"breaks", "continues"}:
            raise Refused(
                f"`{name}` is first bound in an inner loop that may break off: bind it before the outer one"
            )

    # --- writing -----------------------------------------------------------------------------------------------

    def result(self) -> tuple[str, str, Kinds]:
        source, loop = self.source, self.loop
        number = count_of(loop.iter, self.before)
        if number is None:
            raise Refused("how many rounds the loop has is not known")
        indent = source.indent_of(loop)
        inner = indent + self.unit
        certain = certainly_bound_before(self.function, loop) - self._anew()
        first = [name for name in self.carried if name in certain]
        later = [name for name in self.carried if name not in certain]
        self.carried = first + later
        for name in later:
            self._refuse_late(name)
        body = self._block(loop.body, inner)
        branches = sum(isinstance(each, ast.If) for each in ast.walk(loop))
        if not 0 < number <= _DEEPEST // branches or self.calls**number > _MOST_WAYS:
            raise Refused("the loop has many rounds, or none")
        parameters = ", ".join([self.rounds, *first, *(f"{name}=None" for name in later)])
        start, end = source.span([loop])[0], source.span([[loop, *self.after][-1]])[1]
        comments = source.comments_between(start, source.start(loop))
        text = self.nl.join(
            [
                *(indent + each for each in comments),
                f"{indent}def {self.name}({parameters}):",
                *([f"{inner}if not {self.rounds}:", self._rest(inner + self.unit)] if self.after else []),
                f"{inner}{source.of(loop.target)} = {self.rounds}[0]",
                body,
                "",
                f"{indent}return {self.name}({', '.join([f'list({source.of(loop.iter)})', *first])})",
            ]
        )
        gap = source.gap_before(loop)
        changed = Source(replaced(source.text, [Replacement(start, end, gap + text)]))
        inside = self._inside()
        return self._of_tensors(changed, inside), self.name, inside

    def _rest(self, indent: str) -> str:
        return self.source.block(self.after, indent)

    def _block(self, statements: Sequence[ast.stmt], indent: str) -> str:
        """The statements of one round, which end in the next one."""
        lines = self._inner(statements, indent)
        if "falls" in exits(statements):
            lines.append(self._next(indent))
        return self.nl.join(lines)

    def _next(self, indent: str) -> str:
        self.calls += 1
        return f"{indent}return {self.name}({', '.join([f'{self.rounds}[1:]', *self.carried])})"

    def _inner(self, statements: Sequence[ast.stmt], indent: str) -> list[str]:
        source = self.source
        lines: list[str] = []
        for node in statements:
            if isinstance(node, ast.Break):
                lines.append(self._rest(indent))
            elif isinstance(node, ast.Continue):
                lines.append(self._next(indent))
            elif isinstance(node, ast.If) and exits([node]) & {"breaks", "continues"}:
                lines += self._branch(node, indent)
            else:
                lines.append(source.block([node], indent))
        return lines

    def _branch(self, node: ast.If, indent: str) -> list[str]:
        source = self.source
        lines = [
            indent + each for each in source.comments_between(source.span([node])[0], source.start(node))
        ]
        lines.append(f"{indent}if {source.of(node.test)}:")
        lines += [
            indent + self.unit + each
            for each in source.comments_between(source.end(node.test), source.span(node.body)[0])
        ]
        lines += self._inner(node.body, indent + self.unit)
        if node.orelse:
            lines += [f"{indent}else:", *self._inner(node.orelse, indent + self.unit)]
        return lines

    # --- kinds -------------------------------------------------------------------------------------------------

    def _inside(self) -> Kinds:
        """The kinds at the start of the function."""
        inside = self.before.copy()
        inside.told = inside.told or self.kinds.names
        through = inside.copy()
        through.run([self.loop])
        one_round = inside.copy()
        one_round._assign_iteration(self.loop)
        one_round.run(self.loop.body)
        anew = self._anew()
        for name in self.carried:
            # The first round binds what is None before it, and all that reads it then has a value.
            first = name in anew or begins_in_first_round(self.loop.body, name)
            known = (one_round if first else through).names.get(name, Kind("unknown"))
            inside.names[name] = replace(known, roots=frozenset({name}), value=None)
        element = inside.copy()
        element._assign_iteration(self.loop)
        inside.names[self.rounds] = Kind("container", items=(self._element(self.loop.target, element),))
        inside.names[self.name] = Kind("object", type=AGAIN)
        return inside

    def _element(self, target: ast.expr, kinds: Kinds) -> Kind:
        if isinstance(target, (ast.Tuple, ast.List)):
            return Kind("container", items=tuple(self._element(each, kinds) for each in target.elts))
        known = kinds.of(target)
        return known if known.roots is not None else replace(known, roots=frozenset({f"?{next(numbers)}"}))

    def _of_tensors(self, source: Source, kinds: Kinds) -> str:
        """The text in which the function returns tensors that share no memory, and the call behind it what they stand for."""
        function = next(
            each
            for each in ast.walk(source.tree)
            if isinstance(each, ast.FunctionDef) and each.name == self.name
        )
        found: list[tuple[ast.Return, Kinds]] = []
        mark = kinds.mark()

        def see(node: ast.stmt, now: Kinds) -> None:
            if isinstance(node, ast.Return) and not is_again(node.value, now):
                found.append((node, now.copy()))

        visit(function.body, kinds.copy(), see)
        outputs = Outputs(source, self.torch, mark)
        shape = outputs.shape([(node.value, now) for node, now in found])
        swaps = [
            source.swap(node, f"return {outputs.returned(node, now, shape, set())}") for node, now in found
        ]
        block, index = source.block_of(function)
        call = block[index + 1]
        assert isinstance(call, ast.Return) and call.value is not None
        indent = source.indent_of(call)
        lines = shape.lines(indent, self.taken)
        text = self.nl.join(lines).removeprefix(indent).replace("{call}", source.of(call.value))
        return replaced(source.text, [*swaps, source.swap(call, text)])


def begins_in_first_round(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether each round of `body` first asks, in one plain statement, whether `name` is None, and binds it on both ways:
    `best = p if best is None else torch.maximum(best, p)`, or the same with `if`."""
    first = next((each for each in body if name in reads(each) or name in bound(each)), None)
    if first is None or any(exits([each]) - {"falls"} for each in body[: body.index(first) + 1]):
        return False
    if isinstance(first, ast.Assign) and isinstance(first.value, ast.IfExp):
        choice: ast.If | ast.IfExp = first.value
    elif isinstance(first, ast.If):
        choice = first
    else:
        return False
    asks = asks_for_none(choice.test, name) is not None
    inner = [each for each in ast.walk(first) if each is not choice and isinstance(each, _DECIDING)]
    return asks and not inner and name in always_bound([first])


def has_rounds(node: ast.expr, kinds: Kinds) -> bool:
    """Whether iterating over `node` certainly gives an element."""
    return kinds.has_elements(node) or bool(count_of(node, kinds))


def count_of(node: ast.expr, kinds: Kinds) -> int | None:
    """How many elements iterating over `node` gives, None where that is not known."""
    if isinstance(node, ast.Call) and not node.keywords and node.args:
        name = dotted(node.func)
        if name == "range":
            limits = [_limit(each, kinds) for each in node.args]
            known = [each for each in limits if each is not None]
            return len(range(*known)) if len(known) == len(limits) else None
        if name in ("enumerate", "reversed", "list", "tuple"):
            return count_of(node.args[0], kinds)
        if name == "zip":
            counts = [count_of(each, kinds) for each in node.args]
            return None if None in counts else min(each for each in counts if each is not None)
    kind = kinds.of(node)
    if isinstance(kind.value, Instance):
        modules = kind.value.attributes.get("__items__")
        return len(modules.items) if isinstance(modules, Items) and modules.items is not None else None
    return len(kind.items) if kind.what == "container" and kind.items is not None else None


def _limit(node: ast.expr, kinds: Kinds) -> int | None:
    """The number that `node` is, a constant or how many layers there are; None where that is not known."""
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return count_of(node.args[0], kinds)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _limit(node.left, kinds), _limit(node.right, kinds)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    value = kinds.of(node).value
    return value.value if isinstance(value, Const) and type(value.value) is int else None
