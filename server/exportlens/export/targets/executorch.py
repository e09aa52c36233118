"""What the ExecuTorch targets share: to_edge, partition, .pte, and running on the portable runtime."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from exportlens.export.targets.target import Coverage, Left, Probe, Target, constant_outputs


class Executorch(Target):
    """Lowers to a .pte file; subclasses name the partitioner that hands nodes to their backend."""

    suffix = ".pte"
    requires = ("executorch",)
    install = "pip install executorch"
    partitioner = ""
    """`module:Class` of the backend's partitioner; empty for the portable kernels alone."""

    def probe(self) -> Probe:
        found = super().probe()
        if not found.available or not self.partitioner:
            return found
        try:
            self._partitioner()
        except Exception as error:
            message = f"executorch is here, but its {self.name} backend is not usable: {_words(error)}"
            return Probe(False, message, self.install)
        return found

    def _partitioner(self) -> Any:
        module, _, attribute = self.partitioner.partition(":")
        return getattr(importlib.import_module(module), attribute)()

    def left_out(self, program: Any) -> list[bool]:
        """Numbers and None may stay, unless a string is among them."""
        fixed = constant_outputs(program)
        return [bool(each) and "str" in fixed for each in fixed]

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from executorch.exir import to_edge_transform_and_lower

        partitioners = [self._partitioner()] if self.partitioner else None
        return to_edge_transform_and_lower(program, partitioner=partitioners)

    def save(self, lowered: Any, path: Path) -> None:
        path.write_bytes(lowered.to_executorch().buffer)

    def load(self, path: Path) -> Any:
        from executorch.runtime import Runtime
        from torch.utils import _pytree as pytree

        runtime = Runtime.get()
        buffer = path.read_bytes()
        loaded = runtime.load_program(buffer)
        method = loaded.load_method("forward")
        alive = (runtime, buffer, loaded)  # a method reads from all three, and keeps none of them

        def run(*args: Any, **kwargs: Any) -> Any:
            """Inputs as the flat list that a .pte takes, in the order of the exported signature."""
            assert alive
            return method.execute([_contiguous(leaf) for leaf in pytree.tree_leaves((args, kwargs))])

        return run

    def explain(self, program: Any, lowered: Any) -> Coverage:
        """Delegated calls and what is left to the portable kernels ("lowered" may mean that nothing was
        taken).
        """
        from executorch.devtools.backend_debug import get_delegation_info

        module = lowered.exported_program().graph_module
        info = get_delegation_info(module)
        left = [
            Left(node.name, _aten_name(node.target), node.meta.get("stack_trace") or "")
            for node in module.graph.nodes
            if node.op == "call_function" and _aten_name(node.target)
        ]
        return Coverage(delegated=info.num_delegated_nodes, left=left if self.partitioner else [])


def _contiguous(leaf: Any) -> Any:
    return leaf.contiguous() if hasattr(leaf, "contiguous") else leaf


def _aten_name(target: Any) -> str:
    """`aten.add.Tensor` for an edge operator; empty for what only moves delegates' results about."""
    name = getattr(target, "__name__", "") or str(target)
    return name if name.startswith("aten.") else ""


def _words(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"no module named {error.name}"
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
