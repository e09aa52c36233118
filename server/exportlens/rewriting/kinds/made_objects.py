"""What calls of classes give: tuples with names are the tensors in them, other objects are nothing that a branch can give."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exportlens.inference.values import ClassValue, Instance, Sequence
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kind import LOCAL, Kind, numbers, union

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds

# Classes whose objects torch.cond does not give, or gives as they were before.
_OBJECTS = frozenset(
    {"types.SimpleNamespace", "collections.deque", "collections.Counter", "collections.defaultdict"}
)
# What gives another object of the class of its first argument.
_ANOTHER = frozenset({"dataclasses.replace", "copy.copy", "copy.deepcopy", "copy.replace"})
_NAMED_TUPLES = frozenset({"typing.NamedTuple", "NamedTuple"})
# Bases of which the objects are tensors, or other than what the class itself says.
_UNSURE = ("Tensor", "Function", "Parameter", "dict", "Dict", "list", "tuple")


@dataclass(frozen=True)
class Made:
    """A class that a call names: its name, the class where it is written in a file that is known, and its fields and their
    defaults where it makes named tuples."""

    name: str
    node: ast.ClassDef | None = None
    fields: tuple[str, ...] | None = None
    defaults: tuple[ast.expr | None, ...] = ()

    def parameters(self) -> tuple[str, ...]:
        """The names of what its constructor is given, as far as the class itself says them."""
        body = [] if self.node is None else self.node.body
        for each in body:
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                return tuple(one.arg for one in [*each.args.posonlyargs, *each.args.args][1:])
        rows = (each.target for each in body if isinstance(each, ast.AnnAssign))
        return tuple(each.id for each in rows if isinstance(each, ast.Name))


def of_class(kinds: Kinds, node: ast.Call) -> Kind | None:
    """The kind of what `node` makes; None where it does not call a class that is known."""
    name = kinds.qualified(node.func)
    if name in _ANOTHER and node.args:
        kind = kinds.of(node.args[0])
        copied = kind.what == "object" or not (name or "").startswith("copy.") or name == "copy.replace"
        # What may be a tensor, is none where its fields are replaced.
        known = kind.type.removeprefix("a ") if kind.type.startswith("a ") else "copy with other fields"
        return _object(known) if copied else None
    if name == "collections.OrderedDict":
        given = [kinds.of(each) for each in (*node.args, *(each.value for each in node.keywords))]
        return Kind("container", roots=union(given))
    if isinstance(node.func, ast.Attribute) and node.func.attr == "_replace":
        return _with_others(kinds, kinds.of(node.func.value), node)
    made = called_class(kinds, node.func)
    if made is None:
        return None
    if made.fields is None:
        return _object(made.name)
    items = arguments_of(made, node)
    if items is None:
        return None
    parts = tuple(kinds.of(each) for each in items)
    value = Sequence("tuple", None, fields=made.fields)
    return Kind("container", roots=union(list(parts)), items=parts, value=value)


def _with_others(kinds: Kinds, owner: Kind, node: ast.Call) -> Kind | None:
    """The kind of a copy of the named tuple `owner` with other fields."""
    value = owner.value
    if not isinstance(value, Sequence) or owner.items is None or len(value.fields) != len(owner.items):
        return None
    given = {each.arg: kinds.of(each.value) for each in node.keywords}
    parts = tuple(given.get(name, kind) for name, kind in zip(value.fields, owner.items, strict=True))
    return Kind(
        "container", roots=union(list(parts)), items=parts, value=Sequence("tuple", None, fields=value.fields)
    )


def called_class(kinds: Kinds, function: ast.expr) -> Made | None:
    """The class that `function` names, where it is written in the file or another, or makes no tensors for certain."""
    name, written = kinds.qualified(function), dotted(function)
    if name in _OBJECTS or (name or "").startswith("torch.distributions."):
        last = (name or "").rpartition(".")[2]
        return Made(last) if last[:1].isupper() or name in _OBJECTS else None
    if written is None or written.partition(".")[0] in kinds.names or written.startswith("self."):
        return None
    last = written.rpartition(".")[2]
    if name is None and "." in written:
        return None
    if name is not None and name.startswith("torch."):
        return None
    chunks = [each.body for each in kinds.around]
    if name is not None:
        chunks = [chunk.body for chunk, _ in kinds.elsewhere(frozenset({last}))]
    found = [made for body in chunks for each in body if (made := _made_by(each, last, kinds)) is not None]
    return found[0] if len(found) == 1 else None


def _made_by(node: ast.stmt, name: str, kinds: Kinds) -> Made | None:
    """The class that `node` defines as `name`."""
    if isinstance(node, ast.ClassDef) and node.name == name:
        bases = [ast.unparse(each) for each in node.bases]
        if any(each.endswith(_UNSURE) for each in bases) or node.keywords:
            return None
        if any(each.rpartition(".")[2] == "NamedTuple" for each in bases):
            rows = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            fields = tuple(each.target.id for each in rows if isinstance(each.target, ast.Name))
            return Made(name, node, fields, tuple(each.value for each in rows))
        return Made(name, node)
    if not (isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]):
        return None
    call = node.value
    if not isinstance(call, ast.Call) or (dotted(call.func) or "").rpartition(".")[2] != "namedtuple":
        return None
    given = call.args[1] if len(call.args) == 2 and not call.keywords else None
    names: list[object] = []
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        names = [*given.value.replace(",", " ").split()]
    elif isinstance(given, (ast.Tuple, ast.List)):
        names = [each.value if isinstance(each, ast.Constant) else None for each in given.elts]
    fields = tuple(each for each in names if isinstance(each, str))
    return Made(name, None, fields, (None,) * len(fields)) if fields and len(fields) == len(names) else None


def arguments_of(made: Made, node: ast.Call) -> list[ast.expr] | None:
    """What `node` gives for each field of a named tuple, in their order; None where that is not written."""
    assert made.fields is not None
    if any(isinstance(each, ast.Starred) for each in node.args) or any(
        not each.arg for each in node.keywords
    ):
        return None
    given = dict(zip(made.fields, node.args, strict=False)) | {
        each.arg or "": each.value for each in node.keywords
    }
    texts = [given.get(name) or default for name, default in zip(made.fields, made.defaults, strict=True)]
    known = [each for each in texts if each is not None]
    return known if len(known) == len(made.fields) else None


def makes_named_tuple(node: ast.Call, kind: Kind, kinds: Kinds) -> bool:
    """Whether `node` calls the class of the named tuple that it gives, with all that is in it."""
    made = called_class(kinds, node.func)
    return made is not None and made.fields is not None and kind.items is not None


def _object(name: str) -> Kind:
    return Kind("object", roots=frozenset({f"{LOCAL}{next(numbers)}"}), type=f"a {name}" if name else "")


def method_of(kinds: Kinds, owner: Kind, attr: str) -> ast.FunctionDef | None:
    """The method `attr` of the plain object `owner`, of a class that is written in this file."""
    value = owner.value
    name = owner.type.removeprefix("a ")
    if isinstance(value, Instance) and isinstance(value.cls, ClassValue):
        name = value.cls.name
    for chunk in kinds.around:
        for each in chunk.body:
            if isinstance(each, ast.ClassDef) and each.name == name and not each.bases:
                for one in each.body:
                    if isinstance(one, ast.FunctionDef) and one.name == attr and not one.decorator_list:
                        return one
    return None


def without_value(kind: Kind) -> Kind:
    """`kind`, an object that a function made and gives to its caller."""
    return replace(kind, roots=None, value=None)
