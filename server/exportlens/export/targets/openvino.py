"""What the OpenVINO targets share: conversion with dynamic dims kept, and float32 arithmetic for the
comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Probe, Target


class Openvino(Target):
    """Converts to OpenVINO's IR (.xml, its weights beside it in .bin); subclasses name the device."""

    suffix = ".xml"
    requires = ("openvino", "packaging")
    install = "pip install openvino packaging"
    device = "CPU"

    def probe(self) -> Probe:
        found = super().probe()
        if not found.available:
            return found
        import openvino

        devices = openvino.Core().available_devices
        if not any(name.partition(".")[0] == self.device for name in devices):
            message = f"OpenVINO sees no {self.device} here (it sees {', '.join(devices)})"
            return Probe(False, message, f"a machine with an Intel {self.device} and its driver")
        return found

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import openvino
        import torch

        shapes = []
        by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        for name in program.graph_signature.user_inputs:
            value = by_name[name].meta.get("val") if name in by_name else None
            if isinstance(value, torch.Tensor):
                sizes = [-1 if isinstance(size, torch.SymInt) else int(size) for size in value.shape]
                shapes.append(openvino.PartialShape(sizes))
        dynamic = any(shape.is_dynamic for shape in shapes)
        # without `input`, the dims that the program keeps dynamic would be made static
        return openvino.convert_model(program, input=shapes) if dynamic else openvino.convert_model(program)

    def save(self, lowered: Any, path: Path) -> None:
        import openvino

        openvino.save_model(lowered, str(path), compress_to_fp16=False)

    def load(self, path: Path) -> Any:
        import openvino
        import torch
        from torch.utils import _pytree as pytree

        # by default the CPU plugin computes in bfloat16 where it can: errors of 1e-2, not the conversion's
        # fault
        hint = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().compile_model(str(path), self.device, hint)

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = [
                v for v in pytree.tree_leaves((args, kwargs)) if isinstance(v, (torch.Tensor, int, float))
            ]
            feed = [torch.as_tensor(leaf).detach().cpu().contiguous().numpy() for leaf in leaves]
            result = compiled(feed)
            return [torch.from_numpy(result[output].copy()) for output in compiled.outputs]

        return run

    def notes(self) -> list[str]:
        return ["compared in float32; by default OpenVINO may compute in bfloat16 (INFERENCE_PRECISION_HINT)"]
