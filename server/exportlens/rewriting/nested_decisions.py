"""Decisions on tensor data inside of code that a rewrite has made: they are converted one after the other until none is left."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.rewriting.arms.floats_deeper import floats_held_deeper
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.decisions import hazard_among
from exportlens.rewriting.kinds.kinds import Kinds

# The whole text in which the decision `node` of `source` is converted, by the kinds before it and torch's name there. Handed
# on, as what converts a decision converts those inside of it.
Convert = Callable[[Source, ast.AST, Kinds, str], str]

MOST_NESTED = 30


def settled(text: str, functions: list[str], kinds: Kinds, torch: str, convert: Convert) -> str:
    """`text` where what hangs on tensor data inside of the new `functions` is converted, too."""
    for _ in range(MOST_NESTED):
        source = Source(text)
        found = None
        for function in ast.walk(source.tree):
            if isinstance(function, ast.FunctionDef) and function.name in functions:
                found = hazard_among(source, function.body, kinds.copy(), torch)
                if found is not None:
                    break
        if found is None:
            return floats_held_deeper(text, functions, kinds, torch)
        node, now = found
        text = convert(source, node, now, torch)
    raise Refused("branches on tensor data are nested too deeply")
