"""Numbers that NumPy computes from plain numbers, computed by Python's operators and `math` instead: `np.ceil(np.log(n))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import NumpyRead
from exportlens.rewriting.arrays.held_arrays import held_before
from exportlens.rewriting.checks.left_undone import refuse_lasting
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import operand
from exportlens.rewriting.code.text import Replacement

# Functions of `math` of the same names (or the given one) that give floats for any number, as NumPy's do.
_FLOATS = {
    "sqrt": "sqrt", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "exp": "exp", "expm1": "expm1",
    "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "hypot": "hypot", "deg2rad": "radians",
    "radians": "radians", "rad2deg": "degrees", "degrees": "degrees",
}  # fmt: skip
_ASKED = frozenset({"isnan", "isinf", "isfinite"})
_WHOLE = {"ceil": "ceil", "floor": "floor", "trunc": "trunc", "fix": "trunc"}
# Of several numbers in one sequence.
_OF_SEQUENCE = {
    "prod": "prod",
    "product": "prod",
    "sum": "sum",
    "max": "max",
    "amax": "max",
    "min": "min",
    "amin": "min",
}
_OF_TWO = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//", "mod": "%",
    "remainder": "%", "power": "**",
}  # fmt: skip
_LARGER = {"maximum": "max", "minimum": "min"}
_INTS = frozenset({"int", "int8", "int16", "int32", "int64", "int_", "intp", "long", "uint8"})
_FLOAT_TYPES = frozenset({"float", "float64", "double", "float_"})
# What Python asks of NumPy for which only one number will do: an array of several raises there.
_OF_ONE_NUMBER = frozenset(
    {"truth", "in", "range", "index", "key", "round", "item", "argument", "layer", "promoted"}
)
_WHY = (
    "what NumPy computes here has no counterpart in `math` that is known to give the same: compute it before, or hold it as an "
    "int or a float"
)


@dataclass(frozen=True, slots=True)
class _Number:
    """The text of a number of Python's, and whether it certainly is an int."""

    text: str
    is_int: bool = False


def python_for_numpy(place: NumpyRead, context: RewriteContext) -> Fix | Refusal:
    """The numbers that NumPy computes in the expression at `place`, or in what its names are bound to, computed by Python; a check
    that only raises or tells is left to eager mode where that is not known to be the same."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        try:
            return _computed_by_python(draft, node, place, context)
        except Refused as refused:
            checked = _checked_in_eager(draft, node) if place.use == "truth" else None
            if checked is None:
                return _held_number(place, context, refused)
            return draft.replace("Check where nothing is traced", checked)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _held_number(place: NumpyRead, context: RewriteContext, refused: Refused) -> Fix:
    """A number of Python's where the model, or its file, holds what is read; raises `refused` where that is not known."""
    try:
        return held_before(place, context)
    except Refused:
        raise refused from None


def _computed_by_python(draft: Draft, node: ast.AST, place: NumpyRead, context: RewriteContext) -> Fix:
    if place.use not in _OF_ONE_NUMBER:
        raise Refused("whether it is one number or an array of several is not known: `math` takes one")
    translation = _Translation(draft)
    whole = _with_methods(draft, node)
    swaps = translation.swaps(whole)
    if swaps:
        swaps += translation.of_names(whole)
    else:
        swaps = translation.swaps(translation.binding(node))
    if not swaps:
        raise Refused(_WHY)
    fix = draft.replace("Compute it with Python's numbers", swaps, uses_torch=False)
    if translation.uses_math and spelled(draft.modules, "math") is None:
        return Fix(fix.message, (import_edit(context.document, "import math"), *fix.edits), fix.applicability)
    return fix


def _checked_in_eager(draft: Draft, node: ast.AST) -> list[Replacement] | None:
    """`not torch.compiler.is_compiling()` in front of the test of an `if` that only raises; None where it does anything else."""
    source = draft.source
    statement = source.enclosing_statement(node)
    if not isinstance(statement, ast.If) or statement.orelse or not _only_raises(statement.body):
        return None
    refuse_lasting(source, statement.test, draft.kinds({}))
    asked = operand(source.of(statement.test), "and")
    return [source.swap(statement.test, f"not {draft.torch}.compiler.is_compiling() and {asked}")]


