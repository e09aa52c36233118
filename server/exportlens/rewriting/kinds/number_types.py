"""The type, int, float or bool, of what a class computes with a number that it holds in an attribute."""

from __future__ import annotations

import ast
import math

from exportlens.inference.values import Const, Instance, Static
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import arguments, assigned_pairs, defaults_of, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.class_constants import class_constant
from exportlens.rewriting.kinds.constant_numbers import constant_number
from exportlens.rewriting.kinds.constructed_types import ConstructedTypes, Scope
from exportlens.rewriting.numbers.given_numbers import given_by_calls
from exportlens.rewriting.numbers.math_calls import NO_FLOAT, SAME_IN_TORCH
from exportlens.rewriting.sizes.sliced_by_numbers import is_unpacked_size

# Calls that give a number for a number, each of which a fix rewrites where tracing does not take it.
_CONVERTING = {"float": "float", "int": "int", "round": "int", "abs": ""}
_MATHEMATICAL = {f"math.{name}": "float" for name in SAME_IN_TORCH} | {"math.pow": "float"}
_MATHEMATICAL |= {f"numpy.{name}": "float" for name in SAME_IN_TORCH - NO_FLOAT if hasattr(math, name)}
_MATHEMATICAL |= {f"math.{name}": "int" for name in ("floor", "ceil", "trunc")}
_MATHEMATICAL |= {f"math.{name}": "bool" for name in ("isfinite", "isinf", "isnan")}
_BOUNDING = frozenset({"numpy.clip", "numpy.minimum", "numpy.maximum"})
EXTREMES = {"max": "sym_max", "min": "sym_min"}


def chooses(call: ast.Call) -> bool:
    """Whether `call` is `max` or `min`, or what another fix has made of those."""
    name = ast.unparse(call.func)
    return name in EXTREMES or (
        name.startswith("torch.") and name.removeprefix("torch.") in EXTREMES.values()
    )


