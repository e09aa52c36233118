"""Numbers that a Module counts and begins with what its constructor is given: refused where they may be ints or floats."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

BEFORE = """import torch
from functools import partial
from torch import nn


class Net(nn.Module):
    def __init__(self, {parameter}):
        super().__init__()
        self.steps = start

    def forward(self, x: torch.Tensor):
        y = x * self.steps
        self.steps += {step}
        return y


"""


OWNER = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {first}
        self.second = {second}

    def forward(self, x: torch.Tensor):
        return self.first(x) + self.second(x)
"""


@pytest.mark.parametrize(
    ("parameter", "first", "second", "others"),
    [
        ("start", "Net(1)", "Net(0.5)", ""),
        ("start=1", "Net()", "Net(0.5)", ""),
        ("start: int", "Net(1)", "Net(0.5)", ""),
        ("start", "partial(Net, 2)()", "Net(3)", ""),
        ("start", "Net(FIRST)", "Net(FIRST)", "FIRST = 1\nFIRST = 2\n\n\n"),
        (
            "start",
            "Net(1)",
            "Other(1)",
            "class Other(Net):\n    def __init__(self, value):\n        super().__init__(value / 2)\n\n\n",
        ),
        ("start", "Net(1)", "Net(*[2])", ""),
    ],
)
def test_of_no_certain_type(parameter: str, first: str, second: str, others: str) -> None:
    text = BEFORE.format(parameter=parameter, step=1) + others + OWNER.format(first=first, second=second)
    mended = mend(text)
    assert mended.text == text
    assert any("an int or a float" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    ("parameter", "step", "first", "second", "others", "dtype"),
    [
        ("start", "1", "Net(2)", "Net(start=3)", "", ""),
        ("start", "1", "Net(FIRST)", "Net(start=3)", "FIRST = 1\n\n\n", ""),
        (
            "start",
            "1",
            "Net(1)",
            "Other()",
            "class Other(Net):\n    def __init__(self, value=2):\n        super().__init__(value)\n\n\n",
            "",
        ),
        (
            "start",
            "1",
            "Net(1.0)",
            "Other(2.0)",
            "class Other(Net):\n    pass\n\n\n",
            ", dtype=torch.float64",
        ),
        ("start: float", "1", "Net(1)", "Net(2)", "", ", dtype=torch.float64"),
        ("start", "0.5", "Net(1)", "Net(0.5)", "", ", dtype=torch.float64"),
        ("start=1.0", "1", "Net(2)", "Net()", "", ", dtype=torch.float64"),
    ],
)
def test_of_one_type(parameter: str, step: str, first: str, second: str, others: str, dtype: str) -> None:
    text = BEFORE.format(parameter=parameter, step=step) + others + OWNER.format(first=first, second=second)
    mended = mend(text)
    assert f'self.register_buffer("steps", torch.tensor(start{dtype}), persistent=False)' in mended.text


@pytest.mark.parametrize(
    "method",
    [
        "    def share(self):\n        return {self.steps: 1}\n\n    def forward(self, x: torch.Tensor):\n        self.steps += 1\n"
        "        return x * self.steps * len(self.share())\n",
        "    def __len__(self):\n        return {1: 2}[self.steps]\n\n    def forward(self, x: torch.Tensor):\n        self.steps += 1\n"
        "        return x * self.steps * len(self)\n",
        "    def count(self, module, given):\n        self.table = {1: 2}[self.steps]\n\n"
        "    def watch(self):\n        self.register_forward_pre_hook(self.count)\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return x * self.steps\n",
        "    def reset(self, value):\n        self.steps = value\n\n    def forward(self, x: torch.Tensor):\n        self.steps += 1\n"
        "        return x * self.steps\n",
        "    def load(self, kept):\n        for name, value in kept.items():\n            setattr(self, name, value)\n\n"
        "    def kept(self):\n        return {'steps': self.steps}\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return x * self.steps\n",
    ],
    ids=["what is exported calls it", "special", "a hook", "of any type", "by its name"],
)
def test_methods_that_need_the_number(method: str) -> None:
    """Reads in methods that only eager mode runs get the number, but not what may be traced, or sets it to any number."""
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.steps = 0\n\n" + method
    )
    mended = mend(text)
    assert "register_buffer" not in mended.text
    assert mended.refusals


@pytest.mark.parametrize(
    ("lines", "reader"),
    [
        ("step = step + 1\n            self.last = step", ""),
        ("self.last = step", "    def extra_repr(self):\n        return str(self.last)\n\n"),
        ("self.last = kind", ""),
    ],
    ids=["computed in the branch", "read by a method that runs", "of no certain type"],
)
def test_what_is_set_for_others_stays_in_the_branch(lines: str, reader: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.last = 0\n\n{reader}    def forward(self, x: torch.Tensor, step: int = 3, kind=None):\n"
        f"        if x.sum() > 2:\n            {lines}\n            return x * 2\n        return x\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any("which is not known to be a tensor before and after" in each for each in mended.refusals), (
        mended.refusals
    )


def test_a_base_class_of_another_file_may_call_any_method() -> None:
    """Its `forward` is not known: `super().forward(x)`."""
    text = (
        "import torch\nfrom elsewhere import Base\nfrom torch import nn\n\n\nclass Layer(Base, nn.Module):\n    pass\n\n\n"
        "class M(Layer):\n    def __init__(self):\n        super().__init__()\n        self.steps = 0\n\n"
        "    def name(self):\n        return {1: 2}[self.steps]\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return x * self.steps\n"
    )
    assert "register_buffer" not in mend(text).text
