"""How the list or deque that a Module keeps is bounded: what is added to it, what goes out again, and how many items stay."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, assigned_pairs, dotted
from exportlens.rewriting.code.text import Function


@dataclass(frozen=True)
class Cut:
    """What a statement leaves in the list: `bound` items, and as many `more`, or all but one, where it has no bound. It takes out the
    first ones, or those `at_end`."""

    bound: ast.expr | None
    more: int = 0
    at_end: bool = False


@dataclass(frozen=True)
class Addition:
    """The statement that adds `value` at the end of what is kept, or at its beginning, and what it leaves of that."""

    statement: ast.stmt
    value: ast.expr
    at_begin: bool = False
    cut: Cut | None = None


def added(statement: ast.stmt, path: str) -> Addition | None:
    """What `statement` adds to the list at `path`, one item."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != path or call.keywords:
            return None
        given = call.args
        if call.func.attr in ("append", "appendleft") and len(given) == 1:
            return Addition(statement, given[0], call.func.attr == "appendleft")
        if call.func.attr == "insert" and len(given) == 2 and ast.unparse(given[0]) == "0":
            return Addition(statement, given[1], True)
        if call.func.attr == "extend" and len(given) == 1 and (one := _only_item(given[0])) is not None:
            return Addition(statement, one)
        return None
    if isinstance(statement, ast.AugAssign) and dotted(statement.target) == path:
        one = _only_item(statement.value) if isinstance(statement.op, ast.Add) else None
        return None if one is None else Addition(statement, one)
    if isinstance(statement, ast.Assign) and [dotted(each) for each in statement.targets] == [path]:
        value, bound = statement.value, None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            bound = _negated(value.slice.lower)
            if bound is None or value.slice.upper is not None or value.slice.step is not None:
                return None
            value = value.value
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and dotted(value.left) == path:
            one = _only_item(value.right)
            return None if one is None else Addition(statement, one, cut=Cut(bound) if bound else None)
    return None


def _only_item(node: ast.expr) -> ast.expr | None:
    one = isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1
    return node.elts[0] if one and not isinstance(node.elts[0], ast.Starred) else None  # type: ignore[attr-defined]


def cut(statement: ast.stmt, path: str, behind: bool) -> Cut | None:
    """What `statement`, right behind the one that adds an item or else right before it, leaves in the list at `path`."""
    if isinstance(statement, (ast.If, ast.While)):
        if statement.orelse or len(statement.body) != 1 or (bound := _limit(statement.test, path)) is None:
            return None
        least, strictly = bound
        inner = _taken_out(statement.body[0], path)
        if inner is not None and inner.bound is None:
            # One item goes: of those that are there now, or will be there.
            more = 0 if strictly == behind else -1 if behind else 1
            return Cut(least, more, inner.at_end)
        same = inner is not None and inner.bound is not None and ast.dump(inner.bound) == ast.dump(least)
        return inner if same and strictly and behind else None
    found = _taken_out(statement, path)
    return found if found is None or found.bound is None or behind else None


