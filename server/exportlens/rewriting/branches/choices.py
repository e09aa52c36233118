"""A ternary on tensor data becomes torch.cond on two lambdas, or torch.where on two numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.inference.values import Value
from exportlens.rewriting.arms.asked_rows import refuse_asked_rows
from exportlens.rewriting.arms.found_rows import asks_for_rows
from exportlens.rewriting.arms.numbers_in_text import numbers_in_text
from exportlens.rewriting.arms.recurrent_layers import refuse_recurrent_layer
from exportlens.rewriting.branches.mixed_results import (
    asks_type,
    asks_type_of_result,
    fits,
    number_as_tensor,
    refuse_identity,
)
from exportlens.rewriting.branches.open_choices import open_choice
from exportlens.rewriting.branches.outputs import Outputs
from exportlens.rewriting.branches.recursion import refuse_endless
from exportlens.rewriting.calls.unfaked_operators import refuse_unfaked
from exportlens.rewriting.code.draft import Refused, RefusedDtypes
from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import append_of
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.code.unbound_names import refuse_unbound
from exportlens.rewriting.decisions.conditions import Condition
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import same_kind
from exportlens.rewriting.lists.filtered import listed_out
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects, repeatable, writes_of
from exportlens.rewriting.memory.placed_views import NOTE, placed_by_data
from exportlens.rewriting.memory.sharing import to_separate

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def ternary_text(
    source: Source, node: ast.IfExp, kinds: Kinds, torch: str, value: Value | None = None
) -> str:
    """The whole text with `node` rewritten. Raises Refused."""
    if any(
        isinstance(each, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await))
        for arm in (node.body, node.orelse)
        for each in ast.walk(arm)
    ):
        raise Refused("a side of the ternary binds a name or awaits")
    parent = source.parents[node]
    if isinstance(parent, (ast.withitem, ast.Raise)) or (
        isinstance(parent, ast.Call) and parent.func is node
    ):
        raise Refused("the ternary chooses a context, an error or a function, which torch.cond does not give")
    condition = Predicates(source, kinds, torch).read(node.test, value=value)
    if condition.form == "static":
        raise Refused("the condition does not depend on tensor data as far as it can be followed")
    before: list[Replacement] = []
    function = source.enclosing_function(node)
    if function is not None:
        for each in (node.body, node.orelse):
            refuse_unbound(source, node, function, [each], kinds, torch)
            refuse_endless(source, node, [each], kinds)
    _refuse_effects(source, node, kinds)
    if any(asks_for_rows(source, each) for each in (node.body, node.orelse)):
        raise Refused("an operator asks whether a mask picks any rows, which only a statement can say")
    for each in (node.body, node.orelse):
        refuse_asked_rows(source, each, kinds)
    sides = [kinds.of(node.body), kinds.of(node.orelse)]
    texts = [source.of(node.body), source.of(node.orelse)]
    mixed = {side.type for side in sides} == {"int", "float"} and {side.what for side in sides} == {"number"}
    opened = open_choice(source, node, kinds, torch)
    if opened is not None:
        return _put(source, node, opened)
    if (answer := _answer(source, node, kinds)) is not None:
        return _put(source, node, answer)
    if _has_nested(node):
        return _put(source, node, _numbers_text(source, node, kinds, torch))
    if mixed or all(_is_plain_number(side) for side in sides):
        if mixed and not _beside_tensor(source, node, kinds, of_floats=True):
            raise RefusedDtypes(
                "the ternary gives an int or a float, and does not certainly meet float tensors only: write both as floats"
            )
        if not _beside_tensor(source, node, kinds):
            raise Refused("the ternary gives a Python number that tensor data would choose")
        if condition.form in ("tensor", "unknown"):
            return _put(source, node, f"{torch}.where({_mask(condition)}, {texts[0]}, {texts[1]})")
        _refuse_numbers_from_data(source, node, kinds)
        if mixed:
            texts = [f"float({text})" for text in texts]
        texts = [f"{torch}.tensor({text})" for text in texts]
    elif _is_mixed(source, node, sides):
        tensor = next(side for side in sides if side.what == "tensor")
        assert tensor.dtype is not None
        _refuse_numbers_from_data(source, node, kinds)
        outputs = Outputs(source, torch, kinds.mark())
        texts = [
            number_as_tensor(text, torch, tensor.dtype, side)
            if side.what == "number"
            else outputs.expression(each, kinds, set())
            for each, side, text in zip((node.body, node.orelse), sides, texts, strict=True)
        ]
        before = _clones(source, node, kinds)
    else:
        same_kind("the result", *sides)
        if any(item.what in ("number", "size") for side in sides for item in side.items or ()):
            raise Refused("the ternary gives Python numbers that tensor data would choose")
        _refuse_numbers_from_data(source, node, kinds)
        mark = kinds.mark()
        statement = source.enclosing_statement(node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        refuse_identity(source, [each.id for each in targets if isinstance(each, ast.Name)])
        outputs = Outputs(source, torch, mark)
        texts = [outputs.expression(each, kinds, set()) for each in (node.body, node.orelse)]
        before = _clones(source, node, kinds)
    refuse_recurrent_layer([node.body, node.orelse], kinds)
    refuse_unfaked([node.body, node.orelse], kinds)
    arms = [_function(each, text, kinds) for each, text in zip((node.body, node.orelse), texts, strict=True)]
    call = f"{torch}.cond({condition.text}, {', '.join(arms)}, ())"
    return _put(source, node, call, before)


def _function(side: ast.expr, text: str, kinds: Kinds) -> str:
    """The function of a side: the numbers of which it makes text come in as default arguments."""
    given = ", ".join(f"{name}={name}" for name in numbers_in_text([side], kinds))
    return f"lambda {given}: {text}" if given else f"lambda: {text}"


def _refuse_effects(source: Source, node: ast.IfExp, kinds: Kinds) -> None:
    """Raise Refused where a side does what torch.cond does not take, or writes to what it is given: a lambda writes nothing back."""
    sides: list[ast.stmt] = [ast.copy_location(ast.Return(each), each) for each in (node.body, node.orelse)]
    for side in sides:
        refuse_effects(source, [side], kinds, source.enclosing_function(node))
        for write in writes_of(side, kinds):
            raise Refused(f"a side of the ternary writes `{source.of(write.base)}` in place")


def _refuse_numbers_from_data(source: Source, node: ast.IfExp, kinds: Kinds) -> None:
    for each in (part for arm in (node.body, node.orelse) for part in ast.walk(arm)):
        known: Kind | None = None
        if isinstance(each, ast.Name):
            known = kinds.names.get(each.id)
        elif isinstance(each, ast.Subscript):
            known = kinds.of(each)
        if known is not None and known.what == "scalar":
            raise Refused(f"`{source.of(each)}` is a number from data, and torch.cond takes in none")


def _is_mixed(source: Source, node: ast.IfExp, sides: list[Kind]) -> bool:
    """Whether one side is a tensor and the other a number that a tensor may stand for."""
    if {side.what for side in sides} != {"tensor", "number"}:
        return False
    number, tensor = sorted(sides, key=lambda side: side.what)
    statement = source.enclosing_statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    if isinstance(statement, ast.Return) and asks_type_of_result(source, statement):
        return False
    return fits(number, tensor) and not any(asks_type(source, name) for name in names)


def as_statement(source: Source, node: ast.IfExp, kinds: Kinds) -> tuple[Source, ast.If] | None:
    """The text where the statement that holds `a if t else b` is written once for each side of an `if`, and that; None
    where it is not computed in any case, or where `t` is not computed as before."""
    statement = source.enclosing_statement(node)
    taken = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return))
    if not (taken or append_of(statement)) or not source.begins_line(statement):
        return None
    # What the statement itself writes, it writes once either way, and what a side writes, where that is chosen.
    chosen = {each for side in (node.body, node.orelse) for each in ast.walk(side)}
    writes = [
        each for each in writes_of(statement, kinds) if each.node is not statement and each.node not in chosen
    ]
    if writes or not repeatable(node.test, kinds):
        return None
    for each in source.ancestors(node):
        if each is statement:
            break
        if isinstance(
            each, (ast.Lambda, ast.comprehension, ast.BoolOp, ast.IfExp, ast.NamedExpr, *_COMPREHENSIONS)
        ):
            return None
    indent, inner = source.indent_of(statement), source.indent_of(statement) + source.indent_unit()
    alone = source.parents[node] is statement
    held = alone or (
        source.text[: source.start(node)].endswith("(") and source.text[source.end(node) :].startswith(")")
    )
    sides = []
    for each in (node.body, node.orelse):
        text = source.of(each)
        side = source.swap(node, text if held or _is_atom(each) else f"({text})")
        begin, end = source.start(statement), source.end(statement)
        sides.append(inner + source.shifted(begin, end, indent, inner, [side]))
    tests = [f"if {source.of(node.test)}:", f"if not {primary(source.of(node.test))}:"]
    kept = [_keeps(statement, each) for each in (node.body, node.orelse)]
    if alone and kept[0]:
        lines = [tests[1], sides[1]]
    elif alone and kept[1]:
        lines = [tests[0], sides[0]]
    else:
        lines = [tests[0], sides[0], f"{indent}else:", sides[1]]
    start = source.start(statement)
    changed = Source(replaced(source.text, [source.swap(statement, source.newline.join(lines))]))
    return changed, changed.branch_at(start)


def in_loop(source: Source, node: ast.IfExp, kinds: Kinds) -> tuple[Source, ast.IfExp, Kinds] | None:
    """The text with a loop for the list comprehension whose items `node` is, or is part of, the ternary in it, and the kinds
    there; None where it is in none."""
    inner: ast.AST = node
    for outer in source.ancestors(node):
        if isinstance(outer, ast.ListComp) and inner is outer.elt:
            break
        if isinstance(outer, (ast.stmt, ast.Lambda, ast.comprehension, *_COMPREHENSIONS)):
            return None
        inner = outer
    else:
        return None
    try:
        changed, append = listed_out(source, outer)
    except Refused:
        return None
    function = changed.enclosing_function(append)
    if function is None:
        return None
    # Names of the comprehension's own may be others in the loop.
    order = [each for each in ast.walk(outer.elt) if isinstance(each, ast.IfExp)].index(node)
    found = [each for each in ast.walk(append) if isinstance(each, ast.IfExp)][order]
    return changed, found, kinds_before(function, append, kinds)


def _is_atom(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call))


def _keeps(statement: ast.stmt, side: ast.expr) -> bool:
    """Whether the assignment of `side` changes nothing."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(side, ast.Name)
        and [ast.unparse(each) for each in statement.targets] == [side.id]
    )


