"""Comments that silence findings: `# exportlens: ignore[CODE]`, `# noqa: CODE` and their kin."""

from __future__ import annotations

import re
from dataclasses import dataclass

from exportlens.finding import Finding
from exportlens.source.lexing import comments

_MENTIONED = re.compile(r"exportlens\s*:|noqa", re.IGNORECASE)
_FILE = re.compile(r"#\s*exportlens\s*:\s*ignore-file\b", re.IGNORECASE)
_OWN = re.compile(r"#\s*exportlens\s*:\s*ignore(?![-\w])\s*(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)
_NOQA = re.compile(
    r"#\s*noqa(?![-\w])"
    r"(?P<colon>\s*:\s*(?P<codes>[A-Za-z][A-Za-z0-9-]*(?:[\s,]+[A-Z]+[0-9]+)*(?:\s*,\s*[a-z][a-z-]+)*)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Codes, code prefixes or rule names that are silenced on the lines `first_line` to `line`; None silences
    all.
    """

    first_line: int
    line: int
    codes: tuple[str, ...] | None

    def covers(self, finding: Finding) -> bool:
        """Whether `finding` begins or ends on these lines and is meant."""
        start, end = finding.range.start.line, finding.range.end.line
        if not (self.first_line <= start <= self.line or self.first_line <= end <= self.line):
            return False
        return self.codes is None or any(names(code, finding.code, finding.name) for code in self.codes)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All suppressions of one document."""

    whole_file: bool = False
    each: tuple[Suppression, ...] = ()

    @classmethod
    def read(cls, text: str) -> Suppressions:
        """The suppressions among the comments of `text`; strings that contain the same words are none."""
        if not _MENTIONED.search(text):
            return cls()
        whole_file = False
        found: list[Suppression] = []
        for comment in comments(text):
            if _FILE.search(comment.text):
                whole_file = True
            for match in _OWN.finditer(comment.text):
                found.append(Suppression(comment.first_line, comment.line, _codes(match["codes"])))
            for match in _NOQA.finditer(comment.text):
                found.append(
                    Suppression(
                        comment.first_line, comment.line, _codes(match["codes"]) if match["colon"] else None
                    )
                )
        return cls(whole_file, tuple(found))

    def covers(self, finding: Finding) -> bool:
        """Whether `finding` is silenced."""
        return self.whole_file or any(suppression.covers(finding) for suppression in self.each)


def names(selector: str, code: str, name: str) -> bool:
    """Whether `selector` (a code, the beginning of one, a rule's name, or "ALL") means the rule."""
    upper = selector.upper()
    return upper == "ALL" or code.upper().startswith(upper) or selector.lower() == name


def _codes(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(code for code in re.split(r"[\s,]+", text) if code)
