"""An item of a list or dict that tensor data chooses: a branch with one way for each, which becomes torch.cond.

    net = (self.low, self.high)[t.item()]         chosen = t
    return net(x)                                 if not -2 <= chosen < 2:
                                          ->          raise IndexError("list index out of range")
                                                  chosen = chosen % 2
                                                  if chosen == 0:
                                                      net = self.low
                                                      return net(x)
                                                  else:
                                                      net = self.high
                                                      return net(x)

How many items there are, or which keys, must be written in the file: what a constructor is given may be more.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.finding import Fix
from exportlens.inference.places import Conversion
from exportlens.inference.values import Instance, TensorScalar, options
from exportlens.rewriting.branches.chosen_functions import Way, function_ways
from exportlens.rewriting.checks.assertions import raise_text
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.code.written_items import Written, constant
from exportlens.rewriting.conversion import converted
from exportlens.rewriting.decisions.matching import integers_behind
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.filtered import listed_out
from exportlens.rewriting.memory.effects import kinds_before, repeatable, writes_of
from exportlens.rewriting.numbers.operands import read_out
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

# torch.cond compiles each way, and each but the last stands in those before it.
_MOST_WAYS = 8
_MOST_STATEMENTS = 12
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
)


def one_way_for_each(draft: Draft, node: ast.Subscript, place: Conversion) -> Fix:
    """The branch on the number that chooses. Raises Refused."""
    draft, node = _written_out(draft, node)
    source = draft.source
    statement, function = source.enclosing_statement(node), source.enclosing_function(node)
    if function is None or not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
        raise Refused("the item is not chosen in a statement of its own")
    for outer in source.ancestors(node):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            raise Refused(f"`{source.of(node)}` is not computed in any case, or several times")
    kinds = kinds_before(function, statement, draft.kinds(place.variables))
    # Where the item is all that the statement computes, what chooses it is still computed first.
    first = isinstance(statement, ast.Assign) and statement.value is node and dotted(node.value) is not None
    if not (first or repeatable(node.slice, kinds)) or any(True for _ in writes_of(statement, kinds)):
        raise Refused(
            f"what chooses in `{source.of(node)}` may be another number once it is computed earlier"
        )
    if any(isinstance(each, ast.For) and _is_as_long_as_data(each, kinds) for each in source.ancestors(node)):
        raise Refused(f"`{source.of(node)}` is chosen in a loop that data ends")
    ways = _ways(draft, node, place.keys, kinds)
    if not 1 < len(ways) <= _MOST_WAYS:
        raise Refused(
            f"there are {len(ways)} items: a branch with one way for each is written for 2 to {_MOST_WAYS}"
        )
    items = kinds.of(node.value).items or ()
    if len({each.type for each in items}) > 1 and all(each.what == "number" for each in items):
        raise Refused(
            f"`{source.of(node.value)}` has ints and floats, of which a tensor of ints gives other dtypes"
        )
    region = _region(source, node, statement, function, kinds)
    _refuse_unknown_calls(source, node, region, ways, kinds)
    chain = _Chain(draft, node, place, kinds, ways, region)
    return draft.fix("Choose with torch.cond", chain.text())


def _is_as_long_as_data(loop: ast.For, kinds: Kinds) -> bool:
    """Whether `loop` goes through what tensor data chooses, which has no length while tracing."""
    parts = [each for each in walk(loop.iter) if isinstance(each, (ast.Call, ast.Subscript, ast.Name))]
    return any(length_from_data(kinds.of(each)) for each in parts)


def _written_out(draft: Draft, node: ast.Subscript) -> tuple[Draft, ast.Subscript]:
    """The draft where a list whose elements choose, `[f[i](x) for i in t]`, is made by a loop, and `node` in that."""
    source, statement = draft.source, draft.source.enclosing_statement(node)
    found = None
    for outer in source.ancestors(node):
        if outer is statement or isinstance(outer, ast.comprehension):
            break
        if isinstance(outer, _UNSURE):
            if found is not None or not isinstance(outer, ast.ListComp):
                return draft, node
            found = outer
    if found is None:
        return draft, node
    number = [each for each in walk(found.elt) if isinstance(each, ast.Subscript)].index(node)
    changed, appends = listed_out(source, found)
    assert isinstance(appends.value, ast.Call)
    within = [each for each in walk(appends.value.args[0]) if isinstance(each, ast.Subscript)]
    return replace(draft, source=changed), within[number]


class _Chain:
    """The branch that is written for a choice."""

    def __init__(
        self,
        draft: Draft,
        node: ast.Subscript,
        place: Conversion,
        kinds: Kinds,
        ways: list[Way],
        region: list[ast.stmt],
    ) -> None:
        self.draft, self.source, self.node, self.kinds = draft, draft.source, node, kinds
        self.ways, self.region, self.by_key = ways, region, place.to == "key"
        self.is_position = _is_position(node.slice)
        found = read_out(node.slice)
        # Python takes an item of a list by no float.
        self.is_int = not self.by_key and all(
            isinstance(each, TensorScalar) and each.type not in ("bool", "float")
            for each in options(place.value)
        )
        self.is_bool = all(
            isinstance(each, TensorScalar) and each.type == "bool" for each in options(place.value)
        ) or (found is not None and kinds.of(found[1]).dtype == "bool")

    def text(self) -> str:
        """The whole text with the branch as torch.cond. Raises Refused."""
        source, nl = self.source, self.source.newline
        first = self.region[0]
        indent = source.indent_of(first)
        head, subject = self._subject()
        check, after = self._check(subject), []
        if not self.by_key and not self.is_bool and not self.is_position:
            name = subject if head else fresh("position", self.draft.taken(source.tree))
            after = [f"{name} = {subject} % {len(self.ways)}"]
            subject = name
        lines = [*head, *check, *after]
        before = "".join(line + nl + indent for line in lines)
        begin = source.start(first)
        end = source.span(self.region)[1]
        branch = self._branch(subject, indent)
        changed = Source(replaced(source.text, [Replacement(begin, end, before + branch)]))
        at = begin + len(before)
        if check:
            asked = changed.branch_at(begin + sum(len(each + nl + indent) for each in head))
            now = self._kinds_at(changed, asked, len(head))
            text = raise_text(changed, asked, now, self.draft.torch, None)
            at += len(text) - len(changed.text)
            changed = Source(text)
        chain = changed.branch_at(at)
        now = self._kinds_at(changed, chain, len(lines))
        return converted(changed, chain, now, self.draft.torch, None, ({}, {}))[0]

    def _kinds_at(self, source: Source, node: ast.If, count: int) -> Kinds:
        """The kinds at `node`, in front of which `count` statements are new."""
        now = self.kinds.copy()
        block, index = source.block_of(node)
        now.run(block[index - count : index])
        for each in block[index - count : index]:
            name = (
                each.targets[0].id
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
                else ""
            )
            if name and now.names[name].what == "unknown" and self.is_int:
                # What a method of the model gives only the interpreter knows.
                now.names[name] = Kind("scalar", type="int")
        return now

    def _subject(self) -> tuple[list[str], str]:
        """The line that gives the number a name, where it has none that stays as it is, and the name."""
        source, key = self.source, self.node.slice
        if isinstance(key, ast.Name) and key.id not in bound(self.region):
            return [], key.id
        text = self._tensor_behind(key) or source.of(key)
        if text.isidentifier() and text not in bound(self.region):
            return [], text
        name = fresh("chosen", self.draft.taken(source.tree))
        return [f"{name} = {text}"], name

    def _tensor_behind(self, key: ast.expr) -> str | None:
        """The tensor whose number is read: only whole numbers are indices, and as keys all compare alike."""
        found = read_out(key)
        if (
            found is not None
            and (found[0] == "item" or self.is_bool)
            and self.kinds.of(found[1]).what == "tensor"
        ):
            return self.source.of(found[1])
        return integers_behind(self.source, key, self.kinds)

    def _check(self, subject: str) -> list[str]:
        """The lines that raise where there is no such item."""
        source, count = self.source, len(self.ways)
        inner = source.newline + source.indent_of(self.region[0]) + source.indent_unit()
        if self.by_key:
            asked = " or ".join(f"{subject} == {each.key!r}" for each in self.ways)
            return [f'if not ({asked}):{inner}raise KeyError("no item has this key")']
        if self.is_bool or _is_less_than(self.node.slice, count):
            return []
        asked = f"{subject} >= {count}" if self.is_position else f"not -{count} <= {subject} < {count}"
        return [f'if {asked}:{inner}raise IndexError("list index out of range")']

    def _branch(self, subject: str, indent: str) -> str:
        """`if`, `elif` and `else`, each with all statements of the region."""
        source = self.source
        inner = indent + source.indent_unit()
        begin, end = source.start(self.region[0]), source.span(self.region)[1]
        lines = []
        ways = self.ways[:2] if self.is_bool else self.ways
        for number, way in enumerate(ways):
            test = f"not {subject}" if self.is_bool else f"{subject} == {way.key!r}"
            word = "else" if number == len(ways) - 1 else f"elif {test}" if number else f"if {test}"
            lines.append(f"{indent if number else ''}{word}:")
            swap = source.swap(self.node, way.text)
            lines.append(inner + source.shifted(begin, end, indent, inner, [swap]))
        return source.newline.join(lines)


def _number(key: ast.expr) -> ast.expr:
    """What computes the number that `key` reads out of a tensor."""
    while isinstance(key, ast.Call):
        func = key.func
        if isinstance(func, ast.Attribute) and func.attr in ("item", "long", "int") and not key.args:
            key = func.value
        elif isinstance(func, ast.Name) and func.id == "int" and len(key.args) == 1:
            key = key.args[0]
        else:
            return key
    return key


def _is_position(key: ast.expr) -> bool:
    """Whether `key` certainly is no negative number: where the largest or the smallest is, or a remainder."""
    number = _number(key)
    if isinstance(number, ast.Call):
        return isinstance(number.func, ast.Attribute) and number.func.attr in ("argmax", "argmin")
    return _remainder(number) is not None


def _is_less_than(key: ast.expr, count: int) -> bool:
    """Whether `key` is a remainder that certainly is less than `count`."""
    divisor = _remainder(_number(key))
    return divisor is not None and divisor <= count


def _remainder(node: ast.expr) -> int | None:
    """The positive number by which `node` divides for what is left."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
        return None
    divisor = constant(node.right)
    return divisor if isinstance(divisor, int) and divisor > 0 else None


