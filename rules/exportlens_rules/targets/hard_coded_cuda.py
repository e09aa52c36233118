"""Devices written into the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Instance, Value
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.calls.devices import device_of_input
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_BY_AN_OPTION = Outcome(BAKED, BAKED)


class HardCodedCuda(Rule):
    """The model moves tensors to CUDA by itself.

    ## What it does
    Finds `.cuda()`, `.to("cuda")` and `device="cuda"` in traced code that no check of the device guards. Where
    an option of the model decides (`if self.use_gpu:`, `device=self.device`), whoever exports for another device
    sets it, and the finding is an information.

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
                outcome=_BY_AN_OPTION if _is_optional(place) else None,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return device_of_input(report.place, context)


def _is_optional(place: Call) -> bool:
    """Whether the model's configuration decides on the device: the call stands in a branch, or takes the device from `self`."""
    call, function = place.node, place.site.function
    if isinstance(call, ast.Call):
        given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
        if any(isinstance(device, ast.Attribute) and _root(device) == "self" for device in given):
            return True
    if function is None:
        return False
    for node in ast.walk(function.node):
        arms: list[ast.AST] = [*node.body, *node.orelse] if isinstance(node, ast.If) else []
        if isinstance(node, ast.IfExp):
            arms = [node.body, node.orelse]
        if any(inner is call for arm in arms for inner in ast.walk(arm)):
            return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_cuda(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, str) and value.value.startswith("cuda")
