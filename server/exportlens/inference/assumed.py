"""What functions under torch.compiler.assume_constant_result give: Python runs them while tracing, and the program keeps the result."""

from __future__ import annotations

from dataclasses import replace

from exportlens.inference.values import Array, Function, Sequence, Static, TensorScalar, Value


def is_assumed(function: Function) -> bool:
    return any(each.endswith("assume_constant_result") for each in function.decorators)


def constant(value: Value) -> Value:
    """`value` as the code that called such a function gets it: numbers are known while tracing, wherever they come from."""
    if isinstance(value, TensorScalar):
        return Static(value.type)
    if isinstance(value, Array) and not value.traced and not value.rank:
        # What NumPy draws may be a number of Python's.
        return Static()
    if isinstance(value, Sequence) and value.items is not None and value.kind == "tuple":
        return replace(value, items=[constant(each) for each in value.items])
    return value
