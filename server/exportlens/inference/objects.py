"""Objects: names, attributes, items, functions and classes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.lattice import element_of, join
from exportlens.inference.library import object_attribute
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.places import (
    AttributeRead,
    AttributeWrite,
    Conversion,
    ItemRead,
    ItemWrite,
    Mutation,
)
from exportlens.inference.scopes import ModuleScope
from exportlens.inference.state import Journal
from exportlens.inference.tensors import index_tensor, shape_of
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Member,
    ModuleRef,
    Named,
    Native,
    Partial,
    Sequence,
    Shape,
    Slice,
    Static,
    Super,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)

_BUILTINS = frozenset(dir(builtins))
# What computing one global, or one configuration object, may take.
_MAX_GLOBAL_STEPS = 4_000
_MAX_DECORATOR_STEPS = 60
ENUM = "enum:"
# Models are exported on the CPU unless someone says otherwise.
DEVICE = "device:"


# --- names ---------------------------------------------------------------------------------------------------------


def lookup(machine: Machine, name: str, frame: Frame) -> Value:
    """The value of a name in `frame`: local, enclosing, global, builtin."""
    current: Frame | None = frame
    while current is not None:
        if name in current.locals:
            return current.locals[name]
        current = current.closure
        while (
            current is not None
            and current.owner is not None
            and current.function is None
            and current is not frame
        ):
            current = current.closure  # a class body's names are not seen from its methods
    return lookup_global(machine, name, frame.scope)


def taken_up(machine: Machine, value: Value) -> Value:
    """`value` as traced code sees it that reads it from where no tracing was: a tensor's numbers are lost to all that follows."""
    if machine.tracing and isinstance(value, Tensor) and value.origin == "constant":
        return replace(value, origin="outside")
    return value


def lookup_global(machine: Machine, name: str, scope: ModuleScope) -> Value:
    """A global of `scope`, computed on first use."""
    scope.workspace.note_use(scope)
    if name in scope.values:
        return taken_up(machine, scope.values[name])
    if name in scope.bindings:
        return taken_up(machine, _compute_global(machine, name, scope))
    for _, node in scope.stars_for(name):
        module = scope.absolute_import(node.module, node.level)
        if not scope.workspace.may_define(module, scope, name):
            continue
        origin = scope.workspace.resolve(module, scope)
        if origin is not None and origin is not scope and defines(origin, name):
            return lookup_global(machine, name, origin)
    if name == "__name__":
        return Const(scope.module_name or "__main__")
    if name == "__file__":
        return Static("str")
    if name in ("True", "False", "None"):
        return Const({"True": True, "False": False, "None": None}[name])
    if name in _BUILTINS:
        return Named("builtins." + name)
    return Unknown(f"the name `{name}` is not defined here")


def defines(scope: ModuleScope, name: str, depth: int = 0) -> bool:
    """Whether `scope` binds `name`, star imports followed a few files deep."""
    if name in scope.bindings:
        return True
    if depth > 4:
        return False
    for _, node in scope.stars_for(name):
        module = scope.absolute_import(node.module, node.level)
        if not scope.workspace.may_define(module, scope, name):
            continue
        origin = scope.workspace.resolve(module, scope)
        if origin is not None and origin is not scope and defines(origin, name, depth + 1):
            return True
    return False


@contextmanager
def apart(machine: Machine, limit: int | None = None) -> Iterator[None]:
    """Compute something that belongs to no path of the traced code: its writes are kept whatever branch asked for it."""
    journal, trail, doubt, tracing, conditions = (
        machine.journal,
        machine.trail,
        machine.doubt,
        machine.tracing,
        machine.conditions,
    )
    machine.journal, machine.trail, machine.doubt, machine.tracing, machine.conditions = (
        Journal(),
        [],
        0,
        False,
        [],
    )
    steps, before, machine.steps, machine.limit = machine.steps, machine.limit, 0, limit or _MAX_GLOBAL_STEPS
    try:
        yield
    finally:
        machine.steps, machine.limit = steps, before
        machine.journal, machine.trail, machine.doubt, machine.tracing, machine.conditions = (
            journal,
            trail,
            doubt,
            tracing,
            conditions,
        )


