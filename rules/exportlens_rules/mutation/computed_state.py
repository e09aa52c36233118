"""What a write of an attribute is computed of: of what the attribute was, or of the very same tensor, moved or converted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.classes import class_attribute
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import Function, Instance, Mapping_, Sequence, Tensor, Value, options

from exportlens_rules.mutation.state_reads import converts, loaded, reads
from exportlens_rules.reading import ancestors


def parts_of(value: Value) -> Iterator[Value]:
    """What `value` may be; of a tuple, a list or a dict, as the state of an LSTM and of several layers is one, its items."""
    for option in options(value):
        if isinstance(option, Sequence) and option.kind in ("tuple", "list") and option.items:
            yield from option.items
        elif isinstance(option, Sequence) and option.kind == "list" and option.element is not None:
            yield from options(option.element)
        elif isinstance(option, Mapping_) and option.kind == "dict" and option.items and option.rest is None:
            for item in option.items.values():
                yield from parts_of(item)
        else:
            yield option


def is_computed_from_itself(place: AttributeWrite) -> bool:
    """Whether the assigned expression reads the very attribute."""
    for outer in [place.node, *ancestors(place)]:
        if isinstance(outer, ast.Assign):
            parts = [
                part
                for target in outer.targets
                for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
            ]
            targets = [
                ast.dump(loaded(part))
                for part in parts
                if isinstance(part, ast.Attribute) and part.attr == place.attr
            ]
            return any(
                not converts(value, targets)
                and (reads(value, targets) or _is_read_in_branch(place, value, targets))
                and not _may_be_given_back(place, value, targets)
                and not is_handed_back(place, value, targets)
                for value in _results(outer.value)
            )
    return False


def is_handed_back(place: AttributeWrite, value: ast.expr, targets: list[str]) -> bool:
    """Whether a function is given the tensor and gives it back moved or converted: `self.grid = to_device(self.grid, x.device)`."""
    return (
        isinstance(value, ast.Call)
        and any(ast.dump(each) in targets for each in value.args)
        and holds_the_same(place)
    )


def holds_the_same(place: AttributeWrite) -> bool:
    """Whether all that is bound is what the attribute held, moved or converted."""
    old = [*parts_of(place.old)] if place.old is not None else []
    roots = {part.root for part in old if isinstance(part, Tensor)}
    if not isinstance(place.value, (Sequence, Mapping_)):
        # 0 is no storage: all have it whose storage is not followed, such as items of a list. What is no item has a name.
        roots.discard(0)
    return all(
        any(part is each or (part == each and isinstance(part, Tensor) and part.name) for each in old)
        # A conversion keeps the name that a tensor is known by.
        or (isinstance(part, Tensor) and part.name == f"self.{place.attr}")
        or (isinstance(part, Tensor) and part.converted and part.root in roots)
        for part in parts_of(place.value)
    )


def _is_read_in_branch(place: AttributeWrite, value: ast.expr, targets: list[str]) -> bool:
    """Whether `value` is what torch.cond gives, one of whose functions reads the very attribute."""
    function = place.site.function
    parts = [] if function is None else list(ast.walk(function.node))
    if isinstance(value, ast.Name):
        given = [
            each.value
            for each in parts
            if isinstance(each, ast.Assign)
            and any(
                isinstance(one, ast.Name) and one.id == value.id
                for target in each.targets
                for one in ast.walk(target)
            )
        ]
        value = given[-1] if given else value
    if not isinstance(value, ast.Call) or ast.unparse(value.func).rpartition(".")[2] != "cond":
        return False
    names = {each.id for each in value.args if isinstance(each, ast.Name)}
    arms = [each for each in parts if isinstance(each, ast.FunctionDef) and each.name in names]
    return any(reads(statement, targets) for arm in arms for statement in arm.body)


def _may_be_given_back(place: AttributeWrite, value: ast.expr, targets: list[str]) -> bool:
    """Whether a method of the same object may return the tensor that it got, as one does that makes a table longer when it must."""
    if not (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id == "self"
        and isinstance(place.owner, Instance)
    ):
        return False
    method, _, _ = class_attribute(place.owner.cls, value.func.attr)
    if not isinstance(method, Function):
        return False
    names = [parameter.arg for parameter in method.node.args.args][1:]
    given = [*zip(names, value.args, strict=False), *((each.arg, each.value) for each in value.keywords)]
    return any(
        name is not None and ast.dump(argument) in targets and _gives_back(method.node, name)
        for name, argument in given
    )


def _gives_back(method: ast.AST, name: str) -> bool:
    """Whether a `return` hands out a parameter to which nothing but its own conversion was bound above."""
    parameter = [ast.dump(ast.Name(name, ast.Load()))]
    changed = [
        node.lineno
        for node in ast.walk(method)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        and any(
            isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
            for part in ast.walk(node)
        )
        and not converts(node.value, parameter)
    ]
    return any(
        isinstance(node, ast.Return)
        and node.value is not None
        and converts(node.value, parameter)
        and not any(line < node.lineno for line in changed)
        for node in ast.walk(method)
    )


def _results(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may give: both sides of a ternary."""
    if isinstance(value, ast.IfExp):
        yield from _results(value.body)
        yield from _results(value.orelse)
    else:
        yield value
