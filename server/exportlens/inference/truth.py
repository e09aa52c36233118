"""Truth: what Python would decide on a value, where that is known before the model runs."""

from __future__ import annotations

from typing import Final

from exportlens.inference.values import (
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    ModuleRef,
    Native,
    Partial,
    Sequence,
    Shape,
    Value,
    from_data,
)


class _Data:
    def __repr__(self) -> str:
        return "DATA"


# The answer hangs on tensor data: tracing cannot decide.
DATA: Final = _Data()

Truth = bool | None | _Data


def truth_of(value: Value) -> Truth:
    """True or False where it is certain, DATA where tensor data decides, None where only configuration does."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Choice):
        return _truth_of_choice(value)
    if from_data(value):
        return DATA
    if isinstance(value, Sequence):
        return bool(value.items) if value.items is not None else None
    if isinstance(value, Mapping_):
        return True if value.items else (False if value.rest is None else None)
    if isinstance(value, (Function, ClassValue, Bound, Partial, Native, ModuleRef)):
        return True
    if isinstance(value, Instance):
        return _truth_of_instance(value)
    if isinstance(value, Shape) and value.whole:
        return True
    return None


def _truth_of_choice(value: Choice) -> Truth:
    verdicts = [truth_of(option) for option in value.options]
    if all(verdict is True for verdict in verdicts):
        return True
    if all(verdict is False for verdict in verdicts):
        return False
    if all(verdict is DATA for verdict in verdicts):
        return DATA
    return None


def _truth_of_instance(value: Instance) -> Truth:
    items = value.attributes.get("__items__")
    if isinstance(items, (Sequence, Mapping_)):
        return truth_of(items)
    if value.open:
        return None
    if isinstance(value.cls, ClassValue) and (
        "__len__" in value.cls.attributes or "__bool__" in value.cls.attributes
    ):
        return None
    return True
