"""`no_grad` around branches that torch.export does not take there: it is entered in eager alone.

    @torch.no_grad()                    def forward(self, x):
    def forward(self, x):        ->         with contextlib.nullcontext() if torch.compiler.is_exporting() else torch.no_grad():
        ...                                     ...

Eager records no gradients, as before. The program computes the same; whoever runs it says whether gradients are recorded. So
it is done around a whole `forward` and around what only writes state, and what is read behind a block is detached there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from exportlens.finding import Fix, Refusal
from exportlens.inference.tensors import dtype_family
from exportlens.rewriting.arms.gradients import again, dissolved, is_no_grad, outermost
from exportlens.rewriting.arms.later_gradients import switched_later
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import bound, dotted, walk_own
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, visit, writes_of
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

_Node = TypeVar("_Node", bound=ast.stmt)
_MOST = 8
MESSAGE = "; gradients are switched off in eager alone"


def in_eager_alone(draft: Draft, source: Source, node: _Node, kinds: Kinds) -> tuple[Source, _Node] | None:
    """The text where each `no_grad` around `node`, around what calls its function, or behind it, is entered in eager alone, and
    `node` of it; None where there is none, or a Parameter may be written there, which is no leaf's write while gradients are recorded."""
    changed: tuple[Source, _Node] | None = None
    if _writes_parameters(source):
        return None
    context = _untraced(draft)
    for _ in range(_MOST):
        function = outermost(source, node)
        around = _around(source, function, node, set()) if function is not None else iter(())
        found = next(chain(around, switched_later(source, node)), None)
        if found is None:
            return changed
        swaps = _conditional(source, found, context)
        if swaps is None and isinstance(found, ast.With):
            known = kinds if outermost(source, found) is function else draft.kinds({})
            swaps = dissolved(source, found, known) or _detached_behind(
                source, found, context, known, draft.torch
            )
        following = again(source, node, swaps) if swaps is not None else None
        if following is None:
            return None
        changed = source, node = following
    return None


