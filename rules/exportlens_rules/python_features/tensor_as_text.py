"""Tensors in f-strings, `str.format` and `%`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.outcome import BAKED, FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import log_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_data, is_scalar, is_tensor, words

_SPEC = Outcome(OK, FAILS)
_PERCENT = Outcome(FAILS, FAILS)
_RETURNED = Outcome(FAILS, BAKED)


class TensorAsText(Rule):
    """The value of a tensor is written into a string.

    ## What it does
    Finds f-strings, `str.format` and `%` on tensors and on numbers read out of them. Printing and logging a
    tensor as it is are fine.

    ## Why it matters
    While tracing there is no value: the text becomes "FakeTensor(..., size=())" and is frozen into the
    program. A format such as `:.3f` or `%.3f` needs the number at once and stops non-strict tracing.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL303"
    name = "tensor-as-text"
    outcome = _RETURNED
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + 1, f"{x.sum()}"
""",
            good="""
def forward(self, x):
    return x + 1, x.sum()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    text = f"{x.sum().item():.3f}"
    print(text)
    return x + 1
""",
            good="""
def forward(self, x):
    print(x.sum())
    return x + 1
""",
            outcome=_SPEC,
        ),
        Example(
            bad="""
def forward(self, x):
    text = "%.3f" % x.sum()
    return x + len(text) * 0
""",
            good="""
def forward(self, x):
    return x + 0
""",
            outcome=_PERCENT,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to != "format" or not is_data(place.value):
            return
        outcome = _outcome(place)
        if outcome is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` writes tensor data into a string, which tracing does not know. "
                "Return the "
                "tensor and format it outside of the model.",
                outcome=outcome,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        return log_not_while_compiling(report.place, context)


def _outcome(place: Conversion) -> Outcome | None:
    """What happens to this text; None where it is harmless, as for a plain f-string that is only printed."""
    node = place.node
    around = ancestors(place)
    if isinstance(node, ast.BinOp):
        spec = node.left.value if isinstance(node.left, ast.Constant) else ""
        return (
            _PERCENT
            if isinstance(spec, str) and any(f"{kind}" in _kinds(spec) for kind in "dfgeix")
            else None
        )
    part = next((outer for outer in around[:2] if isinstance(outer, ast.FormattedValue)), None)
    if part is not None and part.format_spec is not None:
        return _SPEC
    if part is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = node.func.value
        plain = isinstance(text, ast.Constant) and isinstance(text.value, str)
        if plain and ":" in str(getattr(text, "value", "")) and "{" in str(getattr(text, "value", "")):
            return _SPEC if is_scalar(place.value) or is_tensor(place.value) else None
        return None
    returned = any(isinstance(outer, ast.Return) for outer in around)
    inside_call = any(isinstance(outer, ast.Call) for outer in around)
    return _RETURNED if returned and not inside_call else None


def _kinds(spec: str) -> set[str]:
    """The conversion letters of a %-format."""
    kinds: set[str] = set()
    for piece in spec.replace("%%", "").split("%")[1:]:
        letter = next((character for character in piece if character.isalpha()), "")
        kinds.add(letter.lower())
    return kinds
