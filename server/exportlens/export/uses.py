"""What a model's code says of a parameter by how it uses it: how many dimensions it has, whether it is an index or a
mask, whether it is called."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

_INDEX_NAMES = re.compile(r"(?:^|_)(?:ids?|idx|index|indices|tokens?|labels?|targets?|edge_index)$")
# What inputs of these names are taken to be where the code does not say: rows of 2 in a batch, 8 steps, sides of 32.
_USUAL = tuple(
    (re.compile(rf"^(?:{names})\d*$"), text)
    for names, text in (
        (r"(?:\w+_)?(?:edge_index|edge_label_index|edges)", "torch.randint(0, 2, (2, 8))"),
        (r"(?:\w+_)?(?:adj|adjacency|adj_mat|adj_matrix)", "torch.rand(2, 2)"),
        (r"(?:\w+_)?(?:lengths?|lens?|lengths_\w+|seq_lens?|num_frames)", "torch.full((2,), 8)"),
        (r"t|ts|timesteps?|time_steps?|diffusion_steps?", "torch.randint(0, 10, (2,))"),
        (r"(?:\w+_)?(?:imgs?|images?|pixel_values|frames?|left|right|rgb)", "torch.randn(2, 3, 32, 32)"),
        (r"(?:\w+_)?(?:videos?|clips?)", "torch.randn(2, 3, 8, 32, 32)"),
        (r"(?:\w+_)?(?:wavs?|wave|waveforms?|audios?|speech|signals?)", "torch.randn(2, 4096)"),
        (r"(?:\w+_)?(?:seqs?|texts?|tokens|captions?|sentences?|words|questions?|src|trg|tgt|input_ids)",
         "torch.randint(0, 2, (2, 8))"),
    )
)  # fmt: skip
_PER_EDGE = re.compile(r"^edge_(?!\w*index)\w+$|^edges?_(?:attr|weight)s?$")
_MASK_NAMES = re.compile(r"(?:^|_)mask$")
_INTEGERS = frozenset({"LongTensor", "IntTensor"})
_TAKES_INDICES = {"one_hot": 0, "embedding": 0, "cross_entropy": 1, "nll_loss": 1}
"""Functions of torch.nn.functional, with the position of the argument that holds indices."""
_GATHERS = {
    "gather": 1,
    "index_select": 1,
    "scatter": 1,
    "scatter_add": 1,
    "index_add": 1,
    "take_along_dim": 0,
}
"""Methods of tensors, with the position of the argument that holds indices."""
_ALONG = frozenset({
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "cat", "chunk", "concat", "cummax",
    "cumprod", "cumsum", "diff", "flip", "gather", "glu", "GLU", "index_select", "log_softmax", "LogSoftmax",
    "logsumexp", "max", "mean", "median", "min", "narrow", "norm", "normalize", "prod", "roll", "select",
    "size", "softmax", "Softmax", "softmin", "sort", "split", "squeeze", "stack", "std", "sum",
    "take_along_dim", "topk", "unbind", "unflatten", "unsqueeze", "var",
})  # fmt: skip
"""Operators and layers of torch that work along a dimension."""
MOST_DIMENSIONS = 6
IDENTITY = "torch.nn.Identity()"


def rank_of(function: ast.FunctionDef, name: str) -> int | None:
    """How many dimensions the parameter has, as the first statement that tells says; None where none does."""
    nodes = _before_rebound(function, name)
    for node in nodes:
        found = (
            _unpacked(node, name) or _compared(node, name) or _permuted(node, name) or _rearranged(node, name)
        )
        if found is not None and 0 < found <= MOST_DIMENSIONS:
            return found
    for functions, rank in ((("torch.mm",), 2), (("torch.bmm", "torch.baddbmm"), 3)):
        if any(_multiplied(node, name, functions) for node in nodes):
            return rank
    least = max((_reached(node, name) for node in nodes), default=0)
    return least if 2 < least <= MOST_DIMENSIONS else None


def _before_rebound(function: ast.FunctionDef, name: str) -> list[ast.AST]:
    """The nodes of the function up to where the name stands for something else."""
    lines = [
        node.end_lineno or node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for target in node.targets for t in ast.walk(target))
    ]
    last = min(lines, default=None)
    return [node for node in ast.walk(function) if last is None or getattr(node, "lineno", 0) <= last]


def usual(name: str) -> str | None:
    """What an input of this name is as a rule, as text; None where the name says nothing."""
    return next((text for pattern, text in _USUAL if pattern.match(name.lower())), None)


def is_per_edge(name: str) -> bool:
    """Whether an input of this name has a row for each edge of a graph."""
    return _PER_EDGE.match(name.lower()) is not None


def kind_of(function: ast.FunctionDef, parameter: ast.arg) -> str:
    """ "index" for whole numbers that pick something, "mask" for truth values, "float" for the rest."""
    said = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
    kind = said.rpartition(".")[2]
    if kind == "BoolTensor" or (
        kind not in _INTEGERS | {"FloatTensor"} and _MASK_NAMES.search(parameter.arg)
    ):
        return "mask"
    if kind in _INTEGERS or (kind != "FloatTensor" and _picks(function, parameter.arg)):
        return "index"
    return "float"


def counts(function: ast.FunctionDef, name: str) -> bool:
    """Whether the parameter is a Python number: how far `range` or `torch.arange` goes."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("range", "torch.arange")
        and any(isinstance(each, ast.Name) and each.id == name for each in node.args)
        for node in _before_rebound(function, name)
    )


