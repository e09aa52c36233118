"""Rows of which data says how many there are, padded in an arm of torch.cond.

Measured on torch 2.13: where gradients are recorded eager's torch.cond traces the backward of its arms, too, and that of `F.pad`
with a constant asks for the sizes as numbers. `torch.cat` with zeros does the same without.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from exportlens.inference import knowledge
from exportlens.rewriting.arms.numbers_asked_for import as_asked, asked_to_be_some
from exportlens.rewriting.arms.picked_in_helpers import holds
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, dotted, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, visit
from exportlens.rewriting.memory.helper_writes import called_function, methods_of

_PAD = "torch.nn.functional.pad"


def padded_by_zeros(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """`torch.cat([w, w.new_zeros(size - n)], -1)` for `F.pad(w, (0, size - n))` in `node`, behind it, and in methods that its arms
    call, `n` being a number from data: what fills up to a size is never less than nothing."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and source.start(call) >= source.start(node) and call.args:
            now = kinds_before(function, source.enclosing_statement(call), kinds)
            swaps += _by_zeros(source, call, now, torch, taken, asked_to_be_some(source, node, call)) or []
    swaps += _in_methods(source, node, kinds, torch, taken)
    if not swaps:
        return None
    start = source.start(node)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end < start)
    return read_again(replaced(source.text, swaps), start + moved)


def _in_methods(source: Source, node: ast.If, kinds: Kinds, torch: str, taken: set[str]) -> list[Replacement]:
    """What is written anew in the methods which the arms of `node` give rows that a mask picks."""
    swaps: dict[ast.Call, list[Replacement]] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        for call in ast.walk(statement) if not hasattr(statement, "body") else ():
            if isinstance(call, ast.Call) and _picked_rows(call, now) is not None:
                for function, each in _calls_in(source, call, now, set()):
                    own = source.parents.get(function) is not None and _is_free(function, torch)
                    if own and _pads(each, now) and each not in swaps:
                        swaps[each] = by_zeros_in_helper(source, each, torch, taken) or []

    for arm in (node.body, node.orelse):
        visit(arm, kinds.copy(), see)
    return [each for found in swaps.values() for each in found]


def _by_zeros(
    source: Source, call: ast.Call, kinds: Kinds, torch: str, taken: set[str], some: frozenset[str]
) -> list[Replacement] | None:
    sizes = _sizes(call)
    if not _pads(call, kinds) or sizes is None:
        return None
    counted = len(sizes) == 2 and any(kinds.of(each).what == "scalar" for each in sizes)
    if not counted and not _is_picked(call.args[0], kinds):
        return None
    if not all(
        _is_length(each) or as_asked(each) in some or (counted and _fills_up(each, kinds)) for each in sizes
    ):
        return None
    return _written(source, call, sizes, kinds.of(call.args[0]).rank, torch, taken)


def _written(
    source: Source, call: ast.Call, sizes: list[ast.expr], rank: int | None, torch: str, taken: set[str]
) -> list[Replacement] | None:
    """What changes for `call` to be a torch.cat of its rows, which get a name of their own first; None where they cannot."""
    rows = call.args[0]
    if isinstance(rows, ast.Name):
        text = _joined(rows.id, sizes, source.of, rank, torch)
        return None if text is None else [source.swap(call, text)]
    statement = source.enclosing_statement(call)
    if not _comes_first(source, call, statement) or not source.begins_line(statement):
        return None
    if any(isinstance(each, ast.NamedExpr) for each in ast.walk(statement)):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    known = isinstance(target, ast.Name) and isinstance(statement, ast.Assign) and statement.value is call
    name = target.id if known and isinstance(target, ast.Name) else fresh("rows", taken)
    text = _joined(name, sizes, source.of, rank, torch)
    if text is None:
        return None
    start, indent = source.start(statement), source.indent_of(statement)
    before = f"{name} = {source.of(rows)}{source.newline}{indent}"
    return [Replacement(start, start, before), source.swap(call, text)]


