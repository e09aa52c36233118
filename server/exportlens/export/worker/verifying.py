"""Is a fixed file as good as the original? Both in eager with the same weights, then the fixed one
exported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from exportlens.export.worker.blame import Owner
from exportlens.export.worker.cases import (
    EXAMPLE,
    SECOND_CALL,
    Case,
    basic_cases,
    generated_cases,
    size_cases,
    static_by_accident,
)
from exportlens.export.worker.child import trace
from exportlens.export.worker.comparing import CaseResult, compare_leaves, judge, snapshot
from exportlens.export.worker.confirming import (
    Begun,
    EagerRun,
    confirm_program,
    find_unsteady,
    generator_states,
    run_eager,
)
from exportlens.export.worker.drawing_alike import drawn_alike
from exportlens.export.worker.graph import fingerprint
from exportlens.export.worker.loading import Inputs, Subject, seed_all
from exportlens.export.worker.preparing import Prepared, Ready, prepare
from exportlens.export.worker.remembering import Expected, Memory, Opened, tensors_of
from exportlens.export.worker.stages import StageError, Stages
from exportlens.export.worker.worlds import FixedWorld

KINDS = ("random", "zeros", "positive", "negative", "large")
MOST_DEEP = 12
SLOW_KINDS = ("positive", "negative", "random", "zeros")
SECONDS_FOR_GENERATED = 20.0
"""What all generated inputs together may cost on one side, where one call takes more than SLOW_SECONDS."""
ROUNDS = 3
"""How often each kind of generated input is drawn, each time from another seed."""


def verification_cases(prepared: Prepared) -> list[Case]:
    """Examples twice, then inputs that drive branches both ways: all zero, all positive, all negative,
    large, random. A slow model gets as many as it has time for, and at least one: its second call is the one on those.
    """
    args, kwargs = prepared.inputs.args, prepared.inputs.kwargs
    cases = [Case(EXAMPLE, args, kwargs, 0)]
    if prepared.slow:
        affordable = max(1, int(SECONDS_FOR_GENERATED / prepared.cost.seconds))
        return [*cases, *generated_cases(args, kwargs, SLOW_KINDS[:affordable], 10)]
    cases.append(Case(SECOND_CALL, args, kwargs, 0))
    for round_ in range(ROUNDS):
        cases += generated_cases(args, kwargs, KINDS, 10 + round_ * len(KINDS))
    return cases


def share_weights(original: Subject, fixed: Subject) -> list[str]:
    """Give the fixed model the original's parameters, buffers and plain tensors; the names that it has no
    place for.

    A rewrite may turn a plain tensor attribute into a buffer: it is found by name on either side.
    """
    source, target = tensors_of(original.original), tensors_of(fixed.original)
    with torch.no_grad():
        for name, tensor in target.items():
            given = source.get(name)
            if given is not None and given.shape == tensor.shape:
                tensor.copy_(given)
    return [name for name in source if name not in target]


def compare_eager(original: Expected, eager: EagerRun, opened: Opened) -> tuple[list[CaseResult], list[str]]:
    """All cases in order: what the original gives against what the fixed model gave (`run_opened`), and the outputs
    that only the original has. Where the original raises, the fixed one must raise as well.
    """
    results: list[CaseResult] = []
    missing: list[str] = []
    for index, case in enumerate(eager.cases):
        error, refused = original.errors[index], eager.errors[index]
        if error is not None:
            results.append(_both_raise(case, error, refused))
            continue
        if refused is not None:
            message = f"the fixed model raises {type(refused).__name__}: {refused!s:.300}"
            results.append(CaseResult(case.name, "failed", [], message, error=refused))
            continue
        expected, got = original.opened[index], opened[index]
        left_out = {path: whole for path, (_, whole) in expected.items() if path not in got and whole}
        missing += [whole for whole in dict.fromkeys(left_out.values()) if whole not in missing]
        kept = {path: leaf for path, (leaf, _) in expected.items() if path not in left_out}
        if list(kept) != list(got):
            why = f"the fixed model returns {_names(got)}, the original {_names(kept)}"
            results.append(CaseResult(case.name, "different", [], why))
            continue
        differences = compare_leaves(list(kept.values()), [leaf for leaf, _ in got.values()])
        after = compare_leaves(original.inputs_after[index], eager.inputs_after[index], prefix="input")
        differences += [d for d in after if not d.equal]
        results.append(judge(case, differences))
    return results, missing


def run_opened(
    subject: Subject, cases: list[Case], *, slow: bool, begun: Begun | None = None
) -> tuple[EagerRun, Opened]:
    """All cases in order on a copy of a model, and what each returned, taken apart as far as Python can."""
    opened: Opened = {}
    return run_eager(subject, cases, slow=slow, see=_opener(opened), begun=begun), opened


def _expected(eager: EagerRun, opened: Opened) -> Expected:
    return Expected(opened, eager.inputs_after, eager.errors)


def _opener(into: Opened) -> Callable[[int, Any], None]:
    """What puts a case's result into `into`: each leaf by its path, with the path of the object around it that torch may
    not know (or "").
    """

    def see(index: int, result: Any) -> None:
        into[index] = {}
        _open(result, "output", "", into[index], 0)

    return see


def _names(opened: dict[str, Any]) -> str:
    return ", ".join(list(opened)[:6]) + (", ..." if len(opened) > 6 else "") if opened else "nothing"


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


def _both_raise(case: Case, error: BaseException, refused: BaseException | None) -> CaseResult:
    if refused is not None:
        return CaseResult(case.name, "skipped", [], f"both raise ({type(error).__name__})")
    message = f"the original raises {type(error).__name__}: {error!s:.200}; the fixed model does not"
    return CaseResult(case.name, "different", [], message)


def verify_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `verify`: original, fixed, equality in eager, then export and equality of the export in
    each mode. Without `fixed_files` the original itself is exported.
    """
    seed_all(0)
    memory = Memory(request.get("memory"))
    original = prepare(memory.request(request), stages, memory.before_call)
    fixed, world = original, None
    cases = verification_cases(original)
    expected = memory.recall(len(cases)) if request["fixed_files"] else None
    if request["fixed_files"] and expected is None and _defines_operators():
        expected = _expected(*run_opened(original.subject, cases, slow=True, begun=original.begun))
    if request["fixed_files"]:
        world = FixedWorld(request["fixed_files"], request["model"].rpartition(":")[0])
        fixed = _prepare_fixed(request, original, stages)
    stages.enter("compare")
    if fixed.inputs.args is not original.inputs.args:
        more = basic_cases(fixed.inputs.args, fixed.inputs.kwargs, few=True)
        cases, expected = [*cases, *more], None if more else expected
    with fixed.compared():
        eager, opened = run_opened(fixed.subject, cases, slow=fixed.slow, begun=fixed.begun)
        if world is None:
            memory.keep(original, _expected(eager, opened))
        else:
            _compare(original, fixed, world, eager, opened, expected, stages)
    done: dict[str, dict[str, Any]] = {}
    for mode in request["modes"]:
        stages.put(f"export {mode}", _verify_export(fixed, mode, eager, stages, owner, done))


