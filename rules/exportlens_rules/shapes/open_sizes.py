"""Which operators need to know a size that tensor data decides: each form was exported with torch 2.13.

Tensors with such a size in the first, a middle and the last dimension were put to about 400 forms of call. What is not
listed here takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from exportlens.inference.places import Call
from exportlens.inference.values import Const, Instance, Sequence, Shape, Tensor, TensorScalar, Value, options

Judge = Callable[[Call, Tensor], bool]


class Needs(NamedTuple):
    """An argument of an operator (position, counted with `self`, and name), and when its open size is too much."""

    position: int
    name: str
    judge: Judge


def argument(place: Call, position: int, name: str) -> Value | None:
    """An argument of a function or of the method of the same name, whose receiver is the first."""
    if not place.name.startswith("torch.Tensor."):
        return place.argument(position, name)
    return place.receiver if position == 0 else place.argument(position - 1, name)


def needs_the_size(place: Call) -> bool:
    """Whether the call decides by a size that tensor data decides."""
    return any(
        _all_open(place, argument(place, need.position, need.name), need.judge) for need in _of(place.name)
    ) or any(_from_data(argument(place, position, name)) for position, name in _NUMBERS.get(place.name, ()))


def _all_open(place: Call, value: Value | None, judge: Judge) -> bool:
    return value is not None and all(
        isinstance(option, Tensor) and option.unbacked and judge(place, option) for option in options(value)
    )


def _from_data(value: Value | None) -> bool:
    if isinstance(value, Tensor):
        # One number is read as Python's where that is what is taken.
        return value.origin in ("input", "buffer", "fresh")
    return isinstance(value, TensorScalar) or (isinstance(value, Shape) and value.unbacked)


def _whichever(place: Call, tensor: Tensor) -> bool:
    """It asks whether there are elements at all, or copies the size into a program that has no place for it."""
    return True


def _along(position: int, name: str, default: int) -> Judge:
    """The operator works along one dimension: its size is what it needs."""

    def judge(place: Call, tensor: Tensor) -> bool:
        if tensor.rank == 1:
            return True
        dim = _dim(argument(place, position, name), default, tensor)
        return dim is not None and dim == tensor.open_dim

    return judge


def _in_pieces(position: int, name: str) -> Judge:
    """A list of sizes needs no division: each piece is as long as it says."""
    along = _along(2, "dim", 0)

    def judge(place: Call, tensor: Tensor) -> bool:
        pieces = argument(place, position, name)
        known = isinstance(pieces, Const) or (isinstance(pieces, Shape) and not pieces.unbacked)
        return known and along(place, tensor)

    return judge


def _squeezed(place: Call, tensor: Tensor) -> bool:
    """Every dimension is asked whether it has one element, or the given one."""
    dim = argument(place, 1, "dim")
    return dim is None or (tensor.rank is not None and _along(1, "dim", 0)(place, tensor))


def _rows(place: Call, tensor: Tensor) -> bool:
    return tensor.rank == 2 and tensor.open_dim == 0


def _contracted_once(place: Call, tensor: Tensor) -> bool:
    dims = place.argument(2, "dims")
    return isinstance(dims, Const) and dims.value == 1 and _rows(place, tensor)


def _transformed(place: Call, tensor: Tensor) -> bool:
    """Only rows of a matrix, each transformed by itself, need no size but their own."""
    if tensor.rank != 2:
        return tensor.rank is not None
    if tensor.open_dim is None:
        return False
    dim = _dim(place.argument(2, "dim"), -1, tensor)
    return dim is not None and (tensor.open_dim, dim) != (0, 1)


def _not_the_batch(rank: int) -> Judge:
    """Whatever is open but the first dimension of a tensor with `rank` of them; anything where there is one less."""

    def judge(place: Call, tensor: Tensor) -> bool:
        if tensor.rank == rank - 1:
            return True
        return tensor.rank == rank and tensor.open_dim is not None and tensor.open_dim > 0

    return judge


def _pooled_to_one(rank: int, first: int) -> Judge:
    def judge(place: Call, tensor: Tensor) -> bool:
        size = place.argument(1, "output_size")
        if isinstance(place.receiver, Instance):
            size = place.receiver.arguments.get("output_size")
        sizes = list(size.items or ()) if isinstance(size, Sequence) else [size]
        single = bool(sizes) and all(isinstance(each, Const) and each.value == 1 for each in sizes)
        return single and tensor.rank == rank and tensor.open_dim is not None and tensor.open_dim >= first

    return judge


def _wrapped_around(place: Call, tensor: Tensor) -> bool:
    mode = place.argument(2, "mode")
    around = isinstance(mode, Const) and mode.value == "circular"
    return around and tensor.rank is not None and tensor.open_dim == tensor.rank - 1


def _classified(place: Call, tensor: Tensor) -> bool:
    """Scores by class for each place of a sequence, or a target of probabilities."""
    target = place.argument(1, "target")
    soft = isinstance(target, Tensor) and (target.dtype or "").startswith("float")
    return soft or tensor.rank == 3


def _sequence(place: Call, tensor: Tensor) -> bool:
    """How long the sequence is, for layers that take the batch before or after it."""
    layer = place.receiver
    if not isinstance(layer, Instance) or not layer.arguments:
        return False
    inner = layer.arguments.get("encoder_layer") or layer.arguments.get("decoder_layer")
    made = inner.arguments if isinstance(inner, Instance) else layer.arguments
    if inner is not None and not made:
        return False
    first = made.get("batch_first", Const(False))
    if not isinstance(first, Const) or tensor.open_dim is None:
        return False
    if tensor.rank == 2:
        return tensor.open_dim == 0
    return tensor.open_dim == (1 if first.value else 0)


def _attended(place: Call, tensor: Tensor) -> bool:
    """Without the weights, attention is one operator that asks whether there is a key."""
    weights = place.argument(4, "need_weights")
    return isinstance(weights, Const) and not weights.value and _sequence(place, tensor)


def _keys(place: Call, tensor: Tensor) -> bool:
    return tensor.rank == 4 and tensor.open_dim == 2


def _dim(value: Value | None, default: int, tensor: Tensor) -> int | None:
    dim = default if value is None else value.value if isinstance(value, Const) else None
    if not isinstance(dim, int):
        return None
    return dim if dim >= 0 else None if tensor.rank is None else dim + tensor.rank


def _both(names: str, *needs: Needs) -> dict[str, tuple[Needs, ...]]:
    """Functions of torch that are methods of tensors, too."""
    return {f"{home}.{name}": needs for name in names.split() for home in ("torch", "torch.Tensor")}


def _at(home: str, names: str, *needs: Needs) -> dict[str, tuple[Needs, ...]]:
    return {f"{home}.{name}": needs for name in names.split()}


_INPUT = Needs(0, "input", _whichever)
_SEQUENCE = Needs(0, "input", _sequence)
_SOURCE = Needs(0, "src", _sequence)
_CLASSIFIED = Needs(0, "input", _classified)
_SPREAD = Needs(2, "var", _whichever)
_POOLED_1D, _POOLED_2D = Needs(0, "input", _pooled_to_one(3, 1)), Needs(0, "input", _pooled_to_one(4, 2))
_LINE = Needs(0, "input", _not_the_batch(3))
_IMAGE = Needs(0, "input", _not_the_batch(4))
_ALONG = Needs(0, "input", _along(1, "dim", 0))

NEEDS: dict[str, tuple[Needs, ...]] = {
    **_both("cummax cummin logsumexp roll take cov corrcoef pinverse gradient", _INPUT),
    **_both("kron", _INPUT, Needs(1, "other", _whichever)),
    **_both("inner", Needs(0, "input", _rows)),
    **_both("diff", Needs(0, "input", _along(2, "dim", -1))),
    **_both("unbind", _ALONG),
    **_at("torch.Tensor", "squeeze_", Needs(0, "input", _squeezed)),
    **_both("chunk", Needs(0, "input", _in_pieces(1, "chunks"))),
    **_both("split", Needs(0, "input", _in_pieces(1, "split_size"))),
    **_both("tensor_split", Needs(0, "input", _in_pieces(1, "indices_or_sections"))),
    **_at("torch", "cdist", Needs(0, "x1", _whichever), Needs(1, "x2", _whichever)),
    **_at("torch", "tensordot", Needs(0, "a", _contracted_once)),
    **_at("torch", "vander", Needs(0, "x", _whichever)),
    **_at("torch", "trapezoid trapz", Needs(0, "y", _along(99, "dim", -1))),
    **_at("torch.linalg", "pinv", Needs(0, "A", _whichever)),
    **_at("torch.fft", "fft ifft rfft irfft", Needs(0, "input", _transformed)),
    **_at("torch.nn.functional", "instance_norm local_response_norm", _INPUT),
    **_at("torch.nn", "InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm", _INPUT),
    **_at("torch.nn.functional", "bilinear", Needs(0, "input1", _whichever)),
    **_at("torch.nn", "Bilinear", Needs(0, "input1", _whichever)),
    **_at("torch.nn.functional", "max_pool1d", _LINE),
    **_at("torch.nn", "MaxPool1d", _LINE),
    **_at("torch.nn.functional", "unfold", _IMAGE),
    **_at("torch.nn", "Unfold", _IMAGE),
    **_at("torch.nn.functional", "adaptive_avg_pool1d adaptive_max_pool1d", _POOLED_1D),
    **_at("torch.nn", "AdaptiveAvgPool1d AdaptiveMaxPool1d", _POOLED_1D),
    **_at("torch.nn.functional", "adaptive_avg_pool2d", _POOLED_2D),
    **_at("torch.nn", "AdaptiveAvgPool2d", _POOLED_2D),
    **_at("torch.nn.functional", "pad", Needs(0, "input", _wrapped_around)),
    **_at("torch.nn.functional", "cross_entropy nll_loss", _CLASSIFIED),
    **_at("torch.nn", "CrossEntropyLoss NLLLoss", _CLASSIFIED),
    **_at("torch.nn.functional", "gaussian_nll_loss", _SPREAD),
    **_at("torch.nn", "GaussianNLLLoss", _SPREAD),
    **_at("torch.nn.functional", "scaled_dot_product_attention", Needs(1, "key", _keys)),
    **_at("torch.nn", "GRU LSTM RNN", _SEQUENCE),
    **_at("torch.nn", "TransformerEncoderLayer TransformerEncoder", _SOURCE),
    **_at("torch.nn", "TransformerDecoderLayer TransformerDecoder", Needs(0, "tgt", _sequence)),
    **_at("torch.nn", "MultiheadAttention", Needs(1, "key", _attended)),
}
# Operators that take numbers of Python for these, where sizes from data are symbols.
_NUMBERS = {
    "torch.linspace": ((2, "steps"),),
    "torch.logspace": ((2, "steps"),),
    "torch.tril_indices": ((0, "row"), (1, "col")),
    "torch.triu_indices": ((0, "row"), (1, "col")),
}
CALLEES = (*NEEDS, *_NUMBERS)


def _of(name: str) -> tuple[Needs, ...]:
    return NEEDS.get(name, ())
