"""Calls written the old way, and what traced code does to Modules: mended, exported in both modes, and equal."""

from __future__ import annotations

import textwrap

import pytest
from exportlens.outcome import TorchVersion

from tests.rewriting.bodies import assert_mended, assert_refused
from tests.rewriting.fixing_all import mend

HEAD = """import contextlib
import io
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


@torch.compiler.disable
def double(x):
    return x * 2


class Held:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = Held()
        self.lock = threading.Lock()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.stack = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4))
        self.known = {id(each) for each in self.layer.parameters()}
        self.listed = list(map(id, [self.scale, *self.norm.parameters()]))
        self.growing = [id(self.scale)]
        self.growing.append(id(self.norm.weight))
        self.keyed = {id(self.scale): 2.0}
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor):
"""
MENDED = {
    "losses": (
        "total = nn.L1Loss(size_average=False)(x, y) + nn.MSELoss(reduce=False)(x, y)\n"
        "return total + nn.BCELoss(None, True)(x.sigmoid(), y.sigmoid()) + nn.MSELoss(True, False, 'sum')(x, y)",
        'total = nn.L1Loss(reduction="sum")(x, y) + nn.MSELoss(reduction="none")(x, y)\n'
        'return total + nn.BCELoss(None, reduction="mean")(x.sigmoid(), y.sigmoid()) + nn.MSELoss(reduction="none")(x, y)',
    ),
    "checks of data": (
        'torch._assert((x * x).sum() >= 0, "negative")\ntorch._assert((x < 1000).all(), "large")\n'
        "torch._check(x.shape[0] > 1, 'small')\nreturn x + y",
        'torch._assert_async((x * x).sum() >= 0, "negative")\ntorch._assert_async((x < 1000).all(), "large")\n'
        "torch._check(x.shape[0] > 1, lambda: 'small')\nreturn x + y",
    ),
    "addresses": (
        "if x.data_ptr() == y.data_ptr() != self.scale.data_ptr():\n    return x + 1\nreturn x + y",
        "if x is y is not self.scale:\n    return x + 1\nreturn x + y",
    ),
    "buffers that forward makes": (
        "if self.mask is None or self.mask.shape[0] < x.shape[0]:\n"
        "    self.register_buffer('mask', torch.arange(x.shape[0]).to(x), persistent=False)\nreturn x + y * self.mask[:, None]",
        "if self.mask is None or self.mask.shape[0] < x.shape[0]:\n"
        "    self.mask = torch.arange(x.shape[0]).to(x)\nreturn x + y * self.mask[:, None]",
    ),
    "identities": (
        "if id(x) == id(y) or id(x) != id(self.scale) != id(y):\n    x = x + 1\nfor each in self.parameters():\n"
        "    if id(each) in self.known:\n        x = x + each.sum()\n"
        "return x + y * sum(p.sum() for p in self.parameters() if id(p) not in self.listed)",
        "if x is y or x is not self.scale is not y:\n    x = x + 1\nfor each in self.parameters():\n"
        "    if any(each is each_2 for each_2 in self.layer.parameters()):\n        x = x + each.sum()\n"
        "return x + y * sum(p.sum() for p in self.parameters() if not any(p is each for each in [self.scale, *self.norm.parameters()]))",
    ),
    "modules that are moved": (
        "self.layer.to(x.device)\nself.norm = self.norm.to(x.device)\n"
        "return self.layer(self.norm.to(device=y.device, non_blocking=True)(x)) + y",
        "return self.layer(self.norm(x)) + y",
    ),
    "checkpoints": (
        "x = checkpoint(self.layer, x, use_reentrant=False) + 1\nx = checkpoint_sequential(self.stack, 2, x)\n"
        "x = checkpoint(\n    self.layer,\n    x,\n    use_reentrant=False,\n)\nreturn x + y",
        "x = (self.layer(x) if torch.compiler.is_exporting() else checkpoint(self.layer, x, use_reentrant=False)) + 1\n"
        "x = self.stack(x) if torch.compiler.is_exporting() else checkpoint_sequential(self.stack, 2, x)\n"
        "if torch.compiler.is_exporting():\n    x = self.layer(x)\nelse:\n    x = checkpoint(\n        self.layer,\n"
        "        x,\n        use_reentrant=False,\n    )\nreturn x + y",
    ),
    "parameters": (
        "scale = nn.Parameter(torch.ones(4))\nmean = nn.Parameter(x.mean(0), requires_grad=False)\nreturn x * scale + mean + y",
        "scale = torch.ones(4)\nmean = x.mean(0).detach()\nreturn x * scale + mean + y",
    ),
    "a parameter that is replaced": (
        "self.scale = nn.Parameter(torch.clamp(self.scale.data / 2 + torch.ones(4), max=2.0))\nreturn x * self.scale + y",
        "with torch.no_grad():\n    self.scale.copy_(torch.clamp(self.scale.detach() / 2 + torch.ones(4), max=2.0))\nreturn x * self.scale + y",
    ),
    "what only matters in eager": (
        "torch._dynamo.graph_break()\ntorch.save(x, io.BytesIO())\nreturn double(x) + y",
        "if not torch.compiler.is_exporting():\n    torch._dynamo.graph_break()\n"
        "if not torch.compiler.is_compiling():\n    torch.save(x, io.BytesIO())\nreturn double(x) + y",
    ),
    "functions of NumPy for a number": (
        "y = y * np.sqrt(x.max().item()) + np.maximum(x.max().item(), 0.5) * x - np.minimum(y.min().item(), 0.2)\n"
        "y = y * np.clip(x.mean().item(), 0.1, 0.3) + np.power(x.max().item(), 2)\nreturn x + np.abs(y.sum().item())",
        "y = y * torch.sqrt(x.max().detach()) + torch.clamp(x.max().detach(), min=0.5) * x - torch.clamp(y.min().detach(), max=0.2)\n"
        "y = y * torch.clip(x.mean().detach(), 0.1, 0.3) + torch.pow(x.max().detach(), 2)\n"
        "return x + torch.abs(y.sum().detach())",
    ),
    "layers made anew": (
        "bn = nn.BatchNorm1d(4, eps=1e-3).to(x.device)\nx = bn(x) + nn.LayerNorm(4)(y)\n"
        "return nn.GroupNorm(2, num_channels=4)(x) + nn.LayerNorm(x.shape[1:])(y) + nn.LayerNorm(x.size(-1))(y)",
        "x = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-3) + torch.nn.functional.layer_norm(y, (4,))\n"
        "return torch.nn.functional.group_norm(x, 2) + torch.nn.functional.layer_norm(y, x.shape[1:]) + torch.nn.functional.layer_norm(y, (x.size(-1),))",
    ),
    "numbers of floats": (
        "low, high = x.float().view(3, 4).mean(0)[:2].tolist()\nrows = (x.float().view(3, 4) > 0.5)[:2].tolist()\n"
        "return x * low + y * high + torch.tensor(rows).float().mean()",
        "low, high = [each.item() for each in x.float().view(3, 4).mean(0)[:2]]\n"
        "rows = [[each.item() for each in row] for row in (x.float().view(3, 4) > 0.5)[:2]]\n"
        "return x * low + y * high + torch.tensor(rows).float().mean()",
    ),
    "clocks": (
        "start = time.time()\nx = x + y\nself.took = time.time() - start\ntook = time.perf_counter_ns()\n"
        "print(f'{took} {self.took:.2f}', time.time())\ntime.sleep(0.0)\nreturn x",
        "start = time.time() if not torch.compiler.is_compiling() else 0.0\nx = x + y\n"
        "self.took = (time.time() if not torch.compiler.is_compiling() else 0.0) - start\n"
        "took = time.perf_counter_ns() if not torch.compiler.is_compiling() else 0\n"
        "print(f'{took} {self.took:.2f}', (time.time() if not torch.compiler.is_compiling() else 0.0))\n"
        "if not torch.compiler.is_compiling():\n    time.sleep(0.0)\nreturn x",
    ),
    "typed tensors": (
        "return x * torch.FloatTensor(np.linspace(0.0, 1.0, 4)) + torch.LongTensor(np.zeros(4)) + y",
        "return x * torch.tensor(np.linspace(0.0, 1.0, 4), dtype=torch.float32) + torch.tensor(np.zeros(4), dtype=torch.int64) + y",
    ),
}
REFUSED = {
    "an identity as a number": ("return x + id(x) % 7 + y", "what the identity stands for is not provable"),
    "identities of what is made for them": (
        "return x + y if id(x + 1) == id(y) else x",
        "is made for the question",
    ),
    "identities that change": (
        "return x + y if id(self.scale) in self.growing else x",
        "`self.growing` changes",
    ),
    "an identity as a key": ("return x + y * self.keyed[id(self.scale)]", "the identity is a key"),
    "a layer with random weights": ("return nn.Linear(4, 4)(x) + y", "its weights are random"),
    "a time that is computed with": ("return x + y * (time.time() % 2)", "the time is computed with"),
    "a module that is cast": ("return self.layer.to(x.device, x.dtype)(x) + y", "given another dtype"),
    "an address that is kept": ("where = x.data_ptr()\nreturn x + y", "not compared with another tensor's"),
    "an address of a view": (
        "z = x.view(-1)\nreturn x + y if x.data_ptr() == z.data_ptr() else y",
        "may be a view of another",
    ),
    "a parameter of another shape": (
        "self.scale = nn.Parameter(x.mean(0))\nreturn x * self.scale + y",
        "has the shape of `self.scale`",
    ),
    "a part of something longer": (
        "return x.t_() + y.t()",
        "called within a longer expression",
    ),
    "another name": ("z = x\nx.t_()\nreturn z.t() + x + y.t()", "is another name for `x`"),
    "a parameter that is new": (
        "self.other = nn.Parameter(torch.ones(4))\nreturn x * self.other + y",
        "has no Parameter `self.other` before",
    ),
    "arguments that are unpacked": ("return nn.MSELoss(*[False])(x, y)", "not written one by one"),
    "an old argument that is not known": (
        "return nn.MSELoss(size_average=x.shape[0] > 1)(x, y)",
        "what `size_average` is given is not known",
    ),
    "a check within an expression": (
        "z = torch._assert(x.sum() > 0, 'negative')\nreturn x + y",
        "the check is a part of a longer statement",
    ),
    "a message that is handed on": (
        "given = {'message': 'small'}\ntorch._check(x.shape[0] > 1, **given)\nreturn x + y",
        "not written one by one",
    ),
    "a checkpoint of what is unpacked": (
        "return checkpoint(*[self.layer, x], use_reentrant=False) + y",
        "the function is not written in the call",
    ),
    "a checkpoint in a long expression": (
        "return y + checkpoint(\n    self.layer,\n    x,\n    use_reentrant=False,\n)",
        "a part of a longer statement",
    ),
    "a list run in parts": (
        "return checkpoint_sequential([self.layer, self.norm], 2, x) + y",
        "not known to be an nn.Sequential",
    ),
    "a layer with more than its size": (
        "return nn.BatchNorm1d(4, track_running_stats=False)(x) + y",
        "with more than its size",
    ),
    "a layer that is kept": (
        "norm = nn.LayerNorm(4)\nself.seen = norm\nreturn norm(x) + y",
        "the layer is kept",
    ),
    "a module within a line": (
        "self.layer.to(x.device); x = x + 1\nreturn self.layer(x) + y",
        "shares its line",
    ),
    "a context that holds exceptions back": (
        "with self.held:\n    x = x + 1\nreturn x + y",
        "looks at the exception",
    ),
    "two contexts": (
        "with self.held, torch.no_grad():\n    x = x + 1\nreturn x + y",
        "several contexts are entered at once",
    ),
    "a file that is entered": (
        "with tempfile.NamedTemporaryFile() as file:\n    x = x + 1\nreturn x + y",
        "a program writes no files",
    ),
    "a device for what is not torch's": (
        "with torch.device('cpu'):\n    x = self.layer(x)\nreturn x + y",
        "may make tensors as well",
    ),
    "a text that is read": (
        "text = io.StringIO()\nwith contextlib.redirect_stdout(text) as out:\n    print('a')\n    out.getvalue()\nreturn x + y",
        "is read inside",
    ),
    "a stack that is used further on": (
        "with contextlib.ExitStack() as stack:\n    stack.enter_context(torch.no_grad())\n    stack.close()\n    x = x + 1\n"
        "return x + y",
        "is used further on",
    ),
    "a stack that is filled late": (
        "with contextlib.ExitStack() as stack:\n    x = x + 1\n    stack.enter_context(torch.no_grad())\n    x = x + 1\n"
        "return x + y",
        "not at the beginning of the block",
    ),
    "numbers of an unknown tensor": (
        "low = x.float().flatten()[:2].tolist()[0]\nreturn x * low + y",
        "how many dimensions the tensor has is not known",
    ),
    "a date": ("import datetime\nprint(datetime.datetime.now())\nreturn x + y", "what the time is for"),
    "an argument behind the old ones": (
        "return nn.NLLLoss(None, False, -1, True)(x, y[:, 0].long()) + y",
        "behind the old ones",
    ),
}


def test_mended() -> None:
    assert_mended(HEAD, MENDED)


def test_a_torch_that_tells_no_export_from_a_compilation_is_asked_for_the_latter() -> None:
    body, _ = MENDED["clocks"]
    text = mend(HEAD + textwrap.indent(body, "        ") + "\n", TorchVersion(2, 6)).text
    assert "self.took = (time.time() if not torch.compiler.is_compiling() else 0.0) - start" in text
    assert "is_exporting" not in text
    body, _ = MENDED["what only matters in eager"]
    older = mend(HEAD + textwrap.indent(body, "        ") + "\n", TorchVersion(2, 6))
    assert "this torch does not tell an export from torch.compile, which it is meant for" in older.refusals


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(HEAD, *REFUSED[name])
