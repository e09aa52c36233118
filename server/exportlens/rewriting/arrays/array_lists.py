"""Lists that arrays of NumPy are put into, one after the other."""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_calls import Calls
from exportlens.rewriting.arrays.array_pieces import Piece, cast
from exportlens.rewriting.arrays.array_reading import Again
from exportlens.rewriting.arrays.array_types import OTHER, Typed, family, merged, promoted
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Replacement


class Lists(Calls):
    """Keeps what is replaced in statements, and reads those that put something into a list."""

    swaps: dict[ast.AST, Replacement]

    def _put(self, node: ast.expr) -> Piece:
        """Read `node`, and keep what is to stand in its place."""
        piece = self.piece(node)
        self._keep(node, piece)
        return piece

    def _keep(self, node: ast.expr, piece: Piece) -> None:
        self.swaps.pop(node, None)
        swap = self.swapped(node, piece)
        if swap is not None:
            self.swaps[node] = swap

    def _append(self, call: ast.Call, owner: Piece) -> None:
        assert isinstance(call.func, ast.Attribute)
        value = (
            self.piece(call.args[-1]) if len(call.args) == (2 if call.func.attr == "insert" else 1) else None
        )
        if call.func.attr == "insert" and (value is None or not self.piece(call.args[0]).type.is_number):
            value = None
        if value is not None and value.type.what == "held" and value.type.origins:
            kept = owner.type.items[0] if owner.type.items else None
            if isinstance(call.func.value, ast.Name) and (
                kept is None or (owner.type.grows and kept == value.type)
            ):
                # Whether what is put beside it is an array that was a tensor is seen later.
                self._keep(call.args[-1], value)
                self.names[call.func.value.id] = Typed("list", items=(value.type,), grows=True)
                return
            if kept is not None and kept.is_array:
                value = self.unheld(call.args[-1], value)
        elif value is not None and value.type.is_array:
            self._want(owner.type.items)
        if value is None or not value.type.holds_arrays:
            if owner.type.holds_arrays:
                raise Refused("not all in the list is an array that was a tensor")
            self._put(call)
            if isinstance(call.func.value, ast.Name):
                self.names[call.func.value.id] = OTHER
            return
        if value.type.or_number:
            raise Refused(f"`{value.text}` may be a number of Python's, which no list of arrays holds")
        alike = owner.type.grows or all(each.is_array for each in owner.type.items)
        if not isinstance(call.func.value, ast.Name) or not alike:
            raise Refused("the array is put into a list that something else may be in")
        begun = owner.type.items[0] if owner.type.items and self._is_begun(call.func.value) else None
        ints = begun is not None and family(begun.dtype) == family(value.type.dtype) == "int"
        if begun is not None and ints and promoted(begun.dtype, value.type.dtype) == begun.dtype:
            # Put together, they are of the dtype of the first.
            value = cast(self, value, begun.dtype)
        self._keep(call.args[-1], value)
        kind = value.type
        for each in owner.type.items:
            kind = merged(each, kind)
        self.names[call.func.value.id] = Typed("list", items=(kind,), grows=True)

    def _want(self, items: tuple[Typed, ...]) -> None:
        """Have torch make what NumPy makes, where it is in a list beside an array that was a tensor."""
        for each in items:
            if each.what == "held" and each.origins and not each.origins <= self.wanted:
                self.wanted |= each.origins
                raise Again

    def _is_begun(self, name: ast.Name) -> bool:
        """Whether a list is bound once, with something in it."""
        given = given_to_name(name.id, self.source.enclosing_function(name))
        return len(given) == 1 and isinstance(given[0], ast.List) and bool(given[0].elts)
