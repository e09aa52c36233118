"""A state of several tensors that a loop carries in one name, as an LSTMCell gives it, has a name for each of them in the loop:

                                           state_0, state_1 = state
    while t(state[0]):                     while t(state_0):
        state = self.cell(x, state)  ->        state_0, state_1 = self.cell(x, (state_0, state_1))
    return state                           state = (state_0, state_1)
                                           return state

torch's operators carry tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from exportlens.inference.knowledge import canonical_name
from exportlens.inference.values import Instance, Named
from exportlens.rewriting.arms.gradients import none_by_default
from exportlens.rewriting.code.liveness import Liveness, live_before
from exportlens.rewriting.code.names import arguments, bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

Loop = ast.For | ast.While
_OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def parted_states(
    source: Source, loop: Loop, kinds: Kinds, begun: Collection[str] = ()
) -> tuple[Source, Loop, Kinds] | None:
    """The text with the names of the parts, the loop of it, and what is known before it; None where `loop` carries no such state.

    Those of `begun` are pairs before the loop.
    """
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop):
        return None
    entering = live_before([loop], frozenset(), function)
    after = Liveness(function).live_after(loop)
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    before, behind = [], []
    known = kinds.copy()
    for name in sorted(set(bound(loop.body)) & entering):
        made = _made(source, function, name)
        if not made:
            continue
        whole = next((each for each in made if isinstance(each, ast.Tuple)), None)
        if whole is None and all(isinstance(each, ast.Call) and _of_itself(each, name) for each in made):
            # How many there are is not told.
            continue
        count = 2 if whole is None else len(whole.elts)
        parts = [fresh(f"{name}_{number}", taken) for number in range(count)]
        if not _begins_whole(source, function, loop, name, parts, kinds, name in begun):
            continue
        found = _in_loop(source, loop, name, parts, kinds)
        if found is None:
            continue
        swaps += found
        before.append(f"{', '.join(parts)} = {name}")
        if name in after:
            behind.append(f"{name} = ({', '.join(parts)})")
        for part in parts:
            known.names[part] = Kind("tensor", roots=None)
    if not before:
        return None
    indent, nl = source.indent_of(loop), source.newline
    begin, end = source.start(loop), source.span([loop])[1]
    head = "".join(f"{line}{nl}{indent}" for line in before)
    swaps.append(Replacement(begin, begin, head))
    swaps.append(Replacement(end, end, "".join(f"{nl}{indent}{line}" for line in behind)))
    changed = Source(replaced(source.text, swaps))
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin + len(head)), known


def _made(source: Source, function: Function, name: str) -> list[ast.expr]:
    """What statements bind to `name` alone."""
    statements = (each for each in walk(function) if isinstance(each, ast.Assign))
    return [
        each.value
        for each in statements
        if any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
    ]


def _begins_whole(
    source: Source, function: Function, loop: Loop, name: str, parts: list[str], kinds: Kinds, begun: bool
) -> bool:
    """Whether `name` is a tuple of as many tensors as there are `parts` when `loop` begins."""
    stores = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
        and source.start(each) < source.start(loop)
    ]
    whole = [each for each in stores if _binds_parts(source, each, name, parts, kinds)]
    if begun:
        return len(parts) == 2
    if stores or name in none_by_default(function):
        return len(whole) == len(stores) > 0
    annotations = [each.annotation for each in arguments(function.args) if each.arg == name]
    texts = [
        "" if each is None else ast.unparse(each).lower().removeprefix("typing.") for each in annotations
    ]
    return any(
        each.startswith("tuple[") and each.count("tensor") == len(parts) and "..." not in each
        for each in texts
    )


def _in_loop(
    source: Source, loop: Loop, name: str, parts: list[str], kinds: Kinds
) -> list[Replacement] | None:
    """The swaps of what `loop` does with `name`; None where it binds it to something else than so many tensors."""
    swaps = []
    for node in walk(loop):
        if isinstance(node, _OWN_SCOPES) and (name in reads(node) or name in bound(node)):
            return None
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        parent = source.parents[node]
        if isinstance(node.ctx, ast.Load):
            at = _place(parent, node, len(parts))
            swaps.append(
                source.swap(node, f"({', '.join(parts)})") if at is None else source.swap(parent, parts[at])
            )
        elif _binds_parts(source, node, name, parts, kinds):
            text = ", ".join(parts)
            swaps.append(source.swap(node, text if isinstance(parent, ast.Assign) else f"({text})"))
        else:
            return None
    return swaps


def _place(parent: ast.AST, node: ast.Name, count: int) -> int | None:
    """Which of the parts `node[i]` is; None where it is something else."""
    if not isinstance(parent, ast.Subscript) or parent.value is not node:
        return None
    try:
        at = ast.literal_eval(parent.slice)
    except ValueError:
        return None
    return at % count if type(at) is int and -count <= at < count else None


def _binds_parts(source: Source, node: ast.Name, name: str, parts: list[str], kinds: Kinds) -> bool:
    """Whether the statement binds `name` to a tuple of as many tensors as there are `parts`."""
    target: ast.AST = node
    statement = source.parents[node]
    at: int | None = None
    if isinstance(statement, ast.Tuple):
        target, at = statement, statement.elts.index(node)
        statement = source.parents[target]
    if not isinstance(statement, ast.Assign) or statement.targets != [target]:
        return False
    value = statement.value
    if isinstance(value, ast.Call):
        if at is not None:
            # `out, state = self.lstm(x, state)`.
            return at == 1 and len(parts) == 2 and _is_layer(value, kinds, "torch.nn.LSTM")
        return (len(parts) == 2 and _is_layer(value, kinds, "torch.nn.LSTMCell")) or _of_itself(value, name)
    return at is None and isinstance(value, ast.Tuple) and len(value.elts) == len(parts)


def _is_layer(call: ast.Call, kinds: Kinds, layer: str) -> bool:
    instance = kinds.of(call.func).value
    named = isinstance(instance, Instance) and isinstance(instance.cls, Named)
    return named and canonical_name(instance.cls.name) == layer  # type: ignore[union-attr]


def _of_itself(call: ast.Call, name: str) -> bool:
    """Whether it is `tuple(f(each) for each in state)`."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "tuple" and len(call.args) == 1):
        return False
    each = call.args[0]
    return (
        isinstance(each, ast.GeneratorExp)
        and len(each.generators) == 1
        and not each.generators[0].ifs
        and isinstance(each.generators[0].iter, ast.Name)
        and each.generators[0].iter.id == name
    )
