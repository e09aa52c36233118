"""Target `iree-vulkan`: IREE, for GPUs with Vulkan."""

from __future__ import annotations

from exportlens.export.targets.iree import Iree


class IreeVulkan(Iree):
    """Cross-compiles to SPIR-V for any GPU with Vulkan."""

    name = "iree-vulkan"
    purpose = "GPUs with Vulkan: IREE"
    backend = "vulkan-spirv"
    flags = ()
