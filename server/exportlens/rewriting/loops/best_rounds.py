"""What the best round of a loop gives, and no other: it begins with what the first round has, and the program checks that a
round was found.

    for i in range(n):                 scale, found = None, torch.zeros((), dtype=torch.bool)
        score = f(x, i)                for i in range(n):
        if score < best:                   score = f(x, i)
            best = score       ->          if scale is None:
            scale = g(x, i)                    scale = g(x, i)
    return x / scale                       if score < best:
                                               best = score
                                               scale = g(x, i)
                                               found = torch.ones_like(found)
                                       torch._assert_async(found, "no round of the loop gave `scale`")
                                       return x / scale

torch.cond gives a tensor whichever way it goes, and where no round was the best yet, there is none. Python goes on with an
unbound name or with None then, and fails where a tensor is needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.liveness import Liveness, certainly_bound_before, exits
from exportlens.rewriting.code.names import assigned_pairs, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.source.walking import walk

_BEGUN = "  # torch.cond gives a tensor, also where no round was chosen yet"


def begun_by_first_round(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If, Kinds] | None:
    """The text where the names that only the arm of `node` gives a value, in a round of a loop, begin with that of the first
    round, `node` of it and the kinds just before that; None where there are none, or more than that is done to them."""
    function = source.enclosing_function(node)
    loop = _outermost_loop(source, node, kinds)
    if function is None or loop is None or node.orelse or exits([node]) != {"falls"}:
        return None
    if source.text.startswith("elif", source.start(node)) or not source.begins_line(loop):
        return None
    after = Liveness(function).live_after(loop)
    certain = certainly_bound_before(function, loop)
    begun: dict[str, ast.Constant | None] = {}
    for name in dict.fromkeys(bound(node.body)):
        if name not in after:
            continue
        start = _begins_none(source, function, loop, node, name)
        if start is not None or (name not in certain and _is_only_bound_in(function, node, name)):
            begun[name] = start
    values = _values(source, node, begun, kinds) if begun else None
    if values is None or any(_is_asked(source, function, name) for name in begun):
        return None
    if any(start and _may_give_none(source, function, node, name) for name, start in begun.items()):
        return None
    if not all(_is_there_at_first(function, node, set(begun), value) for _, _, value in values):
        return None
    return _written(source, loop, node, begun, values, kinds, torch)


def _outermost_loop(source: Source, node: ast.If, kinds: Kinds) -> ast.For | None:
    """The outermost loop around `node`, where all that stands between are loops whose rounds are traced one by one."""
    loop: ast.For | None = None
    inner: ast.AST = node
    for outer in source.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return loop
        if not isinstance(outer, ast.For) or inner not in outer.body or outer.orelse:
            return None
        counted = [kinds.of(each).what for each in getattr(outer.iter, "args", [])]
        if "scalar" in counted or exits(outer.body) != {"falls"}:
            return None
        inner = loop = outer
    return None


def _stores(function: Function, name: str) -> list[ast.Name]:
    return [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]


def _is_only_bound_in(function: Function, node: ast.If, name: str) -> bool:
    inside = {id(each) for one in node.body for each in walk(one)}
    return all(id(each) in inside for each in _stores(function, name))


def _begins_none(
    source: Source, function: Function, loop: ast.For, node: ast.If, name: str
) -> ast.Constant | None:
    """The None that `name` is bound to before `loop`, where nothing but that and the arm of `node` binds it."""
    inside = {id(each) for one in node.body for each in walk(one)}
    outside = [each for each in _stores(function, name) if id(each) not in inside]
    statement = source.enclosing_statement(outside[0]) if len(outside) == 1 else None
    if not isinstance(statement, ast.Assign) or source.start(statement) > source.start(loop):
        return None
    if source.block_of(statement)[0] is not source.block_of(loop)[0]:
        return None
    for target, value in _pairs(statement):
        if target is outside[0] and isinstance(value, ast.Constant) and value.value is None:
            return value
    return None


def _pairs(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with the values that they get."""
    if len(statement.targets) == 1:
        yield from assigned_pairs(statement)
    else:
        yield from ((target, statement.value) for target in statement.targets)


def _values(
    source: Source, node: ast.If, names: dict[str, ast.Constant | None], kinds: Kinds
) -> list[tuple[str, str, ast.expr]] | None:
    """What the arm binds each of `names` to, in its order; None where that cannot be computed twice, or is made of what the arm
    binds besides."""
    others = set(bound(node.body)) - set(names)
    found: list[tuple[str, str, ast.expr]] = []
    for statement in node.body:
        own = set(bound(statement)) & set(names)
        if not own:
            continue
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        for target, value in assigned_pairs(statement):
            if not isinstance(target, ast.Name):
                return None
            if target.id not in names:
                continue
            begun = {name for name, _, _ in found}
            early = reads(value) & (set(names) - begun)
            text = source.of(value)
            if early or reads(value) & others or not repeatable(value, kinds):
                return None
            found.append((target.id, text, value))
    listed = [name for name, _, _ in found]
    return found if sorted(listed) == sorted(names) else None


