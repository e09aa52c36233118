"""Numbers from data that index or size something in a branch inside of an arm, which they may choose themselves.

Measured on torch 2.13: where eager runs torch.cond it traces both arms of each torch.cond inside, and `.item()` of a tensor without
dimensions that comes from outside is traced as the number that it is now. `x[n + 1]` in an inner arm then raises IndexError where `n` is
the last row, though that arm does not run. Of a tensor of one dimension the number stays open, and the arm that runs checks it.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.text import Source

# A function is an arm that an earlier fix made.
_ARMS = (ast.If, ast.IfExp, ast.While, ast.FunctionDef, ast.Lambda)


def is_checked_deeper(source: Source, use: ast.Name, block: list[ast.stmt]) -> bool:
    """Whether `use` of a number, in the arm `block`, is in an index, or in a difference that a call takes, of a branch inside."""
    around: list[ast.AST] = []
    for each in source.ancestors(use):
        if isinstance(each, _ARMS):
            return _is_checked(use, around)
        if each in block:
            break
        around.append(each)
    return False


def _is_checked(use: ast.Name, around: list[ast.AST]) -> bool:
    """Whether the expressions `around` the number, the inmost first, take it as an index or as what is left of a size."""
    child: ast.AST = use
    differs = False
    for each in around:
        if isinstance(each, (ast.Slice, ast.stmt)):
            return False
        if isinstance(each, ast.Subscript) and child is each.slice:
            return True
        if isinstance(each, ast.Call):
            return differs and child is not each.func
        differs = differs or (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub))
        child = each
    return False
