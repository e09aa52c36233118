"""Whether autograd records what an expression is made of: it goes through a layer of the model that has parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from exportlens.inference.places import ItemRead, ItemWrite, Trail
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.sizes.placed_writes import in_place_call
from exportlens.source.walking import walk

from exportlens_rules.reading import keeps_gradients, nodes_around

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
# What holds parameters, by the name of its class.
_LAYER = re.compile(
    r"Linear|Bilinear|Conv\w*|L?GRU\w*|LSTM\w*|RNN\w*|Embedding\w*|\w+Norm\w*|MultiheadAttention|Transformer\w*|Parameter"
)
# What passes no gradient on.
_ENDS = frozenset(
    {
        "detach",
        "data",
        "item",
        "tolist",
        "argmax",
        "argmin",
        "argsort",
        "shape",
        "size",
        "dim",
        "long",
        "int",
        "bool",
        "numel",
    }
)
_ENDING_FUNCTIONS = frozenset(
    {"torch.zeros_like", "torch.ones_like", "torch.empty_like", "torch.full_like", "len", "range"}
)
_MOST_CALLS = 4


def is_recorded(place: ItemRead | ItemWrite) -> bool:
    """Whether what is written at `place`, also by a method as `x[:n].copy_(v)`, is recorded, or what else is written to the same name in the function."""
    around = nodes_around(place.site.chunk, place.node)
    statement = next(
        (each for each in around if isinstance(each, (ast.Assign, ast.AugAssign, ast.Expr))), None
    )
    if statement is None or not keeps_gradients(place):
        return False
    function = _definition(around)
    name = dotted(place.node.value) if isinstance(place.node, ast.Subscript) else None
    called = in_place_call(place.node, around)
    values = [statement.value] if called is None else list(called.args)
    if function is not None and name is not None:
        values += _written_to(name, function)
    found = _Recorded(place.site.trail)
    return any(found.recorded(each, around, len(place.site.trail)) for each in values)


def _definition(around: list[ast.AST]) -> _Definition | None:
    return next((each for each in around if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


def _written_to(name: str, function: _Definition) -> Iterator[ast.expr]:
    """What `function` binds `name` to, or writes to items of it."""
    for node in walk(function):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            owner = getattr(node.value.func, "value", None)
            owner = owner.value if isinstance(owner, ast.Subscript) else owner
            if isinstance(owner, ast.expr) and dotted(owner) == name:
                yield from node.value.args
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            targets = [node.target]
        parts = [
            part
            for each in targets
            for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])
        ]
        owners = [dotted(part.value if isinstance(part, ast.Subscript) else part) for part in parts]
        value = getattr(node, "value", None)
        if name in owners and isinstance(value, ast.expr):
            yield value
        if isinstance(node, (ast.For, ast.comprehension)) and name in map(dotted, _leaves(node.target)):
            yield node.iter


def _leaves(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


class _Recorded:
    """One search, back through the names of functions and into the calls that lead to them."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self.seen: set[tuple[int, str]] = set()

    def recorded(self, node: ast.expr, around: list[ast.AST], depth: int) -> bool:
        """Whether `node` is, in the code with the nodes `around` it, which `depth` calls of the trail lead to."""
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Attribute) and node.attr in _ENDS):
            return False
        if isinstance(node, ast.Call):
            name = dotted(node.func) or ""
            if name in _ENDING_FUNCTIONS or name.rpartition(".")[2] in _ENDS:
                return False
            if name.startswith("self.") and _is_layer(name.split(".")[1], around):
                return True
        if isinstance(node, ast.Attribute) and (dotted(node) or "").startswith("self."):
            return _is_layer((dotted(node) or "").split(".")[1], around, parameter=True)
        if isinstance(node, ast.Name):
            return self._name(node.id, around, depth)
        if isinstance(node, (ast.Lambda, ast.Constant)):
            return False
        # Neither an index nor a condition passes a gradient on.
        parts = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
        return any(isinstance(each, ast.expr) and self.recorded(each, around, depth) for each in parts)

    def _name(self, name: str, around: list[ast.AST], depth: int) -> bool:
        for index, function in enumerate(around):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if (id(function), name) in self.seen:
                return False
            self.seen.add((id(function), name))
            if any(self.recorded(each, around[index:], depth) for each in _written_to(name, function)):
                return True
            given = self._given(name, function, depth)
            if given is not None:
                return given
        return False

    def _given(self, name: str, function: _Definition, depth: int) -> bool | None:
        """Whether the call that led here gives what is recorded as the parameter `name`; None where it is none."""
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if name not in names:
            return None
        if depth == 0 or len(self.trail) - depth >= _MOST_CALLS:
            return False
        _, chunk, call = self.trail[depth - 1]
        if not isinstance(call, ast.Call):
            return False
        place = names.index(name) - (names[:1] == ["self"])
        given = [each.value for each in call.keywords if each.arg == name]
        given += call.args[place : place + 1] if place >= 0 else []
        return bool(given) and self.recorded(given[0], nodes_around(chunk, call), depth - 1)


def _is_layer(name: str, around: list[ast.AST], parameter: bool = False) -> bool:
    """Whether the class around keeps a layer with parameters as `self.name`, or (`parameter`) a parameter itself."""
    owner = next((each for each in around if isinstance(each, ast.ClassDef)), None)
    for node in walk(owner) if owner is not None else ():
        if isinstance(node, ast.Assign) and any(dotted(each) == f"self.{name}" for each in node.targets):
            called = [dotted(each.func) or "" for each in walk(node.value) if isinstance(each, ast.Call)]
            words = [each.rpartition(".")[2] for each in called]
            return any(each == "Parameter" if parameter else _LAYER.fullmatch(each) for each in words)
    return False
