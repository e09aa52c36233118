"""Expressions: the value of each kind of expression, and what a test teaches about names."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from typing import Any

from exportlens.inference.attributes import get_attribute
from exportlens.inference.classes import define_lambda
from exportlens.inference.items import get_item
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import distinct, join
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import lookup
from exportlens.inference.narrowing import narrow
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.operators import binary, compare, unary
from exportlens.inference.places import Conversion, Division, Truth
from exportlens.inference.state import Locals
from exportlens.inference.tensors import text_of
from exportlens.inference.truth import DATA, truth_of
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Instance,
    Mapping_,
    Sequence,
    Shape,
    Slice,
    Static,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)

_UNROLL = 24


def evaluate(machine: Machine, node: ast.expr, frame: Frame) -> Value:
    """The abstract value of `node`. Raises Raised when evaluating it certainly raises."""
    run = _EXPRESSIONS.get(type(node))
    value = run(machine, node, frame) if run is not None else Unknown("an expression that is not followed")
    if machine.watch is not None:
        machine.watch(node, value, frame)
    return value


def test_value(machine: Machine, node: ast.expr, frame: Frame) -> tuple[Value, bool]:
    """The value that decides a test, and whether configuration that is not known decides if data is asked at all.

    `not`, `and`, `or` and chained comparisons are looked through, so that one test is one place.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value, doubtful = test_value(machine, node.operand, frame)
        return _negate(value), doubtful
    if isinstance(node, ast.BoolOp):
        return _holding_draws(machine, node, frame)
    if isinstance(node, ast.NamedExpr):
        return evaluate(machine, node, frame), False
    return _test_of(machine, evaluate(machine, node, frame), frame, node)


def _test_of(machine: Machine, value: Value, frame: Frame, node: ast.expr) -> tuple[Value, bool]:
    notice_numpy(machine, value, "truth", frame, node)
    if isinstance(value, Instance) and isinstance(value.cls, ClassValue):
        from exportlens.inference.construction import call_method

        for name in ("__bool__", "__len__"):
            result = call_method(machine, value, name, [], frame, None)
            if result is not None:
                return result, False
    return value, False


def _negate(value: Value) -> Value:
    truth = truth_of(value)
    if truth is True:
        return Const(False)
    if truth is False:
        return Const(True)
    if truth is DATA:
        return value
    if isinstance(value, Shape):
        return Shape(value.unbacked, value.input, value.dim, value.origin, "bool")
    return Static("bool") if not isinstance(value, Unknown) else value


def _holding_draws(machine: Machine, node: ast.BoolOp, frame: Frame) -> tuple[Value, bool]:
    """`random.random() < p and self.training` draws as well, but nothing hangs on it in a model that does not train."""
    outer, machine.draws = machine.draws, []
    try:
        value, doubtful = _test_bool_op(machine, node, frame)
        draws = machine.draws
    finally:
        machine.draws = outer
    if not isinstance(value, Const):
        for place in draws:
            if outer is None:
                machine.notice(place)
            else:
                outer.append(place)
    return value, doubtful


def _test_bool_op(machine: Machine, node: ast.BoolOp, frame: Frame) -> tuple[Value, bool]:
    stop = isinstance(node.op, ast.Or)
    found: Value | None = None
    doubtful = unknown = False
    data_doubtful = False
    mark = machine.journal.mark()
    for operand in node.values:
        if unknown:
            with machine.doubting():
                value, inner = test_value(machine, operand, frame)
        else:
            value, inner = test_value(machine, operand, frame)
        truth = truth_of(value)
        if truth is stop:
            # What was asked before may still be data: then the test is asked all the same.
            if found is not None:
                break
            machine.journal.roll_back(mark) if unknown else None
            return Const(stop), False
        if truth is DATA and found is None:
            found, data_doubtful = value, unknown or inner
        elif truth is None and not isinstance(value, Const):
            unknown = True
        narrow(machine, operand, not stop, frame)
        doubtful = doubtful or inner
    machine.journal.roll_back(mark) if not _binds(node) else None
    if found is not None:
        return found, data_doubtful
    if not unknown:
        return Const(not stop), False
    return Static("bool"), doubtful


