"""Lists that are made of a tensor, and of which only items are read: `counts = torch.bincount(x).tolist()`, `counts[i]`, or that loops
go through.

The tensor is kept, and each item read where it is used: torch cannot make a list whose length data tells.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Conversion
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.branches.around import refuse_caught_index
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, repeatable


def items_of_listed(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`counts = torch.bincount(x)`, `counts[i].item()` for `counts = torch.bincount(x).tolist()`, `counts[i]`."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not all(isinstance(each, Tensor) and each.rank == 1 for each in options(place.value)):
            raise Refused("the items of the list may be lists")
        # What a call gives no one else writes to: the list held what it was at this line.
        made = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        )
        statement, function = source.enclosing_statement(node), source.enclosing_function(node)
        if (
            not isinstance(made, ast.Call)
            or function is None
            or not isinstance(statement, ast.Assign)
            or statement.value is not node
            or len(statement.targets) != 1
            or not isinstance(statement.targets[0], ast.Name)
        ):
            raise Refused("the list does not get a name where it is made")
        name = statement.targets[0].id
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        swaps = [source.swap(node, source.of(made))]
        for each in uses:
            if each is statement.targets[0]:
                continue
            swap = _gone_through(source, each)
            item = source.parents[each]
            if swap is None and not _is_read(item):
                raise Refused(f"`{name}` is used as a list")
            if swap is None:
                refuse_caught_index(source, item)
                swap = source.swap(item, f"{source.of(item)}.item()")
            swaps.append(swap)
        if len(swaps) == 1:
            raise Refused(f"`{name}` is used as a list")
        return draft.replace(
            "Read the items where they are used", swaps, Applicability.SAFE, uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _gone_through(source: Source, use: ast.Name) -> Replacement | None:
    """What becomes of `use` where a loop goes through the list, or its length is asked; None where it is another use."""
    outer = source.parents[use]
    called = dotted(outer.func) if isinstance(outer, ast.Call) and outer.args[:1] == [use] else None
    if isinstance(outer, ast.Call) and called == "len":
        return source.swap(outer, f"{use.id}.shape[0]")
    over: ast.AST = outer if called == "enumerate" else use
    loop = source.parents[over]
    if isinstance(loop, ast.For) and loop.iter is over:
        return source.swap(use, f"{use.id}.tolist()")
    return None


def _is_read(node: ast.AST) -> bool:
    """Whether `node` reads one item of the list."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and not isinstance(node.slice, (ast.Slice, ast.Tuple))
    )


def index_of_listed(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`rows = top` for `rows = top.tolist()`, where tensors are indexed by `rows` and it is used for nothing else."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        assert isinstance(node, ast.expr)
        known = options(place.value)
        if not all(isinstance(each, Tensor) and each.rank == 1 and _is_index(each) for each in known):
            raise Refused("the list is not known to hold positions")
        made = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        )
        function = source.enclosing_function(node)
        if made is None or function is None:
            raise Refused("the list is not made by `tolist` in a function")
        reads: list[ast.expr] = [node]
        statement = source.parents[node]
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0]
            if len(statement.targets) > 1:
                raise Refused("the list gets several names")
            uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name.id]
            if any(not isinstance(each.ctx, ast.Load) for each in uses if each is not name):
                raise Refused(f"`{name.id}` is bound elsewhere, too")
            reads = [each for each in uses if each is not name]
            if not _stays(function, made):
                raise Refused(f"`{source.of(made)}` may be written to after the list is made")
        kinds = draft.kinds(getattr(place, "variables", {}))
        for each in reads:
            owner = _indexed(source, each)
            where = source.enclosing_statement(each)
            if owner is None or kinds_before(function, where, kinds).of(owner).what != "tensor":
                raise Refused("the list is used for more than to index tensors")
        if not reads:
            raise Refused("the list is not read")
        swaps = [source.swap(node, source.of(made))]
        return draft.replace("Index by the tensor", swaps, Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_index(value: Tensor) -> bool:
    """Whether the tensor indexes as the list of its items does: one of uint8 is a mask."""
    return value.dtype in ("int64", "int32", "int16", "int8")


def stays_written(function: ast.AST, listed: ast.Call, kinds: Kinds) -> bool:
    """Whether what `t.tolist()` lists is the same wherever it is computed again."""
    made = listed.func.value if isinstance(listed.func, ast.Attribute) else None
    return (
        made is not None
        and repeatable(made, kinds)
        and all(_is_untouched(function, name) or _stays(function, ast.Name(name)) for name in reads(made))
    )


def _is_untouched(function: ast.AST, name: str) -> bool:
    """Whether `name` is an argument that nothing is bound to or written into."""
    for each in ast.walk(function):
        target: ast.AST | None = None
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load):
            return False
        if isinstance(each, ast.AugAssign):
            target = each.target
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            target = each.value
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr.endswith("_")
        ):
            target = each.func.value
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and target.id == name:
            return False
    return True


def _stays(function: ast.AST, made: ast.expr) -> bool:
    """Whether `made`, what a call gives or a name that is bound once, is never written in place."""
    while isinstance(made, ast.Subscript):
        made = made.value
    if not isinstance(made, ast.Name):
        return isinstance(made, ast.Call)
    stores = 0
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and each.id == made.id and not isinstance(each.ctx, ast.Load):
            stores += 1
        target: ast.expr | None = None
        if isinstance(each, ast.AugAssign):
            target = each.target
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            target = each.value
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            target = each.func.value if each.func.attr.endswith("_") else None
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and target.id == made.id:
            return False
    return stores == 1


def _indexed(source: Source, node: ast.expr) -> ast.expr | None:
    """What `node` is an index of."""
    parent = source.parents[node]
    if isinstance(parent, ast.Tuple):
        node, parent = parent, source.parents[parent]
    return parent.value if isinstance(parent, ast.Subscript) and parent.slice is node else None
