"""Small models in the style of old public code: each is exported for real and `check` must agree with torch.

A case is a text with a class `M`, the arguments to build it with, and its inputs. Nothing states what torch
does with it: the test asks torch.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """import math
import random
from typing import List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


"""


@dataclass(frozen=True)
class Case:
    """One model: its text (after `HEAD`), and expressions for constructor arguments and inputs."""

    name: str
    text: str
    inputs: str
    init: str = "()"

    @property
    def source(self) -> str:
        return HEAD + self.text.strip("\n") + "\n"


X2 = "(torch.randn(4, 6),)"
X3 = "(torch.randn(2, 5, 4),)"
X4 = "(torch.randn(2, 3, 8, 8),)"

CASES: list[Case] = []


def case(name: str, inputs: str, text: str, init: str = "()") -> None:
    CASES.append(Case(name, text, inputs, init))


# --- recurrent taggers -------------------------------------------------------------------------------------

case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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

# --- losses ------------------------------------------------------------------------------------------------

case(
    "gan-target-cache",
    X4,
    """
class M(nn.Module):
    def __init__(self, use_lsgan=True, target_real_label=1.0, tensor=torch.FloatTensor):
        super().__init__()
        self.real_label = target_real_label
        self.real_label_var = None
        self.Tensor = tensor
        self.loss = nn.MSELoss() if use_lsgan else nn.BCELoss()

    def get_target_tensor(self, input, target_is_real):
        create_label = (self.real_label_var is None) or (self.real_label_var.numel() != input.numel())
        if create_label:
            real_tensor = self.Tensor(input.size()).fill_(self.real_label)
            self.real_label_var = Variable(real_tensor, requires_grad=False)
        return self.real_label_var

    def forward(self, input):
        return self.loss(input, self.get_target_tensor(input, True))
""",
)
case(
    "focal-loss",
    "(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))",
    """
class M(nn.Module):
    def __init__(self, gamma=2, alpha=None, size_average=True):
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha
        if isinstance(alpha, (float, int)):
            self.alpha = torch.Tensor([alpha, 1 - alpha])
        self.size_average = size_average

    def forward(self, input, target):
        if input.dim() > 2:
            input = input.view(input.size(0), input.size(1), -1)
        target = target.view(-1, 1)
        logpt = F.log_softmax(input, dim=1).gather(1, target).view(-1)
        pt = Variable(logpt.data.exp())
        if self.alpha is not None:
            if self.alpha.type() != input.data.type():
                self.alpha = self.alpha.type_as(input.data)
        loss = -1 * (1 - pt) ** self.gamma * logpt
        return loss.mean() if self.size_average else loss.sum()
""",
)
case(
    "one-hot-scatter",
    "(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))",
    """
