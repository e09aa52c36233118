"""Kinds: what an expression of the code at hand gives, as far as a rewrite must know it.

The interpreter's values say what names are before a place; from there this room reads the expressions of a
branch or loop: is it a tensor, whose memory may it share, of what dtype and rank.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.machine import Cancelled
from exportlens.inference.names import external
from exportlens.inference.values import (
    ClassValue,
    Const,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Tensor,
    TensorScalar,
    Value,
)
from exportlens.rewriting.call_kinds import of_call
from exportlens.rewriting.context import Elsewhere, never, nowhere
from exportlens.rewriting.iterated import cut
from exportlens.rewriting.kind import (
    LOCAL,
    UNKNOWN_KIND,
    Kind,
    binary_dtype,
    binary_rank,
    element_of,
    length_from_data,
    merged,
    merged_names,
    numbers,
    of_value,
    one_of,
    returned,
    union,
)
from exportlens.rewriting.names import dotted
from exportlens.source.document import Chunk
from exportlens.source.walking import children, walk


def _walruses(node: ast.stmt) -> tuple[ast.NamedExpr, ...]:
    """The `:=` in the expressions of `node` itself; kept on the node, as it is followed many times and never changes."""
    known: tuple[ast.NamedExpr, ...] | None = getattr(node, "walruses", None)
    if known is None:
        known = tuple(
            each
            for child in children(node)
            if isinstance(child, ast.expr)
            for each in walk(child)
            if isinstance(each, ast.NamedExpr)
        )
        node.walruses = known  # type: ignore[attr-defined]
    return known


# Properties that turn the order of dimensions round.
_TRANSPOSED = frozenset({"T", "mT", "H", "mH"})


# A module that holds modules that hold modules is followed no further.
_DEEPEST = 4


class Kinds:
    """Reads expressions in the light of `names` (kinds of local names now) and `modules` (local name ->
    qualified name)."""

    def __init__(self, names: Mapping[str, Kind], modules: Mapping[str, str]) -> None:
        self.names = dict(names)
        self.modules = modules
        # What the interpreter knows at the place of the rewrite, for targets of loops around it.
        self.told: Mapping[str, Kind] = {}
        # What functions of the file give, by the last name of what is called.
        self.results: Mapping[str, Kind] = {}
        # Functions of the file and methods of the class, by how they are called: `helper`, `self.step`.
        self.functions: Mapping[str, ast.FunctionDef] = {}
        # What they were found to give, by the function and what it is given: shared by all copies.
        self.answers: dict[tuple[object, ...], tuple[Kind, tuple[str, ...]]] = {}
        # Functions that the statements followed so far have defined.
        self.arms: dict[str, ast.FunctionDef] = {}
        # The other chunks of the file, for what calls the function at hand.
        self.around: Iterable[Chunk] = ()
        # And those of other files.
        self.elsewhere: Elsewhere = nowhere
        self.cancelled = never
        # The arguments that are taken for tensors without evidence: what is written must do for numbers of Python, too.
        self.supposed: Collection[str] = ()
        # In how many functions that were followed for what they give these are.
        self.depth = 0

    @classmethod
    def from_values(cls, variables: Mapping[str, Value], modules: Mapping[str, str]) -> Kinds:
        return cls({name: of_value(value, name) for name, value in variables.items()}, modules)

    def copy(self) -> Kinds:
        copied = Kinds(self.names, self.modules)
        copied.told, copied.results, copied.around = self.told, self.results, self.around
        copied.elsewhere, copied.cancelled = self.elsewhere, self.cancelled
        copied.functions, copied.answers, copied.arms = self.functions, self.answers, dict(self.arms)
        copied.depth, copied.supposed = self.depth, self.supposed
        return copied

    def inside_of(self, function: ast.FunctionDef) -> Kinds:
        """The kinds with which `function` is followed for what it gives, and does not call itself."""
        inside = Kinds({}, self.modules)
        inside.cancelled, inside.answers, inside.depth = self.cancelled, self.answers, self.depth + 1
        inside.around = self.around if inside.depth < _DEEPEST else ()
        inside.functions = {name: each for name, each in self.functions.items() if each is not function}
        return inside

    def returns(self, statements: list[ast.stmt], found: list[Kind]) -> None:
        """Follow `statements`, the body of a function, and add the kinds of what they return to `found`."""
        for node in statements:
            if isinstance(node, ast.Return):
                found.append(UNKNOWN_KIND if node.value is None else self.of(node.value))
            elif isinstance(node, ast.If):
                for arm in (node.body, node.orelse):
                    self.copy().returns(arm, found)
            elif any(isinstance(each, ast.Return) for each in ast.walk(node)):
                found.append(UNKNOWN_KIND)
            self._run(node)

    def qualified(self, node: ast.expr) -> str | None:
        """ "torch.nn.functional.relu" for `F.relu`; None where the name is local or not imported."""
        name = dotted(node)
        if name is None:
            return None
        head, _, rest = name.partition(".")
        if head in self.names or head not in self.modules:
            return None
        return knowledge.canonical_name(f"{self.modules[head]}.{rest}" if rest else self.modules[head])

    def of(self, node: ast.expr) -> Kind:
        method = getattr(self, f"_of_{type(node).__name__}", None)
        kind: Kind = method(node) if method else UNKNOWN_KIND
        return kind

    def in_comprehension(self, node: ast.GeneratorExp | ast.ListComp) -> Kinds:
        """The kinds inside of a comprehension."""
        inside = self.copy()
        for each in node.generators:
            inside._assign_iteration(ast.For(target=each.target, iter=each.iter, body=[], orelse=[]))
        return inside

    def has_elements(self, node: ast.expr) -> bool:
        """Whether what `node` gives to iterate over certainly is not empty."""
        if isinstance(node, ast.Call) and dotted(node.func) in ("range", "enumerate", "zip", "reversed"):
            if dotted(node.func) != "range":
                return bool(node.args) and all(self.has_elements(each) for each in node.args)
            known = self.of(node.args[0]).value if len(node.args) == 1 else None
            return isinstance(known, Const) and known.value > 0
        kind = self.of(node)
        if isinstance(kind.value, Instance):
            modules = kind.value.attributes.get("__items__")
            return isinstance(modules, Sequence) and bool(modules.items)
        if kind.what == "container":
            return bool(kind.items) or kind.type == "tensors"
        unbacked = isinstance(kind.value, Tensor) and kind.value.unbacked
        return kind.what == "tensor" and kind.roots is not None and not unbacked

    # --- statements -----------------------------------------------------------------------------------------

    def run(self, statements: list[ast.stmt]) -> None:
        """Follow the assignments of `statements`; what differs between ways is merged. Raises Cancelled."""
        for node in statements:
            self._run(node)

    def _run(self, node: ast.stmt) -> None:
        if self.cancelled():
            raise Cancelled
        self.bind_walruses(node)
        if isinstance(node, ast.Assign):
            kind = self.of(node.value)
            for target in node.targets:
                self.assign(target, kind)
                # In `a = b = x * 2` the names are of the same memory.
                kind = self.names[target.id] if isinstance(target, ast.Name) else kind
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.of(node.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            before = self.of(ast.Name(node.target.id, ast.Load()))
            after = self.of(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))
            if before.what == "tensor":
                # The same memory, and yet another value of the graph: beside its other names it counts as a view.
                after = replace(before)
            self.names[node.target.id] = after
        elif isinstance(node, ast.Expr):
            self._put_in(node.value)
        elif isinstance(node, ast.If):
            self._run_arms([node.body, node.orelse])
        elif isinstance(node, (ast.For, ast.While)):
            if isinstance(node, ast.For):
                self._assign_iteration(node)
            entry = dict(self.names)
            self.run(node.body)
            self.run(node.body)
            self._merge_with(entry)
            self.run(node.orelse)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, UNKNOWN_KIND)
            self.run(node.body)
        elif isinstance(node, ast.Try):
            self._run_arms([[*node.body, *node.orelse], *(handler.body for handler in node.handlers)])
            self.run(node.finalbody)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.names[node.name] = Kind("object")
            if isinstance(node, ast.FunctionDef):
                self.arms[node.name] = node

    def _put_in(self, node: ast.expr) -> None:
        """`values.append(t)`: the container holds memory of `t` from now on."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return
        owner = node.func.value
        if isinstance(owner, ast.Name) and node.func.attr in ("append", "extend", "insert", "add", "update"):
            known = self.names.get(owner.id)
            if known is not None and known.what == "container":
                parts = [self.of(each) for each in node.args]
                self.names[owner.id] = replace(known, items=None, keys=(), roots=union([known, *parts]))

    def bind_walruses(self, node: ast.stmt) -> None:
        """Take in the names that the expressions of `node` itself bind with `:=`."""
        for each in _walruses(node):
            self.assign(each.target, self.of(each.value))

    def mark(self) -> int:
        """A number below those of all memory that will be made from now on."""
        return next(numbers)

    def _assign_iteration(self, node: ast.For) -> None:
        self._assign_element(node)
        for each in walk(node.target):
            known = self.names.get(each.id) if isinstance(each, ast.Name) else None
            told = self.told.get(each.id) if isinstance(each, ast.Name) else None
            in_part = each is not node.target and known is not None and known.what == "unknown"
            if in_part and isinstance(each, ast.Name) and told is not None and told.what == "object":
                self.names[each.id] = told
                continue
            if isinstance(each, ast.Name) and known is not None and known.what == "unknown":
                # What is iterated over was there before, as a module's parameters are: no memory of its own.
                self.names[each.id] = replace(known, roots=frozenset({f"?{next(numbers)}"}))

    def _assign_element(self, node: ast.For) -> None:
        iterable = self.of(node.iter)
        if isinstance(node.iter, ast.Call) and dotted(node.iter.func) in ("range", "enumerate"):
            if dotted(node.iter.func) == "range":
                return self.assign(node.target, Kind("number", type="int"))
            inner = self.of(node.iter.args[0]) if node.iter.args else UNKNOWN_KIND
            return self.assign(
                node.target, Kind("container", items=(Kind("number", type="int"), element_of(inner)))
            )
        element = element_of(iterable)
        if element.what == "unknown" and isinstance(node.target, ast.Name):
            told = self.told.get(node.target.id)
            if told is not None and told.what == "object":
                element = told
        return self.assign(node.target, element)

    def _run_arms(self, arms: list[list[ast.stmt]]) -> None:
        from exportlens.rewriting.liveness import leaves

        ends = []
        for arm in arms:
            way = self.copy()
            way.run(arm)
            if not leaves(arm):
                ends.append(way.names)
        if ends:
            self.names = merged_names(ends)

    def _merge_with(self, entry: dict[str, Kind]) -> None:
        for name, kind in entry.items():
            now = self.names.get(name, kind)
            if now != kind:
                self.names[name] = merged([now, kind])

    def assign(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            if (kind.what == "tensor" and kind.fresh) or (kind.what == "unknown" and kind.roots is None):
                # Memory of its own, but from now on shared with whatever is made from this name.
                kind = replace(kind, roots=frozenset({f"{LOCAL}{next(numbers)}"}))
            self.names[target.id] = kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = (
                kind.items
                if kind.what == "container" and kind.items is not None and len(kind.items) == len(target.elts)
                else None
            )
            if known is None and kind.what == "tensor" and kind.fresh:
                # The rows of one tensor share its memory.
                kind = replace(kind, roots=frozenset({f"{LOCAL}{next(numbers)}"}))
            for index, each in enumerate(target.elts):
                if isinstance(each, ast.Starred):
                    self.assign(each.value, UNKNOWN_KIND)
                elif known is not None:
                    self.assign(each, known[index])
                else:
                    self.assign(each, element_of(kind))

    # --- expressions ----------------------------------------------------------------------------------------

    def _of_Name(self, node: ast.Name) -> Kind:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.modules:
            return Kind("object", value=Named(self.modules[node.id]))
        return UNKNOWN_KIND

    def _of_Constant(self, node: ast.Constant) -> Kind:
        return replace(of_value(Const(node.value), ""), roots=frozenset())

    def _of_JoinedStr(self, node: ast.JoinedStr) -> Kind:
        return Kind("static", type="str")

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        kind = self.of(node.value)
        self.assign(node.target, kind)
        return kind

    def is_enumeration(self, name: str, of: str = "") -> bool:
        """Whether `name` is a class of the file whose attributes are members of an enumeration, `of` "Int" where they are ints."""
        return name not in self.names and any(
            isinstance(each, ast.ClassDef)
            and each.name == name
            and any(ast.unparse(base).endswith((f"{of}Enum", f"{of}Flag")) for base in each.bases)
            for chunk in self.around
            for each in chunk.body
        )

    def _of_Attribute(self, node: ast.Attribute) -> Kind:
        name = self.qualified(node)
        if name is not None:
            constant = knowledge.lookup_constant(name)
            if constant is not None and isinstance(constant.value, (int, float)):
                return Kind("number", type=type(constant.value).__name__)
            known = external(name)
            if isinstance(known, Const) and isinstance(known.value, float):
                return of_value(known, "")
            return Kind("static", value=Named(name))
        owner = self.of(node.value)
        if owner.what == "tensor":
            return self._of_property(node.attr, owner)
        path = dotted(node) or ""
        if isinstance(owner.value, Instance) and node.attr in owner.value.attributes:
            return of_value(owner.value.attributes[node.attr], path)
        if path in self.names:
            return self.names[path]
        if isinstance(node.value, ast.Name) and self.is_enumeration(node.value.id):
            return Kind("object", roots=frozenset({path}))
        if (
            node.attr in _MODULE_TENSORS
            and isinstance(owner.value, Instance)
            and isinstance(owner.value.cls, Named)
            and owner.value.cls.name.startswith("torch.nn.")
        ):
            origin = "parameter" if node.attr in ("weight", "bias") else "buffer"
            return Kind("tensor", roots=frozenset({path}) if path else None, value=Tensor(origin))
        if (
            owner.what == "container"
            and isinstance(owner.value, Sequence)
            and node.attr in owner.value.fields
            and owner.items
        ):
            return owner.items[owner.value.fields.index(node.attr)]
        if owner.what == "container" and node.attr in ("values", "indices"):
            return replace(
                element_of(owner), dtype="int64" if node.attr == "indices" else element_of(owner).dtype
            )
        return replace(UNKNOWN_KIND, roots=frozenset({path}) if path else None)

    def _of_property(self, attr: str, owner: Kind) -> Kind:
        known = knowledge.tensor_property(attr)
        if known is None:
            return UNKNOWN_KIND
        if attr == "shape" and length_from_data(owner):
            return Kind("static", type="size", value=owner.value)
        if known.returns.kind == "tensor":
            return Kind(
                "tensor",
                owner.dtype,
                owner.rank,
                owner.roots if known.alias else frozenset(),
                moved=owner.moved if attr not in _TRANSPOSED else not owner.moved or owner.rank != 2,
                parted=known.alias and owner.parted,
                later=known.alias and owner.later,
            )
        return returned(known.returns, Kind("static"), None, None)

    def _of_Subscript(self, node: ast.Subscript) -> Kind:
        owner = self.of(node.value)
        if owner.what == "tensor":
            chosen = self.of(node.slice)
            masked = chosen.dtype == "bool"
            # An int tensor of no dimensions selects as a number does, which gives a view.
            taken = (chosen.dtype or "").startswith("int") and bool(chosen.rank)
            return Kind(
                "tensor",
                owner.dtype,
                self._rank_after_index(owner.rank, node.slice),
                frozenset() if masked or taken else owner.roots,
                value=Tensor(unbacked=True)
                if masked or length_from_data(chosen) or self._is_cut_by_data(node.slice)
                else None,
                moved=owner.moved and not (masked or taken),
                parted=not (masked or taken) and (owner.parted or leaves_gaps(node.slice)),
                later=not (masked or taken) and (owner.later or _begins_later(node.slice)),
            )
        if owner.what == "container":
            if (
                isinstance(node.slice, ast.Constant)
                and node.slice.value in owner.keys
                and owner.items is not None
            ):
                return owner.items[owner.keys.index(node.slice.value)]
            if isinstance(owner.value, Mapping_) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
                known = owner.value.items.get(self._key(node.slice))
                return UNKNOWN_KIND if known is None else replace(of_value(known, ""), roots=owner.roots)
            if (
                owner.items is not None
                and not owner.keys
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, int)
            ):
                index = node.slice.value
                if -len(owner.items) <= index < len(owner.items):
                    return owner.items[index]
            if isinstance(node.slice, ast.Slice):
                part = node.slice
                bounds = [
                    None if each is None else self.of(each) for each in (part.lower, part.upper, part.step)
                ]
                return replace(owner, items=cut(owner, bounds))
            return element_of(owner)
        if owner.what == "size" or (owner.what == "static" and owner.type == "size"):
            first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
            return Kind("scalar" if first and isinstance(owner.value, Tensor) else "size", type="int")
        if isinstance(owner.value, Instance):
            return _module_of(owner.value, self._key(node.slice), self.of(node.slice).from_data)
        # A part of something unknown may share its memory.
        return replace(UNKNOWN_KIND, roots=owner.roots) if owner.what == "unknown" else UNKNOWN_KIND

    def _key(self, node: ast.expr) -> object:
        """The text or number that `node` certainly is; None where that is not known."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            below = self._key(node.operand)
            return -below if isinstance(below, int) else None
        value = self.of(node).value
        return value.value if isinstance(value, Const) else None

    def _is_cut_by_data(self, index: ast.expr) -> bool:
        """Whether the first dimension is cut at a number from data: `x[:n]`."""
        first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
        bounds = [first.lower, first.upper] if isinstance(first, ast.Slice) else []
        return any(each is not None and self.of(each).from_data for each in bounds)

    def _rank_after_index(self, rank: int | None, index: ast.expr) -> int | None:
        if rank is None:
            return None
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if len(parts) == 1 and (only := self.of(parts[0])).what == "tensor":
            whole = (only.dtype or "").startswith("int")
            return rank + only.rank - 1 if whole and only.rank is not None else None
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                rank += 1
            elif isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
                continue
            elif self.of(part).what in ("number", "size") or isinstance(part, ast.UnaryOp):
                rank -= 1
            else:
                return None
        return rank if rank >= 0 else None

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> Kind:
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return Kind("container", roots=None)
        items = tuple(self.of(each) for each in node.elts)
        return Kind("container", roots=union(list(items)), items=items)

    _of_List = _of_Tuple

    def _of_Dict(self, node: ast.Dict) -> Kind:
        items = tuple(self.of(each) for each in node.values)
        keys = tuple(
            key.value
            for key in node.keys
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int))
        )
        known = len(keys) == len(items) > 0
        return Kind(
            "container", roots=union(list(items)), items=items if known else None, keys=keys if known else ()
        )

    def _of_ListComp(self, node: ast.ListComp) -> Kind:
        element = self.in_comprehension(node).of(node.elt)
        plain = len(node.generators) == 1 and not node.generators[0].ifs
        if element.what == "tensor" and plain and self.has_elements(node.generators[0].iter):
            return Kind(
                "container", roots=element.roots, type="tensors", parted=element.parted, later=element.later
            )
        return Kind("container", roots=None)

    def _of_GeneratorExp(self, node: ast.GeneratorExp) -> Kind:
        if len(node.generators) != 1 or node.generators[0].ifs:
            return UNKNOWN_KIND
        return self.each_of(node.generators[0].target, node.elt, self.of(node.generators[0].iter))

    def each_of(self, target: ast.expr, element: ast.expr, iterated: Kind) -> Kind:
        """What computing `element` gives for each part of `iterated`, which has the name `target` there: tensors that share
        memory where the parts do."""
        parts = iterated.items if iterated.what == "container" and not iterated.keys else None
        found = []
        for part in [element_of(iterated)] if parts is None else parts:
            inside = self.copy()
            inside.assign(target, part)
            found.append(inside.of(element))
        if not found or any(each.what != "tensor" for each in found):
            return UNKNOWN_KIND
        if parts is None:
            return Kind("container", roots=found[0].roots, type=iterated.type)
        return Kind("container", roots=union(found), items=tuple(found))

    def _of_BinOp(self, node: ast.BinOp) -> Kind:
        left, right = self.of(node.left), self.of(node.right)
        if "tensor" in (left.what, right.what):
            moved = not isinstance(node.op, ast.MatMult) and (left.moved or right.moved)
            rank = binary_rank(node.op, left, right)
            rows = not isinstance(node.op, ast.MatMult) and any(map(length_from_data, (left, right)))
            value = Tensor(unbacked=True) if rows else None
            return Kind("tensor", binary_dtype(node.op, left, right), rank, value=value, moved=moved)
        if "unknown" in (left.what, right.what) or "container" in (left.what, right.what):
            return Kind("unknown", roots=union([left, right]))
        kind = "float" if "float" in (left.type, right.type) or isinstance(node.op, ast.Div) else "int"
        for what in ("scalar", "size", "number"):
            if what in (left.what, right.what):
                return Kind(what, type=kind)
        return Kind("static")

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        kind = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return (
                Kind("scalar" if kind.from_data else "number", type="bool")
                if kind.what != "unknown"
                else UNKNOWN_KIND
            )
        if kind.what == "tensor":
            return Kind("tensor", kind.dtype, kind.rank, moved=kind.moved)
        if (
            kind.what == "number"
            and isinstance(kind.value, Const)
            and isinstance(node.op, (ast.USub, ast.UAdd))
        ):
            number = kind.value.value
            return replace(kind, value=Const(-number if isinstance(node.op, ast.USub) else number))
        return kind

    def _of_Compare(self, node: ast.Compare) -> Kind:
        kinds = [self.of(each) for each in (node.left, *node.comparators)]
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) or compares_with_none(node):
            return Kind("number", type="bool")
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if any(kind.from_data for kind in kinds) or _holds_numbers_of_data(kinds[1]):
                return Kind("scalar", type="bool")
            return Kind("number", type="bool") if kinds[1].what != "unknown" else UNKNOWN_KIND
        if any(kind.what == "tensor" for kind in kinds):
            ranks = [kind.rank if kind.what == "tensor" else 0 for kind in kinds]
            return Kind(
                "tensor", "bool", None if None in ranks else max(rank for rank in ranks if rank is not None)
            )
        if any(kind.what == "scalar" for kind in kinds):
            return Kind("scalar", type="bool")
        if any(kind.what == "unknown" for kind in kinds):
            return UNKNOWN_KIND
        return Kind("number", type="bool")

    def _of_BoolOp(self, node: ast.BoolOp) -> Kind:
        kinds = [self.of(each) for each in node.values]
        if any(kind.from_data for kind in kinds):
            return (
                Kind("scalar", type="bool") if all(kind.what != "unknown" for kind in kinds) else UNKNOWN_KIND
            )
        return UNKNOWN_KIND if any(kind.what == "unknown" for kind in kinds) else Kind("number", type="bool")

    def _of_IfExp(self, node: ast.IfExp) -> Kind:
        return merged([self.of(node.body), self.of(node.orelse)])

    def _of_Call(self, node: ast.Call) -> Kind:
        return of_call(self, node)


def leaves_gaps(index: ast.expr) -> bool:
    """Whether what `index` takes of a tensor may have gaps between its elements: it is no stretch of the first dimension."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    whole = [isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step) for each in parts]
    added = [isinstance(each, ast.Constant) and each.value is None for each in parts]
    first = 0
    while first < len(parts) and (added[first] or not _leaves_dimension(parts[first])):
        first += 1
    stretch = parts[first] if first < len(parts) else None
    if isinstance(stretch, ast.Slice):
        if stretch.step is not None:
            return True
        first += 1
    return any(not (whole[at] or added[at] or _is_ellipsis(parts[at])) for at in range(first, len(parts)))


