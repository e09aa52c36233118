"""Addresses and storages of tensors."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.calls.old_calls import identity_for_address
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor


class MemoryOfTensor(CallOf):
    """A traced tensor is asked for its memory.

    ## What it does
    Finds `data_ptr()`, `share_memory_()` and DLPack conversions of traced tensors.

    ## Why it matters
    A traced tensor has a shape and a dtype, but no memory: both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_fake_tensor.html
    """

    code = "EXL212"
    name = "memory-of-tensor"
    outcome = Outcome(FAILS, FAILS)
    callees = (
        "torch.Tensor.data_ptr",
        "torch.Tensor.share_memory_",
        "torch.Tensor.__dlpack__",
        "torch.utils.dlpack.to_dlpack",
        "torch.to_dlpack",
    )
    wrong = "asks a traced tensor for its memory, which it has none of."
    advice = "Keep this out of the code that is exported."
    examples = (
        Example(
            bad="""
def forward(self, x):
    same = x.data_ptr() == x.view(-1).data_ptr()
    return x + same
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        given = place.receiver or place.argument(0, "tensor")
        return given is not None and is_tensor(given)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return identity_for_address(report.place, context)
