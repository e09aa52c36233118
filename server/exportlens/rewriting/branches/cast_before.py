"""Names that torch.autocast gives a lower dtype before a branch, and that an arm outside of it binds anew: torch.cond gives one dtype."""

from __future__ import annotations

import ast

from exportlens.rewriting.branches.around import may_enter_autocast
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_CONVERSIONS = frozenset({"to", "type", "type_as", "float", "double", "half", "bfloat16"})


def refuse_cast_before(source: Source, node: ast.If, kinds: Kinds) -> None:
    """Raise Refused where an arm of `node` binds what autocast has computed above it, and may leave another dtype in it."""
    function = source.enclosing_function(node)
    if function is None:
        return
    contexts = _contexts(source, function, node, kinds)
    for arm in (node.body, node.orelse):
        for name in sorted(bound(arm)):
            entered = [
                ast.dump(item.context_expr)
                for each in contexts
                for item in each.items
                if name in bound(each.body)
            ]
            inside = [
                each
                for each in walk(ast.Module(arm, []))
                if isinstance(each, ast.With) and name in bound(each.body)
            ]
            if not entered or any(
                ast.dump(item.context_expr) in entered for each in inside for item in each.items
            ):
                continue
            if not all(_keeps(each, name, kinds) for statement in arm for each in walk(statement)):
                raise Refused(
                    f"torch.autocast has chosen the dtype of `{name}` above, and the branch may leave another one in it: convert it by "
                    f"`.type_as({name})` there"
                )


def _keeps(node: ast.AST, name: str, kinds: Kinds) -> bool:
    """Whether `node`, where it binds `name`, leaves it in the dtype that it has."""
    if not isinstance(node, ast.Assign) or name not in bound([node]):
        return not isinstance(node, (ast.For, ast.NamedExpr, ast.AnnAssign)) or name not in bound([node])
    if ast.unparse(node.value).endswith(f".type_as({name})"):
        # Of `.to(h.dtype)` strict tracing takes the dtype that there is without autocast (torch 2.13).
        return True
    others = {
        each for each in reads(node.value) - {name} if kinds.of(ast.Name(each, ast.Load())).what != "number"
    }
    converts = {each.attr for each in walk(node.value) if isinstance(each, ast.Attribute)} & _CONVERSIONS
    return name in reads(node.value) and not converts and all(each in kinds.modules for each in others)


def _contexts(source: Source, function: Function, node: ast.If, kinds: Kinds) -> list[ast.With]:
    """The blocks above `node` that may run under autocast."""
    return [
        each
        for each in walk(function)
        if isinstance(each, ast.With)
        and source.end(each) < source.start(node)
        and any(
            may_enter_autocast(item.context_expr, source, kinds)
            or _gives_autocast(item.context_expr, source, kinds)
            for item in each.items
        )
    ]


def _gives_autocast(context: ast.expr, source: Source, kinds: Kinds) -> bool:
    """Whether `context` calls a method or a function of the file that mentions autocast."""
    name = (dotted(context.func) or "").removeprefix("self.") if isinstance(context, ast.Call) else ""
    statements = [*source.tree.body, *(each for chunk in kinds.around for each in chunk.body)]
    return any(
        isinstance(each, ast.FunctionDef)
        and each.name == name
        and any(
            isinstance(one, (ast.Name, ast.Attribute)) and (dotted(one) or "").endswith("autocast")
            for one in walk(each)
        )
        for statement in statements
        for each in walk(statement)
    )
