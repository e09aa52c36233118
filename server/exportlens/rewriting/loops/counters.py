"""Counters of a `for` loop whose branches hang on tensor data: they are tensors in the loop, and ints again behind it.

torch.cond gives an int back as a number that no later torch.cond takes in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.rewriting.code.liveness import Liveness, certainly_bound_before, exits
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.numbers.operands import meets_tensor

InLoop = Callable[[Source, ast.If, ast.For], tuple[Source, ast.If] | None]


def counted_in_tensors(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where the ints that the arms of `node` count are tensors while a loop around it runs, the outermost that carries
    them from round to round, and `node` of it; None where there are none. `kinds` gets to know them as tensors."""
    return in_each_loop(source, node, lambda text, branch, loop: _counted(text, branch, loop, kinds, torch))


def in_each_loop(source: Source, node: ast.If, change: InLoop) -> tuple[Source, ast.If] | None:
    """What `change` makes of the text and of `node` for each `for` around it, the outermost first; None where it changes nothing."""
    found = None
    for depth in range(len(loops_around(source, node))):
        changed = change(source, node, loops_around(source, node)[depth])
        if changed is not None:
            source, node = found = changed
    return found


def _counted(
    source: Source, node: ast.If, loop: ast.For, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(loop) or exits(loop.body) & {"returns", "breaks"}:
        return None
    if loop.orelse:
        return None
    certain = certainly_bound_before(function, loop)
    names = [
        name
        for name in bound([*node.body, *node.orelse])
        if name in certain and _is_count(kinds.names.get(name)) and _only_counts(source, loop, name)
    ]
    if not names:
        return None
    for name in names:
        kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", "int64", 0))
    live = _read_back(source, function, loop, kinds, names)
    indent, nl = source.indent_of(loop), source.newline
    swaps = []
    for each in ast.walk(loop):
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in names:
            swaps.append(source.swap(each, f"{each.target.id} = {source.computed(each)}"))
        elif (
            isinstance(each, ast.Assign)
            and ast.unparse(each.targets[0]) in names
            and not isinstance(each.value, ast.BinOp)
        ):
            swaps.append(source.swap(each.value, f"{torch}.full((), {source.of(each.value)})"))
    begin = source.start(loop)
    starts = {name: start for name in names if (start := start_of(source, loop, name)) is not None}
    swaps += [source.swap(start, f"{torch}.full((), {source.of(start)})") for start in starts.values()]
    head = "".join(f"{name} = {torch}.full((), {name}){nl}{indent}" for name in names if name not in starts)
    end = source.span([loop])[1]
    tail = "".join(f"{nl}{indent}{name} = {name}.item()" for name in names if name in live)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= source.start(node))
    offset = source.start(node) + moved + len(head)
    changed = Source(
        replaced(source.text, [*swaps, Replacement(begin, begin, head), Replacement(end, end, tail)])
    )
    return changed, changed.branch_at(offset)


def start_of(source: Source, loop: ast.For | ast.While, name: str) -> ast.Constant | None:
    """The number that `name` is bound to before the loop, where nothing but names for other things stands in between."""
    block, index = source.block_of(loop)
    for each in reversed(block[:index]):
        if not (isinstance(each, ast.Assign) and [type(target) for target in each.targets] == [ast.Name]):
            return None
        if ast.unparse(each.targets[0]) == name:
            return each.value if isinstance(each.value, ast.Constant) else None
        if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(each)):
            return None
    return None


def _read_back(source: Source, function: Function, loop: ast.For, kinds: Kinds, names: list[str]) -> set[str]:
    """Those of `names` that must be ints behind the loop: the others are only compared, or meet tensors of floats."""
    live = Liveness(function).live_after(loop)
    block, index = source.block_of(loop)
    after = kinds.copy()
    after.run(block[index:])
    last = source.end(loop)
    found = set()
    for name in names:
        uses = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and source.start(each) >= last
        ]
        alone = source.parents[loop] is function and all(isinstance(each.ctx, ast.Load) for each in uses)
        if not (alone and all(_meets_floats(source, each, after) for each in uses)):
            found.add(name)
    return found & live


def _meets_floats(source: Source, use: ast.Name, kinds: Kinds) -> bool:
    parent = source.parents[use]
    if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Pow):
        other = kinds.of(parent.right if parent.left is use else parent.left)
        # A quotient is of floats, whatever the other is; elsewhere an int of any size could win over another's dtype.
        floats = isinstance(parent.op, ast.Div) or (other.dtype or "").startswith(("float", "bfloat"))
        return other.what == "tensor" and floats
    return isinstance(parent, ast.Compare) and meets_tensor(source, use, kinds)


def loops_around(source: Source, node: ast.stmt) -> list[ast.For]:
    """Each `for` around `node` in its function, the outermost first; none where there is a `while` among them."""
    function = source.enclosing_function(node)
    loops: list[ast.For] = []
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.While):
            return []
        if isinstance(each, ast.For):
            loops.insert(0, each)
    return loops


def _is_count(kind: Kind | None) -> bool:
    return kind is not None and kind.what in ("number", "size", "scalar") and kind.type == "int"


def _only_counts(source: Source, loop: ast.For, name: str) -> bool:
    """Whether the loop binds `name` only by adding ints to it, or taking them away, and reads it for that and to compare."""
    anew = False
    for each in ast.walk(loop):
        if isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)) and any(
            isinstance(one, ast.Name) and one.id == name for one in ast.walk(each)
        ):
            return False
        if not (isinstance(each, ast.Name) and each.id == name):
            continue
        parent = source.parents[each]
        if isinstance(parent, ast.AugAssign) and parent.target is each:
            if not (isinstance(parent.op, (ast.Add, ast.Sub)) and _is_step(parent.value, name)):
                return False
            anew = True
        elif isinstance(parent, ast.Assign):
            if parent.targets != [each] or not (_steps(parent.value, name) or _is_round(loop, parent.value)):
                return False
            anew = True
        elif isinstance(parent, ast.BinOp):
            outer = source.parents[parent]
            if not (isinstance(outer, ast.Assign) and _steps(parent, name)):
                return False
        elif not isinstance(parent, ast.Compare):
            return False
    return anew


def _is_round(loop: ast.For, node: ast.expr) -> bool:
    """Whether `node` is an int constant, or the number of the round of `loop` or of a loop in it."""
    if _is_int(node):
        return True
    for each in ast.walk(loop):
        if (
            isinstance(each, ast.For)
            and isinstance(each.iter, ast.Call)
            and isinstance(each.iter.func, ast.Name)
        ):
            number = None
            if each.iter.func.id == "range":
                number = each.target
            elif each.iter.func.id == "enumerate" and isinstance(each.target, ast.Tuple):
                number = each.target.elts[0]
            if isinstance(number, ast.Name) and isinstance(node, ast.Name) and number.id == node.id:
                return True
    return False


def _steps(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.Add, ast.Sub))
        and isinstance(node.left, ast.Name)
        and node.left.id == name
        and _is_step(node.right, name)
    )


def _is_step(node: ast.expr, name: str) -> bool:
    """An int constant, or `int(...)` of anything else than the counter `name`: a tensor takes it as the counter did."""
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int"
    return _is_int(node) or (made and all(getattr(each, "id", "") != name for each in ast.walk(node)))


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
