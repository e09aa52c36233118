"""Is a fixed file as good as the original? Both in eager with the same weights, then the fixed one
exported.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import torch

from exportlens.export.worker.blame import Owner
from exportlens.export.worker.cases import (
    EXAMPLE,
    SECOND_CALL,
    SLOW_SECONDS,
    Case,
    basic_cases,
    generated_cases,
    largest_elements,
    size_cases,
    static_by_accident,
)
from exportlens.export.worker.child import Prepared, prepare, trace
from exportlens.export.worker.comparing import CaseResult, call, compare_leaves, judge, leaves_of, snapshot
from exportlens.export.worker.confirming import EagerRun, confirm_program, generator_states, run_eager
from exportlens.export.worker.loading import Subject, seed_all
from exportlens.export.worker.stages import StageError, Stages

KINDS = ("random", "zeros", "positive", "negative", "large")
MOST_DEEP = 12
SLOW_KINDS = ("positive", "negative", "random", "zeros")
SECONDS_FOR_GENERATED = 20.0
"""What all generated inputs together may cost on one side, where one call takes more than SLOW_SECONDS."""
ROUNDS = 3
"""How often each kind of generated input is drawn, each time from another seed."""


def verification_cases(prepared: Prepared) -> list[Case]:
    """Examples twice, then inputs that drive branches both ways: all zero, all positive, all negative,
    large, random. A slow model gets as many as it has time for.
    """
    args, kwargs = prepared.inputs.args, prepared.inputs.kwargs
    cases = [Case(EXAMPLE, args, kwargs, 0), Case(SECOND_CALL, args, kwargs, 0)]
    if prepared.seconds > SLOW_SECONDS:
        affordable = int(SECONDS_FOR_GENERATED / prepared.seconds)
        return [*cases, *generated_cases(args, kwargs, SLOW_KINDS[:affordable], 10)]
    for round_ in range(ROUNDS):
        cases += generated_cases(args, kwargs, KINDS, 10 + round_ * len(KINDS))
    return cases


def share_weights(original: Subject, fixed: Subject) -> list[str]:
    """Give the fixed model the original's parameters, buffers and plain tensors; the names that it has no
    place for.

    A rewrite may turn a plain tensor attribute into a buffer: it is found by name on either side.
    """
    source, target = _tensors(original.original), _tensors(fixed.original)
    with torch.no_grad():
        for name, tensor in target.items():
            given = source.get(name)
            if given is not None and given.shape == tensor.shape:
                tensor.copy_(given)
    return [name for name in source if name not in target]


def _tensors(owner: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a Module (or of a bound method's owner), by dotted name."""
    owner = getattr(owner, "__self__", owner)
    found: dict[str, torch.Tensor] = {}
    modules: list[tuple[str, Any]] = (
        list(owner.named_modules()) if isinstance(owner, torch.nn.Module) else [("", owner)]
    )
    for path, module in modules:
        prefix = f"{path}." if path else ""
        places = {**getattr(module, "__dict__", {})}
        for key in ("_parameters", "_buffers"):
            places.update(places.pop(key, {}))
        for name, value in places.items():
            if isinstance(value, torch.Tensor):
                found[prefix + name] = value
            elif isinstance(value, torch.nn.Module) and not isinstance(owner, torch.nn.Module):
                found.update({f"{name}.{inner}": tensor for inner, tensor in _tensors(value).items()})
    return found


def compare_eager(original: Subject, fixed: Subject, cases: list[Case]) -> tuple[list[CaseResult], list[str]]:
    """All cases in order on a copy of each, and the outputs that only the original has. Where the original raises, the
    fixed one must raise as well.
    """
    left, right = original.copy(), fixed.copy()
    results: list[CaseResult] = []
    missing: list[str] = []
    for case in cases:
        try:
            expected, inputs = _opened_call(left, case)
        except Exception as error:
            results.append(_both_raise(right, case, error))
            continue
        try:
            got, inputs_after = _opened_call(right, case)
        except Exception as error:
            message = f"the fixed model raises {type(error).__name__}: {error!s:.300}"
            results.append(CaseResult(case.name, "failed", [], message, error=error))
            continue
        left_out = {path: whole for path, (_, whole) in expected.items() if path not in got and whole}
        missing += [whole for whole in dict.fromkeys(left_out.values()) if whole not in missing]
        kept = {path: leaf for path, (leaf, _) in expected.items() if path not in left_out}
        if list(kept) != list(got):
            why = f"the fixed model returns {_names(got)}, the original {_names(kept)}"
            results.append(CaseResult(case.name, "different", [], why))
            continue
        differences = compare_leaves(list(kept.values()), [leaf for leaf, _ in got.values()])
        differences += [d for d in compare_leaves(inputs, inputs_after, prefix="input") if not d.equal]
        results.append(judge(case, differences))
    return results, missing


