"""Derivatives by torch.func in forward."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import words

_NESTED = Outcome(FAILS, FAILS)
_HOMES = ("torch.func", "functorch", "torch._functorch.eager_transforms", "torch._functorch.apis")


class FunctionalDerivatives(CallOf):
    """`torch.func.grad`, `jacrev` and the like inside of forward.

    ## What it does
    Finds derivatives by torch.func in traced code: `grad`, `grad_and_value`, `vjp`, `jacrev`, `jacfwd`, `hessian`.
    `torch.func.functional_call`, `vmap` and `jvp` are fine.

    ## Why it matters
    The export reports success, and what the program returns is no real tensor: the derivative was computed on the
    tensors without data that tracing uses. `jacfwd` and `hessian` fail. `torch.autograd.grad` exports in non-strict mode.

    ## References
    - https://docs.pytorch.org/docs/stable/func.html
    """

    code = "EXL331"
    name = "functional-derivatives"
    outcome = Outcome(WRONG, WRONG)
    no_fix = (
        "whether the derivative has a closed form is for you to say: write it out as operators, or compute it "
        "where the model is called"
    )
    callees = tuple(
        f"{home}.{name}"
        for home in _HOMES
        for name in ("grad", "grad_and_value", "vjp", "jacrev", "jacfwd", "hessian")
    )
    wrong = (
        "computes a derivative that the exported program does not have: what it returns is no real tensor."
    )
    advice = "Use torch.autograd.grad and export with strict=False, or write the derivative out."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return torch.func.grad(lambda t: (t**2).sum())(x)
""",
            good="""
def forward(self, x):
    return 2 * x
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.func.hessian(lambda t: (t**2).sum())(x)
""",
            good="""
def forward(self, x):
    return 2 * torch.eye(x.numel()).reshape(*x.shape, *x.shape)
""",
            outcome=_NESTED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if place.name.rpartition(".")[2] in ("jacfwd", "hessian"):
            yield self.report(
                place,
                f"`{words(place.node)}` computes a derivative while tracing, which fails. {self.advice}",
                outcome=_NESTED,
            )
        else:
            yield from super().check(place)
