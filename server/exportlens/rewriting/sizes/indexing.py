"""Indices that are tensors: inside of a branch torch.cond cannot make a Python number of them, and takes index tensors."""

from __future__ import annotations

import ast
from typing import TypeVar

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.values import Const, Sequence, Shape, Static, Tensor, TensorScalar, Value, options
from exportlens.rewriting.calls.one_device import index_beside, is_given_from_elsewhere
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import becoming_arms
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import Write, kinds_before, loaded, own_expressions, visit, writes_of
from exportlens.rewriting.memory.used_up import is_used_up
from exportlens.rewriting.numbers.operands import is_detached, tensor_behind
from exportlens.rewriting.sizes.number_indices import index_in_brackets, is_int
from exportlens.rewriting.sizes.row_indices import (
    adds_dimension,
    is_ellipsis,
    text_in_arm,
    text_of_single_items,
)

_Node = TypeVar("_Node", ast.If, ast.While, ast.While | ast.For)


def indexed_by_tensors(
    source: Source, node: _Node, kinds: Kinds, torch: str, *, certain: bool = False
) -> tuple[Source, _Node] | None:
    """The text where `node`, and what becomes its arms or its body, has `x[j.unsqueeze(0)].select(0, 0)` for `x[j]`, `j` being one int of
    a tensor, `certain` to have no dimensions, and `node` of it; None where there is none."""
    statements = becoming_arms(source, node)
    function = source.enclosing_function(node)
    indices = (each for statement in statements for each in ast.walk(statement))
    if function is None or not any(isinstance(each, ast.Subscript) for each in indices):
        return None
    written = set(afterwards(source, node, function, kinds).written)
    for write, now in _writes(statements, kinds):
        roots = now.of(loaded(write.base)).roots
        if roots is None:
            return None
        written |= roots
    swaps: dict[int, Replacement] = {}
    conversions: list[Replacement] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement):
            if isinstance(each, ast.Subscript) and not _inside(source, each, swaps):
                # An index tensor gives a copy: what is written in place later must stay a view.
                view = isinstance(each.ctx, ast.Load) and not is_used_up(source, each, statement, now)
                roots = now.of(each.value).roots
                text = _text(source, each, now)
                if certain and text is not None and not _has_numbers(each, now):
                    continue
                if text is None and (not certain or isinstance(each.ctx, ast.Store)):
                    one = isinstance(statement, (ast.Assign, ast.AugAssign)) and _is_one_number(
                        statement, now
                    )
                    text = text_in_arm(source, each, now, function, torch, one=one)
                if text is None:
                    continue
                if view and (roots is None or roots & written):
                    raise Refused(
                        f"`{source.of(each)}` is a view of what is written in place, and an index tensor, which torch.cond "
                        "and while_loop need, would give a copy"
                    )
                if isinstance(each.ctx, ast.Store) and isinstance(statement, ast.Assign):
                    written_to, given = now.of(each.value), now.of(statement.value)
                    new: list[Replacement] = []
                    if given.what == "tensor" and (
                        given.dtype is None
                        or given.dtype != written_to.dtype
                        or is_given_from_elsewhere(source, each, statement.value, now)
                    ):
                        try:
                            new = _converted(source, each)
                        except Refused:
                            continue
                    conversions.extend(apart(source, each, new, now))
                swaps[source.start(each)] = source.swap(each, text)

    visit(statements, kinds.copy(), see)
    if not swaps:
        return None
    offset = source.start(node)
    changed = Source(replaced(source.text, [*swaps.values(), *conversions]))
    return changed, next(
        each
        for each in ast.walk(changed.tree)
        if isinstance(each, type(node)) and changed.start(each) == offset
    )


def _is_one_number(statement: ast.Assign | ast.AugAssign, kinds: Kinds) -> bool:
    return _is_certainly_one(statement.value, kinds)


