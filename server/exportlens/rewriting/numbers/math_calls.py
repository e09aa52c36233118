"""Functions of the math module, and of NumPy, on tensor data: those that torch has under the same name."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Shape, Static, Tensor, TensorScalar, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.numbers.operands import meets_tensor
from exportlens.rewriting.numbers.python_numbers import is_item

# More functions of NumPy that torch has, by how many arguments they take; all but the first are numbers.
_OTHERS_OF_NUMPY = {
    "abs": 1,
    "absolute": 1,
    "clip": 3,
    "maximum": 2,
    "minimum": 2,
    "power": 2,
    "sign": 1,
    "square": 1,
}
# Functions of the math module that torch has under the same name, for one float.
SAME_IN_TORCH = frozenset(
    {
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "isfinite",
        "isinf",
        "isnan",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    }
)
# Those of them that give an int or a bool.
_ASKING = frozenset({"isfinite", "isinf", "isnan"})
# What takes the place of NumPy's function for a number, one bound after the other.
_MAKING_ARRAYS = frozenset(
    {
        "array",
        "asarray",
        "ascontiguousarray",
        "stack",
        "hstack",
        "vstack",
        "concatenate",
        "full",
        "zeros",
        "ones",
    }
)
_BOUNDS = {"clip": ("sym_max", "sym_min"), "maximum": ("sym_max",), "minimum": ("sym_min",)}
# Functions of two numbers, and those that only multiply one.
_OF_TWO = {f"math.{name}": name for name in ("atan2", "hypot", "fmod", "copysign")}
# Of two numbers NumPy's and torch's are the same formula, with the same tolerances.
_CLOSE = frozenset({"numpy.isclose", "numpy.allclose"})
_TOLERANCES = frozenset({"rtol", "atol", "equal_nan"})
_FACTORS = {"math.radians": "{}.pi / 180.0", "math.degrees": "180.0 / {}.pi"}
_NUMBERS = (Const, Static, Shape, TensorScalar)
_WHOLE = frozenset({"ceil", "floor", "trunc"})
NO_FLOAT = _WHOLE | {"isfinite", "isinf", "isnan"}


def torch_for_math(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`math.exp(t)` or `np.exp(t.item())` -> `torch.exp(t)` where the result only meets tensors; elsewhere a number again."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not node.args:
            raise Refused("the argument is not written in the call")
        if place.name == "math.pow":
            return _power(place, node, draft)
        if place.name in _OF_TWO:
            return _of_two(place, node, draft)
        if place.name in _FACTORS:
            return _scaled(place, node, draft)
        if place.name in _CLOSE:
            return _close(place, node, draft)
        given = place.argument(0, "x")
        bounds = place.name.startswith("numpy.") and place.name.rpartition(".")[2] in _BOUNDS
        bounded = bounds and given is not None and all(map(_is_number, options(given)))
        if bounded and not all(isinstance(each, Const) for each in place.args[1:]):
            return _bounded(place, node, draft)
        function, swaps = _in_torch(place, node, draft)
        inner = _without_items(draft, node.args[0], swaps)
        if not inner:
            if given is None or not all(isinstance(one, Tensor) for one in options(given)):
                return _of_number(place, node, draft)
            text = f"{primary(draft.source.of(node.args[0]))}.detach()"
            swaps.append(draft.source.swap(node.args[0], text))
        statement = draft.source.enclosing_statement(node)
        function_node = draft.source.enclosing_function(statement)
        kinds = draft.kinds({})
        if function_node is not None:
            kinds = kinds_before(function_node, statement, kinds)
        if not meets_tensor(draft.source, node, kinds):
            return _of_number(place, node, draft)
        return draft.replace(f"Use `{draft.torch}.{function}`", swaps)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _of_number(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """`math.sqrt(n)` -> `torch.sym_sqrt(n)`, which is the same and stays symbolic; `math.exp(n)` -> the number that torch
    computes with the precision of a Python float; `np.clip(n, 0, 9)` -> `torch.sym_min(torch.sym_max(n, 0), 9)`."""
    module, _, function = place.name.rpartition(".")
    given = place.argument(0, "x")
    argument = draft.source.of(node.args[0])
    if given is None:
        raise Refused("the argument is not written in the call")
    ways = options(given)
    numbers = all(_is_number(one) for one in ways)
    if module == "numpy" and _may_be_array(draft, node.args[0], set()):
        raise Refused(f"`{argument}` is an array: rewrite from where it is made")
    if module == "numpy" and numbers and function in _BOUNDS:
        return _bounded(place, node, draft)
    if module == "math" and function in _WHOLE and all(isinstance(one, Tensor) for one in ways):
        text = f"{draft.torch}.{function}({primary(argument)}.double()).long().item()"
        return draft.replace(f"Use `{draft.torch}.{function}`", [draft.source.swap(node, text)])
    if function not in SAME_IN_TORCH - NO_FLOAT and not (numbers and function in _ASKING):
        raise Refused(f"`{argument}` is a Python number: give the function the tensor")
    if module == "numpy" and not numbers:
        raise Refused("the result is used as a Python number")
    if all(isinstance(one, TensorScalar) for one in ways):
        if function == "sqrt" and module == "math":
            swap = draft.source.swap(node.func, f"{draft.torch}.sym_sqrt")
            return draft.replace(f"Use `{draft.torch}.sym_sqrt`", [swap], Applicability.SAFE)
        tensor = f"{draft.torch}.full((), {argument}, dtype={draft.torch}.float64)"
    elif all(isinstance(one, Tensor) for one in ways):
        tensor = f"{primary(argument)}.double()"
    else:
        raise Refused(f"`{argument}` is not known to come from tensor data on each way")
    text = f"{draft.torch}.{function}({tensor}).item()"
    return draft.replace(f"Use `{draft.torch}.{function}`", [draft.source.swap(node, text)])


def _of_two(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """`math.atan2(a, b)` -> the number that torch computes of both with the precision of a Python float."""
    if len(node.args) != 2 or node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
        raise Refused("the call is not of two arguments")
    texts = []
    for each, value in zip(node.args, place.args, strict=True):
        text, ways = draft.source.of(each), options(value)
        if all(isinstance(one, Tensor) for one in ways):
            texts.append(f"{primary(text)}.double()")
        elif all(isinstance(one, _NUMBERS) for one in ways):
            texts.append(f"{draft.torch}.full((), {text}, dtype={draft.torch}.float64)")
        else:
            raise Refused(f"`{text}` is not known to be a number")
    function = _OF_TWO[place.name]
    text = f"{draft.torch}.{function}({', '.join(texts)}).item()"
    return draft.replace(f"Use `{draft.torch}.{function}`", [draft.source.swap(node, text)])


def _close(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """`np.isclose(n, 1.0, atol=1e-3)` of two numbers -> what torch tells of both with the precision of a Python float."""
    if len(node.args) < 2 or any(isinstance(each, ast.Starred) for each in node.args):
        raise Refused("the two numbers are not written in the call")
    if not {each.arg for each in node.keywords} <= _TOLERANCES:
        raise Refused("more than tolerances is given by name")
    texts = [draft.source.of(each) for each in node.args]
    for index, value in enumerate(place.args[:2]):
        if not all(isinstance(one, _NUMBERS) for one in options(value)):
            raise Refused(f"`{texts[index]}` is not known to be a number")
        if _may_be_array(draft, node.args[index], set()):
            raise Refused(f"`{texts[index]}` is an array: rewrite from where it is made")
        texts[index] = f"{draft.torch}.full((), {texts[index]}, dtype={draft.torch}.float64)"
    texts += map(draft.source.of, node.keywords)
    text = f"{draft.torch}.isclose({', '.join(texts)}).item()"
    return draft.replace(f"Use `{draft.torch}.isclose`", [draft.source.swap(node, text)])


def _scaled(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """`math.radians(n)` -> `n * (math.pi / 180)`, which is what it computes."""
    given = place.argument(0, "x")
    module = spelled(draft.modules, "math")
    if given is None or len(node.args) != 1 or module is None or not all(map(_is_number, options(given))):
        raise Refused(f"`{draft.source.of(node.args[0])}` is not known to be a number")
    text = f"({primary(draft.source.of(node.args[0]))} * ({_FACTORS[place.name].format(module)}))"
    return draft.replace("Multiply", [draft.source.swap(node, text)], Applicability.SAFE, uses_torch=False)


def _power(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """`math.pow(0.9, n)` -> `0.9 ** n`, which is the same float where the base is a constant above zero."""
    base = place.args[0] if len(place.args) == 2 and not node.keywords else None
    if not isinstance(base, Const) or type(base.value) not in (int, float) or base.value <= 0:
        raise Refused("the base is not known to be above zero: of others a power may be no float")
    first, second = node.args
    text = draft.source.of(first)
    if type(base.value) is not float:
        text = f"float({text})"
    elif not isinstance(first, ast.Constant):
        text = primary(text)
    text = f"{text} ** {primary(draft.source.of(second))}"
    if isinstance(draft.source.parents[node], (ast.BinOp, ast.UnaryOp, ast.Attribute)):
        text = f"({text})"
    return draft.replace("Use `**`", [draft.source.swap(node, text)], Applicability.SAFE, uses_torch=False)


def _is_number(value: Value) -> bool:
    return isinstance(value, TensorScalar) and value.type != "bool"


def _may_be_array(draft: Draft, node: ast.expr, seen: set[str]) -> bool:
    """Whether what NumPy makes an array of numbers from data for goes into `node`, which the interpreter takes for a number."""
    names = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and getattr(each.func, "attr", "") in _MAKING_ARRAYS:
            return True
        if isinstance(each, ast.Name) and each.id not in seen:
            names.add(each.id)
    function = draft.source.enclosing_function(node)
    seen |= names
    return function is not None and any(
        each.value is not None and _may_be_array(draft, each.value, seen)
        for each in ast.walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and names & set(bound(each))
    )


def _bounded(place: Call, node: ast.Call, draft: Draft) -> Fix:
    """A number between bounds that are numbers as well."""
    function = place.name.rpartition(".")[2]
    if len(node.args) != _OTHERS_OF_NUMPY[function] or node.keywords:
        raise Refused("the bounds are not given one after the other")
    if _may_be_array(draft, node.args[0], set()):
        raise Refused(f"`{draft.source.of(node.args[0])}` is an array: rewrite from where it is made")
    if not all(isinstance(one, _NUMBERS) for each in place.args[1:] for one in options(each)):
        raise Refused("a bound is not known to be a number")
    text = draft.source.of(node.args[0])
    for name, limit in zip(_BOUNDS[function], node.args[1:], strict=True):
        text = f"{draft.torch}.{name}({text}, {draft.source.of(limit)})"
    return draft.replace(f"Use `{draft.torch}.{_BOUNDS[function][0]}`", [draft.source.swap(node, text)])


def _in_torch(place: Call, node: ast.Call, draft: Draft) -> tuple[str, list[Replacement]]:
    """The function of torch that is the same for a tensor in the first place, and what changes in the call for it."""
    module, _, function = place.name.rpartition(".")
    plain = all(isinstance(each, Const) for each in place.args[1:]) and not node.keywords
    if module == "numpy" and plain and len(node.args) == _OTHERS_OF_NUMPY.get(function, 0):
        if function in ("maximum", "minimum"):
            bound = "min" if function == "maximum" else "max"
            return "clamp", [
                draft.source.swap(node.func, f"{draft.torch}.clamp"),
                draft.source.swap(node.args[1], f"{bound}={draft.source.of(node.args[1])}"),
            ]
        name = {"power": "pow"}.get(function, function)
        return name, [draft.source.swap(node.func, f"{draft.torch}.{name}")]
    if len(node.args) != 1 or node.keywords:
        raise Refused("the call is not of one argument")
    if function not in SAME_IN_TORCH:
        raise Refused(f"torch has no function that is the same as `{module}.{function}`")
    return function, [draft.source.swap(node.func, f"{draft.torch}.{function}")]


def _without_items(draft: Draft, node: ast.expr, swaps: list[Replacement]) -> bool:
    """Whether `node` is arithmetic with `.item()`s, each of which `swaps` now takes away."""
    found = [each for each in ast.walk(node) if isinstance(each, ast.Call) and is_item(each)]
    if not all(_is_computed_with(draft, each, node) for each in found):
        return False
    for each in found:
        assert isinstance(each.func, ast.Attribute)
        # No gradient goes through a number.
        swaps.append(
            Replacement(draft.source.end(each.func) - len("item"), draft.source.end(each), "detach()")
        )
    return bool(found)


def _is_computed_with(draft: Draft, part: ast.expr, whole: ast.expr) -> bool:
    """Whether nothing but arithmetic lies between `part` and `whole`: a conversion makes a number again."""
    for each in draft.source.ancestors(part):
        if part is whole or each is draft.source.parents[whole]:
            return True
        if not isinstance(each, (ast.BinOp, ast.UnaryOp)):
            return False
    return False
