"""Whole modules that no rewrite may touch, because it would change what they give, and the words that say why."""

from __future__ import annotations

import pytest
import torch

from tests.rewriting.driving import model
from tests.rewriting.fixing_all import mend

HEAD = "import random\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\n\n"
MODULE = "class M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"

REFUSED = [
    (
        "an error that is caught where it is raised",
        MODULE + "        try:\n            if x.sum() < 0:\n                raise RuntimeError('negative')\n"
        "            y = x.sqrt()\n        except RuntimeError:\n            y = torch.zeros_like(x)\n        return y\n",
        "the error is caught in the same function",
    ),
    (
        "a list beside an array",
        MODULE + "        a = x.numpy()\n        return torch.from_numpy(a * [1.0, 2.0, 3.0, 4.0])\n",
        "stands beside an array, and is not known to be a number or an array",
    ),
    (
        "an array of ints that meets one of floats",
        MODULE + "        a = x.numpy()\n        return torch.from_numpy(a.argmax(axis=1) * a[:, 0])\n",
        "`x.numpy()` holds floats or ints is not known, and NumPy gives another dtype for ints",
    ),
    (
        "a number that a loop makes an array of",
        MODULE
        + "        best = 0.0\n        for row in x.detach().numpy():\n            best = np.maximum(best, row.max())\n        return torch.tensor(best)\n",
        "the first round of a loop",
    ),
    (
        "signs of eigenvectors",
        MODULE
        + "        values, vectors = np.linalg.eigh(x.detach().numpy())\n        return torch.from_numpy(vectors)\n",
        "used in a way that has no counterpart",
    ),
    (
        "powers of ints by an array",
        MODULE + "        a = x.long().numpy()\n        return torch.from_numpy(a**a)\n",
        "takes powers of whole numbers otherwise",
    ),
    (
        "ints divided by what may be zero",
        MODULE + "        a = x.long().numpy()\n        return torch.from_numpy(a // a)\n",
        "divides whole numbers by zero",
    ),
    (
        "numbers and indices that stand apart",
        MODULE
        + "        index = x.long().numpy()\n        return torch.from_numpy(x.double().numpy()[None][0, :, index[0]])\n",
        "stand apart",
    ),
    (
        "borders that may go down",
        MODULE
        + "        bins = np.sort(x.double().numpy()).ravel()\n        return torch.from_numpy(np.digitize(x.double().numpy(), bins))\n",
        "goes up or down is not known",
    ),
    (
        "a view that is turned round and written to",
        MODULE
        + "        a = x.double().numpy()\n        turned = a[::-1]\n        a[0] = 1.0\n        return torch.from_numpy(turned.copy())\n",
        "NumPy turns round without copying",
    ),
    (
        "a name that a function inside reads",
        MODULE + "        y = x\n        f = lambda: y + 1\n        if x.sum() > 0:\n            y = x * 2\n"
        "            z = f()\n        else:\n            z = f() * 3\n        return z, f()\n",
        "`f` reads `y` of the function around it",
    ),
    (
        "a condition that writes",
        MODULE + "        y = x.clone()\n        if y.add_(1).sum() > 0 and y.mul_(2).max() > 3:\n"
        "            y = y - 1\n        return y\n",
        "a later part of the condition writes in place",
    ),
    (
        "a condition that counts",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.calls = 0\n\n"
        "    def asked(self, x):\n        self.calls += 1\n        return x.sum() > 0\n\n"
        "    def forward(self, x):\n        if x.max() > 1 and self.asked(x):\n            x = x * 2\n        return x\n",
        "a later part of the condition changes `self.calls`",
    ),
    (
        "a tensor that the constructor keeps twice",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        zeros = torch.zeros(4)\n"
        "        self.mean = zeros\n        self.last = zeros\n\n"
        "    def forward(self, x):\n        self.mean = self.mean + x.mean(0)\n        return self.last - self.mean\n",
        "`self.last = zeros` keeps the tensor of `self.mean`",
    ),
    (
        "a buffer that the constructor keeps a view of",
        'class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer("mean", torch.zeros(4))\n'
        "        self.half = self.mean[:2]\n\n"
        "    def forward(self, x):\n        if x.sum() > 0:\n            self.mean = x.mean(0)\n        return x[:, :2] - self.half\n",
        "`self.half = self.mean[:2]` keeps the tensor of `self.mean`",
    ),
    (
        "a tensor that is asked for by identity",
        MODULE
        + "        y = x\n        for row in range(2):\n            if x[row].sum() > 0:\n                y = y * 2\n"
        "        return y + 1 if y is x else y\n",
        "asks for the identity of `y`",
    ),
    (
        "a buffer of one number that becomes several",
        'class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer("mean", torch.zeros(1))\n\n'
        "    def forward(self, x):\n        if x.sum() > 0:\n            mean = x.mean(0)\n"
        "            self.mean = 0.9 * self.mean + 0.1 * mean.detach()\n        return x - self.mean\n",
        "`self.mean` starts with a tensor of another size",
    ),
    (
        "a tensor of nothing that becomes something",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.last = torch.empty(0)\n\n"
        "    def forward(self, x):\n        y = x - self.last.sum()\n        self.last = self.last.sum() + x\n        return y\n",
        "`self.last` starts with a tensor of another size",
    ),
    (
        "a tensor of nothing whose `.data` becomes something",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        top = torch.tensor([])\n"
        '        self.register_buffer("top", top)\n\n'
        "    def forward(self, x):\n        if self.top.numel() == 0 or self.top < x.max():\n"
        "            self.top.data = x.max().detach()\n        return x / self.top\n",
        "`self.top` starts with a tensor of another size",
    ),
    (
        "an index that is tried out",
        MODULE
        + "        try:\n            row = x[int(x[0, 0])]\n        except IndexError:\n            row = x[0] * 0\n"
        "        return row\n",
        "an index that is out of range would be caught",
    ),
    (
        "a product of arrays of unknown dimensions",
        MODULE + "        a = x.numpy()\n        return torch.from_numpy(np.dot(a, (x * 2).numpy()))\n",
        "how many dimensions `x * 2` has is not known",
    ),
    (
        "a function of a list that gives no mean",
        "def mean(values):\n    return sum(values) / (len(values) + 1)\n\n\n"
        + MODULE
        + "        found = []\n        for row in range(3):\n            if x[row].sum() > 0:\n                found.append(x[row].mean())\n"
        "        return mean(found)\n",
        "`found.append(x[row].mean())` changes `found` outside of the branch",
    ),
    (
        "bytes that are added up",
        MODULE + "        a = (x * 9).byte().numpy()\n        return torch.from_numpy(a.sum(axis=1))\n",
        "NumPy adds up bytes to numbers without a sign",
    ),
    (
        "a function of bools",
        MODULE + "        a = (x > 0).numpy()\n        return torch.from_numpy(np.exp(a))\n",
        "NumPy gives floats of few bits",
    ),
    (
        "a round that continues, or leaves the loop",
        MODULE
        + "        k = 0\n        for v in x:\n            if v.sum() < 0:\n                continue\n            k += 1\n"
        "            if k == 2:\n                break\n            x = x + v\n        else:\n            x = x * 10\n"
        "        return x, k\n",
        "`v` is a view of what the branch reads as well",
    ),
    (
        "a view of what is given other memory",
        MODULE
        + "        a = x * 2\n        b = a.view(-1)\n        a.data = x * 3\n        b.add_(1)\n        return a, b\n",
        "`b` keeps the memory that `a` had",
    ),
    (
        "a share that dropout is given",
        MODULE
        + "        p = 0.5 * random.random()\n        return nn.functional.dropout(x, p, training=True)\n",
        "a function of torch.nn.functional is given the number",
    ),
]


