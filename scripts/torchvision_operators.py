"""Makes PyPI's torchvision importable beside a CPU build of torch.

PyPI's Linux wheel of torchvision is compiled for the CUDA build of torch. Beside a CPU build its library does
not load, its operators `nms` and `qnms` are never declared, and `import torchvision` ends in "operator
torchvision::nms does not exist". Where that is so, `set_up.py` copies this file into the virtual environment,
with a `.pth` file that imports it at start: it declares the two operators just before torchvision is first
imported. They cannot run then (no model in examples/ uses them); what is Python in torchvision can.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

# The schemas of torchvision/csrc/ops/nms.cpp and torchvision/csrc/ops/quantized/cpu/qnms_kernel.cpp.
SCHEMAS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


class BeforeTorchvision:
    """A finder that finds nothing: it is asked first, declares the operators, and steps aside."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name != "torchvision":
            return
        sys.meta_path.remove(self)
        import torch

        for operator, schema in SCHEMAS.items():
            torch.library.define(operator, schema)


sys.meta_path.insert(0, BeforeTorchvision())
