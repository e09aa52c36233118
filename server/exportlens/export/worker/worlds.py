"""Two worlds in one process: the user's modules as they are, and as fixed texts would make them.

The fixed model is imported under its own name, from where it lies, with everything that uses a fixed file made anew;
the original's modules are put aside meanwhile, and can be brought back.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class FixedWorld:
    """The world in which the files (by path) have the texts of other files. From its making on, imports see it.

    What a module keeps while it runs, such as a registry of classes, is that of the world that it was imported in; what
    nothing of the fixed files shows in is shared.
    """

    def __init__(self, files: Mapping[str, str], model_file: str) -> None:
        self._files = {os.path.realpath(file): text for file, text in files.items()}
        anew = {*self._files, os.path.realpath(model_file)}
        self._names = _dependents(anew)
        self._aside = self._taken_out()
        importlib.invalidate_caches()
        self._finder = _Finder(self._files, self._names)
        sys.meta_path.insert(0, self._finder)

    @contextmanager
    def original(self) -> Iterator[None]:
        """The other world, for as long as the original runs: what it imports late must be its own."""
        self._swap()
        sys.meta_path.remove(self._finder)
        try:
            yield
        finally:
            sys.meta_path.insert(0, self._finder)
            self._swap()

    def _swap(self) -> None:
        put_back, self._aside = self._aside, self._taken_out()
        sys.modules.update(put_back)
        for name, module in put_back.items():
            package, child = _package_of(name)
            if package is not None:
                setattr(package, child, module)

    def _taken_out(self) -> dict[str, ModuleType]:
        """The modules that are not the same in both worlds, no longer among those that are imported."""
        out = {name: sys.modules[name] for name in self._names if name in sys.modules}
        for name, module in out.items():
            package, child = _package_of(name)
            # `from package import child` asks the package first, which may be the same in both worlds.
            if package is not None and vars(package).get(child) is module:
                delattr(package, child)
        for name in out:
            del sys.modules[name]
        return out


def fixed_spec(spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec:
    """The spec of a file that is imported by its path, with the text that the file has in this world."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder.adapted(spec)
    return spec


def _package_of(name: str) -> tuple[ModuleType | None, str]:
    """The package of a module, if it is imported, and the name that the module has there."""
    package, _, child = name.rpartition(".")
    return sys.modules.get(package), child


def _dependents(files: set[str]) -> set[str]:
    """The names of the modules that are made from the files, or in which something of those shows."""
    by_file = {
        name: os.path.realpath(module.__file__)
        for name, module in list(sys.modules.items())
        if isinstance(getattr(module, "__file__", None), str) and module.__file__
    }
    found = {name for name, file in by_file.items() if file in files}
    # Nothing that is installed imports the user's files, but for the package that has one of them.
    packages = {name.partition(".")[0] for name in found}
    candidates = {
        name: sys.modules[name]
        for name, file in by_file.items()
        if name.partition(".")[0] in packages or not _is_librarys(file)
    }
    grown = True
    while grown:
        more = {
            name
            for name, module in candidates.items()
            if name not in found and any(_is_from(value, found) for value in _values(name, module))
        }
        found |= more
        grown = bool(more)
    return found


def _is_librarys(file: str) -> bool:
    """Whether a module belongs to what is installed."""
    parts = file.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts or file.startswith(_PYTHON)


_PYTHON = os.path.dirname(os.__file__) + os.sep


def _values(name: str, module: ModuleType) -> Iterator[Any]:
    """What a module's names stand for, and what lies in the containers among it; not its own submodules."""
    for key, value in list(vars(module).items()):
        if isinstance(value, ModuleType) and value is sys.modules.get(f"{name}.{key}"):
            continue
        if isinstance(value, dict) and key != "__builtins__":
            yield from list(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from list(value)
        yield value


def _is_from(value: Any, modules: Iterable[str]) -> bool:
    """Whether a value is one of the modules, or something that one of them defines, or an object of that."""
    if isinstance(value, ModuleType):
        return value.__name__ in modules
    try:
        own = (
            value.__dict__.get("__module__")
            if isinstance(value, type)
            else getattr(value, "__module__", None)
        )
        return (isinstance(own, str) and own in modules) or type(value).__module__ in modules
    except Exception:
        return False  # an object that does not like to be asked


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and gives those that have one their fixed text."""

    def __init__(self, files: Mapping[str, str], names: set[str]) -> None:
        self._files = files
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return self.adapted(spec)
        return None

    def adapted(self, spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec:
        """The spec with the fixed text of its file; also one of a package that is made anew."""
        origin = os.path.realpath(spec.origin) if spec.origin else ""
        text = self._files.get(origin)
        if text is not None:
            self._names.add(spec.name)  # a file of the fixed ones that the original had not imported yet
        if spec.loader is not None and (text is not None or spec.name in self._names):
            spec.loader = _Loader(spec.loader, text)
            spec.cached = None
        return spec


class _Loader(importlib.abc.Loader):
    """Loads as `inner` does, but from the fixed text, if there is one; all else is `inner`'s."""

    def __init__(self, inner: Any, text: str | None) -> None:
        self._inner = inner
        self._text = text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        for name in [each for each in sys.modules if each.rpartition(".")[0] == module.__name__]:
            # The import that gave the package this attribute was that of the other world.
            setattr(module, name.rpartition(".")[2], sys.modules[name])
        if self._text is None:
            self._inner.exec_module(module)
            return
        with open(self._text, "rb") as file:
            source = file.read()
        # Named by the file that has the text, so that what is shown of a line is what ran; `__file__` stays.
        exec(compile(source, self._text, "exec", dont_inherit=True), module.__dict__)
