"""The state of a recurrent layer that is carried on in an attribute: `out, self.hidden = self.lstm(x, self.hidden)`.

What the layer gives is bound to a name and written into the tensors that the attribute holds, which become buffers. The
state that torch's layers give has the shape of the one that they are given, so that it can be written there.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Edit, Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue, Instance, Sequence, Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.state.joined_classes import class_with_bases
from exportlens.rewriting.state.registrations import register_tensor

_LAYERS = frozenset(f"torch.nn.{name}{cell}" for name in ("LSTM", "GRU", "RNN") for cell in ("", "Cell"))


def copy_state_of_layer(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix for an attribute that is set together with other targets by a recurrent layer's call."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        statement = draft.source.enclosing_statement(node)
        owner = place.owner.cls if isinstance(place.owner, Instance) else None
        target = _target(draft, statement, place.attr)
        if not isinstance(owner, ClassValue):
            raise Refused("the class that holds the state is not known")
        text = ast.unparse(target)
        _refuse_other_names(draft, statement, text)
        taken = draft.taken(draft.source.tree)
        new = next(
            each for each in map((place.attr + "{}").format, ("", *range(2, 100))) if each not in taken
        )
        indent, nl = draft.source.indent_of(statement), draft.source.newline
        if isinstance(place.old, Tensor):
            lines = [f"{text}.copy_({new})"]
            registered: list[Edit] = []
            if place.old.origin != "buffer":
                fix = register_tensor(place, place.attr, owner, context)
                if isinstance(fix, Refusal):
                    return fix
                registered = list(fix.edits)
        else:
            old, now = ("old", "new") if not {"old", "new"} & {*taken, new} else ("kept", "given")
            lines = [f"for {old}, {now} in zip({text}, {new}):"]
            lines.append(f"{draft.source.indent_unit()}{old}.copy_({now})")
            registered = _registered_items(place, owner, context)
        end = draft.source.end(statement)
        # The layer's backward reads what it was given: it is given a copy of what is written to.
        given = [each for each in ast.walk(statement) if _loads(each, text)]
        alone = isinstance(place.old, Tensor)
        copied = f"{text}.clone()" if alone else f"tuple(each.clone() for each in {text})"
        swaps = [
            draft.source.swap(target, new),
            *(draft.source.swap(each, copied) for each in given),
            Replacement(end, end, "".join(f"{nl}{indent}{line}" for line in lines)),
        ]
        fix = draft.replace("Write into the state with `copy_`", swaps, uses_torch=False)
        return Fix(fix.message, (*registered, *fix.edits), Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _target(draft: Draft, statement: ast.stmt, attribute: str) -> ast.Attribute:
    """`self.attribute` among the targets of a call of one of torch's layers."""
    targets = (
        statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    )
    found = [
        each
        for each in (targets.elts if isinstance(targets, ast.Tuple) else [])
        if isinstance(each, ast.Attribute) and each.attr == attribute and ast.unparse(each.value) == "self"
    ]
    call = statement.value if isinstance(statement, ast.Assign) else None
    if len(found) != 1 or not isinstance(call, ast.Call) or not _is_layer(draft, call.func):
        raise Refused("the attribute is set together with other targets")
    source = draft.source
    if not source.begins_line(statement) or ";" in source.text[source.end(statement) :].partition("\n")[0]:
        raise Refused("the statement shares its line with others")
    return found[0]


def _is_layer(draft: Draft, node: ast.expr) -> bool:
    made = [
        each.value
        for each in ast.walk(draft.source.tree)
        if isinstance(each, ast.Assign) and any(ast.unparse(one) == ast.unparse(node) for one in each.targets)
    ]
    return bool(made) and all(
        isinstance(each, ast.Call) and draft.qualified(each.func) in _LAYERS for each in made
    )


def _loads(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == text


def _refuse_other_names(draft: Draft, statement: ast.stmt, text: str) -> None:
    """Raise Refused where the state of before may still be read when it is written to, or is given away."""
    function = draft.source.enclosing_function(statement)
    for each in ast.walk(function) if function is not None else ():
        if _loads(each, text):
            parent = draft.source.parents[each]
            kept = isinstance(parent, (ast.Assign, ast.Return, ast.List, ast.Dict, ast.NamedExpr))
            shared = isinstance(parent, ast.Tuple) and not isinstance(draft.source.parents[parent], ast.Call)
            if kept or shared or isinstance(parent, ast.Subscript):
                raise Refused(
                    f"`{text}` has another name, or is given away: a write would change that as well"
                )


def _registered_items(place: AttributeWrite, owner: ClassValue, context: RewriteContext) -> list[Edit]:
    """The edits that make each tensor of the tuple, which `__init__` sets, a buffer."""
    old = place.old
    items = old.items if isinstance(old, Sequence) and old.kind == "tuple" else None
    if not items or not all(isinstance(each, Tensor) for each in items):
        raise Refused("the state is not known to be a tuple of tensors")
    draft, node = class_with_bases(owner, place.attr, context)
    source = draft.source
    text = f"self.{place.attr}"
    made = [
        each
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in method.body
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [text]
    ]
    if len(made) != 1 or f"{place.attr}_0" in source.text:
        raise Refused(f"`{text}` is not set once in `__init__`")
    if isinstance(made[0].value, ast.Constant):
        raise Refused(f"`{text}` is `{source.of(made[0].value)}` until a call sets it")
    taken = draft.taken(source.tree)
    number, each = ("number", "each") if not {"number", "each"} & set(taken) else ("index", "tensor")
    indent, unit, nl = source.indent_of(made[0]), source.indent_unit(), source.newline
    lines = [
        f"for {number}, {each} in enumerate({text}):",
        f'{unit}self.register_buffer(f"{place.attr}_{{{number}}}", {each}, persistent=False)',
    ]
    # One tensor may stand there twice: each has to be its own to be written to.
    value = f"tuple({each}.clone() for {each} in {source.of(made[0].value)})"
    end = source.end(made[0])
    swaps = [
        source.swap(made[0].value, value),
        Replacement(end, end, "".join(f"{nl}{indent}{line}" for line in lines)),
    ]
    return list(draft.replace("", swaps, uses_torch=False).edits)
