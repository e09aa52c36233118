"""State that the first call makes, and each call writes in place: `if self.sum is None: self.sum = zeros_like(x)`, `self.sum.add_(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Instance, Tensor, options
from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.state.begun_questions import asks_for_none

from exportlens_rules.mutation.begun_elsewhere import is_set_back
from exportlens_rules.mutation.first_values import callers_of, is_asked_first, models_of, sets_back
from exportlens_rules.mutation.state_reads import FACTS, reads
from exportlens_rules.reading import ancestors

# What computes new values of the old ones.
_COMPUTING = frozenset(
    {
        "add_",
        "sub_",
        "mul_",
        "div_",
        "lerp_",
        "addcmul_",
        "addcdiv_",
        "index_add_",
        "scatter_add_",
        "addmm_",
        "addmv_",
        "baddbmm_",
    }
    | {"__iadd__", "__isub__", "__imul__", "logical_or_", "logical_and_", "bitwise_or_", "bitwise_and_"}
)
# What sets all values, whatever they were.
_SETTING = frozenset({"copy_", "zero_", "fill_", "set_", "normal_", "uniform_"})


def is_written_from_first_call(place: AttributeWrite) -> bool:
    """Whether the write makes the tensor where nothing was there yet, and the function then computes in it, and reads it."""
    function, statement = place.site.function, _statement(place)
    if function is None or statement is None or place.elsewhere or isinstance(function.node, ast.Lambda):
        return False
    if not isinstance(place.owner, Instance) or place.owner.traced:
        return False
    path = f"self.{place.attr}"
    made = all(isinstance(each, Tensor) and each.origin == "fresh" for each in options(place.value))
    # What reads all of the file comes last.
    if not made or not is_asked_first(place, statement, path) or is_set_back(place):
        return False
    ways = [function.node, *(each for _, each in callers_of(place)), *models_of(place)]
    if any(sets_back(each, place.attr) for each in ways):
        return False
    dump = ast.dump(ast.parse(path, mode="eval").body)
    writes = [each for each in ast.walk(function.node) if _writes(each, path, dump)]
    inside = {id(one) for each in writes for one in ast.walk(each)} | {
        id(each) for each in ast.walk(statement)
    }
    return (
        any(each.lineno > statement.lineno for each in writes if isinstance(each, (ast.stmt, ast.expr)))
        and not any(_sets(each, path, dump) for each in ast.walk(function.node) if each is not statement)
        and _is_read(function.node, path, inside)
    )


def _statement(place: AttributeWrite) -> ast.Assign | None:
    return next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)


def _writes(node: ast.AST, path: str, dump: str) -> bool:
    """Whether `node` computes new values in the tensor of its old ones."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Subscript) and _holder(node.target) == path
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute):
        return False
    if func.attr == "copy_":
        return _holder(func.value) == path and any(reads(each, [dump]) for each in node.args)
    return func.attr in _COMPUTING and _holder(func.value) == path


def _sets(node: ast.AST, path: str, dump: str) -> bool:
    """Whether `node` gives the attribute, or the tensor in it, values that have nothing to do with the old ones."""
    if isinstance(node, ast.Assign):
        return any(
            _holder(target) == path for target, value in assigned_pairs(node) if not reads(value, [dump])
        )
    func = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(node, ast.Call)
        and isinstance(func, ast.Attribute)
        and func.attr in _SETTING
        and _holder(func.value) == path
        and not any(reads(each, [dump]) for each in node.args)
    )


def _holder(node: ast.expr) -> str | None:
    """The attribute that `node` is, or is a part of: `self.sum[0]`, `self.sum.data`."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    return dotted(node)


def _is_read(function: ast.AST, path: str, inside: set[int]) -> bool:
    """Whether `function` reads the values, apart from what is `inside` of the writes."""
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Load)
        and dotted(each) == path
        and id(each) not in inside
        for each in _valued(function, path)
    )


def _valued(node: ast.AST, path: str) -> Iterator[ast.AST]:
    """What is in `node`, apart from questions for the None and for what the tensor looks like."""
    yield node
    for each in ast.iter_child_nodes(node):
        looks = isinstance(each, ast.Attribute) and each.attr in FACTS and dotted(each.value) == path
        if not looks and asks_for_none(each, path) is None:
            yield from _valued(each, path)
