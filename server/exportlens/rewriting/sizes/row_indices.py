"""Indices that are items of tensors of which nothing tells how many dimensions they have: most likely single numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.points import is_part, unpacks_point
from exportlens.inference.values import Const, Sequence, Shape, Static, Tensor, TensorScalar, Value, options
from exportlens.rewriting.calls.one_device import index_beside
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.sizes.number_indices import is_int
from exportlens.rewriting.sizes.untold_indices import untold_kind
from exportlens.source.walking import walk

# What gives the items of a tensor in another dtype or place.
_KEEPING = frozenset({"long", "int", "to", "cpu", "detach", "clone", "contiguous", "flatten"})


def single_items(place: ItemRead | ItemWrite) -> dict[int, ast.expr]:
    """Which of the indices at `place`, and where they stand among them, are items of tensors of unknown rank, and ints as far as
    the code around tells.

    Numbers of one row that a loop unpacks, `for source, target in edges`, cells, `edges[e, 1]`, and the parts of one place,
    `y, x = click`, are taken for such; of ints also cells at counters, `edges[e][k]`, and items that are made a number of Python
    elsewhere, `int(order[i])`; what a loop goes through only where it says where to write, as a batch of index tensors is
    read in the same way, and, unless it is certainly of ints, where to add, as masks are gone through as well. Where what is read is one
    number, `x[row[0], row[1]].item()`, its indices are such, too.
    """
    function = place.site.function
    if function is None or not isinstance(place.node, ast.Subscript):
        return {}
    found = {}
    for index, (node, value) in enumerate(_parts(place)):
        # What the value tells is asked first: the text around is gone through for few of all indices.
        if not all(isinstance(each, Tensor) and each.rank is None for each in options(value)):
            continue
        dtypes = {each.dtype for each in options(value) if isinstance(each, Tensor)}
        certain = all((dtype or "").startswith("int") for dtype in dtypes)
        if not certain and dtypes != {None}:
            continue
        kind = _item_kind(node, function.node)
        written = isinstance(place, ItemWrite) and (certain or place.augmented)
        counted = certain and _is_counted(node, function.node)
        taken = kind == "part" or (kind == "row" and written) or counted
        if not taken and (kind == "row" or _is_numbered(node)):
            taken = _is_read_out(place.node, function.node)
        if taken and not _is_asked_as_several(node, function.node):
            found[index] = node
    return found


def text_of_single_items(
    source: Source, node: ast.Subscript, place: ItemRead | ItemWrite, torch: str, kinds: Kinds
) -> str | None:
    """`x[i.unsqueeze(0)].select(0, 0)` for `x[i]`, the same for ints of any rank, and `x[torch.atleast_1d(i)]`, the same for
    masks as well, where that is written to."""
    parts = _parts(place)
    numbers = {index for index, (_, value) in enumerate(parts) if is_int(value)}
    one = isinstance(place, ItemWrite) and all(map(_is_one_number, options(place.value)))
    # An argument that is only supposed to be a tensor may as well be a tuple of numbers.
    made = "{}" if not place.site.supposed else f"{torch}.as_tensor({{}})"
    items = list(single_items(place))
    if items and isinstance(place, ItemRead) and _is_read_out(node, source.tree):
        # One number is read, whatever the other indices are and however many dimensions it has.
        written = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        swaps = []
        for given in (written[index] for index in items):
            text = index_beside(source, node, given, made.format(source.of(given)), kinds)
            swaps.append(source.swap(given, f"{primary(text)}.unsqueeze(0)"))
        return source.of(node, swaps)
    return _unsqueezed(source, node, items, numbers, torch, kinds, made=made, one=one)


def text_in_arm(
    source: Source, node: ast.Subscript, kinds: Kinds, function: Function, torch: str, *, one: bool
) -> str | None:
    """The same for `node` of an arm of a branch, by the kinds there; `one` tells whether it is given one number. Raises Refused where
    an index may be one number: the arm would take none."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    known = [kinds.of(each) for each in parts]
    untold = [
        index
        for index, each in enumerate(known)
        if each.what == "tensor"
        and each.rank is None
        and each.dtype is None
        and not adds_dimension(parts[index])
    ]
    in_loops = [_item_kind(parts[index], function) for index in untold]
    ways = [
        way or untold_kind(parts[index], kinds, function) for way, index in zip(in_loops, untold, strict=True)
    ]
    read = isinstance(node.ctx, ast.Load)
    if "" in ways or ("item" in ways and read):
        return None
    if any(_is_asked_as_several(parts[index], function) for index in untold):
        return None
    if "row" in ways and read:
        raise Refused(
            f"nothing tells whether `{source.of(node.slice)}` is one number or a mask, and torch.cond takes no index that is one "
            "number: convert it, `.long()`, or annotate what it comes from"
        )
    numbers = {
        index for index, each in enumerate(known) if each.what in ("number", "size") and each.type == "int"
    }
    made = "{}" if not kinds.supposed else f"{torch}.as_tensor({{}})"
    text = _unsqueezed(source, node, untold, numbers, torch, kinds, made=made, one=one)
    if text is None and "" in in_loops:
        raise Refused(
            f"nothing tells whether `{source.of(node.slice)}` has one number for an index, which torch.cond and while_loop do "
            "not take: use `torch.where` with `torch.arange`, or annotate what it comes from"
        )
    return text


