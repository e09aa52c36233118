"""Outputs of a branch that are copied into a tensor and used for nothing else: `self.low.copy_(low)`.

The arms may give them in different shapes, `low = now` on one side and `low = 0.9 * self.low + 0.1 * now` on the other, as `copy_` takes
what can be broadcast. torch.cond takes one shape: each arm copies into a tensor like the one that is written.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def copied_into(source: Source, function: Function, node: ast.If, name: str, kinds: Kinds) -> str | None:
    """The path of the tensor into which `name` is copied behind the branch `node`; None where it is used otherwise, or more than once."""
    if any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(node)):
        return None
    inside = {id(each) for each in walk(node)}
    reads = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name)
        and each.id == name
        and isinstance(each.ctx, ast.Load)
        and id(each) not in inside
        and source.start(each) > source.start(node)
    ]
    if len(reads) != 1:
        return None
    call = source.parents[reads[0]]
    if not (
        isinstance(call, ast.Call)
        and call.args == reads
        and not call.keywords
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "copy_"
        and isinstance(source.parents[call], ast.Expr)
        and source.enclosing_function(call) is function
    ):
        return None
    path = dotted(call.func.value)
    if path is None or kinds.of(parse_python(path, mode="eval").body).what != "tensor":
        return None
    stores = {dotted(each) for each in walk(function) if isinstance(getattr(each, "ctx", None), ast.Store)}
    start = path.partition(".")[0]
    known = start in certainly_bound_before(function, node) and start not in bound([*node.body, *node.orelse])
    return path if known and path not in stores else None


def may_differ(a: Kind, b: Kind) -> bool:
    """Whether two tensors may have different shapes, as far as their dimensions tell."""
    return a.what == b.what == "tensor" and (a.rank is None or a.rank != b.rank)
