"""NumPy data that a model, an object of its file or the file itself holds, wherever that comes from: a number of Python's where it
is one number, and a tensor of the same memory beside an array.

    self.window = make_window(n)              self.window = make_window(n)
                                              self.window_tensor = torch.as_tensor(self.window)
    ...                                ->     ...
    x * torch.from_numpy(self.window)         x * self.window_tensor
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from exportlens.finding import Applicability, Edit, Fix
from exportlens.inference.places import NumpyRead
from exportlens.rewriting.arrays.array_operands import is_constant
from exportlens.rewriting.arrays.held_homes import ELSEWHERE, Home, Homes, Store
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement

INTO_TENSORS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor")
_INTO_ARRAYS = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")
WIDER = (
    "NumPy computes with it and an array that was a tensor, in another dtype than with a number of Python's: write that in torch "
    "first"
)
_DOUBLE = ("float64", "int64")
# Methods of arrays that give the same whenever they are called.
_METHODS = frozenset(
    {"astype", "reshape", "transpose", "copy", "flatten", "ravel", "squeeze", "mean", "std", "sum", "max", "min", "tolist"}
)  # fmt: skip
_PARTS = (
    ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Subscript, ast.Slice,
    ast.keyword, ast.expr_context, ast.operator, ast.unaryop,
)  # fmt: skip


def held_before(place: NumpyRead, context: RewriteContext) -> Fix:
    """The fix for what `place` reads. Raises Refused where what is held, or what is done with it, is not known."""
    return _Holding(place, context).fix()


@dataclass
class _Holding(Homes):
    swaps: dict[int, list[Replacement]] = field(default_factory=dict)

    def fix(self) -> Fix:
        message = "Hold a number of Python" if self.place.use != "operand" else "Hold it as torch takes it"
        if self.place.use != "operand":
            self._numbers_given()
        elif isinstance(self.node, ast.Call) and self.draft.qualified(self.node.func) in INTO_TENSORS:
            self._tensor(self.node)
        elif isinstance(self.node, ast.Subscript):
            self._index(self.node)
        else:
            self._operands()
        return self._made(message)

    def _made(self, message: str) -> Fix:
        made: list[Edit] = []
        imports = False
        for key, swaps in self.swaps.items():
            uses_torch = not imports and any(f"{self.draft.torch}." in each.text for each in swaps)
            made += self.drafts[key].replace(message, swaps, uses_torch=uses_torch).edits
            imports |= uses_torch
        if not made:
            raise Refused(ELSEWHERE)
        return Fix(message, tuple(made), Applicability.UNSAFE)

    def _put(self, draft: Draft, swap: Replacement) -> None:
        swaps = self.swaps.setdefault(id(draft.chunk), [])
        if swap not in swaps:
            swaps.append(swap)

    # What reads it

    def _tensor(self, call: ast.Call) -> None:
        keywords = {key.arg for key in call.keywords}
        if len(call.args) != 1 or not keywords <= {"dtype", "device"}:
            raise Refused(ELSEWHERE)
        given = self.followed(call.args[0])
        if isinstance(given, ast.Name) and self.is_parameter(given):
            self._through_parameter(call, given)
            return
        self._put(self.draft, self.source.swap(call, f"{self._tensor_of(given)}{self._as_before(call)}"))

    def _tensor_of(self, given: ast.expr) -> str:
        """The text that reads the tensor of `given`."""
        if dotted(given) is not None:
            return self._twin(self.home(given), None, given)
        if isinstance(given, ast.Subscript) and _is_plain_cut(given.slice):
            owner = self.followed(given.value)
            return f"{self._tensor_of(owner)}[{self.source.of(given.slice)}]"
        paths = self._paths_in(given)
        if len(paths) != 1:
            raise Refused(ELSEWHERE)
        home = self.home(paths[0])
        return self._twin(home, given, paths[0])

    def _as_before(self, call: ast.Call) -> str:
        """What is called on the tensor so that it is what `call` gave: `torch.tensor` gives a copy."""
        name = self.draft.qualified(call.func)
        given = [self.source.of(each) for each in call.keywords]
        if name == "torch.Tensor":
            return f".to({self.draft.torch}.get_default_dtype(), copy=True)"
        if name == "torch.tensor":
            return f".to({', '.join([*given, 'copy=True'])})" if given else ".clone()"
        return f".to({', '.join(given)})" if given else ""

    def _operands(self) -> None:
        sides: list[ast.expr] = []
        if isinstance(self.node, ast.BinOp):
            sides = [self.node.left, self.node.right]
        elif isinstance(self.node, ast.Compare):
            sides = [self.node.left, *self.node.comparators]
        elif isinstance(self.node, ast.AugAssign):
            sides = [self.node.value]
        for each in sides:
            self._operand(each)

    def _operand(self, side: ast.expr) -> None:
        if self.rank == 0 and isinstance(side, ast.Subscript):
            owner = self.followed(side.value)
            home = self.known_home(owner)
            if home is not None:
                if isinstance(side.slice, (ast.Slice, ast.Tuple, ast.List)):
                    raise Refused(ELSEWHERE)
                self._put(self.draft, self.source.swap(side.value, self._listed(home, owner)))
            return
        given = self.followed(side)
        home = self.known_home(given)
        if home is None:
            if self.rank == 0 and isinstance(given, (ast.BinOp, ast.UnaryOp)):
                self._numbers_computed_with(given)
            return
        if self.rank == 0:
            self._number(home)
        elif self.rank is not None:
            self._put(self.draft, self.source.swap(side, self._twin(home, None, given)))

    def _numbers_computed_with(self, given: ast.expr) -> None:
        """The numbers that `given` is computed of, where it is computed of such numbers and of those that are written there."""
        homes = [self.known_home(self.followed(each)) for each in _numbers_among(given)]
        for each in filter(None, homes):
            self._number(each)

    def _index(self, node: ast.Subscript) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for each in parts:
            cut = [each.lower, each.upper, each.step] if isinstance(each, ast.Slice) else []
            for one in filter(None, cut):
                home = self.known_home(self.followed(one))
                if home is not None:
                    self._number(home)
            given = self.followed(each)
            home = self.known_home(given)
            if home is None:
                continue
            if self.rank == 0:
                self._number(home)
            elif self.dtype != "uint8":
                self._put(self.draft, self.source.swap(each, self._twin(home, None, given)))

    def _numbers_given(self) -> None:
        """The numbers among the arguments of a call, or the parts of a condition."""
        if self.rank != 0:
            raise Refused(ELSEWHERE)
        given: list[ast.expr] = []
        if isinstance(self.node, ast.Call):
            given = [*self.node.args, *(key.value for key in self.node.keywords)]
        elif isinstance(self.node, ast.Compare):
            given = [self.node.left, *self.node.comparators]
        elif isinstance(self.node, ast.expr):
            given = [self.node]
        for each in given:
            for one in _numbers_among(each):
                home = self.known_home(self.followed(one))
                if home is not None:
                    self._number(home)

    def _through_parameter(self, call: ast.Call, given: ast.Name) -> None:
        """`torch.as_tensor(array)` in a helper, which is given the tensors by those who call it."""
        function = self.function
        assert function is not None
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == given.id]
        for each in uses:
            parent = self.source.parents[each]
            is_size = isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim")
            is_made = isinstance(parent, ast.Call) and self.draft.qualified(parent.func) in INTO_TENSORS
            if not (is_size or is_made) or (isinstance(parent, ast.Call) and len(parent.args) != 1):
                raise Refused(f"`{given.id}` is used for more than the tensor that is made of it")
            if isinstance(parent, ast.Call):
                text = f"{self.draft.torch}.as_tensor({given.id}){self._as_before(parent)}"
                self._put(self.draft, self.source.swap(parent, text))
        found = False
        for draft, caller in self._calls_of(function):
            argument = _given_for(caller, function, given.id)
            if argument is None or dotted(argument) is None:
                continue
            inner = self._at(draft, caller)
            home = inner.known_home(inner.followed(argument))
            if home is not None:
                text = inner._twin(home, None, inner.followed(argument))
                self._put(draft, draft.source.swap(argument, text))
                found = True
        if not found:
            raise Refused(ELSEWHERE)

    def _at(self, draft: Draft, node: ast.AST) -> _Holding:
        """The same question, asked from elsewhere; what it changes is changed here."""
        other = _Holding(self.place, self.context, self.drafts, self.swaps)
        other.draft, other.source, other.node = draft, draft.source, node
        other.function = draft.source.enclosing_function(node)
        return other

    def _calls_of(self, function: Function) -> Iterator[tuple[Draft, ast.Call]]:
        for placed in self.context.document.placed:
            if function.name not in placed.chunk.text:
                continue
            draft = self.draft_of(placed.chunk)
            for each in ast.walk(draft.source.tree):
                if (
                    isinstance(each, ast.Call)
                    and (dotted(each.func) or "").rpartition(".")[2] == function.name
                ):
                    yield draft, each

    def _paths_in(self, given: ast.expr) -> list[ast.expr]:
        """The paths that `given` is computed of, where it computes the same whenever that is done."""
        paths: dict[str, ast.expr] = {}
        waiting: list[ast.AST] = [given]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, _PARTS):
                raise Refused(ELSEWHERE)
            name = dotted(node) if isinstance(node, ast.expr) else None
            if isinstance(node, ast.Call):
                called = self.draft.qualified(node.func)
                method = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
                if called.startswith("numpy.") and not called.startswith("numpy.random"):
                    waiting += [*node.args, *node.keywords]
                elif method and isinstance(node.func, ast.Attribute):
                    waiting += [node.func.value, *node.args, *node.keywords]
                else:
                    raise Refused(ELSEWHERE)
            elif name is not None and isinstance(node, ast.expr):
                if self.draft.qualified(node).startswith(("numpy.", "torch.")) or name in (
                    "float",
                    "int",
                    "bool",
                ):
                    continue
                if isinstance(node, ast.Attribute) and node.attr in ("T", "real", "imag"):
                    waiting.append(node.value)
                    continue
                paths[name] = node
            else:
                waiting += list(ast.iter_child_nodes(node))
        return list(paths.values())

    # What is set beside it

    def _twin(self, home: Home, given: ast.expr | None, path: ast.expr) -> str:
        """The text that reads the tensor of what is set at `home`, or of `given`, which is computed of it."""
        text = home.name if given is None else self.source.of(given).replace(dotted(path) or "", home.name)
        if given is not None:
            _refuse_writes(home)
        torch = home.draft.torch
        ending = "_TENSOR" if home.last.isupper() else "_tensor"
        made = f"{torch}.as_tensor({text})"
        name = self._name(home, f"{home.last}{ending}", made)
        self._set_beside(home, name, made)
        return f"{(dotted(path) or '').rpartition('.')[0]}.{name}".lstrip(".")

    def _listed(self, home: Home, path: ast.expr) -> str:
        """The text that reads the numbers of the row that is set at `home`."""
        _refuse_writes(home)
        made = f"{home.name}.tolist()"
        name = self._name(home, f"{home.last}_{'NUMBERS' if home.last.isupper() else 'numbers'}", made)
        self._set_beside(home, name, made)
        return f"{(dotted(path) or '').rpartition('.')[0]}.{name}".lstrip(".")

    def _name(self, home: Home, wish: str, made: str) -> str:
        """A name that the file has not, or that it has for the same."""
        text, number, name = self.context.document.text, 1, wish
        while name in text and f"{name} = {made}" not in text:
            number += 1
            name = f"{wish}{number}"
        return name

    def _set_beside(self, home: Home, name: str, made: str) -> None:
        source = home.draft.source
        owner = home.name.rpartition(".")[0]
        target = f"{owner}.{name}".lstrip(".")
        if f"{target} = {made}" in source.text:
            return
        for store in home.stores:
            if isinstance(store.value, ast.Constant) and store.value.value is None:
                continue
            guard = f" if {home.name} is not None else None" if _may_be_none(home.draft, store) else ""
            self._put_behind(home, store, f"{target} = {made}{guard}")

    def _put_behind(self, home: Home, store: Store, *lines: str) -> None:
        source = home.draft.source
        end = source.end(store)
        rest = source.text[end:].split("\n", 1)[0].strip()
        if not source.begins_line(store) or (rest and not rest.startswith("#")):
            raise Refused("the line that sets it does more than that")
        end += len(source.text[end:].split("\n", 1)[0].rstrip("\r"))
        indent = source.indent_of(store)
        text = "".join(f"{source.newline}{indent}{line}" for line in lines)
        self._put(home.draft, Replacement(end, end, text))

    def _number(self, home: Home) -> None:
        """A number of Python's where `home` sets one of NumPy's: beside a tensor both do the same."""
        self._refuse_use_as_numpy(home)
        numpy = spelled(home.draft.modules, "numpy")
        for store in home.stores:
            value = store.value
            assert value is not None
            if isinstance(value, ast.Constant):
                continue
            source = home.draft.source
            if _is_of_constants(home.draft, value) and self._is_by_numpy(home.draft, value):
                self._put(home.draft, source.swap(value, f"{primary(source.of(value))}.item()"))
            elif numpy is None:
                raise Refused(ELSEWHERE)
            elif isinstance(value, ast.Name):
                text = f"{value.id}.item() if isinstance({value.id}, {numpy}.generic) else {value.id}"
                self._put(home.draft, source.swap(value, text))
            else:
                unit = source.indent_unit()
                asked = f"if isinstance({home.name}, {numpy}.generic):"
                self._put_behind(home, store, asked, f"{unit}{home.name} = {home.name}.item()")

    def _is_by_numpy(self, draft: Draft, value: ast.expr) -> bool:
        calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
        return bool(calls) and all(draft.qualified(each.func).startswith("numpy.") for each in calls)

    def _refuse_use_as_numpy(self, home: Home) -> None:
        """Refuse where a method is called on it, or where its type would decide what numbers give with it."""
        for placed in self.context.document.placed:
            if home.last in placed.chunk.text and meets_array(self.draft_of(placed.chunk), home.last):
                raise Refused(WIDER)
            for each in ast.walk(ast.Module(list(placed.chunk.body), [])):
                if isinstance(each, ast.Attribute) and _is_last(each.value, home.last):
                    raise Refused(f"`.{each.attr}` is asked of it, which numbers of Python's may not have")
                if self.dtype not in _DOUBLE and meets_number(each, home.last):
                    raise Refused("NumPy computes with it in single precision, and Python in double")


def _numbers_among(given: ast.expr) -> Iterator[ast.expr]:
    """The numbers that are given one by one, or computed with."""
    if isinstance(given, (ast.Tuple, ast.List)):
        for each in given.elts:
            yield from _numbers_among(each)
    elif isinstance(given, ast.UnaryOp):
        yield from _numbers_among(given.operand)
    elif isinstance(given, ast.BinOp):
        yield from _numbers_among(given.left)
        yield from _numbers_among(given.right)
    else:
        yield given


def meets_number(node: ast.AST, name: str) -> bool:
    """Whether `node` computes with what is held as `name` and a number that is written there."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(_is_last(each, name) for each in sides) and any(
        isinstance(each, ast.Constant) for each in sides
    )


