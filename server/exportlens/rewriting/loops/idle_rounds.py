"""Rounds of a loop that are left out where they have no rows: `if n == 0: continue` in front of what picks `n` rows.

    for i, n in enumerate(counts):             for i, n in enumerate(counts):
        end = start + n                            end = start + n
        if n == 0:                        ->       outs.append(self.experts[i](rows[start:end]))
            continue                               start = end
        outs.append(self.experts[i](rows[start:end]))
        start = end
    return torch.cat(outs)

Without the question such a round adds nothing: what has no rows gives no rows, and is put together with others along these.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import Liveness, live_before
from exportlens.rewriting.code.names import append_of, arguments, assigned_pairs, bound, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.memory.moving import written_bases
from exportlens.rewriting.sizes.no_rows import NONE, NoRows

RUN_ANYWAY = "Run the rounds without rows, too: they add nothing"
# What is written at the rows that the second argument tells, or picks, along the first.
_AT_ROWS = frozenset(
    {"index_add_", "index_copy_", "index_fill_", "scatter_", "scatter_add_", "scatter_reduce_"}
)


def run_without_rows(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The whole text without the branch `node`, which continues a loop in rounds without rows; None where it is no such branch."""
    loop, function = source.parents[node], source.enclosing_function(node)
    alone = not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Continue)
    if not isinstance(loop, ast.For) or function is None or not alone or node not in loop.body:
        return None
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    start, end = source.line_start(source.start(node)), source.span([node])[1]
    if source.comments_between(start, end) or not _Round(source, function, loop, node, kinds).is_idle():
        return None
    # What a comment above says of such rounds is true further on.
    following = source.text[end:]
    return replaced(
        source.text, [Replacement(start, end + len(following) - len(following.lstrip("\r\n")), "")]
    )


