"""A second try for a program with operators that a target does not know: torch takes these apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

MOST_TRIES = 8
"""A target names what it lacks one operator at a time; a program of which more are lacking is not for it."""

Lowered = TypeVar("Lowered")


class CompilerRefused(Exception):
    """A compiler's own words (`diagnostics`), where the exception that this is raised from does not have them."""

    def __init__(self, diagnostics: str) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def lower_in_parts(
    program: Any, lower: Callable[[Any], Lowered], own: Mapping[Any, Callable[..., Any]] | None = None
) -> Lowered:
    """What `lower` makes of the program, or of one in which the operators that it names when it refuses are taken apart.

    Only these are: what a target knows as a whole it has a kernel for. Where it names none, the target's `own`
    decompositions are the last try. Raises what `lower` raises at last.
    """
    table: dict[Any, Any] | None = None
    apart: set[Any] = set()
    for _ in range(MOST_TRIES):
        try:
            return lower(program)
        except Exception as error:
            refused = error
        if table is None:
            table = {**_decompositions(), **(own or {})}
        named = {op for op in _named(program, str(refused)) if op in table} - apart
        if not named and not own:
            break
        apart |= named
        program = program.run_decompositions({op: table[op] for op in named} if named else dict(own or {}))
        own = own if named else None
    raise refused


def _decompositions() -> dict[Any, Any]:
    """What torch makes of each operator that it can take apart."""
    import torch

    table: Any = torch.export.default_decompositions()
    return dict(table.items())


def _named(program: Any, words: str) -> set[Any]:
    """The operators of the program that `words` name: `aten.diff`, `aten::diff.default`, or `diff` alone."""
    tokens = {part for word in re.findall(r"[\w.:]+", words) for part in _spellings(word)}
    return {
        node.target
        for node in program.graph.nodes
        if node.op == "call_function" and getattr(node.target, "_schema", None) is not None
        if node.target._schema.name.partition("::")[2] in tokens
    }


def _spellings(word: str) -> set[str]:
    """The bare name of an operator in one word."""
    bare = word.replace("::", ".").strip(".").removeprefix("torch.")
    parts = bare.split(".")
    return {parts[1]} if parts[0] == "aten" and len(parts) > 1 else {bare}