def _region(
    source: Source, node: ast.Subscript, statement: ast.stmt, function: Function, kinds: Kinds
) -> list[ast.stmt]:
    """The statements that each way has: the one that chooses, and where it gives names to what may be no tensor, all up to the
    last that reads one of them. Raises Refused."""
    names = _names_of_item(source, node, statement, kinds)
    if not names:
        return [statement]
    given = "`, `".join(sorted(names))
    block, index = source.block_of(statement)
    last = index
    for number, each in enumerate(block[index:], index):
        if names & set(reads(each)):
            last = number
        if names & set(bound(each)) and number > index:
            break
    region = block[index : last + 1]
    inside = {id(each) for one in region for each in walk(one)}
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id in names]
    if any(id(each) not in inside for each in same if isinstance(each.ctx, ast.Load)):
        raise Refused(f"`{given}` is read in other places than the block that chooses it")
    if sum(isinstance(each, ast.stmt) for one in region for each in walk(one)) > _MOST_STATEMENTS:
        raise Refused(f"`{given}` is read far below: each way would have all statements up to there")
    if exits(region[:-1]) - {"falls"} or exits(region) - {"falls", "returns"}:
        raise Refused(f"what reads `{given}` may leave the block")
    return region


def _names_of_item(source: Source, node: ast.Subscript, statement: ast.stmt, kinds: Kinds) -> set[str]:
    """The names that `statement` gives to the item or to parts of it, which may be no tensors; empty where it only gives on
    what was called with the item. Raises Refused."""
    for outer in source.ancestors(node):
        if outer is statement:
            break
        if isinstance(outer, ast.Call) and not _puts_in(outer):
            return set()
    value = getattr(statement, "value", None)
    if value is None or kinds.of(value).what == "tensor":
        return set()
    if isinstance(statement, ast.Return):
        return set()
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if all(isinstance(each, ast.Name) for each in parts):
            return {each.id for each in parts if isinstance(each, ast.Name)}
    raise Refused(f"it is not known whether `{source.of(node)}` is a tensor")


