"""State whose attribute is written by its name, as `setattr(self, name, value)` in a loop over names does."""

from __future__ import annotations

import ast

from exportlens.inference.places import AttributeWrite
from exportlens.rewriting.code.names import is_none
from exportlens.rewriting.state.plain_writes import NamedWrite, named_write, reads_by_name

from exportlens_rules.mutation.state_reads import certainly_written, converts, parents, reads
from exportlens_rules.reading import ancestors


def named_statement(place: AttributeWrite) -> tuple[ast.stmt, NamedWrite] | None:
    """The statement, where it writes the attribute by its name, and what it writes."""
    if not isinstance(place.node, (ast.Call, ast.Subscript)):
        return None
    statement = next((each for each in ancestors(place) if isinstance(each, ast.stmt)), None)
    found = named_write(statement)
    return None if statement is None or found is None else (statement, found)


def is_carried_by_name(place: AttributeWrite, statement: ast.stmt, write: NamedWrite) -> bool:
    """Whether what is written is computed from what the attribute held, or is written once the function has read that for this call."""
    function = place.site.function
    if function is None or place.elsewhere:
        return False
    held = held_by_name(function.node, place, write)
    same, computed = list(held), list[str]()
    around = parents(function.node)
    used = carried = written = False
    arms = _Arms()
    for each in _in_order(function.node):
        same, computed = arms.at(each, same, computed)
        if each is statement:
            if converts(write.value, same):
                return False
            carried = _reads(write.value, same, computed)
            written = True
            # From here on only names keep what was there.
            same = [one for one in same if one not in held]
            continue
        if not isinstance(each, ast.Assign):
            used = used or any(_reads(part, same, computed) for part in _own_parts(each))
            continue
        names = [
            part.id for target in each.targets for part in ast.walk(target) if isinstance(part, ast.Name)
        ]
        kept = converts(each.value, same)
        made = not kept and _reads(each.value, same, computed)
        used = used or made
        dumps = [ast.dump(ast.Name(name, ast.Load())) for name in names]
        same = [one for one in same if one not in dumps] + (dumps if kept else [])
        computed = [one for one in computed if one not in dumps] + (dumps if made else [])
    if carried or not written:
        return carried
    asked = any(
        isinstance(each, (ast.If, ast.While)) and _mentions(each.test, [*same, *computed])
        for each in ancestors(place)
    )
    return (
        used
        and not asked
        and not any(certainly_written(function.node, statement, one, around) for one in held)
    )


class _Arms:
    """The two ways on from `if mean is None:`, of which a call takes one or the other by what the last call left: what the first
    binds says nothing of the second."""

    def __init__(self) -> None:
        self.second: dict[ast.stmt, tuple[ast.If, list[str], list[str]]] = {}
        self.ends: list[tuple[ast.If, list[str], list[str]]] = []

    def at(self, node: ast.stmt, same: list[str], computed: list[str]) -> tuple[list[str], list[str]]:
        """What keeps the state, and what is computed from it, just before `node`, the next statement of the text."""
        while self.ends and node.lineno > (self.ends[-1][0].end_lineno or 0):
            _, other, more = self.ends.pop()
            same = [one for one in same if one in other]
            computed = [*computed, *(one for one in more if one not in computed)]
        if node in self.second:
            branch, *before = self.second.pop(node)
            self.ends.append((branch, same, computed))
            same, computed = before
        if isinstance(node, ast.If) and node.orelse and _asks_for_none(node.test, same):
            self.second[node.orelse[0]] = (node, same, computed)
        return same, computed


def _asks_for_none(test: ast.expr, same: list[str]) -> bool:
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        and is_none(test.comparators[0])
        and ast.dump(test.left) in same
    )


def sets_itself_by_name(place: AttributeWrite, statement: ast.stmt, write: NamedWrite) -> bool:
    """Whether the statement sets the attribute to what it computes of what the last call left there: `setattr(self, "k", self.k + 1)`."""
    function = place.site.function
    if function is None or place.elsewhere:
        return False
    held, around = held_by_name(function.node, place, write), parents(function.node)
    return reads(write.value, held) and not any(
        certainly_written(function.node, statement, each, around) for each in held
    )


def held_by_name(function: ast.AST, place: AttributeWrite, write: NamedWrite) -> list[str]:
    """How the function reads what the attribute holds, dumped: by itself, by the same name, and by names that came out the same."""
    owner, name = ast.dump(write.owner), ast.dump(write.name)
    found = [ast.dump(ast.Attribute(write.owner, place.attr, ast.Load()))]
    readers = {id(node) for _, node in place.readers}
    for each in reads_by_name(function):
        if id(each) in readers:
            found.append(ast.dump(each))
            continue
        parts = each.args[:2] if isinstance(each, ast.Call) else [_owner(each), getattr(each, "slice", each)]
        if [ast.dump(one) for one in parts if one is not None] == [owner, name]:
            found.append(ast.dump(each))
    return found


def _owner(node: ast.expr) -> ast.expr | None:
    holder = node.value if isinstance(node, ast.Subscript) else None
    return holder.value if isinstance(holder, ast.Attribute) else None


def _in_order(function: ast.AST) -> list[ast.stmt]:
    found = [each for each in ast.walk(function) if isinstance(each, ast.stmt) and each is not function]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _own_parts(statement: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement, not those of the statements that it holds."""
    return [
        each
        for each in ast.iter_child_nodes(statement)
        if not isinstance(each, (ast.stmt, ast.excepthandler))
    ]


def _reads(node: ast.AST, same: list[str], computed: list[str]) -> bool:
    return reads(node, [*same, *computed])


def _mentions(node: ast.AST, dumps: list[str]) -> bool:
    return any(ast.dump(each) in dumps for each in ast.walk(node) if isinstance(each, ast.expr))
