"""Guessed inputs that eager refuses are changed by what it says, until it takes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
import torch
from exportlens.export.models import proposals_for, with_dynamic_shapes
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.text import render_report
from exportlens.export.worker.changing import Draw, changes
from exportlens.export.worker.fitting import FITTED
from exportlens.export.worker.loading import Inputs, Space, Subject
from exportlens.export.worker.preparing import refuse_by_shape

from .conftest import Runner

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def exported(worker: Runner, folder: Path, text: str, name: str = "Net", **given: str) -> Report:
    """The report of a model of this text of which only `given` is stated."""
    path = folder / "net.py"
    path.write_text(HEAD + dedent(text))
    request = ExportRequest(f"{path}:{name}", ModelInputs(**given), mode="non-strict", targets=())
    return worker.run(worker.session.run(replace(request, proposals=proposals_for(request))))


FITS = {
    "frames before channels": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 4, 8, stride=8)
    def forward(self, video):
        b, t, c, h, w = video.shape
        return self.patch(video.reshape(b * t, c, h, w)).view(b, t, -1)
""",
        "(torch.randn(2, 8, 3, 32, 32),)",
    ),
    "the side that a flattened picture needs": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.MaxPool2d(4))
        self.head = nn.Linear(4 * 55 * 55, 3)
    def once(self, x):
        return self.head(self.features(x).flatten(1))
    def forward(self, left, right):
        return self.once(left) - self.once(right)
""",
        "(torch.randn(2, 1, 224, 224), torch.randn(2, 1, 224, 224))",
    ),
    "whole numbers for columns of ids": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(20, 4)
        self.films = nn.Embedding(20, 4)
    def forward(self, data):
        return (self.users(data[:, 0]) * self.films(data[:, 1])).sum(1)
""",
        "(torch.randint(0, 2, (2, 8)),)",
    ),
    "ids of the same shape as other ids": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.parts = nn.Embedding(30, 6), nn.Embedding(3, 6)
        self.both = nn.ModuleDict({"words": self.words, "parts": self.parts})
    def forward(self, x, part):
        seen = (x > 0).unsqueeze(1).repeat(1, x.size(1), 1)
        parts = self.both["parts"](part)
        return (self.both["words"](x) + parts) * seen.any(1).unsqueeze(2)
""",
        "(torch.randint(0, 2, (2, 8)), torch.randint(0, 2, (2, 8)))",
    ),
}


@pytest.mark.parametrize("title", FITS)
def test_a_guess_is_changed_until_it_fits(worker: Runner, tmp_path: Path, title: str) -> None:
    text, inputs = FITS[title]
    report = exported(worker, tmp_path, text)
    assert report.ok, report.failure
    assert report.chosen is not None and report.chosen["source"].endswith(FITTED)
    assert report.chosen["inputs"] == inputs


def test_inputs_by_keyword_are_changed_too(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
    def forward(self, *, query, key):
        return self.layer(query) * key.view(-1, 6)
"""
    report = exported(worker, tmp_path, text)
    assert report.ok, report.failure
    assert report.chosen is not None and report.chosen["inputs"] == "()"
    assert report.chosen["source"].endswith(FITTED) and ", 6)" in report.chosen["kwargs"]


MADE_BY_A_FUNCTION = """
class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, width)
    def forward(self, x):
        return self.layer(x)

class Net(nn.Module):
    def __init__(self, inner, scale):
        super().__init__()
        self.inner = inner
        self.last = nn.Linear(inner.width, 2)
    def forward(self, x):
        return self.last(self.inner(x))

def small(width: int = 6) -> "Net":
    net = Net(Encoder(width), 2)
    return net
"""


@pytest.mark.parametrize(("name", "init"), [("Net", "small()"), ("small", "")])
def test_a_function_of_the_file_makes_the_model(worker: Runner, tmp_path: Path, name: str, init: str) -> None:
    report = exported(worker, tmp_path, MADE_BY_A_FUNCTION, name)
    assert report.ok, report.failure
    assert report.chosen is not None
    assert (report.chosen["init"], report.chosen["inputs"]) == (init, "(torch.randn(2, 6),)")