def _only_raises(body: list[ast.stmt]) -> bool:
    """Whether `body` ends in `raise`, and only binds names for it before."""
    return isinstance(body[-1], ast.Raise) and all(
        isinstance(each, ast.Assign) and all(isinstance(one, ast.Name) for one in each.targets)
        for each in body[:-1]
    )


class _Translation:
    """Expressions of NumPy's in Python's words."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.source = draft, draft.source
        self.math = spelled(draft.modules, "math") or "math"
        self.uses_math = False

    def swaps(self, node: ast.AST) -> list[Replacement]:
        """What NumPy computes within `node`, each of the largest such expressions replaced."""
        found = []
        for each in self._largest(node):
            number = self._number(each)
            around = self.source.parents[each]
            closer = isinstance(around, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Compare))
            text = f"({number.text})" if closer and _is_loose(number.text) else number.text
            found.append(self.source.swap(each, text))
        return found

    def of_names(self, node: ast.AST) -> list[Replacement]:
        """The same for the variables of which NumPy computes within `node`, where NumPy made their numbers: `math` takes none of those.
        Raises Refused."""
        found: dict[ast.expr, None] = {}
        waiting = [*self._largest(node)]
        for each in waiting:
            names = {one.id for one in ast.walk(each) if isinstance(one, ast.Name)}
            for name, value in self._bound(node, names):
                if value in found or not self._is_numpy(value):
                    continue
                if _is_used_as_array(self.draft, name):
                    raise Refused(f"`{name}` is bound anew, or asked for what only numbers of NumPy's have")
                found[value] = None
                waiting.append(value)
        return [swap for value in found for swap in self.swaps(value)]

    def binding(self, node: ast.AST) -> ast.expr:
        """What NumPy computes for a name in `node`. Raises Refused where no one binding says it, or where the name is used as only
        NumPy's numbers can be."""
        names = {name for each in ast.walk(node) if isinstance(each, ast.expr) and (name := dotted(each))}
        found: list[ast.expr] = []
        for name, value in self._bound(node, names):
            if any(isinstance(each, ast.expr) and self._is_numpy(each) for each in ast.walk(value)):
                found.append(value)
                if _is_used_as_array(self.draft, name):
                    raise Refused(f"`{name}` is bound anew, or asked for what only numbers of NumPy's have")
        if len(found) != 1:
            raise Refused(_WHY)
        return found[0]

    def _bound(self, node: ast.AST, names: set[str]) -> Iterator[tuple[str, ast.expr]]:
        """What `names` at `node` are bound to: those of the function by itself, the model's by its constructor."""
        for each in ast.walk(self.source.tree):
            if isinstance(each, ast.Assign) and len(each.targets) == 1:
                name = dotted(each.targets[0])
                if name in names and self.source.enclosing_function(each) is _scope_of(
                    self.draft, node, each.targets[0]
                ):
                    yield name, each.value

    def _largest(self, node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.expr) and self._is_numpy(node):
            yield node
            return
        for child in ast.iter_child_nodes(node):
            yield from self._largest(child)

    def _is_numpy(self, node: ast.expr) -> bool:
        """Whether `node` is a call of NumPy's, one of a method of what such a call gives, or `int()` or `float()` of that."""
        if not isinstance(node, ast.Call):
            return False
        if self._function(node):
            return True
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float") and len(node.args) == 1:
            return self._is_numpy(node.args[0])
        return isinstance(node.func, ast.Attribute) and self._is_numpy(node.func.value)

    def _function(self, node: ast.Call) -> str:
        name = self.draft.qualified(node.func)
        return name.removeprefix("numpy.") if name.startswith("numpy.") else ""

    def _number(self, node: ast.expr) -> _Number:
        """`node`, one number, without NumPy. Raises Refused where that is not known to be the same."""
        if isinstance(node, ast.BinOp):
            left, right = self._number(node.left), self._number(node.right)
            between = self.source.text[self.source.end(node.left) : self.source.start(node.right)]
            exact = left.is_int and right.is_int and not isinstance(node.op, (ast.Div, ast.Pow))
            return _Number(f"{_inner(left.text)}{between}{_inner(right.text)}", exact)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._number(node.operand)
            return _Number(f"-{_inner(inner.text)}", inner.is_int)
        if not isinstance(node, ast.Call) or not self._is_numpy(node):
            if any(isinstance(each, ast.expr) and self._is_numpy(each) for each in ast.walk(node)):
                raise Refused(_WHY)
            whole = isinstance(node, ast.Constant) and type(node.value) is int
            return _Number(self.source.of(node), whole)
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused(_WHY)
        name = self._function(node)
        if name:
            return self._computed(node, name)
        if isinstance(node.func, ast.Name):
            return self._converted(self._number(node.args[0]), node.func.id)
        assert isinstance(node.func, ast.Attribute)
        inner = self._number(node.func.value)
        if node.func.attr == "item" and not node.args and not node.keywords:
            return inner
        if node.func.attr == "astype" and len(node.args) == 1 and not node.keywords:
            return self._converted(inner, self._type(node.args[0]))
        raise Refused(_WHY)

    def _computed(self, node: ast.Call, name: str) -> _Number:
        if node.keywords or not node.args:
            raise Refused(_WHY)
        if name in _INTS or name in _FLOAT_TYPES:
            return self._converted(self._number(node.args[0]), "int" if name in _INTS else "float")
        if name in _OF_SEQUENCE:
            return self._of_sequence(node, _OF_SEQUENCE[name])
        numbers = [self._number(each) for each in node.args]
        texts = ", ".join(each.text for each in numbers)
        if name in _FLOATS:
            return _Number(self._math(_FLOATS[name], texts))
        if name in _WHOLE and len(numbers) == 1:
            return _Number(f"float({self._math(_WHOLE[name], texts)})")
        if name in ("abs", "absolute", "fabs") and len(numbers) == 1:
            text = f"abs({texts})"
            return _Number(f"float({text})", False) if name == "fabs" else _Number(text, numbers[0].is_int)
        if name in _OF_TWO and len(numbers) == 2:
            left, right = numbers
            return _Number(f"{_inner(left.text)} {_OF_TWO[name]} {_inner(right.text)}")
        if name == "square" and len(numbers) == 1:
            return _Number(f"{_inner(texts)} ** 2", numbers[0].is_int)
        if name in ("round", "around", "rint") and len(numbers) == 1:
            return _Number(f"float(round({texts}))")
        if name in _ASKED and len(numbers) == 1:
            return _Number(self._math(name, texts))
        if name == "clip" and len(numbers) == 3:
            given, low, high = (each.text for each in numbers)
            return _Number(f"min(max({given}, {low}), {high})", all(each.is_int for each in numbers))
        if name in _LARGER and len(numbers) == 2:
            return _Number(f"{_LARGER[name]}({texts})", all(each.is_int for each in numbers))
        raise Refused(_WHY)

    def _of_sequence(self, node: ast.Call, name: str) -> _Number:
        """`np.prod(x.shape[1:])`, `np.sum([a, b])`: of what certainly is one sequence of numbers, not of several."""
        given = node.args[0]
        inner = given
        if isinstance(inner, ast.Call) and dotted(inner.func) in ("list", "tuple") and len(inner.args) == 1:
            inner = inner.args[0]
        if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice):
            inner = inner.value
        is_size = _is_size(inner)
        is_list = isinstance(given, (ast.List, ast.Tuple)) and self._is_flat(given)
        if len(node.args) != 1 or not (is_size or is_list or self._is_list_of_numbers(given)):
            raise Refused(f"whether `{self.source.of(given)}` is one sequence of numbers is not known")
        if isinstance(given, (ast.List, ast.Tuple)):
            items = ", ".join(self._number(each).text for each in given.elts)
            text = f"({items},)" if len(given.elts) == 1 else f"({items})"
            if name in ("max", "min") and len(given.elts) > 1:
                return _Number(f"{name}({items})")
        else:
            text = self.source.of(given)
        return _Number(self._math("prod", text) if name == "prod" else f"{name}({text})", is_size)

    def _is_flat(self, node: ast.List | ast.Tuple) -> bool:
        """Whether no item is a sequence itself: beside a plain number none can be."""
        plain = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
        return all(isinstance(each, plain) for each in node.elts) and any(map(self._is_number, node.elts))

    def _is_number(self, node: ast.expr) -> bool:
        """Whether `node` is written as a number, or as one size of a tensor, or is bound to such sizes."""
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, float)
        if isinstance(node, ast.Name):
            tuples = [
                each
                for each in ast.walk(self.source.tree)
                if isinstance(each, ast.Assign)
                and self.source.enclosing_function(each) is self.source.enclosing_function(node)
                and any(
                    name.id == node.id for name in ast.walk(each.targets[0]) if isinstance(name, ast.Name)
                )
            ]
            return len(tuples) == 1 and (
                self._is_number(tuples[0].value)
                or (isinstance(tuples[0].targets[0], ast.Tuple) and _is_size(tuples[0].value))
            )
        if isinstance(node, ast.Subscript):
            return _is_size(node.value) and not isinstance(node.slice, ast.Slice)
        called = node.func if isinstance(node, ast.Call) else None
        return (
            isinstance(called, ast.Attribute)
            and called.attr in ("size", "dim", "numel")
            and not _is_size(node)
        ) or (isinstance(called, ast.Name) and called.id in ("int", "float", "len"))

    def _is_list_of_numbers(self, node: ast.expr) -> bool:
        """Whether `node` is the name of a list that holds what `int()`, `float()` or `bool()` give."""
        found = [value for _, value in self._bound(node, {dotted(node) or ""})]
        return len(found) == 1 and all(
            isinstance(each, ast.ListComp)
            and isinstance(each.elt, ast.Call)
            and dotted(each.elt.func) in ("int", "float", "bool", "len")
            for each in found
        )

    def _converted(self, number: _Number, kind: str) -> _Number:
        if kind == "int":
            whole = number.text.removeprefix("float(")
            if (
                whole != number.text
                and whole.startswith((f"{self.math}.", "round("))
                and _closes(number.text)
            ):
                return _Number(whole[:-1], True)
            return number if number.is_int else _Number(f"int({number.text})", True)
        if kind == "float":
            return number if number.text.startswith(f"{self.math}.") else _Number(f"float({number.text})")
        raise Refused(_WHY)

    def _type(self, node: ast.expr) -> str:
        """ "int" or "float" for what `.astype` is given, "" for other types."""
        given = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
        name = given or self.draft.qualified(node).removeprefix("numpy.")
        return "int" if name in _INTS else "float" if name in _FLOAT_TYPES else ""

    def _math(self, name: str, texts: str) -> str:
        self.uses_math = True
        return f"{self.math}.{name}({texts})"


