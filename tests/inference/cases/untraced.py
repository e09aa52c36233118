"""What strict tracing does not follow: questions to torch, the standard library, builtins; and lookalikes that it does."""

from __future__ import annotations

from tests.inference.cases.case import X2, Cases

CASES = Cases()

CASES(
    "int-of-truth",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x * int((x > 0).any())
""",
)
CASES(
    "power-by-builtin",
    X2,
    """
class M(nn.Module):
    def __init__(self, k=0.01):
        super().__init__()
        self.c = pow(k, 2)

    def forward(self, x):
        return pow(x.abs().mean(), 2) + self.c
""",
)
CASES(
    "power-of-numbers-by-builtin",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x * pow(x.shape[0], 0.5) + pow(2, 3)
""",
)
CASES(
    "copied-options",
    X2,
    """
import copy

class M(nn.Module):
    def scale(self, x, **options):
        kept = copy.copy(options)
        kept.pop('name', None)
        return x * kept['by']

    def forward(self, x):
        return self.scale(x, by=2, name='a')
""",
)
CASES(
    "copied-sizes",
    X2,
    """
import copy

class M(nn.Module):
    def forward(self, x):
        return x.view(copy.copy(x.shape)) * copy.copy(3) + len(copy.deepcopy([1, 2]))
""",
)
CASES(
    "logger-of-the-module",
    X2,
    """
import logging

logger = logging.getLogger(__name__)

class M(nn.Module):
    def forward(self, x):
        logger.debug('shape %s', x.shape)
        return x + 1
""",
)
CASES(
    "logger-in-forward",
    X2,
    """
import logging

class M(nn.Module):
    def forward(self, x):
        log = logging.getLogger('model')
        log.debug('shape')
        return x + 1
""",
)
CASES(
    "asks-for-the-backend",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        if torch.backends.mps.is_available():
            return x.float()
        return x + 1
""",
)
CASES(
    "asks-for-cuda-and-dtype",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        if torch.cuda.is_available() and x.is_cuda:
            return x.half()
        return x + 1 if x.is_floating_point() and not x.is_sparse and x.is_contiguous() else x
""",
)
CASES(
    "asks-where-a-view-starts",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x.clone() if x.storage_offset() else x + 1
""",
)
CASES(
    "default-device-around",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        with torch.device(x.device):
            mask = torch.ones(x.shape[1])
        return x * mask
""",
)
CASES(
    "ctc-of-lists",
    "(torch.randn(6, 1, 4),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CTCLoss()

    def forward(self, x):
        return self.loss(x.log_softmax(-1), torch.ones(1, 2, dtype=torch.long), (6,), (2,))
""",
)
CASES(
    "pairs-by-combinations",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x.sum() + torch.combinations(x[0], 2)
""",
)
CASES(
    "tensor-as-a-key",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        y = x + 1
        names = {x: 1.0, y: 2.0}
        return x * names[y]
""",
)
CASES(
    "masked-log-sum",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        return x[x.sum(1) > 0].logsumexp(dim=1)
""",
)
CASES(
    "masked-columns-split",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        kept = x[x.sum(1) > 0]
        a, b = kept.split(3, dim=1)
        c, d = kept.chunk(2, dim=1)
        return a + b + c + d + torch.stack(kept.unbind(1), 1)[:, :3]
""",
)
CASES(
    "graph-of-another-package",
    "(torch.randn(2, 4),)",
    """
import networkx


class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.width = width

    def forward(self, x):
        ring = networkx.cycle_graph(self.width)
        return self.fc(x) / ring.number_of_edges()
""",
    "(4,)",
)
CASES(
    "graph-of-another-package-made-before",
    "(torch.randn(2, 4),)",
    """
import networkx


class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.edges = networkx.cycle_graph(width).number_of_edges()

    def forward(self, x):
        return self.fc(x) / self.edges
""",
    "(4,)",
)
CASES(
    "whole-number-of-numpy-as-a-number",
    "(torch.randn(2, 5, 4),)",
    """
class M(nn.Module):
    def __init__(self, factor=1):
        super().__init__()
        self.factor = factor

    def forward(self, keys):
        length = keys.shape[1]
        count = min(length, self.factor * int(np.ceil(np.log(length)).astype(int)))
        return keys[:, :count]
""",
)
CASES(
    "float-of-numpy-as-a-number",
    "(torch.randn(2, 5, 4),)",
    """
class M(nn.Module):
    def __init__(self, factor=1):
        super().__init__()
        self.factor = factor

    def forward(self, keys):
        length = keys.shape[1]
        count = min(length, self.factor * int(np.ceil(np.log(length))))
        return keys[:, :count]
""",
)
CASES(
    "pairs-with-themselves",
    X2,
    """
import itertools


class M(nn.Module):
    def forward(self, x):
        pairs = list(itertools.combinations_with_replacement(x, 2))
        return torch.stack([first + second for first, second in pairs])
""",
)
CASES(
    "pairs-without-themselves",
    X2,
    """
import itertools


class M(nn.Module):
    def forward(self, x):
        pairs = list(itertools.combinations(x, 2)) + list(itertools.product(x, repeat=2))
        return torch.stack([first + second for first, second in pairs])
""",
)
