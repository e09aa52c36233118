"""Models that export although they look as if they might not: decisions on configuration, sizes and types."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, X4, Cases

CASES = Cases()

CASES(
    "config-strings",
    X4,
    """
class M(nn.Module):
    def __init__(self, ch=3, norm='bn', act='relu', pool=None):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1)
        norm = norm.lower()
        if norm == 'bn':
            self.norm = nn.BatchNorm2d(ch)
        elif norm == 'in':
            self.norm = nn.InstanceNorm2d(ch)
        else:
            raise NotImplementedError('normalization layer [%s] is not found' % norm)
        self.act = {'relu': nn.ReLU(), 'lrelu': nn.LeakyReLU(0.2)}[act]
        self.pool = pool

    def forward(self, x):
        x = self.act(self.norm(self.conv(x)))
        if self.pool is not None and self.pool > 1:
            x = F.avg_pool2d(x, self.pool)
        return x
""",
)
CASES(
    "downsample-or-identity",
    X4,
    """
class M(nn.Module):
    expansion = 1

    def __init__(self, inplanes=3, planes=3, stride=1, downsample=None):
        super(M, self).__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.bn1(self.conv1(x))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        if self.downsample:
            out = out * 2
        return self.relu(out)
""",
)
CASES(
    "shape-guards",
    X4,
    """
class M(nn.Module):
    def __init__(self, window=4):
        super().__init__()
        self.window = window
        self.proj = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        _, _, H, W = x.size()
        pad_r = (self.window - W % self.window) % self.window
        pad_b = (self.window - H % self.window) % self.window
        if pad_r > 0 or pad_b > 0:
            x = F.pad(x, (0, pad_r, 0, pad_b))
        if x.shape[1] != 3:
            raise ValueError("expected three channels, got %d" % x.shape[1])
        x = self.proj(x)
        if pad_r > 0 or pad_b > 0:
            x = x[:, :, :H, :W].contiguous()
        return x
""",
)
CASES(
    "isinstance-of-input",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        if isinstance(x, (list, tuple)):
            x = x[0]
        if not torch.is_tensor(x):
            x = torch.from_numpy(x)
        if type(x) is tuple:
            x = x[0]
        if x.dtype == torch.float16:
            x = x.float()
        if x.is_cuda:
            x = x.cpu()
        if x.requires_grad:
            x = x * 1
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "upsample-to-match",
    "(torch.randn(1, 3, 4, 4), torch.randn(1, 3, 9, 9))",
    """
class M(nn.Module):
    def __init__(self, ch=3, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)
        else:
            self.up = nn.ConvTranspose2d(ch, ch, 2, stride=2)
        self.conv = nn.Conv2d(2 * ch, ch, 3, padding=1)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        if x1.shape[2:] != x2.shape[2:]:
            x1 = F.interpolate(x1, size=x2.shape[2:])
        return self.conv(torch.cat([x2, x1], dim=1))
""",
)
CASES(
    "optional-mask",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        assert dim % heads == 0
        self.h = heads
        self.d_k = dim // heads
        self.linears = nn.ModuleList([nn.Linear(dim, dim) for _ in range(4)])
        self.attn = None
        self.dropout = nn.Dropout(p=0.1)

    def attention(self, query, key, value, mask=None, dropout=None):
        d_k = query.size(-1)
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p_attn = scores.softmax(dim=-1)
        if dropout is not None:
            p_attn = dropout(p_attn)
        return torch.matmul(p_attn, value), p_attn

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = query if value is None else value
        if mask is not None:
            mask = mask.unsqueeze(1)
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        x, attn = self.attention(query, key, value, mask=mask, dropout=self.dropout)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[-1](x)
""",
    "(4,)",
)
CASES(
    "list-of-features-truth",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, n=3, skip=(1,)):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])
        self.skip = skip

    def forward(self, x):
        feats = []
        for i, layer in enumerate(self.layers):
            if i in self.skip and feats:
                x = x + feats[-1]
            x = layer(x)
            feats.append(x)
        if not feats:
            return x
        cache = {}
        cache['last'] = feats[-1]
        if cache and 'last' in cache and len(feats) > 2:
            x = cache.get('last') + feats[0]
        return x
