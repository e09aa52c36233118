"""What a rewrite gets to know: the document that it edits, and the torch that it writes for."""

from __future__ import annotations

from dataclasses import dataclass

from exportlens.outcome import Mode, TorchVersion
from exportlens.source.document import Document


@dataclass(frozen=True)
class RewriteContext:
    """The document of the place (as it is now), the user's torch and the modes asked for."""

    document: Document
    version: TorchVersion
    modes: tuple[Mode, ...]
