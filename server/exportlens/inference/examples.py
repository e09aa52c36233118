"""The inputs that a file gives its own models as examples: in an export call, in a call of the model in the code around it, or by a
function or a name that says so (`get_example_inputs()`, `dummy_inputs = (torch.randn(2, 3),)`).

They tell of which dtype the inputs of `forward` are and how many dimensions they have. Their sizes are those of the example alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.constructions import constructions
from exportlens.inference.handed_parts import handed_parts
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.names import lookup_global
from exportlens.inference.places import AttributeWrite, ExportCall, Place
from exportlens.inference.scopes import ModuleScope
from exportlens.inference.sizes import of_sizes, sizes_of
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import (
    ClassValue,
    Function,
    Instance,
    Static,
    Tensor,
    Unknown,
    Value,
    options,
)
from exportlens.inference.values import Sequence as Items
from exportlens.source.document import Chunk

# `inputs`, `get_inputs`, `make_example_inputs`, `DUMMY_INPUT`, `sample_args`.
_PROVIDER = re.compile(
    r"(?:(?:get|make|build|create|gen|generate|default)_)?(?:(?:example|dummy|sample|test|random|model|forward|export|trace)_)?inputs?"
    r"|(?:(?:get|make|build|create|gen|generate|default)_)?(?:example|dummy|sample|test|forward|export|trace)_args",
    re.IGNORECASE,
)
# What the code around a model makes its inputs with.
_MADE = re.compile(r"\btorch\.(?:rand|randn|randint|zeros|ones|full|tensor|arange|linspace|eye)\b")
_LIMIT = 4_000
# By the name of a class what is known of the inputs of its forward, in order; None stands for one that is no tensor, or another
# one in each example.
Examples = Mapping[str, Sequence[Tensor | None]]
# By the name of an attribute, for each node that writes it, the place, whose value is a tensor with its sizes.
StateInSizes = Mapping[str, Mapping[ast.AST, AttributeWrite]]


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of one call of `cls`; where it is None, of a model that is not named."""

    cls: ClassValue | None
    args: tuple[Value, ...]


class _Exports:
    """An observer that only sees export calls."""

    def __init__(self) -> None:
        self.found: list[Given] = []

    def wants(self, place: type[Place]) -> bool:
        return place is ExportCall

    def wants_call(self, name: str) -> bool:
        return False

    def notice(self, place: Place) -> None:
        if not isinstance(place, ExportCall):
            return
        model, inputs = place.model, place.arguments.get("args")
        if isinstance(model, Instance) and isinstance(model.cls, ClassValue) and isinstance(inputs, Items):
            self.found.append(Given(model.cls, tuple(inputs.items or ())))


def example_chunks(scope: ModuleScope) -> Iterator[tuple[Chunk, ast.stmt]]:
    """The top-level statements that may give inputs as examples."""
    for placed in scope.document.placed:
        text = placed.chunk.text
        if "torch" not in text and "inputs" not in text:
            continue
        for statement in placed.chunk.body:
            if _provider(statement) or (_MADE.search(text) and _is_script(statement)):
                yield placed.chunk, statement


def _provider(statement: ast.stmt) -> str | None:
    """The name of a function without arguments, or of a value, that says that it gives inputs."""
    if isinstance(statement, ast.FunctionDef):
        spec = statement.args
        required = len(spec.posonlyargs) + len(spec.args) - len(spec.defaults)
        name = statement.name
        return name if not required and not statement.decorator_list and _PROVIDER.fullmatch(name) else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name) and _PROVIDER.fullmatch(target.id):
            return target.id
    return None


def _is_script(statement: ast.stmt) -> bool:
    """Whether `statement` is code around the models: the main block, or what runs when the file is imported."""
    return isinstance(statement, (ast.If, ast.With, ast.Assign, ast.Expr))


def examples(machine: Machine, scope: ModuleScope, classes: Sequence[ClassValue]) -> Examples:
    """What is known of the inputs of those of `classes` of which the document gives examples."""
    found = _calls(machine, scope)
    given: dict[str, list[Tensor | None]] = {}
    for cls in classes:
        own = [each.args for each in found if each.cls is not None and cls in class_order(each.cls)]
        if own:
            given[cls.name] = _joined(own)
    untold = [each.args for each in found if each.cls is None]
    if untold:
        fitting = [each for each in _outermost(classes) if _takes(each, untold)]
        if len(fitting) > 1:
            parts = handed_parts(scope)
            fitting = [each for each in fitting if each.name not in parts]
        if len(fitting) == 1:
            [model] = fitting
            forward = class_attribute(model, "forward")[0]
            for cls in classes:
                if cls is model or (
                    cls in class_order(model) and class_attribute(cls, "forward")[0] is forward
                ):
                    given.setdefault(cls.name, _joined(untold))
    return given


def _calls(machine: Machine, scope: ModuleScope) -> list[Given]:
    """Every call of a model with example inputs, and the inputs that functions and names give."""
    from exportlens.inference.calls import call_value
    from exportlens.inference.entries import run_script

    observer = _Exports()
    before, machine.observer, machine.called, machine.sized = machine.observer, observer, [], True
    limit, machine.limit = machine.limit, _LIMIT
    provided: list[Given] = []
    names = dict(scope.values)
    try:
        for chunk, statement in example_chunks(scope):
            name = _provider(statement)
            if name is None:
                run_script(machine, scope, chunk, statement, names)
                continue
            machine.steps = 0
            try:
                value = lookup_global(machine, name, scope)
                if isinstance(value, Function):
                    value = call_value(
                        machine,
                        value,
                        [],
                        {},
                        Frame(scope, chunk, scope.values, module_level=True),
                        statement,
                    )
            except (Raised, OutOfBudget, RecursionError):
                continue
            provided += [Given(None, args) for args in _inputs_of(value)]
        called = [Given(cls, args) for cls, args in machine.called]
    finally:
        machine.observer, machine.called, machine.sized, machine.limit = before, None, False, limit
        machine.steps = 0
    return [*observer.found, *called, *provided]


