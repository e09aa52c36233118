"""What a rewrite gets to know: the document that it edits, and the torch that it writes for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from exportlens.inference.examples import StateInSizes
from exportlens.outcome import Mode, TorchVersion
from exportlens.source.document import Chunk, Document

# Chunks of other files in which one of some names occurs, each with what that file imports (local name -> qualified name).
Elsewhere = Callable[[frozenset[str]], Iterable[tuple[Chunk, Mapping[str, str]]]]


def nowhere(names: frozenset[str]) -> Iterable[tuple[Chunk, Mapping[str, str]]]:
    """No other file is known."""
    return ()


def never() -> bool:
    """Nobody loses interest."""
    return False


def anything(node: ast.AST) -> bool:
    """Whatever there is to report is reported."""
    return True


@dataclass(frozen=True)
class RewriteContext:
    """The document of the place (as it is now), the user's torch, the modes asked for, what is known of other files,
    whether nobody wants the rewrite any longer (it raises Cancelled then, sooner or later), whether something is
    reported of a node, whether models are exported in training mode, and what models write to attributes where they get the file's
    example inputs."""

    document: Document
    version: TorchVersion
    modes: tuple[Mode, ...]
    elsewhere: Elsewhere = nowhere
    cancelled: Callable[[], bool] = never
    reported: Callable[[ast.AST], bool] = anything
    training: bool = False
    state_in_sizes: Callable[[], StateInSizes] = dict
