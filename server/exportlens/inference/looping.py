"""Loops over abstract values: followed turn by turn where there are few, else to what no further turn changes."""

from __future__ import annotations

import ast
import functools

from exportlens.inference.assignments import assign, told_by_use
from exportlens.inference.blocks import run_block
from exportlens.inference.branching import arm
from exportlens.inference.expressions import evaluate, test_value
from exportlens.inference.iteration import elements_of
from exportlens.inference.machine import Frame, Loop, Machine, Raised
from exportlens.inference.places import Truth
from exportlens.inference.state import Changes
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Choice,
    Sequence,
    Value,
    is_filled,
)

_UNROLL = 24
_MANY_STEPS = 6_000


def unroll_limit(machine: Machine) -> int:
    """How many turns of a loop are followed one by one; fewer once an entry point has taken much effort."""
    return _UNROLL if machine.steps < _MANY_STEPS else 2


def run_while(machine: Machine, node: ast.While, frame: Frame) -> bool:
    loop = Loop(machine.journal.mark())
    frame.loops.append(loop)
    exits: list[Changes] = []
    endless = False
    try:
        for turn in range(_UNROLL):
            value, doubtful = test_value(machine, node.test, frame)
            truth = truth_of(value)
            if truth is DATA and machine.emits(Truth):
                with machine.doubting(doubtful):
                    machine.notice(
                        Truth(machine.site(frame), node.test, value, "while", node, frame.visible())
                    )
            if truth is not True:
                exits.append(machine.journal.changes_since(loop.mark))
            if truth is False:
                break
            endless = truth is True
            ends, changes = arm(
                machine, frame, lambda: run_block(machine, node.body, frame), truth is None, node.test
            )
            states = [*loop.continues, *([changes] if ends == "falls" else [])]
            loop.continues = []
            if not states:
                endless = False
                break
            machine.journal.apply(states)
            if truth is not True and turn >= 1:
                exits.append(machine.journal.changes_since(loop.mark))
                break
    finally:
        frame.loops.pop()
    paths = [*exits, *loop.breaks]
    if not paths:
        # An endless loop of too many turns to follow: go on with what is known.
        return endless
    machine.journal.roll_back(loop.mark)
    machine.journal.apply(paths)
    return run_block(machine, node.orelse, frame) if node.orelse and not loop.breaks else True


def run_for(machine: Machine, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
    iterable = evaluate(machine, node.iter, frame)
    items, element = elements_of(machine, iterable, frame, node.iter, context="for")
    loop = Loop(machine.journal.mark())
    frame.loops.append(loop)
    unsure = _may_be_empty(iterable)
    known = items is not None and len(items) <= unroll_limit(machine)
    turns: list[Value] = list(items) if known and items is not None else [element, element]
    # Torch takes no size of an input to be zero: over its rows the loop goes at least once.
    certain = is_filled(iterable)
    paths: list[Changes] = [] if (known and not unsure) or certain else [{}]
    ended = False
    try:
        for item in turns:
            before = machine.journal.mark()
            turn = functools.partial(_turn, machine, node, item, frame)
            ends, changes = arm(machine, frame, turn, unsure, node.iter)
            states = [*loop.continues, *([changes] if ends == "falls" else [])]
            loop.continues = []
            if not states:
                ended = ends.startswith("raises") and not loop.breaks and (known or certain)
                if known or ends.startswith("raises"):
                    paths = paths if not known else []
                break
            if not known:
                machine.journal.apply(states if certain and len(paths) == 0 else [{}, *states])
                paths.append(machine.journal.changes_since(loop.mark))
            else:
                machine.journal.apply(states)
            del before
        else:
            paths.append(machine.journal.changes_since(loop.mark))
    finally:
        frame.loops.pop()
    paths += loop.breaks
    if not paths:
        if ended:
            raise Raised
        return False
    machine.journal.roll_back(loop.mark)
    machine.journal.apply(paths)
    return run_block(machine, node.orelse, frame) if node.orelse and not loop.breaks else True


def _may_be_empty(iterable: Value) -> bool:
    """Whether configuration decides that there is nothing to go through: `xs if use else ()`."""
    return isinstance(iterable, Choice) and any(
        isinstance(option, Sequence) and option.items == [] for option in iterable.options
    )


def _turn(machine: Machine, node: ast.For | ast.AsyncFor, item: Value, frame: Frame) -> bool:
    assign(machine, node.target, told_by_use(machine, node.target, item, node, frame), frame)
    return run_block(machine, node.body, frame)


def run_break(machine: Machine, node: ast.Break, frame: Frame) -> bool:
    del node
    if frame.loops:
        frame.loops[-1].breaks.append(machine.journal.changes_since(frame.loops[-1].mark))
    return False


def run_continue(machine: Machine, node: ast.Continue, frame: Frame) -> bool:
    del node
    if frame.loops:
        # Relative to the start of this turn: the arm that runs the turn is undone first, so note all since the loop's mark.
        frame.loops[-1].continues.append(machine.journal.changes_since(frame.loops[-1].mark))
    return False
