"""One request in one fresh process: import, construct, run eager, export, compare, save; or lower to one
target.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from exportlens.export.targets.target import returned_words
from exportlens.export.worker import cases as inputs_of
from exportlens.export.worker.blame import (
    GuardLog,
    Owner,
    describe,
    guard_log,
    traceback_frames,
    violated_guards,
)
from exportlens.export.worker.cases import EXAMPLE, OTHER_SEED, SECOND_CALL
from exportlens.export.worker.channel import Channel
from exportlens.export.worker.comparing import CaseResult
from exportlens.export.worker.confirming import (
    AFTER_ALL,
    EagerRun,
    all_cases,
    confirm_program,
    find_unsteady,
    run_eager,
)
from exportlens.export.worker.divergence import first_difference
from exportlens.export.worker.graph import describe_graph, fingerprint, histogram
from exportlens.export.worker.loading import Subject, seed_all
from exportlens.export.worker.preparing import Prepared, prepare
from exportlens.export.worker.processes import leave_a_stack
from exportlens.export.worker.stages import StageError, Stages
from exportlens.export.worker.witness import values_at

CONFIRMED = "confirmed.json"
"""In the folder of a mode: its program's fingerprint, and what the comparison with eager gave."""
MEMORY_WORDS = ("can't allocate memory", "out of memory", "not enough memory", "std::bad_alloc")


