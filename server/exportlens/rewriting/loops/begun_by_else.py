"""What the `else` of a loop binds, as what its names begin with: the loop may run no round, and torch.cond gives a tensor whichever
way it goes.

    for i in range(1, n):                 t = (total + s[-1]) / n
        total = total + s[i]              for i in range(1, n):
        t = total / i                         total = total + s[i]
        if t > s[i]:              ->          t = total / i
            break                             if t > s[i]:
    else:                                         break
        t = (total + s[-1]) / n           else:
                                              t = (total + s[-1]) / n

Where the loop binds the names on its way out only, and changes nothing that the `else` reads, they are bound before it alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.liveness import certainly_bound_before, exits, live_before
from exportlens.rewriting.code.names import assigned_pairs, bound, dotted, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.else_first import bound_where_broken, is_bound_otherwise
from exportlens.rewriting.memory.effects import kinds_before, repeatable, visit, writes_of
from exportlens.source.walking import walk

Loop = ast.For | ast.While
# What these give hangs on shapes alone, as far as it may fail.
_CALLED = frozenset(
    {"abs", "add", "amax", "amin", "argmax", "argmin", "bool", "cat", "ceil", "clamp", "clone", "contiguous", "cos", "cumsum",
     "detach", "div", "double", "empty_like", "eye", "exp", "expand", "expand_as", "flatten", "float", "floor", "full", "full_like", "int",
     "log", "log_softmax", "long", "matmul", "max", "maximum", "mean", "min", "minimum", "mul", "neg", "new_full", "new_ones",
     "new_tensor", "new_zeros", "norm", "ones", "ones_like", "permute", "pow", "relu", "reshape", "round", "sigmoid", "sign", "sin",
     "size", "softmax", "sort", "sqrt", "square", "squeeze", "stack", "std", "sub", "sum", "t", "tanh", "tensor", "to", "transpose", "type_as",
     "unsqueeze", "var", "view", "view_as", "where", "zeros", "zeros_like"}
)  # fmt: skip
# These read the numbers of tensors that they are given.
_OF_NUMBERS = frozenset({"eye", "full", "full_like", "new_full", "new_tensor", "tensor"})
_OTHERWISE = (
    ast.Lambda,
    ast.NamedExpr,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.Await,
)


def begun_by_else(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop] | None:
    """The text where names that `loop` may not bind begin with what its `else` binds them to, and the loop; None where there are
    none, or where that is more than to compute a tensor. `kinds` are those inside of the loop."""
    function = source.enclosing_function(loop)
    if function is None or not loop.orelse or not source.begins_line(loop):
        return None
    pairs = _bindings(loop.orelse)
    certain = certainly_bound_before(function, loop)
    before = kinds_before(function, loop, kinds)
    certain -= {name for name, kind in before.names.items() if kind.what == "none"}
    names = [name for name, _ in pairs or () if name in bound(loop.body) and name not in certain]
    if pairs is None or not names or len({name for name, _ in pairs}) < len(pairs):
        return None
    entering = live_before(loop.body, frozenset(), function) | live_before(loop.orelse, frozenset(), function)
    header = [loop.iter, loop.target] if isinstance(loop, ast.For) else [loop.test]
    if set(names) & (entering | reads(header) | set(bound(header))):
        return None
    given = {name: value for name, value in pairs if name in names}
    if set(given) & reads([*given.values()]):
        return None
    for value in given.values():
        if before.of(value).what != "tensor" or not _is_safe(value, before):
            return None
        if not reads(value) & set(bound(function)) <= certain:
            return None
    if not all(set(given) <= always for always in bound_where_broken(loop.body)):
        return None
    if "breaks" in exits(loop.orelse):
        return None
    indent, nl, begin = source.indent_of(loop), source.newline, source.start(loop)
    swaps = []
    stays = (
        len(given) < len(loop.orelse)
        or is_bound_otherwise(loop.body, set(given))
        or _may_differ(loop, given, before)
    )
    if stays:
        head = "".join(f"{name} = {source.of(value)}{nl}{indent}" for name, value in given.items())
    else:
        head = source.block(loop.orelse, indent).removeprefix(indent) + nl + indent
        swaps.append(Replacement(source.span([loop.body[-1]])[1], source.span([loop])[1], ""))
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), *swaps]))
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin + len(head))


def _bindings(statements: list[ast.stmt]) -> list[tuple[str, ast.expr]] | None:
    """What `statements` bind names to, where they do nothing else."""
    found: list[tuple[str, ast.expr]] = []
    for each in statements:
        if not isinstance(each, (ast.Assign, ast.AnnAssign)):
            return None
        for target, value in assigned_pairs(each):
            if not isinstance(target, ast.Name):
                return None
            found.append((target.id, value))
    return found


def _is_safe(value: ast.expr, kinds: Kinds) -> bool:
    """Whether `value` may be computed in vain: it changes nothing, and no tensor's data makes it fail."""
    if not repeatable(value, kinds):
        return False
    for each in walk(value):
        if isinstance(each, _OTHERWISE):
            return False
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else ""
            if name not in _CALLED:
                return False
            given = [*each.args, *(one.value for one in each.keywords)]
            if name in _OF_NUMBERS and any(
                kinds.of(one).what == "tensor" for one in given[name.endswith("_like") :]
            ):
                return False
        if isinstance(each, ast.Subscript) and not all(
            kinds.of(one).what in ("number", "size", "none") for one in _indices(each.slice)
        ):
            return False
    return True


def _indices(index: ast.expr) -> Iterator[ast.expr]:
    if isinstance(index, ast.Tuple):
        for each in index.elts:
            yield from _indices(each)
    elif isinstance(index, ast.Slice):
        yield from filter(None, (index.lower, index.upper, index.step))
    elif not (isinstance(index, ast.Constant) and index.value is Ellipsis):
        yield index


def _may_differ(loop: Loop, given: dict[str, ast.expr], before: Kinds) -> bool:
    """Whether a value of `given` may be another one behind `loop` than before it."""
    if reads([*given.values()]) & set(bound(loop)):
        return True
    found: list[object] = []
    visit([loop], before.copy(), lambda node, now: found.extend(writes_of(node, now)))
    calls = [each for each in walk(loop) if isinstance(each, ast.Call)]
    # What belongs to the model may write anywhere.
    return bool(found) or any((dotted(each.func) or "self").split(".")[0] == "self" for each in calls)
