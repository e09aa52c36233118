"""What a module's `__init__` makes with NumPy becomes a number of Python where it certainly is one number, and a tensor
where the model only makes tensors of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import NumpyRead, Place
from exportlens.inference.values import Array, Value
from exportlens.rewriting.arrays.held_arrays import WIDER, held_before, meets_array, meets_number
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement

# Functions of NumPy that give one number for one number.
_ELEMENTWISE = frozenset(
    {"sqrt", "cbrt", "square", "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "abs"}
) | {
    *("absolute", "floor", "ceil", "rint", "sin", "cos", "tan", "tanh", "sign", "power", "float64", "int64"),
    *("minimum", "maximum", "radians", "deg2rad", "degrees", "rad2deg"),
    *("double", "intp"),
}
# Numbers of fewer bits, which decide the precision of what NumPy computes with them and Python's numbers.
_NARROW = frozenset({"float32", "single", "float16", "half", "int32", "int16", "int8", "uint8"})
# And those that give one number for a list of numbers.
_REDUCING = frozenset({"prod", "sum", "mean", "max", "min"})
_NUMBERS = ("int", "float")
# What is given numbers, and tells nothing of arrays.
_OF_NUMBERS = frozenset({"abs", "float", "int", "max", "min", "pow", "print", "range", "round", "super"})
# Several arguments of theirs are one size each.
_OF_SIZES = frozenset(
    {f"torch.{name}" for name in ("empty", "ones", "rand", "randn", "zeros", "Tensor", "FloatTensor")}
)


def held_number(place: Place, node: ast.AST, context: RewriteContext) -> Fix | Refusal:
    """`.item()` behind the expression `node` that an attribute is set to."""
    try:
        draft = Draft.of(place, context)
        value = draft.source.find(node)
        assert isinstance(value, ast.expr)
        function = draft.source.enclosing_function(value)
        if function is None:
            raise Refused("the attribute is not set in a method")
        if not (
            _is_number(value, _numbers(function), draft) or _is_taken_for_a_number(value, function, draft)
        ):
            swaps = _held_tensors(draft, function, value)
            if swaps:
                return draft.replace("Hold the tensor as well", swaps)
            raise Refused(
                f"it is not certain that `{draft.source.of(value)}` is one number: write `.item()` behind it where it "
                "is, or register it as a buffer"
            )
        target = draft.source.parents[value]
        names = [getattr(each, "attr", "") for each in getattr(target, "targets", ())]
        if any(meets_array(draft, each) for each in names):
            raise Refused(WIDER)
        text = f"{primary(draft.source.of(value))}.item()"
        return draft.replace("Hold a number of Python", [draft.source.swap(value, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def number_made_before(place: NumpyRead, context: RewriteContext) -> Fix | Refusal:
    """`float(...)` around what a method of the same class sets an attribute to, which the expression at `place` computes with."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        cls = next((each for each in draft.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        lists = [] if cls is None else list(_made_for_items(cls, node, draft))
        if lists:
            swaps = [
                draft.source.swap(value, f"{primary(draft.source.of(value))}.tolist()") for value in lists
            ]
            return draft.replace("Hold a list of Python's numbers", swaps, uses_torch=False)
        made = [] if cls is None or not _is_float(place.value) else list(_made_with_numpy(cls, node, draft))
        if not made:
            return held_before(place, context)
        targets = [getattr(draft.source.parents[value], "targets", ()) for value in made]
        if any(meets_array(draft, getattr(each, "attr", "")) for one in targets for each in one):
            raise Refused(WIDER)
        swaps = [draft.source.swap(value, f"float({draft.source.of(value)})") for value in made]
        return draft.replace("Hold a number of Python", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_float(value: Value) -> bool:
    return isinstance(value, Array) and value.rank == 0 and value.dtype == "float64"


def _made_with_numpy(cls: ast.ClassDef, node: ast.AST, draft: Draft) -> Iterator[ast.Call]:
    """The calls of NumPy that `cls` sets attributes to which `node` reads."""
    read = {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_own(each, each.attr)
    }
    for statement in ast.walk(cls):
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            continue
        target, value = statement.targets[0], statement.value
        if not (isinstance(target, ast.Attribute) and _is_own(target, target.attr) and target.attr in read):
            continue
        if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
            head, _, name = draft.qualified(value.func).partition(".")
            if head == "numpy" and name in _ELEMENTWISE:
                yield value


def _made_for_items(cls: ast.ClassDef, node: ast.AST, draft: Draft) -> Iterator[ast.expr]:
    """The rows of floats that the constructor of `cls` makes, and of which the class only takes single items: one that `node`
    computes with, itself or by a name."""
    function = draft.source.enclosing_function(node)
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    read = [
        each
        for each in ast.walk(node if function is None else function)
        if isinstance(each, ast.Subscript) and _is_own(each.value, getattr(each.value, "attr", ""))
    ]
    computed = {id(each) for each in ast.walk(node)}
    near = {
        each.value.attr
        for each in read
        if isinstance(each.value, ast.Attribute)
        and (id(each) in computed or _named(draft.source.parents[each]) in names)
    }
    stores = [
        each
        for each in ast.walk(cls)
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Attribute)
        and each.targets[0].attr in near
    ]
    for statement in stores:
        target = statement.targets[0]
        assert isinstance(target, ast.Attribute)
        method = draft.source.enclosing_function(statement)
        uses = [
            each for each in ast.walk(cls) if isinstance(each, ast.Attribute) and each.attr == target.attr
        ]
        if (
            method is not None
            and method.name == "__init__"
            and _is_own(target, target.attr)
            and _is_row_of_floats(statement.value, draft)
            and all(each is target or _is_item(draft, each) for each in uses)
        ):
            yield statement.value


