"""Checks of tensor data become assertions of the graph: `assert t` and `if t: raise ...` ->
torch._assert_async.

torch._assert_async takes a tensor of one element; for bools that Python reads from data there is
torch._assert_scalar (both take the message as a string and hold in both modes of torch 2.13; torch._check
with a message fails in strict mode).
"""

from __future__ import annotations

import ast
import builtins

from exportlens.inference.values import Value
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.decisions.conditions import Condition, combined
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log, repeatable
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def assert_text(
    source: Source, node: ast.Assert, kinds: Kinds, torch: str, value: Value | None = None
) -> str:
    """The whole text with the `assert` rewritten. Raises Refused."""
    refuse_where_caught(source, node)
    refuse_where_callers_catch(source, node, [node], kinds)
    message = (
        _message(source, node.msg, kinds)
        if node.msg is not None
        else _quoted(source, f"assertion failed: {_flat(source.of(node.test))}")
    )
    lines = _checks(source, node.test, kinds, torch, value, negated=False, message=message)
    comments = source.comments_lost(source.start(node), source.end(node), *lines)
    return _replace_statement(source, node, node, [*comments, *lines])


def sizes_checked(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where an arm that asserts that there is something asserts it of a tensor: what is said of a size of the
    outside's, torch takes for said of the whole program."""
    swaps = []
    for each in ast.walk(node):
        if not isinstance(each, ast.Assert) or not _is_of_size(each.test):
            continue
        test = each.test
        assert isinstance(test, ast.Compare)
        if kinds.of(test.left).what not in ("size", "scalar", "unknown"):
            continue
        refuse_where_caught(source, each)
        refuse_where_callers_catch(source, each, [each], kinds)
        message = (
            _message(source, each.msg, kinds) if each.msg is not None else _quoted(source, "there is nothing")
        )
        size, rest = source.of(test.left), source.text[source.end(test.left) : source.end(test)]
        text = f"{torch}._assert_async({torch}.full((), {size}){rest}, {message})"
        swaps.append(source.swap(each, text))
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


def _is_of_size(test: ast.expr) -> bool:
    """Whether `test` is `t.numel() > 0`, `len(t) != 0` or the like."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if (type(test.ops[0]), ast.unparse(test.comparators[0])) not in (
        (ast.Gt, "0"),
        (ast.NotEq, "0"),
        (ast.GtE, "1"),
    ):
        return False
    left = test.left
    if isinstance(left, ast.Subscript):
        return isinstance(left.value, ast.Attribute) and left.value.attr == "shape"
    if not isinstance(left, ast.Call):
        return False
    if isinstance(left.func, ast.Name):
        return left.func.id == "len" and len(left.args) == 1
    return isinstance(left.func, ast.Attribute) and left.func.attr in ("numel", "size", "nelement")


def raise_text(source: Source, node: ast.If, kinds: Kinds, torch: str, value: Value | None = None) -> str:
    """The whole text with `if t: raise ...` (or `else: raise ...`) rewritten. Raises Refused."""
    refuse_where_caught(source, node)
    raising_then = exits(node.body) == {"raises"}
    body, rest = (node.body, node.orelse) if raising_then else (node.orelse, node.body)
    refuse_where_callers_catch(source, node, body, kinds)
    message = message_of_raise(source, body, kinds)
    lines = _checks(source, node.test, kinds, torch, value, negated=raising_then, message=message)
    # Those of the side that stays come along with it.
    start, end = source.span(body)
    spans = [
        (source.start(node), source.span(node.body)[0]),
        (start if raising_then else source.span(node.body)[1], end),
    ]
    comments = [each for span in spans for each in source.comments_lost(*span, *lines)]
    return _replace_statement(source, node, node, [*comments, *lines], rest)


def refuse_where_caught(source: Source, node: ast.stmt) -> None:
    """Raise Refused where the function itself goes on after the error: a program stops at a check that fails."""
    inner: ast.AST = node
    for each in source.ancestors(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(each, ast.Try) and inner in each.body:
            caught = any(exits(handler.body) != {"raises"} for handler in each.handlers)
        else:
            caught = isinstance(each, ast.With) and any(
                ast.unparse(item.context_expr).partition("(")[0].endswith("suppress") for item in each.items
            )
        if caught:
            raise Refused("the error is caught in the same function: a program stops at a check that fails")
        inner = each


def refuse_where_callers_catch(source: Source, node: ast.stmt, raising: list[ast.stmt], kinds: Kinds) -> None:
    """Raise Refused where a function of the file, around a call of its model's or of the function of `node`, catches the error
    and goes on: an early exit is written so."""
    function = source.enclosing_function(node)
    trees = [each for tree in (source.tree.body, *(chunk.body for chunk in kinds.around)) for each in tree]
    classes: dict[str, ast.ClassDef] = {}
    attempts: list[ast.Try] = []
    for tree in trees:
        for each in walk(tree):
            if isinstance(each, ast.ClassDef):
                classes[each.name] = each
            elif isinstance(each, ast.Try) and function is not None and _calls(each, function.name):
                attempts.append(each)
    names = {
        name for statement in raising for each in walk(statement) for name in _names_of_error(each, classes)
    }
    handlers = [handler for each in attempts for handler in each.handlers]
    if any(exits(each.body) != {"raises"} and names & _names_caught(each) for each in handlers):
        raise Refused(
            "the error is caught where the function is called: a program stops at a check that fails"
        )


def _calls(attempt: ast.Try, name: str) -> bool:
    """Whether what is tried calls a method or a module of its object, or `name`."""
    calls = [each for statement in attempt.body for each in walk(statement) if isinstance(each, ast.Call)]
    called = [dotted(each.func) or "" for each in calls]
    return any(each.startswith(("self.", "super.")) or each.rpartition(".")[2] == name for each in called)


def _names_of_error(node: ast.AST, classes: dict[str, ast.ClassDef]) -> set[str]:
    """The names by which a handler catches what `node` raises."""
    if isinstance(node, ast.Assert):
        names = ["AssertionError"]
    elif isinstance(node, ast.Raise) and node.exc is not None:
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        names = [(dotted(error) or "").rpartition(".")[2]]
    else:
        return set()
    found = {"Exception", "BaseException"}
    while names:
        name = names.pop()
        if name in found:
            continue
        found.add(name)
        if name in classes:
            names += [(dotted(each) or "").rpartition(".")[2] for each in classes[name].bases]
        elif isinstance(made := getattr(builtins, name, None), type):
            names += [each.__name__ for each in made.__bases__]
    return found


def _names_caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {(dotted(each) or "").rpartition(".")[2] for each in types}


def raises(node: ast.If) -> bool:
    """Whether one side of the branch does nothing but raise."""
    return exits(node.body) == {"raises"} or (bool(node.orelse) and exits(node.orelse) == {"raises"})


def checked_before(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where `if t: if option: raise ...` with more behind it checks before it branches, and the branch of it."""
    first = node.body[0]
    if (
        not isinstance(first, ast.If)
        or first.orelse
        or len(node.body) == 1
        or not all(isinstance(each, ast.Raise) for each in first.body)
        or not isinstance(first.test, (ast.Name, ast.Attribute))
        or Predicates(source, kinds, torch).from_data(first.test)
        or not repeatable(node.test, kinds)
        or not source.begins_line(node)
        or source.text.startswith("elif", source.start(node))
    ):
        return None
    nl, indent, unit = source.newline, source.indent_of(node), source.indent_unit()
    test = source.of(node.test)
    lines = [
        f"if {source.of(first.test)}:",
        f"{indent}{unit}if {test}:",
        source.block(first.body, indent + 2 * unit),
        indent,
    ]
    head = nl.join(lines)
    begin = source.start(node)
    removed = Replacement(source.start(first), source.start(node.body[1]), "")
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), removed]))
    return changed, changed.branch_at(begin + len(head))


