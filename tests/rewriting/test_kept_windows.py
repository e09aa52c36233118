"""The last items that a Module keeps from call to call: which of them stay in their list, and why."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.fixing_all import mend

HEAD = "from collections import deque\n\nimport torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
NUMBER = "self.kept.append(x.mean().item())\n"
TENSOR = "self.kept.append(x.relu())\n"
MEAN = "return x - sum(self.kept) / len(self.kept)"


@pytest.mark.parametrize(
    "begin, body, reason",
    [
        ("[]", NUMBER + MEAN, "how many of them are kept"),
        (
            "[]",
            NUMBER + "mean = sum(self.kept) / len(self.kept)\nif len(self.kept) > 3:\n    self.kept.pop(0)\nreturn x - mean",
            "how many of them are kept",
        ),
        ("[]", NUMBER + "if len(self.kept) > 3:\n    self.kept.pop()\n" + MEAN, "takes out the newest item"),
        ("deque(maxlen=size)", NUMBER + MEAN, "is not known to be an int that never changes"),
        ("deque([0.0], maxlen=3)", NUMBER + MEAN, "does not begin with as many items as it may hold"),
        ("deque(maxlen=3)", NUMBER + "for each in self.kept:\n    x = x + each\nreturn x", "how often the loop over"),
        ("deque(maxlen=3)", NUMBER + "return x + self.kept[1]", "may be asked for before there are as many items"),
        ("deque(maxlen=3)", "top = max(self.kept)\n" + NUMBER + "return x + top", "may be asked for while `self.kept` is empty"),
        ("deque(maxlen=3)", NUMBER + "return x, self.kept", "in a way that its buffer may not be"),
        ("deque(maxlen=3)", NUMBER + "return x + sorted(self.kept)[0]", "in a way that its buffer may not be"),
        (
            "deque(maxlen=3)",
            "self.kept.append(x.max().item())\nreturn x, max(self.kept)",
            "gives an int or a float is not known",
        ),
        ("deque(maxlen=3)", "self.kept.append(x.mean().item() - len(self.kept))\n" + MEAN, "may read `self.kept` itself"),
        ("deque(maxlen=3)", NUMBER + NUMBER + MEAN, "gets its items in several places"),
        ("deque(maxlen=3)", TENSOR + "return torch.stack(list(self.kept)).mean(0)", "which shape the tensors in `self.kept` have"),
        ("deque([torch.zeros(4)] * 3, maxlen=3)", TENSOR + MEAN, "has the shape of what it begins with"),
        (
            "deque([torch.zeros(4)] * 3, maxlen=3)",
            "self.kept.append(x.relu()[:2])\nreturn torch.cat(list(self.kept))",
            "may have other sizes than what `self.kept` begins with",
        ),
        (
            "deque([torch.zeros(4, dtype=torch.int64)] * 3, maxlen=3)",
            TENSOR + "return torch.stack(list(self.kept)).mean(0)",
            "is not known to be floats, ints, or tensors of floats",
        ),
    ],
    ids=[
        "no bound", "cut after it is read", "the newest goes", "a bound that may be None", "begins with some", "a loop", "an item inside",
        "read while empty", "given", "sorted", "numbers of an unknown type", "its own length", "filled twice", "unknown shape",
        "a shape that may differ", "rows", "other dtype",
    ],
)  # fmt: skip
def test_windows_that_stay_in_their_list(begin: str, body: str, reason: str) -> None:
    text = HEAD + textwrap.indent(
        f"def __init__(self, size=None):\n    super().__init__()\n    self.kept = {begin}\n\n"
        f"def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text
