"""Import code of another age: names that Python and NumPy dropped, and modules that are not installed."""

from __future__ import annotations

import ast
import collections
import collections.abc
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

stood_in: set[str] = set()


def _attribute(name: str) -> Any:
    """What any attribute of something that stands in is."""
    if name.endswith(("version", "version__")):
        return "99.0"
    if name.startswith("__"):
        raise AttributeError(name)
    return StandIn


class _StandInType(type):
    def __getattr__(cls, name: str) -> Any:
        return _attribute(name)

    def __iter__(cls) -> Any:
        return iter(())

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


class StandIn(metaclass=_StandInType):
    """Anything from a module that is not installed: base class, decorator or its factory, annotation."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        if cls is StandIn and len(arguments) == 1 and not keywords and callable(arguments[0]):
            return arguments[0]
        return super().__new__(cls)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass

    def __init_subclass__(cls, **keywords: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else StandIn

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __iter__(self) -> Any:
        return iter(())

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class _StandInModule(types.ModuleType):
    __path__ = ()  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)


@functools.lru_cache(maxsize=64)
def tried(file: str) -> list[tuple[int, int]]:
    """The lines of a file's `try` bodies."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8", errors="replace"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers]
    return [(body[0].lineno, body[-1].end_lineno or body[-1].lineno) for body in bodies]


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: gives an empty module for each third-party name that nobody else found."""

    def __init__(self, real: set[str], sources: Path) -> None:
        self.real = real
        self.sources = str(sources) + "/"

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not self.needed():
            return None
        top = name.split(".")[0]
        compiled = name.rpartition(".")[2] in ("_ext", "_C", "torch._six")
        if (top in self.real or top in sys.stdlib_module_names or top in PRESENT) and not (
            compiled or name == "torch._six"
        ):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def needed(self) -> bool:
        """Whether a research package's own code imports it, and could not do without.

        What a library imports when it can, what stands in a `try`, and what is only asked after with
        `importlib.util.find_spec` must stay missing, or code would run that runs on nobody's machine.
        """
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            if frame.f_code.co_name == "find_spec" and frame.f_code.co_filename == "<frozen importlib.util>":
                return False
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(self.sources):
            return False
        return not any(start <= frame.f_lineno <= end for start, end in tried(frame.f_code.co_filename))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        stood_in.add(spec.name.split(".")[0])
        if spec.name == "torch._six":
            module = types.ModuleType(spec.name)
            vars(module).update(
                string_classes=(str, bytes), container_abcs=collections.abc, int_classes=int, inf=float("inf")
            )
            return module
        return _StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


# Standing in for parts of these would change what is measured: a missing submodule is an ImportError.
PRESENT = {"torch", "numpy", "scipy", "einops", "torchvision", "timm", "transformers", "sklearn"}


def make_ready(base: Path, others: Path) -> None:
    """Put a package's folder first on the path, all others last, and give old code its dropped names."""
    import numpy

    for name in (
        "Iterable",
        "Mapping",
        "MutableMapping",
        "Sequence",
        "Callable",
        "Hashable",
        "Sized",
        "Container",
        "Set",
    ):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    for name, value in (
        ("int", int),
        ("float", float),
        ("object", object),
        ("str", str),
        ("float_", numpy.float64),
    ):
        if name not in vars(numpy):
            setattr(numpy, name, value)
    sys.path.insert(0, str(base))
    sys.path += [str(folder) for folder in sorted(others.iterdir()) if folder.is_dir() and folder != base]
    real = {child.stem for child in base.iterdir() if child.suffix == ".py" or child.is_dir()}
    sys.meta_path.append(StandInFinder(real, others))
    sys.modules["torch.utils.tensorboard"] = _StandInModule("torch.utils.tensorboard")
    allow_shared_defaults()
    define_torchvision_operators()


def allow_shared_defaults() -> None:
    """Dataclasses of before Python 3.11 could have another dataclass's instance as a default."""
    import dataclasses

    strict = dataclasses._get_field  # type: ignore[attr-defined]

    def lenient(cls: type, name: str, *rest: Any) -> Any:
        try:
            return strict(cls, name, *rest)
        except ValueError:
            shared = vars(cls).get(name)
            setattr(cls, name, dataclasses.field(default_factory=lambda: shared))
            return strict(cls, name, *rest)

    dataclasses._get_field = lenient  # type: ignore[attr-defined]


def define_torchvision_operators() -> None:
    """torchvision's one build for this torch wants CUDA: its operators' names are enough to import it."""
    import torch

    for schema in (
        "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        "qnms(Tensor a, Tensor b, float c) -> Tensor",
    ):
        try:
            torch.library.define(f"torchvision::{schema.split('(')[0]}", schema[schema.index("(") :])
        except RuntimeError:
            return


def import_file(base: Path, file: str) -> types.ModuleType:
    """Import one file of a package by its dotted name, past a package `__init__` that cannot be imported."""
    parts = list(Path(file).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    for count in range(1, len(parts)):
        name = ".".join(parts[:count])
        if name in sys.modules:
            continue
        try:
            import_with_dropped_names(name, base)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            forget(name)
            bare = types.ModuleType(name)
            bare.__path__ = [str(base.joinpath(*parts[:count]))]
            sys.modules[name] = bare
    return import_with_dropped_names(".".join(parts), base)


def forget(name: str) -> None:
    for key in [key for key in sys.modules if key == name or key.startswith(name + ".")]:
        del sys.modules[key]


def import_with_dropped_names(name: str, base: Path) -> types.ModuleType:
    """Import `name`; what it wants from a newer library that has dropped it is stood in for."""
    for _ in range(20):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            missing = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            library = sys.modules.get(missing[2]) if missing else None
            own = (getattr(library, "__file__", None) or str(base)).startswith(f"{base}/")
            if missing is None or library is None or own:
                raise
            setattr(library, missing[1], StandIn)
            stood_in.add(missing[2])
            forget(name)
    raise ImportError(f"{name} wants too much that is gone")
