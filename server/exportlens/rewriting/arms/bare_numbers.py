"""Numbers that are read out of tensors, `count = count.item()`, and that an arm behind takes in as they are: torch.cond takes no such."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import given_to_operators
from exportlens.rewriting.code.names import arguments, bound, reads
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def refuse_bare_numbers(before: str, text: str) -> None:
    """Raise Refused where an arm of `text` takes in such a number, and none did so in `before`, of which it was made."""
    if ".item()" not in text:
        return
    found = sorted(set(_taken_in(text)) - set(_taken_in(before)))
    if found:
        raise Refused(f"`{found[0]}` is a number read out of tensor data, which torch.cond takes in nowhere")


def _taken_in(text: str) -> Iterator[str]:
    for function in walk(parse_python(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        given = given_to_operators(function)
        for block in _blocks(function):
            numbers: set[str] = set()
            for each in block:
                if isinstance(each, ast.FunctionDef) and each.name in given:
                    own = {one.arg for one in arguments(each.args)} | set(bound(each.body))
                    yield from numbers & (reads(each.body) - own)
                numbers -= set(bound(each))
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                    name = each.targets[0].id
                    numbers |= {name} if ast.unparse(each) == f"{name} = {name}.item()" else set()


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    yield function.body
    for each in walk(function):
        if isinstance(each, (ast.For, ast.If)):
            yield each.body
            yield each.orelse
