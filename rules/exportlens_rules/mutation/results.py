"""Whether what an expression gives decides what the model gives back, and is not only logged or remembered."""

from __future__ import annotations

import ast

from exportlens.inference.places import Place
from exportlens.source.document import Chunk

from exportlens_rules.mutation.state_reads import loaded, parents
from exportlens_rules.mutation.turned_results import gives_results
from exportlens_rules.reading import nodes_around

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Methods that put what they are given into what they are called of.
_TAKING_IN = frozenset({"append", "appendleft", "extend", "insert", "add", "update"})


def decides_result(place: Place, node: ast.AST, function: ast.AST) -> bool:
    """Whether what `node` of `function` gives comes out of the entry point, or decides what does. What the function of the place
    returns is followed to the calls that lead there; of another one that the call runs, what it returns counts."""
    if not _Way(function).leaves(node):
        return False
    own = None if place.site.function is None else place.site.function.node
    if own is None or getattr(own, "name", "") != getattr(function, "name", ""):
        return True
    ways: list[tuple[Chunk, ast.AST]] = [(chunk, call) for _, chunk, call in reversed(place.site.trail)]
    for chunk, call in ways:
        around = nodes_around(chunk, call)
        outer = next((each for each in around if isinstance(each, _FUNCTIONS)), None)
        if outer is not None and not _Way(outer).leaves(call):
            return False
    return True


class _Way:
    """How values go through one function."""

    def __init__(self, function: ast.AST) -> None:
        self.function = function
        self.around = parents(function)
        self.followed: set[str] = set()

    def leaves(self, node: ast.AST) -> bool:
        """Whether what `node` gives is returned, or decides what is."""
        while node in self.around:
            outer = self.around[node]
            if isinstance(outer, ast.Return) or outer is self.function:
                return isinstance(outer, (ast.Return, ast.Lambda))
            if isinstance(outer, ast.stmt):
                return self._goes_on(outer, node)
            if isinstance(outer, ast.NamedExpr) and self._is_read_later(outer.target, outer):
                return True
            if isinstance(outer, ast.Lambda):
                return False
            node = outer
        return False

    def _goes_on(self, statement: ast.stmt, part: ast.AST) -> bool:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return any(self._is_read_later(each, statement) for each in targets)
        if isinstance(statement, ast.If):
            return part is statement.test and gives_results(statement, "", self.function, self.around)
        if isinstance(statement, ast.While):
            return part is statement.test and self._binds_what_is_read(statement)
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            return self._is_read_later(statement.target, statement) or self._binds_what_is_read(statement)
        if isinstance(statement, ast.Expr) and isinstance(part, ast.Call):
            # `y.mul_(k)`, `rows.append(k)`
            func = part.func
            changes = isinstance(func, ast.Attribute) and (
                func.attr in _TAKING_IN or (func.attr.endswith("_") and not func.attr.endswith("__"))
            )
            return changes and isinstance(func, ast.Attribute) and self._is_read_later(func.value, statement)
        return False

    def _binds_what_is_read(self, loop: ast.stmt) -> bool:
        return any(
            isinstance(each, ast.Name)
            and isinstance(each.ctx, ast.Store)
            and self._is_read_later(each, loop, behind=True)
            for each in ast.walk(loop)
        )

    def _is_read_later(self, target: ast.expr, statement: ast.AST, behind: bool = False) -> bool:
        """Whether what is bound to `target`, or put into it, is read later on the way to the result."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._is_read_later(each, statement, behind) for each in target.elts)
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        if not isinstance(target, (ast.Name, ast.Attribute)):
            return False
        path = ast.dump(ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else loaded(target))
        if path in self.followed:
            return False
        self.followed.add(path)
        line = getattr(statement, "end_lineno", 0) if behind else getattr(statement, "lineno", 0)
        inside = set() if isinstance(statement, (ast.For, ast.While)) else set(ast.walk(statement))
        return any(
            isinstance(each, type(target))
            and getattr(each, "lineno", 0) >= line + behind
            and each not in inside
            and ast.dump(each) == path
            and self.leaves(each)
            for each in ast.walk(self.function)
        )
