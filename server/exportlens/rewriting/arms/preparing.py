"""A branch is put into a simpler form first: what its arms do to lists, dicts and logs moves behind or before it.

Each step takes a Source with an `if` of it and gives both anew, or leaves them as they are; no step changes what
the code does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from exportlens.rewriting.arms.apart import kept_apart
from exportlens.rewriting.arms.asked_distributions import distributions_asked
from exportlens.rewriting.arms.cut_within import cut_within
from exportlens.rewriting.arms.fills_inside import filled_within
from exportlens.rewriting.arms.gradients import detached_inside
from exportlens.rewriting.arms.named_items import name_items
from exportlens.rewriting.arms.named_numbers import named_numbers
from exportlens.rewriting.arms.named_writes import set_behind
from exportlens.rewriting.arms.numbers_inside import (
    extremes_inside,
    members_inside,
    numbers_held,
    picked_elements,
    sizes_inside,
)
from exportlens.rewriting.arms.padded_rows import padded_by_zeros
from exportlens.rewriting.arms.picked_rows import picked_inside
from exportlens.rewriting.arms.set_one_by_one import set_one_by_one
from exportlens.rewriting.arms.told_outside import removed, starts_line, told_outside
from exportlens.rewriting.arms.written_methods import writers_behind, writers_written_out
from exportlens.rewriting.branches.chosen_numbers import chosen_as_tensors
from exportlens.rewriting.branches.continuations import appending_else
from exportlens.rewriting.branches.made_behind import made_behind
from exportlens.rewriting.branches.optional import made_where_used
from exportlens.rewriting.branches.returned_calls import unpacked_returns
from exportlens.rewriting.branches.returned_objects import returned_by_parts
from exportlens.rewriting.checks.assertions import sizes_checked
from exportlens.rewriting.code.inlining import Callee, callee_of, inlined, is_guard, negated
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import append_to_path, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.grown_in_arms import begun_in_arms
from exportlens.rewriting.loops.counters import counted_in_tensors
from exportlens.rewriting.loops.held_in_loops import held_between_rounds
from exportlens.rewriting.memory.read_elsewhere import readers
from exportlens.rewriting.memory.transposed import transposed_by_methods
from exportlens.rewriting.numbers.operands import compared, detached, kept, meets_tensor, tensor_behind
from exportlens.rewriting.sizes.indexing import found_selected, indexed_by_tensors
from exportlens.rewriting.sizes.squeezed_rows import squeezed_along_rows
from exportlens.rewriting.state.tallies import is_unread

Prepared = tuple[Source, ast.If]


def prepared(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If, Kinds]:
    """The `if` in the form that rewrites best, and the kinds just before it."""
    kinds = kinds.copy()
    for step in (
        unpacked_returns,
        returned_by_parts,
        padded_by_zeros,
        _transpose_by_methods,
        squeezed_along_rows,
        made_where_used,
        picked_inside,
        writers_written_out,
        _inline,
        _inline_readers,
        distributions_asked,
        set_one_by_one,
        set_behind,
        made_behind,
        named_numbers,
        detached_inside,
        sizes_checked,
        _detach_data,
        told_outside,
        _without_continue,
        _collect_appends,
        begun_in_arms,
        name_items,
        chosen_as_tensors,
        keep_tensors,
        counted_in_tensors,
        filled_within,
        cut_within,
        picked_elements,
        held_between_rounds,
        extremes_inside,
        sizes_inside,
        members_inside,
        numbers_held,
        found_selected,
        indexed_by_tensors,
        kept_apart,
    ):
        source, node = step(source, node, kinds, torch) or (source, node)
    return source, node, kinds


# --- methods that are called for what they do ---------------------------------------------------------------


def _inline(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    """`self.update(x)` as a statement of an arm becomes the method's own statements, and in what is one as the other leaves."""
    if not _method_calls(source, [node], kinds):
        # What follows `if done: return` is an arm as well.
        source, node = _as_arm(source, node, kinds) or (source, node)
    taken = every_name(source.tree)
    swaps = []
    for each, callee in [*_method_calls(source, [node], kinds), *writers_behind(source, node, kinds)]:
        text = inlined(source, each, taken, callee)
        if text is not None:
            swaps.append(source.swap(each, text))
    if not swaps:
        return None
    return read_again(replaced(source.text, swaps), source.start(node))


