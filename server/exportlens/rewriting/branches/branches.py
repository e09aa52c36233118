"""`if` on tensor data becomes torch.cond.

Each arm becomes a function; its outputs are the names that it may bind and that are live afterwards, or,
where an arm returns, what the rest of the function returns. What torch.cond takes was measured on torch
2.13: closures over anything, default arguments of any type, tensors and ints as outputs; it refuses outputs
that share memory with anything else, and writes to memory that was made outside.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from exportlens.inference.values import Tensor, Value
from exportlens.rewriting.arms.arm_parameters import parameters_of, replace_super
from exportlens.rewriting.arms.asked_rows import assure_rows
from exportlens.rewriting.arms.counted_items import refuse_counted_items
from exportlens.rewriting.arms.found_rows import checks
from exportlens.rewriting.arms.padded_rows import refuse_padded_rows
from exportlens.rewriting.branches.added_anew import add_anew
from exportlens.rewriting.branches.around import refuse_around
from exportlens.rewriting.branches.cond_text import CondText
from exportlens.rewriting.branches.continuations import continuation
from exportlens.rewriting.branches.copied_outputs import copied_into, may_differ
from exportlens.rewriting.branches.kept_shapes import shaped_as_before
from exportlens.rewriting.branches.later_numbers import LaterUses
from exportlens.rewriting.branches.list_lengths import refuse_other_lengths, refuse_other_returned_lengths
from exportlens.rewriting.branches.numbers_in_items import refuse_items_read_back
from exportlens.rewriting.branches.open_choices import refuse_open
from exportlens.rewriting.branches.outputs import Outputs
from exportlens.rewriting.branches.recursion import refuse_endless
from exportlens.rewriting.branches.still_none import refuse_still_none
from exportlens.rewriting.branches.switched_off import is_switched_off
from exportlens.rewriting.branches.unused_draws import handed_out, refuse_unused_draws
from exportlens.rewriting.checks.option_errors import raises_by_option
from exportlens.rewriting.code.callers import callers_write
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, always_bound, certainly_bound_before, exits
from exportlens.rewriting.code.names import bound, dotted, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.code.unbound_names import refuse_unbound
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.handed_texts import is_text
from exportlens.rewriting.kinds.kind import LOCAL, Kind, merged, of_value
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import same_tensor
from exportlens.rewriting.loops.rounds_by_sizes import refuse_rounds_by_sizes
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import refuse_effects, visit
from exportlens.rewriting.memory.given_layouts import lay_as_given
from exportlens.rewriting.memory.outside_writes import Arm, OutsideWrites, Written
from exportlens.source.walking import walk


class BranchRewrite(CondText):
    """Turns one `if` of `source` into torch.cond; `kinds` are those just before it."""

    def __init__(
        self,
        source: Source,
        node: ast.If,
        kinds: Kinds,
        torch: str,
        value: Value | None = None,
        arms: tuple[Mapping[str, Value], Mapping[str, Value]] = ({}, {}),
        outputs: type[Outputs] = Outputs,
    ) -> None:
        function = source.enclosing_function(node)
        if function is None:
            raise Refused("the branch is not inside a function")
        if isinstance(function, ast.AsyncFunctionDef):
            raise Refused("the function is asynchronous")
        for each in walk(function):
            if isinstance(each, (ast.Yield, ast.YieldFrom)) and source.enclosing_function(each) is function:
                raise Refused("the function is a generator")
        refuse_around(source, node, function)
        lay_as_given(source, function, node, kinds)
        super().__init__(source, node, function, kinds, torch)
        self.value, self.arm_values, self.outputs_of = value, arms, outputs
        self.liveness = Liveness(function)

    def text(self) -> tuple[str, list[str]]:
        """The whole new text and the names of the new functions."""
        ways = exits(self.node.body) | exits(self.node.orelse)
        if not all(map(self._raises_by_option, (self.node.body, self.node.orelse))):
            raise Refused("one way through the branch raises, another does not")
        if {"returns", "continues"} <= ways:
            raise Refused("the branch both returns and continues a loop")
        self.test = Predicates(self.source, self.kinds, self.torch).for_cond(self.node.test, self.value)
        test_kinds = self.kinds
        test_kinds.bind_walruses(ast.Expr(self.node.test))
        self.mark = self.kinds.mark()
        self.returning = "returns" in ways and not self._returns_nothing()
        self.leaving = "returns" in ways and not self.returning
        rest: list[list[ast.stmt]] = []
        if self.returning or self.leaving or "continues" in ways:
            rest = continuation(self.source, self.node, self.function, "continues" in ways)
            if not all(map(self._raises_by_option, rest)):
                raise Refused("what follows the branch raises, on one way at least")
        self.region_end = self.node if not rest else self.source.block_of(self.node)[0][-1]
        # Where the block of the branch is not the loop's, its arms run what follows around it, too.
        self.follows_outside = "continues" in ways and len(rest) > (self.region_end is not self.node)
        self.then = Arm(
            self.node.body, rest if "falls" in exits(self.node.body) else [], self.inner_span(self.node.body)
        )
        self.other = Arm(
            self.node.orelse,
            rest if "falls" in exits(self.node.orelse) else [],
            self.inner_span(self.node.orelse),
        )
        if self.returning:
            for arm in (self.then, self.other):
                if arm.falls and not _falls_by_option(arm.statements):
                    raise Refused("one way through the branch returns a value, another returns none")
        for arm in (self.then, self.other):
            refuse_effects(self.source, arm.statements, self.kinds, self.function)
            refuse_endless(self.source, self.node, arm.statements, self.kinds)
            refuse_rounds_by_sizes(arm.statements, self.kinds)
            refuse_unbound(self.source, self.node, self.function, arm.statements, self.kinds, self.torch)
            replace_super(self.source, self.function, arm)
            taken = arm is self.then
            lines, copied = checks(
                self.source, self.function, self.node, arm.statements, taken, self.kinds, self.torch
            )
            arm.first_lines += lines
            arm.parameters += copied
        self.writes = OutsideWrites(
            self.source, self.function, self.kinds, self.mark, self.taken, (self.then, self.other)
        )
        for arm in (self.then, self.other):
            assured = assure_rows(
                self.source,
                self.function,
                self.node,
                arm.statements,
                arm is self.then,
                self.kinds,
                self.torch,
                self.writes.made_inside,
                arm.parameters,
                self.taken,
            )
            arm.first_lines += assured.lines
            arm.parameters += assured.names
            arm.replacements += assured.swaps
            self.lines_before += assured.before
            refuse_padded_rows(self.source, arm.statements, self.kinds)
            refuse_counted_items(self.node.test, arm.statements)
        self.writes.collect()
        if not self.returning:
            return self._merging_text("continues" in ways)
        answer = self._answer()
        return self._returning_text() if answer is None else (answer, [])

    def _answer(self) -> str | None:
        """The text that returns what the condition is, as a bool of Python; None where the function returns anything else."""
        sides = [arm.statements for arm in (self.then, self.other)]
        given = [
            each.value.value
            for each, *more in sides
            if not more and isinstance(each, ast.Return) and isinstance(each.value, ast.Constant)
        ]
        if given not in ([True, False], [False, True]) or not all(isinstance(each, bool) for each in given):
            return None
        start, end = self.source.start(self.node), self.source.span([self.region_end])[1]
        if (
            self.is_elif()
            or self.source.comments_between(start, end)
            or not self.source.begins_line(self.node)
        ):
            return None
        text = Predicates(self.source, self.kinds, self.torch).answer(
            self.node.test, not given[0], self.value
        )
        if text is None:
            return None
        return replaced(self.source.text, [Replacement(start, end, f"return {text}")])

    def _returns_nothing(self) -> bool:
        """Whether the function is one that never returns a value."""
        return not any(
            isinstance(each, ast.Return)
            and each.value is not None
            and self.source.enclosing_function(each) is self.function
            for each in walk(self.function)
        )

    def _raises_by_option(self, block: list[ast.stmt]) -> bool:
        return raises_by_option(self.source, self.function, block, self.kinds, self.torch)

    # --- memory ---------------------------------------------------------------------------------------------

    def _entry_kinds(self, arm: Arm) -> Kinds:
        """The kinds at the start of the arm's function: what it clones first is its own."""
        kinds = self.kinds.copy()
        for line in arm.first_lines:
            name = line.split(" = ")[0]
            known = kinds.names.get(name)
            if line.endswith(".clone()"):
                kinds.names[name] = Kind(
                    "tensor",
                    known.dtype if known else None,
                    known.rank if known else None,
                    frozenset({f"{LOCAL}{kinds.mark()}"}),
                    moved=known is not None and known.moved,
                )
        return kinds

    def _refuse_later_writes(self, names: list[str], ends: list[Kinds]) -> None:
        """An output is memory of its own: where it shared memory before, no one may write to that memory
        later."""
        after = self.kinds.copy()
        names = [*names, *(each.path for each in self.writes.written if each.rebinds)]
        after.names |= {name: merged([end.names[name] for end in ends]) for name in names}
        later = afterwards(self.source, self.region_end, self.function, after)
        for name in names:
            for end in ends:
                written = later.in_tensors if end.names[name].what == "tensor" else later.written
                for root in end.names[name].roots or () if end.names[name].what != "number" else ():
                    if self.writes.made_inside(root):
                        # Of what is written back the arm has a copy under a name of its own.
                        held = {each.local: each.path for each in self.writes.written}
                        others = {
                            held.get(each, each)
                            for each in {*names, *held} - {name}
                            if each in end.names and root in (end.names[each].roots or ())
                        }
                    else:
                        others = {
                            each for each, kind in self.kinds.names.items() if root in (kind.roots or ())
                        }
                        others = (others - {name}) | (set() if self.writes.is_own(root) else {root})
                    if others and root in written:
                        raise Refused(
                            f"`{name}` may share memory with `{min(others)}`, and one is written later"
                        )

    # --- output ---------------------------------------------------------------------------------------------

    def _merging_text(self, continues: bool) -> tuple[str, list[str]]:
        live = self._live_out(continues)
        writes = [each.path for each in self.writes.written]
        candidates = dict.fromkeys(
            [*bound([*self.then.statements, *self.other.statements]), *self.writes.rebound]
        )
        names = [name for name in candidates if name in live and name not in writes]
        arms = (self.then.statements, self.other.statements)
        names += handed_out(arms, {*names, *self.writes.rebound}, self.leaving, self.kinds)
        certain = certainly_bound_before(self.function, self.node)
        for arm, word in ((self.then, "true"), (self.other, "false")):
            always = always_bound(arm.statements)
            for name in names:
                if name not in always and name not in certain:
                    raise Refused(f"`{name}` is not bound where the condition is {word}, and used afterwards")
                refuse_still_none(name, self.kinds.names.get(name), arm.statements)
        if not names and not self.writes.written:
            return self.without_branch(), []
        each_end = [
            self._end_kinds(arm, values, names)
            for arm, values in zip((self.then, self.other), self.arm_values, strict=True)
        ]
        ends = [end for end, _, _ in each_end]
        outputs = self.outputs_of(self.source, self.torch, self.mark)
        outputs.anew = self._bound_in_rounds()
        for name in names:
            refuse_open(f"`{name}`", [ast.Name(name, ast.Load())], self.kinds, self.source, self.function)
            first, second = (end.names.get(name) for end in ends)
            unknown = first is not None and second is not None and first.what == second.what == "unknown"
            if unknown and is_text(self.source, ast.Name(name, ast.Load()), self.function):
                raise Refused(f"`{name}` is text, of which torch.cond gives none")
            refuse_other_lengths(name, (self.then.statements, self.other.statements), (first, second))
            path = copied_into(self.source, self.function, self.node, name, self.kinds)
            if path is not None and first is not None and second is not None and may_differ(first, second):
                outputs.copied[name] = path
        later = LaterUses(self.source, self.function, self.node, self.region_end, self.kinds, self.torch)
        outputs.unify(names, ends[0], ends[1], later.used_as_number, later.meets_floats)
        refuse_items_read_back(self.source, self.node, self.function, (*outputs.as_count, *outputs.as_number))
        sums = [
            name
            for name in names
            if name in outputs.anew and any(end.names[name].what in ("tensor", "unknown") for end in ends)
        ]
        add_anew(self.source, (self.then, self.other), [*sums, *outputs.as_tensor], self.kinds)
        for write in self.writes.written:
            one, another = (end.names.get(write.path) for end in ends)
            if write.rebinds and one is not None and another is not None:
                same_tensor(f"`{write.path}`", one, another)
        later.refuse_ints_for_branches([name for name in names if _is_int(ends[0].names[name])])
        self._refuse_later_writes(names, ends)
        self.outputs = names
        functions = []
        for arm, (_, end, ways) in zip((self.then, self.other), each_end, strict=True):
            arm.parameters = parameters_of(
                self.source, self.function, self.node, arm, frozenset(names), self.kinds
            )
            for way, now in [
                *ways,
                *((each, end) for each in (self._own(arm, ast.Return) if self.leaving else [])),
            ]:
                leaf = self._leaf(arm, names, now, outputs, ends)
                result = leaf[0] if len(leaf) == 1 else f"({', '.join(leaf)})"
                arm.replacements.append(self.source.swap(way, f"return {result}"))
            leaf = self._leaf(arm, names, end, outputs, ends)
            functions.append(self.function_text(arm, ", ".join(leaf) if arm.falls else None))
        targets = list(names)
        indent = self.indent()
        after = [
            f"{indent}{name} = {name}.item()"
            for name in names
            if name in outputs.as_count or name in outputs.as_number
        ]
        after += [
            f"{indent}{name} = {name}.detach()"
            for name in names
            if is_switched_off(self.source, self.region_end, name, self.function)
        ]
        ending = (
            [f"{indent}return"]
            if self.leaving and self.source.parents[self.node] is not self.function
            else []
        )
        if self.follows_outside:
            ending = [f"{indent}continue"]
        for write in self.writes.written:
            name = (
                write.path
                if write.path.isidentifier() and (write.rebinds or self.writes.is_unshared(write))
                else fresh(f"new_{write.local}", self.taken)
            )
            targets.append(name)
            line = self.writes.write_back(write, name, indent)
            if line is not None:
                after.append(line)
        if len(targets) == 1 and len(after) == 1 and targets[0] not in names:
            # One write back takes the result at once.
            only = self.writes.written[0]
            binds = only.rebinds and not self.writes.is_buffer(only)
            head = f"{only.path} = " if binds else f"{self.writes.destination(only)}.copy_("
            return self.assembled(functions, [f"{indent}{head}{{call}}" + ("" if binds else ")"), *ending])
        return self.assembled(functions, [f"{indent}{', '.join(targets)} = {{call}}", *after, *ending])

    def _leaf(self, arm: Arm, names: list[str], end: Kinds, outputs: Outputs, ends: list[Kinds]) -> list[str]:
        """The outputs of `arm` where names are of the kinds `end`."""
        leaf = outputs.names(names, end, set(bound(arm.statements)), self.writes.memory(end))
        leaf = [self._in_shape(arm, *each, ends) for each in zip(names, leaf, strict=True)]
        return leaf + [self.writes.output(arm, each, end) for each in self.writes.written]

    def _in_shape(self, arm: Arm, name: str, text: str, ends: list[Kinds]) -> str:
        """The output `text` of the arm, in the shape that `name` has where the other arm keeps it."""
        if not arm.falls or self._own(arm, ast.Continue) or self._own(arm, ast.Return):
            return text
        first, second = (end.names[name] for end in ends)
        other, kinds = (self.other, (first, second)) if arm is self.then else (self.then, (second, first))
        return shaped_as_before(arm, other, name, kinds, self.kinds, self.torch, self.taken) or text

    def _bound_in_rounds(self) -> set[str]:
        """The names that loops around the branch bind: what is a number in the first round may be a tensor in the next."""
        found: set[str] = set()
        for each in self.source.ancestors(self.node):
            if each is self.function:
                break
            if isinstance(each, (ast.For, ast.While)):
                found |= set(bound(each.body))
        return found

    def _live_out(self, continues: bool) -> frozenset[str]:
        if self.leaving:
            return frozenset()
        if not continues:
            return self.liveness.live_after(self.node)
        loop = next(
            each for each in self.source.ancestors(self.node) if isinstance(each, (ast.For, ast.While))
        )
        live = self.liveness.before.get(loop, frozenset()) | self.liveness.live_after(loop)
        first = loop.body[0]
        return live | self.liveness.before[first]

    def _end_kinds(
        self, arm: Arm, values: Mapping[str, Value], names: list[str]
    ) -> tuple[Kinds, Kinds, list[tuple[ast.stmt, Kinds]]]:
        """What names are where `arm` ends: at any of its ends, at its last statement, and at each that goes on with the next
        round."""
        end = self._entry_kinds(arm)
        continues = self._own(arm, ast.Continue)
        ways: dict[ast.stmt, Kinds] = dict.fromkeys(continues, end)

        def see(node: ast.stmt, now: Kinds) -> None:
            if node in continues:
                ways[node] = now.copy()

        visit(arm.statements, end, see)
        for written in self.writes.written:
            if written.rebinds:
                probe = self.kinds.copy()
                self._follow_attribute(arm, written, probe)
                for way in (end, *ways.values()):
                    way.names[written.path] = probe.names.get(written.path, Kind("unknown", roots=None))
        for way in {id(each): each for each in (end, *ways.values())}.values():
            for name in names:
                known = self._told(arm, values, name, way.names.get(name))
                if known is not None:
                    way.names[name] = known
        reached = [end, *ways.values()] if arm.falls or not ways else [*ways.values()]
        merging = end.copy()
        for name in names:
            kinds = [way.names[name] for way in reached if name in way.names]
            merging.names.pop(name, None)
            if len(kinds) == len(reached):
                merging.names[name] = merged(kinds)
        return merging, end, list(ways.items())

    def _told(self, arm: Arm, values: Mapping[str, Value], name: str, known: Kind | None) -> Kind | None:
        """What `name` is at an end of `arm`, where it is `known`, or what the interpreter tells."""
        if known is None or known.what != "unknown" or name not in values or arm.rest:
            return known
        told = of_value(values[name], name)
        if told.what == "unknown":
            return known
        # What the arm binds on some of its ways only is on the others what it was before.
        unshared = (
            isinstance(values[name], Tensor)
            and getattr(values[name], "origin", "") == "fresh"
            and name in always_bound(arm.statements)
        )
        return Kind(
            told.what,
            told.dtype,
            told.rank,
            frozenset({f"{LOCAL}{self.kinds.mark()}"}) if unshared else None,
            told.type,
            told.items,
            told.value,
        )

    def _follow_attribute(self, arm: Arm, written: Written, probe: Kinds) -> None:
        def see(node: ast.stmt, now: Kinds) -> None:
            if isinstance(node, ast.Assign) and any(
                dotted(target) == written.path for target in node.targets
            ):
                kind = now.of(node.value)
                probe.names[written.path] = Kind(
                    kind.what,
                    kind.dtype,
                    kind.rank,
                    frozenset({f"{LOCAL}{now.mark()}"}) if kind.fresh else kind.roots,
                )

        visit(arm.statements, self.kinds.copy(), see)

    def _returning_text(self) -> tuple[str, list[str]]:
        outputs = self.outputs_of(self.source, self.torch, self.mark)
        for arm in (self.then, self.other):
            refuse_unused_draws(arm.statements, self.writes.rebound, self.kinds)
        anew = bound([*self.then.statements, *self.other.statements])
        outputs.kept = frozenset(certainly_bound_before(self.function, self.node)).difference(anew)
        results: list[tuple[Arm, ast.Return, Kinds]] = []
        for arm in (self.then, self.other):

            def see(node: ast.stmt, now: Kinds, arm: Arm = arm) -> None:
                if isinstance(node, ast.Return):
                    results.append((arm, node, now.copy()))

            visit(arm.statements, self._entry_kinds(arm), see)
        for _, node, now in results:
            refuse_methods_of_numbers(node, now)
            self._refuse_written_by_callers(node, now)
        shape = outputs.shape([(node.value, now) for _, node, now in results])
        for _, node, now in results:
            given = [] if node.value is None else outputs.parts_of(node.value)
            refuse_open("the result", given, now, self.source, self.function)
        refuse_other_returned_lengths(
            [(arm.statements, outputs.parts_of(node.value), now) for arm, node, now in results if node.value]
        )
        for arm, node, now in results:
            outputs.swaps = list(arm.replacements)
            text = outputs.returned(node, now, shape, self.writes.memory(now))
            extra = [self.writes.output(arm, each, now) for each in self.writes.written]
            if extra:
                text = (
                    f"({text}), {', '.join(extra)}"
                    if text.count(",") and not shape.single
                    else f"{text}, {', '.join(extra)}"
                )
            arm.replacements.append(self.source.swap(node, f"return {text}"))
        functions = []
        for arm in (self.then, self.other):
            arm.parameters = parameters_of(
                self.source, self.function, self.node, arm, frozenset(), self.kinds
            )
            functions.append(self.function_text(arm, None))
        indent = self.indent()
        if not self.writes.written:
            return self.assembled(functions, shape.lines(indent, self.taken))
        result = fresh("result", self.taken)
        news = [fresh(f"new_{each.local}", self.taken) for each in self.writes.written]
        lines = [f"{indent}{', '.join([result, *news])} = {{call}}"]
        for each, new in zip(self.writes.written, news, strict=True):
            binds = each.rebinds and not self.writes.is_buffer(each)
            copied = f"{indent}{self.writes.destination(each)}.copy_({new})"
            lines.append(f"{indent}{each.path} = {new}" if binds else copied)
        return self.assembled(functions, [*lines, *shape.lines_from(result, indent)])

    def _refuse_written_by_callers(self, node: ast.Return, kinds: Kinds) -> None:
        given = None if node.value is None else kinds.of(node.value)
        roots = set() if given is None else set(given.roots or ())
        if given is not None and given.what == "object" and isinstance(node.value, ast.Call):
            # An object holds what it is made of.
            parts = [*node.value.args, *(each.value for each in node.value.keywords)]
            roots |= {root for each in parts for root in kinds.of(each).roots or ()}
        if any(not root.startswith(LOCAL) for root in roots) and callers_write(
            self.source, self.function, self.kinds
        ):
            raise Refused(
                f"`{self.source.of(node)}` hands on a tensor that came from outside, and a caller writes it in place"
            )

    def _own(self, arm: Arm, kind: type[ast.AST]) -> list[ast.stmt]:
        """The statements of `kind` in the arm that act on the code around it."""
        found: list[ast.stmt] = []

        def walk(statements: Sequence[ast.stmt]) -> None:
            for each in statements:
                if isinstance(each, kind):
                    found.append(each)
                elif not isinstance(each, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)):
                    for _, block in ast.iter_fields(each):
                        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                            walk(block)

        walk(arm.statements)
        return found


