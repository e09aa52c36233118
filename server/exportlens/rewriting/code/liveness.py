"""Liveness: which names a later read may still need, and which are certainly bound."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from exportlens.rewriting.code.names import arguments, bound, dotted, reads
from exportlens.rewriting.code.text import Source
from exportlens.source.walking import walk

Names = frozenset[str]
_NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class _Jumps:
    """What is live where `break`, `continue`, `return` and a raise arrive."""

    after_break: Names = _NONE
    after_continue: Names = _NONE
    after_return: Names = _NONE
    after_raise: Names = _NONE


@dataclass
class Liveness:
    """The names that are live after (`after`) and before (`before`) each statement of a function.

    A name that a nested function, lambda or generator reads is taken as live everywhere: it may run at any time. A function
    that is only given to torch's operators of control flow runs where these are called, and keeps nothing. A name that is
    declared global or nonlocal is live everywhere, too: others read it.
    """

    function: ast.FunctionDef | ast.AsyncFunctionDef
    after: dict[ast.stmt, Names] = field(default_factory=dict)
    before: dict[ast.stmt, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        captured: set[str] = set()
        given = given_to_operators(self.function)
        self._run_at_calls: dict[str, set[str]] = {}
        for node in walk(self.function):
            if node is not self.function and isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
            ):
                if isinstance(node, ast.Lambda) and node in given:
                    continue
                if isinstance(node, ast.FunctionDef) and node.name in given:
                    self._run_at_calls.setdefault(node.name, set()).update(reads(node))
                    continue
                captured |= reads(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.GeneratorExp):
                captured |= reads(node.value)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                captured.update(node.names)
        self.captured = frozenset(
            captured & (set(bound(self.function.body)) | {each.arg for each in arguments(self.function.args)})
        )
        self._block(self.function.body, _NONE, _Jumps())

    def live_after(self, statement: ast.stmt) -> Names:
        return self.after[statement] | self.captured

    def _block(self, statements: Sequence[ast.stmt], out: Names, jumps: _Jumps) -> Names:
        live = out
        for statement in reversed(statements):
            self.after[statement] = self.after.get(statement, _NONE) | live
            live = self._statement(statement, live, jumps)
            self.before[statement] = self.before.get(statement, _NONE) | live
        return live

    def _statement(self, node: ast.stmt, out: Names, jumps: _Jumps) -> Names:
        if isinstance(node, ast.Return):
            return self._reads_of(node) | jumps.after_return
        if isinstance(node, ast.Raise):
            return frozenset(self._reads(node)) | jumps.after_raise
        if isinstance(node, ast.Break):
            return jumps.after_break
        if isinstance(node, ast.Continue):
            return jumps.after_continue
        if isinstance(node, ast.If):
            return (
                frozenset(self._reads(node.test))
                | self._block(node.body, out, jumps)
                | self._block(node.orelse, out, jumps)
            )
        if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
            return self._loop(node, out, jumps)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inner = self._block(node.body, out, jumps)
            return frozenset(self._reads(node.items)) | (inner - frozenset(bound(node.items)))
        if isinstance(node, ast.Try):
            return self._try(node, out, jumps)
        if isinstance(node, ast.Match):
            cases = [
                self._block(case.body, out, jumps)
                | frozenset(self._reads([case.pattern, *([case.guard] if case.guard else [])]))
                for case in node.cases
            ]
            none = _NONE if _takes_all(node) else out
            return frozenset(self._reads(node.subject)) | none | frozenset().union(*cases)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return (out - {node.name}) | frozenset(self._reads(node))
        return (out - _certainly_bound(node)) | self._reads_of(node)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, out: Names, jumps: _Jumps) -> Names:
        after = self._block(node.orelse, out, jumps)
        if isinstance(node, ast.While):
            head = after | frozenset(self._reads(node.test))
            targets: Names = _NONE
        else:
            head = after
            targets = frozenset(bound(node.target))
        while True:
            inner = _Jumps(out, head, jumps.after_return, jumps.after_raise)
            grown = head | (self._block(node.body, head, inner) - targets)
            if grown == head:
                break
            head = grown
        return (
            head if isinstance(node, ast.While) else head | frozenset(self._reads([node.iter, node.target]))
        )

    def _try(self, node: ast.Try, out: Names, jumps: _Jumps) -> Names:
        final = (
            self._block(node.finalbody, out | jumps.after_return | jumps.after_raise, jumps)
            if node.finalbody
            else out
        )
        through = final if node.finalbody else _NONE
        outer = _Jumps(
            jumps.after_break | through,
            jumps.after_continue | through,
            jumps.after_return | through,
            jumps.after_raise | through,
        )
        handlers = _NONE
        for handler in node.handlers:
            handlers |= self._block(handler.body, final, outer) | (
                frozenset(self._reads(handler.type)) if handler.type else _NONE
            )
        inner = _Jumps(
            outer.after_break, outer.after_continue, outer.after_return, outer.after_raise | handlers
        )
        body = self._block(node.body, self._block(node.orelse, final, outer) | handlers, inner)
        # Any statement of the body may jump to a handler.
        for statement in node.body:
            for each in walk(statement):
                if isinstance(each, ast.stmt) and each in self.after:
                    self.after[each] |= handlers | through
        return body | handlers | through

    def _reads_of(self, node: ast.stmt) -> Names:
        names = self._reads(node) - _named_first(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        return frozenset(names)

    def _reads(self, nodes: ast.AST | Iterable[ast.AST]) -> set[str]:
        """What `nodes` read, and what the functions read that they give to torch's operators."""
        names = reads(nodes)
        while True:
            further = set[str]().union(*(self._run_at_calls.get(each, ()) for each in names)) - names
            if not further:
                return names
            names |= further


