"""Which dims of a model's inputs to propose as dynamic: the batch and the length of sequences, with their ranges."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exportlens.export.uses import is_per_edge
from exportlens.source.parsing import parse_python

LARGEST_BATCH = 64
LARGEST_SEQUENCE = 128
"""Upper ends that are proposed where the model says nothing: enough to tell, and small enough to run."""
SHORTEST_FOR_KERNELS = 16
"""Lower end where a convolution slides over the sequence: shorter than its kernel it has no output."""
SEQUENCE_LAYERS = frozenset(
    {
        "MultiheadAttention",
        "Transformer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "Linear",
        "LayerNorm",
        "RMSNorm",
    }
)
"""Layers that take (batch, length, features) and any length; recurrent ones fix it while tracing (torch 2.13)."""
LAST_DIM_LAYERS = frozenset({"Conv1d", "ConvTranspose1d", "BatchNorm1d", "AvgPool1d", "MaxPool1d"})
"""Layers that take (batch, channels, length)."""
_LENGTH_NAME = re.compile(
    r"^(?:max_?(?:seq\w*|len\w*|pos\w*|tokens|source_pos\w*)|block_size|context(?:_\w+)?|n_positions|n_ctx|seq_?len\w*)$"
)
_PAIRS = re.compile(r"edge\w*_index$|^edges$")
"""Names of inputs whose first dimension is always 2: where each edge of a graph begins, and where it ends."""
_POSITION_NAME = re.compile(r"pos")
_BY_SIZES = frozenset({"randn", "rand", "zeros", "ones", "empty"})
_BY_SHAPE = frozenset({"randint", "full", "normal"})
_KEEP_SHAPE = frozenset(
    {"float", "double", "half", "long", "int", "to", "bool", "requires_grad_", "clone", "abs"}
)


@dataclass(frozen=True, slots=True)
class Example:
    """What is known of one example input: its shape, whether it holds integers, and the layer that takes it first."""

    name: str
    shape: tuple[int, ...] | None
    integers: bool = False
    layer: str | None = None
    parts: tuple[Example, ...] = ()
    """The inputs inside, where it is a dict."""

    @property
    def is_square(self) -> bool:
        """Whether it is a matrix over the rows of another input, as a graph's adjacency is."""
        return (
            self.shape is not None
            and len(self.shape) == 2
            and self.shape[0] == self.shape[1]
            and not self.integers
        )

    @property
    def sequence_dim(self) -> int | None:
        """The dim that is the length of a sequence; None where nothing says so."""
        if self.shape is None:
            return None
        if self.integers and len(self.shape) == 2:
            return 1
        if len(self.shape) == 3 and self.layer in SEQUENCE_LAYERS:
            return 1
        return 2 if len(self.shape) == 3 and self.layer in LAST_DIM_LAYERS else None


def proposed_shapes(examples: list[Example], longest: int | None) -> str | None:
    """`dynamic_shapes` for these inputs as an expression; None where no dim suggests itself.

    Dims of one size and one kind share a Dim: a model that adds two inputs needs them to be equal. A size of 1 is left
    alone, since torch takes it as fixed. `longest` is the length that the model has positions for.
    """
    names: dict[tuple[str, int], str] = {}
    everything = [part for example in examples for part in (example, *example.parts)]
    fixed = {example.shape[0] for example in everything if example.shape is not None and example.is_square}
    text = _entries(examples, longest, names, fixed, _edges(everything))
    return text if names else None


def _edges(examples: list[Example]) -> int | None:
    """How many edges a graph among the inputs has."""
    return next(
        (e.shape[1] for e in examples if _PAIRS.search(e.name) and e.shape is not None and len(e.shape) == 2),
        None,
    )


def _entries(
    examples: Sequence[Example],
    longest: int | None,
    names: dict[tuple[str, int], str],
    fixed: set[int],
    edges: int | None,
) -> str:
    """The dict of dims by input; `names` collects the Dims, and batches of a size in `fixed` are left alone."""
    entries = []
    for example in examples:
        dims: dict[int, str] = {}
        shape = example.shape
        if (
            shape is not None
            and shape[0] >= 2
            and shape[0] not in fixed
            and not _PAIRS.search(example.name)
            and (len(shape) >= 2 or example.integers)
        ):
            dims[0] = _dim("batch", shape[0], names, 1, LARGEST_BATCH)
        of_edges = 1 if _PAIRS.search(example.name) else 0 if is_per_edge(example.name) else None
        at = example.sequence_dim
        if edges is not None and shape is not None and of_edges is not None and len(shape) > of_edges:
            if shape[of_edges] == edges and edges >= 2:
                dims = {of_edges: _dim("edges", edges, names, 2, LARGEST_SEQUENCE)}
        elif at is not None and shape is not None and shape[at] >= 2:
            size = shape[at]
            high = longest if longest is not None and longest > size else max(LARGEST_SEQUENCE, 4 * size)
            low = 2 if at == 1 else min(size, SHORTEST_FOR_KERNELS)
            dims[at] = _dim("sequence", size, names, low, size if longest == size else high)
        inside = ", ".join(f"{dim}: {text}" for dim, text in dims.items())
        whole = (
            _entries(example.parts, longest, names, fixed, edges)
            if example.parts
            else f"{{{inside}}}"
            if dims
            else "None"
        )
        entries.append(f"{example.name!r}: {whole}")
    return "{" + ", ".join(entries) + "}"


