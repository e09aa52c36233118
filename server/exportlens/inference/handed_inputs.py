"""The inputs of a model whose `forward(self, *args)` hands them on: what examples tell of them, else what the method takes that gets them."""

from __future__ import annotations

import ast

from exportlens.inference.classes import class_attribute
from exportlens.inference.examples import told_by
from exportlens.inference.machine import Machine
from exportlens.inference.parameters import argument_value
from exportlens.inference.values import ClassValue, Function, Unknown, Value
from exportlens.source.walking import walk


def handed_inputs(machine: Machine, cls: ClassValue, forward: Function) -> list[Value]:
    """The arguments that `*args` of `forward` takes; none where nothing tells."""
    rest = forward.node.args.vararg
    if rest is None:
        return []
    if machine.told_rest:
        names = [f"{rest.arg}[{at}]" for at in range(len(machine.told_rest))]
        return [
            Unknown("an argument")
            if each is None
            else told_by(machine, each, Unknown("an argument"), name, False)
            for each, name in zip(machine.told_rest, names, strict=True)
        ]
    method = _handed_to(cls, forward, rest.arg)
    if method is None:
        return []
    spec = method.node.args
    taken = [*spec.posonlyargs, *spec.args][1:]
    needed = taken[: len(taken) - len(method.defaults)]
    return [argument_value(machine, method, each, None) for each in needed]


def _handed_to(cls: ClassValue, forward: Function, name: str) -> Function | None:
    """The first method of the model that is called with nothing before `*name`."""
    for each in walk(forward.node):
        if (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
            and each.func.value.id == "self"
            and each.args
            and isinstance(each.args[0], ast.Starred)
            and isinstance(each.args[0].value, ast.Name)
            and each.args[0].value.id == name
        ):
            method = class_attribute(cls, each.func.attr)[0]
            if isinstance(method, Function) and method.node.args.vararg is None:
                return method
    return None
