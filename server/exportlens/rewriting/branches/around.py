"""What stands around a branch, and would act on torch.cond as it did not on the `if`."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds

# The errors of torch.cond's own, where the arms give tensors that it does not take, are of these classes.
_CATCH_ALL = frozenset({"Exception", "BaseException", "RuntimeError"})


def refuse_around(source: Source, node: ast.stmt, function: Function, kinds: Kinds) -> None:
    """Raise Refused where a handler would catch an error of torch.cond's own, and where torch.autocast chooses dtypes: strict
    export of torch 2.13 checks the arms for the dtypes that tensors have without it."""
    inner: ast.AST = node
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.Try) and inner in each.body and any(map(_catches, each.handlers)):
            raise Refused("an error of torch.cond's own would be caught in the same function")
        if isinstance(each, ast.With) and any(_casts(item.context_expr, kinds) for item in each.items):
            raise Refused(
                "torch.autocast is in force: strict export takes its dtypes for wrong in torch.cond"
            )
        inner = each
    if any(_casts(each, kinds) for each in function.decorator_list):
        raise Refused("torch.autocast is in force: strict export takes its dtypes for wrong in torch.cond")


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether the function goes on once `handler` has caught any error of torch's."""
    if exits(handler.body) == {"raises"}:
        return False
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(each is None or (dotted(each) or "").rpartition(".")[2] in _CATCH_ALL for each in types)


def refuse_caught_index(source: Source, node: ast.AST) -> None:
    """Raise Refused where a handler goes on once an index, or what is made a number of, is none that can be: a program has
    no handlers, and would stop there."""
    inner: ast.AST = node
    for each in source.ancestors(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(each, ast.Try) and inner in each.body and any(map(_catches_index, each.handlers)):
            raise Refused("the error of an index that is out of range would be caught: a program stops there")
        inner = each


def _catches_index(handler: ast.ExceptHandler) -> bool:
    if exits(handler.body) == {"raises"}:
        return False
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {each and (dotted(each) or "").rpartition(".")[2] for each in types}
    return bool(names & {"IndexError", "KeyError", "LookupError", "ValueError", "OverflowError"})


def _casts(node: ast.expr, kinds: Kinds) -> bool:
    if not isinstance(node, ast.Call) or not (kinds.qualified(node.func) or "").endswith("autocast"):
        return False
    enabled = [key.value for key in node.keywords if key.arg == "enabled"]
    return not (enabled and isinstance(enabled[0], ast.Constant) and enabled[0].value is False)
