"""From a request's words to objects: the user's module, the model, its inputs."""

from __future__ import annotations

import builtins
import copy
import importlib
import importlib.util
import inspect
import itertools
import os
import random
import re
import sys
import typing
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exportlens.export.worker.channel import end_if_forked
from exportlens.export.worker.stages import StageError
from exportlens.export.worker.worlds import fixed_spec

HOW_TO_GIVE_INPUTS = (
    'Pass --inputs "(torch.randn(2, 8),)" or write them to [tool.exportlens.models] in pyproject.toml'
)
HOW_TO_GIVE_ARGUMENTS = (
    'Pass its arguments as they stand in its parentheses, --init "dim=8, depth=2", '
    "or write them to [tool.exportlens.models] in pyproject.toml"
)


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's (where it is loaded) and torch's generators alike, before a call of the model."""
    end_if_forked()
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    torch.manual_seed(seed)


def package_root(path: Path) -> tuple[Path, str]:
    """The folder to import from and the dotted name of the file at `path`, by the `__init__.py` files above
    it.
    """
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    above = _folders_above(path)
    while ((folder / "__init__.py").exists() or above > 0) and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder, above = folder.parent, above - 1
    return folder, ".".join(parts)


def _folders_above(path: Path) -> int:
    """How many folders above its own the relative imports of a file, or of one beside it, lead to, with its own."""
    found = 0
    for file in (path, *itertools.islice(path.parent.glob("*.py"), MOST_BESIDE)):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if file == path or found > 0:  # what is beside it matters where it imports from there
            dots = re.findall(
                r"^\s*from\s+(\.+)\s*\w*\s+import\b|^\s*from\s+(\.+)[\w.]+\s+import\b", text, re.M
            )
            found = max([found, *(len(one or other) for one, other in dots)])
    return found


MOST_BESIDE = 200
"""Files beside a model's that are looked at for where they import from."""


def import_user_module(model: str, roots: list[str]) -> tuple[ModuleType, str]:
    """The module of `FILE.py:name` or `package.module:name`, and the name.

    Raises StageError("import") with the next step for whatever the import raises, SystemExit included.
    """
    place, _, name = model.rpartition(":")
    for root in reversed(roots):
        if root not in sys.path:
            sys.path.insert(0, root)
    try:
        if place.endswith(".py"):
            return _import_file(Path(place)), name
        return importlib.import_module(place), name
    except StageError:
        raise
    except ModuleNotFoundError as error:
        missing = f"no module named {error.name!r}" if error.name else str(error)
        raise StageError(
            "import",
            f"cannot import {place}: {missing} for {sys.executable}. "
            f"Install it there, or choose another interpreter.",
            error,
        ) from error
    except SystemExit as error:
        raise StageError(
            "import", f"importing {place} ended the process (SystemExit: {error.code})", error
        ) from error
    except BaseException as error:
        raise StageError(
            "import", f"importing {place} failed: {type(error).__name__}: {error}", error
        ) from error


def _import_file(path: Path) -> ModuleType:
    folder, dotted = package_root(path)
    # Before all others: a package may hold a module of its own name.
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    sys.argv = [str(path)]
    if not dotted or not dotted.replace(".", "").isidentifier() or _belongs_to_another(dotted, path):
        dotted = "exportlens_model_" + "".join(c if c.isalnum() else "_" for c in path.stem)
        spec = importlib.util.spec_from_file_location(dotted, path)
        if spec is None or spec.loader is None:
            raise StageError("import", f"{path} is not a Python file")
        spec = fixed_spec(spec)
        module = importlib.util.module_from_spec(spec)
        sys.modules[dotted] = module
        assert spec.loader is not None
        spec.loader.exec_module(module)
        return module
    return importlib.import_module(dotted)


def _is_or_holds(origin: Path, path: Path) -> bool:
    """Whether `origin` is the file at `path`, or the `__init__.py` of a package around it."""
    return origin == path or (origin.name == "__init__.py" and origin.parent in path.parents)


