"""What keeps the tensor of an attribute while another one is bound to it: a write in place would change both.

`before = self.state`, then `self.state = f(self.state)`: the name keeps the old tensor. Where the rewrite is `self.state.copy_(...)`,
names, attributes and callers that keep the tensor get a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from exportlens.rewriting.arms.gradients import without_gradients
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import own_expressions, visit, writes_of
from exportlens.rewriting.state.resized_state import refuse_resized

_PUTS_IN = frozenset({"append", "appendleft", "extend", "insert", "setdefault", "update", "register_buffer"})
_VIEWS = frozenset(
    {
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "t",
        "transpose",
        "permute",
        "expand",
        "expand_as",
        "flatten",
        "to",
    }
)
_SAME_MEMORY = _VIEWS | {"cpu", "detach", "float", "contiguous", "numpy"}
# What is asked of a tensor without its values.
_FACTS = frozenset({"device", "dtype", "shape", "ndim", "requires_grad", "size", "dim", "numel"})


def kept_apart(
    source: Source, function: Function, path: str, region: ast.stmt | tuple[int, int], kinds: Kinds
) -> list[Replacement]:
    """The copies to take in the class of `function`, so that writing to `path` (`self.state`) in place does what binding it
    anew in `region` did. Raises Refused where what is kept is written in place.
    """
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    if owner is None:
        return []
    _refuse_elsewhere(owner, path, kinds)
    begin, end = region if isinstance(region, tuple) else (source.start(region), source.end(region))
    refuse_resized(source, owner, function, path, (begin, end))
    writers = _writers(owner, path)
    swaps: dict[int, Replacement] = {}
    # What is an attribute of a local name is the same tensor in this function only.
    for method in ast.walk(owner) if path.startswith("self.") else [function]:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if method.name == "__init__":
            _refuse_kept_at_start(source, method, path, kinds)
            continue
        kept = _Kept(source, path, {name for name in writers if name != method.name})
        kept.follow(method, kinds)
        for load in kept.loads(method, (begin, end)):
            where = source.end(load)
            if isinstance(region, ast.stmt) or not begin <= where <= end:
                swaps[where] = Replacement(where, where, ".clone()")
        if method is not function and method.name in writers:
            # It reads the attribute, and then calls what writes to it.
            for read in _saved(source, method, path, _last_call(source, method, writers)):
                swaps.setdefault(
                    source.end(read), Replacement(source.end(read), source.end(read), ".clone()")
                )
    # What the statement itself reads is saved before it writes.
    for read in _saved(source, function, path, end if isinstance(region, ast.stmt) else begin):
        swaps.setdefault(source.end(read), Replacement(source.end(read), source.end(read), ".clone()"))
    return list(swaps.values())


def _last_call(source: Source, method: Function, writers: set[str]) -> int:
    """Where the last call of one of `writers` in `method` stands, or ends the loop that it is in."""
    ends = [0]
    for each in ast.walk(method):
        if _calls(each, writers):
            loops = [one for one in source.ancestors(each) if isinstance(one, (ast.For, ast.While))]
            ends.append(source.end(loops[-1]) if loops else source.start(each))
    return max(ends)


def _saved(source: Source, function: Function, path: str, begin: int) -> Iterator[ast.expr]:
    """The reads of the attribute before `begin` that autograd may keep for the backward pass, which takes nothing that was
    written to since."""
    for each in ast.walk(function):
        if not (isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and dotted(each) == path):
            continue
        if source.end(each) > begin or source.enclosing_function(each) is not function:
            continue
        if _is_saved(source, each) and not without_gradients(source, function, each):
            yield each


def _is_saved(source: Source, read: ast.expr) -> bool:
    """Whether what is read, or a view of it, is computed with together with what may ask for gradients."""
    node = read
    while True:
        parent = source.parents[node]
        call = source.parents.get(parent)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            node = parent
        elif isinstance(parent, ast.Attribute) and parent.attr in _VIEWS and isinstance(call, ast.Call):
            node = call
        elif isinstance(parent, ast.Tuple) and isinstance(call, ast.Call) and parent in call.args:
            # `self.layer(x, (self.h, self.c))`
            node = parent
        else:
            break
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult)):
        other = parent.left if parent.right is node else parent.right
        return not isinstance(other, ast.Constant)
    if isinstance(parent, ast.Subscript):
        return True
    if not isinstance(parent, ast.Call) or node is parent.func or not isinstance(parent.func, ast.Attribute):
        return False
    others = [each for each in parent.args if each is not node and not isinstance(each, ast.Constant)]
    of_torch = dotted(parent.func.value) in ("torch", "F", "nn.functional", "torch.nn.functional")
    return bool(others) if of_torch else not parent.func.attr.endswith("_") and not _keeps(parent)


def _refuse_elsewhere(owner: ast.ClassDef, path: str, kinds: Kinds) -> None:
    """Raise Refused where another chunk of the file keeps the attribute of such an object."""
    attr, own = path.rpartition(".")[2], path.startswith("self.") and path.count(".") == 1
    for chunk in kinds.around:
        for each in (node for statement in chunk.body for node in ast.walk(statement)):
            named = [one for one in _given_away(each) if isinstance(one, ast.Attribute) and one.attr == attr]
            cls = next((one for one in chunk.body if isinstance(one, ast.ClassDef)), None)
            related = cls is not None and (
                owner.name in map(ast.unparse, cls.bases) or cls.name in map(ast.unparse, owner.bases)
            )
            if any(related or not own or dotted(one.value) != "self" for one in named):
                raise Refused(f"`{ast.unparse(each)}` keeps the tensor of `{path}`, which would be written")


def _given_away(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement binds or returns, or a call puts somewhere, item by item; of a view, what it is one of."""
    waiting: list[ast.expr | None] = []
    if isinstance(node, (ast.Assign, ast.Return)):
        waiting = [node.value]
    elif isinstance(node, ast.Call) and _keeps(node):
        waiting = [*node.args]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (ast.Tuple, ast.List)):
            waiting += each.elts
        elif isinstance(each, ast.Dict):
            waiting += each.values
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr in _SAME_MEMORY
        ):
            waiting.append(each.func.value)
        elif each is not None:
            yield each


