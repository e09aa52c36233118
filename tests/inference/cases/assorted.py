"""What else public code does."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, X4, Cases

CASES = Cases()

CASES(
    "lstm-zero-hidden-cuda",
    X3,
    """
class M(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers=1):
        super(M, self).__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_size, 2)

    def forward(self, x):
        h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        c0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1, :])
""",
    "(4, 6)",
)
CASES(
    "flatten-parameters",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x):
        self.rnn.flatten_parameters()
        out, h = self.rnn(x)
        return out
""",
    "(4,)",
)
CASES(
    "module-list-index",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, n_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n_layers)])
        self.norms = nn.ModuleList()
        for i in range(n_layers):
            self.norms.append(nn.LayerNorm(dim))
        self.n_layers = n_layers

    def forward(self, x):
        for i in range(self.n_layers):
            x = self.norms[i](F.relu(self.layers[i](x)) + x)
        return x
""",
    "(6, 2)",
)
CASES(
    "squeeze-excite",
    X4,
    """
class M(nn.Module):
    def __init__(self, channel, reduction=16):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channel, max(channel // reduction, 1), bias=False), nn.ReLU(inplace=True),
            nn.Linear(max(channel // reduction, 1), channel, bias=False), nn.Sigmoid())

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        return x * self.fc(y).view(b, c, 1, 1).expand_as(x)
""",
    "(3,)",
)
CASES(
    "non-local-block",
    X4,
    """
class M(nn.Module):
    def __init__(self, in_channels, sub_sample=False, bn_layer=True):
        super().__init__()
        self.inter = max(in_channels // 2, 1)
        self.g = nn.Conv2d(in_channels, self.inter, 1)
        self.theta = nn.Conv2d(in_channels, self.inter, 1)
        self.phi = nn.Conv2d(in_channels, self.inter, 1)
        self.W = nn.Conv2d(self.inter, in_channels, 1)
        nn.init.constant_(self.W.weight, 0)

    def forward(self, x, return_nl_map=False):
        batch = x.size(0)
        g_x = self.g(x).view(batch, self.inter, -1).permute(0, 2, 1)
        f = torch.matmul(self.theta(x).view(batch, self.inter, -1).permute(0, 2, 1), self.phi(x).view(batch, self.inter, -1))
        y = torch.matmul(F.softmax(f, dim=-1), g_x).permute(0, 2, 1).contiguous()
        z = self.W(y.view(batch, self.inter, *x.size()[2:])) + x
        if return_nl_map:
            return z, f
        return z
""",
    "(3,)",
)
CASES(
    "multi-scale-inputs",
    "([torch.randn(2, 3, 8, 8), torch.randn(2, 3, 4, 4)],)",
    """
class M(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(in_channels, out_channels, 1) for _ in range(2)])

    def forward(self, inputs):
        laterals = [conv(inputs[i]) for i, conv in enumerate(self.convs)]
        for i in range(len(laterals) - 1, 0, -1):
            laterals[i - 1] += F.interpolate(laterals[i], size=laterals[i - 1].shape[2:], mode="nearest")
        return tuple(laterals)
""",
    "(3, 4)",
)
CASES(
    "group-norm-helper",
    X4,
    """
def norm(kind, n):
    if kind == "bn":
        return nn.BatchNorm2d(n)
    elif kind == "gn":
        return nn.GroupNorm(1, n)
    raise ValueError(kind)


class M(nn.Module):
    def __init__(self, inplanes, planes, stride=1, downsample=None, kind="gn"):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = norm(kind, planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        residual = x
        out = self.bn1(self.conv1(x))
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        return self.relu(out)
""",
    "(3, 3)",
)
CASES(
    "shake-shake",
    X4,
    """
class ShakeShake(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, training=True):
        if training:
            alpha = torch.rand(x1.size(0))
            alpha = alpha.view(alpha.size(0), 1, 1, 1).expand_as(x1)
        else:
            alpha = 0.5
        return alpha * x1 + (1 - alpha) * x2

    @staticmethod
    def backward(ctx, grad_output):
        beta = torch.rand(grad_output.size(0))
        beta = beta.view(beta.size(0), 1, 1, 1).expand_as(grad_output)
        beta = Variable(beta)
        return beta * grad_output, (1 - beta) * grad_output, None


class M(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 1)
        self.b = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return ShakeShake.apply(self.a(x), self.b(x), self.training)
""",
    "(3,)",
)
CASES(
    "memory-update-no-grad",
    "(torch.randn(2, 4), torch.tensor([0, 1]))",
    """
class M(nn.Module):
    def __init__(self, size, dim, momentum=0.5):
        super().__init__()
        self.register_buffer("memory", torch.randn(size, dim))
        self.register_buffer("params", torch.tensor([0.07, momentum]))

    def forward(self, x, y):
        T = self.params[0].item()
        momentum = self.params[1].item()
        out = torch.mm(x, self.memory.t()) / T
        with torch.no_grad():
            pos = torch.index_select(self.memory, 0, y.view(-1))
            pos.mul_(momentum).add_(x * (1 - momentum))
            self.memory.index_copy_(0, y, F.normalize(pos))
        return out
""",
    "(8, 4)",
)
CASES(
    "nce-z-negative",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.register_buffer("memory", torch.randn(size, dim))
        self.register_buffer("Z", torch.tensor([-1.0]))

    def forward(self, x):
        out = torch.exp(torch.mm(x, self.memory.t()))
        if self.Z < 0:
            self.Z = out.mean() * 8
        return out / self.Z
""",
    "(8, 4)",
)
CASES(
    "ema-teacher",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, m=0.99):
        super().__init__()
        self.m = m
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        for pq, pk in zip(self.q.parameters(), self.k.parameters()):
            pk.data.copy_(pq.data)
            pk.requires_grad = False

    @torch.no_grad()
    def _momentum_update(self):
        for pq, pk in zip(self.q.parameters(), self.k.parameters()):
            pk.data = pk.data * self.m + pq.data * (1.0 - self.m)

    def forward(self, x):
        with torch.no_grad():
            self._momentum_update()
            k = self.k(x)
        return self.q(x), k
""",
    "(6,)",
)
CASES(
    "temperature-schedule",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, t=1.0):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.temperature = t
        self.step = 0

    def forward(self, x):
        if self.training:
            self.step += 1
            self.temperature = max(0.1, self.temperature * 0.99)
        return F.gumbel_softmax(self.fc(x), tau=self.temperature, hard=False)
""",
    "(6,)",
)
CASES(
    "gate-top-k",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, experts, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(experts)])
        self.k = k

    def forward(self, x):
        w, idx = torch.topk(self.gate(x).softmax(-1), self.k)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, nth = torch.where(idx == i)
            out[rows] += w[rows, nth, None] * expert(x[rows])
        return out
""",
    "(6, 3)",
)
CASES(
    "gate-skip-empty",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(experts)])

    def forward(self, x):
        idx = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = idx == i
            if mask.any():
                out[mask] = expert(x[mask])
        return out
""",
    "(6, 3)",
)
CASES(
    "adaptive-halting",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, max_steps=3):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.p = nn.Linear(dim, 1)
        self.max_steps = max_steps

    def forward(self, x):
        halting = torch.zeros(x.shape[0])
        step = 0
        while ((halting < 0.99) & (step < self.max_steps)).byte().any():
            halting = halting + torch.sigmoid(self.p(x)).squeeze(-1)
            x = self.fc(x)
            step += 1
        return x