def _compute_global(machine: Machine, name: str, scope: ModuleScope) -> Value:
    if name in scope.running:
        return Unknown(f"`{name}` is defined in terms of itself")
    scope.running.add(name)
    from exportlens.inference.statements import run_block

    try:
        with apart(machine), scope.workspace.computing(scope):
            for chunk, statement in scope.bindings[name]:
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    for bound, value in import_names(machine, statement, scope, only=name):
                        scope.values[bound] = value
                    continue
                frame = Frame(scope, chunk, scope.values, module_level=True)
                try:
                    run_block(machine, [statement], frame)
                except Raised:
                    scope.values.setdefault(name, Unknown("its definition raises"))
    except (RecursionError, OutOfBudget):
        scope.values[name] = Unknown("its definition nests too deeply or takes too long to follow")
    finally:
        scope.running.discard(name)
    return scope.values.setdefault(name, Unknown(f"`{name}` could not be computed"))


def import_names(
    machine: Machine, node: ast.Import | ast.ImportFrom, scope: ModuleScope, only: str | None = None
) -> Iterator[tuple[str, Value]]:
    """The names that an import binds; `only` limits the work to one of them."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            bound = alias.asname or alias.name.split(".")[0]
            if only in (None, bound):
                yield bound, module_value(alias.name if alias.asname else alias.name.split(".")[0], scope)
            continue
        bound = alias.asname or alias.name
        if alias.name == "*" or only not in (None, bound):
            continue
        module = scope.absolute_import(node.module, node.level)
        origin = scope.workspace.resolve(module, scope)
        if (
            origin is not None
            and (origin is not scope or alias.name in scope.bindings)
            and defines(origin, alias.name)
        ):
            if origin is scope and alias.name == bound:
                yield bound, module_value(f"{module}.{alias.name}", scope)
            else:
                yield bound, lookup_global(machine, alias.name, origin)
        else:
            yield bound, module_value(f"{module}.{alias.name}" if module else alias.name, scope)


def module_value(name: str, scope: ModuleScope) -> Value:
    origin = scope.workspace.resolve(name, scope)
    return ModuleRef(origin) if origin is not None else external(name)


def external(name: str) -> Value:
    """Something external by its qualified name: a constant where it is one."""
    if name in _CONSTANTS:
        return Const(_CONSTANTS[name])
    return Named(name)


_CONSTANTS: dict[str, object] = {
    "math.pi": 3.141592653589793,
    "math.e": 2.718281828459045,
    "math.inf": float("inf"),
    "math.nan": float("nan"),
    "numpy.pi": 3.141592653589793,
    "numpy.inf": float("inf"),
    "numpy.newaxis": None,
    "torch.pi": 3.141592653589793,
    "torch.inf": float("inf"),
    "typing.TYPE_CHECKING": False,
    "sys.platform": "linux",
    "sys.maxsize": 2**63 - 1,
}


# --- functions and classes -------------------------------------------------------------------------------------------


def define_function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Value:
    """The value that a `def` binds: the function, or what its decorators make of it."""
    function = _function(machine, node, node.name, frame)
    value: Value = function
    names: list[str] = []
    for decorator in reversed(node.decorator_list):
        name = dotted(decorator)
        names.append(name)
        if name.rpartition(".")[2] in _PLAIN_DECORATORS:
            continue
        from exportlens.inference.calls import call_value
        from exportlens.inference.expressions import evaluate

        with _quietly(machine), _decorating(machine), apart(machine, _MAX_DECORATOR_STEPS):
            try:
                made = call_value(machine, evaluate(machine, decorator, frame), [value], {}, frame, decorator)
            except (Raised, OutOfBudget):
                # A decorator that does much more than wrap is about something else: documentation, registration.
                continue
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
    return cls


def _is_plain(cls: ClassValue) -> bool:
    """Whether the members of an enumeration are strings or numbers themselves: `class Mode(str, Enum)`."""
    names = {base.name.rpartition(".")[2] for base in class_order(cls) if isinstance(base, Named)}
    return not names.isdisjoint({"str", "int", "StrEnum", "IntEnum", "IntFlag"})


def member_of(cls: ClassValue, value: Value) -> Value | None:
    """The member of an enumeration that `cls(value)` names; None where `cls` is none or the member is not known."""
    members = [item for item in cls.attributes.values() if isinstance(item, Member)]
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
    if short in ("Parameter", "UninitializedParameter", "Buffer"):
        return False
    return (
        short in _MODULE_BASES
        or (name.startswith("torch.nn.") and short.lstrip("_")[:1].isupper())
        or knowledge.lookup_module(name) is not None
    )


def dotted(node: ast.expr) -> str:
    """ "torch.no_grad" for the expression `torch.no_grad()`; "" for anything else."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return node.id if isinstance(node, ast.Name) else ""


