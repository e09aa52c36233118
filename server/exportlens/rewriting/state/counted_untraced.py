"""Tallies of a submodule that loops and branches on data call: `self.calls += 1` is counted where nothing is traced, as no body of
while_loop and no arm of torch.cond may change an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.finding import Applicability, Fix
from exportlens.inference.places import AttributeWrite
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.effects import is_kept_out
from exportlens.rewriting.state.tallies import is_tally
from exportlens.source.walking import walk

UNTRACED = "Count where nothing is traced: what while_loop and torch.cond run is not counted"


def counted_untraced(draft: Draft, cls: ast.ClassDef, place: AttributeWrite) -> Fix | None:
    """The fix that keeps all tallies of `place.attr` in `cls` out of the program; None where it is more than a tally, or where no
    loop and no branch of another class of the file calls one of `cls`."""
    source, kinds = draft.source, draft.kinds({})
    writes = [
        each
        for each in walk(cls)
        if isinstance(each, ast.AugAssign) and dotted(each.target) == f"self.{place.attr}"
    ]
    if not writes or not all(is_tally(source, each, kinds) and source.begins_line(each) for each in writes):
        return None
    others = [one for chunk in kinds.around for one in chunk.body if isinstance(one, ast.ClassDef)]
    if not any(_runs_in_parts(one, cls.name) for one in others if one.name != cls.name):
        return None
    swaps = []
    unit, nl = source.indent_unit(), source.newline
    for each in writes:
        if is_kept_out(source.parents[each]):
            continue
        inner = nl + source.indent_of(each) + unit
        text = f"if not {draft.torch}.compiler.is_compiling():{inner}{source.of(each)}"
        swaps.append(Replacement(source.start(each), source.end(each), text))
    return draft.replace(UNTRACED, swaps, Applicability.UNSAFE) if swaps else None


def _runs_in_parts(owner: ast.ClassDef, name: str) -> bool:
    """Whether a loop or a branch of `owner` calls what it holds of the class `name`."""
    held = {
        dotted(target)
        for each in walk(owner)
        if isinstance(each, ast.Assign) and _is_made(each.value, name)
        for target in each.targets
    }
    paths = {each for each in held if each is not None and each.startswith("self.")}
    return any(_calls(each.body, paths) or _calls(each.orelse, paths) for each in _parts(owner))


def _parts(owner: ast.ClassDef) -> Iterable[ast.If | ast.While | ast.For]:
    for each in walk(owner):
        if isinstance(each, (ast.If, ast.While)) or (
            isinstance(each, ast.For) and any(isinstance(one, ast.Break) for one in walk(each))
        ):
            yield each


def _is_made(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Call) and (dotted(value.func) or "").rpartition(".")[2] == name


def _calls(body: Iterable[ast.stmt], paths: set[str]) -> bool:
    called = (dotted(each.func) for one in body for each in walk(one) if isinstance(each, ast.Call))
    return any(path in paths or path.rpartition(".")[0] in paths for path in called if path is not None)
