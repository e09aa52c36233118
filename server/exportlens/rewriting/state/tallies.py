"""Tallies: numbers of a model that it counts up, and that only others read, and lists that nothing reads: they are no part of
what it computes."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.constant_numbers import constant_number
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.number_types import counts_rounds, is_size
from exportlens.source.walking import walk

# Methods that run without being named by the class itself.
_RUN = ("forward", "__call__", "__getattr__", "extra_repr")


def is_tally(source: Source, node: ast.AugAssign | ast.Assign, kinds: Kinds) -> bool:
    """Whether `node` adds a number to an attribute of `self` that starts as a number, or sets it to one, or to a text, a flag or
    None, and nothing reads it which the model runs."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if owner is None or not (isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"):
        return False
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1 or not is_plain_value(source, node.value):
            return False
    elif not isinstance(node.op, (ast.Add, ast.Sub)) or not _gives_number(node.value):
        return False
    uses = [each for each in walk(owner) if isinstance(each, ast.Attribute) and each.attr == target.attr]
    others = [
        each
        for chunk in kinds.around
        for one in chunk.body
        if isinstance(one, ast.ClassDef) and one.name != owner.name
        for each in walk(one)
    ]
    # A Module that holds one of this class may run any method of it.
    run = {each.attr for each in others if isinstance(each, ast.Attribute)}
    for each in uses:
        parent = source.parents[each]
        if isinstance(each.ctx, ast.Load):
            method = source.enclosing_function(each)
            if method is None or method.name in _RUN or method.name in run or _is_named(owner, method.name):
                return False
        elif isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if parent.value is None or not (
                _gives_number(parent.value) or is_plain_value(source, parent.value)
            ):
                return False
        else:
            return False
    if target.attr in run:
        return False
    # What else the class extends may read it.
    bases = {ast.unparse(each).rpartition(".")[2] for each in owner.bases}
    return bases <= {"Module"} and any(isinstance(source.parents[each], ast.Assign) for each in uses)


def is_plain_number(source: Source, node: ast.expr) -> bool:
    """Whether `node` certainly is a number of Python, which nothing is run for: a constant, a size, a parameter that is declared as a
    number, the counter of a loop, or what is computed of those."""
    if constant_number(node) is not None:
        return True
    if is_size(node) and isinstance(node, ast.Call) and len(node.args) == 1:
        # `len(self.layers)`
        return dotted(node.args[0]) is not None and dotted(node.func) == "len"
    if isinstance(node, ast.BinOp):
        return is_plain_number(source, node.left) and is_plain_number(source, node.right)
    if isinstance(node, ast.Subscript):
        return (
            is_size(node) and isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name)
        )
    if isinstance(node, ast.Call):
        of = node.func.value if isinstance(node.func, ast.Attribute) else (*node.args, None)[0]
        asked = node.args if isinstance(node.func, ast.Attribute) else []
        plain = all(isinstance(each, (ast.Constant, ast.UnaryOp)) for each in asked)
        return is_size(node) and isinstance(of, ast.Name) and plain
    function = source.enclosing_function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    declared = next((each.annotation for each in arguments(function.args) if each.arg == node.id), None)
    if declared is not None and node.id not in bound(function.body):
        return ast.unparse(declared) in ("int", "float", "bool")
    return counts_rounds(source, function, node.id)


def is_plain_value(source: Source, node: ast.expr) -> bool:
    """Whether `node` is such a number, or a text, a flag or None that is written out."""
    plain = isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, str)))
    return plain or is_plain_number(source, node)


def is_unread(source: Source, node: ast.stmt) -> bool:
    """Whether `node` appends to a list of the function's own that nothing else than appending ever reads, and computes
    nothing for it that may do more."""
    function = source.enclosing_function(node)
    name = _appended_to(node)
    if function is None or name is None:
        return False
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    given = node.value.args[0]
    if any(isinstance(each, ast.Call) and not _only_asks(each) for each in walk(given)):
        return False
    starts = []
    for each in walk(function):
        if isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names:
            return False
        if isinstance(each, ast.Name) and each.id == name:
            parent = source.parents[each]
            if isinstance(each.ctx, ast.Load):
                outer = source.parents[source.parents[parent]]
                if not isinstance(outer, ast.Expr) or _appended_to(outer) != name:
                    return False
            else:
                starts.append(parent)
    return bool(starts) and all(
        isinstance(each, ast.Assign) and ast.unparse(each.value) in ("[]", "list()") for each in starts
    )


def _appended_to(node: ast.AST) -> str | None:
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords else None
    if isinstance(method, ast.Attribute) and method.attr == "append" and isinstance(method.value, ast.Name):
        return method.value.id
    return None


def _only_asks(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in ("len", "float", "int")
    return isinstance(call.func, ast.Attribute) and call.func.attr in (
        "item", "detach", "cpu", "numel", "size", "sum", "mean", "float", "clone", "data",
    )  # fmt: skip


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _gives_number(node: ast.expr) -> bool:
    """Whether `node` is a number of Python, as it is written: a constant, or what is read out of a tensor and nothing more."""
    if not isinstance(node, ast.Call) or not all(
        _only_asks(each) for each in walk(node) if isinstance(each, ast.Call)
    ):
        return _is_number(node)
    return ast.unparse(node.func) in ("int", "float", "len") or getattr(node.func, "attr", "") == "item"


def _is_named(owner: ast.ClassDef, name: str) -> bool:
    """Whether the class itself names the method."""
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in walk(owner))
