"""Lists that a loop fills as data says, up to a number that does not hang on data, and that are then padded to that number: a tensor
of so many rows, and a count of those that are filled.

    keep = []                                      keep_count = torch.full((), 0)
    for i in order:                                keep = torch.stack([torch.tensor(-1)] * k)
        if not alive[i]:                           for i in order:
            continue                                   if not alive[i]:
        keep.append(i)                     ->              continue
        if len(keep) == k:                             keep = torch.where(torch.arange(k) == keep_count, i, keep)
            break                                      keep_count = keep_count + 1
        alive = alive & far(i)                         if keep_count == k:
    while len(keep) < k:                                   break
        keep.append(torch.tensor(-1))                  alive = alive & far(i)
    return torch.stack(keep)                       return keep
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import append_of, appended_to, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.filling_up import Filling, filling_of
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.walking import walk

BUFFER = "Fill the rows of a tensor, and count them"
# What makes a tensor of numbers that are known, wherever it is called.
_MAKING = frozenset(
    {"tensor", "zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "new_tensor", "zeros_like", "ones_like", "full_like"}
)  # fmt: skip
# Of which dtype a float is where only that it is one is known.
_FLOATS = {"float": "float32"}
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def padded_buffer(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str | None:
    """The whole text where a list that the loop around `node` fills is a tensor; None where there is none, or where more is done
    with one."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    for loop in source.ancestors(node):
        if loop is function:
            return None
        if isinstance(loop, ast.For) and not loop.orelse and source.begins_line(loop):
            for append in [each for each in walk(loop) if isinstance(each, ast.stmt) and appended_to(each)]:
                text = _buffered(source, function, loop, append, kinds, torch)
                if text is not None:
                    return text
    return None


def _buffered(
    source: Source, function: Function, loop: ast.For, append: ast.stmt, kinds: Kinds, torch: str
) -> str | None:
    found = append_of(append)
    block, at = source.block_of(loop)
    if found is None or not source.begins_line(append) or not _is_reached_by_branches(source, loop, append):
        return None
    name, value = found
    begun = [each for each in block[:at] if name in bound(each)]
    if (
        len(begun) != 1
        or not isinstance(begun[0], (ast.Assign, ast.AnnAssign))
        or not starts_empty(begun[0], name)
    ):
        return None
    padding = next((pad for each in block[at + 1 :] if (pad := filling_of(each, name)) is not None), None)
    if padding is None:
        return None
    made = _Buffer(source, function, loop, append, name, value, begun[0], padding, kinds, torch)
    return made.text() if made.is_bounded() and made.is_padded() and made.is_let_be() else None


