"""What a parameter must be for the body of its function to work, where neither annotation nor default tells."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.counted_uses import ATTRIBUTES_OF_TENSORS, Uses, holds_compared, holds_numbers
from exportlens.inference.gone_through import gone_through_as_numbers
from exportlens.inference.machine import Machine
from exportlens.inference.number_names import called_like_a_number
from exportlens.inference.parameters import input_tensor
from exportlens.inference.rebinding import as_given, assignments, bound_by, while_bound
from exportlens.inference.values import Function, Sequence, Static, Tensor, Unknown, Value


def _uses_of(machine: Machine, function: Function, name: str) -> Uses:
    """What the parameter `name` of an entry point is used as; kept for the run."""
    key = ("uses of an entry point", id(function.node), name)
    uses: Uses | None = machine.memo.get(key)
    if uses is None:
        lines = as_given(function.node, name)
        uses = machine.memo[key] = Uses(machine, function, name, lines=lines)
        uses.visit_function()
    return uses


def by_use(machine: Machine, function: Function, name: str, told: bool = False) -> Value:
    """What a parameter without default must be for the body to work.

    `told`: it has an annotation that could not be read, so that only what a tensor alone can do makes it one.
    """
    uses = _uses_of(machine, function, name)
    if uses.mapping:
        return Unknown(f"`{name}` looks like a dict or object", unlike=True)
    if uses.object and not uses.asked:
        # It has what no tensor has: `graph.x`, `batch.edge_index`.
        return Unknown(f"`{name}` looks like an object", unlike=True)
    if uses.decided and not called_like_a_number(name):
        return replace(input_tensor(machine, name, "int" if uses.index else None), rank=0)
    # Neither lists nor tuples take part in arithmetic with a float, nor have a negative; of numbers there are no items.
    if uses.strong or (uses.decimal and uses.container) or (uses.negated and uses.chosen):
        return input_tensor(machine, name)
    # Its items are tensors, and tests compare them, as of a tensor of one dimension.
    listed = uses.container == uses.picked and not (uses.flag or uses.number or uses.iterated)
    if uses.parts and uses.parts_asked and listed:
        return input_tensor(machine, name)
    # What a loop goes through is no number, whatever its items are used as; a name that is bound anew may stand for one.
    bound_anew = any(name in bound_by(node) for node in assignments(machine, function))
    if uses.reckoned and uses.iterated and not (uses.container or uses.flag or bound_anew):
        return input_tensor(machine, name)
    if called_like_a_number(name):
        return Static() if uses.number else Unknown(f"`{name}` is called like a number of Python")
    if told:
        return Unknown(f"the annotation of `{name}` could not be followed")
    if uses.container or (
        uses.iterated and (uses.number or uses.flag or holds_numbers(machine, function, name))
    ):
        return Unknown(f"`{name}` looks like a container")
    if uses.iterated:
        # Tensors, or the rows of one: either way each element is a tensor.
        return (
            input_tensor(machine, name)
            if uses.weak
            else Sequence("list", None, input_tensor(machine, name), filled=True, guessed=True)
        )
    if uses.number and not uses.weak:
        return Static("int")
    if uses.flag and not uses.weak:
        return Static()
    if uses.weak and not uses.number:
        return input_tensor(machine, name)
    return Unknown(f"nothing tells what `{name}` is", argument=name)


def supposed_tensor(machine: Machine, function: Function, name: str) -> Tensor | None:
    """The tensor that a parameter may be of which nothing tells: tests compare it, as a number of Python or a tensor of one
    element, or `int` or `float` reads it, and it is used as nothing else that only a number can be; or its items are compared, also in a loop
    over it, in what it is handed on to, too; or they are where in a picture something is. None where it is used otherwise."""
    uses = _uses_of(machine, function, name)
    otherwise = uses.mapping or uses.object or uses.iterated or uses.flag or uses.strong
    if (uses.weighed or uses.placed) and uses.container == uses.picked and not otherwise and not uses.number:
        return input_tensor(machine, name)
    otherwise += uses.container
    if uses.iterated and not (uses.mapping or uses.object or uses.flag or uses.strong or uses.container):
        compared = (
            gone_through_as_numbers(machine, function, name)
            if uses.number
            else holds_compared(machine, function, name)
        )
        return input_tensor(machine, name) if compared else None
    if otherwise or not (uses.number or uses.floated) or uses.number != uses.compared + uses.read:
        return None
    if called_like_a_number(name) and not (uses.read or uses.floated):
        # Of a number of Python, `int` mostly has nothing to make.
        return None
    # What is compared as a whole mostly has no dimensions.
    return replace(input_tensor(machine, name, "int" if uses.index else None), rank=0)


def part_by_use(
    machine: Machine, function: Function, name: str, given: ast.Assign | ast.For | ast.AsyncFor
) -> Tensor | None:
    """The tensor that `name` must be, which `given` binds to a part of an argument of the entry point; None where nothing
    is done with it that a tensor alone can do."""
    key = ("uses of a part", id(given), name)
    uses: Uses | None = machine.memo.get(key)
    if uses is None:
        lines = (
            while_bound(machine, function, name, given)
            if isinstance(given, ast.Assign)
            else range(given.lineno + 1, (given.end_lineno or given.lineno) + 1)
        )
        uses = machine.memo[key] = Uses(machine, function, name, lines=lines)
        uses.visit_function()
    if uses.mapping or (uses.object and not uses.asked) or not uses.strong:
        return None
    return input_tensor(machine, name)


def asked_for_truth(machine: Machine, function: Function, name: str) -> bool:
    """Whether the body asks for the truth of the parameter `name` itself, which a tensor of several elements does not have."""
    return bool(_uses_of(machine, function, name).flag)


def by_attribute(machine: Machine, value: Unknown, attr: str) -> Value | None:
    """The tensor that an argument is, or a part of one, of which nothing was known before its attribute `attr` was asked for,
    far from the entry point."""
    known = value.argument or value.given == "part"
    return (
        input_tensor(machine, value.argument or "an input")
        if known and attr in ATTRIBUTES_OF_TENSORS
        else None
    )
