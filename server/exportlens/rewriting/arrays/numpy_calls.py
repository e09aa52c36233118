"""One call of NumPy on tensors as a call of torch: `np.sin(t)` becomes `torch.sin(t)`.

Which functions are the same in both is measured (scripts/generate_numpy_functions.py).
"""

from __future__ import annotations

import ast
import functools
import json
from pathlib import Path
from typing import Any

from exportlens.inference.places import Call, Conversion
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source

# Constructors that copy an array into a tensor of their own type.
LEGACY = {
    "torch.Tensor": "get_default_dtype()",
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.ShortTensor": "int16",
    "torch.CharTensor": "int8",
    "torch.ByteTensor": "uint8",
    "torch.BoolTensor": "bool",
    "torch.HalfTensor": "float16",
}


@functools.cache
def functions_of_torch() -> dict[str, dict[str, Any]]:
    data = json.loads(Path(__file__).with_name("numpy_functions.json").read_text(encoding="utf-8"))
    functions: dict[str, dict[str, Any]] = data["functions"]
    return functions


def renamed(draft: Draft, node: ast.Call, of_floats: bool = False) -> list[Replacement]:
    """The replacements of `np.f` by `torch.f`, that of the name first. Raises Refused where they are not known to be the same."""
    qualified = qualified_name(draft, node.func)
    name = qualified.removeprefix("numpy.")
    known = functions_of_torch().get(_EXTREMES.get(name, name))
    form = _form(node)
    if name in _OTHER_NAMES and form in _OTHER_NAMES[name][1]:
        return [draft.source.swap(node.func, f"{draft.torch}.{_OTHER_NAMES[name][0]}")]
    if name in _THREE and len(node.args) == 3 and not node.keywords:
        return [draft.source.swap(node.func, f"{draft.torch}.{name}")]
    if name in _SPREADS and form in ("f(a)", "f(a, axis=1)", "f(a, axis=1, keepdims=True)"):
        # NumPy divides by the number of elements, torch by one less.
        given = [*node.args, *(key.value for key in node.keywords)]
        end = max(bracketed(draft.source, node, each)[1] for each in given)
        more = Replacement(end, end, ", correction=0")
        return [draft.source.swap(node.func, f"{draft.torch}.{name}"), more]
    if name in _RUNNING and form in ("f(a)", "f(a, axis=1)"):
        first = "" if node.keywords else ", dim=0"
        end = draft.source.end(node)
        return [
            draft.source.swap(node.func, f"{draft.torch}.{_RUNNING[name]}"),
            Replacement(end - 1, end, f"{first}).values"),
        ]
    if name in _BOUNDS and form in ("f(a, 2)", "f(2, b)"):
        return _clamped(draft, node, _BOUNDS[name], of_floats)
    if name in PRODUCTS and form == "f(a, b)":
        return [draft.source.swap(node.func, f"{draft.torch}.matmul")]
    if name in _OF_DIMENSIONS:
        return _of_dimensions(draft, node, _OF_DIMENSIONS[name])
    if name in _QUANTILES:
        return _quantile(draft, node, _QUANTILES[name])
    if name in _CONVERSIONS:
        return _converted(draft, node, _CONVERSIONS[name])
    if known is not None and form == "f(a, 2)" and is_int(node.args[1]) and "f(a, axis=1)" in known["forms"]:
        form = "f(a, axis=1)"
    if known is None or form not in known["forms"]:
        raise Refused(
            f"torch has no function that is measured to be the same as `{draft.source.of(node.func)}` here"
        )
    return [draft.source.swap(node.func, f"{draft.torch}.{known['torch']}")]


