"""Names: the globals of one file, found lazily, and the workspace that resolves imports between files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.source.document import Chunk, Document

if TYPE_CHECKING:
    from exportlens.inference.values import Value

# Followed by knowledge, never by source: their code is not the user's, and what it does is known otherwise.
OPAQUE_PACKAGES = frozenset(
    {
        "torch",
        "numpy",
        "functorch",
        "scipy",
        "jax",
        "tensorflow",
        "onnx",
        "triton",
        "einops",
        "beartype",
        "jaxtyping",
        "matplotlib",
        "PIL",
        "cv2",
        "sklearn",
        "pandas",
        "networkx",
        "tqdm",
    }
)
_STANDARD_LIBRARY = frozenset(sys.stdlib_module_names)
# Lines on which a name of a module can be bound: statements at the left edge or one block deep, and the names of long imports.
_OUTER_LINE = re.compile(
    r"^(?:(?:    )?(?:async def|def|class|import|from)\b[^(\n]*(?:import\s*\([^)]*\))?|(?:    )?[^\W\d][\w, ]*\s*(?::[^=\n]*)?=)",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d]\w*|\*")
_STAR = "*"
_FEW = 12
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_MAX_SOURCE_BYTES = 2_000_000


class ModuleScope:
    """The global names of one document. Values are computed on first use by the interpreter that asks."""

    def __init__(self, document: Document, workspace: Workspace, module_name: str, is_package: bool) -> None:
        self.document = document
        self.workspace = workspace
        self.module_name = module_name
        self.is_package = is_package
        self.values: dict[str, Value] = {}
        self.running: set[str] = set()
        # The scopes whose values were computed with the help of this one.
        self.users: set[ModuleScope] = set()
        self.bindings: dict[str, list[tuple[Chunk, ast.stmt]]] = {}
        self.star_imports: list[tuple[Chunk, ast.ImportFrom]] = []
        self.lazy_imports: list[tuple[Chunk, ast.ImportFrom]] = []
        for placed in document.placed:
            for statement in placed.chunk.body:
                for name in bound_names(statement):
                    self.bindings.setdefault(name, []).append((placed.chunk, statement))
                if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                    self.star_imports.append((placed.chunk, statement))
                elif isinstance(statement, (ast.Try, ast.If)):
                    stars = self.lazy_imports if for_checkers_only(statement) else self.star_imports
                    for inner in ast.walk(statement):
                        if isinstance(inner, ast.ImportFrom) and inner.names[0].name == "*":
                            stars.append((placed.chunk, inner))

    @property
    def path(self) -> Path:
        return self.document.path

    def absolute_import(self, module: str | None, level: int) -> str:
        """The dotted name meant by `from <dots><module> import ...` in this file."""
        if level == 0:
            return module or ""
        parts = self.module_name.split(".") if self.module_name else []
        drop = level - 1 if self.is_package else level
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, *([module] if module else [])])

    def stars_for(self, name: str) -> list[tuple[Chunk, ast.ImportFrom]]:
        """The star imports that `name` may come from.

        Those for type checkers say what a lazily importing package offers. Where they are many (a package with a folder per model),
        only folders that the name begins with are looked into: reading them all would take seconds.
        """
        lazy = self.lazy_imports
        if len(lazy) > _FEW:
            plain = name.replace("_", "").lower()
            lazy = [
                item
                for item in lazy
                if plain.startswith((item[1].module or " ").rpartition(".")[2].replace("_", ""))
            ]
        return [*self.star_imports, *lazy]

    @property
    def library(self) -> bool:
        """Whether this is installed code that is not the user's own."""
        return self.workspace.is_library(self.path)

    def __repr__(self) -> str:
        return f"ModuleScope({self.module_name or self.path.name})"


