"""`with` blocks that strict tracing does not enter, in words that it takes.

Measured on torch 2.13: `with A if option else B` and `with A, B` are traced, and so is a call of `__enter__` and of
`__exit__` of an object that was made before.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call, Place, With
from exportlens.inference.values import ClassValue, Instance
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.text import Replacement, Source

# Functions of torch that make a tensor on the default device.
FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "arange", "as_tensor", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn", "randperm", "tensor", "zeros",
        "tril_indices", "triu_indices", "hann_window", "hamming_window",
    )
)  # fmt: skip


def entered_in_eager_only(place: Place, context: RewriteContext) -> Fix | Refusal:
    """`with lock:` -> `with contextlib.nullcontext() if torch.compiler.is_exporting() else lock:`, for what does nothing to
    the tensors inside."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        item, statement = _item(source, source.find(place.node))
        if item.optional_vars is not None and _reads(source, statement, item.optional_vars):
            raise Refused(f"what `{source.of(item.context_expr)}` gives is read inside")
        text = source.of(item.context_expr)
        nothing = f"{_contextlib(draft)}.nullcontext()"
        asked = f"{nothing} if {draft.exporting} else {text}"
        fix = draft.replace(
            "Enter it in eager only", [source.swap(item.context_expr, asked)], Applicability.SAFE
        )
        return _with_contextlib(draft, fix)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def entered_by_calls(place: With, context: RewriteContext) -> Fix | Refusal:
    """`with self.timer:` -> `self.timer.__enter__()`, and `self.timer.__exit__(None, None, None)` in a `finally`.

    Unsafe: the object is not told of an exception that leaves the block.
    """
    try:
        draft = Draft.of(place, context)
        source = draft.source
        item, statement = _item(source, source.find(place.node))
        if len(statement.items) != 1 or isinstance(statement, ast.AsyncWith):
            raise Refused("several contexts are entered at once: enter each by a `with` of its own")
        if not source.begins_line(statement) or not source.begins_line(statement.body[0]):
            raise Refused("the block shares its line with the `with`")
        _refuse_if_told_of_exceptions(place)
        nl, indent = source.newline, source.indent_of(statement)
        inner = source.indent_of(statement.body[0])
        owner = source.of(item.context_expr)
        lines = []
        if dotted(item.context_expr) is None:
            owner = fresh("entered", draft.taken(statement))
            lines.append(f"{owner} = {source.of(item.context_expr)}")
        target = "" if item.optional_vars is None else f"{source.of(item.optional_vars)} = "
        lines += [f"{target}{owner}.__enter__()", "try:"]
        colon = source.text.index(":", source.end(item.optional_vars or item.context_expr))
        end = source.span(statement.body)[1]
        changes = [
            Replacement(source.start(statement), colon + 1, f"{nl}{indent}".join(lines)),
            Replacement(end, end, f"{nl}{indent}finally:{nl}{inner}{owner}.__exit__(None, None, None)"),
        ]
        return draft.replace("Enter it by calls", changes, uses_torch=False)
    except (Refused, LookupError, SyntaxError, ValueError) as refused:
        return Refusal(str(refused))


def device_of_each(place: With, context: RewriteContext) -> Fix | Refusal:
    """`with torch.device(d): torch.zeros(3)` -> `torch.zeros(3, device=d)`, where all that is called inside is torch's own."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        item, statement = _item(source, source.find(place.node))
        given = item.context_expr
        device = (
            source.of(given.args[0])
            if isinstance(given, ast.Call) and len(given.args) == 1
            else source.of(given)
        )
        repeatable = isinstance(given, ast.Call) and isinstance(given.args[0], ast.Constant)
        if (
            not repeatable
            and dotted(given.args[0] if isinstance(given, ast.Call) and given.args else given) is None
        ):
            raise Refused("the device is computed: give it a name before")
        if (
            len(statement.items) != 1
            or item.optional_vars is not None
            or not source.begins_line(statement.body[0])
        ):
            raise Refused("more is entered, or bound, than the device")
        changes = []
        for call in (each for one in statement.body for each in ast.walk(one) if isinstance(each, ast.Call)):
            name = draft.qualified(call.func)
            if name in FACTORIES and not any(key.arg in (None, "device") for key in call.keywords):
                end = source.end(call) - 1
                comma = "" if not call.args and not call.keywords else ", "
                before = source.text[:end].rstrip()
                if before.endswith(","):
                    comma = " "
                changes.append(Replacement(len(before), end, f"{comma}device={device}"))
            elif not name.startswith("torch.") and not _is_method_of_tensor(draft, call):
                raise Refused(f"`{source.of(call)}` may make tensors as well: give it the device")
        text = source.block(statement.body, source.indent_of(statement), changes).lstrip(" \t")
        whole = Replacement(source.start(statement), source.span(statement.body)[1], text)
        return draft.replace("Give each tensor its device", [whole], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_method_of_tensor(draft: Draft, call: ast.Call) -> bool:
    """Whether `call` is of a method that tensors alone have, or that makes nothing on its own."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in (
        "to", "view", "reshape", "expand", "repeat", "sum", "mean", "float", "long", "bool", "unsqueeze", "squeeze",
        "permute", "transpose", "size", "dim", "clone", "detach", "type_as", "new_zeros", "new_ones", "new_full",
    )  # fmt: skip


