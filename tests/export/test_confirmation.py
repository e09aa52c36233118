"""What says "it exports" and is not true: each way is caught, on its line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from exportlens.export.findings import runtime_codes
from exportlens.export.models import proposals_for, with_dynamic_shapes
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.text import render_report

from .conftest import MODELS, Runner

TRAPS = MODELS / "traps.py"
LINES = TRAPS.read_text().splitlines()
INPUT = "(torch.randn(3, 4),)"


def lines_of(report: Report, code: str) -> set[str]:
    """The source lines, stripped, that findings of this code stand on."""
    return {LINES[f.range.start.line].strip() for f in report.findings if f.code == code}


@pytest.mark.parametrize(
    ("name", "mode", "line"),
    [
        ("FrozenNumber", "non-strict", "return y * random.random()"),
        ("FrozenClock", "non-strict", "return x + time.time() % 1"),
        ("FrozenCounter", "non-strict", "return x * self.calls"),
        ("PlainTensor", "non-strict", "self.mean = 0.5 * self.mean + x.mean(0)"),
        ("DataWrite", "strict", "y.data.mul_(2)"),
        ("RemembersFirst", "non-strict", 'self.cache["mean"] = x.mean(0)'),
    ],
)
def test_a_program_that_is_not_eager_is_caught_on_its_line(
    worker: Runner, name: str, mode: str, line: str
) -> None:
    report = worker.export(f"traps.py:{name}", INPUT, mode=mode)
    assert report.failure is not None and report.failure.kind in ("mismatch", "run"), report.failure
    assert line in lines_of(report, "EXP003") | lines_of(report, "EXP004")
    assert not report.ok and report.exit_code == 1


def test_a_clock_is_named_as_the_cause(worker: Runner) -> None:
    report = worker.export("traps.py:FrozenClock", INPUT, mode="non-strict")
    assert report.comparison is not None
    assert any("eager itself gives different results" in note for note in report.comparison["notes"])


@pytest.mark.parametrize("name", ["HeldByAnObject", "HeldInAList"])
def test_tensors_held_by_an_object_are_caught(worker: Runner, name: str) -> None:
    """Tracing leaves what the program should have kept in the object; a second call shows that it is lost."""
    report = worker.export(f"traps.py:{name}", INPUT, mode="non-strict")
    assert report.failure is not None and report.failure.kind in ("mismatch", "run"), report.failure
    [finding] = report.findings
    assert finding.code in ("EXP003", "EXP004") and "kept" in LINES[finding.range.start.line]
    cases = {case["case"]: case["status"] for case in (report.comparison or {}).get("cases", [])}
    assert cases["second call"] == "different"


def test_a_dropped_update_of_a_buffer_is_caught(worker: Runner) -> None:
    """No output shows it: the buffers are compared after all calls."""
    report = worker.export("traps.py:AssignsBuffer", INPUT, mode="both")
    strict, non_strict = report.modes
    assert non_strict.ok and strict.failure is not None and strict.failure.kind == "mismatch"
    assert "buffer seen" in strict.failure.message
    assert all("same_as" not in (mode.comparison or {}) for mode in report.modes)


def test_a_buffer_is_compared_over_two_calls(worker: Runner) -> None:
    report = worker.export("traps.py:Counts", INPUT, mode="both")
    assert report.ok, report.failure
    cases = {case["case"]: case["status"] for case in (report.comparison or {})["cases"]}
    assert cases["second call"] == "equal"
    strict, non_strict = report.modes
    assert non_strict.comparison == {
        **(strict.comparison or {}),
        "same_as": "strict",
    }  # one program: compared once
    assert "the same program as in strict mode: compared once" in render_report(report)


def test_data_dependent_control_flow_in_both_modes(worker: Runner) -> None:
    report = worker.export("traps.py:DataDependent", INPUT, mode="both")
    assert [mode.failure.kind for mode in report.modes if mode.failure] == ["export", "export"]
    assert lines_of(report, "EXP001") == {"if y.sum() > 0:"}
    [finding] = report.findings
    assert finding.data["gb"].startswith("GB") and finding.url and finding.data["gb"].lower() in finding.url
    assert "Data-dependent branching" in finding.data["torch"]
    assert "\n" not in finding.message and len(finding.message) < 300
    assert "`y.sum() > 0`" in finding.message and "torch.cond" in finding.message
    assert finding.data["values"] == "y: float32[3, 4]"


@pytest.mark.parametrize("mode", ["strict", "non-strict"])
def test_a_broken_range_is_blamed_on_the_guard(worker: Runner, mode: str) -> None:
    shapes = "{'x': {0: Dim('batch', max=64)}}"
    report = worker.export("traps.py:ShapeBranch", INPUT, mode=mode, dynamic_shapes=shapes)
    assert report.failure is not None and report.failure.kind == "export"
    assert lines_of(report, "EXP002") == {"if y.shape[0] > 16:"}
    [finding] = report.findings
    assert "max=16" in finding.data["suggested_fixes"] and "x.shape[0] <= 16" in finding.message


def test_both_ends_and_the_middle_of_a_range_are_run(worker: Runner) -> None:
    shapes = "{'x': {0: Dim('batch', min=1, max=64)}}"
    report = worker.export("traps.py:Dynamic", INPUT, mode="non-strict", dynamic_shapes=shapes)
    assert report.ok, report.failure
    names = " ".join(case["case"] for case in (report.comparison or {})["cases"])
    assert "x[0]=1)" in names and "x[0]=32)" in names and "x[0]=64)" in names


def test_dims_that_a_model_suggests_are_run_at_both_ends(worker: Runner) -> None:
    request = ExportRequest(f"{TRAPS}:Reads", ModelInputs(dynamic_shapes="auto"), targets=())
    request = with_dynamic_shapes(replace(request, proposals=proposals_for(request)))
    report = worker.run(worker.session.run(request))
    assert report.ok, report.failure
    names = " ".join(case["case"] for case in (report.comparison or {})["cases"])
    assert "ids[0]=1, ids[1]=2)" in names and "ids[0]=64, ids[1]=24)" in names


def test_an_automatic_dim_that_became_static_is_told(worker: Runner) -> None:
    report = worker.export(
        "traps.py:Dynamic", "(torch.randn(1, 4),)", mode="non-strict", dynamic_shapes="{'x': {0: Dim.AUTO}}"
    )
    assert report.failure is not None and report.failure.kind == "mismatch"
    assert "fixes it to 1" in report.failure.message and "2 or more" in report.failure.message


def test_a_dim_with_an_example_of_one_fails_and_says_why(worker: Runner) -> None:
    report = worker.export(
        "traps.py:Dynamic",
        "(torch.randn(1, 4),)",
        mode="both",
        dynamic_shapes="{'x': {0: Dim('batch')}}",
    )
    assert [mode.failure.kind for mode in report.modes if mode.failure] == ["export", "export"]
    [finding] = report.findings
    assert "use an example size of 2 or more" in finding.message
    assert "constant (1)" in finding.data["torch"]


def test_an_unchecked_dtype_is_noted(worker: Runner) -> None:
    """A program without arithmetic that would refuse float64 takes it silently."""
    report = worker.export("traps.py:ShapeBranch", INPUT, mode="non-strict")
    notes = (report.comparison or {})["notes"]
    assert any("float64 is taken without an error" in note for note in notes), notes


def test_random_numbers_are_compared_by_seed(worker: Runner) -> None:
    report = worker.export("traps.py:Dropout", INPUT, mode="non-strict")
    assert report.ok and (report.comparison or {})["random"]


def test_eager_that_fails_is_no_failure_of_export(worker: Runner) -> None:
    report = worker.export("traps.py:EagerFails", INPUT)
    assert report.failure is not None and report.failure.kind == "eager"
    assert lines_of(report, "EXP008") == {"return x.view(7, 7)"}


def test_a_model_that_cannot_be_made_is_told_on_its_line(worker: Runner) -> None:
    report = worker.export("unruly.py:BreaksInTheConstructor")
    assert report.failure is not None and report.failure.kind == "construct" and report.exit_code == 2
    [finding] = report.findings
    line = (MODELS / "unruly.py").read_text().splitlines()[finding.range.start.line].strip()
    assert (finding.code, line) == ("EXP009", "self.layer = nn.Linear(8, -4)")


def test_a_program_that_raises_is_told_on_its_line(worker: Runner) -> None:
    report = worker.export("unruly.py:AssertsWhileTraced", "(torch.randn(2, 8),)", mode="non-strict")
    assert report.failure is not None and report.failure.kind == "run"
    [finding] = report.findings
    line = (MODELS / "unruly.py").read_text().splitlines()[finding.range.start.line].strip()
    assert (finding.code, line) == ("EXP004", 'torch._assert_async(x.sum() > 1e9, "too small")')
    assert "too small" in finding.message


def test_what_only_a_size_beyond_the_range_shows_is_noted(worker: Runner) -> None:
    """AOTInductor takes a batch of 65 where the range ends at 64, and torch's own program does not."""
    shapes = "{'x': {0: Dim('batch', min=1, max=64)}}"
    targets = ("torch", "aoti-cpu")
    report = worker.export("traps.py:Dynamic", INPUT, dynamic_shapes=shapes, targets=targets)
    assert [target.status for target in report.targets] == ["ok", "ok"]
    notes = [[note for note in target.notes if "is taken although" in note] for target in report.targets]
    assert notes == [[], ["x[0]=65 is taken although the range ends at 64"]]


