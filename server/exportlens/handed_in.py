"""The fix for a class that is handed what decides: its layers, say, which only those that make it know.

class Wrapper(nn.Module):
    def __init__(self, cell):           class M(nn.Module):
        self.cell = cell                    def __init__(self):
                                                self.wrapper = Wrapper(nn.GRUCell(4, 4))
"""

from __future__ import annotations

from collections.abc import Mapping

from exportlens.finding import Fix
from exportlens.inference.classes import class_order
from exportlens.inference.values import ClassValue, Instance, Named, Sequence, Value
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.kinds.kind import of_value
from exportlens.rule import Report

# How deep what Modules hold is compared, and of how many entry points: a class that many extend is asked for many.
_MOST_DEEP, _MOST_ENTRIES = 6, 4


def fix_of_all(report: Report, context: RewriteContext) -> Fix | None:
    """The fix for what other entry points found than that of `report`; None where one of them has none, they know different things,
    for which one fix may not do, or there are many."""
    if len(report.elsewhere) > _MOST_ENTRIES:
        return None
    fixes: list[Fix] = []
    for each in report.elsewhere:
        try:
            fix = each.rule.fix(each, context)
        except Refused:
            return None
        if not isinstance(fix, Fix):
            return None
        if fixes and fix.edits != fixes[0].edits and not _know_alike(report.elsewhere[0], each):
            return None
        fixes.append(fix)
    return fixes[0] if fixes else None


def _know_alike(one: Report, other: Report) -> bool:
    """Whether the names at both places have values of one kind each."""
    first: Mapping[str, Value] = getattr(one.place, "variables", {})
    second: Mapping[str, Value] = getattr(other.place, "variables", {})
    return (
        bool(first)
        and first.keys() == second.keys()
        and all(_alike(value, second[name], 0) for name, value in first.items())
    )


def _alike(one: Value, other: Value, depth: int) -> bool:
    if depth > _MOST_DEEP:
        return False
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        items = zip(one.items or (), other.items or (), strict=False)
        same = one.kind == other.kind and len(one.items or ()) == len(other.items or ())
        return same and all(_alike(*pair, depth + 1) for pair in items)
    if not isinstance(one, Instance) or not isinstance(other, Instance):
        kinds = [of_value(each, "") for each in (one, other)]
        return kinds[0].what == kinds[1].what and kinds[0].type == kinds[1].type
    if not _of_one_class(one.cls, other.cls):
        return False
    held, theirs = one.attributes, other.attributes
    # Of a layer of torch's the class tells what it gives.
    names = (
        {"__items__"} & (held.keys() | theirs.keys())
        if isinstance(one.cls, Named)
        else held.keys() | theirs.keys()
    )
    return all(
        each in held and each in theirs and _alike(held[each], theirs[each], depth + 1) for each in names
    )


def _of_one_class(one: Value, other: Value) -> bool:
    """Whether both are one class, or differ only in constructors."""
    if isinstance(one, Named) and isinstance(other, Named):
        return one.name == other.name
    if not isinstance(one, ClassValue) or not isinstance(other, ClassValue):
        return False
    orders = [[each for each in class_order(cls) if isinstance(each, ClassValue)] for cls in (one, other)]
    nodes = [{each.node for each in order} for order in orders]
    apart = nodes[0] ^ nodes[1]
    return bool(nodes[0] & nodes[1]) and all(
        getattr(each, "name", "__init__") == "__init__" for node in apart for each in node.body
    )
