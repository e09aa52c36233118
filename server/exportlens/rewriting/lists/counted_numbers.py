"""Lists of numbers that a loop counts in where data says, as tensors until the loop is over:

    counts = [0] * 3                            counts = torch.zeros(3, dtype=torch.int64)
    for label in labels.tolist():               for label in labels.tolist():
        counts[label] += 1                ->        counts[label] += 1
    return [n / len(labels) for n in counts]    counts = counts.tolist()
                                                return [n / len(labels) for n in counts]

A list of Python's has no item where data says, a tensor has. int64 and float64 hold what Python's numbers are.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix
from exportlens.inference.places import Conversion
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import walk_own
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

COUNT = "Count in a tensor"
_LOOPS = (ast.For, ast.While)
_PLAIN = (ast.Add, ast.Sub)
_DTYPES = {"int": "int64", "float": "float64"}


def counted_in_tensor(draft: Draft, node: ast.Subscript, place: Conversion) -> Fix | None:
    """The fix for the list of which data says an item at `node`; None where it is another list, or more is done with it."""
    source = draft.source
    function, base = source.enclosing_function(node), _base(node)
    if function is None or base is None or place.to == "key":
        return None
    names = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == base.id]
    if any(source.enclosing_function(each) is not function for each in names):
        return None
    making = _making(source, names)
    loop = None if making is None else _loop(source, base, making)
    if making is None or loop is None:
        return None
    begin, end = source.start(loop), source.end(loop)
    within = [each for each in names if begin <= source.start(each) < end]
    before = [each for each in names if source.start(each) < begin and each is not making.targets[0]]
    behind = [each for each in names if source.start(each) >= end]
    kinds = kinds_before(function, making, draft.kinds(place.variables))
    found = _zeros(draft, making.value, kinds)
    if found is None or before:
        return None
    text, type_, dimensions = found
    items = [_item(source, each, dimensions) for each in within]
    if any(each is None or not _is_counted(source, each, type_, kinds) for each in items):
        return None
    swaps = [source.swap(making.value, text)]
    if behind:
        at = source.span([loop])[1]
        line = f"{source.newline}{source.indent_of(loop)}{base.id} = {base.id}.tolist()"
        swaps.append(Replacement(at, at, line))
    return draft.replace(COUNT, swaps, Applicability.UNSAFE)


def _base(node: ast.expr) -> ast.Name | None:
    """The name of the list, of which `node` is an item, or an item of an item."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _making(source: Source, names: list[ast.Name]) -> ast.Assign | None:
    """The first statement that binds the name, alone."""
    first = min(names, key=source.start)
    statement = source.parents[first]
    if isinstance(statement, ast.Assign) and statement.targets == [first] and source.begins_line(statement):
        return statement
    return None


def _loop(source: Source, base: ast.Name, making: ast.Assign) -> ast.For | ast.While | None:
    """The loop around `base` that follows the making in the same block."""
    block, index = source.block_of(making)
    around = list(source.ancestors(base))
    for each in block[index + 1 :]:
        if each in around:
            leaves = any(isinstance(one, ast.Return) for one in walk_own(each))
            plain = isinstance(each, _LOOPS) and not each.orelse and not leaves and source.begins_line(each)
            return each if plain else None  # type: ignore[return-value]
    return None


def _zeros(draft: Draft, node: ast.expr, kinds: Kinds) -> tuple[str, str, int] | None:
    """The text of the tensor of zeros for the list `node`, the type of its numbers, and how many dimensions it has."""
    sizes: list[str] = []
    inner: ast.expr = node
    while not isinstance(inner, ast.Constant):
        if isinstance(inner, ast.ListComp) and len(inner.generators) == 1:
            rounds = inner.generators[0]
            call = rounds.iter
            if (
                rounds.ifs
                or not isinstance(rounds.target, ast.Name)
                or not isinstance(call, ast.Call)
                or ast.unparse(call.func) != "range"
                or len(call.args) != 1
            ):
                return None
            size, inner = call.args[0], inner.elt
        elif isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            # Rows that are one and the same list count together.
            if (
                not isinstance(inner.left, ast.List)
                or len(inner.left.elts) != 1
                or not isinstance(inner.left.elts[0], ast.Constant)
            ):
                return None
            size, inner = inner.right, inner.left.elts[0]
        elif (
            isinstance(inner, ast.List)
            and inner.elts
            and all(isinstance(each, ast.Constant) for each in inner.elts)
        ):
            if len({ast.unparse(each) for each in inner.elts}) > 1:
                return None
            sizes.append(str(len(inner.elts)))
            inner = inner.elts[0]
            continue
        else:
            return None
        if kinds.of(size).what not in ("number", "size") or "float" in kinds.of(size).type:
            return None
        sizes.append(draft.source.of(size))
    type_ = type(inner.value).__name__
    if type_ not in _DTYPES or inner.value or not 1 <= len(sizes) <= 2:
        return None
    return f"{draft.torch}.zeros({', '.join(sizes)}, dtype={draft.torch}.{_DTYPES[type_]})", type_, len(sizes)


def _item(source: Source, name: ast.Name, dimensions: int) -> ast.Subscript | None:
    """The number of the list that `name` reads or writes; None where it takes more."""
    node: ast.expr = name
    for _ in range(dimensions):
        parent = source.parents[node]
        if (
            not isinstance(parent, ast.Subscript)
            or parent.value is not node
            or isinstance(parent.slice, ast.Slice)
        ):
            return None
        node = parent
    return node if isinstance(node, ast.Subscript) else None


def _is_counted(source: Source, node: ast.Subscript | None, type_: str, kinds: Kinds) -> bool:
    """Whether `node` is counted up or down by a number, or compared: a tensor of one number does the same."""
    assert node is not None
    parent = source.parents[node]
    if isinstance(parent, ast.AugAssign) and parent.target is node:
        return isinstance(parent.op, _PLAIN) and _is_number(parent.value, type_, kinds)
    if isinstance(parent, ast.Compare):
        sides = [each for each in (parent.left, *parent.comparators) if each is not node]
        tested = isinstance(source.parents[parent], (ast.If, ast.While, ast.BoolOp, ast.UnaryOp))
        plain = all(
            isinstance(each, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) for each in parent.ops
        )
        return len(sides) == 1 and tested and plain and kinds.of(sides[0]).what in ("number", "size")
    return False


def _is_number(node: ast.expr, type_: str, kinds: Kinds) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value).__name__ == "int" or type(node.value).__name__ == type_
    # What a loop binds is not known before it.
    item = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    return type_ == "float" and (item or kinds.of(node).what == "number")
