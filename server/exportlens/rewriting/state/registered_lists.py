"""Modules and Parameters in plain lists and dicts: `nn.ModuleList([...])` around what `__init__` sets.

They become part of the model: of its parameters and its state_dict, and of what `eval()` reaches. Where a Module
behaves otherwise in eval mode, or where the class walks over its Modules, results would change: refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_order
from exportlens.inference.places import UnregisteredRead
from exportlens.inference.values import ClassValue, Instance, Mapping_, Named, Sequence, Tensor, Value
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled

# What the containers of torch.nn have of a list or a dict.
_METHODS = {
    "ModuleList": frozenset({"append", "extend", "insert"}),
    "ParameterList": frozenset({"append", "extend"}),
    "ModuleDict": frozenset({"items", "keys", "values", "update"}),
    "ParameterDict": frozenset({"items", "keys", "values", "update"}),
}
_ONLY_LOOK = frozenset({"len", "enumerate", "zip", "range", "iter", "list", "tuple", "sum"})
# What a class that goes over its Modules or Parameters calls.
_WALKS = frozenset(
    {
        "apply",
        "buffers",
        "children",
        "modules",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "state_dict",
    }
)
# What an nn.ModuleDict or nn.ParameterDict has itself: no key may have such a name (tests/rewriting/test_refused_state.py asks torch).
ATTRIBUTES = frozenset(
    [
        "T_destination",
        "add_module",
        "apply",
        "bfloat16",
        "buffers",
        "call_super_init",
        "children",
        "clear",
        "compile",
        "copy",
        "cpu",
        "cuda",
        "double",
        "dump_patches",
        "eval",
        "extra_repr",
        "float",
        "forward",
        "fromkeys",
        "get",
        "get_buffer",
        "get_extra_state",
        "get_parameter",
        "get_submodule",
        "half",
        "ipu",
        "items",
        "keys",
        "load_state_dict",
        "modules",
        "mtia",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "pop",
        "popitem",
        "register_backward_hook",
        "register_buffer",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "register_load_state_dict_post_hook",
        "register_load_state_dict_pre_hook",
        "register_module",
        "register_parameter",
        "register_state_dict_post_hook",
        "register_state_dict_pre_hook",
        "requires_grad_",
        "set_extra_state",
        "set_submodule",
        "setdefault",
        "share_memory",
        "state_dict",
        "to",
        "to_empty",
        "train",
        "training",
        "type",
        "update",
        "values",
        "xpu",
        "zero_grad",
    ]
)
# Layers of torch.nn whose results depend on the mode (https://docs.pytorch.org/docs/stable/nn.html).
_BY_MODE = (
    "Dropout",
    "BatchNorm",
    "InstanceNorm",
    "RReLU",
    "MultiheadAttention",
    "Transformer",
    "LSTM",
    "GRU",
    "RNN",
)


def register_held(place: UnregisteredRead, context: RewriteContext) -> Fix | Refusal:
    """`nn.ModuleList([...])`, `nn.ModuleDict({...})` and those of Parameters, where `__init__` sets the attribute."""
    try:
        owner = place.owner
        if not isinstance(owner, Instance) or not isinstance(owner.cls, ClassValue):
            raise Refused("the class that holds it is not known")
        cls = owner.cls
        if cls.scope.path != context.document.path:
            raise Refused(f"`{cls.name}` is defined in {cls.scope.path.name}")
        draft = Draft.of_chunk(cls.chunk, context)
        node = draft.source.find(cls.node)
        assert isinstance(node, ast.ClassDef)
        held = owner.attributes.get(place.attr)
        kind = _kind(held) + ("Dict" if isinstance(held, Mapping_) else "List")
        value = set_in_init(node, place.attr)
        for each in class_order(cls):
            if isinstance(each, ClassValue):
                refuse_other_uses(each.node, place.attr, kind)
        nn = spelled(draft.modules, "torch.nn") or f"{draft.torch}.nn"
        container = f"{nn}.{kind}"
        swap = draft.source.swap(value, f"{container}({draft.source.of(value)})")
        return draft.replace(
            f"Register them in an `{container}`: `parameters()` and the state_dict have them then",
            [swap],
            uses_torch=nn.startswith(draft.torch),
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _kind(held: Value | None) -> str:
    """ "Module" or "Parameter", what the container holds. Raises Refused where it is not only one of them."""
    if isinstance(held, Mapping_):
        items = list(held.items.values())
        if held.rest is not None or not all(map(may_be_key, held.items)):
            raise Refused(
                "the keys of the dict are not all known names that are free in an `nn.ModuleDict`, as its keys must be"
            )
    elif isinstance(held, Sequence) and held.kind == "list":
        items = held.items if held.items is not None else [held.element] if held.element else []
    else:
        raise Refused("it is no list and no dict")
    if items and all(isinstance(each, Tensor) and each.origin == "parameter" for each in items):
        return "Parameter"
    if not items or not all(isinstance(each, Instance) and _is_the_same_in_eval(each) for each in items):
        raise Refused(
            "it is not certain that all of them are Modules that do the same in training and in eval mode, which "
            "registered ones follow: keep them in an `nn.ModuleList` or `nn.ModuleDict` if they shall"
        )
    return "Module"


def _is_the_same_in_eval(module: Instance, depth: int = 0) -> bool:
    if depth > 6:
        return False
    if isinstance(module.cls, Named):
        if not module.cls.name.startswith("torch.nn."):
            return False
    elif not isinstance(module.cls, ClassValue) or module.open:
        return False
    if any(map(_follows_mode, class_order(module.cls))):
        return False
    return all(
        _is_the_same_in_eval(inner, depth + 1)
        for value in module.attributes.values()
        for inner in _modules_in(value)
    )


def _follows_mode(cls: Value) -> bool:
    """Whether the code of a class itself, not of its bases, may do otherwise in eval mode."""
    if isinstance(cls, Named):
        return any(word in cls.name.rpartition(".")[2] for word in _BY_MODE)
    return not isinstance(cls, ClassValue) or _reads_mode(cls.node)


def may_be_key(key: object) -> bool:
    return (
        isinstance(key, str)
        and key != ""
        and "." not in key
        and not key.startswith("_")
        and key not in ATTRIBUTES
    )


def _reads_mode(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "training" for each in ast.walk(node)) or any(
        isinstance(each, ast.Attribute) and "dropout" in each.attr for each in ast.walk(node)
    )


def _modules_in(value: Value) -> Iterator[Instance]:
    if isinstance(value, Instance):
        yield value
    elif isinstance(value, Sequence):
        for each in value.items or ([value.element] if value.element else []):
            yield from _modules_in(each)
    elif isinstance(value, Mapping_):
        for each in value.items.values():
            yield from _modules_in(each)


def set_in_init(node: ast.ClassDef, attr: str) -> ast.expr:
    """What `__init__` sets the attribute to, a list or dict that is written out, after the Module is made."""
    init = next(
        (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )
    made = False
    found: list[ast.expr] = []
    for statement in init.body if init is not None else ():
        calls = (each for each in ast.walk(statement) if isinstance(each, ast.Call))
        if isinstance(statement, ast.Expr) and any(
            isinstance(each.func, ast.Attribute) and each.func.attr == "__init__" for each in calls
        ):
            made = True
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(_is_it(each, attr) for each in targets):
                if not made or len(targets) != 1:
                    raise Refused(
                        f"`self.{attr}` is set before `super().__init__()`, or together with other names"
                    )
                found.append(statement.value)
    sets = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and _is_it(each, attr)
        and isinstance(each.ctx, (ast.Store, ast.Del))
    ]
    if len(found) != 1 or len(sets) != 1:
        raise Refused(f"`self.{attr}` is not set once, in the body of `__init__`")
    if not isinstance(found[0], (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
        raise Refused(f"what `self.{attr}` is set to is not written out as a list or dict")
    return found[0]


def refuse_other_uses(node: ast.ClassDef, attr: str, kind: str) -> None:
    looks = _ONLY_LOOK if kind.endswith("Dict") else _ONLY_LOOK | {"reversed"}
    parents = {child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Attribute)
            and each.attr in _WALKS
            and isinstance(parents.get(each), ast.Call)
        ):
            raise Refused(
                f"the class calls `{each.attr}`, which would reach what is registered: keep them in an "
                "`nn.ModuleList`, `nn.ModuleDict` or `nn.ParameterList` if it shall"
            )
        if not isinstance(each, ast.Attribute) or not _is_it(each, attr) or isinstance(each.ctx, ast.Store):
            continue
        parent = parents[each]
        if not (
            (isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is each)
            or (
                isinstance(parent, ast.Subscript)
                and parent.value is each
                and isinstance(parent.ctx, ast.Load)
            )
            or (isinstance(parent, ast.Attribute) and parent.attr in _METHODS[kind])
            or (
                isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in looks
            )
        ):
            raise Refused(f"`self.{attr}` is used in a way that an `nn.{kind}` may not have")


def _is_it(node: ast.expr, attr: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attr
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
