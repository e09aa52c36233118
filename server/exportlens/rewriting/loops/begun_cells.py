"""A cell of torch whose state a caller may leave out begins with zeros, which the cell makes itself in its first round: the loop
that carries the state is given them.

                                           if h is None:
                                               h = x.new_zeros(*x.shape[:-1], self.cell.hidden_size)
    while t(h):                            while t(h):
        h = self.cell(x, h)        ->          h = self.cell(x, h)

torch/nn/modules/rnn.py makes them of the dtype and on the device of the input.
"""

from __future__ import annotations

import ast

from exportlens.inference.knowledge import canonical_name
from exportlens.inference.values import Instance, Named
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import assigned_pairs, bound, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.first_rounds import holds
from exportlens.rewriting.loops.none_at_first import none_at_first, none_before
from exportlens.rewriting.loops.rounds import has_rounds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.source.walking import walk

Loop = ast.For | ast.While
# How many tensors the state of a cell is.
_PARTS = {"torch.nn.GRUCell": 1, "torch.nn.RNNCell": 1, "torch.nn.LSTMCell": 2}


def begun_cells(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop] | None:
    """The text with the states before `loop`, and the loop of it; None where one of what may be None is no such state."""
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop):
        return None
    asked = none_at_first(source, loop, kinds)
    unset = none_before(source, loop)
    names = [*asked, *unset]
    if not names:
        return None
    rounds = holds(loop.test, kinds) if isinstance(loop, ast.While) else has_rounds(loop.iter, kinds)
    read_after = set() if rounds else Liveness(function).live_after(loop)
    indent, nl = source.indent_of(loop), source.newline
    lines = []
    for name in names:
        # A loop without rounds leaves None.
        made = None if name in read_after else _zeros(source, loop, name, kinds)
        if made is None:
            return None
        if name in unset:
            lines.append(f"{name} = {made}")
        else:
            lines += [f"if {name} is None:", f"{source.indent_unit()}{name} = {made}"]
    begin = source.start(loop)
    head = "".join(f"{line}{nl}{indent}" for line in lines)
    swaps = [swap for each in unset.values() if (swap := source.without(each)) is not None]
    changed = Source(replaced(source.text, [*swaps, Replacement(begin, begin, head)]))
    begin += len(head) - sum(each.end - each.start - len(each.text) for each in swaps)
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin)


def _zeros(source: Source, loop: Loop, name: str, kinds: Kinds) -> str | None:
    """What the first round's cell takes for the state `name` that is None; None where the round does something else with it."""
    for n, each in enumerate(loop.body):
        if name not in reads(each) and name not in bound(each):
            continue
        pairs = assigned_pairs(each) if isinstance(each, (ast.Assign, ast.AnnAssign)) else []
        if len(pairs) != 1 or not isinstance(pairs[0][0], (ast.Name, ast.Tuple)):
            return None
        call = pairs[0][1]
        if not isinstance(call, ast.Call) or name not in bound(each):
            return None
        changed = set(bound(loop.body[:n])) | (
            set(bound(loop.target)) if isinstance(loop, ast.For) else set()
        )
        return _of_cell(source, call, name, kinds, changed)
    return None


def _of_cell(source: Source, call: ast.Call, name: str, kinds: Kinds, changed: set[str]) -> str | None:
    instance = kinds.of(call.func).value
    if not isinstance(instance, Instance) or not isinstance(instance.cls, Named):
        return None
    parts = _PARTS.get(canonical_name(instance.cls.name), 0)
    given = call.args + [each.value for each in call.keywords if each.arg == "hx"]
    if not parts or len(given) != 2 or len(call.args) + len(call.keywords) != 2:
        return None
    value, state = given
    if not isinstance(state, ast.Name) or state.id != name or name in reads(value):
        return None
    # Before the loop they are what the first round finds.
    if (reads(value) | reads(call.func)) & changed or not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    if not repeatable(call.func, kinds) or kinds.of(value).what != "tensor":
        return None
    like = source.of(value)
    zeros = f"{like}.new_zeros(*{like}.shape[:-1], {source.of(call.func)}.hidden_size)"
    return zeros if parts == 1 else f"({', '.join([zeros] * parts)})"
