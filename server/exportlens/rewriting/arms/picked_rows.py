"""Rows that a mask picks before a branch, and that only the branch's arms use, are picked in these.

Of two tensors with as many rows as one mask finds, torch.cond's arms no longer know that they are as long as each other
(measured on torch 2.13): what is computed of both cannot be traced. What is picked inside of an arm is known to be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.arms.picks_apart import SHAPED, found_by, is_other_call, written_apart
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import may_write, writes

_ROWS = ("numel", "nelement", "size")
_ELEMENTWISE = frozenset({"torch.sigmoid", "torch.tanh", "torch.exp", "torch.nn.functional.sigmoid"})
_ELEMENTWISE_LAYERS = frozenset(
    {"torch.nn.Sigmoid", "torch.nn.Tanh", "torch.nn.Softmax", "torch.nn.LogSoftmax"}
)
_OTHERS = (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)


def picked_inside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms pick the rows, and the branch in it; None where none can be moved."""
    function = source.enclosing_function(node)
    if function is None or not _starts_line(source, node) or not source.begins_line(node.body[0]):
        return None
    if node.orelse and (_starts_elif(source, node) or not source.begins_line(node.orelse[0])):
        return None
    shared: set[str] = set()
    written = written_apart(source, node, kinds, shared)
    source, node = written or (source, node)
    function = source.enclosing_function(node)
    assert function is not None
    block, index = source.block_of(node)
    moved: list[ast.Assign] = []
    asked: dict[ast.expr, str] = {}
    for statement in reversed(block[:index]):
        found = _pick(source, function, node, statement, kinds, moved, asked)
        if found is not None and isinstance(statement, ast.Assign):
            moved.insert(0, statement)
            asked |= found
    if not moved:
        # What is written apart was for nothing where each mask picks once.
        return written if shared else None
    swaps = [source.swap(each, text) for each, text in asked.items()]
    swaps += [_without(source, each) for each in moved]
    swaps += list(_inserted(source, node, block[index + 1 :], moved))
    start = source.start(node)
    gone = sum(each.end - each.start for each in swaps if each.end <= start and not each.text)
    changed = Source(replaced(source.text, swaps))
    for each in ast.walk(changed.tree):
        if isinstance(each, ast.If) and changed.start(each) == start - gone:
            return changed, each
    return None


def _starts_line(source: Source, node: ast.If) -> bool:
    return source.begins_line(node) and not source.text.startswith("elif", source.start(node))


def _starts_elif(source: Source, node: ast.If) -> bool:
    return source.text.startswith("elif", source.start(node.orelse[0]))


def _pick(
    source: Source,
    function: Function,
    node: ast.If,
    statement: ast.stmt,
    kinds: Kinds,
    moved: Sequence[ast.Assign],
    asked: Mapping[ast.expr, str],
) -> dict[ast.expr, str] | None:
    """What the branch's condition asks of the rows, in other words, where `statement` picks rows that move; else None.

    `moved` and `asked` are what was found of the statements behind it.
    """
    if not (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and _has_line(source, statement)
        and _is_pick(statement.value, kinds)
    ):
        return None
    name = statement.targets[0].id
    if found_by(statement.value) is not None and _is_taken_from(function, name):
        return None
    needed = reads(statement.value) | {name}
    if needed & set(bound(moved)) or name in map(_mask_of, asked.values()):
        return None
    block, index = source.block_of(node)
    stays = [each for each in block[block.index(statement) + 1 : index] if each not in moved]
    if not _is_kept(statement, needed, [*stays, node.test], kinds):
        return None
    ways = exits(node.body) | exits(node.orelse)
    # Where an arm goes on with the next round of a loop, what follows is an arm as well.
    rest = block[index + 1 :] if ways & {"returns", "continues"} else []
    if statement in _used(rest, [statement, *moved]):
        # Behind an arm that does not return, the rows are picked once more.
        falling = [each for arm in (node.body, node.orelse) if "falls" in exits(arm) for each in arm]
        if not _is_kept(statement, needed, falling, kinds):
            return None
    inside = [*node.body, *node.orelse, *moved, *rest]
    if writes(inside):
        return None
    allowed = {id(each) for one in inside for each in ast.walk(one)}
    found: dict[ast.expr, str] = {}
    for each in ast.walk(function):
        if not (isinstance(each, ast.Name) and each.id == name and id(each) not in allowed):
            continue
        text = _asked(source, each, statement.value, kinds) if _within(each, node.test) else None
        if text is not None:
            found[text[0]] = text[1]
        elif _needs(source, each) and not _is_before(source, function, node, each, statement):
            return None
    return found


