"""The dynamic dims that are proposed come from how a model uses what it takes, and so do their ranges."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import found


@pytest.mark.parametrize(
    ("first", "shapes"),
    [
        ("nn.Linear(8, 8)", "{0: Dim('batch', min=1, max=64)}"),
        (
            "nn.Embedding(50, 8)",
            "{0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}",
        ),
        (
            "nn.TransformerEncoderLayer(8, 2, batch_first=True)",
            "{0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}",
        ),
        ("nn.LSTM(8, 8, batch_first=True)", "{0: Dim('batch', min=1, max=64)}"),
        (
            "nn.Sequential(nn.Conv1d(4, 8, 3))",
            "{0: Dim('batch', min=1, max=64), 2: Dim('sequence', min=16, max=128)}",
        ),
        ("nn.Conv2d(3, 8, 3)", "{0: Dim('batch', min=1, max=64)}"),
    ],
)
def test_dynamic_dims_come_from_use(tmp_path: Path, first: str, shapes: str) -> None:
    [info] = found(
        tmp_path,
        f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {first}
    def forward(self, x, scale: float):
        return self.first(x) * scale
""",
    )
    assert info.dynamic_shapes == f"{{'x': {shapes}, 'scale': None}}"


def test_positions_end_the_range_of_a_sequence(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        """
class Net(nn.Module):
    def __init__(self, dim=8, max_length=40):
        super().__init__()
        self.tokens = nn.Embedding(50, dim)
        self.positions = nn.Parameter(torch.zeros(1, 24, dim))
    def forward(self, ids, mask):
        return (self.tokens(ids) + self.positions[:, : ids.shape[1]]) * mask

if __name__ == "__main__":
    net = Net()
    net(torch.ones(2, 6, dtype=torch.long), mask=torch.ones(2, 6, 1))
""",
    )
    assert info.dynamic_shapes == (
        "{'ids': {0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=24)}, "
        "'mask': {0: Dim('batch', min=1, max=64)}}"
    )


def test_what_belongs_to_edges_has_as_many_rows(tmp_path: Path) -> None:
    [info] = found(
        tmp_path,
        """
class Net(nn.Module):
    def __init__(self, nodes=5, edges=3):
        super().__init__()
        self.node, self.edge = nn.Linear(nodes, 4), nn.Linear(edges, 4)
    def forward(self, x, edge_index, edge_attr):
        row, col = edge_index
        h = self.node(x)
        return torch.zeros_like(h).index_add(0, row, h[col] + self.edge(edge_attr))
""",
    )
    assert info.proposals[0].inputs == "(torch.randn(2, 5), torch.randint(0, 2, (2, 8)), torch.randn(8, 3),)"
    assert info.dynamic_shapes == (
        "{'x': {0: Dim('batch', min=1, max=64)}, 'edge_index': {1: Dim('edges', min=2, max=128)}, "
        "'edge_attr': {0: Dim('edges', min=2, max=128)}}"
    )


def test_dims_of_a_dict_of_inputs_and_of_a_graph(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
    def forward(self, {names}):
        return self.words({used})

if __name__ == "__main__":
    Net()({given})
"""
    given = "{'ids': torch.ones(2, 6, dtype=torch.long), 'lengths': torch.full((2,), 6)}"
    [keyed] = found(tmp_path, text.format(names="batch", used="batch['ids']", given=given))
    assert keyed.dynamic_shapes == (
        "{'batch': {'ids': {0: Dim('batch', min=1, max=64), 1: Dim('sequence', min=2, max=128)}, "
        "'lengths': {0: Dim('batch', min=1, max=64)}}}"
    )
    given = "torch.ones(5, 4), torch.ones(5, 5), torch.randint(0, 5, (2, 7))"
    [graph] = found(tmp_path, text.format(names="x, adj, edge_index", used="edge_index", given=given))
    assert graph.dynamic_shapes == (
        "{'x': None, 'adj': None, 'edge_index': {1: Dim('edges', min=2, max=128)}}"
    )
