"""What strict mode does not take of Python and of older torch, and what it takes."""

from __future__ import annotations

from tests.inference.cases.case import X2, X3, Cases

CASES = Cases()

CASES(
    "logger-info-in-forward",
    X2,
    """
import logging

logger = logging.getLogger(__name__)


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        logger.info("shape %s", y.shape)
        return y
""",
    "(6,)",
)
CASES(
    "logger-warning-once-branch",
    X2,
    """
import logging

logger = logging.getLogger(__name__)


class M(nn.Module):
    def __init__(self, dim, verbose=False):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.verbose = verbose

    def forward(self, x):
        if self.verbose:
            logger.warning("verbose")
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "timer-in-forward",
    X2,
    """
import time


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.elapsed = 0.0

    def forward(self, x):
        start = time.time()
        y = self.fc(x)
        self.elapsed = time.time() - start
        return y
""",
    "(6,)",
)
CASES(
    "losses-collected-on-self",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = nn.Linear(dim, dim)
        self.b = nn.Linear(dim, dim)
        self.features = []

    def forward(self, x):
        self.features = []
        for layer in (self.a, self.b):
            x = F.relu(layer(x))
            self.features.append(x)
        return x
""",
    "(6,)",
)
CASES(
    "attention-map-kept",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.attn_map = None

    def save_attn(self, attn):
        self.attn_map = attn

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        self.save_attn(attn)
        return (attn @ v).transpose(1, 2).reshape(B, N, C)
""",
    "(4,)",
)
CASES(
    "call-counter",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "straight-through-function",
    X2,
    """
class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class M(nn.Module):
    def __init__(self, dim, levels=4):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.levels = levels

    def forward(self, x):
        return RoundSTE.apply(self.fc(x), self.levels)
""",
    "(6,)",
)
CASES(
    "gradient-reversal",
    X2,
    """
from torch.autograd import Function


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        output = grad_output.neg() * ctx.alpha
        return output, None


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cls = nn.Linear(dim, 2)
        self.dom = nn.Linear(dim, 2)

    def forward(self, x, alpha=1.0):
        rev = ReverseLayerF.apply(x, alpha)
        return self.cls(x), self.dom(rev)
""",
    "(6,)",
)
CASES(
    "mish-function-saved",
    X2,
    """
class SwishImplementation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_variables[0]
        sigmoid_i = torch.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i)))


class MemoryEfficientSwish(nn.Module):
    def forward(self, x):
        return SwishImplementation.apply(x)


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self._swish = MemoryEfficientSwish()

    def forward(self, x):
        return self._swish(self.fc(x))
""",
    "(6,)",
)
CASES(
    "function-needs-input-grad",
    X2,
    """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g * w
        if ctx.needs_input_grad[1]:
            gw = (g * x).sum(0)
        return gx, gw


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return Scale.apply(x, self.w)
""",
    "(6,)",
)
CASES(
    "function-mark-dirty",
    X2,
    """
class Inplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return None


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        return y + Inplace.apply(y)
""",
    "(6,)",
)
CASES(
    "function-data-dependent-forward",
    X2,
    """
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bound):
        if x.abs().max() > bound:
            x = x / x.abs().max() * bound
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g, None


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return Clip.apply(self.fc(x), 1.0)
""",
    "(6,)",
)
CASES(
    "force-gradient",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, x):
        x.requires_grad_(True)
        energy = self.net(x)
        force = -torch.autograd.grad(energy.sum(), x, create_graph=True)[0]
        return energy, force
""",
    "(6,)",
)
CASES(
    "requires-grad-attribute",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        h0 = torch.zeros(x.size(0), x.size(1)).requires_grad_()
        return self.fc(x) + h0.detach()
""",
    "(6,)",
)
CASES(
    "lstm-requires-grad-state",
    X3,
    """
class M(nn.Module):
    def __init__(self, input_dim, hidden_dim, layer_dim=1):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.layer_dim = layer_dim
        self.lstm = nn.LSTM(input_dim, hidden_dim, layer_dim, batch_first=True)

    def forward(self, x):
        h0 = torch.zeros(self.layer_dim, x.size(0), self.hidden_dim, device=x.device).requires_grad_()
        c0 = torch.zeros(self.layer_dim, x.size(0), self.hidden_dim, device=x.device).requires_grad_()
        out, (hn, cn) = self.lstm(x, (h0.detach(), c0.detach()))
        return out[:, -1, :]
""",
    "(4, 6)",
)
CASES(
    "variable-in-helper",
    X2,
    """
def to_var(x):
    if torch.cuda.is_available():
        x = x.cuda()
    return Variable(x)


class M(nn.Module):
    def __init__(self, dim, z=3):
        super().__init__()
        self.mu = nn.Linear(dim, z)
        self.logvar = nn.Linear(dim, z)

    def forward(self, x):
        mu, logvar = self.mu(x), self.logvar(x)
        eps = to_var(torch.randn(mu.size(0), mu.size(1)))
        return mu + eps * torch.exp(logvar / 2)
""",
    "(6,)",
)
CASES(
    "variable-imported-in-init-only",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.pe = Variable(torch.ones(dim), requires_grad=False)

    def forward(self, x):
        return self.fc(x) + self.pe
""",
    "(6,)",
)
CASES(
    "variable-volatile-mask",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super(M, self).__init__()
        pe = torch.zeros(10, dim)
        position = torch.arange(0., 10).unsqueeze(1)
        div_term = torch.exp(torch.arange(0., dim, 2) * -(math.log(10000.0) / dim))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer('pe', pe.unsqueeze(0))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        x = x + Variable(self.pe[:, :x.size(1)], requires_grad=False)
        return self.dropout(x)
""",
    "(4,)",
)
CASES(
    "deepcopy-layers-in-init",
    X2,
    """
import copy


def clones(module, N):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


class M(nn.Module):
    def __init__(self, dim, n=2):
        super().__init__()
        self.layers = clones(nn.Linear(dim, dim), n)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    "(6,)",
)
CASES(
    "deepcopy-in-forward",
    X2,
    """
import copy


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        residual = copy.deepcopy(x)
        return self.fc(x) + residual
""",
    "(6,)",
)
CASES(
    "deepcopy-of-dict-in-forward",
    X2,
    """
import copy


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        state = {"h": self.fc(x).detach(), "n": 2}
        other = copy.deepcopy(state)
        return x + other["h"]
""",
    "(6,)",
)
CASES(
    "deepcopy-of-config-list",
    X2,
    """
import copy


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.order = [1, 0]

    def forward(self, x):
        order = copy.deepcopy(self.order)
        order.reverse()
        return self.fc(x)[:, order]
""",
    "(6,)",
)
CASES(
    "amp-decorator",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = self.fc(x.float())
        with torch.no_grad():
            z = y.mean()
        return y + z
""",
    "(6,)",
)
CASES(
    "checkpoint-branch",
    X2,
    """
import torch.utils.checkpoint as checkpoint


class M(nn.Module):
    def __init__(self, dim, use_checkpoint=False):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(dim, dim) for _ in range(2)])
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        for blk in self.blocks:
            if self.use_checkpoint:
                x = checkpoint.checkpoint(blk, x)
            else:
                x = blk(x)
        return x
""",
    "(6,)",
)
CASES(
    "instance-hooks-in-init",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.feat = None
        self.fc.register_forward_hook(self.hook)

    def hook(self, module, inp, out):
        self.feat = out

    def forward(self, x):
        y = self.fc(x)
        return y * 2
""",
    "(6,)",
)
CASES(
    "global-write",
    X2,
    """
COUNT = 0


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        global COUNT
        COUNT += 1
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "random-choice-of-branch",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim)])

    def forward(self, x):
        op = random.choice(list(self.ops))
        return op(x)
""",
    "(6,)",
)
CASES(
    "seeded-np-mask-training",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, p=0.5):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.p = p

    def forward(self, x):
        if self.training and np.random.rand() < self.p:
            lam = np.random.beta(0.5, 0.5)
            perm = torch.randperm(x.size(0))
            x = x * lam + x[perm] * (1 - lam)
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "mixup-numpy-always",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        lam = np.random.beta(0.5, 0.5)
        return self.fc(x * lam)
