"""What is not taken apart into names, because something may look at it as a whole, or may miss a part of it."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.fixing_all import mend

HEAD = """import torch
from torch import nn


class Plain:
    def __init__(self, value):
        self.value = value
        self.count = 0


class Computing:
    def __init__(self, value):
        self.value = value + 1
        self.count = 0


class Watching:
    def __init__(self, value):
        self.value = value
        self.count = 0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


def seen(what):
    return what


class M(nn.Module):
    named = ("row",)

    def forward(self, x):
"""
LOOP = "for row in x:\n    if row.sum() > 0:\n        best[{key}] = row\n        best['count'] += 1\n"
BODIES = [
    (
        "another name",
        "best = {'row': x[0], 'count': 0}\nsame = best\n"
        + LOOP.format(key="'row'")
        + "return same['row'], best['count']",
    ),
    (
        "handed to a function",
        "best = {'row': x[0], 'count': 0}\nsame = seen(best)\n"
        + LOOP.format(key="'row'")
        + "return same['row'], best['count']",
    ),
    (
        "a key that is not written out",
        "best = {'row': x[0], 'count': 0}\nfor name in self.named:\n    best[name] = x[0]\n"
        + LOOP.format(key="'row'")
        + "return best['row'], best['count']",
    ),
    (
        "a function inside reads it",
        "best = {'row': x[0], 'count': 0}\n\ndef read():\n    return best['row']\n\n"
        + LOOP.format(key="'row'")
        + "return read(), best['count']",
    ),
    (
        "a part that may not be there",
        "best = {'count': 0}\n" + LOOP.format(key="'row'") + "return best['row'], best['count']",
    ),
    (
        "a part that is only there on one way",
        "best = {'count': 0, 'row': x[0]}\nif x.sum() > 0:\n    best['more'] = x\n    best['count'] += 1\nreturn best",
    ),
    (
        "a loop goes through it and sets its parts",
        "best = {'row': x[0], 'count': 0}\nfor name, part in best.items():\n    if x.sum() > 0:\n        best['row'] = x[1] + part\n"
        "        best['count'] += 1\nreturn best['row'], best['count']",
    ),
    (
        "a view of it that is kept",
        "best = {'row': x[0], 'count': 0}\nparts = best.values()\n"
        + LOOP.format(key="'row'")
        + "return list(parts)[0], best['count']",
    ),
    (
        "bound to something else",
        "best = {'row': x[0], 'count': 0}\nif self.named:\n    best = self.named\n"
        + LOOP.format(key="'row'")
        + "return best['row'], best['count']",
    ),
    (
        "a part is taken away",
        "best = {'row': x[0], 'count': 0, 'old': 1}\ndel best['old']\n"
        + LOOP.format(key="'row'")
        + "return list(best), best['count']",
    ),
]
OBJECT = (
    "best = {made}\nfor row in x:\n    if row.sum() > 0:\n        best.value = row\n        best.count += 1\n"
    "return best.value, best.count"
)


@pytest.mark.parametrize("body", [body for _, body in BODIES], ids=[name for name, _ in BODIES])
def test_a_whole_that_something_may_look_at(body: str) -> None:
    assert "best_row" not in mend(HEAD + textwrap.indent(body, " " * 8) + "\n").text


@pytest.mark.parametrize("made", ["Computing(x[0])", "Watching(x[0])", "self.make(x[0])", "Plain(*x[:1])"])
def test_objects_that_are_more_than_their_attributes(made: str) -> None:
    text = HEAD + textwrap.indent(OBJECT.format(made=made), " " * 8) + "\n"
    assert "best_value" not in mend(text).text


@pytest.mark.parametrize(
    "body",
    [
        OBJECT.format(made="Plain(x[0])"),
        "best = {'row': x[0], 'count': 0}\n" + LOOP.format(key="'row'") + "return best['row'], best['count']",
    ],
)
def test_what_is_used_by_its_parts_alone_is_taken_apart(body: str) -> None:
    text = HEAD + textwrap.indent(body, " " * 8) + "\n"
    assert "torch.cond" in mend(text).text


@pytest.mark.parametrize(
    "body",
    [
        "counts = [0] * 3\nfor label in y.tolist():\n    counts[label] += 1\n    print(counts[0])\nreturn x * counts[0]",
        "counts = [0] * 3\nsame = counts\nfor label in y.tolist():\n    counts[label] += 1\nreturn x * same[0]",
        "counts = [1, 2, 0]\nfor label in y.tolist():\n    counts[label] += 1\nreturn x * counts[0]",
        "counts = [0] * 3\nfor label in y.tolist():\n    counts[label] += x[0].sum()\nreturn x * counts[0]",
        "counts = [[0] * 3] * 3\nfor label in y.tolist():\n    counts[label][0] += 1\nreturn x * counts[0][0]",
        "counts = [0] * 3\nfor label in y.tolist():\n    counts[label] += 1\n    counts = counts[:3]\nreturn x * counts[0]",
        "counts = [0] * 3\nfor label in y.tolist():\n    counts[label] /= 2\nreturn x * counts[0]",
    ],
)
def test_lists_of_numbers_that_do_more_than_count(body: str) -> None:
    text = HEAD.replace("self, x", "self, x, y") + textwrap.indent(body, " " * 8) + "\n"
    assert ".zeros(" not in mend(text).text


def test_dicts_with_other_keys_are_no_results_of_one_branch() -> None:
    body = "parts = {'row': x[0], 'count': x[1]}\nif x.sum() > 0:\n    parts = {'row': x[0] * 2, 'more': x[1] * 2}\nreturn parts"
    text = HEAD + textwrap.indent(body, " " * 8) + "\n"
    assert any("on one side of the branch alone" in each for each in mend(text).refusals)


@pytest.mark.parametrize(
    "rest",
    [
        "losses['more'] += 1\nreturn sum(losses.values())",
        "return sum(losses.values()) if 'more' in losses else x.sum()",
        "return sum(losses.values()) / len(losses)",
        "return torch.stack(list(losses.values())).mean()",
        "return sum(2 * each for each in losses.values() if each is not None)",
        "return sum(each + 1 for each in losses.values())",
        "total = x.sum()\nfor each in losses.values():\n    total = total * 2 + each\nreturn total",
        "return sum(losses.values()), losses",
    ],
)
def test_parts_of_some_ways_that_show_otherwise_than_in_a_sum(rest: str) -> None:
    body = f"losses = {{'base': x.sum()}}\nif x.sum() > 0:\n    losses['more'] = x.mean()\n{rest}"
    assert "losses_more" not in mend(HEAD + textwrap.indent(body, " " * 8) + "\n").text


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n    rate = options.high\nelse:\n    rate = options.low\nreturn [rate]",
        "low = options.low\nif x.sum() > 0:\n    low = low * 2\nreturn [low]",
        "rate = x.amax(0)\nif x.sum() > 0:\n    rate = options.high\nreturn [rate]",
    ],
)
def test_options_that_may_be_numbers_beside_nothing_that_tells_a_dtype(body: str) -> None:
    text = HEAD.replace("self, x", "self, x, options") + textwrap.indent(body, " " * 8) + "\n"
    text = text.replace(
        "def forward(", "def forward(self, x):\n        return self.run(x, self.options)\n\n    def run("
    )
    begin = "    def __init__(self, options):\n        super().__init__()\n        self.options = options\n\n"
    text = text.replace("    def forward(", f"{begin}    def forward(", 1)
    assert any("it is not known whether" in each for each in mend(text).refusals)
