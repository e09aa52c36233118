"""Every example goes from failing to exported by a repair alone; a model that has no equivalent is given up with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from exportlens.config import load_config
from exportlens.repairing import Repairer

from .conftest import EXAMPLES, Workshop

# The rules whose fixes a repair applies, in order; none where torch 2.13 exports the example as it is. The video
# classifier's (EXL420) takes minutes, and its finding is asserted below.
REPAIRS = {
    "hazards/context_manager.py:ProfiledBlock": [],
    "hazards/custom_op.py:Denoiser": ["EXL707"],
    "hazards/data_attribute.py:PaddingEraser": ["EXL202"],
    "hazards/data_dependent_if.py:LoudnessGate": ["EXL101"],
    "hazards/dimension_constraint.py:PairScorer": ["EXL418"],
    "hazards/dynamic_shape_if.py:ChunkedEncoder": ["EXL419"],
    "hazards/exceptions.py:ForgivingHead": [],
    "hazards/object_identity.py:PenalisedHead": ["EXL340"],
    "hazards/unregistered_tensor.py:RunningCentre": ["EXL206"],
    "tutorial/image_captioning.py:Captioner": [],
    "tutorial/promptable_segmentation.py:ImagePredictor.predict": ["EXL613"],
    "tutorial/speech_recognition.py:Transcriber": ["EXL602"],
}


@pytest.mark.parametrize("model", REPAIRS)
def test_a_repair_makes_an_example_export(workshop: Workshop, model: str) -> None:
    done = workshop.repair(model)
    assert done.repaired, (done.reason, done.steps)
    assert [step.code for step in done.steps if step.fix and not step.withdrawn] == REPAIRS[model]
    assert bool(done.changed) is bool(REPAIRS[model])


def test_what_has_no_equivalent_is_left_alone(workshop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "jittered.py"
    file.write_text(
        "import torch\n\n\nclass Jittered(torch.nn.Module):\n"
        "    def forward(self, batch: torch.Tensor) -> torch.Tensor:\n        return batch + id(batch) % 7\n\n\n"
        "if __name__ == '__main__':\n    torch.export.export(Jittered(), (torch.randn(2, 8),))\n"
    )
    done = workshop.repair(f"{file}:Jittered")
    assert not done.repaired and not done.changed
    assert "so does eager from itself in a second run" in done.reason


def test_the_video_classifier_is_found_to_be_used_with_another_batch() -> None:
    file = EXAMPLES / "tutorial" / "video_classifier.py"
    found = Repairer(file, load_config(file, {})).diagnose({file: file.read_text()})
    [other_size] = [finding for finding in found if finding.code == "EXL420"]
    assert other_size.range.start.line + 1 == len(file.read_text().splitlines())
    assert other_size.fix is not None and "Dim" in other_size.fix.edits[0].content
