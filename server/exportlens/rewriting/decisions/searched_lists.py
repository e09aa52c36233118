"""What is looked for among a tensor's numbers: where it stands, how often, and the first that something holds for.

    pos = ids.tolist().index(2)        ->    found = ids == 2
                                             torch._assert_async(found.any(), "2 is not in list")
                                             pos = found.int().argmax().item()

Where the error is caught, it is asked for: `if not found.any(): ...`.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.listed_tensors import asked_of_all, equal_to, in_brackets, tensor_of_list
from exportlens.rewriting.memory.effects import repeatable
from exportlens.source.walking import walk

SEARCH = "Search in the tensor"
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
)
_CATCHING = frozenset({"ValueError", "Exception", "BaseException"})


def is_search(node: ast.AST) -> bool:
    """Whether `node` is `list.index(value)` or `list.count(value)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("index", "count")
        and len(node.args) == 1
        and not node.keywords
    )


def searched(source: Source, node: ast.Call, kinds: Kinds, torch: str) -> str:
    """The whole text with the search `node` made in the tensor. Raises Refused."""
    assert isinstance(node.func, ast.Attribute)
    listed, value = node.func.value, node.args[0]
    tensor = tensor_of_list(source, listed, kinds)
    equal = None if tensor is None else equal_to(source, value, tensor, kinds)
    if tensor is None or equal is None or not repeatable(tensor, kinds):
        raise Refused(
            f"`{source.of(node)}` compares one after the other until a number is equal: which tensor's numbers `{source.of(listed)}` "
            "has, or how they compare, is not known"
        )
    unread = _without_list(source, listed)
    if node.func.attr == "count":
        return replaced(source.text, [*unread, source.swap(node, f"({equal}).sum().item()")])
    if _is_known_to_be_there(source, node):
        return replaced(source.text, [*unread, source.swap(node, f"({equal}).int().argmax().item()")])
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(node)
    if function is None or not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
        raise Refused(f"`{source.of(node)}` does not stand in a statement of its own")
    for outer in source.ancestors(node):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            raise Refused(f"`{source.of(node)}` is not computed in any case, or several times")
    found = fresh("found", every_name(function))
    place = f"{found}.int().argmax().item()"
    attempt = source.parents[statement]
    if isinstance(attempt, ast.Try) and statement in attempt.body:
        asked = _asked(source, node, statement, attempt, f"{found} = {equal}", found, place)
        return replaced(source.text, [*unread, asked])
    if any(isinstance(each, ast.Try) for each in source.ancestors(statement)):
        raise Refused("the error that nothing is found may be caught")
    indent, nl, start = source.indent_of(statement), source.newline, source.start(statement)
    shown = source.of(value) if isinstance(value, ast.Constant) else "the number"
    check = f'{torch}._assert_async({found}.any(), "{shown} is not in list")'
    head = Replacement(start, start, f"{found} = {equal}{nl}{indent}{check}{nl}{indent}")
    return replaced(source.text, [*unread, head, source.swap(node, place)])


def _without_list(source: Source, listed: ast.expr) -> list[Replacement]:
    """What leaves out the statement that makes the list, where nothing else reads it."""
    function = source.enclosing_function(listed)
    if not isinstance(listed, ast.Name) or function is None:
        return []
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == listed.id]
    made = [source.parents[each] for each in same if not isinstance(each.ctx, ast.Load)]
    if len(same) != 1 + len(made) or len(made) != 1 or not isinstance(made[0], ast.Assign):
        return []
    gone = source.without(made[0])
    return [] if gone is None else [gone]


def _is_known_to_be_there(source: Source, node: ast.Call) -> bool:
    """Whether `node` is only computed where `value in list` was asked."""
    assert isinstance(node.func, ast.Attribute)
    asked = f"{ast.unparse(node.args[0])} in {ast.unparse(node.func.value)}"
    inner: ast.AST = node
    for outer in source.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(outer, ast.IfExp) and inner is outer.body and ast.unparse(outer.test) == asked:
            return True
        if isinstance(outer, ast.If) and inner in outer.body[:1] and ast.unparse(outer.test) == asked:
            return True
        inner = outer
    return False


def _asked(
    source: Source, node: ast.Call, statement: ast.stmt, attempt: ast.Try, first: str, found: str, place: str
) -> Replacement:
    """An `if` in the place of the `try` around the search. Raises Refused."""
    value = getattr(statement, "value", None)
    handler = attempt.handlers[0] if len(attempt.handlers) == 1 else None
    caught = handler is not None and (handler.type is None or ast.unparse(handler.type) in _CATCHING)
    if (
        handler is None
        or not caught
        or handler.name
        or attempt.finalbody
        or attempt.body[0] is not statement
        or any(isinstance(each, (ast.Call, ast.Raise)) for one in attempt.body[1:] for each in walk(one))
        or value is not node
        or any(isinstance(each, ast.Raise) and each.exc is None for one in handler.body for each in walk(one))
        or not all(map(source.begins_line, (attempt, statement, *handler.body)))
    ):
        raise Refused("the `try` around the search does more, or its handler reads the error")
    outer, unit, nl = source.indent_of(attempt), source.indent_unit(), source.newline
    lines = [
        f"{outer}{first}",
        f"{outer}if not {found}.any():",
        source.block(handler.body, outer + unit),
        f"{outer}else:",
        source.block([statement], outer + unit, [source.swap(node, place)]),
    ]
    for block in (attempt.body[1:], attempt.orelse):
        lines += [source.block(block, outer + unit)] if block else []
    return Replacement(source.start(attempt), source.span([attempt])[1], nl.join(lines).removeprefix(outer))


def first_found(
    source: Source, node: ast.GeneratorExp | ast.ListComp, kinds: Kinds, torch: str
) -> str | None:
    """The whole text for `next((i for i, v in enumerate(t) if v > 0), -1)`; None where `node` is no such generator."""
    call = source.parents[node]
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.args[0] is not node or call.keywords:
        return None
    if not isinstance(call.func, ast.Name) or call.func.id != "next" or len(node.generators) != 1:
        return None
    [generator], default = node.generators, call.args[1]
    rows = generator.iter
    numbered = isinstance(rows, ast.Call) and ast.unparse(rows.func) == "enumerate" and len(rows.args) == 1
    names = [each.id for each in getattr(generator.target, "elts", ()) if isinstance(each, ast.Name)]
    if not numbered or len(names) != 2 or not isinstance(node.elt, ast.Name) or node.elt.id != names[0]:
        return None
    assert isinstance(rows, ast.Call)
    found = _asked_in(source, generator.ifs, names[1], rows.args[0], kinds)
    kind = kinds.of(default)
    whole = kind.what in ("number", "size") and kind.type == "int"
    statement, function = source.enclosing_statement(node), source.enclosing_function(node)
    if found is None or not whole or function is None or not isinstance(statement, _SIMPLE):
        return None
    if not source.begins_line(statement):
        return None
    for outer in source.ancestors(call):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            return None
    name, start = fresh("found", every_name(function)), source.start(statement)
    head = Replacement(start, start, f"{name} = {found}{source.newline}{source.indent_of(statement)}")
    text = f"{torch}.where({name}.any(), {name}.int().argmax(), {source.of(default)}).item()"
    return replaced(source.text, [head, source.swap(call, text)])


def counted_at_once(source: Source, node: ast.GeneratorExp | ast.ListComp, kinds: Kinds) -> str | None:
    """The whole text for `sum(1 for v in t.tolist() if v > 0)`, and `len` of such a list; None where `node` is no such."""
    call = source.parents[node]
    if not isinstance(call, ast.Call) or call.args != [node] or call.keywords or len(node.generators) != 1:
        return None
    one = isinstance(node.elt, ast.Constant) and type(node.elt.value) is int and node.elt.value == 1
    called = call.func.id if isinstance(call.func, ast.Name) else ""
    [generator] = node.generators
    if not (called == "len" or (called == "sum" and one)) or not isinstance(generator.target, ast.Name):
        return None
    found = _asked_in(source, generator.ifs, generator.target.id, generator.iter, kinds)
    return None if found is None else replaced(source.text, [source.swap(call, f"({found}).sum().item()")])


def _asked_in(source: Source, tests: list[ast.expr], name: str, rows: ast.expr, kinds: Kinds) -> str | None:
    """What all `tests` of `name` are for all numbers of `rows` at once."""
    listed = tensor_of_list(source, rows, kinds)
    tensor = (
        rows if listed is None and kinds.of(rows).what == "tensor" and kinds.of(rows).rank == 1 else listed
    )
    if tensor is None or not tests:
        return None
    parts = [asked_of_all(source, each, name, tensor, kinds, listed is not None) for each in tests]
    if None in parts:
        return None
    return parts[0] if len(parts) == 1 else " & ".join(in_brackets(each or "") for each in parts)
