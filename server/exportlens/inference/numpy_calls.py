"""Functions of NumPy and methods of its arrays: what they return, and what of it was made from a tensor."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_numbers import number_by_numpy
from exportlens.inference.numpy_reads import held_in, notice_numpy, number_held
from exportlens.inference.places import Conversion
from exportlens.inference.tensors import is_plain_number
from exportlens.inference.values import (
    Array,
    Choice,
    Const,
    Named,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)


def call_numpy(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`name(...)` for a function of NumPy, named in full."""
    if name in _FACTS and args and isinstance(args[0], Tensor):
        return _fact_of(machine, name, args[0], args[1] if len(args) > 1 else kwargs.get("axis"), frame, node)
    result = _result_of(machine, name, args, kwargs, frame, node)
    if isinstance(result, Array) and not result.traced and not _is_drawn_alone(name, args, kwargs):
        held = not machine.tracing or any(map(held_in, args))
        short = name.removeprefix("numpy.")
        if short in _OF_ONE and len(args) == 1 and is_plain_number(args[0]):
            return Array(False, "float64", 0, held=held)
        if short in _DTYPES and len(args) == 1 and is_plain_number(args[0]):
            return Array(False, short, 0, held=held)
        if len(args) == 1 and not kwargs and (dtype := _of_numbers(short, args[0])) is not None:
            return Array(False, dtype, 0, held=held)
        return replace(result, held=held)
    return result


def _of_numbers(short: str, value: Value) -> str | None:
    """The dtype of the one number that is computed of another one of NumPy's, or of a tuple of ints, as a shape; None elsewhere.

    A whole one of a shape has a dtype of its own name: `int` of it strict tracing takes, where it is asked for a size.
    """
    if (
        short in _OF_ONE
        and isinstance(value, Array)
        and value.rank == 0
        and value.dtype in (_WHOLE, "float64")
    ):
        return "float64"
    if short in _REDUCING and isinstance(value, Sequence):
        items = value.items or ([] if value.element is None else [value.element])
        if items and all(_is_whole(each) for each in items):
            return "float64" if short in _AVERAGING else _WHOLE
    return None


def _is_whole(value: Value) -> bool:
    return isinstance(value, Shape) or (isinstance(value, Const) and type(value.value) is int)


