"""Lists that data makes longer, of which only the last items are read: the items become names, and the length a count.

    errors = [start]                         errors_last = start
    while True:                              while True:
        x = step(x)                              x = step(x)
        errors.append(change(x))        ->       errors_last_2 = errors_last
        if errors[-2] - errors[-1] < tol:        errors_last = change(x)
            break                                if errors_last_2 - errors_last < tol:
                                                     break

Where the list begins with fewer items, and each read of what may not be there yet is asked for (`len(errors) > 1 and ...`), the
names begin with a zero that nothing reads. In a `for` the number of its round tells how many items there are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from exportlens.rewriting.code.names import append_of, arguments, bound, every_name, fresh, reads
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.item_counts import Counts, is_asked, numbered
from exportlens.rewriting.lists.placeholders import appended_kind, placeholder
from exportlens.rewriting.lists.read_within import Within, read_within
from exportlens.rewriting.loops.leaving import left_loop
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.source.walking import walk

LAST = "Keep the last items of the list in names"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Try)
_MAKING = frozenset(
    {"ones", "zeros", "full", "empty", "rand", "randn", "tensor", "eye", "arange", "linspace", "as_tensor", "Tensor", "FloatTensor"}
    | {"new_ones", "new_zeros", "new_full", "new_empty", "new_tensor"}
)  # fmt: skip
_PLAIN = (ast.Name, ast.Constant, ast.Attribute, ast.UnaryOp, ast.USub, ast.Load)


def last_items_named(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text in which names hold the last items of a list that `node`, a decision on data, makes longer or not; None
    where there is no such list, or more is done with it."""
    function = source.enclosing_function(node)
    if function is None or isinstance(function, ast.AsyncFunctionDef):
        return None
    for name in _made_longer(source, node):
        source, function = _begun_apart(source, function, name)
        history = _History.of(source, function, name, kinds, torch)
        text = history.text() if history is not None else None
        if text is not None:
            return text
    return None


def _made_longer(source: Source, node: ast.AST) -> list[str]:
    """The lists to which `node` decides whether something is appended, by its arms or by how many rounds a loop has."""
    loop = node if isinstance(node, (ast.While, ast.For)) else None
    if loop is None and isinstance(node, ast.stmt):
        loop = left_loop(source, node)
    scope = loop if loop is not None else node
    if not isinstance(scope, (ast.If, ast.While, ast.For)):
        return []
    found = (append_of(each) for each in walk(scope) if isinstance(each, ast.stmt))
    return list(dict.fromkeys(each[0] for each in found if each is not None))


def _begun_apart(source: Source, function: Function, name: str) -> tuple[Source, Function]:
    """The text in which lists that are begun by one statement, `name` among them, have a statement for each."""
    for each in function.body:
        if not (
            isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Tuple)
            and isinstance(each.value, ast.Tuple)
            and len(each.targets[0].elts) == len(each.value.elts)
            and name in bound(each)
            and not reads(each.value) & set(bound(each))
            and all(isinstance(one, ast.Name) for one in each.targets[0].elts)
            and source.begins_line(each)
        ):
            continue
        line = source.newline + source.indent_of(each)
        pairs = zip(each.targets[0].elts, each.value.elts, strict=True)
        lines = [f"{source.of(target)} = {_in_brackets(source, value)}" for target, value in pairs]
        changed = Source(replaced(source.text, [source.swap(each, line.join(lines))]))
        begin = source.start(function)
        for one in walk(changed.tree):
            if isinstance(one, type(function)) and changed.start(one) == begin:
                return changed, one
    return source, function