""",
    "(6,)",
)
CASES(
    "soft-nms-weights",
    "(torch.rand(5, 4),)",
    """
class M(nn.Module):
    def __init__(self, sigma=0.5):
        super().__init__()
        self.sigma = sigma

    def forward(self, boxes):
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        order = areas.argsort(descending=True)
        boxes = boxes[order]
        n = boxes.shape[0]
        iou = torch.zeros(n, n)
        for i in range(n):
            for j in range(n):
                left = torch.max(boxes[i, 0], boxes[j, 0])
                right = torch.min(boxes[i, 2], boxes[j, 2])
                iou[i, j] = (right - left).clamp(min=0)
        return torch.exp(-iou ** 2 / self.sigma)
""",
)
CASES(
    "python-max-of-tensors",
    "(torch.rand(5, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, boxes):
        left = max(boxes[0, 0], boxes[1, 0])
        return boxes - left
""",
)
CASES(
    "roi-loop",
    "(torch.rand(1, 3, 8, 8), torch.tensor([[0, 0, 4, 4], [1, 1, 5, 6]]))",
    """
class M(nn.Module):
    def __init__(self, output_size):
        super().__init__()
        self.pool = nn.AdaptiveMaxPool2d(output_size)

    def forward(self, images, rois):
        res = []
        for i in range(rois.size(0)):
            roi = rois[i]
            x1, y1, x2, y2 = roi[0].item(), roi[1].item(), roi[2].item(), roi[3].item()
            res.append(self.pool(images[0, :, y1:y2 + 1, x1:x2 + 1]))
        return torch.stack(res)
""",
    "(2,)",
)
CASES(
    "roi-loop-int",
    "(torch.rand(1, 3, 8, 8), torch.tensor([[0, 0, 4, 4], [1, 1, 5, 6]]))",
    """
class M(nn.Module):
    def __init__(self, output_size):
        super().__init__()
        self.pool = nn.AdaptiveMaxPool2d(output_size)

    def forward(self, images, rois):
        res = []
        for roi in rois:
            x1, y1, x2, y2 = [int(v) for v in roi]
            res.append(self.pool(images[0, :, y1:y2, x1:x2]))
        return torch.stack(res)
""",
    "(2,)",
)
CASES(
    "asserted-number-with-a-message",
    X2,
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        outside = (x > 1000).sum()
        assert outside.item() == 0, "values are out of range"
        return x * 2
""",
)
CASES(
    "asserted-number-between-bounds",
    "(torch.randint(0, 5, (3, 4)),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)

    def forward(self, ids: torch.Tensor):
        assert ids.min().item() >= 0 and ids.max().item() < self.embed.num_embeddings
        return self.embed(ids)
""",
)
CASES(
    "asserted-number-alone",
    X2,
    """
class M(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x.sum(1) > -100.0]
        assert x.abs().max().item() < 1000
        assert kept.shape[0] <= x.shape[0], "more rows than there were"
        assert x.shape[1] == 6 and kept.dim() == 2, f"not {tuple(x.shape)}"
        return kept.sum(0)
""",
)
CASES(
    "item-of-a-plain-attribute-decides",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.floor = torch.tensor([2.0])
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x: torch.Tensor):
        assert self.floor.item() > 0, "not set"
        if self.floor.item() > 1:
            x = x * 2
        return x
