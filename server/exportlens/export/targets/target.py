"""What a target is: it probes, lowers, saves, runs, and explains what it does not take."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Probe:
    """Whether a target can be used here. `message` says with what, or what is missing and what to do."""

    available: bool
    message: str
    install: str | None = None


@dataclass(frozen=True)
class Left:
    """A node that a target does not take: its name, its operator, and where the lowered graph says it came from (the
    text of a stack).
    """

    node: str
    operator: str
    stack: str = ""


@dataclass
class Coverage:
    """How a lowered program is shared out: calls the target took, and the nodes left to the CPU (or refused).

    None for `delegated` means that the target has no notion of leaving.
    """

    delegated: int | None = None
    left: list[Left] = field(default_factory=list)


class TargetError(Exception):
    """A target's own refusal, in words for the user; `node` is the graph node at fault, where it is known."""

    def __init__(self, message: str, node: str | None = None) -> None:
        super().__init__(message)
        self.node = node


class Target:
    """One hardware target. Subclasses import their packages inside the methods: the file itself needs none.

    `program` is the `torch.export.ExportedProgram`, with `node.meta["stack_trace"]` on its nodes.
    """

    name: str
    purpose: str
    suffix: str
    """The artifact's file name ending."""
    requires: tuple[str, ...] = ()
    """Import names that must be there."""
    install: str = ""
    """What to type to get them."""
    runs_here = True
    """Whether the artifact can be run on the machine that lowers it."""
    tensors_only = True
    """Whether inputs that export has fixed (strings, numbers, None) must go before the program is lowered."""
    torch_generators = False
    """Whether random numbers come from torch's own generators, so that seeding them makes results
    comparable.
    """
    slack = 10.0
    """How much wider than the exported program's own tolerance the errors may be: other kernels add in other
    order.
    """

    def probe(self) -> Probe:
        """Look for what the target needs, without importing it where that is costly."""
        for module in self.requires:
            if importlib.util.find_spec(module.partition(".")[0]) is None or not _has(module):
                return Probe(False, f"{module} is not installed for {sys.executable}", self.install)
        return Probe(True, self.describe())

    def describe(self) -> str:
        """The versions that would be used, for people."""
        return ", ".join(f"{name} {version_of(name)}" for name in self.requires) or "part of torch"

    def left_out(self, program: Any) -> list[bool]:
        """Of each output of the model, whether it must go before the program is lowered: those that export has fixed."""
        return [bool(fixed) for fixed in constant_outputs(program)]

    def lower(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Lower to whatever `save` takes. `args` and `kwargs` are the example inputs."""
        raise NotImplementedError

    def save(self, lowered: Any, path: Path) -> None:
        """Write the artifact to `path`."""
        raise NotImplementedError

    def load(self, path: Path) -> Any:
        """The artifact, ready to be called with the model's own arguments; returns outputs in any nesting."""
        raise NotImplementedError

    def explain(self, program: Any, lowered: Any) -> Coverage:
        """Which nodes the target took."""
        return Coverage(delegated=sum(node.op == "call_function" for node in program.graph.nodes))

    def notes(self) -> list[str]:
        """What a user of the artifact must know."""
        return []


def constant_outputs(program: Any) -> list[str]:
    """Of each of the model's outputs the type (`int`, `str`, `NoneType`) of what export has fixed it to, or nothing."""
    from torch.export.graph_signature import ConstantArgument, OutputKind

    specs = program.graph_signature.output_specs
    returned = [spec.arg for spec in specs if spec.kind is OutputKind.USER_OUTPUT]
    return [type(each.value).__name__ if isinstance(each, ConstantArgument) else "" for each in returned]


def returned_words(program: Any) -> list[str]:
    """The strings that a program returns: `torch.export.save` writes them, and no `torch.export.load` reads them (2.13)."""
    values = (getattr(spec.arg, "value", None) for spec in program.graph_signature.output_specs)
    return [value for value in values if isinstance(value, str)]


def written_buffers(program: Any) -> dict[str, str]:
    """The buffers that a program writes, by the node that does: by its signature, or, where it is not decomposed, by
    the operators that write to a buffer's placeholder.
    """
    written = dict(program.graph_signature.buffers_to_mutate)
    if written:
        return written
    buffers = program.graph_signature.inputs_to_buffers
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        first: Any = node.args[0] if node.args else None
        if schema is not None and schema.is_mutable and getattr(first, "name", "") in buffers:
            written[node.name] = buffers[first.name]
    return written


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def version_of(module: str) -> str:
    """The installed version of the distribution that has this import name; "?" where it does not say."""
    top = module.partition(".")[0]
    for name in (top, top.replace("_", "-")):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    for names in (importlib.metadata.packages_distributions().get(top, []),):
        for name in names:
            return importlib.metadata.version(name)
    return "?"
