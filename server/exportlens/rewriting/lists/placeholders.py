"""What stands in a name before a list has an item for it: nothing reads it, and torch.cond and while_loop take it in."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import append_of, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

_FLOATS = ("float", "float16", "bfloat16", "float32", "float64")


def placeholder(
    source: Source,
    function: Function,
    start: ast.stmt,
    appends: list[ast.stmt],
    kinds: Kinds,
    torch: str,
    by_rounds: bool,
) -> str | None:
    """A zero like what is appended, or None as text where the shape is not known and the number of the round says `by_rounds`
    whether there is an item; None where there is no such value."""
    found = [appended_kind(function, each, kinds) for each in appends]
    first = found[0]
    if all(each.what in ("scalar", "number") and each.type == first.type for each in found):
        return {"float": "0.0", "int": "0"}.get(first.type)
    if any(each.what not in ("tensor", "unknown") for each in found):
        return None
    single = all(each.what == "tensor" and each.rank == 0 and each.dtype == first.dtype for each in found)
    if single and first.dtype is None:
        # What is computed of one tensor only mostly has its dtype.
        like = _like(source, function, start, appends, None, kinds)
        if like is not None:
            return f"{like}.new_zeros(())"
    if single and first.dtype in _FLOATS:
        like = _like(source, function, start, appends, first.dtype, kinds)
        return f"{torch}.zeros(())" if like is None else f"{like}.new_zeros(())"
    held = _held(function, start, appends, first, kinds)
    if held is not None:
        return f"{torch}.zeros_like({held})"
    return "None" if by_rounds else None


def _held(
    function: Function, start: ast.stmt, appends: list[ast.stmt], kind: Kind, kinds: Kinds
) -> str | None:
    """The name of what is appended, where it is a tensor before the loop as well, which stays of one shape there."""
    names = set()
    for each in appends:
        found = append_of(each)
        assert found is not None
        value = found[1]
        while (
            isinstance(value, ast.Call)
            and not value.args
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("clone", "detach")
        ):
            value = value.func.value
        names.add(value.id if isinstance(value, ast.Name) else "")
    name = names.pop()
    if names or name not in certainly_bound_before(function, start):
        return None
    known = kinds_before(function, start, kinds).names.get(name, UNKNOWN_KIND)
    same = known.what == kind.what == "tensor" and (known.rank, known.dtype) == (kind.rank, kind.dtype)
    return name if same else None


def appended_kind(function: Function, append: ast.stmt, kinds: Kinds) -> Kind:
    """What `append` adds to its list."""
    found = append_of(append)
    assert found is not None
    return kinds_before(function, append, kinds).of(found[1])


def _like(
    source: Source,
    function: Function,
    start: ast.stmt,
    appends: list[ast.stmt],
    dtype: str | None,
    kinds: Kinds,
) -> str | None:
    """A name that certainly is a tensor of the dtype where the list begins, and is read beside what appends to it: the only one of
    floats, where the dtype is not known."""
    certain = certainly_bound_before(function, start)
    now = kinds_before(function, start, kinds)
    block, at = source.block_of(start)
    beside = [each for each in block[at + 1 :] if any(one in appends for one in walk(each))]
    tensors = {
        name: known.dtype
        for name in sorted(reads(beside) & certain)
        if (known := now.names.get(name, UNKNOWN_KIND)).what == "tensor"
    }
    if dtype is None:
        floats = [name for name, known in tensors.items() if known is None or known in _FLOATS]
        return floats[0] if len(floats) == 1 else None
    return next((name for name, known in tensors.items() if known == dtype), None)
