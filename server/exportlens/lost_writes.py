"""Attributes that strict tracing loses: torch 2.13 forgets what is written to an object behind a torch.cond, while_loop, map or
scan where something was written to it before (measured; the program goes on with the first value, without a word).

    self.scale = x.mean()
    y = torch.cond(...)
    self.scale = y.mean()
    return x * self.scale       # the first mean

The same goes for an object that was made while tracing, as its constructor writes to it. Non-strict tracing gets it right.
A fix that writes such an operator must not come between two writes.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from exportlens.rewriting.code.names import dotted, registers_buffer
from exportlens.source.walking import children, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# How the object is known that a method belongs to.
_SELF = "self"
_OPERATORS = frozenset({"cond", "while_loop", "map", "scan"})
# What is set of tensors, whose attributes are no Python state.
_OF_TENSORS = frozenset({"data", "grad", "requires_grad", "names"})
# How many methods of the same object are followed, one into the next.
_MOST_DEEP = 4


@dataclass(slots=True)
class _Object:
    """What is known of the attributes of one object, as the code runs."""

    written: bool = False
    crossed: bool = False
    lost: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _State:
    """The objects by the path that they are known by, and the first attribute that is read and was lost."""

    objects: dict[str, _Object] = field(default_factory=dict)
    read: str | None = None
    # Whether an object counts as written only where every way through an `if` writes to it.
    certain: bool = False

    def copy(self) -> _State:
        objects = {path: replace(known, lost=set(known.lost)) for path, known in self.objects.items()}
        return _State(objects, self.read, self.certain)

    def key(self) -> Hashable:
        known = (
            (path, each.written, each.crossed, frozenset(each.lost)) for path, each in self.objects.items()
        )
        return self.read, frozenset(known)

    def join(self, others: Iterable[_State]) -> None:
        others = list(others)
        if self.certain and others:
            ways = [other.objects for other in others]
            paths = set(ways[0]).intersection(*ways[1:])
            self.objects = {
                path: _Object(
                    all(way[path].written for way in ways),
                    all(way[path].crossed for way in ways),
                    set.intersection(*(way[path].lost for way in ways)),
                )
                for path in paths
            }
            return
        for other in others:
            for path, theirs in other.objects.items():
                own = self.objects.setdefault(path, _Object())
                own.written |= theirs.written
                own.crossed |= theirs.crossed
                own.lost |= theirs.lost


def lost_attribute(ways: Iterable[tuple[Iterable[ast.stmt], ast.AST]], certain: bool = False) -> str | None:
    """The attribute that a model would read after tracing lost what was written to it, if an operator were put at a place; None
    where there is none. With `certain`, only what is lost whichever way an `if` goes that does not decide over the place.

    `ways` lead there: the statements of a file's chunk, and the node in it that the operator takes the place of, or the call that
    leads to it; the place itself comes first, the entry point last.
    """
    foreign: set[str] = set()
    inner: _Function | None = None
    calls = 0
    homes = [(_home(body, node), node) for body, node in ways]
    for index, (home, node) in enumerate(homes):
        if home is None:
            inner = None
            continue
        methods, function = home
        calls = calls + 1 if _calls(function, node, methods, inner) else 0
        inner = function
        if 0 < calls <= _MOST_DEEP:
            # Gone through above, as what comes to the place: what the called method writes before the place is not lost.
            continue
        goal = _whole(function, node)
        lost: set[str] = set()
        given = set() if certain else _made_arguments(homes[index:])
        for start in (function, *_callers(methods, function)):
            known = {path: _Object(written=True) for path in given} if start is function else {}
            order = _Order(methods, goal, start, _State(known, certain=certain))
            order.block(start.body)
            state = order.state
            if state.read is not None:
                return state.read
            if not foreign.isdisjoint(_reads(start)):
                return min(foreign.intersection(_reads(start)))
            for path in (_SELF, *known):
                lost |= state.objects.get(path, _Object()).lost
        foreign |= lost
    return None


def _calls(
    function: _Function, node: ast.AST, methods: dict[str, _Function], called: _Function | None
) -> bool:
    """Whether `node`, in `function`, calls the method `called` of the same object."""
    return (
        called is not None
        and methods.get(called.name) is called
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _is(node.func.value, _own_name(function))
        and node.func.attr == called.name
    )


def _home(body: Iterable[ast.stmt], node: ast.AST) -> tuple[dict[str, _Function], _Function] | None:
    """The methods of the class that `node` stands in, and the method; or no methods, and the function."""
    for statement in body:
        if not any(each is node for each in walk(statement)):
            continue
        for outer in walk(statement):
            inner = outer.body if isinstance(outer, ast.ClassDef) else [outer]
            functions = [each for each in inner if isinstance(each, _Function)]
            for function in functions:
                if any(each is node for each in walk(function)):
                    own = functions if isinstance(outer, ast.ClassDef) else []
                    return {each.name: each for each in own}, function
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


def _made_arguments(homes: list[tuple[tuple[dict[str, _Function], _Function] | None, ast.AST]]) -> set[str]:
    """What the parameters of the first function are known by there that may be given an object that is made while tracing."""
    if len(homes) < 2 or homes[0][0] is None or homes[1][0] is None:
        return set()
    methods, function = homes[0][0]
    call = homes[1][1]
    if not isinstance(call, ast.Call):
        return set()
    around = homes[1][0][1]
    outer = {path.partition(":")[2] for path in _made_arguments(homes[1:])}
    made = outer | {
        target.id
        for each in walk(around)
        if isinstance(each, ast.Assign) and _makes(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return {
        f"{function.name}:{name}"
        for name, value in _arguments(call, function, bound=bool(methods))
        if _makes(value) or (isinstance(value, ast.Name) and value.id in made)
    }


def _makes(node: ast.expr) -> bool:
    """Whether an expression may give an object that is made while tracing, and holds attributes."""
    if isinstance(node, ast.IfExp):
        return _makes(node.body) or _makes(node.orelse)
    return isinstance(node, ast.Call) and not (dotted(node.func) or "").startswith("torch.")


def _arguments(call: ast.Call, function: _Function, bound: bool) -> Iterator[tuple[str, ast.expr]]:
    """The parameters of `function` and what `call` gives them, `self` left out of a method that is `bound`."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)][bound:]
    for name, value in zip(places, call.args, strict=False):
        if isinstance(value, ast.Starred):
            return
        yield name, value
    for each in call.keywords:
        if each.arg is not None:
            yield each.arg, each.value


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
    """Goes through a function in the order in which it runs: all ways through it, loops twice."""

    def __init__(
        self,
        methods: dict[str, _Function],
        goal: ast.AST,
        function: _Function,
        state: _State,
        depth: int = 0,
        called: dict[Hashable, _State] | None = None,
    ) -> None:
        self.methods = methods
        self.goal = goal
        self.own = _own_name(function) if methods else ""
        self.room = f"{function.name}:"
        self.state = state
        self.depth = depth
        # What a method leaves, by what it starts with: each is gone through once, however many calls lead there.
        self.called: dict[Hashable, _State] = {} if called is None else called

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
        if isinstance(node, ast.Attribute):
            self._attribute(node, reads, stores)
            return
        if isinstance(node, ast.Assign):
            self._each([node.value, *node.targets], reads, stores)
            if stores and not self.state.certain and _makes(node.value):
                self._made(node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute) and reads:
                self._read(node.target)
            self._each([each for each in (node.value, node.target) if each is not None], reads, stores)
        else:
            self._each(children(node), reads, stores)
        if isinstance(node, ast.Name):
            self._name(node, reads, stores)
        elif isinstance(node, ast.Call):
            self._call(node, reads, stores)

    def _each(self, nodes: Iterable[ast.AST], reads: bool, stores: bool) -> None:
        if reads and stores:
            self.block(nodes)
        else:
            for node in nodes:
                self._parts(node, reads=reads, stores=stores)

    def _arms(self, node: ast.If) -> None:
        before, ends = self.state, []
        arms = [node.body, node.orelse]
        if before.certain:
            # What leads to the goal is known to run.
            arms = [arm for arm in arms if self._holds_goal(arm)] or arms
        for arm in arms:
            self.state = before.copy()
            self.block(arm)
            before.read = before.read or self.state.read
            if not (arm and isinstance(arm[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))):
                ends.append(self.state)
        self.state = before
        before.join(ends)

    def _holds_goal(self, arm: Iterable[ast.AST]) -> bool:
        return any(each is self.goal for statement in arm for each in walk(statement))

    def _is_training(self, test: ast.AST) -> bool:
        return isinstance(test, ast.Attribute) and test.attr == "training" and _is(test.value, self.own)

    def _attribute(self, node: ast.Attribute, reads: bool, stores: bool) -> None:
        path = self._path(node.value)
        if path is None:
            self._each([node.value], reads, stores)
        elif isinstance(node.ctx, ast.Load):
            if reads:
                self._read(node)
        elif stores:
            self._store(path, node.attr)

    def _path(self, node: ast.expr) -> str | None:
        """What an object is known by, in all methods alike where it is one of the model's."""
        name = dotted(node)
        if name is None:
            return None
        head, _, rest = name.partition(".")
        known = _SELF if head == self.own else self.room + head
        return f"{known}.{rest}" if rest else known

    def _read(self, node: ast.Attribute) -> None:
        """`a.b.c`: the attribute of `a`, and that of `a.b`."""
        owner: ast.expr = node
        while isinstance(owner, ast.Attribute) and self.state.read is None:
            known = self.state.objects.get(self._path(owner.value) or "")
            if known is not None and owner.attr in known.lost:
                self.state.read = owner.attr
            owner = owner.value

    def _name(self, node: ast.Name, reads: bool, stores: bool) -> None:
        path = self.room + node.id
        known = self.state.objects.get(path)
        if known is None or node.id == self.own:
            return
        if not isinstance(node.ctx, ast.Load):
            if stores:
                del self.state.objects[path]
        elif reads and known.lost and self.state.read is None:
            # Handed on whole: whoever gets it reads what it has.
            self.state.read = min(known.lost)

    def _made(self, targets: Iterable[ast.expr]) -> None:
        """What a call gives may be an object that was made while tracing: its constructor has written to it."""
        for each in targets:
            if isinstance(each, ast.Name) and each.id != self.own:
                self.state.objects[self.room + each.id] = _Object(written=True)

    def _store(self, path: str, attr: str) -> None:
        if attr in _OF_TENSORS:
            return
        known = self.state.objects.setdefault(path, _Object())
        if known.crossed and not (path == _SELF and self._is_buffer(attr)):
            known.lost.add(attr)
        known.written = True

    def _is_buffer(self, attr: str) -> bool:
        """Whether the class registers `attr` as a buffer: of these strict tracing loses nothing (measured on torch 2.13)."""
        return any(registers_buffer(method, attr) for method in self.methods.values())

    def _cross(self) -> None:
        for known in self.state.objects.values():
            known.crossed |= known.written

    def _call(self, node: ast.Call, reads: bool, stores: bool) -> None:
        name = dotted(node.func) or ""
        path = self._path(node.args[0]) if node.args else None
        if name == "setattr" and path is not None and stores:
            named = node.args[1] if len(node.args) > 1 else None
            self._store(path, str(named.value) if isinstance(named, ast.Constant) else "")
        elif name.startswith("torch.") and name.rpartition(".")[2] in _OPERATORS:
            self._cross()
        elif (
            isinstance(node.func, ast.Attribute)
            and _is(node.func.value, self.own)
            and node.func.attr in self.methods
            and self.depth < _MOST_DEEP
        ):
            method = self.methods[node.func.attr]
            passed = self._passed(node, method)
            for own, theirs in passed:
                self.state.objects[theirs] = self.state.objects[own]
            key = method.name, self.depth, self.state.key(), reads, stores
            if key not in self.called:
                inner = _Order(
                    self.methods, self.goal, method, self.state.copy(), self.depth + 1, self.called
                )
                # In the place itself, what a method sets is set behind it, as what its arms set themselves.
                inner._each(method.body, reads, stores)
                self.called[key] = inner.state
            self.state = self.called[key].copy()
            for own, theirs in passed:
                if theirs in self.state.objects:
                    self.state.objects[own] = self.state.objects.pop(theirs)
        elif isinstance(node.func, ast.Attribute):
            owner = self._path(node.func.value)
            known = self.state.objects.get(owner or "")
            if known is not None and known.lost and owner != _SELF and self.state.read is None:
                # What its methods read is not followed; those of the model are its submodules, too.
                self.state.read = min(known.lost)

    def _passed(self, node: ast.Call, method: _Function) -> list[tuple[str, str]]:
        """The known objects that a call hands to a method of the same object, and what they are known by there."""
        pairs = [
            (self._path(value) or "", f"{method.name}:{name}")
            for name, value in _arguments(node, method, bound=True)
        ]
        return [(own, theirs) for own, theirs in pairs if own in self.state.objects and own != _SELF]
