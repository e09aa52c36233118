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
from dataclasses import dataclass

from exportlens.inference.tensors import dtype_family
from exportlens.rewriting.code.liveness import certainly_bound_before, exits
from exportlens.rewriting.code.names import append_of, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import LOCAL, UNKNOWN_KIND, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.example_rows import Examples, appended_value
from exportlens.rewriting.lists.masked_uses import MaskedUses
from exportlens.rewriting.lists.most_rounds import MostRounds
from exportlens.rewriting.lists.padded_buffers import starts_empty
from exportlens.rewriting.lists.selected_uses import Rows, Uses
from exportlens.rewriting.lists.started_lists import started_apart
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.walking import walk

_FLOATS = ("float", "float32")
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "bool")
_JOINED = (".unsqueeze(0)", ".unsqueeze(dim=0)", "[None]")


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
    if not isinstance(node, ast.If) or all(
        append_of(each) is None for each in walk(node) if isinstance(each, ast.stmt)
    ):
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
    before = kinds_before(function, loop, kinds)
    rounds = MostRounds(source, loop, name, before)
    examples = Examples(source, function, loop, appends, before, torch, rounds)
    return _Counted(source, function, loop, appends, name, start, before, torch, rounds, examples).text()


def _by_branches(source: Source, loop: ast.For | ast.While, node: ast.stmt) -> bool:
    """Whether nothing but branches and loops over what is there lies between `loop` and `node`."""
    for outer in source.ancestors(node):
        if outer is loop:
            return True
        if not isinstance(outer, (ast.If, ast.For)) or (isinstance(outer, ast.For) and outer.orelse):
            return False
    return False


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
    rounds: MostRounds
    examples: Examples

    def text(self) -> str | None:
        source, torch, name = self.source, self.torch, self.name
        rows = [self.examples.kind(each) for each in self.appends]
        most = self.rounds.most(self.appends)
        if most is None or not all(map(self._is_let_be, self.appends)):
            return None
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
        joined = all(ast.unparse(appended_value(each)).endswith(_JOINED) for each in self.appends)
        at_end = Rows(name, mask, torch, self.loop, None, shape, number, default, joined, floats, self.kinds)
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

    def _filling(self, append: ast.stmt, filled: str, count: str, places: str, shape: str) -> Replacement:
        source, torch = self.source, self.torch
        value, kind = source.of(appended_value(append)), self.examples.kind(append)
        plain = isinstance(appended_value(append), (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
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
            ints = "int64" if number == "int" else "float32"
            return [f"{filled} = {torch}.zeros({most}, dtype={torch}.{ints})"], "number", number, False
        if any(each.what != "tensor" for each in rows):
            return None
        dtypes = {each.dtype for each in rows}
        floats = all(dtype_family(each) == "float" for each in dtypes)
        if any(each.rank == 0 for each in rows) and all(each.rank in (0, None) for each in rows):
            dtype: str | None = next(iter(dtypes)) if len(dtypes) == 1 else None
            example = self.examples.computed() if dtype not in _DTYPES else None
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
        first = self.examples.held() or self.examples.computed()
        if first is None:
            return None
        text = f"{filled} = {one}.new_zeros(({most}, *{one}.shape))"
        return [f"{one} = {first}", text], "row", "", floats

    def _like(self) -> str | None:
        """The name of a tensor that is there before the loop and is read in it."""
        certain = certainly_bound_before(self.function, self.loop)
        names = sorted(reads(self.loop) & certain)
        return next(
            (each for each in names if self.kinds.names.get(each, UNKNOWN_KIND).what == "tensor"), None
        )

    # --- what is done with it ---------------------------------------------------------------------------

    def _is_let_be(self, append: ast.stmt) -> bool:
        """Whether nothing writes to what is appended in place."""
        kind, value = self.examples.kind(append), appended_value(append)
        if kind.what != "tensor" or (kind.fresh and not isinstance(value, ast.Name)):
            return True
        written = {
            each.id
            for base in written_bases(self.function)
            for each in walk(base)
            if isinstance(each, ast.Name)
        }
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
        alone = value is not None and [(each.start, each.text) for each in own] == [
            (self.source.start(value), self.name)
        ]
        if not alone or gone is None or ast.unparse(anew).partition(" = ")[0] != self.name:
            return swaps
        if own[0].end != end:
            return swaps
        return [*(each for each in swaps if each not in own), gone]


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
            if isinstance(each, ast.Name)
            and isinstance(each.ctx, ast.Load)
            and self.source.start(each) < last
        ]


class _Masked(_Selected, MaskedUses):
    def __init__(self, source: Source, function: Function, rows: Rows, last: int | None) -> None:
        self.last = last
        MaskedUses.__init__(self, source, function, rows, rows.name, every_name(source.tree))
