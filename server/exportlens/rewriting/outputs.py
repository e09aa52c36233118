"""Outputs of a branch: tensors that share no memory with anything else, in the same structure on every
way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from exportlens.inference.values import ClassValue, Const, Mapping_
from exportlens.rewriting.draft import Refused, RefusedDtypes, RefusedNumber
from exportlens.rewriting.kind import AGAIN, LOCAL, NUMPY, SEVERAL, Kind, merged
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.made_objects import makes_named_tuple
from exportlens.rewriting.mixed_results import (
    asks_type,
    asks_type_of_result,
    fits,
    is_configured,
    number_as_tensor,
    refuse_identity,
    tensor_of,
)
from exportlens.rewriting.moving import writes
from exportlens.rewriting.names import arguments, fresh
from exportlens.rewriting.precedence import primary
from exportlens.rewriting.text import Function, Replacement, Source
from exportlens.source.walking import walk

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

    @property
    def single(self) -> bool:
        return self.parts is None

    def lines(self, indent: str, taken: set[str]) -> list[str]:
        """The lines that return `{call}`."""
        if self.parts is None:
            return [f"{indent}return {{call}}" + (".item()" if self.counts else "")]
        if all(part is None for part in self.parts) and not self.counts:
            return [f"{indent}return {{call}}"]
        names = [fresh("result", taken) if part is None else part for part in self.parts]
        moving = [name for name, part in zip(names, self.parts, strict=True) if part is None]
        given = [f"{name}.item()" if index in self.counts else name for index, name in enumerate(names)]
        return [f"{indent}{', '.join(moving)} = {{call}}", f"{indent}return {', '.join(given)}"]

    def lines_from(self, result: str, indent: str) -> list[str]:
        """The lines that return what the name `result` holds."""
        if self.parts is None:
            return [f"{indent}return {result}" + (".item()" if self.counts else "")]
        if all(part is None for part in self.parts) and not self.counts:
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
        return [f"{indent}return {', '.join(texts)}"]


class Outputs:
    """Writes outputs; numbers that are used as numbers are none. `mark` is the number of the oldest memory that was made inside of the branch."""

    def __init__(self, source: Source, torch: str, mark: int) -> None:
        self.source, self.torch, self.mark = source, torch, mark
        self.as_tensor: dict[str, str] = {}
        self.as_float: set[str] = set()
        # Ints that leave as tensors and are read back: torch.cond gives back constant ints only.
        self.as_count: set[str] = set()
        # The floats and bools among them.
        self.as_number: dict[str, str] = {}
        # What else changes in the texts of returned expressions: attributes that have a name of their own in an arm.
        self.swaps: list[Replacement] = []
        # The names that are there before the branch, and that no arm binds.
        self.kept: frozenset[str] = frozenset()
        # The dtypes of tensors that numbers in returned dicts become.
        self.items: dict[int, str] = {}
        # The names that a loop around the branch binds.
        self.anew: set[str] = set()

    # --- names at a merge -----------------------------------------------------------------------------------

    def unify(
        self,
        names: list[str],
        then: Kinds,
        other: Kinds,
        used_as_number: Callable[[str], bool],
        meets_floats: Callable[[str], bool],
    ) -> None:
        """Raise Refused where a name is not the same kind of thing on both sides.

        `used_as_number` says whether a name is more than an operand beside tensors afterwards, `meets_floats` whether
        those tensors certainly are of float dtypes.
        """
        refuse_identity(self.source, names)
        for name in names:
            a, b = then.names.get(name), other.names.get(name)
            if a is None or b is None:
                raise Refused(f"it is not known what `{name}` is after the branch")
            if {a.what, b.what} <= {"number", "size"} and {a.type, b.type} == {"int", "float"}:
                # Beside a float tensor an int does what the equal float does; beside another it decides the dtype.
                if used_as_number(name) or not meets_floats(name):
                    raise RefusedDtypes(
                        f"`{name}` is an int on one side of the branch and a float on the other, and not known to meet "
                        "float tensors only: write both as floats"
                    )
                self.as_float.add(name)
            self._unify_name(name, a, b, used_as_number)

    def _unify_name(self, name: str, a: Kind, b: Kind, used_as_number: Callable[[str], bool]) -> None:
        whats = {a.what, b.what}
        if "unknown" in whats and _is_called(self.source, name):
            raise Refused(f"`{name}` is called, and is a function that tensor data would choose")
        if "none" in whats:
            raise Refused(
                f"`{name}` may be None after the branch: choose a tensor that does the same, as a mask of ones"
            )
        if whats <= {"object", "static"} or whats & {"object", "static"}:
            raise Refused(f"`{name}` is a Python object that tensor data would choose")
        if whats <= {"number", "scalar"} and {a.type, b.type} == {"float"} and not used_as_number(name):
            self.as_tensor[name] = ""
            return
        if "scalar" in whats:
            if self._read_back(name, a, b):
                return
            raise RefusedNumber(
                f"`{name}` is a Python number read out of tensor data inside of the branch",
                counts=whats <= {"number", "size", "scalar"} and {a.type, b.type} == {"int"},
            )
        if whats <= {"number", "size"}:
            if {a.type, b.type} == {"int"}:
                if not (_is_constant(a) and _is_constant(b)):
                    self.as_count.add(name)
                return
            if used_as_number(name) and self._read_back(name, a, b):
                return
            if used_as_number(name):
                raise RefusedNumber(
                    f"`{name}` is a Python number that tensor data would choose, and used as one afterwards: start with a "
                    "tensor, as `torch.tensor(0.5)`"
                )
            if a.type != b.type and name not in self.as_float:
                raise Refused(f"`{name}` is a number of another type on the other side of the branch")
            self.as_tensor[name] = "bool" if {a.type, b.type} == {"bool"} else ""
            return
        if "unknown" in whats and whats <= {"number", "tensor", "unknown"}:
            mixed = tensor_of(merged([a, b]))
            if mixed is not None and mixed.dtype and not asks_type(self.source, name):
                self.as_tensor[name] = mixed.dtype
                return
        if whats & {"number", "size"} and "unknown" in whats:
            number, other = (b, a) if a.what == "unknown" else (a, b)
            if number.type == "float" and is_configured(other) and not used_as_number(name):
                # A number of the configuration: beside tensors only, a tensor does the same.
                self.as_tensor[name] = "float"
                return
            raise Refused(
                f"`{name}` is a Python number on one side of the branch, and not known on the other"
            )
        if whats & {"number", "size"} and "tensor" in whats:
            tensor, number = (a, b) if a.what == "tensor" else (b, a)
            if not fits(number, tensor) or asks_type(self.source, name):
                raise Refused(
                    f"`{name}` is a tensor on one side of the branch and a Python number on the other: start with a "
                    "tensor, as `torch.zeros(())`"
                )
            assert tensor.dtype is not None
            self.as_tensor[name] = tensor.dtype
            return
        _same_tensor(f"`{name}`", a, b)

    def _read_back(self, name: str, a: Kind, b: Kind) -> bool:
        """Whether `name` leaves as a tensor of its number, which is read again behind the branch."""
        return False

    def names(self, names: list[str], end: Kinds, bound: set[str], used: set[str]) -> list[str]:
        """The texts of `names` as outputs of one side; `used` is memory that is already an output."""
        return [self._name(name, end.names[name], name in bound, used) for name in names]

    def _name(self, name: str, kind: Kind, bound: bool, used: set[str]) -> str:
        if name in self.as_number:
            return self.held(name, self.as_number[name])
        if kind.what == "scalar" and name in self.as_tensor:
            return f"{self.torch}.full((), {name})"
        if kind.what in ("number", "size"):
            dtype = self.as_tensor.get(name)
            if name in self.as_count:
                return f"{self.torch}.full((), {name})"
            if dtype is None:
                return name
            if name in self.as_float and kind.type == "int":
                return number_as_tensor(f"float({name})", self.torch, "", kind)
            if dtype in ("", "bool"):
                return number_as_tensor(name, self.torch, "", kind)
            if name in self.anew and not bound:
                # In a later round it may be a tensor, which as_tensor would give as it is.
                return f"{number_as_tensor(name, self.torch, dtype)}.clone()"
            return number_as_tensor(name, self.torch, dtype, kind)
        if kind.what == "unknown" and name in self.as_tensor:
            return f"{number_as_tensor(name, self.torch, self.as_tensor[name])}.clone()"
        return self.leaf(name, name, kind, bound, used)

    def held(self, text: str, type_: str) -> str:
        """The tensor of the Python number `text`: of double precision where it is a float."""
        dtype = f", dtype={self.torch}.float64" if type_ == "float" else ""
        return f"{self.torch}.full((), {text}{dtype})"

    def leaf(self, name: str, text: str, kind: Kind, bound: bool, used: set[str]) -> str:
        if kind.what == "tensor":
            # torch.cond takes one order of dimensions in memory; of what has a size of 1, contiguous() leaves another as it is.
            in_order = kind.moved or kind.parted
            if self._unshared(kind, used):
                used |= set(kind.roots or ())
                if not in_order and not kind.later:
                    return text
            order = f"memory_format={self.torch}.contiguous_format" if in_order else ""
            return f"{primary(text)}.clone({order})"
        if kind.what == "container":
            if any(item.what in ("number", "size", "scalar") for item in kind.items or ()):
                self._take_numbers_of(text)
            if any(item.what in ("static", "object", "none") for item in kind.items or ()):
                raise Refused(f"`{text}` holds Python objects that tensor data would choose")
            if self._unshared(kind, used) and (kind.items is None or (bound and _are_apart(kind.items))):
                used |= set(kind.roots or ())
                return text
            if (
                kind.items is not None
                and all(item.what == "tensor" for item in kind.items)
                and text.isidentifier()
            ):
                each = fresh("each", {text})
                if kind.keys or isinstance(kind.value, Mapping_):
                    return f"{{key: {each}.clone() for key, {each} in {text}.items()}}"
                inner = f"{each}.clone() for {each} in {text}"
                if getattr(kind.value, "fields", ()):
                    return f"{text}._make([{inner}])"
                return f"[{inner}]" if getattr(kind.value, "kind", "") == "list" else f"tuple({inner})"
            raise Refused(f"`{text}` holds tensors that may share memory with others")
        if kind.what == "unknown" and kind.type == NUMPY:
            raise Refused(f"`{text}` is NumPy's, and no tensor")
        if kind.what == "unknown" and bound:
            if f"text {text}" in used or (kind.roots and not self._unshared(kind, set())):
                return f"{primary(text)}.clone()"
            used.add(f"text {text}")
            return text
        if kind.what == "unknown" and kind.type == SEVERAL:
            raise Refused(
                f"`{text}` may still be the number that it starts with: start with a tensor, as `torch.zeros(())`"
            )
        if kind.what == "unknown":
            raise Refused(f"it is not known whether `{text}` is a tensor")
        _refuse_object(f"`{text}`", kind)
        raise Refused(f"`{text}` is no tensor")

    def _take_numbers_of(self, text: str) -> None:
        raise RefusedNumber(
            f"`{text}` holds Python numbers that tensor data would choose: choose between what is done with them"
        )

    def _made_inside(self, kind: Kind) -> bool:
        """Whether an unknown value was at least not there before the branch."""
        return kind.roots is not None and all(
            root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark for root in kind.roots
        )

    def _unshared(self, kind: Kind, used: set[str]) -> bool:
        if kind.roots is None:
            return False
        return (
            all(root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark for root in kind.roots)
            and not kind.roots & used
        )

    # --- returned expressions -------------------------------------------------------------------------------

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
            return Shape(counts={0} if self._needs_tensor(found) else set())
        lengths = {len(value.elts) for value, _ in values if isinstance(value, ast.Tuple)}
        if len(lengths) != 1 or any(
            isinstance(each, ast.Starred)
            for value, _ in values
            if isinstance(value, ast.Tuple)
            for each in value.elts
        ):
            raise Refused("the returns of the branch differ in length")
        parts: list[str | None] = []
        counts: set[int] = set()
        dtypes: dict[int, str] = {}
        for index in range(lengths.pop()):
            column = [(value.elts[index], kinds) for value, kinds in values if isinstance(value, ast.Tuple)]
            texts = {self.source.of(each) for each, _ in column}
            constant = all(isinstance(each, ast.Constant) for each, _ in column)
            if constant and again:
                raise Refused("a constant is returned beside the rounds of a loop")
            if constant and len(texts) == 1 and not isinstance(getattr(column[0][0], "value", None), int):
                parts.append(texts.pop())
                continue
            same = {self._stays(each, kinds) for each, kinds in column}
            if len(same) == 1 and None not in same:
                parts.append(same.pop())
                continue
            parts.append(None)
            self._match_items(column, again)
            found = [kinds.of(each) for each, kinds in column]
            dtype = self._mixed(found, again or asks_type_of_result(self.source, values[0][0]))
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
        """Take in which numbers in dicts that are returned are tensors on another way."""
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
        numbers = [each for each in found if each.what == "number"]
        if again or not tensors or not numbers or len(tensors) + len(numbers) != len(found):
            return None
        first = tensors[0]
        for each in tensors[1:]:
            self._same_result(first, each)
        if not all(fits(each, tensor) for each in numbers for tensor in tensors):
            return None
        return first.dtype

    def _stays(self, node: ast.expr, kinds: Kinds) -> str | None:
        """The text of a number that no arm binds, which is the same behind the branch; None where `node` is none."""
        if not _is_number(kinds.of(node)):
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
        if shape.parts is not None and isinstance(value, ast.Tuple):
            kept = [each for each, part in zip(value.elts, shape.parts, strict=True) if part is None]
            texts = [
                self._one(each, kinds, index, shape, used)
                for index, (each, part) in enumerate(zip(value.elts, shape.parts, strict=True))
                if part is None
            ]
            if len(kept) == len(value.elts):
                return self.source.of(
                    value, [self.source.swap(each, text) for each, text in zip(kept, texts, strict=True)]
                )
            return ", ".join(texts)
        return self._one(value, kinds, 0, shape, used)

    def _one(self, node: ast.expr, kinds: Kinds, index: int, shape: Shape, used: set[str]) -> str:
        if index in shape.counts:
            return self._counted(node, kinds)
        kind = kinds.of(node)
        if index in shape.dtypes and kind.what == "number":
            return number_as_tensor(self.source.of(node, self.swaps), self.torch, shape.dtypes[index], kind)
        return self.expression(node, kinds, used)

    def _counted(self, node: ast.expr, kinds: Kinds) -> str:
        return self.held(self.source.of(node, self.swaps), kinds.of(node).type)

    def _same_result(self, a: Kind, b: Kind) -> None:
        same_kind("the result", a, b)

    def _needs_tensor(self, kinds: list[Kind]) -> bool:
        """Whether ints are no outputs of torch.cond: it takes constants, and gives what an inner one cannot hand on."""
        return all(_is_number(kind) and kind.type == "int" for kind in kinds) and not (
            len(kinds) == 2 and all(map(_is_constant, kinds))
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

    def _take_numbers_of(self, text: str) -> None:
        """Strict tracing takes no number of torch.cond as an index: only what is used otherwise is as before."""

    def _same_result(self, a: Kind, b: Kind) -> None:
        if not _are_alike([a, b]):
            super()._same_result(a, b)

    def _needs_tensor(self, kinds: list[Kind]) -> bool:
        return super()._needs_tensor(kinds) or (_are_alike(kinds) and kinds[0].type != "int")


def _is_called(source: Source, name: str) -> bool:
    """Whether something is called by `name`."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
        for each in walk(source.tree)
    )


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
    return all(map(_is_number, kinds)) and len(types) == 1 and types <= {"int", "float", "bool"}