def _binds(node: ast.expr) -> bool:
    """Whether a boolean operation assigns by `:=`; kept on the node, as the tree never changes."""
    known: bool | None = getattr(node, "binds", None)
    if known is None:
        known = any(isinstance(child, ast.NamedExpr) for child in ast.walk(node))
        node.binds = known  # type: ignore[attr-defined]
    return known


def _constant(machine: Machine, node: ast.Constant, frame: Frame) -> Value:
    del machine, frame
    return Const(node.value)


def _name(machine: Machine, node: ast.Name, frame: Frame) -> Value:
    if frame.drawn is not None and not machine.quiet and node.id in frame.drawn:
        machine.notice(frame.drawn.pop(node.id))
    return lookup(machine, node.id, frame)


def _attribute(machine: Machine, node: ast.Attribute, frame: Frame) -> Value:
    inner = node.value
    if type(inner) is ast.Attribute:
        owner = get_attribute(
            machine, evaluate(machine, inner.value, frame), inner.attr, frame, inner, node.attr
        )
        if machine.watch is not None:
            machine.watch(inner, owner, frame)
    else:
        owner = evaluate(machine, inner, frame)
    return get_attribute(machine, owner, node.attr, frame, node)


def _subscript(machine: Machine, node: ast.Subscript, frame: Frame) -> Value:
    owner = evaluate(machine, node.value, frame)
    return get_item(machine, owner, evaluate(machine, node.slice, frame), frame, node)


def _slice(machine: Machine, node: ast.Slice, frame: Frame) -> Value:
    return Slice(
        *(
            None if part is None else evaluate(machine, part, frame)
            for part in (node.lower, node.upper, node.step)
        )
    )


def unpacked(machine: Machine, node: ast.expr, number: int, frame: Frame) -> Value:
    """The value of `node` where an assignment unpacks it to `number` names: `b, n, device = *x.shape, x.device`.

    How many items the names leave to the one that is starred says how many it has.
    """
    if (
        isinstance(node, (ast.Tuple, ast.List))
        and sum(isinstance(each, ast.Starred) for each in node.elts) == 1
    ):
        return _sequence(machine, node, frame, number - len(node.elts) + 1)
    return evaluate(machine, node, frame)


def _sequence(
    machine: Machine, node: ast.List | ast.Tuple | ast.Set, frame: Frame, expected: int | None = None
) -> Value:
    """`expected` is the number of items that a starred element gives, where the context says it."""
    kind = type(node).__name__.lower()
    items: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = evaluate(machine, element.value, frame)
            inner, cover = elements_of(machine, value, frame, element, expected=expected)
            if inner is None:
                rest = [
                    evaluate(machine, other, frame)
                    for other in node.elts
                    if not isinstance(other, ast.Starred)
                ]
                for item in [*items, *rest]:
                    cover = join(cover, item)
                return Sequence(kind, None, cover)
            items.extend(inner)
        else:
            items.append(evaluate(machine, element, frame))
    return Sequence(kind, items) if kind != "set" else distinct(items)


def _dict(machine: Machine, node: ast.Dict, frame: Frame) -> Value:
    items: dict[object, Value] = {}
    rest: Value | None = None
    for key, value_node in zip(node.keys, node.values, strict=True):
        value = evaluate(machine, value_node, frame)
        if key is None:
            if isinstance(value, Mapping_):
                items.update(value.items)
                rest = value.rest if rest is None else rest
            else:
                rest = Unknown("unpacked from something unknown")
            continue
        known = evaluate(machine, key, frame)
        if isinstance(known, Const):
            items[known.value] = value
        else:
            if from_data(known) and machine.emits(Conversion):
                machine.notice(Conversion(machine.site(frame), key, known, "key"))
            notice_numpy(machine, known, "key", frame, key)
            rest = value if rest is None else join(rest, value)
    return Mapping_(items, rest)


