"""Names that are None until a round of a loop gives them a value, and are asked for that: a flag says whether they have one.

    low = None                            low, has_low = beta, False
    for _ in range(20):                   for _ in range(20):
        if far(beta):                         if far(beta):
            low = beta                ->          low = beta
            beta = beta * 2                       has_low = True
        elif low is None:                         beta = beta * 2
            beta = beta / 2                   elif not has_low:
        else:                                     beta = beta / 2
            beta = (beta + low) / 2           else:
                                                  beta = (beta + low) / 2

Tensor data chooses among tensors and numbers, and never whether there is one. What the name begins with is the name's that it
gets its value from, which is of the same kind, and is never read; or a number; or what the first round computes.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.code.liveness import (
    always_bound,
    certainly_bound_before,
    exits,
    leaves,
    live_before,
)
from exportlens.rewriting.code.names import arguments, assigned_pairs, bound, every_name, fresh, is_none
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.filled_by_rounds import Filler, filled_at, filled_by_rounds
from exportlens.rewriting.loops.moved_values import part_of_call, written_out
from exportlens.rewriting.loops.told_by_flags import told_by_flag
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

Loop = ast.For | ast.While


def flags_for_none(source: Source, loop: Loop, kinds: Kinds, torch: str) -> tuple[Source, Loop, Kinds] | None:
    """The text where flags say which names of `loop` are not None, the loop, and the kinds inside of it; None where there are no
    such names. `kinds` are those inside of the loop."""
    found = _flags(source, loop, kinds, torch)
    return None if found is None else found[:3]


def _flags(
    source: Source, loop: Loop, kinds: Kinds, torch: str
) -> tuple[Source, Loop, Kinds, list[Filler]] | None:
    """As `flags_for_none`, with what is bound in front of a statement of the loop."""
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop):
        return None
    names = _Names(source, function, loop)
    found = [
        each
        for name in bound(loop.body)
        if (each := _Unset.of(names, name, kinds) or _Unset.unbound(names, name, kinds)) is not None
    ]
    found, fillers = _with_beginnings(names, found, kinds)
    if not found:
        return None
    kinds, taken = kinds.copy(), every_name(source.tree)
    indent, nl, begin = source.indent_of(loop), source.newline, source.start(loop)
    head, swaps = "", []
    for each in found:
        # What nothing asks for has a value where another one has.
        flag = fresh(f"has_{each.name}", taken) if each.asked else ""
        pairs = [(flag, "False")] * bool(flag)
        if each.first is not None or not each.begins:
            pairs.insert(0, (each.name, each.first or "None"))
        if pairs:
            targets, values = (", ".join(parts) for parts in zip(*pairs, strict=True))
            head += f"{targets} = {values}{nl}{indent}"
        if flag:
            swaps += each.swaps(flag)
            kinds.names[flag] = Kind("number", type="bool")
        if each.first is not None:
            kinds.names[each.name] = kinds.names.get(each.first, Kind("number", type=each.type))
    for filler in fillers:
        own = replace(kinds.of(filler.value), roots=frozenset(), parted=False, later=False)
        kinds.assign(ast.Name(filler.name, ast.Store()), own)
    swaps += filled_at(source, fillers, torch)
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), *swaps]))
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    loop = next(each for each in same if changed.start(each) == begin + len(head))
    return changed, loop, kinds, fillers


def _with_beginnings(names: _Names, found: list[_Unset], kinds: Kinds) -> tuple[list[_Unset], list[Filler]]:
    """Those of `found` that begin with something, and how the tensors among them do."""
    while True:
        open_ones = [each for each in found if each.first is None]
        fillers = filled_by_rounds(
            names.source, names.function, names.loop, {each.name: each.given for each in open_ones}, kinds
        )
        filled = {each.name for each in fillers}
        kept = [each for each in found if each.first is not None or each.name in filled]
        if len(kept) == len(found):
            return found, fillers
        found = kept


def flags_around(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If, Kinds] | None:
    """As `flags_for_none` of a loop around `node`, the branch of the new text and the kinds just before it."""
    loops = [each for each in source.ancestors(node) if isinstance(each, (ast.For, ast.While))]
    found = next(filter(None, (_flags(source, each, kinds, torch) for each in loops)), None)
    if found is None:
        return None
    # What binds a name in front of a statement of the loop is a branch as well.
    place = _branches(source).index(node) + sum(
        source.start(each.place) <= source.start(node) for each in found[3]
    )
    return found[0], _branches(found[0])[place], found[2]


def may_be_passed_over(source: Source, node: ast.If) -> bool:
    """Whether `node` asks for more than whether a name is None, `low is None or x > low`, in a loop of which a round may go on to the
    next one before: then no round is the one that certainly gives it a value."""
    asks = isinstance(node.test, ast.BoolOp) and any(
        isinstance(each, ast.Compare)
        and isinstance(each.left, ast.Name)
        and _asks(each, each.left) is not None
        for each in walk(node.test)
    )
    block, index = source.block_of(node)
    return asks and any("continues" in exits([each]) for each in block[:index] if isinstance(each, ast.If))


def _branches(source: Source) -> list[ast.If]:
    return sorted((each for each in walk(source.tree) if isinstance(each, ast.If)), key=source.start)


class _Names:
    """A loop of a function, and where the function binds and reads each name."""

    def __init__(self, source: Source, function: Function, loop: Loop):
        self.source, self.function, self.loop = source, function, loop
        self.inside = {id(each) for each in walk(loop)}
        self.before = source.block_of(loop)[0][: source.block_of(loop)[1]]
        self._uses: dict[str, list[ast.Name]] = {}
        for each in walk(function):
            if isinstance(each, ast.Name):
                self._uses.setdefault(each.id, []).append(each)

    def uses(self, name: str) -> list[ast.Name]:
        return self._uses.get(name, [])

    def blocks(self, name: str) -> list[tuple[int, bool]]:
        """The blocks of statements that bind `name`, but for what it begins with, each with whether they bind it to None."""
        found = []
        for each in self.uses(name):
            statement = self.source.enclosing_statement(each)
            if not isinstance(each.ctx, ast.Load) and statement not in self.before:
                value = _given(statement, each)
                found.append((id(self.source.block_of(statement)[0]), value is not None and is_none(value)))
        return sorted(found)

    def alike(self, name: str) -> set[str]:
        """`name`, and what is None before the loop, and bound wherever `name` is: it is not None where `name` is not."""
        own = self.blocks(name)
        return {name} | {
            each for each in bound(self.loop.body) if self.blocks(each) == own and self.begun(each) == 1
        }

    def again(self, name: str) -> list[str]:
        """The names that `name` has behind the loop as well, where nothing binds it any more: `b = best`. What one of them is bound
        to later must be asked for no more."""
        found = []
        last = max(self.source.start(each) for each in self.uses(name) if not isinstance(each.ctx, ast.Load))
        for each in self.uses(name):
            other = _given_again(self.source, each) if isinstance(each.ctx, ast.Load) else None
            begin = self.source.start(each)
            if other is None or id(each) in self.inside or begin < last:
                continue
            uses = self.uses(other)
            stores = [self.source.start(one) for one in uses if not isinstance(one.ctx, ast.Load)]
            later = [one for one in stores if one > begin]
            asked = [self.source.start(one) for one in uses if _asks(self.source.parents[one], one)]
            if len(later) == len(stores) - 1 and all(one < min(later, default=one + 1) for one in asked):
                found.append(other)
        return found

    def begun(self, name: str) -> int:
        """How often `name` is bound to None before the loop, where it is bound to nothing else there; else 0."""
        count = 0
        for each in self.uses(name):
            if not isinstance(each.ctx, ast.Load):
                statement = self.source.enclosing_statement(each)
                if statement in self.before:
                    value = _given(statement, each)
                    if value is None or not is_none(value):
                        return 0
                    count += 1
        return count


class _Unset:
    """A name that is None before a loop, with what asks for it and what gives it a value."""

    def __init__(
        self,
        source: Source,
        name: str,
        stores: list[ast.stmt],
        resets: list[ast.stmt],
        given: list[ast.expr],
        asked: list[ast.Compare],
    ):
        self.source, self.name, self.stores, self.resets = source, name, stores, resets
        self.given, self.asked = given, asked
        self.first: str | None = None
        self.type = "float"
        # Whether the text has it begin with None.
        self.begins = True

    @classmethod
    def of(cls, names: _Names, name: str, kinds: Kinds) -> _Unset | None:
        """`name` where it is nothing else; None for any other."""
        source, function, loop = names.source, names.function, names.loop
        uses = names.uses(name)
        if names.begun(name) != 1 or any(source.enclosing_function(each) is not function for each in uses):
            return None
        if any(_own_scope(source, each, function) for each in uses) or name in {
            each.arg for each in arguments(function.args)
        }:
            return None
        stores: list[ast.stmt] = []
        given: list[ast.expr] = []
        resets: list[ast.stmt] = []
        for each in uses:
            statement = source.enclosing_statement(each)
            if isinstance(each.ctx, ast.Load) or statement in names.before:
                continue
            value = _given(statement, each) or part_of_call(statement, each)
            if value is None or not source.begins_line(statement):
                return None
            if is_none(value):
                if id(each) not in names.inside or not _binds_alone(statement):
                    return None
                resets.append(statement)
                continue
            if id(each) in names.inside:
                given += _ways(value, name)
            elif source.start(statement) < source.start(loop):
                return None
            stores.append(statement)
        asked: list[ast.Compare] = []
        again = names.again(name)
        alike = names.alike(name) | set(again)
        for each in (*uses, *(use for other in again for use in names.uses(other))):
            if not isinstance(each.ctx, ast.Load) or _given_again(source, each) in again:
                continue
            test = _asks(source.parents[each], each)
            if source.start(each) < source.start(loop):
                return None
            if test is not None:
                asked.append(test)
            elif not any(is_guarded(source, each, function, one, resets) for one in alike):
                return None
        if not given or (not asked and (resets or alike == {name})):
            return None
        found = cls(source, name, stores, resets, given, asked)
        found._begin(names, kinds)
        return found

    @classmethod
    def unbound(cls, names: _Names, name: str, kinds: Kinds) -> _Unset | None:
        """`name` where only rounds of the loop bind it, and it is read where they have; None for any other."""
        source, function, loop = names.source, names.function, names.loop
        uses = names.uses(name)
        stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
        statements = [source.enclosing_statement(each) for each in stores]
        given = [_given(statement, each) for statement, each in zip(statements, stores, strict=True)]
        if name in {each.arg for each in arguments(function.args)} or any(
            id(each) not in names.inside or source.enclosing_function(each) is not function for each in stores
        ):
            return None
        if name not in live_before(loop.body, frozenset(), function) or not told_by_flag(
            source, function, loop, name
        ):
            return None
        values = [each for each in given if each is not None]
        if len(values) < len(given) or not values:
            return None
        found = cls(source, name, statements, [], values, [])
        found.begins = False
        found._begin(names, kinds)
        return found

    def _begin(self, names: _Names, kinds: Kinds) -> None:
        """What the name may begin with: another name for what it gets, or a number."""
        function, loop = names.function, names.loop
        others = {each.id if isinstance(each, ast.Name) else "" for each in self.given}
        if len(others) == 1 and others <= certainly_bound_before(function, loop):
            first = others.pop()
            known, now = kinds_before(function, loop, kinds).names.get(first), kinds.names.get(first)
            alike = known is not None and now is not None and (known.what, known.type) == (now.what, now.type)
            if alike and known is not None and known.what in ("tensor", "number"):
                self.first = first
            return
        of = [
            kinds_before(function, self.source.enclosing_statement(written_out(value)), kinds).of(value)
            for value in self.given
        ]
        types = {each.type for each in of}
        if {each.what for each in of} <= {"number", "scalar", "size"} and len(types) == 1:
            self.type = types.pop()
            self.first = {"float": "0.0", "int": "0", "bool": "False"}.get(self.type)

    def swaps(self, flag: str) -> list[Replacement]:
        """The changes behind the beginning of the loop."""
        source, found = self.source, []
        for each in self.asked:
            text = flag if isinstance(each.ops[0], ast.IsNot) else f"not {flag}"
            found.append(source.swap(each, text))
        last = max(map(source.start, self.asked))
        for statement in self.stores:
            end = source.span([statement])[1]
            if self._is_asked_behind(statement, last):
                found.append(
                    Replacement(end, end, f"{source.newline}{source.indent_of(statement)}{flag} = True")
                )
        found += [source.swap(statement, f"{flag} = False") for statement in self.resets]
        return found

    def _is_asked_behind(self, statement: ast.stmt, last: int) -> bool:
        in_loop = any(isinstance(each, (ast.For, ast.While)) for each in self.source.ancestors(statement))
        return in_loop or self.source.start(statement) < last


def _binds_alone(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and [*map(type, statement.targets)] == [ast.Name]


def _given_again(source: Source, use: ast.Name) -> str | None:
    """The name that the one statement `name = use` binds."""
    statement = source.parents[use]
    if isinstance(statement, ast.Assign) and statement.value is use and _binds_alone(statement):
        return ast.unparse(statement.targets[0])
    return None


def _given(statement: ast.stmt, target: ast.Name) -> ast.expr | None:
    """What `statement` binds `target` to."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    return next((value for one, value in assigned_pairs(statement) if one is target), None)


