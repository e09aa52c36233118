"""Loops on tensor data become while_loop: `while t`, and `for _ in range(int(t))`.

while_loop carries tensors and ints; its body gives back what it took, of the same dtype and shape and in
memory of its own; its condition is a bool tensor without dimensions or a symbolic bool (measured on torch
2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.inference.values import Value
from exportlens.rewriting.arms.recurrent_layers import refuse_recurrent_layer
from exportlens.rewriting.branches.outputs import Outputs
from exportlens.rewriting.branches.switched_off import is_switched_off
from exportlens.rewriting.branches.unused_draws import refuse_unused_draws
from exportlens.rewriting.calls.unfaked_operators import refuse_unfaked
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before, exits, live_before
from exportlens.rewriting.code.names import bound, fresh, reads
from exportlens.rewriting.code.ranges import bounds_of
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import LOCAL, Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import same_kind
from exportlens.rewriting.loops.changing_sizes import refuse_changing_sizes
from exportlens.rewriting.loops.loop_conditions import LoopCondition
from exportlens.rewriting.memory.effects import refuse_effects, visit
from exportlens.rewriting.memory.given_layouts import lay_as_given
from exportlens.rewriting.memory.placed_views import NOTE_OF_LOOP, placed_by_data
from exportlens.rewriting.memory.sharing import to_separate


class LoopRewrite(LoopCondition):
    """Turns one `while` or `for` of `source` into while_loop; `kinds` are those just before it."""

    def __init__(
        self, source: Source, node: ast.While | ast.For, kinds: Kinds, torch: str, value: Value | None = None
    ) -> None:
        function = source.enclosing_function(node)
        if function is None or isinstance(function, ast.AsyncFunctionDef):
            raise Refused("the loop is not inside a plain function")
        lay_as_given(source, function, node, kinds)
        super().__init__(source, node, function, kinds, torch, value)
        self.replacements: list[Replacement] = []
        self.opened: list[str] = []
        self.read_counter = False
        self.kinds_inside = kinds

    def text(self) -> tuple[str, list[str]]:
        """The whole new text and the names of the new functions."""
        ways = exits(self.node.body)
        if ways & {"breaks", "returns", "raises"}:
            raise Refused(
                "the loop's body may leave it by " + ", ".join(sorted(ways & {"breaks", "returns", "raises"}))
            )
        if self.node.orelse:
            raise Refused("the loop has an `else`")
        if isinstance(self.node, ast.While) and any(
            isinstance(each, ast.NamedExpr) for each in ast.walk(self.node.test)
        ):
            raise Refused("the loop's condition binds a name: bind it in the body")
        counter = self.counter() if isinstance(self.node, ast.For) else None
        refuse_effects(self.source, self.node.body, self.inside_with({}), None)
        refuse_recurrent_layer(self.node.body, self.kinds)
        refuse_unfaked(self.node.body, self.kinds)
        written = self.written()
        carried = self._carried(written, counter)
        refuse_unused_draws(self.node.body, carried, self.inside_with({}))
        test = self.node.test if isinstance(self.node, ast.While) else None
        refuse_changing_sizes(test, self.node.body, carried, self.inside_with({}))
        kinds, start = self._start(carried)
        if counter is not None:
            kinds[counter] = Kind("scalar", type="int")
        inside = self.inside_with(kinds)
        mark = inside.mark()
        asked = inside.copy()
        asked.names |= {name: Kind("tensor", "int64", 0) for name in self.opened}
        self.kinds_inside = asked.copy()
        condition = self.condition(asked, counter)
        first_lines = [f"{name} = {name}.clone()" for name in written]
        if counter is not None and counter in reads(self.node.body):
            first_lines.append(
                f"{counter} = {counter}{'' if self._only_counted(counter) else '.clone()'}.item()"
            )
            self.read_counter = True
            self.kinds_inside.names[counter] = Kind("tensor", "int64", 0)
        # Read out of a copy: in eager mode torch compiles the body, with the number that a tensor from outside has before the
        # first round, and `x[i]` fails there where that is beyond the end, as before no round (measured on torch 2.13).
        first_lines += [f"{name} = {name}.clone().item()" for name in self.opened]
        end = inside.copy()
        for name in written:
            end.names[name] = Kind(
                "tensor", kinds[name].dtype, kinds[name].rank, frozenset({f"{LOCAL}{end.mark()}"})
            )
        ends: list[tuple[ast.stmt | None, Kinds]] = []

        def see(node: ast.stmt, now: Kinds) -> None:
            if isinstance(node, ast.Continue) and self._is_own(node):
                ends.append((node, now.copy()))

        visit(self.node.body, end, see)
        ends.append((None, end))
        for each in self._own_augmented():
            text = f"{self.source.of(each.target)} = {self.source.computed(each)}"
            self.replacements.append(self.source.swap(each, text))
        for _, now in ends:
            for name in self.counted:
                now.names[name] = Kind("tensor", "int64", 0, frozenset({f"{LOCAL}{now.mark()}"}))
        names = ([counter] if counter else []) + carried
        self.see_later_writes(carried, written, [now for _, now in ends])
        last = ""
        for where, now in ends:
            for name in carried:
                same_kind(f"`{name}`", kinds[name], now.names.get(name, kinds[name]))
            text = self._results(names, carried, counter, now, kinds, mark)
            if where is None:
                last = text
            else:
                self.replacements.append(self.source.swap(where, f"return {text}"))
        return self._assembled(names, start, condition, first_lines, last, written, counter)

    def _is_own(self, node: ast.Continue) -> bool:
        """Whether `node` goes on with a round of this loop, and of none inside of it."""
        inner: ast.AST = node
        for each in self.source.ancestors(node):
            if isinstance(each, (ast.For, ast.While)) and inner not in each.orelse:
                return each is self.node
            inner = each
        return False

    def _carried(self, written: list[str], counter: str | None) -> list[str]:
        after = self.live.live_after(self.node)
        test = reads(self.node.test) if isinstance(self.node, ast.While) else set()
        entering = live_before(self.node.body, frozenset(), self.function)
        names = [name for name in bound(self.node.body) if name in entering or name in test or name in after]
        names += [name for name in written if name not in names]
        if isinstance(self.node, ast.For) and self.node.target.id in names:  # type: ignore[attr-defined]
            raise Refused("the loop's body binds its counter")
        if not names:
            raise Refused("the loop changes nothing that is used afterwards")
        certain = certainly_bound_before(self.function, self.node)
        for name in names:
            if name not in certain:
                raise Refused(f"`{name}` may be unbound before the loop")
        return names

    def _start(self, carried: list[str]) -> tuple[dict[str, Kind], list[str]]:
        """The kinds of the carried names inside, and the texts that they start with."""
        kinds: dict[str, Kind] = {}
        texts = []
        after = self.kinds.copy()
        after.run(self.node.body)
        for name in carried:
            kind, later = self.kinds.names.get(name, Kind("unknown")), after.names.get(name, Kind("unknown"))
            text = name
            if kind.what == "number" and kind.type == "bool" and later.what in ("tensor", "unknown"):
                kind, text = Kind("tensor", "bool", 0), f"{self.torch}.full((), {name})"
            elif kind.what in ("number", "size", "scalar") and kind.type == "int":
                if later.what == "tensor" or later.type == "float":
                    raise Refused(f"`{name}` is an int before the loop, and none after its first round")
                if self._only_counted(name):
                    self.counted.append(name)
                    # Not torch.tensor: strict export of torch 2.13 takes what a loop makes of a constant, and
                    # reads by `.item()`, for a constant again.
                    kind, text = Kind("tensor", "int64", 0), f"{self.torch}.full((), {name})"
                    if name in self.live.live_after(self.node):
                        self.read_back.append(name)
                else:
                    kind = Kind("scalar", type="int")
                    if not self._is_taken_by_test(name):
                        # An int that is carried stops what records gradients (measured on torch 2.13).
                        self.opened.append(name)
                        text = f"{self.torch}.full((), {name})"
                        if name in self.live.live_after(self.node):
                            self.read_back.append(name)
            elif kind.what != "tensor":
                raise Refused(
                    f"`{name}` is carried through the loop, and no tensor or int as far as is known"
                )
            elif kind.parted or kind.moved:
                text = f"{name}.clone(memory_format={self.torch}.contiguous_format)"
            kinds[name] = Kind(kind.what, kind.dtype, kind.rank, frozenset({name}), kind.type)
            texts.append(text)
        return kinds, texts

    def _own_augmented(self) -> list[ast.AugAssign]:
        """The augmented assignments of counters: an int is bound anew where a tensor would be written."""
        return [
            each
            for each in ast.walk(self.node)
            if isinstance(each, ast.AugAssign)
            and isinstance(each.target, ast.Name)
            and each.target.id in self.counted
        ]

    def _only_counted(self, name: str) -> bool:
        """Whether the loop only counts with and compares `name`, so that a tensor can stand for the int
        all along: of others each round reads the int. One that the condition computes with is carried as an int, which is no
        output of a torch.cond around the loop."""
        for each in ast.walk(self.node):
            if isinstance(each, ast.Assign) and name in bound(each) and name not in reads(each.value):
                # What it is bound to may be an int.
                return False
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                parent = self.source.parents[each]
                if not isinstance(parent, (ast.BinOp, ast.Compare, ast.AugAssign)):
                    return False
                if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Div, ast.Pow)):
                    return False
        return True

    def _is_taken_by_test(self, name: str) -> bool:
        """Whether the condition of the loop does more with an int than comparing it or indexing by it."""
        if not isinstance(self.node, ast.While):
            return False
        return any(
            isinstance(each, ast.Name)
            and each.id == name
            and not isinstance(self.source.parents[each], (ast.Compare, ast.Subscript))
            for each in ast.walk(self.node.test)
        )

    def _kinds_before(self) -> Kinds:
        """The kinds of the names that may be bound before the loop: those of others are from inside of it."""
        inside = {id(each) for each in ast.walk(self.node)}
        stores = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        ]
        elsewhere = {each.id for each in stores if id(each) not in inside}
        before = self.kinds.copy()
        for name in {each.id for each in stores} - elsewhere:
            before.names.pop(name, None)
        return before

    def _results(
        self,
        names: list[str],
        carried: list[str],
        counter: str | None,
        now: Kinds,
        kinds: dict[str, Kind],
        mark: int,
    ) -> str:
        outputs = Outputs(self.source, self.torch, mark)
        used: set[str] = set()
        texts = [self._next(counter)] if counter else []
        for name in carried:
            kind = now.names.get(name, kinds[name])
            if kinds[name].what == "scalar":
                if kind.what not in ("scalar", "number", "size") or kind.type != "int":
                    raise Refused(f"`{name}` does not stay an int")
                texts.append(f"{self.torch}.full((), {name})" if name in self.opened else name)
            elif kind.what == "number":
                texts.append(f"{self.torch}.tensor({name})")
            else:
                texts.append(outputs.leaf(name, name, kind, True, used))
        return f"({texts[0]},)" if len(texts) == 1 else ", ".join(texts)

    def _next(self, counter: str) -> str:
        """The counter of the next round: a tensor, as an int that is carried stops what records gradients."""
        bounds = bounds_of(self.node.iter) if isinstance(self.node, ast.For) else None
        step = bounds[2] if bounds is not None else 1
        number = f"{counter} {'+' if step > 0 else '-'} {abs(step)}"
        return f"{self.torch}.full((), {number})" if self.read_counter else number

    def _assembled(
        self,
        names: list[str],
        start: list[str],
        condition: str,
        first_lines: Sequence[str],
        last: str,
        written: list[str],
        counter: str | None,
    ) -> tuple[str, list[str]]:
        source, nl = self.source, self.source.newline
        indent = source.indent_of(self.node)
        inner = indent + source.indent_unit()
        test, body = (fresh(wish, self.taken) for wish in ("keep_going", "loop_body"))
        parameters = ", ".join(names)
        bounds = bounds_of(self.node.iter) if isinstance(self.node, ast.For) else None
        values = [*([f"{self.torch}.full((), {bounds[0]})"] if bounds is not None else []), *start]
        targets = [fresh("steps", self.taken) if name == counter else name for name in names]
        after = [f"{indent}{name} = {name}.item()" for name in self.read_back]
        # What while_loop gives back may not be written in place where gradients are recorded.
        copied = [name for name in targets if name in self.cloned and name not in self.read_back]
        after += [f"{indent}{name} = {name}.clone()" for name in copied]
        after += [
            f"{indent}{name} = {name}.detach()"
            for name in targets
            if is_switched_off(source, self.node, name, self.function)
        ]
        for name in written:
            if not self.is_own(name):
                new = fresh(f"new_{name}", self.taken)
                targets[names.index(name)] = new
                after.append(f"{indent}{name}.copy_({new})")
        tail = "," if len(names) == 1 else ""
        head = f"({targets[0]},)" if tail else ", ".join(targets)
        lines = [
            f"def {test}({parameters}):",
            f"{inner}return {condition}",
            "",
            f"{indent}def {body}({parameters}):",
            *(inner + line for line in [*source.header_comments(self.node), *first_lines]),
            source.block(self.node.body, inner, self.replacements),
            f"{inner}return {last}",
            "",
            f"{indent}{head} = {self.torch}._higher_order_ops.while_loop("
            f"{test}, {body}, ({', '.join(values)}{tail}))",
            *after,
        ]
        clones = to_separate(
            self.node.body,
            set(names),
            self._kinds_before(),
            set(written),
            source=self.source,
            function=self.function,
        )
        for name in set(clones) - certainly_bound_before(self.function, self.node):
            raise Refused(
                f"`{name}` is a view of what the loop reads as well, and belongs to another function"
            )
        copies = [f"{name} = {copy}" for name, copy in clones.items()]
        placed = placed_by_data(
            [self.node], self._kinds_before(), {*written, *clones}, self.function, self.source
        )
        certain = certainly_bound_before(self.function, self.node)
        copies += [f"{name} = {name}.clone(){NOTE_OF_LOOP}" for name in placed if name in certain]
        if copies:
            lines = [(nl + indent).join(copies), "", indent + lines[0], *lines[1:]]
        gap = source.gap_before(self.node)
        begin = source.start(self.node) - (len(indent) if gap else 0)
        text = (gap + indent if gap else "") + nl.join(lines)
        return replaced(source.text, [Replacement(begin, source.span([self.node])[1], text)]), [body]
