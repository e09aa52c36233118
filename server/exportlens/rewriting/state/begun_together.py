"""State that begins together with another: `if self.h is None: self.h = ...; self.c = ...` asks for one, and begins both."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.rewriting.code.names import assigned_pairs, dotted, is_none
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.state.begun_questions import asks_for_it, asks_for_none, is_set_before, told_by


class Together:
    """What tells of the state at `path` of `cls` that it has begun: others of the class that never have without it.

    Of such a one, each write that begins it stands in a block that begins the state, too; what ends the state ends it.
    """

    def __init__(self, source: Source, cls: ast.ClassDef, path: str) -> None:
        self.source, self.cls, self.path = source, cls, path
        self.known: dict[str, bool] = {}

    def asked(self, test: ast.expr) -> bool | None:
        """Whether `test` is true only where the state has begun (True), or wherever it has not (False); None where it tells nothing."""
        return _told(test, lambda other: other != self.path and self._never_alone(other))

    def _never_alone(self, other: str) -> bool:
        if other not in self.known:
            self.known[other] = self._is_told_by(other)
        return self.known[other]

    def _is_told_by(self, other: str) -> bool:
        attr = other.removeprefix("self.")
        inside = {id(each) for each in ast.walk(self.cls)}
        begins: list[ast.stmt] = []
        off = False
        for each in ast.walk(self.source.tree):
            if isinstance(each, ast.Constant) and each.value == attr and not self._is_registration(each):
                return False
            if not _is_changed(self.source, each, attr):
                continue
            turned = _turned(self.source, each)
            statement = self.source.enclosing_statement(each)
            if id(each) not in inside or dotted(each) != other:
                if turned is not False:
                    return False
                continue
            function = self.source.enclosing_function(each)
            if function is None or function.name == "__init__":
                if turned is not False:
                    return False
                off = True
            elif turned is not False and not self._has_begun(each, function, other):
                begins.append(statement)
        registered = any(
            isinstance(each, ast.Constant) and each.value == attr and self._is_registration(each)
            for each in ast.walk(self.cls)
        )
        return (
            (off or registered)
            and bool(begins)
            and all(map(self._begins_beside, begins))
            and all(self._ends_beside(each, other) for each in self._ends())
        )

    def _has_begun(self, node: ast.AST, function: Function, other: str) -> bool:
        """Whether `other` has certainly begun before `node` of `function` writes it: the write begins nothing."""
        return is_set_before(
            self.source, function, node, other, lambda test: _told(test, lambda each: each == other)
        )

    def _is_registration(self, name: ast.Constant) -> bool:
        """Whether `name` is the one that a constructor registers a flag by that is off."""
        call = self.source.parents[name]
        if not isinstance(call, ast.Call):
            return False
        if asks_for_it(call, str(name.value)):
            return True
        return (
            dotted(call.func) == "self.register_buffer"
            and len(call.args) == 2
            and isinstance(call.args[1], ast.Call)
            and [ast.unparse(each) for each in call.args[1].args] == ["False"]
            and getattr(self.source.enclosing_function(call), "name", "") == "__init__"
        )

    def _begins_beside(self, statement: ast.stmt) -> bool:
        """Whether the block of `statement` begins the state, and nothing in between may ask for it."""
        block, index = self.source.block_of(statement)
        begins = [at for at, each in enumerate(block) if self._begins(each)]
        if not begins or any(self._may_end(each) for each in block):
            return False
        at = min(begins, key=lambda each: abs(each - index))
        between = block[min(at, index) : max(at, index) + 1]
        if any(isinstance(each, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for each in between):
            return False
        readers = {
            each.name
            for each in self.cls.body
            if isinstance(each, ast.FunctionDef) and any(dotted(one) == self.path for one in ast.walk(each))
        }
        return at == index or not any(
            isinstance(one, ast.Call) and (dotted(one.func) or "").removeprefix("self.") in readers
            for each in between
            for one in ast.walk(each)
        )

    def _begins(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.Assign):
            return False
        return any(
            dotted(part) == self.path and not is_none(value)
            for target, value in assigned_pairs(statement)
            for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
        )

    def _ends(self) -> list[ast.stmt]:
        return [
            self.source.enclosing_statement(each)
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Attribute)
            and dotted(each) == self.path
            and _is_changed(self.source, each, each.attr)
            and _turned(self.source, each) is False
            and getattr(self.source.enclosing_function(each), "name", "") not in ("__init__", "")
        ]

    def _may_end(self, statement: ast.stmt) -> bool:
        return any(each in ast.walk(statement) for each in self._ends())

    def _ends_beside(self, statement: ast.stmt, other: str) -> bool:
        block, _ = self.source.block_of(statement)
        return any(
            isinstance(each, ast.Attribute)
            and dotted(each) == other
            and _is_changed(self.source, each, each.attr)
            and _turned(self.source, each) is False
            for one in block
            if not isinstance(one, (ast.If, ast.For, ast.While, ast.Try))
            for each in ast.walk(one)
        )


def _told(test: ast.expr, counts: Callable[[str], bool]) -> bool | None:
    """Whether `test` is true only where what it asks for, of what `counts`, has begun (True), or wherever it has not (False)."""

    def asked(part: ast.expr) -> bool | None:
        other, begun = _question(part)
        return begun if other and counts(other) else None

    return told_by(test, asked)


def _question(test: ast.expr) -> tuple[str, bool]:
    """What `test` asks for, and whether it is true where that has begun; "" where it is no such question."""
    if isinstance(test, ast.Attribute):
        path = dotted(test) or ""
        return (path, True) if path.startswith("self.") and path.count(".") == 1 else ("", False)
    if isinstance(test, ast.Call) and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
        attr = str(test.args[1].value)
        return (f"self.{attr}", True) if asks_for_it(test, attr) else ("", False)
    path = dotted(test.left) or "" if isinstance(test, ast.Compare) else ""
    begun = asks_for_none(test, path) if path.startswith("self.") and path.count(".") == 1 else None
    return ("", False) if begun is None else (path, begun)


def _is_changed(source: Source, node: ast.AST, attr: str) -> bool:
    """Whether `node` is an attribute of that name that is bound, deleted, or written in place."""
    if not isinstance(node, ast.Attribute) or node.attr != attr:
        return False
    if not isinstance(node.ctx, ast.Load):
        return True
    parent = source.parents.get(node)
    return (
        isinstance(parent, ast.Attribute)
        and parent.attr == "fill_"
        and isinstance(source.parents.get(parent), ast.Call)
    )


def _turned(source: Source, node: ast.AST) -> bool | None:
    """Whether a change of the attribute `node` leaves it begun (True) or not (False); None where it may be either."""
    assert isinstance(node, ast.Attribute)
    if isinstance(node.ctx, ast.Del):
        return False
    if isinstance(node.ctx, ast.Load):
        parent = source.parents[node]
        call = source.parents[parent]
        given = call.args[0] if isinstance(call, ast.Call) and call.args else None
        return bool(given.value) if isinstance(given, ast.Constant) else None
    statement = source.enclosing_statement(node)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for target, value in assigned_pairs(statement):
            if target is node:
                return bool(value.value) if isinstance(value, ast.Constant) else None
    return None
