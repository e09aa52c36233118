"""One target in one fresh process: load the exported program, lower it, save it, run it on the recorded
cases.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from exportlens.export.targets.decomposing import CompilerRefused
from exportlens.export.targets.target import Target, TargetError, written_buffers
from exportlens.export.worker.blame import Frame, Owner, describe, first_sentences, node_frame, text_frames
from exportlens.export.worker.cases import Case
from exportlens.export.worker.child import failure_kind, trace
from exportlens.export.worker.comparing import (
    CaseResult,
    call,
    compare_leaves,
    forward_only,
    judge,
    latency_ms,
    worst,
)
from exportlens.export.worker.confirming import unchecked_dtypes
from exportlens.export.worker.diagnostics import Diagnostics
from exportlens.export.worker.graph import operator_name
from exportlens.export.worker.loading import import_user_module
from exportlens.export.worker.preparing import prepare
from exportlens.export.worker.stages import StageError, Stages
from exportlens.export.worker.tensors_only import TensorsOnly


def load_target(place: dict[str, str]) -> Target:
    """The target's instance: its class by module name, or by file where the user's interpreter has no such
    package.
    """
    name, _, attribute = place["entry"].partition(":")
    try:
        module = importlib.import_module(name)
    except ImportError:
        spec = importlib.util.spec_from_file_location(name, place["file"])
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    found: Target = getattr(module, attribute)()
    return found


def probe_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `probe`: what each target says of this interpreter and machine."""
    for place in request["targets"]:
        stages.enter(f"probe {place['name']}")
        try:
            target = load_target(place)
            probe = target.probe()
            facts = {"available": probe.available, "message": probe.message, "install": probe.install}
            facts.update({"purpose": target.purpose, "runs_here": target.runs_here})
        except BaseException as error:
            facts = {"available": False, "message": f"{type(error).__name__}: {error}", "install": None}
            facts.update({"purpose": "", "runs_here": False})
        stages.put(f"target {place['name']}", facts)