def for_checkers_only(statement: ast.stmt) -> bool:
    """`if TYPE_CHECKING:`, also `if TYPE_CHECKING or EAGER_IMPORT:`: what it imports is there only when it is asked for, and its star
    imports are whole packages.
    """
    if not isinstance(statement, ast.If):
        return False
    test = statement.test
    tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    names = [each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in tests]
    return "TYPE_CHECKING" in names


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a module-level statement binds, conditional ones included."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            if alias.name != "*":
                yield alias.asname or alias.name.split(".")[0]
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _target_names(target)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        yield from _target_names(statement.target)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        # `names.append(...)`, `registry.update(...)`: the statement changes what the name holds.
        function = statement.value.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            yield function.value.id
    elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.AsyncWith, ast.AsyncFor)):
        seen: set[str] = set()
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            seen.update(_target_names(statement.target))
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                if item.optional_vars is not None:
                    seen.update(_target_names(item.optional_vars))
        blocks = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        for block in blocks:
            for inner in block:
                seen.update(bound_names(inner))
        yield from sorted(seen)


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)
    elif isinstance(target, (ast.Subscript, ast.Attribute)) and isinstance(target.value, ast.Name):
        yield target.value.id


class Workspace:
    """The files that can be looked at: open documents first, then files on disk below the given roots.

    `read` returns a file's text or None; the language server passes one that never blocks on a keystroke.
    """

    def __init__(
        self,
        roots: tuple[Path, ...] = (),
        libraries: tuple[Path, ...] = (),
        read: Callable[[Path], str | None] | None = None,
    ) -> None:
        self.roots = roots
        self.libraries = libraries
        self._read = read or _read_from_disk
        self._scopes: dict[Path, ModuleScope | None] = {}
        self._found: dict[tuple[str, Path | None], Path | None] = {}
        self._package_roots: dict[Path, tuple[Path, str]] = {}
        self._is_file: dict[Path, bool] = {}
        self._words: dict[Path, frozenset[str]] = {}
        self._own: set[Path] = set()
        self._is_library: dict[Path, bool] = {}
        self._computing: list[ModuleScope] = []

    @contextmanager
    def computing(self, scope: ModuleScope) -> Iterator[None]:
        """While a global of `scope` is computed: it depends on every scope that is asked meanwhile."""
        self._computing.append(scope)
        try:
            yield
        finally:
            self._computing.pop()

    def beside(self) -> Workspace:
        """Another workspace that reads the same files; it holds no open document."""
        other = Workspace(self.roots, self.libraries, self._read)
        other._own |= self._own
        return other

    def note_use(self, scope: ModuleScope) -> None:
        """Note that what is being computed depends on `scope`."""
        if self._computing and self._computing[-1] is not scope:
            scope.users.add(self._computing[-1])

    def open(self, document: Document) -> ModuleScope:
        """The scope of a document that the caller holds; replaces what was known of its path."""
        known = self._scopes.get(document.path)
        if known is not None and known.document is document:
            return known
        scope = self._make(document)
        self._scopes[document.path] = scope
        if known is not None:
            scope.users = known.users
            self._refresh(scope)
        elif document.path in self._is_file:
            self._refresh_all()
        return scope

    def _refresh(self, changed: ModuleScope) -> None:
        """Forget what was computed with the help of `changed`, from one scope to the next; parsed documents stay.

        Installed libraries do not depend on the user's files; what was computed of them stays.
        """
        waiting, seen = [changed], {changed}
        while waiting:
            scope = waiting.pop()
            users, scope.users = scope.users, set()
            scope.values.clear()
            scope.running.clear()
            for user in users - seen:
                seen.add(user)
                if not self.is_library(user.path):
                    waiting.append(user)

    def _refresh_all(self) -> None:
        """Forget all computed values of the user's files: any of them may import what was not there before."""
        for path, scope in self._scopes.items():
            if scope is not None and not self.is_library(path):
                scope.values.clear()
                scope.running.clear()

    def forget(self, path: Path) -> None:
        """Forget what was read and known of `path`, whether it exists included."""
        self._refresh_all()
        self._scopes.pop(path, None)
        self._is_file.pop(path, None)
        self._words.pop(path, None)
        self._found.clear()
        self._package_roots.clear()

    def knows(self, path: Path) -> bool:
        """Whether anybody asked for `path` yet, be it only whether it exists."""
        return path in self._scopes or path in self._is_file

    def loaded(self) -> list[ModuleScope]:
        """The scopes of all documents that have been looked at."""
        return [scope for scope in self._scopes.values() if scope is not None]

    def load(self, path: Path) -> ModuleScope | None:
        if path not in self._scopes:
            text = self._read(path)
            self._scopes[path] = None if text is None else self._make(Document.parse(path, text))
        return self._scopes[path]

    def text(self, path: Path) -> str | None:
        """The text of `path`, which need not be parsed for it."""
        scope = self._scopes.get(path)
        return scope.document.text if scope is not None else self._read(path)

    def resolve(self, module: str, origin: ModuleScope) -> ModuleScope | None:
        """The scope of the dotted `module` as imported by `origin`; None where its source is not followed."""
        path = self.find(module, origin)
        scope = None if path is None else self.load(path)
        if scope is not None:
            self.note_use(scope)
        return scope

    def may_define(self, module: str, origin: ModuleScope, name: str) -> bool:
        """Whether `module`, as `origin` imports it, could bind `name`: told from its text alone, so that what a package's star imports
        offer need not be parsed file by file.
        """
        path = self.find(module, origin)
        if path is None:
            return False
        if path in self._scopes:
            return self._scopes[path] is not None
        words = self._words.get(path)
        if words is None:
            text = self._read(path) or ""
            words = self._words[path] = frozenset(_WORD.findall(" ".join(_OUTER_LINE.findall(text))))
        return name in words or _STAR in words

    def find(self, module: str, origin: ModuleScope) -> Path | None:
        top = module.partition(".")[0]
        if not top or top in OPAQUE_PACKAGES:
            return None
        root = self.package_root(origin.path)[0]
        key = (module, root)
        if key not in self._found:
            self._found[key] = self._search(module, top, root, origin.path.parent)
        return self._found[key]

    def _search(self, module: str, top: str, root: Path, folder: Path) -> Path | None:
        candidates = [root, folder, *self.roots, *(r / "src" for r in self.roots)]
        if top not in _STANDARD_LIBRARY:
            candidates += self.libraries
        relative = Path(*module.split("."))
        for base in dict.fromkeys(candidates):
            for path in (base / relative.parent / (relative.name + ".py"), base / relative / "__init__.py"):
                if self._exists(path):
                    return path
        return None

    def _exists(self, path: Path) -> bool:
        known = self._scopes.get(path)
        if known is not None:
            return True
        if path not in self._is_file:
            try:
                self._is_file[path] = path.is_file()
            except OSError:
                self._is_file[path] = False
        return self._is_file[path]

    def package_root(self, path: Path) -> tuple[Path, str]:
        """The folder from which `path` is imported, and its dotted module name."""
        folder = path.parent
        if folder not in self._package_roots:
            names: list[str] = []
            current = folder
            while self._exists(current / "__init__.py") and current.parent != current:
                names.insert(0, current.name)
                current = current.parent
            self._package_roots[folder] = (current, ".".join(names))
        root, package = self._package_roots[folder]
        stem = [] if path.stem == "__init__" else [path.stem]
        return root, ".".join([*([package] if package else []), *stem])

    def _make(self, document: Document) -> ModuleScope:
        _, name = self.package_root(document.path)
        return ModuleScope(document, self, name, document.path.stem == "__init__")

    def adopt(self, path: Path) -> None:
        """Take the package of `path` as the user's own, wherever it lies."""
        self._own.add(self._home(path))
        self._is_library.clear()

    def is_library(self, path: Path) -> bool:
        """Whether `path` is installed code that is not the user's own: followed with less effort, and never reported on."""
        known = self._is_library.get(path)
        if known is None:
            installed = any(
                path.is_relative_to(library) for library in self.libraries
            ) or not _INSTALLED.isdisjoint(path.parts)
            known = self._is_library[path] = installed and self._home(path) not in self._own
        return known

    def _home(self, path: Path) -> Path:
        """The folder or file that stands for the top-level package of `path`."""
        root, name = self.package_root(path)
        return root / name.partition(".")[0]


def _read_from_disk(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MAX_SOURCE_BYTES:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
