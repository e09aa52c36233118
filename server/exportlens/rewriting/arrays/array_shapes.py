"""Functions of NumPy that move, repeat, put together or sort the elements of arrays, as torch's."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.arrays.array_pieces import Given, Handler, Piece, cast, listed_settled, python_dtype
from exportlens.rewriting.arrays.array_types import (
    RefusedIndex,
    RefusedUnlike,
    Typed,
    array,
    family,
    promoted,
)
from exportlens.rewriting.code.draft import Refused


def _is_axis(call: Given, name: str) -> int | None:
    value = call[name].type.value if name in call.given else None
    return value if isinstance(value, int) else None


def reshaped(call: Given) -> Piece:
    one = call.array("a")
    kind = call["shape"].type
    if kind.what in ("tuple", "list"):
        numbers, rank = all(each.what == "number" for each in kind.items), len(kind.items)
    else:
        numbers, rank = kind.what in ("number", "shape"), 1 if kind.what == "number" else -1
    if not numbers:
        raise Refused(f"which shape `{call['shape'].text}` is is not known")
    text = call["shape"].text
    if kind.what == "number" and not call.is_method:
        text = f"({text},)"
    return call.out("reshape", one, [text], one.type.dtype, rank if rank >= 0 else kind.rank)


def flattened(call: Given) -> Piece:
    one = call.array("a")
    made = call.out("flatten" if call.is_method else "ravel", one, [], one.type.dtype, 1)
    copied = call.name == "flatten" and call.must_copy
    return Piece(f"{made.text}.clone()", made.type) if copied else made


def transposed(call: Given) -> Piece:
    one = call.array("a")
    rank = one.type.rank
    if "axes" in call.given:
        axes = call.axes("axes")
        if axes is None or call["axes"].type.what == "number":
            raise Refused("not all dimensions that are moved are written out")
        return Piece(f"{one.closed}.permute({', '.join(map(str, axes))})", array(one.type.dtype, len(axes)))
    if rank is not None and rank < 2:
        return one
    if rank is None and one.text.isidentifier():
        dims = f"tuple(reversed(range({one.text}.dim())))"
        return Piece(f"{call.torch}.permute({one.text}, {dims})", one.type)
    return Piece(f"{one.closed}.T", one.type)


def swapped(call: Given) -> Piece:
    one = call.array("a")
    return call.out(
        "swapaxes", one, [call.integer("first"), call.integer("second")], one.type.dtype, one.type.rank
    )


def moved(call: Given) -> Piece:
    one = call.array("a")
    call.axes("source")
    call.axes("target")
    return call.out("movedim", one, [call["source"].text, call["target"].text], one.type.dtype, one.type.rank)


def expanded(call: Given) -> Piece:
    one = call.array("a")
    rank = None if one.type.rank is None else one.type.rank + 1
    return call.out("unsqueeze", one, [call.integer("axis")], one.type.dtype, rank)


def squeezed(call: Given) -> Piece:
    one = call.array("a")
    if not call.has("axis"):
        return call.out("squeeze", one, [], one.type.dtype)
    axes = call.axes()
    rank = None if axes is None or one.type.rank is None else one.type.rank - len(axes)
    return call.out("squeeze", one, [call["axis"].text], one.type.dtype, rank)


def flipped(call: Given) -> Piece:
    one = call.array("a")
    if call.must_copy:
        raise RefusedUnlike("NumPy flips without copying, and an array or a tensor is written to")
    if call.name in ("fliplr", "flipud"):
        return call.out(call.name, one, [], one.type.dtype, one.type.rank)
    if not call.has("axis"):
        if one.type.rank is None:
            raise Refused("not all dimensions that are flipped are written out")
        dims = ", ".join(map(str, range(one.type.rank)))
        return call.out("flip", one, [f"({dims},)"], one.type.dtype, one.type.rank)
    call.axes()
    text = call["axis"].text
    dims = f"({text},)" if call["axis"].type.what == "number" else text
    return call.out("flip", one, [dims], one.type.dtype, one.type.rank)


def rolled(call: Given) -> Piece:
    one = call.array("a")
    more = [call.integer("shift")]
    if call.has("axis"):
        more.append(f"dims={call.integer('axis')}")
    return call.out("roll", one, more, one.type.dtype, one.type.rank)


def split(call: Given) -> Piece:
    """`np.split` and `np.array_split`, into so many parts or at indices that are written out."""
    one = call.array("a")
    parts = call["parts"].type
    axis = call.integer("axis") if "axis" in call.given else "0"
    count = parts.value if parts.what == "number" else len(parts.items) + 1
    call.axes("parts")
    part = array(one.type.dtype, one.type.rank)
    kind = Typed("list", items=(part,), grows=True)
    if isinstance(count, int):
        kind = Typed("tuple", items=(part,) * count)
    return Piece(f"{call.torch}.tensor_split({one.text}, {call['parts'].text}, dim={axis})", kind)


def tiled(call: Given) -> Piece:
    one = call.array("a")
    axes = call["reps"].type
    call.axes("reps")
    text = f"({call['reps'].text},)" if axes.what == "number" else call["reps"].text
    size = 1 if axes.what == "number" else len(axes.items)
    rank = None if one.type.rank is None else max(one.type.rank, size)
    return Piece(f"{call.torch}.tile({one.text}, {text})", array(one.type.dtype, rank))


def repeated(call: Given) -> Piece:
    one = call.array("a")
    times = call["times"]
    if times.type.is_array:
        raise Refused("how often each element is repeated is known from data alone")
    more = [call.integer("times")]
    rank: int | None = 1
    if call.has("axis"):
        more.append(f"dim={call.integer('axis')}")
        rank = one.type.rank
    return call.out("repeat_interleave", one, more, one.type.dtype, rank)


_TOGETHER = {
    "concatenate": "cat",
    "stack": "stack",
    "vstack": "vstack",
    "row_stack": "vstack",
    "hstack": "hstack",
    "dstack": "dstack",
    "column_stack": "column_stack",
}


def together(call: Given) -> Piece:
    pieces = call.items("arrays")
    more = []
    if call.has("axis"):
        more = [f"dim={call.integer('axis')}"]
    function = f"{call.torch}.{_TOGETHER[call.name]}"
    if pieces is None:
        kind = call["arrays"].type
        if (
            kind.what not in ("list", "tuple")
            or not kind.items
            or not all(each.is_array for each in kind.items)
        ):
            raise Refused("not all that NumPy is given together is an array that was a tensor")
        if len({each.dtype for each in kind.items}) > 1:
            raise Refused("arrays of several dtypes are put together")
        if any(each.or_number for each in kind.items):
            raise Refused(
                f"`{call['arrays'].text}` may hold numbers of Python's, which torch does not put together"
            )
        rank = _rank_together(call.name, [each.rank for each in kind.items])
        return Piece(
            f"{function}({', '.join([call['arrays'].text, *more])})", array(kind.items[0].dtype, rank)
        )
    if not all(each.type.is_array for each in pieces):
        raise Refused("not all that NumPy is given together is an array that was a tensor")
    dtype = pieces[0].type.dtype
    for each in pieces[1:]:
        dtype = promoted(dtype, each.type.dtype)
    rank = _rank_together(call.name, [each.type.rank for each in pieces])
    text = _list(call, "arrays", [cast(call.scope, each, dtype).text for each in pieces])
    return Piece(f"{function}({', '.join([text, *more])})", array(dtype, rank))


def _list(call: Given, name: str, texts: list[str]) -> str:
    if isinstance(call.argument_node(name), ast.Tuple):
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    return f"[{', '.join(texts)}]"


def _rank_together(name: str, ranks: list[int | None]) -> int | None:
    first = ranks[0]
    if first is None or set(ranks) != {first}:
        return None
    if name == "stack":
        return first + 1
    least = {"vstack": 2, "row_stack": 2, "column_stack": 2, "dstack": 3, "hstack": 1}.get(name, 1)
    return max(first, least)


def listed(call: Given) -> Piece:
    """`np.array([a.mean(), 1.0])`, of lists in lists as well, and the copy that `np.array(a)` is."""
    one = call["a"]
    wanted = call.dtype()[0] if "dtype" in call.given else None
    if one.type.is_array:
        return _copied(call, one, wanted)
    written = isinstance(call.argument_node("a"), (ast.List, ast.Tuple))
    if one.type.grows or (one.type.what == "tuple" and one.type.holds_arrays and not written):
        kinds = one.type.items
        if not kinds or not all(each.is_array for each in kinds):
            raise Refused("not all that NumPy is given together is an array that was a tensor")
        if any(each.or_number for each in kinds):
            settled, dtype = listed_settled(call.scope, one, wanted)
            return Piece(f"{call.torch}.stack({settled})", array(dtype, 1))
        if len({(each.dtype, each.rank) for each in kinds}) > 1:
            raise Refused("arrays of several dtypes are put together")
        made = Piece(
            f"{call.torch}.stack({one.text})",
            array(kinds[0].dtype, None if kinds[0].rank is None else kinds[0].rank + 1),
        )
        return made if wanted is None else cast(call.scope, made, wanted)
    node = call.argument_node("a")
    assert node is not None
    leaves = _leaves(call, node)
    dtype = wanted or python_dtype(leaves)
    if isinstance(node, (ast.List, ast.Tuple)) and all(each.type.what == "number" for each in leaves):
        rank = _depth(node)
        if rank is None:
            raise Refused("a list holds lists of several lengths or depths, as far as is known")
        text = f"{call.torch}.tensor({one.text}, dtype={call.torch}.{dtype})"
        return Piece(text, replace(array(dtype, rank), ascends=one.type.ascends))
    return _stacked(call, node, dtype)


def _depth(node: ast.expr) -> int | None:
    """How deep lists are nested that are written there; None where that is not the same everywhere."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return 0
    depths = {(_depth(each), len(getattr(each, "elts", ()))) for each in node.elts}
    depth = depths.pop()[0] if len(depths) == 1 else None
    return None if depth is None else depth + 1


