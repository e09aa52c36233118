"""The inputs on which a program is compared with eager: examples, fresh ones, other seeds, other sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exportlens.export.worker.loading import seed_all

EXAMPLE = "example inputs"
SECOND_CALL = "second call"
OTHER_SEED = "other seed"
LARGEST_ELEMENTS = 1 << 25
"""Elements that one generated input may have (128 MiB of float32): beyond, a range's upper end is lowered."""
SLOW_SECONDS = 1.0
"""A model whose call takes longer is compared on fewer cases."""
LARGEST_SECONDS = 20.0
"""What one call at a range's upper end may cost, judged by the example's: beyond, the upper end is
lowered.
"""
LARGE_BYTES = 1 << 28
"""A call that returns more counts as a slow one: each case keeps what it returned, for every target."""
MOST_BYTES_RETURNED = 1 << 30
"""What one call at a range's upper end may return, judged by the example's: beyond, the upper end is lowered."""
OPEN_END_FACTOR = 4
"""Where a dim has no upper bound, the largest size tried is this many times the example's, and at least
17.
"""


@dataclass(frozen=True)
class Cost:
    """What one call on the example inputs takes: seconds in eager, and the bytes that it returns."""

    seconds: float
    returned: int = 0

    @property
    def is_high(self) -> bool:
        """Whether fewer calls are made."""
        return self.seconds > SLOW_SECONDS or self.returned > LARGE_BYTES

    def largest_elements(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """How large one generated input may grow: LARGEST_SECONDS a call, and MOST_BYTES_RETURNED."""
        leaves = pytree.tree_leaves((args, kwargs))
        example = max((leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)), default=1)
        growth = LARGEST_SECONDS / max(self.seconds, 1e-6), MOST_BYTES_RETURNED / max(self.returned, 1)
        return int(min(LARGEST_ELEMENTS, example * max(1.0, min(growth))))


@dataclass
class Case:
    """One call: its inputs, the seed set before it, and the sizes of its dynamic dims by symbol."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seed: int
    sizes: dict[str, int] = field(default_factory=dict)
    note: str = ""

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The inputs, cloned: neither side may change what the other one gets."""
        return pytree.tree_map(clone, (self.args, self.kwargs))  # type: ignore[no-any-return]

    def asks_as(self, other: Case) -> bool:
        """Whether both are one call: the very same inputs, with the same seed."""
        return self.args is other.args and self.kwargs is other.kwargs and self.seed == other.seed


def clone(value: Any) -> Any:
    """A tensor's clone that requires grad as the original does; anything else as it is."""
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone()
        return copy.requires_grad_(value.requires_grad)
    return value


def fresh_like(tensor: torch.Tensor, shape: list[int], kind: str = "random") -> torch.Tensor:
    """A tensor of `shape` as a user of this model would feed it.

    Floats follow the example's mean and spread; integers and booleans stay within the values that the example
    holds (indices stay valid). `kind`: random, zeros, positive, negative or large, where the dtype allows it.
    """
    dtype = tensor.dtype
    source = tensor.detach()
    if dtype == torch.bool:
        if kind in ("zeros", "negative"):
            return torch.zeros(shape, dtype=dtype)
        return torch.ones(shape, dtype=dtype) if kind in ("positive", "large") else torch.rand(shape) > 0.5
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = (int(source.min()), int(source.max())) if source.numel() else (0, 1)
        if kind == "zeros" and low >= 0:
            return torch.full(shape, low, dtype=dtype, device=tensor.device)
        return torch.randint(low, high + 1, shape, device=tensor.device).to(dtype)
    if kind == "zeros":
        return torch.zeros(shape, dtype=dtype, device=tensor.device)
    real = source.to(torch.float64 if not dtype.is_complex else dtype)
    spread = float(real.abs().std()) if source.numel() > 1 else 1.0
    spread = spread if math.isfinite(spread) and spread > 0 else 1.0
    middle = float(real.mean().real) if source.numel() and not dtype.is_complex else 0.0
    middle = middle if math.isfinite(middle) else 0.0
    noise = torch.randn(shape, dtype=dtype if dtype.is_complex else torch.float32).to(dtype).to(tensor.device)
    if kind == "positive":
        return noise.abs() * spread + 0.5 * spread
    if kind == "negative":
        return -(noise.abs() * spread + 0.5 * spread)
    if kind == "large":
        return noise * spread * 100
    return noise * spread + middle


