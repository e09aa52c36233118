"""Errors that data raises and the same function catches: which stay as they are, and why. What is written of the others is a
pair, `cases/errors_caught_where_they_are_raised.txt`."""

from __future__ import annotations

import pytest

from tests.rewriting.bodies import HEAD, INIT
from tests.rewriting.fixing_all import mend

_ATTEMPT = """
    def forward(self, x: torch.Tensor):
        try:
            if x.sum() > 0:
                raise ValueError("high")
            y = x * 2
        except ValueError:
            y = x
        return y
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ValueError", "RuntimeError", "the error is caught in the same function"),
        ("except ValueError:", "except Exception:", "the error is caught in the same function"),
        ("except ValueError:\n            y = x", "except ValueError as e:\n            y = x + len(str(e))", "reads the exception"),
        ("except ValueError:", "except KeyError:\n            y = x + 1\n        except ValueError:", "several handlers"),
        ("y = x * 2", "y = x * int(self.rate)", "`int(self.rate)` may raise the same error"),
        ("y = x * 2", "y = self.shaped(x)", "`self.shaped(x)` may raise the same error"),
        ("y = x * 2", "n = 3\n            n /= self.count\n            y = x * n", "`n /= self.count` may raise the same error"),
        ("y = x * 2", "assert x.dim() == 2\n            y = x * 2", "another statement of the `try`"),
        ("            y = x\n", "            raise\n", "raises the error again"),
    ],
)  # fmt: skip
def test_refused_with_its_reason(old: str, new: str, reason: str) -> None:
    text = HEAD + INIT.lstrip("\n") + _ATTEMPT.replace(old, new)
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals
