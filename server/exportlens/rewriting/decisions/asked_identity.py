"""`t.item() is True`: while tracing the number is a symbol, which is no object of Python's; what is meant is the number itself.

if (x > 0).all().item() is True:       ->    if (x > 0).all().item():
if bool(mask.any()) is False:          ->    if not bool(mask.any()):
if index.item() is 2:                  ->    if index.item() == 2:
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Truth
from exportlens.inference.values import TensorScalar
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.precedence import operand

_EQUALS: dict[type[ast.cmpop], str] = {ast.Is: "==", ast.IsNot: "!="}


def number_itself(place: Truth, context: RewriteContext) -> Fix | Refusal:
    """The fix for `place`, a comparison by `is` of a number that was read out of tensor data."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise Refused("several comparisons are one chain")
        left, right = node.left, node.comparators[0]
        constant, number = (right, left) if isinstance(right, ast.Constant) else (left, right)
        if not isinstance(constant, ast.Constant) or not isinstance(place.value, TensorScalar):
            raise Refused("what it is compared with is not written out")
        kind, expected = place.value.type, type(constant.value).__name__
        if kind != expected:
            raise Refused(
                f"`{draft.source.of(number)}` is not known to be of the type of `{draft.source.of(constant)}`, which `is` asks as well"
            )
        text = draft.source.of(number)
        if expected == "bool":
            holds = bool(constant.value) is isinstance(node.ops[0], ast.Is)
            text = text if holds else f"not {operand(text, 'not')}"
        else:
            text = f"{draft.source.of(left)} {_EQUALS[type(node.ops[0])]} {draft.source.of(right)}"
        change = [draft.source.swap(node, text)]
        return draft.replace("Ask the number itself", change, Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def asks_bool(node: ast.expr) -> bool | None:
    """Whether `node` asks a bool for being True, as in `a is True`; False for `a is False`, None for what asks neither."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        constant = node.comparators[0]
        if isinstance(constant, ast.Constant) and isinstance(constant.value, bool):
            return constant.value is isinstance(node.ops[0], ast.Is)
    return None
