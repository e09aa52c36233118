"""Names that a branch gives to what follows: what each becomes as an output, a tensor that shares no memory with anything else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from exportlens.inference.values import Mapping_
from exportlens.rewriting.branches.mixed_results import (
    asks_type,
    fits,
    holds_numbers,
    is_configured,
    number_as_tensor,
    refuse_identity,
    tensor_of,
)
from exportlens.rewriting.branches.untold_options import may_be_number, untold_option
from exportlens.rewriting.code.draft import Refused, RefusedDtypes, RefusedNumber
from exportlens.rewriting.code.names import bound, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import (
    LOCAL,
    NUMPY,
    SEVERAL,
    Kind,
    holds_tensors_alone,
    may_be_none,
    merged,
)
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import is_constant, refuse_object, same_tensor
from exportlens.source.walking import walk


class NamedOutputs:
    """Writes the names that a branch gives. `mark` is the number of the oldest memory that was made inside of it."""

    def __init__(self, source: Source, torch: str, mark: int) -> None:
        self.source, self.torch, self.mark = source, torch, mark
        self.as_tensor: dict[str, str] = {}
        self.as_float: set[str] = set()
        # Ints that leave as tensors and are read back: torch.cond gives back constant ints only.
        self.as_count: set[str] = set()
        # The floats and bools among them.
        self.as_number: dict[str, str] = {}
        # The names that are copied into a tensor behind the branch, and for nothing else, and the path of that tensor.
        self.copied: dict[str, str] = {}
        # The names that a loop around the branch binds.
        self.anew: set[str] = set()

    def _is_of_a_ternary(self, name: str) -> bool:
        """Whether `name` is bound to what a ternary gives: what a loop adds to a number is taken for a tensor, as one that has no
        round adds nothing."""
        assigned = [each for each in ast.walk(self.source.tree) if isinstance(each, ast.Assign)]
        wanted, before = {name}, set[str]()
        while wanted != before:
            before = set(wanted)
            handed_on = [each for each in assigned if wanted & set(bound(each))]
            if any(isinstance(each.value, ast.IfExp) for each in handed_on):
                return True
            wanted |= {each.value.id for each in handed_on if isinstance(each.value, ast.Name)}
        return False

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
            if name in self.copied:
                continue
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
            self._refuse_options(name, (a, then), (b, other))

    def _unify_name(self, name: str, a: Kind, b: Kind, used_as_number: Callable[[str], bool]) -> None:
        whats = {a.what, b.what}
        if "unknown" in whats and _is_called(self.source, name):
            raise Refused(f"`{name}` is called, and is a function that tensor data would choose")
        if "none" in whats or any(may_be_none(each) for each in (a, b)):
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
                if not (is_constant(a) and is_constant(b)):
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
        if whats == {"tensor", "unknown"}:
            tensor, other = (a, b) if a.what == "tensor" else (b, a)
            if may_be_number(other) and holds_numbers(tensor) and not asks_type(self.source, name):
                assert tensor.dtype is not None
                self.as_tensor[name] = tensor.dtype
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
        same_tensor(f"`{name}`", a, b)

    def _refuse_options(self, name: str, *ways: tuple[Kind, Kinds]) -> None:
        """Raise Refused where a way to `name` is an option of which nothing tells that it is a tensor, and a number has no dtype."""
        if name in self.as_tensor:
            return
        for kind, kinds in ways:
            option = untold_option(self.source, kind, kinds)
            if option is not None:
                raise Refused(f"it is not known whether `{option}`, which `{name}` may be, is a tensor")

    def _read_back(self, name: str, a: Kind, b: Kind) -> bool:
        """Whether `name` leaves as a tensor of its number, which is read again behind the branch."""
        return False

    def names(self, names: list[str], end: Kinds, bound: set[str], used: set[str]) -> list[str]:
        """The texts of `names` as outputs of one side; `used` is memory that is already an output."""
        return [self._name(name, end.names[name], name in bound, used) for name in names]

    def _name(self, name: str, kind: Kind, bound: bool, used: set[str]) -> str:
        if name in self.copied:
            return f"{self.torch}.empty_like({self.copied[name]}).copy_({name})"
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
            held = list(parts_held(kind))
            if any(item.what in ("number", "size", "scalar") for item in held):
                self._take_numbers_of(text, held)
            if any(item.what in ("static", "object", "none") for item in held):
                raise Refused(f"`{text}` holds Python objects that tensor data would choose")
            if self._unshared(kind, used) and bound and (kind.items is None or _are_apart(kind.items)):
                used |= set(kind.roots or ())
                return text
            if holds_tensors_alone(kind) and text.isidentifier():
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
        if (
            bound
            and kind.type == SEVERAL
            and any(item.what in ("number", "size") for item in kind.items or ())
            and self._is_of_a_ternary(text)
        ):
            raise Refused(f"`{text}` may be a Python number: start with a tensor, as `torch.zeros(())`")
        if kind.what == "unknown" and bound:
            attributes = sorted(root for root in kind.roots or () if root.startswith("self."))
            if attributes:
                raise Refused(
                    f"it is not known whether `{attributes[0]}`, which `{text}` may be, is a tensor"
                )
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
        refuse_object(f"`{text}`", kind)
        raise Refused(f"`{text}` is no tensor")

    def _take_numbers_of(self, text: str, held: Sequence[Kind]) -> None:
        raise RefusedNumber(
            f"`{text}` holds Python numbers that tensor data would choose: choose between what is done with them"
        )

    def _unshared(self, kind: Kind, used: set[str]) -> bool:
        if kind.roots is None:
            return False
        return (
            all(root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark for root in kind.roots)
            and not kind.roots & used
        )


def _is_called(source: Source, name: str) -> bool:
    """Whether something is called by `name`."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
        for each in walk(source.tree)
    )


def parts_held(kind: Kind) -> Iterator[Kind]:
    """What a container holds, and the containers in it, as far as that is known."""
    for each in kind.items or ():
        if each.what == "container":
            yield from parts_held(each)
        else:
            yield each


def _are_apart(items: Iterable[Kind]) -> bool:
    """Whether no two of the tensors among `items` share memory: `(mid[0], mid[0])` is one of two names."""
    seen: set[str] = set()
    for item in items:
        if item.what == "tensor" and item.roots:
            if item.roots & seen:
                return False
            seen |= item.roots
    return True
