"""A plain object that a Module holds, and that keeps tensors from call to call, becomes a Module: only those have buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from exportlens.finding import Edit, Fix
from exportlens.inference.classes import class_order, is_known_base, is_module_class
from exportlens.inference.values import ClassValue, Instance, Named, Tensor, Value, options
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.state.places_of_objects import PlacesOfObjects, is_plain, makes_base
from exportlens.rewriting.state.registered_lists import ATTRIBUTES
from exportlens.source.document import Chunk

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
_SPECIAL_ALLOWED = frozenset(
    {"__init__", "__repr__", "__str__", "__doc__", "__call__", "__annotations__", "__slots__"}
)


@dataclass(frozen=True)
class Made:
    """What makes the class of an object a Module: the swaps in the chunk of the class that keeps the state, and edits elsewhere."""

    swaps: list[Replacement] = field(default_factory=list)
    edits: tuple[Edit, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.swaps or self.edits)

    def __iter__(self) -> Iterator[Replacement]:
        return iter(self.swaps)

    def joined(self, fix: Fix) -> Fix:
        return replace(fix, edits=(*fix.edits, *self.edits))


def is_module(owner: ClassValue) -> bool:
    """Whether a class has bases that are not of the workspace, as every Module has, and that are not known to make none."""
    return is_module_class(owner) or any(
        isinstance(each, Named) and not is_known_base(each.name) for each in class_order(owner)
    )


def made_module(draft: Draft, cls: ast.ClassDef, owner: ClassValue, held: Value | None) -> Made:
    """What makes `cls` (`owner`) a Module, nothing where it is one. Raises Refused where its objects could not be told from Modules, or
    where `held`, the object at hand, is not kept by a Module."""
    if is_module(owner):
        return Made()
    if not isinstance(held, Instance):
        raise Refused(f"`{owner.name}` is no Module: it has no buffers")
    root, others = _family(draft, cls)
    for each, _ in others:
        _refuse_class(each)
    _refuse_class(root)
    places = PlacesOfObjects(draft, {root.name, *(each.name for each, _ in others)})
    if not held.registered and not places.kept:
        raise Refused(f"`{owner.name}` is no Module: it has no buffers")
    _refuse_contents(held)
    for each, source in others:
        _refuse_derived(each, source)
    if draft.source.parents.get(root) is None:
        # The class at the root stands in another chunk of the file.
        there = Draft.of_chunk(_chunk_of(draft, root), draft.context)
        found = there.source.find(root)
        assert isinstance(found, ast.ClassDef)
        edits = there.replace("", _begun(there, found), uses_torch=True).edits
        return Made(places.swaps, (*places.edits, *edits))
    begin = constructor_of(root)
    if begin is not None and not makes_base(begin):
        draft.source.becoming.add(begin)
    return Made([*_begun(draft, root), *places.swaps], tuple(places.edits))


def module_first(draft: Draft, cls: ast.ClassDef, made: Made) -> Fix:
    """The fix that makes the class a Module, and no more yet."""
    return made.joined(draft.replace(f"Make `{cls.name}` a Module", [*made.swaps]))


def _begun(draft: Draft, cls: ast.ClassDef) -> list[Replacement]:
    """What makes a class without bases a Module: the base, and the call of its constructor."""
    source, newline = draft.source, draft.source.newline
    if not source.begins_line(cls):
        raise Refused(f"`{cls.name}` is written on one line")
    swaps = [_with_base(draft, cls), *_without_slots(source, cls)]
    begin = constructor_of(cls)
    if begin is None:
        return swaps
    first = begin.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(begin.body) > 1
    first = begin.body[1] if documented else first
    if not source.begins_line(first):
        raise Refused(f"the constructor of `{cls.name}` is written on one line")
    if not makes_base(begin):
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


def _without_slots(source: Source, cls: ast.ClassDef) -> list[Replacement]:
    """`__slots__` names where the attributes lie: a Module has other places for its own."""
    swaps = []
    for each in cls.body:
        if isinstance(each, ast.Assign) and [dotted(one) for one in each.targets] == ["__slots__"]:
            if not source.begins_line(each) or len(cls.body) < 2:
                raise Refused(f"`{cls.name}` is no Module, and cannot become one: it has `__slots__`")
            start, end = source.span([each])
            behind = source.text[end:]
            swaps.append(Replacement(start, end + len(behind) - len(behind.lstrip("\r\n")), ""))
    return swaps


def _family(draft: Draft, cls: ast.ClassDef) -> tuple[ast.ClassDef, list[tuple[ast.ClassDef, Source]]]:
    """The plain class at the root of what `cls` is made of, and the classes of the file that are made of that, with their sources."""
    found: dict[str, tuple[ast.ClassDef, Source]] = {}
    for chunk in [draft.chunk, *draft.others()]:
        source = draft.source if chunk is draft.chunk else Source(chunk.text)
        for each in ast.walk(source.tree):
            if isinstance(each, ast.ClassDef):
                if each.name in found:
                    raise Refused(f"`{each.name}` is no Module, and is defined several times")
                found[each.name] = each, source
    root = cls
    while not is_plain(root):
        name = dotted(root.bases[0]) if len(root.bases) == 1 else None
        if name not in found or found[name][0] is root:
            raise Refused(f"`{cls.name}` is no Module, and more than a plain class: it has no buffers")
        root = found[name][0]
    names, family = {root.name}, []
    more = True
    while more:
        more = False
        for each, source in found.values():
            if each.name not in names and names & {dotted(one) for one in each.bases}:
                names.add(each.name)
                family.append((each, source))
                more = True
    return root, family


def _chunk_of(draft: Draft, cls: ast.ClassDef) -> Chunk:
    return next(
        each
        for each in draft.others()
        if any(isinstance(one, ast.ClassDef) and one.name == cls.name for one in each.body)
    )


def _refuse_class(cls: ast.ClassDef) -> None:
    if len(cls.bases) > 1 or cls.keywords or cls.decorator_list:
        raise Refused(f"`{cls.name}` is no Module, and more than a plain class: it has no buffers")
    for name in _names(cls):
        special = name.startswith("__") and name.endswith("__") and name not in _SPECIAL_ALLOWED
        if special or name in OF_MODULES:
            raise Refused(f"`{cls.name}` is no Module, and cannot become one: it has a `{name}` of its own")
    begin = next((each for each in cls.body if getattr(each, "name", "") == "__init__"), None)
    if begin is not None and constructor_of(cls) is None:
        raise Refused(f"`{cls.name}` is no Module, and its constructor is no plain method")


def _refuse_derived(cls: ast.ClassDef, source: Source) -> None:
    """Raise Refused where the constructor of a class may set attributes before it calls that of its base."""
    begin = constructor_of(cls)
    if begin is None:
        return
    first = begin.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(begin.body) > 1:
        first = begin.body[1]
    if not makes_base(begin) or source.parents.get(begin) is not cls or not makes_base(first):
        raise Refused(f"`{cls.name}` is no Module, and does not begin with the constructor of its base")


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


def constructor_of(cls: ast.ClassDef) -> ast.FunctionDef | None:
    """The constructor of a class, where it is a plain method."""
    for each in cls.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            given = [*each.args.posonlyargs, *each.args.args]
            return each if [one.arg for one in given[:1]] == ["self"] and not each.decorator_list else None
    return None
