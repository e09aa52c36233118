"""Tensors that Python orders by a key: the keys of all are one tensor, whose order selects among the stacked tensors.

    sorted(scores, key=lambda s: s.abs())[0]
->  list(torch.stack(scores)[torch.argsort(torch.stack([s.abs() for s in scores]), stable=True)].unbind())[0]

    max(rows, key=lambda row: row.norm())
->  torch.stack(rows)[torch.stack([row.norm() for row in rows]).argmax().reshape(1)].squeeze(0)

The tensors must be of one shape: rows of a tensor, numbers, or what layers that were made alike give.
"""

from __future__ import annotations

import ast

from exportlens.inference.values import ClassValue, Const, Instance, Named, Sequence, Value
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.numbers.operands import read_out

# What gives as many elements as data says.
_OPEN_SIZES = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "where"})
_CHANGING = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})


def ordered_by_key(
    source: Source, node: ast.Call, key: ast.expr, reverse: bool, kinds: Kinds, torch: str
) -> str:
    """The text for `sorted`, `max` or `min` of tensors with a key. Raises Refused."""
    assert isinstance(node.func, ast.Name)
    elements = node.args[0]
    if isinstance(elements, ast.Call) and dotted(elements.func) == "range" and len(elements.args) == 1:
        return _place(source, node, key, reverse, kinds, torch)
    zipped = isinstance(elements, ast.Call) and dotted(elements.func) == "zip" and not elements.keywords
    lists = elements.args if isinstance(elements, ast.Call) and zipped else [elements]
    parts, element = [], UNKNOWN_KIND
    for each in lists:
        text, element = _stacked(source, each, kinds, torch)
        parts.append((text, element))
    if zipped:
        element = Kind("container", items=tuple(kind for _, kind in parts))
    keys = f"{torch}.stack([{of_each(source, key, source.of(elements), element, kinds, torch)}])"
    if node.func.id == "sorted":
        # Python keeps equal ones in their order, both ways.
        order = ", descending=True" if reverse else ""
        order, behind = f"{torch}.argsort({keys}, stable=True{order})", ".unbind()"
    else:
        order, behind = f"{keys}.arg{node.func.id}().reshape(1)", ".squeeze(0)"
    if not zipped:
        text = f"{parts[0][0]}[{order}]{behind}"
        return f"list({text})" if node.func.id == "sorted" else text
    if any(isinstance(each, (ast.comprehension, ast.Lambda)) for each in source.ancestors(node)):
        raise Refused("what is ordered is part of a comprehension: give it a name before")
    name = fresh("order", every_name(source.enclosing_function(node) or source.tree))
    indices = [f"{name} := {order}", *(name for _ in parts[1:])]
    columns = [f"{text}[{index}]{behind}" for (text, _), index in zip(parts, indices, strict=True)]
    if node.func.id == "sorted":
        return f"list(zip({', '.join(columns)}))"
    return f"({', '.join(columns)}{',' if len(columns) == 1 else ''})"


def _place(source: Source, node: ast.Call, key: ast.expr, reverse: bool, kinds: Kinds, torch: str) -> str:
    """The text for the places in a list, ordered by what the list holds there: `max(range(len(scores)), key=lambda i: scores[i])`."""
    assert isinstance(node.func, ast.Name)
    numbers = source.of(node.args[0])
    keys = f"{torch}.stack([{of_each(source, key, numbers, Kind('number', type='int'), kinds, torch)}])"
    if node.func.id != "sorted":
        return f"{keys}.arg{node.func.id}().item()"
    order = ", descending=True" if reverse else ""
    return f"{torch}.argsort({keys}, stable=True{order}).tolist()"


