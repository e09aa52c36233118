"""Lists of tensors that are made longer by what they were: `self.history = self.history + [x]`."""

from __future__ import annotations

import ast

from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Instance, Sequence, Tensor, TensorScalar, Value, options

from exportlens_rules.mutation.state_reads import loaded
from exportlens_rules.reading import ancestors


def lengthened(place: AttributeWrite) -> ast.Assign | ast.AugAssign | None:
    """The statement, where it adds tensors, or numbers that are read out of them, to the list that the last call left:
    `self.history = self.history + [x]`, also where the list is cut behind it."""
    began, value = place.began, place.value
    if not isinstance(began, Sequence) or not isinstance(value, Sequence) or place.elsewhere:
        return None
    if not isinstance(place.owner, Instance) or place.owner.traced or began.kind != "list":
        return None
    added = added_at_last(value)
    numbers = added is not None and all(isinstance(each, TensorScalar) for each in options(added))
    if added is None or not (numbers or is_tensor(added)):
        return None
    for each in [place.node, *ancestors(place)]:
        if isinstance(each, ast.AugAssign):
            return each
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            target, longer = each.targets[0], each.value
            if isinstance(longer, ast.Subscript) and isinstance(longer.slice, ast.Slice):
                longer = longer.value
            if not isinstance(target, ast.Attribute) or not isinstance(longer, ast.BinOp):
                continue
            if ast.dump(longer.left) == ast.dump(loaded(target)):
                return each
    return None


def added_at_last(value: Value) -> Value | None:
    """The last item of a list, or one of them."""
    if not isinstance(value, Sequence):
        return None
    return value.items[-1] if value.items else value.element


def target_of(statement: ast.Assign | ast.AugAssign) -> ast.Attribute:
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    assert isinstance(target, ast.Attribute)
    return target


def is_tensor(value: Value) -> bool:
    """Whether `value` is a tensor, or a tuple or list of them, as the key and value of a layer are."""
    return all(
        all(map(is_tensor, option.items))
        if isinstance(option, Sequence) and option.items
        else isinstance(option, Tensor) and option.origin != "constant"
        for option in options(value)
    )
