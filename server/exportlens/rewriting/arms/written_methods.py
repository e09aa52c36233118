"""Methods that write the model's state and give something, called in an arm: they are written out there, where what they write can
become a result of torch.cond.

    if x.mean() > 0:                              if x.mean() > 0:
        y = y + self.track(x)                         level = self.level * 0.5 + x.detach()
                                      ->              self.level.copy_(level)
                                                      track_result = x - level
                                                      y = y + track_result
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.inlining import Callee, callee_of, inlined
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.helper_writes import written_state
from exportlens.rewriting.memory.method_writes import written_by_method

_MOST = 6
_HOLDING = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
# What computes all of its parts, once and in the order in which they are written.
_IN_ORDER = (
    *(ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Tuple, ast.List),
    *(ast.Attribute, ast.Subscript, ast.Starred, ast.FormattedValue, ast.JoinedStr),
)


def writers_written_out(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where the arms call no method that writes the model's state, as far as these can be written out; None where they
    call none."""
    changed = None
    for _ in range(_MOST):
        found = _one_written_out(source, node, kinds)
        if found is None:
            return changed
        source, node = changed = found
    return changed


def _one_written_out(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If] | None:
    function = source.enclosing_function(node)
    if function is None:
        return None
    start = source.start(node)
    for call in _calls(source, node):
        statement = source.enclosing_statement(call)
        written = _written(source, function, call, kinds)
        if written is None or not source.begins_line(statement):
            continue
        if any(f"{dotted(each)}.".startswith(f"self.{written}.") for each in _given(call)):
            # What is given is another thing once the method has bound it anew.
            continue
        text = _in_its_place(source, call, statement, written, kinds)
        if text is not None:
            return read_again(text, start)
    return None


def writers_behind(source: Source, node: ast.If, kinds: Kinds) -> list[tuple[ast.Expr, Callee]]:
    """The statements behind `node`, where an arm leaves the function or the round, that call a method that writes the state of the
    model or of a part of it."""
    function, found = source.enclosing_function(node), []
    for statement in _behind(source, node) if function is not None else ():
        for each in ast.walk(statement):
            if not isinstance(each, ast.Expr) or not isinstance(call := each.value, ast.Call):
                continue
            assert function is not None
            own = (dotted(call.func) or "").rpartition(".")[0] == "self"
            written = (_written(source, function, call, kinds) if own else None) or written_state(call, kinds)
            callee = callee_of(source, each, kinds) if written is not None else None
            if callee is not None:
                found.append((each, callee))
    return found


def _behind(source: Source, node: ast.If) -> list[ast.stmt]:
    block, index = source.block_of(node)
    return block[index + 1 :] if exits([node]) != {"falls"} else []


def _calls(source: Source, node: ast.If) -> Iterator[ast.Call]:
    """The calls of methods of the model in the arms of `node`, and in what follows where an arm leaves the function or the round."""
    for statement in (*node.body, *node.orelse, *_behind(source, node)):
        for each in ast.walk(statement):
            if isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[0] == "self":
                yield each


def _written(source: Source, function: Function, call: ast.Call, kinds: Kinds) -> str | None:
    name = (dotted(call.func) or "").rpartition(".")[2]
    return written_by_method(source, function, name, kinds)


def _given(call: ast.Call) -> Iterator[ast.AST]:
    for each in (*call.args, *call.keywords):
        yield from ast.walk(each)


def _in_its_place(
    source: Source, call: ast.Call, statement: ast.stmt, written: str, kinds: Kinds
) -> str | None:
    """The text with the method written out for `call`, whose value has a name of its own where it is a part of more."""
    taken = every_name(source.tree)
    if isinstance(statement, ast.Assign) and statement.value is call:
        body = inlined(source, statement, taken, callee_of(source, statement, kinds))
        return None if body is None else replaced(source.text, [source.swap(statement, body)])
    if not isinstance(statement, _HOLDING) or not _comes_first(source, call, statement, written):
        return None
    name = fresh(f"{(dotted(call.func) or '').rpartition('.')[2].strip('_')}_result", taken)
    begin = source.start(statement)
    line = f"{name} = {source.of(call)}{source.newline}{source.indent_of(statement)}"
    named = Source(replaced(source.text, [Replacement(begin, begin, line), source.swap(call, name)]))
    alone = next(
        each for each in ast.walk(named.tree) if isinstance(each, ast.Assign) and named.start(each) == begin
    )
    body = inlined(named, alone, taken, callee_of(named, alone, kinds))
    return None if body is None else replaced(named.text, [named.swap(alone, body)])


def _comes_first(source: Source, call: ast.Call, statement: ast.stmt, written: str) -> bool:
    """Whether nothing of `statement` that is computed before `call` hangs on what that writes, or does more than read a name."""
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False
    if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Name):
        return False
    inner: ast.AST = call
    for outer in source.ancestors(call):
        if outer is statement:
            return True
        if not isinstance(outer, _IN_ORDER):
            return False
        for each in ast.iter_child_nodes(outer):
            if each is inner:
                break
            path = dotted(each) if isinstance(each, ast.expr) else ""
            if path is None and not isinstance(each, ast.Constant):
                return False
            if f"{path}.".startswith(f"self.{written}."):
                return False
        inner = outer
    return False
