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
from collections.abc import Iterable, Iterator, Mapping, Sequence

from exportlens.rewriting.branches.answered_again import Answers, answered, asked_again, swaps_for
from exportlens.rewriting.branches.outputs import is_again
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, reads, walk_own
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import may_write

# What is written out once more for each further way through the branch, all in all.
_MOST_COPIED = 16
_MOST_TRIED = 3
_OF_NUMBERS = ("abs", "bool", "float", "int", "len", "max", "min", "round")
_RESIZING = frozenset(
    {
        *(
            "cat",
            "concat",
            "concatenate",
            "hstack",
            "vstack",
            "dstack",
            "stack",
            "repeat",
            "repeat_interleave",
        ),
        *(
            "tile",
            "pad",
            "narrow",
            "interpolate",
            "upsample",
            "unfold",
            "index_select",
            "masked_select",
            "expand",
        ),
    }
)


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
        again = asked_again(source, node, tail, kinds)
        unclear = any(_is_unclear(each, kinds) for each in _nodes(tail) if each not in again)
        if not unclear and _may_be_copied(node, tail, again):
            yield _with_tail(source, node, tail, again)


def grown_for_sizes(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If] | None:
    """The text in which `node`, whose arms may give tensors of several sizes, holds what follows up to the last question that asks
    the same again: behind torch.cond such a size is not known, and `chunk` or `view` do not take it. None where nothing asks."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    if not any(_resizes(each) for end in _ends(node) for each in _nodes(end)):
        return None
    block, index = source.block_of(node)
    following = block[index + 1 :]
    again = asked_again(source, node, following, kinds)
    of_size, last = set(bound([node])), 0
    for number, each in enumerate(following, 1):
        if of_size & reads(each):
            of_size |= set(bound([each]))
            last = number if any(one in again for one in ast.walk(each)) else last
    tail = following[:last]
    unclear = any(_is_unclear(each, kinds) for each in _nodes(tail) if each not in again)
    if not tail or unclear or not _may_be_copied(node, tail, again):
        return None
    return _with_tail(source, node, tail, again)


def grown_to_leave(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If] | None:
    """The text in which `node` holds the rest of a loop's round, where that asks again what `node` has decided, and leaves the loop
    by it: `s = "done" if t else "go"`, then `if s == "done": break`. None where it is no such branch."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    tail, loop = block[index + 1 :], source.parents[node]
    if not isinstance(loop, (ast.For, ast.While)) or block is not loop.body or exits([node]) != {"falls"}:
        return None
    again = asked_again(source, node, tail, kinds)
    asked = any(
        isinstance(each, ast.If) and each in again and "falls" not in exits(each.body) for each in tail
    )
    unclear = any(_is_unclear(each, kinds) for each in _nodes(tail) if each not in again)
    ways = exits(tail) - {"falls"}
    if not asked or unclear or not ways <= {"breaks", "returns"} or not _is_short(node, tail, again):
        return None
    return _with_tail(source, node, tail, again)


def _resizes(node: ast.AST) -> bool:
    """Whether `node` is an operation that gives its operand another size."""
    if isinstance(node, ast.Slice):
        return node.lower is not None or node.upper is not None or node.step is not None
    if not isinstance(node, ast.Call):
        return False
    return (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    ) in _RESIZING


def with_others_first(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If, Kinds] | None:
    """The text in which what directly follows the `if` statement `node` and has nothing to do with it stands before it, that
    statement, and the kinds just before it; None where there is nothing of the kind."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    touched = reads(node) | set(bound(node))
    silent = all(
        not isinstance(each, ast.Call) or dotted(each.func) in _OF_NUMBERS for each in ast.walk(node)
    )
    moved: list[ast.stmt] = []
    for each in block[index + 1 :]:
        plain = isinstance(each, ast.Assign) and all(isinstance(one, ast.Name) for one in each.targets)
        if not plain or any(isinstance(one, (ast.NamedExpr, ast.Await)) for one in ast.walk(each)):
            break
        # A draw may come before what calls nothing but Python's own functions of numbers.
        if may_write([each], kinds) or (
            not silent and any(isinstance(one, ast.Call) for one in ast.walk(each))
        ):
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


def _is_chain(node: ast.If) -> bool:
    return len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)


def _ends(node: ast.If) -> list[list[ast.stmt]]:
    """The blocks of an `if`/`elif`/`else` chain, an empty one where there is no `else`."""
    if _is_chain(node):
        return [node.body, *_ends(node.orelse[0])]  # type: ignore[arg-type]
    return [node.body, node.orelse]


def _may_be_copied(node: ast.If, tail: Sequence[ast.stmt], again: Mapping[ast.AST, Answers]) -> bool:
    return not exits(tail) & {"breaks", "continues", "raises"} and _is_short(node, tail, again)


def _is_short(node: ast.If, tail: Sequence[ast.stmt], again: Mapping[ast.AST, Answers]) -> bool:
    ends = [number for number, end in enumerate(_ends(node)) if "falls" in exits(end)]
    sizes = [_size(answered(tail, again, number)) for number in ends]
    plain = not any(
        isinstance(
            each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.Global, ast.Nonlocal)
        )
        for each in walk_own(tail)
    )
    # The longest stands for what was written before.
    copied = sum(sizes) - max(sizes, default=0)
    return plain and copied <= _MOST_COPIED


def _size(blocks: Iterable[list[ast.stmt]]) -> int:
    parts = (each for block in blocks for statement in block for each in ast.walk(statement))
    return sum(isinstance(each, ast.stmt) for each in parts)


def _with_tail(
    source: Source, node: ast.If, tail: Sequence[ast.stmt], again: Mapping[ast.AST, Answers]
) -> tuple[Source, ast.If]:
    nl, indent = source.newline, source.indent_of(node)
    inner = indent + source.indent_unit()
    lines: list[str] = []
    word, each, at, way = "if", node, source.start(node), 0
    while True:
        lines += [
            f"{indent}{word} {source.of(each.test)}:",
            *_end(
                source,
                each.body,
                answered(tail, again, way),
                source.end(each.test),
                inner,
                swaps_for(source, tail, again, way),
            ),
        ]
        at = source.span(each.body)[1]
        if not (len(each.orelse) == 1 and isinstance(each.orelse[0], ast.If)):
            break
        following = each.orelse[0]
        lines += [inner + comment for comment in source.comments_between(at, source.start(following))]
        word, each, way = "elif", following, way + 1
    left = answered(tail, again, way + 1)
    swaps = swaps_for(source, tail, again, way + 1)
    lines += [f"{indent}else:", *_end(source, each.orelse, left, at, inner, swaps)]
    begin = source.start(node)
    changed = Source(
        replaced(
            source.text,
            [Replacement(begin, source.span([tail[-1]])[1], nl.join(lines).removeprefix(indent))],
        )
    )
    return changed, changed.branch_at(begin)


def _end(
    source: Source,
    block: list[ast.stmt],
    tail: Sequence[list[ast.stmt]],
    at: int,
    indent: str,
    swaps: Sequence[Replacement],
) -> list[str]:
    """The lines of one way through the branch and `tail`, in which `swaps` are made; what stands before it begins at `at`."""
    lines = []
    if block:
        lines += [indent + each for each in source.comments_between(at, source.span(block)[0])]
    if block and not all(isinstance(each, ast.Pass) for each in block):
        lines.append(source.block(block, indent))
    if "falls" in exits(block):
        lines += [source.block(each, indent, swaps) for each in tail]
    return lines or [f"{indent}pass"]
