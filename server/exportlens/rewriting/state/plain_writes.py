"""Attributes that are written by their names: `setattr(self, "state", value)` as `self.state = value`, where other rewrites see it."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.classes import class_attribute
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Instance, Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source

# The dicts in which an object and a Module keep what they hold.
_DICTS = frozenset({"__dict__", "_buffers"})


@dataclass(frozen=True, slots=True)
class NamedWrite:
    """A statement that sets an attribute of `owner` to `value` by its name, an expression; `how` is "setattr", or the dict that is
    written to."""

    owner: ast.expr
    name: ast.expr
    value: ast.expr
    how: str

    @property
    def attr(self) -> str | None:
        """The name, where it is written out."""
        return _plain_name(self.name)


def named_write(statement: ast.AST | None) -> NamedWrite | None:
    """What `statement` sets by a name: `setattr(owner, name, value)`, `object.__setattr__(...)`, `owner.__dict__[name] = value` and the like."""
    if isinstance(statement, ast.Expr):
        return _by_call(statement.value)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        found = _item_of_dict(statement.targets[0])
        return None if found is None else NamedWrite(found[0], found[1], statement.value, found[2])
    return None


def named_read(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The object and the name, where `node` reads an attribute by its name: `getattr(owner, name)`, `owner.__dict__[name]`."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) in (2, 3)
        and not node.keywords
    ):
        return node.args[0], node.args[1]
    found = _item_of_dict(node)
    if found is None or not isinstance(getattr(node, "ctx", None), ast.Load):
        return None
    return found[:2]


def written_plainly(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes each such statement of the class as an assignment, and reads the attribute by itself."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        if place.attr.startswith("__"):
            raise Refused("what is written to is not named where it is written")
        swaps: list[Replacement] = []
        for each in ast.walk(source.tree):
            found = named_write(each)
            if found is None or found.attr != place.attr or isinstance(found.value, ast.Starred):
                continue
            owner = dotted(found.owner)
            if owner is None:
                continue
            _refuse_other_homes(place, found)
            text = source.of(found.value, _reads_plainly(source, found.value, place.attr))
            swaps.append(source.swap(each, f"{owner}.{place.attr} = {text}"))
        if not swaps:
            raise Refused("what is written to is not named where it is written")
        written = [(each.start, each.end) for each in swaps]
        for read in _reads_plainly(source, source.tree, place.attr):
            if not any(begin <= read.start < end for begin, end in written):
                swaps.append(read)
        return draft.replace("Write it as an assignment", swaps, Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _reads_plainly(source: Source, node: ast.AST, attr: str) -> list[Replacement]:
    """`self.__dict__["state"]` below `node` as `self.state`."""
    found = []
    for each in ast.walk(node):
        read = named_read(each)
        if (
            read is None
            or _plain_name(read[1]) != attr
            or (isinstance(each, ast.Call) and len(each.args) > 2)
        ):
            continue
        owner = dotted(read[0])
        if owner is not None:
            found.append(source.swap(each, f"{owner}.{attr}"))
    return found


def _refuse_other_homes(place: AttributeWrite, found: NamedWrite) -> None:
    """Raise Refused where an assignment would put the value elsewhere: into a buffer that the dict of the object hides, or by a method
    or a property of the class."""
    buffer = isinstance(place.old, Tensor) and place.old.origin == "buffer"
    if found.how != "setattr" and buffer is not (found.how == "_buffers"):
        raise Refused(
            f"`{ast.unparse(found.owner)}.{place.attr}` is kept in another place than it is written to"
        )
    if isinstance(place.owner, Instance) and found.how != "setattr":
        for name in (place.attr, "__setattr__"):
            if class_attribute(place.owner.cls, name)[0] is not None:
                raise Refused(f"the class has a `{name}` of its own, which an assignment would run")


def _by_call(node: ast.expr) -> NamedWrite | None:
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    func = node.func
    if isinstance(func, ast.Name) and func.id == "setattr" and len(node.args) == 3:
        return NamedWrite(node.args[0], node.args[1], node.args[2], "setattr")
    if not (isinstance(func, ast.Attribute) and func.attr == "__setattr__"):
        return None
    if len(node.args) == 3:
        return NamedWrite(node.args[0], node.args[1], node.args[2], "__setattr__")
    if len(node.args) == 2 and isinstance(func.value, (ast.Name, ast.Attribute)):
        return NamedWrite(func.value, node.args[0], node.args[1], "setattr")
    return None


def _item_of_dict(node: ast.AST) -> tuple[ast.expr, ast.expr, str] | None:
    """The object, the name and the dict of `owner.__dict__[name]` and `owner._buffers[name]`."""
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
        return None
    holder = node.value
    if isinstance(holder, ast.Attribute) and holder.attr in _DICTS:
        return holder.value, node.slice, holder.attr
    return None


def _plain_name(name: ast.expr) -> str | None:
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    plain = name.value.isidentifier() and not keyword.iskeyword(name.value)
    return name.value if plain else None


def reads_by_name(root: ast.AST) -> Iterator[ast.expr]:
    """What reads an attribute by its name below `root`."""
    for each in ast.walk(root):
        if isinstance(each, ast.expr) and named_read(each) is not None:
            yield each
