"""Refused rewrites of NumPy: where an array and a tensor are not the same."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.bodies import HEAD, INIT
from tests.rewriting.fixing_all import mend

NUMPY = [
    (
        "values = x.numpy()\nturned = np.flip(values, 0)\nvalues[0] = 1.0\nreturn torch.from_numpy(turned.copy())",
        "flips without copying",
    ),
    (
        "x = x + 0\nvalues = x.numpy()\nturned = np.flip(values, 0)\nx[0] = 1.0\nreturn torch.from_numpy(turned.copy())",
        "a tensor is written to",
    ),
    ("values = x.numpy()\nreturn torch.from_numpy(np.flip(values, axis=None).copy())", "not all dimensions"),
    (
        "index = x.to(torch.uint8).numpy()\nreturn torch.from_numpy(np.eye(9)[index])",
        "uint8 is a mask",
    ),
    (
        "index = x.long().numpy()\nreturn torch.from_numpy(np.arange(x.shape[0], 3)[index])",
        "NumPy counts nothing where the end comes first",
    ),
    (
        "values = x.numpy()\nfirst = values[0]\nfirst += 1\nreturn torch.from_numpy(values * 2), first",
        "is an array or a number of NumPy's",
    ),
    (
        "self.seen = x.numpy()\nreturn torch.from_numpy(self.seen) * 2",
        "an array is kept where it is not followed",
    ),
    (
        "values = x.numpy()\nhigh = [row.max() if row.max() > 0 else 0.0 for row in values]\n"
        "return torch.from_numpy(np.array(high))",
        "which may hold numbers of Python's, is not known",
    ),
    (
        "values = x.numpy()\nhigh = [row.max() if row.max() > 0 else 0.0 for row in values]\n"
        "return torch.from_numpy(np.stack(high))",
        "which torch does not put together",
    ),
    (
        "values = x.numpy()\npeak = max(values.max(), 0.0)\nreturn torch.from_numpy(np.exp(peak) * values)",
        "may be a number of Python's, of which NumPy makes a double",
    ),
    (
        "values = x.numpy()\nout, last = [], 0.0\nfor t in range(3):\n    out.append(last)\n    last = values[t] + 0.5 * last\n"
        "return torch.from_numpy(np.array(out))",
        "used in a way that has no counterpart",
    ),
    ("return np.maximum(x, self.count)", "torch's function takes no numbers"),
]


@pytest.mark.parametrize(("body", "reason"), NUMPY, ids=[body for body, _ in NUMPY])
def test_numpy_of_a_tensor_and_a_number_is_not_torchs_of_two_tensors(body: str, reason: str) -> None:
    forward = "\n    def forward(self, x: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    text = "import numpy as np\n" + HEAD + INIT.lstrip("\n") + forward
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


ARRAYS = """import numpy as np
import torch
from torch import nn


def rows(x, size):
    least = 2
    count = x.sum().long().item()
    if size - least <= count:
        least = size - count - 1
    kept = np.random.choice(size - least, count, replace=False)
    return kept


class M(nn.Module):
    def forward(self, x):
        return x + rows(x, x.shape[1])[0]
