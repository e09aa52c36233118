"""Parts of an expression of NumPy as torch's text, with what each is; and the arguments of a call of NumPy."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.arrays.array_types import (
    COMPLEXES,
    FLOATS,
    NONE,
    RefusedIndex,
    RefusedUnlike,
    Typed,
    array,
    beside,
    family,
    of_python,
    promoted,
)
from exportlens.rewriting.code.draft import Refused

_OF_64_BITS = frozenset({"int64", "float64", "complex128"})
_SHORT = {"float64": ".double()", "float32": ".float()", "int64": ".long()", "bool": ".bool()"}


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression: its text, what it is, and whether a dot or an operator may stand behind it."""

    text: str
    type: Typed
    atom: bool = True

    @property
    def closed(self) -> str:
        """The text in brackets, where it needs some."""
        return self.text if self.atom else f"({self.text})"

    def typed(self, kind: Typed) -> Piece:
        return replace(self, type=kind)


class Scope(Protocol):
    """Where a call stands."""

    names: dict[str, Typed]

    torch: str
    # Whether arrays may be written to, so that a copy must be one.
    copies: bool
    # Whether an array is made of the dtype of a tensor that is made doubles.
    kept: bool

    def piece(self, node: ast.expr) -> Piece: ...

    def argument(self, node: ast.expr) -> Piece: ...

    def is_written_after(self, node: ast.AST) -> bool: ...

    def free_name(self, node: ast.AST, wanted: str) -> str: ...

    def is_of_sizes(self, node: ast.expr) -> bool: ...


def number(value: object) -> Piece:
    """A number that is written out."""
    return Piece(repr(value), Typed("number", type(value).__name__, value=value))


def cast(scope: Scope, piece: Piece, dtype: str, like: str | None = None) -> Piece:
    """`piece` as an array of `dtype`, which is the one of the array `like` where its width is not known."""
    if piece.type.or_number:
        return _settled(scope, piece, dtype, like)
    if piece.type.dtype == dtype:
        return piece
    if dtype in (FLOATS, COMPLEXES):
        if like is None:
            raise Refused(
                f"`{piece.text}` becomes of the dtype of another array, of which only the kind is known"
            )
        return Piece(f"{piece.closed}.to({like}.dtype)", replace(piece.type, dtype=dtype))
    text = f"{piece.closed}{_SHORT.get(dtype, f'.to({scope.torch}.{dtype})')}"
    return Piece(text, replace(piece.type, dtype=dtype))


def _settled(scope: Scope, piece: Piece, dtype: str, like: str | None) -> Piece:
    """A tensor of `dtype` of what may be a number of Python's as well."""
    wanted = f"{scope.torch}.{dtype}"
    if dtype in (FLOATS, COMPLEXES):
        if like is None:
            raise Refused(f"`{piece.text}` may be a number of Python's, where an array is needed")
        wanted = f"{like}.dtype"
    text = f"{scope.torch}.as_tensor({piece.text}, dtype={wanted})"
    return Piece(text, replace(piece.type, dtype=dtype, or_number=False))


def listed_settled(scope: Scope, given: Piece, wanted: str | None) -> tuple[str, str]:
    """A list of numbers of NumPy's and of Python's as one of tensors, and their dtype: `wanted`, or doubles, which NumPy makes where
    Python's are floats."""
    kinds = given.type.items
    dtype = wanted or "float64"
    if any(each.rank != 0 for each in kinds) or (
        wanted is None and any(each.dtype != "float64" for each in kinds)
    ):
        raise RefusedUnlike(
            f"which dtype NumPy makes of `{given.text}`, which may hold numbers of Python's, is not known"
        )
    if dtype in (FLOATS, COMPLEXES):
        raise Refused(f"`{given.text}` may hold numbers of Python's, where an array is needed")
    node = ast.parse(given.text, mode="eval").body
    settled = f"{scope.torch}.as_tensor({{}}, dtype={scope.torch}.{dtype})"
    part = ast.get_source_segment(given.text, node.elt) if isinstance(node, ast.ListComp) else None
    if part is None or given.text.count(part) > 1:
        return f"[{settled.format('each')} for each in {given.text}]", dtype
    return given.text.replace(part, settled.format(part)), dtype


def sizes_listed(given: Piece) -> Piece:
    """The numbers of a row of sizes, which torch takes as Python's: of those it knows that they are sizes."""
    if family(given.type.dtype) == "float":
        raise RefusedIndex(f"`{given.text}`, by which a tensor is split, is not known to hold ints")
    if given.type.rank not in (1, None):
        raise Refused(f"`{given.text}`, by which a tensor is split, is not known to be one row")
    return Piece(f"{given.closed}.tolist()", Typed("other"))


