"""Target `onnxruntime-cpu`: an ONNX file, run by ONNX Runtime on the CPU."""

from __future__ import annotations

from exportlens.export.targets.onnxruntime import Onnxruntime


class OnnxruntimeCpu(Onnxruntime):
    """The widest-travelled format: servers, browsers, Windows, phones."""

    name = "onnxruntime-cpu"
    purpose = "ONNX file for servers, Windows, browsers and phones: ONNX Runtime on the CPU"
