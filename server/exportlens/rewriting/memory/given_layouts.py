"""How tensors lie in memory that a function is given: `self.solve(x[:, 0])` gives one with gaps, `self.solve(x.t())` one in another
order.

torch.cond and while_loop take one order of dimensions in memory (measured on torch 2.13), and the function alone does not tell what
it is given.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.code.callers import calls_of
from exportlens.rewriting.code.names import arguments
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import LOCAL, Kind, merged
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before

_FURTHEST = 3


def lay_as_given(source: Source, function: Function, node: ast.AST, kinds: Kinds) -> None:
    """Let `kinds`, those just before `node`, know which names of `function` hold tensors that callers give in another order, or with
    gaps, or what is computed of such."""
    parameters = {each.arg for each in arguments(function.args)} - {"self"}
    asked = parameters & {
        root for kind in kinds.names.values() if kind.what == "tensor" for root in kind.roots or ()
    }
    given = _Given(source, kinds).of(function, asked, 0) if asked else {}
    same: dict[int, Kind] = {}
    for name, kind in list(kinds.names.items()):
        if kind.what != "tensor" or kind.rank in (0, 1):
            continue
        laid = [given[root] for root in sorted(kind.roots or ()) if root in given]
        moved, parted = any(each.moved for each in laid), any(each.parted for each in laid)
        if (moved and not kind.moved) or (parted and not kind.parted):
            # Names for the very same tensor keep one kind, by which they are known.
            changed = replace(kind, moved=kind.moved or moved, parted=kind.parted or parted)
            kinds.names[name] = same.setdefault(id(kind), changed)
    turned = {name: kind for name, kind in given.items() if kind.moved or kind.parted}
    if turned:
        _lay_what_is_computed(function, source.enclosing_statement(node), turned, kinds)


def _lay_what_is_computed(function: Function, goal: ast.stmt, turned: dict[str, Kind], kinds: Kinds) -> None:
    """`v = b * 2` lies as `b` does, which is among the parameters that are `turned`."""
    start = kinds.copy()
    for name, laid in turned.items():
        known = start.names.get(name)
        if known is not None and known.what == "tensor":
            start.names[name] = replace(known, moved=laid.moved, parted=laid.parted)
    followed = kinds_before(function, goal, start).names
    for name, kind in list(kinds.names.items()):
        now = followed.get(name)
        if now is None or not (now.what == kind.what == "tensor") or kind.rank in (0, 1):
            continue
        if (now.moved and not kind.moved) or (now.parted and not kind.parted):
            kinds.names[name] = replace(kind, moved=kind.moved or now.moved, parted=kind.parted or now.parted)


class _Given:
    def __init__(self, source: Source, kinds: Kinds) -> None:
        self.source, self.kinds = source, kinds

    def of(self, function: Function, parameters: set[str], depth: int) -> dict[str, Kind]:
        """What is known of the memory of what the calls of `function` give to `parameters`."""
        found: dict[str, Kind] = {}

        def see(given: dict[str, ast.expr], now: Kinds, caller: Function) -> None:
            for name in parameters & set(given):
                kind = _laid(given[name], now)
                if depth < _FURTHEST and caller.name != "forward":
                    handed = {root.removeprefix(LOCAL) for root in kind.roots or ()}
                    own = handed & {each.arg for each in arguments(caller.args)}
                    for each in self.of(caller, own, depth + 1).values() if own else ():
                        kind = replace(
                            kind, moved=kind.moved or each.moved, parted=kind.parted or each.parted
                        )
                found[name] = merged([found[name], kind]) if name in found else kind

        calls_of(self.source, function, self.kinds, see)
        return found


def _laid(node: ast.expr, kinds: Kinds) -> Kind:
    """The kind of `node`; an item of a list that may hold parts of other tensors may lie in any way."""
    kind = kinds.of(node)
    if kind.what != "unknown" or not isinstance(node, ast.Subscript):
        return kind
    listed = kinds.of(node.value)
    return replace(kind, parted=listed.what == "container" and listed.roots != frozenset())
