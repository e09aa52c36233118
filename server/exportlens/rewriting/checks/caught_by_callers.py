"""An error that a method raises where data says so, and that its only caller catches, is a way of the program.

    def solve(self, x):                     def solve(self, x):
        y = x.exp()                             y = x.exp()
        if y.isinf().any():                     failed = y.isinf().any()
            raise Overflow                      return y / y.sum(), failed
        return y / y.sum()
                                    ->
    try:                                    if self.solve(x)[1]:
        y = self.solve(x)                       y = self.slowly(x)
    except Overflow:                        else:
        y = self.slowly(x)                      y = self.solve(x)[0]

The method runs to its end where it would have stopped, so it must neither write anything nor be able to fail of what it computes
with. It runs twice: what the other way takes of it would give its gradients a part in both.
"""

from __future__ import annotations

import ast

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

# What torch raises itself, and so what a handler may catch that no `raise` of the file says.
_OF_TORCH = frozenset(
    {"Exception", "BaseException", "RuntimeError", "IndexError", "TypeError", "AttributeError"}
)
# What gives a new tensor or a number of any numbers whatsoever, the same each time.
CANNOT_FAIL = frozenset(
    {
        *("abs", "add", "all", "amax", "amin", "any", "arange", "argmax", "argmin", "bmm", "cat", "cdist"),
        *(
            "clamp",
            "clone",
            "cos",
            "cumsum",
            "detach",
            "diag",
            "diff",
            "dim",
            "div",
            "double",
            "einsum",
            "exp",
        ),
        *("expand", "expm1", "eye", "flatten", "float", "full", "full_like", "gelu", "isfinite", "isinf"),
        *(
            "isnan",
            "len",
            "log",
            "log1p",
            "log_softmax",
            "logical_not",
            "logsumexp",
            "matmul",
            "max",
            "maximum",
        ),
        *(
            "mean",
            "min",
            "minimum",
            "mm",
            "mul",
            "mv",
            "neg",
            "new_ones",
            "new_zeros",
            "norm",
            "numel",
            "ones",
        ),
        *("ones_like", "outer", "permute", "pow", "prod", "range", "reciprocal", "relu", "reshape", "rsqrt"),
        *(
            "sigmoid",
            "sign",
            "silu",
            "sin",
            "size",
            "softmax",
            "softplus",
            "sqrt",
            "square",
            "squeeze",
            "stack",
        ),
        *("std", "sub", "sum", "t", "tanh", "trace", "transpose", "tril", "triu", "unsqueeze", "var", "view"),
        *("where", "zeros", "zeros_like"),
    }
)
_LAYERS = frozenset(
    {
        *("Linear", "Conv1d", "Conv2d", "LayerNorm", "GroupNorm", "ReLU", "GELU", "Tanh", "Sigmoid", "SiLU"),
        *("Softplus", "Softmax", "Identity", "LeakyReLU", "ELU"),
    }
)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.For, ast.If, ast.Raise, ast.Return, ast.Expr)


def caught_as_way(source: Source, node: ast.If, kinds: Kinds, torch: str) -> str | None:
    """The whole text where what raises under `node` is told to the caller, which branches on it; None where it is not caught
    so. Raises Refused where it is, and cannot."""
    method = source.enclosing_function(node)
    owner = source.parents.get(method) if method is not None else None
    if not isinstance(method, ast.FunctionDef) or not isinstance(owner, ast.ClassDef):
        return None
    checks = [each for each in walk(method) if isinstance(each, ast.If) and _error_of(each) is not None]
    errors = {_error_of(each) for each in checks}
    found = _attempt(source, owner, method.name, kinds)
    if found is None or node not in checks or len(errors) != 1:
        return None
    attempt, statement, call = found
    [handler, *others] = attempt.handlers
    caught = None if handler.type is None else dotted(handler.type)
    if others or caught not in errors or str(caught).rpartition(".")[2] in _OF_TORCH:
        return None
    _refuse_attempt(source, attempt, statement, handler)
    _refuse_method(source, method, checks, kinds)
    for given in [*call.args, *(each.value for each in call.keywords)]:
        if dotted(given) is None and not isinstance(given, ast.Constant):
            raise Refused(f"`{source.of(given)}` would be computed twice: give it a name before the `try`")
    swaps = [
        *_told(source, method, checks, kinds, torch),
        _branch(source, method, attempt, statement, call, handler),
    ]
    return replaced(source.text, swaps)


def _error_of(node: ast.If) -> str | None:
    """The class of the error that is all that `node` raises; None where it does anything else."""
    [raised, *others] = node.body
    if others or node.orelse or not isinstance(raised, ast.Raise) or raised.exc is None:
        return None
    return dotted(raised.exc.func if isinstance(raised.exc, ast.Call) else raised.exc)


