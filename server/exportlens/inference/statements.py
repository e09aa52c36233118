"""Statements: what each kind does to the abstract state; who interprets blocks takes `run_block` from here, where it knows them all."""

from __future__ import annotations

import ast

from exportlens.inference.assignments import assign, run_ann_assign, run_assign, run_aug_assign
from exportlens.inference.autocasting import entered as autocast_in_force
from exportlens.inference.blocks import STATEMENTS, run_block
from exportlens.inference.branching import run_if, run_match, run_try
from exportlens.inference.classes import define_class, define_function, dotted, switches_gradients_off
from exportlens.inference.expressions import evaluate, test_value
from exportlens.inference.items import delete_item
from exportlens.inference.looping import run_break, run_continue, run_for, run_while
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import import_names
from exportlens.inference.narrowing import narrow
from exportlens.inference.places import LocalClass, Raise, Truth, With
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Bound,
    ClassValue,
    Const,
    Function,
    Instance,
    Named,
    Sequence,
    Unknown,
    Value,
)

__all__ = ["run_block"]


def _run_expr(machine: Machine, node: ast.Expr, frame: Frame) -> bool:
    evaluate(machine, node.value, frame)
    return True


def _run_return(machine: Machine, node: ast.Return, frame: Frame) -> bool:
    value = evaluate(machine, node.value, frame) if node.value is not None else Const(None)
    changes = machine.journal.changes_since(frame.mark) if frame.forks else None
    frame.returns.append((value, changes, node))
    return False


def _run_raise(machine: Machine, node: ast.Raise, frame: Frame) -> bool:
    kind = ""
    value: Value = Unknown("what is being handled")
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
    machine.thrown = (machine.site(frame), node, value) if machine.attempts else None
    raise Raised(kind)


def _run_assert(machine: Machine, node: ast.Assert, frame: Frame) -> bool:
    value, doubtful = test_value(machine, node.test, frame)
    truth = truth_of(value)
    if truth is DATA and machine.emits(Truth):
        with machine.doubting(doubtful):
            machine.notice(Truth(machine.site(frame), node.test, value, "assert", node, dict(frame.locals)))
    if truth is False and isinstance(value, Const) and (machine.attempts or not machine.tracing):
        if machine.attempts:
            machine.thrown = (machine.site(frame), node, Named("AssertionError"))
        if machine.attempts or node.msg is None:
            raise Raised("AssertionError")
    narrow(machine, node.test, True, frame)
    return True


def _run_with(machine: Machine, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
    from exportlens.inference.construction import call_method

    managers: list[Value] = []
    entered_ones: list[tuple[Value, ast.expr]] = []
    off = sum(switches_gradients_off(dotted(item.context_expr)) for item in node.items)
    for item in node.items:
        manager = evaluate(machine, item.context_expr, frame)
        managers.append(manager)
        if machine.emits(With):
            name = _manager_name(manager) or _called(machine, item.context_expr, frame)
            machine.notice(With(machine.site(frame), item.context_expr, manager, name))
        entered: Value = Unknown("the value of a context manager")
        if isinstance(manager, Instance) and isinstance(manager.cls, ClassValue):
            entered = call_method(machine, manager, "__enter__", [], frame, item.context_expr) or manager
            entered_ones.append((manager, item.context_expr))
        elif isinstance(manager, Sequence) and manager.kind == "generator" and manager.items:
            entered = manager.items[0]
        elif isinstance(manager, Instance):
            entered = manager
        if item.optional_vars is not None:
            assign(machine, item.optional_vars, entered, frame)
    machine.without_gradients += off
    autocast = machine.autocast
    try:
        for manager in managers:
            machine.autocast = autocast_in_force(machine, manager)
        ends = run_block(machine, node.body, frame)
    finally:
        machine.without_gradients -= off
        machine.autocast = autocast
    for manager, expression in reversed(entered_ones):
        if isinstance(manager, Instance):
            call_method(machine, manager, "__exit__", [Const(None)] * 3, frame, expression)
    return ends


def _manager_name(manager: Value) -> str:
    if isinstance(manager, Instance) and isinstance(manager.cls, (ClassValue, Named)):
        return manager.cls.name
    if isinstance(manager, (Named, Function)):
        return manager.name
    if isinstance(manager, Bound):
        return manager.name
    return ""


def _called(machine: Machine, node: ast.expr, frame: Frame) -> str:
    """The name of the external function that makes a context manager of which no more is known."""
    function = node.func if isinstance(node, ast.Call) else None
    while isinstance(function, ast.Attribute):
        function = function.value
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Name):
        return ""
    value = evaluate(machine, node.func, frame)
    return value.name if isinstance(value, Named) else ""


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
        elif isinstance(target, ast.Subscript):
            owner = evaluate(machine, target.value, frame)
            delete_item(machine, owner, evaluate(machine, target.slice, frame))
    return True


def _run_global(machine: Machine, node: ast.Global, frame: Frame) -> bool:
    del machine
    frame.global_names = frozenset({*frame.global_names, *node.names})
    return True


def _run_nonlocal(machine: Machine, node: ast.Nonlocal, frame: Frame) -> bool:
    del machine
    frame.outer_names = frozenset({*frame.outer_names, *node.names})
    return True


STATEMENTS.update(
    {
        ast.Expr: _run_expr,
        ast.Assign: run_assign,
        ast.AnnAssign: run_ann_assign,
        ast.AugAssign: run_aug_assign,
        ast.Return: _run_return,
        ast.If: run_if,
        ast.While: run_while,
        ast.For: run_for,
        ast.AsyncFor: run_for,
        ast.Break: run_break,
        ast.Continue: run_continue,
        ast.Raise: _run_raise,
        ast.Assert: _run_assert,
        ast.Try: run_try,
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
        ast.Match: run_match,
    }
)
