"""What is mended at export calls and by registrations: repaired, exported and compared for real; or refused.

Each case is a file that fails, the codes of the fixes that a repair applies, and lines that its result has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from exportlens.config import load_config
from exportlens.export.models import proposals_for
from exportlens.export.repair import Repair, repair_model
from exportlens.export.request import ExportRequest
from exportlens.export.session import Session
from exportlens.repairing import Repairer

from tests.rewriting.driving import load
from tests.rewriting.fixing_all import mend

HEAD = "import torch\nfrom torch import nn\n\n\n"
MAIN = '\n\nif __name__ == "__main__":\n'

OPAQUE = (
    HEAD
    + """class Scores:
    def __init__(self, mean, top):
        self.mean = mean
        self.top = top


class Net(nn.Module):
    def forward(self, x):
        return Scores(x.mean(), x.max())
"""
    + MAIN
    + "    torch.export.export(Net(), (torch.randn(2, 4),))\n"
)
DICTIONARY = OPAQUE.replace(
    OPAQUE[OPAQUE.index("class Scores") : OPAQUE.index("class Net")], "class Scores(dict):\n    pass\n\n\n"
).replace("Scores(x.mean(), x.max())", "Scores(mean=x.mean(), top=x.max())")
DATACLASS = OPAQUE.replace(
    OPAQUE[OPAQUE.index("class Scores") : OPAQUE.index("class Net")],
    "@dataclass\nclass Scores:\n    mean: torch.Tensor\n    top: torch.Tensor\n\n\n",
).replace("import torch\n", "from dataclasses import dataclass\n\nimport torch\n", 1)
ONE = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    + MAIN
    + '    batch = torch.export.Dim("batch")\n'
    + '    torch.export.export(Net(), (torch.randn(1, 4),), dynamic_shapes={"x": {0: batch}})\n'
)
NAMED = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, ids, mask, scale=1.0):\n        return ids * mask\n"
    + MAIN
    + "    batch = torch.export.Dim('batch')\n    example = (torch.randint(0, 9, (1, 4)),)\n"
    + "    torch.export.export(Net(), example, {'mask': torch.ones(1, 4), 'scale': torch.ones(4)},"
    + " dynamic_shapes={'tokens': {0: batch}, 'mask': {0: batch}})\n"
)
TOO_WIDE = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] > 128:
            raise ValueError("too many")
        return x * 2
"""
    + MAIN
    + '    batch = torch.export.Dim("batch")\n'
    + '    torch.export.export(Net(), (torch.randn(3, 4),), dynamic_shapes={"x": {0: batch}})\n'
)
DERIVED = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, x, y):\n        return torch.cat([x, x]) + y\n"
    + MAIN
    + '    short = torch.export.Dim("short")\n    long = torch.export.Dim("long")\n'
    + "    inputs = (torch.randn(3, 4), torch.randn(6, 4))\n"
    + '    torch.export.export(Net(), inputs, dynamic_shapes={"x": {0: short}, "y": {0: long}})\n'
)
MULTIPLE = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, x):\n        return x.view(4, -1) + torch.ones(4, 6)\n"
    + MAIN
    + '    rows = torch.export.Dim("rows")\n'
    + '    torch.export.export(Net(), (torch.randn(8, 3),), dynamic_shapes={"x": {0: rows}})\n'
)
IN_THE_CALL = (
    MULTIPLE.replace('    rows = torch.export.Dim("rows")\n', "")
    .replace("{0: rows}", '{0: torch.export.Dim("rows")}')
    .replace("x.view(4, -1) + torch.ones(4, 6)", "x.view(x.shape[0] // 2, 2, 3).sum(1)")
)
STRICT_ONLY = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, x):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((x * x).sum(), x)
        return slope
"""
    + MAIN
    + "    torch.export.export(Net(), (torch.randn(3, 4),), strict=True)\n"
)
HINT = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, x, n):
        k = n.item()
        y = torch.zeros(1, 1, k, 4) + x.mean()
        return nn.functional.scaled_dot_product_attention(y, y, y)
"""
    + MAIN
    + "    torch.export.export(Net(), (torch.randn(4, 4), torch.tensor(3)))\n"
)
USED = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    + MAIN
    + "    program = torch.export.export(Net(), (torch.randn(2, 4),))\n"
    + "    program.module()(torch.randn(5, 4))\n"
)
FUNCTION = (
    HEAD
    + "layer = nn.Linear(4, 4)\n\n\ndef Net(x):\n    return torch.relu(layer(x))\n"
    + MAIN
    + "    torch.export.export(Net, (torch.randn(2, 4),))\n"
)