def _holds_numbers_of_data(kind: Kind) -> bool:
    """Whether `kind` is a list of numbers that were read out of a tensor."""
    value = kind.value
    return (
        kind.what == "container" and isinstance(value, Sequence) and isinstance(value.element, TensorScalar)
    )


def _begins_later(index: ast.expr) -> bool:
    """Whether what `index` takes of a tensor may begin behind its first element."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    firsts = [each.lower if isinstance(each, ast.Slice) else each for each in parts]
    at_once = [
        each is None or (isinstance(each, ast.Constant) and not each.value) or _is_ellipsis(each)
        for each in firsts
    ]
    return not all(at_once)


def _leaves_dimension(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) or _is_ellipsis(part)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def compares_with_none(node: ast.Compare) -> bool:
    """Whether `node` is `t == None` or `t != None`, of which a tensor makes a bool of Python."""
    sides = [node.left, *node.comparators]
    return isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and any(
        isinstance(each, ast.Constant) and each.value is None for each in sides[:2]
    )


# What the layers of torch.nn call their tensors.
_MODULE_TENSORS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def _module_of(modules: Instance, key: object, by_data: bool) -> Kind:
    """The module that `modules`, a list or a dict of them, holds for `key`; where that is not known one of them, with what it
    is where all are alike as far as their results go. Those of the file that are chosen `by_data` become ways of a branch."""
    held = modules.attributes.get("__items__")
    if isinstance(held, Mapping_):
        named = held.items
        items: Iterable[Value] = [named[key]] if isinstance(key, str) and key in named else named.values()
    else:
        items = held.items if isinstance(held, Sequence) and held.items else ()
    items = list(items)
    if isinstance(key, int) and -len(items) <= key < len(items):
        items = [items[key]]
    found = [each for each in items if isinstance(each, Instance)]
    if not found or len(found) != len(items):
        return UNKNOWN_KIND
    own = any(isinstance(each.cls, ClassValue) for each in found)
    return Kind("object", roots=None, value=None if by_data and own else one_of(found))
