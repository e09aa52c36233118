"""Numbers out of tensors, and sizes, slices and indices that depend on data."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, X4, Cases

CASES = Cases()

CASES(
    "length-mask-max-item",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
def sequence_mask(lengths, max_len=None):
    batch_size = lengths.numel()
    max_len = max_len or lengths.max()
    return (torch.arange(0, max_len, device=lengths.device)
            .type_as(lengths)
            .repeat(batch_size, 1)
            .lt(lengths.unsqueeze(1)))


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.Linear(dim, 1)

    def forward(self, memory_bank, memory_lengths=None):
        align = self.attn(memory_bank).squeeze(-1)
        if memory_lengths is not None:
            mask = sequence_mask(memory_lengths, max_len=align.size(-1))
            align = align.masked_fill(~mask, -float('inf'))
        return F.softmax(align, -1)
""",
    "(4,)",
)
CASES(
    "length-mask-no-maxlen",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
def make_pad_mask(lengths, max_len=0):
    assert lengths.ndim == 1, lengths.ndim
    max_len = max(max_len, lengths.max())
    n = lengths.size(0)
    expanded = torch.arange(max_len).expand(n, max_len).to(lengths)
    return expanded >= lengths.unsqueeze(1)


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, x_lens):
        mask = make_pad_mask(x_lens)
        return self.fc(x).masked_fill(mask.unsqueeze(-1), 0)
""",
    "(4,)",
)
CASES(
    "espnet-pad-mask-tolist",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
def make_pad_mask(lengths, xs=None, length_dim=-1):
    if not isinstance(lengths, list):
        lengths = lengths.tolist()
    bs = int(len(lengths))
    if xs is None:
        maxlen = int(max(lengths))
    else:
        maxlen = xs.size(length_dim)
    seq_range = torch.arange(0, maxlen, dtype=torch.int64)
    seq_range_expand = seq_range.unsqueeze(0).expand(bs, maxlen)
    seq_length_expand = seq_range_expand.new(lengths).unsqueeze(-1)
    return seq_range_expand >= seq_length_expand


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, ilens):
        mask = make_pad_mask(ilens)
        return self.fc(x).masked_fill(mask.unsqueeze(-1), 0.0)
""",
    "(4,)",
)
CASES(
    "length-regulator",
    "(torch.randn(2, 3, 4), torch.tensor([[1, 2, 1], [2, 1, 1]]))",
    """
class M(nn.Module):
    def LR(self, x, duration, max_len):
        output = list()
        mel_len = list()
        for batch, expand_target in zip(x, duration):
            expanded = self.expand(batch, expand_target)
            output.append(expanded)
            mel_len.append(expanded.shape[0])
        return pad_sequence(output, batch_first=True), torch.LongTensor(mel_len)

    def expand(self, batch, predicted):
        out = list()
        for i, vec in enumerate(batch):
            expand_size = predicted[i].item()
            out.append(vec.expand(max(int(expand_size), 0), -1))
        return torch.cat(out, 0)

    def forward(self, x, duration, max_len=None):
        return self.LR(x, duration, max_len)
""",
)
CASES(
    "sort-by-length-pack",
    "(torch.randn(2, 5, 4), torch.tensor([3, 5]))",
    """
class M(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.rnn = nn.GRU(opt.input_dim, opt.hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, lens):
        lens, perm_idx = lens.sort(0, descending=True)
        x = x[perm_idx]
        packed = nn.utils.rnn.pack_padded_sequence(self.dropout(x), lens.cpu(), batch_first=True)
        out, h = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        _, unperm = perm_idx.sort(0)
        return out[unperm]
""",
    "(__import__('argparse').Namespace(input_dim=4, hidden=3),)",
)
CASES(
    "slice-by-item",
    "(torch.randn(2, 5, 4), torch.tensor(3))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, n):
        n = n.item()
        return self.fc(x[:, :n])
""",
    "(4,)",
)
CASES(
    "timestep-index-item",
    "(torch.randn(4, 6), torch.randint(0, 10, (4,)))",
    """
class M(nn.Module):
    def __init__(self, dim, n_steps=10):
        super().__init__()
        betas = np.linspace(1e-4, 0.02, n_steps)
        alphas = 1. - betas
        self.register_buffer('alphas_cumprod', torch.tensor(np.cumprod(alphas), dtype=torch.float32))
        self.fc = nn.Linear(dim, dim)

    def extract(self, a, t, x_shape):
        b, *_ = t.shape
        out = a.gather(-1, t)
        return out.reshape(b, *((1,) * (len(x_shape) - 1)))

    def forward(self, x, t):
        return self.fc(x) * self.extract(self.alphas_cumprod, t, x.shape).sqrt()
""",
    "(6,)",
)
CASES(
    "num-nodes-from-batch",
    "(torch.randn(6, 4), torch.tensor([0, 0, 1, 1, 2, 2]))",
    """
def global_mean_pool(x, batch, size=None):
    size = int(batch.max().item() + 1) if size is None else size
    out = x.new_zeros(size, x.size(1))
    count = torch.bincount(batch, minlength=size).clamp(min=1).unsqueeze(1)
    return out.index_add(0, batch, x) / count


class M(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.lin = nn.Linear(in_dim, out_dim)

    def forward(self, x, batch):
        return self.lin(global_mean_pool(x, batch))
""",
    "(4, 2)",
)
CASES(
    "masked-select-view",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, 4, dtype=torch.bool))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b = x.size(0)
        sel = torch.masked_select(x, mask).view(b, -1, x.size(-1))
        return self.fc(sel)
""",
    "(4,)",
)
CASES(
    "masked-rows-through-layer",
    "(torch.randn(6, 4), torch.tensor([True, False, True, True, False, True]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, keep):
        out = torch.zeros_like(x)
        out[keep] = self.fc(x[keep])
        return out
""",
    "(4,)",
)
CASES(
    "moe-route-loop",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, num_experts=3, top_k=2):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])
        self.top_k = top_k

    def forward(self, x):
        logits = self.gate(x)
        weights, selected = torch.topk(logits, self.top_k)
        weights = F.softmax(weights, dim=1, dtype=torch.float).to(x.dtype)
        results = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(selected == i)
            results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(x[batch_idx])
        return results
""",
    "(6,)",
)
CASES(
    "moe-route-skip-empty",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, num_experts=3):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])

    def forward(self, x):
        idx = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token_idx = (idx == e).nonzero(as_tuple=True)[0]
            if token_idx.numel() == 0:
                continue
            out.index_add_(0, token_idx, expert(x[token_idx]))
        return out
