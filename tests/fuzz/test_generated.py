"""Generated modules, mended and judged by torch: they parse, fixing ends, they export and equal the original.

`make test` runs a thousand and more; `make fuzz` sets EXPORTLENS_FUZZ to how many more, with new seeds.
"""

from __future__ import annotations

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
SEEDS = [random.randrange(2**31) for _ in range(MORE // BATCH)] if MORE else list(range(17))
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
    exported: set[tuple[str, bool]] = set()

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
        mended = mend(text)
        compile(mended.text, "mended", "exec")
        if mended.refusals:
            return
        mended_programs += 1
        # A text may come more than once: each time in the mode that it has not been exported in yet.
        strict = programs % 2 == 0
        if (mended.text, strict) in exported:
            strict = not strict
        if (mended.text, strict) not in exported:
            exported.add((mended.text, strict))
            assert_program_equals(text, mended.text, inputs(), strict)

    run()
    assert mended_programs >= SHARE_MENDED * programs
