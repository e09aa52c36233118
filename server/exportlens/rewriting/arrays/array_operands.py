"""What stands beside an array that becomes a tensor: a number, a tensor, an array that becomes one as well, or neither.

NumPy's own arrays and torch's tensors do not compute together, and NumPy's numbers decide the dtype of what they meet, which
Python's do not (measured with NumPy 2).
"""

from __future__ import annotations

import ast
from collections.abc import Container

from exportlens.rewriting.arrays.array_methods import WHOLE
from exportlens.rewriting.arrays.numpy_integers import Known, given_to_name, is_whole
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import arguments
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import NUMPY
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

# Methods of tensors that leave them their dimensions.
KEEPING = frozenset(
    {"abs", "clamp", "clone", "contiguous", "cpu", "detach", "double", "exp", "float", "half", "log", "relu", "sigmoid", "sqrt",
     "softmax", "tanh", "to", "type_as"}
)  # fmt: skip
# Methods that are asked for one dimension.
_OF_DIMENSIONS = frozenset(
    {
        "amax",
        "amin",
        "argmax",
        "argmin",
        "cumsum",
        "max",
        "mean",
        "min",
        "size",
        "softmax",
        "sort",
        "std",
        "sum",
        "unbind",
        "var",
    }
)
_NUMBERS = ("tensor", "number", "size", "scalar")
# Floats of Python's, by NumPy's names, and numbers of single precision, which leave the dtype of an array as it is.
_PLAIN = frozenset(f"numpy.{name}" for name in ("pi", "e", "inf", "nan", "newaxis", "euler_gamma"))
_SINGLE = frozenset({"numpy.float32", "numpy.finfo"})
_NARROW = frozenset({"np.uint8", "np.bool_", "bool", "'uint8'", "'bool'"})


def is_no_array(draft: Draft, node: ast.expr, function: Function | None) -> bool:
    """Whether `node` is a number or a tensor as far as can be known, so that it does the same beside a tensor as beside the
    array of it. Arguments that nothing is known of are taken for numbers."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp)):
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return all(is_no_array(draft, each, function) for each in inner)
    if isinstance(node, ast.Constant) or _is_size(node):
        return True
    root = node.value if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) else node
    called = root.func if isinstance(root, ast.Call) else root
    name = draft.qualified(called)
    if name.startswith("math.") or name in ("float", "int", "len"):
        return True
    if name.startswith("numpy."):
        single = isinstance(root, ast.Call) and name in _SINGLE
        if name == "numpy.finfo" and isinstance(root, ast.Call):
            single = [draft.qualified(each) for each in root.args] == ["numpy.float32"]
        return name in _PLAIN or single
    kind = _kinds(draft, node, function).of(node)
    if kind.what in _NUMBERS:
        return True
    given = {each.arg for each in arguments(function.args)} if function is not None else set()
    if isinstance(node, ast.Name) and node.id not in given and is_constant(draft, node.id):
        return True
    head = node
    while isinstance(head, ast.Attribute):
        head = head.value
    unknown = kind.what == "unknown" and kind.type != NUMPY
    return unknown and isinstance(node, (ast.Name, ast.Attribute)) and getattr(head, "id", None) in given


def has_dimensions(source: Source, node: ast.expr) -> bool:
    """Whether the tensor `node` has dimensions: it is given to `forward`, or one of them is asked for."""
    function = source.enclosing_function(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    given = {each.arg for each in arguments(function.args)}
    bound = given_to_name(node.id, function)
    if function.name == "forward" and node.id in given and all(_has_as_many(each, node.id) for each in bound):
        return True
    for each in walk(function):
        parent = source.parents.get(each)
        if not isinstance(each, ast.Name) or each.id != node.id or parent is None:
            continue
        if isinstance(parent, ast.Subscript) and parent.value is each:
            return True
        if isinstance(parent, ast.Attribute) and parent.attr == "shape":
            around = source.parents[parent]
            if isinstance(around, (ast.Subscript, ast.Assign)):
                return True
        call = source.parents[parent]
        if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and call.func is parent:
            numbers = [*call.args, *(key.value for key in call.keywords if key.arg == "dim")]
            if parent.attr in _OF_DIMENSIONS and numbers:
                return True
    return False


def _has_as_many(node: ast.expr, name: str) -> bool:
    """Whether `node` has at least as many dimensions as `name`, which it is computed of."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return _has_as_many(node.left, name) or _has_as_many(node.right, name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in KEEPING and _has_as_many(node.func.value, name)
    return isinstance(node, ast.Name) and node.id == name


