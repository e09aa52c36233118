"""Target `openvino-cpu`: OpenVINO's IR on Intel CPUs."""

from __future__ import annotations

from exportlens.export.targets.openvino import Openvino


class OpenvinoCpu(Openvino):
    """OpenVINO's IR, compiled for the CPU when it is loaded."""

    name = "openvino-cpu"
    purpose = "Intel CPUs: OpenVINO"
    device = "CPU"
