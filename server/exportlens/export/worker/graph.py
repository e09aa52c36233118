"""A program's graph as data: nodes with their source lines, edges, and how often each operator occurs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from exportlens.export.worker.blame import Owner, node_frame


def operator_name(node: Any) -> str:
    """`aten.add.Tensor` for a call, the node's kind for the rest."""
    if node.op != "call_function":
        return str(node.op)
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return getattr(target, "__name__", None) or str(target)


def value_text(value: Any) -> str:
    """`float32[s0, 8]` for a (fake) tensor, else its text."""
    if isinstance(value, torch.Tensor):
        sizes = ", ".join(str(size) for size in value.shape)
        return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"
    if isinstance(value, (tuple, list)):
        return (
            "("
            + ", ".join(value_text(item) for item in value[:4])
            + (", ..." if len(value) > 4 else "")
            + ")"
        )
    return f"{value!s:.40}"


def _module_path(node: Any) -> str:
    """The submodule that the node came from, as a dotted path below the model."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values() if isinstance(entry, tuple)]
    path = str(paths[-1]) if paths else ""
    return path.removeprefix("L['self']").removeprefix("L__self__").lstrip("._")


def histogram(program: Any) -> dict[str, int]:
    """Operators by how often they occur, most frequent first."""
    counts = Counter(operator_name(node) for node in program.graph.nodes if node.op == "call_function")
    return dict(counts.most_common())


def same_program(one: Any, other: Any) -> bool:
    """Whether two programs run the same operators on the same tensors, within the same ranges."""
    return _written_out(one) == _written_out(other) and all(
        _same_tensors(getattr(one, name), getattr(other, name)) for name in ("state_dict", "constants")
    )


def _written_out(program: Any) -> tuple[Any, ...]:
    """All that a program does, as text: its code and that of its branches, its inputs' shapes, its signature."""
    modules = program.graph_module.named_modules()
    code = {name: module.code for name, module in modules if isinstance(module, torch.fx.GraphModule)}
    inputs = [value_text(n.meta.get("val")) for n in program.graph.nodes if n.op == "placeholder"]
    return code, inputs, str(program.graph_signature), str(program.range_constraints)


def _same_tensors(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tensors by name that are equal bit for bit; anything but tensors is held for different."""
    return one.keys() == other.keys() and all(
        isinstance(value, torch.Tensor)
        and isinstance(other[name], torch.Tensor)
        and (value is other[name] or (value.dtype == other[name].dtype and torch.equal(value, other[name])))
        for name, value in one.items()
    )


def describe_graph(program: Any, owner: Owner) -> dict[str, Any]:
    """{nodes: [{id, op, kind, module, file, line, value}], edges: [[from, to]]} of the top-level graph."""
    nodes: list[dict[str, Any]] = []
    edges: list[list[str]] = []
    for node in program.graph.nodes:
        frame = node_frame(node, owner)
        nodes.append(
            {
                "id": node.name,
                "op": operator_name(node),
                "kind": node.op,
                "module": _module_path(node),
                "file": frame["file"] if frame else None,
                "line": frame["line"] if frame else None,
                "value": value_text(node.meta.get("val")) if "val" in node.meta else "",
            }
        )
        edges.extend([user.name, node.name] for user in node.all_input_nodes)
    return {"nodes": nodes, "edges": edges}