def _comes_first(source: Source, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether nothing else of `statement` is evaluated before `call`."""
    if not isinstance(statement, (ast.Assign, ast.Return)) or statement.value is None:
        return False
    inner: ast.AST = call
    for each in source.ancestors(call):
        if each is statement:
            return inner is statement.value
        first = (
            each.left if isinstance(each, ast.BinOp) and not isinstance(each.left, ast.Constant) else
            each.right if isinstance(each, ast.BinOp) else
            each.operand if isinstance(each, ast.UnaryOp) else
            each.value if isinstance(each, (ast.Attribute, ast.Subscript)) else
            each.args[0] if isinstance(each, ast.Call) and each.args and dotted(each.func) is not None else
            each.func if isinstance(each, ast.Call) else
            each.elts[0] if isinstance(each, (ast.Tuple, ast.List)) else
            None
        )  # fmt: skip
        if first is not inner:
            return False
        inner = each
    return False


def _sizes(call: ast.Call) -> list[ast.expr] | None:
    """The sizes of `F.pad(x, sizes)`, which are written one by one; None where other than zeros are put there."""
    named = {each.arg: each.value for each in call.keywords}
    pad = named.get("pad", call.args[1] if len(call.args) > 1 else None)
    value = named.get("value", call.args[3] if len(call.args) > 3 else ast.Constant(0))
    if not (isinstance(value, ast.Constant) and value.value in (0, None)):
        return None
    return pad.elts if call.args and isinstance(pad, (ast.Tuple, ast.List)) else None


def _joined(
    rows: str, sizes: list[ast.expr], text: Callable[[ast.expr], str], rank: int | None, torch: str
) -> str | None:
    """The call that joins `rows` with zeros in the one dimension in which `sizes` are not nothing; None where there are more."""
    pairs = [sizes[each : each + 2] for each in range(0, len(sizes), 2)]
    padded = [number for number, pair in enumerate(pairs) if not all(map(_is_nothing, pair))]
    if len(padded) != 1 or len(pairs[-1]) != 2:
        return None
    (number,) = padded
    behind = f", *{rows}.shape[-{number}:]" if number else ""
    before, after = pairs[number]

    def zeros(size: ast.expr) -> str:
        one = rank == 1 and not number
        shape = text(size) if one else f"(*{rows}.shape[:-{number + 1}], {text(size)}{behind})"
        return f"{rows}.new_zeros({shape})"

    parts = [zeros(before)] if not _is_nothing(before) else []
    parts += [rows, *([zeros(after)] if not _is_nothing(after) else [])]
    return f"{torch}.cat([{', '.join(parts)}], -{number + 1})"


def by_zeros_in_helper(
    source: Source, call: ast.Call, torch: str, taken: set[str]
) -> list[Replacement] | None:
    """The same for a call in a function that an arm calls, whose sizes are constants."""
    sizes = _sizes(call)
    if sizes is None or not all(map(_is_length, sizes)):
        return None
    return _written(source, call, sizes, None, torch, taken)


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _fills_up(node: ast.expr, kinds: Kinds) -> bool:
    """`x.size(0) - n`"""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    return kinds.of(node.left).what in ("size", "number") and kinds.of(node.right).what == "scalar"


def refuse_padded_rows(source: Source, statements: Sequence[ast.stmt], kinds: Kinds) -> None:
    """Refuse `statements`, an arm, that pad rows which a mask picks, themselves or in a function that they call."""

    def see(statement: ast.stmt, now: Kinds) -> None:
        if hasattr(statement, "body"):
            return
        for call in ast.walk(statement):
            if not isinstance(call, ast.Call):
                continue
            rows = _picked_rows(call, now)
            if rows is None:
                continue
            inside = [each for each in _calls_in(source, call, now, set()) if _pads(each[1], now)]
            if _pads(call, now) or not all(_is_left_to_fix(*each, now) for each in inside):
                raise Refused(
                    f"`{source.of(call.func)}` pads `{source.of(rows)}`, of which data says how many there are: torch.cond "
                    "cannot trace the gradient of F.pad there. Write torch.cat with zeros instead"
                )

    visit(statements, kinds.copy(), see)


def _picked_rows(call: ast.Call, kinds: Kinds) -> ast.expr | None:
    """What `call` is given that is a tensor of as many rows as data says, or is computed of one."""
    given = [*call.args, *(each.value for each in call.keywords)]
    found = next((each for each in given if _is_picked(each, kinds)), None)
    if found is not None or knowledge.lookup_function(kinds.qualified(call.func) or "") is not None:
        return found
    parts = [part for each in given for part in ast.walk(each) if isinstance(part, ast.expr)]
    return next((each for each in parts if _is_picked(each, kinds)), None)


def _is_picked(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is a tensor of as many rows as data says, for which gradients may be recorded."""
    kind = kinds.of(node)
    return length_from_data(kind) and (kind.dtype or "float").startswith(("float", "complex"))


def _is_left_to_fix(function: ast.FunctionDef, call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` of a function of another part of the file can be written with torch.cat, and is noted for it."""
    chunk = next((each for each in kinds.around if holds(each, function)), None)
    if kinds.padded is None or chunk is None:
        return False
    if not _is_free(function, (dotted(call.func) or "").partition(".")[0]):
        return False
    source = Source(chunk.text)
    own = source.find(call)
    if not isinstance(own, ast.Call) or by_zeros_in_helper(source, own, "torch", set()) is None:
        return False
    if (function, call) not in kinds.padded:
        kinds.padded.append((function, call))
    return True


def _is_free(function: ast.FunctionDef, name: str) -> bool:
    """Whether `function` gives `name` no meaning of its own."""
    return name not in {*bound(function.body), *(each.arg for each in arguments(function.args))}


def _calls_in(
    source: Source, call: ast.Call, kinds: Kinds, seen: set[ast.FunctionDef]
) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The calls in the function of the file, the method or the submodule that `call` calls, and in those that it calls; those of
    `source` as it is now."""
    function, instance = called_function(call, kinds)
    if function is None or function in seen:
        return
    seen.add(function)
    inside = kinds
    if instance is not None:
        inside = kinds.inside_of(function)
        inside.functions = methods_of(instance, function, inside)
        inside.names["self"] = Kind("object", roots=None, value=instance)
    else:
        own = _method_of(source, call, dotted(call.func) or "")
        function = function if own is None else own
    for each in ast.walk(function):
        if isinstance(each, ast.Call):
            yield function, each
            yield from _calls_in(source, each, inside, seen)


def _method_of(source: Source, call: ast.Call, name: str) -> ast.FunctionDef | None:
    """The method `self.step` of the class of `source` that `call` stands in."""
    owner = next((each for each in source.ancestors(call) if isinstance(each, ast.ClassDef)), None)
    methods = [each for each in owner.body if isinstance(each, ast.FunctionDef)] if owner is not None else []
    return next((each for each in methods if f"self.{each.name}" == name), None)


def _pads(call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` pads with a constant."""
    modes = [each.value for each in call.keywords if each.arg == "mode"] or call.args[2:3]
    constant = all(isinstance(each, ast.Constant) and each.value == "constant" for each in modes)
    return constant and kinds.qualified(call.func) == _PAD
