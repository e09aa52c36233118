"""Statements that only matter to training, kept out of the traced program; and masks that tracing takes."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Place
from exportlens.rewriting.checks.left_undone import refuse_lasting
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import TELLS_EXPORTING, Draft, Refused
from exportlens.rewriting.code.names import fresh
from exportlens.rewriting.code.precedence import operand, primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log

_ASKS_FOR_GRADIENTS = ("grad", "backward")
_READS_GRADIENTS = ("grad", "backward", "is_leaf", "grad_fn", "requires_grad")


def not_while_compiling(
    place: Place, context: RewriteContext, what: str = "the change of `requires_grad`"
) -> Fix | Refusal:
    """`t.requires_grad = True`, or `what` else only matters beside the program, under `if not torch.compiler.is_compiling():`:
    eager does as before, the program, which records no gradients of its own, leaves it out."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        statement = source.enclosing_statement(node)
        alone = isinstance(statement, (ast.Assign, ast.Expr)) and source.begins_line(statement)
        if not alone or not _alone(source, statement):
            raise Refused(f"{what} is a part of a longer statement")
        if isinstance(statement, ast.Expr) and statement.value is not node:
            raise Refused(f"{what} is a part of a longer statement")
        if isinstance(statement, ast.Assign) and len(statement.targets) != 1:
            raise Refused("the statement sets several things")
        _refuse_gradients(draft, statement)
        indent = source.indent_of(statement)
        if isinstance(statement, ast.Assign) and isinstance(node, ast.Call):
            taken = _changed_behind(draft, statement, node)
            if taken:
                return draft.replace("Keep the change out of the traced program", taken)
        deeper = indent + source.indent_unit()
        text = source.shifted(source.start(statement), source.end(statement), indent, deeper)
        guarded = f"if not {draft.torch}.compiler.is_compiling():{source.newline}{deeper}{text}"
        return draft.replace("Keep this out of the traced program", [source.swap(statement, guarded)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _changed_behind(draft: Draft, statement: ast.Assign, call: ast.Call) -> list[Replacement]:
    """`t = made.requires_grad_()` as `t = made` and the change behind it; none for `t = t.requires_grad_()`."""
    source, target = draft.source, statement.targets[0]
    if statement.value is not call or not isinstance(call.func, ast.Attribute):
        raise Refused("what is changed is used in the same statement")
    made = source.of(call.func.value)
    if source.of(target) == made:
        return []
    if not isinstance(target, ast.Name):
        raise Refused("what is changed is given no plain name")
    indent, arguments = source.indent_of(statement), source.text[source.end(call.func) : source.end(call)]
    lines = [
        f"{indent}if not {draft.torch}.compiler.is_compiling():",
        f"{indent}{source.indent_unit()}{target.id}.{call.func.attr}{arguments}",
    ]
    end = source.span([statement])[1]
    return [
        source.swap(call, made),
        Replacement(end, end, "".join(source.newline + line for line in lines)),
    ]


def _refuse_gradients(draft: Draft, statement: ast.stmt) -> None:
    """Raise Refused where the function around `statement` reads gradients, or another one asks for them that it, or a model of the
    file, leads to: non-strict tracing may take that as long as the change is there."""
    function = draft.source.enclosing_function(statement)
    if function is None:
        return
    for each in ast.walk(function):
        if (
            isinstance(each, ast.Attribute)
            and each.attr in _READS_GRADIENTS
            and isinstance(each.ctx, ast.Load)
        ):
            raise Refused(f"`{draft.source.of(each)}` reads gradients in the same function")
    for other in _traced_with(draft, function):
        for each in ast.walk(other):
            called = each.func if isinstance(each, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            if called is not None and name in _ASKS_FOR_GRADIENTS:
                raise Refused(f"`{ast.unparse(called)}` asks for gradients in `{other.name}`")


def _traced_with(draft: Draft, function: Function) -> list[Function]:
    """`function`, the `forward` of each class of the file, and the functions and methods whose names stand in those."""
    named: dict[str, list[Function]] = {}
    for each in (one for statement in draft.file() for one in ast.walk(statement)):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named.setdefault(each.name, []).append(each)
    found = dict.fromkeys([function, *named.get("forward", ())])
    waiting = list(found)
    for one in waiting:
        names = {getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(one)}
        for other in (each for name in names & named.keys() for each in named[name]):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return waiting


def gradients_not_while_compiling(place: Place, context: RewriteContext) -> Fix | Refusal:
    """`torch.zeros(n, requires_grad=True)` -> `requires_grad=not torch.compiler.is_compiling()`: eager does as before."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        values = (
            [key.value for key in node.keywords if key.arg == "requires_grad"]
            if isinstance(node, ast.Call)
            else []
        )
        if not (len(values) == 1 and isinstance(values[0], ast.Constant) and values[0].value is True):
            raise Refused("`requires_grad` is not written as `True` in the call")
        _refuse_gradients(draft, draft.source.enclosing_statement(node))
        text = f"not {draft.torch}.compiler.is_compiling()"
        return draft.replace("Ask for gradients in eager only", [draft.source.swap(values[0], text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def statement_not_while_compiling(
    place: Place, context: RewriteContext, *, for_compile: bool = False
) -> Fix | Refusal:
    """A call whose result nobody takes, and that changes nothing that the program computes, under the same condition; what is
    meant `for_compile`, for torch.compile, is kept out of exports alone."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        statement = draft.source.enclosing_statement(node)
        if not (isinstance(statement, ast.Expr) and statement.value is node):
            raise Refused("the call is a part of a longer statement")
        if not draft.source.begins_line(statement) or not _alone(draft.source, statement):
            raise Refused("the statement shares its line with another one")
        if for_compile and context.version < TELLS_EXPORTING:
            raise Refused("this torch does not tell an export from torch.compile, which it is meant for")
        guarded = (
            _under(draft, statement, f"if not {draft.exporting}:")
            if for_compile
            else _under_guard(draft, statement)
        )
        return draft.replace("Keep this out of the traced program", [guarded])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def without_gradients_while_exporting(place: Place, context: RewriteContext) -> Fix | Refusal:
    """The statement of a call under `torch.set_grad_enabled(...)` that is off while exporting: strict tracing follows the
    backward of a custom Function only where gradients are recorded, and a program records none of its own."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        statement = source.enclosing_statement(node)
        inner_function = any(
            isinstance(each, ast.Lambda) for each in source.ancestors(node) if each is not statement
        )
        plain = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr))
        if not plain or inner_function:
            raise Refused("the function is applied within a larger statement")
        if not source.begins_line(statement) or not _alone(source, statement):
            raise Refused("the statement shares its line with another one")
        torch = draft.torch
        asked = f"{torch}.is_grad_enabled() and not {draft.exporting}"
        change = _under(draft, statement, f"with {torch}.set_grad_enabled({asked}):")
        return draft.replace("Export it without its backward", [change], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def log_not_while_compiling(place: Place, context: RewriteContext) -> Fix | Refusal:
    """A print or log of a text that is made of tensor data, under `if not torch.compiler.is_compiling():`, and with it
    the assignment of that text where nothing else reads it."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        statement = source.enclosing_statement(source.find(place.node))
        kinds = draft.kinds(getattr(place, "variables", {}))
        statements: list[ast.stmt] = [statement]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, function = statement.targets[0], source.enclosing_function(statement)
            uses = [
                each
                for each in ast.walk(function or source.tree)
                if isinstance(each, ast.Name) and isinstance(target, ast.Name) and each.id == target.id
            ]
            if len([each for each in uses if not isinstance(each.ctx, ast.Load)]) == 1:
                read = [source.enclosing_statement(each) for each in uses if isinstance(each.ctx, ast.Load)]
                statements += dict.fromkeys(read)
        around = source.parents.get(statement)
        if statements == [statement] and isinstance(around, ast.If) and only_logs(around, kinds):
            return draft.replace(
                "Keep this out of the traced program",
                _guarded_test(draft, around, kinds),
            )
        logs = statements[1:] or statements
        if not all(isinstance(each, ast.Expr) and is_log(each.value, kinds) for each in logs):
            raise Refused(
                "the text is more than printed or logged: return the tensor, and make the text of it outside of the model"
            )
        if not all(source.begins_line(each) and _alone(source, each) for each in statements):
            raise Refused("the statement shares its line with another one")
        for each in statements:
            refuse_lasting(source, each, kinds)
        return draft.replace(
            "Keep this out of the traced program", [_under_guard(draft, each) for each in statements]
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def only_logs(node: ast.If, kinds: Kinds) -> bool:
    """Whether all that hangs on the test of `node` is printing and logging."""
    return not node.orelse and all(
        isinstance(each, ast.Expr) and is_log(each.value, kinds) for each in node.body
    )


def logging_guarded(draft: Draft, node: ast.If, kinds: Kinds) -> str:
    """The text in which the branch `node`, that only prints or logs, runs in eager mode as before, and is no part of the
    program. Raises Refused."""
    return replaced(draft.source.text, _guarded_test(draft, node, kinds))


def _guarded_test(draft: Draft, node: ast.If, kinds: Kinds) -> list[Replacement]:
    source, test = draft.source, node.test
    for each in node.body:
        refuse_lasting(source, each, kinds)
    guard = f"not {draft.torch}.compiler.is_compiling() and"
    try:
        refuse_lasting(source, test, kinds)
    except Refused:
        # What the test does beside its answer stays a part of the program.
        if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
            raise
        name = fresh("asked", draft.taken(source.tree))
        begin = source.start(node)
        line = f"{name} = {source.of(test)}{source.newline}{source.indent_of(node)}"
        return [Replacement(begin, begin, line), source.swap(test, f"{guard} {name}")]
    return [source.swap(test, f"{guard} {operand(source.of(test), 'and')}")]


def _alone(source: Source, statement: ast.stmt) -> bool:
    return not source.text[source.end(statement) :].split("\n", 1)[0].lstrip().startswith(";")


def _under_guard(draft: Draft, statement: ast.stmt) -> Replacement:
    return _under(draft, statement, f"if not {draft.torch}.compiler.is_compiling():")


def _under(draft: Draft, statement: ast.stmt, head: str) -> Replacement:
    """`statement` as the block of `head`."""
    source = draft.source
    indent = source.indent_of(statement)
    inner = indent + source.indent_unit()
    text = source.shifted(source.start(statement), source.end(statement), indent, inner)
    return source.swap(statement, f"{head}{source.newline}{inner}{text}")


def as_boolean_mask(place: Place, context: RewriteContext) -> Fix | Refusal:
    """`x[mask]` and `torch.where(mask, ...)` of a mask of uint8 -> the same with `mask.bool()`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        mask: ast.expr | None = None
        if isinstance(node, ast.Subscript):
            mask = node.slice
        elif isinstance(node, ast.Call):
            named = [key.value for key in node.keywords if key.arg in ("condition", "mask")]
            mask = named[0] if named else node.args[0] if node.args else None
        if mask is None or isinstance(mask, (ast.Tuple, ast.Slice, ast.Starred)):
            raise Refused("which part of the index is the mask is not certain: call `.bool()` on it")
        text = f"{primary(draft.source.of(mask))}.bool()"
        change = Replacement(draft.source.start(mask), draft.source.end(mask), text)
        return draft.replace("Make the mask of booleans", [change], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
