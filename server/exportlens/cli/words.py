"""Words on a command line as users write them."""

from __future__ import annotations


def separated(words: tuple[str, ...]) -> list[str]:
    """Names that were given one by one, or with commas between them."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]
