"""Arrays that a model keeps for others to look at, `self.weights_seen = w.detach().cpu().numpy()`: they are no part of what it
computes, and the traced program leaves them out."""

from __future__ import annotations

import ast

from exportlens.rewriting.checks.left_undone import refuse_lasting
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.memory.effects import is_kept_out
from exportlens.source.walking import walk

# Methods that run without being named.
_RUN = frozenset({"forward", "__call__", "__getattr__", "__init__", "extra_repr"})
# Methods of lists that give nothing of what is in them.
_FILLING = frozenset({"append", "clear"})


def kept_for_others(draft: Draft, node: ast.expr) -> list[Replacement] | None:
    """The statement that keeps the array `node` under `if not torch.compiler.is_compiling():`; None where the model may read it."""
    source = draft.source
    statement = source.enclosing_statement(node)
    name = _kept_by(statement)
    owner = next((each for each in source.ancestors(statement) if isinstance(each, ast.ClassDef)), None)
    if (
        name is None
        or owner is None
        or not source.begins_line(statement)
        or _shares_its_line(source, statement)
    ):
        return None
    if is_kept_out(source.parents[statement]) or _is_read(draft, owner, name):
        return None
    try:
        refuse_lasting(source, _value(statement), draft.kinds({}))
    except Refused:
        return None
    indent = source.indent_of(statement)
    inner = indent + source.indent_unit()
    start, end = source.start(statement), source.end(statement)
    text = f"if not {draft.torch}.compiler.is_compiling():{source.newline}{inner}{source.shifted(start, end, indent, inner)}"
    return [Replacement(start, end, text)]


def _kept_by(statement: ast.stmt) -> str | None:
    """The attribute of `self` that `statement` sets, writes an item of, or appends to, and does nothing else to."""
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        target = target.value if isinstance(target, ast.Subscript) else target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function, given = statement.value.func, statement.value
        if isinstance(function, ast.Attribute) and function.attr == "append" and len(given.args) == 1:
            target = function.value
    is_own = (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    )
    return target.attr if is_own and isinstance(target, ast.Attribute) else None


def _value(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Assign):
        return statement.value
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return statement.value.args[0]


def _shares_its_line(source: Source, statement: ast.stmt) -> bool:
    behind = source.text[source.end(statement) :].partition("\n")[0].strip()
    return bool(behind) and not behind.startswith("#")


def _is_read(draft: Draft, owner: ast.ClassDef, name: str) -> bool:
    """Whether anything that the model may run reads the attribute `name`, as far as its file tells."""
    if not {ast.unparse(each).rpartition(".")[2] for each in owner.bases} <= {"Module", "object"}:
        # What else it extends may read it.
        return True
    source = draft.source
    trees: list[ast.AST] = [source.tree, *(one for chunk in draft.others() for one in chunk.body)]
    for tree in trees:
        for each in walk(tree):
            if isinstance(each, ast.Constant) and each.value == name:
                return True
            if isinstance(each, ast.ClassDef) and any(_last(base) == owner.name for base in each.bases):
                return True
    if any(_reads_any(each) for each in walk(owner)):
        return True
    readers: list[Function] = []
    for each in walk(owner):
        if isinstance(each, ast.Attribute) and each.attr == name and not _only_fills(source, each):
            reader = source.enclosing_function(each)
            if reader is None or reader not in owner.body or reader.name in _RUN or reader.decorator_list:
                return True
            readers.append(reader)
    named = {one.attr for tree in trees for one in walk(tree) if isinstance(one, ast.Attribute)}
    if any(reader.name in named for reader in readers):
        return True
    classes = [
        one for tree in trees for one in walk(tree) if isinstance(one, ast.ClassDef) and one is not owner
    ]
    called = {one.id for each in (owner, *classes) for one in walk(each) if isinstance(one, ast.Name)}
    functions = [
        one for tree in trees for one in walk(tree) if isinstance(one, ast.FunctionDef) and one.name in called
    ]
    return any(_is_of_another(one, name) for each in (*classes, *functions) for one in walk(each))


def _reads_any(node: ast.AST) -> bool:
    """Whether `node` is `getattr(self, name)` with a name that is not written there."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "getattr":
        return False
    return len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)


def _last(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


def _only_fills(source: Source, attribute: ast.Attribute) -> bool:
    """Whether `self.seen` is set there, or an item of it, or it is appended to."""
    if not isinstance(attribute.ctx, ast.Load):
        return not isinstance(source.parents[attribute], ast.AugAssign)
    parent = source.parents[attribute]
    if isinstance(parent, ast.Subscript):
        return parent.value is attribute and isinstance(parent.ctx, ast.Store)
    call = source.parents.get(parent)
    filled = isinstance(parent, ast.Attribute) and parent.attr in _FILLING
    return filled and isinstance(call, ast.Call) and isinstance(source.parents.get(call), ast.Expr)


def _is_of_another(node: ast.AST, name: str) -> bool:
    """Whether `node` is the attribute `name` of something else than `self`: that may be the model that keeps it."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Attribute) and node.attr == name and not own
