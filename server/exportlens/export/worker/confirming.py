"""Does the exported program do what eager does? Every case on both sides, two calls and states included."""

from __future__ import annotations

import functools
import random
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from exportlens.export.worker.cases import (
    EXAMPLE,
    Case,
    Cost,
    basic_cases,
    fresh_like,
    size_cases,
)
from exportlens.export.worker.comparing import (
    CaseResult,
    call,
    compare_leaves,
    judge,
    latency_ms,
    worst,
)
from exportlens.export.worker.loading import Inputs, Subject, seed_all

AFTER_ALL = "state after all calls"


@dataclass
class EagerRun:
    """What eager gives, case by case: output leaves and input leaves afterwards; or the exception."""

    cases: list[Case]
    outputs: list[list[Any]] = field(default_factory=list)
    inputs_after: list[list[Any]] = field(default_factory=list)
    errors: list[BaseException | None] = field(default_factory=list)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    latency: float | None = None
    random: bool = False
    """The result depends on the generators' seed: a target with generators of its own cannot give equal
    numbers.
    """
    unsteady: str = ""
    """Why two runs with one seed differ (a clock, id(), a hash), or nothing."""


@dataclass
class Begun:
    """A first call that has been made: its case, the copy of the model that it was made on, what came of it."""

    case: Case
    model: Any
    result: Any
    outputs: list[Any]
    inputs_after: list[Any]
    latency: float
    random: bool

    @property
    def returned(self) -> int:
        """The bytes that it returned."""
        return sum(
            leaf.numel() * leaf.element_size() for leaf in self.outputs if isinstance(leaf, torch.Tensor)
        )


def begin(model: Any, case: Case) -> Begun:
    """Make the first call of a run on `model`, which is for this run alone. Raises whatever the model raises."""
    returned: list[Any] = []
    started = time.perf_counter()
    outputs, inputs = call(model, case, returned.append)
    latency = round((time.perf_counter() - started) * 1e3, 4)
    return Begun(case, model, returned[0], outputs, inputs, latency, generators_moved(case.seed))


def run_eager(
    subject: Subject,
    cases: list[Case],
    *,
    slow: bool,
    see: Callable[[int, Any], None] = lambda index, result: None,
    begun: Begun | None = None,
) -> EagerRun:
    """Run all cases, in order, on one copy of the model; a quick model runs once more, to tell chance from
    seeds. `see` is shown each case's result as it was returned. Where the first call has been made already, the run goes on
    from there.
    """
    found = EagerRun(cases)
    begun = begun if begun is not None and begun.case.asks_as(cases[0]) else None
    model = begun.model if begun is not None else subject.copy()
    for index, case in enumerate(cases):
        try:
            if index == 0:
                first = begun or begin(model, case)
                see(0, first.result)
                found.latency, found.random = first.latency, first.random
                outputs, inputs = first.outputs, first.inputs_after
            else:
                outputs, inputs = call(model, case, functools.partial(see, index))
            found.errors.append(None)
        except Exception as error:
            outputs, inputs = [], []
            found.errors.append(error)
        found.outputs.append(outputs)
        found.inputs_after.append(inputs)
    found.state = _buffers(model)
    if found.errors[0] is None and not slow:
        find_unsteady(found, subject, runs=1)
        args, kwargs = cases[0].inputs()
        found.latency = latency_ms(lambda: model(*args, **kwargs))
    return found


def find_unsteady(eager: EagerRun, subject: Subject, *, runs: int = 8) -> None:
    """Make the first call up to `runs` more times, until one differs: the reason is kept in `eager.unsteady`.

    One more call shows chance most of the time, not always: an address modulo a small number may come out the same.
    """
    if eager.unsteady or eager.errors[0] is not None:
        return
    alive = []  # an object that is gone may leave its address, and so its id(), to the next one
    for _ in range(runs):
        alive.append(eager.cases[0].inputs())
        again, _ = call(subject.copy(), eager.cases[0])
        differences = [d for d in compare_leaves(eager.outputs[0], again) if not d.equal]
        if differences:
            eager.unsteady = f"{differences[0].name}: {differences[0].why}"
            return


def generators_moved(seed: int) -> bool:
    """Whether random numbers have been drawn since `seed_all(seed)`. Seeds anew."""
    drawn = generator_states()
    seed_all(seed)
    return drawn != generator_states()


def generator_states() -> dict[str, Any]:
    """The states of the generators of Python, torch and (where it is loaded) NumPy, by name, to be compared."""
    numpy = sys.modules.get("numpy")
    return {
        "Python": random.getstate(),
        "NumPy": repr(numpy.random.get_state()) if numpy else None,
        "torch": torch.get_rng_state().tolist(),
    }


def _buffers(model: Any) -> dict[str, torch.Tensor]:
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def all_cases(program: Any, inputs: Inputs, cost: Cost) -> list[Case]:
    """Examples, fresh inputs, other seeds and both ends and the middle of every dynamic range.

    `cost` is what eager took for the examples: a slow model gets fewer cases, and not its largest sizes.
    """
    few = cost.is_high
    largest = cost.largest_elements(inputs.args, inputs.kwargs)
    return [
        *basic_cases(inputs.args, inputs.kwargs, few=few),
        *size_cases(program, inputs.args, inputs.kwargs, largest=largest, few=few),
    ]


