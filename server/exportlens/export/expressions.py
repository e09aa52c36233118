"""What the expressions of a class's `__init__` stand for, as far as it and the proposed arguments tell."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exportlens.export.flows import Parts
    from exportlens.export.models import FileNames

_ARITHMETIC: dict[type[ast.operator], object] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class Expressions:
    """Numbers and values of the expressions of one class."""

    def __init__(self, parts: Parts, names: FileNames) -> None:
        self._names = names
        self._values = parts.values
        self._attributes = parts.attributes

    def number(self, node: ast.expr | None, depth: int = 0) -> int | None:
        """An integer expression of `__init__`, with the proposed arguments; None where it is not one."""
        if node is None or depth > 20:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return int(node.value)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self.number(self.resolved(node), depth + 1)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):  # `out_channels or channels`
            numbers = (self.number(value, depth + 1) for value in node.values)
            return next((number for number in numbers if number), None)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
            if left is None or right is None:
                return None
            try:
                return int(_ARITHMETIC[type(node.op)](left, right))  # type: ignore[operator]
            except (ArithmeticError, ValueError):
                return None
        if isinstance(node, ast.Call) and names_end(self._names.full(node.func), "int") and node.args:
            return self.number(node.args[0], depth + 1)
        if isinstance(node, ast.Call) and names_end(self._names.full(node.func), "len") and node.args:
            items = self.resolved(node.args[0])
            return len(items.elts) if isinstance(items, (ast.List, ast.Tuple)) else None
        return None

    def resolved(self, node: ast.expr, depth: int = 0) -> ast.expr | None:
        """What a name, an attribute or an item stands for, as far as `__init__` and the proposed arguments tell."""
        if depth > 20:
            return None
        found: ast.expr | None = node
        if isinstance(node, ast.Name):
            found = self._values.get(node.id) or self._names.constants.get(node.id)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                found = self._attributes.get(node.attr)
            else:
                owner = self.resolved(node.value, depth + 1)
                found = self._part(owner, node.attr) if owner is not None else None
        elif isinstance(node, ast.Subscript):
            owner = self.resolved(node.value, depth + 1)
            key = self.resolved(node.slice, depth + 1)
            found = (
                self._part(owner, key.value) if owner is not None and isinstance(key, ast.Constant) else None
            )
        if found is None or found is node:
            return found
        return self.resolved(found, depth + 1)

    def _part(self, owner: ast.expr, key: object) -> ast.expr | None:
        """The part of a configuration object, a dict or a list that has this name or place."""
        if isinstance(owner, (ast.List, ast.Tuple)) and isinstance(key, int):
            return owner.elts[key] if -len(owner.elts) <= key < len(owner.elts) else None
        if isinstance(owner, ast.Dict):
            pairs = zip(owner.keys, owner.values, strict=True)
            return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
        if not isinstance(owner, ast.Call):
            return None
        given = next((k.value for k in owner.keywords if k.arg == key), None)
        cls = self._names.classes.get(self._names.full(owner.func))
        return given if given is not None or cls is None else _field(cls, str(key))


def names_end(full: str, name: str) -> bool:
    return full == name or full.endswith("." + name)


def _field(cls: ast.ClassDef, name: str) -> ast.expr | None:
    """The default that a configuration class gives to one of its fields."""
    for node in cls.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
            continue
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
            said = {k.arg: k.value for k in value.keywords}
            made = said.get("default_factory")
            return said.get("default") or (made.body if isinstance(made, ast.Lambda) else None)
        return value
    return None
