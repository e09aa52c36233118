"""Numbers read out of an item that data, a size or the round of a loop chooses, in the arms of torch.cond and the bodies of
while_loop: out of a copy.

Measured on torch 2.13: where a number from data says which item, the item is a view at a place that is not known, and there
`x[i].item()` raises "Cannot cast FakeTensor to number", in eager, too. In eager the number of a round is one as well: what
compiles the arms of the second round takes an int that is not what it was for a symbol. Non-strict tracing takes the sizes of
what an arm is given for symbols, too: `x[-1]` begins at one.

    def loop_body(i, s):                       def loop_body(i, s):
        i = i.clone().item()                       i = i.clone().item()
        v = x[i].item()                ->          v = x[i].clone().item()
"""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.rows_in_arms import arms_given
from exportlens.rewriting.code.names import arguments, bound, dotted, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.number_types import is_size
from exportlens.source.walking import walk

_READS = frozenset({"item", "tolist"})
_NUMBERS = frozenset({"int", "float", "bool"})
# Methods that give a view where they are given numbers, and those that give one of what they are called on.
_SELECTS = frozenset({"select", "narrow"})
_VIEWS = frozenset({"detach", "squeeze", "unsqueeze", "view", "reshape", "flatten"})
# What gives the very tensor where it is of that dtype.
_CASTS = frozenset({"long", "int", "float", "double", "bool", "to", "type"})


def items_of_copies(before: Source, node: ast.AST, text: str) -> str:
    """`text`, made of `before`, in which arms and bodies in the function around `node` read numbers out of copies of items that
    data chooses."""
    source = Source(text)
    function = source.same_function(before, node)
    if function is None:
        return text
    swaps: dict[int, Replacement] = {}
    for arm in arms_given(source, function):
        if isinstance(arm, ast.FunctionDef):
            for place in _read_views(arm, _counted_around(source, arm)):
                swaps[source.end(place)] = Replacement(source.end(place), source.end(place), ".clone()")
    return replaced(text, swaps.values()) if swaps else text


def _counted_around(source: Source, arm: ast.FunctionDef) -> set[str]:
    """The ints that the loops around `arm` count, the sizes that have names, and the ints that callers give the function around it."""
    found = set[str]()
    for outer in source.ancestors(arm):
        if isinstance(outer, ast.For):
            counter = outer.target
            called = dotted(outer.iter.func) if isinstance(outer.iter, ast.Call) else None
            if called == "enumerate" and isinstance(counter, ast.Tuple):
                counter = counter.elts[0]
            if called in ("range", "enumerate") and isinstance(counter, ast.Name):
                found.add(counter.id)
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assigned = (each for each in walk(outer) if isinstance(each, ast.Assign))
            found |= {name for each in assigned if is_size(each.value) for name in bound(each.targets)}
            given = arguments(outer.args)
            found |= {each.arg for each in given if each.annotation and dotted(each.annotation) == "int"}
    return found


def _read_views(arm: ast.FunctionDef, counted: set[str]) -> list[ast.expr]:
    """The items at places from data, or `counted` ones, out of which `arm` reads numbers."""
    nodes = list(walk(arm))
    bindings = [
        each for each in nodes if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
    ]
    numbers, views = set(counted), set[str]()
    while True:
        size = len(numbers) + len(views)
        for each in bindings:
            assert each.value is not None
            if _is_view(each.value, numbers, views):
                views |= set(bound(each))
            elif _reads_number(each.value) or _is_computed(each.value, numbers):
                numbers |= set(bound(each))
        if len(numbers) + len(views) == size:
            break
    places = [_read_out(each) for each in nodes if isinstance(each, ast.Call)]
    return [place for place in places if place is not None and _is_view(place, numbers, views)]


def _read_out(call: ast.Call) -> ast.expr | None:
    """What the number is read out of."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _READS:
        return func.value
    if isinstance(func, ast.Name) and func.id in _NUMBERS and len(call.args) == 1:
        return call.args[0]
    return None


def _reads_number(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "item"
        for each in walk(node)
    )


def _is_computed(node: ast.expr, numbers: set[str]) -> bool:
    """Whether `node` is arithmetic with one of `numbers`, or one of them."""
    plain = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop, ast.expr_context)
    return bool(reads(node) & numbers) and all(isinstance(each, plain) for each in walk(node))


def _is_view(node: ast.expr, numbers: set[str], views: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in views
    if isinstance(node, ast.Subscript):
        chosen = bool(reads(node.slice) & numbers) or _reads_number(node.slice)
        return chosen or _from_the_end(node.slice) or _is_view(node.value, numbers, views)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = bool(set().union(*map(reads, node.args)) & numbers) or any(map(_reads_number, node.args))
        given = given or any(map(_from_the_end, node.args[1:2]))
        if node.func.attr in _SELECTS and given:
            return True
        return node.func.attr in _VIEWS | _CASTS and _is_view(node.func.value, numbers, views)
    return False


def _from_the_end(index: ast.expr) -> bool:
    """Whether a part of `index` says a place from the end, or by a size."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    places = [each.lower if isinstance(each, ast.Slice) else each for each in parts]
    return any(
        (isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub)) or is_size(each)
        for place in places
        if place is not None
        for each in walk(place)
        if isinstance(each, ast.expr)
    )