def given_to_operators(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str | ast.Lambda]:
    """The lambdas, and the names of the functions, that stand in `function` only as arguments of torch's operators of
    control flow."""
    given: set[str | ast.Lambda] = set()
    arguments_of: set[int] = set()
    for node in walk(function):
        if isinstance(node, ast.Call) and _is_operator(dotted(node.func) or ""):
            for each in node.args:
                arguments_of.add(id(each))
                if isinstance(each, ast.Lambda):
                    given.add(each)
    for node in walk(function):
        if isinstance(node, ast.FunctionDef) and node is not function:
            given.add(node.name)
    elsewhere = {
        node.id
        for node in walk(function)
        if isinstance(node, ast.Name) and not (isinstance(node.ctx, ast.Load) and id(node) in arguments_of)
    }
    return given - elsewhere


def _is_operator(name: str) -> bool:
    """Whether `name` is what torch's operators of control flow are called by."""
    module, _, last = name.rpartition(".")
    if last in ("cond", "while_loop"):
        return bool(module)
    return last in ("map", "scan") and module.endswith("_higher_order_ops")


def _certainly_bound(node: ast.stmt) -> Names:
    if isinstance(node, ast.Assign):
        return frozenset(name for target in node.targets for name in _plain_targets(target))
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return frozenset(_plain_targets(node.target))
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Delete)):
        return frozenset(bound(node))
    return _NONE


def _named_first(node: ast.stmt) -> set[str]:
    """The names that `node` reads nowhere but behind where it certainly gives them a value: `(a := f(x)) - a.mean()`."""
    given: dict[str, ast.NamedExpr] = {}
    parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    while parts:
        each = parts.pop()
        if isinstance(
            each,
            (ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        ):
            continue
        if isinstance(each, ast.Compare) and len(each.ops) > 1:
            # What comes behind the second may not be computed.
            continue
        if isinstance(each, ast.NamedExpr):
            given.setdefault(each.target.id, each)
        parts += [
            one.value if isinstance(one, ast.keyword) else one
            for one in ast.iter_child_nodes(each)
            if isinstance(one, (ast.expr, ast.keyword))
        ]

    def comes_first(name: str, named: ast.NamedExpr) -> bool:
        end = (named.end_lineno or 0, named.end_col_offset or 0)
        return all(
            (each.lineno, each.col_offset) >= end
            for each in walk(node)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        )

    return {name for name, named in given.items() if comes_first(name, named)}


def _plain_targets(target: ast.AST) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for each in target.elts for name in _plain_targets(each)]
    if isinstance(target, ast.Starred):
        return _plain_targets(target.value)
    return []


