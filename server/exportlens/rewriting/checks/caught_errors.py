"""Exceptions that traced code raises and catches, in words that the tracer of the user's torch follows."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Caught
from exportlens.inference.values import Function
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.inlining import negated
from exportlens.rewriting.code.names import reads
from exportlens.rewriting.code.text import Replacement, Source

# What a test may call without that the exception in question comes from there.
_HARMLESS = frozenset(
    {"dim", "hasattr", "is_floating_point", "isinstance", "issubclass", "len", "ndimension", "numel", "size"}
)


def arguments_set(place: Caught, made: Function, context: RewriteContext) -> Fix | Refusal:
    """`super().__init__(text)` -> `self.args = (text,)`, which is all that the constructor of a built-in exception does."""
    try:
        placed = next(
            (each for each in context.document.placed if each.chunk.key == made.chunk.key),
            None,
        )
        if placed is None:
            raise Refused("the exception's class is in another file")
        name = place.handler.name
        if name and _is_read_as_text(place.handler, name):
            raise Refused("the handler reads the exception as a text, which strict tracing makes another one")
        draft = Draft.of_chunk(placed.chunk, context)
        source = draft.source
        node = source.find(made.node)
        assert isinstance(node, ast.FunctionDef)
        calls = [
            each
            for each in ast.walk(node)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "__init__"
        ]
        if len(calls) != 1 or not isinstance(source.parents.get(calls[0]), ast.Expr):
            raise Refused("the constructor of the built-in exception is not called by one statement")
        call = calls[0]
        given = call.args[1:] if source.of(call.func) != "super().__init__" else call.args
        if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
            raise Refused("the arguments are not written one by one")
        own = node.args.args[0].arg
        texts = [source.of(each) for each in given]
        several = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        return draft.replace(
            "Set the arguments that it would set",
            [source.swap(call, f"{own}.args = {several}")],
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def raised_by_statement(place: Caught, context: RewriteContext) -> Fix | Refusal:
    """`assert a, "text"` -> `if not a: raise AssertionError("text")`.

    Unsafe only under `python -O`, which leaves asserts out.
    """
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        if not isinstance(node, ast.Assert) or not source.begins_line(node):
            raise Refused("the assert shares its line with another statement")
        inner = source.indent_of(node) + source.indent_unit()
        message = "" if node.msg is None else f"({source.of(node.msg)})"
        test = negated(source, node.test)
        if isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
            test = f"not {source.of(node.test)}"
        text = f"if {test}:{source.newline}{inner}raise AssertionError{message}"
        return draft.replace("Raise it by a statement", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def chosen_by_branch(place: Caught, context: RewriteContext) -> Fix | Refusal:
    """`try: if a: raise E; rest` / `except E: handler` -> `if a: handler` / `else:` the rest, still in its `try` where it
    may raise."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        raised = source.find(place.node)
        branch = source.parents.get(raised)
        attempt = source.parents.get(branch) if branch is not None else None
        if not isinstance(raised, ast.Raise) or raised.exc is None:
            raise Refused("which exception is raised again is not written where it is raised")
        if not isinstance(attempt, ast.Try) or not isinstance(branch, ast.If):
            raise Refused("the `raise` is not under an `if` in the `try` that catches it: choose by a value")
        if attempt.body[0] is not branch or len(branch.body) != 1 or branch.orelse:
            raise Refused("what is done before the `raise` may raise the same exception")
        if attempt.finalbody or len(attempt.handlers) != 1:
            raise Refused("the `try` has more than one handler, or a `finally`")
        [handler] = attempt.handlers
        if (handler.name and handler.name in reads(handler.body)) or _raises_again(handler):
            raise Refused("the handler reads the exception")
        if not all(source.begins_line(each) for each in (attempt, branch, *handler.body, *attempt.body[1:])):
            raise Refused("statements share a line")
        _refuse_calls(branch.test)
        text = _branches(source, attempt, branch, handler)
        whole = Replacement(source.start(attempt), source.span([attempt])[1], text)
        return draft.replace("Choose by the test that raises", [whole], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _branches(source: Source, attempt: ast.Try, branch: ast.If, handler: ast.ExceptHandler) -> str:
    outer, unit, nl = source.indent_of(attempt), source.indent_unit(), source.newline
    text = f"if {source.of(branch.test)}:{nl}{source.block(handler.body, outer + unit)}"
    rest = attempt.body[1:]
    if not rest and not attempt.orelse:
        return text
    text += f"{nl}{outer}else:{nl}"
    if not rest:
        return text + source.block(attempt.orelse, outer + unit)
    if not attempt.orelse and all(_cannot_raise_own(each) for each in rest):
        return text + source.block(rest, outer + unit)
    inner = outer + unit
    head = source.text[source.start(handler) : source.start(handler.body[0])].rstrip()
    text += f"{inner}try:{nl}{source.block(rest, inner + unit)}{nl}{inner}{head}{nl}"
    text += source.block(handler.body, inner + unit)
    if attempt.orelse:
        text += f"{nl}{inner}else:{nl}{source.block(attempt.orelse, inner + unit)}"
    return text


def _cannot_raise_own(statement: ast.stmt) -> bool:
    """Whether `statement` calls nothing but methods of what it computes with: no exception of one's own comes from there."""
    return not any(
        isinstance(each, (ast.Raise, ast.Call, ast.Assert, ast.With)) for each in ast.walk(statement)
    )


def _refuse_calls(test: ast.expr) -> None:
    for each in ast.walk(test):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            if name not in _HARMLESS:
                raise Refused(f"`{ast.unparse(each)}` in the test may raise the same exception")


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(each, ast.Raise) and each.exc is None for one in handler.body for each in ast.walk(one)
    )


def _is_read_as_text(handler: ast.ExceptHandler, name: str) -> bool:
    """Whether a handler reads more of its exception than its attributes."""
    attributes = {
        id(each.value)
        for one in handler.body
        for each in ast.walk(one)
        if isinstance(each, ast.Attribute) and each.attr != "args"
    }
    return any(
        isinstance(each, ast.Name) and each.id == name and id(each) not in attributes
        for one in handler.body
        for each in ast.walk(one)
    )
