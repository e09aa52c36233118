"""What the `else` of a loop binds, bound before the loop, where the loop binds it anew on its way out only.

    while n < limit:                  converged = 0.0
        ...                           while n < limit:
        if change < tolerance:            ...
            converged = 1.0               if change < tolerance:
            break                             converged = 1.0
    else:                                     break
        converged = 0.0

Its names are then bound on both ways of a branch on what has left the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.code.liveness import always_bound, certainly_bound_before, exits, live_before
from exportlens.rewriting.code.names import bound, is_none, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

Loop = ast.For | ast.While
_MAKING_BY = frozenset({"new_tensor", "new_zeros", "new_ones", "new_full"})
_MAKING = frozenset(
    {"tensor", "zeros", "ones", "full", "eye", "arange", "zeros_like", "ones_like", "full_like"}
)


def else_first(source: Source, loop: Loop, torch: str) -> tuple[Source, Loop] | None:
    """The text with what the `else` of `loop` binds before the loop, and the loop; None where that is not the same."""
    function = source.enclosing_function(loop)
    if function is None or not loop.orelse or not source.begins_line(loop):
        return None
    names = bound(loop.orelse)
    certain = certainly_bound_before(function, loop)
    if (
        not names
        or certain.issuperset(names)
        or not all(_is_binding(source, each, torch) for each in loop.orelse)
    ):
        return None
    if not reads(loop.orelse) - ({torch} - set(bound(function.body))) <= certain - set(bound(loop)):
        return None
    header = [loop.test] if isinstance(loop, ast.While) else [loop.iter, loop.target]
    if set(names) & (reads([*header, *loop.body]) | set(bound(header))) or is_bound_otherwise(
        loop.body, set(names)
    ):
        return None
    if not all(always.issuperset(names) for always in bound_where_broken(loop.body)):
        return None
    indent, nl = source.indent_of(loop), source.newline
    begin = source.start(loop)
    head = source.block(loop.orelse, indent).removeprefix(indent) + nl + indent
    end = source.span([loop.body[-1]])[1]
    swaps = [Replacement(begin, begin, head), Replacement(end, source.span([loop])[1], "")]
    changed = Source(replaced(source.text, swaps))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in loops if changed.start(each) == begin + len(head))


def none_as_else(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop] | None:
    """The text where what follows `loop` for a name that is still None stands in the loop's `else`, and the loop; None where
    the loop may end without a `break` that binds the name, or with one that does not.

    What a `break` binds to another name's value is bound in each round, so that it is bound wherever the loop is left.
    """
    function, found = source.enclosing_function(loop), _asked_for_none(source, loop)
    if function is None or loop.orelse or found is None or not source.begins_line(loop):
        return None
    name, start, asked = found
    arm = next((each for each in loop.body if isinstance(each, ast.If) and name in bound(each)), None)
    if arm is None or (name not in always_bound(asked.body) and "falls" in exits(asked.body)):
        return None
    if name in live_before(asked.body, frozenset(), function) or arm.orelse or len(arm.body) != 2:
        return None
    given, last = arm.body
    if not (
        isinstance(given, ast.Assign) and isinstance(given.value, ast.Name) and isinstance(last, ast.Break)
    ):
        return None
    uses = [each for each in ast.walk(loop) if isinstance(each, ast.Name) and each.id == name]
    if [*given.targets] != uses or sum(isinstance(each, ast.Break) for each in ast.walk(loop)) != 1:
        return None
    if kinds_before(function, given, kinds).of(given.value).what != "tensor":
        # It might be None itself.
        return None
    if given.value.id not in always_bound(loop.body[: loop.body.index(arm)]) or set(bound(arm.test)):
        return None
    if not source.begins_line(arm) or not source.begins_line(asked) or not source.begins_line(start):
        return None
    indent, nl = source.indent_of(loop), source.newline
    begin, ends = source.start(loop), source.span([loop, asked])[1]
    line = source.of(given) + nl + source.indent_of(arm)
    body = source.block(asked.body, indent + source.indent_unit())
    swaps = [
        Replacement(source.start(arm), source.start(arm), line),
        Replacement(source.start(given), source.start(last), ""),
        Replacement(source.span([loop])[1], ends, f"{nl}{indent}else:{nl}{body}"),
    ]
    changed = Source(replaced(source.text, swaps))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in loops if changed.start(each) == begin)


def _asked_for_none(source: Source, loop: Loop) -> tuple[str, ast.stmt, ast.If] | None:
    """The name that is bound to None before `loop` and asked for it right behind, with both statements."""
    block, index = source.block_of(loop)
    asked = block[index + 1] if index + 1 < len(block) else None
    if not isinstance(asked, ast.If) or asked.orelse or not isinstance(asked.test, ast.Compare):
        return None
    test = asked.test
    if not (isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Is) and len(test.ops) == 1):
        return None
    if not is_none(test.comparators[0]):
        return None
    name = test.left.id
    start = next((each for each in reversed(block[:index]) if name in bound(each)), None)
    if not (
        isinstance(start, ast.Assign) and len(start.targets) == 1 and isinstance(start.targets[0], ast.Name)
    ):
        return None
    return (name, start, asked) if is_none(start.value) else None


def _is_binding(source: Source, statement: ast.stmt, torch: str) -> bool:
    """Whether `statement` binds names to what is the same before the loop and behind it."""
    if not isinstance(statement, ast.Assign):
        return False
    return _is_plain(source, statement.value, torch) and all(map(_is_target, statement.targets))


def _is_plain(source: Source, node: ast.expr, torch: str) -> bool:
    """Whether `node` is a constant, what a name is bound to, a number of the model's that only its constructor sets, or a new
    tensor of constants."""
    if isinstance(node, ast.Tuple):
        return all(_is_plain(source, each, torch) for each in node.elts)
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(value, ast.Constant) or (value is node and isinstance(value, ast.Name)):
        return True
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return _is_set_at_first(source, node.attr)
    return isinstance(node, ast.Call) and _makes_tensor(node, torch)


def _is_set_at_first(source: Source, name: str) -> bool:
    """Whether the constructors of the file set `name` of an object, and nothing else of it does."""
    functions = [
        source.enclosing_function(each)
        for each in walk(source.tree)
        if isinstance(each, ast.Attribute) and each.attr == name and not isinstance(each.ctx, ast.Load)
    ]
    return bool(functions) and all(each is not None and each.name == "__init__" for each in functions)


def _makes_tensor(call: ast.Call, torch: str) -> bool:
    """Whether `call` makes a new tensor of constants, perhaps of the size, the type and the device of another."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)):
        return False
    given: list[ast.expr] = [*call.args, *(each.value for each in call.keywords)]
    if func.value.id == torch and func.attr.endswith("_like") and call.args:
        given = given[1:] if isinstance(call.args[0], ast.Name) else given
    made = _MAKING if func.value.id == torch else _MAKING_BY
    return func.attr in made and all(_is_constant(each, torch) for each in given)


