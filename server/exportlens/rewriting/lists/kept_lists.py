"""A list to which tensor data decides what is appended gets an element in each round, and beside it whether it was kept.

    losses = []                              losses = []
    for c in range(3):                       kept_losses = []
        m = y == c                           for c in range(3):
        if m.any():                              m = y == c
            losses.append(f(x[m]))               kept = m.any()
    if not losses:                 ->            loss = torch.zeros(())
        return x.sum() * 0                       if kept:
    return torch.stack(losses).mean()                loss = f(x[m])
                                                 losses.append(loss)
                                                 kept_losses.append(kept)
                                             if not torch.stack(kept_losses).any():
                                                 return x.sum() * 0
                                             return torch.stack(losses).sum() / torch.stack(kept_losses).sum()

What was not kept is zero: sums and means of numbers do not see it. Where nothing was kept Python's own results differ: the
sum is an int, so that such a use must lie behind a question whether there is any; an empty list is not stacked, and a check
keeps that.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import appended_to, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.list_uses import ListUses
from exportlens.rewriting.lists.started_lists import StartedList, list_of, started_apart, zero_of


def with_kept(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If, Kinds] | None:
    """The text in which the lists that the `if` statement `node` may append to have an element in any case, that statement, and
    the kinds just before it; None where there is no such list, or where more is done with one."""
    if any(
        isinstance(each, ast.For) and length_from_data(kinds.of(each.iter)) for each in source.ancestors(node)
    ):
        # As many elements as data says are added up where the loop is rewritten.
        return None
    source, node = started_apart(source, node)
    made = _with_one_kept(source, node, kinds, torch, alone=True)
    now = kinds.copy()
    while made is not None:
        source, node = made
        block, index = source.block_of(node)
        now.run(block[index - 2 : index])
        if not any(appended_to(each) for each in node.body):
            return source, node, now
        made = _with_one_kept(source, node, now, torch, alone=False)
    return None


def _with_one_kept(
    source: Source, node: ast.If, kinds: Kinds, torch: str, *, alone: bool
) -> tuple[Source, ast.If] | None:
    """As `with_kept`, with the first of the lists; what another list asks may stand around its uses unless it is `alone`."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    skips = not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Continue)
    arm = block[index + 1 :] if skips else node.body
    if (not skips and (node.orelse or exits([node]) != {"falls"})) or (skips and exits(arm) != {"falls"}):
        return _with_kept_deeper(source, function, node, kinds, torch)
    appends = [each for each in arm if appended_to(each) is not None]
    lists = {appended_to(each) for each in appends}
    if not appends or len(lists) != len(appends):
        return _with_kept_deeper(source, function, node, kinds, torch)
    # One list after the other: what is appended to the next stays in the arm until its turn.
    found = list_of(source, function, appends[0], kinds)
    if found is None:
        return None
    predicates = Predicates(source, kinds, torch)
    try:
        condition = predicates.read(node.test, skips)
    except Refused:
        return None
    if condition.form != "tensor":
        return _with_kept_deeper(source, function, node, kinds, torch)
    made = _Kept(source, function, torch, found, appends[0])
    asked = made.uses(kinds.functions)
    uses = asked.uses()
    zero = zero_of(found, kinds, torch, arm)
    runs = _runs(source, function, node, kinds, asked.raises and alone)
    if uses is None or zero is None or runs is None:
        return None
    test = scalar_bool(condition)
    if not skips and not kinds.of(node.test).fresh:
        test = f"{primary(test)}.clone()"
    return made.text(node, arm, skips, uses, test, zero, runs)


