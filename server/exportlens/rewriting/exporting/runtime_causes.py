"""Causes that only a real export shows: from torch's words and the blamed line to the fixes that a rule would
offer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, first_line
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.exporting.output_classes import register_class
from exportlens.rewriting.exporting.suggested_shapes import apply_suggestions
from exportlens.rewriting.state.registrations import without_cache_at
from exportlens.source.parsing import parse_python

# torch/_dynamo and torch/export/_trace.py: an output of a class that is no registered pytree.
_UNKNOWN_OUTPUT = re.compile(
    r"(?:unrecognized type \w+\((\w+)\) at output|Found <class '([\w.<>]+)'> in output)"
)
# torch/fx/experimental/symbolic_shapes.py: what would decide a guard on a size that comes from data.
_CHECKS = re.compile(r"^\s*\d+\. (torch\._check\(.+\))\s*$", re.M)


@dataclass(frozen=True, slots=True)
class RuntimeCause:
    """What a rule would say: its code, and the fix."""

    code: str
    fix: Fix


def causes_of(words: str, line: int | None, context: RewriteContext) -> Iterator[RuntimeCause]:
    """The ways out that torch's `words` on `line` (from 0) of the document lead to, best first."""
    for code, fix in _known(words, line, context):
        if isinstance(fix, Fix):
            yield RuntimeCause(code, fix)


def _known(words: str, line: int | None, context: RewriteContext) -> Iterator[tuple[str, Fix | Refusal]]:
    found = _UNKNOWN_OUTPUT.search(words)
    if found is not None:
        name = (found[1] or found[2]).rpartition(".")[2]
        if not name.endswith("Cache"):
            yield "EXL601", register_class(name, context)
        elif line is not None:
            yield "EXL602", without_cache_at(line, context)
    suggested = apply_suggestions(words, context)
    if suggested is not None:
        yield "EXL418", suggested
    if line is not None:
        # torch asks for either answer; that a number of the data is one number and no other is rarely what is meant
        for check in sorted(_CHECKS.findall(words), key=lambda each: "==" in each):
            yield "EXL408", check_size(check, line, context)


def check_size(check: str, line: int, context: RewriteContext) -> Fix | Refusal:
    """`check`, a torch._check that torch asks for, in front of the statement on `line` (from 0)."""
    try:
        asked = parse_python(check, mode="eval").body
        placed = context.document.chunk_at(line)
        if placed is None or not isinstance(asked, ast.Call):
            raise Refused("the line that torch blames is not in this file")
        draft = Draft.of_chunk(placed.chunk, context)
        row = line - first_line(context.document, placed.chunk) + 1
        statements = [
            node
            for node in ast.walk(draft.source.tree)
            if isinstance(node, ast.stmt)
            and not isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.lineno <= row <= (node.end_lineno or node.lineno)
        ]
        if not statements:
            raise Refused("no statement stands on the line that torch blames")
        statement = max(statements, key=lambda node: node.lineno)
        unknown = [
            node.id
            for node in ast.walk(asked)
            if isinstance(node, ast.Name) and re.match(r"[suz]\d", node.id)
        ]
        if unknown:
            raise Refused(f"torch names the size `{unknown[0]}`, which has no name in the code")
        text = ast.unparse(asked).replace("torch.", f"{draft.torch}.", 1)
        start = draft.source.start(statement)
        gap = draft.source.newline + draft.source.indent_of(statement)
        swap = Replacement(start, start, text + gap)
        return draft.replace(f"Tell torch by `{text}`", [swap], Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
