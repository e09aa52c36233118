"""Models are found by reading, and what is proposed for them is what their file says."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner
from exportlens.cli.export import command as export
from exportlens.export.configured import configured_inputs, save_inputs
from exportlens.export.models import ModelInfo, find_models, proposals_for
from exportlens.export.request import ExportRequest, ModelInputs, parse_size

from .conftest import Runner

HEAD = "import torch\nfrom torch import nn\n"


def found(tmp_path: Path, text: str) -> list[ModelInfo]:
    return find_models(tmp_path / "net.py", HEAD + dedent(text))


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


@pytest.mark.parametrize(
    ("first", "shapes"),
    [
        ("nn.Linear(8, 8)", "{0: Dim('batch', min=1, max=64)}"),
        (
            "nn.Embedding(50, 8)",
            "{0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}",
        ),
        (
            "nn.TransformerEncoderLayer(8, 2, batch_first=True)",
            "{0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}",
        ),
        ("nn.LSTM(8, 8, batch_first=True)", "{0: Dim('batch', min=1, max=64)}"),
        (
            "nn.Sequential(nn.Conv1d(4, 8, 3))",
            "{0: Dim('batch', min=1, max=64), 2: Dim('sequence', min=16, max=128)}",
        ),
        ("nn.Conv2d(3, 8, 3)", "{0: Dim('batch', min=1, max=64)}"),
    ],
)
def test_dynamic_dims_come_from_use(tmp_path: Path, first: str, shapes: str) -> None:
    [info] = found(
        tmp_path,
        f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {first}
    def forward(self, x, scale: float):
        return self.first(x) * scale
""",
    )
    assert info.dynamic_shapes == f"{{'x': {shapes}, 'scale': None}}"


def test_positions_end_the_range_of_a_sequence(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        """
class Net(nn.Module):
    def __init__(self, dim=8, max_length=40):
        super().__init__()
        self.tokens = nn.Embedding(50, dim)
        self.positions = nn.Parameter(torch.zeros(1, 24, dim))
    def forward(self, ids, mask):
        return (self.tokens(ids) + self.positions[:, : ids.shape[1]]) * mask

if __name__ == "__main__":
    net = Net()
    net(torch.ones(2, 6, dtype=torch.long), mask=torch.ones(2, 6, 1))
""",
    )
    assert info.dynamic_shapes == (
        "{'ids': {0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=24)}, "
        "'mask': {0: Dim('batch', min=1, max=64)}}"
    )


def test_what_belongs_to_edges_has_as_many_rows(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        """
class Net(nn.Module):
    def __init__(self, nodes=5, edges=3):
        super().__init__()
        self.node, self.edge = nn.Linear(nodes, 4), nn.Linear(edges, 4)
    def forward(self, x, edge_index, edge_attr):
        row, col = edge_index
        h = self.node(x)
        return torch.zeros_like(h).index_add(0, row, h[col] + self.edge(edge_attr))
""",
    )
    assert info.proposals[0].inputs == "(torch.randn(2, 5), torch.randint(0, 2, (2, 8)), torch.randn(8, 3),)"
    assert info.dynamic_shapes == (
        "{'x': {0: Dim('batch', min=1, max=64)}, 'edge_index': {1: Dim('edges', min=2, max=128)}, "
        "'edge_attr': {0: Dim('edges', min=2, max=128)}}"
    )


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


