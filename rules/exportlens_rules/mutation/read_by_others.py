"""State that one function of a call reads and another one, such as the setter of a property, writes for the next call."""

from __future__ import annotations

import ast

from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.state.plain_writes import NamedWrite

from exportlens_rules.mutation.state_reads import FACTS, converts, loaded, parents, reads
from exportlens_rules.reading import ancestors


def is_read_by_others(place: AttributeWrite) -> bool:
    """Whether a function has read what the last call left, and another one binds what it is given, in any case, for the next call."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    if statement is None or function is None or place.elsewhere or place.began is None:
        return False
    if not place.site.certain or place.site.conditions or not isinstance(place.node, ast.Attribute):
        return False
    if not _begins_as_tensor(place):
        return False
    if statement not in getattr(function.node, "body", ()):
        return False
    path = ast.dump(loaded(place.node))
    given = [ast.dump(ast.Name(each.arg, ast.Load())) for each in function.node.args.args[1:]]
    if not reads(statement.value, given) or converts(statement.value, [path]):
        return False
    return any(reader is not function.node and is_read(reader, node, path) for reader, node in place.readers)


def is_read_by_others_by_name(place: AttributeWrite, statement: ast.stmt, write: NamedWrite) -> bool:
    """Whether a function has read what the last call left, and `statement` of another one sets it by its name, in any case or in each round
    of a loop, for the next call."""
    function = place.site.function
    if function is None or place.elsewhere or not place.site.certain or place.site.conditions:
        return False
    if not _begins_as_tensor(place):
        return False
    around = parents(function.node)
    outer = around[statement]
    while isinstance(outer, ast.For):
        outer = around[outer]
    named = {each.id for each in ast.walk(write.name) if isinstance(each, ast.Name)} | {"self"}
    given = {each.id for each in ast.walk(write.value) if isinstance(each, ast.Name)} - named
    if outer is not function.node or not given:
        return False
    return any(
        reader is not function.node and is_read(reader, node, ast.dump(node))
        for reader, node in place.readers
    )


def _begins_as_tensor(place: AttributeWrite) -> bool:
    return place.began is not None and all(
        isinstance(each, Tensor) and each.origin in ("attribute", "constant", "buffer")
        for each in options(place.began)
    )


def is_read(reader: ast.AST, node: ast.AST, path: str) -> bool:
    """Whether the values that `node` reads are used, not only what they look like or whether they are there."""
    around = parents(reader)
    use = around.get(node)
    if use is None or (isinstance(use, ast.Attribute) and use.attr in FACTS):
        return False
    if isinstance(use, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in use.ops):
        return False
    statement = use
    while not isinstance(statement, ast.stmt):
        statement = around[statement]
    if not isinstance(statement, ast.Assign) or not converts(statement.value, [path]):
        return True
    names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Load)
        and each.id in names
        and is_read(reader, each, ast.dump(each))
        for each in ast.walk(reader)
    )
