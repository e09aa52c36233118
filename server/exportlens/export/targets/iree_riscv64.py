"""Target `iree-riscv64`: IREE, for 64-bit RISC-V CPUs."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeRiscv64(Iree):
    """Cross-compiles for RISC-V with its vector extension."""

    name = "iree-riscv64"
    purpose = "64-bit RISC-V CPUs: IREE"
    backend = "llvm-cpu"
    flags = (
        "--iree-llvmcpu-target-triple=riscv64-linux-gnu",
        "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+v",
        "--iree-llvmcpu-target-abi=lp64d",
    )
