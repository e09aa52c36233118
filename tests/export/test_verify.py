"""A fix is verified only if it equals the original on inputs of every kind, and exports in the modes asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from exportlens.export.called import exported_models
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.verify import VerifyReport, verify_fix

from .conftest import MODELS, Runner

TRAPS = MODELS / "traps.py"
BRANCH = """        y = x * 2
        if y.sum() > 0:
            return y
        return -y
"""


def verdict(worker: Runner, name: str, before: str, after: str, mode: str = "both") -> VerifyReport:
    text = TRAPS.read_text()
    assert before in text
    request = ExportRequest(f"{TRAPS}:{name}", ModelInputs(inputs="(torch.randn(3, 4),)"), mode=mode)
    report: VerifyReport = worker.run(
        verify_fix(worker.session, request, {TRAPS: text.replace(before, after)})
    )
    return report


def test_a_right_fix_is_verified_in_both_modes(worker: Runner) -> None:
    after = """        y = x * 2
        return torch.cond(y.sum() > 0, lambda y: y.clone(), lambda y: -y, (y,))
"""
    report = verdict(worker, "DataDependent", BRANCH, after)
    assert report.verified, report.reason
    assert set(report.modes) == {"strict", "non-strict"} and len(report.cases) > 10


@pytest.mark.parametrize("kept", ["y", "-y"])
def test_a_fix_that_keeps_one_branch_only_is_refused(worker: Runner, kept: str) -> None:
    report = verdict(worker, "DataDependent", BRANCH, f"        y = x * 2\n        return {kept} + 0\n")
    assert not report.verified and not report.equal
    assert "differs from the original" in report.reason


def test_a_fix_that_does_not_export_is_refused(worker: Runner) -> None:
    report = verdict(worker, "DataDependent", BRANCH, BRANCH)
    assert report.equal and not report.verified
    assert "Data-dependent branching" in report.reason


def test_state_counts(worker: Runner) -> None:
    """The second call shows what a buffer in the wrong place would hide."""
    report = verdict(worker, "Counts", "        self.seen.add_(1)\n", "", mode="non-strict")
    assert not report.equal and not report.verified


def test_weights_are_shared(worker: Runner) -> None:
    """The fixed model draws other random weights; it is given the original's."""
    before = "self.layer = nn.Linear(4, 3)"
    report = verdict(worker, "Dynamic", before, f"torch.randn(7)\n        {before}", mode="non-strict")
    assert report.verified, report.reason


@pytest.mark.parametrize("round_", range(3))
def test_an_operator_that_the_fix_defines_again_is_compared(
    worker: Runner, tmp_path: Path, round_: int
) -> None:
    """torch destroys the original's operator then; whatever ran it afterwards raised now and then."""
    file = tmp_path / "filters.py"
    text = (
        "import torch\n\n\n@torch.library.custom_op('verified_again::halve', mutates_args=())\n"
        "def halve(x: torch.Tensor) -> torch.Tensor:\n    return torch.from_numpy(x.detach().numpy() / 2)\n\n\n"
        "class Halves(torch.nn.Module):\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return halve(x) + 1\n"
    )
    file.write_text(text)
    head, model = text.split("class Halves")
    fixed = f"{head}@halve.register_fake\ndef _(x):\n    return torch.empty_like(x)\n\n\nclass Halves{model}"
    request = ExportRequest(
        f"{file}:Halves", ModelInputs(inputs=f"(torch.randn(3, {round_ + 2}),)"), mode="both"
    )
    report: VerifyReport = worker.run(verify_fix(worker.session, request, {file: fixed}))
    assert report.verified, report.reason


def test_a_fix_that_does_not_import_is_refused(worker: Runner) -> None:
    report = verdict(worker, "DataDependent", BRANCH, "        return (\n")
    assert report.failure is not None and "the fixed model cannot be run" in report.failure.message


def test_the_users_folder_is_untouched(worker: Runner, tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def twice(x):\n    return x * 2\n")
    text = (
        "from torch import nn\nfrom .parts import twice\n\n"
        "class Net(nn.Module):\n    def forward(self, x):\n        return twice(x)\n"
    )
    (package / "net.py").write_text(text)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    request = ExportRequest(f"{package / 'net.py'}:Net", ModelInputs(inputs="(torch.randn(3),)"))
    fixed = text.replace("twice(x)", "twice(x) + 0")
    report = worker.run(verify_fix(worker.session, request, {package / "net.py": fixed}))
    assert report.verified, report.reason
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert (package / "net.py").read_text() == text


CALLED = """import random

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x * 2


if __name__ == "__main__":
    torch.export.export(Net(), (torch.randn(2, 3),))
"""


def tried(worker: Runner, path: Path, before: str, after: str) -> VerifyReport:
    """The verdict on a change of a file whose own export call says how the model is called."""
    path.write_text(CALLED)
    assert before in CALLED
    [call] = exported_models(path, CALLED)
    request = ExportRequest(f"{path}:Net", proposals=(call.inputs,))
    report: VerifyReport = worker.run(
        verify_fix(worker.session, request, {path: CALLED.replace(before, after)})
    )
    return report


def test_what_the_export_call_says_is_exported(worker: Runner, tmp_path: Path) -> None:
    """Sizes that the fix declares dynamic are run at both ends."""
    shapes = '(torch.randn(2, 3),), dynamic_shapes={"x": {0: torch.export.Dim("rows", max=9)}})'
    report = tried(worker, tmp_path / "net.py", "(torch.randn(2, 3),))", shapes)
    assert report.verified, report.reason
    names = {case["case"] for mode in report.modes.values() for case in mode["cases"]}
    assert "largest sizes (x[0]=9)" in names


def test_numbers_of_another_generator_are_compared_where_both_draw_the_same(
    worker: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    before = "        return x * 2\n"
    drawn = "x * random.random() + random.gauss(1, 2) - random.randint(1, 6) * np.random.uniform(2.0, 3.0)"
    original = "import numpy as np\n" + CALLED.replace(before, f"        return {drawn}\n")
    path.write_text(original)
    request = ExportRequest(f"{path}:Net", ModelInputs(inputs="(torch.randn(2, 3),)"))
    alike = "x * torch.rand(()) + (1 + 2 * torch.randn(())) - torch.randint(1, 7, ()).item() * (2.0 + torch.rand(()))"
    fixed = original.replace(drawn, alike)
    report = worker.run(verify_fix(worker.session, request, {path: fixed}))
    assert report.verified, report.reason
    assert all(case["case"].endswith("the same random numbers") for case in report.cases)
    other = original.replace(drawn, alike.replace("(1, 7", "(0, 7"))
    report = worker.run(verify_fix(worker.session, request, {path: other}))
    assert report.failure is not None and report.failure.kind == "incomparable"
    assert "from Python and NumPy, the fixed model from torch" in report.reason
    assert report.holds({path: original}, {path: other}) is None
