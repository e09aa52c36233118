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
from exportlens.rewriting.lists.asked_within import asked_within
from exportlens.rewriting.lists.example_rows import Examples, appended_value
from exportlens.rewriting.lists.filling_up import Filling, found_behind
from exportlens.rewriting.lists.last_items import is_made
from exportlens.rewriting.lists.masked_uses import MaskedUses
from exportlens.rewriting.lists.most_rounds import MostRounds
from exportlens.rewriting.lists.padded_behind import Padded, padded_behind
from exportlens.rewriting.lists.padded_buffers import starts_empty
from exportlens.rewriting.lists.selected_uses import Rows, Uses
from exportlens.rewriting.lists.started_lists import started_apart
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.rewriting.memory.moving import written_bases
from exportlens.rewriting.sizes.same_number import is_same_number
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

_FLOATS = ("float", "float32")
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "bool")
_NUMBERS = ("number", "size", "scalar")
_JOINED = (".unsqueeze(0)", ".unsqueeze(dim=0)", "[None]")


def counted_rows(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text where a list that the loop around `node` fills is a tensor; None where there is none, or where more is done
    with one."""
    if isinstance(node, ast.If):
        source, node = started_apart(source, node)
    function = source.enclosing_function(node)
    if function is None:
        return None
    for loop in (node, *source.ancestors(node)):
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
    first = _first_items(start, name)
    if not isinstance(start, (ast.Assign, ast.AnnAssign)) or first is None:
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
    return _Counted(
        source, function, loop, appends, name, start, first, before, torch, rounds, examples
    ).text()


def _first_items(start: ast.stmt, name: str) -> list[ast.expr] | None:
    """What is in the list that `start` makes: `[]`, or `[x]`; None where it makes something else."""
    if not isinstance(start, (ast.Assign, ast.AnnAssign)):
        return None
    if starts_empty(start, name):
        return []
    targets = start.targets if isinstance(start, ast.Assign) else [start.target]
    alone = [dotted(each) for each in targets] == [name] and isinstance(start.value, ast.List)
    items = start.value.elts if isinstance(start.value, ast.List) and alone else []
    return None if not items or any(isinstance(each, ast.Starred) for each in items) else items


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
    # What the list begins with.
    first: list[ast.expr]
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
        if self.first and not all(map(self._may_begin, self.first)):
            return None
        taken = every_name(source.tree)
        count, filled, mask, one, places = (
            fresh(wish, taken)
            for wish in (f"{name}_count", f"{name}_rows", f"kept_{name}", f"{name}_row", f"{name}_places")
        )
        nl, indent = source.newline, source.indent_of(self.loop)
        total = self._total(most)
        made = self._begun(rows, filled, one, most)
        inside = None if made is None else asked_within(self, count, filled, made[2])
        filling = found_behind(source.block_of(self.loop), name)
        padded = padded_behind(
            source.block_of(self.loop), name, parse_python(total, mode="eval").body, self.function
        )
        if made is None or inside is None or ((filling or padded) and self._is_written_behind(filling)):
            return None
        lines, shape, number, floats = made
        if number and inside:
            # What asks the list beside tensors of the model brings the count to their device.
            lines[-1] = f"{lines[-1].removesuffix(')')}, device={count}.device)"
        lines.append(f"{places} = {torch}.arange({total}, device={filled}.device)")
        behind = [f"{mask} = {places} < {count}"]
        used = self._padded_behind(padded, mask, count) if padded is not None and not number else None
        if filling is not None:
            used = self._filled_up(filling, total, filled, mask, count, number)
            if used is None:
                return None
        elif padded is not None and used is not None:
            kept = fresh("kept", taken)
            behind.append(
                f"{name} = [{torch}.where({kept}, each, {padded.value}) for {kept}, each in zip({mask}, {filled})]"
            )
        else:
            default = number in ("int", "float")
            joined = all(ast.unparse(appended_value(each)).endswith(_JOINED) for each in self.appends)
            at_end = Rows(
                name, mask, torch, self.loop, None, shape, number, default, joined, floats, self.kinds
            )
            uses = self._uses(at_end, filled)
            if uses is None:
                return None
            used = uses[0]
            behind.append(
                f"{name} = {filled}" if isinstance(uses[1], MaskedUses) else f"{name} = {filled}[{mask}]"
            )
        begin, end = source.start(self.loop), source.span([self.loop])[1]
        swaps = [
            source.swap(self.start, self._started(count)),
            Replacement(begin, begin, "".join(each + nl + indent for each in lines)),
            *(self._filling(each, filled, count, places, number or shape, inside) for each in self.appends),
            Replacement(end, end, "".join(nl + indent + each for each in behind)),
            *(each for each in inside if not any(self._is_in(each, append) for append in self.appends)),
            *used,
        ]
        return replaced(source.text, swaps)

    def _started(self, count: str) -> str:
        """What stands in the place of the statement that made the list."""
        if not self.first:
            return f"{count} = {self.torch}.full((), 0)"
        line = self.source.newline + self.source.indent_of(self.start)
        return f"{self.source.of(self.start)}{line}{count} = {self.torch}.full((), {len(self.first)})"

    def _total(self, most: str) -> str:
        """How many items there are at most."""
        if not self.first or self._is_asked_for_length(most):
            return most
        whole = isinstance(parse_python(most, mode="eval").body, ast.BinOp) and not most.startswith("(")
        return f"{len(self.first)} + {f'({most})' if whole else most}"

    def _rest(self, most: str) -> str:
        """How many rows there are behind those that the list begins with."""
        whole = isinstance(parse_python(most, mode="eval").body, ast.BinOp) and not most.startswith("(")
        if self._is_asked_for_length(most):
            return f"({most} - {len(self.first)})"
        return f"({most})" if whole else most

    def _is_asked_for_length(self, most: str) -> bool:
        """Whether `most` is what `while len(outs) < most` asks for, which counts what the list begins with."""
        test = self.loop.test if isinstance(self.loop, ast.While) else None
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        return any(
            part is not None
            and ast.unparse(part) == f"len({self.name}) < {ast.unparse(ast.parse(most, mode='eval').body)}"
            for part in parts
        )

    def _may_begin(self, item: ast.expr) -> bool:
        """Whether the list may begin with `item`: a tensor of the kind of the rows, that nothing writes in place, or such a number."""
        kind = self.kinds.of(item)
        rows = [self.examples.kind(each) for each in self.appends]
        if kind.what in _NUMBERS:
            return all(each.what in _NUMBERS and each.type == kind.type in ("int", "float") for each in rows)
        if kind.what != "tensor" or any(each.what != "tensor" for each in rows):
            return False
        dtypes = {each.dtype for each in (kind, *rows)} - {None}
        families = {dtype_family(each) for each in dtypes}
        written = {
            one.id for base in written_bases(self.function) for one in walk(base) if isinstance(one, ast.Name)
        }
        if len(families) > 1 or (len(dtypes) > 1 and families != {"float"}):
            return False
        return (kind.fresh and not isinstance(item, ast.Name)) or not written & reads(item)

    def is_of_one_shape(self) -> bool:
        """Whether what the list begins with may be taken for tensors of the shape of what is appended: they are not written out in
        sizes of their own, or torch.stack takes them all."""
        if not any(map(is_made, self.first)):
            return True
        return any(
            isinstance(each, ast.Call)
            and self.kinds.qualified(each.func) == "torch.stack"
            and ast.unparse(each.args[0] if each.args else each) == self.name
            for each in walk(self.function)
        )

    def _is_written_behind(self, filling: Filling | None) -> bool:
        """Whether an item is written in place behind the loop: it is a tensor of its own then, and in the list more than once where
        it fills it up."""
        block, at = self.source.block_of(self.loop)
        behind = [each for each in block[at + 1 :] if filling is None or each is not filling.statement]
        return any(self.name in reads(base) for each in behind for base in written_bases(each))

    def _filled_up(
        self, filling: Filling, total: str, filled: str, mask: str, count: str, number: str
    ) -> list[Replacement] | None:
        """What changes behind the loop where the list is filled up to as many items as it has at most; it is a list again then."""
        source, torch, name = self.source, self.torch, self.name
        block, at = source.block_of(self.loop)
        between = block[at + 1 : block.index(filling.statement)]
        told = parse_python(total, mode="eval").body
        if not is_same_number(filling.total, told, self.function):
            return None
        if (reads(told) | reads(filling.total)) & set(bound([self.loop, *between])):
            return None
        swaps = []
        for each in (one for node in between for one in walk(node)):
            if isinstance(each, ast.Name) and each.id == name:
                call = source.parents[each]
                if not (isinstance(call, ast.Call) and dotted(call.func) == "len" and len(call.args) == 1):
                    return None
                swaps.append(source.swap(call, f"{count}.item()"))
        item = self._filler(filling.item, filled, count)
        now = kinds_before(self.function, filling.statement, self.kinds)
        if item is None or not repeatable(filling.item, now):
            return None
        line = source.newline + source.indent_of(filling.statement)
        if number:
            kind = now.of(filling.item)
            if kind.what != "number" or kind.type != number:
                return None
            chosen = f"[each.item() for each in {torch}.where({mask}, {filled}, {item})]"
            return [*swaps, source.swap(filling.statement, f"{name} = {chosen}")]
        begun = ""
        if not item.isidentifier():
            wish = fresh(
                "last" if ast.unparse(filling.item) == f"{name}[-1]" else "filler", every_name(source.tree)
            )
            begun, item = f"{wish} = {item}{line}", wish
        kept = fresh("kept", every_name(source.tree))
        chosen = f"[{torch}.where({kept}, each, {item}) for {kept}, each in zip({mask}, {filled})]"
        return [*swaps, source.swap(filling.statement, f"{begun}{name} = {chosen}")]

    def _padded_behind(self, padded: Padded, mask: str, count: str) -> list[Replacement] | None:
        """What changes behind the loop where the list has all items that it is padded to: what asks how many it has."""
        source, swaps = self.source, []
        asks = Rows(self.name, mask, self.torch, self.loop, None, "row", "", False, False, False, self.kinds)
        questions = _Selected(source, self.function, asks, None)
        for each in questions.uses:
            parent = source.parents[each]
            question = questions.question(each)
            if question is not None:
                text = f"{mask}.any()"
                swaps.append(source.swap(question[0], text if question[1] else f"not {text}"))
            elif isinstance(parent, ast.Call) and dotted(parent.func) == "len":
                if not set(padded.statements) & set(source.ancestors(each)):
                    swaps.append(source.swap(parent, f"{count}.item()"))
            elif source.enclosing_statement(each) is not padded.joined:
                # What else reads the items would read those that were missing.
                return None
        return swaps

    def _filler(self, item: ast.expr, filled: str, count: str) -> str | None:
        """`item`, of the rows instead of the list; None where it does more with the list than to take its first or last item."""
        swaps = []
        for each in walk(item):
            if isinstance(each, ast.Name) and each.id == self.name:
                taken = self.source.parents[each]
                if not isinstance(taken, ast.Subscript) or taken.value is not each:
                    return None
                place = {"0": f"{count}.clamp(max=1) - 1", "-1": f"{count} - 1"}.get(ast.unparse(taken.slice))
                if place is None:
                    return None
                # An index may be on the host where the rows are on another device.
                row = f"{filled}[({place}).reshape(1)].squeeze(0)"
                swaps.append(self.source.swap(taken, row))
        return self.source.of(item, swaps)

    def _is_in(self, swap: Replacement, node: ast.AST) -> bool:
        return self.source.start(node) <= swap.start and swap.end <= self.source.end(node)

    def _filling(
        self,
        append: ast.stmt,
        filled: str,
        count: str,
        places: str,
        shape: str,
        inside: list[Replacement],
    ) -> Replacement:
        """What stands for `append`, with the swaps `inside` of it."""
        source, torch = self.source, self.torch
        own = [each for each in inside if self._is_in(each, append)]
        value, kind = source.of(appended_value(append), own), self.examples.kind(append)
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
        if self.first and rows[0].what in _NUMBERS:
            zeros = f"*[0] * {self._rest(most)}" if rows[0].type == "int" else f"*[0.0] * {self._rest(most)}"
            return [f"{filled} = {torch}.tensor([*{self.name}, {zeros}])"], "number", rows[0].type, False
        if self.first:
            # torch.stack takes them where they are all alike, in which the rows are.
            text = f"{filled} = {torch}.stack([*{self.name}, *[{torch}.zeros_like({self.name}[0])] * {self._rest(most)}])"
            scalar = all(each.rank == 0 for each in rows)
            floats = all(dtype_family(each.dtype) == "float" for each in rows)
            shape = "scalar" if scalar else "row" if self.is_of_one_shape() else "rows"
            return [text], shape, "", floats
        if all(each.what in _NUMBERS for each in rows):
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
