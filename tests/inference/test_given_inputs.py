"""Example inputs that a file gives its models: what they tell of the inputs, and of the sizes of what is computed of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.inference.sizes import sizes_of
from exportlens.inference.values import Tensor

from tests.rewriting.fixing_all import mend

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
COMPUTED = """
x + 1 | x * v | x / s | x @ m | x[0] @ m | x > 0 | -x | x.T | x[0].mT | x[0] | x[:, 1:] | x[..., None] | x[None, 0, :, ::2] | x[:, -1]
x.mean() | x.mean(1) | x.sum(dim=(0, 2), keepdim=True) | x.max(1).values | x.amax(-1) | x.argmax(2) | x.std() | x.norm(dim=0) | x.softmax(-1)
x.unsqueeze(1) | x.squeeze() | x[:1].squeeze(0) | x.transpose(0, 2) | x.permute(2, 0, 1) | x.view(-1) | x.reshape(6, -1) | x.flatten(1)
x.flatten(0, 1) | v.expand(3, -1) | torch.cat([x, x], 1) | torch.stack([v, v]) | torch.stack((v, v), dim=-1) | torch.where(x > 0, x, 0.0)
torch.zeros(x.size(0), 5) | x.new_zeros(x.shape[1], 2) | torch.zeros_like(x).to(x.device) | torch.ones(x.shape) | torch.full((2, 3), 1.0)
x.unbind(1)[0] | x.chunk(2, -1)[1] | x.split(1, 1)[2] | torch.tanh(x) | F.sigmoid(x) | x.clamp(min=0) | x.detach().clone() | x.cumsum(1)
self.linear(x) | self.embedding(n) | self.cell(v[None], v[None]) | self.conv(x[None]) | self.layers(x) | self.norm(x) | torch.bmm(x, x.transpose(1, 2))
torch.eye(3, 2) | torch.arange(1, 7, 2) | torch.linspace(0, 1, 5) | torch.tensor([[1.0, 2.0, 3.0]]) | x.data | x.float() | x.abs().sqrt()
torch.matmul(x, v) | x.new_full((x.dim(), 2), 0.5) | x.size(0) * v | torch.maximum(x, v) | x.masked_fill(x > 0, 0)
x.repeat(1, 2, 1) | x.movedim(0, -1) | x.gather(1, torch.zeros(2, 2, 4, dtype=torch.long)) | x.index_select(1, n[:2] % 3) | F.linear(x, m[:3])
self.gru(x)[0] | self.gru(x)[1] | self.lstm(x)[0] | self.lstm(x)[1][1] | x * x[..., :1] | x[:1] - v | x[n % 2] | x[:, n[:2] % 2, 1:]
x[torch.randperm(2)][:1] | torch.as_tensor(x) | x.swapaxes(0, 2)
"""
LAYERS = """
        self.linear = nn.Linear(4, 7)
        self.embedding = nn.Embedding(9, 5)
        self.cell = nn.GRUCell(4, 4)
        self.conv = nn.Conv2d(2, 5, 3, stride=2, padding=1)
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        self.norm = nn.LayerNorm(4)
        self.gru = nn.GRU(4, 5, 2, batch_first=True)
        self.lstm = nn.LSTM(4, 3, bidirectional=True)
