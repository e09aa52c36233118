"""What uses a number that a class holds in an attribute, and whether it takes one that only is known when the program runs."""

from __future__ import annotations

import ast
import copy

from exportlens.inference.values import Instance, Tensor, options
from exportlens.rewriting.arms.arms_on_numbers import refuse_arms
from exportlens.rewriting.code.called_parts import called_functions, is_made_as_tensor, parameter_for
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import assigned_pairs, defaults_of, dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.number_types import TypedNumber, chooses
from exportlens.rewriting.memory.effects import is_log, kinds_before
from exportlens.rewriting.numbers.given_numbers import given_by_calls
from exportlens.rewriting.sizes.sliced_by_numbers import bounds_open_slice
from exportlens.rewriting.state.unset_reads import refuse_unset
from exportlens.source.document import Chunk

# Methods and functions that take a number which is only known when the program runs (measured on torch 2.13); `as_tensor` and
# `asarray` become `tensor` by another fix.
_TAKING_NUMBERS = frozenset(
    {"clamp", "clamp_", "mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "pow", "full", "new_full", "tensor", "arange",
     "masked_fill", "masked_fill_", "fill_", "roll", "tril", "triu", "lerp", "lerp_", "addcmul", "addcdiv", "narrow", "select",
     "as_tensor", "asarray", "scalar_tensor", "full_like"}
)  # fmt: skip
# Calls that take tensors, of which the number may be a part: `F.softmax(x / self.tau, -1)`.
_TAKING_TENSORS = frozenset(
    {"softmax", "log_softmax", "sigmoid", "tanh", "relu", "exp", "linear", "cross_entropy", "mse_loss", "where", "matmul", "copy_"}
)  # fmt: skip
# Functions of torch whose first argument is no tensor.
_TAKING_NO_TENSOR = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye", "tensor", "as_tensor",
     "scalar_tensor", "asarray", "range", "logspace", "manual_seed", "hann_window", "bernoulli"}
)  # fmt: skip
# What computes with numbers, or hands them on as they are.
_COMPUTING = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Slice,
    ast.keyword,
)
# How many names one after the other may stand for the number.
_DEEPEST = 4


