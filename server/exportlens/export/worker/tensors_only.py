"""A program as targets take it: tensors go in and come out, and nothing that only Python knows.

torch.export fixes strings, numbers and None among the inputs, and keeps a placeholder for each that nothing uses; those
among the outputs stand in the graph as they are.
Most lowerings stumble over these.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, InputKind, OutputKind
from torch.utils import _pytree as pytree

from exportlens.export.worker.cases import Case


class TensorsOnly:
    """The program without its fixed inputs, unless they may stay, and without the outputs in `left_out`, and how a call of the model becomes one of
    that program.
    """

    def __init__(self, program: Any, left_out: list[bool], *, keep_inputs: bool = False) -> None:
        user_inputs = [
            spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT
        ]
        unused = {node.name for node in program.graph.nodes if node.op == "placeholder" and not node.users}
        self._dropped = [
            not keep_inputs and isinstance(spec.arg, ConstantArgument) and spec.arg.name in unused
            for spec in user_inputs
        ]
        self._left_out = left_out
        self.program = program
        if any(self._dropped) or any(self._left_out) or (not keep_inputs and _detaches(program.graph)):
            self.program = self._reduced(program)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the reduced program for those of the model."""
        if not any(self._dropped):
            return args, kwargs
        leaves = pytree.tree_leaves((args, kwargs))
        kept = zip(leaves, self._dropped, strict=True)
        return tuple(leaf for leaf, dropped in kept if not dropped), {}

    def outputs(self, leaves: list[Any]) -> list[Any]:
        """Of what the model returned, what the reduced program returns."""
        if len(leaves) != len(self._left_out):
            return leaves
        return [leaf for leaf, left_out in zip(leaves, self._left_out, strict=True) if not left_out]

    def notes(self) -> list[str]:
        """What a user of the artifact must know."""
        numbers = [str(index) for index, left_out in enumerate(self._left_out) if left_out]
        if not numbers:
            return []
        which = f"output {numbers[0]} is" if len(numbers) == 1 else f"outputs {', '.join(numbers)} are"
        return [f"{which} fixed by export, and not among the artifact's"]

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
        returned = self._returned(program, module.graph)
        module.recompile()
        calls = program.module_call_graph
        if any(self._dropped) or any(self._left_out):
            inputs = [s.arg for s in specs if s.kind is InputKind.USER_INPUT]
            calls = [self._entry(program, inputs, returned)]
        example = program.example_inputs
        return torch.export.ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=ExportGraphSignature(specs, returned),
            state_dict=program.state_dict,
            range_constraints=program.range_constraints,
            module_call_graph=calls,
            example_inputs=self.call(*example) if example is not None else None,
            constants=program.constants,
            verifiers=program.verifiers,
        )

    def _returned(self, program: Any, graph: Any) -> list[Any]:
        """The specifications of the outputs that stay; those of `graph` that do not are taken out of it."""
        specs = program.graph_signature.output_specs
        left_out = iter(self._left_out)
        stays = [spec.kind is not OutputKind.USER_OUTPUT or not next(left_out) for spec in specs]
        [output] = graph.find_nodes(op="output")
        output.args = (tuple(leaf for leaf, kept in zip(output.args[0], stays, strict=True) if kept),)
        return [spec for spec, kept in zip(specs, stays, strict=True) if kept]

    def _entry(self, program: Any, inputs: list[Any], returned: list[Any]) -> ModuleCallEntry:
        """The call of the whole program, with flat positional inputs, and flat outputs where some are left out."""
        signature = program.module_call_graph[0].signature
        out_spec = signature.out_spec
        if any(self._left_out):
            count = sum(spec.kind is OutputKind.USER_OUTPUT for spec in returned)
            out_spec = pytree.tree_flatten(tuple(range(count)))[1]
        in_spec = signature.in_spec
        if any(self._dropped):
            in_spec = pytree.tree_flatten((tuple(range(len(inputs))), {}))[1]
        return ModuleCallEntry("", ModuleCallSignature(inputs, signature.outputs, in_spec, out_spec))


def _detaches(graph: Any) -> list[Any]:
    """In-place detaches, which torch.tensor(...) leaves behind: they compute nothing, and re-tracing a view of them
    fails.
    """
    return [node for node in graph.nodes if node.target is torch.ops.aten.detach_.default]
