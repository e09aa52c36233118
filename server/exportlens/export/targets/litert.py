"""Target `litert`: a .tflite file for Android and microcontrollers (LiteRT, formerly TensorFlow Lite)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Target, TargetError


class Litert(Target):
    """Converts programs of static shapes."""

    name = "litert"
    purpose = "Android and edge devices: LiteRT (.tflite)"
    suffix = ".tflite"
    requires = ("litert_torch",)
    install = "pip install litert-torch"

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import litert_torch
        import torch

        for node in program.graph.nodes:
            value = node.meta.get("val")
            shape = value.shape if node.op == "placeholder" and isinstance(value, torch.Tensor) else ()
            if any(isinstance(size, torch.SymInt) for size in shape):
                raise TargetError(
                    f"LiteRT takes static shapes only, and {node.name} has {list(shape)}: "
                    "export without dynamic_shapes for this target",
                    node.name,
                )
        return litert_torch.convert(program.module(), args, sample_kwargs=kwargs or None)

    def save(self, lowered: Any, path: Path) -> None:
        lowered.export(str(path))

    def load(self, path: Path) -> Any:
        import litert_torch
        import torch

        model = litert_torch.load(str(path))

        narrow = _narrow_inputs(model)

        def run(*args: Any, **kwargs: Any) -> Any:
            fitting = [
                value.to(torch.int32) if index in narrow and value.dtype == torch.int64 else value
                for index, value in enumerate(args)
            ]
            found = model(*fitting, **kwargs)
            found = found if isinstance(found, (list, tuple)) else [found]
            return [torch.as_tensor(value) for value in found]

        return run


def _narrow_inputs(model: Any) -> set[int]:
    """Positions of the inputs that the file takes as int32: conversion narrows int64, and the caller has to do so, too."""
    import numpy
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(model_content=model.model_content()).get_input_details()
    named = [(re.search(r"args_(\d+)", each["name"]), each["dtype"]) for each in details]
    return {int(name[1]) for name, dtype in named if name and dtype == numpy.int32}
