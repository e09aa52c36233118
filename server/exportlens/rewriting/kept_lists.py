"""A list to which tensor data decides what is appended gets an element in each round, and beside it whether it was kept.

    losses = []                              losses = []
    for c in range(3):                       kept_losses = []
        m = y == c                           for c in range(3):
        if m.any():                              m = y == c
            losses.append(f(x[m]))               kept = m.any()
    if not losses:                 ->            loss = torch.zeros(())
        return x.sum() * 0                       if kept:
    return torch.stack(losses).mean()                loss = f(x[m])
                                                 losses.append(loss)
                                                 kept_losses.append(kept)
                                             if not torch.stack(kept_losses).any():
                                                 return x.sum() * 0
                                             return torch.stack(losses).sum() / torch.stack(kept_losses).sum()

What was not kept is zero: sums and means of numbers do not see it. Where nothing was kept Python's own results differ: the
sum is an int, so that such a use must lie behind a question whether there is any; an empty list is not stacked, and a check
keeps that.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from exportlens.rewriting.conditions import scalar_bool
from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import kinds_before
from exportlens.rewriting.kind import length_from_data
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.liveness import exits
from exportlens.rewriting.mixed_results import asks_type
from exportlens.rewriting.names import bound, every_name, fresh
from exportlens.rewriting.own_means import mean_of
from exportlens.rewriting.precedence import primary
from exportlens.rewriting.predicates import Predicates
from exportlens.rewriting.text import Function, Replacement, Source, replaced

_Statement = TypeVar("_Statement", ast.If, ast.For)


def with_kept(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If, Kinds] | None:
    """The text in which the lists that the `if` statement `node` may append to have an element in any case, that statement, and
    the kinds just before it; None where there is no such list, or where more is done with one."""
    if any(
        isinstance(each, ast.For) and length_from_data(kinds.of(each.iter)) for each in source.ancestors(node)
    ):
        # As many elements as data says are added up where the loop is rewritten.
        return None
    source, node = started_apart(source, node)
    made = _with_one_kept(source, node, kinds, torch, alone=True)
    now = kinds.copy()
    while made is not None:
        source, node = made
        block, index = source.block_of(node)
        now.run(block[index - 2 : index])
        if not any(appended_to(each) for each in node.body):
            return source, node, now
        made = _with_one_kept(source, node, now, torch, alone=False)
    return None


def started_apart(source: Source, node: _Statement) -> tuple[Source, _Statement]:
    """The text with a statement for each list where one starts several, `a, b = [], []`, and `node` of it."""
    function, begin = source.enclosing_function(node), source.start(node)
    swaps = []
    for each in function.body if function is not None else ():
        if (
            isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Tuple)
            and isinstance(each.value, ast.Tuple)
            and len(each.targets[0].elts) == len(each.value.elts)
            and all(isinstance(one, ast.Name) for one in each.targets[0].elts)
            and all(isinstance(one, ast.List) and not one.elts for one in each.value.elts)
            and source.begins_line(each)
            and source.end(each) < begin
        ):
            line = f"{source.newline}{source.indent_of(each)}"
            swaps.append(
                source.swap(each, line.join(f"{source.of(one)} = []" for one in each.targets[0].elts))
            )
    if not swaps:
        return source, node
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps)
    changed = Source(replaced(source.text, swaps))
    found = (each for each in ast.walk(changed.tree) if isinstance(each, type(node)))
    return changed, next(each for each in found if changed.start(each) == begin + moved)


def _with_one_kept(
    source: Source, node: ast.If, kinds: Kinds, torch: str, *, alone: bool
) -> tuple[Source, ast.If] | None:
    """As `with_kept`, with the first of the lists; what another list asks may stand around its uses unless it is `alone`."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    skips = not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Continue)
    arm = block[index + 1 :] if skips else node.body
    if (not skips and (node.orelse or exits([node]) != {"falls"})) or (skips and exits(arm) != {"falls"}):
        return _with_kept_deeper(source, function, node, kinds, torch)
    appends = [each for each in arm if appended_to(each) is not None]
    lists = {appended_to(each) for each in appends}
    if not appends or len(lists) != len(appends):
        return _with_kept_deeper(source, function, node, kinds, torch)
    # One list after the other: what is appended to the next stays in the arm until its turn.
    found = list_of(source, function, appends[0], kinds)
    if found is None:
        return None
    predicates = Predicates(source, kinds, torch)
    try:
        condition = predicates.read(node.test, skips)
    except Refused:
        return None
    if condition.form != "tensor":
        return _with_kept_deeper(source, function, node, kinds, torch)
    made = Made(source, function, torch, found, appends[0], kinds.functions)
    uses = made.uses()
    zero = zero_of(found, kinds, torch, arm)
    runs = _runs(source, function, node, kinds, made.raises and alone)
    if uses is None or zero is None or runs is None:
        return None
    test = scalar_bool(condition)
    if not skips and not kinds.of(node.test).fresh:
        test = f"{primary(test)}.clone()"
    return made.text(node, arm, skips, uses, test, zero, runs)


