"""Options whose type nothing in the file tells, as `config.limit`: a number of Python more often than a tensor."""

from __future__ import annotations

import ast
from collections.abc import Collection

from exportlens.inference.counted_uses import ATTRIBUTES_OF_TENSORS
from exportlens.rewriting.branches.mixed_results import is_configured
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import SEVERAL, Kind, is_given
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# Longer chains of names that are bound to each other are followed no further.
_DEEPEST = 4


def may_be_number(kind: Kind) -> bool:
    """Whether what is not known was there before or is computed of such alone, and is no part of what the model is called with."""
    return (
        kind.what == "unknown"
        and kind.type != SEVERAL
        and not is_given(kind)
        and (kind.roots == frozenset() or is_configured(kind))
    )


def untold_option(source: Source, kind: Kind, kinds: Kinds) -> str | None:
    """The path of the option that `kind` is, or is computed of alone; None where it may as well be a tensor."""
    if not may_be_number(kind) or not kind.roots:
        return None
    paths = [_path(source, root, kinds) for root in sorted(kind.roots)]
    return None if None in paths else paths[0]


def _path(source: Source, root: str, kinds: Kinds) -> str | None:
    """The path of an option that `root` is bound to; None where it is anything else."""
    path = root
    for _ in range(_DEEPEST):
        head, dot, rest = path.partition(".")
        known = kinds.names.get(head)
        if head == "self":
            return path
        if known is None or is_given(known):
            return None
        values = {dotted(each) for each in _bound_to(source, head)}
        if not values:
            parameter = any(
                head in {each.arg for each in arguments(function.args)}
                for function in walk(source.tree)
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            )
            return path if dot and parameter and not _is_used_as_tensor(source, {root, path}) else None
        only = values.pop() if len(values) == 1 else None
        if only is None or only.partition(".")[0] == head or _is_used_as_tensor(source, {root, path}):
            return None
        path = only + dot + rest
    return None


def _bound_to(source: Source, name: str) -> list[ast.expr]:
    return [
        each.value
        for each in walk(source.tree)
        if isinstance(each, ast.Assign)
        and any(
            isinstance(one, ast.Name) and one.id == name for target in each.targets for one in walk(target)
        )
    ]


def _is_used_as_tensor(source: Source, paths: Collection[str]) -> bool:
    """Whether something asks one of `paths` for what tensors have."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in ATTRIBUTES_OF_TENSORS and dotted(each.value) in paths
        for each in walk(source.tree)
    )
