"""Sizes that an export call declares: EXL412 to EXL420 on the code around the model. Every text defines `program()`."""

from __future__ import annotations


def _exported(forward: str, call: str, parameters: str = "x") -> str:
    """A file with a Module of that forward, and `program()` with those statements."""
    body = "\n".join(f"        {line}" for line in forward.strip("\n").splitlines())
    main = "\n".join(f"    {line}" for line in call.strip("\n").splitlines())
    return f"""import torch
from torch import nn
from torch.export import Dim, export


def centred(rows):
    if rows.size(0) >= 8:
        return rows - rows.mean(0)
    return rows


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, {parameters}):
{body}


def program():
{main}
"""


_ONE = 'return export(M(), (torch.randn(4, 4),), dynamic_shapes={"x": {0: Dim("rows", min=2, max=64)}})'
_TWO = """
rows, lines = Dim("rows"), Dim("lines")
return export(M(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=({0: rows}, {0: lines}))
"""

MUST: dict[str, list[str]] = {
    "EXL418": [
        _exported("return x * y", _TWO, "x, y"),
        _exported("z = x + 1\nreturn z - 2 * y", _TWO, "x, y"),
    ],
    "EXL419": [
        _exported("return centred(x)", _ONE),
        _exported("return x * 2 if x.shape[0] < 32 else x", _ONE),
        _exported("n, d = x.shape\nwhile n > 10:\n    n = n - 1\nreturn x * n", _ONE),
        _exported("y = x * 2\nif 16 <= y.shape[0]:\n    y = y + 1\nreturn y", _ONE),
        _exported("assert x.shape[0] <= 32\nreturn x * 2", _ONE),
    ],
    "EXL420": [
        _exported(
            "return x * 2",
            "made = export(M(), (torch.randn(2, 4),))\nrun = made.module()\nrun(torch.ones(3, 4))\nreturn made",
        ),
    ],
    "EXL413": [
        _exported(
            "return x * 2",
            'x = torch.randn(1, 4)\nreturn export(M(), (x,), dynamic_shapes={"x": {0: Dim("rows")}})',
        ),
    ],
}

MUST_NOT: dict[str, list[str]] = {
    "EXL418": [
        _exported(
            "return x * y",
            'rows = Dim("rows")\nreturn export(M(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=({0: rows}, {0: rows}))',
            "x, y",
        ),
        _exported("return x.sum(0) * y.sum(0)", _TWO, "x, y"),
        _exported("return x.sum(0) + y", _TWO, "x, y"),
        _exported("return x * self.scale, y + 1", _TWO, "x, y"),
        _exported(
            "return x + y",
            "either = (torch.randn(3, 4), torch.randn(3, 4))\n"
            "return export(M(), either, dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))",
            "x, y",
        ),
    ],
    "EXL419": [
        _exported("assert x.shape[0] <= 64\nreturn x * 2", _ONE),
        _exported("if x.shape[0] == 1:\n    return x\nreturn x * 2", _ONE),
        _exported("if x.shape[1] > 3:\n    x = x + 1\nreturn x * 2", _ONE),
        _exported("if x.shape[0] > 100:\n    raise ValueError(x.shape[0])\nreturn x * 2", _ONE),
        _exported("y = x.t()\nif y.shape[0] > 3:\n    x = x + 1\nreturn x", _ONE),
        _exported("return x.new_zeros(x.shape[0] * 2, 4)", _ONE),
        _exported("return torch.cond(x.shape[0] > 8, lambda x: x * 2, lambda x: x + 1, (x,))", _ONE),
        _exported("return centred(x)", "return export(M(), (torch.randn(4, 4),))"),
        _exported(
            "return centred(x)",
            "return export(M(), (torch.randn(4, 4),), dynamic_shapes={'x': {0: Dim.AUTO}})",
        ),
        _exported(
            "return centred(x)",
            "return export(M(), (torch.randn(10, 4),), dynamic_shapes={'x': {0: Dim('rows', min=8)}})",
        ),
    ],
    "EXL420": [
        _exported(
            "return x * 2",
            "made = export(M(), (torch.randn(2, 4),))\nmade.module()(torch.ones(2, 4))\nreturn made",
        ),
        _exported(
            "return x * 2",
            "made = export(M(), (torch.randn(2, 4),), dynamic_shapes=({0: Dim.AUTO},))\nmade.module()(torch.ones(3, 4))\nreturn made",
        ),
        _exported(
            "return x * 2",
            "made = export(M(), (torch.randn(2, 4),))\n"
            "try:\n    made.module()(torch.ones(3, 4))\nexcept Exception:\n    pass\nreturn made",
        ),
    ],
    "EXL413": [
        _exported("return x * 2", "x = torch.randn(1, 4)\nreturn export(M(), (x,))"),
        _exported(
            "return x * 2",
            "given = (torch.randn(1, 4),)\nreturn export(M(), given, dynamic_shapes={'x': {0: Dim.STATIC, 1: Dim('columns')}})",
        ),
        _exported(
            "return x * 2",
            'x = torch.randn(1, 4)\nx = torch.cat([x, x])\nreturn export(M(), (x,), dynamic_shapes={"x": {0: Dim("rows")}})',
        ),
    ],
}
