"""What the ONNX Runtime targets share: torch's dynamo-based ONNX exporter and a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Coverage, Probe, Target


class Onnxruntime(Target):
    """Converts to ONNX and runs it; subclasses name the execution provider."""

    suffix = ".onnx"
    requires = ("onnx", "onnxscript", "onnxruntime")
    install = "pip install onnx onnxscript onnxruntime"
    provider = "CPUExecutionProvider"

    def probe(self) -> Probe:
        found = super().probe()
        if not found.available:
            return found
        import onnxruntime

        providers = onnxruntime.get_available_providers()
        if self.provider not in providers:
            here = f"onnxruntime {onnxruntime.__version__} has {', '.join(providers)}"
            return Probe(False, f"{here}, and no {self.provider}", self.install)
        return found

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        return torch.onnx.export(program, args, kwargs=kwargs, dynamo=True, verbose=False)

    def save(self, lowered: Any, path: Path) -> None:
        lowered.save(str(path), external_data=False)

    def load(self, path: Path) -> Any:
        import onnxruntime
        import torch
        from torch.utils import _pytree as pytree

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=[self.provider])
        names = [value.name for value in session.get_inputs()]

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = [
                v for v in pytree.tree_leaves((args, kwargs)) if isinstance(v, (torch.Tensor, int, float))
            ]
            tensors = [torch.as_tensor(leaf).detach().cpu().contiguous() for leaf in leaves]
            feed = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=False)}
            return [torch.from_numpy(value.copy()) for value in session.run(None, feed)]

        return run

    def explain(self, program: Any, lowered: Any) -> Coverage:
        return Coverage(delegated=len(list(lowered.model.graph)))
