"""Numbers that are None until the first call, `self.best = None`, as a number and a flag that tells whether it has begun.

    self.best = None                        self.best = 0.0
                                            self.best_begun = False
    ...                             ->      ...
    if self.best is None:                   if not self.best_begun:
        self.best = loss                        self.best = loss
                                                self.best_begun = True

It is the same to Python; numbers and flags are what other fixes make buffers.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix
from exportlens.inference.entries import is_part_of_others
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Const, Instance, Static, TensorScalar, options
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, assigned_pairs, dotted, is_none
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.number_types import TypedNumber
from exportlens.rewriting.state.begun_questions import is_set_before
from exportlens.rewriting.state.begun_together import Together
from exportlens.rewriting.state.unbegun_state import SizedState, UnbegunState

# What takes no None, and gives a number.
_OF_NUMBERS = frozenset({"abs", "float", "int", "max", "min", "round", "pow"})


def is_given_by_anyone(draft: Draft, cls: ast.ClassDef, value: ast.expr) -> bool:
    """Whether `value` is computed of a parameter without a type of what a Module is called by: whoever calls it may hand in a tensor."""
    function = draft.source.enclosing_function(value)
    if function is None or function.name not in ("forward", "__call__"):
        return False
    statements = [each for placed in draft.context.document.placed for each in placed.chunk.body]
    if function.name == "__call__" and is_part_of_others(statements, cls.name):
        return False
    untold = {each.arg for each in arguments(function.args) if each.annotation is None} - {"self"}
    return any(isinstance(each, ast.Name) and each.id in untold for each in ast.walk(value))


def begun_as_number(draft: Draft, cls: ast.ClassDef, place: AttributeWrite) -> Fix | None:
    """The fix that begins the attribute with a number; None where the constructor does not begin it with None, or where what takes its
    place is no float. Raises Refused where the None is more than that there is no number yet."""
    begins = [
        value
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in method.body
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target, value in assigned_pairs(each)
        if dotted(target) == f"self.{place.attr}"
    ]
    floats = all(
        (isinstance(each, (TensorScalar, Static)) and each.type == "float")
        or (isinstance(each, Const) and type(each.value) is float)
        for each in options(place.value)
    )
    if len(begins) != 1 or not is_none(begins[0]) or not floats:
        return None
    assert isinstance(place.owner, Instance)
    known = draft.source.enclosing_statement(draft.source.find(place.node))
    if isinstance(known, ast.Assign) and is_given_by_anyone(draft, cls, known.value):
        raise Refused(f"`{draft.source.of(known)}` sets what is handed in: say that it is a float, `: float`")
    swaps = _Begun(draft, cls, place.owner, place.attr, known, SizedState()).swaps()
    return draft.replace(f"Begin `{place.attr}` with a number, and tell by a flag", swaps, uses_torch=False)


class _Begun(UnbegunState):
    """One attribute: where the class begins it, asks for the None, and writes it."""

    def swaps(self) -> list[Replacement]:
        swaps, begun = self._changed()
        if begun != 1 or not self.asked:
            raise Refused(f"`{self.path}` is None at first, and nothing asks for that")
        return list(swaps.values())

    def _others(self, node: ast.AST) -> list[Replacement]:
        if isinstance(node, ast.Delete) and self.path in map(dotted, node.targets):
            raise Refused(f"`{self.source.of(node)}` deletes the number")
        return super()._others(node)

    def _refuse_none(self, read: ast.expr) -> None:
        """Raise Refused where `read` may give the None away: whether a None equals a number is known."""
        parent = self.source.parents[read]
        if self._question(parent) is not None:
            return
        if isinstance(parent, ast.BinOp) or (isinstance(parent, ast.AugAssign) and parent.value is read):
            return
        order = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        if isinstance(parent, ast.Compare) and all(isinstance(each, order) for each in parent.ops):
            return
        if isinstance(parent, ast.Call) and read in parent.args and dotted(parent.func) in _OF_NUMBERS:
            return
        function = self.source.enclosing_function(read)
        tells = Together(self.source, self.cls, self.path).asked
        if function is None or not is_set_before(self.source, function, read, self.path, tells):
            text = ast.unparse(parent).splitlines()[0]
            raise Refused(f"`{text}` takes `{self.path}`, which may be None")

    def _write(self, statement: ast.Assign | ast.AnnAssign) -> list[Replacement]:
        source, function = self.source, self.source.enclosing_function(statement)
        if function is None or statement.value is None or not source.begins_line(statement):
            raise Refused(
                f"`{self.path}` is set on a line with other statements, or in the body of the class"
            )
        pairs = assigned_pairs(statement)
        newline = source.newline + source.indent_of(statement)
        if len(pairs) != 1:
            raise Refused(f"`{self.path}` is set together with other targets")
        if self._of_constructor(statement):
            if not is_none(statement.value) or source.parents[statement] is not function:
                raise Refused(f"`{self.path}` is not set to None in `__init__`")
            return [source.swap(statement, f"{self.path} = 0.0{newline}self.{self.flag} = False")]
        if is_none(statement.value):
            return [source.swap(statement, f"self.{self.flag} = False")]
        number = TypedNumber(self.draft, self.cls, self.attr)
        number.type, number.owner = "float", self.owner
        if statement is not self.known and number.type_of(statement.value) not in ("float", "int", "number"):
            raise Refused(f"`{source.of(statement)}` is not known to set a number")
        end = source.end(statement)
        asked = [swap for each in ast.walk(statement.value) if (swap := self._question(each)) is not None]
        return [*asked, Replacement(end, end, f"{newline}self.{self.flag} = True")]
