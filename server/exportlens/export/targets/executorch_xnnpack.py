"""Target `executorch-xnnpack`: ExecuTorch with XNNPACK, for Arm and x86 CPUs."""

from __future__ import annotations

from exportlens.export.targets.executorch import Executorch


class ExecutorchXnnpack(Executorch):
    """Fast kernels for phones' and laptops' CPUs."""

    name = "executorch-xnnpack"
    purpose = "Arm and x86 CPUs of phones and laptops: ExecuTorch with XNNPACK"
    partitioner = "executorch.backends.xnnpack.partition.xnnpack_partitioner:XnnpackPartitioner"
