"""Arguments of which nothing tells whether they are numbers of Python or tensors: what follows if they are tensors is a remark."""

from __future__ import annotations

from pathlib import Path

import pytest
from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Finding, Severity

HEAD = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("table", torch.zeros(9))

"""


def findings(tmp_path: Path, forward: str) -> list[Finding]:
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    engine.update(path, HEAD + forward)
    return engine.check(path)


@pytest.mark.parametrize(
    ("test", "codes"),
    [
        ("if gate > 0.5:\n            x = self.second(x)", ["EXL101"]),
        ("x = self.first(x) if 0 == gate else x", ["EXL105"]),
        ("if self.training or gate < 3:\n            x = x + self.table[gate]", ["EXL101", "EXL411"]),
        ("x = self.helper(x, gate)", ["EXL101"]),
        ("x = x * next((each for each in (0.5, 2.0) if each > gate), 1.0)", ["EXL107"]),
        ("x = x * next((each for each in (0.5, 2.0) if gate < each), 1.0)", ["EXL107"]),
        ("if gate[0] > 0.5 or gate[1] < 0:\n            x = self.second(x)", ["EXL101"]),
        (
            "for low, high in gate:\n            if low < high:\n                x = self.second(x)",
            ["EXL101"],
        ),
        ("for layer in [self.first, self.second][: int(gate)]:\n            x = layer(x)", ["EXL401"]),
        ("x = x / float(gate)", ["EXL401"]),
        ("other, gate = 1, int(gate)\n        x = x[:gate] * other", ["EXL401"]),
        ("y, x0 = gate\n        x[y, x0] = 1", ["EXL411"]),
        ("for use in gate:\n            if not use:\n                x = self.second(x)", ["EXL101"]),
        ("for i, n in enumerate(gate):\n            x[i, :n] = 0", ["EXL411"]),
        (
            "for box in gate:\n            if int(box[0] * 4) >= int(box[1] * 4):\n                x = self.second(x)",
            ["EXL401", "EXL101", "EXL401"],
        ),
    ],
)
def test_what_tests_compare_may_be_a_tensor(tmp_path: Path, test: str, codes: list[str]) -> None:
    helper = "    def helper(self, x, value):\n        if value > 1:\n            return x + 1\n        return x\n\n"
    forward = f"    def forward(self, x, gate):\n        {test}\n        return self.first(x)\n"
    found = findings(tmp_path, helper + forward)
    assert [each.code for each in found] == codes
    assert {each.severity for each in found} == {Severity.INFORMATION}
    assert all(any("Only where `gate` is a tensor" in note for note in each.notes) for each in found)


@pytest.mark.parametrize(("default", "codes"), [("None", ["EXL101"]), ("()", [])])
def test_what_may_be_left_out_may_be_a_tensor(tmp_path: Path, default: str, codes: list[str]) -> None:
    body = "if gates is not None:\n            for gate in gates:\n                if gate > 0.5:\n                    x = self.second(x)"
    found = findings(
        tmp_path,
        f"    def forward(self, x, gates={default}):\n        {body}\n        return self.first(x)\n",
    )
    assert [each.code for each in found] == codes
    assert {each.severity for each in found} <= {Severity.INFORMATION}


def test_what_may_be_left_out_and_is_compared_is_an_option(tmp_path: Path) -> None:
    body = "if gate is not None and gate > 0.5:\n            x = self.second(x)"
    assert (
        findings(
            tmp_path, f"    def forward(self, x, gate=None):\n        {body}\n        return self.first(x)\n"
        )
        == []
    )


def test_items_compared_under_a_name_may_be_of_a_tensor(tmp_path: Path) -> None:
    """What is called like a number, and has items, is a list of numbers or a tensor."""
    body = "for i in range(4):\n            n = n_parts[i]\n            if n > 1:\n                x = self.second(x)"
    found = findings(
        tmp_path, f"    def forward(self, x, n_parts):\n        {body}\n        return self.first(x)\n"
    )
    assert [(each.code, each.severity) for each in found] == [("EXL101", Severity.INFORMATION)]


@pytest.mark.parametrize(
    ("parameter", "body"),
    [
        ("gate: float", "if gate > 0.5:\n            x = self.second(x)"),
        ("gate=0.5", "if gate > 0.5:\n            x = self.second(x)"),
        ("num_steps", "if num_steps > 2:\n            x = self.second(x)"),
        ("gate", "if gate:\n            x = self.second(x)"),
        ("gate", "if gate == 'wide':\n            x = self.second(x)"),
        ("gate", "if gate > 2:\n            x = x[:, :gate]"),
        ("gate", "if gate > 2:\n            for _ in range(gate):\n                x = self.second(x)"),
        ("gate", "rounds = gate + 1\n        for _ in range(rounds):\n            x = self.second(x)"),
        ("gate", "for _ in range(gate * 2):\n            x = self.second(x)"),
        ("gate", "x = self.second(x[: int(gate * x.shape[0])])"),
        ("gate", "for width in gate:\n            if width > 1:\n                x = x[:, :width]"),
        (
            "gate",
            "for kind, size in gate:\n            if kind == 'wide' and size > 1:\n                x = self.second(x)",
        ),
    ],
)
def test_what_is_told_or_used_otherwise_is_not(tmp_path: Path, parameter: str, body: str) -> None:
    assert (
        findings(
            tmp_path,
            f"    def forward(self, x, {parameter}):\n        {body}\n        return self.first(x)\n",
        )
        == []
    )


def test_the_parts_of_a_point_may_be_numbers_of_a_tensor(tmp_path: Path) -> None:
    body = "x = x.clone()\n        x[click[0], click[1]] = 1\n        return x[:, center[0]]\n"
    found = findings(tmp_path, f"    def forward(self, x, click, center):\n        {body}")
    assert [(each.code, each.severity) for each in found] == [("EXL411", Severity.INFORMATION)] * 2


@pytest.mark.parametrize(
    "body", ["row, col = points\n        x[row, col] = 1", "x[points[0], points[1]] = 1", "x[click] = 1"]
)
def test_index_tensors_of_several_are_left(tmp_path: Path, body: str) -> None:
    body = f"x = x.clone()\n        {body}\n        return x\n"
    assert findings(tmp_path, f"    def forward(self, x, points, click):\n        {body}") == []


def test_what_is_found_anyway_stays_an_error(tmp_path: Path) -> None:
    tests = ["if x.mean() > gate:", "    x = x + 1", "if gate > 1:", "    x = -x", "return x"]
    forward = "\n        ".join(["    def forward(self, x, gate):", *tests]) + "\n"
    found = findings(tmp_path, forward)
    assert [(each.code, each.severity) for each in found] == [
        ("EXL101", Severity.ERROR),
        ("EXL101", Severity.INFORMATION),
    ]


_ROWS = "    def forward(self, x, edges: torch.Tensor):\n        out = torch.zeros_like(x)\n        {}\n        return out\n"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("for a, b in edges:\n            out[b] = x[0]", "`b`"),
        ("for a, b in edges:\n            out = out + x[a]", "`a`"),
        ("for k, (a, b) in enumerate(edges):\n            out[k, a] = 1", "`a`"),
        ("a = edges[0, 1]\n        out[a] = 1", "`a`"),
        ("for each in edges:\n            out[each] += 1", "`each`"),
    ],
)
def test_an_item_of_unknown_rank_may_be_one_number(tmp_path: Path, body: str, named: str) -> None:
    found = findings(tmp_path, _ROWS.format(body))
    assert {(each.code, each.severity) for each in found} == {("EXL411", Severity.INFORMATION)}
    assert all(any(f"Only where {named} has no dimensions" in note for note in each.notes) for each in found)


@pytest.mark.parametrize(
    "body",
    [
        "a, b = edges\n        out[a, b] = 1",
        "a, b = edges[0], edges[1]\n        out = out.index_add(0, b, x[a])",
        "for each in edges:\n            out[each] = 1",
        "for each in edges:\n            out = out + x[each].sum()",
        "a = edges[:, 0]\n        out[a] = 1",
    ],
)
def test_index_tensors_and_masks_are_left(tmp_path: Path, body: str) -> None:
    assert findings(tmp_path, _ROWS.format(body)) == []


@pytest.mark.parametrize(
    ("items", "codes"),
    [
        ("best.tolist()", ["EXL110"]),
        ("best.tolist(), key=lambda each: each > 1", ["EXL110"]),
        ("range(3)", []),
        ("[each.shape for each in best]", []),
    ],
)
def test_runs_of_equal_numbers_are_found_by_data(tmp_path: Path, items: str, codes: list[str]) -> None:
    head = "    def forward(self, x: torch.Tensor):\n        best = x.argmax(1)\n"
    body = f"        return self.first(x), len([1 for _ in itertools.groupby({items})])\n"
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    engine.update(path, "import itertools\n" + HEAD + head + body)
    assert [each.code for each in engine.check(path)] == codes


@pytest.mark.parametrize(
    ("read", "codes"), [("int(n)", ["EXL401"]), ("max(int(n), 0)", ["EXL401"]), ("n", []), ("2 * n", [])]
)
def test_counts_that_are_gone_through_where_they_are_handed_on(
    tmp_path: Path, read: str, codes: list[str]
) -> None:
    inner = (
        "    def spread(self, rows, counts):\n        parts = []\n        for row, n in zip(rows, counts):\n"
    )
    inner += f"            parts.append(row.expand({read}, -1))\n        return torch.cat(parts, 0)\n"
    found = findings(
        tmp_path, inner + "\n    def forward(self, x, counts):\n        return self.spread(x, counts)\n"
    )
    assert [each.code for each in found] == codes
    assert all(each.severity is Severity.INFORMATION for each in found)
