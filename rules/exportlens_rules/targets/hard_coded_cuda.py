"""Devices written into the model."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Instance, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.devices import device_of_input
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class HardCodedCuda(Rule):
    """The model moves tensors to CUDA by itself.

    ## What it does
    Finds `.cuda()`, `.to("cuda")` and `device="cuda"` in traced code that no check of the device guards.

    ## Why it matters
    The export fails on a machine without CUDA, and the device is written into the program: it runs nowhere
    else. The device of an input is right everywhere.

    ## References
    - https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device
    """

    code = "EXL801"
    name = "hard-coded-cuda"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("torch.*",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + torch.ones(4).cuda()
""",
            good="""
def forward(self, x):
    return x + torch.ones(4, device=x.device)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + torch.ones(4, device="cuda")
""",
            good="""
def forward(self, x):
    return x + torch.ones(4, device=x.device)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        last = place.name.rpartition(".")[2]
        moves = last == "cuda" and place.receiver is not None and not isinstance(place.receiver, Instance)
        named = last in ("to", "type") and any(_is_cuda(value) for value in place.args[:1])
        typed = place.name.startswith("torch.cuda.") and place.name.endswith("Tensor")
        if moves or named or typed or _is_cuda(place.kwargs.get("device")):
            yield self.report(
                place,
                f"`{words(place.node)}` writes CUDA into the model: it exports and runs nowhere else. Use "
                "the device of "
                "an input.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return device_of_input(report.place, context)


def _is_cuda(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, str) and value.value.startswith("cuda")
