"""What names are behind a loop that runs all of its rounds, where eager's ended where data said: the last of the values that the
rounds up to there gave, or how often they counted."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass

from exportlens.inference.values import Const
from exportlens.rewriting.code.liveness import always_bound
from exportlens.rewriting.code.names import appended_to, bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases


@dataclass
class Counted:
    """A number that begins with `start` and grows by `step` in each round."""

    start: int
    step: int

    def text(self, count: str) -> str:
        grown = count if self.step == 1 else f"{self.step} * {count}"
        return grown if self.start == 0 else f"{self.start} + {grown}"


@dataclass
class Listed:
    """A tensor that the list `name` holds for each round, to which `appended` is to be appended unless that is None."""

    name: str
    appended: str | None


def kept_names(
    source: Source, function: Function, loop: ast.For, leaving: ast.If, kinds: Kinds, names: Sequence[str]
) -> dict[str, Counted | Listed] | None:
    """What each of `names` is where `leaving` leaves `loop`; None where that is not certain of one."""
    at = loop.body.index(leaving)
    before, behind = loop.body[:at], bound(loop.body[at + 1 :])
    now = kinds_before(function, leaving, kinds)
    found: dict[str, Counted | Listed] = {}
    for name in names:
        if name in behind:
            return None
        counted = _counted(function, loop, before, kinds, name)
        if counted is not None:
            found[name] = counted
            continue
        kind = now.names.get(name)
        # What holds all rounds apart does not share memory with what is written behind the loop.
        if kind is None or kind.what != "tensor" or name not in always_bound(before):
            return None
        written = [each for each in written_bases(function) if name in _names(each)]
        if any(source.start(each) > source.end(loop) for each in written):
            return None
        written_inside = {one for each in written_bases(loop) for one in _names(each)}
        apart = shares(kind, written_inside, now)
        held = None if apart else _list_of(before, name)
        found[name] = (
            Listed(f"{name}_rounds", f"{name}.clone()" if apart else name)
            if held is None
            else Listed(held, None)
        )
    return found


def shares(kind: Kind, names: Set[str], now: Kinds) -> bool:
    """Whether what is of `kind` may share memory with one of `names` that is a tensor."""
    others = [now.names[name] for name in names if name in now.names]
    return any(
        kind.roots is None or each.roots is None or bool(kind.roots & each.roots)
        for each in others
        if each.what not in ("number", "size")
    )


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _list_of(before: Sequence[ast.stmt], name: str) -> str | None:
    """The list to which each round appends what `name` is at the end of `before`."""
    for index, each in enumerate(before):
        held = appended_to(each)
        if (
            held is not None
            and ast.unparse(each) == f"{held}.append({name})"
            and name not in bound(before[index:])
        ):
            return held
    return None


def _counted(
    function: Function, loop: ast.For, before: Sequence[ast.stmt], kinds: Kinds, name: str
) -> Counted | None:
    """How `name` counts the rounds, where it does nothing else."""
    start = kinds_before(function, loop, kinds).names.get(name)
    steps = [each for each in before if name in bound(each)]
    if (
        start is None
        or not isinstance(start.value, Const)
        or type(start.value.value) is not int
        or len(steps) != 1
    ):
        return None
    step = steps[0]
    value = step.value if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add) else None
    if (
        isinstance(step, ast.Assign)
        and isinstance(step.value, ast.BinOp)
        and isinstance(step.value.op, ast.Add)
    ):
        value = (
            step.value.right if ast.unparse(step.value.left) == name == ast.unparse(step.targets[0]) else None
        )
    if isinstance(value, ast.Constant) and type(value.value) is int:
        return Counted(start.value.value, value.value)
    return None
