"""An example's text as a whole file, and a running prover to put it to."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from exportlens.outcome import Mode
from exportlens.rule import Example

_HEAD = """import copy
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
"""


def whole_file(text: str) -> str:
    """The file that an example's text stands for: a bare `def forward` becomes the forward of a Module M."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    if text.startswith("def forward"):
        return _HEAD + textwrap.indent(text, "    ")
    return text


@dataclass(frozen=True, slots=True)
class Proof:
    """What torch did with one text in one mode: "ok", "fails", "differs" or "broken", and torch's words.

    `eager` holds the words of the eager run where that raised as well.
    """

    result: str
    detail: str
    eager: str = ""


class Prover:
    """A warm process of `interpreter` that proves examples one after the other. Use it in a `with` block.

    `torch` is its torch's version. Raises RuntimeError with the interpreter's words when torch cannot be
    imported.
    """

    def __init__(self, interpreter: Path) -> None:
        self._process = subprocess.Popen(
            [str(interpreter), str(Path(__file__).with_name("prover.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if os.environ.get("EXPORTLENS_PROVER_LOG") is None else None,
            text=True,
            encoding="utf-8",
            cwd="/",
        )
        first = self._out().readline()
        if not first:
            _, words = self._process.communicate()
            last = (words or "").strip().splitlines()[-1:] or ["it ended without a word"]
            raise RuntimeError(f"{interpreter} cannot prove examples: {last[0]}")
        self.torch: str = json.loads(first)["torch"]

    def prove(self, text: str, example: Example, kwargs: str = "{}") -> dict[Mode, Proof]:
        """What torch does with `text` on the inputs of `example` (and `kwargs`, an expression), by mode."""
        request = {
            "kwargs": kwargs,
            "text": whole_file(text),
            "inputs": example.inputs,
            "init": example.init,
            "dynamic_shapes": example.dynamic_shapes,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._out().readline())
        return {mode: Proof(**answer[mode.value]) for mode in Mode}

    def __enter__(self) -> Prover:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def _out(self) -> Any:
        return self._process.stdout
