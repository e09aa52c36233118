"""Lists that a loop fills where data says, and that data may leave: the rows of a tensor, and how many of them are filled.

    outs = []                               outs_count = torch.full((), 0)
    for row in x:                           outs_row = f(torch.zeros_like(x[0]))
        if row.sum() < 0:                   outs_rows = outs_row.new_zeros((len(x), *outs_row.shape))
            break                           outs_places = torch.arange(len(x), device=outs_rows.device)
        outs.append(f(row))                 for row in x:
    if not outs:                  ->            if row.sum() < 0:
        return x.sum(0)                             break
    return torch.stack(outs).mean(0)            outs_rows = outs_rows.index_put((outs_count.reshape(1),), f(row).unsqueeze(0))
                                                outs_count = outs_count + 1
                                            kept_outs = outs_places < outs_count
                                            outs = outs_rows[kept_outs]
                                            if not kept_outs.any():
                                                return x.sum(0)
                                            return outs.mean(0)

The loop then hands on nothing but tensors, and is left or branched in like any other. Only where the number of rounds does not
hang on data, and where each use of the list is known to be the same for rows that a mask selects.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Const
from exportlens.rewriting.code.liveness import certainly_bound_before, exits
from exportlens.rewriting.code.names import append_of, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import LOCAL, UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.masked_uses import MaskedUses
from exportlens.rewriting.lists.padded_buffers import starts_empty
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.rewriting.lists.selected_uses import Rows, Uses
from exportlens.rewriting.lists.started_lists import started_apart
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

_FLOATS = ("float", "float32")
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "bool")
_SIZES = ("number", "size")
_JOINED = (".unsqueeze(0)", ".unsqueeze(dim=0)", "[None]")
_UP_TO = (ast.Lt, ast.LtE)


def counted_rows(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text where a list that the loop around `node` fills is a tensor; None where there is none, or where more is done
    with one."""
    if isinstance(node, ast.If):
        source, node = started_apart(source, node)
    function = source.enclosing_function(node)
    if function is None:
        return None
    for loop in source.ancestors(node):
        if loop is function:
            return None
        if isinstance(loop, (ast.For, ast.While)) and not loop.orelse and source.begins_line(loop):
            appends = [append_of(each) for each in walk(loop) if isinstance(each, ast.stmt)]
            for name in dict.fromkeys(each[0] for each in appends if each is not None):
                text = _counted(source, function, loop, name, kinds, torch)
                if text is not None:
                    return text
    return None


