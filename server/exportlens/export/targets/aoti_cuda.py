"""Target `aoti-cuda`: AOTInductor's compiled package for an NVIDIA GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Probe, Target, constant_outputs


class AotiCuda(Target):
    """As `aoti-cpu`, with the program and its weights moved to the GPU."""

    name = "aoti-cuda"
    purpose = "compiled native code for an NVIDIA GPU (AOTInductor)"
    suffix = ".pt2"
    tensors_only = False
    install = "a CUDA build of torch (https://pytorch.org/get-started) and an NVIDIA GPU with its driver"
    slack = 50.0

    def probe(self) -> Probe:
        import torch

        if torch.version.cuda is None:
            return Probe(False, f"torch {torch.__version__} is built without CUDA", self.install)
        if not torch.cuda.is_available():
            return Probe(False, "no CUDA device is visible", self.install)
        return Probe(True, f"torch {torch.__version__}, {torch.cuda.get_device_name()}")

    def left_out(self, program: Any) -> list[bool]:
        """None may stay."""
        return [fixed not in ("", "NoneType") for fixed in constant_outputs(program)]

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from torch.export.passes import move_to_device_pass

        return move_to_device_pass(program, "cuda")

    def save(self, lowered: Any, path: Path) -> None:
        import torch

        torch._inductor.aoti_compile_and_package(lowered, package_path=str(path))

    def load(self, path: Path) -> Any:
        import torch
        from torch.utils import _pytree as pytree

        package = torch._inductor.aoti_load_package(str(path))

        def run(*args: Any, **kwargs: Any) -> Any:
            there = pytree.tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, (args, kwargs))
            return pytree.tree_map(
                lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, package(*there[0], **there[1])
            )

        return run
