"""Reading the functions that are handed to torch.cond, while_loop, map and scan."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call
from exportlens.inference.values import Bound, Function, Value

COND = (
    "torch.cond",
    "torch._higher_order_ops.cond",
    "torch._higher_order_ops.cond.cond",
    "functorch.experimental.control_flow.cond",
    "functorch.experimental.cond",
)
WHILE_LOOP = (
    "torch._higher_order_ops.while_loop",
    "torch._higher_order_ops.while_loop.while_loop",
    "torch.while_loop",
)
MAP = (
    "torch._higher_order_ops.map",
    "torch._higher_order_ops.map.map",
    "functorch.experimental.control_flow.map",
)
SCAN = ("torch._higher_order_ops.scan", "torch._higher_order_ops.scan.scan")
# Methods that give a view of their tensor: returned as they are, they alias the operand.
VIEWS = frozenset(
    {"view", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "view_as", "T", "detach"}
)


def branch_functions(place: Call) -> Iterator[Function]:
    """The two branches of a torch.cond that are functions or lambdas of the workspace."""
    for index, keyword in ((1, "true_fn"), (2, "false_fn")):
        function = own_function(place.argument(index, keyword))
        if function is not None:
            yield function


def own_function(value: Value | None) -> Function | None:
    """The function behind a value, a bound method's included; None where it is not of the workspace."""
    if isinstance(value, Bound):
        value = value.function
    return value if isinstance(value, Function) else None


def parameters(function: Function) -> list[str]:
    """The names of the positional parameters."""
    arguments = function.node.args
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]


def returned(function: Function) -> list[ast.expr]:
    """The expressions that the function returns; a bare `return` as the constant None."""
    if isinstance(function.node, ast.Lambda):
        return [function.node.body]
    return [
        node.value or ast.Constant(None) for node in own_statements(function) if isinstance(node, ast.Return)
    ]


def own_statements(function: Function) -> Iterator[ast.AST]:
    """All nodes of the function's body but those of functions defined in it."""
    if isinstance(function.node, ast.Lambda):
        yield from ast.walk(function.node.body)
        return
    pending: list[ast.AST] = list(function.node.body)
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))


def assigned_names(function: Function) -> set[str]:
    """The local names that the function binds."""
    return {
        node.id
        for node in own_statements(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del))
    }


def leaves(expression: ast.expr) -> list[ast.expr]:
    """The elements of a returned tuple or list, or the expression itself."""
    if isinstance(expression, (ast.Tuple, ast.List)):
        return [leaf for item in expression.elts for leaf in leaves(item)]
    return [expression]


def is_operand(expression: ast.expr, names: list[str]) -> bool:
    """Whether the expression is a parameter as it came in, or a view of one."""
    if isinstance(expression, ast.Name):
        return expression.id in names
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        return expression.func.attr in VIEWS and is_operand(expression.func.value, names)
    return (
        isinstance(expression, ast.Attribute)
        and expression.attr in VIEWS
        and is_operand(expression.value, names)
    )


def in_place_writes(function: Function, names: list[str]) -> Iterator[ast.AST]:
    """Writes of the function to its own parameters: `x.add_(1)`, `x[0] = 1`, `x += 1`."""
    rebound = assigned_names(function)
    untouched = [name for name in names if name not in rebound]
    for node in own_statements(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            attr = node.func.attr
            if attr.endswith("_") and not attr.endswith("__") and is_operand(node.func.value, untouched):
                yield node
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and is_operand(target.value, untouched):
                    yield node
