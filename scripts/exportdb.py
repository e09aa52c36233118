"""torch's own examples of what export takes (ExportDB): what rules say of each, and what torch does."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Finding
from exportlens.outcome import Mode, TorchVersion
from exportlens.proof.example import Proof, Prover
from exportlens.rule import Example

# The model is handed out afresh for each run; a name of the case's own would shadow the function.
_MODEL = """

_case_model = model


def model():
    import copy

    return copy.deepcopy(_case_model)
"""


@dataclass(frozen=True)
class Case:
    """One example: its name, source, what real exports ended in, and the findings for both modes."""

    name: str
    text: str
    proofs: dict[Mode, Proof]
    findings: list[Finding]


def sources() -> dict[str, str]:
    """The examples of the torch that this interpreter has: name -> source."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "_export" / "db" / "examples"
    return {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    }


def findings(text: str, version: TorchVersion) -> list[Finding]:
    """What `check` says of one example for both modes."""
    path = Path("/nowhere/example.py")
    engine = Engine(Config(root=path.parent, torch_version=version, modes=(Mode.STRICT, Mode.NON_STRICT)))
    engine.update(path, text)
    return engine.check(path)


def cases(prover: Prover) -> Iterator[Case]:
    """Every example, checked and exported."""
    version = TorchVersion.parse(prover.torch)
    for name, text in sources().items():
        shapes = "dynamic_shapes" if re.search(r"^dynamic_shapes\b", text, re.MULTILINE) else None
        kwargs = "example_kwargs" if re.search(r"^example_kwargs\b", text, re.MULTILINE) else "{}"
        example = Example(bad="", good="", inputs="example_args", dynamic_shapes=shapes)
        yield Case(name, text, prover.prove(text + _MODEL, example, kwargs), findings(text, version))


def table() -> str:
    """docs/exportdb.md."""
    with Prover(Path(sys.executable)) as prover:
        rows = list(_rows(prover))
        version = TorchVersion.parse(prover.torch)
    head = [
        "# ExportDB",
        "",
        f"torch ships {len(rows)} examples of what export takes. For each: what torch {version} does with "
        "it in each mode,",
        "and what `exportlens check --mode both` says. An example that exports carries no error.",
        "",
        "| example | strict | non-strict | findings |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _rows(prover: Prover) -> Iterator[str]:
    for case in cases(prover):
        said = ", ".join(f"{finding.code} ({finding.severity.value})" for finding in case.findings) or "none"
        strict, non_strict = (case.proofs[mode].result for mode in (Mode.STRICT, Mode.NON_STRICT))
        yield f"| {case.name} | {strict} | {non_strict} | {said} |"
