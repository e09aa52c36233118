"""Classes of outputs, registered with torch behind their definitions, so that a program can return them.

What an object holds is taken from the object itself, not asked of its constructor: the constructor may compute, and
attributes may be set after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference import knowledge
from exportlens.inference.attributes import DEVICE
from exportlens.inference.values import ClassValue, Instance, Named, Static, Tensor, Value
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.source.document import Chunk, Document

# Bases that hold nothing of their own, or (UserDict) hold it in an attribute.
_PLAIN = frozenset(
    {"object", "abc.ABC", "typing.Generic", "Generic", "collections.UserDict", "collections.UserList"}
)
_CONTAINERS = ("dict", "collections.OrderedDict", "list")
# A container that answers these in its own way does not tell what it holds.
_ASKED = frozenset({"__iter__", "keys", "values", "update", "extend", "__getattribute__"})
# Distributions that keep their parameters in attributes of these names (torch/distributions/*.py).
_DISTRIBUTIONS = {
    "Cauchy": ("loc", "scale"),
    "Exponential": ("rate",),
    "Gamma": ("concentration", "rate"),
    "Laplace": ("loc", "scale"),
    "Normal": ("loc", "scale"),
    "Uniform": ("low", "high"),
}
_NO_OUTPUTS = ("dtype", "device", "layout", "range", "slice")


@dataclass(frozen=True, slots=True)
class _Anatomy:
    """A class with its bases of the same file, the container that they extend ("" for none), how that is spelled, and
    whether its objects may have attributes beside the container's items."""

    nodes: tuple[ast.ClassDef, ...]
    container: str
    spelled: str
    has_attributes: bool

    def defines(self, *names: str) -> bool:
        return any(
            isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name in names
            for node in self.nodes
            for each in node.body
        )

    @property
    def is_its_own_dict(self) -> bool:
        """Whether the object is a dict whose attributes are its items (`self.__dict__ = self`)."""
        return any(each.attr == "__dict__" for node in self.nodes for each in _set_attributes(node))

    @property
    def slots(self) -> bool:
        return any(
            isinstance(each, ast.Name) and each.id == "__slots__" and isinstance(each.ctx, ast.Store)
            for node in self.nodes
            for each in ast.walk(node)
        ) or any("slots=True" in ast.unparse(each) for node in self.nodes for each in node.decorator_list)


def register_output_classes(returned: Iterable[Instance], context: RewriteContext) -> Fix | Refusal:
    """The classes of `returned`, objects in what the model returns, each registered once."""
    found: dict[str, tuple[ClassValue, dict[str, Value]]] = {}
    for each in returned:
        if isinstance(each.cls, ClassValue):
            held = found.setdefault(each.cls.name, (each.cls, {}))[1]
            held.update(each.attributes)
    if not found:
        return Refusal(
            "the class of what is returned is of another library: return tensors in a tuple or dict"
        )
    fixes: list[Fix] = []
    for cls, held in found.values():
        if cls.scope.path != context.document.path:
            return Refusal(f"`{cls.name}` is defined in {cls.scope.path.name}")
        fix = _register(cls.chunk, cls.node, held, context)
        if isinstance(fix, Refusal):
            return fix
        fixes.append(fix)
    edits = tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits))
    safe = all(fix.applicability is Applicability.SAFE for fix in fixes)
    names = ", ".join(f"`{name}`" for name in found)
    return Fix(
        f"Register {names} with torch.export", edits, Applicability.SAFE if safe else Applicability.UNSAFE
    )


