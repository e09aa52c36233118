"""Python's parser, safe to call from several threads."""

from __future__ import annotations

import ast
import threading
from typing import Literal, overload

_ATTEMPTS = 5
_lock = threading.RLock()


@overload
def parse_python(text: str, filename: str = ..., mode: Literal["exec"] = ...) -> ast.Module: ...


@overload
def parse_python(text: str, filename: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...


def parse_python(
    text: str, filename: str = "<unknown>", mode: Literal["exec", "eval"] = "exec"
) -> ast.Module | ast.Expression:
    """`ast.parse(text, filename, mode)`. Raises SyntaxError, ValueError and RecursionError as that does.

    CPython 3.11 and 3.12 keep the depth of the tree that is being built in one place for the whole interpreter: where
    another thread parses in between, a good text ends in `SystemError: AST constructor recursion depth mismatch`.
    """
    with _lock:
        for _ in range(_ATTEMPTS):
            try:
                return ast.parse(text, filename, mode)  # type: ignore[return-value]
            except SystemError:
                continue  # a library's own call of the parser, which knows of no lock, came in between
    raise RecursionError("Python's parser was disturbed by other threads")
