"""State that the first call does not find yet: torch.cond traces both sides in every call, where an `if` runs one."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.fixing_all import mend

BEGIN = """import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = None

    def forward(self, x, first):
        if first:
            y = x
        else:
            y = x - self.before
        self.before = x
        return y


class Held:
    def __init__(self):
        self.last = None


class M(nn.Module):
    of_class = None

    def __init__(self, order=3):
        super().__init__()
        self.register_buffer("seen", torch.tensor(0))
        self.steps = 0
        self.prev = None
        self.option = None
        self.hist = [None] * order
        self.queue = []
        self.table = {}
        self.held = Held()

    def less(self, x, other):
        return x - other

    def less_the_last(self, x):
        return x - self.prev

    def less_two(self, x, outputs):
        newest, older = outputs[-1], outputs[-2]
        return x - newest + older

    def keep(self, x):
        self.prev = x.detach()

    def forward(self, x: torch.Tensor):
"""

REFUSED = {
    "an attribute": "if self.seen > 0:\n    x = x - self.prev\nself.prev = x\nself.seen.add_(1)\nreturn x",
    "an attribute by a counter": "if self.steps > 0:\n    x = x - self.prev\nself.prev = x\nself.steps += 1\nreturn x",
    "an attribute of the class": "if self.seen > 0:\n    x = x - self.of_class\nself.of_class = x\nreturn x",
    "an attribute that the constructor does not make": "if self.seen > 0:\n    x = x - self.late\nself.late = x\nreturn x",
    "what another arm sets": "if self.seen == 0:\n    self.prev = x\nelse:\n    x = x - self.prev\nreturn x",
    "behind an arm that returns": "if self.seen == 0:\n    self.prev = x\n    return x\nreturn x - self.prev",
    "in a ternary": "y = x - self.prev if self.seen > 0 else x\nself.prev = x\nreturn y",
    "in a method": "if self.seen > 0:\n    x = self.less_the_last(x)\nself.prev = x\nreturn x",
    "given to a method": "if self.seen > 0:\n    x = self.less(x, other=self.prev)\nself.prev = x\nreturn x",
    "under a name": "prev = self.prev\nif self.seen > 0:\n    x = x - prev\nself.prev = x\nreturn x",
    "of an object": "if self.seen > 0:\n    x = x - self.held.last\nself.held.last = x\nreturn x",
    "items that are moved on": (
        "for i in range(2):\n    self.hist[i] = self.hist[i + 1]\nself.hist[-1] = x\n"
        "if self.seen > 0:\n    x = self.less_two(x, self.hist)\nreturn x"
    ),
    "an item that comes later": "self.queue.append(x)\nif self.seen > 0:\n    x = x - self.queue[-2]\nreturn x",
    "a key": "if self.seen > 0:\n    x = x - self.table['last']\nself.table['last'] = x\nreturn x",
    "in a loop on data": "while x.sum() > self.seen:\n    x = x - self.prev\nself.prev = x\nreturn x",
    "set on one way": "if x.sum() > 0:\n    self.prev = x\nreturn x",
    "set behind an early return": "if x.sum() > 0:\n    return x\nself.prev = x * 2\nreturn x * 2",
    "set before an early return": "if x.sum() > 0:\n    self.late = x\n    return x\nreturn x * 2",
    "set on some ways through an arm": (
        "if x.sum() > 0:\n    if x.max() > 2:\n        self.prev = x\nelse:\n    self.prev = x * 2\nreturn x"
    ),
    "set to None before": "self.prev = None\nif x.sum() > 0:\n    x = x - self.prev\nself.prev = x\nreturn x",
}

REWRITTEN = {
    "set before the branch": "self.prev = x\nif self.seen > 0:\n    x = x - self.prev\nreturn x",
    "set by a method before": "self.keep(x)\nif self.seen > 0:\n    x = x - self.prev\nreturn x",
    "set on both ways": "if x.sum() > 0:\n    self.prev = x\nelse:\n    self.prev = x * 2\nreturn x",
    "set on both ways, one returns": "if x.sum() > 0:\n    self.prev = x\n    return x\nself.prev = x * 2\nreturn x * 2",
    "set before one way sets it": "self.prev = x\nif x.sum() > 0:\n    self.prev = x * 2\nreturn x",
    "asked for in the arm": (
        "if self.seen > 0:\n    x = x * 2\n    if self.prev is not None:\n        x = x - self.prev\nself.prev = x\nreturn x"
    ),
    "begun where it is None": "if self.prev is None:\n    self.prev = x\nif self.seen > 0:\n    x = x - self.prev\nreturn x",
    "read before in any case": "late = self.late * 2\nif self.seen > 0:\n    x = x - self.late\nself.late = x\nreturn x + late",
    "the last item, added by this call": "self.queue.append(x)\nif self.seen > 0:\n    x = x - self.queue[-1]\nreturn x",
    "an item that this call sets": "self.hist[0] = x\nif self.seen > 0:\n    x = x - self.hist[0]\nreturn x",
    "items that each call sets": (
        "for i in range(3):\n    self.hist[i] = x * i\nif self.seen > 0:\n    x = x - self.hist[2]\nreturn x"
    ),
    "nothing sets it": "if self.seen > 0:\n    x = x * 2 if self.option is None else x * self.option\nreturn x",
}


def written(body: str) -> str:
    return BEGIN + textwrap.indent(body, "        ") + "\n"


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_an_earlier_call_must_have_set_is_not_traced_before(body: str) -> None:
    mended = mend(written(body))
    assert any("the first one included" in refusal for refusal in mended.refusals), mended.refusals
    assert "torch.cond" not in mended.text and "while_loop" not in mended.text
    assert "self.steps = 0" in mended.text


@pytest.mark.parametrize("body", REWRITTEN.values(), ids=REWRITTEN)
def test_what_is_set_where_the_branch_comes_is_traced(body: str) -> None:
    mended = mend(written(body))
    assert not any("the first one included" in refusal for refusal in mended.refusals), mended.refusals
    assert "torch.cond" in mended.text, mended.refusals


@pytest.mark.parametrize(
    "line",
    [
        "self.steps, self.prev = self.steps + 1, x * self.steps",
        "self.prev, self.steps = x, self.prev.shape[0]",
        "self.prev = self.steps, x = self.steps + 1, x * 2",
    ],
    ids=["another reads it", "it reads another", "two targets"],
)
def test_a_number_stays_beside_what_it_hangs_on(line: str) -> None:
    mended = mend(written(f"{line}\nreturn x * self.steps"))
    assert "self.steps = 0" in mended.text


def test_a_number_is_set_behind_what_is_set_beside_it() -> None:
    mended = mend(written("y = x * 2\nn = self.steps + 1\nkept, self.steps = y, n\nreturn kept * self.steps"))
    assert "kept = y\n        self.steps.fill_(n)" in mended.text, mended.refusals


STATE_OF_A_LAYER = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.hidden = None
        self.rows = None

    def forward(self, x: torch.Tensor):
        n = x.shape[0]
        if self.hidden is None or self.rows != n:
            h, c = torch.zeros(1, n, 4), torch.zeros(1, n, 4)
            self.hidden = (h, c)
            self.rows = n
        out, self.hidden = self.lstm(x, self.hidden)
        return out
"""


def test_a_state_that_is_none_at_first_is_no_tuple_to_copy() -> None:
    mended = mend(STATE_OF_A_LAYER)
    assert "for each in None" not in mended.text
    assert any("the state is None at first" in each for each in mended.refusals)
