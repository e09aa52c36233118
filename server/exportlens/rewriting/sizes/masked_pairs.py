"""Two tensors that one mask picks, each by itself: torch gives each a size of its own, and cannot say that they are equal.

A mask that is one tensor in both picks is looked through once, and the sizes are one (measured on torch 2.13); what
`masked_select` gives, or a mask that is computed anew, has its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.memory.moving import writes
from exportlens.rewriting.sizes.sizes import is_inner

# Each row gives one row, whatever is in it.
_KEEPING = frozenset(
    [
        "float",
        "double",
        "half",
        "long",
        "int",
        "bool",
        "detach",
        "contiguous",
        "clone",
        "sigmoid",
        "exp",
        "log",
        "abs",
        "to",
        "type",
        "cpu",
        "cuda",
        "clamp",
    ]
)
# These raise for tensors of different sizes; the others may broadcast them.
_EQUAL_ONLY = frozenset(
    {"binary_cross_entropy", "binary_cross_entropy_with_logits", "BCELoss", "BCEWithLogitsLoss"}
)
_COMPARISONS = ("eq", "ne", "gt", "lt", "ge", "le")
_SIMPLE = (ast.Assign, ast.Return, ast.Expr, ast.AugAssign, ast.AnnAssign)


@dataclass(frozen=True)
class _Pick:
    """`mask` picks what the name or expression at hand is of: `statement` does it, by `masked_select` where `selected`. The mask is
    computed there where it is `anew`. What was picked may have got another shape where not `kept`."""

    mask: ast.expr
    statement: ast.stmt
    selected: bool
    anew: bool
    kept: bool

    def is_own(self, other: _Pick) -> bool:
        """Whether torch gives both a size of their own."""
        if self.selected or other.selected:
            return True
        return self.anew and other.anew

    def is_same(self, source: Source, other: _Pick) -> bool:
        """Whether as many rows are picked, as far as the text can tell."""
        if not (self.kept and other.kept) or ast.unparse(self.mask) != ast.unparse(other.mask):
            return False
        if any(
            isinstance(each, (ast.Call, ast.NamedExpr)) and not _is_view(each) for each in ast.walk(self.mask)
        ):
            return False
        if self.statement is other.statement:
            return True
        first, last = sorted((self.statement, other.statement), key=source.start)
        block, index = source.block_of(first)
        if last not in block:
            return False
        between = block[index : block.index(last)]
        names = reads(self.mask)
        return not names & set(bound(between)) and not _are_written(names, between)


def unequal_for_torch(place: Call) -> bool:
    """Whether the first two arguments of the call are picked in two ways of which torch does not know that they pick as many."""
    try:
        source = Source(place.site.chunk.text)
        node = source.find(place.node)
        picks = _picks(source, node)
    except (LookupError, SyntaxError):
        return False
    return picks is not None and picks[0].is_own(picks[1])


def check_pair(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch._check(a.shape[0] == b.shape[0])` before the statement that gives both to the call."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        statement = source.enclosing_statement(node)
        picks = _picks(source, node)
        if picks is None or not isinstance(node, ast.Call):
            raise Refused("what picks the rows is not found in this function")
        for position, name in enumerate(("input", "target")):
            given = place.argument(position, name)
            if not isinstance(given, Tensor) or given.open_dim != 0:
                raise Refused("which dimension depends on the data is not known")
        short = place.name.rpartition(".")[2]
        if short not in _EQUAL_ONLY and not picks[0].is_same(source, picks[1]):
            raise Refused(
                "that both masks pick as many rows is not provable here: pick both by one mask that has a name"
            )
        if not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
            raise Refused("the call is a part of a compound statement")
        given_all = [statement.value] if statement.value is not None else []
        if is_inner(source, node, statement) or writes(given_all):
            raise Refused("the call does not run whenever its statement does")
        lines: list[str] = []
        swaps: list[Replacement] = []
        names: list[str] = []
        taken = draft.taken(source.tree)
        for each in node.args[:2]:
            if isinstance(each, ast.Name):
                names.append(each.id)
                continue
            names.append(fresh("picked", taken))
            lines.append(f"{names[-1]} = {source.of(each)}")
            swaps.append(source.swap(each, names[-1]))
        lines.append(f"{draft.torch}._check({names[0]}.shape[0] == {names[1]}.shape[0])")
        start = source.start(statement)
        tail = source.newline + source.indent_of(statement)
        swaps.append(Replacement(start, start, "".join(line + tail for line in lines)))
        return draft.replace("Say that as many are picked of both", swaps)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _picks(source: Source, node: ast.AST) -> tuple[_Pick, _Pick] | None:
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return None
    function = source.enclosing_function(node)
    if function is None:
        return None
    statement = source.enclosing_statement(node)
    found = [_pick(source, function, each, statement, 0) for each in node.args[:2]]
    first, second = found
    return None if first is None or second is None else (first, second)


def _pick(
    source: Source, function: Function, value: ast.expr, statement: ast.stmt, depth: int
) -> _Pick | None:
    """What picked `value`, an expression of `statement`; None where that is not seen."""
    kept = True
    while True:
        inner = _inside(value)
        if inner is None:
            break
        kept = kept and inner[1]
        value = inner[0]
    if isinstance(value, ast.Subscript) and not isinstance(value.slice, (ast.Tuple, ast.Slice, ast.Constant)):
        anew = _is_anew(source, function, value.slice, statement)
        return _Pick(value.slice, statement, False, anew, kept)
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "masked_select"
    ):
        given = (
            value.args[-1:]
            if not value.keywords
            else [key.value for key in value.keywords if key.arg == "mask"]
        )
        return _Pick(given[0], statement, True, False, kept) if given else None
    if isinstance(value, ast.Name) and depth < 5:
        bound_to = _bound_to(source, function, value.id, statement)
        if bound_to is not None:
            found = _pick(source, function, *bound_to, depth + 1)
            if found is not None:
                return replace(found, kept=found.kept and kept)
    return None


def _inside(value: ast.expr) -> tuple[ast.expr, bool] | None:
    """Of what tensor `value` is made row by row, and whether its rows are still its first dimension."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    name = value.func.attr
    if name in _KEEPING:
        # torch.sigmoid(t), or t.sigmoid().
        is_function = isinstance(value.func.value, ast.Name) and value.func.value.id in ("torch", "F")
        if is_function:
            return (value.args[0], True) if value.args else None
        return value.func.value, True
    if name in ("view", "reshape", "squeeze", "flatten", "unsqueeze"):
        return value.func.value, name == "unsqueeze" and ast.unparse(
            value.args[0]
        ) == "1" if value.args else False
    return None


