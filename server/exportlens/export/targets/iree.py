"""What the IREE targets share: the program as MLIR through iree-turbine, compiled by IREE for one backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exportlens.export.targets.decomposing import CompilerRefused, lower_in_parts
from exportlens.export.targets.target import Probe, Target, version_of, written_buffers
from exportlens.export.worker.diagnostics import Diagnostics


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
        if written_buffers(program):
            return self._compiled(program)  # taken apart, a program loses its updates of buffers here
        from iree.turbine import aot

        return lower_in_parts(program, self._compiled, aot.decompositions.current_aot_decompositions())

    def _compiled(self, program: Any) -> Any:
        """The module's bytes. Raises CompilerRefused with what the compiler writes where it refuses an operator."""
        from iree.turbine import aot

        try:
            with Diagnostics(of_a_try=True) as said:
                made = aot.export(program)
                made.session.set_flags(f"--iree-hal-target-backends={self.backend}", *self.flags)
                return made.compile(save_to=None, target_backends=None)
        except Exception as error:
            if not said.text:
                raise
            raise CompilerRefused(said.text) from error

    def save(self, lowered: Any, path: Path) -> None:
        path.write_bytes(bytes(lowered.map_memory()))

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
