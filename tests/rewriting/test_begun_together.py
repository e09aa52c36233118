"""State that does not certainly begin together with what is asked for stays as it is."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.bodies import HEAD
from tests.rewriting.fixing_all import mend

_EXAMPLE = "\n\ndef get_inputs():\n    return [torch.randn(2, 4)]\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        ("self.h = x.clone()\n    if self.on:\n        self.c = x.abs()", ""),
        ("self.h = x.clone()\n    self.c = x.abs()\n    if self.on:\n        self.c = None", ""),
        ("self.h = x.clone()\n    self.c = x.abs()", "def put(self, h):\n    self.h = h\n"),
        ("self.h = x.clone()\n    self.c = x.abs()", "def drop(self):\n    self.c = None\n"),
        (
            "self.h = x.clone()\n    self.mix(x)\n    self.c = x.abs()",
            "def mix(self, x):\n    return self.c\n",
        ),
    ],
    ids=["in a branch", "ended again", "begun alone", "ended alone", "read in between"],
)
def test_state_that_may_not_have_begun(begin: str, more: str) -> None:
    init = "def __init__(self, on=False):\n    super().__init__()\n    self.on = on\n    self.h = None\n    self.c = None\n"
    forward = (
        f"def forward(self, x):\n    if self.h is None:\n        {textwrap.indent(begin, '    ').lstrip()}\n    c = self.c\n"
        "    self.h = 0.5 * self.h + x\n    return self.h + c\n"
    )
    mended = mend(HEAD + textwrap.indent("\n".join([init, more, forward]), "    ") + _EXAMPLE)
    assert 'register_buffer("h"' in mended.text or mended.refusals
    assert 'register_buffer("c"' not in mended.text


def test_state_that_has_begun_with_the_other() -> None:
    body = "def __init__(self):\n    super().__init__()\n    self.h = None\n    self.c = None\n\n"
    body += "def forward(self, x):\n    if self.h is None:\n        self.h = x.clone()\n        self.c = x.abs()\n    c = self.c\n"
    body += "    self.h = 0.5 * self.h + x\n    return self.h + c\n"
    mended = mend(HEAD + textwrap.indent(body, "    ") + _EXAMPLE)
    assert 'register_buffer("c", torch.zeros(2, 4), persistent=False)' in mended.text
    assert not mended.refusals