def _result_of(method: ast.FunctionDef) -> ast.expr | None:
    """What `method` returns at its end; None where it returns nothing."""
    last = method.body[-1]
    return last.value if isinstance(last, ast.Return) else None


def _attempt(
    source: Source, owner: ast.ClassDef, name: str, kinds: Kinds
) -> tuple[ast.Try, ast.Assign | ast.Return | ast.Expr, ast.Call] | None:
    """The `try` around the only use of the method, the statement that calls it there, and the call."""
    others = [*kinds.around, *(chunk for chunk, _ in kinds.elsewhere(frozenset({name})))]
    trees = [source.tree, *(statement for chunk in others for statement in chunk.body)]
    nodes = [each for tree in trees for each in walk(tree)]
    uses = [each for each in nodes if isinstance(each, ast.Attribute) and each.attr == name]
    if sum(isinstance(each, ast.FunctionDef) and each.name == name for each in nodes) != 1:
        return None
    call = source.parents.get(uses[0]) if len(uses) == 1 and dotted(uses[0]) == f"self.{name}" else None
    if not isinstance(call, ast.Call) or call.func is not uses[0] or owner not in source.ancestors(call):
        return None
    statement = source.parents[call]
    attempt = source.parents.get(statement)
    if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)) or not isinstance(attempt, ast.Try):
        return None
    return (attempt, statement, call) if statement in attempt.body and attempt.handlers else None


def _refuse_attempt(
    source: Source, attempt: ast.Try, statement: ast.stmt, handler: ast.ExceptHandler
) -> None:
    if handler.name and handler.name in reads(handler.body):
        raise Refused("the handler reads the exception that data raises")
    refuse_ends(source, attempt, handler)
    for each in attempt.body:
        if each is statement:
            continue
        own = (
            isinstance(one, (ast.Raise, ast.Assert, ast.With))
            or (isinstance(one, ast.Call) and (dotted(one.func) or "self.").startswith("self."))
            for one in ast.walk(each)
        )
        if any(own):
            raise Refused("another statement of the `try` may raise the same error")


def refuse_ends(
    source: Source, attempt: ast.Try, handler: ast.ExceptHandler, raising: ast.stmt | None = None
) -> None:
    """Raise Refused where `attempt`, but for the statement `raising`, does not end as the two ways of a branch do."""
    bare = (isinstance(each, ast.Raise) and each.exc is None for one in handler.body for each in walk(one))
    others = [each for each in (*attempt.body, *attempt.orelse) if each is not raising]
    leaves = attempt.finalbody and (exits(others) | exits(handler.body)) - {"falls"}
    if any(bare) or leaves:
        raise Refused("the handler raises the error again, or leaves a `try` with a `finally`")
    parts = [*attempt.body, *handler.body, *attempt.orelse, *attempt.finalbody]
    if not all(map(source.begins_line, [attempt, *parts])):
        raise Refused("statements share a line")


