"""A tensor that a caller may leave out is None in the first round of a loop that carries it: torch's operators carry no None."""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.gradients import none_by_default
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import live_before
from exportlens.rewriting.code.names import arguments, bound, dotted, is_none, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def refuse_none_at_first(source: Source, loop: ast.For | ast.While, kinds: Kinds) -> None:
    """Raise Refused where `loop` carries a parameter that is None by default, and nothing has asked whether it is."""
    for name in none_at_first(source, loop, kinds):
        raise Refused(
            f"`{name}` may be None when the loop begins: give it a tensor before, as `torch.zeros(...)`"
        )


def none_at_first(source: Source, loop: ast.For | ast.While, kinds: Kinds) -> list[str]:
    """The parameters that `loop` carries, that are None by default, and of which nothing has asked whether they are."""
    function = source.enclosing_function(loop)
    if function is None:
        return []
    carried = set(bound(loop.body)) & live_before([loop], frozenset(), function)
    while (outer := source.enclosing_function(function)) is not None:
        # A rewrite made a function of an arm: it has what the function around it has by the same name.
        function = outer
    carried &= none_by_default(function)
    return [
        name
        for name in sorted(carried)
        if not _is_asked_or_set(source, function, loop, name)
        and _may_be_left_out(source, function, name, kinds)
    ]


def none_before(source: Source, loop: ast.For | ast.While) -> dict[str, ast.stmt]:
    """The names that a statement of their own sets to None in the block of `loop`, which carries them, with those statements; nothing
    between them and the loop has to do with the names."""
    function = source.enclosing_function(loop)
    carried = (
        set() if function is None else set(bound(loop.body)) & live_before([loop], frozenset(), function)
    )
    block, index = source.block_of(loop)
    found: dict[str, ast.stmt] = {}
    for each in reversed(block[:index]):
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and is_none(each.value):
            target = each.targets[0]
            if isinstance(target, ast.Name) and target.id in carried:
                found[target.id] = each
        carried -= reads(each) | set(bound(each))
    return found


def none_beside(source: Source, loop: ast.For | ast.While) -> tuple[Source, ast.For | ast.While] | None:
    """The text where what `loop` carries is set to None in front of it, and the loop there, where a block around that of the loop does
    it: `y = None`, then `if self.refine:` with the loop inside. None where there is no such name.

    The statement moves where nothing outside of the inner block has to do with the name, and stands twice otherwise.
    """
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop):
        return None
    wanted = set(bound(loop.body)) & live_before([loop], frozenset(), function)
    own, index = source.block_of(loop)
    wanted -= {name for each in own[:index] for name in bound(each)}
    found: list[tuple[str, ast.Assign]] = []
    outer = source.parents[loop]
    while wanted and isinstance(outer, (ast.If, ast.With)):
        block, index = source.block_of(outer)
        for each in reversed(block[:index]):
            if isinstance(each, ast.Assign) and len(each.targets) == 1 and is_none(each.value):
                target = each.targets[0]
                if isinstance(target, ast.Name) and target.id in wanted:
                    found.append((target.id, each))
            wanted -= set(bound(each))
        outer = source.parents[outer]
    if not found:
        return None
    begin, head, moved = source.start(loop), "", []
    for name, each in found:
        head += f"{source.of(each)}{source.newline}{source.indent_of(loop)}"
        gone = source.without(each) if _is_of_block(function, own, each, name) else None
        moved += [gone] if gone is not None else []
    changed = Source(replaced(source.text, [*moved, Replacement(begin, begin, head)]))
    begin += len(head) + sum(len(each.text) - (each.end - each.start) for each in moved)
    same = (each for each in ast.walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin)


def _is_of_block(function: Function, block: list[ast.stmt], begin: ast.stmt, name: str) -> bool:
    """Whether `name` stands nowhere in `function` but in `begin` and `block`."""
    inside = {each for statement in [begin, *block] for each in ast.walk(statement)}
    return all(
        each in inside or name not in (getattr(each, "id", None), getattr(each, "arg", None))
        for each in ast.walk(function)
    ) and not any(isinstance(each, (ast.Global, ast.Nonlocal)) for each in ast.walk(function))


def _is_asked_or_set(source: Source, function: Function, loop: ast.stmt, name: str) -> bool:
    """Whether `function` asks for None, or gives `name` another value before `loop`."""
    for each in ast.walk(function):
        asks = isinstance(each, ast.Compare) and isinstance(each.ops[0], (ast.Is, ast.IsNot))
        if (
            isinstance(each, ast.Compare)
            and asks
            and dotted(each.left) == name
            and is_none(each.comparators[0])
        ):
            return True
        stored = isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        if stored and source.start(each) < source.start(loop):
            return True
    return False


def _may_be_left_out(source: Source, function: Function, name: str, kinds: Kinds) -> bool:
    """Whether what exports the model, or a call in the file, may leave the parameter `name` out."""
    if function.name == "forward":
        return True
    names = [each.arg for each in arguments(function.args) if each.arg not in ("self", "cls")]
    place = names.index(name)
    bodies = [source.tree.body, *(chunk.body for chunk in kinds.around)]
    calls = [
        each
        for body in bodies
        for one in body
        for each in ast.walk(one)
        if isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[2] == function.name
    ]
    return any(
        len(each.args) <= place
        and not any(isinstance(arg, ast.Starred) for arg in each.args)
        and not any(key.arg in (name, None) for key in each.keywords)
        for each in calls
    )
