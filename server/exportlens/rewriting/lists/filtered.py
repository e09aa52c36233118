"""Comprehensions that tensor data filters, where their elements are added up, counted or listed: a loop with a branch does the same.

    total = sum(f(row) for row in x if row.sum() > 0)        total = 0
                                                             for row in x:
                                                      ->         if row.sum() > 0:
                                                                     total = total + f(row)

The branch is rewritten as any other. How many elements there are is the sum of what the filter asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import combined, scalar_bool
from exportlens.rewriting.decisions.logical_values import why_not
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import SEVERAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

Comprehension = ast.GeneratorExp | ast.ListComp
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    ast.BoolOp,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
    ast.NamedExpr,
)


def filtering(source: Source, node: ast.AST) -> Comprehension | None:
    """The comprehension of which `node` is a filter, or part of one."""
    for outer in source.ancestors(node):
        if isinstance(outer, ast.stmt):
            return None
        if isinstance(outer, ast.comprehension):
            inside = any(each is node for test in outer.ifs for each in walk(test))
            found = source.parents[outer]
            return found if inside and isinstance(found, (ast.GeneratorExp, ast.ListComp)) else None
    return None


def counted(source: Source, node: Comprehension, kinds: Kinds, torch: str) -> str | None:
    """The text where the number of elements that `node` keeps is a sum of what the filter asks; None where more is asked."""
    call = _called(source, node)
    one = isinstance(node.elt, ast.Constant) and type(node.elt.value) is int and node.elt.value == 1
    if call is None or not (call[0] == "len" or (call[0] == "sum" and one)):
        return None
    generator = _only(source, node)
    predicates = Predicates(source, _inside(node, kinds), torch)
    conditions = [predicates.read(each) for each in generator.ifs]
    if any(each.form != "tensor" for each in conditions):
        raise Refused(why_not(source, generator.ifs[0]))
    test = scalar_bool(combined(conditions, "and", torch))
    listed = f"{test} for {source.of(generator.target)} in {source.of(generator.iter)}"
    # Of no elements torch.stack takes nothing.
    certain = kinds.has_elements(generator.iter)
    total = f"{torch}.stack([{listed}]).sum()" if certain else f"sum(({listed}), {torch}.full((), 0))"
    return replaced(source.text, [source.swap(call[1], f"{total}.item()")])


def written_out(source: Source, node: Comprehension, kinds: Kinds) -> tuple[Source, ast.If, Kinds]:
    """The text with a loop for `node`, the branch in it, and the kinds just before that. Raises Refused."""
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(statement)
    generator = _only(source, node)
    if function is None or not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
        raise Refused(why_not(source, generator.ifs[0]))
    call = _called(source, node)
    summed = call is not None and call[0] == "sum"
    whole = call[1] if call is not None and summed else node
    if not summed and isinstance(node, ast.GeneratorExp):
        raise Refused(why_not(source, generator.ifs[0]))
    for outer in source.ancestors(whole):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            raise Refused(why_not(source, generator.ifs[0]))
    taken = every_name(source.tree)
    name = _target(statement, whole, node)
    swaps = []
    if not name:
        name = fresh("total" if summed else "kept", taken)
        swaps.append(source.swap(whole, name))
    renamed = _renamed(source, node, taken)
    parts = [_grouped(source, each, renamed) for each in generator.ifs]
    value = source.of(node.elt, renamed)
    if isinstance(node.elt, (ast.IfExp, ast.Lambda, ast.NamedExpr)):
        value = f"({value})"
    indent, unit, nl = source.indent_of(statement), source.indent_unit(), source.newline
    lines = [
        f"{name} = {'0' if summed else '[]'}",
        f"for {source.of(generator.target, renamed)} in {source.of(generator.iter)}:",
        f"{unit}if {' and '.join(parts)}:",
        f"{unit}{unit}{name} = {name} + {value}" if summed else f"{unit}{unit}{name}.append({value})",
    ]
    text = (nl + indent).join(lines)
    begin = source.start(statement)
    if swaps:
        swaps.append(Replacement(begin, begin, text + nl + indent))
    else:
        swaps.append(source.swap(statement, text))
    changed = Source(replaced(source.text, swaps))
    branch = next(
        each
        for each in walk(changed.tree)
        if isinstance(each, ast.If) and changed.start(each) > begin and _is_filter(changed, each, name)
    )
    again = changed.enclosing_function(branch)
    assert again is not None
    now = kinds_before(again, branch, kinds)
    if summed:
        # A number at first, and a tensor once one is added.
        now.names[name] = Kind("unknown", type=SEVERAL)
    return changed, branch, now


def listed_out(source: Source, node: ast.ListComp) -> tuple[Source, ast.Expr]:
    """The text with a loop that appends for `node`, which filters nothing, and the statement that appends. Raises Refused."""
    statement = source.enclosing_statement(node)
    generator = _only(source, node)
    sure = not any(isinstance(each, _UNSURE) for each in _between(source, node, statement))
    if generator.ifs or not sure or not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
        raise Refused(f"`{source.of(node)}` is not computed in a statement of its own")
    taken = every_name(source.tree)
    name = _target(statement, node, node)
    renamed = _renamed(source, node, taken)
    made = name or fresh("listed", taken)
    lines = [
        f"{made} = []",
        f"for {source.of(generator.target, renamed)} in {source.of(generator.iter)}:",
        f"{source.indent_unit()}{made}.append({source.of(node.elt, renamed)})",
    ]
    line_end = source.newline + source.indent_of(statement)
    text, begin = line_end.join(lines), source.start(statement)
    swaps = [source.swap(statement, text)]
    if not name:
        swaps = [Replacement(begin, begin, text + line_end), source.swap(node, made)]
    changed = Source(replaced(source.text, swaps))
    loop = next(
        each for each in walk(changed.tree) if isinstance(each, ast.For) and changed.start(each) > begin
    )
    assert isinstance(loop.body[0], ast.Expr)
    return changed, loop.body[0]


def _between(source: Source, node: ast.AST, statement: ast.stmt) -> Iterator[ast.AST]:
    for outer in source.ancestors(node):
        if outer is statement:
            return
        yield outer


def _only(source: Source, node: Comprehension) -> ast.comprehension:
    """The one generator of `node`. Raises Refused."""
    if len(node.generators) != 1 or node.generators[0].is_async:
        raise Refused(f"`{source.of(node)}` goes through several iterators")
    return node.generators[0]


def _called(source: Source, node: Comprehension) -> tuple[str, ast.Call] | None:
    """The function that takes nothing but `node`, and its call."""
    call = source.parents[node]
    if (
        not isinstance(call, ast.Call)
        or call.args != [node]
        or call.keywords
        or not isinstance(call.func, ast.Name)
    ):
        return None
    return call.func.id, call


def _target(statement: ast.stmt, whole: ast.expr, node: Comprehension) -> str:
    """The name that `statement` does nothing but bind to `whole`, and that `node` does not read."""
    if not isinstance(statement, ast.Assign) or statement.value is not whole or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    return (
        target.id if isinstance(target, ast.Name) and target.id not in reads(node) | set(bound(node)) else ""
    )


def _renamed(source: Source, node: Comprehension, taken: set[str]) -> list[Replacement]:
    """The names of the comprehension's own, which others of the function must not meet, as names that nothing else has."""
    function = source.enclosing_function(source.enclosing_statement(node))
    assert function is not None
    # Other comprehensions have names of their own as well.
    own_names = [each for each in walk(function) if isinstance(each, (ast.GeneratorExp, ast.ListComp))]
    inside = {
        id(each)
        for one in own_names
        for each in walk(one)
        if one is node or (isinstance(each, ast.Name) and each.id in _targets(one))
    }
    others = {each.id for each in walk(function) if isinstance(each, ast.Name) and id(each) not in inside}
    others |= {each.arg for each in walk(function.args) if isinstance(each, ast.arg)}
    swaps = []
    for name in sorted(_targets(node) & others):
        new = fresh(name, taken)
        own = (node.elt, node.generators[0].target, *node.generators[0].ifs)
        swaps += [
            source.swap(each, new)
            for one in own
            for each in walk(one)
            if isinstance(each, ast.Name) and each.id == name
        ]
    return swaps


def _inside(node: Comprehension, kinds: Kinds) -> Kinds:
    """The kinds inside of `node`: `kinds` are those around it, with the interpreter's of its own names."""
    inside = kinds.in_comprehension(node)
    for name in _targets(node):
        told = kinds.names.get(name)
        if told is not None and inside.names[name].what == "unknown":
            inside.names[name] = told
    return inside


def _targets(node: Comprehension) -> set[str]:
    """The names that a comprehension binds."""
    return {each.id for one in node.generators for each in walk(one.target) if isinstance(each, ast.Name)}


def _grouped(source: Source, node: ast.expr, swaps: list[Replacement]) -> str:
    text = source.of(node, swaps)
    loose = isinstance(node, (ast.IfExp, ast.NamedExpr, ast.Lambda)) or (
        isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    )
    return f"({text})" if loose else text


def _is_filter(source: Source, branch: ast.If, name: str) -> bool:
    """Whether `branch` is the one that was written out for `name`."""
    only = branch.body[0] if len(branch.body) == 1 and not branch.orelse else None
    text = source.of(only) if only is not None else ""
    return text.startswith((f"{name} = {name} + ", f"{name}.append("))
