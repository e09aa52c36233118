"""Views of which data tells where they begin, `row = table[n]`: non-strict tracing takes none of them into torch.cond or while_loop.

Measured on torch 2.13. A slice that data bounds is taken, and so is a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.function_kinds import own_function
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.sharing import read_paths

NOTE = "  # a view whose place data tells is none for torch.cond"
NOTE_OF_LOOP = "  # a view whose place data tells is none for while_loop"


def placed_by_data(
    statements: Sequence[ast.stmt], kinds: Kinds, written: Container[str], function: Function, source: Source
) -> list[str]:
    """The names of such views that `statements` read. Of memory that is `written` there is no copy."""
    found = []
    for name in read_paths(statements, kinds):
        kind = kinds.names.get(name)
        if kind is None or kind.what != "tensor" or not kind.roots:
            continue
        if any(each in written for each in (name, *kind.roots)):
            continue
        if any(
            is_placed(each, kinds, function, frozenset({name})) for each in assigned(name, function)
        ) or any(_gives_placed(each, caller) for each, caller in handed_in(name, function, source)):
            found.append(name)
    return found


def is_placed(node: ast.expr, kinds: Kinds, function: Function, seen: frozenset[str] = frozenset()) -> bool:
    """Whether `node` takes an item at a number from data, `x[n]` or `x.select(0, n)`, or gives a view of such an item."""
    if isinstance(node, ast.Name):
        return node.id not in seen and any(
            is_placed(each, kinds, function, seen | {node.id}) for each in assigned(node.id, function)
        )
    if _is_from_open_end(node, kinds):
        return True
    if not isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)) or not kinds.of(node).roots:
        return False
    if any(
        kinds.of(each).what == "scalar"
        or (isinstance(each, ast.Name) and any(map(_reads_number, assigned(each.id, function))))
        for each in _places(node)
    ):
        return True
    helper = own_function(kinds, node) if isinstance(node, ast.Call) else None
    if helper is not None:
        return any(_gives_placed(each, helper) for each in _results(helper))
    return any(is_placed(each, kinds, function, seen) for each in _viewed(node))


def _is_from_open_end(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` takes an item that is counted from the end of rows of which data says how many there are:
    `torch.unique(ids)[-1]`."""
    if not isinstance(node, ast.Subscript):
        return False
    value = kinds.of(node.value).value
    ends = (isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub) for each in _places(node))
    return isinstance(value, Tensor) and value.unbacked and any(ends)


def assigned(name: str, function: Function) -> Iterator[ast.expr]:
    """What assignments of `function` bind `name` to: of several names at once what stands at its place, or what is unpacked."""
    for each in ast.walk(function):
        if not isinstance(each, ast.Assign):
            continue
        for target in each.targets:
            if dotted(target) == name:
                yield each.value
            elif isinstance(target, (ast.Tuple, ast.List)):
                values = each.value.elts if isinstance(each.value, (ast.Tuple, ast.List)) else None
                for index, part in enumerate(target.elts):
                    if dotted(part) != name:
                        continue
                    if values is None:
                        yield each.value
                    elif len(values) == len(target.elts):
                        yield values[index]


def handed_in(name: str, function: Function, source: Source) -> Iterator[tuple[ast.expr, Function]]:
    """What calls of the method or function hand in for its parameter `name`, and the functions that do."""
    taken = [each.arg for each in arguments(function.args)]
    if name not in taken:
        return
    is_method = isinstance(source.parents.get(function), ast.ClassDef)
    called = f"self.{function.name}" if is_method else function.name
    for call in ast.walk(source.tree):
        caller = source.enclosing_function(call) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or caller is None or dotted(call.func) != called:
            continue
        given = dict(zip(taken[is_method:], call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg}
        if name in given:
            yield given[name], caller


def _places(node: ast.expr) -> list[ast.expr]:
    """The indices at which `node` takes items."""
    if isinstance(node, ast.Subscript):
        return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(node, ast.Call) and (dotted(node.func) or "").rpartition(".")[2] == "select":
        return [*node.args[1:], *(each.value for each in node.keywords if each.arg == "index")]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "select":
        return list(node.args[1:])
    return []


def _viewed(node: ast.Call | ast.Subscript | ast.Attribute) -> Iterator[ast.expr]:
    """What `node` may give a view of."""
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        yield node.value
        return
    if isinstance(node.func, ast.Attribute):
        yield node.func.value
    yield from node.args[:1]


def _results(function: Function) -> Iterator[ast.expr]:
    for each in ast.walk(function):
        if isinstance(each, ast.Return) and each.value is not None:
            yield each.value


def _gives_placed(result: ast.expr, function: Function) -> bool:
    """Whether a function of the file gives an item at a number that it reads out of a tensor itself."""
    made = assigned(result.id, function) if isinstance(result, ast.Name) else [result]
    return any(
        _reads_number(place)
        or (isinstance(place, ast.Name) and any(map(_reads_number, assigned(place.id, function))))
        for each in made
        for place in _places(each)
    )


def _reads_number(node: ast.expr) -> bool:
    """`t.item()`, `int(t.item())`, and `t.tolist()` that is unpacked."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("item", "tolist")
        for each in ast.walk(node)
    )
