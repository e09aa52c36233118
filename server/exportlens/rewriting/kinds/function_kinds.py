"""What functions of the file give: kinds of the results of its functions and methods, and of those that torch.cond and
while_loop run."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.values import ClassValue, Function, Instance, Sequence
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted, own_calls
from exportlens.rewriting.kinds.kind import LOCAL, OF_NUMBERS, UNKNOWN_KIND, Kind, merged, numbers, union
from exportlens.rewriting.kinds.made_objects import without_value

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds


def of_own(
    kinds: Kinds,
    function: ast.FunctionDef,
    node: ast.Call,
    instance: Instance | None = None,
    owner: Kind | None = None,
) -> Kind:
    """What a function of the file, a method of the class or of another object `owner`, or a method of another `instance`
    gives: tensors of which each way out says the same."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_method = isinstance(node.func, ast.Attribute) or instance is not None
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    if (function.decorator_list and not static) or any(isinstance(each, ast.Starred) for each in node.args):
        return UNKNOWN_KIND
    if "falls" in exits(function.body) or (is_method and not static and not names):
        # It may give None, or takes `self` in its own way.
        return UNKNOWN_KIND
    inside = kinds.inside_of(function)
    if is_method and not static:
        own = Kind("object", roots=None, value=instance) if instance is not None else owner
        if instance is not None and isinstance(instance.cls, ClassValue):
            inside.functions = {name: each for name, each in inside.functions.items() if "." not in name} | {
                f"self.{name}": each for name, each in own_methods(instance).items() if each is not function
            }
        inside.names[names.pop(0)] = own or kinds.names.get("self", UNKNOWN_KIND)
    given = dict(zip(names, node.args, strict=False)) | {
        each.arg: each.value for each in node.keywords if each.arg is not None
    }
    memory: dict[str, frozenset[str] | None] = {}
    for name, value in given.items():
        # Whose memory it is, the caller knows.
        passed, token = kinds.of(value), f"?{next(numbers)}"
        made = passed.what == "tensor" and passed.fresh
        memory[token] = frozenset({f"{LOCAL}{next(numbers)}"}) if made else passed.roots
        inside.names[name] = replace(passed, roots=frozenset({token}))
    asked = [(name, inside.names[name]) for name in sorted(given)]
    key = (
        function,
        instance,
        owner.type if owner is not None else "",
        *(
            (name, each.what, each.dtype, each.rank, each.type, each.moved, each.parted, each.later)
            for name, each in asked
        ),
    )
    plain = all(each.items is None and each.what != "container" for _, each in asked)
    if plain and key in kinds.answers:
        kind, tokens = kinds.answers[key]
        memory = {token: memory[now] for token, (now,) in zip(tokens, _tokens(asked), strict=True)}
    else:
        found: list[Kind] = []
        inside.copy().returns(function.body, found)
        kind = _given_back(found)
        if own_calls(function):
            # What its own calls give, of which it may make what it gives, is what its other ways give.
            inside.itself = _given_again([each for each in found if _is_told(each)], frozenset(memory))
            found = []
            inside.returns(function.body, found)
            kind = _given_back(found)
        if plain:
            kinds.answers[key] = kind, tuple(token for (token,) in _tokens(asked))
    path = dotted(node.func) or ""
    owned = path if instance is not None and function.name == "forward" else path.rpartition(".")[0]
    return _named_here(kind, memory, owned)


def _is_told(kind: Kind) -> bool:
    return kind.what != "unknown" and all(map(_is_told, kind.items or ()))


def _given_again(found: list[Kind], given: frozenset[str]) -> Kind:
    """What a call gives of the function that is followed, where its ways without such calls give `found`: the memory of what
    it is `given` may be that of anything that this one is."""

    def of_any(kind: Kind) -> Kind:
        roots = kind.roots | given if kind.roots and kind.roots & given else kind.roots
        items = None if kind.items is None else tuple(map(of_any, kind.items))
        return replace(kind, roots=roots, items=items)

    return of_any(_given_back(found)) if found else UNKNOWN_KIND


