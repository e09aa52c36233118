"""Imports: how a document calls a module, and adding an import once."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Mapping

from exportlens.finding import Edit, Position, Range
from exportlens.inference import knowledge
from exportlens.inference.names import offered_by
from exportlens.source.document import Document


def imported(statements: Iterable[ast.stmt]) -> dict[str, str]:
    """Local name -> qualified name, for the imports among `statements` (those in `try` and `if` included)."""
    names: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname:
                    names[alias.asname] = alias.name
                else:
                    names[alias.name.split(".")[0]] = alias.name.split(".")[0]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                names[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
                if alias.name == "*":
                    names |= _offered(statement.module or "")
        elif isinstance(statement, (ast.If, ast.Try)):
            for _, block in ast.iter_fields(statement):
                if isinstance(block, list):
                    names |= imported(each for each in block if isinstance(each, ast.stmt))
    return names


@functools.lru_cache(maxsize=32)
def _offered(module: str) -> dict[str, str]:
    """What `from module import *` binds, as far as a module of torch is known to offer it."""
    known = (*knowledge.function_names(), *knowledge.module_names(), "torch.autograd.Variable")
    parts = (each.rpartition(".") for each in known)
    return {
        name: f"{module}.{name}" for owner, _, name in parts if owner == module and offered_by(module, name)
    }


def document_imports(document: Document) -> dict[str, str]:
    """Local name -> qualified name for the top-level imports of `document`."""
    names: dict[str, str] = {}
    for placed in document.placed:
        names |= imported(placed.chunk.body)
    return names


def spelled(names: Mapping[str, str], module: str) -> str | None:
    """How code that has imported `names` writes `module` ("torch" -> "th"), None where it is not imported."""
    return next((local for local, qualified in names.items() if qualified == module), None)


def import_edit(document: Document, line: str) -> Edit:
    """Insert the import `line` behind the document's docstring and `__future__` imports, before its other
    imports."""
    newline = "\r\n" if "\r\n" in document.text else "\n"
    at = 0
    for placed in document.placed:
        end = placed.first_line + max(1, len(placed.chunk.lines))
        statement = placed.chunk.body[0] if placed.chunk.body else None
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if is_docstring or is_future:
            at = end
            continue
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            at = placed.first_line
        break
    lines = document.text.splitlines()
    if at == 0:
        while at < len(lines) and lines[at].startswith("#"):
            at += 1
    position = Position(at, 0)
    # As formatters have it: two empty lines before what is defined at the top level.
    defined = at < len(lines) and re.match(r"@|(async\s+def|def|class)\b", lines[at]) is not None
    return Edit(Range(position, position), line + newline * (3 if defined else 1))
