"""torch.distributions in traced code."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.distributions import without_validation
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import tensors_in, words

_NAMES = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
]
_ONLY_STRICT = Outcome(FAILS, OK)


def _home(name: str) -> str:
    """The class under the module that defines it: OneHotCategorical is in one_hot_categorical."""
    snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")
    return f"torch.distributions.{snake}.{name}"


class Distribution(Rule):
    """A probability distribution is made while tracing.

    ## What it does
    Finds constructors of `torch.distributions` in traced code, unless they are given `validate_args=False`.

    ## Why it matters
    By default a distribution checks its parameters with an `if` on their values, which both modes refuse.
    With `validate_args=False` the common ones export.

    ## References
    - https://docs.pytorch.org/docs/stable/distributions.html
    """

    code = "EXL609"
    name = "distribution-validates"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = tuple(f"torch.distributions.{name}" for name in _NAMES) + tuple(_home(name) for name in _NAMES)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return torch.distributions.Normal(x, x.exp()).entropy()
""",
            good="""
def forward(self, x):
    return torch.distributions.Normal(x, x.exp(), validate_args=False).entropy()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + torch.distributions.Normal(0.0, 1.0).sample()
""",
            good="""
def forward(self, x):
    return x + torch.randn(())
""",
            outcome=_ONLY_STRICT,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        validate = place.kwargs.get("validate_args")
        if isinstance(validate, Const) and validate.value is False:
            return
        values = [*place.args, *place.kwargs.values()]
        known = all(isinstance(value, Const) for value in values)
        traced = any(True for value in values for _ in tensors_in(value))
        if not (traced or known) or place.name.endswith(".Independent"):
            return
        yield self.report(
            place,
            f"`{words(place.node)}` checks its parameters with an `if` on their values: torch.export "
            "cannot trace it. Pass "
            "validate_args=False.",
            outcome=None if traced else _ONLY_STRICT,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        if report.outcome == _ONLY_STRICT:
            return Refusal(
                "strict mode takes no distribution of constants: make it in `__init__`, or draw with torch's own functions"
            )
        return without_validation(report.place, context)
