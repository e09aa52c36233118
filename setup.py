"""What pyproject.toml cannot say: with EXPORTLENS_COMPILE=1 the interpreter is compiled to C by mypyc.

`check` spends most of its time there. Without the variable the same sources are installed as they are, and no C compiler
is needed. `make wheel` builds and tests the compiled wheel.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

# What is compiled: the abstract interpreter, but for its tables of torch, which are read once.
COMPILED = "server/exportlens/inference"
COMPILE = os.environ.get("EXPORTLENS_COMPILE") == "1"


def extensions() -> list[Extension]:
    # Where pip asks what the build needs (`egg_info`), mypy is not there yet: it is the answer.
    if not COMPILE or "egg_info" in sys.argv:
        return []
    from mypyc.build import mypycify

    sources = sorted(str(path) for path in Path(COMPILED).glob("*.py") if path.name != "__init__.py")
    compiled: list[Extension] = mypycify(
        [*sources, "--config-file=", "--ignore-missing-imports"], opt_level="1", multi_file=True
    )
    return compiled


# pip brings in what stands here before it builds; it cannot depend on the variable in pyproject.toml.
setup(ext_modules=extensions(), setup_requires=["mypy"] if COMPILE else [])
