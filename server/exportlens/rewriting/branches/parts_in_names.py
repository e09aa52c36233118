"""Dicts, lists and plain objects that a function makes for itself, with a name for each part as long as nothing looks at them as a whole:

    best = {"score": s0, "index": -1}              best_score = s0
    for i, row in enumerate(rows):                 best_index = -1
        s = score(row)                             for i, row in enumerate(rows):
        if s > best["score"]:            ->            s = score(row)
            best["score"] = s                          if s > best_score:
            best["index"] = i                              best_score = s
    return best                                            best_index = i
                                                   return {"score": best_score, "index": best_index}

Names are what the other rewrites of branches and loops choose and carry.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exportlens.finding import Fix
from exportlens.inference.values import Const
from exportlens.rewriting.branches.optional_parts import got_or_zero, is_added_up
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind, of_value
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.state.plain_records import Record, record_of
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)
# Of more parts the names would read worse than what holds them.
_MOST_PARTS = 12
_Key = str | int
_Making = ast.Assign | ast.AnnAssign
_Node = ast.If | ast.For | ast.While


def parts_in_names(
    source: Source, node: _Node, kinds: Kinds, alone: str = ""
) -> tuple[Source, _Node, dict[str, Kind]] | None:
    """The text where what `node` sets parts of is taken apart, `node` of it, and what the new names hold just before it; None where
    there is nothing of the kind. `alone` is the one kind of whole that is."""
    names: dict[str, Kind] = {}
    tried: set[str] = set()
    text = source.text
    while (found := _one_in_names(source, node, kinds, tried, alone)) is not None:
        source, node, told = found
        names |= told
    return (source, node, names) if source.text != text else None


def made_behind_operator(attr: str, place: tuple[Chunk, ast.AST], context: RewriteContext) -> Fix | None:
    """The fix that makes an object with the attribute `attr` behind the branch or loop at `place`, which sets it; None where there is
    none."""
    try:
        draft = Draft.of_chunk(place[0], context)
        found = draft.source.find(place[1])
        statement = draft.source.enclosing_statement(found)
        if not isinstance(statement, (ast.If, ast.For, ast.While)):
            return None
        made = parts_in_names(draft.source, statement, draft.kinds({}), "object")
    except (Refused, LookupError, SyntaxError):
        return None
    if made is None or not any(name.endswith(f"_{attr}") for name in made[2]):
        return None
    return draft.fix("Make the object where it is whole", made[0].text, uses_torch=False)


def _one_in_names(
    source: Source, node: _Node, kinds: Kinds, tried: set[str], alone: str
) -> tuple[Source, _Node, dict[str, Kind]] | None:
    function = source.enclosing_function(node)
    if function is None or any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in walk(function)):
        return None
    taken = every_name(source.tree)
    for name, statements in _makings(source, function):
        if name in tried:
            continue
        tried.add(name)
        try:
            whole = _Whole(source, node, name, statements[0], statements[1:], kinds, alone)
            swaps = whole.swaps(taken)
        except Refused:
            continue
        begin = source.start(node)
        begin += sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
        again = Source(replaced(source.text, swaps))
        for each in walk(again.tree):
            if isinstance(each, (ast.If, ast.For, ast.While)) and again.start(each) == begin:
                return again, each, whole.told(kinds)
    return None


def _makings(source: Source, function: Function) -> list[tuple[str, list[_Making]]]:
    """The names that nothing but statements of their own bind in `function`, with those, in their order."""
    found: dict[str, list[_Making | None]] = {}
    for each in walk(function):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            made = source.parents[each]
            targets = made.targets if isinstance(made, ast.Assign) else [getattr(made, "target", None)]
            plain = isinstance(made, (ast.Assign, ast.AnnAssign)) and targets == [each]
            own = plain and source.begins_line(made) and source.enclosing_function(made) is function
            found.setdefault(each.id, []).append(made if own else None)  # type: ignore[arg-type]
        elif isinstance(each, (ast.Global, ast.Nonlocal)):
            found |= {name: [None] for name in each.names}
    given = {each.arg for each in arguments(function.args)}
    makings = []
    for name, statements in found.items():
        whole = [each for each in statements if each is not None]
        if len(whole) == len(statements) and name not in given:
            makings.append((name, sorted(whole, key=source.start)))
    return makings


@dataclass
class _Whole:
    """What `name` holds from `statement` on, and the branch or loop `node` that sets parts of it."""

    source: Source
    node: _Node
    name: str
    statement: _Making
    # The statements that bind the name to another whole of the same parts.
    others: list[_Making]
    kinds: Kinds
    alone: str
    record: Record = field(init=False)
    again: dict[int, Record] = field(default_factory=dict)
    # The parts that are there at each use of the whole, in their order.
    parts: dict[int, tuple[_Key, ...]] = field(default_factory=dict)
    names: dict[_Key, str] = field(default_factory=dict)
    # Those that only some ways set.
    optional: set[_Key] = field(default_factory=set)

    def swaps(self, taken: set[str]) -> list[Replacement]:
        """What takes it apart. Raises Refused."""
        value = self.statement.value
        record = None if value is None else record_of(value, self.kinds)
        if value is None or record is None or len(record.parts) > _MOST_PARTS or self.name in reads(value):
            raise Refused("it is not made of parts that are written out")
        if self.alone not in ("", record.kind):
            raise Refused("it is another kind of whole")
        self.record = record
        for each in self.others:
            other = None if each.value is None else record_of(each.value, self.kinds)
            if other is None or not record.is_like(other):
                raise Refused("it is bound to something else as well")
            self.again[id(each)] = other
        block, index = self.source.block_of(self.statement)
        uses = self._uses(block[index + 1 :])
        rest, last = block[index + 1 :], self._last(block, index)
        if not self._sets_in_node(uses):
            raise Refused("the branch sets none of it")
        left = self._follow(rest[:last], tuple(record.parts))
        self._refuse_optional(uses)
        for key in self._all_keys(rest[:last]):
            self.names[key] = fresh(f"{self.name}_{self._wish(key)}", taken)
        swaps = [self._begun()]
        behind = rest[last:]
        inside = {id(each) for statement in rest[:last] for each in walk(statement)}
        if any(id(each) not in inside for each in self.others):
            raise Refused("it is made anew where it is used as a whole")
        updates = {id(use): self._update(use) for use in uses if id(use) in inside}
        whole = [self.source.enclosing_statement(use) for use in uses if updates.get(id(use)) is not None]
        whole += self.others
        for use in uses:
            if id(use) in inside and not any(each in whole for each in self.source.ancestors(use)):
                swaps.append(self._used(use))
        for use in uses:
            if (given := updates.get(id(use))) is not None:
                swaps.append(self._set_anew(self.source.enclosing_statement(use), dict(given)))
        swaps += [self._set_anew(each, self.again[id(each)].parts) for each in self.others]
        if any(self.name in reads(each) for each in behind):
            assert left is not None
            line = self.source.newline + self.source.indent_of(behind[0])
            at = self.source.start(behind[0])
            swaps.append(Replacement(at, at, "".join(each + line for each in self._made_again(left))))
        return swaps

    def told(self, kinds: Kinds) -> dict[str, Kind]:
        """What the interpreter knows of the parts at the branch."""
        zero = of_value(Const(0), "")
        return {
            name: zero if key in self.optional else kinds.of(self.record.access(self.name, key))
            for key, name in self.names.items()
        }

    def _uses(self, behind: list[ast.stmt]) -> list[ast.Name]:
        """Where the name is read; all of it behind the statement in the same block, and in no function inside. Raises Refused."""
        function = self.source.enclosing_function(self.node)
        assert function is not None
        uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == self.name]
        uses = [each for each in uses if isinstance(each.ctx, ast.Load)]
        inside = {id(each) for statement in behind for each in walk(statement)}
        for use in uses:
            around = self.source.ancestors(use)
            inner = next((each for each in around if isinstance(each, _FUNCTIONS)), None)
            if id(use) not in inside or inner is not function:
                raise Refused("it is used where it may not be made yet")
        return uses

    def _last(self, block: list[ast.stmt], index: int) -> int:
        """How many statements behind the making only use parts. Raises Refused where the branch is not in one of them."""
        rest = block[index + 1 :]
        around = {id(self.node), *map(id, self.source.ancestors(self.node))}
        last = next(
            (number for number, each in enumerate(rest) if not all(map(self._in_part, self._uses_in(each)))),
            len(rest),
        )
        if not any(id(each) in around for each in rest[:last]):
            raise Refused("it is used as a whole before the branch")
        return last

    def _uses_in(self, node: ast.AST) -> list[ast.Name]:
        names = [each for each in walk(node) if isinstance(each, ast.Name) and each.id == self.name]
        return [each for each in names if isinstance(each.ctx, ast.Load)]

    def _in_part(self, use: ast.Name) -> bool:
        """Whether `use` reads or sets a part, or looks at all parts and keeps nothing."""
        parent = self.source.parents[use]
        if self._got(use) is not None:
            return True
        if self.record.key_of(parent, use) is not None:
            return not isinstance(getattr(parent, "ctx", None), ast.Del)
        return self._is_returned(use) or self._is_looked_at(use) or self._update(use) is not None

    def _got(self, use: ast.Name) -> tuple[_Key, ast.Call] | None:
        return got_or_zero(self.source, use) if self.record.kind == "dict" else None

    def _refuse_optional(self, uses: list[ast.Name]) -> None:
        """Raise Refused where it would show that a part is there that was not: all may only be added up."""
        if not self.optional:
            return
        for use in uses:
            parent = self.source.parents[use]
            key = self.record.key_of(parent, use)
            if key is None and self._got(use) is None and self._update(use) is None:
                if not is_added_up(self.source, use):
                    raise Refused("which parts there are hangs on the branch")
            elif key in self.optional and (
                isinstance(getattr(parent, "ctx", None), ast.Load)
                or isinstance(self.source.parents[parent], ast.AugAssign)
            ):
                raise Refused("a part is read that may not be there")

    def _is_returned(self, use: ast.Name) -> bool:
        statement = self.source.enclosing_statement(use)
        tried = any(isinstance(each, (ast.Try, ast.With)) for each in self.source.ancestors(use))
        return isinstance(statement, ast.Return) and self.record.is_expression and not tried

    def _is_looked_at(self, use: ast.Name) -> bool:
        """Whether what is made of `use` does not hold it: `**d`, `d.items()`, `sum(d.values())`."""
        if self.record.kind != "dict":
            return False
        parent = self.source.parents[use]
        if isinstance(parent, ast.keyword) and parent.arg is None:
            return True
        if self._is_spread(use):
            return True
        call = self.source.parents.get(parent)
        if any(
            isinstance(each, ast.For) and self._is_walked(each, use) for each in self.source.ancestors(use)
        ):
            return False
        if isinstance(parent, ast.Attribute) and parent.attr in ("items", "values", "keys"):
            around = self.source.parents.get(call) if isinstance(call, ast.Call) and not call.args else None
            # A view that is kept follows the dict.
            return isinstance(around, (ast.comprehension, ast.For)) or (
                isinstance(around, ast.Call)
                and ast.unparse(around.func) in ("sum", "list", "tuple", "len", "max", "min", "sorted")
            )
        return (
            isinstance(parent, ast.Call)
            and parent.args == [use]
            and ast.unparse(parent.func) in ("len", "list", "dict", "sorted", "tuple")
        )

    def _is_spread(self, use: ast.Name) -> bool:
        """Whether it is `**d` in a dict that is written out."""
        parent = self.source.parents[use]
        return isinstance(parent, ast.Dict) and any(
            key is None and value is use for key, value in zip(parent.keys, parent.values, strict=True)
        )

    def _is_walked(self, loop: ast.For, use: ast.Name) -> bool:
        """Whether `loop` goes through what `use` gives, and sets parts of it on the way."""
        inside = {id(each) for each in walk(loop.iter)}
        return id(use) in inside and any(self._uses_in(each) for each in loop.body)

    def _update(self, use: ast.Name) -> list[tuple[_Key, ast.expr]] | None:
        """The parts that `d.update(a=x)` sets, as a statement; None where it is something else."""
        method = self.source.parents[use]
        call = self.source.parents.get(method)
        if (
            self.record.kind != "dict"
            or not (isinstance(method, ast.Attribute) and method.attr == "update")
            or not isinstance(call, ast.Call)
            or not isinstance(statement := self.source.parents.get(call), ast.Expr)
            or not self.source.begins_line(statement)
        ):
            return None
        found: list[tuple[_Key, ast.expr]] = []
        for each in call.args:
            if not isinstance(each, ast.Dict) or len(call.args) > 1:
                return None
            for key, value in zip(each.keys, each.values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, (str, int)):
                    return None
                if isinstance(key.value, bool):
                    return None
                found.append((key.value, value))
        for keyword in call.keywords:
            if keyword.arg is None:
                return None
            found.append((keyword.arg, keyword.value))
        return found if len({key for key, _ in found}) == len(found) else None

    def _sets_in_node(self, uses: list[ast.Name]) -> bool:
        """Whether a part is set in the branch, in a loop around it, or behind it."""
        outermost: ast.AST = self.node
        for each in self.source.ancestors(self.node):
            if isinstance(each, _FUNCTIONS):
                break
            outermost = each if isinstance(each, _LOOPS) else outermost
        begin = self.source.start(outermost)
        return any(self.source.start(each) >= begin for each in self.others) or any(
            self.source.start(use) >= begin
            and (self._update(use) or isinstance(getattr(self.source.parents[use], "ctx", None), ast.Store))
            for use in uses
        )

    def _all_keys(self, statements: list[ast.stmt]) -> list[_Key]:
        keys = dict.fromkeys(self.record.parts)
        for statement in statements:
            for use in self._uses_in(statement):
                key = self.record.key_of(self.source.parents[use], use)
                given = self._update(use) or []
                got = self._got(use)
                given = given if got is None else [(got[0], got[1])]
                keys |= dict.fromkeys([key] if key is not None else [one for one, _ in given])
        return list(keys)

    # --- which parts there are -----------------------------------------------------------------------------

    def _follow(self, statements: list[ast.stmt], parts: tuple[_Key, ...] | None) -> tuple[_Key, ...] | None:
        """The parts that there are behind `statements`, None where nothing comes behind. Raises Refused where it is not certain."""
        for statement in statements:
            if parts is None:
                return None
            if isinstance(statement, ast.If):
                self._look(statement.test, parts)
                ways = [self._follow(statement.body, parts), self._follow(statement.orelse, parts)]
                met = {each for each in ways if each is not None}
                parts = self._joined([each for each in ways if each is not None]) if met else None
            elif isinstance(statement, (*_LOOPS, ast.With, ast.Try)):
                inner = [
                    each
                    for block in ("body", "orelse", "finalbody")
                    for each in getattr(statement, block, [])
                ]
                handlers = [each for one in getattr(statement, "handlers", []) for each in one.body]
                self._look_around(statement, parts)
                for block in (inner, handlers):
                    # How far it comes is not known.
                    parts = self._joined([parts, *self._ends(block, parts)])
            elif isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                self._look(statement, parts)
                parts = None
            else:
                parts = self._set(statement, parts)
        return parts

    def _joined(self, ways: list[tuple[_Key, ...]]) -> tuple[_Key, ...]:
        """The parts that there may be behind `ways`. Raises Refused where that shows."""
        if all(each == ways[0] for each in ways):
            return ways[0]
        if self.record.kind != "dict" or len({frozenset(each) for each in ways}) == 1:
            raise Refused("which parts there are hangs on the branch")
        found = tuple(dict.fromkeys(key for way in ways for key in way))
        self.optional |= {key for key in found if any(key not in way for way in ways)}
        return found

    def _ends(self, block: list[ast.stmt], parts: tuple[_Key, ...]) -> list[tuple[_Key, ...]]:
        """The parts that there are behind each statement of `block`, which may be the last that runs."""
        found = []
        for statement in block:
            after = self._follow([statement], parts)
            if after is not None:
                found.append(after)
                parts = after
        return found

    def _look_around(self, statement: ast.stmt, parts: tuple[_Key, ...]) -> None:
        for name in ("iter", "test"):
            if hasattr(statement, name):
                self._look(getattr(statement, name), parts)
        for item in getattr(statement, "items", []):
            self._look(item, parts)

    def _set(self, statement: ast.stmt, parts: tuple[_Key, ...]) -> tuple[_Key, ...]:
        """As `_follow`, for a statement without statements in it."""
        new: list[_Key] = []
        if id(statement) in self.again:
            self._look(statement, parts)
            if set(parts) != set(self.again[id(statement)].parts):
                raise Refused("it is made anew of other parts")
            return tuple(self.again[id(statement)].parts)
        for use in self._uses_in(statement):
            parent = self.source.parents[use]
            key, given = self.record.key_of(parent, use), self._update(use)
            if given is not None:
                new += [each for each, _ in given]
            elif key is not None and isinstance(getattr(parent, "ctx", None), ast.Store):
                if isinstance(statement, ast.AugAssign) and statement.target is parent and key not in parts:
                    raise Refused("a part is read that may not be there")
                new.append(key)
        self._look(statement, parts)
        if new and not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            raise Refused("a part is set in another way than by an assignment")
        if any(each not in parts for each in new) and not self.record.grows:
            raise Refused("a list does not grow by an assignment")
        return (*parts, *dict.fromkeys(each for each in new if each not in parts))

    def _look(self, node: ast.AST, parts: tuple[_Key, ...]) -> None:
        """What `node` reads. Raises Refused where that may not be there."""
        for use in self._uses_in(node):
            parent = self.source.parents[use]
            key, got = self.record.key_of(parent, use), self._got(use)
            if got is not None:
                self.optional |= {got[0]} - set(self.record.parts)
            elif key is None:
                self.parts[id(use)] = parts
            elif isinstance(getattr(parent, "ctx", None), ast.Load) and key not in parts:
                raise Refused("a part is read that may not be there")

    # --- the text ------------------------------------------------------------------------------------------

    def _wish(self, key: _Key) -> str:
        text = str(key)
        return text if f"_{text}".isidentifier() else "part"

    def _text(self, node: ast.expr, swaps: Sequence[Replacement] = ()) -> str:
        text = self.source.of(node, swaps)
        return f"({text})" if "\n" in text and not text.startswith(("(", "[", "{")) else text

    def _begun(self) -> Replacement:
        """The statement that made the whole, as one for each part."""
        source, statement = self.source, self.statement
        line = source.newline + source.indent_of(statement)
        rows = [
            f"{self.names[key]} = {value if isinstance(value, str) else self._text(value)}"
            for key, value in self.record.parts.items()
        ]
        rows += [f"{name} = 0" for key, name in self.names.items() if key in self.optional]
        comments = source.comments_between(source.start(statement), source.end(statement))
        if not rows:
            return source.without(statement) or source.swap(statement, "pass")
        return source.swap(statement, line.join([*comments, *rows]))

    def _set_anew(self, statement: ast.stmt, parts: Mapping[_Key, ast.expr | str]) -> Replacement:
        """What gives `parts` their new values, when all are computed, in the place of `statement`."""
        source = self.source
        comments = source.comments_between(source.start(statement), source.end(statement))
        around = {id(each) for value in parts.values() if isinstance(value, ast.expr) for each in walk(value)}
        swaps = [self._used(use) for use in self._uses_in(statement) if id(use) in around]
        texts = {
            self.names[key]: value if isinstance(value, str) else self._text(value, swaps)
            for key, value in parts.items()
        }
        line = source.newline + source.indent_of(statement)
        rows = [f"{name} = {text}" for name, text in texts.items()]
        if swaps:
            rows = [f"{', '.join(texts)} = {', '.join(texts.values())}"]
        return source.swap(statement, line.join([*comments, *rows]))

    def _used(self, use: ast.Name) -> Replacement:
        """The swap of one use."""
        source, parent = self.source, self.source.parents[use]
        key, got = self.record.key_of(parent, use), self._got(use)
        if key is not None:
            return source.swap(parent, self.names[key])
        if got is not None:
            return source.swap(got[1], self.names[got[0]])
        if self._update(use) is not None:
            raise Refused("an update is part of another statement")
        parts = self.parts.get(id(use))
        if parts is None:
            # Behind what always leaves.
            raise Refused("it is used where nothing comes to")
        whole = self._made_again(parts, expression=True)[0]
        if self._is_spread(use) and isinstance(parent, ast.Dict) and parts:
            begin = source.text.rindex("**", 0, source.start(use))
            return Replacement(begin, source.end(use), whole[1:-1])
        return source.swap(use, whole)

    def _made_again(self, parts: tuple[_Key, ...], expression: bool = False) -> list[str]:
        made = self.record.made({key: self.names[key] for key in parts})
        if expression:
            return made[:1]
        return [f"{self.name} = {made[0]}", *(each.replace("{}", self.name, 1) for each in made[1:])]
