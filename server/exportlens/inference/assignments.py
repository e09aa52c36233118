"""Assignments: names, attributes, items and what is unpacked get their abstract values."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.attribute_writes import set_attribute, set_past_class
from exportlens.inference.calls import call_value
from exportlens.inference.classes import is_module_class
from exportlens.inference.expressions import evaluate, unpacked
from exportlens.inference.items import set_item
from exportlens.inference.iteration import elements_of
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.modules import container_kind, module_attribute
from exportlens.inference.operators import binary
from exportlens.inference.places import Mutation, NameWrite
from exportlens.inference.told_ranks import by_unpacking
from exportlens.inference.uses import part_by_use
from exportlens.inference.values import (
    Const,
    Function,
    Instance,
    Sequence,
    Tensor,
    Unknown,
    Value,
)


def assign(machine: Machine, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind `value` to an assignment target of any form."""
    if isinstance(target, ast.Name):
        names, outlives = _holder(target.id, frame)
        if outlives and machine.emits(NameWrite):
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
        key = evaluate(machine, target.slice, frame)
        if not _set_by_name(machine, target, key, value, frame):
            set_item(machine, owner, key, value, frame, target)
        _take_gradient(machine, target.value, owner, value, frame)
    elif isinstance(target, ast.Starred):
        assign(machine, target.value, value, frame)


def _set_by_name(
    machine: Machine, target: ast.Subscript, key: Value, value: Value, frame: Frame, augmented: bool = False
) -> bool:
    """`owner.__dict__["state"] = value`, and the same of the `_buffers` of a Module: an attribute is set."""
    holder = target.value
    if not (isinstance(holder, ast.Attribute) and holder.attr in ("__dict__", "_buffers")):
        return False
    if not (isinstance(key, Const) and isinstance(key.value, str)):
        return False
    owner = evaluate(machine, holder.value, frame)
    if not isinstance(owner, Instance) or (holder.attr == "_buffers" and not is_module_class(owner.cls)):
        return False
    set_past_class(machine, owner, key.value, value, frame, target, augmented)
    return True


def _take_gradient(machine: Machine, node: ast.expr, owner: Value, value: Value, frame: Frame) -> None:
    """A tensor of a name that is written a value with a gradient has one."""
    if (
        isinstance(node, ast.Name)
        and isinstance(owner, Tensor)
        and isinstance(value, Tensor)
        and value.requires_grad
        and not owner.requires_grad
        and not machine.without_gradients
        and frame.locals.get(node.id) is owner
    ):
        machine.journal.write(frame.locals, node.id, replace(owner, requires_grad=True))


def _holder(name: str, frame: Frame) -> tuple[dict[str, Value], bool]:
    """The names among which `name` is bound in `frame`, and whether they are there before and after the trace: those of
    a function that the trace itself runs are made anew by each call."""
    if name in frame.global_names:
        return frame.scope.values, True
    if name in frame.outer_names:
        outer = frame.closure
        while outer is not None:
            if name in outer.locals:
                return outer.locals, not outer.traced
            outer = outer.closure
    return frame.locals, False


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


def run_assign(machine: Machine, node: ast.Assign, frame: Frame) -> bool:
    first = node.targets[0]
    if isinstance(first, (ast.Tuple, ast.List)) and not any(isinstance(t, ast.Starred) for t in first.elts):
        value = unpacked(machine, node.value, len(first.elts), frame)
        _tell_rank(machine, node, value, frame)
    else:
        value = evaluate(machine, node.value, frame)
    for target in node.targets:
        assign(machine, target, told_by_use(machine, target, value, node, frame), frame)
    return True


def told_by_use(
    machine: Machine,
    target: ast.expr,
    value: Value,
    binding: ast.Assign | ast.For | ast.AsyncFor,
    frame: Frame,
) -> Value:
    """`x, mask = batch`: what is done with the parts of an argument tells what they are, as it does of whole arguments."""
    function = frame.function
    if function is None:
        return value
    if isinstance(target, ast.Name):
        if not isinstance(value, Unknown) or value.given != "part":
            return value
        return part_by_use(machine, function, target.id, binding) or value
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (Sequence, Unknown)):
        return value
    items, _ = elements_of(machine, value, frame, None, expected=len(target.elts))
    if not items and _is_spread(binding, function):
        # What a caller gives to `*inputs` is not known.
        items = [Unknown("a part of the arguments", given="part") for _ in target.elts]
    if items is None or len(items) != len(target.elts):
        return value
    if not any(isinstance(each, Unknown) and each.given for each in items):
        return value
    parts = zip(target.elts, items, strict=True)
    return Sequence("tuple", [told_by_use(machine, each, item, binding, frame) for each, item in parts])


def _is_spread(binding: ast.Assign | ast.For | ast.AsyncFor, function: Function) -> bool:
    """Whether `binding` takes the arguments of `*inputs` apart, or a tuple or list of them."""
    node = binding.value if isinstance(binding, ast.Assign) else binding.iter
    while (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and getattr(node.func, "id", "") in ("tuple", "list")
    ):
        node = node.args[0]
    spread = function.node.args.vararg
    return spread is not None and isinstance(node, ast.Name) and node.id == spread.arg


def _tell_rank(machine: Machine, node: ast.Assign, value: Value, frame: Frame) -> None:
    """`b, n = x.shape`: `x` has as many dimensions as there are names, or the assignment raises."""
    told = by_unpacking(node.targets, node.value)
    if told is None or not isinstance(value, Sequence) or value.type_name != "torch.Size":
        return
    tensor = frame.locals.get(told[0])
    if isinstance(tensor, Tensor) and tensor.rank is None:
        machine.journal.write(frame.locals, told[0], replace(tensor, rank=told[1]))


def run_ann_assign(machine: Machine, node: ast.AnnAssign, frame: Frame) -> bool:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value, frame), frame)
    elif isinstance(node.target, ast.Name) and frame.owner is not None and frame.function is None:
        frame.locals.setdefault("__annotations_only__", Sequence("list", []))
    return True


def run_aug_assign(machine: Machine, node: ast.AugAssign, frame: Frame) -> bool:
    old = evaluate(machine, node.target, frame)
    value = evaluate(machine, node.value, frame)
    extended = _extended(machine, node, old, value, frame)
    new = binary(machine, node.op, old, value, frame, node) if extended is None else extended
    if isinstance(old, Tensor):
        if machine.emits(Mutation):
            machine.notice(
                Mutation(machine.site(frame), node, old, type(node.op).__name__, (value,), frame.receiver)
            )
        if isinstance(new, Tensor) and old.root:
            new = Tensor(old.origin, old.name, old.dtype, old.rank, old.unbacked, old.root, old.requires_grad)
        elif isinstance(new, Tensor) and old.origin in ("buffer", "parameter", "attribute"):
            # It is written in place, whatever size the other operand has.
            new = replace(new, rank=old.rank, unbacked=old.unbacked, open_dim=old.open_dim)
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
        key = evaluate(machine, node.target.slice, frame)
        if not _set_by_name(machine, node.target, key, new, frame, augmented=True):
            set_item(machine, owner, key, new, frame, node.target, augmented=True)
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
