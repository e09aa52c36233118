"""What the names of a blamed line hold when eager gets there: shapes and dtypes, and plain values."""

from __future__ import annotations

import linecache
import os
import re
import sys
from types import CodeType, FrameType
from typing import Any

import torch

from exportlens.export.worker.blame import Frame
from exportlens.export.worker.cases import Case
from exportlens.export.worker.graph import value_text
from exportlens.export.worker.loading import Inputs, Subject, seed_all

MOST_NAMES = 6
LONGEST_SECONDS = 5.0
"""What eager may take to be run once more, traced, for the sake of a message."""
_NAME = re.compile(r"(?<![\w.])(?:self\.)?[A-Za-z_]\w*")


class _Seen(BaseException):
    """Ends eager's run once the line was reached."""


def values_at(subject: Subject, inputs: Inputs, frame: Frame | None, seconds: float) -> str:
    """`y: float32[2, 3], n: 7` for the names in the frame's line; empty where eager does not come to it.

    `seconds` is what eager takes for the example inputs.
    """
    if frame is None or seconds > LONGEST_SECONDS or sys.gettrace() is not None:
        return ""
    watcher = _Watcher(os.path.abspath(frame["file"]), int(frame["line"]))
    args, kwargs = Case("", inputs.args, inputs.kwargs, 0).inputs()
    try:
        model = subject.copy()
        seed_all(0)
        sys.settrace(watcher.called)
        with torch.no_grad():
            model(*args, **kwargs)
    except BaseException:  # reached, or ended as it did before: only what was seen counts
        pass
    finally:
        sys.settrace(None)
    return watcher.found


class _Watcher:
    """A trace function that looks at one line, and costs other files next to nothing."""

    def __init__(self, file: str, line: int) -> None:
        self._file, self._line = file, line
        self._text = linecache.getline(file, line)
        self._concerned: dict[CodeType, bool] = {}
        self.found = ""

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code not in self._concerned:
            same = os.path.abspath(code.co_filename) == self._file
            self._concerned[code] = same and any(line == self._line for *_, line in code.co_lines())
        return self._line_reached if self._concerned[code] else None

    def _line_reached(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno == self._line:
            self.found = self._describe(frame.f_locals)
            raise _Seen
        return self._line_reached

    def _describe(self, names: dict[str, Any]) -> str:
        said: dict[str, str] = {}
        for name in _NAME.findall(self._text.partition("#")[0]):
            owner, _, attribute = name.rpartition(".")
            value = _attribute(names.get("self"), attribute) if owner else names.get(name)
            if words := _words(value):
                said.setdefault(name, words)
        return ", ".join(f"{name}: {words}" for name, words in list(said.items())[:MOST_NAMES])


def _attribute(owner: Any, name: str) -> Any:
    """An attribute as it is stored: nothing of the user's runs to get it."""
    stored = getattr(owner, "__dict__", {})
    for place in (stored, stored.get("_buffers") or {}, stored.get("_parameters") or {}):
        if name in place:
            return place[name]
    return None


def _words(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return value_text(value)
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and len(value) <= 30:
        return repr(value)
    if (
        isinstance(value, (tuple, list))
        and value
        and all(isinstance(v, (torch.Tensor, int)) for v in value[:4])
    ):
        return value_text(value)
    return ""
