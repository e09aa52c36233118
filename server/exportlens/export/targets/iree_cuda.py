"""Target `iree-cuda`: IREE, for NVIDIA GPUs."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeCuda(Iree):
    """Cross-compiles for compute capability 8.0 (Ampere); runs where such a GPU is."""

    name = "iree-cuda"
    purpose = "NVIDIA GPUs: IREE"
    backend = "cuda"
    flags = ("--iree-cuda-target=sm_80",)