def run_request(request: dict[str, Any], channel: Channel) -> None:
    """Serve one request to its end; whatever fails is told as a `failure` part, never raised."""
    sys.dont_write_bytecode = True
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if request.get("cwd"):
        os.chdir(request["cwd"])
    warnings.simplefilter("ignore")
    leave_a_stack(request.get("stack"))
    stages = Stages(channel)
    owner = Owner(request.get("homes") or [os.getcwd()])
    operations = {
        "export": export_operation,
        "target": _target,
        "probe": _probe,
        "verify": _verify,
        "draft": _draft,
    }
    try:
        operations[request["op"]](request, stages, owner)
    except BaseException as error:
        if not channel.is_mine:
            os._exit(0)
        _tell_failure(error, stages, owner)
    stages.finish()
    stages.put("peak_memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT)
    channel.send("done")


_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # getrusage(2): bytes on macOS, KiB on Linux


def _target(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    from exportlens.export.worker.lowering import target_operation

    target_operation(request, stages, owner)


def _probe(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    from exportlens.export.worker.lowering import probe_operation

    probe_operation(request, stages, owner)


def _verify(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    from exportlens.export.worker.verifying import verify_operation

    verify_operation(request, stages, owner)


def _draft(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    from exportlens.export.worker.drafting import draft_operation

    draft_operation(request, stages, owner)


def failure_kind(error: BaseException, stage: str) -> str:
    """The kind of a failure that no StageError has named: by what it says, else by its stage."""
    words = str(error).lower()
    if isinstance(error, MemoryError) or any(word in words for word in MEMORY_WORDS):
        return "memory"
    return {"save": "lower", "lower": "lower", "compare": "run", "load": "run"}.get(stage, stage)


def _tell_failure(error: BaseException, stages: Stages, owner: Owner) -> None:
    """Send the failure that ended the request: stage, kind, message and the places at fault."""
    if isinstance(error, StageError):
        kind, message, cause = error.kind, error.message, error.error
        blames = error.blames
    else:
        kind, message, cause, blames = failure_kind(error, stages.current), "", error, None
    if blames is None:
        blames = [describe(cause, owner)] if cause is not None else []
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        message = f"the model ended the process ({type(error).__name__}: {error})"
    if not message:
        message = f"{blames[0]['type']}: {blames[0]['message']}"
    stage = "import" if kind == "import" else stages.current  # a name is looked up when the file is there
    stages.put("failure", {"stage": stage, "kind": kind, "message": message, "blame": blames})


def trace(prepared: Prepared, mode: str, owner: Owner, stages: Stages) -> Any:
    """Export a copy in one mode. Raises StageError with the places at fault."""
    stages.enter("export")
    model = prepared.subject.copy()
    args, kwargs = inputs_of.Case("", prepared.inputs.args, prepared.inputs.kwargs, 0).inputs()
    seed_all(0)
    with guard_log(owner, prepared.inputs.names(prepared.subject)) as guards:
        try:
            return torch.export.export(
                model, args, kwargs, dynamic_shapes=prepared.inputs.dynamic_shapes, strict=mode == "strict"
            )
        except BaseException as error:
            found = describe(error, owner)
            blames = blame_export(error, found, guards, prepared)
            kind = failure_kind(error, "export")
            for blame in blames:
                blame["values"] = values_at(
                    prepared.subject, prepared.inputs, blame["frame"], prepared.cost.seconds
                )
            message = f"{found['type']}: {found['message']}"
            raise StageError(kind, message, error, blames) from error


def blame_export(
    error: BaseException, found: dict[str, Any], guards: GuardLog, prepared: Prepared
) -> list[dict[str, Any]]:
    """One entry per place at fault; a constraint violation has as many as lines whose guards break the
    range.
    """
    if re.search(r"to be a constant \([01]\)", str(error)):
        found["advice"] = (
            "The example's size is 0 or 1, which torch takes as fixed: use an example size of 2 or more"
        )
    if violated_guards(str(error)):
        places = guards.violating()
        if places:
            return [{**found, "frame": frame, "guard": guard} for guard, frame in places]
    if found["frame"] is None and prepared.subject.file:
        found["frame"] = definition_frame(prepared.subject)
        found["whole"] = "definition"
    return [found]


def definition_frame(subject: Subject) -> dict[str, Any] | None:
    """The model's `forward` (or the function itself): where a failure stands that has no line."""
    target = getattr(type(subject.original), "forward", None) if subject.is_module else subject.original
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if code is None:
        return None
    return {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_name}


def export_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `export`: one mode, compared with eager, saved into the request's folder for the
    targets.
    """
    prepared = prepare(request, stages)
    stages.put("definition", definition_frame(prepared.subject))
    program = trace(prepared, request["mode"], owner, stages)
    stages.put("histogram", histogram(program))
    stages.put("dynamic_dims", [asdict(d) for d in inputs_of.dynamic_dims(program, *_both(prepared))])
    folder = Path(request["folder"])
    _keep_graph(program, owner, folder)
    _keep_program(program, folder, stages)
    stages.enter("compare")
    same = fingerprint(program)
    known = _confirmed_before(same, request)
    if known is not None:
        for key, value in known.items():
            stages.put(key, value)
        return
    with prepared.compared():
        cases = all_cases(program, prepared.inputs, prepared.cost)
        eager = run_eager(prepared.subject, cases, slow=prepared.slow, begun=prepared.begun)
        _keep_cases(eager, prepared, folder, stages)
        confirmation = confirm_program(program, eager, slow=prepared.slow)
        if not (confirmation.ok or prepared.slow):
            find_unsteady(eager, prepared.subject)
    frozen = inputs_of.static_by_accident(program, *_both(prepared), prepared.inputs.dynamic_shapes)
    for name, dim, size in frozen:
        why = " because the example's size is 1: use an example of 2 or more" if size == 1 else ""
        confirmation.warnings.append(
            f"dim {dim} of {name} was asked to be dynamic, and the program fixes it to {size}{why}"
        )
    comparison, failure = confirmation.plain(eager), None
    if not confirmation.ok:
        failure = _mismatch(prepared, program, eager, confirmation, owner)
    elif any(size <= 1 for _, _, size in frozen):
        message = confirmation.warnings[0]
        whole = {"frame": definition_frame(prepared.subject), "whole": "definition"}
        blame = {"type": "Mismatch", "message": message, "detail": message, **whole}
        failure = {"stage": "compare", "kind": "mismatch", "message": message, "blame": [blame]}
    found = {"comparison": comparison, **({"failure": failure} if failure else {})}
    for key, value in found.items():
        stages.put(key, value)
    kept = {"mode": request["mode"], "fingerprint": same, "parts": found}
    (folder / CONFIRMED).write_text(json.dumps(kept))


def _confirmed_before(same: str | None, request: dict[str, Any]) -> dict[str, Any] | None:
    """What the comparison of the same program in another mode gave, where there was one; it is not made again."""
    for folder in request.get("confirmed") or []:
        path = Path(folder) / CONFIRMED
        if same is not None and path.exists():
            kept = json.loads(path.read_text())
            if kept["fingerprint"] == same:
                parts: dict[str, Any] = kept["parts"]
                parts["comparison"]["same_as"] = kept["mode"]
                return parts
    return None


def _both(prepared: Prepared) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return prepared.inputs.args, prepared.inputs.kwargs


def _keep_graph(program: Any, owner: Owner, folder: Path) -> None:
    (folder / "graph.json").write_text(json.dumps(describe_graph(program, owner)))


def _keep_program(program: Any, folder: Path, stages: Stages) -> None:
    """Save the program before anything runs it (running writes into its buffers); the targets start from the
    file. One that cannot be written and read back is exported anew for each target.
    """
    path = folder / "program.pt2"
    try:
        if returned_words(program):
            return
        torch.export.save(program, path)
    except Exception as error:
        path.unlink(missing_ok=True)  # it may be there in part
        stages.put("save_error", f"{type(error).__name__}: {error}")


def _keep_cases(eager: EagerRun, prepared: Prepared, folder: Path, stages: Stages) -> None:
    """Inputs and eager's results, as flat leaves, for the processes that lower to targets."""
    kept = {
        "random": eager.random or bool(eager.unsteady),
        "latency": eager.latency,
        "slow": prepared.slow,
        "forward_only": prepared.slow and prepared.without_backward,
        "cases": [
            {"case": case, "outputs": outputs, "inputs_after": after}
            for case, outputs, after, error in zip(
                eager.cases, eager.outputs, eager.inputs_after, eager.errors, strict=True
            )
            if error is None
        ],
    }
    try:
        torch.save(kept, folder / "cases.pt")
    except Exception as error:
        stages.put("save_error", f"{type(error).__name__}: {error}")


def _mismatch(
    prepared: Prepared, program: Any, eager: EagerRun, confirmation: Any, owner: Owner
) -> dict[str, Any]:
    """The failure of a program that is not eager: on the first operation that differs, where it can be
    found.
    """
    bad = confirmation.first_bad
    kind = "mismatch" if bad.status == "different" else "run"
    words = "gives other results than eager" if kind == "mismatch" else "raises where eager does not"
    message = f"the exported program {words} ({bad.name}): {bad.message}"
    blame: dict[str, Any] = {
        "type": "Mismatch",
        "message": f"{bad.name}: {bad.message}",
        "detail": message,
        "frame": None,
        "advice": advice_on(bad, eager) if kind == "mismatch" else None,
    }
    index = next((i for i, case in enumerate(eager.cases) if case.name == bad.name), None)
    if index is not None:
        place = first_difference(prepared.subject.copy(), program, eager.cases[: index + 1], owner)
        if place is not None:
            blame["frame"] = place["frame"]
            blame["operation"] = place["why"]
    if blame["frame"] is None and bad.error is not None:
        blame["frame"] = owner.best(
            [f for f in traceback_frames(bad.error.__traceback__) if owner.is_users(f["file"])]
        )
    blame["values"] = values_at(prepared.subject, prepared.inputs, blame["frame"], prepared.cost.seconds)
    if blame["frame"] is None:
        blame["frame"] = definition_frame(prepared.subject)
        blame["whole"] = "definition"
    return {"stage": "compare", "kind": kind, "message": message, "blame": [blame]}


def advice_on(bad: CaseResult, eager: EagerRun) -> str:
    """What to do about a difference, by the case that showed it: each case is there to show one cause."""
    if eager.unsteady:
        return "A clock, id(), a hash or uninitialised memory decides: pass the value in as an input"
    if bad.name in (SECOND_CALL, AFTER_ALL):
        return "What changes from call to call is frozen: keep it in a registered buffer, written in place"
    seeds_differ = bad.name == OTHER_SEED or all(case.name != OTHER_SEED for case in eager.cases)
    if eager.random and seeds_differ:
        return "A random number is frozen: draw it with torch's generator, or pass it in as an input"
    if bad.sizes:
        return (
            "The program is right for the example's sizes only: narrow the Dim, or do without their numbers"
        )
    if bad.name == EXAMPLE:
        return ""
    return "The program is right for the example's values only: what depends on them was frozen"
