"""Methods of NumPy arrays and what tensors call them, for arrays that were made from tensors."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Replacement, Source

# The same name with `axis` as `dim` and `keepdims` as `keepdim`.
_REDUCTIONS = {
    "sum": "sum",
    "prod": "prod",
    "mean": "mean",
    "all": "all",
    "any": "any",
    "argmax": "argmax",
    "argmin": "argmin",
}
_EXTREMES = {"max": "amax", "min": "amin"}
_SPREADS = {"std": "std", "var": "var"}
_ALONG = {"cumsum": "cumsum", "cumprod": "cumprod", "argsort": "argsort"}
_SAME = {
    "copy": "clone",
    "flatten": "flatten",
    "ravel": "flatten",
    "round": "round",
    "clip": "clamp",
    "reshape": "reshape",
}
DTYPES = {
    "float": "float64",
    "int": "int64",
    "bool": "bool",
    "np.float32": "float32",
    "np.float64": "float64",
    "np.float16": "float16",
    "np.int64": "int64",
    "np.int32": "int32",
    "np.uint8": "uint8",
    "np.bool_": "bool",
    "'float32'": "float32",
    "'float64'": "float64",
    "'int64'": "int64",
    "'int32'": "int32",
}
# What NumPy always copies, and torch only where it must.
COPIED = frozenset({"flatten", "astype"})
# What gives one number of a whole array.
WHOLE = frozenset({"sum", "prod", "mean", "max", "min", "std", "var"})
# What ends as a Python value on an array as on a tensor.
ENDS = ("item", "tolist")


def translated(source: Source, call: ast.Call, torch: str) -> Replacement:
    """The replacement of `.method(...)` of an array by the tensor's. Raises Refused where there is none that is the
    same."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    given = {key.arg: source.of(key.value) for key in call.keywords}
    texts = [source.of(each) for each in call.args]
    if None in given or any(isinstance(each, ast.Starred) for each in call.args):
        raise Refused(f"the arguments of `.{name}` are unpacked from elsewhere")
    text = _text(name, texts, {str(key): value for key, value in given.items()}, torch)
    if text is None:
        raise Refused(f"tensors have no method that is the same as `{source.of(call.func)}` here")
    return Replacement(dot(source, call.func), source.end(call), text)


def dot(source: Source, attribute: ast.Attribute) -> int:
    """Where the dot of `attribute` stands: behind the parentheses of its owner, which belong to no node."""
    return source.text.rindex(".", 0, source.end(attribute))


def _text(name: str, texts: list[str], given: dict[str, str], torch: str) -> str | None:
    if name == "astype" and len(texts) == 1 and not given:
        dtype = DTYPES.get(texts[0].replace("numpy.", "np.").replace('"', "'"))
        return None if dtype is None else f".to({torch}.{dtype})"
    if name in _SAME:
        return None if given else f".{_SAME[name]}({', '.join(texts)})"
    if name in (*_REDUCTIONS, *_EXTREMES, *_SPREADS):
        return _reduction(name, texts, given)
    if name in _ALONG:
        axis = texts[0] if len(texts) == 1 else given.get("axis", "-1" if name == "argsort" else "")
        return f".{name}({axis})" if axis and len(texts) < 2 and not set(given) - {"axis"} else None
    if name == "squeeze" and len(texts) + len(given) <= 1 and not set(given) - {"axis"}:
        return f".squeeze({given.get('axis', ''.join(texts))})"
    if name == "transpose" and len(texts) > 1 and not given:
        return f".permute({', '.join(texts)})"
    return None


def _reduction(name: str, texts: list[str], given: dict[str, str]) -> str | None:
    if len(texts) > 1 or set(given) - {"axis", "keepdims"} or (texts and "axis" in given):
        return None
    axis = texts[0] if texts else given.get("axis")
    if "keepdims" in given and axis is None:
        return None
    arguments = [] if axis is None else [f"dim={axis}"]
    if "keepdims" in given:
        arguments.append(f"keepdim={given['keepdims']}")
    if name in _SPREADS:
        # NumPy divides by n, torch by n - 1.
        arguments.append("correction=0")
    method = _EXTREMES[name] if name in _EXTREMES and axis is not None else name
    return f".{method}({', '.join(arguments)})"
