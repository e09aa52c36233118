"""Losses, as older public code writes them."""

from __future__ import annotations

from tests.inference.cases.case import X2, X4, Cases

CASES = Cases()

CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
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
CASES(
    "as-many-as-a-part-of-the-labels",
    "(torch.rand(2, 3, 6, 6), torch.randint(0, 3, (2, 6, 6)))",
    """
class M(nn.Module):
    def __init__(self, thresh):
        super().__init__()
        self.thresh = -torch.log(torch.tensor(thresh, dtype=torch.float))
        self.criteria = nn.CrossEntropyLoss(ignore_index=255, reduction="none")

    def forward(self, logits, labels):
        n_min = labels[labels != 255].numel() // 16
        loss = self.criteria(logits, labels).view(-1)
        hard = loss[loss > self.thresh]
        if hard.numel() < n_min:
            hard, _ = loss.topk(n_min)
        return torch.mean(hard)
""",
    "(0.7,)",
)
CASES(
    "as-many-as-were-taken",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        taken = x[x > 0]
        rest = taken.numel() - 1
        if taken.numel() > rest:
            taken = taken * 2
        return taken.sum()
""",
)
CASES(
    "larger-of-a-float-and-one",
    "(torch.randn(4, 3), torch.ones(4, 3))",
    """
class M(nn.Module):
    def forward(self, pred, weight):
        total = max((weight > 0).float().sum().item(), 1.0)
        count = max((weight > 0).sum().item(), 1)
        return pred.sigmoid().sum() / total / count
""",
)
CASES(
    "window-of-as-many-channels",
    "(torch.rand(2, 3, 8, 8),)",
    """
def create_window(size, channel):
    flat = torch.ones(size).unsqueeze(1)
    window = flat.mm(flat.t()).unsqueeze(0).unsqueeze(0)
    return Variable(window.expand(channel, 1, size, size).contiguous())


class M(nn.Module):
    def __init__(self, size=5):
        super().__init__()
        self.size = size
        self.channel = 1
        self.window = create_window(size, self.channel)

    def forward(self, x):
        (_, channel, _, _) = x.size()
        if channel == self.channel and self.window.type() == x.type():
            window = self.window
        else:
            window = create_window(self.size, channel)
        return F.conv2d(x, window, padding=self.size // 2, groups=channel)
""",
)
CASES(
    "interface-compatible",
    X4,
    """
class M(nn.Module):
    def forward(self, z, temp=None, rescale=False):
        assert temp is None or temp == 1.0, "only for the interface"
        assert rescale == False
        return z.permute(0, 2, 3, 1) * 2
""",
)
CASES(
    "mean-over-the-batch-if-any",
    "(torch.randn(4, 3), torch.randint(0, 2, (4,)))",
    """
class M(nn.Module):
    def forward(self, features, labels):
        total = 0
        for row in range(features.shape[0]):
            total = total + (labels == labels[row]).float().sum()
        if total > 1:
            return features / total
        return features
""",
)
CASES(
    "sum-over-pairs-of-lists",
    "([torch.randn(4, 3), torch.randn(2, 3)], [torch.randn(4, 3), torch.randn(2, 3)])",
    """
class M(nn.Module):
    def forward(self, outputs: List[torch.Tensor], targets: List[torch.Tensor]):
        if len(outputs) == 0:
            return torch.zeros(())
        loss = 0
        for level, (output, target) in enumerate(zip(outputs, targets)):
            loss += F.l1_loss(output, target) * 0.5**level
        if loss > 1:
            loss = loss.log()
        return loss
""",
)
CASES(
    "rows-from-the-second-on",
    "(torch.randn(1, 3),)",
    """
class M(nn.Module):
    def forward(self, x):
        gap = 0
        for row in range(1, x.shape[0]):
            gap = gap + (x[row] - x[row - 1]).abs().sum()
        if gap > 1:
            return x / gap
        return x
""",
)
CASES(
    "written-by-a-squeezed-index",
    "(torch.rand(3, 6), torch.zeros(6, dtype=torch.long))",
    """
class M(nn.Module):
    def forward(self, overlaps, conf):
        _, best = overlaps.view(3, 6).max(1, keepdim=True)
        best.squeeze_(1)
        conf = conf.clone()
        for j in range(best.size(0)):
            conf[best[j]] = j
        return conf
""",
)
CASES(
    "rows-by-a-squeezed-index",
    "(torch.rand(3, 6), torch.zeros(6))",
    """
class M(nn.Module):
    def forward(self, overlaps, conf):
        best = overlaps.view(3, 6).argmax(1).unsqueeze(-1)
        conf = conf.clone()
        conf[best.squeeze(1)[0]] = 1.0
        return conf
""",
)
CASES(
    "picked-by-one-mask-twice",
    "(torch.rand(2, 5), torch.randint(0, 2, (2, 5)).float(), torch.rand(2, 5) > 0.3)",
    """
class M(nn.Module):
    def forward(self, scores, wanted, mask):
        y = torch.masked_select(scores, mask)
        t = torch.masked_select(wanted, mask)
        return F.binary_cross_entropy(y.double(), t.double())
""",
)
CASES(
    "picked-by-a-mask-with-a-name",
    "(torch.rand(2, 5), torch.rand(2, 5), torch.rand(2, 5) > 0.3)",
    """
class M(nn.Module):
    def forward(self, scores, wanted, mask):
        y = scores[mask]
        t = wanted[mask]
        return F.mse_loss(y, t)
""",
)
CASES(
    "picked-by-a-mask-that-is-bool-already",
    "(torch.rand(2, 5), torch.rand(2, 5), torch.rand(2, 5) > 0.3)",
    """
class M(nn.Module):
    def forward(self, scores, wanted, mask):
        return F.mse_loss(scores[mask.bool()], wanted[mask.bool()])
""",
)
CASES(
    "picked-by-what-was-found-once",
    "(torch.rand(5), torch.rand(5), torch.rand(5))",
    """
class M(nn.Module):
    def forward(self, scores, wanted, mask):
        return F.l1_loss(scores[mask.nonzero().squeeze(1)], wanted[mask.nonzero().squeeze(1)])
""",
)
CASES(
    "picked-by-a-view-of-the-mask",
    "(torch.rand(2, 5), torch.rand(2, 5), torch.rand(2, 5) > 0.3)",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.MSELoss()

    def forward(self, scores, wanted, mask):
        mask = mask > 0
        scores = scores.view(-1)[mask.view(-1)]
        wanted = wanted.view(-1)[mask.view(-1)]
        return self.criterion(scores, wanted)
""",
)
CASES(
    "found-of-an-unknown-number-of-dimensions",
    "(torch.tensor([0.5, -1.0, 2.0]),)",
    """
class M(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x > 0).squeeze(-1)
        if len(found) == 0:
            return x.sum() * 0
        return x[found].mean()
""",
)
CASES(
    "picked-by-what-was-found-and-moved",
    "(torch.rand(6), torch.rand(6), torch.rand(5) > 0.3)",
    """
class M(nn.Module):
    def forward(self, scores, wanted, mask):
        found = torch.nonzero(mask)
        near = F.l1_loss(scores[found.view(-1)], wanted[found.view(-1)])
        found = found.squeeze(1)
        return near + F.mse_loss(scores[found + 1], wanted[found + 1])
""",
)
