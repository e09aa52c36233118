"""NumPy on traced tensors becomes torch: calls by themselves, and the whole way from `t.numpy()` to `torch.from_numpy`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion
from exportlens.inference.values import Tensor, Value, options
from exportlens.rewriting.array_creation import created
from exportlens.rewriting.array_gathering import Gathering
from exportlens.rewriting.array_helpers import Helpers
from exportlens.rewriting.array_methods import COPIED, ENDS, dot, translated
from exportlens.rewriting.array_operands import (
    counts_beside_floats,
    is_no_array,
    is_one_number,
    of_one_dtype,
)
from exportlens.rewriting.array_types import RefusedUnlike
from exportlens.rewriting.array_ways import torch_for_arrays
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused, RefusedDtypes, WholeDraft
from exportlens.rewriting.effects import kinds_before
from exportlens.rewriting.imports import imported
from exportlens.rewriting.kind import UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.moving import writes
from exportlens.rewriting.names import bound
from exportlens.rewriting.numpy_calls import (
    LEGACY,
    PRODUCTS,
    is_int,
    is_numpy,
    qualified_name,
    refuse_numbers,
    renamed,
    tensors_asked,
)
from exportlens.rewriting.numpy_integers import (
    FLOATING,
    averaged_of_any,
    given_to_name,
    is_floating,
    refuse_bytes,
    widened,
)
from exportlens.rewriting.text import Function, Replacement, Source

_BACK = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
_MADE = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")


def torch_for_numpy(place: Call | Conversion, context: RewriteContext) -> Fix | Refusal:
    """torch's function for NumPy's on a tensor, or the whole way from `t.numpy()` back to torch."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        function = draft.source.enclosing_function(draft.source.enclosing_statement(node))
        if function is not None:
            draft.modules = imported(function.body) | draft.modules
        if isinstance(place, Conversion) and isinstance(node, ast.Call) and is_numpy(draft, node):
            if not isinstance(place.value, Tensor):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            if qualified_name(draft, node.func) in _MADE and not _is_given_back(draft, node):
                # The array is an array to all that follows: NumPy's functions of it are no torch's of a tensor.
                return _way_of_all(draft, node, {place.value.dtype}, place.variables)
            refuse_numbers(draft, node, place)
            return draft.replace("Use torch's function", renamed(draft, node))
        if isinstance(place, Call):
            if not isinstance(node, ast.Call) or not all(
                all(isinstance(option, Tensor) for option in options(value)) for value in place.args[:1]
            ):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            refuse_numbers(draft, node, place)
            return draft.replace("Use torch's function", renamed(draft, node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            options_of = options(place.value) if isinstance(place, Conversion) else ()
            dtypes = {each.dtype for each in options_of if isinstance(each, Tensor)}
            known = place.variables if isinstance(place, Conversion) else {}
            return _way_out(draft, node, dtypes, known)
        raise Refused("the array is not made by `.numpy()`")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_given_back(draft: Draft, node: ast.Call) -> bool:
    """Whether `node` stands where a tensor is made of it at once."""
    parent = draft.source.parents[node]
    return isinstance(parent, ast.Call) and node in parent.args and _is_back(draft, parent)


def _way_of_all(draft: Draft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value]) -> Fix:
    """The whole way from `first`, with the dtype of everything in it."""
    whole = WholeDraft.around(draft)
    begun = whole.found(first)
    assert isinstance(begun, ast.Call)
    return whole.replace("Stay in torch", torch_for_arrays(whole, begun, dtypes, known))


def _way_out(draft: Draft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value]) -> Fix:
    """The whole way from `first`, with the dtype of everything in it, or else by what arrays are used for alone."""
    whole = WholeDraft.around(draft)
    try:
        return _way_of_all(draft, first, dtypes, known)
    except (RefusedUnlike, RefusedDtypes):
        raise
    except Refused as refused:
        reason = refused
    try:
        return draft.replace("Stay in torch", _whole_way(draft, first, dtypes, known))
    except Refused as refused:
        try:
            return whole.replace("Stay in torch", _with_functions(whole, first, dtypes, known, refused))
        except Refused:
            raise reason from None


def _with_functions(
    whole: WholeDraft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value], refused: Refused
) -> list[Replacement]:
    """The whole way where it goes through functions of the file; raises `refused` where it does not."""
    node = whole.found(first)
    assert isinstance(node, ast.Call)
    if whole.source.enclosing_function(node) is None:
        raise refused
    return _whole_way(whole, node, dtypes, known)


