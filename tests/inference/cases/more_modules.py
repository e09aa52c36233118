"""More of what public code does."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, Cases

CASES = Cases()

CASES(
    "tensor-in-list-comparison",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, 1)
        self.best = 0.0

    def forward(self, x):
        score = self.fc(x).mean()
        if score > self.best:
            self.best = score
        return score
""",
    "(6,)",
)
CASES(
    "dict-by-argmax",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, names=("a", "b", "c")):
        super().__init__()
        self.fc = nn.Linear(dim, 3)
        self.names = list(names)

    def forward(self, x):
        scores = self.fc(x).mean(0)
        best = self.names[scores.argmax()]
        return scores, best
""",
    "(6,)",
)
CASES(
    "format-loss",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.log = {}

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self.log["loss"] = loss.item()
        return loss
""",
    "(6,)",
)
CASES(
    "numpy-random-choice",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        start = np.random.randint(0, x.size(1) - 2)
        return self.fc(x[:, start:start + 2])
""",
    "(4,)",
)
CASES(
    "torch-rand-item-crop",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        start = torch.randint(0, 3, (1,)).item()
        return self.fc(x[:, start:start + 2])
""",
    "(4,)",
)
CASES(
    "bucket-positions",
    X3,
    """
class M(nn.Module):
    def __init__(self, num_buckets=8, max_distance=16, heads=2):
        super().__init__()
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bias = nn.Embedding(num_buckets, heads)

    def _bucket(self, relative):
        n = -relative
        num = self.num_buckets // 2
        ret = (n < 0).long() * num
        n = torch.abs(n)
        exact = num // 2
        small = n < exact
        large = exact + (torch.log(n.float() / exact) / math.log(self.max_distance / exact) * (num - exact)).long()
        large = torch.min(large, torch.full_like(large, num - 1))
        return ret + torch.where(small, n, large)

    def forward(self, x):
        q = torch.arange(x.shape[1])
        rel = q[None, :] - q[:, None]
        return self.bias(self._bucket(rel)).permute(2, 0, 1)
""",
)
CASES(
    "causal-conv-chomp",
    X3,
    """
class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, :-self.chomp_size].contiguous()


class M(nn.Module):
    def __init__(self, n_in, n_out, kernel_size, dilation):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv1d(n_in, n_out, kernel_size, padding=(kernel_size - 1) * dilation, dilation=dilation))
        self.chomp = Chomp1d((kernel_size - 1) * dilation)
        self.net = nn.Sequential(self.conv, self.chomp, nn.ReLU())
        self.init_weights()

    def init_weights(self):
        self.conv.weight.data.normal_(0, 0.01)

    def forward(self, x):
        return self.net(x)
""",
    "(5, 4, 2, 1)",
)
CASES(
    "log-prob-entropy",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, actions):
        super().__init__()
        self.actor = nn.Linear(dim, actions)
        self.critic = nn.Linear(dim, 1)

    def forward(self, x, action=None):
        logits = self.actor(x)
        probs = torch.distributions.Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)
""",
    "(6, 3)",
)
CASES(
    "multinomial-sample",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, actions):
        super().__init__()
        self.actor = nn.Linear(dim, actions)

    def forward(self, x):
        probs = F.softmax(self.actor(x), dim=-1)
        action = probs.multinomial(num_samples=1).data
        return action, probs.gather(1, action)
""",
    "(6, 3)",
)
CASES(
    "epsilon-greedy",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, actions, epsilon=0.5):
        super().__init__()
        self.net = nn.Linear(dim, actions)
        self.epsilon = epsilon
        self.actions = actions

    def forward(self, x):
        q = self.net(x)
        if np.random.rand() < self.epsilon:
            return torch.randint(0, self.actions, (x.size(0),))
        return q.argmax(1)
""",
    "(6, 3)",
)
CASES(
    "noisy-linear",
    X2,
    """
class M(nn.Module):
    def __init__(self, in_features, out_features, std_init=0.4):
        super().__init__()
        self.weight_mu = nn.Parameter(torch.empty(out_features, in_features))
        self.weight_sigma = nn.Parameter(torch.empty(out_features, in_features))
        self.register_buffer("weight_epsilon", torch.zeros(out_features, in_features))
        r = 1 / math.sqrt(in_features)
        self.weight_mu.data.uniform_(-r, r)
        self.weight_sigma.data.fill_(std_init / math.sqrt(in_features))

    def forward(self, x):
        if self.training:
            weight = self.weight_mu + self.weight_sigma.mul(Variable(self.weight_epsilon))
        else:
            weight = self.weight_mu
        return F.linear(x, weight)
