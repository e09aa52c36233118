"""Python's own sorting of tensors becomes torch.sort, where the elements certainly are tensors without dimensions, and of the places
in a tensor torch.argsort."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.kinds.kind import Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.best_numbers import best_number
from exportlens.rewriting.lists.keyed_order import are_made_alike, ordered_by_key
from exportlens.rewriting.lists.listed_items import stays_written
from exportlens.rewriting.numbers.operands import read_out


def sorted_text(source: Source, node: ast.Call, kinds: Kinds, torch: str) -> str:
    """The whole text with `list(torch.sort(...).values.unbind())` in the place of `sorted(...)`. Raises Refused."""
    if not isinstance(node.func, ast.Name):
        raise Refused("the list is sorted in place: bind a sorted tensor to its name")
    given = {key.arg: key.value for key in node.keywords}
    reverse = given.get("reverse")
    places = _places(source, node, given.get("key"), kinds)
    if places is not None and (reverse is None or isinstance(reverse, ast.Constant)):
        # Python keeps equal ones in their order, both ways.
        order = ", descending=True" if isinstance(reverse, ast.Constant) and reverse.value else ""
        text = f"{torch}.argsort({places}.reshape(-1), stable=True{order}).tolist()"
        return replaced(source.text, [source.swap(node, text)])
    if len(node.args) != 1 or set(given) - {"key", "reverse"}:
        raise Refused(
            "a key orders the elements: sort the keys with `torch.argsort` and select by its indices"
        )
    if reverse is not None and not isinstance(reverse, ast.Constant):
        raise Refused(f"`{source.of(reverse)}` is no plain True or False")
    key = given.get("key")
    if key is not None or node.func.id != "sorted":
        if key is None:
            raise Refused("data decides which of the elements is taken")
        best = best_number(source, node, key, kinds, torch)
        if best is not None:
            return best
        backwards = isinstance(reverse, ast.Constant) and bool(reverse.value)
        text = ordered_by_key(source, node, key, backwards, kinds, torch)
        return replaced(source.text, [source.swap(node, text)])
    order = ", descending=True" if reverse is not None and reverse.value else ""
    listed = _listed(source, node.args[0], kinds)
    if listed is not None:
        text = f"{torch}.sort({listed}{order}).values.tolist()"
        return replaced(source.text, [source.swap(node, text)])
    stacked = _stacked(source, node.args[0], kinds, torch)
    return replaced(source.text, [source.swap(node, f"list({torch}.sort({stacked}{order}).values.unbind())")])


def _listed(source: Source, node: ast.expr, kinds: Kinds) -> str | None:
    """The tensor of one dimension whose items are listed: `t` of `t.tolist()`, or of a name for it."""
    function = source.enclosing_function(node)
    if isinstance(node, ast.Name) and function is not None:
        stores = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
        ]
        statement = source.parents[stores[0]] if len(stores) == 1 else None
        used = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == node.id]
        if not isinstance(statement, ast.Assign) or any(_may_change(source, each) for each in used):
            return None
        listed = statement.value
        if not isinstance(listed, ast.Call) or not stays_written(function, listed, kinds):
            return None
    else:
        listed = node
    if (
        not isinstance(listed, ast.Call)
        or not isinstance(listed.func, ast.Attribute)
        or listed.func.attr != "tolist"
    ):
        return None
    kind = kinds.of(listed.func.value)
    return source.of(listed.func.value) if kind.what == "tensor" and kind.rank in (None, 1) else None


def _may_change(source: Source, use: ast.Name) -> bool:
    """Whether a list is written to, or handed on to what may write to it."""
    parent = source.parents[use]
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("index", "count", "copy")
    return isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)


def _places(source: Source, node: ast.Call, key: ast.expr | None, kinds: Kinds) -> str | None:
    """The tensor whose places are sorted by what it holds there: `sorted(range(len(t)), key=lambda i: t[i].item())`."""
    places = node.args[0] if len(node.args) == 1 else None
    if (
        not (isinstance(places, ast.Call) and dotted(places.func) == "range" and len(places.args) == 1)
        or not (isinstance(key, ast.Lambda) and len(key.args.args) == 1)
        or {each.arg for each in node.keywords} - {"key", "reverse"}
    ):
        return None
    item, sign = key.body, ""
    if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub):
        item, sign = item.operand, "-"
    read = read_out(item)
    item = item if read is None or read[0] not in ("item", "float") else read[1]
    if not (isinstance(item, ast.Subscript) and ast.unparse(item.slice) == key.args.args[0].arg):
        return None
    path = dotted(item.value)
    sizes = {f"len({path})", f"{path}.size(0)", f"{path}.shape[0]", f"{path}.numel()"}
    if path is None or kinds.of(item.value).what != "tensor" or ast.unparse(places.args[0]) not in sizes:
        return None
    if sign and (kinds.of(item.value).dtype or "bool").startswith(("bool", "uint")):
        # Of these torch gives no negative.
        return None
    return f"({sign}{path})" if sign else path


def _stacked(source: Source, elements: ast.expr, kinds: Kinds, torch: str) -> str:
    """The elements as one tensor, and along which dimension they lie where it may have several."""
    known = kinds.of(elements)
    if known.what == "tensor":
        if known.rank != 1:
            raise Refused(f"`{source.of(elements)}` is not known to have one dimension")
        return source.of(elements)
    parts: list[Kind] = list(known.items or ())
    if not parts and isinstance(elements, ast.ListComp) and kinds.has_elements(elements.generators[0].iter):
        parts = [kinds.in_comprehension(elements).of(elements.elt)] if not elements.generators[0].ifs else []
    if not parts and known.type == "tensors":
        parts = [element_of(known)]
    if not parts:
        raise Refused(f"what `{source.of(elements)}` holds is not known")
    if any(each.what == "scalar" for each in parts):
        raise Refused("Python numbers read out of tensors are sorted: sort the tensors with `torch.sort`")
    if all(each.what == "tensor" for each in parts) and are_made_alike(source, elements, kinds):
        # Those that Python compares have one element each, in however many dimensions.
        along = "" if all(each.rank == 0 for each in parts) else ", dim=0"
        return f"{torch}.stack({primary(source.of(elements))}){along}"
    if any(each.what != "tensor" or each.rank != 0 for each in parts):
        raise Refused("the elements are not known to be tensors without dimensions")
    if len({each.dtype for each in parts}) > 1 or (parts[0].dtype is None and not _of_one_tensor(elements)):
        raise Refused("the elements may be of several dtypes, which `torch.stack` would make one")
    return f"{torch}.stack({primary(source.of(elements))})"


def _of_one_tensor(elements: ast.expr) -> bool:
    """Whether each element is made by the same operations of the same tensor, so that all have one dtype."""
    if isinstance(elements, (ast.List, ast.Tuple)):
        shapes = {_without_numbers(each) for each in elements.elts}
        return len(shapes) == 1 and len(reads(elements)) == 1
    return isinstance(elements, ast.ListComp)


def _without_numbers(node: ast.expr) -> str:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    for each in ast.walk(copied):
        if isinstance(each, ast.Constant):
            each.value = 0
    return ast.unparse(copied)
