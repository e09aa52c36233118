"""Rows that a mask picks in an arm of a branch which only runs where the mask picks some.

Some operators of torch.cond's arms ask whether they are given any rows (the negative log likelihood and torch.cdist do,
measured on torch 2.13), and tracing cannot say. Where the condition of the branch says it, `torch._check` hands it on. That
may only be said of rows that are picked inside of the arm: of others torch asserts it of the whole program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.names import arguments, bound, dotted
from exportlens.rewriting.text import Function, Source

_ASKING = frozenset({"cross_entropy", "nll_loss", "cdist", "logsumexp"})
_ASKING_MODULES = frozenset({"CrossEntropyLoss", "NLLLoss"})
_COUNTS = frozenset({"sum", "count_nonzero"})
# What makes another tensor of a mask, of which torch does not know that it picks as many rows.
_OTHERS = frozenset(
    {
        "any",
        "all",
        "sum",
        "mean",
        "float",
        "long",
        "int",
        "double",
        "shape",
        "size",
        "numel",
        "unsqueeze",
        "view",
        "expand_as",
    }
)
_TAKING = frozenset({"any", "all", "sum", "logical_and", "logical_or", "logical_not", "count_nonzero"})
_CONVERSIONS = frozenset({"item", "float", "long", "int", "detach", "cpu", "double", "bool"})


def checks(
    source: Source,
    function: Function,
    branch: ast.If,
    statements: Sequence[ast.stmt],
    taken: bool,
    torch: str,
) -> list[str]:
    """The lines that say, at the start of the arm of `statements`, which masks pick rows: the arm runs where `branch`'s
    condition is `taken`."""
    if not any(_asks(source, each) for statement in statements for each in ast.walk(statement)):
        return []
    written = set(bound(statements))
    return [
        f"{torch}._check({mask}.nonzero().shape[0] > 0)"
        for mask in dict.fromkeys(_masks(source, function, branch.test, taken))
        if mask not in written and _picks_here_alone(source, function, mask, statements)
    ]


def _asks(source: Source, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = (dotted(node.func) or "").rpartition(".")[2] or getattr(node.func, "attr", "")
    if name in _ASKING:
        return True
    return isinstance(node.func, ast.Attribute) and any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and (dotted(each.value.func) or "").rpartition(".")[2] in _ASKING_MODULES
        and any(isinstance(one, ast.Attribute) and one.attr == name for one in each.targets)
        for each in ast.walk(source.tree)
    )


def _masks(source: Source, function: Function, test: ast.expr, taken: bool) -> Iterator[str]:
    """The names of tensors of which some element is true where `test` is `taken`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _masks(source, function, test.operand, not taken)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == taken:
            for each in test.values:
                yield from _masks(source, function, each, taken)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        mask = _counted(source, function, test.left)
        if mask is not None and _says_some(test.ops[0], test.comparators[0], taken):
            yield mask
    elif taken:
        mask = _called_on(test, {"any"}) or _counted(source, function, test)
        if mask is not None:
            yield mask


def _says_some(operator: ast.cmpop, bound_: ast.expr, taken: bool) -> bool:
    """Whether a sum compared so is not 0."""
    value = bound_.value if isinstance(bound_, ast.Constant) else None
    if not isinstance(value, (int, float)):
        return False
    if taken:
        return (
            (isinstance(operator, ast.Gt) and value >= 0)
            or (isinstance(operator, ast.GtE) and value > 0)
            or (isinstance(operator, ast.NotEq) and value == 0)
        )
    # Of what is no number at all `not (s < 1)` says nothing: the sum of a mask is one.
    return isinstance(operator, ast.Eq) and value == 0


def _counted(source: Source, function: Function, node: ast.expr) -> str | None:
    """The mask whose elements `node` adds up, be it through a name that is bound once."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CONVERSIONS
        and not node.args
    ):
        node = node.func.value
    if isinstance(node, ast.Name):
        bindings = _bindings(function, node.id)
        parent = source.parents[bindings[0]] if len(bindings) == 1 else None
        if not isinstance(parent, ast.Assign) or isinstance(parent.value, ast.Name):
            return None
        mask = _counted(source, function, parent.value)
        # The mask must be what it was when it was counted.
        return mask if mask is not None and len(_bindings(function, mask)) < 2 else None
    return _called_on(node, _COUNTS)


def _bindings(function: Function, name: str) -> list[ast.Name]:
    return [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]


def _called_on(node: ast.expr, names: set[str] | frozenset[str]) -> str | None:
    """The name `m` of `m.any()`, `m.long().any()` and `torch.any(m)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names):
        return None
    if node.keywords or len(node.args) > 1:
        return None
    inner = node.args[0] if node.args else node.func.value
    if node.args and dotted(node.func.value) is None:
        return None
    while (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in _CONVERSIONS
        and not inner.args
    ):
        inner = inner.func.value
    return inner.id if isinstance(inner, ast.Name) else None


def _picks_here_alone(source: Source, function: Function, mask: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether the arm picks by `mask`, and what is not an arm of a branch that asks it does not, nor may hand it on to what
    does."""
    if function.name != "forward" and mask in {each.arg for each in arguments(function.args)}:
        return False
    inside = {id(each) for statement in statements for each in ast.walk(statement)}
    found = False
    for each in ast.walk(function):
        if _writes(each, mask):
            return False
        if id(each) in inside:
            found = found or _is_pick(each, mask)
        elif (
            isinstance(each, ast.Name)
            and each.id == mask
            and isinstance(each.ctx, ast.Load)
            and source.enclosing_function(each) is function
            and not _is_only_asked(source, each)
            and not any(_asks_for(source, function, outer, mask) for outer in source.ancestors(each))
        ):
            return False
    return found


def _asks_for(source: Source, function: Function, node: ast.AST, mask: str) -> bool:
    """Whether `node` is a branch that asks whether `mask` picks rows: it becomes an operator as well."""
    return isinstance(node, ast.If) and any(
        mask in _masks(source, function, node.test, taken) for taken in (True, False)
    )


def _is_only_asked(source: Source, name: ast.Name) -> bool:
    """Whether what is made of the mask there is another tensor, or none."""
    parent = source.parents[name]
    if isinstance(parent, ast.Attribute):
        return parent.attr in _OTHERS
    if isinstance(parent, ast.Call):
        return (dotted(parent.func) or "").rpartition(".")[2] in _TAKING
    return isinstance(parent, (ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp))


def _writes(node: ast.AST, mask: str) -> bool:
    """Whether `node` changes the tensor of that name in place."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return isinstance(node.value, ast.Name) and node.value.id == mask
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == mask
    )


def _is_pick(node: ast.AST, mask: str) -> bool:
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(each, ast.Name) and each.id == mask for each in parts)
    return (
        isinstance(node, ast.Call)
        and (dotted(node.func) or str(getattr(node.func, "attr", ""))).rpartition(".")[2]
        in ("masked_select", "nonzero", "where")
        and any(isinstance(each, ast.Name) and each.id == mask for each in ast.walk(node))
    )
