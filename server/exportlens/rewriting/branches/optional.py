"""A name that is None unless tensor data says otherwise: its value is made where it is used.

`if t: m = f(x)` and a later `if m is not None: use(m)` ask the same question, and None is no output of torch.cond.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, own_expressions, visit, writes_of


def made_where_used(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the branch that asks for the value makes it, and that branch; None where `node` gives no such value.
    `kinds` become those before that branch."""
    function = source.enclosing_function(node)
    name = _given(node, kinds)
    if function is None or name is None or not _starts_line(source, node):
        return None
    block, index = source.block_of(node)
    asking = next((each for each in block[index + 1 :] if name in reads(each) | set(bound(each))), None)
    if not isinstance(asking, ast.If) or not asks_for(asking.test, name) or not _starts_line(source, asking):
        return None
    liveness = Liveness(function)
    between = block[index + 1 : block.index(asking)]
    outside = name in reads(asking.orelse) or name in set(bound(asking))
    if outside or liveness.live_after(asking) & set(bound(node)) or not source.begins_line(asking.body[0]):
        return None
    if not _may_move(node.body, between, kinds):
        return None
    try:
        condition = Predicates(source, kinds, torch).read(node.test)
    except Refused:
        return None
    if condition.form not in ("tensor", "symbol"):
        return None
    taken = every_name(source.tree)
    flag = fresh(f"has_{name}", taken)
    inner = source.indent_of(asking.body[0])
    start = source.start(asking.body[0])
    anew = reads(node.body) & set(bound(between))
    kept = {name: fresh(f"{name}_before", taken) for name in sorted(anew)}
    uses = [
        source.swap(each, kept[each.id])
        for statement in node.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and each.id in kept
    ]
    body = source.block(node.body, inner, uses)[len(inner) :]
    text = condition.text
    if condition.form == "tensor" and not kinds.of(node.test).fresh:
        text = f"{primary(text)}.clone()"
    lines = [f"{flag} = {text}", *(f"{again} = {name}" for name, again in kept.items())]
    first = f"{source.newline}{source.indent_of(node)}".join(lines)
    head = replaced(
        source.text,
        [
            Replacement(source.start(node), source.span([node])[1], first),
            source.swap(asking.test, flag),
            Replacement(start, start, f"{body}{source.newline}{inner}"),
        ],
    )
    changed = Source(head)
    assigned = next(
        each
        for each in ast.walk(changed.tree)
        if isinstance(each, ast.Assign) and changed.start(each) == source.start(node)
    )
    count = len(lines) + len(between)
    new_block, new_index = changed.block_of(assigned)
    later = new_block[new_index + count]
    assert isinstance(later, ast.If)
    kinds.run(new_block[new_index : new_index + count])
    return changed, later


def _starts_line(source: Source, node: ast.If) -> bool:
    return source.begins_line(node) and not source.text.startswith("elif", source.start(node))


def _given(node: ast.If, kinds: Kinds) -> str | None:
    """The name that is None unless the test holds."""
    if not all(isinstance(each, ast.Assign) for each in node.body):
        return None
    for name in bound(node.body):
        known = kinds.names.get(name)
        if not node.orelse and known is not None and known.what == "none":
            return name
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.Assign):
            other = node.orelse[0]
            nothing = isinstance(other.value, ast.Constant) and other.value.value is None
            if nothing and [ast.unparse(each) for each in other.targets] == [name]:
                return name
    return None


def asks_for(test: ast.expr, name: str) -> bool:
    """Whether `test` is `name is not None`."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == name
        and isinstance(test.ops[0], ast.IsNot)
        and len(test.ops) == 1
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    )


def _may_move(body: list[ast.stmt], between: list[ast.stmt], kinds: Kinds) -> bool:
    """Whether `body`, which only binds names, gives the same behind `between`."""
    for each in (part for statement in body for part in ast.walk(statement)):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield)):
            return False
        if isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Store):
            return False
        if isinstance(each, ast.Call):
            called = str(dotted(each.func) or getattr(each.func, "attr", ""))
            if called.startswith("self.") or called.endswith("_") or "rand" in called or "dropout" in called:
                return False
            if (
                kinds.qualified(each.func) is None
                and kinds.of(getattr(each.func, "value", each)).what != "tensor"
            ):
                return False
    read = reads(body)
    if set(bound(body)) & (read | reads(between) | set(bound(between))):
        return False
    roots: set[str] = set()
    for name in read:
        known = kinds.names.get(name)
        if known is None or known.roots is None:
            if known is not None and known.what in ("tensor", "container", "unknown"):
                return False
            continue
        roots |= known.roots
    attributes = any(
        isinstance(each, ast.Attribute) and dotted(each.value) == "self"
        for one in body
        for each in ast.walk(one)
    )
    safe = True

    def see(statement: ast.stmt, now: Kinds) -> None:
        nonlocal safe
        for write in writes_of(statement, now):
            written = now.of(loaded(write.base)).roots
            safe = safe and written is not None and not written & roots and not attributes
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            safe = safe and all(isinstance(each, (ast.Name, ast.Tuple)) for each in targets)
        if attributes:
            safe = safe and not any(
                isinstance(each, ast.Call) and (dotted(each.func) or "").startswith("self.")
                for each in own_expressions(statement)
            )

    visit(between, kinds.copy(), see)
    return safe
