"""A failure in words for people; torch's own stand in the report, in the log and at the line."""

from __future__ import annotations

import re

from exportlens.export.report import Report

# Pieces of torch's messages (torch/_dynamo/graph_break_registry.json, torch/fx/experimental/symbolic_shapes.py,
# torch/_export/utils.py) and what they come to. The first that fits counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"Data-dependent branching|guard on data-dependent|data-dependent control flow",
     "Python would have to decide something by the values of a tensor, which are not known while tracing"),
    (r"Constraints violated|Not all values of .* are valid|marked .* as dynamic",
     "a size that was declared dynamic is not free: the model fixes or restricts it"),
    (r"Could not extract specialized integer|data-dependent (?:value|symbol|expression)",
     "a size or an index would come from the values of a tensor, which are not known while tracing"),
    (r"\.item\(\)|_local_scalar_dense|Tensor\.tolist|to a Python (?:number|scalar)",
     "the value of a tensor would have to become a Python number while tracing"),
    (r"is not a known type|unrecognized type .* at output|It looks like one of the (?:in|out)puts",
     "an input or output is an object of a class that torch.export does not know"),
    (r"\.numpy\(\) is not supported|numpy\(\) method|NumPy",
     "NumPy cannot take part in what is traced"),
    (r"frozen storage", "a tensor is written to that torch.export has frozen"),
    (r"fake (?:kernel|impl\w*)|register_fake|meta (?:kernel|impl\w*)",
     "an operator has no rule for shapes alone (a fake kernel)"),
    (r"context manager", "a context manager cannot be traced"),
)  # fmt: skip
# Failures whose message is ours, or the words of the user's own code: they are shown as they are.
_OURS = frozenset({
    "import", "construct", "inputs", "eager", "mismatch",
    "timeout", "memory", "crash", "cancelled", "unavailable",
})  # fmt: skip


def meaning(report: Report) -> str | None:
    """What the report's failure comes to, as a clause without a full stop; None where its own message says it best, or
    where nothing is known of torch's message.
    """
    failure = report.failure or next((target.failure for target in report.targets if target.failure), None)
    if failure is None or failure.kind in _OURS:
        return None
    words = [failure.message]
    words += [finding.data.get("gb_type", "") for finding in report.findings]
    for text in reversed(words):
        for pattern, plain in _MEANINGS:
            if text and re.search(pattern, text, re.I):
                return plain
    return None
