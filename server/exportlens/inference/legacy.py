"""Legacy tensor constructors: `torch.FloatTensor(2, 3)`, `torch.LongTensor([1, 2])`, `torch.Tensor(n)`."""

from __future__ import annotations

from exportlens.inference.machine import Machine
from exportlens.inference.values import Const, Sequence, Shape, Static, Tensor, Value

TENSOR_TYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}


def make_tensor(machine: Machine, name: str, args: list[Value]) -> Tensor | None:
    """The tensor that the legacy constructor `name` makes; None where `name` is none."""
    package, _, short = name.rpartition(".")
    if package not in ("torch", "torch.cuda") or not (short in TENSOR_TYPES or name == "torch.Tensor"):
        return None
    dtype = TENSOR_TYPES.get(short, "float32")
    first = args[0] if args else None
    if isinstance(first, Tensor):
        return Tensor("fresh" if machine.tracing else first.origin, "", dtype, first.rank, first.unbacked)
    if not machine.tracing and not args:
        # Without elements it keeps a place for another tensor, of which it tells nothing.
        return Tensor("constant")
    if not machine.tracing:
        return Tensor("constant", "", dtype, _rank(args))
    # torch keeps the value of one number that is made into a tensor while tracing, not of more.
    one = isinstance(first, Sequence) and first.items is not None and len(first.items) == 1
    literal = isinstance(first, Sequence) and first.type_name != "torch.Size"
    return Tensor("constant" if one else "literal" if literal else "fresh", "", dtype, _rank(args))


def _rank(args: list[Value]) -> int | None:
    """Sizes give as many dimensions; a list gives as many as it nests."""
    first = args[0] if args else Sequence("list", [])
    if isinstance(first, (Const, Shape, Static)):
        return len(args)
    if isinstance(first, Sequence) and first.type_name == "torch.Size":
        return len(first.items) if first.items is not None else None
    rank, inner = 0, first
    while isinstance(inner, Sequence):
        rank += 1
        if not inner.items:
            return rank if inner.items == [] else None
        inner = inner.items[0]
    return rank if isinstance(inner, (Const, Shape, Static)) and rank else None