def _inline_readers(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    """`mean = self.moments()` of an arm that writes what the method reads becomes the method's own statements: what an arm
    writes is a copy, of which the method knows nothing."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    written = {
        path
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and _is_own(path := dotted(each) or "")
        and _is_written(source, each)
    }
    calls = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Assign)
        and _is_on_self(each.value)
        and any(readers(source, function, [each], path, kinds) for path in written)
    ]
    taken = every_name(source.tree)
    texts = [(each, inlined(source, each, taken, callee_of(source, each, kinds))) for each in calls]
    swaps = [source.swap(each, text) for each, text in texts if text is not None]
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


def _is_written(source: Source, node: ast.Attribute) -> bool:
    """Whether an attribute is bound, or written by a method in place."""
    used: ast.Attribute = node
    parent = source.parents[node]
    if isinstance(parent, ast.Attribute) and parent.attr == "data":
        used, parent = parent, source.parents[parent]
    method = isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    item = isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
    return method or item or not isinstance(used.ctx, ast.Load)


def _method_calls(source: Source, region: Iterable[ast.stmt], kinds: Kinds) -> list[tuple[ast.Expr, Callee]]:
    """The statements in `region` that call a method of the model, or of its parts, for what it does."""
    found = [
        (each, callee_of(source, each, kinds))
        for statement in region
        for each in ast.walk(statement)
        if isinstance(each, ast.Expr)
    ]
    return [(each, callee) for each, callee in found if callee is not None]


def _is_own(path: str | None) -> bool:
    """Whether `path` is `self.name`."""
    return path is not None and path.startswith("self.") and path.count(".") == 1


def _is_on_self(node: ast.expr) -> bool:
    """Whether `node` is `self.method(...)`."""
    return isinstance(node, ast.Call) and _is_own(dotted(node.func))


def _as_arm(source: Source, node: ast.If, kinds: Kinds) -> Prepared | None:
    """`if done: return` or `continue`, and what follows it in the function or round, as `if not done:`, where that calls methods for
    what they do and gives nothing back."""
    function = source.enclosing_function(node)
    if function is None or not starts_line(source, node):
        return None
    block, index = source.block_of(node)
    if not (is_guard(node) and block is function.body) and not _ends_round(source, node, block):
        return None
    following = block[index + 1 :]
    returns = any(isinstance(each, ast.Return) for one in following for each in ast.walk(one))
    if returns or not _method_calls(source, following, kinds):
        return None
    indent = source.indent_of(node)
    body = source.block(following, indent + source.indent_unit(), [])
    text = f"if {negated(source, node.test)}:{source.newline}{body}"
    whole = [Replacement(source.start(node), source.span([following[-1]])[1], text)]
    return read_again(replaced(source.text, whole), source.start(node))


def _ends_round(source: Source, node: ast.If, block: list[ast.stmt]) -> bool:
    """Whether `node` is `if done: continue` in `block`, the body of a loop."""
    loop = source.parents[node]
    return (
        isinstance(loop, (ast.For, ast.While))
        and block is loop.body
        and not node.orelse
        and [type(each) for each in node.body] == [ast.Continue]
    )


def _transpose_by_methods(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    return transposed_by_methods(source, node, kinds)


def _detach_data(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    """`t.data` that the arms read or write through becomes `t.detach()`, which shares the memory as well and is traced."""
    swaps = [
        source.swap(each, f"{source.of(each.value)}.detach()")
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and each.attr == "data"
        and isinstance(each.ctx, ast.Load)
        and dotted(each.value) is not None
        and kinds.of(each.value).what == "tensor"
    ]
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


# --- what nothing reads, and what goes on with the next round ---------------------------------------------------


def without_unread(source: Source, node: ast.If) -> Prepared:
    """The text without what the arms append to lists that nothing reads."""
    arms: list[ast.stmt] = [node]
    if exits([node]) != {"falls"}:
        # What follows becomes part of an arm.
        block, index = source.block_of(node)
        arms += block[index + 1 :]
    parts = [each for arm in arms for each in ast.walk(arm) if isinstance(each, ast.stmt)]
    swaps = [removed(source, each) for each in parts if is_unread(source, each)]
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else (source, node)


def _without_continue(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    return appending_else(source, node)


# --- lists of the outside ---------------------------------------------------------------------------


def _collect_appends(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    """Where each arm appends one value to the same list, the value is chosen first and appended behind the branch."""
    if exits([node]) != {"falls"} or not starts_line(source, node):
        return None
    columns = [_appended(node.body), _appended(node.orelse)]
    targets = [
        name
        for name in columns[0]
        if all(len(own.get(name, [])) == len(columns[0][name]) for own in columns)
        and _only_appended(source, node, name, [each for own in columns for each in own[name]])
    ]
    if not targets:
        return None
    taken, swaps, after = every_name(source.tree), [], []
    indent = source.indent_of(node)
    for target in targets:
        for number in range(len(columns[0][target])):
            name = fresh("appended", taken)
            after.append(f"{indent}{target}.append({name})")
            for statement in (each for own in columns for each in own[target][number]):
                assert isinstance(statement.value, ast.Call)
                swaps.append(source.swap(statement, f"{name} = {_value(source, statement.value.args[0])}"))
    end = source.span([node])[1]
    swaps.append(Replacement(end, end, source.newline + source.newline.join(after)))
    return read_again(replaced(source.text, swaps), source.start(node))


def _appended(block: list[ast.stmt]) -> dict[str, list[list[ast.Expr]]]:
    """The lists to which each way through `block` appends as often, and for each time the statements that do, one of each way."""
    found: dict[str, list[list[ast.Expr]]] = {}
    for each in block:
        appended = append_to_path(each)
        if appended is not None and isinstance(each, ast.Expr):
            found.setdefault(appended[0], []).append([each])
        elif isinstance(each, ast.If):
            ways = [_appended(each.body), _appended(each.orelse)]
            for name in ways[0]:
                if len(ways[0][name]) == len(ways[1].get(name, [])):
                    pairs = zip(ways[0][name], ways[1][name], strict=True)
                    found.setdefault(name, []).extend([*one, *other] for one, other in pairs)
    return found


def _only_appended(source: Source, node: ast.If, target: str, calls: Sequence[list[ast.Expr]]) -> bool:
    """Whether nothing but `calls` looks at the list in the arms, or takes an item of it before its way appends."""
    appends = [each for own in calls for each in own]
    allowed = {
        id(each.value.func.value)
        for each in appends
        if isinstance(each.value, ast.Call) and isinstance(each.value.func, ast.Attribute)
    }
    head = target.split(".")[0]
    if head != "self" and head in bound(node):
        return False
    return all(
        id(each) in allowed or _is_item_before(source, node, each, appends)
        for each in ast.walk(node)
        if isinstance(each, (ast.Name, ast.Attribute)) and dotted(each) == target
    )


def _is_item_before(source: Source, node: ast.If, use: ast.expr, appends: Sequence[ast.Expr]) -> bool:
    """Whether `use` is a list of which an item is taken, or which is asked for its length, and nothing was appended on the way there."""
    parent = source.parents[use]
    item = isinstance(parent, ast.Subscript) and parent.value is use and isinstance(parent.ctx, ast.Load)
    if not item and not (isinstance(parent, ast.Call) and dotted(parent.func) == "len"):
        return False
    inner: ast.AST = use
    for outer in source.ancestors(use):
        if isinstance(inner, ast.stmt) and inner is not node:
            block, at = source.block_of(inner)
            if any(each in appends for before in block[:at] for each in ast.walk(before)):
                return False
        if outer is node:
            return True
        if isinstance(outer, (ast.For, ast.While, ast.FunctionDef, ast.Lambda)):
            return False
        inner = outer
    return False


def _value(source: Source, node: ast.expr) -> str:
    text = source.of(node)
    return f"({text})" if isinstance(node, ast.NamedExpr) else text


# --- numbers read out of tensors ------------------------------------------------------------------------------


def keep_tensors(source: Source, node: ast.If, kinds: Kinds, torch: str) -> Prepared | None:
    """`n = t.item()` that only meets tensors and comparisons stays the tensor `t`: torch.cond does not trace
    arithmetic of Python numbers that come from data."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    swaps: list[Replacement] = []
    read = reads(node.body) | reads(node.orelse)
    if exits([node]) != {"falls"}:
        # What follows moves into the branch's functions.
        read |= reads(function.body)
    for name in sorted(read):
        kind = kinds.names.get(name)
        if kind is None or kind.what != "scalar":
            continue
        stores = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        value = _bound_to(source, stores[0]) if len(stores) == 1 else None
        if value is None:
            continue
        made = _numbers_behind(value, kinds)
        uses = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]
        divided = _in_double(value, made, kinds)
        if made and divided and any(_meets_number(source, each, kinds) for each in uses):
            continue
        if made and all(meets_tensor(source, each, kinds) for each in uses):
            for number, tensor in made:
                text = kept(source, tensor, kinds, uses)
                # Python divides in double precision.
                text = f"{primary(text)}.double()" if divided else text
                computed = number is not value or any(_is_computed_with(source, each, kinds) for each in uses)
                typed = _of_type(number, text, tensor, kinds, computed)
                swaps.append(source.swap(number, text if divided else typed))
            swaps += [source.swap(each, f"{name}.double()") for each in uses if compared(source, each, kinds)]
            dtype = kinds.of(made[0][1]).dtype if len(made) == 1 and made[0][0] is value else None
            kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", dtype, 0))
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(source.parents[each], (ast.BinOp, ast.UnaryOp)):
            behind = tensor_behind(each, kinds)
            if (
                behind is not None
                and meets_tensor(source, each, kinds)
                and not _widens(source, each, behind, kinds)
            ):
                text = detached(source, behind, kinds, [each])
                widened = f"{primary(text)}.double()" if compared(source, each, kinds) else text
                swaps.append(source.swap(each, widened))
    if not swaps:
        return None
    begin = source.start(node)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    return read_again(replaced(source.text, swaps), begin + moved)


