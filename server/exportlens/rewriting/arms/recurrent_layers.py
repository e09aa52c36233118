"""Recurrent layers, which no operator of control flow takes.

Measured on torch 2.13: torch.cond and while_loop compile what they run in eager too, where an LSTM, a GRU or an RNN stops
the compiler; non-strict tracing stops where such a layer gathers its weights inside of an arm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from exportlens.inference.values import ClassValue, Instance, Named, Value
from exportlens.inference.values import Sequence as Values
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_LAYERS = frozenset({"LSTM", "GRU", "RNN"})


def runs_recurrent_layer(statements: Sequence[ast.stmt], kinds: Kinds) -> bool:
    """Whether `statements` call a recurrent layer of torch's, by themselves or through modules and methods."""
    return _runs(statements, kinds, set())


def refuse_recurrent_layer(nodes: Sequence[ast.AST], kinds: Kinds) -> None:
    """Raise Refused where `nodes` call one."""
    if _runs(nodes, kinds, set()):
        raise Refused(
            "it runs an LSTM, a GRU or an RNN of torch's, which no operator of control flow takes: run the layer before it"
        )


def _runs(nodes: Iterable[ast.AST], kinds: Kinds, seen: set[int]) -> bool:
    nodes = list(nodes)
    named = (each for node in nodes for each in walk(node) if isinstance(each, (ast.Assign, ast.NamedExpr)))
    for value in (kinds.of(each.value).value for each in named):
        # `cell = self.cells[0]`, which is called by that name.
        if value is not None and _is_recurrent(value, seen):
            return True
    for call in (each for node in nodes for each in walk(node) if isinstance(each, ast.Call)):
        # What is handed to a function, too: it reads the weights.
        for each in (call.func, *call.args, *(one.value for one in call.keywords)):
            value = kinds.of(each).value
            if value is not None and _is_recurrent(value, seen):
                return True
        function = kinds.functions.get(dotted(call.func) or "")
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            inside = kinds.inside_of_own(function)
            if _runs(function.body, inside, seen):
                return True
    return False


def _is_recurrent(value: Value, seen: set[int]) -> bool:
    """Whether `value` is a recurrent layer of torch's, or a module that holds one."""
    if not isinstance(value, Instance) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value.cls, Named):
        head, _, last = value.cls.name.rpartition(".")
        if head.startswith("torch.nn") and last in _LAYERS:
            return True
    elif not isinstance(value.cls, ClassValue):
        return False
    return any(_is_recurrent(each, seen) for held in value.attributes.values() for each in _parts(held))


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, Values):
        yield from value.items or ()
    else:
        yield value
