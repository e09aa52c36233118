"""NumPy on traced tensors becomes torch: `np.sin(t)`, and what is computed between `t.numpy()` and `torch.from_numpy`.

Which functions are the same in both is measured (scripts/generate_numpy_functions.py).
"""

from __future__ import annotations

import ast
import functools
import json
from pathlib import Path
from typing import Any

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.names import dotted
from exportlens.rewriting.text import Replacement

_BACK = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


@functools.cache
def _functions() -> dict[str, dict[str, Any]]:
    data = json.loads(Path(__file__).with_name("numpy_functions.json").read_text(encoding="utf-8"))
    functions: dict[str, dict[str, Any]] = data["functions"]
    return functions


def torch_for_numpy(place: Call | Conversion, context: RewriteContext) -> Fix | Refusal:
    """torch's function for NumPy's on a tensor, or the whole way from `t.numpy()` back to torch."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if isinstance(place, Conversion) and isinstance(node, ast.Call) and _is_numpy(draft, node):
            if not isinstance(place.value, Tensor):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            return draft.replace("Use torch's function", [_renamed(draft, node)])
        if isinstance(place, Call):
            if not isinstance(node, ast.Call) or not all(
                all(isinstance(option, Tensor) for option in options(value)) for value in place.args[:1]
            ):
                raise Refused("not all that NumPy is given is a tensor: rewrite from where the array is made")
            return draft.replace("Use torch's function", [_renamed(draft, node)])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            return draft.replace("Stay in torch", _whole_way(draft, node))
        raise Refused("the array is not made by `.numpy()`")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _renamed(draft: Draft, node: ast.Call) -> Replacement:
    """The replacement of `np.f` by `torch.f`. Raises Refused where they are not known to be the same."""
    name = (dotted(node.func) or "").rpartition(".")[2]
    known = _functions().get(name)
    form = _form(node)
    if known is None or form not in known["forms"]:
        raise Refused(
            f"torch has no function that is measured to be the same as `{draft.source.of(node.func)}` here"
        )
    return draft.source.swap(node.func, f"{draft.torch}.{known['torch']}")


def _form(node: ast.Call) -> str:
    if any(isinstance(each, ast.Starred) for each in node.args):
        return "?"
    if len(node.args) == 1 and [key.arg for key in node.keywords] == ["axis"]:
        return "f(a, axis=1)"
    if node.keywords or not 1 <= len(node.args) <= 2:
        return "?"
    if len(node.args) == 1:
        return "f([a, b])" if isinstance(node.args[0], (ast.List, ast.Tuple)) else "f(a)"
    return "f(a, 2)" if isinstance(node.args[1], (ast.Constant, ast.UnaryOp)) else "f(a, b)"


def _whole_way(draft: Draft, first: ast.Call) -> list[Replacement]:
    source = draft.source
    assert isinstance(first.func, ast.Attribute)
    # Each name is followed once; each call is translated once.
    swaps: dict[ast.AST, Replacement] = {
        first: Replacement(source.end(first.func.value), source.end(first), "")
    }
    followed: set[str] = set()
    leaves: list[ast.expr] = [first]
    while leaves:
        node = leaves.pop()
        while True:
            parent = source.parents.get(node)
            if isinstance(parent, (ast.BinOp, ast.UnaryOp)):
                node = parent
            elif isinstance(parent, ast.Call) and parent.func is not node and _is_back(draft, parent):
                swaps[parent] = Replacement(source.start(parent), source.start(node), "(")
                swaps[parent.func] = Replacement(source.end(node), source.end(parent), ")")
                break
            elif isinstance(parent, ast.Call) and parent.func is not node and _is_numpy(draft, parent):
                swaps[parent.func] = _renamed(draft, parent)
                node = parent
            elif (
                isinstance(parent, ast.Assign)
                and len(parent.targets) == 1
                and isinstance(parent.targets[0], ast.Name)
            ):
                leaves += _uses(draft, parent, parent.targets[0].id, followed)
                break
            else:
                raise Refused("the array is used in a way that has no counterpart in torch")
    return list(swaps.values())


def _uses(draft: Draft, statement: ast.Assign, name: str, followed: set[str]) -> list[ast.expr]:
    function = draft.source.enclosing_function(statement)
    found = [
        each
        for each in ast.walk(function or draft.source.tree)
        if isinstance(each, ast.Name) and each.id == name
    ]
    if sum(1 for each in found if isinstance(each.ctx, ast.Store)) != 1:
        raise Refused(f"`{name}` is bound several times")
    if name in followed:
        return []
    followed.add(name)
    return [each for each in found if isinstance(each.ctx, ast.Load)]


def _is_back(draft: Draft, node: ast.Call) -> bool:
    return len(node.args) == 1 and not node.keywords and _qualified(draft, node.func) in _BACK


def _is_numpy(draft: Draft, node: ast.Call) -> bool:
    return _qualified(draft, node.func).startswith("numpy.")


def _qualified(draft: Draft, node: ast.expr) -> str:
    head, _, rest = (dotted(node) or "").partition(".")
    return f"{draft.modules.get(head, '')}.{rest}"
