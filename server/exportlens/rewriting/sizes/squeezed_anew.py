"""`t.squeeze_()` of a tensor with a size that data tells: in place torch asks whether that is one, and `t.squeeze()` does not.

Measured with torch 2.13: the program squeezes what it meets when it runs, as eager does.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

# What gives a tensor that no one holds.
_MAKING = frozenset(
    {
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "zeros",
        "ones",
        "empty",
        "full",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "clone",
    }
)


def squeezed_anew(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`t.squeeze_()` -> `t.squeeze()`, where nothing else holds the tensor whose shape changes."""
    try:
        draft, node = plain_call(place, context)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "squeeze_":
            raise Refused("it is squeezed in an unusual way")
        function = draft.source.enclosing_function(node)
        if function is None:
            raise Refused("it is squeezed outside of a function")
        end = draft.source.end(node.func)
        swaps = [Replacement(end - len("squeeze_"), end, "squeeze")]
        swaps += _bound_anew(draft, node, function)
        return draft.replace("Use `squeeze`", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _bound_anew(draft: Draft, node: ast.Call, function: Function) -> list[Replacement]:
    """What binds the name of the tensor to the new one, where it is read again. Raises Refused where another name may hold it."""
    assert isinstance(node.func, ast.Attribute)
    source, given = draft.source, node.func.value
    statement = source.enclosing_statement(node)
    kinds = kinds_before(function, statement, draft.kinds({}))
    known = kinds.of(given)
    if known.fresh and known.what == "tensor" and not isinstance(given, ast.Name):
        return []
    if isinstance(given, ast.Subscript) and kinds.of(given.value).what == "tensor":
        return []
    if not isinstance(given, ast.Name):
        raise Refused(f"another name may hold `{source.of(given)}`, whose shape changes, too")
    name = given.id
    if not _is_alone(name, kinds) and not _is_made_here(source, function, given):
        raise Refused(f"another name may hold `{name}`, whose shape changes, too")
    if isinstance(statement, ast.Expr) and statement.value is node:
        start = source.start(statement)
        return [Replacement(start, start, f"{name} = ")]
    again = isinstance(statement, ast.Assign) and [ast.unparse(each) for each in statement.targets] == [name]
    if again or (isinstance(statement, ast.Return) and _names(statement, name) == 1):
        return []
    raise Refused(f"`{name}`, whose shape changes, may be read later")


def _is_alone(name: str, kinds: Kinds) -> bool:
    """Whether no other name holds the tensor `name`, as far as its memory is known."""
    known = kinds.names.get(name)
    if known is None or known.what != "tensor" or not known.roots:
        return False
    local = all(root.startswith(LOCAL) for root in known.roots)
    return local and not any(
        each.roots is None or not known.roots.isdisjoint(each.roots)
        for other, each in kinds.names.items()
        if other != name and each.what in ("tensor", "container", "object") and each.roots != frozenset()
    )


def _is_made_here(source: Source, function: Function, name: ast.Name) -> bool:
    """Whether the name is bound once, to a tensor made there, and of it only parts and attributes are read elsewhere."""
    uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name.id]
    bindings = [source.parents[each] for each in uses if not isinstance(each.ctx, ast.Load)]
    if len(bindings) != 1 or not isinstance(bindings[0], ast.Assign) or not _is_new(bindings[0].value):
        return False
    return len(bindings[0].targets) == 1 and all(
        each is name or source.parents[each] is bindings[0] or _is_of_parts(source, each) for each in uses
    )


def _is_new(node: ast.expr) -> bool:
    """Whether `node` makes a tensor, and perhaps fills it: `x.new_empty(n, 3).zero_()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _MAKING:
            return True
        if not node.func.attr.endswith("_"):
            return False
        node = node.func.value
    return False


def _is_of_parts(source: Source, node: ast.Name) -> bool:
    """Whether `node` is read for a part or an attribute, and nothing takes the tensor itself."""
    parent = source.parents[node]
    if isinstance(parent, ast.Subscript):
        return parent.value is node
    if not isinstance(parent, ast.Attribute):
        return False
    call = source.parents[parent]
    return not parent.attr.endswith("_") or isinstance(source.parents[call], ast.Expr)


def _names(node: ast.AST, name: str) -> int:
    return sum(isinstance(each, ast.Name) and each.id == name for each in walk(node))
