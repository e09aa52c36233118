"""What the IREE targets share: the program as MLIR through iree-turbine, compiled by IREE for one backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Probe, Target, version_of, written_buffers


class Iree(Target):
    """Compiles to a .vmfb module; subclasses name the backend and its flags."""

    suffix = ".vmfb"
    requires = ("iree.turbine", "iree.compiler", "iree.runtime")
    install = "pip install iree-turbine iree-base-compiler iree-base-runtime"
    backend = "llvm-cpu"
    flags: tuple[str, ...] = ()
    runs_here = False

    def describe(self) -> str:
        return ", ".join(f"{name} {version_of(name)}" for name in ("iree-turbine", "iree-base-compiler"))

    def probe(self) -> Probe:
        found = super().probe()
        if not found.available or self.runs_here:
            return found
        return Probe(True, f"{found.message}; compiles here for {self.backend}")

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from iree.turbine import aot

        try:
            return aot.export(program)
        except Exception:
            # operators that only IREE's own decompositions make known; they lose updates of buffers, and so are no
            # way out for a program that has any
            if written_buffers(program):
                raise
            return aot.export(program.run_decompositions(aot.decompositions.current_aot_decompositions()))

    def save(self, lowered: Any, path: Path) -> None:
        flags = [f"--iree-hal-target-backends={self.backend}", *self.flags]
        lowered.session.set_flags(*flags)
        lowered.compile(save_to=str(path), target_backends=None)

    def load(self, path: Path) -> Any:
        import iree.runtime
        import torch
        from torch.utils import _pytree as pytree

        config = iree.runtime.Config("local-task")
        module = iree.runtime.VmModule.copy_buffer(config.vm_instance, path.read_bytes())
        loaded = iree.runtime.load_vm_module(module, config)

        def run(*args: Any, **kwargs: Any) -> Any:
            feed = [
                leaf.detach().contiguous().numpy() if isinstance(leaf, torch.Tensor) else leaf
                for leaf in pytree.tree_leaves((args, kwargs))
            ]
            found = loaded.main(*feed)
            found = found if isinstance(found, (list, tuple)) else [found]
            return [torch.from_numpy(value.to_host().copy()) for value in found]

        return run
