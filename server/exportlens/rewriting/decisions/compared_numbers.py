"""Numbers of Python that a condition reads out of tensors: the tensors that can be compared in their place."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from exportlens.inference.values import Array, Const
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


class ComparedNumbers:
    """Reads numbers that conditions of one Source compare; `torch` is what the file calls that."""

    torch: str

    def __init__(self, source: Source, kinds: Kinds) -> None:
        self.source = source
        self.kinds = kinds

    def with_sizes(self, node: ast.expr) -> str:
        """The text with `t.shape[0]` for `len(t)`, of which Python makes a number, and torch's own for `max` and `min` of two numbers
        that may be floats, where they are only compared."""
        swaps = [
            self.source.swap(each, f"{primary(self.source.of(each.args[0]))}.shape[0]")
            for each in ast.walk(node)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and each.func.id == "len"
            and self.kinds.of(each).what == "scalar"
        ]
        for each in ast.walk(node) if isinstance(node, ast.Compare) else ():
            if isinstance(each, ast.Call) and self._chooses_float(each):
                swaps.append(self.source.swap(each.func, f"{self.torch}.sym_{ast.unparse(each.func)}"))
        return self.source.of(node, swaps)

    def _chooses_float(self, call: ast.Call) -> bool:
        """Whether `call` is `max` or `min` of two numbers, one of them from data and perhaps a float: non-strict tracing has no operator
        for it, and torch's own always gives a float, which compares the same."""
        if not (isinstance(call.func, ast.Name) and call.func.id in ("max", "min")):
            return False
        if call.func.id in self.kinds.names or call.keywords:
            return False
        given = [self.kinds.of(each) for each in call.args]
        plain = len(given) == 2 and all(each.what in ("number", "size", "scalar") for each in given)
        return plain and any(each.what == "scalar" and each.type != "int" for each in given)

    def shapes_by_items(self, node: ast.expr, negated: bool) -> str | None:
        """Whether two shapes of as many dimensions are equal, or are not, asked of each dimension: Python asks each pair for its
        truth where tuples are compared. None for other tests."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            return None
        equal = isinstance(node.ops[0], ast.Eq)
        sides = [self._dimensions(each) for each in (node.left, node.comparators[0])]
        if not (equal or isinstance(node.ops[0], ast.NotEq)) or len({len(each) for each in sides}) != 1:
            return None
        word, joint = ("==", " & ") if equal is not negated else ("!=", " | ")
        pairs = [f"{left} {word} {right}" for left, right in zip(*sides, strict=True)]
        if len(pairs) == 1:
            return pairs[0]
        return joint.join(f"({each})" for each in pairs) or None

    def _dimensions(self, node: ast.expr) -> list[str]:
        """The texts of the dimensions of `t.shape`, `t.size()` or a tuple; none where it is not known how many there are."""
        if isinstance(node, ast.Tuple):
            plain = all(self.kinds.of(each).what in ("number", "size", "scalar") for each in node.elts)
            return [self.source.of(each) for each in node.elts] if plain else []
        called = isinstance(node, ast.Call) and not node.args and not node.keywords
        owner = node.func if isinstance(node, ast.Call) and called else node
        if not isinstance(owner, ast.Attribute) or owner.attr != ("size" if called else "shape"):
            return []
        tensor = self.kinds.of(owner.value)
        if tensor.what != "tensor" or dotted(owner.value) is None:
            return []
        return [f"{self.source.of(owner.value)}.shape[{index}]" for index in range(tensor.rank or 0)]

    def number_as_tensor(self, node: ast.expr) -> str | None:
        """The tensor behind a Python number made from tensor data (`int(t)`, `t.item()`); None where there
        is none."""
        return self.as_tensor(node, exact=True)

    def tensor_kind(self, node: ast.expr) -> Kind:
        """The kind of the tensor behind a conversion such as `t.item()` or `int(t)`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            return self.kinds.of(node.func.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            return self.tensor_kind(node.args[0])
        return self.kinds.of(node)

    def as_tensor(self, node: ast.expr, exact: bool) -> str | None:
        """The tensor whose comparison gives what the Python number gives; None where there is none.

        Python compares doubles, torch compares in the tensor's dtype: with a constant that every float
        dtype holds (`exact`) this is the same, with others the tensor is widened first.
        """
        kind = self.kinds.of(node)
        if kind.what == "tensor":
            text = self.source.of(node)
            if exact or kind.dtype in ("bool", "float64") or _is_integer(kind.dtype):
                return text
            return f"{primary(text)}.double()"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "item"
            and not node.args
        ):
            return (
                self.as_tensor(node.func.value, exact)
                if self.kinds.of(node.func.value).what == "tensor"
                else None
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            inner = self.tensor_kind(node.args[0])
            if node.func.id == "float" and kind.what == "scalar":
                return self.as_tensor(node.args[0], exact)
            if node.func.id == "int" and kind.what == "scalar":
                whole = self.as_tensor(node.args[0], exact=True)
                return (
                    whole
                    if whole is None or _is_integer(inner.dtype) or inner.dtype == "bool"
                    else f"{primary(whole)}.trunc()"
                )
            if node.func.id == "abs" and kind.what == "scalar":
                signed = self.as_tensor(node.args[0], exact)
                return None if signed is None else f"{primary(signed)}.abs()"
        return None

    def refuse_arrays(self, node: ast.expr) -> None:
        """Raise Refused where NumPy answers: torch.cond takes none of its bools."""
        for each in ast.walk(node):
            called = isinstance(each, ast.Call) and (
                (self.kinds.qualified(each.func) or "").startswith("numpy.")
                or getattr(each.func, "attr", "") == "numpy"
            )
            held = isinstance(each, ast.Name) and (
                isinstance(self.kinds.of(each).value, Array) or self._is_from_numpy(each)
            )
            if called or held:
                raise Refused(f"`{self.source.of(each)}` is NumPy's: compute it with torch first")

    def _is_from_numpy(self, name: ast.Name) -> bool:
        """Whether a function of NumPy's gives what its function binds to `name`: it compares as NumPy's bools do."""
        function = self.source.enclosing_function(name)
        values = [
            value
            for each in walk(function or name)
            if isinstance(each, ast.Assign)
            for target in each.targets
            for value in _bound_to(name.id, target, each.value)
        ]
        parts = [part for each in values for part in _given(each)]
        calls = [each for each in parts if isinstance(each, ast.Call)]
        if any((self.kinds.qualified(each.func) or "").startswith("numpy.") for each in calls):
            return True
        is_number = self.kinds.of(name).what == "scalar"
        return function is not None and is_number and self._is_computed_from_numpy(name.id, function)

    def _is_computed_from_numpy(self, name: str, function: Function) -> bool:
        """Whether `name` may be a number that is computed of one of NumPy's: it is one of NumPy's as well, and what compares it
        gives NumPy's bool."""
        waiting, seen = [name], {name}
        while waiting:
            asked = waiting.pop()
            for each in walk(function):
                if not isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or each.value is None:
                    continue
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                if asked not in bound(targets):
                    continue
                for part in _computed_of(each.value):
                    if isinstance(part, ast.Name) and part.id not in seen:
                        seen.add(part.id)
                        waiting.append(part.id)
                    elif isinstance(part, ast.Call) and (
                        (self.kinds.qualified(part.func) or "").startswith(_NUMBERS_OF_NUMPY)
                    ):
                        return True
        return False

    def refuse_conversions(self, node: ast.expr) -> None:
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id in ("int", "float", "bool")
                and self.kinds.of(each).what == "scalar"
            ):
                raise Refused(
                    f"`{self.source.of(each)}` turns tensor data into a Python number inside the condition"
                )


