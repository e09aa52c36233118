"""What is asked of an export: the model, its inputs, the mode, the targets and the limits."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DEFAULT_TIMEOUT_SECONDS = 600.0
ALL_TARGETS = "all"
BOTH_MODES = "both"
FIRST_LAYERS, COMMON_SHAPES, ANNOTATIONS = "the first layers", "common shapes", "shape annotations"
"""Sources of proposals that no one states."""
GUESSES = frozenset({FIRST_LAYERS, COMMON_SHAPES})
"""Sources of inputs that are guessed: enough to propose, too little to run anything with unasked."""
CHANGEABLE = GUESSES | {ANNOTATIONS}
"""Sources of proposals that may be changed until they fit: what a project states of its own model is its word."""
MODES = ("strict", "non-strict", BOTH_MODES)


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """How to construct a model and call it, as Python expressions in the words of the model's own file.

    `init` is what stands in the constructor's parentheses, `inputs` a tuple of positional arguments,
    `kwargs` a dict,
    `dynamic_shapes` what `torch.export.export` takes. `source` says in words where they come from; `line` is that of the
    export call in the model's file that states them, from 1.
    """

    init: str | None = None
    inputs: str | None = None
    kwargs: str | None = None
    dynamic_shapes: str | None = None
    source: str = ""
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """One confirmation. `model` is `FILE.py:name` or `package.module:name`; `mode` None is the user's
    torch's default.

    What `given` leaves out is filled from `proposals`, tried in order. `timeout` (seconds) holds for the
    export and
    for each target by itself; `target_pythons` names other interpreters, with the same torch, for targets
    whose
    packages are not in the session's; `memory_limit` (bytes) for the worker's child with all that it starts.
    """

    model: str
    given: ModelInputs = ModelInputs()
    proposals: tuple[ModelInputs, ...] = ()
    mode: str | None = None
    targets: tuple[str, ...] = ("torch",)
    target_pythons: tuple[tuple[str, Path], ...] = ()
    output: Path | None = None
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    memory_limit: int | None = None
    train: bool = False
    wrap: bool = False
    draft: bool = False

    def __post_init__(self) -> None:
        if ":" not in self.model or not self.model.rpartition(":")[2]:
            raise ValueError(
                f"not a model: {self.model!r}; write it as FILE.py:Class or package.module:Class"
            )
        if self.mode is not None and self.mode not in MODES:
            raise ValueError(f"not a mode: {self.mode!r}; it is one of {', '.join(MODES)}")

    @property
    def place(self) -> str:
        return self.model.rpartition(":")[0]

    @property
    def name(self) -> str:
        return self.model.rpartition(":")[2]

    @property
    def file(self) -> Path | None:
        """The model's file as an absolute path: named, or that of a module which lies in this folder or in its `src`."""
        if self.place.endswith(".py"):
            return Path(self.place).absolute()
        parts = self.place.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        modules = [Path(start, *parts) for start in (".", "src")]
        files = [file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py")]
        return next((file.absolute() for file in files if file.is_file()), None)

    def modes(self, default: str) -> tuple[str, ...]:
        """The modes to trace in; `default` is what the user's torch does by itself."""
        if self.mode == BOTH_MODES:
            return ("strict", "non-strict")
        return (self.mode or default,)


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.I)


def parse_size(text: str) -> int:
    """Bytes in "8G", "512 MiB" or "1000000" (K, M, G, T are powers of 1024). Raises ValueError on anything
    else.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a size: {text!r}; write it as 8G or 512M")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