def stacked_contexts(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`with ExitStack() as stack: stack.enter_context(A); ...` -> `with A: ...`, and `A if option else nullcontext()` for what
    is entered under an option."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        call = source.find(place.node)
        statement = next((each for each in source.ancestors(call) if _stack_of(draft, each)), None)
        if not isinstance(statement, ast.With):
            raise Refused("where the stack is made is not certain")
        stack = _stack_of(draft, statement)
        items: list[str] = []
        uses_nothing = False
        rest = list(statement.body)
        while rest:
            entered = _entered(source, rest[0], stack)
            if entered is None:
                break
            rest = rest[1:]
            text, option, target = entered
            if option is not None:
                uses_nothing = True
                text = f"{text} if {option} else {_contextlib(draft)}.nullcontext()"
            items.append(text + (f" as {target}" if target else ""))
        if not items or not rest:
            raise Refused("what is entered is not at the beginning of the block")
        if any(isinstance(name, ast.Name) and name.id == stack for one in rest for name in ast.walk(one)):
            raise Refused(f"`{stack}` is used further on in the block")
        if not all(source.begins_line(each) for each in (statement, *statement.body)):
            raise Refused("the block shares its line with the `with`")
        inner = source.indent_of(statement.body[0])
        notes = source.comments_between(source.start(statement), source.span(rest)[0])
        head = f"with {', '.join(items)}:{source.newline}"
        head += "".join(f"{inner}{note}{source.newline}" for note in notes)
        text = head + source.block(rest, inner)
        whole = Replacement(source.start(statement), source.span(rest)[1], text)
        fix = draft.replace("Enter them by `with`", [whole], Applicability.SAFE, False)
        return _with_contextlib(draft, fix) if uses_nothing else fix
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _stack_of(draft: Draft, node: ast.AST) -> str:
    """The name of the stack that a `with` makes alone; "" for anything else."""
    if not isinstance(node, ast.With) or len(node.items) != 1:
        return ""
    item = node.items[0]
    made = isinstance(item.context_expr, ast.Call) and draft.qualified(item.context_expr.func)
    named = isinstance(item.optional_vars, ast.Name)
    return item.optional_vars.id if made == "contextlib.ExitStack" and named else ""  # type: ignore[union-attr]


def _entered(source: Source, node: ast.stmt, stack: str) -> tuple[str, str | None, str] | None:
    """What a statement enters, under which option, and the name that it gives to that; None for other statements."""
    option = None
    if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        option, node = source.of(node.test), node.body[0]
    target = ""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and option is None:
        target = source.of(node.targets[0])
    elif not isinstance(node, ast.Expr):
        return None
    call = node.value
    if isinstance(call, ast.Call) and dotted(call.func) == f"{stack}.enter_context" and len(call.args) == 1:
        return source.of(call.args[0]), option, target
    return None


def _item(source: Source, node: ast.AST) -> tuple[ast.withitem, ast.With]:
    """The item of a `with` that enters `node`, and the `with`."""
    for each in (node, *source.ancestors(node)):
        if isinstance(each, ast.With):
            for item in each.items:
                if item.context_expr is node:
                    return item, each
    raise Refused("what is entered is made elsewhere, or not by a `with`")


def _reads(source: Source, statement: ast.With, target: ast.expr) -> bool:
    names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    function = source.enclosing_function(statement) or source.tree
    return any(
        isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )


def _refuse_if_told_of_exceptions(place: With) -> None:
    """Raise Refused where `__exit__` of the object looks at the exception that it is told of."""
    cls = place.manager.cls if isinstance(place.manager, Instance) else None
    for each in cls.node.body if isinstance(cls, ClassValue) else ():
        if isinstance(each, ast.FunctionDef) and each.name == "__exit__":
            given = {one.arg for one in each.args.args[1:]} | (
                {each.args.vararg.arg} if each.args.vararg else set()
            )
            if any(
                isinstance(one, ast.Name) and one.id in given for one in ast.walk(ast.Module(each.body, []))
            ):
                raise Refused("its `__exit__` looks at the exception that it is told of")
            if any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(each)):
                raise Refused("its `__exit__` may hold exceptions back")
            return
    raise Refused("its `__exit__` is not written in the class itself")


def _contextlib(draft: Draft) -> str:
    return spelled(draft.modules, "contextlib") or "contextlib"


def _with_contextlib(draft: Draft, fix: Fix) -> Fix:
    if spelled(draft.modules, "contextlib") is not None:
        return fix
    return replace(fix, edits=(import_edit(draft.context.document, "import contextlib"), *fix.edits))
