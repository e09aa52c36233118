"""Installs the hardware targets' packages: `python scripts/set_up_targets.py onnxruntime executorch ...`.

Each extra of pyproject.toml gets an environment of its own in .tools/targets-NAME, since their packages
disagree with one another. They see the project's torch through a .pth file, so it is not installed once more
for each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / ".venv"
# What a first lowering imports. To compile all that ExecuTorch brings takes longer than its installation, and the worker
# keeps nothing of what it compiles.
FIRST_LOWERING = {
    "onnxruntime": """
import onnxruntime, torch
torch.onnx.export(torch.nn.Linear(4, 4), (torch.randn(2, 4),), dynamo=True, report=False, verify=True)
""",
    "executorch": """
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
import executorch.devtools.backend_debug
program = torch.export.export(torch.nn.Linear(4, 4), (torch.randn(2, 4),))
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
Runtime.get().load_program(lowered.buffer)
""",
}
NAMES = ("onnxruntime", "executorch", "openvino", "iree", "tvm", "coreml", "litert")


def requirements(name: str) -> list[str]:
    """What the extra `name` of pyproject.toml asks for. Raises KeyError for an extra that is none."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = table["project"]["optional-dependencies"][name]
    return found


def install(name: str) -> None:
    """Make (or complete) the environment of one extra; quick when its requirements are as they were."""
    wanted = requirements(name)
    folder = ROOT / ".tools" / f"targets-{name}"
    stamp = folder / "installed.txt"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = f"lib/{version}/site-packages"
    if (folder / packages).exists():
        _see_project(folder / packages, BASE / packages)
    if stamp.exists() and stamp.read_text().splitlines() == wanted:
        return
    print(f"target {name}: installing {', '.join(wanted)}", flush=True)
    if not (folder / "bin" / "python").exists():
        subprocess.run([str(BASE / "bin" / "python"), "-m", "venv", str(folder)], check=True)
    _see_project(folder / packages, BASE / packages)
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *(["--no-compile"] if name in FIRST_LOWERING else []),
    ]
    subprocess.run([*command, *wanted], check=True)
    if name in FIRST_LOWERING:
        python = str(folder / "bin" / "python")
        keeping = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([python, "-c", FIRST_LOWERING[name]], check=True, env=keeping, capture_output=True)
    stamp.write_text("\n".join(wanted) + "\n")


def _see_project(packages: Path, project: Path) -> None:
    """Let an environment import what the project's has; its own .pth files count, too, which a bare path leaves out."""
    (packages / "project.pth").write_text(f"import site; site.addsitedir({str(project)!r})\n")


def main() -> int:
    names = sys.argv[1:] or list(NAMES)
    failed = []
    for name in names:
        try:
            install(name)
        except KeyError:
            print(f"no such extra in pyproject.toml: {name}", file=sys.stderr)
            return 2
        except subprocess.CalledProcessError as error:
            print(f"target {name} could not be installed: {error}", file=sys.stderr)
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
