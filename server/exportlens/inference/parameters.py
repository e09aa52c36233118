"""Parameters: what an entry point's arguments are, from annotation, default and use."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.classes import class_attribute, class_order, is_module_class
from exportlens.inference.expressions import evaluate
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import apart, taken_up
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    ModuleRef,
    Named,
    Sequence,
    Static,
    Tensor,
    Unknown,
    Value,
)
from exportlens.source.parsing import parse_python

_SCALARS = {"int", "float", "bool", "str", "complex", "bytes"}
_LISTS = {
    "List",
    "list",
    "Tuple",
    "tuple",
    "Sequence",
    "MutableSequence",
    "Iterable",
    "Collection",
    "Set",
    "set",
}
_MAPPINGS = {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"}


def argument_value(machine: Machine, function: Function, parameter: ast.arg, default: Value | None) -> Value:
    """The value that an entry point's parameter is taken to have: its default if it has one, else by annotation, else by use."""
    if default is not None:
        return taken_up(machine, default)
    annotated = (
        from_annotation(machine, function, parameter.annotation, parameter.arg)
        if parameter.annotation is not None
        else None
    )
    if annotated is not None:
        return annotated
    told = parameter.annotation is not None and _last(parameter.annotation) not in ("Any", "object")
    return by_use(machine, function, parameter.arg, told)


def input_tensor(machine: Machine, name: str, dtype: str | None = None) -> Tensor:
    return Tensor("input", name, dtype, None, False, machine.new_root())


