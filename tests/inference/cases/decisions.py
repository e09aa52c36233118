"""Decisions on tensor data, as research code makes them."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, Cases

CASES = Cases()

CASES(
    "early-exit-entropy",
    X2,
    """
class Branch(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        return self.fc(x)


class M(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.threshold = args.threshold
        self.layers = nn.ModuleList()
        self.exits = nn.ModuleList()
        for i in range(args.depth):
            self.layers.append(nn.Sequential(nn.Linear(args.dim, args.dim), nn.ReLU()))
            self.exits.append(Branch(args.dim, args.classes))

    def forward(self, x):
        for layer, exit_ in zip(self.layers, self.exits):
            x = layer(x)
            logits = exit_(x)
            prob = F.softmax(logits, dim=1)
            entropy = -(prob * prob.log()).sum(1).mean()
            if entropy < self.threshold:
                return logits
        return logits
""",
    "(__import__('argparse').Namespace(dim=6, depth=2, classes=3, threshold=0.1),)",
)
CASES(
    "class-loop-skip",
    "(torch.randn(6, 4), torch.randint(0, 3, (6,)))",
    """
class M(nn.Module):
    def __init__(self, num_classes=3, feat_dim=4):
        super(M, self).__init__()
        self.num_classes = num_classes
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, feats, labels):
        loss = 0.
        for c in range(self.num_classes):
            mask = labels == c
            if mask.sum() == 0:
                continue
            loss = loss + ((feats[mask] - self.centers[c]) ** 2).sum()
        return loss / feats.size(0)
""",
)
CASES(
    "no-positive-return",
    "(torch.randn(6, 4), torch.randint(0, 2, (6,)))",
    """
class M(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, inputs, targets):
        n = inputs.size(0)
        sim = torch.matmul(inputs, inputs.t())
        pos = targets.unsqueeze(0) == targets.unsqueeze(1)
        pos_pairs = torch.masked_select(sim, pos)
        neg_pairs = torch.masked_select(sim, ~pos)
        if len(pos_pairs) < 1 or len(neg_pairs) < 1:
            return torch.zeros([], requires_grad=True)
        return (1 - pos_pairs).sum() / n + torch.clamp(neg_pairs - self.margin, min=0).sum() / n
""",
)
CASES(
    "multi-similarity-loop",
    "(torch.randn(6, 4), torch.randint(0, 2, (6,)))",
    """
class M(nn.Module):
    def __init__(self, cfg=None):
        super(M, self).__init__()
        self.thresh = 0.5
        self.margin = 0.1
        self.scale_pos = 2.0
        self.scale_neg = 40.0

    def forward(self, feats, labels):
        assert feats.size(0) == labels.size(0), \\
            f"feats.size(0): {feats.size(0)} is not equal to labels.size(0): {labels.size(0)}"
        batch_size = feats.size(0)
        sim_mat = torch.matmul(feats, torch.t(feats))
        epsilon = 1e-5
        loss = list()
        for i in range(batch_size):
            pos_pair_ = sim_mat[i][labels == labels[i]]
            pos_pair_ = pos_pair_[pos_pair_ < 1 - epsilon]
            neg_pair_ = sim_mat[i][labels != labels[i]]
            neg_pair = neg_pair_[neg_pair_ + self.margin > min(pos_pair_)]
            pos_pair = pos_pair_[pos_pair_ - self.margin < max(neg_pair_)]
            if len(neg_pair) < 1 or len(pos_pair) < 1:
                continue
            pos_loss = 1.0 / self.scale_pos * torch.log(
                1 + torch.sum(torch.exp(-self.scale_pos * (pos_pair - self.thresh))))
            loss.append(pos_loss)
        if len(loss) == 0:
            return torch.zeros([], requires_grad=True)
        return sum(loss) / batch_size
""",
)
CASES(
    "buffer-step-warmup",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, warmup_steps=100):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.warmup_steps = warmup_steps
        self.register_buffer('step', torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        if self.step < self.warmup_steps:
            scale = 0.5
        else:
            scale = 1.0
        return self.fc(x) * scale
""",
    "(6,)",
)
CASES(
    "buffer-initialized-flag-train-only",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('initialized', torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            self.fc.bias.copy_(-x.mean(0))
            self.initialized.fill_(1)

    def forward(self, x):
        if self.training and self.initialized.item() == 0:
            self.initialize(x)
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "buffer-initialized-flag",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('initialized', torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            self.fc.bias.copy_(-x.mean(0))
            self.initialized.fill_(1)

    def forward(self, x):
        if self.initialized.item() == 0:
            self.initialize(x)
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "fixed-point-iteration",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, tol=1e-3, max_iter=3):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.tol = tol
        self.max_iter = max_iter

    def forward(self, x):
        z = torch.zeros_like(x)
        for it in range(self.max_iter):
            z_next = torch.tanh(self.fc(z) + x)
            err = torch.norm(z_next - z) / (torch.norm(z_next) + 1e-5)
            z = z_next
            if err < self.tol:
                break
        return z
""",
    "(6,)",
)
CASES(
    "sinkhorn-error-item",
    "(torch.randn(3, 4), torch.randn(5, 4))",
    """
class M(nn.Module):
    def __init__(self, eps=0.1, max_iter=3, reduction='none'):
        super(M, self).__init__()
        self.eps = eps
        self.max_iter = max_iter
        self.reduction = reduction

    def forward(self, x, y):
        C = self._cost_matrix(x, y)
        x_points = x.shape[-2]
        y_points = y.shape[-2]
        if x.dim() == 2:
            batch_size = 1
        else:
            batch_size = x.shape[0]
        mu = torch.empty(batch_size, x_points, dtype=torch.float,
                         requires_grad=False).fill_(1.0 / x_points).squeeze()
        nu = torch.empty(batch_size, y_points, dtype=torch.float,
                         requires_grad=False).fill_(1.0 / y_points).squeeze()
        u = torch.zeros_like(mu)
        v = torch.zeros_like(nu)
        actual_nits = 0
        thresh = 1e-1
        for i in range(self.max_iter):
            u1 = u
            u = self.eps * (torch.log(mu + 1e-8) - torch.logsumexp(self.M(C, u, v), dim=-1)) + u
            v = self.eps * (torch.log(nu + 1e-8) - torch.logsumexp(self.M(C, u, v).transpose(-2, -1), dim=-1)) + v
            err = (u - u1).abs().sum(-1).mean()
            actual_nits += 1
            if err.item() < thresh:
                break
        U, V = u, v
        pi = torch.exp(self.M(C, U, V))
        cost = torch.sum(pi * C, dim=(-2, -1))
        if self.reduction == 'mean':
            cost = cost.mean()
        return cost, pi, C

    def M(self, C, u, v):
        return (-C + u.unsqueeze(-1) + v.unsqueeze(-2)) / self.eps

    @staticmethod
    def _cost_matrix(x, y, p=2):
        x_col = x.unsqueeze(-2)
        y_lin = y.unsqueeze(-3)
        return torch.sum((torch.abs(x_col - y_lin)) ** p, -1)
""",
)
CASES(
    "vocab-range-check",
    "(torch.randint(0, 10, (2, 5)),)",
    """
class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config['vocab_size'], config['n_embd'])

    def forward(self, idx):
        if idx.max() >= self.config['vocab_size']:
            raise ValueError("index out of vocabulary")
        return self.wte(idx)
""",
    "({'vocab_size': 10, 'n_embd': 4},)",
)
CASES(
    "gpt-block-size-assert",
    "(torch.randint(0, 10, (2, 5)),)",
    """
class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.vocab_size is not None
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.config.block_size, f"Cannot forward sequence of length {t}, block size is only {self.config.block_size}"
        pos = torch.arange(0, t, dtype=torch.long, device=device).unsqueeze(0)
        x = self.wte(idx) + self.wpe(pos)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return logits, loss
""",
    "(__import__('argparse').Namespace(vocab_size=10, n_embd=4, block_size=8),)",
)
CASES(
    "greedy-decode-eos",
    X3,
    """
class Decoder(nn.Module):
    def __init__(self, hidden, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, token, state):
        state = self.cell(self.embed(token), state)
        return self.out(state), state


class M(nn.Module):
    def __init__(self, dim, hidden, vocab, max_len=4, eos=1):
        super().__init__()
        self.encoder = nn.GRU(dim, hidden, batch_first=True)
        self.decoder = Decoder(hidden, vocab)
        self.max_len = max_len
        self.eos = eos

    def forward(self, src):
        _, h = self.encoder(src)
        h = h[-1]
        token = torch.zeros(src.size(0), dtype=torch.long, device=src.device)
        outputs = []
        for _ in range(self.max_len):
            logit, h = self.decoder(token, h)
            token = logit.argmax(-1)
            outputs.append(token)
            if (token == self.eos).all():
                break
        return torch.stack(outputs, 1)
""",
    "(4, 6, 7)",
)
CASES(
    "teacher-forcing-random-coin",
    "(torch.randn(2, 5, 4), torch.randn(2, 5, 4))",
    """
class M(nn.Module):
    def __init__(self, dim, teacher_forcing_ratio=0.5):
        super().__init__()
        self.cell = nn.LSTMCell(dim, dim)
        self.ratio = teacher_forcing_ratio

    def forward(self, src, trg):
        h = c = torch.zeros(src.size(0), src.size(2))
        inp = src[:, 0]
        outs = []
        for t in range(1, trg.size(1)):
            h, c = self.cell(inp, (h, c))
            outs.append(h)
            use_teacher = True if random.random() < self.ratio else False
            inp = trg[:, t] if use_teacher else h
        return torch.stack(outs, 1)
""",
    "(4,)",
)
CASES(
    "layerdrop-drawn-where-asked-for",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self, dim, n=2, layerdrop=0.1):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            dropout_probability = np.random.random() if self.layerdrop > 0 else 1
            if not self.training or (dropout_probability > self.layerdrop):
                x = layer(x)
        return x
""",
    "(4,)",
)
CASES(
    "shift-drawn-for-training",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        shift = int(random.random() * self.width) - 1
        if self.training:
            x = torch.roll(x, shift, dims=1)
        return x * 2
""",
    "(4,)",
)
CASES(
    "layerdrop-eval",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, n=3, layerdrop=0.1):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            dropout_probability = np.random.random()
            if not self.training or (dropout_probability > self.layerdrop):
                x = layer(x)
        return x
""",
    "(6,)",
)
CASES(
    "nan-guard-print",
    X2,
    """
class M(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.net = nn.Sequential(nn.Linear(opt['dim'], opt['dim']), nn.ReLU())

    def forward(self, x):
        out = self.net(x)
        if torch.isnan(out).any() or torch.isinf(out).any():
            print('nan in output', out)
        return out
""",
    "({'dim': 6},)",
)
CASES(
    "margin-mask-or-zero-tensor",
    "(torch.randn(4, 6), torch.randn(4, 6))",
    """
class M(nn.Module):
    def forward(self, pred, target):
        valid = target > 0
        n = valid.sum()
        loss = ((pred - target) ** 2 * valid).sum() / n if n > 0 else pred.sum() * 0
        return loss
""",
)
CASES(
    "mask-any-helper-module-function",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))",
    """
def masked_mean(x, mask=None, dim=1):
    if mask is None:
        return x.mean(dim)
    if not mask.any():
        return torch.zeros_like(x.mean(dim))
    m = mask.unsqueeze(-1).float()
    return (x * m).sum(dim) / m.sum(dim).clamp(min=1.0)


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        return masked_mean(self.proj(x), mask)
""",
    "(4,)",
)
CASES(
    "act-halting-while",
    X3,
    """
class M(nn.Module):
    def __init__(self, hidden_size, max_hop=3):
        super(M, self).__init__()
        self.p = nn.Linear(hidden_size, 1)
        self.threshold = 1 - 0.1
        self.fn = nn.Linear(hidden_size, hidden_size)
        self.max_hop = max_hop

    def forward(self, state):
        halting = torch.zeros(state.shape[0], state.shape[1])
        n_updates = torch.zeros(state.shape[0], state.shape[1])
        step = 0
        while ((halting < self.threshold) & (n_updates < self.max_hop)).byte().any():
            p = torch.sigmoid(self.p(state)).squeeze(-1)
            halting = halting + p
            n_updates = n_updates + 1
            state = self.fn(state)
            step += 1
        return state, n_updates
""",
    "(4,)",
)
CASES(
    "random-draw-before-training",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.p = 0.5
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        if random.random() < self.p and self.training:
            return x
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "random-draw-in-eval",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.p = 0.5
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        if random.random() < self.p and not self.training:
            return x
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "value-of-data-under-an-option",
    X2,
    """
class M(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        if self.mode == 'hard':
            if x.max() > 3:
                return x.clamp(max=3)
        return x * 2
""",
    "('hard',)",
)
CASES(
    "value-of-data-under-an-option-of-a-part",
    X2,
    """
class Clip(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        if self.mode == 'hard' and x.max() > 3:
            return x.clamp(max=3)
        return x * 2


class M(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.clip = Clip(mode)

    def forward(self, x):
        return self.clip(x)
""",
    "('hard',)",
)
CASES(
    "half-precision-guard",
    "(torch.randn(2, 3, 4),)",
    """
class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, hidden_states):
        if hidden_states.dtype in (torch.half, torch.bfloat16) and torch.isnan(hidden_states).any():
            hidden_states = torch.nan_to_num(hidden_states)
        hidden = self.fc(hidden_states)
        if hidden.dtype == torch.float16 and torch.isinf(hidden).any():
            hidden = hidden.clamp(-65000, 65000)
        return hidden
""",
    "(4,)",
)
CASES(
    "half-precision-made-here",
    "(torch.randn(2, 3, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        h = x.half()
        if h.dtype == torch.float16 and torch.isinf(h).any():
            h = h.clamp(-65000, 65000)
        return h
""",
)
CASES(
    "single-precision-guard",
    "(torch.randn(2, 3, 4),)",
    """
class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        h = self.fc(x)
        if h.dtype == torch.float32 and torch.isinf(h).any():
            h = h.clamp(-65000, 65000)
        return h
""",
    "(4,)",
)
CASES(
    "byte-image-guard",
    "(torch.randint(0, 255, (2, 3, 4), dtype=torch.uint8),)",
    """
class M(nn.Module):
    def forward(self, x):
        if x.dtype == torch.uint8 and (x > 1).any():
            x = x.float() / 255
        return x * 2
""",
)
CASES(
    "best-by-key",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 2) for _ in range(3)])

    def forward(self, x):
        outs = [head(x) for head in self.heads]
        return max(outs, key=lambda out: out.max().item())
""",
)
CASES(
    "sorted-by-name-and-size",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        parts = {'b': x, 'a': x * 2}
        for name in sorted(parts, key=lambda name: name.lower()):
            x = x + parts[name]
        return x * max([2, 5, 3], key=lambda n: -n)
""",
)
CASES(
    "beams-sorted-by-score",
    "(torch.randn(4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = nn.Embedding(3, 4)
        self.out = nn.Linear(4, 3)

    def expand(self, score, name):
        scores = self.out(self.names(torch.tensor(name))).log_softmax(-1)
        return [(score + scores[k].item(), k) for k in range(3)]

    def forward(self, x):
        beams = [(0.0, 0)]
        for _ in range(2):
            pool = []
            for score, name in beams:
                pool.extend(self.expand(score, name))
            beams = sorted(pool, key=lambda each: each[0], reverse=True)[:2]
        return x * beams[0][0]
""",
)
CASES(
    "pairs-in-order",
    "(torch.randn(3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        pairs = [(x[k].item(), k) for k in range(3)]
        pairs.sort()
        return x * pairs[0][1]
""",
)
CASES(
    "greatest-of-pairs",
    "(torch.randn(3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        best = (-1.0, 0)
        for k in range(3):
            best = max(best, (x[k].item(), k))
        return x * best[1]
""",
)
CASES(
    "key-of-greatest-value",
    "(torch.randn(3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        scores = {}
        for k in range(3):
            scores[k] = x[k].item()
        return x * max(scores, key=scores.get)
""",
)
CASES(
    "heap-of-scores",
    "(torch.randn(3),)",
    """
import heapq


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        heap = []
        for k in range(3):
            heapq.heappush(heap, (-x[k].item(), k))
        return x * heapq.heappop(heap)[1]
""",
)
CASES(
    "ordered-by-what-is-known",
    "(torch.randn(3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        index = max([(len(name), name) for name in ('ab', 'c')])
        counts = {}
        for name in ('a', 'b', 'a'):
            counts[name] = counts.get(name, 0) + 1
        names = sorted(counts, key=lambda name: (-counts[name], name))
        return x * index[0] + counts[names[0]]
""",
)
CASES(
    "layer-by-spelled-name",
    "(torch.randn(2, 4), torch.tensor(1))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({f'head_{k}': nn.Linear(4, 2) for k in range(2)})

    def forward(self, x, which: torch.Tensor):
        return self.heads[f'head_{which.item()}'](x)
""",
)
CASES(
    "layers-by-known-names",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({f'head_{k}': nn.Linear(4, 2) for k in range(2)})

    def forward(self, x):
        first = self.heads['head_%d' % 0](x) + self.heads['head_' + str(1)](x)
        return first + sum(self.heads[f'head_{k}'](x) for k in range(2))
""",
)
CASES(
    "truths-counted",
    "(torch.randn(2, 4), torch.tensor([1, 3]))",
    """
class M(nn.Module):
    def forward(self, x, t: torch.Tensor):
        return x * sum(each > 2 for each in t.tolist())
""",
)
CASES(
    "truth-of-a-number-scales",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        total = x.sum().item()
        return x * (total > 2) * ((total > 3) & (total < 5)) * 2.0 ** (x > 0).sum().item() * total**2
""",
)
CASES(
    "power-of-a-count",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        return x * pow(2, (x > 0).sum().item())
""",
)
CASES(
    "rest-of-a-power",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        return x * pow((x > 0).sum().item(), 2, 3)
""",
)
CASES(
    "items-read-as-floats",
    "(torch.rand(3),)",
    """
class M(nn.Module):
    def forward(self, levels):
        total = 0.0
        for level in levels:
            total = total + float(level)
        return levels - total
""",
)
CASES(
    "extent-of-a-mask",
    "(torch.rand(4, 6),)",
    """
class M(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x > 0.5)
        low = found.min(0)[0]
        y0, x0 = low
        y1, x1 = found.max(dim=0)[0] * 4
        if low.shape[0] == 2:
            y0 = y0 + 1
        a, b = found.float().mean(dim=0)
        c, d = found.argmax(dim=0)
        return y0 + x0 + y1 + x1 + a + b + c + d
""",
)
CASES(
    "edges-with-loops",
    "(torch.rand(5, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))",
    """
class M(nn.Module):
    def forward(self, x, edges):
        count = edges.max().item() + 1
        loops = torch.arange(0, count).unsqueeze(0).repeat(2, 1)
        edges = torch.cat([edges, loops], dim=1)
        row, col = edges
        return x[row].sum() + x[col].sum()
""",
)
CASES(
    "rows-of-a-mask",
    "(torch.rand(4, 6),)",
    """
class M(nn.Module):
    def forward(self, x):
        total = x.sum()
        for value in x[x > 0.5].unsqueeze(1).sum(1):
            total = total + value
        return total
""",
)
CASES(
    "asserted-to-be-close",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        probs = x.softmax(-1)
        assert torch.allclose(probs.sum(-1), torch.ones(x.shape[0])), "not a distribution"
        return probs
""",
)
CASES(
    "summed-over-rows",
    "(torch.rand(3, 4),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        total = 0
        for row in x:
            total = total + row.sum()
        if total > 0:
            x = x * 2
        return x
""",
)
CASES(
    "counts-of-experts-in-a-list",
    "(torch.randn(6, 4),)",
    """
class M(nn.Module):
    def __init__(self, dim=4, n=3):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])

    def forward(self, x):
        weights, indices = torch.topk(F.softmax(self.gate(x), -1), 2)
        y = torch.zeros_like(x)
        counts = torch.bincount(indices.flatten(), minlength=len(self.experts)).tolist()
        for i in range(len(self.experts)):
            if counts[i] == 0:
                continue
            rows, top = torch.where(indices == i)
            y[rows] += self.experts[i](x[rows]) * weights[rows, top, None]
        return y
