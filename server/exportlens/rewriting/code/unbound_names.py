"""Names that are not bound on every way: torch.cond traces both sides, whatever the data says."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import arguments, bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def refuse_unbound(
    source: Source,
    node: ast.If | ast.IfExp,
    function: Function,
    side: Sequence[ast.AST],
    kinds: Kinds,
    torch: str,
) -> None:
    """Raise Refused where `side`, one way through `node`, reads a name that only another one binds, or that data binds before."""
    own = set(bound(side))
    functions = [
        each for each in source.ancestors(node) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    known = own.union(
        *(set(bound(each.body)) | {one.arg for one in arguments(each.args)} for each in functions)
    )
    statement = source.enclosing_statement(node)
    certain = certainly_bound_before(function, statement)
    certain |= {each.target.id for each in walk(node.test) if isinstance(each, ast.NamedExpr)}
    others = [each for each in walk(functions[-1]) if isinstance(each, ast.FunctionDef)]
    missing = (reads(side) - known) & set[str]().union(*(bound(each.body) for each in others))
    missing |= reads(side) & (set(bound([node])) - own - certain)
    if missing:
        raise Refused(f"`{min(missing)}` is bound on another way than the one that reads it")
    for name in sorted(reads(side) & (set(bound(function.body)) - certain - own)):
        if _is_bound_by_data(source, statement, function, name, kinds, torch):
            raise Refused(f"`{name}` is only bound where data says so, and both ways are traced")


def refuse_unbound_operands(source: Source, node: ast.BoolOp, kinds: Kinds, torch: str) -> None:
    """Raise Refused where a later operand, which torch's operators always compute, reads a name that only data may have bound."""
    function = source.enclosing_function(node)
    if function is None:
        return
    statement = source.enclosing_statement(node)
    certain = certainly_bound_before(function, statement) | set(bound(node))
    for name in sorted(reads(node.values[1:]) & (set(bound(function.body)) - certain)):
        if _is_bound_by_data(source, statement, function, name, kinds, torch):
            raise Refused(f"`{name}` is only bound where data says so, and torch's operators ask both sides")


def _is_bound_by_data(
    source: Source, statement: ast.stmt, function: Function, name: str, kinds: Kinds, torch: str
) -> bool:
    """Whether all that binds `name` before `statement` stands in another branch that tensor data decides."""
    above = {statement, *source.ancestors(statement)}
    predicates = Predicates(source, kinds, torch)
    binding = [
        each
        for each in walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With))
        and name in bound(each)
        and source.start(each) < source.start(statement)
    ]
    return bool(binding) and all(
        any(
            isinstance(outer, ast.If) and outer not in above and predicates.from_data(outer.test)
            for outer in source.ancestors(each)
        )
        for each in binding
    )
