"""What a function of NumPy makes of numbers that were read out of tensor data: whole ones, floats, or answers."""

from __future__ import annotations

from exportlens.inference.values import BY_NUMPY, Const, Sequence, Shape, TensorScalar, Value

_INDICES = frozenset(
    {"argmax", "argmin", "argsort", "searchsorted", "digitize", "nonzero", "flatnonzero", "count_nonzero", "ravel_multi_index"}
    | {"lexsort", "argwhere", "bincount", "int64", "int32", "int16", "int8", "intp", "uint8"}
)  # fmt: skip
_ANSWERS = frozenset(
    {"isnan", "isinf", "isfinite", "isneginf", "isposinf", "signbit", "isclose", "allclose", "any", "all", "bool_"}
    | {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "array_equal", "array_equiv"}
    | {"logical_and", "logical_or", "logical_not", "logical_xor"}
)  # fmt: skip
# They give floats of whole numbers, too.
_FLOATS = frozenset(
    {"sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "hypot", "rint", "fabs"}
    | {"sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"}
    | {"mean", "std", "var", "average", "median", "percentile", "quantile", "divide", "true_divide", "float_power", "sinc", "i0"}
    | {"deg2rad", "rad2deg", "degrees", "radians", "float16", "float32", "float64", "double", "single", "half", "copysign", "nextafter"}
    | {"interp", "linspace", "heaviside"}
)  # fmt: skip


def number_by_numpy(short: str, args: list[Value], values: list[Value]) -> Value:
    """What `numpy.short` gives for the `args` where some of `values`, all that it is given, are such numbers."""
    if short == "unravel_index":
        place = TensorScalar("int", BY_NUMPY)
        shape = args[1] if len(args) > 1 else None
        count = len(shape.items) if isinstance(shape, Sequence) and shape.items is not None else None
        return Sequence("tuple", None if count is None else [place] * count, place)
    if short in _INDICES:
        return TensorScalar("int", BY_NUMPY)
    if short in _ANSWERS:
        return TensorScalar("bool", BY_NUMPY)
    return TensorScalar("float" if short in _FLOATS or any(map(_is_float, values)) else "", BY_NUMPY)


def _is_float(value: Value) -> bool:
    if isinstance(value, (TensorScalar, Shape)):
        return value.type == "float"
    return isinstance(value, Const) and type(value.value) is float
