"""Keys of `dynamic_shapes` that name no input become the names of the inputs that stand there; inputs left out get None."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall
from exportlens.inference.values import Const, Mapping_, Sequence, Value
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement

_UNTOLD = "which argument is meant is for you to say: write its name as `forward` has it"


def named_as_inputs(place: ExportCall, parameters: list[str], context: RewriteContext) -> Fix | Refusal:
    """`{"x": ..., "mask": ...}` -> `{"tokens": ..., "mask": ...}`, where there is one key for each input, and those that are
    right stand in the inputs' order; `{"tokens": ...}` -> `{"tokens": ..., "mask": None}`."""
    try:
        draft = Draft.of(place, context)
        written = _written(draft, place)
        keys = [each.value for each in written.keys if isinstance(each, ast.Constant)]
        inputs = given_inputs(place, parameters)
        if len(keys) == len(written.keys) and keys and set(keys) < set(inputs):
            return _completed(draft, written, [name for name in inputs if name not in keys])
        if len(keys) != len(written.keys) or len(keys) != len(inputs):
            raise Refused(_UNTOLD)
        # The right ones show whether the keys stand as the inputs do; a single other one can mean nothing else.
        wrong = [key for key in keys if key not in inputs]
        missing = [name for name in inputs if name not in keys]
        in_order = all(key == name for key, name in zip(keys, inputs, strict=True) if key in inputs)
        if len(wrong) > 1 and not in_order:
            raise Refused(_UNTOLD)
        names = dict(zip(wrong, missing, strict=True))
        swaps = [
            draft.source.swap(each, f'"{names[each.value]}"')
            for each in written.keys
            if isinstance(each, ast.Constant) and each.value in names
        ]
        renamed = ", ".join(f"`{names[key]}`" for key in wrong)
        return draft.replace(f"Name {renamed}, as forward does", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError, ValueError) as refused:
        return Refusal(str(refused))


def _completed(draft: Draft, written: ast.Dict, missing: list[str]) -> Fix:
    """The dict with None for the inputs that it does not name."""
    end = draft.source.end(written.values[-1])
    added = "".join(f', "{name}": None' for name in missing)
    words = ", ".join(f"`{name}`" for name in missing)
    return draft.replace(f"Name {words}, too", [Replacement(end, end, added)], uses_torch=False)


def _written(draft: Draft, place: ExportCall) -> ast.Dict:
    """The dict as it is written: in the call, or where the name that the call gives is bound, once."""
    node: ast.AST = draft.source.find(place.nodes["dynamic_shapes"])
    if isinstance(node, ast.Name):
        name = node.id
        bindings = [
            each
            for each in ast.walk(draft.source.tree)
            if isinstance(each, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
        ]
        uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(draft.source.tree))
        if len(bindings) == 1 and uses == len(bindings) + 1:
            node = bindings[0].value
    if not isinstance(node, ast.Dict):
        raise Refused("`dynamic_shapes` is not written for this call alone")
    return node


def given_inputs(place: ExportCall, parameters: list[str]) -> list[str]:
    """The parameters that the call gives."""
    args, kwargs = place.arguments.get("args"), place.arguments.get("kwargs", Const(None))
    if not isinstance(args, Sequence) or args.items is None:
        raise Refused("the example inputs are not written where they can be read")
    named = _keys(kwargs)
    return [name for at, name in enumerate(parameters) if at < len(args.items) or name in named]


def _keys(value: Value) -> set[object]:
    if isinstance(value, Const) and value.value is None:
        return set()
    if not isinstance(value, Mapping_) or value.rest is not None:
        raise Refused("the inputs by keyword are not written where they can be read")
    return set(value.items)
