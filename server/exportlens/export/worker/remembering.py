"""What a slow original gives in eager, kept in a folder from one trial of a repair to the next."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exportlens.export.worker.graph import add_tensors
from exportlens.export.worker.loading import Inputs, Subject
from exportlens.export.worker.preparing import Prepared, Ready

Opened = dict[int, dict[str, tuple[Any, str]]]
"""Case by case, what a model returned: each leaf by its path, with the path of the object around it."""


@dataclass
class Expected:
    """What the original gives, case by case: its results, its inputs afterwards; or the exception."""

    opened: Opened
    inputs_after: list[list[Any]]
    errors: list[BaseException | None]


class Memory:
    """The results that are kept in a folder (None keeps nothing). They count for the same weights and inputs only."""

    def __init__(self, folder: str | None) -> None:
        self._file = Path(folder) / "eager.pt" if folder else None
        self._chosen = Path(folder) / "chosen.json" if folder else None
        self._asked: str | None = None
        self._kept: dict[str, Any] | None = None

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with the proposal that worked before as its only one."""
        if self._chosen is None or not self._chosen.exists():
            return request
        chosen = json.loads(self._chosen.read_text())
        return {**request, "proposals": [chosen]} if chosen.get("source") else request

    def before_call(self, subject: Subject, inputs: Inputs) -> Ready:
        """What is known of the original's call with these inputs: it need not be made again."""
        if self._file is None:
            return Ready(inputs)
        self._asked = _fingerprint(subject, inputs)
        if self._asked is not None and self._file.exists():
            with contextlib.suppress(Exception):
                kept = torch.load(
                    self._file, weights_only=False
                )  # written by an earlier process of this repair
                if kept["asked"] == self._asked:
                    self._kept = kept
                    return Ready(inputs, kept["cost"], kept["without_backward"])
        return Ready(inputs)

    def recall(self, cases: int) -> Expected | None:
        """The results of as many cases, where they are known."""
        kept = self._kept
        return kept["expected"] if kept is not None and len(kept["expected"].errors) == cases else None

    def keep(self, prepared: Prepared, expected: Expected) -> None:
        """Keep the results of a slow model for the next process; what cannot be written is not kept."""
        if self._file is None or self._chosen is None or self._asked is None or not prepared.slow:
            return
        words = {"cost": prepared.cost, "without_backward": prepared.without_backward}
        with contextlib.suppress(Exception):
            torch.save({"asked": self._asked, "expected": expected, **words}, self._file)
            self._chosen.write_text(json.dumps(prepared.chosen))


def _fingerprint(subject: Subject, inputs: Inputs) -> str | None:
    """A hash of a model's tensors and of its inputs; None where one of them is not to be told by value."""
    digest = hashlib.blake2b(digest_size=16)
    leaves = pytree.tree_leaves((inputs.args, inputs.kwargs))
    tensors = {str(index): leaf for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    plain = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
    if not all(isinstance(leaf, (bool, int, float, str, type(None))) for leaf in plain):
        return None
    digest.update(repr(plain).encode())
    told = add_tensors(digest, tensors) and add_tensors(digest, tensors_of(subject.original))
    return digest.hexdigest() if told else None


def tensors_of(owner: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a Module (or of a bound method's owner), by dotted name."""
    owner = getattr(owner, "__self__", owner)
    found: dict[str, torch.Tensor] = {}
    modules: list[tuple[str, Any]] = (
        list(owner.named_modules()) if isinstance(owner, torch.nn.Module) else [("", owner)]
    )
    for path, module in modules:
        prefix = f"{path}." if path else ""
        places = {**getattr(module, "__dict__", {})}
        for key in ("_parameters", "_buffers"):
            places.update(places.pop(key, {}))
        for name, value in places.items():
            if isinstance(value, torch.Tensor):
                found[prefix + name] = value
            elif isinstance(value, torch.nn.Module) and not isinstance(owner, torch.nn.Module):
                found.update({f"{name}.{inner}": tensor for inner, tensor in tensors_of(value).items()})
    return found