def _refuse_kept_at_start(source: Source, constructor: Function, path: str, kinds: Kinds) -> None:
    """Raise Refused where the constructor gives the attribute's tensor to another attribute as well."""
    kept = _Kept(source, path, set())
    kept.follow(constructor, kinds)
    names: set[str] = set()
    for each in ast.walk(constructor):
        if isinstance(each, ast.Assign) and any(dotted(target) == path for target in each.targets):
            if len(each.targets) > 1 and not isinstance(each.value, ast.Constant):
                kept.beyond.append(each.value)
            names |= {each.value.id} if isinstance(each.value, ast.Name) else set()
        elif _registers(each, path):
            names |= {one.id for one in each.args[1:2] if isinstance(one, ast.Name)}
    for each in ast.walk(constructor):
        if isinstance(each, ast.Assign) and not any(dotted(target) == path for target in each.targets):
            inside = each.value.elts if isinstance(each.value, (ast.List, ast.Tuple)) else [each.value]
            kept.beyond += [one for one in inside if isinstance(one, ast.Name) and one.id in names]
        elif isinstance(each, ast.Call) and _keeps(each) and not _registers(each, path):
            kept.beyond += [one for one in each.args if isinstance(one, ast.Name) and one.id in names]
    if kept.beyond:
        statement = source.enclosing_statement(kept.beyond[0])
        raise Refused(f"`{source.of(statement)}` keeps the tensor of `{path}`, which would be written")


def _keeps(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _PUTS_IN


def _registers(node: ast.AST, path: str) -> TypeGuard[ast.Call]:
    """Whether `node` registers the buffer `path`."""
    return (
        isinstance(node, ast.Call)
        and dotted(node.func) == "self.register_buffer"
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == path.removeprefix("self.")
    )


def _writers(owner: ast.ClassDef, path: str) -> set[str]:
    """The methods of `owner` that bind `path` or write to it, themselves or by methods that they call."""
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    found = {name for name, each in methods.items() if any(_writes(one, path) for one in ast.walk(each))}
    while True:
        more = {
            name
            for name, each in methods.items()
            if name not in found and any(_calls(one, found) for one in ast.walk(each))
        }
        if not more:
            return found
        found |= more


def _writes(node: ast.AST, path: str) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return dotted(node) == path
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return dotted(node.value) == path
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and dotted(node.func.value) == path
    )


