"""Hooks that a Module is given, and whether its calls run one on gradients from then on."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.values import Const, Instance, Named, Native, Value

# Under this key stands that a Module was given a hook on its gradients, which its calls run from then on.
_HOOKED = "__backward_hook__"
# The methods that give it one.
GRADIENT_HOOKS = frozenset(
    {"register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
)
# What a hook is removed by.
_HANDLE = "torch.utils.hooks.RemovableHandle"
# As what such a call is noticed.
HOOKED_CALL = "torch.nn.Module.__call__"


def hook(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Instance(Named(_HANDLE), open=True)


def hook_gradients(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del args, kwargs
    if not machine.doubt:
        # Where paths join, what one of them puts there is taken to be there.
        machine.journal.write(owner.attributes, _HOOKED, Const(True))
    return Instance(Named(_HANDLE), {"remove": Native(f"{_HANDLE}.remove", _unhook(owner))}, open=True)


def _unhook(owner: Instance) -> Callable[..., Value]:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del args, kwargs, frame, node
        machine.journal.write(owner.attributes, _HOOKED, Const(False))
        return Const(None)

    return run


def is_hooked(owner: Instance) -> bool:
    """Whether a Module certainly has a hook on its gradients."""
    return owner.attributes.get(_HOOKED) == Const(True)