def test_arguments_that_the_file_gives_are_taken(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.layer = nn.Linear(wide, narrow)
    def forward(self, x):
        return self.layer(x)

model = Net(12, narrow=3)
"""
    report = exported(worker, tmp_path, text)
    assert report.chosen is not None
    assert (report.chosen["init"], report.chosen["inputs"]) == ("12, narrow=3", "(torch.randn(2, 12),)")


def test_inputs_are_enough_where_the_arguments_can_be_proposed(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.layer = nn.Linear(dim, classes)
    def forward(self, x):
        return self.layer(x)
"""
    report = exported(worker, tmp_path, text, inputs="(torch.randn(3, 8),)")
    assert report.ok, report.failure
    assert report.chosen is not None and report.chosen["init"] == "dim=8, classes=8"


def test_where_nothing_fits_the_line_is_told(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x, table):
        return self.layer(x) + table.lookup(x)
"""
    report = exported(worker, tmp_path, text)
    assert report.failure is not None and report.failure.kind == "inputs"
    assert "torch.randn(2, 8)" in report.failure.message and "--inputs" in report.failure.message
    [finding] = report.findings
    assert finding.range.start.line == 9 and "lookup" in finding.message


def test_where_nothing_can_be_made_the_arguments_are_asked_for(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.layer = nn.Linear(table.rows().sum(), 4)
    def forward(self, x):
        return self.layer(x)
"""
    report = exported(worker, tmp_path, text)
    assert report.failure is not None and report.failure.kind == "construct"
    assert "--init" in report.failure.message


def test_shapes_tried_on_fake_tensors_leave_no_log(worker: Runner, tmp_path: Path) -> None:
    report = exported(worker, tmp_path, FITS["the side that a flattened picture needs"][0])
    assert "run meta" not in report.log


@pytest.mark.parametrize(
    ("said", "kind", "sizes", "wanted"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x8 and 10x4)", "float", (2, 8), (2, 10)),
        ("RuntimeError: input.size(-1) must be equal to input_size. Expected 6, got 8", "float", (2, 3, 8), (2, 3, 6)),
        (
            "RuntimeError: Given groups=1, weight of size [4, 5, 3, 3], expected input[2, 3, 32, 32] to have 5 channels, but got 3 channels instead",
            "float",
            (2, 3, 32, 32),
            (2, 5, 32, 32),
        ),
        (
            "RuntimeError: Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [2, 2, 4, 4]",
            "float",
            (2, 2, 4, 4),
            (2, 4, 4),
        ),
        ("ValueError: not enough values to unpack (expected 3, got 2)", "int", (2, 5), (2, 8, 5)),
        ("RuntimeError: output size is too small", "float", (2, 3, 32, 32), (2, 3, 64, 64)),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x0 and 4x4)", "float", (2, 8), (2, 16)),
        ("NotImplementedError: Got 3D input, but bilinear mode needs 4D input", "float", (2, 3, 8), (2, 3, 32, 32)),
    ],
)  # fmt: skip
def test_what_torch_says_tells_what_to_change(
    said: str, kind: str, sizes: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert next(changes(said, (Draw(kind, sizes),))) == (Draw(kind, wanted),)


def test_what_is_no_matter_of_sizes_changes_nothing() -> None:
    assert not list(changes("AttributeError: 'Tensor' object has no attribute 'x'", (Draw("float", (2, 8)),)))


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        ("raise NotImplementedError", "eager", "raise NotImplementedError"),
        ("return x + len(open('missing.txt').read())", "eager", "return x + len(open('missing.txt').read())"),
        ("return x.no_such_method()", "inputs", "return x.no_such_method()"),
    ],
)
def test_what_no_inputs_can_mend_is_no_matter_of_inputs(
    worker: Runner, tmp_path: Path, body: str, kind: str, line: str
) -> None:
    report = exported(worker, tmp_path, f"class Net(nn.Module):\n    def forward(self, x):\n        {body}\n")
    assert report.failure is not None and report.failure.kind == kind
    [finding] = report.findings
    assert finding.code == "EXP008"
    text = finding.path.read_text().splitlines()[finding.range.start.line]
    assert text.strip() == line


def test_a_model_without_forward_is_told_at_its_class(worker: Runner, tmp_path: Path) -> None:
    report = exported(worker, tmp_path, "class Net(nn.Module):\n    pass\n")
    [finding] = report.findings
    assert finding.range.start.line == 3 and "forward" in finding.message


@pytest.mark.parametrize(
    ("forward", "inputs", "kwargs"),
    [
        ("*args): return self.layer(args[0]) + args[1]", "(torch.randn(2, 5), torch.randn(2, 8),)", None),
        ("**words): return self.layer(words['x'])", "()", "{'x': torch.randn(2, 5)}"),
    ],
)
def test_what_is_taken_out_of_starred_parameters(
    tmp_path: Path, forward: str, inputs: str, kwargs: str | None
) -> None:
    path = tmp_path / "net.py"
    path.write_text(
        HEAD
        + dedent(
            f"""
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(5, 8)
                def forward(self, {forward}
            """
        )
    )
    first = proposals_for(ExportRequest(f"{path}:Net", ModelInputs()))[0]
    assert (first.inputs, first.kwargs) == (inputs, kwargs)


@pytest.mark.parametrize(
    "body",
    [
        "if x.dim() != 4:\n            raise NotImplementedError('pictures')\n        return x * 2",
        "return F.interpolate(x, scale_factor=2, mode='bilinear')",
        "return F.pad(x, (1, 1, 1, 1), mode='reflect')",
    ],
)
def test_what_is_not_implemented_for_some_inputs_may_be_for_others(
    worker: Runner, tmp_path: Path, body: str
) -> None:
    report = exported(worker, tmp_path, f"class Net(nn.Module):\n    def forward(self, x):\n        {body}\n")
    assert report.ok, report.failure