def _is_constant(node: ast.expr, torch: str) -> bool:
    """Whether `node` is made of constants, and of what no writing to a tensor changes."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_constant(each, torch) for each in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand, torch)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == torch or node.attr in ("device", "dtype", "shape")
    return isinstance(node, ast.Constant)


def _is_target(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_target, node.elts))
    return isinstance(node, ast.Name)


def is_bound_otherwise(statements: Sequence[ast.stmt], names: set[str]) -> bool:
    """Whether `statements` may bind one of `names` and go on, so that what was bound before the loop is lost."""
    if not names & set(bound(statements)):
        return False
    if not exits(statements) & {"falls", "continues"}:
        return False
    for each in statements:
        if not names & set(bound(each)):
            continue
        if not isinstance(each, ast.If) or names & set(bound(each.test)):
            return True
        if any(is_bound_otherwise(arm, names) for arm in (each.body, each.orelse)):
            return True
    return False


def bound_where_broken(statements: Sequence[ast.stmt]) -> Iterator[set[str]]:
    """What `statements` have certainly bound at each `break` of the loop that they stand in."""
    for index, each in enumerate(statements):
        before = always_bound(statements[:index])
        if isinstance(each, ast.Break):
            yield before
        elif isinstance(each, ast.If):
            for arm in (each.body, each.orelse):
                yield from (before | inner for inner in bound_where_broken(arm))
        elif "breaks" in exits([each]):
            yield set()
