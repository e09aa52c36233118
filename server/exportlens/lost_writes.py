"""Attributes that strict tracing loses: torch 2.13 forgets what is written to an object behind a torch.cond, while_loop, map or
scan where something was written to it before (measured; the program goes on with the first value, without a word).

    self.scale = x.mean()
    y = torch.cond(...)
    self.scale = y.mean()
    return x * self.scale       # the first mean

Non-strict tracing gets it right. A fix that writes such an operator must not come between two writes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from exportlens.rewriting.names import dotted
from exportlens.source.walking import children, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_OPERATORS = frozenset({"cond", "while_loop", "map", "scan"})
# How many methods of the same object are followed, one into the next.
_MOST_DEEP = 4


@dataclass(slots=True)
class _Object:
    """What is known of the attributes of one object, as its methods run one after the other."""

    written: bool = False
    crossed: bool = False
    lost: set[str] = field(default_factory=set)
    read: str | None = None


def lost_attribute(ways: Iterable[tuple[Iterable[ast.stmt], ast.AST]]) -> str | None:
    """The attribute that a model would read after tracing lost what was written to it, if an operator were put at a place; None
    where there is none.

    `ways` lead there: the statements of a file's chunk, and the node in it that the operator takes the place of, or the call that
    leads to it; the place itself comes first, the entry point last.
    """
    foreign: set[str] = set()
    for body, node in ways:
        home = _home(body, node)
        if home is None:
            continue
        methods, function = home
        goal = _whole(function, node)
        lost: set[str] = set()
        for start in (function, *_callers(methods, function)):
            found = _Object()
            _Order(methods, goal, _own_name(start), found).block(start.body)
            if found.read is not None:
                return found.read
            if not foreign.isdisjoint(_reads(start)):
                return min(foreign.intersection(_reads(start)))
            lost |= found.lost
        foreign |= lost
    return None


def _home(body: Iterable[ast.stmt], node: ast.AST) -> tuple[dict[str, _Function], _Function] | None:
    """The methods of the class that `node` stands in, and the method."""
    for statement in body:
        for cls in walk(statement):
            if isinstance(cls, ast.ClassDef):
                methods = {each.name: each for each in cls.body if isinstance(each, _Function)}
                for method in methods.values():
                    if any(each is node for each in walk(method)):
                        return methods, method
    return None


def _whole(function: _Function, node: ast.AST) -> ast.AST:
    """The `if` that `node` is an `elif` of, else `node`: a chain becomes one operator."""
    chained = {
        id(each.orelse[0]): each
        for each in walk(function)
        if isinstance(each, ast.If) and len(each.orelse) == 1
    }
    while id(node) in chained and isinstance(node, ast.If):
        node = chained[id(node)]
    return node


def _callers(methods: dict[str, _Function], function: _Function) -> Iterator[_Function]:
    """The methods that come to `function`, over several others perhaps."""
    reaching = {function.name}
    found: list[_Function] = []
    grown = True
    while grown:
        grown = False
        for method in methods.values():
            if method.name not in reaching and not reaching.isdisjoint(_called(method)):
                reaching.add(method.name)
                found.append(method)
                grown = True
    yield from (method for method in found if method.name != "__init__")


def _called(method: _Function) -> set[str]:
    own = _own_name(method)
    return {
        each.func.attr
        for each in walk(method)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and _is(each.func.value, own)
    }


def _own_name(method: _Function) -> str:
    parameters = [*method.args.posonlyargs, *method.args.args]
    return parameters[0].arg if parameters else ""


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _reads(method: _Function) -> set[str]:
    return {
        each.attr
        for each in walk(method)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)
    }


class _Order:
    """Goes through a method in the order in which it runs: all ways through it, loops twice."""

    def __init__(
        self, methods: dict[str, _Function], goal: ast.AST, own: str, found: _Object, depth: int = 0
    ) -> None:
        self.methods = methods
        self.goal = goal
        self.own = own
        self.found = found
        self.depth = depth

    def block(self, statements: Iterable[ast.AST]) -> None:
        for statement in statements:
            self._node(statement)

    def _node(self, node: ast.AST) -> None:
        if node is self.goal:
            # What it reads is read before, what it sets after: its arms hand out what they set.
            self._parts(node, stores=False)
            self._cross()
            self._parts(node, reads=False)
        else:
            self._parts(node)

    def _parts(self, node: ast.AST, *, reads: bool = True, stores: bool = True) -> None:
        if isinstance(node, ast.If) and self._is_training(node.test):
            self.block(node.orelse)
            return
        if isinstance(node, ast.If) and reads and stores:
            self._node(node.test)
            self._arms(node)
            return
        if isinstance(node, (ast.For, ast.While)):
            for _ in range(2):
                self._each(children(node), reads, stores)
            return
        if isinstance(node, ast.Assign):
            self._each([node.value, *node.targets], reads, stores)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute) and reads:
                self._read(node.target)
            self._each([each for each in (node.value, node.target) if each is not None], reads, stores)
        else:
            self._each(children(node), reads, stores)
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load) and reads:
                self._read(node)
            elif not isinstance(node.ctx, ast.Load) and stores and _is(node.value, self.own):
                self._store(node.attr)
        elif isinstance(node, ast.Call):
            self._call(node, stores)

    def _arms(self, node: ast.If) -> None:
        before, ends = self.found, []
        for arm in (node.body, node.orelse):
            self.found = replace(before, lost=set(before.lost))
            self.block(arm)
            before.read = before.read or self.found.read
            if not (arm and isinstance(arm[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))):
                ends.append(self.found)
        self.found = before
        for end in ends:
            before.written |= end.written
            before.crossed |= end.crossed
            before.lost |= end.lost

    def _each(self, nodes: Iterable[ast.AST], reads: bool, stores: bool) -> None:
        if reads and stores:
            self.block(nodes)
        else:
            for node in nodes:
                self._parts(node, reads=reads, stores=stores)

    def _is_training(self, test: ast.AST) -> bool:
        return isinstance(test, ast.Attribute) and test.attr == "training" and _is(test.value, self.own)

    def _read(self, node: ast.Attribute) -> None:
        if _is(node.value, self.own) and node.attr in self.found.lost and self.found.read is None:
            self.found.read = node.attr

    def _store(self, attr: str) -> None:
        if self.found.crossed:
            self.found.lost.add(attr)
        self.found.written = True

    def _cross(self) -> None:
        self.found.crossed = self.found.crossed or self.found.written

    def _call(self, node: ast.Call, stores: bool) -> None:
        name = dotted(node.func) or ""
        first = node.args[0] if node.args else None
        if name == "setattr" and first is not None and _is(first, self.own) and stores:
            named = node.args[1] if len(node.args) > 1 else None
            self._store(str(named.value) if isinstance(named, ast.Constant) else "")
        elif name.startswith("torch.") and name.rpartition(".")[2] in _OPERATORS:
            self._cross()
        elif (
            isinstance(node.func, ast.Attribute)
            and _is(node.func.value, self.own)
            and node.func.attr in self.methods
            and self.depth < _MOST_DEEP
        ):
            method = self.methods[node.func.attr]
            inner = _Order(self.methods, self.goal, _own_name(method), self.found, self.depth + 1)
            inner.block(method.body)
