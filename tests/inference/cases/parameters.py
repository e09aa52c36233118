"""Parameters that are no tensors, as annotations and uses tell."""

from __future__ import annotations

from tests.inference.cases.case import X2, Cases

CASES = Cases()

CASES(
    "dict-by-an-alias",
    "({'x': torch.randn(4, 6), 'batch': torch.randn(4, 6)},)",
    """
from typing import Dict

Batch = Dict[str, torch.Tensor]


class M(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field
        self.fc = nn.Linear(6, 6)

    def forward(self, data: Batch):
        y = self.fc(data[self.field])
        if self.field + "_extra" not in data and "batch" in data:
            y = y + data["batch"]
        return y
""",
    "('x',)",
)
CASES(
    "dict-by-use",
    "({'x': torch.randn(4, 6), 'edges': torch.randn(4, 6)},)",
    """
EDGES = "edges"


class M(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field

    def forward(self, data):
        y = data[self.field]
        if EDGES in data:
            y = y * data[EDGES]
        return y.sum(-1)
""",
    "('x',)",
)
CASES(
    "dict-by-an-alias-failing",
    "({'x': torch.rand(4, 6)},)",
    """
from typing import Dict

Batch = Dict[str, torch.Tensor]


class M(nn.Module):
    def forward(self, data: Batch):
        if data["x"].min() < -100:
            raise ValueError("too small")
        return data["x"] * 2
""",
)
CASES(
    "sizes-of-levels",
    "(torch.randn(2, 20, 4), [(2, 2), (4, 4)])",
    """
class M(nn.Module):
    def forward(self, value, shapes: list):
        assert sum(s[0] * s[1] for s in shapes) == value.shape[1]
        parts = value.split([s[0] * s[1] for s in shapes], dim=1)
        return torch.stack([part.mean(1) for part in parts], 1)
""",
)
CASES(
    "sizes-of-levels-not-annotated",
    "(torch.randn(2, 20, 4), [(2, 2), (4, 4)])",
    """
class M(nn.Module):
    def forward(self, value, shapes):
        if sum(s[0] * s[1] for s in shapes) != value.shape[1]:
            raise ValueError("shapes do not cover the values")
        return value.sum(1)
""",
)
CASES(
    "height-and-width",
    "(torch.randn(2, 20, 6), 4, 5)",
    """
class M(nn.Module):
    def __init__(self, window=7):
        super().__init__()
        self.window = window
        self.norm = nn.LayerNorm(6)

    def forward(self, x, H, W):
        rows = int(np.ceil(H / self.window)) * self.window
        assert x.shape[1] == H * W, "input feature has wrong size"
        if H % 2 == 1 or W % 2 == 1:
            x = F.pad(x, (0, 0, 0, rows - H))
        return self.norm(x), (H + 1) // 2, (W + 1) // 2
""",
)
CASES(
    "random-number-for-training",
    X2,
    """
class M(nn.Module):
    def __init__(self, layerdrop=0.1):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            dropped = random.uniform(0, 1)
            if self.training and dropped < self.layerdrop:
                continue
            x = layer(x)
        return x
""",
)
CASES(
    "random-number-compared-for-training",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        kept = random.random() < 0.3
        if self.training and not kept:
            x = x + torch.randn_like(x)
        return x * 2
""",
)
CASES(
    "size-as-a-pair",
    "(torch.randn(2, 20, 6), (4, 5))",
    """
class M(nn.Module):
    def forward(self, x, hw_shape):
        B, N, C = x.shape
        H, W = hw_shape
        assert N == H * W, "the sizes do not match"
        if min(H, W) < 3:
            return x
        return x.transpose(1, 2).reshape(B, C, H, W)
""",
)
CASES(
    "mode-as-a-text",
    "('train', torch.randn(4, 6))",
    """
class M(nn.Module):
    def scaled(self, mode, x):
        if mode in ["dev", "test"]:
            return x * 0.5
        return x

    def forward(self, mode, x):
        if mode in ("train", "dev"):
            x = torch.relu(x)
        return self.scaled(mode, x)
""",
)
CASES(
    "children-of-each-node",
    "(torch.randn(4, 6), [[], [], [0, 1], [2]])",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, inputs, tree):
        states = []
        for idx in range(len(tree)):
            if len(tree[idx]) == 0:
                below = inputs.new_zeros(1, 6)
            else:
                below = torch.cat([states[k] for k in tree[idx]], dim=0)
            states.append(torch.tanh(self.fc(inputs[idx].unsqueeze(0))) + below.sum(0, keepdim=True))
        return states[-1]
""",
)
CASES(
    "input-under-another-name",
    "(torch.randn(4, 6),)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])

    def forward(self, batch):
        hidden = batch
        if hidden.mean() > 0:
            hidden = hidden + 1
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden
""",
)
CASES(
    "input-of-an-inner-function",
    "(torch.randn(4, 6),)",
    """
class M(nn.Module):
    def forward(self, signal):
        def is_loud(part):
            return part.abs().max() > 2

        if is_loud(signal):
            return torch.tanh(signal)
        return signal
""",
)
CASES(
    "input-of-a-lambda",
    "(torch.randn(4, 6),)",
    """
class M(nn.Module):
    def forward(self, signal):
        energy = lambda part: part.pow(2).sum()
        while energy(signal) > 10:
            signal = signal * 0.5
        return signal
""",
)
CASES(
    "number-under-another-name",
    "(torch.randn(4, 6), 3)",
    """
class M(nn.Module):
    def forward(self, x, rounds):
        left = rounds
        while left > 0:
            x = torch.relu(x) + 0.1
            left = left - 1
        return x
""",
)
CASES(
    "list-under-another-name",
    "([torch.randn(4, 6), torch.randn(4, 6)],)",
    """
class M(nn.Module):
    def forward(self, scales):
        found = scales
        if len(found) > 1:
            return found[0] + found[1]
        return found[0]
""",
)
CASES(
    "hook-on-a-model-that-is-given",
    "(torch.randn(4, 6),)",
    """
class M(nn.Module):
    def __init__(self, model=None, name="0"):
        super().__init__()
        self.model = model if model is not None else nn.Sequential(nn.Linear(6, 6), nn.ReLU())
        self.name = name
        self.hooked = False
        self.kept = None

    def _keep(self, module, inputs, output):
        self.kept = output

    def _hook(self):
        layer = getattr(self.model, self.name)
        handle = layer.register_forward_hook(self._keep)
        self.hooked = True

    def forward(self, x):
        if not self.hooked:
            self._hook()
        return self.model(x)
""",
)
CASES(
    "argument-given-by-name",
    "(torch.rand(6, 8), torch.tensor([0, 1, 0, 2, 1, 2]))",
    """
def binarize(T, classes):
    T = T.cpu().numpy()
    return torch.FloatTensor(np.eye(classes)[T])


class M(nn.Module):
    def forward(self, X, T):
        return X.sum() * binarize(T=T, classes=3)
""",
)
CASES(
    "numbers-gone-through-in-a-method",
    "(torch.rand(2, 5, 4), [4, 5])",
    """
class M(nn.Module):
    def mask(self, most, counts):
        packed = [torch.ones(int(count)) for count in counts]
        out = torch.zeros(len(counts), most)
        for i, mask in enumerate(packed):
            out[i, : counts[i]] = mask
        return out.unsqueeze(2)

    def forward(self, x, counts):
        return x * self.mask(x.size(1), counts)
""",
)
CASES(
    "called-without-forward",
    "(torch.rand(2, 1, 4, 4), True)",
    """
class M(nn.Module):
    def __init__(self, label=1.0, tensor=torch.FloatTensor):
        super().__init__()
        self.label = label
        self.target = None
        self.Tensor = tensor
        self.loss = nn.MSELoss()

    def target_of(self, input, real):
        if self.target is None or self.target.numel() != input.numel():
            self.target = Variable(self.Tensor(input.size()).fill_(self.label), requires_grad=False)
        return self.target

    def __call__(self, input, real):
        return self.loss(input, self.target_of(input, real))
""",
)
CASES(
    "parameters-of-a-part-not-known",
    X2,
    """
class M(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.online = encoder(6, 3)
        self.slow = encoder(6, 3)
        self.m = 0.9

    @torch.no_grad()
    def update(self):
        for fast, slow in zip(self.online.parameters(), self.slow.parameters()):
            slow.data = slow.data * self.m + fast.data * (1.0 - self.m)

    def forward(self, x):
        self.update()
        return self.online(x) + self.slow(x)
""",
    "(nn.Linear,)",
)
CASES(
    "parameter-that-a-mask-of-its-own-chooses-from",
    "(torch.randn(3, 4), torch.tensor([2, 0, 3]))",
    """
class M(nn.Module):
    def forward(self, x, item_len):
        given = item_len > 0
        lengths = item_len[given]
        if lengths.shape[0] == 0:
            return torch.zeros(1, 4)
        return x.view(-1, 4)[given] / lengths.unsqueeze(1)
""",
)
CASES(
    "object-with-attributes-that-tensors-have",
    "(Graph(torch.randn(4, 6), torch.ones(4, 4), 0.5),)",
    """
from dataclasses import dataclass


@dataclass
class Graph:
    x: torch.Tensor
    adjacency: torch.Tensor
    data: float


torch.export.register_dataclass(Graph)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, graph):
        scale = float(graph.data)
        if graph.data > 0:
            scale = scale + 1
        return scale * (graph.adjacency @ self.fc(graph.x))
""",
)
CASES(
    "parameter-that-is-bound-to-an-object-later",
    X2,
    """
class Output:
    def __init__(self, logits):
        self.logits = logits


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return Output(self.fc(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()

    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        x = self.head(x)
        return x.logits
""",
)
CASES(
    "parameter-whose-name-others-have-too",
    X2,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])

    def forward(self, x):
        sizes = [x.in_features for x in self.layers]
        if x.sum() > 0:
            return x * sum(sizes)
        return x
""",
)
CASES(
    "parameter-that-is-given-an-attribute",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        x.weight = 2.0
        if x.sum() > 0:
            return x * x.weight
        return x
""",
)
CASES(
    "number-that-a-tensor-is-made-of",
    "(torch.randn(4, 5), 1)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(3, 5))

    def forward(self, features, labels):
        labels = torch.tensor([labels] * features.size(0))
        labels = labels.to(features.device)
        chosen = torch.gather(self.centers, 0, labels.view(-1, 1).expand(-1, 5))
        return F.mse_loss(features, chosen)
""",
)
CASES(
    "number-of-rounds-that-is-converted",
    "(torch.randn(2, 4), torch.tensor(3))",
    """
class M(nn.Module):
    def forward(self, x, steps):
        for _ in range(int(steps)):
            x = x * 2
        return x
""",
)
CASES(
    "step-that-is-converted",
    "(torch.randn(2, 4), torch.tensor(3))",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(8))

    def forward(self, x, timestep):
        t = int(timestep) - 1
        scale = self.table[t] if t >= 0 else self.table[0]
        return x * scale
""",
)
CASES(
    "number-of-rounds-of-python",
    "(torch.randn(2, 4), 3)",
    """
class M(nn.Module):
    def forward(self, x, steps):
        for _ in range(steps):
            x = x * 2
        return x
""",
)
CASES(
    "argument-that-is-copied",
    "(torch.randn(2, 4),)",
    """
class M(nn.Module):
    def forward(self, x):
        import copy

        y = copy.deepcopy(x)
        y[:, 1] = 0
        return y
""",
)
CASES(
    "kind-that-is-converted-to-be-asked",
    "(torch.randn(2, 4), torch.tensor(1), torch.tensor(True))",
    """
class M(nn.Module):
    def forward(self, x, kind, mirrored):
        if int(kind) == 0:
            return x
        return x.flip(-1) if bool(mirrored) else x * 2
""",
)
CASES(
    "number-that-is-converted-to-be-asked",
    "(torch.randn(2, 4), 1)",
    """
class M(nn.Module):
    def forward(self, x, num_rounds):
        if int(num_rounds) == 0:
            return x
        return x * 2
""",
)
CASES(
    "tensor-that-a-list-joins",
    "(torch.randn(4, 8), torch.randn(4, 4))",
    """
class M(nn.Module):
    def forward(self, features, boxes):
        import copy

        current = copy.deepcopy(boxes)
        return torch.cat([features, current], dim=-1)
""",
)
CASES(
    "sizes-that-are-read-out-of-a-tensor",
    "(torch.randn(4, 4), torch.tensor([480, 640]))",
    """
class M(nn.Module):
    def forward(self, boxes, orig_size):
        h, w = orig_size.tolist()
        return boxes * min(512 / h, 512 / w)
""",
)
CASES(
    "numbers-in-lists",
    "(torch.randn(2, 4), 2, 4)",
    """
class M(nn.Module):
    def forward(self, x, rows, columns):
        if rows > 1:
            x = x.reshape([rows, columns])
        return F.pad(x, [rows, columns]), torch.full([rows], 1.0), torch.tensor([rows, columns])
""",
)
CASES(
    "lengths-that-are-converted-once-more",
    "(torch.randn(2, 4), [2, 3])",
    """
class M(nn.Module):
    def forward(self, x, lengths):
        return torch.stack([x[i, : int(n)].sum() for i, n in enumerate(lengths)])
""",
)
CASES(
    "numbers-in-a-list-that-is-copied",
    "(torch.randn(2, 4), [0.5, 2.0])",
    """
class M(nn.Module):
    def forward(self, x, scales):
        import copy

        for scale in copy.deepcopy(scales):
            x = x * scale
        return x
""",
)
