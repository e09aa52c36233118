"""Target `executorch-qnn`: ExecuTorch with Qualcomm's AI Engine Direct, for Snapdragon's Hexagon NPU."""

from __future__ import annotations

import os
from typing import Any

from exportlens.export.targets.executorch import Executorch
from exportlens.export.targets.target import Probe


class ExecutorchQnn(Executorch):
    """Lowers with Qualcomm's SDK at QNN_SDK_ROOT; runs on the device."""

    name = "executorch-qnn"
    purpose = "Snapdragon NPUs: ExecuTorch with Qualcomm AI Engine Direct"
    partitioner = "executorch.backends.qualcomm.partition.qnn_partitioner:QnnPartitioner"
    install = "Qualcomm's AI Engine Direct SDK, with QNN_SDK_ROOT naming its folder, beside executorch"
    runs_here = False

    def probe(self) -> Probe:
        if not os.environ.get("QNN_SDK_ROOT"):
            return Probe(False, "QNN_SDK_ROOT is not set: Qualcomm's SDK is needed to lower", self.install)
        return super().probe()

    def _partitioner(self) -> Any:
        from executorch.backends.qualcomm.partition.qnn_partitioner import QnnPartitioner
        from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset
        from executorch.backends.qualcomm.utils.utils import (
            generate_htp_compiler_spec,
            generate_qnn_executorch_compiler_spec,
        )

        options = generate_htp_compiler_spec(use_fp16=True)
        return QnnPartitioner(generate_qnn_executorch_compiler_spec(QcomChipset.SM8650, options))
