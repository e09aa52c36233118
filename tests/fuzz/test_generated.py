"""Generated modules, mended and judged by torch: they parse, fixing ends, they export and equal the original.

`make test` mends and exports a thousand distinct ones; `make fuzz` sets EXPORTLENS_FUZZ to how many more, with new
seeds. Several are exported as one module: most of what an export of a small module takes is not for its content.
"""

from __future__ import annotations

import contextlib
import os
import random

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.programs import modules, wild_modules
from tests.rewriting.driving import assert_programs_equal
from tests.rewriting.fixing_all import mend

# Distinct programs of one test that are mended to the end and exported, and how many of them as one module.
BATCH = 63
TOGETHER = 16
MORE = int(os.environ.get("EXPORTLENS_FUZZ", "0"))
# New seeds in each run, the same ones in all of its processes: pytest-xdist names the run.
RUN = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
SEEDS = [RUN.randrange(2**31) for _ in range(MORE // BATCH)] if MORE else list(range(14))
# How many of the programs must be mended to the end: the others are refused, for aliases mostly, and of the wild ones for
# what leaves loops.
SHARE_MENDED = 0.7
SHARE_OF_WILD = 0.5

torch.set_num_threads(1)


def inputs() -> list[tuple[torch.Tensor]]:
    """Values on both sides of the conditions' thresholds."""
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return [(x.abs() + 0.1,), (-x.abs() - 0.1,), (x,), (x * 4,), (torch.zeros(3, 4),)]


class _Enough(Exception):
    """All programs are there: nothing else ends what hypothesis generates before its time."""


def distinct(
    batch: int, programs: SearchStrategy[str], share: float
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """BATCH different programs, each with what mending made of it, and those that were mended in part."""
    met: set[str] = set()
    pairs: dict[str, str] = {}
    others: dict[str, str] = {}

    @seed(batch)
    @settings(
        max_examples=5 * BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(programs)
    def run(text: str) -> None:
        if len(pairs) == BATCH:
            raise _Enough
        if text in met:
            return
        met.add(text)
        mended = mend(text)
        compile(mended.text, "mended", "exec")
        if not mended.refusals:
            pairs[text] = mended.text
        elif mended.text != text:
            others[text] = mended.text

    with contextlib.suppress(_Enough):
        run()
    assert len(pairs) == BATCH, "the generator repeats itself"
    assert len(pairs) >= share * len(met)
    return list(pairs.items()), list(others.items())


@pytest.mark.parametrize("batch", SEEDS)
def test_mended_programs_export_and_equal_the_original(batch: int) -> None:
    pairs, _ = distinct(batch, modules(), SHARE_MENDED)
    for number, first in enumerate(range(0, BATCH, TOGETHER)):
        # An eighth goes through non-strict mode, which takes two to three times as long: it compiles each torch.cond
        # by itself.
        part = pairs[first : first + TOGETHER]
        assert_programs_equal(part, [inputs()] * len(part), modes=((batch + number) % 8 != 0,))


@pytest.mark.parametrize("batch", SEEDS[: len(SEEDS) // 4] if MORE else SEEDS[:2])
def test_loops_that_are_left_in_all_ways(batch: int) -> None:
    """Those that are mended in part are not to be exported, and still do in eager what they did."""
    pairs, others = distinct(batch, wild_modules(), SHARE_OF_WILD)
    for first in range(0, BATCH, TOGETHER):
        part = pairs[first : first + TOGETHER]
        assert_programs_equal(part, [inputs()] * len(part), modes=((batch + first) % 8 != 0,))
        rest = others[first : first + TOGETHER]
        if rest:
            assert_programs_equal(rest, [inputs()] * len(rest), modes=())
