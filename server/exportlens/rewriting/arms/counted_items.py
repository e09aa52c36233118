"""Items that an arm picks of as many as a number from data says, where its branch asks for that number.

    if k > 0:
        lowest = torch.topk(x, k.item()).values[-1]

Eager's torch.cond traces both sides with the numbers that there are (torch 2.13): where there is no item, it raises.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import reads


def refuse_counted_items(test: ast.expr, statements: Sequence[ast.stmt]) -> None:
    """Raise Refused where `statements`, an arm of the branch on `test`, pick such an item."""
    asked = reads(test)
    for each in (node for statement in statements for node in ast.walk(statement)):
        if not (isinstance(each, ast.Subscript) and _is_number(each.slice)):
            continue
        counted = (
            given
            for call in ast.walk(each.value)
            if isinstance(call, ast.Call)
            for given in (*call.args, *(one.value for one in call.keywords))
            if _is_read_out(given) and reads(given) & asked
        )
        if next(counted, None) is not None:
            raise Refused(
                f"`{ast.unparse(each)}` picks an item of as many as data says, and torch.cond traces both sides also where there "
                "is none"
            )


def _is_number(key: ast.expr) -> bool:
    try:
        return isinstance(ast.literal_eval(key), int)
    except (ValueError, SyntaxError):
        return False


def _is_read_out(node: ast.expr) -> bool:
    """Whether `node` is, or chooses among, what is read out of a tensor."""
    return any(
        isinstance(each, ast.Call)
        and (
            (isinstance(each.func, ast.Attribute) and each.func.attr == "item" and not each.args)
            or (isinstance(each.func, ast.Name) and each.func.id == "int")
        )
        for each in ast.walk(node)
    )
