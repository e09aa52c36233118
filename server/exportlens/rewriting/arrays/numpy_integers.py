"""Whole numbers among arrays: beside a float of Python's, and divided, they are of double precision to NumPy, and of the
default precision to torch."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping
from dataclasses import dataclass

from exportlens.inference.tensors import dtype_family
from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function
from exportlens.source.walking import walk

_WHOLE_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_COUNTING = frozenset(
    {"sum", "prod", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin", "cumsum"}
)
_KEEPING = frozenset(
    {
        "abs",
        "absolute",
        "square",
        "sign",
        "negative",
        "minimum",
        "maximum",
        "clip",
        "where",
        "add",
        "multiply",
    }
)
_MEANS = frozenset({"mean", "std", "var", "percentile", "quantile", "median"})
# Functions that give floats, of double precision where they are given ints of 32 bits or more.
FLOATING = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
    }
)
_NARROW_CASTS = frozenset({"bool", "np.uint8", "np.bool_", "'bool'"})
_LOGICAL = frozenset({"logical_and", "logical_or", "logical_not", "logical_xor", "isnan", "isfinite", "isin"})
_SAME = frozenset(
    {"numpy", "cpu", "detach", "copy", "clone", "view", "reshape", "flatten", "ravel", "squeeze", "transpose"}
)
_CASTS = frozenset(
    {"int", "bool", "np.int64", "np.int32", "np.uint8", "np.bool_", "numpy.int64", "'int'", "'bool'"}
)


@dataclass(frozen=True, slots=True)
class Known:
    """The function that arrays are followed in, and the dtypes of those that tensors are made, where they are known."""

    function: Function | None
    dtypes: Mapping[ast.expr, str]
    # Names that may be of any dtype.
    of_any: Container[ast.expr] = ()


def widened(operation: ast.expr, node: ast.expr, known: Known) -> bool:
    """Whether `node`, of which `operation` is made, is of whole numbers that NumPy makes floats of double precision there."""
    if not is_whole(node, known):
        return False
    if isinstance(operation, ast.Attribute):
        return operation.attr in _MEANS
    if isinstance(operation, ast.Call):
        head, _, name = (dotted(operation.func) or "").rpartition(".")
        if head in ("np", "numpy") and name in FLOATING and _is_narrow(node, known):
            raise Refused(f"NumPy gives floats of few bits for the bools or bytes of `{ast.unparse(node)}`")
        return head in ("np", "numpy") and name in _MEANS | FLOATING
    if not isinstance(operation, ast.BinOp):
        return False
    if isinstance(operation.op, ast.Sub) and _is_narrow(node, known):
        raise Refused(f"torch subtracts no bools, which `{ast.unparse(node)}` may be of")
    other = operation.right if operation.left is node else operation.left
    if isinstance(operation.op, ast.Div) and is_whole(other, known):
        return True
    return isinstance(operation.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)) and _is_float(
        other, known.function
    )


def averaged_of_any(operation: ast.expr, node: ast.expr, known: Known) -> bool:
    """Whether the mean or spread is asked of an array, by its name or where it is made, that may hold ints as well as floats:
    torch takes no mean of ints, and NumPy makes doubles of them."""
    if isinstance(operation, ast.Attribute):
        asked = operation.attr in _MEANS
    else:
        head, _, name = (
            (dotted(operation.func) or "").rpartition(".")
            if isinstance(operation, ast.Call)
            else ("", "", "")
        )
        asked = head in ("np", "numpy") and (name in _MEANS or _meets_float(operation, name))
    if not asked or node in known.of_any:
        return asked
    made = given_to_name(node.id, known.function) if isinstance(node, ast.Name) else [node]
    return bool(made) and all(_is_of_any(each, known) for each in made)


def _is_of_any(node: ast.expr, known: Known) -> bool:
    """Whether `node` is `t.numpy()` of a tensor whose dtype nothing tells, and which costs nothing to name twice."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr != "numpy"
    ):
        return False
    inner: ast.expr = node.func.value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _SAME:
        inner = inner.func.value
    return node not in known.dtypes and dotted(inner) is not None


def refuse_bytes(node: ast.expr, function: str, known: Known) -> None:
    """Raise Refused where NumPy adds up what has no sign, and gives a dtype that torch does not."""
    if function in ("sum", "prod", "cumsum", "cumprod") and is_whole(node, known) and _is_bytes(node, known):
        raise Refused(f"NumPy adds up bytes to numbers without a sign, which `{ast.unparse(node)}` may hold")


def _is_bytes(node: ast.expr, known: Known) -> bool:
    if node in known.dtypes:
        return known.dtypes[node].startswith("uint")
    if isinstance(node, ast.Name):
        return any(_is_bytes(each, known) for each in given_to_name(node.id, known.function))
    inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    cast = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "astype"
    if cast and isinstance(node, ast.Call):
        return "uint" in ast.unparse(node.args[0])
    return not isinstance(node, ast.Compare) and any(_is_bytes(each, known) for each in inner)


