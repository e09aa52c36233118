"""Each example does what its docstring and examples/README.md say, on the torch that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import EXAMPLES, Workshop

# What each mode ends in: strict, non-strict. The words are those of a failure's kind; None is a sound export.
CLAIMS: dict[str, tuple[str | None, str | None]] = {
    "hazards/context_manager.py:ProfiledBlock": (None, None),
    "hazards/custom_op.py:Denoiser": ("export", "export"),
    "hazards/data_attribute.py:PaddingEraser": ("mismatch", "export"),
    "hazards/data_dependent_if.py:LoudnessGate": ("export", "export"),
    "hazards/dimension_constraint.py:PairScorer": ("export", "export"),
    "hazards/dynamic_shape_if.py:ChunkedEncoder": ("export", "export"),
    "hazards/exceptions.py:ForgivingHead": (None, None),
    "hazards/object_identity.py:PenalisedHead": (None, "mismatch"),
    "hazards/unregistered_tensor.py:RunningCentre": ("mismatch", "mismatch"),
    "tutorial/image_captioning.py:Captioner": (None, None),
    "tutorial/promptable_segmentation.py:ImagePredictor.predict": ("export", "export"),
    "tutorial/speech_recognition.py:Transcriber": ("export", "export"),
}


def test_every_example_is_claimed() -> None:
    files = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.py")}
    claimed = {model.partition(":")[0] for model in CLAIMS}
    # The video classifier exports at its example's sizes; comparing it takes minutes, which `make run` has.
    assert files - claimed == {"tutorial/video_classifier.py"}


@pytest.mark.parametrize("model", CLAIMS)
def test_an_example_ends_as_it_says(workshop: Workshop, model: str, tmp_path: Path) -> None:
    report = workshop.export(model, "both", tmp_path)
    seen = {mode.mode: mode.failure.kind if mode.failure else None for mode in report.modes}
    strict, non_strict = CLAIMS[model]
    assert seen == {"strict": strict, "non-strict": non_strict}


def test_a_constraint_violation_brings_torchs_suggestion(workshop: Workshop, tmp_path: Path) -> None:
    report = workshop.export("hazards/dimension_constraint.py:PairScorer", "non-strict", tmp_path)
    assert report.failure is not None
    said = report.failure.message + "".join(str(finding.data) for finding in report.findings)
    assert "key_length = query_length" in said
