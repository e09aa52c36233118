"""The lists and dicts that a model keeps: who of a call works on them, and who begins them anew."""

from __future__ import annotations

import ast

from exportlens.inference.places import Place

from exportlens_rules.mutation.state_reads import loaded, reads

# Methods that put something into a list, a deque, a set or a dict.
ADDING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"})


def called_with(place: Place, function: ast.AST) -> list[ast.AST]:
    """`function`, and the methods of its class that `forward` leads to."""
    owner = None if place.site.function is None else place.site.function.owner
    methods = {
        each.name: each
        for each in (owner.node.body if owner is not None and isinstance(owner.node, ast.ClassDef) else ())
        if isinstance(each, ast.FunctionDef)
    }
    found: dict[str, ast.AST] = {}
    waiting = ["forward"] if "forward" in methods else _names_called(place)
    while waiting:
        name = waiting.pop()
        if name in methods and name not in found:
            found[name] = methods[name]
            waiting += [each.attr for each in ast.walk(methods[name]) if isinstance(each, ast.Attribute)]
    return [function, *(each for each in found.values() if each is not function)]


def _names_called(place: Place) -> list[str]:
    """The methods that the code which leads here may call of an object that is no Module."""
    return [
        each.attr
        for _, chunk, _ in place.site.trail
        for statement in chunk.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute) and each.attr != "__init__"
    ]


def is_emptied(function: ast.AST, path: str) -> bool:
    """Whether `function` makes the container anew, or takes everything out of it."""
    for each in ast.walk(function):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                of = target.value if isinstance(target, ast.Subscript) else target
                whole = not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice)
                if whole and is_path(of, path) and not reads(each.value, [path]):
                    return True
        elif isinstance(each, ast.Delete):
            if any(
                is_path(one, path)
                or (
                    isinstance(one, ast.Subscript)
                    and isinstance(one.slice, ast.Slice)
                    and _is_whole(one.slice)
                    and is_path(one.value, path)
                )
                for one in each.targets
            ):
                return True
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "clear"
            and is_path(each.func.value, path)
        ):
            return True
    return False


def _is_whole(part: ast.Slice) -> bool:
    begins = part.lower is None or ast.unparse(part.lower) == "0"
    return begins and part.upper is None and part.step is None


def is_path(node: ast.expr, path: str) -> bool:
    if isinstance(node, ast.Name):
        return ast.dump(ast.Name(node.id, ast.Load())) == path
    return isinstance(node, (ast.Attribute, ast.Subscript)) and ast.dump(loaded(node)) == path
