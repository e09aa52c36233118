"""Brings in what a step of the Makefile needs: `python3 scripts/set_up.py python examples node ...`.

Only the standard library, so that it runs on a machine where nothing is installed yet. Each provision has a
stamp file that holds a hash of its inputs; when the stamp fits and the outputs are there, nothing runs. What does
not need one another is installed at the same time: most of it is waiting for downloads and disks.
"""

from __future__ import annotations

import argparse
import compileall
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
PYPROJECT = ROOT / "pyproject.toml"
TORCHVISION_OPERATORS = ROOT / "scripts" / "torchvision_operators.py"
BENCH_VENV = TOOLS / "bench"
WHEELS = ROOT / "dist"
# The wheel with the compiled interpreter, unpacked: on PYTHONPATH it stands before the sources that .venv uses.
COMPILED = TOOLS / "compiled"
NODE_HOME = TOOLS / "node24"
CODE_SERVER_HOME = TOOLS / "code-server"

TORCH_VERSION = "2.13.0"
NODE_VERSION = "24.21.0"
CODE_SERVER_VERSION = "4.139.1"
OLDEST_PYTHON = (3, 10)
OLDEST_NODE = 20


class SetUpError(Exception):
    """What is missing, and what to do about it; shown to the user as it stands."""


@dataclass(frozen=True)
class Provision:
    """One thing to bring in.

    `inputs` are files (hashed) or literal texts; `outputs` must exist for the stamp to count.
    """

    title: str
    inputs: tuple[Path | str, ...]
    outputs: tuple[Path, ...]
    install: Callable[[Log], None]
    needs: tuple[str, ...] = ()


_speaking = threading.Lock()


def say(line: str, end: str = "\n") -> None:
    """Print what is to stay, or, with another `end`, what the next line overwrites."""
    clear = "\r\033[K" if sys.stdout.isatty() else ""
    with _speaking:
        print(f"{clear}{line}", end=end, flush=True)


