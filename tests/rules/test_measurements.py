"""The table of measured outcomes agrees with what rules state of current torch, and counts before it."""

from __future__ import annotations

from exportlens.measurements import measured, table
from exportlens.outcome import FAILS, OK, WRONG, Mode, Outcome, TorchVersion
from exportlens.rule import registry

from tests.rules.checking import CURRENT

STATED = Outcome(FAILS, OK, before={"2.7": (FAILS, FAILS)})


def test_a_measured_version_counts_before_what_is_stated() -> None:
    outcome = measured(STATED, [{"2.6": ("ok", "ok")}])
    assert outcome.result(TorchVersion(2, 6), Mode.NON_STRICT) is OK
    assert outcome.source(TorchVersion(2, 6), Mode.STRICT) == "measured"


def test_the_nearest_version_counts_where_none_was_measured() -> None:
    outcome = measured(STATED, [{"2.6": ("ok", "fails"), "2.13": ("fails", "ok")}])
    assert outcome.result(TorchVersion(2, 8), Mode.STRICT) is OK
    assert outcome.result(TorchVersion(2, 12), Mode.STRICT) is FAILS
    assert outcome.source(TorchVersion(2, 12), Mode.STRICT) == "measured on torch 2.13, the nearest version"


def test_the_mildest_of_several_examples_counts() -> None:
    outcome = measured(STATED, [{"2.6": ("fails", "differs")}, {"2.6": ("differs", "ok")}])
    assert outcome.result(TorchVersion(2, 6), Mode.STRICT) is WRONG
    assert outcome.result(TorchVersion(2, 6), Mode.NON_STRICT) is OK


def test_what_could_not_run_says_nothing() -> None:
    outcome = measured(STATED, [{"2.6": ("broken", "ok")}])
    assert outcome.result(TorchVersion(2, 6), Mode.STRICT) is FAILS
    assert outcome.source(TorchVersion(2, 6), Mode.STRICT) == "stated"


def test_the_shipped_table_agrees_with_what_rules_state() -> None:
    rows = table("exportlens_rules")
    known = {f"{rule.code}-{number}" for rule in registry() for number in range(1, len(rule.examples) + 1)}
    assert set(rows) <= known
    for rule in registry():
        for outcome in [rule.outcome, *(example.outcome for example in rule.examples if example.outcome)]:
            for mode in Mode:
                full = rule.measured(outcome)
                if "2.13" in full.measured:
                    stated = outcome.strict if mode is Mode.STRICT else outcome.non_strict
                    assert full.result(CURRENT, mode) is stated, (rule.code, mode)
