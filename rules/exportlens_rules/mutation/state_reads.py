"""How the code around a write of an attribute, or of an item of it, reads the same: its values, or only what it looks like."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.inference.classes import class_order
from exportlens.inference.values import ClassValue, Instance
from exportlens.rewriting.code.names import assigned_pairs

# New tensors in the shape, or of the type, of another.
ALIKE = frozenset(
    {f"{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")}
    | {f"new_{name}" for name in ("zeros", "ones", "empty", "full", "tensor")}
)

# Where a tensor is, and what it looks like, is not what it holds.
FACTS = frozenset(
    {"device", "dtype", "shape", "ndim", "layout", "is_cuda", "requires_grad", "size", "dim", "numel"}
)


def reads(value: ast.AST, targets: list[str]) -> bool:
    """Whether an expression reads the values of the very attribute or item."""
    if isinstance(value, ast.Attribute) and value.attr in FACTS and ast.dump(value.value) in targets:
        return False
    if isinstance(value, (ast.Attribute, ast.Subscript, ast.Name, ast.Call)) and ast.dump(value) in targets:
        return True
    if isinstance(value, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in value.ops):
        return False
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ALIKE:
        alike = value.args[1:] if value.func.attr.endswith("_like") else value.args
        return any(reads(inner, targets) for inner in [*alike, *value.keywords])
    return any(reads(inner, targets) for inner in ast.iter_child_nodes(value))


# What gives the same values again: `self.grid = self.grid.to(x.device)`.
_CONVERSIONS = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "cuda", "cpu", "contiguous", "detach"}
)


def converts(value: ast.expr, targets: list[str]) -> bool:
    """Whether `value` is one of `targets` (dumped), or only converted from it."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _CONVERSIONS:
            return False
        value = value.func.value
    return ast.dump(value) in targets


def loaded(target: ast.Attribute | ast.Subscript) -> ast.Attribute | ast.Subscript:
    """The same attribute or item as it is read."""
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Attribute(target.value, target.attr, ast.Load())


_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def read_before(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    statement: ast.Assign,
    target: ast.Attribute | ast.Subscript,
) -> bool:
    """Whether `function` reads the values that the attribute (or item) had when it was called before `statement` writes it for the next call.

    False where it is not known that the write is for the next call: where it is bound again afterwards, where only what the attribute
    was decides about the write (a table that is made anew when it is too short), and where what is bound is what was read, converted.
    """
    path = ast.dump(loaded(target))
    around = parents(function)
    names = _names_of(function, statement, path)
    if any(
        _mentions(test, path, names)
        and not _finds_it_there(test, holds, path, names)
        and not weighs(test, path)
        for test, holds in _tests_for(statement, around)
    ):
        return False
    if _only_converted(function, statement, path) or _bound_again(function, statement, path, around):
        return False
    return any(
        _reads_values(each, path)
        and not _converts_it(each, path)
        and not certainly_written(function, each, path, around)
        for each in _statements(function)
        if each.lineno < statement.lineno or each is statement
    )


def reads_through(function: ast.AST, statement: ast.stmt, value: ast.expr, path: str) -> bool:
    """Whether `value`, which `statement` binds, is computed by names of what was computed from the attribute above it:
    `total = self.count + n` and `self.count = total % size`."""
    around = parents(function)
    above = {function, *_above(statement, around)}
    names: dict[str, str] = {}
    for each in sorted(_statements(function), key=lambda one: (one.lineno, one.col_offset)):
        if each.lineno >= statement.lineno:
            break
        targets, part = _bound_names(each)
        if part is None:
            continue
        if reads(part, [path, *names.values()]) and not certainly_written(function, each, path, around):
            names |= {name: ast.dump(ast.Name(name, ast.Load())) for name in targets}
        elif not isinstance(each, ast.AugAssign) and _in_one_block(around[each], each, statement, above):
            # What is bound on one way only leaves the name what it was on the other.
            names = {name: dumped for name, dumped in names.items() if name not in targets}
    return bool(names) and reads(value, list(names.values()))


def _bound_names(statement: ast.stmt) -> tuple[list[str], ast.expr | None]:
    """The names that an assignment binds to what it computes, and that."""
    if isinstance(statement, ast.Assign):
        names = [one.id for one in statement.targets if isinstance(one, ast.Name)]
        return names, statement.value if names else None
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and isinstance(statement.target, ast.Name):
        return [statement.target.id], statement.value
    return [], None