def _leaves(call: Given, node: ast.expr) -> list[Piece]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return [each for one in node.elts for each in _leaves(call, one)]
    return [call.scope.argument(node)]


def _stacked(call: Given, node: ast.expr, dtype: str) -> Piece:
    if not isinstance(node, (ast.List, ast.Tuple)):
        piece = call.scope.argument(node)
        if piece.type.is_array:
            return cast(call.scope, piece, dtype)
        return Piece(f"{call.torch}.tensor({piece.text}, dtype={call.torch}.{dtype})", array(dtype, 0))
    parts = [_stacked(call, each, dtype) for each in node.elts]
    # NumPy takes arrays of one shape alone: those that are not known have as many dimensions as the others.
    ranks = {each.type.rank for each in parts}
    ranks = ranks - {None} or ranks
    if len(ranks) != 1:
        raise Refused("a list holds arrays of other shapes than one another, as far as is known")
    rank = ranks.pop()
    text = f"{call.torch}.stack([{', '.join(each.text for each in parts)}])"
    return Piece(text, array(dtype, None if rank is None else rank + 1))


def _copied(call: Given, one: Piece, wanted: str | None) -> Piece:
    copies = call.name == "array" and call.must_copy
    if wanted is not None and wanted != one.type.dtype:
        made = cast(call.scope, one, wanted)
        return Piece(f"{made.text[:-1]}, copy=True)", made.type) if copies and "(t" in made.text else made
    tail = {"ascontiguousarray": ".contiguous()"}.get(call.name, ".clone()" if copies else "")
    return Piece(f"{one.closed}{tail}", one.type) if tail else one


