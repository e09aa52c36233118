"""Torch as the judge of a rewrite: the same outputs and state, in eager and exported in both modes."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tests.seeding import seed_torch


def load(text: str) -> dict[str, Any]:
    """The names that running `text` defines. The text gets a file name of its own, so that torch can read
    its source."""
    name = f"<model {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType(name.strip("<>").replace(" ", "_"))
    sys.modules[module.__name__] = module
    exec(compile(text, name, "exec"), vars(module))
    return vars(module)


def model(text: str, seed: int = 0, name: str = "M") -> torch.nn.Module:
    seed_torch(seed)
    built: torch.nn.Module = load(text)[name]()
    return built.eval()


def outcomes(module: torch.nn.Module, inputs: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """For each of `inputs`, one call after the other: ("ok", outputs, inputs after the call) or ("raised",
    error)."""
    return [_outcome(module, each) for each in inputs]


def _outcome(module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    given = copied(inputs)
    seed_torch(1)
    try:
        return ("ok", copied(module(*given)), given)
    except Exception as error:
        return ("raised", error)


def copied(values: Any) -> Any:
    return pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, values)


def same(a: Any, b: Any) -> bool:
    left, spec = pytree.tree_flatten(a)
    right, other = pytree.tree_flatten(b)
    return str(spec) == str(other) and all(_equal(x, y) for x, y in zip(left, right, strict=True))


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        return (
            x.dtype == y.dtype
            and x.shape == y.shape
            and torch.allclose(x, y, rtol=1e-5, atol=1e-6, equal_nan=True)
        )
    if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
        return False
    return bool(x == y)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def assert_equivalent(
    before: str,
    after: str,
    inputs: list[tuple[Any, ...]],
    export_too: bool = True,
    dynamic_shapes: Any = None,
    compiled: int = 1,
) -> None:
    """`after` equals `before` in eager and, exported in both modes, over consecutive calls on `inputs`.

    Where one raises so must the other. `dynamic_shapes` is what export is told, `compiled` as in `eager_outcomes`.
    """
    with quietly():
        expected = outcomes(model(before), inputs)
        fixed = eager_outcomes(model(after), inputs, compiled)
    _assert_same_results(after, expected, fixed)
    if export_too:
        for strict in (True, False):
            _assert_exported(after, inputs, expected, strict, dynamic_shapes)


def assert_programs_equal(
    pairs: list[tuple[str, str]],
    inputs: list[list[tuple[Any, ...]]],
    modes: tuple[bool, ...],
    compiled: bool = False,
) -> None:
    """Of each pair the second text does what the first does, in eager and exported with `strict` as each of `modes`
    says, over consecutive calls on the pair's own `inputs`. Where `compiled`, torch.cond compiles in each call, as in eager it does.

    Together they are one module whose outputs are theirs; each has its own inputs and state. Where that fails each is
    judged by itself, and the first at fault is named: torch cannot export a branch in a branch beside torch.no_grad.
    """
    calls = max(len(each) for each in inputs)
    inputs = [each + each[-1:] * (calls - len(each)) for each in inputs]
    expected = []
    alone = []
    for number, (before, after) in enumerate(pairs):
        with quietly():
            expected.append(outcomes(model(before), inputs[number]))
            fixed = eager_outcomes(model(after), inputs[number], calls if compiled else 0)
            if any(two[0] != one[0] for one, two in zip(expected[-1], fixed, strict=True)):
                # Loops with what they take from around them record gradients only where torch compiles them, as eager does.
                fixed = outcomes(model(after), inputs[number])
            drawn = _draws(model(before), inputs[number])
        _assert_same_results(after, expected[-1], fixed)
        # What raises has no outputs to give beside the others'; what draws shifts what the others draw.
        if drawn or any(one[0] != "ok" for one in expected[-1]):
            alone.append(number)
    for strict in modes:
        _assert_exported_together(pairs, inputs, expected, alone, strict)


def _draws(module: torch.nn.Module, inputs: list[tuple[Any, ...]]) -> bool:
    """Whether a call takes random numbers of torch's."""
    seed_torch(1)
    start = torch.get_rng_state()
    return any(_outcome(module, each) and not torch.equal(torch.get_rng_state(), start) for each in inputs)


