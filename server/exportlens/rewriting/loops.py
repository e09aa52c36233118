"""Loops on tensor data become while_loop: `while t`, and `for _ in range(int(t))`.

while_loop carries tensors and ints; its body gives back what it took, of the same dtype and shape and in
memory of its own; its condition is a bool tensor without dimensions or a symbolic bool (measured on torch
2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from exportlens.inference.values import Value
from exportlens.rewriting.afterwards import afterwards
from exportlens.rewriting.changing_sizes import refuse_changing_sizes
from exportlens.rewriting.decisions import hazard_among
from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import loaded, refuse_effects, visit, writes_of
from exportlens.rewriting.kind import LOCAL, UNKNOWN_KIND, Kind, merged, union
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.liveness import Liveness, certainly_bound_before, exits, live_before
from exportlens.rewriting.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.outputs import Outputs
from exportlens.rewriting.outside_writes import augmented_names, bound_anew
from exportlens.rewriting.precedence import primary
from exportlens.rewriting.predicates import Predicates
from exportlens.rewriting.recurrent_layers import refuse_recurrent_layer
from exportlens.rewriting.same_kinds import same_kind
from exportlens.rewriting.sharing import to_separate
from exportlens.rewriting.text import Replacement, Source, replaced
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


class LoopRewrite:
    """Turns one `while` or `for` of `source` into while_loop; `kinds` are those just before it."""

    def __init__(
        self, source: Source, node: ast.While | ast.For, kinds: Kinds, torch: str, value: Value | None = None
    ) -> None:
        self.source, self.node, self.kinds, self.torch, self.value = source, node, kinds, torch, value
        function = source.enclosing_function(node)
        if function is None or isinstance(function, ast.AsyncFunctionDef):
            raise Refused("the loop is not inside a plain function")
        self.function = function
        self.live = Liveness(function)
        self.taken = every_name(source.tree)
        self.replacements: list[Replacement] = []
        self.read_back: list[str] = []
        self.counted: list[str] = []
        self.opened: list[str] = []
        self.read_counter = False
        self.cloned: list[str] = []
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
        counter = self._counter() if isinstance(self.node, ast.For) else None
        refuse_effects(self.source, self.node.body, self._inside({}), None)
        refuse_recurrent_layer(self.node.body, self.kinds)
        written = self._written()
        carried = self._carried(written, counter)
        refuse_changing_sizes(self.node.body, carried, self._inside({}))
        kinds, start = self._start(carried)
        if counter is not None:
            kinds[counter] = Kind("scalar", type="int")
        inside = self._inside(kinds)
        mark = inside.mark()
        asked = inside.copy()
        asked.names |= {name: Kind("tensor", "int64", 0) for name in self.opened}
        self.kinds_inside = asked.copy()
        condition = self._condition(asked, counter)
        first_lines = [f"{name} = {name}.clone()" for name in written]
        if counter is not None and counter in reads(self.node.body):
            first_lines.append(f"{counter} = {counter}.item()")
            self.read_counter = True
            self.kinds_inside.names[counter] = Kind("tensor", "int64", 0)
        first_lines += [f"{name} = {name}.item()" for name in self.opened]
        end = inside.copy()
        for name in written:
            end.names[name] = Kind(
                "tensor", kinds[name].dtype, kinds[name].rank, frozenset({f"{LOCAL}{end.mark()}"})
            )
        ends: list[tuple[ast.stmt | None, Kinds]] = []

        def see(node: ast.stmt, now: Kinds) -> None:
            if isinstance(node, ast.Continue):
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
        self._see_later_writes(carried, written, [now for _, now in ends])
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

    def _counter(self) -> str:
        node = self.node
        if not isinstance(node, ast.For) or not (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Name)
            and node.iter.func.id == "range"
            and isinstance(node.target, ast.Name)
            and _bounds(node.iter) is not None
        ):
            raise Refused(
                "only `for i in range(n)` from a number that is written, in steps that are, becomes a while_loop"
            )
        if node.target.id in self.live.live_after(node):
            raise Refused(f"`{node.target.id}` is used after the loop")
        for each in ast.walk(node):
            if isinstance(each, ast.Subscript) and node.target.id in reads(each.slice):
                raise Refused(
                    f"`{self.source.of(each)}` takes an item by the loop's counter, which while_loop makes symbolic"
                )
        return node.target.id if node.target.id != "_" else fresh("step", self.taken)

    def _condition(self, inside: Kinds, counter: str | None) -> str:
        predicates = Predicates(self.source, inside, self.torch)
        if isinstance(self.node, ast.While):
            return predicates.for_loop(self.node.test, self.value)
        call = self.node.iter
        assert isinstance(call, ast.Call)
        bounds = _bounds(call)
        assert bounds is not None
        _, stop, step = bounds
        limit = predicates.number_as_tensor(stop) or self._computed(stop, predicates)
        if limit is None and _reads_item(stop) and inside.of(stop).what == "scalar":
            limit = self.source.of(stop)
        if limit is None and isinstance(stop, ast.Name):
            limit = self._read_again(stop.id, inside)
        if limit is None:
            raise Refused(f"`{self.source.of(stop)}` is a Python number already: give the tensor to `range`")
        number = inside.of(parse_python(limit, mode="eval").body)
        if number.what == "tensor" and number.rank != 0:
            limit = f"{primary(limit)}.reshape(())"
        return f"{counter} {'<' if step > 0 else '>'} {limit}"

    def _computed(self, node: ast.expr, predicates: Predicates) -> str | None:
        """`node`, a name or whole numbers added to and taken from one, with the tensor whose number the name is."""
        if isinstance(node, ast.Name):
            return self._read_from(node.id, predicates)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._number(node.operand, predicates)
            return None if inner is None else f"-{inner}"
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            return None
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        left, right = written_int(node.left), written_int(node.right)
        if right is not None:
            inner = self._number(node.left, predicates)
            return None if inner is None else f"{inner} {sign} {right}"
        inner = None if left is None else self._number(node.right, predicates)
        return None if inner is None else f"{left} {sign} {inner}"

    def _number(self, node: ast.expr, predicates: Predicates) -> str | None:
        """`node` as a number again: tensors of small dtypes would compute on in these."""
        inner = self._computed(node, predicates)
        if inner is None:
            return None
        return f"{primary(inner)}.item()" if isinstance(node, ast.Name) else f"({inner})"

    def _read_from(self, name: str, predicates: Predicates) -> str | None:
        """The tensor whose number `name` is, where it is still the same when the loop runs: while_loop takes no
        number from data from outside."""
        value = self._only_value(name)
        return None if value is None else predicates.number_as_tensor(value)

    def _read_again(self, name: str, inside: Kinds) -> str | None:
        """What computes the number `name` from numbers that it reads out of tensors, where it gives the same inside of the loop:
        `n = t.max().item() + 1`."""
        value = self._only_value(name)
        if value is None or inside.of(value).what != "scalar" or inside.of(value).type != "int":
            return None
        plain = isinstance(value, ast.BinOp) and all(
            _reads_item(each) or written_int(each) is not None for each in (value.left, value.right)
        )
        return f"({self.source.of(value)})" if plain else None

    def _only_value(self, name: str) -> ast.expr | None:
        """What `name` is bound to, where nothing else is and what it reads is still the same when the loop runs."""
        statements = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id == name for one in each.targets)
        ]
        if len(statements) != 1 or len(statements[0].targets) != 1:
            return None
        needed = reads(statements[0].value)
        start = self.source.end(statements[0])
        rebound = {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and not isinstance(each.ctx, ast.Load)
            and self.source.start(each) > start
        }
        written = self._written_later() | set(self._written())
        return None if needed & (rebound | written) else statements[0].value

    def _written(self) -> list[str]:
        """The outside tensors that the body writes in place."""
        found: dict[str, None] = {}
        before = self._inside({})
        mark = before.mark()
        read = reads(self.node.body) | augmented_names(self.node.body) | reads(self.node)

        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                kind = now.of(loaded(write.base))
                if kind.roots is None:
                    raise Refused(f"it is not known whose memory `{self.source.of(write.base)}` is")
                for root in kind.roots:
                    if root.startswith(LOCAL) and int(root[len(LOCAL) :]) > mark:
                        continue
                    owners = [
                        one
                        for one, each in self.kinds.names.items()
                        if one in read and root in (each.roots or ())
                    ]
                    if len(owners) != 1 or "." in root:
                        raise Refused(
                            "a tensor that the loop writes is an attribute, or has several names there"
                        )
                    found[owners[0]] = None
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Attribute):
                    raise Refused(f"the loop sets `{self.source.of(target)}`")

        visit(self.node.body, before, see)
        anew = bound_anew(self.node.body)
        for name in found:
            roots = self.kinds.names[name].roots or frozenset()
            if name in anew and not all(root.startswith(LOCAL) for root in roots):
                raise Refused(
                    f"`{name}` comes from outside, and the loop both writes it in place and binds it anew"
                )
            shared: list[str] = [
                other
                for other, kind in self.kinds.names.items()
                if other != name and kind.roots and kind.roots & roots
            ]
            if shared:
                raise Refused(f"`{shared[0]}` may share memory with `{name}`, which the loop writes in place")
        return list(found)

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

    def _see_later_writes(self, carried: list[str], own_writes: list[str], ends: list[Kinds]) -> None:
        """Raise Refused where what the loop gives is written later and may be, after no round or after the last one,
        memory that another name has too: while_loop gives memory of its own. What the loop itself writes has no other name."""
        after = self.kinds.copy()
        own: dict[str, str] = {}
        for name in carried:
            ways = [now.names.get(name, UNKNOWN_KIND) for now in (self.kinds, *ends)]
            own[name] = f"{LOCAL}{after.mark()}"
            if any(each.what == "tensor" for each in ways):
                after.names[name] = replace(merged(ways), roots=(union(ways) or frozenset()) | {own[name]})
        written = afterwards(self.source, self.node, self.function, after).written
        for name in carried:
            for now in (self.kinds, *ends) if name not in own_writes else ():
                for root in (now.names.get(name, UNKNOWN_KIND).roots or frozenset()) & written:
                    others = {
                        each
                        for each in {*self.kinds.names, *carried} - {name}
                        if root in (now.names.get(each, UNKNOWN_KIND).roots or ())
                    }
                    if others or not root.startswith(LOCAL):
                        raise Refused(
                            f"`{name}` may still share memory with `{min(others | {root.split('.')[0]})}` after the "
                            "loop, and one is written later: clone it before the loop"
                        )
            if name in own_writes and not self._is_own(name):
                # What the loop gives is written back to it.
                continue
            if own[name] in written or self._taken_in(name, after):
                self.cloned.append(name)

    def _is_own(self, name: str) -> bool:
        """Whether the memory of `name` certainly is the function's own."""
        return all(root.startswith(LOCAL) for root in self.kinds.names[name].roots or ())

    def _taken_in(self, name: str, after: Kinds) -> bool:
        """Whether an operator behind the loop may take in the tensor `name`. In non-strict mode torch takes in no view whose place
        data tells, and where gradients are recorded the loop gives the last of all rounds (measured on torch 2.13)."""
        if (
            name not in self.live.live_after(self.node)
            or name in self.read_back
            or after.names[name].what != "tensor"
        ):
            return False
        statement: ast.stmt = self.node
        for outer in self.source.ancestors(self.node):
            if not isinstance(outer, ast.stmt):
                continue
            block, index = self.source.block_of(statement)
            if any(ast.unparse(each) == f"{name} = {name}.item()" for each in block[index + 1 :]):
                return False
            if _has_operator(block[index + 1 :]) or _counts_by_data(block[index + 1 :], after):
                return True
            if hazard_among(self.source, block[index + 1 :], after.copy(), self.torch) is not None:
                return True
            if isinstance(outer, (ast.For, ast.While)) and name in self.live.before[outer.body[0]]:
                return True
            if outer is self.function:
                return self._is_given_on(block[index + 1 :], name)
            statement = outer
        return False

    def _is_given_on(self, statements: list[ast.stmt], name: str) -> bool:
        """Whether `statements` return `name` to code of the file, which may have operators as well."""
        returned = {
            one
            for each in statements
            if isinstance(each, ast.Return) and each.value
            for one in reads(each.value)
        }
        if name not in returned:
            return False
        owner = self.source.parents.get(self.function)
        called = owner.name if isinstance(owner, ast.ClassDef) and self.function.name == "forward" else None
        bodies = [self.source.tree.body, *(chunk.body for chunk in self.kinds.around)]
        calls = (each for body in bodies for one in body for each in walk(one) if isinstance(each, ast.Call))
        return called is None or any(dotted(each.func) == called for each in calls)

    def _written_later(self) -> set[str]:
        """The names that are written in place somewhere else in the function."""
        inside = {id(each) for each in ast.walk(self.node)}
        found: set[str] = set()
        for statement in ast.walk(self.function):
            if isinstance(statement, ast.stmt) and id(statement) not in inside:
                for write in writes_of(statement, self.kinds):
                    found |= {each.id for each in ast.walk(write.base) if isinstance(each, ast.Name)}
        return found - set(self.counted)

    def _only_counted(self, name: str) -> bool:
        """Whether the loop only counts with and compares `name`, so that a tensor can stand for the int.

        Ints are carried as well, but not where the loop stands inside of a torch.cond.
        """
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
        """Whether the condition of the loop does more with an int than comparing it."""
        if not isinstance(self.node, ast.While):
            return False
        return any(
            isinstance(each, ast.Name)
            and each.id == name
            and not isinstance(self.source.parents[each], ast.Compare)
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

    def _inside(self, kinds: dict[str, Kind]) -> Kinds:
        inside = self.kinds.copy()
        inside.names |= kinds
        return inside

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
        bounds = _bounds(self.node.iter) if isinstance(self.node, ast.For) else None
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
        bounds = _bounds(self.node.iter) if isinstance(self.node, ast.For) else None
        values = [*([f"{self.torch}.full((), {bounds[0]})"] if bounds is not None else []), *start]
        targets = [fresh("steps", self.taken) if name == counter else name for name in names]
        after = [f"{indent}{name} = {name}.item()" for name in self.read_back]
        # What while_loop gives back may not be written in place where gradients are recorded.
        copied = [name for name in targets if name in self.cloned and name not in self.read_back]
        after += [f"{indent}{name} = {name}.clone()" for name in copied]
        for name in written:
            if not self._is_own(name):
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
        lines = [*(f"{name} = {copy}" + nl + indent for name, copy in clones.items()), *lines]
        if clones:
            lines[0 : len(clones) + 1] = [
                "".join(lines[0:-1][: len(clones)]).rstrip(),
                "",
                indent + lines[len(clones)],
            ]
        gap = source.gap_before(self.node)
        begin = source.start(self.node) - (len(indent) if gap else 0)
        text = (gap + indent if gap else "") + nl.join(lines)
        return replaced(source.text, [Replacement(begin, source.span([self.node])[1], text)]), [body]


def _has_operator(statements: list[ast.stmt]) -> bool:
    """Whether `statements` call an operator of torch's that takes functions."""
    calls = (each for one in statements for each in walk(one) if isinstance(each, ast.Call))
    return any((dotted(each.func) or "").rpartition(".")[2] in ("cond", "while_loop") for each in calls)


def _counts_by_data(statements: list[ast.stmt], kinds: Kinds) -> bool:
    """Whether there is a `for` among `statements` that runs as often as tensor data says."""
    loops = (each for one in statements for each in walk(one) if isinstance(each, ast.For))
    limits = [
        each.iter.args
        for each in loops
        if isinstance(each.iter, ast.Call) and dotted(each.iter.func) == "range"
    ]
    return any(kinds.of(each).what in ("scalar", "tensor") for args in limits for each in args)


def _bounds(call: ast.expr) -> tuple[int, ast.expr, int] | None:
    """Where `range(...)` starts, what it stops before, and its step; None where start or step are no written ints."""
    if not isinstance(call, ast.Call) or call.keywords or not 1 <= len(call.args) <= 3:
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if len(call.args) == 1:
        return 0, call.args[0], 1
    start = written_int(call.args[0])
    step = written_int(call.args[2]) if len(call.args) == 3 else 1
    return None if start is None or not step else (start, call.args[1], step)


def written_int(node: ast.expr) -> int | None:
    """The int that `node` is, written out."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _reads_item(node: ast.expr) -> bool:
    """Whether the number is read where it stands, inside of the condition."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "item"
        for each in ast.walk(node)
    )
