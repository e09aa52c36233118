"""The number for which something computed of data is greatest or least: it is taken out of a tensor of the numbers.

    scale = min(self.scales, key=lambda s: self.error(x, s))
->  scale = torch.tensor(self.scales, dtype=torch.float64)[torch.full((1,), torch.stack([self.error(x, s) for s in self.scales]).argmin().item())].item()

The numbers may be the keys of a dict that the function makes for itself, and that is asked for the item of the best:

    best = max(scores, key=scores.get)      scores_stacked = torch.stack([*scores.values()])
    if scores[best] > 0.5:                  scores_place = scores_stacked.argmax().reshape(1)
                                       ->   best = torch.tensor([*scores])[torch.full((1,), scores_place.item())].item()
                                            if scores_stacked[scores_place].squeeze(0) > 0.5:
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.keyed_order import of_each
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

# What asks a dict and changes nothing.
_ASKING = ("get", "items", "keys", "values")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Try)


def best_number(source: Source, node: ast.Call, key: ast.expr, kinds: Kinds, torch: str) -> str | None:
    """The whole text for `max` or `min`, the call `node`, of numbers by a `key`; None where they are none. Raises Refused."""
    if not isinstance(node.func, ast.Name) or node.func.id not in ("max", "min"):
        return None
    asked = _asked(source, node, key, kinds)
    if asked is not None:
        return asked.text(torch)
    elements = node.args[0]
    written = isinstance(elements, (ast.Tuple, ast.List)) or (
        isinstance(elements, ast.Call) and dotted(elements.func) == "range" and len(elements.args) > 1
    )
    if not written and dotted(elements) is None:
        return None
    number, listed = _number_of(kinds.of(elements)), source.of(elements)
    if isinstance(elements, ast.Call):
        # A range stops before what is no other number than an int.
        plain = all(kinds.of(each).what in ("number", "size") for each in elements.args)
        number, listed = "int" if plain else "", f"[*{listed}]"
    if not number:
        items = kinds.of(elements).items or ()
        if {each.type for each in items if each.what == "number"} == {"int", "float"}:
            raise Refused(
                f"`{source.of(elements)}` holds ints and floats, which one tensor does not keep apart"
            )
        return None
    keys = of_each(source, key, source.of(elements), Kind("number", type=number), kinds, torch)
    place = f"{torch}.stack([{keys}]).arg{node.func.id}().item()"
    return replaced(source.text, [source.swap(node, _out_of(listed, number, place, torch))])


def _out_of(listed: str, number: str, place: str, torch: str) -> str:
    """The number at `place` of those that are `listed`. The tensor of them is on the host, and so is what picks."""
    double = f", dtype={torch}.float64" if number == "float" else ""
    return f"{torch}.tensor({listed}{double})[{torch}.full((1,), {place})].item()"


def _number_of(elements: Kind) -> str:
    """The type of all numbers in a list that no data decides; "" where that may be another, or none."""
    if elements.what == "container" and elements.items:
        parts = list(elements.items)
    elif elements.what == "container":
        parts = [element_of(elements)]
    else:
        return ""
    types = {each.type for each in parts if each.what in ("number", "size")}
    alike = len(types) == 1 and all(each.what in ("number", "size") for each in parts)
    return types.pop() if alike and types <= {"int", "float"} else ""


@dataclass
class _Dict:
    """A dict of the function's own, of which `call` asks for the best key; with the item, where it asks for `both`."""

    source: Source
    function: Function
    name: str
    call: ast.Call
    both: bool
    number: str
    item: Kind

    def text(self, torch: str) -> str:
        source, name = self.source, self.name
        assert isinstance(self.call.func, ast.Name)
        items = f"*{name}.values()"
        stacked = f"{torch}.stack([{items}])"
        if self.item.what == "scalar":
            dtype = "float64" if self.item.type == "float" else "int64"
            stacked = (
                f"{torch}.stack([{torch}.full((), each, dtype={torch}.{dtype}) for each in {name}.values()])"
            )
        best = f"arg{self.call.func.id}()"
        reads = self._reads()
        if not reads and not self.both:
            text = _out_of(f"[*{name}]", self.number, f"{stacked}.{best}.item()", torch)
            return replaced(source.text, [source.swap(self.call, text)])
        taken = every_name(source.tree)
        whole, place = fresh(f"{name}_stacked", taken), fresh(f"{name}_place", taken)
        item = f"{whole}[{place}].{'item()' if self.item.what == 'scalar' else 'squeeze(0)'}"
        number = _out_of(f"[*{name}]", self.number, f"{place}.item()", torch)
        statement = source.enclosing_statement(self.call)
        line = source.newline + source.indent_of(statement)
        begin = source.start(statement)
        head = f"{whole} = {stacked}{line}{place} = {whole}.{best}.reshape(1){line}"
        text = f"({number}, {item})" if self.both else number
        swaps = [source.swap(each, item) for each in reads]
        return replaced(source.text, [Replacement(begin, begin, head), source.swap(self.call, text), *swaps])

    def _reads(self) -> list[ast.Subscript]:
        """Where the item of the best key is read, by the one name that this has."""
        statement = self.source.enclosing_statement(self.call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Tuple) and self.both:
            target = target.elts[0]
        if not isinstance(target, ast.Name):
            return []
        return [
            each
            for each in walk(self.function)
            if isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Load)
            and isinstance(each.value, ast.Name)
            and each.value.id == self.name
            and isinstance(each.slice, ast.Name)
            and each.slice.id == target.id
        ]

    def is_followed(self) -> bool:
        """Whether each read of the item of the best key stands behind the call, and nothing else gives that key's name a value."""
        reads = self._reads()
        statement = self.source.enclosing_statement(self.call)
        if not reads and not self.both:
            return True
        if (
            not isinstance(statement, ast.Assign)
            or statement.value is not self.call
            or len(statement.targets) != 1
        ):
            return False
        if not self.source.begins_line(statement):
            return False
        names = {each.slice.id for each in reads if isinstance(each.slice, ast.Name)}
        stores = [
            each
            for each in walk(self.function)
            if isinstance(each, ast.Name) and each.id in names and not isinstance(each.ctx, ast.Load)
        ]
        block, at = self.source.block_of(statement)
        return len(stores) <= 1 and all(self._is_behind(each, block, at) for each in reads)

    def _is_behind(self, read: ast.Subscript, block: list[ast.stmt], at: int) -> bool:
        parent = self.source.parents[read]
        if isinstance(parent, (ast.Attribute, ast.AugAssign)):
            # What is written there is the tensor of the dict.
            return False
        for outer in self.source.ancestors(read):
            if isinstance(outer, _SCOPES):
                return False
            if any(outer is each for each in block):
                return outer in block[at + 1 :]
        return False


