"""Lists that a Module adds to in each call and of which it only ever reads the last items: they are cut to these where they grow.

self.peaks.append(x.max())                          self.peaks.append(x.max())
return torch.stack(self.peaks[-3:]).mean()    ->    self.peaks = self.peaks[-3:]
                                                    return torch.stack(self.peaks).mean()
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.state.own_attributes import uses_of
from exportlens.rewriting.state.window_bounds import added


def cut_to_reads(draft: Draft, cls: ast.ClassDef, attr: str) -> Source | None:
    """The source where the list is cut behind the statement that adds to it, and read as it is; None where more of it may be read, or
    it is bounded already. Raises Refused where something else uses it."""
    source, path = draft.source, f"self.{attr}"
    bounds: dict[str, str] = {}
    swaps: list[Replacement] = []
    additions: dict[int, ast.stmt] = {}
    asked: list[ast.Compare] = []
    for use in uses_of(draft, cls, attr):
        statement, part = source.enclosing_statement(use), source.parents[use]
        grown = added(statement, path)
        if grown is not None and not grown.at_begin and grown.cut is None:
            additions[id(statement)] = statement
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            lower = _last(part.slice)
            if lower is not None:
                bounds[ast.dump(lower)] = source.of(lower)
                swaps.append(source.swap(part, path))
            elif ast.unparse(part.slice) != "-1":
                return None
        elif (question := _length_asked(source, use)) is not None:
            asked.append(question)
        elif not _is_begun(source, statement, path):
            return None
    grows = [*additions.values()]
    if len(bounds) != 1 or len(grows) != 1 or not source.begins_line(grows[0]):
        return None
    bound = next(iter(bounds.values())).removeprefix("-")
    if not all(_is_answered(source, each, bound) for each in asked):
        return None
    end = source.end(grows[0])
    line = f"{source.newline}{source.indent_of(grows[0])}{path} = {path}[{next(iter(bounds.values()))}:]"
    return Source(replaced(source.text, [*swaps, Replacement(end, end, line)]))


def _length_asked(source: Source, use: ast.Attribute) -> ast.Compare | None:
    """The comparison `len(self.x) > n` of which `use` is the list; None where it is none."""
    call = source.parents[use]
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "len" or call.args != [use]:
        return None
    question = source.parents[call]
    alone = isinstance(question, ast.Compare) and question.left is call and len(question.ops) == 1
    return question if isinstance(question, ast.Compare) and alone else None


def _is_answered(source: Source, question: ast.Compare, bound: str) -> bool:
    """Whether as many items as `bound`, or all where there are fewer, give the answer that all give."""
    op, number = question.ops[0], question.comparators[0]
    if isinstance(op, (ast.Lt, ast.GtE)) and source.of(number) == bound:
        return True
    if not isinstance(number, ast.Constant) or type(number.value) is not int or not bound.isdigit():
        return (
            isinstance(number, ast.Constant)
            and number.value == 0
            and isinstance(op, (ast.Gt, ast.Eq, ast.NotEq))
        )
    # What is asked is whether there are as many as `least`.
    least = number.value + (not isinstance(op, (ast.Lt, ast.GtE)))
    return isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) and least <= int(bound)


def _last(index: ast.expr) -> ast.expr | None:
    """`-n` of `[-n:]`."""
    if not isinstance(index, ast.Slice) or index.upper is not None or index.step is not None:
        return None
    lower = index.lower
    return lower if isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub) else None


def _is_begun(source: Source, statement: ast.stmt, path: str) -> bool:
    """Whether `statement` binds the attribute to an empty list."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [*map(dotted, targets)] == [path] and ast.unparse(statement.value) in ("[]", "list()")
