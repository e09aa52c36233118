"""What a function gives back, under the names that the caller has for it where the function is written out there: lists that it
fills, and names that it binds to constants.

    kept, n = self.screen(x)       ->       kept, n = [], 0          not       kept_2, n_2 = [], 0
                                            ...                                ...
                                                                               kept, n = kept_2, n_2

What is done with a list is not followed through another name, and neither is what asks which constant it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import appended_to, bound, reads
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def bound_at_once(
    statement: ast.Assign, body: Sequence[ast.stmt], parameters: Iterable[str], given: Iterable[str]
) -> dict[str, str]:
    """The names that `statement` binds, by those of `body`, the function that it calls; `given` are the texts of what it gives for
    the `parameters`. Empty where the function returns anything but names of its own, or none that it appends to or binds to a constant, and where what has
    one of the names before is read there."""
    last = body[-1]
    if len(statement.targets) != 1 or not isinstance(last, ast.Return) or exits(body[:-1]) != {"falls"}:
        return {}
    pairs = list(zip(_parts(last.value), _parts(statement.targets[0]), strict=False))
    same = {
        value.id: target.id
        for value, target in pairs
        if isinstance(value, ast.Name) and isinstance(target, ast.Name)
    }
    if (
        not len(same)
        == len(set(same.values()))
        == len(_parts(last.value))
        == len(_parts(statement.targets[0]))
    ):
        return {}
    filled = {appended_to(each) for one in body for each in walk(one) if isinstance(each, ast.stmt)}
    own = set(bound(body)).difference(parameters)
    filled |= {name for one in body for each in walk(one) for name in _constants(each)}
    if not own >= set(same) or filled.isdisjoint(same):
        return {}
    free = reads(body) - set(bound(body)) - set(parameters)
    handed = {name for text in given for name in reads(parse_python(text))}
    return {} if (free | handed) & set(same.values()) else same


def _constants(node: ast.AST) -> list[str]:
    """The names that `node` binds to a constant."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
        return []
    return [each.id for each in node.targets if isinstance(each, ast.Name)]


def _parts(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return node.elts
    return [] if node is None else [node]
