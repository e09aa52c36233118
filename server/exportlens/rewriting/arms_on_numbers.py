"""What hangs on a number that becomes a buffer: the arms of a branch on it do what torch.cond can give back."""

from __future__ import annotations

import ast

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import is_log
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import dotted


def refuse_arms(node: ast.stmt, cls: ast.ClassDef, kinds: Kinds, *called: str) -> None:
    """Raise Refused where more hangs on the number than what torch.cond can give back, also in methods that `node` calls."""
    for each in ast.walk(node):
        if not isinstance(each, ast.stmt) or each is node:
            continue
        method = _called_for_what_it_does(each, cls)
        if method is not None and method.name not in called:
            refuse_arms(method, cls, kinds, method.name, *called)
        elif not (
            isinstance(each, (ast.If, ast.Assign, ast.AugAssign, ast.Pass))
            or (isinstance(each, ast.Return) and each.value is not None)
            or _writes_in_place(each)
            # What prints or logs is kept out of the program.
            or (isinstance(each, ast.Expr) and is_log(each.value, kinds))
        ):
            raise Refused(f"`{ast.unparse(each).splitlines()[0]}` hangs on the number")


def _called_for_what_it_does(node: ast.stmt, cls: ast.ClassDef) -> ast.FunctionDef | None:
    """The method of `cls` that `node`, `self.method(...)`, calls for what it does to the model."""
    call = node.value if isinstance(node, ast.Expr) else None
    path = (dotted(call.func) or "") if isinstance(call, ast.Call) else ""
    return next(
        (each for each in cls.body if isinstance(each, ast.FunctionDef) and path == f"self.{each.name}"), None
    )


def _writes_in_place(node: ast.stmt) -> bool:
    """Whether a statement does nothing but call a method like `zero_`."""
    call = node.value if isinstance(node, ast.Expr) else None
    name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    return name.endswith("_") and not name.startswith("_")