def _is_taken_from(function: Function, name: str) -> bool:
    """Whether a single one of the row numbers `name` is used, which is read in another way outside of an arm."""
    return any(
        isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and each.value.id == name
        for each in ast.walk(function)
    )


def _has_line(source: Source, statement: ast.stmt) -> bool:
    """Whether `statement` has its lines to itself, comments apart."""
    behind = source.text[source.end(statement) :].partition("\n")[0].strip()
    return source.begins_line(statement) and (not behind or behind.startswith("#"))


def _is_kept(statement: ast.Assign, needed: set[str], passed: Sequence[ast.AST], kinds: Kinds) -> bool:
    """Whether `statement`, which needs these names, gives the same behind what is `passed`."""
    if needed & set(bound(passed)) or may_write(passed, kinds):
        return False
    state = any((dotted(each) or "").startswith("self.") for each in ast.walk(statement.value))
    # A layer may write to buffers of its own.
    return not state or not any(
        isinstance(each, ast.Call) and (dotted(each.func) or "").startswith("self.")
        for one in passed
        for each in ast.walk(one)
    )


def _needs(source: Source, name: ast.Name) -> bool:
    """Whether `name` must be bound there."""
    return not isinstance(name.ctx, ast.Store) or isinstance(source.parents[name], ast.AugAssign)


def _is_before(source: Source, function: Function, node: ast.If, name: ast.Name, statement: ast.stmt) -> bool:
    """Whether `name` runs before `statement` only, where it may be of something else."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    scope = next(each for each in source.ancestors(name) if isinstance(each, scopes))
    return (
        scope is function
        and source.start(name) < source.end(statement)
        and not _in_loop(source, node, function)
    )


def _is_pick(value: ast.expr, kinds: Kinds) -> bool:
    """Whether `value` picks rows by a mask or by what an operator found, or computes each element of such rows, and does
    nothing else."""
    if _is_elementwise(value, kinds) or isinstance(found_by(value), ast.Name):
        return True
    if any(isinstance(each, _OTHERS) or is_other_call(each) for each in ast.walk(value)):
        return False
    value = _without_shape(value)
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name):
        return False
    index = kinds.of(value.slice)
    return index.dtype == "bool" or length_from_data(index)


def _is_elementwise(value: ast.expr, kinds: Kinds) -> bool:
    """Whether `value` calls a function, or a layer, that computes each element or row of picked ones by itself."""
    if not isinstance(value, ast.Call) or value.keywords or [type(each) for each in value.args] != [ast.Name]:
        return False
    layer = kinds.of(value.func).value
    cls = layer.cls.name if isinstance(layer, Instance) and isinstance(layer.cls, Named) else ""
    known = (kinds.qualified(value.func) or "") in _ELEMENTWISE or cls in _ELEMENTWISE_LAYERS
    return known and length_from_data(kinds.of(value.args[0]))


def _without_shape(value: ast.expr) -> ast.expr:
    """What `value` gives in another shape or dtype, but not with other elements."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in SHAPED
        and not value.keywords
    ):
        value = value.func.value
    return value


def _mask_of(asked: str) -> str:
    return asked.removeprefix("not ").partition(".")[0]


def _asked(source: Source, name: ast.Name, value: ast.expr, kinds: Kinds) -> tuple[ast.expr, str] | None:
    """The part of a condition that asks whether there are rows, and the same asked of the mask."""
    mask, exactly = _mask_behind(source, name, value, kinds)
    # Of bytes `any` gives a byte.
    some_of = (
        f"{mask}.any()" if kinds.names.get(mask) is None or _is_truth(kinds, mask) else f"{mask}.any().bool()"
    )
    count = _count_of(source, name)
    if count is None or not mask:
        return None
    parent = source.parents[count]
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1 and parent.left is count:
        other, operator = parent.comparators[0], parent.ops[0]
        number = other.value if isinstance(other, ast.Constant) else None
        some = (isinstance(operator, (ast.Gt, ast.NotEq)) and number == 0) or (
            isinstance(operator, ast.GtE) and number == 1
        )
        none = (isinstance(operator, (ast.Eq, ast.LtE)) and number == 0) or (
            isinstance(operator, ast.Lt) and number == 1
        )
        if type(number) is int and (some or none):
            return parent, some_of if some else f"not {some_of}"
        rows = not ast.unparse(count).endswith(("numel()", "nelement()"))
        return (count, f"{mask}.sum()") if type(number) is int and rows and exactly else None
    if isinstance(parent, ast.If) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return count, some_of
    return None


