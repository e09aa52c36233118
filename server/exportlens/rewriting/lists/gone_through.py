"""Lists that a loop fills where data says, and that loops go through: each round puts its item in, and beside it whether it is kept.

    keep = []                                keep = []
    for i in range(n):                       keep_kept = []
        if score[i] > t:                     for i in range(n):
            keep.append(i)                       keep.append(i)
    for k in keep:                  ->           keep_kept.append(score[i] > t)
        out[k] = f(x[k])                     for k, kept in zip(keep, keep_kept):
                                                 if kept:
                                                     out[k] = f(x[k])

What goes through the list asks then, item by item, what the branch that filled it asked before: nothing is computed for items that
are not kept, and eager runs the same statements as before. The branches that ask are rewritten as others are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import append_of, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import combined, scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.bound_again import named_apart
from exportlens.rewriting.lists.given_rows import callers_choose_rows, given_as_tensor
from exportlens.rewriting.lists.marked_uses import MarkedList, is_bound_by_loop, named_in, uses_asked
from exportlens.rewriting.lists.numbered_rows import loop_over_tensor
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.rewriting.lists.started_lists import started_apart
from exportlens.rewriting.lists.stopped_fills import without_breaks
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.walking import walk

GO_THROUGH = "Keep whether each item is in the list"


def marked_items(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text where a list that the branch `node` fills, or the comprehension, has each item, and beside it whether it is
    kept; None where no loop goes through it, or more is done with it. `kinds` are those before the statement."""
    if isinstance(node, ast.ListComp):
        return _of_comprehension(source, node, kinds, torch)
    if not isinstance(node, ast.If):
        return None
    source, node = named_apart(*started_apart(source, node))
    source, node = without_breaks(source, node, torch) or (source, node)
    top: ast.stmt = node
    while isinstance(source.parents[top], ast.If):
        parent = source.parents[top]
        assert isinstance(parent, ast.If)
        top = parent
    function, around = source.enclosing_function(top), source.parents[top]
    if function is None or not (around is function or isinstance(around, ast.For)):
        return None
    block, at = source.block_of(top)
    if exits(block[:at]) != {"falls"} or (around is not function and block is not around.body):
        return None
    region = block[at:] if "continues" in exits([top]) else [top]
    if exits(region) - {"falls", "continues"} or not _has_equal_rounds(source, function, top, kinds):
        return None
    for statement in walk(ast.Module(list(region), [])):
        found = append_of(statement) if isinstance(statement, ast.stmt) else None
        if found is not None and isinstance(statement, ast.Expr):
            filled = _Filled(source, function, region, statement, *found, kinds, torch)
            text = filled.text()
            if text is not None:
                return text
    return None


def _has_equal_rounds(source: Source, function: Function, top: ast.stmt, kinds: Kinds) -> bool:
    """Whether no data decides how many rounds the loops around `top` have."""
    for each in source.ancestors(top):
        if each is function:
            return True
        if isinstance(each, ast.For):
            if length_from_data(kinds.of(each.iter)) or exits(each.body) & {"breaks", "returns"}:
                return False
        elif not isinstance(each, ast.If) or not _is_decided(each.test, kinds):
            return False
    return False


def _is_decided(test: ast.expr, kinds: Kinds) -> bool:
    return not any(
        kinds.of(each).from_data or kinds.of(each).what == "unknown"
        for each in ([test] if not isinstance(test, ast.BoolOp) else test.values)
    )


def _of_comprehension(source: Source, node: ast.ListComp, kinds: Kinds, torch: str) -> str | None:
    statement, function = source.parents[node], source.enclosing_function(node)
    if function is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    name, [rounds, *more] = statement.targets[0], node.generators
    if not isinstance(name, ast.Name) or more or rounds.is_async or not source.begins_line(statement):
        return None
    inside = kinds.in_comprehension(node)
    if length_from_data(kinds.of(rounds.iter)) or not all(
        is_plain(each, inside) for each in (node.elt, rounds.iter, *rounds.ifs)
    ):
        return None
    stores = [each for each in named_in(function, name.id) if not isinstance(each.ctx, ast.Load)]
    again = kinds.of(rounds.iter).what in ("tensor", "container") or ast.unparse(rounds.iter).startswith(
        "range("
    )
    grows = any(isinstance(source.parents[each], ast.Attribute) for each in named_in(function, name.id))
    if stores != [name] or not again or grows:
        return None
    try:
        read = [Predicates(source, inside, torch).read(each) for each in rounds.ifs]
        if any(each.form != "tensor" for each in read):
            # What Python decides in part may keep an item from failing.
            return None
        test = scalar_bool(combined(read, "and", torch))
    except Refused:
        return None
    if not all(inside.of(each).fresh for each in rounds.ifs):
        # What is asked may be written in place before a loop asks for it.
        test = f"({test}).clone()"
    marks = fresh(f"{name.id}_kept", every_name(source.tree))
    header = f"for {source.of(rounds.target)} in {source.of(rounds.iter)}"
    nl, indent = source.newline, source.indent_of(statement)
    lines = [f"{name.id} = [{source.of(node.elt)} {header}]", f"{marks} = [{test} {header}]"]
    text = replaced(source.text, [source.swap(statement, f"{nl}{indent}".join(lines))])
    return uses_asked(text, source, node, MarkedList(name.id, marks, torch, kinds.has_elements(rounds.iter)))


