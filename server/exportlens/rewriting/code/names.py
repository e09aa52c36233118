"""Names: what statements bind and read, and names that nothing else uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.source.walking import children, walk

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk_own(nodes: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes in source order that run in the same scope: bodies of nested functions and classes are left
    out."""
    # The last one is next: recursion would hand each node up through all levels above it.
    waiting = [nodes] if isinstance(nodes, ast.AST) else list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _own_children(node)[::-1]


def _own_children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    if isinstance(node, ast.Lambda):
        return [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    return children(node)


def bound(nodes: ast.AST | Iterable[ast.AST]) -> list[str]:
    """The names that running `nodes` may bind in their scope, in order of appearance."""
    names: dict[str, None] = {}
    for node in [nodes] if isinstance(nodes, ast.AST) else nodes:
        for name in _bound_in(node):
            names[name] = None
    return list(names)


def _bound_in(node: ast.AST) -> Iterator[str]:
    inner = _bound_by_comprehensions(node)
    for each in walk_own(node):
        if (
            isinstance(each, ast.Name)
            and isinstance(each.ctx, (ast.Store, ast.Del))
            and id(each) not in inner
        ):
            yield each.id
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield each.name
        elif isinstance(each, ast.alias):
            yield (each.asname or each.name).split(".")[0]
        elif (isinstance(each, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar))) and each.name:
            yield each.name
        elif isinstance(each, ast.MatchMapping) and each.rest:
            yield each.rest


def _bound_by_comprehensions(root: ast.AST) -> set[int]:
    """The ids of the names that comprehensions below `root` bind for themselves."""
    return {
        id(target)
        for comprehension in walk(root)
        if isinstance(comprehension, ast.comprehension)
        for target in walk(comprehension.target)
    }


def reads(nodes: ast.AST | Iterable[ast.AST]) -> set[str]:
    """The names that `nodes` read, those read by nested functions and not bound there included."""
    names: set[str] = set()
    for node in [nodes] if isinstance(nodes, ast.AST) else nodes:
        names |= _reads(node)
    return names


def _reads(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        inner = node.body if isinstance(node.body, list) else [node.body]
        own = set(bound(inner)) | {each.arg for each in arguments(node.args)}
        outer = [
            *node.args.defaults,
            *filter(None, node.args.kw_defaults),
            *getattr(node, "decorator_list", []),
        ]
        return (reads(inner) - own) | reads(outer)
    if isinstance(node, _COMPREHENSIONS):
        targets = {
            each.id for one in node.generators for each in walk(one.target) if isinstance(each, ast.Name)
        }
        return reads(children(node)) - targets
    return reads(children(node))


def registers_buffer(root: ast.AST, attr: str) -> bool:
    """Whether code below `root` registers a buffer of the name `attr`."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "register_buffer"
        and bool(each.args)
        and isinstance(each.args[0], ast.Constant)
        and each.args[0].value == attr
        for each in walk(root)
    )


def arguments(args: ast.arguments) -> list[ast.arg]:
    """All parameters in order."""
    return [
        *args.posonlyargs,
        *args.args,
        *([args.vararg] if args.vararg else []),
        *args.kwonlyargs,
        *([args.kwarg] if args.kwarg else []),
    ]


def defaults_of(args: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of a function's parameters, by name."""
    named = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(named[::-1], args.defaults[::-1], strict=False),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return {one.arg: default for one, default in pairs if default is not None}


def every_name(node: ast.AST) -> set[str]:
    """All identifiers that occur anywhere in `node`, whatever their scope."""
    names = set()
    for each in walk(node):
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif isinstance(each, ast.arg):
            names.add(each.arg)
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(each.name)
        elif isinstance(each, ast.alias):
            names.add((each.asname or each.name).split(".")[0])
    return names


def fresh(wish: str, taken: set[str]) -> str:
    """`wish`, or `wish_2`, `wish_3`... where that is taken; the answer is added to `taken`."""
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}_{number}"
    taken.add(name)
    return name


def dotted(node: ast.AST) -> str | None:
    """ "a.b.c" for such an expression, None for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def is_none(node: ast.AST | None) -> bool:
    """Whether `node` is written as None."""
    return isinstance(node, ast.Constant) and node.value is None


def own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """How a function or method calls itself."""
    first = function.args.args[:1]
    return {function.name, *(f"{each.arg}.{function.name}" for each in first)}


def own_calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """The calls of itself that a function or method holds, told by name."""
    names = own_names(function)
    return [each for each in walk(function) if isinstance(each, ast.Call) and dotted(each.func) in names]


def assigned_pairs(statement: ast.Assign | ast.AnnAssign) -> list[tuple[ast.expr, ast.expr]]:
    """What is assigned to what, one by one where both sides are written out."""
    if isinstance(statement, ast.AnnAssign):
        return [] if statement.value is None else [(statement.target, statement.value)]
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in statement.targets:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(statement.value, ast.Tuple)
            and len(target.elts) == len(statement.value.elts)
            and not any(isinstance(each, ast.Starred) for each in (*target.elts, *statement.value.elts))
        ):
            found += zip(target.elts, statement.value.elts, strict=True)
        else:
            found.append((target, statement.value))
    return found


def appended_to(statement: ast.stmt) -> str | None:
    """The name of the list to which `statement` appends one element."""
    found = append_of(statement)
    return None if found is None else found[0]


def append_of(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list, by its name alone, and the element of `out.append(element)`."""
    found = append_to_path(statement)
    return found if found is not None and found[0].isidentifier() else None


def append_to_path(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list, as a name or `self.name`, and the element of `self.name.append(element)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and len(call.args) == 1
        and not call.keywords
        and not isinstance(call.args[0], ast.Starred)
    ):
        owner = dotted(call.func.value)
        return None if owner is None else (owner, call.args[0])
    return None
