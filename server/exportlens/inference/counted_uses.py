"""What a parameter is used as in the body of its function, counted by kinds of use."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from exportlens.inference import knowledge
from exportlens.inference.callees import callee_of, takes_object_first
from exportlens.inference.machine import Machine
from exportlens.inference.number_names import called_like_a_number
from exportlens.inference.parameters import from_annotation
from exportlens.inference.points import is_point, unpacks_point
from exportlens.inference.rebinding import local_functions, stands_for_another, was_set, while_bound
from exportlens.inference.use_counts import CountedName, is_compared
from exportlens.inference.values import Function, Instance, Mapping_, Named, Sequence, Static, Tensor
from exportlens.source.walking import children, walk

ATTRIBUTES_OF_TENSORS = frozenset(
    {
        "shape", "size", "view", "dim", "ndim", "unsqueeze", "squeeze", "permute", "transpose", "reshape", "flatten", "contiguous", "float", "long",
        "device", "dtype", "detach", "expand", "repeat", "mean", "sum", "new_zeros", "new_ones", "type_as", "cuda", "numel", "data", "masked_fill", "t",
        "T", "expand_as", "softmax", "matmul", "bmm", "chunk", "split", "requires_grad", "clone", "cpu", "norm", "pow", "abs", "is_cuda", "double", "half",
        "bool", "int", "tolist", "any", "all", "max", "min", "argmax", "to", "exp", "log", "sqrt", "item", "numpy", "ndimension", "view_as",
        "std", "var", "clamp", "gather", "unbind", "mT",
    }
)  # fmt: skip
_CONTAINER = frozenset({"keys", "values", "items", "get", "append", "pop", "update", "extend"})
# How many calls deep an argument is followed that is only passed on.
_MAX_PASSED_ON = 3


class Uses(CountedName):
    """Counts what a parameter is used as."""

    def visit(self, node: ast.AST) -> None:
        special = _VISITS.get(type(node))
        if special is not None:
            special(self, node)
        else:
            self._visit_children(node)

    def _visit_children(self, node: ast.AST) -> None:
        for child in children(node):
            self.visit(child)

    def visit_function(self) -> None:
        """Count all that the function does with the parameter."""
        body = self.function.node.body
        for part in body if isinstance(body, list) else [body]:
            self.visit(part)

    def _visit_attribute(self, node: ast.Attribute) -> None:
        if self.is_it(node.value):
            if node.attr in ATTRIBUTES_OF_TENSORS:
                self.strong += 1
            elif node.attr in _CONTAINER:
                self.mapping += 1
            elif knowledge.lookup_method(node.attr) is not None:
                # Only tensors have methods that write in place: `x.mul_()`.
                self.strong += node.attr.endswith("_")
                self.weak += 1
            else:
                self.container += 1
                self.object += self._is_no_tensors(node)
        elif isinstance(node.value, ast.Compare) and self.is_it(node.value.left):
            # `(x > 0).any()`: only a tensor compares element by element.
            self.strong += node.attr in ATTRIBUTES_OF_TENSORS
        elif self.is_part(node.value):
            self.parts += node.attr in ATTRIBUTES_OF_TENSORS and not hasattr(str, node.attr)
        self._visit_children(node)

    def _is_no_tensors(self, node: ast.Attribute) -> bool:
        """Whether an attribute that is read of the parameter is none that a tensor has."""
        function = self.function.node
        return (
            isinstance(node.ctx, ast.Load)
            and not node.attr.startswith("_")
            and knowledge.tensor_property(node.attr) is None
            and not stands_for_another(function, self.name, node.value)
            and not was_set(function, self.name, node)
        )

    def _visit_subscript(self, node: ast.Subscript) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        # `table[t]`, `table[t - 1]`
        self.index += any(
            self.is_it(each) or (isinstance(each, ast.BinOp) and self.is_it(each.left)) for each in parts
        )
        if isinstance(node.ctx, ast.Store):
            # `mask[i, :n] = True`: a padding mask, of lengths.
            self.bounding += sum(
                isinstance(each, ast.Slice)
                and any(bound is not None and self.is_it(bound) for bound in (each.lower, each.upper))
                for each in parts
            )
        if self.is_it(node.value):
            if isinstance(node.slice, ast.Tuple) or self.is_mask(node.slice):
                self.strong += 1
            elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                self.mapping += 1
            elif isinstance(node.slice, ast.Constant):
                self.container += 1
                self.picked += 1
                self.placed += is_point(self.name)
            else:
                self.weak += 1
                self.chosen += 1
        elif (
            isinstance(node.value, ast.Attribute)
            and self.is_it(node.value.value)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            # `nodes.data["h"]`
            self.mapping += 1
        self._visit_children(node)

    def _visit_bin_op(self, node: ast.BinOp) -> None:
        if self.is_it(node.left) or self.is_it(node.right):
            other = node.right if self.is_it(node.left) else node.left
            self.decimal += isinstance(other, ast.Constant) and isinstance(other.value, float)
            # Of lists and tuples there are multiples, but they take part in no other arithmetic with a number.
            self.reckoned += (
                isinstance(other, ast.Constant)
                and type(other.value) is int
                and not isinstance(node.op, (ast.Mult, ast.Mod))
            )
            if isinstance(node.op, ast.MatMult):
                self.strong += 1
            else:
                self.weak += 1
        self._visit_children(node)

    def _visit_unary_op(self, node: ast.UnaryOp) -> None:
        self.negated += isinstance(node.op, ast.USub) and self.is_it(node.operand)
        self._visit_children(node)

    def _visit_compare(self, node: ast.Compare) -> None:
        if (
            self.is_it(node.left)
            and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
            and isinstance(node.comparators[0], ast.Constant)
            and isinstance(node.comparators[0].value, str)
        ) or (self.is_it(node.left) and _holds_text(node.comparators[0])):
            self.flag += 1
        elif isinstance(node.ops[0], (ast.In, ast.NotIn)) and self.is_it(node.comparators[0]):
            # Hardly anyone looks for a value in a tensor: this is a dict, or a list.
            self.mapping += 1
        elif self.is_item(node.left) and isinstance(node.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE)):
            self.weighed += 1
        elif (
            self.is_it(node.left)
            and id(node) not in self.tests
            and isinstance(node.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq))
        ):
            self.weak += 1
        self._visit_children(node)

    def _visit_assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if self.is_it(node.value) and isinstance(target, ast.Tuple):
            # `H, W = size`
            names = [part.id for part in target.elts if isinstance(part, ast.Name)]
            self.container += bool(names) and all(map(called_like_a_number, names))
        self.placed += self.is_it(node.value) and unpacks_point(node)
        if self.is_part(node.value) and isinstance(target, ast.Name):
            # `n = sizes[i]`, and then `if n <= 1`.
            self.weighed += is_compared(self.function.node, target.id)
        value = _copied(node.value) or node.value
        if self.is_it(value) and isinstance(target, ast.Name) and self.depth < _MAX_PASSED_ON:
            self._also_called(target.id, node)
        if (
            isinstance(node.value, ast.BinOp)
            and isinstance(target, ast.Name)
            and target.id != self.name
            and self.depth < _MAX_PASSED_ON
            and self.reckons_with(node.value)
        ):
            # `rounds = n + 1`, then `range(rounds)`
            lines = while_bound(self.machine, self.function, target.id, node)
            made = Uses(self.machine, self.function, target.id, _MAX_PASSED_ON, lines)
            made.visit_function()
            self.number += 0 if made.strong else max(made.number - made.compared - made.read, 0)
        number = node.value.left if isinstance(node.value, ast.BinOp) else node.value
        if isinstance(number, ast.Call) and isinstance(target, ast.Name) and target.id != self.name:
            # `t = int(timestep)`, `last = int(t) - 1`: a number that is only tidied up keeps its name.
            self.count_converted(number)
        if isinstance(target, ast.Name) and self.is_mask(node.value):
            self.masks.add(target.id)
        self._visit_children(node)

    def _also_called(self, name: str, given: ast.Assign) -> None:
        """Count what `h = x` is used as, up to where `h` is bound to something else."""
        lines = while_bound(self.machine, self.function, name, given)
        other = Uses(self.machine, self.function, name, self.depth + 1, lines)
        other.visit_function()
        self.count(other)

    def _visit_for(self, node: ast.For) -> None:
        if self.is_it(node.iter):
            self.iterated += 1
        self.container += self.is_item(node.iter)
        self._visit_children(node)

    def _visit_comprehension(self, node: ast.comprehension) -> None:
        if self.is_it(node.iter):
            self.iterated += 1
        # `for child in tree[node]`: what an index chooses is gone through, as in a list of lists.
        self.container += self.is_item(node.iter)
        for test in node.ifs:
            # Each element that comes by asks for one truth, as an `if` does.
            self._test(test)
        self._visit_children(node)

    def _visit_if(self, node: ast.If) -> None:
        self._test(node.test)
        self._visit_children(node)

    def _visit_while(self, node: ast.While) -> None:
        self._test(node.test)
        self._visit_children(node)

    def _visit_assert(self, node: ast.Assert) -> None:
        self._test(node.test)
        self._visit_children(node)

    def _visit_if_exp(self, node: ast.IfExp) -> None:
        self._test(node.test)
        self._visit_children(node)

    def _test(self, test: ast.expr) -> None:
        self.tests.update(id(child) for child in walk(test))
        self.count_converted(test)
        for child in [test, *(test.values if isinstance(test, ast.BoolOp) else [])]:
            if self.is_it(child) or (isinstance(child, ast.UnaryOp) and self.is_it(child.operand)):
                self.flag += 1
                self.truths += 1
            elif isinstance(child, ast.Compare) and (
                self.is_it(child.left) or self.is_it(child.comparators[0])
            ):
                # Python asks for one truth: a tensor with more than one element would raise.
                orders = isinstance(child.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq))
                self.number += orders
                self.compared += orders
            elif isinstance(child, ast.Compare):
                sides = [child.left, *child.comparators]
                text = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in sides)
                orders = not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in child.ops)
                self.parts_asked += orders and not text and any(map(self.is_part, sides))

    def _visit_match(self, node: ast.Match) -> None:
        self.count_converted(node.subject)
        self._visit_children(node)

    def _visit_slice(self, node: ast.Slice) -> None:
        self.number += any(map(self.reckons_with, (node.lower, node.upper)))
        self._visit_children(node)

    def _visit_call(self, node: ast.Call) -> None:
        # `int(box[0] * width)`: numbers that are computed with are cut off.
        self.measured += (
            isinstance(node.func, ast.Name)
            and node.func.id in ("int", "round")
            and len(node.args) == 1
            and any(isinstance(each, ast.expr) and self.is_item(each) for each in walk(node.args[0]))
        )
        for index, argument in enumerate(node.args):
            spread = isinstance(argument, ast.Starred) and self.is_it(argument.value)
            counted = isinstance(node.func, ast.Name) and node.func.id == "len" and self.is_item(argument)
            if spread or counted:
                self.container += 1
            elif self.is_it(argument):
                self._passed(node, index)
            elif self.is_part(argument):
                self._passed_part(node, index)
            elif isinstance(argument, (ast.List, ast.Tuple)) and any(map(self.is_it, argument.elts)):
                # `torch.cat([x, given])`
                self.strong += self._takes_tensors(node, index)
        for keyword in node.keywords:
            if keyword.arg is not None and self.is_it(keyword.value):
                self._passed_by_name(node, keyword.arg)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cond" and node.args:
            # `torch.cond(t > 0, ...)`: of a number there is an `if`.
            tests = [*node.args[0].values] if isinstance(node.args[0], ast.BoolOp) else [node.args[0]]
            self.decided += sum(
                isinstance(each, ast.Compare) and (self.is_it(each.left) or self.is_it(each.comparators[0]))
                for each in tests
            )
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            self.number += sum(isinstance(each, ast.BinOp) and self.reckons_with(each) for each in node.args)
            # `range(int(steps))`: an int needs no conversion there.
            self.strong += sum(
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id == "int"
                and any(map(self.is_it, each.args))
                for each in node.args
            )
        self._visit_children(node)

    def _takes_tensors(self, node: ast.Call, index: int) -> bool:
        """Whether what is called is a function of torch's that takes a list of tensors at `index`."""
        callee = callee_of(self.machine, self.function, self.name, node.func)
        op = knowledge.lookup_function(callee.name) if isinstance(callee, Named) else None
        return op is not None and index < len(op.params) and op.params[index].type.startswith("tensor[")

    def _passed_by_name(self, node: ast.Call, name: str) -> None:
        """Count what a function of the workspace uses the argument `name` as."""
        callee = callee_of(self.machine, self.function, self.name, node.func)
        if isinstance(callee, Function):
            spec = callee.node.args
            named = [each for each in (*spec.args, *spec.kwonlyargs) if each.arg == name]
            if named:
                self._passed_as(callee, named[0])

    def _passed(self, node: ast.Call, index: int) -> None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("range", "int"):
            self.number += 1
            self.read += function.id == "int"
            return
        if isinstance(function, ast.Name) and function.id == "float":
            # Of a number there mostly is nothing to make.
            self.floated += 1
            return
        if isinstance(function, ast.Name) and function.id in ("len", "list", "tuple"):
            self.container += function.id != "len"
            return
        if isinstance(function, ast.Name) and function.id in ("zip", "enumerate", "reversed"):
            self.iterated += 1
            return
        if isinstance(function, ast.Name) and function.id in ("isinstance", "hasattr"):
            self.asked += 1
            return
        local = (
            local_functions(self.machine, self.function).get(function.id)
            if isinstance(function, ast.Name)
            else None
        )
        if local is not None:
            self._passed_inside(local, index)
            return
        callee = callee_of(self.machine, self.function, self.name, function)
        if isinstance(callee, Function):
            self._passed_on(callee, index)
            return
        op = knowledge.lookup_function(callee.name) if isinstance(callee, Named) else None
        if op is not None:
            kind = op.params[index].type if index < len(op.params) else ""
            if kind.startswith("tensor["):
                self.container += 1
            elif kind.startswith("tensor"):
                self.strong += 1
            elif kind.startswith(("int", "bool", "float")):
                self.number += 1
        elif (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "self"
        ) or isinstance(function, ast.Subscript):
            self.weak += 1

    def _passed_part(self, node: ast.Call, index: int) -> None:
        """Count what a function uses an item of the parameter as."""
        callee = callee_of(self.machine, self.function, self.name, node.func)
        if isinstance(callee, Function):
            used = Uses(self.machine, self.function, self.name, self.depth)
            used._passed_on(callee, index)
            self.parts += bool(used.strong and not (used.number or used.mapping or used.object))

    def _passed_inside(self, callee: ast.FunctionDef | ast.Lambda, index: int) -> None:
        """Count what a function within this one uses the argument at `index` as."""
        positional = [*callee.args.posonlyargs, *callee.args.args]
        if index >= len(positional) or self.depth >= _MAX_PASSED_ON:
            return
        inner = Uses(self.machine, self.function, positional[index].arg, self.depth + 1)
        for part in callee.body if isinstance(callee.body, list) else [callee.body]:
            inner.visit(part)
        self.count(inner)

    def _passed_on(self, callee: Function, index: int) -> None:
        """Count what a function of the workspace uses the argument at `index` as."""
        spec = callee.node.args
        positional = [*spec.posonlyargs, *spec.args]
        place = index + takes_object_first(callee)
        if place >= len(positional):
            self.weak += callee.owner is not None
        else:
            self._passed_as(callee, positional[place])

    def _passed_as(self, callee: Function, parameter: ast.arg) -> None:
        """Count what a function of the workspace uses its `parameter` as."""
        if self.depth >= _MAX_PASSED_ON:
            self.weak += callee.owner is not None
            return
        if parameter.annotation is not None:
            known = from_annotation(self.machine, callee, parameter.annotation, parameter.arg)
            self.strong += isinstance(known, Tensor)
            self.number += isinstance(known, Static)
            self.container += isinstance(known, (Sequence, Mapping_, Instance))
            if known is not None:
                return
        key = ("uses", id(callee.node), parameter.arg)
        inner: Uses | None = self.machine.memo.get(key)
        if inner is None:
            inner = self.machine.memo[key] = Uses(self.machine, callee, parameter.arg, self.depth + 1)
            inner.visit_function()
            inner.number += bool(inner.iterated) and holds_numbers(self.machine, callee, parameter.arg)
        self.count(inner)


