"""Keyword arguments that a call has to be given."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement


def with_keywords(place: Call, keywords: Mapping[str, str], context: RewriteContext) -> Fix | Refusal:
    """The call with `keywords`, names to the texts of their values, behind its own arguments."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not node.args:
            raise Refused("the arguments are not written in the call")
        if any(key.arg is None or key.arg in keywords for key in node.keywords) or any(
            isinstance(each, ast.Starred) for each in node.args
        ):
            raise Refused("the call takes arguments from a list or dict, which may hold this one")
        last = max([*node.args, *(key.value for key in node.keywords)], key=source.end)
        end, text = source.end(last), ", ".join(f"{name}={value}" for name, value in keywords.items())
        if source.text[end : source.end(node)].strip(" ,\r\n\t") != ")":
            raise Refused("a comment or a bracket follows the last argument")
        return draft.replace(f"Pass `{text}`", [Replacement(end, end, f", {text}")], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
