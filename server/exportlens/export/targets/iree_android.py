"""Target `iree-android`: IREE, for Android phones' CPUs."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeAndroid(Iree):
    """Cross-compiles for 64-bit Arm with Android."""

    name = "iree-android"
    purpose = "Android phones' CPUs: IREE"
    backend = "llvm-cpu"
    flags = ("--iree-llvmcpu-target-triple=aarch64-linux-android", "--iree-llvmcpu-target-cpu=generic")
