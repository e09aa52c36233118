"""Target `executorch-coreml`: ExecuTorch with Core ML, for Apple's CPU, GPU and Neural Engine."""

from __future__ import annotations

import sys

from exportlens.export.targets.executorch import Executorch


class ExecutorchCoreml(Executorch):
    """Lowers on Linux and macOS; runs on Apple's systems."""

    name = "executorch-coreml"
    purpose = "Apple devices: ExecuTorch with Core ML"
    partitioner = "executorch.backends.apple.coreml.partition:CoreMLPartitioner"
    install = "pip install executorch coremltools"
    runs_here = sys.platform == "darwin"
