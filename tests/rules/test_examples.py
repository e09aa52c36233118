"""Each rule's examples, exported for real: bad ends as stated, good exports and equals eager.

How the exports ended is on record (`python -m tests.rules.test_examples`): those of new or changed examples run, and of
the others one in a few; `make pairs` runs all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from exportlens.outcome import Mode, Result, TorchVersion
from exportlens.proof.example import Prover
from exportlens.rule import Example, Rule, registry

from tests import records

RECORD = Path(__file__).with_name("exported.json")
KNOWN = records.read(RECORD)
# Of the examples whose ends are on record, one in so many is exported again.
SAMPLE = 3
EXAMPLES = [
    (rule, number, example) for rule in registry() for number, example in enumerate(rule.examples, start=1)
]
CASES = [pytest.param(each, id=f"{each[0].code}-{each[1]}") for each in EXAMPLES]

# How a proof's result reads in the words of an outcome. A value frozen at export and a wrong number look
# alike from
# outside; where freezing is only seen in what the program would do later, the export itself looks sound.
ENDS = {
    Result.FAILS: {"fails"},
    Result.WRONG: {"differs"},
    Result.BAKED: {"differs"},
    Result.OK: {"ok"},
}


def proved(prover: Prover, text: str, example: Example) -> dict[Mode, tuple[str, str]]:
    """How the export of `text` ended in each mode, and why, and "no eager" where it did not run before."""
    return {
        mode: (proof.result + (", no eager" if proof.eager else ""), proof.detail)
        for mode, proof in prover.prove(text, example).items()
    }


def recorded(text: str, example: Example, ends: dict[Mode, tuple[str, str]]) -> str:
    """A line of the record."""
    return "; ".join([records.fingerprint(text, repr(example)), *(ends[mode][0] for mode in Mode)])


def ends(
    prover: Prover, which: str, position: int, text: str, example: Example
) -> dict[Mode, tuple[str, str]]:
    """How `text`, of the example at `position` of EXAMPLES, ends: as on record where it is one of those that need not run again."""
    fingerprint, *known = KNOWN.get(which, "-").split("; ")
    old = fingerprint == records.fingerprint(text, repr(example))
    if old and position % SAMPLE:
        return {mode: (end, "as on record") for mode, end in zip(Mode, known, strict=True)}
    now = proved(prover, text, example)
    if old:
        assert [end for end, _ in now.values()] == known, f"on record {known}, now {now}"
    return now


@pytest.mark.parametrize("case", CASES)
def test_bad_example_ends_as_stated(prover: Prover, case: tuple[Rule, int, Example]) -> None:
    rule, number, example = case
    stated = example.outcome or rule.outcome
    version = TorchVersion.parse(prover.torch)
    found = ends(prover, f"{rule.code}-{number} bad", EXAMPLES.index(case), example.bad, example)
    for mode, (end, detail) in found.items():
        # What a target refuses, torch exports.
        wanted = {"ok"} if rule.targets else ENDS[stated.result(version, mode)]
        result, _, eager = end.partition(", ")
        assert result in wanted, f"{mode.value}: {result} instead of {wanted}: {detail}"
        if eager:
            # torch.cond and its kin trace even in eager; CUDA may be missing here.
            assert rule.code[:4] in ("EXL7", "EXL8"), f"the bad example does not run in eager: {detail}"


@pytest.mark.parametrize("case", CASES)
def test_good_example_exports_and_equals_eager(prover: Prover, case: tuple[Rule, int, Example]) -> None:
    rule, number, example = case
    found = ends(prover, f"{rule.code}-{number} good", EXAMPLES.index(case), example.good, example)
    for mode, (end, detail) in found.items():
        assert end.partition(", ")[0] == "ok", f"{mode.value}: {end}: {detail}"


def test_every_rule_has_examples() -> None:
    assert [rule.code for rule in registry() if not rule.examples] == []


def test_a_text_that_does_not_run_is_no_proof(prover: Prover) -> None:
    example = Example(bad="def forward(self, x): return undefined_name", good="")
    assert {proof.eager != "" for proof in prover.prove(example.bad, example).values()} == {True}
    sound = Example(bad="def forward(self, x): return x + 1", good="")
    assert {mode: proof.result for mode, proof in prover.prove(sound.bad, sound).items()} == dict.fromkeys(
        Mode, "ok"
    )


def record() -> None:
    """Export all examples, and keep how that ended."""
    found = {}
    with Prover(Path(sys.executable)) as prover:
        for rule, number, example in EXAMPLES:
            for kind, text in (("bad", example.bad), ("good", example.good)):
                found[f"{rule.code}-{number} {kind}"] = recorded(text, example, proved(prover, text, example))
    records.write(RECORD, found)


if __name__ == "__main__":
    record()
