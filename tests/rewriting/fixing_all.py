"""What `check --fix --unsafe-fixes` does to a text, by the engine and its rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from exportlens.config import NEWEST_TORCH, Config
from exportlens.engine import Engine
from exportlens.fixing import applicable, apply_fixes
from exportlens.outcome import Mode, TorchVersion

FILE = Path("/model.py")
MOST_ROUNDS = 25


@dataclass
class Mended:
    """The text when no fix is offered any more, and why findings that are left have none."""

    text: str
    rounds: int = 0
    refusals: list[str] = field(default_factory=list)


def mend(text: str, torch_version: TorchVersion = NEWEST_TORCH) -> Mended:
    """Apply all fixes for a torch, round by round. Raises AssertionError when the rounds do not end."""
    result = Mended(text)
    while result.rounds < MOST_ROUNDS:
        engine = Engine(
            Config(root=Path("/"), modes=(Mode.STRICT, Mode.NON_STRICT), torch_version=torch_version)
        )
        engine.update(FILE, result.text)
        findings = [each for each in engine.with_fixes(engine.check(FILE)) if each.path == FILE]
        result.refusals = [
            note.removeprefix("No fix offered: ")
            for each in findings
            for note in each.notes
            if note.startswith("No fix offered")
        ]
        wanted = [each for each in findings if applicable(each.fix, unsafe=True)]
        applied = apply_fixes(FILE, result.text, wanted)
        if applied.text == result.text:
            return result
        result.text = applied.text
        result.rounds += 1
    raise AssertionError(f"fixing never ends:\n{result.text}")
