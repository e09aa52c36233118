"""Before and after: each pair under cases/ is what mending makes of a text, and torch agrees that both are
the same.

A case is a file with two parts; the lines `# inputs:` before them are expressions, one call each, that
reach every branch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests import records
from tests.rewriting.driving import assert_programs_equal
from tests.rewriting.exported import RECORD, fingerprint
from tests.rewriting.fixing_all import mend

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
GRADIENTS_OFF = ("no_grad", "set_grad_enabled", "inference_mode")
# What raises where eager compiles: of two while_loops that carry tensors of other ranks in the same place, torch 2.13 takes the sizes
# in the second one for symbols, which a torch.cond in it cannot give as they came.
NOT_COMPILED = {"found_or_not_behind_a_loop"}
# Those that are exported as one module: most of what an export of a small one takes is not for its content.
TOGETHER = 8
# Of those that torch has exported as they are, one group in so many is exported again, in one mode.
SAMPLE = 6


def grouped(cases: list[Path]) -> list[list[Path]]:
    """Beside code without gradients torch exports no branch in a branch."""
    apart = [
        [case for case in cases if any(word in case.read_text() for word in GRADIENTS_OFF) is off]
        for off in (False, True)
    ]
    return [kind[first : first + TOGETHER] for kind in apart for first in range(0, len(kind), TOGETHER)]


KNOWN = records.read(RECORD)
NEW = [case for case in CASES if KNOWN.get(case.stem) != fingerprint(case)]
GROUPS = [(group, (True, False)) for group in grouped(NEW)]
GROUPS += [
    (group, (number % 2 == 0,))
    for number, group in enumerate(grouped([case for case in CASES if case not in NEW])[::SAMPLE])
]
AFTER = "# ---- after ----\n"
POSITIVE = torch.tensor([[0.5, 1.0, 2.0, 0.1], [0.2, 0.3, 1.5, 0.7], [1.1, 0.9, 0.4, 0.6]])
MIXED = torch.tensor([[0.5, -1.0, 2.0, -0.1], [0.2, -0.3, -1.5, 0.7], [-1.1, 0.9, 0.4, -0.6]])
STANDARD = [(POSITIVE,), (-POSITIVE,), (MIXED,), (MIXED * 10,), (torch.zeros(3, 4),)]


def read(case: Path) -> tuple[str, str, list[tuple[Any, ...]]]:
    text = case.read_text(encoding="utf-8")
    before, _, after = text.partition(AFTER)
    calls = [line.removeprefix("# inputs:") for line in before.splitlines() if line.startswith("# inputs:")]
    names = {"torch": torch, "P": POSITIVE, "N": -POSITIVE, "X": MIXED}
    inputs = [eval(call, names) for call in calls] or STANDARD
    return before, after, inputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_text(case: Path) -> None:
    """What mending ends with is left as it is by another round: that is where it ends."""
    before, after, _ = read(case)
    assert mend(before).text == after


@pytest.mark.parametrize(
    ("cases", "modes"), GROUPS, ids=["+".join(case.stem for case in cases) for cases, _ in GROUPS]
)
def test_torch_agrees(cases: list[Path], modes: tuple[bool, ...]) -> None:
    read_cases = [read(case) for case in cases]
    pairs = [(before, after) for before, after, _ in read_cases]
    # torch.cond compiles in eager, which `make test` has no time for.
    compiled = records.ALL and not NOT_COMPILED & {case.stem for case in cases}
    assert_programs_equal(pairs, [inputs for _, _, inputs in read_cases], modes, compiled)