class M(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes

    def forward(self, logits, target):
        hot = torch.FloatTensor(logits.size(0), self.num_classes).zero_()
        hot.scatter_(1, target.unsqueeze(1), 1.0)
        return (logits * hot).sum(1).mean()
""",
    "(3,)",
)
case(
    "ohem-count",
    "(torch.randn(8), torch.randint(0, 2, (8,)).float())",
    """
class M(nn.Module):
    def __init__(self, negative_ratio=3.0):
        super().__init__()
        self.negative_ratio = negative_ratio

    def forward(self, pred, gt):
        positive = (gt > 0).byte()
        negative = (gt == 0).byte()
        positive_count = int(positive.float().sum())
        negative_count = min(int(negative.float().sum()), int(positive_count * self.negative_ratio))
        loss = F.binary_cross_entropy_with_logits(pred, gt, reduction="none")
        negative_loss, _ = torch.topk((loss * negative.float()).view(-1), negative_count)
        return (loss * positive.float()).sum() + negative_loss.sum()
""",
)
case(
    "contrastive-if-any",
    "(torch.randn(4, 6), torch.tensor([0, 1, 0, 1]))",
    """
class M(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, labels):
        dist = torch.cdist(embeddings, embeddings)
        same = labels.unsqueeze(0) == labels.unsqueeze(1)
        positive = dist[same]
        negative = dist[~same]
        if len(positive) == 0:
            return embeddings.sum() * 0
        return positive.mean() + F.relu(self.margin - negative).mean()
""",
    "(0.5,)",
)
case(
    "triplet-hardest",
    "(torch.randn(4, 6), torch.tensor([0, 1, 0, 1]))",
    """
class M(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin
        self.ranking_loss = nn.MarginRankingLoss(margin=margin)

    def forward(self, inputs, targets):
        n = inputs.size(0)
        dist = torch.pow(inputs, 2).sum(dim=1, keepdim=True).expand(n, n)
        dist = dist + dist.t()
        dist = dist - 2 * inputs @ inputs.t()
        dist = dist.clamp(min=1e-12).sqrt()
        mask = targets.expand(n, n).eq(targets.expand(n, n).t())
        dist_ap, dist_an = [], []
        for i in range(n):
            dist_ap.append(dist[i][mask[i]].max().unsqueeze(0))
            dist_an.append(dist[i][mask[i] == 0].min().unsqueeze(0))
        dist_ap = torch.cat(dist_ap)
        dist_an = torch.cat(dist_an)
        y = torch.ones_like(dist_an)
        return self.ranking_loss(dist_an, dist_ap, y)
""",
)
case(
    "dice-per-class",
    "(torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2, 8, 8)))",
    """
class M(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes

    def _dice(self, score, target):
        target = target.float()
        inter = torch.sum(score * target)
        return 1 - 2 * inter / (torch.sum(score * score) + torch.sum(target * target) + 1e-5)

    def forward(self, inputs, target, weight=None, softmax=False):
        if softmax:
            inputs = torch.softmax(inputs, dim=1)
        hot = torch.cat([(target == i).unsqueeze(1) for i in range(self.n_classes)], dim=1).float()
        if weight is None:
            weight = [1] * self.n_classes
        assert inputs.size() == hot.size(), "shapes"
        per_class = []
        loss = 0.0
        for i in range(self.n_classes):
            dice = self._dice(inputs[:, i], hot[:, i])
            per_class.append(1.0 - dice.item())
            loss += dice * weight[i]
        return loss / self.n_classes
""",
    "(3,)",
)
case(
    "detection-loss-mask",
    "(torch.randn(2, 5, 6), torch.randint(0, 2, (2, 5)).bool())",
    """
class M(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes

    def forward(self, pred, positive):
        num_pos = positive.sum(dim=1, keepdim=True)
        index = positive.unsqueeze(-1).expand_as(pred)
        chosen = pred[index].view(-1, 6)
        n = num_pos.sum()
        if n == 0:
            return pred.sum() * 0
        return chosen.abs().sum() / n.float()
""",
    "(3,)",
)
case(
    "ssd-hard-negative",
    "(torch.randn(2, 5, 6), torch.randint(0, 2, (2, 5)))",
    """
class M(nn.Module):
    def __init__(self, num_classes, neg_pos):
        super().__init__()
        self.num_classes = num_classes
        self.negpos_ratio = neg_pos

    def forward(self, conf, conf_t):
        pos = conf_t > 0
        num_pos = pos.sum(dim=1, keepdim=True)
        loss_c = conf.max(2)[0]
        loss_c[pos] = 0
        _, loss_idx = loss_c.sort(1, descending=True)
        _, idx_rank = loss_idx.sort(1)
        num_neg = torch.clamp(self.negpos_ratio * num_pos, max=pos.size(1) - 1)
        neg = idx_rank < num_neg.expand_as(idx_rank)
        keep = (pos.unsqueeze(2).expand_as(conf) + neg.unsqueeze(2).expand_as(conf)).gt(0)
        p = conf[keep].view(-1, self.num_classes)
        N = num_pos.data.sum()
        return p.sum() / N
""",
    "(6, 3)",
)
case(
    "if-greater-one",
    X4,
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        if x.max() > 1:
            x = x / 255.0
        return self.conv(x)
""",
)
case(
    "nan-check",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        if torch.isnan(y).any():
            print("nan")
        return y
""",
    "(6,)",
)
case(
    "assert-range",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        assert x.size(1) == 6
        assert torch.all(x < 100), "too large"
        return self.fc(x)
""",
    "(6,)",
)
case(
    "assert-no-nan-sum",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x)
        assert not torch.isnan(y).any()
        return y
""",
    "(6,)",
)

# --- normalisation, spectral norm, memory ------------------------------------------------------------------

case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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

# --- attention, masks, vision ------------------------------------------------------------------------------

case(
    "mask-all-true",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))",
    """
class M(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x, mask):
        if mask.all():
            mask = None
        out, _ = self.attn(x, x, x, key_padding_mask=mask)
        return out
""",
    "(4,)",
)
case(
    "subsequent-mask",
    X3,
    """
class M(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.src_mask = None
        layer = nn.TransformerEncoderLayer(d_model, nhead, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def _generate(self, sz):
        mask = (torch.triu(torch.ones(sz, sz)) == 1).transpose(0, 1)
        return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))

    def forward(self, src):
        if self.src_mask is None or self.src_mask.size(0) != src.size(1):
            self.src_mask = self._generate(src.size(1)).to(src.device)
        return self.encoder(src, self.src_mask)
""",
    "(4, 2)",
)
case(
    "subsequent-mask-numpy",
    X3,
    """
def subsequent_mask(size):
    shape = (1, size, size)
    mask = np.triu(np.ones(shape), k=1).astype("uint8")
    return torch.from_numpy(mask) == 0


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)

    def forward(self, x):
        scores = self.q(x) @ x.transpose(-2, -1)
        scores = scores.masked_fill(subsequent_mask(x.size(1)) == 0, -1e9)
        return F.softmax(scores, dim=-1) @ x
""",
    "(4,)",
)
case(
    "positional-variable",
    X3,
    """
class M(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1).float()
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        x = x + Variable(self.pe[:, : x.size(1)], requires_grad=False)
        return self.dropout(x)
""",
    "(4,)",
)
case(
    "np-sqrt-scale",
    X3,
    """
class M(nn.Module):
    def __init__(self, d_k):
        super().__init__()
        self.d_k = d_k
        self.temperature = np.power(d_k, 0.5)

    def forward(self, q):
        attn = torch.matmul(q, q.transpose(1, 2)) / self.temperature
        return torch.softmax(attn, -1)
""",
    "(4,)",
)
case(
    "np-sqrt-inside",
    X3,
    """
class M(nn.Module):
    def __init__(self, d_k):
        super().__init__()
        self.d_k = d_k

    def forward(self, q):
        scores = torch.matmul(q, q.transpose(-1, -2)) / np.sqrt(self.d_k)
        return torch.softmax(scores, -1)
""",
    "(4,)",
)
case(
    "np-on-tensor",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.fc(x).detach().cpu().numpy()
        order = np.argsort(y, axis=1)
        return x.gather(1, torch.from_numpy(order))
""",
    "(6,)",
)
case(
    "drop-path",
    X3,
    """
def drop_path(x, drop_prob: float = 0.0, training: bool = False):
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    mask = keep + torch.rand(shape, dtype=x.dtype, device=x.device)
    return x.div(keep) * mask.floor_()


class M(nn.Module):
    def __init__(self, drop_prob=None):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training)
""",
    "(0.1,)",
)
case(
    "drop-block",
    X4,
    """
class M(nn.Module):
    def __init__(self, drop_prob, block_size):
        super().__init__()
        self.drop_prob = drop_prob
        self.block_size = block_size

    def forward(self, x):
        assert x.dim() == 4, "Expected input with 4 dimensions (bsize, channels, height, width)"
        if not self.training or self.drop_prob == 0.0:
            return x
        gamma = self.drop_prob / (self.block_size ** 2)
        mask = (torch.rand(x.shape[0], *x.shape[2:]) < gamma).float()
        return x * (1 - mask[:, None])
""",
    "(0.1, 3)",
)
case(
    "stochastic-depth-random",
    X4,
    """
class M(nn.Module):
    def __init__(self, channels, p):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.p = p

    def forward(self, x):
        if torch.rand(1) < self.p:
            return x
        return x + self.conv(x)
""",
    "(3, 0.5)",
)
case(
    "pad-to-same",
    X4,
    """
class M(nn.Module):
    def __init__(self, cin, cout, kernel_size=3, stride=2):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel_size, stride)
        self.k = kernel_size
        self.s = stride

    def forward(self, x):
        ih, iw = x.size()[-2:]
        oh, ow = math.ceil(ih / self.s), math.ceil(iw / self.s)
        ph = max((oh - 1) * self.s + self.k - ih, 0)
        pw = max((ow - 1) * self.s + self.k - iw, 0)
        if ph > 0 or pw > 0:
            x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
        return self.conv(x)
""",
    "(3, 4)",
)
case(
    "spatial-pyramid-pool",
    X4,
    """
class M(nn.Module):
    def __init__(self, levels=(1, 2, 4)):
        super().__init__()
        self.levels = levels

    def forward(self, x):
        n, c, h, w = x.size()
        out = None
        for level in self.levels:
            kh, kw = int(math.ceil(h / level)), int(math.ceil(w / level))
            pooled = F.max_pool2d(x, (kh, kw), stride=(kh, kw)).view(n, -1)
            out = pooled if out is None else torch.cat((out, pooled), 1)
        return out
""",
)
case(
    "up-to-match",
    X4,
    """
class M(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        self.down = nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True) if bilinear else nn.ConvTranspose2d(out_channels, out_channels, 2, stride=2)

    def forward(self, x):
        y = self.up(self.down(x))
        dy, dx = x.size()[2] - y.size()[2], x.size()[3] - y.size()[3]
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.cat([y, x], dim=1)
""",
    "(3, 3)",
)
case(
    "nms-loop",
    "(torch.rand(6, 4), torch.rand(6))",
    """
class M(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        order = scores.sort(descending=True)[1]
        keep = []
        while order.numel() > 0:
            i = order[0]
            keep.append(i)
            if order.numel() == 1:
                break
            rest = order[1:]
            iou = (boxes[rest] - boxes[i]).abs().sum(1)
            order = rest[iou > self.threshold]
        return torch.stack(keep)
""",
    "(0.5,)",
)
case(
    "detection-filter",
    "(torch.rand(6, 4), torch.rand(6))",
    """
class M(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        keep = scores > self.threshold
        boxes = boxes[keep]
        scores = scores[keep]
        if boxes.shape[0] == 0:
            return boxes, scores
        return boxes * 2, scores.sigmoid()
""",
    "(0.5,)",
)
case(
    "nonzero-rows",
    "(torch.rand(6, 4), torch.rand(6))",
    """
class M(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        idx = torch.nonzero(scores > self.threshold).squeeze(1)
        picked = boxes.index_select(0, idx)
        return picked.sum(0) / idx.numel()
""",
    "(0.5,)",
)
case(
    "grid-meshgrid-cached",
    X4,
    """
class M(nn.Module):
    def __init__(self, anchors, num_classes, img_dim=32):
        super().__init__()
        self.anchors = anchors
        self.num_anchors = len(anchors)
        self.num_classes = num_classes
        self.grid_size = 0
        self.img_dim = img_dim

    def compute_grid_offsets(self, grid_size, cuda=True):
        self.grid_size = grid_size
        FloatTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
        self.stride = self.img_dim / self.grid_size
        self.grid_x = torch.arange(grid_size).repeat(grid_size, 1).view([1, 1, grid_size, grid_size]).type(FloatTensor)
        self.scaled_anchors = FloatTensor([(a_w / self.stride, a_h / self.stride) for a_w, a_h in self.anchors])
        self.anchor_w = self.scaled_anchors[:, 0:1].view((1, self.num_anchors, 1, 1))

    def forward(self, x):
        grid_size = x.size(2)
        p = x.view(x.size(0), self.num_anchors, 1, grid_size, grid_size)
        px = torch.sigmoid(p[:, :, 0])
        if grid_size != self.grid_size:
            self.compute_grid_offsets(grid_size, cuda=x.is_cuda)
        return px.data + self.grid_x, torch.exp(px.data) * self.anchor_w
""",
    "([(1, 2), (3, 4), (5, 6)], 1)",
)
case(
    "cuda-call",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        noise = torch.zeros(x.size())
        if torch.cuda.is_available():
            noise = noise.cuda()
        return self.fc(x) + noise
""",
    "(6,)",
)
case(
    "reparameterize",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, latent):
        super().__init__()
        self.mu = nn.Linear(dim, latent)
        self.logvar = nn.Linear(dim, latent)

    def reparameterize(self, mu, logvar):
        std = logvar.mul(0.5).exp_()
        eps = torch.FloatTensor(std.size()).normal_()
        eps = Variable(eps)
        return eps.mul(std).add_(mu)

    def forward(self, x):
        mu, logvar = self.mu(x), self.logvar(x)
        return self.reparameterize(mu, logvar), mu, logvar
""",
    "(6, 3)",
)
case(
    "reparameterize-data-new",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, latent):
        super().__init__()
        self.mu = nn.Linear(dim, latent)
        self.logvar = nn.Linear(dim, latent)

    def forward(self, x):
        mu, logvar = self.mu(x), self.logvar(x)
        std = torch.exp(0.5 * logvar)
        eps = std.data.new(std.size()).normal_()
        return eps * std + mu
""",
    "(6, 3)",
)
case(
    "distribution-normal",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, actions):
        super().__init__()
        self.mu = nn.Linear(dim, actions)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def forward(self, x):
        dist = torch.distributions.Normal(self.mu(x), self.log_std.exp())
        action = dist.rsample()
        return action, dist.log_prob(action).sum(-1)
""",
    "(6, 3)",
)
case(
    "distribution-categorical",
    X2,
    """
from torch.distributions import Categorical


class M(nn.Module):
    def __init__(self, dim, actions):
        super().__init__()
        self.pi = nn.Linear(dim, actions)

    def forward(self, x):
        probs = F.softmax(self.pi(x), dim=-1)
        dist = Categorical(probs)
        return dist.sample()
""",
    "(6, 3)",
)