@dataclass
class Confirmation:
    """The program against eager, all cases."""

    results: list[CaseResult]
    latency: float | None
    notes: list[str]
    warnings: list[str]

    @property
    def ok(self) -> bool:
        return all(result.ok for result in self.results)

    @property
    def first_bad(self) -> CaseResult | None:
        return next((result for result in self.results if not result.ok), None)

    def plain(self, eager: EagerRun) -> dict[str, Any]:
        notes = list(self.notes)
        if eager.unsteady:
            notes.append(
                "eager itself gives different results in two runs with the same seed "
                f"({eager.unsteady}): a clock, id(), a hash or uninitialised memory decides, "
                "and a program freezes it"
            )
        return {
            "equal": self.ok,
            "max_abs_error": worst(self.results, "max_abs_error"),
            "max_rel_error": worst(self.results, "max_rel_error"),
            "cases": [result.plain() for result in self.results],
            "latency": {"eager_ms": eager.latency, "exported_ms": self.latency},
            "random": eager.random,
            "notes": notes,
            "warnings": self.warnings,
        }


class _Restored:
    """Gives a program's own tensors back their values: running `program.module()` writes into them."""

    def __init__(self, program: Any) -> None:
        tensors = {**program.state_dict, **program.constants}
        self._kept = [(t, t.detach().clone()) for t in tensors.values() if isinstance(t, torch.Tensor)]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        with torch.no_grad():
            for tensor, value in self._kept:
                try:
                    tensor.copy_(value)
                except RuntimeError:
                    continue


def confirm_program(program: Any, eager: EagerRun, *, slow: bool) -> Confirmation:
    """Run the program on every case that eager takes and compare outputs, mutated inputs and, at the end,
    buffers.
    """
    results: list[CaseResult] = []
    notes: list[str] = []
    speed = None
    with _Restored(program), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = program.module()
        except Exception as error:
            message = f"the exported program cannot be made runnable: {type(error).__name__}: {error}"
            return Confirmation([CaseResult(EXAMPLE, "failed", [], message, error=error)], None, [], [])
        for index, case in enumerate(eager.cases):
            results.append(_one_case(module, eager, index, case))
        if all(result.ok for result in results):
            changed = _state_difference(module, eager)
            if changed:
                results.append(changed)
        if not slow:
            args, kwargs = eager.cases[0].inputs()
            speed = latency_ms(lambda: module(*args, **kwargs))
            notes += unchecked_dtypes(module, eager.cases[0])
    return Confirmation(results, speed, notes, [])


def _one_case(module: Any, eager: EagerRun, index: int, case: Case) -> CaseResult:
    refused = eager.errors[index]
    if refused is not None:
        message = f"eager refuses these inputs too ({type(refused).__name__}: {refused!s:.200})"
        return CaseResult(case.name, "skipped", [], message, case.note)
    try:
        outputs, inputs = call(module, case)
    except Exception as error:
        return CaseResult(
            case.name, "failed", [], f"{type(error).__name__}: {error!s:.400}", case.note, error
        )
    differences = compare_leaves(eager.outputs[index], outputs)
    if len(inputs) == len(eager.inputs_after[index]):
        after = compare_leaves(eager.inputs_after[index], inputs, prefix="input after the call")
        differences += [difference for difference in after if not difference.equal]
    return judge(case, differences)


def _state_difference(module: Any, eager: EagerRun) -> CaseResult | None:
    """Buffers after all calls: an update that was traced away shows here even if no output shows it."""
    mine = _buffers(module)
    names = [name for name in eager.state if name in mine]
    if any(error is not None for error in eager.errors):
        return None
    differences = compare_leaves([eager.state[n] for n in names], [mine[n] for n in names], prefix="buffer")
    wrong = [d for d in differences if not d.equal]
    for difference, name in zip(differences, names, strict=True):
        difference.name = f"buffer {name}"
    if not wrong:
        return None
    message = "; ".join(f"{d.name} {d.why}" for d in wrong[:3])
    return CaseResult(AFTER_ALL, "different", wrong, message)


def unchecked_dtypes(run: Any, case: Case) -> list[str]:
    """A note for each floating input whose dtype is not checked: fed as float64, it is taken without an
    error.
    """
    args, kwargs = case.inputs()
    notes: list[str] = []
    for index, value in enumerate(args):
        if not (isinstance(value, torch.Tensor) and value.dtype == torch.float32):
            continue
        wrong = list(args)
        wrong[index] = fresh_like(value, list(value.shape)).to(torch.float64)
        seed_all(0)
        try:
            run(*wrong, **kwargs)
        except Exception:
            continue
        notes.append(
            f"input {index} is float32, and float64 is taken without an error: check dtypes before the call"
        )
    return notes
