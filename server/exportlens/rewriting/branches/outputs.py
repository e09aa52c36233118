"""Outputs of a branch: tensors that share no memory with anything else, in the same structure on every
way."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from exportlens.inference.values import ClassValue
from exportlens.rewriting.branches.mixed_results import (
    asks_type_of_result,
    fits,
    holds_numbers,
    number_as_tensor,
)
from exportlens.rewriting.branches.output_names import NamedOutputs
from exportlens.rewriting.branches.untold_options import may_be_number
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import AGAIN, LOCAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.made_objects import called_class, makes_named_tuple
from exportlens.rewriting.kinds.same_kinds import (
    is_constant,
    is_number,
    refuse_dimensions_by_data,
    same_kind,
)
from exportlens.rewriting.memory.moving import writes
from exportlens.source.walking import walk

# Where libraries have classes whose objects are nothing but what they are made of.
_OF_LIBRARIES = ("torch.distributions.",)
# What a tensor keeps that is written to in place.
_SIZES = frozenset({"size", "dim", "ndimension", "numel", "nelement", "element_size"})


@dataclass
class Shape:
    """What every return gives: one value, or a tuple of `parts` where a text stands for what is the same
    constant everywhere."""

    parts: list[str | None] | None = None
    # The ints among them that leave as tensors.
    counts: set[int] = field(default_factory=set)
    # The dtypes of those that are a tensor on one way and a number on another.
    dtypes: dict[int, str] = field(default_factory=dict)
    # What makes the object that every return gives, of `parts`.
    maker: Maker | None = None

    @property
    def single(self) -> bool:
        return self.parts is None

    def lines(self, indent: str, taken: set[str]) -> list[str]:
        """The lines that return `{call}`."""
        if self.parts is None:
            return [f"{indent}return {{call}}" + (".item()" if self.counts else "")]
        if self.maker is None and all(part is None for part in self.parts) and not self.counts:
            return [f"{indent}return {{call}}"]
        wishes = ["result"] * len(self.parts) if self.maker is None else self.maker.wishes()
        names = [
            fresh(wish, taken) if part is None else part
            for wish, part in zip(wishes, self.parts, strict=True)
        ]
        moving = [name for name, part in zip(names, self.parts, strict=True) if part is None]
        given = [f"{name}.item()" if index in self.counts else name for index, name in enumerate(names)]
        return [f"{indent}{', '.join(moving)} = {{call}}", f"{indent}return {self._made_of(given)}"]

    def _made_of(self, texts: list[str]) -> str:
        return ", ".join(texts) if self.maker is None else self.maker.text(texts)

    def lines_from(self, result: str, indent: str) -> list[str]:
        """The lines that return what the name `result` holds."""
        if self.parts is None:
            return [f"{indent}return {result}" + (".item()" if self.counts else "")]
        if self.maker is None and all(part is None for part in self.parts) and not self.counts:
            return [f"{indent}return {result}"]
        texts, place = [], 0
        several = sum(part is None for part in self.parts) > 1
        for index, part in enumerate(self.parts):
            if part is not None:
                texts.append(part)
                continue
            text = f"{result}[{place}]" if several else result
            texts.append(f"{text}.item()" if index in self.counts else text)
            place += 1
        return [f"{indent}return {self._made_of(texts)}"]


@dataclass(frozen=True)
class Maker:
    """The class of the objects that all returns of a branch make, and the names of the arguments that each gives it ("": by place)."""

    function: str
    keywords: tuple[str, ...]
    parameters: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Source, values: Sequence[tuple[ast.expr, Kinds]]) -> Maker | None:
        """What makes all of `values`; None where they are not all made alike, of a class that is written in a file that is known."""
        calls = [value for value, _ in values if isinstance(value, ast.Call)]
        if len(calls) != len(values) or not calls:
            return None
        first = calls[0]
        made = called_class(values[0][1], first.func)
        keywords = ("",) * len(first.args) + tuple(each.arg or "**" for each in first.keywords)
        if made is None or made.fields is not None or not keywords or "**" in keywords:
            return None
        if made.node is None and not (values[0][1].qualified(first.func) or "").startswith(_OF_LIBRARIES):
            return None
        if any(isinstance(one, ast.Starred) for each in calls for one in each.args) or any(
            ast.dump(each.func) != ast.dump(first.func) for each in calls
        ):
            return None
        parameters = made.parameters()
        if any(not _is_alike(each, first) for each in calls):
            # One gives by name what another gives by place.
            rows = [_by_name(each, parameters) for each in calls]
            if any(row is None or set(row) != set(rows[0] or ()) for row in rows):
                return None
            keywords = tuple(rows[0] or ())
        return cls(source.of(first.func), keywords, parameters)

    def arguments(self, node: ast.expr) -> list[ast.expr]:
        """What `node`, a call of the class, gives for each of them."""
        assert isinstance(node, ast.Call)
        if "" not in self.keywords:
            named = _by_name(node, self.parameters) or {}
            return [named[name] for name in self.keywords]
        given = {each.arg: each.value for each in node.keywords}
        return [*node.args, *(given[name] for name in self.keywords if name)]

    def wishes(self) -> list[str]:
        """Names for the arguments."""
        own = [*self.parameters[: len(self.keywords)], *("result" for _ in self.keywords)]
        return [name or own[index] for index, name in enumerate(self.keywords)]

    def text(self, texts: list[str]) -> str:
        given = (f"{name}={text}" if name else text for name, text in zip(self.keywords, texts, strict=True))
        return f"{self.function}({', '.join(given)})"


def _is_alike(node: ast.Call, other: ast.Call) -> bool:
    """Whether two calls give as many arguments by place, and the others by the same names."""
    names = [sorted(str(one.arg) for one in each.keywords) for each in (node, other)]
    return len(node.args) == len(other.args) and names[0] == names[1]


def _by_name(node: ast.Call, parameters: tuple[str, ...]) -> dict[str, ast.expr] | None:
    """What a call gives for each parameter; None where it gives more than they are."""
    if len(node.args) > len(parameters):
        return None
    named = {each.arg or "**": each.value for each in node.keywords}
    given = dict(zip(parameters, node.args, strict=False))
    return None if "**" in named or set(named) & set(given) else given | named


@dataclass(frozen=True)
class DictMaker(Maker):
    """What makes the dicts that all returns of a branch give, where numbers are among their values; `keywords` are their keys as written."""

    @classmethod
    def of(cls, source: Source, values: Sequence[tuple[ast.expr, Kinds]]) -> DictMaker | None:
        dicts = [(value, kinds) for value, kinds in values if isinstance(value, ast.Dict)]
        keys = [
            [ast.unparse(key) if isinstance(key, ast.Constant) else "" for key in each.keys]
            for each, _ in dicts
        ]
        if len(dicts) != len(values) or not all(keys[0]) or any(each != keys[0] for each in keys):
            return None
        for place in range(len(keys[0])):
            column = [(each.values[place], kinds) for each, kinds in dicts]
            if _is_of_python(column):
                return cls("", tuple(source.of(key) for key in dicts[0][0].keys if key is not None))
        return None

    def arguments(self, node: ast.expr) -> list[ast.expr]:
        assert isinstance(node, ast.Dict)
        return node.values

    def wishes(self) -> list[str]:
        words = [each.strip("\"'") for each in self.keywords]
        return [
            each if each.isidentifier() and not iskeyword(each) and not hasattr(builtins, each) else "result"
            for each in words
        ]

    def text(self, texts: list[str]) -> str:
        return f"{{{', '.join(f'{key}: {text}' for key, text in zip(self.keywords, texts, strict=True))}}}"


class Outputs(NamedOutputs):
    """Writes outputs; numbers that are used as numbers are none. `mark` is the number of the oldest memory that was made inside of the branch."""

    def __init__(self, source: Source, torch: str, mark: int) -> None:
        super().__init__(source, torch, mark)
        # What else changes in the texts of returned expressions: attributes that have a name of their own in an arm.
        self.swaps: list[Replacement] = []
        # The names that are there before the branch, and that no arm binds.
        self.kept: frozenset[str] = frozenset()
        # What makes the object that all returns give.
        self.maker: Maker | None = None
        # The dtypes of tensors that numbers in returned dicts become.
        self.items: dict[int, str] = {}

    def _made_inside(self, kind: Kind) -> bool:
        """Whether an unknown value was at least not there before the branch."""
        return kind.roots is not None and all(
            root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark for root in kind.roots
        )

    def shape(self, returns: list[tuple[ast.expr | None, Kinds]]) -> Shape:
        """The structure that all `returns` share. Raises Refused where they do not."""
        if any(
            value is None or (isinstance(value, ast.Constant) and value.value is None) for value, _ in returns
        ):
            raise Refused("one way through the branch returns None")
        again = any(is_again(value, kinds) for value, kinds in returns)
        values = [
            (value, kinds) for value, kinds in returns if value is not None and not is_again(value, kinds)
        ]
        if not values:
            return Shape()
        self.maker = None if again else Maker.of(self.source, values) or DictMaker.of(self.source, values)
        if self.maker is not None:
            # Of the objects the branch gives what they are made of.
            rows = [(self.maker.arguments(value), kinds) for value, kinds in values]
            shape = self._of_rows(rows, values[0][0], again)
            shape.maker = self.maker
            return shape
        tuples = [isinstance(value, ast.Tuple) for value, _ in values]
        if not all(tuples):
            if any(tuples):
                raise Refused("the returns of the branch differ in structure")
            self._match_items(values, again)
            found = [kinds.of(value) for value, kinds in values]
            dtype = self._mixed(found, again or asks_type_of_result(self.source, values[0][0]))
            if dtype is not None:
                return Shape(dtypes={0: dtype})
            for each in found[1:]:
                self._same_result(found[0], each)
            refuse_dimensions_by_data(found)
            return Shape(counts={0} if self._needs_tensor(found) else set())
        lengths = {len(value.elts) for value, _ in values if isinstance(value, ast.Tuple)}
        if len(lengths) != 1 or any(
            isinstance(each, ast.Starred)
            for value, _ in values
            if isinstance(value, ast.Tuple)
            for each in value.elts
        ):
            raise Refused("the returns of the branch differ in length")
        rows = [(value.elts, kinds) for value, kinds in values if isinstance(value, ast.Tuple)]
        return self._of_rows(rows, values[0][0], again)

    def _of_rows(self, rows: list[tuple[list[ast.expr], Kinds]], first: ast.expr, again: bool) -> Shape:
        """The structure of returns, the first of which is `first`, that each give as many values."""
        parts: list[str | None] = []
        counts: set[int] = set()
        dtypes: dict[int, str] = {}
        for index in range(len(rows[0][0])):
            column = [(values[index], kinds) for values, kinds in rows]
            texts = {self.source.of(each) for each, _ in column}
            constant = all(isinstance(each, ast.Constant) for each, _ in column)
            if constant and again:
                raise Refused("a constant is returned beside the rounds of a loop")
            of_int = isinstance(getattr(column[0][0], "value", None), int)
            if constant and len(texts) == 1 and (self.maker is not None or not of_int):
                parts.append(texts.pop())
                continue
            same = {self._stays(each, kinds) for each, kinds in column}
            if len(same) == 1 and None not in same:
                parts.append(same.pop())
                continue
            parts.append(None)
            self._match_items(column, again)
            found = [kinds.of(each) for each, kinds in column]
            dtype = self._mixed(found, again or asks_type_of_result(self.source, first))
            if dtype is not None:
                dtypes[index] = dtype
                continue
            for known in found[1:]:
                self._same_result(found[0], known)
            if self._needs_tensor(found):
                counts.add(index)
        if all(part is not None for part in parts):
            raise Refused("the branch returns constants only")
        return Shape(parts, counts, dtypes)

    def _match_items(self, column: Sequence[tuple[ast.expr, Kinds]], again: bool) -> None:
        """Take in which numbers in dicts that are returned are tensors on another way. Raises Refused where one is empty alone."""
        empty = [_is_empty(each) for each, _ in column]
        if any(empty) and not all(empty):
            raise Refused("one way through the branch returns nothing in a list or dict, another may not")
        dicts = [(each, kinds) for each, kinds in column if isinstance(each, ast.Dict)]
        keys = [[ast.unparse(key) if key else "" for key in each.keys] for each, _ in dicts]
        if len(dicts) != len(column) or any(each != keys[0] for each in keys):
            return
        for number in range(len(keys[0])):
            items = [(each.values[number], kinds) for each, kinds in dicts]
            dtype = self._mixed(
                [kinds.of(item) for item, kinds in items],
                again or asks_type_of_result(self.source, items[0][0]),
            )
            if dtype is not None:
                self.items |= {id(item): dtype for item, kinds in items if kinds.of(item).what == "number"}

    def _mixed(self, found: list[Kind], again: bool) -> str | None:
        """The dtype of a result that is a tensor on one way and a number on another; None where it is no such."""
        tensors = [each for each in found if each.what == "tensor"]
        untold = [each for each in found if may_be_number(each)]
        numbers = [each for each in found if each.what == "number"] + untold
        if again or not tensors or not numbers or len(tensors) + len(numbers) != len(found):
            return None
        first = tensors[0]
        for each in tensors[1:]:
            self._same_result(first, each)
        if not all(
            holds_numbers(tensor) if each.what == "unknown" else fits(each, tensor)
            for each in numbers
            for tensor in tensors
        ):
            return None
        return first.dtype

    def _stays(self, node: ast.expr, kinds: Kinds) -> str | None:
        """The text of a number that no arm binds, which is the same behind the branch; None where `node` is none."""
        if not is_number(kinds.of(node)):
            return None
        if isinstance(node, ast.Name):
            return node.id if node.id in self.kept else None
        function = self.source.enclosing_function(node)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)) or function is None:
            return None
        if node.func.attr not in _SIZES and writes(function.body):
            return None
        # Read once more it would be another number to strict tracing.
        for each in walk(function):
            if isinstance(each, ast.Assign) and ast.unparse(each.value) == ast.unparse(node):
                name, owner = ast.unparse(each.targets[0]), ast.unparse(node.func.value)
                same = {name, owner} <= self.kept and _is_bound_once(function, name, owner)
                if same and self.source.enclosing_function(each) is function:
                    return name
        return None

    def returned(self, node: ast.Return, kinds: Kinds, shape: Shape, used: set[str]) -> str:
        """The text after `return` for one return of the branch; `used` is memory that is already an
        output."""
        value = node.value
        if value is None:
            raise Refused("one way through the branch returns None")
        if is_again(value, kinds):
            return self.source.of(value, self.swaps)
        if shape.parts is not None:
            given = self.parts_of(value)
            kept = [each for each, part in zip(given, shape.parts, strict=True) if part is None]
            texts = [
                self._one(each, kinds, index, shape, used)
                for index, (each, part) in enumerate(zip(given, shape.parts, strict=True))
                if part is None
            ]
            if len(kept) == len(given) and self.maker is None:
                return self.source.of(
                    value, [self.source.swap(each, text) for each, text in zip(kept, texts, strict=True)]
                )
            return ", ".join(texts)
        return self._one(value, kinds, 0, shape, used)

    def parts_of(self, value: ast.expr) -> list[ast.expr]:
        """What a return of `value` gives: of an object that is made behind the branch what it is made of."""
        if self.maker is not None:
            return self.maker.arguments(value)
        return value.elts if isinstance(value, ast.Tuple) else [value]

    def _one(self, node: ast.expr, kinds: Kinds, index: int, shape: Shape, used: set[str]) -> str:
        if index in shape.counts:
            return self._counted(node, kinds)
        kind = kinds.of(node)
        if index in shape.dtypes and kind.what == "unknown":
            text = number_as_tensor(self.source.of(node, self.swaps), self.torch, shape.dtypes[index])
            return f"{text}.clone()"
        if index in shape.dtypes and kind.what == "number":
            return number_as_tensor(self.source.of(node, self.swaps), self.torch, shape.dtypes[index], kind)
        return self.expression(node, kinds, used)

    def _counted(self, node: ast.expr, kinds: Kinds) -> str:
        return self.held(self.source.of(node, self.swaps), kinds.of(node).type)

    def _same_result(self, a: Kind, b: Kind) -> None:
        same_kind("the result", a, b)

    def _needs_tensor(self, kinds: list[Kind]) -> bool:
        """Whether ints are no outputs of torch.cond: it takes constants, and gives what an inner one cannot hand on."""
        return all(is_number(kind) and kind.type == "int" for kind in kinds) and not (
            len(kinds) == 2 and all(map(is_constant, kinds))
        )

    def expression(self, node: ast.expr, kinds: Kinds, used: set[str]) -> str:
        if isinstance(node, (ast.Tuple, ast.List)):
            swaps = [self.source.swap(each, self.expression(each, kinds, used)) for each in node.elts]
            return self.source.of(node, swaps)
        if isinstance(node, ast.Dict):
            if any(not isinstance(key, ast.Constant) for key in node.keys):
                raise Refused("the keys of a returned dict are not known")
            swaps = [
                self.source.swap(
                    each,
                    number_as_tensor(self.source.of(each), self.torch, self.items[id(each)], kinds.of(each)),
                )
                if id(each) in self.items
                else self.source.swap(each, self.expression(each, kinds, used))
                for each in node.values
            ]
            return self.source.of(node, swaps)
        if isinstance(node, ast.Starred):
            raise Refused("a starred value is returned")
        if _is_written_dict(node, kinds):
            assert isinstance(node, ast.Call)
            items = [each.value for each in node.keywords]
            return self.source.of(
                node, [self.source.swap(each, self.expression(each, kinds, used)) for each in items]
            )
        kind = kinds.of(node)
        if isinstance(node, ast.Call) and kind.what == "container" and makes_named_tuple(node, kind, kinds):
            parts = [*node.args, *(each.value for each in node.keywords)]
            return self.source.of(
                node, [self.source.swap(each, self.expression(each, kinds, used)) for each in parts]
            )
        text = self.source.of(node, self.swaps)
        if kind.what in ("number", "size") and kind.type == "int":
            return text
        if isinstance(kind.value, ClassValue):
            raise Refused(f"`{text}` is no tensor")
        made = self._made_inside(kind) and text not in self.kept
        return self.leaf(text, text, kind, isinstance(node, ast.Call) or made, used)


class NumbersReadBack(Outputs):
    """Outputs among which numbers are that tensor data chooses: they leave as tensors and are read behind the branch."""

    def _read_back(self, name: str, a: Kind, b: Kind) -> bool:
        if _are_alike([a, b]):
            self.as_number[name] = a.type
        return name in self.as_number

    def _take_numbers_of(self, text: str, held: Sequence[Kind]) -> None:
        """Strict tracing takes no number of torch.cond as an index: only what is used otherwise is as before. Of floats, and
        of what an arm reads out of a tensor, torch.cond gives none (measured on torch 2.13)."""
        numbers = [item for item in held if is_number(item)]
        if any(item.what == "scalar" or item.type not in ("int", "bool") for item in numbers):
            super()._take_numbers_of(text, held)

    def _same_result(self, a: Kind, b: Kind) -> None:
        if not _are_alike([a, b]):
            super()._same_result(a, b)

    def _needs_tensor(self, kinds: list[Kind]) -> bool:
        return super()._needs_tensor(kinds) or (_are_alike(kinds) and kinds[0].type != "int")


def _is_empty(node: ast.expr) -> bool:
    """Whether `node` makes a container with nothing in it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("dict", "list", "tuple") and not node.args and not node.keywords
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    return isinstance(node, (ast.Dict, ast.List, ast.Tuple)) and not parts


