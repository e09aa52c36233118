"""A loop over a tensor whose length depends on data."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.knowledge import lookup_function, lookup_method
from exportlens.inference.places import Conversion, Iteration, Place
from exportlens.inference.values import Function, Tensor, Value, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.lists.listed_items import index_of_listed, items_of_listed
from exportlens.rewriting.loops.found_loops import NO_OPERATOR, rewrite_found
from exportlens.rewriting.sizes.sizes import shape_for_listed_length
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import walk

from exportlens_rules.reading import is_data, words

# How many steps what is listed is followed back to what was found.
_MOST_STEPS = 12


class DataDependentIteration(Rule):
    """A loop runs over the rows of a tensor that has as many rows as the data says.

    ## What it does
    Finds loops over `torch.nonzero(x)`, `torch.unique(x)`, `x[mask]` and the like, and `.tolist()` of them, also where they are cut at their ends
    or joined with others, `found[1:].tolist()`. Loops over tensors with a size that is known while tracing are unrolled and fine.

    ## Why it matters
    Tracing unrolls loops and needs to know how often they run.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.unique.html
    """

    code = "EXL113"
    name = "data-dependent-iteration"
    outcome = Outcome(FAILS, FAILS)
    places = (Conversion, Iteration)
    examples = (
        Example(
            bad="""
def forward(self, x):
    total = x.sum()
    for index in torch.nonzero(x > 0):
        total = total + x[index[0], index[1]]
    return total
""",
            good="""
def forward(self, x):
    return x.sum() + x[x > 0].sum()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    counts = torch.bincount((x > 0).long().flatten(), minlength=2).tolist()
    return x * counts[0]
""",
            good="""
def forward(self, x):
    counts = torch.bincount((x > 0).long().flatten(), minlength=2)[:2].tolist()
    return x * counts[0]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Conversion) and place.to == "list":
            if all(map(_may_have_open_rows, options(place.value))) and _is_whole(place):
                yield self.report(
                    place,
                    f"`{words(place.node)}` makes a list whose length depends on tensor data: torch.export demands a number "
                    "of Python. Keep the tensor, or take as many of its elements as are known.",
                )
            return
        if isinstance(place, Conversion):
            found = place.to == "range" and not isinstance(place.node, ast.Call) and is_data(place.value)
        else:
            assert isinstance(place, Iteration)
            found = place.context in ("for", "comprehension") and all(
                map(_rows_unknown, options(place.iterable))
            )
        if found:
            yield self.report(
                place,
                f"A loop over `{words(place.node)}`, whose length depends on tensor data: torch.export "
                "cannot unroll it. "
                "Compute on the whole tensor at once.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if isinstance(report.place, Iteration):
            return rewrite_found(report.place, context)
        if isinstance(report.place, Conversion) and report.place.to == "list":
            for rewrite in (items_of_listed, index_of_listed):
                items = rewrite(report.place, context)
                if isinstance(items, Fix):
                    return items
        counted = (
            shape_for_listed_length(report.place, context) if isinstance(report.place, Conversion) else None
        )
        if isinstance(counted, Fix) or not isinstance(report.place, Conversion):
            return counted if isinstance(counted, Fix) else Refusal(NO_OPERATOR)
        return rewrite_found(report.place, context)


def _is_whole(place: Conversion) -> bool:
    """Whether a list is made of all that an operator found: of rows that were taken from it, or of what was computed with it,
    the number may be known.
    """
    node = place.node
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _is_found(node.func.value, place.site.function)
    )


