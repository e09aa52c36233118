"""Run every rule's bad examples under one interpreter's torch, and update the pack's outcome table.

    python scripts/measure_outcomes.py [--python INTERPRETER] [--only EXL201] [--missing]

The table is rules/exportlens_rules/outcomes.json: per example and torch version what strict and non-strict
export did, in the prover's words ("fails", "differs", "ok", "broken"). Rows of other versions are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from exportlens.measurements import TABLE_NAME
from exportlens.outcome import Mode, TorchVersion
from exportlens.proof.example import Prover
from exportlens.rule import registry

TABLE = Path(__file__).resolve().parent.parent / "rules" / "exportlens_rules" / TABLE_NAME


def main() -> int:
    """Measure, print one line per example, write the table; 2 when the interpreter has no usable torch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="the interpreter whose torch is asked"
    )
    parser.add_argument("--only", default="", help="measure only rules whose code starts with this")
    parser.add_argument("--missing", action="store_true", help="leave out what the table has of this torch")
    parser.add_argument("--output", type=Path, default=TABLE, help="the table to update")
    options = parser.parse_args()
    table = json.loads(options.output.read_text()) if options.output.exists() else {}
    table.setdefault("torch", {})
    table.setdefault("outcomes", {})
    try:
        with Prover(options.python) as prover:
            version = str(TorchVersion.parse(prover.torch))
            print(f"torch {prover.torch}", flush=True)
            for rule in registry():
                if rule.targets or not rule.code.startswith(options.only):
                    continue
                for number, example in enumerate(rule.examples, start=1):
                    if options.missing and version in table["outcomes"].get(f"{rule.code}-{number}", {}):
                        continue
                    proofs = prover.prove(example.bad, example)
                    pair = [proofs[Mode.STRICT].result, proofs[Mode.NON_STRICT].result]
                    table["outcomes"].setdefault(f"{rule.code}-{number}", {})[version] = pair
                    print(f"{rule.code}-{number}  strict {pair[0]:8} non-strict {pair[1]}", flush=True)
            table["torch"][version] = prover.torch
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    options.output.write_text(_written(_sorted(table)), encoding="utf-8")
    return 0


def _sorted(table: dict[str, dict[str, object]]) -> dict[str, object]:
    def by_version(rows: dict[str, object]) -> dict[str, object]:
        return {version: rows[version] for version in sorted(rows, key=TorchVersion.parse)}

    outcomes = table["outcomes"]
    return {
        "torch": by_version(table["torch"]),
        "outcomes": {name: by_version(outcomes[name]) for name in sorted(outcomes)},  # type: ignore[arg-type]
    }


def _written(table: dict[str, object]) -> str:
    """JSON with one line per example, so that a change reads as one."""
    parts = []
    for name, rows in table.items():
        assert isinstance(rows, dict)
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())
        parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
