"""Operators of an old-style library without a kernel for tracing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.libraries import to_custom_op
from exportlens.rule import Example, Report, Rule

_HEAD = """
import torch
from torch import nn

library = torch.library.Library("exportlens_legacy", "DEF")
library.define("triple(Tensor x) -> Tensor")


@torch.library.impl(library, "triple", "CPU")
def triple(x):
    return x * 3
"""
_META = """

@torch.library.register_fake("exportlens_legacy::triple")
def _(x):
    return torch.empty_like(x)
"""
_MODEL = """

class M(nn.Module):
    def forward(self, x):
        return torch.ops.exportlens_legacy.triple(x)
"""


class LibraryWithoutMeta(Rule):
    """An operator defined with `torch.library.Library` runs on real devices only.

    ## What it does
    Finds calls of `torch.ops.<namespace>.<name>` that the same file defines by `torch.library.Library` or
    `torch.library.define`, with no fake kernel, Meta kernel or composite implementation.

    ## Why it matters
    Tracing runs operators on tensors without data, and such an operator has no kernel for them.
    `torch.library.custom_op` with `register_fake` is the current way.

    ## References
    - https://docs.pytorch.org/docs/stable/library.html
    """

    code = "EXL708"
    name = "library-without-meta"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("torch.ops.*",)
    examples = (Example(bad=_HEAD + _MODEL, good=_HEAD + _META + _MODEL),)

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        parts = place.name.split(".")
        if len(parts) < 4:
            return
        namespace, name = parts[2], parts[3]
        text = place.site.scope.document.text
        if not re.search(rf"define\(\s*['\"]({re.escape(namespace)}::)?{re.escape(name)}\b", text):
            return
        if re.search(r"register_fake|impl_abstract|['\"](Meta|Composite\w+)['\"]", text):
            return
        yield self.report(
            place,
            f"The operator `{namespace}::{name}` has no kernel for tracing: register its shape with "
            f'torch.library.register_fake("{namespace}::{name}").',
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.site.scope.path != context.document.path:
            return Refusal("the operator is defined in another file")
        namespace, name = report.place.name.split(".")[2:4]
        return to_custom_op(namespace, name, context)
