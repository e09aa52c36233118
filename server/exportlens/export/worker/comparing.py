"""Eager against a program or an artifact: leaf by leaf, in numbers."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exportlens.export.worker.cases import Case
from exportlens.export.worker.channel import end_if_forked
from exportlens.export.worker.loading import seed_all

# (absolute, relative to the expected tensor's largest magnitude) for two runs of the same aten operators; a
# target, whose kernels add in another order, may widen them by its `slack`.
TOLERANCE = {
    torch.float64: (1e-9, 1e-7),
    torch.float32: (1e-5, 1e-4),
    torch.float16: (1e-3, 1e-2),
    torch.bfloat16: (1e-2, 2e-2),
}
MEASURE_SECONDS = 0.25
PIECE = 1 << 21
"""Elements that are compared at a time: 16 MiB of float64."""


NO_BACKWARD = "a backward pass within the forward one"
"""What a model is told that runs backward where nothing was kept for it."""


@contextlib.contextmanager
def forward_only() -> Iterator[None]:
    """Calls in here keep nothing for a backward pass, with autograd on as the user's calls have it: a large model then
    takes a third of the memory, and less time. One that runs backward itself raises RuntimeError.
    """

    def refuse(_: None) -> torch.Tensor:
        raise RuntimeError(NO_BACKWARD)

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: None, refuse):
        yield


def needs_what_is_kept(error: BaseException | None) -> bool:
    """Whether a call failed for being made in `forward_only`: it runs backward, or what torch.func does, which takes no such
    hooks, now or in what it raised this from.
    """
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if NO_BACKWARD in str(error) or "saved tensor hooks" in str(error).lower():
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


@dataclass
class LeafDifference:
    """One output (or input mutated in place) of one call: how far it is from eager's."""

    name: str
    dtype: str
    shape: list[int]
    max_abs_error: float | None
    max_rel_error: float | None
    equal: bool
    why: str = ""


def _is_fake(value: Any) -> bool:
    return type(value).__name__ in ("FakeTensor", "FunctionalTensor")


def leaves_of(value: Any) -> list[Any]:
    """A result's leaves, tensors detached from their graph; a registered output class is opened, as export
    does.
    """
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in pytree.tree_leaves(value)]


def snapshot(leaves: list[Any]) -> list[Any]:
    """Tensors cloned, so that a later call cannot change what was recorded."""
    return [
        leaf.clone() if isinstance(leaf, torch.Tensor) and not _is_fake(leaf) else leaf for leaf in leaves
    ]


def compare_leaf(name: str, expected: Any, actual: Any, slack: float = 1.0) -> LeafDifference:
    """Compare one leaf. NaN equals NaN; integers and booleans must be the same; None where eager gives
    None.
    """
    if not isinstance(expected, torch.Tensor):
        a_number = isinstance(expected, (bool, int, float)) and isinstance(actual, torch.Tensor)
        if a_number and actual.numel() == 1 and not _is_fake(actual):
            actual = actual.item()
        same = _same_plain(expected, actual)
        why = "" if same else f"eager gives {expected!r:.60}, here {actual!r:.60}"
        return LeafDifference(name, type(expected).__name__, [], None, None, same, why)
    dtype, shape = str(expected.dtype).removeprefix("torch."), list(expected.shape)
    if not isinstance(actual, torch.Tensor):
        return LeafDifference(
            name, dtype, shape, None, None, False, f"a tensor in eager, here {actual!r:.60}"
        )
    if _is_fake(actual):
        return LeafDifference(name, dtype, shape, None, None, False, "a FakeTensor leaked out of tracing")
    if list(actual.shape) != shape:
        return LeafDifference(
            name, dtype, shape, None, None, False, f"shape {list(actual.shape)}, eager {shape}"
        )
    if actual.dtype != expected.dtype:
        return LeafDifference(
            name, dtype, shape, None, None, False, f"dtype {actual.dtype}, eager {expected.dtype}"
        )
    return _numbers(name, dtype, shape, expected, actual.detach().to(expected.device), slack)


def _same_plain(expected: Any, actual: Any) -> bool:
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        return (
            expected == actual
            or abs(expected - actual) <= 1e-5 + 1e-4 * abs(expected)
            or expected != expected
        )
    try:
        return bool(expected == actual)
    except Exception:
        return expected is actual


def _numbers(
    name: str, dtype: str, shape: list[int], expected: torch.Tensor, actual: torch.Tensor, slack: float
) -> LeafDifference:
    if expected.numel() == 0:
        return LeafDifference(name, dtype, shape, 0.0, 0.0, True)
    if expected.is_sparse or expected.is_quantized:
        expected, actual = expected.to_dense(), actual.to_dense()
    inexact = expected.dtype.is_floating_point or expected.dtype.is_complex
    if torch.equal(
        expected, actual
    ):  # the same program mostly gives the same bits, and this is many times quicker
        relative_error = 0.0 if inexact and bool(expected.any()) else None
        return LeafDifference(name, dtype, shape, 0.0, relative_error, True)
    if not inexact:
        wrong, gap = _whole_gaps(expected, actual)
        why = f"{wrong} of {expected.numel()} values differ"
        return LeafDifference(name, dtype, shape, gap, None, False, why)
    largest, scale = _gaps(expected, actual)
    absolute, relative = TOLERANCE.get(expected.dtype, TOLERANCE[torch.float32])
    equal = largest <= slack * (absolute + relative * scale)
    why = "" if equal else f"differs by up to {largest:.3g} (values up to {scale:.3g})"
    return LeafDifference(name, dtype, shape, largest, largest / scale if scale else None, equal, why)