def is_again(node: ast.expr | None, kinds: Kinds) -> bool:
    """Whether `node` calls the next round of a loop: what that gives has the structure of all else that is returned there."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    known = kinds.names.get(node.func.id)
    return known is not None and known.what == "object" and known.type == AGAIN


def _is_constant(kind: Kind) -> bool:
    return kind.what == "number" and isinstance(kind.value, Const)


def _is_bound_once(function: Function, *names: str) -> bool:
    """Whether each of `names` is one value in the whole of `function`."""
    bindings = [each.arg for each in arguments(function.args)]
    bindings += [
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    return all(bindings.count(name) == 1 for name in names)


def _is_number(kind: Kind) -> bool:
    return kind.what in ("number", "size", "scalar")


def same_kind(name: str, a: Kind, b: Kind) -> None:
    """Raise Refused where `a` and `b`, two ways to the result `name`, cannot both be outputs."""
    whats = {a.what, b.what}
    if "none" in whats:
        raise Refused(f"{name} is None on one way")
    if whats <= {"number", "size", "scalar"} and {a.type, b.type} == {"int"}:
        return
    if "scalar" in whats:
        raise RefusedNumber(f"{name} is a Python number read out of tensor data")
    if whats <= {"number", "size"}:
        raise RefusedNumber(f"{name} is a Python number that tensor data would choose")
    if whats & {"number", "size"} and whats & {"tensor", "container"}:
        raise Refused(f"{name} is a tensor on one way and a Python number on another")
    if whats & {"number", "size"} and "unknown" in whats:
        raise Refused(f"{name} is a Python number on one way, and not known on another")
    for each in (a, b):
        _refuse_object(name, each)
    if whats & {"static", "object"}:
        raise Refused(f"{name} is a Python object that tensor data would choose")
    _same_tensor(name, a, b)


def _refuse_object(name: str, kind: Kind) -> None:
    if kind.what == "object" and kind.type.startswith("a "):
        raise Refused(
            f"{name} is an object ({kind.type}), of which torch.cond gives none: return its tensors as a tuple, and make it behind the branch"
        )


def _same_tensor(name: str, a: Kind, b: Kind) -> None:
    if a.what == b.what == "tensor":
        if a.dtype and b.dtype and _dtype_differs(a.dtype, b.dtype):
            raise Refused(
                f"{name} is of dtype {a.dtype} on one side of the branch and of {b.dtype} on the other, and torch.cond "
                "gives one dtype: convert the side that may change to the other's"
            )
        if a.rank is not None and b.rank is not None and a.rank != b.rank:
            raise Refused(
                f"{name} has {a.rank} dimensions on one side of the branch and {b.rank} on the other"
            )
    elif {a.what, b.what} == {"tensor", "container"}:
        raise Refused(f"{name} is one tensor on one side of the branch and several on the other")
    elif (
        a.what == b.what == "container"
        and a.items is not None
        and b.items is not None
        and not (a.keys or b.keys)
    ):
        if len(a.items) != len(b.items):
            raise Refused(
                f"{name} has {len(a.items)} items on one side of the branch and {len(b.items)} on the other"
            )
        pairs = list(zip(a.items, b.items, strict=True))
        for one, other in pairs:
            if "container" in (one.what, other.what):
                _same_tensor(f"an item of {name}", one, other)
        if any(_is_number(one) != _is_number(other) for one, other in pairs):
            raise Refused(
                f"{name} has Python numbers among its items on one side of the branch and tensors on the other: start with "
                "tensors, as `torch.zeros(())`"
            )


def _dtype_differs(a: str, b: str) -> bool:
    families = {
        "float": ("float", "bfloat", "double", "half"),
        "int": ("int", "uint"),
        "complex": ("complex",),
        "bool": ("bool",),
    }
    if a in families or b in families:
        short, full = (a, b) if a in families else (b, a)
        # What is only known to be of some float dtype is of the default one, mostly.
        return not full.startswith(families[short]) or (short == "float" and full not in ("float", "float32"))
    return a != b


def _are_apart(items: Iterable[Kind]) -> bool:
    """Whether no two of the tensors among `items` share memory: `(mid[0], mid[0])` is one of two names."""
    seen: set[str] = set()
    for item in items:
        if item.what == "tensor" and item.roots:
            if item.roots & seen:
                return False
            seen |= item.roots
    return True