def sorted_(call: Given) -> Piece:
    one = call.array("a")
    if call.is_method and call.name == "sort":
        raise Refused("`.sort()` sorts the array in place")
    if call["axis"].type.what == "none" if "axis" in call.given else False:
        raise Refused("all elements are sorted as one row")
    axis = call.integer("axis") if "axis" in call.given else "-1"
    if family(one.type.dtype) == "complex":
        raise Refused("complex numbers have no order in torch")
    if call.name == "argsort":
        return call.out("argsort", one, [f"dim={axis}", "stable=True"], "int64", one.type.rank)
    return Piece(f"{call.torch}.sort({one.text}, dim={axis}).values", one.type)


def along(call: Given) -> Piece:
    one, index = call.array("a"), call.array("index")
    if not call.has("axis"):
        raise Refused("elements are taken of all in a row")
    return Piece(
        f"{call.torch}.take_along_dim({one.text}, {index.text}, dim={call.integer('axis')})",
        array(one.type.dtype, one.type.rank),
    )


def taken(call: Given) -> Piece:
    """`np.take(a, index, axis=1)` as `a[:, index]`, which takes indices from the end as well."""
    one, index = call.array("a"), call.array("index")
    axis = _is_axis(call, "axis")
    if axis is None or not -1 <= axis < 5 or family(index.type.dtype) != "int":
        raise Refused("along which axis elements are taken is not written out")
    before = "..., " if axis == -1 else ":, " * axis
    rank = None if one.type.rank is None or index.type.rank is None else one.type.rank - 1 + index.type.rank
    return Piece(f"{one.closed}[{before}{index.text}]", array(one.type.dtype, rank))


