"""The text of torch.cond in the place of an `if`: the functions of its arms with their comments, the call, and what is copied around."""

from __future__ import annotations

import ast

from exportlens.rewriting.branches.around import is_cast
from exportlens.rewriting.branches.both_arms import chosen_of_both, defines_gradient, why_both
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before, given_to_operators, live_before
from exportlens.rewriting.code.names import every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.outside_writes import Arm, OutsideWrites, augmented_names
from exportlens.rewriting.memory.placed_views import NOTE, placed_by_data
from exportlens.rewriting.memory.sharing import to_separate
from exportlens.rewriting.state.kept_values import kept_apart
from exportlens.rewriting.state.resized_state import refuse_resized
from exportlens.source.walking import walk


class CondText:
    """The `if` statement `node`, and its two arms once they are read. `outputs` are the names that the branch gives, `region_end`
    is the last statement that the arms take in."""

    then: Arm
    other: Arm
    test: str
    region_end: ast.stmt
    writes: OutsideWrites

    def __init__(self, source: Source, node: ast.If, function: Function, kinds: Kinds, torch: str) -> None:
        self.source, self.node, self.function, self.kinds, self.torch = source, node, function, kinds, torch
        self.taken = every_name(source.tree)
        self.casts = is_cast(source, node, function, kinds)
        self.outputs: list[str] = []
        self.lines_before: list[str] = []

    def inner_span(self, block: list[ast.stmt]) -> tuple[int, int]:
        return self.source.span(block) if block else (0, 0)

    def without_branch(self) -> str:
        """The text without the `if`: it binds nothing that is read afterwards, and has no effect."""
        for statement in [*self.then.statements, *self.other.statements]:
            for each in walk(statement):
                if isinstance(each, ast.Assert) or (
                    isinstance(each, ast.Call) and "assert" in ast.unparse(each.func)
                ):
                    raise Refused(
                        "the branch only checks: a check of tensor data cannot depend on other data"
                    )
        if self.is_elif() or self.then.rest or self.other.rest or not self.source.begins_line(self.node):
            raise Refused("the branch binds nothing that is used afterwards")
        start, end = self.source.span([self.node])
        block, _ = self.source.block_of(self.node)
        if len(block) == 1:
            return replaced(self.source.text, [Replacement(start, end, f"{self.indent()}pass")])
        following = self.source.text[end:]
        return self.source.text[:start] + following[len(following) - len(following.lstrip("\r\n")) :]

    def indent(self) -> str:
        indent = self.source.indent_of(self.node)
        return indent + self.source.indent_unit() if self.is_elif() else indent

    def is_elif(self) -> bool:
        return self.source.text.startswith("elif", self.source.start(self.node))

    def function_text(self, arm: Arm, returned: str | None) -> tuple[str, str]:
        """(parameters, body) of the arm's function."""
        nl, indent = self.source.newline, self.indent() + self.source.indent_unit()
        lines = [indent + line for line in arm.first_lines]
        if arm.body:
            lines += self._stray_comments(arm.body, indent, before=True)
            if not (len(arm.body) == 1 and isinstance(arm.body[0], ast.Pass)):
                lines.append(self.source.block(arm.body, indent, arm.replacements))
            lines += self._stray_comments(arm.body, indent, before=False)
        for block in arm.rest:
            lines.append(self.source.block(block, indent, arm.replacements))
        if returned is not None:
            lines += [indent + line for line in arm.last_lines]
            lines.append(f"{indent}return {returned}")
        return ", ".join(f"{name}={name}" for name in arm.parameters), nl.join(lines)

    def _stray_comments(self, body: list[ast.stmt], indent: str, before: bool) -> list[str]:
        """Comments of an arm that stand on its header line, or after its last statement."""
        start, end = self.source.span(body)
        if before:
            header = self.source.start(self.node) if body is self.node.body else self._else_start(body)
            return [indent + each for each in self.source.comments_lost(header, start, self.test)]
        following = self._else_start(self.node.orelse) if body is self.node.body and self.node.orelse else end
        return [indent + comment for comment in self.source.comments_between(end, following)]

    def _else_start(self, orelse: list[ast.stmt]) -> int:
        if (
            len(orelse) == 1
            and isinstance(orelse[0], ast.If)
            and self.source.text.startswith("elif", self.source.start(orelse[0]))
        ):
            return self.source.start(orelse[0])
        return self.source.text.rfind(
            "else", self.source.end(self.node.body[-1]), self.source.span(orelse)[0]
        )

    def _is_inside(self) -> bool:
        """Whether the branch stands in an arm of another on tensor data, which is or becomes torch.cond."""
        predicates = Predicates(self.source, self.kinds, self.torch)
        for outer in self.source.ancestors(self.node):
            if outer is self.function:
                break
            if isinstance(outer, ast.If) and predicates.from_data(outer.test):
                return True
        around = self.source.enclosing_function(self.function)
        return around is not None and self.function.name in given_to_operators(around)

    def _is_in_gradient(self) -> bool:
        """Whether the branch stands in what an autograd Function runs, which is without gradients."""
        cls = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        return cls is not None and defines_gradient(cls, self.kinds)

    def assembled(self, functions: list[tuple[str, str]], last: list[str]) -> tuple[str, list[str]]:
        nl, indent = self.source.newline, self.indent()
        statements = [*self.then.statements, *self.other.statements]
        in_place = (
            set(afterwards(self.source, self.region_end, self.function, self.kinds).written)
            | {each.path for each in self.writes.written}
            | set(self.writes.rebound)
        )
        entering = frozenset(self.outputs).union(
            *(live_before(arm.statements, frozenset(), self.function) for arm in (self.then, self.other)),
            augmented_names(statements),
        )
        certain = certainly_bound_before(self.function, self.node)
        clones = to_separate(
            statements,
            set(self.outputs),
            self.kinds,
            in_place,
            entering,
            source=self.source,
            function=self.function,
            inside=self._is_inside(),
            bound=certain,
        )
        for name in set(clones) - certain:
            raise Refused(
                f"`{name}` is a view of what the branch reads as well, and belongs to another function"
            )
        placed = placed_by_data(statements, self.kinds, in_place, self.function, self.source)
        placed = [name for name in placed if name not in clones and name in certain]
        names = [fresh(wish, self.taken) for wish in ("if_true", "if_false")]
        call = f"{self.torch}.cond({self.test}, {names[0]}, {names[1]}, ())"
        in_gradient = self._is_in_gradient() and self._is_inside()
        what = why_both(statements, self.kinds, self.casts, in_gradient)
        if what:
            call = chosen_of_both(statements, self.test, names, self.kinds, self.torch, what)
        pieces = [
            f"{indent}def {name}({parameters}):{nl}{body}"
            for name, (parameters, body) in zip(names, functions, strict=True)
        ]
        pieces.append(nl.join(line.replace("{call}", call) for line in last))
        if clones:
            note = "  # torch.cond takes no two tensors of the same memory"
            pieces.insert(0, nl.join(f"{indent}{name} = {copy}{note}" for name, copy in clones.items()))
        if placed:
            pieces.insert(0, nl.join(f"{indent}{name} = {name}.clone(){NOTE}" for name in placed))
        if self.lines_before:
            pieces.insert(0, nl.join(f"{indent}{line}" for line in self.lines_before))
        text = (nl + nl).join(pieces)
        start = self.source.start(self.node)
        if self.is_elif():
            text = f"else:{nl}{text}"
        else:
            gap = self.source.gap_before(self.node)
            text = gap + (text if gap else text[len(indent) :])
            start -= len(indent) if gap else 0
        end = self.source.span([self.region_end])[1]
        swaps = [Replacement(start, end, text), *self._copies((start, end))]
        return replaced(self.source.text, swaps), names

    def _copies(self, region: tuple[int, int]) -> list[Replacement]:
        """The copies that are taken of buffers which the branch bound anew, and which are now written to. Raises Refused where one gets
        another size, as a tensor does whose `.data` is."""
        owner = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        for each in self.writes.written:
            if owner is not None and each.rebinds and each.path.endswith(".data"):
                refuse_resized(self.source, owner, self.function, each.path, region)
        return [
            swap
            for each in self.writes.written
            if each.rebinds and self.writes.is_buffer(each)
            for swap in kept_apart(self.source, self.function, each.path, region, self.kinds)
        ]
