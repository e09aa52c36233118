"""A `for` over a range as a `while` whose counter is a tensor, which while_loop carries and tensors are indexed by.

    for t in range(n):                    next_t = torch.full((), 0)
        h = cell(x[:, t], h)              while next_t < n:
                                   ->         t = next_t
                                              next_t = next_t + 1
                                              h = cell(x[:, t.unsqueeze(0)].select(1, 0), h)

The `while` is rewritten as any other.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.numbers.operands import read_out, scalar
from exportlens.rewriting.sizes.indexing import indexed_by_tensors
from exportlens.source.walking import walk

_INT_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_OWN_SCOPE = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def as_while(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> tuple[Source, ast.While, Kinds]:
    """The text with a `while` for `loop`, that statement, and the kinds just before it; `kinds` are those before `loop`. Raises
    Refused."""
    made = _Counted(source, loop, kinds, torch)
    changed, found, now = made.result()
    if made.at:
        changed, found = indexed_by_tensors(changed, found, now, torch) or (changed, found)
        changed, found = _selected(changed, found, made.at)
    return changed, found, now


class _Counted:
    def __init__(self, source: Source, loop: ast.For, kinds: Kinds, torch: str) -> None:
        function = source.enclosing_function(loop)
        if function is None or not source.begins_line(loop) or not source.begins_line(loop.body[0]):
            raise Refused("the loop is not inside a function, or shares its line with another statement")
        self.source, self.loop, self.kinds, self.torch = source, loop, kinds, torch
        self.start, self.stop, self.step = _bounds(loop, kinds)
        assert isinstance(loop.target, ast.Name)
        self.counter = loop.target.id
        if self.counter in bound(loop.body):
            raise Refused("the loop's body binds its counter")
        if self.counter in Liveness(function).live_after(loop):
            raise Refused(f"`{self.counter}` is used after the loop")
        self.taken = every_name(source.tree)
        # The name of the counter's tensor, where tensors are indexed by it.
        self.at = ""

    def result(self) -> tuple[Source, ast.While, Kinds]:
        source, loop, torch = self.source, self.loop, self.torch
        nl, indent = source.newline, source.indent_of(loop)
        inner = indent + source.indent_unit()
        name = "step" if self.counter == "_" else self.counter
        following = fresh(f"next_{name}", self.taken)
        lines = [f"{following} = {self._held(self.start) if self.start else f'{torch}.full((), 0)'}"]
        limit = source.of(self.stop)
        if not self._stays(self.stop):
            limit = fresh(f"end_of_{name}", self.taken)
            from_data = self.kinds.of(self.stop).what == "scalar"
            value = self._held(self.stop) if from_data else source.of(self.stop)
            lines.append(f"{limit} = {value}")
        head = len(lines)
        lines.append(f"while {following} {'<' if self.step > 0 else '>'} {limit}:")
        lines += (source.indent_unit() + each for each in source.header_comments(loop))
        rounds, swaps = self._numbers(following)
        rounds.append(f"{following} = {following} {'+' if self.step > 0 else '-'} {abs(self.step)}")
        lines += (source.indent_unit() + each for each in rounds)
        text = nl.join(
            [lines[0], *(indent + each for each in lines[1:]), source.block(loop.body, inner, swaps)]
        )
        if loop.orelse:
            text += nl.join(["", f"{indent}else:", source.block(loop.orelse, inner)])
        begin = source.start(loop)
        changed = Source(replaced(source.text, [Replacement(begin, source.span([loop])[1], text)]))
        found = next(
            each
            for each in walk(changed.tree)
            if isinstance(each, ast.While) and following in reads(each.test) and changed.start(each) > begin
        )
        block, index = changed.block_of(found)
        now = self.kinds.copy()
        for each in (self.start, self.stop):
            if isinstance(each, ast.Name) and now.of(each).what == "scalar":
                # `range` takes no other number.
                now.names[each.id] = replace(now.names[each.id], type="int")
        now.run(block[index - head : index])
        return changed, found, now

    def _held(self, number: ast.expr) -> str:
        """A tensor of int64 that holds `number`. What `int(t)` reads stays a tensor: strict tracing of torch 2.13 mistakes
        a number that is read again behind a while_loop with a torch.cond in it."""
        whole, rest = number, ""
        if (
            isinstance(number, ast.BinOp)
            and isinstance(number.op, (ast.Add, ast.Sub))
            and written_int(number.right) is not None
        ):
            whole = number.left
            rest = self.source.text[self.source.end(whole) : self.source.end(number)]
        found = read_out(whole)
        inner = found[1] if found is not None and found[0] in ("item", "int") else None
        kind = self.kinds.of(inner) if inner is not None else None
        if inner is None or kind is None or kind.what != "tensor" or reads(inner) & set(self.kinds.supposed):
            return f"{self.torch}.full((), {self.source.of(number)})"
        text = scalar(self.source, inner, self.kinds)
        if kind.dtype != "int64":
            if found is not None and found[0] == "item":
                return f"{self.torch}.full((), {self.source.of(number)})"
            text = f"{primary(text)}.long()"
        return f"{text}{rest}" if rest else f"{text}.clone()"

    def _stays(self, stop: ast.expr) -> bool:
        """Whether `stop` may be asked in each round: the loop does not change it, and no tensor data decides it."""
        if written_int(stop) is not None:
            return True
        path = dotted(stop)
        if path is None or self.kinds.of(stop).what == "scalar":
            return False
        changed = {
            dotted(each) for each in walk(self.loop) if isinstance(getattr(each, "ctx", None), ast.Store)
        }
        return path.partition(".")[0] not in bound(self.loop) and path not in changed

    def _numbers(self, following: str) -> tuple[list[str], list[Replacement]]:
        """What each round begins with, and how its body names its counter's tensor, where it is an index."""
        source = self.source
        uses = [each for each in walk(self.loop) if isinstance(each, ast.Name) and each.id == self.counter]
        read = [each for each in uses if each is not self.loop.target]
        indices = [each for each in read if self._is_index(each)]
        if not read:
            return [], []
        if not indices:
            return [f"{self.counter} = {following}.item()"], []
        if len(indices) == len(read):
            self.at = self.counter
            return [f"{self.counter} = {following}"], []
        self.at = fresh(f"{self.counter}_index", self.taken)
        lines = [f"{self.at} = {following}", f"{self.counter} = {following}.item()"]
        return lines, [source.swap(each, self.at) for each in indices]

    def _is_index(self, use: ast.Name) -> bool:
        """Whether `use` is an index, alone or in arithmetic on ints. Raises Refused where it is one of something else than a
        tensor."""
        source = self.source
        node: ast.AST = use
        plain = True
        for outer in source.ancestors(use):
            if outer is self.loop or isinstance(outer, _OWN_SCOPE):
                return False
            if isinstance(outer, ast.Subscript) and node is outer.slice:
                if not self._is_of_tensor(outer):
                    raise Refused(
                        f"`{source.of(outer)}` takes an item by the loop's counter, which while_loop makes symbolic"
                    )
                return plain
            if isinstance(outer, ast.Slice):
                plain = False
            elif isinstance(outer, ast.BinOp):
                plain = plain and isinstance(outer.op, _INT_ARITHMETIC)
            elif not isinstance(outer, (ast.Tuple, ast.UnaryOp)):
                plain = False
            node = outer
        return False

    def _is_of_tensor(self, node: ast.Subscript) -> bool:
        """Whether `node` takes an item of a tensor, as far as is known once a round has run."""
        now = self.kinds.copy()
        now.run(self.loop.body)
        return "tensor" in (self.kinds.of(node.value).what, now.of(node.value).what)


