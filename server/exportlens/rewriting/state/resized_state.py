"""State that starts as a tensor of one number, or of none, and gets one of another size: no `copy_` writes that into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.infinity import infinity
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.state.asked_empty import is_filled

_MADE_OF_SIZES = frozenset({"zeros", "ones", "empty", "rand", "randn", "full"})
_MADE_OF_VALUES = frozenset({"tensor", "Tensor", "FloatTensor", "as_tensor"})
_REDUCTIONS = frozenset(
    {
        "mean",
        "sum",
        "std",
        "var",
        "max",
        "min",
        "amax",
        "amin",
        "median",
        "prod",
        "norm",
        "logsumexp",
        "quantile",
    }
)
# Their first argument is no dimension.
_OF_AN_ORDER = frozenset({"norm", "quantile"})


def refuse_resized(
    source: Source, owner: ast.ClassDef, function: Function, path: str, region: tuple[int, int]
) -> None:
    """Raise Refused where `region` of `function` binds `path`, an attribute or its `.data`, to a tensor that is larger than the one
    which the constructor of `owner` starts with."""
    path = path.removesuffix(".data")
    sizes = {_elements(each) for each in _started_with(owner, path)}
    if not sizes or not sizes <= {0, 1}:
        return
    for each in ast.walk(function):
        if not isinstance(each, ast.Assign):
            continue
        if not any(dotted(target) in (path, f"{path}.data") for target in each.targets):
            continue
        inside = region[0] <= source.start(each) and source.end(each) <= region[1]
        if inside and is_filled(source, each, path):
            continue
        if inside and (sizes == {0} or _has_dimensions(each.value, function, 4)):
            raise Refused(
                f"`{path}` starts with a tensor of another size than `{source.of(each.value)}` gives"
            )


def _started_with(owner: ast.ClassDef, path: str) -> Iterator[ast.expr]:
    """What `__init__` binds `path` to, or registers under its name."""
    constructor = next((each for each in owner.body if getattr(each, "name", "") == "__init__"), None)
    parts = [] if constructor is None else list(ast.walk(constructor))
    bound = {
        ast.unparse(target): each.value
        for each in parts
        if isinstance(each, ast.Assign)
        for target in each.targets
    }
    for each in parts:
        if isinstance(each, ast.Assign) and any(dotted(target) == path for target in each.targets):
            yield each.value
        elif (
            isinstance(each, ast.Call)
            and dotted(each.func) == "self.register_buffer"
            and len(each.args) > 1
            and isinstance(each.args[0], ast.Constant)
            and each.args[0].value == path.removeprefix("self.")
        ):
            given = each.args[1]
            # `start = torch.tensor([])`, then `self.register_buffer("start", start)`.
            yield bound.get(given.id, given) if isinstance(given, ast.Name) else given


def _elements(made: ast.expr) -> int | None:
    """How many elements the tensor has that `made` makes, as far as 0 or 1; None where it is not known to be these."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return None
    name = made.func.attr
    if name in ("Parameter", "Buffer"):
        return _elements(made.args[0]) if made.args else None
    if name not in _MADE_OF_SIZES | _MADE_OF_VALUES:
        return _elements(made.func.value) if name in ("float", "long", "double", "to") else None
    given: list[ast.expr] = list(made.args[:1] if name in _MADE_OF_VALUES or name == "full" else made.args)
    if len(given) == 1 and isinstance(given[0], (ast.List, ast.Tuple)):
        given = given[0].elts
        empty = 0 if name in _MADE_OF_VALUES else 1
    else:
        empty = 0
    if not given:
        return empty
    if name in _MADE_OF_VALUES:
        plain = len(given) == 1 and isinstance(given[0], (ast.Constant, ast.UnaryOp))
        return 1 if plain or infinity(given[0]) is not None else None
    numbers = [each.value if isinstance(each, ast.Constant) else None for each in given]
    return 0 if 0 in numbers else 1 if set(numbers) == {1} else None


def _has_dimensions(node: ast.expr, function: Function, depth: int) -> bool:
    """Whether `node` reduces some dimensions, and so is of as many numbers as the others have."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        given = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [node.id]
        ]
        return len(given) == 1 and _has_dimensions(given[0], function, depth - 1)
    if isinstance(node, ast.BinOp):
        return any(_has_dimensions(each, function, depth) for each in (node.left, node.right))
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _has_dimensions(node.value, function, depth)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, of_torch = node.func.attr, dotted(node.func.value) == "torch"
    given = node.args[1:] if of_torch else node.args
    if name in _REDUCTIONS:
        written = name not in _OF_AN_ORDER and bool(given) and _is_dimension(given[0])
        return written or any(each.arg in ("dim", "axis") for each in node.keywords)
    inner = node.args[:1] if of_torch else [node.func.value]
    return any(_has_dimensions(each, function, depth) for each in inner)


def _is_dimension(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts)
    return isinstance(node, ast.Constant) and type(node.value) is int
