"""The product, or the sum, that torch is made to compute of numbers of Python: `torch.prod(torch.tensor(x.shape[1:]))` -> `math.prod(x.shape[1:])`.

Tracing keeps no value of a tensor of several numbers (torch 2.13), but Python knows what it multiplies.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix
from exportlens.inference.places import Conversion
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.numbers.replacing import importing_math, replaced_number

_MADE = ("torch.tensor", "torch.as_tensor")
_SHORT = ("prod", "sum")


def product_for_tensor(place: Conversion, context: RewriteContext) -> Fix | None:
    """`range(int(torch.prod(torch.tensor(x.shape[1:]))))` -> `range(math.prod(x.shape[1:]))`; None where it is of no such product."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
    except (Refused, LookupError, SyntaxError):
        return None
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    given = inner = node.args[0]
    if (
        isinstance(given, ast.Call)
        and isinstance(given.func, ast.Name)
        and given.func.id == "int"
        and given.args
    ):
        inner = given.args[0]
    return product_of(draft, place, given, inner)


def product_of(draft: Draft, place: Conversion, node: ast.expr, inner: ast.expr) -> Fix | None:
    """The fix that lets Python compute for `node` what torch computes of Python's numbers in `inner`."""
    found = _of_numbers(inner, _kinds_at(draft, place, node))
    if found is None or (found[0] == "sum" and _is_bound("sum", draft)):
        return None
    text = _text_of(found[0], draft.source.of(found[1]), draft.modules)
    fix = replaced_number(draft, node, text, Applicability.SAFE)
    return importing_math(draft, fix) if found[0] == "prod" else fix


def _is_bound(name: str, draft: Draft) -> bool:
    """Whether the file may have something of its own under the name of a builtin function."""
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for each in ast.walk(draft.source.tree)
    )


def _kinds_at(draft: Draft, place: Conversion, node: ast.expr) -> Kinds:
    statement = draft.source.enclosing_statement(node)
    function = draft.source.enclosing_function(statement)
    kinds = draft.kinds(place.variables)
    return kinds if function is None else kinds_before(function, statement, kinds)


def _of_numbers(node: ast.expr, kinds: Kinds) -> tuple[str, ast.expr] | None:
    """("prod" or "sum", the numbers) where `node` computes that of a tensor made of ints of Python, and may read it out."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        if node.func.attr == "item" and not node.args:
            return _of_numbers(node.func.value, kinds)
        if node.func.attr in _SHORT:
            qualified = kinds.qualified(node.func)
            given = node.args if qualified == f"torch.{node.func.attr}" else [node.func.value, *node.args]
            if len(given) == 1 and (numbers := _numbers(given[0], kinds)) is not None:
                return node.func.attr, numbers
    return None


def _text_of(name: str, numbers: str, modules: dict[str, str]) -> str:
    """How Python computes it."""
    return f"{spelled(modules, 'math') or 'math'}.prod({numbers})" if name == "prod" else f"sum({numbers})"


def _numbers(node: ast.expr, kinds: Kinds) -> ast.expr | None:
    if not isinstance(node, ast.Call) or len(node.args) != 1 or kinds.qualified(node.func) not in _MADE:
        return None
    if any(
        key.arg not in ("device", "dtype")
        or (key.arg == "dtype" and kinds.qualified(key.value) not in ("torch.long", "torch.int64"))
        for key in node.keywords
    ):
        return None
    given = node.args[0]
    return given if _is_shape(given, kinds) or _holds_ints(kinds.of(given)) else None


def _is_shape(node: ast.expr, kinds: Kinds) -> bool:
    """Whether it is `t.shape`, `t.size()` or a slice of one."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_shape(node.value, kinds)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr != "size" or node.args or node.keywords:
            return False
        return kinds.of(node.func.value).what == "tensor"
    return isinstance(node, ast.Attribute) and node.attr == "shape" and kinds.of(node.value).what == "tensor"


def _holds_ints(kind: Kind) -> bool:
    return bool(kind.items) and all(
        each.what in ("number", "size", "static") and each.type == "int" for each in kind.items or ()
    )
