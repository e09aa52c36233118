"""Floats outside of a branch, read in a branch inside of it: tracing takes them for symbols where two are other floats, or where two
branches of a run take in a tensor and a float as the cell of the same number, and torch.cond takes in no such symbol from another arm. A
tensor holds them, and a literal stands in the inner arm once more (measured on torch 2.13, in eager and in both modes; ints are taken,
and so is what a Module holds)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import Const
from exportlens.rewriting.code.callers import calls_of, given_to
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, defaults_of, dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
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
    inner = _inner_arms(arms, torch)
    stored = set(bound(home.body))
    taken = every_name(source.tree)
    lines: list[str] = []
    swaps: dict[int, Replacement] = {}
    for name in (each.arg for each in arguments(home.args)):
        uses = [] if name in stored else [use for arm in inner for use in _uses(arm, name)]
        if not uses or not _is_given_float(source, home, name, kinds):
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


def bound_floats_held(before: Source, text: str, kinds: Kinds, torch: str) -> str:
    """`text`, made of `before`, where branches inside of its new arms have such floats that the function around binds once: a literal
    again, and others of a tensor."""
    if text.count(f"{torch}.cond(") < 2:
        return text
    source = Source(text)
    old = {each.name for each in ast.walk(before.tree) if isinstance(each, ast.FunctionDef)}
    new = [
        each for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef) and each.name not in old
    ]
    arms = [each for each in new if not any(around in new for around in source.ancestors(each))]
    home = source.enclosing_function(arms[0]) if arms else None
    if home is None:
        return text
    arms = sorted((each for each in arms if source.enclosing_function(each) is home), key=source.start)
    inner = _inner_arms(arms, torch)
    taken = every_name(source.tree)
    lines: list[str] = []
    changes: dict[tuple[int, str], Replacement] = {}
    for name, value in _bound_once(source, arms, home, kinds):
        uses = [use for arm in inner for use in _uses(arm, name)]
        if uses and isinstance(value, ast.Constant):
            changes |= {(each.start, name): each for each in _stated_again(source, inner, name, value)}
        elif uses:
            held = fresh(f"{name}_held", taken)
            lines.append(f"{held} = {torch}.full((), {name}, dtype={torch}.float64)")
            changes |= {(source.start(use), name): source.swap(use, f"{held}.item()") for use in uses}
    if not changes:
        return text
    return replaced(text, [*([_before(source, arms[0], lines)] if lines else []), *changes.values()])


def _inner_arms(arms: list[ast.FunctionDef], torch: str) -> list[ast.Lambda | ast.FunctionDef]:
    """What the branches inside of `arms` choose from."""
    return [
        arm
        for each in arms
        for call in ast.walk(each)
        if isinstance(call, ast.Call) and dotted(call.func) == f"{torch}.cond"
        for arm in _arms_of(call, each)
    ]


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
            if known is None or not _is_float(known):
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


def _bound_once(
    source: Source, arms: list[ast.FunctionDef], home: Function, kinds: Kinds
) -> Iterator[tuple[str, ast.expr]]:
    """The names that `home` binds once, in front of `arms`, to a float, and what to."""
    stores: dict[str, int] = {}
    for each in ast.walk(home):
        name = (
            each.id
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
            else each.arg
            if isinstance(each, ast.arg)
            else None
        )
        if name is not None:
            stores[name] = stores.get(name, 0) + 1
    inside = {id(part) for arm in arms for part in ast.walk(arm)}
    for each in ast.walk(home):
        if not isinstance(each, ast.Assign) or id(each) in inside or len(each.targets) != 1:
            continue
        target = each.targets[0]
        if (
            not isinstance(target, ast.Name)
            or stores[target.id] != 1
            or source.start(each) > source.start(arms[0])
        ):
            continue
        known = kinds.names.get(target.id)
        literal = isinstance(each.value, ast.Constant) and isinstance(each.value.value, float)
        if literal or (known is not None and _is_float(known)):
            yield target.id, each.value


def _stated_again(
    source: Source, inner: list[ast.Lambda | ast.FunctionDef], name: str, value: ast.Constant
) -> Iterator[Replacement]:
    """`name` bound to `value` once more in those of the arms `inner` that read it, each around what is inside of it."""
    reading = [arm for arm in inner if _uses(arm, name)]
    within = {id(part) for arm in reading for part in ast.walk(arm) if part is not arm}
    places = {source.start(arm): arm for arm in reading if id(arm) not in within}
    for arm in places.values():
        if isinstance(arm, ast.Lambda):
            yield from (source.swap(use, source.of(value)) for use in _uses(arm, name))
        else:
            yield _before(source, arm.body[0], [f"{name} = {source.of(value)}"])


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


def _is_float(kind: Kind) -> bool:
    return kind.what in ("number", "size") and kind.type == "float"


def _is_given_float(source: Source, home: Function, name: str, kinds: Kinds) -> bool:
    """Whether calls of `home` that are known all leave or give `name` a float. Raises Refused where some give several floats, and of
    others it is not known."""
    given = given_to(source, home, name, kinds)
    default = defaults_of(home.args).get(name)
    if default is not None and (given or _is_called(source, home, kinds)):
        given = [*given, kinds.of(default)]
    floats = [each for each in given if _is_float(each)]
    if len(floats) == len(given):
        return bool(given)
    values = {each.value.value if isinstance(each.value, Const) else None for each in floats}
    if floats and (len(values) > 1 or values == {None} or any(each.what == "unknown" for each in given)):
        raise Refused(
            f"a branch inside of a branch reads the float `{name}`, of which calls of `{home.name}` give several: torch.cond takes none "
            "of those, and not all of them are known to be floats"
        )
    return False


def _is_called(source: Source, home: Function, kinds: Kinds) -> bool:
    """Whether a call of `home` is known."""
    calls: list[Function] = []
    calls_of(source, home, kinds, lambda given, now, caller: calls.append(caller))
    return bool(calls)
