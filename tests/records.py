"""What torch did with texts of the tests, kept beside them: the torch of the tests is pinned, so what has not changed ends as it did
then. `make test` asks torch for what is new and for a sample of the rest, `make pairs` for all of it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

import torch

# All is asked of torch: `make pairs`.
ALL = bool(os.environ.get("EXPORTLENS_ALL_PAIRS"))


def fingerprint(*texts: str) -> str:
    """Of `texts`, and of the torch and the Python that run them."""
    versions = [torch.__version__.partition("+")[0], ".".join(platform.python_version_tuple()[:2])]
    return hashlib.sha256("\n".join([*versions, *texts]).encode()).hexdigest()[:16]


def read(file: Path) -> dict[str, str]:
    """What is on record in `file`; nothing where all is asked."""
    if ALL or not file.exists():
        return {}
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return known


def write(file: Path, record: dict[str, str]) -> None:
    file.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n", encoding="utf-8")
