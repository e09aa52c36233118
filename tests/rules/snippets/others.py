"""EXL2xx to EXL8xx."""

from __future__ import annotations

_LAYER = """
import copy
import random

import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
        self.scale = 2.0
        self.count = 0

"""


_STATEFUL = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)
        self.h = BEGIN

    def forward(self, x):
        FORWARD
"""


def _with_layer(forward: str) -> str:
    """A Module with a layer, a buffer and attributes, and the given forward."""
    return (
        _LAYER + "\n".join(f"    {line}" if line else "" for line in forward.strip("\n").splitlines()) + "\n"
    )


MUST = {
    "EXL411": [
        # A helper looks up what is there, which tells nothing of where it is.
        _with_layer(
            "def rate(self, k):\n    return self.mean[k]\n\n"
            "def forward(self, x, n: torch.Tensor):\n    kept, k = self.layer(x) * 1, n.item()\n    kept[k] = x[0] * self.rate(k)\n    return kept"
        ),
    ],
    # The next call reads a number out of what this one sets.
    "EXL217": [
        _STATEFUL.replace("BEGIN", "torch.zeros(1, dtype=torch.long)").replace("FORWARD", each)
        for each in (
            "p = int(self.h)\n        self.h[0] = (p + 1) % 8\n        return x * p",
            "p = self.h[0].item()\n        self.h.fill_(p + 1)\n        return x + p",
        )
    ],
    "EXL214": [
        "import torch\nfrom torch import nn\n\ncalls = 0\n\n\nclass M(nn.Module):\n    def forward(self, x):\n"
        "        global calls\n        calls = calls + 1\n        return x * calls\n",
    ],
    "EXL328": [
        "import heapq\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n"
        "        return x * heapq.nlargest(1, [1, 2])[0]\n",
    ],
    "EXL331": [
        _with_layer("def forward(self, x):\n    return torch.func.jacrev(self.layer)(x)"),
        _with_layer(
            "def forward(self, x):\n    value, pull = torch.func.vjp(self.layer, x)\n    return pull(value)[0]"
        ),
    ],
    "EXL430": [
        _with_layer(
            "def forward(self, x):\n    torch._check(x.dim() == 2, 'a batch')\n    return self.layer(x)"
        )
    ],
    "EXL511": [_with_layer("def forward(self, x):\n    return x * float(np.nansum([1.0, 2.0]))")],
    "EXL201": [
        _with_layer("def forward(self, x):\n    weight = self.layer.weight.data\n    return x @ weight"),
        _with_layer("def forward(self, x):\n    y = self.layer(x)\n    return (y.data > 0).float() * y"),
        _with_layer("def forward(self, x):\n    return x + self.mean.data.mean()"),
    ],
    "EXL202": [
        _with_layer(
            "def forward(self, x):\n    self.layer.weight.data.clamp_(-1, 1)\n    return self.layer(x)"
        ),
        _with_layer("def forward(self, x):\n    y = self.layer(x)\n    y.data[:, 0] = 0\n    return y"),
    ],
    "EXL203": [
        _with_layer(
            "def forward(self, x):\n    self.layer.weight.data = self.layer.weight * self.scale\n    "
            "return self.layer(x)"
        ),
    ],
    "EXL205": [
        _with_layer("def forward(self, x):\n    self.count += 1\n    return x * self.count"),
        _with_layer(
            "def forward(self, x):\n    if x.mean().item() > self.scale:\n        self.scale = x.mean().item()\n    return x / self.scale"
        ),
        _STATEFUL.replace("BEGIN", "False").replace(
            "FORWARD",
            "if not self.h:\n            self.rnn.bias_ih_l0.data.fill_(x.mean().item())\n            self.h = True\n        return self.rnn(x)",
        ),
    ],
    "EXL206": [
        # Bound together with another name.
        _with_layer(
            "def forward(self, x):\n    mean = self.mean\n    for _ in range(2):\n        y, mean = x - mean, x.mean(0) + mean.abs()\n"
            "    self.mean = mean.detach()\n    return y"
        ),
        _with_layer(
            "def forward(self, x):\n    self.mean = 0.9 * self.mean + 0.1 * x.mean(0)\n    return x - "
            "self.mean"
        ),
        _with_layer(
            "def forward(self, x):\n    old = self.mean\n    self.mean = x.mean(0)\n    return x - old"
        ),
        # What the constructor computes of a parameter.
        _STATEFUL.replace("BEGIN", "self.rnn.weight_hh_l0.detach().clone()").replace(
            "FORWARD", "self.h = 0.5 * self.h + x.mean()\n        return x + self.h.sum()"
        ),
        # Lists of tensors, one for each layer.
        _STATEFUL.replace("BEGIN", "[torch.zeros(4), torch.zeros(4)]").replace(
            "FORWARD",
            "self.h = [0.5 * self.h[0] + x[0, 0], self.h[1] + x[0, 1]]\n        return x + self.h[0] * self.h[1]",
        ),
        _STATEFUL.replace("BEGIN", "[torch.zeros(5, 4) for _ in range(3)]").replace(
            "FORWARD",
            "longer = [torch.cat([each, x[0]])[-5:] for each in self.h]\n        out = x + self.h[0].mean(0)\n"
            "        self.h = [each.detach() for each in longer]\n        return out",
        ),
        # What a layer gives besides its output, under a name.
        _STATEFUL.replace("BEGIN", "torch.zeros(1, 2, 4)").replace(
            "FORWARD", "out, h = self.rnn(x, self.h)\n        self.h = h.detach()\n        return out"
        ),
        # The first call begins what later ones compute from itself: the program begins it in each.
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "if self.h is None:\n            self.h = x.mean()\n        else:\n"
            "            self.h = 0.9 * self.h + 0.1 * x.mean()\n        return x - self.h",
        ),
        # State that is None until the first call.
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "if self.h is None:\n            self.h = torch.zeros(1, x.size(0), 4)\n"
            "        out, h = self.rnn(x, self.h)\n        self.h = h\n        return out",
        ),
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD", "y = x if self.h is None else x - self.h\n        self.h = x\n        return y"
        ),
    ],
    "EXL209": [
        _with_layer(
            "def forward(self, x):\n    y = x.clone().requires_grad_(True)\n    return self.layer(y)"
        ),
    ],
    "EXL401": [
        _with_layer("def forward(self, x):\n    n = int((x > 0).sum())\n    return self.layer(x) / n"),
        _with_layer("def forward(self, x):\n    return self.layer(x) * float(self.mean.sum())"),
    ],
    "EXL402": [
        _with_layer("def forward(self, x):\n    import math\n\n    return x * math.log(x.abs().sum())")
    ],
    "EXL403": [
        """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.router = nn.Linear(4, 2)

    def forward(self, x):
        return self.experts[self.router(x).sum(0).argmax().item()](x)
