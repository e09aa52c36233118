"""Python functions that run on each element of a tensor, `t.apply_(f)` and `t.map_(other, f)`, as operators on all elements at once.

Python computes with doubles and torch with the dtype of the tensor, so that numbers may differ in their last digits.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.source.parsing import parse_python

_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPUTING = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
# Of `math`, and of Python itself, what torch has under a name.
_FUNCTIONS = {
    **{f"math.{name}": name for name in ("exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "sinh", "cosh")},
    **{f"math.{name}": name for name in ("tanh", "asin", "acos", "atan", "erf", "erfc", "floor", "ceil", "trunc")},
    "math.fabs": "abs",
    "builtins.abs": "abs",
}  # fmt: skip


def operators_for_function(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`t.apply_(lambda v: v * 2 + 1)` -> `t.copy_(t * 2 + 1)`."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise Refused("the method is not called where it is written")
        *others, function = node.args
        if node.keywords or len(others) != (1 if node.func.attr == "map_" else 0):
            raise Refused("the arguments are not given by place")
        names, body = _written(draft, function)
        if len(names) != len(others) + 1:
            raise Refused("the function takes another number of elements")
        owner = node.func.value
        text, before = source.of(owner), primary(source.of(owner))
        if not _is_plain(owner):
            text = fresh("elements", every_name(source.tree))
            before = f"({text} := {source.of(owner)})"
        if any(not _is_plain(each) for each in others):
            raise Refused("the other tensor is not named")
        tensors = [parse_python(text, mode="eval").body, *others]
        computed = ast.unparse(_Elements(draft, dict(zip(names, tensors, strict=True))).of(body))
        return draft.replace(
            "Compute all elements at once", [source.swap(node, f"{before}.copy_({computed})")]
        )
    except (Refused, LookupError, SyntaxError, ValueError) as refused:
        return Refusal(str(refused))


def _written(draft: Draft, function: ast.expr) -> tuple[list[str], ast.expr]:
    """The parameters of a function and what it gives."""
    if isinstance(function, ast.Lambda):
        args, body = function.args, function.body
    else:
        chunks = [placed.chunk.body for placed in draft.context.document.placed]
        found = [
            each
            for one in [*chunks, draft.source.tree.body]
            for statement in one
            for each in ast.walk(statement)
            if isinstance(each, ast.FunctionDef) and each.name == dotted(function) and not each.decorator_list
        ]
        only = found[0].body[-1] if found and len({ast.dump(each) for each in found}) == 1 else None
        short = bool(found) and all(
            isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in found[0].body[:-1]
        )
        if not isinstance(only, ast.Return) or only.value is None or not short:
            raise Refused(f"what `{ast.unparse(function)}` does is not one expression")
        args, body = found[0].args, only.value
        around = draft.source.enclosing_function(function)
        own = {each.arg for each in [*args.posonlyargs, *args.args]}
        if around is not None and (reads(body) - own) & (
            set(bound(around)) | {each.arg for each in arguments(around.args)}
        ):
            raise Refused(f"`{ast.unparse(function)}` reads names that are others where it is called")
    if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
        raise Refused("the function has other parameters than for elements")
    return [each.arg for each in [*args.posonlyargs, *args.args]], body


def _is_plain(node: ast.expr) -> bool:
    """Whether to evaluate `node` twice is to evaluate it once."""
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value) and not any(
            isinstance(each, (ast.Call, ast.NamedExpr)) for each in ast.walk(node.slice)
        )
    return dotted(node) is not None


class _Elements:
    """What a function gives for an element, of all elements: `given` are the tensors for its parameters."""

    def __init__(self, draft: Draft, given: Mapping[str, ast.expr]) -> None:
        self.draft, self.given = draft, given

    def of(self, node: ast.expr) -> ast.expr:
        """Raises Refused where the function does more than arithmetic."""
        if not self._reads(node):
            if any(isinstance(each, (ast.Lambda, ast.NamedExpr, ast.Await)) for each in ast.walk(node)):
                raise Refused(f"`{ast.unparse(node)}` is more than arithmetic on an element")
            return node
        if isinstance(node, ast.Name):
            return self.given[node.id]
        if isinstance(node, ast.BinOp) and isinstance(node.op, _COMPUTING):
            return ast.BinOp(self.of(node.left), node.op, self.of(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return ast.UnaryOp(node.op, self.of(node.operand))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _COMPARING):
            return ast.Compare(self.of(node.left), node.ops, [self.of(node.comparators[0])])
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare) and self._reads(node.test):
            return self._torch("where", *map(self.of, (node.test, node.body, node.orelse)))
        if isinstance(node, ast.Call) and not node.keywords:
            return self._called(node)
        raise Refused(f"`{ast.unparse(node)}` is more than arithmetic on an element")

    def _called(self, node: ast.Call) -> ast.expr:
        name = self.draft.qualified(node.func) or ""
        name = name if "." in name else f"builtins.{name}"
        if name == "builtins.float" and len(node.args) == 1:
            return self.of(node.args[0])
        if name in _FUNCTIONS and len(node.args) == 1:
            return self._torch(_FUNCTIONS[name], self.of(node.args[0]))
        if name in ("builtins.min", "builtins.max") and len(node.args) == 2:
            inside = [each for each in node.args if self._reads(each)]
            outside = [each for each in node.args if not self._reads(each)]
            if len(inside) == len(outside) == 1:
                bound = "max" if name == "builtins.min" else "min"
                return self._torch("clamp", self.of(inside[0]), **{bound: outside[0]})
        raise Refused(f"`{ast.unparse(node)}` is more than arithmetic on an element")

    def _torch(self, name: str, *args: ast.expr, **keywords: ast.expr) -> ast.Call:
        function = ast.Attribute(ast.Name(self.draft.torch, ast.Load()), name, ast.Load())
        return ast.Call(function, list(args), [ast.keyword(key, value) for key, value in keywords.items()])

    def _reads(self, node: ast.expr) -> bool:
        return any(isinstance(each, ast.Name) and each.id in self.given for each in ast.walk(node))