def _checks(
    source: Source,
    test: ast.expr,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    *,
    negated: bool,
    message: str,
) -> list[str]:
    predicates = Predicates(source, kinds, torch)
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    if isinstance(test, ast.BoolOp):
        conjunction = isinstance(test.op, ast.And) != negated
        parts = [predicates.read(each, negated) for each in test.values]
        elsewhere = any(each.form not in ("unknown", "static") for each in parts)
        parts = [
            _decided(part, _as_tensor(source, asked, torch, negated), elsewhere)
            for part, asked in zip(parts, test.values, strict=True)
        ]
        static = [each for each in parts if each.form == "static"]
        if conjunction:
            guarded = [
                line
                for each in parts
                for line in (
                    [f"assert {each.text}, {message}"]
                    if each.form == "static"
                    else [_check(each, torch, message)]
                )
            ]
            if static and parts[0].form == "static" and negated is False:
                return guarded
            if not static:
                return guarded
            return [f"assert {each.text}, {message}" for each in static] + [
                _check(each, torch, message) for each in parts if each.form != "static"
            ]
        parts = [
            _bound_by_data(source, part, asked, kinds, torch, negated)
            for part, asked in zip(parts, test.values, strict=True)
        ]
        static = [each for each in parts if each.form == "static"]
        data = [each for each in parts if each.form != "static"]
        check = _check(combined(data, "or", torch), torch, message)
        if not static:
            return [check]
        guard = " or ".join(
            f"({each.text})" if " or " in each.text or " and " in each.text else each.text for each in static
        )
        return [f"if {_inverse(guard) if len(static) == 1 else f'not ({guard})'}:", f"\t{check}"]
    condition = predicates.read(test, negated, value)
    if condition.form == "static":
        raise Refused("the condition does not depend on tensor data as far as it can be followed")
    return [_check(condition, torch, message)]