def _widens(source: Source, number: ast.expr, tensor: ast.expr, kinds: Kinds) -> bool:
    """Whether `tensor`, in the place of the number that is read out of it, may make what it is computed with another dtype: among
    tensors without dimensions the wider one wins, where a number of Python never does."""
    parent, dtype = source.parents[number], kinds.of(tensor).dtype
    if dtype in (None, "float32") or not isinstance(parent, ast.BinOp):
        return False
    other = kinds.of(parent.right if parent.left is number else parent.left)
    return other.dtype != dtype and not other.rank


def _in_double(value: ast.expr, made: list[tuple[ast.expr, ast.expr]], kinds: Kinds) -> bool:
    """Whether the arithmetic in `value` needs double precision to give what Python's gives."""
    whole = all((kinds.of(tensor).dtype or "").startswith(("int", "uint", "bool")) for _, tensor in made)
    exact = (ast.FloorDiv, ast.Mod) if whole else ()
    return any(
        isinstance(each, (ast.Div, ast.FloorDiv, ast.Mod)) and not isinstance(each, exact)
        for each in ast.walk(value)
    )


def _of_type(number: ast.expr, text: str, tensor: ast.expr, kinds: Kinds, in_arithmetic: bool) -> str:
    """The tensor of what `float(t)` gives: beside tensors of integers a float decides the dtype. Bools that are made ints, or
    computed with, are numbers to Python."""
    dtype = kinds.of(tensor).dtype or ""
    how = ast.unparse(number.func) if isinstance(number, ast.Call) else ""
    if how == "float" and dtype.startswith(("int", "uint", "bool")):
        return f"{primary(text)}.float()"
    return f"{primary(text)}.long()" if dtype == "bool" and (how == "int" or in_arithmetic) else text