def _fresh(tree: Any, kind: str = "random") -> Any:
    return pytree.tree_map(
        lambda v: (
            fresh_like(v, list(v.shape), kind).requires_grad_(v.requires_grad)
            if isinstance(v, torch.Tensor)
            else v
        ),
        tree,
    )


_CALLED = {"zeros": "all-zero"}


def generated_cases(
    args: tuple[Any, ...], kwargs: dict[str, Any], kinds: tuple[str, ...], seed: int
) -> list[Case]:
    """Fresh inputs of the example's shapes, one case per kind."""
    cases = []
    for offset, kind in enumerate(kinds):
        seed_all(seed + offset)
        new_args, new_kwargs = _fresh((args, kwargs), kind)
        cases.append(
            Case(
                f"{_CALLED.get(kind, kind)} inputs (seed {seed + offset})",
                new_args,
                new_kwargs,
                seed + offset,
            )
        )
    return cases


def basic_cases(args: tuple[Any, ...], kwargs: dict[str, Any], *, few: bool) -> list[Case]:
    """Two consecutive calls on the examples, other seeds, then fresh inputs of the same shapes.

    `few` leaves out what other cases cover too: fresh random inputs come with another seed.
    """
    cases = [Case(EXAMPLE, args, kwargs, 0), Case(SECOND_CALL, args, kwargs, 0)]
    if few:
        return [*cases, *generated_cases(args, kwargs, ("random",), 2)]
    cases.append(Case(OTHER_SEED, args, kwargs, 1))
    return [*cases, *generated_cases(args, kwargs, ("random", "negative", "zeros"), 2)]


@dataclass(frozen=True)
class DynamicDim:
    """One symbol of the program: its range, the size in the example, and where it stands."""

    symbol: str
    low: int
    high: int | None
    example: int
    places: tuple[str, ...]