def test_draft_export_tells_the_other_failures(worker: Runner) -> None:
    report = worker.export("traps.py:TwoProblems", INPUT, mode="non-strict", draft=True)
    assert lines_of(report, "EXP001") == {"if n > 1:"}
    assert "if n > 2:" in lines_of(report, "EXP010")


@pytest.mark.parametrize(
    ("model", "inputs", "kind", "words"),
    [
        ("traps.py:Missing", INPUT, "import", "has no 'Missing'"),
        ("traps.py:Dynamic", "(torch.randn(3, 4)", "inputs", "does not evaluate"),
        ("traps.py:Dynamic", "(nothing,)", "inputs", "nothing"),
        ("traps.py:Dynamic", None, "inputs", "no example inputs"),
    ],
)
def test_what_cannot_be_run_is_explained(
    worker: Runner, model: str, inputs: str | None, kind: str, words: str
) -> None:
    report = worker.export(model, inputs)  # type: ignore[arg-type]
    assert report.failure is not None and report.failure.kind == kind
    assert words in report.failure.message
    assert report.exit_code == 2


def test_proposals_are_tried_until_one_fits(worker: Runner) -> None:
    proposals = (
        ModelInputs(inputs="(torch.randn(2, 7),)", source="the wrong one"),
        ModelInputs(inputs="(torch.randn(2, 4),)", source="the right one"),
    )
    report = worker.export("traps.py:Dynamic", None, proposals=proposals, mode="non-strict")  # type: ignore[arg-type]
    assert report.ok and report.chosen is not None and report.chosen["source"] == "the right one"


