"""The type of a number that a constructor computes: told by constants, annotations, defaults, and by what the file gives the class.

def __init__(self, start, config: Config, rate=0.9):
    self.temperature = start          # an int where the file only has `Net(30)`
    self.period = config.period       # what the class `Config` declares
    self.decay = 1 - rate / 2         # a float
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.names import arguments, assigned_pairs, defaults_of, dotted, is_none
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.constant_numbers import constant_number

_NUMBERS = frozenset({"int", "float", "number"})
# What these give is of the type, whatever they are given.
_GIVING = {
    "float": "float",
    "int": "int",
    "len": "int",
    "bool": "bool",
    "isinstance": "bool",
    "hasattr": "bool",
}
_GIVING |= {
    f"math.{name}": "float" for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tanh", "pow")
}
_GIVING |= {f"math.{name}": "int" for name in ("floor", "ceil", "trunc")}
# How many names, attributes and callers one after the other are followed.
_DEEPEST = 8


@dataclass(frozen=True)
class Scope:
    """Where an expression stands."""

    cls: ast.ClassDef | None
    function: Function | None


_FILE = Scope(None, None)


class ConstructedTypes:
    """Types of numbers in a file of these statements; `otherwise` is that of parameters of which nothing tells one."""

    def __init__(self, statements: Sequence[ast.stmt], otherwise: str | None = None) -> None:
        self.statements, self.otherwise = statements, otherwise
        self.classes = {each.name: each for each in statements if isinstance(each, ast.ClassDef)}

    def of(self, node: ast.expr, scope: Scope, depth: int = 0) -> str | None:
        """The type that `node` certainly has, "number" for an int or a float; None where it may be something else."""
        constant = constant_number(node)
        if constant is not None:
            return type(constant).__name__
        if depth > _DEEPEST:
            return None
        depth += 1
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, scope, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.of(node.operand, scope, depth)
        if isinstance(node, ast.BinOp):
            return self._of_operator(node, scope, depth)
        if isinstance(node, ast.BoolOp):
            return joined(self.of(each, scope, depth) for each in node.values)
        if isinstance(node, ast.IfExp):
            return joined(self.of(each, scope, depth) for each in (node.body, node.orelse))
        if isinstance(node, ast.Call):
            name = dotted(node.func) or ""
            if name in _GIVING and name not in self.classes:
                return _GIVING[name]
            if name == "round" and len(node.args) == 1 and self.of(node.args[0], scope, depth) in _NUMBERS:
                return "int"
            if name in ("max", "min", "abs") and (len(node.args) > 1 or name == "abs") and not node.keywords:
                return joined(self.of(each, scope, depth) for each in node.args)
        return None

    def _of_operator(self, node: ast.BinOp, scope: Scope, depth: int) -> str | None:
        parts = {self.of(each, scope, depth) for each in (node.left, node.right)}
        if not parts <= _NUMBERS:
            return None
        if isinstance(node.op, ast.Div) or "float" in parts:
            return "float"
        if isinstance(node.op, ast.Pow):
            exponent = constant_number(node.right)
            return "int" if parts == {"int"} and exponent is not None and exponent >= 0 else "number"
        return "int" if parts == {"int"} else "number"

    def _of_name(self, name: str, scope: Scope, depth: int) -> str | None:
        function = scope.function
        if function is None:
            return self._of_global(name, depth)
        parameter = next((each for each in arguments(function.args) if each.arg == name), None)
        stores = _stores(function, name)
        values = _assigned(function, name)
        if len(values) != len(stores):
            return None
        types = [self.of(each, scope, depth) for each in values]
        if parameter is not None:
            # `if rate is None: rate = 0.1` is what stands for the default.
            replaced = bool(stores) and f"{name} is None" in map(ast.unparse, _tests(function))
            types.append(self._of_parameter(parameter, scope, depth, replaced))
        return joined(types) if types else self._of_global(name, depth)

    def _of_global(self, name: str, depth: int) -> str | None:
        found = [
            value
            for each in self.statements
            if isinstance(each, (ast.Assign, ast.AnnAssign))
            for target, value in assigned_pairs(each)
            if dotted(target) == name
        ]
        stores = sum(
            len(_stores(each, name)) for each in self.statements if not isinstance(each, _DEFINITIONS)
        )
        announced = any(
            isinstance(each, ast.Global) and name in each.names
            for statement in self.statements
            for each in ast.walk(statement)
        )
        return self.of(found[0], _FILE, depth) if len(found) == stores == 1 and not announced else None

    def _of_parameter(self, parameter: ast.arg, scope: Scope, depth: int, replaced: bool) -> str | None:
        """The type of a parameter: its annotation or its default tells, or else what all calls in the file give."""
        function, name = scope.function, parameter.arg
        assert function is not None
        default = defaults_of(function.args).get(name)
        constant = constant_number(default)
        annotation = None if parameter.annotation is None else ast.unparse(parameter.annotation)
        told = annotation if annotation in ("int", "float", "bool") else None
        told = told or _asserted(function, name)
        if told is None and constant is not None and annotation is None:
            told = type(constant).__name__
        given: list[str | None] = []
        if function.name == "__init__" and scope.cls is not None:
            calls = list(self._constructions(scope.cls))
            for call, place in calls:
                value = None if call is None else given_to(call, function, name)
                if value is not None and not (replaced and is_none(value)):
                    given.append(self.of(value, place, depth))
                elif call is None or (value is None and default is None):
                    given.append(None)
                elif constant is not None:
                    given.append(type(constant).__name__)
                elif not (replaced and is_none(default if value is None else value)):
                    given.append(None)
            if replaced and not given and (is_none(default) or calls):
                return told or NOTHING
        if told == "float":
            return told
        if told is not None:
            # An int that is given where a float may be would be rounded.
            return told if set(given) <= {told, None} else joined([told, *(each for each in given if each)])
        if given and None not in given:
            return joined(given)
        return self.otherwise if default is None else None

    def _constructions(self, cls: ast.ClassDef) -> Iterator[tuple[ast.Call | None, Scope]]:
        """The calls in the file that run the constructor of `cls`, and where they stand; None for what may be another one."""
        heirs = {cls.name}
        for each in self.statements:
            if isinstance(each, ast.ClassDef) and _bases(each) & heirs and _constructor(each) is None:
                heirs.add(each.name)
        for node, scope in self._nodes():
            if isinstance(node, ast.Call):
                name = dotted(node.func)
                parent = isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
                inside = scope.cls is not None and _bases(scope.cls) & heirs and scope.cls is not cls
                if name in heirs:
                    yield node, scope
                elif (
                    parent and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
                ):
                    if inside and dotted(node.func.value.func) == "super":
                        yield node, scope
                elif parent and name in {f"{each}.__init__" for each in heirs}:
                    yield ast.Call(node.func, node.args[1:], node.keywords), scope
                elif any(dotted(each) in heirs for each in node.args) and name not in (
                    "isinstance",
                    "super",
                    "issubclass",
                ):
                    # `partial(Net, ...)` may call it with anything.
                    yield None, scope

    def _nodes(self) -> Iterator[tuple[ast.AST, Scope]]:
        for statement in self.statements:
            if not isinstance(statement, ast.ClassDef):
                function = statement if isinstance(statement, _FUNCTIONS) else None
                yield from ((each, Scope(None, function)) for each in ast.walk(statement))
                continue
            for part in statement.body:
                function = part if isinstance(part, _FUNCTIONS) else None
                yield from ((each, Scope(statement, function)) for each in ast.walk(part))

    def _of_attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> str | None:
        if isinstance(node.value, ast.Name) and node.value.id in ("math", "np", "numpy"):
            return "float" if node.attr in ("pi", "e", "tau", "inf") else None
        cls = self._class_of(node.value, scope, depth)
        return None if cls is None else self._of_field(cls, node.attr, depth)

    def _of_field(self, cls: ast.ClassDef, attr: str, depth: int) -> str | None:
        """The type of an attribute that the body of a class declares, or its constructor sets, or those of its bases do."""
        types: list[str | None] = []
        for part in cls.body:
            if isinstance(part, ast.AnnAssign) and dotted(part.target) == attr:
                declared = ast.unparse(part.annotation)
                own = None if part.value is None else self.of(part.value, _FILE, depth)
                fits = part.value is None or own == declared or (declared == "float" and own == "int")
                types.append(declared if declared in ("int", "float", "bool") and fits else None)
            elif isinstance(part, ast.Assign):
                types += [
                    self.of(value, _FILE, depth)
                    for target, value in assigned_pairs(part)
                    if dotted(target) == attr
                ]
        function = _constructor(cls)
        for each in ast.walk(function) if function is not None else ():
            if isinstance(each, (ast.Assign, ast.AnnAssign)):
                scope = Scope(cls, function)
                types += [
                    self.of(value, scope, depth)
                    for target, value in assigned_pairs(each)
                    if dotted(target) == f"self.{attr}"
                ]
        if not types:
            bases = [self.classes[each] for each in sorted(_bases(cls)) if each in self.classes]
            return (
                self._of_field(bases[0], attr, depth + 1) if len(bases) == 1 and depth <= _DEEPEST else None
            )
        # What sets it from outside, or later on.
        for node, place in self._nodes():
            if (
                isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Attribute)
                and node.target.attr == attr
            ):
                types.append(None)
            if isinstance(node, ast.Assign) and place.function is not function:
                for target, value in assigned_pairs(node):
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == attr
                        and not _of_others(target, place, cls)
                    ):
                        types.append(self.of(value, place, depth))
        return joined(types)

    def _class_of(self, node: ast.expr, scope: Scope, depth: int) -> ast.ClassDef | None:
        """The class of the file that the object `node` certainly is of."""
        if depth > _DEEPEST:
            return None
        depth += 1
        if isinstance(node, ast.Call):
            return self.classes.get(dotted(node.func) or "")
        if isinstance(node, ast.Attribute) and dotted(node.value) == "self" and scope.cls is not None:
            function = _constructor(scope.cls)
            values = [] if function is None else _assigned(function, f"self.{node.attr}")
            return self._class_of(values[0], Scope(scope.cls, function), depth) if len(values) == 1 else None
        if not isinstance(node, ast.Name):
            return self.classes.get(node.id) if isinstance(node, ast.Name) else None
        function = scope.function
        if node.id == "self" and scope.cls is not None:
            return scope.cls
        if function is None or node.id in self.classes:
            return self.classes.get(node.id)
        values = _assigned(function, node.id)
        parameter = next((each for each in arguments(function.args) if each.arg == node.id), None)
        if len(values) != len(_stores(function, node.id)):
            return None
        found = [self._class_of(each, scope, depth) for each in values]
        if parameter is not None:
            declared = "" if parameter.annotation is None else ast.unparse(parameter.annotation).strip("\"'")
            declared = declared.removesuffix(" | None").removeprefix("Optional[").removesuffix("]")
            if declared in self.classes:
                return self.classes[declared]
            if function.name == "__init__" and scope.cls is not None:
                for call, place in self._constructions(scope.cls):
                    value = None if call is None else given_to(call, function, node.id)
                    found.append(None if value is None else self._class_of(value, place, depth))
        return found[0] if found and all(each is found[0] for each in found) else None


NOTHING = "nothing"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


def joined(types: Iterable[str | None]) -> str | None:
    """The one type that all of `types` are, "number" where some are ints and some floats, None for all else."""
    found = set(types) - {NOTHING}
    if len(found) == 1:
        return found.pop()
    return "number" if found and found <= _NUMBERS else None


def given_to(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What `call` of a method gives its parameter `name`; what no number can be where it hands on `*args` or `**kwargs`."""
    spread: ast.expr | None = next((each for each in call.args if isinstance(each, ast.Starred)), None)
    spread = spread or next((each.value for each in call.keywords if each.arg is None), None)
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)][1:]
    given = dict(zip(places, call.args, strict=False)) | {
        each.arg: each.value for each in call.keywords if each.arg
    }
    return spread if spread is not None and not isinstance(given.get(name), ast.Constant) else given.get(name)


