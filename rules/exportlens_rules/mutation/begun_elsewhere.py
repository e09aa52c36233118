"""State that several functions of one call read and write: one begins it where there is none yet, another computes the next from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.classes import class_order
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue, Const, Instance
from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.state.begun_questions import asks_for_it, asks_for_none

from exportlens_rules.mutation.state_reads import certainly_written, parents, reads
from exportlens_rules.reading import ancestors

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_begun_by_another(place: AttributeWrite) -> bool:
    """Whether another function of the call binds the attribute only where nothing was there yet, so that the next call finds what
    this one leaves."""
    if not place.elsewhere or place.began not in (None, Const(None)) or not isinstance(place.owner, Instance):
        return False
    statement = _statement(place)
    methods = _methods_of_call(place.owner)
    if statement is None or is_set_back(place):
        return False
    path, begun = f"self.{place.attr}", False
    dump = _dump(path)
    for method in methods:
        for each in _writes(method, path):
            if each is statement or reads(each, [dump]):
                continue
            if not _is_asked(each, method, path) and not _is_called_if_asked(method, methods, path):
                return False
            begun = True
    return begun


def is_read_in_call(place: AttributeWrite) -> bool:
    """Whether another method that the call leads to reads the values of the attribute."""
    if not isinstance(place.owner, Instance):
        return False
    statement, dump = _statement(place), _dump(f"self.{place.attr}")
    return any(
        each is not statement and isinstance(each, ast.stmt) and _reads_itself(each, dump)
        for method in _methods_of_call(place.owner)
        for each in ast.walk(method)
    )


def is_set_back(place: AttributeWrite) -> bool:
    """Whether what runs with each call sets the attribute to a constant, or deletes it: the next call finds nothing of this one.

    Also where the model around it calls such a method of the part that holds the attribute: `self.cell.reset()`.
    """
    if not isinstance(place.owner, Instance):
        return False
    path, methods = f"self.{place.attr}", _methods_of_call(place.owner)
    if any(_ends(method, path) for method in methods):
        return True
    ending = {each.name for each in methods_of(place.owner) if each.name != "__init__" and _ends(each, path)}
    models = [
        method
        for placed in place.site.scope.document.placed
        for cls in placed.chunk.body
        if isinstance(cls, ast.ClassDef)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
    ]
    return any(
        isinstance(each, ast.Attribute) and (each.attr in ending or _is_ended(each, place.attr, model))
        for model in [*methods, *models]
        for each in ast.walk(model)
    )


def is_written_above(place: AttributeWrite) -> bool:
    """Whether the function itself has bound the attribute in any case before."""
    function, statement = place.site.function, _statement(place)
    if function is None or statement is None:
        return False
    return certainly_written(function.node, statement, _dump(f"self.{place.attr}"), parents(function.node))


def is_written_in_other_methods(place: AttributeWrite) -> bool:
    """Whether another method that the call leads to sets the attribute, too."""
    function = place.site.function
    if not isinstance(place.owner, Instance) or function is None:
        return False
    path = f"self.{place.attr}"
    return any(
        True
        for method in _methods_of_call(place.owner)
        if method is not function.node
        for _ in _writes(method, path)
    )


def _statement(place: AttributeWrite) -> ast.stmt | None:
    return next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.stmt)), None)


def _dump(path: str) -> str:
    return ast.dump(ast.parse(path, mode="eval").body)


def methods_of(owner: Instance) -> list[_Function]:
    return [
        each
        for cls in class_order(owner.cls)
        if isinstance(cls, ClassValue) and isinstance(cls.node, ast.ClassDef)
        for each in cls.node.body
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _methods_of_call(owner: Instance) -> list[_Function]:
    """The methods of the object's class and its bases that `forward` leads to, as far as their names tell."""
    named: dict[str, list[_Function]] = {}
    for each in methods_of(owner):
        named.setdefault(each.name, []).append(each)
    found: dict[str, list[_Function]] = {}
    waiting = ["forward"]
    while waiting:
        name = waiting.pop()
        if name in named and name not in found and name != "__init__":
            found[name] = named[name]
            waiting += [
                each.attr
                for method in named[name]
                for each in ast.walk(method)
                if isinstance(each, ast.Attribute)
            ]
    return [each for methods in found.values() for each in methods]


