"""A number of Python in the place of an expression, and the import of math that it may need."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.finding import Applicability, Fix
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.precedence import primary


def importing_math(draft: Draft, fix: Fix) -> Fix:
    """`fix`, with the import of math where the file has none."""
    if spelled(draft.modules, "math") is not None:
        return fix
    return replace(fix, edits=(import_edit(draft.context.document, "import math"), *fix.edits))


def replaced_number(draft: Draft, node: ast.expr, text: str, applicability: Applicability) -> Fix:
    """The fix that writes `text` for `node`."""
    parent = draft.source.parents.get(node)
    if isinstance(parent, ast.expr) and not (isinstance(parent, ast.Call) and parent.func is not node):
        text = primary(text)
    short = " ".join(text.split())
    return draft.replace(
        f"Use `{short if len(short) < 50 else short[:47] + '...'}`",
        [draft.source.swap(node, text)],
        applicability,
        uses_torch=f"{draft.torch}." in text,
    )
