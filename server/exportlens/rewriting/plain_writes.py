"""`setattr(self, "state", value)` with a name that is written out, as `self.state = value`: the same, where other rewrites see it."""

from __future__ import annotations

import ast
import keyword

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused


def written_plainly(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes each such call of the class as an assignment."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        calls = [
            each
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Expr) and name_written_by(each.value) == place.attr
        ]
        swaps = []
        for each in calls:
            assert isinstance(each.value, ast.Call)
            owner, _, value = each.value.args
            text = source.of(value)
            if isinstance(owner, ast.Name) and not isinstance(value, ast.Starred):
                # A call holds its argument together over several lines.
                several = "\n" in text and not text.startswith(("(", "[", "{"))
                swaps.append(
                    source.swap(each, f"{owner.id}.{place.attr} = {f'({text})' if several else text}")
                )
        if not swaps or place.attr.startswith("__"):
            raise Refused("what is written to is not named where it is written")
        return draft.replace("Write it as an assignment", swaps, Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def name_written_by(node: ast.AST) -> str | None:
    """The attribute that `setattr(owner, "name", value)` writes, where the name is written out."""
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and len(node.args) == 3
        and not node.keywords
    ):
        return None
    name = node.args[1]
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    plain = name.value.isidentifier() and not keyword.iskeyword(name.value)
    return name.value if plain else None
