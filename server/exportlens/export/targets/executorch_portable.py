"""Target `executorch-portable`: ExecuTorch with its portable C++ kernels, for any device."""

from __future__ import annotations

from exportlens.export.targets.executorch import Executorch


class ExecutorchPortable(Executorch):
    """Runs wherever a C++ compiler reaches, phones and microcontrollers included; not the fastest."""

    name = "executorch-portable"
    purpose = "phones, embedded devices: ExecuTorch's portable kernels"
