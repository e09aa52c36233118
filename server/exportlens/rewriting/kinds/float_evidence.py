"""What tells that a tensor holds floats: layers of torch.nn that give nothing else, and raise for anything else."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source

# Layers that take and give floats alone (torch/nn/modules).
_LAYERS = frozenset(
    {
        *("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        *(
            "BatchNorm1d",
            "BatchNorm2d",
            "BatchNorm3d",
            "LayerNorm",
            "GroupNorm",
            "InstanceNorm1d",
            "InstanceNorm2d",
        ),
        *("Sigmoid", "Softmax", "LogSoftmax", "GELU", "Tanh", "RMSNorm", "PReLU"),
    }
)
# Methods that leave a tensor of its dtype.
_KEEPING = frozenset(
    {
        *(
            "detach",
            "cpu",
            "contiguous",
            "clone",
            "view",
            "reshape",
            "permute",
            "transpose",
            "flatten",
            "squeeze",
        ),
        *("unsqueeze", "expand", "repeat"),
    }
)


def holds_floats(source: Source, function: Function, name: str) -> bool:
    """Whether what `name` is in `function` is given by such a layer, or given to one on every way."""
    layers = _layers(source, function)
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    if name in {each.arg for each in arguments(function.args)}:
        return not stores and any(
            _root(each.args[0]) == name for each in _always(function.body, layers) if each.args
        )
    binding = source.parents[stores[0]] if len(stores) == 1 else None
    value = binding.value if isinstance(binding, ast.Assign) else None
    return isinstance(value, ast.Call) and (dotted(value.func) or "") in layers


def takes_floats(source: Source, call: ast.Call) -> bool:
    """Whether `call` gives its argument to such a layer whenever the function around it comes to its end."""
    function = source.enclosing_function(call)
    if function is None or not call.args:
        return False
    layers = _layers(source, function)
    return dotted(call.func) in layers and call in _always(function.body, layers)


def is_given(function: Function, name: str) -> bool:
    """Whether `name` is an argument of `function` that nothing is bound to, and of which nothing says what it is."""
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    return not stores and name in {each.arg for each in arguments(function.args) if each.annotation is None}


def is_bound_once(function: Function, name: str) -> bool:
    """Whether `name` is an argument of `function` that nothing is bound to."""
    return name in {each.arg for each in arguments(function.args)} and not any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )


def _layers(source: Source, function: Function) -> set[str]:
    """The attributes of the class around `function` that are such layers, or begin and end with one."""
    cls = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    found: dict[str, list[bool]] = {}
    for each in ast.walk(cls) if cls is not None else ():
        targets = each.targets if isinstance(each, ast.Assign) else []
        for target in targets:
            path = dotted(target)
            if path is not None and path.startswith("self.") and isinstance(each, ast.Assign):
                found.setdefault(path, []).append(_is_layer(each.value))
    return {path for path, certain in found.items() if all(certain)}


def _is_layer(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = (dotted(value.func) or "").rpartition(".")[2]
    if name == "Sequential" and value.args:
        return _is_layer(value.args[0]) and _is_layer(value.args[-1])
    return name in _LAYERS


def _always(body: list[ast.stmt], layers: set[str]) -> list[ast.Call]:
    """The calls of layers that run whenever the body comes to its end, or raises."""
    found: list[ast.Call] = []
    for statement in body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            if any(isinstance(each, ast.Return) for each in ast.walk(statement)):
                return found
            continue
        for each in ast.walk(statement):
            if isinstance(each, (ast.Lambda, ast.IfExp, ast.BoolOp)):
                break
            if isinstance(each, ast.Call) and dotted(each.func) in layers:
                found.append(each)
    return found


def _root(node: ast.expr) -> str | None:
    """The name whose dtype `node` has."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        ):
            node = node.func.value
        else:
            return node.id if isinstance(node, ast.Name) else None


# What raises for ints, or gives floats of them.
_GIVING_FLOATS = frozenset(
    {"mean", "std", "var", "norm", "sqrt", "rsqrt", "exp", "log", "log1p", "softmax", "log_softmax", "sigmoid", "tanh", "float",
     "double", "half", "normalize", "mse_loss", "gelu", "silu", "logsumexp", "quantile", "lerp"}
)  # fmt: skip
# What takes ints alone, or for what they count.
_TAKING_INTS = frozenset(
    {"one_hot", "embedding", "gather", "scatter", "scatter_", "scatter_add_", "index_select", "bincount", "long", "int"}
)  # fmt: skip


