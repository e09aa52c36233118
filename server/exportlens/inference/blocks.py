"""Blocks: statements one after the other, each kind by the function that follows it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from exportlens.inference.machine import Frame, Machine

# Filled by statements.py: what follows a statement follows blocks in turn.
STATEMENTS: dict[type[ast.stmt], Callable[[Machine, Any, Frame], bool]] = {}


def run_block(machine: Machine, statements: list[ast.stmt], frame: Frame) -> bool:
    """Interpret `statements`; False when no path falls out at the end. Raises Raised when every path raises."""
    for statement in statements:
        machine.step()
        run = STATEMENTS.get(type(statement))
        if run is not None and not run(machine, statement, frame):
            return False
    return True
