"""The packages that tests/real scores, installed on demand, and how much of them one run takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def everything() -> bool:
    """Whether the run may take as long as it needs: `make real` says EXPORTLENS_REAL=all."""
    return os.environ.get("EXPORTLENS_REAL") == "all"


def install(what: str) -> None:
    # Two test processes of one run may ask at once; the second then finds it all there.
    (ROOT / ".tools").mkdir(exist_ok=True)
    with FileLock(ROOT / ".tools" / "real.lock"):
        done = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "install_real.py"), what], capture_output=True, text=True
        )
    if done.returncode:
        pytest.fail(
            f"scripts/install_real.py {what}: {done.stderr.strip() or done.stdout.strip()}", pytrace=False
        )


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with the sources of the pinned packages."""
    install("packages")
    return ROOT / ".tools" / "real" / "src"


@pytest.fixture(scope="session")
def research(everything: bool) -> Path:
    """The folder with the sources of the research packages; only the long run downloads them."""
    if not everything:
        pytest.skip("research packages are scored by `make real`")
    install("research")
    return ROOT / ".tools" / "real2" / "src"
