"""Models are found by reading, and what is proposed for them is what their file says."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner
from exportlens.cli.export import command as export
from exportlens.export.configured import configured_inputs, save_inputs
from exportlens.export.models import find_models
from exportlens.export.request import ExportRequest, ModelInputs, parse_size

from .conftest import HEAD, Runner, found

NET = """
class Net(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.layer = nn.Linear(dim, 4)
    def forward(self, x):
        return self.layer(x)
"""


def test_only_modules_with_a_forward_are_models(tmp_path: Path) -> None:
    infos = found(
        tmp_path,
        NET
        + """
class Child(Net): pass
class Base(nn.Module): pass
class Data(torch.utils.data.Dataset):
    def __getitem__(self, i): return i
class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
class Plain:
    def forward(self, x): return x
""",
    )
    assert [info.name for info in infos] == ["Net", "Child"]
    assert infos[0].range.start.line == 3 and infos[0].parameters == ("x",)


def test_an_export_call_gives_constructor_inputs_and_shapes(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        NET
        + """
if __name__ == "__main__":
    batch = torch.export.Dim("batch")
    width = 16
    model = Net(width).eval()
    example = torch.randn(2, width)
    torch.export.export(model, (example,), dynamic_shapes={"x": {0: batch}})
""",
    )
    first = info.proposals[0]
    assert first.init == "16"
    assert first.inputs == "(torch.randn(2, 16),)"
    assert first.dynamic_shapes == "{'x': {0: torch.export.Dim('batch')}}"


@pytest.mark.parametrize(
    ("more", "inputs"),
    [
        ("\ndef get_example_inputs():\n    return (torch.ones(2, 8),)\n", "get_example_inputs()"),
        ("\nexample_inputs = (torch.ones(2, 8),)\n", "example_inputs"),
        ("\ndef main():\n    net = Net(8)\n    print(net(torch.ones(3, 8)))\n", "(torch.ones(3, 8),)"),
        ("", "(torch.randn(2, 8),)"),
    ],
)
def test_the_file_is_asked_in_order(tmp_path: Path, more: str, inputs: str) -> None:
    [info] = found(tmp_path, NET + more)
    assert info.proposals[0].inputs == inputs


def test_calls_in_tests_are_used(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_net.py").write_text(
        dedent(
            """
            import torch
            from net import Net
            def test_it():
                assert Net(dim=6)(torch.zeros(5, 6)).shape[0] == 5
            """
        )
    )
    [info] = found(tmp_path, NET)
    assert (info.proposals[0].init, info.proposals[0].inputs) == ("dim=6", "(torch.zeros(5, 6),)")


def test_names_that_only_a_function_knows_are_not_proposed(tmp_path: Path) -> None:
    [info] = found(
        tmp_path, NET + "\ndef main(loader):\n    net = Net()\n    for batch in loader:\n        net(batch)\n"
    )
    assert info.proposals[0].inputs == "(torch.randn(2, 8),)"


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        ("nn.Conv2d(3, 8, 3)", "(torch.randn(2, 3, 32, 32),)"),
        ("nn.Conv1d(in_channels=5, out_channels=8, kernel_size=3)", "(torch.randn(2, 5, 32),)"),
        ("nn.Embedding(50, 8)", "(torch.randint(0, 50, (2, 8)),)"),
        ("nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 2))", "(torch.randn(2, 12),)"),
        ("nn.LSTM(7, 3)", "(torch.randn(2, 8, 7),)"),
        ("nn.Linear(dim * 2, 4)", "(torch.randn(2, 16),)"),
        ("Inner(dim)", "(torch.randn(2, 8),)"),
    ],
)
def test_the_first_layer_gives_shapes_and_dtypes(tmp_path: Path, layer: str, inputs: str) -> None:
    infos = found(
        tmp_path,
        f"""
class Inner(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Linear(size, 3)
    def forward(self, y):
        return self.first(y)

class Net(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.layer = {layer}
    def forward(self, x):
        return self.layer(x)
""",
    )
    [info] = [info for info in infos if info.name == "Net"]
    assert (info.proposals[0].init, info.proposals[0].inputs) == ("dim=8", inputs)


def test_annotations_and_docstrings_give_shapes(tmp_path: Path) -> None:
    [first, second] = found(
        tmp_path,
        '''
class Typed(nn.Module):
    def forward(self, x: Float[torch.Tensor, "batch 3 height width"]):
        return x.mean()

class Told(nn.Module):
    def forward(self, x):
        """x: a tensor of shape (B, T, 12)."""
        return x.mean()
''',
    )
    assert first.proposals[0].inputs == "(torch.randn(2, 3, 32, 32),)"
    assert second.proposals[0].inputs == "(torch.randn(2, 8, 12),)"


def test_a_callable_passed_to_export_is_a_model(tmp_path: Path) -> None:
    infos = found(
        tmp_path,
        """
class Predictor:
    def __init__(self, size): self.size = size
    def predict(self, x): return x * self.size

def double(x): return x * 2

if __name__ == "__main__":
    torch.export.export(double, (torch.randn(2),))
    predictor = Predictor(3)
    torch.export.export(predictor.predict, (torch.randn(2),))
""",
    )
    assert [(info.name, info.kind) for info in infos] == [
        ("Predictor.predict", "method"),
        ("double", "function"),
    ]
    assert infos[0].proposals[0].init == "3"


def test_a_file_that_does_not_parse_has_no_models(tmp_path: Path) -> None:
    assert find_models(tmp_path / "net.py", "class Net(nn.Module:\n") == []


def test_pyproject_comes_first_and_can_be_written(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[project]\nname = "demo"\n\n[tool.other]\nkept = 1\n')
    model = f"{tmp_path}/pkg/net.py:Net"
    assert configured_inputs(tmp_path / "pkg", model) is None
    save_inputs(tmp_path / "net.py", model, ModelInputs("dim=3", '("a\\"b",)'))
    save_inputs(tmp_path / "net.py", model, ModelInputs("dim=4", "(torch.ones(2, 4),)"))
    stated = configured_inputs(tmp_path / "net.py", model)
    assert stated is not None and (stated.init, stated.inputs) == ("dim=4", "(torch.ones(2, 4),)")
    text = pyproject.read_text()
    assert (
        text.startswith('[project]\nname = "demo"') and "kept = 1" in text and text.count("net.py:Net") == 1
    )


def test_export_saves_the_inputs_that_worked(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(HEAD + NET)
    words = [f"{file}:Net", "--init", "dim=6", "--save-inputs", "--output", str(tmp_path / "out")]
    refused = CliRunner().invoke(export, [*words, "--inputs", "(torch.randn(2, 5),)"])
    assert refused.exit_code == 1 and "not saved" in refused.stderr
    assert not (tmp_path / "pyproject.toml").exists()
    saved = CliRunner().invoke(export, [*words, "--inputs", "(torch.randn(2, 6),)"])
    assert saved.exit_code == 0 and "pyproject.toml" in saved.stderr, saved.output
    [info] = find_models(file, file.read_text())
    assert (info.proposals[0].init, info.proposals[0].inputs) == ("dim=6", "(torch.randn(2, 6),)")
    assert info.proposals[0].source.startswith("[tool.exportlens.models]")


@pytest.mark.parametrize(("text", "size"), [("8G", 8 << 30), ("512 MiB", 512 << 20), ("1000", 1000)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_a_size_that_is_none() -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size("much")


def test_a_package_without_init_files_is_imported_by_its_relative_imports(
    worker: Runner, tmp_path: Path
) -> None:
    (tmp_path / "library" / "nets").mkdir(parents=True)
    (tmp_path / "library" / "sizes.py").write_text("WIDTH = 4\n")
    (tmp_path / "library" / "nets" / "blocks.py").write_text(
        HEAD
        + """
from torch.nn.utils import weight_norm
from ..sizes import WIDTH

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = weight_norm(nn.Linear(WIDTH, WIDTH))
    def forward(self, x):
        return self.layer(x)
"""
    )
    file = tmp_path / "library" / "nets" / "net.py"
    file.write_text("from torch import nn\nfrom .blocks import Block\n\nclass Net(Block):\n    pass\n")
    request = ExportRequest(f"{file}:Net", ModelInputs(inputs="(torch.randn(2, 4),)"), targets=())
    report = worker.run(worker.session.run(request))
    assert report.ok, report.failure


def test_a_package_may_hold_a_module_of_its_own_name(
    worker: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "tower"
    package.mkdir()
    (package / "__init__.py").write_text("from tower.tower import Tower\n")
    (package / "tower.py").write_text(
        "import torch\n\nclass Tower(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    )
    monkeypatch.chdir(tmp_path)
    given = ModelInputs(inputs="(torch.randn(2, 4),)")
    request = ExportRequest(f"{package / 'tower.py'}:Tower", given, targets=())
    report = worker.run(worker.session.run(request))
    assert report.ok, report.failure


def test_what_is_read_from_a_file_is_no_argument(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        "import json\n"
        + NET
        + """
def load():
    with open("net.json") as f:
        config = json.load(f)
    return Net(dim=config["dim"])
""",
    )
    assert info.proposals[0].init in ("", None)
