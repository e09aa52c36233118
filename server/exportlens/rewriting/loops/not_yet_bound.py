"""Names that are None until a round of a loop gives them a value, and are asked for that: a flag says whether they have one.

    low = None                            low, has_low = beta, False
    for _ in range(20):                   for _ in range(20):
        if far(beta):                         if far(beta):
            low = beta                ->          low = beta
            beta = beta * 2                       has_low = True
        elif low is None:                         beta = beta * 2
            beta = beta / 2                   elif not has_low:
        else:                                     beta = beta / 2
            beta = (beta + low) / 2           else:
                                                  beta = (beta + low) / 2

Tensor data chooses among tensors and numbers, and never whether there is one. What the name begins with is the name's that it
gets its value from, which is of the same kind, and is never read.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import arguments, assigned_pairs, bound, every_name, fresh, is_none
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

Loop = ast.For | ast.While


def flags_for_none(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop, Kinds] | None:
    """The text where flags say which names of `loop` are not None, the loop, and the kinds inside of it; None where there are no
    such names. `kinds` are those inside of the loop."""
    function = source.enclosing_function(loop)
    if function is None or not source.begins_line(loop):
        return None
    found = [
        each
        for name in bound(loop.body)
        if (each := _Unset.of(source, function, loop, name, kinds)) is not None
    ]
    if not found:
        return None
    kinds, taken = kinds.copy(), every_name(source.tree)
    indent, nl, begin = source.indent_of(loop), source.newline, source.start(loop)
    head, swaps = "", []
    for each in found:
        flag = fresh(f"has_{each.name}", taken)
        head += f"{each.name}, {flag} = {each.first}, False{nl}{indent}"
        swaps += each.swaps(flag)
        kinds.names[flag] = Kind("number", type="bool")
        kinds.names[each.name] = kinds.names.get(each.first, Kind("number", type="float"))
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), *swaps]))
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin + len(head)), kinds


def flags_around(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If, Kinds] | None:
    """As `flags_for_none` of the loop around `node`, the branch of the new text and the kinds just before it."""
    loop = next((each for each in source.ancestors(node) if isinstance(each, (ast.For, ast.While))), None)
    found = None if loop is None else flags_for_none(source, loop, kinds)
    if found is None:
        return None
    place = sorted((each for each in walk(source.tree) if isinstance(each, ast.If)), key=source.start).index(
        node
    )
    same = sorted((each for each in walk(found[0].tree) if isinstance(each, ast.If)), key=found[0].start)
    return found[0], same[place], found[2]


class _Unset:
    """A name that is None before a loop, with what asks for it and what gives it a value."""

    def __init__(
        self, source: Source, name: str, stores: list[ast.stmt], asked: list[ast.Compare], first: str
    ):
        self.source, self.name, self.stores, self.asked, self.first = source, name, stores, asked, first

    @classmethod
    def of(cls, source: Source, function: Function, loop: Loop, name: str, kinds: Kinds) -> _Unset | None:
        """`name` where it is nothing else; None for any other."""
        uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
        if any(source.enclosing_function(each) is not function for each in uses):
            return None
        if any(_own_scope(source, each, function) for each in uses) or name in {
            each.arg for each in arguments(function.args)
        }:
            return None
        inside = {id(each) for each in walk(loop)}
        block, index = source.block_of(loop)
        stores: list[ast.stmt] = []
        given: list[ast.expr] = []
        begun = 0
        for each in uses:
            if isinstance(each.ctx, ast.Load):
                continue
            statement = source.enclosing_statement(each)
            value = _given(statement, each)
            if value is None:
                return None
            if id(each) in inside:
                if not source.begins_line(statement):
                    return None
                given.append(value)
                stores.append(statement)
            elif not is_none(value) or statement not in block[:index]:
                return None
            else:
                begun += 1
        first = _first(source, function, loop, given, stores, kinds) if begun == 1 else None
        if first is None:
            return None
        asked: list[ast.Compare] = []
        for each in uses:
            if not isinstance(each.ctx, ast.Load):
                continue
            test = _asks(source.parents[each], each)
            if source.start(each) < source.start(loop):
                return None
            if test is not None:
                asked.append(test)
            elif not _is_guarded(source, each, function):
                return None
        return cls(source, name, stores, asked, first) if asked else None

    def swaps(self, flag: str) -> list[Replacement]:
        """The changes behind the beginning of the loop."""
        source, found = self.source, []
        for each in self.asked:
            text = flag if isinstance(each.ops[0], ast.IsNot) else f"not {flag}"
            found.append(source.swap(each, text))
        for statement in self.stores:
            end = source.span([statement])[1]
            found.append(Replacement(end, end, f"{source.newline}{source.indent_of(statement)}{flag} = True"))
        return found


def _first(
    source: Source,
    function: Function,
    loop: Loop,
    given: list[ast.expr],
    stores: list[ast.stmt],
    kinds: Kinds,
) -> str | None:
    """What a name that gets the values `given` by `stores` may begin with: another name for what it gets, or a number."""
    names = {each.id if isinstance(each, ast.Name) else "" for each in given}
    if len(names) == 1 and names <= certainly_bound_before(function, loop):
        first = names.pop()
        known, now = kinds_before(function, loop, kinds).names.get(first), kinds.names.get(first)
        alike = known is not None and now is not None and (known.what, known.type) == (now.what, now.type)
        return first if alike and known is not None and known.what in ("tensor", "number") else None
    for value, statement in zip(given, stores, strict=True):
        kind = kinds_before(function, statement, kinds).of(value)
        if kind.what not in ("number", "scalar") or kind.type != "float":
            return None
    return "0.0"


def _given(statement: ast.stmt, target: ast.Name) -> ast.expr | None:
    """What `statement` binds `target` to."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    return next((value for one, value in assigned_pairs(statement) if one is target), None)


def _asks(node: ast.AST, name: ast.Name) -> ast.Compare | None:
    """`node` where it asks whether `name` is None."""
    if not isinstance(node, ast.Compare) or node.left is not name or len(node.ops) != 1:
        return None
    is_asked = isinstance(node.ops[0], (ast.Is, ast.IsNot)) and is_none(node.comparators[0])
    return node if is_asked else None


def _is_guarded(source: Source, use: ast.Name, function: Function) -> bool:
    """Whether `use` is read only where the name is not None, as it was asked right around it and not bound since."""
    inner: ast.AST = use
    for outer in source.ancestors(use):
        if outer is function or isinstance(outer, (ast.For, ast.While)):
            return False
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if _tells(outer.test, use.id, any(each is inner for each in body)):
                return True
        inner = outer
    return False


def _tells(test: ast.expr, name: str, holds: bool) -> bool:
    """Whether `name` is not None where `test` holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _tells(test.operand, name, not holds)
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) == holds and any(
            _tells(each, name, holds) for each in test.values
        )
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == name):
        return False
    return _asks(test, test.left) is not None and isinstance(test.ops[0], ast.IsNot) == holds


def _own_scope(source: Source, node: ast.AST, function: Function) -> bool:
    for each in source.ancestors(node):
        if each is function:
            return False
        if isinstance(each, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return True
    return False