def used_arguments(init: ast.FunctionDef, forward: ast.FunctionDef | None) -> dict[str, str]:
    """The constructor's arguments whose use says what they are, as text that stands for them: a model that changes nothing
    for one that is called; a list of two where the argument is gone through, with as many in each as are taken out; the
    first of the words that it is compared with; the last dimension where operators only work along it; two sides for F.pad.
    """
    attributes: dict[str, str] = {}
    arguments = {a.arg for a in (*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs)} - {"self"}
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _self_attribute(node.targets[0]):
            source = _held(node.value)
            if source in arguments:
                attributes[ast.unparse(node.targets[0])] = source
    found: dict[str, str] = {}
    nodes = list(ast.walk(forward)) if forward is not None else []
    called = {
        node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and (name := attributes.get(ast.unparse(node.func))):
            found.setdefault(name, IDENTITY)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            name = attributes.get(ast.unparse(node.func.value))
            if name:
                found[name] = f"[{IDENTITY}, {IDENTITY}]"
        if isinstance(node, (ast.For, ast.comprehension)):
            name = attributes.get(ast.unparse(node.iter))
            taken = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
            if name and taken and set(taken) <= called:
                each = IDENTITY if len(taken) == 1 else f"({', '.join([IDENTITY] * len(taken))})"
                found[name] = f"[{each}, {each}]"
    for name in arguments - found.keys():
        spelled = {name, *(held for held, source in attributes.items() if source == name)}
        loads = [
            node
            for root in (*init.body, *(forward.body if forward is not None else []))
            for node in ast.walk(root)
            if isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Load)
            and ast.unparse(node) in spelled
        ]
        kept = [node.value for node in ast.walk(init) if isinstance(node, ast.Assign) and node.value in loads]
        along = [word.value for node in [*ast.walk(init), *nodes] for word in _along(node)]
        padded = [side for node in nodes for side in _padded(node)]
        for places, text in ((along, "-1"), (padded, "(1, 1)")):
            if any(node in places for node in loads) and all(node in (*places, *kept) for node in loads):
                found[name] = text
        word = next((w for node in [*ast.walk(init), *nodes] if (w := _word(node, loads))), None)
        if word is not None and name not in found:
            found[name] = repr(word)
    return found


def _word(node: ast.AST, loads: Sequence[ast.expr]) -> str | None:
    """The first of the words that one of `loads` is compared with: `kind == "lstm"`, `kind in ("lstm", "gru")`."""
    if not isinstance(node, ast.Compare) or not any(node.left is load for load in loads):
        return None
    constants = [c.value for each in node.comparators for c in ast.walk(each) if isinstance(c, ast.Constant)]
    return next((value for value in constants if isinstance(value, str)), None)


def _along(node: ast.AST) -> list[ast.keyword]:
    """`dim=` of an operator that works along it."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in _ALONG:
        return []
    return [word for word in node.keywords if word.arg in ("dim", "axis")]


def _padded(node: ast.AST) -> list[ast.expr]:
    """How much `F.pad` is told to add."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(("F.pad", "functional.pad")):
        return []
    return [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "pad")]


def sequence_length(init: ast.FunctionDef, name: str) -> int | None:
    """How many items the constructor's argument has to hold, where it is used as a sequence; None where it is not."""
    needed = None
    for node in ast.walk(init):
        text = ""
        if isinstance(node, ast.Subscript):
            text, place = ast.unparse(node.value), node.slice
            least = place.value + 1 if isinstance(place, ast.Constant) and isinstance(place.value, int) else 2
        elif isinstance(node, (ast.For, ast.comprehension)):
            text, least = ast.unparse(node.iter), 2
            text = re.sub(r"^(?:enumerate|reversed|zip|iter)\((\w+)\b.*\)$", r"\1", text)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and node.args:
            text, least = ast.unparse(node.args[0]), 2
        if text == name:
            needed = max(needed or 2, least)
    return needed


