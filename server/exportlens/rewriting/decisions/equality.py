"""`torch.equal`, `torch.allclose` and `torch.is_nonzero` as tensors: their elementwise kin answer without reading data."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source

# Where a bool is told from a tensor of it.
_ASKING = frozenset({"isinstance", "type", "int", "float", "bool", "str", "print"})


def elementwise_answer(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.allclose(a, b)` -> `torch.isclose(a, b).all()`, `torch.is_nonzero(t)` -> `t.reshape(()) != 0`, and `torch.equal(a, b)` ->
    `(a == b).all()` where they are of one shape: what asks for their truth asks a tensor as well."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        called = place.name.rpartition(".")[2]
        if not isinstance(node, ast.Call):
            raise Refused("the call could not be found again")
        parent = source.parents[node]
        asked = isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in _ASKING
        if asked or (isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot))):
            raise Refused("a bool of Python is wanted, not a tensor of it")
        method = place.receiver is not None and isinstance(node.func, ast.Attribute)
        if called == "equal":
            if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
                text = _equal(source, node, method, draft.torch, same=False)
                text = text if isinstance(source.parents[parent], (ast.Return, ast.Assign)) else f"({text})"
                return draft.replace("Answer with a tensor", [source.swap(parent, text)])
            text = _equal(source, node, method, draft.torch)
            text = text if isinstance(parent, (ast.Return, ast.Assign)) else f"({text})"
            return draft.replace("Answer with a tensor", [source.swap(node, text)])
        if called == "allclose":
            head = source.of(node.func).removesuffix("allclose")
            text = f"{head}isclose{source.text[source.end(node.func) : source.end(node)]}.all()"
        else:
            assert isinstance(node.func, ast.Attribute) or node.args
            owner = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0]
            text = f"({primary(source.of(owner))}.reshape(()) != 0)"
        return draft.replace("Answer with a tensor", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _equal(source: Source, node: ast.Call, method: bool, torch: str, same: bool = True) -> str:
    """Whether the two are the `same`, or that they are not, as a tensor. Raises Refused."""
    owner = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
    pair = [*owner, *node.args]
    if len(pair) != 2 or any(dotted(each) is None for each in pair):
        raise Refused(
            "which shapes the two have decides the answer too: give both a name, or write `(a == b).all()` where the shapes are alike"
        )
    a, b = map(source.of, pair)
    answer = f"({a} == {b}).all()" if same else f"({a} != {b}).any()"
    return f"{answer} if {a}.shape == {b}.shape else {torch}.full((), {not same})"