""",
    "(6,)",
)
CASES(
    "item-of-numpy-and-python",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, drop_path_rate=0.1, depth=3):
        super().__init__()
        dpr = [x.item() for x in torch.linspace(0, drop_path_rate, depth)]
        self.rates = dpr
        self.scale = np.array([2.0]).item()
        self.width = int(np.floor(dim / 2).item())
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        for r in self.rates:
            if r > 0.05:
                x = F.dropout(x, r, self.training)
        if self.scale > 1:
            x = x * self.scale
        return self.fc(x)[:, :self.width]
""",
    "(6,)",
)
CASES(
    "try-import-flag",
    X3,
    """
try:
    from flash_attn_not_there import flash_attn_func
    HAS_FLASH = True
except ImportError:
    flash_attn_func = None
    HAS_FLASH = False


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        if HAS_FLASH and q.is_cuda:
            return flash_attn_func(q, k, v)
        if hasattr(F, 'scaled_dot_product_attention'):
            return F.scaled_dot_product_attention(q, k, v)
        return (q @ k.transpose(-2, -1)).softmax(-1) @ v
""",
    "(4,)",
)
CASES(
    "args-flags",
    X2,
    """
class M(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.fc1 = nn.Linear(args.in_dim, args.hidden)
        self.fc2 = nn.Linear(args.hidden, args.out_dim)
        if args.use_bn:
            self.bn = nn.BatchNorm1d(args.hidden)

    def forward(self, x):
        x = self.fc1(x)
        if self.args.use_bn:
            x = self.bn(x)
        if self.args.activation == 'relu':
            x = F.relu(x)
        elif self.args.activation == 'tanh':
            x = torch.tanh(x)
        if self.args.dropout > 0:
            x = F.dropout(x, self.args.dropout, training=self.training)
        if getattr(self.args, 'residual', False):
            x = x + self.fc1.bias
        return self.fc2(x)
""",
    "(__import__('argparse').Namespace(in_dim=6, hidden=5, out_dim=2, use_bn=True, activation='relu', dropout=0.1),)",
)
CASES(
    "training-only-item",
    "(torch.randn(4, 6), torch.randn(4, 6))",
    """
class M(nn.Module):
    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.momentum = momentum
        self.register_buffer('running', torch.zeros(1))

    def forward(self, x, y):
        out = self.fc(x)
        if self.training:
            err = (out - y).abs().mean()
            if err > self.running:
                self.running.copy_(err)
            if err.item() > 10:
                raise RuntimeError('diverged')
        return out
""",
    "(6,)",
)
CASES(
    "where-instead-of-if",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        n = (x > 0).sum()
        scale = torch.where(n > 0, 1.0 / n.clamp(min=1), torch.zeros(()))
        y = self.fc(x)
        y = torch.where(torch.isnan(y), torch.zeros_like(y), y)
        y[y < 0] = 0
        y = y.masked_fill(y > 1, 1.0)
        return y * scale
""",
    "(6,)",
)
CASES(
    "shape-arithmetic",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim, chunk=2):
        super().__init__()
        self.chunk = chunk
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        n_chunks = math.ceil(n / self.chunk)
        outs = []
        for i in range(n_chunks):
            piece = x[:, i * self.chunk:min((i + 1) * self.chunk, n)]
            if piece.shape[1] == 0:
                break
            outs.append(self.fc(piece))
        out = torch.cat(outs, 1)
        assert out.shape == (b, n, d)
        assert out.size(1) == n, 'length changed'
        while out.dim() < 4:
            out = out.unsqueeze(0)
        return out
""",
    "(4,)",
)
CASES(
    "constant-tensor-decisions",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.sizes = torch.tensor([2, 4]).tolist()
        self.total = int(torch.tensor([2, 4]).sum())

    def forward(self, x):
        y = self.fc(x)
        a, b = torch.split(y, self.sizes, dim=1)
        if self.total == 6 and sum(self.sizes) == x.size(1):
            y = torch.cat([b, a], 1)
        return y
""",
    "(6,)",
)
CASES(
    "dict-input-flags",
    "({'image': torch.randn(2, 6), 'scale': torch.ones(2, 1)},)",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, batch):
        x = batch['image']
        y = self.fc(x)
        if 'scale' in batch:
            y = y * batch['scale']
        if batch.get('mask') is not None:
            y = y * batch['mask']
        return {'pred': y, **batch}
""",
    "(6,)",
)
CASES(
    "generator-and-any-over-config",
    X2,
    """
class M(nn.Module):
    def __init__(self, dims=(6, 5, 4), acts=('relu', None)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.acts = acts

    def forward(self, x):
        if any(a is not None for a in self.acts) and all(isinstance(l, nn.Linear) for l in self.layers):
            pass
        for layer, act in zip(self.layers, self.acts):
            x = layer(x)
            if act:
                x = getattr(F, act)(x)
        return x
""",
)
CASES(
    "kwargs-pop",
    X2,
    """
class Block(nn.Module):
    def __init__(self, dim, **kwargs):
        super().__init__()
        self.scale = kwargs.pop('scale', 1.0)
        self.use_res = kwargs.get('res', True)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, **kwargs):
        y = self.fc(x)
        if kwargs.get('mask') is not None:
            y = y * kwargs['mask']
        if self.use_res:
            y = y + x
        return y * self.scale if self.scale != 1.0 else y


class M(nn.Module):
    def __init__(self, dim, depth=2, **kwargs):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim, scale=i + 1, **kwargs) for i in range(depth)])

    def forward(self, x, *args, **kwargs):
        for b in self.blocks:
            x = b(x, **kwargs)
        return x
""",
    "(6,)",
)
CASES(
    "detach-instead-of-data",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.fc.weight.data.normal_(0, 0.02)
        self.fc.bias.data.zero_()
        self.register_buffer('mean', torch.zeros(dim).data)

    def forward(self, x):
        y = self.fc(x)
        return y - y.detach().mean() + self.mean
""",
    "(6,)",
)
CASES(
    "conv-weight-norm-eval-cache",
    X4,
    """
class M(nn.Module):
    def __init__(self, ch=3, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(ch, ch, 3, 3))
        self.gain = nn.Parameter(torch.ones(ch, 1, 1, 1))
        self.eps = eps

    def get_weight(self):
        fan_in = np.prod(self.weight.shape[1:])
        var, mean = torch.var_mean(self.weight, dim=[1, 2, 3], keepdim=True)
        scale = torch.rsqrt(torch.maximum(var * fan_in, torch.tensor(self.eps))) * self.gain
        return scale * (self.weight - mean)

    def forward(self, x):
        return F.conv2d(x, self.get_weight(), padding=1)
""",
)
CASES(
    "scheduled-by-epoch-attribute",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.epoch = 0
        self.alpha = torch.tensor(0.5).item()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def forward(self, x):
        if self.epoch > 5 or self.alpha > 0.4:
            x = x * self.alpha
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "sizes-and-options-unpacked",
    X3,
    """
class M(nn.Module):
    def __init__(self, sparse=False, scale=2.0):
        super().__init__()
        self.sparse = sparse
        self.scale = scale

    def forward(self, x):
        b, n, d, device, sparse, scale = *x.shape, x.device, self.sparse, self.scale
        if sparse:
            n = int(x.max().item())
        positions = torch.arange(n, device=device)
        return x * scale + positions[None, :, None] if scale > 1 else x
""",
)
CASES(
    "sizes-and-a-mask-unpacked",
    X3,
    """
class M(nn.Module):
    def forward(self, x):
        b, n, d, device, mask = *x.shape, x.device, x > 0
        if mask.any():
            x = x + torch.arange(n, device=device)[None, :, None]
        return x
""",
)
CASES(
    "last-layer-behind-an-optional-one",
    "(torch.randn(4, 6),)",
    """
class Pair(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Linear(size, size)

    def forward(self, x):
        return self.first(x), x


class M(nn.Module):
    def __init__(self, size, crossed):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.append(Pair(size))
        if crossed:
            self.layers.append(Pair(size))
        self.layers.append(nn.Linear(size, size))

    def forward(self, x):
        x = self.layers[0](x)[0]
        x = self.layers[-1](x)
        if x.dtype == torch.float16 and torch.isinf(x).any():
            x = torch.clamp(x, max=1000.0)
        return x
""",
    "(6, True)",
)
CASES(
    "nothing-in-the-list-that-a-loop-fills",
    X3,
    """
class M(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    def forward(self, x):
        outs = []
        for expert, rows in zip(self.experts, x):
            outs.append(expert(rows))
        if len(outs) > 0:
            outs = torch.stack(outs)
        else:
            outs = torch.empty_like(x).requires_grad_()
        return outs
""",
    "([nn.Linear(4, 4), nn.ReLU()],)",
)
CASES(
    "as-many-layers-as-are-asked-for",
    X2,
    """
class M(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(depth)])

    def forward(self, x):
        if len(self.layers) > 0:
            if x.sum() > 0:
                return x * 2
        return x * 1
""",
    "(2,)",
)
CASES(
    "until-nothing-is-left-in-the-list",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        left = [row for row in x]
        total = torch.zeros(6)
        while len(left) > 0:
            row = left.pop()
            if row.sum() > 0:
                total = total + row
        return total
""",
)
