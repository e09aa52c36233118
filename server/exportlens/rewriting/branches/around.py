"""What stands around a branch, and would act on torch.cond as it did not on the `if`."""

from __future__ import annotations

import ast

from exportlens.inference.autocasting import may_cast
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds

# The errors of torch.cond's own, where the arms give tensors that it does not take, are of these classes.
_CATCH_ALL = frozenset({"Exception", "BaseException", "RuntimeError"})


def refuse_around(source: Source, node: ast.stmt, function: Function) -> None:
    """Raise Refused where a handler would catch an error of torch.cond's own."""
    inner: ast.AST = node
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.Try) and inner in each.body and any(map(_catches, each.handlers)):
            raise Refused("an error of torch.cond's own would be caught in the same function")
        inner = each


def is_cast(source: Source, node: ast.stmt, function: Function, kinds: Kinds) -> bool:
    """Whether torch.autocast may choose dtypes where `node` stands: strict export of torch 2.13 checks the arms of torch.cond for
    the dtypes that tensors have without it."""
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.With) and any(
            may_enter_autocast(item.context_expr, source, kinds) for item in each.items
        ):
            return True
    return any(_casts(each, kinds) for each in function.decorator_list)


def may_enter_autocast(context: ast.expr, source: Source, kinds: Kinds) -> bool:
    """Whether what a `with` enters may be a context of torch.autocast that is not switched off where it is written."""
    return any(_casts(made, kinds) for made in (context, *_given(context, source)))


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


def _given(context: ast.expr, source: Source) -> list[ast.expr]:
    """What the name or attribute `context` is given where it stands: the parts of that may each be what is entered."""
    if not isinstance(context, (ast.Name, ast.Attribute)):
        return list(_choices(context))
    kind = ast.ClassDef if isinstance(context, ast.Attribute) else (ast.FunctionDef, ast.AsyncFunctionDef)
    around = next((each for each in source.ancestors(context) if isinstance(each, kind)), source.tree)
    written = ast.unparse(context)
    return [
        one
        for each in ast.walk(around)
        if isinstance(each, ast.Assign) and any(ast.unparse(target) == written for target in each.targets)
        for one in _choices(each.value)
    ]


def _choices(node: ast.expr) -> list[ast.expr]:
    return (
        [*_choices(node.body), *_choices(node.orelse)]
        if isinstance(node, ast.IfExp)
        else [one for each in node.values for one in _choices(each)]
        if isinstance(node, ast.BoolOp)
        else [node]
    )


def _casts(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` may be a context of torch.autocast that is not switched off where it is written."""
    if not isinstance(node, ast.Call):
        return may_cast(kinds.of(node).value)
    if not (kinds.qualified(node.func) or "").endswith("autocast"):
        return False
    enabled = [key.value for key in node.keywords if key.arg == "enabled"]
    return not (enabled and isinstance(enabled[0], ast.Constant) and enabled[0].value is False)