class _Round:
    def __init__(self, source: Source, function: Function, loop: ast.For, node: ast.If, kinds: Kinds) -> None:
        self.source, self.function, self.loop, self.node = source, function, loop, node
        self.count, self.bounds = _asked(node.test)
        self.kinds = kinds_before(function, node, kinds)
        self.lists: set[str] = set()
        # What grows by the number of rows, and stays what it was without them.
        self.grown: set[str] = set()
        self.state = NoRows(self.kinds, {}, set())

    def is_idle(self) -> bool:
        """Whether the rest of the round does nothing where it has no rows."""
        if self.count is None and self.bounds is None:
            return False
        at = self.loop.body.index(self.node)
        for each in self.loop.body[:at]:
            self._see_bound(each)
        if self.bounds is not None:
            self.state.empty.add(self.bounds)
        rest = self.loop.body[at + 1 :]
        self._suppose(rest)
        for each in rest:
            if not self._does_nothing(each):
                return False
            self._see_bound(each)
            self.kinds.run([each])
        own = set(bound(rest)) - self.grown
        carried = live_before(self.loop.body, frozenset(), self.function) | Liveness(
            self.function
        ).live_after(self.loop)
        return bool(rest) and not own & (carried - self.lists) and all(map(self._is_only_joined, self.lists))

    def _suppose(self, rest: list[ast.stmt]) -> None:
        """Add the bounds `start` and `start + n`, as they are written in `rest`."""
        for each in (each for one in rest for each in ast.walk(one) if isinstance(each, ast.Slice)):
            start = None if each.lower is None or each.upper is None else ast.unparse(each.lower)
            if start is not None and each.upper is not None and self._is_sum(each.upper, start):
                self.state.empty.add((start, ast.unparse(each.upper)))

    def _is_sum(self, node: ast.expr, start: str) -> bool:
        """Whether `node` is `start` and the number of rows."""
        if self.count is None or not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            return False
        sides = [ast.unparse(node.left), ast.unparse(node.right)]
        return sides in ([start, self.count], [self.count, start])

    def _see_bound(self, node: ast.stmt) -> None:
        """Follow which slices are known to be empty behind `node`."""
        names = set(bound(node)) | {name for each in written_bases(node) for name in reads(_loaded(each))}
        self.state.empty = {
            pair for pair in self.state.empty if not names & {name for text in pair for name in _names(text)}
        }
        if self.count is not None and names & _names(self.count):
            # What was added to a bound before is another number.
            self.state.empty = set()
            if node in self.loop.body[self.loop.body.index(self.node) :]:
                self.count = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
            for side in (node.value.left, node.value.right):
                start = ast.unparse(side)
                if self._is_sum(node.value, start) and start != self.count and start not in names:
                    self.state.empty.add((start, ast.unparse(node.targets[0])))

    def _does_nothing(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            return self._binds(node)
        if isinstance(node, ast.AugAssign):
            return self._adds(node)
        if not isinstance(node, ast.Expr):
            return False
        appended = append_of(node)
        if appended is not None:
            self.lists.add(appended[0])
            return self.state.of(appended[1]) is NONE
        return isinstance(node.value, ast.Call) and self._writes(node.value)

    def _binds(self, node: ast.Assign) -> bool:
        target = node.targets[0]
        if len(node.targets) == 1 and (ast.unparse(target), ast.unparse(node.value)) in self.state.empty:
            self.grown |= set(bound(node))
            return isinstance(target, ast.Name)
        if len(node.targets) == 1 and isinstance(target, ast.Subscript):
            return self.state.picks_none(target.slice) and self.state.of(node.value) is not None
        return self.state.bind(node)

    def _adds(self, node: ast.AugAssign) -> bool:
        target = node.target
        if isinstance(target, ast.Subscript):
            return self.state.picks_none(target.slice) and self.state.of(node.value) is not None
        if not isinstance(target, ast.Name):
            return False
        if isinstance(node.op, ast.Add) and ast.unparse(node.value) == self.count:
            self.grown.add(target.id)
            return True
        return self.state.of(ast.BinOp(ast.Name(target.id, ast.Load()), node.op, node.value)) is NONE

    def _writes(self, call: ast.Call) -> bool:
        """Whether `call` writes to a tensor without rows, or at no rows of one."""
        if not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr not in _AT_ROWS:
            return call.func.attr.endswith("_") and self.state.of(call) is NONE
        if len(call.args) < 3 or ast.unparse(call.args[0]) != "0" or self.state.of(call.args[1]) is not NONE:
            return False
        return all(self.state.of(each) is not None for each in call.args[2:])

    def _is_only_joined(self, name: str) -> bool:
        """Whether the list `name`, which begins empty, is only put together along the rows."""
        source = self.source
        begins = False
        for each in ast.walk(self.function):
            if not isinstance(each, ast.Name) or each.id != name:
                continue
            whole = source.parents[each]
            if not isinstance(each.ctx, ast.Load):
                statement = source.enclosing_statement(each)
                pairs = (
                    assigned_pairs(statement) if isinstance(statement, (ast.Assign, ast.AnnAssign)) else []
                )
                value = next((value for target, value in pairs if target is each), None)
                # Behind `outs = torch.cat(outs)` it is a tensor.
                if value is None or (ast.unparse(value) != "[]" and not self._is_joined(value, name)):
                    return False
                begins = begins or ast.unparse(value) == "[]"
                continue
            joined = isinstance(whole, ast.Call) and self._is_joined(whole, name)
            appended = append_of(source.enclosing_statement(each)) is not None
            behind = source.start(each) > source.end(self.loop) and name in self._anew(each)
            if not joined and not appended and not behind and not self._is_asked_for(each, name):
                return False
        return begins and name not in {each.arg for each in arguments(self.function.args)}

    def _anew(self, node: ast.Name) -> set[str]:
        """The names that are bound to what is put together before `node`."""
        block, index = self.source.block_of(self.loop)
        found: set[str] = set()
        for each in block[index + 1 :]:
            if self.source.end(each) <= self.source.start(node) and isinstance(each, ast.Assign):
                found |= set(bound(each))
        return found

    def _is_joined(self, node: ast.expr, name: str) -> bool:
        if isinstance(node, ast.IfExp):
            return self._is_joined(node.body, name)
        if not isinstance(node, ast.Call) or self.kinds.qualified(node.func) not in (
            "torch.cat",
            "torch.concat",
        ):
            return False
        along = [
            *(ast.unparse(each) for each in node.args[1:]),
            *(ast.unparse(each.value) for each in node.keywords),
        ]
        return ast.unparse(node.args[0]) == name and along in ([], ["0"])

    def _is_asked_for(self, node: ast.Name, name: str) -> bool:
        """Whether `node` stands in the condition of `torch.cat(outs) if len(outs) else x.new_empty(0)`: without rows at all, what
        is put together has no elements either."""
        outer = next((each for each in self.source.ancestors(node) if isinstance(each, ast.IfExp)), None)
        if outer is None or not self._is_joined(outer.body, name) or not isinstance(outer.orelse, ast.Call):
            return False
        asked = ast.unparse(outer.test) in (name, f"len({name})", f"len({name}) > 0")
        made = ast.unparse(outer.orelse.func).rpartition(".")[2] in (
            "empty",
            "new_empty",
            "new_zeros",
            "zeros",
        )
        return (
            asked
            and made
            and bool(outer.orelse.args)
            and ast.unparse(outer.orelse.args[0]) in ("0", "(0,)", "[0]")
        )


def _asked(test: ast.expr) -> tuple[str | None, tuple[str, str] | None]:
    """The text of what `test` asks to be zero, or the two bounds that it asks to be equal."""
    if (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, (ast.Name, ast.Subscript))
    ):
        return ast.unparse(test.operand), None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None, None
    left, right = test.left, test.comparators[0]
    if ast.unparse(right) == "0":
        return ast.unparse(left).removesuffix(".item()"), None
    return None, (ast.unparse(left), ast.unparse(right))


def _loaded(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _names(text: str) -> set[str]:
    return reads(ast.parse(text, mode="eval").body)
