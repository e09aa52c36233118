"""Target `iree-rocm`: IREE, for AMD GPUs."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeRocm(Iree):
    """Cross-compiles for the MI300 series (gfx942)."""

    name = "iree-rocm"
    purpose = "AMD GPUs: IREE"
    backend = "rocm"
    flags = ("--iree-rocm-target=gfx942",)