def _bound_to(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    """What `target = value` binds `name` to: the whole of `value`, or a part of it that is not told apart."""
    if isinstance(target, ast.Name):
        yield from [value] if target.id == name else []
    elif isinstance(target, (ast.Tuple, ast.List)):
        written = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        parts = (
            value.elts if isinstance(value, (ast.Tuple, ast.List)) and written else [value] * len(target.elts)
        )
        for each, part in zip(target.elts, parts, strict=True):
            yield from _bound_to(name, each, part)


def _given(node: ast.expr) -> list[ast.expr]:
    """What an expression may give as it is: the operands of `and` and `or`, the sides of a ternary."""
    if isinstance(node, ast.BoolOp):
        return [part for each in node.values for part in _given(each)]
    if isinstance(node, ast.IfExp):
        return [*_given(node.body), *_given(node.orelse)]
    return [node]


# What gives numbers of NumPy's where it is given numbers, and no array that is indexed or asked as one.
_NUMBERS_OF_NUMPY = tuple(
    f"numpy.{name}"
    for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "arc", "abs", "power", "floor", "ceil", "float", "hypot", "sign")
)  # fmt: skip


def _computed_of(node: ast.expr) -> Iterator[ast.expr]:
    """The names and calls of which `node` makes a number, by operators or by functions that are not known to give Python's own."""
    yield node
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.Call):
        owner = (dotted(node.func) or "").partition(".")[0]
        own = isinstance(node.func, ast.Name) and node.func.id in ("max", "min", "abs", "sum")
        parts = list(node.args) if own or owner in ("self", "cls") else []
    for each in parts:
        yield from _computed_of(each)


def _is_integer(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith(("int", "uint"))


def is_exact(kind: Kind) -> bool:
    """Whether every float dtype of torch holds this number (bfloat16 has 8 significant bits)."""
    if kind.what != "number" or not isinstance(kind.value, Const):
        return False
    mantissa, exponent = math.frexp(float(kind.value.value))
    return (mantissa * 256).is_integer() and -13 < exponent < 15