def _self_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _held(value: ast.expr) -> str | None:
    """The name that is kept: `fn`, or `blocks` of `nn.ModuleList(blocks)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("ModuleList") and value.args:
        value = value.args[0]
    return value.id if isinstance(value, ast.Name) else None


def _is_shape(node: ast.expr, name: str) -> bool:
    return ast.unparse(node) in (f"{name}.shape", f"{name}.size()")


def _unpacked(node: ast.AST, name: str) -> int | None:
    """`b, n, d = x.shape`, and `b, n, d, heads = *x.shape, self.heads`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return None
    targets = node.targets[0].elts
    if any(isinstance(target, ast.Starred) for target in targets):
        return None
    if _is_shape(node.value, name):
        return len(targets)
    if isinstance(node.value, ast.Tuple):
        starred = [item.value for item in node.value.elts if isinstance(item, ast.Starred)]
        if len(starred) == 1 and _is_shape(starred[0], name):
            return len(targets) - len(node.value.elts) + 1
    return None


def _compared(node: ast.AST, name: str) -> int | None:
    """`assert x.dim() == 3` or `if x.ndim != 3: raise ...`."""
    test = node.test if isinstance(node, ast.Assert) else None
    wanted: type[ast.cmpop] = ast.Eq
    if isinstance(node, ast.If) and node.body and isinstance(node.body[0], ast.Raise):
        test, wanted = node.test, ast.NotEq
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], wanted):
        return None
    number = test.comparators[0]
    spelled = (f"{name}.dim()", f"{name}.ndim", f"len({name}.shape)", f"len({name}.size())")
    if (
        ast.unparse(test.left) in spelled
        and isinstance(number, ast.Constant)
        and isinstance(number.value, int)
    ):
        return number.value
    return None


def _permuted(node: ast.AST, name: str) -> int | None:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.permute" and len(node.args) > 1:
        return len(node.args)
    return None


def _reached(node: ast.AST, name: str) -> int:
    """How many dimensions the parameter has at least: `x[:, :, 0]`, `x.shape[2]`, `x.size(2)`, `x.transpose(1, 2)`,
    `torch.transpose(x, 1, 2)`."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and ast.unparse(node.value) == name
    ):
        plain = [n for n in node.slice.elts if not isinstance(n, ast.Constant) or isinstance(n.value, int)]
        return len(plain) if len(plain) == len(node.slice.elts) else 0
    places: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and _is_shape(node.value, name):
        places = [node.slice]
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == name
    ):
        places = node.args if node.func.attr in ("size", "transpose", "unbind") else []
    elif (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("torch.transpose", "torch.unbind")
        and node.args
        and ast.unparse(node.args[0]) == name
    ):
        places = node.args[1:]
    numbers = [place.value for place in places if isinstance(place, ast.Constant)]
    return max((n + 1 for n in numbers if isinstance(n, int)), default=0)


def _multiplied(node: ast.AST, name: str, functions: tuple[str, ...]) -> bool:
    """Whether the parameter is one of two matrices, or batches of them: `torch.mm(x, w)`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in functions
        and name in map(ast.unparse, node.args)
    )


def _rearranged(node: ast.AST, name: str) -> int | None:
    """`rearrange(x, "b n (h d) -> b h n d")` of einops, and its `reduce` and `repeat`."""
    if not (isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.args[0]) == name):
        return None
    if ast.unparse(node.func).rpartition(".")[2] not in ("rearrange", "reduce", "repeat"):
        return None
    return pattern_rank(node, 1)


def pattern_rank(call: ast.Call | None, position: int) -> int | None:
    """How many dimensions the pattern takes that einops' function or layer is given at this place: `b c (h p) w -> ...`."""
    pattern = call.args[position] if call is not None and len(call.args) > position else None
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str) or "..." in pattern.value:
        return None
    return len(re.sub(r"\([^)]*\)", "x", pattern.value.partition("->")[0]).split())


def _picks(function: ast.FunctionDef, name: str) -> bool:
    """Whether the parameter picks: by its name, as a subscript, or as the indices of gather and the like."""
    if _INDEX_NAMES.search(name):
        return True
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == name:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for table in (_TAKES_INDICES, _GATHERS):
                position = table.get(node.func.attr)
                picked = node.args[position : position + 1] if position is not None else []
                if picked and ast.unparse(picked[0]) == name:
                    return True
    return False