def lifted(scope: Scope, piece: Piece, dtype: str, like: Piece | None = None) -> Piece:
    """A number as a tensor without dimensions, where torch takes nothing but tensors."""
    if piece.type.is_array:
        return cast(scope, piece, dtype)
    if not piece.type.is_number:
        raise Refused(f"`{piece.text}` is no array that was a tensor, and no number")
    wanted = f"{scope.torch}.{dtype}"
    if dtype in (FLOATS, COMPLEXES):
        if like is None or not like.text.isidentifier():
            raise Refused(
                f"`{piece.text}` becomes of the dtype of another array, of which only the kind is known"
            )
        wanted = f"{like.text}.dtype"
    return Piece(f"{scope.torch}.tensor({piece.text}, dtype={wanted})", array(dtype, 0))


def common(pieces: list[Piece]) -> str:
    """The dtype that NumPy computes in with `pieces`."""
    arrays = [each.type for each in pieces if each.type.is_array]
    numbers = [each.type for each in pieces if each.type.is_number]
    if len(arrays) + len(numbers) != len(pieces):
        odd = next(each for each in pieces if not each.type.is_array and not each.type.is_number)
        if odd.type.what == "unlike":
            raise Refused(f"`{odd.text}` is one array or another, or one that is not determined")
        raise Refused(f"`{odd.text}` stands beside an array, and is not known to be a number or an array")
    found = arrays[0].dtype
    for each in arrays[1:]:
        found = promoted(found, each.dtype)
    for each in numbers:
        found = beside(found, each)
    whole = next((each for each in pieces if each.type.or_number and family(each.type.dtype) == "int"), None)
    if whole is not None and not {each.dtype for each in arrays} <= _OF_64_BITS:
        # A number of Python's leaves the dtype as it is, and one of NumPy's makes it as wide as its own.
        raise RefusedUnlike(f"`{whole.text}` gives a number of NumPy's or one of Python's")
    return found


@dataclass
class Given:
    """What a call of NumPy is given, by the names of NumPy's parameters."""

    scope: Scope
    node: ast.Call
    name: str
    given: dict[str, Piece]
    # Whether it is a method of the array that comes first.
    is_method: bool
    nodes: dict[str, ast.expr]

    @property
    def torch(self) -> str:
        return self.scope.torch

    def __getitem__(self, name: str) -> Piece:
        return self.given[name]

    def has(self, name: str) -> bool:
        return name in self.given and self.given[name].type != NONE

    def array(self, name: str) -> Piece:
        piece = self.given[name]
        kind = piece.type
        if kind.what == "list" and kind.items and all(each.what == "number" for each in kind.items):
            dtype = python_dtype([piece.typed(each) for each in kind.items])
            text = f"{self.torch}.tensor({piece.text}, dtype={self.torch}.{dtype})"
            return Piece(text, replace(array(dtype, 1), ascends=kind.ascends))
        if not piece.type.is_array:
            raise Refused(f"`{piece.text}` is not known to be an array that was a tensor")
        if piece.type.or_number and piece.type.dtype != "float64":
            # Of a number of Python's NumPy's functions make doubles.
            raise RefusedUnlike(f"`{piece.text}` may be a number of Python's, of which NumPy makes a double")
        return cast(self.scope, piece, "float64") if piece.type.or_number else piece

    def refuse(self, *names: str) -> None:
        """Raise Refused where one of the parameters is given."""
        for name in names:
            if name in self.given:
                raise Refused(f"`{name}` of `{self.name}` has no counterpart in torch")

    def axes(self, name: str = "axis") -> tuple[int, ...] | None:
        """The axes that are written out; None where they are not known."""
        kind = self.given[name].type
        numbers = kind.items if kind.what in ("tuple", "list") else (kind,)
        if any(each.what != "number" or each.dtype not in ("int", "") for each in numbers):
            raise Refused(f"which axes `{self.given[name].text}` means is not known")
        values = [each.value for each in numbers if isinstance(each.value, int)]
        return tuple(values) if len(values) == len(numbers) else None

    def out(
        self, function: str, first: Piece, arguments: list[str], dtype: str, rank: int | None = None
    ) -> Piece:
        """torch's function, or the method of the same name where NumPy's is one."""
        if self.is_method:
            return Piece(f"{first.closed}.{function}({', '.join(arguments)})", array(dtype, rank))
        text = f"{self.torch}.{function}({', '.join([first.text, *arguments])})"
        return Piece(text, array(dtype, rank))

    def integer(self, name: str) -> str:
        piece = self.given[name]
        kind = piece.type
        if not (kind.what == "number" and kind.dtype in ("int", "")) and not (
            kind.what == "constant" and kind.dtype.startswith("int")
        ):
            raise Refused(f"`{piece.text}` is not known to be a whole number")
        return piece.text

    def dtype(self, name: str = "dtype") -> tuple[str, str]:
        """The dtype that is asked for, and torch's text for it."""
        piece = self.given[name]
        kind = piece.type
        known = (
            DTYPES.get(repr(kind.value))
            if kind.what == "text"
            else kind.dtype
            if kind.what == "dtype"
            else None
        )
        if not known:
            raise Refused(f"the dtype `{piece.text}` is not known")
        return known, piece.text if piece.text.endswith(".dtype") else f"{self.torch}.{known}"

    def flag(self, name: str) -> str | None:
        """The text of True or False, where it is given."""
        return self.given[name].text if name in self.given else None

    @property
    def must_copy(self) -> bool:
        """Whether the array may be written to, or what is made of it, and is not made here alone."""
        node = self.nodes.get("a")
        if self.is_method and isinstance(self.node.func, ast.Attribute):
            node = self.node.func.value
        made_here = node is not None and is_made_here(node)
        return self.scope.copies and not made_here and self.scope.is_written_after(self.node)

    def items(self, name: str) -> list[Piece] | None:
        """The parts of a tuple or list that is written there; None for a list under a name."""
        node = self.argument_node(name)
        if isinstance(node, (ast.Tuple, ast.List)) and not any(
            isinstance(each, ast.Starred) for each in node.elts
        ):
            return [self.scope.argument(each) for each in node.elts]
        return None

    def argument_node(self, name: str) -> ast.expr | None:
        return self.nodes.get(name)


