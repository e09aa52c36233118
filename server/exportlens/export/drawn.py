"""Proposed tensors as text: `torch.randn(2, 8)` and its like."""

from __future__ import annotations

import re

from exportlens.export.constructors import BATCH, LENGTH, SIDE, WIDTH

ON_CHANNELS = re.compile(r"torch\.randn\((\d+), (\d+), (\d+)\)")
ON_LAST = re.compile(r"torch\.randn\((\d+), (\d+)\)")
"""What a layer takes that works on the last dimension alone: there may be others between."""


def of_rank(rank: int | None) -> str | None:
    """A tensor of so many dimensions: features, sequences, pictures, videos."""
    shapes = {
        2: (BATCH, WIDTH),
        3: (BATCH, LENGTH, WIDTH),
        4: (BATCH, 3, SIDE, SIDE),
        5: (BATCH, 3, LENGTH, SIDE, SIDE),
    }
    return randn(*shapes[rank]) if rank in shapes else None


def with_steps(text: str) -> str:
    """What a layer takes over the last dimension alone, with steps between; states stay as they are."""
    return text if text.startswith("(") else ON_LAST.sub(rf"torch.randn(\1, {LENGTH}, \2)", text)


def tensor(sizes: list[int], kind: str) -> str:
    """A tensor of whole numbers (`Int...`), truth values (`Bool`) or others."""
    shape = ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "")
    if kind.startswith("Int"):
        return f"torch.randint(0, 2, ({shape}))"
    if kind == "Bool":
        return f"torch.rand({shape}) > 0.5"
    return f"torch.randn({', '.join(map(str, sizes))})"


def randn(*sizes: int) -> str:
    """A tensor of normal random numbers."""
    return f"torch.randn({', '.join(map(str, sizes))})"


def tuple_of(parts: list[str]) -> str:
    """A tuple of what these texts stand for."""
    return f"({', '.join(parts)},)"
