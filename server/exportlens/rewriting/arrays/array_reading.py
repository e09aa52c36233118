"""Expressions of NumPy read as what they are, and written as torch's: the part of a way through arrays that has no statements.

Each expression gives its text, which is the written one with what had to change, and its type: the dtype that NumPy gives it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference.values import Array
from exportlens.rewriting.arrays.array_indexing import index_of, indexed
from exportlens.rewriting.arrays.array_memory import writes_arrays
from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.arrays.array_names import made_before
from exportlens.rewriting.arrays.array_numbers import of_others
from exportlens.rewriting.arrays.array_operands import has_dimensions, is_no_array
from exportlens.rewriting.arrays.array_operators import beside_tensor, compared, computed, multiplied
from exportlens.rewriting.arrays.array_pieces import Piece
from exportlens.rewriting.arrays.array_types import (
    NONE,
    OTHER,
    SIZE,
    TENSOR,
    UNLIKE,
    Typed,
    array,
    family,
    joint,
    merged,
    real_of,
)
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before

_NUMBERS = frozenset({"pi", "e", "inf", "nan", "euler_gamma"})
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_BINDING_NOTHING = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp)


class Again(Exception):
    """Something was learned that changes what has been read: read it again."""


class Reading:
    """Reads the expressions of one function after the other; `names` are what the local ones of the one at hand are."""

    def __init__(self, draft: Draft, kinds: Kinds, copies: bool) -> None:
        self.draft, self.source, self.kinds = draft, draft.source, kinds
        self.torch = draft.torch
        self.copies = copies
        self.kept = False
        # The functions that arrays go through, where one of them writes.
        self.writing: list[Function] = []
        # The call that makes the array which is asked for.
        self.begun: ast.AST | None = None
        # The function that is read first.
        self.first: ast.AST | None = None
        self.names: dict[str, Typed] = {}
        self.local: frozenset[str] = frozenset()
        # What is made before the model runs, and is read at the time.
        self.before: set[ast.expr] = set()
        # The calls that make arrays of sizes which meet what was a tensor.
        self.wanted: set[object] = set()
        # The dtypes of tensors that arrays are made of, where they are known by the place.
        self.dtypes: Mapping[ast.AST, str] = {}
        # The arrays that were made of tensors of an unknown dtype.
        self.assumed: set[ast.AST] = set()
        # What some of them are taken for, which else are floats; and those that are made floats where they are none.
        self.assumption: Mapping[ast.AST, str] = {}
        self.guarded: set[ast.AST] = set()
        # The arguments of functions that are tensors of ints then.
        self.whole: set[tuple[ast.AST | None, str]] = set()
        # The functions in which arrays decide branches, and how many of these are around what is read.
        self.decides: set[ast.AST | None] = set()
        self.decided = 0
        # Those in which it must be seen for it that arguments are tensors.
        self.evident: set[ast.AST | None] = set()
        # What leaves the way, and its dtype.
        self.given: dict[ast.AST, str] = {}
        self._known: dict[ast.AST, Kinds] = {}

    def call_of_helper(self, node: ast.Call) -> Piece | None:
        """What a call of a function of the file gives that arrays go into; None for any other."""
        raise NotImplementedError

    def piece(self, node: ast.expr) -> Piece:
        method = getattr(self, f"_of_{type(node).__name__}", None)
        made: Piece = method(node) if method is not None else self._generic(node)
        return made

    def argument(self, node: ast.expr) -> Piece:
        """What torch is given for `node`: what NumPy holds becomes a tensor."""
        return self.unheld(node, self.piece(node))

    def splice(self, node: ast.expr, parts: list[tuple[ast.expr, Piece]], kind: Typed) -> Piece:
        """The text of `node` with `parts` of it in their new texts."""
        swaps = [swap for each, piece in parts if (swap := self.swapped(each, piece)) is not None]
        text = self.source.of(node, swaps)
        return Piece(text, kind, isinstance(node, ATOMS))

    def swapped(self, node: ast.expr, piece: Piece) -> Replacement | None:
        """`piece` in the place of `node`; the brackets around it, which belong to no node, go where nothing needs them."""
        if piece.text == self.source.of(node):
            return None
        start, end = self.source.start(node), self.source.end(node)
        before, behind = self.source.text[:start], self.source.text[end:]
        if before.endswith("(") and behind.startswith(")"):
            if isinstance(node, ATOMS) or not piece.atom or not self._is_operand(node):
                return Replacement(start, end, piece.text)
            return Replacement(start - 1, end + 1, piece.text)
        parent = self.source.parents.get(node)
        loose = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute))
        loose = loose or (isinstance(parent, ast.Subscript) and parent.value is node)
        return Replacement(start, end, piece.closed if loose and isinstance(node, ATOMS) else piece.text)

    def _is_operand(self, node: ast.expr) -> bool:
        return isinstance(
            self.source.parents.get(node), (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript)
        )

    def _generic(self, node: ast.expr) -> Piece:
        """What nothing is known of: no array may be in it."""
        parts = []
        for each in ast.iter_child_nodes(node):
            if isinstance(each, (ast.comprehension, ast.arguments)):
                if any(isinstance(one, ast.Name) and self._is_array(one.id) for one in ast.walk(node)):
                    raise Refused(f"an array is used in `{self.source.of(node)}`")
            elif isinstance(each, ast.expr):
                parts.append((each, self.piece(each)))
            elif isinstance(each, ast.keyword):
                parts.append((each.value, self.piece(each.value)))
        for one, piece in parts:
            if piece.type.holds_arrays:
                raise Refused(
                    f"the array `{self.source.of(one)}` is used in a way that has no counterpart in torch"
                )
        return self.splice(node, parts, OTHER)

    def _is_array(self, name: str) -> bool:
        return name in self.names and self.names[name].holds_arrays

    # What stands for itself.

    def _of_Constant(self, node: ast.Constant) -> Piece:
        value = node.value
        text = self.source.of(node)
        if value is None:
            return Piece(text, NONE)
        if isinstance(value, str):
            return Piece(text, Typed("text", value=value))
        if isinstance(value, (bool, int, float, complex)):
            return Piece(text, Typed("number", type(value).__name__, value=value))
        return Piece(text, OTHER)

    def _of_Name(self, node: ast.Name) -> Piece:
        if node.id in self.names:
            return Piece(node.id, self.names[node.id])
        if self.whole and (self.source.enclosing_function(node), node.id) in self.whole:
            return Piece(node.id, replace(TENSOR, dtype="int64"))
        return self._plain(node)

    def _plain(self, node: ast.expr) -> Piece:
        """A name or an attribute that no statement of the function binds."""
        text = self.source.of(node)
        name = self.draft.qualified(node)
        if name in ("float", "int", "bool", "complex"):
            return Piece(text, Typed("dtype", {"float": "float64", "int": "int64"}.get(name, name)))
        if name.startswith("numpy."):
            return self._of_numpy(name.removeprefix("numpy."), text)
        if name.startswith("torch."):
            return Piece(text, OTHER)
        return Piece(text, made_before(self, node) or self._typed(node, self._kinds(node).of(node)))

    def _of_numpy(self, name: str, text: str) -> Piece:
        if name == "newaxis":
            return Piece("None", NONE)
        if name in _NUMBERS:
            return Piece(text, Typed("number", "float"))
        dtype = DTYPES.get(f"np.{name}") or {"single": "float32", "double": "float64", "bool": "bool"}.get(
            name
        )
        if dtype is None and name in ("int8", "int16", "complex64", "complex128"):
            dtype = name
        return Piece(text, OTHER if dtype is None else Typed("dtype", dtype))

    def _typed(self, node: ast.expr, kind: Kind) -> Typed:
        value = kind.value
        if isinstance(value, Array):
            return Typed("held", value.dtype or "", value.rank)
        if kind.what == "tensor":
            least = kind.rank if kind.rank is not None else has_dimensions(self.source, node)
            return replace(TENSOR, dtype=kind.dtype or "", rank=kind.rank, least=least)
        if kind.what == "none":
            return NONE
        if kind.what in ("number", "size", "scalar"):
            known = getattr(value, "value", None)
            dtype = kind.type or ("int" if kind.what == "size" else "")
            known = known if isinstance(known, (int, float)) else None
            return Typed("number", dtype, value=known, lowest=0 if kind.what == "size" else None)
        if kind.what == "container" and kind.items is not None:
            return Typed("tuple", items=tuple(self._typed(node, each) for each in kind.items))
        function = self.source.enclosing_function(node)
        if isinstance(node, (ast.Name, ast.Attribute)) and is_no_array(self.draft, node, function):
            return Typed("number")
        return OTHER

    def _kinds(self, node: ast.expr) -> Kinds:
        function = self.source.enclosing_function(node)
        if function is None:
            return self.kinds
        statement = self.source.enclosing_statement(node)
        if statement not in self._known:
            self._known[statement] = kinds_before(function, statement, self.kinds)
        return self._known[statement]

    def _of_Attribute(self, node: ast.Attribute) -> Piece:
        name = dotted(node)
        if (limit := self._limit_of_floats(node)) is not None:
            return limit
        asks = node.attr in ("shape", "ndim", "T") and self.piece(node.value).type.what == "tensor"
        if name is not None and name.partition(".")[0] not in self.names and not asks:
            return self._plain(node)
        owner = self.piece(node.value)
        parts = [(node.value, owner)]
        attr = node.attr
        if owner.type.what in ("array", "tensor") and attr == "shape":
            return self.splice(node, parts, Typed("shape", rank=owner.type.rank))
        if owner.type.what in ("array", "tensor") and attr == "ndim":
            return self.splice(node, parts, SIZE)
        if owner.type.or_number:
            raise Refused(f"`{owner.text}` may be a number of Python's, which has no `.{attr}`")
        if not owner.type.is_array:
            if owner.type.holds_arrays:
                raise Refused(f"`.{attr}` of arrays has no counterpart in torch")
            kind = TENSOR if owner.type.what == "tensor" and attr in ("T", "mT", "data", "real") else OTHER
            if owner.type.what == "held":
                kind = owner.type if attr == "T" else SIZE if attr in ("size", "ndim") else OTHER
                kind = Typed("shape", rank=owner.type.rank) if attr == "shape" else kind
            return self.splice(node, parts, kind)
        if attr == "size":
            return Piece(f"{owner.closed}.numel()", SIZE)
        if attr == "T":
            return owner if owner.type.rank in (0, 1) else Piece(f"{owner.closed}.T", owner.type)
        if attr == "dtype":
            return self.splice(node, parts, Typed("dtype", owner.type.dtype))
        if attr in ("real", "imag") and family(owner.type.dtype) == "complex":
            return self.splice(node, parts, array(real_of(owner.type.dtype), owner.type.rank))
        raise Refused(f"`.{attr}` of the array has no counterpart in torch")

    def _limit_of_floats(self, node: ast.Attribute) -> Piece | None:
        """`np.finfo(np.float32).eps`, a number of NumPy's of that dtype."""
        call = node.value
        if not isinstance(call, ast.Call) or self.draft.qualified(call.func) != "numpy.finfo":
            return None
        if node.attr not in ("eps", "tiny", "max", "min", "smallest_normal") or len(call.args) != 1:
            return None
        kind = self.piece(call.args[0])
        if kind.type.what != "dtype" or not kind.type.dtype:
            return None
        written = kind.text if kind.text.endswith(".dtype") else f"{self.torch}.{kind.type.dtype}"
        return Piece(f"{self.torch}.finfo({written}).{node.attr}", Typed("constant", kind.type.dtype))

    def _of_Subscript(self, node: ast.Subscript) -> Piece:
        owner = self.piece(node.value)
        if owner.type.is_array or (owner.type.what == "held" and self.is_index_of_arrays(node.slice)):
            owner = self.unheld(node.value, owner)
            if owner.type.or_number:
                raise Refused(f"`{owner.text}` may be a number of Python's, which nothing is picked from")
            return indexed(self, node, owner)
        index = self.piece(node.slice) if not _has_slices(node.slice) else None
        if index is not None and index.type.holds_arrays:
            if owner.type.what == "tensor":
                return self.splice(node, [(node.value, owner), (node.slice, index)], TENSOR)
            raise Refused(f"`{owner.text}`, which an array picks from, is not known to be one")
        parts = [(node.value, owner), *([(node.slice, index)] if index is not None else [])]
        kind = owner.type
        place = index.type.value if index is not None else None
        if kind.what == "shape":
            return self.splice(node, parts, SIZE if index is not None else Typed("shape"))
        if kind.what in ("tuple", "list") and kind.grows and kind.items:
            return self.splice(node, parts, kind.items[0] if index is not None else kind)
        if (
            kind.what in ("tuple", "list")
            and isinstance(place, int)
            and -len(kind.items) <= place < len(kind.items)
        ):
            if isinstance(node.value, ast.Call) and owner.text.startswith("("):
                return Piece(_item(owner.text, place), kind.items[place])
            return self.splice(node, parts, kind.items[place])
        if kind.what == "dict" and isinstance(kind.value, tuple) and place in kind.value:
            return self.splice(node, parts, kind.items[kind.value.index(place)])
        if kind.holds_arrays:
            raise Refused(f"which array `{self.source.of(node)}` is is not known")
        if kind.what == "held" and kind.dtype and kind.rank is not None:
            index_left = index_of(self, node, owner.typed(array(kind.dtype, kind.rank)))
            return self.splice(node, parts, replace(kind, rank=index_left.rank, least=index_left.least))
        if kind.what in ("tensor", "held"):
            return self.splice(node, parts, replace(kind, rank=None, least=0))
        return self._plain(node) if dotted(node.value) else self.splice(node, parts, OTHER)

    def is_index_of_arrays(self, index: ast.expr) -> bool:
        if _has_slices(index):
            return any(
                self.is_index_of_arrays(each)
                for each in (index.elts if isinstance(index, ast.Tuple) else [])
                if not isinstance(each, ast.Slice)
            )
        return self.piece(index).type.holds_arrays

    # What is computed.

    def is_written_after(self, node: ast.AST) -> bool:
        """Whether anything may be written to once `node`, of the function that is read first, is evaluated."""
        function = self.source.enclosing_function(node)
        loops = any(
            isinstance(each, (ast.For, ast.While, ast.comprehension)) for each in self.source.ancestors(node)
        )
        if function is None or loops or function is not self.first:
            return True
        end = self.source.end(node)
        later = [
            each
            for each in ast.walk(function)
            if isinstance(each, (ast.stmt, ast.expr)) and self.source.start(each) >= end
        ]
        return writes_arrays(later)

    def free_name(self, node: ast.AST, wanted: str) -> str:
        """A name for a part of `node` that is needed twice. Raises Refused where an expression can bind none."""
        if any(
            isinstance(each, (ast.comprehension, *_BINDING_NOTHING)) for each in self.source.ancestors(node)
        ):
            raise Refused(f"`{self.source.of(node)}` needs a statement of its own")
        taken = self.draft.taken(self.source.tree)
        return next(name for number in itertools.count() if (name := f"{wanted}{number or ''}") not in taken)

    def is_of_sizes(self, node: ast.expr) -> bool:
        """Whether `node` is computed of numbers, sizes and what NumPy holds, and of no data."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            function = self.source.enclosing_function(node)
            given = given_to_name(node.id, function)
            if len(given) != 1 or any(each is node for each in ast.walk(given[0])):
                return self.names.get(node.id, OTHER).what == "constant" or self.piece(node).type.is_held
            return self.is_of_sizes(given[0])
        if isinstance(node, ast.Attribute):
            return node.attr in ("shape", "size", "ndim") or self.piece(node).type.what in ("held", "number")
        if isinstance(node, ast.Call):
            name = self.draft.qualified(node.func)
            if not name.startswith("numpy.") and name not in ("len", "int", "float"):
                return isinstance(node.func, ast.Attribute) and self.is_of_sizes(node.func.value)
            return all(self.is_of_sizes(each) or name == "len" for each in node.args)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.List, ast.Tuple, ast.Slice)):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            return all(map(self.is_of_sizes, inner))
        return False

    def unheld(self, node: ast.expr, piece: Piece) -> Piece:
        """`piece` as an array that becomes a tensor, where NumPy makes or holds it."""
        if piece.type.what != "held":
            return piece
        if piece.type.origins:
            if piece.type.origins <= self.wanted:
                raise Refused(f"`{piece.text}` is made by NumPy in a way that has no counterpart in torch")
            self.wanted |= piece.type.origins
            raise Again
        if not piece.type.dtype:
            raise Refused(f"the dtype of `{piece.text}`, which NumPy holds, is not known")
        text = f"{self.torch}.as_tensor({piece.text})"
        kind = array(piece.type.dtype, piece.type.rank, piece.type.least)
        return Piece(text, replace(kind, ascends=piece.type.ascends))

    def _of_BinOp(self, node: ast.BinOp) -> Piece:
        left, right = self.piece(node.left), self.piece(node.right)
        tensor = None if isinstance(node.op, ast.MatMult) else beside_tensor(left, right)
        if tensor is not None:
            return self.splice(node, [(node.left, left), (node.right, right)], tensor)
        if left.type.is_array or right.type.is_array:
            left, right = self.unheld(node.left, left), self.unheld(node.right, right)
            if isinstance(node.op, ast.MatMult):
                left, right, kind = multiplied(self, left, right)
            else:
                left, right, kind = computed(self, left, right, SIGNS[type(node.op)])
            return self.splice(node, [(node.left, left), (node.right, right)], kind)
        kind = of_others(left.type, right.type, node.op)
        return self.splice(node, [(node.left, left), (node.right, right)], kind)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Piece:
        inner = self.piece(node.operand)
        kind = inner.type
        if kind.is_array:
            if isinstance(node.op, ast.Not):
                kind = Typed("number", "bool")
            elif (kind.dtype == "bool") != isinstance(node.op, ast.Invert) and kind.dtype == "bool":
                raise Refused("NumPy has no sign of bools")
            elif isinstance(node.op, ast.Invert) and family(kind.dtype) not in ("bool", "int"):
                raise Refused("NumPy has no bits of floats")
        elif isinstance(node.op, ast.USub) and isinstance(kind.value, (int, float)):
            kind = replace(kind, value=-kind.value)
        elif isinstance(node.op, ast.Not):
            kind = Typed("number", "bool")
        elif kind.holds_arrays:
            raise Refused(f"an array is used in `{self.source.of(node)}`")
        return self.splice(node, [(node.operand, inner)], replace(kind, ascends=False))

    def _of_Compare(self, node: ast.Compare) -> Piece:
        sides = [node.left, *node.comparators]
        pieces = [self.piece(each) for each in sides]
        asks = all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)
        if not any(each.type.is_array for each in pieces) or asks:
            if any(each.type.holds_arrays for each in pieces) and not asks:
                raise Refused(f"arrays are compared in `{self.source.of(node)}`")
            held = [each.type for each in pieces if each.type.what == "held"]
            kind = Typed("number", "bool")
            if any(each.type.what == "tensor" for each in pieces) and not asks:
                kind = TENSOR
            elif held and not asks:
                kind = Typed("held", "bool", origins=frozenset().union(*(each.origins for each in held)))
            return self.splice(node, list(zip(sides, pieces, strict=True)), kind)
        if len(node.ops) > 1 and not any(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops):
            return self._of_chain(node, sides, pieces)
        if len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
            raise Refused(f"arrays are compared in `{self.source.of(node)}`")
        if beside_tensor(*pieces) is not None:
            return self.splice(node, list(zip(sides, pieces, strict=True)), replace(TENSOR, dtype="bool"))
        left, right = (self.unheld(each, piece) for each, piece in zip(sides, pieces, strict=True))
        left, right, kind = compared(self, left, right)
        return self.splice(node, [(sides[0], left), (sides[1], right)], kind)

    def _of_chain(self, node: ast.Compare, sides: list[ast.expr], pieces: list[Piece]) -> Piece:
        """`1 < a < n` of numbers of NumPy's, which Python asks one after the other."""
        for left, right in itertools.pairwise(pieces):
            if left.type.is_number and right.type.is_number:
                continue
            first, second, kind = compared(self, left, right)
            if kind.rank != 0 or (first.text, second.text) != (left.text, right.text):
                raise Refused(f"arrays are compared in `{self.source.of(node)}`")
        self.decides.add(self.source.enclosing_function(node))
        return self.splice(node, list(zip(sides, pieces, strict=True)), array("bool", 0))

    def _of_BoolOp(self, node: ast.BoolOp) -> Piece:
        pieces = [self.piece(each) for each in node.values]
        arrays = any(each.type.holds_arrays for each in pieces)
        if arrays:
            pieces = [self.unheld(*each) for each in zip(node.values, pieces, strict=True)]
        parts = list(zip(node.values, pieces, strict=True))
        if arrays and all(each.type.is_array and each.type.dtype == "bool" for each in pieces):
            self.decides.add(self.source.enclosing_function(node))
            return self.splice(node, parts, array("bool", joint([each.type.rank for each in pieces])))
        return self.splice(node, parts, UNLIKE if arrays else Typed("number", "bool"))

    def _of_IfExp(self, node: ast.IfExp) -> Piece:
        parts = [(each, self.piece(each)) for each in (node.test, node.body, node.orelse)]
        if any(piece.type.is_array for _, piece in parts[1:]):
            parts[1:] = [(each, self.unheld(each, piece)) for each, piece in parts[1:]]
        if parts[0][1].type.holds_arrays:
            self.decides.add(self.source.enclosing_function(node))
        return self.splice(node, parts, merged(parts[1][1].type, parts[2][1].type))


def _item(text: str, place: int) -> str:
    """The text of one part of the tuple that `text` writes out, or its index of it."""
    made = ast.parse(text, mode="eval").body
    part = ast.get_source_segment(text, made.elts[place]) if isinstance(made, ast.Tuple) else None
    return part or f"{text}[{place}]"


def _has_slices(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(each, ast.Slice) for each in parts)
