"""Lists that a branch in a loop fills, where the rounds hand something on: each round gives a row and whether it is kept, and a
mask selects those behind the loop.

    frames = []                                  frames_rows = []
    for t in range(n):                           frames_kept = []
        total = total + a[t]                     for t in range(n):
        if total > 1:                                total = total + a[t]
            frames.append(h[t] * total)    ->        frames_row = h[t] * total
            total = total - 1                        kept = torch.zeros((), dtype=torch.bool)
    return torch.stack(frames)                       if total > 1:
                                                         kept = torch.ones_like(kept)
                                                         total = total - 1
                                                     frames_rows.append(frames_row)
                                                     frames_kept.append(kept)
                                                 frames = torch.stack(frames_rows)[torch.stack(frames_kept)]
                                                 return frames
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before, exits
from exportlens.rewriting.code.names import append_of, bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import LOCAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.selected_rows import selected_in_comprehension
from exportlens.rewriting.loops.continues import without_continue
from exportlens.rewriting.loops.idle_rest import may_run_idly
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

FILL = "Keep each round's row, and whether it is kept"
_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.Try, ast.With, ast.FunctionDef, ast.Lambda)


def filled_by_rounds(source: Source, node: ast.If, kinds: Kinds, torch: str) -> str | None:
    """The whole text where the loop around `node` keeps a row of each round; None where `node` fills no list, or where what
    is done with the list is not known to be the same for the rows of a tensor."""
    function, loop = source.enclosing_function(node), source.parents[node]
    if function is None or not isinstance(loop, ast.For) or node not in loop.body or loop.orelse:
        return None
    if exits(loop.body) == {"falls", "continues"}:
        at, same = loop.body.index(node), without_continue(source, loop)
        if same is None or at >= len(same[1].body) or not isinstance(branch := same[1].body[at], ast.If):
            return None
        return filled_by_rounds(same[0], branch, kinds, torch)
    if exits(loop.body) != {"falls"} or not all(map(source.begins_line, (loop, node))):
        return None
    appends = [each for each in walk(node) if isinstance(each, ast.stmt) and append_of(each) is not None]
    for append in appends:
        found = append_of(append)
        assert found is not None
        start = _started(source, function, loop, append, found[0])
        if start is None or not source.begins_line(append):
            continue
        text = _Filled(source, function, loop, node, append, start, kinds, torch).text(*found)
        if text is not None:
            return text
    return None


def _started(
    source: Source, function: Function, loop: ast.For, append: ast.stmt, name: str
) -> ast.Assign | None:
    """Where the list begins empty, before `loop` in its block, if nothing but `append` names it up to the loop's end."""
    block, at = source.block_of(loop)
    named = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    begun = [each for each in block[:at] if isinstance(each, ast.Assign) and name in bound(each)]
    if len(begun) != 1 or ast.unparse(begun[0]) not in (f"{name} = []", f"{name} = list()"):
        return None
    stores = [each for each in named if not isinstance(each.ctx, ast.Load)]
    inside = [each for each in named if each in list(walk(loop))]
    before = [each for each in named if source.start(each) < source.start(loop)]
    outer: ast.AST = append
    while outer is not loop:
        outer = source.parents[outer]
        if outer is not loop and isinstance(outer, _LOOPS):
            return None
    alone = len(stores) == 1 and len(inside) == 1 and len(before) == 1
    return begun[0] if alone and source.begins_line(begun[0]) else None


