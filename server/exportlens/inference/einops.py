"""einops: results by the pattern text, which names every dimension."""

from __future__ import annotations

import ast
import re

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.values import Const, Instance, Named, Sequence, Tensor, Unknown, Value

_LAYERS = frozenset(
    {"einops.layers.torch.Rearrange", "einops.layers.torch.Reduce", "einops.layers.torch.EinMix"}
)


def call_einops(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value | None:
    """The result of an einops function or layer class; None where it is none of them."""
    del machine, frame, node
    short = name.rpartition(".")[2]
    if name in _LAYERS:
        pattern = args[0] if args else kwargs.get("pattern", Unknown())
        return Instance(
            Named(name),
            arguments={"pattern": pattern},
            fingerprint=(name, pattern) if isinstance(pattern, Const) else None,
        )
    if short in ("rearrange", "reduce", "repeat", "asnumpy"):
        pattern = args[1] if len(args) > 1 else kwargs.get("pattern", Unknown())
        return _result(args[0] if args else kwargs.get("tensor", Unknown()), pattern)
    if short == "einsum":
        return _result(args[0] if args else Unknown(), args[-1] if args else Unknown())
    if short == "pack":
        rank = _rank_of(args[1]) if len(args) > 1 else None
        return Sequence("tuple", [Tensor(rank=rank), Sequence("list", None, Unknown("a packed shape"))])
    if short == "unpack":
        return Sequence("list", None, Tensor())
    return None


def call_layer(instance: Instance, args: list[Value]) -> Value | None:
    """The result of calling an einops layer; None where `instance` is none."""
    if not (isinstance(instance.cls, Named) and instance.cls.name in _LAYERS):
        return None
    return _result(args[0] if args else Unknown(), instance.arguments.get("pattern", Unknown()))


def _result(source: Value, pattern: Value) -> Value:
    if isinstance(source, Sequence):
        source = next((item for item in source.items or [] if isinstance(item, Tensor)), Tensor())
    rank = _rank_of(pattern)
    if isinstance(source, Tensor):
        return Tensor(
            "constant" if source.origin == "constant" else "fresh", "", source.dtype, rank, source.unbacked
        )
    return Tensor(rank=rank)


def _rank_of(pattern: Value) -> int | None:
    """The number of dimensions right of the arrow; None with an ellipsis."""
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return None
    right = pattern.value.rpartition("->")[2]
    if "..." in right or "*" in right:
        return None
    return len(re.sub(r"\([^)]*\)", "g", right).split())
