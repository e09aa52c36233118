"""Entry points: where tracing starts, and one interpretation from there."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from exportlens.inference.attribute_writes import keep_attribute
from exportlens.inference.begun_outside import begin_outside, tell_begun
from exportlens.inference.calls import call_value
from exportlens.inference.classes import class_attribute, class_order, is_module_class
from exportlens.inference.construction import instantiate
from exportlens.inference.constructions import (
    Construction,
    Outside,
    configurations,
    other_configurations,
    set_by_methods,
    switched,
)
from exportlens.inference.dynamic import any_declared, example_inputs
from exportlens.inference.examples import told_by
from exportlens.inference.functions import Spread, call_function
from exportlens.inference.handed_inputs import handed_inputs
from exportlens.inference.left_out import missing_beside_given
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.modules import has_forward
from exportlens.inference.names import lookup_global, taken_up
from exportlens.inference.number_names import called_like_a_number
from exportlens.inference.parameters import argument_value, default_instance, from_annotation
from exportlens.inference.places import ExportCall, Output
from exportlens.inference.scopes import ModuleScope
from exportlens.inference.uses import asked_for_truth, supposed_tensor
from exportlens.inference.values import (
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Sequence,
    Static,
    Tensor,
    Unknown,
    Value,
    options,
)
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

# How deep containers and parts of a model are looked into for tensors.
_MAX_NESTING = 4
# Each is one more interpretation of the model.
_MOST_RUNS = 6


def module_classes(machine: Machine, scope: ModuleScope, only: str | None = None) -> Iterator[ClassValue]:
    """The nn.Module classes that a document defines at its top level and that have a forward to trace; `only` one of its names."""
    for name, bindings in scope.bindings.items() if only is None else [(only, scope.bindings[only])]:
        if not any(isinstance(statement, (ast.ClassDef, ast.If, ast.Try)) for _, statement in bindings):
            continue
        value = lookup_global(machine, name, scope)
        if (
            isinstance(value, ClassValue)
            and value.scope is scope
            and value.name == name
            and is_module_class(value)
            and _traced(value) is not None
            and (has_forward(value) is not None or not is_part_of_others(_statements(scope), name))
        ):
            yield value


def _statements(scope: ModuleScope) -> list[ast.stmt]:
    return [
        statement
        for bindings in scope.bindings.values()
        for _, statement in bindings
        if isinstance(statement, ast.ClassDef)
    ]


def is_part_of_others(statements: Iterable[ast.stmt], name: str) -> bool:
    """Whether the constructor of another class makes objects of the class `name`: one that has a `__call__` and no `forward`, as a
    gate or a controller, is no model by itself, and is called with what those others have."""
    return any(
        isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == name
        for each in statements
        if isinstance(each, ast.ClassDef) and each.name != name
        for method in each.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for made in ast.walk(method)
    )


def run_class(
    machine: Machine,
    cls: ClassValue,
    examples: Iterable[Tensor | None] = (),
    made: Iterable[Construction] = (),
    outside: Outside = frozenset(),
) -> None:
    """Make an instance of `cls` with its defaults and trace its forward; places go to the machine's observer.

    Arguments that may be left out are left out first, as most exports do, and given in a second run: what only that one finds is
    marked as uncertain, unless the model cannot run without them. Arguments that are as likely numbers of Python are taken for
    tensors in a run of their own. Of what the file gives it as `examples` the dtypes and the numbers of dimensions are known.
    Where the file itself has `made` objects that its arguments configure another way than the defaults do, those are traced too; so is
    one whose flags the file sets from `outside`, or calls methods to set.
    """
    forward = _traced(cls)
    if forward is None:
        return
    spec = _signature(cls, forward).node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)][1:]
    given = tuple(examples)
    machine.told = {name: each for name, each in zip(names, given, strict=False) if each is not None}
    machine.told_rest = given[len(names) :]
    machine.outside, machine.set_outside = outside, {}
    try:
        _run_with_and_without(machine, cls, forward)
        flags, set_outside = machine.flags, machine.set_outside
        machine.outside = frozenset()
        _run_supposing(machine, cls, forward)
        init, _, _ = class_attribute(cls, "__init__")
        if isinstance(init, Function):
            for given_to_init in other_configurations(machine, cls, _signature(cls, init), made):
                machine.configured = given_to_init
                _run_with_and_without(machine, cls, forward)
            machine.configured = {}
            machine.switched = {(name,): each for name, each in switched(flags, outside).items()}
            machine.switched = {**machine.switched, **set_outside}
            if machine.switched:
                _run_with_and_without(machine, cls, forward)
    finally:
        machine.told, machine.told_rest = {}, ()
        machine.configured, machine.switched = {}, {}
        machine.begun = {}


def run_as_made(
    machine: Machine, cls: ClassValue, examples: Iterable[Tensor | None], made: Iterable[Construction]
) -> None:
    """As `run_class`, of the objects that are `made` alone; with the defaults where none is."""
    init, _, _ = class_attribute(cls, "__init__")
    found = configurations(machine, cls, _signature(cls, init), made) if isinstance(init, Function) else []
    for given_to_init in found or [{}]:
        machine.configured = given_to_init
        run_class(machine, cls, examples)


def _run_supposing(machine: Machine, cls: ClassValue, forward: Function) -> None:
    """One interpretation in which the arguments that nothing tells of, and that tests compare, are tensors."""
    written = _signature(cls, forward)
    spec = written.node.args
    positional = [*spec.posonlyargs, *spec.args][1:]
    needed = positional[: len(positional) - len(written.defaults)]
    supposed = {
        each.arg: supposed_tensor(machine, written, each.arg)
        for each in positional
        if each.annotation is None and each.arg not in machine.told
    }
    # What may be left out and is compared as a whole is mostly an option: `threshold=None`.
    may_be_left_out = {
        each.arg
        for each, default in zip(positional[len(needed) :], written.defaults, strict=True)
        if default == Const(None) and not asked_for_truth(machine, written, each.arg)
    }
    names = {each.arg for each in needed}
    machine.supposed = {
        name: value
        for name, value in supposed.items()
        if value is not None and (name in names or (name in may_be_left_out and value.rank != 0))
    }
    if machine.supposed:
        machine.doubt = 1
        _run_once(machine, cls, forward, given=frozenset())
    machine.supposed = {}


def _run_with_and_without(machine: Machine, cls: ClassValue, forward: Function) -> None:
    """The interpretations without the arguments that may be left out, and with them."""
    optional = _optional_inputs(machine, _signature(cls, forward))
    works = _run_once(machine, cls, forward, given=frozenset())
    refused = machine.refusals
    given = 0
    while not works and given < len(optional):
        # A model that stops without some of its optional inputs is exported with them: as few as let it run.
        given += 1
        works = _run_once(machine, cls, forward, given=frozenset(optional[:given]))
    if works and not given and refused and optional:
        # It gets to the end on some path, but the plain one ends in a `raise` that the first of them may prevent.
        given = int(_run_once(machine, cls, forward, given=frozenset(optional[:1])) and not machine.refusals)
    rest = optional[given:]
    if not rest:
        return
    if _run_with(machine, cls, forward, optional[:given], rest):
        # `if embeds is None: ... pixels ...`: neither all nor none of them leads there.
        for left_out in missing_beside_given(_signature(cls, forward).node, rest)[:_MOST_RUNS]:
            _run_with(machine, cls, forward, optional[:given], [name for name in rest if name != left_out])
    elif len(rest) > 1:
        # "Exactly one of `input_ids` and `inputs_embeds`": without the one that is refused beside others, or else one by one.
        for left_out in reversed(rest[-_MOST_RUNS:]):
            if _run_with(
                machine, cls, forward, optional[:given], [name for name in rest if name != left_out]
            ):
                return
        for name in rest[:_MOST_RUNS]:
            _run_with(machine, cls, forward, optional[:given], [name])


def _run_with(
    machine: Machine, cls: ClassValue, forward: Function, needed: list[str], more: list[str]
) -> bool:
    """One interpretation with inputs that may be left out; whether some path got to the end."""
    machine.doubt = 1
    machine.conditions.append(ast.Name(" and ".join(f"{name} given" for name in more)))
    machine.optional = True
    return _run_once(machine, cls, forward, given=frozenset([*needed, *more]))


def _run_once(machine: Machine, cls: ClassValue, forward: Function, *, given: frozenset[str]) -> bool:
    """One interpretation, once more where it tells what state begins with; whether some path got to the end."""
    doubt, optional, conditions = machine.doubt, machine.optional, [*machine.conditions]
    while True:
        known = len(machine.begun)
        works = _run_alone(machine, cls, forward, given=given)
        if known == len(machine.begun):
            return works
        machine.doubt, machine.optional, machine.conditions[:] = doubt, optional, conditions


def _run_alone(machine: Machine, cls: ClassValue, forward: Function, *, given: frozenset[str]) -> bool:
    machine.entry = cls.name
    machine.steps = 0
    machine.library_calls = 0
    machine.version = 0
    machine.refusals = 0
    machine.attributes_written.clear()
    machine.dicts_read.clear()
    machine.attributes_read.clear()
    machine.tracing = False
    frame = Frame(cls.scope, cls.chunk, {})
    doubt = machine.doubt
    try:
        machine.doubt = 0
        instance = _construct(machine, cls, frame)
        unknown = begin_outside(machine, instance) if isinstance(instance, Instance) else []
        machine.doubt = doubt
        machine.tracing = True
        if isinstance(instance, Instance):
            machine.flags = _flags_of(instance)
            machine.set_outside = set_by_methods(instance, machine.outside)
            for path, flag in machine.switched.items():
                _set_as_outside(machine, instance, path, flag)
            for held in instance.attributes.values():
                _take_up_items(machine, held)
        written = _signature(cls, forward)
        arguments = _inputs(machine, cls, written, given)
        machine.returned, machine.returned_inside = [], []
        machine.written = None if written is forward else written.node
        result = call_function(machine, forward, [instance, *arguments], {}, None, forward.node)
        _note_outputs(machine, cls, forward, result)
        tell_begun(machine, unknown)
        if machine.sized:
            # What later calls write stands on ways that the first one does not take.
            machine.attributes_written.clear()
            machine.dicts_read.clear()
            machine.attributes_read.clear()
            machine.later = True
            arguments = _inputs(machine, cls, written, given)
            with contextlib.suppress(Raised):
                call_function(machine, forward, [instance, *arguments], {}, None, forward.node)
        return True
    except Raised:
        return False
    except (OutOfBudget, RecursionError):
        # What could not be followed to the end is judged as far as it was followed.
        return True
    finally:
        machine.tracing = machine.later = False
        machine.entry = None
        machine.trail.clear()
        machine.active.clear()
        machine.data_guards.clear()
        machine.doubt = 0
        machine.optional = False
        machine.conditions.clear()
        machine.quiet = 0


def _set_as_outside(machine: Machine, instance: Instance, path: tuple[str, ...], value: Value) -> None:
    held: Value | None = instance
    for name in path[:-1]:
        held = held.attributes.get(name) if isinstance(held, Instance) else None
    if isinstance(held, Instance):
        keep_attribute(machine, held, path[-1], value)


def _flags_of(instance: Instance) -> dict[str, bool]:
    held = {name: value.value for name, value in instance.attributes.items() if isinstance(value, Const)}
    return {name: flag for name, flag in held.items() if isinstance(flag, bool)}


def _take_up_items(machine: Machine, value: Value, depth: int = 0) -> None:
    """Make the tensors that a container of the model's holds what traced code sees of them (see `taken_up`)."""
    if depth > _MAX_NESTING:
        return
    if isinstance(value, Sequence):
        for item in value.items or []:
            _take_up_items(machine, item, depth + 1)
        if value.items is not None:
            value.items[:] = [taken_up(machine, item) for item in value.items]
        elif value.element is not None:
            value.element = taken_up(machine, value.element)
    elif isinstance(value, Mapping_):
        for key, item in value.items.items():
            _take_up_items(machine, item, depth + 1)
            value.items[key] = taken_up(machine, item)
    elif isinstance(value, Instance):
        for held in value.attributes.values():
            _take_up_items(machine, held, depth + 1)