def _asked(source: Source, node: ast.Call, key: ast.expr, kinds: Kinds) -> _Dict | None:
    """The dict of which `node` asks for the best key; None where it does not, or more is done with it than to ask."""
    elements, both = node.args[0], False
    if isinstance(elements, ast.Call) and isinstance(elements.func, ast.Attribute) and not elements.args:
        if elements.func.attr not in ("items", "keys") or elements.keywords:
            return None
        both = elements.func.attr == "items"
        elements = elements.func.value
    function = source.enclosing_function(node)
    if not isinstance(elements, ast.Name) or function is None or not _asks_items(key, elements.id, both):
        return None
    name = elements.id
    named = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    stores = [each for each in named if not isinstance(each.ctx, ast.Load)]
    made = source.parents[stores[0]] if len(stores) == 1 else None
    if not isinstance(made, ast.Assign) or made.targets != stores:
        return None
    writes = [
        each
        for each in named
        if isinstance(outer := source.parents[each], ast.Subscript) and not isinstance(outer.ctx, ast.Load)
    ]
    if not all(_only_asks(source, each) for each in named if each not in (*stores, *writes)):
        return None
    found = _filled(source, made, writes, kinds)
    if found is None:
        return None
    keys, item = found
    if keys not in ("int", "float") or not _is_one(item):
        return None
    asked = _Dict(source, function, name, node, both, keys, item)
    return asked if asked.is_followed() else None


def _is_one(item: Kind) -> bool:
    """Whether what a dict holds can be compared by torch as by Python: real tensors, as Python compares them of one element, or
    numbers."""
    if item.what == "tensor":
        return not (item.dtype or "").startswith(("bool", "complex"))
    return item.what == "scalar" and item.type in ("int", "float")


def _asks_items(key: ast.expr, name: str, both: bool) -> bool:
    """Whether `key` gives the item of a key, or the second of both."""
    if dotted(key) == f"{name}.get":
        return not both
    if not isinstance(key, ast.Lambda) or len(key.args.args) != 1 or key.args.defaults:
        return False
    given = key.args.args[0].arg
    return ast.unparse(key.body) in (
        [f"{given}[1]"] if both else [f"{name}[{given}]", f"{name}.get({given})"]
    )


def _only_asks(source: Source, use: ast.Name) -> bool:
    parent = source.parents[use]
    if isinstance(parent, ast.Subscript):
        return parent.value is use
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ASKING
    # Its keys are gone through.
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is use
    return isinstance(parent, ast.Call) and dotted(parent.func) in ("len", "max", "min", "list", "sorted")


def _filled(
    source: Source, made: ast.Assign, writes: list[ast.Name], kinds: Kinds
) -> tuple[str, Kind] | None:
    """The type of the keys and what an item is of the dict that `made` begins, and that `writes` fill in one loop."""
    function = source.enclosing_function(made)
    assert function is not None
    now = kinds_before(function, made, kinds)
    value = made.value
    if isinstance(value, ast.DictComp) and not writes:
        [generator, *more] = value.generators
        if more or generator.ifs or not isinstance(generator.target, ast.Name):
            return None
        if ast.unparse(value.key) != generator.target.id:
            return None
        number = _number_of(now.of(generator.iter))
        now.names[generator.target.id] = Kind("number", type=number)
        return number, now.of(value.value)
    if isinstance(value, ast.Dict) and value.keys and not writes:
        keys = Kind(
            "container", items=tuple(UNKNOWN_KIND if each is None else now.of(each) for each in value.keys)
        )
        items = [now.of(each) for each in value.values]
        first = items[0]
        alike = all(
            (each.what, each.dtype, each.rank, each.type) == (first.what, first.dtype, first.rank, first.type)
            for each in items
        )
        return (_number_of(keys), first) if alike and (first.rank == 0 or first.what == "scalar") else None
    if ast.unparse(value) not in ("{}", "dict()") or len(writes) != 1:
        return None
    statement = source.enclosing_statement(writes[0])
    loop = source.parents[statement]
    item = source.parents[writes[0]]
    if not (
        isinstance(statement, ast.Assign)
        and statement.targets == [item]
        and isinstance(item, ast.Subscript)
        and isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and statement in loop.body
        and ast.unparse(item.slice) == loop.target.id
    ):
        return None
    block, at = source.block_of(made)
    if loop not in block[at + 1 :]:
        return None
    number = _number_of(kinds_before(function, loop, kinds).of(loop.iter))
    return number, kinds_before(function, statement, kinds).of(statement.value)