# --- autograd functions and others -------------------------------------------------------------------------

case(
    "function-saved-tensors",
    X2,
    """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None


class M(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return Reverse.apply(x, self.alpha)
""",
)
case(
    "function-saved-variables",
    X2,
    """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_variables[0]
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return Swish.apply(self.fc(x))
""",
    "(6,)",
)
case(
    "binarize-function",
    X2,
    """
class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        out = torch.ones_like(input)
        out[input < 0] = -1
        return out

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad = grad_output.clone()
        grad[input.abs() > 1] = 0
        return grad


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return Binarize.apply(self.fc(x))
""",
    "(6,)",
)
case(
    "quantize-scale-item",
    X2,
    """
class M(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.bits = bits

    def forward(self, x):
        scale = x.abs().max().item() / (2 ** (self.bits - 1) - 1)
        return torch.round(x / scale) * scale
""",
    "(8,)",
)
case(
    "quantize-scale-if",
    X2,
    """
class M(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.bits = bits

    def forward(self, x):
        top = x.abs().max()
        if top == 0:
            return x
        scale = float(top) / (2 ** (self.bits - 1) - 1)
        return torch.round(x / scale) * scale
""",
    "(8,)",
)
case(
    "gradient-penalty",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, 1)

    def forward(self, x):
        x.requires_grad_(True)
        y = self.fc(x)
        grad = torch.autograd.grad(y.sum(), x)[0]
        return grad.norm(2, dim=1)