def _note_outputs(machine: Machine, cls: ClassValue, forward: Function, result: Value) -> None:
    """Note what the entry point returns, at each `return` that was reached."""
    if not machine.emits(Output):
        return
    written = _signature(cls, forward)
    given_on = [
        (value, node)
        for value, node in machine.returned_inside
        if node is not None and any(each is one for each in options(result) for one in options(value))
    ]
    if written is not forward and given_on:
        # A decorator's wrapper hands on what the method returns: that is where the author can change it.
        site = machine.site(Frame(written.scope, written.chunk, {}, written))
        for value, node in given_on:
            machine.notice(Output(site, node, value, cls))
        return
    site = machine.site(Frame(forward.scope, forward.chunk, {}, forward))
    returns = [node for node in walk(forward.node) if isinstance(node, ast.Return)]
    own = {id(node) for node in returns}
    returned = [(value, node) for value, node in machine.returned if node is not None and id(node) in own]
    if not returned:
        # Remembered from another entry point, or returned by a decorator's wrapper.
        returned = [(result, returns[-1] if returns else forward.node)]
    for value, node in returned:
        machine.notice(Output(site, node, value, cls))


def _traced(cls: ClassValue) -> Function | None:
    """What runs when an instance is called: its own `__call__` where the workspace defines one, else `forward`."""
    call, _, _ = class_attribute(cls, "__call__")
    takes_inputs = isinstance(call, Function) and len(_signature(cls, call).node.args.args) > 1
    return call if isinstance(call, Function) and takes_inputs else has_forward(cls)


