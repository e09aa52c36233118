"""A method that gives None where tensor data says so, written out where it is called: None is no output of torch.cond.

`aux = self.aux_loss(h)` and a later `if aux is not None: ...` then ask in one function, where the value is made where it is used.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.branches.optional import asks_for
from exportlens.rewriting.code.inlining import Callee, inlined, negated
from exportlens.rewriting.code.names import dotted, every_name, fresh, is_none
from exportlens.rewriting.code.text import Replacement, Source, replaced

WRITE_OUT = "Write the method out where it is called"


def written_where_called(source: Source, node: ast.If) -> str | None:
    """The whole text without the call of the method that `node` leaves with None; None where this is no such method, or what
    it gives is not asked for None by the one statement that calls it."""
    method, call = source.enclosing_function(node), None
    if isinstance(method, ast.FunctionDef) and _gives_none_by(method, node):
        call = _only_call(source, method)
    if call is None or not isinstance(method, ast.FunctionDef) or not source.begins_line(node):
        return None
    target = ast.unparse(call.targets[0])
    taken = every_name(source.tree)
    name = fresh("given", taken)
    changed = Source(_with_one_return(source, method, node, name))
    again = next(
        each
        for each in ast.walk(changed.tree)
        if isinstance(each, ast.FunctionDef) and each.name == method.name
    )
    same = _only_call(changed, again)
    if same is None:
        return None
    text = inlined(changed, same, taken - {name}, Callee(changed, again, "self"))
    last = f"{target} = {name}"
    if text is None or not text.endswith(last):
        return None
    # The method stays as it is, for those that call it from elsewhere.
    start = source.start(call)
    body = text.removesuffix(last).rstrip()
    written = Source(replaced(source.text, [Replacement(start, source.end(call), body)]))
    names = [
        written.swap(each, target)
        for each in ast.walk(written.tree)
        if isinstance(each, ast.Name) and each.id == name
    ]
    return replaced(written.text, names)


def _gives_none_by(method: ast.FunctionDef, node: ast.If) -> bool:
    """Whether `node`, a statement of the method itself, is the one way to None, and a value is returned at the end."""
    returns = [each for each in ast.walk(method) if isinstance(each, ast.Return)]
    if len(returns) != 2 or node not in method.body or node.orelse or len(node.body) != 1:
        return False
    none, last = node.body[0], method.body[-1]
    gives_none = isinstance(none, ast.Return) and (none.value is None or is_none(none.value))
    return gives_none and isinstance(last, ast.Return) and last.value is not None


def _only_call(source: Source, method: ast.FunctionDef) -> ast.Assign | None:
    """`name = self.method(...)`, where nothing else in the class speaks of the method, and `name` is asked for None next."""
    owner = source.parents[method]
    if not isinstance(owner, ast.ClassDef):
        return None
    spoken = [
        each for each in ast.walk(owner) if isinstance(each, ast.Attribute) and each.attr == method.name
    ]
    if len(spoken) != 1 or dotted(spoken[0]) != f"self.{method.name}":
        return None
    call = source.parents[spoken[0]]
    statement = source.parents[call]
    if (
        not isinstance(statement, ast.Assign)
        or statement.value is not call
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
        or source.enclosing_function(statement) is method
    ):
        return None
    name = statement.targets[0].id
    block, index = source.block_of(statement)
    asking = next((each for each in block[index + 1 :] if name in every_name(each)), None)
    if not isinstance(asking, ast.If) or not asks_for(asking.test, name):
        return None
    function = source.enclosing_function(statement)
    elsewhere = [
        each
        for each in (ast.walk(function) if function is not None else ())
        if isinstance(each, ast.Name) and each.id == name and each is not statement.targets[0]
    ]
    inside = {id(each) for each in ast.walk(asking)}
    return statement if all(id(each) in inside for each in elsewhere) else None


def _with_one_return(source: Source, method: ast.FunctionDef, node: ast.If, name: str) -> str:
    """The text where the method gives `name`, which is None unless the rest of it runs."""
    index = method.body.index(node)
    last = method.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    indent, nl = source.indent_of(node), source.newline
    inner = indent + source.indent_unit()
    lines = [
        f"{name} = None",
        f"{indent}if {negated(source, node.test)}:",
        *([source.block(method.body[index + 1 : -1], inner)] if method.body[index + 1 : -1] else []),
        f"{inner}{name} = {source.of(last.value)}",
        f"{indent}return {name}",
    ]
    return replaced(source.text, [Replacement(source.start(node), source.end(last), nl.join(lines))])