# --- attributes ------------------------------------------------------------------------------------------------------


def get_attribute(
    machine: Machine, owner: Value, attr: str, frame: Frame, node: ast.AST, use: str = ""
) -> Value:
    """`owner.attr`."""
    if isinstance(owner, Instance):
        return instance_attribute(machine, owner, attr, frame, node)
    if isinstance(owner, Named):
        return _named_attribute(owner, attr)
    if isinstance(owner, Tensor):
        value = _tensor_attribute(owner, attr)
        if machine.emits(AttributeRead) and not (isinstance(value, Bound)):
            machine.notice(AttributeRead(machine.site(frame), node, owner, attr, value, use))
        return value
    if isinstance(owner, Choice):
        return _attribute_of_choice(machine, owner, attr, frame, node, use)
    if isinstance(owner, ModuleRef):
        if attr in owner.scope.values or defines(owner.scope, attr):
            return lookup_global(machine, attr, owner.scope)
        return module_value(f"{owner.scope.module_name}.{attr}", owner.scope)
    if isinstance(owner, ClassValue):
        return _attribute_of_class(machine, owner, attr, frame)
    if isinstance(owner, Super):
        return _attribute_of_super(machine, owner, attr)
    if isinstance(owner, Array):
        if attr in ("shape", "size", "ndim", "dtype"):
            return Static("" if attr == "shape" else "int")
        if attr == "T":
            return owner
        return Bound(owner, Named("numpy.ndarray." + attr), attr)
    if isinstance(owner, (Sequence, Mapping_, Const, TensorScalar, Shape, Static)):
        if isinstance(owner, Sequence) and attr in owner.fields and owner.items is not None:
            return owner.items[owner.fields.index(attr)]
        if attr in ("real", "imag"):
            return owner
        if isinstance(owner, Static) and owner.of in ("float", "int") and attr == "is_floating_point":
            return Const(owner.of == "float")
        if isinstance(owner, Static) and owner.type in ("", "device", "dtype"):
            return Static()
        if isinstance(owner, Const) and not hasattr(owner.value, attr):
            return Unknown(f"{owner.describe()} has no attribute `{attr}`")
        return Bound(owner, Native(attr, _no_run), attr)
    if isinstance(owner, Function):
        return _attribute_of_function(owner, attr)
    if isinstance(owner, Partial) and attr == "func":
        return owner.function
    if isinstance(owner, Bound) and attr == "__func__":
        return owner.function
    if isinstance(owner, Bound) and attr == "__self__":
        return owner.receiver
    if isinstance(owner, Unknown):
        if owner.made and attr in _FACTS_OF_TENSORS:
            return _tensor_attribute(Tensor(), attr)
        return Unknown(f"`{attr}` of something unknown", attr, owner.made)
    return Unknown(f"`{attr}` of {owner.describe()}")


_FACTS_OF_TENSORS = frozenset(
    {
        "shape",
        "ndim",
        "dtype",
        "device",
        "is_cuda",
        "requires_grad",
        "layout",
        "is_sparse",
        "itemsize",
        "nbytes",
    }
)


def _attribute_of_function(owner: Function, attr: str) -> Value:
    if attr == "__name__":
        return Const(owner.name)
    if attr == "__code__":
        spec = owner.node.args
        names: list[Value] = [
            Const(parameter.arg) for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        ]
        return Instance(
            Named("types.CodeType"),
            {
                "co_varnames": Sequence("tuple", names),
                "co_argcount": Const(len(spec.posonlyargs) + len(spec.args)),
            },
        )
    if attr == "__wrapped__":
        return owner
    return Unknown("an attribute of a function")


def _no_run(*_: object, **__: object) -> Value:
    return Unknown("a method that is not followed")


