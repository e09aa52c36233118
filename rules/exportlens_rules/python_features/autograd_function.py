"""Details of `torch.autograd.Function` that strict tracing does not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.attributes import AUTOGRAD_FUNCTIONS
from exportlens.inference.classes import is_module_class
from exportlens.inference.places import AttributeRead, AttributeWrite, Call, Place
from exportlens.inference.values import (
    Bound,
    ClassValue,
    Const,
    Instance,
    Static,
    Tensor,
    Unknown,
    Value,
    options,
)
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.arms.applied_objects import applied_by_class
from exportlens.rewriting.calls.data_attribute import saved_tensors, unwrap_variable
from exportlens.rewriting.calls.kept_functions import held_by_partial, is_apply
from exportlens.rewriting.checks.guards import without_gradients_while_exporting
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import base_names, keeps_gradients, words

_HEAD = """
import torch
from torch import nn


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
"""
_TAIL = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Double.apply(self.layer(x))
"""
_GOOD = (
    _HEAD
    + """
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2
"""
    + _TAIL
)


class AutogradFunction(Rule):
    """A custom autograd Function uses what strict tracing does not know.

    ## What it does
    Finds, in `torch.autograd.Function` classes that traced code applies: `ctx.saved_variables`,
    `ctx.mark_dirty`, but for arguments that need gradients and are returned, gradients computed inside of
    `backward`, attributes of its own class that it reads by the class's name, a `backward` that is missing or only raises, class methods
    for `forward` and `backward`, and `super().forward(...)`; and `self.double.apply(x)`, of an object of such a class, and
    `self.double = Double.apply` in a Module's `forward`.

    ## Why it matters
    Strict tracing also traces `backward` where an argument needs gradients, as the output of any layer with
    parameters does. `saved_variables` is gone from current torch and only noticed then.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/extending.html
    """

    code = "EXL321"
    name = "autograd-function-details"
    outcome = Outcome(FAILS, OK)
    places = (Call, AttributeRead, AttributeWrite)
    examples = (
        Example(
            bad=_HEAD
            + """
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_variables
        return grad * 2
"""
            + _TAIL,
            good=_GOOD,
        ),
        Example(bad=_HEAD + _TAIL, good=_GOOD),
        Example(
            bad=_HEAD.replace(
                "ctx.save_for_backward(x)\n        return x * 2",
                "ctx.mark_dirty(x)\n        return x.mul_(2)",
            )
            + """
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
"""
            + _TAIL,
            good=_GOOD,
        ),
        Example(
            bad=_HEAD.replace("    @staticmethod", "    scale = 2\n\n    @staticmethod", 1)
            + """
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * Double.scale
"""
            + _TAIL,
            good=_GOOD,
        ),
        Example(
            bad="""
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x):
        return x * 2

    @classmethod
    def backward(cls, ctx, grad):
        return grad * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Scale.apply(self.layer(x))
""",
            good="""
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Scale.apply(self.layer(x))
""",
        ),
        Example(
            bad=_HEAD
            + """
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (x * 2).sum().backward()
        return x.grad * grad
"""
            + _TAIL,
            good=_GOOD,
        ),
        Example(
            bad=_GOOD.replace("self.layer = nn.Linear(4, 4)", "self.double = Double()").replace(
                "Double.apply(self.layer(x))", "self.double.apply(x)"
            ),
            good=_GOOD,
        ),
        Example(
            bad=_GOOD.replace(
                "return Double.apply(self.layer(x))",
                "self.double = Double.apply\n        return self.double(self.layer(x))",
            ),
            good=_GOOD,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, AttributeWrite):
            if _is_module(place.owner) and any(map(is_apply, options(place.value))):
                yield self.report(
                    place,
                    f"`self.{place.attr}` becomes the `apply` of an autograd Function while tracing: strict tracing cannot tell "
                    "whether it is a Parameter. Call it by its class, or set the attribute in `__init__`.",
                )
            return
        if isinstance(place, AttributeRead):
            owner = place.owner
            if place.attr == "apply" and isinstance(owner, Instance) and not owner.traced:
                name = getattr(owner.cls, "name", "")
                yield self.report(
                    place,
                    f"`{words(place.node)}` is asked of an object of `{name}` that was made before: strict tracing fails. Write "
                    f"`{name}.apply`.",
                )
            return
        assert isinstance(place, Call)
        cls = _function_class(place)
        if cls is None:
            return
        traced = _may_need_gradients(place) and not _is_in_function(place) and keeps_gradients(place)
        for problem, node, in_backward in _problems(cls.node, traced):
            if in_backward and not traced:
                continue
            where = place
            if node is not None:
                # Torch blames the line in `backward`.
                site = replace(place.site, scope=cls.scope, chunk=cls.chunk)
                where = replace(place, site=site, node=node)
            report = self.report(
                where,
                f"`{cls.name}` {problem}: strict tracing"
                f"{', which also traces `backward`,' if in_backward else ''} fails.",
                notes=_WHERE if in_backward else (),
            )
            yield replace(report, through=place)
            return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        node = report.place.node
        if isinstance(report.place, AttributeWrite):
            return held_by_partial(report.place, context)
        if isinstance(report.place, AttributeRead):
            return applied_by_class(report.place, context)
        if isinstance(node, ast.Attribute) and node.attr == "saved_variables":
            return saved_tensors(report.place, context)
        if isinstance(node, ast.Call) and _is_variable(node.func):
            return unwrap_variable(report.place, context)
        called = report.through
        if not report.notes or called is None or called.site.scope is not report.place.site.scope:
            return Refusal(_FOR_THE_USER)
        return without_gradients_while_exporting(called, context)


_FOR_THE_USER = (
    "whether the program needs the backward is for you to say: call what `forward` computes directly where "
    "`torch.compiler.is_exporting()`, or keep to save_for_backward and tensors"
)
_WHERE = ("It fails where an argument needs gradients, as the output of a layer with parameters does.",)


def _may_need_gradients(place: Call) -> bool:
    """Whether `backward` may be traced: the model's inputs and buffers themselves need no gradients."""
    given = [option for value in (*place.args, *place.kwargs.values()) for option in options(value)]
    return not all(
        isinstance(value, (Const, Static))
        or (isinstance(value, Tensor) and value.origin in ("input", "buffer"))
        or (isinstance(value, Unknown) and value.argument)
        for value in given
    )


def _is_in_function(place: Call) -> bool:
    """Whether the call stands in the `forward` of another Function, which keeps no gradients."""
    function = place.site.function
    owner = function.owner if function is not None else None
    return owner is not None and any(name in AUTOGRAD_FUNCTIONS for name in base_names(owner))


def _is_module(owner: Value) -> bool:
    return isinstance(owner, Instance) and is_module_class(owner.cls)


def _function_class(place: Call) -> ClassValue | None:
    """The Function subclass whose `apply` is called."""
    candidates: list[Value | None] = [place.receiver, place.callee]
    if isinstance(place.callee, Bound):
        candidates.append(place.callee.receiver)
    node = place.node
    applies = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply"
    )
    # `spike = Spike.apply`, and later `spike(x)`
    if not applies and place.name != "torch.autograd.Function.apply":
        return None
    for value in candidates:
        if isinstance(value, ClassValue) and any(name in AUTOGRAD_FUNCTIONS for name in base_names(value)):
            return value
    return None


