"""Arguments that are tensors where a module is exported by itself, and arrays where another one calls it.

A rewrite of what is found there would break the calls that give arrays: these have no `.to()`, and torch takes none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.finding import Refusal
from exportlens.inference.places import Place
from exportlens.rewriting.code.callers import calls_of
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import assigned_pairs, bound
from exportlens.rewriting.code.text import Function
from exportlens.source.walking import walk

_MOST_CALLERS = 3
_THROUGH = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "sorted", "iter", "abs", "max", "min"})
_NUMBERS = frozenset({"tolist", "item"})
_PARTS = frozenset({"T", "flat", "real", "imag"})


def of_handed_arrays(place: Place, context: RewriteContext) -> Refusal | None:
    """The refusal where what is found computes with an argument for which a call in the file gives an array; None for all else."""
    if "numpy" not in context.document.text:
        return None
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        function = draft.source.enclosing_function(node)
    except (Refused, LookupError, SyntaxError):
        return None
    if function is None:
        return None
    handed = _handed(draft, function, 0)
    if not handed:
        return None
    names = _Names(draft, handed, makes=False).of(function)
    parts = [node] if isinstance(node, ast.expr) else [getattr(node, each, None) for each in ("test", "iter")]
    if not any(
        isinstance(each, ast.Name) and each.id in names for part in parts if part for each in walk(part)
    ):
        return None
    told = " and ".join(f"`{each}`" for each in sorted(handed))
    return Refusal(f"a call gives an array for {told}: rewrite from where the array is made")


def _handed(draft: Draft, function: Function, depth: int) -> set[str]:
    """The parameters of `function` for which a call gives an array, or what the caller itself is given as one."""
    if depth > _MOST_CALLERS:
        return set()
    found: set[str] = set()
    known: dict[Function, _Names] = {}

    def look(given: dict[str, ast.expr], _: object, caller: Function) -> None:
        if caller is function:
            return
        if caller not in known:
            known[caller] = _Names(draft, _handed(draft, caller, depth + 1), makes=True)
            known[caller].of(caller)
        found.update(name for name, value in given.items() if known[caller].is_array(value))

    calls_of(draft.source, function, draft.kinds({}), look)
    return found


class _Names:
    """The names of one function that hold arrays, or parts of them: those that it is handed, and with `makes` those that it
    makes."""

    def __init__(self, draft: Draft, handed: set[str], *, makes: bool) -> None:
        self.draft = draft
        self.names = set(handed)
        self.makes = makes

    def of(self, function: Function) -> set[str]:
        before = -1
        while len(self.names) > before:
            before = len(self.names)
            for each in walk(function):
                for target, value in _bindings(each):
                    if self.is_array(value):
                        self.names.update(bound(target))
        return self.names

    def is_array(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Call):
            return self._is_called(node)
        if isinstance(node, ast.Attribute):
            return node.attr in _PARTS and self.is_array(node.value)
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self.is_array(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.is_array(node.elt)
        if isinstance(
            node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.List, ast.Tuple)
        ):
            return any(
                self.is_array(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
            )
        return False

    def _is_called(self, node: ast.Call) -> bool:
        name = self.draft.qualified(node.func)
        given = any(map(self.is_array, node.args))
        if name.startswith("numpy."):
            return self.makes or given
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "numpy":
                return self.makes
            return node.func.attr not in _NUMBERS and self.is_array(node.func.value)
        return name in _THROUGH and given


def _bindings(node: ast.AST) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What `node` binds to what, or goes through."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield node.target, node.iter
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        yield from assigned_pairs(node)
    elif isinstance(node, ast.NamedExpr):
        yield node.target, node.value