def _attribute_of_choice(
    machine: Machine, owner: Choice, attr: str, frame: Frame, node: ast.AST, use: str
) -> Value:
    result: Value | None = None
    candidates = [
        option for option in owner.options if not (isinstance(option, Const) and option.value is None)
    ]
    with machine.doubting(len(candidates) > 1):
        for option in candidates:
            value = get_attribute(machine, option, attr, frame, node, use)
            if result is None:
                result = value
            elif isinstance(value, Bound) or isinstance(result, Bound):
                result = Choice((*(result.options if isinstance(result, Choice) else (result,)), value))
            else:
                result = join(result, value)
    return result if result is not None else Unknown(f"`{attr}` of None")


def _named_attribute(owner: Named, attr: str) -> Value:
    if isinstance(owner, Member):
        if attr == "name":
            return Const(owner.name.rpartition(".")[2])
        return owner.value if attr in ("value", "_value_") else Unknown("attribute of an enum member")
    if owner.name.startswith(DEVICE):
        return (
            Const(owner.name.removeprefix(DEVICE).partition(":")[0])
            if attr == "type"
            else Const(None)
            if attr == "index"
            else Unknown("of a device")
        )
    if (
        owner.name.startswith("torch.")
        and attr in ("is_floating_point", "is_complex")
        and _is_dtype(owner.name)
    ):
        return Bound(owner, Native(attr, _no_run), attr)
    name = f"{owner.name}.{attr}"
    if (
        owner.name in ("torch.version", "torch")
        and attr in ("__version__", "cuda", "hip")
        and name != "torch.cuda"
    ):
        return Static("str")
    return external(name)


def _is_dtype(name: str) -> bool:
    constant = knowledge.lookup_constant(name)
    return constant is not None and constant.kind == "dtype"


def _tensor_attribute(owner: Tensor, attr: str) -> Value:
    if attr == "shape":
        return shape_of(owner)
    if attr == "ndim":
        return Const(owner.rank) if owner.rank is not None else Static("int")
    if attr == "dtype":
        exact = owner.dtype is not None and owner.dtype not in ("float", "int", "complex")
        return (
            Named("torch." + owner.dtype)
            if exact and owner.dtype is not None and _is_dtype("torch." + owner.dtype)
            else Static("dtype", owner.dtype if owner.dtype is not None and not exact else "any")
        )
    if attr == "device":
        return Named(DEVICE + "cpu")
    if attr in (
        "is_cuda",
        "is_mps",
        "is_xla",
        "is_quantized",
        "is_sparse",
        "is_nested",
        "is_meta",
        "is_xpu",
        "is_hpu",
    ):
        return Const(False)
    if attr == "data":
        return replace(
            owner, origin="fresh" if owner.origin != "constant" else "constant", requires_grad=False
        )
    found = knowledge.tensor_property(attr)
    if found is None:
        if knowledge.lookup_method(attr) is not None or attr in _TENSOR_METHODS:
            return Bound(owner, Named("torch.Tensor." + attr), attr)
        return Unknown(f"tensors have no attribute `{attr}` that is known")
    kind = found.returns.kind
    if kind == "tensor":
        rank = owner.rank if attr in ("T", "mT", "H", "mH", "real", "imag", "grad") else None
        return Tensor(
            "constant" if owner.origin == "constant" else "fresh",
            "",
            owner.dtype,
            rank,
            owner.unbacked,
            owner.root if found.alias else 0,
            open_dim=owner.open_dim if attr in ("real", "imag") else None,
        )
    if kind in ("bool", "int", "float", "str", "device", "dtype", "layout"):
        return Static(kind)
    if kind == "size":
        return shape_of(owner)
    return Unknown(f"`{attr}` of a tensor")


_TENSOR_METHODS = frozenset(
    {
        "item",
        "tolist",
        "numpy",
        "size",
        "dim",
        "numel",
        "type",
        "backward",
        "register_hook",
        "new",
        "__array__",
        "__len__",
        "__index__",
    }
)


