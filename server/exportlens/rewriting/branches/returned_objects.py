"""Returns of an object that was given, beside returns that make one of its class: it is made of its parts, too.

    if far(s, z):                          if far(s, z):
        return s                  ->           return State(s.mean, s.n)
    return State(s.mean + z, s.n + 1)      return State(s.mean + z, s.n + 1)

torch.cond gives the parts, and the object is made behind it. That it is another object shows where something sets its parts,
or asks which object it is: no code of the file may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import ClassValue, Instance, options
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import walk_own
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.made_objects import called_class
from exportlens.rewriting.state.plain_records import Record, record_of
from exportlens.source.walking import walk


def returned_by_parts(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where all returns from `node` on make an object of one plain class, and the branch; None where they do already, or it
    is not certain that the others give one of it."""
    if "returns" not in exits([node]):
        return None
    block, index = source.block_of(node)
    returns = [each for each in walk_own(block[index:]) if isinstance(each, ast.Return)]
    made = [each.value for each in returns if isinstance(each.value, ast.Call)]
    named = [each.value for each in returns if isinstance(each.value, ast.Name)]
    if not made or not named or len(made) + len(named) != len(returns):
        return None
    records = [record_of(each, kinds) for each in made]
    first = records[0]
    if first is None or first.kind != "object" or set(first.parameters or ()) != set(first.parts):
        return None
    if any(each is None or not first.is_like(each) for each in records):
        return None
    if not all(_is_one(each, made[0], kinds) for each in named) or _shows_which(source, kinds, first):
        return None
    swaps = [source.swap(each, _text(each.id, made[0], first, kinds)) for each in named]
    changed = Source(replaced(source.text, swaps))
    return changed, changed.branch_at(source.start(node))


def _is_one(node: ast.Name, call: ast.Call, kinds: Kinds) -> bool:
    """Whether `node` certainly is an object of the class that `call` makes one of."""
    made, value = called_class(kinds, call.func), kinds.of(node).value
    found = [] if value is None else list(options(value))
    return (
        made is not None
        and bool(found)
        and all(
            isinstance(each, Instance) and isinstance(each.cls, ClassValue) and each.cls.name == made.name
            for each in found
        )
    )


def _shows_which(source: Source, kinds: Kinds, record: Record) -> bool:
    """Whether code of the file may set a part of such an object, or ask which object it is."""
    fields = {str(each) for each in record.parts}
    nodes = list(_nodes(source, kinds))
    begun = {
        id(one)
        for each in nodes
        if isinstance(each, ast.FunctionDef) and each.name == "__init__"
        for one in walk(each)
    }
    for each in nodes:
        if isinstance(each, ast.Attribute):
            written = each.attr in fields and not isinstance(each.ctx, ast.Load) and id(each) not in begun
            if written or each.attr == "__dict__":
                return True
        elif isinstance(each, ast.Name):
            if each.id in ("setattr", "delattr", "vars", "id"):
                return True
        elif isinstance(each, ast.Compare) and _asks_which(each):
            return True
    return False


def _asks_which(node: ast.Compare) -> bool:
    """Whether `node` is `a is b`, of what is no constant."""
    constant = any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))
    return not constant and any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)


def _nodes(source: Source, kinds: Kinds) -> Iterator[ast.AST]:
    """All code of the file: `source` may be one class or function of it."""
    yield from walk(source.tree)
    own = {getattr(each, "name", None) for each in source.tree.body} - {None}
    for chunk in kinds.around:
        for statement in chunk.body:
            if getattr(statement, "name", None) not in own:
                yield from walk(statement)


def _text(name: str, call: ast.Call, record: Record, kinds: Kinds) -> str:
    """What makes an object of the parts of `name`, in the form of `call`."""
    made = called_class(kinds, call.func)
    assert made is not None
    parts = {parameter: attr for attr, parameter in (record.parameters or {}).items()}
    given = [f"{name}.{parts[parameter]}" for parameter in made.parameters()[: len(call.args)]]
    given += [f"{each.arg}={name}.{parts[each.arg]}" for each in call.keywords if each.arg]
    return f"{record.maker}({', '.join(given)})"