CASES = {
    "opaque class": (OPAQUE, ["EXL601"], ["lambda value: (list(vars(value).values()), list(vars(value))),"]),
    "dictionary": (DICTIONARY, ["EXL601"], ["lambda leaves, names: Scores(zip(names, leaves)),"]),
    "dataclass": (DATACLASS, ["EXL601"], ["torch.export.register_dataclass(Scores)"]),
    "example of one": (ONE, ["EXL413"], ["(torch.randn(2, 4),)"]),
    "names of inputs": (
        NAMED.replace(", 'scale': torch.ones(4)", ""),
        ["EXL413", "EXL414", "EXL413"],
        ["(torch.randint(0, 9, (2, 4)),)", "torch.ones(2, 4)", "{\"ids\": {0: batch}, 'mask': {0: batch}}"],
    ),
    "an input without a name": (
        NAMED.replace("tokens", "ids").replace("(1, 4)", "(2, 4)"),
        ["EXL414"],
        ["""'mask': {0: batch}, "scale": None}"""],
    ),
    "too wide": (TOO_WIDE, ["EXL418"], ['torch.export.Dim("batch", max=128)']),
    "derived": (DERIVED, ["EXL418"], ["long = 2 * short"]),
    "multiple": (MULTIPLE, ["EXL418"], ['_rows = torch.export.Dim("_rows", min=1)', "rows = 4 * _rows"]),
    "multiple in the call": (IN_THE_CALL, ["EXL418"], ['{0: 2 * torch.export.Dim("_rows", min=1)}']),
    "one mode": (STRICT_ONLY, ["strict"], ["strict=False)"]),
    "hint": (HINT, ["EXL408"], ["torch._check(k != 0)"]),
    "other size": (USED, ["EXL420"], ['dynamic_shapes={"x": {0: torch.export.Dim.AUTO}}']),
    "function": (FUNCTION, ["EXL613"], ["self.layer = layer", "NetModule(layer)"]),
}


class Workshop:
    """One session for all repairs of this file."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.session = Session(Path(sys.executable))

    def repair(self, path: Path, name: str = "Net") -> Repair:
        request = ExportRequest(f"{path}:{name}")
        request = replace(request, proposals=proposals_for(request))
        tools = Repairer(path, load_config(path, {"mode": "both"}))
        return self.loop.run_until_complete(repair_model(self.session, request, tools))

    def close(self) -> None:
        self.loop.run_until_complete(self.session.close())
        self.loop.close()


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()


@pytest.mark.parametrize("name", CASES)
def test_an_export_call_is_mended(workshop: Workshop, tmp_path: Path, name: str) -> None:
    text, codes, lines = CASES[name]
    path = tmp_path / "net.py"
    path.write_text(text)
    done = workshop.repair(path)
    assert done.repaired, (done.reason, done.steps)
    assert [step.code for step in done.steps if step.fix and not step.withdrawn] == codes
    for line in lines:
        assert line in done.texts[path]


REFUSALS = {
    "slots that the constructor computes": (
        OPAQUE.replace("    def __init__", '    __slots__ = ("mean", "top")\n\n    def __init__').replace(
            "self.top = top", "self.top = top * 2"
        ),
        "EXL601",
        "its constructor does more than keep its arguments",
    ),
    "a base that is not known": (
        DICTIONARY.replace("Scores(dict)", "Scores(set)"),
        "EXL601",
        "`Scores` is a set: register it with",
    ),
    "an example that is used elsewhere": (
        ONE.replace("(torch.randn(1, 4),)", "(x,)").replace(
            "    batch =", "    x = torch.randn(1, 4)\n    print(x)\n    batch ="
        ),
        "EXL413",
        "`x` is used for more than the example",
    ),
    "a size that only raises": (TOO_WIDE, "EXL419", "narrow the Dim by `min` and `max`"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_proved_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    text, code, reason = REFUSALS[name]
    path = tmp_path / "net.py"
    path.write_text(text)
    found = [f for f in Repairer(path, load_config(path, {})).diagnose({path: text}) if f.code == code]
    assert [finding.fix for finding in found] == [None]
    assert reason in "\n".join(found[0].notes)


CALLABLES = """import functools
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def scaled(self, x, scale=2.0):
        return self.layer(x) * scale

    def forward(self, x, shift=0.0, scale=1.0):
        return self.scaled(x, scale) + shift


class Ensemble:
    def __init__(self):
        self.net = Net()
        self.members = [nn.Linear(4, 4) for _ in range(2)]
        self.heads = {"first": nn.Linear(4, 2)}

    def __call__(self, x):
        return self.heads["first"](sum(each(x) for each in self.members) + self.net(x))


net, ensemble = Net(), Ensemble()
half = functools.partial(net, scale=0.5)
double = functools.partial(net.scaled, scale=2.0)
x = torch.randn(2, 4)
CALLS = [
    (ensemble, torch.export.export(ensemble, (x,), strict=STRICT, dynamic_shapes=({0: torch.export.Dim.AUTO},))),
    (half, torch.export.export(half, (x,), strict=STRICT, dynamic_shapes=({0: torch.export.Dim.AUTO},))),
    (double, torch.export.export(double, (x,), strict=STRICT, dynamic_shapes=({0: torch.export.Dim.AUTO},))),
    (net.scaled, torch.export.export(net.scaled, (x,), strict=STRICT, dynamic_shapes=({0: torch.export.Dim.AUTO},))),
    (abs, torch.export.export(lambda x: abs(net(x)), (x,), strict=STRICT)),
]
"""


@pytest.mark.parametrize("strict", [False, True])
def test_what_can_be_called_is_wrapped_with_its_modules(strict: bool) -> None:
    text = mend(CALLABLES.replace("STRICT", str(strict))).text
    made = load(text)
    x = torch.randn(3, 4)
    parameters = [sorted(program.state_dict) for _, program in made["CALLS"]]
    for function, program in made["CALLS"][:-1]:
        torch.testing.assert_close(program.module()(x), function(x))
    assert [len(each) for each in parameters] == [8, 2, 2, 2, 2], parameters
