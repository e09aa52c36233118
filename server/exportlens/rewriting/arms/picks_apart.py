"""Picks of rows in a form that can move: one statement for each, by a mask that has a name, of a tensor that has one.

l, t = x[y != 0], y[y != 0]        found = y != 0
                             ->    l = x[found]
                                   t = y[found]
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import may_write

# What takes rows as they are, and gives as many.
SHAPED = frozenset(
    {
        "float",
        "long",
        "int",
        "double",
        "bool",
        "sigmoid",
        "detach",
        "contiguous",
        "squeeze",
        "view",
        "reshape",
    }
)
# What rows are picked of, and what is asked for that.
_VIEWS = frozenset({"size", "dim", "numel", "flatten", "permute", "transpose", "t", "unsqueeze", "clone"})
_ALONG_ROWS = frozenset({"squeeze(1)", "squeeze(-1)", "squeeze(dim=1)", "squeeze(dim=-1)"})
_FLAT = frozenset({"flatten()", "view(-1)", "reshape(-1)", "ravel()"})


def found_by(value: ast.expr, exactly: bool = False) -> ast.expr | None:
    """The mask whose true elements `value` finds, as `torch.nonzero(mask).squeeze(1)` does; None where it is anything else.
    Where it is `exactly` that, there is one number for each."""
    if isinstance(value, ast.Subscript):
        place = ast.unparse(value.slice)
        call = value.value if isinstance(value.value, ast.Call) else None
        if call is None or place not in ("0", ":, 0", "(:, 0)"):
            return None
        is_tuple = _name(call) == "where" or any(
            key.arg == "as_tuple" and _is_true(key.value) for key in call.keywords
        )
        return _asked_of(call) if is_tuple == (place == "0") else None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    inner = value.func.value
    text = ast.unparse(value)[len(ast.unparse(inner)) + 1 :]
    if not isinstance(inner, ast.Call) or text not in _ALONG_ROWS | (frozenset() if exactly else _FLAT):
        return None
    is_tuple = any(key.arg == "as_tuple" and _is_true(key.value) for key in inner.keywords)
    return None if is_tuple or _name(inner) == "where" else _asked_of(inner)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _asked_of(call: ast.Call) -> ast.expr | None:
    """`m` of `torch.nonzero(m)`, `m.nonzero()` and `torch.where(m)`."""
    if _name(call) not in ("nonzero", "where") or any(key.arg != "as_tuple" for key in call.keywords):
        return None
    assert isinstance(call.func, ast.Attribute)
    owner = dotted(call.func.value)
    if len(call.args) == 1 and owner in ("torch", "th"):
        return call.args[0]
    return call.func.value if not call.args and _name(call) == "nonzero" and owner != "torch" else None


def written_apart(
    source: Source, node: ast.If, kinds: Kinds, shared: set[str] | None = None
) -> tuple[Source, ast.If] | None:
    """The text where what is picked before `node`, and read in it, stands in statements of its own, by named masks; None where
    it does so already. `kinds` get to know the masks, and `shared` those that pick more than once: by one mask torch knows that
    it picks as many."""
    block, index = source.block_of(node)
    wanted = reads(block[index:])
    for statement in reversed(block[:index]):
        if wanted & set(bound(statement)):
            wanted |= reads(statement)
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    named: dict[str, str] = {}
    for statement in block[:index]:
        anew = set(bound(statement))
        named = {text: mask for text, mask in named.items() if not anew & _names_in(text)}
        if may_write([statement], kinds):
            named = {}
        pairs = _pairs(statement)
        if not pairs or not source.begins_line(statement):
            continue
        if not wanted & {name for name, _ in pairs}:
            continue
        lines, changes = [], []
        for _, value in pairs:
            mask = _mask_in(value)
            if mask is None or not _is_made_there(mask) or kinds.of(mask).dtype != "bool":
                continue
            text = ast.unparse(mask)
            if text not in named:
                named[text] = fresh("found", taken)
                lines.append(f"{named[text]} = {source.of(mask)}")
                kinds.assign(ast.Name(named[text], ast.Store()), kinds.of(mask))
            elif shared is not None:
                shared.add(named[text])
            start, end = source.start(mask), source.end(mask)
            if isinstance(source.parents[mask], ast.Attribute) and not isinstance(mask, ast.Subscript):
                # The parentheses around it go.
                start = len(source.text[:start].rstrip()) - 1
                end += len(source.text[end:]) - len(source.text[end:].lstrip()) + 1
            changes.append(Replacement(start, end, named[text]))
        for name, value in pairs:
            owner = _computed_in(value)
            if owner is None or kinds.of(owner).what != "tensor" or not _is_by_data(_mask_in(value), kinds):
                continue
            whole = fresh(f"all_{name}", taken)
            lines.append(f"{whole} = {source.of(owner)}")
            kinds.assign(ast.Name(whole, ast.Store()), kinds.of(owner))
            changes.append(source.swap(owner, whole))
        if not changes and len(pairs) == 1:
            continue
        if len(pairs) > 1 and not all(_is_by_data(_mask_in(value), kinds) for _, value in pairs):
            continue
        lines += [f"{name} = {source.of(value, _inside(source, value, changes))}" for name, value in pairs]
        swaps.append(source.swap(statement, f"{source.newline}{source.indent_of(statement)}".join(lines)))
    if not swaps:
        return None
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps)
    changed = Source(replaced(source.text, swaps))
    offset = source.start(node) + moved
    return changed, changed.branch_at(offset)


def _inside(source: Source, value: ast.expr, changes: Sequence[Replacement]) -> list[Replacement]:
    start, end = source.start(value), source.end(value)
    return [each for each in changes if start <= each.start and each.end <= end]


def _names_in(text: str) -> set[str]:
    return reads(ast.parse(text, mode="eval"))


def _pairs(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that `statement` binds with their values, where it may as well bind one after the other."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return []
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    if not len(names) == len(target.elts) == len(value.elts) or len(set(names)) < len(names):
        return []
    for number, each in enumerate(value.elts):
        if isinstance(each, ast.Starred) or reads(each) & set(names[:number]):
            return []
    return list(zip(names, value.elts, strict=True))


def _mask_in(value: ast.expr) -> ast.expr | None:
    """What `value` picks by, or finds."""
    found = found_by(value)
    if found is not None:
        return found
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords:
        value = value.func.value
    return (
        value.slice if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Tuple) else None
    )


def _computed_in(value: ast.expr) -> ast.expr | None:
    """What `value` picks from, where that is computed there: it is computed in any case, and what is picked of it may not be."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords:
        value = value.func.value
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, (ast.Name, ast.Compare)):
        return None
    owner = value.value
    return owner if isinstance(owner, ast.Call) and any(map(is_other_call, ast.walk(owner))) else None


def is_other_call(node: ast.AST) -> bool:
    """Whether `node` is a call of anything but what shows a tensor in another shape or dtype."""
    return isinstance(node, ast.Call) and not (
        isinstance(node.func, ast.Attribute) and node.func.attr in SHAPED | _VIEWS
    )


def _is_by_data(mask: ast.expr | None, kinds: Kinds) -> bool:
    if mask is None:
        return False
    kind = kinds.of(mask)
    return kind.what == "tensor" and (kind.dtype == "bool" or length_from_data(kind))


def _is_made_there(mask: ast.expr) -> bool:
    """Whether `mask` is computed there, by operators alone, or is a row of another: `masks[i]`."""
    if isinstance(mask, ast.Subscript):
        return isinstance(mask.value, ast.Name) and isinstance(mask.slice, (ast.Name, ast.Constant))
    if isinstance(mask, ast.UnaryOp):
        return isinstance(mask.op, ast.Invert)
    return isinstance(mask, ast.Compare) or (
        isinstance(mask, ast.BinOp) and isinstance(mask.op, (ast.BitAnd, ast.BitOr))
    )