def meets_array(draft: Draft, name: str) -> bool:
    """Whether a function of the chunk computes with what is held as `name` and an array that it makes of a tensor."""
    source = draft.source
    for each in ast.walk(source.tree):
        if not (isinstance(each, ast.expr) and _is_last(each, name)):
            continue
        function, whole = source.enclosing_function(each), source.parents[each]
        while isinstance(source.parents.get(whole), (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call)):
            whole = source.parents[whole]
        computes = isinstance(whole, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.AugAssign))
        if computes and function is not None and _is_of_arrays(draft, whole, function, frozenset()):
            return True
    return False


def _is_of_arrays(draft: Draft, node: ast.AST, function: Function, seen: frozenset[str]) -> bool:
    """Whether NumPy makes arrays of tensors in `node`, or in what the names in it are given."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and each.attr == "numpy":
            return True
        if isinstance(each, ast.Call) and draft.qualified(each.func) in _INTO_ARRAYS:
            return True
        if isinstance(each, ast.Name) and each.id not in seen:
            given = given_to_name(each.id, function)
            if any(_is_of_arrays(draft, one, function, seen | {each.id}) for one in given):
                return True
    return False


def _is_last(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (
        isinstance(node, ast.Name) and node.id == name
    )


def _is_of_constants(draft: Draft, value: ast.expr) -> bool:
    """Whether nothing but what is written there decides what `value` is, and numbers that names of the file have."""
    called = {
        id(one) for each in ast.walk(value) if isinstance(each, ast.Call) for one in ast.walk(each.func)
    }
    names = [each for each in ast.walk(value) if isinstance(each, ast.Name) and id(each) not in called]
    local = draft.source.enclosing_function(value) is not None
    return not names or (not local and all(is_constant(draft, each.id) for each in names))


def _refuse_writes(home: Home) -> None:
    """Refuse where the array is written into: what is computed of it would not follow."""
    for each in ast.walk(home.scope):
        if (
            isinstance(each, ast.Subscript)
            and not isinstance(each.ctx, ast.Load)
            and _is_last(each.value, home.last)
        ):
            raise Refused("what is held is written into")


def _may_be_none(draft: Draft, store: Store) -> bool:
    """Whether the statement may set None: a parameter that is None where nothing is given, or a choice of it."""
    function = draft.source.enclosing_function(store)
    value = store.value
    if value is None or function is None:
        return False
    if any(isinstance(each, ast.Constant) and each.value is None for each in ast.walk(value)):
        return True
    if not isinstance(value, ast.Name):
        return False
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip([each.arg for each in plain][::-1], function.args.defaults[::-1], strict=False))
    defaults |= {
        each.arg: given
        for each, given in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if given is not None
    }
    default = defaults.get(value.id)
    return isinstance(default, ast.Constant) and default.value is None


def _is_plain_cut(index: ast.expr) -> bool:
    """Whether `index` is made of slices and whole numbers: a tensor gives what the array does."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for each in parts:
        if isinstance(each, ast.Slice):
            if isinstance(each.step, ast.UnaryOp):
                return False
        elif not (isinstance(each, ast.Constant) and (each.value in (None, ...) or type(each.value) is int)):
            return False
    return True


def _given_for(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What `call` gives the parameter `name` of `function`."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    named = next((key.value for key in call.keywords if key.arg == name), None)
    if named is not None:
        return named
    plain = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_method = plain[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute)
    index = plain.index(name) - is_method if name in plain else len(call.args)
    return call.args[index] if 0 <= index < len(call.args) else None