def _is_variable(function: ast.expr) -> bool:
    return ast.unparse(function) in ("Variable", "autograd.Variable", "torch.autograd.Variable")


def _computes_gradients(node: ast.AST) -> bool:
    """Whether this is `loss.backward()`, `autograd.grad(...)` or `autograd.backward(...)`; `Other.backward(ctx, grad)` is not."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if ast.unparse(node.func) in (
        "torch.autograd.grad",
        "torch.autograd.backward",
        "autograd.grad",
        "autograd.backward",
    ):
        return True
    given = node.args[0] if node.args else None
    to_context = isinstance(given, ast.Name) and given.id in ("ctx", "self", "context")
    return node.func.attr == "backward" and len(node.args) <= 1 and not to_context and not _is_of_super(node)


def _is_classmethod(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "classmethod"


def _is_conditional(node: ast.AST, method: ast.FunctionDef) -> bool:
    """Whether an option decides over a part of a method: `if inplace: ctx.mark_dirty(x)`, which is mostly off."""
    return any(
        isinstance(outer, ast.If) and any(part is node for part in ast.walk(outer))
        for outer in ast.walk(method)
    )


def _only_raises(method: ast.FunctionDef) -> ast.Raise | None:
    """The `raise` that a method begins with, behind its docstring."""
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    return body[0] if body and isinstance(body[0], ast.Raise) else None


def _is_of_super(node: ast.AST) -> bool:
    """Whether this is a call of `super().method`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Name)
        and node.func.value.func.id == "super"
    )


