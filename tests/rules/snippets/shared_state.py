"""State that several functions of a call share, that the class keeps elsewhere, and options that data tell."""

from __future__ import annotations

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        INIT

    def begin(self, n):
        BEGIN

    def step(self, x):
        STEP

    def reset(self):
        RESET

    def forward(self, x: torch.Tensor):
        FORWARD
"""
_AROUND = """

class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x: torch.Tensor):
        y = self.cell(x)
        AROUND
        return y
"""


def _cell(init: str, begin: str, step: str, forward: str, reset: str = "pass") -> str:
    text = _MODEL
    for name, part in (
        ("INIT", init),
        ("BEGIN", begin),
        ("STEP", step),
        ("RESET", reset),
        ("FORWARD", forward),
    ):
        text = text.replace(name, part.replace("\n", "\n        "))
    return text


def _around(cell: str, around: str) -> str:
    return cell + _AROUND.replace("AROUND", around)


_ZEROS = "self.state = torch.zeros(n, 4)"
_ADDS = "self.state = self.state * 0.5 + x\nreturn self.state"
_ASKS = "if self.state is None:\n    self.begin(x.shape[0])\nreturn self.step(x)"
_NUMBER = "self.v = 0.0"
_CHARGE = "self.v = self.v + (x - self.v) / 2"
_FIRE = "self.step(x)\nreturn (self.v > 1).to(x)"

_KEEPER = """
import torch
from torch import nn


class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self._kept = {}

    def keep(self, name, value):
        self._kept[name] = value

    def __getattr__(self, name):
        if "_kept" in self.__dict__ and name in self.__dict__["_kept"]:
            return self.__dict__["_kept"][name]
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        kept = self.__dict__.get("_kept")
        if kept is not None and name in kept:
            kept[name] = value
        else:
            super().__setattr__(name, value)


class M(Keeper):
    def __init__(self):
        super().__init__()
        self.keep("v", torch.zeros(4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        FORWARD
"""


def _keeper(forward: str) -> str:
    return _KEEPER.replace("FORWARD", forward.replace("\n", "\n        "))


def _flag(text: str) -> str:
    return f"""
import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        flag = (x.max() > 3).item()
        {text}
"""


MUST = {
    "EXL206": [
        _cell("self.state = None", _ZEROS, _ADDS, _ASKS),
        _cell(
            "self.steps = 0", _ZEROS, _ADDS, _ASKS.replace("self.state is None", 'not hasattr(self, "state")')
        ),
        _cell(
            "self.state = None",
            _ZEROS,
            _ADDS,
            _ASKS.replace("None:", "None or self.state.shape[0] != x.shape[0]:"),
        ),
        # added to, asked by what begins it, read before it is bound
        _cell("self.state = None", _ZEROS, "self.state += x\nreturn self.state * 2", _ASKS),
        _cell(
            "self.state = None",
            f"if self.state is not None:\n    return\n{_ZEROS}",
            "last = self.state\nself.state = x * 2\nreturn x - last",
            "self.begin(x.shape[0])\nreturn self.step(x)",
        ),
        # a number that one method turns into a tensor and another reads
        _cell(_NUMBER, "pass", _CHARGE, _FIRE),
        # kept in a dict by `__setattr__`
        _keeper("self.v = self.v * 0.5 + x\nreturn self.layer(self.v)"),
    ],
    "EXL425": [
        _flag("return F.avg_pool1d(x, x.argmax().item())"),
        _flag("return x.unfold(0, 2, x.argmax() + 1)"),
        _flag("return torch.fft.rfft(x, n=x.argmax().item()).abs()"),
        _flag("return torch.roll(x, (1, x.argmax()), (0, 1))"),
        _flag("return F.dropout(x, 0.5, flag)"),
        _flag("return x.sum(0, keepdim=flag)"),
        _flag("return torch.addmm(x, x, x, beta=x.mean().item())"),
        _flag("return torch.normal(0.0, x.std().item(), (3,))"),
        _flag("return F.pairwise_distance(x, x, p=x.argmax().item())"),
        _flag('with torch.autocast("cpu", enabled=flag):\n            y = x @ x.T\n        return y.float()'),
    ],
}

MUST_NOT = {
    "EXL101": [
        # of rows that data pick, torch.topk takes as many as the program says
        _flag(
            "row = x.flatten()\n        best = row[row > 0].topk(2).values\n        y = 1 if best.shape[0] > 2 else 2\n        return x + y"
        ),
        # an attribute that `__setattr__` keeps under a name that is not known: under its own
        """
import torch
from torch import nn


class Options:
    renamed: dict[str, str]

    def __init__(self):
        self.clipped = False

    def __setattr__(self, key, value):
        if key in super().__getattribute__("renamed"):
            key = super().__getattribute__("renamed")[key]
        super().__setattr__(key, value)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.options = Options()

    def forward(self, x: torch.Tensor):
        if self.options.clipped:
            if x.max() > 3:
                return x.clamp(max=3)
        return x
""",
    ],
    "EXL206": [
        # made anew in each call
        _cell("self.state = None", _ZEROS, _ADDS, "self.begin(x.shape[0])\nreturn self.step(x)"),
        # set back in each call, by the model around it too
        _cell(
            "self.state = None",
            _ZEROS,
            _ADDS,
            _ASKS.replace("return", "y =") + "\nself.state = None\nreturn y",
        ),
        _around(
            _cell("self.state = None", _ZEROS, _ADDS, _ASKS, reset="self.state = None"), "self.cell.reset()"
        ),
        _around(_cell("self.state = None", _ZEROS, _ADDS, _ASKS), "self.cell.state = None"),
        _cell(_NUMBER, "pass", _CHARGE, f"{_NUMBER}\n{_FIRE}"),
        _around(_cell(_NUMBER, "pass", _CHARGE, _FIRE, reset=_NUMBER), "self.cell.reset()"),
        # a table
        _cell(
            "self.state = None",
            "self.state = torch.arange(n * 4.0).reshape(n, 4)",
            "self.state = self.state.to(x.dtype)\nreturn x + self.state",
            _ASKS,
        ),
        # a number that is summed for whoever looks at it
        _cell(_NUMBER, "pass", "self.v = self.v + x.mean()", "self.step(x)\nreturn x * 2"),
        _keeper("self.v = x * 2\nreturn self.layer(self.v)"),
    ],
    "EXL425": [
        # numbers from data that torch does not ask for, lengths of views, and numbers that are known
        _flag(
            "return torch.addmm(x, x, x, alpha=x.mean().item()) + torch.addcmul(x, x, x, value=x.std().item())"
        ),
        _flag(
            "n = x.argmax().item()\n        return torch.roll(x, n, 0).narrow(0, n, 1) + F.pad(x, (n, 0))[:1, :4]"
        ),
        _flag("return x.narrow(0, 0, x.argmax()).sum(0)"),
        _flag("return x.chunk(x.shape[0])[0] + x.roll(len(x), 0) + torch.linspace(0, 1, x.shape[1])"),
        _flag(
            'with torch.autocast("cpu", enabled=self.training):\n'
            "            return torch.sort(x, descending=x.shape[0] > 1).values * flag"
        ),
    ],
}