def _inputs_of(value: Value) -> Iterator[tuple[Value, ...]]:
    """The arguments of the calls that `value` holds: one tensor, a tuple of arguments, or a list of such tuples."""
    if isinstance(value, Tensor):
        yield (value,)
    if not isinstance(value, Items):
        return
    items = value.items if value.items is not None else [value.element] if value.element is not None else []
    if items and all(isinstance(each, Items) and each.kind == "tuple" for each in items):
        for each in items:
            assert isinstance(each, Items)
            if each.items is not None:
                yield tuple(each.items)
    elif value.items is not None:
        yield tuple(value.items)


def _joined(calls: Sequence[tuple[Value, ...]]) -> list[Tensor | None]:
    """What all `calls` agree on of each argument."""
    joined: list[Tensor | None] = []
    for index in range(max(map(len, calls))):
        column = [each for args in calls if index < len(args) for each in options(args[index])]
        tensors = [each for each in column if isinstance(each, Tensor)]
        if not tensors or len(tensors) < len(column):
            joined.append(None)
            continue
        dtypes, ranks = {each.dtype for each in tensors}, {each.rank for each in tensors}
        if len(dtypes) > 1:
            # `float32` and `float` are both some float.
            dtypes = {None if each is None else each.rstrip("0123456789") for each in dtypes}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        rank = ranks.pop() if len(ranks) == 1 else None
        sizes = {sizes_of(each) for each in tensors}
        joined.append(of_sizes(Tensor("input", "", dtype, rank), sizes.pop() if len(sizes) == 1 else None))
    return joined


def _outermost(classes: Sequence[ClassValue]) -> list[ClassValue]:
    """Those of `classes` that no other one makes objects of, or inherits from."""
    held = {
        each.id
        for cls in classes
        for node in cls.node.body
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id != cls.name
    }
    bases = {base.name for cls in classes for base in class_order(cls)[1:] if isinstance(base, ClassValue)}
    return [cls for cls in classes if cls.name not in held | bases]


def _takes(cls: ClassValue, calls: Iterable[tuple[Value, ...]]) -> bool:
    """Whether `forward` of `cls` may be called with as many arguments."""
    forward = class_attribute(cls, "forward")[0]
    if not isinstance(forward, Function):
        return False
    spec = forward.node.args
    names = [*spec.posonlyargs, *spec.args][1:]
    required = len(names) - len(forward.defaults)
    return all(
        required <= len(args) and (len(args) <= len(names) or spec.vararg is not None) for args in calls
    )


def told_by(machine: Machine, example: Tensor, value: Value, name: str, annotated: bool) -> Value:
    """`value`, which the parameter `name` of `forward` is taken to have, with what its `example` tells: an annotation, and what
    only another value can do, say more than one example does. As a number, many tensors of one element are annotated."""
    if isinstance(value, Tensor) and value.origin == "input":
        rank = value.rank if value.rank is not None else example.rank
        told = replace(value, dtype=value.dtype or example.dtype, rank=rank)
        return of_sizes(told, sizes_of(example)) if machine.sized else told
    untold = isinstance(value, (Unknown, Static)) or (isinstance(value, Items) and value.guessed)
    number = isinstance(value, Static) and value.type in ("int", "float") and example.rank == 0
    if not untold or (annotated and not number):
        return value
    told = Tensor("input", name, example.dtype, example.rank, False, machine.new_root())
    return of_sizes(told, sizes_of(example)) if machine.sized else told


class _Writes:
    """An observer that sees what traced code writes to attributes; of later calls only what is a tensor of known sizes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.found: dict[str, dict[ast.AST, list[AttributeWrite]]] = {}

    def wants(self, place: type[Place]) -> bool:
        return place is AttributeWrite

    def wants_call(self, name: str) -> bool:
        return False

    def notice(self, place: Place) -> None:
        if isinstance(place, AttributeWrite) and (
            not self.machine.later or all(sizes_of(each) is not None for each in options(place.value))
        ):
            self.found.setdefault(place.attr, {}).setdefault(place.node, []).append(place)


def state_in_sizes(machine: Machine, classes: Iterable[ClassValue], given: Examples) -> StateInSizes:
    """What `classes` write to their attributes where they get inputs of the sizes of the examples `given`."""
    from exportlens.inference.entries import run_as_made

    observer = _Writes(machine)
    machine.observer, machine.sized = observer, True
    for cls in classes:
        if cls.name in given:
            machine.steps = 0
            run_as_made(machine, cls, given[cls.name], constructions(cls.scope, cls.name))
    found: dict[str, dict[ast.AST, AttributeWrite]] = {}
    for attr, nodes in observer.found.items():
        for node, places in nodes.items():
            tensors = [each for place in places for each in options(place.value)]
            alike = {(sizes_of(each), dtype_family(getattr(each, "dtype", None))) for each in tensors}
            first = tensors[0]
            if len(alike) == 1 and isinstance(first, Tensor) and sizes_of(first) is not None:
                found.setdefault(attr, {})[node] = replace(places[0], value=first)
    return found
