"""Tensors that are made of numbers get the device of those that they meet: torch.cond and while_loop take one device only.

`total = torch.full((), 0.0)` that an arm adds to is on the device of what is added behind that arm, and on the host behind the
other. On the host alone nothing changes by `device=x.device`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.calls.devices import is_computed_with
from exportlens.rewriting.code.names import arguments, bound, dotted, registers_buffer
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.home import ELSEWHERE, NUMBER, Home, Names
from exportlens.rewriting.kinds.homes import FACTORIES, Homes
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def on_one_device(before: Source, node: ast.AST, text: str, kinds: Kinds) -> str:
    """`text`, made of `before`, in which tensors that are made of numbers in the function around `node` have the device of what
    they meet; `kinds` are those at `node`."""
    source = Source(text)
    function = source.same_function(before, node)
    return text if function is None else replaced(text, _Devices(source, function, kinds).swaps())


def is_on_host(source: Source, function: Function, node: ast.expr, kinds: Kinds) -> bool:
    """Whether what the name `node` reads in `function` certainly was made there, with no device named; `kinds` are those before."""
    reads = _Devices(source, function, kinds).homes().reads
    homes = reads.get(node, []) if isinstance(node, ast.Name) else []
    return bool(homes) and all(each.made and not each.elsewhere for each in homes)


def index_beside(source: Source, node: ast.Subscript, index: ast.expr, text: str, kinds: Kinds) -> str:
    """`text` of the tensor `index` of `node`, moved to what is indexed where that may be on the host and the index elsewhere.

    Of a tensor without dimensions as an index eager reads the number, wherever that is; an index tensor has to be on the host, or
    with what it is an index of.
    """
    path = _path_of(node.value)
    if path is None:
        return text
    begun = _is_begun_on_host(source, path, kinds)
    if not begun and not _makes_any(source, node, kinds):
        return text
    base, given = _reads(source, node, (node.value, index), kinds)
    on_host = begun or any(each.made for each in base)
    moved = on_host and any(each.elsewhere or each.like for each in given)
    return f"{primary(text)}.to({path}.device)" if moved else text


def is_given_from_elsewhere(source: Source, node: ast.Subscript, value: ast.expr, kinds: Kinds) -> bool:
    """Whether `value`, which is written to `node`, may be on the host where that is not, or the other way round: what is copied in
    place may be, and what is written by an index tensor may not, unless it has no dimensions."""
    if kinds.of(value).what != "tensor" or kinds.of(value).rank == 0:
        return False
    path = _path_of(node.value)
    begun = path is not None and _is_begun_on_host(source, path, kinds)
    if not begun and not _makes_any(source, node, kinds):
        return False
    base, given = _reads(source, node, (node.value, value), kinds)
    if begun or any(each.made for each in base):
        return any(each.elsewhere or each.like for each in given)
    return any(each.made for each in given)


def _reads(source: Source, node: ast.expr, wanted: Sequence[ast.expr], kinds: Kinds) -> list[list[Home]]:
    """Where what is read at each of `wanted` is, in the function around `node`."""
    outermost = [each for each in source.ancestors(node) if isinstance(each, ast.FunctionDef)]
    reads = _Devices(source, outermost[-1], kinds).homes().reads if outermost else {}
    return [reads.get(each, []) for each in wanted]


def _makes_any(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the function around `node` makes any tensor of numbers; most do not, and are not followed."""
    outermost = [each for each in source.ancestors(node) if isinstance(each, ast.FunctionDef)]
    calls = (each for function in outermost[-1:] for each in walk(function) if isinstance(each, ast.Call))
    return any(kinds.qualified(each.func) in FACTORIES for each in calls)


