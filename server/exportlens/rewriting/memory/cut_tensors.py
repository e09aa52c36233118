"""Tensors cut into several views, of which some are read after a branch that may write the tensor.

Where gradients are recorded, eager refuses a view of several that one call gave ("Output 1 of UnbindBackward0 is a view and its
base has been modified inplace") once the tensor has been written. A branch that writes it now and then lives with that as long
as it is not taken; what writes the branch's result back does so each time. Measured on torch 2.13.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds

# Methods and functions that give several views of one tensor.
CUTTING = frozenset(
    {
        "chunk",
        "dsplit",
        "hsplit",
        "split",
        "split_with_sizes",
        "tensor_split",
        "unbind",
        "unsafe_chunk",
        "vsplit",
    }
)


def refuse_cut(
    source: Source, function: Function, node: ast.stmt, path: str, roots: frozenset[str], kinds: Kinds
) -> None:
    """Raise Refused where what is written back to `path` behind the branch at `node` would spoil views of it that are read then."""
    for outer in source.ancestors(node):
        if outer is function:
            break
        if isinstance(outer, ast.For) and _is_cut(outer.iter, roots, kinds, True):
            raise Refused(
                f"`{path}` is written while a loop goes through its rows: once it is, eager takes none of the other rows where "
                "gradients are recorded"
            )
    here = source.start(node)
    for each in ast.walk(function):
        if isinstance(each, ast.Assign) and _is_cut(each.value, roots, kinds, False):
            for name in bound(each):
                if any(
                    isinstance(read, ast.Name) and read.id == name and source.start(read) > here
                    for read in ast.walk(function)
                ):
                    raise Refused(
                        f"`{path}` is written, and `{name}`, one of several views of it, is read later: once it is written, "
                        "eager takes none of them where gradients are recorded"
                    )


def _is_cut(node: ast.expr, roots: frozenset[str], kinds: Kinds, looped: bool) -> bool:
    """Whether `node` gives several views of what has one of `roots`: `x.unbind()`, `list(x)`, or `x` that is `looped` over."""
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("enumerate", "list", "reversed", "tuple", "zip"):
            return any(_is_cut(each, roots, kinds, True) for each in node.args)
        if called not in CUTTING:
            return False
        of = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        return any((kinds.of(each).roots or frozenset()) & roots for each in of)
    kind = kinds.of(node)
    return looped and kind.what == "tensor" and bool((kind.roots or frozenset()) & roots)