def _pieces(expected: torch.Tensor, actual: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both tensors flat and in step, piece by piece: a large output does not take several
    times its memory, nor the time to be given that.
    """
    flat = torch.split(expected.reshape(-1), PIECE), torch.split(actual.reshape(-1), PIECE)
    return zip(*flat, strict=True)


def _whole_gaps(expected: torch.Tensor, actual: torch.Tensor) -> tuple[int, float]:
    """How many integers or booleans differ, and by how much at most."""
    wrong, largest = 0, 0.0
    for left, right in _pieces(expected, actual):
        wrong += int((left != right).sum())
        largest = max(largest, float((left.to(torch.float64) - right.to(torch.float64)).abs().max()))
    return wrong, largest


def _gaps(expected: torch.Tensor, actual: torch.Tensor) -> tuple[float, float]:
    """The largest difference, where NaN equals NaN and nothing else, and the largest finite magnitude of `expected`."""
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    largest = scale = 0.0
    for piece, other in _pieces(expected, actual):
        left, right = piece.to(wide), other.to(wide)
        gap, magnitude = _largest(left - right), _largest(left)
        if not math.isfinite(gap) or not math.isfinite(magnitude):  # rare, and it takes several times as long
            same = (left == right) | (left.isnan() & right.isnan())
            gap = _largest(torch.where(same, 0.0, left - right))
            magnitude = _largest(torch.where(left.abs().isfinite(), left, 0.0))
        largest = max(largest, math.inf if math.isnan(gap) else gap)
        scale = max(scale, magnitude)
    return largest, scale


def _largest(values: torch.Tensor) -> float:
    """The largest magnitude; NaN where there is one."""
    if values.is_complex():
        values = values.abs()
    low, high = (float(each) for each in torch.aminmax(values))
    return max(abs(low), abs(high)) if not math.isnan(low + high) else math.nan


def compare_leaves(
    expected: list[Any], actual: list[Any], slack: float = 1.0, prefix: str = "output"
) -> list[LeafDifference]:
    """Compare two flat results; a different number of leaves is one difference."""
    if len(expected) != len(actual):
        why = f"{len(actual)} outputs, eager has {len(expected)}"
        return [LeafDifference(f"{prefix}s", "", [], None, None, False, why)]
    return [
        compare_leaf(f"{prefix} {index}", *pair, slack)
        for index, pair in enumerate(zip(expected, actual, strict=True))
    ]


@dataclass
class CaseResult:
    """One call on both sides. `status`: equal, different, failed (the program raised) or skipped (eager
    raised).
    """

    name: str
    status: str
    differences: list[LeafDifference]
    message: str = ""
    note: str = ""
    error: BaseException | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status in ("equal", "skipped")

    def plain(self) -> dict[str, Any]:
        return {
            "case": self.name,
            "status": self.status,
            "message": self.message,
            "note": self.note,
            "outputs": [asdict(difference) for difference in self.differences],
        }


def judge(case: Case, differences: list[LeafDifference]) -> CaseResult:
    wrong = [d for d in differences if not d.equal]
    message = "; ".join(f"{d.name}: {d.why}" for d in wrong[:3])
    return CaseResult(
        case.name, "different" if wrong else "equal", differences, message, case.note, None, case.sizes
    )


def call(
    run: Callable[..., Any], case: Case, see: Callable[[Any], None] = lambda result: None
) -> tuple[list[Any], list[Any]]:
    """Call with the case's inputs and seed: (output leaves, input leaves after the call), recorded. `see` is shown the
    result as it was returned.
    """
    args, kwargs = case.inputs()
    seed_all(case.seed)
    result = run(*args, **kwargs)
    see(result)
    return snapshot(leaves_of(result)), snapshot(leaves_of((args, kwargs)))


def worst(results: list[CaseResult], field: str) -> float | None:
    """The largest of one error over all cases and outputs; None where nothing was compared in numbers."""
    values = [getattr(d, field) for r in results for d in r.differences if getattr(d, field) is not None]
    return max(values) if values else None


def latency_ms(run: Callable[[], Any]) -> float | None:
    """Median milliseconds of one call, over as many calls as fit in a quarter of a second (at least 3)."""
    times: list[float] = []
    begun = time.perf_counter()
    try:
        run()
        end_if_forked()
        while len(times) < 3 or (time.perf_counter() - begun < MEASURE_SECONDS and len(times) < 100):
            started = time.perf_counter()
            run()
            end_if_forked()
            times.append((time.perf_counter() - started) * 1e3)
            if times[-1] > 2000:
                break
    except Exception:
        return None
    return round(statistics.median(times), 4)
