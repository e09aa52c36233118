"""The methods of the model that code at hand may call: those of its class, and those that it has of others."""

from __future__ import annotations

import ast

from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.values import ClassValue, Const, Instance
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.function_kinds import own_methods
from exportlens.rewriting.kinds.kinds import Kinds


def model_methods(source: Source, function: Function, kinds: Kinds) -> dict[str, list[ast.FunctionDef]]:
    """By their names; several where a class that extends another one has them anew."""
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    found: dict[str, list[ast.FunctionDef]] = {}
    for each in owner.body if owner is not None else ():
        if isinstance(each, ast.FunctionDef):
            found.setdefault(each.name, []).append(each)
    model = getattr(kinds.names.get("self"), "value", None)
    if owner is not None and isinstance(model, Instance):
        for name, method in own_methods(model).items():
            found.setdefault(name, []).append(method)
    return found


def is_constant_at_first(path: str, kinds: Kinds) -> bool:
    """Whether the model has the attribute of its class, which is no tensor, until something sets it that is no constructor."""
    model = getattr(kinds.names.get("self"), "value", None)
    head, _, attr = path.partition(".")
    if head != "self" or not isinstance(model, Instance) or "." in attr:
        return False
    if not isinstance(class_attribute(model.cls, attr)[0], Const):
        return False
    return not any(
        dotted(each) == path and isinstance(getattr(each, "ctx", None), ast.Store)
        for cls in class_order(model.cls)
        if isinstance(cls, ClassValue)
        for method in cls.node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in ast.walk(method)
    )