def adds_dimension(node: ast.expr) -> bool:
    """Whether `node` certainly has a dimension, as `i.unsqueeze(0)` has."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("unsqueeze", "atleast_1d")
    )


def _is_one_number(value: Value) -> bool:
    return isinstance(value, (Const, Static, Shape, TensorScalar)) or (
        isinstance(value, Tensor) and value.rank == 0
    )


def _unsqueezed(
    source: Source,
    node: ast.Subscript,
    items: list[int],
    numbers: set[int],
    torch: str,
    kinds: Kinds,
    *,
    made: str,
    one: bool,
) -> str | None:
    """`node` with a dimension more at its indices `items`, beside `numbers` and slices that stand first and last.

    What is written fits behind slices only where it is `one` number. `made` is the text of what makes a tensor of an item.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    read = isinstance(node.ctx, ast.Load)
    slices = 0
    while slices < len(parts) and (
        isinstance(parts[slices], ast.Slice) or (not read and is_ellipsis(parts[slices]))
    ):
        slices += 1
    end = len(parts)
    while end > slices and isinstance(parts[end - 1], ast.Slice):
        end -= 1
    if not items or {*range(slices, end)} - {*items, *numbers} or (slices and not (read or one)):
        return None
    texts = {
        index: index_beside(source, node, parts[index], made.format(source.of(parts[index])), kinds)
        for index in items
    }
    swaps = [
        source.swap(parts[index], f"{primary(text)}.unsqueeze(0)" if read else f"{torch}.atleast_1d({text})")
        for index, text in texts.items()
    ]
    text = source.of(node, swaps)
    return f"{text}.select({slices}, 0)" if read else text


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


# What is asked of a mask, or of several indices, and hardly of one number.
_OF_SEVERAL = frozenset(
    {"all", "any", "count_nonzero", "logical_not", "nonzero", "numel", "shape", "size", "sum"}
)


def _is_asked_as_several(node: ast.expr, function: ast.AST) -> bool:
    return isinstance(node, ast.Name) and any(
        isinstance(each, ast.Attribute)
        and each.attr in _OF_SEVERAL
        and isinstance(each.value, ast.Name)
        and each.value.id == node.id
        for each in walk(function)
    )


def _parts(place: ItemRead | ItemWrite) -> list[tuple[ast.expr, Value]]:
    index = getattr(place.node, "slice", None)
    key = place.key
    if isinstance(index, ast.Tuple):
        if isinstance(key, Sequence) and key.items is not None and len(key.items) == len(index.elts):
            return list(zip(index.elts, key.items, strict=True))
        return []
    return [(index, key)] if isinstance(index, ast.expr) else []


