"""Arrays of NumPy that are written to, whole or in part: `a[i] = b`, `a += b`, `a.fill(0)`."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.arrays.array_indexing import fits, index_of
from exportlens.rewriting.arrays.array_lists import Lists
from exportlens.rewriting.arrays.array_numbers import of_others
from exportlens.rewriting.arrays.array_operators import beside_tensor, computed
from exportlens.rewriting.arrays.array_pieces import Piece, cast, is_made_here, lifted
from exportlens.rewriting.arrays.array_reading import ATOMS, SIGNS
from exportlens.rewriting.arrays.array_types import (
    COMPLEXES,
    FLOATS,
    OTHER,
    RefusedIndex,
    RefusedUnlike,
    Typed,
    array,
    family,
)
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Replacement


class Writes(Lists):
    """Reads what writes to arrays, and sees to it that it is converted and cut off as NumPy does it."""

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


def _names(node: ast.AST) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]
