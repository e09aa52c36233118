"""`type(x) is torch.Tensor`, `p.type(type(x))` and `type(x)(...)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.plain_calls import isinstance_of_tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_tensor, words

_CONVERSION = Outcome(FAILS, FAILS)
_CALL = Outcome(OK, FAILS)
_TENSOR = frozenset({"torch.Tensor", "Tensor", "th.Tensor"})
_PARAMETER = frozenset({"nn.Parameter", "torch.nn.Parameter", "Parameter", "nn.parameter.Parameter"})


class TypeOfTensor(Rule):
    """The exact type of a tensor is compared, or used to make a tensor.

    ## What it does
    Finds `type(x) is torch.Tensor`, `type(x) == torch.Tensor` and `type(x) in (...)` on traced tensors, `type(w) is nn.Parameter`
    on parameters, and `p.type(type(x))` and `type(x)(...)`, which make a tensor of that type.

    ## Why it matters
    In non-strict mode the tensor is a FakeTensor while tracing: the comparison is false, and the program
    takes the other branch without any error. `isinstance` answers as in eager. No tensor can be made of that type:
    both modes fail on `p.type(type(x))`, and non-strict mode on `type(x)(...)`.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_fake_tensor.html
    """

    code = "EXL318"
    name = "type-of-tensor"
    outcome = Outcome(OK, WRONG)
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
        Example(
            bad="""
def forward(self, x):
    scale = torch.ones(3).type(type(x))
    return x + scale.sum()
""",
            good="""
def forward(self, x):
    scale = torch.ones(3).type_as(x)
    return x + scale.sum()
""",
            outcome=_CONVERSION,
        ),
        Example(
            bad="""
def forward(self, x):
    return x + type(x)([1.0, 2.0]).sum()
""",
            good="""
def forward(self, x):
    return x + torch.tensor([1.0, 2.0]).sum()
""",
            outcome=_CALL,
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if type(self.layer.bias) == nn.Parameter:
            y = y * 2
        return y
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if isinstance(self.layer.bias, nn.Parameter):
            y = y * 2
        return y
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if len(place.args) != 1 or not is_tensor(place.args[0]):
            return
        around = ancestors(place)
        outer = around[0] if around else None
        if isinstance(outer, ast.Compare):
            other = [node for node in (outer.left, *outer.comparators) if node is not place.node]
            parameter = all(
                isinstance(each, Tensor) and each.origin == "parameter" for each in options(place.args[0])
            )
            asked = _PARAMETER if parameter else _TENSOR
            if any(_names(node, asked) for node in other):
                denied = isinstance(outer.ops[0], (ast.IsNot, ast.NotEq, ast.NotIn))
                yield self.report(
                    place,
                    f"`{words(outer)}` is {'true' if denied else 'false'} while non-strict tracing runs on fake tensors: the program takes "
                    "the other branch. Use isinstance.",
                    node=outer,
                )
        elif isinstance(outer, ast.Call) and (outer.func is place.node or _converts(outer, place.node)):
            yield self.report(
                place,
                f"`{words(outer)}` makes a tensor of the type of a traced one, which is another type while tracing: "
                "export fails. Name the dtype: `.to(t.dtype)`, `.type_as(t)` or torch.tensor.",
                node=outer,
                outcome=_CALL if outer.func is place.node else _CONVERSION,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        return isinstance_of_tensor(report.place, context)


def _converts(call: ast.Call, kind: ast.AST) -> bool:
    """Whether `call` is `....type(kind)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "type" and call.args[:1] == [kind]


def _names(node: ast.expr, classes: frozenset[str]) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_names(item, classes) for item in node.elts)
    return ast.unparse(node) in classes