def _assert_exported_together(
    pairs: list[tuple[str, str]],
    inputs: list[list[tuple[Any, ...]]],
    expected: list[list[tuple[Any, ...]]],
    alone: list[int],
    strict: bool,
) -> None:
    together = [number for number in range(len(pairs)) if number not in alone]
    calls = range(len(inputs[0]))
    given = [copied(tuple(inputs[number][call] for number in together)) for call in calls]
    joint: list[tuple[Any, ...]] = [
        (
            "ok",
            [expected[number][call][1] for number in together],
            tuple(expected[number][call][2] for number in together),
        )
        for call in calls
    ]
    texts = [pairs[number][1] for number in together]
    try:
        if together:
            _assert_exported_module(lambda: _Together(texts), "", given, joint, strict)
    except AssertionError:
        alone = list(range(len(pairs)))
    for number in alone:
        _assert_exported(pairs[number][1], inputs[number], expected[number], strict)


class _Together(torch.nn.Module):
    """The modules M of several texts, each with its own inputs."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList([model(each) for each in texts])

    def forward(self, *inputs: tuple[Any, ...]) -> list[Any]:
        return [part(*each) for part, each in zip(self.parts, inputs, strict=True)]


def eager_outcomes(
    module: torch.nn.Module, inputs: list[tuple[Any, ...]], compiled: int
) -> list[tuple[Any, ...]]:
    """`outcomes` of a rewritten module, where torch.cond compiles its branches in the first `compiled` calls only.

    In eager it compiles both branches anew at every call, which takes seconds where they are nested; that they
    compile shows at the first call, and the later ones differ in values only.
    """
    first = outcomes(module, inputs[:compiled])
    with torch.compiler.set_stance("force_eager"):
        return first + outcomes(module, inputs[compiled:])


def _assert_same_results(after: str, expected: list[tuple[Any, ...]], fixed: list[tuple[Any, ...]]) -> None:
    for one, two in zip(expected, fixed, strict=True):
        assert one[0] == two[0], f"eager {one} became {two}\n{after}"
        same_result = one[0] != "ok" or same(one[1], two[1])
        assert same_result, f"eager differs: {one[1]} became {two[1]}\n{after}"
        left = one[0] != "ok" or same(one[2], two[2])
        assert left, f"inputs are left differently: {one[2]} became {two[2]}\n{after}"


def _assert_exported(
    after: str,
    inputs: list[tuple[Any, ...]],
    expected: list[tuple[Any, ...]],
    strict: bool,
    dynamic_shapes: Any = None,
) -> None:
    _assert_exported_module(lambda: model(after), after, inputs, expected, strict, dynamic_shapes)


def _assert_exported_module(
    make: Callable[[], torch.nn.Module],
    text: str,
    inputs: list[tuple[Any, ...]],
    expected: list[tuple[Any, ...]],
    strict: bool,
    dynamic_shapes: Any = None,
) -> None:
    torch._dynamo.reset()
    good = next(each for each, result in zip(inputs, expected, strict=True) if result[0] == "ok")
    with quietly():
        try:
            given = copied(good)
            exported = torch.export.export(make(), given, dynamic_shapes=dynamic_shapes, strict=strict)
            program = exported.module()
        except Exception as error:
            raise AssertionError(
                f"strict={strict}: {type(error).__name__}: {str(error)[:600]}\n{text}"
            ) from error
        for result, got in zip(expected, outcomes(program, inputs), strict=True):
            assert got[0] == result[0], f"strict={strict}: eager {result}, program {got}\n{text}"
            if result[0] == "ok":
                assert same(result[1], got[1]), f"strict={strict}: {result[1]} became {got[1]}\n{text}"
                assert same(result[2], got[2]), f"strict={strict}: inputs {result[2]}, {got[2]}\n{text}"
