"""`torch.tensor([t1, t2])`."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.numbers.python_numbers import stack_for_tensor
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import numbers_in, tensors_in, words

_BOTH = Outcome(FAILS, FAILS)


_AS_TENSOR = ("torch.as_tensor", "torch.asarray")


class TensorFromTensors(Rule):
    """A tensor is built from a Python list of tensors, or of numbers that were read out of tensors.

    ## What it does
    Finds `torch.tensor([a, b])`, `torch.as_tensor([a, b])` and `torch.Tensor([a, b])` where a and b are
    tensors, and `torch.FloatTensor([a.item(), 1.0])`, `torch.LongTensor(t.tolist())`, `torch.as_tensor(a.item())`,
    `torch.asarray(a.item())` and `x.new_tensor(a.item())`, also of lists. `torch.tensor([a.item()])` is fine.

    ## Why it matters
    These constructors read each element as a number of Python. `torch.stack` does the same as an operator, and
    `torch.tensor` takes numbers that are symbols while tracing.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.stack.html
    """

    code = "EXL406"
    name = "tensor-from-tensors"
    outcome = Outcome(OK, FAILS)
    places = (Call,)
    callees = (
        "torch.tensor",
        *_AS_TENSOR,
        "torch.Tensor",
        "torch.Tensor.new",
        "torch.Tensor.new_tensor",
        *(f"torch.{name}" for name in TENSOR_TYPES),
    )
    examples = (
        Example(
            bad="""
def forward(self, x):
    return torch.tensor([x[0, 0], x[1, 0]])
""",
            good="""
def forward(self, x):
    return torch.stack([x[0, 0], x[1, 0]])
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.as_tensor([x[0, 0], x[1, 0]])
""",
            good="""
def forward(self, x):
    return torch.stack([x[0, 0], x[1, 0]])
""",
            outcome=_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * torch.FloatTensor([x.max().item(), 2.0, 1.0])
""",
            good="""
def forward(self, x):
    return x * torch.tensor([x.max().item(), 2.0, 1.0])
""",
            inputs="(torch.randn(2, 3),)",
            outcome=_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * torch.as_tensor(x.max().item())
""",
            good="""
def forward(self, x):
    return x * torch.tensor(x.max().item())
""",
            inputs="(torch.randn(2, 3),)",
            outcome=_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * torch.asarray([x.max().item(), 2.0, 1.0])
""",
            good="""
def forward(self, x):
    return x * torch.tensor([x.max().item(), 2.0, 1.0])
""",
            inputs="(torch.randn(2, 3),)",
            outcome=_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x + x.new_tensor([x.max().item(), 2.0, 1.0])
""",
            good="""
def forward(self, x):
    return x + torch.tensor([x.max().item(), 2.0, 1.0])
""",
            inputs="(torch.randn(2, 3),)",
        ),
        Example(
            bad="""
def forward(self, x):
    count = x[x > 0].numel()
    return x / x.new_tensor(count)
""",
            good="""
def forward(self, x):
    count = x[x > 0].numel()
    return x / torch.tensor(count, dtype=x.dtype)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x @ torch.tensor([[x.mean(), 0.0], [0.0, x.max()]])
""",
            good="""
def forward(self, x):
    zero = torch.zeros_like(x.mean())
    return x @ torch.stack([x.mean(), zero, zero, x.max()]).reshape(2, 2).detach()
""",
            inputs="(torch.randn(3, 2),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        given = place.argument(0, "data")
        if (
            isinstance(given, Sequence)
            and given.type_name != "torch.Size"
            and not given.guessed
            and any(True for _ in tensors_in(given))
            # Beside a number that is a symbol, torch.tensor makes symbols of the tensors as well.
            and not (place.name == "torch.tensor" and numbers_in(given))
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` reads tensors as numbers of Python: torch.export cannot. Use "
                "torch.stack.",
                outcome=None if place.name in ("torch.tensor", "torch.Tensor.new_tensor") else _BOTH,
            )
        elif (
            place.name != "torch.tensor"
            and numbers_in(given)
            # To the typed constructors, one number is a size.
            and (isinstance(given, Sequence) or place.name in ("torch.Tensor.new_tensor", *_AS_TENSOR))
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` demands numbers of Python for what was read out of tensor data: torch.export "
                "cannot know them. `torch.tensor` takes the same numbers as they are.",
                outcome=None if place.name == "torch.Tensor.new_tensor" else _BOTH,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return stack_for_tensor(report.place, context)