def from_annotation(machine: Machine, function: Function, annotation: ast.expr, name: str) -> Value | None:
    """The value that an annotation promises; None where it says nothing that helps."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return from_annotation(machine, function, parse_python(annotation.value, mode="eval").body, name)
        except (SyntaxError, ValueError, RecursionError):
            return None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _union(machine, function, [annotation.left, annotation.right], name)
    if isinstance(annotation, ast.Subscript):
        return _generic(machine, function, annotation, name)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return Const(None)
    frame = Frame(
        function.scope,
        function.chunk,
        {},
        None,
        function.closure if isinstance(function.closure, Frame) else None,
    )
    alias = _alias(machine, function, annotation)
    if alias is not None:
        return from_annotation(machine, alias[1], alias[0], name)
    with apart(machine):
        try:
            kind = evaluate(machine, annotation, frame)
        except Raised:
            return None
    return _of_class(machine, kind, name)


def _alias(
    machine: Machine, function: Function, annotation: ast.expr, depth: int = 0
) -> tuple[ast.expr, Function] | None:
    """What a name stands for that a module gives to a type (`Batch = Dict[str, Tensor]`), and where it is said."""
    if isinstance(annotation, ast.Attribute):
        with apart(machine):
            try:
                owner = evaluate(
                    machine, annotation.value, Frame(function.scope, function.chunk, {}, None, None)
                )
            except Raised:
                return None
        if not isinstance(owner, ModuleRef):
            return None
        scope, name = owner.scope, annotation.attr
    else:
        scope, name = function.scope, _last(annotation)
    bindings = list(scope.bindings.get(name, ()))
    if len(bindings) != 1 or depth > _MAX_PASSED_ON:
        return None
    chunk, statement = bindings[0]
    if isinstance(statement, ast.ImportFrom):
        origin = scope.workspace.resolve(scope.absolute_import(statement.module, statement.level), scope)
        real = next((alias.name for alias in statement.names if (alias.asname or alias.name) == name), "")
        if origin is None or origin is scope or not real:
            return None
        there = replace(function, scope=origin, closure=None)
        return _alias(machine, there, ast.Name(real), depth + 1)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, (ast.Subscript, ast.BinOp)):
        return value, replace(function, scope=scope, chunk=chunk, closure=None)
    return None


def _of_class(machine: Machine, kind: Value, name: str) -> Value | None:
    if isinstance(kind, Named):
        short = kind.name.rpartition(".")[2]
        if kind.name.startswith("torch.") and short in ("Tensor", "Parameter"):
            return input_tensor(machine, name)
        if kind.name.startswith("torch.") and short in TENSOR_TYPES:
            return input_tensor(machine, name, TENSOR_TYPES[short])
        if kind.name.startswith("builtins.") and short in _SCALARS:
            return Static(short)
        if kind.name.startswith(("builtins.", "typing.", "collections.")):
            if short in _LISTS:
                sequence = "tuple" if short.lower() == "tuple" else "list"
                return Sequence(sequence, None, Unknown(f"an element of `{name}`"))
            if short in _MAPPINGS:
                return Mapping_({}, Unknown(f"a value of `{name}`"))
        if short == "Tensor":
            return input_tensor(machine, name)
        return None
    if isinstance(kind, ClassValue):
        if is_module_class(kind):
            return Unknown(f"a `{kind.name}` that is passed in")
        return default_instance(machine, kind)
    if isinstance(kind, Choice):
        return _of_class(machine, kind.options[0], name)
    return None


def default_instance(machine: Machine, kind: ClassValue) -> Value:
    """An object of `kind` made with its defaults: what configuration classes are when nothing else is said."""
    from exportlens.inference.construction import instantiate

    with apart(machine):
        try:
            return instantiate(machine, kind, [], {}, Frame(kind.scope, kind.chunk, {}), kind.node)
        except Raised:
            return Unknown(f"an instance of `{kind.name}`")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _generic(machine: Machine, function: Function, annotation: ast.Subscript, name: str) -> Value | None:
    base = _last(annotation.value)
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if base == "Optional":
        return from_annotation(machine, function, inner[0], name)
    if base == "Union":
        return _union(machine, function, inner, name)
    if base in _LISTS and base.lower() != "tuple":
        element = from_annotation(machine, function, inner[0], name)
        return Sequence("list", None, element or Unknown(f"an element of `{name}`"))
    if base in ("Tuple", "tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
            return Sequence(
                "tuple", None, from_annotation(machine, function, inner[0], name) or Unknown(name)
            )
        return Sequence(
            "tuple", [from_annotation(machine, function, item, name) or Unknown(name) for item in inner]
        )
    if base in _MAPPINGS and len(inner) == 2:
        return Mapping_({}, from_annotation(machine, function, inner[1], name) or Unknown(name))
    if base in ("Annotated", "Final", "ClassVar", "Required"):
        return from_annotation(machine, function, inner[0], name)
    if base == "Literal":
        return (
            Static("str")
            if isinstance(inner[0], ast.Constant) and isinstance(inner[0].value, str)
            else Static()
        )
    # jaxtyping: Float[Tensor, "batch dim"]
    if (
        base in ("Float", "Int", "Bool", "Shaped", "Num", "Integer", "Float32", "Int64")
        and _last(inner[0]) == "Tensor"
    ):
        return input_tensor(
            machine,
            name,
            {"Bool": "bool", "Float32": "float32", "Int64": "int64", "Float": "float"}.get(base),
        )
    return None


def _union(machine: Machine, function: Function, nodes: list[ast.expr], name: str) -> Value | None:
    values: list[Value] = []
    for node in nodes:
        value = from_annotation(machine, function, node, name)
        if value is None:
            return None
        if not (isinstance(value, Const) and value.value is None):
            values.append(value)
    # A required argument that may be None is given: otherwise it would have a default.
    if not values:
        return Const(None)
    # What takes a tensor first of all is exported with one.
    return values[0] if len(values) == 1 or isinstance(values[0], Tensor) else Choice(tuple(values))


# --- by use --------------------------------------------------------------------------------------------------------------

_STRONG = frozenset(
    {
        "shape", "size", "view", "dim", "ndim", "unsqueeze", "squeeze", "permute", "transpose", "reshape", "flatten", "contiguous", "float", "long",
        "device", "dtype", "detach", "expand", "repeat", "mean", "sum", "new_zeros", "new_ones", "type_as", "cuda", "numel", "data", "masked_fill", "t",
        "T", "expand_as", "softmax", "matmul", "bmm", "chunk", "split", "requires_grad", "clone", "cpu", "norm", "pow", "abs", "is_cuda", "double", "half",
        "bool", "int", "any", "all", "max", "min", "argmax", "to", "exp", "log", "sqrt", "item", "numpy", "ndimension", "view_as",
        "std", "var", "clamp", "gather", "unbind", "mT",
    }
)  # fmt: skip
_CONTAINER = frozenset({"keys", "values", "items", "get", "append", "pop", "update", "extend"})


# What a parameter is called that holds a size, a count or a position of Python, where its uses leave that open: tensors of such
# names are used as tensors somewhere.
_NUMBER_NAME = re.compile(
    r"[hwHWBNTLDC]|height|width|depth|length|step|epoch|(?:num|n|max|min|total)_\w+|(?:\w+_)?(?:shapes?|sizes?|hw|resolution)"
    r"|\w+_(?:h|w|H|W|height|width|size|len|length|dim|num|count|step|steps|epoch|ratio|rate|factor|stride)"
)
_KINDS = ("strong", "weak", "decimal", "container", "mapping", "flag", "number", "iterated")
# How many calls deep an argument is followed that is only passed on.
_MAX_PASSED_ON = 3


class _Uses(ast.NodeVisitor):
    """Counts what a parameter is used as."""

    def __init__(self, machine: Machine, function: Function, name: str, depth: int = 0) -> None:
        self.machine = machine
        self.function = function
        self.name = name
        self.depth = depth
        self.strong = self.weak = self.decimal = self.container = self.mapping = 0
        self.flag = self.number = self.iterated = 0
        self.tests: set[int] = set()

    def is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.is_it(node.value):
            if node.attr in _STRONG:
                self.strong += 1
            elif node.attr in _CONTAINER:
                self.mapping += 1
            elif knowledge.lookup_method(node.attr) is not None:
                # Only tensors have methods that write in place: `x.mul_()`.
                self.strong += node.attr.endswith("_")
                self.weak += 1
            else:
                self.container += 1
        elif isinstance(node.value, ast.Compare) and self.is_it(node.value.left):
            # `(x > 0).any()`: only a tensor compares element by element.
            self.strong += node.attr in _STRONG
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self.is_it(node.value):
            if isinstance(node.slice, ast.Tuple):
                self.strong += 1
            elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                self.mapping += 1
            elif isinstance(node.slice, ast.Constant):
                self.container += 1
            else:
                self.weak += 1
        elif (
            isinstance(node.value, ast.Attribute)
            and self.is_it(node.value.value)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            # `nodes.data["h"]`
            self.mapping += 1
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if self.is_it(node.left) or self.is_it(node.right):
            other = node.right if self.is_it(node.left) else node.left
            self.decimal += isinstance(other, ast.Constant) and isinstance(other.value, float)
            if isinstance(node.op, ast.MatMult):
                self.strong += 1
            else:
                self.weak += 1
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
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
        elif (
            self.is_it(node.left)
            and id(node) not in self.tests
            and isinstance(node.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq))
        ):
            self.weak += 1
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if self.is_it(node.value) and isinstance(target, ast.Tuple):
            # `H, W = size`
            names = [part.id for part in target.elts if isinstance(part, ast.Name)]
            self.container += bool(names) and all(map(_NUMBER_NAME.fullmatch, names))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        if self.is_it(node.iter):
            self.iterated += 1
        self.container += self._is_item(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        if self.is_it(node.iter):
            self.iterated += 1
        # `for child in tree[node]`: what an index chooses is gone through, as in a list of lists.
        self.container += self._is_item(node.iter)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._test(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._test(node.test)
        self.generic_visit(node)

    def _test(self, test: ast.expr) -> None:
        self.tests.update(id(child) for child in ast.walk(test))
        for child in [test, *(test.values if isinstance(test, ast.BoolOp) else [])]:
            if self.is_it(child) or (isinstance(child, ast.UnaryOp) and self.is_it(child.operand)):
                self.flag += 1
            elif isinstance(child, ast.Compare) and (
                self.is_it(child.left) or self.is_it(child.comparators[0])
            ):
                # Python asks for one truth: a tensor with more than one element would raise.
                self.number += isinstance(child.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq))

    def _is_item(self, node: ast.expr) -> bool:
        """`rows[i]`, whatever `i` is."""
        return (
            isinstance(node, ast.Subscript)
            and self.is_it(node.value)
            and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        )

    def visit_Slice(self, node: ast.Slice) -> None:
        self.number += any(bound is not None and self.is_it(bound) for bound in (node.lower, node.upper))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for index, argument in enumerate(node.args):
            spread = isinstance(argument, ast.Starred) and self.is_it(argument.value)
            counted = isinstance(node.func, ast.Name) and node.func.id == "len" and self._is_item(argument)
            if spread or counted:
                self.container += 1
            elif self.is_it(argument):
                self._passed(node, index)
        self.generic_visit(node)

    def _passed(self, node: ast.Call, index: int) -> None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("range", "int"):
            self.number += 1
            return
        if isinstance(function, ast.Name) and function.id in ("len", "list", "tuple"):
            self.container += function.id != "len"
            return
        if isinstance(function, ast.Name) and function.id in ("zip", "enumerate", "reversed"):
            self.iterated += 1
            return
        callee = self._resolved(function)
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

    def _passed_on(self, callee: Function, index: int) -> None:
        """Count what a function of the workspace uses the argument at `index` as."""
        spec = callee.node.args
        positional = [*spec.posonlyargs, *spec.args]
        bound = callee.owner is not None and not any("staticmethod" in name for name in callee.decorators)
        place = index + (1 if bound else 0)
        if place >= len(positional) or self.depth >= _MAX_PASSED_ON:
            self.weak += callee.owner is not None
            return
        parameter = positional[place]
        if parameter.annotation is not None:
            known = from_annotation(self.machine, callee, parameter.annotation, parameter.arg)
            self.strong += isinstance(known, Tensor)
            self.number += isinstance(known, Static)
            self.container += isinstance(known, (Sequence, Mapping_, Instance))
            if known is not None:
                return
        key = ("uses", id(callee.node), parameter.arg)
        inner: _Uses | None = self.machine.memo.get(key)
        if inner is None:
            inner = self.machine.memo[key] = _Uses(self.machine, callee, parameter.arg, self.depth + 1)
            body = callee.node.body if isinstance(callee.node.body, list) else [callee.node.body]
            for statement in body:
                inner.visit(statement)
        for kind in _KINDS:
            setattr(self, kind, getattr(self, kind) + getattr(inner, kind))

    def _submodule(self, owner: ClassValue, attr: str) -> Value | None:
        """The `forward` of the submodule that the constructor puts at `self.attr`, where its class is of the workspace."""
        made = _made_in_constructor(owner, attr)
        if made is None or not isinstance(made[1], (ast.Name, ast.Attribute)):
            return None
        home, maker = made
        with apart(self.machine):
            try:
                cls = evaluate(self.machine, maker, Frame(home.scope, home.chunk, {}, None, None))
            except Raised:
                return None
        return class_attribute(cls, "forward")[0] if isinstance(cls, ClassValue) else None

    def _resolved(self, function: ast.expr) -> Value | None:
        """What is called: a function of the workspace, a method of the same object, or something external."""
        if not isinstance(function, (ast.Name, ast.Attribute)):
            return None
        root: ast.expr = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id == self.name:
            return None
        if root.id == "self":
            owner = self.function.owner
            if owner is None or not isinstance(function, ast.Attribute) or function.value is not root:
                return None
            return class_attribute(owner, function.attr)[0] or self._submodule(owner, function.attr)
        frame = Frame(self.function.scope, self.function.chunk, {}, None, None)
        with apart(self.machine):
            try:
                return evaluate(self.machine, function, frame)
            except Raised:
                return None


def _holds_text(node: ast.expr) -> bool:
    """`["train", "dev"]`"""
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in node.elts
    )


def _made_in_constructor(cls: ClassValue, attr: str) -> tuple[ClassValue, ast.expr] | None:
    """What `self.attr = Maker(...)` in a constructor of the class's order calls, and the class whose constructor says so."""
    for item in class_order(cls):
        init = item.attributes.get("__init__") if isinstance(item, ClassValue) else None
        if not isinstance(init, Function) or not isinstance(item, ClassValue):
            continue
        for node in ast.walk(init.node):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == attr
                        and isinstance(target.value, ast.Name)
                        and target.value.id == "self"
                    ):
                        return item, node.value.func
    return None


