"""Names that arrays are bound to on their way: each is followed to where it is read, until it is bound anew."""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_gathering import Gathering
from exportlens.rewriting.code.names import bound


class NamedArrays(Gathering):
    """The part of an array's way that leads through names. `others` are the statements that bind a name of an array anew, `ends`
    where that is."""

    ends: dict[tuple[ast.AST | None, str], list[int | None]]
    followed: set[tuple[str, ast.AST]]
    others: set[ast.AST]

    def _is_store_of_array(self, node: ast.Name) -> bool:
        """Whether `node` binds a name that has been followed in its function."""
        if isinstance(node.ctx, ast.Load) or node.id not in self.names:
            return False
        key = (self.source.enclosing_function(node), node.id)
        ends = [end for end in self.ends.get(key, ()) if end is not None]
        # Behind all that binds it anew the name is no array any more.
        left = len(ends) == len(self.ends.get(key, (None,))) and self.source.start(node) >= max(ends)
        return key in self.named and not left

    def _is_before(self, store: ast.Name) -> bool:
        """Whether `store` binds a name that is certainly bound to an array later, before it is followed."""
        for binding in self.bindings:
            statement = binding if isinstance(binding, ast.stmt) else self.source.parents[binding]
            if any(isinstance(each, ast.Name) and each.id == store.id for each in _targets(binding)):
                return (
                    isinstance(statement, ast.stmt)
                    and self.source.parents[statement] is self.source.enclosing_function(store)
                    and self.source.start(store) < self.source.start(statement)
                )
        return False

    def _unpacked(self, values: ast.Tuple, node: ast.expr) -> bool:
        """Whether `node` among `values` gets a name of its own, as in `a, b = x.mean(), x.std()`."""
        statement = self.source.parents[values]
        targets = (
            statement.targets[0]
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1
            else None
        )
        if not isinstance(targets, ast.Tuple) or len(targets.elts) != len(values.elts):
            return False
        target = targets.elts[values.elts.index(node)]
        if any(isinstance(each, ast.Starred) for each in targets.elts) or not isinstance(target, ast.Name):
            return False
        assert isinstance(statement, ast.Assign)
        self.bindings.add(targets)
        self._follow(statement, target.id)
        return True

    def _follow(self, statement: ast.Assign, name: str) -> None:
        if (name, statement) in self.followed:
            return
        self.followed.add((name, statement))
        self._name(statement, name)
        source = self.source
        function = source.enclosing_function(statement)
        # Before the statement, and in it, a name is what it was, unless a loop comes by again.
        again = any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(statement))
        end = None if again else self._bound_anew(statement, name)
        self.ends.setdefault((function, name), []).append(end)
        self.leaves += [
            each
            for each in ast.walk(function or source.tree)
            if isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and (again or source.start(each) >= source.end(statement))
            and (end is None or source.start(each) < end)
        ]

    def _bound_anew(self, statement: ast.Assign, name: str) -> int | None:
        """Where a later statement of the same block that binds `name` to something else ends."""
        block, index = self.source.block_of(statement)
        for each in block[index + 1 :]:
            if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]:
                self.others.add(each)
                return self.source.end(each)
            if name in bound(each):
                return None
        return None


def _targets(binding: ast.AST) -> list[ast.expr]:
    """What a binding binds: a statement, or the targets of one that unpacks."""
    if isinstance(binding, ast.Assign):
        return binding.targets
    return binding.elts if isinstance(binding, ast.Tuple) else []