def _asserted(function: Function, name: str) -> str | None:
    """The type that the function asserts its parameter to be of: `assert isinstance(start, int)`."""
    for each in function.body:
        if isinstance(each, ast.Assert):
            for told in ("int", "float"):
                if ast.unparse(each.test) == f"isinstance({name}, {told})":
                    return told
    return None


def _stores(root: ast.AST, name: str) -> list[ast.AST]:
    """Where `root` binds `name`."""
    return [
        each
        for each in ast.walk(root)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]


def _assigned(function: Function, path: str) -> list[ast.expr]:
    """What assignments of the function give the name or attribute `path`."""
    return [
        value
        for each in ast.walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target, value in assigned_pairs(each)
        if dotted(target) == path
    ]


def _tests(function: Function) -> Iterator[ast.expr]:
    return (each.test for each in ast.walk(function) if isinstance(each, (ast.If, ast.IfExp)))


def _bases(cls: ast.ClassDef) -> set[str]:
    return {name for each in cls.bases if (name := dotted(each)) is not None}


def _constructor(cls: ast.ClassDef) -> Function | None:
    return next((each for each in cls.body if isinstance(each, _FUNCTIONS) and each.name == "__init__"), None)


def _of_others(target: ast.Attribute, place: Scope, cls: ast.ClassDef) -> bool:
    """Whether `target` is an attribute of an object of another class."""
    return (
        dotted(target.value) == "self"
        and place.cls is not None
        and place.cls is not cls
        and cls.name not in _bases(place.cls)
    )