# Functions of NumPy that give a new array, and are methods of arrays too.
METHODS_ALIKE = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "copy", "cumprod", "cumsum", "max", "mean", "min", "prod",
     "round", "sort", "std", "sum", "var"}
)  # fmt: skip
_FRESH = METHODS_ALIKE | frozenset(
    {"abs", "absolute", "add", "amax", "amin", "astype", "ceil", "concatenate", "divide", "einsum", "exp", "floor",
     "full", "full_like", "hstack", "log", "matmul", "maximum", "median", "minimum", "multiply", "ones", "ones_like",
     "outer", "percentile", "power", "quantile", "sign", "sqrt", "square", "stack", "subtract", "vstack", "where",
     "zeros", "zeros_like"}
)  # fmt: skip


def is_made_here(node: ast.expr) -> bool:
    """Whether `node` computes an array, which no name has."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FRESH


Handler = Callable[[Given], Piece]


def parameters(signature: str) -> list[tuple[str, ...]]:
    """The names of each parameter in "a axis min/a_min"."""
    return [tuple(each.split("/")) for each in signature.split()]


def bind(
    scope: Scope, node: ast.Call, name: str, signature: str, owner: Piece | None, required: int
) -> Given:
    """What `node`, a call of `name`, gives to the parameters of `signature`. Raises Refused where it gives anything else."""
    names = parameters(signature)
    given: dict[str, Piece] = {}
    nodes: dict[str, ast.expr] = {}
    if owner is not None:
        given[names[0][0]] = owner
        names = names[1:]
    if any(isinstance(each, ast.Starred) for each in node.args) or any(
        key.arg is None for key in node.keywords
    ):
        raise Refused(f"the arguments of `{name}` are unpacked from elsewhere")
    if len(node.args) > len(names):
        raise Refused(f"`{name}` is called in a way that has no counterpart in torch")
    for each, value in zip(names, node.args, strict=False):
        given[each[0]], nodes[each[0]] = scope.argument(value), value
    for key in node.keywords:
        found = next((each[0] for each in names if key.arg in each), None)
        if found is None or found in given:
            raise Refused(f"`{key.arg}` of `{name}` has no counterpart in torch")
        given[found], nodes[found] = scope.argument(key.value), key.value
    odd = next((each for each in given if each.startswith("unknown_")), None)
    if odd is not None:
        raise Refused(f"`{odd.removeprefix('unknown_')}` of `{name}` has no counterpart in torch")
    if any(each[0] not in given for each in parameters(signature)[:required]):
        raise Refused(f"`{name}` is called in a way that has no counterpart in torch")
    return Given(scope, node, name, given, owner is not None, nodes=nodes)


def python_dtype(pieces: list[Piece]) -> str:
    """The dtype of an array that NumPy makes of a list: a number of Python's counts there as much as an array."""
    found = None
    for each in pieces:
        one = each.type.dtype if each.type.is_array or each.type.what == "constant" else ""
        if each.type.what == "number":
            one = of_python(each.type.dtype)
        if not one:
            raise Refused(f"`{each.text}` in a list is not known to be a number or an array")
        found = one if found is None else promoted(found, one)
    if found is None:
        raise Refused("an array is made of an empty list")
    return found