def _flat_inputs(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(name, the example's leaf, the fake value in the graph) of every user input."""
    leaves = pytree.tree_leaves((args, kwargs))
    names = program.graph_signature.user_inputs
    by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = []
    for name, leaf in zip(names, leaves, strict=False):
        node = by_name.get(name) if isinstance(name, str) else None
        found.append((str(name), leaf, node.meta.get("val") if node is not None else None))
    return found


def _bound(value: Any) -> int | None:
    try:
        return int(value)
    except (OverflowError, ValueError, TypeError, AttributeError):
        return None


def dynamic_dims(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[DynamicDim]:
    """The program's dynamic dims, with the ranges that it claims (`range_constraints`)."""
    places: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, leaf, fake in _flat_inputs(program, args, kwargs):
        if isinstance(leaf, torch.Tensor) and isinstance(fake, torch.Tensor):
            for dim, size in enumerate(fake.shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                    symbol = str(size.node.expr)
                    places.setdefault(symbol, []).append(f"{name}[{dim}]")
                    sizes.setdefault(symbol, leaf.shape[dim])
    ranges = {str(symbol): value for symbol, value in program.range_constraints.items()}
    found = []
    for symbol, where in places.items():
        bounds = ranges.get(symbol)
        low = (_bound(bounds.lower) if bounds else None) or 0
        high = _bound(bounds.upper) if bounds else None
        found.append(
            DynamicDim(
                symbol,
                low,
                high if high is not None and high < 1 << 40 else None,
                sizes[symbol],
                tuple(where),
            )
        )
    return found


def resized(
    program: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    sizes: dict[str, int],
    largest: int = LARGEST_ELEMENTS,
) -> Any:
    """Inputs with the dynamic dims at `sizes`; derived dims (`2*s0`) follow.

    None where an input would have more than `largest` elements.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    changed = list(leaves)
    for index, (_, leaf, fake) in enumerate(_flat_inputs(program, args, kwargs)):
        if not (isinstance(leaf, torch.Tensor) and isinstance(fake, torch.Tensor)):
            continue
        shape = []
        for size in fake.shape:
            if isinstance(size, torch.SymInt):
                expression = size.node.expr
                chosen = {
                    symbol: sizes[str(symbol)] for symbol in expression.free_symbols if str(symbol) in sizes
                }
                shape.append(int(expression.subs(chosen)))
            else:
                shape.append(int(size))
        if math.prod(shape) > largest:
            return None
        if shape != list(leaf.shape):
            changed[index] = fresh_like(leaf, shape).requires_grad_(leaf.requires_grad)
    return pytree.tree_unflatten(changed, spec)


def size_cases(
    program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, largest: int, few: bool
) -> list[Case]:
    """Inputs at the lower end, the middle and the upper end of every dynamic range: all together, then each
    alone.

    An upper end that would need too much memory is halved until it does not; the case's note says so.
    """
    dims = dynamic_dims(program, args, kwargs)
    if not dims:
        return []
    ends: dict[str, tuple[int, int, int]] = {}
    for dim in dims:
        top = dim.high if dim.high is not None else max(OPEN_END_FACTOR * dim.example, 17)
        ends[dim.symbol] = (dim.low, (dim.low + top) // 2, top)
    example = {dim.symbol: dim.example for dim in dims}
    asked: list[tuple[str, dict[str, int]]] = []
    for position, label in enumerate(("smallest", "middle", "largest")):
        if few and label == "middle":
            continue
        asked.append((f"{label} sizes", {symbol: end[position] for symbol, end in ends.items()}))
    if len(dims) > 1 and not few:
        for dim in dims:
            for position, label in ((0, "smallest"), (2, "largest")):
                sizes = {**example, dim.symbol: ends[dim.symbol][position]}
                asked.append((f"{label} {dim.places[0]}", sizes))
    cases = []
    for index, (label, sizes) in enumerate(asked):
        wanted, note = dict(sizes), ""
        seed_all(100 + index)
        while (inputs := resized(program, args, kwargs, sizes, largest)) is None and sizes != example:
            sizes = {symbol: max(size // 2, example[symbol]) for symbol, size in sizes.items()}

        def shown(sizes: dict[str, int]) -> str:
            return ", ".join(f"{dim.places[0]}={sizes[dim.symbol]}" for dim in dims)

        if sizes != wanted:
            note = f"asked for {shown(wanted)}: too slow or too large to try here, tried {shown(sizes)}"
        inputs = inputs or (args, kwargs)
        cases.append(Case(f"{label} ({shown(sizes)})", inputs[0], inputs[1], 100 + index, sizes, note))
    return cases


def static_by_accident(
    program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> list[tuple[str, int, int]]:
    """Dims that were asked to be dynamic and that the program has fixed: (input, dim, the size it is fixed
    to).

    torch fixes a `Dim.AUTO` without a word when the example's size is 0 or 1, or when the model's code needs
    it.
    """
    if not dynamic_shapes:
        return []
    try:
        from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

        combined = _combine_args(program.module(), args, kwargs)
        asked: list[tuple[Any, Any]] = []
        shapes = dynamic_shapes
        if isinstance(shapes, (tuple, list)):
            shapes = dict(zip(combined, shapes, strict=False))

        def visit(path: Any, leaf: Any, spec: Any = None) -> None:
            asked.append((leaf, spec))

        _tree_map_with_path(visit, combined, shapes, tree_name="inputs")
    except Exception:
        return []
    found = []
    fakes = [(name, fake) for name, leaf, fake in _flat_inputs(program, args, kwargs)]
    for (name, fake), (leaf, spec) in zip(fakes, asked, strict=False):
        if not isinstance(leaf, torch.Tensor) or not isinstance(fake, torch.Tensor) or not spec:
            continue
        entries = spec.items() if isinstance(spec, dict) else enumerate(spec)
        for dim, wanted in entries:
            wants = wanted is not None and not isinstance(wanted, int) and "STATIC" not in str(wanted)
            if wants and not isinstance(fake.shape[dim], torch.SymInt):
                found.append((name, int(dim), int(fake.shape[dim])))
    return found