""",
    "(6,)",
)
CASES(
    "dispatch-counts-split",
    X2,
    """
class SparseDispatcher(object):
    def __init__(self, num_experts, gates):
        self._gates = gates
        self._num_experts = num_experts
        sorted_experts, index_sorted_experts = torch.nonzero(gates).sort(0)
        _, self._expert_index = sorted_experts.split(1, dim=1)
        self._batch_index = torch.nonzero(gates)[index_sorted_experts[:, 1], 0]
        self._part_sizes = (gates > 0).sum(0).tolist()

    def dispatch(self, inp):
        inp_exp = inp[self._batch_index].squeeze(1)
        return torch.split(inp_exp, self._part_sizes, dim=0)


class M(nn.Module):
    def __init__(self, dim, n=2):
        super().__init__()
        self.n = n
        self.w = nn.Parameter(torch.randn(dim, n))
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])

    def forward(self, x):
        gates = F.relu(x @ self.w)
        d = SparseDispatcher(self.n, gates)
        inputs = d.dispatch(x)
        return [self.experts[i](inputs[i]) for i in range(self.n)]
""",
    "(6,)",
)
CASES(
    "topk-by-ratio-of-size",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim, ratio=0.5):
        super().__init__()
        self.score = nn.Linear(dim, 1)
        self.ratio = ratio

    def forward(self, x):
        n = x.shape[1]
        k = max(int(math.ceil(self.ratio * n)), 1)
        s = self.score(x).squeeze(-1)
        top, idx = s.topk(k, dim=1)
        return torch.gather(x, 1, idx.unsqueeze(-1).expand(-1, -1, x.size(-1))) * torch.tanh(top).unsqueeze(-1)
""",
    "(4,)",
)
CASES(
    "topk-by-count-of-positives",
    "(torch.randn(4, 6), torch.randint(0, 2, (4, 6)))",
    """
class M(nn.Module):
    def __init__(self, neg_ratio=3):
        super().__init__()
        self.neg_ratio = neg_ratio

    def forward(self, pred, gt):
        positive = gt.byte()
        negative = (1 - gt).byte()
        positive_count = int(positive.float().sum())
        negative_count = min(int(negative.float().sum()), int(positive_count * self.neg_ratio))
        loss = F.binary_cross_entropy_with_logits(pred, gt.float(), reduction='none')
        positive_loss = loss * positive.float()
        negative_loss = loss * negative.float()
        negative_loss, _ = torch.topk(negative_loss.view(-1), negative_count)
        return (positive_loss.sum() + negative_loss.sum()) / (positive_count + negative_count + 1e-6)
""",
)
CASES(
    "interpolate-int-scale",
    X4,
    """
class M(nn.Module):
    def __init__(self, scale=1.5):
        super().__init__()
        self.scale = scale
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[2:]
        size = (int(h * self.scale), int(np.ceil(w * self.scale)))
        return self.conv(F.interpolate(x, size=size, mode='bilinear', align_corners=False))
""",
)
CASES(
    "gamma-float",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1))
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return x + float(self.gamma) * self.fc(x)
""",
    "(6,)",
)
CASES(
    "temperature-item",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        scale = self.logit_scale.exp().clamp(max=100).item()
        return self.fc(x) * scale
""",
    "(6,)",
)
CASES(
    "span-slices-from-ids",
    "(torch.randn(2, 5, 4), torch.tensor([[0, 2], [1, 4]]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, hidden, spans):
        out = []
        for i in range(hidden.size(0)):
            start, end = spans[i][0], spans[i][1]
            out.append(hidden[i, start:end].mean(0))
        return self.fc(torch.stack(out))
""",
    "(4,)",
)
CASES(
    "gather-last-step",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        idx = (lengths - 1).view(-1, 1).expand(len(lengths), out.size(2)).unsqueeze(1)
        return out.gather(1, idx).squeeze(1)
""",
    "(4, 6)",
)
CASES(
    "roll-by-random-int",
    X3,
    """
class M(nn.Module):
    def forward(self, x):
        if self.training:
            shift = torch.randint(0, x.size(1), (1,)).item()
            x = torch.roll(x, shift, 1)
        return x * 2
""",
)
CASES(
    "relative-position-bucket",
    "(torch.randn(2, 5, 4),)",
    """
class M(nn.Module):
    def __init__(self, dim, num_buckets=8, max_distance=16):
        super().__init__()
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bias = nn.Embedding(num_buckets, 1)

    @staticmethod
    def _bucket(relative_position, num_buckets, max_distance):
        ret = 0
        n = -relative_position
        num_buckets //= 2
        ret += (n < 0).long() * num_buckets
        n = torch.abs(n)
        max_exact = num_buckets // 2
        is_small = n < max_exact
        val_if_large = max_exact + (torch.log(n.float() / max_exact) / math.log(max_distance / max_exact)
                                    * (num_buckets - max_exact)).long()
        val_if_large = torch.min(val_if_large, torch.full_like(val_if_large, num_buckets - 1))
        ret += torch.where(is_small, n, val_if_large)
        return ret

    def forward(self, x):
        n = x.size(1)
        q = torch.arange(n)
        rel = q[None, :] - q[:, None]
        return x + self.bias(self._bucket(rel, self.num_buckets, self.max_distance)).mean()
""",
    "(4,)",
)
CASES(
    "counts-of-what-was-picked-agree",
    "(torch.randn(5, 3), torch.tensor([1, 0, 2, 0, 3]))",
    """
class M(nn.Module):
    def forward(self, x, index):
        picked = x[index > 0]
        order = torch.arange(picked.size(0), device=x.device)
        if order.numel() != picked.size(0):
            raise ValueError("lengths differ")
        room = torch.zeros(picked.shape[0], 3)
        if room.size(0) != picked.size(0):
            raise ValueError("lengths differ")
        return picked + order[:, None] + room
""",
)
CASES(
    "room-for-what-was-picked-is-empty",
    "(torch.randn(5, 3), torch.tensor([1, 0, 2, 0, 3]))",
    """
class M(nn.Module):
    def forward(self, x, index):
        picked = x[index > 0]
        room = torch.ones(picked.shape[0], 3)
        if room.shape[0] > 2:
            return picked + room
        return picked
""",
)
CASES(
    "one-hot-as-wide-as-the-data",
    "(torch.tensor([[0, 1], [2, 1]]),)",
    """
class M(nn.Module):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity

    def forward(self, index):
        highest = index.max() + 1
        return F.one_hot(index, max(highest + 1, self.capacity))[..., :self.capacity]
""",
    "(4,)",
)
CASES(
    "one-hot-by-item",
    "(torch.tensor([[0, 1], [2, 1]]),)",
    """
class M(nn.Module):
    def forward(self, index):
        return F.one_hot(index, index.max().item() + 1)
""",
)
CASES(
    "one-hot-as-wide-as-another-tensor",
    "(torch.tensor([[0, 1], [2, 1]]), torch.randn(2, 4))",
    """
class M(nn.Module):
    def forward(self, index, logits):
        return logits - F.one_hot(index, max(logits.size(-1), 4)).sum(1)
""",
)
CASES(
    "typed-tensor-of-numbers-from-data",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x.sum() * torch.FloatTensor([x.max().item(), 2.0])
""",
)
CASES(
    "typed-tensor-of-rows-kept",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        kept = x[x > 0]
        return torch.LongTensor([kept.shape[0], x.shape[0]])
""",
)
CASES(
    "tensor-of-numbers-from-data",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return torch.tensor([x.argmax().item(), 1]) + torch.LongTensor([x.shape[0], 2])
""",
)
CASES(
    "rows-left-as-a-sequence-of-a-recurrent-layer",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):
        return self.rnn(x[x[:, 0] > 0].unsqueeze(0))[0]
""",
)
CASES(
    "rows-left-as-the-batch-of-a-recurrent-layer",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):
        return self.rnn(x[x[:, 0] > 0].unsqueeze(1))[0]
