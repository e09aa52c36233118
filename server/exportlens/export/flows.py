"""Where a parameter of `forward` goes: the layers, methods and functions that take it as it came."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exportlens.export.inlining import inlined
from exportlens.export.uses import pattern_rank

if TYPE_CHECKING:
    from exportlens.export.models import FileNames

DEEPEST = 4
# Methods and functions of tensors that leave dimensions as they are.
_KEEPING_METHODS = frozenset({
    "float", "double", "half", "long", "int", "bool", "to", "type", "type_as", "contiguous", "clone", "detach", "cuda", "cpu",
    "requires_grad_", "relu", "sigmoid", "tanh", "abs", "exp", "log", "clamp",
})  # fmt: skip
_KEEPING_FUNCTIONS = frozenset({
    "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "dropout", "normalize", "LongTensor", "FloatTensor", "Tensor",
    "as_tensor", "Variable", "checkpoint",
})  # fmt: skip
_TORCH = ("torch", "F", "nn.functional", "torch.nn.functional")
_SWAPS = frozenset({(1, 2), (2, 1), (-1, -2), (-2, -1), (0, 2, 1)})
_WRAPPERS = frozenset(
    {"weight_norm", "spectral_norm", "DataParallel", "compile", "skip_init", "checkpoint_wrapper"}
)


@dataclass(frozen=True)
class Taker:
    """A layer that takes the parameter, as it is made in `__init__`; its position there, and whether the last two
    dimensions were exchanged before.
    """

    layer: ast.Call
    position: int
    swapped: bool


@dataclass(frozen=True)
class Place:
    """A function in which the parameter has this name."""

    function: ast.FunctionDef
    name: str


class Parts:
    """What `__init__` makes: attributes, local values, and what its lists hold."""

    def __init__(self, cls: ast.ClassDef, names: FileNames, given: dict[str, ast.expr]) -> None:
        self.cls = cls
        self.attributes: dict[str, ast.expr] = {}
        self.values = dict(given)
        self._names = names
        self._items: dict[str, list[ast.expr]] = {}
        init = names.method(cls, "__init__")
        for node in in_order(init) if init is not None else ():
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._remember(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._remember(node.target, node.value)
            elif isinstance(node, ast.For):
                self._bind(node.target, node.iter)
            elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                self._bind(node.generators[0].target, node.generators[0].iter)
            elif isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.ListComp)):
                self._items.setdefault(ast.unparse(node.target), []).append(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                if node.func.attr == "append":
                    self._items.setdefault(ast.unparse(node.func.value), []).append(node.args[0])
                elif node.func.attr in ("add_module", "setattr", "insert") and len(node.args) == 2:
                    self._items.setdefault(ast.unparse(node.func.value), []).append(node.args[1])

    def _remember(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Attribute) and _is_self(target.value):
            self.attributes[target.attr] = value
        elif isinstance(target, ast.Name):
            self.values.setdefault(target.id, value)
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            for part, item in zip(target.elts, value.elts, strict=True):
                self._remember(part, item)

    def _bind(self, target: ast.expr, source: ast.expr) -> None:
        """Bind a loop's names to what they are in its first round."""
        called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
        arguments = source.args if isinstance(source, ast.Call) else []
        if called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2 and arguments:
            self._bind(target.elts[1], arguments[0])
        elif called == "zip" and isinstance(target, ast.Tuple):
            for part, each in zip(target.elts, arguments, strict=False):
                self._bind(part, each)
        elif called == "range":
            self._bind_name(target, ast.Constant(0))
        else:
            first = self.first_item(source)
            if first is not None:
                self._bind_name(target, first)

    def _bind_name(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.values.setdefault(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, value.elts, strict=False):
                self._bind_name(part, item)

    def first_item(self, node: ast.expr | None, depth: int = 0) -> ast.expr | None:
        """The first item of a sequence that `__init__` makes."""
        if node is None or depth > 8:
            return None
        if isinstance(node, (ast.List, ast.Tuple)):
            first = node.elts[0] if node.elts else None
            return self.first_item(first.value, depth + 1) if isinstance(first, ast.Starred) else first
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return node.elt
        if isinstance(node, ast.BinOp):
            return self.first_item(node.left, depth + 1)
        if isinstance(node, ast.Subscript):
            return self.first_item(node.value, depth + 1)
        held = self._items.get(ast.unparse(node), []) if isinstance(node, (ast.Name, ast.Attribute)) else []
        if held:
            return (
                self.first_item(held[0], depth + 1)
                if isinstance(held[0], (ast.List, ast.ListComp))
                else held[0]
            )
        if isinstance(node, ast.Name):
            return self.first_item(self.values.get(node.id), depth + 1)
        if isinstance(node, ast.Attribute) and _is_self(node.value):
            return self.first_item(self.attributes.get(node.attr), depth + 1)
        if isinstance(node, ast.Call) and node.args:  # ModuleList([...]), reversed(...), OrderedDict([...])
            return self.first_item(node.args[0], depth + 1)
        return None

    def made(self, node: ast.expr | None, depth: int = 0) -> ast.Call | None:
        """The call that makes the layer which an expression of `__init__` stands for; of several in a row, the first."""
        if node is None or depth > 8:
            return None
        if isinstance(node, ast.IfExp):
            return self.made(node.body, depth + 1) or self.made(node.orelse, depth + 1)
        if isinstance(node, ast.Name):
            return self.made(self.values.get(node.id), depth + 1)
        if isinstance(node, ast.Attribute) and _is_self(node.value):
            return self.made(self.attributes.get(node.attr), depth + 1)
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:  # of an OrderedDict
            return self.made(node.elts[1], depth + 1)
        if not isinstance(node, ast.Call):
            return None
        kind = self._names.full(node.func).rpartition(".")[2]
        if kind == "Sequential":
            for item in node.args:
                inner = self.first_item(item.value) if isinstance(item, ast.Starred) else item
                if isinstance(inner, ast.Call) and self._names.full(inner.func).endswith("OrderedDict"):
                    inner = self.first_item(inner)
                layer = self.made(inner, depth + 1)
                called = self._names.full(layer.func) if layer is not None else ""
                passing = called.endswith(_PASSING) or (
                    called.endswith("Rearrange") and pattern_rank(layer, 0) is None
                )
                if layer is not None and not passing:
                    return layer
            return None
        if kind in _WRAPPERS and node.args:
            return self.made(node.args[0], depth + 1)
        function = self._names.functions.get(kind)
        if function is not None:
            return self.made(self._returned(function, node), depth + 1)
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Call)
            and not kind[:1].isupper()
        ):
            return self.made(node.func.value, depth + 1)  # Net().to(...)
        return node

    def _returned(self, function: ast.FunctionDef, call: ast.Call) -> ast.expr | None:
        """What a function of the file returns for a call, with the call's arguments in it."""
        arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        defaults = function.args.defaults
        bound = dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
        bound |= dict(zip(arguments, call.args, strict=False)) | {
            k.arg: k.value for k in call.keywords if k.arg
        }
        found = [n.value for n in in_order(function) if isinstance(n, ast.Return) and n.value is not None]
        return inlined(found[-1], bound) if found else None

    def called(self, function: ast.expr, held: dict[str, ast.expr]) -> ast.Call | None:
        """The layer that a call's function stands for: `self.a`, `self.a[0]`, `self.a.b` of a dict, a loop's name."""
        if isinstance(function, ast.Name) and function.id in held:
            return self.made(held[function.id])
        if isinstance(function, ast.Subscript):
            return self.made(self.first_item(function.value))
        if not isinstance(function, ast.Attribute):
            return None
        if _is_self(function.value):
            made = self.made(self.attributes.get(function.attr))
            if made is not None and self._names.full(made.func).endswith("ModuleList"):
                return self.made(self.first_item(function))
            return made
        owner = (
            self.attributes.get(function.value.attr) if isinstance(function.value, ast.Attribute) else None
        )
        if isinstance(owner, ast.Call) and self._names.full(owner.func).endswith("ModuleDict"):
            for part in ast.walk(owner):
                if isinstance(part, ast.keyword) and part.arg == function.attr:
                    return self.made(part.value)
                if isinstance(part, ast.Dict):
                    for key, value in zip(part.keys, part.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == function.attr:
                            return self.made(value)
        return None


_PASSING = (
    "Dropout",
    "Dropout2d",
    "Identity",
    "ReLU",
    "GELU",
    "SiLU",
    "LeakyReLU",
    "Flatten",
    "Permute",
)


def takers(
    function: ast.FunctionDef, name: str, parts: Parts, names: FileNames, depth: int = 0
) -> Iterator[Taker | Place]:
    """What takes the parameter (`x`, or `batch['x']`), in order, methods and functions of the file gone into."""
    yield Place(function, name)
    aliases, held = {name}, _loops(function, parts)
    for node in in_order(function):
        if isinstance(node, ast.Call):
            given: list[tuple[int | str, ast.expr]] = list(enumerate(node.args))
            given += [(k.arg, k.value) for k in node.keywords if k.arg]
            for position, argument in given:
                text, swapped = _kept(argument)
                if text in aliases:
                    yield from _taken(node, position, swapped, parts, names, held, depth)
        elif isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                if isinstance(target, ast.Name):
                    (aliases.add if _kept(value) in [(a, False) for a in aliases] else aliases.discard)(
                        target.id
                    )


def _taken(
    call: ast.Call,
    position: int | str,
    swapped: bool,
    parts: Parts,
    names: FileNames,
    held: dict[str, ast.expr],
    depth: int,
) -> Iterator[Taker | Place]:
    target = call.func
    method = (
        names.method(parts.cls, target.attr)
        if isinstance(target, ast.Attribute) and _is_self(target.value)
        else None
    )
    followed = method or (names.functions.get(target.id) if isinstance(target, ast.Name) else None)
    if followed is not None and depth < DEEPEST and not swapped:
        arguments = [a.arg for a in (*followed.args.posonlyargs, *followed.args.args)]
        static = any(ast.unparse(d) == "staticmethod" for d in followed.decorator_list)
        arguments = arguments[1:] if method is not None and not static else arguments
        inner = position if isinstance(position, str) else (arguments[position : position + 1] or [""])[0]
        if inner in arguments:
            yield from takers(followed, inner, parts, names, depth + 1)
        return
    layer = parts.called(target, held)
    if layer is not None and isinstance(position, int):
        yield Taker(layer, position, swapped)


def _loops(function: ast.FunctionDef, parts: Parts) -> dict[str, ast.expr]:
    """The names of loops over lists of layers, with the first layer of each list."""
    found: dict[str, ast.expr] = {}

    def bind(target: ast.expr, source: ast.expr) -> None:
        called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
        arguments = source.args if isinstance(source, ast.Call) else []
        if called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2 and arguments:
            bind(target.elts[1], arguments[0])
        elif called == "zip" and isinstance(target, ast.Tuple):
            for part, each in zip(target.elts, arguments, strict=False):
                bind(part, each)
        elif isinstance(target, ast.Name) and (first := parts.first_item(source)) is not None:
            found.setdefault(target.id, first)

    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.comprehension)):
            bind(node.target, node.iter)
    return found


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _kept(node: ast.expr) -> tuple[str, bool]:
    """The text of what an expression has the dimensions of, and whether its last two were exchanged."""
    swapped = False
    for _ in range(8):
        if isinstance(node, ast.BinOp):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
            continue
        if not isinstance(node, ast.Call):
            break
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        owner = function.value if isinstance(function, ast.Attribute) else None
        if owner is not None and name in ("transpose", "permute"):
            if _dims(node.args) not in _SWAPS:
                return "", False
            node, swapped = owner, not swapped
        elif name in _KEEPING_FUNCTIONS and node.args and (owner is None or ast.unparse(owner) in _TORCH):
            node = node.args[0]
        elif owner is not None and name in _KEEPING_METHODS:
            node = owner
        else:
            break
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Subscript)) else "", swapped


def _dims(nodes: list[ast.expr]) -> tuple[int, ...]:
    """The dims that are written in a call; empty where they are not all plain numbers."""
    try:
        return tuple(int(ast.literal_eval(node)) for node in nodes)
    except (ValueError, TypeError, SyntaxError):
        return ()


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def in_order(function: ast.FunctionDef) -> list[ast.expr | ast.stmt]:
    """The nodes of a function in the order of their text, inner calls before outer ones."""
    nodes = [node for node in ast.walk(function) if isinstance(node, (ast.expr, ast.stmt))]
    return sorted(nodes, key=lambda n: (n.lineno, n.end_col_offset or 0, -n.col_offset))
