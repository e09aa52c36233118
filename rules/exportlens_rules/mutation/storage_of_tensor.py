"""`x.storage()` and `x.untyped_storage()`."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor


class StorageOfTensor(CallOf):
    """A traced tensor is asked for its storage.

    ## What it does
    Finds `x.storage()`, `x.untyped_storage()` and `x.set_(...)` on traced tensors.

    ## Why it matters
    Storages are not part of a program: strict tracing fails.

    ## References
    - https://docs.pytorch.org/docs/stable/storage.html
    """

    code = "EXL213"
    name = "storage-of-tensor"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "what is done with the storage is outside of the program: use `clone()` for a copy, and `view` or "
        "`as_strided` for another shape"
    )
    callees = ("torch.Tensor.storage", "torch.Tensor.untyped_storage", "torch.Tensor.is_shared")
    wrong = "looks at the storage of a traced tensor: strict tracing fails."
    advice = "Compare shapes, or keep this out of the code that is exported."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x * x.untyped_storage().nbytes()
""",
            good="""
def forward(self, x):
    return x * (x.numel() * x.element_size())
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return place.receiver is not None and is_tensor(place.receiver)
