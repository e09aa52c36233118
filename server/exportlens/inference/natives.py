"""Natives: builtins and a few library functions that the interpreter answers itself."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.inference import knowledge
from exportlens.inference.dynamic import make_dim
from exportlens.inference.iteration import elements_of, length_of, names_in
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.objects import (
    class_attribute,
    class_order,
    get_attribute,
    is_module_class,
    set_attribute,
)
from exportlens.inference.operators import compare, fold
from exportlens.inference.places import Conversion, Truth
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
    ModuleRef,
    Named,
    Native,
    Partial,
    Sequence,
    Shape,
    Slice,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
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
        value = args[0]
        if isinstance(value, Const):
            return fold(function, value.value)
        if isinstance(value, Choice):
            results = [
                run(machine, [option], {}, frame, node)
                for option in value.options
                if not (isinstance(option, Const) and option.value is None)
            ]
            result = results[0]
            for other in results[1:]:
                result = join(result, other)
            return result
        if isinstance(value, Tensor) and value.origin == "outside":
            return Static(kind)
        if isinstance(value, Array) and (value.dtype or "").startswith("int"):
            notice_numpy(machine, value, "item", frame, node)  # the same as `value.item()`; a float is fine
        if from_data(value):
            if not isinstance(value, (TensorScalar, Shape)) and machine.emits(Conversion):
                machine.notice(Conversion(machine.site(frame), node, value, kind))
            if isinstance(value, Shape):
                return Shape(True, value.input, value.dim, value.origin, kind)
            if isinstance(value, TensorScalar):
                if machine.emits(Conversion):
                    machine.notice(Conversion(machine.site(frame), node, value, kind))
                return TensorScalar(kind, value.origin)
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
            machine.notice(Truth(machine.site(frame), node, args[0], "bool", node, dict(frame.locals)))
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
    return Static("str")


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
            machine.notice(Conversion(machine.site(frame), node, value, "range"))
        if isinstance(value, Shape) and value.bounds is not None and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, value, "range", variables=names_in(frame)))
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
    )


def _make_sequence(kind: str) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del kwargs
        if not args:
            return Sequence(kind, [])
        items, element = elements_of(machine, args[0], frame, node, context=kind)
        if isinstance(args[0], Sequence) and args[0].type_name == "torch.Size":
            return Sequence(kind, items, None if items is not None else element)
        return Sequence(
            kind,
            items if kind not in ("set", "frozenset") else None,
            element if items is None or kind in ("set", "frozenset") else None,
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
    return Sequence("generator", None, Sequence("tuple", [element for _, element in found]))


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
    return Sequence("generator", None, Sequence("tuple", [Static("int"), element]))


def _reversed(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    return Sequence(
        "generator", items[::-1] if items is not None else None, None if items is not None else element
    )


def _progress_bar(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """Going through a progress bar is going through what it was given."""
    iterable = args[0] if args else kwargs.get("iterable")
    if iterable is None:
        return Unknown("a progress bar over nothing")
    items, element = elements_of(machine, iterable, frame, node)
    return Sequence("generator", items, None if items is not None else element)


# How many items a `key=` is followed for.
_MOST_KEYS = 2


def _notice_keys(
    machine: Machine, items: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> None:
    """Follow `key=` of `sorted`, `max` or `min`, and note where what it returns can only be compared by its data."""
    from exportlens.inference.calls import call_value

    key = kwargs.get("key")
    if not isinstance(key, (Function, Bound)) or len(items) < 2:
        return
    results = [call_value(machine, key, [item], {}, frame, node) for item in items[:_MOST_KEYS]]
    if all(map(from_data, results)) and machine.emits(Truth):
        machine.notice(Truth(machine.site(frame), node, results[0], "sort", node, dict(frame.locals)))


def _sorted(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    items, element = elements_of(machine, args[0], frame, node)
    _notice_keys(machine, items if items is not None else [element, element], kwargs, frame, node)
    if (
        "key" not in kwargs
        and items is not None
        and len(items) > 1
        and all(from_data(item) for item in items)
    ) and machine.emits(Truth):
        machine.notice(Truth(machine.site(frame), node, items[0], "sort", node, dict(frame.locals)))
    if items is not None and all(isinstance(item, Const) for item in items) and not kwargs:
        try:
            return Sequence("list", sorted(items, key=lambda item: item.value))  # type: ignore[attr-defined]
        except TypeError:
            return Unknown("a sort that raises")
    return Sequence("list", None, element)


def _extreme(name: str) -> Run:
    function = {"max": max, "min": min}[name]

    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        values: list[Value] | None = list(args)
        if len(args) == 1:
            values, element = elements_of(machine, args[0], frame, node)
            _notice_keys(machine, values if values is not None else [element, element], kwargs, frame, node)
            if values is None:
                if (
                    from_data(element)
                    and "key" not in kwargs
                    and not isinstance(element, Tensor)
                    and machine.emits(Truth)
                ):
                    machine.notice(
                        Truth(machine.site(frame), node, element, "compare", node, dict(frame.locals))
                    )
                return (
                    element
                    if not isinstance(element, Tensor)
                    else Tensor(element.origin, "", element.dtype, element.rank)
                )
        assert values is not None
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
                machine.notice(Conversion(machine.site(frame), node, scalars[0], "compare", name))
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
                        dict(frame.locals),
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
                machine.notice(Truth(machine.site(frame), node, data, name, node, dict(frame.locals)))
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
    del kwargs
    value = args[0]
    notice_numpy(machine, value, "round", frame, node)
    if all(isinstance(item, Const) for item in args):
        return fold(round, *(item.value for item in args if isinstance(item, Const)))
    if isinstance(value, Shape):
        return Shape(
            value.unbacked, value.input, value.dim, value.origin, "int" if len(args) == 1 else value.type
        )
    return value


def _isinstance(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    if len(args) != 2:
        return Static("bool")
    kinds = args[1].items if isinstance(args[1], Sequence) and args[1].items is not None else [args[1]]
    value = args[0]
    if isinstance(value, Choice):
        verdicts = {_is_a_any(option, kinds) for option in value.options}
        verdict = verdicts.pop() if len(verdicts) == 1 else None
    else:
        verdict = _is_a_any(value, kinds)
    return Static("bool") if verdict is None else Const(verdict)


def _is_a_any(value: Value, kinds: list[Value]) -> bool | None:
    verdicts = [_is_a(value, kind) for kind in kinds]
    if True in verdicts:
        return True
    return None if None in verdicts else False


_KIND_NAMES = {
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.str": "str",
    "builtins.bool": "bool",
    "builtins.list": "list",
    "builtins.tuple": "tuple",
    "builtins.dict": "dict",
    "builtins.set": "set",
}


def _is_a(value: Value, kind: Value) -> bool | None:
    """Whether `value` is an instance of the class `kind`; None where it is not known."""
    if isinstance(kind, Sequence) and kind.items is not None:
        return _is_a_any(value, kind.items)
    name = kind.name if isinstance(kind, Named) else ""
    short = _KIND_NAMES.get(name)
    if isinstance(value, Const):
        if short is None:
            return (
                False
                if isinstance(kind, (Named, ClassValue))
                and (name.startswith("torch.") or isinstance(kind, ClassValue))
                else _abstract(type(value.value).__name__, name)
            )
        actual = type(value.value).__name__
        return actual == short or (actual == "bool" and short == "int")
    if isinstance(value, Tensor):
        if name in ("torch.Tensor", "torch._C.TensorBase", "torch.TensorType"):
            return True
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return value.origin == "parameter"
        return (
            False
            if isinstance(kind, ClassValue) or short is not None or name.startswith(("torch.", "numpy."))
            else None
        )
    if isinstance(value, (Sequence, Mapping_)):
        actual = value.kind if isinstance(value, Sequence) else "dict"
        if short is not None:
            return actual == short
        if name == "torch.Size":
            return isinstance(value, Sequence) and value.type_name == "torch.Size"
        if name.startswith("torch."):
            return False
        return _abstract(actual, name)
    if isinstance(value, (Shape, TensorScalar, Static)):
        if short is not None and value.type:
            return (
                value.type == short
                if isinstance(value, Static)
                or short not in ("int", "bool")
                or value.type not in ("int", "bool")
                else value.type == short or short == "int"
            )
        if name == "torch.Tensor" and (not isinstance(value, Static) or value.type):
            return False
        return None
    if isinstance(value, Instance):
        return _instance_is_a(value, kind, name, short)
    if isinstance(value, (Function, Bound, Partial, Native, ClassValue, ModuleRef)):
        if short is not None or name.startswith("torch.Tensor") or name == "torch.nn.Module":
            return False
        return None
    if isinstance(value, Array):
        return (
            True
            if name == "numpy.ndarray"
            else False
            if short is not None or name == "torch.Tensor"
            else None
        )
    return None


def _abstract(actual: str, name: str) -> bool | None:
    short = name.rpartition(".")[2]
    if short in ("Iterable", "Sequence", "Sized", "Collection"):
        return actual in ("list", "tuple", "str", "dict", "set", "range") and not (
            short == "Sequence" and actual in ("dict", "set")
        )
    if short == "Mapping":
        return actual == "dict"
    if short in ("Number", "Real", "Integral"):
        return actual in ("int", "float", "bool") and not (short == "Integral" and actual == "float")
    if short == "Callable":
        return False
    return None


def _instance_is_a(value: Instance, kind: Value, name: str, short: str | None) -> bool | None:
    order = class_order(value.cls)
    if isinstance(kind, ClassValue):
        return (
            True
            if any(
                item is kind or (isinstance(item, ClassValue) and item.node is kind.node) for item in order
            )
            else None
            if value.open
            else False
        )
    if isinstance(kind, Named):
        canonical = knowledge.canonical_name(name) or name
        for item in order:
            if isinstance(item, Named) and (knowledge.canonical_name(item.name) or item.name) == canonical:
                return True
        if canonical == "torch.nn.Module" and is_module_class(value.cls):
            return True
        if value.open:
            return None
        if short is not None or name.startswith("torch."):
            return False
    return None


def _getattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) < 2:
        return Unknown("getattr()")
    if not isinstance(args[1], Const) or not isinstance(args[1].value, str):
        return Unknown("getattr with a name that is not known")
    value = get_attribute(machine, args[0], args[1].value, frame, node)
    if len(args) == 3 and isinstance(value, Unknown):
        if isinstance(args[0], Instance) and not args[0].open and "is not set" in value.why:
            return args[2]
        return value
    return value


def _setattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) == 3 and isinstance(args[1], Const) and isinstance(args[1].value, str):
        set_attribute(machine, args[0], args[1].value, args[2], frame, node)
    elif len(args) == 3 and isinstance(args[0], Instance):
        machine.journal.write(args[0], "open", True)
    return Const(None)


def _hasattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) != 2 or not isinstance(args[1], Const):
        return Static("bool")
    owner, name = args[0], str(args[1].value)
    if isinstance(owner, Instance):
        if name in owner.attributes or class_attribute(owner.cls, name)[0] is not None:
            return Const(True)
        value = get_attribute(machine, owner, name, frame, node)
        if not isinstance(value, Unknown):
            return Const(True)
        return Const(False) if not owner.open and "is not set" in value.why else Static("bool")
    if isinstance(owner, Tensor):
        return Const(not isinstance(get_attribute(machine, owner, name, frame, node), Unknown))
    if isinstance(owner, (Const, Sequence, Mapping_)):
        kind: type = (
            type(owner.value)
            if isinstance(owner, Const)
            else dict
            if isinstance(owner, Mapping_)
            else {"list": list, "set": set}.get(owner.kind, tuple)
        )
        return Const(hasattr(kind, name))
    return Static("bool")


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


def _partial(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, frame, node
    return Partial(args[0], tuple(args[1:]), dict(kwargs)) if args else Unknown("partial()")


def _type(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    value = args[0]
    if isinstance(value, Instance):
        return value.cls
    if isinstance(value, Const):
        return Named("builtins." + type(value.value).__name__)
    if isinstance(value, Tensor):
        return Named("torch.Tensor")
    if isinstance(value, Sequence) and value.kind in ("list", "tuple", "set") and not value.type_name:
        return Named("builtins." + value.kind)
    return Unknown("type()")


def _first(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    return args[0] if args else Unknown("no argument")


def _second(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    return args[1] if len(args) > 1 else Unknown("no argument")


def _constant(value: object) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del machine, args, kwargs, frame, node
        return Const(value)

    return run


def _is_tensor(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    return _isinstance(machine, [args[0] if args else Unknown(), Named("torch.Tensor")], kwargs, frame, node)


def _parameter(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del frame, node
    value = args[0] if args else kwargs.get("data")
    known = value if isinstance(value, Tensor) else Tensor()
    return Tensor("parameter", known.name, known.dtype, known.rank, False, machine.new_root())


def _next(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    return items[0] if items else element


def _deepcopy(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    value = args[0] if args else Unknown("deepcopy()")
    return _copy(value, 0)


def _copy(value: Value, depth: int) -> Value:
    if depth > 4:
        return value
    if isinstance(value, Sequence):
        return Sequence(
            value.kind,
            None if value.items is None else [_copy(item, depth + 1) for item in value.items],
            value.element,
            value.type_name,
            value.fields,
        )
    if isinstance(value, Mapping_):
        return Mapping_(
            {key: _copy(item, depth + 1) for key, item in value.items.items()}, value.rest, value.kind
        )
    if isinstance(value, Instance):
        return Instance(
            value.cls,
            {key: _copy(item, depth + 1) for key, item in value.attributes.items()},
            value.open,
            value.name,
            value.arguments,
        )
    return value


def _named_tuple(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs, frame, node
    name = args[0].value if args and isinstance(args[0], Const) else "namedtuple"
    given = args[1] if len(args) > 1 else None
    names: list[str] = []
    if isinstance(given, Const) and isinstance(given.value, str):
        names = given.value.replace(",", " ").split()
    elif isinstance(given, Sequence) and given.items is not None:
        names = [str(item.value) for item in given.items if isinstance(item, Const)]

    def make(m: Machine, a: list[Value], k: dict[str, Value], f: Frame, n: ast.AST) -> Value:
        del m, f, n
        bound: dict[str, Value] = {field: Unknown(f"the field `{field}`") for field in names}
        bound.update(zip(names, a, strict=False))
        bound.update({key: value for key, value in k.items() if key in bound})
        return Sequence("tuple", list(bound.values()), None, str(name), tuple(names))

    del machine
    return Native(str(name), make)


def _size(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    made = _make_sequence("tuple")(machine, args, kwargs, frame, node)
    assert isinstance(made, Sequence)
    return Sequence("tuple", made.items, made.element, "torch.Size")


def _checkpoint(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    rest = {
        key: value
        for key, value in kwargs.items()
        if key not in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug")
    }
    return call_value(machine, args[0], args[1:], rest, frame, node) if args else Unknown("checkpoint()")


def _cond(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    given = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    operands = given.get("operands")
    items = elements_of(machine, operands, frame, node)[0] if operands is not None else []
    results: list[Value] = []
    for name in ("true_fn", "false_fn"):
        if name in given:
            try:
                results.append(call_value(machine, given[name], list(items or []), {}, frame, node))
            except Raised:
                continue  # Only this branch ends here; a rule says what torch thinks of it.
    return join(results[0], results[1]) if len(results) == 2 else Unknown("torch.cond")


def _while_loop(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    given = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | kwargs
    carried = given.get("carried_inputs")
    items = elements_of(machine, carried, frame, node)[0] if carried is not None else None
    if items is None or "body_fn" not in given:
        return Unknown("while_loop")
    call_value(machine, given["cond_fn"], list(items), {}, frame, node)
    return call_value(machine, given["body_fn"], list(items), {}, frame, node)


def _import_module(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.objects import module_value

    del machine, kwargs, node
    if args and isinstance(args[0], Const) and isinstance(args[0].value, str):
        return module_value(args[0].value, frame.scope)
    return Unknown("a module imported by a name that is not known")


def _import_optional(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Static("bool")


def _product(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.operators import binary

    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    result: Value = Const(1)
    for value in items if items is not None else [element]:
        result = binary(machine, ast.Mult(), result, value, frame, node)
    return result if items is not None or not isinstance(result, Const) else Static("int")


def _field(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    del args
    if "default" in kwargs:
        return kwargs["default"]
    if "default_factory" in kwargs:
        return call_value(machine, kwargs["default_factory"], [], {}, frame, node)
    return Unknown("a field without default")


def _chain(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items: list[Value] | None = []
    cover: Value | None = None
    for value in args:
        found, element = elements_of(machine, value, frame, node)
        items = None if items is None or found is None else [*items, *found]
        cover = element if cover is None else join(cover, element)
    return Sequence("generator", items, cover if items is None else None)


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


def _check(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Const(None)


def _device(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    if args and isinstance(args[0], Const) and isinstance(args[0].value, str):
        return Named("device:" + args[0].value)
    return args[0] if args and isinstance(args[0], Named) else Static("device")


def _pack(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Instance(Named("torch.nn.utils.rnn.PackedSequence"), open=True)


def _unpack(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Sequence("tuple", [Tensor(), Tensor(dtype="int64", rank=1)])


def _integer_info(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`torch.iinfo(dtype)`: the bounds of a signed integer type follow from its width."""
    del machine, kwargs, frame, node
    dtype = args[0].name.rpartition(".")[2] if args and isinstance(args[0], Named) else ""
    width = {"int": "32", "long": "64", "short": "16"}.get(dtype, dtype.removeprefix("int"))
    if not width.isdigit():
        return Unknown("torch.iinfo of a type that is not known")
    top = 2 ** (int(width) - 1)
    bounds: dict[str, Value] = {"max": Const(top - 1), "min": Const(-top), "bits": Const(int(width))}
    return Instance(Named("torch.iinfo"), bounds)