def _names(opened: dict[str, Any]) -> str:
    return ", ".join(list(opened)[:6]) + (", ..." if len(opened) > 6 else "") if opened else "nothing"


def _opened_call(run: Any, case: Case) -> tuple[dict[str, tuple[Any, str]], list[Any]]:
    """One call: each leaf of what it returns by its path, with the path of the object around it that torch may not know
    (or ""); and the inputs' leaves afterwards.
    """
    args, kwargs = case.inputs()
    seed_all(case.seed)
    found: dict[str, tuple[Any, str]] = {}
    _open(run(*args, **kwargs), "output", "", found, 0)
    return found, snapshot(leaves_of((args, kwargs)))


def _open(value: Any, path: str, whole: str, found: dict[str, tuple[Any, str]], depth: int) -> None:
    """Take a result apart as far as Python can, registered with torch or not: a fix may register its class."""
    parts: list[tuple[str, Any]]
    if isinstance(value, torch.Tensor) or depth > MOST_DEEP:
        leaf = snapshot([value.detach() if isinstance(value, torch.Tensor) else value])[0]
        found[path] = (leaf, whole)
        return
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif (
        hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)) and not callable(value)
    ):
        whole = whole or path
        parts = [(f"{path}.{name}", item) for name, item in vars(value).items()]
    else:
        found[path] = (value, whole)
        return
    for name, item in parts:
        _open(item, name, whole, found, depth + 1)


def _both_raise(fixed: Any, case: Case, error: Exception) -> CaseResult:
    try:
        call(fixed, case)
    except Exception:
        return CaseResult(case.name, "skipped", [], f"both raise ({type(error).__name__})")
    message = f"the original raises {type(error).__name__}: {error!s:.200}; the fixed model does not"
    return CaseResult(case.name, "different", [], message)


def verify_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `verify`: original, fixed, equality in eager, then export and equality of the export in
    each mode. Without a `fixed_model` the original itself is exported.
    """
    seed_all(0)
    original = prepare(request, stages)
    fixed = original if request["fixed_model"] is None else _prepare_fixed(request, original, stages)
    stages.enter("compare")
    cases = verification_cases(original)
    if fixed is not original:
        if fixed.inputs.args is not original.inputs.args:
            cases += basic_cases(fixed.inputs.args, fixed.inputs.kwargs, few=True)
        _compare(original, fixed, cases, stages)
    eager = run_eager(fixed.subject, cases, slow=fixed.seconds > SLOW_SECONDS)
    for number, mode in enumerate(request["modes"]):
        # Both modes trace the same code: a slow model runs at other sizes once.
        sizes = number == 0 or fixed.seconds <= SLOW_SECONDS
        _verify_export(fixed, mode, eager, stages, owner, sizes=sizes)


def _prepare_fixed(request: dict[str, Any], original: Prepared, stages: Stages) -> Prepared:
    """The fixed model, made and called as the original is, but for what the fix changed in the export call."""
    changed = dict(request["counterparts"].get(original.chosen.get("source"), {}))
    name = changed.pop("name", None) or request["model"].rpartition(":")[2]
    words = {**request, **original.chosen, **changed, "proposals": []}
    for key in ("inputs", "kwargs", "dynamic_shapes"):
        if request.get(key) is not None:
            words[key] = request[key]
    words["model"] = f"{request['fixed_model']}:{name}"
    seed_all(0)  # what the file makes on import gets the same weights, too
    try:
        fixed = prepare(words, stages)
    except StageError as error:
        message = f"the fixed model cannot be run: {error.message}"
        raise StageError(error.kind, message, error.error, error.blames) from error
    if all(words.get(key) == original.chosen.get(key) for key in ("inputs", "kwargs")):
        fixed.inputs = replace(fixed.inputs, args=original.inputs.args, kwargs=original.inputs.kwargs)
    seed_all(0)
    stages.put("lost_weights", share_weights(original.subject, fixed.subject))
    return fixed


def _compare(original: Prepared, fixed: Prepared, cases: list[Case], stages: Stages) -> None:
    """Both in eager on all cases. Raises StageError("mismatch"), or "incomparable" where equality says nothing."""
    results, missing = compare_eager(original.subject, fixed.subject, cases)
    stages.put("eager", [result.plain() for result in results])
    stages.put("left_out", missing)
    bad = next((result for result in results if not result.ok), None)
    if bad is None:
        return
    why = _incomparable(original.subject, fixed.subject, cases, bad)
    if why:
        raise StageError("incomparable", why)
    raise StageError("mismatch", f"the fixed model differs from the original ({bad.name}): {bad.message}")


def _incomparable(original: Subject, fixed: Subject, cases: list[Case], bad: CaseResult) -> str:
    """Why a difference is none of the fix's: chance decides in the original, or other generators are drawn from."""
    again = next((r for r in compare_eager(original, original, cases)[0] if not r.ok), None)
    if again is not None:
        return (
            "the original gives different results in two runs with the same seed "
            f"({again.message}): there is nothing to compare the fix with"
        )
    numbers = bad.differences and all(d.equal or d.max_abs_error is not None for d in bad.differences)
    before, after = drawn_from(original, cases[0]), drawn_from(fixed, cases[0])
    if numbers and before != after:
        return (
            f"the original draws its random numbers from {before or 'no generator'}, the fixed model from "
            f"{after or 'none'}: their numbers differ by design"
        )
    return ""


