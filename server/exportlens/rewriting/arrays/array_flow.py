"""The way of arrays from `t.numpy()` through a function, step by step, with torch's counterpart of each step."""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_bindings import NamedArrays
from exportlens.rewriting.arrays.array_creation import created
from exportlens.rewriting.arrays.array_helpers import Helpers
from exportlens.rewriting.arrays.array_methods import COPIED, ENDS, dot, translated
from exportlens.rewriting.arrays.array_operands import (
    counts_beside_floats,
    is_no_array,
    is_one_number,
    of_one_dtype,
)
from exportlens.rewriting.arrays.numpy_calls import (
    LEGACY,
    PRODUCTS,
    is_int,
    is_numpy,
    qualified_name,
    renamed,
    tensors_asked,
)
from exportlens.rewriting.arrays.numpy_integers import (
    FLOATING,
    averaged_of_any,
    given_to_name,
    is_floating,
    refuse_bytes,
    widened,
)
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import writes

_BACK = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


class ArrayWay(NamedArrays):
    """Follows an array from `t.numpy()` through names, arithmetic, NumPy's functions and methods to where it ends."""

    def __init__(self, draft: Draft, arrays: list[ast.Call], kinds: Kinds) -> None:
        self.draft, self.source, self.kinds = draft, draft.source, kinds
        # Each name is followed once; each call is translated once.
        self.made: dict[ast.AST, Replacement] = {
            each: Replacement(dot(self.source, each.func), self.source.end(each), "")
            for each in arrays
            if isinstance(each.func, ast.Attribute)
        }
        self.leaves: list[ast.expr] = list(arrays)
        self.names: set[str] = set()
        self.named: set[tuple[ast.AST | None, str]] = set()
        self.ends: dict[tuple[ast.AST | None, str], list[int | None]] = {}
        self.bindings: set[ast.AST] = set()
        self.followed: set[tuple[str, ast.AST]] = set()
        # What binds a name of an array anew.
        self.others: set[ast.AST] = set()
        # What is a copy to NumPy, and may be the same memory to torch.
        self.copied: list[ast.expr] = []
        self.is_written = False
        # Whether an array is picked from by another.
        self.indexes = False
        self.flipped = False
        self.passed: set[ast.expr] = set()
        self.put_together: list[ast.expr] = []
        # What arrays compute with, and the operation of both.
        self.operands: list[tuple[ast.expr, ast.expr, ast.AST]] = []
        self.widened: dict[ast.expr, Replacement] = {}
        self.opened: dict[ast.expr, Replacement] = {}
        self.helpers = Helpers(self.source, [each.text for each in draft.others()])
        self.lists: set[ast.expr] = set()
        self.summed: set[ast.Call] = set()
        # Names that a helper gets an array of any dtype by.
        self.of_any: set[ast.expr] = set()
        kinds_of_made = {each: self._made_of(each, kinds) for each in arrays}
        self.dtypes: dict[ast.expr, str] = {
            each: kind.dtype for each, kind in kinds_of_made.items() if kind.dtype is not None
        }
        self.ranks: dict[ast.expr, int | None] = {each: kind.rank for each, kind in kinds_of_made.items()}

    def _made_of(self, array: ast.Call, kinds: Kinds) -> Kind:
        """What is known of the tensor that `array` is made of."""
        function = self.source.enclosing_function(array)
        if function is not None:
            kinds = kinds_before(function, self.source.enclosing_statement(array), kinds)
        return kinds.of(array.func.value) if isinstance(array.func, ast.Attribute) else UNKNOWN_KIND

    @property
    def _functions(self) -> list[ast.AST]:
        """The function that arrays are made in, and those that they went into."""
        function = self.source.enclosing_function(next(iter(self.made)))
        return [function or self.source.tree, *self.helpers.entered]

    def swaps(self) -> list[Replacement]:
        self._follow_leaves()
        for other, _, _ in self.operands:
            if other not in self.passed:
                self._make_operand(other)
        self._follow_leaves()
        for operand in self.operands:
            self._refuse_operand(*operand)
        if not self.passed.issuperset(self.put_together):
            raise Refused("not all that NumPy is given together is an array that was a tensor")
        self.helpers.refuse_others(self.passed, set())
        for each in (each for one in self._functions for each in ast.walk(one)):
            if isinstance(each, ast.Name) and self._is_store_of_array(each):
                parent = self.source.parents[each]
                if (
                    parent not in self.bindings | self.others
                    and not isinstance(parent, ast.AugAssign)
                    and not self._is_before(each)
                ):
                    raise Refused(f"`{each.id}` is bound several times")
        # The tensor that an array shares the memory of may be written to as well.
        if self.flipped and (self.is_written or writes(self._functions)):
            raise Refused("NumPy flips without copying, and an array or a tensor is written to")
        for each in self.copied:
            if self._is_written_after(each):
                made = self.made[each]
                self.made[each] = Replacement(made.start, made.end, f"{made.text}.clone()")
        return [*self._made_behind(), *self.opened.values(), *self.widened.values()]

    def _made_behind(self) -> list[Replacement]:
        """What is made, where the same place gets what widens an argument as well: that comes first, in one text."""
        swaps = []
        for each in self.made.values():
            beside = [
                node for node, put in self.widened.items() if (put.start, put.end) == (each.start, each.end)
            ]
            text = "".join(self.widened.pop(node).text for node in beside)
            swaps.append(Replacement(each.start, each.end, text + each.text))
        return swaps

    def _is_written_after(self, node: ast.expr) -> bool:
        """Whether an array or a tensor may be written to once `node` is evaluated."""
        source = self.source
        if self.helpers.entered:
            return writes(self._functions)
        if any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(node)):
            return writes([source.enclosing_function(node) or source.tree])
        later = [
            each
            for each in ast.walk(source.enclosing_function(node) or source.tree)
            if isinstance(each, (ast.stmt, ast.expr)) and source.start(each) >= source.end(node)
        ]
        return writes(later)

    def _follow_leaves(self) -> None:
        while self.leaves:
            node: ast.expr | None = self.leaves.pop()
            while node is not None:
                self.passed.add(node)
                node = self._outwards(node)

    def _make_operand(self, other: ast.expr) -> None:
        """Let torch make what NumPy makes of sizes where it stands, or where its name is bound."""
        function = self.source.enclosing_function(other)
        made = self._created(other)
        if made is not None:
            self.made[other] = made
            self.passed.add(other)
        elif isinstance(other, ast.BinOp) and (parts := self._created_with_numbers(other)):
            self.made |= parts
            self.passed.add(other)
        elif isinstance(other, ast.Name) and function is not None:
            self._create_bound(function, other.id)

    def _created_with_numbers(self, node: ast.expr) -> dict[ast.AST, Replacement]:
        """The arrays of doubles that NumPy makes in `node`, which else holds numbers that are written there, and computes with
        them; none where it holds anything else."""
        if isinstance(node, ast.BinOp):
            sides = [each for each in (node.left, node.right) if not isinstance(each, ast.Constant)]
            parts = [self._created_with_numbers(each) for each in sides]
            return {key: value for each in parts for key, value in each.items()} if all(parts) else {}
        made = self._created(node)
        return {} if made is None or "float64" not in made.text else {node: made}

    def _refuse_operand(self, other: ast.expr, node: ast.expr, operation: ast.AST) -> None:
        function = self.source.enclosing_function(other)
        text = self.source.of(other)
        if other not in self.passed:
            if isinstance(operation, ast.BinOp) and self._is_double(other, function):
                # A number of double precision is no mere number to NumPy: what it meets becomes of that.
                self._to_double(node)
                return
            if not is_no_array(self.draft, other, function):
                raise Refused(
                    f"`{text}` may be an array or a number of NumPy's, which do not do the same beside a tensor"
                )
            return
        if isinstance(operation, ast.Call) and not of_one_dtype(node, other):
            name = qualified_name(self.draft, operation.func).removeprefix("numpy.")
            if name in PRODUCTS:
                raise Refused(f"`{text}` may be of another dtype, which torch does not multiply")
        if isinstance(operation, ast.BinOp):
            made = isinstance(other, ast.Call) and other in self.made
            if isinstance(operation.op, ast.MatMult) and (made or not of_one_dtype(node, other)):
                raise Refused(f"`{text}` may be of another dtype, which torch does not multiply")
            widens = node in self.widened or other in self.widened
            if not widens and counts_beside_floats(node, other, self._known(other)):
                raise Refused(
                    "NumPy makes doubles where an array of ints meets one of floats, and torch does not"
                )

    def _is_double(self, node: ast.expr, function: Function | None) -> bool:
        """Whether NumPy makes one float of plain numbers at `node`."""
        return (
            isinstance(node, ast.Call)
            and qualified_name(self.draft, node.func).removeprefix("numpy.") in FLOATING
            and qualified_name(self.draft, node.func).startswith("numpy.")
            and not node.keywords
            and len(node.args) == 1
            and node.args[0] not in self.passed
            and is_no_array(self.draft, node.args[0], function)
            and self.draft.kinds({}).of(node.args[0]).what != "tensor"
        )

    def _to_double(self, node: ast.expr) -> None:
        """`.double()` behind `node`, and behind the brackets around it, which belong to no node."""
        start, end = self.source.start(node), self.source.end(node)
        opened, closed = "", ""
        if not isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            before, behind = self.source.text[:start].rstrip(), self.source.text[end:].lstrip()
            if before.endswith("(") and behind.startswith(")"):
                end = len(self.source.text) - len(behind) + 1
            else:
                opened, closed = "(", ")"
        self.opened[node] = Replacement(start, start, opened)
        self.widened[node] = Replacement(end, end, f"{closed}.double()")

    def _has_few_dimensions(self, array: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether `array` has one or two dimensions, as far as it is written: what is turned around mostly has two."""
        if isinstance(array, ast.Attribute):
            return array.attr == "T"
        if isinstance(array, ast.Subscript):
            return self._has_few_dimensions(array.value, seen)
        if isinstance(array, ast.Name):
            given = given_to_name(array.id, self.source.enclosing_function(array))
            seen = seen | {array.id} if array.id not in seen else seen
            known = [
                each
                for each in given
                if not any(one.id in seen for one in _names(each)) or each in self.ranks
            ]
            return (
                bool(given)
                and len(known) == len(given)
                and all(self._has_few_dimensions(each, seen) for each in given)
            )
        return self.ranks.get(array) in (1, 2)

    def _outwards(self, node: ast.expr) -> ast.expr | None:
        """The array that is made of `node`, None where it ends. Raises Refused where torch has no counterpart."""
        source, parent = self.source, self.source.parents.get(node)
        if isinstance(parent, (ast.BinOp, ast.UnaryOp)) and not isinstance(
            getattr(parent, "op", None), ast.Not
        ):
            self._widen(parent, node)
            if isinstance(parent, ast.BinOp) and self._is_number_beside_tensor(parent, node):
                return None
            if isinstance(parent, ast.BinOp):
                self.operands.append((parent.left if parent.right is node else parent.right, node, parent))
            return parent
        if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
            other = parent.comparators[0] if parent.left is node else parent.left
            self.operands.append((other, node, parent))
            return None if isinstance(source.parents[parent], (ast.If, ast.IfExp, ast.Assert)) else parent
        if _is_tested(source, node):
            return None
        if isinstance(parent, ast.Subscript):
            return self._item(parent, node)
        if isinstance(parent, ast.Attribute):
            self._widen(parent, node)
            return self._method(parent)
        if isinstance(parent, ast.Call) and parent.func is not node:
            self._widen(parent, node)
            return self._argument(parent, node)
        if (
            isinstance(parent, ast.Assign)
            and len(parent.targets) == 1
            and isinstance(parent.targets[0], ast.Name)
        ):
            self.bindings.add(parent)
            self._follow(parent, parent.targets[0].id)
            return None
        if isinstance(parent, (ast.Return, ast.Tuple)) and self._given_back(node):
            return None
        if isinstance(parent, ast.Tuple) and self._unpacked(parent, node):
            return None
        if self._is_index_of_tensor(node):
            return None
        if isinstance(parent, ast.Tuple) and self._is_index(parent):
            return self._indexed(parent, node)
        if isinstance(parent, (ast.List, ast.Tuple)):
            return self._together(parent)
        if isinstance(parent, ast.ListComp) and parent.elt is node:
            return self._together(parent)
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            self._gone_through(parent)
            return None
        if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
            target = parent.targets[0]
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                # What it is written into is converted to its own dtype by both.
                self.put_together.append(target.value)
                return None
        if isinstance(parent, ast.AugAssign) and parent.value is not node:
            self.is_written = True
            self.operands.append((parent.value, node, parent))
            return None
        raise Refused("the array is used in a way that has no counterpart in torch")

    def _is_number_beside_tensor(self, operation: ast.BinOp, node: ast.expr) -> bool:
        """Whether `node` is one number to NumPy and the other operand a tensor, whose dtype the number leaves as it is: what
        they give is a tensor already."""
        function = self.source.enclosing_function(operation)
        other = operation.right if operation.left is node else operation.left
        if function is None or not is_one_number(node, function, self.made, self.names):
            return False
        now = kinds_before(function, self.source.enclosing_statement(operation), self.kinds)
        kind = now.of(other)
        floats = (kind.dtype or "float").startswith(("float", "bfloat"))
        # A tensor without dimensions decides the dtype beside another one, which a number does not.
        return kind.what == "tensor" and floats and kind.rank != 0

    def _widen(self, parent: ast.expr, node: ast.expr) -> None:
        if widened(parent, node, self._known(node)):
            start, end = self.source.start(node), self.source.end(node)
            if isinstance(node, (ast.BinOp, ast.Compare)):
                before, behind = self.source.text[:start].rstrip(), self.source.text[end:].lstrip()
                if isinstance(parent, ast.Call):
                    self.opened[node] = Replacement(start, start, "(")
                    self.widened[node] = Replacement(end, end, ").double()")
                    return
                # The brackets around an operation belong to no node.
                if before.endswith("(") and behind.startswith(")"):
                    end = len(self.source.text) - len(behind) + 1
            self.widened[node] = Replacement(end, end, ".double()")
        elif averaged_of_any(parent, node, self._known(node)):
            start, end = self.source.start(node), self.source.end(node)
            tensor = node
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                tensor = node.func.value
            text = self.source.of(tensor)
            opening, closing = ("", "") if isinstance(parent, ast.Call) else ("(", ")")
            self.opened[node] = Replacement(
                start, start, f"{opening}{text} if {text}.is_floating_point() else "
            )
            self.widened[node] = Replacement(end, end, f".double(){closing}")

    def _is_index(self, node: ast.expr) -> bool:
        parent = self.source.parents[node]
        return isinstance(parent, ast.Subscript) and parent.slice is node

    def _indexed(self, index: ast.expr, node: ast.expr) -> ast.expr | None:
        """The array that is picked by `index`, which is the array `node` or holds it. What is indexed must be an array
        that was a tensor, too, or one that torch can make as well."""
        source, draft = self.source, self.draft
        subscript = source.parents[index]
        assert isinstance(subscript, ast.Subscript)
        self.indexes = True
        for each in index.elts if isinstance(index, ast.Tuple) else []:
            made = self._created(each)
            if made is not None:
                self.made[each] = made
            elif not isinstance(each, (ast.Constant, ast.Slice)) and each is not node:
                self.put_together.append(each)
        value = subscript.value
        made = self._created(value)
        if made is not None:
            self.made[value] = made
            self.passed.add(value)
            return subscript if isinstance(subscript.ctx, ast.Load) else None
        function = source.enclosing_function(subscript)
        if function is not None and isinstance(value, ast.Name):
            self._create_bound(function, value.id)
        if function is not None:
            now = kinds_before(function, source.enclosing_statement(subscript), draft.kinds({}))
            if now.of(value).what == "tensor":
                return None
        self.put_together.append(value)
        return None

    def _create_bound(self, function: Function, name: str) -> None:
        """Let torch make the array that the name is bound to first."""
        stores = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        statement = self.source.parents[stores[0]] if stores else None
        first = statement.value if isinstance(statement, ast.Assign) else None
        made = self._created(first) if first is not None else None
        if made is not None and first is not None and first not in self.made:
            self.made[first] = made
            self.leaves.append(first)

    def _created(self, node: ast.expr) -> Replacement | None:
        name = qualified_name(self.draft, node.func) if isinstance(node, ast.Call) else ""
        if not name.startswith("numpy."):
            return None
        return created(self.source, node, name.removeprefix("numpy."), self.draft.torch)

    def _is_index_of_tensor(self, node: ast.expr) -> bool:
        """Whether a tensor that torch makes there is indexed by `node`: a tensor picks from it what the array does."""
        parent = self.source.parents[node]
        if isinstance(parent, ast.Tuple):
            node, parent = parent, self.source.parents[parent]
        return (
            isinstance(parent, ast.Subscript)
            and parent.slice is node
            and isinstance(parent.ctx, ast.Load)
            and isinstance(parent.value, ast.Call)
            and qualified_name(self.draft, parent.value.func).startswith("torch.")
        )

    def _item(self, parent: ast.Subscript, node: ast.expr) -> ast.expr | None:
        if parent.value is not node:
            return None if self._is_index_of_tensor(node) else self._indexed(node, node)
        if any(
            isinstance(each, ast.Slice) and isinstance(each.step, ast.UnaryOp)
            for each in ast.walk(parent.slice)
        ):
            raise Refused("tensors take no slice with a negative step")
        if isinstance(parent.ctx, ast.Load):
            return parent
        self.is_written = True
        statement = self.source.parents[parent]
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            self.operands.append((statement.value, parent, statement))
        return None

    def _method(self, parent: ast.Attribute) -> ast.expr | None:
        call = self.source.parents.get(parent)
        if parent.attr in ("shape", "ndim"):
            return None
        if parent.attr == "T":
            return parent
        called = isinstance(call, ast.Call) and call.func is parent
        if parent.attr == "size" and not called:
            self.made[parent] = Replacement(
                self.source.end(parent.value), self.source.end(parent), ".numel()"
            )
            return None
        if not (isinstance(call, ast.Call) and called):
            raise Refused(f"`.{parent.attr}` of the array has no counterpart in torch")
        if parent.attr in ENDS:
            return None
        refuse_bytes(parent.value, parent.attr, self._known(parent))
        self.made[parent] = translated(self.source, call, self.draft.torch)
        if parent.attr in COPIED:
            self.copied.append(parent)
        return call

    def _argument(self, call: ast.Call, node: ast.expr) -> ast.expr | None:
        draft, source = self.draft, self.source
        name = qualified_name(draft, call.func)
        legacy = LEGACY.get(name) if len(call.args) == 1 and not call.keywords else None
        if is_back(draft, call) or legacy is not None:
            if name == "torch.tensor" or legacy is not None:
                self.copied.append(call.func)
            tail = "".join(
                f".to({key.arg}={source.of(key.value)})" for key in call.keywords if key.arg is not None
            )
            tail += f".to({draft.torch}.{legacy})" if legacy is not None else ""
            simple = isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
            opened, closed = ("", "") if simple else ("(", ")")
            self.made[call] = Replacement(source.start(call), source.start(node), opened)
            self.made[call.func] = Replacement(source.end(node), source.end(call), closed + tail)
            return None
        if isinstance(call.func, ast.Name) and call.func.id in ("float", "int", "len", "bool"):
            return None
        if is_numpy(draft, call):
            self.flipped |= qualified_name(draft, call.func) == "numpy.flip"
            refuse_bytes(node, qualified_name(draft, call.func).removeprefix("numpy."), self._known(node))
            known = self._known(node)
            of_floats = is_floating(node, known) or averaged_of_any(call, node, known)
            self.made[call.func], *more = renamed(draft, call, of_floats)
            for at, each in zip([call, *call.args], more, strict=False):
                self.made[at] = each
            self.put_together += tensors_asked(draft, call)
            is_second = qualified_name(draft, call.func) == "numpy.dot" and call.args[1:] == [node]
            if call in self.summed or (is_second and not self._has_few_dimensions(node)):
                self._sum_over(call, call.args[1])
            self.operands += [
                (each, node, call) for each in call.args if each is not node and not _is_axes(each)
            ]
            sides = [each for each in call.args[1:] if isinstance(each, ast.Constant)]
            if (
                qualified_name(draft, call.func) == "numpy.where"
                and len(sides) == 2
                and any(isinstance(each.value, float) for each in sides)
            ):
                # Of two floats NumPy makes an array of double precision.
                double = f"{draft.torch}.tensor({source.of(sides[0])}, dtype={draft.torch}.float64)"
                self.made[sides[0]] = source.swap(sides[0], double)
            return call
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and call.args == [node]:
            self._appended(call.func.value)
            return None
        helper = self.helpers.called(call)
        if helper is not None and call is not node:
            self._handed_to(helper, call, node)
            return None
        raise Refused("the array is used in a way that has no counterpart in torch")


def _names(node: ast.expr) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]


def _is_axes(node: ast.expr) -> bool:
    """Whether `node` is written out as whole numbers."""
    numbers = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return all(map(is_int, numbers))


def _is_tested(source: Source, node: ast.expr) -> bool:
    """Whether `node` is only asked for its truth, which a tensor of one element tells as an array does."""
    parent = source.parents[node]
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, (ast.If, ast.IfExp, ast.Assert, ast.While)) and parent.test is node


def is_back(draft: Draft, node: ast.Call) -> bool:
    plain = all(key.arg in ("dtype", "device") for key in node.keywords)
    return len(node.args) == 1 and plain and qualified_name(draft, node.func) in _BACK
