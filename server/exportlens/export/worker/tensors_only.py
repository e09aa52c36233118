"""A program as targets take it: tensors go in, and nothing that only Python knows.

torch.export fixes strings, numbers and None among the inputs, and keeps a placeholder for each that nothing uses.
Most lowerings stumble over these.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, InputKind
from torch.utils import _pytree as pytree

from exportlens.export.worker.cases import Case


class TensorsOnly:
    """The program without its fixed inputs, and how a call of the model becomes one of that program."""

    def __init__(self, program: Any) -> None:
        user_inputs = [
            spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT
        ]
        unused = {node.name for node in program.graph.nodes if node.op == "placeholder" and not node.users}
        self._dropped = [
            isinstance(spec.arg, ConstantArgument) and spec.arg.name in unused for spec in user_inputs
        ]
        self.program = program
        if any(self._dropped) or _detaches(program.graph):
            self.program = self._reduced(program)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the reduced program for those of the model."""
        if not any(self._dropped):
            return args, kwargs
        leaves = pytree.tree_leaves((args, kwargs))
        kept = zip(leaves, self._dropped, strict=True)
        return tuple(leaf for leaf, dropped in kept if not dropped), {}

    def case(self, case: Case) -> Case:
        """The case with the reduced program's arguments."""
        args, kwargs = self.call(case.args, case.kwargs)
        return Case(case.name, args, kwargs, case.seed, case.sizes, case.note)

    def _reduced(self, program: Any) -> Any:
        module = copy.deepcopy(program.graph_module)
        specs = []
        dropped = iter(self._dropped)
        nodes = {node.name: node for node in module.graph.nodes}
        for spec in program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT and next(dropped):
                module.graph.erase_node(nodes[spec.arg.name])
            else:
                specs.append(spec)
        for node in _detaches(module.graph):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
        module.recompile()
        calls = program.module_call_graph
        if any(self._dropped):
            calls = [self._entry(program, [s.arg for s in specs if s.kind is InputKind.USER_INPUT])]
        example = program.example_inputs
        return torch.export.ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=ExportGraphSignature(specs, program.graph_signature.output_specs),
            state_dict=program.state_dict,
            range_constraints=program.range_constraints,
            module_call_graph=calls,
            example_inputs=self.call(*example) if example is not None else None,
            constants=program.constants,
            verifiers=program.verifiers,
        )

    @staticmethod
    def _entry(program: Any, inputs: list[Any]) -> ModuleCallEntry:
        """The call of the whole program, with flat positional inputs."""
        signature = program.module_call_graph[0].signature
        spec = pytree.tree_flatten((tuple(range(len(inputs))), {}))[1]
        return ModuleCallEntry("", ModuleCallSignature(inputs, signature.outputs, spec, signature.out_spec))


def _detaches(graph: Any) -> list[Any]:
    """In-place detaches, which torch.tensor(...) leaves behind: they compute nothing, and re-tracing a view of them
    fails.
    """
    return [node for node in graph.nodes if node.target is torch.ops.aten.detach_.default]