def _bin_op(machine: Machine, node: ast.BinOp, frame: Frame) -> Value:
    left = evaluate(machine, node.left, frame)
    right = evaluate(machine, node.right, frame)
    if isinstance(node.op, ast.Mod) and isinstance(left, Const) and isinstance(left.value, str):
        for value in right.items or [] if isinstance(right, Sequence) else [right]:
            _format_place(machine, value, frame, node)
        if not isinstance(right, Const):
            return Static("str")
    if (
        machine.attempts
        and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod))
        and isinstance(right, TensorScalar)
        and isinstance(left, (Const, Shape, Static, TensorScalar))
        and machine.emits(Division)
    ):
        machine.notice(Division(machine.site(frame), node, right))
    return binary(machine, node.op, left, right, frame, node)


def _unary_op(machine: Machine, node: ast.UnaryOp, frame: Frame) -> Value:
    if isinstance(node.op, ast.Not):
        value, doubtful = test_value(machine, node.operand, frame)
        truth = truth_of(value)
        if truth is DATA:
            if machine.emits(Truth):
                with machine.doubting(doubtful):
                    machine.notice(
                        Truth(machine.site(frame), node.operand, value, "not", node, frame.visible())
                    )
            return Static("bool")
        return _negate(value)
    return unary(machine, node.op, evaluate(machine, node.operand, frame), frame, node)


def _bool_op(machine: Machine, node: ast.BoolOp, frame: Frame) -> Value:
    """`a and b`, `a or b` as a value: every operand but the last is asked for its truth."""
    stop = isinstance(node.op, ast.Or)
    result: Value | None = None
    # The same but for what only lengths decide, and whether any do.
    without_lengths: Value | None = None
    asked = False
    doubt = 0
    mark = machine.journal.mark()
    try:
        for index, operand in enumerate(node.values):
            value = evaluate(machine, operand, frame)
            last = index == len(node.values) - 1
            if last and asked and truth_of(value) is DATA:
                # As in a test: what lengths leave open, data decides.
                result = without_lengths
            if last:
                return value if result is None else join(result, value)
            tested, _ = _test_of(machine, value, frame, operand)
            truth = truth_of(tested)
            if truth is stop:
                return value if result is None else join(result, value)
            if truth is DATA:
                if machine.emits(Truth):
                    context = "or" if stop else "and"
                    machine.notice(
                        Truth(machine.site(frame), operand, tested, context, node, frame.visible())
                    )
                result = value if result is None else join(result, value)
                without_lengths = value if without_lengths is None else join(without_lengths, value)
            elif truth is None:
                kept = _could_be(value, stop)
                counts = isinstance(value, (Shape, Static)) and _counts(operand)
                asked = asked or counts
                if kept is not None:
                    result = kept if result is None else join(result, kept)
                if kept is not None and not counts:
                    without_lengths = kept if without_lengths is None else join(without_lengths, kept)
                machine.doubt += 1
                machine.conditions.append(opposite(operand) if stop else operand)
                doubt += 1
            narrow(machine, operand, not stop, frame)
    finally:
        machine.doubt -= doubt
        del machine.conditions[len(machine.conditions) - doubt :]
        if not _binds(node):
            machine.journal.roll_back(mark)
    return Unknown("an empty boolean operation")


def _counts(test: ast.expr) -> bool:
    """Whether `test` compares how much is in something: `len(rows) > 1`."""
    return isinstance(test, ast.Compare) and any(
        isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "len"
        for side in (test.left, *test.comparators)
    )


