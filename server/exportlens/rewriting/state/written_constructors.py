"""The constructor of a dataclass that counts, written out: what dataclasses are beside holders of values is no Module.

    @dataclass                              class Stats:
    class Stats:                                def __init__(self, mean=0.0):
        mean: float = 0.0          ->               self.mean = mean

Refused where anything in the file does more with an object than to use its attributes: to compare it, print it or copy it is what
dataclasses are for.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.state.places_of_objects import is_plain

_OF_DATACLASSES = frozenset({"asdict", "astuple", "fields", "replace", "is_dataclass", "make_dataclass"})
_MAKING_EMPTY = frozenset({"list", "dict", "set"})
_PLAIN_METHODS = frozenset({"__call__", "__repr__", "__str__"})


def constructor_written_out(draft: Draft, cls: ast.ClassDef) -> Fix | None:
    """The fix that makes a dataclass a plain class; None where `cls` is none. Raises Refused."""
    if len(cls.decorator_list) != 1 or not _is_dataclass(draft, cls.decorator_list[0]):
        return None
    source = draft.source
    refused = Refused(f"`{cls.name}` is a dataclass, and more than a holder of numbers: it has no buffers")
    if not is_plain(cls) or cls.keywords or not source.begins_line(cls):
        raise refused
    fields = [each for each in cls.body if isinstance(each, ast.AnnAssign)]
    if not fields or any(
        not isinstance(each, (ast.AnnAssign, ast.FunctionDef)) and not _is_text(each) for each in cls.body
    ):
        raise refused
    methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    if any(name.startswith("__") and name not in _PLAIN_METHODS for name in methods):
        raise refused
    _refuse_uses(draft, cls)
    parameters, lines = ["self"], []
    for each in fields:
        if not isinstance(each.target, ast.Name) or not source.begins_line(each):
            raise refused
        if any(word in source.of(each.annotation) for word in ("ClassVar", "InitVar", "KW_ONLY")):
            raise refused
        name = each.target.id
        default = "" if each.value is None else source.of(each.value)
        made = None
        if isinstance(each.value, ast.Call):
            made = _made_anew(draft, source, each.value)
            if made is None or _is_given(draft, cls, name, len(parameters) - 1):
                raise refused
        elif each.value is not None and not isinstance(each.value, (ast.Constant, ast.UnaryOp, ast.Name)):
            raise refused
        if made is None:
            text = f"{name}: {source.of(each.annotation)}"
            parameters.append(text if each.value is None else f"{text} = {default}")
        lines.append(f"self.{name} = {made or name}")
    first, last = fields[0], fields[-1]
    if cls.body[cls.body.index(first) : cls.body.index(last) + 1] != fields:
        raise refused
    indent = source.indent_of(first)
    inner = source.newline + indent + source.indent_unit()
    text = f"def __init__({', '.join(parameters)}):{inner}{inner.join(lines)}"
    head = source.text.index("class", source.end(cls.decorator_list[0]))
    return draft.replace(
        f"Write out the constructor of `{cls.name}`",
        [
            Replacement(source.start(cls), head, ""),
            Replacement(source.start(first), source.end(last), text),
        ],
        uses_torch=False,
    )


def _is_dataclass(draft: Draft, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return not node.args and not node.keywords and _is_dataclass(draft, node.func)
    return draft.qualified(node) == "dataclasses.dataclass"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _made_anew(draft: Draft, source: Source, value: ast.Call) -> str | None:
    """What `field(default_factory=...)` makes for each object."""
    if draft.qualified(value.func) != "dataclasses.field" or value.args or len(value.keywords) != 1:
        return None
    factory = value.keywords[0]
    if factory.arg != "default_factory":
        return None
    if isinstance(factory.value, ast.Lambda):
        return source.of(factory.value.body)
    return f"{source.of(factory.value)}()" if dotted(factory.value) in _MAKING_EMPTY else None


def _is_given(draft: Draft, cls: ast.ClassDef, name: str, place: int) -> bool:
    """Whether a call of the class may give the field `name`, the one behind `place` others."""
    return any(
        isinstance(each, ast.Call)
        and dotted(each.func) == cls.name
        and (len(each.args) > place or any(one.arg in (name, None) for one in each.keywords))
        for placed in draft.context.document.placed
        for statement in placed.chunk.body
        for each in ast.walk(statement)
    )


def _refuse_uses(draft: Draft, cls: ast.ClassDef) -> None:
    """Raise Refused where the file uses objects of the class as a whole."""
    refused = Refused(f"`{cls.name}` is a dataclass, and used as a whole: it has no buffers")
    chunks = [(draft.chunk, draft.source), *((each, Source(each.text)) for each in draft.others())]
    kept: set[str] = set()
    for _, source in chunks:
        for each in ast.walk(source.tree):
            if draft.qualified(each) in {f"dataclasses.{name}" for name in _OF_DATACLASSES}:
                raise refused
            if isinstance(each, ast.ClassDef) and cls.name in map(dotted, each.bases):
                raise refused
            if not (isinstance(each, ast.Name) and each.id == cls.name):
                continue
            call = source.parents.get(each)
            if isinstance(call, ast.arg) or (isinstance(call, ast.AnnAssign) and call.annotation is each):
                continue
            statement = source.enclosing_statement(each)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.AnnAssign):
                target = statement.target
            if not (
                isinstance(call, ast.Call)
                and call.func is each
                and isinstance(statement, (ast.Assign, ast.AnnAssign))
                and statement.value is call
                and isinstance(target, ast.Attribute)
            ):
                raise refused
            kept.add(target.attr)
    for _, source in chunks:
        for each in ast.walk(source.tree):
            if isinstance(each, ast.Attribute) and each.attr in kept and isinstance(each.ctx, ast.Load):
                around = source.parents.get(each)
                if not isinstance(around, ast.Attribute):
                    called = isinstance(around, ast.Call) and around.func is each
                    if not called:
                        raise refused
            elif isinstance(each, ast.Constant) and each.value in kept:
                raise refused
