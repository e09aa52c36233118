"""What runs after a branch that returns or continues: it moves into the branch's functions."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced

# Copying more than this of what follows into a branch hides the code more than the rewrite helps.
_MOST_COPIED = 14


def continuation(source: Source, node: ast.If, function: Function, of_loop: bool) -> list[list[ast.stmt]]:
    """What runs after the `if` up to the end of the function (or of the loop's body), block by block.

    Raises Refused where it is reached otherwise than by falling out of branches, or is long.
    """
    blocks: list[list[ast.stmt]] = []
    statement: ast.stmt = node
    copied = 0
    while True:
        block, index = source.block_of(statement)
        following = block[index + 1 :]
        # A function has no `continue` of the loop that it stands in, and one that continues gives no result.
        if exits(following) & ({"breaks", "returns"} if of_loop else {"breaks", "continues"}):
            raise Refused("what follows the branch leaves a loop")
        if following:
            blocks.append(following)
            if statement is not node:
                copied += sum(1 for one in following for each in ast.walk(one) if isinstance(each, ast.stmt))
        owner = source.parents[statement]
        if owner is function:
            break
        if following and "falls" not in exits(following) and not of_loop:
            break
        if of_loop and isinstance(owner, (ast.For, ast.While)) and block is owner.body:
            break
        if isinstance(owner, ast.If):
            statement = owner
        elif isinstance(owner, ast.With) and not of_loop and _nothing_follows(source, owner, function):
            break
        else:
            raise Refused(f"the branch leaves a `{_word(owner)}` statement from inside")
    if copied > _MOST_COPIED:
        raise Refused("much of the code that follows would have to be copied into the branch")
    return blocks


def appending_else(source: Source, node: ast.If) -> tuple[Source, ast.If] | None:
    """The text where the rest of a loop's body is the `else` of a branch that appends, or sets an item, and continues, and
    that branch; None where it is no such branch."""
    if (
        node.orelse
        or not node.body
        or not isinstance(node.body[-1], ast.Continue)
        or len(node.body) < 2
        or not all(source.begins_line(each) for each in (node, *node.body))
        or source.text.startswith("elif", source.start(node))
    ):
        return None
    block, index = source.block_of(node)
    loop, rest = source.parents[node], block[index + 1 :]
    # Where a `while` continues, what ends it is an output of the branch.
    if not isinstance(loop, ast.For) or block is not loop.body or not rest:
        return None
    if exits(node.body[:-1]) | exits(rest) != {"falls"}:
        return None
    if not (_appends(node.body) and _appends(rest)) and not _items_set(node.body) & _items_set(rest):
        return None
    indent, nl = source.indent_of(node), source.newline
    inner = indent + source.indent_unit()
    begin = source.start(node)
    lines = [
        source.text[begin : source.span(node.body[:-1])[1]],
        f"{indent}else:",
        source.block(rest, inner),
    ]
    changed = Source(replaced(source.text, [Replacement(begin, source.span(rest)[1], nl.join(lines))]))
    return changed, changed.branch_at(begin)


def _appends(statements: list[ast.stmt]) -> bool:
    """Whether one of `statements`, or both arms of a branch among them, appends to something."""
    return any(
        (
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Call)
            and isinstance(each.value.func, ast.Attribute)
            and each.value.func.attr == "append"
        )
        or (isinstance(each, ast.If) and _appends(each.body) and _appends(each.orelse))
        for each in statements
    )


def _items_set(statements: list[ast.stmt]) -> set[str]:
    """The items, as they are written, that one of `statements` itself sets."""
    return {
        ast.unparse(target)
        for each in statements
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Subscript)
    }


def _nothing_follows(source: Source, statement: ast.stmt, function: Function) -> bool:
    while statement is not function:
        block, index = source.block_of(statement)
        if block[index + 1 :]:
            return False
        owner = source.parents[statement]
        if not isinstance(owner, (ast.If, ast.With, ast.FunctionDef)):
            return False
        statement = owner
    return True


def _word(node: ast.AST) -> str:
    return {
        ast.For: "for",
        ast.While: "while",
        ast.Try: "try",
        ast.With: "with",
        ast.ExceptHandler: "except",
        ast.Match: "match",
        ast.match_case: "match",
    }.get(type(node), type(node).__name__.lower())
