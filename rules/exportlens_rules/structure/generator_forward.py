"""A forward that yields or awaits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Definition, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import base_names


class GeneratorForward(Rule):
    """`forward` is a generator.

    ## What it does
    Finds Modules whose `forward` contains `yield`.

    ## Why it matters
    Such a forward returns a generator object, not tensors: both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL611"
    name = "generator-forward"
    outcome = Outcome(FAILS, FAILS)
    no_fix = "what the caller takes of it is not provable: return a list or a tuple"
    places = (Definition,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    yield x + 1
    yield x + 2
""",
            good="""
def forward(self, x):
    return x + 1, x + 2
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Definition)
        value = place.value
        if not isinstance(value, ClassValue) or "torch.nn.Module" not in set(base_names(value)):
            return
        for method in value.node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "forward":
                for node in _own_nodes(method):
                    if isinstance(node, (ast.Yield, ast.YieldFrom)):
                        yield self.report(
                            place,
                            f"`{value.name}.forward` is a generator: torch.export needs tensors. Return "
                            "them in a tuple.",
                            node=node,
                        )
                        return


def _own_nodes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions defined in it."""
    pending: list[ast.AST] = list(method.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))
