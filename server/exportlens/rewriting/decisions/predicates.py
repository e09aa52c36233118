"""Predicates: a Python condition on tensor data as something that torch.cond and while_loop take.

torch.cond takes a tensor of one element of any dtype, a symbolic bool, or a Python bool; while_loop takes a
bool tensor without dimensions or a symbolic bool (both measured on torch 2.13).
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.values import Sequence, Shape, Tensor, TensorScalar, Value
from exportlens.rewriting.code.draft import Refused, RefusedType
from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.asked_identity import asks_bool
from exportlens.rewriting.decisions.compared_numbers import ComparedNumbers, is_exact
from exportlens.rewriting.decisions.conditions import Condition, joined, opposite, scalar_bool
from exportlens.rewriting.decisions.memberships import among
from exportlens.rewriting.kinds.iterated import of_dict
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.compared_lists import equal_parts
from exportlens.rewriting.lists.listed_tensors import apart, asked_of_all, equal_to, tensor_of_list
from exportlens.rewriting.memory.method_writes import written_by_method
from exportlens.rewriting.memory.moving import writes
from exportlens.rewriting.memory.placed_views import assigned, is_placed
from exportlens.source.parsing import parse_python


class Predicates(ComparedNumbers):
    """Reads conditions of one Source. `value` is what the interpreter knows of the whole test, if
    anything."""

    def __init__(self, source: Source, kinds: Kinds, torch: str) -> None:
        super().__init__(source, kinds)
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
        function = self.source.enclosing_function(test)
        asked = parse_python(condition.text, mode="eval").body
        if function is not None and is_placed(asked, self.kinds, function):
            return f"{primary(condition.text)}.clone()"
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
            text = scalar_bool(condition)
            # What a loop is asked with may not be the very tensor that it carries, nor a view of it.
            computed = isinstance(parse_python(text, mode="eval").body, (ast.BinOp, ast.Compare, ast.UnaryOp))
            return (
                text
                if computed or self.kinds.of(parse_python(text, mode="eval").body).fresh
                else f"{primary(text)}.clone()"
            )
        if condition.form == "static":
            raise Refused("the loop's condition does not depend on tensor data as far as it can be followed")
        return condition.text

    def answer(self, test: ast.expr, negated: bool, value: Value | None = None) -> str | None:
        """The text of a bool of Python, for a test that is a tensor; None for others. Raises Refused."""
        condition = self.read(test, negated, value)
        if condition.form != "tensor":
            return None
        text = condition.text if condition.dtype == "bool" else f"{primary(condition.text)}.bool()"
        return f"{primary(text)}.item()"

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
        holds = asks_bool(node)
        if isinstance(node, ast.Compare) and holds is not None and self._is_bool_of_data(node.left):
            return self.read(node.left, negated is holds, value)
        by_items = self.shapes_by_items(node, negated) if _is_data(value) else None
        if by_items is not None:
            return Condition(by_items, "symbol", is_bool=True, guarded=self._may_raise(node))
        parts = equal_parts(self.source, node, self.kinds)
        if parts is not None and isinstance(node, ast.Compare):
            same = self._equal(*parts)
            return same if isinstance(node.ops[0], ast.Eq) is not negated else opposite(same, self.torch)
        condition = self._leaf(node, value)
        condition = opposite(condition, self.torch, self._compares_integers(node)) if negated else condition
        return replace(condition, guarded=self._may_raise(node))

    def _compares_integers(self, node: ast.expr) -> bool:
        """Whether `node` compares two integers, of which one is not smaller where it is not as large or larger."""
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        kinds = [self.kinds.of(each) for each in sides]
        return bool(kinds) and all(
            each.what in ("scalar", "size", "number") and each.type in ("int", "bool") for each in kinds
        )

    def _is_bool_of_data(self, node: ast.expr) -> bool:
        kind = self.kinds.of(node)
        return (kind.what == "scalar" and kind.type == "bool") or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "bool"
            and kind.from_data
        )

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

    def _leaf(self, node: ast.expr, value: Value | None) -> Condition:
        text = self.source.of(node)
        finite = self._asked_if_finite(node)
        if finite is not None:
            return finite
        self.refuse_arrays(node)
        if isinstance(node, ast.Call):
            special = self._comparison_call(node) or self._any_or_all(node)
            if special is not None:
                return special
        kind = self.kinds.of(node)
        if not kind.from_data and isinstance(value, (Shape, TensorScalar)) and _is_data(value):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("any", "all"):
                raise Refused(f"what `{text}` goes through is not known to be tensors, each of one condition")
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                # Python would compare the number with one element after the other.
                return self._comparison(node, kind)
            # A size that depends on data: the interpreter knows of it, the expression does not show it.
            type_ = "bool" if isinstance(node, ast.Compare) else value.type
            return self._symbol(self.with_sizes(node), type_)
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
            as_tensor = self.as_tensor(node, exact=True)
            if as_tensor is not None:
                inner = self.tensor_kind(node)
                return Condition(as_tensor, "tensor", inner.rank, inner.dtype)
            self.refuse_conversions(node)
            return self._symbol(self.with_sizes(node), kind.type)
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
        self.refuse_arrays(given)
        tensor = self.as_tensor(given, exact=True)
        rank: int | None = 0
        if tensor is not None:
            rank = self.tensor_kind(given).rank
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
        return Condition(f"{primary(text)} != 0", "symbol", is_bool=True)

    def _comparison(self, node: ast.Compare, kind: Kind) -> Condition:
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(op, (ast.In, ast.NotIn)) and self.kinds.of(right).what == "tensor":
            # As torch.Tensor has it: whether any element is equal.
            equal = f"({primary(self.source.of(right))} == {primary(self.source.of(left))}).any()"
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
            return any_of_them if isinstance(op, ast.In) else opposite(any_of_them, self.torch)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = among(self, left, right, self.torch)
            if found is not None:
                return found if isinstance(op, ast.In) else opposite(found, self.torch)
            raise Refused(f"`{self.source.of(node)}` looks for a tensor value in a container")
        if isinstance(op, (ast.Is, ast.IsNot)):
            return Condition(self.source.of(node), "static", is_bool=True)
        sides = [self.kinds.of(left), self.kinds.of(right)]
        if any(side.what == "tensor" for side in sides):
            replacements = []
            for side, each in zip(sides, (left, right), strict=True):
                if side.what == "scalar":
                    widened = self.as_tensor(each, exact=False)
                    if widened is not None:
                        replacements.append(self.source.swap(each, widened))
            return Condition(self.source.of(node, replacements), "tensor", kind.rank, "bool", True)
        exact = all(side.what == "scalar" or is_exact(side) for side in sides) and not all(
            side.what == "scalar" for side in sides
        )
        texts: list[str | None] = [
            self.as_tensor(each, exact) if side.what == "scalar" else self.source.of(each)
            for side, each in zip(sides, (left, right), strict=True)
        ]
        texts = self._beside_constant((left, right), sides, texts)
        if None not in texts:
            replacements = [
                self.source.swap(each, text or "") for each, text in zip((left, right), texts, strict=True)
            ]
            ranks = [
                self.tensor_kind(each).rank
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
        self.refuse_conversions(node)
        return Condition(self.with_sizes(node), "symbol", is_bool=True)

    def _beside_constant(
        self, nodes: tuple[ast.expr, ast.expr], sides: list[Kind], texts: list[str | None]
    ) -> list[str | None]:
        """`texts` where a tensor takes the number that is compared with a parameter or buffer: strict export of torch 2.13 takes
        the number of one for another in each round, and then misses it."""
        held = [isinstance(each, ast.Call) and "self" in reads(each) for each in nodes]
        for each, side, other in ((0, sides[0], 1), (1, sides[1], 0)):
            number = side.what == "scalar" and side.type == "float" and isinstance(nodes[each], ast.Name)
            if texts[each] is None and texts[other] is not None and held[other] and number:
                made = f"{self.torch}.full((), {self.source.of(nodes[each])}, dtype={self.torch}.float64)"
                return [made if at == each else text for at, text in enumerate(texts)]
        return texts

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
                a, b = (primary(self.source.of(each)) for each in pair)
                return self._equal(a, b)
        if called == "is_nonzero":
            owner = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0]
            return Condition(
                f"{primary(self.source.of(owner))} != 0", "tensor", self.kinds.of(owner).rank, "bool", True
            )
        return None

    def _equal(self, a: str, b: str) -> Condition:
        """Whether the tensors `a` and `b` are of one shape, and equal."""
        alike, equal = f"{a}.shape == {b}.shape", f"({a} == {b}).all()"
        alone = f"({equal} if {alike} else {a}.new_zeros((), dtype={self.torch}.bool))"
        return Condition(f"{alike} and {equal}", "mixed", 0, "bool", True, alone=alone)

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
            flags = primary(self.source.of(given)) + ("" if whole.dtype == "bool" else ".bool()")
            return Condition(f"{flags}.{node.func.id}()", "tensor", 0, "bool", True)
        at_once = self._asked_at_once(given)
        if at_once is not None:
            return Condition(f"({at_once}).{node.func.id}()", "tensor", 0, "bool", True)
        iterable = given.generators[0].iter if isinstance(given, (ast.GeneratorExp, ast.ListComp)) else given
        filled = self.kinds.has_elements(iterable)
        size = None if filled else self._size_of(iterable)
        if size is None and not filled:
            raise Refused(f"`{self.source.of(iterable)}` may be empty, of which `torch.stack` takes nothing")
        if isinstance(given, (ast.GeneratorExp, ast.ListComp)):
            target = given.generators[0].target
            inner = Predicates(self.source, self.kinds.in_comprehension(given), self.torch)
            condition = inner.read(given.elt)
            if condition.form != "tensor":
                raise Refused(f"`{self.source.of(given.elt)}` is no tensor condition")
            each = f"{scalar_bool(condition)} for {self.source.of(target)} in {self.source.of(iterable)}"
        else:
            name = "flag" if "flag" not in self.kinds.names else "each_flag"
            each = f"{name}.bool().reshape(()) for {name} in {self.source.of(iterable)}"
        asked = Condition(f"{self.torch}.stack([{each}]).{node.func.id}()", "tensor", 0, "bool", True)
        if size is None:
            return asked
        word, some = ("and", f"{size} > 0") if node.func.id == "any" else ("or", f"{size} == 0")
        return joined([Condition(some, "static", is_bool=True), asked], word, self.torch)

    def _size_of(self, iterable: ast.expr) -> str | None:
        """The text of how many parts a list or a dict of known tensors has, which may be none; None for others."""
        if isinstance(iterable, ast.Call) and dotted(iterable.func) == "zip" and iterable.args:
            # Lists of one length, or of the shortest: where none is empty there is a part.
            sizes = [each for each in map(self._size_of, iterable.args) if each is not None]
            if len(sizes) < len(iterable.args):
                return None
            return sizes[0] if len(sizes) == 1 else f"min({', '.join(sizes)})"
        # `d.items()` has as many parts as `d`.
        method = iterable.func if isinstance(iterable, ast.Call) else None
        owner = method.value if isinstance(method, ast.Attribute) else iterable
        kind = self.kinds.of(iterable)
        known = isinstance(kind.value, Sequence) and kind.value.kind in ("list", "tuple")
        if dotted(owner) is None or kind.what != "container" or not known:
            return None
        if isinstance(method, ast.Attribute) and of_dict(self.kinds.of(owner), method.attr) is None:
            return None
        return f"len({self.source.of(owner)})"

    def _asked_at_once(self, given: ast.expr) -> str | None:
        """What a comprehension asks of each number of a list that is made of a tensor, asked of the tensor."""
        if not isinstance(given, (ast.GeneratorExp, ast.ListComp)) or len(given.generators) != 1:
            return None
        [generator] = given.generators
        tensor = tensor_of_list(self.source, generator.iter, self.kinds)
        if tensor is None or generator.ifs or not isinstance(generator.target, ast.Name):
            return None
        return asked_of_all(self.source, given.elt, generator.target.id, tensor, self.kinds, True)

    def _chain(self, node: ast.Compare, negated: bool) -> Condition:
        operands = [node.left, *node.comparators]
        if any(isinstance(each, ast.Call) and not self.kinds.of(each).from_data for each in operands[1:-1]):
            raise Refused("the middle of a chained comparison would be evaluated twice")
        whole = joined([self._leaf(part, None) for part in apart(node)], "and", self.torch)
        return opposite(whole, self.torch) if negated else whole

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
        conditions = [
            self._maybe_number(each, self._maybe_tensor(each, self.read(each, negated)))
            for each in node.values
        ]
        word = "and" if isinstance(node.op, ast.And) != negated else "or"
        return joined(conditions, word, self.torch)

    def _maybe_number(self, node: ast.expr, condition: Condition) -> Condition:
        """The condition as a tensor even where an argument in it that is supposed to be one is a number of Python."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if condition.form != "tensor" or names.isdisjoint(self.kinds.supposed):
            return condition
        return replace(condition, text=f"{self.torch}.as_tensor({condition.text})")

    def _maybe_tensor(self, node: ast.expr, condition: Condition) -> Condition:
        """The condition as a tensor where it compares what a call whose result is not known gives of tensors, as
        `torchvision.ops.box_iou` does: most often that is a tensor, which Python must not ask for its truth."""
        asked = node
        while isinstance(asked, ast.UnaryOp):
            asked = asked.operand
        if condition.form != "unknown" or not isinstance(asked, ast.Compare) or len(asked.ops) != 1:
            return condition
        if isinstance(asked.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return condition
        if not any(map(self._is_given_tensors, (asked.left, asked.comparators[0]))):
            return condition
        text = f"{self.torch}.as_tensor({self.source.of(asked)})"
        text = text if condition.plain is None else f"{self.torch}.logical_not({text})"
        return replace(condition, text=text, form="tensor", dtype="bool", is_bool=True, plain=None)

    def _is_given_tensors(self, node: ast.expr) -> bool:
        """Whether `node` is, or is an item of, what a call gives that is not known, and takes tensors."""
        while isinstance(node, ast.Subscript):
            node = node.value
        given: list[ast.expr] = [node]
        function = self.source.enclosing_function(node)
        while isinstance(node, ast.Name) and function is not None and given == [node]:
            given = list(assigned(node.id, function)) or given
            function = self.source.enclosing_function(function)
        return self.kinds.of(node).what == "unknown" and any(
            isinstance(each, ast.Call) and any(self.kinds.of(one).what == "tensor" for one in each.args)
            for each in given
        )

    def _changed_by(self, node: ast.expr) -> str | None:
        """The attribute that a method which `node` calls on `self` writes, if any."""
        function = self.source.enclosing_function(self.source.enclosing_statement(node))
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and dotted(each.value) == "self" and function is not None:
                written = written_by_method(self.source, function, each.attr, self.kinds)
                if written is not None:
                    return written
        return None


def _is_data(value: Value | None) -> bool:
    return isinstance(value, TensorScalar) or (isinstance(value, Shape) and value.unbacked)
