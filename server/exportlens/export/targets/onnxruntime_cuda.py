"""Target `onnxruntime-cuda`: an ONNX file, run by ONNX Runtime on an NVIDIA GPU."""

from __future__ import annotations

from exportlens.export.targets.onnxruntime import Onnxruntime


class OnnxruntimeCuda(Onnxruntime):
    """As onnxruntime-cpu, with the CUDA provider of the onnxruntime-gpu package."""

    name = "onnxruntime-cuda"
    purpose = "ONNX file on an NVIDIA GPU: ONNX Runtime with CUDA"
    install = "pip install onnx onnxscript onnxruntime-gpu (and remove onnxruntime)"
    provider = "CUDAExecutionProvider"
    slack = 50.0
