"""Sums that begin as numbers: `total += loss` of a number gives a new tensor, and writes into the tensor that an earlier round gave.

torch.cond takes no function that writes into what it is given: `total = total + loss` does the same under a name of its own, where
nothing else holds the tensor that is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from exportlens.inference import knowledge
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL, SEVERAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.outside_writes import Arm
from exportlens.source.walking import walk

# What gives a number for what it is given.
_NUMBERS = frozenset({"abs", "bool", "float", "int", "len", "round", "str", "print"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def add_anew(source: Source, arms: Sequence[Arm], names: Iterable[str], kinds: Kinds) -> None:
    """Let the arms compute anew what of `names`, outputs of the branch, may be a number or a tensor before it. Raises Refused where
    something else may hold the tensor that they write to."""
    mixed = {name for name in names if _may_be_number(source, arms[0].statements[0], name, kinds)}
    for arm in arms:
        for node in (each for statement in arm.statements for each in walk(statement)):
            if (
                isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Name)
                and node.target.id in mixed
            ):
                _refuse_held(source, node, node.target.id, kinds)
                begin, end = source.start(node.value), source.end(node.value)
                # The value may hold what is replaced itself: only what stands around it is.
                anew = source.computed(node, "")
                closed, text = ")" * anew.endswith("()"), f"{node.target.id} = {anew.removesuffix(')')}"
                arm.replacements += [
                    Replacement(source.start(node), begin, text),
                    Replacement(end, end, closed),
                ]


def _may_be_number(source: Source, statement: ast.stmt, name: str, kinds: Kinds) -> bool:
    """Whether `name` may be a number before `statement`, or the tensor that an earlier round made of one."""
    kind = kinds.names.get(name)
    if kind is None or kind.what not in ("unknown", "number"):
        return False
    return kind.type == SEVERAL or _begins_as_number(source, statement, name)


def _begins_as_number(source: Source, node: ast.AST, name: str) -> bool:
    """Whether all that the function binds `name` to is numbers, and what is computed of it."""
    function = source.enclosing_function(node)
    if function is None or name in {each.arg for each in arguments(function.args)}:
        return False
    values = [
        source.parents[each]
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    given = [each.value for each in values if isinstance(each, ast.Assign)]
    computed = all(isinstance(each, (ast.BinOp, ast.Constant)) for each in given)
    return (
        computed
        and all(isinstance(each, (ast.Assign, ast.AugAssign)) for each in values)
        and any(isinstance(each, ast.Constant) and isinstance(each.value, (int, float)) for each in given)
    )


def _refuse_held(source: Source, node: ast.AugAssign, name: str, kinds: Kinds) -> None:
    """Raise Refused where the tensor that an earlier round bound `name` to may be known by anything else."""
    roots = kinds.names[name].roots or frozenset()
    others = [one for one, kind in kinds.names.items() if one != name and roots & (kind.roots or frozenset())]
    known = kinds.names[name].roots is not None and all(root.startswith(LOCAL) for root in roots)
    if (others or not known) and not _begins_as_number(source, node, name):
        other = f"`{min(others)}`" if others else "something else"
        raise Refused(f"`{source.of(node)}` writes to a tensor that {other} may hold, too")
    for loop in _rounds(source, node, name):
        for each in walk(loop):
            if (
                isinstance(each, ast.Name)
                and each.id == name
                and isinstance(each.ctx, ast.Load)
                and _is_held(source, each, kinds)
            ):
                line = source.of(source.enclosing_statement(each))
                raise Refused(f"`{source.of(node)}` writes to a tensor that `{line}` holds, too")


def _rounds(source: Source, node: ast.AST, name: str) -> Iterator[ast.AST]:
    """The loops around `node`, from the inner ones on, up to the one each round of which begins with a number."""
    for each in source.ancestors(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(each, _LOOPS):
            yield each
            if any(_begins(statement, name) for statement in each.body):
                return


def _begins(statement: ast.stmt, name: str) -> bool:
    """Whether `statement` is `name = 0.0`."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and any(isinstance(each, ast.Name) and each.id == name for each in statement.targets)
    )


def _is_held(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether something may keep the tensor at `node`: another name, a list, or a function that is not known."""
    inner: ast.AST = node
    outer = source.parents[node]
    while True:
        if isinstance(outer, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue, ast.Return)):
            return False
        if isinstance(outer, (ast.If, ast.While, ast.Assert)) or (
            isinstance(outer, ast.IfExp) and outer.test is inner
        ):
            return False
        if isinstance(outer, ast.AugAssign):
            return isinstance(inner, (ast.List, ast.Tuple, ast.Set, ast.Dict))
        if isinstance(outer, ast.Subscript) and outer.slice is inner:
            return False
        if isinstance(outer, ast.Assign) and all(isinstance(each, ast.Subscript) for each in outer.targets):
            # A tensor copies what it is given for some of its elements.
            owners = [each.value for each in outer.targets if isinstance(each, ast.Subscript)]
            return not all(kinds.of(each).what == "tensor" for each in owners)
        if isinstance(outer, ast.Attribute):
            call = source.parents[outer]
            op = knowledge.lookup_method(outer.attr) if isinstance(call, ast.Call) else None
            if op is not None and not any(each.aliases or each.mutates for each in (op, *op.overloads)):
                return False
        if isinstance(outer, ast.Call) and inner is not outer.func:
            name = kinds.qualified(outer.func)
            op = None if name is None else knowledge.lookup_function(name)
            if op is not None and not any(each.aliases or each.mutates for each in (op, *op.overloads)):
                return False
            if isinstance(outer.func, ast.Name) and outer.func.id in _NUMBERS:
                return False
        if isinstance(outer, ast.stmt):
            return True
        inner, outer = outer, source.parents[outer]