def _of_dimensions(draft: Draft, node: ast.Call, function: str) -> list[Replacement]:
    """`torch.permute(a, (1, 0))` for `np.transpose(a, (1, 0))`, `torch.flip(a, (0,))` for `np.flip(a, axis=0)`."""
    source = draft.source
    if (
        function == "permute"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
        and not node.keywords
    ):
        start, end = bracketed(source, node, node.args[0])
        dims = f", tuple(reversed(range({node.args[0].id}.dim())))"
        return [source.swap(node.func, f"{draft.torch}.permute"), Replacement(end, end, dims)]
    given = [*node.args[1:], *(key.value for key in node.keywords if key.arg in ("axis", "axes"))]
    if len(node.args) + len(node.keywords) != 2 or len(given) != 1 or isinstance(node.args[0], ast.Starred):
        raise Refused(f"not all dimensions that `{source.of(node)}` moves are written out")
    numbers = given[0].elts if isinstance(given[0], (ast.Tuple, ast.List)) else [given[0]]
    if not all(map(is_int, numbers)) or (given[0] in numbers and function == "permute"):
        raise Refused(f"not all dimensions that `{source.of(node)}` moves are written out")
    text = source.of(given[0])
    dims = f"({text},)" if given[0] in numbers else text
    name = source.swap(node.func, f"{draft.torch}.{function}")
    start, end = bracketed(source, node, given[0])
    if node.keywords:
        start = source.start(node.keywords[0])
    return [name, Replacement(start, end, dims)]


