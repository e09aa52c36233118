"""Questions that code behind a branch asks once more: on each way through the branch their answer is known.

if big:                         if big:
    scale = f(x)                    scale = f(x)
y = g(x)                ->          y = g(x) * scale
return y * scale if big else y      return y * scale
                                ...
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from exportlens.inference.values import Tensor
from exportlens.rewriting.effects import repeatable
from exportlens.rewriting.kind import LOCAL
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.moving import may_write
from exportlens.rewriting.names import bound, reads
from exportlens.rewriting.text import Function, Replacement, Source
from exportlens.source.walking import walk

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPUTED_ONCE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.UnaryOp, ast.BoolOp)
_SIGNS = (ast.expr_context, ast.cmpop, ast.unaryop, ast.boolop)


# What a test is on one way through the branch: an answer, what is left of it to ask, or None where it is as open as before.
Answer = bool | tuple[ast.expr, ...] | None
# Those for each way through the branch, the last of which is that of `else`.
Answers = tuple[Answer, ...]
_Facts = list[tuple[ast.expr, bool]]


def asked_again(
    source: Source, node: ast.If, tail: Sequence[ast.stmt], kinds: Kinds
) -> dict[ast.AST, Answers]:
    """The `if` statements and ternaries in `tail`, the code behind `node`, that ask what `node` asks."""
    function = source.enclosing_function(node)
    if function is None:
        return {}
    tests = _tests(node)
    same = [each for each in tests if repeatable(each, kinds) and "self" not in reads(each)]
    found: dict[ast.AST, Answers] = {}
    before: list[ast.stmt] = [node]
    for each in tail:
        same = [test for test in same if _stays(test, before, function, kinds)]
        if not same:
            break
        calm = all(_stays(test, [each], function, kinds) for test in same)
        for asking in _asking(each) if calm else _asking_first(each):
            ways = range(len(tests) + 1)
            answers = tuple(_given(asking.test, _facts(tests, way, same), kinds) for way in ways)
            if any(answer is not None for answer in answers):
                found[asking] = answers
        before.append(each)
    return found


def _facts(tests: Sequence[ast.expr], way: int, same: Sequence[ast.expr]) -> _Facts:
    """What is known on one `way` through a branch of those of its `tests` that still are the `same`."""
    passed = [(each, number == way) for number, each in enumerate(tests[: way + 1])]
    return [(each, answer) for each, answer in passed if any(each is one for one in same)]


def _tests(node: ast.If) -> list[ast.expr]:
    """What an `if`/`elif` chain asks."""
    tests = [node.test]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        tests.append(node.test)
    return tests


def _asking(node: ast.AST) -> Iterator[ast.If | ast.IfExp]:
    """The branches and ternaries in `node` that run as often as it does."""
    if isinstance(node, (ast.If, ast.IfExp)):
        yield node
    if isinstance(node, (*_OWN_SCOPE, ast.For, ast.While, ast.Try)):
        return
    for each in ast.iter_child_nodes(node):
        yield from _asking(each)


def _asking_first(node: ast.stmt) -> Iterator[ast.If | ast.IfExp]:
    """Those that ask before `node` can have changed anything."""
    if isinstance(node, ast.If):
        yield node
    elif isinstance(node, (ast.Assign, ast.Return)) and isinstance(node.value, ast.IfExp):
        yield node.value


def _stays(test: ast.expr, statements: list[ast.stmt], function: Function, kinds: Kinds) -> bool:
    """Whether `test` gives the same behind `statements`."""
    names = reads(test)
    if names & set(bound(statements)):
        return False
    if not may_write(statements, kinds):
        return True
    plain = all(isinstance(each, (*_COMPUTED_ONCE, *_SIGNS)) for each in walk(test))
    return plain and all(_is_unshared(name, [function], kinds) for name in names)


def _is_unshared(name: str, scope: Sequence[ast.AST], kinds: Kinds) -> bool:
    """Whether nothing but tests in `scope` can reach what `name` is: nothing writes to it then."""
    kind = kinds.names.get(name)
    if kind is None:
        return False
    if kind.what in ("number", "size", "scalar", "none"):
        return True
    value = kind.value
    made_here = isinstance(value, Tensor) and value.origin == "fresh" and value.root == 0
    if kind.roots is None or not (made_here or all(root.startswith(LOCAL) for root in kind.roots)):
        return False
    if any(kind.roots & (other.roots or frozenset()) for one, other in kinds.names.items() if one != name):
        return False
    parts = [part for each in scope for part in walk(each)]
    tests = {id(part) for each in parts if isinstance(each, (ast.If, ast.IfExp)) for part in walk(each.test)}
    reading = (each for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    return all(id(each) in tests for each in reading if each.id == name)


def _given(test: ast.expr, facts: _Facts, kinds: Kinds) -> Answer:
    plain, same = _without_not(test)
    for each, answer in facts:
        asked, alike = _without_not(each)
        if ast.dump(plain) == ast.dump(asked):
            return answer if same is alike else not answer
    if not isinstance(test, ast.BoolOp):
        return None
    # `and` is decided by what does not hold, `or` by what does.
    deciding = isinstance(test.op, ast.Or)
    left: list[ast.expr] = []
    for each in test.values:
        given = _given(each, facts, kinds)
        if given is deciding:
            # What stands before it is asked in vain, which only matters where it does something.
            return deciding if all(repeatable(part, kinds) for part in left) else None
        if isinstance(given, tuple):
            return None
        if given is None:
            left.append(each)
    if len(left) == len(test.values):
        return None
    return tuple(left) if left else not deciding


def _without_not(test: ast.expr) -> tuple[ast.expr, bool]:
    """`test` without what negates it, and whether that leaves it as it is."""
    same = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, same = test.operand, not same
    return test, same


def answered(tail: Sequence[ast.stmt], again: Mapping[ast.AST, Answers], way: int) -> list[list[ast.stmt]]:
    """`tail` in blocks, where of the branches `again` there is what runs on one `way` through the branch before it."""
    blocks: list[list[ast.stmt]] = [[]]
    for each in tail:
        given = _answer(each, again, way)
        if isinstance(each, ast.If) and given is not None:
            blocks += [*answered(each.body if given else each.orelse, again, way), []]
        else:
            blocks[-1].append(each)
    return [each for each in blocks if each]


def _answer(node: ast.stmt, again: Mapping[ast.AST, Answers], way: int) -> bool | None:
    given = again[node][way] if node in again else None
    return given if isinstance(given, bool) else None


def swaps_for(
    source: Source, tail: Sequence[ast.stmt], again: Mapping[ast.AST, Answers], way: int
) -> list[Replacement]:
    """What is written in `tail` on one `way` through the branch before it, where the questions `again` are known; the statements
    of `tail` itself that are left out or replaced as a whole are not among them."""
    kept = {id(each) for block in answered(tail, again, way) for each in block}
    swaps: list[Replacement] = []
    # What stands in another one comes first.
    for node, answers in reversed(list(again.items())):
        given = answers[way]
        if given is None or not isinstance(node, (ast.If, ast.IfExp)):
            continue
        if not isinstance(given, bool):
            swaps.append(source.swap(node.test, _joined(source, node.test, given)))
            continue
        if isinstance(node, ast.IfExp):
            side = node.body if given else node.orelse
            text = source.of(side, swaps)
            made = source.swap(node, text if _is_atom(source, node, side) else f"({text})")
        elif not _is_inside(source, node, kept) or source.text.startswith("elif", source.start(node)):
            continue
        else:
            made = _in_place(source, node, node.body if given else node.orelse, swaps)
        swaps = [each for each in swaps if not made.start <= each.start <= each.end <= made.end]
        swaps.append(made)
    return swaps


def _is_inside(source: Source, node: ast.AST, statements: set[int]) -> bool:
    """Whether `node` stands in one of `statements`, or is one of them."""
    return any(id(each) in statements for each in (node, *source.ancestors(node)))


def _joined(source: Source, test: ast.expr, left: tuple[ast.expr, ...]) -> str:
    word = " or " if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else " and "
    return word.join(source.of(each) if len(left) == 1 else _grouped(source, each) for each in left)


def _grouped(source: Source, node: ast.expr) -> str:
    loose = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
    return f"({source.of(node)})" if loose else source.of(node)


def _in_place(
    source: Source, node: ast.If, block: list[ast.stmt], swaps: Sequence[Replacement]
) -> Replacement:
    """One arm of `node` in the place of the whole statement."""
    indent = source.indent_of(node)
    text = source.block(block, indent, swaps).removeprefix(indent) if block else "pass"
    return Replacement(source.start(node), source.span([node])[1], text)


def _is_atom(source: Source, node: ast.IfExp, side: ast.expr) -> bool:
    """Whether `side` may stand in the place of `node` without brackets."""
    if isinstance(side, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call)):
        return True
    return isinstance(source.parents[node], (ast.Assign, ast.Return, ast.AnnAssign)) or (
        source.text[: source.start(node)].endswith("(") and source.text[source.end(node) :].startswith(")")
    )
