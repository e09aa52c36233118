"""Branches where gradients are switched off: torch.export takes none in another one there, nor beside loops on
tensor data (measured on torch 2.13).

Where all that is computed with is detached, nothing is recorded anyway, and `no_grad` goes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.draft import Refused, RefusedNested
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, own_expressions, visit
from exportlens.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What has no gradients.
_WITHOUT = ("number", "size", "scalar", "static", "none")
_HANDED_ON = (ast.Return, ast.Assign, ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.NamedExpr)
_Node = TypeVar("_Node", bound=ast.stmt)


def refuse_nested_without_gradients(source: Source, node: ast.AST, text: str, torch: str) -> None:
    """Raise Refused where `text`, the rewritten one, has a torch.cond in an arm of another, and `node` stood under `no_grad`."""
    function = outermost(source, node)
    if function is None or not without_gradients(source, function, node):
        return
    if has_nested(text, function, torch):
        raise RefusedNested(
            "torch.export takes no torch.cond in an arm of another under `no_grad`: switch gradients off where the "
            "model is called"
        )


def has_nested(text: str, function: Function, torch: str) -> bool:
    """Whether `text` has a torch.cond in an arm of another in what is `function` there."""
    return any(
        isinstance(each, ast.FunctionDef) and each.name == function.name and _has_nested(each, torch)
        for each in ast.walk(Source(text).tree)
    )


def outermost(source: Source, node: ast.AST) -> Function | None:
    """The function or method that `node` stands in, whatever functions it is nested in there."""
    around = [each for each in source.ancestors(node) if isinstance(each, Function)]
    return around[-1] if around else None


def without_gradients(source: Source, function: Function, node: ast.AST) -> bool:
    """Whether `node` of `function` stands under `no_grad`."""
    return _is_switched_off(source, function, node, set())


def _is_switched_off(source: Source, function: Function, node: ast.AST, seen: set[str]) -> bool:
    contexts = list(function.decorator_list)
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.With):
            contexts += [item.context_expr for item in each.items]
    if any(map(is_no_grad, contexts)):
        return True
    called = (f"self.{function.name}", function.name)
    for call in walk(source.tree) if function.name not in seen else ():
        if isinstance(call, ast.Call) and (dotted(call.func) or "") in called:
            caller = outermost(source, call)
            if (
                caller is not None
                and caller is not function
                and _is_switched_off(source, caller, call, {*seen, function.name})
            ):
                return True
    return False


def is_no_grad(context: ast.expr) -> bool:
    """Whether `context` is `torch.no_grad()`, the decorator without the call, or `torch.set_grad_enabled(False)`."""
    if isinstance(context, ast.Call) and ast.unparse(context.func).endswith("set_grad_enabled"):
        given = [*context.args, *(each.value for each in context.keywords)]
        return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
    return not isinstance(context, ast.IfExp) and ast.unparse(context).removesuffix("()").endswith("no_grad")


def _has_nested(function: ast.FunctionDef, torch: str) -> bool:
    return any(
        isinstance(inner, _FUNCTIONS)
        and inner is not function
        and any(
            isinstance(each, ast.Call)
            and ast.unparse(each.func) in (f"{torch}.cond", f"{torch}._higher_order_ops.while_loop")
            for each in ast.walk(inner)
        )
        for inner in ast.walk(function)
    )


# --- detached ---------------------------------------------------------------------------------------------------


def detached_around(source: Source, node: _Node, kinds: Kinds) -> tuple[Source, _Node] | None:
    """The text where what stands under `no_grad` around `node` is detached instead, and `node` of it; None where that is
    not provable."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    inner: ast.With | None = None
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.With):
            inner = each
    decorators = function.decorator_list
    if inner is not None and not decorators:
        swaps = _dissolved(source, inner, kinds_before(function, inner, kinds))
    elif inner is None and len(decorators) == 1 and is_no_grad(decorators[0]):
        swaps = _undecorated(source, function, kinds)
    else:
        return None
    return None if swaps is None else again(source, node, swaps)


