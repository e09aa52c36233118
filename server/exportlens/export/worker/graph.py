"""A program's graph as data: nodes with their source lines, edges, and how often each operator occurs."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections import Counter
from typing import Any

import torch

from exportlens.export.worker.blame import Owner, node_frame

_SYMBOL = re.compile(r"\b[suz]\d+\b")
"""A dynamic size, or one that comes from data, as torch's ShapeEnv names it."""


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


def fingerprint(program: Any) -> str | None:
    """A hash of all that a program does: its operators, the tensors that they use, its inputs' and outputs' shapes, its
    ranges. Programs with one fingerprint give the same results. None where a part of it cannot be told by value.

    What tracing in the other mode changes alone is left out: names (of sizes, too), and the order of lifted parameters.
    """
    digest = hashlib.blake2b(digest_size=16)
    modules = [(n, m) for n, m in program.graph_module.named_modules() if isinstance(m, torch.fx.GraphModule)]
    signature = program.graph_signature
    lifted = {
        spec.arg.name: f"{spec.kind.name} {spec.target}" for spec in signature.input_specs if spec.target
    }
    parts = [f"{name}: {_written_out(module, {} if name else lifted)}" for name, module in modules]
    outputs = [(spec.kind.name, spec.target) for spec in signature.output_specs]
    parts.append(repr((outputs, program.call_spec.in_spec, program.call_spec.out_spec)))
    numbers: dict[str, str] = {}

    def numbered(text: str) -> str:
        return _SYMBOL.sub(lambda found: numbers.setdefault(found[0], f"size{len(numbers)}"), text)

    digest.update("\n".join(map(numbered, parts)).encode())
    ranges = sorted(numbered(f"{symbol} {bounds}") for symbol, bounds in program.range_constraints.items())
    digest.update(repr(ranges).encode())
    tensors = {
        f"{kind} {n}": t for kind in ("state_dict", "constants") for n, t in getattr(program, kind).items()
    }
    return digest.hexdigest() if add_tensors(digest, tensors) else None


def _written_out(module: Any, lifted: dict[str, str]) -> str:
    """A graph as text in which nodes are numbered; what is lifted goes by its own name, wherever it stands."""
    names: dict[str, _Name] = {}
    first: list[str] = []
    lines: list[str] = []
    rename: Any = torch.fx.node.map_arg
    for node in module.graph.nodes:
        value = value_text(node.meta.get("val"))
        if node.name in lifted:
            names[node.name] = _Name(lifted[node.name])
            first.append(f"{lifted[node.name]} {value}")
            continue
        names[node.name] = _Name(f"%{len(lines)}")
        called = node.target if node.op in ("get_attr", "call_method") else operator_name(node)
        words = rename((node.args, node.kwargs), lambda used: names[used.name])
        home = getattr(node.target, "__module__", "")
        lines.append(f"{node.op} {home} {called} {words!r} {value}")
    return "\n".join(sorted(first) + lines)


class _Name:
    """A node's name among the arguments of another, as it is to be read there."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def add_tensors(digest: Any, tensors: dict[str, Any]) -> bool:
    """Add tensors by name, bit for bit; False where one of them is none, or has no bytes of its own to read."""
    for name, tensor in sorted(tensors.items()):
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_quantized:
            return False
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or tensor.is_meta:
            return False
        flat = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)} {tensor.requires_grad}".encode())
        if flat.numel():
            digest.update((ctypes.c_char * flat.nbytes).from_address(flat.data_ptr()))
    return True


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
