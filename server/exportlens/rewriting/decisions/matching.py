"""`match` on a value becomes the `if` chain that it is, which can be rewritten further."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.numbers.operands import read_out


def as_branches(source: Source, node: ast.Match, kinds: Kinds) -> tuple[Source, ast.If, int]:
    """The text with `if`/`elif`/`else` in the place of `node`, the `if`, and how many statements before it give names to what is
    compared. Raises Refused for patterns that are no constants, nor tuples of such."""
    if not source.begins_line(node):
        raise Refused("the `match` shares its line with another statement")
    indent, nl = source.indent_of(node), source.newline
    inner = indent + source.indent_unit()
    taken = every_name(source.tree)
    heads: list[str] = []

    def held(part: ast.expr, name: str, binds: bool) -> str:
        """A name, or a constant, for what is compared in several cases."""
        # Comparing the tensor is the same, and torch.cond takes no number that was read out of one.
        text = source.of(part) if binds else integers_behind(source, part, kinds) or source.of(part)
        if isinstance(part, (ast.Name, ast.Constant)):
            return text
        name = fresh(name, taken)
        taken.add(name)
        heads.append(f"{name} = {text}")
        return name

    subject: str | list[str]
    if isinstance(node.subject, ast.Tuple) and all(_is_by_items(case.pattern) for case in node.cases):
        if any(isinstance(each, ast.Starred) for each in node.subject.elts):
            raise Refused("the `match` is on a tuple of no known length")
        bound = [_binds_at(node, index) for index in range(len(node.subject.elts))]
        subject = [held(each, "part", binds) for each, binds in zip(node.subject.elts, bound, strict=True)]
    else:
        subject = held(node.subject, "subject", any(_bound(case) for case in node.cases))
    head = "".join(f"{each}{nl}{indent}" for each in heads)
    above = source.comments_between(source.end(node.subject), source.start(node.cases[0].pattern))
    head += "".join(f"{each}{nl}{indent}" for each in above)
    lines: list[str] = []
    for number, case in enumerate(node.cases):
        test, names = _test(source, node, case, subject)
        if number == 0 and test is None:
            raise Refused("the first case of the `match` always holds")
        word = "if" if number == 0 else "elif" if test is not None else "else"
        comments = source.comments_between(source.end(case.guard or case.pattern), source.span(case.body)[0])
        lines += [
            f"{'' if number == 0 else indent}{word}{'' if test is None else ' ' + test}:",
            *(inner + each for each in comments),
            *_bindings(names, inner),
            source.block(case.body, inner),
        ]
        if test is None:
            break
    begin = source.start(node)
    changed = Source(
        replaced(source.text, [Replacement(begin, source.span([node])[1], head + nl.join(lines))])
    )
    made = changed.branch_at(begin + len(head))
    return changed, made, len(heads)


def _bindings(names: list[tuple[str, str]], indent: str) -> list[str]:
    """The lines that bind names to what they stand for: at once where one stands for another."""
    if {name for name, _ in names} & {text for _, text in names}:
        return [f"{indent}{', '.join(name for name, _ in names)} = {', '.join(text for _, text in names)}"]
    return [f"{indent}{name} = {text}" for name, text in names]


def _bound(case: ast.match_case) -> str | None:
    """The name that a case binds and reads."""
    pattern = case.pattern
    name = pattern.name if isinstance(pattern, ast.MatchAs) else None
    return (
        name
        if name is not None and name in reads([*case.body, *([case.guard] if case.guard else [])])
        else None
    )


def integers_behind(source: Source, node: ast.expr, kinds: Kinds) -> str | None:
    """The tensor of integers whose number `t.item()` or `int(t)` is: of any other tensor, `int` cuts off what `long()` does."""
    found = read_out(node)
    if found is None or found[0] not in ("item", "int"):
        return None
    kind = kinds.of(found[1])
    if kind.what != "tensor":
        return None
    if (kind.dtype or "").startswith(("int", "uint")):
        return source.of(found[1])
    return f"{primary(source.of(found[1]))}.long()" if found[0] == "int" else None


def _is_by_items(pattern: ast.pattern) -> bool:
    """Whether a pattern asks for the items one by one, or for nothing."""
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_by_items, pattern.patterns))
    return isinstance(pattern, ast.MatchSequence) or (
        isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None
    )


def _binds_at(node: ast.Match, index: int) -> bool:
    """Whether a case gives the item a name."""
    return any(
        isinstance(each, ast.MatchSequence)
        and index < len(each.patterns)
        and any(
            isinstance(one, ast.MatchAs) and one.name is not None for one in ast.walk(each.patterns[index])
        )
        for case in node.cases
        for each in ast.walk(case.pattern)
    )


def _test(
    source: Source, node: ast.Match, case: ast.match_case, subject: str | list[str]
) -> tuple[str | None, list[tuple[str, str]]]:
    """The condition of a case, None where it always holds, and the names that it binds with what they stand for."""
    tests, bound = _of_pattern(source, case.pattern, subject)
    test = " and ".join(f"({each})" if " or " in each and len(tests) > 1 else each for each in tests)
    if case.guard is not None:
        names = dict(bound)
        swaps = [
            source.swap(each, names[each.id])
            for each in ast.walk(case.guard)
            if isinstance(each, ast.Name) and each.id in names
        ]
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(case.guard)):
            raise Refused("a case of the `match` binds a name in its guard")
        guard = source.of(case.guard, swaps)
        held = f"({test})" if " or " in test else test
        test = f"{held} and ({guard})" if test else guard
    later = _reads_around(source, node)
    if case.guard is not None and any(name in later for name, _ in bound):
        raise Refused(
            f"`case {source.of(case.pattern)}` binds a name that is read behind the `match`, and has a guard"
        )
    used = later | reads(case.body)
    return test or None, [(name, text) for name, text in bound if name in used]


def _reads_around(source: Source, node: ast.Match) -> set[str]:
    """The names that the function reads outside of `node`."""
    inside = {id(each) for each in ast.walk(node)}
    function = source.enclosing_function(node) or source.tree
    return {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and id(each) not in inside
    }


def _of_pattern(
    source: Source, pattern: ast.pattern, subject: str | list[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The conditions that must all hold, and what names stand for. Raises Refused."""
    if isinstance(pattern, ast.MatchAs) and (isinstance(subject, str) or pattern.name is None):
        tests, bound = ([], []) if pattern.pattern is None else _of_pattern(source, pattern.pattern, subject)
        return tests, [*bound, *([(pattern.name, str(subject))] if pattern.name is not None else [])]
    if isinstance(pattern, ast.MatchValue) and isinstance(subject, str):
        return [f"{subject} == {source.of(pattern.value)}"], []
    if isinstance(pattern, ast.MatchOr):
        options = [_of_pattern(source, each, subject) for each in pattern.patterns]
        bound = options[0][1]
        if any(one != bound or not tests for tests, one in options):
            raise Refused(f"`case {source.of(pattern)}` binds names in one of its patterns")
        return [
            " or ".join(f"({' and '.join(tests)})" if len(tests) > 1 else tests[0] for tests, _ in options)
        ], bound
    if isinstance(pattern, ast.MatchSequence) and isinstance(subject, list):
        if len(pattern.patterns) != len(subject) or any(
            isinstance(each, ast.MatchStar) for each in pattern.patterns
        ):
            raise Refused(f"`case {source.of(pattern)}` asks for another number of items")
        found = [
            _of_pattern(source, each, part) for each, part in zip(pattern.patterns, subject, strict=True)
        ]
        return [test for tests, _ in found for test in tests], [one for _, bound in found for one in bound]
    raise Refused(f"`case {source.of(pattern)}` is no comparison with a constant")
