"""Tensors where torch's functions take numbers, and numbers and flags from data that they ask what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Shape, Static, Tensor, TensorScalar, Value, from_data
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.number_arguments import tensors_for_numbers
from exportlens.rewriting.sizes.numbers_read_out import read_out_as_numbers
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words
from exportlens_rules.shapes.number_arguments import (
    ASKED,
    ASKED_OF_NUMBERS,
    FAILS_READ_OUT,
    READ_OUT,
    given_numbers,
)
from exportlens_rules.shapes.options_from_data import option_from_data

# What takes a number there, by the name of the argument and its position in the function: measured on torch 2.13.
_NUMBERS = {
    "torch.full_like": ("fill_value", 1),
    "torch.Tensor.new_full": ("fill_value", 2),
}
_ALSO_NON_STRICT = {
    "torch.nn.functional.pad": ("value", 3),
    "torch.nn.functional.smooth_l1_loss": ("beta", 5),
    "torch.nn.functional.huber_loss": ("delta", 3),
    "torch.nn.functional.margin_ranking_loss": ("margin", 3),
    "torch.nn.functional.triplet_margin_loss": ("margin", 3),
}
_FILLS = ("fill_value", 1)
_WHOLE = ("bool", "int", "uint8", "int8", "int16", "int32", "int64")
# Both bounds are numbers or both are tensors: of one of each, torch makes numbers.
_BOUNDED = tuple(
    f"{home}.{name}{in_place}"
    for home in ("torch", "torch.Tensor")
    for name in ("clamp", "clip")
    for in_place in ("", "_")
)


class TensorForNumber(Rule):
    """A tensor of one element is given where torch takes a number, or a number from data where torch asks which it is.

    ## What it does
    Finds `x.clamp(0, limit)` where one bound is a tensor and the other a number, and tensors given as the number that
    `torch.full_like`, `F.leaky_relu`, `x.narrow(0, start, n)`, `torch.roll`, `F.pad` and others take. It also finds
    numbers that were read out of tensors where torch looks at the number: the scale of `torch.fake_quantize_per_tensor_affine`,
    the `q` of `torch.quantile`, the `eps` of `F.layer_norm`, how many pieces `x.chunk(n)` makes; and options that data turn on or off, as in
    `torch.sort(x, descending=flag)` and `torch.autocast("cpu", enabled=flag)`; and `torch.full(size, t)` without a dtype, where `t` is
    a tensor of integers or bools.

    ## Why it matters
    torch reads the tensor out, as `.item()` does, in the middle of a call. Strict tracing fails: "Pending unbacked symbols
    not in returned outputs". Where the function asks whether the number is positive, non-strict tracing fails as well.
    Two bounds that are both tensors are fine, and so is a bound alone. A number from data is one that tracing does not know, so
    that both modes fail where torch asks whether it is zero or in a range, or whether an option is on: "Could not guard on
    data-dependent expression".
    `torch.fake_quantize_per_tensor_affine` and `torch.quantile` take tensors as well. `torch.full` takes the dtype of the number that
    it fills with, but strict tracing makes floats where that is a tensor.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.clamp.html
    """

    code = "EXL425"
    name = "tensor-for-number"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    callees = ("torch.*",)
    examples = (
        Example(
            bad="""
def forward(self, x, limit):
    return x.clamp(0, limit.max())
""",
            good="""
def forward(self, x, limit):
    return x.clamp(min=0).clamp(max=limit.max())
