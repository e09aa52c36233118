"""Recurrent taggers, decoders and sequence models of older public code."""

from __future__ import annotations

from tests.inference.cases.case import X3, Cases

CASES = Cases()

CASES(
    "hidden-variable",
    X3,
    """
class M(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super(M, self).__init__()
        self.hidden_dim = hidden_dim
        self.lstm = nn.LSTM(input_dim, hidden_dim, batch_first=True)

    def init_hidden(self, batch_size):
        return (Variable(torch.zeros(1, batch_size, self.hidden_dim)),
                Variable(torch.zeros(1, batch_size, self.hidden_dim)))

    def forward(self, x):
        hidden = self.init_hidden(x.size(0))
        out, hidden = self.lstm(x, hidden)
        return out[:, -1, :]
""",
    "(4, 6)",
)
CASES(
    "hidden-new-zeros",
    X3,
    """
class M(nn.Module):
    def __init__(self, input_dim, hidden_dim, n_layers=1):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.n_layers = n_layers
        self.gru = nn.GRU(input_dim, hidden_dim, n_layers, batch_first=True)

    def forward(self, x, h=None):
        if h is None:
            weight = next(self.parameters())
            h = weight.new_zeros(self.n_layers, x.size(0), self.hidden_dim)
        out, h = self.gru(x, h)
        return out, h
""",
    "(4, 6)",
)
CASES(
    "hidden-parameter-data",
    X3,
    """
class M(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.gru = nn.GRU(input_dim, hidden_dim, batch_first=True)

    def init_hidden(self, batch):
        weight = next(self.parameters()).data
        return weight.new(1, batch, self.hidden_dim).zero_()

    def forward(self, x):
        out, _ = self.gru(x, self.init_hidden(x.size(0)))
        return out
""",
    "(4, 6)",
)
CASES(
    "packed-lengths",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.rnn = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out
""",
    "(4, 6)",
)
CASES(
    "packed-lengths-tolist",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.rnn = nn.GRU(dim, hidden, batch_first=True)

    def forward(self, x, lengths):
        lengths = lengths.tolist()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        return h
""",
    "(4, 6)",
)
CASES(
    "last-of-each-row",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        rows = []
        for i in range(x.size(0)):
            rows.append(x[i, lengths[i] - 1])
        return self.fc(torch.stack(rows))
""",
    "(4,)",
)
CASES(
    "last-of-each-row-item",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        rows = []
        for i in range(x.size(0)):
            n = lengths[i].item()
            rows.append(x[i, :n].mean(0))
        return self.fc(torch.stack(rows))
""",
    "(4,)",
)
CASES(
    "mask-from-max-length",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        mask = torch.arange(lengths.max())[None, :] < lengths[:, None]
        return self.fc(x), mask
""",
    "(4,)",
)
CASES(
    "mask-from-int-max",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        max_len = int(lengths.max())
        mask = torch.arange(max_len)[None, :] < lengths[:, None]
        return self.fc(x), mask
""",
    "(4,)",
)
CASES(
    "steps-to-longest",
    "(torch.randn(2, 5, 4), torch.tensor([5, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.cell = nn.GRUCell(dim, hidden)
        self.hidden = hidden

    def forward(self, x, lengths):
        h = x.new_zeros(x.size(0), self.hidden)
        for t in range(int(lengths.max())):
            h = self.cell(x[:, t], h)
        return h
""",
    "(4, 6)",
)
CASES(
    "steps-over-time",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.cell = nn.LSTMCell(dim, hidden)
        self.hidden = hidden

    def forward(self, x):
        h = torch.zeros(x.size(0), self.hidden)
        c = torch.zeros(x.size(0), self.hidden).to(x.device)
        outs = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            outs += [h]
        return torch.stack(outs, 1)
""",
    "(4, 6)",
)
CASES(
    "teacher-forcing",
    "(torch.randint(0, 9, (2, 5)),)",
    """
class M(nn.Module):
    def __init__(self, vocab, dim, teacher_forcing_ratio=0.5):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)
        self.teacher_forcing_ratio = teacher_forcing_ratio

    def forward(self, tokens):
        h = torch.zeros(tokens.size(0), self.cell.hidden_size)
        word = tokens[:, 0]
        logits = []
        for t in range(1, tokens.size(1)):
            h = self.cell(self.emb(word), h)
            logits.append(self.out(h))
            use = random.random() < self.teacher_forcing_ratio
            word = tokens[:, t] if use else logits[-1].argmax(1)
        return torch.stack(logits, 1)
""",
    "(9, 4)",
)
CASES(
    "greedy-until-end",
    "(torch.randn(1, 4),)",
    """
class M(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)
        self.max_len = 5

    def forward(self, h):
        word = torch.zeros(1, dtype=torch.long)
        words = []
        while len(words) < self.max_len:
            h = self.cell(self.emb(word), h)
            word = self.out(h).argmax(-1)
            words.append(word)
            if word.item() == 2:
                break
        return torch.stack(words)
""",
    "(9, 4)",
)
CASES(
    "finished-all",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, h):
        word = torch.zeros(h.size(0), dtype=torch.long)
        finished = torch.zeros(h.size(0), dtype=torch.bool)
        scores = []
        for _ in range(4):
            h = self.cell(self.emb(word), h)
            logits = self.out(h)
            word = logits.argmax(-1)
            finished |= word == 2
            scores.append(logits)
            if finished.all():
                break
        return torch.stack(scores, 1)