def _whole_way(
    draft: Draft, first: ast.Call, dtypes: set[str | None], variables: Mapping[str, Value]
) -> list[Replacement]:
    """The replacements for the array that `first` makes of a tensor of one of `dtypes`, and for all others of the function:
    they may meet."""
    function = draft.source.enclosing_function(first)
    arrays = [
        each
        for each in ast.walk(function or draft.source.tree)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "numpy"
        and not each.args
        and not each.keywords
    ]
    if first not in arrays:
        raise Refused("the array is made otherwise than by `.numpy()`")
    way = ArrayWay(draft, arrays, draft.kinds(variables))
    one = next(iter(dtypes)) if len(dtypes) == 1 else None
    if one is not None:
        way.dtypes[first] = one
    swaps = way.swaps()
    byte = f".to({draft.torch}.uint8)"
    if way.indexes and ("uint8" in dtypes or any(each.text == byte for each in swaps)):
        raise Refused("a tensor of uint8 is a mask where it is an index, an array of it holds numbers")
    return swaps


class ArrayWay(Gathering):
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

    def _is_store_of_array(self, node: ast.Name) -> bool:
        """Whether `node` binds a name that has been followed in its function."""
        if isinstance(node.ctx, ast.Load) or node.id not in self.names:
            return False
        key = (self.source.enclosing_function(node), node.id)
        ends = [end for end in self.ends.get(key, ()) if end is not None]
        # Behind all that binds it anew the name is no array any more.
        left = len(ends) == len(self.ends.get(key, (None,))) and self.source.start(node) >= max(ends)
        return key in self.named and not left

    def _is_before(self, store: ast.Name) -> bool:
        """Whether `store` binds a name that is certainly bound to an array later, before it is followed."""
        for binding in self.bindings:
            statement = binding if isinstance(binding, ast.stmt) else self.source.parents[binding]
            if any(isinstance(each, ast.Name) and each.id == store.id for each in _targets(binding)):
                return (
                    isinstance(statement, ast.stmt)
                    and self.source.parents[statement] is self.source.enclosing_function(store)
                    and self.source.start(store) < self.source.start(statement)
                )
        return False

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

    def _unpacked(self, values: ast.Tuple, node: ast.expr) -> bool:
        """Whether `node` among `values` gets a name of its own, as in `a, b = x.mean(), x.std()`."""
        statement = self.source.parents[values]
        targets = (
            statement.targets[0]
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1
            else None
        )
        if not isinstance(targets, ast.Tuple) or len(targets.elts) != len(values.elts):
            return False
        target = targets.elts[values.elts.index(node)]
        if any(isinstance(each, ast.Starred) for each in targets.elts) or not isinstance(target, ast.Name):
            return False
        assert isinstance(statement, ast.Assign)
        self.bindings.add(targets)
        self._follow(statement, target.id)
        return True

    def _follow(self, statement: ast.Assign, name: str) -> None:
        if (name, statement) in self.followed:
            return
        self.followed.add((name, statement))
        self._name(statement, name)
        source = self.source
        function = source.enclosing_function(statement)
        # Before the statement, and in it, a name is what it was, unless a loop comes by again.
        again = any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(statement))
        end = None if again else self._bound_anew(statement, name)
        self.ends.setdefault((function, name), []).append(end)
        self.leaves += [
            each
            for each in ast.walk(function or source.tree)
            if isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and (again or source.start(each) >= source.end(statement))
            and (end is None or source.start(each) < end)
        ]

    def _bound_anew(self, statement: ast.Assign, name: str) -> int | None:
        """Where a later statement of the same block that binds `name` to something else ends."""
        block, index = self.source.block_of(statement)
        for each in block[index + 1 :]:
            if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]:
                self.others.add(each)
                return self.source.end(each)
            if name in bound(each):
                return None
        return None

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
        if _is_back(draft, call) or legacy is not None:
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


def _targets(binding: ast.AST) -> list[ast.expr]:
    """What a binding binds: a statement, or the targets of one that unpacks."""
    if isinstance(binding, ast.Assign):
        return binding.targets
    return binding.elts if isinstance(binding, ast.Tuple) else []


def _is_tested(source: Source, node: ast.expr) -> bool:
    """Whether `node` is only asked for its truth, which a tensor of one element tells as an array does."""
    parent = source.parents[node]
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, (ast.If, ast.IfExp, ast.Assert, ast.While)) and parent.test is node


def _is_back(draft: Draft, node: ast.Call) -> bool:
    plain = all(key.arg in ("dtype", "device") for key in node.keywords)
    return len(node.args) == 1 and plain and qualified_name(draft, node.func) in _BACK
