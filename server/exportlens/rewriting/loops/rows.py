"""Loops over a tensor's rows become torch's map or scan, which take any number of rows.

`map` computes each row by itself and stacks what it gets; `scan` hands a state from row to row. Measured on torch 2.13
with a dynamic batch, in both modes: both close over any tensor but one that shares memory with the rows, take several
tensors as a tuple and give several; their results must be memory of their own. torch.vmap exports in non-strict mode
only, and never together with torch.cond there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Iteration
from exportlens.inference.values import Shape, Tensor, Value
from exportlens.rewriting.branches.outputs import Outputs
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import Liveness, certainly_bound_before, exits, live_before
from exportlens.rewriting.code.names import append_of, bound, dotted, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.conversion import converted_inside
from exportlens.rewriting.kinds.kind import LOCAL, Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.same_kinds import same_kind
from exportlens.rewriting.memory.effects import kinds_before, loaded, refuse_effects, visit, writes_of
from exportlens.rewriting.nested_decisions import settled
from exportlens.source.parsing import parse_python

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


def rewrite_rows(place: Iteration | Conversion, context: RewriteContext) -> Fix | Refusal:
    """The fix for a loop, or a stacked comprehension, over rows whose number is a dynamic size."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        parent = draft.source.parents[node]
        owner = draft.source.parents[parent] if isinstance(parent, ast.comprehension) else parent
        if not isinstance(owner, (ast.For, *_COMPREHENSIONS)):
            raise Refused("only a `for` statement or a comprehension over the rows becomes torch's map")
        return _Rewrite(draft, owner, place.variables).fix()
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


@dataclass
class _Rows:
    """What is looped over: the texts of the tensors, and the name of each one's row."""

    tensors: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass
class _Stacked:
    """A list that is filled by the loop and only stacked afterwards: the element's text comes from `appended`."""

    name: str
    made: ast.stmt
    uses: list[ast.Call]
    appended: ast.expr


