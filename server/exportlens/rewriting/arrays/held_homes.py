"""Where NumPy data that traced code reads is set: an attribute of the model or of an object that it holds, one of a class, or a
name of the file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from exportlens.inference.places import NumpyRead
from exportlens.inference.values import Array
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.source.document import Chunk

ELSEWHERE = "the number is made elsewhere: convert it there with float() or int()"
Store = ast.Assign | ast.AnnAssign


@dataclass
class Home:
    """Where a path is set: the draft of the chunk, the name there, and all that set it."""

    draft: Draft
    name: str
    stores: list[Store]
    scope: ast.AST

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass
class Homes:
    """Finds where what `place` reads is set; the drafts of the chunks that it saw."""

    place: NumpyRead
    context: RewriteContext
    drafts: dict[int, Draft] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draft = Draft.of(self.place, self.context)
        self.drafts[id(self.draft.chunk)] = self.draft
        self.source = self.draft.source
        self.node = self.source.find(self.place.node)
        self.function = self.source.enclosing_function(self.node)
        value = self.place.value
        self.rank = value.rank if isinstance(value, Array) else None
        self.dtype = value.dtype if isinstance(value, Array) else None

    def draft_of(self, chunk: Chunk) -> Draft:
        if id(chunk) not in self.drafts:
            self.drafts[id(chunk)] = Draft.of_chunk(chunk, self.context)
        return self.drafts[id(chunk)]

    def followed(self, node: ast.expr) -> ast.expr:
        """What the local name `node` is bound to, once and by itself."""
        if not isinstance(node, ast.Name) or self.function is None or self.is_parameter(node):
            return node
        given = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
        ]
        statement = self.source.parents[given[0]] if len(given) == 1 else None
        if isinstance(statement, ast.Assign) and statement.targets == given:
            return statement.value
        return node

    def is_parameter(self, node: ast.Name) -> bool:
        if self.function is None:
            return False
        return node.id in {each.arg for each in arguments(self.function.args)} and node.id not in bound(
            self.function.body
        )

    def known_home(self, node: ast.expr) -> Home | None:
        """Where the path `node` is set; None where it is none, or certainly torch's."""
        try:
            home = self.home(node)
        except Refused:
            return None
        values = [each.value for each in home.stores if each.value is not None]
        heads = [home.draft.qualified(each.func) for each in values if isinstance(each, ast.Call)]
        return None if any(each.startswith("torch.") for each in heads) else home

    def home(self, node: ast.expr) -> Home:
        path = dotted(node)
        if path is None:
            raise Refused(ELSEWHERE)
        parts = path.split(".")
        cls = next((each for each in self.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        if parts[0] != "self":
            if len(parts) > 1 or self.function is None or parts[0] in bound(self.function.body):
                raise Refused(ELSEWHERE)
            return self._global(parts[0])
        if cls is None or len(parts) > 3:
            raise Refused(ELSEWHERE)
        home = self._in_class(self.draft, cls, parts[1])
        if len(parts) == 2:
            return home
        made = {
            home.draft.qualified(each.value.func) for each in home.stores if isinstance(each.value, ast.Call)
        }
        if len(made) != 1 or len(home.stores) != 1:
            raise Refused(ELSEWHERE)
        found = self._class_named(made.pop())
        if found is None:
            raise Refused(ELSEWHERE)
        return self._in_class(*found, parts[2])

    def _global(self, name: str) -> Home:
        found: list[tuple[Draft, ast.stmt]] = []
        for placed in self.context.document.placed:
            if name in placed.chunk.text:
                draft = self.draft_of(placed.chunk)
                found += [(draft, each) for each in draft.source.tree.body if name in bound(each)]
                if any(
                    isinstance(each, ast.Global) and name in each.names
                    for each in ast.walk(draft.source.tree)
                ):
                    raise Refused(ELSEWHERE)
        draft, store = found[0] if len(found) == 1 else (self.draft, None)
        if not isinstance(store, ast.Assign) or [dotted(each) for each in store.targets] != [name]:
            raise Refused(ELSEWHERE)
        return Home(draft, name, [store], draft.source.tree)

    def _class_named(self, name: str) -> tuple[Draft, ast.ClassDef] | None:
        for placed in self.context.document.placed:
            if any(isinstance(each, ast.ClassDef) and each.name == name for each in placed.chunk.body):
                draft = self.draft_of(placed.chunk)
                return draft, next(
                    each
                    for each in draft.source.tree.body
                    if isinstance(each, ast.ClassDef) and each.name == name
                )
        return None

    def _in_class(self, draft: Draft, cls: ast.ClassDef, attribute: str) -> Home:
        stores: list[Store] = []
        for each in ast.walk(cls):
            if (
                isinstance(each, ast.Attribute)
                and each.attr == attribute
                and not isinstance(each.ctx, ast.Load)
            ):
                if dotted(each.value) != "self":
                    raise Refused(ELSEWHERE)
                stores.append(_store_of(draft, each))
        name = f"self.{attribute}"
        if not stores:
            name = attribute
            stores = [
                each
                for each in cls.body
                if isinstance(each, ast.Assign) and [dotted(one) for one in each.targets] == [attribute]
            ]
        if stores:
            self._refuse_stores_while_tracing(draft, stores)
            return Home(draft, name, stores, cls)
        for base in cls.bases:
            found = self._class_named(dotted(base) or "")
            if found is not None and found[1] is not cls:
                return self._in_class(*found, attribute)
        raise Refused(ELSEWHERE)

    def _refuse_stores_while_tracing(self, draft: Draft, stores: list[Store]) -> None:
        for each in stores:
            function = draft.source.enclosing_function(each)
            if function is None or function.name == "__init__":
                continue
            for placed in self.context.document.placed:
                for one in ast.walk(ast.Module(list(placed.chunk.body), [])):
                    called = isinstance(one, ast.Attribute) and one.attr == function.name
                    if function.name == "forward" or (called and not _is_in_init(placed.chunk.body, one)):
                        raise Refused("what is held is set anew while the model runs")


def _store_of(draft: Draft, target: ast.Attribute) -> Store:
    statement = draft.source.parents[target]
    plain = isinstance(statement, ast.Assign) and statement.targets == [target]
    if plain or (isinstance(statement, ast.AnnAssign) and statement.value is not None):
        assert isinstance(statement, (ast.Assign, ast.AnnAssign))
        return statement
    raise Refused("what is held is set together with something else, or computed anew in place")


def _is_in_init(body: tuple[ast.stmt, ...] | list[ast.stmt], node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.FunctionDef) and each.name == "__init__" and node in ast.walk(each)
        for one in body
        for each in ast.walk(one)
    )
