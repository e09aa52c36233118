"""A loop over a tensor's numbers that skips, or stops at, one that it has seen: the numbers before it are asked.

seen = set()
for k in t.tolist():               for at, k in enumerate(t.tolist()):
    if k in seen:           ->         if (t[:at] == k).any():
        continue                           continue
    seen.add(k)                        total = total + f(k)
    total = total + f(k)
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, every_name, fresh
from exportlens.rewriting.code.text import Function, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, loaded, visit, writes_of
from exportlens.source.walking import walk

SEEN = "Ask the numbers before it"


def asked_before(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The whole text where `node` asks the tensor, not what the loop has collected; None where it is no such question."""
    function, loop, test = source.enclosing_function(node), source.parents[node], node.test
    if function is None or not isinstance(loop, ast.For) or node not in loop.body or node.orelse:
        return None
    if not isinstance(test, ast.Compare) or [type(each) for each in test.ops] != [ast.In]:
        return None
    number, seen = test.left, test.comparators[0]
    if not isinstance(number, ast.Name) or not isinstance(seen, ast.Name):
        return None
    start, add = _collected(source, function, loop, seen.id, number.id, test)
    rows = _rows(loop, number.id)
    if start is None or add is None or rows is None or exits(node.body) not in ({"continues"}, {"breaks"}):
        return None
    counter, listed = rows
    if not isinstance(listed, ast.Call) or listed.args or listed.keywords:
        return None
    tensor = (
        listed.func.value if isinstance(listed.func, ast.Attribute) and listed.func.attr == "tolist" else None
    )
    between = loop.body[: loop.body.index(add)]
    plain = all(
        exits([each]) == {"falls"} or _skips_by(each, number.id) for each in between if each is not node
    )
    if not isinstance(tensor, ast.Name) or not plain or loop.body.index(add) < loop.body.index(node):
        return None
    before = kinds_before(function, loop, kinds)
    known = before.of(tensor)
    if known.what != "tensor" or known.rank not in (None, 1) or _is_changed(loop, tensor, before):
        return None
    if {number.id, counter} & set(bound(loop.body)):
        return None
    gone = [source.without(start), source.without(add)]
    if None in gone:
        return None
    at = counter or fresh("at", every_name(function))
    swaps = [each for each in gone if each is not None]
    if not counter:
        swaps += [
            source.swap(loop.target, f"{at}, {number.id}"),
            source.swap(loop.iter, f"enumerate({source.of(loop.iter)})"),
        ]
    swaps.append(source.swap(test, f"({tensor.id}[:{at}] == {number.id}).any()"))
    return replaced(source.text, swaps)


def _collected(
    source: Source, function: Function, loop: ast.For, seen: str, number: str, test: ast.Compare
) -> tuple[ast.stmt | None, ast.stmt | None]:
    """The statement that begins the collection just before `loop`, and the one that puts `number` in; None where more is done."""
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == seen]
    block, index = source.block_of(loop)
    start = next(
        (each for each in block[:index] if isinstance(each, ast.Assign) and seen in bound(each)), None
    )
    empty = start is not None and ast.unparse(start) in (f"{seen} = set()", f"{seen} = []")
    added = (f"{seen}.add({number})", f"{seen}.append({number})")
    add = next((each for each in loop.body if ast.unparse(each) in added), None)
    known = [each for part in (start, add, test) if part is not None for each in walk(part)]
    if not empty or add is None or any(each not in known for each in same):
        return None, None
    return start, add


def _rows(loop: ast.For, number: str) -> tuple[str, ast.expr] | None:
    """The counter of `loop` ("" where it has none) and the list whose elements are `number`."""
    target, rows = loop.target, loop.iter
    if isinstance(target, ast.Name):
        return ("", rows) if target.id == number else None
    plain = isinstance(rows, ast.Call) and ast.unparse(rows.func) == "enumerate" and len(rows.args) == 1
    names = [each.id for each in getattr(target, "elts", ()) if isinstance(each, ast.Name)]
    if not plain or not isinstance(rows, ast.Call) or rows.keywords or len(names) != 2 or names[1] != number:
        return None
    return names[0], rows.args[0]


def _skips_by(node: ast.stmt, number: str) -> bool:
    """Whether `node` skips the round by the number alone: then it has skipped all that are equal."""
    if not isinstance(node, ast.If) or node.orelse or exits([node]) - {"falls", "continues"}:
        return False
    inner = [each for each in walk(node.test) if isinstance(each, (ast.Name, ast.Call, ast.Attribute))]
    return len(node.body) == 1 and all(isinstance(each, ast.Name) and each.id == number for each in inner)


def _is_changed(loop: ast.For, tensor: ast.Name, kinds: Kinds) -> bool:
    """Whether the loop binds `tensor` anew, or may write to its memory in place."""
    roots = kinds.of(tensor).roots
    changed = [tensor.id in bound(loop.body) or roots is None]

    def see(statement: ast.stmt, now: Kinds) -> None:
        for write in writes_of(statement, now):
            written = now.of(loaded(write.base)).roots
            changed.append(written is None or not written.isdisjoint(roots or ()))

    visit(loop.body, kinds.copy(), see)
    return any(changed)
