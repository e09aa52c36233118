"""A branch that chooses what torch.cond cannot give takes in the statements that use it.

    if t:                          if t:
        scale = 0.5                    scale = 0.5
    else:                   ->         y = (1 - scale) * x
        scale = 2.0                else:
    y = (1 - scale) * x                scale = 2.0
                                       y = (1 - scale) * x

What leaves the branch is then a tensor, where before it was a Python number, None, a function, or a tensor of another
dtype. The copies do what the one text did: each way through the branch runs the same statements as before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.effects import repeatable
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.liveness import exits
from exportlens.rewriting.moving import may_write
from exportlens.rewriting.names import bound, reads, walk_own
from exportlens.rewriting.outputs import is_again
from exportlens.rewriting.text import Replacement, Source, replaced

# What is written out once more for each further way through the branch, all in all.
_MOST_COPIED = 16
_MOST_TRIED = 3


def grown(source: Source, node: ast.If, kinds: Kinds) -> Iterator[tuple[Source, ast.If]]:
    """The texts in which the `if` statement `node` holds more of what follows, and that statement: up to the first uses of
    the names that it binds, then up to the last one, then up to the end of the block."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return
    block, index = source.block_of(node)
    following = block[index + 1 :]
    chosen = set(bound([*node.body, *node.orelse]))
    uses = [number for number, each in enumerate(following, 1) if chosen & (reads(each) | set(bound(each)))]
    if not uses:
        return
    for count in dict.fromkeys((*uses[:_MOST_TRIED], uses[-1], len(following))):
        tail = following[:count]
        if _may_be_copied(source, node, tail) and not any(_is_unclear(each, kinds) for each in _nodes(tail)):
            yield _with_tail(source, node, tail, _asked_again(node, tail, kinds))


