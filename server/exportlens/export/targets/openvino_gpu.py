"""Target `openvino-gpu`: OpenVINO's IR on Intel GPUs."""

from __future__ import annotations

from exportlens.export.targets.openvino import Openvino


class OpenvinoGpu(Openvino):
    """OpenVINO's IR, compiled for the GPU when it is loaded."""

    name = "openvino-gpu"
    purpose = "Intel GPUs: OpenVINO"
    device = "GPU"
