"""Conversions to another dtype in words that strict tracing does not check: `t.float()` as `t.type_as(...)`."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh

# The methods that convert, and the dtype that those without arguments convert to.
CONVERSIONS = {
    "to": None,
    "type": None,
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "bool": "bool",
}


def by_type_as(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`y.float()` -> `y.type_as(torch.empty((), dtype=torch.float32, device=y.device))`, and `y.to(x.dtype)` in the same way."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            raise Refused("the conversion is not a call of a method")
        dtype = _dtype(draft, node)
        owner = node.func.value
        name, text = dotted(owner), source.of(owner)
        if name is None:
            scopes = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
            if any(isinstance(each, scopes) for each in source.ancestors(node)):
                raise Refused("what is converted needs a name: bind it before")
            name = fresh("converted", draft.taken(source.tree))
            text = f"({name} := {text})"
        like = f"{draft.torch}.empty((), dtype={dtype}, device={name}.device)"
        return draft.replace(
            "Convert by `.type_as`", [source.swap(node, f"{text}.type_as({like})")], Applicability.SAFE
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _dtype(draft: Draft, node: ast.Call) -> str:
    """The text of the dtype that is converted to. Raises Refused."""
    assert isinstance(node.func, ast.Attribute)
    known = CONVERSIONS[node.func.attr]
    if known is not None:
        if node.args or node.keywords:
            raise Refused("a memory format is asked for")
        return f"{draft.torch}.{known}"
    given = [*node.args, *(key.value for key in node.keywords)]
    names = {key.arg for key in node.keywords}
    if len(given) != 1 or names - {"dtype"} or not _is_dtype(draft, given[0], bool(names)):
        raise Refused("which dtype is converted to is not written alone: write the device by itself")
    return draft.source.of(given[0])


def _is_dtype(draft: Draft, node: ast.expr, named: bool) -> bool:
    text = draft.qualified(node)
    return (
        named
        or (isinstance(node, ast.Attribute) and node.attr == "dtype")
        or (text.startswith("torch.") and text.rpartition(".")[2] in _DTYPES)
    )


_DTYPES = frozenset(
    {"float", "float32", "float64", "double", "float16", "half", "bfloat16", "int", "int8", "int16", "int32", "int64", "long", "short",
     "uint8", "bool"}
)  # fmt: skip
