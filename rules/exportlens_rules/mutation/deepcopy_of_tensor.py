"""`copy.deepcopy` and `copy.copy` of tensors and Modules."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Instance, Mapping_, Sequence, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.calls.deep_copies import clone_for_copy
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import base_names, tensors_in, words


class DeepcopyOfTensor(Rule):
    """The copy module copies a traced tensor.

    ## What it does
    Finds `copy.deepcopy` and `copy.copy` of traced tensors, of lists and dicts that hold some, and of
    Modules.

    ## Why it matters
    Copying goes to the tensor's memory, which a traced tensor does not have. `t.clone()` is the operator
    for it.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.clone.html
    """

    code = "EXL204"
    name = "deepcopy-of-tensor"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("copy.deepcopy", "copy.copy")
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    y = copy.deepcopy(x)
    return y + 1
""",
            good="""
def forward(self, x: torch.Tensor):
    y = x.clone()
    return y + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        given = place.argument(0, "x")
        deep = place.name.endswith("deepcopy")
        if given is None or (isinstance(given, Sequence) and given.guessed):
            # What is only iterated over may as well hold numbers.
            return
        if (deep and _holds_tensor(given)) or next(tensors_in(given), None) is given:
            yield self.report(
                place,
                f"`{words(place.node)}` copies the memory of a traced tensor, which has none. Use "
                "`.clone()`.",
            )
        elif deep and _is_module(given):
            yield self.report(
                place, f"`{words(place.node)}` copies a Module while tracing: do it in `__init__` instead."
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return clone_for_copy(report.place, context)


def _holds_tensor(value: Value) -> bool:
    """Whether `value` certainly is a traced tensor, or a list, tuple or dict that holds one."""
    if isinstance(value, Mapping_):
        return any(map(_holds_tensor, value.items.values()))
    if isinstance(value, Sequence) and value.items is not None:
        return any(map(_holds_tensor, value.items))
    return any(True for _ in tensors_in(value))


def _is_module(value: Value) -> bool:
    return isinstance(value, Instance) and any(name.startswith("torch.nn.") for name in base_names(value.cls))
