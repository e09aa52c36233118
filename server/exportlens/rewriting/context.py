"""What a rewrite gets to know: the document that it edits, and the torch that it writes for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from exportlens.outcome import Mode, TorchVersion
from exportlens.source.document import Document

# Statements of other files in which a name occurs, each with what that file imports (local name -> qualified name).
Elsewhere = Callable[[str], Iterable[tuple[ast.stmt, Mapping[str, str]]]]


def nowhere(name: str) -> Iterable[tuple[ast.stmt, Mapping[str, str]]]:
    """No other file is known."""
    return ()


@dataclass(frozen=True)
class RewriteContext:
    """The document of the place (as it is now), the user's torch, the modes asked for, and what is known of other files."""

    document: Document
    version: TorchVersion
    modes: tuple[Mode, ...]
    elsewhere: Elsewhere = nowhere
