"""`self.quantize = Quantize.apply`, which a Module of strict tracing does not take: held by functools.partial, it calls the same."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Bound, Function, Instance, Named, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.text import replaced

_APPLY = "torch.autograd.Function.apply"


def is_apply(value: Value) -> bool:
    """Whether `value` is the `apply` of an autograd Function."""
    function = value.function if isinstance(value, Bound) else value
    return isinstance(function, Named) and function.name == _APPLY


def held_by_partial(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """`self.quantize = functools.partial(Quantize.apply)`."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        statement = source.enclosing_statement(source.find(place.node))
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if value is None or isinstance(value, ast.Tuple):
            raise Refused("it is not written as an assignment of one value")
        if not all(
            is_apply(each) or isinstance(each, (Bound, Function, Instance)) for each in options(place.value)
        ):
            raise Refused("it is not certain that what is held can be called in any case")
        partial = spelled(draft.modules, "functools.partial")
        owner = spelled(draft.modules, "functools")
        text = f"{partial or (owner or 'functools') + '.partial'}({source.of(value)})"
        swap = source.swap(value, text)
        fix = draft.fix("Hold it by functools.partial", replaced(source.text, [swap]), uses_torch=False)
        if partial or owner:
            return fix
        return replace(fix, edits=(import_edit(draft.context.document, "import functools"), *fix.edits))
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
