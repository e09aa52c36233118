"""`self.clip.apply(x)`, of an object of an autograd Function that the model holds: the class applies it as well."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeRead
from exportlens.inference.values import Instance
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted


def applied_by_class(place: AttributeRead, context: RewriteContext) -> Fix | Refusal:
    """`Clip.apply(x)`: `apply` is a class method, so that it makes no difference who is asked for it."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        assert isinstance(place.owner, Instance)
        name = getattr(place.owner.cls, "name", "")
        if not isinstance(node, ast.Attribute):
            raise Refused("`.apply` is reached in an unusual way")
        function = draft.source.enclosing_function(node)
        _refuse_others(draft, place, node, name)
        hidden = function is not None and any(
            (isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load))
            or (isinstance(each, ast.arg) and each.arg == name)
            for each in ast.walk(function)
        )
        if hidden or place.site.scope.values.get(name) is not place.owner.cls:
            raise Refused(f"the class `{name}` has no name here")
        swap = draft.source.swap(node.value, name)
        return draft.replace(f"Use `{name}.apply`", [swap], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _refuse_others(draft: Draft, place: AttributeRead, node: ast.Attribute, name: str) -> None:
    """Refuse where the attribute may hold an object of another class: the file binds it once, to what that class makes."""
    path = dotted(node.value) or ""
    attr = path.removeprefix("self.")
    statements = [
        each
        for placed in place.site.scope.document.placed
        for statement in placed.chunk.body
        for each in ast.walk(statement)
        if isinstance(each, ast.stmt) and attr in map(_bound, ast.iter_child_nodes(each))
    ]
    made = statements[0] if len(statements) == 1 else None
    if not (
        path.startswith("self.")
        and isinstance(made, ast.Assign)
        and isinstance(made.value, ast.Call)
        and dotted(made.value.func) == name
    ):
        raise Refused(
            f"`{draft.source.of(node.value)}` is not known to be an object of `{name}`, however the model is made"
        )


def _bound(target: ast.AST) -> str:
    """The attribute that is bound to something, also among others."""
    if isinstance(target, ast.stmt):
        return ""
    parts = [each for each in ast.walk(target) if isinstance(each, ast.Attribute)]
    return next((each.attr for each in parts if not isinstance(each.ctx, ast.Load)), "")
