"""Arrays that go into lists, loops and helpers of the file on their way: what comes out of them is followed as well."""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_helpers import Helpers
from exportlens.rewriting.arrays.numpy_calls import PUT_TOGETHER, qualified_name
from exportlens.rewriting.arrays.numpy_integers import Known, dtype_of, given_to_name, is_whole
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source


class Gathering:
    """The part of an array's way that leads through lists, loops and helpers."""

    draft: Draft
    source: Source
    helpers: Helpers
    made: dict[ast.AST, Replacement]
    leaves: list[ast.expr]
    names: set[str]
    named: set[tuple[ast.AST | None, str]]
    bindings: set[ast.AST]
    passed: set[ast.expr]
    put_together: list[ast.expr]
    lists: set[ast.expr]
    summed: set[ast.Call]
    dtypes: dict[ast.expr, str]
    of_any: set[ast.expr]

    def _follow(self, statement: ast.Assign, name: str) -> None:
        """Follow the name that `statement` binds."""
        raise NotImplementedError

    def _known(self, node: ast.expr) -> Known:
        return Known(self.source.enclosing_function(node), self.dtypes, self.of_any)

    def _name(self, near: ast.AST, name: str) -> None:
        self.names.add(name)
        self.named.add((self.source.enclosing_function(near), name))

    def _together(self, parent: ast.List | ast.Tuple | ast.ListComp) -> ast.expr | None:
        """The array that NumPy puts together of those in the list `parent`, here or under the list's name."""
        statement = self.source.parents[parent]
        self.put_together += [parent.elt] if isinstance(parent, ast.ListComp) else parent.elts
        if isinstance(parent, ast.ListComp) and isinstance(statement, ast.Assign):
            self._listed(parent, statement)
            return None
        return self._put_together(parent)

    def _put_together(self, given: ast.expr) -> ast.expr | None:
        """The array that NumPy puts together of those in the list `given`."""
        call = self.source.parents[given]
        name = (
            qualified_name(self.draft, call.func).removeprefix("numpy.") if isinstance(call, ast.Call) else ""
        )
        if (
            not isinstance(call, ast.Call)
            or name not in PUT_TOGETHER
            or call.args[0] is not given
            or len(call.args) > 2
            or any(key.arg != "axis" for key in call.keywords)
        ):
            raise Refused("the array is used in a way that has no counterpart in torch")
        if call in self.passed or call.func in self.made:
            return None
        self.made[call.func] = self.source.swap(call.func, f"{self.draft.torch}.{PUT_TOGETHER[name]}")
        return call

    def _listed(self, value: ast.expr, statement: ast.Assign) -> None:
        """Follow the list of arrays that `statement` gives a name: it is filled with arrays alone, and put together."""
        target = statement.targets[0]
        function = self.source.enclosing_function(statement)
        if len(statement.targets) != 1 or not isinstance(target, ast.Name) or function is None:
            raise Refused("the array is used in a way that has no counterpart in torch")
        if value in self.lists:
            return
        self.lists.add(value)
        for each in ast.walk(function):
            if not isinstance(each, ast.Name) or each.id != target.id or each is target:
                continue
            parent = self.source.parents[each]
            call = self.source.parents[parent]
            if not isinstance(each.ctx, ast.Load):
                raise Refused(f"the list `{each.id}` is bound several times")
            if isinstance(parent, ast.Attribute) and parent.attr == "append" and isinstance(call, ast.Call):
                self.put_together += call.args
            elif isinstance(parent, ast.Call) and dotted(parent.func) == "len":
                continue
            else:
                made = self._put_together(each)
                self.leaves += [] if made is None else [made]

    def _appended(self, owner: ast.expr) -> None:
        """Follow the list `owner`, which is empty first, and to which an array is appended."""
        given = (
            given_to_name(owner.id, self.source.enclosing_function(owner))
            if isinstance(owner, ast.Name)
            else []
        )
        statement = self.source.parents[given[0]] if len(given) == 1 else None
        if not isinstance(statement, ast.Assign) or ast.unparse(given[0]) not in ("[]", "list()"):
            raise Refused("the array is put into a list that something else may be in")
        self._listed(given[0], statement)

    def _gone_through(self, loop: ast.For | ast.comprehension) -> None:
        """Follow the rows that a loop takes of an array, one after the other."""
        if not isinstance(loop.target, ast.Name):
            raise Refused("the array is used in a way that has no counterpart in torch")
        within = loop if isinstance(loop, ast.For) else self.source.parents[loop]
        name = loop.target.id
        if name in self.names or (isinstance(loop, ast.For) and name in bound(loop.body)):
            raise Refused(f"`{name}` is bound several times")
        self._name(loop, name)
        self.bindings.add(loop)
        self.leaves += [
            each
            for each in ast.walk(within)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]

    def _handed_to(self, helper: Function, call: ast.Call, node: ast.expr) -> None:
        """Follow the array `node`, an argument of `call`, into the function that is called."""
        name = self.helpers.parameter(helper, call, node)
        known = self._known(node)
        reads = self.helpers.enter(helper, name)
        if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(helper.args)):
            raise Refused(f"`{name}` is the default of another argument")
        dtype = dtype_of(node, known)
        for each in reads:
            if dtype is not None:
                self.dtypes[each] = dtype
            else:
                self.of_any.add(each)
        if dtype is None and is_whole(node, known):
            raise Refused(f"`{helper.name}` gets whole numbers, of how many bits is not known")
        self._name(helper.body[0], name)
        self.leaves += reads

    def _given_back(self, node: ast.expr) -> bool:
        """Whether `node` is returned from a helper; the calls of it are arrays then, or what they are unpacked to."""
        calls = self.helpers.give_back(node)
        if calls is None:
            return False
        parent = self.source.parents[node]
        for call in calls:
            if isinstance(parent, ast.Return):
                self.leaves.append(call)
                continue
            statement = self.source.parents[call]
            targets = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(targets, ast.Tuple) or not isinstance(parent, ast.Tuple):
                raise Refused("what a helper returns together is not unpacked where it is called")
            target = targets.elts[parent.elts.index(node)]
            if len(targets.elts) != len(parent.elts) or not isinstance(target, ast.Name):
                raise Refused("what a helper returns together is not unpacked where it is called")
            assert isinstance(statement, ast.Assign)
            self.bindings.add(targets)
            self._follow(statement, target.id)
        return True

    def _sum_over(self, call: ast.Call, second: ast.expr) -> None:
        """`torch.tensordot` for `np.dot(a, b)` where `b` may have more than two dimensions."""
        source = self.source
        text = source.of(second)
        if not isinstance(second, ast.Name):
            raise Refused(f"it is not known how many dimensions `{text}` has: use the operator `@`")
        self.summed.add(call)
        self.made[call.func] = source.swap(call.func, f"{self.draft.torch}.tensordot")
        end = source.end(call) - 1
        self.made[call] = Replacement(end, end, f", dims=([-1], [max({text}.dim() - 2, 0)])")