""",
)
CASES(
    "length-by-a-period-read-by-numpy",
    "(torch.randn(2, 8, 4),)",
    """
class M(nn.Module):
    def __init__(self, seq_len, k=2):
        super().__init__()
        self.seq_len = seq_len
        self.k = k

    def forward(self, x):
        found = torch.topk(abs(torch.fft.rfft(x, dim=1)).mean(0).mean(-1), self.k)[1]
        periods = x.shape[1] // (found.detach().cpu().numpy() + 1)
        res = []
        for i in range(self.k):
            period = periods[i]
            if self.seq_len % period != 0:
                res.append(x)
            else:
                res.append(x * 2)
        return torch.stack(res, -1).sum(-1)
""",
    "(8,)",
)
CASES(
    "behind-an-option-without-default",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self, routing, mode, args):
        super().__init__()
        self.routing = routing
        self.mode = mode.lower()
        self.args = args

    def forward(self, x):
        if self.routing:
            if x.sum() > 0:
                x = x + 1
        if self.mode == "hard" and self.args["nodes"] != -1:
            if x.sum() > 1:
                x = x + 1
        return x
""",
    "(False, 'soft', {'nodes': 3})",
)
CASES(
    "after-a-return-where-a-flag-is-off",
    "(torch.randn(2, 3),)",
    """
class Gate(nn.Module):
    def __init__(self, offload):
        super().__init__()
        self.offload = offload

    def place(self, x):
        if not self.offload:
            return x
        return x + 1 if x.sum() > 0 else x

    def forward(self, x):
        return self.place(x) * 2


class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = Gate(config["offload"])

    def forward(self, x):
        return self.gate(x)
""",
    "({'offload': False},)",
)
CASES(
    "whether-it-is-traced-is-asked-carefully",
    "(torch.randn(2, 3),)",
    """
def is_compiling():
    try:
        import torch

        return torch.compiler.is_compiling()
    except Exception:
        return False


def is_tracing(tensor=None):
    tracing = is_compiling()
    if tensor is not None:
        tracing |= isinstance(tensor, str)
    return tracing


class M(nn.Module):
    def check(self, x):
        if is_tracing(x):
            return
        if x.sum() > 0:
            print("positive")

    def forward(self, x):
        self.check(x)
        return x + 1
""",
)
CASES(
    "behind-options-that-are-declared",
    "(torch.randn(2, 3),)",
    """
class Gate(nn.Module):
    def __init__(self, kind: str, *, hard: bool):
        super().__init__()
        self.kind: str = kind
        self.hard: bool = hard

    def forward(self, x):
        if self.hard:
            if x.sum() > 0:
                x = x + 1
        if self.kind == "data":
            if x.sum() > 1:
                x = x + 1
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate("soft", hard=False)

    def forward(self, x):
        return self.gate(x)
""",
)
CASES(
    "however-an-option-comes-out",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        if self.kind == "up":
            if x.sum() > 0:
                x = x + 1
        elif self.kind == "down":
            if x.sum() > 1:
                x = x - 1
        else:
            if x.sum() > 2:
                x = x * 2
        return x
""",
    "('down',)",
)
CASES(
    "not-on-each-way-of-an-option",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self, kind, hard):
        super().__init__()
        self.kind = kind
        self.hard = hard

    def forward(self, x):
        if self.kind == "up":
            x = x + 1
        elif self.hard:
            if x.sum() > 1:
                x = x - 1
        else:
            if x.sum() > 2:
                x = x * 2
        return x
""",
    "('up', True)",
)
CASES(
    "only-where-an-option-is-off",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self, always):
        super().__init__()
        self.always = always

    def forward(self, x):
        added = self.always or bool(x.sum() > 0)
        if not self.always:
            added = added and bool(x.sum() > 1)
        return x + 1 if added else x
