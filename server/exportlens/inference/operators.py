"""Operators: arithmetic and comparison of abstract values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exportlens.inference import dynamic
from exportlens.inference.autocasting import recast_by_operator
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_held, notice_numpy
from exportlens.inference.object_operators import always_objects, applied, applied_alone, is_plain
from exportlens.inference.places import Conversion, Truth
from exportlens.inference.tensors import broadcast, comparison, dtype_family, fresh_array, text_of
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Member,
    ModuleRef,
    Named,
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
    options,
)

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MAX_CONSTANT = 10_000


def binary(
    machine: Machine,
    op: ast.operator,
    left: Value,
    right: Value,
    frame: Frame,
    node: ast.AST,
    sure: bool = True,
) -> Value:
    """`left op right`; not `sure` where configuration decides whether the operands are of these kinds."""
    if isinstance(left, Const) and isinstance(right, Const):
        return fold(BINARY[type(op)], left.value, right.value)
    if isinstance(left, Choice) or isinstance(right, Choice):
        sure = sure and always_objects(left) and always_objects(right)
        return _over_options(left, right, lambda a, b: binary(machine, op, a, b, frame, node, sure))
    # `[0] * n` of a tensor is that of its number, and no product of tensors.
    repeats = isinstance(op, ast.Mult) and (_is_plain_list(left) or _is_plain_list(right))
    if not repeats and (isinstance(left, Tensor) or isinstance(right, Tensor)):
        other = right if isinstance(left, Tensor) else left
        if isinstance(other, Instance) and isinstance(other.cls, ClassValue):
            given = applied(machine, op, left, right, frame, node, sure) if is_plain(other) else None
            return Unknown("an operator of an object") if given is None else given
        notice_held(machine, left if other is right else right, other, frame, node)
        matmul = isinstance(op, ast.MatMult)
        made = broadcast(left, right, division=isinstance(op, ast.Div), matmul=matmul)
        made = recast_by_operator(machine, left, right, made, matmul=matmul)
        if machine.without_gradients and isinstance(made, Tensor) and made.requires_grad:
            made = replace(made, requires_grad=None)
        if (getattr(left, "dims", None) or getattr(right, "dims", None)) and not matmul:
            return dynamic.met(machine, left, right, made, frame, node)
        return made
    if isinstance(left, Instance) or isinstance(right, Instance):
        given = applied(machine, op, left, right, frame, node, sure)
        if given is not None:
            return given
    if isinstance(op, ast.BitOr) and isinstance(left, Mapping_) and isinstance(right, Mapping_):
        rest = left.rest if right.rest is None else right.rest
        return Mapping_(
            {**left.items, **right.items},
            join(left.rest, right.rest) if left.rest is not None and right.rest is not None else rest,
        )
    if isinstance(left, Sequence) or isinstance(right, Sequence):
        times = right if isinstance(left, Sequence) else left
        if isinstance(op, ast.Mult) and from_data(times) and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, times, "repeat"))
        return _sequence_binary(op, left, right)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        other = right if isinstance(left, Unknown) else left
        if isinstance(other, TensorScalar) or (isinstance(other, Shape) and other.unbacked):
            # Whatever is added to a number from data, the result is from data.
            return replace(other, type="")
        if isinstance(other, Array) and other.traced:
            return fresh_array(other, other)
        if all(_may_be_tensor(value) for value in (left, right)):
            return Tensor()
        return Unknown("an operand is unknown", given=_of_part(left, right))
    if isinstance(left, Array) or isinstance(right, Array):
        return fresh_array(left, right)
    if _is_text(left) or _is_text(right):
        return text_of((left, right))
    _notice_decided(machine, op, left, right, frame, node)
    return _number(op, left, right)


def _is_text(value: Value) -> bool:
    return (isinstance(value, Const) and isinstance(value.value, str)) or (
        isinstance(value, Static) and value.type == "str"
    )


def _notice_decided(
    machine: Machine, op: ast.operator, left: Value, right: Value, frame: Frame, node: ast.AST
) -> None:
    """Note arithmetic in which Python needs to know a number from data: a truth value that it counts with, or a whole exponent of
    a whole number, which gives a float where it is negative."""
    if not machine.emits(Conversion):
        return
    for value in (left, right):
        counts = not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))
        if counts and isinstance(value, TensorScalar) and value.type == "bool" and value.origin != "bool()":
            machine.notice(Conversion(machine.site(frame), node, value, "count"))
            return
    whole = number_type(left) == "int" and isinstance(right, TensorScalar) and right.type == "int"
    if isinstance(op, ast.Pow) and whole:
        machine.notice(Conversion(machine.site(frame), node, right, "exponent"))


def _of_part(left: Value, right: Value) -> str:
    """What is computed with an argument, or a part of one, may be a tensor as that may: what is asked of it tells."""
    operands = [each for each in (left, right) if isinstance(each, Unknown)]
    return "part" if any(each.argument or each.given == "part" for each in operands) else ""


def _may_be_tensor(value: Value) -> bool:
    """What takes part in arithmetic with the output of a part of the model: another, or a number."""
    if isinstance(value, Unknown):
        # What an attribute of an output holds may be a number.
        return value.made and not value.method
    return (isinstance(value, Const) and isinstance(value.value, (int, float))) or isinstance(
        value, (Static, Shape)
    )


def fold(function: Callable[..., Any], *operands: Any) -> Value:
    """Compute on constants, within reason; Unknown where Python would raise."""
    if any(isinstance(operand, (str, bytes)) and len(operand) > _MAX_CONSTANT for operand in operands):
        return Static("str")
    if function in (operator.pow, operator.lshift) and any(
        isinstance(operand, int) and abs(operand) > _MAX_CONSTANT for operand in operands
    ):
        return Static("int")
    if (
        function is operator.mul
        and any(isinstance(o, int) and o > _MAX_CONSTANT for o in operands)
        and any(isinstance(o, (str, bytes)) for o in operands)
    ):
        return Static("str")
    try:
        result = function(*operands)
    except Exception:  # whatever Python itself would raise here stops the user's program, not the analysis
        return Unknown("this expression raises")
    if isinstance(result, (int, float, complex, str, bytes, bool, type(None))):
        return Const(result)
    return Unknown("a constant expression")


def _over_options(left: Value, right: Value, run: Callable[[Value, Value], Value]) -> Value:
    results = [run(a, b) for a in _options(left) for b in _options(right)]
    result = results[0]
    for other in results[1:]:
        result = join(result, other)
    return result


def _options(value: Value) -> tuple[Value, ...]:
    return value.options if isinstance(value, Choice) else (value,)


def _is_plain_list(value: Value) -> bool:
    """Whether it is a list, or a tuple of no class of its own; what may be a tensor is none."""
    if not isinstance(value, Sequence) or value.guessed:
        return False
    return value.kind == "list" or (value.kind == "tuple" and not value.type_name and not value.fields)


def _sequence_binary(op: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(op, ast.Mod) and isinstance(left, Const) and isinstance(left.value, str):
        return text_of(right.items or [] if isinstance(right, Sequence) else [right])
    if isinstance(op, ast.Add) and isinstance(left, Sequence) and isinstance(right, Sequence):
        kind = left.kind
        if left.items is not None and right.items is not None:
            return Sequence(kind, [*left.items, *right.items])
        if left.items == []:
            return Sequence(kind, right.items, right.element)
        return Sequence(kind, None, join(element_of(left), element_of(right)))
    if isinstance(op, ast.Mult):
        sequence, times = (left, right) if isinstance(left, Sequence) else (right, left)
        if isinstance(sequence, Sequence):
            if (
                isinstance(times, Const)
                and isinstance(times.value, int)
                and sequence.items is not None
                and len(sequence.items) * times.value <= 256
            ):
                return Sequence(sequence.kind, sequence.items * times.value)
            return Sequence(sequence.kind, None, element_of(sequence))
    if isinstance(left, Sequence) and left.kind == "set":
        return Sequence("set", None, element_of(left))
    return Unknown("an operator of a sequence")


def _scalar_of(left: Value, right: Value) -> TensorScalar:
    """The operand that is read out of tensor data: that of NumPy's, where one is, as what is computed with it is NumPy's as well."""
    scalars = [each for each in (left, right) if isinstance(each, TensorScalar)]
    return next((each for each in scalars if each.by_numpy), scalars[0])


def _number(op: ast.operator, left: Value, right: Value) -> Value:
    """Arithmetic of Python numbers of which at least one is not known."""
    if isinstance(left, TensorScalar) or isinstance(right, TensorScalar):
        scalar = _scalar_of(left, right)
        kind = (
            "float"
            if isinstance(op, ast.Div) or "float" in (number_type(left), number_type(right))
            else scalar.type
        )
        return TensorScalar(kind, scalar.origin)
    if isinstance(left, Shape) or isinstance(right, Shape):
        shapes = [value for value in (left, right) if isinstance(value, Shape)]
        first = next((shape for shape in shapes if shape.unbacked), shapes[0])
        kinds = {number_type(left), number_type(right)}
        # Beside what may be a float, as an option whose type nothing tells, a size may become one.
        kind = (
            "float"
            if isinstance(op, ast.Div) or "float" in kinds
            else "int"
            if kinds <= {"int", "bool"}
            else ""
        )
        part = isinstance(op, (ast.Div, ast.FloorDiv)) or any(shape.part for shape in shapes)
        return Shape(first.unbacked, first.input, first.dim, first.origin, kind, part=part)
    if isinstance(left, Named) or isinstance(right, Named):
        return Unknown("an operator of something external")
    kinds = {number_type(left), number_type(right)}
    if isinstance(op, ast.Div):
        return Static("float")
    return Static("float" if "float" in kinds else kinds.pop() if len(kinds) == 1 else "")


def number_type(value: Value) -> str:
    """The type of a number: int, float, bool, or "" where it is not known."""
    if isinstance(value, Const):
        return type(value.value).__name__
    return getattr(value, "type", "")


def unary(
    machine: Machine, op: ast.unaryop, value: Value, frame: Frame, node: ast.AST, sure: bool = True
) -> Value:
    """`-value`, `+value`, `~value`; `sure` as in `binary`."""
    if isinstance(value, Const):
        return fold(_UNARY[type(op)], value.value)
    if isinstance(value, Choice):
        sure = sure and always_objects(value)
        return _over_options(value, Const(0), lambda a, _: unary(machine, op, a, frame, node, sure))
    if isinstance(value, Tensor):
        return broadcast(value, value)
    if isinstance(value, Instance):
        given = applied_alone(machine, op, value, frame, node, sure)
        if given is not None:
            return given
    if isinstance(value, (TensorScalar, Shape, Static, Array)):
        return value
    return Unknown("an operator of something unknown")


def compare(machine: Machine, op: ast.cmpop, left: Value, right: Value, frame: Frame, node: ast.AST) -> Value:
    """`left op right` for one comparison operator."""
    if isinstance(left, Member) and left.plain and not isinstance(right, Member):
        left = left.value
    elif isinstance(right, Member) and right.plain and not isinstance(left, Member):
        right = right.value
    if isinstance(left, Choice) or isinstance(right, Choice):
        return _over_options(left, right, lambda a, b: compare(machine, op, a, b, frame, node))
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _identical(left, right)
        numbers = [each for each in (left, right) if isinstance(each, TensorScalar)]
        other = right if numbers and numbers[0] is left else left
        if (
            numbers
            and isinstance(other, Const)
            and isinstance(other.value, (int, float))
            and machine.emits(Truth)
        ):
            machine.notice(Truth(machine.site(frame), node, numbers[0], "is", node, frame.visible()))
        return Static("bool") if same is None else Const(same is isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)):
        return _contains(machine, left, right, isinstance(op, ast.NotIn), frame, node)
    if isinstance(left, Const) and isinstance(right, Const):
        return fold(COMPARE[type(op)], left.value, right.value)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        other = right if isinstance(left, Tensor) else left
        if isinstance(other, Const) and (other.value is None or isinstance(other.value, str)):
            return Const(isinstance(op, ast.NotEq))
        notice_held(machine, left if other is right else right, other, frame, node)
        return comparison(left, right)
    if isinstance(left, TensorScalar) or isinstance(right, TensorScalar):
        scalar = _scalar_of(left, right)
        other = right if scalar is left else left
        if isinstance(other, Const) and (other.value is None or isinstance(other.value, str)):
            return Const(isinstance(op, ast.NotEq))
        return TensorScalar("bool", scalar.origin)
    if isinstance(left, Array) or isinstance(right, Array):
        return replace(fresh_array(left, right), dtype="bool")
    if isinstance(left, Shape) or isinstance(right, Shape):
        declared = dynamic.compare_sizes(op, left, right)
        if declared is not None:
            return declared
        shapes = [value for value in (left, right) if isinstance(value, Shape)]
        first = next((shape for shape in shapes if shape.unbacked), shapes[0])
        if first.unbacked and (
            _decided_for_sizes(op, left, right)
            or (all(shape.unbacked and not shape.part for shape in shapes) and len(shapes) == 2)
        ):
            # Two sizes from data may be one and the same number: of a tensor and of what was made from it.
            return Static("bool")
        if not first.unbacked and isinstance(left, Shape) and isinstance(right, Const) and _is_huge(right):
            # No example input comes near: `n * n < torch.iinfo(torch.int32).max`.
            return Const(isinstance(op, (ast.Lt, ast.LtE, ast.NotEq)))
        if not first.unbacked and isinstance(left, Shape) and left.type == "int" and left.whole:
            decided = _for_a_size(op, right)
            if decided is not None:
                return Const(decided)
        if not first.unbacked and left == Const(0) and isinstance(right, Shape) and right.whole:
            # `while index < n`: no size of a real input is zero.
            return Const(isinstance(op, (ast.Lt, ast.LtE, ast.NotEq)))
        return Shape(first.unbacked, first.input, first.dim, first.origin, "bool")
    if isinstance(op, (ast.Eq, ast.NotEq)):
        return _equality(op, left, right)
    if (isinstance(left, Unknown) or isinstance(right, Unknown)) and all(map(_may_be_tensor, (left, right))):
        return Tensor(dtype="bool")
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown("compared with something unknown", given=_of_part(left, right))
    return Static("bool")


def _is_huge(bound: Const) -> bool:
    return isinstance(bound.value, (int, float)) and bound.value >= 2**31 - 1


def _decided_for_sizes(op: ast.cmpop, left: Value, right: Value) -> bool:
    """Comparisons that every size answers alike: `n >= 0`, `n < 0`, `n == -1`, `n == None`."""
    if isinstance(right, Const):
        if not isinstance(right.value, (int, float)):
            return True
        if isinstance(op, (ast.GtE, ast.Lt)):
            return right.value <= 0
        return right.value < 0
    return False


def _for_a_size(op: ast.cmpop, right: Value) -> bool | None:
    """What a comparison with 0 or less gives for the size of a real input: nobody exports with empty tensors."""
    if (
        not isinstance(right, Const)
        or not isinstance(right.value, int)
        or isinstance(right.value, bool)
        or right.value > 0
    ):
        return None
    return isinstance(op, (ast.Gt, ast.GtE, ast.NotEq))


def _are_lists_of_numbers(left: Value, right: Value) -> bool:
    """Whether both are lists, or both tuples, of numbers that were read out of tensors, as many as nobody knows: Python asks one pair
    after the other."""
    return (
        isinstance(left, Sequence)
        and isinstance(right, Sequence)
        and left.kind == right.kind != "set"
        and all(each.items is None and isinstance(each.element, TensorScalar) for each in (left, right))
    )


def _equality(op: ast.cmpop, left: Value, right: Value) -> Value:
    equal: bool | None = None
    if isinstance(left, Static) and left.of and isinstance(right, Named):
        equal = _is_of_dtype(left.of, _dtype_name(right))
    elif isinstance(right, Static) and right.of and isinstance(left, Named):
        equal = _is_of_dtype(right.of, _dtype_name(left))
    elif isinstance(left, Named) and isinstance(right, Named):
        if _dtype_name(left) == _dtype_name(right):
            equal = True
        elif (left.name.startswith(("device:", "enum:")) and right.name.startswith(("device:", "enum:"))) or (
            left.name.startswith("torch.")
            and right.name.startswith("torch.")
            and left.name.count(".") == right.name.count(".") == 1
        ):
            equal = False
    elif isinstance(left, Named) and left.name.startswith("device:") and isinstance(right, Const):
        equal = left.name == f"device:{right.value}"
    elif (isinstance(left, Const) and isinstance(right, Sequence)) or (
        isinstance(left, Sequence) and isinstance(right, Const)
    ):
        equal = False
    elif (
        isinstance(left, Sequence)
        and isinstance(right, Sequence)
        and left.items is not None
        and right.items is not None
    ):
        if len(left.items) != len(right.items):
            equal = False
        elif any(from_data(item) for item in (*left.items, *right.items)):
            # Tuples are compared element by element, each asked for its truth.
            scalars = [item for item in (*left.items, *right.items) if from_data(item)]
            return TensorScalar("bool", scalars[0].describe())
        elif all(
            isinstance(a, Const) and isinstance(b, Const)
            for a, b in zip(left.items, right.items, strict=True)
        ):
            equal = all(a == b for a, b in zip(left.items, right.items, strict=True))
    elif _are_lists_of_numbers(left, right):
        return TensorScalar("bool", "the numbers of a tensor")
    elif isinstance(left, (Function, ClassValue)) and isinstance(right, (Function, ClassValue)):
        equal = left is right
    elif (isinstance(left, Const) and left.value is None and _never_none(right)) or (
        isinstance(right, Const) and right.value is None and _never_none(left)
    ):
        equal = False
    if equal is None:
        return (
            Unknown("compared with something unknown", given=_of_part(left, right))
            if isinstance(left, Unknown) or isinstance(right, Unknown)
            else Static("bool")
        )
    return Const(equal is isinstance(op, ast.Eq))


def _never_none(value: Value) -> bool:
    if isinstance(value, Static):
        return value.type not in ("", "NoneType")
    if isinstance(value, Named):
        return value.name.startswith(("torch.", "numpy.", "math."))
    return isinstance(
        value,
        (
            Tensor,
            TensorScalar,
            Shape,
            Sequence,
            Mapping_,
            Function,
            ClassValue,
            Instance,
            Bound,
            Partial,
            Array,
            ModuleRef,
            Native,
        ),
    )


_DTYPE_ALIASES = {
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.short": "torch.int16",
    "torch.int": "torch.int32",
    "torch.long": "torch.int64",
    "torch.cfloat": "torch.complex64",
    "torch.cdouble": "torch.complex128",
}


def _dtype_name(value: Named) -> str:
    """The qualified name of `value`; of a dtype the one that torch itself prints."""
    return _DTYPE_ALIASES.get(value.name, value.name)


def _is_of_dtype(family: str, name: str) -> bool | None:
    """Whether a tensor of which only the dtype's family is known ("any": nothing) has the dtype `name`.

    Models and their inputs are taken to be in torch's default precision, as they are taken to be on the CPU.
    """
    asked = dtype_family(name.removeprefix("torch."))
    if asked is None:
        return None
    if asked == "float":
        return False if name != "torch.float32" or family in ("int", "complex") else family == "float" or None
    return (
        False if asked == "complex" and family != "complex" else None if family in ("any", asked) else False
    )


def _identical(left: Value, right: Value) -> bool | None:
    if left is right and not isinstance(left, (Static, Unknown)):
        return True
    if isinstance(left, Const) and isinstance(right, Const):
        return type(left.value) is type(right.value) and left.value == right.value
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Const) and value.value is None and _never_none(other):
            return False
        if (
            isinstance(value, Const)
            and isinstance(value.value, bool)
            and isinstance(other, (Tensor, Sequence, Mapping_, Instance))
        ):
            return False
    if isinstance(left, Named) and isinstance(right, Named):
        return (
            True
            if left.name == right.name
            else False
            if left.name.startswith("enum:") and right.name.startswith("enum:")
            else False
            if left.name.startswith("torch.") and right.name.startswith("torch.")
            else None
        )
    if isinstance(left, (ClassValue, Function)) and isinstance(right, (ClassValue, Function, Named)):
        return left is right
    return None


def _is_plain_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) in (int, float)


def _contains(
    machine: Machine, item: Value, container: Value, negated: bool, frame: Frame, node: ast.AST
) -> Value:
    if isinstance(container, Const) and isinstance(item, Const) and isinstance(container.value, (str, bytes)):
        return fold(lambda a, b: (a in b) is not negated, item.value, container.value)
    if isinstance(container, Mapping_) and isinstance(item, Const):
        if item.value in container.items:
            return Const(not negated)
        if container.rest is None:
            return Const(negated)
        return Static("bool")
    if isinstance(container, Instance) and isinstance(container.attributes.get("__items__"), Mapping_):
        return _contains(machine, item, container.attributes["__items__"], negated, frame, node)
    if isinstance(container, Instance) and isinstance(container.cls, ClassValue):
        from exportlens.inference.construction import call_method

        result = call_method(machine, container, "__contains__", [item], frame, node)
        if result is not None and isinstance(result, Const):
            return Const(bool(result.value) is not negated)
        return result if result is not None and not negated else Static("bool")
    if isinstance(container, Sequence) and container.items is not None:
        if (
            any(isinstance(value, Tensor) for value in container.items)
            and isinstance(item, Tensor)
            and from_data(item)
        ):
            if machine.emits(Truth):
                machine.notice(
                    Truth(machine.site(frame), node, comparison(item, item), "compare", node, frame.visible())
                )
            return Static("bool")
        if (
            from_data(item)
            and container.items
            and not all(isinstance(value, Const) and value.value is None for value in container.items)
        ):
            found = (
                comparison(item, item) if isinstance(item, Tensor) else TensorScalar("bool", item.describe())
            )
            if machine.emits(Truth) and any(map(_is_plain_number, container.items)):
                machine.notice(Truth(machine.site(frame), node, found, "in", node, frame.visible()))
            return found
        if container.items:
            notice_numpy(machine, item, "in", frame, node)
        verdicts = [compare(machine, ast.Eq(), item, value, frame, node) for value in container.items]
        if any(isinstance(verdict, Const) and verdict.value for verdict in verdicts):
            return Const(not negated)
        if all(isinstance(verdict, Const) and not verdict.value for verdict in verdicts):
            return Const(negated)
        return Static("bool")
    if isinstance(container, Sequence) and container.items is None:
        parts = [*(options(container.element) if container.element is not None else ()), item]
        told = next((each for each in parts if isinstance(each, TensorScalar)), None)
        if told is not None:
            asked = TensorScalar("bool", told.origin)
            if machine.emits(Truth):
                machine.notice(Truth(machine.site(frame), node, asked, "in", node, frame.visible()))
            return asked
    if isinstance(container, Tensor) and isinstance(item, Const) and isinstance(item.value, str):
        return Unknown("no tensor holds text: this is something else")
    if isinstance(container, Tensor):
        return TensorScalar("bool", "`in` a tensor") if from_data(container) else Static("bool")
    if isinstance(container, Unknown) or isinstance(item, Unknown):
        return Unknown("membership in something unknown")
    return Static("bool")
