"""Syntax that is newer than the Python that runs us."""

from __future__ import annotations

import sys


def newer_syntax_note(text: str) -> str | None:
    """A sentence when `text`, which `ast` could not parse, is valid syntax of a newer Python; None otherwise.

    Asks libcst, whose grammar does not depend on the running Python; meant for a report, not for every
    keystroke.
    """
    import libcst

    try:
        libcst.parse_module(text)
    except Exception:
        return None
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"this is newer syntax that Python {running}, which runs exportlens, cannot read; "
        "run exportlens with a newer Python"
    )