def _holds_numbers(machine: Machine, function: Function, name: str) -> bool:
    """Whether what a loop over the parameter `name` binds is used as a number, a flag or a pair of numbers."""
    for node in ast.walk(function.node):
        if isinstance(node, (ast.For, ast.comprehension)) and any(
            isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.iter)
        ):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name):
                    uses = _Uses(machine, function, target.id)
                    uses.visit(function.node)
                    if (uses.number or uses.flag or uses.container) and not uses.strong:
                        return True
    return False


def by_use(machine: Machine, function: Function, name: str, told: bool = False) -> Value:
    """What a parameter without default must be for the body to work.

    `told`: it has an annotation that could not be read, so that only what a tensor alone can do makes it one.
    """
    uses = _Uses(machine, function, name)
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    for statement in body:
        uses.visit(statement)
    if uses.mapping:
        return Unknown(f"`{name}` looks like a dict or object")
    # Neither lists nor tuples take part in arithmetic with a float.
    if uses.strong or (uses.decimal and uses.container):
        return input_tensor(machine, name)
    if _NUMBER_NAME.fullmatch(name):
        return Static() if uses.number else Unknown(f"`{name}` is called like a number of Python")
    if told:
        return Unknown(f"the annotation of `{name}` could not be followed")
    if uses.container or (
        uses.iterated and (uses.number or uses.flag or _holds_numbers(machine, function, name))
    ):
        return Unknown(f"`{name}` looks like a container")
    if uses.iterated:
        # Tensors, or the rows of one: either way each element is a tensor.
        return (
            input_tensor(machine, name) if uses.weak else Sequence("list", None, input_tensor(machine, name))
        )
    if uses.number and not uses.weak:
        return Static("int")
    if uses.flag and not uses.weak:
        return Static()
    if uses.weak and not uses.number:
        return input_tensor(machine, name)
    return Unknown(f"nothing tells what `{name}` is")
