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

    def __init__(self) -> None:
        self._narrow: set[int] = set()
        """Positions of the inputs that the loaded file takes as int32."""
        self._outputs: list[str] | None = None
        """The outputs' names in the model's order, where it returns them by name: the file sorts them."""

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
        self._outputs = _output_names(program)
        return litert_torch.convert(program.module(), args, sample_kwargs=kwargs or None)

    def save(self, lowered: Any, path: Path) -> None:
        lowered.export(str(path))

    def load(self, path: Path) -> Any:
        import litert_torch
        import torch
        from torch.utils import _pytree as pytree

        model = litert_torch.load(str(path))
        self._narrow = narrow = _narrow_inputs(model)

        def run(*args: Any, **kwargs: Any) -> Any:
            fitting = [
                value.to(torch.int32) if index in narrow and value.dtype == torch.int64 else value
                for index, value in enumerate(args)
            ]
            found = model(*fitting, **kwargs)
            if isinstance(found, dict) and self._outputs and set(self._outputs) == set(found):
                found = [found[name] for name in self._outputs]
            return [torch.as_tensor(value) for value in pytree.tree_leaves(found)]

        return run

    def notes(self) -> list[str]:
        if not self._narrow:
            return []
        places = ", ".join(map(str, sorted(self._narrow)))
        are = f"input {places} is" if len(self._narrow) == 1 else f"inputs {places} are"
        return [f"{are} int64 in the model and int32 in the file: cast before the call, as was done here"]


def _output_names(program: Any) -> list[str] | None:
    from litert_torch.backend import export_utils

    spec = program.call_spec.out_spec
    return (
        list(export_utils.flat_dict_names(export_utils.get_children(spec), spec.context))
        if spec.context
        else None
    )


def _narrow_inputs(model: Any) -> set[int]:
    """Positions of the inputs that the file takes as int32: conversion narrows int64, and the caller has to do so, too."""
    import numpy
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(model_content=model.model_content()).get_input_details()
    named = [(re.search(r"args_(\d+)", each["name"]), each["dtype"]) for each in details]
    return {int(name[1]) for name, dtype in named if name and dtype == numpy.int32}