def _stacked(source: Source, elements: ast.expr, kinds: Kinds, torch: str) -> tuple[str, Kind]:
    """The text of the tensor of all elements, and the kind of one. Raises Refused."""
    path = dotted(elements)
    if path is None:
        raise Refused(f"`{source.of(elements)}` would be computed twice: give it a name before it is ordered")
    known = kinds.of(elements)
    if known.what == "tensor":
        return path, element_of(known)
    return f"{torch}.stack({path})", one_shape(source, elements, kinds)


def of_each(source: Source, key: ast.expr, path: str, element: Kind, kinds: Kinds, torch: str) -> str:
    """The text that computes the keys of all elements, each a tensor without dimensions. Raises Refused."""
    if isinstance(key, ast.Lambda):
        given = key.args
        if len(given.args) != 1 or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
            raise Refused(f"`{source.of(key)}` takes more than one element")
        name, body = given.args[0].arg, key.body
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(body)) or given.defaults:
            raise Refused(f"`{source.of(key)}` binds a name")
        text = source.of(body)
    elif dotted(key) is not None:
        function = source.enclosing_function(key)
        name = fresh("each", every_name(function or source.tree))
        text = f"{source.of(key)}({name})"
        body = ast.parse(text, mode="eval").body
    else:
        raise Refused(f"what `{source.of(key)}` gives for an element is not known")
    inside = kinds.copy()
    inside.names[name] = element
    read = read_out(body)
    if read is not None and read[0] in ("item", "float"):
        # Python compares the numbers as torch compares the tensors.
        body = read[1]
        text = name if isinstance(body, ast.Name) and body.id == name else ast.unparse(body)
    kind = inside.of(body)
    if kind.what == "scalar" and kind.type in ("int", "float"):
        dtype = "float64" if kind.type == "float" else "int64"
        return f"{torch}.full((), {text}, dtype={torch}.{dtype}) for {name} in {path}"
    if kind.what != "tensor":
        raise Refused(f"`{source.of(key)}` is not known to give a tensor for an element")
    if (kind.dtype or "").startswith(("bool", "complex")):
        raise Refused("torch.argmax takes no tensor of this dtype")
    one = text if kind.rank == 0 else f"{primary(text)}.reshape(())"
    return f"{one} for {name} in {path}"


def one_shape(source: Source, elements: ast.expr, kinds: Kinds) -> Kind:
    """The kind of the elements of a list of tensors that have one shape and one dtype. Raises Refused."""
    known = kinds.of(elements)
    parts: list[Kind] = list(known.items or ())
    if not parts and known.type == "tensors":
        parts = [element_of(known)]
    if not parts:
        raise Refused(f"what `{source.of(elements)}` holds is not known")
    if any(each.what != "tensor" for each in parts):
        raise Refused(f"`{source.of(elements)}` is not known to hold tensors alone")
    alike = are_made_alike(source, elements, kinds)
    if not alike and any(each.rank != 0 for each in parts):
        raise Refused(f"the tensors in `{source.of(elements)}` are not known to have one shape")
    if not alike and (len({each.dtype for each in parts}) > 1 or parts[0].dtype is None):
        raise Refused("the elements may be of several dtypes, which `torch.stack` would make one")
    return parts[0]


def are_made_alike(source: Source, elements: ast.expr, kinds: Kinds) -> bool:
    """Whether the same operations made each element: with layers that were made alike, or of the rows of one tensor."""
    made = _made(source, elements)
    if made is None or len(made.generators) != 1 or made.generators[0].ifs:
        return False
    [generator] = made.generators
    if not isinstance(generator.target, ast.Name):
        return False
    name, iterated = generator.target.id, kinds.of(generator.iter)
    if iterated.what == "tensor":
        layers = False
    elif isinstance(iterated.value, Instance) and _are_alike(iterated.value):
        layers = True
    else:
        return False
    inside = kinds.in_comprehension(made)
    return all(_keeps_shape(each, name, layers, inside) for each in ast.walk(made.elt))


