"""Target `tensorrt`: an engine for NVIDIA GPUs, by torch_tensorrt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Coverage, Left, Probe, Target


class Tensorrt(Target):
    """Compiles the program's parts that TensorRT takes, and leaves the rest to torch on the GPU."""

    name = "tensorrt"
    purpose = "NVIDIA GPUs at their fastest: TensorRT"
    suffix = ".pt2"
    requires = ("torch_tensorrt",)
    install = "pip install torch-tensorrt, with a CUDA build of torch and an NVIDIA GPU"
    slack = 100.0  # TensorFloat-32 is on by default

    def probe(self) -> Probe:
        import torch

        if torch.version.cuda is None:
            return Probe(False, f"torch {torch.__version__} is built without CUDA", self.install)
        if not torch.cuda.is_available():
            return Probe(False, "no CUDA device is visible", self.install)
        return super().probe()

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch
        import torch_tensorrt
        from torch.export.passes import move_to_device_pass
        from torch.utils import _pytree as pytree

        self._example = pytree.tree_map(
            lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, (args, kwargs)
        )
        there = move_to_device_pass(program, "cuda")
        return torch_tensorrt.dynamo.compile(there, self._example[0], kwarg_inputs=self._example[1])

    def save(self, lowered: Any, path: Path) -> None:
        import torch_tensorrt

        torch_tensorrt.save(lowered, str(path), inputs=list(self._example[0]))

    def load(self, path: Path) -> Any:
        import torch
        import torch_tensorrt
        from torch.utils import _pytree as pytree

        module = torch_tensorrt.load(str(path)).module()

        def run(*args: Any, **kwargs: Any) -> Any:
            there = pytree.tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, (args, kwargs))
            found = module(*there[0], **there[1])
            return pytree.tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, found)

        return run

    def explain(self, program: Any, lowered: Any) -> Coverage:
        engines = [name for name, _ in lowered.named_children() if "_run_on_acc" in name]
        left = [
            Left(node.name, str(node.target), node.meta.get("stack_trace") or "")
            for name, child in lowered.named_children()
            if "_run_on_gpu" in name
            for node in child.graph.nodes
            if node.op == "call_function"
        ]
        return Coverage(delegated=len(engines), left=left)
