"""NumPy on traced tensors becomes torch: calls by themselves, and the whole way from `t.numpy()` to `torch.from_numpy`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion
from exportlens.inference.values import Const, Sequence, Tensor, TensorScalar, Value, options
from exportlens.rewriting.arrays.array_flow import ArrayWay, is_back
from exportlens.rewriting.arrays.array_types import RefusedUnlike
from exportlens.rewriting.arrays.array_ways import torch_for_arrays
from exportlens.rewriting.arrays.numpy_calls import is_numpy, qualified_name, refuse_numbers, renamed
from exportlens.rewriting.arrays.told_arrays import kept_for_others
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, RefusedDtypes, WholeDraft
from exportlens.rewriting.code.imports import imported
from exportlens.rewriting.code.text import Replacement

_WANTED = {
    "float": "float64", "float64": "float64", "double": "float64", "float32": "float32", "float16": "float16",
    "int": "int64", "int64": "int64", "int32": "int32",
}  # fmt: skip
_MADE = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")


def torch_for_numpy(place: Call | Conversion, context: RewriteContext) -> Fix | Refusal:
    """torch's function for NumPy's on a tensor, or the whole way from `t.numpy()` back to torch."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        function = draft.source.enclosing_function(draft.source.enclosing_statement(node))
        if function is not None:
            draft.modules = imported(function.body) | draft.modules
        if isinstance(place, Conversion) and isinstance(node, ast.Call) and is_numpy(draft, node):
            if not isinstance(place.value, Tensor):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            if qualified_name(draft, node.func) in _MADE and not _is_given_back(draft, node):
                # The array is an array to all that follows: NumPy's functions of it are no torch's of a tensor.
                return _way_of_all(draft, node, {place.value.dtype}, place.variables)
            refuse_numbers(draft, node, place)
            return draft.replace("Use torch's function", renamed(draft, node))
        if isinstance(place, Call):
            if not isinstance(node, ast.Call) or not all(
                all(isinstance(option, Tensor) for option in options(value)) for value in place.args[:1]
            ):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            refuse_numbers(draft, node, place)
            return draft.replace("Use torch's function", renamed(draft, node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            options_of = options(place.value) if isinstance(place, Conversion) else ()
            dtypes = {each.dtype for each in options_of if isinstance(each, Tensor)}
            known = place.variables if isinstance(place, Conversion) else {}
            try:
                return _way_out(draft, node, dtypes, known)
            except Refused:
                kept = kept_for_others(draft, node)
                if kept is None:
                    raise
                return draft.replace("Keep this out of the traced program", kept)
        raise Refused("the array is not made by `.numpy()`")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def torch_for_lists(place: Call, context: RewriteContext) -> Fix | Refusal | None:
    """The whole way from where NumPy makes an array of the numbers of a tensor, `np.array(t.tolist())`; None where it is given
    something else."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        first = node.args[0] if isinstance(node, ast.Call) and node.args else None
        called = first.func if isinstance(first, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(first, (ast.List, ast.Tuple)):
            return _tensor_of_numbers(draft, node, first, place.args[0])
        if not isinstance(node, ast.Call) or not isinstance(called, ast.Attribute) or called.attr != "tolist":
            return None
        return _way_of_all(draft, node, set(), {})
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _tensor_of_numbers(
    draft: Draft, node: ast.Call, listed: ast.List | ast.Tuple, value: Value
) -> Fix | None:
    """`torch.tensor([a, b], dtype=torch.float64).numpy()` for `np.array([a, b])` of numbers, from where the whole way is found; None
    where it is an array of something else."""
    if qualified_name(draft, node.func) not in _MADE:
        return None
    types = set(_types(value))
    dtype = "float64" if "float" in types else "int64" if "int" in types else "bool"
    named = {each.arg: each.value for each in node.keywords}
    wanted = named.pop("dtype", node.args[1] if len(node.args) == 2 else None)
    if not types or None in types or named or len(node.args) > 2:
        return None
    if wanted is not None:
        name = (qualified_name(draft, wanted) or ast.unparse(wanted)).removeprefix("numpy.")
        dtype = _WANTED.get(name, "")
    # One float makes all of them floats.
    if not dtype or ("unknown" in types and "float" not in types and wanted is None):
        return None
    if dtype.startswith("int") and types & {"float", "unknown"}:
        return None
    text = f"{draft.torch}.tensor({draft.source.of(listed)}, dtype={draft.torch}.{dtype}).numpy()"
    return draft.replace("Make a tensor of the numbers", [draft.source.swap(node, text)])


def _types(value: Value) -> Iterator[str | None]:
    """The types of the numbers of Python that a list holds, also in lists; None for anything else."""
    for each in options(value):
        if isinstance(each, Sequence) and each.items is not None:
            for item in each.items:
                yield from _types(item)
        elif isinstance(each, TensorScalar):
            yield each.type or "unknown"
        else:
            number = type(each.value).__name__ if isinstance(each, Const) else ""
            yield number if number in ("float", "int", "bool") else None


def _is_given_back(draft: Draft, node: ast.Call) -> bool:
    """Whether `node` stands where a tensor is made of it at once."""
    parent = draft.source.parents[node]
    return isinstance(parent, ast.Call) and node in parent.args and is_back(draft, parent)


def _way_of_all(draft: Draft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value]) -> Fix:
    """The whole way from `first`, with the dtype of everything in it."""
    whole = WholeDraft.around(draft)
    begun = whole.found(first)
    assert isinstance(begun, ast.Call)
    return whole.replace("Stay in torch", torch_for_arrays(whole, begun, dtypes, known))


def _way_out(draft: Draft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value]) -> Fix:
    """The whole way from `first`, with the dtype of everything in it, or else by what arrays are used for alone."""
    whole = WholeDraft.around(draft)
    try:
        return _way_of_all(draft, first, dtypes, known)
    except (RefusedUnlike, RefusedDtypes):
        raise
    except Refused as refused:
        reason = refused
    try:
        return draft.replace("Stay in torch", _whole_way(draft, first, dtypes, known))
    except Refused as refused:
        try:
            return whole.replace("Stay in torch", _with_functions(whole, first, dtypes, known, refused))
        except Refused:
            raise reason from None


def _with_functions(
    whole: WholeDraft, first: ast.Call, dtypes: set[str | None], known: Mapping[str, Value], refused: Refused
) -> list[Replacement]:
    """The whole way where it goes through functions of the file; raises `refused` where it does not."""
    node = whole.found(first)
    assert isinstance(node, ast.Call)
    if whole.source.enclosing_function(node) is None:
        raise refused
    return _whole_way(whole, node, dtypes, known)


def _whole_way(
    draft: Draft, first: ast.Call, dtypes: set[str | None], variables: Mapping[str, Value]
) -> list[Replacement]:
    """The replacements for the array that `first` makes of a tensor of one of `dtypes`, and for all others of the function:
    they may meet."""
    function = draft.source.enclosing_function(first)
    arrays = [
        each
        for each in ast.walk(function or draft.source.tree)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "numpy"
        and not each.args
        and not each.keywords
    ]
    if first not in arrays:
        raise Refused("the array is made otherwise than by `.numpy()`")
    way = ArrayWay(draft, arrays, draft.kinds(variables))
    one = next(iter(dtypes)) if len(dtypes) == 1 else None
    if one is not None:
        way.dtypes[first] = one
    swaps = way.swaps()
    byte = f".to({draft.torch}.uint8)"
    if way.indexes and ("uint8" in dtypes or any(each.text == byte for each in swaps)):
        raise Refused("a tensor of uint8 is a mask where it is an index, an array of it holds numbers")
    return swaps