def _dim(kind: str, size: int, names: dict[tuple[str, int], str], low: int, high: int) -> str:
    """One Dim; another size of the same kind gets another name."""
    if (kind, size) not in names:
        count = sum(known == kind for known, _ in names)
        names[kind, size] = f"{kind}{count + 1}" if count else kind
    return f"Dim({names[kind, size]!r}, min={low}, max={max(high, size)})"


def shape_of(node: ast.expr) -> tuple[tuple[int, ...], bool] | None:
    """Shape of a tensor expression such as `torch.randn(2, 8)`, and whether it holds integers; None where it does not
    say.
    """
    while isinstance(node, (ast.BinOp, ast.Call)):
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_SHAPE:
            inner = node.func.value
            if isinstance(inner, ast.Name):
                break  # torch.abs(x) and the like: not a constructor
            node = inner
        else:
            break
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    kind = node.func.attr
    if kind in _BY_SIZES:
        given: list[ast.expr] = list(node.args)
        if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
            given = given[0].elts
    elif kind in _BY_SHAPE:
        places = [*node.args, *(k.value for k in node.keywords if k.arg == "size")]
        given = next((place.elts for place in places if isinstance(place, (ast.Tuple, ast.List))), [])
    else:
        return None
    sizes = [n.value for n in given if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    if not sizes or len(sizes) != len(given):
        return None
    dtype = next((ast.unparse(k.value) for k in node.keywords if k.arg == "dtype"), "")
    filled = (
        kind == "full"
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and type(node.args[1].value) is int
    )
    whole = filled or kind == "randint" or re.search(r"\b(?:long|int\d*)$", dtype) is not None
    return tuple(sizes), whole


def examples_of(
    inputs: str | None, kwargs: str | None, parameters: list[str], layers: dict[str, str]
) -> list[Example] | None:
    """The example inputs by parameter, from their expressions; None where these say nothing of any shape.

    `layers` has the kind of the layer that takes a parameter first.
    """
    given: list[tuple[str, ast.expr]] = []
    try:
        positional = parse_python(inputs, mode="eval").body if inputs else None
        named = parse_python(kwargs, mode="eval").body if kwargs else None
    except SyntaxError:
        return None
    if isinstance(positional, ast.Dict):
        named, positional = positional, None
    if isinstance(positional, (ast.Tuple, ast.List)):
        if len(positional.elts) > len(parameters):
            return None
        given += zip(parameters, positional.elts, strict=False)
    elif positional is not None:
        return None
    if isinstance(named, ast.Dict):
        for key, value in zip(named.keys, named.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                return None
            given.append((key.value, value))
    found = [_example(name, node, layers.get(name)) for name, node in given]
    return found if any(each.shape for example in found for each in (example, *example.parts)) else None


def _example(name: str, node: ast.expr, layer: str | None) -> Example:
    said = shape_of(node)
    shape, whole = said if said is not None else (None, False)
    parts: tuple[Example, ...] = ()
    if isinstance(node, ast.Dict):
        pairs = [
            (k.value, v) for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)
        ]
        parts = tuple(_example(key, value, None) for key, value in pairs if isinstance(key, str))
        parts = parts if len(parts) == len(node.keys) else ()
    return Example(name, shape, whole, layer, parts)


def longest_sequence(
    arguments: dict[str, ast.expr],
    attributes: dict[str, ast.expr],
    number: Callable[[ast.expr], int | None],
) -> int | None:
    """The length that a model has positions for, by the names of its constructor's arguments and of its layers.

    `attributes` has what `__init__` gives to `self`; `number` evaluates an expression of `__init__`.
    """
    sizes = [number(value) for name, value in arguments.items() if _LENGTH_NAME.match(name.lower())]
    for name, node in attributes.items():
        if not _POSITION_NAME.search(name.lower()):
            continue
        for call in ast.walk(node):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr == "Embedding" and call.args:
                sizes.append(number(call.args[0]))
            elif call.func.attr in _BY_SIZES and len(call.args) == 3 and number(call.args[0]) == 1:
                sizes.append(number(call.args[1]))
    return min((size for size in sizes if size is not None and size > 1), default=None)
