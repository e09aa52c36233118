"""Values of Python that decide what a call gives, and that the call then turns for the next one: `y = a if self.first else b`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Const, Instance, Shape
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.state.begun_questions import asks_for_it, asks_for_none

from exportlens_rules.mutation.begun_elsewhere import is_written_in_other_methods
from exportlens_rules.mutation.state_reads import certainly_written, loaded, parents, reads
from exportlens_rules.reading import ancestors


def decides_results(place: AttributeWrite) -> bool:
    """Whether the function asks for what the last call left, where the answer decides what is returned or computed with, and the call
    leaves another value. Not where the answer decides what is bound to other attributes: a table that is made once."""
    began, value, function = place.began, place.value, place.site.function
    if not (isinstance(began, Const) and isinstance(value, Const) and type(began.value) is type(value.value)):
        return False
    if type(value.value) not in (bool, int, str) or value == began or place.elsewhere or function is None:
        return False
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if statement is None or target is None or not isinstance(place.owner, Instance):
        return False
    if dotted(target) != f"self.{place.attr}" or is_written_in_other_methods(place):
        return False
    path, around = ast.dump(loaded(target)), parents(function.node)
    later = {each for each in ast.walk(function.node) if isinstance(each, ast.Assign)} - {statement}
    if any(
        each.lineno > statement.lineno
        and any(dotted(one) == f"self.{place.attr}" for one in each.targets)
        and not _excludes(each, statement, around)
        for each in later
    ):
        return False
    return any(
        not certainly_written(function.node, _statement(each, around), path, around)
        and not _reads_bound(each, path, function.node)
        and gives_results(each, path, function.node, around)
        for each in ast.walk(function.node)
        if isinstance(each, (ast.If, ast.IfExp)) and reads(each.test, [path])
    )


def begins_results(place: AttributeWrite) -> bool:
    """Whether the call asks if the attribute is there, or not None, or what size the last one had, where the answer decides what is
    returned, and leaves there a constant or a size: `if self.mode is None: self.mode = "on"; return x`. Not where the answer decides
    between making something and taking what was made."""
    began, value, function = place.began, place.value, place.site.function
    if place.elsewhere or function is None or not isinstance(place.owner, Instance):
        return False
    sizes = isinstance(value, Shape) and not value.unbacked and value.bounds is None
    if not sizes and not (isinstance(value, Const) and type(value.value) in (bool, int, float, str)):
        return False
    if began not in (None, Const(None)) and not (sizes and isinstance(began, Const)):
        return False
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if target is None or dotted(target) != f"self.{place.attr}" or is_written_in_other_methods(place):
        return False
    path, around = ast.dump(loaded(target)), parents(function.node)
    return any(
        not certainly_written(function.node, _statement(each, around), path, around)
        and _asks(each.test, path, place.attr, sizes)
        and not _takes_kept(each, function.node)
        and gives_results(each, path, function.node, around)
        for each in ast.walk(function.node)
        if isinstance(each, (ast.If, ast.IfExp))
    )


def _asks(test: ast.expr, path: str, attr: str, sizes: bool) -> bool:
    """Whether `test` asks no more than whether the attribute is there, or (of `sizes`) which it is."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks(test.operand, path, attr, sizes)
    if asks_for_it(test, attr) or asks_for_none(test, f"self.{attr}") is not None:
        return not sizes
    return (
        sizes
        and isinstance(test, ast.Compare)
        and any(ast.dump(each) == path for each in [test.left, *test.comparators])
    )


def _takes_kept(choice: ast.If | ast.IfExp, function: ast.AST) -> bool:
    """Whether what `choice` takes reads attributes, other than to call them: something that was made once, perhaps."""
    parts = [choice.body, choice.orelse] if isinstance(choice, ast.IfExp) else [*choice.body, *choice.orelse]
    called = {id(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)}
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Load)
        and (dotted(each) or "").startswith("self.")
        and id(each) not in called
        for part in parts
        for each in ast.walk(part)
    )


def _excludes(one: ast.AST, other: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether the two stand in the two arms of one `if`."""
    arms: dict[ast.AST, bool] = {}
    for each in (one, other):
        while each in around:
            outer = around[each]
            if isinstance(outer, ast.If) and isinstance(each, ast.stmt):
                in_body = each in outer.body
                if arms.setdefault(outer, in_body) is not in_body:
                    return True
            each = outer
    return False


def _statement(node: ast.AST, around: dict[ast.AST, ast.AST]) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        node = around[node]
    return node


def _reads_bound(choice: ast.If | ast.IfExp, path: str, function: ast.AST) -> bool:
    """Whether `choice` takes what the function binds to another attribute, as a table that is made anew for another size."""
    bound = {
        ast.dump(loaded(each))
        for each in ast.walk(function)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    return any(
        ast.dump(each) in bound - {path} for each in ast.walk(choice) if isinstance(each, ast.Attribute)
    )


def gives_results(
    choice: ast.If | ast.IfExp, path: str, function: ast.AST, around: dict[ast.AST, ast.AST]
) -> bool:
    """Whether what `choice` takes leaves the function, or names that are read behind it."""
    if isinstance(choice, ast.IfExp):
        statement = _statement(choice, around)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return isinstance(statement, (ast.Return, ast.Assign)) and all(
            isinstance(each, ast.Name) for each in targets
        )
    inside = [one for each in [*choice.body, *choice.orelse] for one in ast.walk(each)]
    stored = [each for each in inside if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]
    if any(ast.dump(loaded(each)) != path for each in stored):
        return False
    returned = any(isinstance(each, ast.Return) and _is_a_value(each.value) for each in inside)
    names = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return returned or any(each.id in names for each in _read_behind(choice, function))


def _is_a_value(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


def _read_behind(choice: ast.If, function: ast.AST) -> Iterator[ast.Name]:
    end = choice.end_lineno or choice.lineno
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.lineno > end:
            yield each
