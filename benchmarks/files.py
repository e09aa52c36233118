"""The files that everything is measured on: modeling files of the installed transformers."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def modeling_files(count: int) -> list[Path]:
    """`count` of transformers' modeling files, evenly spaced from the largest to the smallest.

    Raises FileNotFoundError where transformers is not installed.
    """
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("transformers is not installed here: make setup")
    every = sorted(
        Path(spec.origin).parent.glob("models/*/modeling_*.py"), key=lambda path: (-path.stat().st_size, path)
    )
    return [every[index * len(every) // count] for index in range(min(count, len(every)))]


def count_lines(files: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)
