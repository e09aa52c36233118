"""`torch.zeros(2, 3, out=x.new())`: torch resizes the empty tensor that it is to write to, which strict tracing does not."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.places import Call
from exportlens.rewriting.calls.conversions import CONVERSIONS
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused, plain_call
from exportlens.rewriting.code.names import dotted

_CASTS = {name: dtype for name, dtype in CONVERSIONS.items() if dtype} | {"char": "int8", "byte": "uint8"}
_MADE = ("empty", "zeros", "ones", "new_empty", "new_zeros", "new_ones", "tensor")
_SAME = ("detach", "clone", "contiguous")
# What they make is of the dtype that they are told.
_CREATING = frozenset(
    {"zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye", "rand", "randn"}
)


def is_empty(node: ast.AST) -> bool:
    """Whether `node` makes a tensor without elements: `x.new()`, `torch.LongTensor()`, `torch.empty(0)`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data" and is_empty(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, bare = node.func.attr, not node.args and not node.keywords
    if name == "new" or name == "Tensor" or name in TENSOR_TYPES:
        return bare
    if name in _MADE:
        return len(node.args) == 1 and ast.unparse(node.args[0]) in ("0", "[]", "(0,)", "[0]")
    return bare and (name in _CASTS or name in _SAME) and is_empty(node.func.value)


def without_out(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.zeros(2, 3, dtype=x.dtype, device=x.device)` for `torch.zeros(2, 3, out=x.new())`."""
    try:
        draft, node = plain_call(place, context)
        source = draft.source
        out = next(key.value for key in node.keywords if key.arg == "out")
        dtype, device = _type_of(out, draft.torch)
        short = draft.qualified(node.func).rpartition(".")[2]
        kept = [*node.args, *(key for key in node.keywords if key.arg != "out")]
        given = [source.of(each) for each in kept]
        said = {key.arg for key in node.keywords}
        if short in _CREATING:
            given += [f"dtype={dtype}"] if "dtype" not in said else []
            given += [f"device={device}"] if device and "device" not in said else []
            text = f"{source.of(node.func)}({', '.join(given)})"
        else:
            text = f"{source.of(node.func)}({', '.join(given)}).to({dtype})"
        return draft.replace("Let torch make the tensor", [source.swap(node, text)])
    except (Refused, LookupError, SyntaxError, StopIteration) as refused:
        return Refusal(str(refused) or "what it writes to is not written in the call")


def _type_of(node: ast.expr, torch: str) -> tuple[str, str]:
    """How the dtype and the device of the empty tensor are written; no device for one that the CPU holds."""
    if isinstance(node, ast.Attribute):
        return _type_of(node.value, torch)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    name, owner = node.func.attr, node.func.value
    if name in _CASTS:
        return f"{torch}.{_CASTS[name]}", _type_of(owner, torch)[1]
    if name in _SAME:
        return _type_of(owner, torch)
    if name in TENSOR_TYPES:
        if (dotted(owner) or "").endswith("cuda"):
            raise Refused("the empty tensor is made on a GPU: name the device")
        return f"{torch}.{TENSOR_TYPES[name]}", ""
    if name == "Tensor":
        return f"{torch}.get_default_dtype()", ""
    named = {key.arg: ast.unparse(key.value) for key in node.keywords}
    if not set(named) <= {"dtype", "device"}:
        raise Refused("how the tensor is made that it writes to is not known")
    if name in ("empty", "zeros", "ones", "tensor"):
        return named.get("dtype", f"{torch}.get_default_dtype()"), named.get("device", "")
    while True:
        if isinstance(owner, ast.Attribute) and owner.attr == "data":
            owner = owner.value
        elif isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
            if owner.func.attr not in (*_SAME, "new", *_CASTS):
                break
            if owner.func.attr in _CASTS:
                dtype, device = _type_of(owner, torch) if is_empty(owner) else ("", "")
                if not dtype:
                    break
                return named.get("dtype", dtype), named.get("device", device)
            owner = owner.func.value
        else:
            break
    named_part = owner
    while isinstance(named_part, ast.Subscript) and isinstance(named_part.slice, ast.Constant):
        named_part = named_part.value
    if dotted(named_part) is None:
        raise Refused("the tensor whose type it takes has no name")
    base = ast.unparse(owner)
    return named.get("dtype", f"{base}.dtype"), named.get("device", f"{base}.device")
