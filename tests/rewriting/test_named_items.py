"""Items of dicts and lists that the arms of a branch set: what is not proved to be there before, or to be another item, is refused."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

HEAD = """import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor, key: str = "a"):
        out = {"a": x}
"""


@pytest.mark.parametrize(
    "body",
    [
        # Only one side has the item.
        'if x.sum() > 0:\n    out["c"] = x\n    return out\nout["c"] = x\nout["b"] = x * 2\nreturn out',
        # Two keys may be one.
        'for one, other in (("p", "q"), ("r", "r")):\n'
        "    if x.sum() > 0:\n        out[one] = x * 2\n        out[other] = x * 3\n"
        "    else:\n        out[other] = x - 1\n        out[one] = x - 3\nreturn out",
        # The dict has another name, by which it is read.
        'other = out\nif x.sum() > 0:\n    out["a"] = x * 2\n    x = other["a"] + 1\nelse:\n    out["a"] = x - 1\nreturn out, x',
        # What is taken away again is not there.
        'for one in ("p", "q"):\n    out[one] = x\n    out.pop(one)\n'
        "    if x.sum() > 0:\n        out[one] = x * 2\nreturn out",
    ],
)
def test_refused(body: str) -> None:
    text = HEAD + "".join(f"        {line}\n" for line in body.splitlines())
    mended = mend(text)
    assert mended.text == text
    assert mended.refusals


KEPT = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = OPTIONS

    def forward(self, x: torch.Tensor):
        if x.mean() > 0:
            self.options["signed"] = True
            x = x * 2
        if self.options["signed"]:
            x = x + 1
        return x
"""


@pytest.mark.parametrize(
    ("options", "is_named"), [("options", False), ("{'bits': 8}", False), ("{'signed': False}", True)]
)
def test_items_that_the_branch_may_set_first(options: str, is_named: bool) -> None:
    """What is read behind a branch need not be there before it: the first call may take the arm that sets it."""
    mended = mend(KEPT.replace("OPTIONS", options)).text
    assert ("torch.cond" in mended) == is_named