def entered_in_eager_alone(
    chunk: Chunk, found: ast.With | ast.FunctionDef, context: RewriteContext
) -> Fix | Refusal:
    """`found`, a block or a function of `chunk` without gradients, which is so in eager alone."""
    try:
        draft = Draft.of_chunk(chunk, context)
        switch = draft.source.find(found)
        assert isinstance(switch, (ast.With, ast.FunctionDef))
        if _writes_parameters(draft.source):
            raise Refused("parameters may be written there, which are no leaves while gradients are recorded")
        condition = _untraced(draft)
        swaps = _conditional(draft.source, switch, condition)
        if swaps is None and isinstance(switch, ast.With):
            swaps = _detached_behind(draft.source, switch, condition, draft.kinds({}), draft.torch)
        if swaps is None:
            raise Refused(
                "what is computed there may be read with its gradients behind it: switch them off where the model is called"
            )
        return importing(
            draft,
            draft.replace("Switch gradients off in eager alone", swaps),
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _untraced(draft: Draft) -> str:
    """What stands before a context that is entered in eager alone."""
    return f"{spelled(draft.modules, 'contextlib') or 'contextlib'}.nullcontext() if {draft.exporting} else"


def importing(draft: Draft, fix: Fix) -> Fix:
    """`fix` with the import of what `in_eager_alone` writes."""
    if spelled(draft.modules, "contextlib") is not None:
        return fix
    return replace(fix, edits=(import_edit(draft.context.document, "import contextlib"), *fix.edits))


def _around(
    source: Source, function: Function, node: ast.AST, seen: set[str]
) -> Iterator[ast.With | Function]:
    """What switches gradients off around `node` of `function`, and around the calls of that function."""
    for each in source.ancestors(node):
        if isinstance(each, ast.With) and any(is_no_grad(item.context_expr) for item in each.items):
            yield each
        if each is function:
            break
    if any(map(is_no_grad, function.decorator_list)):
        yield function
    if function.name in seen:
        return
    for call in walk(source.tree):
        if isinstance(call, ast.Call) and (dotted(call.func) or "") in (
            f"self.{function.name}",
            function.name,
        ):
            caller = outermost(source, call)
            if caller is not None and caller is not function:
                yield from _around(source, caller, call, {*seen, function.name})


def _conditional(source: Source, found: ast.With | Function, context: str) -> list[Replacement] | None:
    if _is_read_behind(source, found):
        return None
    if isinstance(found, ast.With):
        if len(found.items) != 1:
            return None
        expression = found.items[0].context_expr
        return [source.swap(expression, f"{context} {source.of(expression)}")]
    body = found.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if len(found.decorator_list) != 1 or not body or not source.begins_line(body[0]):
        return None
    decorator = found.decorator_list[0]
    start = source.text.rfind("\n", 0, source.start(decorator)) + 1
    end = source.text.find("\n", source.end(decorator)) + 1
    switch = source.of(decorator) if isinstance(decorator, ast.Call) else f"{source.of(decorator)}()"
    indent, nl = source.indent_of(body[0]), source.newline
    text = f"with {context} {switch}:{nl}{source.block(body, indent + source.indent_unit())}"
    return [Replacement(start, end, ""), Replacement(source.start(body[0]), source.span(body)[1], text)]


def _detached_behind(
    source: Source, found: ast.With, context: str, kinds: Kinds, torch: str
) -> list[Replacement] | None:
    """The block with its context in eager alone, and what is read behind it detached there; None where that is not provable."""
    function = source.enclosing_function(found)
    if function is None or "returns" in exits(found.body) or len(found.items) != 1:
        return None
    if not source.begins_line(found):
        return None
    own, outside = set(bound(found.body)), False
    after = kinds_before(function, found, kinds)
    anew = own - after.names.keys()

    def see(statement: ast.stmt, now: Kinds) -> None:
        nonlocal outside
        for write in writes_of(statement, now):
            names = {each.id for each in ast.walk(write.base) if isinstance(each, ast.Name)}
            # Another tensor's write: what is recorded of it would be seen behind the block.
            outside = outside or not names <= anew | {"self"}

    visit(found.body, after, see)
    if outside:
        return None
    lines = []
    for name in sorted(own & Liveness(function).live_after(found)):
        kind = after.names.get(name)
        detached = f"{name}.detach()"
        if kind is None or kind.what in ("unknown", "container"):
            detached = f"{torch}.utils._pytree.tree_map_only({torch}.Tensor, {torch}.Tensor.detach, {name})"
        elif kind.what != "tensor" or dtype_family(kind.dtype) in ("int", "bool"):
            if kind.what in ("object", "none"):
                return None
            continue
        lines.append(f"{source.newline}{source.indent_of(found)}{name} = {detached}")
    expression, end = found.items[0].context_expr, source.span([found])[1]
    return [
        source.swap(expression, f"{context} {source.of(expression)}"),
        Replacement(end, end, "".join(lines)),
    ]


def _is_read_behind(source: Source, found: ast.With | Function) -> bool:
    """Whether what is computed under `found` is computed with further: the program must not record gradients of it then."""
    if not isinstance(found, ast.With):
        returned = (
            each for each in walk_own(found.body) if isinstance(each, ast.Return) and each.value is not None
        )
        return found.name != "forward" and any(True for _ in returned)
    function = source.enclosing_function(found)
    # What `forward` returns is the program's result, as under its decorator.
    if function is None or (function.name != "forward" and "returns" in exits(found.body)):
        return True
    return bool(set(bound(found.body)) & Liveness(function).live_after(found))


def _writes_parameters(source: Source) -> bool:
    """Whether the code may write Parameters in place: what it made of `nn.Parameter`, of layers, or goes through all of."""
    own = {
        dotted(target) or ""
        for each in walk(source.tree)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and (dotted(each.value.func) or "").endswith("Parameter")
        for target in each.targets
    }
    for each in walk(source.tree):
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            continue
        if isinstance(each, ast.Attribute) and each.attr in (
            "parameters",
            "named_parameters",
            "register_parameter",
        ):
            return True
        written: ast.expr | None = None
        if isinstance(each, ast.AugAssign):
            written = each.target
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            written = each.value
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr.endswith("_")
        ):
            written = each.func.value
        while isinstance(written, ast.Subscript):
            written = written.value
        path = (dotted(written) if written is not None else None) or ""
        if path in own or path.endswith((".weight", ".bias")):
            return True
    return False