class UsedNumber(TypedNumber):
    """Refuses uses that take no number which only is known when the program runs. `handed` are the reads that are handed to
    functions which bound slices by them."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, owner: Instance, attr: str) -> None:
        super().__init__(draft, cls, attr)
        self.owner: Instance = owner
        self.handed: set[ast.AST] = set()
        # The statements whose names are being followed: `ptr = (ptr + n) % size` reads its own.
        self._followed: set[ast.stmt] = set()

    def refuse_read(self, read: ast.expr, depth: int = 0) -> None:
        """Raise Refused where a number that is only known when the program runs may not be used as this one is."""
        statement = self.source.enclosing_statement(read)
        if self.sets_it(statement):
            return
        if isinstance(statement, ast.Expr) and is_log(statement.value, self.draft.kinds({})):
            # In eager mode it shows the same number; it is kept out of the program.
            return
        node: ast.AST = read
        for parent in self.source.ancestors(read):
            if isinstance(parent, ast.Assign) and [type(each) for each in parent.targets] == [ast.Name]:
                if self.type_of(parent.value) is not None or isinstance(node, ast.Attribute):
                    self._refuse_name(parent, depth)
                return
            if isinstance(parent, (ast.Return, ast.AugAssign, ast.Assign)):
                return
            if isinstance(parent, (ast.If, ast.IfExp, ast.BoolOp)):
                sized = self.draft.context.state_in_sizes()
                refuse_unset(self.source, parent, self.draft.others(), sized)
            if isinstance(parent, ast.If) and node is parent.test:
                if self.type != "bool":
                    refuse_arms(parent, self.cls, self.draft.kinds({}))
                return
            if isinstance(parent, ast.IfExp) and node is parent.test:
                return
            name = ""
            if isinstance(parent, ast.Call):
                name = (
                    parent.func.attr if isinstance(parent.func, ast.Attribute) else ast.unparse(parent.func)
                )
                if name in _TAKING_NUMBERS or self._takes_tensor(parent, name, node):
                    return
                if self._is_handed_on(parent, node, read, depth):
                    return
            if isinstance(parent, ast.Subscript) and node is parent.slice and self._is_tensor(parent.value):
                return
            if isinstance(parent, ast.BinOp) and self._is_tensor(
                parent.right if node is parent.left else parent.left
            ):
                # `(self.energy / self.steps + 1e-5).sqrt()`: a tensor is made of the number, whatever uses that.
                return
            given = isinstance(parent, ast.Call) and self.type_given(parent) is not None
            chosen = isinstance(parent, ast.Call) and chooses(parent)
            if not chosen and not given and not isinstance(parent, _COMPUTING):
                raise Refused(
                    f"`{ast.unparse(parent)}` takes the number, which would be known only when the program runs"
                )
            node = parent

    def _is_handed_on(self, call: ast.Call, node: ast.AST, read: ast.expr, depth: int) -> bool:
        """Whether `call` runs functions of the file, and each uses the number, or what is computed of it, as such a number may be
        used. Raises Refused where one does not."""
        if node is not read and not isinstance(node, ast.keyword):
            return False
        argument = node.value if isinstance(node, ast.keyword) else node
        found = called_functions(self.draft, self.cls, call) if depth <= _DEEPEST else []
        for chunk, cls, function in found:
            name = parameter_for(call, argument, function)
            if name is None:
                return False
            inside = self if chunk is self.draft.chunk else self._inside(chunk, cls)
            there = inside.source.find(function) if inside is not self else function
            self.given.add((cls.name, function.name, name))
            for each in ast.walk(there):
                if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                    inside.refuse_read(each, depth + 1)
                    slices = [one for one in inside.source.ancestors(each) if isinstance(one, ast.Slice)]
                    if any(bounds_open_slice(inside.source, one) for one in slices):
                        self.handed.add(read)
        return bool(found)

    def _inside(self, chunk: Chunk, cls: ast.ClassDef) -> UsedNumber:
        """The same number in a class of another chunk, which knows it by the names of parameters."""
        other = copy.copy(self)
        other.draft = Draft.of_chunk(chunk, self.draft.context)
        other.source = other.draft.source
        found = other.source.find(cls)
        assert isinstance(found, ast.ClassDef)
        other.cls = found
        other.path = ""
        other.elsewhere = True
        return other

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether what is indexed certainly is a tensor: a number that data tells is no index of a list."""
        path = dotted(node)
        if path is not None and path.startswith("self.") and path.count(".") == 1:
            if self.elsewhere:
                return is_made_as_tensor(self.draft, self.cls, path)
            held = self.owner.attributes.get(path.removeprefix("self."))
            return held is not None and all(isinstance(each, Tensor) for each in options(held))
        statement = self.source.enclosing_statement(node)
        function = self.source.enclosing_function(statement)
        if function is None:
            return False
        if kinds_before(function, statement, self.draft.kinds({})).of(node).what == "tensor":
            return True
        return isinstance(node, ast.Name) and self._is_given_tensors(function, node.id)

    def _is_given_tensors(self, function: Function, name: str) -> bool:
        """Whether `name` is a parameter of a method of the class, to which the class gives nothing but tensors."""
        if function not in self.cls.body or name in defaults_of(function.args):
            return False
        found = given_by_calls(self.draft.file(), self.cls, function, name, None) or []
        return bool(found) and all(
            (outer := self.source.enclosing_function(each)) is not None
            and outer is not function
            and kinds_before(outer, self.source.enclosing_statement(each), self.draft.kinds({})).of(each).what
            == "tensor"
            for each in found
        )

    def _takes_tensor(self, call: ast.Call, name: str, node: ast.AST) -> bool:
        """Whether `node`, which the number is a part of, must be a tensor for the call to work."""
        if isinstance(node, ast.BoolOp):
            # Another fix makes `and` and `or` of the condition tensors.
            return name == "cond" and call.args[:1] == [node]
        if not isinstance(node, (ast.BinOp, ast.Compare)):
            return False
        module = self.draft.qualified(call.func).rpartition(".")[0]
        layer = isinstance(call.func, ast.Attribute) and name in _TAKING_TENSORS
        if isinstance(node, ast.Compare):
            # A branch that another fix has rewritten may hang on the comparison.
            return name == "where" or (name == "cond" and call.args[:1] == [node])
        return layer or (
            module in ("torch", "torch.nn.functional")
            and call.args[:1] == [node]
            and name not in _TAKING_NO_TENSOR
        )

    def sets_it(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.AugAssign):
            return dotted(statement.target) == self.path
        return isinstance(statement, ast.Assign) and any(
            dotted(each) == self.path for each, _ in assigned_pairs(statement)
        )

    def _refuse_name(self, statement: ast.Assign, depth: int) -> None:
        """Raise Refused where a name for the number, or for what is computed of it, is used in another way than such a number may be."""
        if statement in self._followed:
            return
        self._followed.add(statement)
        function = self.source.enclosing_function(statement)
        name = ast.unparse(statement.targets[0])
        if function is None or depth > _DEEPEST:
            raise Refused(f"`{ast.unparse(statement)}` gives the number another name")
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                self.refuse_read(each, depth + 1)
