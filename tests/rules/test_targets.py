"""Rules on hardware targets speak where such a target is configured, and of what that very target refuses."""

from __future__ import annotations

import importlib.resources
import json

import pytest
from exportlens.export.registry import known_targets
from exportlens.rule import concerns, registry

from tests.rules.checking import findings

TABLE = importlib.resources.files("exportlens_rules.targets") / "refused.json"
INVERSE = "def forward(self, x):\n    return torch.linalg.inv(x.T @ x)"


def codes(text: str, *targets: str) -> list[str]:
    return [finding.code for finding in findings(text, targets=targets)]


def test_nothing_is_said_where_no_target_is_configured() -> None:
    assert codes(INVERSE) == []


def test_a_refused_function_is_found_for_its_target_alone() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    refusing = {target for target, row in table.items() if "torch.linalg.inv" in row["refused"]}
    assert "coreml" in refusing
    for target in known_targets():
        assert codes(INVERSE, target) == (["EXL802"] if target in refusing else []), target


@pytest.mark.parametrize("call", ["x.inverse()", "torch.linalg.inv(x)"])
def test_a_method_counts_as_the_function_of_its_name(call: str) -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    named = "torch.inverse" if "inverse()" in call else "torch.linalg.inv"
    wanted = ["EXL802"] if named in table["coreml"]["refused"] else []
    assert codes(f"def forward(self, x):\n    x = torch.relu(x)\n    return {call}", "coreml") == wanted


def test_every_target_that_a_rule_names_exists() -> None:
    for rule in registry():
        for pattern in rule.targets:
            assert any(concerns((pattern,), (name,)) for name in known_targets()), (rule.code, pattern)