def _named(node: ast.AST) -> str | None:
    """The name to which the statement `node` binds a value."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else None


def _is_item(draft: Draft, node: ast.Attribute) -> bool:
    """Whether one item is taken of `node`, or its length."""
    parent = draft.source.parents[node]
    if isinstance(parent, ast.Call):
        return ast.unparse(parent.func) == "len"
    return (
        isinstance(parent, ast.Subscript)
        and parent.value is node
        and isinstance(parent.ctx, ast.Load)
        and not isinstance(parent.slice, (ast.Slice, ast.Tuple, ast.List))
    )


def _is_row_of_floats(node: ast.expr, draft: Draft) -> bool:
    """Whether NumPy makes one dimension of floats of double precision."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_is_row_of_floats(each, draft) for each in sides) and all(
            _is_row_of_floats(each, draft) or _is_operand(each) for each in sides
        )
    if not isinstance(node, ast.Call) or any(
        key.arg in ("dtype", "axis", "retstep") for key in node.keywords
    ):
        return False
    head, _, name = draft.qualified(node.func).partition(".")
    if head != "numpy" or not node.args:
        return False
    if name in ("ones", "zeros"):
        return len(node.args) == 1 and not isinstance(node.args[0], (ast.Tuple, ast.List))
    if name == "concatenate":
        parts = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else []
        return bool(parts) and all(_is_row_of_floats(each, draft) for each in parts)
    return name in ("linspace", "geomspace", "logspace") and all(map(_is_operand, node.args[:3]))


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
        if name in _ELEMENTWISE or (name in _NARROW and _meets_no_number(node, draft)):
            return all(_is_number(each, numbers, draft) for each in node.args)
        given = node.args[0]
        if name in _REDUCING and len(node.args) == 1 and isinstance(given, (ast.List, ast.Tuple)):
            return bool(given.elts) and all(_is_number(each, numbers, draft) for each in given.elts)
    return False