""",
)
CASES(
    "pieces-of-another-dimension-than-the-open-one",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x[:, 0] > 0]
        first, second = kept.chunk(2, dim=-1)
        whole = kept[None].unbind(0)[0]
        parts = kept.view(-1, 2, 4).unbind(1)
        return first + second, whole, parts[0] - parts[1], torch.fft.fft(kept).real, kept.diff(dim=1)
""",
)
CASES(
    "pieces-of-the-open-dimension-after-it-moved",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = torch.masked_select(x, x > 0).view(1, -1)
        return kept.unbind(1)[0]
""",
)
CASES(
    "spectrum-of-the-items-left",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = torch.masked_select(x, x > 0)
        return torch.fft.rfft(kept).abs()
""",
)
CASES(
    "rows-left-that-are-promised",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x[:, 0] > -100]
        torch._check(kept.shape[0] != 0)
        return torch.logsumexp(kept, 0), kept.roll(1, 0)
""",
)
CASES(
    "a-float-of-how-many-are-left",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x[:, 0] > 0]
        return kept.sum() / float(kept.shape[0])
""",
)
CASES(
    "a-quotient-by-how-many-are-left",
    "(torch.randn(6, 8),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x[:, 0] > 0]
        return kept.sum() / max(kept.shape[0], 1), x * kept.shape[0] ** 0.5
""",
)
CASES(
    "the-longest-of-what-is-left",
    "(torch.randn(3, 5),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = [row[row > 0] for row in x]
        most = max([row.size(0) for row in kept])
        padded = kept[0].new_zeros(len(kept), most)
        for index, row in enumerate(kept):
            padded[index, : row.size(0)] = row
        return padded
""",
)
CASES(
    "the-longest-of-lengths",
    "(torch.tensor([3, 5, 4]),)",
    """
class M(nn.Module):
    def forward(self, lengths: torch.LongTensor):
        return torch.arange(max(lengths.tolist())) + min(lengths.tolist())
""",
)
CASES(
    "the-longest-decides",
    "(torch.randn(3, 5),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        most = max(row[row > 0].size(0) for row in x)
        if most > 3:
            return x * 2
        return x
""",
)
CASES(
    "the-largest-of-floats",
    "(torch.randn(3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.FloatTensor):
        return x / max([value.item() for value in x])
""",
)
CASES(
    "quotient-and-rest-of-a-size",
    "(torch.randn(6, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        rows, rest = divmod(x.shape[0], 4)
        return x * rows + rest
""",
)
CASES(
    "bools-of-a-size",
    "(torch.randn(2, 5),)",
    """
class M(nn.Module):
    def forward(self, x):
        mask = torch.BoolTensor(x.size()).fill_(False)
        return x.masked_fill(mask, 0.0)
""",
)
CASES(
    "count-of-rows-in-a-buffer",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x):
        self.count = torch.tensor(x.shape[0], dtype=self.count.dtype)
        if self.count <= 1:
            return x
        return x * 2
""",
)
CASES(
    "bound-of-a-new-number",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        bound = x.new_tensor(3.0).sqrt()
        if bound > 1:
            return x * bound
        return x
""",
)
CASES(
    "a-decision-turned-round-by-torch",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        quiet = torch.sym_not((x.sum() > 0).item())
        if quiet:
            return x * 2
        return x
""",
)
CASES(
    "number-from-data-bounded-by-a-fraction",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        return x / max(x.abs().max().item(), 1e-6)
""",
)
CASES(
    "whole-number-from-data-bounded",
    "(torch.tensor([3, 4]),)",
    """
class M(nn.Module):
    def forward(self, x):
        return x / max(x.max().item(), 1)
""",
)
CASES(
    "tensors-beside-numbers-from-data",
    "(torch.rand(3, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        total, count = x.sum().item(), x.long().sum().item()
        return torch.tensor([x[0, 0] / total, 0.25 * total]), torch.tensor([[count, x[0, 1]], [x[1, 1], 1.0]])
""",
)
CASES(
    "path-traced-back-by-a-cell",
    "(torch.randn(5, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        length, count = x.shape
        back = torch.zeros(length, count, dtype=torch.long)
        for t in range(1, length):
            back[t] = x[t].argsort()
        path = torch.zeros(length, dtype=torch.long)
        path[-1] = x[-1].argmax()
        for t in range(length - 1, 0, -1):
            path[t - 1] = back[t, path[t]]
        return path
""",
)