def _is_there_at_first(function: Function, node: ast.If, begun: set[str], value: ast.expr) -> bool:
    """Whether the first round can compute `value` whatever the condition says: what it reads is bound, and no part of the condition
    stands in front of an item that may not be there."""
    unbound = set(bound(function.body)) - certainly_bound_before(function, node) - begun
    guarded = isinstance(node.test, ast.BoolOp) and any(
        isinstance(each, (ast.Subscript, ast.Call)) for each in ast.walk(value)
    )
    return not reads(value) & unbound and not guarded


def _is_asked(source: Source, function: Function, name: str) -> bool:
    """Whether anything asks if `name` is there, also under another name, or of what the function gives, where it gives `name`."""
    same = _names_of(source, function, name)
    if _is_compared_with_none(source, function, same):
        return True
    given = [each for each in walk(function) if isinstance(each, ast.Return) and same & reads(each)]
    for each in ast.walk(source.tree) if given else ():
        called = isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[2] == function.name
        caller = source.enclosing_function(each) if called else None
        if caller is not None:
            statement = source.enclosing_statement(each)
            names = set(bound(statement)) if isinstance(statement, ast.Assign) else set()
            parent = source.parents[each]
            if isinstance(parent, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp, ast.While)):
                return True
            if _is_compared_with_none(source, caller, names):
                return True
    return False


def _names_of(source: Source, function: Function, name: str) -> set[str]:
    """`name`, and the names that are bound to it, or to what holds it."""
    same = {name}
    for each in sorted(
        (each for each in walk(function) if isinstance(each, (ast.Assign, ast.AnnAssign))), key=source.start
    ):
        for target, value in assigned_pairs(each):
            if isinstance(target, ast.Name) and _hands_on(value, same):
                same.add(target.id)
    return same


def _hands_on(value: ast.expr | None, names: set[str]) -> bool:
    """Whether `value` is what one of `names` is, or holds it."""
    return any(
        isinstance(each, ast.Name) and each.id in names for each in (value, *getattr(value, "elts", ()))
    )


def _may_give_none(source: Source, function: Function, node: ast.If, name: str) -> bool:
    """Whether the function may give the None that `name` begins with: the branch asks no best that it sets."""
    if reads(node.test) & set(bound(node.body)):
        return False
    same = _names_of(source, function, name)
    return any(isinstance(each, ast.Return) and _hands_on(each.value, same) for each in walk(function))


def _is_compared_with_none(source: Source, function: Function, names: set[str]) -> bool:
    for each in walk(function):
        if not (isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)):
            continue
        parent = source.parents[each]
        if isinstance(parent, (ast.BoolOp, ast.UnaryOp)) or (
            isinstance(parent, ast.Compare)
            and any(
                isinstance(one, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn))
                for one in parent.ops
            )
        ):
            return True
        if isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is each:
            return True
    return False


def _written(
    source: Source,
    loop: ast.For,
    node: ast.If,
    begun: dict[str, ast.Constant | None],
    values: list[tuple[str, str, ast.expr]],
    kinds: Kinds,
    torch: str,
) -> tuple[Source, ast.If, Kinds]:
    nl, indent, inner = source.newline, source.indent_of(loop), source.indent_of(node)
    unit = source.indent_unit()
    found = fresh("found", every_name(source.tree))
    now = kinds.copy()
    for name, _, value in values:
        now.assign(ast.Name(name, ast.Store()), now.of(value))
    # A number may begin with any.
    numbers = {
        name: "0.0" if now.names[name].type == "float" else "0" for name in begun if _is_number(now, name)
    }
    ahead = [source.swap(start, numbers[name]) for name, start in begun.items() if start and name in numbers]
    unbound = [name for name, start in begun.items() if start is None]
    tensors = [name for name in unbound if name not in numbers]
    head = "".join(f"{name} = {numbers[name]}{nl}{indent}" for name in unbound if name in numbers)
    head += f"{' = '.join(tensors)} = None{nl}{indent}" if tensors else ""
    head += f"{found} = {torch}.zeros((), dtype={torch}.bool){nl}{indent}"
    given = [(name, text) for name, text, _ in values if name not in numbers]
    lines = [f"{inner}{unit}{name} = {text}" for name, text in given]
    first = nl.join([f"if {given[0][0]} is None:{_BEGUN}", *lines, inner]) if given else ""
    arm = source.indent_of(node.body[-1])
    body_end = source.end(node.body[-1])
    listed = " and ".join(f"`{name}`" for name, _, _ in values)
    check = f'{nl}{indent}{torch}._assert_async({found}, "no round of the loop gave {listed}")'
    begin, end = source.start(node), source.span([loop])[1]
    chosen = f"{nl}{arm}{found} = {torch}.ones_like({found})"
    behind = [Replacement(body_end, body_end, chosen), Replacement(end, end, check)]
    if body_end == end:
        behind = [Replacement(end, end, chosen + check)]
    ahead += [Replacement(source.start(loop), source.start(loop), head), Replacement(begin, begin, first)]
    changed = Source(replaced(source.text, [*ahead, *behind]))
    now.run(list(ast.parse(f"{found} = {torch}.zeros((), dtype={torch}.bool)").body))
    moved = sum(len(each.text) - (each.end - each.start) for each in ahead)
    return changed, changed.branch_at(begin + moved), now


def _is_number(kinds: Kinds, name: str) -> bool:
    return kinds.names[name].what in ("number", "size", "scalar")
