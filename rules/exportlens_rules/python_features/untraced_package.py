"""Functions of other packages that strict tracing does not follow: progress bars, SciPy, scikit-learn, pandas."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.plain_calls import torch_einsum
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import tensors_in

# Measured on torch 2.13, 91 functions, each in a forward of its own: torch leaves networkx, pandas, scikit-learn and tqdm
# out on purpose (THIRDPARTY_SKIPLIST of torch/_dynamo/trace_rules.py); SciPy and Pillow end in compiled code.
_PACKAGES = ("PIL", "networkx", "pandas", "scipy", "sklearn", "tqdm")
# The four that were followed to their end.
_TRACED = frozenset(
    {
        "scipy.linalg.dft",
        "scipy.linalg.hadamard",
        "scipy.signal.windows.gaussian",
        "scipy.special.softmax",
    }
)
# It rewrites the equation with lists and strings in ways that are not followed, whatever it is (measured on 3.4).
_CONTRACTION = "opt_einsum.contract"
# These make NumPy arrays of what they are given.
_READ_TENSORS = ("scipy.", "sklearn.")
_OF_TENSOR = Outcome(FAILS, FAILS)


class UntracedPackage(CallOf):
    """A function of a package that strict tracing does not follow.

    ## What it does
    Finds calls of SciPy, scikit-learn, pandas, networkx, Pillow and tqdm in traced code: `linear_sum_assignment(cost)`,
    `for t in tqdm(range(steps))`, `scipy.special.gamma(n)`; and `contract(...)` of opt_einsum.

    ## Why it matters
    Strict tracing follows Python's bytecode. torch leaves some of these packages out on purpose, and others end in
    compiled code. Non-strict tracing runs them on what is no tensor, and keeps the result; SciPy and scikit-learn
    make a NumPy array of a tensor, which has no data then.

    ## References
    - https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export/programming_model.html
    """

    code = "EXL332"
    name = "untraced-package"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "what the package does for the tensors has no one counterpart in torch: write it with operators of "
        "torch, or compute it before the model is called"
    )
    callees = (*(f"{package}.*" for package in _PACKAGES), _CONTRACTION)
    wrong = "is of a package that strict tracing does not follow."
    advice = "Compute it outside of the model, or with torch; a progress bar belongs around the model."
    examples = (
        Example(
            bad="""
import networkx
from torch import nn


class M(nn.Module):
    def forward(self, x):
        ring = networkx.cycle_graph(4)
        return x * ring.number_of_edges()
""",
            good="""
import networkx
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = networkx.cycle_graph(4).number_of_edges()

    def forward(self, x):
        return x * self.edges
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        if report.place.name == _CONTRACTION:
            return torch_einsum(report.place, context)
        return Refusal(self.no_fix)

    def applies(self, place: Call) -> bool:
        return place.name not in _TRACED

    def outcome_of(self, place: Call) -> Outcome:
        given = [*place.args, *place.kwargs.values()]
        takes_tensors = any(True for value in given for _ in tensors_in(value))
        return _OF_TENSOR if takes_tensors and place.name.startswith(_READ_TENSORS) else self.outcome