def _writes(method: ast.AST, path: str) -> Iterator[ast.stmt]:
    for each in ast.walk(method):
        targets = each.targets if isinstance(each, ast.Assign) else ()
        if isinstance(each, (ast.AnnAssign, ast.AugAssign)):
            targets = [each.target]
        parts = [one for target in targets for one in ast.walk(target)]
        if isinstance(each, ast.stmt) and any(
            isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and dotted(one) == path
            for one in parts
        ):
            yield each


def _reads_itself(statement: ast.stmt, dump: str) -> bool:
    """Whether `statement`, not one inside of it, reads the values of the attribute."""
    parts = [
        each
        for each in ast.iter_child_nodes(statement)
        if not isinstance(each, (ast.stmt, ast.excepthandler))
    ]
    return not isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and any(
        reads(each, [dump]) for each in parts
    )


def _ends(method: ast.AST, path: str) -> bool:
    """Whether `method` sets the attribute to a constant, or deletes it."""
    return any(
        dotted(target) == path and isinstance(value, ast.Constant)
        for each in ast.walk(method)
        if isinstance(each, ast.Assign)
        for target, value in assigned_pairs(each)
    ) or any(
        isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Del) and dotted(each) == path
        for each in ast.walk(method)
    )


def _is_ended(node: ast.Attribute, attr: str, model: ast.AST) -> bool:
    """Whether `model` sets the attribute of one of its parts to a constant, or deletes it: `self.cell.state = None`."""
    if node.attr != attr or isinstance(node.ctx, ast.Load):
        return False
    return isinstance(node.ctx, ast.Del) or any(
        target is node and isinstance(value, ast.Constant)
        for each in ast.walk(model)
        if isinstance(each, ast.Assign)
        for target, value in assigned_pairs(each)
    )


def _is_called_if_asked(method: _Function, methods: list[_Function], path: str) -> bool:
    """Whether all calls of `method` stand under the question whether the state has begun."""
    calls = [
        (each, caller)
        for caller in methods
        for each in ast.walk(caller)
        if isinstance(each, ast.Attribute) and each.attr == method.name
    ]
    return bool(calls) and all(_is_asked(each, caller, path) for each, caller in calls)


def _is_asked(node: ast.AST, method: ast.AST, path: str) -> bool:
    """Whether `node` of `method` is only reached where the state has not begun, or has another size than it must."""
    around = parents(method)
    while node in around and node is not method:
        outer = around[node]
        for name in ("body", "orelse"):
            block = getattr(outer, name, None)
            if not isinstance(block, list) or node not in block:
                continue
            if isinstance(outer, ast.If) and _has_begun(outer.test, path) is (name == "orelse"):
                return True
            left = [each for each in block[: block.index(node)] if isinstance(each, ast.If)]
            if any(isinstance(each.body[-1], ast.Return) and _has_begun(each.test, path) for each in left):
                return True
        node = outer
    return False


def _has_begun(test: ast.expr, path: str) -> bool | None:
    """Whether `test` comes out true where the state has begun, False where it does not; None where it asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _has_begun(test.operand, path)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        # `self.state is None or self.state.shape[0] != x.shape[0]`: what it looks like decides beside.
        wanted, dump = not isinstance(test.op, ast.Or), _dump(path)
        others = [each for each in test.values if _has_begun(each, path) is not wanted]
        looking = all(any(ast.dump(one) == dump for one in ast.walk(each)) for each in others)
        plain = not any(reads(each, [dump]) for each in others)
        return wanted if len(others) < len(test.values) and looking and plain else None
    return True if asks_for_it(test, path.removeprefix("self.")) else asks_for_none(test, path)