""",
    ],
    "EXL404": [_with_layer("def forward(self, x):\n    return self.layer(x) / len(torch.nonzero(x > 0))")],
    "EXL501": [
        _with_layer(
            "def forward(self, x):\n    noise = random.gauss(0, 1)\n    return self.layer(x) + noise"
        ),
        _with_layer(
            "def forward(self, x):\n    keep = [i for i in range(3) if random.random() < 0.5]\n    return "
            "x, keep"
        ),
    ],
    "EXL502": [
        _with_layer(
            "def forward(self, x):\n    return torch.tensor(np.linalg.norm(self.layer(x).detach().numpy()))"
        ),
        _with_layer("def forward(self, x):\n    return np.maximum(self.layer(x), 0)"),
    ],
    "EXL601": [
        """
import torch
from torch import nn


class Box:
    def __init__(self, value):
        self.value = value


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return {"boxes": [Box(x), Box(x + 1)]}
""",
    ],
    "EXL315": [
        """
import torch
from torch import nn
from torch import autograd


class M(nn.Module):
    def init_hidden(self, size):
        return autograd.Variable(torch.zeros(size, 4))

    def forward(self, x: torch.Tensor):
        return x + self.init_hidden(x.size(0))
""",
    ],
}

MUST_NOT = {
    "EXL214": [
        "import torch\nfrom torch import nn\n\nlast = None\n\n\nclass M(nn.Module):\n"
        "    def forward(self, x: torch.Tensor):\n        global last\n        last = x\n        return x + 1\n",
        # Each call makes it anew.
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
        "        total = torch.zeros(())\n\n        def add(part):\n            nonlocal total\n"
        "            total = total + part.sum()\n\n        add(x)\n        return total\n",
    ],
    "EXL328": [
        "import re\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n"
        "        return x + 1 if re.match('a.*', 'abc') else x\n",
    ],
    "EXL331": [
        _with_layer("def forward(self, x):\n    return torch.vmap(torch.sin)(x)"),
        _with_layer("def forward(self, x):\n    return torch.func.jvp(torch.sin, (x,), (x,))[1]"),
    ],
    "EXL430": [
        _with_layer(
            "def forward(self, x):\n    torch._check(x.dim() == 2, lambda: 'a batch')\n    return self.layer(x)"
        ),
        _with_layer(
            "def forward(self, x):\n    n = 2\n    torch._check(x.dim() == n, lambda: f'{n} dimensions')\n"
            "    return self.layer(x)"
        ),
    ],
    "EXL511": [_with_layer("def forward(self, x):\n    return x * float(np.sqrt(2.0)) + int(np.ceil(2.5))")],
    "EXL201": [
        _with_layer(
            "def forward(self, x):\n    size = x.data.size(0)\n    return self.layer(x) * size + "
            "x.data.shape[1]"
        ),
        """