def _ways(value: ast.expr, name: str) -> list[ast.expr]:
    """What `value` may be: both sides of a ternary that asks whether `name` is None."""
    if isinstance(value, ast.IfExp) and (_tells(value.test, name, True) or _tells(value.test, name, False)):
        return [value.body, value.orelse]
    return [value]


def _asks(node: ast.AST, name: ast.Name) -> ast.Compare | None:
    """`node` where it asks whether `name` is None."""
    if not isinstance(node, ast.Compare) or node.left is not name or len(node.ops) != 1:
        return None
    is_asked = isinstance(node.ops[0], (ast.Is, ast.IsNot)) and is_none(node.comparators[0])
    return node if is_asked else None


def is_guarded(source: Source, use: ast.Name, function: Function, name: str, resets: list[ast.stmt]) -> bool:
    """Whether `use` is read only where `name` is not None, as it was asked right around it, or before it by what binds it or leaves
    where it is, and not set back since by one of `resets`."""
    place = source.start(use)

    def since(node: ast.AST) -> bool:
        return any(source.start(node) < source.start(each) < place for each in resets)

    inner: ast.AST = use
    for outer in source.ancestors(use):
        if isinstance(outer, ast.BoolOp):
            before = outer.values[: outer.values.index(inner)]  # type: ignore[arg-type]
            if any(_tells(each, name, isinstance(outer.op, ast.And)) for each in before):
                return True
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if _tells(outer.test, name, any(each is inner for each in body)) and not since(outer):
                return True
        if isinstance(inner, ast.stmt):
            block, index = source.block_of(inner)
            if any(_settles(each, use.id, name) and not since(each) for each in block[:index]):
                return True
        if outer is function or isinstance(outer, (ast.For, ast.While)):
            return False
        inner = outer
    return False


def _settles(statement: ast.stmt, used: str, name: str) -> bool:
    """Whether `used` certainly has a value behind `statement`, which asks for `name`: it binds it where there is none, or leaves.
    A loop may run no round; None is no operand then."""
    if isinstance(statement, ast.For):
        runs = exits(statement.body) == {"falls"} and not statement.orelse
        return runs and any(
            isinstance(each, ast.If) and used in always_bound(each.body) and _settles(each, used, name)
            for each in statement.body
        )
    if isinstance(statement, ast.Assert):
        return _tells(statement.test, name, True)
    if not isinstance(statement, ast.If) or statement.orelse or not _tells(statement.test, name, False):
        return False
    return leaves(statement.body) or used in always_bound(statement.body)


def _tells(test: ast.expr, name: str, holds: bool) -> bool:
    """Whether `name` is not None where `test` holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _tells(test.operand, name, not holds)
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) == holds and any(
            _tells(each, name, holds) for each in test.values
        )
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == name):
        return False
    return _asks(test, test.left) is not None and isinstance(test.ops[0], ast.IsNot) == holds


def _own_scope(source: Source, node: ast.AST, function: Function) -> bool:
    for each in source.ancestors(node):
        if each is function:
            return False
        if isinstance(each, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return True
    return False
