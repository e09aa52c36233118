"""Target `executorch-vulkan`: ExecuTorch with its Vulkan backend, for the GPUs of Android phones."""

from __future__ import annotations

from exportlens.export.targets.executorch import Executorch


class ExecutorchVulkan(Executorch):
    """Lowers ahead of time everywhere; the wheels' runtime has no Vulkan, so nothing is run here."""

    name = "executorch-vulkan"
    purpose = "Android GPUs: ExecuTorch with Vulkan"
    partitioner = "executorch.backends.vulkan.partitioner.vulkan_partitioner:VulkanPartitioner"
    runs_here = False