HEADS = """
class Net(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        assert dim % heads == 0, "dim is divisible"
        self.layer, self.last = nn.Linear(dim, dim), nn.Linear(dim, 2)
    def forward(self, x):
        return self.last(self.layer(x)[..., 1:])
"""


def test_what_was_stated_is_not_called_a_guess(worker: Runner, tmp_path: Path) -> None:
    report = exported(worker, tmp_path, HEADS, init="dim=8, heads=3")
    assert report.failure is not None and report.failure.kind == "construct"
    assert "guess" not in report.failure.message and "propose" not in report.failure.message


def test_inputs_from_a_call_in_the_file_are_told_as_such(worker: Runner, tmp_path: Path) -> None:
    call = (
        "if __name__ == '__main__':\n    net = Net(8, 2)\n    torch.export.export(net, (torch.ones(3, 8),))\n"
    )
    report = exported(worker, tmp_path, HEADS + call)
    assert report.failure is not None
    assert "from the torch.export.export call in line" in report.failure.message
    assert "guess" not in report.failure.message


def test_a_function_that_does_more_than_make_a_model_is_not_called(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.layer = nn.Linear(table.shape[0], 4)
    def forward(self, x):
        return self.layer(x)

def {name}():
    net = Net(torch.Tensor(5))
    {body}
    return net
"""
    path = tmp_path / "net.py"
    for name, body, called in (
        ("make", "table = torch.Tensor(5)", True),
        ("train", "for _ in range(9): net(torch.randn(2, 5))", False),
        ("load", "state = torch.load('net.pt')", False),
    ):
        path.write_text(HEAD + text.format(name=name, body=body))
        proposals = proposals_for(ExportRequest(f"{path}:Net", ModelInputs()))
        assert (f"{name}()" in {proposal.init for proposal in proposals}) == called


def test_sizes_are_fitted_within_what_is_dynamic(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x):
        if x.shape[1] < 200:
            raise ValueError("the sequence is short")
        return self.layer(x)
"""
    path = tmp_path / "net.py"
    path.write_text(HEAD + dedent(text))
    request = ExportRequest(f"{path}:Net", ModelInputs(), mode="non-strict", targets=())
    request = with_dynamic_shapes(replace(request, proposals=proposals_for(request)))
    report = worker.run(worker.session.run(request))
    assert report.failure is not None and "the sequence is short" in report.failure.message


def test_a_change_that_takes_much_memory_is_not_tried() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x[:, None] * x[:, :, None]).sum()

    subject = Subject(Net(), Space(ModuleType("net")), "Net", None, True)
    refuse_by_shape(subject, Inputs((torch.ones(2, 300),), {}, None), 1 << 20)
    with pytest.raises(MemoryError):
        refuse_by_shape(subject, Inputs((torch.ones(2, 600),), {}, None), 1 << 20)


def test_what_the_project_states_is_kept(worker: Runner, tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.layer = nn.Linear(table["rows"].numel(), 4)
    def forward(self, x):
        return self.layer(x)
"""
    stated = "[tool.exportlens.models.\"net.py:Net\"]\ninit = \"{'table': {'rows': torch.ones(8)}}\"\n"
    (tmp_path / "pyproject.toml").write_text(stated)
    report = exported(worker, tmp_path, text)
    assert report.ok, report.failure
    (tmp_path / "pyproject.toml").write_text(stated + 'inputs = "(torch.randn(2, 9),)"\n')
    [proposal] = proposals_for(ExportRequest(f"{tmp_path / 'net.py'}:Net", ModelInputs()))
    assert proposal.inputs == "(torch.randn(2, 9),)"


def test_an_export_call_that_fails_is_told_where_a_guess_fits(worker: Runner, tmp_path: Path) -> None:
    """A warning on the call's line; the confirmation is that of the inputs which run."""
    text = """
class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.Linear(width, 2)
    def forward(self, x):
        return self.layer(x)

if __name__ == "__main__":
    x = torch.randn(3, 5)
    torch.export.export(Net(6), (x,))
"""
    report = exported(worker, tmp_path, text)
    assert report.ok and report.chosen is not None and report.chosen["init"] == "6"
    [finding] = report.findings
    assert (finding.code, finding.severity.value) == ("EXP012", "warning")
    line = (tmp_path / "net.py").read_text().splitlines()[finding.range.start.line]
    assert line.strip() == "torch.export.export(Net(6), (x,))"
    assert "(3x5 and 6x2)" in finding.message
    told = render_report(report)
    assert "EXP012" in told and "left to the CPU" not in told


@pytest.mark.parametrize("example", ["(torch.randn(3, 6),)", "(make(3),)"])
def test_an_export_call_that_runs_or_cannot_be_read_is_no_finding(
    worker: Runner, tmp_path: Path, example: str
) -> None:
    text = f"""
def make(rows):
    raise OSError("the data is elsewhere")

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.Linear(width, 2)
    def forward(self, x):
        return self.layer(x)

if __name__ == "__main__":
    torch.export.export(Net(6), {example})
"""
    report = exported(worker, tmp_path, text)
    assert report.ok and report.findings == []