"""
# What raises where it runs: a dimension that is not there, sizes that do not fit, and dimensions twice.
NOT_THERE = """
v.transpose(1, 0) | x.transpose(0, 3) | x.transpose(-4, 0) | x.permute(0, 1, 3) | x.permute(0, 1) | x.sum(9) | torch.cat([v, v], 3) | x.swapaxes(0, 7)
torch.stack([v, v], 9) | x.flatten(5) | x.flatten(2, 1) | x.unbind(7) | x.chunk(2, 9) | x.split(1, -9) | x.movedim(0, 9) | x.select(9, 0) | x.size(9)
x.index_select(9, n) | x.gather(9, n) | x.narrow(9, 0, 1) | x[0, 0, 0, 0, 0] | x.view(7) | x.view(-1, 5) | x.view(-1, -1) | v.expand(2) | x.repeat(1)
x.unsqueeze(9) | x.squeeze(9) | x.shape[9] | x @ v @ v @ v | s @ v | torch.bmm(v, v) | x.diff(dim=9) | x.T.mT | s.mT | x.unfold(9, 1, 1) | s[0]
self.conv(v) | self.linear(s) | self.gru(s) | self.lstm(v)[1][4] | self.cell(x) | F.linear(s, s) | torch.linspace(0, 1, -5) | torch.full((-2,), 1.0)
x.cumsum(9) | x.roll(1, 9) | x.flip(9) | x.topk(9, 9) | x.kthvalue(2, 9) | x.movedim((0, 1), (0,)) | torch.eye(-1) | torch.arange(5, 1) | x.mean((0, 9))
"""
GIVEN = "def get_inputs():\n    n = torch.randint(0, 9, (3,))\n    return torch.randn(2, 3, 4), torch.rand(4), torch.tensor(2.0), torch.eye(4), n\n"


def _states(tmp_path: Path, text: str) -> dict[str, tuple[int, ...]]:
    """The sizes of what the models of `text` write to each attribute."""
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    engine.update(path, text)
    engine.check(path)
    found: dict[str, tuple[int, ...]] = {}
    for name, nodes in engine._state_in_sizes(path, lambda: False).items():
        for place in nodes.values():
            assert isinstance(place.value, Tensor)
            sizes = sizes_of(place.value)
            assert sizes is not None
            found[name] = sizes
    return found


def test_sizes_are_those_of_torch(tmp_path: Path) -> None:
    cases = [each.strip() for each in COMPUTED.replace("\n", "|").split("|") if each.strip()]
    body = "".join(f"        self.v{number} = {case}\n" for number, case in enumerate(cases))
    text = HEAD + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()" + LAYERS
    text += "\n    def forward(self, x, v, s, m, n):\n" + body + "        return x\n\n\n" + GIVEN
    believed = _states(tmp_path, text)
    namespace: dict[str, object] = {}
    exec(compile(text, "model.py", "exec"), namespace)
    model, given = namespace["M"], namespace["get_inputs"]
    assert callable(model) and callable(given)
    made = model()
    made(*given())
    wrong = {
        case: (believed[f"v{number}"], tuple(getattr(made, f"v{number}").shape))
        for number, case in enumerate(cases)
        if f"v{number}" in believed and believed[f"v{number}"] != tuple(getattr(made, f"v{number}").shape)
    }
    assert not wrong
    unknown = [case for number, case in enumerate(cases) if f"v{number}" not in believed]
    assert unknown == []


MODEL = """class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.last = None

    def forward(self, x):
        change = x if self.last is None else x - self.last
        self.last = x * 2
        return change


"""
OTHER = "class Other(nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n"
BEGUN = 'self.register_buffer("last", torch.zeros(2, 4), persistent=False)'


@pytest.mark.parametrize(
    "given",
    [
        "def get_inputs():\n    return (torch.randn(2, 4),)\n",
        "def example_inputs(batch=2):\n    return [torch.rand(batch, 4)]\n",
        "def inputs():\n    x = torch.ones(2, 4)\n    return [(x,), (x * 3,), (-x,)]\n",
        "EXAMPLE_INPUTS = (torch.zeros(2, 4),)\n",
        "dummy_input = torch.randn(2, 4)\n",
        'if __name__ == "__main__":\n    net = Net().eval()\n    print(net(torch.randn(2, 4)).shape)\n',
        "torch.export.export(Net(), (torch.randn(2, 4),))\n",
        "if __name__ == '__main__':\n    model = Net(4)\n    program = torch.export.export(model, args=(torch.rand(2, 4),))\n",
        OTHER + "Other()(torch.randn(3, 3))\nNet()(torch.randn(2, 4))\n",
        "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n\n"
        "    def forward(self, x, y):\n        return self.net(x + y)\n\n\ndef get_inputs():\n    return torch.ones(2, 4), torch.ones(4)\n",
    ],
)
def test_where_examples_stand(given: str) -> None:
    assert BEGUN in mend(HEAD + MODEL + given).text


@pytest.mark.parametrize(
    "given",
    [
        "",
        "def get_inputs():\n    return [(torch.randn(2, 4),), (torch.randn(3, 4),)]\n",
        "def get_inputs(batch):\n    return (torch.randn(batch, 4),)\n",
        "def get_inputs():\n    return (torch.randn(2, 4), torch.randn(2, 4))\n",
        "def outputs():\n    return (torch.randn(2, 4),)\n",
        OTHER + "def get_inputs():\n    return (torch.randn(2, 4),)\n",
        "Net()(torch.randn(2, 4))\nNet()(torch.randn(3, 4))\n",
        "def get_inputs():\n    raise SystemExit\n",
        "def get_inputs():\n    while True:\n        pass\n",
        "def get_inputs():\n    return (torch.randn(*load()),)\n",
    ],
)
def test_examples_that_do_not_tell(given: str) -> None:
    mended = mend(HEAD + MODEL + given)
    assert "register_buffer" not in mended.text
    assert any("final shape" in each for each in mended.refusals)


def test_other_sizes_are_not_taken_for_the_examples() -> None:
    forward = "        self.last = x * 2\n"
    text = HEAD + MODEL.replace(forward, forward + "        if x.sum() > 9:\n            self.last = x[:1]\n")
    assert BEGUN not in mend(text + "def get_inputs():\n    return (torch.randn(2, 4),)\n").text


def test_an_edit_of_the_examples_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    for sizes in ("2, 4", "5, 3"):
        engine.update(path, HEAD + MODEL + f"def get_inputs():\n    return (torch.randn({sizes}),)\n")
        fixes = [each.fix for each in engine.with_fixes(engine.check(path)) if each.fix is not None]
        assert [f"torch.zeros({sizes})" in edit.content for fix in fixes for edit in fix.edits].count(
            True
        ) == 1


def test_dtypes_and_ranks_are_known(tmp_path: Path) -> None:
    """The rank of an input tells that of its mean, which a Module keeps as one number."""
    text = (
        HEAD
        + MODEL.replace("x * 2", "x.mean(0)")
        + "def get_inputs():\n    return (torch.rand(4, dtype=torch.float32),)\n"
    )
    assert _states(tmp_path, text) == {"last": ()}
    assert ast.parse(mend(text).text)
    assert 'register_buffer("last", torch.zeros(())' in mend(text).text


GLOBALS = """SCALE = torch.tensor([2.0, 3.0])
table = torch.zeros(4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.zeros(3, 4))

    def forward(self, x):
        if self.w.shape[0] > 5 and x.sum() > 0:
            x = x + 1
        if SCALE.shape[0] > 5 and x.sum() > 0:
            x = x - 1
        if table.sum() > x.shape[0]:
            x = x * 2
        return x * SCALE