@pytest.mark.parametrize(
    ("text", "init", "inputs", "kwargs"),
    [
        # what is called, or gone through and called, is a model
        (
            "def __init__(self, fn): self.fn = fn\ndef forward(self, x): return self.fn(x)",
            "fn=torch.nn.Identity()",
            None,
            None,
        ),
        (
            "def __init__(self, blocks): self.blocks = nn.ModuleList(blocks)\n"
            "def forward(self, x):\n    for block in self.blocks: x = block(x)\n    return x",
            "blocks=[torch.nn.Identity(), torch.nn.Identity()]",
            None,
            None,
        ),
        (
            "def __init__(self, sizes): self.layer = nn.Linear(sizes[0], sizes[2])\n"
            "def forward(self, x): return self.layer(x)",
            "sizes=[8, 8, 8]",
            "(torch.randn(2, 8),)",
            None,
        ),
        # a dimension that operators work along, or a size that one of them is told in passing
        (
            "def __init__(self, dim): self.dim = dim\n"
            "def forward(self, x):\n    a, b = x.chunk(2, dim=self.dim)\n    return a * b.sigmoid()",
            "dim=-1",
            None,
            None,
        ),
        (
            "def __init__(self, dim):\n    self.norm = nn.LayerNorm(dim)\n    self.dim = dim\n"
            "def forward(self, x): return self.norm(x).sum(dim=self.dim)",
            "dim=8",
            None,
            None,
        ),
        (
            "def __init__(self, padding): self.padding = padding\n"
            "def forward(self, x): return F.pad(x, self.padding)",
            "padding=(1, 1)",
            None,
            None,
        ),
        # what is taken apart is a tuple
        (
            "def __init__(self): self.fc = nn.Linear(6, 4)\n"
            "def forward(self, pair):\n    x, y = pair\n    return torch.cat([self.fc(x), y], -1)",
            None,
            "((torch.randn(2, 6), torch.randn(2, 8),),)",
            None,
        ),
        # what parameters are asked of is a model; how far a range goes is a number
        (
            "def __init__(self, base): self.weights = nn.ParameterList(base.parameters())\n"
            "def forward(self, x, steps):\n    for _ in range(steps): x = x * 2\n    return x",
            "base=torch.nn.Linear(8, 8)",
            "(torch.randn(2, 8), 2,)",
            None,
        ),
        # the number of dimensions: unpacked, rearranged, asserted, permuted
        (
            "def __init__(self, dim): self.layer = nn.Linear(dim, 4)\n"
            "def forward(self, x):\n    b, n, _, h = *x.shape, 2\n    return self.layer(x)",
            "dim=8",
            "(torch.randn(2, 8, 8),)",
            None,
        ),
        (
            "def forward(self, x): return rearrange(x, 'b (h d) n -> b h n d', h=2)",
            None,
            "(torch.randn(2, 8, 8),)",
            None,
        ),
        (
            "def forward(self, x):\n    assert x.dim() == 4\n    return x",
            None,
            "(torch.randn(2, 3, 32, 32),)",
            None,
        ),
        ("def forward(self, x): return x.permute(2, 0, 1)", None, "(torch.randn(2, 8, 8),)", None),
        (
            "def __init__(self): self.patches = nn.Sequential(Rearrange('b c (h p) w -> b h (p w c)', p=4), nn.Linear(384, 8))\n"
            "def forward(self, x): return self.patches(x)",
            None,
            "(torch.randn(2, 3, 32, 32),)",
            None,
        ),
        (
            "def forward(self, q, k): return torch.bmm(q, k)",
            None,
            "(torch.randn(2, 8, 8), torch.randn(2, 8, 8),)",
            None,
        ),
        # states of recurrent layers
        (
            "def __init__(self): self.cell = nn.LSTMCell(6, 5)\n"
            "def forward(self, x, state): return self.cell(x, state)",
            None,
            "(torch.randn(2, 6), (torch.randn(2, 5), torch.randn(2, 5)),)",
            None,
        ),
        (
            "def __init__(self): self.rnn = nn.GRU(6, 5, 2, batch_first=True, bidirectional=True)\n"
            "def forward(self, x, state): return self.rnn(x, state)",
            None,
            "(torch.randn(2, 8, 6), torch.randn(4, 2, 5),)",
            None,
        ),
        # a word that is asked for; a number for each side; what may be one number
        (
            "def __init__(self, kind): self.rnn = getattr(nn, kind)(6, 5) if kind in ('LSTM', 'GRU') else None\n"
            "def forward(self, x, state): return self.rnn(x, state)",
            "kind='LSTM'",
            "(torch.randn(2, 8, 6), (torch.randn(1, 8, 5), torch.randn(1, 8, 5)),)",
            None,
        ),
        (
            "def __init__(self, kernel_size): self.conv = nn.Conv2d(3, 4, kernel_size, padding=kernel_size[0] // 2)\n"
            "def forward(self, x): return self.conv(x)",
            "kernel_size=(3, 3)",
            None,
            None,
        ),
        (
            "def __init__(self, steps: int | tuple[int, ...]): self.heads = [nn.Linear(8, n) for n in steps]\n"
            "def forward(self, x): return x",
            "steps=8",
            None,
            None,
        ),
        (
            "def __init__(self, activations): self.activations = nn.ModuleList(activations)\n"
            "def forward(self, x): return self.activations[0](x)",
            "activations=[torch.nn.Identity(), torch.nn.Identity()]",
            None,
            None,
        ),
        (
            "def __init__(self, args):\n    Ks = args.sizes\n    self.convs = [nn.Conv1d(4, 4, K) for K in Ks]\n"
            "def forward(self, x): return x",
            "args=Namespace(sizes=[8, 8])",
            None,
            None,
        ),
        # what picks is whole numbers or truth values
        (
            "def forward(self, x, rows): return x[rows]",
            None,
            "(torch.randn(2, 8), torch.randint(0, 2, (2,)),)",
            None,
        ),
        (
            "def forward(self, x, src_mask): return x * src_mask",
            None,
            "(torch.randn(2, 8), torch.rand(2,) > 0.5,)",
            None,
        ),
        (
            "def forward(self, x, *, scale): return x * scale",
            None,
            "(torch.randn(2, 8),)",
            "{'scale': torch.randn(2, 8, 8)}",
        ),
    ],
)
def test_uses_tell_what_a_model_takes(
    tmp_path: Path, text: str, init: str | None, inputs: str | None, kwargs: str | None
) -> None:
    body = "\n".join("    " + line for line in text.splitlines())
    path = tmp_path / "net.py"
    path.write_text(
        f"import torch\nfrom torch import nn\nfrom einops import rearrange\n\nclass Net(nn.Module):\n{body}\n"
    )
    [model] = find_models(path, path.read_text())
    first = model.proposals[0]
    assert (first.init or None, first.kwargs) == (init, kwargs)
    assert inputs is None or first.inputs == inputs


