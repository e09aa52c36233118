"""What models return: caches, own classes, and what torch.export takes as an output all the same."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, X4, Cases

CASES = Cases()

CASES(
    "own-cache-class",
    "(torch.randn(2, 5, 4), None)",
    """
class KVCache:
    def __init__(self):
        self.k = None
        self.v = None

    def update(self, k, v):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat([self.k, k], dim=1)
            self.v = torch.cat([self.v, v], dim=1)
        return self.k, self.v


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, dim * 3)

    def forward(self, x, cache=None):
        if cache is None:
            cache = KVCache()
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k, v = cache.update(k, v)
        return F.scaled_dot_product_attention(q, k, v), cache
""",
    "(4,)",
)
CASES(
    "dataclass-output",
    X2,
    """
from dataclasses import dataclass


@dataclass
class Output:
    logits: torch.Tensor
    hidden: Optional[torch.Tensor] = None


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x) -> Output:
        h = self.fc(x)
        return Output(logits=h, hidden=x)
""",
    "(6,)",
)
CASES(
    "namedtuple-output",
    X2,
    """
from collections import namedtuple

VAEOutput = namedtuple('VAEOutput', ['recon', 'mu', 'logvar'])


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mu = nn.Linear(dim, dim)
        self.logvar = nn.Linear(dim, dim)

    def forward(self, x):
        return VAEOutput(recon=x, mu=self.mu(x), logvar=self.logvar(x))
""",
    "(6,)",
)
CASES(
    "typed-namedtuple-output",
    X2,
    """
from typing import NamedTuple


class Out(NamedTuple):
    loss: torch.Tensor
    logits: torch.Tensor


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        return Out(y.mean(), y)
""",
    "(6,)",
)
CASES(
    "diagonal-gaussian",
    X4,
    """
class DiagonalGaussianDistribution(object):
    def __init__(self, parameters, deterministic=False):
        self.parameters = parameters
        self.mean, self.logvar = torch.chunk(parameters, 2, dim=1)
        self.logvar = torch.clamp(self.logvar, -30.0, 20.0)
        self.deterministic = deterministic
        self.std = torch.exp(0.5 * self.logvar)
        self.var = torch.exp(self.logvar)

    def sample(self):
        return self.mean + self.std * torch.randn(self.mean.shape).to(device=self.parameters.device)

    def mode(self):
        return self.mean


class M(nn.Module):
    def __init__(self, ch=3, embed_dim=4):
        super().__init__()
        self.quant_conv = nn.Conv2d(ch, 2 * embed_dim, 1)
        self.post_quant_conv = nn.Conv2d(embed_dim, ch, 1)

    def encode(self, x):
        return DiagonalGaussianDistribution(self.quant_conv(x))

    def forward(self, input, sample_posterior=False):
        posterior = self.encode(input)
        z = posterior.sample() if sample_posterior else posterior.mode()
        return self.post_quant_conv(z), posterior
""",
)
CASES(
    "diagonal-gaussian-inside",
    X4,
    """
class Gaussian:
    def __init__(self, parameters):
        self.mean, self.logvar = torch.chunk(parameters, 2, dim=1)
        self.std = torch.exp(0.5 * self.logvar)

    def mode(self):
        return self.mean

    def kl(self):
        return 0.5 * torch.sum(self.mean.pow(2) + self.std.pow(2) - 1.0 - self.logvar, dim=[1, 2, 3])


class M(nn.Module):
    def __init__(self, ch=3, embed_dim=4):
        super().__init__()
        self.quant_conv = nn.Conv2d(ch, 2 * embed_dim, 1)

    def forward(self, x):
        posterior = Gaussian(self.quant_conv(x))
        return posterior.mode(), posterior.kl()
""",
)
CASES(
    "easydict-output",
    X2,
    """
