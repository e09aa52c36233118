"""How numbers that a branch gives are used behind it: torch.cond gives tensors, and ints that not everything takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.source.walking import walk


@dataclass(frozen=True)
class LaterUses:
    """What stands behind the branch `node`, which takes in all up to `region_end`; `kinds` are those just before it."""

    source: Source
    function: Function
    node: ast.If
    region_end: ast.stmt
    kinds: Kinds
    torch: str

    def used_as_number(self, name: str) -> bool:
        """Whether `name` is, after the branch, ever used but as an operand beside a tensor."""
        last = self.source.end(self.region_end)
        for each in walk(self.function):
            if (
                isinstance(each, ast.Name)
                and each.id == name
                and isinstance(each.ctx, ast.Load)
                and self.source.start(each) >= last
            ):
                parent = self.source.parents[each]
                if isinstance(parent, ast.Call) and ast.unparse(parent.func) == f"{self.torch}.as_tensor":
                    continue
                if not isinstance(parent, ast.BinOp):
                    return True
                other = parent.right if parent.left is each else parent.left
                if self.kinds.of(other).what != "tensor" and not self._bound_later_to_tensor(other):
                    return True
        return any(isinstance(each, (ast.For, ast.While)) for each in self.source.ancestors(self.node))

    def meets_floats(self, name: str) -> bool:
        """Whether each tensor that `name` is an operand beside, after the branch, certainly is of a float dtype."""
        block, index = self.source.block_of(self.node)
        rest = block[index + 1 :]
        now = self.kinds.copy()
        for statement in rest:
            for each in walk(statement):
                parent = self.source.parents[each]
                if isinstance(each, ast.Name) and each.id == name and isinstance(parent, ast.BinOp):
                    kind = now.of(parent.right if parent.left is each else parent.left)
                    if not (kind.dtype or "").startswith(("float", "bfloat")):
                        return False
            now.run([statement])
        return True

    def refuse_ints_for_branches(self, names: list[str]) -> None:
        """torch.cond gives an int as a number that no later torch.cond takes in (measured on torch 2.13, non-strict)."""
        if not names or any(
            isinstance(each, (ast.For, ast.While)) for each in self.source.ancestors(self.node)
        ):
            return
        block, index = self.source.block_of(self.region_end)

        def see(node: ast.stmt, now: Kinds) -> None:
            inside: set[str] = set()
            if isinstance(node, ast.FunctionDef):
                # An arm of a branch that was rewritten before.
                inside = reads(node)
            elif isinstance(node, ast.If) and Predicates(self.source, now, self.torch).from_data(node.test):
                inside = {
                    each.id
                    for one in (*node.body, *node.orelse)
                    for each in walk(one)
                    if isinstance(each, ast.Name)
                }
            for name in names:
                if name in inside:
                    raise Refused(
                        f"`{name}` is an int that tensor data chooses, and a later branch takes it in"
                    )

        visit(block[index + 1 :], self.kinds.copy(), see)

    def _bound_later_to_tensor(self, node: ast.expr) -> bool:
        probe = self.kinds.copy()
        for each in (self.node, *self.source.ancestors(self.node)):
            if each is self.function:
                break
            if isinstance(each, ast.stmt):
                block, index = self.source.block_of(each)
                probe.run(block[index + 1 :])
        return probe.of(node).what == "tensor"
