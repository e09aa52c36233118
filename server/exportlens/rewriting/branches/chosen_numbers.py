"""Numbers that a branch chooses among a constant and what was read out of a tensor: they stay tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import Const
from exportlens.rewriting.branches.mixed_results import asks_type
from exportlens.rewriting.code.infinity import infinity
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import assigned_pairs, bound
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import SEVERAL, UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.row_sums import OF_ELEMENTS, shaped_like_rows, summed_rows
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.numbers.operands import compared, kept, meets_tensor, tensor_behind
from exportlens.source.walking import walk


def chosen_as_tensors(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where `n = t.item()` and the `n = 1` in arms of `node` are tensors, and `node` of it; None where there is no
    such number, or where it is more than an operand of tensors and a side of comparisons."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    swaps: list[Replacement] = []
    block, index = source.block_of(node)
    following = block[index + 1 :] if "continues" in exits([node]) else []
    for name in bound([*node.body, *node.orelse, *following]):
        known = kinds.names.get(name)
        if known is not None and known.what == "scalar":
            swaps += _kept(source, function, node, name, kinds, torch)
        elif known is not None and (
            (known.what == "number" and isinstance(known.value, Const)) or known.type == SEVERAL
        ):
            swaps += _summed(source, function, name, kinds, torch)
    if not swaps:
        return None
    swaps = list(dict.fromkeys(swaps))
    begin = source.start(node)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    changed = Source(replaced(source.text, swaps))
    return changed, next(
        each
        for each in walk(changed.tree)
        if isinstance(each, ast.If) and changed.start(each) == begin + moved
    )


def summed(source: Source, loop: ast.While, kinds: Kinds, torch: str) -> tuple[Source, ast.While]:
    """The text where the sums that `loop` adds to start as tensors, and `loop` of it. `kinds` get to know them as tensors."""
    function = source.enclosing_function(loop)
    swaps: list[Replacement] = []
    for name in bound(loop.body) if function is not None else ():
        known = kinds.names.get(name)
        if (
            function is not None
            and known is not None
            and known.what == "number"
            and isinstance(known.value, Const)
        ):
            swaps += _summed(source, function, name, kinds, torch)
    if not swaps:
        return source, loop
    swaps = list(dict.fromkeys(swaps))
    begin = source.start(loop)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    changed = Source(replaced(source.text, swaps))
    return changed, next(
        each
        for each in walk(changed.tree)
        if isinstance(each, ast.While) and changed.start(each) == begin + moved
    )


def _names(function: Function, name: str) -> tuple[list[ast.Name], list[ast.Name]]:
    """Where the function binds `name`, and where it reads it."""
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    return (
        [each for each in same if not isinstance(each.ctx, ast.Load)],
        [each for each in same if isinstance(each.ctx, ast.Load)],
    )


def _constant(source: Source, target: ast.Name) -> ast.Constant | None:
    """The int or float that `target` is bound to, alone or beside others (`total, n = 0.0, 0`)."""
    parent = source.parents[target]
    value = parent.value if isinstance(parent, ast.Assign) and target in parent.targets else None
    if isinstance(parent, ast.Tuple):
        statement = source.parents[parent]
        given = (
            statement.value if isinstance(statement, ast.Assign) and statement.targets == [parent] else None
        )
        plain = isinstance(given, ast.Tuple) and not any(
            isinstance(each, ast.Starred) for each in (*given.elts, *parent.elts)
        )
        if isinstance(given, ast.Tuple) and plain and len(given.elts) == len(parent.elts):
            value = given.elts[parent.elts.index(target)]
    return value if isinstance(value, ast.Constant) and type(value.value) in (int, float) else None


def _kept(
    source: Source, function: Function, node: ast.If, name: str, kinds: Kinds, torch: str
) -> list[Replacement]:
    stores, loads = _names(function, name)
    first, *others = sorted(stores, key=source.start)
    statement = source.parents[first]
    if not isinstance(statement, ast.Assign) or statement.targets != [first]:
        return []
    tensor = tensor_behind(statement.value, kinds, whole=True)
    if tensor is None or source.start(statement) > source.start(node):
        return []
    dtype = kinds.of(tensor).dtype
    whole = (dtype or "").startswith(("int", "uint"))
    if dtype is not None and not whole and not dtype.startswith("float"):
        return []
    inside = [each for each in others if any(each is one for one in walk(node))]
    constants = [_constant(source, each) for each in others]
    if len(inside) != len(others) or not all(meets_tensor(source, each, kinds) for each in loads):
        return []
    swaps, divided = [], all(_is_divided_or_compared(source, each) for each in loads)
    to_float = False
    for each in constants:
        if each is None:
            return []
        if isinstance(each.value, float):
            # Divided by, an int does what the equal float does.
            equal = each.value.is_integer()
            if dtype is None and not (equal and divided):
                return []
            to_float = to_float or (whole and not equal)
            if whole and not (divided and (equal or _compared_before(source, node, loads))):
                return []
        swaps.append(source.swap(each, f"{torch}.full_like({name}, {source.of(each)})"))
    text = kept(source, tensor, kinds, loads)
    dtype = "float32" if to_float else dtype
    swaps.append(source.swap(statement.value, f"{primary(text)}.float()" if to_float else text))
    swaps += [source.swap(each, f"{name}.double()") for each in loads if compared(source, each, kinds)]
    kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", dtype, 0))
    return swaps


def _is_divided_or_compared(source: Source, node: ast.expr) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.Compare) or (
        isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)
    )


def _compared_before(source: Source, node: ast.If, loads: list[ast.Name]) -> bool:
    """Whether the number is compared by `node` and before it only, where it is the whole number that was read."""
    return all(
        source.start(each) < source.start(node.body[0])
        for each in loads
        if isinstance(source.parents[each], ast.Compare)
    )


def _summed(
    source: Source, function: Function, name: str, kinds: Kinds, torch: str, others: bool = True
) -> list[Replacement]:
    """`total = 0` that arms add numbers of float tensors to, or bind to one, and that meets float tensors afterwards, starts as a
    tensor."""
    stores, loads = _names(function, name)
    first, *updates = sorted(stores, key=source.start)
    start = _constant(source, first) or _infinity(source, first)
    if (
        start is None
        or not updates
        or source.block_of(source.enclosing_statement(first))[0] is not function.body
    ):
        return []
    together = source.parents[first]
    if isinstance(together, ast.Assign) and len(together.targets) > 1 and others:
        # One tensor under several names: each of them must be such a sum, and none may write into it.
        names = [each.id if isinstance(each, ast.Name) else "" for each in together.targets]
        if any(isinstance(source.parents[each], ast.AugAssign) for each in updates) or not all(
            name == each or (each and _summed(source, function, each, kinds.copy(), torch, False))
            for each in names
        ):
            return []
    inside: set[ast.AST] = set()
    dtypes: set[str | None] = set()
    rows: set[str] = set()
    for each in updates:
        statement = source.enclosing_statement(each)
        if dtypes and _is_share(statement, each):
            inside |= {one for one in walk(statement) if isinstance(one, ast.Name) and one.id == name}
            continue
        added = _added(statement, each) or _bound_to(statement, each)
        reading = (one for term in added for one in walk(term) if isinstance(one, ast.Name))
        if not added or any(one.id == name for one in reading):
            return []
        if isinstance(statement, ast.Assign):
            inside |= {
                one for one in walk(statement.value) if isinstance(one, ast.expr) and _is_name(one, name)
            }
        now = kinds_before(function, statement, kinds)
        if (
            not _added(statement, each)
            and _is_whole(start)
            and any(now.of(term).dtype is None for term in added)
        ):
            # Beside a whole number that may be one as well.
            return []
        # A number beside what is added (`gain + (1 - error)`) leaves a tensor of floats one.
        summed = [kind for kind in map(now.of, added) if kind.what != "number"] or [now.of(added[0])]
        if any(kind.what == "tensor" and kind.rank is None for kind in summed):
            rows.add(summed_rows(source, function, each, added, now) or "")
        elif any(kind.rank != 0 for kind in summed):
            return []
        for kind in summed:
            if kind.what != "tensor" or kind.dtype not in (None, "float", "float32"):
                return []
            dtypes.add(kind.dtype)
    if rows and (len(rows) > 1 or "" in rows or _is_whole(start)):
        return []
    rest = [each for each in loads if each not in inside]
    if not rest or not all(_takes_tensor(source, function, each, start, kinds) for each in rest):
        return []
    if rows:
        kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", None, None))
        return [source.swap(start, shaped_like_rows(rows.pop(), source.of(start)))]
    number = repr(float(ast.unparse(start))) if isinstance(start, ast.Constant) else source.of(start)
    if dtypes <= {"float", "float32"}:
        kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", "float32", 0))
        return [source.swap(start, f"{torch}.full((), {number})")]
    # What is made of an argument mostly has the dtype of its sum, which is another one for ints and bools.
    kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", None, 0))
    like = _read_by(source, function, updates, kinds)
    text = f"{like}.new_zeros(()).sum() + {source.of(start)}" if like else f"{torch}.full((), {number})"
    return [source.swap(start, text)]


def _is_share(statement: ast.AST, target: ast.Name) -> bool:
    """Whether `statement` divides the number `target` by another name, or by a number."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    operator = statement.op if isinstance(statement, ast.AugAssign) else getattr(value, "op", None)
    divisor = value
    if isinstance(statement, ast.Assign):
        if statement.targets != [target] or not isinstance(value, ast.BinOp):
            return False
        divisor = value.right
        if not isinstance(value.left, ast.Name) or value.left.id != target.id:
            return False
    plain = isinstance(divisor, ast.Constant) or (isinstance(divisor, ast.Name) and divisor.id != target.id)
    return isinstance(operator, ast.Div) and plain