def _falls_by_option(statements: Sequence[ast.stmt]) -> bool:
    """Whether `statements` end in `if option == "mean": return ... elif option == "sum": return ...`, and go on where the
    option is none of these: that is not meant to happen, and nothing that a branch could give would be returned."""
    last = statements[-1] if statements else None
    if not isinstance(last, ast.If):
        return False
    while True:
        test = last.test
        asks = (
            isinstance(test, ast.Compare)
            and dotted(test.left) is not None
            and len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Eq, ast.Is))
            and isinstance(test.comparators[0], ast.Constant)
            and isinstance(test.comparators[0].value, str)
        )
        if not asks or exits(last.body) != {"returns"}:
            return False
        if not last.orelse:
            return True
        if len(last.orelse) != 1 or not isinstance(last.orelse[0], ast.If):
            return False
        last = last.orelse[0]


def refuse_methods_of_numbers(node: ast.stmt, kinds: Kinds) -> None:
    """Raise Refused where `node` calls a method that a number of Python has not of one: the arm around it was written for a tensor."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            owner = each.func.value
            known = isinstance(owner, ast.Name) and kinds.of(owner).what == "number"
            if known and not hasattr(float, each.func.attr) and not hasattr(int, each.func.attr):
                raise Refused(f"`{ast.unparse(owner)}` is a tensor on one way and a Python number on another")


def _is_int(kind: Kind) -> bool:
    return kind.what in ("number", "size") and kind.type == "int"
