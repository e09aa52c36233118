"""From an exception to the user's line: which frame of which traceback is at fault, in torch's own words."""

from __future__ import annotations

import itertools
import logging
import operator
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_SITE = tuple({sysconfig.get_paths()[key] + os.sep for key in ("purelib", "platlib")})

Frame = dict[str, Any]


class Owner:
    """Tells the user's files from torch's, Python's and the worker's. `home` is the model's own folder
    tree.
    """

    def __init__(self, homes: list[str]) -> None:
        self._homes = tuple(os.path.abspath(home) + os.sep for home in homes)

    def is_users(self, file: str) -> bool:
        """Whether `file` belongs to the model's project (or to the package that the model comes from)."""
        path = os.path.abspath(file)
        if file.startswith("<") or path.startswith((_TORCH, _OURS)):
            return False
        if not path.startswith(self._homes):
            return False
        return not path.startswith((*_SITE, _STDLIB)) or any(
            home.startswith((*_SITE, _STDLIB)) and path.startswith(home) for home in self._homes
        )

    def is_foreign(self, file: str) -> bool:
        """Whether `file` is code that is neither torch's nor Python's own nor ours: a third-party package,
        say.
        """
        path = os.path.abspath(file)
        if file.startswith("<") or path.startswith((_TORCH, _OURS)):
            return False
        return path.startswith(_SITE) or not path.startswith(_STDLIB)

    def best(self, frames: list[Frame]) -> Frame | None:
        """The innermost frame of the user; else the innermost of a third party; else none."""
        for accept in (self.is_users, self.is_foreign):
            for frame in reversed(frames):
                if accept(frame["file"]):
                    return frame
        return None


def _summary(frame: traceback.FrameSummary) -> Frame:
    found: Frame = {"file": frame.filename, "line": frame.lineno or 1, "function": frame.name}
    column, end_line, end = (getattr(frame, key, None) for key in ("colno", "end_lineno", "end_colno"))
    if column is not None and end is not None and end_line == frame.lineno:
        found.update({"byte_column": column, "byte_end": end})
    return found


def traceback_frames(trace: TracebackType | None) -> list[Frame]:
    return [_summary(frame) for frame in traceback.extract_tb(trace)]


def stack_frames(frame: FrameType | None) -> list[Frame]:
    """The live stack, outermost first."""
    return [_summary(item) for item in traceback.extract_stack(frame)]


_STACK_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def text_frames(text: str | None) -> list[Frame]:
    """Frames of a node's `stack_trace` text, outermost first."""
    return [{"file": f, "line": int(n), "function": name} for f, n, name in _STACK_LINE.findall(text or "")]


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, outermost first."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


def user_frame(error: BaseException, owner: Owner) -> Frame | None:
    """The user's frame at fault: strict errors carry their own stacks, non-strict ones are Python
    tracebacks.
    """
    candidates: list[Frame] = []
    for link in _chain(error):
        stack = getattr(link, "real_stack", None)
        if stack:
            candidates.append(owner.best([_summary(frame) for frame in stack]) or {})
        inner = getattr(link, "innermost_user_frame_summary", None)
        if inner is not None:
            candidates.append(owner.best([_summary(inner)]) or {})
        candidates.append(owner.best(traceback_frames(link.__traceback__)) or {})
        if isinstance(link, SyntaxError) and link.filename:
            candidates.append({"file": link.filename, "line": link.lineno or 1, "function": "<module>"})
    for accept in (owner.is_users, owner.is_foreign):
        for frame in candidates:
            if frame and accept(frame["file"]):
                return frame
    return None


_PAGE = re.compile(r"https://\S+/gb/(gb\d+)\.html")
_HINT_TAIL = re.compile(r"\n*The error above occurred when calling torch\.export\.export\..*", re.S)
_STACK_TAIL = re.compile(r"\n*from user code:.*|\n*Set TORCHDYNAMO_VERBOSE.*", re.S)


def describe(error: BaseException, owner: Owner) -> dict[str, Any]:
    """What is known about a failure: torch's words, its graph-break code and page, the user's frame,
    suggestions.
    """
    words = str(error)
    found: dict[str, Any] = {
        "type": type(error).__name__,
        "detail": words,
        "message": first_sentences(words) or type(error).__name__,
        "frame": user_frame(error, owner),
    }
    page = _PAGE.search(words)
    if page:
        found.update({"gb": page[1].upper(), "url": page[0]})
    kind = getattr(error, "gb_type", None)
    if kind:
        found["gb_type"] = str(kind)
    suggested = re.search(r"Suggested fixes:\n((?:[ \t]+.+\n?)+)", words)
    if suggested:
        found["suggested_fixes"] = "\n".join(
            line.strip() for line in suggested[1].splitlines() if line.strip()
        )
    return found


def first_sentences(words: str) -> str:
    """The message without torch's boilerplate: what is wrong and why, no stacks, hints or closing advice."""
    words = _HINT_TAIL.sub("", _STACK_TAIL.sub("", words)).strip()
    paragraph = words.split("\n\n")[0].strip()
    lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
    if len(lines) > 1 and lines[1].startswith("Explanation: "):
        lines = [f"{lines[0]}: {lines[1].removeprefix('Explanation: ')}"]
    if lines and lines[0].startswith("Constraints violated"):
        lines = [lines[0].partition("!")[0]]
    return " ".join(lines[:6])


