"""Sizes that data decides, met by tensors whose sizes it does not decide: torch then takes the known ones."""

from __future__ import annotations

from tests.inference.cases.case import X2, Cases

CASES = Cases()

CASES(
    "open-rows-plus-whole",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6).eval()

    def forward(self, x: torch.Tensor):
        kept = x[x.sum(1) > -100.0]
        both = self.norm(kept + x)
        if both.shape[0] > 2:
            both = both * 2
        return both
""",
)
CASES(
    "open-mask-where-maximum",
    X2,
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x.sum(1) > -100.0]
        filled = torch.where(kept > 0, x, kept)
        filled = torch.maximum(filled, x.masked_fill(kept > 1, 0.5))
        return filled * 2 if filled.shape[0] > 2 else filled
""",
)
CASES(
    "open-rows-standardized",
    X2,
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x.sum(1) > -100.0]
        even = (kept - kept.mean(0, keepdim=True)) / (kept.std(0, keepdim=True) + 1e-5)
        if even.shape[0] > 2:
            even = even * 2
        return even
""",
)
CASES(
    "frame-mask-of-longest",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4).eval()

    def forward(self, frames, lengths):
        longest = torch.max(lengths).item()
        mask = torch.arange(longest).unsqueeze(0) < lengths.unsqueeze(1)
        frames = frames * mask.unsqueeze(-1)
        return self.norm(frames.transpose(1, 2))
""",
)
CASES(
    "rows-repeated-as-often-as-the-data-says",
    "(torch.randn(1, 4), torch.tensor([2, 3]))",
    """
class M(nn.Module):
    def forward(self, start: torch.Tensor, counts: torch.Tensor):
        steps = counts.max().item()
        paths = start.repeat(steps, 1)
        if paths.shape[0] > 2:
            paths = paths * 2
        return paths.sum(0)
""",
)
CASES(
    "rows-expanded-to-what-the-data-says",
    "(torch.randn(4, 4), torch.tensor([4, 3]))",
    """
class M(nn.Module):
    def forward(self, table: torch.Tensor, counts: torch.Tensor):
        steps = counts.max().item()
        paths = table.expand(steps, 4)
        if paths.shape[0] > 2:
            paths = paths * 2
        return paths.sum(0)
""",
)
CASES(
    "lists-of-what-was-taken-from-what-was-found",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        first = torch.nonzero(x)[0].tolist()
        counts = torch.bincount((x > 0).long().flatten(), minlength=2)
        known = counts[:2]
        both = known.tolist()
        best = counts.topk(2).indices.tolist()
        some = counts.index_select(0, torch.arange(2)).tolist()
        return x * first[1] + both[0] + best[0] + some[1] + counts.narrow(0, 0, 2).tolist()[1]
""",
)
CASES(
    "list-of-all-that-was-found-by-name",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        rows, columns = torch.where(x > 0)
        chosen = columns.cpu()
        return x + len(rows.tolist())
""",
)
CASES(
    "list-of-a-sum-at-places-found",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        rows = torch.nonzero(x[:, 0] > 0).squeeze(1)
        counts = torch.zeros(4, dtype=torch.long).index_add(0, rows, torch.ones_like(rows))
        return x * counts.tolist()[0]
""",
)
CASES(
    "step-of-a-slice-is-a-tensor",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        step = x.shape[1] // ((x > 100).sum() + 2)
        return x[:, ::step].sum()
""",
)
CASES(
    "shape-of-what-is-masked-is-asserted",
    "(torch.rand(4, 3),)",
    """
class M(nn.Module):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size
        self.kept = ~torch.eye(batch_size, dtype=torch.bool)

    def forward(self, x):
        scores = (x @ x.T)[self.kept].view(self.batch_size, -1)
        assert scores.shape == (self.batch_size, self.batch_size - 1), "not as many as expected: " + str(scores.shape)
        return scores.sum()
""",
    "(4,)",
)
CASES(
    "shape-of-what-is-masked-is-asserted-without-a-message",
    "(torch.rand(4, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.eye(4, dtype=torch.bool)

    def forward(self, x):
        scores = (x @ x.T)[self.kept].view(2, -1)
        assert scores.shape == (2, 2)
        return scores.sum()
""",
)
CASES(
    "rows-are-repeated-by-data",
    "(torch.rand(2, 3, 4), torch.tensor([[1, 2, 1], [2, 1, 1]]))",
    """
class M(nn.Module):
    def forward(self, x, durations):
        lengths = []
        for row, times in zip(x, durations):
            parts = [each.expand(times[i].item(), -1) for i, each in enumerate(row)]
            lengths.append(torch.cat(parts, 0).shape[0])
        return torch.LongTensor(lengths)
""",
)
CASES(
    "rows-behind-a-cond",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        rows = torch.where(x.sum(1) > 0)[0]

        def if_true():
            return torch.zeros(0, dtype=torch.long)

        def if_false():
            return rows[rows < 3]

        found = torch.cond(x.sum() > 0, if_true, if_false, ())
        return torch.zeros(len(found))
""",
)
CASES(
    "a-row-of-what-was-found-is-as-long-as-the-dimensions-are-many",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        place = torch.nonzero(x > -9.0)[0]
        if len(place) == 2:
            x = x + 1
        return x * place.numel()
""",
)
CASES(
    "what-is-cut-from-found-rows-is-as-long-as-data-says",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        found = x[torch.where(x.sum(1) > 0)[0]][:3, 1:]
        if found.shape[1] == 2:
            x = x + 1
        if len(found) < 3:
            x = x * 2
        return x
""",
)
CASES(
    "found-rows-are-multiplied-with-a-matrix",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        found = torch.eye(6)[torch.where(x.sum(0) > 0)[0]]
        scores = found @ torch.ones(6, 5)
        if scores.shape[1] == 5:
            x = x + 1
        if scores.shape[0] > 2:
            x = x * 2
        return x
""",
)
CASES(
    "found-rows-are-what-a-product-sums-over",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        found = torch.eye(6)[torch.where(x.sum(0) > 0)[0]]
        scatter = torch.mm(found.t(), found)
        if scatter.shape[0] > 2:
            x = x + 1
        return x, scatter
""",
)
CASES(
    "found-rows-are-stacked-beside-each-other",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        found = torch.where(x.sum(1) > 0)[0]
        pairs = torch.stack([found, found + 1], dim=-1)
        if pairs.shape[1] == 2:
            x = x + 1
        if pairs.shape[0] > 1:
            x = x * 2
        return x
""",
)