def _with_kept_deeper(
    source: Source, function: Function, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """As `with_kept`, where several branches lead to what is appended, or no tensor decides: the innermost arm says that
    it was kept."""
    block, index = source.block_of(node)
    loop = source.parents[node]
    skipping = "continues" in exits([node])
    if skipping and not (isinstance(loop, ast.For) and block is loop.body):
        return None
    region: list[ast.stmt] = block[index:] if skipping else [node]
    if exits(region) - {"falls", "continues"}:
        return None
    appends = [each for one in region for each in ast.walk(one) if isinstance(each, ast.stmt)]
    if not all(map(source.begins_line, appends)):
        return None
    appends = [each for each in appends if appended_to(each) is not None]
    found = list_of(source, function, appends[0], kinds) if len(appends) == 1 else None
    if found is None:
        return None
    made = Made(source, function, torch, found, appends[0], kinds.functions)
    uses, zero = made.uses(), zero_of(found, kinds, torch, region)
    runs = _runs(source, function, node, kinds, made.raises)
    lines = made.nested(region, source.indent_of(node), node)
    if uses is None or zero is None or runs is None or lines is None:
        return None
    return made.deeper_text(node, region, lines, uses, zero, runs)


def _runs(source: Source, function: Function, node: ast.If, kinds: Kinds, raises: bool) -> bool | None:
    """Whether `node` certainly is reached, or the list is used where it `raises` without: of an empty list nothing is
    stacked. None where a loop around it is left early."""
    runs = True
    for each in source.ancestors(node):
        if each is function:
            return runs
        if not isinstance(each, ast.For) or exits(each.body) & {"breaks", "returns"}:
            return None
        runs = runs and (raises or kinds.has_elements(each.iter))
    return None


def appended_to(node: ast.stmt) -> str | None:
    """The name of the list to which the statement `node` appends one value."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "append"
        and isinstance(node.value.func.value, ast.Name)
        and len(node.value.args) == 1
        and not node.value.keywords
        and not isinstance(node.value.args[0], ast.Starred)
    ):
        return node.value.func.value.id
    return None


@dataclass(frozen=True, slots=True)
class StartedList:
    name: str
    start: ast.Assign
    value: ast.expr
    dtype: str | None
    # Where the name is bound to something else, if it is: `losses = sum(losses)`.
    end: int


def list_of(source: Source, function: Function, append: ast.stmt, kinds: Kinds) -> StartedList | None:
    """The list, where it starts empty in the function's own block and gets numbers of the default dtype."""
    name = appended_to(append)
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    stores.sort(key=source.start)
    start = source.parents[stores[0]] if stores else None
    anew = [source.parents[each] for each in stores[1:]]
    if any(not _is_behind(source, function, each, append) for each in anew):
        return None
    if (
        name is None
        or not isinstance(start, ast.Assign)
        or len(start.targets) != 1
        or ast.unparse(start.value) not in ("[]", "list()")
        or start not in function.body
        or not source.begins_line(start)
    ):
        return None
    assert isinstance(append, ast.Expr) and isinstance(append.value, ast.Call)
    value = kinds_before(function, append, kinds).of(append.value.args[0])
    if value.what != "tensor" or value.rank != 0 or value.dtype not in (None, "float", "float32"):
        return None
    end = source.end(anew[0]) if anew else source.end(function)
    return StartedList(name, start, append.value.args[0], value.dtype, end)


def _is_behind(source: Source, function: Function, node: ast.AST, append: ast.stmt) -> bool:
    """Whether the assignment `node` stands in the function's own block, behind the loop that appends."""
    return isinstance(node, ast.Assign) and node in function.body and source.start(node) > source.end(append)


def zero_of(found: StartedList, kinds: Kinds, torch: str, arm: list[ast.stmt]) -> str | None:
    """A zero like the values of the list."""
    inside = set(bound(arm))
    read = [each.id for each in ast.walk(found.value) if isinstance(each, ast.Name) and each.id not in inside]
    tensors = [name for name in read if (kind := kinds.names.get(name)) is not None and kind.what == "tensor"]
    # What is made of one tensor only mostly has its dtype.
    same = [name for name in tensors if kinds.names[name].dtype == found.dtype]
    if found.dtype != "float32" and same and len(same) == len(tensors):
        return f"{same[0]}.new_zeros(())"
    if found.dtype is None:
        return _zero_of_all(kinds, arm)
    return f"{torch}.zeros(())"


def _zero_of_all(kinds: Kinds, arm: list[ast.stmt]) -> str | None:
    """A zero of the dtype that the tensors from outside give, which `arm` computes with."""
    inside = set(bound(arm))
    names = dict.fromkeys(
        each.id
        for one in arm
        for each in ast.walk(one)
        if isinstance(each, ast.Name) and each.id in kinds.names and each.id not in inside
    )
    tensors = [
        name
        for name in names
        if kinds.names[name].what == "tensor"
        and not (kinds.names[name].dtype or "").startswith(("int", "uint", "bool"))
    ]
    return " + ".join(f"{name}.new_zeros(())" for name in tensors) if 0 < len(tensors) < 4 else None


def _at_least(node: ast.AST, value: ast.AST) -> ast.expr | None:
    """The positive number that `max(value, 1)` gives at least; None where `node` is anything else."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "max" and len(node.args) == 2):
        return None
    if node.keywords or value not in node.args:
        return None
    other = node.args[1] if node.args[0] is value else node.args[0]
    return other if isinstance(other, ast.Constant) and type(other.value) is int and other.value > 0 else None


@dataclass
class Made:
    source: Source
    function: Function
    torch: str
    found: StartedList
    append: ast.stmt
    functions: Mapping[str, ast.FunctionDef]

    def __post_init__(self) -> None:
        taken = every_name(self.source.tree)
        self.kept = fresh(f"kept_{self.found.name}", taken)
        name = self.found.name
        one = name.removesuffix("es") if name.endswith("sses") else name
        one = one if one.endswith("ss") else one.removesuffix("s")
        self.value = fresh("value" if one == name else one, taken)
        self.flag = fresh("kept", taken)
        self.total = f"{self.torch}.stack({name}).sum()"
        self.count = f"{self.torch}.stack({self.kept}).sum()"
        self.some = f"{self.torch}.stack({self.kept}).any()"
        # Whether nothing but statements that raise for an empty list uses it.
        self.raises = True

    def uses(self) -> list[Replacement] | None:
        """What changes where the list is used; None where a use is not known."""
        name, source = self.found.name, self.source
        swaps: list[Replacement] = []
        checked: set[ast.stmt] = set()
        loads = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and source.start(each) < self.found.end
        ]
        for each in loads:
            parent = source.parents[each]
            if any(each is one for one in ast.walk(self.append)):
                continue
            if any(isinstance(one, (ast.For, ast.While, ast.Lambda)) for one in source.ancestors(each)):
                return None
            asked = self._asked(each)
            if asked is not None:
                self.raises = False
                there, any_text = asked[1], self.some
                swaps.append(source.swap(asked[0], any_text if there else f"not {any_text}"))
                continue
            swap = self._reduced(each, parent)
            if swap is None:
                return None
            swaps.append(swap)
            if self._is_guarded(each) or self._is_share(each):
                self.raises = False
            else:
                statement = self._raising(each)
                if statement is None:
                    return None
                checked.add(statement)
        for statement in checked:
            begin, indent = source.start(statement), source.indent_of(statement)
            check = f'{self.torch}._assert_async({self.some}, "`{name}` is empty")'
            swaps.append(Replacement(begin, begin, f"{check}{source.newline}{indent}"))
        return swaps if swaps else None

    def _asked(self, node: ast.AST) -> tuple[ast.expr, bool] | None:
        """The test around the list that asks whether it has elements, and True where it holds for one that has."""
        parent = self.source.parents[node]
        test: ast.expr | None = None
        there = True
        if isinstance(parent, (ast.If, ast.IfExp)) and parent.test is node:
            return parent.test, True
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            test, there = parent, False
        if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len":
            outer = self.source.parents[parent]
            if isinstance(outer, ast.Compare) and outer.left is parent and len(outer.ops) == 1:
                said = f"{type(outer.ops[0]).__name__} {ast.unparse(outer.comparators[0])}"
                test = outer if said in (*_ANY, *_NONE) else None
                there = said in _ANY
            elif isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
                test, there = outer, False
        if test is None:
            return None
        around = self.source.parents[test]
        return (test, there) if isinstance(around, (ast.If, ast.IfExp)) and around.test is test else None

    def _reduced(self, node: ast.Name, parent: ast.AST) -> Replacement | None:
        """The sum, mean or number of what was kept."""
        source, torch = self.source, self.torch
        total, count = self.total, self.count
        if (
            not isinstance(parent, ast.Call)
            or parent.keywords
            or not any(node is each for each in parent.args)
        ):
            return None
        called = ast.unparse(parent.func)
        empty = self._own_mean(node)
        if empty is not None:
            return source.swap(parent, f"({total} / {count}{'.clamp(min=1)' if empty == 'zero' else ''})")
        if called == "sum" and len(parent.args) == 1:
            return source.swap(parent, total)
        outer = source.parents[parent]
        if called == "len":
            least = _at_least(outer, parent)
            if least is not None:
                parent, outer, count = outer, source.parents[outer], f"{count}.clamp(min={source.of(least)})"
            divides = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.right is parent
            return source.swap(parent, count) if divides else None
        if called != f"{torch}.stack" or len(parent.args) != 1:
            return None
        how, whole = "", outer
        if isinstance(outer, ast.Attribute) and isinstance(source.parents[outer], ast.Call):
            call = source.parents[outer]
            assert isinstance(call, ast.Call)
            how, whole = (outer.attr if not call.args and not call.keywords else ""), call
        elif isinstance(outer, ast.Call) and len(outer.args) == 1 and not outer.keywords:
            how = ast.unparse(outer.func).removeprefix(f"{torch}.")
        if how not in ("sum", "mean") or not isinstance(whole, ast.expr):
            return None
        return source.swap(whole, total if how == "sum" else f"({total} / {count})")

    def _own_mean(self, node: ast.Name) -> str | None:
        """What a function of the file's own that gives the mean of the list at `node` does of an empty one; None where it
        gives anything else, or where the list is used again: the function may add to what it holds."""
        call = self.source.parents[node]
        if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
            return None
        if ast.unparse(call.func) in bound(self.function.body):
            return None
        function = self.functions.get(ast.unparse(call.func))
        loads = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == node.id and isinstance(each.ctx, ast.Load)
        ]
        # The one that appends, and this one.
        return mean_of(function) if function is not None and len(loads) == 2 else None

    def _is_guarded(self, node: ast.AST) -> bool:
        """Whether `node` is reached only where the list has elements."""
        source = self.source
        inner: ast.AST = node
        for outer in source.ancestors(node):
            if outer is self.function:
                break
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
                there = self._says(outer.test)
                body = outer.body if isinstance(outer.body, list) else [outer.body]
                if there is not None and there == any(inner is each for each in body):
                    return True
            inner = outer
        block, index = source.block_of(inner) if isinstance(inner, ast.stmt) else ([], 0)
        return any(
            isinstance(each, ast.If) and self._says(each.test) is False and "falls" not in exits(each.body)
            for each in block[:index]
        )

    def _is_share(self, node: ast.Name) -> bool:
        """Whether `node` is part of `sum(losses) / max(len(losses), 1)`, which is zero where nothing was kept, where a tensor will do."""
        source = self.source
        if self._own_mean(node) == "zero":
            return self._takes_a_tensor(source.parents[source.parents[node]])
        whole = next((each for each in source.ancestors(node) if isinstance(each, ast.BinOp)), None)
        if whole is None or not isinstance(whole.op, ast.Div):
            return False
        divisor = whole.right
        length = divisor.args[0] if isinstance(divisor, ast.Call) and divisor.args else None
        if (
            length is None
            or _at_least(divisor, length) is None
            or [ast.unparse(whole.left), ast.unparse(length)] != [f"sum({node.id})", f"len({node.id})"]
        ):
            return False
        return self._takes_a_tensor(source.parents[whole])

    def _takes_a_tensor(self, around: ast.AST) -> bool:
        """Whether what stands in `around` may be a tensor where it was a number."""
        if isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
            return len(around.targets) == 1 and not asks_type(self.source, around.targets[0].id)
        return isinstance(around, (ast.Return, ast.BinOp))

    def _raising(self, node: ast.Name) -> ast.stmt | None:
        """The statement that raises where the list is empty, by its use at `node`; None where it does not certainly."""
        source = self.source
        statement = source.enclosing_statement(node)
        if not isinstance(
            statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
        ) or not source.begins_line(statement):
            return None
        use = source.parents[node]
        assert isinstance(use, ast.Call)
        around = source.parents[use]
        divided = (
            isinstance(around, ast.BinOp)
            and isinstance(around.op, ast.Div)
            and [ast.unparse(each) for each in (around.left, around.right)]
            == [f"sum({node.id})", f"len({node.id})"]
        )
        raises = divided or self._own_mean(node) == "raises"
        if not raises and ast.unparse(use.func) != f"{self.torch}.stack":
            return None
        unsure = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.Compare)
        for each in source.ancestors(node):
            if each is statement:
                break
            if isinstance(each, unsure):
                return None
        return statement

    def _says(self, test: ast.expr) -> bool | None:
        """Whether `test` holds where the list has elements (True) or where it has none (False)."""
        for each in ast.walk(test):
            if isinstance(each, ast.Name) and each.id == self.found.name:
                asked = self._asked(each)
                return asked[1] if asked is not None and asked[0] is test else None
        return None

    def _of_no_rounds(self, node: ast.If) -> Replacement:
        """Where the loops around `node` have no round, the list gets a zero that is not kept: nothing stacks no tensors."""
        source, nl = self.source, self.source.newline
        loop = [each for each in source.ancestors(node) if isinstance(each, ast.For)][-1]
        indent = source.indent_of(loop)
        inner = indent + source.indent_unit()
        lines = [
            f"{indent}if not {self.kept}:",
            f"{inner}{self.found.name}.append({self.torch}.zeros(()))",
            f"{inner}{self.kept}.append({self.torch}.zeros((), dtype={self.torch}.bool))",
        ]
        end = source.span([loop])[1]
        return Replacement(end, end, nl + nl.join(lines))

    # --- several branches -----------------------------------------------------------------------------------

    def nested(self, statements: list[ast.stmt], indent: str, first: ast.stmt) -> list[str] | None:
        """The statements with the value in the place of what is appended, and without `continue`; None where `continue` is
        more than the whole of a branch. What stands above `first` stays there."""
        source, unit = self.source, self.source.indent_unit()
        lines: list[str] = []
        for index, each in enumerate(statements):
            if each is self.append:
                value = source.of(self.found.value)
                lines.append(f"{indent}{self.value} = " + (f"({value})" if "\n" in value else value))
                lines.append(f"{indent}{self.flag} = {self.torch}.ones((), dtype={self.torch}.bool)")
                continue
            skips = isinstance(each, ast.If) and "continues" in exits([each])
            leads = isinstance(each, ast.If) and any(one is self.append for one in ast.walk(each))
            if not skips and not leads:
                lines.append(source.block([each], indent))
                continue
            assert isinstance(each, ast.If)
            if each is not first:
                above = source.comments_between(source.span([each])[0], source.start(each))
                lines += [indent + one for one in above]
            if leads:
                inner = None if skips or each.orelse else self.nested(each.body, indent + unit, first)
                if inner is None:
                    return None
                lines += [f"{indent}if {source.of(each.test)}:", *inner]
                continue
            if each.orelse or len(each.body) != 1 or not isinstance(each.body[0], ast.Continue):
                return None
            rest = self.nested(statements[index + 1 :], indent + unit, first)
            return None if not rest else [*lines, f"{indent}if not ({source.of(each.test)}):", *rest]
        return lines

    def deeper_text(
        self,
        node: ast.If,
        region: list[ast.stmt],
        nested: list[str],
        uses: list[Replacement],
        zero: str,
        runs: bool,
    ) -> tuple[Source, ast.If] | None:
        """The text with the statements of `region` as `nested`."""
        indent = self.source.indent_of(node)
        head = [
            f"{self.value} = {zero}",
            f"{indent}{self.flag} = {self.torch}.zeros((), dtype={self.torch}.bool)",
        ]
        first_if = next(number for number, line in enumerate(nested) if line.lstrip().startswith("if "))
        tail = [
            f"{indent}{self.found.name}.append({self.value})",
            f"{indent}{self.kept}.append({self.flag})",
        ]
        return self._put(node, region, head, nested, tail, first_if, uses, runs)

    def _put(
        self,
        node: ast.If,
        region: list[ast.stmt],
        head: list[str],
        nested: list[str],
        tail: list[str],
        first_if: int,
        uses: list[Replacement],
        runs: bool,
    ) -> tuple[Source, ast.If]:
        source, nl = self.source, self.source.newline
        begin, start = source.start(node), self.found.start
        first = f"{nl}{source.indent_of(start)}{self.kept} = []"
        end = source.span([start])[1]
        text = nl.join([*head, *nested, *tail])
        swaps = [Replacement(end, end, first), Replacement(begin, source.span(region)[1], text), *uses]
        if not runs:
            swaps.append(self._of_no_rounds(node))
        changed = Source(replaced(source.text, swaps))
        indent = len(source.indent_of(node))
        offset = begin + len(first) + len(nl.join([*head, *nested[:first_if]])) + len(nl) + indent
        return changed, changed.branch_at(offset)

    def text(
        self,
        node: ast.If,
        arm: list[ast.stmt],
        skips: bool,
        uses: list[Replacement],
        test: str,
        zero: str,
        runs: bool,
    ) -> tuple[Source, ast.If]:
        source, nl = self.source, self.source.newline
        indent = source.indent_of(node)
        inner = indent + source.indent_unit()
        value = source.of(self.found.value)
        value = f"({value})" if "\n" in value else value
        lines = [
            f"{self.flag} = {test}",
            f"{indent}{self.value} = {zero}",
            f"{indent}if {self.flag}:",
            *(inner + each for each in source.comments_between(source.end(node.test), source.span(arm)[0])),
            source.block(arm, inner, [source.swap(self.append, f"{self.value} = {value}")]),
            f"{indent}{self.found.name}.append({self.value})",
            f"{indent}{self.kept}.append({self.flag})",
        ]
        begin, start = source.start(node), self.found.start
        first = f"{nl}{source.indent_of(start)}{self.kept} = []"
        end = source.span([start])[1]
        changed = Source(
            replaced(
                source.text,
                [
                    *([] if runs else [self._of_no_rounds(node)]),
                    Replacement(end, end, first),
                    Replacement(begin, source.span(arm if skips else [node])[1], nl.join(lines)),
                    *uses,
                ],
            )
        )
        offset = begin + len(first) + len(nl.join(lines[:2]) + nl + indent)
        return changed, changed.branch_at(offset)


_ANY = ("Gt 0", "GtE 1", "NotEq 0")
_NONE = ("Eq 0", "Lt 1", "LtE 0")