""",
)
CASES(
    "moved-without-parameters",
    X2,
    """
class Noise(nn.Module):
    def __init__(self, sigma=0.1, generator=None):
        super().__init__()
        self.generator = generator
        self.noise_model = lambda x: x + 1
        self.register_buffer("sigma", torch.tensor(sigma))

    def to(self, *args, **kwargs):
        super().to(*args, **kwargs)
        return self

    def forward(self, x):
        self.to(x.device)
        return x * self.sigma


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = Noise()
        self.act = nn.ReLU()

    def forward(self, x):
        self.act.to(x.device)
        return self.act(self.noise(x))
""",
)
CASES(
    "moved-with-parameters",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(6, 6))

    def forward(self, x):
        self.layers.to(x.device)
        return self.layers(x)
""",
)
CASES(
    "moved-layer-of-a-class-of-its-own",
    X2,
    """
class Narrow(nn.Linear):
    def forward(self, x):
        return super().forward(x)[:, :3]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow = Narrow(6, 6)

    def forward(self, x):
        self.narrow.to(x.device)
        return self.narrow(x)
""",
)
CASES(
    "moved-encoder",
    X3,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2, enable_nested_tensor=False)

    def forward(self, x):
        self.encoder.to(x.device)
        return self.encoder(x)
""",
)
CASES(
    "moved-norms-and-what-calls-functions",
    X4,
    """
class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.function = F.relu

    def forward(self, x):
        return self.function(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.InstanceNorm2d(3), Act())

    def forward(self, x):
        self.layers.to(x.device)
        return self.layers(x)