def _tokens(asked: list[tuple[str, Kind]]) -> list[frozenset[str]]:
    return [each.roots or frozenset() for _, each in asked]


def _named_here(kind: Kind, memory: dict[str, frozenset[str] | None], owned: str) -> Kind:
    """`kind`, which a function gives, with the names that its caller has for memory: `memory` of what the function was given,
    and of what it made, and `owned`, the path of its `self`."""
    items = None if kind.items is None else tuple(_named_here(each, memory, owned) for each in kind.items)
    if kind.what == "container" and items is not None:
        return replace(kind, roots=union(list(items)), items=items)
    if kind.what != "tensor" or not kind.roots:
        return kind
    roots: set[str] = set()
    for root in kind.roots:
        if root.startswith(LOCAL) and root not in memory:
            memory[root] = frozenset({f"{LOCAL}{next(numbers)}"})
        elif root.startswith("self.") and owned:
            memory[root] = frozenset({f"{owned}.{root.removeprefix('self.')}"})
        known = memory.get(root)
        if known is None:
            return replace(kind, roots=None)
        roots |= known
    return replace(kind, roots=frozenset(roots))


def _given_back(found: list[Kind]) -> Kind:
    """What is known of a result that is one of `found`. Memory that was made inside has no name any more, but where parts share it."""
    if found and all(each.what == "tensor" for each in found):
        roots = union(found)
        known = None if roots is None else frozenset(each for each in roots if not each.startswith(LOCAL))
        return replace(merged(found), roots=known)
    made = next((each for each in found if each.what == "object" and each.type.startswith("a ")), None)
    if made is not None:
        return without_value(made)
    if any(each.what == "scalar" for each in found) and {each.what for each in found} <= OF_NUMBERS:
        # Of numbers that no data decides, a branch on data may decide which. What answers by a bool may have become a tensor.
        type_ = merged(found).type
        return Kind("scalar", type=type_) if type_ != "bool" else UNKNOWN_KIND
    rows = [each.items for each in found if each.what == "container" and each.items]
    if (
        not rows
        or len(rows) != len(found)
        or len({len(each) for each in rows}) != 1
        or len({each.keys for each in found}) != 1
    ):
        return UNKNOWN_KIND
    columns = [list(each) for each in zip(*rows, strict=True)]
    items = [_given_back(each) for each in columns]
    memory = [union(each) for each in columns]
    made_inside = [frozenset(root for root in each or () if root.startswith(LOCAL)) for each in memory]
    if None in memory or sum(map(len, made_inside)) != len(frozenset().union(*made_inside)):
        # Parts that share memory share what has no name here.
        shared = frozenset({f"{LOCAL}{next(numbers)}"})
        items = [
            replace(each, roots=shared) if each.fresh and each.what == "tensor" else each for each in items
        ]
    values = [each.value if isinstance(each.value, Sequence) else None for each in found]
    fields = {each.fields if each is not None else () for each in values}
    # Named tuples that are of one class as far as one can see.
    named = Sequence("tuple", None, fields=fields.pop()) if len(fields) == 1 and () not in fields else None
    return Kind("container", roots=union(items), items=tuple(items), keys=found[0].keys, value=named)


def forward_of(kinds: Kinds, instance: Instance) -> ast.FunctionDef | None:
    """The `forward` of a class of the same file, where it is the class's own."""
    return method_of_module(kinds, instance, "forward")


def method_of_module(kinds: Kinds, instance: Instance, name: str) -> ast.FunctionDef | None:
    """The method `name` of a Module, of a class of the same file, inherited of another one there perhaps."""
    if not isinstance(instance.cls, ClassValue) or name in instance.attributes:
        return None
    method = class_attribute(instance.cls, name)[0]
    if not isinstance(method, Function) or not isinstance(method.node, ast.FunctionDef):
        return None
    return method.node if any(method.chunk is each for each in kinds.around) else None


