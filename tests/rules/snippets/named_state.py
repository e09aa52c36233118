"""State that goes by a computed name, another name, a global, a class or a property-like home, and what only looks like it."""

from __future__ import annotations

_HEAD = """
from collections import deque

import torch
from torch import nn
"""
_MODEL = (
    _HEAD
    + """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        BEGIN

    def forward(self, x: torch.Tensor):
        FORWARD
"""
)


def _model(begin: str, forward: str) -> str:
    nl = "\n        "
    return _MODEL.replace("BEGIN", begin.replace("\n", nl)).replace("FORWARD", forward.replace("\n", nl))


_FLAGGED = (
    _HEAD
    + """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("low", "high"):
            self.register_buffer(name + "_kept", torch.zeros(4))
            setattr(self, name + "_seen", False)

    def observe(self, name, x):
        if not getattr(self, name + "_seen"):
            setattr(self, name + "_kept", FIRST)
            setattr(self, name + "_seen", True)
        LATER

    def forward(self, x: torch.Tensor):
        self.observe("low", x)
        self.observe("high", x * 2)
        return x - self.low_kept + self.high_kept
"""
)


def _flagged(first: str, later: str) -> str:
    return _FLAGGED.replace("FIRST", first).replace("LATER", later.replace("\n", "\n        "))


_MEANS = _flagged(
    "x.mean(0)", 'else:\n    setattr(self, name + "_kept", 0.9 * getattr(self, name + "_kept") + x.mean(0))'
)
_BEGIN_NAMES = "for name in ('low', 'high'):\n    setattr(self, name, BEGIN)"
_ZEROS = _BEGIN_NAMES.replace("BEGIN", "torch.zeros(4)")

_NONE_BY_NAMES = 'for name in ("low", "high"):\n    setattr(self, name + "_mean", None)'


def _mean_by_names(second: str, test: str, first: str = "mean = x") -> str:
    return (
        'for name in ("low", "high"):\n    mean = getattr(self, name + "_mean")\n'
        f"    if mean {test}:\n        {first}\n    else:\n        {second}\n"
        '    setattr(self, name + "_mean", mean)\n    x = x - mean\nreturn x'
    )


_COUNTED = (
    "state = self.kept\nif state is None:\n    state = (x.mean(0), x.shape[0])\nelse:\n    n = state[1] + x.shape[0]\n"
    "    state = (state[0] * 0.9 + x.mean(0) * 0.1, n)\nself.kept = state\nreturn x - state[0]"
)

