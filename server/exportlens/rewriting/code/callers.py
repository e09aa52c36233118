"""Callers: whether what a function gives is written in place by those that call it, in its file and in others.

A file may be asked about many times for one rewrite (a caller hands on what it was given, and has callers of its own):
what a chunk says of calls is read from its tree once.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from exportlens.rewriting.code.context import nowhere
from exportlens.rewriting.code.names import arguments, bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import LOCAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.cut_tensors import CUTTING
from exportlens.rewriting.memory.effects import visit
from exportlens.rewriting.memory.watching import Watch
from exportlens.source.document import Chunk

_GIVEN = "result"
_MOST_CALLERS = 3
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@functools.lru_cache(maxsize=2048)
def identifiers(text: str) -> frozenset[str]:
    """The words of a text that may be names in it."""
    return frozenset(_IDENTIFIER.findall(text))


@dataclass(slots=True)
class Facts:
    """What some statements say of calls: who calls what (by last names), which names imports give, what is built into
    which targets, and what loops go through."""

    callers: list[tuple[Function, set[str]]] = field(default_factory=list)
    classes: list[ast.ClassDef] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    built: list[tuple[set[str], set[str]]] = field(default_factory=list)
    looped: list[tuple[set[str], set[str]]] = field(default_factory=list)

    @classmethod
    def of(cls, statements: Iterable[ast.stmt]) -> Facts:
        facts = cls()
        for statement in statements:
            for node in ast.walk(statement):
                facts._add(node)
        return facts

    def _add(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.callers.append((node, _called_in(node)))
        elif isinstance(node, ast.ClassDef):
            self.classes.append(node)
        elif isinstance(node, ast.ImportFrom):
            self.renamed += [(each.name, each.asname) for each in node.names if each.asname]
        elif isinstance(node, ast.Assign):
            called = _called_in(node.value)
            if called:
                self.built.append((called, {_last_name(each) for each in node.targets} - {""}))
        elif isinstance(node, (ast.For, ast.comprehension)):
            through = {each.attr for each in ast.walk(node.iter) if isinstance(each, ast.Attribute)}
            if through:
                self.looped.append((through, set(bound(node.target))))


_facts: WeakKeyDictionary[Chunk, Facts] = WeakKeyDictionary()


def _facts_of(chunk: Chunk) -> Facts:
    facts = _facts.get(chunk)
    if facts is None:
        facts = _facts[chunk] = Facts.of(chunk.body)
    return facts


def callers_write(source: Source, function: Function, kinds: Kinds) -> bool:
    """Whether a function of the file, or of another one that is known, writes in place what a call of `function` gave it.

    Callers that return what they were given are followed to their own callers, a few steps far.
    """
    return _Search(Facts.of(source.tree.body), kinds).written(function, 0)


def given_together(
    source: Source, function: Function, kinds: Kinds, *, same: bool = False
) -> set[frozenset[str]]:
    """The pairs of parameters of `function` that a caller gives two views of one tensor, or a tensor and its view; with `same`
    also those that a caller gives one tensor twice."""
    return _Search(Facts.of(source.tree.body), kinds).given_together(function, same)


def given_to(source: Source, function: Function, name: str, kinds: Kinds) -> list[Kind]:
    """What the calls of `function` that are known give its parameter `name`."""
    return list(_Search(Facts.of(source.tree.body), kinds).given_to(function, name))


def calls_of(
    source: Source,
    function: Function,
    kinds: Kinds,
    look: Callable[[dict[str, ast.expr], Kinds, Function], None],
) -> None:
    """Let `look` see what each call of `function` in the same chunks gives to its parameters, what is known of the names there,
    and the function around it, whose own parameters are taken for tensors. Other files are left out: in a large workspace
    following all that call a method of a common name takes longer than all else."""
    near = kinds.copy()
    near.elsewhere = nowhere
    search = _Search(Facts.of(source.tree.body), near)
    search.calls_of(function, lambda call, now, caller: look(_given(call, function), now, caller), True)


class _Search:
    """One question, and what has been found on the way to its answer."""

    def __init__(self, own: Facts, kinds: Kinds) -> None:
        self.own = [own, *map(_facts_of, kinds.around)]
        self.kinds = kinds
        self.seen: set[Function] = set()

    def written(self, function: Function, depth: int) -> bool:
        if depth > _MOST_CALLERS or function in self.seen:
            return False
        self.seen.add(function)
        called = self.called_as(function)
        for facts, modules in self.mentioning(called):
            for caller, calls in facts.callers:
                if caller is function or calls.isdisjoint(called):
                    continue
                inside = Kinds({}, modules)
                inside.results = {name: Kind("tensor", roots=frozenset({_GIVEN})) for name in called}
                for each in arguments(caller.args):
                    inside.names[each.arg] = Kind("unknown", roots=frozenset({f"{LOCAL}{each.arg}"}))
                watch = Watch()
                visit(caller.body, inside, watch.see)
                if _GIVEN in watch.written or (_GIVEN in watch.returned and self.written(caller, depth + 1)):
                    return True
        return False

    def given_together(self, function: Function, same: bool) -> set[frozenset[str]]:
        pairs: set[frozenset[str]] = set()

        def see(call: ast.Call, now: Kinds, caller: Function) -> None:
            given = _given(call, function)
            pairs.update(_sharing(given, now, _views(caller), same))
            pairs.update(_pieces(given, caller))

        self.calls_of(function, see, known=self.known_in)
        return pairs

    def given_to(self, function: Function, name: str) -> list[Kind]:
        found: list[Kind] = []

        def see(call: ast.Call, now: Kinds, caller: Function) -> None:
            given = _given(call, function).get(name)
            if given is not None:
                found.append(now.of(given))

        self.calls_of(function, see)
        return found

    def calls_of(
        self,
        function: Function,
        look: Callable[[ast.Call, Kinds, Function], None],
        tensors: bool = False,
        known: Callable[[Function, Function, Mapping[str, str]], Kinds] | None = None,
    ) -> None:
        """Let `look` see each known call of `function`, what is known of the names there, and the function around it. `known` gives
        what is known where that begins, besides its arguments (None: nothing)."""
        called = self.called_as(function)
        for facts, modules in self.mentioning(called):
            for caller, calls in facts.callers:
                if caller is function or calls.isdisjoint(called):
                    continue
                inside = Kinds({}, modules) if known is None else known(caller, function, modules)
                for each in arguments(caller.args):
                    if each.arg in inside.names:
                        continue
                    annotated = each.annotation is not None and ast.unparse(each.annotation).endswith(
                        "Tensor"
                    )
                    what = "tensor" if annotated or tensors or caller.name == "forward" else "unknown"
                    inside.names[each.arg] = Kind(what, roots=frozenset({f"{LOCAL}{each.arg}"}))

                def see(node: ast.stmt, now: Kinds, caller: Function = caller) -> None:
                    for call in _own_calls(node):
                        if _last_name(call.func) in called:
                            look(call, now, caller)

                visit(caller.body, inside, see)

    def known_in(self, caller: Function, function: Function, modules: Mapping[str, str]) -> Kinds:
        """What is known at the start of `caller`, a function that calls `function`, of all but its arguments: what the functions of
        the file give, and what `self` is where both are methods of one class."""
        inside = Kinds({}, modules)
        if modules is not self.kinds.modules:
            return inside
        related = any(caller in each.body and function in each.body for each in self.own[0].classes)
        inside.cancelled, inside.answers, inside.around = (
            self.kinds.cancelled,
            self.kinds.answers,
            self.kinds.around,
        )
        inside.functions = {
            name: each
            for name, each in self.kinds.functions.items()
            if each.name != caller.name and (related or "." not in name)
        }
        if related and "self" in self.kinds.names:
            inside.names["self"] = self.kinds.names["self"]
        return inside

    def mentioning(self, names: set[str]) -> Iterator[tuple[Facts, Mapping[str, str]]]:
        """The file's statements, and the chunks of other files in which one of `names` occurs, with what is imported there."""
        if not names:
            return
        for facts in self.own:
            yield facts, self.kinds.modules
        for chunk, modules in self.kinds.elsewhere(frozenset(names)):
            yield _facts_of(chunk), modules

    def called_as(self, function: Function) -> set[str]:
        """The last names under which `function` is called: for `forward` the attributes that hold such a module."""
        if function.name not in ("forward", "__call__"):
            return {function.name} | self.other_names(function.name)
        owner = next(
            (each.name for facts in self.own for each in facts.classes if function in each.body), None
        )
        if owner is None:
            return set()
        built = {owner} | self.other_names(owner)
        everywhere = [facts for facts, _ in self.mentioning({owner})]
        found = {
            target
            for facts in everywhere
            for called, targets in facts.built
            if not called.isdisjoint(built)
            for target in targets
        }
        return found | {
            target
            for facts in everywhere
            for through, targets in facts.looped
            if not through.isdisjoint(found)
            for target in targets
        }

    def other_names(self, name: str) -> set[str]:
        """The names that imports give to `name`."""
        return {given for facts, _ in self.mentioning({name}) for own, given in facts.renamed if own == name}


