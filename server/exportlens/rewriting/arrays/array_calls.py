"""Calls among arrays of NumPy: what they give, and torch's in their place."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.arrays import (
    array_finding,
    array_functions,
    array_samples,
    array_shapes,
    array_transforms,
    array_ufuncs,
)
from exportlens.rewriting.arrays.array_collections import Collections
from exportlens.rewriting.arrays.array_grids import grid_of_shape
from exportlens.rewriting.arrays.array_methods import DTYPES
from exportlens.rewriting.arrays.array_operands import KEEPING
from exportlens.rewriting.arrays.array_operators import beside_tensor
from exportlens.rewriting.arrays.array_pieces import (
    METHODS_ALIKE,
    Piece,
    bind,
    is_made_here,
    lifted,
    sizes_listed,
)
from exportlens.rewriting.arrays.array_types import (
    FLOATS,
    INT,
    OTHER,
    SIZE,
    TENSOR,
    RefusedUnlike,
    Typed,
    array,
    family,
    floating,
    real_of,
)
from exportlens.rewriting.arrays.numpy_calls import LEGACY
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.kinds.float_evidence import holds_floats, is_bound_once, is_given, takes_floats
from exportlens.rewriting.memory.moving import writes

FUNCTIONS = {
    **array_functions.functions(),
    **array_shapes.functions(),
    **array_transforms.functions(),
    **array_samples.functions(),
    **array_ufuncs.functions(),
    **array_finding.functions(),
}
MAKING = array_transforms.MAKING
_METHODS = METHODS_ALIKE | frozenset(
    {"conj", "diagonal", "dot", "nonzero", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "take", "trace", "transpose"}
)  # fmt: skip
_BACK = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")


class Calls(Collections):
    """Reads calls of NumPy, of torch, of Python and of methods."""

    def _of_Call(self, node: ast.Call) -> Piece:
        if isinstance(node.func, ast.Attribute):
            name = self.draft.qualified(node.func)
            if name.startswith("numpy.") and name.partition(".")[0] not in self.names:
                return self._call_of_numpy(node, name.removeprefix("numpy."))
            if node.func.attr == "numpy" and self._is_made(node):
                return self._made(node, node.func.value, node)
            helper = self.call_of_helper(node)
            if helper is not None:
                return helper
            if name.startswith("math."):
                return self._call_of_python(node, name)
            if name.startswith("torch."):
                return self._call_of_torch(node, name)
            owner = self.piece(node.func.value)
            if owner.type.is_array:
                return self._method(node, node.func.attr, owner)
            return self._other_call(node, owner)
        helper = self.call_of_helper(node)
        if helper is not None:
            return helper
        name = self.draft.qualified(node.func)
        if name.startswith("torch."):
            return self._call_of_torch(node, name)
        if name.startswith("numpy."):
            return self._call_of_numpy(node, name.removeprefix("numpy."))
        return self._call_of_python(node, name)

    def _other_call(self, node: ast.Call, owner: Piece) -> Piece:
        known = owner.type.what == "tensor" or self.source.parents.get(node) is self.begun
        if known and self._is_listed_for_numpy(node):
            return self._made_of_list(node, owner)
        made = self._generic(node)
        kind = OTHER
        first = self.piece(node.args[0]).type if node.args and self.whole else OTHER
        if first.what == "tensor" and first.dtype == "int64" and takes_floats(self.source, node):
            raise Refused(f"`{self.source.of(node.func)}` takes no ints")
        if owner.type.what == "tensor":
            assert isinstance(node.func, ast.Attribute)
            kind = (
                Typed("shape", rank=owner.type.rank) if node.func.attr == "size" and not node.args else TENSOR
            )
            if kind is TENSOR and node.func.attr in KEEPING:
                kind = replace(TENSOR, least=owner.type.least)
            if node.func.attr in ("size", "dim", "numel") and kind is TENSOR:
                kind = SIZE
            if node.func.attr in ("item", "tolist", "split", "chunk", "unbind"):
                kind = Typed("number") if node.func.attr == "item" else OTHER
        elif owner.type.what == "held":
            kind = Typed("held", origins=owner.type.origins)
        elif self._kinds(node).of(node).what == "tensor":
            kind = TENSOR
        return made.typed(kind)

    def _is_made(self, node: ast.Call) -> bool:
        return not node.args and all(
            key.arg == "force" and isinstance(key.value, ast.Constant) for key in node.keywords
        )

    def _made(self, node: ast.Call, tensor: ast.expr, place: ast.AST) -> Piece:
        """The array that is made of `tensor`, which it stays."""
        owner = self.piece(tensor)
        if owner.type.is_array or owner.type.holds_arrays:
            raise Refused(f"`{owner.text}` is an array already")
        kind = self._kinds(tensor).of(tensor)
        dtype = self.dtypes.get(place) or kind.dtype or ""
        plain = {"int": "int64", "float": FLOATS, "complex": "", "": self.assumption.get(place, FLOATS)}
        known = plain.get(dtype, dtype)
        if not known or known == "bfloat16":
            raise Refused(f"which dtype the array of `{owner.text}` has is not known")
        text, atom, root = owner.text, owner.atom, _root_of(tensor)
        made_of: tuple[str, str] | None = None
        function = self.source.enclosing_function(tensor)
        certain = function is None or root is None or holds_floats(self.source, function, root)
        if not dtype and root is not None and not certain and owner.text.startswith(root):
            self.assumed.add(place)
            if place in self.guarded or self.assumption.get(place) == "float64":
                if function is not None and text.startswith(root) and is_bound_once(function, root):
                    made_of = (root, FLOATS if place in self.guarded else "int64")
                floats, rest = f"{root} if {root}.is_floating_point() else {root}.double()", text[len(root) :]
                text, atom = (f"({floats}){rest}", True) if rest else (floats, False)
        forced = any(key.arg == "force" for key in node.keywords)
        if forced:
            text, atom = f"{text if atom else f'({text})'}.detach().cpu()", True
        if not dtype and certain:
            known = FLOATS
        if text == root and function is not None and function in self.evident and is_given(function, root):
            # What nothing else is known of would not be seen to be a tensor any more.
            text += ".detach()"
        return Piece(text, replace(array(known, kind.rank), made_of=made_of), atom)

    def _is_listed_for_numpy(self, node: ast.Call) -> bool:
        """Whether `node` is `t.tolist()` of which NumPy makes an array."""
        call = self.source.parents.get(node)
        return (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "tolist"
            and not node.args
            and isinstance(call, ast.Call)
            and call.args[:1] == [node]
            and self.draft.qualified(call.func).startswith("numpy.")
        )

    def _made_of_list(self, node: ast.Call, owner: Piece) -> Piece:
        """The array of doubles, or of ints of 64 bits, that NumPy makes of the numbers of a tensor."""
        assert isinstance(node.func, ast.Attribute)
        kind = self._kinds(node.func.value).of(node.func.value)
        dtype = self.dtypes.get(node) or kind.dtype or ""
        known = {"": self.assumption.get(node, "float64"), "int": "int64", "float": "float64"}.get(
            dtype, dtype
        )
        root, function = _root_of(node.func.value), self.source.enclosing_function(node)
        certain = function is None or root is None or holds_floats(self.source, function, root)
        if not dtype and not certain:
            self.assumed.add(node)
        text = owner.closed if ".detach()" in owner.text else f"{owner.closed}.detach()"
        made = {"float": "float64", "int": "int64", "bool": "bool"}.get(family(known))
        if made is None:
            raise Refused(f"what NumPy makes of `{self.source.of(node)}` is not known")
        if known == made and made != "float64":
            return Piece(text, array(made, kind.rank))
        return Piece(f"{text}.{'double' if made == 'float64' else 'long'}()", array(made, kind.rank))

    def _made_by_numpy(self, node: ast.Call, name: str) -> Piece:
        """`np.asarray(t)`, and `np.array(t, dtype=np.float32)`."""
        if isinstance(node.args[0], ast.Call) and self._is_listed_for_numpy(node.args[0]):
            raise Refused(f"`{self.source.of(node.args[0])}` is not known to be the numbers of a tensor")
        made = self._made(node, node.args[0], node)
        if {key.arg for key in node.keywords} - {"dtype"}:
            raise Refused(f"`{self.source.of(node)}` is called in a way that has no counterpart in torch")
        copied = name == "array" and self.copies
        for key in node.keywords:
            wanted = self.piece(key.value).type
            dtype = DTYPES.get(repr(wanted.value)) if wanted.what == "text" else wanted.dtype
            if not dtype or wanted.what not in ("text", "dtype"):
                raise Refused(f"the dtype `{self.source.of(key.value)}` is not known")
            if dtype != made.type.dtype:
                text = f"{self.torch}.{dtype}{', copy=True' if copied else ''}"
                return Piece(f"{made.closed}.to({text})", replace(made.type, dtype=dtype))
        if name == "ascontiguousarray":
            return Piece(f"{made.closed}.contiguous()", made.type)
        return Piece(f"{made.closed}.clone()", made.type) if copied else made

    def _call_of_torch(self, node: ast.Call, name: str) -> Piece:
        legacy = LEGACY.get(name)
        if (name in _BACK or legacy is not None) and len(node.args) == 1:
            given = self.piece(node.args[0])
            if given.type.is_array:
                return self._back(node, name, given, legacy)
            if given.type.what == "list" and given.type.grows and given.type.holds_arrays:
                raise Refused("a list of arrays is put together by torch")
            if given.type.what in ("list", "tuple") and given.type.holds_arrays:
                return self._stacked(node, name, legacy)
        if name in ("torch.where", "torch.clamp", "torch.clip") and not node.keywords:
            beside = self._beside_tensor(node)
            if beside is not None:
                return beside
        made = self._generic(node)
        kind = self._kinds(node).of(node)
        return made.typed(TENSOR if kind.what in ("tensor", "unknown") else self._typed(node, kind))

    def _back(self, node: ast.Call, name: str, given: Piece, legacy: str | None) -> Piece:
        """The tensor that is made of an array, which is one already."""
        if name == "torch.from_numpy" and given.type.rank == 0:
            raise Refused("`torch.from_numpy` takes no number of NumPy's")
        text, atom = given.text, given.atom
        copies = self.copies and name not in ("torch.from_numpy", "torch.as_tensor", "torch.asarray")
        words = []
        for key in node.keywords:
            if key.arg not in ("dtype", "device"):
                raise Refused(f"`{key.arg}` of `{name}` is given an array")
            words.append(f"{key.arg}={self.piece(key.value).text}")
        dtype = given.type.dtype
        if given.type.or_number:
            if legacy is not None:
                raise Refused(f"`{given.text}` may be a number of Python's, which `{name}` takes for a size")
            self.given[node] = dtype
            made = f"{self.torch}.as_tensor({', '.join([given.text, *words])})"
            made += ".clone()" if copies and self.is_written_after(node) else ""
            return Piece(made, replace(TENSOR, rank=given.type.rank))
        if legacy is not None:
            words = [f"{self.torch}.{legacy}"]
        # What is only taken for ints is converted all the same: that is right for floats, too.
        taken = dtype == "int64" and bool(self.assumption)
        same = words in ([f"{self.torch}.{dtype}"], [f"dtype={self.torch}.{dtype}"])
        if words and (taken or not same):
            text = f"{given.closed}.to({', '.join([*words, *(['copy=True'] if copies else [])])})"
        elif copies and not is_made_here(node.args[0]) and self.is_written_after(node):
            text = f"{given.closed}.clone()"
        atom = atom or text != given.text
        self.given[node] = dtype
        return Piece(text, replace(TENSOR, dtype="" if words else dtype, rank=given.type.rank), atom)

    def _beside_tensor(self, node: ast.Call) -> Piece | None:
        """`torch.clamp(x, low, high)` and `torch.where(x > 0, x, low)` with numbers of NumPy's, beside which a tensor decides the
        dtype as it does beside tensors without dimensions; None where there are none."""
        pieces = [self.piece(each) for each in node.args]
        tensors = [each for each in pieces if each.type.what == "tensor" and each.type.dtype != "bool"]
        rest = [each for each in pieces if each.type.what != "tensor"]
        if not tensors or not rest or any(beside_tensor(tensors[0], each) is None for each in rest):
            return None
        return self.splice(node, list(zip(node.args, pieces, strict=True)), replace(TENSOR, rank=None))

    def _stacked(self, node: ast.Call, name: str, legacy: str | None) -> Piece:
        """`torch.tensor([a.max(), 1.0])` of numbers of NumPy's, which torch takes for tensors of their dtype."""
        items = node.args[0]
        words = {key.arg: key.value for key in node.keywords}
        if name == "torch.from_numpy" or words.keys() - {"dtype", "device"}:
            raise Refused(f"`{self.source.of(node)}` is called in a way that has no counterpart in torch")
        if not isinstance(items, (ast.List, ast.Tuple)):
            raise Refused("a list of arrays is put together by torch")
        wanted = None if legacy is None else f"{self.torch}.{legacy}"
        if "dtype" in words:
            wanted = self.piece(words["dtype"]).text
        found = [self.argument(each) for each in items.elts if not isinstance(each, ast.Starred)]
        arrays = [each for each in found if each.type.is_array]
        ranks = {each.type.rank for each in arrays}
        numbers = [each for each in found if not each.type.is_array]
        if len(found) < len(items.elts) or (ranks != {0} and (numbers or len(ranks) > 1)):
            raise Refused("a list holds arrays of other shapes than one another, as far as is known")
        if any(
            each.type.what != "number" or each.type.dtype not in ("int", "float", "bool") for each in numbers
        ):
            raise Refused("not all in a list is an array that was a tensor, or a number")
        dtype = arrays[0].type.dtype
        fit = {"float": {"int", "float"}, "int": {"int"}}.get(family(dtype), set())
        unlike = (
            len({each.type.dtype for each in arrays}) > 1 or not {each.type.dtype for each in numbers} <= fit
        )
        if wanted is None and unlike:
            raise Refused("numbers of several dtypes are put together by torch")
        texts = []
        for each in found:
            if wanted is not None and (unlike or numbers):
                text = f"{each.closed}.to({wanted})"
                text = text if each.type.is_array else f"{self.torch}.tensor({each.text}, dtype={wanted})"
            else:
                like = next((one for one in arrays if one.text.isidentifier()), None)
                text = lifted(self, each, dtype, like).text
            texts.append(text)
        made = f"{self.torch}.stack([{', '.join(texts)}])"
        more = [wanted] if wanted is not None and not (unlike or numbers) else []
        more += [f"device={self.piece(words['device']).text}"] if "device" in words else []
        made += f".to({', '.join(more)})" if more else ""
        rank = arrays[0].type.rank
        rank = None if rank is None else rank + 1
        self.given[node] = wanted or dtype
        return Piece(made, replace(TENSOR, dtype="" if wanted else dtype, rank=rank))

    def _method(self, node: ast.Call, name: str, owner: Piece) -> Piece:
        assert isinstance(node.func, ast.Attribute)
        if name in ("item", "tolist"):
            type_of = family(owner.type.dtype)
            made = self.splice(node, [(node.func.value, owner)], OTHER)
            self.given[node] = type_of
            return made.typed(Typed("number", type_of)) if name == "item" else made
        if name in ("transpose", "reshape") and len(node.args) > 1:
            pieces = [self.piece(each) for each in node.args]
            if node.keywords or any(each.type.what != "number" for each in pieces):
                raise Refused(f"`.{name}` is called in a way that has no counterpart in torch")
            called = "permute" if name == "transpose" else name
            kind = array(owner.type.dtype, len(pieces))
            return Piece(f"{owner.closed}.{called}({', '.join(each.text for each in pieces)})", kind)
        table = array_shapes.METHODS.get(name) or (FUNCTIONS.get(name) if name in _METHODS else None)
        if table is None:
            raise Refused(f"tensors have no method that is the same as `{self.source.of(node.func)}` here")
        handler, signature, required = table
        return handler(bind(self, node, name, signature, owner, required))

    def _call_of_numpy(self, node: ast.Call, name: str) -> Piece:
        if name in ("asarray", "array", "ascontiguousarray") and len(node.args) == 1:
            given = self.piece(node.args[0])
            if given.type.what == "tensor" or (node is self.begun and not given.type.is_array):
                return self._made_by_numpy(node, name)
        if name == "meshgrid" and (grid := grid_of_shape(self, node)) is not None:
            return grid
        nodes = [*node.args, *(key.value for key in node.keywords)]
        pieces = [self.piece(each) for each in nodes]
        if any(each.type.what == "tensor" for each in pieces):
            raise Refused(f"NumPy's `{name}` is given a tensor")
        held = [each for each in pieces if each.type.is_held]
        if any(each.type.holds_arrays for each in pieces):
            for one, each in zip(nodes, pieces, strict=True):
                if each.type.is_held and each.type.made_by:
                    self.unheld(one, replace(each, type=Typed("held", origins=each.type.made_by)))
            if name not in FUNCTIONS:
                raise Refused(
                    f"torch has no function that is measured to be the same as `{self.source.of(node.func)}` here"
                )
            handler, signature, required = FUNCTIONS[name]
            return self._commented(node, handler(bind(self, node, name, signature, None, required)))
        if held:
            origins: frozenset[object] = frozenset().union(*(each.type.made_by for each in held))
            made = self._generic(node)
            if name in FUNCTIONS and not origins and len(pieces) == 1:
                try:
                    handler, signature, required = FUNCTIONS[name]
                    alike = handler(bind(self, node, name, signature, None, required)).type
                    return made.typed(Typed("held", alike.dtype, alike.rank))
                except Refused:
                    return made.typed(Typed("held"))
            return made.typed(Typed("held", origins=origins))
        if name in MAKING or name in ("array", "asarray"):
            if node in self.wanted:
                handler, signature, required = (MAKING if name in MAKING else FUNCTIONS)[name]
                made = handler(bind(self, node, name, signature, None, required))
                return self._commented(node, made)
            return self._generic(node).typed(Typed("held", origins=frozenset({node})))
        return self._generic(node).typed(_of_numbers(name, [each.type for each in pieces]))

    def _commented(self, node: ast.Call, made: Piece) -> Piece:
        if "#" in self.source.of(node):
            raise Refused("a comment stands in a call that is written anew")
        return made

    def _call_of_python(self, node: ast.Call, name: str) -> Piece:
        pieces = [self.piece(each) for each in node.args]
        parts = list(zip(node.args, pieces, strict=True))
        first = pieces[0].type if pieces else OTHER
        if first.is_array and len(pieces) == 1 and not node.keywords and name not in self.names:
            if name in ("float", "int", "bool"):
                self.given[node] = name
                return self.splice(node, parts, Typed("number", name))
            if name.startswith("math."):
                # Of a number of NumPy's and of a tensor without dimensions Python makes its own.
                whole = name in ("math.floor", "math.ceil", "math.trunc")
                return self.splice(node, parts, Typed("number", "int" if whole else "float"))
            if name == "len":
                return self.splice(node, parts, SIZE)
            if name == "reversed":
                return self._turned(first, pieces[0], node)
            if name in ("list", "tuple") and self._is_of_sizes_to_split(node):
                return sizes_listed(pieces[0])
            if name == "abs":
                return self.splice(node, parts, replace(first, dtype=real_of(first.dtype), ascends=False))
        if name == "len":
            return self.splice(node, parts, SIZE)
        if name == "isinstance" and first.is_array and len(node.args) > 1:
            return self._asked_for_type(node, parts)
        if name in ("float", "int") and not first.holds_arrays:
            return self.splice(node, parts, Typed("number", name))
        if name in ("max", "min", "abs", "round") and pieces and all(each.type.is_number for each in pieces):
            kinds = {each.type.dtype for each in pieces if each.type.what == "number"}
            if len(kinds) == 1 and all(each.type.what == "number" for each in pieces) and name != "round":
                return self.splice(node, parts, Typed("number", kinds.pop()))
        if name in ("max", "min") and len(pieces) > 1:
            if any(each.type.is_array for each in pieces):
                return self._extreme(node, [(one, self.unheld(one, piece)) for one, piece in parts])
            if any(each.type.is_held for each in pieces):
                origins: frozenset[object] = frozenset().union(*(each.type.made_by for each in pieces))
                return self.splice(node, parts, Typed("held", rank=0, origins=origins))
        if name == "range":
            numbers = [each.type.value for each in pieces]
            runs = all(isinstance(each, int) for each in numbers) and len(range(*numbers)) > 0  # type: ignore[call-overload]
            return self.splice(node, parts, Typed("list", items=(INT,), grows=True, value=runs or None))
        if (
            name in ("reversed", "list", "tuple")
            and len(pieces) == 1
            and first.what == "list"
            and first.grows
        ):
            return self.splice(node, parts, first)
        if name in ("enumerate", "zip") and not node.keywords and pieces:
            elements = [self.element(*each) for each in parts]
            items = (INT, *elements) if name == "enumerate" else tuple(elements)
            if any(each.holds_arrays or each.is_held for each in elements):
                return self.splice(
                    node, parts, Typed("list", items=(Typed("tuple", items=items),), grows=True)
                )
        return self._generic(node)

    def _is_of_sizes_to_split(self, node: ast.Call) -> bool:
        """Whether `node` is the sizes of `torch.split(x, tuple(sizes))` or `x.split(list(sizes))`."""
        call = self.source.parents[node]
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        name = self.draft.qualified(call.func)
        place = 1 if name.startswith("torch.") else 0
        called = call.func.attr in ("split", "split_with_sizes") and not name.startswith("numpy.")
        return called and call.args[place : place + 1] == [node]

    def _turned(self, kind: Typed, given: Piece, node: ast.Call) -> Piece:
        """The rows of an array from the last to the first."""
        if self.copies and not self._only_read(node):
            raise RefusedUnlike("Python goes through rows of an array that is written to")
        return Piece(f"{given.closed}.flip(0)", replace(kind, ascends=False))

    def _only_read(self, node: ast.Call) -> bool:
        """Whether a loop computes with the rows that it goes through, and nothing is written from there on."""
        loop, function = self.source.parents[node], self.source.enclosing_function(node)
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or function is None:
            return False
        rows = [
            self.source.parents[each]
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == loop.target.id and isinstance(each.ctx, ast.Load)
        ]
        later = [
            each
            for each in ast.walk(function)
            if isinstance(each, (ast.stmt, ast.expr)) and self.source.start(each) >= self.source.start(loop)
        ]
        computes = all(isinstance(each, (ast.Subscript, ast.BinOp, ast.Compare)) for each in rows)
        return computes and not writes(later)

    def _asked_for_type(self, node: ast.Call, parts: list[tuple[ast.expr, Piece]]) -> Piece:
        """`isinstance(a, np.ndarray)`, which is asked of the tensor then."""
        if self.draft.qualified(node.args[1]) != "numpy.ndarray":
            raise Refused(f"`{self.source.of(node)}` asks which type an array is of")
        asked = Piece(f"{self.torch}.Tensor", OTHER)
        return self.splice(node, [parts[0], (node.args[1], asked)], Typed("number", "bool"))

    def _extreme(self, node: ast.Call, parts: list[tuple[ast.expr, Piece]]) -> Piece:
        """Python's `max` or `min` of numbers of NumPy's, which compares tensors as well."""
        kinds = [piece.type for _, piece in parts]
        held = [each for each in kinds if each.is_array]
        alike = {each.dtype for each in held}
        numbers = [each for each in kinds if not each.is_array]
        families = {"int": {"int"}, "float": {"int", "float"}}.get(family(held[0].dtype), set())
        if node.keywords or len(alike) > 1 or any(each.rank for each in held):
            raise Refused(
                f"`{self.source.of(node)}` compares arrays that are not known to be numbers of one dtype"
            )
        parent = self.source.parents.get(node)
        divides = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)
        if divides and held[0].dtype in ("int32", "int64") and {each.dtype for each in numbers} == {"float"}:
            # Whichever it is, NumPy divides whole numbers by it in double precision.
            return self.splice(node, parts, replace(array("float64", 0), or_number=True))
        if any(each.what != "number" or each.dtype not in families for each in numbers):
            raise RefusedUnlike(f"`{self.source.of(node)}` gives one of several dtypes")
        either = bool(numbers) or any(each.or_number for each in held)
        if either and family(held[0].dtype) != "float" and held[0].dtype != "int64":
            raise RefusedUnlike(f"`{self.source.of(node)}` gives a number of NumPy's or one of Python's")
        return self.splice(node, parts, replace(array(held[0].dtype, 0), or_number=either))


def _root_of(node: ast.expr) -> str | None:
    """The name that `node` is made of by methods, attributes and indices."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) and node.id != "self" else None


def _of_numbers(name: str, kinds: list[Typed]) -> Typed:
    """What a function of NumPy gives that is given no array: a number of NumPy's, whose dtype counts."""
    first = kinds[0] if kinds else OTHER
    dtype = DTYPES.get(f"np.{name}")
    if dtype is not None and first.is_number:
        return Typed("constant", dtype)
    if name == "prod" and first.what in ("shape", "tuple"):
        return Typed("constant", "int64")
    if len(kinds) == 1 and first.is_number and name in FUNCTIONS:
        if array_functions.is_of_floats(name):
            if first.what == "constant":
                return Typed("constant", floating(first.dtype))
            return Typed("constant", "float64")
        if name in ("ceil", "floor", "rint", "abs", "square") and first.dtype in ("int", "float"):
            return Typed("constant", "int64" if first.dtype == "int" else "float64")
    return OTHER
