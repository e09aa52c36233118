"""Numbers are compared piece by piece, and what a call costs decides how many calls are made."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from exportlens.export.models import proposals_for
from exportlens.export.request import ExportRequest
from exportlens.export.worker import comparing
from exportlens.export.worker.cases import LARGE_BYTES, Cost
from exportlens.export.worker.comparing import compare_leaf, forward_only, needs_what_is_kept

from .conftest import Runner

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("expected", "actual", "error", "relative", "equal"),
    [
        ([1.0, -4.0], [1.0, -4.0], 0.0, 0.0, True),
        ([0.0, 0.0], [0.0, -0.0], 0.0, None, True),
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF], 0.0, 0.0, True),
        ([1.0, -4.0], [1.5, -4.0], 0.5, 0.125, False),
        ([1.0, -4.0], [1.0, -4.0 - 2**-20], 2**-20, 2**-22, True),
        ([1.0, INF], [NAN, INF], INF, INF, False),
        ([1.0, INF], [1.0, -INF], INF, INF, False),
        ([INF, 2.0], [5.0, 2.0], INF, INF, False),
        ([1, 2, 3], [1, 5, 9], 6.0, None, False),
        ([True, False], [True, True], 1.0, None, False),
        ([3 + 4j, 0], [3 + 4j, 1j], 1.0, 0.2, False),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_numbers(
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    expected: list[float],
    actual: list[float],
    error: float,
    relative: float | None,
    equal: bool,
) -> None:
    """Whatever the pieces are: NaN equals NaN and nothing else, and magnitudes are those of finite numbers."""
    monkeypatch.setattr(comparing, "PIECE", piece)
    found = compare_leaf("output 0", torch.tensor(expected), torch.tensor(actual))
    assert (found.max_abs_error, found.max_rel_error, found.equal) == (error, relative, equal)
    assert bool(found.why) is not equal


def test_what_a_call_costs_decides_on_cases_and_sizes() -> None:
    example = ((torch.zeros(100),), {})
    assert not Cost(0.1, 1000).is_high and Cost(2.0, 1000).is_high and Cost(0.1, LARGE_BYTES + 1).is_high
    assert Cost(1e-4, 400).largest_elements(*example) == 20_000_000
    assert Cost(1e-4, 1 << 28).largest_elements(*example) == 400
    assert Cost(60.0, 1 << 40).largest_elements(*example) == 100


def test_only_what_needs_a_backward_pass_is_called_again() -> None:
    layer = torch.nn.Linear(3, 3)
    x = torch.randn(2, 3)

    def own_gradient() -> None:
        try:
            torch.autograd.grad(layer(x).tanh().sum(), layer.weight)
        except RuntimeError as error:
            raise ValueError("no gradient") from error

    calls = {
        "own": (own_gradient, True),
        "func": (lambda: torch.func.grad(lambda v: layer(v).tanh().sum())(x), True),
        "other": (lambda: x.view(7), False),
    }
    for call, again in calls.values():
        with pytest.raises((RuntimeError, ValueError)) as caught, forward_only():
            call()
        assert needs_what_is_kept(caught.value) is again


@pytest.mark.parametrize(("seconds", "calls"), [(0, 3), (3, 2)])
def test_a_guess_that_fails_is_not_called_again(
    worker: Runner, tmp_path: Path, seconds: float, calls: int
) -> None:
    """Once on fake tensors, once with numbers, and once, where it is quick, for the values at the line that is told."""
    path = tmp_path / "net.py"
    path.write_text(
        dedent(
            """
            import time

            import torch
            from torch import nn

            class Net(nn.Module):
                def forward(self, x: int, y: int):
                    print("called", flush=True)
                    time.sleep({seconds})
                    raise ValueError("never")
            """
        ).format(seconds=seconds)
    )
    request = ExportRequest(f"{path}:Net", mode="non-strict", targets=())
    report = worker.run(worker.session.run(replace(request, proposals=proposals_for(request)[:1])))
    assert report.failure is not None and report.failure.kind == "inputs"
    assert report.log.count("called") == calls, report.log