""",
    "(6,)",
)
case(
    "attribute-state",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.last = None

    def forward(self, x):
        self.last = self.fc(x)
        return self.last
""",
    "(6,)",
)
case(
    "cuda-tensor-type",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        tensor_type = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor
        ones = tensor_type(x.size()).fill_(1)
        return self.fc(x) * ones
""",
    "(6,)",
)
case(
    "routing-iterations",
    X3,
    """
class M(nn.Module):
    def __init__(self, num_capsules, in_dim, out_dim, iterations=3):
        super().__init__()
        self.iterations = iterations
        self.W = nn.Parameter(torch.randn(num_capsules, in_dim, out_dim))

    def forward(self, x):
        u = torch.einsum("bni,cio->bcno", x, self.W)
        b = Variable(torch.zeros(*u.size()[:3]))
        for i in range(self.iterations):
            c = F.softmax(b, dim=1)
            s = (c.unsqueeze(-1) * u).sum(2)
            v = s / (s.norm(dim=-1, keepdim=True) + 1e-8)
            if i != self.iterations - 1:
                b = b + (u * v.unsqueeze(2)).sum(-1)
        return v
""",
    "(3, 4, 5)",
)
case(
    "adaptive-threshold",
    X2,
    """
class M(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        k = max(1, int(self.k * x.shape[1]))
        threshold = x.topk(k, dim=1)[0][:, -1:]
        return torch.where(x >= threshold, x, torch.zeros_like(x))
""",
    "(0.5,)",
)
case(
    "k-from-data",
    X2,
    """
class M(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.ratio = ratio

    def forward(self, x):
        k = int((x > 0).sum().item() * self.ratio)
        values, _ = x.view(-1).topk(k)
        return values.mean()
""",
    "(0.5,)",
)
case(
    "loop-over-batch-mask",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, mask):
        outs = []
        for row, keep in zip(x, mask):
            outs.append(self.fc(row[keep]).mean(0))
        return torch.stack(outs)
""",
    "(4,)",
)
case(
    "pad-ragged",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, mask):
        kept = [self.fc(row[keep]) for row, keep in zip(x, mask)]
        return pad_sequence(kept, batch_first=True)
""",
    "(4,)",
)
case(
    "unique-classes",
    "(torch.randn(4, 6), torch.tensor([0, 1, 0, 1]))",
    """
class M(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, x, labels):
        centers = []
        for c in torch.unique(labels):
            centers.append(x[labels == c].mean(0))
        return torch.stack(centers)
""",
    "(0.5,)",
)
case(
    "split-by-list",
    "(torch.randn(5, 6), torch.tensor([2, 3]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, sizes):
        parts = torch.split(x, sizes.tolist())
        return [self.fc(p) for p in parts]
""",
    "(6,)",
)
case(
    "repeat-by-durations",
    "(torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.long))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def expand(self, batch, predicted):
        out = []
        for i, vec in enumerate(batch):
            size = predicted[i].item()
            out.append(vec.expand(max(int(size), 0), -1))
        return torch.cat(out, 0)

    def forward(self, x, duration):
        return [self.expand(b, d) for b, d in zip(self.fc(x), duration)]
""",
    "(4,)",
)
case(
    "dict-of-outputs",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        out = {}
        out["logits"] = self.fc(x)
        out["prob"] = out["logits"].softmax(-1)
        if "logits" in out and out["logits"] is not None:
            out["pred"] = out["prob"].argmax(-1)
        return out
""",
    "(6,)",
)
case(
    "try-import-inside",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        try:
            y = self.fc(x)
        except RuntimeError as error:
            raise ValueError("wrong input") from error
        return y
""",
    "(6,)",
)
case(
    "print-shapes",
    X2,
    """
class M(nn.Module):
    def __init__(self, dim, verbose=True):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.verbose = verbose

    def forward(self, x):
        if self.verbose:
            print("in", x.shape, x.size(0))
        return self.fc(x)
""",
    "(6,)",
)
case(
    "eq-tensor-list",
    "(torch.tensor([1, 2, 3]),)",
    """
class M(nn.Module):
    def __init__(self, ids=(1, 2)):
        super().__init__()
        self.ids = ids

    def forward(self, tokens):
        found = torch.zeros(1)
        for token in tokens:
            if token in self.ids:
                found = found + 1
        return found
""",
)
case(
    "graph-size-from-index",
    "(torch.randn(4, 6), torch.tensor([[0, 1, 2], [1, 2, 3]]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, edge_index):
        n = int(edge_index.max()) + 1
        out = torch.zeros(n, x.size(1))
        out.index_add_(0, edge_index[1], x[edge_index[0]])
        return self.fc(out)
""",
    "(6,)",
)
case(
    "graph-size-max-item",
    "(torch.randn(4, 6), torch.tensor([0, 0, 1, 1]))",
    """
class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, batch):
        size = batch.max().item() + 1
        out = x.new_zeros(size, x.size(1))
        out.scatter_add_(0, batch[:, None].expand_as(x), x)
        return self.fc(out)
""",
    "(6,)",
)
case(
    "sparse-adjacency",
    "(torch.randn(4, 6), torch.eye(4))",
    """
class M(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = nn.Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        output = torch.spmm(adj, torch.mm(input, self.weight))
        return output + self.bias if self.bias is not None else output
""",
    "(6, 3)",
)

# --- more of what public code does ------------------------------------------------------------------------

case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
case(
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