def _signature(cls: ClassValue, forward: Function) -> Function:
    """The function that says what the entry point takes: the method as it is written where a decorator put `wrapper(*args)` in its place."""
    if forward.node.args.vararg is None or forward.owner is None:
        return forward
    for statement in forward.owner.node.body:
        if (
            isinstance(statement, ast.FunctionDef)
            and statement is not forward.node
            and class_attribute(cls, statement.name)[0] is forward
        ):
            defaults = [_literal(node) for node in statement.args.defaults]
            return Function(
                statement,
                forward.owner.scope,
                forward.owner.chunk,
                statement.name,
                forward.owner.closure,
                forward.owner,
                tuple(defaults),
            )
    return forward


def _literal(node: ast.expr) -> Value:
    """A default that is written as a plain constant."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return Unknown("a default")
    return Const(value) if isinstance(value, (int, float, str, bool, type(None))) else Unknown("a default")


def _optional_inputs(machine: Machine, forward: Function) -> list[str]:
    """The parameters of `forward` that default to None and that look like tensors, or containers of tensors, when they are given; or that
    examples give a tensor.

    `if not hidden` is asked of lists and tuples: tensors are compared with None.
    """
    spec = forward.node.args
    positional = [*spec.posonlyargs, *spec.args]
    offset = len(positional) - len(forward.defaults)
    found: list[str] = []
    for index, parameter in enumerate(positional):
        default = forward.defaults[index - offset] if index >= offset else None
        if (
            isinstance(default, Const)
            and default.value is None
            and (
                parameter.arg in machine.told
                or isinstance(argument_value(machine, forward, parameter, None), (Tensor, Sequence))
            )
            and not asked_for_truth(machine, forward, parameter.arg)
        ):
            found.append(parameter.arg)
    return found


def _construct(machine: Machine, cls: ClassValue, frame: Frame) -> Value:
    init, _, _ = class_attribute(cls, "__init__")
    args: list[Value] = []
    named: dict[str, Value] = {}
    if isinstance(init, Function):
        init = _signature(cls, init)
        args = _arguments(machine, init, skip_first=True, constructor=True)
        names = [parameter.arg for parameter in (*init.node.args.posonlyargs, *init.node.args.args)[1:]]
        for index, name in enumerate(names[: len(args)]):
            declared = _declared(machine, cls, name, init) if isinstance(args[index], Unknown) else None
            # Of a tensor it would say what is kept, which need not be what was given.
            if isinstance(declared, Instance):
                args[index] = declared
            args[index] = machine.configured.get(name, args[index])
        if init.node.args.vararg is not None and len(args) == len(names):
            args += _more(machine.configured.get(init.node.args.vararg.arg))
        only = {parameter.arg for parameter in init.node.args.kwonlyargs}
        named = {name: value for name, value in machine.configured.items() if name in only}
    # transformers' convention: `config_class` says of which class the first argument is.
    configuration, _, _ = class_attribute(cls, "config_class")
    if isinstance(configuration, ClassValue) and args and isinstance(args[0], Unknown):
        args[0] = default_instance(machine, configuration)
    try:
        return instantiate(machine, cls, args, named, frame, cls.node)
    except Raised:
        return Instance(cls, open=True)


def _more(given: Value | None) -> list[Value]:
    """The arguments that the `*args` of a constructor takes, which `given` is."""
    if not isinstance(given, Sequence):
        return []
    return list(given.items) if given.items is not None else [Spread(given.element or Unknown("an argument"))]


def _declared(machine: Machine, cls: ClassValue, name: str, init: Function) -> Value | None:
    """What a class says of an attribute (`config: Settings` in its body), for the constructor's argument of that name."""
    for base in class_order(cls):
        if not isinstance(base, ClassValue):
            continue
        for statement in base.node.body:
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.target.id == name
            ):
                where = replace(init, scope=base.scope, chunk=base.chunk, closure=base.closure)
                return from_annotation(machine, where, statement.annotation, name)
    return None