""",
    "(True,)",
)
CASES(
    "only-one-of-two-inputs",
    "(torch.ones(1, 3, dtype=torch.int64), torch.randn(3, 4))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)

    def forward(self, ids, pictures: Optional[torch.Tensor] = None, embedded: Optional[torch.Tensor] = None):
        if (ids is None) ^ (embedded is not None):
            raise ValueError("exactly one of ids and embedded")
        if embedded is None:
            embedded = self.embed(ids)
        if pictures is not None:
            n = (ids == 1).sum().item()
            if n != pictures.shape[0]:
                raise ValueError("as many pictures as places for them")
            embedded = embedded.masked_scatter((ids == 1).unsqueeze(-1), pictures)
        return embedded
""",
)
CASES(
    "branch-on-pairs-of-rows",
    "(torch.randn(5),)",
    """
import itertools


def steps(signal):
    for index, (before, after) in enumerate(itertools.pairwise(signal)):
        if after > before:
            yield index


class M(nn.Module):
    def forward(self, signal: torch.Tensor):
        return signal + sum(steps(signal))
""",
)
CASES(
    "products-and-combinations-of-what-is-known",
    "(torch.randn(5, 2),)",
    """
import itertools


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        total = x.sum()
        for a, b in itertools.combinations(range(3), 2):
            if a + b > 2:
                total = total + x[a, 0] * x[b, 1]
        for a, b in itertools.product((0, 1), repeat=1) if self.training else itertools.product((0, 1), (0, 1)):
            if a == b:
                total = total - x[a, b]
        for row in itertools.islice(x, 2):
            total = total + row.mean()
        return total
""",
)
CASES(
    "lstm-on-rows-cut-by-a-tensor",
    "(torch.randn(3, 4, 3), torch.tensor([4, 2, 1]))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        last = []
        for row, length in zip(x, lengths):
            hidden, _ = self.lstm(row[:length].unsqueeze(0))
            last.append(hidden[0, -1])
        return torch.stack(last)
""",
)
CASES(
    "match-on-tuples-of-shapes",
    "(torch.randn(4, 3),)",
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        match x.shape[0], x.dim():
            case (4, 2):
                return x + 1
            case (_, dims) if dims > 2:
                return x
        match x:
            case [first, *rest]:
                return first
        return x * 2
""",
)