def _defines_operators() -> bool:
    """Whether files have defined operators by torch.library.custom_op: torch destroys one that is defined again by its name, as the
    fixed text does, and the original, which still holds it, would call into memory that is gone."""
    return bool(getattr(sys.modules.get("torch._library.custom_ops"), "OPDEF_TO_LIB", None))


def _prepare_fixed(request: dict[str, Any], original: Prepared, stages: Stages) -> Prepared:
    """The fixed model, made and called as the original is, but for what the fix changed in the export call."""
    changed = dict(request["counterparts"].get(original.chosen.get("source"), {}))
    name = changed.pop("name", None) or request["model"].rpartition(":")[2]
    words = {**request, **original.chosen, **changed, "proposals": []}
    for key in ("inputs", "kwargs", "dynamic_shapes"):
        if request.get(key) is not None:
            words[key] = request[key]
    words["model"] = f"{request['model'].rpartition(':')[0]}:{name}"

    def as_original(subject: Subject, inputs: Inputs) -> Ready:
        if all(words.get(key) == original.chosen.get(key) for key in ("inputs", "kwargs")):
            inputs = replace(inputs, args=original.inputs.args, kwargs=original.inputs.kwargs)
        stages.put("lost_weights", share_weights(original.subject, subject))
        return Ready(inputs)

    seed_all(0)  # what the file makes on import gets the same weights, too
    try:
        return prepare(words, stages, as_original)
    except StageError as error:
        message = f"the fixed model cannot be run: {error.message}"
        raise StageError(error.kind, message, error.error, error.blames) from error