def instance_attribute(machine: Machine, owner: Instance, attr: str, frame: Frame, node: ast.AST) -> Value:
    """An attribute of an object: its own, its class's (methods bound, properties run), or what torch.nn.Module gives it."""
    if attr in owner.attributes:
        value = owner.attributes[attr]
        if isinstance(value, Tensor) and value.origin == "constant" and machine.tracing:
            return replace(value, origin="attribute", name=f"self.{attr}")
        return value
    value_, found_in, hidden = class_attribute(owner.cls, attr)
    if value_ is not None:
        del found_in
        if hidden and not isinstance(value_, Function):
            return taken_up(machine, value_)
        return bind(machine, value_, owner, attr, frame, node)
    from exportlens.inference.modules import module_attribute

    made = module_attribute(machine, owner, attr) or object_attribute(owner, attr)
    if made is not None:
        return made
    if attr == "__class__":
        return owner.cls
    if attr == "__dict__":
        return Mapping_(dict(owner.attributes), Unknown("an attribute"))
    if attr == "__items__":
        return Unknown("items")
    getter, _, _ = class_attribute(owner.cls, "__getattr__")
    if isinstance(getter, Function):
        from exportlens.inference.calls import call_value

        return call_value(machine, getter, [owner, Const(attr)], {}, frame, node)
    if hidden or owner.open:
        return Unknown(f"`{attr}` may come from a base class that is not followed")
    return Unknown(f"`{attr}` is not set in what was followed")