def detached_inside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where what the arms of `node` decide under `no_grad` is detached instead, and `node` of it; None where they
    decide nothing there."""
    found: list[tuple[ast.With, Kinds]] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        if isinstance(statement, ast.With) and _decides(source, statement, now, torch):
            found.append((statement, now.copy()))

    for arm in (node.body, node.orelse):
        visit(arm, kinds.copy(), see)
    if not found:
        return None
    swaps = _dissolved(source, *found[0])
    if swaps is None or len(found) > 1:
        raise Refused(
            "torch.export takes no torch.cond in an arm of another under `no_grad`: switch gradients off where the model is "
            "called"
        )
    return again(source, node, swaps + _others(source, node, kinds))


def _others(source: Source, node: ast.If, kinds: Kinds) -> list[Replacement]:
    """What stands under `no_grad` elsewhere in the function: a branch in an arm is not taken beside it, either."""
    function = source.enclosing_function(node)
    swaps: list[Replacement] = []
    for each in function.body if function is not None else ():
        if isinstance(each, ast.With) and not any(one is node for one in ast.walk(each)):
            assert function is not None
            swaps += _dissolved(source, each, kinds_before(function, each, kinds)) or []
    return swaps


def _decides(source: Source, statement: ast.With, kinds: Kinds, torch: str) -> bool:
    if len(statement.items) != 1 or not is_no_grad(statement.items[0].context_expr):
        return False
    found: list[ast.AST] = []

    def see(each: ast.stmt, now: Kinds) -> None:
        predicates = Predicates(source, now, torch)
        tests = [one.test for one in own_expressions(each) if isinstance(one, ast.IfExp)]
        if isinstance(each, (ast.If, ast.While)):
            tests.append(each.test)
        found.extend(test for test in tests if predicates.from_data(test))

    visit(statement.body, kinds.copy(), see)
    return bool(found)


def dissolved(source: Source, block: ast.With, kinds: Kinds) -> list[Replacement] | None:
    """As `_dissolved`, where `kinds` are those of the function that `block` stands in."""
    function = source.enclosing_function(block)
    return None if function is None else _dissolved(source, block, kinds_before(function, block, kinds))


def _dissolved(source: Source, block: ast.With, kinds: Kinds) -> list[Replacement] | None:
    """The statements of `block` in its place, with all that they read detached."""
    if len(block.items) != 1 or not is_no_grad(block.items[0].context_expr) or not source.begins_line(block):
        return None
    swaps = _detached(source, block.body, kinds, set())
    if swaps is None or not source.begins_line(block.body[0]):
        return None
    indent = source.indent_of(block)
    text = source.block(block.body, indent, swaps)
    return [Replacement(source.start(block), source.span([block])[1], text[len(indent) :])]


def _undecorated(source: Source, function: Function, kinds: Kinds) -> list[Replacement] | None:
    """`function` without its decorator, whose arguments are detached first."""
    names = [each.arg for each in arguments(function.args) if each.arg != "self"]
    swaps = _detached(source, function.body, kinds, {*names, *bound(function.body)})
    if swaps is None:
        return None
    recorded: list[str] = []
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if not body or not source.begins_line(body[0]):
        return None
    begin, indent = source.start(body[0]), source.indent_of(body[0])
    for name in names:
        kind = kinds.names.get(name)
        if kind is None or kind.what not in ("tensor", *_WITHOUT):
            return None
        if kind.what == "tensor" and name not in _asked(source, function.body):
            if not _is_only_compared(source, body, name):
                return None
            # It may be a number as well; of a comparison nothing is recorded.
            continue
        if kind.what == "tensor" and not _is_whole(kind.dtype):
            recorded.append(name)
    decorator = function.decorator_list[0]
    start = source.text.rfind("\n", 0, source.start(decorator)) + 1
    end = source.text.find("\n", source.end(decorator)) + 1
    optional = _compared(body) | none_by_default(function)
    lines = [_unless_none(name) if name in optional else f"{name} = {name}.detach()" for name in recorded]
    head = "".join(line + source.newline + indent for line in lines)
    return [*swaps, Replacement(start, end, ""), Replacement(begin, begin, head)]


def _is_only_compared(source: Source, statements: Sequence[ast.stmt], name: str) -> bool:
    return all(
        isinstance(source.parents[each], ast.Compare)
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    )


def none_by_default(function: Function) -> set[str]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return {each.arg for each, value in pairs if isinstance(value, ast.Constant) and value.value is None}


def _unless_none(name: str) -> str:
    return f"{name} = None if {name} is None else {name}.detach()"


def _detached(
    source: Source, statements: Sequence[ast.stmt], kinds: Kinds, done: set[str]
) -> list[Replacement] | None:
    """What changes for all that `statements` read from outside of them to be detached, but the names that are `done`; None
    where something may still need gradients."""
    inside = set(bound(list(statements)))
    outer = done - inside
    asked = _asked(source, statements)
    compared = _compared(statements)
    swaps: list[Replacement] = []
    for each in (one for statement in statements for one in ast.walk(statement)):
        called = dotted(each.func) or "" if isinstance(each, ast.Call) else ""
        if called.startswith("self.") and called.count(".") == 1:
            # A method or a layer may compute with Parameters.
            return None
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
            kind = kinds.of(each)
            own = dotted(each) == f"self.{each.attr}"
            if own and isinstance(kind.value, Tensor) and kind.value.origin == "parameter":
                swaps.append(source.swap(each, f"{source.of(each)}.detach()"))
            elif own and kind.what == "unknown":
                return None
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            known = kinds.names.get(each.target.id)
            if known is not None and each.target.id not in done and known.what not in _WITHOUT:
                return None
        if not isinstance(each, ast.Name) or not isinstance(each.ctx, ast.Load):
            continue
        known = kinds.names.get(each.id)
        if known is None or each.id == "self" or known.what in _WITHOUT or _is_whole(known.dtype):
            continue
        handed_on = isinstance(source.parents[each], _HANDED_ON) and not _named_inside(
            source, each, statements
        )
        if handed_on and (each.id not in inside or each.id in outer):
            # The very tensor keeps its gradients under `no_grad`.
            return None
        if each.id in done:
            continue
        if known.what != "tensor" or each.id in inside:
            return None
        if each.id not in asked:
            # It may be a number as well, of which nothing is recorded.
            continue
        if each.id in compared:
            # It may be None, which has no `detach`: where it is asked for a part of itself it is not.
            parent = source.parents[each]
            if isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot)):
                continue
            if not isinstance(parent, (ast.Attribute, ast.Subscript, ast.BinOp)):
                return None
        swaps.append(source.swap(each, f"{each.id}.detach()"))
    return swaps


def _named_inside(source: Source, node: ast.Name, statements: Sequence[ast.stmt]) -> bool:
    """Whether `node` stands in `v = x`, and nothing outside of `statements` reads `v`."""
    parent, function = source.parents[node], source.enclosing_function(node)
    if not (isinstance(parent, ast.Assign) and [type(each) for each in parent.targets] == [ast.Name]):
        return False
    assert isinstance(parent.targets[0], ast.Name)
    own = {id(each) for statement in statements for each in ast.walk(statement)}
    return function is not None and not any(
        isinstance(each, ast.Name) and each.id == parent.targets[0].id and id(each) not in own
        for each in ast.walk(function)
    )


def _compared(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that `statements` compare by identity, as with None."""
    return {
        part.id
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], (ast.Is, ast.IsNot))
        for part in (each.left, *each.comparators)
        if isinstance(part, ast.Name)
    }


def _asked(source: Source, statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what certainly is no number: it is asked for an attribute, a method or an item."""
    return {
        each.id
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Name)
        and isinstance(parent := source.parents[each], (ast.Attribute, ast.Subscript))
        and parent.value is each
    }


def _is_whole(dtype: str | None) -> bool:
    return (dtype or "").startswith(("int", "uint", "bool"))


def again(source: Source, node: _Node, swaps: list[Replacement]) -> tuple[Source, _Node] | None:
    """The text after `swaps`, and the statement that stands for `node` in it."""
    order = [each for each in ast.walk(source.tree) if type(each) is type(node)]
    changed = Source(replaced(source.text, swaps))
    later = [each for each in ast.walk(changed.tree) if type(each) is type(node)]
    if len(order) != len(later):
        return None
    order.sort(key=source.start)
    later.sort(key=changed.start)
    found = later[next(index for index, each in enumerate(order) if each is node)]
    return changed, found