"""


@pytest.mark.parametrize(
    ("annotation", "given", "decided"),
    [
        ("float", "(torch.ones(4), torch.tensor(0.5))", True),
        ("int", "torch.ones(4), torch.tensor(3)", True),
        ("float", "(torch.ones(4), 0.5)", False),
        ("float", "[(torch.ones(4), 0.5), (torch.ones(4), torch.tensor(0.5))]", False),
        ("float", "(torch.ones(4), torch.ones(2))", False),
        ("float", "(torch.ones(4), load())", False),
    ],
)
def test_numbers_that_are_tensors(annotation: str, given: str, decided: bool) -> None:
    text = f"class M(nn.Module):\n    def forward(self, x, step: {annotation}):\n        if step > 0:\n            x = x / step\n        return x\n"
    assert ("torch.cond" in mend(f"{HEAD}{text}\n\ndef get_inputs():\n    return {given}\n").text) is decided


def test_no_finding_hangs_on_sizes(tmp_path: Path) -> None:
    """What the code around a model makes and calls is interpreted with sizes, and known to nothing else."""
    found = []
    for given in (
        "",
        "net = Net()\nprint(net(torch.randn(2)))\n",
        "def get_inputs():\n    return (torch.randn(2),)\n",
    ):
        path = tmp_path / "model.py"
        engine = Engine(Config(root=tmp_path))
        engine.update(path, HEAD + GLOBALS + given)
        found.append([(each.code, each.range.start.line) for each in engine.check(path)])
    assert found[0] and found == [found[0]] * 3


@pytest.mark.parametrize("default", ["", "=None"])
def test_inputs_that_may_be_left_out_are_what_examples_give(default: str) -> None:
    text = f"""
class M(nn.Module):
    def forward(self, x, counts{default}, **others):
        if counts is not None:
            x = x * self.helper(x, counts)
        return x

    def helper(self, x, counts):
        return torch.cat([torch.ones(int(n)) for n in counts]).sum() / len(counts)


def make_inputs():
    return [(torch.randn(3), torch.tensor([1, 2]))]
"""
    engine = Engine(Config(root=Path("/")))
    engine.update(Path("/model.py"), HEAD + text)
    assert "EXL401" in {each.code for each in engine.check(Path("/model.py"))}


def test_sizes_of_what_raises_are_left_unknown(tmp_path: Path) -> None:
    cases = [each.strip() for each in NOT_THERE.replace("\n", "|").split("|") if each.strip()]
    for number, case in enumerate(cases):
        text = HEAD + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()" + LAYERS
        text += (
            f"\n    def forward(self, x, v, s, m, n):\n        self.made = {case}\n        return x\n\n\n"
            + GIVEN
        )
        path = tmp_path / f"model_{number}.py"
        engine = Engine(Config(root=tmp_path))
        engine.update(path, text)
        assert engine.check(path) is not None, case
