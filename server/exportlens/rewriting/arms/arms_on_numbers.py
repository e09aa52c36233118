"""What hangs on a number that becomes a buffer: the arms of a branch on it do what torch.cond can give back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log


def refuse_arms(node: ast.stmt, cls: ast.ClassDef, kinds: Kinds, *called: str) -> None:
    """Raise Refused where more hangs on the number than what torch.cond can give back, also in methods that `node` calls."""
    leaves = False
    for each in ast.walk(node):
        if isinstance(each, ast.stmt) and each is not node:
            _refuse(each, cls, kinds, called)
            leaves = leaves or _gives_nothing(each)
    if leaves:
        # What follows hangs on the number, too.
        for each in _behind(node, cls):
            _refuse(each, cls, kinds, called)
            refuse_arms(each, cls, kinds, *called)


def _refuse(node: ast.stmt, cls: ast.ClassDef, kinds: Kinds, called: tuple[str, ...]) -> None:
    method = _called_for_what_it_does(node, cls)
    if method is not None and method.name not in called:
        refuse_arms(method, cls, kinds, method.name, *called)
    elif not (
        isinstance(node, (ast.If, ast.Assign, ast.AugAssign, ast.Pass))
        or (isinstance(node, ast.Return) and (not _gives_nothing(node) or _only_leaves(node, cls)))
        or _writes_in_place(node)
        # What prints or logs is kept out of the program.
        or (isinstance(node, ast.Expr) and is_log(node.value, kinds))
    ):
        raise Refused(f"`{ast.unparse(node).splitlines()[0]}` hangs on the number")


def _gives_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Return) and (
        node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    )


def _only_leaves(node: ast.Return, cls: ast.ClassDef) -> bool:
    """Whether the method around gives nothing in any case, and is left neither from a loop nor from a block with an end of its own."""
    method = next((each for each in _methods(cls) if node in ast.walk(each)), None)
    if method is None:
        return False
    return all(_gives_nothing(each) for each in ast.walk(method) if isinstance(each, ast.Return)) and not any(
        isinstance(each, (ast.For, ast.While, ast.With, ast.Try)) and node in ast.walk(each)
        for each in ast.walk(method)
    )


def _behind(node: ast.stmt, cls: ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements that follow `node` in its block, and in those around it up to the method."""
    method = next((each for each in _methods(cls) if node in ast.walk(each)), None)
    for each in ast.walk(method) if method is not None and method is not node else ():
        for name in ("body", "orelse"):
            block = getattr(each, name, None)
            if not isinstance(block, list):
                continue
            at = next((index for index, one in enumerate(block) if node in ast.walk(one)), None)
            if at is not None:
                yield from block[at + 1 :]


def _methods(cls: ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in cls.body if isinstance(each, ast.FunctionDef)]


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