def counted_behind_break(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """As `counted_rows`, for a branch that fills the list behind a `break` of its loop, whose rounds then append as often as the
    `break` says, whatever the branch does."""
    if not isinstance(node, ast.If) or all(append_of(each) is None for each in walk(node) if isinstance(each, ast.stmt)):
        return None
    inner: ast.AST = node
    for outer in source.ancestors(node):
        if isinstance(outer, ast.For) and isinstance(inner, ast.stmt) and inner in outer.body:
            before = outer.body[: outer.body.index(inner)]
            leaves = any("breaks" in exits([each]) for each in before)
            return counted_rows(source, node, kinds, torch) if leaves else None
        if not isinstance(outer, ast.If):
            return None
        inner = outer
    return None


def _counted(
    source: Source, function: Function, loop: ast.For | ast.While, name: str, kinds: Kinds, torch: str
) -> str | None:
    block, at = source.block_of(loop)
    begun = [each for each in block[:at] if name in bound(each)]
    if len(begun) != 1 or not source.begins_line(begun[0]):
        return None
    start = begun[0]
    if not isinstance(start, (ast.Assign, ast.AnnAssign)) or not starts_empty(start, name):
        return None
    appends = [
        each
        for each in walk(loop)
        if isinstance(each, ast.stmt) and (found := append_of(each)) is not None and found[0] == name
    ]
    if not all(source.begins_line(each) and _by_branches(source, loop, each) for each in appends):
        return None
    made = _Counted(source, function, loop, appends, name, start, kinds_before(function, loop, kinds), torch)
    return made.text()


def _by_branches(source: Source, loop: ast.For | ast.While, node: ast.stmt) -> bool:
    """Whether nothing but branches lies between `loop` and `node`."""
    for outer in source.ancestors(node):
        if outer is loop:
            return True
        if not isinstance(outer, ast.If):
            return False
    return False


def _value(append: ast.stmt) -> ast.expr:
    found = append_of(append)
    assert found is not None
    return found[1]


@dataclass
class _Counted:
    source: Source
    function: Function
    loop: ast.For | ast.While
    appends: list[ast.stmt]
    name: str
    start: ast.Assign | ast.AnnAssign
    kinds: Kinds
    torch: str

    def text(self) -> str | None:
        source, torch, name = self.source, self.torch, self.name
        times = _most(self.loop.body, set(self.appends))[1]
        rounds = self._rounds(self.loop.iter) if isinstance(self.loop, ast.For) else self._rounds_asked(times)
        rows = [self._kind(each) for each in self.appends]
        if rounds is None or not all(map(self._is_let_be, self.appends)) or self._is_counted_by_data():
            return None
        most = rounds if times == 1 else f"{times} * {rounds}"
        taken = every_name(source.tree)
        count, filled, mask, one, places = (
            fresh(wish, taken)
            for wish in (f"{name}_count", f"{name}_rows", f"kept_{name}", f"{name}_row", f"{name}_places")
        )
        nl, indent = source.newline, source.indent_of(self.loop)
        made = self._begun(rows, filled, one, most)
        if made is None:
            return None
        lines, shape, number, floats = made
        default = number in ("int", "float")
        joined = all(ast.unparse(_value(each)).endswith(_JOINED) for each in self.appends)
        at_end = Rows(
            name, mask, torch, self.loop, None, shape, number, default, joined, floats, self.kinds
        )
        uses = self._uses(at_end, filled)
        inside = self._inside(count)
        if uses is None or inside is None:
            return None
        whole = isinstance(uses[1], MaskedUses)
        lines.append(f"{places} = {torch}.arange({most}, device={filled}.device)")
        behind = [
            f"{mask} = {places} < {count}",
            f"{name} = {filled}" if whole else f"{name} = {filled}[{mask}]",
        ]
        begin, end = source.start(self.loop), source.span([self.loop])[1]
        swaps = [
            source.swap(self.start, f"{count} = {torch}.full((), 0)"),
            Replacement(begin, begin, "".join(each + nl + indent for each in lines)),
            *(self._filling(each, filled, count, places, number or shape) for each in self.appends),
            Replacement(end, end, "".join(nl + indent + each for each in behind)),
            *inside,
            *uses[0],
        ]
        return replaced(source.text, swaps)

    def _kind(self, append: ast.stmt) -> Kind:
        return kinds_before(self.function, append, self.kinds).of(_value(append))

    def _filling(self, append: ast.stmt, filled: str, count: str, places: str, shape: str) -> Replacement:
        source, torch = self.source, self.torch
        value, kind = source.of(_value(append)), self._kind(append)
        plain = isinstance(_value(append), (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        row = value if plain else f"({value})"
        if kind.what == "scalar":
            value = f"{torch}.full((), {value})"
        elif kind.what == "tensor" and kind.rank is None and shape == "scalar":
            # Torch stacks nothing else beside another one without dimensions.
            value = f"{row}.reshape(())"
        line = f"{source.newline}{source.indent_of(append)}"
        if shape in ("scalar", "int", "float"):
            text = f"{torch}.where({places} == {count}, {value}, {filled})"
        else:
            # It raises where the rows are not alike, as `torch.stack` does.
            text = f"{filled}.index_put(({count}.reshape(1),), {row}.unsqueeze(0))"
        return source.swap(append, f"{filled} = {text}{line}{count} = {count} + 1")

    # --- how many rounds there are ----------------------------------------------------------------------

    def _rounds(self, over: ast.expr) -> str | None:
        """The greatest number of rounds, which no data decides."""
        kinds, source = self.kinds, self.source
        if isinstance(over, ast.Call) and not over.keywords and not isinstance(over.func, ast.Attribute):
            called = ast.unparse(over.func)
            if called == "range":
                if any(kinds.of(each).what not in _SIZES for each in over.args):
                    return None
                return source.of(over.args[0]) if len(over.args) == 1 else f"len({source.of(over)})"
            if called in ("enumerate", "zip", "reversed") and over.args:
                found = [self._rounds(each) for each in (over.args if called == "zip" else over.args[:1])]
                return next((each for each in found if each is not None), None)
            return None
        if isinstance(over, ast.Call):
            listed = isinstance(over.func, ast.Attribute) and over.func.attr == "tolist" and not over.args
            return self._rounds(over.func.value) if listed and isinstance(over.func, ast.Attribute) else None
        kind = kinds.of(over)
        part = isinstance(over, ast.Subscript) and dotted(over.value) is not None
        if not (part or dotted(over) is not None) or "\n" in source.of(over):
            return None
        if part and not is_plain(over, kinds):
            return None
        if kind.what == "tensor" and (kind.rank or 1) > 0:
            return f"len({source.of(over)})"
        return f"len({source.of(over)})" if kinds.has_elements(over) else None

    def _rounds_asked(self, times: int) -> str | None:
        """As `_rounds`, of a `while` that asks how many items there are, or counts up from a number that is not negative."""
        test, source = self.loop.test if isinstance(self.loop, ast.While) else None, self.source
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for part in parts:
            if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.ops[0], _UP_TO):
                continue
            limit = part.comparators[0]
            more = " + 1" if isinstance(part.ops[0], ast.LtE) else ""
            kind = self.kinds.of(limit)
            if kind.what not in _SIZES or kind.type != "int" or reads(limit) & set(bound(self.loop)):
                continue
            if any(isinstance(each, ast.Call) and dotted(each.func) != "len" for each in walk(limit)):
                continue
            text = f"({source.of(limit)}{more})" if more or isinstance(limit, ast.BinOp) else source.of(limit)
            if ast.unparse(part.left) == f"len({self.name})" and times == 1 and not more:
                return text
            if self._counts_up(part.left):
                return text
        return None

    def _counts_up(self, counter: ast.expr) -> bool:
        """Whether `counter`, with something added to it, begins at 0 or above and grows in each round that goes on."""
        if isinstance(counter, ast.BinOp) and isinstance(counter.op, ast.Add):
            more = counter.right
            if not (isinstance(more, ast.Constant) and type(more.value) is int and more.value >= 0):
                return False
            counter = counter.left
        if not isinstance(counter, ast.Name):
            return False
        name = counter.id
        start = self.kinds.names.get(name, UNKNOWN_KIND)
        begins = start.value.value if isinstance(start.value, Const) else None
        if type(begins) is not int or begins < 0:
            return False
        steps = [each for each in self.loop.body if name in bound(each)]
        if len(steps) != 1 or sum(one == name for one in _stored(self.loop)) != 1:
            return False
        step = steps[0]
        before = self.loop.body[: self.loop.body.index(step)]
        if any("continues" in exits([each]) for each in before):
            return False
        grows = isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add)
        value = step.value if grows and isinstance(step, ast.AugAssign) else None
        return isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0

    def _is_counted_by_data(self) -> bool:
        """Whether the rounds bind anew what tells their number."""
        return isinstance(self.loop, ast.For) and bool(reads(self.loop.iter) & set(bound(self.loop)))

    # --- what the rows begin with -----------------------------------------------------------------------

    def _begun(
        self, rows: list[Kind], filled: str, one: str, most: str
    ) -> tuple[list[str], str, str, bool] | None:
        """The lines that make the rows, of zeros; of what shape they are, of what type the numbers in them, and whether
        they are floats."""
        torch = self.torch
        if all(each.what in ("number", "size", "scalar") for each in rows):
            types = {each.type for each in rows}
            if len(types) != 1 or not types <= {"int", "float"}:
                return None
            number = types.pop()
            dtype = "int64" if number == "int" else "float32"
            return [f"{filled} = {torch}.zeros({most}, dtype={torch}.{dtype})"], "number", number, False
        if any(each.what != "tensor" for each in rows):
            return None
        dtypes = {each.dtype for each in rows}
        floats = all(dtype_family(each) == "float" for each in dtypes)
        if any(each.rank == 0 for each in rows) and all(each.rank in (0, None) for each in rows):
            dtype = next(iter(dtypes)) if len(dtypes) == 1 else None
            example = self._example() if dtype not in _DTYPES else None
            if example is not None:
                return [f"{filled} = {primary(example)}.new_zeros({most})"], "scalar", "", floats
            if dtypes <= set(_FLOATS):
                dtype = "float32"
            if dtype not in _DTYPES:
                return None
            like = self._like()
            begun = f"{like}.new_zeros(" if like is not None else f"{torch}.zeros("
            return [f"{filled} = {begun}{most}, dtype={torch}.{dtype})"], "scalar", "", floats
        if len(dtypes) != 1 or len({each.rank for each in rows}) != 1:
            return None
        example = self._held() or self._example()
        if example is None:
            return None
        text = f"{filled} = {one}.new_zeros(({most}, *{one}.shape))"
        return [f"{one} = {example}", text], "row", "", floats

    def _like(self) -> str | None:
        """The name of a tensor that is there before the loop and is read in it."""
        certain = certainly_bound_before(self.function, self.loop)
        names = sorted(reads(self.loop) & certain)
        return next((each for each in names if self.kinds.names.get(each, UNKNOWN_KIND).what == "tensor"), None)

    def _held(self) -> str | None:
        """The name that is appended, where it is a tensor of the same kind before the loop."""
        names = {_value(each).id for each in self.appends if isinstance(_value(each), ast.Name)}
        if len(names) != 1 or any(not isinstance(_value(each), ast.Name) for each in self.appends):
            return None
        name = names.pop()
        row, known = self._kind(self.appends[0]), self.kinds.names.get(name, UNKNOWN_KIND)
        if name not in certainly_bound_before(self.function, self.loop) or row.rank is None:
            return None
        return name if (known.what, known.rank) == ("tensor", row.rank) else None

    def _example(self) -> str | None:
        """What is appended, computed of zeros in the place of the loop's own rows, which index what there is."""
        for append in self.appends:
            value = self._of_first_round(_value(append), append, 4)
            if value is None:
                continue
            there = certainly_bound_before(self.function, self.loop)
            own = set(bound(self.function.body))
            text = ast.unparse(value)
            if reads(value) & own - there or "\n" in text:
                continue
            if is_plain(parse_python(text, mode="eval").body, self.kinds):
                return text
        return None

    def _of_first_round(self, value: ast.expr, append: ast.stmt, depth: int) -> ast.expr | None:
        """`value` by what was there before the loop; None where it hangs on what rounds hand on."""
        given = self._given()
        changed = set(bound(self.loop))
        value = copy.deepcopy(value)
        for name in sorted(reads(value) & changed):
            text = given.get(name)
            if text is None and self.kinds.names.get(name, UNKNOWN_KIND).what in ("tensor", "number"):
                # What the rounds hand on begins before them, and keeps its shape.
                continue
            if text is None:
                binding = self._only_binding(name, append)
                if binding is None or depth == 0:
                    return None
                inner = self._of_first_round(binding, append, depth - 1)
                if inner is None:
                    return None
                text = ast.unparse(inner)
            value = _With(name, parse_python(text, mode="eval").body).visit(value)
        return value

    def _only_binding(self, name: str, append: ast.stmt) -> ast.expr | None:
        """What gives `name` its value in each round, in front of `append`."""
        stores = [
            each
            for each in walk(self.loop)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        first = self.source.parents[stores[0]]
        same = [self.source.parents[each] for each in stores]
        if all(isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) for each in same):
            return first.value if isinstance(first, ast.Assign) else None
        if len(stores) != 1:
            return None
        node = first
        if not isinstance(node, ast.Assign) or node.targets != stores or name in reads(node.value):
            return None
        if not any(node in block[:at] for block, at in self._blocks_above(append)):
            return None
        return node.value

    def _blocks_above(self, node: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], int]]:
        while node is not self.loop:
            yield self.source.block_of(node)
            outer = self.source.parents[node]
            if not isinstance(outer, ast.stmt):
                return
            node = outer

    def _given(self) -> dict[str, str]:
        """What stands for the names that the loop's own target binds."""
        if isinstance(self.loop, ast.While):
            return {}
        target, over = self.loop.target, self.loop.iter
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, over)]
        found: dict[str, str] = {}
        while pairs:
            part, one = pairs.pop()
            called = ast.unparse(one.func) if isinstance(one, ast.Call) else ""
            if isinstance(one, ast.Call) and called == "enumerate" and isinstance(part, ast.Tuple):
                if len(part.elts) == 2 and isinstance(part.elts[0], ast.Name):
                    found[part.elts[0].id] = "0" if len(one.args) == 1 else self.source.of(one.args[1])
                    pairs.append((part.elts[1], one.args[0]))
            elif isinstance(one, ast.Call) and called == "zip" and isinstance(part, ast.Tuple):
                pairs += list(zip(part.elts, one.args, strict=False))
            elif isinstance(part, ast.Name) and called == "range" and isinstance(one, ast.Call):
                found[part.id] = "0" if len(one.args) == 1 else self.source.of(one.args[0])
            elif isinstance(part, ast.Name) and self.kinds.of(one).what == "tensor" and self._rounds(one):
                found[part.id] = f"{self.torch}.zeros_like({self.source.of(one)}[0])"
        return found

    # --- what is done with it ---------------------------------------------------------------------------

    def _is_let_be(self, append: ast.stmt) -> bool:
        """Whether nothing writes to what is appended in place."""
        kind, value = self._kind(append), _value(append)
        if kind.what != "tensor" or (kind.fresh and not isinstance(value, ast.Name)):
            return True
        written = {each.id for base in written_bases(self.function) for each in walk(base) if isinstance(each, ast.Name)}
        written -= {self.name}
        if kind.roots is None:
            return not written
        return not written & (reads(value) | {each for each in kind.roots if not each.startswith(LOCAL)})

    def _inside(self, count: str) -> list[Replacement] | None:
        """What changes where the loop asks how many there are; None where it does more with the list."""
        source, swaps = self.source, []
        own = {id(each) for append in self.appends for each in walk(append)}
        begin, end = source.end(self.start), source.end(self.loop)
        for each in walk(self.function):
            if not isinstance(each, ast.Name) or each.id != self.name or id(each) in own:
                continue
            if not begin <= source.start(each) < end:
                continue
            parent = source.parents[each]
            asks = isinstance(parent, ast.Call) and dotted(parent.func) == "len" and len(parent.args) == 1
            if source.start(each) < source.start(self.loop) or not asks:
                return None
            assert isinstance(parent, ast.Call)
            if not isinstance(source.parents[parent], ast.Compare):
                return None
            swaps.append(source.swap(parent, count))
        return swaps

    def _uses(self, rows: Rows, filled: str) -> tuple[list[Replacement], Uses] | None:
        """What changes behind the loop, and what says so."""
        block, at = self.source.block_of(self.loop)
        anew = next((each for each in block[at + 1 :] if self.name in bound(each)), None)
        if anew is not None and not isinstance(anew, (ast.Assign, ast.AnnAssign)):
            return None
        last = None if anew is None else self.source.end(anew)
        masked = _Masked(self.source, self.function, rows, last)
        if rows.shape == "scalar":
            swaps = masked.swaps()
            if swaps is not None and masked.extreme:
                return swaps, masked
        plain = _Selected(self.source, self.function, rows, last)
        swaps = plain.swaps()
        if swaps is not None and anew is not None:
            swaps = self._without_own(anew, swaps)
        return None if swaps is None else (swaps, plain)

    def _without_own(self, anew: ast.stmt, swaps: list[Replacement]) -> list[Replacement]:
        """Without `outs = outs`, as `outs = torch.stack(outs)` would become."""
        begin, end = self.source.start(anew), self.source.end(anew)
        own = [each for each in swaps if begin <= each.start and each.end <= end]
        gone = self.source.without(anew)
        value = anew.value if isinstance(anew, ast.Assign) and len(anew.targets) == 1 else None
        alone = value is not None and [(each.start, each.text) for each in own] == [(self.source.start(value), self.name)]
        if not alone or gone is None or ast.unparse(anew).partition(" = ")[0] != self.name:
            return swaps
        if own[0].end != end:
            return swaps
        return [*(each for each in swaps if each not in own), gone]