""",
    "(9, 4)",
)
CASES(
    "crf-viterbi",
    "(torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))",
    """
class M(nn.Module):
    def __init__(self, num_tags: int):
        super().__init__()
        self.num_tags = num_tags
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def forward(self, emissions, mask: Optional[torch.Tensor] = None):
        if emissions.dim() != 3:
            raise ValueError("emissions must have dimension of 3")
        if mask is None:
            mask = torch.ones(emissions.shape[:2], dtype=torch.bool)
        if not mask[:, 0].all():
            raise ValueError("mask of the first timestep must all be on")
        score = emissions[:, 0]
        for i in range(1, emissions.size(1)):
            new = score.unsqueeze(2) + self.transitions + emissions[:, i].unsqueeze(1)
            score = torch.where(mask[:, i].unsqueeze(1), new.logsumexp(1), score)
        return score.logsumexp(1)
""",
    "(3,)",
)
CASES(
    "crf-best-tags",
    "(torch.randn(2, 5, 3),)",
    """
class M(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(num_tags, num_tags))

    def forward(self, emissions):
        score = emissions[:, 0]
        history = []
        for i in range(1, emissions.size(1)):
            score, indices = (score.unsqueeze(2) + self.transitions).max(1)
            score = score + emissions[:, i]
            history.append(indices)
        best = []
        for b in range(emissions.size(0)):
            _, last = score[b].max(dim=0)
            tags = [last.item()]
            for hist in reversed(history):
                last = hist[b][tags[-1]]
                tags.append(last.item())
            tags.reverse()
            best.append(tags)
        return torch.tensor(best)
""",
    "(3,)",
)
CASES(
    "lengths-gone-through-and-reckoned-with",
    "(torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 6, batch_first=True)

    def _mask(self, x, lengths):
        mask = torch.zeros(x.size(0), x.size(1))
        for i, l in enumerate(lengths):
            mask[i, :l] = 1
        return mask

    def forward(self, x, lengths):
        out, _ = self.gru(x)
        mask = self._mask(x, lengths)
        return out[torch.arange(out.size(0)), lengths - 1], mask
""",
)
CASES(
    "widths-gone-through",
    "(torch.randn(2, 5, 4), [2, 2])",
    """
class M(nn.Module):
    def forward(self, x, widths):
        parts = []
        start = 0
        for width in widths:
            parts.append(x[..., start : start + width].mean(-1) * max(widths))
            start = start + width
        return torch.stack(parts)
""",
)
CASES(
    "largest-length-by-python",
    "(torch.randn(3, 5), torch.tensor([5, 3, 2]))",
    """
class M(nn.Module):
    def forward(self, x, lengths):
        lengths = lengths.long()
        return x / max(lengths)
""",
)
CASES(
    "states-of-each-layer-if-any",
    "(torch.randn(2, 3, 4, 4),)",
    """
class M(nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.cells = nn.ModuleList([nn.Conv2d(2 * channels, channels, 3, padding=1) for _ in range(layers)])

    def forward(self, x, states=None):
        if not states:
            states = [torch.zeros_like(x) for _ in self.cells]
        new = []
        for index, cell in enumerate(self.cells):
            x = torch.tanh(cell(torch.cat([x, states[index]], 1)))
            new.append(x)
        return x, new
""",
    "(3, 2)",
)
CASES(
    "best-path-by-back-pointers",
    "(torch.randn(5, 3),)",
    """
class M(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, scores: torch.Tensor):
        best = scores[0]
        pointers = []
        for row in range(1, scores.shape[0]):
            best, pointer = (best + self.transitions + scores[row]).max(dim=1)
            pointers.append(pointer.tolist())
        tag = torch.argmax(best).tolist()
        path = [tag]
        for pointer in reversed(pointers):
            tag = pointer[tag]
            path.append(tag)
        return best, path
""",
    "(3,)",
)
CASES(
    "packed-for-a-layer-by-name",
    "(torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))",
    """
class M(nn.Module):
    def __init__(self, kind, size):
        super().__init__()
        self.rnn = getattr(nn, kind.upper())(size, size, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        return pad_packed_sequence(out, batch_first=True)[0]
""",
    "('gru', 4)",
)
CASES(
    "lengths-may-be-left-out",
    X3,
    """
class M(nn.Module):
    def __init__(self, size=4, hidden=6):
        super().__init__()
        self.rnn = nn.GRU(size, hidden, batch_first=True)

    def forward(self, x, lengths=None):
        if lengths is not None:
            lengths = lengths.clamp(min=1)
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            out, hidden = self.rnn(packed)
            out, _ = pad_packed_sequence(out, batch_first=True)
        else:
            out, hidden = self.rnn(x)
        return out, hidden
""",
)
CASES(
    "layers-of-a-list-given-what-is-packed",
    "(torch.randn(2, 6, 4),)",
    """
class M(nn.Module):
    def __init__(self, depth, kind):
        super().__init__()
        self.rnns = []
        for i in range(depth):
            size = 4 if i == 0 else 5
            self.rnns.append(getattr(nn, kind)(size, 5, 1, batch_first=True))
        self.rnns = nn.ModuleList(self.rnns)
        self.depth = depth

    def forward(self, x, lengths=None):
        for i in range(self.depth):
            if lengths is not None:
                x = pack_padded_sequence(x, lengths, batch_first=True)
            x, hidden = self.rnns[i](x)
            if lengths is not None:
                x, _ = pad_packed_sequence(x, batch_first=True)
        return x
""",
    "(2, 'GRU')",
)
