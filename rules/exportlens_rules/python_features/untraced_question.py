"""Questions to torch that strict tracing cannot answer."""

from __future__ import annotations

import importlib.resources
import json

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.contexts import entered_in_eager_only
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf

# Rules of their own tell what to do about these.
_ELSEWHERE = frozenset(
    {"torch.random.fork_rng", "torch.initial_seed", "torch.random.initial_seed", "torch.Tensor.storage"}
)


def _names() -> list[str]:
    """What was measured (scripts/generate_untraced_torch.py)."""
    text = importlib.resources.files(__package__).joinpath("untraced_torch.json").read_text(encoding="utf-8")
    names: list[str] = json.loads(text)["names"]
    return [name for name in names if name not in _ELSEWHERE]


class UntracedQuestion(CallOf):
    """Traced code asks torch something that is answered by no tensor, and that strict tracing does not know.

    ## What it does
    Finds `torch.is_inference_mode_enabled()`, `torch.get_num_threads()`, `torch.cuda.memory_allocated()`,
    `torch.backends.mps.is_available()`, `t.is_signed()`, `t.storage_offset()`, `t.is_conj()` and about 90 more in traced code.

    ## Why it matters
    Strict tracing knows the answers of some such functions only, and fails at the others ("torch.* op returned
    non-Tensor"). Non-strict tracing answers with what holds while tracing, which the program keeps. `torch.is_grad_enabled()` is known in both modes.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.is_inference_mode_enabled.html
    """

    code = "EXL329"
    name = "untraced-question"
    outcome = Outcome(FAILS, OK)
    callees = tuple(_names())
    no_fix = (
        "what the program shall do for good is for you to say: keep the side that holds where it runs, and drop the "
        "question"
    )
    wrong = "has no answer in strict tracing, which fails here."
    advice = "Ask outside of the model, or decide by configuration."
    examples = (
        Example(
            bad="""
def forward(self, x):
    if torch.is_inference_mode_enabled():
        return x
    return x + 1
""",
            good="""
def forward(self, x):
    if torch.is_grad_enabled():
        return x + 1
    return x + 1
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + 1 if not x.is_inference() else x
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.name == "torch.backends.cuda.sdp_kernel":
            return entered_in_eager_only(report.place, context)
        return Refusal(self.no_fix)
