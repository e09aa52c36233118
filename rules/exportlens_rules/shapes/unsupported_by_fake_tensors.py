"""Operators that have no rule for their result's shape."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import tensors_in


class UnsupportedByFakeTensors(CallOf):
    """An operator cannot run without data.

    ## What it does
    Finds `torch.linalg.lstsq`, `torch.nn.functional.ctc_loss` and `nn.CTCLoss`, `torch.combinations`, `random_` and
    nested tensors on traced tensors.

    ## Why it matters
    torch has no rule that says which shape their result has without looking at the data: both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_fake_tensor.html
    """

    code = "EXL409"
    name = "operator-without-shape-rule"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "torch has no other operator that gives this result: compute it before the model is called, and hand "
        "it in"
    )
    callees = (
        "torch.linalg.lstsq",
        "torch.nn.functional.ctc_loss",
        "torch.ctc_loss",
        "torch.nn.CTCLoss",
        "torch.nn.modules.loss.CTCLoss",
        "torch.combinations",
        "torch.nested.nested_tensor",
        "torch.nested.as_nested_tensor",
        "torch.Tensor.random_",
    )
    wrong = "has no rule for its shape without data."
    advice = "Use another operator, or keep it out of the model that is exported."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.linalg.lstsq(x, x[:, :1]).solution
""",
            good="""
def forward(self, x: torch.Tensor):
    return torch.linalg.pinv(x) @ x[:, :1]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.nested.nested_tensor([x[0], x[1]]).to_padded_tensor(0)
""",
            good="""
def forward(self, x: torch.Tensor):
    return nn.utils.rnn.pad_sequence([x[0], x[1]], batch_first=True)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        values = [place.receiver, *place.args, *place.kwargs.values()]
        return any(True for value in values if value is not None for _ in tensors_in(value))
