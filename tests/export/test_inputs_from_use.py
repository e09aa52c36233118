"""What a model does with its arguments tells which ones it takes: inputs, constructor arguments, configurations."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from exportlens.export.models import find_models, proposals_for
from exportlens.export.request import ExportRequest

from .conftest import found


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
