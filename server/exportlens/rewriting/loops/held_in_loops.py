"""Numbers that tensor data chooses in the rounds of a loop, which uses them as numbers: a tensor holds them in between.

    for _ in range(3):                  step = torch.full((), step, dtype=torch.float64)
        y = x - step * g                for _ in range(3):
        if far(y):               ->         y = x - step.item() * g
            step = step / 2                 if far(y):
    return y / step                             step = torch.full((), step.item() / 2, dtype=torch.float64)
                                        step = step.item()
                                        return y / step

torch.cond and while_loop take in no number from data (measured on torch 2.13). A tensor of double precision holds the very
float that Python had.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard, TypeVar

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, always_bound, certainly_bound_before, exits
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.counters import start_of
from exportlens.rewriting.memory.effects import names_before, visit
from exportlens.source.walking import children, walk

_DTYPES = {"int": "int64", "float": "float64", "bool": "bool"}
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert)
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)
_Loop = TypeVar("_Loop", ast.For, ast.While, ast.For | ast.While)
_Node = TypeVar("_Node", bound=ast.stmt)


def held_between_rounds(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where the numbers that branches on tensor data choose in the loops around `node` are held by tensors, and
    `node` of it; None where there are none. `kinds`, those at `node`, get to know them as tensors. Raises Refused where
    `node` chooses an int that the next round chooses again, and no tensor can hold it."""
    found = None
    for depth in range(len(_loops_around(source, node))):
        changed = _held_in(source, node, _loops_around(source, node)[depth], kinds, torch)
        if changed is not None:
            source, node = found = changed
    _refuse_chosen_again(source, node, kinds)
    return found


def _loops_around(source: Source, node: ast.If) -> list[ast.For | ast.While]:
    """Each loop around `node` in its function, the outermost first."""
    function = source.enclosing_function(node)
    loops: list[ast.For | ast.While] = []
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, (ast.For, ast.While)):
            loops.insert(0, each)
    return loops


def _refuse_chosen_again(source: Source, node: ast.If, kinds: Kinds) -> None:
    """torch.cond gives a chosen int as an int, and takes none that another one has chosen (measured on torch 2.13)."""
    function, loops = source.enclosing_function(node), _loops_around(source, node)
    if function is None or not loops or "falls" not in exits([node]):
        return
    entering = Liveness(function).before[loops[-1].body[0]]
    kept = entering - (always_bound(node.body) & always_bound(node.orelse))
    for name in bound([*node.body, *node.orelse]):
        kind = kinds.names.get(name)
        if name not in kept or not is_number(kind) or kind is None or kind.type != "int":
            continue
        if all(isinstance(value, ast.Constant) for value in _chosen(node, name)):
            raise Refused(
                f"`{name}` is an int that each round may choose anew: let a tensor hold it, as torch.full((), ...)"
            )


def _chosen(node: ast.If, name: str) -> list[ast.expr]:
    return [
        value
        for each in walk(node)
        if isinstance(each, ast.stmt)
        for one, value in bound_values(each)
        if one == name
    ]