class TypedNumber:
    """The class with the number, and the types of what it computes with it. `given` are the parameters that take the number: of
    which class and function, and their names."""

    type: str

    def __init__(self, draft: Draft, cls: ast.ClassDef, attr: str) -> None:
        self.draft, self.source, self.cls = draft, draft.source, cls
        self.path = f"self.{attr}"
        self.given: set[tuple[str, str, str]] = set()
        # What the interpreter knows of the object; `elsewhere` is set where another class than its own is looked at.
        self.owner: Instance | None = None
        self.elsewhere = False
        # The types that names are taken to have while it is asked whether that holds.
        self._assumed: dict[tuple[Function, str], str] = {}

    def of_constructor(self, node: ast.AST) -> bool:
        return getattr(self.source.enclosing_function(node), "name", "") == "__init__"

    def type_of(self, node: ast.expr) -> str | None:
        """The type of the number that `node` gives, "number" for an int or a float; None where it may be something else."""
        constant = constant_number(node)
        if constant is not None:
            return type(constant).__name__
        if dotted(node) == self.path:
            return self.type
        if isinstance(node, ast.Attribute):
            if self.draft.qualified(node) in ("math.pi", "math.e", "math.tau", "numpy.pi", "numpy.e"):
                return "float"
            return self._type_of_option(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.type_of(node.operand)
        if isinstance(node, ast.Name):
            function = self.source.enclosing_function(node)
            if function is not None and (self.cls.name, function.name, node.id) in self.given:
                return self.type
            given = [
                value
                for each in (ast.walk(function) if function is not None else ())
                if isinstance(each, ast.Assign)
                for target, value in assigned_pairs(each)
                if dotted(target) == node.id
            ]
            if not given and function is not None and is_unpacked_size(function, node.id):
                return "int"
            if given and all(read_out_of(each) is not None for each in given):
                return "number"
            if function is not None and counts_rounds(self.source, function, node.id):
                return "int"
            if not given and function is not None and function in self.cls.body:
                return self._type_given_by_calls(function, node.id)
            if function is None:
                return None
            adds = [each for each in ast.walk(function) if isinstance(each, ast.AugAssign)]
            given += [
                ast.copy_location(ast.BinOp(each.target, each.op, each.value), each)
                for each in adds
                if dotted(each.target) == node.id
            ]
            return self._type_of_all(function, node.id, given)
        if isinstance(node, ast.BinOp):
            parts = [self.type_of(node.left), self.type_of(node.right)]
            if isinstance(node.op, (ast.Div, ast.Pow)):
                return (
                    "float"
                    if None not in parts and (isinstance(node.op, ast.Div) or "float" in parts)
                    else None
                )
        elif isinstance(node, ast.IfExp):
            parts = [self.type_of(node.body), self.type_of(node.orelse)]
        elif is_size(node):
            return "int"
        elif (inner := read_out_of(node)) is not None:
            return self._type_held(inner) if isinstance(inner, ast.Attribute) else "number"
        elif isinstance(node, ast.Call) and chooses(node):
            parts = [self.type_of(each) for each in node.args]
        elif isinstance(node, ast.Call) and (told := self.type_given(node)) is not None:
            return told
        else:
            return None
        if not set(parts) <= {"int", "float", "number"}:
            return None
        if "number" in parts and "float" not in parts:
            return "number"
        return "float" if "float" in parts else "int"

    def _type_of_all(self, function: Function, name: str, given: list[ast.expr]) -> str | None:
        """The one type that `name` has, bound to `given`, some of which may be computed of the name itself: `ptr = (ptr + n) % size`."""
        if (function, name) in self._assumed:
            return self._assumed[function, name]
        if len(given) == 1 and not _reads(given[0], name):
            return self.type_of(given[0])
        stores = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        if not given or len(stores) != len(given) or name in {each.arg for each in arguments(function.args)}:
            return None
        for assumed in ("int", "float"):
            self._assumed[function, name] = assumed
            types = {self.type_of(each) for each in given}
            del self._assumed[function, name]
            if types == {assumed}:
                return assumed
        return None

    def _type_given_by_calls(self, function: Function, name: str) -> str | None:
        """The type of the number that all calls in the file give the parameter `name`."""
        placed = self.draft.context.document.placed
        statements = [each for one in placed if one.chunk is not self.draft.chunk for each in one.chunk.body]
        statements += self.source.tree.body
        default = defaults_of(function.args).get(name)
        given = given_by_calls(statements, self.cls, function, name, default)
        types: set[str | None] = set()
        for each in given or ():
            constant = constant_number(each)
            if constant is not None:
                types.add(type(constant).__name__)
            else:
                types.add(self._type_handed(each, function, statements))
        if not types or not types <= {"int", "float", "number"}:
            return None
        return types.pop() if len(types) == 1 else "number"

    def _type_handed(self, value: ast.expr, function: Function, statements: list[ast.stmt]) -> str | None:
        """The type of the number that a call somewhere in the file hands to `function`: `value`, or what the name for it is bound to."""
        if is_size(value):
            return "int"
        if read_out_of(value) is not None or ast.unparse(value).startswith("float("):
            return "number"
        if not isinstance(value, ast.Name):
            return None
        around = [
            each
            for statement in statements
            for each in ast.walk(statement)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            and any(one is value for one in ast.walk(each))
        ]
        if not around or around[-1] is function:
            return None
        caller = around[-1]
        if is_unpacked_size(caller, value.id):
            return "int"
        stores = [
            each
            for each in ast.walk(caller)
            if isinstance(each, ast.Name) and each.id == value.id and not isinstance(each.ctx, ast.Load)
        ]
        given = [
            bound
            for each in ast.walk(caller)
            if isinstance(each, ast.Assign)
            for target, bound in assigned_pairs(each)
            if dotted(target) == value.id
        ]
        known = value.id not in {each.arg for each in arguments(caller.args)} and len(stores) == len(given)
        types = {self._type_handed(each, function, []) for each in given} if known else set()
        return types.pop() if len(types) == 1 else None

    def type_given(self, call: ast.Call) -> str | None:
        """The type of what a conversion or a function of the math module gives, of numbers of known types."""
        name = ast.unparse(call.func)
        given = _CONVERTING.get(name, _MATHEMATICAL.get(self.draft.qualified(call.func)))
        parts = [self.type_of(each) for each in call.args]
        if self.draft.qualified(call.func) in _BOUNDING and set(parts) == {"float"} and not call.keywords:
            return "float"
        if given is None or not parts or None in parts or call.keywords:
            return None
        return (given or parts[0]) if len(parts) == 1 or given == "float" else None

    def _type_held(self, node: ast.Attribute) -> str | None:
        """The type of the number that a buffer holds which another fix of this kind has made."""
        for each in ast.walk(self.cls):
            if (
                isinstance(each, ast.Call)
                and ast.unparse(each.func) == "self.register_buffer"
                and len(each.args) == 2
            ):
                name, made = each.args
                if isinstance(name, ast.Constant) and name.value == node.attr and isinstance(made, ast.Call):
                    constant = constant_number(made.args[0]) if made.args else None
                    if self.draft.qualified(made.func) == "torch.tensor" and constant is not None:
                        return type(constant).__name__
        return None

    def _type_of_option(self, node: ast.Attribute) -> str | None:
        """The type of another number of the Module, that `__init__` sets to a constant or to a parameter whose default tells."""
        sets = [
            (statement, value)
            for statement in ast.walk(self.cls)
            if isinstance(statement, ast.Assign)
            for target, value in assigned_pairs(statement)
            if dotted(node) == dotted(target)
        ]
        if not sets and dotted(node) == f"self.{node.attr}":
            constant = constant_number(class_constant(self.cls, node.attr, self.draft.file()))
            return None if constant is None else type(constant).__name__
        if len(sets) != 1 or not self.of_constructor(sets[0][0]):
            return None
        found = self.type_constructed(*sets[0], otherwise="number")
        return self._type_known(node.attr) or found if found in (None, "number") else found

    def _type_known(self, attr: str) -> str | None:
        """The type of the number that the object has under `attr`, as far as the interpreter tells: `self.period = config.period`."""
        held = None if self.owner is None or self.elsewhere else self.owner.attributes.get(attr)
        number = isinstance(held, Const) and type(held.value) in (bool, int, float)
        if isinstance(held, Static):
            return held.type if held.type in ("int", "float") else None
        return type(held.value).__name__ if number and isinstance(held, Const) else None

    def type_constructed(
        self, statement: ast.stmt, value: ast.expr, otherwise: str | None = None
    ) -> str | None:
        """The type of `value`, which the constructor computes in `statement`; that of parameters is `otherwise` where nothing tells."""
        placed = self.draft.context.document.placed
        types = ConstructedTypes([each for one in placed for each in one.chunk.body], otherwise)
        return types.of(value, Scope(self.cls, self.source.enclosing_function(statement)))


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))


