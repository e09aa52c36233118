"""What is refused of branches and loops, and the words that say why. A refused rewrite leaves the text as it is."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.bodies import HEAD, INIT
from tests.rewriting.fixing_all import mend

REFUSED = [
    (
        "parts of what a function of NumPy computes of numbers",
        "import numpy as np\nrow, column = np.divmod(x.argmax().item(), 2)\nif row > 1:\n    x = x * 2\nreturn x + column",
        "`row > 1` is NumPy's",
    ),
    (
        "a number that is computed of one that NumPy computed",
        "import numpy as np\nlevel = np.interp(x.mean().item(), [0.0, 1.0], [2.0, 4.0])\nlow = level - 1\nif 2.5 < low:\n    x = x * 2\nreturn x",
        "`2.5 < low` is NumPy's",
    ),
    (
        "an int of what a function of NumPy computes of numbers",
        "import numpy as np\nrow, column = np.divmod(x.argmax().item(), 2)\nreturn x * int(row)",
        "`row` is NumPy's",
    ),
    (
        "a sum that begins as a number, in a list beside the rounds that write it",
        "total, seen = 0.0, []\nfor row in x:\n    if row.sum() > 0:\n        total += row.mean()\n    else:\n"
        "        total -= row.max()\n    seen.append(total)\nreturn torch.stack(seen)",
        "writes to a tensor that `seen.append(total)` holds, too",
    ),
    (
        "a sum that begins as a number or as a part of what is given",
        "total, rows = 0.0, self.linear(x).squeeze(-1)\nfor i in range(3):\n    if x[i].sum() > 0:\n        total += rows[i]\n"
        "    else:\n        total = rows[i]\nreturn total",
        "`total += rows[i]` writes to a tensor that",
    ),
    (
        "a name whose flag may be turned without it",
        "held, y = False, x[0] * 1\nfor row in x:\n    if held:\n        y = y + row - start\n    if row.sum() > 3:\n"
        "        held = True\n    elif row.sum() > 1:\n        start, held = row, True\nreturn y",
        "`start` is not bound where the condition is false",
    ),
    (
        "the best of ints and floats",
        "return x * max((0.5, 1, 2), key=lambda k: (x * k).sin().sum())",
        "holds ints and floats, which one tensor does not keep apart",
    ),
    (
        "the best key of a dict, whose name is another key's where an item is read",
        "sums = {1: x.sum(), 2: x.mean()}\nbest = max(sums, key=sums.get)\ny = x * best\nfor best in (1, 2):\n    y = y + sums[best]\nreturn y",
        "is not known to give a tensor for an element",
    ),
    (
        "out= of an empty tensor on a GPU",
        "return x + torch.arange(4, out=torch.cuda.LongTensor())",
        "the empty tensor is made on a GPU",
    ),
    (
        "rows that F.pad pads by a number which the test does not say is some",
        "rows, size = x[x[:, 0] > 0], 4\nif rows.shape[0] < size:\n    size = 1\n"
        "    rows = torch.nn.functional.pad(rows, (0, 0, 0, size - rows.shape[0]))\nreturn rows",
        "cannot trace the gradient of F.pad",
    ),
    (
        "what a branch writes by a mask besides, of as many numbers as the mask need not pick",
        "row, given = x.t()[0], x[0, :2]\nlow = row < 0\nif low.any():\n    row[low] = given\n    x[:, 1][low] += 2\nreturn x",
        "is known there under several names",
    ),
    (
        "what one arm draws at random, and uses by an option",
        "y = x\nif x.mean() > 0:\n    noise = torch.rand_like(x)\n    if self.training:\n        y = y + noise\nreturn y",
        "`noise` is drawn at random and may go unused",
    ),
    (
        "what a way that returns draws at random, and uses by an option",
        "if x.mean() > 0:\n    noise = torch.rand_like(x)\n    return x + noise if self.training else x\nreturn x * 2",
        "`noise` is drawn at random and may go unused",
    ),
    (
        "what a loop's rounds draw at random, and use by an option",
        "while x.abs().max() > 1:\n    noise = torch.rand_like(x)\n    x = x * 0.5\n    if self.training:\n"
        "        x = x + noise\nreturn x",
        "`noise` is drawn at random and may go unused",
    ),
    (
        "a tensor that later rounds write, in a list that data leaves",
        "total, seen = x[0] * 1, []\nfor row in x:\n    if row.sum() > 3:\n        break\n    total += row\n    seen.append(total)\n"
        "if not seen:\n    return total\nreturn torch.stack(seen).sum(0)",
        "`seen.append(total)` changes `seen` outside of the branch",
    ),
    (
        "a list that data leaves and that is given as it is",
        "seen = []\nfor row in x:\n    if row.sum() > 3:\n        break\n    seen.append(row * 2)\nreturn seen",
        "data would decide how long the list becomes",
    ),
    (
        "a list that data leaves, in a loop whose counter may start below 0",
        "seen, at = [], -4\nwhile at < len(x):\n    if x[at].sum() > 3:\n        break\n    seen.append(x[at].sum())\n    at += 1\n"
        "if not seen:\n    return x.sum()\nreturn torch.stack(seen).sum()",
        "data would decide how long the list becomes",
    ),
    (
        "found rows without a dimension where one is found, in a loop",
        "n = (x > 0).sum().item()\ntotal = x.sum()\nfor k in range(n):\n    own = (x[:, 0] > k).nonzero().squeeze()\n"
        "    total = total + own.dim()\nreturn total",
        "`own` has no dimension where one row is found, which the loop would not know",
    ),
    (
        "a name that data binds, asked for behind the question of data",
        "if x.sum() > 100:\n    y = x * 2\nflag = x.sum() > 100 and y.sum() > 0\nreturn x, flag",
        "`y` is only bound where data says so",
    ),
    (
        "a number of a list that is compared with one, for more than a branch",
        "total = x.sum()\nfor k in x[0].long().unique().tolist():\n    many = k > 1\n    total = total + many\nreturn total",
        "`k` is a number of Python, and not only an index of tensors",
    ),
    (
        "a number of a list that is compared with a tensor without dimensions",
        "total = x.sum()\nfor k in x[0].double().unique().tolist():\n    total = total + (x.sum() == k)\nreturn total",
        "`k` is a number of Python, and not only an index of tensors",
    ),
    (
        "a name that the round before may have bound",
        "for k in range(3):\n    if x[k].sum() > 0:\n        y = x[k] * 2\n    x = x + y\nreturn x",
        "`y` is not bound where the condition is false",
    ),
    (
        "a name that is read on one way only",
        "if x.sum() > 0:\n    y = x * 2\nreturn y if self.training else x",
        "`y` is not bound where the condition is false",
    ),
    (
        "what a round writes, which is the round before's",
        "for i in range(4):\n    y = x\n    y[0] = y.mean()\n    if y.norm() < 2:\n        return y * 2, i\n    x = y * 0.7\nreturn x, i",
        "may share memory with `x`",
    ),
    (
        "what is None before a loop that may have no round",
        "last, n = None, len(self.sizes)\nfor _ in range(n):\n    cost = x.pow(2).sum()\n"
        "    if last is not None and cost > last:\n        break\n    last = cost\n    x = x * 0.9\nreturn x, last",
        "`last` may",
    ),
    (
        "what a later round may make None again",
        "last = None\nfor _ in range(12):\n    cost = x.pow(2).sum()\n    if last is not None and cost > last:\n        break\n"
        "    last = self.cost(x) if cost < 9 else None\n    x = x * 0.9\nreturn x",
        "whether `last` is a tensor",
    ),
    (
        "a Parameter that takes the place of one that is held",
        "old = self.linear.weight.t()\nself.linear.weight = nn.Parameter(self.linear.weight * 2)\nreturn self.linear(x) @ old",
        "`old` holds the Parameter `self.linear.weight` that was there before",
    ),
    (
        "a loop over tensors that a branch writes by a row of one of them",
        "rows = [x * 2, x * 3]\nif x.sum() > 0:\n    first = rows[0][0]\n    for row in rows:\n        row.mul_(first)\n"
        "return rows[0] + rows[1]",
        "the branch writes to tensors in `rows`",
    ),
    (
        "loops over tensors that both arms write, where one gives a name that the other reads",
        "rows, k = [x * 2, x * 3], x.mean()\nif x.sum() > 0:\n    for k in rows:\n        k.add_(1)\nelse:\n    for row in rows:\n"
        "        row.mul_(k)\nreturn rows[0] + rows[1]",
        "the branch writes to tensors in `rows`",
    ),
    (
        "what goes on where it was left, whose tensors a branch writes",
        "rows = [x * 2, x * 3]\nleft = iter(rows)\nif x.sum() > 0:\n    for row in left:\n        row.add_(1)\n"
        "return sum(left, x)",
        "the branch writes to tensors in `left`",
    ),
    (
        "rows that a loop goes through, of a tensor that a branch writes",
        "x = self.linear(x)\ny = x.sum(0)\nfor row in x:\n    y = y + row\n    if (x < -5).all():\n        x += 0.5\nreturn y, x",
        "is written while a loop goes through its rows",
    ),
    (
        "one of several views of a tensor that a branch writes",
        "x = self.linear(x)\na, b = x.chunk(2, -1)\nif (a < -5).all():\n    x += 0.5\nreturn b, x",
        "`b`, one of several views of it, is read later",
    ),
    (
        "the `else` of an inner loop that leaves the outer one",
        "k = 0\nwhile k < 3:\n    k += 1\n    for _ in range(2):\n        x = x * 0.9\n    else:\n        if x.sum() > 4:\n"
        "            x = x * 0.5\n        else:\n            break\nreturn x",
        "the `else` of an inner loop leaves the loop around it",
    ),
    (
        "as many columns as data says",
        "k = (x[0] > 0).sum().item()\nif x.sum() > 0:\n    y = x.narrow(1, 0, k)\nelse:\n    y = -x.narrow(1, 0, k)\nreturn y",
        "a size from data behind its first",
    ),
    (
        "the columns that data picks",
        "found = torch.nonzero(x[0] > 0).squeeze(1)\nif x.sum() > 0:\n    y = x.index_select(1, found)\nelse:\n"
        "    y = torch.index_select(-x, 1, found)\nreturn y",
        "a size from data behind its first",
    ),
    (
        "an arm that combines a tensor and a number by `and`",
        "if x.sum() > 0:\n    hit = (x.mean() > 0) and (x.max().item() > 2)\n    x = x * hit\nreturn x",
        "cannot be traced either and has no fix (EXL106)",
    ),
    (
        "found rows that are squeezed behind an early end",
        "y = x * 2\nif x.sum() < 0:\n    return y\nrows = (x[:, 0] > 0).nonzero().squeeze()\nif rows.dim() == 0:\n"
        "    rows = rows.unsqueeze(0)\nreturn y + x[rows].sum(0)",
        "has no dimension where one row is found",
    ),
    (
        "an arm that goes through what is found in a mask of unknown rank",
        "y = x.exp()\nif x.sum() > 0:\n    rows = given.nonzero().t().squeeze()\n    for row in rows:\n        y = y + row.sum()\nreturn y",
        "runs as often as rows are found",
    ),
    (
        "an arm without autocast binds what autocast has lowered",
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    h = self.linear(x)\nif h.amax() > 3:\n"
        "    with torch.autocast('cpu', enabled=False):\n        h = self.linear(x)\nreturn h",
        "torch.autocast has chosen the dtype of `h` above",
    ),
    (
        "an arm that draws between bounds from data",
        "if x.sum() > 0:\n    x = x + torch.empty(3).uniform_(x.min(), x.max()).sum()\nreturn x",
        "cannot be traced either and has no fix (EXL425)",
    ),
    (
        "an arm that asks for a number from data",
        "if x.sum() > 0:\n    x = torch.nn.functional.layer_norm(x, (4,), eps=x.abs().max().item())\nreturn x",
        "cannot be traced either and has no fix (EXL425)",
    ),
    (
        "an arm that works on a dimension from data",
        "if x.sum() > 0:\n    x = x.cumsum(x.argmax().item() % 2)\nreturn x",
        "cannot be traced either and has no fix (EXL415)",
    ),
    (
        "an arm that computes with a complex number",
        "if x.sum() > 0:\n    x = x * complex(x.sum().item(), 0).real\nreturn x",
        "cannot be traced either and has no fix (EXL401)",
    ),
    (
        "an arm that normalizes what a mask selects",
        "if x.sum() > 0:\n    x = x + torch.nn.functional.batch_norm(x[x[:, 0] > 0], None, None, training=True).sum()\nreturn x",
        "cannot be traced either and has no fix (EXL423)",
    ),
    (
        "a function of elements that counts",
        "seen = []\ny = x.clone()\ny.apply_(lambda v: seen.append(v) or v)\nreturn y",
        "more than arithmetic on an element",
    ),
    (
        "a function of elements that is found when the model runs",
        "y = x.clone()\nreturn y.apply_(self.linear.extra_repr)",
        "is not one expression",
    ),
    (
        "an item of a list of tensors, written by rows",
        "rows = [x * i for i in range(3)]\nif x.sum() > 0:\n    rows[1][0] = 2\nreturn rows[0] + rows[1]",
        "the branch writes to tensors in `rows`",
    ),
    (
        "a list of rows that later rounds write in place",
        "row = x[0] * 1\nrows = []\nfor i in range(3):\n    row += x[i]\n    if row.sum() > 1:\n        rows.append(row)\n"
        "return torch.stack(rows)",
        "changes `rows` outside of the branch",
    ),
    (
        "a list of rows of some rounds that leaves the function",
        "row = x[0] * 1\nrows = []\nfor i in range(3):\n    row = row + x[i]\n    if row.sum() > 1:\n        rows.append(row)\nreturn rows",
        "changes `rows` outside of the branch",
    ),
    (
        "a list that data makes longer, and that is read at an item which may not be there",
        "out = []\nfor i in range(3):\n    x = x * 0.5\n    if x.sum() > 1:\n        out.append(x)\nreturn out[-2]",
        "changes `out` outside of the branch",
    ),
    (
        "a list that data makes longer, an item of which is written in place",
        "out = []\nfor i in range(3):\n    if x[i].sum() > 1:\n        out.append(x[i])\nif not out:\n    return x\n"
        "first = out[0]\nfirst.add_(1)\nreturn x",
        "changes `out` outside of the branch",
    ),
    (
        "a list that data makes longer, the last item of which a round writes in place",
        "out = [x[0] * 1.0]\nfor i in range(3):\n    last = out[-1]\n    if x[i].sum() > last.sum():\n        out.append(x[i] * 2)\n"
        "    last.add_(1)\nreturn torch.stack(out).sum(0)",
        "changes `out` outside of the branch",
    ),
    (
        "a list that data makes longer, and that leaves the function",
        "out = [x.sum()]\nwhile out[-1] > 1:\n    x = x * 0.5\n    out.append(x.sum())\nreturn out",
        "changes `out` outside of the branch",
    ),
    (
        "a list that begins with a tensor of another size than what data appends",
        "out = [torch.ones(1)]\nfor i in range(3):\n    x = x * 0.5\n    if x.sum() > 1:\n        out.append(x)\nreturn out[-1] * 2",
        "changes `out` outside of the branch",
    ),
    (
        "a list that begins with a tensor of another size, and of which numbers are read that a round writes",
        "out = [torch.ones(1) * 9]\nwhile out[-1].norm() > 1:\n    x = x * 0.5\n    out.append(x)\n    x.mul_(0.9)\nreturn x",
        "changes `out` outside of the branch",
    ),
    (
        "the last of as many as the branch asks whether there are any",
        "k = x[0, 0].long()\nif k > 0:\n    x = x - torch.topk(x.flatten(), min(k.item(), 3)).values[-1]\nreturn x",
        "picks an item of as many as data says",
    ),
    (
        "a list that data cuts, filled up to another number than the loop's rounds",
        "out = []\nfor _ in range(3):\n    x = torch.tanh(self.linear(x))\n    out.append(x.sum())\n    if x.max() < 0.3:\n        break\n"
        "while len(out) < 5:\n    out.append(out[-1])\nreturn torch.stack(out)",
        "how long the list becomes",
    ),
    (
        "one of functions that may give what they are given",
        "acts = [torch.relu, lambda t: t]\nreturn acts[x.sum().long().item()](x)",
        "it is not known what `acts[0]` does with what it is given",
    ),
    (
        "one of functions that read a name of the function that chooses",
        "k = x.max()\nacts = [torch.relu, lambda t: t * k]\nk = x.min()\nreturn acts[x.sum().long().item()](x)",
        "it is not known what `acts[0]` does with what it is given",
    ),
    (
        "a tensor that the else of a loop makes of what the loop writes to",
        "y = x * 1\nfor i in range(3):\n    y.mul_(0.5)\n    if y.sum() < 1:\n        n = y.sum()\n        break\n"
        "else:\n    n = torch.full((), y.max())\nreturn n",
        "`n` is read after the loop, and may be unbound when the loop is left",
    ),
    (
        "a flag that a round asks before it is set",
        "found = False\nfor k in range(1, x.shape[0]):\n    y = x * (2 if found else k)\n    if y.sum() > 1:\n        found = True\n"
        "        break\nif not found:\n    y = x - 1\nreturn y",
        "may run no round at all",
    ),
    (
        "an index that may be what stands for none",
        "at = 1\nfor k in range(1, x.shape[0]):\n    y = x * k\n    if y.sum() > 1:\n        at = k\n        break\n"
        "if at == 1:\n    y = x - 1\nreturn y",
        "may run no round at all",
    ),
    (
        "a flag that only one of two breaks sets",
        "found = False\nfor k in range(1, x.shape[0]):\n    y = x * k\n    if y.sum() > 1:\n        found = True\n        break\n"
        "    if y.sum() < -9:\n        break\nif not found:\n    y = x - 1\nreturn y",
        "may run no round at all",
    ),
    (
        "an `else` whose tensor may fail to be computed",
        "found = False\nfor k in range(1, x.shape[0]):\n    y = x[:2, :2] * k\n    if y.sum() > 1:\n        found = True\n        break\n"
        "if not found:\n    y = torch.linalg.cholesky(x[:2, :2])\nreturn y",
        "may run no round at all",
    ),
    (
        "a power of an int in a loop, whose exponent may be negative",
        "t = x.sum().long().item()\nwhile t < 5:\n    x = x + 2 ** t\n    t += 1\nreturn x",
        "is no power that torch traces where the exponent may be negative",
    ),
    (
        "a slice in a loop beside a tensor, which may begin below zero",
        "t = x.sum().long().item()\ny = x[:1]\nwhile t < 2:\n    y = y + x[t : t + 1]\n    t += 1\nreturn y",
        "has a size that torch does not know in a loop",
    ),
    (
        "a power of an int in a branch, whose exponent may be negative",
        "n = x.sum().long().item()\nif x.max() > 1:\n    x = x * 2 ** n\nreturn x",
        "is a power of an int, whose exponent torch asks for its sign",
    ),
    (
        "a power of a negative int in a loop",
        "t = 0\nwhile x.abs().max() < 9:\n    x = x * 2 + (-1) ** t\n    t += 1\nreturn x",
        "is no power that torch traces where the exponent may be negative",
    ),
    (
        "an error of a `while` that is caught around it",
        "try:\n    while x.sum() > 1:\n        x = x / 2\n        if x.min() < -5:\n            raise ValueError('low')\n"
        "except ValueError:\n    x = x * 0\nreturn x",
        "the error is caught in the same function",
    ),
    (
        "rows of which there are more in each round, and none at first",
        "seen = None\nfor t in range(1, 3):\n    if x[t].sum() > 0:\n        seen = x[:t]\n"
        "return x.sum() if seen is None else seen.sum()",
        "`seen` may be None after the branch",
    ),
    (
        "rows that are joined to what may be None",
        "rows = None\nfor t in range(3):\n    if x[t].sum() > 0:\n        rows = x[t : t + 1] if rows is None else torch.cat([rows, x[t : t + 1]])\n"
        "return x.sum() if rows is None else rows.sum()",
        "rows",
    ),
    (
        "what may be None where a round goes on with it, and where it leaves the function",
        "last = None\nfor t in range(3):\n    if last is not None and x[t].sum() > 0:\n        last = last + x[t]\n"
        "    elif x[t].sum() < -1:\n        last = x[t]\nreturn last",
        "`last` may",
    ),
    (
        "what is set back between the question and its use",
        "last, y = None, x[0]\nfor t in range(3):\n    if last is not None:\n        if x[t].sum() > 0:\n            last = None\n"
        "        y = nn.functional.linear(y, self.linear.weight, last)\n    elif x[t].sum() < 0:\n        last = x[t]\nreturn y",
        "`last` may",
    ),
    (
        "None that a function gives where no round says otherwise",
        "last = None\nfor t in range(3):\n    if x[t].sum() > 0:\n        last = x[t]\nreturn x, last",
        "`last` may be None after the branch",
    ),
    (
        "a bound that is used where it may be None",
        "t, low = x.sum(), None\nfor _ in range(3):\n    if t > 1:\n        low = t\n        t = t / 2\n    else:\n"
        "        t = t * 2 if low is None else t + 1\nreturn t * low",
        "`low` may be None after the branch",
    ),
    (
        "a deep copy of a dict that holds one tensor twice",
        "from copy import deepcopy\nh = x * 2\nstate = {'h': h, 'last': h[0]}\nother = deepcopy(state)\nother['h'] += 1\nreturn other['last']",
        "two of the tensors that are copied may share memory",
    ),
    (
        "a deep copy of a dict that holds what is not known",
        "import copy\nstate = {'h': x * 2, 'all': {self.linear}}\nreturn copy.deepcopy(state)['h']",
        "what is copied is not known to be a tensor",
    ),
    (
        "a gradient that is taken away on one way behind the branch",
        "y = x.detach()\nif x.sum() > 0:\n    y = self.linear(x).detach()\nif self.count:\n    y.requires_grad_(False)\nreturn y",
        "what torch.cond gives is no leaf",
    ),
    (
        "an attribute that has other dimensions on either side",
        "if x.sum() > 0:\n    self.high = x.min()\nelse:\n    self.high = torch.zeros(3) * x.sum()\nreturn x - self.high",
        "`self.high` has ",
    ),
    (
        "the first of constants that are changed later",
        "limits = [1.0, 10.0]\nlimits[0] = 3.0\nreturn x * next((i for i, hi in enumerate(limits) if x.sum() < hi), 7)",
        "how many elements `x.sum() < hi` keeps",
    ),
    (
        "the first of constants, which an option asks for",
        "k = 0 if x.shape[0] > 5 else next((hi for hi in (1.0, 2.0) if x.sum() < hi), 9.0)\nreturn x * k",
        "how many elements `x.sum() < hi` keeps",
    ),
    (
        "the first of more constants than there can be branches",
        "return x * next((hi for hi in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) if x.sum() < hi), 12)",
        "how many elements `x.sum() < hi` keeps",
    ),
    (
        "the best round, of which the caller asks whether there is one",
        "def search(t):\n    best, kept = 9.0, None\n    for row in t:\n        if row.sum() < best:\n            best, kept = row.sum(), row\n"
        "    return kept\nfound = search(x)\nreturn x if found is None else x - found",
        "`kept` may be None after the branch",
    ),
    (
        "the best round, which keeps what only later rounds have",
        "best, kept = 9.0, None\nfor i, row in enumerate(x):\n    if i > 0 and row.sum() < best:\n        best, kept = row.sum(), last\n"
        "    last = row\nreturn kept",
        "`kept` may be None after the branch",
    ),
    (
        "the best round, whose result a layer gives",
        "best = 9.0\nfor row in x:\n    if row.sum() < best:\n        best, y = row.sum(), self.linear(row)\nreturn y",
        "`y` is not bound where the condition is false",
    ),
    (
        "a tensor among named numbers that its dtype may round, as it compares in that dtype",
        "levels = [0.1, 0.5]\nif x.sum() in levels:\n    x = x + 1\nreturn x",
        "looks for a tensor value in a container",
    ),
    (
        "numbers that the loop has seen, of a tensor that it writes under another name",
        "h = x[0].clone()\nv = h.view(-1)\ntotal = x.sum()\nseen = set()\nfor k in h.tolist():\n    if k in seen:\n        continue\n"
        "    seen.add(k)\n    v[0] = 5\n    total = total + k\nreturn total",
        "looks for a tensor value in a container",
    ),
    (
        "a set of numbers that is joined with another",
        "a = set(x.long().flatten().tolist())\nreturn x * len(a & {1, 2})",
        "more is done with the set than asking what is in it",
    ),
    (
        "a search whose rounds draw random numbers",
        "for i in range(len(x)):\n    if x[i, 0] > torch.rand(()):\n        return x * i\nreturn torch.rand_like(x)",
        "may be unbound after the loop",
    ),
    (
        "a view of what an arm writes, by an index that is a tensor",
        "row = x.flatten()\nat = row.argmax()\nif row.sum() > 0:\n    first = row[at]\n    row *= 2\n    row = row + first\nreturn row",
        "is a view of what is written in place",
    ),
    (
        "a view by an index that is a tensor, read again behind the write",
        "s = x.flatten().clone()\nfor i in s.argsort():\n    if x.sum() > i:\n        first = s[i]\n        s[s > 0.3] = 0.0\n"
        "        x = x + first\nreturn x",
        "`s[i]` is a view of what is written in place",
    ),
    (
        "such a view under a second name",
        "s = x.flatten().clone()\nfor i in s.argsort():\n    if x.sum() > i:\n        first = s[i]\n        kept = first\n"
        "        s[s > 0.3] = 0.0\n        x = x + kept\nreturn x",
        "`s[i]` is a view of what is written in place",
    ),
    (
        "such a view that the next round reads",
        "s = x.flatten().clone()\nfirst = s[0]\nfor i in s.argsort():\n    if x.sum() > i:\n        x = x + first\n        first = s[i]\n"
        "        s[s > 0.3] = 0.0\nreturn x",
        "`s[i]` is a view of what is written in place",
    ),
    (
        "such a view that a method writes",
        "s = x.flatten().clone()\nfor i in s.argsort():\n    if x.sum() > i:\n        s[i].view(-1).mul_(2.0)\n        x = x + s[i]\nreturn x",
        "`s[i]` is a view of what is written in place",
    ),
    (
        "truths that Python counts",
        "return x * sum(v > 2 for v in (x > 0).long().flatten().tolist())",
        "compute it with tensors, and read the result out",
    ),
    (
        "a whole power that data gives",
        "return x * 2 ** (x > 0).sum().item()",
        "compute it with tensors, and read the result out",
    ),
    (
        "the rest of a power",
        "return x * pow((x > 0).sum().item(), 2, 3)",
        "of a negative base or exponent",
    ),
    (
        "a caught item that may be missing",
        "try:\n    first = (x > 0).flatten().nonzero()[0]\nexcept IndexError:\n    first = torch.zeros(1)\nreturn first",
        "how many items there are, is not provable",
    ),
    (
        "a caught division beside another",
        "n = x.sum().item()\ntry:\n    h = x * (1 / n + 2 / (n - 1))\nexcept ZeroDivisionError:\n    h = x\nreturn h",
        "in the same `try` may fail as well",
    ),
    (
        "a loop that adds to what it carries",
        "out, n = x[:1], 0\nwhile out.sum() < 3 and n < 5:\n    out = torch.cat([out, x[:1]], 0)\n    n += 1\nreturn out",
        "`out` grows from round to round",
    ),
    (
        "a loop that leaves fewer rows in each round",
        "left = x[x[:, 0] > 0]\nwhile left.numel() > 4:\n    left = left[1:]\n    left = left[left[:, 0] < 2]\nreturn left",
        "the size of `left` changes from round to round",
    ),
    (
        "a branch that sorts tensors in Python",
        "y = x - 1\nif x.sum() > 0:\n    y = sorted([x.sum(), x.mean()])[0] + x\nreturn y",
        "compares values of tensors with each other in Python",
    ),
    (
        "a branch that takes the largest tensor by a key",
        "y = x - 1\nif x.sum() > 0:\n    y = max([x[0], x[1]], key=lambda v: v.sum()) + x\nreturn y",
        "compares values of tensors with each other in Python",
    ),
    (
        "a branch that maps a function",
        "y = x - 1\nif x.sum() > 0:\n    y = torch.vmap(lambda v: v * 2)(x)\nreturn y",
        "maps a function",
    ),
    (
        "a branch that looks for the first by data",
        "y = x - 1\nif x.sum() > 0:\n    y = x + next(v for v in x.sum(1) if v > 1)\nreturn y",
        "filters by tensor data inside of the branch",
    ),
    (
        "a loop that goes on by what is left of places, of which each hangs on all others",
        "order = x[:, 0].argsort()\ntotal = x.sum()\nwhile order.numel() > 0:\n    rest = order[1:]\n    total = total + x[order[0]].sum()\n"
        "    order = rest[x[rest, 0] < x[rest, 0].mean()]\nreturn total",
        "the size of `order` changes from round to round",
    ),
    (
        "a loop whose condition binds a name on some ways",
        "n = 0\ntop = x.sum()\nwhile x.sum() > 9 or (top := x.abs().max()) > 1.5:\n    x = x / 2\n    n += 1\nreturn x * top",
        "binds `top` on some ways only",
    ),
    (
        "an attribute of a computed name that may not be there",
        "for name in ('a', 'b'):\n    if x.sum() > 1:\n        setattr(self, 'peak_' + name, x.max())\nreturn x",
        "is there before the branch is not known",
    ),
    (
        "a number that is close to another one",
        "import math\nreturn x * math.isclose(x.sum().item(), 1.0)",
        "takes the larger of the two tolerances",
    ),
    (
        "a place among numbers in no order",
        "import bisect\nreturn x * bisect.bisect([3, 1, 2], x.sum().item())",
        "is not known to be a list of sorted numbers",
    ),
    (
        "a tensor among sorted numbers",
        "import bisect\nreturn x * bisect.bisect([1, 2, 3], x.sum())",
        "read the number with `.item()`",
    ),
    (
        "numbers that are counted by a Counter",
        "from collections import Counter\nreturn x * Counter(x.long().flatten().tolist())[2]",
        "is not provable",
    ),
    (
        "a caught failure whose handler reads the error",
        "try:\n    h = torch.linalg.cholesky(x)\nexcept RuntimeError as error:\n    h = x * len(error.args)\nreturn h",
        "the handler reads the exception, or raises it again",
    ),
    (
        "a caught failure beside what may fail as well",
        "try:\n    h = torch.linalg.cholesky(x) @ torch.inverse(x)\nexcept RuntimeError:\n    h = x\nreturn h",
        "in the same `try` may fail as well",
    ),
    (
        "a caught failure beside a helper",
        "try:\n    h = torch.linalg.inv(self.linear(x))\nexcept RuntimeError:\n    h = x\nreturn h",
        "`self.linear(x)` in the `try` may raise the same error",
    ),
    (
        "another thing by the name of torch",
        "torch = self.linear\nif x.sum() > 0:\n    x = torch(x)\nreturn x",
        "`torch` is another name in `forward`",
    ),
    (
        "an int that becomes a float in the loop",
        "n = 1\nwhile n > 0.1:\n    n *= x.abs().mean() / (1 + x.abs().mean())\nreturn x",
        "`n` is an int before the loop, and none after its first round",
    ),
    (
        "a name that another branch on data binds",
        "high = x.sum() > 0\nif high:\n    f = x.mean()\n    x = x * f\ny = x + 1\nif x.mean() > 0:\n    y = y / f\nreturn y",
        "`f` is only bound where data says so",
    ),
    (
        "a ternary that reads what another branch on data binds",
        "if x.sum() > 0:\n    f = x.mean()\n    x = x * f\nreturn x / f if x.mean() > 1 else x",
        "`f` is only bound where data says so",
    ),
    (
        "a name that the other side of a branch binds",
        "if x.sum() > 0:\n    f = x.mean()\n    x = x * f\nreturn x / (f if self.training else 2)",
        "`f` is not bound where the condition is false",
    ),
    (
        "a search in a list that grows",
        "found = x.flatten().long().tolist()\nfound.append(2)\nreturn x * found.count(2)",
        "which tensor's numbers `found` has",
    ),
    (
        "a search for a float that a tensor rounds",
        "return x * x.flatten().tolist().count(0.1)",
        "or how they compare, is not known",
    ),
    (
        "a ternary between contexts",
        "with torch.no_grad() if x.sum() > 0 else torch.enable_grad():\n    x = self.linear(x)\nreturn x",
        "chooses a context, an error or a function",
    ),
    (
        "a branch that raises where a name says that is bound in between",
        "mode = 'a'\nif x.sum() > 0:\n    return x\nmode = self.pick(x)\nif mode == 'a':\n    return x + 1\nraise ValueError(mode)",
        "what follows the branch raises",
    ),
    (
        "a branch that raises without an optional argument",
        "def scaled(y, mask=None):\n    if y.sum() > 0:\n        if mask is None:\n            raise ValueError('no mask')\n"
        "        y = y * mask\n    return y\nreturn scaled(x) + scaled(x, x)",
        "one way through the branch raises",
    ),
    (
        "a branch that may raise",
        "if x.sum() > 0:\n    x = x + 1\n    if self.count:\n        raise ValueError('counted')\nreturn x",
        "one way through the branch raises",
    ),
    (
        "a number of a list that is a key",
        "table = {0: 1.0, 1: 2.0}\nfor e in x.sum(1).nonzero().flatten().tolist():\n    x = x * table[e]\nreturn x",
        "`e` is a number of Python, and not only an index of tensors",
    ),
    (
        "lists of different lengths",
        "if x.sum() > 0:\n    parts = [x.mean(), x.max()]\nelse:\n    parts = [x.min()]\nreturn sum(parts)",
        "`parts` has 2 items on one side of the branch and 1 on the other",
    ),
    (
        "numbers in lists of lists",
        "if x.sum() > 0:\n    parts = [[x.mean()], [x.max()]]\nelse:\n    parts = [[x.mean()], [0]]\nreturn parts",
        "an item of `parts` has Python numbers among its items",
    ),
    (
        "a size from data that would move into the branch",
        "n = x.abs().sum().int().item()\nif n > 4:\n    last = n / 2\nelse:\n    last = 0.5\n"
        "return x + torch.logspace(0, last, steps=n).sum()",
        "cannot be traced either",
    ),
    (
        "steps by a number from data that become whole numbers",
        "n = x.abs().sum().int().item()\nsteps = torch.linspace(0, 3, n)\nreturn x.flatten()[steps.long()]",
        "rounds or compares the steps",
    ),
    (
        "steps by a number that is read on the spot",
        "return torch.linspace(0, 3, x.abs().sum().int().item())",
        "would be read twice: give it a name first",
    ),
    (
        "differences of what is found for each row",
        "return [torch.diff(torch.where(row > 0)[0]) for row in x]",
        "would be computed twice: give it a name first",
    ),
    (
        "differences of differences of what is found",
        "return torch.diff(torch.where(x.flatten() > 0)[0], n=2)",
        "differences are taken several times",
    ),
    (
        "a size that is asserted where the error is caught",
        "if x.sum() > 0:\n    try:\n        assert x.shape[0] > 0\n        x = x + 1\n    except AssertionError:\n"
        "        x = x * 2\nreturn x",
        "the error is caught in the same function",
    ),
    (
        "more rows than there may be",
        "picked = x.flatten()[x.flatten() > 0]\nn = picked.shape[0]\nif n > 2:\n    best = torch.topk(picked, 4, dim=0)[0].sum()\n"
        "else:\n    best = x.sum()\nreturn picked, best",
        "ask for as many rows of `picked` on the other way too",
    ),
    (
        "a slice of rows that is to fit a tensor, where the branch asks for fewer",
        "picked = x.flatten()[x.flatten() > 0]\nif picked.shape[0] > 0:\n    picked = picked[-2:] * torch.linspace(1, 0, 2)\n"
        "return picked.sum()",
        "ask for as many rows of `picked` on the other way too",
    ),
    (
        "rows by numbers from outside, in a branch that does not ask for any",
        "places = torch.nonzero(x.flatten() > 0).flatten()\nif x.mean() > 0:\n    y = x.flatten()[places].amax(0)\n"
        "else:\n    y = x.sum()\nreturn places, y",
        "ask for as many rows of `x.flatten()[places]` on the other way too",
    ),
    (
        "rows that a mask picked before, beside those that it picks in the branch",
        "full = x.flatten()\nfound = full > 0\npicked = full[found]\nif found.any():\n    y = full[found].amax(0) + picked.mean()\n"
        "else:\n    y = x.sum()\nreturn picked, y",
        "`picked` was picked by it before",
    ),
    (
        "a list that may have more items than it is padded to",
        "rows = []\nfor i in range(3):\n    if x[i].sum() > 0:\n        rows.append(x[i] * 2)\n"
        "while len(rows) < 2:\n    rows.append(x.new_zeros(4))\nreturn torch.stack(rows)",
        "data would decide how long the list becomes",
    ),
    (
        "a list that is padded with rows of another dtype",
        "rows = []\nfor i in range(3):\n    if x[i].sum() > 0 and len(rows) < 2:\n        rows.append(x[i].long())\n"
        "while len(rows) < 2:\n    rows.append(torch.zeros(4))\nreturn torch.stack(rows)",
        "changes `rows` outside of the branch",
    ),
    (
        "tensors of a list that is joined of two",
        "states = [x] + [torch.zeros_like(x) for _ in range(2)]\nif x.sum() > 0:\n    y = x\nelse:\n    for i in range(2):\n"
        "        states[i + 1].add_(states[i])\n    y = states[-1]\nreturn x * y",
        "the branch writes to tensors in `states`",
    ),
    (
        "rows of pieces that may be cut off",
        "total = 0\nfor piece in x.split((x[:2, 0] > -9).long().cumsum(0).tolist()):\n    if len(piece) > 0:\n"
        "        total = total + piece[1:].amax()\nreturn x * total",
        "ask for as many rows of `piece[1:]` on the other way too",
    ),
    (
        "picked rows that are padded behind another term",
        "mask = x[:, 0] > 0\nif mask.any():\n    y = x.sum() + torch.nn.functional.pad(x[mask], (1, 0)).sum()\nelse:\n"
        "    y = x.sum()\nreturn y",
        "torch.cond cannot trace the gradient of F.pad there",
    ),
    (
        "picked rows that are padded in two dimensions",
        "mask = x[:, 0] > 0\nif mask.any():\n    kept = x[mask]\n    y = torch.nn.functional.pad(kept, (1, 0, 0, 1)).sum()\n"
        "else:\n    y = x.sum()\nreturn y",
        "torch.cond cannot trace the gradient of F.pad there",
    ),
    ("None on one way", "if x.sum() > 0:\n    return None\nreturn x", "returns None"),
    (
        "a name bound on one side only",
        "if x.sum() > 0:\n    y = x + 1\nif self.training or self.count:\n    return x\nreturn y",
        "`y` is not bound where the condition is false",
    ),
    ("a counter of the model", "if x.sum() > 0:\n    self.count = self.count + 1\nreturn x", "`self.count`"),
    ("a list of the model", "if x.sum() > 0:\n    self.kept.append(x)\nreturn x", "outside of the branch"),
    (
        "a chosen function",
        "f = torch.relu\nif x.sum() > 0:\n    f = torch.tanh\nreturn f(x), f",
        "Python object",
    ),
    (
        "a chosen object that leaves",
        "if x.sum() > 0:\n    s = torch.relu\nelse:\n    s = torch.tanh\nreturn x, s",
        "a Python object that tensor data would choose",
    ),
    (
        "a name that a condition binds on one way",
        "n = 0\nif x.sum() > 0 and (n := n + 1) < 2:\n    x = x + n\nreturn x",
        "a later part of the condition binds a name",
    ),
    (
        "different dtypes",
        "if x.sum() > 0:\n    y = x > 0\nelse:\n    y = x * 1.0\nreturn y",
        "dtype",
    ),
    (
        "an int or a float beside what may be an int",
        "if x.sum() > 0:\n    s = 2\nelse:\n    s = 0.5\nreturn x * s",
        "not known to meet float tensors only",
    ),
    (
        "an int or a float by a ternary",
        "s = 2 if x.sum() > 0 else 0.5\nreturn x * s",
        "does not certainly meet float tensors only",
    ),
    (
        "a list that is summed though it may be empty",
        "rows = []\nfor row in x:\n    if row.sum() > 0:\n        rows.append(row * 2)\nreturn sum(rows) + x.sum()",
        "data would decide how long the list becomes",
    ),
    (
        "a loop that says where it was left",
        "for i, row in enumerate(x):\n    if row.sum() > i:\n        break\n    x = x + 1\nreturn x, i",
        "`i` is read after the loop",
    ),
    (
        "a name that the `else` of a loop binds to what the loop computes",
        "for _ in range(3):\n    x = x / 2\n    if x.sum() < 1:\n        best, at = x, 1\n        break\nelse:\n"
        "    best, at = x + 1, 0\nreturn best, torch.tensor(at)",
        "may be unbound when the loop is left",
    ),
    (
        "a tensor that is None where no round breaks, and asked for in the rounds",
        "best = None\nfor _ in range(3):\n    y = x / 2\n    if y.sum() < 1:\n        best = y\n        break\n"
        "    x = y + (1 if best is None else 2)\nif best is None:\n    best = x - 1\nreturn best",
        "`best` may be None after the branch",
    ),
    (
        "a tensor that is None where the last of several breaks leaves it",
        "best = None\nfor _ in range(3):\n    y = x / 2\n    if y.sum() < 1:\n        best = y\n        break\n"
        "    x = y + 1\n    if x.sum() > 40:\n        break\nif best is None:\n    best = x - 1\nreturn best",
        "`best` may be None after the branch",
    ),
    (
        "a `finally` that sets an attribute",
        "try:\n    y = torch.linalg.cholesky(x @ x.T)\nexcept RuntimeError:\n    y = x @ x.T\n"
        "finally:\n    self.seen = x.norm()\nreturn y",
        "a `finally` that does more",
    ),
    (
        "an int that each round may choose anew, and the `else` of its loop uses",
        "n = 7\nfor k in range(3):\n    x = x / 2\n    if x.sum() > 3:\n        n = 2\n    if self.training:\n        break\n"
        "else:\n    n = n + 1\nreturn x, torch.tensor(n)",
        "let a tensor hold it",
    ),
    (
        "a name that only the loop binds",
        "for i, part in enumerate(x[x > 0]):\n    y = x * part\n    if y.sum() > 1:\n        break\n    x = y\nreturn y",
        "may run no round at all",
    ),
    (
        "a loop over values from data",
        "for value in torch.unique(x):\n    if value > 1:\n        break\n    x = x + value\nreturn x",
        "the loop's body may leave it",
    ),
    (
        "a list that is filled with one tensor which each round writes",
        "total, seen = torch.zeros(4), []\nfor row in x:\n    total += row\n    seen.append(total)\n"
        "    if row.sum() > 1:\n        break\nreturn torch.stack(seen)",
        "outside of the branch",
    ),
    (
        "a list filled with solutions, which a round more may not have",
        "s, seen = x[:, :3], []\nfor _ in range(3):\n    s = torch.linalg.solve(s, x[:, :3])\n    seen.append(s)\n"
        "    if s.sum() > 1:\n        break\nreturn sum(seen)",
        "outside of the branch",
    ),
    (
        "a list filled until a break, which is given back as it is",
        "s, seen = x, []\nfor _ in range(3):\n    s = torch.tanh(s)\n    seen.append(s)\n    if s.sum() > 1:\n        break\nreturn seen",
        "outside of the branch",
    ),
    (
        "rounds without rows, of which a mean is no number",
        "rows, outs, start = x.flatten(), [], 0\nfor n in (x > 0).sum(1):\n"
        "    if n == 0:\n        continue\n    outs.append(rows[start : start + n].mean(0, keepdim=True))\n    start += n\nreturn torch.cat(outs).sum()",
        "data would decide how long the list becomes",
    ),
    (
        "rounds without rows, which are counted",
        "rows, outs, start = x.flatten(), [], 0\nfor n in (x > 0).sum(1):\n"
        "    if n == 0:\n        continue\n    outs.append(rows[start : start + n])\n    start += n\nreturn torch.cat(outs).sum() / len(outs)",
        "outside of the branch",
    ),
    (
        "rounds without rows, behind a number that is another",
        "rows, outs, start = x.flatten(), [], 0\nfor n in (x > 0).sum(1):\n"
        "    end = start + n\n    n = n - 1\n    if n == 0:\n        continue\n    outs.append(rows[start:end])\n    start = end\nreturn torch.cat(outs).sum()",
        "outside of the branch",
    ),
    (
        "a list filled behind the break, which may stay empty where it is summed",
        "s, seen = x, []\nfor _ in range(3):\n    s = torch.tanh(s)\n    if s.sum() > 1:\n        break\n    seen.append(s)\n"
        "return sum(seen)",
        "outside of the branch",
    ),
    (
        "a list filled behind the break, of which it is asked whether it is empty",
        "s, seen = x, []\nfor _ in range(3):\n    s = torch.tanh(s)\n    if s.sum() > 1:\n        break\n    seen.append(s)\n"
        "if len(seen) == 0:\n    return x\nreturn torch.stack(seen)",
        "outside of the branch",
    ),
    (
        "a list filled by rounds that do not end",
        "import itertools\ns, seen = x, []\nfor _ in itertools.count():\n    s = torch.tanh(s)\n    seen.append(s)\n"
        "    if s.max() < 0.1:\n        break\nreturn torch.stack(seen)",
        "outside of the branch",
    ),
    (
        "a list filled out of an iterator that is gone through further",
        "s, seen, left = x, [], iter([1.0, 2.0, 3.0])\nfor k in left:\n    s = torch.tanh(s) * k\n    seen.append(s)\n"
        "    if s.max() < 0.9:\n        break\nreturn torch.stack(seen) + sum(left)",
        "outside of the branch",
    ),
    (
        "a list filled with rows that may not be there",
        "s, seen = x[0], []\nfor i in range(8):\n    s = torch.tanh(s + x[i])\n    seen.append(s)\n"
        "    if s.max() < 5:\n        break\nreturn torch.stack(seen)",
        "outside of the branch",
    ),
    (
        "a loop whose last row is used",
        "for index in torch.nonzero(x > 0):\n    x = x + index.sum()\nreturn x + index.sum()",
        "`index` is used after the loop",
    ),
    (
        "a list of what is found",
        "return torch.stack([x + index.sum() for index in torch.nonzero(x > 0)])",
        "how often the loop runs is only known when the model runs",
    ),
    (
        "a comprehension that drops rows",
        "rows = [row for row in x if row.sum() > 0]\nreturn rows[1] + len(rows)",
        "keeps is only known when the model runs",
    ),
    (
        "rows of several elements that are sorted",
        "rows = sorted([x[0], x[1]])\nreturn rows[0]",
        "not known to be tensors without dimensions",
    ),
    (
        "elements of several dtypes that are sorted",
        "rows = sorted([x.sum(), x.argmax()])\nreturn rows[0]",
        "of several dtypes",
    ),
    (
        "rows of several lengths of which a key takes one",
        "rows = [row[row > 0] for row in x]\nreturn max(rows, key=torch.norm)",
        "not known to have one shape",
    ),
    (
        "a list that grows after it is made, of which a key takes one",
        "rows = [row * 2 for row in x]\nrows.append(x)\nreturn max(rows, key=torch.norm)",
        "not known to have one shape",
    ),
    (
        "pairs in a comprehension that a key orders",
        "sums = [row.sum() for row in x]\n"
        "return torch.stack([r * s for s, r in sorted(zip(sums, x), key=lambda pair: pair[0])])",
        "give it a name before",
    ),
    (
        "a tensor and a number that a key orders",
        "sums = [row.sum() for row in x]\nnames = [3, 4, 5]\nreturn x * max(zip(sums, names), key=lambda pair: pair[0])[1]",
        "not known to hold tensors alone",
    ),
    (
        "an order by a key that is computed in place",
        "return sorted([row * 2 for row in x], key=lambda row: row.sum())[0]",
        "give it a name before it is ordered",
    ),
    (
        "a list that is sorted in place",
        "rows = [x[0].sum(), x[1].sum()]\nrows.sort()\nreturn rows[0]",
        "sorted in place",
    ),
    (
        "an item by the counter of a loop",
        "total, rows = x[0], list(x)\nfor i in range((x > 0).sum().item()):\n    total = total + rows[i]\nreturn total",
        "takes an item by the loop's counter",
    ),
    (
        "rows without a length that may be none",
        "found = (row.sum() > 0 for row in x if row.dim() > 0)\nif any(found):\n    x = x + 1\nreturn x",
        "may be empty",
    ),
    (
        "an input that is written on one side and bound anew on the other",
        "if x.sum() > 0:\n    x += 1\nelse:\n    x = x - 1\nreturn x",
        "both written in place and bound anew",
    ),
    (
        "memory that is written later under another name",
        "y = x * 1\nif x.sum() > 0:\n    z = y\nelse:\n    z = x * 2\ntry:\n    z += 1\nfinally:\n    pass\nreturn y, z",
        "share memory",
    ),
    (
        "a view that is written later",
        "if x.sum() > 0:\n    y = x\nelse:\n    y = x * 2\nz = y[0]\nz.add_(1)\nself.kept.append(z)\nreturn y",
        "share memory",
    ),
    (
        "an input that a loop may leave as it is, and that is written later",
        "while x.sum() < 5:\n    x = x + 1\ny = x.view(-1)\ny[0] = 3.0\nreturn x",
        "clone it before the loop",
    ),
    (
        "an input that a loop writes and binds anew",
        "while x.sum() < 5:\n    x[0] += 5.0\n    x = x + 1\nreturn x",
        "both writes it in place and binds it anew",
    ),
    (
        "a list that holds what is written later",
        "held = [x]\nif x.sum() > 0:\n    y = x\nelse:\n    y = x + 1\nheld.append(y)\nheld[1].mul_(2)\nreturn held[0]",
        "share memory",
    ),
    (
        "a text in a loop",
        "s = ''\nwhile x.sum() < 5:\n    x = x + 1\n    s = s + 'a'\nreturn x, s",
        "`s` is carried through the loop",
    ),
    (
        "an export of gradients",
        "y = torch.autograd.Variable(x, requires_grad=True)\nreturn y * 2",
        "asks for gradients",
    ),
    (
        "losses of each element that are summed",
        "total = 0.0\nfor row in x:\n    if row.sum() > 0:\n        total += nn.functional.huber_loss(row, x[0], 'none')\nreturn total",
        "`total` may still be the number",
    ),
    (
        "what a while loop appends before it continues",
        "rows = []\ni = 0\nwhile i < 3:\n    if x[i].sum() > 0:\n        rows.append(x[i])\n        i += 1\n        continue\n"
        "    rows.append(-x[i])\n    i += 1\nreturn rows",
        "data would decide how long the list becomes",
    ),
    (
        "a print that writes",
        "if x.sum() > 0:\n    x = x * 2\n    print(x.add_(1))\n    x = x + 1\nreturn x",
        "changes more than it gives",
    ),
    (
        "a branch that takes an item of a list by data",
        "if x.sum() > 4:\n    y = x\nelif [False, True][(x.sum() > 0).long()]:\n    y = x * 2\nelse:\n    y = -x\nreturn y",
        "takes an item of Python's by tensor data",
    ),
    (
        "a branch that may list floats",
        "y = x\nfor _ in range(3):\n    if sum(y[0].tolist()) > 1:\n        break\n    y = y + 1\nreturn y",
        "may list floats",
    ),
    (
        "a loop whose condition takes from a list",
        "parts = [x, x * 2, x * 3]\ny = x\nfor _ in range(3):\n    if parts.pop().sum() > 2:\n        break\n    y = y + 1\nreturn y",
        "changes `parts` outside of the branch",
    ),
    (
        "a loop whose condition takes from an iterator",
        "rest = iter([x, x * 2, x * 3])\ny = x\nfor _ in range(3):\n    if next(rest).sum() > 2:\n        break\n    y = y + 1\nreturn y",
        "takes from `rest` outside of the branch",
    ),
    (
        "a log that changes a list",
        "parts = [x, x * 2]\nif x.sum() > 0:\n    print('large', parts.pop().sum())\n    x = x * 2\nreturn x + parts[-1]",
        "changes more than it gives",
    ),
    (
        "two attributes of one tensor",
        "self.a, self.b = x[0] * 2, x[1] * 2\nif x.sum() > 0:\n    self.a = x[0].clone()\n    self.b = self.a\n    self.b[0] = 5.0\nreturn x + self.a + self.b",
        "two attributes hold one tensor",
    ),
    (
        "a ternary that takes what may be a number",
        "a, b = x[0][0], x[0][1]\nb = b if b > 1.5 else 1.5\na = a if a > b else b\nreturn a",
        "is a tensor on one way and a Python number on another",
    ),
    (
        "a ternary in a branch that compares what may be a number",
        "n = x.size(0)\na, b = x[0][0], x[0][1]\nb = b if b > n / 3 else n / 3\na = a if a > b else b\n"
        "a = a if a < n - b else n - b\nreturn a",
        "is a tensor on one way and a Python number on another",
    ),
    ("deleting", "y = x * 2\nif x.sum() > 0:\n    z = x\n    del z\n    y = y + 1\nreturn y", "deletes"),
    (
        "an item that a plain test keeps from failing, of a list that is gone through",
        "parts, s = [], x.flatten()\nfor t in range(12):\n    if t < 11 and s[t] > 0:\n        parts.append(s[t + 1])\n"
        "y = x.sum()\nfor part in parts:\n    y = y * 0.5 + part\nreturn y",
        "data would decide how long the list becomes",
    ),
    (
        "an item that the test itself names, of a list that is gone through",
        "parts = []\nfor row in x:\n    if (s := row.sum()) > 0:\n        parts.append(s)\n"
        "y = x.sum()\nfor part in parts:\n    y = y * 0.5 + part\nreturn y",
        "data would decide how long the list becomes",
    ),
    (
        "what a loop over a filled list goes through last, read behind it",
        "kept, i = [], 0\nfor n in range(3):\n    if x[n].sum() > 0:\n        kept.append(n)\n"
        "for i in kept:\n    x = x + x[i]\nreturn x * i",
        "data would decide how long the list becomes",
    ),
    (
        "a list that a comprehension filters, gone through, and that grows behind it",
        "kept = [row for row in x if row.sum() > 0]\nkept.append(x[0] * 2)\n"
        "y = x.sum()\nfor row in kept:\n    y = torch.tanh(y * 0.5 + row.sum())\nreturn y",
        "a list has a length while tracing",
    ),
    (
        "a filled list that another name changes",
        "kept = []\nfor n in range(3):\n    if x[n].sum() > 0:\n        kept.append(n)\n"
        "same = kept\nsame.append(0)\nfor i in kept:\n    x = x + x[i]\nreturn x",
        "data would decide how long the list becomes",
    ),
]


@pytest.mark.parametrize(("body", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_with_its_reason(body: str, reason: str) -> None:
    forward = "\n    def forward(self, x: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    text = HEAD + INIT.lstrip("\n") + forward
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


def test_a_class_that_is_handed_layers_of_two_kinds_is_not_rewritten_for_one() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Tried(nn.Module):\n    def __init__(self, layer):\n        super().__init__()\n"
        "        self.layer = layer\n\n    def forward(self, x):\n        y = self.layer(x)\n        for _ in range(3):\n"
        "            if x.max() > 2:\n                break\n            y = self.layer(x)\n            x = x + 1\n        return y\n\n\n"
        "class First(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.tried = Tried({first}(4, 4))\n\n"
        "    def forward(self, x):\n        return self.tried(x)\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.tried = Tried(nn.Linear(4, 4))\n\n"
        "    def forward(self, x):\n        return self.tried(x)\n"
    )
    assert mend(text.format(first="nn.Linear")).text != text.format(first="nn.Linear")
    of_two = mend(text.format(first="nn.LSTM"))
    assert of_two.text == text.format(first="nn.LSTM")
    assert any("it is not known whether `y` is a tensor" in each for each in of_two.refusals)


@pytest.mark.parametrize("loop", ["for _ in range(len(x) - 2):", "while x.sum() < 9:\n            x = x + 1"])
def test_what_may_be_left_out_is_not_carried_through_a_loop_without_rounds(loop: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.cell = nn.GRUCell(4, 4)\n\n    def forward(self, x, h=None):\n"
        f"        {loop}\n            h = self.cell(x, h)\n            if (h > 0.5).any():\n                break\n        return h\n"
    )
    refused = mend(text)
    assert refused.text == text
    assert any("`h` may be None when the loop begins" in each for each in refused.refusals)
    asked = text.replace("        for", "        h = x * 0 if h is None else h\n        for").replace(
        "        while", "        h = x * 0 if h is None else h\n        while"
    )
    assert mend(asked).text != asked


def test_padded_sequences_beside_a_result_of_other_dimensions() -> None:
    text = "import torch\nfrom torch import nn\nfrom torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\n\n\n"
    text += "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.gru = nn.GRU(4, 4, batch_first=True)\n\n    def forward(self, x, lengths):\n"
    text += (
        "        b, t, c = x.size()\n        if lengths.max() > 4:\n            return torch.zeros(b, c)\n"
    )
    text += "        packed = pack_padded_sequence(x.view(b, t, c), lengths, batch_first=True, enforce_sorted=False)\n"
    text += "        out, _ = self.gru(packed)\n"
    text += "        return pad_packed_sequence(out, batch_first=True, total_length=5)[0]\n"
    mended = mend(text)
    reason = "has 2 dimensions on one side of the branch and 3 on the other"
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert "torch.cond" not in mended.text


def test_what_is_selected_beside_one_number() -> None:
    forward = "\n    def forward(self, x):\n        v = x[x > 0]\n        if v.numel() == 0:\n            return {}\n        return v.mean()\n"
    left = mend(HEAD + INIT.lstrip("\n") + forward.format("v * 0.0"))
    assert "torch.cond" not in left.text
    assert any("no dimensions on one side of the branch" in each for each in left.refusals), left.refusals
    assert "torch.cond" in mend(HEAD + INIT.lstrip("\n") + forward.format("v.sum() * 0.0")).text


def test_the_rest_of_a_float_that_may_be_a_tensors_is_not_kept_as_a_symbol() -> None:
    forward = "\n    def forward(self, x, gate):\n        return x * (float(gate) {} 5)\n"
    assert "as_tensor(gate)" in mend(HEAD + INIT.lstrip("\n") + forward.format("/")).text
    left = mend(HEAD + INIT.lstrip("\n") + forward.format("%"))
    assert "as_tensor" not in left.text
    assert any("Say by an annotation" in each for each in left.refusals), left.refusals


def test_what_a_branch_writes_of_the_model_under_names_of_its_own_is_not_lost() -> None:
    body = (
        "if x.sum() > 0:\n    for each in self.linear.parameters():\n        each.{}\nreturn self.linear(x)"
    )
    for written in ("data.mul_(2)", "data.copy_(each.data * 2)", "mul_(2)"):
        forward = "\n    def forward(self, x: torch.Tensor):\n" + textwrap.indent(
            body.format(written), "        "
        )
        mended = mend(HEAD + INIT.lstrip("\n") + forward + "\n")
        assert "each.detach().copy_(torch.cond(asked, if_true, if_false, ()))" in mended.text
        assert not mended.refusals


@pytest.mark.parametrize(
    ("first", "leads"),
    [
        (
            "sign = 1.0\n        if x.sum() > 0:\n            x = -x\n            sign = -1.0\n        ",
            "which it leads to",
        ),
        ("", "`halved` calls itself"),
    ],
    ids=["what moves behind a branch", "itself"],
)
def test_a_function_that_calls_itself_is_not_written_out_and_leads_to_all_of_it(
    first: str, leads: str
) -> None:
    text = HEAD + (
        "    def halved(self, x: torch.Tensor, depth: int):\n        if x.abs().max() < 1:\n            return x, None\n"
        "        if x.mean() > depth:\n            return self.halved(x / 2, depth)\n"
        "        return self.halved(x / 4, depth + 1)\n\n    def forward(self, x: torch.Tensor):\n"
        f"        {first}y, none = self.halved(x, 2)\n        return y * {'round(sign)' if first else '2'}, x.shape[0 if none is None else 1]\n"
    )
    mended = mend(text)
    assert mended.text == text, mended.text
    assert any(leads in each for each in mended.refusals), mended.refusals


def test_a_function_that_calls_itself_for_what_another_function_gives() -> None:
    """What a function that is handed in gives is data, whether that can be seen or not."""
    text = HEAD.partition("class M")[0] + (
        "def rising(function, target: torch.Tensor, low, high):\n    low, high = map(torch.as_tensor, (low, high))\n"
        "    if (function(low) > function(high)).all():\n        opposite = lambda x: -function(x)\n"
        "        return rising(opposite, -target, low, high)\n    return torch.where(function(low) < target, high, low)\n\n\n"
        "class M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
        "        return rising(torch.sqrt, x, x.min(), x.max())\n"
    )
    mended = mend(text)
    assert mended.text == text, mended.text
    assert any("`rising` calls itself" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    ("nothing", "told", "reason"),
    [
        ("{}", "{'loss': loss.item()}", "returns nothing in a list or dict"),
        ("[]", "[loss, loss * 2]", "returns nothing in a list or dict"),
        ("dict()", "dict(loss=loss)", "returns nothing in a list or dict"),
        ("{'loss': x.sum()}", "{'loss': x.mean(), 'rows': loss}", "'rows' on one side of the branch alone"),
        ("{'loss': 0}", "{'loss': mask.sum().item()}", "holds Python numbers"),
        ("(0.5, x.sum())", "(loss.item(), x.mean())", "holds Python numbers"),
    ],
)
def test_what_is_told_besides_a_result(nothing: str, told: str, reason: str) -> None:
    text = HEAD + (
        "    def told(self, x: torch.Tensor, mask):\n        if mask.sum() == 0:\n"
        f"            return x.sum(), {nothing}\n        loss = x.exp().mean()\n        told = {told}\n        return loss, told\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self.told(x, x > 0)\n"
    )
    mended = mend(text)
    assert "torch.cond" not in mended.text, mended.text
    assert any(reason in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize("bound", ["x.shape[0] - 5", "width"])
def test_a_size_less_another_may_count_from_the_end(bound: str) -> None:
    body = f"width = x.shape[0] - 5\ny = torch.zeros(3, 4)\ny[:, n : {bound}] = 1\nreturn x + y"
    text = HEAD + "    def forward(self, x, n: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    mended = mend(text)
    assert mended.text == text
    assert any("not below zero" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize("printed", ["", "\n    print(x)"])
@pytest.mark.parametrize("switch", ["with torch.no_grad():", "if True:"])
def test_a_branch_in_a_branch_is_refused_where_gradients_are_switched_off(switch: str, printed: str) -> None:
    inner = f"x[0] = 1\nif x.sum() > 0:\n    x = x + 1{printed}\nelif x.sum() < -5:\n    x = x - 1"
    body = f"x = x * 2\n{switch}\n" + textwrap.indent(inner, "    ") + "\nreturn x"
    forward = "    def forward(self, x: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    mended = mend(HEAD + forward)
    assert ("if x.sum() > 0:" in mended.text) is switch.startswith("with")
    assert any("under `no_grad`" in each for each in mended.refusals) is switch.startswith("with")


def test_what_requires_gradients_is_not_filled_in_place() -> None:
    line = "return x * torch.full_like(x, x.sum(), requires_grad=True)"
    assert ".fill_(" not in mend(f"{HEAD}    def forward(self, x):\n        {line}\n").text


def test_items_of_an_argument_that_is_a_dict() -> None:
    """A copy of a dict is none of its tensors."""
    body = 'parts.update(half=x / 2)\nif x.sum() > 0:\n    parts["whole"] = parts["whole"] * 2\nreturn parts'
    text = HEAD + textwrap.indent(f"def forward(self, x, parts):\n{textwrap.indent(body, '    ')}\n", "    ")
    mended = mend(text)
    assert any("no tensor as far as is known" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_an_index_in_an_arm_that_may_be_one_number_or_a_mask() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += "    def forward(self, x: torch.Tensor, rows: torch.Tensor):\n        total = x.sum()\n        for each in rows:\n"
    text += "            if total > 0:\n                total = total + x[each].sum()\n        return total\n"
    mended = mend(text)
    assert any("is one number or a mask" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    ("index", "lines"),
    [
        ("c = labels[i]", "y[:, c] = x.sum(1) * i"),
        ("c = labels.kthvalue(2).values", "y[:, c] = x.sum(1) * i"),
        ("c = labels.max(dim=0).values", "y = y + x[c]"),
    ],
)
def test_an_index_in_a_loop_that_may_be_one_number(index: str, lines: str) -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += "    def forward(self, x: torch.Tensor, labels: torch.Tensor):\n        y, i = x.clone(), 0\n"
    text += f"        while i < 3 and y.sum() < 5:\n            {index}\n            if y.sum() > -5:\n                {lines}\n"
    text += "            i += 1\n        return y\n"
    mended = mend(text)
    assert any("one number" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_a_row_that_is_written_behind_slices_at_a_point() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += "    def forward(self, x: torch.Tensor, click):\n        y = torch.zeros_like(x)\n"
    text += "        y[:, click[0]] = x.mean(0)\n        return y\n"
    mended = mend(text)
    assert any("not certain that the index in" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    "lines",
    [
        ["return y.exp() if x.mean() > 0 else y"],
        ["if x.mean() > 0:", "    y = y.exp()", "return y"],
        ["if x.mean() > 0:", "    return y.exp()", "return y"],
    ],
    ids=["ternary", "assignment", "return"],
)
@pytest.mark.parametrize("picked", ["x[:, : n.item()]", "x[..., :n]", "x[:, (x[0] > n).nonzero().flatten()]"])
def test_a_result_with_a_size_from_data_behind_the_first(lines: list[str], picked: str) -> None:
    body = "".join(f"        {line}\n" for line in [f"y = {picked}", *lines])
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += f"    def forward(self, x: torch.Tensor, n: torch.Tensor):\n{body}"
    mended = mend(text)
    assert any("has a size from data behind its first" in refusal for refusal in mended.refusals), (
        mended.refusals
    )
    assert mended.text == text


def test_layers_on_what_has_a_size_from_data_behind_the_first() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.head = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4))\n\n    def forward(self, x: torch.Tensor):\n"
    text += "        y = x.unsqueeze(0).expand(2, -1, -1)[:, x[:, 0] > 0]\n        if x.mean() > 0:\n"
    text += "            return self.head(self.head(y[:, 1:]))\n        return self.head(y)\n"
    mended = mend(text)
    assert any("has a size from data behind its first" in refusal for refusal in mended.refusals), (
        mended.refusals
    )
    assert mended.text == text


@pytest.mark.parametrize(
    ("number", "arm"),
    [
        ("x.shape[0] - 4", "y[-n:]"),
        ("int(x.sum())", "y[-n:]"),
        ("len(y)", "y[-n - 1:]"),
        ("len(y)", "y[:-n]"),
    ],
)
def test_what_the_last_rows_of_a_number_are_that_may_be_below_zero(number: str, arm: str) -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    text += f"        y = x[x[:, 0] > 0]\n        n = {number}\n        if n > 0:\n            y = {arm}\n        return y.sum(0)\n"
    assert "if n > 0" in mend(text).text or "cond" in mend(text).text


def test_a_method_in_place_at_places_from_data_that_is_no_assignment() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += (
        "        self.head = nn.Linear(4, 4)\n\n    def forward(self, x: torch.Tensor, n: torch.Tensor):\n"
    )
    text += "        y = self.head(x) * 2\n        count = n.item()\n        y[:count].clamp_(0, 1)\n        return y\n"
    mended = mend(text)
    assert any("`clamp_` with these arguments is no assignment" in refusal for refusal in mended.refusals), (
        mended.refusals
    )
    assert mended.text == text


_QUANTIZED = "torch.fake_quantize_per_tensor_affine({}, {}, 0, -128, 127)"


@pytest.mark.parametrize(
    "lines, reason",
    [
        (
            ["while x.max() > 1:", f"    x = {_QUANTIZED.format('x * 0.5', '0.1')}", "return x"],
            "takes in no operator of control flow",
        ),
        (
            [
                "peak = x.max().item()",
                "if peak == 0.0:",
                "    return x",
                f"return {_QUANTIZED.format('x', 'peak')}",
            ],
            "only fits where the branch is taken",
        ),
    ],
    ids=["loop", "a number from data"],
)
def test_operators_that_arms_and_loops_do_not_take(lines: list[str], reason: str) -> None:
    body = "".join(f"        {line}\n" for line in lines)
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += f"    def forward(self, x: torch.Tensor):\n{body}"
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("row[token] = row[token - 1]", "takes more of `row`"),
        ("row[token] = x[token]", "other cells"),
        ("row[token] *= weight", "is one number"),
        ("row[token] = row.max()", "takes more of `row`"),
        ("row[token] = torch.tanh(row[token])", "is not followed"),
        ("row[token] += 1\n    count = token", "binds `count`"),
        ("if self.training:\n        row[token] += 1", "asks nothing of the cell"),
        ("row[token : token + 1] += 1", "changes no cell"),
    ],
)
def test_loops_over_a_set_that_do_more_than_to_change_one_cell(body: str, reason: str) -> None:
    text = HEAD + textwrap.indent(
        "def forward(self, x: torch.Tensor, weight: torch.Tensor):\n    row = x[0] * 2\n"
        f"    for token in set(x.long().flatten().tolist()):\n{textwrap.indent('    ' + body, '    ')}\n    return row\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert "set(x.long().flatten().tolist())" in mended.text


@pytest.mark.parametrize(
    "change",
    ["rows = rows[:1]", "rows = [row for row in rows if row.ndim]", "rows = rows + rows"],
    ids=["a part", "filtered", "longer"],
)
@pytest.mark.parametrize("behind", ["y = x + 1\nreturn y, rows", "return rows"])
def test_lists_of_other_lengths_that_a_branch_would_give(change: str, behind: str) -> None:
    body = f"rows = []\nfor row in x:\n    rows.append(row * 2)\nif x.sum() > 0:\n    {change}\n{behind}\n"
    text = HEAD + f"    def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '        ')}"
    mended = mend(text)
    assert any("more items on one side" in refusal for refusal in mended.refusals), mended.refusals
    assert "torch.cond" not in mended.text


def test_a_float_of_calls_in_a_branch_inside_of_a_branch_that_may_be_something_else_stays() -> None:
    helper = "def band(x, low=-1.0):\n    if x.sum() < -9:\n        return x\n    if x.sum() < 0:\n        return x * low\n    return x * 0\n"
    forward = "\n    def forward(self, x: torch.Tensor, by):\n        return band(x) + band(x, -3.0) + band(x, {})\n"
    text = HEAD.replace("class M", helper + "\n\nclass M") + INIT.lstrip("\n")
    refused = mend(text + forward.format("by"))
    assert any("a branch inside of a branch reads the float `low`" in each for each in refused.refusals), (
        refused.refusals
    )
    assert "low_held" in mend(text + forward.format("-2.0")).text


def test_an_item_of_a_list_that_an_option_sets_is_not_picked_in_an_arm() -> None:
    text = HEAD + textwrap.indent(
        "def __init__(self, rates):\n    super().__init__()\n    self.rates = rates\n"
        "    if not isinstance(rates, list):\n        self.rates = [rates] * 4\n\n"
        "def forward(self, x: torch.Tensor):\n    if x.sum() > 0:\n        k = x[0, 0].long()\n        x = x * self.rates[k]\n    return x\n",
        "    ",
    )
    mended = mend(text)
    assert mended.text == text
    assert any("takes an item of Python's by tensor data" in each for each in mended.refusals), (
        mended.refusals
    )


_MADE = (
    "from dataclasses import dataclass\n\nimport torch\nfrom torch import nn\n\n\n@dataclass\nclass Out:\n    y: torch.Tensor\n"
    "    best: torch.Tensor = None\n{}\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layer = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\n\n"
    "    def keep(self, out):\n        self.kept = out.best\n\n"
    "    def forward(self, x: torch.Tensor):\n        out = Out(x)\n        if x.mean() > 0:\n            y = self.layer(x)\n"
    "        else:\n            y = self.layer(x * 2) + 1\n        out.best = y\n        {}\n"
)


@pytest.mark.parametrize(
    ("more", "rest"),
    [
        ("\n    def __post_init__(self):\n        self.best = self.y * 2\n", "return out"),
        ("", "return (lambda: out)()"),
    ],
    ids=["made twice", "in a lambda"],
)
def test_attributes_of_an_object_that_others_may_see_are_not_kept_in_locals(more: str, rest: str) -> None:
    mended = mend(_MADE.format(more, rest))
    assert "out.best = y\n" in mended.text
    assert "torch.cond" not in mended.text
    assert any("strict tracing loses" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    ("more", "rest"),
    [
        ("", "self.keep(out)\n        return out"),
        ("\n    def top(self):\n        return self.best.max()\n", "y = out.top()\n        return out, y"),
        ("", "return out, [out]"),
        ("", "each = out\n        return each"),
    ],
    ids=["handed on", "read by a method", "given back twice", "another name"],
)
def test_an_object_that_others_see_later_is_made_behind_the_branch(more: str, rest: str) -> None:
    mended = mend(_MADE.format(more, rest))
    before, _, after = mended.text.partition("torch.cond(")
    assert "= Out(" in after
    assert "= Out(" not in before
    assert not mended.refusals


@pytest.mark.parametrize(
    ("begin", "rest", "reason"),
    [
        (
            '{"a": torch.zeros(4), "b": torch.zeros(4)}',
            'self.state = {"a": x.mean(0)}',
            "not bound to the same parts",
        ),
        (
            '{"a": torch.zeros(4), "b": torch.zeros(4)}',
            'kept = self.state\nself.state = {"a": x.mean(0) + kept["b"], "b": x.std(0)}',
            "reads `self.state` as a whole",
        ),
        (
            '{"a": torch.zeros(4), "b": torch.zeros(4)}',
            'y = self.state[name]\nself.state = {"a": x.mean(0) + y, "b": x.std(0)}',
            "as a whole",
        ),
    ],
    ids=["other keys", "another name", "a key that is computed"],
)
def test_state_that_is_used_as_a_whole_is_not_taken_apart(begin: str, rest: str, reason: str) -> None:
    body = textwrap.indent(f"y = x + self.state['a']\n{rest}\nreturn y", " " * 8)
    text = (
        HEAD
        + f"{INIT.lstrip(chr(10))}        self.state = {begin}\n\n    def forward(self, x: torch.Tensor, name: str = 'a'):\n{body}\n"
    )
    mended = mend(text)
    assert f"self.state = {begin}" in mended.text
    assert any(reason in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    "body",
    [
        "for t in range(n.item()):\n    h = torch.tanh(h + x[t + 1])\n    outs.append(h)",
        "for t in range(n.item()):\n    h = torch.tanh(h + x[t])\n    outs.append(h)\n    h = h + outs[-1]",
        "for t in range(n.item()):\n    h = self.norm(x[t] + h)\n    outs.append(h)",
        "for t in range(n.item()):\n    h = h / (3 - t) + x[t]\n    outs.append(h)",
        "for t in range(-1, n.item()):\n    h = h + x[t]\n    outs.append(h)",
        "for t in range(n.item()):\n    h = h + (x[t] if t < 2 else 1)\n    outs.append(h)",
        "for t in range(n.item()):\n    h = torch.cat([h, x[t]])\n    outs.append(h)",
        "for t in range(n.item()):\n    x = x * 2\n    h = h + x[t]\n    outs.append(h)",
        "for t in range(n.item()):\n    x[t] += 1\n    h = h + x[t]\n    outs.append(h)",
    ],
    ids=[
        "next row",
        "read list",
        "statistics",
        "divided",
        "from the end",
        "by chance",
        "grows",
        "bound",
        "written",
    ],
)
def test_rounds_that_may_do_more_are_not_run_beyond_what_data_says(body: str) -> None:
    init = f"{INIT.lstrip(chr(10))}        self.norm = nn.BatchNorm1d(4)\n\n    def forward(self, x, n):\n"
    rest = f"h = torch.zeros(4)\nouts = []\n{body}\nreturn torch.stack(outs), h\n"
    mended = mend(HEAD + init + textwrap.indent(rest, " " * 8))
    assert "run = t <" not in mended.text


@pytest.mark.parametrize(
    "rest",
    [
        "path = [first]\nfor ptr in reversed(back):\n    last = ptr[last]\n    path.append(last)\npath.reverse()",
        "path = [last]\nfor ptr in reversed(back):\n    last = ptr[last]\n    path.append(last)",
        "path = [last]\nlast = last * 0\nfor ptr in reversed(back):\n    last = ptr[last]\n    path.append(last)\npath.reverse()",
        "path = [last]\nfor ptr in reversed(back):\n    last = ptr[last]\n    path.append(last + 1)\npath.reverse()",
    ],
    ids=["another item", "never turned", "bound between", "not what is handed on"],
)
def test_lists_in_which_idle_rounds_would_stand_between_others(rest: str) -> None:
    init = f"{INIT.lstrip(chr(10))}\n    def forward(self, x, n):\n"
    body = "score = x[0] * 1\nback = []\nfor t in range(1, n.item()):\n    best, ptr = (score[:, None] + x[t]).max(0)\n"
    body += f"    score = best + 1\n    back.append(ptr)\nfirst, last = score.argmin(), score.argmax()\n{rest}\nreturn torch.stack(path)\n"
    mended = mend(HEAD + init + textwrap.indent(body, " " * 8))
    assert "run = t <" not in mended.text


@pytest.mark.parametrize(
    ("method", "arm", "why"),
    [
        (
            "def spread(self):\n    return self.mean * 2",
            "self.mean.mul_(0.5)\nx = x * self.spread()",
            "`self.spread` reads `self.mean`",
        ),
        (
            "@property\ndef spread(self):\n    return self.mean * 2",
            "self.mean.mul_(0.5)\nx = x * self.spread",
            "`self.spread` reads `self.mean`",
        ),
        (
            "def decay(self):\n    if self.training:\n        return 1.0\n    self.mean.mul_(0.5)\n    return 3.0",
            "x = x * self.decay()",
            "`self.decay` writes `self.mean`",
        ),
    ],
    ids=["method", "property", "writing method"],
)
def test_what_methods_of_a_base_class_read_or_write_where_an_arm_writes_a_copy(
    method: str, arm: str, why: str
) -> None:
    base = "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    base += '        self.register_buffer("mean", torch.ones(4))\n\n' + textwrap.indent(method, "    ")
    forward = f"def forward(self, x):\n    if x.sum() > 0:\n{textwrap.indent(arm, ' ' * 8)}\n    return x, self.mean.clone()\n"
    head = "import torch\nfrom torch import nn\n\n\n"
    mended = mend(f"{head}{base}\n\n\nclass M(Base):\n{textwrap.indent(forward, '    ')}")
    assert "torch.cond" not in mended.text
    assert any(why in each for each in mended.refusals)


@pytest.mark.parametrize(
    "other",
    [
        "class Other(Base):\n    def forward(self, x):\n        return x * self.steps\n",
        "class Other(M):\n    def __init__(self):\n        super().__init__()\n        self.steps = 5\n",
    ],
    ids=["another heir reads it", "an heir begins it anew"],
)
def test_numbers_of_a_base_class_that_others_use(other: str) -> None:
    text = """import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0