def _quantile(draft: Draft, node: ast.Call, share: int) -> list[Replacement]:
    """`torch.quantile(a, 5 / 100)` for `np.percentile(a, 5)`; `share` is what the whole is, 0 where it is asked for the middle."""
    source = draft.source
    named = {key.arg: key.value for key in node.keywords}
    given = node.args[1:] if share else [None, *node.args[1:]]
    asked = given[0] if given else named.get("q")
    axis = given[1] if len(given) > 1 else named.get("axis")
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    if (
        starred
        or None in named
        or named.keys() - {"q", "axis", "keepdims"}
        or not node.args
        or len(given) > 2
        or (share and asked is None)
        or isinstance(asked, (ast.List, ast.Tuple))
        or (axis is not None and not is_int(axis))
        or ("keepdims" in named and axis is None)
    ):
        raise Refused(
            f"torch has no function that is measured to be the same as `{source.of(node.func)}` here"
        )
    text = "0.5"
    if share and asked is not None:
        written = source.of(asked)
        loose = not isinstance(asked, (ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        text = f"({written})" if loose else written
        text = f"{text} / {share}" if share > 1 else text
    more = [text, *([f"dim={source.of(axis)}"] if axis is not None else [])]
    if "keepdims" in named:
        more.append(f"keepdim={source.of(named['keepdims'])}")
    name = source.swap(node.func, f"{draft.torch}.quantile")
    return [
        name,
        Replacement(bracketed(source, node, node.args[0])[1], source.end(node) - 1, f", {', '.join(more)}"),
    ]


def _converted(draft: Draft, node: ast.Call, method: str) -> list[Replacement]:
    """`a.contiguous()` for `np.ascontiguousarray(a)`, `a.to(torch.float32)` for `np.asarray(a, dtype=np.float32)`."""
    source = draft.source
    named = {key.arg: source.of(key.value) for key in node.keywords}
    texts = [source.of(each) for each in node.args[1:]]
    dtype = texts[0] if texts else named.get("dtype")
    known = None if dtype is None else DTYPES.get(dtype.replace("numpy.", "np.").replace('"', "'"))
    if len(texts) > 1 or named.keys() - {"dtype"} or not node.args or (dtype is not None and known is None):
        raise Refused(
            f"torch has no function that is measured to be the same as `{source.of(node.func)}` here"
        )
    start, end = bracketed(source, node, node.args[0])
    simple = isinstance(node.args[0], (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    copies = method == ".clone()"
    cast = "" if known is None else f".to({draft.torch}.{known}{', copy=True' if copies else ''})"
    tail = cast if cast and method != ".contiguous()" else cast + method
    opened, closed = ("", "") if simple or start < source.start(node.args[0]) else ("(", ")")
    name = Replacement(source.start(node.func), start, opened)
    return [name, Replacement(end, source.end(node), closed + tail)]


def _clamped(draft: Draft, node: ast.Call, bound: str, of_floats: bool) -> list[Replacement]:
    """`torch.clamp(a, min=2)` for `np.maximum(a, 2)` and `np.maximum(2, a)`."""
    source = draft.source
    array, number = node.args if _is_literal(node.args[1]) else reversed(node.args)
    if not is_int(number) and not of_floats:
        # Of an array of ints NumPy makes one of double precision.
        raise Refused(
            f"`{source.of(number)}` is no whole number: use `{draft.torch}.clamp` where the array holds floats"
        )
    name = source.swap(node.func, f"{draft.torch}.clamp")
    first, _ = bracketed(source, node, number)
    start, end = bracketed(source, node, array)
    if array is node.args[0]:
        return [name, Replacement(first, first, f"{bound}=")]
    # The array may be translated as well: what stands before it goes behind it.
    text = f", {bound}={source.of(number)}"
    return [name, Replacement(first, start, ""), Replacement(end, end, text)]


def bracketed(source: Source, call: ast.Call, node: ast.expr) -> tuple[int, int]:
    """Where an argument of `call` starts and ends, with the brackets that are written around it."""
    start, end = source.start(node), source.end(node)
    opened, closed = source.end(call.func) + 1, source.end(call) - 1
    while True:
        before, after = source.text[opened:start].rstrip(), source.text[end:closed].lstrip()
        if not (before.endswith("(") and after.startswith(")")):
            return start, end
        start, end = opened + len(before) - 1, closed - len(after) + 1


_RUNNING = {"maximum.accumulate": "cummax", "minimum.accumulate": "cummin"}

# Lists of arrays are put together under these names; torch takes `axis` as NumPy does.
PUT_TOGETHER = {
    "concatenate": "cat",
    "stack": "stack",
    "vstack": "vstack",
    "hstack": "hstack",
    "array": "stack",
}
# Of two arrays of at most two dimensions both are torch.matmul.
PRODUCTS = frozenset({"dot", "matmul"})
_OTHER_NAMES = {
    "expand_dims": ("unsqueeze", ("f(a, 2)",)),
    "linalg.norm": ("linalg.norm", ("f(a)", "f(a, axis=1)", "f(a, axis=1, keepdims=True)")),
}
_EXTREMES = {"max": "amax", "min": "amin"}
_OF_DIMENSIONS = {"transpose": "permute", "flip": "flip"}
# What the whole is to them, 0 where they are asked for the middle.
_QUANTILES = {"percentile": 100, "quantile": 1, "median": 0}
# What makes an array of one.
_CONVERSIONS = {"asarray": "", "ascontiguousarray": ".contiguous()", "array": ".clone()"}
_THREE = ("where", "clip")
_SPREADS = ("std", "var")
_BOUNDS = {"maximum": "min", "minimum": "max"}


def _form(node: ast.Call) -> str:
    if any(isinstance(each, ast.Starred) for each in node.args):
        return "?"
    keywords = sorted(key.arg or "?" for key in node.keywords)
    if len(node.args) == 1 and keywords and set(keywords) <= {"axis", "keepdims"}:
        given = {"axis": "axis=1", "keepdims": "keepdims=True"}
        return f"f({', '.join(['a', *(given[each] for each in keywords)])})"
    if node.keywords or not 1 <= len(node.args) <= 2:
        return "?"
    if len(node.args) == 1:
        return "f([a, b])" if isinstance(node.args[0], (ast.List, ast.Tuple)) else "f(a)"
    if _is_literal(node.args[0]):
        return "f(2, b)"
    return "f(a, 2)" if _is_literal(node.args[1]) else "f(a, b)"


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def is_int(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def tensors_asked(draft: Draft, node: ast.Call) -> list[ast.expr]:
    """The arguments that must be tensors where torch's function stands: NumPy's takes numbers in their place."""
    name = qualified_name(draft, node.func).removeprefix("numpy.")
    if name in PRODUCTS:
        return list(node.args)
    known = functions_of_torch().get(name)
    if known is None or _form(node) != "f(a, b)":
        return []
    return node.args[:1] if "f(a, 2)" in known["forms"] else list(node.args)


def refuse_numbers(draft: Draft, node: ast.Call, place: Call | Conversion) -> None:
    asked = tensors_asked(draft, node)
    if isinstance(place, Call):
        certain = [
            isinstance(option, Tensor) for value in place.args[: len(asked)] for option in options(value)
        ]
    else:
        certain = [place.use == "tensors" or (place.use == "tensor first" and len(asked) == 1)]
    if asked and not all(certain):
        text = draft.source.of(node)
        raise Refused(
            f"not all that `{text}` is given is known to be a tensor, and torch's function takes no numbers"
        )


def is_numpy(draft: Draft, node: ast.Call) -> bool:
    return qualified_name(draft, node.func).startswith("numpy.")


def qualified_name(draft: Draft, node: ast.expr) -> str:
    head, _, rest = (dotted(node) or "").partition(".")
    return f"{draft.modules.get(head, '')}.{rest}"
