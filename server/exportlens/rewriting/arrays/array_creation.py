"""Arrays that NumPy makes of sizes, and that are indexed by arrays which were tensors: torch makes them."""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.code.text import Replacement, Source

# NumPy's floats are of double precision; both count in 64 bits.
_DOUBLE = {"eye": "float64", "identity": "float64", "zeros": "float64", "ones": "float64"}
_TORCH = {"eye": "eye", "identity": "eye", "zeros": "zeros", "ones": "ones", "arange": "arange"}
_MOST_SIZES = {"eye": 1, "identity": 1, "zeros": 1, "ones": 1, "arange": 2}


def created(source: Source, call: ast.expr, name: str, torch: str) -> Replacement | None:
    """The replacement of a whole call of NumPy's `name` ("zeros", "eye") by torch's; None where there is none that is the same."""
    if not isinstance(call, ast.Call) or name not in _TORCH or not 1 <= len(call.args) <= _MOST_SIZES[name]:
        return None
    if any(isinstance(each, (ast.Starred, ast.Constant)) and not _is_int(each) for each in call.args):
        return None
    if name == "arange" and not _counts_up(call.args):
        return None
    given = {key.arg: source.of(key.value) for key in call.keywords}
    if given.keys() - {"dtype"}:
        return None
    dtype = DTYPES.get(given["dtype"]) if given else _DOUBLE.get(name)
    if (given and dtype is None) or (name == "arange" and given):
        return None
    texts = [source.of(each) for each in call.args]
    if dtype is not None:
        texts.append(f"dtype={torch}.{dtype}")
    return source.swap(call, f"{torch}.{_TORCH[name]}({', '.join(texts)})")


def _counts_up(given: list[ast.expr]) -> bool:
    """Whether whole numbers from zero are counted: of others NumPy makes doubles, and nothing where torch raises."""
    if len(given) == 2 and not (isinstance(given[0], ast.Constant) and given[0].value == 0):
        return False
    return not any(isinstance(each, ast.Div) for one in given for each in ast.walk(one))


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