def _item_kind(node: ast.expr, function: ast.AST) -> str:
    """ "part" for a number of a row that a loop unpacks, a cell or a part of a place; "row" for what a loop goes through; "" for
    anything else."""
    node = _unconverted(node)
    if isinstance(node, ast.Subscript):
        return "part" if _is_single(node) else ""
    if not isinstance(node, ast.Name):
        return ""
    found = set()
    for each in walk(function):
        if isinstance(each, ast.For) and _names(each.target, node.id):
            found.add(_kind_in_loop(each, node.id))
        elif isinstance(each, ast.Assign) and any(_names(target, node.id) for target in each.targets):
            values = list(_assigned(each, node.id))
            cells = all(value is not None and _is_single(_unconverted(value)) for value in values)
            found.add("part" if (values and cells) or unpacks_point(each) else "")
        elif isinstance(each, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and _names(each.target, node.id):
            found.add("")
    return found.pop() if len(found) == 1 else ""


def _kind_in_loop(loop: ast.For, name: str) -> str:
    target: ast.expr = loop.target
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in ("enumerate", "zip"):
        if not isinstance(target, ast.Tuple):
            return ""
        target = next((each for each in target.elts if _names(each, name)), target)
    elif called is not None and not (isinstance(called, ast.Attribute) and called.attr in _KEEPING):
        return ""
    if isinstance(target, ast.Name):
        return "row"
    plain = isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts)
    return "part" if plain else ""


def _assigned(node: ast.Assign, name: str) -> list[ast.expr | None]:
    """What `node` binds `name` to, None where that is a part of something."""
    found: list[ast.expr | None] = []
    for target in node.targets:
        if isinstance(target, ast.Name):
            found.append(node.value)
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=False)
            found += [value for each, value in pairs if isinstance(each, ast.Name) and each.id == name]
        else:
            found.append(None)
    return found


def _unconverted(node: ast.expr) -> ast.expr:
    """What `click[0].long()` makes an int of."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("long", "int", "round", "floor")
        and not node.args
    ):
        return _unconverted(node.func.value)
    return node


def _is_single(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and (_is_cell(node) or is_part(node))


def _is_cell(node: ast.Subscript) -> bool:
    """Whether `node` is one cell, `edges[e, 1]` or `edges[e][1]`, of a column that stands there."""
    if isinstance(node.slice, ast.Tuple):
        indices = list(node.slice.elts)
    elif isinstance(node.value, ast.Subscript):
        indices = [node.value.slice, node.slice]
    else:
        return False
    last = indices[-1]
    return (
        len(indices) > 1
        and isinstance(last, ast.Constant)
        and type(last.value) is int
        and all(isinstance(each, (ast.Name, ast.Constant)) for each in indices)
    )


def _is_numbered(node: ast.expr) -> bool:
    """`row[0]`"""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and type(node.slice.value) is int
    )


def _is_read_out(node: ast.AST, function: ast.AST) -> bool:
    """Whether `function` makes a number of Python of `node`, which has one element then."""
    for made in _made_numbers(function):
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
            if made.func.attr not in ("cpu", "detach", "float", "double"):
                break
            made = made.func.value
        if made is node:
            return True
    return False


def _is_counted(node: ast.expr, function: ast.AST) -> bool:
    """Whether `node`, of ints, is a cell at counters of loops, or is made a number of Python elsewhere in `function`."""
    if not isinstance(node, ast.Subscript):
        return False
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Tuple):
        indices.insert(0, node.value.slice)
    counters = set(_counters(function))
    at_counters = all(
        (isinstance(each, ast.Constant) and type(each.value) is int)
        or (isinstance(each, ast.Name) and each.id in counters)
        for each in indices
    )
    if not at_counters:
        return False
    return len(indices) > 1 or any(ast.unparse(each) == ast.unparse(node) for each in _made_numbers(function))


def _counters(function: ast.AST) -> Iterator[str]:
    """The names that loops and comprehensions of `function` count with, by `range` and `enumerate`."""
    for each in walk(function):
        if not isinstance(each, (ast.For, ast.comprehension)) or not isinstance(each.iter, ast.Call):
            continue
        called, target = getattr(each.iter.func, "id", ""), each.target
        if called == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        if called in ("range", "enumerate") and isinstance(target, ast.Name):
            yield target.id


def _made_numbers(function: ast.AST) -> Iterator[ast.expr]:
    """What `function` makes numbers of Python of, by `int(t)` and `t.item()`."""
    for each in walk(function):
        if not isinstance(each, ast.Call):
            continue
        if isinstance(each.func, ast.Name) and each.func.id == "int" and len(each.args) == 1:
            yield each.args[0]
        elif isinstance(each.func, ast.Attribute) and each.func.attr == "item" and not each.args:
            yield each.func.value


def _names(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for each in walk(target)
    )
