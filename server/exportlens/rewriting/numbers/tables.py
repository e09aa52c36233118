"""Tables of tensors and constants, `torch.tensor([[c, -s, 0.0], [s, c, 0.0]])`, are stacked:

    torch.stack([torch.as_tensor(each, device=c.device) for each in (c, -s, 0.0, s, c, 0.0)]).reshape(2, 3).detach()

torch.stack promotes to the dtype that torch.tensor takes, and the values are equal (all mixes of two and three of float16,
float32, float64, int64, int32, bool and numbers of Python, measured on torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.inference.values import Const, Sequence, Static, Tensor, Value, options
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, replaced
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

_NUMBERS = (bool, int, float)


def stacked_table(
    draft: Draft, node: ast.Call, data: ast.List | ast.Tuple, given: Sequence, others: Mapping[str, str]
) -> str:
    """The text for the call `node` of a constructor with `data`, whose values are `given`; `others` are the dtype and the device
    that it asks for. Raises Refused."""
    source = draft.source
    leaves: list[tuple[ast.expr, Value]] = []
    shape = _shape(draft, data, given, leaves)
    texts = {id(leaf): _text(draft, leaf, value) for leaf, value in leaves}
    dtypes = {
        each.dtype if isinstance(each, Tensor) else "" for _, value in leaves for each in options(value)
    }
    # Of one dtype all are converted behind torch.stack; of several each before, as the numbers are.
    plain = "" not in dtypes and (not others or len(dtypes) == 1)
    device = None if plain or "device" in others else _device(draft, node, [leaf for leaf, _ in leaves])
    asked = {**({"device": device} if device is not None else {}), **others}
    swaps = [Replacement(source.start(leaf), source.end(leaf), texts[id(leaf)]) for leaf, _ in leaves]
    begin, end = ("[", "]") if plain else ("(", ")")
    table = _flat(draft, data, swaps, begin, end)
    reshaped = f".reshape({', '.join(map(str, shape))})" if len(shape) > 1 else ""
    if plain:
        return f"{draft.torch}.stack({table}){reshaped}.detach(){converted(dtypes, others)}"
    each = fresh("each", draft.taken(source.tree))
    keywords = "".join(f", {key}={asked[key]}" for key in sorted(asked, reverse=True))
    made = f"{draft.torch}.as_tensor({each}{keywords})"
    return f"{draft.torch}.stack([{made} for {each} in {table}]){reshaped}.detach()"


def converted(dtypes: set[str | None], others: Mapping[str, str]) -> str:
    """The call that gives a tensor of one of `dtypes` the dtype and the device that are asked for, where it may lack them."""
    if set(others) == {"dtype"} and {others["dtype"].rpartition(".")[2]} == dtypes:
        return ""
    return f".to({', '.join(f'{key}={value}' for key, value in others.items())})" if others else ""


def _shape(
    draft: Draft, data: ast.List | ast.Tuple, given: Sequence, leaves: list[tuple[ast.expr, Value]]
) -> tuple[int, ...]:
    """The shape of the table, whose items are added to `leaves` row by row."""
    if given.items is None or len(given.items) != len(data.elts) or not data.elts:
        raise Refused("what the list holds is not known")
    shapes = set()
    for each, value in zip(data.elts, given.items, strict=True):
        if isinstance(each, ast.Starred):
            raise Refused("what the list holds is not known")
        if isinstance(each, (ast.List, ast.Tuple)) and isinstance(value, Sequence):
            shapes.add(_shape(draft, each, value, leaves))
            continue
        if not _is_tensor(value) and not _is_number(value):
            raise Refused(f"`{draft.source.of(each)}` is not known to be a tensor")
        leaves.append((each, value))
        shapes.add(())
    if len(shapes) != 1:
        raise Refused("the rows are of different lengths")
    return (len(data.elts), *shapes.pop())


def _is_tensor(value: Value) -> bool:
    return all(isinstance(each, Tensor) for each in options(value))


def _is_number(value: Value) -> bool:
    return (isinstance(value, Const) and type(value.value) in _NUMBERS) or (
        isinstance(value, Static) and value.type in ("bool", "int", "float")
    )


def _text(draft: Draft, leaf: ast.expr, value: Value) -> str:
    text = draft.source.of(leaf)
    if _is_tensor(value) and not all(isinstance(each, Tensor) and each.rank == 0 for each in options(value)):
        # It has one item, or the code before raised.
        return f"{primary(text)}.reshape(())"
    return f"({text})" if isinstance(leaf, ast.NamedExpr) else text


def _device(draft: Draft, node: ast.Call, leaves: list[ast.expr]) -> str | None:
    """Where the first of the tensors is, by a name that certainly is one's."""
    source = draft.source
    function = source.enclosing_function(node)
    if function is None:
        return None
    kinds = kinds_before(function, source.enclosing_statement(node), draft.kinds({}))
    for leaf in leaves:
        for each in walk(leaf):
            path = dotted(each) if isinstance(each, (ast.Name, ast.Attribute)) else None
            if path is not None and isinstance(each, ast.expr) and kinds.of(each).what == "tensor":
                return f"{path}.device"
    return None


def _flat(draft: Draft, data: ast.expr, swaps: list[Replacement], begin: str, end: str) -> str:
    """The text of `data`, lines and comments kept, without the brackets of its rows."""
    source = draft.source
    made = list(swaps)
    for row in walk(data):
        if not isinstance(row, (ast.List, ast.Tuple)) or any(
            each.start <= source.start(row) and source.end(row) <= each.end for each in swaps
        ):
            continue
        start, stop = source.start(row), source.end(row)
        if source.text[start] not in "[(":
            raise Refused("the rows are written without brackets")
        last = source.end(row.elts[-1])
        comma = source.text.find(",", last, stop - 1) if row is not data else -1
        if "#" in source.text[last:stop]:
            comma = -1
        made.append(Replacement(start, start + 1, begin if row is data else ""))
        made.append(Replacement(stop - 1, stop, end if row is data else ""))
        if comma >= 0:
            made.append(Replacement(comma, comma + 1, ""))
    offset, stop = source.start(data), source.end(data)
    moved = [Replacement(each.start - offset, each.end - offset, each.text) for each in made]
    return replaced(source.text[offset:stop], moved)