def differences(call: Given) -> Piece:
    one = call.array("a")
    more = [f"n={call.integer('n')}"] if "n" in call.given else []
    more += [f"dim={call.integer('axis')}"] if "axis" in call.given else []
    return call.out("diff", one, more, one.type.dtype, one.type.rank)


def triangle(call: Given) -> Piece:
    """`tril` and `triu`, and `diag`, `diagonal` and `trace`."""
    one = call.array("a")
    more = [call.integer("k")] if "k" in call.given else []
    rank = one.type.rank
    if call.name == "trace" and (more or rank != 2):
        raise Refused("whether what is traced is one matrix is not known")
    if call.name == "diag" and rank == 2:
        # A view, as NumPy's is.
        return call.out("diagonal", one, more, one.type.dtype, 1)
    if call.name in ("diagonal", "diag"):
        if call.scope.copies and not (call.name == "diag" and rank == 1):
            raise RefusedUnlike("NumPy's diagonal is of the same memory, and an array is written to")
        rank = {1: 2, 2: 1}.get(rank or 0) if call.name == "diag" else None if rank is None else rank - 1
    if call.name == "trace":
        rank = 0
    dtype = "int64" if call.name == "trace" and family(one.type.dtype) == "int" else one.type.dtype
    return call.out(call.name, one, more, dtype, rank)


def padded(call: Given) -> Piece:
    one = call.array("a")
    rank = one.type.rank
    mode = call["mode"].type.value if "mode" in call.given else "constant"
    widths = _widths(call, rank)
    rank = len(widths)
    flat = ", ".join(f"{before}, {behind}" for before, behind in reversed(widths))
    pad = f"{call.torch}.nn.functional.pad"
    if mode == "constant":
        if call.has("constant_values") and call["constant_values"].type.what != "number":
            raise Refused("what is padded with is not one number")
        value = f", value={call['constant_values'].text}" if call.has("constant_values") else ""
        return Piece(f"{pad}({one.text}, ({flat}){value})", array(one.type.dtype, rank))
    name = {"edge": "replicate", "reflect": "reflect"}.get(str(mode))
    padded_ones = [index for index, each in enumerate(widths) if each != ("0", "0")]
    first = padded_ones[0] if padded_ones else len(widths) - 1
    size = len(widths) - first
    if name is None or "constant_values" in call.given or family(one.type.dtype) != "float":
        raise Refused(f"torch does not pad such an array by `{mode}`")
    flat = ", ".join(f"{before}, {behind}" for before, behind in reversed(widths[first:]))
    if rank == size <= 2:
        return Piece(f'{pad}({one.closed}[None], ({flat}), mode="{name}")[0]', array(one.type.dtype, rank))
    if size > 2 or rank not in (size + 1, size + 2):
        raise Refused(f"torch does not pad so many dimensions by `{mode}`")
    return Piece(f'{pad}({one.text}, ({flat}), mode="{name}")', one.type)


def _widths(call: Given, rank: int | None) -> list[tuple[str, str]]:
    """How much is put before and behind each dimension."""
    width = call["width"]
    if width.type.what == "number":
        if rank is None:
            raise Refused("how many dimensions are padded is not known")
        return [(width.text, width.text)] * rank
    pairs = call.items("width")
    nodes = call.argument_node("width")
    if pairs is None or not isinstance(nodes, (ast.Tuple, ast.List)):
        raise Refused(f"how much `{width.text}` pads is not written out")
    if len(pairs) == 2 and all(each.type.what == "number" for each in pairs):
        if rank is None:
            raise Refused("how many dimensions are padded is not known")
        return [(pairs[0].text, pairs[1].text)] * rank
    found = []
    for each in nodes.elts:
        if not isinstance(each, (ast.Tuple, ast.List)) or len(each.elts) != 2:
            raise Refused(f"how much `{width.text}` pads is not written out")
        both = [call.scope.argument(one) for one in each.elts]
        if not all(one.type.what == "number" for one in both):
            raise Refused(f"how much `{width.text}` pads is not written out")
        found.append((both[0].text, both[1].text))
    if len(found) == 1 and rank != 1:
        raise Refused("how many dimensions are padded is not known")
    return found


def spread_out(call: Given) -> Piece:
    one = call.array("a")
    kind = call["shape"].type
    if kind.what not in ("tuple", "shape") or not all(each.what == "number" for each in kind.items):
        raise Refused(f"which shape `{call['shape'].text}` is is not known")
    # Where NumPy's is written to, it raises: it never needs to be a copy.
    rank = len(kind.items) if kind.what == "tuple" else kind.rank
    return call.out("broadcast_to", one, [call["shape"].text], one.type.dtype, rank)


