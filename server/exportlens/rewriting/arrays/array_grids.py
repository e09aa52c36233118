"""Grids of places that NumPy makes of a shape, `np.meshgrid(*[np.arange(n) for n in a.shape], indexing="ij")`, as torch's."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from exportlens.rewriting.arrays.array_pieces import Piece
from exportlens.rewriting.arrays.array_types import Typed, array

if TYPE_CHECKING:
    from exportlens.rewriting.arrays.array_reading import Reading


def grid_of_shape(reading: Reading, node: ast.Call) -> Piece | None:
    """What `node`, a call of `np.meshgrid`, gives; None where it is given anything else than one range for each size of a shape."""
    shape = _shape(reading, node)
    indexing = {key.arg: key.value for key in node.keywords}
    order = indexing.pop("indexing", None)
    if shape is None or indexing or not (order is None or isinstance(order, ast.Constant)):
        return None
    parent = reading.source.parents.get(node)
    gathered = isinstance(parent, ast.Call) and reading.draft.qualified(parent.func).startswith("numpy.")
    if reading.copies and not gathered:
        # torch's are views, which nothing can be written to.
        return None
    given = reading.piece(shape)
    if given.type.what != "shape":
        return None
    if node not in reading.wanted:
        return Piece(reading.source.of(node), Typed("held", origins=frozenset({node})))
    text = f"{reading.torch}.meshgrid(*map({reading.torch}.arange, {given.text}), indexing="
    text += f"{reading.source.of(order) if order is not None else repr('xy')})"
    return Piece(
        text.replace("'xy'", '"xy"'), Typed("tuple", items=(array("int64", given.type.rank),), grows=True)
    )


def _shape(reading: Reading, node: ast.Call) -> ast.expr | None:
    """The shape in `*[np.arange(n) for n in shape]`, in a generator, or in `*map(np.arange, shape)`."""
    given = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Starred) else None
    if isinstance(given, ast.Call):
        counted = len(given.args) == 2 and reading.draft.qualified(given.args[0]) == "numpy.arange"
        is_map = isinstance(given.func, ast.Name) and given.func.id == "map" and not given.keywords
        return given.args[1] if counted and is_map else None
    if not isinstance(given, (ast.ListComp, ast.GeneratorExp)) or len(given.generators) != 1:
        return None
    loop, each = given.generators[0], given.elt
    plain = isinstance(loop.target, ast.Name) and not loop.ifs and not loop.is_async
    if not plain or not isinstance(each, ast.Call) or reading.draft.qualified(each.func) != "numpy.arange":
        return None
    counts = (
        len(each.args) == 1 and not each.keywords and ast.dump(each.args[0]) == ast.dump(_read(loop.target))
    )
    return loop.iter if counts else None


def _read(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