def _inverse(text: str) -> str:
    """The opposite of one condition of Python's, without a second `not`."""
    node = parse_python(text.strip(), mode="eval").body
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.get_source_segment(text.strip(), node.operand) or f"not {primary(text)}"
    return f"not {primary(text)}"


def _decided(part: Condition, tensor: str | None, elsewhere: bool) -> Condition:
    """A part of which it is not known whether it is data: as `tensor` where it can be made one. Where the data is
    `elsewhere`, Python asks for its truth as before."""
    if part.form != "unknown":
        return part
    if tensor is None and elsewhere:
        return Condition(part.plain or part.text, "static")
    return Condition(tensor or part.text, "tensor")


def _bound_by_data(
    source: Source, part: Condition, node: ast.expr, kinds: Kinds, torch: str, negated: bool
) -> Condition:
    """A part that is a name of `option and t.all()`: a tensor of it, as options decide whether it is a bool."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, negated = node.operand, not negated
    function = source.enclosing_function(node)
    if not isinstance(node, ast.Name) or function is None or part.form not in ("static", "tensor"):
        return part
    given = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [node.id]
    ]
    if len(given) != 1 or not isinstance(given[0], ast.BoolOp):
        return part
    tensors = [_is_answer(each) for each in given[0].values]
    bools = [
        isinstance(each, (ast.UnaryOp, ast.Compare)) or kinds.of(each).type == "bool"
        for each in given[0].values
    ]
    if not any(tensors) or not all(map(max, tensors, bools)):
        return part
    text = f"{torch}.as_tensor({node.id})"
    return Condition(f"{torch}.logical_not({text})" if negated else text, "tensor", 0, "bool", True)


def _is_answer(node: ast.expr) -> bool:
    """Whether `node` is a call such as `t.all()`."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("all", "any")


def _as_tensor(source: Source, node: ast.expr, torch: str, negated: bool) -> str | None:
    """The text of a tensor for what a function or a method of the model's own gives, a tensor or a bool; None where
    something else gives it."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, negated = node.operand, not negated
    if not isinstance(node, ast.Call):
        return None
    if not (isinstance(node.func, ast.Name) or (dotted(node.func) or "").startswith("self.")):
        return None
    text = f"{torch}.as_tensor({source.of(node)})"
    return f"{torch}.logical_not({text})" if negated else text


def _check(condition: Condition, torch: str, message: str) -> str:
    if condition.form == "mixed" and condition.alone is not None:
        return f"{torch}._assert_async({condition.alone}, {message})"
    if condition.form == "mixed":
        raise Refused("configuration and tensor data are mixed in the condition")
    function = "_assert_scalar" if condition.form == "symbol" else "_assert_async"
    return f"{torch}.{function}({condition.text}, {message})"


def _message(source: Source, node: ast.expr, kinds: Kinds) -> str:
    """The message as text of a string expression that asks no tensor for its value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return source.of(node)
    if isinstance(node, ast.JoinedStr):
        parts = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        if all(_is_configured(each, kinds) for each in parts):
            return source.of(node)  # tracing fills in what the configuration says
        return _told_in_part(source, node, kinds)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_message(source, each, kinds) for each in (node.left, node.right)]
        if any(isinstance(parse_python(f"({side})", mode="eval").body, ast.JoinedStr) for side in sides):
            return " + ".join(sides)
        return _quoted(source, "".join(ast.literal_eval(f"({side})") for side in sides))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return _quoted(source, str(node.left.value))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and isinstance(node.func.value, ast.Constant)
    ):
        return _quoted(source, str(node.func.value.value))
    return _quoted(source, _flat(source.of(node)))


