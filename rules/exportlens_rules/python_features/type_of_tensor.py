"""`type(x) is torch.Tensor`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_tensor, words


class TypeOfTensor(Rule):
    """The exact type of a tensor is compared.

    ## What it does
    Finds `type(x) is torch.Tensor`, `type(x) == torch.Tensor` and `type(x) in (...)` on traced tensors.

    ## Why it matters
    In non-strict mode the tensor is a FakeTensor while tracing: the comparison is false, and the program
    takes the other branch without any error. `isinstance` answers as in eager.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_fake_tensor.html
    """

    code = "EXL318"
    name = "type-of-tensor"
    outcome = Outcome(OK, WRONG)
    no_fix = "which subclasses are meant is not provable: ask isinstance"
    places = (Call,)
    callees = ("builtins.type",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    if type(x) is torch.Tensor:
        return x + 1
    return x - 1
""",
            good="""
def forward(self, x):
    if isinstance(x, torch.Tensor):
        return x + 1
    return x - 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if len(place.args) != 1 or not is_tensor(place.args[0]):
            return
        around = ancestors(place)
        comparison = around[0] if around else None
        if not isinstance(comparison, ast.Compare):
            return
        other = [node for node in (comparison.left, *comparison.comparators) if node is not place.node]
        if any(_names_tensor(node) for node in other):
            yield self.report(
                place,
                f"`{words(comparison)}` is false while non-strict tracing runs on fake tensors: the "
                "program takes "
                "the other branch. Use isinstance.",
                node=comparison,
            )


def _names_tensor(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_names_tensor(item) for item in node.elts)
    return ast.unparse(node) in ("torch.Tensor", "Tensor", "th.Tensor")