def _belongs_to_another(dotted: str, path: Path) -> bool:
    """Whether importing `dotted` would give a different file (`types.py`, `test.py`, a module already
    loaded).
    """
    top = dotted.partition(".")[0]
    if top in sys.modules:
        origin = getattr(sys.modules[top], "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            return True
        origin = spec.origin if spec is not None else None
        if spec is not None and origin is None:  # a folder without __init__.py
            return not any(Path(place) in path.parents for place in spec.submodule_search_locations or ())
    if origin is None:
        return True
    # as written and resolved: a package may be linked file by file
    ways: tuple[Callable[[Path], Path], ...] = (Path.absolute, Path.resolve)
    return not any(_is_or_holds(way(Path(origin)), way(path)) for way in ways)


class NotEvaluated(StageError):
    """An expression of the request raises by itself, before any model is called with it."""


class Space:
    """The names an expression of the request may use: the user's module, and torch's own words beneath
    them.
    """

    def __init__(self, module: ModuleType) -> None:
        self._names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
        export = torch.export
        self._names.update({"Dim": getattr(export, "Dim", None), "export": export, "Namespace": Namespace})
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self._names.update({"np": numpy, "numpy": numpy})
        self._names.update(vars(module))
        self._names["__builtins__"] = builtins

    def add(self, name: str, value: Any) -> None:
        self._names.setdefault(name, value)

    def value(self, expression: str, what: str, kind: str) -> Any:
        """Evaluate one expression; `what` names it in the message. Raises StageError(kind)."""
        try:
            return eval(compile(expression.strip(), f"<{what}>", "eval"), self._names)
        except BaseException as error:
            raise NotEvaluated(
                kind, f"{what} `{expression}` does not evaluate: {type(error).__name__}: {error}", error
            ) from error

    def arguments(self, expression: str, what: str, kind: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What stands between a call's parentheses: `dim=8, depth=2`. Raises StageError(kind)."""
        names = dict(self._names, __collect=lambda *args, **kwargs: (args, kwargs))
        try:
            collected = eval(compile(f"__collect({expression}\n)", f"<{what}>", "eval"), names)
        except BaseException as error:
            raise NotEvaluated(
                kind, f"{what} `{expression}` does not evaluate: {type(error).__name__}: {error}", error
            ) from error
        return collected  # type: ignore[no-any-return]


@dataclass
class Subject:
    """What is exported: `make()` gives a fresh or copied callable each time, the user's own object stays as
    it is.
    """

    original: Any
    space: Space
    name: str
    file: str | None
    is_module: bool

    def copy(self) -> Any:
        """A copy with its own parameters, buffers and plain state. Raises StageError where it cannot be
        copied.
        """
        if not self.is_module and not hasattr(self.original, "__self__"):
            return self.original
        try:
            if not self.is_module:
                return getattr(copy.deepcopy(self.original.__self__), self.original.__name__)
            memo = _computed_tensors(self.original)
            copied = copy.deepcopy(self.original, memo)
            _move_identities(copied, memo)
            return copied
        except Exception as error:
            raise StageError(
                "construct",
                f"{self.name} cannot be copied ({type(error).__name__}: {error}), "
                "and the original is not exported",
                error,
            ) from error


def _computed_tensors(model: torch.nn.Module) -> dict[int, Any]:
    """Copies of the tensors that Modules keep and that were computed from others, by id, as `copy.deepcopy` takes them:
    it copies leaves alone, and weight norm keeps what it computed before the last call.
    """
    held = (value for module in model.modules() for value in vars(module).values())
    return {
        id(value): value.detach().clone()
        for value in held
        if isinstance(value, torch.Tensor) and not value.is_leaf
    }


def _move_identities(copied: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Make the identities that a copied model recorded, of its parameters, buffers and Modules, those of the copies."""
    ours = {key: id(new) for key, new in memo.items() if isinstance(new, (torch.Tensor, torch.nn.Module))}
    registries = frozenset(vars(torch.nn.Module()))
    for module in copied.modules():
        for name, value in list(vars(module).items()):
            if name in registries:
                continue
            moved = _moved(value, ours)
            if moved is not value:
                vars(module)[name] = moved


def _moved(value: Any, ours: dict[int, int]) -> Any:
    """`value` with the identities in it changed; itself where there are none."""
    if type(value) is int:
        return ours.get(value, value)
    if type(value) in (set, frozenset, list, tuple):
        items = [_moved(each, ours) for each in value]
        same = all(one is other for one, other in zip(value, items, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        pairs = [(_moved(key, ours), _moved(each, ours)) for key, each in value.items()]
        same = all(
            key is one and each is other
            for (key, each), (one, other) in zip(value.items(), pairs, strict=True)
        )
        return value if same else dict(pairs)
    return value


class _Wrapper(torch.nn.Module):
    """A function or bound method as a Module; the Modules of a method's owner become its submodules."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function
        for name, value in vars(getattr(function, "__self__", object)).items():
            if isinstance(value, torch.nn.Module):
                self.add_module(f"owner_{name}", value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def wrapped(subject: Subject) -> Subject:
    """A callable subject as a Module subject, which torch.export takes."""
    return Subject(_Wrapper(subject.original).eval(), subject.space, subject.name, subject.file, True)


def _bind(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(target).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def _construct(target: Any, init: str | None, space: Space, name: str) -> Any:
    """Call a class or factory with the request's constructor arguments.

    `init` is what stands in the parentheses (`dim=8, depth=2`), a dict or tuple of them, or the whole
    expression
    that makes the model (`Net(dim=8)`).
    """
    args, kwargs = space.arguments(init or "", "--init", "construct")
    if len(args) == 1 and not kwargs:
        [only] = args
        if isinstance(target, type) and isinstance(only, target):
            return only
        if isinstance(only, torch.nn.Module) and not _bind(target, args, {}):
            return only
        if isinstance(only, dict) and all(isinstance(key, str) for key in only) and _bind(target, (), only):
            args, kwargs = (), only
        elif isinstance(only, tuple) and _bind(target, only, {}) and (only or not _bind(target, args, {})):
            args = only
    try:
        return target(*args, **kwargs)
    except BaseException as error:
        written = init or ""
        needed = "" if init else _signature_hint(target)
        hint = f". Give its arguments: --init {needed!r}" if needed else ""
        said = f"{type(error).__name__}: {error}".rstrip(".: ")
        raise StageError("construct", f"{name}({written}) failed: {said}{hint}", error) from error


def _signature_hint(target: Any) -> str:
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return "..."
    needed = [
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return ", ".join(f"{name}=..." for name in needed)


def _makes_a_model(target: Any, init: str | None) -> bool:
    """Whether a function is a factory of models rather than the thing to export."""
    if init is not None:
        return True
    try:
        returned = typing.get_type_hints(target).get("return")  # written as text, too
    except Exception:
        returned = getattr(target, "__annotations__", {}).get("return")
    return isinstance(returned, type) and issubclass(returned, torch.nn.Module)


def construct(module: ModuleType, name: str, init: str | None, *, train: bool = False) -> Subject:
    """The object that `name` stands for: a Module class (constructed), an instance, a factory, a function, a
    method.

    Raises StageError("import") for an unknown name and StageError("construct") for a constructor that fails.
    """
    space = Space(module)
    first, *rest = name.split(".")
    if not hasattr(module, first):
        close = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise StageError(
            "import", f"{module.__name__} has no {first!r}; its classes are: {', '.join(close) or 'none'}"
        )
    found = getattr(module, first)
    for part in rest:
        if inspect.isclass(found) and not inspect.isclass(inspect.getattr_static(found, part, None)):
            found = _construct(found, init, space, name)
        if not hasattr(found, part):
            raise StageError("import", f"{first} has no attribute {part!r}")
        found = getattr(found, part)
    if inspect.isclass(found) or (inspect.isfunction(found) and not rest and _makes_a_model(found, init)):
        found = _construct(found, init, space, name)
    is_module = isinstance(found, torch.nn.Module)
    if not is_module and not callable(found):
        raise StageError("construct", f"{name} is a {type(found).__name__}: neither a Module nor callable")
    if is_module:
        found.train(train)
    source: Any = type(found) if is_module else found
    try:
        file: str | None = inspect.getsourcefile(source)
    except TypeError:
        file = getattr(module, "__file__", None)
    return Subject(found, space, name, os.path.abspath(file) if file else None, is_module)


@dataclass
class Inputs:
    """Example inputs: positional, by keyword, and the dynamic shapes asked for (None: all static)."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any

    def by_name(self, subject: Subject) -> dict[str, Any]:
        """The inputs by the names of forward's parameters."""
        named = [p.name for p in _forward_parameters(subject)]
        return {**dict(zip(named, self.args, strict=False)), **self.kwargs}

    def names(self, subject: Subject) -> list[str]:
        """What each leaf is called, in the leaves' order: `x`, `states[0]`, `mask`."""
        positional = [p.name for p in _forward_parameters(subject)]
        found = []
        for path, _ in pytree.tree_flatten_with_path((self.args, self.kwargs))[0]:
            keys: list[Any] = [getattr(key, "idx", getattr(key, "key", key)) for key in path]
            side, first, *rest = keys
            name = str(first)
            if side == 0:
                name = positional[first] if first < len(positional) else f"argument {first}"
            found.append(name + "".join(f"[{key!r}]" for key in rest))
        return found


def read_inputs(subject: Subject, request: dict[str, Any]) -> Inputs:
    """Evaluate the request's input expressions. Raises StageError("inputs")."""
    space = subject.space
    text = request.get("inputs")
    if text is None and request.get("kwargs") is None:
        parameters = _forward_parameters(subject)
        if any(
            p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            for p in parameters
        ):
            named = ", ".join(p.name for p in parameters)
            raise StageError(
                "inputs",
                f"no example inputs for {subject.name}, which takes ({named}). {HOW_TO_GIVE_INPUTS}",
            )
    seed_all(0)
    value = space.value(text, "--inputs", "inputs") if text else ()
    if isinstance(value, dict) and text and not request.get("kwargs"):
        return Inputs((), value, _dynamic_shapes(space, request))
    args = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    kwargs = space.value(request["kwargs"], "--kwargs", "inputs") if request.get("kwargs") else {}
    if not isinstance(kwargs, dict):
        raise StageError(
            "inputs", f"--kwargs must be a dict, not {type(kwargs).__name__}: {request['kwargs']}"
        )
    return Inputs(args, kwargs, _dynamic_shapes(space, request))


def _forward_parameters(subject: Subject) -> list[inspect.Parameter]:
    target = subject.original.forward if subject.is_module else subject.original
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return []


def _dynamic_shapes(space: Space, request: dict[str, Any]) -> Any:
    text = request.get("dynamic_shapes")
    return space.value(text, "--dynamic-shapes", "inputs") if text else None
