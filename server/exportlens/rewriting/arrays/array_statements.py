"""Statements that arrays of NumPy go through, read with what is replaced in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace

from exportlens.inference.told_ranks import by_test, by_unpacking
from exportlens.inference.values import Value
from exportlens.rewriting.arrays.array_helpers import Helpers
from exportlens.rewriting.arrays.array_pieces import Piece
from exportlens.rewriting.arrays.array_reading import Again
from exportlens.rewriting.arrays.array_types import (
    NONE,
    OTHER,
    UNLIKE,
    RefusedRounds,
    RefusedUnlike,
    Typed,
    merged,
)
from exportlens.rewriting.arrays.array_writes import Writes
from exportlens.rewriting.code.draft import Refused, WholeDraft
from exportlens.rewriting.code.names import arguments, defaults_of
from exportlens.rewriting.code.text import Function, Replacement

# What has a number of dimensions that a test or an assignment may tell.
_COUNTED = ("array", "held", "tensor")
_SILENT = frozenset({"numpy.errstate", "numpy.printoptions"})


class Way(Writes):
    """Reads the statements of functions, and keeps what is replaced in them."""

    def __init__(self, draft: WholeDraft, variables: Mapping[str, Value], copies: bool) -> None:
        super().__init__(draft, draft.kinds(variables), copies)
        self.helpers = Helpers(self.source)
        self.params: dict[Function, dict[str, Typed]] = {}
        self.results: dict[Function, Typed] = {}
        self.entered: list[ast.AST] = []
        self.calls: set[ast.Call] = set()
        self.swaps: dict[ast.AST, Replacement] = {}
        self.silenced: list[ast.With] = []
        self.returned: Typed | None = None

    def read(self, function: Function, names: dict[str, Typed]) -> Typed:
        """Read `function`, whose arguments `names` are, and say what it returns."""
        if function in self.entered:
            if function not in self.results:
                raise Refused(f"`{function.name}` calls itself")
            return self.results[function]
        self.entered.append(function)
        outer = self.names, self.returned
        self.names, self.returned = dict(names), None
        for each in arguments(function.args):
            if each.arg in names and names[each.arg].is_array:
                self._annotate(each.annotation)
        self._block(function.body)
        given = NONE if self.returned is None else self.returned
        if given.is_array:
            self._annotate(function.returns)
        self.names, self.returned = outer
        self.results[function] = given
        return given

    def _annotate(self, annotation: ast.expr | None) -> None:
        if annotation is not None and self.draft.qualified(annotation) == "numpy.ndarray":
            self.swaps[annotation] = self.source.swap(annotation, f"{self.torch}.Tensor")

    def callers(self, function: Function) -> list[Function]:
        """The functions that call `function`, which gives them arrays."""
        name = function.name
        if name in ("forward", "__call__", "__init__") or not self.helpers._is_plain(function):
            raise Refused(f"`{name}` returns an array")
        found = [self.source.enclosing_function(each) for each in self.helpers.calls_of(function)]
        callers = [each for each in dict.fromkeys(found) if each is not None]
        if not callers or None in found or function in callers:
            raise Refused(f"`{name}` returns an array")
        return callers

    def refuse_unseen(self, roots: list[Function]) -> None:
        """Raise Refused where a function that arrays go through is called from elsewhere as well."""
        for function in self.entered:
            assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            if function in roots:
                continue
            if not self.calls.issuperset(self.helpers.calls_of(function)):
                raise Refused(f"`{function.name}` is called with something else than what was a tensor")

    def replacements(self) -> list[Replacement]:
        swaps = list(self.swaps.values())
        for node in self.silenced:
            start, end = self.source.start(node), self.source.span(node.body)[1]
            inner = [each for each in swaps if start <= each.start and each.end <= end]
            indent = self.source.indent_of(node)
            text = self.source.block(node.body, indent, inner)
            swaps = [each for each in swaps if each not in inner]
            swaps.append(Replacement(start, end, text.removeprefix(indent)))
        return swaps

    def call_of_helper(self, node: ast.Call) -> Piece | None:
        function = self.helpers.called(node)
        if function is None:
            return None
        pieces = {each: self.piece(each) for each in [*node.args, *(key.value for key in node.keywords)]}
        makes = any(
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "numpy"
            for each in ast.walk(function)
        )
        if not makes and not any(each.type.holds_arrays for each in pieces.values()):
            return None
        names = {self.helpers.parameter(function, node, each): piece.type for each, piece in pieces.items()}
        for each, default in defaults_of(function.args).items():
            names.setdefault(each, self.piece(default).type)
        known = self.params.get(function)
        if known is not None:
            both = {
                each: merged(known[each], names[each]) if each in known and each in names else UNLIKE
                for each in {*known, *names}
            }
            if both != known:
                self.params[function] = both
                raise Again
            names = known
        self.params[function] = names
        self.calls.add(node)
        given = self.read(function, names)
        return self.splice(node, list(pieces.items()), replace(given, value=None))

    # Statements.

    def _block(self, statements: list[ast.stmt]) -> None:
        for each in statements:
            method = getattr(self, f"_read_{type(each).__name__}", None)
            if method is None:
                self._refuse_arrays(each)
            else:
                method(each)

    def _refuse_arrays(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom)):
            return
        for each in ast.walk(statement):
            if isinstance(each, ast.Name) and self._is_array(each.id):
                raise Refused(f"the array `{each.id}` is used in a statement that is not followed")
            if isinstance(each, ast.Attribute) and each.attr == "numpy":
                raise Refused("an array is made in a statement that is not followed")

    def _read_Assign(self, node: ast.Assign) -> None:
        target = node.targets[-1]
        several = isinstance(target, ast.Tuple) and any(
            isinstance(each, ast.Subscript) for each in target.elts
        )
        if several and len(node.targets) == 1 and isinstance(node.value, ast.Tuple):
            assert isinstance(target, ast.Tuple)
            self._store_each(target, node.value)
            return
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Subscript):
            piece = self._put(node.value)
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    self._store(target, node.value, piece)
                else:
                    self.bind(target, piece.type, node.value)
            self._tell_ranks([by_unpacking(node.targets, node.value)])
            return
        self._store(node.targets[0], node.value, self.piece(node.value))

    def _read_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            piece = self._put(node.value)
            if piece.type.is_array:
                self._annotate(node.annotation)
            self.bind(node.target, piece.type, node.value)

    def _read_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            self._put(call)
            return
        name = self.draft.qualified(call.func)
        if name == "numpy.fill_diagonal" and self._is_diagonal_filled(call):
            return
        if name == "numpy.add.at":
            self._add_at(call)
            return
        if name.startswith(("numpy.", "torch.")):
            self._put(call)
            return
        owner = self.piece(call.func.value)
        if owner.type.what == "list" and call.func.attr in ("append", "insert"):
            self._append(call, owner)
        elif owner.type.what == "list" and call.func.attr == "reverse" and owner.type.grows:
            return
        elif owner.type.is_array:
            self._fill(call, owner)
        else:
            self._put(call)

    def _read_Return(self, node: ast.Return) -> None:
        kind = NONE if node.value is None else self._put(node.value).type
        self.returned = kind if self.returned is None else merged(self.returned, kind)
        if self.returned.what == "unlike":
            self.returned = OTHER
            if kind.holds_arrays:
                raise RefusedUnlike("a function returns an array, or something else")

    def _read_If(self, node: ast.If) -> None:
        decides = self._put(node.test).type.holds_arrays
        if decides:
            self.decides.add(self.source.enclosing_function(node))
        self.decided += decides
        before = dict(self.names)
        self._tell_ranks(by_test(node.test, True))
        self._block(node.body)
        after, self.names = self.names, before
        self._tell_ranks(by_test(node.test, False))
        self._block(node.orelse)
        self.decided -= decides
        if _leaves(node.body):
            return
        if _leaves(node.orelse):
            self.names = after
            return
        for name in {*after} & {*self.names}:
            self._unheld_beside(after[name], self.names[name])
        self.names = _joined(after, self.names)

    def _unheld_beside(self, one: Typed, other: Typed) -> None:
        """Have torch make what NumPy holds on one way where there is an array that was a tensor on the other."""
        if one.what == other.what == "list" and one.grows and other.grows:
            if any(each.is_array for each in (*one.items, *other.items)):
                self._want((*one.items, *other.items))
            return
        held, beside = (one, other) if one.what == "held" else (other, one)
        if held.what == "held" and beside.is_array and held.origins and not held.origins <= self.wanted:
            self.wanted |= held.origins
            raise Again

    def _read_For(self, node: ast.For) -> None:
        given = self._put(node.iter)
        before = dict(self.names)
        rounds = []
        for _ in range(2):
            self.bind(node.target, self.element(node.iter, given), node.iter)
            self._block(node.body)
            rounds.append(dict(self.swaps))
        # What is written must do for the first round as for the others.
        if rounds[0] != rounds[1]:
            raise RefusedRounds("what arrays are in the first round of a loop is not what they are in others")
        self._block(node.orelse)
        if given.type.value is not True:
            self.names = _behind_rounds(before, self.names)

    def _read_While(self, node: ast.While) -> None:
        before = dict(self.names)
        if self._put(node.test).type.holds_arrays:
            self.decides.add(self.source.enclosing_function(node))
        self._block(node.body)
        once = dict(self.swaps)
        self._put(node.test)
        self._block(node.body)
        if once != self.swaps:
            raise RefusedRounds("what arrays are in the first round of a loop is not what they are in others")
        self.names = _joined(before, self.names)

    def _read_With(self, node: ast.With) -> None:
        names = [
            self.draft.qualified(each.context_expr.func) if isinstance(each.context_expr, ast.Call) else ""
            for each in node.items
        ]
        if set(names) <= _SILENT and all(each.optional_vars is None for each in node.items):
            if node not in self.silenced:
                if not self.source.begins_line(node) or node.body[0].lineno == node.lineno:
                    raise Refused("`np.errstate` shares its line with what it is around")
                if any(one in self.silenced for one in self.source.ancestors(node)):
                    raise Refused("`np.errstate` stands in another one")
                self.silenced.append(node)
        elif _SILENT & set(names):
            self._silence(node, names)
        else:
            for each in node.items:
                self._put(each.context_expr)
        self._block(node.body)

    def _silence(self, node: ast.With, names: list[str]) -> None:
        """Take what only silences NumPy from among the contexts of `node`."""
        if any(each.optional_vars is not None for each in node.items) or self._behind_with(node) == "(":
            raise Refused("`np.errstate` stands among contexts that have names")
        kept = [each for each, name in zip(node.items, names, strict=True) if name not in _SILENT]
        for each in kept:
            self.piece(each.context_expr)
        start, end = node.items[0].context_expr, node.items[-1].context_expr
        text = ", ".join(self.source.of(each.context_expr) for each in kept)
        self.swaps[start] = Replacement(self.source.start(start), self.source.end(end), text)

    def _behind_with(self, node: ast.With) -> str:
        first = self.source.start(node.items[0].context_expr)
        return self.source.text[self.source.start(node) + len("with") : first].strip()

    def _read_Assert(self, node: ast.Assert) -> None:
        self._put(node.test)
        if node.msg is not None:
            self._put(node.msg)
        self._tell_ranks(by_test(node.test, True))

    def _tell_ranks(self, told: Iterable[tuple[str, int] | None]) -> None:
        """Let the names of arrays and tensors have the number of dimensions that was told of them."""
        for each in told:
            known = None if each is None else self.names.get(each[0])
            if each is not None and known is not None and known.rank is None and known.what in _COUNTED:
                self.names[each[0]] = replace(known, rank=each[1], least=each[1])


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise))


def _behind_rounds(before: dict[str, Typed], after: dict[str, Typed]) -> dict[str, Typed]:
    """What names are behind a loop: a number that rounds add arrays to is what they make of it."""
    found = _joined(before, after)
    for name, kind in before.items():
        if kind.is_number and after[name].is_array and after[name].rank == 0:
            found[name] = after[name]
    return found


def _joined(one: dict[str, Typed], other: dict[str, Typed]) -> dict[str, Typed]:
    """What names are that are bound by one way or the other."""
    found = {}
    for name in {*one, *other}:
        if name in one and name in other:
            found[name] = merged(one[name], other[name])
        else:
            # Read behind, it is what the way that binds it made it: on the other there is nothing.
            found[name] = one.get(name) or other[name]
    return found
