"""Branches over abstract values: the arms of `if`, `try` and `match` are tried apart, and what they lead to is joined."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from exportlens.inference.blocks import run_block
from exportlens.inference.classes import dotted
from exportlens.inference.expressions import evaluate, opposite, test_value
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import element_of
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.narrowing import narrow
from exportlens.inference.places import Caught, Site, Truth
from exportlens.inference.state import Changes
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Const,
    Sequence,
    Shape,
    Static,
    Tensor,
    Unknown,
    Value,
    from_data,
)
from exportlens.source.walking import walk


def run_if(machine: Machine, node: ast.If, frame: Frame) -> bool:
    doubt_before = machine.doubt
    value, doubtful = test_value(machine, node.test, frame)
    truth = truth_of(value)
    if truth is True:
        return run_block(machine, node.body, frame)
    if truth is False:
        return run_block(machine, node.orelse, frame)
    data = truth is DATA
    wanted = data and machine.emits(Truth)
    variables = frame.visible() if wanted else {}
    machine.doubt += doubtful
    site = machine.site(frame) if wanted else None
    machine.doubt = doubt_before

    unsure = not data
    usual = _usual(machine, node.test, frame) if unsure else None
    then_guard = _only_raises(node.body)
    else_guard = bool(node.orelse) and _only_raises(node.orelse)
    if data:
        machine.data_guards.append(value)
    try:
        then = arm(
            machine,
            frame,
            lambda: _enter(machine, node.test, True, node.body, frame),
            unsure and not else_guard and usual is not True,
            node.test,
        )
        other = arm(
            machine,
            frame,
            lambda: _enter(machine, node.test, False, node.orelse, frame),
            unsure and not then_guard and usual is not False,
            opposite(node.test),
        )
    finally:
        if data:
            machine.data_guards.pop()
    if site is not None:
        machine.notice(
            Truth(
                site,
                node.test,
                value,
                "if",
                node,
                variables,
                _locals_of(then[1], frame),
                _locals_of(other[1], frame),
                then[0],
                other[0],
            )
        )
    if unsure and _asks_for_a_type(node.test) and {then[0], other[0]} == {"falls", "returns"}:
        # What follows an early return for other types is for the rest of them only, until the arm or the function ends.
        machine.doubt += 1
        machine.conditions.append(None)
    elif unsure and {then[0], other[0]} == {"falls", "returns"} and _is_a_flag(node.test):
        # As of a flag that nothing is known of. What compares is left out: it mostly switches off what is on by default.
        machine.doubt += 1
        machine.conditions.append(node.test if then[0] == "falls" else opposite(node.test))
    return _meet(machine, [then, other])


def _enter(machine: Machine, test: ast.expr, positive: bool, body: list[ast.stmt], frame: Frame) -> bool:
    narrow(machine, test, positive, frame)
    return run_block(machine, body, frame)


def _only_raises(body: list[ast.stmt]) -> bool:
    """Whether an arm exists to stop the program: then the other arm is where a working model goes."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def _asks_for_a_type(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return isinstance(test, ast.Call) and dotted(test.func) in ("isinstance", "issubclass")


