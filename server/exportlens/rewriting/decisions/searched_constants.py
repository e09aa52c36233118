"""The first of several constants that tensor data matches, as a branch with one way for each of them.

    level = next(i for i, hi in enumerate(self.LIMITS) if t < hi)    ->    if t < self.LIMITS[0]:
                                                                               level = 0
                                                                           elif t < self.LIMITS[1]:
                                                                               level = 1
                                                                           else:
                                                                               raise StopIteration

Which constants there are the file says, and the branches ask in the order of the loop. They are then rewritten as any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.filtered import Comprehension
from exportlens.rewriting.loops.written_rounds import WrittenRounds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.rewriting.memory.moving import writes
from exportlens.source.walking import walk

WRITE_OUT_SEARCH = "Write the search out as branches"
# What each round has is written as often as there are rounds.
_MOST_STATEMENTS = 48
_HOLDING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.If)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
)
# What has names of its own, or places in the text that Python does not tell.
_APART = (ast.Lambda, ast.JoinedStr, ast.NamedExpr, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_EMPTY = {
    "next": "StopIteration",
    "max": 'ValueError("max() arg is an empty sequence")',
    "min": 'ValueError("min() arg is an empty sequence")',
    "first": 'IndexError("list index out of range")',
    "last": 'IndexError("list index out of range")',
}


def found_by_loop(draft: Draft, node: ast.AST, kinds: Kinds) -> str | None:
    """The text with branches for the loop that only looks for the first constant for which the `if` statement `node` holds; None
    where it does more, or the file does not say which constants there are."""
    source = draft.source
    loop = source.parents.get(node)
    function = source.enclosing_function(node)
    if not (isinstance(node, ast.If) and isinstance(loop, ast.For) and function is not None):
        return None
    if loop.body != [node] or node.orelse or not source.begins_line(loop) or not source.begins_line(node):
        return None
    breaks = exits(node.body) == {"breaks"}
    body = node.body[:-1] if breaks else node.body
    jumps = [each for one in body for each in walk(one) if isinstance(each, (ast.Break, ast.Continue))]
    if jumps or not (breaks or exits(node.body) == {"returns"}):
        return None
    names = set(bound(loop.target))
    rounds = WrittenRounds(draft, loop).of(loop.target, loop.iter)
    if rounds is None or names & set(bound(body)) or not _can_be_swapped([node], names):
        return None
    size = sum(isinstance(each, ast.stmt) for one in body for each in walk(one))
    if size * len(rounds) > _MOST_STATEMENTS or not all(map(source.begins_line, [*node.body, *loop.orelse])):
        return None
    live = sorted(
        names & (Liveness(function).live_after(loop) | (reads(loop.orelse) if loop.orelse else set()))
    )
    indent = source.indent_of(loop)
    inner = indent + source.indent_unit()
    arms: list[tuple[str, list[str]]] = []
    for each in rounds:
        swaps = _swaps(source, [node], each)
        lines = [f"{inner}{name} = {each[name]}" for name in live if breaks]
        lines += [source.block(body, inner, swaps)] if body else []
        arms.append((_test(source, [node.test], swaps), lines or [f"{inner}pass"]))
    last = [f"{inner}{name} = {rounds[-1][name]}" for name in live]
    last += [source.block(loop.orelse, inner)] if loop.orelse else []
    if arms[1:] and arms[-1][1] == last and repeatable(node.test, kinds):
        # The last round ends as none does.
        arms.pop()
    lines = _chain(arms, last, indent)
    start, end = source.start(loop), source.span([loop])[1]
    notes = source.comments_lost(start, end, *lines)
    text = source.newline.join([*(indent + each for each in notes), *lines]).removeprefix(indent)
    return replaced(source.text, [Replacement(start, end, text)])


def found_by_comprehension(draft: Draft, node: Comprehension, kinds: Kinds) -> str | None:
    """As `found_by_loop`, for `next`, `max` and `min` of the generator `node`, and the first or last item of a list that it is."""
    source, asked = draft.source, _asked(node, draft.source.parents[node])
    if asked is None or len(node.generators) != 1 or node.generators[0].is_async:
        return None
    statement = _statement_of(source, asked)
    rounds = _rounds_in_order(draft, node, asked)
    if statement is None or rounds is None:
        return None
    [generator] = node.generators
    names = set(bound(generator.target))
    parts = [node.elt, *generator.ifs, *([asked.default] if asked.default is not None else [])]
    if not generator.ifs or not _can_be_swapped([node.elt, *generator.ifs], names):
        return None
    if not all(repeatable(each, kinds) for each in parts):
        return None
    alone = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) and statement.value is asked.whole
    alone = alone and source.end(statement) == source.end(asked.whole)
    name = "" if alone else fresh("found", every_name(source.tree))
    head = f"{name} = "
    if isinstance(statement, ast.AnnAssign) and alone:
        head = f"{source.of(statement.target)} = "
    elif alone:
        head = source.text[source.start(statement) : source.start(asked.whole)]
    indent = source.indent_of(statement)
    inner = indent + source.indent_unit()
    arms = []
    for each in rounds:
        swaps = _swaps(source, [node.elt, *generator.ifs], each)
        value = [f"{inner}{head}{source.of(node.elt, swaps)}"]
        arms.append((_test(source, generator.ifs, swaps), value))
    last = f"raise {_EMPTY[asked.how]}"
    if asked.default is not None:
        last = f"{head}{source.of(asked.default)}"
    notes = source.comments_between(source.start(asked.whole), source.end(asked.whole))
    lines = [*(indent + each for each in notes), *_chain(arms, [inner + last], indent)]
    text = source.newline.join(lines).removeprefix(indent)
    if alone:
        return replaced(source.text, [source.swap(statement, text)])
    start = source.start(statement)
    before = Replacement(start, start, text + source.newline + indent)
    return replaced(source.text, [before, source.swap(asked.whole, name)])


@dataclass(frozen=True, slots=True)
class _Asked:
    """The expression that asks for one element, how, and what it gives where there is none: None where it raises."""

    whole: ast.expr
    how: str
    default: ast.expr | None = None


def _asked(node: Comprehension, parent: ast.AST) -> _Asked | None:
    """What asks for one element of `node`."""
    if isinstance(parent, ast.Subscript) and isinstance(node, ast.ListComp) and parent.value is node:
        how = {"0": "first", "-1": "last"}.get(ast.unparse(parent.slice))
        return _Asked(parent, how) if how is not None and isinstance(parent.ctx, ast.Load) else None
    if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Name) or parent.args[:1] != [node]:
        return None
    how, count = parent.func.id, len(parent.args)
    if how == "next":
        if parent.keywords or count > 2 or not isinstance(node, ast.GeneratorExp):
            return None
        return _Asked(parent, how, parent.args[1] if count == 2 else None)
    if how not in ("max", "min") or count > 1:
        return None
    if not parent.keywords:
        return _Asked(parent, how)
    default = [each.arg for each in parent.keywords] == ["default"]
    return _Asked(parent, how, parent.keywords[0].value) if default else None


def _statement_of(source: Source, asked: _Asked) -> ast.stmt | None:
    """The statement that computes `asked` once in any case; None where that is not certain, or where what is computed before may
    be changed by it."""
    statement = source.enclosing_statement(asked.whole)
    if source.enclosing_function(statement) is None or not isinstance(statement, _HOLDING):
        return None
    if not source.begins_line(statement) or source.text.startswith("elif", source.start(statement)):
        return None
    for outer in source.ancestors(asked.whole):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            return None
    if asked.default is None and any(isinstance(each, ast.Try) for each in source.ancestors(statement)):
        return None
    earlier = [
        each
        for each in walk(statement)
        if isinstance(each, ast.Call) and source.end(each) <= source.start(asked.whole)
    ]
    return None if writes(earlier) else statement


def _rounds_in_order(draft: Draft, node: Comprehension, asked: _Asked) -> list[dict[str, str]] | None:
    """The rounds of `node`, those first that `asked` takes first."""
    [generator] = node.generators
    known = WrittenRounds(draft, node)
    rounds = known.of(generator.target, generator.iter)
    if rounds is None or asked.how in ("next", "first"):
        return rounds
    if asked.how == "last":
        return rounds[::-1]
    items = known.items(generator.iter)
    same = isinstance(node.elt, ast.Name) and ast.unparse(generator.target) == node.elt.id
    if items is None or not same or len({type(known.value(each)) for each in items}) > 1:
        return None
    ordered = known.in_order(items, asked.how == "max")
    return None if ordered is None else [rounds[items.index(each)] for each in ordered]


def _can_be_swapped(nodes: Sequence[ast.AST], names: set[str]) -> bool:
    """Whether each of `names` in `nodes` means what the loop binds, and stands where its place is known."""
    for one in nodes:
        for each in walk(one):
            if isinstance(each, _APART) and names & {x.id for x in walk(each) if isinstance(x, ast.Name)}:
                return False
            if isinstance(each, _COMPREHENSIONS):
                own = {name for part in each.generators for name in bound(part.target)}
                if names & own:
                    return False
            if isinstance(each, ast.Name) and each.id in names and not isinstance(each.ctx, ast.Load):
                return False
    return True


def _swaps(source: Source, nodes: Iterable[ast.AST], texts: dict[str, str]) -> list[Replacement]:
    """What puts the texts of one round in the place of its names."""
    made = []
    for one in nodes:
        for each in walk(one):
            if isinstance(each, ast.Name) and each.id in texts:
                text, parent = texts[each.id], source.parents[each]
                operand = isinstance(
                    parent, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Starred)
                )
                inside = isinstance(parent, ast.Subscript) and parent.slice is each
                simple = dotted(ast.parse(text, mode="eval").body) is not None or text[-1:] in "]\"'"
                made.append(source.swap(each, f"({text})" if operand and not inside and not simple else text))
    return made


def _test(source: Source, tests: Sequence[ast.expr], swaps: Sequence[Replacement]) -> str:
    texts = []
    for each in tests:
        text = source.of(each, swaps)
        several = len(tests) > 1 and isinstance(each, (ast.BoolOp, ast.IfExp, ast.Lambda))
        texts.append(f"({text})" if several else text)
    return " and ".join(texts)


def _chain(arms: Sequence[tuple[str, list[str]]], last: Sequence[str], indent: str) -> list[str]:
    """`if`, `elif` and, where there is something to do for none, `else`."""
    lines = []
    for number, (test, body) in enumerate(arms):
        lines += [f"{indent}{'elif' if number else 'if'} {test}:", *body]
    return [*lines, f"{indent}else:", *last] if last else lines
