"""torch's constants and classes: dtypes, layouts, numbers, exceptions, types."""

from __future__ import annotations

from typing import Any

import torch


def collect() -> dict[str, list[Any]]:
    """Qualified name to [kind, value]; infinities and nan as words, which JSON lacks."""
    found: dict[str, list[Any]] = {}
    for name in sorted(dir(torch)):
        if name.startswith("_"):
            continue
        value = getattr(torch, name)
        qualified = f"torch.{name}"
        if isinstance(value, torch.dtype):
            found[qualified] = ["dtype", str(value).removeprefix("torch.")]
        elif isinstance(value, (torch.layout, torch.memory_format)):
            kind = "layout" if isinstance(value, torch.layout) else "memory_format"
            found[qualified] = [kind, str(value).removeprefix("torch.")]
        elif isinstance(value, bool):
            found[qualified] = ["bool", value]
        elif isinstance(value, float):
            found[qualified] = [
                "float",
                str(value) if value in (float("inf"), float("-inf")) or value != value else value,
            ]
        elif value is None:
            found[qualified] = ["none", None]
        elif isinstance(value, type) and issubclass(value, BaseException):
            found[qualified] = ["exception", None]
        elif isinstance(value, type):
            found[qualified] = ["class", None]
    for module in ("torch.cuda", "torch.autograd", "torch.nn", "torch.export", "torch.fx", "torch.jit"):
        home: Any = torch
        for part in module.split(".")[1:]:
            home = getattr(home, part)
        for name in sorted(dir(home)):
            value = getattr(home, name)
            if not name.startswith("_") and isinstance(value, type) and issubclass(value, BaseException):
                found[f"{module}.{name}"] = ["exception", None]
    return found
