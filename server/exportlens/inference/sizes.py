"""Sizes of tensors as numbers, in a run that knows those of its inputs: an example's.

A tensor's `dims` are followed only while all of them are constants; where one is not, nothing is known of any. Of what the record
of an operator says, this adds how its result's sizes come from those of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from exportlens.inference.values import Const, Instance, Slice, Tensor, Value
from exportlens.inference.values import Sequence as Items

Sizes = tuple[int, ...]
Bound = Mapping[str, Value | tuple[Value, ...]]

# What gives a tensor of the sizes of its first argument.
_ALIKE = frozenset(
    {
        "clone", "detach", "contiguous", "to", "float", "double", "half", "long", "int", "bool", "type", "type_as", "cpu", "cuda",
        "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "softmax", "log_softmax", "cumsum", "cumprod",
        "flip", "roll", "sort", "argsort", "normalize", "dropout", "layer_norm", "batch_norm", "nan_to_num", "requires_grad_", "tril",
        "triu", "masked_fill", "scatter", "relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "logsigmoid", "bernoulli",
        "sigmoid", "tanh", "mish", "relu6", "hardtanh", "hardsigmoid", "hardswish", "selu", "celu", "dropout1d", "dropout2d",
    }
)  # fmt: skip
_MADE = frozenset(
    {
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "randint",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
    }
)
_REDUCING = frozenset(
    {
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "argmax",
        "argmin",
        "std",
        "var",
        "prod",
        "any",
        "all",
        "norm",
        "median",
        "logsumexp",
    }
)
_LAYERS_ALIKE = frozenset(
    {
        "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "ELU", "LeakyReLU", "Softplus", "Hardtanh", "Hardswish",
        "Mish", "PReLU", "Identity", "Dropout", "Dropout1d", "Dropout2d", "LayerNorm", "GroupNorm", "RMSNorm", "BatchNorm1d",
        "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d",
    }
)  # fmt: skip


def sizes_of(value: object) -> Sizes | None:
    """The sizes of a tensor, where all of them are known as numbers."""
    if not isinstance(value, Tensor):
        return None
    if value.rank == 0:
        return ()
    if value.dims is None:
        return None
    known = [each.value for each in value.dims if isinstance(each, Const) and type(each.value) is int]
    return tuple(known) if len(known) == len(value.dims) else None


def of_sizes(value: Tensor, sizes: Sizes | None) -> Tensor:
    """`value` with `sizes`, where these agree with its number of dimensions."""
    if sizes is None or value.unbacked or value.rank not in (None, len(sizes)):
        return value
    return replace(value, rank=len(sizes), dims=tuple(map(Const, sizes)))


def broadcast_sizes(all_sizes: Sequence[Sizes]) -> Sizes | None:
    """The sizes that tensors of `all_sizes` have together; None where they do not go together."""
    found: list[int] = []
    for at in range(1, max(map(len, all_sizes), default=0) + 1):
        along = {each[-at] for each in all_sizes if at <= len(each)} - {1}
        if len(along) > 1:
            return None
        found.insert(0, along.pop() if along else 1)
    return tuple(found)


def after_operator(left: Value, right: Value, made: Tensor, *, matmul: bool) -> Tensor:
    """`made`, what arithmetic makes of `left` and `right`, with its sizes."""
    operands = [each for each in (left, right) if isinstance(each, Tensor)]
    known = [sizes for each in operands if (sizes := sizes_of(each)) is not None]
    if len(known) != len(operands):
        return made
    if matmul:
        return of_sizes(made, _product(*known) if len(known) == 2 else None)
    return of_sizes(made, broadcast_sizes(known))


def _product(left: Sizes, right: Sizes) -> Sizes | None:
    if not left or not right:
        return None
    batch = broadcast_sizes([left[:-2], right[:-2]])
    if batch is None:
        return None
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def after_call(
    name: str, pointwise: bool, tensors: Sequence[Tensor], bound: Bound, made: Value, new: bool
) -> Value:
    """`made`, the result of the operator `name`, with its sizes as far as they are known; those of `new` tensors, too."""
    if isinstance(made, Items) and made.kind == "tuple" and made.items:
        made.items[:] = [
            after_call(name, False, tensors, bound, each, new)
            if name.rpartition(".")[2] in _REDUCING | _ALIKE
            else each
            for each in made.items
        ]
        return made
    if isinstance(made, Items) and made.items is None and isinstance(made.element, Tensor) and tensors:
        sizes = sizes_of(tensors[0])
        if sizes is not None:
            made.element = of_sizes(made.element, _piece(name.rpartition(".")[2], sizes, bound))
        return made
    if not isinstance(made, Tensor) or made.dims is not None:
        return made
    short = name.rpartition(".")[2]
    if short in _MADE:
        return of_sizes(made, _given(bound, "size")) if new else made
    if short in _COUNTED:
        return of_sizes(made, _COUNTED[short](bound)) if new else made
    known = [sizes for each in tensors if (sizes := sizes_of(each)) is not None]
    if not known or len(known) != len(tensors):
        return made
    if short in _ALIKE:
        return of_sizes(made, known[0])
    if pointwise or short == "where":
        return of_sizes(made, broadcast_sizes(known))
    if short in _REDUCING:
        return of_sizes(made, _reduced(known[0], bound))
    change = _CHANGES.get(short)
    return made if change is None else of_sizes(made, change(known, bound))


def _piece(short: str, sizes: Sizes, bound: Bound) -> Sizes | None:
    """The sizes of each of the pieces into which a tensor of `sizes` is cut, where all are alike."""
    dim = _number(bound, "dim") if "dim" in bound else 0
    if dim is None or not -len(sizes) <= dim < len(sizes):
        return None
    at = dim % len(sizes)
    if short == "unbind":
        return (*sizes[:at], *sizes[at + 1 :])
    count = _number(bound, "chunks") if short == "chunk" else None
    length = _number(bound, "split_size", "split_size_or_sections") if short == "split" else None
    if count and sizes[at] % count == 0:
        length = sizes[at] // count
    return (*sizes[:at], length, *sizes[at + 1 :]) if length and sizes[at] % length == 0 else None


def _number(bound: Bound, *names: str) -> int | None:
    for name in names:
        value = bound.get(name)
        if isinstance(value, Const) and type(value.value) is int:
            return value.value
    return None


def _given(bound: Bound, *names: str) -> Sizes | None:
    """The numbers that are given one by one or as a tuple."""
    given = next((bound[name] for name in names if name in bound), None)
    values: list[Value] = list(given) if isinstance(given, tuple) else [given] if given is not None else []
    if len(values) == 1 and isinstance(values[0], Items):
        values = values[0].items or []
    known = [each.value for each in values if isinstance(each, Const) and type(each.value) is int]
    return tuple(known) if values and len(known) == len(values) else None


def _listed_sizes(value: object) -> Sizes | None:
    """The sizes of the tensor that is made of nested lists of numbers."""
    if not isinstance(value, Items):
        return () if isinstance(value, Const) else None
    inside = [_listed_sizes(each) for each in value.items or []]
    return (len(inside), *inside[0]) if inside and inside[0] is not None and len(set(inside)) == 1 else None


def _square(bound: Bound) -> Sizes | None:
    rows = _number(bound, "n")
    columns = _number(bound, "m") if "m" in bound else rows
    return None if rows is None or columns is None else (rows, columns)


def _range(bound: Bound) -> Sizes | None:
    ends = [
        _number(bound, name) if name in bound else start
        for name, start in (("start", 0), ("end", None), ("step", 1))
    ]
    if None in ends or not ends[2]:
        return None
    return (len(range(*(each or 0 for each in ends))),)


_COUNTED: Mapping[str, Callable[[Bound], Sizes | None]] = {
    "eye": _square,
    "randperm": lambda bound: None if (count := _number(bound, "n")) is None else (count,),
    "arange": _range,
    "linspace": lambda bound: None if (steps := _number(bound, "steps")) is None else (steps,),
    "tensor": lambda bound: _listed_sizes(bound.get("data")),
    "as_tensor": lambda bound: _sizes_of_data(bound.get("data")),
    "asarray": lambda bound: _sizes_of_data(bound.get("obj")),
}


def _sizes_of_data(value: object) -> Sizes | None:
    return sizes_of(value) if isinstance(value, Tensor) else _listed_sizes(value)


def _reduced(sizes: Sizes, bound: Bound) -> Sizes | None:
    kept = bound.get("keepdim", Const(False))
    if not isinstance(kept, Const):
        return None
    if bound.get("dim", Const(None)) == Const(None):
        return () if not kept.value else (1,) * len(sizes)
    along = _given(bound, "dim")
    if along is None or any(not -len(sizes) <= each < len(sizes) for each in along):
        return None
    gone = {each % len(sizes) for each in along}
    if kept.value:
        return tuple(1 if at in gone else size for at, size in enumerate(sizes))
    return tuple(size for at, size in enumerate(sizes) if at not in gone)


def _unsqueezed(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    [sizes, *_], dim = known, _number(bound, "dim")
    if dim is None or not -len(sizes) - 1 <= dim <= len(sizes):
        return None
    at = dim % (len(sizes) + 1)
    return (*sizes[:at], 1, *sizes[at:])


def _squeezed(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    sizes, dim = known[0], _number(bound, "dim")
    if dim is None:
        return tuple(size for size in sizes if size != 1) if "dim" not in bound else None
    if not -len(sizes) <= dim < len(sizes):
        return None
    at = dim % len(sizes)
    return sizes if sizes[at] != 1 else (*sizes[:at], *sizes[at + 1 :])


def _transposed(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    sizes = list(known[0])
    first, second = _number(bound, "dim0", "axis0"), _number(bound, "dim1", "axis1")
    ends = range(-len(sizes), len(sizes))
    if first is None or second is None or first not in ends or second not in ends:
        return None
    sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


def _permuted(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    order, ends = _given(bound, "dims"), range(-len(known[0]), len(known[0]))
    if order is None or len(order) != len(known[0]) or any(each not in ends for each in order):
        return None
    return tuple(known[0][each] for each in order)


def _viewed(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    wanted = _given(bound, "size", "shape")
    if wanted is None or wanted.count(-1) > 1:
        return None
    whole, rest = math.prod(known[0]), math.prod(each for each in wanted if each != -1)
    if -1 in wanted and (rest == 0 or whole % rest):
        return None
    return tuple(whole // rest if each == -1 else each for each in wanted)


def _flattened(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    sizes = known[0]
    first = _number(bound, "start_dim") if "start_dim" in bound else 0
    last = _number(bound, "end_dim") if "end_dim" in bound else -1
    if not sizes or first is None or last is None:
        return None
    first, last = first % len(sizes), last % len(sizes)
    return (*sizes[:first], math.prod(sizes[first : last + 1]), *sizes[last + 1 :])


def _expanded(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    wanted = _given(bound, "size")
    if wanted is None or len(wanted) < len(known[0]):
        return None
    own = (1,) * (len(wanted) - len(known[0])) + known[0]
    return tuple(size if each == -1 else each for each, size in zip(wanted, own, strict=True))


def _concatenated(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    dim = _number(bound, "dim") if "dim" in bound else 0
    if dim is None or not known[0] or len({len(each) for each in known}) != 1 or not _listed(bound, known):
        return None
    at = dim % len(known[0])
    return (*known[0][:at], sum(each[at] for each in known), *known[0][at + 1 :])


def _stacked(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    dim = _number(bound, "dim") if "dim" in bound else 0
    if dim is None or len(set(known)) != 1 or not _listed(bound, known):
        return None
    at = dim % (len(known[0]) + 1)
    return (*known[0][:at], len(known), *known[0][at:])


def _repeated(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    times = _given(bound, "repeats")
    if times is None or len(times) < len(known[0]):
        return None
    own = (1,) * (len(times) - len(known[0])) + known[0]
    return tuple(size * count for size, count in zip(own, times, strict=True))


def _of_index(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    return sizes_of(bound.get("index"))


def _picked_by_index(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    index, dim = sizes_of(bound.get("index")), _number(bound, "dim")
    if index is None or dim is None or len(index) != 1 or not -len(known[0]) <= dim < len(known[0]):
        return None
    at = dim % len(known[0])
    return (*known[0][:at], index[0], *known[0][at + 1 :])


def _moved(known: Sequence[Sizes], bound: Bound) -> Sizes | None:
    sizes = list(known[0])
    source, to = _number(bound, "source"), _number(bound, "destination")
    if source is None or to is None or max(abs(source), abs(to)) > len(sizes):
        return None
    moved = sizes.pop(source)
    sizes.insert(to % (len(sizes) + 1), moved)
    return tuple(sizes)


def _listed(bound: Bound, known: Sequence[Sizes]) -> bool:
    """Whether `known` are the sizes of all tensors of the list that is given."""
    given = bound.get("tensors")
    return isinstance(given, Items) and given.items is not None and len(given.items) == len(known)


_CHANGES: Mapping[str, Callable[[Sequence[Sizes], Bound], Sizes | None]] = {
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "transpose": _transposed,
    "permute": _permuted,
    "t": lambda known, bound: known[0][::-1],
    "T": lambda known, bound: known[0][::-1],
    "mT": lambda known, bound: (*known[0][:-2], *known[0][:-3:-1]),
    "view": _viewed,
    "reshape": _viewed,
    "flatten": _flattened,
    "expand": _expanded,
    "repeat": _repeated,
    "gather": _of_index,
    "take_along_dim": _of_index,
    "index_select": _picked_by_index,
    "movedim": _moved,
    "swapaxes": _transposed,
    "swapdims": _transposed,
    "linear": lambda known, bound: (*known[0][:-1], *known[1][:-1]) if len(known) > 1 else None,
    "cat": _concatenated,
    "concat": _concatenated,
    "stack": _stacked,
    "matmul": lambda known, bound: _product(*known) if len(known) == 2 else None,
    "mm": lambda known, bound: _product(*known) if len(known) == 2 else None,
    "bmm": lambda known, bound: _product(*known) if len(known) == 2 else None,
}


def after_layer(name: str, instance: Instance, args: Sequence[Value], made: Value) -> Value:
    """`made`, what the torch.nn layer `name` gives, with its sizes."""
    given = sizes_of(args[0]) if args else None
    if given is None:
        return made
    kind, arguments = name.rpartition(".")[2], instance.arguments
    if kind == "LSTMCell" and isinstance(made, Items) and made.items and given:
        last = _number(arguments, "hidden_size")
        made.items[:] = [
            _with_last(each, given[:-1], last) if isinstance(each, Tensor) else each for each in made.items
        ]
    if kind in ("RNN", "GRU", "LSTM") and isinstance(made, Items) and len(made.items or ()) == 2:
        return _after_steps(kind, given, arguments, made)
    if isinstance(made, Items) or not isinstance(made, Tensor):
        return made
    if kind in _LAYERS_ALIKE:
        return of_sizes(made, given)
    if kind == "Linear" and given:
        return _with_last(made, given[:-1], _number(arguments, "out_features"))
    if kind == "Embedding":
        return _with_last(made, given, _number(arguments, "embedding_dim"))
    if kind in ("GRUCell", "RNNCell") and given:
        return _with_last(made, given[:-1], _number(arguments, "hidden_size"))
    if kind.startswith("Conv") and kind[4:] in ("1d", "2d", "3d"):
        return of_sizes(made, _convolved(given, int(kind[4]), arguments))
    return made


def _after_steps(kind: str, given: Sizes, arguments: Bound, made: Items) -> Items:
    """What a layer that goes through the steps of a sequence gives: all outputs, and the last states of its layers."""
    hidden, layers = _number(arguments, "hidden_size"), _number(arguments, "num_layers")
    projected = arguments.get("proj_size", Const(0)) != Const(0)
    both, first = arguments.get("bidirectional", Const(False)), arguments.get("batch_first", Const(False))
    if hidden is None or projected or not (isinstance(both, Const) and isinstance(first, Const)):
        return made
    ways = 2 if both.value else 1
    batch = given[:-1][:1] if first.value else given[:-1][1:]
    state = (ways * (1 if layers is None else layers), *(batch if len(given) == 3 else ()), hidden)
    if layers is None and "num_layers" in arguments:
        return made
    output, states = (made.items or [])[:2]
    held = states.items if isinstance(states, Items) else None
    sized = [of_sizes(each, state) if isinstance(each, Tensor) else each for each in held or [states]]
    made.items = [
        of_sizes(output, (*given[:-1], ways * hidden)) if isinstance(output, Tensor) else output,
        replace(states, items=sized) if isinstance(states, Items) and held is not None else sized[0],
    ]
    return made


def _with_last(made: Tensor, before: Sizes, last: int | None) -> Tensor:
    return made if last is None else of_sizes(made, (*before, last))


def _convolved(given: Sizes, spatial: int, arguments: Bound) -> Sizes | None:
    channels = _number(arguments, "out_channels")
    options = {
        name: _each(arguments.get(name, Const(start)), spatial)
        for name, start in (("kernel_size", 0), ("stride", 1), ("padding", 0), ("dilation", 1))
    }
    if channels is None or len(given) <= spatial or any(each is None for each in options.values()):
        return None
    kernel, stride, padding, dilation = (each or () for each in options.values())
    sizes = [
        (size + 2 * padding[at] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1
        for at, size in enumerate(given[-spatial:])
    ]
    return (*given[: -spatial - 1], channels, *sizes)


def _each(value: Value | tuple[Value, ...], count: int) -> Sizes | None:
    """An option of a layer for each dimension."""
    if isinstance(value, Const) and type(value.value) is int:
        return (value.value,) * count
    several = _given({"": value}, "")
    return several if several is not None and len(several) == count else None


def after_key(tensor: Tensor, parts: Sequence[Value], made: Tensor) -> Tensor:
    """`made`, what `tensor[parts]` picks by numbers, slices, None, `...` and one tensor of numbers, with its sizes."""
    sizes = sizes_of(tensor)
    if sizes is None:
        return made
    found: list[int] = []
    taken = sum(1 for each in parts if each != Const(None) and each != Const(...))
    at = 0
    for part in parts:
        if part == Const(None):
            found.append(1)
        elif part == Const(...):
            found += sizes[at : at + len(sizes) - taken]
            at += len(sizes) - taken
        elif at >= len(sizes):
            return made
        elif isinstance(part, Const) and type(part.value) is int:
            at += 1
        elif isinstance(part, Slice):
            cut = [
                None if each is None else getattr(each, "value", "")
                for each in (part.lower, part.upper, part.step)
            ]
            if any(each is not None and type(each) is not int for each in cut):
                return made
            found.append(len(range(*slice(*cut).indices(sizes[at]))))
            at += 1
        elif isinstance(part, Tensor) and (rows := _of_rows(part, parts)) is not None:
            found += rows
            at += 1
        else:
            return made
    return of_sizes(made, (*found, *sizes[at:]))


def _of_rows(index: Tensor, parts: Sequence[Value]) -> Sizes | None:
    """The sizes of an index of numbers that is the only tensor among `parts`; a mask picks as many rows as data says."""
    plain = all(each is index or not isinstance(each, (Tensor, Items)) for each in parts)
    numbers = index.dtype is not None and index.dtype.startswith("int")
    return sizes_of(index) if plain and numbers else None
