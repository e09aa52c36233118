"""uuid, secrets, os.urandom."""

from __future__ import annotations

from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class UniqueIds(CallOf):
    """Unique or secret values are made while tracing.

    ## What it does
    Finds `uuid.uuid4`, `secrets` and `os.urandom` in traced code.

    ## Why it matters
    Strict tracing fails; non-strict tracing freezes the value.

    ## References
    - https://docs.python.org/3/library/uuid.html
    """

    code = "EXL508"
    name = "unique-ids"
    left_to_python = True
    outcome = Outcome(FAILS, WRONG)
    no_fix = (
        "whether one value for good would do is for you to say: make it where the model is called, and hand it "
        "in"
    )
    callees = (
        "uuid.uuid1",
        "uuid.uuid4",
        "secrets.token_hex",
        "secrets.token_bytes",
        "secrets.randbelow",
        "secrets.choice",
        "os.urandom",
    )
    wrong = "makes a value once, while tracing: the program repeats it for ever."
    advice = "Make it outside of the model."
    examples = (
        Example(
            bad="""
import uuid

from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + uuid.uuid4().int % 1009
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )
