"""Target `openvino-npu`: OpenVINO's IR on Intel NPUs."""

from __future__ import annotations

from exportlens.export.targets.openvino import Openvino


class OpenvinoNpu(Openvino):
    """OpenVINO's IR, compiled for the NPU when it is loaded."""

    name = "openvino-npu"
    purpose = "Intel NPUs: OpenVINO"
    device = "NPU"