from torch import nn


class Batch:
    def __init__(self, data):
        self.data = data


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Batch(3)

    def forward(self, x):
        return x * self.config.data
""",
        # not traced: initialisation
        """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.weight.data.normal_(0, 0.02)
        self.layer.bias.data.zero_()

    def forward(self, x):
        return self.layer(x)
""",
    ],
    "EXL202": [
        _with_layer(
            "def forward(self, x):\n    y = self.layer(x)\n    y[:, 0] = 0\n    y.mul_(2)\n    return y"
        )
    ],
    "EXL204": [
        _with_layer(
            "def forward(self, x):\n    options = copy.deepcopy({'a': 1})\n    return x + options['a']"
        ),
        _with_layer(
            "def forward(self, x):\n    options = copy.deepcopy({'a': [1, (2, None)], 'b': {'c': 'd'}})\n    return x + options['a'][0]"
        ),
    ],
    "EXL205": [
        _with_layer("def forward(self, x):\n    count = 0\n    count += 1\n    return x + count"),
        # A table that is made once.
        _STATEFUL.replace("BEGIN", "False").replace(
            "FORWARD",
            "if not self.h:\n            self.table = torch.arange(x.size(0))\n            self.h = True\n        return x + self.table[:, None]",
        ),
        _with_layer("def forward(self, x):\n    self.scale = x.shape[0] * 0.5\n    return x * self.scale"),
    ],
    "EXL411": [
        # Nothing is recorded of what is detached.
        _with_layer(
            "def forward(self, x, n: torch.Tensor):\n    kept, k = torch.zeros(5, 4), n.item()\n"
            "    kept[k] = self.layer(x).detach()[0]\n    kept[:k] = self.layer(x).mean(0).detach()\n    return kept"
        ),
        # A helper says where the place is.
        _with_layer(
            "def checked(self, k):\n    torch._check(k >= 0)\n    torch._check(k < 4)\n    return k + 1\n\n"
            "def forward(self, x, n: torch.Tensor):\n    kept, k = self.layer(x) * 1, n.item()\n    kept[k] = x[0] * self.checked(k)\n    return kept"
        ),
        # Cuts that are viewed in sizes of which none is open but the last, or have one row.
        _with_layer(
            "def forward(self, x):\n    n = torch.prod(torch.tensor((3, 1)))\n"
            "    return x[:, :n].view(x.size(0), -1), x[0, :n].view(-1, 3), x[:, :n].reshape(-1, 3)"
        ),
    ],
    "EXL206": [
        _with_layer(
            "def forward(self, x):\n    mean, y = self.mean, x * 2\n    self.mean = mean.to(x.device)\n    return y - self.mean"
        ),
        _with_layer("def forward(self, x):\n    self.hidden = self.layer(x)\n    return self.hidden + 1"),
        _with_layer(
            "def forward(self, x):\n    self.mean.mul_(0.9).add_(0.1 * x.mean(0))\n    return x - self.mean"
        ),
        # Lists that are made anew in each call, or moved.
        _STATEFUL.replace("BEGIN", "[torch.ones(4), torch.ones(4)]").replace(
            "FORWARD",
            "self.h = [each.to(x.device) for each in self.h]\n        return x + self.h[0] * self.h[1]",
        ),
        _STATEFUL.replace("BEGIN", "[]").replace(
            "FORWARD",
            "self.h = [x.mean(), x.sum()]\n        return x + self.h[0] * self.h[1]",
        ),
        # Tables that are made anew where they are too short, whatever the name they are asked under.
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "if self.h is not None:\n            if self.h.size(0) >= x.size(0):\n                if self.h.dtype != x.dtype:\n"
            "                    self.h = self.h.to(x.dtype)\n                return x + self.h[: x.size(0)]\n"
            "        self.h = torch.ones(x.size(0), 4)\n        return x + self.h",
        ),
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "mask = self.h\n        if mask is None or mask.size(0) < x.size(0):\n"
            "            mask = torch.ones(x.size(0), 4)\n            self.h = mask\n"
            "        return x + self.h[: x.size(0)]",
        ),
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "if self.h is not None and self.h.size(0) >= x.size(0):\n            return x + self.h[: x.size(0)]\n"
            "        made = torch.ones(x.size(0), 4)\n        self.h = made\n        return x + self.h",
        ),
        # What is only detached keeps its values; what the call itself clears is none of the next one's.
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "if self.h is None:\n            self.h = torch.ones(4)\n        else:\n"
            "            self.h = self.h.detach()\n        return x + self.h",
        ),
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "for row in range(2):\n            if self.h is None:\n                self.h = x[row]\n            else:\n"
            "                self.h = self.h * 0.5 + x[row]\n        out = self.h\n        self.h = None\n        return out",
        ),
        # What is put back, moved, or set anew in each call.
        _STATEFUL.replace("BEGIN", "torch.ones(4)").replace(
            "FORWARD",
            "kept = self.h\n        self.h = kept * x.mean()\n        y = x * self.h\n        self.h = kept\n        return y",
        ),
        _STATEFUL.replace("BEGIN", "torch.ones(4)").replace(
            "FORWARD", "h = self.h\n        h = h.to(x.device)\n        self.h = h\n        return x * h"
        ),
        _STATEFUL.replace(
            "class M",
            "def moved(x, device, dtype=None):\n    x = x.to(device)\n    return x if dtype is None else x.type(dtype)\n\n\nclass M",
        )
        .replace("BEGIN", "torch.ones(4)")
        .replace("FORWARD", "self.h = moved(self.h, x.device, x.dtype)\n        return x * self.h"),
        _STATEFUL.replace("BEGIN", "None").replace(
            "FORWARD",
            "self.h = x.mean(0)\n        y = x - self.h\n        self.h = y\n        return y",
        ),
    ],
    "EXL217": [
        # What a call binds anew is made in the program.
        _STATEFUL.replace("BEGIN", "torch.tensor(0)").replace(
            "FORWARD", "self.h = torch.zeros(())\n        self.h += 1\n        return x * self.h"
        ),
        _STATEFUL.replace("BEGIN", "torch.tensor(0)").replace(
            "FORWARD",
            "self.again()\n        self.h += x.numel()\n        return x * self.h\n\n"
            "    def again(self):\n        self.h = torch.zeros_like(self.h)",
        ),
        # Set before a number is read out of it, or the same each time.
        _STATEFUL.replace("BEGIN", "torch.zeros(1, dtype=torch.long)").replace(
            "FORWARD", "self.h[0] = x.shape[0]\n        return x * self.h.item()"
        ),
        _STATEFUL.replace("BEGIN", "torch.zeros(1)").replace(
            "FORWARD", "y = x + self.h\n        self.h.fill_(1)\n        return y"
        ),
    ],
    "EXL218": [
        # Emptied or made anew in each call, in this function or another.
        *(
            _STATEFUL.replace("BEGIN", "[]").replace(
                "FORWARD",
                f"{emptied}\n        for _ in range(2):\n            x = x.relu()\n            self.h.append(x)\n"
                "        return torch.cat(self.h, -1)\n\n    def again(self):\n        self.h = []",
            )
            for emptied in (
                "self.h.clear()",
                "self.h = []",
                "self.again()",
                "del self.h[:]",
                "self.h[:] = []",
            )
        ),
        # Only filled, or of which only what this call added is read.
        _STATEFUL.replace("BEGIN", "[]").replace(
            "FORWARD",
            "self.h.append(x.softmax(-1))\n        if len(self.h) > 3:\n            self.h.pop(0)\n"
            "        return self.h[-1] @ x.T",
        ),
        # A table that is made once for each size.
        *(
            _STATEFUL.replace("BEGIN", "{}").replace(
                "FORWARD", "return x + self.made(x.shape[-1])\n\n    def made(self, n):\n        " + made
            )
            for made in (
                "if n in self.h:\n            return self.h[n]\n        mask = torch.ones(n).relu()\n"
                "        self.h[n] = mask\n        return mask",
                "if n not in self.h:\n            self.h[n] = torch.ones(n).relu()\n        return self.h[n]",
            )
        ),
    ],
    "EXL301": [_with_layer("def forward(self, x):\n    return x + self.scale")],
    "EXL303": [
        _with_layer('def forward(self, x):\n    print(f"mean {x.mean()}")\n    return self.layer(x)'),
        _with_layer(
            'def forward(self, x):\n    name = f"size {x.shape[0]} of {self.scale:.2f}"\n    return x, name'
        ),
    ],
    "EXL401": [
        _with_layer(
            "def forward(self, x):\n    half = int(x.shape[1] / 2)\n    return x[:, :half] * "
            "float(self.scale)"
        ),
        _with_layer("def forward(self, x):\n    return x.sum() / (x > 0).sum().item()"),
    ],
    "EXL403": [
        _with_layer("def forward(self, x):\n    return x[torch.arange(2)] + x[x.shape[0] - 1]"),
        _with_layer("def forward(self, x):\n    sizes = [2, 4]\n    return x[:, : sizes[x.dim() - 2]]"),
    ],
    "EXL404": [_with_layer("def forward(self, x):\n    return self.layer(x) / len(x) + len(self.mean)")],
    "EXL502": [
        _with_layer(
            "def forward(self, x):\n    return x.reshape(int(np.prod(x.shape))) * np.sqrt(x.shape[-1])"
        ),
        _with_layer("def forward(self, x):\n    return x + torch.from_numpy(np.triu(np.ones((3, 4)), k=1))"),
        _with_layer("def forward(self, x):\n    return x.masked_fill(x > 0, -np.inf) * np.pi"),
    ],
    "EXL601": [
        """
