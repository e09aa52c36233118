"""Target `iree-llvm-cpu`: IREE, for this machine's CPU."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeLlvmCpu(Iree):
    """Native code for the machine that compiles it."""

    name = "iree-llvm-cpu"
    purpose = "this machine's CPU: IREE"
    backend = "llvm-cpu"
    flags = ("--iree-llvmcpu-target-cpu=host",)
    runs_here = True
