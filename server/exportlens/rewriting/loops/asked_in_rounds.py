"""A branch around a loop that writes to each tensor it goes through asks in each round instead.

    if norm > 1.0:                           clipped = norm > 1.0
        scale = 1.0 / norm                   for grad in grads:
        for grad in grads:          ->           if clipped:
            grad.mul_(scale)                         scale = 1.0 / norm
                                                     grad.mul_(scale)

What an arm of torch.cond writes must have a name before the branch, which each tensor has in its own round.
"""

from __future__ import annotations

import ast
import itertools

from exportlens.inference.values import Instance, Sequence
from exportlens.rewriting.code.liveness import Liveness, exits, live_before
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log, loaded, repeatable, visit, writes_of

ASK = "Ask in each round of the loop, whose tensors then have names"
_NUMBERS = ("number", "scalar", "size")
_TOLD = ("is_leaf", "requires_grad", "training")
_UNFAILING = frozenset(
    {
        "abs",
        "clamp",
        "detach",
        "exp",
        "float",
        "log",
        "max",
        "mean",
        "min",
        "norm",
        "sigmoid",
        "sqrt",
        "square",
        "sum",
        "tanh",
    }
)
_OF_NUMBERS = (ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.UnaryOp)
_ROWS = ("enumerate", "reversed", "zip")
_OF_MODULES = ("buffers", "named_buffers", "named_parameters", "parameters")
_OF_DICTS = ("items", "values")