class AttrDict(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        out = AttrDict()
        out.pred = self.fc(x)
        return out
""",
    "(6,)",
)
CASES(
    "simple-namespace-output",
    X2,
    """
from types import SimpleNamespace


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return SimpleNamespace(last_hidden_state=self.fc(x))
""",
    "(6,)",
)
CASES(
    "simple-namespace-inside",
    X2,
    """
from types import SimpleNamespace


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.cfg = SimpleNamespace(residual=True, scale=2.0)

    def forward(self, x):
        y = self.fc(x)
        if self.cfg.residual:
            y = y + x
        return y * self.cfg.scale
""",
    "(6,)",
)
CASES(
    "distribution-output",
    X2,
    """
from torch.distributions import Normal


class M(nn.Module):
    def __init__(self, dim, act):
        super().__init__()
        self.mu = nn.Linear(dim, act)
        self.log_std = nn.Parameter(-0.5 * torch.ones(act))

    def _distribution(self, obs):
        return Normal(self.mu(obs), torch.exp(self.log_std), validate_args=False)

    def forward(self, obs, act=None):
        pi = self._distribution(obs)
        logp_a = None
        if act is not None:
            logp_a = pi.log_prob(act).sum(axis=-1)
        return pi, logp_a
""",
    "(6, 2)",
)
CASES(
    "set-in-output",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        return {"y": y, "names": ("a", 1, None, True), "shape": y.shape, "n": y.size(0)}
""",
    "(6,)",
)
CASES(
    "device-and-dtype-in-output",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        return y, y.dtype
""",
    "(6,)",
)
CASES(
    "lambda-in-output",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)

        def decode(z):
            return z * 2

        return y, decode
""",
    "(6,)",
)
CASES(
    "returns-array",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        return y, y.detach().cpu().numpy()
""",
    "(6,)",
)
CASES(
    "returns-parameter-list-and-int",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(dim)) for _ in range(2)])

    def forward(self, x):
        feats = [self.fc(x) * s for s in self.scales]
        return feats, [f.mean() for f in feats], len(feats)
""",
    "(6,)",
)
CASES(
    "loss-item-output",
    "(torch.randn(4, 6), torch.randn(4, 6))",
    """
class M(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = weight

    def forward(self, pred, target):
        l1 = F.l1_loss(pred, target)
        l2 = F.mse_loss(pred, target)
        total = l1 + self.weight * l2
        return total, {"l1": l1.item(), "l2": l2.item()}
""",
)
CASES(
    "ordered-dict-of-features",
    X4,
    """
from collections import OrderedDict, defaultdict


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(OrderedDict([
            ("conv1", nn.Conv2d(3, 4, 3, padding=1)),
            ("relu", nn.ReLU()),
            ("conv2", nn.Conv2d(4, 5, 3, padding=1)),
        ]))
        self.return_layers = {"conv1": "0", "conv2": "1"}

    def forward(self, x):
        out = OrderedDict()
        for name, module in self.body.named_children():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out
""",
)
CASES(
    "box-class-output",
    X4,
    """
class ImageList:
    def __init__(self, tensors, image_sizes):
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device):
        return ImageList(self.tensors.to(device), self.image_sizes)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        images = ImageList(x, [(im.shape[-2], im.shape[-1]) for im in x])
        feats = self.conv(images.tensors)
        return feats, images
""",
)
CASES(
    "self-as-output-tuple",
    X3,
    """
class State(object):
    __slots__ = ('h', 'c')

    def __init__(self, h, c):
        self.h = h
        self.c = c


class M(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)

    def forward(self, x, state=None):
        hc = None if state is None else (state.h, state.c)
        out, (h, c) = self.rnn(x, hc)
        return out, State(h, c)
""",
    "(4, 6)",
)
CASES(
    "ordered-dict-named-like-a-library-class",
    X2,
    """
from collections import OrderedDict


class ModelOutput(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])

    def forward(self, x, levels=None):
        output = ModelOutput()
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if levels is not None and i in levels:
                output[f"layer_{i}"] = x
        output["embedding"] = x
        return output
""",
    "(6,)",
)
CASES(
    "a-distribution-of-its-own",
    X2,
    """
class FixedCategorical(torch.distributions.Categorical):
    def log_probs(self, actions):
        return super().log_prob(actions.squeeze(-1)).unsqueeze(-1)

    def mode(self):
        return self.probs.argmax(dim=-1, keepdim=True)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return FixedCategorical(logits=self.fc(x)).mode()
""",
)
CASES(
    "a-distribution-of-its-own-unvalidated",
    X2,
    """
class Gaussian(torch.distributions.Normal):
    def __init__(self, mean, log_std):
        super().__init__(mean, log_std.exp(), validate_args=False)

    def mode(self):
        return self.mean


class M(nn.Module):
    def forward(self, x):
        return Gaussian(x, x).mode()
""",
)
CASES(
    "objects-made-for-each-row",
    "(torch.randn(3, 4),)",
    """
class Found:
    def __init__(self, values):
        self.values = values


class M(nn.Module):
    def forward(self, x):
        found = []
        for row in range(x.shape[0]):
            found.append(Found(x[row] * 2))
        return found
""",
)
