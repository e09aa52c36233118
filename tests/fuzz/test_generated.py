"""Generated modules, mended and judged by torch: they parse, fixing ends, they export and equal the original.

`make test` runs a thousand and more; `make fuzz` sets EXPORTLENS_FUZZ to how many more, with new seeds.
"""

from __future__ import annotations

import functools
import os
import random

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.programs import modules
from tests.rewriting.driving import assert_program_equals
from tests.rewriting.fixing_all import mend

BATCH = 60
MORE = int(os.environ.get("EXPORTLENS_FUZZ", "0"))
# New seeds in each run, the same ones in all of its processes: pytest-xdist names the run.
RUN = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
SEEDS = [RUN.randrange(2**31) for _ in range(MORE // BATCH)] if MORE else list(range(17))
# How many of a batch's programs must be mended to the end: the others are refused, for aliases mostly.
SHARE_MENDED = 0.7

torch.set_num_threads(1)


def inputs() -> list[tuple[torch.Tensor]]:
    """Values on both sides of the conditions' thresholds."""
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return [(x.abs() + 0.1,), (-x.abs() - 0.1,), (x,), (x * 4,), (torch.zeros(3, 4),)]


@pytest.mark.parametrize("batch", SEEDS)
def test_mended_programs_export_and_equal_the_original(batch: int) -> None:
    mended_programs = 0
    programs = 0
    exported: set[str] = set()
    mend_once = functools.cache(mend)  # a text may come more than once

    @seed(batch)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(modules())
    def run(text: str) -> None:
        nonlocal mended_programs, programs
        programs += 1
        mended = mend_once(text)
        compile(mended.text, "mended", "exec")
        if mended.refusals:
            return
        mended_programs += 1
        # One that comes again was exported; half of all go through strict mode, half through the other.
        if mended.text not in exported:
            exported.add(mended.text)
            assert_program_equals(text, mended.text, inputs(), strict=len(exported) % 2 == 0)

    run()
    assert mended_programs >= SHARE_MENDED * programs