def _held_in(
    source: Source, node: ast.If, loop: ast.For | ast.While, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    function = source.enclosing_function(node)
    if function is None:
        return None
    if isinstance(loop, ast.While) and (
        exits(loop.body) & {"returns", "breaks"} or Predicates(source, kinds, torch).from_data(loop.test)
    ):
        # It becomes a while_loop, which holds numbers in its own way.
        return None
    if not any(is_number(kinds.names.get(name)) for name in bound(loop.body)):
        return None
    chosen = dict.fromkeys(_bound_by_branch(source, node))

    def see(each: ast.stmt, now: Kinds) -> None:
        if isinstance(each, ast.If) and Predicates(source, now, torch).from_data(each.test):
            chosen.update(dict.fromkeys(_bound_by_branch(source, each)))

    visit(loop.body, kinds.copy(), see)
    return held(source, function, loop, node, list(chosen), kinds, torch, ("int", "float", "bool"))


def _bound_by_branch(source: Source, node: ast.If) -> list[str]:
    """The names that the arms bind, and what follows where an arm goes on with the next round."""
    block, index = source.block_of(node)
    following = block[index + 1 :] if "continues" in exits([node]) else []
    return bound([*node.body, *node.orelse, *following])


def held_in_while_loop(source: Source, loop: _Loop, kinds: Kinds, torch: str) -> tuple[Source, _Loop] | None:
    """The text where tensors hold the floats and bools that `loop`, which becomes a while_loop, binds, and the ints that its branches
    set, and the loop of it; None where there are none. `kinds`, those before the loop, get to know them as tensors."""
    function = source.enclosing_function(loop)
    if function is None:
        return None
    changed = held(source, function, loop, loop, bound(loop.body), kinds, torch, ("float", "bool"))
    source, loop = changed or (source, loop)
    function = source.enclosing_function(loop)
    set_by_branches = _set_by_branches(loop)
    if function is None or not set_by_branches:
        return changed
    return held(source, function, loop, loop, set_by_branches, kinds, torch, ("int",)) or changed


def _set_by_branches(loop: ast.For | ast.While) -> list[str]:
    """What the branches of `loop` bind anew, and not by counting on."""
    return [
        name
        for branch in walk(loop)
        if isinstance(branch, ast.If)
        for each in walk(branch)
        if isinstance(each, ast.Assign)
        for name, value in bound_values(each)
        if name not in reads(value)
    ]


def held(
    source: Source,
    function: Function,
    loop: ast.For | ast.While,
    node: _Node,
    names: list[str],
    kinds: Kinds,
    torch: str,
    types: Sequence[str],
) -> tuple[Source, _Node] | None:
    # What the `else` of a loop uses is no more of a round, and stands before what is read back behind it.
    behind = reads(loop.orelse) | set(bound(loop.orelse))
    names = [name for name in names if name not in behind and is_number(kinds.names.get(name))]
    if not names or not source.begins_line(loop):
        return None
    certain = certainly_bound_before(function, loop)
    liveness = Liveness(function)
    carried = liveness.before[loop.body[0]]
    after = liveness.live_after(loop)
    if isinstance(loop, ast.While):
        carried |= reads(loop.test) | after
    all_types = {name: kinds.names[name].type for name in names if name in certain and name in carried}
    numbers = {name: type_ for name, type_ in all_types.items() if type_ in types}
    # Where it is only compared, a float of double precision does what an int does.
    any_type = {
        name
        for name, type_ in all_types.items()
        if type_ in ("", "float") and name not in after and _only_compared(source, loop, name)
    }
    numbers |= dict.fromkeys(any_type, "float")
    rewrites = _Holding(source, loop, kinds, torch, numbers, any_type)
    may = rewrites.may_hold()
    numbers = {name: type_ for name, type_ in numbers.items() if name in may}
    if not numbers:
        return None
    rewrites.numbers = numbers
    rewrites.block(loop.body)
    if isinstance(loop, ast.While):
        rewrites.read_in_place(loop.test)
    indent, nl = source.indent_of(loop), source.newline
    begin, end = source.start(loop), source.span([loop])[1]
    starts = {name: start for name in numbers if (start := start_of(source, loop, name)) is not None}
    rewrites.swaps += [
        source.swap(start, rewrites.made(name, source.of(start))) for name, start in starts.items()
    ]
    head = "".join(
        f"{name} = {rewrites.made(name, name)}{nl}{indent}" for name in numbers if name not in starts
    )
    tail = "".join(f"{nl}{indent}{name} = {name}.item()" for name in numbers if name in after)
    same = _of_type(source, type(node))
    kinds.names |= rewrites.made_of_them(node, kinds)
    for name, type_ in numbers.items():
        kinds.assign(ast.Name(name, ast.Store()), Kind("tensor", _DTYPES[type_], 0))
    changed = Source(
        replaced(source.text, [*rewrites.swaps, Replacement(begin, begin, head), Replacement(end, end, tail)])
    )
    return changed, _of_type(changed, type(node))[same.index(node)]


def _of_type(source: Source, type_: type[_Node]) -> list[_Node]:
    found = [each for each in walk(source.tree) if isinstance(each, type_)]
    return sorted(found, key=source.start)


class _Holding:
    """The changes inside of `loop` with which tensors hold `numbers`, the names with their types."""

    def __init__(
        self,
        source: Source,
        loop: ast.For | ast.While,
        kinds: Kinds,
        torch: str,
        numbers: dict[str, str],
        any_type: set[str],
    ) -> None:
        self.source, self.loop, self.torch, self.numbers, self.any_type = (
            source,
            loop,
            torch,
            numbers,
            any_type,
        )
        self.swaps: list[Replacement] = []
        self.taken = every_name(source.tree)
        self.inside = kinds.copy()
        for name, type_ in numbers.items():
            self.inside.names[name] = Kind("scalar", type=type_)

    def may_hold(self) -> set[str]:
        """The names that the loop binds by plain assignments of numbers of their type, and reads in its own scope."""
        found: dict[str, list[bool]] = {}

        def see(node: ast.stmt, now: Kinds) -> None:
            for name, value in bound_values(node):
                if name in self.numbers:
                    kind = now.of(value)
                    is_number = kind.what in ("number", "size", "scalar")
                    fits = name in self.any_type or kind.type == self.numbers[name]
                    found.setdefault(name, []).append(is_number and fits)

        if self.numbers:
            visit(self.loop.body, self.inside.copy(), see)
        return {
            name
            for name, fit in found.items()
            if all(fit) and not self._is_used_elsewhere(name) and len(fit) == self._stores(name)
        }

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether another scope reads `name`, or how often a loop runs hangs on it."""
        other = (
            each.iter if isinstance(each, ast.For) else each
            for each in walk(self.loop)
            if isinstance(each, (*_OWN_SCOPE, ast.For))
        )
        return any(_is(one, name) for each in other for one in walk(each))

    def _stores(self, name: str) -> int:
        return sum(_is(each, name) and not isinstance(each.ctx, ast.Load) for each in walk(self.loop))

    def made_of_them(self, goal: ast.stmt, kinds: Kinds) -> dict[str, Kind]:
        """What is a number at `goal`, and from data as it is computed of `numbers`."""
        found: dict[str, Kind] = {}
        for name, kind in (names_before(self.loop.body, goal, self.inside.copy()) or {}).items():
            known = kinds.names.get(name)
            if kind.what == "scalar" and known is not None and known.what in ("number", "size"):
                found[name] = kind
        return found

    def made(self, name: str, value: str) -> str:
        """The text of the tensor that holds `value`."""
        dtype = f", dtype={self.torch}.float64" if self.numbers[name] == "float" else ""
        return f"{self.torch}.full((), {value}{dtype})"

    def read_in_place(self, node: ast.AST) -> None:
        self.swaps += self._reads(node, {})

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Take in the changes in `statements`."""
        current: dict[str, str] = {}
        for index, node in enumerate(statements):
            if isinstance(node, _SIMPLE):
                self._simple(node, statements[index:], current)
                continue
            for child in children(node):
                if not isinstance(child, ast.stmt):
                    self.swaps += self._reads(child, {})
            for _, block in ast.iter_fields(node):
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    self.block(block)
            for name in bound(node):
                current.pop(name, None)

    def _simple(self, node: ast.stmt, following: Sequence[ast.stmt], current: dict[str, str]) -> None:
        source = self.source
        for name in self.numbers:
            again = _count(node, name) > 0 and _reads_until_bound(following, name) > 1
            if again and name not in current and source.begins_line(node):
                # Read once: two reads of one tensor are two numbers to the tracer.
                current[name] = fresh(f"{name}_now", self.taken)
                begin = source.start(node)
                line = f"{current[name]} = {name}.item(){source.newline}{source.indent_of(node)}"
                self.swaps.append(Replacement(begin, begin, line))
        self._change(node, current)

    def _change(self, node: ast.stmt, current: dict[str, str]) -> None:
        """The statement with its reads, and what it binds as a tensor."""
        source = self.source
        values = {name: value for name, value in bound_values(node) if name in self.numbers}
        if isinstance(node, ast.AugAssign) and values:
            name = source.of(node.target)
            added = source.of(node.value, self._reads(node.value, current))
            text = source.computed(node, added, current.get(name, f"{name}.item()"))
            self.swaps.append(source.swap(node, f"{name} = {self.made(name, text)}"))
        elif isinstance(node, ast.Assign) and values:
            inside = set()
            for name, value in values.items():
                text = self.made(name, source.of(value, self._reads(value, current)))
                self.swaps.append(source.swap(value, text))
                inside |= {id(each) for each in walk(value)}
            self.swaps += [
                swap for each, swap in self._swapped(node.value, current) if id(each) not in inside
            ]
        else:
            self.swaps += self._reads(node, current)
        for name in values:
            current.pop(name, None)

    def _swapped(self, node: ast.AST, current: dict[str, str]) -> list[tuple[ast.Name, Replacement]]:
        """Each read of a number in `node`, with what it becomes."""
        return [
            (each, self.source.swap(each, current.get(each.id, f"{each.id}.item()")))
            for each in walk(node)
            if isinstance(each, ast.Name) and each.id in self.numbers and isinstance(each.ctx, ast.Load)
        ]

    def _reads(self, node: ast.AST, current: dict[str, str]) -> list[Replacement]:
        return [swap for _, swap in self._swapped(node, current)]


def is_number(kind: Kind | None) -> bool:
    return kind is not None and kind.what in ("number", "size", "scalar")


def _is(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _only_compared(source: Source, loop: ast.For | ast.While, name: str) -> bool:
    """Whether `loop` reads `name` to compare it, and for nothing else."""
    return all(
        isinstance(source.parents[each], ast.Compare)
        for each in walk(loop)
        if _is(each, name) and isinstance(each.ctx, ast.Load)
    )


def bound_values(node: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that a plain assignment binds, each with what it is bound to."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
        return [(name, ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value))]
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return []
    if len(target.elts) != len(value.elts) or any(isinstance(each, ast.Starred) for each in value.elts):
        return []
    return [
        (each.id, part)
        for each, part in zip(target.elts, value.elts, strict=True)
        if isinstance(each, ast.Name)
    ]


def _count(node: ast.stmt, name: str) -> int:
    """How often the statement reads `name`."""
    loads = sum(_is(each, name) and isinstance(each.ctx, ast.Load) for each in walk(node))
    return loads + (isinstance(node, ast.AugAssign) and _is(node.target, name))


def _reads_until_bound(statements: Sequence[ast.stmt], name: str) -> int:
    """How often simple statements of the block read `name` before it is bound anew."""
    count = 0
    for node in statements:
        if isinstance(node, _SIMPLE):
            count += _count(node, name)
        if name in bound(node):
            break
    return count