def asked_in_rounds(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The whole text with the question inside of the loops that `node` holds; None where that may do something else."""
    function = source.enclosing_function(node)
    begin, end = source.start(node), source.span([node])[1]
    if function is None or not source.begins_line(node) or source.text.startswith("elif", begin):
        return None
    arms = [(node.body, ""), (node.orelse, "not ")]
    behind = _left_behind(source, node, function)
    if behind is not None:
        arms, end = [(behind, "not ")], source.span(behind)[1]
    if node.orelse and set(bound(node.body)) & live_before(node.orelse, frozenset(), function):
        return None
    asked = _Asked(source, function, behind[-1] if behind else node, kinds)
    test = source.of(node.test)
    if asked.is_of_numbers(node.test):
        name, plain = test, isinstance(node.test, (ast.Name, ast.Attribute))
    else:
        name, plain = fresh("asked", every_name(source.tree)), True
    texts = [
        asked.rounds(node.test, arm, f"{word}{name}" if plain or not word else f"not ({name})")
        for arm, word in arms
        if arm
    ]
    if not texts or any(each is None for each in texts):
        return None
    indent, nl = source.indent_of(node), source.newline
    lines = [each for each in texts if each]
    text = nl.join(lines if name is test else [f"{indent}{name} = {test}", *lines])
    # What is said of the question stays in front of it.
    lost = source.comments_lost(begin, end, text)
    text = nl.join([*(f"{indent}{each}" for each in lost), text])
    return replaced(source.text, [Replacement(source.line_start(begin), end, text)])


def _left_behind(source: Source, node: ast.If, function: Function) -> list[ast.stmt] | None:
    """The loops that only run where `node` does not return, with which the function ends, or returns the same."""
    if node.orelse or len(node.body) != 1 or not isinstance(node.body[0], ast.Return):
        return None
    block, index = source.block_of(node)
    rest, result = block[index + 1 :], node.body[0].value
    if block is not function.body or not rest:
        return None
    end = rest[-1]
    if isinstance(end, ast.Return):
        rest, last = rest[:-1], end.value
        if (result is None) != (last is None) or (result and last and ast.dump(result) != ast.dump(last)):
            return None
    elif result is not None:
        return None
    given = [] if result is None else result.elts if isinstance(result, ast.Tuple) else [result]
    if not rest or not all(isinstance(each, (ast.Constant, ast.Name)) for each in given):
        return None
    return rest


def _inside(body: list[ast.stmt], kinds: Kinds) -> tuple[ast.With | None, list[ast.stmt]]:
    """The `with torch.no_grad():` that `body` ends with, and all statements with those in it."""
    *before, only = body
    if not isinstance(only, ast.With) or len(only.items) != 1:
        return None, body
    item = only.items[0]
    call = item.context_expr
    if item.optional_vars is not None or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None, body
    return (only, [*before, *only.body]) if kinds.qualified(call.func) == "torch.no_grad" else (None, body)


class _Asked:
    def __init__(self, source: Source, function: Function, last: ast.stmt, kinds: Kinds) -> None:
        # Behind `last`, what the loops bind is no longer read.
        self.source, self.function, self.last, self.kinds = source, function, last, kinds

    def rounds(self, test: ast.expr, body: list[ast.stmt], asked: str) -> str | None:
        """The loops that `body` ends with, where each round asks; None where that may do something else."""
        source = self.source
        indent, nl, unit = source.indent_of(self.node_of(test)), source.newline, source.indent_unit()
        logs = list(
            itertools.takewhile(
                lambda each: isinstance(each, ast.Expr) and is_log(each.value, self.kinds), body
            )
        )
        if len(logs) == len(body):
            return None
        context, body = _inside(body[len(logs) :], self.kinds)
        count = next((number for number, each in enumerate(body) if isinstance(each, ast.For)), len(body))
        before, loops = body[:count], [each for each in body[count:] if isinstance(each, ast.For)]
        if not loops or len(loops) != len(body) - count or not self._may_move(test, before, loops):
            return None
        told = [f"{indent}if {asked}:", source.block(logs, indent + unit)] if logs else []
        once = self._are_harmless(before)
        lines = [*told, *(source.block([each], indent) for each in before if once)]
        first = [] if once else before
        if context is not None:
            lines.append(
                f"{indent}{source.between(source.start(context), source.end(context.items[0].context_expr))}:"
            )
            indent += unit
        for loop in loops:
            idle = self._idle(loop)
            lines.append(f"{indent}{source.between(source.start(loop), source.end(loop.iter))}:")
            lines += [source.block(loop.body[:idle], indent + unit)] if idle else []
            lines.append(f"{indent}{unit}if {asked}:")
            lines += [source.block([each], indent + unit * 2) for each in [*first, *loop.body[idle:]]]
        return nl.join(lines)

    def node_of(self, test: ast.expr) -> ast.AST:
        return self.source.parents[test]

    def _idle(self, loop: ast.For) -> int:
        """How many statements of a round come first that leave it, by questions that cost and change nothing."""
        return next(
            (number for number, each in enumerate(loop.body) if not self._may_leave(each)), len(loop.body)
        )

    def _may_leave(self, node: ast.stmt) -> bool:
        leaves = isinstance(node, ast.If) and not node.orelse and isinstance(node.body[0], ast.Continue)
        return leaves and isinstance(node, ast.If) and _is_told(node.test)

    def is_of_numbers(self, test: ast.expr) -> bool:
        """Whether `test` only compares and computes with numbers, which nothing writes to."""
        if isinstance(test, (ast.Name, ast.Attribute)):
            return self.kinds.of(test).what in _NUMBERS
        parts = [each for each in ast.iter_child_nodes(test) if isinstance(each, ast.expr)]
        return isinstance(test, _OF_NUMBERS) and all(map(self.is_of_numbers, parts))

    def _may_move(self, test: ast.expr, before: list[ast.stmt], loops: list[ast.For]) -> bool:
        changed = set(bound([*before, *loops]))
        if not repeatable(test, self.kinds) or changed & Liveness(self.function).live_after(self.last):
            return False
        if changed & (reads(test) | {name for each in loops for name in reads(each.iter)}):
            return False
        if not self.is_of_numbers(test) and not self._is_answered_at_once(test):
            return False
        if any(each.orelse or exits(each.body[self._idle(each) :]) != {"falls"} for each in loops):
            return False
        return all(self._is_gone_through_again(each.iter) for each in loops) and self._stays(before, loops)

    def _is_answered_at_once(self, test: ast.expr) -> bool:
        """Whether a name for `test` stays the same: one for a tensor itself would see what is written to it."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        kind = self.kinds.of(test)
        compared = isinstance(test, ast.Compare) and len(test.ops) == 1
        return compared or (isinstance(test, ast.Call) and (kind.what == "scalar" or kind.fresh))

    def _is_gone_through_again(self, node: ast.expr) -> bool:
        """Whether going through `node` changes nothing, and is possible whatever the question says."""
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Name) and func.id == "range" and not node.keywords:
                return all(map(self._is_count, node.args))
            if isinstance(func, ast.Name) and func.id in _ROWS and not node.keywords:
                return all(map(self._is_gone_through_again, node.args))
            if not isinstance(func, ast.Attribute) or node.args or node.keywords:
                return False
            owner = self.kinds.of(func.value)
            if func.attr in _OF_MODULES:
                return owner.what == "object" and isinstance(owner.value, Instance)
            return func.attr in _OF_DICTS and owner.what == "container"
        if isinstance(node, (ast.List, ast.Tuple)):
            return all(dotted(each) is not None for each in node.elts)
        kind = self.kinds.of(node)
        if dotted(node) is None or kind.what != "container":
            return False
        values = self._bound_to(node)
        if values is None:
            return isinstance(kind.value, Sequence) and kind.value.kind in ("list", "tuple")
        return all(isinstance(each, (ast.List, ast.ListComp, ast.Tuple)) or _lists(each) for each in values)

    def _is_count(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return dotted(node.func) == "len" and self.kinds.of(node.args[0]).what == "container"
        return self.kinds.of(node).what in ("number", "size")

    def _bound_to(self, node: ast.expr) -> list[ast.expr] | None:
        """What the function binds to the name `node`; None where it is given from outside."""
        bindings = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.stmt) and isinstance(node, ast.Name) and _binds(each, node.id)
        ]
        if not bindings:
            return None
        plain = [each for each in bindings if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value]
        # What is bound in other ways may be what goes on where it was left.
        return [each.value for each in plain if each.value] if len(plain) == len(bindings) else [node]

    def _stays(self, before: list[ast.stmt], loops: list[ast.For]) -> bool:
        """Whether `before` gives the same in each round: what it reads is not what the loops write."""
        names = [
            each.targets[0] for each in before if isinstance(each, ast.Assign) and len(each.targets) == 1
        ]
        if len(names) != len(before) or not all(isinstance(each, ast.Name) for each in names):
            return False
        within = set(bound([each for loop in loops for each in loop.body]))
        if {each.id for each in names if isinstance(each, ast.Name)} & within:
            return False
        written: list[frozenset[str] | None] = []

        def see(node: ast.stmt, now: Kinds) -> None:
            written.extend(now.of(loaded(write.base)).roots for write in writes_of(node, now))

        now = self.kinds.copy()
        now.run(before)
        visit(loops, now.copy(), see)
        memory = set().union(*(each for each in written if each is not None))
        if not written or None in written:
            return False
        for each in () if self._are_harmless(before) else before:
            assert isinstance(each, ast.Assign)
            calls = [call for call in ast.walk(each.value) if isinstance(call, ast.Call)]
            if not repeatable(each.value, self.kinds) or not all(map(self._is_plain, calls)):
                return False
            for part in ast.walk(each.value):
                if not isinstance(part, (ast.Name, ast.Attribute)) or dotted(part) is None:
                    continue
                kind = now.of(part)
                own = kind.roots and all(root.startswith(LOCAL) and root not in memory for root in kind.roots)
                if kind.what == "tensor" and not own:
                    return False
                if kind.what not in ("tensor", *_NUMBERS) and not self._is_called(part):
                    return False
        return True

    def _are_harmless(self, before: list[ast.stmt]) -> bool:
        """Whether `before` only computes tensors of their own, by what fails for no value, so that it may run in any case."""
        now = self.kinds.copy()
        for each in before:
            assert isinstance(each, ast.Assign)
            kind, parts = (
                now.of(each.value),
                [one for one in ast.walk(each.value) if isinstance(one, ast.expr)],
            )
            if (
                kind.what != "tensor"
                or not kind.fresh
                or not all(self._fails_for_nothing(one, now) for one in parts)
            ):
                return False
            now.run([each])
        return True

    def _fails_for_nothing(self, node: ast.expr, kinds: Kinds) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, (ast.Add, ast.Div, ast.Mult, ast.Sub)) and "tensor" in (
                kinds.of(node.left).what,
                kinds.of(node.right).what,
            )
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and kinds.of(node.func.value).what == "tensor":
                return node.func.attr in _UNFAILING
            return (kinds.qualified(node.func) or "").removeprefix("torch.") in _UNFAILING
        return isinstance(node, (ast.Attribute, ast.Constant, ast.Name, ast.UnaryOp))

    def _is_plain(self, call: ast.Call) -> bool:
        """Whether `call` is a function of torch or Python, or a method of a tensor."""
        if isinstance(call.func, ast.Attribute) and self.kinds.of(call.func.value).what == "tensor":
            return True
        name = self.kinds.qualified(call.func) or dotted(call.func) or ""
        return name.startswith(("torch.", "math.")) or name in ("abs", "float", "max", "min")

    def _is_called(self, node: ast.expr) -> bool:
        """Whether `node` is, or is a part of, what a call names, as `torch` of `torch.exp(x)`, or `self` of `self.scale`."""
        parent = self.source.parents[node]
        if isinstance(parent, ast.Attribute):
            return self._is_called(parent) or self.kinds.of(parent).what in ("tensor", *_NUMBERS)
        return isinstance(parent, ast.Call) and parent.func is node


def _is_told(test: ast.expr) -> bool:
    """Whether what a tensor or Module is called, or says of itself, answers `test`: `"bias" in name`, `p.grad is None`."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_told, test.values))
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not) and _is_told(test.operand)
    if isinstance(test, ast.Attribute):
        return test.attr in _TOLD and dotted(test) is not None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    return all(isinstance(each, ast.Constant) or dotted(each) for each in sides) and any(
        isinstance(each, ast.Constant) and (each.value is None or isinstance(each.value, str))
        for each in sides
    )


def _lists(node: ast.expr) -> bool:
    """Whether `node` makes a list or a tuple of what it is given."""
    return isinstance(node, ast.Call) and dotted(node.func) in ("list", "sorted", "tuple")


def _binds(node: ast.stmt, name: str) -> bool:
    """Whether the statement `node` itself binds `name`."""
    inner = {
        id(each)
        for one in ast.walk(node)
        if isinstance(one, ast.stmt) and one is not node
        for each in ast.walk(one)
    }
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(node)
        if id(each) not in inner
    )
