"""Normalisation layers, spectral norm, codebooks and other models that keep state."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, X4, Cases

CASES = Cases()

CASES(
    "spectral-norm-data",
    X2,
    """
def l2normalize(v, eps=1e-12):
    return v / (v.norm() + eps)


class M(nn.Module):
    def __init__(self, dim, power_iterations=1):
        super().__init__()
        self.module = nn.Linear(dim, dim)
        self.name = "weight"
        self.power_iterations = power_iterations
        w = self.module.weight
        height = w.data.shape[0]
        self.module.register_parameter("weight_u", nn.Parameter(w.data.new(height).normal_(0, 1), requires_grad=False))
        self.module.register_parameter("weight_v", nn.Parameter(w.data.new(height).normal_(0, 1), requires_grad=False))
        self.module.register_parameter("weight_bar", nn.Parameter(w.data))
        del self.module._parameters["weight"]

    def _update_u_v(self):
        u = getattr(self.module, self.name + "_u")
        v = getattr(self.module, self.name + "_v")
        w = getattr(self.module, self.name + "_bar")
        height = w.data.shape[0]
        for _ in range(self.power_iterations):
            v.data = l2normalize(torch.mv(torch.t(w.view(height, -1).data), u.data))
            u.data = l2normalize(torch.mv(w.view(height, -1).data, v.data))
        sigma = u.dot(w.view(height, -1).mv(v))
        setattr(self.module, self.name, w / sigma.expand_as(w))

    def forward(self, *args):
        self._update_u_v()
        return self.module.forward(*args)
""",
    "(6,)",
)
CASES(
    "torch-spectral-norm",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.utils.spectral_norm(nn.Linear(dim, dim))

    def forward(self, x):
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "queue-pointer",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def __init__(self, dim=4, K=8):
        super().__init__()
        self.K = K
        self.register_buffer("queue", torch.randn(dim, K))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr:ptr + batch_size] = keys.T
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    def forward(self, x):
        logits = x @ self.queue.clone().detach()
        self._dequeue_and_enqueue(x)
        return logits
""",
)
CASES(
    "vq-codebook",
    X3,
    """
class M(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost=0.25):
        super().__init__()
        self._embedding_dim = embedding_dim
        self._num_embeddings = num_embeddings
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.uniform_(-1 / num_embeddings, 1 / num_embeddings)
        self._commitment_cost = commitment_cost

    def forward(self, inputs):
        input_shape = inputs.shape
        flat = inputs.view(-1, self._embedding_dim)
        weight = self._embedding.weight
        distances = torch.sum(flat ** 2, dim=1, keepdim=True) + torch.sum(weight ** 2, dim=1) - 2 * flat @ weight.t()
        indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, indices, 1)
        quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)
        loss = F.mse_loss(quantized.detach(), inputs) * self._commitment_cost
        quantized = inputs + (quantized - inputs).detach()
        return loss, quantized
""",
    "(8, 4)",
)
CASES(
    "vq-initted",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, n_embed, decay=0.99):
        super().__init__()
        self.decay = decay
        embed = torch.randn(dim, n_embed)
        self.register_buffer("embed", embed)
        self.register_buffer("initted", torch.tensor(False))

    def init_embed_(self, data):
        if self.initted:
            return
        self.embed.copy_(data[: self.embed.shape[0], :].t()[:, : self.embed.shape[1]])
        self.initted.copy_(torch.tensor(True))

    def forward(self, x):
        self.init_embed_(x)
        return (x @ self.embed).argmax(-1)
