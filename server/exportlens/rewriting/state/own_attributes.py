"""Items that a Module keeps in a dict or a list, as attributes of their own, which can become buffers.

    self.cache = {"mean": torch.zeros(4)}        self.cache_mean = torch.zeros(4)
    ...                                          ...
    self.cache["mean"] = 0.9 * self.cache["mean"] + x      ->      self.cache_mean = 0.9 * self.cache_mean + x

An item that the first call makes is None before, and `"mean" not in self.cache` asks for that.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite, ContainerWrite
from exportlens.inference.values import ClassValue, Instance
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.state.begun_in_bases import class_that_begins
from exportlens.rewriting.state.joined_classes import class_with_bases
from exportlens.rewriting.state.other_classes import of_other_classes
from exportlens.rewriting.state.plain_objects import Made, made_module
from exportlens.rewriting.state.registrations import refuse_before_module

_Key = str | int
# Of more items the attributes would read worse than the dict.
_MOST_ITEMS = 12


def items_as_attributes(place: ContainerWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that keeps each item of the dict or list in an attribute of its own."""
    try:
        _, draft, cls, base = module_of(place, context)
        swaps = _Container(draft, cls, place.attr).swaps()
        message = f"Keep each item of `self.{place.attr}` in an attribute of its own"
        made = draft.replace(message, [*base, *swaps], Applicability.UNSAFE, uses_torch=bool(base))
        return base.joined(made)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def module_of(
    place: AttributeWrite | ContainerWrite, context: RewriteContext
) -> tuple[ClassValue, Draft, ast.ClassDef, Made]:
    """The Module whose attribute is written, its class in a draft of the file, and what makes that a Module. Raises Refused."""
    owner = place.owner.cls if isinstance(place.owner, Instance) else None
    if not isinstance(owner, ClassValue) or owner.scope.path != context.document.path:
        raise Refused("the class that keeps it is not in this file")
    draft, cls = class_with_bases(owner, place.attr, context)
    return (
        owner,
        draft,
        cls,
        made_module(draft, cls, class_that_begins(owner, place.attr), place.owner),
    )


def uses_of(draft: Draft, cls: ast.ClassDef, attr: str) -> list[ast.Attribute]:
    """The uses of the attribute, all of which are methods' own. Raises Refused where others may use it."""
    inside = {id(each) for each in ast.walk(cls)}
    others = of_other_classes(cls, draft.file())
    uses = []
    for each in (one for statement in draft.file() for one in ast.walk(statement)):
        if isinstance(each, ast.Constant) and each.value == attr:
            raise Refused(f"`{attr}` is also used by its name, as a text")
        if not isinstance(each, ast.Attribute) or each.attr != attr:
            continue
        if id(each) in others and dotted(each) == f"self.{attr}":
            continue
        if id(each) not in inside or dotted(each) != f"self.{attr}":
            raise Refused(f"`{ast.unparse(each)}` is used as well, perhaps of the same object")
        uses.append(each)
    return uses


class _Container:
    """One attribute: where the class makes it, writes and reads its items."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, attr: str) -> None:
        self.draft, self.source, self.cls, self.attr = draft, draft.source, cls, attr
        self.path = f"self.{attr}"
        self.names: dict[_Key, str] = {}
        self.taken = {each.attr for each in ast.walk(cls) if isinstance(each, ast.Attribute)}
        self.taken |= {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}

    def swaps(self) -> list[Replacement]:
        begin = self._begin()
        first = self._first_items(begin.value)
        swaps = []
        for use in uses_of(self.draft, self.cls, self.attr):
            if self.source.enclosing_statement(use) is begin:
                continue
            swaps.append(self._instead(use, first))
        lines = [f"self.{self._name(key)} = {self.source.of(value)}" for key, value in first.items()]
        lines += [f"self.{name} = None" for key, name in self.names.items() if key not in first]
        if len(lines) > _MOST_ITEMS or not lines:
            raise Refused(f"`{self.path}` holds many items: keep them in one tensor")
        text = f"{self.source.newline}{self.source.indent_of(begin)}".join(lines)
        return [self.source.swap(begin, text), *swaps]

    def _begin(self) -> ast.Assign:
        """The statement of `__init__` that makes the dict or list."""
        found = [
            each
            for method in self.cls.body
            if isinstance(method, ast.FunctionDef) and method.name == "__init__"
            for each in method.body
            if isinstance(each, ast.Assign) and [dotted(target) for target in each.targets] == [self.path]
        ]
        if len(found) != 1 or not self.source.begins_line(found[0]):
            raise Refused(f"`{self.path}` is not made once, on a line of its own in `__init__`")
        refuse_before_module(self.source, found[0])
        return found[0]

    def _first_items(self, value: ast.expr) -> dict[_Key, ast.expr]:
        if (
            isinstance(value, ast.Call)
            and dotted(value.func) == "dict"
            and not (value.args or value.keywords)
        ):
            return {}
        if isinstance(value, ast.List) and not any(isinstance(each, ast.Starred) for each in value.elts):
            return dict(enumerate(value.elts))
        if isinstance(value, ast.Dict):
            keys = [_key(each) for each in value.keys]
            known = [each for each in keys if each is not None]
            if len(known) == len(keys) == len(set(known)):
                return dict(zip(known, value.values, strict=True))
        raise Refused(f"what `{self.path}` holds at first is not written out, key by key, in `__init__`")

    def _instead(self, use: ast.Attribute, first: dict[_Key, ast.expr]) -> Replacement:
        around = self.source.parents[use]
        if isinstance(around, ast.Subscript) and around.value is use and not isinstance(around.ctx, ast.Del):
            key = _key(around.slice)
            if key is None or (isinstance(key, int) and first and key not in first):
                raise Refused(f"which item `{ast.unparse(around)}` is, is only known when the model runs")
            return self.source.swap(around, f"self.{self._name(key)}")
        if (
            isinstance(around, ast.Compare)
            and around.comparators == [use]
            and isinstance(around.ops[0], (ast.In, ast.NotIn))
        ):
            key = _key(around.left)
            if key is not None and key not in first:
                test = "is not None" if isinstance(around.ops[0], ast.In) else "is None"
                return self.source.swap(around, f"self.{self._name(key)} {test}")
        raise Refused(f"`{ast.unparse(around)}` takes `{self.path}` as a whole")

    def _name(self, key: _Key) -> str:
        if key not in self.names:
            self.names[key] = fresh(f"{self.attr}_{key}", self.taken)
        return self.names[key]


def _key(node: ast.expr | None) -> _Key | None:
    """The key, where it is written out and can be part of a name."""
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, str) and f"_{node.value}".isidentifier():
        return node.value
    return node.value if type(node.value) is int and node.value >= 0 else None