def _is_configured(node: ast.expr, kinds: Kinds) -> bool:
    """Whether tracing knows the value. Sizes may be open, and strict tracing formats no open one."""
    kind = kinds.of(node)
    return kind.what in ("static", "number") and kind.type != "size"


def _told_in_part(source: Source, node: ast.JoinedStr, kinds: Kinds) -> str:
    """The f-string with what the configuration says; what only a run knows is left out of the text."""
    values: list[ast.expr] = []
    for each in node.values:
        is_known = isinstance(each, ast.Constant) or (
            isinstance(each, ast.FormattedValue) and _is_configured(each.value, kinds)
        )
        values.append(each if is_known else ast.Constant("..."))
    if all(isinstance(each, ast.Constant) for each in values):
        told = "".join(str(each.value) for each in values if isinstance(each, ast.Constant))
        return _quoted(source, told)
    return ast.unparse(ast.JoinedStr(values))


def _only_raises(node: ast.stmt) -> bool:
    """Whether `node` raises, or is an `if` whose arms do nothing else."""
    return isinstance(node, ast.Raise) or (
        isinstance(node, ast.If) and all(map(_only_raises, (*node.body, *node.orelse)))
    )


def message_of_raise(source: Source, body: list[ast.stmt], kinds: Kinds) -> str:
    assigned: dict[str, ast.expr] = {}
    for statement in body[:-1]:
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            assigned[statement.targets[0].id] = statement.value
        elif not (isinstance(statement, ast.Expr) and is_log(statement.value, kinds)) and not _only_raises(
            statement
        ):
            raise Refused("the branch does more than raise")
    last = body[-1]
    if _only_raises(last) and isinstance(last, ast.If):
        # Every way through it raises, with one message or another: the last one is of the rest.
        return message_of_raise(source, last.orelse or last.body, kinds)
    if not isinstance(last, ast.Raise):
        raise Refused("the branch does more than raise")
    error = last.exc
    if isinstance(error, ast.Call) and error.args:
        message = error.args[0]
        if isinstance(message, ast.Name) and message.id in assigned:
            message = assigned[message.id]
        return _message(source, message, kinds)
    if isinstance(error, ast.Call) and not error.keywords:
        error = error.func
    return _quoted(source, _flat(source.of(error)) if error is not None else "raised")


def _quoted(source: Source, text: str) -> str:
    """The literal of `text`, in the quotes that the file uses most."""
    literal = repr(text)
    single = source.text.count("'") > source.text.count('"')
    if single or '"' in text or not literal.startswith("'"):
        return literal
    return f'"{literal[1:-1]}"'


def _flat(text: str) -> str:
    return " ".join(text.split())


def _replace_statement(
    source: Source, first: ast.stmt, last: ast.stmt, lines: list[str], rest: list[ast.stmt] | None = None
) -> str:
    nl, unit = source.newline, source.indent_unit()
    is_elif = isinstance(first, ast.If) and source.text.startswith("elif", source.start(first))
    indent = source.indent_of(first) + (unit if is_elif else "")
    lines = [line.replace("\t", unit) for line in lines]
    if not source.begins_line(first) and not is_elif:
        if len(lines) > 1 or rest:
            raise Refused("the statement shares its line with another")
        return replaced(source.text, [Replacement(source.start(first), source.end(last), lines[0])])
    text = nl.join(indent + line for line in lines)
    if rest:
        text += nl + _dedented(source, rest, indent)
    text = f"else:{nl}{text}" if is_elif else text[len(indent) :]
    end = source.span([last])[1] if rest or isinstance(first, ast.If) else source.end(last)
    return replaced(source.text, [Replacement(source.start(first), end, text)])


def _dedented(source: Source, rest: list[ast.stmt], indent: str) -> str:
    if len(rest) == 1 and source.text.startswith("elif", source.start(rest[0])):
        start, end = source.start(rest[0]), source.span(rest)[1]
        return indent + source.shifted(start, end, source.indent_of(rest[0]), indent)[2:]
    return source.block(rest, indent)