def _calls(node: ast.AST, methods: set[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and dotted(node.func.value) in ("self", "super()")
    )


class _Kept:
    """Where one function keeps the tensor of `path`: in names, or beyond them."""

    def __init__(self, source: Source, path: str, writers: set[str]) -> None:
        self.source, self.path, self.writers = source, path, writers
        self.names: set[str] = set()
        self.in_names: list[ast.expr] = []
        self.beyond: list[ast.expr] = []

    def follow(self, function: Function, known: Kinds) -> None:
        inside = Kinds({}, known.modules)
        inside.functions, inside.cancelled = known.functions, known.cancelled
        for each in arguments(function.args):
            inside.names[each.arg] = Kind("unknown", roots=frozenset({f"{LOCAL}{each.arg}"}))
        inside.names[self.path] = Kind("tensor", roots=frozenset({self.path}))
        visit(function.body, inside, self._see)

    def _see(self, node: ast.stmt, now: Kinds) -> None:
        # Behind the statement that binds it the attribute is still the tensor that is written to.
        now.names[self.path] = Kind("tensor", roots=frozenset({self.path}))
        for name, kind in now.names.items():
            if name.isidentifier() and self.path in (kind.roots or ()):
                self.names.add(name)
        for write in writes_of(node, now):
            if self._is_it(write.base, now) and not self._begins_with_path(write.base):
                raise Refused(
                    f"`{self.source.of(write.base)}` keeps the tensor of `{self.path}`, and is written in place"
                )
        if isinstance(node, ast.Assign):
            if not any(dotted(each) == self.path for each in node.targets):
                plain = all(isinstance(each, (ast.Name, ast.Tuple)) for each in node.targets)
                self._keep(node.value, now, plain)
            elif _is_view(node.value, self.path):
                self._keep(node.value, now, False)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._keep(node.value, now, isinstance(node.target, ast.Name))
        elif (isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple))) or (
            isinstance(node, ast.Return) and node.value is not None
        ):
            self._keep(node.value, now, False)
        elif isinstance(node, ast.For):
            self._keep(node.iter, now, True)
        for each in own_expressions(node):
            if isinstance(each, ast.NamedExpr):
                self._keep(each.value, now, True)
            elif isinstance(each, ast.Yield) and each.value is not None:
                self._keep(each.value, now, False)
            elif isinstance(each, ast.Call) and self._keeps_arguments(each, now):
                for given in [*each.args, *(key.value for key in each.keywords)]:
                    self._keep(given, now, False)

    def _keeps_arguments(self, call: ast.Call, now: Kinds) -> bool:
        """Whether a call may put what it is given somewhere, or reads it once the attribute is written."""
        if _keeps(call) and isinstance(call.func, ast.Attribute):
            return now.of(call.func.value).what != "tensor"
        return _calls(call, self.writers)

    def _keep(self, value: ast.expr, now: Kinds, in_names: bool) -> None:
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "numpy"
        ):
            # An array is the same memory.
            self._keep(value.func.value, now, in_names)
        elif isinstance(value, (ast.Tuple, ast.List)):
            # What is not known of one item says nothing of the others.
            for each in value.elts:
                self._keep(each, now, in_names)
        elif self._is_it(value, now):
            (self.in_names if in_names else self.beyond).append(value)

    def _is_it(self, node: ast.expr, now: Kinds) -> bool:
        return self.path in (now.of(node).roots or ())

    def _begins_with_path(self, node: ast.expr) -> bool:
        while dotted(node) != self.path:
            if isinstance(node, (ast.Subscript, ast.Attribute)):
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            else:
                return False
        return True

    def loads(self, function: Function, region: tuple[int, int]) -> Iterator[ast.Attribute]:
        """The reads of the attribute that must be of a copy."""
        kept = [*self.beyond, *(self.in_names if self._is_read_later(function, region) else [])]
        for value in kept:
            for each in ast.walk(value):
                if (
                    isinstance(each, ast.Attribute)
                    and isinstance(each.ctx, ast.Load)
                    and dotted(each) == self.path
                    and getattr(self.source.parents.get(each), "attr", None) not in _FACTS
                ):
                    yield each

    def _is_read_later(self, function: Function, region: tuple[int, int]) -> bool:
        """Whether a name that keeps the tensor is read once the attribute may have been written."""
        reads = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in self.names
        ]
        for each in ast.walk(function):
            if not (_writes(each, self.path) or _calls(each, self.writers)):
                continue
            statement = self.source.enclosing_statement(each)
            behind = self.source.end(statement)
            if any(self.source.start(one) >= behind for one in reads):
                return True
            loops = [one for one in self.source.ancestors(each) if isinstance(one, (ast.For, ast.While))]
            if any(one in reads for loop in loops for one in ast.walk(loop)):
                return True
        return False


def _is_view(value: ast.expr, path: str) -> bool:
    """Whether `value` is more than the attribute itself: `self.table.t()` gives the same memory in another order."""
    return dotted(value) != path and not (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr
        in ("to", "float", "double", "half", "type", "contiguous", "detach", "cuda", "cpu")
        and dotted(value.func.value) == path
    )