def live_before(
    statements: Sequence[ast.stmt], out: Names, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Names:
    """The names that `statements`, run one after another, may read before they bind them, `out` being live
    after them."""
    probe = ast.FunctionDef(name=function.name, args=function.args, body=[], decorator_list=[])
    liveness = Liveness(probe)
    nested: set[str] = set()
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                nested |= reads(node) - set(bound(statements))
    jump = _Jumps(out, out, _NONE, _NONE)
    return liveness._block(statements, out, jump) | frozenset(nested)


def certainly_bound_before(function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> set[str]:
    """The names that are bound on every way from the function's start to `statement`, or its test would raise."""
    names = {each.arg for each in arguments(function.args)}
    # What the function does not bind itself is another's, or global.
    own = names | set(bound(function.body))
    found = _walk_to(function.body, statement, names)
    return own & ((names if found is None else found) | certainly_read(statement))


def certainly_read(statement: ast.stmt) -> set[str]:
    """The names that `statement` reads whenever it is reached, in its own expressions."""
    parts: list[ast.AST | None] = []
    if isinstance(statement, (ast.If, ast.While)):
        parts = [statement.test]
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        parts = [statement.iter]
    elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
        parts = [statement.value]
    names: set[str] = set()
    while parts:
        each = parts.pop()
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            names.add(each.id)
        elif isinstance(each, ast.BoolOp):
            parts.append(each.values[0])
        elif isinstance(each, ast.IfExp):
            parts.append(each.test)
        elif isinstance(each, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            parts.append(each.generators[0].iter)
        elif isinstance(each, ast.Compare):
            parts += [each.left, each.comparators[0]]
        elif each is not None and not isinstance(each, (ast.Lambda, ast.NamedExpr)):
            parts += ast.iter_child_nodes(each)
    return names


def _walk_to(statements: Sequence[ast.stmt], goal: ast.stmt, names: set[str]) -> set[str] | None:
    for statement in statements:
        if statement is goal:
            return names
        if any(each is goal for each in walk(statement)):
            entering = names | (
                set(bound(statement.target)) if isinstance(statement, (ast.For, ast.AsyncFor)) else set()
            )
            if isinstance(statement, (ast.With, ast.AsyncWith)):
                entering |= set(bound(statement.items))
            for _, block in ast.iter_fields(statement):
                if isinstance(block, list):
                    inner = [each for each in block if isinstance(each, ast.stmt)]
                    for other in block:
                        if isinstance(other, (ast.ExceptHandler, ast.match_case)):
                            inner += other.body
                    found = _walk_to(inner, goal, set(entering))
                    if found is not None:
                        return found
            return names
        names |= always_bound([statement]) | certainly_read(statement)
    return None


def always_bound(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that are bound whenever control falls out of the end of `statements`."""
    names: set[str] = set()
    for node in statements:
        if isinstance(node, ast.If):
            arms = [always_bound(arm) for arm in (node.body, node.orelse) if not leaves(arm)]
            if arms:
                names |= set.intersection(*arms)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            names |= set(bound(node.items)) | always_bound(node.body)
        elif isinstance(node, ast.Try):
            names |= always_bound(node.finalbody)
            ways = [
                always_bound([*node.body, *node.orelse]),
                *(always_bound(each.body) for each in node.handlers if not leaves(each.body)),
            ]
            names |= set.intersection(*ways)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Match):
            cases = [always_bound(each.body) for each in node.cases if not leaves(each.body)]
            if cases and _takes_all(node):
                names |= set.intersection(*cases)
        elif not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            names |= set(_certainly_bound(node)) if not isinstance(node, ast.Delete) else set()
            if isinstance(node, ast.AugAssign):
                names |= set(_plain_targets(node.target))
            if isinstance(node, ast.Delete):
                names -= set(bound(node))
    return names


def _takes_all(node: ast.Match) -> bool:
    """Whether one of the cases certainly is taken: the last takes anything."""
    last = node.cases[-1]
    return last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether control certainly does not fall out of the end of `statements`."""
    return "falls" not in exits(statements)


def exits(statements: Sequence[ast.stmt]) -> set[str]:
    """How control may leave `statements`: "falls", "returns", "raises", "breaks", "continues" (of a loop
    around them)."""
    ways: set[str] = set()
    for node in statements:
        own = _exits_of(node)
        ways |= own - {"falls"}
        if "falls" not in own:
            return ways
    return ways | {"falls"}


def _exits_of(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Return):
        return {"returns"}
    if isinstance(node, ast.Raise):
        return {"raises"}
    if isinstance(node, ast.Break):
        return {"breaks"}
    if isinstance(node, ast.Continue):
        return {"continues"}
    if isinstance(node, ast.If):
        return exits(node.body) | exits(node.orelse)
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        body = exits(node.body) - {"continues"}
        endless = (
            isinstance(node, ast.While)
            and isinstance(node.test, ast.Constant)
            and bool(node.test.value)
            and "breaks" not in body
        )
        return (
            (body - {"breaks", "falls"})
            | (set() if endless else {"falls"})
            | (exits(node.orelse) - {"falls"})
        )
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return exits(node.body)
    if isinstance(node, ast.Try):
        ways = exits([*node.body, *node.orelse])
        for handler in node.handlers:
            ways |= exits(handler.body)
        final = exits(node.finalbody)
        return ways | (final - {"falls"}) if "falls" in final else final
    if isinstance(node, ast.Match):
        ways = set[str]().union(*(exits(case.body) for case in node.cases))
        return ways if _takes_all(node) else ways | {"falls"}
    return {"falls"}


def becoming_arms(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """The statements of which a rewrite of `node` makes functions: it, and what follows in its block where it may leave that."""
    if exits([node]) == {"falls"}:
        return [node]
    block, index = source.block_of(node)
    return block[index:]
