"""Errors that data raises and a caller catches: which stay as they are, and why. What is written of the others is a pair,
`cases/errors_caught_by_callers.txt`."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.bodies import HEAD, INIT
from tests.rewriting.fixing_all import mend

_CALLER = """
    def forward(self, x: torch.Tensor):
        try:
            y = self.ratio(x)
        except ArithmeticError:
            y = x
        return y
"""
_TAKES_IT = "if x.sum() > 0:\n    raise ArithmeticError('high')\n"


@pytest.mark.parametrize(
    ("caller", "body", "reason"),
    [
        (
            _CALLER.replace("ArithmeticError:", "ArithmeticError as error:").replace(
                "y = x\n", "y = x + len(str(error))\n"
            ),
            f"{_TAKES_IT}return x * 2",
            "the handler reads the exception",
        ),
        (_CALLER, f"{_TAKES_IT}return torch.linalg.cholesky(x @ x.t())", "would not stop before it"),
        (_CALLER, f"{_TAKES_IT}return x[x.argmax()]", "would not stop before it"),
        (_CALLER, f"{_TAKES_IT}self.count = 1\nreturn x * 2", "may fail, or is written"),
        (_CALLER, f"{_TAKES_IT}x.mul_(2)\nreturn x", "does more than to compute"),
        (
            _CALLER,
            f"{_TAKES_IT}while x.sum() < 3:\n    x = x + 1\nreturn x",
            "ends in more than one place",
        ),
        (_CALLER, f"{_TAKES_IT}return x + torch.rand(4)", "would not stop before it"),
        (_CALLER.replace("ratio(x)", "ratio(x + 1)"), f"{_TAKES_IT}return x", "would be computed twice"),
        (
            _CALLER.replace("y = self", "z = self.linear(x)\n            y = self"),
            f"{_TAKES_IT}return x",
            "another statement of the `try`",
        ),
        # torch may raise the same, and so may another caller have to be told.
        (
            _CALLER.replace("ArithmeticError", "Exception"),
            f"{_TAKES_IT}return x",
            "the error is caught where the function is called",
        ),
        (
            _CALLER.replace("y = x\n", "y = self.ratio(x)\n"),
            f"{_TAKES_IT}return x",
            "the error is caught where the function is called",
        ),
    ],
)
def test_refused_with_its_reason(caller: str, body: str, reason: str) -> None:
    method = "\n    def ratio(self, x):\n" + textwrap.indent(body, "        ") + "\n"
    text = HEAD + INIT.lstrip("\n") + caller + method
    mended = mend(text)
    assert "except" in mended.text
    assert any(reason in each for each in mended.refusals), mended.refusals