class M(Base):
    def forward(self, x):
        self.steps += 1
        return x * self.steps


"""
    mended = mend(text + other)
    assert "register_buffer" not in mended.text
    assert any("`Other` uses `self.steps` as well" in each for each in mended.refusals)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("1.0", "not known to be a tensor before and after"),
        ('"mean"', "not known to be a tensor before and after"),
    ],
)
def test_attributes_that_a_class_begins_with_no_tensor(first: str, reason: str) -> None:
    """The arm that does not set it would clone what is no tensor."""
    text = f"""import torch
from torch import nn


class M(nn.Module):
    scale = {first}

    def forward(self, x):
        if x.sum() > 0:
            self.scale = x.mean()
        return x if self.scale is None else x * self.scale
"""
    mended = mend(text)
    assert "torch.cond" not in mended.text
    assert any(reason in each for each in mended.refusals)


def test_numbers_of_rounds_that_a_function_decides_by() -> None:
    """The loop's counter is a number from data in a while_loop, and a function that gets it asks for what no branch can do."""
    text = """import torch


class M(torch.nn.Module):
    def place(self, x, round):
        scale = {0: 1.0, 1: 0.5}.get(round, 0.25)
        return x * scale

    def forward(self, x, n):
        for round in range(int(n)):
            x = self.place(x, round)
        return x
"""
    mended = mend(text)
    assert "while_loop" not in mended.text
    assert any("`place`, which the loop hands a number" in each for each in mended.refusals)


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (
            "for row in rows:\n            x = x + self.layers[str(int(row))](x)",
            "cannot be traced either and has no fix",
        ),
        (
            "for i in range(2):\n            while x.norm() > 1:\n                x = self.layer(i, x) * 0.1",
            "makes text of `i`",
        ),
    ],
)
def test_text_of_numbers_in_a_while_loop(loop: str, reason: str) -> None:
    """Of a number from data, and of one that is a symbol in the loop, torch makes no text."""
    text = f"""import torch


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleDict({{str(i): torch.nn.Linear(3, 3) for i in range(2)}})

    def layer(self, i, x):
        return self.layers[f"{{i}}"](x)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        rows = mask.nonzero().flatten()
        {loop}
        return x
"""
    mended = mend(text)
    assert "while_loop" not in mended.text
    assert any(reason in each for each in mended.refusals)
