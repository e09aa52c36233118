"""State that a method begins which no call leads to, as `reset` is called before the model runs, and each call carries on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.begun_outside import named_from_forward
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Instance, Sequence, Tensor, Value
from exportlens.rewriting.state.begun_before_calls import begins

from exportlens_rules.mutation.begun_elsewhere import is_set_back, methods_of
from exportlens_rules.mutation.computed_state import parts_of
from exportlens_rules.mutation.read_by_others import is_read
from exportlens_rules.mutation.state_reads import loaded, read_before
from exportlens_rules.reading import ancestors

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_begun_before_calls(place: AttributeWrite) -> bool:
    """Whether the call reads the tensors that the attribute held before it binds new ones, and no constructor begins it but a method
    that nothing of the call is named like."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    known = place.old is not None or place.began is not None
    if (known and not _is_nested(place.began)) or place.elsewhere or place.augmented:
        return False
    if is_set_back(place):
        return False
    if not isinstance(place.owner, Instance) or place.owner.traced or statement is None or target is None:
        return False
    if function is None or not isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if not any(isinstance(each, Tensor) and each.origin != "constant" for each in _leaves(place.value)):
        return False
    path = ast.dump(loaded(target))
    others = (is_read(reader, node, path) for reader, node in place.readers if reader is not function.node)
    if not read_before(function.node, statement, target) and not (place.site.certain and any(others)):
        return False
    chunks = [placed.chunk for placed in function.scope.document.placed]
    called = named_from_forward(each for chunk in chunks for each in chunk.body)
    writers = [each for each in methods_of(place.owner) if begins(each, f"self.{place.attr}")]
    return any(each.name not in called for each in writers) and all(
        each is function.node or each.name not in called for each in writers
    )


def _is_nested(value: Value | None) -> bool:
    """Whether `value` holds tuples or lists of tensors, which are judged here alone."""
    return isinstance(value, Sequence) and any(
        isinstance(each, Sequence) and any(True for _ in _leaves(each)) for each in value.items or ()
    )


def _leaves(value: Value) -> Iterator[Value]:
    for part in parts_of(value):
        if isinstance(part, Sequence) and part is not value:
            yield from _leaves(part)
        else:
            yield part