""",
    "(6,)",
)
CASES(
    "scipy-assignment",
    "(torch.randn(4, 6), torch.randn(5, 6))",
    """
class M(nn.Module):
    @torch.no_grad()
    def forward(self, a, b):
        cost = torch.cdist(a, b)
        c = cost.cpu().numpy()
        rows = np.argmin(c, axis=1)
        return torch.as_tensor(rows)
""",
)
CASES(
    "from-numpy-of-table",
    X3,
    """
def get_sinusoid_encoding_table(n_position, d_hid):
    def get_position_angle_vec(position):
        return [position / np.power(10000, 2 * (hid_j // 2) / d_hid) for hid_j in range(d_hid)]

    table = np.array([get_position_angle_vec(pos_i) for pos_i in range(n_position)])
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.FloatTensor(table).unsqueeze(0)


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer('pos_table', get_sinusoid_encoding_table(10, dim))

    def forward(self, x):
        return x + self.pos_table[:, :x.size(1)].clone().detach()
""",
    "(4,)",
)
CASES(
    "numpy-table-in-forward",
    X3,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        n = x.size(1)
        mask = np.triu(np.ones((1, n, n)), k=1).astype('uint8')
        mask = torch.from_numpy(mask) == 0
        scores = torch.matmul(x, x.transpose(1, 2)).masked_fill(mask == 0, -1e9)
        return torch.matmul(scores.softmax(-1), self.fc(x))
""",
    "(4,)",
)
CASES(
    "handler-of-what-does-not-happen",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        for name, value in list(self.fc.named_parameters()):
            self.register_buffer(f"{name}_mean", value.detach().clone())

    def penalty(self):
        try:
            losses = []
            for name, value in self.fc.named_parameters():
                losses.append((value - getattr(self, f"{name}_mean")).pow(2).sum())
            return sum(losses)
        except AttributeError:
            return Variable(torch.zeros(1))

    def forward(self, x):
        return self.fc(x).sum() + self.penalty()
""",
)
CASES(
    "converted-to-the-type-of-another",
    "(torch.randn(3, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.priors = torch.rand(4)

    def forward(self, x):
        return x.sigmoid() * self.priors.type(type(x.data))
""",
)
CASES(
    "exit-stack-that-nothing-enters",
    "(torch.randn(3, 4),)",
    """
from contextlib import ExitStack


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = False

    def forward(self, x):
        with ExitStack() as stack:
            if self.frozen:
                stack.enter_context(torch.no_grad())
            return x * 2
""",
)
CASES(
    "legacy-function-by-a-class-method",
    X2,
    """
class Drop(torch.autograd.function.InplaceFunction):
    @classmethod
    def forward(cls, ctx, x, p=0.5, train=False):
        ctx.p = p
        ctx.train = train
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None, None


class M(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.p = p
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return Drop.apply(self.fc(x), self.p, self.training)
""",
)
CASES(
    "dirty-only-in-place",
    X2,
    """
class Drop(torch.autograd.function.InplaceFunction):
    @staticmethod
    def forward(ctx, x, p=0.5, train=False, inplace=False):
        ctx.p = p
        if inplace:
            ctx.mark_dirty(x)
            output = x
        else:
            output = x.clone()
        return output

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None, None, None


class M(nn.Module):
    def __init__(self, p=0.1, inplace=False):
        super().__init__()
        self.p = p
        self.inplace = inplace

    def forward(self, x):
        return Drop.apply(x, self.p, self.training, self.inplace)
""",
)
CASES(
    "dirty-of-a-layer-and-returned",
    X2,
    """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return Twice.apply(self.fc(x)) + 1
""",
)
CASES(
    "dirty-of-a-layer-and-what-comes-of-it-returned",
    X2,
    """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return Twice.apply(self.fc(x)) + 1
""",
)
CASES(
    "context-made-by-the-constructor",
    X2,
    """
class Depth:
    def __init__(self):
        self.used = 0

    def __enter__(self):
        self.used += 1
        return self

    def __exit__(self, *error):
        self.used -= 1


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = Depth()

    def forward(self, x):
        with self.depth:
            return x + 1
""",
)
CASES(
    "context-made-by-traced-code",
    X2,
    """
class Depth:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class M(nn.Module):
    def depth(self):
        self.kept = Depth()
        return self.kept

    def forward(self, x):
        with self.depth():
            x = x + 1
        with self.kept:
            return x * 2
""",
)
CASES(
    "context-copied-by-traced-code",
    X2,
    """
import copy
import dataclasses


@dataclasses.dataclass
class Depth:
    start: int = 1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = Depth(3)

    def forward(self, x):
        with dataclasses.replace(self.depth, start=4):
            x = x + 1
        with copy.deepcopy(Depth()):
            return x * 2
""",
)
CASES(
    "tensor-of-what-is-gone-through",
    "(torch.randn(2, 3), torch.tensor([1, 2]))",
    """
class M(nn.Module):
    def forward(self, x, lengths):
        kept = torch.as_tensor(lengths).to(torch.int64)
        return x[:, kept], torch.stack([n - 1 for n in lengths])
""",
)
CASES(
    "property-with-a-setter",
    X2,
    """
import threading

LOCK = threading.Lock()


class Settings:
    def __init__(self, debug=False):
        self._debug = debug
        self._scale = 2.0

    @property
    def debug(self):
        return self._debug

    @debug.setter
    def debug(self, value):
        self._debug = value

    def _get_scale(self):
        return self._scale

    def _set_scale(self, value):
        self._scale = max(value, 1.0)

    scale = property(_get_scale, _set_scale)
    half = property(fget=lambda self: self._scale / 2)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()
        self.settings.scale = 0.5

    def forward(self, x):
        if self.settings.debug:
            with LOCK:
                x = x + 1
        if self.settings.scale != 1.0 or self.settings.half != 0.5:
            assert x.sum() > 0
        return x * 2
""",
)
CASES(
    "property-that-was-set",
    X2,
    """
class Settings:
    @property
    def bounded(self):
        return self._bounded

    @bounded.setter
    def bounded(self, value):
        self._bounded = value

    @bounded.deleter
    def bounded(self):
        del self._bounded


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()
        self.settings.bounded = True

    def forward(self, x):
        if self.settings.bounded and x.max() > 100:
            return x.clamp(max=100)
        return x * 2
""",
)
CASES(
    "class-decorator-that-chooses-forward",
    X2,
    """
def doubled(self, x):
    return x * 2


CHOICES = {"doubled": doubled}


def switchable(cls=None, *, flag=True):
    def wrapper(cls):
        plain, make = cls.forward, cls.__init__

        def __init__(self, *args, **kwargs):
            make(self, *args, **kwargs)
            self.flag = flag

        def forward(self, *args, **kwargs):
            return CHOICES.get(self.kind, plain)(self, *args, **kwargs)

        cls.__init__ = __init__
        cls.forward = forward
        return cls

    return wrapper if cls is None else wrapper(cls)


@switchable
class M(nn.Module):
    def __init__(self, kind="doubled"):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x if x.sum() > 0 else -x
""",
)
CASES(
    "class-decorator-that-keeps-forward",
    X2,
    """
def doubled(self, x):
    return x * 2


CHOICES = {"doubled": doubled}


def switchable(cls=None, *, flag=True):
    def wrapper(cls):
        plain, make = cls.forward, cls.__init__

        def __init__(self, *args, **kwargs):
            make(self, *args, **kwargs)
            self.flag = flag

        def forward(self, *args, **kwargs):
            return CHOICES.get(self.kind, plain)(self, *args, **kwargs)

        cls.__init__ = __init__
        cls.forward = forward
        return cls

    return wrapper if cls is None else wrapper(cls)


@switchable(flag=False)
class M(nn.Module):
    def __init__(self, kind="plain"):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x
""",
)
CASES(
    "constructor-argument-that-the-class-declares-off",
    X2,
    """
class Settings:
    def __init__(self, checked=False):
        self.checked = checked


class Base(nn.Module):
    config: Settings

    def __init__(self, config):
        super().__init__()
        self.config = config


class M(Base):
    def __init__(self, config):
        super().__init__(config)
        self.checked = config.checked

    def forward(self, x):
        if self.checked and x.sum() > 100:
            x = x.clamp(max=1)
        return x * 2
""",
    "(Settings(),)",
)
CASES(
    "constructor-argument-that-the-class-declares-on",
    X2,
    """
class Settings:
    def __init__(self, checked=True):
        self.checked = checked


class Base(nn.Module):
    config: Settings

    def __init__(self, config):
        super().__init__()
        self.config = config


class M(Base):
    def __init__(self, config):
        super().__init__(config)
        self.checked = config.checked

    def forward(self, x):
        if self.checked and x.sum() > 100:
            x = x.clamp(max=1)
        return x * 2
""",
    "(Settings(),)",
)
CASES(
    "function-keeps-what-it-computed",
    "(torch.randn(2, 5, 6),)",
    """
def make_positions(tensor, padding_idx):
    max_pos = padding_idx + 1 + tensor.size(1)
    if not hasattr(make_positions, "range_buf"):
        make_positions.range_buf = torch.arange(padding_idx + 1, 768)
    if make_positions.range_buf.numel() < max_pos:
        torch.arange(padding_idx + 1, max_pos, out=make_positions.range_buf)
    return make_positions.range_buf[: tensor.size(1)]


class M(nn.Module):
    def forward(self, x):
        return x + make_positions(x, 1)[:, None]
""",
)
CASES(
    "attribute-is-set-on-a-function-by-name",
    X2,
    """
def scaled(x):
    setattr(scaled, f"calls_{x.device}", 1)
    return x * 2


class M(nn.Module):
    def forward(self, x):
        return scaled(x)
""",
)
CASES(
    "attribute-is-set-on-a-function-of-the-trace-and-on-a-class",
    X2,
    """
class Config:
    scale = 1


class M(nn.Module):
    def forward(self, x):
        def scaled(y):
            return y * scaled.by

        scaled.by = 3
        Config.scale = 2
        return scaled(x) * Config.scale
""",
)
CASES(
    "loss-with-old-arguments",
    "(torch.rand(2, 6), torch.rand(2, 6))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.entropy = nn.BCELoss(size_average=False)

    def forward(self, x, y):
        loss = nn.MSELoss(reduce=False, size_average=False)
        return self.entropy(x, y) + loss(x, y).mean()
""",
)
CASES(
    "losses-of-the-constructor-with-old-arguments",
    "(torch.rand(2, 6), torch.rand(2, 6), torch.tensor([1, 2]))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.entropy = nn.BCELoss(None, False)

    def forward(self, x, y, t):
        loss = self.entropy(x, y) + nn.MSELoss(size_average=None)(x, y)
        loss = loss + nn.CrossEntropyLoss(size_average=False)(x, t)
        return loss + F.l1_loss(x, y, size_average=False)
""",
)
CASES(
    "forward-copied-by-init-subclass",
    X2,
    """
import types
from inspect import getattr_static


class Base(nn.Module):
    seen = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Base.seen[cls.__name__] = cls
        forward = getattr_static(cls, "forward")
        if "forward" not in cls.__dict__ and isinstance(forward, types.FunctionType):
            cls.forward = types.FunctionType(forward.__code__, forward.__globals__, "forward")

    def forward(self, x):
        return self.apply(x)


class M(Base):
    def apply(self, x):
        if "M" in Base.seen and (x > 100).any():
            return x * 2
        return x
""",
)
