"""What torch.export does with a call, by doing it: both modes, each in a forked process of its own,
compared with eager.

A call is "ok" when the exported program gives eager's result on fresh inputs, "fails" when export raises,
"frozen" when eager's result changes with seed or time and the program's does not, and "wrong" when it
differs otherwise, raises, or gives a fake tensor.
"""

from __future__ import annotations

import ast
import json
import os
import re
import select
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_knowledge.calls import VARIABLES, lines

SECONDS_PER_CALL = 60
_SETUP = """
import copy, datetime, gc, inspect, logging, math, os, random, sys, threading, time, uuid, warnings, weakref
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
import torch.nn.utils.rnn, torch.utils.checkpoint, torch.distributions, torch.onnx
"""


def environment() -> dict[str, Any]:
    """The names that a call may use."""
    scope: dict[str, Any] = {}
    exec(_SETUP, scope)
    return scope


def variables(expression: str) -> list[str]:
    """Those of VARIABLES that the expression reads, in the order of VARIABLES."""
    used = {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
    return [name for name in VARIABLES if name in used]


def key_of(key: str | None, expression: str) -> str:
    """The qualified name that a call is about."""
    if key is None:
        tree = ast.parse(expression, mode="eval").body
        assert isinstance(tree, ast.Call), expression
        key = ast.unparse(tree.func)
    if key.startswith("F."):
        return "torch.nn.functional." + key[2:]
    if re.match(r"torch(\.\w+)+$", key) or not re.match(r"\w+(\(.*\)|\.\w+\(.*\))*\.\w+$", key):
        return key.partition("(")[0]
    head, _, name = key.rpartition(".")
    return f"torch.Tensor.{name}" if head.partition(".")[0] in VARIABLES else key


def evaluated_calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """(qualified name, args with the receiver first, kwargs) of the calls that are written as a plain call.

    Tensors in places of numbers are left out: the argument parser would read them, not the operator.
    """
    scope = environment()
    for key, expression, conditions in lines():
        tree = ast.parse(expression, mode="eval").body
        if key is not None or not isinstance(tree, ast.Call) or any("tensor" in text for text in conditions):
            continue
        torch.manual_seed(3)
        local = scope | {name: eval(VARIABLES[name], scope) for name in variables(expression)}

        def value(node: ast.expr, local: dict[str, Any] = local) -> Any:
            return eval(ast.unparse(node), local)

        name = key_of(key, expression)
        args: list[Any] = []
        try:
            if name.startswith("torch.Tensor.") and isinstance(tree.func, ast.Attribute):
                args.append(value(tree.func.value))
            for node in tree.args:
                args.extend(value(node.value) if isinstance(node, ast.Starred) else [value(node)])
            keywords = {item.arg: value(item.value) for item in tree.keywords if item.arg}
        except Exception:
            continue
        yield name, tuple(args), keywords


def build(expression: str) -> tuple[torch.nn.Module, Callable[[int], tuple[torch.Tensor, ...]]]:
    """A module whose forward is the expression, and a maker of its inputs from a seed."""
    scope = environment()
    names = variables(expression)
    head = f"class Call(nn.Module):\n    def forward(self, {', '.join(names) or 'x'}):\n"
    text = head + f"        return {expression}\n"
    exec(compile(text, "<call>", "exec"), scope)

    def inputs(seed: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(seed)
        return tuple(eval(VARIABLES[name], scope) for name in names or ["x"])

    return scope["Call"]().eval(), inputs


def measure(
    module: torch.nn.Module, inputs: Callable[[int], tuple[Any, ...]], *, strict: bool
) -> tuple[str, str]:
    """(result, torch's first words) of one export in this process."""
    try:
        program = torch.export.export(module, inputs(1), strict=strict)
    except Exception as error:
        return "fails", first_words(error)
    try:
        exported = program.module()
        runs = [run(exported, inputs(2), seed) for seed in (11, 11, 12)]
    except Exception as error:
        return "wrong", "the program raises: " + first_words(error)
    try:
        eager = [run(module, inputs(2), seed) for seed in (11, 11, 12)]
    except Exception as error:
        return "fails", "eager raises: " + first_words(error)
    if any("FakeTensor" in type(leaf).__name__ for leaf in leaves(runs[0])):
        return "wrong", "the result is a fake tensor"
    if not same(eager[0], eager[1]) or not same(eager[0], eager[2]):
        moving = not same(runs[0], runs[1]) or not same(runs[0], runs[2])
        return ("ok", "") if moving else ("frozen", "")
    return ("ok", "") if same(eager[0], runs[0]) else ("wrong", "the result differs from eager")


def run(module: Any, inputs: tuple[Any, ...], seed: int) -> Any:
    """One call with every generator seeded."""
    import random

    import numpy

    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    return module(*inputs)


def leaves(value: Any) -> list[Any]:
    """The leaves of a result."""
    return torch.utils._pytree.tree_leaves(value)


def same(left: Any, right: Any) -> bool:
    """Equal structure, dtypes, shapes, and values up to rounding."""
    lefts, rights = leaves(left), leaves(right)
    if len(lefts) != len(rights):
        return False
    for one, other in zip(lefts, rights, strict=True):
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            if one.dtype != other.dtype or one.shape != other.shape:
                return False
            if one.layout is not torch.strided:
                one, other = one.to_dense(), other.to_dense()
            if not torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True):
                return False
        elif type(one) is not type(other) or (one == one and one != other):
            return False
    return True


def first_words(error: BaseException) -> str:
    """The first line of a message without paths and addresses."""
    text = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
    text = re.sub(r"0x[0-9a-f]+", "0x...", text)
    return re.sub(r"(?<![\w.])/[\w./-]+", "...", text)[:110]


def in_child(work: Callable[[], Any]) -> Any:
    """The JSON-able result of `work` from a forked process, or None where it died or took too long."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], SECONDS_PER_CALL)
    text = os.read(reader, 1 << 16) if ready else b""
    os.close(reader)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def outcome(build_case: Callable[[], tuple[Any, Any]]) -> tuple[str, str, str] | None:
    """(strict, non_strict, error) of one case; None where eager itself cannot run it."""

    def eager() -> bool:
        module, inputs = build_case()
        module(*inputs(1))
        return True

    def export(strict: bool) -> tuple[str, str]:
        module, inputs = build_case()
        return measure(module, inputs, strict=strict)

    if in_child(eager) is not True:
        return None
    strict = in_child(lambda: export(True)) or ("fails", "the process ended")
    non_strict = in_child(lambda: export(False)) or ("fails", "the process ended")
    return strict[0], non_strict[0], strict[1] if strict[0] != "ok" else non_strict[1]


def measure_calls(
    measured: dict[str, list[list[Any]]],
) -> tuple[dict[str, list[list[Any]]], list[str]]:
    """Notes of all CALLS by qualified name, and the calls that eager could not run here.

    What `measured` (notes of an earlier run on the same torch) holds with the same text is taken over.
    """
    warm_up()
    notes: dict[str, list[list[Any]]] = {}
    refused: list[str] = []
    for key, expression, conditions in lines():
        name = key_of(key, expression)
        known = [row for row in measured.get(name, ()) if row[3] == expression]
        result = known[0][1:3] + known[0][4:] if known else outcome(lambda text=expression: build(text))  # type: ignore[misc]
        if result is None:
            refused.append(expression)
            continue
        strict, non_strict, error = result
        notes.setdefault(name, []).append([list(conditions), strict, non_strict, expression, error])
    return notes, refused


def warm_up() -> None:
    """Load what an export loads, so that the forked processes need not."""
    torch.set_num_threads(1)
    for strict in (True, False):
        module, inputs = build("F.relu(x) + 1")
        measure(module, inputs, strict=strict)
