"""What may write to a tensor in place: code that the reading of one is moved past."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.inference import knowledge
from exportlens.inference.values import Const, Instance, Named
from exportlens.rewriting.kinds.kinds import Kinds

_BUILTINS = frozenset(
    {
        "abs",
        "bool",
        "dict",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "print",
        "range",
        "sum",
        "tuple",
        "zip",
    }
)
_LIBRARIES = ("math", "numpy", "torch")


def writes(nodes: Iterable[ast.AST]) -> bool:
    """Whether `nodes` write in place, as they are written: what they call may do so as well."""
    return any(_stores(each) for node in nodes for each in ast.walk(node))


def written_bases(scope: ast.AST) -> Iterator[ast.expr]:
    """What the code in `scope` writes in place, as it is written: `x` of `x[0] = 1`, `x += 1`, `x.add_(1)`, `torch.relu_(x)` and
    `torch.exp(y, out=x)`."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Subscript) and _stores(each):
            yield each.value
        elif isinstance(each, ast.AugAssign):
            yield each.target
        elif isinstance(each, ast.Call) and _stores(each):
            yield from (key.value for key in each.keywords if key.arg == "out")
            yield from each.args[:1]
            if isinstance(each.func, ast.Attribute):
                yield each.func.value


def may_write(nodes: Iterable[ast.AST], kinds: Kinds) -> bool:
    """Whether running `nodes` may change a tensor in place: which one is not asked, they may share memory."""
    nodes = list(nodes)
    return writes(nodes) or any(_call_may_write(*each) for node in nodes for each in _calls(node, kinds))


def _calls(node: ast.AST, kinds: Kinds) -> Iterator[tuple[ast.Call, Kinds]]:
    """The calls in `node`, each with the kinds of the names there."""
    if isinstance(node, ast.Call):
        yield node, kinds
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        kinds = kinds.in_comprehension(node)
    for each in ast.iter_child_nodes(node):
        yield from _calls(each, kinds)


def _stores(node: ast.AST) -> bool:
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.AugAssign):
        return True
    if not isinstance(node, ast.Call):
        return False
    if any(key.arg in ("out", "inplace") and not _is(key.value, False) for key in node.keywords):
        return True
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith("_") and not name.endswith("__")


def _call_may_write(call: ast.Call, kinds: Kinds) -> bool:
    function = call.func
    name = kinds.qualified(function)
    if name is not None:
        op = knowledge.lookup_function(name)
        # An option as `inplace` may be given by its place.
        mutates = op is not None and op.mutates and (not op.mutates_when or has_option(call))
        return name.partition(".")[0] not in _LIBRARIES or bool(mutates)
    if isinstance(function, ast.Name) and function.id not in kinds.names:
        return function.id not in _BUILTINS
    if isinstance(function, ast.Attribute) and kinds.of(function.value).what == "tensor":
        return False
    callee = kinds.of(function).value
    return not (
        isinstance(callee, Instance)
        and isinstance(callee.cls, Named)
        and callee.cls.name.startswith("torch.nn.")
        # What a container holds may do it.
        and callee.cls.name != "torch.nn.Sequential"
        and callee.arguments.get("inplace", Const(False)) == Const(False)
    )


def has_option(call: ast.Call) -> bool:
    """Whether an argument behind the first may be the option `inplace`."""
    return any(not _is(each, False) for each in call.args[1:])


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
