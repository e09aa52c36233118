"""Attributes of an object that is made in the call, kept in local variables until the object is given back.

    out = Output(y)                              out = Output(y)
    if y.max() > 0:                              if y.max() > 0:
        out.extra = y * 2                            extra = y * 2
    else:                                  ->    else:
        out.extra = y                                extra = y
    return out                                   return Output(y=out.y, extra=extra)

Strict tracing loses what is written to an object behind torch.cond where something was written to it before, as its constructor does
(measured on torch 2.13).
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import assigned_pairs, dotted, fresh
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.source.document import Chunk

_DECORATORS = frozenset({"dataclasses.dataclass"})
# Methods that would see the attribute written, or the object made a second time.
_WATCHING = frozenset(
    {"__init__", "__new__", "__post_init__", "__setattr__", "__getattr__", "__getattribute__", "__del__"}
)


def kept_in_locals(attr: str, place: tuple[Chunk, ast.AST], context: RewriteContext) -> Fix | None:
    """The fix that keeps `attr`, and what else is written to the same object of the function around `place`, in local variables; None
    where there is no such object, or where it is not certain that it does the same."""
    try:
        draft = Draft.of_chunk(place[0], context)
        found = draft.source.find(place[1])
    except (LookupError, SyntaxError):
        return None
    function = draft.source.enclosing_function(found)
    for statement in function.body if function is not None else ():
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        if [type(each) for each in statement.targets] != [ast.Name]:
            continue
        cls = _dataclass(draft, statement.value.func)
        if cls is None or function is None:
            continue
        made = _Object(draft, function, statement, cls)
        swaps = made.swaps() if attr in made.written else []
        if swaps:
            name = ast.unparse(statement.targets[0])
            return draft.replace(
                f"Keep what is written to `{name}` in local variables",
                swaps,
                Applicability.UNSAFE,
                uses_torch=False,
            )
    return None


def _dataclass(draft: Draft, func: ast.expr) -> ast.ClassDef | None:
    """The plain dataclass of the file that a call makes an object of."""
    if not isinstance(func, ast.Name):
        return None
    statements = [each for placed in draft.context.document.placed for each in placed.chunk.body]
    named = [each for each in statements if getattr(each, "name", None) == func.id]
    cls = named[0] if len(named) == 1 else None
    if not isinstance(cls, ast.ClassDef) or cls.bases or cls.keywords or len(cls.decorator_list) != 1:
        return None
    decorator = cls.decorator_list[0]
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    if draft.qualified(called) not in _DECORATORS or any(
        each.arg not in ("slots", "kw_only", "repr", "eq", "order") for each in options
    ):
        return None
    names = {getattr(each, "name", "") for each in cls.body}
    fields = [each for each in cls.body if isinstance(each, ast.AnnAssign)]
    plain = all(
        isinstance(each, (ast.FunctionDef, ast.AnnAssign))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        or isinstance(each, ast.Pass)
        for each in cls.body
    )
    special = any(word in ast.unparse(each.annotation) for each in fields for word in ("ClassVar", "InitVar"))
    made = any(
        one.arg == "init"
        for each in fields
        if isinstance(each.value, ast.Call)
        for one in each.value.keywords
    )
    return None if names & _WATCHING or not plain or special or made else cls


class _Object:
    """The object that `statement` makes, and what `function` does with it."""

    def __init__(self, draft: Draft, function: Function, statement: ast.Assign, cls: ast.ClassDef) -> None:
        self.draft, self.source, self.function = draft, draft.source, function
        self.statement, self.cls = statement, cls
        self.name = ast.unparse(statement.targets[0])
        self.fields = [ast.unparse(each.target) for each in cls.body if isinstance(each, ast.AnnAssign)]
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == self.name]
        self.reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
        self.bound_once = len(uses) - len(self.reads) == 1
        self.parts = [
            parent for each in self.reads if isinstance(parent := self.source.parents[each], ast.Attribute)
        ]
        stores = [each for each in self.parts if not isinstance(each.ctx, ast.Load)]
        self.written = list(dict.fromkeys(each.attr for each in stores))
        self.stores = stores

    def swaps(self) -> list[Replacement]:
        """What keeps the attributes that are written in local variables; nothing where that is not certain to do the same."""
        if not self.written or not self.bound_once or not set(self.written) <= set(self.fields):
            return []
        if any(isinstance(each, (ast.Global, ast.Nonlocal)) for each in ast.walk(self.function)):
            return []
        if not all(map(self._is_assigned, self.stores)) or not all(map(self._is_apart, self.reads)):
            return []
        taken = self.draft.taken(self.source.tree)
        names = {attr: fresh(attr, taken) for attr in self.written}
        swaps = [self.source.swap(each, names[each.attr]) for each in self.parts if each.attr in self.written]
        begun = [attr for attr in self.written if not self._is_written_first(attr)]
        if begun:
            indent = self.source.newline + self.source.indent_of(self.statement)
            end = self.source.end(self.statement)
            text = "".join(f"{indent}{names[attr]} = {self.name}.{attr}" for attr in begun)
            swaps.append(Replacement(end, end, text))
        given = ", ".join(f"{each}={names.get(each, f'{self.name}.{each}')}" for each in self.fields)
        for each in self.reads:
            if self.source.parents[each] not in self.parts:
                swaps.append(self.source.swap(each, f"{self.cls.name}({given})"))
        return swaps

    def _is_assigned(self, store: ast.Attribute) -> bool:
        """Whether a plain assignment writes the attribute, after the object is made."""
        parent = self.source.parents[store]
        while isinstance(parent, (ast.Tuple, ast.List)):
            parent = self.source.parents[parent]
        return isinstance(parent, (ast.Assign, ast.AugAssign)) and store.lineno > self.statement.lineno

    def _is_apart(self, read: ast.Name) -> bool:
        """Whether nobody sees at this use what the attributes of the object are, but by their own names or by the object given back."""
        around = [*self.source.ancestors(read)]
        if self.source.enclosing_function(read) is not self.function or any(
            isinstance(each, ast.Lambda) for each in around
        ):
            return False
        if not (self.source.begins_line(self.statement) and read.lineno > self.statement.lineno):
            return False
        parent = around[0]
        if isinstance(parent, ast.Attribute):
            return parent.attr in self.fields or self._asks_others(parent.attr)
        # Given back as it is, or in a tuple, list or dict, by the function itself.
        inside = [each for each in around if isinstance(each, ast.expr)]
        statement = self.source.enclosing_statement(read)
        loops = any(isinstance(each, (ast.For, ast.While, ast.Try)) for each in around)
        return (
            isinstance(statement, ast.Return)
            and not loops
            and all(isinstance(each, (ast.Tuple, ast.List, ast.Dict)) for each in inside)
            and sum(each in self.reads for each in ast.walk(statement) if self._is_whole(each)) == 1
        )

    def _is_whole(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and not isinstance(self.source.parents[node], ast.Attribute)

    def _asks_others(self, method: str) -> bool:
        """Whether a method of the class reads fields that are not written here, and nothing else of the object."""
        found = [each for each in self.cls.body if getattr(each, "name", "") == method]
        function = found[0] if len(found) == 1 else None
        if not isinstance(function, ast.FunctionDef) or not function.args.args:
            return False
        own = function.args.args[0].arg
        parts = [each for each in ast.walk(function) if isinstance(each, ast.Attribute)]
        read = [each.value for each in parts if isinstance(each.ctx, ast.Load) and dotted(each.value) == own]
        asked = {each.attr for each in parts if dotted(each.value) == own}
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == own]
        return all(each in read for each in uses) and asked <= set(self.fields) - set(self.written)

    def _is_written_first(self, attr: str) -> bool:
        """Whether each way writes the attribute before it is read."""
        body = self.function.body
        return self._writes(body[body.index(self.statement) + 1 :], attr) is True

    def _writes(self, block: list[ast.stmt], attr: str) -> bool | None:
        """Whether the block writes the attribute before anything reads it; None where it does neither."""
        for each in block:
            if isinstance(each, ast.Assign) and any(
                target in self.stores and getattr(target, "attr", "") == attr
                for target, _ in assigned_pairs(each)
            ):
                return not self._reads(each.value, attr)
            if isinstance(each, ast.If) and not self._reads(each.test, attr):
                arms = [self._writes(each.body, attr), self._writes(each.orelse, attr)]
                if arms == [True, True]:
                    return True
                if arms == [None, None]:
                    continue
                return False
            if self._reads(each, attr):
                return False
        return None

    def _reads(self, node: ast.AST, attr: str) -> bool:
        """Whether the attribute is read in `node`, perhaps by what is given back, or may be written there."""
        return any(
            isinstance(each, ast.Return)
            or (isinstance(each, ast.Attribute) and each in self.parts and each.attr == attr)
            for each in ast.walk(node)
        )