CONFIGURED = {
    "a dataclass by its fields": (
        """
@dataclass
class Settings:
    width: int
    depth: int = 2
    kernel: int = field(default=5)

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(config.width, config.width, config.kernel) for _ in range(config.depth)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
        "config=Settings(width=8)",
        "(torch.randn(2, 8, 32),)",
    ),
    "options of the command line": (
        """
def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab-size", type=int, default=90)
    parser.add_argument("--tie", action="store_true")
    return parser.parse_args()

class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.words = nn.Embedding(args.vocab_size, getattr(args, "dim", 12))
        self.out = nn.LSTM(12, args.hidden, batch_first=True)
    def forward(self, sentence, lengths):
        y, _ = self.out(self.words(sentence))
        return y * 2 if self.args.tie else y
""",
        "args=Namespace(vocab_size=90, dim=12, hidden=8, tie=False)",
        "(torch.randint(0, 90, (2, 8)), torch.full((2,), 8),)",
    ),
    "keys of a dict, and inputs in one": (
        """
class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(cfg["model"]["channels"], 8, 3), nn.ReLU())
        self.words = nn.Embedding(cfg["vocab"], cfg.get("dim", 16))
    def forward(self, batch):
        return self.image(batch["image"]).mean(), self.words(batch["ids"])
""",
        "cfg={'model': {'channels': 8}, 'vocab': 32, 'dim': 16}",
        "({'image': torch.randn(2, 8, 32, 32), 'ids': torch.randint(0, 32, (2, 8))},)",
    ),
    "what a method and a submodule do": (
        """
class Graph(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_in, n_out))
    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight))

class Net(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.first = Graph(n_in, 8)
        self.words = nn.Embedding(40, 8)
    def read(self, text):
        return self.words(text)
    def forward(self, x, adj, text):
        return self.first(x, adj), self.read(text)
""",
        "n_in=8",
        "(torch.randn(2, 8), torch.rand(2, 2), torch.randint(0, 40, (2, 8)),)",
    ),
}


@pytest.mark.parametrize("kind", CONFIGURED)
def test_what_is_read_of_a_configuration_makes_one(tmp_path: Path, kind: str) -> None:
    text, init, inputs = CONFIGURED[kind]
    infos = found(tmp_path, "import argparse\nfrom dataclasses import dataclass, field\n" + dedent(text))
    [info] = [info for info in infos if info.name == "Net"]
    assert (info.proposals[0].init, info.proposals[0].inputs) == (init, inputs)


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


def test_where_a_name_misleads_the_other_kind_is_tried(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(8, 4, 2) for _ in range(2)])
    def forward(self, tokens):
        tokens = torch.transpose(tokens, 1, 2)
        return torch.cat([layer(tokens) for layer in self.layers], 1)
"""
    [info] = found(tmp_path, text)
    assert "(torch.randn(2, 8, 8),)" in [proposal.inputs for proposal in info.proposals]


def test_an_object_of_the_file_takes_what_its_class_takes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self, width):\n"
        "        super().__init__()\n        self.layer = nn.Linear(width, 2)\n"
        "    def forward(self, x):\n        return self.layer(x)\n\nmodel = Net(8)\n"
    )
    first, *_ = proposals_for(ExportRequest(f"{file}:model"))
    assert (first.init, first.inputs) == (None, "(torch.randn(2, 8),)")


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


def test_dims_of_a_dict_of_inputs_and_of_a_graph(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
    def forward(self, {names}):
        return self.words({used})

if __name__ == "__main__":
    Net()({given})
"""
    given = "{'ids': torch.ones(2, 6, dtype=torch.long), 'lengths': torch.full((2,), 6)}"
    [keyed] = found(tmp_path, text.format(names="batch", used="batch['ids']", given=given))
    assert keyed.dynamic_shapes == (
        "{'batch': {'ids': {0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}, "
        "'lengths': {0: Dim('batch', min=1, max=64)}}}"
    )
    given = "torch.ones(5, 4), torch.ones(5, 5), torch.randint(0, 5, (2, 7))"
    [graph] = found(tmp_path, text.format(names="x, adj, edge_index", used="edge_index", given=given))
    assert graph.dynamic_shapes == (
        "{'x': None, 'adj': None, 'edge_index': {1: Dim('edges', min=2, max=128)}}"
    )
