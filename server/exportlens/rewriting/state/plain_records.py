"""What a function makes of parts that are written out: dicts, lists, and objects of plain classes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from exportlens.rewriting.code.names import arguments
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.made_objects import called_class

Key = str | int


@dataclass(frozen=True)
class Record:
    """A dict, a list or an object, `kind`, and what its parts are made of: an expression, or the text of a constant."""

    kind: str
    parts: Mapping[Key, ast.expr | str]
    # The class of an object, and the parameter of its constructor for each part that it takes.
    maker: str = ""
    parameters: Mapping[Key, str] | None = None

    def is_like(self, other: Record) -> bool:
        """Whether `other` has the same parts, and is made in the same way."""
        same = self.kind == other.kind and self.maker == other.maker
        return same and set(self.parts) == set(other.parts)

    @property
    def grows(self) -> bool:
        """Whether an assignment may make a part that is not there."""
        return self.kind != "list"

    @property
    def is_expression(self) -> bool:
        """Whether it is made again by one expression, whatever parts it has."""
        return self.kind != "object"

    def key_of(self, node: ast.AST, owner: ast.expr) -> Key | None:
        """Which part of `owner` the node above it is; None where it is none."""
        if self.kind == "object":
            plain = isinstance(node, ast.Attribute) and node.value is owner
            # What no constructor sets may be a method.
            known = plain and (node.attr in self.parts or isinstance(node.ctx, ast.Store))  # type: ignore[attr-defined]
            return node.attr if known else None  # type: ignore[attr-defined]
        if not isinstance(node, ast.Subscript) or node.value is not owner:
            return None
        key = node.slice
        if not isinstance(key, ast.Constant) or type(key.value) not in (str, int):
            return None
        fits = self.kind == "dict" or (isinstance(key.value, int) and key.value < len(self.parts))
        return key.value if fits else None  # type: ignore[return-value]

    def access(self, name: str, key: Key) -> ast.expr:
        """The part `key` of what `name` holds, as an expression."""
        owner = ast.Name(name, ast.Load())
        if self.kind == "object":
            return ast.Attribute(owner, str(key), ast.Load())
        return ast.Subscript(owner, ast.Constant(key), ast.Load())

    def made(self, names: Mapping[Key, str]) -> list[str]:
        """The expression that makes it of `names`, and the statements that set what is left, with `{}` for its name."""
        if self.kind == "list":
            return ["[" + ", ".join(names.values()) + "]"]
        if self.kind == "dict":
            return ["{" + ", ".join(f"{quoted(key)}: {name}" for key, name in names.items()) + "}"]
        takes = self.parameters or {}
        given = ", ".join(f"{takes[key]}={name}" for key, name in names.items() if key in takes)
        return [
            f"{self.maker}({given})",
            *(f"{{}}.{key} = {name}" for key, name in names.items() if key not in takes),
        ]


def quoted(key: Key) -> str:
    """`key` as it is written in most code."""
    return (
        f'"{key}"'
        if isinstance(key, str) and '"' not in key and "\\" not in key and key.isprintable()
        else repr(key)
    )


def record_of(node: ast.expr, kinds: Kinds) -> Record | None:
    """What `node` makes; None where its parts are not written out."""
    if isinstance(node, ast.Dict):
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        if any(type(each) not in (str, int) for each in keys) or len(set(keys)) < len(keys):
            return None
        return Record("dict", dict(zip(keys, node.values, strict=True)))  # type: ignore[arg-type]
    if isinstance(node, ast.List):
        starred = any(isinstance(each, ast.Starred) for each in node.elts)
        return None if starred or not node.elts else Record("list", dict(enumerate(node.elts)))
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        if any(each.arg is None for each in node.keywords) or "dict" in kinds.names:
            return None
        return Record("dict", {each.arg or "": each.value for each in node.keywords})
    return _object_of(node, kinds)


def _object_of(node: ast.Call, kinds: Kinds) -> Record | None:
    made = called_class(kinds, node.func)
    if made is None or made.node is None or made.fields is not None:
        return None
    given = _given(node, made.parameters())
    if given is None:
        return None
    begin = _constructor(made.node)
    pairs = _of_dataclass(made.node) if begin is None else _of_constructor(made.node, begin)
    if pairs is None:
        return None
    parts: dict[Key, ast.expr | str] = {}
    parameters: dict[Key, str] = {}
    for attr, (parameter, default) in pairs.items():
        value: ast.expr | str | None = given.get(parameter) if parameter else None
        if value is None:
            value = default
        if value is None:
            return None
        parts[attr] = value
        if parameter:
            parameters[attr] = parameter
    if set(given) - {parameter for parameter, _ in pairs.values()}:
        return None
    ordered = dict(sorted(parts.items(), key=lambda each: _place(node, each[1])))
    return Record("object", ordered, ast.unparse(node.func), parameters)


def _place(node: ast.Call, value: ast.expr | str) -> int:
    """Where a value stands among the arguments, so that they are computed in their order."""
    values = [*node.args, *(each.value for each in node.keywords)]
    return values.index(value) if isinstance(value, ast.expr) else len(values)


def _given(node: ast.Call, parameters: tuple[str, ...]) -> dict[str, ast.expr] | None:
    if any(isinstance(each, ast.Starred) for each in node.args) or any(
        not each.arg for each in node.keywords
    ):
        return None
    if len(node.args) > len(parameters):
        return None
    return dict(zip(parameters, node.args, strict=False)) | {
        each.arg or "": each.value for each in node.keywords
    }


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef | None:
    return next(
        (each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )


def _is_plain(cls: ast.ClassDef) -> bool:
    """Whether setting an attribute of an object does nothing else."""
    if cls.keywords or [ast.unparse(each) for each in cls.bases] not in ([], ["object"]):
        return False
    for each in cls.body:
        if isinstance(each, ast.FunctionDef):
            special = each.name in (
                "__setattr__",
                "__getattribute__",
                "__getattr__",
                "__new__",
                "__post_init__",
                "__del__",
            )
            if special or each.decorator_list:
                return False
        elif isinstance(each, ast.Assign) and not isinstance(each.value, ast.Constant):
            # `__slots__`, and what may be a descriptor.
            return False
    return True


def _of_dataclass(cls: ast.ClassDef) -> dict[str, tuple[str, str | None]] | None:
    """The parameter and the default of each field of a dataclass; None where it is no plain one."""
    names = [ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in cls.decorator_list]
    if [each.rpartition(".")[2] for each in names] != ["dataclass"] or not _is_plain(cls):
        return None
    if any(isinstance(each, ast.Call) and each.keywords for each in cls.decorator_list):
        return None
    pairs = {}
    for each in cls.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            if "ClassVar" in ast.unparse(each.annotation) or "InitVar" in ast.unparse(each.annotation):
                return None
            pairs[each.target.id] = (each.target.id, _constant(each.value))
    return pairs


def _of_constructor(cls: ast.ClassDef, begin: ast.FunctionDef) -> dict[str, tuple[str, str | None]] | None:
    """The parameter, "" for none, and the default of each attribute that a constructor sets; None where it does anything else."""
    if cls.decorator_list or not _is_plain(cls):
        return None
    listed = arguments(begin.args)
    if begin.args.vararg or begin.args.kwarg or begin.args.posonlyargs or not listed:
        return None
    plain = [*begin.args.args]
    pairs_of_defaults = zip(plain[::-1], begin.args.defaults[::-1], strict=False)
    defaults: dict[str, ast.expr | None] = {each.arg: value for each, value in pairs_of_defaults}
    defaults |= {
        each.arg: value for each, value in zip(begin.args.kwonlyargs, begin.args.kw_defaults, strict=True)
    }
    own, found = plain[0].arg, dict[str, tuple[str, str | None]]()
    for statement in begin.body:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        target = (
            statement.targets[0]
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1
            else None
        )
        target = statement.target if isinstance(statement, ast.AnnAssign) else target
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if not (isinstance(target, ast.Attribute) and ast.unparse(target.value) == own) or value is None:
            return None
        if target.attr in found:
            return None
        if isinstance(value, ast.Name) and value.id != own:
            found[target.attr] = (value.id, _constant(defaults.get(value.id)))
        elif (text := _constant(value)) is not None:
            found[target.attr] = ("", text)
        else:
            return None
    taken = [parameter for parameter, _ in found.values() if parameter]
    names = {each.arg for each in listed} - {own}
    return found if len(set(taken)) == len(taken) and set(taken) == names else None


def _constant(node: ast.expr | None) -> str | None:
    """The text of a constant, which is the same wherever it is written, or of a new and empty dict or list."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return ast.unparse(node)
    return ast.unparse(node) if isinstance(node, ast.Constant) else None