def _made(source: Source, elements: ast.expr) -> ast.ListComp | None:
    """The comprehension that makes a list, of which later lines only read."""
    if isinstance(elements, ast.ListComp):
        return elements
    function = source.enclosing_function(elements)
    if not isinstance(elements, ast.Name) or function is None:
        return None
    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == elements.id]
    stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
    statement = source.parents[stores[0]] if len(stores) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.ListComp):
        return None
    for each in uses:
        parent = source.parents[each]
        written = isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
        if written or (isinstance(parent, ast.Attribute) and parent.attr in _CHANGING):
            return None
    return statement.value


def _are_alike(modules: Instance) -> bool:
    """Whether all layers of a list were made by one class of the same arguments, and none was changed."""
    items = _items(modules)
    return bool(items) and all(_is_like(items[0], each) for each in items)


def _items(modules: Instance) -> list[Value]:
    listed = modules.attributes.get("__items__")
    return list(listed.items or ()) if isinstance(listed, Sequence) else []


def _is_like(one: Value, other: Value) -> bool:
    if not (isinstance(one, Instance) and isinstance(other, Instance)) or one.stamp or other.stamp:
        return False
    if isinstance(one.cls, Named) and isinstance(other.cls, Named):
        # What is known of an argument beside a constant may be the same of two that differ.
        known = all(isinstance(each, Const) for each in one.arguments.values())
        inside, beside = _items(one), _items(other)
        return (
            one.cls.name.startswith("torch.nn.")
            and one.cls.name == other.cls.name
            and known
            and one.arguments == other.arguments
            and len(inside) == len(beside)
            and all(map(_is_like, inside, beside))
        )
    same = one.fingerprint is not None and one.fingerprint == other.fingerprint
    return same and _keeps_shapes(one)


def _keeps_shapes(layer: Instance) -> bool:
    """Whether the shape of what an own layer gives is no matter of data, as far as its class can be read."""
    if isinstance(layer.cls, Named):
        return layer.cls.name.startswith("torch.nn.") and all(
            isinstance(each, Instance) and _keeps_shapes(each) for each in _items(layer)
        )
    if not isinstance(layer.cls, ClassValue) or [getattr(each, "name", "") for each in layer.cls.bases] != [
        "torch.nn.Module"
    ]:
        return False
    for method in layer.cls.node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            continue
        if any(map(_may_change_shape, ast.walk(method))):
            return False
    inner = [each for each in layer.attributes.values() if isinstance(each, Instance)]
    return all(map(_keeps_shapes, inner))


def _may_change_shape(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not isinstance(node.func, ast.Attribute) or node.func.attr in _OPEN_SIZES
    if isinstance(node, ast.Subscript):
        return _by_data(node)
    return isinstance(node, (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.For))


def _by_data(node: ast.Subscript) -> bool:
    return any(isinstance(each, (ast.Name, ast.Call, ast.Attribute)) for each in ast.walk(node.slice))


def _keeps_shape(node: ast.AST, name: str, layers: bool, kinds: Kinds) -> bool:
    """Whether `node`, a part of what makes each element, gives for all elements a result of one shape."""
    if isinstance(node, ast.Call):
        called = node.func
        if layers and isinstance(called, ast.Name) and called.id == name:
            return True
        if getattr(called, "attr", "") in _OPEN_SIZES:
            return False
        if isinstance(called, ast.Attribute) and (kinds.qualified(called) or "").startswith("torch."):
            return True
        # A method of what the layer gave, or of a row.
        return isinstance(called, ast.Attribute) and (
            kinds.of(called.value).what == "tensor" or isinstance(called.value, ast.Call)
        )
    if isinstance(node, ast.Subscript):
        return not _by_data(node)
    if isinstance(node, ast.Attribute):
        # The attributes of a layer may differ from those of another.
        return not (layers and isinstance(node.value, ast.Name) and node.value.id == name)
    return not isinstance(node, (ast.IfExp, ast.NamedExpr, ast.Lambda, ast.Starred, ast.BoolOp))