def is_one_number(
    node: ast.expr, function: Function, arrays: Container[ast.AST], names: Container[str]
) -> bool:
    """Whether `node` is what a reduction of one of `arrays`, which may have `names`, gives of the whole of it, or computed of
    such numbers."""
    if isinstance(node, ast.Name):
        given = [*given_to_name(node.id, function), *_unpacked(node.id, function)]
        if len(given) != 1 or any(
            isinstance(each, ast.Name) and each.id == node.id for each in walk(given[0])
        ):
            return False
        return is_one_number(given[0], function, arrays, names)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.BinOp):
        return all(is_one_number(each, function, arrays, names) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return is_one_number(node.operand, function, arrays, names)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    if node.func.attr in WHOLE and len(node.args) < 2:
        # `a.max()`, `np.max(a)`, and no `a.max(0)`.
        whole = node.args[0] if node.args else node.func.value
        return holds_array(whole, arrays, names)
    # NumPy's functions of numbers give one.
    return bool(node.args) and all(is_one_number(each, function, arrays, names) for each in node.args)


def _unpacked(name: str, function: Function) -> list[ast.expr]:
    """What the name is given in `a, b = x.min(), x.max()`."""
    found = []
    for each in walk(function):
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(target, ast.Tuple) and isinstance(each, ast.Assign):
            names = [getattr(one, "id", "") for one in target.elts]
            same = isinstance(each.value, ast.Tuple) and len(each.value.elts) == len(names)
            if name in names:
                found.append(each.value.elts[names.index(name)] if same else each.value)  # type: ignore[attr-defined]
    return found


def holds_array(node: ast.expr, arrays: Container[ast.AST], names: Container[str]) -> bool:
    """Whether one of `arrays` is part of `node`, as it is written or under one of `names`."""
    return any(each in arrays or getattr(each, "id", "") in names for each in walk(node))


def counts_beside_floats(one: ast.expr, other: ast.expr, known: Known) -> bool:
    """Whether one of two arrays certainly counts, in as many bits as make NumPy compute in double precision beside floats,
    and the other is not known to count as well."""
    return _counts(one, known) != _counts(other, known) and not (
        is_whole(one, known) and is_whole(other, known)
    )


def _counts(node: ast.expr, known: Known) -> bool:
    narrow = isinstance(node, ast.Compare) or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "astype"
        and bool(node.args)
        and ast.unparse(node.args[0]) in _NARROW
    )
    counted = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".arange")
    return not narrow and (counted or is_whole(node, known))


def _is_size(node: ast.expr) -> bool:
    """Whether `node` tells how large something is: `a.size`, `a.shape[0]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Attribute) and node.attr in ("size", "ndim")


def of_one_dtype(one: ast.expr, other: ast.expr) -> bool:
    """Whether two arrays are converted alike, as far as they are converted where they meet."""
    return _casts(one) == _casts(other)


def _casts(node: ast.expr) -> set[str]:
    return {
        ast.unparse(each.args[0])
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "astype"
        and each.args
    }


def is_constant(draft: Draft, name: str) -> bool:
    """Whether the file binds `name` once at its top level, to a number that is written there."""
    given = [
        each.value
        for placed in draft.context.document.placed
        for each in placed.chunk.body
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]
    ]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and isinstance(given[0].value, (int, float))


def _kinds(draft: Draft, node: ast.expr, function: Function | None) -> Kinds:
    kinds = draft.kinds({})
    if function is None:
        return kinds
    return kinds_before(function, draft.source.enclosing_statement(node), kinds)
