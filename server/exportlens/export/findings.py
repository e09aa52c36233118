"""From the worker's blame to findings on the user's lines."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

from exportlens.export.plain_words import explained, one_line
from exportlens.finding import Finding, Position, Range, Severity

LEFT_TO_CPU = "EXP007"
"""No failure: what a target does not take, shown as a hint."""
# code, name and words of each kind of runtime finding; `{target}` is filled for targets.
WORDS: dict[str, tuple[str, str, str]] = {
    "export": ("EXP001", "export-failed", "torch.export fails here"),
    "constraint": ("EXP002", "dynamic-range-broken", "the dynamic range asked for does not hold here"),
    "mismatch": ("EXP003", "differs-from-eager", "the exported program differs from eager here"),
    "run": ("EXP004", "program-raises", "the exported program raises where eager does not"),
    "lower": ("EXP005", "target-refuses", "{target} does not take this"),
    "target-run": ("EXP006", "artifact-differs", "what {target} runs is not what eager computes"),
    "target-load": ("EXP006", "artifact-differs", "what was saved for {target} cannot be loaded"),
    "left": (LEFT_TO_CPU, "left-to-cpu", "{target} leaves this to the CPU"),
    "eager": ("EXP008", "eager-fails", "eager itself fails here"),
    "import": ("EXP009", "model-unusable", "the model cannot be made"),
    "draft": ("EXP010", "export-would-fail", "draft export gets past this, torch.export will not"),
    "limit": ("EXP011", "export-interrupted", "the export was ended here"),
    "passed-over": ("EXP012", "call-fails", "this export call fails, and other inputs were taken"),
}


_SEVERITIES = {"left": Severity.INFORMATION, "passed-over": Severity.WARNING}


def runtime_codes() -> dict[str, str]:
    """Each runtime finding's code and its name."""
    return {code: name for code, name, _ in WORDS.values()}


def _source_line(file: str, line: int) -> str:
    linecache.checkcache(file)
    return linecache.getline(file, line)


def _code_points(text: str, byte_offset: int) -> int:
    return len(text.encode()[:byte_offset].decode(errors="ignore"))


def frame_range(frame: dict[str, Any]) -> Range:
    """The expression that the frame was at, where Python tells (3.11 on); else the line without its
    indentation.
    """
    line = max(int(frame.get("line") or 1), 1)
    text = _source_line(frame["file"], line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    end = max(len(text.rstrip()), start)
    if frame.get("byte_column") is not None and frame.get("byte_end") is not None:
        start, end = _code_points(text, frame["byte_column"]), _code_points(text, frame["byte_end"])
    return Range(Position(line - 1, start), Position(line - 1, end))


def blame_finding(
    key: str, blame: dict[str, Any], *, fallback: Path | None = None, target: str | None = None
) -> Finding | None:
    """The finding for one entry of a failure's blame; None where no file at all is known."""
    frame = blame.get("frame") or ({"file": str(fallback), "line": 1} if fallback else None)
    if frame is None or not Path(frame["file"]).is_file():
        if fallback is None:
            return None
        frame = {"file": str(fallback), "line": 1}
    if key == "export" and (blame.get("guard") or "Constraints violated" in blame.get("detail", "")):
        key = "constraint"
    code, name, _ = WORDS[key]
    place = frame_range(frame)
    data = {}
    if key in _TORCHS_WORDS or key == "eager":
        data["torch"] = str(blame.get("detail") or blame.get("message") or blame.get("type") or "")
    for field in ("type", "gb", "gb_type", "guard", "operation", "suggested_fixes", "values", "whole"):
        if blame.get(field):
            data[field] = str(blame[field])
    if target:
        data["target"] = target
    notes = []
    if blame.get("operation"):
        notes.append(f"The first operation that differs: {one_line(blame['operation'])}.")
    if blame.get("values"):
        notes.append(f"Values here: {blame['values']}.")
    if blame.get("suggested_fixes"):
        notes.append(f"torch suggests: {one_line(blame['suggested_fixes'])}")
    return Finding(
        code=code,
        name=name,
        severity=_SEVERITIES.get(key, Severity.ERROR),
        message=_message(
            key,
            blame,
            "" if blame.get("whole") else _quoted(frame, place),
            target,
            _is_operator(frame, place),
        ),
        path=Path(frame["file"]),
        range=place,
        notes=tuple(notes),
        url=blame.get("url"),
        data=data,
    )


_TORCHS_WORDS = frozenset({"export", "constraint", "draft", "run", "lower"})
"""Kinds whose message is torch's (or a target's) own: the rest is said by the worker, or by the user's code."""


def _message(key: str, blame: dict[str, Any], value: str, target: str | None, operator: bool) -> str:
    """What is wrong, on which value, what to do, in a line or two; torch's own words are among the data."""
    opening = WORDS[key][2].format(target=target)
    if value and key in ("export", "lower", "eager"):
        opening = f"{opening.removesuffix(' this').removesuffix(' here')} {_PREPOSITION[key]}{value}"
    said = one_line(blame.get("message") or blame.get("type") or "")
    step = blame.get("advice") or ""
    if blame.get("guard"):
        said = f"this line needs {blame['guard']}, which some sizes in the range break"
        step = step or "Narrow the Dim, or change what restricts it here"
    elif key in _TORCHS_WORDS:
        known = explained(said, str(blame.get("gb_type", "")), operator=operator)
        if known is not None:
            said, step = known.what, step or known.step
    words = f"{opening}: {said}" if said else opening
    return f"{words.rstrip('.')}. {step.rstrip('.')}." if step else words


_PREPOSITION = {"export": "at ", "eager": "at ", "lower": ""}
_LONGEST_QUOTE = 60


def _quoted(frame: dict[str, Any], place: Range) -> str:
    """What stands at the place in backticks, where it is short: the expression, or the line."""
    if place.start.line != place.end.line:
        return ""
    text = _source_line(frame["file"], place.start.line + 1)[place.start.column : place.end.column].partition(
        "#"
    )[0]
    text = text.strip().rstrip(":")
    return f"`{text}`" if 0 < len(text) <= _LONGEST_QUOTE and "`" not in text else ""


_DECIDES = re.compile(r"\b(?:if|elif|while|assert|and|or|not|bool)\b")


def _is_operator(frame: dict[str, Any], place: Range) -> bool:
    """Whether what stands at the place is one call, on a line with nothing that decides."""
    text = _source_line(frame["file"], place.start.line + 1)
    return (
        place.start.line == place.end.line
        and text[: place.end.column].endswith(")")
        and not _DECIDES.search(text)
    )


def left_findings(target: str, left: list[dict[str, Any]]) -> list[Finding]:
    """One hint per source line that a target leaves to the CPU, with the operators of that line."""
    by_line: dict[tuple[str, int], tuple[dict[str, Any], list[str]]] = {}
    for node in left:
        frame = node.get("frame")
        if frame:
            entry = by_line.setdefault((frame["file"], frame["line"]), (frame, []))
            if node["op"] not in entry[1]:
                entry[1].append(node["op"])
    found = (
        blame_finding("left", {"frame": frame, "message": ", ".join(operators)}, target=target)
        for frame, operators in by_line.values()
    )
    return [finding for finding in found if finding is not None]
