"""Target `tvm-llvm`: Apache TVM's native code by LLVM, for CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Target, version_of


class TvmLlvm(Target):
    """Compiles a Relax module to a shared library."""

    name = "tvm-llvm"
    purpose = "CPUs, by Apache TVM"
    suffix = ".so"
    requires = ("tvm",)
    install = "pip install apache-tvm"

    def describe(self) -> str:
        return f"apache-tvm {version_of('tvm')}"

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import tvm
        from tvm.relax.frontend.torch import from_exported_program

        module = from_exported_program(program)
        return tvm.compile(module, target="llvm")

    def save(self, lowered: Any, path: Path) -> None:
        lowered.export_library(str(path))

    def load(self, path: Path) -> Any:
        import torch
        import tvm
        from torch.utils import _pytree as pytree

        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            found = machine["main"](
                *(tvm.runtime.tensor(leaf.detach().contiguous().numpy()) for leaf in leaves)
            )
            items = [found] if hasattr(found, "numpy") else list(found)
            return [torch.from_numpy(item.numpy().copy()) for item in items]

        return run