def with_others_first(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If, Kinds] | None:
    """The text in which what directly follows the `if` statement `node` and has nothing to do with it stands before it, that
    statement, and the kinds just before it; None where there is nothing of the kind."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    touched = reads(node) | set(bound(node))
    moved: list[ast.stmt] = []
    for each in block[index + 1 :]:
        # What calls nothing draws no random numbers and changes nothing.
        plain = isinstance(each, ast.Assign) and all(isinstance(one, ast.Name) for one in each.targets)
        if not plain or any(isinstance(one, (ast.Call, ast.NamedExpr, ast.Await)) for one in ast.walk(each)):
            break
        if set(bound(each)) & touched or reads(each) & set(bound([*node.body, *node.orelse])):
            break
        moved.append(each)
    if not moved or exits([node]) != {"falls"} or may_write([node], kinds):
        return None
    begin, end = source.start(node), source.span(moved)[1]
    indent, nl = source.indent_of(node), source.newline
    first = source.block(moved, indent).removeprefix(indent)
    text = first + nl + indent + source.text[begin : source.span([node])[1]]
    changed = Source(replaced(source.text, [Replacement(begin, end, text)]))
    now = kinds.copy()
    now.run(moved)
    return changed, changed.branch_at(begin + len(first + nl + indent)), now


def _nodes(tail: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in tail:
        yield from ast.walk(statement)


def _is_unclear(node: ast.AST, kinds: Kinds) -> bool:
    """Whether `node` is what may not be written out twice: a round of a loop, which leads to all rounds after it, or a test
    that may hang on tensor data without being known to, and would not be rewritten in its copies."""
    if isinstance(node, ast.Call):
        return is_again(node, kinds)
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return any(
            isinstance(each, ast.Call) and kinds.of(each).what == "unknown" for each in ast.walk(node.test)
        )
    return False


def _asked_again(node: ast.If, tail: Sequence[ast.stmt], kinds: Kinds) -> dict[int, bool]:
    """The branches in `tail` that ask what `node` asks, by their identity, each with whether it asks for the same and not for the
    opposite: on each way through `node` the answer is known."""
    if _is_chain(node) or not repeatable(node.test, kinds) or "self" in reads(node.test):
        return {}
    found: dict[int, bool] = {}
    before: list[ast.stmt] = [*node.body, *node.orelse]
    for each in tail:
        if set(bound(before)) & reads(node.test) or may_write(before, kinds):
            break
        if isinstance(each, ast.If):
            plain = _without_not(each.test)
            if ast.dump(plain) == ast.dump(_without_not(node.test)):
                found[id(each)] = (plain is each.test) == (_without_not(node.test) is node.test)
        before.append(each)
    return found


def _without_not(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test


def _is_chain(node: ast.If) -> bool:
    return len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)


def _ends(node: ast.If) -> list[list[ast.stmt]]:
    """The blocks of an `if`/`elif`/`else` chain, an empty one where there is no `else`."""
    if _is_chain(node):
        return [node.body, *_ends(node.orelse[0])]  # type: ignore[arg-type]
    return [node.body, node.orelse]


def _may_be_copied(source: Source, node: ast.If, tail: Sequence[ast.stmt]) -> bool:
    ways = exits(tail)
    size = sum(isinstance(each, ast.stmt) for statement in tail for each in ast.walk(statement))
    copies = sum("falls" in exits(end) for end in _ends(node)) - 1
    plain = not any(
        isinstance(
            each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.Global, ast.Nonlocal)
        )
        for each in walk_own(tail)
    )
    return plain and not ways & {"breaks", "continues", "raises"} and size * copies <= _MOST_COPIED


def _with_tail(
    source: Source, node: ast.If, tail: Sequence[ast.stmt], again: dict[int, bool]
) -> tuple[Source, ast.If]:
    nl, indent = source.newline, source.indent_of(node)
    inner = indent + source.indent_unit()
    lines: list[str] = []
    word, each, at = "if", node, source.start(node)
    while True:
        lines += [
            f"{indent}{word} {_test(source, each)}:",
            *_end(source, each.body, _answered(tail, again, True), source.end(each.test), inner),
        ]
        at = source.span(each.body)[1]
        if not (len(each.orelse) == 1 and isinstance(each.orelse[0], ast.If)):
            break
        following = each.orelse[0]
        lines += [inner + comment for comment in source.comments_between(at, source.start(following))]
        word, each = "elif", following
    lines += [f"{indent}else:", *_end(source, each.orelse, _answered(tail, again, False), at, inner)]
    begin = source.start(node)
    changed = Source(
        replaced(
            source.text,
            [Replacement(begin, source.span([tail[-1]])[1], nl.join(lines).removeprefix(indent))],
        )
    )
    return changed, changed.branch_at(begin)


def _test(source: Source, node: ast.If) -> str:
    text = source.of(node.test)
    return f"({text})" if "\n" in text else text


def _answered(tail: Sequence[ast.stmt], again: dict[int, bool], answer: bool) -> list[list[ast.stmt]]:
    """`tail` in blocks, where of the branches `again` there is what runs when `node` is answered by `answer`."""
    blocks: list[list[ast.stmt]] = [[]]
    for each in tail:
        if isinstance(each, ast.If) and id(each) in again:
            blocks += [each.body if again[id(each)] is answer else each.orelse, []]
        else:
            blocks[-1].append(each)
    return [each for each in blocks if each]


def _end(
    source: Source, block: list[ast.stmt], tail: Sequence[list[ast.stmt]], at: int, indent: str
) -> list[str]:
    """The lines of one way through the branch and `tail`; what stands before it begins at `at`."""
    lines = []
    if block:
        lines += [indent + each for each in source.comments_between(at, source.span(block)[0])]
    if block and not all(isinstance(each, ast.Pass) for each in block):
        lines.append(source.block(block, indent))
    if "falls" in exits(block):
        lines += [source.block(each, indent) for each in tail]
    return lines or [f"{indent}pass"]