def _copied(node: ast.expr) -> ast.expr | None:
    """What `copy.deepcopy(x)` and `copy.copy(x)` give again."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    func = node.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        return node.args[0] if func.value.id == "copy" and func.attr in ("copy", "deepcopy") else None
    return node.args[0] if isinstance(func, ast.Name) and func.id == "deepcopy" else None


def _holds_text(node: ast.expr) -> bool:
    """`["train", "dev"]`"""
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in node.elts
    )


def holds_numbers(machine: Machine, function: Function, name: str) -> bool:
    """Whether what a loop over the parameter `name` binds is used as a number, a flag or a pair of numbers."""
    for node in walk(function.node):
        if isinstance(node, (ast.For, ast.comprehension)) and any(
            isinstance(part, ast.Name) and part.id == name for part in walk(node.iter)
        ):
            for target in walk(node.target):
                if isinstance(target, ast.Name):
                    uses = Uses(machine, function, target.id)
                    uses.visit(function.node)
                    if (uses.number or uses.flag or uses.container) and not uses.strong:
                        return True
    return False


def holds_compared(machine: Machine, function: Function, name: str) -> bool:
    """Whether tests compare what loops over the parameter `name` bind or ask for its truth, slices that are written end by it, or `int` reads it or what is
    computed with its items, and nothing else is done with it that a number alone can do."""
    compared = 0
    for node in walk(function.node):
        if not isinstance(node, (ast.For, ast.comprehension)) or not any(
            isinstance(part, ast.Name) and part.id == name for part in walk(node.iter)
        ):
            continue
        if not isinstance(node.iter, (ast.Name, ast.Call)):
            return False
        for target in walk(_items_named(node)):
            if isinstance(target, ast.Name):
                found = asked_as_numbers(machine, function, target.id)
                if found is None:
                    return False
                compared += found
    return compared > 0


def asked_as_numbers(machine: Machine, function: Function, name: str) -> int | None:
    """How often tests compare `name` or ask for its truth, slices that are written end by it, or `int` reads it; None where something else is done with
    it that a number alone can do."""
    uses = Uses(machine, function, name)
    uses.visit(function.node)
    otherwise = uses.mapping or uses.object or uses.flag > uses.truths or uses.index
    # Its items are read by a known index only.
    otherwise += uses.container - uses.picked
    if otherwise or uses.number != uses.compared + uses.read + uses.bounding:
        return None
    if called_like_a_number(name) and not (uses.read or uses.bounding):
        return None
    return uses.compared + uses.read + uses.measured + uses.bounding + uses.truths


def _items_named(node: ast.For | ast.comprehension) -> ast.expr:
    """What the loop binds to items: of `for i, n in enumerate(lengths)` all but the counter."""
    counted = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "enumerate"
    pair = isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2
    return node.target.elts[1] if counted and pair else node.target  # type: ignore[attr-defined]


_VISITS: dict[type[ast.AST], Callable[[Uses, Any], None]] = {
    ast.Assert: Uses._visit_assert,
    ast.Assign: Uses._visit_assign,
    ast.Attribute: Uses._visit_attribute,
    ast.BinOp: Uses._visit_bin_op,
    ast.Call: Uses._visit_call,
    ast.Compare: Uses._visit_compare,
    ast.For: Uses._visit_for,
    ast.If: Uses._visit_if,
    ast.IfExp: Uses._visit_if_exp,
    ast.Match: Uses._visit_match,
    ast.Slice: Uses._visit_slice,
    ast.Subscript: Uses._visit_subscript,
    ast.UnaryOp: Uses._visit_unary_op,
    ast.While: Uses._visit_while,
    ast.comprehension: Uses._visit_comprehension,
}
