"""What `check` says of models in the style of public code, against what torch.export really does with them.

Each model is exported in both modes, and where it exports the program is run and compared with eager. `check`
must carry an error on the line that torch blames, and none where the program is sound. How the exports ended is on record
(`python -m tests.inference.test_against_torch`): those of new or changed models run, and of the others one in a few.
"""

from __future__ import annotations

import copy
import importlib.util
import random
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Finding, Severity
from exportlens.outcome import Mode, TorchVersion
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from tests import records
from tests.inference.cases import CASES, Case
from tests.seeding import seed_torch

RECORD = Path(__file__).with_name("exported.json")
KNOWN = records.read(RECORD)
# Of the cases whose outcome is on record, one in so many is exported again.
SAMPLE = 4

# What is known to differ, and why. A case that begins to agree must be taken out: the marks are strict.
DIFFERS = {
    ("last-of-each-row", "strict"): "nothing in the text says that `lengths` has one dimension",
    ("nms-loop", "strict"): "nothing in the text says that `scores` has one dimension; flagged on the loop",
    ("pad-ragged", "strict"): "nothing in the text says that the rows of `mask` are boolean",
    ("weight-clip", "strict"): "the lost write has no effect on weights that are within the bounds already",
    (
        "mask-any-helper-module-function",
        "strict",
    ): "whether the optional mask is given is not known: a warning",
    ("mask-any-helper-module-function", "non-strict"): "whether the optional mask is given is not known",
    ("function-mark-dirty", "strict"): "an internal error of Dynamo",
    ("value-of-data-under-an-option", "strict"): "which mode is chosen is not known: a warning",
    ("value-of-data-under-an-option", "non-strict"): "which mode is chosen is not known: a warning",
}


@dataclass(frozen=True)
class Outcome:
    """How one export ended: "ok", "fails" or "wrong" (other numbers than eager), with the blamed line from 1."""

    kind: str
    line: int | None = None
    message: str = ""


def export(case: Case, path: Path, mode: Mode) -> Outcome:
    torch._dynamo.reset()
    torch.set_grad_enabled(True)  # an export that failed under no_grad can leave it off
    # torch.compile, and with it torch.cond in eager, turns this off for the rest of the process.
    torch.distributions.Distribution.set_default_validate_args(True)
    random.seed(0)
    np.random.seed(0)
    seed_torch(0)
    module = load(path, mode)
    model = build(module, case)
    build(module, case)(*inputs(module, case))  # it runs in eager
    try:
        program = torch.export.export(model, inputs(module, case), strict=mode is Mode.STRICT)
    except Exception as error:
        return Outcome("fails", blamed(error, path), f"{type(error).__name__}: {error}"[:300])
    fresh = build(module, case)
    fresh.load_state_dict(model.state_dict())
    try:
        same = all(equal(fresh, program.module(), inputs(module, case), seed) for seed in (1, 2, 3))
    except Exception as error:
        return Outcome("wrong", None, str(error)[:300])
    return Outcome("ok" if same else "wrong")


def load(path: Path, mode: Mode) -> ModuleType:
    name = f"{path.stem}_{mode.name.lower()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def build(module: ModuleType, case: Case) -> torch.nn.Module:
    model: torch.nn.Module = module.M(*eval(case.init, vars(module)))
    return model.eval()


def inputs(module: ModuleType, case: Case) -> tuple[Any, ...]:
    return tuple(eval(case.inputs, vars(module)))


def equal(eager: torch.nn.Module, program: torch.nn.Module, arguments: tuple[Any, ...], seed: int) -> bool:
    outputs = []
    for run in (eager, program):
        random.seed(seed)
        np.random.seed(seed)
        seed_torch(seed)
        outputs.append(tree_leaves(run(*copy.deepcopy(arguments))))
    wanted, got = outputs
    return len(wanted) == len(got) and all(map(same_value, wanted, got))


def same_value(wanted: Any, got: Any) -> bool:
    if not isinstance(wanted, torch.Tensor):
        return bool(wanted == got)
    if isinstance(got, FakeTensor) or wanted.shape != got.shape or wanted.dtype != got.dtype:
        return False
    return torch.allclose(wanted.double(), got.double(), rtol=1e-4, atol=1e-5, equal_nan=True)


def blamed(error: Exception, path: Path) -> int | None:
    """The line of the model's file that torch names: in its words in strict mode, else in the traceback."""
    named = re.findall(rf'File "{re.escape(str(path))}", line (\d+)', str(error))
    if named:
        return int(named[-1])
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return own[-1] if own else None


def errors(case: Case, path: Path, mode: Mode) -> list[Finding]:
    engine = Engine(Config(root=path.parent, torch_version=TorchVersion(2, 13), modes=(mode,)))
    engine.update(path, case.source)
    return [finding for finding in engine.check(path) if finding.severity is Severity.ERROR]


def expected(case: Case, mode: Mode) -> Any:
    reason = DIFFERS.get((case.name, mode.value))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
    return pytest.param(case, mode, id=f"{case.name}-{mode.value}", marks=marks)


def written(case: Case, folder: Path) -> Path:
    path = folder / f"{case.name.replace('-', '_')}.py"
    path.write_text(case.source)
    return path


def key(case: Case, mode: Mode) -> str:
    return f"{case.name}-{mode.value}"


def fingerprint(case: Case) -> str:
    return records.fingerprint(case.source, case.init, case.inputs)


def on_record(case: Case, mode: Mode) -> Outcome | None:
    """How the export ended when all of them ran; None where the case is not as it was then."""
    known, kind, line = KNOWN.get(key(case, mode), "- - -").split()
    return Outcome(kind, None if line == "-" else int(line)) if known == fingerprint(case) else None


@pytest.mark.parametrize(("case", "mode"), [expected(case, mode) for case in CASES for mode in Mode])
def test_check_agrees_with_torch(case: Case, mode: Mode, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    outcome = on_record(case, mode)
    if outcome is None or CASES.index(case) % SAMPLE == 0:
        before, outcome = outcome, export(case, path, mode)
        assert before is None or (before.kind, before.line) == (outcome.kind, outcome.line)
    found = errors(case, path, mode)
    said = [f"line {finding.range.start.line + 1}: {finding.code} {finding.message}" for finding in found]
    if outcome.kind == "fails" and outcome.line is not None:
        lines = {line for f in found for line in range(f.range.start.line + 1, f.range.end.line + 2)}
        assert outcome.line in lines, f"torch blames line {outcome.line}: {outcome.message}; check: {said}"
    elif outcome.kind == "fails":
        assert found, f"torch fails: {outcome.message}"
    elif outcome.kind == "ok":
        assert not found, said


def test_the_cases_are_of_all_kinds() -> None:
    """A table in which nothing fails, or everything, would prove little; names are keys of DIFFERS."""
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 100
    assert {name for name, _ in DIFFERS} <= set(names)


def record() -> None:
    """Export all cases, and keep how that ended."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            path = written(case, Path(folder))
            for mode in Mode:
                outcome = export(case, path, mode)
                found[key(case, mode)] = f"{fingerprint(case)} {outcome.kind} {outcome.line or '-'}"
    records.write(RECORD, found)


if __name__ == "__main__":
    record()
