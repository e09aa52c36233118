"""`one_hot` of a number of classes that only data knows: the classes are compared with a range of them.

`F.one_hot(x)` -> `(x.unsqueeze(-1) == torch.arange(x.max().item() + 1)).long()`, and of no more than `k` classes where
`[..., :k]` takes those of `F.one_hot(x, max(x.max() + 1, k))`.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Shape, TensorScalar
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused, plain_call
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source

_FOR_THE_USER = "how many classes there are is for you to say: hand in `num_classes`"


def compared_with_range(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The comparison of the class numbers with all classes."""
    try:
        draft, node = plain_call(place, context)
        source = draft.source
        named = {key.arg: key.value for key in node.keywords}
        given = node.args[0] if node.args else named.get("tensor") or named.get("input")
        classes = node.args[1] if len(node.args) > 1 else named.get("num_classes")
        if given is None or not _may_repeat(given):
            raise Refused("what is encoded is computed in the call: give it a name first")
        numbers = primary(source.of(given))
        replaced: ast.expr = node
        cut = _cut(source, node)
        if classes is None or _is_left_open(classes):
            count = f"{numbers}.max().item() + 1"
        elif cut is not None and _is_at_least(source, classes, cut):
            replaced, count = cut, source.of(_upper(cut))
        elif isinstance(place.argument(1, "num_classes"), (TensorScalar, Shape)):
            count = source.of(classes)
        else:
            raise Refused(_FOR_THE_USER)
        range_ = f"{draft.torch}.arange({count}, device={numbers}.device)"
        text = f"({numbers}.unsqueeze(-1) == {range_}).long()"
        return draft.replace("Compare with a range of the classes", [source.swap(replaced, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


# Methods that cost nothing to call again.
_VIEWS = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "long", "detach", "contiguous", "to", "t", "size"}
)


def _may_repeat(node: ast.expr) -> bool:
    """Whether `node` may be written several times: a name, an item, or a view of one."""
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return all(isinstance(each, ast.Attribute) and each.attr in _VIEWS for each in calls) and not any(
        isinstance(each, (ast.NamedExpr, ast.BinOp, ast.Lambda, ast.IfExp, ast.Compare))
        for each in ast.walk(node)
    )


def _is_left_open(classes: ast.expr) -> bool:
    return ast.unparse(classes) == "-1"


def _cut(source: Source, node: ast.Call) -> ast.Subscript | None:
    """`one_hot(...)[..., :k]`."""
    parent = source.parents[node]
    if not (
        isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Tuple)
    ):
        return None
    parts = parent.slice.elts
    last = parts[-1]
    plain = (
        isinstance(last, ast.Slice) and last.lower is None and last.step is None and last.upper is not None
    )
    whole = len(parts) == 2 and isinstance(parts[0], ast.Constant) and parts[0].value is ...
    return parent if plain and whole and dotted(_upper(parent)) else None


def _upper(cut: ast.Subscript) -> ast.expr:
    assert isinstance(cut.slice, ast.Tuple) and isinstance(cut.slice.elts[-1], ast.Slice)
    upper = cut.slice.elts[-1].upper
    assert upper is not None
    return upper


def _is_at_least(source: Source, classes: ast.expr, cut: ast.Subscript) -> bool:
    """Whether `classes` is `max(..., k)` for the `k` of `[..., :k]`."""
    return (
        isinstance(classes, ast.Call)
        and ast.unparse(classes.func) == "max"
        and len(classes.args) > 1
        and source.of(_upper(cut)) in map(source.of, classes.args)
    )