@dataclass
class _History:
    source: Source
    function: Function
    name: str
    kinds: Kinds
    torch: str
    start: ast.Assign | ast.AnnAssign
    items: list[ast.expr]
    uses: list[ast.Name]
    appends: list[ast.stmt] = field(default_factory=list)
    # What stands for the item, or the items, that many places from the end.
    reads: list[tuple[ast.Subscript, int]] = field(default_factory=list)
    counts: list[ast.expr] = field(default_factory=list)
    # What alone is computed with the items, where that is kept instead.
    within: Within | None = None

    @classmethod
    def of(cls, source: Source, function: Function, name: str, kinds: Kinds, torch: str) -> _History | None:
        """The list, where it is begun once, with items that are written out, and nothing else may hold it."""
        named = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
        stores = [each for each in named if not isinstance(each.ctx, ast.Load)]
        if len(stores) != 1 or name in {each.arg for each in arguments(function.args)}:
            return None
        if any(
            isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names for each in walk(function)
        ):
            return None
        start = source.parents[stores[0]]
        alone = isinstance(start, ast.AnnAssign) or (
            isinstance(start, ast.Assign) and len(start.targets) == 1
        )
        if not alone or not isinstance(start, (ast.Assign, ast.AnnAssign)) or not source.begins_line(start):
            return None
        items = _items(start.value)
        block, at = source.block_of(start)
        uses = [each for each in named if isinstance(each.ctx, ast.Load)]
        if items is None or not all(_is_behind(source, each, block, at) for each in uses):
            return None
        return cls(source, function, name, kinds, torch, start, items, uses)

    def text(self) -> str | None:
        if not all(map(self._take, self.uses)) or not self.appends:
            return None
        source, taken = self.source, every_name(self.source.tree)
        if not self._is_of_one_shape():
            self.within = read_within(
                source, self.function, self.appends, [read for read, _ in self.reads], self.kinds
            )
            if self.within is None:
                return None
        number = numbered(source, self.start, self.appends, len(self.items), taken)
        counts = Counts(source, self.name, self.start, self.appends, len(self.items), number, self.kinds)
        most = max((count for _, count in self.reads), default=0)
        names = [
            fresh(f"{self.name}_last" + (f"_{each}" if each > 1 else ""), taken)
            for each in range(1, most + 1)
        ]
        begun = self._begun(counts, most, names)
        if begun is None:
            return None
        count = fresh(f"{self.name}_count", taken)
        swaps: list[Replacement] = []
        counted = False
        for each in self.counts:
            told = counts.told(each)
            counted = counted or told is None
            swaps.append(counts.swap(each, count, 0) if told is None else counts.swap(each, *told))
        if (
            number is not None
            and number.header
            and any(counts.told(each) is not None for each in self.counts)
        ):
            swaps += number.header
        for read, back in self.reads:
            sliced = isinstance(read.slice, ast.Slice)
            whole = read if self.within is None else self.within.whole[read]
            swaps.append(
                source.swap(whole, f"[{', '.join(names[:back][::-1])}]" if sliced else names[back - 1])
            )
        if counted:
            begun.append(f"{count} = {len(self.items)}")
        swaps = self._outermost(swaps)
        for append in self.appends:
            swaps.append(self._appended(append, names, count if counted else None, swaps))
        swaps = self._outermost(swaps)
        nl = source.newline + source.indent_of(self.start)
        head = source.swap(self.start, nl.join(begun)) if begun else source.without(self.start)
        return None if head is None else replaced(source.text, [head, *swaps])

    def _outermost(self, swaps: list[Replacement]) -> list[Replacement]:
        """Those that lie in no other one, which has their text in it."""
        return [
            each
            for each in swaps
            if not any(
                one is not each
                and one.start <= each.start
                and each.end <= one.end
                and (one.start, one.end) != (each.start, each.end)
                for one in swaps
            )
        ]

    def _take(self, use: ast.Name) -> bool:
        """Whether `use` adds an item, reads one of the last, or asks how many there are."""
        source = self.source
        parent = source.parents[use]
        statement = source.enclosing_statement(use)
        found = append_of(statement)
        if isinstance(parent, ast.Attribute):
            if (
                found is None
                or found[0] != self.name
                or use in walk(found[1])
                or not source.begins_line(statement)
            ):
                return False
            self.appends.append(statement)
            return True
        if isinstance(parent, ast.Subscript) and parent.value is use and not isinstance(parent.ctx, ast.Del):
            at = parent.slice
            if isinstance(at, ast.Slice):
                open_end = at.upper is None and at.step is None and isinstance(parent.ctx, ast.Load)
                at = at.lower if open_end and at.lower is not None else ast.Constant(0)
            back = -(written_int(at) or 0)
            if not 0 < back <= 8:
                return False
            self.reads.append((parent, back))
            return True
        if isinstance(parent, ast.Call) and ast.unparse(parent) == f"len({self.name})":
            self.counts.append(parent)
            return True
        if is_asked(source, use):
            self.counts.append(use)
            return True
        return False

    def _is_idle(self, append: ast.stmt, value: ast.expr) -> bool:
        """Whether nothing is lost where the item that nobody reads is not computed."""
        now = kinds_before(self.function, append, self.kinds)
        return _is_plain(value) or (repeatable(value, now) and now.of(value).what in ("tensor", "scalar"))

    def _kept(self, item: str) -> str:
        return item if self.within is None else self.within.of(item)

    def _is_of_one_shape(self) -> bool:
        """Whether the items may be taken for tensors of one shape: those that the list begins with may be written out in another
        one than what is appended, and no while_loop takes that in."""
        if not self.items or not self.reads:
            return True
        ranks = {kinds_before(self.function, self.start, self.kinds).of(each).rank for each in self.items}
        appended = (appended_kind(self.function, each, self.kinds) for each in self.appends)
        ranks |= {each.rank for each in appended if each.what != "scalar"}
        return ranks <= {0} or not any(map(is_made, self.items))

    def _begun(self, counts: Counts, most: int, names: list[str]) -> list[str] | None:
        """The statements that the names begin with; None where a read may find no item."""
        held = len(self.items)
        if any(not _is_plain(each) for each in (self.items[: held - most] if held > most else [])):
            return None
        asked = late = False
        unsure: list[ast.expr] = []
        for read, back in self.reads:
            certain = counts.certain(read)
            if held + certain < back:
                if counts.least(read) < back:
                    return None
                asked = True
                unsure.append(read)
            late = late or (back == most and certain == 0)
        begun = [
            f"{names[back - 1]} = {self._kept(_in_brackets(self.source, self.items[held - back]))}"
            for back in range(min(most, held), 0, -1)
        ]
        missing = [back for back in range(held + 1, most + 1) if back < most or (late and asked)]
        if missing:
            numbers = all(map(counts.is_told_by_rounds, unsure))
            zero = placeholder(
                self.source, self.function, self.start, self.appends, self.kinds, self.torch, numbers
            )
            if zero is None:
                return None
            begun += [f"{names[back - 1]} = {zero}" for back in missing]
        return begun

    def _appended(
        self, append: ast.stmt, names: list[str], count: str | None, swaps: list[Replacement]
    ) -> Replacement:
        """What moves the names on by one item, in the place of `append`."""
        found = append_of(append)
        assert found is not None
        value = found[1]
        own = any(isinstance(each, ast.Name) and each.id == self.name for each in walk(value))
        text = self._kept(_in_brackets(self.source, value, swaps))
        lines: list[str] = []
        if own and len(names) > 1:
            lines.append(f"{', '.join(names[::-1])} = {', '.join([*names[-2::-1], text])}")
        elif names:
            lines += [f"{later} = {name}" for name, later in zip(names[-2::-1], names[:0:-1], strict=True)]
            lines.append(f"{names[0]} = {text}")
        elif not self._is_idle(append, value):
            lines.append(text)
        if count is not None:
            lines.append(f"{count} += 1")
        lines = lines or ["pass"]
        return self.source.swap(append, (self.source.newline + self.source.indent_of(append)).join(lines))


def _items(value: ast.expr | None) -> list[ast.expr] | None:
    """The items that a list begins with, where they are written out."""
    if isinstance(value, ast.List):
        return None if any(isinstance(each, ast.Starred) for each in value.elts) else value.elts
    return [] if value is not None and ast.unparse(value) == "list()" else None


def _is_behind(source: Source, use: ast.Name, block: list[ast.stmt], at: int) -> bool:
    """Whether `use` stands behind statement `at` of `block`, in the same function."""
    for outer in source.ancestors(use):
        if isinstance(outer, _SCOPES):
            return False
        if outer in block[at + 1 :]:
            return True
    return False


def _is_plain(node: ast.expr) -> bool:
    """Whether nothing is lost where `node` is not computed."""
    return all(isinstance(each, _PLAIN) for each in walk(node))


def is_made(item: ast.expr) -> bool:
    """Whether `item` holds a tensor of sizes that are written out."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _MAKING
        for each in walk(item)
    )


def _in_brackets(source: Source, node: ast.expr, swaps: list[Replacement] | None = None) -> str:
    inside = [
        each for each in swaps or () if source.start(node) <= each.start and each.end <= source.end(node)
    ]
    return source.of(node, inside)