def _bound_to(
    source: Source, function: Function, name: str, statement: ast.stmt
) -> tuple[ast.expr, ast.stmt] | None:
    """What `name` is bound to where `statement` runs, and the statement that binds it."""
    current: ast.AST = statement
    while current is not function and isinstance(current, ast.stmt):
        block, index = source.block_of(current)
        for each in reversed(block[:index]):
            if name in bound(each):
                return _value_of(each, name)
        current = source.parents[current]
        if isinstance(current, (ast.For, ast.While, ast.Try, ast.ExceptHandler)) and name in bound(current):
            return None
    return None


def _value_of(statement: ast.stmt, name: str) -> tuple[ast.expr, ast.stmt] | None:
    if isinstance(statement, ast.If) and not statement.orelse:
        # What follows has a size from data only where its body has run.
        for each in reversed(statement.body):
            if name in bound(each):
                return _value_of(each, name)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return value, statement
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Name) and one.id == name:
                return other, statement
    return None


def _is_anew(source: Source, function: Function, mask: ast.expr, statement: ast.stmt) -> bool:
    """Whether the expression makes a mask, where `mask.bool()` may be the mask and `nonzero` knows what it found before.

    As many rows as there are indices are picked by `found + 1` and by `found.view(-1)`: what is looked at must be a mask.
    """
    if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr == "view":
        owner = mask.func.value
        made = _bound_to(source, function, owner.id, statement) if isinstance(owner, ast.Name) else None
        return _is_comparison(owner if made is None else made[0])
    return _is_comparison(mask)


def _is_comparison(node: ast.expr) -> bool:
    """Whether the expression compares, or combines by bits what is taken for masks."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _COMPARISONS
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    )


def _is_view(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (*_KEEPING, "view", "reshape", "squeeze", "flatten", *_COMPARISONS)
    )


def _are_written(names: set[str], statements: Sequence[ast.stmt]) -> bool:
    """Whether the text writes in place to one of `names`."""
    return any(names & reads(each) for each in _written(statements))


def _written(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        for each in ast.walk(statement):
            if isinstance(each, (ast.Subscript, ast.Attribute)) and not isinstance(each.ctx, ast.Load):
                yield each.value
            elif isinstance(each, ast.Call) and writes([each]):
                yield each.func