def _inputs(machine: Machine, cls: ClassValue, written: Function, given: frozenset[str]) -> list[Value]:
    """What the entry point of a model is called with."""
    own = _arguments(machine, written, skip_first=True, given=given)
    return [*own, *handed_inputs(machine, cls, written)]


def _arguments(
    machine: Machine,
    function: Function,
    *,
    skip_first: bool,
    constructor: bool = False,
    given: frozenset[str] = frozenset(),
) -> list[Value]:
    """A value for each positional parameter of an entry point."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    offset = len(positional) - len(function.defaults)
    values: list[Value] = []
    for index, parameter in enumerate(positional):
        if index == 0 and skip_first:
            continue
        default = function.defaults[index - offset] if index >= offset else None
        if constructor:
            values.append(_constructor_argument(machine, function, parameter, default))
        elif parameter.arg in machine.supposed:
            values.append(machine.supposed[parameter.arg])
        else:
            value = argument_value(machine, function, parameter, None if parameter.arg in given else default)
            example = machine.told.get(parameter.arg)
            if example is not None and (default is None or parameter.arg in given):
                value = told_by(machine, example, value, parameter.arg, parameter.annotation is not None)
            values.append(value)
    return values


def _constructor_argument(
    machine: Machine, function: Function, parameter: ast.arg, default: Value | None
) -> Value:
    if default is not None and not (
        isinstance(default, Const) and default.value is None and parameter.annotation is not None
    ):
        return default
    if default is not None:
        return default
    if parameter.annotation is not None:
        known = from_annotation(machine, function, parameter.annotation, parameter.arg)
        if known is not None:
            return known
    if called_like_a_number(parameter.arg):
        return Static()
    return Unknown(f"the constructor argument `{parameter.arg}`")


def needs_arguments(call: ExportCall) -> bool:
    """Whether the Module of an export call is one that nothing is known of without its constructor's arguments."""
    model = call.model
    if not (isinstance(model, Instance) and isinstance(model.cls, ClassValue)):
        return False
    init, _, _ = class_attribute(model.cls, "__init__")
    if not isinstance(init, Function):
        return False
    arguments = [*init.node.args.posonlyargs, *init.node.args.args]
    return len(arguments) - 1 > len(init.defaults)


