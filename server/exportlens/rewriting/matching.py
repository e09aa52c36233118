"""`match` on a value becomes the `if` chain that it is, which can be rewritten further."""

from __future__ import annotations

import ast

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import every_name, fresh, reads
from exportlens.rewriting.operands import read_out
from exportlens.rewriting.predicates import primary
from exportlens.rewriting.text import Replacement, Source, replaced


def as_branches(source: Source, node: ast.Match, kinds: Kinds) -> tuple[Source, ast.If]:
    """The text with `if`/`elif`/`else` in the place of `node`, and the `if`. Raises Refused for patterns that are no
    constants."""
    if not source.begins_line(node):
        raise Refused("the `match` shares its line with another statement")
    indent, nl = source.indent_of(node), source.newline
    inner = indent + source.indent_unit()
    subject, head = source.of(node.subject), ""
    binds = any(_bound(case) for case in node.cases)
    if not binds:
        # Comparing the tensor is the same, and torch.cond takes no number that was read out of one.
        subject = integers_behind(source, node.subject, kinds) or subject
    if not isinstance(node.subject, ast.Name):
        name = fresh("subject", every_name(source.tree))
        head, subject = f"{name} = {subject}{nl}{indent}", name
    above = source.comments_between(source.end(node.subject), source.start(node.cases[0].pattern))
    head += "".join(f"{each}{nl}{indent}" for each in above)
    lines: list[str] = []
    for number, case in enumerate(node.cases):
        test, bound = _test(source, case, subject)
        if number == 0 and test is None:
            raise Refused("the first case of the `match` always holds")
        word = "if" if number == 0 else "elif" if test is not None else "else"
        comments = source.comments_between(source.end(case.guard or case.pattern), source.span(case.body)[0])
        lines += [
            f"{'' if number == 0 else indent}{word}{'' if test is None else ' ' + test}:",
            *(inner + each for each in comments),
            *([f"{inner}{bound} = {subject}"] if bound else []),
            source.block(case.body, inner),
        ]
        if test is None:
            break
    begin = source.start(node)
    changed = Source(
        replaced(source.text, [Replacement(begin, source.span([node])[1], head + nl.join(lines))])
    )
    made = changed.branch_at(begin + len(head))
    return changed, made


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


def _test(source: Source, case: ast.match_case, subject: str) -> tuple[str | None, str | None]:
    """The condition of a case, None where it always holds, and the name that it binds."""
    pattern, guard = case.pattern, None if case.guard is None else source.of(case.guard)
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        if pattern.name is not None and guard is not None:
            raise Refused(f"a case of the `match` binds `{pattern.name}` and tests it")
        return guard, _bound(case)
    options = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    texts = []
    for each in options:
        if not isinstance(each, ast.MatchValue):
            raise Refused(f"`case {source.of(pattern)}` is no comparison with a constant")
        texts.append(f"{subject} == {source.of(each.value)}")
    test = " or ".join(texts)
    if guard is not None:
        test = f"({test}) and ({guard})" if len(texts) > 1 else f"{test} and ({guard})"
    return test, None
