"""The first operation whose value differs between eager and the exported program, by source line.

Both sides run under a dispatch mode that sees the same aten operators below autograd; walking the two
sequences side
by side, the first one whose operator or value differs is where the program left eager's path.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from exportlens.export.worker.blame import Frame, Owner, node_frame, stack_frames
from exportlens.export.worker.cases import Case
from exportlens.export.worker.comparing import compare_leaves, leaves_of, snapshot
from exportlens.export.worker.loading import seed_all

# They move no numbers, and one side may have more of them than the other.
SILENT = {"aten.detach", "aten.alias", "aten.lift_fresh", "aten.lift_fresh_copy", "aten.lift", "prim.device"}
MOST_OPERATIONS = 20_000


class _Stop(Exception):
    """Ends the program's run at the first difference."""


class _Record(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Eager's operators in order: (name, user frame, outputs)."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._owner = owner
        self.steps: list[tuple[str, Frame | None, list[Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func.overloadpacket)
        if name not in SILENT and len(self.steps) < MOST_OPERATIONS:
            self.steps.append((name, self._owner.best(stack_frames(None)), snapshot(leaves_of(result))))
        return result


class _Follow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The program's operators against the record; stops at the first that differs."""

    def __init__(self, steps: list[tuple[str, Frame | None, list[Any]]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps = steps
        self._next = 0
        self.node: Any = None
        self.found: tuple[str, Frame | None, Any, str] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func.overloadpacket)
        if name in SILENT:
            return result
        if self._next >= len(self._steps):
            self._stop(name, None, f"eager does not run {name} here")
        expected, frame, values = self._steps[self._next]
        self._next += 1
        if expected != name:
            self._stop(name, frame, f"eager runs {expected} where the program runs {name}")
        for difference in compare_leaves(values, leaves_of(result)):
            if not difference.equal:
                self._stop(name, frame, f"{name}: {difference.why}")
        return result

    def _stop(self, name: str, frame: Frame | None, why: str) -> None:
        self.found = (name, frame, self.node, why)
        raise _Stop


class _Walk(torch.fx.Interpreter):
    """Runs a graph and tells the follower which node it is at."""

    def __init__(self, module: Any, follower: _Follow) -> None:
        super().__init__(module)
        self._follower = follower

    def run_node(self, n: Any) -> Any:
        self._follower.node = n
        return super().run_node(n)


def first_difference(model: Any, program: Any, calls: list[Case], owner: Owner) -> dict[str, Any] | None:
    """{operation, why, frame} of the first difference in the last of these consecutive calls.

    The calls before it bring both sides into the state in which they differ. None where the two agree, or
    where
    they cannot be followed.
    """
    record = _Record(owner)
    follower = _Follow(record.steps)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            module = program.module()
            walk = _Walk(module, follower)
            for case in calls[:-1]:
                for side in (model, module):
                    _tolerant_call(side, case)
            args, kwargs = calls[-1].inputs()
            seed_all(calls[-1].seed)
            with record:
                model(*args, **kwargs)
            args, kwargs = calls[-1].inputs()
            seed_all(calls[-1].seed)
            try:
                with follower:
                    walk.run(*pytree.tree_leaves((args, kwargs)), enable_io_processing=False)
            except _Stop:
                pass
    except Exception:
        return None
    if follower.found is None:
        return None
    _, frame, node, why = follower.found
    if node is not None:
        frame = node_frame(node, owner) or frame
    return {"why": why, "frame": frame}


def _tolerant_call(run: Any, case: Case) -> None:
    """One call whose result does not matter, on inputs that one side may refuse."""
    args, kwargs = case.inputs()
    seed_all(case.seed)
    with contextlib.suppress(Exception):
        run(*args, **kwargs)
