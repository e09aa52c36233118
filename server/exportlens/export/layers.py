"""Inputs from inference: what the first layers that touch each parameter accept, and what annotations say."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from exportlens.export.dimensions import longest_sequence
from exportlens.export.uses import called_arguments, kind_of, rank_of, sequence_length
from exportlens.source.parsing import parse_python

if TYPE_CHECKING:
    from exportlens.export.models import FileNames

BATCH = 2
LENGTH = 8
SIDE = 32
WIDTH = 8

# Constructor arguments by name, where neither a default nor an annotation gives a value: small sizes that
# fit together.
INT_BY_NAME = (
    (re.compile(r"head|group"), 2),
    (re.compile(r"layer|depth|block|repeat|stage"), 2),
    (re.compile(r"kernel|window"), 3),
    (re.compile(r"stride|scale|factor|dilation|expansion|ratio|patch"), 2),
    (re.compile(r"padding"), 1),
    (re.compile(r"vocab|token|entit|item|user"), 32),
    (re.compile(r"img|image|resolution"), SIDE),
    (re.compile(r"in_c|channels_in|in_chan"), 4),
    (re.compile(r""), WIDTH),
)
FLOAT_NAMES = re.compile(
    r"drop|rate|eps|alpha|beta|gamma|prob|temperature|momentum|slope|lambda|lr\b|weight$|^p$"
)
BOOL_NAMES = re.compile(
    r"^(use_|is_|has_|with_|return_)|bias$|bidirectional|batch_first|causal|inplace|affine"
)


@dataclass
class Constructor:
    """Proposed constructor arguments: their text, and the values of the class's parameters as expressions."""

    text: str
    values: dict[str, ast.expr] = field(default_factory=dict)


def constructor_proposal(cls: ast.ClassDef, names: FileNames) -> Constructor | None:
    """Arguments for parameters without a default, by annotation and name; None where one cannot be made
    up.
    """
    init = names.method(cls, "__init__")
    if init is None:
        return Constructor("")
    models = called_arguments(init, names.method(cls, "forward"))
    arguments = [*init.args.posonlyargs, *init.args.args][1:]
    defaults: list[ast.expr | None] = [None] * (len(arguments) - len(init.args.defaults)) + list(
        init.args.defaults
    )
    pairs = [
        *zip(arguments, defaults, strict=True),
        *zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True),
    ]
    values: dict[str, ast.expr] = {}
    words = []
    for argument, default in pairs:
        if default is not None:
            values[argument.arg] = default
            continue
        if argument.arg in models:
            made: ast.expr | None = parse_python(models[argument.arg], mode="eval").body
        else:
            made = _argument_value(argument, names, sequence_length(init, argument.arg))
        if made is None:
            return None
        values[argument.arg] = made
        words.append(f"{argument.arg}={ast.unparse(made)}")
    return Constructor(", ".join(words), values)


def _argument_value(argument: ast.arg, names: FileNames, items: int | None) -> ast.expr | None:
    said = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    name = argument.arg.lower()
    if argument.annotation is not None and (full := names.full(argument.annotation)) in names.classes:
        cls = names.classes[full]
        if any("dataclass" in ast.unparse(decorator) for decorator in cls.decorator_list):
            needed = [n for n in cls.body if isinstance(n, ast.AnnAssign) and n.value is None]
            return None if needed else parse_python(f"{full}()", mode="eval").body
        return None
    if said in ("bool",) or (not said and BOOL_NAMES.search(name)):
        return ast.Constant(False)
    if said == "float" or (not said and FLOAT_NAMES.search(name)):
        return ast.Constant(0.1)
    if items is not None and not said:
        return ast.List([ast.Constant(WIDTH) for _ in range(items)])
    if said in ("int", "") and not name.startswith(
        ("model", "module", "encoder", "decoder", "config", "cfg", "net")
    ):
        return ast.Constant(next(size for pattern, size in INT_BY_NAME if pattern.search(name)))
    if re.fullmatch(r"(?:typing\.)?(?:Sequence|List|list|Tuple|tuple)\[int.*\]", said):
        return parse_python(
            f"[{WIDTH}, {WIDTH}]" if "ist" in said or "eq" in said else f"({WIDTH}, {WIDTH})", mode="eval"
        ).body
    if said.startswith(("Optional", "typing.Optional")) or said.endswith("| None"):
        return ast.Constant(None)
    return None


_ARITHMETIC: dict[type[ast.operator], object] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


_ON_LAST = re.compile(r"torch\.randn\((\d+), (\d+)\)")
"""What a layer takes that works on the last dimension alone: there may be others between."""
GUESSES = frozenset({"the first layers", "common shapes"})
"""Sources of inputs that are guessed: enough to propose, too little to run anything with unasked."""


