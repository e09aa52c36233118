"""What a round of a loop does behind the place where tensor data leaves it, where that may as well be done in vain.

    for _ in range(n):            for _ in range(n):
        y = step(x)                   if not stopped:
        if close(x, y):                   y = step(x)
            break                         stopped = close(x, y)
        x = y                             x = y

`x` is not read after the loop: whatever it is in the last round, nobody sees it. No branch on the flag is needed around it.
"""

from __future__ import annotations

import ast
from collections.abc import Set

# Of tensors, these hang on dtypes and shapes alone: they cannot fail in one round only.
_METHODS = frozenset(
    {"abs", "add", "argmax", "argmin", "bool", "clone", "contiguous", "detach", "div", "double", "exp", "expand", "expand_as",
     "flatten", "float", "int", "log_softmax", "long", "mul", "neg", "permute", "relu", "reshape", "sigmoid", "softmax", "sqrt",
     "squeeze", "sub", "t", "tanh", "to", "transpose", "type_as", "unsqueeze", "view", "view_as"}
)  # fmt: skip
_PLAIN = (
    ast.Name,
    ast.Constant,
    ast.UnaryOp,
    ast.USub,
    ast.Not,
    ast.Compare,
    ast.cmpop,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Tuple,
    ast.Attribute,
    ast.keyword,
    ast.expr_context,
)


def may_run_idly(statements: list[ast.stmt], read_later: Set[str]) -> bool:
    """Whether `statements` only bind names, none of them `read_later`, to what no tensor's data makes fail."""
    return all(_is_idle(each, read_later) for each in statements)


def _is_idle(node: ast.stmt, read_later: Set[str]) -> bool:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    else:
        # `x += y` writes into the memory of a tensor, which others may share.
        return False
    names = [one for each in targets for one in (each.elts if isinstance(each, ast.Tuple) else [each])]
    if not all(isinstance(each, ast.Name) and each.id not in read_later for each in names):
        return False
    assert node.value is not None
    return all(map(_cannot_fail, ast.walk(node.value)))


def _cannot_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    return isinstance(node, _PLAIN)
