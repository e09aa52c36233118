"""Each rule's examples, exported for real: bad ends as stated, good exports and equals eager."""

from __future__ import annotations

import pytest
from exportlens.outcome import Mode, Result, TorchVersion
from exportlens.proof.example import Prover
from exportlens.rule import Example, Rule, registry

CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in registry()
    for number, example in enumerate(rule.examples, start=1)
]

# How a proof's result reads in the words of an outcome. A value frozen at export and a wrong number look
# alike from
# outside; where freezing is only seen in what the program would do later, the export itself looks sound.
ENDS = {
    Result.FAILS: {"fails"},
    Result.WRONG: {"differs"},
    Result.BAKED: {"differs"},
    Result.OK: {"ok"},
}


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_bad_example_ends_as_stated(prover: Prover, rule: Rule, example: Example) -> None:
    stated = example.outcome or rule.outcome
    version = TorchVersion.parse(prover.torch)
    for mode, proof in prover.prove(example.bad, example).items():
        # What a target refuses, torch exports.
        wanted = {"ok"} if rule.targets else ENDS[stated.result(version, mode)]
        assert proof.result in wanted, f"{mode.value}: {proof.result} instead of {wanted}: {proof.detail}"
        if proof.eager:
            # torch.cond and its kin trace even in eager; CUDA may be missing here.
            assert rule.code[:4] in ("EXL7", "EXL8"), f"the bad example does not run in eager: {proof.eager}"


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_good_example_exports_and_equals_eager(prover: Prover, rule: Rule, example: Example) -> None:
    for mode, proof in prover.prove(example.good, example).items():
        assert proof.result == "ok", f"{mode.value}: {proof.result}: {proof.detail}"


def test_every_rule_has_examples() -> None:
    assert [rule.code for rule in registry() if not rule.examples] == []


def test_a_text_that_does_not_run_is_no_proof(prover: Prover) -> None:
    example = Example(bad="def forward(self, x): return undefined_name", good="")
    assert {proof.eager != "" for proof in prover.prove(example.bad, example).values()} == {True}
    sound = Example(bad="def forward(self, x): return x + 1", good="")
    assert {mode: proof.result for mode, proof in prover.prove(sound.bad, sound).items()} == dict.fromkeys(
        Mode, "ok"
    )
