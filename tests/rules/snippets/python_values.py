"""State of Python that calls change and that decides what they give: iterators, lists that get shorter, sets, tuples of numbers."""

from __future__ import annotations

_HEAD = """
import itertools
from collections import Counter, deque

import torch
from torch import nn

SEEN = set()
IDS = itertools.count()


class M(nn.Module):
    shared = {"calls": 0}

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.ids = itertools.count()
        self.twos = itertools.repeat(2.0)
        self.factors = self.make()
        self.scales = [1.0, 0.5, 0.25]
        self.window = deque([1.0, 2.0, 3.0])
        self.queue = []
        self.seen = set()
        self.counts = Counter()
        self.table = {}
        self.state = (0, 1)
        self.steps = 0
        self.mode = None
        self.layer.register_forward_hook(lambda module, given, out: self.queue.append(out))

    def make(self):
        k = 1.0
        while True:
            yield k
            k = k * 0.5

    def begin(self):
        self.ids = itertools.count()

    def named(self):
        return f"step {next(self.ids)}"

    def numbered(self):
        return next(self.ids)

    def mean(self, x, history=[]):
        history.append(x)
        return sum(history) / len(history)

    def forward(self, x: torch.Tensor):
        FORWARD
"""


# Kept by keys, for whoever asks again: the same whenever it is made.
_CACHE = """
import torch
from torch import nn


class Cache:
    def __init__(self):
        self.items = {}

    def has(self, key):
        return key in self.items

    def get(self, key):
        return self.items[key] if key in self.items else None

    def put(self, key, value):
        self.items[key] = value


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = Cache()

    def forward(self, x: torch.Tensor):
        n = x.shape[0]
        if self.cache.has(n):
            return x.T + self.cache.get(n)
        table = torch.arange(n)
        self.cache.put(n, table)
        return x.T + table
"""


def _model(forward: str) -> str:
    return _HEAD.replace("FORWARD", forward.replace("\n", "\n        "))


MUST = {
    "EXL219": [
        _model("return x / next(self.ids)"),
        _model("k = next(self.ids)\ny = x * 2\nreturn y + k"),
        _model("if next(self.ids) % 2 == 0:\n    return x * 2\nreturn x"),
        _model("k = self.numbered()\nreturn x * k"),
        _model("return x * next(self.factors)"),
        _model("return x + next(IDS)"),
        _model("return x * self.scales.pop(0)"),
        _model("k = self.window.popleft()\nself.window.append(k)\nreturn x * k"),
        _model("self.window.rotate(1)\nreturn x * self.window[0]"),
        _model("y = x * self.scales[0]\nself.scales.reverse()\nreturn y"),
    ],
    "EXL218": [
        _model("k = x.shape[0]\nif k in self.seen:\n    return x * 2\nself.seen.add(k)\nreturn x"),
        _model("if 'a' in SEEN:\n    return x * 2\nSEEN.add('a')\nreturn x"),
        _model("if 'a' in self.table:\n    x = x * 2\nself.table['a'] = True\nreturn x"),
        _model("k = self.table.get('n', 0) + 1\nself.table['n'] = k\nreturn x * k"),
        _model("self.counts.update(['a'])\nreturn x * self.counts['a']"),
        _model("self.scales.append(2.0)\nreturn x * sum(self.scales)"),
        _model("self.scales.extend([1.0, 2.0])\nreturn x / len(self.scales)"),
        _model("self.scales += [2.0]\nreturn x * sum(self.scales)"),
        _model("self.state = (self.state[0] + 1, 0)\nreturn x * self.state[0]"),
        _model("a, b = self.state\nself.state = (b, a + b)\nreturn x * a"),
        _model("self.shared['calls'] += 1\nreturn x * self.shared['calls']"),
        _model("return x - self.mean(x.mean(0))"),
    ],
    "EXL205": [
        _model("setattr(self, 'steps', self.steps + 1)\nreturn x / self.steps"),
        _model("object.__setattr__(self, 'steps', getattr(self, 'steps') + 1)\nreturn x / self.steps"),
        _model("if self.mode is None:\n    self.mode = 'on'\n    return x * 2\nreturn x"),
        _model("if not hasattr(self, 'done'):\n    self.done = True\n    return x * 2\nreturn x"),
        _model("n = x.shape[0]\nif n == self.steps:\n    x = x * 2\nself.steps = n\nreturn x"),
    ],
}

