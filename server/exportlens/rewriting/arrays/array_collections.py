"""Tuples, lists, dicts and comprehensions that arrays of NumPy are in, and the names that they are unpacked to."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace

from exportlens.rewriting.arrays.array_pieces import Piece
from exportlens.rewriting.arrays.array_reading import Reading
from exportlens.rewriting.arrays.array_types import OTHER, SIZE, Typed, array, merged
from exportlens.rewriting.code.draft import Refused


class Collections(Reading):
    """Reads what holds several arrays, and what goes through them."""

    def _of_Tuple(self, node: ast.Tuple) -> Piece:
        return self._of_items(node, "tuple")

    def _of_List(self, node: ast.List) -> Piece:
        return self._of_items(node, "list")

    def _of_items(self, node: ast.Tuple | ast.List, what: str) -> Piece:
        if any(isinstance(each, (ast.Starred, ast.Slice)) for each in node.elts):
            return self._generic(node)
        parts = [(each, self.piece(each)) for each in node.elts]
        values = [piece.type.value for _, piece in parts]
        numbers = [each for each in values if isinstance(each, (int, float))]
        ascends = 0 < len(numbers) == len(values) and all(a < b for a, b in itertools.pairwise(numbers))
        kind = Typed(what, items=tuple(piece.type for _, piece in parts), ascends=ascends)
        if what == "list" and not parts:
            kind = replace(kind, grows=True)
        return self.splice(node, parts, kind)

    def _of_Dict(self, node: ast.Dict) -> Piece:
        keys = [each.value for each in node.keys if isinstance(each, ast.Constant)]
        if len(keys) != len(node.values):
            return self._generic(node)
        parts = [(each, self.piece(each)) for each in node.values]
        kind = Typed("dict", items=tuple(piece.type for _, piece in parts), value=tuple(keys))
        return self.splice(node, parts, kind)

    def _of_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Piece:
        loop = node.generators[0]
        if len(node.generators) != 1 or loop.is_async:
            return self._generic(node)
        before = dict(self.names)
        given = self.piece(loop.iter)
        several = given.type.what in ("tuple", "list") and given.type.items and not given.type.grows
        elements = list(given.type.items) if several else [self.element(loop.iter, given)]
        found: list[list[tuple[ast.expr, Piece]]] = []
        for each in elements:
            self.bind(loop.target, replace(each, value=None) if len(elements) > 1 else each, loop.iter)
            found.append([(one, self.piece(one)) for one in [*loop.ifs, node.elt]])
            self.names = dict(before)
        if any([one[1].text for one in each] != [one[1].text for one in found[0]] for each in found):
            raise Refused(f"the arrays that `{self.source.of(loop.iter)}` goes through are of several dtypes")
        parts = [(loop.iter, given), *found[0]]
        kind = parts[-1][1].type
        for one in found[1:]:
            kind = merged(kind, one[-1][1].type)
        if any(piece.type.holds_arrays for _, piece in parts[1:-1]):
            raise Refused("which arrays a list holds is known from data alone")
        if kind.holds_arrays and isinstance(node, ast.GeneratorExp):
            raise Refused("arrays are generated one by one")
        made = Typed("list", items=(kind,), grows=True) if kind.holds_arrays else OTHER
        if kind.what == "number":
            made = OTHER
        return self.splice(node, parts, made)

    def _of_GeneratorExp(self, node: ast.GeneratorExp) -> Piece:
        return self._of_ListComp(node)

    def element(self, node: ast.expr, given: Piece) -> Typed:
        """What a loop over `given` goes through."""
        kind = given.type
        if kind.is_array:
            return replace(kind, rank=None if kind.rank is None else kind.rank - 1, ascends=False)
        if kind.what == "held":
            return replace(kind, rank=None, ascends=False)
        if kind.what == "list" and kind.grows:
            return kind.items[0] if kind.items else OTHER
        if kind.what in ("tuple", "list") and kind.items:
            found = kind.items[0]
            for each in kind.items[1:]:
                found = merged(found, each)
            return replace(found, value=None)
        return SIZE if kind.what == "shape" else OTHER

    def bind(self, target: ast.expr, kind: Typed, value: ast.expr) -> None:
        """Let `target` be of `kind`."""
        if isinstance(target, ast.Name):
            self.names[target.id] = kind
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            if kind.holds_arrays:
                raise Refused("an array is kept where it is not followed")
            return
        names = target.elts
        if kind.what in ("tuple", "list") and len(kind.items) == len(names) and not kind.grows:
            for one, item in zip(names, kind.items, strict=True):
                self.bind(one, item, value)
            return
        if kind.holds_arrays and not kind.is_array and not (kind.what == "tuple" and kind.grows):
            raise Refused(f"what `{self.source.of(value)}` is unpacked to is not known")
        rest = SIZE if kind.what == "shape" else replace(kind, rank=None, items=(), ascends=False)
        if kind.is_array and kind.rank is not None:
            rest = array(kind.dtype, kind.rank - 1)
        several = kind.what == "tuple" and kind.grows
        if several:
            rest = kind.items[0]
        for one in names:
            if isinstance(one, ast.Starred) and kind.is_array:
                raise Refused(f"what `{self.source.of(value)}` is unpacked to is not known")
            self.bind(
                one.value if isinstance(one, ast.Starred) else one,
                OTHER
                if isinstance(one, ast.Starred) or (kind.what in ("tuple", "list", "dtype") and not several)
                else rest,
                value,
            )