def _with_kept_deeper(
    source: Source, function: Function, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """As `with_kept`, where several branches lead to what is appended, or no tensor decides: the innermost arm says that
    it was kept."""
    block, index = source.block_of(node)
    loop = source.parents[node]
    skipping = "continues" in exits([node])
    if skipping and not (isinstance(loop, ast.For) and block is loop.body):
        return None
    region: list[ast.stmt] = block[index:] if skipping else [node]
    if exits(region) - {"falls", "continues"}:
        return None
    appends = [each for one in region for each in ast.walk(one) if isinstance(each, ast.stmt)]
    if not all(map(source.begins_line, appends)):
        return None
    appends = [each for each in appends if appended_to(each) is not None]
    found = list_of(source, function, appends[0], kinds) if len(appends) == 1 else None
    if found is None:
        return None
    made = _Kept(source, function, torch, found, appends[0])
    asked = made.uses(kinds.functions)
    uses, zero = asked.uses(), zero_of(found, kinds, torch, region)
    runs = _runs(source, function, node, kinds, asked.raises)
    lines = made.nested(region, source.indent_of(node), node)
    if uses is None or zero is None or runs is None or lines is None:
        return None
    return made.deeper_text(node, region, lines, uses, zero, runs)


def _runs(source: Source, function: Function, node: ast.If, kinds: Kinds, raises: bool) -> bool | None:
    """Whether `node` certainly is reached, or the list is used where it `raises` without: of an empty list nothing is
    stacked. None where a loop around it is left early."""
    runs = True
    for each in source.ancestors(node):
        if each is function:
            return runs
        if not isinstance(each, ast.For) or exits(each.body) & {"breaks", "returns"}:
            return None
        runs = runs and (raises or kinds.has_elements(each.iter))
    return None


@dataclass
class _Kept:
    """The list `found`, and the names for an element of it and for whether that was kept."""

    source: Source
    function: Function
    torch: str
    found: StartedList
    append: ast.stmt

    def __post_init__(self) -> None:
        taken = every_name(self.source.tree)
        self.kept = fresh(f"kept_{self.found.name}", taken)
        name = self.found.name
        one = name.removesuffix("es") if name.endswith("sses") else name
        one = one if one.endswith("ss") else one.removesuffix("s")
        self.value = fresh("value" if one == name else one, taken)
        self.flag = fresh("kept", taken)

    def uses(self, functions: Mapping[str, ast.FunctionDef]) -> ListUses:
        """What uses the list, by what was kept of it."""
        kept = f"{self.torch}.stack({self.kept})"
        total = f"{self.torch}.stack({self.found.name}).sum()"
        return ListUses(
            self.source,
            self.function,
            self.torch,
            self.found,
            self.append,
            functions,
            total,
            f"{kept}.sum()",
            f"{kept}.any()",
        )

    def _of_no_rounds(self, node: ast.If) -> Replacement:
        """Where the loops around `node` have no round, the list gets a zero that is not kept: nothing stacks no tensors."""
        source, nl = self.source, self.source.newline
        loop = [each for each in source.ancestors(node) if isinstance(each, ast.For)][-1]
        indent = source.indent_of(loop)
        inner = indent + source.indent_unit()
        lines = [
            f"{indent}if not {self.kept}:",
            f"{inner}{self.found.name}.append({self.torch}.zeros(()))",
            f"{inner}{self.kept}.append({self.torch}.zeros((), dtype={self.torch}.bool))",
        ]
        end = source.span([loop])[1]
        return Replacement(end, end, nl + nl.join(lines))

    # --- several branches -----------------------------------------------------------------------------------

    def nested(self, statements: list[ast.stmt], indent: str, first: ast.stmt) -> list[str] | None:
        """The statements with the value in the place of what is appended, and without `continue`; None where `continue` is
        more than the whole of a branch. What stands above `first` stays there."""
        source, unit = self.source, self.source.indent_unit()
        lines: list[str] = []
        for index, each in enumerate(statements):
            if each is self.append:
                lines.append(f"{indent}{self.value} = {source.of(self.found.value)}")
                lines.append(f"{indent}{self.flag} = {self.torch}.ones((), dtype={self.torch}.bool)")
                continue
            skips = isinstance(each, ast.If) and "continues" in exits([each])
            leads = isinstance(each, ast.If) and any(one is self.append for one in ast.walk(each))
            if not skips and not leads:
                lines.append(source.block([each], indent))
                continue
            assert isinstance(each, ast.If)
            if each is not first:
                above = source.comments_between(source.span([each])[0], source.start(each))
                lines += [indent + one for one in above]
            if leads:
                inner = None if skips or each.orelse else self.nested(each.body, indent + unit, first)
                if inner is None:
                    return None
                lines += [f"{indent}if {source.of(each.test)}:", *inner]
                continue
            if each.orelse or len(each.body) != 1 or not isinstance(each.body[0], ast.Continue):
                return None
            rest = self.nested(statements[index + 1 :], indent + unit, first)
            return None if not rest else [*lines, f"{indent}if not ({source.of(each.test)}):", *rest]
        return lines

    def deeper_text(
        self,
        node: ast.If,
        region: list[ast.stmt],
        nested: list[str],
        uses: list[Replacement],
        zero: str,
        runs: bool,
    ) -> tuple[Source, ast.If] | None:
        """The text with the statements of `region` as `nested`."""
        indent = self.source.indent_of(node)
        head = [
            f"{self.value} = {zero}",
            f"{indent}{self.flag} = {self.torch}.zeros((), dtype={self.torch}.bool)",
        ]
        first_if = next(number for number, line in enumerate(nested) if line.lstrip().startswith("if "))
        tail = [
            f"{indent}{self.found.name}.append({self.value})",
            f"{indent}{self.kept}.append({self.flag})",
        ]
        return self._put(node, region, head, nested, tail, first_if, uses, runs)

    def _put(
        self,
        node: ast.If,
        region: list[ast.stmt],
        head: list[str],
        nested: list[str],
        tail: list[str],
        first_if: int,
        uses: list[Replacement],
        runs: bool,
    ) -> tuple[Source, ast.If]:
        source, nl = self.source, self.source.newline
        begin, start = source.start(node), self.found.start
        first = f"{nl}{source.indent_of(start)}{self.kept} = []"
        end = source.span([start])[1]
        text = nl.join([*head, *nested, *tail])
        swaps = [Replacement(end, end, first), Replacement(begin, source.span(region)[1], text), *uses]
        if not runs:
            swaps.append(self._of_no_rounds(node))
        changed = Source(replaced(source.text, swaps))
        indent = len(source.indent_of(node))
        offset = begin + len(first) + len(nl.join([*head, *nested[:first_if]])) + len(nl) + indent
        return changed, changed.branch_at(offset)

    def text(
        self,
        node: ast.If,
        arm: list[ast.stmt],
        skips: bool,
        uses: list[Replacement],
        test: str,
        zero: str,
        runs: bool,
    ) -> tuple[Source, ast.If]:
        source, nl = self.source, self.source.newline
        indent = source.indent_of(node)
        inner = indent + source.indent_unit()
        value = source.of(self.found.value)
        lines = [
            f"{self.flag} = {test}",
            f"{indent}{self.value} = {zero}",
            f"{indent}if {self.flag}:",
            *(inner + each for each in source.comments_between(source.end(node.test), source.span(arm)[0])),
            source.block(arm, inner, [source.swap(self.append, f"{self.value} = {value}")]),
            f"{indent}{self.found.name}.append({self.value})",
            f"{indent}{self.kept}.append({self.flag})",
        ]
        begin, start = source.start(node), self.found.start
        first = f"{nl}{source.indent_of(start)}{self.kept} = []"
        end = source.span([start])[1]
        changed = Source(
            replaced(
                source.text,
                [
                    *([] if runs else [self._of_no_rounds(node)]),
                    Replacement(end, end, first),
                    Replacement(begin, source.span(arm if skips else [node])[1], nl.join(lines)),
                    *uses,
                ],
            )
        )
        offset = begin + len(first) + len(nl.join(lines[:2]) + nl + indent)
        return changed, changed.branch_at(offset)