def test_the_artifact_is_moved_when_it_is_confirmed(worker: Runner, tmp_path: Path) -> None:
    report = worker.export("traps.py:Dynamic", INPUT, targets=("torch",), output=tmp_path)
    [target] = report.targets
    assert target.status == "ok" and target.artifact == tmp_path / "Dynamic.torch.pt2"
    assert target.bytes == target.artifact.stat().st_size
    words = report.to_json()
    assert words["targets"][0]["max_abs_error"] == 0.0
    keys = {"model", "torch", "mode", "ok", "failure", "findings", "comparison", "targets"}
    assert keys <= set(words)


def test_a_target_that_drops_state_is_caught_on_the_writing_line(worker: Runner) -> None:
    """AOTInductor for CPU loses buffer updates in torch 2.13: only a second call shows it."""
    report = worker.export("traps.py:Counts", INPUT, mode="non-strict", targets=("aoti-cpu",))
    [target] = report.targets
    assert target.failure is not None and target.failure.kind == "mismatch"
    assert "state between calls (seen)" in target.failure.message
    assert lines_of(report, "EXP006") == {"self.seen.add_(1)"}


def test_compiled_code_that_checks_nothing_is_noted(worker: Runner) -> None:
    report = worker.export("traps.py:ShapeBranch", INPUT, targets=("aoti-cpu",))
    [target] = report.targets
    assert target.status == "ok", target.failure
    assert any("float64 is taken" in note or "end the process" in note for note in target.notes), target.notes


def test_a_string_that_no_torch_reads_back_is_told(worker: Runner) -> None:
    """torch.export.save writes a program that returns one, and torch.export.load fails on it without a reason."""
    report = worker.export("traps.py:Says", INPUT, targets=("torch",))
    [target] = report.targets
    assert report.modes[0].ok and target.failure is not None and target.failure.kind == "lower"
    assert "returns 'plus'" in target.failure.message and "leave it out" in target.failure.message
    assert worker.export("traps.py:Tells", INPUT, targets=("torch",)).ok


def test_an_unknown_target_is_refused(worker: Runner) -> None:
    with pytest.raises(ValueError, match="no such target: abacus"):
        worker.export("traps.py:Dynamic", INPUT, targets=("abacus",))


def test_probe_tells_what_to_install(worker: Runner) -> None:
    infos = {info.name: info for info in worker.run(worker.session.probe())}
    assert infos["torch"].available
    for info in infos.values():
        assert info.purpose and info.message
        assert info.available or info.install, info


def test_every_kind_of_finding_has_its_row_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "confirmation.md").read_text()
    rows = re.findall(r"^\| (EXP\d+) \| ([a-z-]+) \|", text, re.M)
    assert dict(rows) == runtime_codes()
