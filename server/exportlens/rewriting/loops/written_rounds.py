"""What a loop over constants that the file writes binds in each of its rounds.

    for name, hi in self.SIGMAS.items()    ->    {"name": '"fine"', "hi": 'self.SIGMAS["fine"]'}, ...

Keys and texts are written out; numbers are read where they stand, so that who changes the table changes what is decided.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.written_items import Written, constant
from exportlens.source.walking import walk

# torch.cond in torch.cond in torch.cond: what traces a nest of ten takes minutes.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One value: its text, "" where only its parts have one; the literal behind it; and whether that stands in the loop itself."""

    text: str
    literal: ast.expr | None = None
    is_own: bool = False
    parts: tuple[Item, ...] | None = None


class WrittenRounds:
    """The rounds of the loops and comprehensions around `read`."""

    def __init__(self, draft: Draft, read: ast.AST) -> None:
        self.draft, self.source, self.read = draft, draft.source, read

    def of(self, target: ast.expr, rows: ast.expr) -> list[dict[str, str]] | None:
        """The text of each name of `target` in each round over `rows`; None where the file does not say, or says too many."""
        items = self.items(rows)
        if not items or len(items) > _MOST_ROUNDS:
            return None
        names = set(bound(target))
        heads = {each.id for each in walk(rows) if isinstance(each, ast.Name)}
        found = [self._bound(target, each) for each in items]
        rounds = [each for each in found if each is not None]
        return None if len(rounds) < len(found) or names & heads else rounds

    def items(self, node: ast.expr) -> list[Item] | None:
        """What `node` gives one after the other."""
        if isinstance(node, ast.Call):
            return self._called(node)
        own = isinstance(node, (ast.List, ast.Tuple, ast.Dict))
        literal = node if own else self._literal(node)
        if isinstance(literal, ast.Dict):
            return self._keys(literal)
        if not isinstance(literal, (ast.List, ast.Tuple)):
            return None
        return self._elements(Item(dotted(node) or "", literal, own))

    def value(self, item: Item) -> object:
        """The number, text or tuple of such that `item` is, None where that is not written."""
        if item.parts is not None:
            parts = tuple(map(self.value, item.parts))
            return None if None in parts else parts
        return None if item.literal is None else _value(self.draft, item.literal)

    def _bound(self, target: ast.expr, item: Item) -> dict[str, str] | None:
        if isinstance(target, ast.Name):
            return {target.id: item.text} if item.text else None
        if not isinstance(target, (ast.Tuple, ast.List)):
            return None
        parts = item.parts if item.parts is not None else self._elements(item)
        if parts is None or len(parts) != len(target.elts):
            return None
        found: dict[str, str] = {}
        for one, part in zip(target.elts, parts, strict=True):
            names = self._bound(one, part)
            if names is None or names.keys() & found.keys():
                return None
            found |= names
        return found

    def _elements(self, item: Item) -> list[Item] | None:
        if not isinstance(item.literal, (ast.List, ast.Tuple)):
            return None
        made = [
            self._item(each, f"{item.text}[{number}]", item.is_own)
            for number, each in enumerate(item.literal.elts)
        ]
        known = [each for each in made if each is not None]
        return known if len(known) == len(made) else None

    def _item(self, literal: ast.expr, text: str, own: bool) -> Item | None:
        if isinstance(literal, ast.Starred):
            return None
        written = "" if isinstance(constant(literal), int) else _text(literal)
        if written or not own:
            return Item(written or text, literal, own)
        nested = isinstance(literal, (ast.Tuple, ast.List))
        if nested or dotted(literal) is not None or _value(self.draft, literal) is not None:
            return Item("" if nested else self.source.of(literal), literal, own)
        return None

    def _keys(self, literal: ast.Dict) -> list[Item] | None:
        keys = [constant(each) for each in literal.keys]
        if None in keys or len(set(keys)) < len(keys):
            return None
        return [Item(_text(each), each) for each in literal.keys if each is not None]

    def _called(self, node: ast.Call) -> list[Item] | None:
        func = node.func
        if isinstance(func, ast.Attribute):
            table = self._literal(func.value)
            keys = self._keys(table) if isinstance(table, ast.Dict) else None
            if keys is None or not isinstance(table, ast.Dict) or node.args or node.keywords:
                return None
            path = dotted(func.value)
            made = [
                self._item(each, f"{path}[{key.text}]", False)
                for each, key in zip(table.values, keys, strict=True)
            ]
            values = [each for each in made if each is not None]
            if len(values) < len(keys):
                return None
            pairs = [Item("", parts=pair) for pair in zip(keys, values, strict=True)]
            return {"items": pairs, "keys": keys, "values": values}.get(func.attr)
        name = func.id if isinstance(func, ast.Name) else ""
        if name == "range" and not node.keywords:
            return self._range(node)
        given = [self.items(each) for each in node.args[: None if name == "zip" else 1]]
        lists = [each for each in given if each is not None]
        if not lists or len(lists) < len(given):
            return None
        if name == "zip":
            strict = [each for each in node.keywords if each.arg != "strict"]
            return None if strict else [Item("", parts=row) for row in zip(*lists, strict=False)]
        [first] = lists
        if name in ("list", "tuple", "reversed", "iter") and len(node.args) == 1 and not node.keywords:
            return first[::-1] if name == "reversed" else first
        if name == "enumerate":
            start = [*node.args[1:], *(each.value for each in node.keywords)] or [ast.Constant(0)]
            begin = constant(start[0])
            if len(start) > 1 or not isinstance(begin, int):
                return None
            return [Item("", parts=(_whole(begin + at), each)) for at, each in enumerate(first)]
        return self._sorted(node, first) if name == "sorted" and len(node.args) == 1 else None

    def _range(self, node: ast.Call) -> list[Item] | None:
        ends = [self._count(each) for each in node.args]
        known = [each for each in ends if each is not None]
        if not known or len(known) < len(ends) or len(known) > 3 or known[2:] == [0]:
            return None
        numbers = range(*known)
        return [_whole(each) for each in numbers] if len(numbers) <= _MOST_ROUNDS else None

    def _count(self, node: ast.expr) -> int | None:
        """The number that `node` is: `3`, `len(LIMITS)`, `len(LIMITS) - 1`."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self._count(node.left), self._count(node.right)
            if left is None or right is None:
                return None
            return left + right if isinstance(node.op, ast.Add) else left - right
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
            items = self.items(node.args[0])
            return None if items is None else len(items)
        number = constant(node)
        return number if isinstance(number, int) else None

    def _sorted(self, node: ast.Call, items: list[Item]) -> list[Item] | None:
        down = False
        for each in node.keywords:
            if each.arg != "reverse" or not isinstance(each.value, ast.Constant):
                return None
            down = bool(each.value.value)
        return self.in_order(items, down)

    def in_order(self, items: list[Item], down: bool) -> list[Item] | None:
        """`items` as `sorted` puts them; None where their values are not written or cannot be compared."""
        values = [self.value(each) for each in items]
        if None in values or any(each != each for each in values):
            return None
        try:
            order = sorted(range(len(items)), key=lambda at: values[at], reverse=down)  # type: ignore[arg-type, return-value]
        except TypeError:
            return None
        return [items[at] for at in order]

    def _literal(self, node: ast.expr) -> ast.expr | None:
        """The list, tuple or dict that the file gives the name or attribute `node`, once and for all."""
        path, written = dotted(node), Written(self.draft, self.read)
        if path is None or not written.has_all(node) or written.grows(node):
            return None
        made = list(self._made(node, path))
        return made[0] if len(made) == 1 else None

    def _made(self, node: ast.expr, path: str) -> Iterator[ast.expr]:
        function = self.source.enclosing_function(self.read)
        trees: Iterable[ast.AST] = [
            each for placed in self.draft.context.document.placed for each in placed.chunk.body
        ]
        if isinstance(node, ast.Name):
            local = function is not None and node.id in bound(function.body)
            within = walk(function) if local and function is not None else trees
            yield from _values(within, path)
            return
        yield from _values(walk(self.source.tree), path)
        for each in walk(self.source.tree):
            if isinstance(each, ast.ClassDef):
                yield from _values(each.body, path.removeprefix("self."))


def _values(nodes: Iterable[ast.AST], path: str) -> Iterator[ast.expr]:
    """What those of `nodes` that are assignments give `path`."""
    for each in nodes:
        targets = each.targets if isinstance(each, ast.Assign) else []
        targets = [each.target] if isinstance(each, ast.AnnAssign) else targets
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            yield from (each.value for target in targets if dotted(target) == path)


def _whole(number: int) -> Item:
    return Item(str(number), ast.Constant(number))


def _text(node: ast.expr | None) -> str:
    """A text, a whole number, None or a truth value as it is written; "" for anything else."""
    number = constant(node)
    if isinstance(number, str):
        plain = number.isprintable() and not {'"', "\\"} & set(number)
        return f'"{number}"' if plain else repr(number)
    if number is not None:
        return str(number)
    plain = isinstance(node, ast.Constant) and (node.value is None or type(node.value) is bool)
    return ast.unparse(node) if plain and node is not None else ""


def _value(draft: Draft, node: ast.expr) -> object:
    """The number or text, or the tuple of such, that `node` writes; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(draft, node.operand)
        return -number if isinstance(number, (int, float)) else None
    if isinstance(node, ast.Tuple):
        parts = tuple(_value(draft, each) for each in node.elts)
        return None if None in parts else parts
    if isinstance(node, ast.Call) and draft.qualified(node.func) == "float" and len(node.args) == 1:
        given = node.args[0]
        try:
            return float(given.value) if isinstance(given, ast.Constant) else None  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
    if draft.qualified(node) in ("math.inf", "torch.inf", "numpy.inf"):
        return float("inf")
    known = isinstance(node, ast.Constant) and type(node.value) in (int, float, str)
    return node.value if known else None  # type: ignore[attr-defined]