def own_methods(instance: Instance) -> dict[str, ast.FunctionDef]:
    """The methods of a Module of a class of the workspace, those of the classes that it is derived from included."""
    return {
        each.name: each
        for cls in reversed(class_order(instance.cls))
        if isinstance(cls, ClassValue)
        for each in cls.node.body
        if isinstance(each, ast.FunctionDef)
    }


def module_called(kinds: Kinds, node: ast.Call) -> tuple[Instance, str] | None:
    """The Module that `node` calls by one of its methods, `self.cell.step(x)`, and the method's name."""
    if not isinstance(node.func, ast.Attribute) or dotted(node.func.value) == "self":
        return None
    owner = kinds.of(node.func.value).value
    return (owner, node.func.attr) if isinstance(owner, Instance) else None


def own_function(kinds: Kinds, node: ast.Call) -> ast.FunctionDef | None:
    """The function of the file, the method of the class, or the forward of a Module of the file that `node` calls."""
    called = kinds.of(node.func).value
    if isinstance(called, Instance):
        return forward_of(kinds, called)
    own = module_called(kinds, node)
    if own is not None:
        return method_of_module(kinds, own[0], own[1])
    return kinds.functions.get(dotted(node.func) or "")


def of_control_flow(kinds: Kinds, node: ast.Call) -> Kind:
    """The outputs of torch.cond and while_loop never share memory with anything."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "while_loop" and len(node.args) >= 3:
        carried = kinds.of(node.args[2])
        if carried.items is None:
            return UNKNOWN_KIND
        items = tuple(replace(each, roots=frozenset(), value=None) for each in carried.items)
        return replace(carried, items=items, roots=frozenset())
    if isinstance(node.func, ast.Attribute) and node.func.attr == "tree_map":
        # Both arms were run for what one of them gives.
        called = [each.func for each in node.args[1:] if isinstance(each, ast.Call) and not each.args]
        return (len(called) == 2 and len(node.args) == 3 and _of_arms(kinds, called)) or UNKNOWN_KIND
    if len(node.args) >= 3 and isinstance(node.args[1], ast.Lambda):
        return replace(kinds.of(node.args[1].body), roots=frozenset())
    if len(node.args) == 4 and isinstance(node.args[3], ast.Tuple) and not node.args[3].elts:
        return _of_arms(kinds, node.args[1:3]) or Kind("tensor")
    return UNKNOWN_KIND if not node.args else Kind("tensor")


def _of_arms(kinds: Kinds, arms: list[ast.expr]) -> Kind | None:
    """What functions of the same code give that take in nothing; None where that is not seen."""
    found: list[Kind] = []
    for each in arms:
        arm = kinds.arms.get(each.id) if isinstance(each, ast.Name) else None
        if arm is None or kinds.names.get(arm.name, UNKNOWN_KIND).what != "object":
            return None
        given = [*arm.args.posonlyargs, *arm.args.args]
        if len(given) != len(arm.args.defaults) or arm.args.kwonlyargs or arm.decorator_list:
            return None
        inside = kinds.copy()
        for name, default in zip(given, arm.args.defaults, strict=True):
            inside.names[name.arg] = kinds.of(default)
        inside.returns(arm.body, found)
    if not found:
        return None
    if all(each.what == "container" and each.items is not None for each in found):
        columns = [each.items or () for each in found]
        if len({len(each) for each in columns}) == 1:
            items = tuple(_out_of_arms([*column]) for column in zip(*columns, strict=True))
            return Kind("container", items=items)
    return _out_of_arms(found)


def _out_of_arms(kinds: list[Kind]) -> Kind:
    """An output of torch.cond that is one of `kinds`, depending on the way taken: memory of its own."""
    if all(each.what == "tensor" for each in kinds):
        return replace(merged(kinds), roots=frozenset(), value=None, parted=False, later=False)
    if all(each.what in ("number", "size", "scalar") and each.type == "int" for each in kinds):
        return Kind("scalar", type="int")
    return Kind("tensor")