MUST: dict[str, list[str]] = {
    "EXL205": [
        _HEAD
        + """

class M(nn.Module):
    calls = 0

    def forward(self, x: torch.Tensor):
        type(self).calls += 1
        return x * self.calls
""",
        # A flag of a computed name, and what begins with it.
        _MEANS,
    ],
    "EXL206": [
        # A count beside the tensor of the state.
        _model("self.kept = None", _COUNTED),
        # None first, and computed from itself where it is not.
        _model(_NONE_BY_NAMES, _mean_by_names("mean = mean * 0.9 + x * 0.1", "is None")),
        _model(_NONE_BY_NAMES, _mean_by_names("mean = x", "is not None", "mean = mean * 0.9 + x * 0.1")),
        _MEANS,
        _flagged("x.mean(0)", 'x = x + getattr(self, name + "_kept")'),
        _model(
            _ZEROS,
            "for name in ('low', 'high'):\n    setattr(self, name, 0.9 * getattr(self, name) + x.mean(0))\nreturn x - self.low",
        ),
        # What one name held is read under another once the attribute is written.
        _model(
            _ZEROS,
            "out = x\nfor name in ('low', 'high'):\n    old = getattr(self, name)\n    setattr(self, name, x.mean(0))\n"
            "    out = out - old\nreturn out",
        ),
        _model(
            _BEGIN_NAMES.replace("BEGIN", "None"),
            "out = x\nfor name in ('low', 'high'):\n    old = getattr(self, name)\n    if old is not None:\n"
            "        out = out + old\n    setattr(self, name, x * 2)\nreturn out",
        ),
        _model(
            "self.h = torch.zeros(4)",
            "object.__setattr__(self, 'h', 0.5 * self.h + x.mean(0))\nreturn x + self.h",
        ),
        _model(
            "self.h = torch.zeros(4)",
            "self.__dict__['h'] = 0.5 * self.__dict__['h'] + x.mean(0)\nreturn x + self.h",
        ),
        # The first call makes it.
        _model(
            "pass",
            "if not hasattr(self, 'h'):\n    self.h = torch.zeros(4)\nout = x - self.h\nself.h = x.mean(0)\nreturn out",
        ),
        # One method reads it, and another writes what it is given.
        _model(
            "self.h = torch.zeros(4)",
            "out = x - self.h\nself.push(out)\nreturn out",
        )
        + "\n    def push(self, value):\n        self.h = value.mean(0)\n",
        # A list that is empty before the first call.
        _model(
            "self.last = []",
            "both = [x * 2, x * 3]\nif not self.last:\n    self.last = [torch.zeros_like(each) for each in both]\n"
            "out = [a - b for a, b in zip(both, self.last)]\nself.last = both\nreturn torch.cat(out)",
        ),
        _HEAD
        + """

class M(nn.Module):
    seen = torch.zeros(4)

    def forward(self, x: torch.Tensor):
        M.seen = M.seen + x.sum(0)
        return x / (1 + M.seen.abs())
""",
    ],
    "EXL218": [
        # Read as a whole, and under another name.
        _model(
            "self.h = [torch.zeros(4) for _ in range(2)]",
            "for i in range(2):\n    self.h[i] = 0.5 * self.h[i] + x.mean(0)\nreturn x @ torch.stack(self.h).T",
        ),
        _model(
            "self.h = [torch.zeros(4), torch.zeros(4)]",
            "h = self.h\nfor i in range(2):\n    h[i] = 0.5 * h[i] + x.mean(0)\nreturn x @ torch.stack(h).T",
        ),
        # Several tensors in one item.
        _model(
            "self.past = [None, None]",
            "for i in range(2):\n    k, v = x * 2, x + 1\n    if self.past[i] is not None:\n        before, other = self.past[i]\n"
            "        k, v = k + before, v + other\n    self.past[i] = (k, v)\n    x = k * v\nreturn x",
        ),
        _model(
            "self.h = {'a': torch.zeros(4), 'b': torch.zeros(4)}",
            "a, b = self.h['a'], self.h['b']\na = 0.5 * a + x.mean(0)\nb = b + a\nself.h.update(a=a, b=b)\nreturn x + b",
        ),
        # What nothing else tells of is a tensor, as it is stacked.
        _model(
            "self.h = deque([torch.zeros(2, 4) for _ in range(3)], maxlen=3)",
            "self.h.append(x)\nreturn torch.stack(list(self.h)).mean(0)",
        ).replace("x: torch.Tensor", "x"),
        _HEAD
        + """
KEPT = {"mean": torch.zeros(4)}


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        KEPT["mean"] = 0.9 * KEPT["mean"] + 0.1 * x.mean(0)
        return x - KEPT["mean"]
""",
        # An object that is no Module, one of whose methods writes and another reads.
        _HEAD
        + """

class Mean:
    def __init__(self):
        self.kept = {"w": torch.zeros(4)}

    def update(self, key, value):
        self.kept[key] = 0.9 * self.kept[key] + 0.1 * value

    def get(self, key):
        return self.kept[key]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = Mean()

    def forward(self, x: torch.Tensor):
        self.mean.update("w", x.mean(0))
        return x - self.mean.get("w")
""",
    ],
}

MUST_NOT: dict[str, list[str]] = {
    "EXL205": [_flagged("torch.arange(4.0)", "pass")],
    "EXL206": [
        # A table beside the size that it was made for.
        _model(
            "self.kept = None",
            "if self.kept is None or self.kept[1] != x.shape[0]:\n    self.kept = (torch.arange(x.shape[0]).float(), x.shape[0])\n"
            "return x + self.kept[0][:, None]",
        ),
        # A table that is made by the first call, and kept.
        _model(_NONE_BY_NAMES, _mean_by_names("pass", "is None", "mean = torch.arange(4.0)")),
        # A table, whatever its name is.
        _flagged("torch.arange(4.0)", 'x = x + getattr(self, name + "_kept")'),
        # Tables that are made anew where they are too short.
        _model(
            _BEGIN_NAMES.replace("BEGIN", "None"),
            "for name in ('low', 'high'):\n    table = getattr(self, name)\n    if table is None or table.shape[0] < x.shape[0]:\n"
            "        setattr(self, name, torch.arange(x.shape[0]).float())\nreturn x + self.low[:, None]",
        ),
        _model(
            "pass",
            "if not hasattr(self, 'h'):\n    self.h = torch.arange(x.shape[0]).float()\nreturn x + self.h[:, None]",
        ),
        # Another method only moves it, or is given nothing of its values.
        _model("self.h = torch.zeros(4)", "out = x - self.h\nself.move(x)\nreturn out")
        + "\n    def move(self, like):\n        self.h = self.h.to(like.device)\n",
        # Only what this call put there is read.
        _model(
            "pass",
            "for name, v in (('mean', x.mean()), ('std', x.std())):\n    setattr(self, f'last_{name}', v)\nreturn x / self.last_std",
        ),
        # Moved.
        _model(
            _ZEROS,
            "for name in ('low', 'high'):\n    setattr(self, name, getattr(self, name).to(x.device))\nreturn x + self.low",
        ),
    ],
    "EXL218": [
        # A dict of each call's own, under another name.
        _model(
            "self.h = {}",
            "made = {}\nself.h = made\nmade['a'] = x * 2\nreturn x + made['a']",
        ),
        # Numbers and tensors that are only kept for whoever looks at them.
        _model(
            "self.kept = {}",
            "kept = self.kept\nkept['last'] = x.mean(0)\nkept.update(first=x[0])\nreturn x * 2",
        ),
    ],
}
