"""Causes that only a real export shows: from torch's words and the blamed line to the fix that a rule would
offer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from exportlens.finding import Fix, Refusal
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.registrations import without_cache_at

# torch/_dynamo and torch/export/_trace.py: an output of a class that is no registered pytree.
_UNKNOWN_OUTPUT = re.compile(
    r"(?:unrecognized type \w+\((\w+)\) at output|Found <class '([\w.]+)'> in output)"
)


@dataclass(frozen=True, slots=True)
class RuntimeCause:
    """What a rule would say: its code, and the fix. `changes_outputs`: the original cannot be compared
    with."""

    code: str
    fix: Fix
    changes_outputs: bool = False


def cause_of(message: str, line: int, context: RewriteContext) -> RuntimeCause | Refusal | None:
    """The known cause behind torch's `message` on `line` (from 0) of the document; None where there is
    none."""
    found = _UNKNOWN_OUTPUT.search(message)
    if found is None:
        return None
    name = (found[1] or found[2]).rpartition(".")[2]
    if not name.endswith("Cache"):
        return Refusal(f"`{name}` in the output is no class that torch knows: register it, or return tensors")
    fix = without_cache_at(line, context)
    return fix if isinstance(fix, Refusal) else RuntimeCause("EXL602", fix, changes_outputs=True)
