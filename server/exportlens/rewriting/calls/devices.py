"""Devices written into a model become the device of an input."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

_COMPUTES = (ast.BinOp, ast.Call, ast.keyword, ast.Attribute)
# What is called with lists, of tensors or of anything.
_TAKE_LISTS = frozenset(
    [
        "cat",
        "concat",
        "hstack",
        "vstack",
        "dstack",
        "stack",
        "pad_sequence",
        "pack_sequence",
        "enumerate",
        "zip",
        "list",
        "tuple",
        "iter",
        "reversed",
        "len",
    ]
)


def device_of_input(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`t.cuda()`, `t.to("cuda")`, `device="cuda"` -> the device of the function's first tensor.

    Unsafe: a model that is fed tensors of the CPU and moves them itself computes on the CPU afterwards.
    """
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        name = _tensor_parameter(draft, node)
        device = f"{name}.device"
        needless = _needless(draft, node, name)
        if needless is not None:
            return draft.replace(f"`{name}` stays where it is", [needless], uses_torch=False)
        swap = _named(draft, node, device) or _moved(draft, node, name, device)
        return draft.replace(f"Use `{device}`", [swap], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _tensor_parameter(draft: Draft, node: ast.Call) -> str:
    """The first parameter of the function around `node` that is a tensor where it stands."""
    statement = draft.source.enclosing_statement(node)
    function = draft.source.enclosing_function(statement)
    if function is not None:
        kinds = kinds_before(function, statement, draft.kinds({}))
        for each in arguments(function.args):
            known = kinds.names.get(each.arg)
            if (
                known is not None
                and known.what == "tensor"
                and is_computed_with(draft.source, function, each)
            ):
                return each.arg
    raise Refused("no parameter of the function is known to be a tensor whose device could be taken")


def is_computed_with(source: Source, function: Function, parameter: ast.arg) -> bool:
    """Whether a parameter says that it is a tensor, or the function computes with it: a `mode` is only compared."""
    if parameter.annotation is not None:
        return True
    reads = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == parameter.arg and isinstance(each.ctx, ast.Load)
    ]
    parents = [(each, source.parents[each]) for each in reads]
    # An item is asked of lists, too; an index with a comma of tensors only.
    return any(
        isinstance(parent, _COMPUTES)
        or (isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Tuple))
        for _, parent in parents
    ) and not any(_is_something_else(each, parent) for each, parent in parents)


def _is_something_else(name: ast.Name, parent: ast.AST) -> bool:
    """Whether a parameter is read as a text, a key, or a list of tensors."""
    if isinstance(parent, ast.Compare):
        return any(_is_text(one) for one in walk(parent))
    if isinstance(parent, ast.Call):
        called = (dotted(parent.func) or "").rpartition(".")[2]
        return called in _TAKE_LISTS or called.endswith(("Tensor", "tensor"))
    iterated = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is name
    return iterated or isinstance(parent, ast.FormattedValue) or name is getattr(parent, "slice", None)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _needless(draft: Draft, node: ast.Call, name: str) -> Replacement | None:
    """The statement `x = x.cuda()` or `x = x.to("cuda")`, where `x` is the tensor whose device is taken; its comment
    stays."""
    source = draft.source
    statement = source.enclosing_statement(node)
    moves = (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("cuda", "to")
        and len(node.args) + len(node.keywords) <= 1
    )
    if not moves or not isinstance(statement, ast.Assign) or statement.value is not node:
        return None
    if [source.of(each) for each in (*statement.targets, node.func.value)] != [name, name]:  # type: ignore[attr-defined]
        return None
    return source.without(statement)


def _named(draft: Draft, node: ast.Call, device: str) -> Replacement | None:
    """The device by its keyword, or as what `.to` is given."""
    for key in node.keywords:
        if key.arg == "device":
            return draft.source.swap(key.value, device)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.args:
        return draft.source.swap(node.args[0], device)
    return None


def _moved(draft: Draft, node: ast.Call, name: str, device: str) -> Replacement:
    """`t.cuda()` -> `t.to(x.device)`, and `x.cuda()` -> `x`."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"):
        raise Refused("a constructor of CUDA tensors: write `torch.tensor(..., device=...)`")
    owner = primary(draft.source.of(node.func.value))
    given = ", ".join([device, *(draft.source.of(key) for key in node.keywords if key.arg == "non_blocking")])
    return draft.source.swap(node, owner if owner == name else f"{owner}.to({given})")
