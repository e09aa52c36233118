"""Targets that run here are run; the others are held to their probe and its message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from exportlens.export.registry import known_targets
from exportlens.export.session import probe_targets
from exportlens.lsp.convert import to_diagnostic
from exportlens.source.positions import Lines
from lsprotocol.types import DiagnosticSeverity

from .conftest import MODELS, Export

BATCH = "{'x': {0: Dim('batch', min=1, max=64)}}"
IMAGES = "(torch.randn(20, 3, 16, 16),)"
FEW_IMAGES = "(torch.randn(2, 3, 16, 16),)"
LINES = (MODELS / "traps.py").read_text().splitlines()
NAMES = {
    "torch",
    "aoti-cpu",
    "aoti-cuda",
    *(f"executorch-{backend}" for backend in ("portable", "xnnpack", "vulkan", "coreml", "ethos-u", "qnn")),
    *("onnxruntime-cpu", "onnxruntime-cuda", "openvino-cpu", "openvino-gpu", "openvino-npu"),
    *("coreml", "litert", "tensorrt", "tvm-llvm"),
    *(f"iree-{kind}" for kind in ("llvm-cpu", "cuda", "rocm", "vulkan", "metal", "android", "riscv64")),
}


def test_every_target_is_registered() -> None:
    assert set(known_targets()) >= NAMES
    for name, place in known_targets().items():
        assert Path(place.file).is_file() and place.purpose, name


def test_targets_that_are_not_here_say_what_to_do() -> None:
    infos = {info.name: info for info in probe_targets(Path(sys.executable))}
    assert set(infos) >= NAMES
    for info in infos.values():
        assert info.available or (info.message and info.install), info


@pytest.mark.parametrize(
    ("environment", "targets"),
    [
        ("onnxruntime", ("onnxruntime-cpu", "torch")),
        ("executorch", ("executorch-xnnpack", "executorch-portable")),
        ("openvino", ("openvino-cpu",)),
        ("iree", ("iree-llvm-cpu",)),
        ("tvm", ("tvm-llvm",)),
    ],
)
def test_a_model_with_a_dynamic_batch_runs_and_equals_eager(
    export: Export, environment: str, targets: tuple[str, ...]
) -> None:
    """Each in the environment of its packages, from an export in another one."""
    report = export(environment, "traps.py:Convolves", IMAGES, *targets, dynamic_shapes=BATCH)
    for found in report.targets:
        assert found.status == "ok", found.failure
        assert found.comparison is not None and found.comparison["max_abs_error"] < 1e-4
        names = " ".join(case["case"] for case in found.comparison["cases"] if case["status"] == "equal")
        assert "x[0]=1)" in names and "x[0]=64)" in names
        assert found.artifact is not None and found.artifact.is_file() and found.bytes


@pytest.mark.parametrize(
    ("environment", "target"),
    [
        ("executorch", "executorch-portable"),
        ("openvino", "openvino-cpu"),
        ("iree", "iree-llvm-cpu"),
        ("tvm", "tvm-llvm"),
        ("coreml", "coreml"),
        ("litert", "litert"),
    ],
)
def test_inputs_that_export_has_fixed_stop_no_target(export: Export, environment: str, target: str) -> None:
    """A string, a number, and what torch.tensor leaves of a list."""
    report = export(environment, "traps.py:Described", "(torch.randn(3, 4), 'sum', 2)", target)
    [found] = report.targets
    assert found.status == "ok", found.failure
    if target == "coreml":
        assert "lowered, not run here" in found.notes
    else:
        assert found.comparison is not None and found.comparison["equal"]


@pytest.mark.parametrize(
    ("environment", "target"),
    [
        ("executorch", "executorch-portable"),
        ("onnxruntime", "onnxruntime-cpu"),
        ("onnxruntime", "aoti-cpu"),
        ("openvino", "openvino-cpu"),
        ("iree", "iree-llvm-cpu"),
        ("tvm", "tvm-llvm"),
        ("coreml", "coreml"),
        ("litert", "litert"),
    ],
)
@pytest.mark.parametrize("name", ["Says", "Tells"])
def test_outputs_that_export_has_fixed_stop_no_target(
    export: Export, environment: str, target: str, name: str
) -> None:
    """Strings, numbers and None stay out of the file where the target has no place for them; a note says which."""
    report = export(environment, f"traps.py:{name}", "(torch.randn(3, 4),)", target)
    [found] = report.targets
    assert found.status == "ok", found.failure
    if target != "coreml":
        assert found.comparison is not None and found.comparison["equal"]
    if name == "Says":
        assert any("fixed by export" in note for note in found.notes)


def test_inputs_and_outputs_are_those_of_the_file(export: Export) -> None:
    """LiteRT's conversion narrows int64 inputs to int32, and its files sort outputs by name."""
    report = export("litert", "traps.py:Names", "(torch.randint(0, 50, (2, 8)),)", "litert")
    [found] = report.targets
    assert found.status == "ok", found.failure
    assert found.comparison is not None and found.comparison["equal"]
    assert any("input 0 is int64 in the model and int32 in the file" in note for note in found.notes)