def _refuse_method(source: Source, method: ast.FunctionDef, checks: list[ast.If], kinds: Kinds) -> None:
    """Raise Refused unless the method computes, and does nothing else, whatever the numbers."""
    last = method.body[-1]
    ends = [each for each in ast.walk(method) if isinstance(each, (ast.Raise, ast.Return))]
    if len(ends) != len(checks) + isinstance(last, ast.Return):
        raise Refused(f"`{method.name}` ends in more than one place")
    if method.decorator_list or not all(map(source.begins_line, [*checks, last, method.body[0]])):
        raise Refused(f"`{method.name}` is decorated, or its statements share a line")
    for statement in ast.walk(method):
        if statement is method:
            continue
        if isinstance(statement, ast.stmt):
            text = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
            if not isinstance(statement, _STATEMENTS) or text:
                raise Refused(f"`{method.name}` does more than to compute, and would not stop at the error")
        elif isinstance(statement, ast.Call) and not _within(source, statement, ast.Raise):
            _refuse_call(source, statement, method, kinds)
        elif isinstance(statement, (ast.Attribute, ast.Subscript)):
            stored = not isinstance(statement.ctx, ast.Load)
            if stored or (isinstance(statement, ast.Subscript) and _is_of_data(statement)):
                raise Refused(f"`{source.of(statement)}` may fail, or is written, where the error is raised")
        elif isinstance(statement, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            raise Refused(f"`{method.name}` does more than to compute, and would not stop at the error")


def _within(source: Source, node: ast.AST, kind: type[ast.AST]) -> bool:
    return any(isinstance(each, kind) for each in source.ancestors(node))


def _refuse_call(source: Source, call: ast.Call, method: ast.FunctionDef, kinds: Kinds) -> None:
    path = dotted(call.func) or ""
    name = path.rpartition(".")[2] or getattr(call.func, "attr", "")
    if path.startswith("self.") and path.count(".") == 1:
        layer = kinds.of(call.func).value
        kind = layer.cls.name if isinstance(layer, Instance) and isinstance(layer.cls, Named) else ""
        if kind.rpartition(".")[2] in _LAYERS:
            return
    elif name in CANNOT_FAIL and not any(each.arg == "out" for each in call.keywords):
        return
    raise Refused(
        f"`{source.of(call)}` may fail or change something: `{method.name}` would not stop before it"
    )


def _is_of_data(node: ast.Subscript) -> bool:
    """Whether an index may be out of range by what data says."""
    shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    read = any(isinstance(each, (ast.Name, ast.Call, ast.Attribute)) for each in ast.walk(node.slice))
    return read and not shape


def _told(
    source: Source, method: ast.FunctionDef, checks: list[ast.If], kinds: Kinds, torch: str
) -> list[Replacement]:
    """The method tells at its end whether it would have raised."""
    failed, nl = fresh("failed", every_name(method)), source.newline
    last, result = method.body[-1], _result_of(method)
    if isinstance(last, ast.Return):
        told = failed if result is None else f"{_in_brackets(source, result)}, {failed}"
        swaps = [source.swap(last, f"return {told}")]
    else:
        end = source.span([last])[1]
        swaps = [Replacement(end, end, f"{nl}{source.indent_of(last)}return {failed}")]
    begun = False
    for node in sorted(checks, key=source.start):
        now = kinds_before(method, node, kinds)
        asked = Predicates(source, now, torch).read(node.test)
        flat = scalar_bool(asked) if asked.form == "tensor" and source.begins_line(node) else None
        if flat is None and len(checks) > 1:
            raise Refused(
                f"`{source.of(node.test)}` is not known to be a tensor, and more is checked beside it"
            )
        if flat is not None and node in method.body and not begun:
            swaps.insert(0, source.swap(node, f"{failed} = {flat}"))
            begun = True
            continue
        if not begun:
            has_text = isinstance(method.body[0], ast.Expr) and len(method.body) > 1
            first = method.body[1 if has_text else 0]
            start = source.start(first)
            made = f"{failed} = {torch}.zeros((), dtype={torch}.bool){nl}{source.indent_of(first)}"
            swaps.insert(0, Replacement(start, start, made))
            begun = True
        if flat is None:
            swaps.append(source.swap(node.body[0], f"{failed} = {torch}.ones((), dtype={torch}.bool)"))
        elif source.text.startswith("elif", source.start(node)):
            raise Refused("an `elif` raises what the caller catches")
        else:
            swaps.append(source.swap(node, f"{failed} = {failed} | {primary(flat)}"))
    return swaps


def _in_brackets(source: Source, value: ast.expr) -> str:
    text = source.of(value)
    alone = ast.parse(f"({text}, 0)", mode="eval").body
    assert isinstance(alone, ast.Tuple)
    return text if len(alone.elts) == 2 else f"({text})"


def _branch(
    source: Source,
    method: ast.FunctionDef,
    attempt: ast.Try,
    statement: ast.Assign | ast.Return | ast.Expr,
    call: ast.Call,
    handler: ast.ExceptHandler,
) -> Replacement:
    result = _result_of(method)
    outer, unit, nl = source.indent_of(attempt), source.indent_unit(), source.newline
    index, asked = attempt.body.index(statement), source.of(call)
    lines = [source.block(attempt.body[:index], outer)] if index else []
    failed = asked if result is None else f"{asked}[1]"
    lines += [f"{outer}if {failed}:", source.block(handler.body, outer + unit)]
    rest = [*attempt.body[index + (result is None) :], *attempt.orelse]
    if rest:
        lines.append(f"{outer}else:")
    if result is None:
        lines += [source.block(attempt.body[index + 1 :], outer + unit)] if attempt.body[index + 1 :] else []
    elif isinstance(statement, ast.Return) and isinstance(result, ast.Tuple) and len(result.elts) > 1:
        # Of what is returned on either way it must be known how many tensors it has.
        taken = every_name(source.enclosing_function(statement) or source.tree)
        parts = ", ".join(fresh("part", taken) for _ in result.elts)
        lines += [f"{outer}{unit}{parts} = {asked}[0]", f"{outer}{unit}return {parts}"]
    else:
        swaps = [source.swap(call, f"{asked}[0]")]
        lines += [source.block([*attempt.body[index:]], outer + unit, swaps)]
    lines += [source.block(attempt.orelse, outer + unit)] if attempt.orelse else []
    lines += [source.block(attempt.finalbody, outer)] if attempt.finalbody else []
    return Replacement(source.start(attempt), source.span([attempt])[1], nl.join(lines).removeprefix(outer))
