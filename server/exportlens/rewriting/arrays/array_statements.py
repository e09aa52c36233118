"""Statements that arrays of NumPy go through, read with what is replaced in them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference.values import Value
from exportlens.rewriting.arrays.array_helpers import Helpers
from exportlens.rewriting.arrays.array_indexing import fits, index_of
from exportlens.rewriting.arrays.array_lists import Lists
from exportlens.rewriting.arrays.array_numbers import of_others
from exportlens.rewriting.arrays.array_operators import beside_tensor, computed
from exportlens.rewriting.arrays.array_pieces import Piece, cast, is_made_here, lifted
from exportlens.rewriting.arrays.array_reading import ATOMS, SIGNS, Again
from exportlens.rewriting.arrays.array_types import (
    COMPLEXES,
    FLOATS,
    NONE,
    OTHER,
    UNLIKE,
    RefusedIndex,
    RefusedRounds,
    RefusedUnlike,
    Typed,
    array,
    family,
    merged,
)
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.draft import Refused, WholeDraft
from exportlens.rewriting.code.names import arguments, defaults_of
from exportlens.rewriting.code.text import Function, Replacement

_SILENT = frozenset({"numpy.errstate", "numpy.printoptions"})


class Way(Lists):
    """Reads the statements of functions, and keeps what is replaced in them."""

    def __init__(self, draft: WholeDraft, variables: Mapping[str, Value], copies: bool) -> None:
        super().__init__(draft, draft.kinds(variables), copies)
        self.helpers = Helpers(self.source)
        self.params: dict[Function, dict[str, Typed]] = {}
        self.results: dict[Function, Typed] = {}
        self.entered: list[ast.AST] = []
        self.calls: set[ast.Call] = set()
        self.swaps: dict[ast.AST, Replacement] = {}
        self.silenced: list[ast.With] = []
        self.returned: Typed | None = None

    def read(self, function: Function, names: dict[str, Typed]) -> Typed:
        """Read `function`, whose arguments `names` are, and say what it returns."""
        if function in self.entered:
            if function not in self.results:
                raise Refused(f"`{function.name}` calls itself")
            return self.results[function]
        self.entered.append(function)
        outer = self.names, self.returned
        self.names, self.returned = dict(names), None
        for each in arguments(function.args):
            if each.arg in names and names[each.arg].is_array:
                self._annotate(each.annotation)
        self._block(function.body)
        given = NONE if self.returned is None else self.returned
        if given.is_array:
            self._annotate(function.returns)
        self.names, self.returned = outer
        self.results[function] = given
        return given

    def _annotate(self, annotation: ast.expr | None) -> None:
        if annotation is not None and self.draft.qualified(annotation) == "numpy.ndarray":
            self.swaps[annotation] = self.source.swap(annotation, f"{self.torch}.Tensor")

    def callers(self, function: Function) -> list[Function]:
        """The functions that call `function`, which gives them arrays."""
        name = function.name
        if name in ("forward", "__call__", "__init__") or not self.helpers._is_plain(function):
            raise Refused(f"`{name}` returns an array")
        found = [self.source.enclosing_function(each) for each in self.helpers.calls_of(function)]
        callers = [each for each in dict.fromkeys(found) if each is not None]
        if not callers or None in found or function in callers:
            raise Refused(f"`{name}` returns an array")
        return callers

    def refuse_unseen(self, roots: list[Function]) -> None:
        """Raise Refused where a function that arrays go through is called from elsewhere as well."""
        for function in self.entered:
            assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            if function in roots:
                continue
            if not self.calls.issuperset(self.helpers.calls_of(function)):
                raise Refused(f"`{function.name}` is called with something else than what was a tensor")

    def replacements(self) -> list[Replacement]:
        swaps = list(self.swaps.values())
        for node in self.silenced:
            start, end = self.source.start(node), self.source.span(node.body)[1]
            inner = [each for each in swaps if start <= each.start and each.end <= end]
            indent = self.source.indent_of(node)
            text = self.source.block(node.body, indent, inner)
            swaps = [each for each in swaps if each not in inner]
            swaps.append(Replacement(start, end, text.removeprefix(indent)))
        return swaps

    def call_of_helper(self, node: ast.Call) -> Piece | None:
        function = self.helpers.called(node)
        if function is None:
            return None
        pieces = {each: self.piece(each) for each in [*node.args, *(key.value for key in node.keywords)]}
        makes = any(
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "numpy"
            for each in ast.walk(function)
        )
        if not makes and not any(each.type.holds_arrays for each in pieces.values()):
            return None
        names = {self.helpers.parameter(function, node, each): piece.type for each, piece in pieces.items()}
        for each, default in defaults_of(function.args).items():
            names.setdefault(each, self.piece(default).type)
        known = self.params.get(function)
        if known is not None:
            both = {
                each: merged(known[each], names[each]) if each in known and each in names else UNLIKE
                for each in {*known, *names}
            }
            if both != known:
                self.params[function] = both
                raise Again
            names = known
        self.params[function] = names
        self.calls.add(node)
        given = self.read(function, names)
        return self.splice(node, list(pieces.items()), replace(given, value=None))

    # Statements.

    def _block(self, statements: list[ast.stmt]) -> None:
        for each in statements:
            method = getattr(self, f"_read_{type(each).__name__}", None)
            if method is None:
                self._refuse_arrays(each)
            else:
                method(each)

    def _refuse_arrays(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom)):
            return
        for each in ast.walk(statement):
            if isinstance(each, ast.Name) and self._is_array(each.id):
                raise Refused(f"the array `{each.id}` is used in a statement that is not followed")
            if isinstance(each, ast.Attribute) and each.attr == "numpy":
                raise Refused("an array is made in a statement that is not followed")

    def _read_Assign(self, node: ast.Assign) -> None:
        target = node.targets[-1]
        several = isinstance(target, ast.Tuple) and any(
            isinstance(each, ast.Subscript) for each in target.elts
        )
        if several and len(node.targets) == 1 and isinstance(node.value, ast.Tuple):
            assert isinstance(target, ast.Tuple)
            self._store_each(target, node.value)
            return
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Subscript):
            piece = self._put(node.value)
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    self._store(target, node.value, piece)
                else:
                    self.bind(target, piece.type, node.value)
            return
        self._store(node.targets[0], node.value, self.piece(node.value))

    def _store_each(self, targets: ast.Tuple, values: ast.Tuple) -> None:
        """`rows[k], columns[k] = row, column`, where nothing is read of what is written."""
        if len(targets.elts) != len(values.elts) or any(
            isinstance(each, ast.Starred) for each in (*targets.elts, *values.elts)
        ):
            raise Refused("what is unpacked into items of arrays is not known")
        written = {each.id for each in ast.walk(targets) if isinstance(each, ast.Name)}
        written -= {
            each.id for one in targets.elts if isinstance(one, ast.Subscript) for each in _names(one.slice)
        }
        if any(each.id in written for each in _names(values)):
            raise RefusedUnlike(
                "a number of NumPy's is read before it is written anew, where torch reads it later"
            )
        for target, value in zip(targets.elts, values.elts, strict=True):
            if isinstance(target, ast.Subscript):
                self._store(target, value, self.piece(value))
            else:
                self.bind(target, self._put(value).type, value)

    def _read_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            piece = self._put(node.value)
            if piece.type.is_array:
                self._annotate(node.annotation)
            self.bind(node.target, piece.type, node.value)

    def _store(self, target: ast.Subscript, node: ast.expr, value: Piece) -> None:
        owner = self.piece(target.value)
        if owner.type.what == "dict" and isinstance(target.value, ast.Name):
            self._put_in(target, node, value, owner)
            return
        if owner.type.what == "held" and (
            value.type.holds_arrays
            or self.is_index_of_arrays(target.slice)
            or (self.decided and owner.type.origins)
        ):
            owner = self.unheld(target.value, owner)
        if not owner.type.is_array:
            if value.type.holds_arrays and owner.type.what != "tensor":
                raise Refused(f"what `{owner.text}` is, which an array is written into, is not known")
            if value.type.holds_arrays:
                raise Refused("an array is written into a tensor, which keeps its own dtype")
            self._keep(node, value)
            self.swaps.update(self._inside(target))
            return
        value = (
            self._listed(node, owner) if value.type.what in ("list", "tuple") else self.unheld(node, value)
        )
        self._note_written(target, owner, value)
        fits(owner, value)
        index = index_of(self, target, owner)
        if index.flipped:
            raise Refused("tensors take no slice with a negative step")
        kept = owner.type.made_of is not None
        if kept and value.type.is_array and index.picks:
            raise RefusedUnlike("torch converts nothing that is written element by element")
        if value.type.is_array and index.picks and value.type.dtype != owner.type.dtype:
            value = cast(self, value, owner.type.dtype, owner.text)
        if (
            not kept
            and family(owner.type.dtype) == "int"
            and value.type.is_array
            and family(value.type.dtype) == "float"
        ):
            value = cast(self, value, owner.type.dtype)
        self._keep(node, value)
        self._keep(target.value, owner)
        for each, piece in index.parts:
            self._keep(each, piece)

    def _listed(self, node: ast.expr, owner: Piece) -> Piece:
        """A list that is written there as an array of the dtype of the one that it is written into."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            raise Refused(
                f"what `{self.source.of(node)}` holds, which is written into an array, is not known"
            )
        parts = [self.argument(each) for each in node.elts]
        numbers = [each for each in parts if each.type.is_number]
        if not parts or any(each.type.rank for each in parts) or owner.type.dtype in (FLOATS, COMPLEXES):
            raise Refused(
                f"`{self.source.of(node)}`, which is written into an array, is not known to hold numbers"
            )
        if family(owner.type.dtype) != "float" and {family(each.type.dtype) for each in parts} - {
            "int",
            "bool",
        }:
            raise RefusedUnlike("NumPy cuts off what is behind the point")
        for each in parts:
            fits(owner, each)
        if len(numbers) == len(parts):
            text = f"{self.torch}.tensor({self.source.of(node)}, dtype={self.torch}.{owner.type.dtype})"
            return Piece(text, array(owner.type.dtype, 1))
        # NumPy takes nothing but parts of one shape.
        ranks = {each.type.rank for each in parts if each.type.is_array} - {None}
        rank = 1 if numbers or 0 in ranks else None
        texts = [lifted(self, each, owner.type.dtype).text for each in parts]
        return Piece(f"{self.torch}.stack([{', '.join(texts)}])", array(owner.type.dtype, rank))

    def _put_in(self, target: ast.Subscript, node: ast.expr, value: Piece, owner: Piece) -> None:
        """Let a dict that a name has hold `value` under a key that is written there."""
        assert isinstance(target.value, ast.Name)
        keys = owner.type.value if isinstance(owner.type.value, tuple) else ()
        if not isinstance(target.slice, ast.Constant):
            if value.type.holds_arrays or owner.type.holds_arrays:
                raise Refused("under which key an array is kept is not written out")
            self._keep(node, value)
            return
        held = dict(zip(keys, owner.type.items, strict=True)) | {target.slice.value: value.type}
        self.names[target.value.id] = Typed("dict", items=tuple(held.values()), value=tuple(held))
        self._keep(node, value)

    def _note_written(self, target: ast.expr, owner: Piece, value: Piece) -> None:
        """Note of which dtype an array is that is written to, where that counts: something else may be of the same memory, or
        what is written is cut off to fit."""
        root: ast.expr = target
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        made = (
            given_to_name(root.id, self.source.enclosing_function(target))
            if isinstance(root, ast.Name)
            else []
        )
        cut = family(owner.type.dtype) in ("int", "bool") and family(value.type.dtype or "float") == "float"
        if cut or not made or not all(map(is_made_here, made)):
            self.given[target] = owner.type.dtype

    def _inside(self, target: ast.Subscript) -> dict[ast.AST, Replacement]:
        made = self.piece(target)
        if made.text != self.source.of(target):
            return {target: self.source.swap(target, made.text)}
        return {}

    def _read_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._augment_name(node, node.target)
            return
        value = self.piece(node.value)
        if isinstance(node.target, ast.Subscript):
            owner = self.piece(node.target.value)
            if owner.type.what == "held" and (
                value.type.holds_arrays or self.is_index_of_arrays(node.target.slice)
            ):
                owner = self.unheld(node.target.value, owner)
            if owner.type.is_array:
                load = ast.Subscript(node.target.value, node.target.slice, ast.Load())
                ast.copy_location(load, node.target)
                self.source.parents[load] = node
                now = self.piece(load)
                index = index_of(self, node.target, owner)
                if index.flipped or isinstance(node.op, ast.MatMult):
                    raise Refused("tensors take no slice with a negative step")
                value = self._augmented(node, now, self.unheld(node.value, value), index.picks)
                self._keep(node.value, value)
                self._keep(node.target.value, owner)
                for each, piece in index.parts:
                    self._keep(each, piece)
                return
        if value.type.holds_arrays:
            raise Refused(f"an array is added to `{self.source.of(node.target)}`")
        self._keep(node.value, value)

    def _augmented(self, node: ast.AugAssign, now: Piece, value: Piece, picks: bool) -> Piece:
        """What stands behind `+=` where the array keeps its dtype."""
        left, right, kind = computed(self, now, value, SIGNS[type(node.op)])
        self._note_written(node.target, now, value)
        if family(kind.dtype) != family(now.type.dtype):
            raise RefusedUnlike("NumPy does not write what it computes into an array of another kind")
        if kind.dtype != now.type.dtype:
            if picks:
                raise RefusedUnlike("what is computed is of another dtype than the array")
            return value
        if left.text != now.text:
            raise RefusedUnlike("what is computed is of another dtype than the array")
        return right

    def _augment_name(self, node: ast.AugAssign, target: ast.Name) -> None:
        value = self.piece(node.value)
        now = self.piece(target)
        if now.type.what == "tensor" and beside_tensor(now, value) is not None:
            self._keep(node.value, value)
            return
        if not now.type.is_array and not value.type.is_array:
            if now.type.holds_arrays or value.type.holds_arrays:
                raise Refused("lists of arrays are put together")
            self._keep(node.value, value)
            kind = now.type if now.type.what == "held" else OTHER
            if now.type.is_number and value.type.is_number:
                kind = replace(of_others(now.type, value.type, node.op), value=None)
            elif "tensor" in (now.type.what, value.type.what):
                kind = replace(value.type if value.type.what == "tensor" else now.type, rank=None)
            self.names[target.id] = kind
            return
        value = self.unheld(node.value, value)
        now = self.unheld(target, now)
        if isinstance(node.op, ast.MatMult):
            raise Refused("a matrix product is written into one of its factors")
        if not now.type.is_array or now.type.rank == 0:
            # A number is bound anew, where an array is written to.
            left, right, kind = computed(self, now, value, SIGNS[type(node.op)])
            text = right.text if isinstance(node.value, ATOMS) and right.atom else f"({right.text})"
            sign = SIGNS[type(node.op)]
            self.swaps[node] = self.source.swap(node, f"{target.id} = {left.closed} {sign} {text}")
            self.swaps.pop(node.value, None)
            self.names[target.id] = kind
            return
        unlike = value.type.is_array and value.type.dtype != now.type.dtype and value.type.rank != 0
        if unlike and now.type.rank is None and family(value.type.dtype) == family(now.type.dtype):
            raise Refused(f"whether `{target.id}` is an array or a number of NumPy's is not known")
        if now.type.rank is None and not now.type.least and self._is_picked(target):
            # A row is written to, and a number bound anew.
            raise RefusedUnlike(f"whether `{target.id}` is an array or a number of NumPy's is not known")
        self._keep(node.value, self._augmented(node, now, value, False))
        self.names[target.id] = replace(now.type, ascends=False)

    def _is_picked(self, target: ast.Name) -> bool:
        """Whether a name may have a number of NumPy's that an index or a loop picks: it is picked, and never picked from."""
        function = self.source.enclosing_function(target)
        own = [
            (each, self.source.parents[each])
            for each in (ast.walk(function) if function is not None else ())
            if isinstance(each, ast.Name) and each.id == target.id
        ]
        if any(isinstance(parent, ast.Subscript) and parent.value is each for each, parent in own):
            return False
        return any(
            isinstance(parent.value, ast.Subscript) if isinstance(parent, ast.Assign) else True
            for each, parent in own
            if isinstance(each.ctx, ast.Store) and not isinstance(parent, ast.AugAssign)
        )

    def _read_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            self._put(call)
            return
        name = self.draft.qualified(call.func)
        if name == "numpy.fill_diagonal" and self._is_diagonal_filled(call):
            return
        if name == "numpy.add.at":
            self._add_at(call)
            return
        if name.startswith(("numpy.", "torch.")):
            self._put(call)
            return
        owner = self.piece(call.func.value)
        if owner.type.what == "list" and call.func.attr in ("append", "insert"):
            self._append(call, owner)
        elif owner.type.what == "list" and call.func.attr == "reverse" and owner.type.grows:
            return
        elif owner.type.is_array:
            self._fill(call, owner)
        else:
            self._put(call)

    def _is_diagonal_filled(self, call: ast.Call) -> bool:
        if len(call.args) != 2 or call.keywords:
            return False
        owner, value = (self.piece(each) for each in call.args)
        if not owner.type.is_array:
            return False
        fits(owner, value)
        if not value.type.is_number:
            raise Refused("what a diagonal is filled with is not known to be a number")
        self.swaps[call] = self.source.swap(call, f"{owner.closed}.fill_diagonal_({value.text})")
        return True

    def _fill(self, call: ast.Call, owner: Piece) -> None:
        assert isinstance(call.func, ast.Attribute)
        if call.func.attr != "fill" or len(call.args) != 1:
            raise Refused(f"`.{call.func.attr}` changes the array in place")
        value = self.piece(call.args[0])
        fits(owner, value)
        self._note_written(call.func.value, owner, value)
        if not value.type.is_number:
            raise Refused("what an array is filled with is not known to be a number")
        self.swaps[call] = self.source.swap(call, f"{owner.closed}.fill_({value.text})")

    def _add_at(self, call: ast.Call) -> None:
        if len(call.args) != 3 or call.keywords:
            raise Refused("`np.add.at` is called in a way that has no counterpart in torch")
        owner, index, value = (self.argument(each) for each in call.args)
        if owner.type.is_array and index.type.is_array and family(index.type.dtype) == "float":
            raise RefusedIndex(f"`{index.text}`, which picks from an array, is not known to hold ints")
        if not owner.type.is_array or not index.type.is_array or index.type.dtype not in ("int32", "int64"):
            raise Refused("what is added where is not known to be arrays that were tensors")
        if not value.type.is_array:
            raise Refused("`np.add.at` adds one number in many places")
        value = cast(self, value, owner.type.dtype, owner.text)
        text = f"{owner.closed}.index_put_(({index.text},), {value.text}, accumulate=True)"
        self.swaps[call] = self.source.swap(call, text)

    def _read_Return(self, node: ast.Return) -> None:
        kind = NONE if node.value is None else self._put(node.value).type
        self.returned = kind if self.returned is None else merged(self.returned, kind)
        if self.returned.what == "unlike":
            self.returned = OTHER
            if kind.holds_arrays:
                raise RefusedUnlike("a function returns an array, or something else")

    def _read_If(self, node: ast.If) -> None:
        decides = self._put(node.test).type.holds_arrays
        if decides:
            self.decides.add(self.source.enclosing_function(node))
        self.decided += decides
        before = dict(self.names)
        self._block(node.body)
        after, self.names = self.names, before
        self._block(node.orelse)
        self.decided -= decides
        if _leaves(node.body):
            return
        if _leaves(node.orelse):
            self.names = after
            return
        for name in {*after} & {*self.names}:
            self._unheld_beside(after[name], self.names[name])
        self.names = _joined(after, self.names)

    def _unheld_beside(self, one: Typed, other: Typed) -> None:
        """Have torch make what NumPy holds on one way where there is an array that was a tensor on the other."""
        held, beside = (one, other) if one.what == "held" else (other, one)
        if held.what == "held" and beside.is_array and held.origins and not held.origins <= self.wanted:
            self.wanted |= held.origins
            raise Again

    def _read_For(self, node: ast.For) -> None:
        given = self._put(node.iter)
        before = dict(self.names)
        rounds = []
        for _ in range(2):
            self.bind(node.target, self.element(node.iter, given), node.iter)
            self._block(node.body)
            rounds.append(dict(self.swaps))
        # What is written must do for the first round as for the others.
        if rounds[0] != rounds[1]:
            raise RefusedRounds("what arrays are in the first round of a loop is not what they are in others")
        self._block(node.orelse)
        if given.type.value is not True:
            self.names = _behind_rounds(before, self.names)

    def _read_While(self, node: ast.While) -> None:
        before = dict(self.names)
        if self._put(node.test).type.holds_arrays:
            self.decides.add(self.source.enclosing_function(node))
        self._block(node.body)
        once = dict(self.swaps)
        self._put(node.test)
        self._block(node.body)
        if once != self.swaps:
            raise RefusedRounds("what arrays are in the first round of a loop is not what they are in others")
        self.names = _joined(before, self.names)

    def _read_With(self, node: ast.With) -> None:
        names = [
            self.draft.qualified(each.context_expr.func) if isinstance(each.context_expr, ast.Call) else ""
            for each in node.items
        ]
        if set(names) <= _SILENT and all(each.optional_vars is None for each in node.items):
            if node not in self.silenced:
                if not self.source.begins_line(node) or node.body[0].lineno == node.lineno:
                    raise Refused("`np.errstate` shares its line with what it is around")
                if any(one in self.silenced for one in self.source.ancestors(node)):
                    raise Refused("`np.errstate` stands in another one")
                self.silenced.append(node)
        elif _SILENT & set(names):
            self._silence(node, names)
        else:
            for each in node.items:
                self._put(each.context_expr)
        self._block(node.body)

    def _silence(self, node: ast.With, names: list[str]) -> None:
        """Take what only silences NumPy from among the contexts of `node`."""
        if any(each.optional_vars is not None for each in node.items) or self._behind_with(node) == "(":
            raise Refused("`np.errstate` stands among contexts that have names")
        kept = [each for each, name in zip(node.items, names, strict=True) if name not in _SILENT]
        for each in kept:
            self.piece(each.context_expr)
        start, end = node.items[0].context_expr, node.items[-1].context_expr
        text = ", ".join(self.source.of(each.context_expr) for each in kept)
        self.swaps[start] = Replacement(self.source.start(start), self.source.end(end), text)

    def _behind_with(self, node: ast.With) -> str:
        first = self.source.start(node.items[0].context_expr)
        return self.source.text[self.source.start(node) + len("with") : first].strip()

    def _read_Assert(self, node: ast.Assert) -> None:
        self._put(node.test)
        if node.msg is not None:
            self._put(node.msg)


def _names(node: ast.AST) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise))


def _behind_rounds(before: dict[str, Typed], after: dict[str, Typed]) -> dict[str, Typed]:
    """What names are behind a loop: a number that rounds add arrays to is what they make of it."""
    found = _joined(before, after)
    for name, kind in before.items():
        if kind.is_number and after[name].is_array and after[name].rank == 0:
            found[name] = after[name]
    return found


def _joined(one: dict[str, Typed], other: dict[str, Typed]) -> dict[str, Typed]:
    """What names are that are bound by one way or the other."""
    found = {}
    for name in {*one, *other}:
        if name in one and name in other:
            found[name] = merged(one[name], other[name])
        else:
            # Read behind, it is what the way that binds it made it: on the other there is nothing.
            found[name] = one.get(name) or other[name]
    return found