@pytest.mark.parametrize(("environment", "target"), [("iree", "iree-llvm-cpu"), ("coreml", "coreml")])
def test_an_operator_that_a_target_lacks_is_taken_apart(
    export: Export, environment: str, target: str
) -> None:
    """torch knows what it is made of: the target is asked again with the parts."""
    report = export(environment, "traps.py:Steps", "(torch.randn(3, 4),)", target)
    [found] = report.targets
    assert found.status == "ok", found.failure


def test_a_range_that_lowering_narrows_is_caught(export: Export) -> None:
    """XNNPACK plans memory from the example: from a batch of 2, the artifact takes 1 to 15 only."""
    report = export(
        "executorch", "traps.py:Convolves", FEW_IMAGES, "executorch-xnnpack", dynamic_shapes=BATCH
    )
    [found] = report.targets
    assert report.modes[0].ok
    assert found.status == "failed" and found.failure is not None and found.failure.kind == "run"
    assert "lowering has narrowed it" in found.failure.message


def test_lowered_may_mean_that_nothing_was_taken(export: Export) -> None:
    report = export(
        "executorch", "traps.py:ShapeBranch", "(torch.randint(0, 9, (3, 4)),)", "executorch-xnnpack"
    )
    [found] = report.targets
    assert found.delegated == 0 and [node["op"] for node in found.left] == ["aten.add.Tensor"]
    [hint] = [finding for finding in report.findings if finding.code == "EXP007"]
    assert LINES[hint.range.start.line].strip() == "y = x + 1"
    assert hint.severity.value == "information"
    shown = to_diagnostic(hint, Lines("\n".join(LINES)), "utf-16")
    assert shown.severity is DiagnosticSeverity.Hint


@pytest.mark.parametrize(
    ("environment", "target"),
    [
        ("onnxruntime", "onnxruntime-cpu"),
        ("openvino", "openvino-cpu"),
        ("executorch", "executorch-portable"),
        ("iree", "iree-llvm-cpu"),
        ("tvm", "tvm-llvm"),
        ("coreml", "coreml"),
        ("litert", "litert"),
    ],
)
def test_what_a_target_refuses_is_blamed_on_its_line(export: Export, environment: str, target: str) -> None:
    report = export(environment, "traps.py:Factorises", "(torch.randn(4, 4),)", target)
    [found] = report.targets
    assert report.modes[0].ok
    assert found.status == "failed" and found.failure is not None and found.failure.kind in ("lower", "run")
    findings = [f for f in report.findings if f.code in ("EXP005", "EXP006")]
    assert {LINES[f.range.start.line].strip() for f in findings} == {"return torch.linalg.qr(y)[0]"}


def test_a_kernel_that_is_missing_at_run_time_is_blamed_on_its_line(export: Export) -> None:
    """ExecuTorch lowers everything, and names what it cannot run only when the program is loaded."""
    report = export("executorch", "traps.py:Sorts", "(torch.randn(3, 4),)", "executorch-xnnpack")
    [found] = report.targets
    assert found.failure is not None and found.failure.kind == "run" and "aten::sort" in found.failure.message
    [finding] = [finding for finding in report.findings if finding.code == "EXP006"]
    assert LINES[finding.range.start.line].strip() == "return y.argsort(dim=-1)"


def test_cross_compilation_says_that_nothing_was_run(export: Export) -> None:
    report = export("iree", "traps.py:Convolves", IMAGES, "iree-riscv64", "iree-android")
    for found in report.targets:
        assert found.status == "ok", found.failure
        assert "lowered, not run here" in found.notes
        assert found.artifact is not None and found.artifact.is_file()
