"""Loops without their `break` and `continue` do what they did: random ones, run side by side."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest
import torch
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.lists.stopped_fills import without_breaks

_PROGRAMS = 60


def program(draw: random.Random) -> str:
    numbers = iter(range(1, 10_000))

    def block(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(draw.randint(1, 3)):
            kind = draw.random()
            if kind < 0.35 or depth > 3:
                lines.append(f"log.append({next(numbers)})")
            elif kind < 0.55:
                return [*lines, "break" if kind < 0.45 else "continue"]
            else:
                lines += [f"if decide(i, {next(numbers)}):", *(f"    {each}" for each in block(depth + 1))]
                if draw.random() < 0.6:
                    lines += ["else:", *(f"    {each}" for each in block(depth + 1))]
        return lines

    body = "\n".join(f"        {each}" for each in block(0))
    return f"def f(rounds, decide):\n    log = []\n    for i in range(rounds):\n{body}\n    return log\n"


@pytest.mark.parametrize("seed", range(4))
def test_rounds_that_go_on_and_do_nothing_more(seed: int) -> None:
    draw, tried = random.Random(seed), 0
    while tried < _PROGRAMS:
        text = program(draw)
        source = Source(text)
        question = next((each for each in ast.walk(source.tree) if isinstance(each, ast.If)), None)
        found = None if question is None else without_breaks(source, question, "torch")
        if found is None:
            continue
        tried += 1
        before: dict[str, Any] = {}
        after: dict[str, Any] = {"torch": torch}
        exec(text, before)
        exec(found[0].text, after)
        for salt in range(4):

            def decide(i: int, number: int, salt: int = salt) -> bool:
                return random.Random(10_000 * salt + 100 * number + i).random() < 0.5

            assert before["f"](4, decide) == after["f"](4, decide), found[0].text
        assert "break" not in found[0].text