@pytest.mark.parametrize(("text", "words"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_refused(text: str, words: str) -> None:
    mended = mend(HEAD + text)
    assert mended.text == HEAD + text
    assert any(words in each for each in mended.refusals), mended.refusals


def test_a_lambda_becomes_a_module_with_its_parameters() -> None:
    text = "net = nn.Linear(4, 4)\nprogram = torch.export.export(lambda x, k=2.0: net(\n    x\n) * k, (torch.randn(2, 4),))\n"
    mended = mend(HEAD + text).text
    assert "def forward(self, x, k=2.0):\n        return self.net(\n" in mended
    assert "torch.export.export(Wrapper(net), " in mended


def test_a_drawn_number_that_python_rounds_stays_one() -> None:
    text = MODULE + "        lam = random.uniform(0.0, 4.0)\n        return x * round(lam * 2)\n"
    assert "lam = (4.0 * torch.rand(())).item()\n" in mend(HEAD + text).text


def test_the_module_is_exported_in_the_place_of_its_forward() -> None:
    text = "net = nn.Linear(4, 4)\nprogram = torch.export.export(net.forward, (torch.randn(2, 4),))\n"
    assert "torch.export.export(net, " in mend(HEAD + text).text


def test_an_operator_that_gives_several_tensors_gets_a_fake_kernel_of_as_many() -> None:
    text = (
        '@torch.library.custom_op("kept::halves", mutates_args=())\n'
        "def halves(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:\n    return x / k, x - x / k\n\n\n"
        '@torch.library.custom_op("kept::count", mutates_args={"x"})\n'
        "def count(x: torch.Tensor) -> None:\n    x.add_(1)\n\n\n"
        + MODULE
        + "        a, b = halves(x, 2)\n        a = a.clone()\n        count(a)\n        return a + b\n"
    )
    mended = mend(HEAD + text)
    assert mended.text.count("    return x / k, x - x / k\n") == len(("the operator", "its fake kernel"))
    assert "count.register_fake" not in mended.text and not mended.refusals


def test_gradients_flow_through_what_a_buffer_was_before_it_is_written() -> None:
    text = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("scale", torch.ones(4))\n        self.register_buffer("row", torch.tensor(0))\n'
        "        self.rows = nn.Parameter(torch.ones(3, 4))\n\n"
        "    def forward(self, x):\n        y = x / self.scale.unsqueeze(0) + self.rows[self.row] * 2\n"
        "        self.scale = 0.9 * self.scale + 0.1 * x.detach().abs().mean(0)\n"
        "        self.row = (self.row + 1) % 3\n        return y\n"
    )
    mended = mend(HEAD + text).text
    assert "x / self.scale.clone().unsqueeze(0) + self.rows[self.row.clone().unsqueeze(0)]" in mended
    for each in (HEAD + text, mended):
        given = torch.full((3, 4), 3.0, requires_grad=True)
        module = model(each)
        module(given).sum().backward()
        module(given).sum().backward()
        assert given.grad is not None and given.grad.sum() < 24