def _clones(source: Source, node: ast.IfExp, kinds: Kinds) -> list[Replacement]:
    """The lines before the statement that give names memory of their own, of which the sides read views."""
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(statement)
    written = set() if function is None else set(afterwards(source, statement, function, kinds).written)
    sides: list[ast.stmt] = [ast.Expr(node.body), ast.Expr(node.orelse)]
    copies = to_separate(sides, set(), kinds, written, source=source, function=function)
    note = "  # torch.cond takes no two tensors of the same memory"
    lines = {name: f"{name} = {copy}{note}" for name, copy in copies.items()}
    if function is not None:
        bound = certainly_bound_before(function, statement)
        for name in copies:
            if name.isidentifier() and name not in bound:
                raise Refused(
                    f"`{name}` is a view of what the ternary reads as well, and belongs to another function"
                )
        for name in placed_by_data(sides, kinds, written, function, source):
            if name in bound:
                lines.setdefault(name, f"{name} = {name}.clone(){NOTE}")
    if not lines:
        return []
    plain = isinstance(statement, (ast.Assign, ast.Return, ast.Expr, ast.AnnAssign))
    if not plain or not source.begins_line(statement) or not all(each.isidentifier() for each in lines):
        raise Refused(f"`{next(iter(lines))}` is a view of what the ternary reads as well: clone it before")
    start = source.start(statement)
    line_end = f"{source.newline}{source.indent_of(statement)}"
    return [Replacement(start, start, "".join(line + line_end for line in lines.values()))]


