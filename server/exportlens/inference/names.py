"""Names: what a variable, a global or an import stands for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.scopes import ModuleScope, bound_names, for_checkers_only
from exportlens.inference.state import Journal
from exportlens.inference.values import (
    Const,
    ModuleRef,
    Named,
    Static,
    Tensor,
    Unknown,
    Value,
)

_BUILTINS = frozenset(dir(builtins))


# What computing one global, or one configuration object, may take.
_MAX_GLOBAL_STEPS = 4_000


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
    for _, node in scope.star_imports:
        if not node.level and offered_by(node.module or "", name):
            return external(f"{node.module}.{name}")
    if name == "__name__":
        return Const(scope.module_name or "__main__")
    if name == "__file__":
        return Static("str")
    if name in ("True", "False", "None"):
        return Const({"True": True, "False": False, "None": None}[name])
    if name in _BUILTINS:
        return Named("builtins." + name)
    return Unknown(f"the name `{name}` is not defined here")


# Modules of torch whose star imports are followed, with what they offer that is neither a function nor a layer.
_OFFERED = {
    "torch.autograd": ("Variable", "Function"),
    "torch.nn": ("Module", "Parameter", "functional", "init", "utils"),
    "torch.nn.functional": (),
}


def offered_by(module: str, name: str) -> bool:
    """Whether `from module import *` is known to bind `name`."""
    if module not in _OFFERED:
        return False
    qualified = f"{module}.{name}"
    return (
        name in _OFFERED[module]
        or knowledge.lookup_function(qualified) is not None
        or (module == "torch.nn" and knowledge.lookup_module(qualified) is not None)
    )


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


def _import_lazily(machine: Machine, name: str, statement: ast.stmt, scope: ModuleScope) -> None:
    """Bind a name that only `if TYPE_CHECKING:` imports: where it exists at run time a lazy importer gives that very object."""
    for inner in ast.walk(statement):
        if isinstance(inner, (ast.Import, ast.ImportFrom)) and name in set(bound_names(inner)):
            for bound, value in import_names(machine, inner, scope, only=name):
                scope.values[bound] = value


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
                if name not in scope.values and for_checkers_only(statement):
                    _import_lazily(machine, name, statement, scope)
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
