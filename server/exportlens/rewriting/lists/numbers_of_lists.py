"""Lists of tensors that are made number by number: `[each.item() for each in t]` for `t.tolist()`, which gives the same numbers.

Measured on torch 2.13: strict tracing takes `.tolist()` of whole numbers only, and `.item()` of any.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Conversion, Site
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Const, Static, Tensor, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.lists_of_numbers import Asks, is_of_numbers

# What gives as many items as data says.
_OF_NO_LENGTH = frozenset({"nonzero", "argwhere", "where", "unique", "unique_consecutive", "masked_select"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def numbers_one_by_one(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`t.tolist()` -> `[each.item() for each in t]`, where it is known how many dimensions `t` has."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        ranks = {getattr(each, "rank", None) for each in options(place.value)}
        rank = ranks.pop() if len(ranks) == 1 else None
        if any(getattr(each, "unbacked", True) for each in options(place.value)):
            raise Refused("how many numbers there are is only known when the model runs")
        called = _is_listing(node)
        if isinstance(node, ast.expr) and called and rank is None:
            kinds = draft.kinds(place.variables)
            asks = Asks(
                lambda item: _takes_numbers(draft, item, kinds),
                lambda listed: _gives_numbers(draft, listed, kinds),
            )
            rank = 1 if _gives_numbers(draft, node, kinds) or is_of_numbers(draft, node, asks) else None
        if not called or rank not in (0, 1, 2):
            raise Refused(
                "how many dimensions the tensor has is not known: keep it a tensor, or call `.tolist()` on what the model returns"
            )
        swap = _one_by_one(source, node, rank, draft.taken(source.enclosing_statement(node)))
        return draft.replace("List the numbers one by one", [swap], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def listed_one_by_one(draft: Draft, node: ast.AST, site: Site, kinds: Kinds, text: str) -> str:
    """`text`, which the chunk becomes by the rewrite of `node`, with the lists of tensors that `node` reads numbers of made number by
    number where they may hold floats: the finding at hand tells nothing of strict tracing."""
    function = draft.source.enclosing_function(node)
    # Measured on torch 2.13: in an arm of torch.cond the rows alias one another, where another torch.cond stands in it.
    if function is None or _is_in_arm(draft, node, site):
        return text
    listed = _listed_around(draft, function, node, kinds)
    if not listed:
        return text
    new = Source(text)
    swaps = [
        _one_by_one(new, each, 1, draft.taken(new.enclosing_statement(each)))
        for each in ast.walk(new.tree)
        if isinstance(each, ast.Call)
        and ast.dump(each) in listed
        and getattr(new.enclosing_function(each), "name", None) == function.name
    ]
    return replaced(text, swaps)


def _is_in_arm(draft: Draft, node: ast.AST, site: Site) -> bool:
    """Whether `node`, or a call that leads to it, stands behind a branch, which is or may become an arm."""
    above = list(draft.source.ancestors(node))
    functions = [each for each in above if isinstance(each, ast.FunctionDef)]
    if len(functions) > 1 or any(isinstance(each, (ast.If, ast.IfExp)) for each in above):
        return True
    for _, chunk, call in site.trail:
        outer = [
            each
            for statement in chunk.body
            for each in ast.walk(statement)
            if isinstance(each, (ast.If, ast.IfExp, ast.FunctionDef, ast.Lambda))
            and any(one is call for one in ast.walk(each))
        ]
        if len(outer) > 1 or any(not isinstance(each, ast.FunctionDef) for each in outer):
            return True
    return False


def _listed_around(draft: Draft, function: Function, node: ast.AST, kinds: Kinds) -> list[str]:
    """The lists of tensors, dumped, that certainly are ones of numbers, as what `node` asks of an item tells."""
    source = draft.source
    made = _named_lists(function)
    numbers: list[ast.Call] = []
    for loop in source.ancestors(node):
        generators = loop.generators if isinstance(loop, _COMPREHENSIONS) else [loop]
        for each in generators:
            for gone in _gone_through(each.iter) if isinstance(each, (ast.For, ast.comprehension)) else ():
                listed = made.get(gone.id) if isinstance(gone, ast.Name) else gone
                if isinstance(listed, ast.Call) and _gives_numbers(draft, gone, kinds):
                    numbers.append(listed)
    for item in ast.walk(getattr(node, "test", node)):
        if isinstance(item, ast.Subscript) and not isinstance(item.slice, (ast.Slice, ast.Tuple)):
            listed = made.get(item.value.id) if isinstance(item.value, ast.Name) else None
            if listed is not None and _takes_numbers(draft, item, kinds):
                numbers.append(listed)
    found = [ast.dump(each) for each in numbers if _may_be_floats(each, kinds)]
    stored = {"self", *_stored(function)}
    others = [
        ast.dump(each)
        for each in ast.walk(function)
        if _is_listing(each) and each not in numbers and stored & {*_read(each)}
    ]
    # What is bound anew may be a tensor of rows elsewhere.
    return [each for each in found if each not in others]


def _stored(function: Function) -> list[str]:
    return [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]


def _read(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _named_lists(function: Function) -> dict[str, ast.Call]:
    """The lists of tensors by the names that they get, where nothing else is bound to those."""
    stored = _stored(function)
    return {
        each.targets[0].id: each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Call)
        and _is_listing(each.value)
        and stored.count(each.targets[0].id) == 1
    }


def _one_by_one(source: Source, node: ast.AST, rank: int, taken: set[str]) -> Replacement:
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    text = source.of(node.func.value)
    names = [fresh(wish, taken) for wish in ("row", "each")[2 - rank :]]
    inner = f"{names[-1]}.item()" if names else f"{primary(text)}.item()"
    for index, name in enumerate(reversed(names)):
        over = text if index == len(names) - 1 else names[-2 - index]
        inner = f"[{inner} for {name} in {over}]"
    return source.swap(node, inner)


def _is_listing(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "tolist"
        and not node.args
        and not node.keywords
    )


def _gone_through(iterated: ast.expr) -> Iterator[ast.expr]:
    """The lists of tensors, or names, that a loop goes through: itself, counted, or beside others."""
    if _is_listing(iterated) or isinstance(iterated, ast.Name):
        yield iterated
    elif isinstance(iterated, ast.Call) and ast.unparse(iterated.func) in ("enumerate", "zip", "reversed"):
        for each in iterated.args:
            yield from _gone_through(each)


def _may_be_floats(listed: ast.Call, kinds: Kinds) -> bool:
    """Whether the list may be one of floats, and as long in each call."""
    assert isinstance(listed.func, ast.Attribute)
    made = listed.func.value
    for each in ast.walk(made):
        called = each.func if isinstance(each, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _OF_NO_LENGTH:
            return False
        if isinstance(each, ast.Subscript) and any(isinstance(one, ast.Name) for one in ast.walk(each.slice)):
            return False
    kind = kinds.of(made)
    if isinstance(kind.value, Tensor) and kind.value.unbacked:
        return False
    return kind.what == "tensor" and dtype_family(kind.dtype) != "int" and kind.rank in (None, 1)


def _gives_numbers(draft: Draft, node: ast.AST, kinds: Kinds) -> bool:
    """Whether a loop goes through `node`, and the first that it does with an item is what a list would not take."""
    source = draft.source
    loop = source.parents[node]
    path: list[int | None] = []
    inner = node
    while isinstance(loop, ast.Call):
        name = ast.unparse(loop.func)
        if inner not in loop.args or name not in ("enumerate", "zip", "reversed"):
            return False
        path.append({"enumerate": 1, "zip": loop.args.index(inner), "reversed": None}[name])
        inner, loop = loop, source.parents[loop]
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not inner:
        return False
    target: ast.expr = loop.target
    for at in reversed(path):
        if at is None:
            continue
        if not isinstance(target, ast.Tuple) or len(target.elts) <= at:
            return False
        target = target.elts[at]
    if not isinstance(target, ast.Name):
        return False
    if isinstance(loop, ast.For):
        regions: list[ast.AST] = _always_run(loop.body)
    else:
        holder = source.parents[loop]
        if holder.generators[0] is not loop:  # type: ignore[attr-defined]
            return False
        regions = [loop.ifs[0] if loop.ifs else getattr(holder, "elt", holder)]
    for region in regions:
        if any(isinstance(each, ast.Name) and each.id == target.id for each in ast.walk(region)):
            return any(
                isinstance(each, ast.Name)
                and each.id == target.id
                and isinstance(each.ctx, ast.Load)
                and _takes_numbers(draft, each, kinds)
                for each in ast.walk(region)
            )
    return False


def _always_run(body: list[ast.stmt]) -> list[ast.AST]:
    """What each round runs in any case, up to the first block that may leave it or that another statement needs."""
    found: list[ast.AST] = []
    for each in body:
        if isinstance(each, ast.If):
            found.append(each.test)
            leaves = (ast.Break, ast.Continue, ast.Return, ast.Raise)
            if any(isinstance(one, leaves) for one in ast.walk(each)):
                break
        elif isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert, ast.Return)):
            found.append(each)
        else:
            break
    return found


def _takes_numbers(draft: Draft, name: ast.expr, kinds: Kinds) -> bool:
    """Whether what is done with `name` at once is done with numbers alone, and in any case."""
    parent = draft.source.parents[name]
    inner: ast.AST = name
    for each in draft.source.ancestors(name):
        if isinstance(each, ast.stmt):
            break
        if isinstance(each, (ast.IfExp, ast.Lambda)) and getattr(each, "test", None) is not inner:
            return False
        if isinstance(each, ast.BoolOp) and each.values[0] is not inner:
            return False
        inner = each
    if isinstance(parent, ast.UnaryOp):
        return not isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.BinOp):
        added = parent.right if parent.left is name else parent.left
        plain = (ast.Sub, ast.Div, ast.Pow, ast.FloorDiv)
        if isinstance(parent.op, ast.Mult):
            # A list of rows is repeated by an int.
            return isinstance(added, ast.Constant) and isinstance(added.value, float)
        return isinstance(parent.op, plain) or (isinstance(parent.op, ast.Add) and _is_number(added, kinds))
    if isinstance(parent, ast.Compare):
        other = parent.comparators[0] if parent.left is name else parent.left
        ordered = isinstance(parent.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and len(parent.ops) == 1
        return ordered and _is_number(other, kinds)
    if isinstance(parent, ast.Call) and name in parent.args:
        called = draft.qualified(parent.func)
        full = called == "torch.full" and parent.args[1:2] == [name]
        return full or called in ("abs", "float", "int", "round") or called.startswith("math.")
    return False


def _is_number(node: ast.expr, kinds: Kinds) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    kind = kinds.of(node)
    if kind.what == "number" and isinstance(kind.value, Const):
        return type(kind.value.value) in (int, float)
    return (
        kind.what in ("number", "static")
        and isinstance(kind.value, Static)
        and kind.value.type in ("int", "float")
    )