def _slice(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    parts: list[Value | None] = [
        None if isinstance(part, Const) and part.value is None else part
        for part in ([None, *args] if len(args) == 1 else [*args, None, None][:3])
    ]
    return Slice(parts[0], parts[1], parts[2] if len(parts) > 2 else None)


def _reduce(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    del kwargs
    if len(args) < 2:
        return Unknown("functools.reduce()")
    items, element = elements_of(machine, args[1], frame, node)
    values = [*args[2:3], *(items if items is not None else [element, element])]
    if not values:
        return Unknown("functools.reduce() of nothing")
    result = values[0]
    for value in values[1:]:
        result = call_value(machine, args[0], [result, value], {}, frame, node)
    return result


def _operator(op: ast.operator) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        from exportlens.inference.operators import binary

        del kwargs
        return binary(machine, op, args[0], args[1], frame, node) if len(args) == 2 else Unknown("operator")

    return run


def _float_info(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    names = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
    return Instance(Named("torch.finfo"), {name: Static("float") for name in names}, open=True)


def _chain_nested(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    items, element = elements_of(machine, args[0], frame, node) if args else ([], Unknown("chain()"))
    return _chain(machine, items if items is not None else [element], kwargs, frame, node)


NATIVES: dict[str, Run] = {
    "builtins.slice": _slice,
    "functools.reduce": _reduce,
    "operator.mul": _operator(ast.Mult()),
    "operator.add": _operator(ast.Add()),
    "torch.finfo": _float_info,
    "itertools.chain.from_iterable": _chain_nested,
    "torch._assert": _check,
    "torch.iinfo": _integer_info,
    "torch.export.Dim": make_dim,
    "torch.nn.utils.rnn.pack_padded_sequence": _pack,
    "torch.nn.utils.rnn.pack_sequence": _pack,
    "torch.nn.utils.rnn.pad_packed_sequence": _unpack,
    "torch.device": _device,
    "builtins.len": _len,
    "builtins.ord": _ord,
    "builtins.int": _number("int", lambda value: int(value)),  # type: ignore[call-overload]
    "builtins.float": _number("float", lambda value: float(value)),  # type: ignore[arg-type]
    "builtins.complex": _number("complex", lambda value: complex(value)),  # type: ignore[call-overload]
    "builtins.bool": _bool,
    "builtins.str": _str,
    "builtins.repr": _str,
    "builtins.format": _str,
    "builtins.range": _range,
    "builtins.list": _make_sequence("list"),
    "builtins.tuple": _make_sequence("tuple"),
    "builtins.set": _make_sequence("set"),
    "builtins.frozenset": _make_sequence("frozenset"),
    "builtins.iter": _make_sequence("generator"),
    "collections.deque": _make_sequence("list"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": lambda machine, args, kwargs, frame, node: Mapping_({}, None, "defaultdict"),
    "collections.namedtuple": _named_tuple,
    "builtins.zip": _zip,
    "itertools.zip_longest": _zip,
    "itertools.chain": _chain,
    "builtins.enumerate": _enumerate,
    "builtins.reversed": _reversed,
    "builtins.sorted": _sorted,
    "builtins.max": _extreme("max"),
    "builtins.min": _extreme("min"),
    "builtins.sum": _sum,
    "builtins.any": _any_all("any"),
    "builtins.all": _any_all("all"),
    "builtins.abs": _abs,
    "builtins.round": _round,
    "builtins.isinstance": _isinstance,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.hasattr": _hasattr,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.type": _type,
    "builtins.next": _next,
    "builtins.callable": _callable,
    "builtins.print": _check,
    "math.prod": _product,
    "functools.partial": _partial,
    "functools.wraps": lambda machine, args, kwargs, frame, node: Native("wraps", _first),
    "typing.cast": _second,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "dataclasses.field": _field,
    "importlib.import_module": _import_module,
    "importlib.util.find_spec": _import_optional,
    "torch.is_tensor": _is_tensor,
    "torch.overrides.has_torch_function": _constant(False),
    "torch.overrides.has_torch_function_unary": _constant(False),
    "torch.overrides.has_torch_function_variadic": _constant(False),
    "torch.overrides.is_tensor_like": _is_tensor,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Buffer": _first,
    "torch.jit.is_scripting": _constant(False),
    "torch.jit.is_tracing": _constant(False),
    "torch._C._get_tracing_state": _constant(None),
    "torch.jit.script": _first,
    "torch.jit.annotate": _second,
    "torch.compile": _first,
    "torch.compiler.is_compiling": _constant(True),
    "torch.compiler.is_exporting": _constant(True),
    "torch.compiler.is_dynamo_compiling": _import_optional,
    "torch._dynamo.is_compiling": _import_optional,
    "torch._utils.is_compiling": _constant(True),
    "torch.onnx.is_in_onnx_export": _constant(False),
    "torch.is_grad_enabled": _import_optional,
    "torch.cuda.is_available": _constant(False),
    "torch.distributed.is_available": _import_optional,
    "torch.distributed.is_initialized": _constant(False),
    "torch.Size": _size,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.cond": _cond,
    "torch._higher_order_ops.cond": _cond,
    "torch._higher_order_ops.while_loop": _while_loop,
    "torch._higher_order_ops.while_loop.while_loop": _while_loop,
    "torch._check": _check,
    "torch._check_is_size": _check,
    "torch._assert_async": _check,
    "torch.autograd.Variable": _first,
    "torch.autograd.variable.Variable": _first,
}
for _bars in ("tqdm", "tqdm.auto", "tqdm.autonotebook", "tqdm.notebook", "tqdm.std"):
    NATIVES |= {f"{_bars}.tqdm": _progress_bar, f"{_bars}.trange": _range}