""",
    "(6, 4)",
)
CASES(
    "vq-data-lookup",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, n_embed):
        super().__init__()
        self.register_buffer("embed", torch.randn(dim, n_embed))
        self.register_buffer("cluster_size", torch.zeros(n_embed))

    def forward(self, x):
        ind = (x @ self.embed).argmax(-1)
        hot = F.one_hot(ind, self.embed.size(1)).type(x.dtype)
        if self.training:
            self.cluster_size.data.mul_(0.9).add_(hot.sum(0), alpha=0.1)
        quantize = F.embedding(ind, self.embed.t())
        return x + (quantize - x).detach()
""",
    "(6, 4)",
)
CASES(
    "batch-norm-momentum",
    X2,
    """
class M(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))

    def forward(self, x):
        factor = self.momentum
        self.num_batches_tracked += 1
        if self.momentum is None:
            factor = 1.0 / float(self.num_batches_tracked)
        mean = x.mean(0)
        self.running_mean = (1 - factor) * self.running_mean + factor * mean
        return x - self.running_mean
""",
    "(6,)",
)
CASES(
    "actnorm",
    X4,
    """
class M(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, num_features, 1, 1))
        self.scale = nn.Parameter(torch.ones(1, num_features, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def initialize(self, input):
        with torch.no_grad():
            flatten = input.permute(1, 0, 2, 3).contiguous().view(input.shape[1], -1)
            mean = flatten.mean(1).unsqueeze(1).unsqueeze(2).unsqueeze(3).permute(1, 0, 2, 3)
            self.loc.data.copy_(-mean)

    def forward(self, input):
        if self.training and self.initialized.item() == 0:
            self.initialize(input)
            self.initialized.fill_(1)
        return self.scale * (input + self.loc)
""",
    "(3,)",
)
CASES(
    "actnorm-eval",
    X4,
    """
class M(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, num_features, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def forward(self, input):
        if self.initialized.item() == 0:
            self.initialized.fill_(1)
        return input + self.loc
""",
    "(3,)",
)
CASES(
    "weight-clip",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        self.fc.weight.data.clamp_(-1, 1)
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "weight-norm-direct",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(dim, out))
        self.weight.data.uniform_(-1, 1).renorm_(2, 1, 1e-5).mul_(1e5)

    def forward(self, x):
        return F.normalize(x, dim=1).mm(F.normalize(self.weight, dim=0))
""",
    "(6, 3)",
)
CASES(
    "angular-margin",
    "(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))",
    """
