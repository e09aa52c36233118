"""What a test tells of the values that it asks: those that it rules out are no longer among them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.told_ranks import by_test
from exportlens.inference.truth import truth_of
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)


def narrow(machine: Machine, test: ast.expr, positive: bool, frame: Frame) -> None:
    """Learn from `test` having come out as `positive`: None checks, isinstance, truth of names."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(machine, test.operand, not positive, frame)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is positive:
            for operand in test.values:
                narrow(machine, operand, positive, frame)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_compare(machine, test, positive, frame)
    elif isinstance(test, ast.Call):
        _narrow_call(machine, test, positive, frame)
    elif isinstance(test, (ast.Name, ast.Attribute)):
        _filter(machine, test, frame, lambda option: truth_of(option) is not (not positive))


def _narrow_compare(machine: Machine, test: ast.Compare, positive: bool, frame: Frame) -> None:
    op, right = test.ops[0], test.comparators[0]
    for name, rank in by_test(test, positive):
        tensor = frame.locals.get(name)
        if isinstance(tensor, Tensor) and tensor.rank is None:
            machine.journal.write(frame.locals, name, replace(tensor, rank=rank))
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        wants_none = isinstance(op, ast.Is) is positive
        _filter(
            machine,
            test.left,
            frame,
            lambda option: (isinstance(option, Const) and option.value is None) is wants_none,
        )
        if (
            wants_none
            and isinstance(test.left, ast.Name)
            and isinstance(_peek(machine, test.left, frame), (Unknown, Static))
        ):
            machine.journal.write(frame.locals, test.left.id, Const(None))
    elif (
        isinstance(op, (ast.Eq, ast.NotEq))
        and isinstance(op, ast.Eq) is positive
        and isinstance(right, ast.Constant)
    ):
        if isinstance(test.left, ast.Name) and isinstance(
            _peek(machine, test.left, frame), (Unknown, Static)
        ):
            machine.journal.write(frame.locals, test.left.id, Const(right.value))
        else:
            wanted = right.value
            _filter(
                machine,
                test.left,
                frame,
                lambda option: not isinstance(option, Const) or option.value == wanted,
            )


def _narrow_call(machine: Machine, test: ast.Call, positive: bool, frame: Frame) -> None:
    if not test.args or not isinstance(test.args[0], (ast.Name, ast.Attribute)):
        return
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    subject = test.args[0]
    if name == "is_tensor" or (name == "isinstance" and len(test.args) == 2 and _names_tensor(test.args[1])):
        _filter(machine, subject, frame, lambda option: isinstance(option, Tensor) is positive)
        if positive and isinstance(subject, ast.Name) and isinstance(_peek(machine, subject, frame), Unknown):
            machine.journal.write(frame.locals, subject.id, Tensor("fresh", subject.id))
    elif name == "isinstance" and len(test.args) == 2:
        kinds = _builtin_kinds(test.args[1])
        if kinds:
            _filter(machine, subject, frame, lambda option: _is_kind(option, kinds) is not (not positive))


def _names_tensor(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "Tensor") or (
        isinstance(node, ast.Name) and node.id == "Tensor"
    )


def _builtin_kinds(node: ast.expr) -> set[str]:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    names = {getattr(item, "id", "") for item in nodes}
    return names if names <= {"list", "tuple", "dict", "set", "int", "float", "str", "bool"} else set()


def _is_kind(value: Value, kinds: set[str]) -> bool | None:
    if isinstance(value, Const):
        return type(value.value).__name__ in kinds
    if isinstance(value, Sequence):
        return value.kind in kinds
    if isinstance(value, Mapping_):
        return "dict" in kinds
    if isinstance(value, (Tensor, Function, ClassValue, Instance)):
        return False
    if isinstance(value, (Shape, TensorScalar, Static)) and value.type:
        return value.type in kinds
    return None


def _peek(machine: Machine, node: ast.expr, frame: Frame) -> Value | None:
    if isinstance(node, ast.Name):
        return frame.locals.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = frame.locals.get(node.value.id)
        if isinstance(owner, Instance):
            return owner.attributes.get(node.attr)
    del machine
    return None


def _filter(machine: Machine, node: ast.expr, frame: Frame, keep: Callable[[Value], bool]) -> None:
    value = _peek(machine, node, frame)
    if not isinstance(value, Choice):
        return
    kept = [option for option in value.options if keep(option)]
    if not kept or len(kept) == len(value.options):
        return
    narrowed = kept[0] if len(kept) == 1 else Choice(tuple(kept))
    if isinstance(node, ast.Name):
        machine.journal.write(frame.locals, node.id, narrowed)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = frame.locals[node.value.id]
        assert isinstance(owner, Instance)
        machine.journal.write(owner.attributes, node.attr, narrowed)
