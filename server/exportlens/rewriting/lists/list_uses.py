"""What uses a list of numbers, and what that becomes where their sum and count stand in the place of the list."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from exportlens.rewriting.branches.mixed_results import asks_type
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.lists.own_means import mean_of
from exportlens.rewriting.lists.started_lists import StartedList

_ANY = ("Gt 0", "GtE 1", "NotEq 0")
_NONE = ("Eq 0", "Lt 1", "LtE 0")


@dataclass
class ListUses:
    """The list `found`, to which the statement `append` appends. `total` and `count` are the texts of its sum and of how many there
    are, `some` asks whether there are any; `functions` are those of the file."""

    source: Source
    function: Function
    torch: str
    found: StartedList
    append: ast.stmt
    functions: Mapping[str, ast.FunctionDef]
    total: str
    count: str
    some: str
    # Whether nothing but statements that raise for an empty list uses it.
    raises: bool = True

    def uses(self) -> list[Replacement] | None:
        """What changes where the list is used; None where a use is not known."""
        name, source = self.found.name, self.source
        swaps: list[Replacement] = []
        checked: set[ast.stmt] = set()
        loads = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and source.start(each) < self.found.end
        ]
        for each in loads:
            parent = source.parents[each]
            if any(each is one for one in ast.walk(self.append)):
                continue
            if any(isinstance(one, (ast.For, ast.While, ast.Lambda)) for one in source.ancestors(each)):
                return None
            asked = self._asked(each)
            if asked is not None:
                self.raises = False
                there, any_text = asked[1], self.some
                swaps.append(source.swap(asked[0], any_text if there else f"not {any_text}"))
                continue
            swap = self._reduced(each, parent)
            if swap is None:
                return None
            swaps.append(swap)
            if self._is_guarded(each) or self._is_share(each):
                self.raises = False
            else:
                statement = self._raising(each)
                if statement is None:
                    return None
                checked.add(statement)
        for statement in checked:
            begin, indent = source.start(statement), source.indent_of(statement)
            check = f'{self.torch}._assert_async({self.some}, "`{name}` is empty")'
            swaps.append(Replacement(begin, begin, f"{check}{source.newline}{indent}"))
        return swaps if swaps else None

    def _asked(self, node: ast.AST) -> tuple[ast.expr, bool] | None:
        """The test around the list that asks whether it has elements, and True where it holds for one that has."""
        parent = self.source.parents[node]
        test: ast.expr | None = None
        there = True
        if isinstance(parent, (ast.If, ast.IfExp)) and parent.test is node:
            return parent.test, True
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            test, there = parent, False
        if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len":
            outer = self.source.parents[parent]
            if isinstance(outer, ast.Compare) and outer.left is parent and len(outer.ops) == 1:
                said = f"{type(outer.ops[0]).__name__} {ast.unparse(outer.comparators[0])}"
                test = outer if said in (*_ANY, *_NONE) else None
                there = said in _ANY
            elif isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
                test, there = outer, False
        if test is None:
            return None
        around = self.source.parents[test]
        return (test, there) if isinstance(around, (ast.If, ast.IfExp)) and around.test is test else None

    def _reduced(self, node: ast.Name, parent: ast.AST) -> Replacement | None:
        """The sum, mean or number of what was kept."""
        source, torch = self.source, self.torch
        total, count = self.total, self.count
        if (
            not isinstance(parent, ast.Call)
            or parent.keywords
            or not any(node is each for each in parent.args)
        ):
            return None
        called = ast.unparse(parent.func)
        empty = self._own_mean(node)
        if empty is not None:
            return source.swap(parent, f"({total} / {count}{'.clamp(min=1)' if empty == 'zero' else ''})")
        if called == "sum" and len(parent.args) == 1:
            return source.swap(parent, total)
        outer = source.parents[parent]
        if called == "len":
            least = _at_least(outer, parent)
            if least is not None:
                parent, outer, count = outer, source.parents[outer], f"{count}.clamp(min={source.of(least)})"
            divides = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.right is parent
            return source.swap(parent, count) if divides else None
        if called != f"{torch}.stack" or len(parent.args) != 1:
            return None
        how, whole = "", outer
        if isinstance(outer, ast.Attribute) and isinstance(source.parents[outer], ast.Call):
            call = source.parents[outer]
            assert isinstance(call, ast.Call)
            how, whole = (outer.attr if not call.args and not call.keywords else ""), call
        elif isinstance(outer, ast.Call) and len(outer.args) == 1 and not outer.keywords:
            how = ast.unparse(outer.func).removeprefix(f"{torch}.")
        if how not in ("sum", "mean") or not isinstance(whole, ast.expr):
            return None
        return source.swap(whole, total if how == "sum" else f"({total} / {count})")

    def _own_mean(self, node: ast.Name) -> str | None:
        """What a function of the file's own that gives the mean of the list at `node` does of an empty one; None where it
        gives anything else, or where the list is used again: the function may add to what it holds."""
        call = self.source.parents[node]
        if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
            return None
        if ast.unparse(call.func) in bound(self.function.body):
            return None
        function = self.functions.get(ast.unparse(call.func))
        loads = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == node.id and isinstance(each.ctx, ast.Load)
        ]
        # The one that appends, and this one.
        return mean_of(function) if function is not None and len(loads) == 2 else None

    def _is_guarded(self, node: ast.AST) -> bool:
        """Whether `node` is reached only where the list has elements."""
        source = self.source
        inner: ast.AST = node
        for outer in source.ancestors(node):
            if outer is self.function:
                break
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
                there = self._says(outer.test)
                body = outer.body if isinstance(outer.body, list) else [outer.body]
                if there is not None and there == any(inner is each for each in body):
                    return True
            inner = outer
        block, index = source.block_of(inner) if isinstance(inner, ast.stmt) else ([], 0)
        return any(
            isinstance(each, ast.If) and self._says(each.test) is False and "falls" not in exits(each.body)
            for each in block[:index]
        )

    def _is_share(self, node: ast.Name) -> bool:
        """Whether `node` is part of `sum(losses) / max(len(losses), 1)`, which is zero where nothing was kept, where a tensor will do."""
        source = self.source
        if self._own_mean(node) == "zero":
            return self._takes_a_tensor(source.parents[source.parents[node]])
        whole = next((each for each in source.ancestors(node) if isinstance(each, ast.BinOp)), None)
        if whole is None or not isinstance(whole.op, ast.Div):
            return False
        divisor = whole.right
        length = divisor.args[0] if isinstance(divisor, ast.Call) and divisor.args else None
        if (
            length is None
            or _at_least(divisor, length) is None
            or [ast.unparse(whole.left), ast.unparse(length)] != [f"sum({node.id})", f"len({node.id})"]
        ):
            return False
        return self._takes_a_tensor(source.parents[whole])

    def _takes_a_tensor(self, around: ast.AST) -> bool:
        """Whether what stands in `around` may be a tensor where it was a number."""
        if isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
            return len(around.targets) == 1 and not asks_type(self.source, around.targets[0].id)
        return isinstance(around, (ast.Return, ast.BinOp))

    def _raising(self, node: ast.Name) -> ast.stmt | None:
        """The statement that raises where the list is empty, by its use at `node`; None where it does not certainly."""
        source = self.source
        statement = source.enclosing_statement(node)
        if not isinstance(
            statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
        ) or not source.begins_line(statement):
            return None
        use = source.parents[node]
        assert isinstance(use, ast.Call)
        around = source.parents[use]
        divided = (
            isinstance(around, ast.BinOp)
            and isinstance(around.op, ast.Div)
            and [ast.unparse(each) for each in (around.left, around.right)]
            == [f"sum({node.id})", f"len({node.id})"]
        )
        raises = divided or self._own_mean(node) == "raises"
        if not raises and ast.unparse(use.func) != f"{self.torch}.stack":
            return None
        unsure = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.Compare)
        for each in source.ancestors(node):
            if each is statement:
                break
            if isinstance(each, unsure):
                return None
        return statement

    def _says(self, test: ast.expr) -> bool | None:
        """Whether `test` holds where the list has elements (True) or where it has none (False)."""
        for each in ast.walk(test):
            if isinstance(each, ast.Name) and each.id == self.found.name:
                asked = self._asked(each)
                return asked[1] if asked is not None and asked[0] is test else None
        return None


def _at_least(node: ast.AST, value: ast.AST) -> ast.expr | None:
    """The positive number that `max(value, 1)` gives at least; None where `node` is anything else."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "max" and len(node.args) == 2):
        return None
    if node.keywords or value not in node.args:
        return None
    other = node.args[1] if node.args[0] is value else node.args[0]
    return other if isinstance(other, ast.Constant) and type(other.value) is int and other.value > 0 else None