def _answer(source: Source, node: ast.IfExp, kinds: Kinds) -> str | None:
    """The condition itself, as the bool that `True if t > 0 else False` is."""
    sides = [each.value if isinstance(each, ast.Constant) else None for each in (node.body, node.orelse)]
    test, text = kinds.of(node.test), source.of(node.test)
    if {type(each) for each in sides} != {bool} or sides[0] is sides[1]:
        return None
    if test.what == "tensor" and test.dtype == "bool":
        turned = "" if sides[0] else ".logical_not()"
        return f"{primary(text)}{turned}.item()"
    if not isinstance(node.test, ast.Compare) or test.what not in ("scalar", "number"):
        return None
    text = text if sides[0] else f"not {text}"
    return text if isinstance(source.parents[node], (ast.Assign, ast.Return)) else f"({text})"


def _mask(condition: Condition) -> str:
    """`condition` as torch.where takes it: of bools, where torch.cond takes any dtype."""
    text = condition.text
    if condition.form == "tensor" and not condition.is_bool:
        text = f"{primary(text)}.bool()"
    return (
        text if condition.form != "tensor" or condition.rank in (0, None) else f"{primary(text)}.reshape(())"
    )


def _has_nested(node: ast.IfExp) -> bool:
    return any(isinstance(each, ast.IfExp) for each in (node.body, node.orelse))


