"""Operands: where a Python number made from tensor data ends up."""

from __future__ import annotations

import ast

from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.text import Source


def meets_tensor(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the number ends as the operand of a tensor or in the comparison of a test."""
    while True:
        parent = source.parents[node]
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, (ast.USub, ast.UAdd)):
            node = parent
        elif isinstance(parent, ast.BinOp):
            other = kinds.of(parent.right if parent.left is node else parent.left)
            if other.what == "tensor":
                return True
            if other.what not in ("number", "size", "scalar"):
                return False
            node = parent
        elif isinstance(parent, (ast.If, ast.IfExp)):
            return parent.test is node
        elif isinstance(parent, (ast.Compare, ast.BoolOp)) or (
            isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        ):
            outer = source.parents[parent]
            while isinstance(outer, (ast.BoolOp, ast.UnaryOp)):
                parent, outer = outer, source.parents[outer]
            return isinstance(outer, (ast.If, ast.IfExp)) and outer.test is parent
        elif isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target, function = parent.targets[0], source.enclosing_function(node)
            if not isinstance(target, ast.Name) or function is None:
                return False
            same = [
                each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id
            ]
            loads = [each for each in same if isinstance(each.ctx, ast.Load)]
            later = all(source.start(each) > source.start(parent) for each in loads)
            return (
                later
                and len(loads) == len(same) - 1
                and all(meets_tensor(source, each, kinds) for each in loads)
            )
        else:
            return False