def _refuse_unknown_calls(
    source: Source, node: ast.Subscript, region: list[ast.stmt], ways: list[Way], kinds: Kinds
) -> None:
    """Raise Refused where the item is called and may be a function that writes to what it is given."""
    parent, called = source.parents[node], {""}
    if isinstance(parent, ast.Assign):
        called = {each.id for each in parent.targets if isinstance(each, ast.Name)}
    calls = [each.func for one in region for each in walk(one) if isinstance(each, ast.Call)]
    by_name = any(isinstance(each, ast.Name) and each.id in called for each in calls)
    if not by_name and not any(each is node for each in calls):
        return
    if isinstance(kinds.of(node.value).value, Instance):
        return
    for way in ways:
        if way.pure:
            continue
        item = parse_python(way.text, mode="eval").body
        known = isinstance(kinds.of(item).value, Instance) or kinds.qualified(item) is not None
        # What a function of the file does is only looked up where it is called by its own name.
        if not known and (by_name or way.text not in kinds.functions):
            raise Refused(f"it is not known what `{way.text}` does with what it is given")


def _puts_in(call: ast.Call) -> bool:
    """Whether `call` puts what it is given in a list."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend", "insert")


def _ways(draft: Draft, node: ast.Subscript, known: tuple[int | str, ...] | None, kinds: Kinds) -> list[Way]:
    """The items of what `node` reads one of. Raises Refused."""
    source, written = draft.source, node.value
    if isinstance(written, (ast.List, ast.Tuple)) and all(map(dotted, written.elts)):
        return [Way(number, source.of(each)) for number, each in enumerate(written.elts)]
    if isinstance(written, ast.Dict) and all(map(dotted, written.values)):
        keys = [constant(each) for each in written.keys]
        if None not in keys and len(set(keys)) == len(keys):
            return [
                Way(key, source.of(each))
                for key, each in zip(keys, written.values, strict=True)
                if key is not None
            ]
    functions = function_ways(draft, written, kinds)
    if functions is not None:
        return functions
    if known is None:
        raise Refused(f"which items `{source.of(written)}` has is not known")
    if not Written(draft, node).has_all(written):
        raise Refused(
            f"how many items `{source.of(written)}` has is not written in the file: others may build it with more"
        )
    return [Way(key, f"{source.of(written)}[{key!r}]") for key in known]
