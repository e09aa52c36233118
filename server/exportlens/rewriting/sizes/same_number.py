"""Whether two expressions give the same number: `n + 1` and `1 + n`, `x.size(0)` and what `b, t = x.shape` calls `b`."""

from __future__ import annotations

import ast
from collections import Counter

from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.code.text import Function
from exportlens.source.walking import walk

# How often a name is followed to what it is bound to.
_DEPTH = 4


def is_same_number(one: ast.expr, other: ast.expr, function: Function) -> bool:
    """Whether both are the same sum in `function`, wherever in it they stand as long as nothing binds anew what they read."""
    left, right = _sum(one, function, _DEPTH), _sum(other, function, _DEPTH)
    return left is not None and left == right


def _sum(node: ast.expr, function: Function, depth: int) -> Counter[str] | None:
    """How often each part is added; what is plain is the part "1". None where it is no sum of such."""
    found: Counter[str] | None
    if isinstance(node, ast.Constant):
        found = Counter({"1": node.value}) if type(node.value) is int else None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = _times(_sum(node.operand, function, depth), -1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _sum(node.left, function, depth), _sum(node.right, function, depth)
        right = _times(right, -1 if isinstance(node.op, ast.Sub) else 1)
        found = None if left is None or right is None else _added(left, right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        number = next((each.value for each in sides if _is_int(each)), None)  # type: ignore[attr-defined]
        other = node.right if _is_int(node.left) else node.left
        found = _times(_sum(other, function, depth), number) if number is not None else _part(node)
    elif isinstance(node, ast.Name):
        value = _only_value(node.id, function) if depth else None
        found = _part(node) if value is None else _sum(value, function, depth - 1)
    else:
        found = _of_call(node, function, depth) if isinstance(node, ast.Call) else _part(node)
    return None if found is None else Counter({part: times for part, times in found.items() if times})


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _part(node: ast.expr) -> Counter[str]:
    return Counter({ast.unparse(node): 1})


def _times(parts: Counter[str] | None, number: int) -> Counter[str] | None:
    return None if parts is None else Counter({part: times * number for part, times in parts.items()})


def _added(left: Counter[str], right: Counter[str]) -> Counter[str]:
    total = Counter(left)
    for part, times in right.items():
        total[part] += times
    return total


def _of_call(node: ast.Call, function: Function, depth: int) -> Counter[str]:
    """A size is written as `x.shape[i]`, and `len(range(a, b))` as `b - a`."""
    called = dotted(node.func)
    if called == "len" and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and dotted(inner.func) == "range" and len(inner.args) <= 2:
            end = _sum(inner.args[-1], function, depth)
            begin = Counter() if len(inner.args) == 1 else _times(_sum(inner.args[0], function, depth), -1)
            return _part(node) if end is None or begin is None else _added(end, begin)
        return Counter({f"{ast.unparse(inner)}.shape[0]": 1})
    if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
        return Counter({f"{ast.unparse(node.func.value)}.shape[{ast.unparse(node.args[0])}]": 1})
    return _part(node)


def _only_value(name: str, function: Function) -> ast.expr | None:
    """What the name is bound to, where one statement of `function` does that and what it reads is never bound anew."""
    stores = Counter(
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    )
    if stores[name] != 1:
        return None
    for each in walk(function):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        target, value = each.targets[0], each.value
        if isinstance(target, ast.Name) and target.id == name:
            return value if not any(stores[one] for one in reads(value)) else None
        if isinstance(target, ast.Tuple) and any(
            isinstance(one, ast.Name) and one.id == name for one in target.elts
        ):
            at = next(n for n, one in enumerate(target.elts) if isinstance(one, ast.Name) and one.id == name)
            starred = any(isinstance(one, ast.Starred) for one in target.elts)
            whole = _shape_of(value)
            if starred or whole is None or any(stores[one] for one in reads(value)):
                return None
            return ast.Subscript(ast.Attribute(whole, "shape", ast.Load()), ast.Constant(at), ast.Load())
    return None


def _shape_of(node: ast.expr) -> ast.expr | None:
    """`x` of `x.shape` and `x.size()`."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node, name = node.func, "size"
    else:
        name = "shape"
    return node.value if isinstance(node, ast.Attribute) and node.attr == name else None
