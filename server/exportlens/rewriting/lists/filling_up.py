"""Statements that fill a list up to a number of items: `while len(out) < n: out.append(zero)`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.names import append_of, bound, dotted, reads


@dataclass(frozen=True, slots=True)
class Filling:
    """`statement` appends `item` to a list until it has `total` items."""

    statement: ast.stmt
    item: ast.expr
    total: ast.expr


def filling_of(statement: ast.stmt, name: str) -> Filling | None:
    """How `statement` fills the list `name` up, if it does nothing else. Whether there is anything to fill up may be asked before."""
    if isinstance(statement, ast.If) and len(statement.body) == 1 and not statement.orelse:
        found = filling_of(statement.body[0], name)
        short = found is not None and _is_short(statement.test, name, found.total)
        return Filling(statement, found.item, found.total) if short and found is not None else None
    if isinstance(statement, (ast.While, ast.For)):
        return _by_loop(statement, name)
    added: ast.expr | None = None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        added = statement.value if dotted(statement.target) == name else None
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        plain = [dotted(each) for each in statement.targets] == [name] == [dotted(statement.value.left)]
        added = statement.value.right if plain and isinstance(statement.value.op, ast.Add) else None
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        plain = dotted(call.func) == f"{name}.extend" and len(call.args) == 1 and not call.keywords
        added = call.args[0] if plain else None
    return None if added is None else _of_added(statement, added, name)


def _by_loop(loop: ast.While | ast.For, name: str) -> Filling | None:
    found = append_of(loop.body[0]) if len(loop.body) == 1 and not loop.orelse else None
    if found is None or found[0] != name:
        return None
    if isinstance(loop, ast.While):
        total = _asked(loop.test, name)
    else:
        alone = isinstance(loop.target, ast.Name) and loop.target.id not in reads(found[1])
        total = _missing_rounds(loop.iter, name) if alone else None
    return None if total is None else Filling(loop, found[1], total)


def _of_added(statement: ast.stmt, added: ast.expr, name: str) -> Filling | None:
    if isinstance(added, (ast.ListComp, ast.GeneratorExp)) and len(added.generators) == 1:
        over = added.generators[0]
        alone = not over.ifs and not set(bound(over.target)) & reads(added.elt)
        total = _missing_rounds(over.iter, name) if alone else None
        return None if total is None else Filling(statement, added.elt, total)
    if not isinstance(added, ast.BinOp) or not isinstance(added.op, ast.Mult):
        return None
    listed, number = added.left, added.right
    if not isinstance(listed, ast.List):
        listed, number = number, listed
    total = _missing(number, name)
    if total is None or not isinstance(listed, ast.List) or len(listed.elts) != 1:
        return None
    return Filling(statement, listed.elts[0], total)


def _missing(number: ast.expr, name: str) -> ast.expr | None:
    """`n` of `n - len(out)`, and of `max(0, n - len(out))`."""
    if isinstance(number, ast.Call) and dotted(number.func) == "max" and len(number.args) == 2:
        parts = [each for each in number.args if ast.unparse(each) != "0"]
        return _missing(parts[0], name) if len(parts) == 1 and not number.keywords else None
    if not isinstance(number, ast.BinOp) or not isinstance(number.op, ast.Sub):
        return None
    return number.left if ast.unparse(number.right) == f"len({name})" else None


def _missing_rounds(over: ast.expr, name: str) -> ast.expr | None:
    """`n` of `range(n - len(out))`, and of `range(len(out), n)`."""
    if not isinstance(over, ast.Call) or dotted(over.func) != "range" or over.keywords:
        return None
    if len(over.args) == 1:
        return _missing(over.args[0], name)
    return over.args[1] if len(over.args) == 2 and ast.unparse(over.args[0]) == f"len({name})" else None


def _asked(test: ast.expr, name: str) -> ast.expr | None:
    """`n` of `len(out) < n`; it is not reached before, so `!=` asks the same."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right = test.left, test.comparators[0]
    if isinstance(test.ops[0], (ast.Gt, ast.NotEq)) and ast.unparse(right) == f"len({name})":
        left, right = right, left
    elif not isinstance(test.ops[0], (ast.Lt, ast.NotEq)):
        return None
    return right if ast.unparse(left) == f"len({name})" else None


def _is_short(test: ast.expr, name: str, total: ast.expr) -> bool:
    """Whether `test` asks if there are fewer items than `total`."""
    asked = _asked(test, name)
    if asked is not None:
        return ast.dump(asked) == ast.dump(total)
    missing = test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt):
        missing = test.left if ast.unparse(test.comparators[0]) == "0" else test
    found = _missing(missing, name)
    return found is not None and ast.dump(found) == ast.dump(total)


def found_behind(place: tuple[Sequence[ast.stmt], int], name: str) -> Filling | None:
    """What fills the list `name` up behind the statement at `place`, in the same block. How many items are missing may have a name:
    `pad = n - len(out)`."""
    block, at = place
    named: dict[str, ast.expr] = {}
    for each in block[at + 1 :]:
        asked = each
        if any(one in reads(each) for one in named):
            asked = Written(named).visit(copy.deepcopy(each))
        found = filling_of(asked, name)
        if found is not None:
            return Filling(each, found.item, found.total)
        if name in bound(each):
            return None
        for one in bound(each):
            named.pop(one, None)
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and _missing(each.value, name) is not None:
            target = each.targets[0]
            if isinstance(target, ast.Name):
                named[target.id] = each.value
    return None


class Written(ast.NodeTransformer):
    """Names, with what they are bound to written out."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id)
        return node if value is None or not isinstance(node.ctx, ast.Load) else copy.deepcopy(value)