def _is_computed_with(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether Python computes with the number and another number."""
    parent = source.parents[node]
    if isinstance(parent, ast.BinOp):
        return kinds.of(parent.right if parent.left is node else parent.left).what != "tensor"
    return isinstance(parent, ast.UnaryOp) and not isinstance(parent.op, ast.Not)


def _meets_number(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the number meets a tensor without dimensions, or one of integers, in arithmetic: a tensor of double precision
    would decide the dtype there."""
    parent = source.parents[node]
    while isinstance(parent, (ast.BinOp, ast.UnaryOp)):
        if isinstance(parent, ast.BinOp):
            other = kinds.of(parent.right if parent.left is node else parent.left)
            if other.what == "tensor":
                return other.rank == 0 or (other.dtype or "").startswith(("int", "uint", "bool"))
        node, parent = parent, source.parents[parent]
    return False


def _bound_to(source: Source, target: ast.expr) -> ast.expr | None:
    """The expression that an assignment binds the name `target` to; None where it is no plain one."""
    statement: ast.AST = source.parents[target]
    index = None
    if isinstance(statement, ast.Tuple):
        index = statement.elts.index(target)
        statement = source.parents[statement]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if index is None:
        return statement.value
    pair, values = statement.targets[0], statement.value
    if not (isinstance(pair, ast.Tuple) and isinstance(values, ast.Tuple)):
        return None
    same = len(pair.elts) == len(values.elts) and not any(
        isinstance(each, ast.Starred) for each in [*pair.elts, *values.elts]
    )
    return values.elts[index] if same else None


# What Python's operators do to a number read out of a tensor, and torch's to the tensor alike.
_ALIKE = (ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv, ast.Div)


def _numbers_behind(node: ast.expr, kinds: Kinds) -> list[tuple[ast.expr, ast.expr]]:
    """The reads of numbers that `node` is made of, with constants, each with its tensor; empty where it is more."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ALIKE):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if kinds.of(other).what in ("number", "size"):
                return _numbers_behind(one, kinds)
        both = [_numbers_behind(each, kinds) for each in (node.left, node.right)]
        return [*both[0], *both[1]] if all(both) else []
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "abs"
        and len(node.args) == 1
    ):
        return _numbers_behind(node.args[0], kinds)
    tensor = tensor_behind(node, kinds, whole=True)
    return [] if tensor is None else [(node, tensor)]