class M(nn.Module):
    def __init__(self, in_features, out_features, s=30.0, m=0.50, easy_margin=False):
        super().__init__()
        self.s = s
        self.weight = nn.Parameter(torch.FloatTensor(out_features, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.easy_margin = easy_margin
        self.cos_m = math.cos(m)
        self.sin_m = math.sin(m)
        self.th = math.cos(math.pi - m)

    def forward(self, input, label):
        cosine = F.linear(F.normalize(input), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        if self.easy_margin:
            phi = torch.where(cosine > 0, phi, cosine)
        else:
            phi = torch.where(cosine > self.th, phi, cosine)
        one_hot = torch.zeros(cosine.size(), device=input.device)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return ((one_hot * phi) + ((1.0 - one_hot) * cosine)) * self.s
""",
    "(6, 3)",
)
CASES(
    "sphere-data",
    "(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))",
    """
class M(nn.Module):
    def __init__(self, in_features, out_features, m=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features))
        self.m = m
        self.iter = 0

    def forward(self, input, label):
        self.iter += 1
        cos_theta = F.linear(F.normalize(input), F.normalize(self.weight)).clamp(-1, 1)
        theta = cos_theta.data.acos()
        k = (self.m * theta / 3.14159265).floor()
        return cos_theta * k
""",
    "(6, 3)",
)
CASES(
    "lstm-state-kept-on-self",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.hidden = (torch.zeros(1, 2, dim), torch.zeros(1, 2, dim))

    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        return out
""",
    "(4,)",
)
CASES(
    "lstm-state-begun-anew",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.hidden = self.init_hidden(2)

    def init_hidden(self, batch):
        return (torch.zeros(1, batch, self.dim), torch.zeros(1, batch, self.dim))

    def forward(self, x):
        self.hidden = self.init_hidden(x.size(0))
        out, self.hidden = self.rnn(x, self.hidden)
        return out
""",
    "(4,)",
)
CASES(
    "gru-state-only-looked-at",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.start = torch.zeros(1, 2, dim)
        self.last = torch.zeros(1, 2, dim)

    def forward(self, x):
        out, self.last = self.rnn(x, self.start)
        return out + self.last[0][:, None]
""",
    "(4,)",
)
CASES(
    "data-in-an-assert",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        assert torch.max(x.data) <= 100
        return x * 2
""",
)
CASES(
    "steps-of-a-default-tensor",
    X2,
    """
class M(nn.Module):
    def forward(self, x, t=torch.tensor([0.0, 0.2])):
        n = math.ceil((abs(t[1] - t[0]) / 0.05).max().item())
        for _ in range(n):
            x = x + 0.05 * torch.tanh(x)
        return x
""",
)
CASES(
    "threshold-of-the-file",
    X2,
    """
SCALES = torch.tensor([0.5, 2.0])
SHIFT = torch.tensor(math.pi)


class M(nn.Module):
    def forward(self, x):
        x = torch.sin(x * SHIFT)
        if SCALES[1] > 1:
            return x * SCALES[1]
        return x
""",
)
CASES(
    "tensors-in-a-list-of-self",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [torch.tensor(1.0), torch.tensor(2.0)]

    def forward(self, x):
        for scale in self.scales:
            if scale > 1:
                x = x * scale
        return x
""",
)
CASES(
    "tensors-in-a-list-of-self-computed-with",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {"low": torch.tensor(1.0), "high": torch.tensor([2.0])}

    def forward(self, x):
        for scale in self.scales.values():
            x = torch.where(x > scale, x, scale)
        return x
""",
)
CASES(
    "mask-kept-where-the-model-is",
    "(torch.randn(2, 3, 4),)",
    """
class Block(nn.Module):
    def __init__(self, width, heads, attn_mask=None):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads)
        self.ln = nn.LayerNorm(width)
        self.attn_mask = attn_mask

    def attention(self, x):
        self.attn_mask = (
            self.attn_mask.to(dtype=x.dtype, device=x.device) if self.attn_mask is not None else None
        )
        return self.attn(x, x, x, need_weights=False, attn_mask=self.attn_mask)[0]

    def forward(self, x):
        return x + self.attention(self.ln(x))


class M(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        mask = torch.full((length, length), float("-inf")).triu_(1)
        self.blocks = nn.Sequential(*[Block(width, heads, mask) for _ in range(2)])

    def forward(self, x):
        return self.blocks(x.permute(1, 0, 2)).permute(1, 0, 2)
""",
    "(4, 2, 3)",
)
CASES(
    "frequencies-made-anew",
    "(torch.randn(2, 3, 4),)",
    """
class M(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.dim = dim
        self.inv_freq = 1.0 / (10.0 ** (torch.arange(0, dim, 2).float() / dim))
        self.seen = 0
        self.cache = None

    def update(self, length):
        if length > self.seen:
            steps = torch.arange(0, self.dim, 2, device=self.inv_freq.device).float()
            self.inv_freq = 1.0 / (10.0 ** (steps / self.dim))
            self.inv_freq = torch.zeros(2, device=self.inv_freq.device) + self.dim
            self.seen = length
            self.cache = torch.outer(torch.arange(length, device=self.inv_freq.device), self.inv_freq)

    def forward(self, x):
        self.update(x.shape[1])
        return x + self.cache.sum()
""",
)
CASES(
    "average-kept-in-a-ternary",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def __init__(self, keep=True):
        super().__init__()
        self.keep = keep
        self.mean = torch.zeros(4)

    def forward(self, x):
        self.mean = self.mean * 0.9 + x.mean(0) if self.keep else x.mean(0)
        return x - self.mean
""",
)
CASES(
    "dimension-added-in-place",
    "(torch.rand(4, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        best = x.argmax(1)[0]
        best.unsqueeze_(0)
        y = torch.zeros(3)
        y[best] = 1.0
        return y
""",
)
CASES(
    "state-set-back-in-its-own-shape",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(4), False)

    def forward(self, x):
        self.level = torch.zeros_like(self.level, device=self.level.device)
        for row in x:
            self.level = 0.9 * self.level + row
        return self.level * 1
""",
)
CASES(
    "sum-for-a-log-that-begins-with-a-number",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0.0

    def forward(self, x):
        self.seen = self.seen + x.mean()
        return x * 2
""",
)
CASES(
    "parameters-set-from-the-first-batch",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.bias = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        if self.scale.data.shape[0] == x.size(1):
            with torch.no_grad():
                self.bias.data = -x.mean(0)
                self.scale.data = 1 / (x.std(0) + 1e-6)
        return (x + self.bias) * self.scale
""",
)
CASES(
    "spectral-norm-of-a-given-layer",
    X2,
    """
def l2normalize(v, eps=1e-12):
    return v / (v.norm() + eps)


class M(nn.Module):
    def __init__(self, module, name="weight", power_iterations=1):
        super().__init__()
        self.module = module
        self.name = name
        self.power_iterations = power_iterations
        if not self._made_params():
            self._make_params()

    def _update_u_v(self):
        u = getattr(self.module, self.name + "_u")
        v = getattr(self.module, self.name + "_v")
        w = getattr(self.module, self.name + "_bar")
        height = w.shape[0]
        for _ in range(self.power_iterations):
            v.data = l2normalize(torch.mv(torch.t(w.view(height, -1).data), u.data))
            u.data = l2normalize(torch.mv(w.view(height, -1).data, v.data))
        sigma = u.dot(w.view(height, -1).mv(v))
        setattr(self.module, self.name, w / sigma.expand_as(w))

    def _made_params(self):
        try:
            getattr(self.module, self.name + "_u")
            getattr(self.module, self.name + "_bar")
            return True
        except AttributeError:
            return False

    def _make_params(self):
        w = getattr(self.module, self.name)
        u = nn.Parameter(w.data.new(w.shape[0]).normal_(0, 1), requires_grad=False)
        v = nn.Parameter(w.data.new(w.view(w.shape[0], -1).shape[1]).normal_(0, 1), requires_grad=False)
        u.data = l2normalize(u.data)
        v.data = l2normalize(v.data)
        w_bar = nn.Parameter(w.data)
        del self.module._parameters[self.name]
        self.module.register_parameter(self.name + "_u", u)
        self.module.register_parameter(self.name + "_v", v)
        self.module.register_parameter(self.name + "_bar", w_bar)

    def forward(self, *args):
        self._update_u_v()
        return self.module.forward(*args)
""",
    "(nn.Linear(6, 6),)",
)
CASES(
    "places-kept-without-elements",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("spikes", torch.ByteTensor())
        self.register_buffer("level", torch.FloatTensor())
        self.reset(4)

    def reset(self, batch):
        self.spikes = torch.zeros(batch, 6, dtype=torch.bool)
        self.level = torch.zeros(batch, 6)

    def forward(self, x):
        return torch.where(self.spikes, self.level, x) + x[:, self.spikes[0]].sum()
""",
)
CASES(
    "written-before-an-operator-under-a-flag-that-is-off",
    X2,
    """
class M(nn.Module):
    def __init__(self, keep=False):
        super().__init__()
        self.keep = keep
        self.scale = None

    def forward(self, x):
        if self.keep:
            self.scale = x.mean()
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        self.scale = y.mean() + 2
        return x * self.scale
""",
)
CASES(
    "written-before-an-operator-on-both-ways",
    X2,
    """
class M(nn.Module):
    def __init__(self, keep=False):
        super().__init__()
        self.keep = keep
        self.scale = None

    def forward(self, x):
        if self.keep:
            self.scale = x.mean()
        else:
            self.scale = x.max()
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        self.scale = y.mean() + 2
        return x * self.scale
""",
)
CASES(
    "potential-that-is-set-back-first",
    X3,
    """
class Neuron(nn.Module):
    def __init__(self, decay=0.5):
        super().__init__()
        self.decay = decay
        self.potential = 0.0

    def forward(self, x):
        self.potential = self.potential * self.decay + x
        spike = (self.potential > 1.0).float()
        self.potential = self.potential * (1 - spike)
        return spike

    def reset(self):
        self.potential = 0.0


class M(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(layers)])
        self.neurons = nn.ModuleList([Neuron() for _ in range(layers)])

    def forward(self, x):
        for neuron in self.neurons:
            neuron.reset()
        total = 0
        for step in range(x.size(1)):
            value = x[:, step]
            for layer, neuron in zip(self.layers, self.neurons):
                value = neuron(layer(value))
            total = total + value
        return total / x.size(1)
""",
)
CASES(
    "written-around-an-operator-under-a-flag-that-is-on",
    X2,
    """
class M(nn.Module):
    def __init__(self, smooth=True):
        super().__init__()
        self.smooth = smooth
        self.scale = None

    def forward(self, x):
        self.scale = x.mean()
        if self.smooth:
            y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
            self.scale = y.mean() + 2
        return x * self.scale
""",
)
CASES(
    "draw-that-only-training-asks-for",
    X2,
    """
class M(nn.Module):
    def __init__(self, kept, p=0.1):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.kept = kept
        self.p = p

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            chance = np.random.random()
            if self.kept[i] == 1 and (not self.training or chance > self.p):
                x = layer(x)
        return x
""",
    "([1, 1],)",
)
CASES(
    "state-detached-in-place",
    "(torch.randn(2, 3), torch.randn(2, 3))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, state):
        state.detach_()
        return self.layer(x) + torch.tanh(state)
""",
)
CASES(
    "made-and-detached-in-place",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        y.detach_()
        y.unsqueeze_(1)
        return y + 1
""",
)
CASES(
    "input-unsqueezed-in-place",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        x.unsqueeze_(0)
        return self.layer(x)
""",
)
CASES(
    "buffer-turned-in-place",
    "(torch.randn(3, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mix", torch.randn(3, 3))
        self.plain = torch.randn(3, 3)

    def forward(self, x):
        return x @ self.mix.t_()
""",
)
CASES(
    "table-that-grows-when-it-must",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = self.longer(8)

    def longer(self, length, table=None):
        if table is not None:
            if table.size(0) >= length:
                if table.dtype != torch.float32:
                    table = table.to(torch.float32)
                return table
        table = torch.arange(length, dtype=torch.float32).unsqueeze(1)
        return table.sin()

    def forward(self, x):
        self.table = self.longer(x.size(0), self.table)
        return x + self.table[: x.size(0)]
""",
)
CASES(
    "state-renewed-by-a-method",
    "(torch.randn(2, 3),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(3))

    def renewed(self, state, x):
        state = state * 0.5 + x.mean(0)
        return state

    def forward(self, x):
        self.state = self.renewed(self.state, x)
        return x + self.state
""",
)
CASES(
    "data-kept-on-the-parameter",
    X2,
    """
class M(nn.Linear):
    def __init__(self):
        super().__init__(6, 3)

    def forward(self, x):
        out = F.linear(x, self.weight.sign())
        self.bias.org = self.bias.data.clone()
        return out + self.bias.view(1, -1).expand_as(out)
""",
)
CASES(
    "states-that-are-set-back-by-their-names",
    X2,
    """
class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.defaults = {}

    def add_state(self, name, default):
        setattr(self, name, default)
        self.defaults[name] = default

    def reset(self):
        for name, value in self.defaults.items():
            setattr(self, name, [] if isinstance(value, list) else value)

    def forward(self, x):
        self.reset()
        self.update(x)
        return self.compute()


class M(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("rows", default=[])

    def update(self, x):
        self.rows.append(x.mean(0))

    def compute(self):
        return torch.stack(self.rows).sum()
""",
)