def _returns(names: list[ast.expr], method: ast.FunctionDef) -> bool:
    """Whether a method returns all of these arguments themselves, whichever way it ends."""
    wanted = {each.id for each in names if isinstance(each, ast.Name)}
    nodes = list(ast.walk(method))
    ends = [each.value for each in nodes if isinstance(each, ast.Return)]
    bound_anew = any(
        isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id in wanted for each in nodes
    )
    return (
        len(wanted) == len(names)
        and not bound_anew
        and bool(ends)
        and all(
            wanted <= {part.id for part in getattr(end, "elts", [end]) if isinstance(part, ast.Name)}
            for end in ends
        )
    )


def _gives_tensor_for_dtype(node: ast.AST) -> bool:
    """`_softmax_backward_data(grad, output, dim, output)`: since torch 1.11 it takes the dtype of the input last."""
    if not isinstance(node, ast.Call) or len(node.args) != 4:
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return (
        name == "_softmax_backward_data"
        and isinstance(node.args[3], ast.Name)
        and (ast.unparse(node.args[1]) == node.args[3].id)
    )


def _problems(node: ast.ClassDef, traced: bool) -> Iterator[tuple[str, ast.AST | None, bool]]:
    """What is wrong with an autograd.Function, where, if not at its call, and whether only tracing `backward` shows it.

    `traced`: whether its arguments may need gradients; such ones may be marked dirty, where they are returned (torch 2.13).
    """
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "backward" not in methods and "vjp" not in methods:
        assigned = any(isinstance(item, ast.Assign) for item in node.body)
        if not assigned and len(node.bases) == 1:
            yield "has no `backward`", None, True
    constants = {
        target.id
        for item in node.body
        if isinstance(item, ast.Assign)
        for target in item.targets
        if isinstance(target, ast.Name)
    }
    for name in ("forward", "backward"):
        if name in methods and any(map(_is_classmethod, methods[name].decorator_list)):
            yield f"has a class method for its `{name}`", None, True
    refusal = _only_raises(methods["backward"]) if "backward" in methods else None
    if refusal is not None:
        yield "raises in `backward`", refusal, True
    for method in methods.values():
        for inner in ast.walk(method):
            if method.name == "forward" and _is_of_super(inner):
                yield "calls a method of `super()` in `forward`", inner, False
            if isinstance(inner, ast.Attribute) and inner.attr == "saved_variables":
                yield "reads `ctx.saved_variables`, which is now `ctx.saved_tensors`", inner, True
            if method.name == "backward" and isinstance(inner, ast.Call) and _is_variable(inner.func):
                yield "calls `Variable` in `backward`", inner, True
            if method.name == "backward" and _computes_gradients(inner):
                yield "computes gradients in `backward`", inner, True
            if method.name == "backward" and _gives_tensor_for_dtype(inner):
                yield "gives `_softmax_backward_data` a tensor for a dtype in `backward`", inner, True
            if (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Attribute)
                and inner.func.attr == "mark_dirty"
                and not _is_conditional(inner, method)
                and not (traced and _returns(inner.args, method))
            ):
                yield "calls `ctx.mark_dirty`", None, False
            if (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == node.name
                and inner.attr in constants
            ):
                yield (
                    f"reads `{node.name}.{inner.attr}` in `{method.name}`, an attribute of its own class",
                    inner,
                    method.name == "backward",
                )
