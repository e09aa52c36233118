"""Lists that tensor data filters, as the rows of a tensor that a mask selects.

    pos = [s for s, y in zip(scores, labels) if y == 1]       kept = torch.stack([y == 1 for s, y in zip(scores, labels)])
    if not pos:                                               all_pos = torch.stack([s for s, y in zip(scores, labels)])
        return scores.sum()                             ->    pos = all_pos[kept]
    return torch.stack(pos).mean()                            if not kept.any():
                                                                  return scores.sum()
                                                              return pos.mean()

A loop that does nothing but append to lists is read as comprehensions. The elements that are not kept are computed as well: they
write nothing, draw no random numbers, and raise nothing by the data. What is done with the list must be known to be the same for
the rows of a tensor.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise

from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Instance, Sequence
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import append_of, bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import as_tensor, combined, scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.compared_lists import items_of_tensors
from exportlens.rewriting.lists.listed_tensors import asked_of_all, in_brackets, tensor_of_list
from exportlens.rewriting.lists.masked_uses import masked_uses_of
from exportlens.rewriting.lists.named_parts import parts_written_in
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.rewriting.lists.selected_uses import Rows, uses_of
from exportlens.rewriting.lists.started_lists import started_apart
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

SELECT = "Select with a mask"
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
)
_ITERATING = frozenset({"range", "enumerate", "zip", "reversed"})


@dataclass(frozen=True, slots=True)
class _Kept:
    """What one list is filled with: `element` for each `target` of `rows`, where all `tests` hold (or, with `otherwise`, where
    they do not)."""

    element: ast.expr
    target: ast.expr
    rows: ast.expr
    tests: tuple[ast.expr, ...]
    otherwise: bool = False


def selected_in_comprehension(source: Source, node: ast.ListComp, kinds: Kinds, torch: str) -> str | None:
    """The whole text in which the list that `node` filters is a tensor's rows; None where more is done than is known. `kinds`
    are those before the statement."""
    function, statement = source.enclosing_function(node), source.enclosing_statement(node)
    if function is None or len(node.generators) != 1 or node.generators[0].is_async:
        return None
    if not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
        return None
    [generator] = node.generators
    kept = _Kept(node.elt, generator.target, generator.iter, tuple(generator.ifs))
    taken = every_name(source.tree)
    if isinstance(statement, ast.Assign) and statement.value is node:
        name = _only_name(statement)
        if name is None or name in reads(node):
            return None
        made = _Selection(source, function, kept, kinds, torch, taken, name)
        changed = _changed(source, function, made, statement)
        if changed is None:
            return None
        line = f"{source.newline}{source.indent_of(statement)}"
        return replaced(source.text, [source.swap(statement, line.join(changed[0])), *changed[1]])
    for outer in source.ancestors(node):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            return None
    name = fresh("selected", taken)
    made = _Selection(source, function, kept, kinds, torch, taken, name)
    lines = made.lines()
    uses = None if lines is None else uses_of(source, function, made.rows(statement, node))
    if lines is None or uses is None:
        return None
    line = f"{source.newline}{source.indent_of(statement)}"
    begin = source.start(statement)
    checks = [each for each in uses if each.start == each.end == begin]
    head = Replacement(begin, begin, line.join([*lines, ""]) + "".join(each.text for each in checks))
    return replaced(source.text, [head, *(each for each in uses if each not in checks)])


def selected_in_loop(source: Source, node: ast.If, kinds: Kinds, torch: str) -> str | None:
    """The whole text in which the lists that the loop around `node` fills are tensors' rows; None where the loop does more, or
    more is done with a list. `kinds` are those before `node`."""
    loop, function = source.parents[node], source.enclosing_function(node)
    if not isinstance(loop, ast.For) or function is None or loop.body[-1] is not node or loop.orelse:
        return None
    if loop.body != [node]:
        named = parts_written_in(source, loop, kinds)
        if named is None:
            return None
        source, loop = named
        function, node = source.enclosing_function(loop), source.branch_at(source.start(loop.body[0]))
        assert function is not None
    items = items_of_tensors(source, [node], kinds)
    if items:
        begin = source.start(node)
        source = Source(replaced(source.text, items))
        node = source.branch_at(begin)
        loop, function = source.parents[node], source.enclosing_function(node)
        assert isinstance(loop, ast.For) and function is not None
    if not source.begins_line(loop) or source.parents[loop] is not function:
        return None
    source, loop = started_apart(source, loop)
    function = source.enclosing_function(loop)
    [node] = (each for each in loop.body if isinstance(each, ast.If))
    assert function is not None
    appends = [*((each, False) for each in node.body), *((each, True) for each in node.orelse)]
    taken = every_name(source.tree)
    before = kinds_before(function, loop, kinds)
    swaps: list[Replacement] = []
    lines: list[str] = []
    names: list[str] = []
    masks: dict[bool, str] = {}
    for each, otherwise in appends:
        found = append_of(each)
        start = None if found is None else _started(source, function, found[0], loop)
        if found is None or start is None or found[0] in names:
            return None
        name, element = found
        names.append(name)
        kept = _Kept(element, loop.target, loop.iter, (node.test,), otherwise)
        made = _Selection(source, function, kept, before, torch, taken, name, masks)
        changed = _changed(source, function, made, loop)
        gone = source.without(start)
        if changed is None or gone is None:
            return None
        lines += changed[0]
        swaps += [gone, *changed[1]]
    targets = set(bound(loop.target))
    if not lines or targets & reads(
        [each for each in function.body if source.start(each) > source.end(loop)]
    ):
        return None
    if set(names) & (
        reads([loop.iter, node.test]) | {name for each in appends for name in _read_by(each[0])}
    ):
        return None
    begin, end = source.span([loop])
    indent = source.indent_of(loop)
    notes = source.comments_between(begin, end)
    text = source.newline.join(indent + each for each in [*notes, *lines])
    swaps.append(Replacement(begin, end, text))
    ordered = sorted(swaps, key=lambda each: each.start)
    if any(first.end > second.start for first, second in pairwise(ordered)):
        return None
    return replaced(source.text, swaps)


def _changed(
    source: Source, function: Function, made: _Selection, statement: ast.stmt
) -> tuple[list[str], list[Replacement]] | None:
    """The lines in the place of `statement`, which fills a list, and what changes where the list is used."""
    lines = made.lines(weighed=True)
    uses = None if lines is None else masked_uses_of(source, function, made.rows(statement))
    if lines is None or uses is None:
        lines = made.lines()
        uses = None if lines is None else uses_of(source, function, made.rows(statement))
    return None if lines is None or uses is None else (lines, uses)


def _read_by(append: ast.stmt) -> set[str]:
    found = append_of(append)
    return set() if found is None else reads(found[1])


def _only_name(statement: ast.Assign) -> str | None:
    target = statement.targets[0] if len(statement.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else None


def _started(source: Source, function: Function, name: str, loop: ast.For) -> ast.Assign | None:
    """The statement of the function's own block that begins the list, where nothing uses it before the loop."""
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
    start = source.parents[stores[0]] if len(stores) == 1 else None
    if not isinstance(start, ast.Assign) or start.targets != stores or start not in function.body:
        return None
    if ast.unparse(start.value) not in ("[]", "list()") or source.end(start) > source.start(loop):
        return None
    between = (source.end(start), source.start(loop))
    used = any(between[0] < source.start(each) < between[1] for each in same)
    return None if used else start