def _path_of(node: ast.expr) -> str | None:
    """The name or path of what `node` is or copies."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("clone", "detach")
    ):
        node = node.func.value
    return dotted(node)


def _is_begun_on_host(source: Source, path: str, kinds: Kinds) -> bool:
    """Whether `path` is an attribute that a constructor makes on the host, and that does not move with the model."""
    owner, _, attr = path.rpartition(".")
    if not owner.startswith("self") or registers_buffer(source.tree, attr):
        return False
    own = f"self.{attr}"
    for each in walk(source.tree):
        if not isinstance(each, ast.ClassDef):
            continue
        methods = {one.name: one for one in each.body if isinstance(one, ast.FunctionDef)}
        constructor = methods.get("__init__")
        if constructor is None:
            continue
        called = {dotted(one.func) for one in walk(constructor) if isinstance(one, ast.Call)}
        begins = [constructor, *(one for name, one in methods.items() if f"self.{name}" in called)]
        if not any(isinstance(one.ctx, ast.Store) for one in _read_as(own, begins)):
            continue
        names = Names()
        for function in begins:
            Homes(function, names, kinds, lambda _: False)
        if names.homes.get(own, NUMBER).flat.made:
            return True
    return False


# What other things have that a function may be given as well.
_OF_OTHERS = frozenset(name for each in (list, tuple, dict, set, str, float, complex) for name in dir(each))


def _read_as(path: str, functions: Sequence[Function]) -> Iterator[ast.Attribute]:
    for each in functions:
        yield from (one for one in walk(each) if isinstance(one, ast.Attribute) and dotted(one) == path)


class _Devices:
    def __init__(self, source: Source, function: Function, kinds: Kinds) -> None:
        self.source, self.function, self.kinds = source, function, kinds
        self.entry = kinds_before(function, function.body[0], kinds)

    def homes(self) -> Homes:
        names = Names(certain={each.arg for each in arguments(self.function.args)})
        names.homes = {each.arg: self._given(each) for each in arguments(self.function.args)}
        return Homes(self.function, names, self.kinds, self._is_tensor)

    def swaps(self) -> list[Replacement]:
        homes, swaps, settled = self.homes(), [], set()
        own = [each.arg for each in arguments(self.function.args)]
        for call, paths in homes.needs.items():
            for path in sorted(paths, key=lambda each: each not in own):
                if all(self._is_there(path, call, place) for place in homes.places[call]):
                    swaps += self._with_device(call, path)
                    settled.add(call)
                    break
        for call, ways in homes.arms.items():
            swaps += self._moved_before(call, ways, settled)
        return swaps

    def _moved_before(
        self, call: ast.Call, ways: Sequence[tuple[Home, Home, Names]], settled: set[ast.Call]
    ) -> list[Replacement]:
        """`total = total.to(row.device)` in front of the arms of a torch.cond of which one gives `total` as it was, made where nothing
        of that device was known yet, and the other one computes it with `row`."""
        statement = self.source.enclosing_statement(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            return []
        block, index = self.source.block_of(statement)
        names = {each.id for each in call.args[1:3] if isinstance(each, ast.Name)}
        arms = [each for each in block[:index] if isinstance(each, ast.FunctionDef) and each.name in names]
        target = statement.targets[0]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(arms) != 2 or len(names) != 2 or not self.source.begins_line(arms[0]):
            return []
        between = set(bound([each for each in block[block.index(arms[0]) : index] if each not in arms]))
        lines = []
        for number, each in enumerate(targets):
            if not isinstance(each, ast.Name) or not any(_keeps(arm, number, each.id) for arm in arms):
                continue
            device = self._device_of_other(call, ways, number, each.id, settled)
            if device is not None and not {each.id, *_names_in(device)} & between:
                lines.append(f"{each.id} = {each.id}.to({device})")
        if not lines:
            return []
        start, indent, newline = (
            self.source.start(arms[0]),
            self.source.indent_of(arms[0]),
            self.source.newline,
        )
        text = f"{newline}{indent}".join(lines)
        return [Replacement(start, start, f"{text}{newline}{newline}{indent}")]

    def _device_of_other(
        self,
        call: ast.Call,
        ways: Sequence[tuple[Home, Home, Names]],
        number: int,
        name: str,
        settled: set[ast.Call],
    ) -> str | None:
        """The text of the device of what one arm gives for `name`, where the other one gives what is made on the host."""
        found: dict[str, None] = {}
        for one, other, names in ways:
            parts = [_part(one, number), _part(other, number)]
            made, there = sorted(parts, key=lambda each: not each.made)
            if not made.made or there.made or made.made <= settled or name not in names.certain:
                continue
            found.update(dict.fromkeys(there.like))
        own = [each.arg for each in arguments(self.function.args)]
        for path in sorted(found, key=lambda each: (each not in own, not self._is_asked(each))):
            if path == name or not all(self._is_there(path, call, names) for _, _, names in ways):
                continue
            if "." in path or self._is_asked(path):
                return f"{path}.device"
            # Nothing but the operators around it says that it is a tensor.
            return f"{ast.unparse(call.func).removesuffix('cond')}as_tensor({path}).device"
        return None

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether an attribute of the model certainly is a tensor."""
        return self.kinds.of(node).what == "tensor" or (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and registers_buffer(self.source.tree, node.attr)
        )

    def _given(self, parameter: ast.arg) -> Home:
        """Where an argument is: with itself, where it certainly is a tensor."""
        kind = self.entry.of(ast.Name(parameter.arg, ast.Load()))
        if kind.what in ("number", "size", "static", "none"):
            return NUMBER
        is_tensor = (
            kind.what == "tensor"
            and parameter not in self._optional()
            and parameter.arg not in self.kinds.supposed
            and (is_computed_with(self.source, self.function, parameter) or self._is_asked(parameter.arg))
        )
        return Home(like=(parameter.arg,), elsewhere=True) if is_tensor else ELSEWHERE

    def _is_asked(self, name: str) -> bool:
        """Whether the function reads an attribute of `name` that no list and no number has."""
        reads = (each for each in walk(self.function) if isinstance(each, ast.Name) and each.id == name)
        owned = (self.source.parents[each] for each in reads)
        return any(isinstance(each, ast.Attribute) and each.attr not in _OF_OTHERS for each in owned)

    def _optional(self) -> list[ast.arg]:
        """The parameters that may be left out, and be no tensor then."""
        args = self.function.args
        places = [*args.posonlyargs, *args.args]
        left = places[len(places) - len(args.defaults) :]
        named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        return [*left, *(each for each, value in named if value is not None)]

    def _is_there(self, path: str, call: ast.Call, names: Names) -> bool:
        """Whether the tensor at `path` certainly is there where `call` makes one, and not on the host."""
        home = names.homes.get(path)
        if "." in path:
            node = parse_python(path).body[0]
            is_tensor = isinstance(node, ast.Expr) and self._is_tensor(node.value)
            return is_tensor and (home is None or (path in home.like and not home.made))
        if home is None or path not in names.certain or path not in home.like or home.made:
            return False
        own = [each for each in arguments(self.function.args) if each.arg == path]
        if own and not self._given(own[0]).like:
            return False
        return self._kinds_at(call).of(ast.Name(path, ast.Load())).what == "tensor"

    def _kinds_at(self, call: ast.Call) -> Kinds:
        """The kinds before the statement of the function itself that holds `call`."""
        statement = self.source.enclosing_statement(call)
        while self.source.enclosing_function(statement) is not self.function:
            statement = self.source.enclosing_statement(
                self.source.enclosing_function(statement) or self.function
            )
        return kinds_before(self.function, statement, self.kinds)

    def _with_device(self, call: ast.Call, path: str) -> list[Replacement]:
        """`call` with the device of what is at `path`."""
        given = [*call.args, *(each.value for each in call.keywords)]
        last = max((self.source.end(each) for each in given), default=self.source.end(call))
        end = self.source.end(call) - 1
        between = self.source.text[last:end]
        if "#" in between or not given:
            return []
        at = last + len(between.rstrip())
        comma = " " if between.rstrip().endswith(",") else ", "
        return [Replacement(at, at, f"{comma}device={path}.device")]


def _part(home: Home, number: int) -> Home:
    """The home of one of what an arm gives."""
    if home.items is None:
        return home
    return home.items[number].flat if number < len(home.items) else NUMBER


def _keeps(arm: ast.FunctionDef, number: int, name: str) -> bool:
    """Whether `arm` gives `name` at that number as it was before it."""
    last = arm.body[-1]
    if not isinstance(last, ast.Return) or last.value is None or name in bound(arm.body):
        return False
    given = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    return number < len(given) and _path_of(given[number]) == name


def _names_in(text: str) -> set[str]:
    return {each.id for each in walk(parse_python(text)) if isinstance(each, ast.Name)}
