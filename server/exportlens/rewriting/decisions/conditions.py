"""Conditions as texts: of what form each is for torch.cond and while_loop, its opposite, and several of them joined."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import operand, primary
from exportlens.source.parsing import parse_python


@dataclass(frozen=True, slots=True)
class Condition:
    """`form`: "static" (Python decides), "tensor", "symbol" (a bool that Python reads from data), "mixed"
    (one of them, as configuration decides). `alone` is a mixed one as a bool tensor without dimensions; `guarded` one
    that may raise where the parts before it decide, and is only evaluated where they do not; `plain` is what Python
    alone asks of one whose kind is not known, where that is no operator of torch."""

    text: str
    form: str
    rank: int | None = None
    dtype: str | None = None
    is_bool: bool = False
    alone: str | None = None
    guarded: bool = False
    plain: str | None = None


def scalar_bool(condition: Condition) -> str:
    """A tensor condition as bool tensor without dimensions."""
    text = condition.text
    if condition.dtype != "bool":
        text = f"{primary(text)}.bool()"
    return text if condition.rank == 0 else f"{primary(text)}.reshape(())"


_INVERSES: dict[type[ast.cmpop], str] = {ast.Eq: "!=", ast.NotEq: "=="}
_OF_INTEGERS: dict[type[ast.cmpop], str] = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}


def opposite(condition: Condition, torch: str, integers: bool = False) -> Condition:
    """The opposite of `condition`, which compares `integers` or what may be NaN."""
    if condition.form in ("tensor", "unknown"):
        text = _opposite(condition.text, torch)
        plain = f"not {primary(condition.text)}" if condition.form == "unknown" else None
        return Condition(text, condition.form, condition.rank, "bool", True, plain=plain)
    if condition.form == "symbol":
        # Sizes may be known to torch after all: strict tracing and torch.cond take `sym_not` of no bool of Python.
        text = _compared(condition.text, integers) or f"{torch}.sym_not({condition.text})"
        return Condition(text, "symbol", is_bool=True)
    if condition.form == "mixed" and condition.alone is not None:
        # Python's `not` would ask the tensor in it.
        alone = _opposite(condition.alone, torch)
        return Condition(alone, "mixed", 0, "bool", True, alone=alone)
    return Condition(f"not {primary(condition.text)}", condition.form, is_bool=True)


def _compared(text: str, integers: bool) -> str | None:
    """The opposite of one comparison by the opposite operator; None for other texts."""
    node = parse_python(f"({text})", mode="eval").body
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or "\n" in text:
        return None
    inverse = (_INVERSES | _OF_INTEGERS if integers else _INVERSES).get(type(node.ops[0]))
    # Positions count bytes, and the bracket before the text.
    written, right = text.encode(), node.comparators[0].col_offset - 1
    left = (node.left.end_col_offset or 0) - 1
    between = re.fullmatch(r"([ )]*)([!=<>]+)([ (]*)", written[left:right].decode())
    if inverse is None or between is None:
        return None
    return f"{written[:left].decode()}{between[1]}{inverse}{between[3]}{written[right:].decode()}"


def _opposite(text: str, torch: str) -> str:
    """The opposite of a condition; that of `logical_not(t.any())` is `t.any()`."""
    node = parse_python(text, mode="eval").body
    if isinstance(node, ast.IfExp):
        text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if isinstance(node, ast.Call) and dotted(node.func) == f"{torch}.logical_not" and len(node.args) == 1:
        inner = node.args[0]
        answers = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
        if answers and inner.func.attr in ("any", "all"):  # type: ignore[attr-defined]
            return ast.get_source_segment(text, inner) or text
    return f"{torch}.logical_not({text})"


def joined(conditions: list[Condition], word: str, torch: str) -> Condition:
    """The conditions joined by `word`, "and" or "or". Raises Refused."""
    if any(each.form == "unknown" for each in conditions):
        others = [each for each in conditions if each.form != "unknown"]
        if any(each.form != "static" for each in others):
            # The data is in another part. Python asks for the truth of this one as it did before.
            conditions = [
                Condition(each.plain or each.text, "static", is_bool=each.plain is not None)
                if each.form == "unknown"
                else each
                for each in conditions
            ]
            return joined(conditions, word, torch)
        if len(conditions) - len(others) > 1 or any(each.form != "static" for each in others):
            unknown = next(each for each in conditions if each.form == "unknown")
            raise Refused(f"it is not known what `{unknown.text}` is")
        conditions = [
            Condition(each.text, "tensor") if each.form == "unknown" else each for each in conditions
        ]
    static = [each for each in conditions if each.form == "static"]
    data = [each for each in conditions if each.form != "static"]
    if len(data) > 1:
        data = [each if each.alone is None else as_tensor(each) for each in data]
    if len(data) > 1 and any(each.form == "mixed" for each in data):
        raise Refused("configuration and tensor data are mixed on several levels of the condition")
    if not data:
        return Condition(
            f" {word} ".join(operand(each.text, word) for each in static),
            "static",
            is_bool=all(each.is_bool for each in static),
        )
    data_part = combined(data, word, torch)
    if not static:
        return data_part
    first = [operand(each.text, word) if each.is_bool else f"bool({each.text})" for each in static]
    whole = f" {word} ".join(first)
    alone = None
    if data_part.form == "tensor":
        truth = scalar_bool(data_part)
        alone = (
            f"({truth} if {whole} else {torch}.full((), False))"
            if word == "and"
            else f"({torch}.full((), True) if {whole} else {truth})"
        )
    return Condition(
        f" {word} ".join([*first, operand(data_part.text, word)]),
        "mixed",
        data_part.rank,
        data_part.dtype,
        data_part.is_bool,
        alone,
    )


def combined(data: list[Condition], word: str, torch: str) -> Condition:
    """Conditions on data joined by `word`, "and" or "or". Raises Refused."""
    if len(data) == 1:
        return data[0]
    data = [as_tensor(each) for each in data]
    if any(each.guarded for each in data[1:]):
        return _one_by_one(data, word, torch)
    if all(each.form == "tensor" for each in data):
        text = data[-1].text
        for each in reversed(data[:-1]):
            text = f"{torch}.logical_{word}({each.text}, {text})"
        ranks = {each.rank for each in data}
        return Condition(text, "tensor", 0 if ranks == {0} else None, "bool", True)
    operator = "&" if word == "and" else "|"
    texts = [
        each.text
        if each.form == "symbol"
        else f"{primary(each.text)}{'' if each.is_bool else '.bool()'}.item()"
        for each in data
    ]
    return Condition(f" {operator} ".join(f"({text})" for text in texts), "symbol", is_bool=True)


def as_tensor(condition: Condition) -> Condition:
    """A condition that may be one of Python's as a tensor, among others on data. Raises Refused."""
    if condition.form != "mixed":
        return condition
    if condition.alone is None:
        raise Refused("configuration and tensor data are mixed in the condition")
    return Condition(condition.alone, "tensor", 0, "bool", True, guarded=condition.guarded)


def _one_by_one(data: list[Condition], word: str, torch: str) -> Condition:
    """The parts one after the other, as Python evaluates them: a later one may raise where an earlier decides."""
    if any(each.form not in ("tensor", "symbol") for each in data):
        raise Refused("a part of the condition may raise where an earlier one decides")
    *before, last = data
    text = scalar_bool(last) if last.form == "tensor" else ""
    if not text:
        raise Refused("a part of the condition may raise where an earlier one decides")
    for each in reversed(before):
        if each.form == "tensor":
            test = decided = scalar_bool(each)
            decided = f"{primary(decided)}.clone()"
        else:
            test, decided = each.text, f"{torch}.full((), {word == 'or'})"
        arms = (text, decided) if word == "and" else (decided, text)
        text = f"{torch}.cond({test}, lambda: {arms[0]}, lambda: {arms[1]}, ())"
    return Condition(text, "tensor", 0, "bool", True)