class _Selection:
    """One list: the lines that make its tensor."""

    def __init__(
        self,
        source: Source,
        function: Function,
        kept: _Kept,
        kinds: Kinds,
        torch: str,
        taken: set[str],
        name: str,
        masks: dict[bool, str] | None = None,
    ) -> None:
        self.source, self.function, self.kept, self.torch = source, function, kept, torch
        self.before, self.name, self.taken = kinds, name, taken
        comprehension = ast.GeneratorExp(
            kept.element, [ast.comprehension(kept.target, kept.rows, list(kept.tests), 0)]
        )
        self.now = kinds.in_comprehension(comprehension)
        self.alone = masks is None
        self.masks = {} if masks is None else masks
        self.known = kept.otherwise in self.masks
        if not self.known:
            self.masks[kept.otherwise] = fresh(f"kept_{name}" if name != "selected" else "kept", taken)
        self.mask = self.masks[kept.otherwise]
        target = kept.target
        pair = target.elts if isinstance(target, ast.Tuple) else []
        called = kept.rows if isinstance(kept.rows, ast.Call) else None
        self.counter = ""
        self.iterated, self.row = kept.rows, target.id if isinstance(target, ast.Name) else ""
        numbered = called is not None and ast.unparse(called.func) == "enumerate"
        names = [each.id for each in pair if isinstance(each, ast.Name)]
        if called is not None and numbered and len(called.args) == 1 and len(names) == len(pair) == 2:
            self.iterated = called.args[0] if not called.keywords else kept.rows
            self.counter, self.row = names
        self.tensor = tensor_of_list(source, self.iterated, kinds)
        self.shape = "rows"
        self.number = ""
        self.default = False

    def rows(self, statement: ast.stmt, node: ast.expr | None = None) -> Rows:
        """What is known of the tensor, for what is done with it behind `statement`, or at `node`."""
        joined = ast.unparse(self.kept.element).endswith((".unsqueeze(0)", ".unsqueeze(dim=0)", "[None]"))
        return Rows(
            *(self.name, self.mask, self.torch, statement, node),
            *(self.shape, self.number, self.default, joined),
            dtype_family(self.now.of(self.kept.element).dtype) == "float",
            self.now,
        )

    def lines(self, weighed: bool = False) -> list[str] | None:
        """The lines that bind the mask and the rows (all of them, where the mask weighs them later); None where an element or a
        test is none that may be computed in any case."""
        lines = self._lines(weighed)
        if lines is None or self._iterates_again():
            return lines
        # What draws random numbers, say, is asked as often as before.
        once = self.alone and self.before.of(self.iterated).what == "tensor"
        return lines if once and "\n".join(lines).count(self.source.of(self.iterated)) == 1 else None

    def _lines(self, weighed: bool) -> list[str] | None:
        kept = self.kept
        if length_from_data(self.before.of(self.iterated)):
            return None
        if not all(is_plain(each, self.now) for each in (kept.element, *kept.tests)):
            return None
        mask = self._mask()
        if mask is None:
            return None
        lines = [] if self.known else [f"{self.mask} = {mask}"]
        made = self._made()
        if made is None:
            return None
        rows, picked = made
        if weighed:
            return [*lines, f"{self.name} = {rows}"] if picked else None
        if not picked:
            return [*lines, f"{self.name} = {rows}"]
        if not isinstance(parse_python(rows, mode="eval").body, ast.Name):
            # What is picked of a name can move into the arm that reads it.
            whole = fresh(f"all_{self.name}" if self.name != "selected" else "all_rows", self.taken)
            lines.append(f"{whole} = {rows}")
            rows = whole
        return [*lines, f"{self.name} = {rows}[{self.mask}]"]

    def _header(self) -> str:
        return f"for {self.source.of(self.kept.target)} in {self.source.of(self.kept.rows)}"

    def _mask(self) -> str | None:
        kept = self.kept
        at_once = self._mask_at_once()
        if at_once is None:
            if self.tensor is not None:
                return None
            if not self._has_rounds(kept.rows):
                return None
            predicates = Predicates(self.source, self.now, self.torch)
            try:
                conditions = [predicates.read(each) for each in kept.tests]
                if any(each.form != "tensor" and each.alone is None for each in conditions):
                    # With what Python decides a part of a test is a tensor as well.
                    return None
                test = scalar_bool(combined([as_tensor(each) for each in conditions], "and", self.torch))
            except Refused:
                return None
            decided = [f"{self.torch}.full((), {each})" for each in (True, False)]
            if any(each in test for each in decided):
                # What Python decides alone is a tensor on the device of the others.
                home = self._home()
                if home is None:
                    return None
                for each in decided:
                    test = test.replace(each, f"{each[:-1]}, device={home}.device)")
            at_once = f"{self.torch}.stack([{test} {self._header()}])"
        return f"~{in_brackets(at_once)}" if kept.otherwise else at_once

    def _home(self) -> str | None:
        """A tensor that the tests read."""
        names = [each for one in self.kept.tests for each in walk(one) if isinstance(each, ast.Name)]
        return next((each.id for each in names if self.now.of(each).what == "tensor"), None)

    def _mask_at_once(self) -> str | None:
        tensor = self.tensor
        if tensor is None:
            kind = self.before.of(self.iterated)
            tensor = self.iterated if kind.what == "tensor" and kind.rank == 1 else None
        if tensor is None or not self.row or self.counter in reads(list(self.kept.tests)) - {""}:
            return None
        exactly = self.tensor is not None
        parts = [
            asked_of_all(self.source, each, self.row, tensor, self.now, exactly) for each in self.kept.tests
        ]
        if None in parts or not parts:
            return None
        return parts[0] if len(parts) == 1 else " & ".join(in_brackets(each or "") for each in parts)

    def _made(self) -> tuple[str, bool] | None:
        """The text of all rows, and True; or the text of those that are kept, and False."""
        source, element, torch = self.source, self.kept.element, self.torch
        if isinstance(element, ast.Name) and element.id == self.counter:
            self.shape, self.number, self.default = "number", "int", True
            return f"{self.mask}.nonzero()[:, 0]", False
        if isinstance(element, ast.Name) and element.id == self.row:
            if self.tensor is not None:
                self._be_numbers(self.before.of(self.tensor).dtype)
                return source.of(self.tensor), True
            if self.before.of(self.iterated).what == "tensor":
                self.shape = "row"
                return source.of(self.iterated), True
        if not self._has_rounds(self.kept.rows):
            return None
        kind = self.now.of(element)
        text = source.of(element)
        if kind.what in ("number", "size") and kind.type in ("int", "float"):
            self.shape, self.number, self.default = "number", kind.type, True
            listed = f"[{text} {self._header()}]"
            return f"{torch}.tensor({listed}, device={self.mask}.device)", True
        if kind.what == "scalar":
            predicates = Predicates(source, self.now, torch)
            tensor = predicates.number_as_tensor(element)
            if tensor is None:
                return None
            made = self.now.of(parse_python(tensor, mode="eval").body)
            self._be_numbers(made.dtype)
            text = f"{in_brackets(tensor)}.reshape(())"
        elif kind.what != "tensor":
            return None
        elif kind.rank == 0:
            self.shape = "scalar"
        elif self._is_alike():
            self.shape = "row"
        return f"{torch}.stack([{text} {self._header()}])", True

    def _is_alike(self) -> bool:
        """Whether the elements have one shape: they are computed in one way of rows of tensors, and of items of tensors."""
        rows = self._names_of_rows()
        own = set(bound(self.kept.target))
        for each in walk(self.kept.element):
            if not isinstance(each, ast.Name) or each.id not in own or each.id in rows:
                continue
            # The parents are of the source's own nodes.
            index = self.source.parents[each]
            index = index if isinstance(index, ast.Tuple) else each
            outer = self.source.parents[index]
            if not isinstance(outer, ast.Subscript) or outer.slice is not index:
                return False
        return True

    def _names_of_rows(self) -> set[str]:
        """The names of what is a row of a tensor in each round."""
        called = self.kept.rows if isinstance(self.kept.rows, ast.Call) else None
        target = self.kept.target
        if called is not None and ast.unparse(called.func) == "zip" and isinstance(target, ast.Tuple):
            pairs = list(zip(target.elts, called.args, strict=False))
        else:
            pairs = [(ast.Name(self.row, ast.Store()), self.iterated)]
        return {
            each.id
            for each, given in pairs
            if isinstance(each, ast.Name)
            and (self.before.of(given).what == "tensor" or _is_guessed(self.before.of(given)))
        }

    def _be_numbers(self, dtype: str | None) -> None:
        """The elements were numbers, read out of a tensor of `dtype`."""
        self.shape = "number"
        self.number = (
            "int" if (dtype or "").startswith("int") else "float" if (dtype or "").startswith("float") else ""
        )
        self.default = dtype in ("int64", "float32")

    def _iterates_again(self) -> bool:
        """Whether what is iterated over gives the same each time."""
        return self._gives_again(self.kept.rows)

    def _gives_again(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _ITERATING:
            counts = ast.unparse(node.func) == "range"
            return all(
                self.before.of(each).what in ("number", "size") if counts else self._gives_again(each)
                for each in node.args
            )
        if tensor_of_list(self.source, node, self.before) is not None:
            return is_plain(node, self.now)
        kind = self.before.of(node)
        return (kind.what in ("tensor", "container") or isinstance(kind.value, Instance)) and is_plain(
            node, self.now
        )

    def _has_rounds(self, node: ast.expr) -> bool:
        """Whether there is something to stack, unless a tensor has no rows at all, or the configuration asks for none."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _ITERATING - {"range"}:
            return all(map(self._has_rounds, node.args))
        ranged = isinstance(node, ast.Call) and ast.unparse(node.func) == "range"
        kind = self.before.of(node)
        return ranged or _is_guessed(kind) or kind.what == "tensor" or self.before.has_elements(node)


def _is_guessed(kind: Kind) -> bool:
    """Whether an argument is taken for a list as it is only gone through, most likely row by row."""
    return isinstance(kind.value, Sequence) and kind.value.guessed
