"""Lists that a loop fills where data says, asked for their items while it does: random programs, mended, give what they gave."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from tests.rewriting.fixing_all import mend

_PROGRAMS = 6
_INPUTS = [(1.0, 0.0), (0.3, 0.0), (2.0, 0.5), (0.0, 0.0), (1.0, -1.0), (3.0, 0.0)]


class _Program:
    """One module that fills `kept` with rows, or with their numbers."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.numbers, self.started = draw.random() < 0.4, draw.random() < 0.4
        self.last = "x[kept[-1]]" if self.numbers else "kept[-1]"

    def text(self) -> str:
        draw = self.draw
        lines = self._block(0)
        while not any("kept" in each and "if" in each for each in lines):
            lines = self._block(0)
        body = "".join(f"            {each}\n" for each in lines)
        begun = "[]" if not self.started else "[0]" if self.numbers else "[self.lin(x[0])]"
        guard = "" if self.started else "        if not kept:\n            return x.sum(0), 0\n"
        if self.numbers:
            result = draw.choice(
                ["x[kept].sum(0)", "x[kept[-1]] - x[kept[0]]", "x[kept].mean(0) + x[kept[-1]]"]
            )
        else:
            result = draw.choice(
                ["torch.stack(kept).sum(0)", "kept[-1] - kept[0]", "torch.stack(kept).mean(0) + kept[-1]"]
            )
        return (
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(3, 3)\n\n    def forward(self, x):\n"
            f"        kept = {begun}\n        for i in range({int(self.started)}, x.size(0)):\n{body}{guard}        return {result}, len(kept)\n"
        )

    def _question(self) -> str:
        draw, limit = self.draw, self.draw.choice([0.0, 0.7, 1.4])
        asked = draw.choice(
            [
                f"x[i].sum() > {limit}",
                f"(x[i] - {self.last}).norm() > {limit + 0.8}",
                f"{self.last}.sum() < x[i].sum()",
            ]
        )
        if "kept" not in asked:
            return f"len(kept) < {draw.randint(1, 4)} and {asked}" if draw.random() < 0.3 else asked
        guards = ["kept and", "len(kept) > 0 and", "not kept or", "len(kept) == 0 or"]
        return asked if self.started else f"{draw.choice(guards)} {asked}"

    def _block(self, depth: int) -> list[str]:
        draw, lines = self.draw, list[str]()
        added = (
            "kept.append(i)"
            if self.numbers
            else draw.choice(["kept.append(x[i])", "kept.append(self.lin(x[i]))"])
        )
        for _ in range(draw.randint(1, 2)):
            kind = draw.random()
            if kind < 0.4 or depth > 1:
                lines.append(added)
            elif kind < 0.5 and depth:
                return [*lines, draw.choice(["continue", "break"])]
            else:
                lines += [f"if {self._question()}:", *(f"    {each}" for each in self._block(depth + 1))]
                if draw.random() < 0.4:
                    lines += ["else:", *(f"    {each}" for each in self._block(depth + 1))]
        return lines


def _result(model: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """What the model gives; None where it raises."""
    try:
        row, count = model(x)
    except (IndexError, RuntimeError):
        return None
    return row, torch.as_tensor(count)


@pytest.mark.parametrize("seed", range(2))
def test_mended_programs_give_what_they_gave(seed: int) -> None:
    draw, tried = random.Random(seed), 0
    while tried < _PROGRAMS:
        text = _Program(draw).text()
        mended = mend(text)
        if mended.text == text or mended.refusals:
            continue
        tried += 1
        models = []
        for each in (text, mended.text):
            namespace: dict[str, Any] = {}
            exec(compile(each, "model.py", "exec"), namespace)
            torch.manual_seed(0)
            models.append(namespace["M"]())
        torch.manual_seed(seed)
        for scale, shift in _INPUTS:
            x = torch.randn(5, 3) * scale + shift
            before, after = _result(models[0], x), _result(models[1], x)
            assert (before is None) is (after is None), mended.text
            if before is not None and after is not None:
                torch.testing.assert_close(after, before, msg=mended.text)
