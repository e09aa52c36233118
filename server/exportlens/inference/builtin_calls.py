"""Python's own functions on numbers, sequences and mappings, as `natives` lists them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exportlens.inference.classes import is_module_class
from exportlens.inference.iteration import elements_of, length_of
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_numpy, number_held
from exportlens.inference.operators import compare, fold, number_type
from exportlens.inference.ordering import ORDERING, notice_keys, notice_order
from exportlens.inference.places import Conversion, Truth
from exportlens.inference.tensors import text_of
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Native,
    Partial,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
    is_filled,
)

Run = Callable[[Machine, list[Value], dict[str, Value], Frame, ast.AST], Value]


_MAX_RANGE = 64


def _len(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    del kwargs
    length = length_of(machine, args[0], frame, node) if args else Unknown("len()")
    if isinstance(length, Shape) and length.unbacked and machine.emits(Conversion):
        # `len()` must answer with a plain int: Python itself asks for the number.
        machine.notice(Conversion(machine.site(frame), node, length, "len"))
    return length


def _number(kind: str, function: Callable[[object], object]) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del kwargs
        if not args:
            return Const(function(0))
        if not isinstance(args[0], Choice):
            return made(machine, args[0], frame, node, "")
        options = [
            option for option in args[0].options if not (isinstance(option, Const) and option.value is None)
        ]
        either = len({isinstance(option, (Tensor, Unknown)) for option in options}) > 1
        if not either and len({number_type(option) for option in options}) > 1:
            # A number that may be of another type is none that the conversion may be left out of.
            options = [
                replace(option, type="") if isinstance(option, (TensorScalar, Shape)) else option
                for option in options
            ]
        results = [made(machine, option, frame, node, "either" if either else "") for option in options]
        result = results[0]
        for other in results[1:]:
            result = join(result, other)
        return result

    def made(machine: Machine, value: Value, frame: Frame, node: ast.AST, use: str) -> Value:
        if isinstance(value, Const):
            return fold(function, value.value)
        if isinstance(value, Tensor) and value.origin == "outside":
            return Static(kind)
        if machine.tracing and isinstance(value, Array) and value.held and kind in ("int", "float"):
            return number_held(value, kind)
        if isinstance(value, Array) and (value.dtype or "").startswith("int"):
            notice_numpy(machine, value, "item", frame, node)  # the same as `value.item()`; a float is fine
        if from_data(value):
            if machine.emits(Conversion):
                machine.notice(Conversion(machine.site(frame), node, value, kind, use))
            if isinstance(value, Shape):
                return Shape(True, value.input, value.dim, value.origin, kind)
            if isinstance(value, TensorScalar):
                # Of a number of NumPy's it makes one of Python's.
                return TensorScalar(kind, f"{kind}()" if value.by_numpy else value.origin)
            return TensorScalar(kind, getattr(value, "name", "") or "a tensor")
        if isinstance(value, Shape):
            return Shape(False, value.input, value.dim, value.origin, kind)
        if isinstance(value, Unknown):
            return Unknown(f"{kind}() of something unknown")
        return Static(kind)

    return run


def _bool(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if not args:
        return Const(False)
    truth = truth_of(args[0])
    if truth is True or truth is False:
        return Const(truth)
    if truth is DATA:
        if machine.emits(Truth):
            machine.notice(Truth(machine.site(frame), node, args[0], "bool", node, frame.visible()))
        return TensorScalar("bool", "bool()")
    notice_numpy(machine, args[0], "truth", frame, node)
    return Static("bool")


def _str(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    del kwargs
    if args and isinstance(args[0], Const):
        return Const(str(args[0].value))
    if args and from_data(args[0]) and machine.emits(Conversion):
        machine.notice(Conversion(machine.site(frame), node, args[0], "str"))
    if args:
        notice_numpy(machine, args[0], "text", frame, node)
    return text_of(args)


def _format(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if len(args) == 2 and all(isinstance(each, Const) for each in args):
        return fold(format, *(each.value for each in args if isinstance(each, Const)))
    return _str(machine, args, kwargs, frame, node)


def _spelled(how: Callable[[Any], str]) -> Run:
    """`bin`, `hex`, `oct` or `chr` of a number."""

    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        if len(args) == 1 and isinstance(args[0], Const):
            return fold(how, args[0].value)
        return _str(machine, args, kwargs, frame, node)

    return run


def _ord(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    del machine, kwargs, frame, node
    if args and isinstance(args[0], Const):
        return fold(ord, args[0].value)
    return Static("int") if args and isinstance(args[0], Static) else Unknown("ord() of something unknown")


def _range(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    for value in args:
        notice_numpy(machine, value, "range", frame, node)
        if from_data(value) and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, value, "range", variables=frame.visible()))
        if isinstance(value, Shape) and value.bounds is not None and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, value, "range", variables=frame.visible()))
    if args and all(isinstance(value, Const) and isinstance(value.value, int) for value in args):
        try:
            numbers = range(*(value.value for value in args if isinstance(value, Const)))
        except (TypeError, ValueError):
            return Unknown("a range that raises")
        if len(numbers) <= _MAX_RANGE:
            return Sequence("range", [Const(number) for number in numbers])
    shape = next((value for value in args if isinstance(value, Shape)), None)
    return Sequence(
        "range",
        None,
        Static("int") if shape is None or not shape.unbacked else TensorScalar("int", shape.origin),
        filled=isinstance(args[-1], Shape) and args[-1].whole and args[:-1] in ([], [Const(0)]),
    )


def hashed(machine: Machine, element: Value, frame: Frame, node: ast.AST) -> None:
    """Note that numbers from data go into a set, which tells equal ones apart."""
    if machine.emits(Conversion) and not isinstance(element, Tensor) and from_data(element):
        machine.notice(Conversion(machine.site(frame), node, element, "set", variables=frame.visible()))


def make_sequence(kind: str) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del kwargs
        if not args:
            return Sequence(kind, [])
        items, element = elements_of(machine, args[0], frame, node, context=kind)
        if isinstance(args[0], Sequence) and args[0].type_name == "torch.Size":
            return Sequence(kind, items, None if items is not None else element)
        if kind in ("set", "frozenset"):
            hashed(machine, element, frame, node)
        return Sequence(
            kind,
            items if kind not in ("set", "frozenset") else None,
            element if items is None or kind in ("set", "frozenset") else None,
            filled=is_filled(args[0]),
        )

    return run


def _dict(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    result = Mapping_(dict(kwargs))
    if args and isinstance(args[0], Mapping_):
        result.items = {**args[0].items, **kwargs}
        result.rest = args[0].rest
    elif args:
        items, element = elements_of(machine, args[0], frame, node)
        for pair in items or []:
            if (
                isinstance(pair, Sequence)
                and pair.items is not None
                and len(pair.items) == 2
                and isinstance(pair.items[0], Const)
            ):
                result.items[pair.items[0].value] = pair.items[1]
            else:
                result.rest = Unknown("a dict's value")
        if items is None:
            result.rest = (
                element.items[1]
                if isinstance(element, Sequence) and element.items and len(element.items) == 2
                else Unknown("a dict's value")
            )
    return result


def _zip(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    del kwargs
    found = [elements_of(machine, value, frame, node) for value in args]
    if found and all(items is not None for items, _ in found):
        return Sequence(
            "generator",
            [
                Sequence("tuple", list(row))
                for row in zip(*[items for items, _ in found if items is not None], strict=False)
            ],
        )
    row = Sequence("tuple", [element for _, element in found])
    return Sequence("generator", None, row, filled=all(map(is_filled, args)))


def _enumerate(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Const(0))
    items, element = elements_of(machine, args[0], frame, node) if args else (None, Unknown("enumerate()"))
    if items is not None and isinstance(start, Const) and isinstance(start.value, int):
        return Sequence(
            "generator",
            [Sequence("tuple", [Const(start.value + index), item]) for index, item in enumerate(items)],
        )
    row = Sequence("tuple", [Static("int"), element])
    return Sequence("generator", None, row, filled=bool(args) and is_filled(args[0]))


def _reversed(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    return Sequence(
        "generator",
        items[::-1] if items is not None else None,
        None if items is not None else element,
        filled=is_filled(args[0]),
    )


def _is_fraction(value: Value) -> bool:
    """Whether a bound says that what it bounds is a float: whole numbers have no part of one, and their zero is written `0`."""
    known = value.value if isinstance(value, Const) else None
    return isinstance(known, float) and (known % 1 > 0 or known == 0)


def _notice_extreme(
    machine: Machine, name: str, element: Value, kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> None:
    """`max()` or `min()` of any number of values from data: both modes have an operator for sizes and whole numbers."""
    if isinstance(element, Array) or kwargs:
        if machine.emits(Truth):
            machine.notice(Truth(machine.site(frame), node, element, "compare", node, frame.visible()))
    elif machine.emits(Conversion):
        machine.notice(Conversion(machine.site(frame), node, element, "compare", name))


def _extreme(name: str) -> Run:
    function = {"max": max, "min": min}[name]

    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        values: list[Value] | None = list(args)
        if len(args) == 1:
            whole = args[0]
            if isinstance(whole, Tensor) and from_data(whole) and not kwargs and machine.emits(Conversion):
                machine.notice(Conversion(machine.site(frame), node, whole, "compare", name, frame.visible()))
            values, element = elements_of(machine, args[0], frame, node)
            compared = values if values is not None else [element, element]
            notice_keys(machine, compared, kwargs, frame, node)
            if isinstance(element, Sequence) and "key" not in kwargs:
                notice_order(machine, compared, frame, node)
            if values is None:
                if from_data(element) and "key" not in kwargs and not isinstance(element, Tensor):
                    _notice_extreme(machine, name, element, kwargs, frame, node)
                return (
                    element
                    if not isinstance(element, Tensor)
                    else Tensor(element.origin, "", element.dtype, element.rank)
                )
        assert values is not None
        if len(args) > 1 and kwargs:
            notice_keys(machine, values, kwargs, frame, node)
        elif len(args) > 1 and all(isinstance(value, Sequence) for value in values):
            notice_order(machine, values, frame, node)
        if values and all(isinstance(value, Const) for value in values) and "key" not in kwargs:
            return (
                fold(function, *(value.value for value in values if isinstance(value, Const)))
                if len(values) > 1
                else values[0]
            )
        scalars = [
            value
            for value in values
            if isinstance(value, TensorScalar) or (isinstance(value, Shape) and value.unbacked)
        ]
        if scalars and len(values) > 1 and "key" not in kwargs:
            if machine.emits(Conversion):
                # Whole numbers have an operator for this, floats do not.
                told = next((value for value in scalars if value.type == "float"), scalars[0])
                if isinstance(told, TensorScalar) and not told.type and any(map(_is_fraction, values)):
                    # Nobody bounds whole numbers by 1e-6 or 0.0.
                    told = replace(told, type="float")
                machine.notice(Conversion(machine.site(frame), node, told, "compare", name, frame.visible()))
            if isinstance(scalars[0], TensorScalar) and len({number_type(value) for value in values}) > 1:
                # Python gives one of them as it is: `max(0, loss)` may be an int.
                return replace(scalars[0], type="")
            return scalars[0]
        tensors = [value for value in values if isinstance(value, Tensor) and from_data(value)]
        if tensors and len(values) > 1 and "key" not in kwargs:
            if machine.emits(Truth):
                machine.notice(
                    Truth(
                        machine.site(frame),
                        node,
                        compare(machine, ast.Gt(), tensors[0], tensors[-1], frame, node),
                        name,
                        node,
                        frame.visible(),
                    )
                )
            return tensors[0]
        result: Value | None = None
        for value in values:
            result = value if result is None else join(result, value)
        if isinstance(result, Choice) and any(isinstance(option, Shape) for option in result.options):
            return next(option for option in result.options if isinstance(option, Shape))
        return result if result is not None else Unknown(f"{name}() of nothing")

    return run


def _sum(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    from exportlens.inference.operators import binary

    items, element = elements_of(machine, args[0], frame, node)
    start = args[1] if len(args) > 1 else kwargs.get("start", Const(0))
    values = items if items is not None else [element]
    result = start
    for value in values:
        result = binary(machine, ast.Add(), result, value, frame, node)
    if items is None and isinstance(result, Const):
        return Static()
    return result


def _any_all(name: str) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del kwargs
        items, element = elements_of(machine, args[0], frame, node)
        values = items if items is not None else [element]
        stop = name == "any"
        verdicts = [truth_of(value) for value in values]
        if items is not None and stop in verdicts and DATA not in verdicts[: verdicts.index(stop)]:
            return Const(stop)
        data = next((value for value, verdict in zip(values, verdicts, strict=True) if verdict is DATA), None)
        if data is not None:
            if machine.emits(Truth):
                machine.notice(Truth(machine.site(frame), node, data, name, node, frame.visible()))
            return Static("bool")
        if items is not None and all(verdict is (not stop) for verdict in verdicts):
            return Const(not stop)
        if values:
            notice_numpy(machine, values[0], "truth", frame, node)
        return Static("bool")

    return run


def _abs(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    del machine, kwargs, frame, node
    value = args[0]
    if isinstance(value, Const):
        return fold(abs, value.value)
    return (
        Tensor("fresh", "", value.dtype, value.rank, value.unbacked)
        if isinstance(value, Tensor) and value.origin != "constant"
        else value
    )


def _round(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    value = args[0]
    notice_numpy(machine, value, "round", frame, node)
    if all(isinstance(item, Const) for item in args):
        return fold(round, *(item.value for item in args if isinstance(item, Const)))
    if isinstance(value, Shape):
        return Shape(
            value.unbacked, value.input, value.dim, value.origin, "int" if len(args) == 1 else value.type
        )
    if isinstance(value, TensorScalar) and len(args) == 1 and "ndigits" not in kwargs:
        return TensorScalar("int", value.origin)
    return value


def _pow(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    from exportlens.inference.operators import binary

    if len(args) == 2 and not kwargs:
        return binary(machine, ast.Pow(), args[0], args[1], frame, node)
    return TensorScalar("int", "pow()") if any(map(from_data, args)) else Unknown("pow()")


def _divmod(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.operators import binary

    del kwargs
    if len(args) != 2:
        return Unknown("divmod()")
    parts = [binary(machine, op, args[0], args[1], frame, node) for op in (ast.FloorDiv(), ast.Mod())]
    return Sequence("tuple", parts)


def _map(machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
    from exportlens.inference.calls import call_value

    del kwargs
    if len(args) < 2:
        return Unknown("map()")
    rows = _zip(machine, args[1:], {}, frame, node)
    assert isinstance(rows, Sequence)
    if rows.items is not None:
        return Sequence(
            "generator",
            [
                call_value(machine, args[0], list(row.items or []), {}, frame, node)
                for row in rows.items
                if isinstance(row, Sequence)
            ],
        )
    row = element_of(rows)
    return Sequence(
        "generator",
        None,
        call_value(
            machine, args[0], list(row.items or []) if isinstance(row, Sequence) else [], {}, frame, node
        ),
    )


def _filter(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    _, element = elements_of(machine, args[-1], frame, node)
    return Sequence("generator", None, element)


def first(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    return args[0] if args else Unknown("no argument")


def second(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    return args[1] if len(args) > 1 else Unknown("no argument")


def constant(value: object) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del machine, args, kwargs, frame, node
        return Const(value)

    return run


def _next(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    if items and isinstance(args[0], Sequence) and args[0].kind == "generator":
        machine.journal.write(args[0], "items", items[1:])
    return items[0] if items else element


def _callable(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    value = args[0] if args else Unknown()
    if isinstance(value, (Function, ClassValue, Bound, Partial, Native)):
        return Const(True)
    if isinstance(value, (Const, Tensor, Sequence, Mapping_, Shape, TensorScalar)):
        return Const(False)
    if isinstance(value, Instance) and is_module_class(value.cls):
        return Const(True)
    return Static("bool")


BUILTINS: dict[str, Run] = {
    **ORDERING,
    "builtins.len": _len,
    "builtins.ord": _ord,
    "builtins.int": _number("int", lambda value: int(value)),  # type: ignore[call-overload]
    "builtins.float": _number("float", lambda value: float(value)),  # type: ignore[arg-type]
    "builtins.complex": _number("complex", lambda value: complex(value)),  # type: ignore[call-overload]
    "builtins.bool": _bool,
    "builtins.str": _str,
    "builtins.repr": _str,
    "builtins.format": _format,
    "builtins.bin": _spelled(bin),
    "builtins.hex": _spelled(hex),
    "builtins.oct": _spelled(oct),
    "builtins.chr": _spelled(chr),
    "builtins.range": _range,
    "builtins.list": make_sequence("list"),
    "builtins.tuple": make_sequence("tuple"),
    "builtins.set": make_sequence("set"),
    "builtins.frozenset": make_sequence("frozenset"),
    "builtins.iter": make_sequence("generator"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.zip": _zip,
    "itertools.zip_longest": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.reversed": _reversed,
    "builtins.max": _extreme("max"),
    "builtins.min": _extreme("min"),
    "builtins.sum": _sum,
    "builtins.any": _any_all("any"),
    "builtins.all": _any_all("all"),
    "builtins.abs": _abs,
    "builtins.round": _round,
    "builtins.divmod": _divmod,
    "builtins.pow": _pow,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.next": _next,
    "builtins.callable": _callable,
}
