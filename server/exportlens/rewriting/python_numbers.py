"""`int(t)` and `float(t)` of tensor data: `.item()` gives the same number, and one that the program keeps."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Conversion
from exportlens.inference.values import Shape, Tensor, TensorScalar
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.predicates import primary


def item_for_number(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`int(t)` -> `t.item()` (through `.long()` where `t` is not known to be of integers), `float(t)` ->
    `t.item()`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1):
            raise Refused("the conversion is not a plain call")
        inner, value = node.args[0], place.value
        dtype = value.dtype if isinstance(value, Tensor) else None
        if isinstance(value, Shape):
            return _replaced(draft, node, draft.source.of(inner), Applicability.SAFE)
        if isinstance(value, TensorScalar):
            if value.type == node.func.id:
                return _replaced(draft, node, draft.source.of(inner), Applicability.SAFE)
            if not _is_item(inner):
                raise Refused(
                    f"`{draft.source.of(inner)}` is a Python number already: convert before `.item()`"
                )
            assert isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
            inner = inner.func.value
        elif not isinstance(value, Tensor):
            raise Refused(f"`{draft.source.of(inner)}` is not known to be a tensor")
        text = primary(draft.source.of(inner))
        # int() cuts towards zero as .long() does; float() of a float tensor is its item.
        if node.func.id == "int":
            whole = dtype is not None and dtype.startswith(("int", "uint"))
            text += ".item()" if whole else ".long().item()"
        elif node.func.id == "float":
            text += (
                ".item()"
                if dtype is not None and dtype.startswith(("float", "bfloat"))
                else ".double().item()"
            )
        else:
            raise Refused(f"`{node.func.id}()` has no symbolic counterpart")
        return _replaced(draft, node, text, Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _replaced(draft: Draft, node: ast.expr, text: str, applicability: Applicability) -> Fix:
    parent = draft.source.parents.get(node)
    if isinstance(parent, ast.expr) and not (isinstance(parent, ast.Call) and parent.func is not node):
        text = primary(text)
    short = " ".join(text.split())
    return draft.replace(
        f"Use `{short if len(short) < 50 else short[:47] + '...'}`",
        [draft.source.swap(node, text)],
        applicability,
        uses_torch=False,
    )