def _is_found(node: ast.expr, function: Function | None, depth: int = 0) -> bool:
    """Whether an expression is what `nonzero`, `unique`, `bincount` or a mask gives, flattened, converted, joined with others, cut at
    its ends, or computed with a number or with what was found as well, at most."""
    if depth > _MOST_STEPS:
        return False
    if isinstance(node, ast.Name) and function is not None:
        last = _last_bound(node, function.node)
        values = _bound_to(node.id, function.node) if last is None else [last]
        # Where the last binding is not certain, what it is computed of may be the name itself.
        inner = None if last is None else function
        return bool(values) and all(_is_found(value, inner, depth + 1) for value in values)
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
        numbers = [isinstance(each, ast.Constant) for each in sides]
        if sum(numbers) == 1:
            return _is_found(sides[numbers.index(False)], function, depth + 1)
        return all(_is_found(each, function, depth + 1) for each in sides)
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Compare):
            return True
        if (isinstance(node.slice, ast.Tuple) and _takes_column(node.slice)) or _cuts_ends(node.slice):
            return _is_found(node.value, function, depth + 1)
        return isinstance(node.slice, ast.Constant) and _gives_several(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    if name in ("cat", "concat") and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
        return any(_is_found(each, function, depth + 1) for each in node.args[0].elts)
    if isinstance(node.func, ast.Attribute) and name in _KEEPING:
        return _is_found(node.func.value, function, depth + 1)
    return _finds(name) or _is_given(node, name, function, depth)


def _is_given(node: ast.Call, name: str, function: Function | None, depth: int) -> bool:
    """Whether `node` calls another method of the class, which returns what was found."""
    owner = None if function is None else function.owner
    if function is None or owner is None or dotted(node.func) != f"self.{name}":
        return False
    methods = [
        each
        for each in getattr(owner.node, "body", [])
        if isinstance(each, ast.FunctionDef) and each.name == name and each is not function.node
    ]
    returns = [each for method in methods for each in walk(method) if isinstance(each, ast.Return)]
    return (
        len(methods) == 1
        and bool(returns)
        and all(
            each.value is not None and _is_found(each.value, replace(function, node=methods[0]), depth + 1)
            for each in returns
        )
    )


def _cuts_ends(index: ast.expr) -> bool:
    """Whether an index leaves out so many at the beginning and at the end: `found[1:]`, `found[:-1]`."""
    if not isinstance(index, ast.Slice) or index.step is not None:
        return False
    upper = index.upper
    to_end = upper is None or (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub))
    return to_end and (index.lower is None or isinstance(index.lower, ast.Constant))


def _takes_column(index: ast.Tuple) -> bool:
    """Whether an index takes all rows, of one column: `found[:, 0]`."""
    first, *others = index.elts
    return (
        isinstance(first, ast.Slice)
        and first.lower is first.upper is first.step is None
        and len(others) == 1
        and isinstance(others[0], ast.Constant)
        and type(others[0].value) is int
    )


def _bound_to(name: str, function: ast.AST) -> list[ast.expr]:
    """What a function assigns to a name, at once or as a part."""
    return [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == name for t in node.targets for part in walk(t))
    ]


def _last_bound(name: ast.Name, function: ast.AST) -> ast.expr | None:
    """What the last statement before `name` that certainly ran has bound to it; None where that is not certain."""
    last: ast.expr | None = None
    block: Sequence[ast.stmt] = getattr(function, "body", []) if not isinstance(function, ast.Lambda) else []
    while block:
        around: ast.stmt | None = None
        for statement in block:
            if any(each is name for each in walk(statement)):
                around = statement
                break
            if isinstance(statement, ast.Assign) and list(map(ast.unparse, statement.targets)) == [name.id]:
                last = statement.value
            elif name.id in bound([statement]):
                last = None
        if isinstance(around, (ast.For, ast.While, ast.Try)) and name.id in bound([around]):
            return None
        blocks = (getattr(around, part, []) for part in ("body", "orelse"))
        block = next(
            (each for each in blocks if any(one is name for one in (n for s in each for n in walk(s)))), []
        )
    return last


def _gives_several(node: ast.expr) -> bool:
    """Whether a call gives a tuple of what it found: `torch.where(x > 0)`, `x.nonzero(as_tuple=True)`."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name == "where" or (
        _finds(name)
        and any((keyword.arg or "").startswith(("as_tuple", "return_")) for keyword in node.keywords)
    )


def _finds(name: str) -> bool:
    """Whether a function or method of torch has a result whose size depends on data."""
    known = (lookup_method(name), lookup_function(f"torch.{name}"))
    return any(op is not None and op.dynamic_shape for op in known)


# Methods that leave the number of elements as it is.
_KEEPING = frozenset(
    {"squeeze", "flatten", "ravel", "t", "long", "int", "float", "double", "bool", "to", "cpu", "cuda", "detach", "contiguous", "clone"}
)  # fmt: skip


def _may_have_open_rows(value: Value) -> bool:
    """Whether the number of rows depends on data, also where it is not known whether they are numbers or rows of numbers."""
    return _rows_unknown(value) or (isinstance(value, Tensor) and value.unbacked and value.rank is None)


def _rows_unknown(value: Value) -> bool:
    """Whether the number of rows depends on data: of a list of values, or of indices as of `nonzero`."""
    if not isinstance(value, Tensor) or not value.unbacked or value.origin == "constant":
        return False
    return value.rank == 1 or (value.rank == 2 and value.dtype == "int64")