def _with_methods(draft: Draft, node: ast.AST) -> ast.AST:
    """`node` with the methods that are called on it, and `int()` or `float()` around that."""
    around = draft.source.parents.get(node)
    while around is not None:
        called = isinstance(around, ast.Attribute) or (
            isinstance(around, ast.Call)
            and (around.func is node or (dotted(around.func) in ("int", "float") and node in around.args))
        )
        if not called:
            break
        node, around = around, draft.source.parents.get(around)
    return node


def _scope_of(draft: Draft, node: ast.AST, target: ast.expr) -> ast.AST | None:
    """The function that must bind `target` for the code at `node`: the same, or for what the model holds its constructor."""
    source = draft.source
    function = source.enclosing_function(source.enclosing_statement(node))
    if isinstance(target, ast.Name):
        return function
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    found = [each for each in owner.body if isinstance(each, ast.FunctionDef)] if owner is not None else []
    return next((each for each in found if each.name == "__init__"), None)


def _is_used_as_array(draft: Draft, name: str) -> bool:
    """Whether an attribute or a method of `name` is used, or `name` is bound more than once."""
    bindings = 0
    for each in ast.walk(draft.source.tree):
        if isinstance(each, (ast.Attribute, ast.Subscript)) and dotted(each.value) == name:
            return True
        if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Store):
            bindings += dotted(each) == name
    return bindings != 1


def _is_size(node: ast.expr) -> bool:
    """Whether `node` is `t.shape` or `t.size()`: all the sizes of a tensor."""
    called = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return (isinstance(node, ast.Attribute) and node.attr == "shape") or (
        isinstance(called, ast.Attribute) and called.attr == "size"
    )


def _inner(text: str) -> str:
    """`text` as an operand."""
    return f"({text})" if _is_loose(text) else text


def _is_loose(text: str) -> bool:
    node = ast.parse(f"({text})", mode="eval").body
    return not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))


def _closes(text: str) -> bool:
    """Whether the last parenthesis of `text` closes its first."""
    node = ast.parse(text, mode="eval").body
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
