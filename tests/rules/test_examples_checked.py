"""`check` on each rule's examples: the bad one carries the rule's code, the good one no error."""

from __future__ import annotations

import pytest
from exportlens.finding import Severity
from exportlens.outcome import Mode, TorchVersion
from exportlens.rule import Example, Rule, registry

from tests.rules.checking import BOTH, CURRENT, findings

CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in registry()
    for number, example in enumerate(rule.examples, start=1)
]
VERSIONS = [CURRENT, *(TorchVersion(2, minor) for minor in range(12, 3, -1))]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_bad_example_is_flagged(rule: Rule, example: Example) -> None:
    outcome = rule.measured(example.outcome or rule.outcome)
    version = next((version for version in VERSIONS if outcome.severity(version, BOTH)), None)
    if version is None:
        assert [finding.code for finding in findings(example.bad) if finding.code == rule.code] == []
        return
    if rule.targets:
        assert rule.code not in {finding.code for finding in findings(example.bad, version=version)}
    named = rule.targets[:1]
    found = {finding.code: finding for finding in findings(example.bad, version=version, targets=named)}
    assert rule.code in found, f"only {sorted(found)}"
    assert found[rule.code].severity is rule.severity(outcome, version, BOTH)


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_good_example_carries_no_error(rule: Rule, example: Example) -> None:
    found = findings(example.good, targets=rule.targets[:1])
    wrong = [finding for finding in found if finding.severity is not Severity.INFORMATION]
    assert [(finding.code, finding.message) for finding in wrong] == []


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_severity_follows_the_mode(rule: Rule, example: Example) -> None:
    outcome = example.outcome or rule.outcome
    for mode in Mode:
        for finding in findings(example.bad, modes=(mode,), targets=rule.targets[:1]):
            if finding.code == rule.code:
                assert finding.severity is rule.severity(outcome, CURRENT, (mode,))
