"""Inputs from inference: what the first layers that touch each parameter accept, and what annotations say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from exportlens.export.constructors import BATCH, LENGTH, SIDE, WIDTH, Constructor
from exportlens.export.dimensions import longest_sequence, shape_of
from exportlens.export.drawn import ON_CHANNELS, ON_LAST, of_rank, randn, tensor, tuple_of, with_steps
from exportlens.export.expressions import Expressions, names_end
from exportlens.export.flows import DEEPEST, Parts, Place, Taker, in_order, takers
from exportlens.export.request import ANNOTATIONS, COMMON_SHAPES, FIRST_LAYERS
from exportlens.export.uses import counts, is_per_edge, kind_of, pattern_rank, rank_of, usual
from exportlens.source.parsing import parse_python

if TYPE_CHECKING:
    from exportlens.export.models import FileNames


class LayerReader:
    """Reads a class's `__init__` for its layers and its `forward` for which of them meets which parameter
    first.
    """

    def __init__(
        self, cls: ast.ClassDef, forward: ast.FunctionDef, names: FileNames, made: Constructor
    ) -> None:
        self._names = names
        self._forward = forward
        self._parts = Parts(cls, names, made.values)
        self._known = Expressions(self._parts, names)
        self._values = self._parts.values
        self._attributes = self._parts.attributes
        self._taken: dict[str, list[Taker | Place]] = {}
        self._inside: dict[int, tuple[ast.Call, LayerReader | None]] = {}

    def proposals(self, parameters: list[ast.arg]) -> Iterator[tuple[str, str]]:
        """(inputs, where they come from): annotations, first layers, then common shapes."""
        needed = self._needed()
        by_keyword = {argument.arg for argument in self._forward.args.kwonlyargs}
        wanted = [p for p in parameters if p.arg in needed]
        wanted = wanted or [p for p in parameters if p.arg not in by_keyword][:1]
        starred = self._starred()
        if starred:
            yield starred, FIRST_LAYERS
        if not wanted:
            if not starred:
                keyed = self._forward.args.kwarg is not None or self._forward.args.kwonlyargs
                yield "()", FIRST_LAYERS if keyed else "forward takes nothing"
            return
        annotated = [self._annotated(p) for p in wanted]
        layered = [self._keyed(p) or self._unpacked(p) or self._layered(p) for p in wanted]

        def of(
            known: list[str | None], shape: tuple[int, ...], like: str | None = None, *, named: bool = True
        ) -> str:
            texts = [
                text
                or self._plain(p)
                or (self._usual(p) if named else None)
                or self._alike(p, like)
                or self._of_shape(p, shape, self.kind(p) if named else "float")
                for p, text in zip(wanted, known, strict=True)
            ]
            return tuple_of([self._with_edges(p, t) for p, t in zip(wanted, texts, strict=True)])

        if any(annotated):
            both = [a or b for a, b in zip(annotated, layered, strict=True)]
            yield of(both, (BATCH, WIDTH)), ANNOTATIONS
        if any(layered):
            longer = [with_steps(text) if text else text for text in layered]
            sequences = any(text and ON_CHANNELS.fullmatch(text) for text in layered)
            tries = [longer, layered] if sequences else [layered, longer]
            for known in tries if longer != layered else tries[:1]:
                for rest in ((BATCH, WIDTH), (BATCH, LENGTH, WIDTH)):
                    yield of(known, rest), FIRST_LAYERS
                    if all(known):
                        break
            like = next((text for text in layered if text and text.startswith("torch.randn")), None)
            if like is not None and not all(layered):
                yield of(layered, (BATCH, WIDTH), like), FIRST_LAYERS
        # A name may mislead: `tokens` are numbers of words, and now and then their embeddings.
        for named in (True, False):
            for shape in (
                (BATCH, WIDTH),
                (BATCH, LENGTH, WIDTH),
                (BATCH, 3, SIDE, SIDE),
                (BATCH, WIDTH, SIDE, SIDE),
                (BATCH, WIDTH, SIDE),
                (WIDTH,),
            ):
                yield of(layered, shape, named=named), COMMON_SHAPES

    def _usual(self, parameter: ast.arg) -> str | None:
        """What inputs of this name are as a rule, where the code does not say otherwise."""
        text = usual(parameter.arg)
        known = shape_of(parse_python(text, mode="eval").body) if text is not None else None
        rank = self.rank(parameter.arg) if known is not None else None
        return text if rank is None or known is None or rank == len(known[0]) else None

    def _with_edges(self, parameter: ast.arg, text: str) -> str:
        """As many rows as the edges that come with them, where each is an edge's."""
        edges = any("edge_index" in argument.arg for argument in self._forward.args.args)
        if not edges or not is_per_edge(parameter.arg):
            return text
        return re.sub(rf"^(torch\.\w+\((?:0, \d+, \()?){BATCH}\b", rf"\g<1>{LENGTH}", text)

    def _alike(self, parameter: ast.arg, like: str | None) -> str | None:
        return like if self.rank(parameter.arg) is None and self.kind(parameter) == "float" else None

    def _keyed(self, parameter: ast.arg) -> str | None:
        """A dict with what forward takes out of the parameter by string; None where it takes out nothing so."""
        keys = list(
            dict.fromkeys(
                node.slice.value
                for node in in_order(self._forward)
                if isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id == parameter.arg
                and isinstance(node.ctx, ast.Load)
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, str)
            )
        )
        items = [
            self.accepted(f"{parameter.arg}[{key!r}]", 0) or usual(key) or randn(BATCH, WIDTH) for key in keys
        ]
        inside = ", ".join(f"{key!r}: {item}" for key, item in zip(keys, items, strict=True))
        return f"{{{inside}}}" if keys else None

    def _unpacked(self, parameter: ast.arg) -> str | None:
        """A tuple with as much as forward takes the parameter itself apart into; None where it does not."""
        names = next(
            (
                node.targets[0].elts
                for node in in_order(self._forward)
                if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], (ast.Tuple, ast.List))
                and isinstance(node.value, ast.Name)
                and node.value.id == parameter.arg
            ),
            [],
        )
        # rows of a tensor, too, are taken apart: those of the edges of a graph
        return self._parts_of(names) if names and usual(parameter.arg) is None else None

    def _parts_of(self, targets: list[ast.expr]) -> str | None:
        """A tuple for `x, (h, c) = inputs`; None where something else than names is bound."""
        items = []
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                item = self._parts_of(target.elts)
            elif isinstance(target, ast.Name):
                given = ast.arg(target.id)
                item = (
                    self.accepted(target.id, 0)
                    or usual(target.id)
                    or self._of_shape(given, (BATCH, WIDTH), self.kind(given))
                )
            else:
                item = None
            if item is None:
                return None
            items.append(item)
        return tuple_of(items)

    def _starred(self) -> str | None:
        """Inputs for `*args`, as many as forward takes out by number; None where it takes out none."""
        given = self._forward.args.vararg
        if given is None or len(self._forward.args.args) > 1:
            return None
        places = [
            node.slice.value
            for node in in_order(self._forward)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == given.arg
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, int)
        ]
        if not places or min(places) < 0:
            return None
        return tuple_of(
            [
                self.accepted(f"{given.arg}[{place}]", 0) or randn(BATCH, WIDTH)
                for place in range(max(places) + 1)
            ]
        )

    def keyword_only(self) -> str | None:
        """The inputs that the model asks for by keyword alone, as a dict's text; None where it asks for none."""
        arguments = self._forward.args
        words = [
            f"{each.arg!r}: {self._layered(each) or self._plain(each) or self._of_shape(each, (BATCH, LENGTH, WIDTH), self.kind(each))}"
            for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is None
        ]
        keyed = self._keyed(arguments.kwarg) if arguments.kwarg is not None else None
        if keyed is not None:
            words.append(keyed[1:-1])
        return "{" + ", ".join(words) + "}" if words else None

    def _of_shape(self, parameter: ast.arg, shape: tuple[int, ...], kind: str) -> str:
        """A tensor of the shape, or of as many dimensions as the code says; whole numbers and truth values where it picks (`kind`)."""
        rank = self.rank(parameter.arg)
        if rank is not None and rank != len(shape):
            shape = {4: (BATCH, 3, SIDE, SIDE)}.get(rank, (BATCH, *[LENGTH] * (rank - 2), WIDTH)[-rank:])
        if kind == "float":
            return randn(*shape)
        sizes = list(
            shape[: rank or max(1, len(shape) - 1)]
        )  # as a rule one dimension less than what it picks from
        return tensor(sizes, {"index": "Int", "mask": "Bool"}[kind])

    def _needed(self) -> set[str]:
        arguments = [*self._forward.args.posonlyargs, *self._forward.args.args]
        bare = arguments[: len(arguments) - len(self._forward.args.defaults)]
        return {argument.arg for argument in bare} - {"self"}

    def _plain(self, parameter: ast.arg) -> str | None:
        """A Python number where the annotation, or what is done with the parameter, asks for one."""
        said = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        if not said and counts(self._forward, parameter.arg):
            said = "int"
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
                return tensor([self._size(word) for word in match[1].split() if word != "..."], kind)
        doc = ast.get_docstring(self._forward) or ""
        match = re.search(rf"\b{re.escape(parameter.arg)}\b[^\n(\[]{{0,60}}[(\[]([\w\s,*]+)[)\]]", doc)
        if match and "," in match[1]:
            return tensor(
                [self._size(word.strip()) for word in match[1].split(",") if word.strip()],
                {"index": "Int", "mask": "Bool", "float": "Float"}[self.kind(parameter)],
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
            known = self._known.number(parse_python(word, mode="eval").body)
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

    def first_layers(self, parameters: list[str]) -> dict[str, str]:
        """The kind (`Linear`) of the torch.nn layer that takes each parameter first, where there is one."""
        found = {}
        for name in parameters:
            for taker in self._takers(name):
                if isinstance(taker, Taker):
                    found[name] = self._names.full(taker.layer.func).rpartition(".")[2]
                    break
        return found

    def _takers(self, name: str) -> list[Taker | Place]:
        if name not in self._taken:
            self._taken[name] = list(takers(self._forward, name, self._parts, self._names))
        return self._taken[name]

    def longest_sequence(self) -> int | None:
        """The length that the model has positions for."""
        return longest_sequence(self._values, self._attributes, self._known.number)

    def _layered(self, parameter: ast.arg) -> str | None:
        """The input that the first layer that takes the parameter accepts."""
        return self.accepted(parameter.arg, 0)

    def accepted(self, name: str, depth: int) -> str | None:
        """The same for `x`, or for `batch['x']` of a parameter that is a dict."""
        for taker in self._takers(name):
            shape = self._accepts(taker.layer, depth, taker.position) if isinstance(taker, Taker) else None
            if shape is not None:
                match = ON_CHANNELS.fullmatch(shape) if isinstance(taker, Taker) and taker.swapped else None
                shape = randn(int(match[1]), LENGTH, int(match[2])) if match else shape
                return self._ranked(shape, name)
        return None

    def rank(self, name: str, depth: int = 0) -> int | None:
        """How many dimensions a parameter has, by what is done with it here and in what it is given to."""
        for taker in self._takers(name):
            if isinstance(taker, Place):
                found = rank_of(taker.function, taker.name)
            elif taker.swapped:
                found = 3
            else:
                inner = self._inner(taker.layer)
                place = inner.parameter(taker.position) if inner is not None else None
                found = (
                    inner.rank(place, depth + 1) if inner is not None and place and depth < DEEPEST else None
                )
            if found is not None:
                return found
        return None

    def kind(self, parameter: ast.arg, depth: int = 0) -> str:
        """`kind_of` the parameter, by what is done with it here and in what it is given to."""
        for taker in self._takers(parameter.arg):
            if isinstance(taker, Place):
                annotation = parameter.annotation if taker.function is self._forward else None
                found = kind_of(taker.function, ast.arg(taker.name, annotation))
            else:
                inner = self._inner(taker.layer)
                place = inner.parameter(taker.position) if inner is not None else None
                known = inner is not None and place is not None and depth < DEEPEST
                found = inner.kind(ast.arg(place), depth + 1) if known and inner and place else "float"
            if found != "float":
                return found
        return "float"

    def parameter(self, position: int) -> str | None:
        """The name of forward's parameter at this place."""
        arguments = [a.arg for a in (*self._forward.args.posonlyargs, *self._forward.args.args)][1:]
        return arguments[position] if position < len(arguments) else None

    def _inner(self, layer: ast.Call) -> LayerReader | None:
        """The reader of a submodule of this file, with the arguments that it is given."""
        if id(layer) not in self._inside:
            self._inside[id(layer)] = layer, self._reader(layer)  # the layer is kept, and so is its id
        return self._inside[id(layer)][1]

    def _reader(self, layer: ast.Call) -> LayerReader | None:
        cls = self._names.classes.get(self._names.full(layer.func))
        forward = self._names.method(cls, "forward") if cls is not None else None
        if cls is None or forward is None:
            return None
        values: dict[str, ast.expr] = {}
        init = self._names.method(cls, "__init__")
        if init is not None:
            arguments = [a.arg for a in (*init.args.posonlyargs, *init.args.args)][1:]
            defaults = init.args.defaults
            values.update(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
            only = zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
            values.update({k.arg: v for k, v in only if v is not None})
            values.update({k: _fixed(self, v) for k, v in zip(arguments, layer.args, strict=False)})
            values.update({k.arg: _fixed(self, k.value) for k in layer.keywords if k.arg})
        return LayerReader(cls, forward, self._names, Constructor("", values))

    def _ranked(self, text: str, name: str) -> str:
        """What a layer takes over the last dimension alone, with as many dimensions as the code says."""
        match = ON_LAST.fullmatch(text)
        rank = self.rank(name) if match is not None else None
        if rank is None or rank < 3 or match is None:
            return text
        return randn(BATCH, *[LENGTH] * (rank - 2), int(match[2]))

    def _kind(self, layer: ast.Call) -> str:
        """The name of the layer's class: `LSTM` for `nn.LSTM(...)` and for `getattr(nn, "LSTM")(...)`."""
        called = layer.func
        if isinstance(called, ast.Call) and names_end(self._names.full(called.func), "getattr"):
            name = self._known.resolved(called.args[1]) if len(called.args) > 1 else None
            return str(name.value) if isinstance(name, ast.Constant) else ""
        return self._names.full(called).rpartition(".")[2]

    def _state(self, layer: ast.Call, kind: str) -> str | None:
        """What a recurrent layer takes as its second argument: one state, or two of an LSTM."""
        size = self._known.number(_pick(layer, 1, "hidden_size"))
        if size is None:
            return None
        given = {word.arg: self._known.resolved(word.value) for word in layer.keywords}

        def on(name: str) -> bool:
            value = given.get(name)
            return isinstance(value, ast.Constant) and bool(value.value)

        if kind.endswith("Cell"):
            state = randn(BATCH, size)
        else:  # a state for each layer and direction; what comes first in the input is the batch only if it is said to be
            layers = self._known.number(_pick(layer, 2, "num_layers")) or 1
            rows = BATCH if on("batch_first") else LENGTH
            state = randn(layers * (2 if on("bidirectional") else 1), rows, size)
        return f"({state}, {state})" if kind.startswith("LSTM") else state

    def _accepts(self, layer: ast.Call, depth: int = 0, position: int = 0) -> str | None:
        """The tensor that a torch.nn layer (or the first one of a Sequential, or of a class in this file)
        accepts.
        """
        kind = self._kind(layer)
        if kind in self._names.classes:
            inner = self._inner(layer) if depth < DEEPEST else None
            place = inner.parameter(position) if inner is not None else None
            return inner.accepted(place, depth + 1) if inner is not None and place else None
        if position == 1 and kind in _RECURRENT:
            return self._state(layer, kind)
        if position > 0 and kind not in (
            "MultiheadAttention",
            "Bilinear",
            "Transformer",
            "TransformerDecoderLayer",
        ):
            return None
        if kind in ("TransformerEncoder", "TransformerDecoder"):
            part = self._parts.made(_pick(layer, 0, "encoder_layer", "decoder_layer"))
            return self._accepts(part, depth + 1) if part is not None else None
        if kind == "Rearrange":
            return of_rank(pattern_rank(layer, 0))
        size = self._known.number(_pick(layer, 0, *SIZE_KEYWORDS))
        if size is None:
            return None
        if kind in (
            "Linear",
            "LazyLinear",
            "LayerNorm",
            "RMSNorm",
            "Bilinear",
            "LSTMCell",
            "GRUCell",
            "RNNCell",
        ):
            return randn(BATCH, size)
        if kind in ("Conv1d", "ConvTranspose1d"):
            return randn(BATCH, size, SIDE)
        if kind in ("Conv2d", "ConvTranspose2d", "BatchNorm2d", "InstanceNorm2d"):
            return randn(BATCH, size, SIDE, SIDE)
        if kind in ("Conv3d", "ConvTranspose3d", "BatchNorm3d"):
            return randn(BATCH, size, 8, SIDE, SIDE)
        if kind == "BatchNorm1d":
            return randn(BATCH, size)
        if kind == "GroupNorm":
            return randn(BATCH, self._known.number(_pick(layer, 1, "num_channels")) or size, SIDE, SIDE)
        if kind in ("Embedding", "EmbeddingBag"):
            return f"torch.randint(0, {size}, ({BATCH}, {LENGTH}))"
        if kind in (
            "LSTM",
            "GRU",
            "RNN",
            "MultiheadAttention",
            "Transformer",
            "TransformerEncoderLayer",
            "TransformerDecoderLayer",
        ):
            return randn(BATCH, LENGTH, size)
        return None


_RECURRENT = ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell")

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


def _fixed(reader: LayerReader, node: ast.expr) -> ast.expr:
    """An argument as a number where the outer class knows it: the inner class has other names."""
    number = reader._known.number(node)
    return ast.Constant(number) if number is not None else reader._known.resolved(node) or node


def _pick(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[position] if len(call.args) > position else None
