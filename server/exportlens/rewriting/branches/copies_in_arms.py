"""Copies that an arm makes of a tensor, where a branch inside of it also reads a copy from around the arm.

    row = row.clone()                              row = row.clone()
    def if_true(best=best):                        def if_true(best=best):
        best = best.clone()                  ->        best = best.to(best.dtype, copy=True)
        def if_true_2(best=best):                      def if_true_2(best=best):
            return best + row                              return best + row

Measured on torch 2.13: strict tracing names what a branch takes in after the operation that made it, and of an arm in an arm it takes
two of one name, one of the arm and one of what is around it, for the same argument: "duplicate argument 'clone_true_branch'".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.names import arguments, bound, reads, walk_own
from exportlens.rewriting.code.text import Replacement, Source, replaced


def with_other_copies(text: str, torch: str) -> str:
    """`text`, where such copies are made by another operation."""
    if text.count(f"{torch}.cond(") < 2 or ".clone()" not in text:
        return text
    source = Source(text)
    swaps: list[Replacement] = []
    for arm in ast.walk(source.tree):
        if not isinstance(arm, ast.FunctionDef):
            continue
        outside = [each for each in source.ancestors(arm) if isinstance(each, ast.FunctionDef)]
        if outside:
            swaps += _made_otherwise(source, arm, outside)
    return replaced(text, swaps) if swaps else text


def _listed(function: ast.FunctionDef) -> Iterator[str]:
    """The names of what loops of `function` take out of lists, which may be copies as well."""
    for each in walk_own(function.body):
        over = each.iter if isinstance(each, ast.For) else None
        if isinstance(each, ast.For) and isinstance(over, ast.Call) and ast.unparse(over.func) == "zip":
            yield from bound(each.target)


def _copied(statement: ast.AST) -> Iterator[str]:
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        parts = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            parts = list(zip(target.elts, statement.value.elts, strict=False))
        for name, value in parts:
            if isinstance(name, ast.Name) and _is_copy(value):
                yield name.id


def _is_copy(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "clone"
        and not value.args
    )


def _made_otherwise(
    source: Source, arm: ast.FunctionDef, outside: list[ast.FunctionDef]
) -> Iterator[Replacement]:
    own = {each.arg for each in arguments(arm.args)} | set(bound(arm.body))
    copied = {name for outer in outside for each in walk_own(outer.body) for name in _copied(each)}
    others = (copied - own) | {name for each in (arm, *outside) for name in _listed(each)}
    inner = [each for each in walk_own(arm.body) if isinstance(each, ast.FunctionDef)]
    read = [reads(each.body) | set(_defaults(each)) for each in inner]
    for statement in walk_own(arm.body):
        if not isinstance(statement, ast.Assign) or not _is_copy(statement.value):
            continue
        assert isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute)
        name, of = statement.targets[0], statement.value.func.value
        if not isinstance(name, ast.Name) or not isinstance(of, ast.Name):
            continue
        if any(name.id in each and each & others - {name.id} for each in read):
            yield source.swap(statement.value, f"{of.id}.to({of.id}.dtype, copy=True)")


def _defaults(function: ast.FunctionDef) -> Iterator[str]:
    for each in function.args.defaults:
        if isinstance(each, ast.Name):
            yield each.id
