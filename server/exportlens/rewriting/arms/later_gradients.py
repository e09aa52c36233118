"""`no_grad` that the program enters after a branch: torch.export 2.13 takes no torch.cond in an arm of another before it.

Measured: the pass that cuts the graph where gradients are switched loses the graphs of the inner branch, which lie before the
cut ("object has no attribute 'true_graph_0'"). What is switched before the branch does not matter.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.gradients import has_nested, is_no_grad, outermost
from exportlens.rewriting.code.draft import RefusedNested
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def switched_later(source: Source, node: ast.AST) -> list[ast.With | Function]:
    """The blocks and functions under `no_grad` that run after `node`, in its function or in one that is called after that."""
    function = outermost(source, node)
    if function is None:
        return []
    found = []
    for block in walk(source.tree):
        if not isinstance(block, (ast.With, *_FUNCTIONS)) or not _switches(block):
            continue
        own = block if isinstance(block, _FUNCTIONS) else outermost(source, block)
        if own is not None and own.name != "__init__" and _is_later(source, function, node, own, block):
            found.append(block)
    return found


def refuse_nested_before_switch(source: Source, node: ast.AST, text: str, torch: str) -> None:
    """Raise RefusedNested where `text`, the rewritten one, has a torch.cond in an arm of another for `node`, and gradients are
    switched off behind that."""
    function = outermost(source, node)
    later = switched_later(source, node)
    if later and function is not None and has_nested(text, function, torch):
        raise RefusedNested(
            "torch.export takes no torch.cond in an arm of another before a `no_grad` that follows: "
            "detach what is computed there instead"
        )


def _switches(block: ast.With | Function) -> bool:
    if isinstance(block, ast.With):
        return any(is_no_grad(each.context_expr) for each in block.items)
    # One that decides something is rewritten for itself, and its decorator with it.
    decides = any(isinstance(each, (ast.If, ast.IfExp, ast.While)) for each in walk(block))
    return not decides and any(map(is_no_grad, block.decorator_list))


def _is_later(
    source: Source, function: Function, node: ast.AST, other: Function, block: ast.With | Function
) -> bool:
    if block is function:
        return False
    if other is function:
        # What follows a branch that returns moves into its arms, where gradients may be switched.
        moves = isinstance(node, ast.stmt) and bool(exits([node]) - {"falls"})
        return source.start(block) > source.end(node) and not moves
    # Where one function runs both, what it calls later is later.
    for caller in walk(source.tree):
        if not isinstance(caller, Function) or outermost(source, caller) is not None:
            continue
        first = [source.end(node)] if caller is function else _calls(source, caller, function)
        last = [source.start(block)] if caller is other else _calls(source, caller, other)
        if first and last and max(last) > min(first):
            return True
    return False


def _calls(source: Source, caller: Function, called: Function) -> list[int]:
    """Where `caller` calls `called`, by the name or as its own method."""
    names = (f"self.{called.name}", called.name)
    return [
        source.start(each)
        for each in walk(caller)
        if isinstance(each, ast.Call) and (dotted(each.func) or "") in names
    ]
