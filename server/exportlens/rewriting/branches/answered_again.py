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
from dataclasses import dataclass

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.liveness import exits, given_to_operators
from exportlens.rewriting.code.names import arguments, bound, defaults_of, reads
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.rewriting.memory.moving import may_write
from exportlens.source.walking import walk

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPUTED_ONCE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.UnaryOp, ast.BoolOp)
_SIGNS = (ast.expr_context, ast.cmpop, ast.unaryop, ast.boolop)


# What a test is on one way through the branch: an answer, what is left of it to ask, or None where it is as open as before.
Answer = bool | tuple[ast.expr, ...] | None
# Those for each way through the branch, the last of which is that of `else`.
Answers = tuple[Answer, ...]


def asked_again(
    source: Source, node: ast.If, tail: Sequence[ast.stmt], kinds: Kinds
) -> dict[ast.AST, Answers]:
    """The `if` statements and ternaries in `tail`, the code behind `node`, that ask what `node` asks, or which constant a name is
    that the ways through `node` bind, or leave as it was."""
    function = source.enclosing_function(node)
    if function is None:
        return {}
    ends = _ends(node)
    tests = [test for test, _ in ends if test is not None]
    same = [each for each in tests if repeatable(each, kinds) and "self" not in reads(each)]
    before = _constants_before(source, node, function)
    # A test may bind a name, too.
    inside = set(bound([*node.body, *node.orelse])) - {
        name for test in tests for name in bound(ast.Expr(test))
    }
    before = {name: value for name, value in before.items() if name in inside}
    named = [_constants(block, before) for _, block in ends]
    found: dict[ast.AST, Answers] = {}
    passed: list[ast.stmt] = []
    for each in tail:
        same = [test for test in same if _stays(test, [node, *passed], function, kinds)]
        calm = all(_stays(test, [each], function, kinds) for test in same)
        first, anew = list(_asking_first(each)), set(bound(passed))
        inside = anew | (set() if isinstance(each, ast.Assign) else set(bound([each])))
        for asking in _asking(each):
            is_first = asking in first
            facts = same if calm or is_first else []
            rebound = (anew if is_first else inside) | set(bound(ast.Expr(asking.test)))
            names = [_without(one, rebound) for one in named]
            ways = [_Known(_facts(tests, way, facts), one) for way, one in enumerate(names)]
            answers = tuple(_given(asking.test, known, kinds) for known in ways)
            if any(answer is not None for answer in answers):
                found[asking] = answers
        passed.append(each)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known on one way through a branch: what tests give, and which constants names are."""

    tests: list[tuple[ast.expr, bool]]
    names: Mapping[str, ast.Constant]


def _facts(tests: Sequence[ast.expr], way: int, same: Sequence[ast.expr]) -> list[tuple[ast.expr, bool]]:
    """What is known on one `way` through a branch of those of its `tests` that still are the `same`."""
    passed = [(each, number == way) for number, each in enumerate(tests[: way + 1])]
    return [(each, answer) for each, answer in passed if any(each is one for one in same)]


def _ends(node: ast.If) -> list[tuple[ast.expr | None, list[ast.stmt]]]:
    """The tests of an `if`/`elif` chain with their blocks, and the block of its `else`."""
    found: list[tuple[ast.expr | None, list[ast.stmt]]] = [(node.test, node.body)]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        found.append((node.test, node.body))
    return [*found, (None, node.orelse)]


def _constants_before(source: Source, node: ast.stmt, function: Function) -> dict[str, ast.Constant]:
    """The names that are constants wherever `node` is reached."""
    block, index = source.block_of(node)
    outer = source.parents[node]
    if outer is not function:
        found = _constants_before(source, outer, function) if isinstance(outer, ast.stmt) else {}
        if not isinstance(outer, ast.If):
            # A round before, or what failed, may have bound it anew.
            found = _without(found, set(bound([*ast.iter_child_nodes(outer)])))
    else:
        found = _constants_of_arm(source, function)
    elsewhere = {
        name for each in walk(function) if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names
    }
    return _without(_constants(block[:index], found), elsewhere)


def _constants_of_arm(source: Source, function: Function) -> dict[str, ast.Constant]:
    """The names that are constants wherever `function` is called, which is nothing but an arm: then that is where it stands."""
    outer = source.enclosing_function(function)
    if outer is None or function.name not in given_to_operators(outer):
        return {}
    found = _constants_before(source, function, outer)
    own = {each.arg for each in arguments(function.args)}
    kept = {
        name
        for name, value in defaults_of(function.args).items()
        if isinstance(value, ast.Name) and value.id == name
    }
    return _without(found, (own | set(bound(function.body))) - kept)


def _constants(
    block: Sequence[ast.stmt], before: Mapping[str, ast.Constant] | None = None
) -> dict[str, ast.Constant]:
    """The names that are constants at the end of `block`, where they were `before` it."""
    found = dict(before or {})
    for each in block:
        found = _without(found, set(bound([each])))
        if isinstance(each, ast.Assign):
            for target in each.targets:
                found |= _constants_given(target, each.value)
    return found


def _constants_given(target: ast.expr, value: ast.expr) -> dict[str, ast.Constant]:
    """The names among `target` that are bound to constants, alone or beside others (`y, done = f(x), True`)."""
    if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
        return {target.id: value}
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return {}
    parts = [*target.elts, *value.elts]
    if len(target.elts) != len(value.elts) or any(isinstance(each, ast.Starred) for each in parts):
        return {}
    pairs = zip(target.elts, value.elts, strict=True)
    return {name: each for one, other in pairs for name, each in _constants_given(one, other).items()}


def _without(names: Mapping[str, ast.Constant], others: set[str]) -> dict[str, ast.Constant]:
    return {name: value for name, value in names.items() if name not in others}


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


def _given(test: ast.expr, known: _Known, kinds: Kinds) -> Answer:
    plain, same = _without_not(test)
    for each, answer in known.tests:
        asked, alike = _without_not(each)
        if ast.dump(plain) == ast.dump(asked):
            return answer if same is alike else not answer
    compared = _compared(plain, known.names)
    if compared is not None:
        return compared is same
    if not isinstance(test, ast.BoolOp):
        return None
    # `and` is decided by what does not hold, `or` by what does.
    deciding = isinstance(test.op, ast.Or)
    left: list[ast.expr] = []
    for each in test.values:
        given = _given(each, known, kinds)
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


def _compared(test: ast.expr, names: Mapping[str, ast.Constant]) -> bool | None:
    """What a test of a name that is one of the constants `names` gives; None where it is no such test."""
    if isinstance(test, ast.Name):
        return bool(names[test.id].value) if test.id in names else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    op, other = test.ops[0], test.comparators[0]
    own = names.get(test.left.id) if isinstance(test.left, ast.Name) else None
    if own is None:
        return None
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(other, (ast.Tuple, ast.List, ast.Set)):
        if not all(isinstance(each, ast.Constant) for each in other.elts):
            return None
        among = any(own.value == each.value for each in other.elts if isinstance(each, ast.Constant))
        return among is isinstance(op, ast.In)
    if not isinstance(other, ast.Constant):
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)):
        return (own.value == other.value) is isinstance(op, ast.Eq)
    if isinstance(op, (ast.Is, ast.IsNot)) and (other.value is None or isinstance(other.value, bool)):
        return (own.value is other.value) is isinstance(op, ast.Is)
    return None


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
            inner = answered(each.body if given else each.orelse, again, way)
            blocks += [*inner, []]
            if inner and "falls" not in exits(inner[-1]):
                break
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