""",
    "(6, 3)",
)
CASES(
    "isinstance-dispatch",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        if isinstance(x, (list, tuple)):
            x = torch.cat(x, dim=0)
        if not torch.is_tensor(x):
            raise TypeError("tensor expected")
        if x.dtype != torch.float32:
            x = x.float()
        if x.ndim == 3:
            x = x.mean(1)
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "list-of-lengths",
    "(torch.randn(2, 5, 4), [5, 3])",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        out = []
        for i, n in enumerate(lengths):
            if n > 0:
                out.append(self.fc(x[i, :n]).mean(0))
        return torch.stack(out)
""",
    "(4,)",
)
CASES(
    "window-size-tuple",
    "(torch.randn(2, 16, 4), (4, 4))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)

    def forward(self, x, size):
        h, w = size
        b, n, c = x.shape
        if n != h * w:
            raise ValueError("size")
        y = self.conv(x.transpose(1, 2).reshape(b, c, h, w))
        return y.flatten(2).transpose(1, 2)
""",
    "(4,)",
)
CASES(
    "hw-ints",
    "(torch.randn(2, 16, 4), 4, 4)",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dw = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x, H, W):
        B, N, C = x.shape
        if H > 1 and W > 1:
            x = self.dw(x.transpose(1, 2).view(B, C, H, W)).flatten(2).transpose(1, 2)
        return x
""",
    "(4,)",
)
CASES(
    "float-argument",
    "(torch.randn(2, 4), 0.5)",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, lam):
        y = self.fc(x)
        if lam > 0:
            y = y * lam
        return y
""",
    "(4,)",
)
CASES(
    "timestep-argument",
    "(torch.randn(2, 4), torch.tensor([1, 2]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half) / half)
        args = t[:, None].float() * freqs[None]
        emb = torch.cat([args.cos(), args.sin()], -1)
        return self.fc(x + emb)
""",
    "(4,)",
)
CASES(
    "threshold-count-while",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, tol):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.tol = tol

    def forward(self, x):
        z = torch.zeros_like(x)
        for _ in range(3):
            new = torch.tanh(self.fc(z) + x)
            if torch.norm(new - z) < self.tol:
                break
            z = new
        return z
""",
    "(6, 1e-3)",
)
CASES(
    "err-item-compare",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, eps=1e-3, max_iter=3):
        super().__init__()
        self.eps = eps
        self.max_iter = max_iter

    def forward(self, x):
        u = torch.zeros(x.shape[0])
        for i in range(self.max_iter):
            u1 = u
            u = u - 0.1 * x.sum(1)
            err = (u - u1).abs().sum(-1).mean()
            if err.item() < self.eps:
                break
        return u
""",
    "(6,)",
)
CASES(
    "cdist-cuda-string",
    X2,
    """
class M(nn.Module):
    def __init__(self, num_classes, feat_dim, use_gpu=False):
        super().__init__()
        self.use_gpu = use_gpu
        if self.use_gpu:
            self.centers = nn.Parameter(torch.randn(num_classes, feat_dim).cuda())
        else:
            self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))
        self.num_classes = num_classes

    def forward(self, x):
        batch_size = x.size(0)
        distmat = torch.pow(x, 2).sum(dim=1, keepdim=True).expand(batch_size, self.num_classes)
        distmat = distmat + torch.pow(self.centers, 2).sum(dim=1, keepdim=True).expand(self.num_classes, batch_size).t()
        distmat.addmm_(x, self.centers.t(), beta=1, alpha=-2)
        classes = torch.arange(self.num_classes).long()
        if self.use_gpu:
            classes = classes.cuda()
        return distmat.clamp(min=1e-12)
""",
    "(3, 6)",
)
CASES(
    "cells-under-numbered-names",
    "(torch.rand(1, 2, 6, 6),)",
    """
class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.conv = nn.Conv2d(inputs, hidden, 3, padding=1)
        self.peephole = None

    def forward(self, x, c):
        return torch.tanh(self.conv(x) + c * self.peephole)

    def init_hidden(self, batch, hidden, height, width):
        if self.peephole is None:
            self.peephole = Variable(torch.zeros(1, hidden, height, width))
        return torch.zeros(batch, hidden, height, width)


class M(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        widths = [inputs] + hidden
        for i in range(len(hidden)):
            setattr(self, "cell{}".format(i), Cell(widths[i], widths[i + 1]))

    def forward(self, x):
        for i in range(len(self.hidden)):
            batch, _, height, width = x.size()
            cell = getattr(self, "cell{}".format(i))
            x = cell(x, cell.init_hidden(batch, self.hidden[i], height, width))
        return x
""",
    "(2, [4, 2])",
)
