"""Target `aoti-cpu`: AOTInductor's compiled package for this machine's CPU."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Probe, Target, constant_outputs


class AotiCpu(Target):
    """Machine code with its weights in one .pt2 package, run from C++ or Python without the model's
    source.
    """

    name = "aoti-cpu"
    purpose = "compiled native code for this machine's CPU (AOTInductor)"
    suffix = ".pt2"
    tensors_only = False
    install = "apt install g++ (or point CXX at a C++ compiler)"

    def probe(self) -> Probe:
        import os

        compiler = os.environ.get("CXX") or next(
            (c for c in ("g++", "clang++", "cl") if shutil.which(c)), None
        )
        if compiler is None or shutil.which(compiler) is None:
            return Probe(False, "no C++ compiler found (g++, clang++ or $CXX)", self.install)
        return Probe(True, f"{self._torch()}, {compiler}")

    @staticmethod
    def _torch() -> str:
        import torch

        return f"torch {torch.__version__}"

    def left_out(self, program: Any) -> list[bool]:
        """None may stay."""
        return [fixed not in ("", "NoneType") for fixed in constant_outputs(program)]

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return program

    def save(self, lowered: Any, path: Path) -> None:
        import torch

        torch._inductor.aoti_compile_and_package(lowered, package_path=str(path))

    def load(self, path: Path) -> Any:
        import torch

        return torch._inductor.aoti_load_package(str(path))
