"""Numbers read out of tensors, beside other indices: `x[i, n]` -> `x[i].select(0, n)`, the same view."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.values import Const, Sequence, Shape, Static, Tensor, TensorScalar, Value, options
from exportlens.rewriting.branches.around import refuse_caught_index
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk


def is_number_from_data(part: Value) -> bool:
    """Whether an index is a number of Python that comes from tensor data."""
    return all(isinstance(option, TensorScalar) and option.type != "bool" for option in options(part))


def _types(part: Value) -> set[str]:
    return {option.type for option in options(part) if isinstance(option, TensorScalar)}


def has_number_from_data(key: Value) -> bool:
    """Whether such a number stands among other indices."""
    return (
        isinstance(key, Sequence)
        and key.kind == "tuple"
        and key.items is not None
        and len(key.items) > 1
        and any(map(is_number_from_data, key.items))
    )


def select_by_number(place: ItemRead | ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """`x[i, n]` -> `x[i].select(0, n)`, and `x[i, n] = v` -> `x[i].select(0, n)[...] = v`."""
    try:
        draft = Draft.of(place, context)
        node, statement, function = index_in_brackets(draft, place)
        if not isinstance(node.slice, ast.Tuple):
            raise Refused("the indices are not written out one by one")
        key = place.key
        items = key.items if isinstance(key, Sequence) and key.items is not None else []
        parts = node.slice.elts
        if len(items) != len(parts):
            raise Refused("the indices are not written out one by one")
        kinds = kinds_before(function, statement, draft.kinds({}))
        told = all(isinstance(each, Tensor) for each in options(place.owner))
        certain = told or kinds.of(node.value).what == "tensor" or _is_cloned(function, node.value)
        if not certain and not isinstance(place, ItemRead):
            raise Refused(f"`{draft.source.of(node.value)}` is not certain to be a tensor")
        ints = [is_int(each) for each in items]
        numbers = [is_number_from_data(each) for each in items]
        text = _selected(draft, node, parts, numbers, ints, kinds)
        put: tuple[str, list[Replacement]] | None = None
        if not isinstance(node.ctx, ast.Load):
            text += "[...]"
            put = _put(draft, statement, node, numbers, ints, place, kinds)
        text, swaps = put if put is not None else (text, [])
        # What is of no known type may be a bool, which adds a dimension as an index, and no dimension has that number.
        known = all(_types(each) <= {"int"} for each in items if is_number_from_data(each))
        safe = Applicability.SAFE if known else Applicability.UNSAFE
        message = "Index by a tensor" if put is not None else "Use `.select`"
        whole = [draft.source.swap(node, text), *swaps]
        return draft.replace(message, whole, safe, uses_torch=put is not None)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def is_one_number_from_data(key: Value) -> bool:
    """Whether the only index is a number of Python that comes from tensor data: no float can be one."""
    return is_number_from_data(key) and _types(key) <= {"int", ""}


def write_by_number(place: ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """`x[n] = v` -> `x[torch.full((1,), n)] = v`: what fits a row fits one row of rows."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node, statement, function = index_in_brackets(draft, place)
        kinds = kinds_before(function, statement, draft.kinds({}))
        put = converted_for_index(draft, statement, node, place, kinds)
        if put is None:
            raise Refused(f"what is written to `{source.of(node)}` is not known to be a tensor or a number")
        text = f"{primary(source.of(node.value))}[{draft.torch}.full((1,), {source.of(node.slice)})]"
        safe = Applicability.SAFE if _types(place.key) == {"int"} else Applicability.UNSAFE
        return draft.replace("Index by a tensor", [source.swap(node, text), *put], safe)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def is_list_of_numbers_from_data(key: Value) -> bool:
    """Whether the only index is a list that holds ints of Python which come from tensor data."""
    if not isinstance(key, Sequence) or key.kind != "list":
        return False
    parts = key.items if key.items is not None else [key.element]
    known = [_types(part) if part is not None and is_number_from_data(part) else None for part in parts]
    ints = [part is not None and is_int(part) for part in parts]
    # Beside an int a bool is a number as well, among bools alone it is part of a mask.
    certain = any(ints) or any(types == {"int"} for types in known)
    return (
        certain
        and any(known)
        and all(
            one or (types is not None and types <= {"int", ""})
            for one, types in zip(ints, known, strict=True)
        )
    )