def bind(machine: Machine, value: Value, owner: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    """What reading a class's attribute through an object gives."""
    if isinstance(value, Function):
        kinds = {name.rpartition(".")[2] for name in value.decorators}
        if "staticmethod" in kinds:
            return value
        if "classmethod" in kinds:
            return Bound(owner.cls if isinstance(owner, Instance) else owner, value, attr)
        if kinds & {"property", "cached_property"}:
            from exportlens.inference.calls import call_function

            return call_function(machine, value, [owner], {}, frame, node)
        return Bound(owner, value, attr)
    return value


def _attribute_of_class(machine: Machine, owner: ClassValue, attr: str, frame: Frame) -> Value:
    value, _, hidden = class_attribute(owner, attr)
    if value is not None:
        if isinstance(value, Function) and any(name.endswith("classmethod") for name in value.decorators):
            return Bound(owner, value, attr)
        return value
    if attr == "__name__":
        return Const(owner.name)
    for base in class_order(owner):
        if (
            isinstance(base, Named)
            and base.name in ("torch.autograd.Function", "torch.autograd.function.Function")
            and attr == "apply"
        ):
            return Bound(owner, Named("torch.autograd.Function.apply"), attr)
    return Unknown(f"`{attr}` of class `{owner.name}`" + (" (a base is not followed)" if hidden else ""))


def _attribute_of_super(machine: Machine, owner: Super, attr: str) -> Value:
    cls = owner.instance.cls if isinstance(owner.instance, Instance) else owner.instance
    value, _, _ = class_attribute(cls, attr, owner.after)
    if value is not None:
        if isinstance(value, Function) and any(name.endswith("staticmethod") for name in value.decorators):
            return value
        if isinstance(value, Function) and any(name.endswith("property") for name in value.decorators):
            from exportlens.inference.calls import call_function

            return call_function(
                machine, value, [owner.instance], {}, Frame(value.scope, value.chunk, {}), value.node
            )
        return Bound(owner.instance, value, attr) if isinstance(value, Function) else value
    order = class_order(cls)
    behind = order[order.index(owner.after) + 1 :] if owner.after in order else []
    base = next((item for item in behind if isinstance(item, Named)), Named("builtins.object"))
    return Bound(owner, Named(f"{base.name}.{attr}"), attr)


def set_attribute(
    machine: Machine,
    owner: Value,
    attr: str,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool = False,
) -> None:
    """`owner.attr = value`."""
    if isinstance(owner, Choice):
        for option in owner.options:
            if isinstance(option, Instance):
                set_attribute(machine, option, attr, value, frame, node, augmented)
        return
    if machine.emits(AttributeWrite) and isinstance(owner, (Instance, Tensor)):
        old = owner.attributes.get(attr) if isinstance(owner, Instance) else None
        machine.notice(AttributeWrite(machine.site(frame), node, owner, attr, value, old, augmented))
    if isinstance(owner, Instance):
        setter, _, _ = class_attribute(owner.cls, attr)
        if isinstance(setter, Function) and any(name.endswith(".setter") for name in setter.decorators):
            from exportlens.inference.calls import call_value

            call_value(machine, setter, [owner, value], {}, frame, node)
            return
        old = owner.attributes.get(attr)
        if (
            isinstance(value, Tensor)
            and isinstance(old, Tensor)
            and old.origin == "buffer"
            and value.origin != "parameter"
        ):
            value = (
                replace(value, origin="buffer", name=f"self.{attr}") if value.origin == "constant" else value
            )
        owner.stamp += 1
        if owner.fingerprint is not None:
            # What an object is depends on what was written to it since.
            machine.journal.write(owner, "fingerprint", _after_write(owner.fingerprint, attr, value))
        if machine.tracing and is_module_class(owner.cls):
            # The same write in another entry point leads to the same version: what was remembered there holds.
            machine.version = hash((machine.version, _after_write(owner.fingerprint, attr, value)))
        machine.journal.write(owner.attributes, attr, value)
    elif isinstance(owner, ClassValue):
        machine.journal.write(owner.attributes, attr, value)


def _after_write(fingerprint: object, attr: str, value: Value) -> object:
    from exportlens.inference.calls import key_of

    key = key_of(value)
    return None if key is None else hash((fingerprint, attr, key))


# --- items -----------------------------------------------------------------------------------------------------------


def get_item(machine: Machine, owner: Value, key: Value, frame: Frame, node: ast.AST) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Tensor) and isinstance(key, Const) and isinstance(key.value, str):
        return Unknown("no tensor has names for its parts: this is something else")
    if isinstance(owner, Tensor):
        value = index_tensor(owner, key)
        if machine.emits(ItemRead):
            machine.notice(ItemRead(machine.site(frame), node, owner, key, value))
        return value
    if isinstance(owner, Sequence):
        return _item_of_sequence(machine, owner, key, frame, node)
    if isinstance(owner, Mapping_):
        return _item_of_mapping(machine, owner, key, frame, node)
    if isinstance(owner, Choice):
        return _item_of_choice(machine, owner, key, frame, node)
    if isinstance(owner, Instance):
        items = owner.attributes.get("__items__")
        if items is not None:
            return get_item(machine, items, key, frame, node)
        if isinstance(owner.cls, ClassValue):
            from exportlens.inference.calls import call_method

            made = call_method(machine, owner, "__getitem__", [key], frame, node)
            if made is not None:
                return made
        return Unknown("an item of an object")
    if isinstance(owner, Const) and isinstance(owner.value, str):
        if (
            isinstance(key, Const)
            and isinstance(key.value, int)
            and -len(owner.value) <= key.value < len(owner.value)
        ):
            return Const(owner.value[key.value])
        return Static("str")
    if isinstance(owner, Array):
        return owner
    if isinstance(owner, Static):
        return Static()
    if isinstance(owner, (Named, ClassValue)):
        return owner
    if isinstance(owner, Unknown) and machine.tracing and _indexes_tensors(key):
        return index_tensor(Tensor(), key)
    return Unknown("an item of something unknown", made=isinstance(owner, Unknown) and owner.made)


def _indexes_tensors(key: Value) -> bool:
    """Whether only a tensor (or an array) takes `key`: a mask, several indices, or several dimensions at once."""
    parts = (
        key.items if isinstance(key, Sequence) and key.kind == "tuple" and key.items is not None else [key]
    )
    if len(parts) > 1:
        return any(
            isinstance(part, (Slice, Tensor)) or (isinstance(part, Const) and part.value in (None, ...))
            for part in parts
        )
    return (
        isinstance(parts[0], Tensor) and (parts[0].dtype == "bool" or bool(parts[0].rank)) if parts else False
    )


def _index_place(machine: Machine, key: Value, to: str, frame: Frame, node: ast.AST) -> None:
    if from_data(key) and machine.emits(Conversion):
        machine.notice(Conversion(machine.site(frame), node, key, to))
    notice_numpy(machine, key, to, frame, node)


