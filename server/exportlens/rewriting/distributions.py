"""Distributions are made without the check of their parameters, which is an `if` on their values."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.text import Replacement


def without_validation(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`validate_args=False` among the arguments of the constructor."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused("the arguments of the distribution are not written out")
        if any(key.arg in (None, "validate_args") for key in node.keywords):
            raise Refused("whether the distribution checks its parameters is decided elsewhere")
        given: list[ast.AST] = [*node.args, *(key.value for key in node.keywords)]
        end = max((draft.source.end(each) for each in given), default=None)
        if end is None:
            raise Refused("the distribution has no parameters")
        if ")" in draft.source.text[end : draft.source.end(node) - 1]:
            # The last argument stands in parentheses.
            end = draft.source.end(node) - 1
        return draft.replace(
            "Make it with validate_args=False",
            [Replacement(end, end, ", validate_args=False")],
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