def unraveled(call: Given) -> Piece:
    """`np.unravel_index(index, shape)`."""
    one = call.array("a")
    if family(one.type.dtype) != "int":
        raise RefusedIndex(f"`{one.text}`, which counts items, is not known to hold ints")
    kind = call["shape"].type
    rank = kind.rank if kind.what == "shape" else len(kind.items)
    if kind.what not in ("tuple", "shape") or not all(each.what == "number" for each in kind.items):
        raise Refused(f"which shape `{call['shape'].text}` is is not known")
    text = f"{call.torch}.unravel_index({one.text}, {call['shape'].text})"
    found = Typed("tuple", items=(array("int64", one.type.rank),) * (rank or 1), grows=not rank)
    return Piece(text, found)


def at_least(call: Given) -> Piece:
    one = call.array("a")
    least = int(call.name[-2])
    rank = None if one.type.rank is None else max(one.type.rank, least)
    return call.out(call.name, one, [], one.type.dtype, rank)


def grid(call: Given) -> Piece:
    """`np.meshgrid(a, b)`, which counts columns first."""
    one, other = call.array("a"), call.array("b")
    if one.type.dtype != other.type.dtype or one.type.rank != 1 or other.type.rank != 1:
        raise Refused("torch makes grids of rows of one dtype")
    indexing = call["indexing"].text if "indexing" in call.given else '"xy"'
    kind = Typed("tuple", items=(array(one.type.dtype, 2), array(one.type.dtype, 2)))
    return Piece(f"{call.torch}.meshgrid({one.text}, {other.text}, indexing={indexing})", kind)


def converted(call: Given) -> Piece:
    """`.astype(np.float32)`, which always copies."""
    one = call.array("a")
    dtype, text = call.dtype()
    if family(one.type.dtype) == "complex" and family(dtype) != "complex":
        raise RefusedUnlike("NumPy drops the imaginary parts")
    copy = ", copy=True" if call.must_copy and call.flag("copy") != "False" else ""
    return Piece(f"{one.closed}.to({text}{copy})", array(dtype, one.type.rank))


def cloned(call: Given) -> Piece:
    one = call.array("a")
    return Piece(f"{one.closed}.clone()", one.type)


def functions() -> dict[str, tuple[Handler, str, int]]:
    table: dict[str, tuple[Handler, str, int]] = {
        "reshape": (reshaped, "a shape/newshape", 2),
        "ravel": (flattened, "a", 1),
        "transpose": (transposed, "a axes", 1),
        "permute_dims": (transposed, "a axes", 1),
        "swapaxes": (swapped, "a first/axis1 second/axis2", 3),
        "moveaxis": (moved, "a source target/destination", 3),
        "expand_dims": (expanded, "a axis", 2),
        "squeeze": (squeezed, "a axis", 1),
        "roll": (rolled, "a shift axis", 2),
        "split": (split, "a parts/indices_or_sections axis", 2),
        "array_split": (split, "a parts/indices_or_sections axis", 2),
        "tile": (tiled, "a reps", 2),
        "repeat": (repeated, "a times/repeats axis", 2),
        "sort": (sorted_, "a axis kind", 1),
        "argsort": (sorted_, "a axis kind", 1),
        "take_along_axis": (along, "a index/indices axis", 3),
        "take": (taken, "a index/indices axis", 3),
        "diff": (differences, "a n axis", 1),
        "pad": (padded, "a width/pad_width mode constant_values", 2),
        "broadcast_to": (spread_out, "a shape", 2),
        "unravel_index": (unraveled, "a/indices shape", 2),
        "meshgrid": (grid, "a b indexing", 2),
        "copy": (cloned, "a", 1),
    }
    for name in ("flip", "fliplr", "flipud"):
        table[name] = (flipped, "a axis", 1)
    for name in _TOGETHER:
        table[name] = (
            together,
            "arrays/tup axis" if name in ("concatenate", "stack") else "arrays/tup",
            1,
        )
    for name in ("array", "asarray", "ascontiguousarray", "asanyarray"):
        table[name] = (listed, "a dtype", 1)
    for name in ("tril", "triu", "diag", "diagonal", "trace"):
        table[name] = (triangle, "a k/offset", 1)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        table[name] = (at_least, "a", 1)
    return table


# Methods of arrays that are no functions of NumPy's of the same name, or take other arguments.
METHODS: dict[str, tuple[Handler, str, int]] = {
    "astype": (converted, "a dtype copy", 2),
    "flatten": (flattened, "a", 1),
}
