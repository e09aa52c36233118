"""State that the constructor of a base class begins: the fix is made there, for all classes that are made of it."""

from __future__ import annotations

import ast

from exportlens.inference.classes import class_order
from exportlens.inference.values import ClassValue
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import assigned_pairs, dotted


def class_that_begins(owner: ClassValue, attr: str) -> ClassValue:
    """The one class among `owner` and its bases whose constructor sets the attribute, `owner` where it is none. Raises Refused where
    several do: a buffer is none where the name is taken."""
    found = [each for each in class_order(owner) if isinstance(each, ClassValue) and _begins(each.node, attr)]
    if len(found) > 1:
        names = " and ".join(f"`{each.name}`" for each in found)
        raise Refused(f"the constructors of {names} both set `self.{attr}`")
    return found[0] if found else owner


def _begins(cls: ast.AST, attr: str) -> bool:
    return any(
        dotted(target) == f"self.{attr}"
        for method in getattr(cls, "body", ())
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in ast.walk(method)
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target, _ in assigned_pairs(each)
    )
