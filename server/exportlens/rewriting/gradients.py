"""Branches where gradients are switched off: torch.export takes none in another one there (measured on torch 2.13)."""

from __future__ import annotations

import ast

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.text import Function, Source

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def refuse_nested_without_gradients(source: Source, node: ast.AST, text: str, torch: str) -> None:
    """Raise Refused where `text`, the rewritten one, has a torch.cond in an arm of another, and `node` stood under `no_grad`."""
    function = source.enclosing_function(source.enclosing_statement(node))
    if function is None or not _is_without(source, function, node):
        return
    for each in ast.walk(Source(text).tree):
        if isinstance(each, ast.FunctionDef) and each.name == function.name and _has_nested(each, torch):
            raise Refused(
                "torch.export takes no torch.cond in an arm of another under `no_grad`: switch gradients off where the "
                "model is called"
            )


def _is_without(source: Source, function: Function, node: ast.AST) -> bool:
    contexts = list(function.decorator_list)
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.With):
            contexts += [item.context_expr for item in each.items]
    return any(ast.unparse(each).removesuffix("()").endswith("no_grad") for each in contexts)


def _has_nested(function: ast.FunctionDef, torch: str) -> bool:
    return any(
        isinstance(inner, _FUNCTIONS)
        and inner is not function
        and any(
            isinstance(each, ast.Call) and ast.unparse(each.func) == f"{torch}.cond"
            for each in ast.walk(inner)
        )
        for inner in ast.walk(function)
    )