def run_exported(machine: Machine, call: ExportCall, *, declared: bool = False) -> None:
    """Trace the Module of an export call as it was made, with the call's inputs; where those are to be `declared`, only
    if `dynamic_shapes` declares sizes of theirs.
    """
    model = call.model
    if not (isinstance(model, Instance) and isinstance(model.cls, ClassValue)):
        return
    forward = _traced(model.cls)
    inputs = example_inputs(call, forward) if forward is not None else None
    if forward is None or inputs is None or (declared and not any_declared(inputs)):
        return
    machine.entry = model.cls.name
    machine.steps = 0
    machine.attributes_written.clear()
    machine.dicts_read.clear()
    machine.attributes_read.clear()
    machine.tracing = True
    try:
        call_function(machine, forward, [model, *inputs], {}, None, forward.node)
    except (Raised, OutOfBudget, RecursionError):
        return
    finally:
        machine.tracing = False
        machine.entry = None
        machine.trail.clear()
        machine.active.clear()
        machine.data_guards.clear()
        machine.doubt = 0
        machine.conditions.clear()
        machine.quiet = 0


def export_chunks(scope: ModuleScope) -> Iterator[tuple[Chunk, ast.stmt]]:
    """Top-level statements whose text mentions an export, to be run as a script would."""
    for placed in scope.document.placed:
        if "export(" in placed.chunk.text:
            for statement in placed.chunk.body:
                yield placed.chunk, statement


