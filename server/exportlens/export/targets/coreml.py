"""Target `coreml`: a Core ML package for Apple devices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from exportlens.export.targets.decomposing import lower_in_parts
from exportlens.export.targets.target import Target


class Coreml(Target):
    """Converts anywhere; runs on macOS."""

    name = "coreml"
    purpose = "iPhone, iPad and Mac: Core ML"
    suffix = ".mlpackage"
    requires = ("coremltools",)
    install = "pip install coremltools"
    runs_here = sys.platform == "darwin"
    slack = 100.0  # the Neural Engine computes in float16

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import coremltools

        def convert(decomposed: Any) -> Any:
            return coremltools.convert(decomposed, minimum_deployment_target=coremltools.target.iOS17)

        # coremltools reads the decomposed (ATen) dialect alone
        return lower_in_parts(program.run_decompositions({}), convert)

    def save(self, lowered: Any, path: Path) -> None:
        lowered.save(str(path))

    def load(self, path: Path) -> Any:
        import coremltools
        import torch
        from torch.utils import _pytree as pytree

        model = coremltools.models.MLModel(str(path))
        names = [entry.name for entry in model.get_spec().description.input]
        outputs = [entry.name for entry in model.get_spec().description.output]

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = pytree.tree_leaves((args, kwargs))
            found = model.predict({n: leaf.detach().numpy() for n, leaf in zip(names, leaves, strict=False)})
            return [torch.as_tensor(found[name]) for name in outputs]

        return run
