"""Values that have the shape that a name has: what is computed of it, number by number, here or in a function that is given it.

low = 0.3 * y + 0.7 * low                   low, step = self.update(low, step, y)
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.kinds import Kinds

_EXTREMES = frozenset({"maximum", "minimum", "fmax", "fmin"})
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def is_moved(value: ast.expr, name: str, kinds: Kinds) -> bool:
    """Whether `value` is what `name` was with something added to it, or multiplied by, or the larger of both: of the same shape."""
    return _is_moved(value, frozenset({name}), kinds)


def part_of_call(statement: ast.stmt, target: ast.Name) -> ast.expr | None:
    """`f(x)[1]` for `b` in `a, b = f(x)`; None for any other."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    names, value = statement.targets[0], statement.value
    if not isinstance(names, ast.Tuple) or not isinstance(value, ast.Call):
        return None
    if target not in names.elts or any(isinstance(each, ast.Starred) for each in names.elts):
        return None
    return ast.Subscript(value, ast.Constant(names.elts.index(target)), ast.Load())


def written_out(value: ast.expr) -> ast.expr:
    """The expression of the text that gives `value`: the call, of what `part_of_call` gives."""
    return value if hasattr(value, "lineno") or not isinstance(value, ast.Subscript) else value.value


def _is_moved(value: ast.expr, names: frozenset[str], kinds: Kinds) -> bool:
    if isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords:
        of = dotted(value.func) or ""
        own = any(isinstance(each, ast.Name) and each.id in names for each in value.args)
        if own and of.startswith("torch.") and of.rpartition(".")[2] in _EXTREMES:
            return True
    if isinstance(value, ast.Call):
        return _gives_moved(value, None, names, kinds)
    if isinstance(value, ast.Subscript) and written_out(value) is not value:
        assert isinstance(value.value, ast.Call) and isinstance(value.slice, ast.Constant)
        return _gives_moved(value.value, value.slice.value, names, kinds)
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, (ast.USub, ast.UAdd)) and _is_like(value.operand, names, kinds)
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, _ARITHMETIC)
        and any(_is_like(each, names, kinds) for each in (value.left, value.right))
    )


def _is_like(value: ast.expr, names: frozenset[str], kinds: Kinds) -> bool:
    return (isinstance(value, ast.Name) and value.id in names) or _is_moved(value, names, kinds)


def _gives_moved(call: ast.Call, part: object, names: frozenset[str], kinds: Kinds) -> bool:
    """Whether a function of the file, of statements one after the other, gives one of `names` that is moved, as its `part`."""
    path = dotted(call.func) or ""
    function = kinds.functions.get(path)
    if function is None or call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    given = [each.arg for each in arguments(function.args)]
    given = given[1:] if path.startswith("self.") else given
    like = {
        parameter
        for parameter, value in zip(given, call.args, strict=False)
        if isinstance(value, ast.Name) and value.id in names
    }
    return bool(like) and _returns_like(function, part, like, kinds.inside_of_own(function))


def _returns_like(function: Function, part: object, like: set[str], kinds: Kinds) -> bool:
    for statement in function.body:
        if isinstance(statement, ast.Return):
            value = statement.value
            if isinstance(part, int):
                parts = value.elts if isinstance(value, ast.Tuple) else []
                value = parts[part] if part < len(parts) else None
            return value is not None and _is_like(value, frozenset(like), kinds)
        if isinstance(statement, ast.Assign):
            names = set(bound(statement))
            moved = len(statement.targets) == 1 and _is_like(statement.value, frozenset(like), kinds)
            like = like | names if moved and isinstance(statement.targets[0], ast.Name) else like - names
        elif not isinstance(statement, ast.Expr):
            return False
    return False