def _selected(source: Source, loop: ast.While, at: str) -> tuple[Source, ast.While]:
    """The text where views that the loop reads by the tensor `at` are `x.select(1, at.item())`, which still is one. Raises Refused where
    another index would have to be known to torch."""
    swaps = []
    for each in walk(loop):
        if not isinstance(each, ast.Subscript):
            continue
        parts = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
        left = [
            index
            for index, part in enumerate(parts)
            if at in reads(part) and not _is_unsqueezed(part) and not _compares(part)
        ]
        if not left:
            continue
        others = [part for index, part in enumerate(parts) if index not in left]
        if len(left) != 1 or not isinstance(each.ctx, ast.Load) or not all(map(_keeps_or_takes, others)):
            raise Refused(
                f"`{source.of(each)}` takes an item by the loop's counter, which while_loop makes symbolic"
            )
        view = [":" if index in left else source.of(part) for index, part in enumerate(parts)]
        while view and view[-1] == ":":
            view.pop()
        base = primary(source.of(each.value)) + (f"[{', '.join(view)}]" if set(view) - {":"} else "")
        dim = sum(isinstance(part, ast.Slice) for part in parts[: left[0]])
        swaps.append(source.swap(each, f"{base}.select({dim}, {primary(source.of(parts[left[0]]))}.item())"))
    begin = source.start(loop)
    changed = Source(replaced(source.text, swaps))
    loops = (each for each in walk(changed.tree) if isinstance(each, ast.While))
    return changed, next(each for each in loops if changed.start(each) == begin)


def _is_unsqueezed(part: ast.expr) -> bool:
    """Whether an index is a tensor with one dimension already."""
    return isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "unsqueeze"


def _compares(part: ast.expr) -> bool:
    """Whether an index is a mask, of which nothing is read as a number: `x[y == y[i]]`."""
    return any(isinstance(each, ast.Compare) for each in walk(part))


def _keeps_or_takes(part: ast.expr) -> bool:
    """Whether an index is a slice or an int that is written out."""
    return isinstance(part, ast.Slice) or written_int(part) is not None


def _bounds(loop: ast.For, kinds: Kinds) -> tuple[ast.expr | None, ast.expr, int]:
    """Where the range starts, None for 0, what it stops before, and its step. Raises Refused."""
    call = loop.iter
    if (
        not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range")
        or call.keywords
        or not 1 <= len(call.args) <= 3
        or not isinstance(loop.target, ast.Name)
        or not all(_is_int(each, kinds) for each in call.args)
    ):
        raise Refused("only `for i in range(n)` of ints, in steps that are written, becomes a while_loop")
    step = written_int(call.args[2]) if len(call.args) == 3 else 1
    if not step:
        raise Refused("only `for i in range(n)` of ints, in steps that are written, becomes a while_loop")
    return (None, call.args[0], 1) if len(call.args) == 1 else (call.args[0], call.args[1], step)


def _is_int(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `range` takes `node` as an int of Python, as far as is known: it takes no float."""
    return kinds.of(node).what in ("number", "size", "scalar", "unknown")