def _is_certainly_one(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is one number, of Python's or in a tensor. What an operator makes of something unknown may have its dimensions."""
    given = kinds.of(node)
    if not (given.what in ("number", "size") or (given.what == "tensor" and given.rank == 0)):
        return False
    if isinstance(node, ast.BinOp):
        return all(_is_certainly_one(each, kinds) for each in (node.left, node.right))
    return True


def _has_numbers(node: ast.Subscript, kinds: Kinds) -> bool:
    """Whether the tensors among the indices certainly have no dimensions."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    known = [kinds.of(_read_of(part, kinds) or part) for part in parts]
    return all(each.rank == 0 for each in known if each.what == "tensor")


def found_selected(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where `node`, and what becomes its arms, has `found.select(0, 0)` for `found[0]`, and `found.select(0, 0)[1]`
    for `found[0, 1]`, `found` being as long as data says; None where there is none. What torch asks of that length for an
    index it asks in front of the branch (measured on torch 2.13)."""
    statements = becoming_arms(source, node)
    swaps: dict[int, Replacement] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        test = set() if statement is not node else {id(each) for each in ast.walk(node.test)}
        for each in own_expressions(statement):
            if (
                isinstance(each, ast.Subscript)
                and isinstance(each.ctx, ast.Load)
                and id(each) not in test
                and isinstance(each.value, ast.Name)
                and length_from_data(now.of(each.value))
            ):
                first, *others = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
                if _is_constant_int(first):
                    rest = f"[{', '.join(map(source.of, others))}]" if others else ""
                    text = f"{each.value.id}.select(0, {source.of(first)}){rest}"
                    swaps[source.start(each)] = source.swap(each, text)

    visit(statements, kinds.copy(), see)
    if not swaps:
        return None
    offset = source.start(node)
    changed = Source(replaced(source.text, swaps.values()))
    return changed, next(
        each
        for each in ast.walk(changed.tree)
        if isinstance(each, type(node)) and changed.start(each) == offset
    )


def _is_constant_int(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def index_by_index_tensor(place: ItemRead | ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """`x[j.unsqueeze(0)].select(0, 0)` for `x[j]`, `j` being one int of a tensor."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node, statement, function = index_in_brackets(draft, place)
        kinds = kinds_before(function, statement, draft.kinds({}))
        roots = kinds.of(node.value).roots
        copied = _is_copied(node, statement) or is_used_up(source, node, statement, kinds)
        if isinstance(node.ctx, ast.Load) and not copied:
            after = kinds.copy()
            after.run([statement])
            written = set(afterwards(source, statement, function, after).written)
            for write, now in _writes([statement], kinds):
                written |= now.of(loaded(write.base)).roots or {""}
            if written and (roots is None or "" in written or roots & written):
                raise Refused(
                    f"`{source.of(node)}` is a view, an index tensor would give a copy, and a later line of the "
                    "function writes in place"
                )
        added_to = isinstance(statement, ast.AugAssign) and statement.target is node
        text = _text(source, node, kinds) if added_to or not isinstance(statement, ast.AugAssign) else None
        if text is None and (isinstance(place, ItemRead) or isinstance(statement, ast.Assign) or added_to):
            text = _text(source, node, kinds, place)
        if text is None and isinstance(place, ItemRead) and _is_plain(place):
            text = f"{source.of(node.value)}[{_unsqueezed(source, node, node.slice, kinds)}].select(0, 0)"
        if (
            text is None
            and isinstance(place, ItemWrite)
            and _is_plain(place)
            and (isinstance(statement, ast.Assign) or added_to)
        ):
            # What fits a row fits one row of rows.
            text = f"{source.of(node.value)}[{_unsqueezed(source, node, node.slice, kinds)}]"
        if text is None:
            text = text_of_single_items(source, node, place, draft.torch, kinds)
        # What is added in place keeps the dtype.
        swaps: list[Replacement] = []
        if isinstance(place, ItemWrite) and not added_to:
            given = statement.value if isinstance(statement, ast.Assign) else None
            crossing = given is not None and is_given_from_elsewhere(source, node, given, kinds)
            swaps = _converted(source, node) if crossing else _of_one_dtype(source, node, place)
            swaps = apart(source, node, swaps, kinds)
        if text is None:
            raise Refused(
                f"it is not certain that the index in `{source.of(node)}` is one int, or which dimension it takes away: use "
                "`torch.index_select` with `.reshape(1)`, or compare with `torch.arange`"
            )
        uses_torch = f"{draft.torch}.atleast_1d" in text
        return draft.replace("Use an index tensor", [source.swap(node, text), *swaps], uses_torch=uses_torch)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _of_one_dtype(source: Source, node: ast.Subscript, place: ItemWrite) -> list[Replacement]:
    """What is written, of the dtype of what it is written to: by an index tensor torch writes no other. Raises Refused."""
    given, taken = options(place.value), options(place.owner)
    if all(isinstance(each, (Const, Static, Shape, TensorScalar)) for each in given):
        return []
    dtypes = {each.dtype if isinstance(each, Tensor) else None for each in (*given, *taken)}
    if len(dtypes) == 1 and None not in dtypes:
        return []
    if not all(isinstance(each, Tensor) for each in given):
        raise Refused(f"what is written to `{source.of(node)}` may be a tensor, and of another dtype")
    return _converted(source, node)


def _converted(source: Source, node: ast.Subscript) -> list[Replacement]:
    """What is written to `node`, of its dtype, and on its device. Raises Refused."""
    statement, base = source.enclosing_statement(node), node.value
    if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and base.func.attr == "detach":
        # `self.rows.detach()[j] = v`
        base = base.func.value
    if not isinstance(statement, ast.Assign) or statement.targets != [node] or dotted(base) is None:
        raise Refused(
            f"what is written to `{source.of(node)}` may be of another dtype, which an index tensor does not take"
        )
    value = statement.value
    start, end = source.start(value), source.end(value)
    simple = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    opened, closed = ("", "") if simple else ("(", ")")
    to = f"{closed}.to({source.of(base)})"
    return [Replacement(start, start, opened), Replacement(end, end, to)]


def apart(source: Source, node: ast.Subscript, swaps: list[Replacement], kinds: Kinds) -> list[Replacement]:
    """`swaps`, what converts what is written to `node`, with a copy of it where it may be memory of the same tensor, `x[i] = x[j]`: by an
    index tensor torch writes no such (an int alone takes the very row)."""
    statement = source.enclosing_statement(node)
    if not isinstance(statement, ast.Assign) or statement.targets != [node]:
        return swaps
    value, roots = kinds.of(statement.value), kinds.of(node.value).roots
    parts = any(isinstance(each, (ast.Name, ast.Attribute)) for each in ast.walk(statement.value))
    if value.what not in ("tensor", "unknown") or value.fresh or not parts:
        return swaps
    same = _base(statement.value) is not None and _base(statement.value) == _base(node)
    known = value.what == "tensor" and (roots is None or value.roots is None or value.roots & roots)
    if not (same or known):
        return swaps
    if swaps:
        return [*swaps[:-1], Replacement(swaps[-1].start, swaps[-1].end, f"{swaps[-1].text}.clone()")]
    start, end = source.start(statement.value), source.end(statement.value)
    simple = isinstance(statement.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return (
        [Replacement(end, end, ".clone()")]
        if simple
        else [Replacement(start, start, "("), Replacement(end, end, ").clone()")]
    )


def _base(node: ast.expr) -> str | None:
    """The tensor of which `node` is a part, or past autograd the whole: `self.rows` of `self.rows.data[j]`."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
            node = node.value
        elif is_detached(node):
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            node = node.func.value
        else:
            return dotted(node)


def _is_copied(node: ast.Subscript, statement: ast.stmt) -> bool:
    """Whether `statement` writes `node`, a part of a tensor, or a copy of it to a part of the same tensor."""
    if not isinstance(statement, ast.Assign):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "clone":
        value = value.func.value
    return (
        value is node
        and all(isinstance(each, ast.Subscript) and _base(each) == _base(node) for each in statement.targets)
        and _base(node) is not None
    )


def _is_plain(place: ItemRead | ItemWrite) -> bool:
    """Whether the interpreter knows `x` in `x[j]` as a tensor, and `j` as one int of a tensor, or maybe as several."""
    return _is_tensor(place.owner) and _is_one_int_of_a_tensor(place.key)


def _is_int(dtype: str | None) -> bool:
    """Whether an index of that dtype is a number: bytes are a mask."""
    return (dtype or "").startswith(("int", "uint")) and dtype != "uint8"


def _writes(statements: list[ast.stmt], kinds: Kinds) -> list[tuple[Write, Kinds]]:
    found: list[tuple[Write, Kinds]] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        found.extend((write, now.copy()) for write in writes_of(statement, now))

    visit(statements, kinds.copy(), see)
    return found


def _inside(source: Source, node: ast.expr, swaps: dict[int, Replacement]) -> bool:
    start, end = source.start(node), source.end(node)
    return any(each.start < end and start < each.end for each in swaps.values())


def _text(
    source: Source, node: ast.Subscript, kinds: Kinds, place: ItemRead | ItemWrite | None = None
) -> str | None:
    """The new text of `node`; None where its index is none, or what it gives is not certain. Of `place` the interpreter knows
    what the text around it does not tell."""
    if kinds.of(node.value).what != "tensor" and (place is None or not _is_tensor(place.owner)):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    numbers = [index for index, part in enumerate(parts) if _is_one_int(part, kinds)]
    known: list[Value] = []
    if place is not None and isinstance(place.key, Sequence) and len(place.key.items or ()) == len(parts):
        known = list(place.key.items or ())
        numbers = [index for index, part in enumerate(known) if _is_one_int_of_a_tensor(part)]
    if not numbers:
        return None
    before, behind, seen, rest = 0, 0, False, False
    for index, part in enumerate(parts):
        if index in numbers:
            if seen and index - 1 not in numbers:
                return None
            seen = True
        elif isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...)):
            before, behind = (before, behind + 1) if seen else (before + 1, behind)
            rest |= is_ellipsis(part) and not seen
        elif not (known and is_int(known[index])) and (
            kinds.of(part).what not in ("number", "size") or kinds.of(part).type != "int"
        ):
            return None
    # Behind an ellipsis dimensions are counted from the end: the index must certainly be one number.
    if rest and not all(
        _has_no_dimensions(known[index])
        if known
        else kinds.of(_read_of(parts[index], kinds) or parts[index]).rank == 0
        for index in numbers
    ):
        return None
    at = -1 - behind if rest else before
    swaps = [
        source.swap(
            parts[index], _unsqueezed(source, node, _read_of(parts[index], kinds) or parts[index], kinds)
        )
        for index in numbers
    ]
    text = source.of(node, swaps)
    if isinstance(node.ctx, ast.Load):
        return f"{text}.select({at}, 0)"
    # What is written has no dimension for the index: it fits where that is the first one.
    statement = source.enclosing_statement(node)
    value = getattr(statement, "value", None)
    one = value is not None and _is_certainly_one(value, kinds)
    written = isinstance(statement, ast.Assign) or getattr(statement, "target", None) is node
    if written and not (before == 0 or one) and len(numbers) == 1:
        return _moved_to_front(source, node, parts, swaps[0], (numbers[0], at))
    return text if written and (before == 0 or one) else None


def _unsqueezed(source: Source, node: ast.Subscript, index: ast.expr, kinds: Kinds) -> str:
    """`index.unsqueeze(0)`, where what `node` takes a part of is."""
    return f"{primary(index_beside(source, node, index, source.of(index), kinds))}.unsqueeze(0)"


def _moved_to_front(
    source: Source, node: ast.Subscript, parts: list[ast.expr], index: Replacement, places: tuple[int, int]
) -> str | None:
    """`x.movedim(1, 0)[j.unsqueeze(0)]` for `x[:, j]`, to which a row is written; None where other indices than `:` stand around it.
    `places` are where it stands among the indices, and its dimension."""
    standing, at = places
    if not all(
        _is_whole_slice(each) or is_ellipsis(each) for number, each in enumerate(parts) if number != standing
    ):
        return None
    return f"{primary(source.of(node.value))}.movedim({at}, 0)[{index.text}]"


def _is_whole_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def _is_tensor(owner: Value) -> bool:
    return all(isinstance(each, Tensor) for each in options(owner))


def _has_no_dimensions(value: Value) -> bool:
    return all(isinstance(each, Tensor) and each.rank == 0 for each in options(value))


def _is_one_int_of_a_tensor(part: Value) -> bool:
    return all(
        isinstance(each, Tensor) and each.rank in (0, None) and _is_int(each.dtype) for each in options(part)
    )


def _is_one_int(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is an int of a tensor, or may be: what stands for one int does for several as well. An index that has no
    dimensions is an int unless something says that it is a bool."""
    kind = kinds.of(_read_of(node, kinds) or node)
    return (
        kind.what == "tensor"
        and (_is_int(kind.dtype) or (kind.dtype is None and kind.rank == 0))
        and kind.rank in (0, None)
        and not length_from_data(kind)
        and not adds_dimension(node)
    )


def _read_of(node: ast.expr, kinds: Kinds) -> ast.expr | None:
    """The tensor without dimensions, of ints, whose number `t.item()` or `int(t)` reads."""
    tensor = tensor_behind(node, kinds, whole=True)
    return tensor if tensor is not None and kinds.of(tensor).rank == 0 else None