""",
)
CASES(
    "moved-norm-with-parameters-by-choice",
    X4,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(3, affine=True)

    def forward(self, x):
        self.norm.to(x.device)
        return self.norm(x)
""",
)
CASES(
    "moved-layers-by-name",
    X2,
    """
class M(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(6, 6) for name in names})

    def forward(self, x):
        self.layers.to(x.device)
        for layer in self.layers.values():
            x = layer(x)
        return x
""",
    "(['a', 'b'],)",
)
CASES(
    "backward-hook-of-a-layer",
    X4,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.offsets = nn.Conv2d(3, 3, 3, padding=1)
        self.offsets.register_full_backward_hook(self._slow)

    @staticmethod
    def _slow(module, grad_input, grad_output):
        grad_input = (grad * 0.1 for grad in grad_input)

    def forward(self, x):
        x = torch.relu(x)
        return x + self.offsets(x)
""",
)
CASES(
    "backward-hook-within-a-sequential",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
        for layer in self.layers:
            layer.register_full_backward_hook(lambda module, given, made: None)

    def forward(self, x):
        return self.layers(x)
""",
)
CASES(
    "hooks-that-do-no-harm",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.layer.register_forward_hook(lambda module, given, made: made * 2)
        self.layer.weight.register_hook(lambda grad: grad * 0.1)

    def forward(self, x):
        return self.layer(x)
""",
)
CASES(
    "clamped-between-a-number-and-a-tensor",
    "(torch.randn(4, 8), torch.tensor([48.0, 64.0]))",
    """
class M(nn.Module):
    def forward(self, boxes: torch.Tensor, size: torch.Tensor):
        boxes = boxes.clone()
        boxes[:, 0::4].clamp_(0, size[1] - 1)
        return boxes
""",
)
CASES(
    "clamped-by-tensors-and-known-numbers",
    "(torch.randn(4, 8), torch.tensor([48.0, 64.0]))",
    """
class M(nn.Module):
    def __init__(self, low=0.0):
        super().__init__()
        self.low = low

    def forward(self, boxes: torch.Tensor, size: torch.Tensor):
        high = size.max().item()
        most = torch.tensor(3.0)
        boxes = boxes.clamp(self.low, high) + boxes.clamp(max=size[0]) + boxes.clamp(size[0], size[1])
        return boxes.clamp(0, most) + torch.full_like(boxes, boxes.shape[1])
""",
)
CASES(
    "derivative-of-a-power",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(6))

    def potential(self, x):
        return (x * self.weight).pow(2).sum()

    def forward(self, x):
        x = x.requires_grad_(True)
        return torch.autograd.grad(self.potential(x), x, create_graph=True)[0]
""",
)
CASES(
    "derivative-of-a-network",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 1))

    def potential(self, x):
        return self.net(x).sum() + 0.5 * x.pow(2).sum()

    def forward(self, x):
        x = x.requires_grad_(True)
        energy = self.potential(x)
        return torch.autograd.grad(energy, x, create_graph=True)[0]
""",
)
CASES(
    "made-like-data",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        mask = torch.tril(torch.ones(4, 6)).type_as(x.data)
        return x * mask
""",
)
CASES(
    "moved-to-data",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        mask = torch.tril(torch.ones(4, 6)).to(x.data)
        return x * mask
""",
)
CASES(
    "backward-hook-that-an-option-asks-for",
    X2,
    """
class M(nn.Module):
    def __init__(self, watched):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        if watched:
            self.layer.register_full_backward_hook(lambda module, given, made: None)

    def forward(self, x):
        return self.layer(x)
""",
    "(False,)",
)
CASES(
    "backward-hook-of-a-layer-that-is-given",
    X2,
    """
class M(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.layer.register_full_backward_hook(lambda module, given, made: None)

    def forward(self, x):
        return self.layer(x)
""",
    "(nn.Linear(6, 6),)",
)
CASES(
    "backward-hook-that-is-removed",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        handle = self.layer.register_full_backward_hook(lambda module, given, made: None)
        handle.remove()

    def forward(self, x):
        return self.layer(x)
""",
)
CASES(
    "derivative-of-a-convolution",
    X4,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.SiLU())

    def forward(self, x):
        x = x.requires_grad_(True)
        return torch.autograd.grad(self.net(x).pow(2).sum(), x)[0]
""",
)
CASES(
    "derivative-behind-a-layer",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        hidden = self.layer(x)
        return torch.autograd.grad(hidden.pow(2).sum(), hidden)[0]
""",
)
CASES(
    "derivative-around-a-detached-layer",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        x = x.requires_grad_(True)
        return torch.autograd.grad((self.layer(x).detach() * x).sum(), x)[0]
""",
)
CASES(
    "generator-with-a-seed-made-while-tracing",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        chance = random.Random(3)
        return x * chance.uniform(0, 2)
""",
)
CASES(
    "clamped-by-a-new-tensor-of-a-number",
    X2,
    """
class M(nn.Module):
    def __init__(self, high):
        super().__init__()
        self.high = high

    def forward(self, x):
        return x.clamp(0, x.new_tensor(self.high)) + torch.full_like(x, x.new_tensor(x.shape[1]))
""",
    "(3.0,)",
)