def drawn_from(subject: Subject, case: Case) -> str:
    """The generators that one call draws from, in words: Python's, NumPy's, torch's."""
    model = subject.copy()
    args, kwargs = case.inputs()
    seed_all(0)
    before = generator_states()
    with contextlib.suppress(Exception):
        model(*args, **kwargs)
    after = generator_states()
    return " and ".join(name for name in before if before[name] != after[name])


def _verify_export(
    fixed: Prepared, mode: str, eager: EagerRun, stages: Stages, owner: Owner, *, sizes: bool
) -> None:
    """One mode's result as the part `export MODE`: {ok, failure, cases}; at other `sizes` of dynamic dims, too."""
    try:
        program = trace(fixed, mode, owner, stages)
    except StageError as error:
        told = {"stage": "export", "kind": error.kind, "message": error.message, "blame": error.blames}
        stages.put(f"export {mode}", {"ok": False, "failure": told, "cases": []})
        return
    stages.enter("compare")
    args, kwargs = fixed.inputs.args, fixed.inputs.kwargs
    largest = largest_elements(args, kwargs, fixed.seconds)
    frozen = static_by_accident(program, args, kwargs, fixed.inputs.dynamic_shapes)
    sized = size_cases(program, args, kwargs, largest=largest, few=True) if sizes else []
    confirmation = confirm_program(program, eager, slow=True)
    if sized and confirmation.ok:
        other_sizes = confirm_program(program, run_eager(fixed.subject, sized, slow=True), slow=True)
        confirmation.results += other_sizes.results
    bad = confirmation.first_bad
    failure: dict[str, Any] | None = None
    if bad is not None:
        message = f"the exported program differs from eager ({bad.name}): {bad.message}"
        if eager.unsteady:
            message += f"; so does eager from itself in a second run ({eager.unsteady})"
        failure = {
            "stage": "compare",
            "kind": "mismatch" if bad.status == "different" else "run",
            "message": message,
        }
    elif any(size <= 1 for _, _, size in frozen):
        name, dim, size = next(each for each in frozen if each[2] <= 1)
        message = (
            f"dim {dim} of {name} was asked to be dynamic, and the program fixes it to {size}: "
            "use an example of 2 or more"
        )
        failure = {"stage": "compare", "kind": "mismatch", "message": message}
    results = [result.plain() for result in confirmation.results]
    stages.put(f"export {mode}", {"ok": failure is None, "failure": failure, "cases": results})