class LayerReader:
    """Reads a class's `__init__` for its layers and its `forward` for which of them meets which parameter
    first.
    """

    def __init__(
        self, cls: ast.ClassDef, forward: ast.FunctionDef, names: FileNames, made: Constructor
    ) -> None:
        self._names = names
        self._forward = forward
        self._values = dict(made.values)
        self._attributes: dict[str, ast.expr] = {}
        init = names.method(cls, "__init__")
        for node in ast.walk(init) if init is not None else ():
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._remember(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._remember(node.target, node.value)

    def _remember(self, target: ast.expr, value: ast.expr) -> None:
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        ):
            self._attributes[target.attr] = value
        elif isinstance(target, ast.Name):
            self._values.setdefault(target.id, value)

    def proposals(self, parameters: list[ast.arg]) -> Iterator[tuple[str, str]]:
        """(inputs, where they come from): annotations, first layers, then common shapes."""
        needed = self._needed()
        wanted = [p for p in parameters if p.arg in needed] or parameters[:1]
        if not wanted:
            yield "()", "forward takes nothing"
            return
        annotated = [self._annotated(p) for p in wanted]
        layered = [self._layered(p) for p in wanted]
        if any(annotated):
            yield (
                _tuple(
                    [
                        a or b or self._plain(p) or self._of_shape(p, (BATCH, WIDTH))
                        for p, a, b in zip(wanted, annotated, layered, strict=True)
                    ]
                ),
                "shape annotations",
            )
        if any(layered):
            for rest in ((BATCH, WIDTH), (BATCH, LENGTH, WIDTH)):
                plain = [
                    text or self._plain(p) or self._of_shape(p, rest)
                    for p, text in zip(wanted, layered, strict=True)
                ]
                yield _tuple(plain), "the first layers"
                if all(layered):
                    break
            longer = [text and _ON_LAST.sub(rf"torch.randn(\1, {LENGTH}, \2)", text) for text in layered]
            if longer != layered and all(layered):
                yield _tuple([text for text in longer if text]), "the first layers"
        for shape in (
            (BATCH, WIDTH),
            (BATCH, LENGTH, WIDTH),
            (BATCH, 3, SIDE, SIDE),
            (BATCH, WIDTH, SIDE, SIDE),
            (BATCH, WIDTH, SIDE),
            (WIDTH,),
        ):
            yield (
                _tuple([self._layered(p) or self._plain(p) or self._of_shape(p, shape) for p in wanted]),
                "common shapes",
            )

    def keyword_only(self) -> str | None:
        """The inputs that the model asks for by keyword alone, as a dict's text; None where it asks for none."""
        arguments = self._forward.args
        words = [
            f"{each.arg!r}: {self._layered(each) or self._plain(each) or self._of_shape(each, (BATCH, LENGTH, WIDTH))}"
            for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is None
        ]
        return "{" + ", ".join(words) + "}" if words else None

    def _of_shape(self, parameter: ast.arg, shape: tuple[int, ...]) -> str:
        """A tensor of the shape, or of as many dimensions as the code says; whole numbers and truth values where it picks."""
        rank = rank_of(self._forward, parameter.arg)
        if rank is not None and rank != len(shape):
            shape = {4: (BATCH, 3, SIDE, SIDE)}.get(rank, (BATCH, *[LENGTH] * (rank - 2), WIDTH)[-rank:])
        kind = kind_of(self._forward, parameter)
        if kind == "float":
            return _randn(*shape)
        sizes = list(
            shape[: rank or max(1, len(shape) - 1)]
        )  # as a rule one dimension less than what it picks from
        return _tensor(sizes, {"index": "Int", "mask": "Bool"}[kind])

    def _needed(self) -> set[str]:
        arguments = [*self._forward.args.posonlyargs, *self._forward.args.args]
        bare = arguments[: len(arguments) - len(self._forward.args.defaults)]
        return {argument.arg for argument in bare} - {"self"}

    @staticmethod
    def _plain(parameter: ast.arg) -> str | None:
        """A Python number where the annotation asks for one."""
        said = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        return {"int": "2", "float": "0.5", "bool": "True", "str": "''"}.get(said)

    def _annotated(self, parameter: ast.arg) -> str | None:
        """jaxtyping (`Float[Tensor, "batch 3 h w"]`) or a docstring's `x: (B, C, H, W)` / `x (batch, 8)`."""
        if isinstance(parameter.annotation, ast.Subscript):
            said = ast.unparse(parameter.annotation)
            match = re.search(r"['\"]([^'\"]+)['\"]", said)
            kind = said.partition("[")[0].rpartition(".")[2]
            if match and kind in (
                "Float",
                "Int",
                "Bool",
                "Shaped",
                "Num",
                "Integer",
                "Inexact",
                "Float32",
                "Int64",
            ):
                return _tensor([self._size(word) for word in match[1].split() if word != "..."], kind)
        doc = ast.get_docstring(self._forward) or ""
        match = re.search(rf"\b{re.escape(parameter.arg)}\b[^\n(\[]{{0,60}}[(\[]([\w\s,*]+)[)\]]", doc)
        if match and "," in match[1]:
            return _tensor(
                [self._size(word.strip()) for word in match[1].split(",") if word.strip()],
                {"index": "Int", "mask": "Bool", "float": "Float"}[kind_of(self._forward, parameter)],
            )
        return None

    def _size(self, word: str) -> int:
        """One dim of a written shape: a number, a parameter of the constructor, or a size by its usual
        letter.
        """
        word = word.lstrip("*#").partition("=")[0] or word
        if word.isdigit():
            return int(word)
        try:
            known = self._number(parse_python(word, mode="eval").body)
        except SyntaxError:
            known = None
        if known is not None and known > 0:
            return known
        first = word.lower()
        if first in ("b", "n", "batch", "batch_size", "bs"):
            return BATCH
        if first in ("h", "w", "height", "width"):
            return SIDE
        return 3 if first in ("c", "channels", "channel") else LENGTH

    def _number(self, node: ast.expr | None, depth: int = 0) -> int | None:
        """An integer expression of `__init__`, with the proposed arguments; None where it is not one."""
        if node is None or depth > 20:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return int(node.value)
        if isinstance(node, ast.Name):
            return self._number(self._values.get(node.id) or self._names.constants.get(node.id), depth + 1)
        if isinstance(node, ast.Attribute):
            return self._attribute_number(node, depth)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = self._number(node.left, depth + 1), self._number(node.right, depth + 1)
            if left is None or right is None:
                return None
            try:
                return int(_ARITHMETIC[type(node.op)](left, right))  # type: ignore[operator]
            except (ArithmeticError, ValueError):
                return None
        if isinstance(node, ast.Call) and names_end(self._names.full(node.func), "int") and node.args:
            return self._number(node.args[0], depth + 1)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            value = self._values.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if isinstance(value, (ast.List, ast.Tuple)) and isinstance(node.slice.value, int):
                try:
                    return self._number(value.elts[node.slice.value], depth + 1)
                except IndexError:
                    return None
        return None

    def _attribute_number(self, node: ast.Attribute, depth: int) -> int | None:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._number(self._attributes.get(node.attr), depth + 1)
        if isinstance(node.value, ast.Name):
            made = self._values.get(node.value.id)
            if isinstance(made, ast.Call) and (cls := self._names.classes.get(self._names.full(made.func))):
                for field_ in cls.body:
                    target = field_.target if isinstance(field_, ast.AnnAssign) else None
                    if isinstance(target, ast.Name) and target.id == node.attr:
                        assert isinstance(field_, ast.AnnAssign)
                        return self._number(field_.value, depth + 1)
        return None

    def first_layers(self, parameters: list[str]) -> dict[str, str]:
        """The kind (`Linear`) of the torch.nn layer that takes each parameter first, where there is one."""
        found = {}
        for name in parameters:
            for layer in self._layers_on(name):
                while names_end(self._names.full(layer.func), "Sequential") and layer.args:
                    first = layer.args[0]
                    if not isinstance(first, ast.Call):
                        break
                    layer = first
                found[name] = self._names.full(layer.func).rpartition(".")[2]
                break
        return found

    def longest_sequence(self) -> int | None:
        """The length that the model has positions for."""
        return longest_sequence(self._values, self._attributes, self._number)

    def _layered(self, parameter: ast.arg) -> str | None:
        """The input that the first layer called on the parameter takes, following renames and plain
        operators.
        """
        for layer in self._layers_on(parameter.arg):
            shape = self._accepts(layer)
            if shape is not None:
                return self._ranked(shape, parameter.arg)
        return None

    def _ranked(self, text: str, name: str) -> str:
        """What a layer takes over the last dimension alone, with as many dimensions as the code says."""
        rank = rank_of(self._forward, name)
        match = _ON_LAST.fullmatch(text)
        if rank is None or rank < 3 or match is None:
            return text
        return _randn(BATCH, *[LENGTH] * (rank - 2), int(match[2]))

    def _layers_on(self, name: str) -> Iterator[ast.Call]:
        """The layers that are called on a parameter, in order, as they are made in `__init__`."""
        aliases = {name}
        for node in _in_order(self._forward):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in aliases:
                aliases |= {t.id for t in node.targets if isinstance(t, ast.Name)}
            if not isinstance(node, ast.Call) or not node.args:
                continue
            first = node.args[0]
            if not (isinstance(first, ast.Name) and first.id in aliases):
                continue
            layer = self._layer(node.func)
            if layer is not None:
                yield layer

    def _layer(self, function: ast.expr) -> ast.Call | None:
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "self"
        ):
            made = self._attributes.get(function.attr)
            return made if isinstance(made, ast.Call) else None
        return None

    def _accepts(self, layer: ast.Call, depth: int = 0) -> str | None:
        """The tensor that a torch.nn layer (or the first one of a Sequential, or of a class in this file)
        accepts.
        """
        kind = self._names.full(layer.func).rpartition(".")[2]
        if kind == "Sequential":
            for item in layer.args:
                if isinstance(item, ast.Call):
                    found = self._accepts(item, depth + 1)
                    if found is not None:
                        return found
            return None
        if kind in self._names.classes and depth < 4:
            return self._accepts_class(self._names.classes[kind], layer, depth)
        size = self._number(_pick(layer, 0, *SIZE_KEYWORDS))
        if size is None:
            return None
        if kind in ("Linear", "LazyLinear", "LayerNorm", "RMSNorm", "Bilinear"):
            return _randn(BATCH, size)
        if kind in ("Conv1d", "ConvTranspose1d"):
            return _randn(BATCH, size, SIDE)
        if kind in ("Conv2d", "ConvTranspose2d", "BatchNorm2d", "InstanceNorm2d"):
            return _randn(BATCH, size, SIDE, SIDE)
        if kind in ("Conv3d", "ConvTranspose3d", "BatchNorm3d"):
            return _randn(BATCH, size, 8, SIDE, SIDE)
        if kind == "BatchNorm1d":
            return _randn(BATCH, size)
        if kind == "GroupNorm":
            return _randn(BATCH, self._number(_pick(layer, 1, "num_channels")) or size, SIDE, SIDE)
        if kind in ("Embedding", "EmbeddingBag"):
            return f"torch.randint(0, {size}, ({BATCH}, {LENGTH}))"
        if kind in (
            "LSTM",
            "GRU",
            "RNN",
            "MultiheadAttention",
            "TransformerEncoderLayer",
            "TransformerDecoderLayer",
        ):
            return _randn(BATCH, LENGTH, size)
        if kind == "TransformerEncoder" and layer.args and isinstance(layer.args[0], ast.Call):
            return self._accepts(layer.args[0], depth + 1)
        return None

    def _accepts_class(self, cls: ast.ClassDef, call: ast.Call, depth: int) -> str | None:
        """What a submodule of this file accepts: its own first layer, with the arguments that it is given."""
        forward = self._names.method(cls, "forward")
        init = self._names.method(cls, "__init__")
        if forward is None:
            return None
        values: dict[str, ast.expr] = {}
        if init is not None:
            arguments = [a.arg for a in (*init.args.posonlyargs, *init.args.args)][1:]
            defaults = init.args.defaults
            values.update(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
            values.update({k: _fixed(self, v) for k, v in zip(arguments, call.args, strict=False)})
            values.update({k.arg: _fixed(self, k.value) for k in call.keywords if k.arg})
        inner = LayerReader(cls, forward, self._names, Constructor("", values))
        parameters = [a for a in (*forward.args.posonlyargs, *forward.args.args) if a.arg != "self"]
        return inner._layered(parameters[0]) if parameters and depth < 4 else None


SIZE_KEYWORDS = (
    "in_features",
    "in_channels",
    "num_embeddings",
    "normalized_shape",
    "num_features",
    "input_size",
    "embed_dim",
    "d_model",
)


def names_end(full: str, name: str) -> bool:
    return full == name or full.endswith("." + name)


def _fixed(reader: LayerReader, node: ast.expr) -> ast.expr:
    """An argument as a number where the outer class knows it: the inner class has other names."""
    number = reader._number(node)
    return ast.Constant(number) if number is not None else node


def _pick(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[position] if len(call.args) > position else None


def _in_order(function: ast.FunctionDef) -> list[ast.AST]:
    """The nodes of a function in the order of their text, inner calls before outer ones."""
    nodes = [node for node in ast.walk(function) if hasattr(node, "lineno")]
    return sorted(nodes, key=lambda n: (n.lineno, getattr(n, "end_col_offset", 0)))


def _tensor(sizes: list[int], kind: str) -> str:
    shape = ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "")
    if kind.startswith("Int"):
        return f"torch.randint(0, 2, ({shape}))"
    if kind == "Bool":
        return f"torch.rand({shape}) > 0.5"
    return f"torch.randn({', '.join(map(str, sizes))})"


def _randn(*sizes: int) -> str:
    return f"torch.randn({', '.join(map(str, sizes))})"


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)},)"
