"""Modules and Parameters in plain lists and dicts: `nn.ModuleList([...])` around what `__init__` sets.

They become part of the model: of its parameters and its state_dict, and of what `eval()` reaches. Where a Module
behaves otherwise in eval mode, or where the class walks over its Modules, results would change: refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import UnregisteredRead
from exportlens.inference.values import ClassValue, Instance, Mapping_, Named, Sequence, Tensor, Value
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.imports import spelled

# What nn.ModuleList and nn.ParameterList have of a list, and nn.ModuleDict and nn.ParameterDict of a dict.
_OF_LIST = frozenset({"append", "extend", "insert"})
_OF_DICT = frozenset({"items", "keys", "values", "update"})
_ONLY_LOOK = frozenset({"len", "enumerate", "zip", "reversed", "range", "iter", "list", "tuple", "sum"})
# What a class that goes over its Modules or Parameters calls.
_WALKS = frozenset(
    {
        "apply",
        "children",
        "modules",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "state_dict",
    }
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
        kind = _kind(held)
        value = _set_in_init(node, place.attr)
        _refuse_other_uses(node, place.attr, isinstance(held, Mapping_))
        nn = spelled(draft.modules, "torch.nn") or f"{draft.torch}.nn"
        container = f"{nn}.{kind}{'Dict' if isinstance(held, Mapping_) else 'List'}"
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
        if held.rest is not None or any(
            not isinstance(key, str) or not key or "." in key for key in held.items
        ):
            raise Refused("the keys of the dict are not all names, as those of an `nn.ModuleDict` must be")
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
        name = module.cls.name
        if not name.startswith("torch.nn.") or any(word in name.rpartition(".")[2] for word in _BY_MODE):
            return False
    elif not isinstance(module.cls, ClassValue) or module.open or _reads_mode(module.cls.node):
        return False
    return all(
        _is_the_same_in_eval(inner, depth + 1)
        for value in module.attributes.values()
        for inner in _modules_in(value)
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


def _set_in_init(node: ast.ClassDef, attr: str) -> ast.expr:
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


def _refuse_other_uses(node: ast.ClassDef, attr: str, is_dict: bool) -> None:
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
        known = _OF_DICT if is_dict else _OF_LIST
        if not (
            (isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is each)
            or (
                isinstance(parent, ast.Subscript)
                and parent.value is each
                and isinstance(parent.ctx, ast.Load)
            )
            or (isinstance(parent, ast.Attribute) and parent.attr in known)
            or (
                isinstance(parent, ast.Call)
                and isinstance(parent.func, ast.Name)
                and parent.func.id in _ONLY_LOOK
            )
        ):
            raise Refused(f"`self.{attr}` is used in a way that an `nn.ModuleList` may not have")


def _is_it(node: ast.expr, attr: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attr
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
