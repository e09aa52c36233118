"""Installs the hardware targets' packages: `python scripts/set_up_targets.py onnxruntime executorch ...`.

Each extra of pyproject.toml gets an environment of its own in .tools/targets-NAME, since their packages
disagree with one another. They see the project's torch through a .pth file, so it is not installed once more
for each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / ".venv"
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
    ]
    subprocess.run([*command, *wanted], check=True)
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
