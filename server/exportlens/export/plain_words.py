"""A failure in words for people; torch's own stand in the report, in the log and at the line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exportlens.export.report import Report


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a message of torch's comes to: `what` is a clause without a full stop, `step` a sentence."""

    what: str
    step: str


# Pieces of torch's messages (torch/_dynamo/graph_break_registry.json, torch/fx/experimental/symbolic_shapes.py,
# torch/_export/utils.py) and what they come to. The first that fits counts.
_MEANINGS: tuple[tuple[str, Meaning], ...] = tuple(
    (pattern, Meaning(what, step))
    for pattern, what, step in (
        (r"Data-dependent branching|guard on data-dependent|data-dependent control flow",
         "Python would have to decide something by the values of a tensor, which are not known while tracing",
         "Use torch.where, or torch.cond where the branches must stay apart."),
        (r"Constraints violated|Not all values of .* are valid|marked .* as dynamic",
         "a size that was declared dynamic is not free: the model fixes or restricts it",
         "Narrow the Dim to what the model takes, or change what restricts it."),
        (r"Could not extract specialized integer|data-dependent (?:value|symbol|expression)",
         "a size or an index would come from the values of a tensor, which are not known while tracing",
         "Take the size from a shape, or use torch.masked_fill, torch.where or torch.gather on all of the tensor."),
        (r"\.item\(\)|_local_scalar_dense|Tensor\.tolist|to a Python (?:number|scalar)",
         "the value of a tensor would have to become a Python number while tracing",
         "Keep it a tensor, or compute it before the model is called."),
        (r"is not a known type|unrecognized type .* at output|It looks like one of the (?:in|out)puts",
         "an input or output is an object of a class that torch.export does not know",
         "Return tensors, tuples or dicts, or register the class with torch.export.register_dataclass."),
        (r"\.numpy\(\) is not supported|numpy\(\) method|NumPy",
         "NumPy cannot take part in what is traced",
         "Use torch's function of the same name."),
        (r"frozen storage",
         "a tensor is written to that torch.export has frozen",
         "Write to a clone of it."),
        (r"fake (?:kernel|impl\w*)|register_fake|meta (?:kernel|impl\w*)",
         "an operator has no rule for shapes alone (a fake kernel)",
         "Register one with torch.library.register_fake."),
        (r"context manager",
         "a context manager cannot be traced",
         "Leave it out while exporting: torch.compiler.is_exporting() tells."),
    )
)  # fmt: skip
# Failures whose message is ours, or the words of the user's own code: they are shown as they are.
_OURS = frozenset({
    "import", "construct", "inputs", "eager", "mismatch",
    "timeout", "memory", "crash", "cancelled", "unavailable",
})  # fmt: skip


_BY_AN_OPERATOR = Meaning(
    "this operator would have to decide something by a number that comes from the values of a tensor",
    "Tell torch what holds for the number, by torch._check, before the operator.",
)


def explained(*words: str, operator: bool = False) -> Meaning | None:
    """What torch's words come to; the last that are known count. None where nothing is known of them. `operator` says
    that an operator is at fault, and no statement that decides.
    """
    if operator and any("guard on data-dependent" in text for text in words):
        return _BY_AN_OPERATOR
    for text in reversed(words):
        for pattern, plain in _MEANINGS:
            if text and re.search(pattern, text, re.I):
                return plain
    return None


def meaning(report: Report) -> str | None:
    """What the report's failure comes to, as a clause without a full stop; None where its own message says it best, or
    where nothing is known of torch's message.
    """
    failure = report.failure or next((target.failure for target in report.targets if target.failure), None)
    if failure is None or failure.kind in _OURS:
        return None
    found = explained(failure.message, *_graph_breaks(report))
    return found.what if found else None


def _graph_breaks(report: Report) -> Iterable[str]:
    return (finding.data.get("gb_type", "") for finding in report.findings)


_LONGEST = 240


def one_line(words: str, limit: int = _LONGEST) -> str:
    """Words of any length as one line that a list of problems has room for."""
    line = " ".join(words.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
