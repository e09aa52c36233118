"""Functions and classes: what their definitions make, the order of bases, and what a class holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from exportlens.frameworks import is_of_another_framework
from exportlens.inference import knowledge
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.names import apart
from exportlens.inference.values import (
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Member,
    Named,
    Partial,
    Unknown,
    Value,
)

_MAX_DECORATOR_STEPS = 60


ENUM = "enum:"


def define_function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Value:
    """The value that a `def` binds: the function, or what its decorators make of it."""
    function = _function(machine, node, node.name, frame)
    accessor = _accessor_of_property(machine, function, node, frame)
    if accessor is not None:
        return accessor
    value: Value = function
    names: list[str] = []
    for decorator in reversed(node.decorator_list):
        name = dotted(decorator)
        names.append(name)
        if name.rpartition(".")[2] in _PLAIN_DECORATORS:
            continue
        if name.rpartition(".")[2] in ("singledispatch", "singledispatchmethod"):
            return Unknown("a function that is chosen by the type of its argument")
        from exportlens.inference.calls import call_value
        from exportlens.inference.expressions import evaluate

        made: Value | None = None
        with (
            _quietly(machine),
            _decorating(machine),
            apart(machine, _MAX_DECORATOR_STEPS),
            # A decorator that does much more than wrap is about something else: documentation, registration.
            suppress(Raised, OutOfBudget),
        ):
            made = call_value(machine, evaluate(machine, decorator, frame), [value], {}, frame, decorator)
        if isinstance(made, (Function, Partial, Bound)) or (
            isinstance(made, Instance) and made.cls is not None and not made.open
        ):
            value = made
    function.decorators = tuple(names)
    if isinstance(value, Function):
        value.owner = function.owner
        if value is not function:
            value.decorators = tuple(
                dict.fromkeys(
                    [
                        *value.decorators,
                        *(name for name in names if name.rpartition(".")[2] in _BINDING_DECORATORS),
                    ]
                )
            )
    return value


def _accessor_of_property(
    machine: Machine, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame
) -> Function | None:
    """The property with one accessor more, where a `def` is decorated with `@name.setter`, `getter` or `deleter`."""
    from exportlens.inference.expressions import evaluate

    decorator = node.decorator_list[-1] if node.decorator_list else None
    if not isinstance(decorator, ast.Attribute) or decorator.attr not in ("setter", "getter", "deleter"):
        return None
    known = evaluate(machine, decorator.value, frame)
    if not isinstance(known, Function) or not any(name.endswith("property") for name in known.decorators):
        return None
    if decorator.attr == "getter":
        function.decorators, function.setter = known.decorators, known.setter
        return function
    return replace(known, setter=function) if decorator.attr == "setter" else known


_BINDING_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "contextmanager"}
)


# Decorators that leave what the function computes as it is (or that the interpreter reads by name).
_PLAIN_DECORATORS = _BINDING_DECORATORS | {
    "no_grad",
    "inference_mode",
    "enable_grad",
    "abstractmethod",
    "overload",
    "lru_cache",
    "cache",
    "wraps",
    "final",
    "override",
    "unused",
    "ignore",
    "export",
    "script",
    "script_method",
    "compile",
    "script_if_tracing",
    "autocast",
    "custom_fwd",
    "custom_bwd",
    "setter",
    "getter",
    "deleter",
    "deprecated",
    "once_differentiable",
    "disable",
    "allow_in_graph",
    "jit",
    "custom_op",
    "register_fake",
    "triton_op",
    "fixture",
    "register",
}


@contextmanager
def _quietly(machine: Machine) -> Iterator[None]:
    machine.quiet += 1
    try:
        yield
    finally:
        machine.quiet -= 1


@contextmanager
def _decorating(machine: Machine) -> Iterator[None]:
    before, machine.decorating = machine.decorating, True
    try:
        yield
    finally:
        machine.decorating = before


def define_lambda(machine: Machine, node: ast.Lambda, frame: Frame) -> Value:
    return _function(machine, node, "<lambda>", frame)


def _function(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str, frame: Frame
) -> Function:
    from exportlens.inference.expressions import evaluate

    defaults = tuple(evaluate(machine, default, frame) for default in node.args.defaults)
    kw_defaults = tuple(
        None if default is None else evaluate(machine, default, frame) for default in node.args.kw_defaults
    )
    owner = frame.owner if frame.function is None else None
    # The names of a class body are not seen from its methods: they see what is around the class.
    outer = frame.closure if owner is not None else frame
    closure = None if outer is None or outer.module_level else outer
    return Function(node, frame.scope, frame.chunk, name, closure, owner, defaults, kw_defaults)


def define_class(machine: Machine, node: ast.ClassDef, frame: Frame) -> Value:
    """Interpret a class body."""
    from exportlens.inference.expressions import evaluate
    from exportlens.inference.statements import run_block

    bases = tuple(evaluate(machine, base, frame) for base in node.bases if not isinstance(base, ast.Starred))
    cls = ClassValue(node, frame.scope, frame.chunk, node.name, bases)
    body = Frame(
        frame.scope, frame.chunk, cls.attributes, None, None if frame.module_level else frame, None, cls
    )
    body.mark = machine.journal.mark()
    with _quietly(machine), suppress(Raised):
        run_block(machine, node.body, body)
    cls.attributes.pop("__annotations_only__", None)
    if any(isinstance(base, Named) and base.name.startswith("enum.") for base in class_order(cls)):
        for name, value in list(cls.attributes.items()):
            if not name.startswith("_") and not isinstance(value, Function):
                cls.attributes[name] = Member(f"{ENUM}{cls.name}.{name}", value, _is_plain(cls))
    _tell_base(machine, cls, frame)
    for decorator in reversed(node.decorator_list):
        _decorate_class(machine, cls, decorator, frame)
    return cls


def _tell_base(machine: Machine, cls: ClassValue, frame: Frame) -> None:
    """Run the `__init_subclass__` of a base, which registers the class, or sets what its keywords say."""
    from exportlens.inference.calls import call_value
    from exportlens.inference.expressions import evaluate

    hook = next(
        (
            base.attributes["__init_subclass__"]
            for base in class_order(cls)[1:]
            if isinstance(base, ClassValue) and "__init_subclass__" in base.attributes
        ),
        None,
    )
    if not isinstance(hook, Function):
        return
    with _changing(machine, cls):
        said = {
            each.arg: evaluate(machine, each.value, frame)
            for each in cls.node.keywords
            if each.arg is not None and each.arg != "metaclass"
        }
        call_value(machine, hook, [cls], said, frame, cls.node)


def _decorate_class(machine: Machine, cls: ClassValue, decorator: ast.expr, frame: Frame) -> None:
    """What a decorator sets on the class: a `forward` that takes the place of the one in the text, say."""
    if dotted(decorator).rpartition(".")[2] in _PLAIN_DECORATORS:
        return
    from exportlens.inference.calls import call_value
    from exportlens.inference.expressions import evaluate

    with _changing(machine, cls):
        call_value(machine, evaluate(machine, decorator, frame), [cls], {}, frame, decorator)


@contextmanager
def _changing(machine: Machine, cls: ClassValue) -> Iterator[None]:
    """Code that sets attributes of the class while it is made. What it puts there and cannot be followed leaves what was there:
    a method that is wrapped, or copied, most often."""
    written = dict(cls.attributes)
    try:
        with _quietly(machine), _decorating(machine), apart(machine, _MAX_DECORATOR_STEPS):
            yield
    except (Raised, OutOfBudget):
        cls.attributes.clear()
        cls.attributes.update(written)
        return
    for name, value in list(cls.attributes.items()):
        before = written.get(name)
        if value is before:
            continue
        if isinstance(value, Unknown) or (isinstance(value, Choice) and Unknown in map(type, value.options)):
            if before is None:
                del cls.attributes[name]
            else:
                cls.attributes[name] = before
        elif isinstance(value, Function) and value.owner is None:
            value.owner = cls


def _is_plain(cls: ClassValue) -> bool:
    """Whether the members of an enumeration are strings or numbers themselves: `class Mode(str, Enum)`."""
    names = {base.name.rpartition(".")[2] for base in class_order(cls) if isinstance(base, Named)}
    return not names.isdisjoint({"str", "int", "StrEnum", "IntEnum", "IntFlag"})


def members_of(cls: ClassValue) -> list[Member]:
    """The members of an enumeration, in the order of the text; none of another class."""
    return [value for value in cls.attributes.values() if isinstance(value, Member)]


def member_of(cls: ClassValue, value: Value) -> Value | None:
    """The member of an enumeration that `cls(value)` names; None where `cls` is none or the member is not known."""
    members = members_of(cls)
    if isinstance(value, Member):
        return value if any(value.name == item.name for item in members) else None
    return next((item for item in members if isinstance(value, Const) and item.value == value), None)


def class_order(cls: Value) -> list[Value]:
    """The method resolution order, near enough: depth first, the last of repeated bases kept. Contains ClassValues and Named."""
    if not isinstance(cls, ClassValue):
        return [cls]
    if cls.order is None:
        cls.order = _linearize(cls)
    return cls.order


def _linearize(cls: ClassValue) -> list[Value]:
    order: list[Value] = []

    def visit(current: Value, depth: int) -> None:
        if depth > 30:
            return
        if isinstance(current, Choice):
            # One class under several conditions, as optional imports make it: what is a Module in one is in all.
            current = current.options[0]
        order.append(current)
        if isinstance(current, ClassValue):
            for base in current.bases:
                visit(base, depth + 1)

    visit(cls, 0)
    seen: set[object] = set()
    kept: list[Value] = []
    for item in reversed(order):
        key = item.name if isinstance(item, Named) else id(item)
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept[::-1]


def class_attribute(
    cls: Value, name: str, after: ClassValue | None = None
) -> tuple[Value | None, Value | None, bool]:
    """`name` in the class order of `cls` (behind `after`, for super()): its value, the class that has it, and whether an unknown base comes first."""
    order = class_order(cls)
    if after is not None and after in order:
        order = order[order.index(after) + 1 :]
    hidden = False
    for item in order:
        if isinstance(item, ClassValue):
            if name in item.attributes:
                return item.attributes[name], item, hidden
        elif name == "__call__" and isinstance(item, Named) and is_module_base(item.name):
            break  # torch's own: an interface that comes behind it changes nothing
        elif not (isinstance(item, Named) and is_known_base(item.name)):
            hidden = True
    return None, None, hidden


_KNOWN_BASES = frozenset(
    {
        "object",
        "ABC",
        "Generic",
        "Protocol",
        "Enum",
        "NamedTuple",
        "Module",
        "LightningModule",
        "OrderedDict",
        "dict",
        "list",
        "tuple",
        "Function",
        "TypedDict",
    }
)


def is_known_base(name: str) -> bool:
    """Whether what the external base `name` gives to a class is known."""
    return (
        name.rpartition(".")[2] in _KNOWN_BASES
        or name.startswith("torch.nn.")
        or knowledge.lookup_module(name) is not None
    )


def is_module_class(cls: Value) -> bool:
    """Whether `cls` derives from torch.nn.Module as far as can be seen."""
    if isinstance(cls, ClassValue):
        if cls.is_module is None:
            cls.is_module = any(
                isinstance(item, Named) and is_module_base(item.name) for item in class_order(cls)
            )
        return cls.is_module
    return isinstance(cls, Named) and is_module_base(cls.name)


def called_as(value: Value) -> Bound | None:
    """The `__call__` of an object of the workspace that certainly is no Module; None for what is anything else."""
    if not isinstance(value, Instance) or not isinstance(value.cls, ClassValue) or is_module_class(value.cls):
        return None
    known = all(
        isinstance(each, ClassValue) or (isinstance(each, Named) and is_known_base(each.name))
        for each in class_order(value.cls)
    )
    function, _, _ = class_attribute(value.cls, "__call__")
    return Bound(value, function, "__call__") if known and isinstance(function, Function) else None


_MODULE_BASES = frozenset(
    {
        "Module",
        "LightningModule",
        "PreTrainedModel",
        "BaseModule",
        "ScriptModule",
        "GraphModule",
        "MessagePassing",
    }
)


def is_module_base(name: str) -> bool:
    """Whether the external class `name` is an nn.Module: by torch's own list, or one of the well-known bases of other packages."""
    short = name.rpartition(".")[2]
    if short in ("Parameter", "UninitializedParameter", "Buffer") or is_of_another_framework(name):
        return False
    return (
        short in _MODULE_BASES
        or (name.startswith("torch.nn.") and short.lstrip("_")[:1].isupper())
        or knowledge.lookup_module(name) is not None
    )


def same_kind(left: Value | None, right: Value) -> bool:
    """Whether two values are objects of one class."""
    if not isinstance(left, Instance) or not isinstance(right, Instance):
        return False
    if isinstance(left.cls, Named) and isinstance(right.cls, Named):
        return left.cls.name == right.cls.name
    return left.cls is right.cls


def switches_gradients_off(name: str) -> bool:
    """Whether a context or decorator of that name, or what may be one, records no gradients."""
    return name.rpartition(".")[2] in ("no_grad", "inference_mode", "set_grad_enabled")


def dotted(node: ast.expr) -> str:
    """ "torch.no_grad" for the expression `torch.no_grad()`; "" for anything else."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return node.id if isinstance(node, ast.Name) else ""
