"""A `try` around what raises on some data, as a question: whether the operator succeeded, whether the divisor is zero."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import arguments, bound, fresh, reads, walk_own
from exportlens.rewriting.code.text import Replacement, Source

# Operators of torch.linalg that raise where the data is such, and what each becomes: the same operator that returns a number beside
# its result (0 where it succeeded), and a name for the result. Methods of tensors have the same names as the functions.
TELLING = {
    "torch.linalg.cholesky": ("cholesky_ex", "factor"),
    "torch.cholesky": ("cholesky_ex", "factor"),
    "torch.Tensor.cholesky": ("cholesky_ex", "factor"),
    "torch.linalg.inv": ("inv_ex", "inverse"),
    "torch.inverse": ("inv_ex", "inverse"),
    "torch.Tensor.inverse": ("inv_ex", "inverse"),
    "torch.linalg.solve": ("solve_ex", "solution"),
}
_OF_DIVISIONS = frozenset({"ZeroDivisionError", "ArithmeticError", "Exception", "BaseException"})
_OF_ITEMS = frozenset({"IndexError", "LookupError", "Exception", "BaseException"})
# How these operators fail, and the classes above that.
_ERRORS = frozenset({"LinAlgError", "_LinAlgError", "RuntimeError", "Exception", "BaseException"})


def catches_failure(handler: ast.ExceptHandler) -> bool:
    """Whether `handler` catches the error of an operator of torch.linalg."""
    return _catches(handler, _ERRORS)


def _catches(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")) in errors
        for each in types
    )


def catches_division(handler: ast.ExceptHandler) -> bool:
    """Whether `handler` catches that a number of Python is divided by zero."""
    return _catches(handler, _OF_DIVISIONS)


def catches_missing_item(handler: ast.ExceptHandler) -> bool:
    """Whether `handler` catches that there is no item at an index."""
    return _catches(handler, _OF_ITEMS)


def asked_for_zero(place: Place, attempt: ast.Try, context: RewriteContext) -> Fix | Refusal:
    """`try: r = a / b` / `except ZeroDivisionError: r = 0.0` -> `if b == 0: r = 0.0` / `else: r = a / b`.

    Unsafe: what else may raise the same in the `try`, such as a method of another class, is not caught any more.
    """
    try:
        draft = Draft.of(place, context)
        source = draft.source
        division, node = source.find(place.node), source.find(attempt)
        if not isinstance(division, ast.BinOp) or not isinstance(node, ast.Try):
            raise Refused("the division is not written in the `try`")
        _refuse_handlers(source, node)
        position, statement = _statement_of(source, division, node)
        _refuse_other_errors(draft, node, division)
        if _tried_first(statement, division):
            raise Refused(f"something is computed before `{source.of(division)}` in the same statement")
        divisor, lines, swaps = source.of(division.right), [], []
        outer, inner, nl = (
            source.indent_of(node),
            source.indent_of(node) + source.indent_unit(),
            source.newline,
        )
        if node.body[:position]:
            lines.append(source.block(node.body[:position], outer))
        if not isinstance(division.right, ast.Name):
            name = fresh("divisor", every_taken(draft, node))
            lines.append(f"{outer}{name} = {divisor}")
            swaps, divisor = [source.swap(division.right, name)], name
        lines += [f"{outer}if {divisor} == 0:", source.block(node.handlers[0].body, inner), f"{outer}else:"]
        lines.append(source.block([statement], inner, swaps))
        lines += [source.block([each], inner) for each in (*node.body[position + 1 :], *node.orelse)]
        lines += [source.block([each], outer) for each in node.finalbody]
        text = nl.join(lines).removeprefix(outer)
        whole = Replacement(source.start(node), source.span([node])[1], text)
        return draft.replace("Ask whether it divides by zero", [whole], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def asked_for_success(place: Place, name: str, attempt: ast.Try, context: RewriteContext) -> Fix | Refusal:
    """`try: f = cholesky(a)` / `except RuntimeError: g` -> `f, info = cholesky_ex(a)` and `if (info != 0).any(): g`.

    Unsafe: errors of the same class that do not come from the data (sizes, memory) are not caught any more.
    """
    try:
        draft = Draft.of(place, context)
        source = draft.source
        call, node = source.find(place.node), source.find(attempt)
        if not isinstance(call, ast.Call) or not isinstance(node, ast.Try):
            raise Refused("the operator is not written as a call in a `try`")
        return draft.replace("Ask whether it succeeded", [_asked(draft, call, node, name)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _asked(draft: Draft, call: ast.Call, node: ast.Try, name: str) -> Replacement:
    source = draft.source
    _refuse_handlers(source, node)
    position, statement = _statement_of(source, call, node)
    before, after = node.body[:position], [*node.body[position + 1 :], *node.orelse]
    _refuse_other_errors(draft, node, call)
    if _tried_first(statement, call):
        raise Refused(f"something is computed before `{source.of(call)}` in the same statement")
    outer, unit, nl = source.indent_of(node), source.indent_unit(), source.newline
    operator, wish = TELLING[name]
    taken = every_taken(draft, node)
    info = fresh("info", taken)
    direct = (
        statement.targets[0].id
        if isinstance(statement, ast.Assign)
        and statement.value is call
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and not _is_kept(source, node, statement.targets[0])
        else None
    )
    result = direct or fresh(wish, taken | {info})
    given = [source.of(each) for each in (*call.args, *call.keywords)]
    if name.startswith("torch.Tensor."):
        assert isinstance(call.func, ast.Attribute)
        given.insert(0, source.of(call.func.value))
    lines = [source.block(before, outer)] if before else []
    lines.append(f"{outer}{result}, {info} = {draft.torch}.linalg.{operator}({', '.join(given)})")
    lines.append(f"{outer}if ({info} != 0).any():")
    lines.append(source.block(node.handlers[0].body, outer + unit))
    rest = [] if direct else [source.block([statement], outer + unit, [source.swap(call, result)])]
    rest += [source.block([each], outer + unit) for each in after]
    if rest:
        lines += [f"{outer}else:", *rest]
    lines += [source.block([each], outer) for each in node.finalbody]
    return Replacement(source.start(node), source.span([node])[1], nl.join(lines).removeprefix(outer))


def _is_kept(source: Source, node: ast.Try, target: ast.Name) -> bool:
    """Whether what `target` was before the `try` may be read once that has failed."""
    function = source.enclosing_function(node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    if target.id in reads(node.handlers[0].body):
        return True
    parameters = {each.arg for each in arguments(function.args)}
    others = [
        each
        for each in walk_own(function.body)
        if isinstance(each, ast.Name) and each.id == target.id and not isinstance(each.ctx, ast.Load)
    ]
    if others == [target] and target.id not in parameters:
        return False
    return target.id in Liveness(function).before[node.handlers[0].body[0]]


def every_taken(draft: Draft, node: ast.AST) -> set[str]:
    """The names that a new local name of the function around `node` must not have."""
    around = draft.source.enclosing_function(node)
    return draft.taken(around if around is not None else draft.source.tree)


def _runs_behind(source: Source, node: ast.Try) -> bool:
    """Whether the `finally` of `node` does the same behind it: nothing leaves the `try` but an error, which nobody in the function
    catches, and the `finally` only binds names."""
    around = source.enclosing_function(node)
    caught = any(isinstance(each, ast.Try) for each in source.ancestors(node))
    parts = [*node.body, *node.orelse, *node.handlers[0].body, *node.finalbody]
    plain = all(
        isinstance(each, (ast.Assign, ast.AugAssign))
        and all(
            isinstance(one, ast.Name) for one in getattr(each, "targets", [getattr(each, "target", None)])
        )
        for each in node.finalbody
    )
    return around is not None and not caught and plain and exits(parts) == {"falls"}


def _refuse_handlers(source: Source, node: ast.Try) -> None:
    if len(node.handlers) != 1 or (node.finalbody and not _runs_behind(source, node)):
        raise Refused("the `try` has more than one handler, or a `finally` that does more than to bind names")
    [handler] = node.handlers
    raises = (each for one in handler.body for each in ast.walk(one) if isinstance(each, ast.Raise))
    if (handler.name and handler.name in reads(handler.body)) or any(each.exc is None for each in raises):
        raise Refused("the handler reads the exception, or raises it again")


def _statement_of(
    source: Source, call: ast.expr, node: ast.Try
) -> tuple[int, ast.Assign | ast.Return | ast.AugAssign | ast.AnnAssign]:
    for position, each in enumerate(node.body):
        if any(inner is call for inner in ast.walk(each)):
            if not isinstance(each, (ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign)):
                raise Refused(f"`{source.of(call)}` stands in a block of its own within the `try`")
            if not all(source.begins_line(one) for one in (*node.body, *node.handlers[0].body)):
                raise Refused("statements share a line")
            return position, each
    raise Refused("the operator is called elsewhere than in the `try` itself")


def _tried_first(statement: ast.stmt, call: ast.expr) -> bool:
    """Whether calls that are not arguments or the receiver of `call` run before it, and may change what it is given."""
    inside = {id(each) for each in ast.walk(call)}
    return any(
        isinstance(
            each,
            (
                ast.Lambda,
                ast.IfExp,
                ast.BoolOp,
                ast.ListComp,
                ast.GeneratorExp,
                ast.NamedExpr,
                ast.DictComp,
                ast.SetComp,
            ),
        )
        and id(each) not in inside
        for each in ast.walk(statement)
    )


# What raises nothing that the handlers of these operators catch.
_HARMLESS = frozenset({"bool", "float", "int", "len", "max", "min", "print", "range", "warnings.warn"})


def _refuse_other_errors(draft: Draft, node: ast.Try, call: ast.expr) -> None:
    """Raise Refused where something else in the `try` may raise what the handler catches."""
    around = draft.source.enclosing_function(node)
    local: set[str] = set()
    if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        local = set(bound(around.body)) | {each.arg for each in arguments(around.args)}
    for each in walk_own(node.body):
        if isinstance(each, (ast.Raise, ast.Assert, ast.With)):
            raise Refused("the `try` raises or asserts something itself")
        if isinstance(each, ast.BinOp) and isinstance(call, ast.BinOp) and each is not call:
            divides = isinstance(each.op, (ast.Div, ast.FloorDiv, ast.Mod))
            if divides and not isinstance(each.right, ast.Constant):
                raise Refused(f"`{draft.source.of(each)}` in the same `try` may fail as well")
        if not isinstance(each, ast.Call) or each is call:
            continue
        method = each.func.attr if isinstance(each.func, ast.Attribute) else ""
        if draft.qualified(each.func) in TELLING or f"torch.Tensor.{method}" in TELLING:
            raise Refused(f"`{draft.source.of(each)}` in the same `try` may fail as well")
        if draft.qualified(each.func) not in _HARMLESS and not _computes(draft, each, local):
            raise Refused(f"`{draft.source.of(each)}` in the `try` may raise the same error")


def _computes(draft: Draft, call: ast.Call, local: set[str]) -> bool:
    """Whether `call` is a function of torch, or a method of what is computed or of a local value."""
    root: ast.expr = call.func
    if isinstance(root, ast.Name):
        return draft.qualified(root).startswith("torch.")
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return True
    return draft.qualified(root).partition(".")[0] == "torch" or root.id in local - {"self"}
