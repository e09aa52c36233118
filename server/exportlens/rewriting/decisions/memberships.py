"""Whether a number from data is among constants: `n in (1, 2)`, `t.item() in RARE`, `n in self.ids`, `n in range(4)`.

    if label.item() in RARE: ...    ->    (torch.tensor(list(RARE), device=label.device) == label).any()

The constants stay where they are named. Of ints and floats that every float dtype holds the comparison gives what Python's does;
others are compared as doubles, as Python compares them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.inference.values import Const, Mapping_, Value
from exportlens.inference.values import Sequence as Items
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.compared_numbers import ComparedNumbers, is_exact
from exportlens.rewriting.decisions.conditions import Condition
from exportlens.rewriting.kinds.kind import of_value
from exportlens.rewriting.memory.moving import writes
from exportlens.source.document import Chunk

_Written = ast.Tuple | ast.List | ast.Set | ast.Dict


def among(numbers: ComparedNumbers, left: ast.expr, right: ast.expr, torch: str) -> Condition | None:
    """Whether `left` is among constants; None where they are not known to be numbers, or `right` is anything else."""
    if writes([left]):
        return None
    if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        written = right.elts
        return (
            _one_by_one(numbers, left, written, torch) if written and all(map(_is_number, written)) else None
        )
    return _in_tensor(numbers, left, right, torch)


def _one_by_one(
    numbers: ComparedNumbers, left: ast.expr, written: list[ast.expr], torch: str
) -> Condition | None:
    kinds, source = numbers.kinds, numbers.source
    # A tensor itself compares in its own dtype.
    exact = kinds.of(left).what == "tensor" or all(is_exact(kinds.of(each)) for each in written)
    text = numbers.as_tensor(left, exact)
    if text is None:
        parts = [f"({source.of(left)} == {source.of(each)})" for each in written]
        numbers.refuse_conversions(left)
        return Condition(" | ".join(parts), "symbol", is_bool=True)
    *before, whole = [f"{primary(text)} == {source.of(each)}" for each in written]
    for each in reversed(before):
        whole = f"{torch}.logical_or({each}, {whole})"
    return Condition(whole, "tensor", numbers.tensor_kind(left).rank, "bool", True)


def _in_tensor(numbers: ComparedNumbers, left: ast.expr, right: ast.expr, torch: str) -> Condition | None:
    kinds, source = numbers.kinds, numbers.source
    held = source.of(right)
    is_range = isinstance(right, ast.Call) and dotted(right.func) == "range"
    exact, hashed = True, False
    if is_range:
        assert isinstance(right, ast.Call)
        if right.keywords or any(kinds.of(each).what not in ("number", "size") for each in right.args):
            return None
        exact = all(is_exact(kinds.of(each)) for each in right.args)
    else:
        known = _constants(numbers, right)
        if known is None:
            return None
        found, hashed = known
        exact = all(is_exact(of_value(each, "")) for each in found)
    if (numbers.tensor_kind(left).dtype or "").startswith(("int", "uint")):
        exact = True
    itself = kinds.of(left).what == "tensor"
    if itself and (hashed or not exact):
        # A set asks a tensor for its hash, which is that of the object; a tensor compares in its own dtype.
        return None
    text = numbers.as_tensor(left, exact)
    if text is None:
        numbers.refuse_conversions(left)
    given = source.of(left) if text is None else text
    # A number that may be no int compares as a double; a tensor of integers would compare with it in single precision.
    unsure = text is None and kinds.of(left).what == "unknown"
    told = [f"dtype={torch}.float64"] if unsure or not exact else []
    told += [] if text is None else [f"device={primary(source.of(_read_out_of(left)))}.device"]
    if is_range:
        assert isinstance(right, ast.Call)
        made = f"{torch}.arange({', '.join([*map(source.of, right.args), *told])})"
    else:
        made = f"{torch}.tensor({', '.join([f'list({held})' if hashed else held, *told])})"
    return Condition(f"({made} == {given}).any()", "tensor", 0, "bool", True)


def _read_out_of(node: ast.expr) -> ast.expr:
    """The tensor that `t.item()` and `int(t)` read."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return node.func.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return _read_out_of(node.args[0])
    return node


def _constants(numbers: ComparedNumbers, node: ast.expr) -> tuple[list[Value], bool] | None:
    """The numbers that what `node` names holds, and whether it finds them by hash; None where they are not known."""
    kinds = numbers.kinds
    value = kinds.of(node).value
    if isinstance(value, Items) and value.items is not None:
        return (value.items, value.kind not in ("list", "tuple")) if _are_numbers(value.items) else None
    if isinstance(value, Mapping_) and value.rest is None:
        keys: list[Value] = [Const(each) for each in value.items]
        return (keys, True) if _are_numbers(keys) else None
    if isinstance(node, ast.Name) and node.id not in kinds.names and node.id not in kinds.modules:
        bound = list(_bound_in_file(node.id, kinds.around))
    elif isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        bound = list(_bound_in_class(node, numbers.source))
    else:
        return None
    written = bound[0] if len(bound) == 1 else None
    by_call = False
    if isinstance(written, ast.Call) and len(written.args) == 1 and not written.keywords:
        made = dotted(written.func)
        if made not in ("frozenset", "set", "tuple", "list"):
            return None
        by_call = made in ("frozenset", "set")
        written = written.args[0]
    if not isinstance(written, _Written):
        return None
    elements = [each for each in (written.keys if isinstance(written, ast.Dict) else written.elts) if each]
    if not all(map(_is_number, elements)):
        return None
    values = [kinds.of(each).value for each in elements]
    constants = [each for each in values if each is not None]
    return (
        (constants, by_call or isinstance(written, (ast.Set, ast.Dict))) if _are_numbers(constants) else None
    )


def _bound_in_file(name: str, chunks: Iterable[Chunk]) -> Iterator[ast.expr | None]:
    """What the file binds `name` to; None for what else is done to it: an item is set, a method is called."""
    for node in (each for chunk in chunks for one in chunk.body for each in ast.walk(one)):
        if isinstance(node, ast.Assign) and name in map(dotted, node.targets):
            yield node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)) and dotted(node.target) == name:
            yield node.value if isinstance(node, ast.AnnAssign) else None
        elif isinstance(node, ast.Global):
            yield from [None] * (name in node.names)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and dotted(node.value) == name:
            yield from [None] * (isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load))


def _bound_in_class(node: ast.Attribute, source: Source) -> Iterator[ast.expr | None]:
    """What the body of the class around `node` binds the attribute to; None for what methods do to it."""
    around = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    for each in around.body if around is not None else ():
        if isinstance(each, (ast.Assign, ast.AnnAssign)):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if node.attr in map(dotted, targets):
                yield each.value
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Attribute) and one.attr == node.attr:
            parent = source.parents[one]
            item = isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
            if not isinstance(one.ctx, ast.Load) or item or isinstance(parent, ast.Attribute):
                yield None


def _are_numbers(values: list[Value]) -> bool:
    return all(isinstance(each, Const) and type(each.value) in (int, float) for each in values)


def _is_number(node: ast.expr | None) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