class _Rewrite:
    """Turns one loop over rows into map or scan."""

    def __init__(
        self, draft: Draft, node: ast.For | ast.ListComp | ast.GeneratorExp, variables: Mapping[str, Value]
    ) -> None:
        self.draft, self.source, self.node = draft, draft.source, node
        self.statement = draft.source.enclosing_statement(node)
        function = draft.source.enclosing_function(self.statement)
        if function is None or isinstance(function, ast.AsyncFunctionDef):
            raise Refused("the loop is not inside a plain function")
        self.function: Function = function
        self.variables = variables
        self.kinds = kinds_before(function, self.statement, draft.kinds(variables))
        self.taken = draft.taken(draft.source.tree)
        self.swaps: list[Replacement] = []

    def fix(self) -> Fix:
        """The new text. Raises Refused."""
        if isinstance(self.node, ast.For):
            return self._of_statement(self.node)
        return self._of_comprehension(self.node)

    # --- what is looped over ----------------------------------------------------------------------------------

    def _rows(self, target: ast.expr, over: ast.expr, body: list[ast.AST]) -> _Rows:
        if isinstance(over, ast.Call) and dotted(over.func) == "enumerate" and len(over.args) == 1:
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                raise Refused("the loop's targets are no number and row")
            number = target.elts[0]
            if not isinstance(number, ast.Name) or number.id in reads(body):
                raise Refused(
                    f"`{ast.unparse(number)}`, the row's number, is used: map and scan do not know it"
                )
            target, over = target.elts[1], over.args[0]
        if isinstance(over, ast.Call) and dotted(over.func) == "zip":
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(over.args) or over.keywords:
                raise Refused("the targets of the `zip` are not one name each")
            self._refuse_unequal(over.args)
            pairs = list(zip(target.elts, over.args, strict=True))
        elif isinstance(over, ast.Call) and dotted(over.func) == "range":
            return self._rows_by_number(target, over, body)
        else:
            pairs = [(target, over)]
        rows = _Rows()
        for name, tensor in pairs:
            if not isinstance(name, ast.Name):
                raise Refused(f"the loop takes a row apart: `{ast.unparse(name)}`")
            if self.kinds.of(tensor).what != "tensor":
                raise Refused(f"`{self.source.of(tensor)}` is not known to be a tensor")
            rows.tensors.append(self.source.of(tensor))
            rows.names.append(name.id)
        return rows

    def _refuse_unequal(self, tensors: list[ast.expr]) -> None:
        first = [self._first_size(each) for each in tensors]
        if first[0] is None or any(size != first[0] for size in first):
            raise Refused("the tensors are not known to have the same number of rows")

    def _first_size(self, node: ast.expr) -> object:
        """What tells the first size of the tensor `node` from others: the Dim that it is declared with."""
        value = self.variables.get(node.id) if isinstance(node, ast.Name) else None
        return _identity(value.dims[0]) if isinstance(value, Tensor) and value.dims else None

    def _rows_by_number(self, target: ast.expr, over: ast.Call, body: list[ast.AST]) -> _Rows:
        """`for i in range(x.shape[0])`, where `i` only picks rows of tensors that have so many."""
        if len(over.args) != 1 or not isinstance(target, ast.Name):
            raise Refused("only `range(n)` runs over the rows one by one")
        rows = _Rows()
        picks: dict[str, list[ast.Subscript]] = {}
        for use in (each for one in body for each in ast.walk(one)):
            if isinstance(use, ast.Name) and use.id == target.id:
                item = self.source.parents[use]
                index = item
                if isinstance(item, ast.Tuple) and item.elts[0] is use:
                    index = self.source.parents[item]
                if (
                    not isinstance(index, ast.Subscript)
                    or not isinstance(index.ctx, ast.Load)
                    or index.value is use
                ):
                    raise Refused(
                        f"`{target.id}` does more than pick a row: map and scan do not know its number"
                    )
                picks.setdefault(ast.unparse(index.value), []).append(index)
        if not picks:
            raise Refused(f"the loop does not read rows by `{target.id}`")
        changed = set(bound([self.node] if isinstance(self.node, ast.For) else []))
        for tensor, items in picks.items():
            if not self._counts(over.args[0], items[0].value):
                raise Refused(
                    f"`{tensor}` is not known to have `{self.source.of(over.args[0])}` rows and no more"
                )
            if tensor in changed:
                raise Refused(f"the loop binds `{tensor}` anew")
            name = fresh("row" if len(picks) == 1 else f"{tensor.rpartition('.')[2]}_row", self.taken)
            rows.tensors.append(tensor)
            rows.names.append(name)
            for item in items:
                self.swaps.append(self.source.swap(item, self._picked(item, name)))
        return rows

    def _picked(self, item: ast.Subscript, name: str) -> str:
        if not isinstance(item.slice, ast.Tuple):
            return name
        rest = item.slice.elts[1:]
        inner = self.source.between(self.source.start(rest[0]), self.source.end(rest[-1]))
        return f"{name}[{inner}{',' if len(rest) == 1 and isinstance(rest[0], ast.Starred) else ''}]"

    def _counts(self, number: ast.expr, tensor: ast.expr) -> bool:
        """Whether `number` is the first size of `tensor`, by its text or by what export declares of both."""
        text = ast.unparse(tensor)
        if ast.unparse(number) in (
            f"{text}.shape[0]",
            f"{text}.size(0)",
            f"len({text})",
            f"{text}.size()[0]",
        ):
            return True
        if isinstance(number, ast.Name):
            size = _identity(self.variables.get(number.id))
            return size is not None and size == self._first_size(tensor)
        owner = number.value if isinstance(number, ast.Subscript) else None
        if isinstance(owner, ast.Attribute) and owner.attr == "shape" and isinstance(owner.value, ast.Name):
            first = isinstance(number, ast.Subscript) and ast.unparse(number.slice) == "0"
            size = self._first_size(owner.value)
            return first and size is not None and size == self._first_size(tensor)
        return False

    # --- comprehensions ---------------------------------------------------------------------------------------

    def _of_comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Fix:
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise Refused("the comprehension has several loops or drops rows")
        parent = self.source.parents[node]
        stack = parent if isinstance(parent, ast.Call) and self._is_stack(parent, node) else None
        uses: list[ast.Call] = []
        if stack is None:
            if not (
                isinstance(parent, ast.Assign)
                and len(parent.targets) == 1
                and isinstance(parent.targets[0], ast.Name)
            ):
                raise Refused("the list is used for more than `torch.stack`")
            uses = self._stack_calls(parent.targets[0].id, [parent])
        rows = self._rows(node.generators[0].target, node.generators[0].iter, [node.elt])
        inside = self._inside(rows)
        self._refuse_shared([ast.Expr(node.elt)], rows, [])
        if any(isinstance(each, (ast.NamedExpr, ast.Await)) for each in ast.walk(node.elt)):
            raise Refused("the comprehension binds a name or awaits")
        if any(True for _ in writes_of(ast.Expr(node.elt), inside)):
            raise Refused("the comprehension writes a tensor in place")
        element = self._element(node.elt, inside, set())
        if len(rows.names) == 1:
            call = f"{self.draft.torch}._higher_order_ops.map(lambda {rows.names[0]}: {element}, {rows.tensors[0]})"
        else:
            pack = fresh("rows", self.taken)
            swaps = {name: f"{pack}[{number}]" for number, name in enumerate(rows.names)}
            renamed = _renamed(element, swaps)
            call = f"{self.draft.torch}._higher_order_ops.map(lambda {pack}: {renamed}, ({', '.join(rows.tensors)}))"
        changes = [self.source.swap(stack or node, call)]
        changes += [self.source.swap(use, ast.unparse(use.args[0])) for use in uses]
        return self.draft.replace("Rewrite with torch's map", changes)

    def _element(self, node: ast.expr, kinds: Kinds, used: set[str]) -> str:
        """One stacked element as a result: of a list that is only stacked, it certainly is a tensor."""
        kind = kinds.of(node)
        text = self.source.of(node, self.swaps)
        if kind.what in ("number", "size", "scalar", "container", "none"):
            raise Refused(f"`{text}` is no tensor")
        outputs = Outputs(self.source, self.draft.torch, self.mark)
        if kind.what == "unknown" and not isinstance(node, ast.Call):
            kind = replace(kind, what="tensor", roots=kind.roots)
        return outputs.leaf(text, text, kind, True, used)

    # --- statements -------------------------------------------------------------------------------------------

    def _of_statement(self, node: ast.For) -> Fix:
        ways = exits(node.body) & {"breaks", "returns", "raises", "continues"}
        if ways:
            raise Refused("a round of the loop may leave early: it " + ", ".join(sorted(ways)))
        if node.orelse:
            raise Refused("the loop has an `else`")
        lists = self._lists(node)
        rows = self._rows(node.target, node.iter, list(node.body))
        appends = [each for each in node.body if append_of(each) is not None]
        rest = [each for each in node.body if each not in appends]
        inside = self._inside(rows)
        refuse_effects(self.source, rest, inside, None)
        carried = self._carried(node, {each.name for each in lists}, rows)
        self._refuse_shared(node.body, rows, carried)
        self._refuse_writes(rest, inside)
        if not lists and not carried:
            raise Refused("the loop makes nothing that is used afterwards")
        return self._assembled(node, rows, lists, carried, inside)

    def _lists(self, node: ast.For) -> list[_Stacked]:
        found: list[_Stacked] = []
        for statement in node.body:
            appended = append_of(statement)
            if appended is None:
                continue
            name, value = appended
            if any(stacked.name == name for stacked in found):
                raise Refused(f"`{name}` gets several elements for each row")
            made = self._empty_list(name, node)
            uses = self._stack_calls(name, [made, *node.body])
            found.append(_Stacked(name, made, uses, value))
        names = {stacked.name for stacked in found}
        for each in ast.walk(node):
            if isinstance(each, ast.stmt) and each not in node.body:
                inner = append_of(each)
                if inner is not None and inner[0] not in bound(node.body):
                    raise Refused(f"`{inner[0]}` gets an element for some rows only")
        for name in names:
            if sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node)) > 1:
                raise Refused(f"the loop reads `{name}` while it fills it")
        return found

    def _empty_list(self, name: str, node: ast.For) -> ast.stmt:
        block, index = self.source.block_of(node)
        for statement in block[:index]:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                empty = statement.value is not None and ast.unparse(statement.value) in ("[]", "list()")
                if empty and [ast.unparse(each) for each in targets] == [name]:
                    return statement
        raise Refused(f"`{name}` is not an empty list right before the loop")

    def _stack_calls(self, name: str, allowed: list[ast.stmt]) -> list[ast.Call]:
        """The uses of the list `name` in the function, which all stack it."""
        inside = {id(each) for statement in allowed for each in ast.walk(statement)}
        uses: list[ast.Call] = []
        for each in ast.walk(self.function):
            if isinstance(each, ast.Name) and each.id == name and id(each) not in inside:
                parent = self.source.parents[each]
                if not isinstance(parent, ast.Call) or not self._is_stack(parent, each):
                    raise Refused(f"`{name}` is used for more than `torch.stack` along the first dimension")
                if self.source.start(parent) < self.source.end(self.node):
                    raise Refused(f"`{name}` is stacked before the loop ends")
                uses.append(parent)
        if not uses:
            raise Refused(f"`{name}` is not stacked")
        return uses

    def _is_stack(self, call: ast.Call, given: ast.expr) -> bool:
        if self.kinds.qualified(call.func) != "torch.stack" or not call.args or call.args[0] is not given:
            return False
        dims = [*call.args[1:], *(each.value for each in call.keywords)]
        named = all(each.arg == "dim" for each in call.keywords)
        return named and len(dims) <= 1 and all(ast.unparse(each) == "0" for each in dims)

    def _inside(self, rows: _Rows) -> Kinds:
        inside = self.kinds.copy()
        for name, tensor in zip(rows.names, rows.tensors, strict=True):
            row = element_of(self.kinds.of(parse_python(f"({tensor})", mode="eval").body))
            inside.names[name] = Kind("tensor", row.dtype, row.rank, frozenset({name}))
        self.mark = inside.mark()
        return inside

    def _refuse_shared(self, statements: list[ast.stmt], rows: _Rows, carried: list[str]) -> None:
        """map and scan take no tensor from outside that shares memory with the rows; what is carried comes in as a
        clone."""
        memory: set[str] = set()
        for tensor in rows.tensors:
            kind = self.kinds.of(parse_python(f"({tensor})", mode="eval").body)
            memory |= kind.roots or set()
        picked = {id(each) for swap in self.swaps for each in self._nodes_in(statements, swap)}
        for statement in statements:
            for each in ast.walk(statement):
                if (
                    isinstance(each, ast.Name)
                    and id(each) not in picked
                    and each.id not in (*rows.names, *carried)
                    and each.id in self.kinds.names
                    and each.id != "self"
                    and isinstance(each.ctx, ast.Load)
                ):
                    kind = self.kinds.names[each.id]
                    if each.id in rows.tensors or (
                        kind.what in ("tensor", "unknown") and (kind.roots or set()) & memory
                    ):
                        raise Refused(f"a round reads `{each.id}`, which shares memory with all rows")

    def _nodes_in(self, statements: list[ast.stmt], swap: Replacement) -> list[ast.AST]:
        return [
            each
            for statement in statements
            for each in ast.walk(statement)
            if isinstance(each, ast.Name)
            and swap.start <= self.source.start(each)
            and self.source.end(each) <= swap.end
        ]

    def _refuse_writes(self, statements: list[ast.stmt], inside: Kinds) -> None:
        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                kind = now.of(loaded(write.base))
                local = kind.roots is not None and all(
                    root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark for root in kind.roots
                )
                if not local:
                    raise Refused(
                        f"a round writes `{self.source.of(write.base)}` in place: collect the results in a list "
                        "and stack them"
                    )
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            if any(isinstance(target, ast.Attribute) for target in targets):
                raise Refused(f"the loop sets `{ast.unparse(targets[0])}`")

        visit(statements, inside.copy(), see)

    def _carried(self, node: ast.For, lists: set[str], rows: _Rows) -> list[str]:
        after = self._live_after(node)
        names = [name for name in bound(node.body) if name not in rows.names]
        for name in {*bound(node.target), *rows.names}:
            if name in after:
                raise Refused(f"`{name}` is used after the loop")
        entering = live_before(node.body, frozenset(), self.function) - lists
        carried = [name for name in names if name in entering]
        for name in names:
            if name in after and name not in carried:
                raise Refused(f"`{name}` of the last row is used after the loop")
        certain = certainly_bound_before(self.function, node)
        for name in carried:
            kind = self.kinds.names.get(name, Kind("unknown"))
            if name not in certain:
                raise Refused(f"`{name}` may be unbound before the loop")
            if name in rows.tensors:
                raise Refused(f"the loop binds `{name}`, whose rows it runs over")
            if kind.what != "tensor":
                raise Refused(f"`{name}` goes from row to row, and does not start as a tensor")
        return carried

    def _live_after(self, node: ast.For) -> set[str]:
        """The names that are read after the loop, or by functions that are made outside of it."""
        within = {id(each) for each in ast.walk(node)}
        captured = {
            name
            for each in ast.walk(self.function)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            and each is not self.function
            and id(each) not in within
            for name in reads(each)
        }
        return set(Liveness(self.function).after[node]) | captured

    # --- output -----------------------------------------------------------------------------------------------

    def _assembled(
        self, node: ast.For, rows: _Rows, lists: list[_Stacked], carried: list[str], inside: Kinds
    ) -> Fix:
        source, nl = self.source, self.source.newline
        indent = source.indent_of(node)
        inner = indent + source.indent_unit()
        for name in carried:
            start = self.kinds.names[name]
            inside.names[name] = Kind("tensor", start.dtype, start.rank, frozenset({name}))
        end = inside.copy()
        tail = list(node.body)
        while tail and append_of(tail[-1]) is not None:
            tail.pop()
        early: dict[str, str] = {}
        for statement in tail:
            appended = append_of(statement)
            if appended is None:
                end.run([statement])
                continue
            local = fresh(f"{appended[0]}_row", self.taken)
            early[appended[0]] = local
            end.assign(ast.Name(local, ast.Store()), end.of(appended[1]))
            self.swaps.append(source.swap(statement, f"{local} = {source.of(appended[1], self.swaps)}"))
        used: set[str] = set()
        outputs = Outputs(source, self.draft.torch, self.mark)
        states = []
        for name in carried:
            same_kind(f"`{name}`", self.kinds.names[name], end.names.get(name, Kind("unknown")))
            kind = end.names[name]
            if kind.what != "tensor":
                kind = Kind("tensor", roots=kind.roots)
            states.append(outputs.leaf(name, name, kind, True, used))
        elements = []
        for each in lists:
            if each.name in early:
                elements.append(self._bound_element(early[each.name], end, used))
            else:
                elements.append(self._element(each.appended, end, used))
        function = fresh("each_row", self.taken)
        names = rows.names
        first_lines: list[str] = []
        row = names[0]
        if len(names) > 1:
            row = fresh("rows", self.taken)
            first_lines.append(f"{', '.join(names)} = {row}")
        over = rows.tensors[0] if len(names) == 1 else f"({', '.join(rows.tensors)})"
        result = _packed(elements)
        targets = _packed([each.name for each in lists])
        operators = f"{self.draft.torch}._higher_order_ops"
        if carried:
            state = carried[0]
            if len(carried) > 1:
                state = fresh("state", self.taken)
                first_lines.append(f"{', '.join(carried)} = {state}")
            starts = [
                name if self.kinds.names[name].fresh or self._local(name) else f"{name}.clone()"
                for name in carried
            ]
            head = f"{_packed(carried)}, {targets if lists else fresh('_', self.taken)}"
            call = f"{head} = {operators}.scan({function}, {_packed(starts)}, {over})"
            returned = f"{_packed(states)}, {result if lists else '()'}"
            signature = f"def {function}({state}, {row}):"
        else:
            call = f"{', '.join(each.name for each in lists)} = {operators}.map({function}, {over})"
            returned = ", ".join(elements)
            signature = f"def {function}({row}):"
        lines = [signature, *(inner + line for line in first_lines)]
        if tail:
            lines.append(source.block(tail, inner, self.swaps))
        lines += [f"{inner}return {returned}", "", f"{indent}{call}"]
        changes = [self._removed(each.made) for each in lists]
        gap = source.gap_before(node) and not self._follows_removed(node, lists)
        begin = source.start(node)
        text = nl.join(lines)
        if gap:
            begin -= len(indent)
            text = source.gap_before(node) + indent + text
        changes.append(Replacement(begin, source.span([node])[1], text))
        for each in lists:
            changes += [source.swap(use, each.name) for use in each.uses]
        new = settled(replaced(source.text, changes), [function], inside, self.draft.torch, converted_inside)
        return self.draft.fix(f"Rewrite with torch's {'scan' if carried else 'map'}", new)

    def _bound_element(self, name: str, kinds: Kinds, used: set[str]) -> str:
        kind = kinds.names[name]
        if kind.what != "tensor":
            kind = Kind("tensor", roots=kind.roots)
        return Outputs(self.source, self.draft.torch, self.mark).leaf(name, name, kind, True, used)

    def _local(self, name: str) -> bool:
        return all(root.startswith(LOCAL) for root in self.kinds.names[name].roots or ("?",))

    def _follows_removed(self, node: ast.For, lists: list[_Stacked]) -> bool:
        block, index = self.source.block_of(node)
        before = block[:index]
        return bool(before) and all(each in [one.made for one in lists] for each in before)

    def _removed(self, statement: ast.stmt) -> Replacement:
        """`out = []` with its line."""
        start, end = self.source.start(statement), self.source.end(statement)
        text = self.source.text
        line_start = start - len(self.source.indent_of(statement))
        if (
            self.source.begins_line(statement)
            and text[end : end + len(self.source.newline)] == self.source.newline
        ):
            return Replacement(line_start, end + len(self.source.newline), "")
        raise Refused(f"`{self.source.of(statement)}` shares its line")


def _identity(size: Value | None) -> object:
    if not isinstance(size, Shape) or not size.whole:
        return None
    return (size.input, size.dim) if size.bounds is None else size.bounds.name


def _packed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The expression `text` with other texts in the place of names."""
    inner = Source(f"({text})")
    swaps = [
        inner.swap(each, names[each.id])
        for each in ast.walk(inner.tree)
        if isinstance(each, ast.Name) and each.id in names
    ]
    return inner.between(1, len(inner.text) - 1, swaps)