def _is_truth(kinds: Kinds, mask: str) -> bool:
    return kinds.names[mask].dtype == "bool"


def _mask_behind(source: Source, name: ast.Name, value: ast.expr, kinds: Kinds) -> tuple[str, bool]:
    """The name of the mask by which `value`, to which `name` is bound, picks rows or finds them, "" where there is none, and
    whether it has one row for each element of it that is true."""
    picked = _without_shape(value)
    exactly = picked is value
    if isinstance(picked, ast.Subscript) and isinstance(picked.slice, ast.Name):
        if kinds.of(picked.slice).dtype == "bool":
            return picked.slice.id, exactly
        function = source.enclosing_function(name)
        bindings = [
            source.parents[each]
            for each in ast.walk(function or source.tree)
            if isinstance(each, ast.Name)
            and each.id == picked.slice.id
            and not isinstance(each.ctx, ast.Load)
        ]
        if len(bindings) != 1 or not isinstance(bindings[0], ast.Assign):
            return "", False
        value = bindings[0].value
    found = found_by(value)
    if not isinstance(found, ast.Name) or kinds.of(found).what != "tensor":
        return "", False
    if kinds.of(found).dtype != "bool":
        # What is not zero is found in tensors of numbers as well.
        return found.id, False
    return found.id, exactly and found_by(value, exactly=True) is not None


def _count_of(source: Source, name: ast.Name) -> ast.expr | None:
    """`len(p)`, `p.numel()`, `p.size(0)`, `p.shape[0]`."""
    parent = source.parents[name]
    call = source.parents.get(parent)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len":
        return parent
    if not isinstance(parent, ast.Attribute):
        return None
    if parent.attr in _ROWS and isinstance(call, ast.Call) and call.func is parent and not call.keywords:
        texts = [ast.unparse(each) for each in call.args]
        return call if texts == (["0"] if parent.attr == "size" else []) else None
    if parent.attr == "shape" and isinstance(call, ast.Subscript) and ast.unparse(call.slice) == "0":
        return call
    return None


def _within(node: ast.AST, outer: ast.AST) -> bool:
    return any(each is node for each in ast.walk(outer))


def _in_loop(source: Source, node: ast.If, function: Function) -> bool:
    for each in source.ancestors(node):
        if each is function:
            return False
        if isinstance(each, (ast.For, ast.While)):
            return True
    return False


def _without(source: Source, statement: ast.stmt) -> Replacement:
    """The line of `statement` goes, with the comments above and behind it: they go along."""
    start, end = source.span([statement])
    begin = source.text.rfind("\n", 0, start) + 1
    line_end = source.text.find("\n", end)
    return Replacement(begin, line_end + 1 if line_end >= 0 else end, "")


def _inserted(
    source: Source, node: ast.If, rest: Sequence[ast.stmt], moved: Sequence[ast.Assign]
) -> Iterator[Replacement]:
    for arm in (node.body, node.orelse, rest):
        used = _used(arm, moved) if arm else []
        if used:
            indent = source.indent_of(arm[0])
            # Others may stand between them.
            text = "".join(
                source.block([each], indent)[len(indent) :] + source.newline + indent for each in used
            )
            at = source.start(arm[0])
            yield Replacement(at, at, text)


def _used(arm: Sequence[ast.stmt], moved: Sequence[ast.Assign]) -> list[ast.stmt]:
    """Those of `moved` that `arm` reads, and that these read, in their order."""
    needed = reads(arm)
    kept: list[ast.stmt] = []
    for statement in reversed(moved):
        if needed & set(bound(statement)):
            kept.insert(0, statement)
            needed |= reads(statement.value)
    return kept