def renewed_otherwise(
    function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.Assign, target: ast.Attribute
) -> bool:
    """Whether `statement` begins the attribute on the way of an `if` that found None, and the other way computes it from itself.

    False where the same call makes it None before, or binds it again after both ways.
    """
    path = ast.dump(loaded(target))
    around = parents(function)
    branch = around.get(statement)
    found_none = _finds_none(branch.test, path) if isinstance(branch, ast.If) else None
    if found_none is None or not isinstance(branch, ast.If):
        return False
    begins = branch.body if found_none else branch.orelse
    other = branch.orelse if begins is branch.body else branch.body
    if statement not in begins or certainly_written(function, branch, path, around):
        return False
    return not _bound_again(function, branch, path, around) and any(
        isinstance(each, ast.Assign)
        and _writes(each, path)
        and reads(each.value, [path])
        and not converts(each.value, [path])
        for each in other
    )


def _finds_none(test: ast.expr, path: str) -> bool | None:
    """Whether `test` comes out true where the attribute is None, or (False) false; None where it asks something else."""
    if isinstance(test, ast.BoolOp):
        wanted = isinstance(test.op, ast.Or)
        return wanted if any(_finds_none(each, path) is wanted for each in test.values) else None
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not _is_path(test.left, path):
        return None
    right = test.comparators[0]
    if not isinstance(right, ast.Constant) or right.value is not None:
        return None
    return isinstance(test.ops[0], ast.Is)


def parents(function: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}


def _above(node: ast.AST, around: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in around:
        node = around[node]
        yield node


def _tests_for(statement: ast.stmt, around: dict[ast.AST, ast.AST]) -> Iterator[tuple[ast.expr, bool]]:
    """The tests that decide whether `statement` is reached, and how each must come out, those of an `if` above that leaves included."""
    node: ast.AST = statement
    for parent in _above(statement, around):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, [])
            if not (isinstance(block, list) and node in block):
                continue
            if isinstance(parent, (ast.If, ast.While)):
                yield parent.test, name == "body"
            for each in block[: block.index(node)]:
                if isinstance(each, ast.If) and isinstance(each.body[-1], _LEAVES):
                    yield each.test, False
                elif isinstance(each, ast.If):
                    inside = [one for one in ast.walk(each) if isinstance(one, ast.If) and one is not each]
                    yield from ((one.test, False) for one in inside if isinstance(one.body[-1], ast.Return))
        node = parent


def _finds_it_there(test: ast.expr, holds: bool, path: str, names: set[str]) -> bool:
    """Whether `test`, come out as `holds`, tells no more than that the attribute is not None."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.IsNot if holds else ast.Is)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
        and _mentions(test.left, path, names)
    )


# What is closer than this is the same again: a result that was kept is as good as one computed anew.
_CLOSE = 1e-4


def weighs(test: ast.expr, path: str) -> bool:
    """Whether `test` asks which is more, the attribute, or what is computed of its values (`(x - self.last).abs().max() > 0.5`), or
    something else: then its value counts, not whether it is there."""
    return any(
        isinstance(each, ast.Compare)
        and any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in each.ops)
        and any(
            _is_path(operand, path) or _values_of(operand, path) for operand in (each.left, *each.comparators)
        )
        and not any(_is_close_to_zero(operand) for operand in (each.left, *each.comparators))
        for each in ast.walk(test)
    )


def _values_of(operand: ast.expr, path: str) -> bool:
    """Whether `operand` is computed of the values of the attribute, and not of how many there are."""
    counted = any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and any(_is_path(one, path) for one in each.args)
        for each in ast.walk(operand)
    )
    return not counted and reads(operand, [path])


def _is_close_to_zero(operand: ast.expr) -> bool:
    value = operand.value if isinstance(operand, ast.Constant) else None
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _CLOSE


def _statements(function: ast.AST) -> list[ast.stmt]:
    return [each for each in ast.walk(function) if isinstance(each, ast.stmt) and each is not function]


def _is_path(node: ast.AST, path: str) -> bool:
    return isinstance(node, (ast.Attribute, ast.Subscript)) and ast.dump(loaded(node)) == path


def _names_of(function: ast.AST, statement: ast.stmt, path: str) -> set[str]:
    """The names that are bound, above `statement`, to the attribute or what is made of it."""
    names: set[str] = set()
    for each in sorted(_statements(function), key=lambda one: one.lineno):
        if (
            isinstance(each, ast.Assign)
            and each.lineno < statement.lineno
            and _mentions(each.value, path, names)
        ):
            names |= {
                one.id for target in each.targets for one in ast.walk(target) if isinstance(one, ast.Name)
            }
    return names


def _mentions(node: ast.AST, path: str, names: set[str]) -> bool:
    return any(
        _is_path(each, path) or (isinstance(each, ast.Name) and each.id in names) for each in ast.walk(node)
    )


def _only_converted(function: ast.AST, statement: ast.Assign, path: str) -> bool:
    """Whether what `statement` binds is the attribute itself, moved or converted, under whatever names."""
    same = [path]
    for each in sorted(_statements(function), key=lambda one: one.lineno):
        if each.lineno >= statement.lineno or not isinstance(each, ast.Assign):
            continue
        bound = {
            ast.dump(ast.Name(one.id, ast.Load())): one is target and converts(value, same)
            for target, value in assigned_pairs(each)
            for one in ast.walk(target)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        same = [one for one in same if one not in bound] + [name for name, kept in bound.items() if kept]
    return converts(statement.value, same)


def _converts_it(each: ast.stmt, path: str) -> bool:
    """Whether a statement does nothing but move or convert what the attribute holds."""
    return isinstance(each, ast.Assign) and _writes(each, path) and converts(each.value, [path])


def _writes(each: ast.stmt, path: str) -> bool:
    targets: Sequence[ast.expr] = ()
    if isinstance(each, ast.Assign):
        targets = each.targets
    elif isinstance(each, (ast.AnnAssign, ast.AugAssign)):
        targets = [each.target]
    return any(_is_set_whole(one, path) for target in targets for one in ast.walk(target))


def _is_set_whole(target: ast.AST, path: str) -> bool:
    """Whether all of the attribute is set: `self.mem[mask] = 0` leaves the rest of it as it was."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)) or isinstance(target.ctx, ast.Load):
        return False
    if isinstance(target, ast.Subscript) and ast.unparse(target.slice) in (":", "..."):
        return _is_path(target.value, path)
    return _is_path(target, path)


