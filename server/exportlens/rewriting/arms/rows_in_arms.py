"""Loops over the rows of a tensor in the arms of torch.cond and the bodies of while_loop, where the tensor comes from outside.

Measured on torch 2.13: Python's iteration over a tensor that an arm takes in makes the rows inputs of the arm as well, which share
memory with the tensor, and torch refuses that, in eager, too. `x.unbind()` is an operator of the arm, and gives the same rows.

    def if_true(y=y):                    def if_true(y=y):
        for row in x:            ->          for row in x.unbind():
            y = y + row                          y = y + row
        return y                             return y
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.liveness import given_to_operators
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

_ROWS = ".unbind()"
# What goes through each of its arguments, and what goes through its first.
_EACH = frozenset({"zip", "chain"})
_FIRST = frozenset(
    {"enumerate", "reversed", "list", "tuple", "iter", "sorted", "sum", "max", "min", "any", "all", "set"}
)


def rows_unbound(before: Source, node: ast.AST, text: str, kinds: Kinds) -> str:
    """`text`, made of `before`, in which the arms and bodies in the function around `node` go through rows by an operator; `kinds`
    are those at `node`."""
    source = Source(text)
    function = source.same_function(before, node)
    if function is None:
        return text
    swaps: dict[tuple[int, int], Replacement] = {}
    for arm in arms_given(source, function):
        own = set(bound(arm.body)) if isinstance(arm, ast.FunctionDef) else set()
        own -= {each.arg for each in arguments(arm.args)}
        outermost = _statement_in(source, function, arm)
        now = kinds_before(function, outermost, kinds)
        for each in walk(arm):
            # Rows of which data says how many there are become rounds of while_loop where a loop goes through them.
            for taken, way, loops in (*_gone_through(each), *_handed_on(each, now)):
                name = dotted(taken) or ""
                if not name or name.partition(".")[0] in own:
                    continue
                found = [kinds.of(taken), now.of(taken)]
                if isinstance(taken, ast.Name):
                    copied = _copied_of(source, arm, taken.id)
                    found += [kinds.of(copied), now.of(copied)]
                if any(one.what == "tensor" for one in found) and not (
                    loops and any(map(_has_open_rows, found))
                ):
                    swap = Replacement(source.end(taken), source.end(taken), way)
                    swaps[(swap.start, swap.end)] = swap
    return replaced(text, swaps.values()) if swaps else text


def _has_open_rows(kind: Kind) -> bool:
    """Whether tensor data says how many rows there are, as far as is known."""
    return length_from_data(kind) and not (isinstance(kind.value, Tensor) and (kind.value.open_dim or 0) > 0)


def _copied_of(source: Source, arm: ast.AST, name: str) -> ast.Name:
    """What an arm around `arm` copies into `name`, which is a name of that arm alone, by `name = other.clone()`; else `name`."""
    function = source.enclosing_function(arm)
    while function is not None:
        values = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
        made = [each for each in values if not isinstance(each.ctx, ast.Load)]
        if len(made) == 1:
            parent = source.parents[made[0]]
            if (
                isinstance(parent, ast.Assign)
                and isinstance(parent.value, ast.Call)
                and isinstance(parent.value.func, ast.Attribute)
                and parent.value.func.attr == "clone"
                and isinstance(parent.value.func.value, ast.Name)
            ):
                name = parent.value.func.value.id
        function = source.enclosing_function(function)
    return ast.Name(name, ast.Load())


def arms_given(source: Source, function: Function) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """What `function` gives to operators, as torch.cond and while_loop, in functions inside of it, too."""
    for each in walk(function):
        if isinstance(each, (ast.FunctionDef, ast.Lambda)) and each is not function:
            around = source.enclosing_function(each)
            given = set() if around is None else given_to_operators(around)
            if each in given or (isinstance(each, ast.FunctionDef) and each.name in given):
                yield each


def _statement_in(source: Source, function: Function, node: ast.AST) -> ast.stmt:
    """The statement of `function`, not of a function in it, that is or holds `node`."""
    found = node
    for outer in source.ancestors(node):
        if outer is function:
            break
        if source.enclosing_function(outer) is function and isinstance(outer, ast.stmt):
            found = outer
            break
    return source.enclosing_statement(found)


def _gone_through(node: ast.AST) -> Iterator[tuple[ast.expr, str, bool]]:
    """What Python iterates over at `node`, what makes it rows, and whether as often as it has rows: names take a number of them."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter, _ROWS, True
    elif isinstance(node, ast.Starred):
        yield node.value, _ROWS, True
    elif isinstance(node, ast.Assign):
        taken = [each.elts for each in node.targets if isinstance(each, (ast.Tuple, ast.List))]
        if taken:
            yield node.value, _ROWS, any(isinstance(each, ast.Starred) for parts in taken for each in parts)
    elif isinstance(node, ast.Call):
        name = (dotted(node.func) or "").rpartition(".")[2]
        if name in _EACH:
            yield from ((each, _ROWS, True) for each in node.args)
        elif isinstance(node.func, ast.Name) and name in _FIRST and len(node.args) == 1:
            yield node.args[0], _ROWS, True


def _handed_on(node: ast.AST, kinds: Kinds) -> Iterator[tuple[ast.expr, str, bool]]:
    """What a call of a function of the file is given, and iterates over: a copy is a tensor of the arm's own."""
    function = kinds.functions.get(dotted(node.func) or "") if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or function is None:
        return
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(node.func, ast.Attribute) and names[:1] == ["self"]:
        names = names[1:]
    given = dict(zip(names, node.args, strict=False)) | {each.arg or "": each.value for each in node.keywords}
    gone: dict[str | None, bool] = {}
    for each in walk(function):
        for taken, _, loops in _gone_through(each):
            gone[dotted(taken)] = gone.get(dotted(taken), False) or loops
    for name, value in given.items():
        if name in gone:
            yield value, ".clone()", gone[name]
