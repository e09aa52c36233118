"""Predicates: a Python condition on tensor data as something that torch.cond and while_loop take.

torch.cond takes a tensor of one element of any dtype, a symbolic bool, or a Python bool; while_loop takes a
bool tensor without dimensions or a symbolic bool (both measured on torch 2.13).
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace

from exportlens.inference.values import Array, Const, Shape, Tensor, TensorScalar, Value
from exportlens.rewriting.draft import Refused, RefusedType
from exportlens.rewriting.effects import written_by_method
from exportlens.rewriting.kind import Kind, length_from_data
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.listed_tensors import asked_of_all, equal_to, tensor_of_list
from exportlens.rewriting.moving import writes
from exportlens.rewriting.names import dotted
from exportlens.rewriting.text import Source
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


@dataclass(frozen=True, slots=True)
class Condition:
    """`form`: "static" (Python decides), "tensor", "symbol" (a bool that Python reads from data), "mixed"
    (one of them, as configuration decides). `alone` is a mixed one as a bool tensor without dimensions; `guarded` one
    that may raise where the parts before it decide, and is only evaluated where they do not; `plain` is what Python
    alone asks of one whose kind is not known, where that is no operator of torch."""

    text: str
    form: str
    rank: int | None = None
    dtype: str | None = None
    is_bool: bool = False
    alone: str | None = None
    guarded: bool = False
    plain: str | None = None


class Predicates:
    """Reads conditions of one Source. `value` is what the interpreter knows of the whole test, if
    anything."""

    def __init__(self, source: Source, kinds: Kinds, torch: str) -> None:
        self.source = source
        self.kinds = kinds
        self.torch = torch

    def from_data(self, test: ast.expr) -> bool:
        """Whether Python would certainly ask tensor data to decide `test`."""
        if isinstance(test, ast.BoolOp):
            return any(self.from_data(each) for each in test.values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.from_data(test.operand)
        return self.kinds.of(test).from_data

    def for_cond(self, test: ast.expr, value: Value | None = None, negated: bool = False) -> str:
        """The text of a predicate for torch.cond. Raises Refused."""
        condition = self.read(test, negated, value)
        if condition.form == "static":
            raise Refused("the condition does not depend on tensor data as far as it can be followed")
        return condition.text

    def for_loop(self, test: ast.expr, value: Value | None = None) -> str:
        """The text of a bool tensor without dimensions, or of a symbolic bool. Raises Refused."""
        condition = self.read(test, False, value)
        if condition.form == "mixed" and condition.alone is not None:
            return condition.alone
        if condition.form == "mixed":
            raise Refused(
                "the loop's condition is partly configuration: move that part into an `if` around the loop"
            )
        if condition.form == "tensor":
            text = self.scalar_bool(condition)
            # What a loop is asked with may not be the very tensor that it carries, nor a view of it.
            computed = isinstance(parse_python(text, mode="eval").body, (ast.BinOp, ast.Compare, ast.UnaryOp))
            return (
                text
                if computed or self.kinds.of(parse_python(text, mode="eval").body).fresh
                else f"{_primary(text)}.clone()"
            )
        if condition.form == "static":
            raise Refused("the loop's condition does not depend on tensor data as far as it can be followed")
        return condition.text

    def answer(self, test: ast.expr, negated: bool, value: Value | None = None) -> str | None:
        """The text of a bool of Python, for a test that is a tensor; None for others. Raises Refused."""
        condition = self.read(test, negated, value)
        if condition.form != "tensor":
            return None
        text = condition.text if condition.dtype == "bool" else f"{_primary(condition.text)}.bool()"
        return f"{_primary(text)}.item()"

    def scalar_bool(self, condition: Condition) -> str:
        """A tensor condition as bool tensor without dimensions."""
        text = condition.text
        if condition.dtype != "bool":
            text = f"{_primary(text)}.bool()"
        return text if condition.rank == 0 else f"{_primary(text)}.reshape(())"

    def read(self, node: ast.expr, negated: bool = False, value: Value | None = None) -> Condition:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.read(node.operand, not negated, value)
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, negated)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "bool"
            and len(node.args) == 1
        ):
            return self.read(node.args[0], negated, value)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self._chain(node, negated)
        condition = self._leaf(node, value)
        condition = self._negate(condition) if negated else condition
        return replace(condition, guarded=self._may_raise(node))

    def _may_raise(self, node: ast.expr) -> bool:
        """Whether `node` reads a tensor that may be empty, which not every operation takes, or what a tensor picks, which may
        be nothing or not be there."""
        if any(map(self._is_picked, ast.walk(node))):
            return True
        return any(
            (
                isinstance(each, ast.expr)
                and length_from_data(self.kinds.of(each))
                and not isinstance(self.source.parents.get(each), ast.Attribute)
            )
            or (
                isinstance(each, ast.Attribute)
                and each.attr not in ("shape", "ndim", "numel", "size", "nelement", "dim")
                and length_from_data(self.kinds.of(each.value))
            )
            for each in ast.walk(node)
        ) and not (isinstance(node, ast.Compare) and self.kinds.of(node.left).what in ("scalar", "size"))

    def _is_picked(self, node: ast.AST) -> bool:
        """Whether `node` picks from a tensor by another, or by a number that was read out of one."""
        if not isinstance(node, ast.Subscript) or self.kinds.of(node.value).what != "tensor":
            return False
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return any(not isinstance(each, ast.Slice) and self.kinds.of(each).from_data for each in parts)

    def _negate(self, condition: Condition) -> Condition:
        if condition.form in ("tensor", "unknown"):
            text = self._opposite(condition.text)
            plain = f"not {_primary(condition.text)}" if condition.form == "unknown" else None
            return Condition(text, condition.form, condition.rank, "bool", True, plain=plain)
        if condition.form == "symbol":
            return Condition(f"{self.torch}.sym_not({condition.text})", "symbol", is_bool=True)
        if condition.form == "mixed" and condition.alone is not None:
            # Python's `not` would ask the tensor in it.
            alone = self._opposite(condition.alone)
            return Condition(alone, "mixed", 0, "bool", True, alone=alone)
        return Condition(f"not {_primary(condition.text)}", condition.form, is_bool=True)

    def _opposite(self, text: str) -> str:
        """The opposite of a condition; that of `logical_not(t.any())` is `t.any()`."""
        node = parse_python(text, mode="eval").body
        if isinstance(node, ast.IfExp):
            text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        if (
            isinstance(node, ast.Call)
            and dotted(node.func) == f"{self.torch}.logical_not"
            and len(node.args) == 1
        ):
            inner = node.args[0]
            answers = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
            if answers and inner.func.attr in ("any", "all"):  # type: ignore[attr-defined]
                return ast.get_source_segment(text, inner) or text
        return f"{self.torch}.logical_not({text})"

    def _leaf(self, node: ast.expr, value: Value | None) -> Condition:
        text = self.source.of(node)
        finite = self._asked_if_finite(node)
        if finite is not None:
            return finite
        self._no_arrays(node)
        if isinstance(node, ast.Call):
            special = self._comparison_call(node) or self._any_or_all(node)
            if special is not None:
                return special
        kind = self.kinds.of(node)
        if not kind.from_data and isinstance(value, (Shape, TensorScalar)) and _is_data(value):
            # A size that depends on data: the interpreter knows of it, the expression does not show it.
            type_ = "bool" if isinstance(node, ast.Compare) else value.type
            return self._symbol(self._sizes(node), type_)
        if isinstance(node, ast.Compare) and kind.from_data:
            return self._comparison(node, kind)
        if kind.what == "unknown":
            if isinstance(value, Tensor):
                kind = Kind("tensor", value.dtype, value.rank)
            elif isinstance(value, TensorScalar):
                kind = Kind("scalar", type=value.type)
        if kind.what == "tensor":
            return Condition(text, "tensor", kind.rank, kind.dtype, kind.dtype == "bool")
        if kind.what == "scalar":
            as_tensor = self._as_tensor(node, exact=True)
            if as_tensor is not None:
                inner = self._tensor_kind(node)
                return Condition(as_tensor, "tensor", inner.rank, inner.dtype)
            self._no_conversion(node)
            return self._symbol(self._sizes(node), kind.type)
        if kind.what == "unknown":
            return Condition(text, "unknown")
        return Condition(text, "static", is_bool=kind.type == "bool" or isinstance(node, ast.Compare))

    def _asked_if_finite(self, node: ast.expr) -> Condition | None:
        """`math.isnan(t.item())` as `torch.isnan(t)`."""
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            return None
        module, _, name = (self.kinds.qualified(node.func) or "").rpartition(".")
        if module not in ("math", "numpy") or name not in ("isnan", "isinf", "isfinite"):
            return None
        given = node.args[0]
        self._no_arrays(given)
        tensor = self._as_tensor(given, exact=True)
        rank: int | None = 0
        if tensor is not None:
            rank = self._tensor_kind(given).rank
        elif self.kinds.of(given).what == "scalar":
            tensor = f"{self.torch}.full((), {self.source.of(given)}, dtype={self.torch}.float64)"
        else:
            return None
        return Condition(f"{self.torch}.{name}({tensor})", "tensor", rank, "bool", True)

    def _symbol(self, text: str, type_: str) -> Condition:
        """The truth of a number from data. Strict export of torch 2.13 takes `b != 0` of a bool for a constant."""
        if type_ == "bool":
            return Condition(text, "symbol", is_bool=True)
        if type_ not in ("int", "float"):
            raise RefusedType(f"it is not known whether `{text}` is a bool or a number")
        return Condition(f"{_primary(text)} != 0", "symbol", is_bool=True)

    def _comparison(self, node: ast.Compare, kind: Kind) -> Condition:
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(op, (ast.In, ast.NotIn)) and self.kinds.of(right).what == "tensor":
            # As torch.Tensor has it: whether any element is equal.
            equal = f"({_primary(self.source.of(right))} == {_primary(self.source.of(left))}).any()"
            text = equal if isinstance(op, ast.In) else f"{self.torch}.logical_not({equal})"
            return Condition(text, "tensor", 0, "bool", True)
        listed = (
            tensor_of_list(self.source, right, self.kinds) if isinstance(op, (ast.In, ast.NotIn)) else None
        )
        if listed is not None:
            same = equal_to(self.source, left, listed, self.kinds)
            if same is None:
                raise Refused(f"`{self.source.of(node)}` may compare otherwise in the dtype of the tensor")
            any_of_them = Condition(f"({same}).any()", "tensor", 0, "bool", True)
            return any_of_them if isinstance(op, ast.In) else self._negate(any_of_them)
        if isinstance(op, (ast.In, ast.NotIn)):
            among = self._among(left, right)
            if among is not None:
                return among if isinstance(op, ast.In) else self._negate(among)
            raise Refused(f"`{self.source.of(node)}` looks for a tensor value in a container")
        if isinstance(op, (ast.Is, ast.IsNot)):
            return Condition(self.source.of(node), "static", is_bool=True)
        sides = [self.kinds.of(left), self.kinds.of(right)]
        if any(side.what == "tensor" for side in sides):
            replacements = []
            for side, each in zip(sides, (left, right), strict=True):
                if side.what == "scalar":
                    widened = self._as_tensor(each, exact=False)
                    if widened is not None:
                        replacements.append(self.source.swap(each, widened))
            return Condition(self.source.of(node, replacements), "tensor", kind.rank, "bool", True)
        exact = all(side.what == "scalar" or is_exact(side) for side in sides) and not all(
            side.what == "scalar" for side in sides
        )
        texts: list[str | None] = [
            self._as_tensor(each, exact) if side.what == "scalar" else self.source.of(each)
            for side, each in zip(sides, (left, right), strict=True)
        ]
        if None not in texts:
            replacements = [
                self.source.swap(each, text or "") for each, text in zip((left, right), texts, strict=True)
            ]
            ranks = [
                self._tensor_kind(each).rank
                for side, each in zip(sides, (left, right), strict=True)
                if side.what == "scalar"
            ]
            return Condition(
                self.source.of(node, replacements),
                "tensor",
                ranks[0] if len(set(ranks)) == 1 else None,
                "bool",
                True,
            )
        self._no_conversion(node)
        return Condition(self._sizes(node), "symbol", is_bool=True)

    def _among(self, left: ast.expr, right: ast.expr) -> Condition | None:
        """Whether one number is among constants that are written out, None where `right` is anything else."""
        numbers = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else []
        if not numbers or writes([left]) or not all(map(_is_number, numbers)):
            return None
        exact = all(is_exact(self.kinds.of(each)) for each in numbers)
        text = self._as_tensor(left, exact)
        if text is None:
            parts = [f"({self.source.of(left)} == {self.source.of(each)})" for each in numbers]
            self._no_conversion(left)
            return Condition(" | ".join(parts), "symbol", is_bool=True)
        *before, whole = [f"{_primary(text)} == {self.source.of(each)}" for each in numbers]
        for each in reversed(before):
            whole = f"{self.torch}.logical_or({each}, {whole})"
        return Condition(whole, "tensor", self._tensor_kind(left).rank, "bool", True)

    def _sizes(self, node: ast.expr) -> str:
        """The text with `t.shape[0]` for `len(t)`, of which Python makes a number."""
        swaps = [
            self.source.swap(each, f"{_primary(self.source.of(each.args[0]))}.shape[0]")
            for each in ast.walk(node)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and each.func.id == "len"
            and self.kinds.of(each).what == "scalar"
        ]
        return self.source.of(node, swaps)

    def _comparison_call(self, node: ast.Call) -> Condition | None:
        """`torch.equal` and `torch.allclose` read data; their elementwise kin do not."""
        name = self.kinds.qualified(node.func)
        method = isinstance(node.func, ast.Attribute) and self.kinds.of(node.func.value).what == "tensor"
        called = (
            name.removeprefix("torch.")
            if name
            else node.func.attr
            if isinstance(node.func, ast.Attribute) and method
            else ""
        )
        if called == "allclose":
            head = self.source.of(node.func).removesuffix("allclose")
            return Condition(
                f"{head}isclose{self.source.text[self.source.end(node.func) : self.source.end(node)]}.all()",
                "tensor",
                0,
                "bool",
                True,
            )
        if called == "equal":
            pair = (
                [node.func.value, *node.args]
                if method and isinstance(node.func, ast.Attribute)
                else node.args
            )
            if len(pair) == 2:
                a, b = (_primary(self.source.of(each)) for each in pair)
                alike, equal = f"{a}.shape == {b}.shape", f"({a} == {b}).all()"
                return Condition(
                    f"{alike} and {equal}",
                    "mixed",
                    0,
                    "bool",
                    True,
                    alone=f"({equal} if {alike} else {a}.new_zeros((), dtype={self.torch}.bool))",
                )
        if called == "is_nonzero":
            owner = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0]
            return Condition(
                f"{_primary(self.source.of(owner))} != 0", "tensor", self.kinds.of(owner).rank, "bool", True
            )
        return None

    def _any_or_all(self, node: ast.Call) -> Condition | None:
        """The builtins over conditions on tensor data: they are stacked, and torch's own are asked."""
        if not (
            isinstance(node.func, ast.Name)
            and node.func.id in ("any", "all")
            and node.func.id not in self.kinds.names
            and len(node.args) == 1
            and self.kinds.of(node).from_data
        ):
            return None
        given = node.args[0]
        whole = self.kinds.of(given)
        if whole.what == "tensor" and whole.rank in (1, None):
            # Python asks each row for its truth, which only a row of one element has.
            flags = _primary(self.source.of(given)) + ("" if whole.dtype == "bool" else ".bool()")
            return Condition(f"{flags}.{node.func.id}()", "tensor", 0, "bool", True)
        at_once = self._asked_at_once(given)
        if at_once is not None:
            return Condition(f"({at_once}).{node.func.id}()", "tensor", 0, "bool", True)
        iterable = given.generators[0].iter if isinstance(given, (ast.GeneratorExp, ast.ListComp)) else given
        if not self.kinds.has_elements(iterable):
            raise Refused(f"`{self.source.of(iterable)}` may be empty, of which `torch.stack` takes nothing")
        if isinstance(given, (ast.GeneratorExp, ast.ListComp)):
            target = given.generators[0].target
            inner = Predicates(self.source, self.kinds.in_comprehension(given), self.torch)
            condition = inner.read(given.elt)
            if condition.form != "tensor":
                raise Refused(f"`{self.source.of(given.elt)}` is no tensor condition")
            each = (
                f"{inner.scalar_bool(condition)} for {self.source.of(target)} in {self.source.of(iterable)}"
            )
        else:
            name = "flag" if "flag" not in self.kinds.names else "each_flag"
            each = f"{name}.bool().reshape(()) for {name} in {self.source.of(iterable)}"
        return Condition(f"{self.torch}.stack([{each}]).{node.func.id}()", "tensor", 0, "bool", True)

    def _asked_at_once(self, given: ast.expr) -> str | None:
        """What a comprehension asks of each number of a list that is made of a tensor, asked of the tensor."""
        if not isinstance(given, (ast.GeneratorExp, ast.ListComp)) or len(given.generators) != 1:
            return None
        [generator] = given.generators
        tensor = tensor_of_list(self.source, generator.iter, self.kinds)
        if tensor is None or generator.ifs or not isinstance(generator.target, ast.Name):
            return None
        return asked_of_all(self.source, given.elt, generator.target.id, tensor, self.kinds, True)

    def number_as_tensor(self, node: ast.expr) -> str | None:
        """The tensor behind a Python number made from tensor data (`int(t)`, `t.item()`); None where there
        is none."""
        return self._as_tensor(node, exact=True)

    def combine(self, data: list[Condition], word: str) -> Condition:
        """Conditions on data joined by `word`, "and" or "or"."""
        return self._combine(data, word)

    def _tensor_kind(self, node: ast.expr) -> Kind:
        """The kind of the tensor behind a conversion such as `t.item()` or `int(t)`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            return self.kinds.of(node.func.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            return self._tensor_kind(node.args[0])
        return self.kinds.of(node)

    def _as_tensor(self, node: ast.expr, exact: bool) -> str | None:
        """The tensor whose comparison gives what the Python number gives; None where there is none.

        Python compares doubles, torch compares in the tensor's dtype: with a constant that every float
        dtype holds (`exact`) this is the same, with others the tensor is widened first.
        """
        kind = self.kinds.of(node)
        if kind.what == "tensor":
            text = self.source.of(node)
            if exact or kind.dtype in ("bool", "float64") or _is_integer(kind.dtype):
                return text
            return f"{_primary(text)}.double()"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "item"
            and not node.args
        ):
            return (
                self._as_tensor(node.func.value, exact)
                if self.kinds.of(node.func.value).what == "tensor"
                else None
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            inner = self._tensor_kind(node.args[0])
            if node.func.id == "float" and kind.what == "scalar":
                return self._as_tensor(node.args[0], exact)
            if node.func.id == "int" and kind.what == "scalar":
                whole = self._as_tensor(node.args[0], exact=True)
                return (
                    whole
                    if whole is None or _is_integer(inner.dtype) or inner.dtype == "bool"
                    else f"{_primary(whole)}.trunc()"
                )
            if node.func.id == "abs" and kind.what == "scalar":
                signed = self._as_tensor(node.args[0], exact)
                return None if signed is None else f"{_primary(signed)}.abs()"
        return None

    def _no_arrays(self, node: ast.expr) -> None:
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
            each.value
            for each in walk(function or name)
            if isinstance(each, ast.Assign) and any(dotted(target) == name.id for target in each.targets)
        ]
        parts = [part for each in values for part in _given(each)]
        calls = [each for each in parts if isinstance(each, ast.Call)]
        return any((self.kinds.qualified(each.func) or "").startswith("numpy.") for each in calls)

    def _no_conversion(self, node: ast.expr) -> None:
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

    def _chain(self, node: ast.Compare, negated: bool) -> Condition:
        operands = [node.left, *node.comparators]
        if any(isinstance(each, ast.Call) and not self.kinds.of(each).from_data for each in operands[1:-1]):
            raise Refused("the middle of a chained comparison would be evaluated twice")
        parts = [
            ast.copy_location(ast.Compare(a, [op], [b]), a)
            for a, op, b in zip(operands, node.ops, operands[1:], strict=False)
        ]
        for part, b in zip(parts, operands[1:], strict=True):
            part.end_lineno, part.end_col_offset = b.end_lineno, b.end_col_offset
        whole = self._joined([self._leaf(part, None) for part in parts], "and")
        return self._negate(whole) if negated else whole

    def _bool_op(self, node: ast.BoolOp, negated: bool) -> Condition:
        if any(isinstance(each, ast.NamedExpr) for one in node.values[1:] for each in ast.walk(one)):
            raise Refused("a later part of the condition binds a name, which an earlier part decides about")
        if writes(node.values[1:]):
            raise Refused(
                "a later part of the condition writes in place, which an earlier part decides about"
            )
        for each in node.values[1:]:
            changed = self._changed_by(each)
            if changed is not None:
                raise Refused(
                    f"a later part of the condition changes `self.{changed}`, which an earlier part decides about"
                )
        conditions = [self._maybe_number(each, self.read(each, negated)) for each in node.values]
        word = "and" if isinstance(node.op, ast.And) != negated else "or"
        return self._joined(conditions, word)

    def _maybe_number(self, node: ast.expr, condition: Condition) -> Condition:
        """The condition as a tensor even where an argument in it that is supposed to be one is a number of Python."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if condition.form != "tensor" or names.isdisjoint(self.kinds.supposed):
            return condition
        return replace(condition, text=f"{self.torch}.as_tensor({condition.text})")

    def _changed_by(self, node: ast.expr) -> str | None:
        """The attribute that a method which `node` calls on `self` writes, if any."""
        function = self.source.enclosing_function(self.source.enclosing_statement(node))
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and dotted(each.value) == "self" and function is not None:
                written = written_by_method(self.source, function, each.attr)
                if written is not None:
                    return written
        return None

    def _joined(self, conditions: list[Condition], word: str) -> Condition:
        if any(each.form == "unknown" for each in conditions):
            others = [each for each in conditions if each.form != "unknown"]
            if any(each.form != "static" for each in others):
                # The data is in another part. Python asks for the truth of this one as it did before.
                conditions = [
                    Condition(each.plain or each.text, "static", is_bool=each.plain is not None)
                    if each.form == "unknown"
                    else each
                    for each in conditions
                ]
                return self._joined(conditions, word)
            if len(conditions) - len(others) > 1 or any(each.form != "static" for each in others):
                unknown = next(each for each in conditions if each.form == "unknown")
                raise Refused(f"it is not known what `{unknown.text}` is")
            conditions = [
                Condition(each.text, "tensor") if each.form == "unknown" else each for each in conditions
            ]
        static = [each for each in conditions if each.form == "static"]
        data = [each for each in conditions if each.form != "static"]
        if len(data) > 1:
            data = [
                Condition(each.alone, "tensor", 0, "bool", True) if each.alone is not None else each
                for each in data
            ]
        if len(data) > 1 and any(each.form == "mixed" for each in data):
            raise Refused("configuration and tensor data are mixed on several levels of the condition")
        if not data:
            return Condition(
                f" {word} ".join(_operand(each.text, word) for each in static),
                "static",
                is_bool=all(each.is_bool for each in static),
            )
        joined = self._combine(data, word)
        if not static:
            return joined
        first = [_operand(each.text, word) if each.is_bool else f"bool({each.text})" for each in static]
        whole = f" {word} ".join(first)
        alone = None
        if joined.form == "tensor" and "\n" not in whole:
            truth = self.scalar_bool(joined)
            alone = (
                f"({truth} if {whole} else {self.torch}.full((), False))"
                if word == "and"
                else f"({self.torch}.full((), True) if {whole} else {truth})"
            )
        return Condition(
            f" {word} ".join([*first, _operand(joined.text, word)]),
            "mixed",
            joined.rank,
            joined.dtype,
            joined.is_bool,
            alone,
        )

    def _combine(self, data: list[Condition], word: str) -> Condition:
        if len(data) == 1:
            return data[0]
        if any(each.guarded for each in data[1:]):
            return self._one_by_one(data, word)
        if all(each.form == "tensor" for each in data):
            text = data[-1].text
            for each in reversed(data[:-1]):
                text = f"{self.torch}.logical_{word}({each.text}, {text})"
            ranks = {each.rank for each in data}
            return Condition(text, "tensor", 0 if ranks == {0} else None, "bool", True)
        operator = "&" if word == "and" else "|"
        texts = [
            each.text
            if each.form == "symbol"
            else f"{_primary(each.text)}{'' if each.is_bool else '.bool()'}.item()"
            for each in data
        ]
        return Condition(f" {operator} ".join(f"({text})" for text in texts), "symbol", is_bool=True)

    def _one_by_one(self, data: list[Condition], word: str) -> Condition:
        """The parts one after the other, as Python evaluates them: a later one may raise where an earlier decides."""
        if any(each.form not in ("tensor", "symbol") for each in data):
            raise Refused("a part of the condition may raise where an earlier one decides")
        *before, last = data
        text = self.scalar_bool(last) if last.form == "tensor" else ""
        if not text:
            raise Refused("a part of the condition may raise where an earlier one decides")
        for each in reversed(before):
            if each.form == "tensor":
                test = decided = self.scalar_bool(each)
                decided = f"{_primary(decided)}.clone()"
            else:
                test, decided = each.text, f"{self.torch}.full((), {word == 'or'})"
            arms = (text, decided) if word == "and" else (decided, text)
            text = f"{self.torch}.cond({test}, lambda: {arms[0]}, lambda: {arms[1]}, ())"
        return Condition(text, "tensor", 0, "bool", True)