def is_whole(node: ast.expr, known: Known) -> bool:
    """Whether `node` certainly is of ints or bools."""
    dtype = known.dtypes.get(node)
    if dtype is not None:
        return dtype_family(dtype) in ("int", "bool")
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.BinOp):
        whole = is_whole(node.left, known) and is_whole(node.right, known)
        return whole and isinstance(node.op, (*_WHOLE_OPERATORS, *_BITS))
    if isinstance(node, ast.UnaryOp):
        return is_whole(node.operand, known)
    if isinstance(node, ast.Subscript):
        return is_whole(node.value, known)
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "ndim", "shape")
    if isinstance(node, ast.Name):
        given = given_to_name(node.id, known.function)
        return bool(given) and all(
            (each in known.dtypes or not _reads(each, node.id)) and is_whole(each, known) for each in given
        )
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, node.func.value
    if name == "astype":
        return bool(node.args) and ast.unparse(node.args[0]) in _CASTS
    if dotted(owner) in ("np", "numpy"):
        given = node.args[1:] if name == "where" and len(node.args) == 3 else node.args
        given = given[:1] if name in _COUNTING else given
        whole = bool(given) and all(is_whole(each, known) for each in given)
        return name in _LOGICAL or (whole and name in _COUNTING | _KEEPING)
    if name in ("long", "int", "bool", "argmax", "argmin", "argsort"):
        return True
    return name in (_COUNTING | _SAME) and is_whole(owner, known)


def _meets_float(operation: ast.expr, name: str) -> bool:
    """Whether the larger or the smaller is asked for, of an array and a float."""
    return (
        name in ("maximum", "minimum")
        and isinstance(operation, ast.Call)
        and any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in operation.args)
    )


def is_floating(node: ast.expr, known: Known, seen: frozenset[str] = frozenset()) -> bool:
    """Whether `node` certainly is of floats."""
    dtype = known.dtypes.get(node)
    if dtype is not None:
        return dtype_family(dtype) == "float"
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return isinstance(node.op, ast.Div) or any(is_floating(each, known, seen) for each in sides)
    if isinstance(node, (ast.UnaryOp, ast.Subscript)):
        inner = node.operand if isinstance(node, ast.UnaryOp) else node.value
        return not isinstance(getattr(node, "op", None), ast.Not) and is_floating(inner, known, seen)
    if isinstance(node, ast.Name):
        given = given_to_name(node.id, known.function)
        within = seen | {node.id}
        return node.id in seen or (bool(given) and all(is_floating(each, known, within) for each in given))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, node.func.value
    if name == "astype":
        return bool(node.args) and (DTYPES.get(ast.unparse(node.args[0])) or "").startswith("float")
    if name in _MEANS:
        return True
    if dotted(owner) in ("np", "numpy"):
        made = name in FLOATING or (name in _KEEPING | {"max", "min", "sum", "cumsum"} and bool(node.args))
        kept = any(is_floating(each, known, seen) for each in node.args[1 if name == "where" else 0 :])
        return made and (name in FLOATING or kept)
    return name in _SAME | {"max", "min", "sum", "clip", "cumsum"} and is_floating(owner, known, seen)


def dtype_of(node: ast.expr, known: Known) -> str | None:
    """The dtype of the array `node`, as far as it is that of a tensor which it is made of, or converted to."""
    if node in known.dtypes:
        return known.dtypes[node]
    if isinstance(node, ast.Name):
        found = {
            dtype_of(each, known)
            for each in given_to_name(node.id, known.function)
            if not _reads(each, node.id)
        }
        return found.pop() if len(found) == 1 else None
    if isinstance(node, ast.Subscript):
        return dtype_of(node.value, known)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "astype" and node.args:
            return DTYPES.get(ast.unparse(node.args[0]).replace("numpy.", "np."))
        return dtype_of(node.func.value, known) if node.func.attr in _SAME else None
    return None


def _is_narrow(node: ast.expr, known: Known) -> bool:
    """Whether whole numbers may be bools, or of few bits."""
    if node in known.dtypes:
        return known.dtypes[node] not in ("int", "int32", "int64")
    if isinstance(node, ast.Name):
        return any(_is_narrow(each, known) for each in given_to_name(node.id, known.function))
    if isinstance(node, ast.BinOp):
        return _is_narrow(node.left, known) and _is_narrow(node.right, known)
    if isinstance(node, ast.UnaryOp):
        return _is_narrow(node.operand, known)
    if isinstance(node, ast.Subscript):
        return _is_narrow(node.value, known)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return isinstance(node, ast.Compare)
    name, owner = node.func.attr, node.func.value
    if name == "astype":
        return ast.unparse(node.args[0]) in _NARROW_CASTS
    if dotted(owner) in ("np", "numpy"):
        return name in _LOGICAL or (name in ("any", "all", "max", "min") and _is_narrow(node.args[0], known))
    if name in ("bool", "any", "all"):
        return True
    return name in _SAME | {"max", "min"} and _is_narrow(owner, known)


def _is_float(node: ast.expr, function: Function | None) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.UnaryOp):
        return _is_float(node.operand, function)
    given = given_to_name(node.id, function) if isinstance(node, ast.Name) else []
    return bool(given) and all(isinstance(each, ast.Constant) and _is_float(each, function) for each in given)


def given_to_name(name: str, function: Function | None) -> list[ast.expr]:
    """What the name is given in the function, or by its default."""
    if function is None:
        return []
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip(reversed(named), reversed(arguments.defaults), strict=False))
    found = [value for key, value in defaults.items() if key.arg == name]
    for each in walk(function):
        if isinstance(each, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in each.targets
        ):
            found.append(each.value)
    return found


def _reads(node: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
