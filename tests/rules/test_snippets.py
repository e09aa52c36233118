"""Code shapes beside the rules' examples: what must be flagged is, and what must not is not."""

from __future__ import annotations

import pytest
from exportlens.finding import Severity

from tests.rules.checking import findings
from tests.rules.snippets import (
    autocast,
    begun_before,
    begun_by_methods,
    control_flow,
    declared_sizes,
    kept_state,
    named_state,
    object_operators,
    others,
    python_values,
    set_outside,
    shared_state,
)


def _cases(*tables: dict[str, list[str]]) -> list[object]:
    return [
        pytest.param(code, text, id=f"{code}-{number}")
        for table in tables
        for code, texts in table.items()
        for number, text in enumerate(texts, start=1)
    ]


@pytest.mark.parametrize(
    ("code", "text"),
    _cases(
        autocast.MUST,
        begun_before.MUST,
        begun_by_methods.MUST,
        control_flow.MUST,
        others.MUST,
        declared_sizes.MUST,
        named_state.MUST,
        object_operators.MUST,
        kept_state.MUST,
        shared_state.MUST,
        python_values.MUST,
        set_outside.MUST,
    ),
)
def test_flagged(code: str, text: str) -> None:
    assert code in {finding.code for finding in findings(text)}


@pytest.mark.parametrize(
    ("code", "text"),
    _cases(
        autocast.MUST_NOT,
        begun_before.MUST_NOT,
        begun_by_methods.MUST_NOT,
        control_flow.MUST_NOT,
        others.MUST_NOT,
        declared_sizes.MUST_NOT,
        named_state.MUST_NOT,
        object_operators.MUST_NOT,
        kept_state.MUST_NOT,
        shared_state.MUST_NOT,
        python_values.MUST_NOT,
        set_outside.MUST_NOT,
    ),
)
def test_not_flagged(code: str, text: str) -> None:
    """Neither by the rule that it is near to, nor as an error by any other."""
    wrong = [
        (finding.code, finding.message)
        for finding in findings(text)
        if finding.code == code or finding.severity is Severity.ERROR
    ]
    assert wrong == []
