"""torch.distributions in traced code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Instance, Named, Unknown, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.distributions import (
    makers_without_validation,
    validation_switched_off,
    without_validation,
)
from exportlens.rewriting.code.context import RewriteContext
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
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
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
# Those that are made of other distributions, to which they do not hand `validate_args` on.
_MADE_OF_OTHERS = frozenset(
    {
        "FisherSnedecor",
        "Multinomial",
        "OneHotCategorical",
        "OneHotCategoricalStraightThrough",
        "RelaxedBernoulli",
        "RelaxedOneHotCategorical",
        "StudentT",
    }
)
# Those that check nothing but the value whose density is asked for.
_AROUND_OTHERS = ["MixtureSameFamily", "TransformedDistribution"]
_ONLY_STRICT = Outcome(FAILS, OK)
_SWITCHED_OFF = "set_default_validate_args(False)"
_DENSITY = ".log_prob"


def _home(name: str) -> str:
    """The class under the module that defines it: OneHotCategorical is in one_hot_categorical."""
    home = name.removesuffix("StraightThrough")
    snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in home).lstrip("_")
    return f"torch.distributions.{snake}.{name}"


def _spellings(names: list[str]) -> tuple[str, ...]:
    return tuple(f"torch.distributions.{name}" for name in names) + tuple(_home(name) for name in names)


_CLASSES = _spellings(_NAMES)


class Distribution(Rule):
    """A probability distribution is made while tracing.

    ## What it does
    Finds constructors of `torch.distributions` in traced code, unless they are given `validate_args=False` or the
    file switches the checks off for all of them; and `log_prob` of distributions that were made elsewhere.

    ## Why it matters
    By default a distribution checks its parameters with an `if` on their values, which both modes refuse.
    With `validate_args=False` the common ones export. Some, such as `OneHotCategorical`, are made of others that
    check all the same: `torch.distributions.Distribution.set_default_validate_args(False)` is for all.

    ## References
    - https://docs.pytorch.org/docs/stable/distributions.html
    """

    code = "EXL609"
    name = "distribution-validates"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = _CLASSES + tuple(
        name + _DENSITY for name in _spellings([*_NAMES, *_AROUND_OTHERS, "Independent"])
    )
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
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior = torch.distributions.Normal(torch.zeros(3), torch.ones(3))

    def forward(self, x):
        return self.prior.log_prob(x)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior = torch.distributions.Normal(torch.zeros(3), torch.ones(3), validate_args=False)

    def forward(self, x):
        return self.prior.log_prob(x)
""",
            inputs="(torch.randn(2, 3),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if _SWITCHED_OFF in place.site.scope.document.text:
            return
        if place.name.endswith(_DENSITY):
            yield from self._density(place)
            return
        made_of_others = place.name.rpartition(".")[2] in _MADE_OF_OTHERS
        if not made_of_others and not _is_on(place.kwargs):
            return
        # Strict mode takes no parameters at all, whatever they are; non-strict mode takes numbers.
        values = [*place.args, *place.kwargs.values()]
        traced = any(_may_be_traced(value) for value in values)
        advice = (
            f"Switch the checks off by torch.distributions.Distribution.{_SWITCHED_OFF}: the class does not hand "
            "validate_args on to what it is made of."
            if made_of_others
            else "Pass validate_args=False."
        )
        yield self.report(
            place,
            f"`{words(place.node)}` checks its parameters with an `if` on their values: torch.export "
            f"cannot trace it. {advice}",
            outcome=None if traced else _ONLY_STRICT,
        )

    def _density(self, place: Call) -> Iterator[Report]:
        """A distribution that another place made, or that has no parameters to check, checks the value it is asked for."""
        owner = place.receiver
        node = place.node
        elsewhere = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Attribute)
        )
        if isinstance(owner, Instance) and _checks_value(owner, elsewhere):
            yield self.report(
                place,
                f"`{words(node)}` checks the value with an `if` on it: torch.export cannot trace it. Make the "
                "distribution with validate_args=False.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        place = report.place
        assert isinstance(place, Call)
        if place.name.endswith(_DENSITY):
            cls = place.name.removesuffix(_DENSITY)
            return makers_without_validation(cls, frozenset(_spellings([*_NAMES, *_AROUND_OTHERS])), context)
        last = place.name.rpartition(".")[2]
        if last in _MADE_OF_OTHERS:
            return validation_switched_off(context)
        if last == "ContinuousBernoulli" and report.outcome == _ONLY_STRICT:
            return Refusal("strict mode takes no such distribution of constants: make it in `__init__`")
        return without_validation(place, context)


def _may_be_traced(parameter: Value) -> bool:
    """Whether a parameter of a distribution is a tensor: what a model is given as one is."""
    return any(True for _ in tensors_in(parameter)) or (
        isinstance(parameter, Unknown) and bool(parameter.argument)
    )


def _is_on(arguments: Mapping[str, Value]) -> bool:
    """Whether the checks are certainly not switched off by an argument."""
    validate = arguments.get("validate_args", Const(None))
    return "**" not in arguments and isinstance(validate, Const) and validate.value is not False


def _checks_value(owner: Instance, elsewhere: bool) -> bool:
    """Whether `log_prob` of `owner` looks at the value; `elsewhere` where its constructor was not traced."""
    assert isinstance(owner.cls, Named)
    last = owner.cls.name.rpartition(".")[2]
    if last == "Independent":
        base = owner.arguments.get("0", owner.arguments.get("base_distribution"))
        return isinstance(base, Instance) and isinstance(base.cls, Named) and _checks_value(base, elsewhere)
    return (elsewhere or last in _AROUND_OTHERS) and _is_on(owner.arguments)
