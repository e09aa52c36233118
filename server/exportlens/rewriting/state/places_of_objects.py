"""Where a file makes the objects of a plain class that is to become a Module, and whether each place keeps a Module as it keeps them.

self.meter = Meter()                         the attribute of a Module
self.norm = Normalizer(Meter())              the argument of a constructor that only keeps it
meter = Meter()                              a local name of a constructor, for the above
self.meters = [Meter(), Meter()]     ->      self.meters = nn.ModuleList([Meter(), Meter()])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Edit
from exportlens.rewriting.code.called_parts import parameter_for
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.state.registered_lists import may_be_key, refuse_other_uses, set_in_init

_LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)


class PlacesOfObjects:
    """The places that make objects of the classes `names`. `swaps` are what they need in the chunk of `draft`, `edits` in others;
    `kept` tells whether some lie in what becomes a container of Modules."""

    def __init__(self, draft: Draft, names: set[str]) -> None:
        self.draft, self.names = draft, names
        self.swaps: list[Replacement] = []
        self.edits: list[Edit] = []
        self.kept = False
        self._classes: dict[str, tuple[ast.ClassDef, Source]] = {}
        self._wrapped: set[ast.AST] = set()
        chunks = [(draft.chunk, draft.source), *((each, Source(each.text)) for each in draft.others())]
        for _, source in chunks:
            for each in source.tree.body:
                if isinstance(each, ast.ClassDef):
                    self._classes[each.name] = (each, source)
        for chunk, source in chunks:
            swaps: list[Replacement] = []
            for each in ast.walk(source.tree):
                if isinstance(each, ast.Call) and dotted(each.func) in names:
                    swaps += self._place(each, source)
                elif isinstance(each, ast.Attribute) and each.attr == "__dict__":
                    raise Refused(f"{self._who()}, and the file reads `__dict__`")
            if not swaps:
                continue
            if chunk is draft.chunk:
                self.swaps += swaps
            else:
                there = Draft.of_chunk(chunk, draft.context)
                self.edits += there.replace("", swaps, uses_torch=False).edits

    def _who(self) -> str:
        return f"`{min(self.names)}` is no Module"

    def _nn(self) -> str:
        return spelled(self.draft.modules, "torch.nn") or f"{self.draft.torch}.nn"

    def _of_torch(self) -> bool:
        return self._nn().startswith(self.draft.torch)

    def _refused(self) -> Refused:
        return Refused(f"{self._who()}, and is not only made in constructors as an attribute")

    def _place(self, made: ast.expr, source: Source) -> list[Replacement]:
        """What the place of `made`, an object of the class or a name for it, needs. Raises Refused where it may keep no Module."""
        node, parent = made, source.parents.get(made)
        while isinstance(parent, (ast.BoolOp, ast.IfExp)) and not (
            isinstance(parent, ast.IfExp) and parent.test is node
        ):
            # `meter or Meter()`
            node, parent = parent, source.parents.get(parent)
        if isinstance(parent, ast.keyword):
            parent = source.parents.get(parent)
        if isinstance(parent, ast.Call) and (
            node in parent.args or any(node is one.value for one in parent.keywords)
        ):
            self._refuse_argument(parent, node)
            return []
        statement = source.enclosing_statement(made)
        function = source.enclosing_function(made)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or function is None:
            raise self._refused()
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if function.name != "__init__" or len(targets) != 1:
            raise self._refused()
        if statement.value is node and isinstance(targets[0], ast.Name) and node is made:
            self._refuse_names(targets[0].id, function, source)
            return []
        path = dotted(targets[0]) or ""
        if not path.startswith("self.") or path.count(".") != 1:
            raise self._refused()
        self._refuse_before(function, statement, source)
        if statement.value is node:
            return []
        if isinstance(statement.value, _LISTS) and isinstance(made, ast.Call):
            return self._container(statement.value, path.removeprefix("self."), function, source)
        raise self._refused()

    def _refuse_before(self, function: Function, statement: ast.stmt, source: Source) -> None:
        """Raise Refused where the object would be kept before the Module that keeps it is made."""
        cls = source.parents.get(function)
        if isinstance(cls, ast.ClassDef) and is_plain(cls):
            return
        if not makes_base(function) or source.start(statement) < makes_base_at(source, function):
            raise Refused(f"{self._who()}, and is made before `super().__init__()`")

    def _refuse_names(self, name: str, function: Function, source: Source) -> None:
        """Raise Refused where a constructor uses the local name of an object for more than to keep it."""
        for each in ast.walk(function):
            if not isinstance(each, ast.Name) or each.id != name:
                continue
            if not isinstance(each.ctx, ast.Load):
                if dotted(getattr(source.enclosing_statement(each), "value", each)) == name:
                    raise self._refused()
                continue
            if isinstance(source.parents.get(each), ast.Attribute):
                continue
            self._place(each, source)

    def _refuse_argument(self, call: ast.Call, given: ast.AST) -> None:
        """Raise Refused where a class of the file that is called with the object does more with it than to keep it."""
        name = dotted(call.func)
        if name not in self._classes:
            raise self._refused()
        cls, source = self._classes[name]
        function = next(
            (one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
        )
        parameter = None if function is None else _plain_parameter(call, given, function)
        if function is None or parameter is None:
            raise self._refused()
        for each in ast.walk(function):
            if not isinstance(each, ast.Name) or each.id != parameter:
                continue
            around = source.parents.get(each)
            if isinstance(around, ast.Attribute):
                continue
            if isinstance(around, ast.Compare) and isinstance(around.ops[0], (ast.Is, ast.IsNot)):
                continue
            self._place(each, source)

    def _container(
        self, listed: ast.expr, attr: str, function: Function, source: Source
    ) -> list[Replacement]:
        """`nn.ModuleList(...)` or `nn.ModuleDict(...)` around what lists the objects. Raises Refused."""
        cls = source.parents.get(function)
        if not isinstance(cls, ast.ClassDef) or is_plain(cls):
            raise self._refused()
        self.kept = True
        if listed in self._wrapped:
            return []
        self._wrapped.add(listed)
        items = list(_items_of(listed))
        if not items or not all(
            isinstance(one, ast.Call) and dotted(one.func) in self.names for one in items
        ):
            raise Refused(f"{self._who()}, and lies in `self.{attr}` among others")
        kind = "ModuleDict" if isinstance(listed, (ast.Dict, ast.DictComp)) else "ModuleList"
        if kind == "ModuleDict" and not all(map(may_be_key, _keys_of(listed))):
            raise Refused(
                f"the keys of `self.{attr}` are not known names that are free in an `nn.ModuleDict`"
            )
        if set_in_init(cls, attr) is not listed:
            raise self._refused()
        refuse_other_uses(cls, attr, kind)
        return [source.swap(listed, f"{self._nn()}.{kind}({source.of(listed)})")]


def _items_of(listed: ast.expr) -> Iterator[ast.expr]:
    if isinstance(listed, ast.List):
        yield from listed.elts
    elif isinstance(listed, ast.Dict):
        yield from listed.values
    elif isinstance(listed, ast.ListComp):
        yield listed.elt
    elif isinstance(listed, ast.DictComp):
        yield listed.value


def _keys_of(listed: ast.expr) -> list[object]:
    """The keys of a dict that is written out, [None] where they are not known."""
    if isinstance(listed, ast.Dict):
        return [each.value if isinstance(each, ast.Constant) else None for each in listed.keys]
    if isinstance(listed, ast.DictComp) and len(listed.generators) == 1:
        over = listed.generators[0]
        if (
            isinstance(over.iter, (ast.List, ast.Tuple))
            and isinstance(over.target, ast.Name)
            and dotted(listed.key) == over.target.id
        ):
            return [each.value if isinstance(each, ast.Constant) else None for each in over.iter.elts]
    return [None]


def _plain_parameter(call: ast.Call, given: ast.AST, function: ast.FunctionDef) -> str | None:
    """The parameter of a constructor that takes `given`."""
    name = parameter_for(call, given, function)
    special = {one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None}
    return name if name in {each.arg for each in arguments(function.args)} - special else None


def is_plain(cls: ast.ClassDef) -> bool:
    return [ast.unparse(each) for each in cls.bases] in ([], ["object"])


def _calls_of_base(function: ast.AST) -> list[ast.Call]:
    return [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "__init__"
    ]


def makes_base(function: ast.AST) -> bool:
    return bool(_calls_of_base(function))


def makes_base_at(source: Source, function: ast.AST) -> int:
    return min(source.start(each) for each in _calls_of_base(function))
