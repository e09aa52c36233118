"""State that is None until the first call and one number of a tensor then, as a buffer and a flag that tells whether it has begun.

    self.peak = None                            self.register_buffer("peak", torch.zeros(()), persistent=False)
                                                self.register_buffer("peak_begun", torch.tensor(False), persistent=False)
    ...                                         ...
    if self.peak is None:               ->      if not self.peak_begun:
        self.peak = x.max()                         self.peak.copy_(x.max())
                                                    self.peak_begun.fill_(True)

Of a tensor without dimensions the final shape is known; of others it is for the author to say.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.classes import class_order
from exportlens.inference.places import AttributeWrite
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import ClassValue, Instance, Named, Tensor, options
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.effects import kinds_before
from exportlens.rewriting.kept_values import kept_apart
from exportlens.rewriting.kind import Kind
from exportlens.rewriting.names import dotted, fresh
from exportlens.rewriting.registrations import refuse_before_module
from exportlens.rewriting.text import Replacement


def begun_by_a_number(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that registers the number, and a flag for the None."""
    try:
        owner = place.owner.cls if isinstance(place.owner, Instance) else None
        if not isinstance(owner, ClassValue) or owner.scope.path != context.document.path:
            raise Refused("the class that keeps the state is not in this file")
        if not any(isinstance(each, Named) for each in class_order(owner)):
            raise Refused(f"`{owner.name}` is no Module: it has no buffers")
        if not all(_is_one_float(each) for each in options(place.value)):
            raise Refused("the state is None at first: make it a tensor of its final shape in `__init__`")
        draft = Draft.of_chunk(owner.chunk, context)
        cls = draft.source.find(owner.node)
        assert isinstance(cls, ast.ClassDef)
        swaps = _State(draft, cls, place.attr).swaps()
        return draft.replace(f"Begin `{place.attr}` as a buffer", swaps, Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_one_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.rank == 0 and dtype_family(value.dtype) in (None, "float")


class _State:
    """One attribute: where the class begins it, asks for the None, and writes it."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, attr: str) -> None:
        self.draft, self.source, self.cls, self.attr = draft, draft.source, cls, attr
        self.path = f"self.{attr}"
        self.flag = fresh(f"{attr}_begun", draft.taken(draft.source.tree))

    def swaps(self) -> list[Replacement]:
        self._refuse_other_users()
        swaps: dict[tuple[int, int], Replacement] = {}
        begun = 0
        for each in ast.walk(self.cls):
            found: list[Replacement] = []
            if isinstance(each, ast.Assign) and self.path in map(dotted, each.targets):
                found = self._write(each)
                begun += self._of_constructor(each)
            elif isinstance(each, ast.Compare) and dotted(each.left) == self.path:
                found = [self._question(each)]
            elif isinstance(each, (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.UnaryOp, ast.Return)):
                self._refuse_whole(each)
            swaps.update({(one.start, one.end): one for one in found})
        if begun != 1:
            raise Refused(f"`{self.path}` is not set to None once in `__init__`")
        whole = [each for each in swaps.values() if each.start < each.end]
        return [
            each
            for each in swaps.values()
            if each in whole or not any(one.start <= each.start <= one.end for one in whole)
        ]

    def _refuse_other_users(self) -> None:
        inside = {id(each) for each in ast.walk(self.cls)}
        for placed in self.draft.context.document.placed:
            own = placed.chunk is self.draft.chunk
            for statement in self.source.tree.body if own else placed.chunk.body:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Constant) and each.value == self.attr:
                        raise Refused(f"`{self.attr}` is also used by its name, as a text")
                    other = isinstance(each, ast.Attribute) and each.attr == self.attr
                    if other and (id(each) not in inside or dotted(each) != self.path):
                        raise Refused(f"`{ast.unparse(each)}` is used as well, perhaps of the same object")

    def _refuse_whole(self, node: ast.AST) -> None:
        """Raise Refused where the None may be asked for by its truth, or given away."""
        if any(
            isinstance(each, ast.expr) and dotted(each) == self.path for each in ast.iter_child_nodes(node)
        ):
            raise Refused(f"`{ast.unparse(node).splitlines()[0]}` takes `{self.path}`, which may be None")

    def _of_constructor(self, node: ast.AST) -> bool:
        return getattr(self.source.enclosing_function(node), "name", "") == "__init__"

    def _write(self, statement: ast.Assign) -> list[Replacement]:
        source, function = self.source, self.source.enclosing_function(statement)
        if len(statement.targets) != 1 or not source.begins_line(statement) or function is None:
            raise Refused(f"`{self.path}` is set together with other targets")
        empty = isinstance(statement.value, ast.Constant) and statement.value.value is None
        next_line = source.newline + source.indent_of(statement)
        if self._of_constructor(statement):
            if not empty or self.source.parents[statement] is not function:
                raise Refused(f"`{self.path}` is not set to None in `__init__`")
            refuse_before_module(source, statement)
            torch = self.draft.torch
            lines = [
                f'self.register_buffer("{self.attr}", {torch}.zeros(()), persistent=False)',
                f'self.register_buffer("{self.flag}", {torch}.tensor(False), persistent=False)',
            ]
            return [source.swap(statement, next_line.join(lines))]
        if empty:
            return [source.swap(statement, f"self.{self.flag}.fill_(False)")]
        kinds = kinds_before(function, statement, self.draft.kinds({}))
        kinds.names[self.path] = Kind("tensor", "float32", 0, roots=frozenset({self.path}))
        if kinds.of(statement.value).rank != 0:
            raise Refused(f"`{source.of(statement.value)}` is not known to be a tensor without dimensions")
        kept = kept_apart(source, function, self.path, statement, self.draft.kinds({}))
        inside = [each for each in kept if source.start(statement) <= each.start <= source.end(statement)]
        text = (
            f"{self.path}.copy_({source.of(statement.value, inside)}){next_line}self.{self.flag}.fill_(True)"
        )
        return [source.swap(statement, text), *(each for each in kept if each not in inside)]

    def _question(self, node: ast.Compare) -> Replacement:
        right = node.comparators[0]
        asks = isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and len(node.ops) == 1
        if not (asks and isinstance(right, ast.Constant) and right.value is None):
            raise Refused(f"`{ast.unparse(node)}` compares what may be None")
        begun = isinstance(node.ops[0], (ast.IsNot, ast.NotEq))
        return self.source.swap(node, f"self.{self.flag}" if begun else f"not self.{self.flag}")
