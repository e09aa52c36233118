"""Target `iree-metal`: IREE, for Apple GPUs."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeMetal(Iree):
    """Cross-compiles for Apple's GPUs."""

    name = "iree-metal"
    purpose = "Apple GPUs: IREE"
    backend = "metal-spirv"
    flags = ("--iree-metal-compile-to-metallib=false",)
