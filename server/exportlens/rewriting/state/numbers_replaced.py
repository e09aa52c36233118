"""State that begins as a number and becomes a tensor of one number, as a buffer that begins with it.

    self.integral = 0                    self.register_buffer("integral", torch.tensor(0.0), persistent=False)
    ...                            ->    ...
    self.integral += error * dt          self.integral.copy_(self.integral + error * dt)

From the second call on all that reads it gets a tensor anyway. Of a tensor with dimensions the final shape is what the file's example inputs
give it, or for the author to say.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.constant_numbers import constant_number
from exportlens.rewriting.state.kept_values import kept_apart
from exportlens.rewriting.state.registrations import refuse_before_module
from exportlens.rewriting.state.unbegun_state import UnbegunState, begun_as


def number_as_tensor(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that registers the tensor that takes the number's place."""
    why = (
        "the shape of the tensor is not known: make it a tensor of its final shape in `__init__`, "
        "or give the file example inputs, which tell it"
    )
    return begun_as(_Replaced, place, context, why)


class _Replaced(UnbegunState):
    """One attribute: where the class begins it with a number, and writes it."""

    def swaps(self) -> list[Replacement]:
        swaps, begun = self._changed()
        if begun != 1:
            raise Refused(f"`{self.path}` is not set once in `__init__`")
        return list(swaps.values())

    def _others(self, node: ast.AST) -> list[Replacement]:
        if isinstance(node, ast.AugAssign) and dotted(node.target) == self.path:
            return self._computed(node)
        if isinstance(node, ast.Delete) and self.path in map(dotted, node.targets):
            raise Refused(f"`{self.source.of(node)}` deletes the state")
        if self._asks_kind(node):
            raise Refused(f"`{ast.unparse(node)}` tells the number from the tensor")
        return []

    def _asks_kind(self, node: ast.AST) -> bool:
        """Whether `node` asks what the state is, which is a tensor in any case then."""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "type",
            "hasattr",
            "is_tensor",
        ):
            return any(dotted(each) == self.path for each in node.args) and not self._only_begins(node)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "is_tensor":
            return any(dotted(each) == self.path for each in node.args)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.path in (dotted(node.left), dotted(node.comparators[0]))
        return False

    def _only_begins(self, question: ast.Call) -> bool:
        """Whether `question` leads to nothing but a tensor of zeros for a zero: `if isinstance(self.v, float): self.v =
        torch.zeros_like(x)`. The buffer is one from the start, and the question is never answered with yes."""
        guard = self.source.parents[question]
        if not (isinstance(guard, ast.If) and guard.test is question and not guard.orelse):
            return False
        asked = ast.unparse(question.args[-1])
        begun = [
            constant_number(each.value)
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Assign)
            and self._is_bound_by(each)
            and constant_number(each.value) is not None
        ]
        return (
            getattr(question.func, "id", "") == "isinstance"
            and asked in ("float", "int", "(int, float)", "(float, int)", "numbers.Number")
            and all(each == 0 for each in begun)
            and all(
                isinstance(each, ast.Assign) and self._is_bound_by(each) and _is_zeros(each.value)
                for each in guard.body
            )
        )

    def _write(self, statement: ast.Assign | ast.AnnAssign) -> list[Replacement]:
        source, function = self.source, self.source.enclosing_function(statement)
        pairs = assigned_pairs(statement)
        if (
            function is None
            or statement.value is None
            or not source.begins_line(statement)
            or len(pairs) != 1
        ):
            raise Refused(f"`{self.path}` is set together with other targets")
        number = constant_number(statement.value)
        if self._of_constructor(statement):
            if number is None or self.source.parents[statement] is not function:
                raise Refused(f"`{self.path}` is not set to a number in `__init__`")
            refuse_before_module(source, statement)
            made = self.sized.made(self.draft.torch, float(number))
            return [source.swap(statement, f'self.register_buffer("{self.attr}", {made}, persistent=False)')]
        if number is not None:
            return [source.swap(statement, f"{self.path}.fill_({source.of(statement.value)})")]
        self._refuse_dimensions(function, statement, statement.value)
        return self._copied(statement, statement.value, "{}")

    def _computed(self, statement: ast.AugAssign) -> list[Replacement]:
        function = self.source.enclosing_function(statement)
        if function is None or not self.source.begins_line(statement):
            raise Refused(f"`{self.source.of(statement)}` shares its line with another statement")
        if constant_number(statement.value) is None:
            self._refuse_dimensions(function, statement, statement.value)
        return self._copied(statement, statement.value, self.source.computed(statement, "{}"))

    def _copied(self, statement: ast.stmt, value: ast.expr, whole: str) -> list[Replacement]:
        """`statement` as a write in place of `whole`, in which `value` stands at the braces."""
        source, function = self.source, self.source.enclosing_function(statement)
        assert function is not None
        kept = kept_apart(source, function, self.path, statement, self.draft.kinds({}))
        begin, end = source.start(statement), source.end(statement)
        inside = [each for each in kept if begin <= each.start <= end]
        text = f"{self.path}.copy_({whole.replace('{}', source.of(value, inside))})"
        return [source.swap(statement, text), *(each for each in kept if each not in inside)]


def _is_zeros(value: ast.expr) -> bool:
    """Whether `value` makes zeros, wherever they are: `torch.zeros_like(x).to(x.device)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in ("zeros", "zeros_like", "new_zeros"):
            return True
        if value.func.attr not in ("to", "cuda", "cpu", "type_as", "float", "clone", "detach"):
            return False
        value = value.func.value
    return False
