"""Floats that calls of a function give it, or rounds of a loop, read in a branch inside of a branch: where two are other floats, tracing
takes them for symbols, and torch.cond takes in none of those from another arm. A tensor holds them (measured on torch 2.13, in eager
and in both modes; ints are taken, and so is what a Module holds)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import Const
from exportlens.rewriting.code.callers import given_to
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, defaults_of, dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def floats_held_deeper(text: str, functions: list[str], kinds: Kinds, torch: str) -> str:
    """`text` where the branches inside of the new `functions` read such floats of a tensor."""
    if f"{torch}.cond(" not in text:
        return text
    source = Source(text)
    arms = [
        each for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef) and each.name in functions
    ]
    home = source.enclosing_function(arms[0]) if arms else None
    if home is None:
        return text
    inner = [
        arm
        for each in arms
        for call in ast.walk(each)
        if isinstance(call, ast.Call) and dotted(call.func) == f"{torch}.cond"
        for arm in _arms_of(call, each)
    ]
    stored = set(bound(home.body))
    taken = every_name(source.tree)
    lines: list[str] = []
    swaps: dict[int, Replacement] = {}
    for name in (each.arg for each in arguments(home.args)):
        uses = [] if name in stored else [use for arm in inner for use in _uses(arm, name)]
        if not uses or not _is_other_float(source, home, name, kinds):
            continue
        held = fresh(f"{name}_held", taken)
        lines.append(f"{held} = {torch}.full((), {name}, dtype={torch}.float64)")
        swaps |= {source.start(use): source.swap(use, f"{held}.item()") for use in uses}
    looped = _of_rounds(source, arms, home, inner, kinds)
    rounds: list[str] = []
    for name, uses in looped.items():
        held = fresh(f"{name}_held", taken)
        rounds.append(f"{held} = {torch}.full((), {name}, dtype={torch}.float64)")
        swaps |= {source.start(use): source.swap(use, f"{held}.item()") for use in uses}
    begins = [_before(source, arms[0], rounds)] if rounds else []
    if not lines:
        return replaced(text, [*begins, *swaps.values()]) if begins else text
    first = next(each for each in home.body if any(arm is part for arm in arms for part in ast.walk(each)))
    return replaced(text, [_before(source, first, lines), *begins, *swaps.values()])


def _before(source: Source, first: ast.stmt, lines: list[str]) -> Replacement:
    """`lines` in front of the statement `first`."""
    begin = source.start(first)
    head = "".join(f"{line}{source.newline}{source.indent_of(first)}" for line in lines)
    if isinstance(first, ast.FunctionDef):
        head = head.rstrip(" \t") + source.newline + source.indent_of(first)
    return Replacement(begin, begin, head)


def _of_rounds(
    source: Source,
    arms: list[ast.FunctionDef],
    home: Function,
    inner: list[ast.Lambda | ast.FunctionDef],
    kinds: Kinds,
) -> dict[str, list[ast.Name]]:
    """The floats that a loop around `arms` goes through, and where the arms `inner` of branches inside of them read those."""
    found: dict[str, list[ast.Name]] = {}
    for loop in source.ancestors(arms[0]):
        if loop is home:
            break
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            continue
        for name in bound(loop.target):
            known = kinds.names.get(name)
            if known is None or known.what != "number" or known.type != "float":
                continue
            stores = [
                each
                for each in ast.walk(loop)
                if (isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load))
                or (isinstance(each, ast.arg) and each.arg == name)
            ]
            uses = {source.start(use): use for arm in inner for use in _uses(arm, name)}
            if len(stores) == 1 and uses:
                found[name] = list(uses.values())
    return found


def _arms_of(call: ast.Call, around: ast.FunctionDef) -> Iterator[ast.Lambda | ast.FunctionDef]:
    """The functions that `call`, a branch in `around`, chooses from."""
    for given in call.args[1:3]:
        if isinstance(given, ast.Lambda):
            yield given
        elif isinstance(given, ast.Name):
            for each in ast.walk(around):
                if isinstance(each, ast.FunctionDef) and each.name == given.id:
                    yield each


def _uses(arm: ast.Lambda | ast.FunctionDef, name: str) -> list[ast.Name]:
    body = [arm.body] if isinstance(arm, ast.Lambda) else arm.body
    return [
        each
        for one in body
        for each in ast.walk(one)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]


def _is_other_float(source: Source, home: Function, name: str, kinds: Kinds) -> bool:
    """Whether calls of `home` that are known give `name` floats, and not the same each time. Raises Refused where some do, and of
    others it is not known."""
    given = given_to(source, home, name, kinds)
    default = defaults_of(home.args).get(name) if given else None
    given += [kinds.of(default)] if default is not None else []
    floats = [each for each in given if each.what == "number" and each.type == "float"]
    values = {each.value.value if isinstance(each.value, Const) else None for each in floats}
    several = len(values) > 1 or values == {None}
    if len(floats) == len(given):
        return several
    if floats and (several or any(each.what == "unknown" for each in given)):
        raise Refused(
            f"a branch inside of a branch reads the float `{name}`, of which calls of `{home.name}` give several: torch.cond takes none "
            "of those, and not all of them are known to be floats"
        )
    return False
