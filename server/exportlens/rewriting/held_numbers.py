"""What a module's `__init__` makes with NumPy becomes a number of Python where it certainly is one number."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.names import arguments, dotted
from exportlens.rewriting.predicates import primary

# Functions of NumPy that give one number for one number.
_ELEMENTWISE = frozenset(
    {"sqrt", "cbrt", "square", "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "abs"}
) | {
    *("absolute", "floor", "ceil", "rint", "sin", "cos", "tan", "tanh", "sign", "power", "float64", "int64"),
    *("minimum", "maximum"),
}
# And those that give one number for a list of numbers.
_REDUCING = frozenset({"prod", "sum", "mean", "max", "min"})
_NUMBERS = ("int", "float")


def held_number(place: Place, node: ast.AST, context: RewriteContext) -> Fix | Refusal:
    """`.item()` behind the expression `node` that an attribute is set to."""
    try:
        draft = Draft.of(place, context)
        value = draft.source.find(node)
        assert isinstance(value, ast.expr)
        function = draft.source.enclosing_function(value)
        if function is None:
            raise Refused("the attribute is not set in a method")
        if not _is_number(value, _numbers(function), draft):
            raise Refused(
                f"it is not certain that `{draft.source.of(value)}` is one number: write `.item()` behind it where it "
                "is, or register it as a buffer"
            )
        text = f"{primary(draft.source.of(value))}.item()"
        return draft.replace("Hold a number of Python", [draft.source.swap(value, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _numbers(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters that are annotated as numbers, or have a number as default, and are not bound anew."""
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    defaults = dict(zip([each.arg for each in plain][::-1], args.defaults[::-1], strict=False))
    defaults |= {
        each.arg: value for each, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value
    }
    found = {
        each.arg
        for each in arguments(args)
        if (each.annotation is not None and ast.unparse(each.annotation) in _NUMBERS)
        or _is_constant(defaults.get(each.arg))
    }
    return found - {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }


def _is_constant(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_number(node: ast.expr, numbers: set[str], draft: Draft) -> bool:
    if _is_constant(node):
        return True
    if isinstance(node, ast.Name):
        return node.id in numbers
    if isinstance(node, ast.BinOp):
        return all(_is_number(each, numbers, draft) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, numbers, draft)
    if isinstance(node, ast.Call) and not node.keywords and node.args:
        head, _, name = (dotted(node.func) or "").partition(".")
        if draft.modules.get(head) != "numpy":
            return False
        if name in _ELEMENTWISE:
            return all(_is_number(each, numbers, draft) for each in node.args)
        given = node.args[0]
        if name in _REDUCING and len(node.args) == 1 and isinstance(given, (ast.List, ast.Tuple)):
            return bool(given.elts) and all(_is_number(each, numbers, draft) for each in given.elts)
    return False