_SYMBOL = re.compile(r"create_symbol (\w+) = (\d+) for (.+?) \[(-?\w+), (-?\w+)\]")
_SIZE = re.compile(r"(?P<path>L\['\w+'\](?:\[[^\]]+\])*)\.size\(\)\[(?P<dim>\d+)\]")
_GUARD_WORDS: dict[str, Any] = {
    "Eq": operator.eq, "Ne": operator.ne, "Mod": operator.mod, "PythonMod": operator.mod,
    "Max": max, "Min": min,
    "FloorDiv": operator.floordiv, "And": lambda *a: all(a), "Or": lambda *a: any(a), "Not": operator.not_,
}  # fmt: skip


class GuardLog(logging.Handler):
    """Where each guard on a dynamic dim was made: constraint violations name no line.

    Reads the records of torch.fx.experimental.symbolic_shapes; the place is the user's frame on the live
    stack
    (non-strict), or in dynamo's own tracing stack (strict).
    """

    def __init__(self, owner: Owner, names: list[str]) -> None:
        super().__init__(logging.INFO)
        self._owner = owner
        self._names = names
        self.places: list[tuple[str, Frame]] = []
        self._samples: dict[str, list[int]] = {}
        self._sources: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        symbol = _SYMBOL.search(text)
        if symbol:
            hint, low = int(symbol[2]), int(symbol[4]) if symbol[4].isdigit() else 0
            high = int(symbol[5]) if symbol[5].isdigit() else 4 * hint + 7
            near = [*range(low, min(low + 40, high)), hint - 1, hint + 1, high]
            source = _SIZE.fullmatch(symbol[3])
            if source:
                self._sources[symbol[1]] = f"{self._input(source['path'])}.shape[{source['dim']}]"
            self._samples[symbol[1]] = [size for size in near if low <= size <= high]
        if "[guard added]" not in text or "[guard suppressed]" in text:
            return
        guard = text.partition("eval ")[2].partition(" [guard added]")[0].strip()
        frame = _dynamo_frame(self._owner) or self._owner.best(
            [item for item in stack_frames(sys._getframe()) if self._owner.is_users(item["file"])]
        )
        if frame:
            self.places.append((guard, frame))

    def _input(self, path: str) -> str:
        """The input that a source of torch's stands for: `L['x'][0]`, or `L['flat_args'][2]` in strict mode."""
        name, rest = re.fullmatch(r"L\['(\w+)'\](.*)", path).groups()  # type: ignore[union-attr]
        index = re.fullmatch(r"\[(\d+)\]", rest) if name == "flat_args" else None
        if index and int(index[1]) < len(self._names):
            return self._names[int(index[1])]
        return f"{name}{rest}"

    def _can_fail(self, guard: str) -> bool:
        """Whether some size in its symbols' ranges breaks the guard (sampled); true where it cannot be
        evaluated.
        """
        names = [name for name in self._samples if re.search(rf"\b{name}\b", guard)]
        for sizes in itertools.islice(itertools.product(*(self._samples[name] for name in names)), 2000):
            try:
                known = dict(zip(names, sizes, strict=True))
                if not eval(guard, {"__builtins__": {}, **_GUARD_WORDS}, known):
                    return True
            except Exception:
                return True
        return False

    def violating(self) -> list[tuple[str, Frame]]:
        """The guards that the asked ranges break, with their places, one per line of the user's, in order."""
        found: dict[tuple[str, int], tuple[str, Frame]] = {}
        for guard, frame in self.places:
            key = (frame["file"], frame["line"])
            if key not in found and self._can_fail(guard):
                found[key] = (self._readable(guard), frame)
        return list(found.values())

    def _readable(self, guard: str) -> str:
        """The guard with the input's name in place of torch's symbol."""
        for symbol, source in self._sources.items():
            guard = re.sub(rf"\b{symbol}\b", source, guard)
        for word, sign in (("Eq", "=="), ("Ne", "!=")):
            guard = re.sub(rf"^{word}\(([^,]+), ([^,]+)\)$", rf"\1 {sign} \2", guard)
        return guard


@contextmanager
def guard_log(owner: Owner, names: list[str]) -> Iterator[GuardLog]:
    """Listen to torch's guard records while the block runs; torch's own logging is as before afterwards.

    `names` are those of the inputs' leaves, in their order.
    """
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    listener = GuardLog(owner, names)
    level, spread, handlers = logger.level, logger.propagate, list(logger.handlers)
    logger.handlers[:] = [listener]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield listener
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = spread


def _dynamo_frame(owner: Owner) -> Frame | None:
    """The user's line that dynamo is tracing right now, if it is."""
    try:
        from torch._guards import TracingContext

        stack = TracingContext.extract_stack()
    except Exception:
        return None
    frame = owner.best([_summary(item) for item in stack])
    return frame if frame and owner.is_users(frame["file"]) else None


def violated_guards(message: str) -> int:
    """How many guards a constraint violation lists (0: it is none)."""
    if "Constraints violated" not in message and "were specialized" not in message:
        return 0
    return max(1, len(re.findall(r"^\s+- ", message, re.M)))


def node_frame(node: Any, owner: Owner) -> Frame | None:
    """The user's line that a graph node came from, by its `stack_trace` (kept by decomposition and .pt2
    files).
    """
    frames = text_frames(node.meta.get("stack_trace"))
    return owner.best(frames)