def _is_a_flag(test: ast.expr) -> bool:
    """`self.offload` or `not self.offload`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self"


Arm = tuple[str, Changes]


def arm(
    machine: Machine, frame: Frame, run: Callable[[], bool], unsure: bool, condition: ast.expr | None = None
) -> Arm:
    """Try one arm from the present state and undo it: how it ended, and what it changed."""
    mark = machine.journal.mark()
    doubt, conditions = machine.doubt, len(machine.conditions)
    returned, broke = len(frame.returns), sum(len(loop.breaks) for loop in frame.loops)
    frame.forks += 1
    if unsure:
        machine.doubt += 1
        machine.conditions.append(condition)
    try:
        if run():
            ends = "falls"
        elif len(frame.returns) > returned:
            ends = "returns"
        else:
            ends = "breaks" if sum(len(loop.breaks) for loop in frame.loops) > broke else "continues"
    except Raised as error:
        ends = "raises" + (" " + error.kind if error.kind else "")
    finally:
        frame.forks -= 1
        machine.doubt = doubt
        del machine.conditions[conditions:]
    changes = machine.journal.changes_since(mark)
    machine.journal.roll_back(mark)
    return ends, changes


def _meet(machine: Machine, arms: list[Arm]) -> bool:
    falling = [changes for ends, changes in arms if ends == "falls"]
    if falling:
        machine.journal.apply(falling)
        return True
    if all(ends.startswith("raises") for ends, _ in arms):
        raise Raised(arms[0][0].removeprefix("raises").strip())
    return False


def _locals_of(changes: Changes, frame: Frame) -> dict[str, Value]:
    return {
        key: value
        for container, key, value in changes.values()
        if container is frame.locals and isinstance(value, Value)
    }


def _usual(machine: Machine, test: ast.expr, frame: Frame) -> bool | None:
    """What a test comes to in most models, where configuration decides.

    Sizes of a real input rarely are 1, the batch apart; lists of numbers (axes, strides) and what a loop fills are rarely empty.
    """
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        return decisive if any(_usual(machine, part, frame) is decisive for part in test.values) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    answer = _OF_LEAST.get(type(test.ops[0]))
    if answer is None:
        return None
    counted = isinstance(test.left, ast.Call) and dotted(test.left) == "len" and len(test.left.args) == 1
    machine.quiet += 1
    try:
        left = evaluate(machine, test.left.args[0] if counted else test.left, frame)  # type: ignore[attr-defined]
        right = evaluate(machine, test.comparators[0], frame)
    except Raised:
        return None
    finally:
        machine.quiet -= 1
    if counted:
        some = isinstance(left, Unknown) or (
            isinstance(left, Sequence)
            and left.items is None
            and isinstance(left.element, (Const, Static, Tensor, Unknown))
        )
        return answer if some and right == Const(0) else None
    size = isinstance(left, Shape) and left.whole and left.dim not in (None, 0)
    return answer if size and right == Const(1) else None


# What comparisons with the least that something may be come to.
_OF_LEAST: dict[type[ast.cmpop], bool] = {ast.Eq: False, ast.LtE: False, ast.NotEq: True, ast.Gt: True}


def _thrown(machine: Machine) -> tuple[Site, ast.AST, Value] | None:
    """What was raised last; a type checker would take it for what was set before the calls in between."""
    return machine.thrown


def run_try(machine: Machine, node: ast.Try, frame: Frame) -> bool:
    mark = machine.journal.mark()
    raised: list[str] = []
    machine.attempts += 1
    machine.thrown = None
    try:
        body = arm(machine, frame, lambda: _body_and_else(machine, node, frame), False)
    finally:
        machine.attempts -= 1
    thrown = _thrown(machine)
    certain = body[0].startswith("raises")
    returned = len(frame.returns)
    if certain:
        raised.append(body[0].removeprefix("raises").strip())
    arms: list[Arm] = [] if certain and node.handlers else [body]
    for handler in node.handlers:
        if certain and not _catches(handler, raised[0]):
            continue
        if certain and thrown is not None and not machine.doubt and machine.emits(Caught):
            machine.notice(Caught(thrown[0], thrown[1], thrown[2], node, handler))
        run = functools.partial(_handle, machine, handler, frame, body[1] if certain else None)
        handled = arm(machine, frame, run, not certain, ast.Name(_head_of(handler)))
        arms.append(handled)
        if certain:
            break
    if not arms:
        arms = [body]
    if (
        body[0] == "returns"
        and all(ends.startswith(("returns", "raises")) for ends, _ in arms)
        and not _tries_something_out(node.body)
    ):
        # As for what falls through: a handler that only might run must not blur what the body returns.
        del frame.returns[returned:]
        arms = [body]
    falls = False
    error: Raised | None = None
    machine.journal.roll_back(mark)
    try:
        # A handler that only might run must not blur what the body establishes.
        preferred = [arm for arm in arms if arm[0] == "falls"]
        falls = _meet(
            machine,
            [body] if not certain and body[0] == "falls" and not _handler_matters(preferred) else arms,
        )
    except Raised as raised_error:
        error = raised_error
    if node.finalbody and not run_block(machine, node.finalbody, frame):
        return False
    if error is not None:
        raise error
    return falls


def _tries_something_out(body: list[ast.stmt]) -> bool:
    """Whether statements ask whether something is there: they return a constant if so, or import what may not be installed."""
    for node in (node for statement in body for node in walk(statement)):
        if isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant)):
            return True
        if isinstance(node, ast.Import) and any(
            each.name.partition(".")[0] != "torch" for each in node.names
        ):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "torch":
            return True
    return False


def _handler_matters(arms: list[Arm]) -> bool:
    return len(arms) > 1


def _body_and_else(machine: Machine, node: ast.Try, frame: Frame) -> bool:
    return run_block(machine, node.body, frame) and run_block(machine, node.orelse, frame)


def _head_of(handler: ast.ExceptHandler) -> str:
    return "except" if handler.type is None else f"except {ast.unparse(handler.type)}"


def _handle(
    machine: Machine, handler: ast.ExceptHandler, frame: Frame, before: Changes | None = None
) -> bool:
    """Run a handler; `before` is what the body did up to the `raise` that certainly leads here."""
    if before is not None:
        machine.journal.apply([before])
    if handler.name:
        machine.journal.write(frame.locals, handler.name, Unknown("a caught exception"))
    return run_block(machine, handler.body, frame)


def _catches(handler: ast.ExceptHandler, kind: str) -> bool:
    if handler.type is None or not kind:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in types}
    return (
        kind in names
        or bool(names & {"Exception", "BaseException", ""})
        or not kind.endswith(("Error", "Exception"))
    )


def run_match(machine: Machine, node: ast.Match, frame: Frame) -> bool:
    subject = evaluate(machine, node.subject, frame)
    arms: list[Arm] = []
    for case in node.cases:
        verdict = _matches(machine, case.pattern, subject, frame)
        if verdict is False:
            continue
        if verdict is DATA and machine.emits(Truth):
            machine.notice(
                Truth(machine.site(frame), node.subject, _asked(subject), "match", node, frame.visible())
            )
        certain = verdict is True and case.guard is None and not arms
        if certain:
            _bind_pattern(machine, case.pattern, subject, frame)
            return run_block(machine, case.body, frame)
        arms.append(
            arm(machine, frame, functools.partial(_case, machine, case, subject, frame), verdict is not DATA)
        )
        if verdict is True and case.guard is None:
            break
    else:
        arms.append(("falls", {}))
    return _meet(machine, arms)


def _case(machine: Machine, case: ast.match_case, subject: Value, frame: Frame) -> bool:
    _bind_pattern(machine, case.pattern, subject, frame)
    if case.guard is not None:
        test_value(machine, case.guard, frame)
    return run_block(machine, case.body, frame)


def _matches(machine: Machine, pattern: ast.pattern, subject: Value, frame: Frame) -> object:
    from exportlens.inference.operators import compare

    if isinstance(pattern, ast.MatchAs):
        return True if pattern.pattern is None else _matches(machine, pattern.pattern, subject, frame)
    if isinstance(pattern, ast.MatchValue):
        return truth_of(
            compare(machine, ast.Eq(), subject, evaluate(machine, pattern.value, frame), frame, pattern.value)
        )
    if isinstance(pattern, ast.MatchSingleton):
        return truth_of(compare(machine, ast.Is(), subject, Const(pattern.value), frame, pattern))
    if isinstance(pattern, ast.MatchOr):
        verdicts = [_matches(machine, option, subject, frame) for option in pattern.patterns]
        if any(verdict is True for verdict in verdicts):
            return True
        return False if all(verdict is False for verdict in verdicts) else DATA if DATA in verdicts else None
    if isinstance(pattern, ast.MatchSequence):
        return _matches_items(machine, pattern.patterns, subject, frame)
    return None


def _matches_items(machine: Machine, patterns: list[ast.pattern], subject: Value, frame: Frame) -> object:
    """Whether the items of `subject` match: no tensor is a sequence for `match`."""
    if isinstance(subject, Tensor):
        return False
    if not isinstance(subject, Sequence) or any(isinstance(each, ast.MatchStar) for each in patterns):
        return None
    items = [element_of(subject)] * len(patterns) if subject.items is None else subject.items
    if len(items) != len(patterns):
        return False
    verdicts = [_matches(machine, each, item, frame) for each, item in zip(patterns, items, strict=True)]
    if False in verdicts:
        return False
    return DATA if DATA in verdicts else None if None in verdicts or subject.items is None else True


def _asked(subject: Value) -> Value:
    """What is asked for its value: of a sequence, its first item of data."""
    if not isinstance(subject, Sequence):
        return subject
    items = [element_of(subject)] if subject.items is None else subject.items
    return next((each for each in items if from_data(each)), subject)


def _bind_pattern(machine: Machine, pattern: ast.pattern, subject: Value, frame: Frame) -> None:
    if isinstance(pattern, ast.MatchAs):
        if pattern.name:
            machine.journal.write(frame.locals, pattern.name, subject)
        if pattern.pattern is not None:
            _bind_pattern(machine, pattern.pattern, subject, frame)
        return
    if isinstance(pattern, ast.MatchSequence):
        items, element = elements_of(machine, subject, frame, None, expected=len(pattern.patterns))
        for index, inner in enumerate(pattern.patterns):
            known = items is not None and len(items) == len(pattern.patterns)
            _bind_pattern(machine, inner, items[index] if known and items is not None else element, frame)
        return
    for child in ast.walk(pattern):
        name = getattr(child, "name", None) or getattr(child, "rest", None)
        if isinstance(name, str):
            machine.journal.write(frame.locals, name, Unknown("bound by a pattern"))
