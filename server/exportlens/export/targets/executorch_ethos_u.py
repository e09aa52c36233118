"""Target `executorch-ethos-u`: ExecuTorch with Arm's Ethos-U backend, for microcontrollers with an NPU."""

from __future__ import annotations

from typing import Any

from exportlens.export.targets.executorch import Executorch


class ExecutorchEthosU(Executorch):
    """Compiles for Ethos-U55 with 128 MACs; takes static shapes, and quantized arithmetic alone."""

    name = "executorch-ethos-u"
    purpose = "microcontrollers with an Arm Ethos-U NPU: ExecuTorch with Vela"
    partitioner = "executorch.backends.arm.ethosu:EthosUPartitioner"
    install = "pip install 'executorch[ethos-u]'"
    runs_here = False

    def _partitioner(self) -> Any:
        from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner

        return EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))

    def notes(self) -> list[str]:
        return ["the NPU takes quantized operators only: quantize the model before the export (torchao.pt2e)"]