@dataclass
class _Filled:
    source: Source
    function: Function
    loop: ast.For
    node: ast.If
    append: ast.stmt
    start: ast.Assign
    kinds: Kinds
    torch: str

    def text(self, name: str, value: ast.expr) -> str | None:
        source, torch = self.source, self.torch
        row_of = self._row(value)
        if row_of is None or not self._is_let_be(value):
            return None
        taken = every_name(source.tree)
        rows, marks, row, kept, each = (
            fresh(wish, taken) for wish in (f"{name}_rows", f"{name}_kept", f"{name}_row", "kept", "row")
        )
        nl, indent = source.newline, source.indent_of(self.node)
        head = [f"{row} = {row_of}", f"{kept} = {torch}.zeros((), dtype={torch}.bool)"]
        mark = [f"{kept} = {torch}.ones_like({kept})"]
        if row_of.startswith(f"{torch}.zeros_like("):
            mark.insert(0, f"{row} = {source.of(value)}")
        tail = [f"{rows}.append({row})", f"{marks}.append({kept})"]
        begin, end = source.start(self.node), source.span([self.node])[1]
        last = source.span([self.loop])[1]
        outside, inside = source.indent_of(self.start), source.indent_of(self.append)
        behind = f"{name} = [{each} for {each}, {kept} in zip({rows}, {marks}) if {kept}]"
        swaps = [
            source.swap(self.start, f"{rows} = []{nl}{outside}{marks} = []"),
            Replacement(begin, begin, "".join(line + nl + indent for line in head)),
            source.swap(self.append, (nl + inside).join(mark)),
        ]
        added = "".join(nl + indent + line for line in tail)
        closing = nl + source.indent_of(self.loop) + behind
        if end == last:
            swaps.append(Replacement(end, end, added + closing))
        else:
            swaps += [Replacement(end, end, added), Replacement(last, last, closing)]
        text = replaced(source.text, swaps)
        appended = kinds_before(self.function, self.append, self.kinds).of(value)
        # What the rounds have made.
        told = {
            rows: Kind("container", items=(replace(appended, roots=frozenset({f"{LOCAL}rows"})),)),
            marks: Kind("container", items=(Kind("tensor", "bool", 0, frozenset({f"{LOCAL}marks"})),)),
        }
        return self._selected(text, behind, told) if self._has_rounds(self.loop.iter) else None

    def _row(self, value: ast.expr) -> str | None:
        """The row where the branch appends none: what it would append, where that cannot fail, or zeros like it."""
        source = self.source
        block, at = source.block_of(self.append)
        arms = {*bound(self.node.body), *bound(self.node.orelse)}
        certain = certainly_bound_before(self.function, self.node)
        now = kinds_before(self.function, self.append, self.kinds).of(value)
        if now.what != "tensor":
            return None
        if isinstance(value, ast.Name):
            before = kinds_before(self.function, self.node, self.kinds).names.get(value.id)
            alike = before is not None and before.what == "tensor" and before.rank in (now.rank, None)
            return f"{self.torch}.zeros_like({value.id})" if alike and value.id in certain else None
        changed = set(bound(block[:at])) if block in (self.node.body, self.node.orelse) else arms
        if reads(value) & changed:
            return None
        text = source.of(value)
        for each in walk(value):
            if isinstance(each, ast.Subscript):
                if not self._is_read_anyway(each):
                    return None
                text = text.replace(source.of(each), "item")
        return source.of(value) if may_run_idly(parse_python(f"row = {text}").body, set()) else None

    def _is_read_anyway(self, item: ast.Subscript) -> bool:
        """Whether each round reads `item`, whichever way the branch goes."""
        told = ast.unparse(item)

        def reads_it(nodes: Sequence[ast.AST]) -> bool:
            return any(
                ast.unparse(one) == told
                for each in nodes
                for one in walk(each)
                if isinstance(one, ast.Subscript)
            )

        others = [each for each in self.loop.body if isinstance(each, (ast.Assign, ast.AugAssign))]
        return (
            reads_it(others)
            or reads_it([self.node.test])
            or (reads_it(self.node.body) and reads_it(self.node.orelse))
        )

    def _is_let_be(self, value: ast.expr) -> bool:
        """Whether nothing writes the row in place once it is appended."""
        written = {
            each.id for base in written_bases(self.loop) for each in walk(base) if isinstance(each, ast.Name)
        }
        if not written:
            return True
        if not isinstance(value, ast.Name):
            return not reads(value) & written
        roots = kinds_before(self.function, self.append, self.kinds).of(value).roots
        if roots is None or {each for each in roots if not each.startswith(LOCAL)} & (written - {value.id}):
            return False
        if value.id not in written:
            return True
        block, at = self.source.block_of(self.append)
        for each in block[at + 1 :]:
            if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [value.id]:
                # The row is no longer what the name is.
                return isinstance(each.value, ast.BinOp)
            if value.id in reads(each) or value.id in bound(each):
                return False
        return False

    def _has_rounds(self, over: ast.expr) -> bool:
        """Whether there are rows to stack, unless a tensor has none at all, or the configuration asks for none."""
        called = ast.unparse(over.func) if isinstance(over, ast.Call) else ""
        if isinstance(over, ast.Call) and called in ("enumerate", "zip", "reversed"):
            return all(map(self._has_rounds, over.args[:1] if called == "enumerate" else over.args))
        now = kinds_before(self.function, self.loop, self.kinds)
        return called == "range" or now.of(over).what == "tensor" or now.has_elements(over)

    def _selected(self, text: str, line: str, told: dict[str, Kind]) -> str | None:
        """The text where the comprehension behind the loop is a mask; None where that cannot be."""
        try:
            changed = Source(text)
            found = next(
                each
                for each in walk(changed.tree)
                if isinstance(each, ast.Assign) and ast.unparse(each) == line
            )
            function = changed.enclosing_function(found)
            if function is None or not isinstance(found.value, ast.ListComp):
                return None
            now = kinds_before(function, found, self.kinds.copy())
            now.names |= told
            return selected_in_comprehension(changed, found.value, now, self.torch)
        except (Refused, LookupError, SyntaxError, StopIteration):
            return None