"""


def test_arrays_do_not_leave_an_arm() -> None:
    text = mend(ARRAYS).text
    assert "    least = torch.cond(size - least <= count, if_true, if_false, ())\n" in text
    assert "    kept = np.random.choice(size - least, count, replace=False)\n    return kept\n" in text


@pytest.mark.parametrize(
    "body, reason",
    [
        (
            "labels = y.numpy()\nreturn torch.from_numpy(labels ** 2), torch.from_numpy(np.sqrt(labels))",
            "whether `y.numpy()` holds floats or ints is not known",
        ),
        (
            "rows = np.apply_along_axis(np.cumsum, 0, x.numpy()) - WIDE\nreturn x * WIDE, torch.from_numpy(rows)",
            "in another dtype than with a number of Python's",
        ),
        (
            "rows = np.apply_along_axis(np.cumsum, 0, x.numpy()) - self.wide\nreturn x * self.wide, torch.from_numpy(rows)",
            "in another dtype than with a number of Python's",
        ),
        (
            "rows = np.asarray(x)\nreturn torch.from_numpy(np.apply_along_axis(np.cumsum, 0, rows)), torch.from_numpy(rows)",
            "no function that is measured to be the same as `np.apply_along_axis`",
        ),
    ],
    ids=["labels", "a number of the file", "a number of the model", "an array of what is no array"],
)
def test_arrays_keep_the_dtypes_that_numpy_gives(body: str, reason: str) -> None:
    text = "import numpy as np\nimport torch\nfrom torch import nn\n\nWIDE = np.log(3.0) / 2\n\n\nclass M(nn.Module):\n"
    text += "    def __init__(self):\n        super().__init__()\n        self.wide = np.sqrt(6.0)\n\n"
    text += f"    def forward(self, x: torch.Tensor, y: torch.Tensor):\n{textwrap.indent(body, '        ')}\n"
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    "body, reason",
    [
        (
            "left, values, right = np.linalg.svd(rows, full_matrices=False)\nreturn torch.from_numpy(left * values)",
            "`left` is one array or another, or one that is not determined",
        ),
        (
            "return torch.from_numpy(np.correlate(rows[0], rows[0], mode='full'))",
            "where `rows[0]` holds NaN or infinity",
        ),
        (
            "return torch.from_numpy(np.interp(rows, rows[0], [0.0, 1.0, 2.0, 3.0]))",
            "whether `rows[0]` goes up everywhere",
        ),
        (
            "counts, _ = np.histogram(rows, bins=8)\nreturn torch.from_numpy(counts)",
            "from where to where is counted is not written out",
        ),
        ("return torch.from_numpy(np.unique(rows))", "NumPy keeps one NaN of several"),
        (
            "rows = rows.reshape(-1).copy()\nrows[0], rows[1] = rows[1], rows[0]\nreturn torch.from_numpy(rows)",
            "is read before it is written anew",
        ),
        (
            "out = np.zeros_like(rows)\nnp.log(rows, out=out, where=rows > 0)\nreturn torch.from_numpy(out)",
            "writes into an array that has a name",
        ),
        (
            "loss = x.mean()\nreturn loss * rows.astype(np.float64).mean()",
            "a tensor without dimensions decides the dtype beside another one",
        ),
        (
            "out = np.zeros_like(labels)\nout[labels > 0] = labels[labels > 0] * 0.3\nreturn torch.from_numpy(out)",
            "whether `y.numpy()` holds floats or ints is not known",
        ),
        (
            "return torch.from_numpy(np.array(y.tolist()) * 2)",
            "whether `y.tolist()` holds floats or ints is not known",
        ),
        (
            "return torch.from_numpy(labels / max((labels > 0).sum(), 1) + rows * max((rows > 0).sum(), 1))",
            "gives a number of NumPy's or one of Python's",
        ),
    ],
    ids=[
        *(
            "singular vectors",
            "a row with itself",
            "points from data",
            "borders from data",
            "different floats",
        ),
        *("exchanged numbers", "written elsewhere", "a loss", "a mask", "a list", "a number of either"),
    ],
)
def test_what_numpy_does_otherwise_than_torch(body: str, reason: str) -> None:
    text = "import numpy as np\nimport torch\nfrom torch import nn\n\nWIDE = 3.0\n\n\nclass M(nn.Module):\n"
    text += "    def __init__(self):\n        super().__init__()\n        self.linear = nn.Linear(4, 4)\n\n"
    text += "    def forward(self, x: torch.Tensor, y: torch.Tensor):\n"
    text += "        rows = self.linear(x).detach().numpy()\n"
    text += "        labels = y.numpy()\n" if "labels" in body else ""
    text += f"{textwrap.indent(body, '        ')}\n"
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    "computed",
    [
        "place = start - 2 * speed",
        "place, end = self.fall(start, speed)",
        "place = start\nplace -= speed",
    ],
)
@pytest.mark.parametrize(
    "asked", ["place = 0.0 if abs(place) < 0.1 else place", "if place < 0.1:\n    place = 0.0"]
)
def test_numbers_computed_of_those_of_numpy(computed: str, asked: str) -> None:
    """They are compared by NumPy, whose bools torch.cond does not take."""
    text = "import numpy as np\nimport torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += "    def fall(self, place, speed):\n        return place - speed * 2, speed\n\n"
    text += "    def forward(self, x: torch.Tensor):\n"
    body = f"start = x.sum().item()\nspeed = np.abs(start) * 0.5\n{computed}\n{asked}\nreturn x + place"
    mended = mend(text + textwrap.indent(body, "        ") + "\n")
    assert any("is NumPy's" in refusal for refusal in mended.refusals), mended.refusals
    assert "torch.cond" not in mended.text


@pytest.mark.parametrize(
    "body",
    [
        "found = np.array(words != 0, dtype=float)\nreturn x * torch.Tensor(found)",
        "for row in words:\n    x = x + sum(int(word == 3) for word in row)\nreturn x",
        "return self.scaled(x, words)",
    ],
)
@pytest.mark.parametrize("call", ["self.inner(x, y.cpu().numpy())", "self.inner(x, words=self.read(y)[:2])"])
def test_arrays_that_another_module_hands_in(body: str, call: str) -> None:
    """Exported by itself the inner one takes tensors; called by the outer one it is given arrays, which stay arrays."""
    text = "import numpy as np\nimport torch\nfrom torch import nn\n\n\nclass Inner(nn.Module):\n"
    text += "    def scaled(self, x, words):\n        return x * 2 if (words > 0).any() else x\n\n"
    text += (
        f"    def forward(self, x, words):\n{textwrap.indent(body, '        ')}\n\n\nclass M(nn.Module):\n"
    )
    text += "    def __init__(self):\n        super().__init__()\n        self.inner = Inner()\n\n"
    text += "    def forward(self, x: torch.Tensor, y: torch.Tensor):\n"
    text += (
        f"        words = np.asarray(y.tolist())\n        return {call.replace('self.read(y)', 'words')}\n"
    )
    mended = mend(text)
    assert any("a call gives an array for `words`" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text.partition("class M")[0] == text.partition("class M")[0]
