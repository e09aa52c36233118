"""A loop that looks for the first round in which something holds: all rounds are asked, and the first that says yes is found at once.

    for i in range(n):                 found = torch.stack([x[i] > y[i] for i in range(n)])
        if x[i] > y[i]:          ->    if found.any():
            return i                       return found.int().argmax().item()
    return None                        return None

Where another number stands for none, torch.where chooses between the two. What is asked of a tensor's own numbers is asked of the
tensor.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.listed_tensors import asked_of_all, in_brackets, tensor_of_list
from exportlens.rewriting.memory.effects import kinds_before, refuse_effects, repeatable
from exportlens.source.walking import walk

_ELEMENTWISE = frozenset(
    {
        *("abs", "double", "bool", "float", "trunc", "isnan", "isinf", "isfinite"),
        *("logical_not", "logical_and", "logical_or"),
    }
)
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def first_round_found(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> str | None:
    """The whole text without `loop`, which looks for its first round that something holds for; None where it does more. `kinds`
    are those inside of the loop."""
    function = source.enclosing_function(loop)
    search = _search(loop)
    if function is None or search is None or not source.begins_line(loop):
        return None
    made = _Found(source, function, loop, search, kinds, torch)
    return made.text() if made.is_plain() else None


@dataclass(frozen=True, slots=True)
class _Search:
    """The `if` that ends the search, and what it gives where that is all it does: the value that is returned, or values by
    their names."""

    node: ast.If
    returned: ast.expr | None
    named: dict[str, ast.expr]


def _search(loop: ast.For) -> _Search | None:
    *before, node = loop.body
    plain = all(
        isinstance(each, ast.Assign) and all(isinstance(one, ast.Name) for one in each.targets)
        for each in before
    )
    if not plain or not isinstance(node, ast.If) or node.orelse:
        return None
    *given, last = node.body
    if exits(node.body) == {"returns"}:
        # What `else` holds runs where nothing is found, as what follows.
        value = last.value if isinstance(last, ast.Return) and not given else None
        return None if loop.orelse else _Search(node, value, {})
    if exits(node.body) != {"breaks"} or not isinstance(last, ast.Break):
        return None
    named: dict[str, ast.expr] = {}
    for each in given:
        target = each.targets[0] if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name) or target.id in named:
            return _Search(node, None, {})
        if named.keys() & reads(each.value):
            return _Search(node, None, {})
        named[target.id] = each.value
    return _Search(node, None, named)


class _Found:
    def __init__(
        self, source: Source, function: Function, loop: ast.For, search: _Search, kinds: Kinds, torch: str
    ) -> None:
        self.source, self.function, self.loop, self.search, self.torch = source, function, loop, search, torch
        self.before = kinds_before(function, loop, kinds)
        self.now = kinds_before(function, search.node, kinds)
        taken = every_name(function)
        self.found, self.first = fresh("found", taken), fresh("first", taken)
        self.asked = fresh("asked", taken)
        target = loop.target
        pair = target.elts if isinstance(target, ast.Tuple) else []
        called = loop.iter if isinstance(loop.iter, ast.Call) else None
        name = dotted(called.func) if called is not None else None
        self.rows: ast.expr = loop.iter
        self.counter = self.element = ""
        if called is not None and name == "enumerate" and len(called.args) == 1 and not called.keywords:
            self.rows = called.args[0]
            if len(pair) == 2 and isinstance(pair[0], ast.Name) and isinstance(pair[1], ast.Name):
                self.counter, self.element = pair[0].id, pair[1].id
        elif isinstance(target, ast.Name):
            self.element = target.id
        self.range = called if name == "range" else None
        self.tensor = tensor_of_list(source, self.rows, self.before)
        self.unlisted = self._unlisted()
        self.read: set[str] = set()

    def _unlisted(self) -> list[Replacement]:
        """What leaves out `.tolist()` where the list has a name that nothing else reads: it is the tensor's then."""
        if self.tensor is None or not isinstance(self.rows, ast.Name) or self.function is None:
            return []
        same = [
            each for each in walk(self.function) if isinstance(each, ast.Name) and each.id == self.rows.id
        ]
        made = [self.source.parents[each] for each in same if not isinstance(each.ctx, ast.Load)]
        if len(same) != 2 or len(made) != 1 or not isinstance(made[0], ast.Assign):
            return []
        owner = self.tensor
        self.tensor = self.rows
        self.before.names[self.rows.id] = self.before.of(owner)
        return [Replacement(self.source.end(owner), self.source.end(made[0].value), "")]

    def is_plain(self) -> bool:
        """Whether the rounds only ask, and what they bind is not read behind them."""
        loop = self.loop
        own = {*bound(loop.target), *bound(loop.body[:-1])}
        values = [each.value for each in loop.body[:-1] if isinstance(each, ast.Assign)]
        asked = [*values, self.search.node.test]
        body = self.search.node.body
        live = own & Liveness(self.function).live_after(loop)
        if live and (not loop.orelse or "falls" in exits(loop.orelse) or live & set(bound(loop.body[:-1]))):
            return False
        self.read = (own & reads(body)) | live
        if (
            own & set(bound(body))
            or set(bound(body)) & reads(asked)
            or not all(repeatable(each, self.now) for each in asked)
        ):
            return False
        try:
            refuse_effects(self.source, loop.body[:-1], self.before, self.function)
        except Refused:
            return False
        return len(exits(loop.body) & {"breaks", "returns", "raises"}) == 1

    # --- what is asked ----------------------------------------------------------------------------------------

    def _asking(self) -> list[str] | None:
        """The lines, without indentation, that bind what the rounds say."""
        source, torch, loop = self.source, self.torch, self.loop
        at_once = self._at_once() if len(loop.body) == 1 else None
        if at_once is not None:
            return [f"{self.found} = {at_once}"]
        if self.tensor is not None:
            return None
        predicates = Predicates(source, self.now, torch)
        try:
            condition = predicates.read(self.search.node.test)
        except Refused:
            return None
        if condition.form != "tensor":
            return None
        test = scalar_bool(condition)
        header = f"for {source.of(loop.target)} in {source.of(loop.iter)}"
        none = f"{torch}.zeros((), dtype={torch}.bool)"
        filled = self.before.has_elements(loop.iter)
        if len(loop.body) == 1:
            rounds = f"[{test} {header}]" if filled else f"[*({test} {header}), {none}]"
            return [f"{self.found} = {torch}.stack({rounds})"]
        unit = source.indent_unit()
        body = source.block(loop.body[:-1], unit).split(source.newline)
        last = [] if filled else [f"{self.asked}.append({none})"]
        lines = [f"{self.asked} = []", f"{header}:", *body, f"{unit}{self.asked}.append({test})", *last]
        return [*lines, f"{self.found} = {torch}.stack({self.asked})"]

    def _kind(self, name: str) -> Kind:
        return self.before.names.get(name, Kind("unknown"))

    def _at_once(self) -> str | None:
        """What all rounds say where they ask the numbers of one tensor."""
        test = self.search.node.test
        if self.tensor is not None and self.element:
            if self.counter in reads(test) - {""}:
                return None
            asked = asked_of_all(self.source, test, self.element, self.tensor, self.now, True)
            return asked or self._asked_by_index(test, self.tensor)
        return self._asked_of_items()

    def _asked_of_items(self) -> str | None:
        """What all rounds say where they count through one tensor, and ask nothing but its items: `x[i] > 0` is `x > 0`."""
        owner = self._counted_through()
        if owner is None:
            return None
        predicates = Predicates(self.source, self.now, self.torch)
        try:
            condition = predicates.read(self.search.node.test)
        except Refused:
            return None
        if condition.form != "tensor":
            return None
        asked = Source(f"({condition.text})")
        statement = asked.tree.body[0]
        item = f"{owner}[{self.element}]"
        if not isinstance(statement, ast.Expr) or not self._is_elementwise(statement.value, item):
            return None
        swaps = [asked.swap(each, owner) for each in walk(statement) if isinstance(each, ast.Subscript)]
        whole = asked.of(statement.value, swaps)
        if condition.dtype != "bool":
            whole = f"{in_brackets(whole)}.bool()"
        ranks = [each.rank for each in map(self.now.of, self._items(owner))]
        return whole if ranks and set(ranks) == {0} else f"{in_brackets(whole)}.reshape(-1)"

    def _items(self, owner: str) -> list[ast.expr]:
        test = self.search.node.test
        return [
            each
            for each in walk(test)
            if isinstance(each, ast.Subscript) and ast.unparse(each.value) == owner
        ]

    def _counted_through(self) -> str | None:
        """The tensor through whose items the loop counts, `for i in range(len(x))`."""
        called = self.range
        if called is None or len(called.args) != 1 or called.keywords or not self.element:
            return None
        names = sorted(name for name in reads(self.search.node.test) if self._kind(name).what == "tensor")
        sizes = ("len({0})", "{0}.shape[0]", "{0}.size(0)", "{0}.numel()")
        count = ast.unparse(called.args[0])
        counts = {count, ast.unparse(self._only_value(called.args[0]) or called.args[0])}
        return next((name for name in names if counts & {each.format(name) for each in sizes}), None)

    def _only_value(self, node: ast.expr) -> ast.expr | None:
        """What the function binds the name `node` to, where nothing else is bound to it or to what it is the size of."""
        stores = [
            each
            for each in walk(self.function)
            if isinstance(each, ast.Name)
            and isinstance(node, ast.Name)
            and each.id == node.id
            and not isinstance(each.ctx, ast.Load)
        ]
        made = self.source.parents[stores[0]] if len(stores) == 1 else None
        if not isinstance(made, ast.Assign) or made.targets != stores:
            return None
        return None if reads(made.value) & set(bound(self.function.body)) else made.value

    def _is_elementwise(self, node: ast.expr, item: str) -> bool:
        """Whether `node` computes for each item what it computes for `item`, of a tensor and numbers."""
        if ast.unparse(node) == item:
            return True
        if isinstance(node, ast.Compare):
            return (
                all(
                    self._is_elementwise(each, item) or self._is_number(each)
                    for each in [node.left, *node.comparators]
                )
                and len(node.ops) == 1
                and not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
            )
        if isinstance(node, ast.BinOp):
            return all(
                self._is_elementwise(each, item) or self._is_number(each) for each in (node.left, node.right)
            )
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._is_elementwise(node.operand, item)
        if not isinstance(node, ast.Call) or node.keywords:
            return False
        func = node.func
        if isinstance(func, ast.Attribute) and dotted(func.value) == self.torch and func.attr in _ELEMENTWISE:
            return bool(node.args) and all(self._is_elementwise(each, item) for each in node.args)
        method = isinstance(func, ast.Attribute) and func.attr in _ELEMENTWISE and not node.args
        return method and isinstance(func, ast.Attribute) and self._is_elementwise(func.value, item)

    def _is_number(self, node: ast.expr) -> bool:
        """Whether `node` is a number of Python that is the same for all items."""
        return self.now.of(node).what in ("number", "size") and self.element not in every_name(node)

    def _asked_by_index(self, test: ast.expr, tensor: ast.expr) -> str | None:
        """`test` where an element is nothing but an index of tensors: all of these are taken."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._asked_by_index(test.operand, tensor)
            return None if inner is None else f"~({inner})"
        if isinstance(test, ast.BoolOp):
            parts = [self._asked_by_index(each, tensor) for each in test.values]
            word = " & " if isinstance(test.op, ast.And) else " | "
            return None if None in parts else word.join(f"({each})" for each in parts)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            side, other = test.left, self.now.of(test.comparators[0])
            taken = self._taken(side, tensor)
            known = other.what in ("number", "size") and not isinstance(test.ops[0], (ast.In, ast.NotIn))
            if taken is None or not known or self.element in reads(test.comparators[0]):
                return None
            return self.source.of(test, [self.source.swap(side, taken)])
        taken = self._taken(test, tensor)
        if taken is None:
            return None
        return taken if self.now.of(test).dtype == "bool" else f"{taken}.bool()"

    def _taken(self, node: ast.expr, tensor: ast.expr) -> str | None:
        """The items of `node`, which takes one of a tensor by the element."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
            return None
        owner = self.now.of(node.value)
        if node.slice.id != self.element or owner.what != "tensor" or owner.rank not in (None, 1):
            return None
        if self.element in reads(node.value):
            return None
        text = f"{self.source.of(node.value)}[{self.source.of(tensor)}]"
        return text if owner.rank == 1 else f"{text}.reshape(-1)"

    # --- what is given ----------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> tuple[str, str] | None:
        """The tensor of one number that `node` is in the first round that says yes, and the number's type."""
        source = self.source
        if (
            isinstance(node, ast.BinOp)
            and type(node.op) in _ARITHMETIC
            and written_int(node.right) is not None
        ):
            inner = self._value(node.left)
            if inner is None or inner[1] != "int":
                return None
            return f"{in_brackets(inner[0])} {_ARITHMETIC[type(node.op)]} {source.of(node.right)}", "int"
        if not isinstance(node, ast.Name) or node.id in bound(self.loop.body[:-1]):
            return None
        if node.id == self.counter:
            return self.first, "int"
        if node.id != self.element:
            return None
        if self.range is not None and not self.range.keywords:
            return self._of_range(self.range.args)
        if self.tensor is not None:
            dtype = self.before.of(self.tensor).dtype or ""
            type_ = "int" if dtype.startswith(("int", "uint")) else "float" if "float" in dtype else ""
            wide = ".double()" if type_ == "float" and dtype != "float64" else ""
            text = f"{in_brackets(source.of(self.tensor))}[{self.first}.reshape(1)].squeeze(0){wide}"
            return (text, type_) if type_ else None
        kind = self.now.of(node)
        if (
            kind.what in ("number", "size")
            and kind.type == "int"
            and self.before.has_elements(self.loop.iter)
        ):
            return (
                f"{self.torch}.tensor([*{source.of(self.rows)}])[{self.first}.reshape(1)].squeeze(0)",
                "int",
            )
        return None

    def _of_range(self, args: list[ast.expr]) -> tuple[str, str] | None:
        if len(args) == 1:
            return self.first, "int"
        step = written_int(args[2]) if len(args) == 3 else 1
        start = args[0]
        if step is None or self.before.of(start).what not in ("number", "size"):
            return None
        begin = in_brackets(self.source.of(start))
        if written_int(start) == 0 and step == 1:
            return self.first, "int"
        far = self.first if abs(step) == 1 else f"{abs(step)} * {self.first}"
        return f"{begin} {'+' if step > 0 else '-'} {far}", "int"

    # --- writing ----------------------------------------------------------------------------------------------

    def text(self) -> str | None:
        source, loop = self.source, self.loop
        asking = self._asking()
        if asking is None:
            return None
        indent, nl = source.indent_of(loop), source.newline
        inner = indent + source.indent_unit()
        lines, end = self._chosen(), source.span([loop])[1]
        if lines is not None:
            block, index = source.block_of(loop)
            end = source.span([block[index + 1]])[1]
        else:
            arm = self._named() or self._arm()
            if arm is None:
                return None
            lines = [f"if {self.found}.any():", *(source.indent_unit() + each for each in arm)]
            if loop.orelse:
                lines += ["else:", source.block(loop.orelse, inner).removeprefix(indent)]
        begin = source.span([loop])[0]
        above = source.comments_between(begin, source.start(loop))
        notes = source.comments_between(source.start(loop), source.span([loop])[1])
        written = nl.join(lines)
        inside = [
            each
            for each in notes
            if each not in source.comments_between(*self._kept()) and each not in written
        ]
        text = nl.join(indent + each for each in [*above, *inside, *asking, *lines])
        return replaced(source.text, [*self.unlisted, Replacement(begin, end, text)])

    def _chosen(self) -> list[str] | None:
        """The lines that return the one number or the other, where the statement behind the loop returns one of its type."""
        block, index = self.source.block_of(self.loop)
        following = block[index + 1] if index + 1 < len(block) else None
        given = self.search.returned
        if given is None or not isinstance(following, ast.Return) or following.value is None:
            return None
        value = self._value(given)
        if value is None or not self._is_alike(following.value, value[1]):
            return None
        first, text = self._first([value[0]])
        other = self.source.of(following.value)
        return [*first, f"return {self.torch}.where({self.found}.any(), {text[0]}, {other}).item()"]

    def _first(self, texts: list[str]) -> tuple[list[str], list[str]]:
        """The line that names the first round where more than its number is read, and `texts` as they are behind that."""
        text = f"{self.found}.int().argmax()"
        if all(each == self.first or self.first not in every_name(ast.parse(each)) for each in texts):
            return [], [text if each == self.first else each for each in texts]
        return [f"{self.first} = {text}"], texts

    def _named(self) -> list[str] | None:
        """The lines that give numbers and constants, where the search gives nothing else; None where it does."""
        returned, named = self.search.returned, self.search.named
        given = (
            {"return": returned}
            if returned is not None
            else {f"{name} =": each for name, each in named.items()}
        )
        values = {head: self._value(each) for head, each in given.items()}
        if not any(values.values()) or self.read - reads(list(given.values())):
            return None
        if any(each is None and not isinstance(given[head], ast.Constant) for head, each in values.items()):
            return None
        known = {head: each[0] for head, each in values.items() if each is not None}
        first, texts = self._first(list(known.values()))
        numbers = dict(zip(known, texts, strict=True))
        return first + [
            f"{head} {in_brackets(numbers[head])}.item()"
            if head in numbers
            else f"{head} {self.source.of(each)}"
            for head, each in given.items()
        ]

    def _arm(self) -> list[str] | None:
        """The lines that bind what the round found counted or took, and do what the search does then."""
        source, node = self.source, self.search.node
        if self.read & set(bound(self.loop.body[:-1])):
            return None
        values = [(name, self._value(ast.Name(name, ast.Load()))) for name in sorted(self.read)]
        known = [(name, each[0]) for name, each in values if each is not None]
        if len(known) < len(values) or not known:
            return None
        first, texts = self._first([text for _, text in known])
        bindings = [
            f"{name} = {in_brackets(text)}.item()" for (name, _), text in zip(known, texts, strict=True)
        ]
        body = node.body[:-1] if isinstance(node.body[-1], ast.Break) else node.body
        lines = source.block(body, source.indent_of(self.loop) + source.indent_unit()).split(source.newline)
        head = len(source.indent_of(self.loop) + source.indent_unit())
        if any(line[:head].strip() for line in lines):
            return None
        return [*first, *bindings, *(line[head:] for line in lines if body)]

    def _kept(self) -> tuple[int, int]:
        """The part of the loop that stays as it is."""
        if self.loop.orelse:
            return self.source.span(self.loop.orelse)
        before = self.loop.body[:-1]
        return self.source.span(before) if before else (0, 0)

    def _is_alike(self, node: ast.expr, type_: str) -> bool:
        """Whether `node` is a number of the same type, so that torch.where gives what Python gives."""
        kind = self.before.of(node)
        if type_ == "int" and _is_place(node):
            return True
        plain = not any(isinstance(each, ast.Call) for each in walk(node)) or kind.what == "size"
        return kind.what in ("number", "size") and kind.type == type_ and plain


def _is_place(node: ast.expr) -> bool:
    """Whether `node` is `self.NAMES.index("name")`: where an item stands is an int."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute) or func.attr != "index":
        return False
    return dotted(func.value) is not None and len(node.args) == 1 and isinstance(node.args[0], ast.Constant)
