"""What a function calls, told by the names alone: for reading what it does with its parameters without running it."""

from __future__ import annotations

import ast

from exportlens.inference.attributes import defines_gradient, is_applied
from exportlens.inference.classes import class_attribute
from exportlens.inference.expressions import evaluate
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import apart
from exportlens.inference.rebinding import made_in_constructor
from exportlens.inference.values import Bound, ClassValue, Function, Value


def callee_of(machine: Machine, inside: Function, name: str, function: ast.expr) -> Value | None:
    """What `function` is where `inside` calls it: a function of the workspace, a method of the same object, or something external;
    None where it is part of what the parameter `name` holds."""
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return None
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id == name:
        return None
    if root.id == "self":
        owner = inside.owner
        if owner is None or not isinstance(function, ast.Attribute) or function.value is not root:
            return None
        return class_attribute(owner, function.attr)[0] or _submodule(machine, owner, function.attr)
    frame = Frame(inside.scope, inside.chunk, {}, None, None)
    with apart(machine):
        try:
            called = evaluate(machine, function, frame)
        except Raised:
            return None
    if isinstance(called, Bound) and isinstance(called.receiver, ClassValue) and is_applied(called):
        forward = class_attribute(called.receiver, "forward")[0]
        # A class method is given the class besides, which fails in strict tracing anyway.
        own = isinstance(forward, Function) and any("classmethod" in name for name in forward.decorators)
        return None if own else forward
    return called


def _submodule(machine: Machine, owner: ClassValue, attr: str) -> Value | None:
    """The `forward` of the submodule that the constructor puts at `self.attr`, where its class is of the workspace."""
    made = made_in_constructor(owner, attr)
    if made is None or not isinstance(made[1], (ast.Name, ast.Attribute)):
        return None
    home, maker = made
    with apart(machine):
        try:
            cls = evaluate(machine, maker, Frame(home.scope, home.chunk, {}, None, None))
        except Raised:
            return None
    return class_attribute(cls, "forward")[0] if isinstance(cls, ClassValue) else None


def takes_object_first(callee: Function) -> bool:
    """Whether the first parameter is the object that a method is called on, or the context of a function with a gradient of its own."""
    if callee.owner is not None and callee.name == "forward" and defines_gradient(callee.owner):
        return class_attribute(callee.owner, "setup_context")[0] is None
    return callee.owner is not None and not any("staticmethod" in name for name in callee.decorators)