def _is_drawn_alone(name: str, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether `name` may draw one number: NumPy's random functions give one of Python's where no size is asked for."""
    if not name.startswith("numpy.random."):
        return False
    short = name.removeprefix("numpy.random.")
    if short in ("permutation", "rand", "randn"):
        return not args
    before = _BEFORE_SIZE.get(short)
    if before is None:
        return True
    size = kwargs.get("size", args[before] if len(args) > before else Const(None))
    return not (
        isinstance(size, (Sequence, Shape, Static)) or (isinstance(size, Const) and size != Const(None))
    )


# What NumPy asks the tensor for, without making an array of it.
_FACTS = {"numpy.shape": "shape", "numpy.ndim": "ndim", "numpy.size": "size", "numpy.isscalar": "type"}


def _fact_of(
    machine: Machine, name: str, tensor: Tensor, axis: Value | None, frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.attributes import get_attribute
    from exportlens.inference.items import get_item

    if name == "numpy.isscalar":
        return Const(False)

    if name == "numpy.size" and axis is not None:
        return get_item(machine, get_attribute(machine, tensor, "shape", frame, node), axis, frame, node)
    return get_attribute(machine, tensor, _FACTS[name], frame, node)


def _result_of(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    values = [*args, *kwargs.values()]
    flat = [
        item
        for value in values
        for item in ((value.items or [value.element or value]) if isinstance(value, Sequence) else [value])
    ]
    traced = [
        value
        for value in flat
        if (isinstance(value, Tensor) and from_data(value)) or (isinstance(value, Array) and value.traced)
    ]
    tensors = [value for value in flat if isinstance(value, Tensor) and from_data(value)]
    if tensors and machine.emits(Conversion):
        of_tensors = [isinstance(value, Tensor) for value in args]
        use = "tensors" if all(of_tensors) else "tensor first" if of_tensors[:1] == [True] else ""
        machine.notice(
            Conversion(machine.site(frame), node, tensors[0], "numpy", use, variables=frame.visible())
        )
    if traced:
        return _made_of_tensors(name.removeprefix("numpy."), args, kwargs)
    if any(isinstance(value, TensorScalar) for value in flat):
        return number_by_numpy(name.removeprefix("numpy."), args, flat)
    short = name.removeprefix("numpy.")
    for number in _lengths(short, args, kwargs):
        notice_numpy(machine, number, "range", frame, node)
    if short in _DTYPES or short in _ARRAYS or short.removeprefix("random.") in _RANDOM:
        open_ended = short == "flatnonzero" or (short == "unique" and len(args) == 1 and not kwargs)
        return Array(False, _dtype(short, args, kwargs), _rank(short, args, kwargs), unbacked=open_ended)
    if any(isinstance(value, Unknown) for value in flat):
        return Unknown(f"calls `{name}`")
    return Static()


def _made_of_tensors(short: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What a function of NumPy makes of what was a tensor: as many items as the data has, or as the array had."""
    first = args[0] if args else None
    if short in ("argwhere", "flatnonzero") or (short == "unique" and len(args) == 1 and not kwargs):
        return Array(True, unbacked=True)
    if len(args) == 1 and not kwargs and short in ("where", "nonzero"):
        return Sequence("tuple", None, Array(True, unbacked=True))
    kept = short in ("squeeze", "ravel", "sort") and isinstance(first, Array) and first.unbacked
    return Array(True, unbacked=kept)


def _lengths(short: str, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments that say how many items the function makes, one after the other."""
    if short == "arange":
        return [*args, *(kwargs[key] for key in ("start", "stop", "step") if key in kwargs)]
    if short in ("linspace", "logspace", "geomspace"):
        return [*args[2:3], *([kwargs["num"]] if "num" in kwargs else [])]
    return []


def _dtype(short: str, args: list[Value], kwargs: dict[str, Value]) -> str | None:
    """The element type of what the function makes, where nothing but its name and its `dtype` decides it."""
    if short in _FLOATS and "dtype" not in kwargs and len(args) <= _FLOATS[short]:
        return "float64"
    if short in ("array", "asarray") and args and not kwargs and len(args) == 1:
        return _dtype_of_items(args[0])
    if short in _JOINING and len(args) == 1 and not kwargs and isinstance(args[0], Sequence):
        # Beside one of doubles the others become doubles.
        doubles = [isinstance(each, Array) and each.dtype == "float64" for each in args[0].items or ()]
        return "float64" if any(doubles) else None
    return _dtype_named(kwargs.get("dtype"))


def _rank(short: str, args: list[Value], kwargs: dict[str, Value]) -> int | None:
    """How many dimensions what the function makes has, where its name and its first argument decide it."""
    if short in _ROWS:
        return 1
    first = args[0] if args else kwargs.get("shape")
    if short in _OF_SHAPE and first is not None:
        if isinstance(first, Sequence):
            return None if first.items is None else len(first.items)
        return 1 if is_plain_number(first) and first != Static("") else None
    if short in ("array", "asarray") and args:
        return _depth(args[0])
    if short in _REDUCING and len(args) == 1 and not kwargs and isinstance(first, Array):
        return 0
    if short in _JOINING and len(args) == 1 and not kwargs and isinstance(first, Sequence):
        # All have as many.
        ranks = [each.rank for each in first.items or () if isinstance(each, Array)]
        return next((rank for rank in ranks if rank is not None), None)
    if short in _KEEPING and len(args) == 1 and not kwargs and isinstance(first, Array):
        return first.rank
    return None


def _depth(value: Value) -> int | None:
    """How deeply nested lists of numbers that are known are."""
    if isinstance(value, Array):
        return value.rank
    if isinstance(value, Sequence) and value.items:
        depths = {_depth(item) for item in value.items}
        depth = depths.pop() if len(depths) == 1 else None
        return None if depth is None else depth + 1
    return 0 if isinstance(value, Const) and isinstance(value.value, (int, float)) else None


def _dtype_of_items(value: Value) -> str | None:
    """float64 or int64 for a (nested) list of numbers that are known, or of several that it may be, each of one kind."""
    if isinstance(value, Choice):
        kinds = {_dtype_of_items(option) for option in value.options}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(value, Sequence) and (value.items or value.element is not None):
        held = value.items if value.items else [value.element] if value.element is not None else []
        kinds = {_dtype_of_items(item) for item in held}
        if None not in kinds and kinds <= {"float64", "int64"}:
            return "float64" if "float64" in kinds else "int64"
    if isinstance(value, Const) and type(value.value) in (int, float):
        return "float64" if isinstance(value.value, float) else "int64"
    return None


def _dtype_named(value: Value | None) -> str | None:
    """ "float32" for `np.float32` or `"float32"`, "int64" for `int`."""
    if isinstance(value, Const) and isinstance(value.value, str):
        plain = {"int": "int64", "float": "float64"}.get(value.value, value.value)
        return plain if plain in _DTYPES else None
    if isinstance(value, Named) and value.name in ("builtins.int", "builtins.float"):
        return "int64" if value.name == "builtins.int" else "float64"
    if isinstance(value, Named) and value.name.startswith("numpy."):
        short = value.name.removeprefix("numpy.")
        return short if short in _DTYPES else None
    return None


def array_method(
    machine: Machine,
    receiver: Array,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """What the method `name` of an array returns."""
    if name in _REDUCING and not args and not kwargs:
        dtype = receiver.dtype if (receiver.dtype or "").startswith("float") else None
        return Array(receiver.traced, dtype, 0, held=receiver.held)
    if name in ("item", "tolist"):
        # Strict tracing gives floats one by one, and whole numbers in lists alone.
        if (receiver.dtype or "").startswith("int" if name == "item" else "float"):
            notice_numpy(machine, receiver, name, frame, node)
        elif receiver.held and machine.tracing:
            number = number_held(receiver)
            return number if name == "item" else Sequence("list", None, number)
        if name == "tolist" and not receiver.traced and receiver.rank == 1 and receiver.dtype == "float64":
            return Sequence("list", None, Static("float"))
        return TensorScalar("", "a NumPy array") if receiver.traced else Static()
    if receiver.traced and name == "nonzero":
        return Sequence("tuple", None, Array(True, unbacked=True))
    kept = receiver.unbacked and name in ("squeeze", "ravel", "flatten", "astype", "copy")
    dtype = _dtype_named(args[0]) if name == "astype" and args else None
    rank = receiver.rank if name in ("astype", "copy", "round", "clip", "cumsum") else None
    return Array(receiver.traced, dtype, rank, unbacked=kept, held=receiver.held)


def item_of_array(owner: Array, key: Value) -> Array:
    """`owner[key]`: as many items as the data says where the key is a mask."""
    masked = isinstance(key, Array) and key.traced and key.dtype == "bool"
    parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
    picks = all(isinstance(part, Const) and type(part.value) is int for part in parts)
    left = owner.rank - len(parts) if picks and owner.rank is not None else None
    return replace(owner, rank=left, unbacked=masked)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DTYPES = _words("""
    bool_ double float16 float32 float64 half int16 int32 int64 int8 intp longlong single uint16 uint32 uint64 uint8
""")

# What returns an array, or a number of NumPy's: the names that torch's own table of NumPy has (torch._numpy),
# without those that answer in types, shapes or numbers of Python.
_ARRAYS = _words("""
    abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argsort argwhere around array array_equal array_equiv array_split asarray ascontiguousarray atleast_1d atleast_2d atleast_3d average
    bartlett bincount bitwise_and bitwise_not bitwise_or bitwise_xor blackman broadcast_arrays broadcast_to cbrt ceil choose clip
    column_stack concatenate conj conjugate convolve copy copysign corrcoef correlate cos cosh count_nonzero cov cross cumprod cumsum
    deg2rad degrees diag diag_indices diagflat diagonal diff divide divmod dot dsplit dstack einsum empty empty_like equal exp exp2
    expand_dims expm1 eye fabs fix flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod full full_like gcd geomspace
    gradient greater greater_equal hamming hanning heaviside histogram hsplit hstack hypot i0 identity imag indices inner invert isclose
    isfinite isinf isnan isneginf isposinf kaiser kron lcm ldexp left_shift less less_equal linspace log log10 log1p log2 logaddexp
    logaddexp2 logical_and logical_not logical_or logical_xor logspace matmul max maximum mean median meshgrid min minimum mod modf moveaxis
    multiply nan_to_num negative nextafter nonzero not_equal ones ones_like outer pad percentile positive power prod quantile rad2deg
    radians ravel real reciprocal remainder repeat reshape resize right_shift rint roll rollaxis rot90 round searchsorted sign signbit sin
    sinc sinh sort split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose
    tri tril tril_indices triu triu_indices true_divide trunc unique vander var vdot vsplit vstack where zeros zeros_like
""")

_RANDOM = _words("""
    beta binomial choice exponential gamma laplace normal permutation poisson rand randint randn random random_sample standard_normal
    uniform
""")

# After how many arguments of these comes the size.
_BEFORE_SIZE = {
    "random": 0, "random_sample": 0, "standard_normal": 0, "choice": 1, "exponential": 1, "poisson": 1, "beta": 2,
    "binomial": 2, "gamma": 2, "laplace": 2, "normal": 2, "randint": 2, "uniform": 2,
}  # fmt: skip

# The functions above under their names in NumPy.
FUNCTIONS = _ARRAYS | (_DTYPES - {"bool_"}) | {f"random.{name}" for name in _RANDOM}

# What makes one float64 of one number.
_OF_ONE = _words("""
    cbrt cos cosh deg2rad double exp exp2 expm1 float64 log log10 log1p log2 rad2deg radians sin sinh sqrt tan tanh
""")

# What makes float64 where no type is asked for, with how many arguments come before the type.
_FLOATS = {
    "zeros": 1, "ones": 1, "empty": 1, "eye": 3, "identity": 1, "linspace": 5,
    "random.rand": 9, "random.randn": 9, "random.random": 1, "random.uniform": 3, "random.normal": 3,
}  # fmt: skip

# What makes one dimension, what as many as its first argument says, and what as many as its argument has.
_ROWS = _words("arange linspace logspace geomspace hanning hamming blackman bartlett kaiser flatnonzero")
_OF_SHAPE = _words("zeros ones empty full")
_REDUCING = _words("max min sum mean std var prod median amax amin")
_JOINING = _words("concatenate")
_WHOLE = "whole"
_AVERAGING = _words("mean std var median")
_KEEPING = _OF_ONE | _words(
    "abs absolute ceil floor negative round sign square array asarray copy cumsum flip"
)