def _numbers_text(source: Source, node: ast.expr, kinds: Kinds, torch: str) -> str:
    """torch.where in torch.where for ternaries in a ternary that choose among floats. Raises Refused."""
    floats = [
        each for each in _leaves(node) if kinds.of(each).what == "number" and kinds.of(each).type == "float"
    ]
    if len(floats) != len(list(_leaves(node))):
        raise Refused("a ternary in the ternary chooses what is no float")
    if not _beside_tensor(source, node, kinds):
        raise Refused("the ternary gives a Python number that tensor data would choose")

    def text(each: ast.expr) -> str:
        if not isinstance(each, ast.IfExp):
            return source.of(each)
        condition = Predicates(source, kinds, torch).read(each.test)
        if condition.form not in ("tensor", "unknown"):
            raise Refused("a ternary in the ternary does not hang on a tensor")
        return f"{torch}.where({_mask(condition)}, {text(each.body)}, {text(each.orelse)})"

    return text(node)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _leaves(node.body)
        yield from _leaves(node.orelse)
    else:
        yield node


def _put(source: Source, node: ast.IfExp, text: str, before: Iterable[Replacement] = ()) -> str:
    plain = replaced(source.text, [*before, source.swap(node, text)])
    comments = source.comments_lost(source.start(node), source.end(node), text)
    if not comments:
        return plain
    line_end = source.newline + source.text[source.line_start(source.start(node)) : source.start(node)]
    if line_end.strip():
        line_end = source.newline + source.indent_of(source.enclosing_statement(node)) + source.indent_unit()
    noted = replaced(source.text, [*before, source.swap(node, line_end.join([*comments, text]))])
    # Only brackets around all of it take lines of comments.
    if _parses(noted):
        return noted
    statement = source.enclosing_statement(node)
    if before or not source.begins_line(statement):
        return plain
    start, line_end = source.start(statement), source.newline + source.indent_of(statement)
    above = Replacement(start, start, "".join(each + line_end for each in comments))
    return replaced(source.text, [above, source.swap(node, text)])


def _parses(text: str) -> bool:
    try:
        Source(text)
    except SyntaxError:
        return False
    return True


def _is_plain_number(kind: Kind) -> bool:
    return kind.what == "number" and kind.type in ("float", "bool")


def _beside_tensor(source: Source, node: ast.expr, kinds: Kinds, of_floats: bool = False) -> bool:
    """Whether the number is only ever an operand beside a tensor, `of_floats` where that must be certain."""
    parent = source.parents[node]
    if isinstance(parent, ast.BinOp):
        return _operand_of_tensor(source, node, kinds, of_floats)
    if (
        isinstance(parent, ast.Assign)
        and len(parent.targets) == 1
        and isinstance(parent.targets[0], ast.Name)
    ):
        name, function = parent.targets[0].id, source.enclosing_function(node)
        uses = [
            each
            for each in ast.walk(function or source.tree)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]
        if not uses:
            return False
        after = kinds.copy()
        block, index = source.block_of(parent)
        after.run(block[index + 1 :])
        return all(_operand_of_tensor(source, use, after, of_floats) for use in uses)
    return False


def _operand_of_tensor(source: Source, use: ast.expr, kinds: Kinds, of_floats: bool) -> bool:
    parent = source.parents[use]
    if not isinstance(parent, ast.BinOp):
        return False
    kind = kinds.of(parent.right if parent.left is use else parent.left)
    is_float = (kind.dtype or "").startswith(("float", "bfloat"))
    return kind.what == "tensor" and (is_float or not of_floats)