def run_script(
    machine: Machine,
    scope: ModuleScope,
    chunk: Chunk,
    statement: ast.stmt,
    names: dict[str, Value] | None = None,
) -> None:
    """Interpret a top-level statement, or the body of a top-level function, for the export calls in it; in `names`, where what it
    binds is not to be known to others.
    """
    machine.entry = None
    machine.steps = 0
    machine.tracing = False
    frame = Frame(scope, chunk, scope.values if names is None else names, module_level=True)
    try:
        with scope.workspace.computing(scope):
            _run_statement(machine, scope, statement, frame)
    except (Raised, OutOfBudget, RecursionError):
        return
    finally:
        machine.trail.clear()
        machine.active.clear()
        machine.doubt = 0
        machine.conditions.clear()


def _run_statement(machine: Machine, scope: ModuleScope, statement: ast.stmt, frame: Frame) -> None:
    from exportlens.inference.statements import run_block

    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = lookup_global(machine, statement.name, scope)
        if isinstance(function, Function):
            call_value(
                machine,
                function,
                _arguments(machine, function, skip_first=False, constructor=True),
                {},
                frame,
                statement,
            )
    elif isinstance(statement, ast.If) and _is_main_guard(statement.test):
        run_block(machine, statement.body, frame)
    elif not isinstance(statement, ast.ClassDef):
        run_block(machine, [statement], frame)


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def trace_callable(machine: Machine, function: Function, receiver: Value | None) -> None:
    """Trace a function that is exported as it is."""
    machine.entry = function.name
    machine.tracing = True
    try:
        arguments = _arguments(machine, function, skip_first=receiver is not None)
        call_function(
            machine,
            function,
            [*([receiver] if receiver is not None else []), *arguments],
            {},
            None,
            function.node,
        )
    except (Raised, OutOfBudget, RecursionError):
        return
    finally:
        machine.tracing = False
        machine.entry = None
