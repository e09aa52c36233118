"""Target `torch`: the exported program itself, as a .pt2 file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Target, TargetError, constant_outputs, returned_words


class TorchProgram(Target):
    """The portable .pt2 archive: loads with `torch.export.load` wherever torch runs; the input of other
    toolchains.
    """

    name = "torch"
    purpose = "the exported program as a .pt2 archive, for any machine with torch"
    suffix = ".pt2"
    tensors_only = False
    torch_generators = True
    slack = 1.0

    def describe(self) -> str:
        import torch

        return f"torch {torch.__version__}"

    def left_out(self, program: Any) -> list[bool]:
        return [False for _ in constant_outputs(program)]

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        words = returned_words(program)
        if words:
            said = ", ".join(map(repr, words))
            raise TargetError(
                f"the model returns {said}, and torch.export.load cannot read a program that returns a string: "
                "leave it out of what forward returns"
            )
        return program

    def save(self, lowered: Any, path: Path) -> None:
        import torch

        torch.export.save(lowered, path)

    def load(self, path: Path) -> Any:
        import torch

        return torch.export.load(path).module()
