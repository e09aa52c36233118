"""`with` on context managers that the strict tracing of older torch does not enter, written out."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import With
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.inlining import NEVER_MOVED
from exportlens.rewriting.code.names import arguments, bound, dotted, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source

_LONGEST = 15
# What leaves the block of a `with` on another way than its end.
_LEAVES = (ast.Return, ast.Break, ast.Continue)


def generator_written_out(place: With, context: RewriteContext) -> Fix | Refusal:
    """`with frozen(x) as y: body` -> the statements of `frozen`, with `y = ...` and `body` where it yields."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        statement, item = _alone(source, source.find(place.node))
        call = item.context_expr
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise Refused("the generator is not called by its name")
        theirs, function = _generator(draft, call.func.id)
        stops = [each for each in ast.walk(function) if isinstance(each, ast.Yield)]
        if len(stops) != 1 or not isinstance(theirs.parents.get(stops[0]), ast.Expr):
            raise Refused("the generator does not yield by one statement")
        body = function.body[1:] if _is_text(function.body[0]) else function.body
        if sum(isinstance(each, ast.stmt) for one in body for each in ast.walk(one)) > _LONGEST:
            raise Refused("the generator is long: write what it does here yourself")
        if any(isinstance(each, NEVER_MOVED) for one in body for each in ast.walk(one)):
            raise Refused("the generator returns, or defines functions")
        leaves = any(isinstance(each, _LEAVES) for one in statement.body for each in ast.walk(one))
        _refuse_other_ways(theirs, stops[0], function, leaves)
        text = _written_out(draft, theirs, body, stops[0], statement, _given(source, theirs, call, function))
        whole = Replacement(source.start(statement), source.span([statement])[1], text)
        return draft.replace("Write the generator out", [whole], Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def without_contextlib(place: With, context: RewriteContext) -> Fix | Refusal:
    """`with suppress(E): body` -> `try: body` / `except E: pass`; `with nullcontext(v) as y: body` -> `y = v` and the body."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        statement, item = _alone(source, source.find(place.node))
        call, nl, indent = item.context_expr, source.newline, source.indent_of(statement)
        if (
            not isinstance(call, ast.Call)
            or call.keywords
            or any(isinstance(each, ast.Starred) for each in call.args)
        ):
            raise Refused("the context is not made where it is entered")
        inner = source.indent_of(statement.body[0])
        if place.name == "contextlib.suppress":
            if item.optional_vars is not None:
                raise Refused("what `suppress` gives is bound")
            kinds = [source.of(each) for each in call.args]
            caught = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
            text = f"try:{nl}{source.block(statement.body, inner)}{nl}{indent}except {caught}:{nl}{inner}pass"
        else:
            [given] = call.args
            target = source.of(item.optional_vars) if item.optional_vars is not None else ""
            first = f"{target} = {source.of(given)}" if target else source.of(given)
            text = f"{first}{nl}{source.block(statement.body, indent)}"
        whole = Replacement(source.start(statement), source.span([statement])[1], text)
        return draft.replace("Write it without contextlib", [whole], Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError, ValueError) as refused:
        return Refusal(str(refused))


def _alone(source: Source, node: ast.AST) -> tuple[ast.With, ast.withitem]:
    """The `with` that enters `node` and nothing else, on lines of its own."""
    for each in source.ancestors(node):
        if isinstance(each, ast.With) and any(item.context_expr is node for item in each.items):
            if len(each.items) != 1:
                raise Refused("several contexts are entered at once: enter each by a `with` of its own")
            if not source.begins_line(each) or not all(map(source.begins_line, each.body)):
                raise Refused("the block shares its line with the `with`")
            return each, each.items[0]
    raise Refused("what is entered is made elsewhere, or not by a `with`")


def _generator(draft: Draft, name: str) -> tuple[Source, ast.FunctionDef]:
    """The function of the file's top level that `contextlib.contextmanager` alone decorates."""
    found = [
        (placed.chunk, each)
        for placed in draft.context.document.placed
        for each in placed.chunk.body
        if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    if len(found) != 1:
        raise Refused(f"`{name}` is not written at the top level of this file, once")
    chunk, function = found[0]
    if len(function.decorator_list) != 1 or draft.qualified(function.decorator_list[0]) != (
        "contextlib.contextmanager"
    ):
        raise Refused(f"`{name}` has other decorators than `contextmanager`")
    source = Source(chunk.text)
    node = source.find(function)
    assert isinstance(node, ast.FunctionDef)
    return source, node


def _refuse_other_ways(source: Source, stop: ast.Yield, function: ast.FunctionDef, leaves: bool) -> None:
    """Raise Refused where the block would be run more or less than once, or what follows it be left out."""
    node: ast.AST = source.parents[stop]
    while node is not function:
        parent = source.parents[node]
        if isinstance(parent, (ast.For, ast.While, ast.AsyncFor, ast.If, ast.Match, ast.AsyncWith)):
            raise Refused("the generator yields under a condition, or in a loop")
        if isinstance(parent, ast.Try) and node not in parent.body:
            raise Refused("the generator yields in a handler")
        if isinstance(node, ast.stmt) and leaves:
            block, index = source.block_of(node)
            behind = block[index + 1 :] or (parent.orelse if isinstance(parent, ast.Try) else [])
            if behind:
                raise Refused(
                    "the block is left by `return`, `break` or `continue` before the generator ends"
                )
        node = parent


def _given(
    source: Source, theirs: Source, call: ast.Call, function: ast.FunctionDef
) -> dict[str, tuple[str, bool]]:
    """The text for each parameter, and whether it is a name or a constant that can stand in several places."""
    args = function.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        raise Refused("the generator takes other than plain parameters")
    names = [each.arg for each in arguments(args)]
    texts: dict[str, tuple[str, bool]] = {}
    pairs = [*zip(names, call.args, strict=False), *((key.arg or "", key.value) for key in call.keywords)]
    if len(call.args) > len(names):
        raise Refused("the generator is called in an unusual way")
    for name, value in pairs:
        if name not in names or isinstance(value, ast.Starred):
            raise Refused("the generator is called in an unusual way")
        texts[name] = (source.of(value), isinstance(value, (ast.Constant, ast.Name)))
    for name, default in zip(names[::-1], reversed(args.defaults), strict=False):
        if name not in texts:
            if not isinstance(default, ast.Constant):
                raise Refused("a default of the generator is computed")
            texts[name] = (theirs.of(default), True)
    if any(name not in texts for name in names):
        raise Refused("the generator is called in an unusual way")
    return texts


def _written_out(
    draft: Draft,
    theirs: Source,
    body: list[ast.stmt],
    stop: ast.Yield,
    statement: ast.With,
    given: dict[str, tuple[str, bool]],
) -> str:
    source = draft.source
    scope = source.enclosing_function(statement) or source.tree
    taken = draft.taken(scope)
    own = bound(body)
    foreign = reads(body) - set(own) - set(given)
    if foreign & set(bound(scope.body)):
        raise Refused("a name that the generator reads means something else here")
    # What is computed, or bound anew on either side, gets a name of its own, so that it is evaluated once and stays.
    anew = set(own) | set(bound(statement.body))
    first = [
        name
        for name, (text, plain) in given.items()
        if not plain or name in own or (text.isidentifier() and text in anew)
    ]
    renamed = {name: fresh(name, taken) for name in [*own, *(each for each in first if each not in own)]}
    swaps = [
        theirs.swap(each, renamed.get(each.id) or given[each.id][0])
        for one in body
        for each in ast.walk(one)
        if isinstance(each, ast.Name) and (each.id in renamed or each.id in given)
    ]
    nl, indent = source.newline, source.indent_of(statement)
    before = "".join(f"{indent}{renamed[name]} = {given[name][0]}{nl}" for name in first)
    marker = fresh("block_of_the_with", taken)
    expression = theirs.parents[stop]
    inside = [each for each in swaps if not _lies_in(theirs, each, expression)]
    inside.append(theirs.swap(expression, marker))
    text = theirs.block(body, indent, inside)
    lines = text.split("\n")
    index = next(number for number, line in enumerate(lines) if line.strip() == marker)
    inner = lines[index][: len(lines[index]) - len(lines[index].lstrip(" \t"))]
    lines[index] = nl.join(
        [*_bindings(source, theirs, stop, statement, swaps, inner), source.block(statement.body, inner)]
    )
    return (before + "\n".join(lines)).lstrip(" \t")


def _bindings(
    source: Source,
    theirs: Source,
    stop: ast.Yield,
    statement: ast.With,
    swaps: list[Replacement],
    indent: str,
) -> list[str]:
    """`y = what is yielded`, where the `with` binds it."""
    target = statement.items[0].optional_vars
    value = "None" if stop.value is None else theirs.of(stop.value, swaps)
    if target is not None:
        return [f"{indent}{source.of(target)} = {value}"]
    if stop.value is None or isinstance(stop.value, ast.Constant) or dotted(stop.value) is not None:
        return []
    return [f"{indent}{value}"]


def _lies_in(source: Source, swap: Replacement, node: ast.AST) -> bool:
    return source.start(node) <= swap.start and swap.end <= source.end(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