def _compare(
    original: Prepared,
    fixed: Prepared,
    world: FixedWorld,
    eager: EagerRun,
    opened: Opened,
    expected: Expected | None,
    stages: Stages,
) -> None:
    """The original (what it gives is `expected`, where that is known) against what the fixed model gave. Raises
    StageError("mismatch"), or "incomparable" where equality says nothing.
    """
    if expected is None:
        with world.original():
            expected = _expected(*run_opened(original.subject, eager.cases, slow=True, begun=original.begun))
    results, missing = compare_eager(expected, eager, opened)
    stages.put("eager", [result.plain() for result in results])
    stages.put("left_out", missing)
    bad = next((result for result in results if not result.ok), None)
    if bad is None:
        return
    cases = eager.cases[: results.index(bad) + 1]
    alike = _with_the_same_numbers(original, fixed, world, eager.cases, bad)
    if alike is not None:
        stages.put("eager", [result.plain() for result in alike])
        return
    why = _incomparable(original.subject, fixed.subject, world, cases, bad, slow=original.slow)
    if why:
        raise StageError("incomparable", why)
    raise StageError("mismatch", f"the fixed model differs from the original ({bad.name}): {bad.message}")


def _with_the_same_numbers(
    original: Prepared, fixed: Prepared, world: FixedWorld, cases: list[Case], bad: CaseResult
) -> list[CaseResult] | None:
    """The results where all generators draw the same numbers; None where the two sides draw from the same generators as they
    are, or still differ."""
    if not bad.differences or original.slow:
        return None
    with world.original():
        before = drawn_from(original.subject, cases[0])
    if before == drawn_from(fixed.subject, cases[0]):
        return None
    results: list[CaseResult] = []
    for seed in range(ROUNDS):
        with drawn_alike(seed):
            given, opened = run_opened(fixed.subject, cases, slow=True)
        with world.original(), drawn_alike(seed):
            expected = _expected(*run_opened(original.subject, cases, slow=True))
        results += compare_eager(expected, given, opened)[0]
    named = [replace(each, name=f"{each.name}, the same random numbers") for each in results]
    return named if all(each.ok for each in named) else None


def _incomparable(
    original: Subject, fixed: Subject, world: FixedWorld, cases: list[Case], bad: CaseResult, *, slow: bool
) -> str:
    """Why a difference is none of the fix's: chance decides in the original, or other generators are drawn from."""
    with world.original():
        once = _expected(*run_opened(original, cases, slow=True))
        # One more run shows chance most of the time only: an address modulo a small number may come out the same.
        for _ in range(1 if slow else 6):
            repeated = compare_eager(once, *run_opened(original, cases, slow=True))[0]
            unsteady = next((result for result in repeated if not result.ok), None)
            if unsteady is not None:
                break
        before = drawn_from(original, cases[0])
    if unsteady is not None:
        return (
            "the original gives different results in two runs with the same seed "
            f"({unsteady.message}): there is nothing to compare the fix with"
        )
    numbers = bad.differences and all(d.equal or d.max_abs_error is not None for d in bad.differences)
    after = drawn_from(fixed, cases[0])
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
    fixed: Prepared,
    mode: str,
    eager: EagerRun,
    stages: Stages,
    owner: Owner,
    done: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """One mode's result, {ok, failure, cases}. `done` has the results of the modes before by their programs'
    fingerprints: the same program, which both modes mostly give, gives the same numbers.
    """
    try:
        program = trace(fixed, mode, owner, stages)
    except StageError as error:
        told = {"stage": "export", "kind": error.kind, "message": error.message, "blame": error.blames}
        return {"ok": False, "failure": told, "cases": []}
    stages.enter("compare")
    same = fingerprint(program)
    if same is not None and same in done:
        return done[same]
    with fixed.compared():
        result = _compare_export(fixed, program, eager)
    if same is not None:
        done[same] = result
    return result


def _compare_export(fixed: Prepared, program: Any, eager: EagerRun) -> dict[str, Any]:
    """The program against eager on eager's cases, and at other sizes of dynamic dims."""
    args, kwargs = fixed.inputs.args, fixed.inputs.kwargs
    largest = fixed.cost.largest_elements(args, kwargs)
    frozen = static_by_accident(program, args, kwargs, fixed.inputs.dynamic_shapes)
    confirmation = confirm_program(program, eager, slow=True)
    sized = size_cases(program, args, kwargs, largest=largest, few=True)
    if sized and confirmation.ok:
        other_sizes = confirm_program(program, run_eager(fixed.subject, sized, slow=True), slow=True)
        confirmation.results += other_sizes.results
    bad = confirmation.first_bad
    failure: dict[str, Any] | None = None
    if bad is not None:
        message = f"the exported program differs from eager ({bad.name}): {bad.message}"
        if not fixed.slow:
            find_unsteady(eager, fixed.subject)
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
    return {"ok": failure is None, "failure": failure, "cases": results}
