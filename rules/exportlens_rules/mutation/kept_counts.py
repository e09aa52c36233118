"""How much a list of the model holds, where it grows from call to call: the program knows what it was while tracing."""

from __future__ import annotations

import ast

from exportlens_rules.mutation.turned_results import gives_results


def counts_decide(function: ast.AST, path: str, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether `function` computes with the length of the list (dumped), or the length decides what it gives."""
    return any(
        _counts(each, path) and _is_used(each, path, function, around)
        for each in ast.walk(function)
        if isinstance(each, ast.Call)
    )


def _counts(call: ast.Call, path: str) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id == "len"
    return named and [ast.dump(each) for each in call.args] == [path]


def _is_used(call: ast.Call, path: str, function: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    node: ast.AST = call
    outer = around[node]
    while isinstance(outer, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        node, outer = outer, around[outer]
    if isinstance(outer, (ast.If, ast.IfExp)) and node is outer.test:
        return gives_results(outer, path, function, around)
    return isinstance(outer, ast.BinOp) and _is_of_a_tensor(outer, node)


def _is_of_a_tensor(computed: ast.BinOp, count: ast.AST) -> bool:
    """Whether a name of the function is divided by the number, or multiplied with it: `x / len(self.seen)`."""
    other = computed.left if computed.right is count else computed.right
    return isinstance(computed.op, (ast.Div, ast.Mult)) and isinstance(other, ast.Name)
