"""What tells that a number of a list was an int of a tensor: an embedding has taken the tensor before, which raises for anything else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.source.walking import walk

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
# What may not compute all of its parts.
_UNSURE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_int_of_tensor(source: Source, node: ast.expr) -> bool:
    """Whether `node` is a name for an element of `t.tolist()`, `t` being an argument that an embedding has certainly taken."""
    functions = [
        each for each in source.ancestors(node) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    if not isinstance(node, ast.Name) or not functions:
        return False
    function = functions[-1]
    stores = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
    ]
    rows = [_rows(source, each) for each in stores]
    names = {each.id for each in rows if each is not None}
    if len(names) != 1 or None in rows or node.id in {each.arg for each in arguments(function.args)}:
        return False
    [name] = names
    bound_anew = any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in walk(function)
    )
    if bound_anew or name not in {each.arg for each in arguments(function.args)}:
        return False
    layers = _embeddings(source, function)
    return any(
        dotted(call.func) in layers and call.args and ast.unparse(call.args[0]) == name
        for call in _calls_before(source, node, function)
    )


def _rows(source: Source, store: ast.Name) -> ast.Name | None:
    """The name of the tensor whose numbers the loop or comprehension goes through that binds `store`."""
    target: ast.AST = store
    owner = source.parents[store]
    place = None
    if isinstance(owner, ast.Tuple):
        place, target, owner = owner.elts.index(store), owner, source.parents[owner]
    if not isinstance(owner, (ast.For, ast.comprehension)) or owner.target is not target:
        return None
    rows = owner.iter
    if place is not None:
        called = ast.unparse(rows.func) if isinstance(rows, ast.Call) and not rows.keywords else ""
        assert isinstance(rows, ast.Call) or not called
        if called == "enumerate" and place == 1 and isinstance(rows, ast.Call) and len(rows.args) == 1:
            rows = rows.args[0]
        elif called == "zip" and isinstance(rows, ast.Call) and place < len(rows.args):
            rows = rows.args[place]
        else:
            return None
    func = rows.func if isinstance(rows, ast.Call) and not rows.args else None
    listed = func.value if isinstance(func, ast.Attribute) and func.attr == "tolist" else None
    return listed if isinstance(listed, ast.Name) else None


def _embeddings(source: Source, function: Function) -> set[str]:
    """The attributes of the class around `function` that are embeddings whenever they are set."""
    cls = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    found: dict[str, list[bool]] = {}
    for each in walk(cls) if cls is not None else ():
        for target in each.targets if isinstance(each, ast.Assign) else ():
            path = dotted(target) or ""
            if path.startswith("self.") and isinstance(each, ast.Assign):
                made = dotted(each.value.func) if isinstance(each.value, ast.Call) else None
                found.setdefault(path, []).append(made in ("nn.Embedding", "torch.nn.Embedding"))
    return {path for path, certain in found.items() if all(certain)}


def _calls_before(source: Source, node: ast.expr, function: Function) -> Iterator[ast.Call]:
    """The calls that have certainly run when `node` is computed."""
    statement = source.enclosing_statement(node)
    while statement is not function:
        block, index = source.block_of(statement)
        for each in block[:index]:
            if isinstance(each, _SIMPLE) and not any(isinstance(one, _UNSURE) for one in walk(each)):
                yield from (one for one in walk(each) if isinstance(one, ast.Call))
        parent = source.parents[statement]
        if not isinstance(parent, ast.stmt):
            return
        statement = parent
