"""What torch does with a hazard, per torch version and per mode."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from exportlens.finding import Severity


class Result(enum.Enum):
    """What one export of one hazard ends in."""

    FAILS = "fails"
    WRONG = "wrong"
    BAKED = "baked"
    OK = "ok"


FAILS, WRONG, BAKED, OK = Result.FAILS, Result.WRONG, Result.BAKED, Result.OK


class Mode(enum.Enum):
    """The two ways in which torch.export traces."""

    STRICT = "strict"
    NON_STRICT = "non-strict"


@dataclass(frozen=True, slots=True, order=True)
class TorchVersion:
    """A torch release, major and minor: what outcomes depend on."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> TorchVersion:
        """Read "2.13", "2.13.0+cpu" or "2.14.0.dev20260101". Raises ValueError on anything else."""
        match = re.match(r"\s*v?(\d+)\.(\d+)", text)
        if match is None:
            raise ValueError(f"not a torch version: {text!r}; write it as 2.13")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def distance(self, other: TorchVersion) -> int:
        """How many minor releases lie between the two; a major release counts as a hundred."""
        return abs((self.major - other.major) * 100 + self.minor - other.minor)

    @property
    def default_mode(self) -> Mode:
        """`torch.export.export` traces strictly by default up to torch 2.8, non-strictly from 2.9 on.

        Source: the default of `strict` in torch/export/__init__.py of each release.
        """
        return Mode.NON_STRICT if self >= TorchVersion(2, 9) else Mode.STRICT


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule's stated result per mode on current torch, and where older releases differ.

    `before` maps "2.7" to the (strict, non_strict) pair that held for releases older than 2.7; the entry with
    the smallest version above the asked one decides. `measured` holds what real exports ended in, per version; it
    counts before what is stated, and for a version that was not measured the nearest one that was counts.
    """

    strict: Result
    non_strict: Result
    before: Mapping[str, tuple[Result, Result]] = field(default_factory=dict)
    measured: Mapping[str, tuple[Result | None, Result | None]] = field(default_factory=dict, compare=False)

    def result(self, version: TorchVersion, mode: Mode) -> Result:
        """What `version` does with the hazard in `mode`."""
        found = self._measured(version, mode)
        return found[1] if found is not None else self._stated(version, mode)

    def source(self, version: TorchVersion, mode: Mode) -> str:
        """Where `result` comes from: "measured", "measured on torch 2.8, the nearest version", or "stated"."""
        found = self._measured(version, mode)
        if found is None:
            return "stated"
        return "measured" if found[0] == version else f"measured on torch {found[0]}, the nearest version"

    def _measured(self, version: TorchVersion, mode: Mode) -> tuple[TorchVersion, Result] | None:
        index = 0 if mode is Mode.STRICT else 1
        known = [(TorchVersion.parse(text), pair[index]) for text, pair in self.measured.items()]
        usable = [(number, result) for number, result in known if result is not None]
        # Of two that are equally near the newer one: what torch has learnt it rarely forgets.
        return min(usable, key=lambda row: (row[0].distance(version), -row[0].minor), default=None)

    def _stated(self, version: TorchVersion, mode: Mode) -> Result:
        pair = (self.strict, self.non_strict)
        newer = sorted((TorchVersion.parse(text), text) for text in self.before)
        for bound, text in newer:
            if version < bound:
                pair = self.before[text]
                break
        return pair[0] if mode is Mode.STRICT else pair[1]

    def severity(self, version: TorchVersion, modes: tuple[Mode, ...]) -> Severity | None:
        """The severity for a user who exports in any of `modes`; None where torch handles the hazard.

        A hazard that only bites in a mode that was not asked for is a warning when it fails or is wrong there.
        """
        asked = {self.result(version, mode) for mode in modes}
        if asked & {FAILS, WRONG}:
            return Severity.ERROR
        other = {self.result(version, mode) for mode in Mode}
        if BAKED in asked:
            return Severity.INFORMATION
        if other & {FAILS, WRONG}:
            return Severity.WARNING
        return None