def register_class(name: str, context: RewriteContext) -> Fix | Refusal:
    """The class that is called so, as an export names it."""
    found = [
        (placed.chunk, node)
        for placed in context.document.placed
        for node in placed.chunk.body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    if len(found) != 1:
        return Refusal(f"`{name}` in the output is no class of this file's top level: return tensors instead")
    return _register(*found[0], {}, context)


def _register(
    chunk: Chunk, like: ast.ClassDef, held: Mapping[str, Value], context: RewriteContext
) -> Fix | Refusal:
    try:
        if not any(each is like or ast.dump(each) == ast.dump(like) for each in chunk.body):
            raise Refused(f"`{like.name}` is made anew at every call: define it at the top of the file")
        draft = Draft.of_chunk(chunk, context)
        node = draft.source.find(like)
        assert isinstance(node, ast.ClassDef)
        _refuse_held(node.name, held)
        parameters = _DISTRIBUTIONS.get(_distribution_of(node, draft))
        if parameters is not None:
            return _behind(draft, node, _by_parameters(draft, node, parameters, held), False)
        anatomy = _anatomy(node, draft)
        is_dataclass = _is_dataclass(node) and _keeps_fields_alone(anatomy, held)
        if is_dataclass:
            lines = [f"{draft.torch}.export.register_dataclass({node.name})"]
        elif anatomy.slots:
            lines = _by_constructor(draft, node)
        else:
            lines = _by_contents(draft, node.name, anatomy)
        return _behind(draft, node, lines, is_dataclass)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _behind(draft: Draft, node: ast.ClassDef, lines: list[str], is_safe: bool) -> Fix:
    """The Fix that puts `lines` behind the class `node`."""
    nl = draft.source.newline
    end = draft.source.span([node])[1]
    swap = Replacement(end, end, nl * 3 + nl.join(lines))
    safe = Applicability.SAFE if is_safe else Applicability.UNSAFE
    swaps = [*_attributes_as_methods(draft.source, node), swap]
    return draft.replace(f"Register `{node.name}` with torch.export", swaps, safe)


# How a dict gives its items as attributes by its own methods, and what those are called with behind `self`.
_ITEMS_AS_ATTRIBUTES = {
    "__getattr__ = dict.__getitem__": "name",
    "__getattr__ = dict.get": "name",
    "__setattr__ = dict.__setitem__": "name, value",
    "__delattr__ = dict.__delitem__": "name",
}


def _attributes_as_methods(source: Source, node: ast.ClassDef) -> Iterator[Replacement]:
    """`__setattr__ = dict.__setitem__` as a method of the class: strict tracing follows methods of Python's (measured on torch 2.13)."""
    for each in node.body:
        given = _ITEMS_AS_ATTRIBUTES.get(ast.unparse(each))
        if given is not None and isinstance(each, ast.Assign) and source.begins_line(each):
            name, called = ast.unparse(each.targets[0]), ast.unparse(each.value)
            line_end = f"{source.newline}{source.indent_of(each)}"
            lines = [f"def {name}(self, {given}):", f"{source.indent_unit()}return {called}(self, {given})"]
            yield source.swap(each, line_end.join(lines))


def _distribution_of(node: ast.ClassDef, draft: Draft) -> str:
    """The name of the distribution of torch's that the class extends; "" where it extends anything else."""
    if len(node.bases) != 1 or node.keywords:
        return ""
    home, _, name = draft.qualified(node.bases[0]).rpartition(".")
    return name if home == "torch.distributions" or home.startswith("torch.distributions.") else ""


def _by_parameters(
    draft: Draft, node: ast.ClassDef, parameters: Sequence[str], held: Mapping[str, Value]
) -> list[str]:
    """The registration of a class that extends a distribution: its parameters are tensors, and so are some of its own
    attributes; all else that it holds are numbers."""
    own = [name for name, value in held.items() if isinstance(value, Tensor) and name not in parameters]
    names = repr((*parameters, *own)).replace("'", '"')
    make = f"_make_{node.name.strip('_').lower()}"
    unit = draft.source.indent_unit()
    return [
        f"def {make}(leaves, others):",
        f"{unit}value = object.__new__({node.name})",
        f"{unit}vars(value).update(others, **dict(zip({names}, leaves)))",
        f"{unit}return value",
        "",
        "",
        f"{draft.torch}.utils._pytree.register_pytree_node(",
        f"{unit}{node.name},",
        f"{unit}lambda value: (",
        f"{unit}{unit}[vars(value)[each] for each in {names}],",
        f"{unit}{unit}{{key: each for key, each in vars(value).items() if key not in {names}}},",
        f"{unit}),",
        f"{unit}{make},",
        f'{unit}serialized_type_name="{node.name}",',
        ")",
    ]


def _refuse_held(name: str, held: Mapping[str, Value]) -> None:
    for attribute, value in held.items():
        kind = _no_output(value)
        if kind:
            raise Refused(
                f"`{name}` holds a {kind} in `{attribute}`, which no program returns: return the tensors alone"
            )


def _no_output(value: Value) -> str:
    """What `value` is where it is known to be no output of a program, else ""."""
    if isinstance(value, Named):
        constant = knowledge.lookup_constant(value.name)
        kind = "device" if value.name.startswith(DEVICE) else constant.kind if constant is not None else ""
    else:
        kind = value.type if isinstance(value, Static) else ""
    return kind if kind in _NO_OUTPUTS else ""


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(
        (dotted(each.func if isinstance(each, ast.Call) else each) or "").endswith("dataclass")
        for each in node.decorator_list
    )


def _keeps_fields_alone(anatomy: _Anatomy, held: Mapping[str, Value]) -> bool:
    """Whether the constructor that `dataclass` writes gives the object again from its fields."""
    fields = {
        each.target.id
        for node in anatomy.nodes
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return (
        not anatomy.container
        and not anatomy.defines("__init__", "__post_init__", "__setattr__", "__new__")
        and set(held) <= fields
    )


def _anatomy(node: ast.ClassDef, draft: Draft) -> _Anatomy:
    """Raises Refused where a base is not known."""
    classes = {each.name: each for each in _classes(draft.context.document)}
    nodes: list[ast.ClassDef] = []
    containers: dict[str, str] = {}
    waiting = [node]
    while waiting:
        current = waiting.pop()
        nodes.append(current)
        if current.keywords:
            raise Refused(f"`{current.name}` has a metaclass, or arguments of its own")
        for base in current.bases:
            spelled = dotted(base.value if isinstance(base, ast.Subscript) else base) or ""
            head, dot, rest = spelled.partition(".")
            name = draft.modules.get(head, head) + dot + rest
            if spelled in classes and classes[spelled] not in nodes:
                waiting.append(classes[spelled])
            elif name in _CONTAINERS:
                containers[name] = spelled
            elif name not in _PLAIN:
                raise Refused(
                    f"`{node.name}` is a {spelled or 'class of a computed base'}: register it with "
                    "torch.utils._pytree.register_pytree_node, or return a dict"
                )
    if len(containers) > 1:
        raise Refused(f"`{node.name}` is several containers at once: return a dict")
    container, spelled = next(iter(containers.items()), ("", ""))
    anatomy = _Anatomy(tuple(nodes), container, spelled, False)
    if anatomy.defines(*_ASKED) and container:
        raise Refused(f"`{node.name}` gives its items in a way of its own: return a dict")
    if anatomy.defines("__getattribute__"):
        raise Refused(f"`{node.name}` gives its attributes in a way of its own: return a dict")
    if container and anatomy.slots:
        raise Refused(f"`{node.name}` is a {spelled} with `__slots__`: return a dict")
    return _Anatomy(tuple(nodes), container, spelled, _may_have_attributes(anatomy, draft.context.document))


def _may_have_attributes(anatomy: _Anatomy, document: Document) -> bool:
    """Whether an object may have attributes of its own, beside what its container holds."""
    own = any(each.attr != "__dict__" for node in anatomy.nodes for each in _set_attributes(node))
    if anatomy.is_its_own_dict:
        if own or _sets_attributes(document):
            raise Refused(
                f"a `{anatomy.nodes[0].name}` is its own `__dict__`, and strict tracing loses attributes that are set "
                "on it: set items instead, or return a dict"
            )
        return False
    # A dataclass sets its fields; a `__setattr__` of the class may turn attributes into items, or keep them as well.
    sets = any(
        isinstance(each, ast.Attribute) and each.attr in ("__setattr__", "__dict__")
        for node in anatomy.nodes
        for each in ast.walk(node)
    )
    redirects = anatomy.defines("__setattr__") and not sets
    return (
        own
        or any(_is_dataclass(node) for node in anatomy.nodes)
        or (not redirects and (sets or _sets_attributes(document)))
    )


def _sets_attributes(document: Document) -> bool:
    """Whether the file sets attributes of anything but `self`."""
    return any(
        (isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and not _is_self(each.value))
        or (isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "setattr")
        for placed in document.placed
        for node in placed.chunk.body
        for each in ast.walk(node)
    )


def _set_attributes(node: ast.ClassDef) -> Iterator[ast.Attribute]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _is_self(each.value):
            yield each


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _classes(document: Document) -> Iterator[ast.ClassDef]:
    for placed in document.placed:
        yield from (each for each in placed.chunk.body if isinstance(each, ast.ClassDef))


def _by_contents(draft: Draft, name: str, anatomy: _Anatomy) -> list[str]:
    """The registration of a class whose objects are taken apart into what they hold, and made again without
    their constructor."""
    unit = draft.source.indent_unit()
    make = f"_make_{name.strip('_').lower()}"
    while any(make in placed.chunk.text for placed in draft.context.document.placed):
        make = f"_{make}"
    base = anatomy.spelled
    plain = not (
        anatomy.defines("__init__", "__new__", "__setitem__")
        or anatomy.is_its_own_dict
        or any(_is_dataclass(node) for node in anatomy.nodes)
    )
    before: list[str] = []
    if anatomy.container == "list" and anatomy.has_attributes:
        flatten = "([*value, *vars(value).values()], [len(value), list(vars(value))])"
        body = [
            f"value = {base}.__new__({name})",
            f"{base}.extend(value, leaves[: names[0]])",
            "vars(value).update(zip(names[1], leaves[names[0] :]))",
        ]
    elif anatomy.container == "list":
        flatten = "(list(value), None)"
        body = [f"value = {base}.__new__({name})", f"{base}.extend(value, leaves)"]
    elif anatomy.container and anatomy.has_attributes:
        flatten = "([*value.values(), *vars(value).values()], [list(value), list(vars(value))])"
        body = [
            f"value = {base}.__new__({name})",
            f"{base}.update(value, zip(names[0], leaves))",
            "vars(value).update(zip(names[1], leaves[len(names[0]) :]))",
        ]
    elif anatomy.container:
        flatten = "(list(value.values()), list(value))"
        body = [f"value = {base}.__new__({name})", f"{base}.update(value, zip(names, leaves))"]
        if anatomy.is_its_own_dict:
            body.append("value.__dict__ = value")
    else:
        flatten = "(list(vars(value).values()), list(vars(value)))"
        body = [f"value = object.__new__({name})", "vars(value).update(zip(names, leaves))"]
    if plain and anatomy.container and not anatomy.has_attributes:
        again = "leaves" if anatomy.container == "list" else "zip(names, leaves)"
        make = f"lambda leaves, names: {name}({again})"
    else:
        before = [
            f"def {make}(leaves, names):",
            *(f"{unit}{line}" for line in [*body, "return value"]),
            "",
            "",
        ]
    return [
        *before,
        f"{draft.torch}.utils._pytree.register_pytree_node(",
        f"{unit}{name},",
        f"{unit}lambda value: {flatten},",
        f"{unit}{make},",
        f'{unit}serialized_type_name="{name}",',
        ")",
    ]


def _by_constructor(draft: Draft, node: ast.ClassDef) -> list[str]:
    """The registration of a class with `__slots__`, which has no other attributes than its constructor keeps."""
    parts = ", ".join(f"value.{field}" for field in _kept_by_constructor(node))
    unit = draft.source.indent_unit()
    return [
        f"{draft.torch}.utils._pytree.register_pytree_node(",
        f"{unit}{node.name},",
        f"{unit}lambda value: ([{parts}], None),",
        f"{unit}lambda leaves, _: {node.name}(*leaves),",
        f'{unit}serialized_type_name="{node.name}",',
        ")",
    ]


def _assigned(statement: ast.stmt) -> list[tuple[ast.expr | None, ast.expr | None]]:
    """The targets of an assignment with what each gets, also those of `self.a, self.b = a, b`; (None, None) for anything else."""
    if isinstance(statement, ast.AnnAssign):
        return [(statement.target, statement.value)]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [(None, None)]
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _kept_by_constructor(node: ast.ClassDef) -> list[str]:
    """The attribute that each parameter of `__init__` becomes, in order: the object can be made again from them.

    Raises Refused where the constructor does anything else.
    """
    init = next(
        (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )
    why = (
        f"`{node.name}` has `__slots__`, and its constructor does more than keep its arguments: return tensors "
        "in a tuple or dict"
    )
    if init is None or init.args.vararg or init.args.kwarg or init.args.kwonlyargs:
        raise Refused(why)
    kept: dict[str, str] = {}
    for statement in init.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        for target, value in _assigned(statement):
            if not (
                isinstance(target, ast.Attribute) and isinstance(value, ast.Name) and value.id not in kept
            ):
                raise Refused(why)
            kept[value.id] = target.attr
    parameters = [each.arg for each in [*init.args.posonlyargs, *init.args.args]][1:]
    if set(kept) != set(parameters):
        raise Refused(why)
    return [kept[name] for name in parameters]
