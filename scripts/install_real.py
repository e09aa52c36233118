"""Install code that nobody here wrote, beside the CPU torch of this project, for tests/real.

    python scripts/install_real.py packages   # tests/real/data/packages.txt -> .tools/real
    python scripts/install_real.py research   # tests/real/data/research.txt -> .tools/real2

`packages` go into a virtual environment that sees the project's own site-packages by a .pth file: torch is
there once and stays the CPU build. `research` packages are unpacked without their dependencies, each into a
folder of its own: old packages pin old torch versions that no longer exist for this Python.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "real" / "data"
PACKAGES_HOME = ROOT / ".tools" / "real"
RESEARCH_HOME = ROOT / ".tools" / "real2"
# torchvision's CUDA wheel is the only one of this version: it asks for a torch that is not the CPU build.
WITHOUT_DEPENDENCIES = {"torchvision"}


def requirements(path: Path) -> list[str]:
    """The pinned requirements of a list file, without comments."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def pip(python: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(command[2:])} failed:\n{done.stderr.strip()[-2000:]}")
    return done


def venv_python(home: Path) -> Path:
    return home / "venv" / "bin" / "python"


def site_packages(home: Path) -> Path:
    return Path(sysconfig.get_path("purelib", vars={"base": str(home / "venv")}))


def make_environment(home: Path, *beside: Path) -> Path:
    """A virtual environment that also sees this interpreter's site-packages and those in `beside`."""
    python = venv_python(home)
    if not python.exists():
        home.mkdir(parents=True, exist_ok=True)
        venv.create(home / "venv", with_pip=True)
    pure = site_packages(home)
    seen = [sysconfig.get_path("purelib"), *(str(path) for path in beside)]
    (pure / "project.pth").write_text("\n".join(seen) + "\n")
    return python


def install_packages() -> None:
    """Install packages.txt into .tools/real/venv; does nothing when the list is unchanged."""
    listed = requirements(DATA / "packages.txt")
    stamp = PACKAGES_HOME / "installed.stamp"
    digest = hashlib.sha256("\n".join([*listed, sys.version, "with sources"]).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    python = make_environment(PACKAGES_HOME)
    alone = [item for item in listed if item.split("==")[0] in WITHOUT_DEPENDENCIES]
    rest = [item for item in listed if item not in alone]
    torch_version = subprocess.run(
        [str(python), "-c", "from importlib.metadata import version; print(version('torch'))"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    if not torch_version:
        sys.exit(f"torch is not installed in {sys.prefix}: run `make setup` first")
    constraints = PACKAGES_HOME / "constraints.txt"
    constraints.write_text(f"torch=={torch_version}\n")
    # Python compiles the few modules that get imported; all of them would take as long as installing them.
    print("installing without dependencies:", *alone, flush=True)
    pip(python, "install", "-q", "--no-compile", "--no-deps", *alone)
    print("installing:", *rest, flush=True)
    pip(python, "install", "-q", "--no-compile", "-c", str(constraints), *rest)
    for item in listed:
        copy_sources(site_packages(PACKAGES_HOME), distribution_name(item))
    stamp.write_text(digest)


def copy_sources(site: Path, distribution: str) -> None:
    """Copy a distribution's Python files to .tools/real/src/NAME: `check` passes over installed libraries."""
    target = PACKAGES_HOME / "src" / distribution
    shutil.rmtree(target, ignore_errors=True)
    found = dist_info(site, distribution)
    for file in metadata.Distribution.at(found).files or []:
        if file.suffix == ".py" and ".." not in file.parts and file.parts[0] not in {"test", "tests", "docs"}:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.parent / file, target / file)


def dist_info(site: Path, distribution: str) -> Path:
    """The distribution's metadata; pip installs nothing that the project's own environment already has."""
    name = re.sub(r"[-_.]+", "_", distribution).lower()
    places = [site, Path(sysconfig.get_path("purelib"))]
    for folder in (folder for place in places for folder in place.glob("*.dist-info")):
        if re.sub(r"[-_.]+", "_", folder.name.split("-")[0]).lower() == name:
            return folder
    sys.exit(f"{distribution} was installed, but has no metadata in {' or '.join(map(str, places))}")


def distribution_name(requirement: str) -> str:
    return re.split(r"[=<>!~\[ ]", requirement)[0]


def unpack(archive: Path, target: Path) -> None:
    """Unpack a wheel or a source distribution's packages into `target`."""
    if archive.suffix == ".whl" or archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
    else:
        with tarfile.open(archive) as source:
            source.extractall(target, filter="data")
    children = list(target.iterdir())
    if archive.suffix != ".whl" and len(children) == 1 and children[0].is_dir():
        # A source distribution wraps its project folder: what is inside (or below src/) is what is imported.
        inner = children[0] / "src" if any((children[0] / "src").glob("*/__init__.py")) else children[0]
        for child in inner.iterdir():
            shutil.move(str(child), str(target / child.name))
        shutil.rmtree(children[0], ignore_errors=True)


def install_research() -> None:
    """Unpack each package of research.txt below .tools/real2/src; name what cannot be had."""
    sources = RESEARCH_HOME / "src"
    sources.mkdir(parents=True, exist_ok=True)
    install_packages()
    python = make_environment(RESEARCH_HOME, site_packages(PACKAGES_HOME))
    failed: list[str] = []
    light = requirements(DATA / "research-dependencies.txt")
    done = RESEARCH_HOME / "dependencies.stamp"
    digest = hashlib.sha256("\n".join(light).encode()).hexdigest()
    if not (done.exists() and done.read_text() == digest):
        for requirement in light:
            if pip(python, "install", "-q", "--no-deps", requirement, check=False).returncode:
                failed.append(requirement)
        done.write_text(digest)
    for requirement in requirements(DATA / "research.txt"):
        target = sources / distribution_name(requirement)
        if target.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            got = pip(
                python,
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":none:",
                "-d",
                folder,
                requirement,
                check=False,
            )
            archives = list(Path(folder).iterdir())
            if got.returncode or not archives:
                # An old source distribution may need modules that are gone to build its metadata.
                got = pip(
                    python,
                    "download",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "-d",
                    folder,
                    requirement,
                    check=False,
                )
                archives = list(Path(folder).iterdir())
            if got.returncode or not archives:
                reason = (got.stderr.strip().splitlines() or ["no file"])[-1]
                failed.append(f"{requirement}: {reason}")
                continue
            partial = sources / f".{target.name}"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            unpack(archives[0], partial)
            partial.rename(target)
            print("unpacked", requirement, flush=True)
    for line in failed:
        print("not available:", line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["packages", "research"])
    install = {"packages": install_packages, "research": install_research}
    install[parser.parse_args().what]()


if __name__ == "__main__":
    main()
