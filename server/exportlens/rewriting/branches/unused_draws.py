"""Random numbers that an arm or a loop's body draws and may not use: torch leaves such a draw out of torch.cond and while_loop
(measured on torch 2.13), so that all that is drawn afterwards differs from what eager draws. At the top level it keeps them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.source.walking import walk

# Functions and methods of torch that draw random numbers.
DRAWING = frozenset(
    {
        "bernoulli",
        "bernoulli_",
        "cauchy_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "multinomial",
        "normal",
        "normal_",
        "poisson",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "random_",
        "randperm",
        "rsample",
        "uniform_",
    }
)


def draws(node: ast.AST) -> bool:
    """Whether `node` draws random numbers of torch, as it is written."""
    return any(
        isinstance(each, ast.Call)
        and str(dotted(each.func) or getattr(each.func, "attr", "")).rpartition(".")[2] in DRAWING
        for each in walk(node)
    )


def unused_draws(statements: Sequence[ast.stmt], used: Iterable[str], kinds: Kinds) -> list[ast.stmt]:
    """The statements that draw what need not reach any of the names `used`, nor what `statements` return, where options within
    them are as they happen to be; `kinds` are those just before them."""
    if not any(map(draws, statements)):
        return []
    tests: dict[ast.stmt, str] = {}

    def see(node: ast.stmt, now: Kinds) -> None:
        if isinstance(node, ast.If):
            tests[node] = now.of(node.test).what

    visit(statements, kinds.copy(), see)
    found: list[ast.stmt] = []
    _before(statements, frozenset(used), tests, found)
    return found


def refuse_unused_draws(statements: Sequence[ast.stmt], used: Iterable[str], kinds: Kinds) -> None:
    """Raise Refused where `statements` draw random numbers that need not reach any of the names `used`."""
    for each in unused_draws(statements, used, kinds):
        raise Refused(
            f"`{next(iter(bound(each)), 'a result')}` is drawn at random and may go unused: torch leaves such a draw out of an arm, "
            "and other numbers are drawn afterwards"
        )


def handed_out(
    arms: tuple[Sequence[ast.stmt], Sequence[ast.stmt]], used: set[str], leaving: bool, kinds: Kinds
) -> list[str]:
    """The names that both arms draw at random and need not use, which they hand out then: what is an output is drawn."""
    found: list[str] = []
    for arm in arms:
        for each in unused_draws(arm, used, kinds):
            names = list(bound(each))
            if leaving or len(names) != 1 or not all(_bound_once(names[0], one) for one in arms):
                refuse_unused_draws(arm, used, kinds)
            found.append(names[0])
    return list(dict.fromkeys(found))


def _bound_once(name: str, arm: Sequence[ast.stmt]) -> bool:
    """Whether `arm` binds `name` in one place, which it always comes by."""
    places = [each for one in arm for each in walk(one) if isinstance(each, ast.Name) and each.id == name]
    return sum(isinstance(each.ctx, ast.Store) for each in places) == 1 and any(
        name in bound(each) for each in arm if _is_plain(each)
    )


def _is_plain(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and _binds_names(node)


def _before(
    block: Sequence[ast.stmt], used: frozenset[str], tests: Mapping[ast.stmt, str], found: list[ast.stmt]
) -> frozenset[str]:
    """The names that are used for certain from the start of `block` on, where `used` are used behind it."""
    for each in reversed(block):
        used = _before_statement(each, used, tests, found)
    return used


def _before_statement(
    node: ast.stmt, used: frozenset[str], tests: Mapping[ast.stmt, str], found: list[ast.stmt]
) -> frozenset[str]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and _binds_names(node):
        names = set(bound(node))
        if names & used:
            return (used - names) | _read(node.value)
        if node.value is not None and draws(node.value):
            found.append(node)
        return used
    if isinstance(node, ast.Return):
        return frozenset() if node.value is None else _read(node.value)
    if isinstance(node, ast.If):
        ways = [_before(way, used, tests, found) for way in (node.body, node.orelse)]
        # A branch on data becomes torch.cond, which is given what either arm reads.
        on_data = tests.get(node) in ("tensor", "scalar")
        return (ways[0] | ways[1] if on_data else ways[0] & ways[1]) | _read(node.test)
    if isinstance(node, (ast.For, ast.While)):
        inside = _before(node.body, used | reads(node), tests, found)
        return used | inside | _read(node.iter if isinstance(node, ast.For) else node.test)
    if isinstance(node, ast.With):
        return _before(node.body, used, tests, found).union(
            *(_read(each.context_expr) for each in node.items)
        )
    return used | reads(node)


def _binds_names(node: ast.Assign | ast.AnnAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [one for each in targets for one in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return all(isinstance(each, ast.Name) for each in parts)


def _read(node: ast.expr | None) -> frozenset[str]:
    """What `node` reads however its own choices fall."""
    if node is None:
        return frozenset()
    if isinstance(node, ast.IfExp):
        return _read(node.test) | (_read(node.body) & _read(node.orelse))
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    parts = (each for each in ast.iter_child_nodes(node))
    return frozenset().union(*(_read_part(each) for each in parts))


def _read_part(node: ast.AST) -> frozenset[str]:
    if isinstance(node, ast.expr):
        return _read(node)
    return frozenset().union(*(_read_part(each) for each in ast.iter_child_nodes(node)))
