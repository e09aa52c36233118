"""What the engine says of one text."""

from __future__ import annotations

from pathlib import Path

from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Finding
from exportlens.outcome import Mode, TorchVersion
from exportlens.proof.example import whole_file

CURRENT = TorchVersion(2, 13)
BOTH = (Mode.STRICT, Mode.NON_STRICT)


def findings(
    text: str,
    *,
    version: TorchVersion = CURRENT,
    modes: tuple[Mode, ...] = BOTH,
    targets: tuple[str, ...] = (),
) -> list[Finding]:
    """The findings of a check of `text`, a whole file or a bare forward, for `version`, `modes` and `targets`."""
    path = Path("/nowhere/model.py")
    engine = Engine(Config(root=path.parent, torch_version=version, modes=modes, targets=targets))
    engine.update(path, whole_file(text))
    return engine.check(path)
