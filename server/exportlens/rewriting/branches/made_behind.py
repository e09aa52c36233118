"""Objects that each way through a branch makes are made behind it, of what the arms chose:

if t:                                          if t:
    dist = Gaussian(mean, std)                     dist_mean = mean
else:                                              dist_std = std
    dist = Gaussian(mean * 2, std)     ->      else:
                                                   dist_mean = mean * 2
                                                   dist_std = std
                                               dist = Gaussian(dist_mean, dist_std)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.branches.outputs import Maker
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def made_behind(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text in which such objects are made behind `node`, and `node` of it; None where there are none."""
    if source.text.startswith("elif", source.start(node)) or not source.begins_line(node):
        return None
    ways = list(_ways(node))
    if exits([node]) != {"falls"} or not all(ways):
        return None
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    behind: list[str] = []
    for name in sorted(set(bound([node]))):
        statements = [_binding(source, way, name) for way in ways]
        made = [each for each in statements if each is not None]
        if len(made) != len(ways) or _is_used_otherwise(node, name, made):
            continue
        maker = Maker.of(source, [(each.value, kinds) for each in made])
        if maker is None:
            continue
        rows = [maker.arguments(each.value) for each in made]
        names = _names(name, maker, rows, taken)
        for statement, row in zip(made, rows, strict=True):
            line = source.newline + source.indent_of(statement)
            lines = [
                f"{text} = {source.of(value)}"
                for text, value in zip(names, row, strict=True)
                if text is not None
            ]
            swaps.append(source.swap(statement, line.join(lines) or "pass"))
        texts = [
            source.of(value) if text is None else text for text, value in zip(names, rows[0], strict=True)
        ]
        behind.append(f"{name} = {maker.text(texts)}")
    if not swaps:
        return None
    end = source.span([node])[1]
    line = source.newline + source.indent_of(node)
    swaps.append(Replacement(end, end, "".join(line + each for each in behind)))
    return read_again(replaced(source.text, swaps), source.start(node))


def _ways(node: ast.If) -> Iterator[list[ast.stmt]]:
    """The blocks of `if`, each `elif` and `else`; an empty one where there is no `else`."""
    yield node.body
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _ways(node.orelse[0])
    else:
        yield node.orelse


def _binding(source: Source, way: list[ast.stmt], name: str) -> ast.Assign | None:
    """The one statement of the block itself that binds `name`, and nothing else."""
    found = [each for each in way if name in bound(each)]
    if len(found) != 1 or not isinstance(found[0], ast.Assign) or not source.begins_line(found[0]):
        return None
    targets = found[0].targets
    return found[0] if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _is_used_otherwise(node: ast.If, name: str, made: list[ast.Assign]) -> bool:
    """Whether the branch, its test included, reads `name`, which is only there behind it now."""
    targets = {id(each.targets[0]) for each in made}
    return any(
        isinstance(each, ast.Name) and each.id == name and id(each) not in targets for each in walk(node)
    )


def _names(name: str, maker: Maker, rows: list[list[ast.expr]], taken: set[str]) -> list[str | None]:
    """A name for each argument; None for one that is the same constant on every way."""
    names: list[str | None] = []
    for wish, *column in zip(maker.wishes(), *rows, strict=True):
        constant = all(isinstance(each, ast.Constant) for each in column)
        if constant and len({ast.dump(each) for each in column}) == 1:
            names.append(None)
        else:
            names.append(fresh(f"{name}_{wish}", taken))
    return names