def _called_in(node: ast.AST) -> set[str]:
    return {_last_name(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)} - {""}


def _last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement itself, not of the statements inside of it."""
    parts = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
    return (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call))


def _views(function: Function) -> set[str]:
    """The parameters of `function`, and the names that are bound to parts of something alone: what is unpacked, computed
    or given by a call need not share the memory of what it is made of."""
    views = {each.arg for each in arguments(function.args)}
    others = set(bound(function.body))
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                single = len(target.elts) == len(value.elts) and all(map(_part_of, value.elts))
            else:
                single = isinstance(target, ast.Name) and _part_of(value) is not None
            if single:
                views.update(bound(target))
                others -= set(bound(target))
    return views - others


def _pieces(given: Mapping[str, ast.expr], caller: Function) -> Iterator[frozenset[str]]:
    """The pairs of what is `given` that `caller` unpacks from one cut tensor, whatever that is: `q, k = qk.chunk(2, -1)`."""
    stores: dict[str, int] = {}
    for each in ast.walk(caller):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            stores[each.id] = stores.get(each.id, 0) + 1
    for node in ast.walk(caller):
        if not (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], (ast.Tuple, ast.List))
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr in CUTTING
        ):
            continue
        pieces = {name for name in bound(node.targets[0]) if stores.get(name) == 1}
        handed = [name for name, value in given.items() if isinstance(value, ast.Name) and value.id in pieces]
        yield from map(frozenset, itertools.combinations(handed, 2))


def _part_of(node: ast.expr) -> str | None:
    """The name of which `node` is a part, or that it is."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _given(call: ast.Call, function: Function) -> dict[str, ast.expr]:
    """What `call` gives to parameters of `function`, as far as it is written out."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_module = function.name in ("forward", "__call__")  # called by any name that holds it
    if places[:1] == ["self"] and (is_module or isinstance(call.func, ast.Attribute)):
        places = places[1:]
    given: dict[str, ast.expr] = {}
    for name, value in zip(places, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    return given | {each.arg: each.value for each in call.keywords if each.arg}


def _sharing(
    given: Mapping[str, ast.expr], kinds: Kinds, views: set[str], same: bool
) -> Iterator[frozenset[str]]:
    """The pairs of what is `given` that share memory; one tensor under two names only where `same` asks for it."""
    parts: list[tuple[str, Kind]] = []
    for name, value in given.items():
        kind = kinds.of(value)
        known = kind.what == "tensor" or (kind.what == "unknown" and _part_of(value) in views)
        if known and kind.roots:
            for other, another in parts:
                if (same or kind is not another) and kind.roots & (another.roots or frozenset()):
                    yield frozenset({name, other})
            parts.append((name, kind))
