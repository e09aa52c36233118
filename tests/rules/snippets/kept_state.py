"""State that only later calls read, as what calls change decides, and what is set in each call before it is read."""

from __future__ import annotations

_HEAD = """
from collections import deque, namedtuple

import torch
import torch.nn.functional as F
from torch import nn


Stats = namedtuple("Stats", "mean n")


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.state = "init"
        self.prev = None
        self.hist = [None] * 3
        self.queue = []
        self.table = {}
        self.option = "plain"

    def less(self, x):
        return x - self.prev

    def less_two(self, x, kept):
        newest, older = kept[-1], kept[-2]
        return x - newest + older

    def keep(self, x):
        self.prev = x * 2
        self.hist[0] = x

    def forward(self, x: torch.Tensor):
        FORWARD
"""


def _model(forward: str) -> str:
    return _HEAD.replace("FORWARD", forward.replace("\n", "\n        "))


_BEGUN = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)
        self.layer = nn.Linear(4, 4)
        self.first = True
        self.steps = 0

    def begin(self, value):
        self.mean = value
        self.first = False

    def forward(self, x: torch.Tensor):
        FORWARD
        return x - self.mean
"""


def _begun(forward: str) -> str:
    return _BEGUN.replace("FORWARD", forward.replace("\n", "\n        "))


def _held(forward: str) -> str:
    """A model that holds two tensors in a dict."""
    begun = 'self.held = {"h": torch.zeros(4), "c": torch.ones(4)}'
    return _model(forward).replace('self.option = "plain"', begun)


def _handed(step: str, forward: str, begun: str = '{"h": torch.zeros(4), "of": {"c": torch.ones(4)}}') -> str:
    """A model that hands the dict that it holds to a method `step`."""
    text = _model(forward).replace('self.option = "plain"', f"self.held = {begun}")
    body = step.replace("\n", "\n        ")
    return text.replace(
        "    def forward", f"    def step(self, kept, x: torch.Tensor):\n        {body}\n\n    def forward"
    )


def _averaged(first: str, later: str, result: str) -> str:
    """A mean over calls, kept as numbers of Python."""
    return _model(
        f"m = x.abs().mean().item()\nif self.prev is None:\n    self.prev = {first}\nelse:\n    self.prev = {later}\n"
        f"return {result}"
    )


MUST = {
    "EXL205": [
        _begun(
            "if self.first:\n    self.begin(x.mean(0))\nelse:\n    self.mean = 0.9 * self.mean + x.mean(0)"
        ),
        # turned in each call, beside what is kept
        _begun("y = x\nif not self.first:\n    y = x + self.mean\nself.mean = y.mean(0)\nself.first = False"),
        _begun(
            "y = x\nif not self.first:\n    y = x + self.mean\nself.mean.copy_(y.mean(0))\nself.first = False"
        ),
        _begun(
            "y = self.layer(x).mean(0)\nif self.first:\n    self.mean, self.first = y, False\n"
            "else:\n    self.mean = 0.9 * self.mean + y"
        ),
        # what decides the result, and is turned behind it
        _model("y = x * 2 if self.steps == 0 else x\nself.steps = 1\nreturn y"),
        _model('if self.state == "init":\n    self.state = "run"\n    return x * 2\nreturn x'),
        _model(
            'if self.state == "init":\n    y = x * 2\n    self.state = "run"\nelse:\n    y = x\n    self.state = "init"\nreturn y'
        ),
        _begun("self.first = not self.first\nif self.first:\n    x = x * 2"),
        _begun("self.mean, self.first = x.mean(0), not self.first\nif self.first:\n    x = x * 2"),
        _averaged("m", "self.prev * 0.9 + m * 0.1", "x / self.prev"),
        # begun anew where it has come to its end
        _model(
            "y = x * self.steps\nif self.steps > 0:\n    self.steps -= 1\nelse:\n    self.steps = 3\nreturn y"
        ),
        _model(
            "if self.steps > 0:\n    self.steps = self.steps - 1\n    return x * 2\nself.steps = 3\nreturn x"
        ),
        # computed by names of what the last call left
        _model("n = self.steps\ny = x * n\nself.steps = (n + x.shape[0]) % 7\nreturn y"),
        _model("n = self.steps\ny = x * n\nn += 2\nif n > 7:\n    n = 0\nself.steps = n\nreturn y"),
    ],
    "EXL206": [
        # bound, and then only detached
        _model(
            "y = x * 2\nif self.prev is not None:\n    y = y + self.prev\nself.prev = y\nself.prev = self.prev.detach()\nreturn y"
        ),
        # read by a method
        _model(
            "y = x * 2\nif self.steps > 0:\n    y = self.less(y)\nself.prev = y\nself.steps += 1\nreturn y"
        ),
        # set by a method, also by its name, and only read where the last call has set it
        _model("y = x * 2\nif self.prev is not None:\n    y = y + self.prev\nself.keep(x)\nreturn y"),
        _model("y = x * 2\nif self.prev is not None:\n    y = y + self.prev\nself.keep(x)\nreturn y").replace(
            "self.prev = x * 2", 'setattr(self, "prev", x * 2)'
        ),
        _model("y = x if self.prev is None else self.less(x)\nself.keep(prev=x)\nreturn y").replace(
            "keep(self, x):\n        self.prev = x * 2\n        self.hist[0] = x",
            "keep(self, **kept):\n        for name, value in kept.items():\n            setattr(self, name, value * 2)",
        ),
        # begun by a counter, a flag of text, in a ternary, behind an early return
        _model(
            "if self.steps == 0:\n    self.prev = x * 2\nelse:\n    self.prev = 0.9 * self.prev + x\nself.steps += 1\nreturn x - self.prev"
        ),
        _model(
            'if self.state == "init":\n    self.prev = x * 2\n    self.state = "track"\n    return x\nreturn F.cosine_similarity(x, self.prev)'
        ),
        _model(
            "first = self.steps == 0\ny = x if first else x - self.prev\nself.prev = y * 2\nself.steps += 1\nreturn y"
        ),
        _model(
            "if self.prev is None:\n    self.prev = x\n    return x\ny = x - self.prev\nself.prev = x\nreturn y"
        ),
        # kept until what comes in has moved far from it
        _model(
            "if self.prev is None or (x - self.prev).abs().max() > 0.5:\n    self.prev = x\nreturn self.prev * 2"
        ),
        _model(
            "if self.prev is None or torch.dist(x, self.prev) > self.steps:\n    self.state = x.exp()\n    self.prev = x\nreturn self.state"
        ),
        # begun where another is
        _model("if self.prev is None:\n    self.state = x.exp()\n    self.prev = 1\nreturn self.state"),
        # made by the first call, and written in place by each
        _model(
            "if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev.add_(x)\nreturn x - self.prev"
        ),
        _model(
            "if self.steps == 0:\n    self.steps = 1\nif self.prev is None or self.prev.shape != x.shape:\n"
            "    self.prev = torch.zeros(x.shape)\ny = self.prev.mul_(0.5).add_(x)\nreturn y - self.prev"
        ),
        _model(
            "if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev[:, 0] += x[:, 0]\nreturn x - self.prev"
        ),
        _model(
            "if self.prev is None:\n    self.prev = x * 0\nself.prev.copy_(self.prev * 0.5 + x)\nreturn x - self.prev"
        ),
        _begun(
            "if self.first:\n    self.mean = torch.zeros(x.shape[1])\n    self.first = False\nself.mean += x.mean(0)"
        ).replace("self.mean = torch.zeros(4)", "self.mean = None"),
        # several values at once, in a tuple or a named one
        _model(
            "if self.prev is None:\n    self.prev = (x.mean(0), x.std(0) + 1)\nmean, std = self.prev\nreturn (x - mean) / std"
        ),
        _model(
            "if self.prev is None:\n    self.prev = Stats(x.mean(0), x.shape[0])\nreturn (x - self.prev.mean) / self.prev.n"
        ),
        # begun as a tensor, set by a method or by a count
        _begun(
            "if self.first:\n    self.begin(x.mean(0))\nelse:\n    self.mean = 0.9 * self.mean + x.mean(0)"
        ),
        _begun(
            "if self.steps == 0:\n    self.mean = x.mean(0)\nelse:\n    self.mean = 0.9 * self.mean + x.mean(0)\nself.steps += 1"
        ),
        # in a dict, which is made anew
        _held(
            'self.held = {"h": x.mean(0) + self.held["h"], "c": self.held["c"] + 1}\nreturn x - self.held["h"]'
        ),
        _held(
            'held = self.held\ny = x + held["h"]\nself.held = {"h": y.mean(0), "c": held["c"] * 0.9}\nreturn y - held["c"]'
        ),
        _held(
            'if self.held is None:\n    self.held = {"h": x.mean(0)}\nself.held = {"h": 0.9 * self.held["h"] + x.mean(0)}\n'
            'return x - self.held["h"]'
        ).replace('{"h": torch.zeros(4), "c": torch.ones(4)}', "None"),
        # an attribute that the constructor does not make
        _model("if self.steps > 0:\n    x = x - self.late\nself.late = x * 2\nself.steps += 1\nreturn x"),
    ],
    "EXL218": [
        # a dict that a method is given, under another name, and a dict inside of it
        _handed(
            'old = kept["h"]\nkept["h"] = old * 0.9 + x.mean(0)',
            'self.step(self.held, x)\nreturn x - self.held["h"]',
        ),
        _handed(
            'c = kept["of"]["c"]\nnew = kept\nnew["of"]["c"] = c + x.mean(0)\nreturn new',
            'self.held = self.step(self.held, x)\nreturn x - self.held["of"]["c"]',
        ),
        _handed('kept["h"] += x.mean(0)\nreturn kept["h"]', "return x - self.step(self.held, x)"),
        # begun by the first call's data
        _averaged("[m]", "[e * 0.9 + m * 0.1 for e in self.prev]", "x / self.prev[0]"),
        _averaged("list((m, m))", "[0.9 * a + 0.1 * m for a in self.prev]", "x / self.prev[0]"),
        _model(
            "m = x.mean().item()\nself.hist = [h * 0.9 + m for h in self.hist]\nreturn x - self.hist[0]"
        ).replace("[None] * 3", "[0.0, 0.0]"),
        # how many there are decides what is given
        _model("self.queue.append(x.detach())\nif len(self.queue) > 1:\n    return x * 2\nreturn x"),
        _model("self.queue.append(x.shape[0])\nreturn x / len(self.queue)"),
        _model("self.queue.append(x.mean().item())\nreturn x - sum(self.queue) / len(self.queue)"),
        _model(
            "for i in range(2):\n    self.hist[i] = self.hist[i + 1]\nself.hist[-1] = x * 2\n"
            "if self.steps > 0:\n    x = self.less_two(x, self.hist)\nself.steps += 1\nreturn x"
        ),
        _model(
            "self.queue = self.queue[-3:]\nself.queue.append(x * 2)\nif len(self.queue) > 1:\n    x = x - self.queue[-2]\nreturn x"
        ),
        _model(
            "self.queue = self.queue[-3:]\nself.queue.append(x * 2)\nif self.steps > 0:\n    x = x - self.queue[-2]\n"
            "self.steps += 1\nreturn x"
        ),
    ],
}

MUST_NOT = {
    "EXL205": [
        # a table, the same whenever it is made
        _begun("if self.first:\n    self.begin(torch.arange(4.0))"),
        _begun("if self.first:\n    self.mean = torch.arange(4.0)\nself.first = False"),
        # turned and turned back
        _begun(
            "self.first = False\nself.mean = x.mean(0)\nif not self.first:\n    x = x + self.mean\nself.first = True"
        ),
        _begun("if self.first:\n    self.mean, self.first = torch.ones(x.shape[1]), False"),
        # a table for the last option, a message that is shown once
        _model(
            'if self.option == "even" and self.prev is not None:\n    return x + self.prev\nself.option = "even"\n'
            "self.prev = torch.arange(4.0) * 2\nreturn x + self.prev"
        ),
        _model('if self.state == "init":\n    print("begins")\n    self.state = "run"\nreturn x'),
        _model(
            'old = self.state\nself.state = "busy"\ny = x if self.state == "busy" else x * 2\nself.state = old\nreturn y'
        ),
        # a number of this call alone
        _model("self.steps = 0\nif self.steps > 0:\n    self.steps -= 1\nreturn x * 2"),
        _model("if x.shape[0] > 2:\n    self.steps = 0\nelse:\n    self.steps = 3\nreturn x * self.steps"),
        # names that have nothing to do with what the last call left
        _model("n = self.steps\nn = x.shape[0]\nself.steps = n + 1\nreturn x * n"),
        _model("self.steps = 3\nn = self.steps\nself.steps = n + 1\nreturn x * n"),
    ],
    "EXL206": [
        _model(
            "self.keep(x)\nself.steps = 1\nif self.steps > 0:\n    x = self.less(x)\nself.steps = 0\nreturn x"
        ),
        # a dict for the same call, or of the same tensors, moved
        _held('self.held = {"h": x.mean(0), "c": x.std()}\nreturn x - self.held["h"]'),
        _held(
            'self.held = {"h": self.held["h"].to(x.dtype), "c": self.held["c"].to(x.device)}\nreturn x - self.held["h"]'
        ),
        _held(
            "self.held = {key: value.to(x.device) for key, value in self.held.items()}\nreturn x - self.held['h']"
        ),
        _held(
            'self.held = dict(self.held)\nself.held = {**self.held, "n": x.shape[0]}\nreturn x - self.held["h"]'
        ),
        # set by a method before it is read, or asked for its shape alone
        _model("self.keep(x)\nif self.prev is not None:\n    x = x + self.prev\nreturn x"),
        _model("self.keep(x)\nif self.prev is not None:\n    x = x + self.prev\nreturn x").replace(
            "self.prev = x * 2", 'setattr(self, "prev", x * 2)'
        ),
        _model(
            "y = x\nif self.prev is not None and self.prev.shape == x.shape:\n    y = x * 2\nself.prev = None\nreturn y"
        ),
        # kept for the same input alone, or until it is longer
        _model(
            "if self.prev is None or not torch.equal(self.prev, x):\n    self.state = x.exp()\n    self.prev = x\nreturn self.state"
        ),
        _model(
            "if self.prev is None or (self.prev - x).abs().max() > 1e-6:\n    self.state = x.exp()\n    self.prev = x\nreturn self.state"
        ),
        _model(
            "if self.prev is None or len(self.prev) < len(x):\n    self.state = x.exp()\n    self.prev = x\nreturn self.state"
        ),
        # room that each call fills anew, a sum that nothing reads, and one that each call begins
        _model(
            "if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev.copy_(x * 2)\nreturn x - self.prev"
        ),
        _model(
            "if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev.zero_()\nself.prev.add_(x)\nreturn x - self.prev"
        ),
        _model(
            "if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev[:] = x\nself.prev.mul_(2)\nreturn x - self.prev"
        ),
        _model("if self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev.add_(x)\nreturn x"),
        _model(
            "self.prev = None\nif self.prev is None:\n    self.prev = torch.zeros_like(x)\nself.prev.add_(x)\nreturn x - self.prev"
        ),
        # tables and sizes, in a tuple or a named one
        _model(
            "if self.prev is None:\n    self.prev = (torch.arange(x.shape[0]), x.shape[0])\nreturn x.T + self.prev[0]"
        ),
        _model(
            "if self.prev is None:\n    self.prev = Stats(torch.zeros_like(x), x.shape[0])\nreturn x - self.prev.mean"
        ),
        # a table for the last size
        _model(
            "n = x.shape[0]\nif n == self.steps and self.prev is not None:\n    return x.T + self.prev\nself.steps = n\n"
            "self.prev = torch.arange(n) * 2\nreturn x.T + self.prev"
        ),
        _model('self.prev = x * 2\nif self.option == "plain":\n    x = self.less(x)\nreturn x'),
        _model(
            'self.state = "busy"\nself.prev = x * 3\nif self.state == "busy":\n    x = self.less(x)\nself.prev = None\nreturn x'
        ),
    ],
    "EXL218": [
        # set before it is read, kept for whoever looks at it, a table that is made once, and a copy
        _handed('kept["h"] = x.mean(0)\nreturn x - kept["h"]', "return self.step(self.held, x)"),
        _handed('kept["last"] = x.mean(0)\nreturn x * 2', "return self.step(self.held, x)"),
        _handed(
            'if "table" not in kept:\n    kept["table"] = torch.arange(x.shape[0])\nreturn x.T + kept["table"]',
            "return self.step(self.held, x)",
        ),
        _handed(
            'new = dict(kept)\nnew["h"] = new["h"] + x.mean(0)\nreturn new',
            'return x - self.step(self.held, x)["h"]',
        ),
        _handed(
            'new = {"h": kept["h"]}\nnew["h"] = new["h"] + x.mean(0)\nreturn new["h"]',
            "return x - self.step(self.held, x)",
        ),
        # numbers of data for whoever looks at them later, or of this call alone
        _averaged("[m]", "[e * 0.9 + m * 0.1 for e in self.prev]", "x / m"),
        _averaged("[m]", "[m * 2]", "x / self.prev[0]"),
        _model(
            "m = x.mean().item()\nself.prev = None\nif self.prev is None:\n    self.prev = [m]\nelse:\n"
            "    self.prev = [self.prev[0] + m]\nreturn x / self.prev[0]"
        ),
        # only kept short, or begun anew by each call
        _model("self.queue.append(x.detach())\nif len(self.queue) > 2:\n    self.queue.pop(0)\nreturn x * 2"),
        _model("self.queue = []\nself.queue.append(x)\nreturn x / len(self.queue)"),
        # numbers for whoever looks at them later, and of this call alone
        _model("self.queue.append(x.mean().item())\nreturn x"),
        _model("self.queue = []\nself.queue.append(x.mean().item())\nreturn x - sum(self.queue)"),
        # filled and read in each call, also by an option
        _model(
            'self.hist[0] = x * 2\nif self.option == "plain":\n    self.hist[1] = x\ny = self.hist[0]\n'
            'if self.option == "plain":\n    y = y + self.hist[1]\nreturn y'
        ),
        _model("for i in range(3):\n    self.hist[i] = x * i\nreturn self.hist[0] + self.hist[2]"),
        _model("self.keep(x)\nreturn x + self.hist[0]"),
        _model("self.queue = []\nfor i in range(3):\n    self.queue.append(x * i)\nreturn x + self.queue[1]"),
        _model(
            "if x.shape[0] not in self.table:\n    self.table[x.shape[0]] = torch.arange(x.shape[0])\nreturn x.T + self.table[x.shape[0]]"
        ),
    ],
}
