"""Branches on one option, one behind the other, become one branch that takes in what stands between them.

if lengths is not None:             if lengths is not None:
    x = pack(x, lengths)                x = pack(x, lengths)
out, h = self.rnn(x)        ->          out, h = self.rnn(x)
if lengths is not None:                 out, _ = unpack(out)
    out, _ = unpack(out)            else:
                                        out, h = self.rnn(x)
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Function, Source


def joined(source: Source, function: Function) -> tuple[Source, Function] | None:
    """The text where the first such branches of `function` are one, and the function of it; None where there are none."""
    asked: dict[str, list[int]] = {}
    for index, each in enumerate(function.body):
        if isinstance(each, ast.If) and _is_option(each.test):
            asked.setdefault(ast.unparse(each.test), []).append(index)
    for indices in asked.values():
        run = function.body[indices[0] : indices[-1] + 1]
        if len(indices) > 1 and _stays(source, run, indices[0], indices):
            changed = Source(_text(source, run, {index - indices[0] for index in indices}))
            found = [
                each
                for each in ast.walk(changed.tree)
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
                and changed.start(each) == source.start(function)
            ]
            return changed, found[0]
    return None


def _is_option(test: ast.expr) -> bool:
    """Whether a name or an attribute is asked whether it is None, or for its truth."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare):
        none = len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        right = test.comparators[0]
        return (
            none and dotted(test.left) is not None and isinstance(right, ast.Constant) and right.value is None
        )
    return dotted(test) is not None


def _stays(source: Source, run: list[ast.stmt], first: int, indices: list[int]) -> bool:
    """Whether nothing among the statements changes what the option says, or leaves their block."""
    test = run[0].test if isinstance(run[0], ast.If) else None
    paths = {dotted(each) for each in ast.walk(test)} - {None} if test is not None else set()
    stores = {
        dotted(each)
        for statement in run
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
    }
    return (
        not paths & (set(bound(run)) | stores)
        and exits(run) == {"falls"}
        and all(map(source.begins_line, run))
        and not any(_is_elif(source, run[index - first]) for index in indices)
    )


def _is_elif(source: Source, node: ast.stmt) -> bool:
    """Whether the branch has an `elif`, which would need the text of another branch."""
    inner = node.orelse[0] if isinstance(node, ast.If) and node.orelse else None
    return isinstance(inner, ast.If) and source.text.startswith("elif", source.start(inner))


def _text(source: Source, run: list[ast.stmt], asking: set[int]) -> str:
    head = run[0]
    assert isinstance(head, ast.If)
    indent = source.indent_of(head)
    inner = indent + source.indent_unit()
    arms: list[list[str]] = [[], []]
    for index, each in enumerate(run):
        sides = (each.body, each.orelse) if isinstance(each, ast.If) and index in asking else ([each], [each])
        for arm, statements in zip(arms, sides, strict=True):
            arm += [source.block(statements, inner)] if statements else []
    begin = source.line_start(source.start(head))
    end = source.span(run)[1]
    lines = [f"{indent}if {source.of(head.test)}:", *arms[0], f"{indent}else:", *arms[1]]
    return f"{source.text[:begin]}{source.newline.join(lines)}{source.text[end:]}"
