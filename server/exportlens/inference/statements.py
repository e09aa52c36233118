"""Statements: control flow over abstract values, branches joined, loops to a fixed point."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from exportlens.inference.attributes import set_attribute
from exportlens.inference.calls import call_value
from exportlens.inference.classes import define_class, define_function, dotted
from exportlens.inference.expressions import evaluate, narrow, test_value, unpacked
from exportlens.inference.items import set_item
from exportlens.inference.iteration import elements_of
from exportlens.inference.machine import Frame, Loop, Machine, Raised
from exportlens.inference.modules import container_kind, module_attribute
from exportlens.inference.names import import_names
from exportlens.inference.operators import binary
from exportlens.inference.places import LocalClass, Mutation, NameWrite, Raise, Truth, With
from exportlens.inference.state import Changes
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Named,
    Sequence,
    Shape,
    Static,
    Tensor,
    Unknown,
    Value,
    is_filled,
)

_UNROLL = 24
_MANY_STEPS = 6_000


def unroll_limit(machine: Machine) -> int:
    """How many turns of a loop are followed one by one; fewer once an entry point has taken much effort."""
    return _UNROLL if machine.steps < _MANY_STEPS else 2


def run_block(machine: Machine, statements: list[ast.stmt], frame: Frame) -> bool:
    """Interpret `statements`; False when no path falls out at the end. Raises Raised when every path raises."""
    for statement in statements:
        machine.step()
        run = _STATEMENTS.get(type(statement))
        if run is not None and not run(machine, statement, frame):
            return False
    return True


def assign(machine: Machine, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind `value` to an assignment target of any form."""
    if isinstance(target, ast.Name):
        names = _locals_for(machine, target.id, frame)
        if names is not frame.locals and machine.emits(NameWrite):
            machine.notice(NameWrite(machine.site(frame), target, target.id, value, names.get(target.id)))
        machine.journal.write(names, target.id, value)
        if machine.watch is not None:
            machine.watch(target, value, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(machine, target.elts, value, frame, target)
    elif isinstance(target, ast.Attribute):
        set_attribute(machine, evaluate(machine, target.value, frame), target.attr, value, frame, target)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(machine, target.value, frame)
        set_item(machine, owner, evaluate(machine, target.slice, frame), value, frame, target)
    elif isinstance(target, ast.Starred):
        assign(machine, target.value, value, frame)


def _locals_for(machine: Machine, name: str, frame: Frame) -> dict[str, Value]:
    if name in frame.global_names:
        return frame.scope.values
    if name in frame.outer_names:
        outer = frame.closure
        while outer is not None:
            if name in outer.locals:
                return outer.locals
            outer = outer.closure
    return frame.locals


def _unpack(machine: Machine, targets: list[ast.expr], value: Value, frame: Frame, node: ast.AST) -> None:
    star = next((index for index, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    items, element = elements_of(
        machine, value, frame, node, expected=None if star is not None else len(targets)
    )
    if items is not None and star is None and len(items) == len(targets):
        for target, item in zip(targets, items, strict=True):
            assign(machine, target, item, frame)
    elif items is not None and star is not None and len(items) >= len(targets) - 1:
        after = len(targets) - star - 1
        middle = items[star : len(items) - after]
        values = [*items[:star], Sequence("list", list(middle)), *items[len(items) - after :]]
        for target, item in zip(targets, values, strict=True):
            assign(machine, target, item, frame)
    else:
        for target in targets:
            assign(
                machine,
                target,
                Sequence("list", None, element) if isinstance(target, ast.Starred) else element,
                frame,
            )


def _run_expr(machine: Machine, node: ast.Expr, frame: Frame) -> bool:
    evaluate(machine, node.value, frame)
    return True


def _run_assign(machine: Machine, node: ast.Assign, frame: Frame) -> bool:
    first = node.targets[0]
    if isinstance(first, (ast.Tuple, ast.List)) and not any(isinstance(t, ast.Starred) for t in first.elts):
        value = unpacked(machine, node.value, len(first.elts), frame)
    else:
        value = evaluate(machine, node.value, frame)
    for target in node.targets:
        assign(machine, target, value, frame)
    return True


def _run_ann_assign(machine: Machine, node: ast.AnnAssign, frame: Frame) -> bool:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value, frame), frame)
    elif isinstance(node.target, ast.Name) and frame.owner is not None and frame.function is None:
        frame.locals.setdefault("__annotations_only__", Sequence("list", []))
    return True


def _run_aug_assign(machine: Machine, node: ast.AugAssign, frame: Frame) -> bool:
    old = evaluate(machine, node.target, frame)
    value = evaluate(machine, node.value, frame)
    extended = _extended(machine, node, old, value, frame)
    new = binary(machine, node.op, old, value, frame, node) if extended is None else extended
    if isinstance(old, Tensor):
        if machine.emits(Mutation):
            machine.notice(Mutation(machine.site(frame), node, old, type(node.op).__name__))
        if isinstance(new, Tensor) and old.root:
            new = Tensor(old.origin, old.name, old.dtype, old.rank, old.unbacked, old.root, old.requires_grad)
    if isinstance(old, Sequence) and old.kind == "list" and isinstance(new, Sequence):
        # `list += other` changes the list that others hold too.
        machine.journal.write(old, "items", new.items)
        machine.journal.write(old, "element", new.element)
        new = old
    if isinstance(node.target, ast.Attribute):
        set_attribute(
            machine,
            evaluate(machine, node.target.value, frame),
            node.target.attr,
            new,
            frame,
            node.target,
            augmented=True,
        )
    elif isinstance(node.target, ast.Subscript):
        owner = evaluate(machine, node.target.value, frame)
        set_item(
            machine,
            owner,
            evaluate(machine, node.target.slice, frame),
            new,
            frame,
            node.target,
            augmented=True,
        )
    else:
        assign(machine, node.target, new, frame)
    return True


def _extended(
    machine: Machine, node: ast.AugAssign, old: Value, value: Value, frame: Frame
) -> Instance | None:
    """The ModuleList or Sequential that `modules += others` makes longer; None where it is none."""
    if not isinstance(old, Instance) or not isinstance(node.op, ast.Add) or container_kind(old.cls) is None:
        return None
    extend = module_attribute(machine, old, "extend")
    if extend is None:
        return None
    call_value(machine, extend, [value], {}, frame, node)
    return old


def _run_return(machine: Machine, node: ast.Return, frame: Frame) -> bool:
    value = evaluate(machine, node.value, frame) if node.value is not None else Const(None)
    changes = machine.journal.changes_since(frame.mark) if frame.forks else None
    frame.returns.append((value, changes, node))
    return False


def _run_if(machine: Machine, node: ast.If, frame: Frame) -> bool:
    doubt_before = machine.doubt
    value, doubtful = test_value(machine, node.test, frame)
    truth = truth_of(value)
    if truth is True:
        return run_block(machine, node.body, frame)
    if truth is False:
        return run_block(machine, node.orelse, frame)
    data = truth is DATA
    wanted = data and machine.emits(Truth)
    variables = dict(frame.locals) if wanted else {}
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
        then = _arm(
            machine,
            frame,
            lambda: _enter(machine, node.test, True, node.body, frame),
            unsure and not else_guard and usual is not True,
            node.test,
        )
        other = _arm(
            machine,
            frame,
            lambda: _enter(machine, node.test, False, node.orelse, frame),
            unsure and not then_guard and usual is not False,
            node.test,
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
        # Returns on flags are left out: they mostly switch off what is on by default.
        machine.doubt += 1
        machine.conditions.append(None)
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


Arm = tuple[str, Changes]


def _arm(
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

    Sizes of a real input rarely are 1, the batch apart; lists of numbers (axes, strides) are rarely empty.
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
        numbers = (
            isinstance(left, Sequence) and left.items is None and isinstance(left.element, (Const, Static))
        )
        return answer if numbers and right == Const(0) else None
    size = isinstance(left, Shape) and left.whole and left.dim not in (None, 0)
    return answer if size and right == Const(1) else None


# What comparisons with the least that something may be come to.
_OF_LEAST: dict[type[ast.cmpop], bool] = {ast.Eq: False, ast.LtE: False, ast.NotEq: True, ast.Gt: True}


def _run_while(machine: Machine, node: ast.While, frame: Frame) -> bool:
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
                        Truth(machine.site(frame), node.test, value, "while", node, dict(frame.locals))
                    )
            if truth is not True:
                exits.append(machine.journal.changes_since(loop.mark))
            if truth is False:
                break
            endless = truth is True
            ends, changes = _arm(
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


def _run_for(machine: Machine, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
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
            ends, changes = _arm(machine, frame, turn, unsure, node.iter)
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
    assign(machine, node.target, item, frame)
    return run_block(machine, node.body, frame)


def _run_break(machine: Machine, node: ast.Break, frame: Frame) -> bool:
    del node
    if frame.loops:
        frame.loops[-1].breaks.append(machine.journal.changes_since(frame.loops[-1].mark))
    return False


def _run_continue(machine: Machine, node: ast.Continue, frame: Frame) -> bool:
    del node
    if frame.loops:
        # Relative to the start of this turn: the arm that runs the turn is undone first, so note all since the loop's mark.
        frame.loops[-1].continues.append(machine.journal.changes_since(frame.loops[-1].mark))
    return False


def _run_raise(machine: Machine, node: ast.Raise, frame: Frame) -> bool:
    kind = ""
    if node.exc is not None:
        value = evaluate(machine, node.exc, frame)
        cls = value.cls if isinstance(value, Instance) else value
        if isinstance(cls, (ClassValue, Named)):
            kind = cls.name.rpartition(".")[2]
    if machine.emits(Raise):
        guard = machine.data_guards[-1] if machine.data_guards else None
        machine.notice(Raise(machine.site(frame), node, guard))
    if machine.tracing and not machine.doubt and not machine.data_guards and not machine.attempts:
        machine.refusals += 1
    raise Raised(kind)


def _run_assert(machine: Machine, node: ast.Assert, frame: Frame) -> bool:
    value, doubtful = test_value(machine, node.test, frame)
    truth = truth_of(value)
    if truth is DATA and machine.emits(Truth):
        with machine.doubting(doubtful):
            machine.notice(Truth(machine.site(frame), node.test, value, "assert", node, dict(frame.locals)))
    if truth is False and node.msg is None and isinstance(value, Const) and not machine.tracing:
        raise Raised("AssertionError")
    narrow(machine, node.test, True, frame)
    return True


def _run_try(machine: Machine, node: ast.Try, frame: Frame) -> bool:
    mark = machine.journal.mark()
    raised: list[str] = []
    machine.attempts += 1
    try:
        body = _arm(machine, frame, lambda: _body_and_else(machine, node, frame), False)
    finally:
        machine.attempts -= 1
    certain = body[0].startswith("raises")
    if certain:
        raised.append(body[0].removeprefix("raises").strip())
    arms: list[Arm] = [] if certain and node.handlers else [body]
    for handler in node.handlers:
        if certain and not _catches(handler, raised[0]):
            continue
        run = functools.partial(_handle, machine, handler, frame)
        handled = _arm(machine, frame, run, not certain, ast.Name(_head_of(handler)))
        arms.append(handled)
        if certain:
            break
    if not arms:
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


def _handler_matters(arms: list[Arm]) -> bool:
    return len(arms) > 1


def _body_and_else(machine: Machine, node: ast.Try, frame: Frame) -> bool:
    return run_block(machine, node.body, frame) and run_block(machine, node.orelse, frame)


def _head_of(handler: ast.ExceptHandler) -> str:
    return "except" if handler.type is None else f"except {ast.unparse(handler.type)}"


def _handle(machine: Machine, handler: ast.ExceptHandler, frame: Frame) -> bool:
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


def _run_with(machine: Machine, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
    from exportlens.inference.construction import call_method

    for item in node.items:
        manager = evaluate(machine, item.context_expr, frame)
        if machine.emits(With):
            machine.notice(With(machine.site(frame), item.context_expr, manager, _manager_name(manager)))
        entered: Value = Unknown("the value of a context manager")
        if isinstance(manager, Instance) and isinstance(manager.cls, ClassValue):
            entered = call_method(machine, manager, "__enter__", [], frame, item.context_expr) or manager
        elif isinstance(manager, Sequence) and manager.kind == "generator" and manager.items:
            entered = manager.items[0]
        elif isinstance(manager, Instance):
            entered = manager
        if item.optional_vars is not None:
            assign(machine, item.optional_vars, entered, frame)
    return run_block(machine, node.body, frame)


def _manager_name(manager: Value) -> str:
    if isinstance(manager, Instance) and isinstance(manager.cls, (ClassValue, Named)):
        return manager.cls.name
    if isinstance(manager, (Named, Function)):
        return manager.name
    if isinstance(manager, Bound):
        return manager.name
    return ""


def _run_function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> bool:
    machine.journal.write(frame.locals, node.name, define_function(machine, node, frame))
    return True


def _run_class(machine: Machine, node: ast.ClassDef, frame: Frame) -> bool:
    if machine.emits(LocalClass):
        machine.notice(LocalClass(machine.site(frame), node))
    machine.journal.write(frame.locals, node.name, define_class(machine, node, frame))
    return True


def _run_import(machine: Machine, node: ast.Import | ast.ImportFrom, frame: Frame) -> bool:
    for name, value in import_names(machine, node, frame.scope):
        machine.journal.write(frame.locals, name, value)
    return True


def _run_delete(machine: Machine, node: ast.Delete, frame: Frame) -> bool:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.journal.remove(frame.locals, target.id)
        elif isinstance(target, ast.Attribute):
            owner = evaluate(machine, target.value, frame)
            if isinstance(owner, Instance):
                machine.journal.remove(owner.attributes, target.attr)
    return True


def _run_global(machine: Machine, node: ast.Global, frame: Frame) -> bool:
    del machine
    frame.global_names = frozenset({*frame.global_names, *node.names})
    return True


def _run_nonlocal(machine: Machine, node: ast.Nonlocal, frame: Frame) -> bool:
    del machine
    frame.outer_names = frozenset({*frame.outer_names, *node.names})
    return True


def _run_match(machine: Machine, node: ast.Match, frame: Frame) -> bool:
    subject = evaluate(machine, node.subject, frame)
    arms: list[Arm] = []
    for case in node.cases:
        verdict = _matches(machine, case.pattern, subject, frame)
        if verdict is False:
            continue
        if verdict is DATA and machine.emits(Truth):
            machine.notice(
                Truth(machine.site(frame), node.subject, subject, "match", node, dict(frame.locals))
            )
        certain = verdict is True and case.guard is None and not arms
        if certain:
            _bind_pattern(machine, case.pattern, subject, frame)
            return run_block(machine, case.body, frame)
        arms.append(
            _arm(machine, frame, functools.partial(_case, machine, case, subject, frame), verdict is not DATA)
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
    return None


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


_STATEMENTS: dict[type[ast.stmt], Callable[[Machine, Any, Frame], bool]] = {
    ast.Expr: _run_expr,
    ast.Assign: _run_assign,
    ast.AnnAssign: _run_ann_assign,
    ast.AugAssign: _run_aug_assign,
    ast.Return: _run_return,
    ast.If: _run_if,
    ast.While: _run_while,
    ast.For: _run_for,
    ast.AsyncFor: _run_for,
    ast.Break: _run_break,
    ast.Continue: _run_continue,
    ast.Raise: _run_raise,
    ast.Assert: _run_assert,
    ast.Try: _run_try,
    ast.With: _run_with,
    ast.AsyncWith: _run_with,
    ast.FunctionDef: _run_function,
    ast.AsyncFunctionDef: _run_function,
    ast.ClassDef: _run_class,
    ast.Import: _run_import,
    ast.ImportFrom: _run_import,
    ast.Delete: _run_delete,
    ast.Global: _run_global,
    ast.Nonlocal: _run_nonlocal,
    ast.Match: _run_match,
}
