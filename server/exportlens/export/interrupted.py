"""Where a process was when it crashed or was ended: the stack that Python wrote on its way out."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

# The form of faulthandler, most recent call first: `  File "net.py", line 7 in forward`.
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+) in (.+)$', re.M)
_OURS = str(Path(__file__).resolve().parent) + os.sep
_INSTALLED = ("site-packages", "dist-packages")


def interrupted_at(stack: Path, homes: list[str]) -> dict[str, Any] | None:
    """The innermost line of the user in a stack that was written to a file; None where there is none."""
    try:
        text = stack.read_text(errors="replace")
    except OSError:
        return None
    ours, _, current = text.rpartition("Current thread ")
    for part in (current.partition("\n\n")[0], ours):
        for file, line, function in _FRAME.findall(part):
            if _is_users(file, homes):
                return {"file": file, "line": int(line), "function": function}
    return None


def _is_users(file: str, homes: list[str]) -> bool:
    path = os.path.realpath(file)
    home = next((home for home in map(os.path.realpath, homes) if path.startswith(home + os.sep)), None)
    if home is None or path.startswith(_OURS):
        return False
    return not any(name in Path(path[len(home) :]).parts for name in _INSTALLED)