def _bound_again(function: ast.AST, statement: ast.stmt, path: str, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether another write follows `statement`, whatever else happens in between; one that only moves or converts what is there leaves
    the values that `statement` has bound."""
    above = set(_above(statement, around))
    return any(
        each.lineno > statement.lineno
        and _writes(each, path)
        and not _converts_it(each, path)
        and around[each] in above
        for each in _statements(function)
    )


def certainly_written(
    function: ast.AST, statement: ast.stmt, path: str, around: dict[ast.AST, ast.AST]
) -> bool:
    """Whether a write stands before `statement` that it cannot be reached without, as far as blocks tell."""
    above = {function, *_above(statement, around)}
    return any(
        each.lineno < statement.lineno
        and _writes(each, path)
        and _in_one_block(around[each], each, statement, above)
        for each in _statements(function)
    )


def _in_one_block(parent: ast.AST, write: ast.stmt, statement: ast.stmt, above: set[ast.AST]) -> bool:
    """Whether a write in a block of `parent` is in the block that leads to `statement`."""
    if parent not in above:
        return False
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, [])
        if isinstance(block, list) and write in block:
            return any(each is statement or each in above for each in block)
    return False


def _reads_values(statement: ast.stmt, path: str) -> bool:
    """Whether `statement` itself, not a statement inside of it, reads the values of the attribute."""
    if isinstance(statement, ast.Assign):
        return reads(statement.value, [path]) or any(
            reads(inner, [path]) for target in statement.targets for inner in ast.iter_child_nodes(target)
        )
    parts: list[ast.AST] = []
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr) or not isinstance(child, (ast.stmt, ast.excepthandler)):
            parts.append(child)
    return any(reads(part, [path]) for part in parts)


def resets_by_kept_names(owner: object) -> bool:
    """Whether a method of the object's class sets the attributes whose names the object keeps, as `reset` of a metric does:
    `for name, value in self.defaults.items(): setattr(self, name, value)`. What such a call leaves for the next one is not known."""
    classes = class_order(owner.cls) if isinstance(owner, Instance) else []
    return any(
        isinstance(method, ast.FunctionDef) and method.name != "__init__" and _sets_names_of_loops(method)
        for each in classes
        if isinstance(each, ClassValue)
        for method in each.node.body
    )


def _sets_names_of_loops(method: ast.FunctionDef) -> bool:
    """Kept on the node, as each write of an attribute asks it of all methods of the class, and it never changes."""
    known: bool | None = getattr(method, "sets_names_of_loops", None)
    if known is None:
        known = _sets_names(method)
        method.sets_names_of_loops = known  # type: ignore[attr-defined]
    return known


def _sets_names(method: ast.FunctionDef) -> bool:
    named = {
        each.args[1].id
        for each in ast.walk(method)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id == "setattr"
        and len(each.args) == 3
        and isinstance(each.args[0], ast.Name)
        and each.args[0].id == "self"
        and isinstance(each.args[1], ast.Name)
    }
    return any(
        isinstance(loop, ast.For)
        and any(isinstance(each, ast.Name) and each.id in named for each in ast.walk(loop.target))
        and any(
            isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
            for each in ast.walk(loop.iter)
        )
        for loop in ast.walk(method)
    )
