"""Bodies of `forward` that are mended: what becomes of them, that both modes export it, and that the results are the same."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import torch
from exportlens.config import NEWEST_TORCH
from exportlens.outcome import TorchVersion

from tests.rewriting.driving import assert_programs_equal
from tests.rewriting.fixing_all import mend

# What stands before the bodies of refused rewrites.
HEAD = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
INIT = """
    def __init__(self):
        super().__init__()
        self.count = 0
        self.kept = []
        self.linear = nn.Linear(4, 4)
"""


def assert_mended(
    head: str, bodies: Mapping[str, tuple[str, str]], torch_version: TorchVersion = NEWEST_TORCH
) -> None:
    """Each body behind `head` becomes the other text, nothing of it is refused, and both do the same."""
    pairs = []
    for body, expected in bodies.values():
        mended = mend(_model(head, body), torch_version)
        assert textwrap.indent(expected, "        ").strip() in mended.text
        assert not mended.refusals
        pairs.append((_model(head, body), mended.text))
    torch.manual_seed(0)
    given = [(torch.rand(3, 4), torch.rand(3, 4)), (torch.randn(3, 4).abs(), torch.ones(3, 4))]
    assert_programs_equal(pairs, [given for _ in pairs], modes=(True, False))


def assert_refused(head: str, body: str, reason: str, torch_version: TorchVersion = NEWEST_TORCH) -> None:
    """The body behind `head` stays as it is, which has this reason."""
    mended = mend(_model(head, body), torch_version)
    assert mended.text == _model(head, body)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals


def _model(head: str, body: str) -> str:
    return head + textwrap.indent(body, "        ") + "\n"
