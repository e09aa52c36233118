"""Which functions of torch strict tracing cannot answer: those that return no tensor, each tried by a real export.

Every public function of the modules below is called in eager without arguments, with one tensor, and with two; the
first call that works and returns something other than tensors is then exported inside of a small model, in both modes.
Those that non-strict mode takes and strict mode refuses are shipped as data for the rule on them.
"""

from __future__ import annotations

import importlib
import json
import logging
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "rules" / "exportlens_rules" / "python_features" / "untraced_torch.json"
MODULES = (
    "torch",
    "torch.cuda",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.backends.mkldnn",
    "torch.backends.mps",
    "torch.autograd",
    "torch.cpu",
    "torch.mps",
    "torch.random",
    "torch.utils.data",
    "torch.xpu",
)
# What changes the process that measures, waits, or needs more than tensors.
_LEFT_OUT = """
compile load save fork wait seed manual_seed use_deterministic_algorithms import_ir_module classproperty stream use_mem_pool
sym_sum caching_allocator_disabled to_dlpack thread_safe_generator prepare_multiprocessing_environment
"""
LEFT_OUT = frozenset(_LEFT_OUT.split())


def functions() -> Iterator[tuple[str, Callable[..., Any], list[tuple[str, ...]]]]:
    """Name, function, and the forms of call to try; an "x" stands for a tensor."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if name.startswith(("_", "set_", "profiler_")) or name in LEFT_OUT:
                continue
            if callable(function) and not isinstance(function, (type, types.ModuleType)):
                yield f"{module_name}.{name}", function, [(), ("x",), ("x", "x")]
    for name in sorted(dir(torch.Tensor)):
        function = getattr(torch.Tensor, name)
        if not name.startswith("_") and not name.endswith("_") and callable(function):
            yield f"torch.Tensor.{name}", function, [("x",), ("x", "x")]


def called(function: Callable[..., Any], form: tuple[str, ...], x: torch.Tensor) -> Any:
    return function(*[x for _ in form])


class Asking(nn.Module):
    """A model that asks, and does nothing with the answer."""

    def __init__(self, function: Callable[..., Any], form: tuple[str, ...]) -> None:
        super().__init__()
        self.ask: Callable[[torch.Tensor], Any] = lambda x: called(function, form, x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.ask(x)
        return x + 1


def exports(function: Callable[..., Any], form: tuple[str, ...], strict: bool) -> bool:
    torch.compiler.reset()
    try:
        torch.export.export(Asking(function, form), (torch.randn(4, 4),), strict=strict)
    except Exception:
        return False
    return True


def answers(function: Callable[..., Any], forms: list[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first form of call that works in eager, if what it returns is no tensor."""
    for form in forms:
        try:
            result = called(function, form, torch.randn(4, 4))
        except Exception:
            continue
        first = result[0] if isinstance(result, (list, tuple)) and result else result
        return None if isinstance(first, torch.Tensor) else form
    return None


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    names = []
    for name, function, forms in functions():
        form = answers(function, forms)
        if form is not None and exports(function, form, False) and not exports(function, form, True):
            names.append(name)
    text = json.dumps({"torch": torch.__version__.partition("+")[0], "names": names}, indent=1)
    TARGET.write_text(text + "\n", encoding="utf-8")
    print(f"{len(names)} functions that strict tracing cannot answer")


if __name__ == "__main__":
    main()
