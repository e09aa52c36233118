"""A plain object that a Module holds, and that keeps tensors from call to call, becomes a Module: only those have buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.classes import class_order
from exportlens.inference.values import ClassValue, Instance, Named, Tensor, Value, options
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.state.registered_lists import ATTRIBUTES

# Those of ATTRIBUTES that an nn.ModuleDict has, and a plain Module does not.
_OF_DICTS = frozenset(
    {"clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"}
)
# What torch sets on a Module, or asks it for itself (tests/rewriting/test_refused_state.py asks torch).
_PRIVATE = frozenset(
    {f"_{name}" for name in ("apply", "buffers", "call_impl", "compiled_call_impl", "get_name", "load_from_state_dict", "modules")}
    | {f"_{name}" for name in ("named_members", "non_persistent_buffers_set", "parameters", "replicate_for_data_parallel")}
    | {f"_{name}" for name in ("save_to_state_dict", "slow_forward", "version", "wrapped_call_impl", "register_state_dict_hook")}
    | {f"_{name}" for name in ("register_load_state_dict_pre_hook", "maybe_warn_non_full_backward_hook", "is_full_backward_hook")}
    | {f"_{name}" for name in ("get_backward_hooks", "get_backward_pre_hooks", "backward_hooks", "backward_pre_hooks")}
    | {f"_forward_{name}" for name in ("hooks", "hooks_always_called", "hooks_with_kwargs", "pre_hooks", "pre_hooks_with_kwargs")}
    | {f"_{name}" for name in ("load_state_dict_post_hooks", "load_state_dict_pre_hooks", "state_dict_hooks", "state_dict_pre_hooks")}
)  # fmt: skip
OF_MODULES = (ATTRIBUTES - _OF_DICTS) | _PRIVATE
# A class that defines one of these is not only a holder of values, or is asked for its truth; `__init__` and what describes it are no hindrance.
_SPECIAL_ALLOWED = frozenset({"__init__", "__repr__", "__str__", "__doc__", "__call__", "__annotations__"})


def is_module(owner: ClassValue) -> bool:
    """Whether a class has bases that are not of the workspace, as every Module has."""
    return any(
        isinstance(each, Named) and each.name not in ("object", "builtins.object")
        for each in class_order(owner)
    )


def made_module(draft: Draft, cls: ast.ClassDef, owner: ClassValue, held: Value | None) -> list[Replacement]:
    """What makes `cls` (`owner`) a Module, [] where it is one. Raises Refused where its objects could not be told from Modules, or where
    `held`, the object at hand, is not an attribute of a Module."""
    if is_module(owner):
        return []
    if not isinstance(held, Instance) or not held.registered:
        raise Refused(f"`{owner.name}` is no Module: it has no buffers")
    _refuse_class(draft, cls)
    _refuse_contents(held)
    begin = _constructor(cls)
    source, newline = draft.source, draft.source.newline
    first = begin.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(begin.body) > 1
    first = begin.body[1] if documented else first
    if not source.begins_line(first) or not source.begins_line(cls):
        raise Refused(f"the constructor of `{owner.name}` is written on one line")
    swaps = [_with_base(draft, cls)]
    if not _makes_base(begin):
        at = source.start(first)
        swaps.append(Replacement(at, at, f"super().__init__(){newline}{source.indent_of(first)}"))
    return swaps


def _with_base(draft: Draft, cls: ast.ClassDef) -> Replacement:
    nn = spelled(draft.modules, "torch.nn")
    base = spelled(draft.modules, "torch.nn.Module") or f"{nn or draft.torch + '.nn'}.Module"
    source = draft.source
    if cls.bases:
        return source.swap(cls.bases[0], base)
    head = source.text.index(cls.name, source.start(cls)) + len(cls.name)
    colon = source.text.index(":", head)
    return Replacement(head, colon, f"({base})")


def _refuse_class(draft: Draft, cls: ast.ClassDef) -> None:
    if (
        [ast.unparse(each) for each in cls.bases] not in ([], ["object"])
        or cls.keywords
        or cls.decorator_list
    ):
        raise Refused(f"`{cls.name}` is no Module, and more than a plain class: it has no buffers")
    for name in _names(cls):
        special = name.startswith("__") and name.endswith("__") and name not in _SPECIAL_ALLOWED
        if special or name in OF_MODULES:
            raise Refused(f"`{cls.name}` is no Module, and cannot become one: it has a `{name}` of its own")
    for chunk in [draft.chunk, *draft.others()]:
        body = draft.source.tree.body if chunk is draft.chunk else chunk.body
        for each in (inner for statement in body for inner in ast.walk(statement)):
            _refuse_use(draft, cls.name, each, draft.source if chunk is draft.chunk else Source(chunk.text))


def _refuse_use(draft: Draft, name: str, node: ast.AST, source: Source) -> None:
    """Raise Refused where `node` shows that objects of the class are more than attributes of a Module made in its constructor."""
    if isinstance(node, ast.ClassDef) and any(dotted(each) == name for each in node.bases):
        raise Refused(f"`{name}` is no Module, and `{node.name}` is made of it: it has no buffers")
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        raise Refused(f"`{name}` is no Module, and the file reads `__dict__`")
    if isinstance(node, ast.Call) and dotted(node.func) == name:
        made = source.find(node)
        statement = source.enclosing_statement(made)
        function = source.enclosing_function(made)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        alone = isinstance(statement, ast.Assign) and statement.value is made and len(targets) == 1
        if (
            not alone
            or function is None
            or function.name != "__init__"
            or not (dotted(targets[0]) or "").startswith("self.")
        ):
            raise Refused(f"`{name}` is no Module, and is not only made in constructors as an attribute")
        if not _makes_base(function) or source.start(statement) < _makes_base_at(source, function):
            raise Refused(f"`{name}` is no Module, and is made before `super().__init__()`")


def _refuse_contents(held: Instance) -> None:
    """Raise Refused where the object holds what a Module would list as its own: parameters, and other Modules."""
    for attr, value in held.attributes.items():
        for each in options(value):
            if (isinstance(each, Tensor) and each.origin == "parameter") or (
                isinstance(each, Instance)
                and isinstance(each.cls, (Named, ClassValue))
                and not _is_plain(each)
            ):
                raise Refused(f"`{attr}` would become one of the model's parameters or Modules")


def _is_plain(held: Instance) -> bool:
    return isinstance(held.cls, ClassValue) and not is_module(held.cls)


def _names(cls: ast.ClassDef) -> Iterator[str]:
    """The methods, class variables and attributes of `self` that a class has."""
    for each in cls.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield each.name
    for node in ast.walk(cls):
        if (
            isinstance(node, ast.Attribute)
            and dotted(node.value) == "self"
            and not isinstance(node.ctx, ast.Load)
        ):
            yield node.attr
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef:
    for each in cls.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            if [one.arg for one in each.args.args[:1]] != ["self"] or each.decorator_list:
                break
            return each
    raise Refused(f"`{cls.name}` is no Module, and has no constructor: it has no buffers")


def _calls_of_base(function: ast.AST) -> list[ast.Call]:
    return [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "__init__"
    ]


def _makes_base(function: ast.AST) -> bool:
    return bool(_calls_of_base(function))


def _makes_base_at(source: Source, function: ast.AST) -> int:
    return min(source.start(each) for each in _calls_of_base(function))