def counts_rounds(source: Source, function: Function, name: str) -> bool:
    """Whether nothing but loops over `range` and `enumerate` bind `name`, which counts their rounds, in `function`."""
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    own = {each.arg for each in arguments(function.args)}
    return bool(stores) and name not in own and all(_counts(source, each) for each in stores)


def _counts(source: Source, target: ast.Name) -> bool:
    """`for i in range(...)`, `for i, each in enumerate(...)`"""
    around = source.parents[target]
    first = isinstance(around, ast.Tuple) and around.elts[0] is target
    loop = source.parents[around] if first else around
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return False
    return loop.target is (around if first else target) and dotted(loop.iter.func) == (
        "enumerate" if first else "range"
    )


def is_size(node: ast.expr) -> bool:
    """Whether `node` asks how large something is: `x.shape[0]`, `x.size(0)`, `len(x)`."""
    if isinstance(node, ast.Subscript):
        one = isinstance(node.slice, (ast.Constant, ast.UnaryOp))
        return one and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("numel", "dim", "nelement") or (
            node.func.attr == "size" and len([*node.args, *node.keywords]) == 1
        )
    return isinstance(node.func, ast.Name) and node.func.id == "len"


def read_out_of(node: ast.expr) -> ast.expr | None:
    """The tensor that `node` reads a number out of by `.item()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return node.func.value
    return None
