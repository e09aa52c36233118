"""NumPy scalars and arrays held by a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Definition, NumpyRead, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.arrays.held_numbers import held_number, number_made_before
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import children, walk

from exportlens_rules.reading import words


class NumpyConstant(Rule):
    """A model holds a NumPy number or array and computes with it.

    ## What it does
    Finds attributes such as `self.scale = np.sqrt(dim)` or `self.grid = np.arange(n)` that forward reads, and the places where
    such data that came another way (by an argument of `__init__`, or from the file) meets a traced tensor.
    The same expression inside of forward is fine.

    ## Why it matters
    Strict tracing takes the array for an input of its own, loses it, and exports a program that returns a
    FakeTensor. `float(np.sqrt(dim))`, or a buffer, is a constant that it knows.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#does-numpy-work-with-torch-compile
    """

    code = "EXL509"
    name = "numpy-constant"
    outcome = Outcome(WRONG, OK)
    places = (Definition, NumpyRead)
    examples = (
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = np.sqrt(4)

    def forward(self, x):
        return x / self.scale
""",
            good="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = float(np.sqrt(4))

    def forward(self, x):
        return x / self.scale
""",
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = np.arange(4)

    def forward(self, x):
        return x + torch.from_numpy(self.grid)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.arange(4))

    def forward(self, x):
        return x + self.grid
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class Attention(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        return (x / self.temperature).softmax(-1)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention(np.power(4, 0.5))

    def forward(self, x):
        return self.attention(x)
""",
            good="""
from torch import nn


class Attention(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        return (x / self.temperature).softmax(-1)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention(4**0.5)

    def forward(self, x):
        return self.attention(x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, NumpyRead):
            if place.use == "operand" and not _is_told(place):
                yield self.report(
                    place,
                    f"`{words(place.node)}` computes with NumPy data that was made before tracing: strict tracing "
                    "loses it, and the program returns a FakeTensor. Hold it as a float, an int, or a buffer.",
                )
            return
        assert isinstance(place, Definition)
        if not isinstance(place.value, ClassValue):
            return
        for target, value in _held(place.value.node):
            yield self.report(
                place,
                f"`{words(target)}` is NumPy data held by the model: strict tracing loses it, "
                "and the program "
                "returns a FakeTensor. Make it a float, an int, or a buffer.",
                node=value,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        if isinstance(report.place, NumpyRead):
            return number_made_before(report.place, context)
        return held_number(report.place, report.node, context)


def _held(cls: ast.ClassDef) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """The attributes that `__init__` makes with NumPy and that `forward` computes with."""
    methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
    if "__init__" not in methods or "forward" not in methods:
        return
    made = [
        statement
        for statement in methods["__init__"].body
        if isinstance(statement, ast.Assign) and _is_numpy(statement.value)
    ]
    if made:
        read = _computed_with(methods["forward"])
        for statement in made:
            for target in statement.targets:
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr in read
                    and ast.unparse(target.value) == "self"
                    and not _is_set_again(cls, target)
                ):
                    yield target, statement.value


def _is_set_again(cls: ast.ClassDef, target: ast.Attribute) -> bool:
    """Whether the class makes something else of the attribute, a tensor perhaps."""
    return any(
        isinstance(node, ast.Attribute)
        and node is not target
        and node.attr == target.attr
        and not isinstance(node.ctx, ast.Load)
        for node in walk(cls)
    )


def _is_told(place: NumpyRead) -> bool:
    """Whether the line that makes what is computed with has a finding of its own."""
    function = place.site.function
    if function is None or function.owner is None:
        return False
    told = {target.attr for target, _ in _held(function.owner.node)}
    return any(isinstance(node, ast.Attribute) and node.attr in told for node in walk(place.node))


def _is_numpy(node: ast.expr) -> bool:
    """Whether the expression certainly ends in a call of NumPy, so that a NumPy object is kept."""
    if isinstance(node, ast.BinOp):
        return _is_numpy(node.left) or _is_numpy(node.right)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy")


def _computed_with(forward: ast.FunctionDef) -> set[str]:
    """The attributes of self that forward computes with directly, or turns into a tensor."""
    names: set[str] = set()
    for node in _walk_of_evaluation(forward):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _INTO_TENSORS:
            operands = node.args[:1]
        for operand in operands:
            if (
                isinstance(operand, ast.Attribute)
                and isinstance(operand.value, ast.Name)
                and operand.value.id == "self"
            ):
                names.add(operand.attr)
    return names


def _walk_of_evaluation(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a model that trains comes to."""
    yield node
    skipped: list[ast.AST] = []
    if isinstance(node, (ast.If, ast.IfExp)) and ast.unparse(node.test) == "self.training":
        skipped = list(node.body) if isinstance(node, ast.If) else [node.body]
    for child in children(node):
        if child not in skipped:
            yield from _walk_of_evaluation(child)


_INTO_TENSORS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