def _limit(test: ast.expr, path: str) -> tuple[ast.expr, bool] | None:
    """The number that `test` asks the length of the list for, and whether it must be more than that."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if _is_length(right, path) and isinstance(op, (ast.Lt, ast.LtE, ast.Eq)):
        return left, isinstance(op, ast.Lt)
    if _is_length(left, path) and isinstance(op, (ast.Gt, ast.GtE, ast.Eq)):
        return right, isinstance(op, ast.Gt)
    return None


def _is_length(node: ast.expr, path: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node) == f"len({path})"


def _taken_out(statement: ast.stmt, path: str) -> Cut | None:
    """What `statement` leaves in the list: all but one item, where no bound is told."""
    if isinstance(statement, ast.Expr):
        calls = {
            f"{path}.pop(0)": False,
            f"{path}.popleft()": False,
            f"{path}.pop()": True,
            f"{path}.pop(-1)": True,
        }
        text = ast.unparse(statement)
        return Cut(None, at_end=calls[text]) if text in calls else None
    part: ast.expr
    if isinstance(statement, ast.Delete) and len(statement.targets) == 1:
        part = statement.targets[0]
        if not isinstance(part, ast.Subscript) or dotted(part.value) != path:
            return None
        index = part.slice
        if not isinstance(index, ast.Slice):
            return {"0": Cut(None), "-1": Cut(None, at_end=True)}.get(ast.unparse(index))
        if index.step is None and index.lower is None and (bound := _negated(index.upper)) is not None:
            return Cut(bound)
        if index.step is None and index.upper is None and index.lower is not None:
            return Cut(index.lower, at_end=True) if _negated(index.lower) is None else None
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, part = statement.targets[0], statement.value
        whole = isinstance(target, ast.Subscript) and ast.unparse(target.slice) == ":"
        if dotted(target.value if whole else target) != path:  # type: ignore[attr-defined]
            return None
        if not isinstance(part, ast.Subscript) or dotted(part.value) != path:
            return None
        index = part.slice
        if not isinstance(index, ast.Slice) or index.step is not None:
            return None
        if index.upper is None and (bound := _negated(index.lower)) is not None:
            return Cut(bound)
        if index.upper is None and index.lower is not None and ast.unparse(index.lower) == "1":
            return Cut(None)
        if index.lower is None and index.upper is not None:
            if ast.unparse(index.upper) == "-1":
                return Cut(None, at_end=True)
            return Cut(index.upper, at_end=True) if _negated(index.upper) is None else None
    return None


def _negated(node: ast.expr | None) -> ast.expr | None:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None


def spelled_bound(draft: Draft, cls: ast.ClassDef, constructor: Function, bound: ast.expr) -> str:
    """`bound`, an int that is one or more in any case or that a constructor takes, as the constructor may write it. Raises Refused."""
    if isinstance(bound, ast.Constant) and type(bound.value) is int and bound.value > 0:
        return ast.unparse(bound)
    if isinstance(bound, ast.Name):
        if _is_int_parameter(constructor, bound.id) or _is_global_int(draft, bound.id):
            return bound.id
    elif isinstance(bound, ast.Attribute) and (dotted(bound) or "").startswith("self."):
        statements = [each for placed in draft.context.document.placed for each in placed.chunk.body]
        stores = [
            each
            for statement in statements
            for each in ast.walk(statement)
            if isinstance(each, ast.Attribute)
            and each.attr == bound.attr
            and not isinstance(each.ctx, ast.Load)
        ]
        own = [value for name, value in _set_in(cls.body) if name == bound.attr]
        if not stores and len(own) == 1 and isinstance(own[0], ast.Constant):
            return spelled_bound(draft, cls, constructor, own[0])
        given = [value for name, value in _set_in(constructor.body) if name == f"self.{bound.attr}"]
        if len(stores) == 1 and len(given) == 1 and not isinstance(given[0], ast.Attribute):
            return spelled_bound(draft, cls, constructor, given[0])
    raise Refused(
        f"how many items are kept, `{ast.unparse(bound)}`, is not known to be an int that never changes"
    )


def _set_in(body: list[ast.stmt]) -> list[tuple[str | None, ast.expr]]:
    pairs = [
        one for each in body if isinstance(each, (ast.Assign, ast.AnnAssign)) for one in assigned_pairs(each)
    ]
    return [(dotted(target), value) for target, value in pairs]


def _is_int_parameter(function: Function, name: str) -> bool:
    args = function.args
    named = [*args.posonlyargs, *args.args]
    defaults = dict(zip([each.arg for each in named[::-1]], args.defaults[::-1], strict=False))
    defaults |= {one.arg: each for one, each in zip(args.kwonlyargs, args.kw_defaults, strict=True) if each}
    bound_anew = any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )
    parameter = next((each for each in arguments(args) if each.arg == name), None)
    if parameter is None or bound_anew:
        return False
    annotation = None if parameter.annotation is None else ast.unparse(parameter.annotation)
    default = defaults.get(name)
    number = isinstance(default, ast.Constant) and type(default.value) is int
    return annotation in (None, "int") and (number or (default is None and annotation == "int"))


def _is_global_int(draft: Draft, name: str) -> bool:
    statements = [each for placed in draft.context.document.placed for each in placed.chunk.body]
    stores = [
        each
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    values = [value for found, value in _set_in(statements) if found == name]
    known = [each for each in values if isinstance(each, ast.Constant) and type(each.value) is int]
    return len(stores) == len(known) == 1