def _added(statement: ast.AST, target: ast.Name) -> list[ast.expr]:
    """What `statement` adds to the number `target`, or subtracts from it; empty where it does anything else."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        return [statement.value]
    if not isinstance(statement, ast.Assign) or statement.targets != [target]:
        return []
    terms = list(_terms(statement.value, True))
    same = [is_added for each, is_added in terms if _is_name(each, target.id)]
    return [each for each, _ in terms if not _is_name(each, target.id)] if same == [True] else []


def _bound_to(statement: ast.AST, target: ast.Name) -> list[ast.expr]:
    """What `statement` binds `target` to, alone or beside others."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    return [value for one, value in assigned_pairs(statement) if one is target]


def _infinity(source: Source, target: ast.Name) -> ast.expr | None:
    """The infinity that `target` is bound to, alone or beside others."""
    given = _bound_to(source.enclosing_statement(target), target)
    return given[0] if given and infinity(given[0]) is not None else None


def _terms(value: ast.expr, is_added: bool) -> Iterator[tuple[ast.expr, bool]]:
    """The terms of a sum, and whether they are added or subtracted."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        yield from _terms(value.left, is_added)
        yield from _terms(value.right, is_added == isinstance(value.op, ast.Add))
    else:
        yield value, is_added


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _takes_tensor(source: Source, function: Function, node: ast.Name, start: ast.expr, kinds: Kinds) -> bool:
    """Whether the sum may be a tensor at `node`, where nothing was added as well: beside a float tensor, as a result, or where
    it gets another name, of which nothing asks whether it is a tensor."""
    now = kinds_before(function, source.enclosing_statement(node), kinds)
    inner: ast.AST = node
    outer = source.parents[node]
    while (
        isinstance(outer, (ast.Tuple, ast.List, ast.Dict))
        or _is_sign(outer)
        or (isinstance(outer, ast.IfExp) and outer.test is not inner)
        or (
            isinstance(outer, ast.BinOp)
            and isinstance(outer.op, (ast.Mult, ast.Div, ast.Add, ast.Sub))
            and _may_be_number(now.of(outer.right if outer.left is inner else outer.left))
        )
    ):
        inner, outer = outer, source.parents[outer]
    if isinstance(outer, ast.Return):
        return True
    if not _is_whole(start) or (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div)):
        # torch takes no number of Python there, and a number has no such method: where nothing was added it would raise.
        if isinstance(outer, ast.Call) and inner in outer.args[:1]:
            module, _, name = (now.qualified(outer.func) or "").rpartition(".")
            if module in ("torch", "torch.special") and name in OF_ELEMENTS:
                return True
        if isinstance(outer, ast.Attribute) and outer.attr in OF_ELEMENTS:
            called = source.parents[outer]
            return isinstance(called, ast.Call) and called.func is outer
    if isinstance(outer, ast.Compare) and _is_tested(source, outer):
        # It decides as the number would.
        return len(outer.ops) == 1 and not isinstance(outer.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
    if isinstance(outer, ast.Assign) and all(isinstance(each, ast.Name) for each in outer.targets):
        return not any(asks_type(source, ast.unparse(each)) for each in (node, *outer.targets))
    if isinstance(inner, ast.IfExp) and isinstance(outer, ast.BinOp):
        beside = now.of(outer.right if outer.left is inner else outer.left).dtype or ""
        return not beside.startswith(("int", "uint", "bool"))
    kind = _met(source, node, now)
    is_float = (kind.dtype or "").startswith(("float", "bfloat"))
    return kind.what == "tensor" and (is_float or (kind.dtype is None and not _is_whole(start)))


def _is_sign(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd))


def _is_tested(source: Source, node: ast.expr) -> bool:
    """Whether a branch asks for the truth of `node`, alone or among others."""
    inner: ast.AST = node
    outer = source.parents[node]
    while isinstance(outer, ast.BoolOp) or (isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not)):
        inner, outer = outer, source.parents[outer]
    return isinstance(outer, (ast.If, ast.IfExp)) and outer.test is inner


def _is_whole(start: ast.expr) -> bool:
    return isinstance(start, ast.Constant) and type(start.value) is int


def _may_be_number(kind: Kind) -> bool:
    """Whether it is a number, or one until something was added to it."""
    return kind.what in ("number", "size", "scalar") or kind.type == SEVERAL


def _read_by(source: Source, function: Function, updates: list[ast.Name], kinds: Kinds) -> str | None:
    """The argument of the function that what is added is made of, where it is made of no other tensor."""
    arguments = {each.arg for each in function.args.args}
    found: list[str] = []
    for each in updates:
        values = _added(source.parents[each], each)
        now = kinds_before(function, source.enclosing_statement(each), kinds)
        for one in (part for value in values for part in walk(value)):
            if isinstance(one, ast.Name) and (now.of(one).what == "tensor" or one.id == "self"):
                found.append(one.id)
    own = {name for name in found if name in arguments and name not in bound(function.body)}
    return own.pop() if len(own) == 1 and own == set(found) else None


def _met(source: Source, node: ast.expr, kinds: Kinds) -> Kind:
    """What the number, or what is computed of it and other numbers, is an operand beside."""
    parent = source.parents[node]
    while isinstance(parent, ast.BinOp):
        kind = kinds.of(parent.right if parent.left is node else parent.left)
        if kind.what != "number" or not isinstance(parent.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            return kind
        node, parent = parent, source.parents[parent]
    return UNKNOWN_KIND
