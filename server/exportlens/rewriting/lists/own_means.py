"""Functions of the file's own that give the mean of what a list or an iterator holds."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import arguments


def mean_of(function: ast.FunctionDef) -> str | None:
    """What `function`, given nothing but a list, does where that is empty, if it gives the mean else: "raises" or "zero"; None
    where it is not known to give the mean."""
    first = function.args.args[0].arg if function.args.args else ""
    given = {each.arg for each in arguments(function.args)}
    if not first or function.args.vararg or function.decorator_list:
        return None
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip([each.arg for each in plain][::-1], function.args.defaults[::-1], strict=False))
    if first in defaults or given - {first} != set(defaults):
        return None
    body = [each for each in function.body if not _is_text(each)]
    rest = []
    for each in body:
        # An option that is off, and another form of the same values.
        off = isinstance(each, ast.If) and _is_off(each.test, defaults) and not each.orelse
        if not off and ast.unparse(each) not in (f"{first} = iter({first})", f"{first} = list({first})"):
            rest.append(each)
    return _of_parts(rest, first, defaults) or _of_iterator(rest, first, defaults)


def _of_parts(body: list[ast.stmt], name: str, defaults: dict[str, ast.expr]) -> str | None:
    """`return sum(values) / len(values)`, alone or behind the question whether there are any."""
    empty = "raises"
    if len(body) == 2 and isinstance(body[0], ast.If) and not body[0].orelse:
        asked = ast.unparse(body[0].test) in (f"not {name}", f"len({name}) == 0", f"not len({name})")
        found = _ends(body[0].body, defaults) if asked else None
        if found is None:
            return None
        empty, body = found, body[1:]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    value = body[0].value
    if isinstance(value, ast.IfExp):
        asked = ast.unparse(value.test) in (name, f"len({name}) > 0", f"len({name})")
        if not asked or not _is_zero(value.orelse, defaults):
            return None
        empty, value = "zero", value.body
    return empty if ast.unparse(value) == f"sum({name}) / len({name})" else None


def _of_iterator(body: list[ast.stmt], name: str, defaults: dict[str, ast.expr]) -> str | None:
    """`total = next(values)` with what comes after it added up and counted."""
    if len(body) not in (3, 4) or not isinstance(body[0], ast.Try) or not isinstance(body[1], ast.For):
        return None
    tried, loop, last = body[0], body[1], body[-1]
    bound = {
        ast.unparse(each.value): ast.unparse(each.targets[0])
        for each in tried.body
        if isinstance(each, ast.Assign)
    }
    total, count = bound.get(f"next({name})"), bound.get("1")
    if total is None or count is None or len(tried.body) != 2 or len(tried.handlers) != 1:
        return None
    handler = tried.handlers[0]
    if (
        handler.type is None
        or ast.unparse(handler.type) != "StopIteration"
        or tried.orelse
        or tried.finalbody
    ):
        return None
    each = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    one = ast.unparse(each)
    adds = len(loop.body) == 1 and ast.unparse(loop.body[0]) in (
        f"{total} += {one}",
        f"{total} = {total} + {one}",
    )
    counts = (
        ast.unparse(loop.target).strip("()") == f"{count}, {one}"
        and ast.unparse(loop.iter) == f"enumerate({name}, 2)"
    )
    single = len(body) == 3 or ast.unparse(body[2]) == f"if {count} == 1:\n    return {total}"
    if not (
        adds and counts and single and not loop.orelse and ast.unparse(last) == f"return {total} / {count}"
    ):
        return None
    return _ends(handler.body, defaults)


def _ends(body: list[ast.stmt], defaults: dict[str, ast.expr]) -> str | None:
    """How the statements end where a list is empty."""
    kept = [
        each
        for each in body
        if not (isinstance(each, ast.If) and not each.orelse and _is_off(each.test, defaults))
    ]
    if len(kept) != 1:
        return None
    if isinstance(kept[0], ast.Raise):
        return "raises"
    value = kept[0].value if isinstance(kept[0], ast.Return) else None
    return "zero" if value is not None and _is_zero(value, defaults) else None


def _is_zero(node: ast.expr, defaults: dict[str, ast.expr]) -> bool:
    node = defaults.get(node.id, node) if isinstance(node, ast.Name) else node
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 0


def _is_off(test: ast.expr, defaults: dict[str, ast.expr]) -> bool:
    """Whether an option says no, as it does where nothing is given for it."""
    if isinstance(test, ast.Name):
        value = defaults.get(test.id)
        return isinstance(value, ast.Constant) and not value.value
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    value = defaults.get(test.left.id) if isinstance(test.left, ast.Name) else None
    other = test.comparators[0]
    return isinstance(value, ast.Constant) and isinstance(other, ast.Constant) and value.value != other.value


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
