"""Flags and the like that a call reads, and then turns to a constant of another value for the next one: `self.ready = torch.tensor(True)`."""

from __future__ import annotations

import ast

from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue, Instance
from exportlens.outcome import OK, WRONG, Outcome

from exportlens_rules.mutation.read_by_others import is_read
from exportlens_rules.mutation.state_reads import loaded, read_before
from exportlens_rules.reading import ancestors

BUFFER = Outcome(WRONG, OK)
_FILLED = {"zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1}


def of_buffer(place: AttributeWrite) -> Outcome | None:
    """What becomes of a buffer that is bound anew: non-strict tracing takes up those of the model itself, of none of its Modules
    (measured on torch 2.13). None where the outcome is the rule's own."""
    inner = isinstance(place.owner, Instance) and place.owner.registered
    return None if inner else BUFFER


def is_turned(place: AttributeWrite) -> bool:
    """Whether a tensor that the constructor makes of one number is bound to one of another, after what it was has been read."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if statement is None or target is None or function is None or place.elsewhere:
        return False
    if not place.site.certain or place.site.conditions:
        return False
    if not isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    new, first = _number_in(statement.value), _first_number(place.owner, place.attr)
    if new is None or first is None or new == first:
        return False
    if read_before(function.node, statement, target):
        return True
    path = ast.dump(loaded(target))
    in_any_case = statement in function.node.body
    return in_any_case and any(
        reader is not function.node and is_read(reader, node, path) for reader, node in place.readers
    )


def _first_number(owner: object, attr: str) -> float | None:
    """The number that the class's constructor fills the tensor of the name `attr` with."""
    cls = owner.cls if isinstance(owner, Instance) else None
    if not isinstance(cls, ClassValue):
        return None
    found: list[ast.expr] = []
    for method in cls.node.body:
        if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
            continue
        for each in ast.walk(method):
            registers = isinstance(each, ast.Call) and getattr(each.func, "attr", "") == "register_buffer"
            if registers and isinstance(each, ast.Call) and len(each.args) > 1:
                name = each.args[0]
                if isinstance(name, ast.Constant) and name.value == attr:
                    found.append(each.args[1])
            elif isinstance(each, ast.Assign) and any(
                isinstance(one, ast.Attribute) and one.attr == attr for one in each.targets
            ):
                found.append(each.value)
    return _number_in(found[0]) if len(found) == 1 else None


def _number_in(node: ast.expr) -> float | None:
    """The number that all elements of a tensor made by `node` have."""
    if not isinstance(node, ast.Call):
        return None
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    if name in _FILLED:
        return _FILLED[name]
    given: ast.expr | None = None
    if name in ("tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "BoolTensor") and node.args:
        given = node.args[0]
        while isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 1:
            given = given.elts[0]
    elif name in ("full", "full_like", "new_full") and len(node.args) > 1:
        given = node.args[1]
    if (
        isinstance(given, ast.UnaryOp)
        and isinstance(given.op, ast.USub)
        and isinstance(given.operand, ast.Constant)
    ):
        value = given.operand.value
        return -value if isinstance(value, (int, float)) else None
    if isinstance(given, ast.Constant) and isinstance(given.value, (bool, int, float)):
        return float(given.value)
    return None