def _meets_no_number(node: ast.Call, draft: Draft) -> bool:
    """Whether what `node` is held in is computed with no number that is written in the class."""
    statement = draft.source.parents[node]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    cls = next((each for each in draft.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    return (
        cls is not None
        and isinstance(target, ast.Attribute)
        and not any(meets_number(each, target.attr) for each in ast.walk(cls))
    )


def _is_taken_for_a_number(value: ast.expr, function: Function, draft: Draft) -> bool:
    """Whether `value` is what NumPy gives for names and attributes that nothing in the class uses as arrays, as it does not what
    it is held in. An array would be refused loudly, by `.item()`."""
    source = draft.source
    cls = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    statement = source.parents[value]
    held = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    leaves: list[ast.expr] = []
    if cls is None or held is None or dotted(held) is None or not _computes(value, draft, leaves):
        return False
    if not leaves:
        return True
    paths = {dotted(each) for each in (held, *leaves)}
    return not any(_is_array_use(each, paths, draft) for each in ast.walk(cls))


def _computes(node: ast.expr, draft: Draft, leaves: list[ast.expr]) -> bool:
    """Whether NumPy computes `node` number by number; `leaves` takes what it computes it of."""
    if isinstance(node, ast.BinOp):
        sides = [each for each in (node.left, node.right) if not _is_constant(each)]
        made = [_computes(each, draft, leaves) for each in sides]
        plain = [each for each, done in zip(sides, made, strict=True) if not done]
        leaves += [leaf for each in plain for leaf in _leaves(each)]
        return any(made) and all(map(_is_operand, plain))
    if isinstance(node, ast.UnaryOp):
        return _computes(node.operand, draft, leaves)
    if not isinstance(node, ast.Call) or node.keywords or not node.args:
        return False
    head, _, name = (dotted(node.func) or "").partition(".")
    if draft.modules.get(head) != "numpy":
        return False
    if name in _REDUCING:
        return len(node.args) == 1
    if name not in _ELEMENTWISE:
        return False
    for each in node.args:
        if not _is_constant(each) and not _computes(each, draft, leaves):
            if not _is_operand(each):
                return False
            leaves += _leaves(each)
    return True


def _is_operand(node: ast.expr) -> bool:
    """Whether `node` is made of names, attributes and numbers by arithmetic alone."""
    if isinstance(node, ast.BinOp):
        return _is_operand(node.left) and _is_operand(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_operand(node.operand)
    return _is_constant(node) or dotted(node) is not None


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes that an operand is made of."""
    if isinstance(node, ast.BinOp):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _leaves(node.operand)
    elif not _is_constant(node):
        yield node


def _is_array_use(node: ast.AST, paths: set[str | None], draft: Draft) -> bool:
    """Whether `node` uses one of `paths` as an array, a list or a tensor."""
    if isinstance(node, ast.arg):
        kind = "" if node.annotation is None else ast.unparse(node.annotation)
        return node.arg in paths and kind not in ("", *_NUMBERS, "Optional[int]", "Optional[float]")
    used: list[ast.expr] = []
    if isinstance(node, (ast.Subscript, ast.Starred)):
        used = [node.value]
    elif isinstance(node, (ast.For, ast.comprehension)):
        used = [node.iter]
    elif isinstance(node, ast.Attribute):
        used = [node.value]
    elif isinstance(node, ast.Call):
        name = draft.qualified(node.func)
        numpy = name.startswith("numpy.") and name.rpartition(".")[2] in _ELEMENTWISE
        sizes = name in _OF_SIZES and len(node.args) > 1
        if not (numpy or sizes or name in _OF_NUMBERS or name.startswith(("math.", "torch.nn."))):
            used = [*node.args, *(key.value for key in node.keywords)]
    return any(dotted(each) in paths for each in used)


_INTO_TENSORS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


def _held_tensors(draft: Draft, init: Function, value: ast.expr) -> list[Replacement]:
    """`self.name_tensor = torch.as_tensor(self.name)` behind the statement that sets `self.name` to `value`, and that
    tensor, which shares the array's memory, where methods make one of it; none where they do anything else with it."""
    source = draft.source
    statement, cls = source.parents[value], source.parents[init]
    if not (
        isinstance(statement, ast.Assign)
        and statement in init.body
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Attribute)
        and isinstance(cls, ast.ClassDef)
        and init.name == "__init__"
        and source.begins_line(statement)
    ):
        return []
    attribute = statement.targets[0].attr
    reads = [
        each
        for method in cls.body
        if method is not init
        for each in ast.walk(method)
        if isinstance(each, ast.Attribute) and _is_own(each, attribute)
    ]
    names: dict[str, str] = {}
    held: set[str] = set()
    swaps = []
    calls = [_tensor_of(draft, each) for each in reads]
    for call in filter(None, calls):
        number = len(names) + 1
        text = source.of(call.args[0])
        name = names.setdefault(text, f"{attribute}_tensor{number if number > 1 else ''}")
        if f"self.{name} = {draft.torch}.as_tensor({text})" in source.text:
            held.add(text)
        elif f".{name}" in source.text:
            return []
        swaps.append(source.swap(call, f"self.{name}{_as_before(draft, call)}"))
    if None in calls and set(names) != {f"self.{attribute}"}:
        # Where the array is used for more than one tensor, that must be one of the same memory.
        return []
    elsewhere = [each for each in ast.walk(init) if _is_own(each, attribute)]
    if len(elsewhere) > 1 and set(names) != {f"self.{attribute}"}:
        # What is computed of the array would not follow what `__init__` still writes into it.
        return []
    end, indent = source.end(statement), source.indent_of(statement)
    lines = "".join(
        f"{source.newline}{indent}self.{name} = {draft.torch}.as_tensor({text})"
        for text, name in names.items()
        if text not in held
    )
    return [*swaps, *([Replacement(end, end, lines)] if lines else [])]


def _is_own(node: ast.AST, attribute: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _tensor_of(draft: Draft, read: ast.Attribute) -> ast.Call | None:
    """The call that makes a tensor of `read`, or of what NumPy computes of it and constants."""
    node: ast.expr = read
    while True:
        parent = draft.source.parents[node]
        if isinstance(parent, ast.Call):
            qualified = draft.qualified(parent.func)
            if qualified in _INTO_TENSORS and parent.args[:1] == [node]:
                keywords = {key.arg for key in parent.keywords}
                return parent if len(parent.args) == 1 and keywords <= {"dtype", "device"} else None
            if not (
                qualified.removeprefix("numpy.") in _ELEMENTWISE
                and node in parent.args
                and not parent.keywords
            ):
                return None
            others = [each for each in parent.args if each is not node]
        elif isinstance(parent, ast.BinOp):
            others = [parent.right if parent.left is node else parent.left]
        else:
            return None
        if not all(_is_constant(each) for each in others):
            return None
        node = parent


def _as_before(draft: Draft, call: ast.Call) -> str:
    """What is called on the tensor so that it is what `call` gave: `torch.tensor` gives a copy."""
    given = [draft.source.of(each) for each in call.keywords]
    if (dotted(call.func) or "").endswith("tensor") and not (dotted(call.func) or "").endswith("as_tensor"):
        return f".to({', '.join([*given, 'copy=True'])})" if given else ".clone()"
    return f".to({', '.join(given)})" if given else ""
