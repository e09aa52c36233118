"""Lists that are made of a tensor's numbers, as the tensor that they are made of: what is asked of all numbers, torch asks at once."""

from __future__ import annotations

import ast
import math

from exportlens.inference.values import Const
from exportlens.rewriting.code.names import arguments, bound, dotted, reads
from exportlens.rewriting.code.precedence import standing
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.int_evidence import is_int_of_tensor
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

# What is asked of a list and leaves it as it is.
_ASKING = frozenset({"index", "count", "copy"})
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def in_brackets(text: str) -> str:
    """`text` so that an operator or a method may follow."""
    node = parse_python(f"({text})", mode="eval").body
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return standing(text) if plain else f"({text})"


def tensor_of_list(source: Source, node: ast.expr, kinds: Kinds) -> ast.expr | None:
    """The tensor of one dimension, as far as is known, of whose numbers the list `node` is made; None where that is not known, or
    where the list or the tensor is changed in between."""
    call: ast.expr | None = node
    if isinstance(node, ast.Name):
        call = bound_once(source, node)
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "tolist"
        or call.args
        or call.keywords
    ):
        return None
    tensor = call.func.value
    kind = kinds.of(tensor)
    return tensor if kind.what == "tensor" and kind.rank in (None, 1) else None


def bound_once(source: Source, name: ast.Name) -> ast.expr | None:
    """What the list `name` is bound to, where nothing else is, where nothing changes it, and what it is made of stays as it is."""
    function = source.enclosing_function(name)
    while function is not None and name.id not in bound(function.body):
        # An arm of a branch that was rewritten before reads the names of the function around it.
        function = source.enclosing_function(function)
    if function is None or name.id in {each.arg for each in arguments(function.args)}:
        return None
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name.id]
    stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
    statement = source.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(statement, ast.Assign) or statement.targets != stores:
        return None
    for each in same:
        parent = source.parents[each]
        if isinstance(parent, ast.Attribute) and parent.attr not in _ASKING:
            return None
        if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
            return None
        if isinstance(parent, ast.AugAssign):
            return None
    made_of = reads(statement.value)
    later = [
        each
        for each in walk(function)
        if isinstance(each, ast.stmt) and source.start(each) > source.start(statement)
    ]
    if made_of & set(bound(later)) or any(_writes(each, made_of) for one in later for each in ast.walk(one)):
        return None
    return statement.value


def _writes(node: ast.AST, names: set[str]) -> bool:
    """Whether `node` writes in place to what one of `names` is, or to a part of it."""
    base: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        base = node.func.value
    while isinstance(base, (ast.Subscript, ast.Attribute, ast.Call)):
        base = base.func if isinstance(base, ast.Call) else base.value
    return isinstance(base, ast.Name) and base.id in names


def asked_of_all(
    source: Source, test: ast.expr, name: str, tensor: ast.expr, kinds: Kinds, exactly: bool
) -> str | None:
    """The text that asks `test` of all elements of `tensor` at once, each of which is `name`; None where more is asked, or `exactly`
    the numbers of Python are meant, and those of the tensor's dtype would compare otherwise."""
    if name not in reads(test):
        return None
    if isinstance(test, ast.Name):
        return f"{in_brackets(source.of(tensor))} != 0"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = asked_of_all(source, test.operand, name, tensor, kinds, exactly)
        return None if inner is None else f"~({inner})"
    if isinstance(test, ast.BoolOp):
        parts = [asked_of_all(source, each, name, tensor, kinds, exactly) for each in test.values]
        word = " & " if isinstance(test.op, ast.And) else " | "
        return None if None in parts else word.join(f"({each})" for each in parts)
    if isinstance(test, ast.Compare) and len(test.ops) == 2:
        # Where the middle is the element itself, asking twice for it changes nothing.
        middle = test.comparators[0]
        if not isinstance(middle, ast.Name) or middle.id != name:
            return None
        parts = [asked_of_all(source, each, name, tensor, kinds, exactly) for each in apart(test)]
        return None if None in parts else " & ".join(f"({each})" for each in parts)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _COMPARED):
        return None
    sides = [test.left, test.comparators[0]]
    own = [each for each in sides if isinstance(each, ast.Name) and each.id == name]
    other = [each for each in sides if each not in own]
    if len(own) != 1 or name in reads(other) or not _is_comparable(source, other[0], tensor, kinds, exactly):
        return None
    return source.of(test, [source.swap(own[0], in_brackets(source.of(tensor)))])


def apart(test: ast.Compare) -> list[ast.Compare]:
    """The comparisons of a chain, each where it stands."""
    operands = [test.left, *test.comparators]
    found = []
    for left, op, right in zip(operands, test.ops, operands[1:], strict=False):
        part = ast.copy_location(ast.Compare(left, [op], [right]), left)
        part.end_lineno, part.end_col_offset = right.end_lineno, right.end_col_offset
        found.append(part)
    return found


def equal_to(source: Source, value: ast.expr, tensor: ast.expr, kinds: Kinds) -> str | None:
    """The text that asks which elements of `tensor` are the number `value`; None where that may be another answer than a list's."""
    if not _is_comparable(source, value, tensor, kinds, True):
        return None
    return f"{in_brackets(source.of(tensor))} == {in_brackets(source.of(value))}"


def _is_comparable(source: Source, value: ast.expr, tensor: ast.expr, kinds: Kinds, exactly: bool) -> bool:
    kind = kinds.of(value)
    if kind.what not in ("number", "size", "scalar"):
        return False
    if any(isinstance(each, ast.Call) for each in walk(value)) and dotted(value) is None:
        return False
    dtype = kinds.of(tensor).dtype or ""
    # Each float of 32 bits is one of 64, but a float of 64 bits is rounded beside a tensor.
    if not exactly or kind.type in ("int", "bool") or dtype == "float64" or _is_exact(kind):
        return True
    return not kind.type.startswith("float") and is_int_of_tensor(source, value)


def _is_exact(kind: Kind) -> bool:
    """Whether every float dtype of torch holds the number (bfloat16 has 8 significant bits)."""
    if kind.what != "number" or not isinstance(kind.value, Const):
        return False
    mantissa, exponent = math.frexp(float(kind.value.value))
    return (mantissa * 256).is_integer() and -13 < exponent < 15
