"""What a list, a set or a dict of the model tells, where it changes from call to call: how much it holds, what is in it, and its numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import Const, Instance, Sequence, Shape, Static, TensorScalar, Value, options

from exportlens_rules.mutation.kept_holders import ADDING
from exportlens_rules.mutation.results import decides_result
from exportlens_rules.mutation.state_reads import (
    certainly_written,
    converts,
    loaded,
    parents,
    reads,
    renewed_otherwise,
)
from exportlens_rules.reading import ancestors

# Methods that give no numbers that are in it.
_NOT_ASKED = ADDING | {"pop", "popleft", "popitem", "clear", "remove", "discard", "rotate", "reverse", "sort"}


RENEWED = (
    "`{}` is bound to {} that the first call reads out of its data, and that later calls compute theirs of: the exported program "
    "begins anew in each call. Keep {} in a buffer, as a tensor, and write it in place."
)


def is_number(value: Value) -> bool:
    """Whether `value` is a number of Python, or a list of such."""
    if isinstance(value, Sequence):
        parts = value.items if value.items else [value.element] if value.element is not None else []
        return bool(parts) and all(map(is_number, parts))
    return all(
        (isinstance(each, Const) and type(each.value) in (bool, int, float))
        or (isinstance(each, Static) and each.type in ("int", "float", "bool"))
        or (isinstance(each, Shape) and not each.unbacked)
        for each in options(value)
    )


def is_of_data(value: Value) -> bool:
    """Whether `value` is a number of Python that was read out of tensor data, or a list of such."""
    if isinstance(value, Sequence):
        parts = value.items if value.items is not None else [value.element] if value.element else []
        return bool(parts) and all(map(is_of_data, parts))
    return all(isinstance(each, TensorScalar) for each in options(value))


def is_renewed_by_data(place: AttributeWrite) -> bool:
    """Whether the first call binds numbers that it reads out of its data, later ones compute theirs of what they find, and these decide
    what the call gives: `if self.mean is None: self.mean = m else: self.mean = self.mean * 0.9 + m * 0.1`."""
    function = None if place.site.function is None else place.site.function.node
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if (
        not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        or statement is None
        or target is None
    ):
        return False
    if place.began != Const(None) or place.elsewhere or not is_of_data(place.value):
        return False
    if not isinstance(place.owner, Instance) or place.owner.traced:
        return False
    if not renewed_otherwise(function, statement, target):
        return False
    branch, path = parents(function)[statement], ast.dump(loaded(target))
    inside = set(ast.walk(branch))
    return any(
        each not in inside and decides_result(place, each, function)
        for each in ast.walk(function)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and ast.dump(each) == path
    )


def counts_decide(place: Place, function: ast.AST, path: str) -> bool:
    """Whether the length of the list (dumped) decides what the call gives."""
    return any(
        isinstance(each.func, ast.Name)
        and each.func.id == "len"
        and [ast.dump(one) for one in each.args] == [path]
        and decides_result(place, each, function)
        for each in ast.walk(function)
        if isinstance(each, ast.Call)
    )


def members_decide(place: Place, function: ast.AST, path: str) -> bool:
    """Whether it decides what the call gives whether something is in the container already, and not only whether it is made once
    for each key: `if n not in self.table: self.table[n] = make(n)`."""
    owner = None if place.site.function is None else place.site.function.owner
    others = owner.node if owner is not None else function
    if any(_gives_item(each, path) for one in (function, others) for each in ast.walk(one)):
        return False
    return any(
        isinstance(each, ast.Compare)
        and len(each.ops) == 1
        and isinstance(each.ops[0], (ast.In, ast.NotIn))
        and ast.dump(each.comparators[0]) == path
        and not _is_put_before(function, each, path)
        and decides_result(place, each, function)
        for each in ast.walk(function)
    )


def numbers_decide(place: Place, function: ast.AST, path: str) -> bool:
    """Whether the numbers in the container decide what the call gives."""
    around = parents(function)
    return any(
        _asks_for_numbers(each, around) and decides_result(place, each, function)
        for each in ast.walk(function)
        if isinstance(each, (ast.Attribute, ast.Name)) and ast.dump(each) == path
    )


def item_decides(
    place: Place, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.Assign, path: str
) -> bool:
    """Whether `statement` sets the item to a name for what was computed of it above: `n = self.sums.get("n", 0) + 1; self.sums["n"] = n`."""
    if not isinstance(statement.value, ast.Name):
        return False
    name = statement.value.id
    bound = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
    ]
    around = parents(function)
    made = around[bound[0]] if len(bound) == 1 else None
    target = ast.parse(ast.unparse(statement.targets[0]), mode="eval").body
    if (
        not isinstance(made, ast.Assign)
        or made.lineno > statement.lineno
        or not isinstance(target, ast.Subscript)
    ):
        return False
    computed = isinstance(made.value, ast.BinOp) and not converts(made.value, [path])
    old = [each for each in ast.walk(made.value) if _is_item(each, target, path)]
    return computed and any(decides_result(place, each, function) for each in old)


def is_bound_anew(
    place: Place, function: ast.AST, statement: ast.stmt, path: str, around: dict[ast.AST, ast.AST]
) -> bool:
    """Whether `statement` binds numbers that it computes of those that the attribute held, and they decide what the call gives."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    if value is None or certainly_written(function, statement, path, around):
        return False
    names = {
        ast.dump(ast.Name(one.id, ast.Load()))
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and each.lineno < statement.lineno and reads(each.value, [path])
        for target in each.targets
        for one in ast.walk(target)
        if isinstance(one, ast.Name)
    }
    if not isinstance(statement, ast.AugAssign) and not reads(value, [path, *names]):
        return False
    inside = set(ast.walk(statement))
    return any(
        each not in inside and decides_result(place, each, function)
        for each in ast.walk(function)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and ast.dump(each) == path
    )


def _is_item(node: ast.AST, target: ast.Subscript, path: str) -> bool:
    """Whether `node` reads the item, or asks for it by `get`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        given = [ast.dump(each) for each in node.args[:1]]
        return ast.dump(node.func.value) == ast.dump(target.value) and given == [ast.dump(target.slice)]
    return isinstance(node, ast.Subscript) and ast.dump(node) == path


def _gives_item(node: ast.AST, path: str) -> bool:
    """Whether `node` reads what stands in the container under a key."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and ast.dump(node.value) == path
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("get", "values", "items")
        and ast.dump(node.func.value) == path
    )


def _is_put_before(function: ast.AST, asked: ast.Compare, path: str) -> bool:
    """Whether the function puts the very thing in above: then this call has."""
    wanted = ast.dump(asked.left)
    return any(each.lineno < asked.lineno and wanted in keys for each, keys in _puts(function, path))


def _puts(function: ast.AST, path: str) -> Iterator[tuple[ast.expr, list[str]]]:
    for each in ast.walk(function):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            if each.func.attr in ADDING and ast.dump(each.func.value) == path:
                yield each, [ast.dump(one) for one in each.args]
        elif (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Store)
            and ast.dump(each.value) == path
        ):
            yield each, [ast.dump(each.slice)]


def _asks_for_numbers(node: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    use = around[node]
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    if isinstance(use, ast.Call):
        return not (isinstance(use.func, ast.Name) and use.func.id in ("len", "bool"))
    if isinstance(use, ast.Attribute):
        return use.attr not in _NOT_ASKED and isinstance(around[use], ast.Call)
    if isinstance(use, ast.Subscript):
        return use.value is node and isinstance(use.ctx, ast.Load)
    return isinstance(use, (ast.For, ast.comprehension, ast.Starred, ast.Return, ast.Tuple))
