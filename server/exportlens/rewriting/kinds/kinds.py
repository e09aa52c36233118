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
from exportlens.inference.told_ranks import by_test, by_unpacking
from exportlens.inference.values import Const, Instance, Named, Sequence, Tensor, TensorScalar, Value
from exportlens.rewriting.code.context import Elsewhere, never, nowhere
from exportlens.rewriting.code.liveness import exits, leaves
from exportlens.rewriting.code.names import dotted, walk_own
from exportlens.rewriting.kinds.attribute_kinds import of_attribute
from exportlens.rewriting.kinds.call_kinds import of_call
from exportlens.rewriting.kinds.index_kinds import of_subscript
from exportlens.rewriting.kinds.iterated import elements, of_same_keys
from exportlens.rewriting.kinds.kind import (
    FILLED,
    LOCAL,
    UNKNOWN_KIND,
    Kind,
    element_of,
    is_filled,
    joined_items,
    kept,
    merged,
    merged_names,
    numbers,
    of_value,
    union,
    with_item,
)
from exportlens.rewriting.kinds.operator_kinds import of_arithmetic, of_comparison, of_logic, of_sign
from exportlens.rewriting.kinds.untaken import untaken
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
        # How the function calls itself that is followed for what it gives, and what these calls give.
        self.again: Collection[str] = ()
        self.itself = UNKNOWN_KIND
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
        # The constants of the file that have a name of their own.
        self.constants: Mapping[str, Kind] = {}
        # The calls of F.pad in functions that the fix is to write with torch.cat (see `padded_rows`); None where it may not.
        self.padded: list[tuple[ast.FunctionDef, ast.Call]] | None = None
        # The views in functions that the fix is to copy (see `picked_in_helpers`); None where it may not.
        self.views: list[tuple[ast.FunctionDef, ast.expr]] | None = None
        # Whether all that runs before is followed, so that an `if` on what is None there takes one way: not in rounds of loops.
        self.settled = False
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
        copied.padded, copied.again, copied.itself = self.padded, self.again, self.itself
        copied.views, copied.settled = self.views, self.settled
        copied.depth, copied.supposed, copied.constants = self.depth, self.supposed, self.constants
        return copied

    def inside_of(self, function: ast.FunctionDef) -> Kinds:
        """The kinds with which `function` is followed for what it gives, and does not call itself."""
        inside = Kinds({}, self.modules)
        inside.cancelled, inside.answers, inside.depth = self.cancelled, self.answers, self.depth + 1
        inside.constants = self.constants
        inside.around = self.around if inside.depth < _DEEPEST else ()
        inside.functions = {name: each for name, each in self.functions.items() if each is not function}
        inside.again = frozenset(self.functions).difference(inside.functions)
        return inside

    def inside_of_own(self, function: ast.FunctionDef) -> Kinds:
        """As `inside_of`, for a function that is called on the same `self`, if there is one."""
        inside = self.inside_of(function)
        if "self" in self.names:
            inside.names["self"] = self.names["self"]
        return inside

    def returns(self, statements: list[ast.stmt], found: list[Kind]) -> None:
        """Follow `statements`, the body of a function, and add the kinds of what they return to `found`."""
        for node in statements:
            if isinstance(node, ast.Return):
                # What a function gives that calls itself is what its other ways give.
                if not (isinstance(node.value, ast.Call) and dotted(node.value.func) in self.again):
                    found.append(UNKNOWN_KIND if node.value is None else self.of(node.value))
            elif isinstance(node, ast.If):
                for arm in (node.body, node.orelse):
                    self.copy().returns(arm, found)
            elif any(isinstance(each, ast.Return) for each in walk_own(node)):
                self._returns_within(node, found)
            self._run(node)

    def _returns_within(self, node: ast.stmt, found: list[Kind]) -> None:
        """As `returns`, for those inside of `node`, a loop or another block."""
        inside = self.copy()
        if isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    inside.assign(item.optional_vars, UNKNOWN_KIND)
            inside.returns(node.body, found)
        elif isinstance(node, (ast.For, ast.While)):
            # Of any round: what the rounds before it may have left is merged.
            inside._run(node)
            if isinstance(node, ast.For):
                inside._assign_iteration(node)
            inside.copy().returns(node.body, found)
            inside.returns(node.orelse, found)
        else:
            found.append(UNKNOWN_KIND)

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
            return bool(kind.items) or kind.type in ("tensors", FILLED)
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
            self.tell_ranks([by_unpacking(node.targets, node.value)])
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
        elif isinstance(node, ast.Delete):
            for each in node.targets:
                self._write_item(each, None)
        elif isinstance(node, ast.Assert):
            self.tell_ranks(by_test(node.test, True))
        elif isinstance(node, ast.If):
            self._run_arms([node.body, node.orelse], node.test)
        elif isinstance(node, (ast.For, ast.While)):
            if isinstance(node, ast.For):
                self._assign_iteration(node)
            self._run_rounds(node)
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

    def _run_rounds(self, node: ast.For | ast.While) -> None:
        entry = dict(self.names)
        certain = isinstance(node, ast.For) and exits(node.body) == {"falls"} and self.has_elements(node.iter)
        # A later round may take the arm that the first does not.
        outside, self.settled = self.settled, False
        self.run(node.body)
        self.run(node.body)
        self.settled = outside
        # What each round puts something into has something behind them.
        filled = {name: each.type for name, each in self.names.items() if certain and is_filled(each)}
        self._merge_with(entry)
        for name, type_ in filled.items():
            self.names[name] = replace(self.names[name], type=type_)

    def _put_in(self, node: ast.expr) -> None:
        """`values.append(t)`: the container holds memory of `t` from now on."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return
        owner = node.func.value
        if node.func.attr in ("pop", "popitem", "clear", "remove", "discard"):
            self._write_item(ast.Subscript(owner, ast.Constant(None)), None)
        if isinstance(owner, ast.Name) and node.func.attr in ("append", "extend", "insert", "add", "update"):
            known = self.names.get(owner.id)
            if known is not None and known.what == "container":
                # What the list holds from now on has more than one name.
                parts = [kept(self.of(each)) for each in node.args]
                value = known.value
                if isinstance(value, Sequence) and not known.keys:
                    plain = node.func.attr == "append"
                    value = Sequence(value.kind, None, joined_items([known], parts) if plain else None)
                roots = union([known, *parts])
                filled = known.type
                if isinstance(value, Sequence) and not known.keys and node.func.attr == "append":
                    filled = "tensors" if isinstance(value.element, Tensor) else FILLED
                self.names[owner.id] = replace(
                    known, items=None, keys=(), roots=roots, value=value, type=filled
                )

    def _write_item(self, target: ast.expr, kind: Kind | None) -> None:
        """`values["a"] = t`: the dict holds memory of `t` from now on; None takes an item out."""
        if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
            return
        name, key = target.value.id, target.slice
        known = self.names.get(name)
        if known is not None and known.what == "container" and not known.keys and kind is not None:
            self.names[name] = with_item(known, key, kind)
        if known is not None and kind is None and is_filled(known):
            self.names[name] = replace(known, type="")
        if known is None or not known.keys or known.items is None:
            return
        items = dict(zip(known.keys, known.items, strict=True))
        roots = known.roots if kind is None else union([known, kind])
        if kind is not None and isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
            items[key.value] = kind
            self.names[name] = replace(known, items=tuple(items.values()), keys=tuple(items), roots=roots)
        else:
            self.names[name] = replace(known, items=None, keys=(), value=None, roots=roots)

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
        element = self._element_of(node.iter)
        if element.what == "unknown" and isinstance(node.target, ast.Name):
            told = self.told.get(node.target.id)
            if told is not None and told.what == "object":
                element = told
        return self.assign(node.target, element)

    def _element_of(self, iterated: ast.expr) -> Kind:
        """What each round of a loop over `iterated` gets: a number and the rest of `enumerate`, one of each that `zip` is given."""
        called = dotted(iterated.func) if isinstance(iterated, ast.Call) else None
        if not isinstance(iterated, ast.Call) or called not in ("range", "enumerate", "zip"):
            return element_of(self.of(iterated))
        if called == "range":
            return Kind("number", type="int")
        if any(isinstance(each, ast.Starred) for each in iterated.args):
            return UNKNOWN_KIND
        given = iterated.args[:1] if called == "enumerate" else iterated.args
        parts = tuple(map(self._element_of, given)) or (UNKNOWN_KIND,)
        return Kind(
            "container", items=(Kind("number", type="int"), *parts) if called == "enumerate" else parts
        )

    def _run_arms(self, arms: list[list[ast.stmt]], test: ast.expr | None = None) -> None:
        ends = []
        idle = untaken(test, self.names) if self.settled else None
        for index, arm in enumerate(arms):
            way = self.copy()
            if test is not None:
                way.tell_ranks(by_test(test, index == 0))
            way.run(arm)
            if index != idle and not leaves(arm):
                ends.append(way.names)
        if ends:
            self.names = merged_names(ends)

    def tell_ranks(self, told: Iterable[tuple[str, int] | None]) -> None:
        """Let the names of tensors have the number of dimensions that was told of them."""
        for each in told:
            known = None if each is None else self.names.get(each[0])
            if each is not None and known is not None and known.what == "tensor" and known.rank is None:
                self.names[each[0]] = replace(known, rank=each[1])

    def _merge_with(self, entry: dict[str, Kind]) -> None:
        for name, kind in entry.items():
            now = self.names.get(name, kind)
            if now != kind:
                self.names[name] = merged([now, kind])

    def assign(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            if kind.what == "unknown" and kind.roots is None:
                kind = replace(kind, roots=frozenset({f"{LOCAL}{next(numbers)}"}))
            self.names[target.id] = kept(kind)
        elif isinstance(target, ast.Subscript):
            self._write_item(target, kind)
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
        return self.constants.get(node.id, UNKNOWN_KIND)

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
        return of_attribute(self, node)

    def _of_Subscript(self, node: ast.Subscript) -> Kind:
        return of_subscript(self, node)

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> Kind:
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return Kind("container", roots=None)
        items = tuple(self.of(each) for each in node.elts)
        value = Sequence("list" if isinstance(node, ast.List) else "tuple", None)
        return Kind("container", roots=union(list(items)), items=items, value=value)

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
        if element.what == "tensor" and plain:
            each = Sequence("list", None, Tensor(dtype=element.dtype, rank=element.rank))
            filled = "tensors" if self.has_elements(node.generators[0].iter) else ""
            return Kind(
                *("container", None, None, element.roots, filled, None, each),
                parted=element.parted,
                later=element.later,
            )
        if element.what == "scalar" and plain:
            return Kind("container", value=Sequence("list", None, TensorScalar(element.type)))
        return Kind("container", roots=None)

    def _of_DictComp(self, node: ast.DictComp) -> Kind:
        """Part by part where what it goes through is known so, as the `items()` of a dict that is written out."""
        generator = node.generators[0]
        parts = elements(self.of(generator.iter)) if len(node.generators) == 1 and not generator.ifs else None
        keys: list[str | int] = []
        found = []
        for part in parts or ():
            inside = self.copy()
            inside.assign(generator.target, part)
            key = inside.of(node.key).value
            if isinstance(key, Const) and type(key.value) in (str, int) and key.value not in keys:
                keys.append(key.value)
            found.append(inside.of(node.value))
        if parts is None and len(node.generators) == 1:
            return of_same_keys(node, self) or UNKNOWN_KIND
        if not found or len(keys) < len(found):
            return UNKNOWN_KIND
        return Kind("container", roots=union(found), items=tuple(found), keys=tuple(keys))

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
        return of_arithmetic(self, node)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        return of_sign(self, node)

    def _of_Compare(self, node: ast.Compare) -> Kind:
        return of_comparison(self, node)

    def _of_BoolOp(self, node: ast.BoolOp) -> Kind:
        return of_logic(self, node)

    def _of_IfExp(self, node: ast.IfExp) -> Kind:
        if isinstance(node.test, ast.Constant):
            return self.of(node.body if node.test.value else node.orelse)
        return merged([self.of(node.body), self.of(node.orelse)])

    def _of_Call(self, node: ast.Call) -> Kind:
        return of_call(self, node)
