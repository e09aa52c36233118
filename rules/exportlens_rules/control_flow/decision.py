"""What all rules on decisions share: the place where Python asks tensor data for its truth."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, Truth
from exportlens.inference.values import Instance, Shape, Tensor, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.control_flow import rewrite_truth
from exportlens.rule import Report, Rule

from exportlens_rules.reading import is_data, is_scalar, subject

_ONLY_STRICT = Outcome(FAILS, OK)


class Decision(Rule):
    """Base of the rules that look at one kind of decision."""

    places: ClassVar[tuple[type[Place], ...]] = (Truth,)
    contexts: ClassVar[tuple[str, ...]]
    words: ClassVar[str]
    advice: ClassVar[str]

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Truth)
        if (
            place.context in self.contexts
            and is_data(place.value)
            and not is_declared_size(place.value)
            and self.applies(place)
            and not is_checked(place)
        ):
            outcome = _ONLY_STRICT if is_item_of_plain_attribute(place) else None
            yield self.report(place, self.message(place), outcome=outcome)

    def applies(self, place: Truth) -> bool:
        """Whether this rule, and no other of the family, speaks at `place`."""
        return True

    def message(self, place: Truth) -> str:
        """What is wrong, on which value, and what to do."""
        what = subject(place.value, place.node)
        return f"{self.words} on {what}: torch.export cannot trace it. {self.advice}"

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Truth)
        return rewrite_truth(report.place, context)


def is_declared_size(value: Value) -> bool:
    """Whether only the range of a dynamic dimension leaves the truth open, which is another rule's subject."""
    return isinstance(value, Shape) and value.bounds is not None


def leads_to_raise(place: Truth) -> bool:
    """Whether an `if` only guards a `raise`."""
    statement = place.statement
    return isinstance(statement, ast.If) and "raises" in (
        place.then_ends.partition(" ")[0],
        place.other_ends.partition(" ")[0],
    )


def is_checked(place: Truth) -> bool:
    """Whether the function bounds a number of the test by `torch._check`, which may decide it."""
    function = place.site.function
    if function is None or not is_scalar(place.value):
        return False
    tested = {node.id for node in ast.walk(place.node) if isinstance(node, ast.Name)}
    for call in ast.walk(function.node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("torch._check"):
            checked = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
            if tested & checked:
                return True
    return False


def is_item_of_plain_attribute(place: Truth) -> bool:
    """Whether the only data of the test is `self.name.item()` of a tensor that is no buffer: non-strict tracing knows its number."""
    if not is_scalar(place.value):
        return False
    items = [
        node.func.value
        for node in ast.walk(place.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    ]
    if not items or any(
        isinstance(node, ast.Name) and is_data(place.variables.get(node.id)) for node in ast.walk(place.node)
    ):
        return False
    return all(_is_plain_attribute(owner, place) for owner in items)


def _is_plain_attribute(node: ast.expr, place: Truth) -> bool:
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    owner = place.variables.get(node.value.id)
    value = owner.attributes.get(node.attr) if isinstance(owner, Instance) else None
    return isinstance(value, Tensor) and value.origin in ("attribute", "constant")
