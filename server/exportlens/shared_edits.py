"""Edits that several fixes make alike, and that are made once: each state of a plain class that becomes a buffer makes the class a Module."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exportlens.finding import Edit

_OF_CLASS = re.compile(r"\((\w+\.)*Module\)|(, )?(\w+\.)*Module(, )?|super\(\)\.__init__\(\)\s*")


def is_shared(edit: Edit, others: Iterable[Edit]) -> bool:
    """Whether one of `others` is the same edit, by which a class becomes a Module."""
    return _OF_CLASS.fullmatch(edit.content.strip(" ")) is not None and edit in others


def made_once(edits: Iterable[Edit]) -> list[Edit]:
    """`edits` without those that an earlier one makes as well."""
    found: list[Edit] = []
    for edit in edits:
        if not is_shared(edit, found):
            found.append(edit)
    return found