def _is_of_python(column: Sequence[tuple[ast.expr, Kinds]]) -> bool:
    """Whether what all ways give are numbers of Python's, or the same constant, and not two ints, which torch.cond gives as they are."""
    kinds = [each.of(node) for node, each in column]
    ints = len(kinds) == 2 and all(is_constant(each) and each.type == "int" for each in kinds)
    same = {ast.dump(node) for node, _ in column if isinstance(node, ast.Constant)}
    constant = len(same) == 1 and all(isinstance(node, ast.Constant) for node, _ in column)
    return constant or (all(map(is_number, kinds)) and not ints)


def _is_written_dict(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is `dict(a=..., b=...)`, or makes an ordered one."""
    return (
        isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id == "dict" and "dict" not in kinds.names)
            or kinds.qualified(node.func) == "collections.OrderedDict"
        )
        and not node.args
        and all(each.arg is not None for each in node.keywords)
    )


def _are_alike(kinds: list[Kind]) -> bool:
    """Whether all of them are numbers, and of one type of Python's."""
    types = {kind.type for kind in kinds}
    return all(map(is_number, kinds)) and len(types) == 1 and types <= {"int", "float", "bool"}


def is_again(node: ast.expr | None, kinds: Kinds) -> bool:
    """Whether `node` calls the next round of a loop: what that gives has the structure of all else that is returned there."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    known = kinds.names.get(node.func.id)
    return known is not None and known.what == "object" and known.type == AGAIN


def _is_bound_once(function: Function, *names: str) -> bool:
    """Whether each of `names` is one value in the whole of `function`."""
    bindings = [each.arg for each in arguments(function.args)]
    bindings += [
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    return all(bindings.count(name) == 1 for name in names)
