"""What the functions of a file read of the state that its objects keep from call to call, and where a call has certainly set it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from exportlens.rewriting.code.liveness import leaves
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.state.unset_state import ADDING, How, KeptState, may_set, parameters, stored
from exportlens.source.walking import children, walk

# In how many functions that are called is looked for reads.
_DEEPEST = 4
# What asks a list how much is in it, or takes an empty one as it is.
_TAKING_EMPTY = frozenset(
    {"len", "bool", "list", "tuple", "dict", "enumerate", "zip", "reversed", "isinstance", "sum", "print"}
)
_LISTING = frozenset({"values", "items", "keys", "copy"})
_TAKING_OUT = frozenset({"pop", "popleft", "popitem", "remove"})
_ASKING = frozenset({"len", "bool", "isinstance", "hasattr", "getattr", "any", "all"})
BLOCKS = ("body", "orelse", "finalbody")


class File:
    """The classes and functions of a file. Where what is `carried` from earlier calls is looked for, a question whether the state
    is there settles nothing."""

    def __init__(self, body: Sequence[ast.stmt], carried: bool = False) -> None:
        self.carried = carried
        self.classes = {each.name: each for each in body if isinstance(each, ast.ClassDef)}
        self.functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
        self._states: dict[ast.ClassDef, KeptState] = {}
        self._above: dict[ast.AST, dict[ast.AST, ast.AST]] = {}

    def state(self, cls: ast.ClassDef) -> KeptState:
        if cls not in self._states:
            self._states[cls] = KeptState(cls, self.classes, named=self.carried)
        return self._states[cls]

    def above(self, function: ast.AST) -> dict[ast.AST, ast.AST]:
        """What each node of `function` is directly below."""
        if function not in self._above:
            self._above[function] = {child: node for node in walk(function) for child in children(node)}
        return self._above[function]


@dataclass(frozen=True, slots=True)
class Kept:
    """One attribute of an object, and how the first call finds it."""

    owner: KeptState
    attr: str
    how: How

    @property
    def has_items(self) -> bool:
        return self.how in ("empty", "items")


@dataclass(frozen=True, slots=True)
class Read:
    """`node`, in the function of `scope`, reads `kept`."""

    scope: Scope
    node: ast.AST
    kept: Kept


@dataclass
class Scope:
    """A function on its way to what it reads: `given` says what its parameters are, `caller` where it is called."""

    file: File
    function: Function
    owner: KeptState | None
    given: dict[str, Kept | KeptState] = field(default_factory=dict)
    caller: tuple[Scope, ast.Call] | None = None
    depth: int = 0

    def __post_init__(self) -> None:
        self.above = self.file.above(self.function)
        self.names = dict(self.given)
        # Other names for the same: `history = self.history`.
        for each in walk(self.function):
            for target, value in stored(each):
                if isinstance(target, ast.Name) and value is not None and target.id not in self.names:
                    meant = self.means(value)
                    if meant is not None:
                        self.names[target.id] = meant

    # --- what is meant --------------------------------------------------------------------------------------

    def means(self, node: ast.AST) -> Kept | KeptState | None:
        """The state, or the object that holds some, that `node` stands for."""
        if isinstance(node, ast.Name):
            return self.owner if node.id == "self" and self.owner is not None else self.names.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.means(node.value)
        if not isinstance(owner, KeptState):
            return None
        how = owner.unset(node.attr)
        if how is None and self.file.carried and owner.is_renewed(node.attr):
            how = "held"
        if how is not None:
            return Kept(owner, node.attr, how)
        made = owner.class_of(node.attr)
        return None if made is None else self.file.state(made)

    def _called(self, call: ast.Call) -> tuple[Function, KeptState | None] | None:
        """The function of the file that `call` runs, and the object that is its `self`."""
        func = call.func
        if isinstance(func, ast.Name) and func.id not in self.names:
            function = self.file.functions.get(func.id)
            return None if function is None else (function, None)
        if isinstance(func, ast.Attribute):
            owner = self.means(func.value)
            if isinstance(owner, KeptState) and func.attr in owner.methods:
                return owner.methods[func.attr], owner
        made = self.means(func)
        if isinstance(made, KeptState) and made.is_module and "forward" in made.methods:
            return made.methods["forward"], made
        return None

    def _inside(self, call: ast.Call) -> Scope | None:
        """The scope of the function of the file that `call` runs; None where it is another one, or too deep."""
        found = self._called(call) if self.depth < _DEEPEST else None
        if found is None:
            return None
        function, owner = found
        names = parameters(function)[0 if owner is None else 1 :]
        pairs = [
            *zip(names, call.args, strict=False),
            *((each.arg or "", each.value) for each in call.keywords),
        ]
        given = {name: meant for name, value in pairs if (meant := self.means(value)) is not None}
        return Scope(self.file, function, owner, given, (self, call), self.depth + 1)

    # --- reads ----------------------------------------------------------------------------------------------

    def reads(self, node: ast.AST) -> Iterator[Read]:
        """What `node`, or what it calls, reads and may not be set in this call yet."""
        for each in walk(node):
            if isinstance(each, ast.Call):
                inside = self._inside(each)
                if inside is not None and not self._runs(inside.function):
                    for statement in inside.function.body:
                        yield from inside.reads(statement)
            if isinstance(each, (ast.Attribute, ast.Name)) and isinstance(each.ctx, ast.Load):
                kept = self.means(each)
                if isinstance(kept, Kept) and self._is_read(each, kept):
                    key = self._key(each, kept)
                    if not self._is_settled(each, kept, key):
                        yield Read(self, each if key is None else self.above[each], kept)

    def _runs(self, function: Function) -> bool:
        """Whether `function` is being looked at already."""
        return self.function is function or (self.caller is not None and self.caller[0]._runs(function))

    def _is_read(self, node: ast.AST, kept: Kept) -> bool:
        """Whether `node` is used so that it must be set."""
        parent = self.above.get(node)
        if self._asks(node) or isinstance(parent, ast.Expr) or parent is None:
            return False
        if isinstance(parent, ast.keyword):
            node, parent = parent, self.above[parent]
        if isinstance(parent, ast.Call) and node is not parent.func:
            fits = kept.how == "empty" and not self.file.carried and dotted(parent.func) in _TAKING_EMPTY
            return not fits and self._inside(parent) is None
        if isinstance(parent, ast.Assign) and any(isinstance(each, ast.Name) for each in parent.targets):
            # The name is followed.
            return False
        if not kept.has_items:
            return True
        whole = kept.how == "items" or self.file.carried
        if isinstance(parent, ast.Subscript):
            return isinstance(parent.ctx, ast.Load) and (whole or not isinstance(parent.slice, ast.Slice))
        if isinstance(parent, ast.Attribute):
            if parent.attr in ADDING or parent.attr == "clear":
                return False
            return (
                parent.attr not in _TAKING_OUT if self.file.carried else whole or parent.attr not in _LISTING
            )
        return whole

    def _key(self, node: ast.AST, kept: Kept) -> str | None:
        """Which item of it is read; None for all of them."""
        parent = self.above.get(node)
        if kept.has_items and isinstance(parent, ast.Subscript) and parent.value is node:
            return ast.unparse(parent.slice)
        return None

    def _asks(self, node: ast.AST) -> bool:
        """Whether `node` is only asked if it is there."""
        parent = self.above.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._asks(parent)
        if isinstance(parent, ast.Attribute) and parent.attr == "get":
            return self._asks(self.above[parent])
        if isinstance(parent, ast.Call):
            return dotted(parent.func) in _ASKING or (
                isinstance(parent.func, ast.Attribute) and self._asks(parent)
            )
        if isinstance(parent, ast.Compare):
            return all(isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in parent.ops)
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, ast.BoolOp) or (
            isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is node
        )

    def has_set(self, node: ast.AST, kept: Kept) -> bool:
        """Whether a call that comes to `node` certainly has set `kept`."""
        return self._is_settled(node, kept, None)

    def settles(self, block: Sequence[ast.AST], kept: Kept) -> bool:
        """Whether `kept` is certainly set behind `block`."""
        return self._settle([each for each in block if isinstance(each, ast.stmt)], kept, None) is True

    # --- where it is set ------------------------------------------------------------------------------------

    def _is_settled(self, node: ast.AST, kept: Kept, key: str | None) -> bool:
        """Whether a call that comes to `node` certainly has set it."""
        inner = node
        # The tests that have come out true, or false, where `node` is reached.
        held: set[tuple[str, bool]] = set()
        while inner is not self.function:
            outer = self.above[inner]
            if isinstance(outer, (ast.If, ast.While, ast.IfExp)) and inner is not outer.test:
                if self._tells(outer.test, kept, key):
                    return True
                body = outer.body if isinstance(outer.body, list) else [outer.body]
                held.add((ast.dump(outer.test), inner in body))
            if isinstance(outer, ast.BoolOp):
                earlier = outer.values[: outer.values.index(inner)]  # type: ignore[arg-type]
                if any(self._tells(each, kept, key) for each in earlier):
                    return True
            for name in BLOCKS:
                block = getattr(outer, name, None)
                if isinstance(block, list) and inner in block:
                    for each in reversed(block[: block.index(inner)]):
                        settled = self._settles(each, kept, key, held)
                        if settled is not None:
                            return settled
            inner = outer
        if self.caller is not None:
            scope, call = self.caller
            return scope._is_settled(call, kept, key)
        return self._is_settled_by_callers(kept, key)

    def _is_settled_by_callers(self, kept: Kept, key: str | None) -> bool:
        """Whether each method of the class that calls this one has set it there."""
        if self.owner is None or self.depth >= _DEEPEST:
            return False
        found = []
        for method in self.owner.methods.values():
            for each in walk(method) if method is not self.function else ():
                if isinstance(each, ast.Call) and dotted(each.func) == f"self.{self.function.name}":
                    scope = Scope(self.file, method, self.owner, depth=self.depth + 1)
                    found.append(scope._is_settled(each, kept, key))
        return bool(found) and all(found)

    def _tells(self, test: ast.expr, kept: Kept, key: str | None) -> bool:
        """Whether `test` asks for it, or has read it."""
        if self.file.carried:
            return False
        return self._asks_for(test, kept) or self._has_read(test, kept, key)

    def _asks_for(self, test: ast.expr, kept: Kept) -> bool:
        """Whether `test` asks if it is there, also by its name, as `hasattr` does."""
        named = any(
            isinstance(each, ast.Constant)
            and each.value == kept.attr
            and isinstance(self.above[each], ast.Call)
            for each in walk(test)
        )
        return named or any(self.means(each) == kept and self._asks(each) for each in walk(test))

    def _has_read(self, node: ast.AST, kept: Kept, key: str | None) -> bool:
        """Whether `node` reads its value in any case: it would have stopped there."""
        if isinstance(node, (ast.Attribute, ast.Name)) and self.means(node) == kept:
            parent = self.above[node]
            if kept.has_items:
                return key is not None and self._key(node, kept) == key and self._is_operand(parent)
            return self._is_operand(node)
        if isinstance(node, ast.BoolOp):
            return self._has_read(node.values[0], kept, key)
        if isinstance(node, ast.IfExp):
            return self._has_read(node.test, kept, key)
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return False
        return any(self._has_read(each, kept, key) for each in children(node))

    def _is_operand(self, node: ast.AST) -> bool:
        parent = self.above[node]
        if isinstance(parent, (ast.Attribute, ast.Subscript)):
            return parent.value is node
        ordered = isinstance(parent, ast.Compare) and not self._asks(node)
        return isinstance(parent, (ast.BinOp, ast.AugAssign)) or ordered

    def _settles(
        self, statement: ast.stmt, kept: Kept, key: str | None, held: Collection[tuple[str, bool]] = ()
    ) -> bool | None:
        """Whether it is set behind `statement`, True or False; None where that says nothing of it."""
        if isinstance(statement, ast.If):
            return self._settles_by_if(statement, kept, key, held)
        if isinstance(statement, (ast.With, ast.Try, ast.For)):
            return self._settle(statement.body, kept, key)
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.While)):
            return None
        for target, value in stored(statement):
            told = self._stores(target, value, kept, key)
            if told is not None:
                return told
        if self.file.carried and self.owner is kept.owner and may_set(statement, kept.attr):
            return True
        calls = [each for each in walk(statement) if isinstance(each, ast.Call)]
        if any(self._settles_by_call(each, kept, key) for each in calls):
            return True
        return True if not self.file.carried and self._has_read(statement, kept, key) else None

    def _settle(self, block: list[ast.stmt], kept: Kept, key: str | None) -> bool | None:
        told = (self._settles(each, kept, key) for each in reversed(block))
        return next((each for each in told if each is not None), None)

    def _settles_by_if(
        self, node: ast.If, kept: Kept, key: str | None, held: Collection[tuple[str, bool]]
    ) -> bool | None:
        arms = (node.body, node.orelse)
        for arm, way in zip(arms, (True, False), strict=True):
            if (ast.dump(node.test), way) in held:
                return self._settle(arm, kept, key)
        if self._asks_for(node.test, kept):
            # One arm is for what is not set yet: it sets it, or leaves.
            leaving = not self.file.carried
            ways = [(leaving and leaves(arm)) or self._settle(arm, kept, key) is True for arm in arms]
            return True if any(ways) else None
        if self._tells(node.test, kept, key):
            return True
        falling = [arm for arm in arms if not leaves(arm)]
        settled = bool(falling) and all(self._settle(arm, kept, key) is True for arm in falling)
        return True if settled else None

    def _stores(self, target: ast.expr, value: ast.expr | None, kept: Kept, key: str | None) -> bool | None:
        """Whether an assignment to `target` sets it (True) or takes it away (False); None where it does neither."""
        reads = value is not None and any(self.means(each) == kept for each in walk(value))
        if isinstance(target, ast.Attribute) and self.means(target) == kept:
            if self.file.carried:
                return None if reads else True
            if not kept.has_items:
                return not (isinstance(value, ast.Constant) and value.value is None)
            anew = isinstance(value, (ast.List, ast.Dict, ast.Call)) and not children(value)
            return None if reads else not anew
        if isinstance(target, ast.Subscript) and kept.has_items and self.means(target.value) == kept:
            none = isinstance(value, ast.Constant) and value.value is None
            same = key == ast.unparse(target.slice)
            same = same or (key is None and kept.how == "empty" and not self.file.carried)
            if not reads and not none and (same or self._is_of_loop(target)):
                return True
        return None

    def _is_of_loop(self, target: ast.Subscript) -> bool:
        """Whether a loop sets one item after the other."""
        names = {each.id for each in walk(target.slice) if isinstance(each, ast.Name)}
        outer: ast.AST | None = target
        while outer is not None and outer is not self.function:
            outer = self.above.get(outer)
            if isinstance(outer, ast.For) and names & {
                each.id for each in walk(outer.target) if isinstance(each, ast.Name)
            }:
                return True
        return False

    def _settles_by_call(self, call: ast.Call, kept: Kept, key: str | None) -> bool:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in ADDING and self.means(func.value) == kept:
            # What this call adds is the last item, or the first one.
            last = "0" if func.attr in ("appendleft", "insert") else "-1"
            return kept.how == "empty" and key in ((last,) if self.file.carried else (None, "-1", "0"))
        copies = isinstance(func, ast.Attribute) and func.attr == "copy_"
        if copies and kept.how == "held" and self.means(func.value) == kept:  # type: ignore[attr-defined]
            return True
        inside = self._inside(call)
        if inside is None or self._runs(inside.function):
            return False
        return inside._settle(inside.function.body, kept, key) is True
