"""Homes: on which device a value of a function is, and what made it there.

What torch makes of numbers without a `device=` is on the host; what is computed of an argument or of a parameter is where
those are. torch.cond, while_loop and torch.stack take tensors of one device, which eager's two ways through a branch never had
to be: a function is followed here to see which of them would meet one from elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.home import AGAIN, ELSEWHERE, NUMBER, Home, Names, computed, either
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.made_objects import arguments_of, called_class
from exportlens.source.walking import children, walk

# Functions of torch that make a tensor of numbers, on the default device where nothing else is said.
FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "full", "tensor", "as_tensor", "empty", "eye", "arange", "linspace")
)
_OF_GIVEN = frozenset({"torch.tensor", "torch.as_tensor"})
_DRAWN = ("torch.rand", "torch.normal", "torch.bernoulli", "torch.from_numpy", "torch.load")
# Of two tensors without dimensions these take one on a GPU and one of the host, but not the other way round, which all others of
# two tensors do (measured on torch 2.11, an H200).
_LOGICAL = frozenset({"torch.logical_and", "torch.logical_or", "torch.logical_xor"})
_JOINING = frozenset(
    f"torch.{name}" for name in ("stack", "cat", "concat", "concatenate", "hstack", "vstack", "dstack")
)
# What is made of a tensor of the host moves with the model.
_MOVED = frozenset(
    {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer"}
)
# What asks a tensor for numbers, or for what says nothing of where it is.
_NUMBERS = frozenset(
    [
        "item",
        "tolist",
        "size",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "stride",
        "element_size",
        "is_floating_point",
        "data_ptr",
    ]
)
_FACTS = frozenset({"shape", "ndim", "dtype", "layout", "requires_grad", "is_cuda", "itemsize", "nbytes"})
_TO_NUMBERS = frozenset({"len", "int", "float", "bool", "str", "range", "isinstance", "type", "id", "repr"})
_OF_ARGUMENTS = frozenset({"sum", "max", "min", "abs", "list", "tuple", "reversed", "sorted", "set", "iter"})
_PUT_IN = frozenset({"append", "extend", "insert", "update"})
_WRITES = frozenset({"add_", "sub_", "mul_", "div_"})
# A function that calls itself for its rounds is followed into the second.
_DEEPEST = 2


class Homes:
    """Follows `function`, whose names begin as `names`. `needs` are the paths of tensors whose device a call that makes a tensor
    has to give it, and `places` what is known where that stands. `is_tensor` says whether an attribute of `self` certainly is one."""

    def __init__(
        self, function: Function, names: Names, kinds: Kinds, is_tensor: Callable[[ast.expr], bool]
    ) -> None:
        self.kinds, self.is_tensor = kinds, is_tensor
        self.needs: dict[ast.Call, dict[str, None]] = {}
        self.places: dict[ast.Call, list[Names]] = {}
        # What the two arms of each torch.cond give, and what is known there.
        self.arms: dict[ast.Call, list[tuple[Home, Home, Names]]] = {}
        # Where what is read is, each time that it is.
        self.reads: dict[ast.expr, list[Home]] = {}
        self._active: list[ast.AST] = []
        self._found: list[list[Home]] = [[]]
        self._run(function.body, names)

    def _meet(self, homes: Sequence[Home]) -> Home:
        """Where values are that have to be on one device: what is made of numbers goes to the others."""
        homes = [each for each in homes if each is not AGAIN]
        first = homes[0] if homes else NUMBER
        if first.items is not None and all(_is_like(each, first) for each in homes):
            columns = zip(*(each.items or () for each in homes), strict=True)
            return replace(first, items=tuple(self._meet(column) for column in columns))
        if any(each.items is not None for each in homes):
            return either(each.flat for each in homes)
        home = either(homes)
        if not home.like:
            return home
        for call in home.made:
            self.needs.setdefault(call, {}).update(dict.fromkeys(home.like))
        return replace(home, made=frozenset())

    # --- statements -----------------------------------------------------------------------------------------

    def _run(self, statements: Sequence[ast.stmt], names: Names) -> None:
        for each in statements:
            self._statement(each, names)

    def _statement(self, node: ast.stmt, names: Names) -> None:
        if isinstance(node, ast.Assign):
            home = self.of(node.value, names)
            for target in node.targets:
                self._bind(target, home, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self.of(node.value, names), names)
        elif isinstance(node, ast.AugAssign):
            self._add(node, names)
        elif isinstance(node, ast.Return):
            self._found[-1].append(NUMBER if node.value is None else self.of(node.value, names))
        elif isinstance(node, ast.Expr):
            self.of(node.value, names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(node, ast.FunctionDef):
                names.functions[node.name] = node
        elif isinstance(node, ast.If):
            self.of(node.test, names)
            self._ways([node.body, node.orelse], names)
        elif isinstance(node, ast.Match):
            self.of(node.subject, names)
            self._ways([*(each.body for each in node.cases), []], names)
        elif isinstance(node, (ast.For, ast.While)):
            self._loop(node, names)
        elif isinstance(node, ast.With):
            for item in node.items:
                home = self.of(item.context_expr, names)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, replace(home.flat, elsewhere=True), names)
            self._run(node.body, names)
        elif isinstance(node, ast.Try):
            self._ways([[*node.body, *node.orelse], *(each.body for each in node.handlers)], names)
            self._run(node.finalbody, names)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                names.certain.discard(dotted(target) or "")

    def _ways(self, blocks: Sequence[Sequence[ast.stmt]], names: Names) -> None:
        behind = []
        for block in blocks:
            way = names.copy()
            self._run(block, way)
            if not exits(block) <= {"returns", "raises"}:
                behind.append(way)
        names.take(behind)

    def _loop(self, node: ast.For | ast.While, names: Names) -> None:
        iterated = self.of(node.iter, names) if isinstance(node, ast.For) else NUMBER
        ways = [names.copy()]
        for _ in range(2):
            inside = names.copy()
            inside.take(ways)
            if isinstance(node, ast.For):
                self._bind(node.target, self._element(node.iter, iterated, inside), inside)
            else:
                self.of(node.test, inside)
            self._run(node.body, inside)
            ways.append(inside)
        names.take(ways)
        self._run(node.orelse, names)

    def _element(self, node: ast.expr, home: Home, names: Names) -> Home:
        """Where what iterating over `node` gives is."""
        called = dotted(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and called in ("enumerate", "zip"):
            parts = [
                self._element(each, self.of(each, names), names)
                for each in node.args[: 1 if called == "enumerate" else None]
            ]
            return Home(items=(NUMBER, *parts) if called == "enumerate" else tuple(parts))
        if home.items is not None:
            return either(home.items) if home.items else ELSEWHERE
        return home

    def _bind(self, target: ast.expr, home: Home, names: Names) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            items = home.items if home.items is not None and len(home.items) == len(target.elts) else None
            for index, each in enumerate(target.elts):
                part = home.flat if items is None else items[index]
                self._bind(each.value if isinstance(each, ast.Starred) else each, part, names)
        elif isinstance(target, ast.Subscript):
            self.of(target.slice, names)
            self.of(target.value, names)
            self._put_in(target.value, home, names)
        else:
            path = dotted(target)
            if path is not None:
                names.bind(path, home)

    def _put_in(self, owner: ast.expr, home: Home, names: Names) -> None:
        """What is put into a container is one of its items; a tensor that is written to stays where it is."""
        path = dotted(owner) or ""
        known = names.homes.get(path)
        if known is not None and (known.items is not None or not known.made):
            names.homes[path] = either([known.flat, home.flat])

    def _add(self, node: ast.AugAssign, names: Names) -> None:
        path, value = dotted(node.target), self.of(node.value, names)
        known = names.homes.get(path or "", ELSEWHERE)
        if path is None:
            self.of(node.target, names)
        elif known.made and value.flat.like:
            # Written in place: what is added has to be on the device of what it is added to.
            names.bind(path, self._meet([known.flat, value.flat]))
        else:
            names.bind(path, computed([known, value]))

    # --- expressions ----------------------------------------------------------------------------------------

    def of(self, node: ast.expr, names: Names) -> Home:
        home = self._of(node, names)
        self.reads.setdefault(node, []).append(home.flat)
        return home

    def _of(self, node: ast.expr, names: Names) -> Home:
        if isinstance(node, ast.Constant):
            return NUMBER
        if isinstance(node, ast.Name):
            return names.homes.get(node.id, ELSEWHERE)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Call):
            return self._call(node, names)
        if isinstance(node, (ast.Tuple, ast.List)):
            items = tuple(self.of(each, names) for each in node.elts)
            starred = any(isinstance(each, ast.Starred) for each in node.elts)
            return either(each.flat for each in items) if starred else Home(items=items)
        if isinstance(node, ast.Dict):
            items = tuple(self.of(each, names) for each in node.values)
            plain = all(isinstance(each, ast.Constant) for each in node.keys)
            keys = tuple(ast.unparse(each) for each in node.keys if each is not None)
            return Home(items=items, keys=keys) if plain else either(each.flat for each in items)
        if isinstance(node, ast.Subscript):
            return self._item(node, names)
        if isinstance(node, ast.NamedExpr):
            home = self.of(node.value, names)
            names.bind(node.target.id, home)
            return home
        if isinstance(node, ast.IfExp):
            self.of(node.test, names)
            return either([self.of(node.body, names), self.of(node.orelse, names)])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self._comprehension(node, names).flat
        if isinstance(node, (ast.Lambda, ast.JoinedStr, ast.DictComp)):
            return NUMBER
        if isinstance(node, ast.BoolOp):
            return either(self.of(each, names) for each in node.values)
        return computed(
            self.of(each, names) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
        )

    def _attribute(self, node: ast.Attribute, names: Names) -> Home:
        path = dotted(node)
        if path in names.homes:
            return names.homes[path]
        if node.attr in _FACTS or self.kinds.qualified(node) is not None:
            return NUMBER
        if path is not None and path.startswith("self."):
            if self.kinds.of(node).what in ("number", "size", "static"):
                return NUMBER
            return Home(like=(path,), elsewhere=True) if self.is_tensor(node) else ELSEWHERE
        home = self.of(node.value, names)
        if home.items is not None and node.attr in home.fields:
            return home.items[home.fields.index(node.attr)]
        return home.flat

    def _item(self, node: ast.Subscript, names: Names) -> Home:
        home, index = self.of(node.value, names), self.of(node.slice, names).flat
        if home.items is None or not isinstance(node.slice, ast.Constant):
            home = home.flat
            # An index is on the host, or with what it is an index of.
            return (
                replace(home, like=tuple(dict.fromkeys((*home.like, *index.like))))
                if home.elsewhere
                else home
            )
        key = node.slice.value
        if home.keys:
            text = ast.unparse(node.slice)
            return home.items[home.keys.index(text)] if text in home.keys else home.flat
        return home.items[key] if isinstance(key, int) and -1 <= key < len(home.items) else home.flat

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, names: Names) -> Home:
        inside = names.copy()
        for each in node.generators:
            iterated = self.of(each.iter, inside)
            self._bind(each.target, self._element(each.iter, iterated, inside), inside)
            for test in each.ifs:
                self.of(test, inside)
        return self.of(node.elt, inside)

    # --- calls ----------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, names: Names) -> Home:
        name = self.kinds.qualified(node.func) or ""
        if name == "torch.cond":
            return self._cond(node, names)
        if name.endswith(".while_loop"):
            return self._while_loop(node, names)
        given = [self.of(each, names) for each in node.args]
        keywords = {each.arg: self.of(each.value, names) for each in node.keywords}
        if name in FACTORIES:
            return self._made(node, name, given, keywords, names)
        if name in _MOVED:
            return ELSEWHERE
        # What torch.where asks may be on the host.
        homes = [*given[1:], *given[:1]] if name == "torch.where" else [*given]
        homes += keywords.values()
        if name.endswith(".tree_map"):
            # As torch.cond, where layers run that it takes in no arm.
            return self._meet(given[1:])
        if name in _LOGICAL and len(given) == 2 and given[0].flat.made:
            return self._meet([each.flat for each in given])
        if name in _JOINING and given:
            return self._meet([each.flat for each in given[0].items or given[:1]])
        if name:
            drawn = name.startswith(_DRAWN) and "_like" not in name
            return ELSEWHERE if drawn else computed(homes)
        if isinstance(node.func, ast.Name):
            return self._named_tuple(node, names) or self._named_call(node, given, names)
        if isinstance(node.func, ast.Attribute):
            return self._other_fields(node, names) or self._method(node.func, given, homes, names)
        return _of_parts([self.of(node.func, names), *homes])

    def _made(
        self,
        node: ast.Call,
        name: str,
        given: Sequence[Home],
        keywords: dict[str | None, Home],
        names: Names,
    ) -> Home:
        """Where what a function of torch makes is: with a tensor that it is made of, or where its `device` says."""
        if "device" in keywords:
            device = keywords["device"].flat
            return device if device.made or device.like else ELSEWHERE
        if {"out", "pin_memory", None} & keywords.keys() or any(
            isinstance(each, ast.Starred) for each in node.args
        ):
            return ELSEWHERE
        taken = given[0].flat if name in _OF_GIVEN and given and given[0].items is None else NUMBER
        if taken.certainly_elsewhere and not self._may_be_number(node.args[0]):
            return taken
        self.places.setdefault(node, []).append(names.copy())
        return either([replace(taken, made=frozenset()), Home(frozenset({node}))])

    def _may_be_number(self, node: ast.expr) -> bool:
        """Whether what is computed at `node` may be a number: it reads names alone, of which no kind says that they are tensors."""
        if isinstance(node, ast.Attribute) and node.attr in _FACTS:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NUMBERS:
            return True
        if isinstance(node, (ast.BinOp, ast.UnaryOp)):
            return all(
                map(self._may_be_number, (each for each in children(node) if isinstance(each, ast.expr)))
            )
        return isinstance(node, (ast.Constant, ast.Name)) and self.kinds.of(node).what != "tensor"

    def _named_tuple(self, node: ast.Call, names: Names) -> Home | None:
        """The homes of what is in the named tuple that `node` makes; None where it makes none."""
        made = called_class(self.kinds, node.func)
        parts = None if made is None or made.fields is None else arguments_of(made, node)
        if made is None or parts is None:
            return None
        return Home(items=tuple(self.of(each, names) for each in parts), fields=made.fields or ())

    def _other_fields(self, node: ast.Call, names: Names) -> Home | None:
        """The homes in what `track._replace(hits=0)` gives, and `track._make([each.clone() for each in track])`."""
        assert isinstance(node.func, ast.Attribute)
        home = self.of(node.func.value, names)
        if home.items is None or not home.fields:
            return None
        if node.func.attr == "_replace" and not node.args:
            given = {each.arg: self.of(each.value, names) for each in node.keywords}
            parts = zip(home.fields, home.items, strict=True)
            return replace(home, items=tuple(given.get(name, part) for name, part in parts))
        made = node.args[0] if node.func.attr == "_make" and len(node.args) == 1 else None
        same = isinstance(made, ast.ListComp) and dotted(made.generators[0].iter) == dotted(node.func.value)
        return home if same else None

    def _named_call(self, node: ast.Call, given: Sequence[Home], names: Names) -> Home:
        assert isinstance(node.func, ast.Name)
        if node.func.id in names.functions:
            return self._inside(names.functions[node.func.id], given, names)
        if node.func.id in _TO_NUMBERS:
            return NUMBER
        if node.func.id in _OF_ARGUMENTS:
            return computed(given)
        return _of_parts(given)

    def _method(
        self, func: ast.Attribute, given: Sequence[Home], homes: Sequence[Home], names: Names
    ) -> Home:
        owner = self.of(func.value, names)
        if (dotted(func) or "").startswith("self.") and not (owner.flat.like or owner.flat.made):
            # A method of the model, or one of its modules.
            return _of_parts(homes)
        if func.attr in _NUMBERS:
            return NUMBER
        if func.attr in ("cuda", "cpu"):
            return ELSEWHERE
        if func.attr in ("to", "type_as"):
            told = [each.flat for each in homes]
            return next(
                (each for each in told if each.like or each.made),
                ELSEWHERE if any(each.elsewhere for each in told) else owner.flat,
            )
        if func.attr in _PUT_IN:
            for each in given:
                self._put_in(func.value, each, names)
            return NUMBER
        if func.attr in _WRITES and owner.flat.made:
            return self._meet([owner.flat, *(each.flat for each in given)])
        return computed([owner, *homes])

    def _cond(self, node: ast.Call, names: Names) -> Home:
        if len(node.args) < 3:
            return ELSEWHERE
        self.of(node.args[0], names)
        operands = self.of(node.args[3], names).items or () if len(node.args) > 3 else ()
        true, false = (self._given(each, operands, names) for each in node.args[1:3])
        self.arms.setdefault(node, []).append((true, false, names.copy()))
        return self._meet([true, false])

    def _while_loop(self, node: ast.Call, names: Names) -> Home:
        if len(node.args) < 3:
            return ELSEWHERE
        carried = self.of(node.args[2], names)
        for _ in range(2):
            items = carried.items or ()
            self._given(node.args[0], items, names)
            result = self._given(node.args[1], items, names)
            carried = self._meet(
                [carried, result if result.items is not None or len(items) != 1 else Home(items=(result,))]
            )
        return carried

    def _given(self, node: ast.expr, operands: Sequence[Home], names: Names) -> Home:
        """Where what the function `node` gives is, called with `operands`."""
        if isinstance(node, ast.Lambda):
            return self._inside(node, operands, names)
        found = names.functions.get(node.id) if isinstance(node, ast.Name) else None
        return ELSEWHERE if found is None else self._inside(found, operands, names)

    def _inside(self, function: ast.FunctionDef | ast.Lambda, given: Sequence[Home], names: Names) -> Home:
        """Where what a local function gives is; it reads the names around it, and binds its own."""
        if self._active.count(function) >= _DEEPEST:
            return AGAIN
        inside = names.copy()
        inside.inside = True
        args = function.args
        own = {each.arg for each in arguments(args)}
        outer: list[str] = []
        if isinstance(function, ast.FunctionDef):
            outer = [name for each in walk(function) if isinstance(each, ast.Nonlocal) for name in each.names]
            own |= set(bound(function.body)).difference(outer)
        for each in own:
            inside.homes.pop(each, None)
            inside.certain.discard(each)
        places = [*args.posonlyargs, *args.args]
        defaults = zip(places[::-1], args.defaults[::-1], strict=False)
        for parameter, default in defaults:
            inside.bind(parameter.arg, self.of(default, names))
        for parameter, home in zip(places, given, strict=False):
            inside.bind(parameter.arg, home)
        self._active.append(function)
        if isinstance(function, ast.Lambda):
            result = self.of(function.body, inside)
        else:
            self._found.append([])
            self._run(function.body, inside)
            result = either(self._found.pop())
        self._active.pop()
        for name in outer:
            names.homes[name] = inside.homes.get(name, ELSEWHERE)
        return result


def _of_parts(homes: Iterable[Home]) -> Home:
    """Where the result of what is not known is: with what it is given, where that is elsewhere already."""
    home = computed(homes)
    return home if home.certainly_elsewhere else ELSEWHERE


def _is_like(home: Home, other: Home) -> bool:
    """Whether both are of containers of the same items."""
    if home.items is None or other.items is None:
        return False
    return len(home.items) == len(other.items) and home.keys == other.keys