class Log:
    """Runs commands with their output in a file, and shows that something is going on."""

    def __init__(self, name: str) -> None:
        self.name = name
        folder = TOOLS / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.log"
        self.path.write_text("")
        self.on_terminal = sys.stdout.isatty()

    def run(
        self, *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None, advice: str = ""
    ) -> None:
        """Run `command`; raises SetUpError with the end of its output and `advice` when it fails."""
        words = [str(word) for word in command]
        with self.path.open("a") as log:
            log.write(f"$ {' '.join(words)}\n")
            log.flush()
            try:
                process = subprocess.Popen(
                    words,
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            except FileNotFoundError:
                raise SetUpError(f"`{words[0]}` is not installed. {advice}".rstrip()) from None
            self._watch(process)
        if process.returncode != 0:
            end = "\n".join("    " + line for line in self._lines()[-25:])
            raise SetUpError(
                f"`{' '.join(words)}` failed with exit code {process.returncode}:\n{end}\n"
                f"  The whole output is in {self.path}.{' ' + advice if advice else ''}"
            )

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        start = time.monotonic()
        next_report = 15.0
        while True:
            try:
                process.wait(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                elapsed = time.monotonic() - start
                told = f"    {elapsed:4.0f} s  {self.name}: {self._last_line()}"
                if self.on_terminal:
                    say(told[: shutil.get_terminal_size().columns - 2], end="")
                elif elapsed >= next_report:
                    say(told[:120])
                    next_report += 15.0
            except KeyboardInterrupt:
                process.terminate()
                raise
        if self.on_terminal:
            say("", end="")

    def _lines(self) -> list[str]:
        return self.path.read_text(errors="replace").splitlines()

    def _last_line(self) -> str:
        lines = [line.strip() for line in self._lines()[-5:] if line.strip()]
        return lines[-1] if lines else ""


# ---------------------------------------------------------------- Python


def install_python(log: Log) -> None:
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        raise SetUpError(
            f"Python {platform.python_version()} is too old: ExportLens needs {wanted} or newer. "
            "Name another one: make PYTHON=python3.11 ..."
        )
    create_venv(VENV, log)
    # PEP 735 groups need pip 25.1, and the pip inside a new environment is as old as its Python.
    pip(log, VENV, "--upgrade", "pip>=25.1")
    if installed_version(VENV, "torch").partition("+")[0] != TORCH_VERSION:
        install_torch(log)
    pip(log, VENV, "--editable", ".", "--group", "dev")
    keep_compiled(log, FIRST_EXPORT)


def install_torch(log: Log) -> None:
    """The CPU build where the configured indexes have it; PyPI's own Linux build brings gigabytes of CUDA."""
    try:
        pip(log, VENV, f"torch=={TORCH_VERSION}+cpu")
    except SetUpError:
        if sys.platform == "linux":
            say(
                f"    no CPU build torch=={TORCH_VERSION}+cpu on the configured package indexes: taking the\n"
                "    default build, which brings CUDA. PIP_EXTRA_INDEX_URL can name an index that has it."
            )
        pip(log, VENV, f"torch=={TORCH_VERSION}")


# Brings in nearly all modules that any export brings in.
FIRST_EXPORT = """
import torch, torch._inductor.compile_fx, torch._inductor.codegen.cpp_wrapper_cpu
model, rows = torch.nn.Linear(4, 4), {"input": {0: torch.export.Dim("rows")}}
for strict in (False, True):
    program = torch.export.export(model, (torch.randn(2, 4),), dynamic_shapes=rows, strict=strict)
program.run_decompositions()
"""


def keep_compiled(log: Log, code: str) -> None:
    """Run `code` so that Python keeps what it compiles of the modules that `code` imports.

    Processes that keep nothing (the worker; all, where PYTHONDONTWRITEBYTECODE is set) compile all of torch
    anew otherwise: 12 s for an import that takes 5 s.
    """
    log.run(VENV / "bin" / "python", "-c", code, env={"PYTHONDONTWRITEBYTECODE": ""})


def install_examples(log: Log) -> None:
    pip(log, VENV, "--group", "examples")
    python = VENV / "bin" / "python"
    attempt = subprocess.run(
        [python, "-c", "import torchvision"], capture_output=True, text=True, check=False
    )
    if "torchvision::nms does not exist" in attempt.stderr:
        site = next(VENV.glob("lib/python*/site-packages"))
        shutil.copy(TORCHVISION_OPERATORS, site)
        (site / "torchvision_operators.pth").write_text("import torchvision_operators\n")
    keep_compiled(log, "import torchvision.models; from transformers import WhisperForConditionalGeneration")


def install_bench(log: Log) -> None:
    # TorchFix pins an older libcst than ours: it gets an environment of its own.
    create_venv(BENCH_VENV, log)
    pip(log, BENCH_VENV, "--upgrade", "pip>=25.1")
    pip(log, BENCH_VENV, "--group", "bench")


def build_wheel(log: Log) -> None:
    python = VENV / "bin" / "python"
    # What an earlier build copied would stay in the wheel, be its source gone or not.
    for old in (ROOT / "build", COMPILED, *WHEELS.glob("exportlens-*.whl")):
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    log.run(
        python,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        WHEELS,
        ".",
        env={"EXPORTLENS_COMPILE": "1"},
    )
    [wheel] = WHEELS.glob("exportlens-*.whl")
    log.run(python, "-m", "pip", "install", "--no-deps", "--no-index", "--target", COMPILED, wheel)


def create_venv(folder: Path, log: Log) -> None:
    if (folder / "bin" / "python").exists() and (folder / "bin" / "pip").exists():
        return
    try:
        import ensurepip  # noqa: F401  (Debian ships venv without it unless python3-venv is installed)
    except ImportError:
        apt_install(log, "python3-venv", "the standard library's venv")
    log.run(sys.executable, "-m", "venv", folder)


def pip(log: Log, venv: Path, *arguments: str) -> None:
    log.run(
        venv / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        # All modules would take half the installation: `keep_compiled` is for those that are imported.
        "--no-compile",
        *arguments,
        advice="Is the package index reachable? (`pip config list` shows which one is used.)",
    )


def installed_version(venv: Path, distribution: str) -> str:
    """The version of `distribution` in `venv`, or an empty string."""
    for metadata in venv.glob(f"lib/python*/site-packages/{distribution}-*.dist-info"):
        return metadata.name.removeprefix(f"{distribution}-").removesuffix(".dist-info")
    return ""


# ---------------------------------------------------------------- Node, VS Code, Chromium


def install_node(log: Log) -> None:
    """Node 24 as a package of the npm registry: code-server does not start on older ones."""
    require_npm()
    if sys.platform != "linux":
        raise SetUpError("The editor tests run on Linux only (code-server with Debian's Chromium).")
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if machine is None:
        raise SetUpError(f"No Node {NODE_VERSION} package is known for a {platform.machine()} machine.")
    package = f"node-linux-{machine}"
    npm(log, "install", "--prefix", NODE_HOME, "--no-save", "--no-package-lock", f"{package}@{NODE_VERSION}")
    link = NODE_HOME / "bin"
    if not link.exists():
        link.symlink_to(Path("node_modules") / package / "bin")


def install_code_server(log: Log) -> None:
    """code-server is VS Code with a server. Without install scripts, which would compile native parts."""
    node_first = {"PATH": f"{NODE_HOME / 'bin'}:{os.environ['PATH']}"}
    CODE_SERVER_HOME.mkdir(parents=True, exist_ok=True)
    npm(
        log,
        *("install", "--prefix", CODE_SERVER_HOME, "--ignore-scripts", "--no-save", "--no-package-lock"),
        f"code-server@{CODE_SERVER_VERSION}",
        env=node_first,
    )
    vscode = CODE_SERVER_HOME / "node_modules" / "code-server" / "lib" / "vscode"
    for folder in (vscode, vscode / "extensions"):
        npm(log, "install", "--omit=dev", "--ignore-scripts", cwd=folder, env=node_first)


def install_extension(log: Log) -> None:
    require_npm()
    npm(log, "ci", "--ignore-scripts")
    # The bundler's and others' binaries are optional dependencies: no install script is needed to have them.


def install_chromium(log: Log) -> None:
    if shutil.which("chromium") is None:
        apt_install(log, "chromium", "a browser for the editor tests")


def install_compiler(log: Log) -> None:
    """AOTInductor compiles C++."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        apt_install(log, "g++", "a C++ compiler for the target aoti-cpu")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        apt_install(log, "python3-dev", "Python's C headers for the target aoti-cpu")


def npm(log: Log, *arguments: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    log.run(
        "npm",
        *arguments,
        "--no-audit",
        "--no-fund",
        cwd=cwd,
        env=env,
        advice="Is the package registry reachable? (`npm config get registry` shows which one is used.)",
    )


def require_npm() -> None:
    node, npm_path = shutil.which("node"), shutil.which("npm")
    if node is None or npm_path is None:
        missing = "node" if node is None else "npm"
        raise SetUpError(
            f"`{missing}` is not installed: the extension needs Node {OLDEST_NODE} or newer with npm."
        )
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if int(version.lstrip("v").split(".")[0] or 0) < OLDEST_NODE:
        raise SetUpError(f"Node {version} is too old: the extension needs Node {OLDEST_NODE} or newer.")


_installing_packages = threading.Lock()  # apt takes one at a time, and fails rather than wait


def apt_install(log: Log, package: str, purpose: str) -> None:
    """Install a Debian package, or say how: only root on a Debian can."""
    command = f"apt-get install {package}"
    if shutil.which("apt-get") is None:
        raise SetUpError(f"{purpose} is missing, and this is no Debian: install `{package}` yourself.")
    if os.geteuid() != 0:
        raise SetUpError(f"{purpose} is missing, and only root can install it: sudo {command}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with _installing_packages:
        log.run("apt-get", "update", env=quiet)
        log.run("apt-get", "install", "--yes", "--no-install-recommends", package, env=quiet)


# ---------------------------------------------------------------- what there is

PROVISIONS: dict[str, Provision] = {
    "python": Provision(
        title="the virtual environment .venv: ExportLens, torch (CPU), the tools of development",
        inputs=(PYPROJECT, TORCH_VERSION),
        outputs=(VENV / "bin" / "exportlens", VENV / "bin" / "pytest"),
        install=install_python,
    ),
    "compiler": Provision(
        title="a C++ compiler",
        inputs=(),
        outputs=(),
        install=install_compiler,
    ),
    "examples": Provision(
        title="the libraries that examples/ use: torchvision, transformers",
        inputs=(PYPROJECT, TORCHVISION_OPERATORS),
        outputs=(VENV / "bin" / "exportlens",),
        install=install_examples,
        needs=("python",),
    ),
    "bench": Provision(
        title="what the benchmark compares with: TorchFix, in an environment of its own",
        inputs=(PYPROJECT,),
        outputs=(BENCH_VENV / "bin" / "torchfix",),
        install=install_bench,
        needs=("examples",),
    ),
    "wheel": Provision(
        title="the wheel whose interpreter is compiled by mypyc",
        inputs=(
            PYPROJECT,
            ROOT / "setup.py",
            *sorted(path for folder in ("server", "rules") for path in (ROOT / folder).rglob("*.py")),
        ),
        outputs=(COMPILED / "exportlens",),
        install=build_wheel,
        needs=("python", "compiler"),
    ),
    "node": Provision(
        title=f"Node {NODE_VERSION} for the editor tests",
        inputs=(NODE_VERSION,),
        outputs=(NODE_HOME / "bin" / "node",),
        install=install_node,
    ),
    "extension": Provision(
        title="the extension's npm packages",
        inputs=(ROOT / "package.json", ROOT / "package-lock.json"),
        outputs=(ROOT / "node_modules" / ".package-lock.json",),
        install=install_extension,
    ),
    "code-server": Provision(
        title=f"VS Code as a server (code-server {CODE_SERVER_VERSION}, about 620 MB)",
        inputs=(CODE_SERVER_VERSION, NODE_VERSION),
        outputs=(CODE_SERVER_HOME / "node_modules" / "code-server" / "out" / "node" / "entry.js",),
        install=install_code_server,
        needs=("node",),
    ),
    "chromium": Provision(
        title="Chromium for the editor tests",
        inputs=(),
        outputs=(Path("/usr/bin/chromium"),),
        install=install_chromium,
    ),
}


def with_needs(names: Sequence[str]) -> list[str]:
    """The provisions in an order in which each comes after what it needs."""
    ordered: list[str] = []

    def add(name: str) -> None:
        for need in PROVISIONS[name].needs:
            add(need)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def fingerprint(provision: Provision) -> str:
    digest = hashlib.sha256(str(ROOT).encode())  # a virtual environment does not survive being moved
    digest.update(sys.version.encode())
    for entry in provision.inputs:
        if isinstance(entry, Path):
            if not entry.exists():
                raise SetUpError(f"{entry.relative_to(ROOT)} is missing from this checkout.")
            digest.update(entry.read_bytes())
        else:
            digest.update(entry.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def is_current(stamp: Path, provision: Provision, wanted: str) -> bool:
    try:
        found = json.loads(stamp.read_text())["inputs"]
    except (OSError, ValueError, KeyError):
        return False
    return found == wanted and all(output.exists() for output in provision.outputs)


def provide(name: str) -> None:
    provision = PROVISIONS[name]
    stamp = TOOLS / "stamps" / f"{name}.json"
    wanted = fingerprint(provision)
    if is_current(stamp, provision, wanted):
        return
    say(f"==> {provision.title}")
    start = time.monotonic()
    provision.install(Log(name))
    missing = [str(output) for output in provision.outputs if not output.exists()]
    if missing:
        raise SetUpError(f"installed without an error, but {', '.join(missing)} is not there")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps({"inputs": wanted}))
    say(f"    {name}: done in {time.monotonic() - start:.0f} s")


def provide_all(names: Sequence[str]) -> list[str]:
    """Bring in `names`, in the order of `with_needs`, each as soon as what it needs is there; what went wrong."""
    problems: list[str] = []
    running: dict[str, concurrent.futures.Future[bool]] = {}

    def work(name: str) -> bool:
        if not all(running[need].result() for need in PROVISIONS[name].needs):
            return False
        try:
            provide(name)
        except SetUpError as error:
            problems.append(f"set-up of {name}: {error}")
            return False
        return True

    # A thread for each, as one that waits for what it needs holds its own.
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            running[name] = pool.submit(work, name)
    for future in running.values():
        future.result()
    return problems


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Two set-ups at once would write into the same environment: the second one waits."""
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "set-up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another set-up is running in this checkout: waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    choices = "\n".join(f"{name}: {provision.title}" for name, provision in PROVISIONS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = choices
    parser.add_argument("names", nargs="+", choices=list(PROVISIONS), metavar="NAME")
    names = parser.parse_args().names
    try:
        with only_one():
            problems = provide_all(with_needs(names))
            for folder in ("server", "rules"):
                compileall.compile_dir(ROOT / folder, quiet=2)
        for problem in problems:
            print(problem, file=sys.stderr)
        if problems:
            return 2
    except KeyboardInterrupt:
        print(
            "\nset-up stopped; what is installed stays, and the next run goes on from there", file=sys.stderr
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
