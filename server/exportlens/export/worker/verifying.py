"""Is a fixed file as good as the original? Both in eager with the same weights, then the fixed one
exported.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from exportlens.export.worker.blame import Owner
from exportlens.export.worker.cases import Case, generated_cases
from exportlens.export.worker.child import Prepared, prepare, trace
from exportlens.export.worker.comparing import CaseResult, call, compare_leaves, judge
from exportlens.export.worker.confirming import confirm_program, run_eager
from exportlens.export.worker.loading import Subject, seed_all
from exportlens.export.worker.stages import StageError, Stages

KINDS = ("random", "zeros", "positive", "negative", "large")
ROUNDS = 3
"""How often each kind of generated input is drawn, each time from another seed."""


def verification_cases(prepared: Prepared) -> list[Case]:
    """Examples twice, then inputs that drive branches both ways: all zero, all positive, all negative,
    large, random.
    """
    args, kwargs = prepared.inputs.args, prepared.inputs.kwargs
    cases = [Case("example inputs", args, kwargs, 0), Case("second call", args, kwargs, 0)]
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


def compare_eager(original: Subject, fixed: Subject, cases: list[Case]) -> list[CaseResult]:
    """All cases in order on a copy of each. Where the original raises, the fixed one must raise as well."""
    left, right = original.copy(), fixed.copy()
    results = []
    for case in cases:
        try:
            expected, inputs = call(left, case)
        except Exception as error:
            results.append(_both_raise(right, case, error))
            continue
        try:
            got, inputs_after = call(right, case)
        except Exception as error:
            message = f"the fixed model raises {type(error).__name__}: {error!s:.300}"
            results.append(CaseResult(case.name, "failed", [], message, error=error))
            continue
        differences = compare_leaves(expected, got)
        differences += [d for d in compare_leaves(inputs, inputs_after, prefix="input") if not d.equal]
        results.append(judge(case, differences))
    return results


def _both_raise(fixed: Any, case: Case, error: Exception) -> CaseResult:
    try:
        call(fixed, case)
    except Exception:
        return CaseResult(case.name, "skipped", [], f"both raise ({type(error).__name__})")
    message = f"the original raises {type(error).__name__}: {error!s:.200}; the fixed model does not"
    return CaseResult(case.name, "different", [], message)


def verify_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `verify`: original, fixed, equality in eager, then export and equality of the export in
    each mode.
    """
    original = prepare(request, stages)
    fixed_words = {**request, **original.chosen, "model": request["fixed_model"], "proposals": []}
    if request.get("fixed_init") is not None:
        fixed_words["init"] = request["fixed_init"]
    try:
        fixed = prepare(fixed_words, stages)
    except StageError as error:
        message = f"the fixed model cannot be run: {error.message}"
        raise StageError(error.kind, message, error.error, error.blames) from error
    fixed.inputs = copy.copy(original.inputs)
    seed_all(0)
    lost = share_weights(original.subject, fixed.subject)
    stages.put("lost_weights", lost)
    stages.enter("compare")
    cases = verification_cases(original)
    results = compare_eager(original.subject, fixed.subject, cases)
    stages.put("eager", [result.plain() for result in results])
    bad = next((result for result in results if not result.ok), None)
    if bad is not None:
        raise StageError("mismatch", f"the fixed model differs from the original ({bad.name}): {bad.message}")
    for mode in request["modes"]:
        _verify_export(fixed, mode, cases, stages, owner)


def _verify_export(fixed: Prepared, mode: str, cases: list[Case], stages: Stages, owner: Owner) -> None:
    """One mode's result as the part `export MODE`: {ok, failure, cases}."""
    try:
        program = trace(fixed, mode, owner, stages)
    except StageError as error:
        told = {"stage": "export", "kind": error.kind, "message": error.message, "blame": error.blames}
        stages.put(f"export {mode}", {"ok": False, "failure": told, "cases": []})
        return
    stages.enter("compare")
    eager = run_eager(fixed.subject, cases, slow=True)
    confirmation = confirm_program(program, eager, slow=True)
    bad = confirmation.first_bad
    failure: dict[str, Any] | None = None
    if bad is not None:
        message = f"the exported program differs from eager ({bad.name}): {bad.message}"
        failure = {
            "stage": "compare",
            "kind": "mismatch" if bad.status == "different" else "run",
            "message": message,
        }
    results = [result.plain() for result in confirmation.results]
    stages.put(f"export {mode}", {"ok": bad is None, "failure": failure, "cases": results})