def _stored(loop: ast.AST) -> list[str]:
    return [each.id for each in walk(loop) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)]


class _With(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.value) if node.id == self.name else node


class _Selected(Uses):
    """The uses up to `last`, where the name becomes another's."""

    def __init__(self, source: Source, function: Function, rows: Rows, last: int | None) -> None:
        self.last = last
        super().__init__(source, function, rows)

    def _loads(self) -> list[ast.expr]:
        loads = super()._loads()
        if self.last is None:
            return loads
        last = self.last
        return [
            each
            for each in loads
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and self.source.start(each) < last
        ]


class _Masked(_Selected, MaskedUses):
    def __init__(self, source: Source, function: Function, rows: Rows, last: int | None) -> None:
        self.last = last
        MaskedUses.__init__(self, source, function, rows, rows.name, every_name(source.tree))


def _most(block: Sequence[ast.stmt], appends: set[ast.stmt]) -> tuple[int | None, int]:
    """How often `block` appends at most on a way that falls out of its end, None where none does, and on any way."""
    falls: int | None = 0
    most = 0
    for each in block:
        if falls is None:
            break
        if each in appends:
            falls += 1
        elif isinstance(each, ast.If):
            ways = [_most(arm, appends) for arm in (each.body, each.orelse)]
            most = max(most, *(falls + way[1] for way in ways))
            ended = [falls + way[0] for way in ways if way[0] is not None]
            falls = max(ended) if ended else None
        elif exits([each]) != {"falls"} and isinstance(each, (ast.Continue, ast.Break, ast.Return, ast.Raise)):
            most = max(most, falls)
            falls = None
    return falls, max(most, falls or 0)