def index_by_tensor_of_numbers(place: ItemRead | ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """`x[[n, m]]` -> `x[torch.tensor([n, m], dtype=torch.int64)]`, which is what such a list comes to."""
    try:
        draft = Draft.of(place, context)
        node, _, _ = index_in_brackets(draft, place)
        # What a function gives may be mended to be a tensor itself.
        make = "as_tensor" if _is_given(draft, node.slice) else "tensor"
        text = f"{draft.torch}.{make}({draft.source.of(node.slice)}, dtype={draft.torch}.int64)"
        swap = draft.source.swap(node.slice, text)
        return draft.replace("Make a tensor of the numbers", [swap], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_given(draft: Draft, node: ast.expr) -> bool:
    """Whether `node` is a name for what a function gives."""
    function = draft.source.enclosing_function(node)
    made = [
        each.value
        for each in (walk(function) if function is not None else ())
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == ast.unparse(node)
    ]
    return isinstance(node, ast.Name) and bool(made) and all(isinstance(each, ast.Call) for each in made)


def index_in_brackets(draft: Draft, place: ItemRead | ItemWrite) -> tuple[ast.Subscript, ast.stmt, Function]:
    """`x[key]` at `place`, its statement and its function. Raises Refused, also where an IndexError of it is caught."""
    source, node = draft.source, draft.source.find(place.node)
    refuse_caught_index(source, node)
    if not isinstance(node, ast.Subscript):
        raise Refused("the index is not written in brackets")
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(statement)
    if function is None:
        raise Refused("the index is not inside of a function")
    return node, statement, function


def is_int(part: Value) -> bool:
    """Whether an index certainly is an int that no tensor data decides."""
    return all(
        (isinstance(each, Const) and type(each.value) is int)
        or (isinstance(each, (Static, Shape)) and each.type == "int")
        for each in options(part)
    )


def _is_cloned(function: Function, node: ast.expr) -> bool:
    """Whether the name `node` is bound to a clone only, as an arm of torch.cond binds what it writes: tensors have that method."""
    if not isinstance(node, ast.Name):
        return False
    stores = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
    ]
    cloned = [
        each
        for each in function.body
        if isinstance(each, ast.Assign) and ast.unparse(each) == f"{node.id} = {node.id}.clone()"
    ]
    return len(stores) == len(cloned) == 1


def _selected(
    draft: Draft,
    node: ast.Subscript,
    parts: list[ast.expr],
    numbers: list[bool],
    ints: list[bool],
    kinds: Kinds,
) -> str:
    source = draft.source
    others: list[str] = []
    selects: list[str] = []
    dim = 0
    behind = False
    for index, (part, number) in enumerate(zip(parts, numbers, strict=True)):
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            behind = True
        if number:
            # Behind an ellipsis, counted from the end: what is still to come are dimensions, and this is one.
            to_come = sum(not _takes_away(each) or numbers[at] for at, each in enumerate(parts) if at > index)
            at = dim if not behind else -(1 + to_come)
            selects.append(f".select({at}, {source.of(part)})")
            others.append(":")
            continue
        others.append(source.of(part))
        if not (ints[index] or _is_basic(part, kinds)):
            raise Refused(f"it is not certain that `{source.of(part)}` is one int")
        dim += not _takes_away(part)
    if behind and len(selects) > 1:
        raise Refused("several numbers are read out beside an ellipsis")
    others = _needed(others)
    base = primary(source.of(node.value))
    return f"{base}[{', '.join(others)}]{''.join(selects)}" if others else base + "".join(selects)


def _put(
    draft: Draft,
    statement: ast.stmt,
    node: ast.Subscript,
    numbers: list[bool],
    ints: list[bool],
    place: ItemRead | ItemWrite,
    kinds: Kinds,
) -> tuple[str, list[Replacement]] | None:
    """`x[:, n] = v` as `x.movedim(1, 0)[torch.full((1,), n)] = v`, and what changes in `v`; None where it is something else.

    torch exports no write to a view whose place data tells, where a gradient flows (measured on torch 2.13).
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    others = [each for each, number in zip(parts, numbers, strict=True) if not number]
    counted = [_keeps_dimensions(each) or one for each, one in zip(parts, ints, strict=True)]
    if sum(numbers) != 1 or not all(one or number for one, number in zip(counted, numbers, strict=True)):
        return None
    source, at = draft.source, numbers.index(True)
    swaps = converted_for_index(draft, statement, node, place, kinds)
    if swaps is None:
        return None
    taken = [source.of(each) if each in others else ":" for each in parts]
    before = sum(_takes_away(each) for each in parts[:at])
    indices = _needed(taken)
    view = primary(source.of(node.value)) + (f"[{', '.join(indices)}]" if set(indices) - {":"} else "")
    moved = f"{view}.movedim({at - before}, 0)" if at > before else view
    return f"{moved}[{draft.torch}.full((1,), {source.of(parts[at])})]", swaps


def converted_for_index(
    draft: Draft, statement: ast.stmt, node: ast.Subscript, place: ItemRead | ItemWrite, kinds: Kinds
) -> list[Replacement] | None:
    """What changes in what `statement` writes to `node`: an index, unlike a view, converts nothing. None where it may be
    something else than a tensor or a number."""
    if isinstance(statement, ast.AugAssign) and statement.target is node:
        return []
    if not (isinstance(statement, ast.Assign) and statement.targets == [node]):
        return None
    source, given = draft.source, options(place.value)
    if all(isinstance(each, Tensor) for each in given):
        base, value = kinds.of(node.value), kinds.of(statement.value)
        if value.dtype is not None and value.dtype == base.dtype:
            return []
        like = source.of(node.value)
        return [source.swap(statement.value, f"{primary(source.of(statement.value))}.to({like})")]
    return [] if all(isinstance(each, (Const, Static, Shape, TensorScalar)) for each in given) else None


def _keeps_dimensions(part: ast.expr) -> bool:
    """Whether an index is a slice or a number that is written out: what is in front of it can be counted."""
    if isinstance(part, ast.UnaryOp):
        part = part.operand
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and type(part.value) is int)


def _needed(indices: list[str]) -> list[str]:
    """Without the `:` at the end: only between an ellipsis and other indices do they place these."""
    kept = list(indices)
    while kept and kept[-1] == ":":
        kept.pop()
    if kept == ["..."]:
        return []
    return indices if "..." in kept else kept


def _takes_away(part: ast.expr) -> bool:
    """Whether an index takes its dimension away: it is one int."""
    return not isinstance(part, ast.Slice) and not (
        isinstance(part, ast.Constant) and part.value in (None, Ellipsis)
    )


def _is_basic(part: ast.expr, kinds: Kinds) -> bool:
    if not _takes_away(part):
        return True
    kind = kinds.of(part)
    return kind.what in ("number", "size") and kind.type == "int"