from collections import OrderedDict, namedtuple

import torch
from torch import nn

Pair = namedtuple("Pair", "first second")


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return Pair(x, [x + 1]), OrderedDict(last=x), None, 3, "text"
""",
        """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Scores:
    mean: torch.Tensor


torch.export.register_dataclass(Scores)


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return Scores(x.mean())
""",
        # an object that stays inside
        """
import torch
from torch import nn


class Box:
    def __init__(self, value):
        self.value = value


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return Box(x).value + 1
""",
    ],
    "EXL603": [_with_layer("def forward(self, x):\n    return nn.ReLU()(self.layer(x))")],
    "EXL801": [
        _with_layer(
            "def forward(self, x):\n    return self.layer(x).to(x.device) + torch.zeros(4, device=x.device)"
        ),
        _with_layer("def forward(self, x):\n    return self.layer(x.cpu().to('cpu'))"),
    ],
    "EXL702": [
        _with_layer(
            "def forward(self, x):\n    return torch.cond(x.sum() > 0, self.layer, lambda x: x.clone() + "
            "1, (x,))"
        ),
    ],
    "EXL703": [
        """
def forward(self, x):
    def double(x):
        y = x + 1
        y.mul_(2)
        return y

    return torch.cond(x.sum() > 0, double, lambda x: x - 1, (x,))
""",
        # Tracing answers what the configuration is asked: nothing raises there.
        _with_layer(
            """
def forward(self, x):
    def scaled(x):
        if self.scale > 5:
            raise ValueError("too far")
        return x * self.scale

    return torch.cond(x.sum() > 0, scaled, lambda x: x - 1, (x,))
"""
        ),
    ],
    "EXL712": [
        # a size that was taken outside of the branches, a number of the configuration, and no branch around
        """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, step: int = 2):
        super().__init__()
        self.step = step

    def forward(self, x: torch.Tensor):
        rows = x.size(0)
        x = x / max(x.size(1), 1)
        return torch.cond(x.sum() > 0, lambda: x / max(rows, 2), lambda: x * max(self.step, 1), ())
""",
    ],
}