def computes_with_floats(nodes: list[ast.stmt]) -> bool:
    """Whether the code divides, has numbers with a fraction, or calls what gives floats."""
    for each in (one for node in nodes for one in ast.walk(node)):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div):
            return True
        if isinstance(each, ast.Constant) and isinstance(each.value, float):
            return True
        if isinstance(each, ast.Call) and _name(each) in _GIVING_FLOATS | _LAYERS:
            return True
    return False


def counts_or_picks(function: Function, names: set[str]) -> bool:
    """Whether one of `names` indexes in `function`, or is given to what takes ints."""
    for each in ast.walk(function):
        if isinstance(each, ast.Subscript):
            parts: list[ast.AST] = [each.slice]
        elif isinstance(each, ast.Call) and (_name(each) in _TAKING_INTS):
            parts = [each.func, *each.args, *(one.value for one in each.keywords)]
        else:
            continue
        if any(isinstance(one, ast.Name) and one.id in names for part in parts for one in ast.walk(part)):
            return True
    return False


# What one computes of a number that may have a fraction.
_OF_FRACTIONS = frozenset({"round", "math.floor", "math.ceil", "math.trunc", "math.modf"})


def lists_floats(function: ast.AST, listed: ast.expr) -> bool:
    """Whether `function` computes with items of the list `listed` as with floats: it rounds one, or adds to one, or compares
    one with, what has a fraction; of ints there is no sign, as an index or the end of a range."""
    names: set[str] = set()
    whole: set[str] = set()
    for each in ast.walk(function):
        if isinstance(each, ast.Assign) and each.value is listed and len(each.targets) == 1:
            target = each.targets[0]
            if isinstance(target, ast.Name):
                whole.add(target.id)
            elif isinstance(target, (ast.Tuple, ast.List)):
                names |= {one.id for one in target.elts if isinstance(one, ast.Name)}
    for each in ast.walk(function):
        if isinstance(each, (ast.For, ast.comprehension)):
            names |= _gone_through(each.target, each.iter, listed, whole)

    def is_item(node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript):
            return node.value is listed or (isinstance(node.value, ast.Name) and node.value.id in whole)
        return isinstance(node, ast.Name) and node.id in names

    def computed(node: ast.AST) -> bool:
        inner = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        called = node.args[:1] if isinstance(node, ast.Call) and dotted(node.func) == "abs" else ()
        return is_item(node) or any(map(computed, (*inner, *called)))

    found = False
    for each in ast.walk(function):
        if isinstance(each, ast.BinOp):
            sides: list[ast.AST] = [each.left, each.right]
        elif isinstance(each, ast.Compare):
            sides = [each.left, *each.comparators]
        elif isinstance(each, ast.Call):
            if any(map(is_item, each.args)) and dotted(each.func) == "range":
                return False
            found = found or (dotted(each.func) in _OF_FRACTIONS and any(map(computed, each.args)))
            continue
        elif isinstance(each, ast.Subscript):
            parts = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
            ends = [
                one
                for part in parts
                if isinstance(part, ast.Slice)
                for one in (part.lower, part.upper)
                if one
            ]
            if any(map(is_item, [*parts, *ends])):
                return False
            continue
        else:
            continue
        fraction = any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in sides)
        found = found or (fraction and any(map(computed, sides)))
    return found


def _gone_through(target: ast.expr, over: ast.expr, listed: ast.expr, whole: set[str]) -> set[str]:
    """The names that have an item of the list `listed`, or of one called as in `whole`, in each round of a loop over `over`."""
    if over is listed or (isinstance(over, ast.Name) and over.id in whole):
        return {target.id} if isinstance(target, ast.Name) else set()
    if not isinstance(over, ast.Call) or dotted(over.func) not in ("enumerate", "zip", "reversed", "sorted"):
        return set()
    if dotted(over.func) in ("reversed", "sorted"):
        return _gone_through(target, over.args[0], listed, whole) if over.args else set()
    targets = target.elts if isinstance(target, ast.Tuple) else []
    parts = over.args if dotted(over.func) == "zip" else [ast.Constant(None), *over.args[:1]]
    pairs = zip(targets, parts, strict=False)
    return {name for one, part in pairs for name in _gone_through(one, part, listed, whole)}


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func) or ""