MUST_NOT = {
    "EXL219": [
        _model("k = next(self.ids)\nif k % 10 == 0:\n    print('step', k)\nreturn x"),
        _model("name = self.named()\nprint(name)\nreturn x"),
        _model("return x * next(self.twos)"),
        _model("self.begin()\nreturn x * next(self.ids)"),
        _model("it = iter(self.scales)\nreturn x * next(it) + next(it)"),
        _model("return x.to(next(self.parameters()).dtype)"),
        _model("self.last = next(self.ids)\nreturn x"),
        _model("self.queue.append(x.shape[0])\nn = self.queue.pop()\nreturn x * n"),
        _model("self.layer(x)\nreturn self.queue.pop() * 2"),
        _model("if len(self.scales) > 2:\n    self.scales.pop(0)\nreturn x"),
        _model("names = list(self.scales)\nreturn x * names.pop(0)"),
        _model("self.scales.clear()\nself.scales.extend([1.0, 2.0])\nreturn x * self.scales.pop()"),
        _model("self.window.rotate(1)\ny = x * self.window[0]\nself.window.rotate(-1)\nreturn y"),
        _model("self.window.reverse()\nreturn x * sum(self.window)"),
    ],
    "EXL218": [
        _CACHE,
        _model("if x.shape[0] not in self.seen:\n    self.seen.add(x.shape[0])\n    print('new')\nreturn x"),
        _model(
            "n = x.shape[0]\nif n in self.table:\n    return x.T * self.table[n]\nself.table[n] = n * 2.0\nreturn x.T * (n * 2.0)"
        ),
        _model(
            "n = x.shape[0]\nt = self.table.get(n)\nif t is None:\n    t = n * 2\n    self.table[n] = t\nreturn x.T * t"
        ),
        _model(
            "self.seen.clear()\nfor k in ['a', 'b', 'a']:\n    if k in self.seen:\n        x = x * 2\n    self.seen.add(k)\nreturn x"
        ),
        _model("self.scales.append(x.shape[0])\nprint(sum(self.scales))\nreturn x"),
        _model("self.counts.update(['a'])\nprint(self.counts['a'])\nreturn x"),
        _model("self.counts.clear()\nself.counts.update(['a'])\nreturn x * self.counts['a']"),
        _model("a, b = self.state\nself.state = (a, b)\nreturn x * a"),
        _model("self.state = (3, 4)\nreturn x * self.state[0]"),
        _model("self.state = (self.state[0] + 1, 0)\nreturn x"),
        _model("self.state = (0, 0)\nself.state = (self.state[0] + 1, 0)\nreturn x * self.state[0]"),
        _model("return x - self.mean(x.mean(0), [])"),
        _model("self.queue.append(x)\ny = x * 2\nreturn y + self.queue.pop()"),
    ],
    "EXL205": [
        _model("setattr(self, 'steps', 3)\nreturn x * self.steps"),
        _model("self.steps = 0\nsetattr(self, 'steps', self.steps + 1)\nreturn x * self.steps"),
        _model("if self.mode is None:\n    self.mode = 'on'\nreturn x * 2 if self.mode == 'on' else x"),
        _model(
            "if self.mode is None:\n    k = 2.0\n    self.mode = k\nelse:\n    k = self.mode\nreturn x * k"
        ),
        _model(
            "if x.shape[0] != self.steps:\n    self.table = torch.arange(x.shape[0])\n    self.steps = x.shape[0]\nreturn x.T + self.table"
        ),
        _model("if x.shape[0] != self.steps:\n    print('new')\nself.steps = x.shape[0]\nreturn x"),
    ],
}