def starts_empty(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    """Whether `node` is `name = []`, or `name: list[int] = []`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if [dotted(each) for each in targets] != [name] or node.value is None:
        return False
    return ast.unparse(node.value) in ("[]", "list()")


def _is_reached_by_branches(source: Source, loop: ast.For, node: ast.AST) -> bool:
    """Whether nothing but branches lies between `loop` and `node`."""
    for outer in source.ancestors(node):
        if outer is loop:
            return True
        if not isinstance(outer, ast.If):
            return False
    return False


@dataclass
class _Buffer:
    source: Source
    function: Function
    loop: ast.For
    append: ast.stmt
    name: str
    value: ast.expr
    start: ast.Assign | ast.AnnAssign
    padding: Filling
    kinds: Kinds
    torch: str

    def is_bounded(self) -> bool:
        """Whether the list never has more items than it is padded to."""
        most = self.padding.total
        if isinstance(most, ast.Constant):
            return type(most.value) is int and most.value > 0 and self._is_left_in_time()
        kind = self.kinds.of(most)
        told = {dotted(each) for each in walk(most) if isinstance(each, (ast.Name, ast.Attribute))}
        sized = kind.what in ("number", "size") and kind.type == "int"
        if kind.from_data or not (sized or dotted(most) is not None):
            return False
        written = [
            each
            for each in walk(self.function)
            if isinstance(each, (ast.Name, ast.Attribute))
            and not isinstance(each.ctx, ast.Load)
            and dotted(each) in told
            and self.source.start(each) > self.source.start(self.start)
        ]
        return not written and self._is_left_in_time()

    def _is_left_in_time(self) -> bool:
        most, length = ast.unparse(self.padding.total), f"len({self.name})"
        block, at = self.source.block_of(self.append)
        full = {f"{length} == {most}", f"{length} >= {most}", f"{most} == {length}", f"{most} <= {length}"}
        # Right behind what is appended, or before anything else of a round.
        for each in (*block[at + 1 : at + 2], self.loop.body[0]):
            leaves = isinstance(each, ast.If) and not each.orelse and isinstance(each.body[0], ast.Break)
            if leaves and isinstance(each, ast.If) and ast.unparse(each.test) in full:
                return True
        less = {f"{length} < {most}", f"{most} > {length}"}
        for outer in self.source.ancestors(self.append):
            if outer is self.loop:
                break
            if isinstance(outer, ast.If) and self.append in [
                one for each in outer.body for one in walk(each)
            ]:
                parts = outer.test.values if isinstance(outer.test, ast.BoolOp) else [outer.test]
                joined = not isinstance(outer.test, ast.BoolOp) or isinstance(outer.test.op, ast.And)
                if joined and any(ast.unparse(each) in less for each in parts):
                    return True
        return ast.unparse(self.loop.iter) == f"range({most})"

    def is_padded(self) -> bool:
        """Whether the list is padded by what may as well be made before the loop, and is like what is appended."""
        item, source = self.padding.item, self.source
        for each in walk(item):
            called = (
                each.func.attr if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) else ""
            )
            if isinstance(each, ast.Call) and called not in _MAKING:
                return False
            if isinstance(each, (ast.Lambda, ast.NamedExpr, ast.ListComp)):
                return False
        needed = reads(item) | reads(self.padding.total)
        begin = source.start(self.loop)
        changed = {
            name
            for each in walk(self.function)
            if isinstance(each, ast.stmt) and source.start(each) >= begin
            for name in bound(each)
        }
        own = set(bound(self.function.body))
        if needed & changed or (needed & own) - certainly_bound_before(self.function, self.loop):
            return False
        row, pad = self._row(), kinds_before(self.function, self.loop, self.kinds).of(item)
        if self._is_of_ints(row):
            return pad.what == "number" and pad.type == "int"
        if row.what != "tensor" or pad.what != "tensor":
            return False
        known = [_FLOATS.get(each.dtype or "", each.dtype) for each in (row, pad)]
        return (None in known or known[0] == known[1]) and (
            None in (row.rank, pad.rank) or row.rank == pad.rank
        )

    def _row(self) -> Kind:
        return kinds_before(self.function, self.append, self.kinds).of(self.value)

    def _is_of_ints(self, row: Kind) -> bool:
        """Whether the list is of ints of Python that are read out of tensors."""
        named = isinstance(self.value, ast.Name)
        return row.what == "scalar" and row.type == "int" and (named or self._read_from() is not None)

    def _read_from(self) -> ast.expr | None:
        """The tensor of `int(t)` and `t.item()`."""
        call = self.value
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        if isinstance(call.func, ast.Name) and call.func.id == "int" and len(call.args) == 1:
            return call.args[0]
        is_item = isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args
        return call.func.value if is_item and isinstance(call.func, ast.Attribute) else None

    def is_let_be(self) -> bool:
        """Whether nothing writes to what is appended in place."""
        padding = {id(each) for each in walk(self.padding.statement)}
        written = {
            each.id
            for base in written_bases(self.function)
            for each in walk(base)
            if isinstance(each, ast.Name) and id(each) not in padding
        }
        row = self._row()
        return not written & (reads(self.value) | {self.name}) and not written & set(row.roots or ())

    def text(self) -> str | None:
        source, torch, name = self.source, self.torch, self.name
        count = fresh(f"{name}_count", every_name(source.tree))
        nl, most = source.newline, source.of(self.padding.total)
        row, item = self._row(), source.of(self.padding.item)
        begin, line = source.start(self.loop), f"{nl}{source.indent_of(self.append)}"
        read = self._read_from() if self._is_of_ints(row) else None
        if read is not None:
            row, value = kinds_before(self.function, self.append, self.kinds).of(read), source.of(read)
            if row.what != "tensor" or row.dtype not in ("int64", "int32"):
                return None
            value += "" if row.rank == 0 else ".reshape(())"
            value += "" if row.dtype == "int64" else ".long()"
            row = Kind("tensor", "int64", 0)
            rows = f"{name} = {torch}.full(({most},), {item})"
        elif self._is_of_ints(row):
            value, row = f"{torch}.full((), {source.of(self.value)})", Kind("tensor", "int64", 0)
            rows = f"{name} = {torch}.full(({most},), {item})"
        else:
            value, rows = source.of(self.value), f"{name} = {torch}.stack([{item}] * {most})"
        filled = f"{torch}.where({torch}.arange({most}, device={name}.device) == {count}, {value}, {name})"
        if row.rank != 0 or row.dtype is None or row.dtype in _FLOATS:
            # It raises where the rows are not alike, as `torch.stack` does.
            filled = f"{name}.index_put(({count}.reshape(1),), ({value}).unsqueeze(0))"
            filled = filled.replace(f"({value})", value) if isinstance(self.value, _PLAIN) else filled
        rows += nl + source.indent_of(self.loop)
        swaps = [
            source.swap(self.start, f"{count} = {torch}.full((), 0)"),
            Replacement(begin, begin, rows),
            source.swap(
                self.append,
                f"{name} = {filled}{line}{count} = {count} + 1",
            ),
            self._without(self.padding.statement),
        ]
        uses = list(self._uses(count, most))
        if None in uses:
            return None
        return replaced(source.text, [*swaps, *(each for each in uses if each is not None)])

    def _without(self, statement: ast.stmt) -> Replacement:
        start, end = self.source.span([statement])
        begin = self.source.text.rfind("\n", 0, start) + 1
        behind = self.source.text.find("\n", end)
        return Replacement(begin, behind + 1 if behind >= 0 else end, "")

    def _uses(self, count: str, most: str) -> Iterator[Replacement | None]:
        """What reads the list, in words of the tensor and the count; None for what has none."""
        source = self.source
        known = {id(each) for one in (self.start, self.padding.statement) for each in walk(one)}
        known |= {
            id(each) for each in walk(self.append) if isinstance(each, ast.Name) and each.id == self.name
        }
        last, padded = source.span([self.loop])[1], source.span([self.padding.statement])[1]
        for each in walk(self.function):
            if not isinstance(each, ast.Name) or each.id != self.name or id(each) in known:
                continue
            parent = source.parents[each]
            around = source.parents.get(parent)
            if not isinstance(each.ctx, ast.Load) or source.enclosing_function(each) is not self.function:
                yield None
            elif isinstance(parent, ast.Call) and dotted(parent.func) == "len":
                if source.start(each) > padded:
                    yield source.swap(parent, most)
                elif source.start(each) > last and not isinstance(around, ast.Compare):
                    yield source.swap(parent, f"{count}.item()")
                else:
                    yield source.swap(parent, count) if isinstance(around, ast.Compare) else None
            elif source.start(each) < padded:
                empty = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
                yield source.swap(parent, f"{count} == 0") if empty and isinstance(around, ast.If) else None
            else:
                yield self._stacked(parent)

    def _stacked(self, call: ast.AST) -> Replacement | None:
        """`torch.stack(keep)` is the tensor."""
        called = self.kinds.qualified(call.func) if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or not call.args:
            return None
        if self._is_of_ints(self._row()):
            # On another device, or of another dtype, it is made of the tensor.
            asked = {each.arg: self.source.of(each.value) for each in call.keywords}
            if called not in ("torch.tensor", "torch.as_tensor", "torch.LongTensor") or len(call.args) > 1:
                return None
            if asked.keys() - {"device", "dtype"}:
                return None
            given = ", ".join(f"{key}={text}" for key, text in asked.items())
            return self.source.swap(call, f"{self.name}.to({given})" if given else self.name)
        if called != "torch.stack":
            return None
        along = [*call.args[1:], *(each.value for each in call.keywords if each.arg == "dim")]
        whole = len(call.args) + len(call.keywords) == 1 + len(along)
        first = not along or ast.unparse(along[0]) == "0"
        return self.source.swap(call, self.name) if whole and first else None
