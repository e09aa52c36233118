"""`torch.equal`, `torch.allclose`, `torch.is_nonzero`: answers as Python bools."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.decisions.equality import elementwise_answer
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tested, tensors_in, words


class TensorEquality(Rule):
    """`torch.equal`, `torch.allclose` and `torch.is_nonzero` answer with a bool of Python.

    ## What it does
    Finds calls of these functions and methods on traced tensors, in an `assert` too, outside of a condition that is
    reported already.

    ## Why it matters
    They look at the data of their arguments at once, which does not exist while tracing: export fails at the
    call, whatever is done with the answer.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.equal.html
    """

    code = "EXL115"
    name = "tensor-equality-as-bool"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = (
        "torch.equal",
        "torch.allclose",
        "torch.is_nonzero",
        "torch.Tensor.equal",
        "torch.Tensor.allclose",
        "torch.Tensor.is_nonzero",
    )
    examples = (
        Example(
            bad="""
def forward(self, x):
    same = torch.equal(x, x.abs())
    return x, same
""",
            good="""
def forward(self, x):
    same = torch.eq(x, x.abs()).all()
    return x, same
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + x.allclose(x.abs())
""",
            good="""
def forward(self, x):
    return x + torch.isclose(x, x.abs()).all()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    assert torch.allclose(x, x.detach())
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async(torch.isclose(x, x.detach()).all())
    return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        given = [*place.args, *place.kwargs.values(), *([place.receiver] if place.receiver else [])]
        if any(True for value in given for _ in tensors_in(value)) and not is_tested(place, asserted=False):
            short = place.name.rpartition(".")[2]
            instead = {"equal": "torch.eq(a, b).all()", "allclose": "torch.isclose(a, b).all()"}.get(
                short, "t != 0"
            )
            yield self.report(
                place,
                f"`{words(place.node)}` answers with a bool that only tensor data knows: torch.export cannot "
                f"trace it. Use {instead}, a tensor.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return elementwise_answer(report.place, context)