def _given(node: ast.expr) -> list[ast.expr]:
    """What an expression may give as it is: the operands of `and` and `or`, the sides of a ternary."""
    if isinstance(node, ast.BoolOp):
        return [part for each in node.values for part in _given(each)]
    if isinstance(node, ast.IfExp):
        return [*_given(node.body), *_given(node.orelse)]
    return [node]


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


def _is_data(value: Shape | TensorScalar) -> bool:
    return isinstance(value, TensorScalar) or value.unbacked


def _is_integer(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith(("int", "uint"))


def is_exact(kind: Kind) -> bool:
    """Whether every float dtype of torch holds this number (bfloat16 has 8 significant bits)."""
    if kind.what != "number" or not isinstance(kind.value, Const):
        return False
    mantissa, exponent = math.frexp(float(kind.value.value))
    return (mantissa * 256).is_integer() and -13 < exponent < 15


def _primary(text: str) -> str:
    """`text` so that `.attribute` may follow."""
    node = parse_python(f"({text})", mode="eval").body
    simple = isinstance(
        node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Tuple, ast.List, ast.Dict)
    )
    return text if simple and "\n" not in text else f"({text})"


def _operand(text: str, word: str) -> str:
    """`text` as an operand of `and` or `or`."""
    node = parse_python(f"({text})", mode="eval").body
    loose = isinstance(node, (ast.Lambda, ast.IfExp, ast.NamedExpr)) or (
        isinstance(node, ast.BoolOp) and word == "and" and isinstance(node.op, ast.Or)
    )
    return f"({text})" if loose or "\n" in text else text


primary = _primary
