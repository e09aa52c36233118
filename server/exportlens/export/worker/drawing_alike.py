"""The same random numbers from Python, NumPy and torch: a fix that draws with torch is compared with the original on these."""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

# Exact in single precision, and never 0 or 1, so that each is a quantile of every distribution.
_STEPS = 1 << 20


class _Quantiles(random.Random):
    """Python's generator, drawing each number by one quantile: what is uniform, normal or whole follows from it."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._source = random.Random(seed)

    def random(self) -> float:
        return (self._source.randrange(_STEPS - 1) + 1) / _STEPS

    def _randbelow(self, n: int) -> int:
        return int(self.random() * n)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        return mu + sigma * statistics.NormalDist().inv_cdf(self.random())

    normalvariate = gauss

    def order(self, count: int) -> list[int]:
        """A permutation of the numbers below `count`."""
        drawn = [self.random() for _ in range(count)]
        return sorted(range(count), key=drawn.__getitem__)


@contextlib.contextmanager
def drawn_alike(seed: int) -> Iterator[None]:
    """Inside, Python's `random`, `numpy.random` and torch's functions draw one sequence of quantiles, whoever asks."""
    source = _Quantiles(seed)
    with contextlib.ExitStack() as stack:
        for name in ("random", "uniform", "randint", "randrange", "gauss", "normalvariate", "choice"):
            stack.enter_context(mock.patch.object(random, name, getattr(source, name)))
        for name, function in _of_torch(source).items():
            stack.enter_context(mock.patch.object(torch, name, function))
        numpy: Any = sys.modules.get("numpy")
        for name, function in _of_numpy(source, numpy).items() if numpy is not None else ():
            stack.enter_context(mock.patch.object(numpy.random, name, function))
        yield


def _of_torch(source: _Quantiles) -> dict[str, Callable[..., torch.Tensor]]:
    def filled(draw: Callable[[], float]) -> Callable[..., torch.Tensor]:
        def drawn(*size: Any, out: None = None, generator: None = None, **how: Any) -> torch.Tensor:
            given = how.pop("size", None) or (size[0] if size and not isinstance(size[0], int) else size)
            grad = how.pop("requires_grad", False)
            how.pop("pin_memory", None)
            how.setdefault("dtype", torch.get_default_dtype())
            made = torch.tensor([draw() for _ in range(math.prod(given))], **how)
            return made.reshape(tuple(given)).requires_grad_(grad)

        return drawn

    def randint(low: int, high: Any = None, size: Any = None, **how: Any) -> torch.Tensor:
        if size is None:
            low, high, size = 0, low, high
        how.setdefault("dtype", torch.int64)
        return filled(lambda: low + source._randbelow(high - low))(size, **how)

    def randperm(n: int, **how: Any) -> torch.Tensor:
        order = iter(source.order(n))
        how.setdefault("dtype", torch.int64)
        return filled(lambda: next(order))(n, **how)

    return {
        "rand": filled(source.random),
        "randn": filled(source.gauss),
        "randint": randint,
        "randperm": randperm,
    }


def _of_numpy(source: _Quantiles, numpy: Any) -> dict[str, Callable[..., Any]]:
    def filled(draw: Callable[[], float], size: Any, dtype: Any = float) -> Any:
        if size is None:
            return draw()
        shape = (size,) if isinstance(size, int) else tuple(size)
        return numpy.array([draw() for _ in range(math.prod(shape))], dtype=dtype).reshape(shape)

    def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return low + (high - low) * filled(source.random, size)

    def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return loc + scale * filled(source.gauss, size)

    def randint(low: int, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return filled(lambda: low + source._randbelow(high - low), size, dtype)

    def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        items = numpy.arange(a) if isinstance(a, int) else numpy.asarray(a)
        if p is not None:
            raise NotImplementedError("weights")
        if replace:
            return items[filled(lambda: source._randbelow(len(items)), size, int)]
        return items[source.order(len(items))[: 1 if size is None else math.prod(numpy.atleast_1d(size))]]

    def permutation(x: Any) -> Any:
        items = numpy.arange(x) if isinstance(x, int) else numpy.asarray(x)
        return items[source.order(len(items))]

    def random_sample(size: Any = None) -> Any:
        return filled(source.random, size)

    return {
        "choice": choice,
        "normal": normal,
        "permutation": permutation,
        "rand": lambda *size: random_sample(size or None),
        "randint": randint,
        "randn": lambda *size: filled(source.gauss, size or None),
        "random": random_sample,
        "random_sample": random_sample,
        "standard_normal": lambda size=None: filled(source.gauss, size),
        "uniform": uniform,
    }
