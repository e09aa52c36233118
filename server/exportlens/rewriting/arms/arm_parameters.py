"""What an arm of a branch knows of the function around it, and as a function of its own takes in by parameters."""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.numbers_in_text import numbers_in_text
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before, live_before
from exportlens.rewriting.code.names import arguments, bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.outside_writes import Arm
from exportlens.source.walking import walk


def parameters_of(
    source: Source, function: Function, node: ast.If, arm: Arm, live: frozenset[str], kinds: Kinds
) -> list[str]:
    """The names that the arm binds after it may have read the outside's, and those of which it makes text: they come in as default
    arguments. `kinds` are those before the branch."""
    names = bound(arm.statements)
    entering = live_before(arm.statements, live, function)
    _refuse_shared_with_functions(source, function, arm, names, entering)
    needed = [name for name in names if name in entering]
    # Strict tracing does not take the deletion of a name that another function reads.
    read, certain = reads(arm.statements), _certain(function, node)
    needed += [name for name in _deleted(function) if name in read & certain and name not in needed]
    needed += [name for name in arm.parameters if name not in needed]
    elsewhere = _bound_elsewhere(function, arm)
    needed = [
        name
        for name in needed
        if name in certain or name in live or name in elsewhere or not _is_begun_inside(arm, name)
    ]
    for name in needed:
        if name not in certain:
            raise Refused(f"`{name}` may be unbound before the branch")
    texts = numbers_in_text(arm.statements, kinds)
    return [*needed, *(name for name in texts if name in certain and name not in needed)]


def _is_begun_inside(arm: Arm, name: str) -> bool:
    """Whether the arm binds the name before it reads it anywhere: an option decides there which statement does."""
    stored = [
        _order(each)
        for statement in arm.statements
        for each in walk(statement)
        if isinstance(each, ast.Assign)
        and any(
            isinstance(one, ast.Name) and one.id == name for target in each.targets for one in walk(target)
        )
        and name not in reads(each.value)
    ]
    read = [
        _order(each)
        for statement in arm.statements
        for each in walk(statement)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    return bool(stored) and (not read or min(stored) < min(read))


def _order(node: ast.Assign | ast.Name) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _bound_elsewhere(function: Function, arm: Arm) -> set[str]:
    """The names that the function binds outside of the arm."""
    inside = {id(each) for statement in arm.statements for each in walk(statement)}
    return {each.arg for each in arguments(function.args)} | {
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load) and id(each) not in inside
    }


def _certain(function: Function, node: ast.If) -> set[str]:
    """The names that certainly are bound where the branch begins."""
    return certainly_bound_before(function, node) | {
        each.target.id for each in walk(node.test) if isinstance(each, ast.NamedExpr)
    }


def _deleted(function: Function) -> list[str]:
    """The names that the function deletes."""
    return [
        each.id
        for statement in walk(function)
        if isinstance(statement, ast.Delete)
        for each in statement.targets
        if isinstance(each, ast.Name)
    ]


def _refuse_shared_with_functions(
    source: Source, function: Function, arm: Arm, names: list[str], entering: frozenset[str]
) -> None:
    """A function inside of this one that the arm calls reads this one's names, not the arm's own. Of a name that is not `entering`
    the arm has a function of its own, as in the second round of a loop whose first is written out."""
    read = reads(arm.statements) & entering
    for each in walk(function):
        parent = source.parents.get(each)
        given: list[str] = []
        if isinstance(each, ast.FunctionDef) and each is not function:
            given = [each.name]
        elif isinstance(each, (ast.Lambda, ast.GeneratorExp)) and isinstance(parent, ast.Assign):
            given = [one.id for one in parent.targets if isinstance(one, ast.Name)]
        shared = set(names) & reads(each) if read.intersection(given) else set()
        # One that the arm defines goes with it, and reads the arm's own names.
        if shared and not any(each is inner for one in arm.statements for inner in walk(one)):
            raise Refused(
                f"`{given[0]}` reads `{min(shared)}` of the function around it, which the branch binds"
            )


def replace_super(source: Source, function: Function, arm: Arm) -> None:
    """Name the class and the object that `super()` in the arm means: the arm's function is no method."""
    for statement in arm.statements:
        for each in walk(statement):
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id == "super"
                and not each.args
            ):
                owner = next(
                    (one for one in source.ancestors(function) if isinstance(one, ast.ClassDef)),
                    None,
                )
                if owner is None or not function.args.args:
                    raise Refused("`super()` in the branch")
                arm.replacements.append(
                    source.swap(each, f"super({owner.name}, {function.args.args[0].arg})")
                )