def _item_of_sequence(machine: Machine, owner: Sequence, key: Value, frame: Frame, node: ast.AST) -> Value:
    if isinstance(key, Const) and isinstance(key.value, int):
        if owner.items is not None:
            if -len(owner.items) <= key.value < len(owner.items):
                return owner.items[key.value]
            return Unknown("an index past the end")
        if key.value == 0 and owner.first is not None:
            return owner.first
        if owner.type_name == "torch.Size" and isinstance(owner.element, Shape):
            return replace(owner.element, dim=key.value)
        return element_of(owner)
    if isinstance(key, Slice):
        bounds = [key.lower, key.upper, key.step]
        for bound in bounds:
            if bound is not None:
                _index_place(machine, bound, "index", frame, node)
        if owner.items is not None and all(
            bound is None or (isinstance(bound, Const) and isinstance(bound.value, (int, type(None))))
            for bound in bounds
        ):
            cut = slice(*(bound.value if isinstance(bound, Const) else None for bound in bounds))
            try:
                return Sequence(owner.kind, owner.items[cut], None, owner.type_name)
            except ValueError:
                return Unknown("a slice with step 0")
        return Sequence(owner.kind, None, element_of(owner), owner.type_name)
    _index_place(machine, key, "index", frame, node)
    return element_of(owner)


def _item_of_mapping(machine: Machine, owner: Mapping_, key: Value, frame: Frame, node: ast.AST) -> Value:
    if isinstance(key, Const):
        if key.value in owner.items:
            return owner.items[key.value]
        if (
            owner.kind == "record"
            and isinstance(key.value, int)
            and -len(owner.items) <= key.value < len(owner.items)
        ):
            return list(owner.items.values())[key.value]
        return owner.rest if owner.rest is not None else Unknown(f"no key {key.value!r}")
    _index_place(machine, key, "key", frame, node)
    values = [*owner.items.values(), *([owner.rest] if owner.rest is not None else [])]
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result if result is not None else Unknown("an item of an empty dict")


def _item_of_choice(machine: Machine, owner: Choice, key: Value, frame: Frame, node: ast.AST) -> Value:
    candidates = [option for option in owner.options if not isinstance(option, Const)]
    result: Value | None = None
    with machine.doubting(len(candidates) > 1):
        for option in candidates:
            value = get_item(machine, option, key, frame, node)
            result = value if result is None else join(result, value)
    return result if result is not None else Unknown("an item of a constant")


def set_item(
    machine: Machine,
    owner: Value,
    key: Value,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool = False,
) -> None:
    """`owner[key] = value`."""
    if isinstance(owner, Tensor):
        if machine.emits(ItemWrite):
            machine.notice(ItemWrite(machine.site(frame), node, owner, key, value, augmented))
        if machine.emits(Mutation):
            machine.notice(Mutation(machine.site(frame), node, owner, "[]"))
        return
    if machine.emits(ItemWrite) and isinstance(owner, (Sequence, Mapping_, Array)):
        machine.notice(ItemWrite(machine.site(frame), node, owner, key, value, augmented))
    if isinstance(owner, Array) and not owner.traced and machine.emits(Conversion):
        parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
        for part in (*parts, value):
            if isinstance(part, Tensor) and from_data(part):
                machine.notice(Conversion(machine.site(frame), node, part, "numpy"))
    if isinstance(owner, Instance):
        items = owner.attributes.get("__items__")
        if items is not None:
            set_item(machine, items, key, value, frame, node)
        elif isinstance(owner.cls, ClassValue):
            from exportlens.inference.calls import call_method

            call_method(machine, owner, "__setitem__", [key, value], frame, node)
    elif isinstance(owner, Sequence):
        if (
            isinstance(key, Const)
            and isinstance(key.value, int)
            and owner.items is not None
            and -len(owner.items) <= key.value < len(owner.items)
        ):
            items_ = list(owner.items)
            items_[key.value] = value
            machine.journal.write(owner, "items", items_)
        else:
            _index_place(machine, key, "index", frame, node)
            cover = join(element_of(owner), value) if owner.items or owner.element is not None else value
            machine.journal.write(owner, "element", cover)
            machine.journal.write(owner, "items", None)
    elif isinstance(owner, Mapping_):
        if isinstance(key, Const):
            machine.journal.write(owner.items, key.value, value)
        else:
            _index_place(machine, key, "key", frame, node)
            machine.journal.write(owner, "rest", value if owner.rest is None else join(owner.rest, value))