def _could_be(value: Value, truth: bool) -> Value | None:
    """The part of `value` whose truth may be `truth`."""
    if isinstance(value, Choice):
        kept = [option for option in value.options if truth_of(option) is not (not truth)]
        return None if not kept else kept[0] if len(kept) == 1 else Choice(tuple(kept))
    return value


def _compare(machine: Machine, node: ast.Compare, frame: Frame) -> Value:
    left = evaluate(machine, node.left, frame)
    result: Value | None = None
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(machine, comparator, frame)
        verdict = compare(machine, op, left, right, frame, node)
        if result is not None and truth_of(result) is DATA and machine.emits(Truth):
            machine.notice(Truth(machine.site(frame), node, result, "compare", node, frame.visible()))
        if truth_of(verdict) is False:
            return Const(False)
        if result is None or truth_of(result) is True:
            result = verdict
        elif truth_of(verdict) is DATA or truth_of(result) is not DATA:
            result = verdict if truth_of(verdict) is not True else result
        left = right
    return result if result is not None else Static("bool")


def opposite(test: ast.expr) -> ast.expr:
    """The condition under which the other arm of a branch on `test` runs."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _if_exp(machine: Machine, node: ast.IfExp, frame: Frame) -> Value:
    value, doubtful = test_value(machine, node.test, frame)
    truth = truth_of(value)
    if truth is True:
        return evaluate(machine, node.body, frame)
    if truth is False:
        return evaluate(machine, node.orelse, frame)
    data = truth is DATA
    if data and machine.emits(Truth):
        with machine.doubting(doubtful):
            machine.notice(Truth(machine.site(frame), node.test, value, "ternary", node, frame.visible()))
    results: list[Value] = []
    for positive, branch in ((True, node.body), (False, node.orelse)):
        mark = machine.journal.mark()
        with machine.doubting(not data, node.test if positive else opposite(node.test)):
            narrow(machine, node.test, positive, frame)
            with contextlib.suppress(Raised):
                results.append(evaluate(machine, branch, frame))
        machine.journal.roll_back(mark)
    if not results:
        raise Raised
    if len(results) == 2 and _empty(results[0]) is not _empty(results[1]):
        # Whether there is anything to go through is for configuration to say: kept apart for loops.
        return Choice((results[0], results[1]))
    return results[0] if len(results) == 1 else join(results[0], results[1])


def _empty(value: Value) -> bool:
    return isinstance(value, Sequence) and value.items == []


def _call(machine: Machine, node: ast.Call, frame: Frame) -> Value:
    from exportlens.inference.calls import call_expression

    return call_expression(machine, node, frame)


def _lambda(machine: Machine, node: ast.Lambda, frame: Frame) -> Value:
    return define_lambda(machine, node, frame)


def _joined_str(machine: Machine, node: ast.JoinedStr, frame: Frame) -> Value:
    parts: list[str] | None = []
    spelled: list[Value] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(machine, part.value, frame)
            _format_place(machine, value, frame, part.value)
            spelled.append(value)
            if (
                parts is not None
                and isinstance(value, Const)
                and part.conversion == -1
                and part.format_spec is None
            ):
                parts.append(str(value.value))
            else:
                parts = None
        elif parts is not None and isinstance(part, ast.Constant):
            parts.append(str(part.value))
    return Const("".join(parts)) if parts is not None else text_of(spelled)


def _format_place(machine: Machine, value: Value, frame: Frame, node: ast.AST) -> None:
    if from_data(value) and machine.emits(Conversion):
        machine.notice(Conversion(machine.site(frame), node, value, "format"))


def _named_expr(machine: Machine, node: ast.NamedExpr, frame: Frame) -> Value:
    value = evaluate(machine, node.value, frame)
    home = frame
    while home.function is None and home.closure is not None and not home.module_level and home.owner is None:
        home = home.closure
    machine.journal.write(home.locals, node.target.id, value)
    return value


def _comprehension(
    machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame
) -> Value:
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[type(node)]
    inner = Frame(
        frame.scope,
        frame.chunk,
        Locals(),
        frame.function,
        frame,
        frame.receiver,
        frame.owner,
        machine.journal.mark(),
    )
    results: list[Value] = []
    exact = _generate(
        machine, node.generators, inner, lambda: results.append(evaluate(machine, node.elt, inner))
    )
    if exact:
        return Sequence(kind, results) if kind != "set" else distinct(results)
    if not results:
        return Sequence(kind, None, Unknown("element of a comprehension"))
    cover = results[0]
    for value in results[1:]:
        cover = join(cover, value)
    return Sequence(kind, None, cover)


def _dict_comprehension(machine: Machine, node: ast.DictComp, frame: Frame) -> Value:
    inner = Frame(
        frame.scope,
        frame.chunk,
        Locals(),
        frame.function,
        frame,
        frame.receiver,
        frame.owner,
        machine.journal.mark(),
    )
    items: dict[object, Value] = {}
    rest: list[Value] = []

    def run() -> None:
        key = evaluate(machine, node.key, inner)
        value = evaluate(machine, node.value, inner)
        if isinstance(key, Const):
            items[key.value] = value
        else:
            rest.append(value)

    exact = _generate(machine, node.generators, inner, run)
    cover: Value | None = None
    for value in [*rest, *([] if exact else items.values())]:
        cover = value if cover is None else join(cover, value)
    return Mapping_(
        items if exact else {}, cover if cover is not None or exact else Unknown("value of a comprehension")
    )


def _generate(
    machine: Machine, generators: list[ast.comprehension], frame: Frame, run: Callable[[], None]
) -> bool:
    """Run the loops of a comprehension; whether every result was produced exactly once."""
    from exportlens.inference.assignments import assign

    first, rest = generators[0], generators[1:]
    items, element = elements_of(
        machine, evaluate(machine, first.iter, frame), frame, first.iter, context="comprehension"
    )
    known = items is not None and len(items) <= _UNROLL
    exact = known
    for item in items if known and items is not None else [element]:
        machine.step()
        assign(machine, first.target, item, frame)
        keep = True
        for condition in first.ifs:
            value, doubtful = test_value(machine, condition, frame)
            truth = truth_of(value)
            if truth is DATA and machine.emits(Truth):
                with machine.doubting(doubtful):
                    machine.notice(
                        Truth(machine.site(frame), condition, value, "filter", first.iter, frame.visible())
                    )
            if truth is False:
                keep = False
                break
            if truth is not True:
                exact = False
            narrow(machine, condition, True, frame)
        if not keep:
            continue
        if rest:
            exact = _generate(machine, rest, frame, run) and exact
        else:
            run()
    return exact


def _yield(machine: Machine, node: ast.Yield, frame: Frame) -> Value:
    value = evaluate(machine, node.value, frame) if node.value is not None else Const(None)
    home: Frame | None = frame
    while home is not None and home.yields is None:
        home = home.closure
    if home is not None and home.yields is not None:
        home.yields.append(value)
    return Unknown("what is sent into a generator")


def _yield_from(machine: Machine, node: ast.YieldFrom, frame: Frame) -> Value:
    items, element = elements_of(machine, evaluate(machine, node.value, frame), frame, node.value)
    if frame.yields is not None:
        frame.yields.extend(items if items is not None else [element])
    return Unknown("the result of a generator")


def _await(machine: Machine, node: ast.Await, frame: Frame) -> Value:
    return evaluate(machine, node.value, frame)


def _starred(machine: Machine, node: ast.Starred, frame: Frame) -> Value:
    return evaluate(machine, node.value, frame)


_EXPRESSIONS: dict[type[ast.expr], Callable[[Machine, Any, Frame], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.BinOp: _bin_op,
    ast.UnaryOp: _unary_op,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_exp,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.JoinedStr: _joined_str,
    ast.NamedExpr: _named_expr,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.Starred: _starred,
}
