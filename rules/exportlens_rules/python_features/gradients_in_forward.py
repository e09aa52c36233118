"""`torch.autograd.grad` and `backward()` in forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.classes import class_attribute
from exportlens.inference.places import Call
from exportlens.inference.values import ClassValue, Function
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf

# How many methods deep the way from an input to what is derived is followed.
_MAX_METHODS = 2

_THROUGH_LAYERS = Outcome(FAILS, FAILS)
# Measured on torch 2.13: convolutions, `nn.SiLU` and `nn.GELU` are none of them.
_LAYERS = frozenset(
    {
        "Linear", "Bilinear", "LayerNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "RNN", "LSTM", "GRU", "GRUCell",
        "TransformerEncoderLayer", "ReLU", "PReLU", "Sigmoid", "Tanh", "Softmax", "MaxPool2d",
    }
)  # fmt: skip


class GradientsInForward(CallOf):
    """Gradients are computed inside of forward.

    ## What it does
    Finds `torch.autograd.grad`, `Tensor.backward` and `torch.autograd.functional` in traced code.

    ## Why it matters
    Strict tracing does not support them. Where the way from the input leads through `nn.Linear`, `nn.LSTM`, `nn.ReLU` or
    a normalization, non-strict tracing fails as well, once the program is there: "We found a fake tensor in the exported
    program constant's list". Of `(x**2).sum()`, and of a convolution, it can export the derivative.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
    """

    code = "EXL322"
    name = "gradients-in-forward"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "a program of torch.export has no backward of its own: compute the derivative where the model is called, "
        "or write it out as operators"
    )
    callees = (
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.Tensor.backward",
        "torch.autograd.functional.jacobian",
        "torch.autograd.functional.hessian",
        "torch.autograd.functional.vjp",
        "torch.autograd.functional.jvp",
    )
    wrong = "computes gradients inside of the program: strict tracing fails."
    advice = "Write the derivative out, or compute it where the model is called."
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x).sum()
        y.backward()
        return y
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).sum()
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x):
        x = x.requires_grad_(True)
        energy = self.energy(x).sum()
        return -torch.autograd.grad(energy, x, create_graph=True)[0]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x):
        return self.energy(x).sum()
""",
            outcome=_THROUGH_LAYERS,
        ),
    )

    def outcome_of(self, place: Call) -> Outcome:
        return _THROUGH_LAYERS if _leads_through_layers(place) else self.outcome


def _leads_through_layers(place: Call) -> bool:
    """Whether `torch.autograd.grad` is asked for the derivative, by what a layer of the model was given, of what it gave."""
    function = place.site.function
    if place.name != "torch.autograd.grad" or function is None or not isinstance(place.node, ast.Call):
        return False
    named = {keyword.arg: keyword.value for keyword in place.node.keywords}
    positional = [*place.node.args[:2], None, None]
    derived, by = named.get("outputs", positional[0]), named.get("inputs", positional[1])
    given = {part.id for part in ast.walk(by) if isinstance(part, ast.Name)} if by is not None else set()
    return derived is not None and any(
        _calls_a_layer(value, function, _MAX_METHODS, given) for value in _made_by(derived, function)
    )


def _made_by(node: ast.expr, function: Function) -> Iterator[ast.expr]:
    """`node`, and what the function binds the names in it to before."""
    yield node
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for other in ast.walk(function.node):
        if (
            isinstance(other, ast.Assign)
            and other.lineno <= node.lineno
            and any(isinstance(target, ast.Name) and target.id in names for target in other.targets)
        ):
            yield other.value


def _calls_a_layer(node: ast.AST, function: Function, depth: int, given: set[str] | None) -> bool:
    """Whether `self.name(...)` in `node` calls what the constructor makes or is given as a Module, with one of the names `given`."""
    owner = function.owner
    if owner is None:
        return False
    for call in _attached(node):
        if not (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "self"
        ):
            continue
        names = {part.id for each in call.args for part in _attached(each) if isinstance(part, ast.Name)}
        if given is not None and not names & given:
            continue
        method = class_attribute(owner, call.func.attr)[0]
        if isinstance(method, Function):
            if depth and _calls_a_layer(method.node, method, depth - 1, None):
                return True
        elif _is_a_layer(call.func.attr, owner):
            return True
    return False


def _attached(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in `node` but those that are detached: `self.layer(x).detach()`."""
    if isinstance(node, ast.Attribute) and node.attr in ("detach", "data"):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _attached(child)


def _is_a_layer(name: str, owner: ClassValue) -> bool:
    """Whether a constructor holds under `name` a layer of torch's, or what it is given and says to be a Module."""
    init = class_attribute(owner, "__init__")[0]
    if not isinstance(init, Function):
        return False
    modules = {
        parameter.arg
        for parameter in init.node.args.args
        if parameter.annotation is not None and ast.unparse(parameter.annotation).endswith("nn.Module")
    }
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == name for target in node.targets)
        and (
            (isinstance(node.value, ast.Name) and node.value.id in modules)
            or (isinstance(node.value, ast.Call) and _makes_a_layer(node.value, init.node))
        )
        for node in ast.walk(init.node)
    )


def _makes_a_layer(call: ast.Call, init: ast.AST) -> bool:
    """Whether a call makes one of `_LAYERS`, or an `nn.Sequential` of some; what `*layers` holds, the constructor `init` makes somewhere."""
    name = _short(call.func)
    if name != "Sequential":
        return name in _LAYERS
    spread = any(isinstance(argument, ast.Starred) for argument in call.args)
    return any(
        isinstance(each, ast.Call) and _short(each.func) in _LAYERS
        for each in ast.walk(init if spread else call)
    )


def _short(function: ast.expr) -> str:
    return ast.unparse(function).rpartition("nn.")[2]