def target_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `target`. The artifact is written to the request's folder; the server moves it when all is
    done.
    """
    stages.enter("probe")
    target = load_target(request["target"])
    probe = target.probe()
    if not probe.available:
        install = f" To get it: {probe.install}" if probe.install else ""
        raise StageError("unavailable", f"{probe.message}.{install}")
    folder = Path(request["folder"])
    program = _load_program(request, folder, stages, owner)
    kept = _load_cases(folder)
    notes: list[str] = []
    left_out = target.left_out(program)
    if target.tensors_only or any(left_out):
        taken = TensorsOnly(program, left_out, keep_inputs=not target.tensors_only)
        program, notes = taken.program, taken.notes()
        kept["cases"] = [
            {**entry, "case": taken.case(entry["case"]), "outputs": taken.outputs(entry["outputs"])}
            for entry in kept["cases"]
        ]
    example: Case = kept["cases"][0]["case"]
    lowered = _lower(target, program, example, stages, owner)
    own = folder / target.name
    own.mkdir()
    artifact = own / f"artifact{target.suffix}"
    _explain(target, program, lowered, stages, owner)  # before saving, which may rewrite the lowered graph
    _save(target, lowered, artifact, program, stages, owner)
    made = sorted(own.iterdir())
    names = {str(path): path.name.removeprefix("artifact") for path in made}
    stages.put("artifact", {"files": names, "suffix": target.suffix, "bytes": sum(map(size_of, made))})
    if not target.runs_here:
        stages.put("notes", ["lowered, not run here", *notes, *target.notes()])
        return
    _run(target, artifact, program, kept, notes, stages, owner)


def _load_program(request: dict[str, Any], folder: Path, stages: Stages, owner: Owner) -> Any:
    """The program as saved by the export; exported anew where it could not be saved."""
    if (folder / "program.pt2").exists():
        stages.enter("import")
        import_user_module(
            request["model"], request.get("roots") or []
        )  # registers its operators and output classes
        stages.enter("load")
        return torch.export.load(folder / "program.pt2")
    return trace(prepare(request, stages), request["mode"], owner, stages)


def _load_cases(folder: Path) -> dict[str, Any]:
    path = folder / "cases.pt"
    if not path.exists():
        raise StageError(
            "run", "the example inputs or eager's outputs cannot be saved, so nothing can be compared"
        )
    kept: dict[str, Any] = torch.load(path, weights_only=False)  # written by our own export process
    return kept


def _lower(target: Target, program: Any, example: Case, stages: Stages, owner: Owner) -> Any:
    stages.enter("lower")
    args, kwargs = example.inputs()
    diagnostics = Diagnostics()
    try:
        with diagnostics:
            return target.lower(program, args, kwargs)
    except BaseException as error:
        raise _blamed(error, program, owner, "lower", diagnostics.text) from error


def _save(target: Target, lowered: Any, artifact: Path, program: Any, stages: Stages, owner: Owner) -> None:
    stages.enter("save")
    diagnostics = Diagnostics()
    try:
        with diagnostics:
            target.save(lowered, artifact)
    except BaseException as error:
        raise _blamed(error, program, owner, "save", diagnostics.text) from error


def _load_artifact(target: Target, artifact: Path, program: Any, owner: Owner) -> Any:
    diagnostics = Diagnostics()
    try:
        with diagnostics:
            return target.load(artifact)
    except BaseException as error:
        raise _blamed(error, program, owner, "run", diagnostics.text) from error


def _links(error: BaseException) -> list[BaseException]:
    """The error and what caused it, the innermost first: it knows most."""
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in found:
        found.insert(0, link)
        link = link.__cause__ or link.__context__
    return found


def _blamed(error: BaseException, program: Any, owner: Owner, stage: str, diagnostics: str) -> StageError:
    """A lowering failure in the words of whoever knows most, on the line of the node that these words
    name.
    """
    found = describe(error, owner)
    inner = _links(error)[0]
    diagnostics = error.diagnostics if isinstance(error, CompilerRefused) else diagnostics
    said = first_sentences(str(inner)) or "no message"
    if not isinstance(inner, TargetError):
        said = f"{type(inner).__name__}: {said}"
    compiler = re.search(r"error: (.+)|(Missing operator: .+)", diagnostics)
    if compiler:
        said = f"{said}: {(compiler[1] or compiler[2])[:400]}"
        found["detail"] = f"{found['detail']}\n{diagnostics[:8000]}"
    found["message"] = said
    frame = failing_frame(error, program, owner, diagnostics)
    if frame is not None or not (found["frame"] and owner.is_users(found["frame"]["file"])):
        found["frame"] = frame
    if found["frame"] is None:
        found["whole"] = "definition"  # it is shown on the model's `forward`
    return StageError(failure_kind(error, stage), said, error, [found])


_LOCATION = re.compile(r'(?:loc\()?"([^"\n]+)":(\d+):\d+|^(/[^:\n]+):(\d+):\d+: (?:error|note)', re.M)


def failing_frame(error: BaseException, program: Any, owner: Owner, diagnostics: str = "") -> Frame | None:
    """The user's line in a target's words: a location or a stack in it, a node's name, or an operator's
    name.
    """
    said = [diagnostics] if diagnostics else []
    for link in _links(error):
        if isinstance(link, TargetError) and link.node:
            said.append(link.node)
        said.append("\n".join([str(link), *getattr(link, "__notes__", [])]))
    for form in (
        lambda: program,
        program.run_decompositions,
    ):  # an operator may be a part of one that the user called
        known = _quietly(form)
        for words in said:
            frame = _frame_in(words, known, owner) if known is not None else None
            if frame is not None:
                return frame
    return None


def _quietly(make: Callable[[], Any]) -> Any:
    """What `make` gives, or None: a blame that cannot be refined stays as it is."""
    try:
        return make()
    except Exception:
        return None


def _frame_in(words: str, program: Any, owner: Owner) -> Frame | None:
    located = [
        {"file": a or b, "line": int(m or n), "function": ""} for a, m, b, n in _LOCATION.findall(words)
    ]
    frame = owner.best([f for f in located + text_frames(words) if owner.is_users(f["file"])])
    if frame is not None:
        return frame
    calls = [node for node in program.graph.nodes if node.op == "call_function" and node_frame(node, owner)]
    tokens = set(re.findall(r"[\w.]+", words))
    for node in calls:
        if node.name in tokens:
            return node_frame(node, owner)
    for node in calls:
        name = operator_name(node)
        bare = name.split(".")[1] if "." in name else name
        spelled = {
            name,
            name.partition(".")[2],
            name.rpartition(".")[0],
            f"aten_{bare}",
            f"aten.{bare}",
            f"torch.aten.{bare}",
        }
        if spelled & tokens or f"aten::{bare}" in words:
            return node_frame(node, owner)
    return None


def _explain(target: Target, program: Any, lowered: Any, stages: Stages, owner: Owner) -> None:
    stages.enter("explain")
    try:
        coverage = target.explain(program, lowered)
    except Exception as error:
        stages.put("notes", [f"what it took cannot be told: {type(error).__name__}: {error}"])
        return
    by_name = {node.name: node for node in program.graph.nodes}
    by_operator: dict[str, set[tuple[str, int]]] = {}
    for node in program.graph.nodes:
        if found := node_frame(node, owner):
            by_operator.setdefault(operator_name(node), set()).add((found["file"], found["line"]))
    left = []
    for each in coverage.left:
        frame = owner.best(text_frames(each.stack))
        if frame is None and each.node in by_name:
            frame = node_frame(by_name[each.node], owner)
        lines = by_operator.get(each.operator, set())
        if frame is None and len(lines) == 1:
            [(file, line)] = lines
            frame = {"file": file, "line": line, "function": ""}
        left.append({"node": each.node, "op": each.operator, "frame": frame})
    stages.put("coverage", {"delegated": coverage.delegated, "left": left})


def _run(
    target: Target,
    artifact: Path,
    program: Any,
    kept: dict[str, Any],
    notes: list[str],
    stages: Stages,
    owner: Owner,
) -> None:
    """Run the artifact on every recorded case; what differs is a failure, what is only unguarded a note."""
    stages.enter("run")
    runner = _load_artifact(target, artifact, program, owner)
    entries = kept["cases"]
    random = kept["random"] and not target.torch_generators
    with forward_only() if kept["forward_only"] else nullcontext():
        results = [_run_case(runner, entry, target.slack, random) for entry in entries]
    notes = [*notes, *target.notes()]
    for result, entry in zip(results, entries, strict=True):
        if not result.ok and 0 in entry["case"].sizes.values():
            notes.append(f"{result.name}: {result.message}; give the Dim min=1")
            result.status, result.note = "skipped", "a size of 0, which eager takes and this target does not"
    stages.put(
        "comparison",
        {
            "equal": all(result.ok for result in results),
            "max_abs_error": worst(results, "max_abs_error"),
            "max_rel_error": worst(results, "max_rel_error"),
            "cases": [result.plain() for result in results],
        },
    )
    bad = next((result for result in results if not result.ok), None)
    if bad is not None:
        raise _run_failure(bad, results.index(bad), program, owner)
    if random:
        notes.append("the model draws random numbers: shapes and dtypes were compared, not values")
    example: Case = entries[0]["case"]
    if not kept["slow"]:
        args, kwargs = example.inputs()
        speed = latency_ms(lambda: runner(*args, **kwargs))
        stages.put("latency", {"eager_ms": kept["latency"], "artifact_ms": speed})
        stages.put("notes", notes)  # told now: a target that checks nothing may not survive what comes
        stages.enter("check inputs")
        notes += [*beyond_range(runner, program, example), *unchecked_dtypes(runner, example)]
    stages.put("notes", notes)


def _run_failure(bad: CaseResult, index: int, program: Any, owner: Owner) -> StageError:
    different = bad.status == "different"
    words = "gives other results than eager" if different else "fails"
    frame = failing_frame(bad.error, program, owner) if bad.error is not None else None
    message = f"the artifact {words} ({bad.name}): {bad.message}"
    if different and index == 1:
        names, frame = lost_state(program, owner)
        message += f". It does not keep the model's state between calls ({', '.join(names) or 'its tensors'})"
    if not different and bad.sizes:
        message += (
            ". The program's own range allows these sizes: lowering has narrowed it. "
            "Export from an example nearer the range's upper end, or narrow the Dim"
        )
    blame = {
        "type": type(bad.error).__name__ if bad.error else "Mismatch",
        "message": message,
        "frame": frame,
    }
    return StageError("mismatch" if different else "run", message, bad.error, [blame])


def lost_state(program: Any, owner: Owner) -> tuple[list[str], Frame | None]:
    """The buffers that the program writes, and the user's line that writes the first of them."""
    written = written_buffers(program)
    by_name = {node.name: node for node in program.graph.nodes}
    frames = [node_frame(by_name[name], owner) for name in written if name in by_name]
    return list(dict.fromkeys(written.values())), next((frame for frame in frames if frame), None)


