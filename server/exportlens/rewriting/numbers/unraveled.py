"""`np.unravel_index(n, shape)` of a number that was read out of a tensor: the quotients and rests that it computes."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Sequence, Tensor, TensorScalar
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused, plain_call
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source


def divided_by_sizes(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`(n // shape[1], n % shape[1])` for `np.unravel_index(n, shape)`, where `n` has a name, or is given one.

    An index that is out of bounds raises nothing then, and the numbers are Python's: the fix is unsafe.
    """
    try:
        draft, node = plain_call(place, context)
        if len(node.args) != 2 or node.keywords or len(place.args) != 2:
            raise Refused("the arguments are not the number and the shape alone")
        number, shape = place.args
        tensor = isinstance(number, Tensor) and number.rank == 0 and dtype_family(number.dtype) == "int"
        if not tensor and not (isinstance(number, TensorScalar) and number.type == "int"):
            raise Refused(f"`{draft.source.of(node.args[0])}` is not known to be a whole number of Python")
        count = len(shape.items or ()) if isinstance(shape, Sequence) else 0
        count = count or _unpacked_to(draft.source, node)
        if not count:
            raise Refused(f"how many dimensions `{draft.source.of(node.args[1])}` has is not known")
        sizes = _sizes(draft.source, node.args[1], count)
        source, read = draft.source, ".item()" if tensor else ""
        swaps, name = list[Replacement](), source.of(node.args[0])
        if read or not isinstance(node.args[0], ast.Name):
            swaps = [_named(source, node, primary(name) + read if read else name)]
            name = swaps[0].text.partition(" = ")[0]
        swaps.append(source.swap(node, _places(name, sizes)))
        return draft.replace("Divide by the sizes", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _unpacked_to(source: Source, node: ast.Call) -> int:
    """To how many names the result is given one by one; 0 where it is not."""
    parent = source.parents[node]
    targets = parent.targets if isinstance(parent, ast.Assign) and parent.value is node else []
    if len(targets) != 1 or not isinstance(targets[0], (ast.Tuple, ast.List)):
        return 0
    return 0 if any(isinstance(each, ast.Starred) for each in targets[0].elts) else len(targets[0].elts)


def _sizes(source: Source, shape: ast.expr, count: int) -> list[str]:
    """The text of each size."""
    if isinstance(shape, (ast.Tuple, ast.List)):
        if any(isinstance(each, ast.Starred) or not _is_plain(each) for each in shape.elts):
            raise Refused(
                f"`{source.of(shape)}` would be computed more than once: give the sizes names first"
            )
        return [primary(source.of(each)) for each in shape.elts]
    path = shape
    if isinstance(path, ast.Call) and dotted(path.func) in ("tuple", "list") and len(path.args) == 1:
        path = path.args[0]
    if dotted(_asked_for_size(path) or path) is None:
        raise Refused(f"`{source.of(shape)}` would be computed more than once: give the shape a name first")
    return [f"{source.of(path)}[{number}]" for number in range(count)]


def _asked_for_size(node: ast.expr) -> ast.expr | None:
    """`x` of `x.size()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return None if node.args or node.keywords else node.func.value
    return None


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return dotted(node.value) is not None and isinstance(node.slice, ast.Constant)
    return isinstance(node, ast.Constant) or dotted(node) is not None


def _named(source: Source, node: ast.Call, number: str) -> Replacement:
    """What gives the number a name in front of the statement."""
    statement = source.enclosing_statement(node)
    if (
        not isinstance(statement, ast.Assign)
        or statement.value is not node
        or not source.begins_line(statement)
    ):
        raise Refused(f"`{number}` would be computed more than once: give it a name first")
    begin, name = source.start(statement), fresh("number", every_name(source.tree))
    return Replacement(begin, begin, f"{name} = {number}{source.newline}{source.indent_of(statement)}")


def _places(number: str, sizes: list[str]) -> str:
    """The place in each dimension of the item with that number, where the last dimension runs first."""
    places = []
    for dim, size in enumerate(sizes):
        behind = sizes[dim + 1 :]
        by = f" // {behind[0]}" if len(behind) == 1 else f" // ({' * '.join(behind)})" if behind else ""
        rest = f" % {size}" if dim else ""
        places.append(f"{number}{by}{rest}")
    return f"({', '.join(places)}{',' if len(places) == 1 else ''})"