def _has_plain_part(node: ast.AST, kinds: Kinds) -> bool:
    """Whether `node` is a branch that Python decides, in part perhaps: what it keeps from running may fail."""
    if not isinstance(node, ast.If):
        return False
    parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    parts = [each.operand if isinstance(each, ast.UnaryOp) else each for each in parts]
    return any(
        not kinds.of(each).from_data
        and not (isinstance(each, ast.Call) and dotted(each.func) in ("any", "all"))
        for each in parts
    )


def _cannot_fail(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Constant, ast.Tuple, ast.expr_context))


@dataclass(frozen=True, slots=True)
class _Filled:
    """The list `name`, to which `append`, in the statements `region` of a loop's body or the function's, appends `value`."""

    source: Source
    function: Function
    region: list[ast.stmt]
    append: ast.Expr
    name: str
    value: ast.expr
    kinds: Kinds
    torch: str

    def text(self) -> str | None:
        source, torch = self.source, self.torch
        start, others = self._begun()
        ready = self._ready() if self._is_in_arms() else None
        if start is None or others is None or ready is None:
            return None
        if not all(map(source.begins_line, [start, self.append, *self.region, *others])):
            return None
        taken = every_name(source.tree)
        marks, flag = fresh(f"{self.name}_kept", taken), fresh("kept", taken)
        nl, indent = source.newline, source.indent_of(self.region[0])
        begun = start.value.elts if isinstance(start.value, ast.List) else []
        one = f"{torch}.ones((), dtype={torch}.bool)"
        swaps = [
            Replacement(
                *(source.end(start), source.end(start)),
                f"{nl}{source.indent_of(start)}{marks} = [{', '.join([one] * len(begun))}]",
            )
        ]
        for each in others:
            line = f"{nl}{source.indent_of(each)}{marks}.append({one})"
            swaps.append(Replacement(source.end(each), source.end(each), line))
        rows = None
        if not others and not begun:
            rows = loop_over_tensor(source, self.function, self.name, self.append, self.value, self.kinds)
        first, last = source.span(self.region)
        inside = [each for each in rows or () if first <= each.start < last]
        swaps += [each for each in rows or () if each not in inside]
        choosing = "tensors" if rows is not None else "numbers" if self._is_number() and not others else ""
        test = self._plain_test() if not others and not begun and not inside else None
        item = source.of(self.append)
        if rows is not None:
            # Rows of one tensor, of which a branch would take two, share its memory.
            item = f"{self.name}.append({source.of(self.value)}.clone())"
        head: list[str] = []
        if ready == "before" and test is None:
            named = fresh(f"{self.name}_item", taken)
            head = [f"{indent}{named} = {source.of(self.value)}"]
            item = f"{self.name}.append({named})"
        gone = [source.without(each, 0) for each in ready] if isinstance(ready, list) else []
        if None in gone:
            return None
        if isinstance(ready, list):
            head = [source.block([each], indent) for each in ready]
        if test is not None:
            lines = [indent + item, f"{indent}{marks}.append({test})"]
        else:
            mark = Replacement(
                *(source.start(self.append), source.end(self.append)), f"{flag} = {torch}.ones_like({flag})"
            )
            counts = self._counts_behind(f"sum({marks}) + {flag}")
            if counts is None:
                return None
            within = [mark, *counts, *inside, *(each for each in gone if each is not None)]
            inner = self._lines(self.region, indent, within)
            if inner is None:
                return None
            lines = [
                *head,
                f"{indent}{flag} = {torch}.zeros((), dtype={torch}.bool)",
                *inner,
                indent + item,
                f"{indent}{marks}.append({flag})",
            ]
        begin, end = source.span(self.region)
        notes = source.comments_between(begin, end) if test is not None else []
        lines[:0] = [indent + each for each in notes]
        swaps.append(Replacement(source.line_start(begin), end, nl.join(lines)))
        given = bool(choosing) and callers_choose_rows(source, self.function, self.kinds)
        told = MarkedList(self.name, marks, torch, self._has_rounds(), choosing, given)
        swaps += given_as_tensor(source, self.function.name) if given else []
        return uses_asked(replaced(source.text, swaps), source, self.append, told)

    def _counts_behind(self, count: str) -> list[Replacement] | None:
        """What asks for the list's length behind what is appended, in the same round; None where more is asked there."""
        source, swaps = self.source, []
        end = source.end(self.region[-1])
        for each in named_in(self.function, self.name):
            if source.end(self.append) < source.start(each) < end:
                outer = source.parents[each]
                asked = source.parents[outer]
                if not isinstance(outer, ast.Call) or ast.unparse(outer.func) != "len":
                    return None
                if not isinstance(asked, ast.Compare) or len(asked.ops) != 1:
                    return None
                swaps.append(source.swap(outer, count if asked.left is outer else f"({count})"))
        return swaps

    def _is_number(self) -> bool:
        """Whether what is appended is a number of Python that no data tells, of a loop over `range` or `enumerate`."""
        kind = kinds_before(self.function, self.append, self.kinds).of(self.value)
        return isinstance(self.value, ast.Name) and kind.what in ("number", "size") and kind.type == "int"

    def _has_rounds(self) -> bool:
        """Whether the list has an item, kept or not, behind the loops around the branch, unless the configuration asks for no
        round."""
        rounds = [each.iter for each in self.source.ancestors(self.append) if isinstance(each, ast.For)]
        return all(ast.unparse(each).startswith("range(") or self.kinds.has_elements(each) for each in rounds)

    def _begun(self) -> tuple[ast.Assign | None, list[ast.stmt] | None]:
        """Where the list begins, and the statements that append to it in any case; None where it is changed in another way."""
        stores: list[ast.stmt] = []
        others: list[ast.stmt] = []
        for each in named_in(self.function, self.name):
            outer = self.source.parents[each]
            statement = self.source.enclosing_statement(each)
            if not isinstance(each.ctx, ast.Load):
                stores.append(statement)
            elif isinstance(outer, ast.Attribute):
                found = append_of(statement)
                if found is None or found[0] != self.name:
                    return None, None
                if statement is not self.append:
                    others.append(statement)
            elif (
                isinstance(outer, ast.Subscript)
                and outer.value is each
                and not isinstance(outer.ctx, ast.Load)
            ):
                return None, None
        start = stores[0]
        if len(stores) != 1 or not isinstance(start, ast.Assign) or len(start.targets) != 1:
            return None, None
        value, target = start.value, start.targets[0]
        empty = isinstance(value, ast.List) and not any(isinstance(each, ast.Starred) for each in value.elts)
        if not isinstance(target, ast.Name) or not (empty or ast.unparse(value) == "list()"):
            return None, None
        for other in others:
            owner = self.source.parents[other]
            ways = owner.body if isinstance(owner, (ast.For, ast.FunctionDef)) else []
            if other not in ways or exits(ways[: ways.index(other)]) != {"falls"} or other in self.region:
                return None, None
        return start, others

    def _is_in_arms(self) -> bool:
        """Whether branches alone are between the block of the loop and what is appended."""
        outer: ast.AST = self.append
        while outer not in self.region:
            outer = self.source.parents[outer]
            if outer not in self.region and not isinstance(outer, ast.If):
                return False
        return isinstance(outer, ast.If) or outer is self.append

    def _ready(self) -> str | list[ast.stmt] | None:
        """Where the item may be computed in any case, and is the same: "behind" the branch, "before" it, or there where the
        statements of the arm that it is computed by are moved before the branch; None where it may not."""
        now = kinds_before(self.function, self.append, self.kinds)
        names = reads(self.value)
        bases = [base for one in self.region for base in written_bases(one)]
        written = {each.id for base in bases for each in walk(base) if isinstance(each, ast.Name)}
        if not self._may_be_computed(self.value, now) or (
            not isinstance(self.value, ast.Name) and names & written
        ):
            return None
        if not names & set(bound(self.region)):
            return "behind"
        block, at = self.source.block_of(self.append)
        earlier = self._earlier()
        walruses = [
            each.target.id for one in self.region for each in walk(one) if isinstance(each, ast.NamedExpr)
        ]
        if names & set(walruses):
            return None
        if not names & set(bound(earlier)):
            return "before"
        moved: list[ast.stmt] = []
        for each in reversed(block[:at]):
            if not names & set(bound(each)):
                continue
            target = each.targets[0] if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
            if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name):
                return None
            elsewhere = [
                one
                for one in named_in(self.function, target.id)
                if one is not target
                and not is_bound_by_loop(self.source, one)
                and not self._is_behind(each, one)
            ]
            then = kinds_before(self.function, each, self.kinds)
            if elsewhere or target.id in written or not self._may_be_computed(each.value, then):
                return None
            names = (names - {target.id}) | reads(each.value)
            moved.insert(0, each)
        left = [each for each in earlier if each not in moved]
        if names & (set(bound(left)) | written) or not all(map(self.source.begins_line, moved)):
            return None
        return moved

    def _is_behind(self, statement: ast.stmt, name: ast.Name) -> bool:
        """Whether `name` is read behind `statement` in its block."""
        block, at = self.source.block_of(statement)
        return isinstance(name.ctx, ast.Load) and any(
            one is name for each in block[at + 1 :] for one in walk(each)
        )

    def _earlier(self) -> list[ast.stmt]:
        """The statements of the region that may run before the item is put in, without the branches around it."""
        found: list[ast.stmt] = []
        inner: ast.stmt = self.append
        while True:
            block, at = self.source.block_of(inner)
            if inner in self.region:
                return [*self.region[: self.region.index(inner)], *found]
            found[:0] = block[:at]
            parent = self.source.parents[inner]
            assert isinstance(parent, ast.If)
            inner = parent

    def _may_be_computed(self, value: ast.expr, now: Kinds) -> bool:
        """Whether no branch of the region keeps `value` from failing."""
        return is_plain(value, now) and (
            not any(_has_plain_part(each, now) for one in self.region for each in ast.walk(one))
            or all(map(_cannot_fail, ast.walk(value)))
        )

    def _plain_test(self) -> str | None:
        """What the branch asks, where it appends and does nothing else."""
        [node, *more] = self.region
        if more or not isinstance(node, ast.If) or node.body != [self.append] or node.orelse:
            return None
        now = kinds_before(self.function, node, self.kinds)
        try:
            condition = Predicates(self.source, now, self.torch).read(node.test)
        except Refused:
            return None
        if condition.form != "tensor":
            return None
        test = scalar_bool(condition)
        return test if now.of(node.test).fresh else f"({test}).clone()"

    def _lines(self, statements: list[ast.stmt], indent: str, swaps: list[Replacement]) -> list[str] | None:
        """The text of `statements`, which end a loop's body, without `continue`: what a branch leaves out is its `else`."""
        source = self.source
        leaving = next((each for each in statements if "continues" in exits([each])), None)
        if leaving is None:
            return [source.block(statements, indent, _within(swaps, source, statements))]
        at = statements.index(leaving)
        if (
            not isinstance(leaving, ast.If)
            or leaving.orelse
            or not isinstance(leaving.body[-1], ast.Continue)
        ):
            return None
        if "continues" in exits(leaving.body[:-1]) or not all(map(source.begins_line, leaving.body)):
            return None
        rest = self._lines(statements[at + 1 :], indent + source.indent_unit(), swaps)
        if rest is None or not statements[at + 1 :]:
            return None
        before = statements[:at]
        lines = [source.block(before, indent, _within(swaps, source, before))] if before else []
        if len(leaving.body) == 1:
            notes = source.comments_between(source.span([leaving])[0], source.span([leaving])[1])
            lines += [indent + each for each in notes]
            return [*lines, f"{indent}if not ({source.of(leaving.test)}):", *rest]
        begin, end = source.start(leaving), source.span(leaving.body[:-1])[1]
        head = source.shifted(
            begin, end, source.indent_of(leaving), indent, _within(swaps, source, leaving.body[:-1])
        )
        return [*lines, indent + head, f"{indent}else:", *rest]


def _within(swaps: list[Replacement], source: Source, statements: list[ast.stmt]) -> list[Replacement]:
    begin, end = source.span(statements)
    return [each for each in swaps if begin <= each.start and each.end <= end]
