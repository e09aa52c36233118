"""A pattern matcher of the sort that needs no inference: the scale for what inference adds."""

from __future__ import annotations

import ast
import time
from pathlib import Path

from tests.real.corpus import Sources
from tests.real.score import Checked, Error

REDUCTIONS = {"sum", "any", "all", "max", "min", "mean", "item", "isnan", "equal", "allclose"}
CALLS = {"item", "numpy", "id"}


def check_by_pattern(base: Path, targets: list[str], mode: str) -> Checked:
    """Flag tests that call a reduction, `.data`, `.item()`, `.numpy()`, `id()`, `try`; not in `__init__`."""
    began = time.perf_counter()
    sources = Sources(base)
    errors = []
    for target in targets:
        path = base / target
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = file.relative_to(base).as_posix()
            text = sources.text(base, name)
            if text and text.tree:
                errors += [Error(name, line, line, "PATTERN", what) for line, what in matches(text.tree)]
    return Checked(errors, time.perf_counter() - began)


def matches(tree: ast.Module) -> list[tuple[int, str]]:
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) and calls_any(
                node.test, REDUCTIONS
            ):
                found.append((node.lineno, "test that calls a reduction"))
            elif isinstance(node, ast.Attribute) and node.attr == "data":
                found.append((node.lineno, ".data"))
            elif isinstance(node, ast.Call) and called_name(node) in CALLS:
                found.append((node.lineno, f"{called_name(node)}()"))
            elif isinstance(node, ast.Try):
                found.append((node.lineno, "try"))
    return found


def called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def calls_any(test: ast.expr, names: set[str]) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node) in names for node in ast.walk(test))
