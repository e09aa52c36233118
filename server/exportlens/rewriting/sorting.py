"""Python's own sorting of tensors becomes torch.sort, where the elements certainly are tensors without dimensions."""

from __future__ import annotations

import ast

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.kind import Kind, element_of
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import reads
from exportlens.rewriting.predicates import primary
from exportlens.rewriting.text import Source, replaced


def sorted_text(source: Source, node: ast.Call, kinds: Kinds, torch: str) -> str:
    """The whole text with `list(torch.sort(...).values.unbind())` in the place of `sorted(...)`. Raises Refused."""
    if not isinstance(node.func, ast.Name):
        raise Refused("the list is sorted in place: bind a sorted tensor to its name")
    given = {key.arg: key.value for key in node.keywords}
    if len(node.args) != 1 or "key" in given:
        raise Refused(
            "a key orders the elements: sort the keys with `torch.argsort` and select by its indices"
        )
    reverse = given.get("reverse")
    if reverse is not None and not isinstance(reverse, ast.Constant):
        raise Refused(f"`{source.of(reverse)}` is no plain True or False")
    order = ", descending=True" if reverse is not None and reverse.value else ""
    return replaced(
        source.text,
        [
            source.swap(
                node,
                f"list({torch}.sort({_stacked(source, node.args[0], kinds, torch)}{order}).values.unbind())",
            )
        ],
    )


def _stacked(source: Source, elements: ast.expr, kinds: Kinds, torch: str) -> str:
    """The elements as one tensor of one dimension."""
    known = kinds.of(elements)
    if known.what == "tensor":
        if known.rank != 1:
            raise Refused(f"`{source.of(elements)}` is not known to have one dimension")
        return source.of(elements)
    parts: list[Kind] = list(known.items or ())
    if not parts and isinstance(elements, ast.ListComp) and kinds.has_elements(elements.generators[0].iter):
        parts = [kinds.in_comprehension(elements).of(elements.elt)] if not elements.generators[0].ifs else []
    if not parts and known.type == "tensors":
        parts = [element_of(known)]
    if not parts:
        raise Refused(f"what `{source.of(elements)}` holds is not known")
    if any(each.what == "scalar" for each in parts):
        raise Refused("Python numbers read out of tensors are sorted: sort the tensors with `torch.sort`")
    if any(each.what != "tensor" or each.rank != 0 for each in parts):
        raise Refused("the elements are not known to be tensors without dimensions")
    if len({each.dtype for each in parts}) > 1 or (parts[0].dtype is None and not _of_one_tensor(elements)):
        raise Refused("the elements may be of several dtypes, which `torch.stack` would make one")
    return f"{torch}.stack({primary(source.of(elements))})"


def _of_one_tensor(elements: ast.expr) -> bool:
    """Whether each element is made by the same operations of the same tensor, so that all have one dtype."""
    if isinstance(elements, (ast.List, ast.Tuple)):
        shapes = {_without_numbers(each) for each in elements.elts}
        return len(shapes) == 1 and len(reads(elements)) == 1
    return isinstance(elements, ast.ListComp)


def _without_numbers(node: ast.expr) -> str:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    for each in ast.walk(copied):
        if isinstance(each, ast.Constant):
            each.value = 0
    return ast.unparse(copied)
