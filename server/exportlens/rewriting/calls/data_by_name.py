"""`torch.tensor(data=...)`: what non-strict tracing looks for among the arguments without a name."""

from __future__ import annotations

import re

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused, plain_call
from exportlens.rewriting.code.text import Replacement

_NAME = re.compile(r"data\s*=\s*")


def data_without_name(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.tensor([1, 2], dtype=d)` for `torch.tensor(data=[1, 2], dtype=d)`."""
    try:
        draft, node = plain_call(place, context)
        source = draft.source
        data = next(key for key in node.keywords if key.arg == "data")
        start = source.start(data)
        name = _NAME.match(source.text, start)
        if data is node.keywords[0] and name is not None:
            change = Replacement(start, name.end(), "")
        else:
            others = [source.of(key) for key in node.keywords if key is not data]
            change = source.swap(
                node, f"{source.of(node.func)}({', '.join([source.of(data.value), *others])})"
            )
        return draft.replace("Give the data without a name", [change])
    except (Refused, LookupError, SyntaxError, StopIteration) as refused:
        return Refusal(str(refused) or "what the tensor is made of is not written in the call")