def _run_case(runner: Any, entry: dict[str, Any], slack: float, random: bool) -> CaseResult:
    case: Case = entry["case"]
    try:
        outputs, _ = call(runner, case)
    except Exception as error:
        return CaseResult(
            case.name, "failed", [], f"{type(error).__name__}: {error!s:.400}", case.note, error, case.sizes
        )
    differences = compare_leaves(entry["outputs"], outputs, slack)
    if random:
        for difference in differences:
            difference.equal = difference.equal or difference.max_abs_error is not None
    return judge(case, differences)


def beyond_range(runner: Any, program: Any, example: Case) -> list[str]:
    """A note for each dynamic dim whose upper bound the artifact does not enforce."""
    from exportlens.export.worker.cases import dynamic_dims, resized

    notes = []
    dims = dynamic_dims(program, example.args, example.kwargs)
    sizes = {dim.symbol: dim.example for dim in dims}
    for dim in dims:
        if dim.high is None:
            continue
        inputs = resized(program, example.args, example.kwargs, {**sizes, dim.symbol: dim.high + 1})
        if inputs is None:
            continue
        try:
            runner(*inputs[0], **inputs[1])
        except Exception:
            continue
        notes.append(f"{dim.places[0]}={dim.high + 1} is taken although the range ends at {dim.high}")
    return notes


def size_of(path: Path) -> int:
    """Bytes of a file, or of everything in a folder."""
    if path.is_dir():
        return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
    return path.stat().st_size