""",
            inputs="(torch.randn(3, 4), torch.tensor([0.5, 1.0]))",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.full_like(x, x.max())
""",
            good="""
def forward(self, x):
    return torch.ones_like(x) * x.max()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.nn.functional.pad(x, (1, 1), value=x.min())
""",
            good="""
def forward(self, x):
    return torch.nn.functional.pad(x - x.min(), (1, 1)) + x.min()
""",
            outcome=Outcome(FAILS, FAILS),
        ),
        Example(
            bad="""
def forward(self, x):
    scale = x.abs().max().item() / 127
    return torch.fake_quantize_per_tensor_affine(x, scale, 0, -128, 127)
""",
            good="""
def forward(self, x):
    scale = x.abs().max() / 127
    zero = torch.zeros((), dtype=torch.int, device=x.device)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, -128, 127)
""",
            outcome=Outcome(FAILS, FAILS),
        ),
        Example(
            bad="""
def forward(self, x):
    falling = (x.mean() > 0).item()
    return torch.sort(x, descending=falling).values
""",
            good="""
def forward(self, x):
    up, down = torch.sort(x).values, torch.sort(x, descending=True).values
    return torch.where(x.mean() > 0, down, up)
""",
            outcome=Outcome(FAILS, FAILS),
        ),
        Example(
            bad="""
def forward(self, x, begins):
    return torch.stack([x.narrow(0, each, 2).sum(0) for each in begins])
""",
            good="""
def forward(self, x, begins):
    return torch.stack([x.narrow(0, each.item(), 2).sum(0) for each in begins])
""",
            inputs="(torch.randn(3, 4), torch.tensor([0, 1]))",
            outcome=Outcome(FAILS, FAILS),
        ),
        Example(
            bad="""
def forward(self, x, shift):
    return torch.roll(x, shift.sum(), 0)
""",
            good="""
def forward(self, x, shift):
    return torch.roll(x, shift.sum().item(), 0)
""",
            inputs="(torch.randn(3, 4), torch.tensor([0, 1]))",
        ),
        Example(
            bad="""
def forward(self, x, sizes):
    parts = x.split(sizes.max().item())
    return torch.stack([part.sum() for part in parts])
""",
            good="""
def forward(self, x, sizes):
    place = torch.arange(x.shape[0], device=x.device) // sizes.max()
    return x.new_zeros(x.shape[0]).index_add(0, place, x.sum(1))
""",
            inputs="(torch.randn(3, 4), torch.tensor([1, 2]))",
            outcome=Outcome(FAILS, FAILS),
        ),
        Example(
            bad="""
def forward(self, x):
    first = x.argmax(1).min()
    return torch.full((4,), first)
""",
            good="""
def forward(self, x):
    first = x.argmax(1).min()
    return torch.full((4,), first.item())
""",
            outcome=Outcome(WRONG, OK),
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if _is_asked(place):
            yield self.report(
                place,
                f"`{words(place.node)}` asks which number it is given, and the number was read out of tensor data: tracing "
                "fails. Compute it with tensors only.",
                outcome=Outcome(FAILS, FAILS),
            )
            return
        option = option_from_data(place)
        if option is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` is told by tensor data whether `{option}` holds: tracing has to know and fails. Compute both, "
                "and choose with torch.where.",
                outcome=Outcome(FAILS, FAILS),
            )
            return
        if any(_is_read_out(each) for each in given_numbers(place, READ_OUT)):
            yield self.report(
                place,
                f"`{words(place.node)}` takes a number there and is given a tensor, which torch reads out while tracing: "
                "tracing fails. Give it `.item()` of the tensor.",
                outcome=Outcome(FAILS, FAILS if place.name in FAILS_READ_OUT else OK),
            )
            return
        if _fills_as_float(place):
            yield self.report(
                place,
                f"`{words(place.node)}` is filled with a tensor of integers or bools, and told no dtype: strict tracing makes floats of "
                "it. Give it `.item()` of the tensor.",
                outcome=Outcome(WRONG, OK),
            )
            return
        given, outcome = _as_number(place), self.outcome
        if given is None:
            return
        if place.name in _ALSO_NON_STRICT and given.origin != "attribute":
            outcome = Outcome(FAILS, FAILS)
        yield self.report(
            place,
            f"`{words(place.node)}` takes a number there and is given a tensor, which torch reads out while tracing: "
            "tracing fails. Compute it with tensors only.",
            outcome=outcome,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if option_from_data(report.place) is not None:
            return Refusal(
                "how the results of both are to be joined is for you to say: a `torch.where`, or a `torch.cond`"
            )
        if any(_is_read_out(each) for each in given_numbers(report.place, READ_OUT)):
            numbers = READ_OUT[report.place.name]
            if report.place.name in FAILS_READ_OUT:
                numbers = (*numbers, ("length", 3))
            return read_out_as_numbers(report.place, context, numbers)
        if _fills_as_float(report.place):
            return read_out_as_numbers(report.place, context, (_FILLS,))
        return tensors_for_numbers(report.place, context)


def _as_number(place: Call) -> Tensor | None:
    """The tensor that is read out as a number; None where there is none."""
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    if place.name in _BOUNDED:
        low, high = (place.argument(at - shift, name) for at, name in ((1, "min"), (2, "max")))
        if _is_number(low) or _is_number(high):
            return next((bound for bound in (low, high) if _is_read_out(bound)), None)
        return None
    place_of_number = _NUMBERS.get(place.name) or _ALSO_NON_STRICT.get(place.name)
    if place_of_number is None:
        return None
    name, at = place_of_number
    given = place.argument(at - shift, name)
    return given if _is_read_out(given) else None


def _fills_as_float(place: Call) -> bool:
    """Whether torch.full is given a tensor of whole numbers or bools, and no dtype."""
    given = place.argument(_FILLS[1], _FILLS[0]) if place.name == "torch.full" else None
    whole = isinstance(given, Tensor) and given.dtype in _WHOLE
    return whole and not {"dtype", "out"} & set(place.kwargs)


def _is_asked(place: Call) -> bool:
    """Whether torch asks which number one is that was read out of data, or that it reads out of a tensor itself."""
    return any(isinstance(each, TensorScalar) for each in given_numbers(place, ASKED_OF_NUMBERS)) or any(
        isinstance(each, TensorScalar) or _is_read_out(each) for each in given_numbers(place, ASKED)
    )


def _is_read_out(value: Value | None) -> TypeGuard[Tensor]:
    """Whether `value` is a tensor whose numbers tracing does not know."""
    return isinstance(value, Tensor) and from_data(value) and value.origin != "literal"


def _is_number(value: Value | None) -> bool:
    """Whether `value` certainly is a number of Python's."""
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, (Shape, TensorScalar)) or (
        isinstance(value, Static) and value.type in ("int", "float")
    )
