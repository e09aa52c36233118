"""Refused rewrites for what calls a function, and for what it calls."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from exportlens.checking import check_files
from exportlens.finding import Fix

from tests.rewriting.bodies import HEAD, INIT
from tests.rewriting.fixing_all import mend


def test_rounds_of_what_an_arm_calls_over_steps_that_data_counts() -> None:
    text = "import torch\nfrom torch import nn\n\n\ndef walk(y, t):\n    for k in range(1, len(t)):\n"
    text += "        y = y + t[k] - t[k - 1]\n    return y\n\n\nclass M(nn.Module):\n    def forward(self, x, by):\n"
    text += "        if x.sum() > 0:\n            n = max(2, x.sum().int())\n            x = walk(x, torch.arange(n) * by)\n        return x\n"
    mended = mend(text)
    reason = "`for k in range(1, len(t))` has as many rounds as data says"
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_a_list_of_modules_that_a_loop_over_what_is_found_takes_itself_from() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Experts(nn.ModuleList):\n    def forward(self, k, x):\n"
    text += "        out = torch.zeros_like(x)\n        for i in k.unique():\n"
    text += "            out = torch.where((k == i).unsqueeze(1), self[i](x), out)\n        return out\n\n\nclass M(nn.Module):\n"
    text += "    def __init__(self):\n        super().__init__()\n        self.experts = Experts([nn.Linear(4, 4), nn.Linear(4, 4)])\n\n"
    text += "    def forward(self, k, x):\n        return self.experts(k, x)\n"
    mended = mend(text)
    assert any("`self[i]` takes an item of Python's" in each for each in mended.refusals), mended.refusals
    assert mended.text == text


SUPER = """import torch
from torch import distributions, nn


class OneHot(distributions.OneHotCategorical):
    def mode(self):
        return {} * 2


class M(nn.Module):
    def most_likely(self, x):
        return distributions.Independent(OneHot(logits=x, validate_args=False), 1).mode()

    def forward(self, x):
        if x.sum() > 0:
            x = self.most_likely(x)
        return x
"""


def test_a_property_that_an_arm_comes_to_by_super() -> None:
    """Dynamo gives the property object itself (measured on torch 2.13)."""
    mended = mend(SUPER.format("super().logits"))
    assert any("reads the property `super().logits`" in each for each in mended.refusals), mended.refusals
    assert "torch.cond" not in mended.text
    assert "torch.cond" in mend(SUPER.format("self.logits")).text


CALLERS = [
    "def pick(x: torch.Tensor) -> torch.Tensor:\n    if x.sum() > 0:\n        return x\n    return x * 2\n\n\n"
    "class M(nn.Module):\n    def forward(self, x: torch.Tensor):\n        y = pick(x)\n        y[0] = 1.0\n"
    "        return y\n",
    "class Block(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x if x.sum() > 0 else x + 1\n\n\n"
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.blocks = nn.ModuleList([Block(), Block()])\n\n    def forward(self, x: torch.Tensor):\n"
    "        for block in self.blocks:\n            x = block(x)\n        x += 1\n        return x\n",
]


def test_a_number_of_which_a_caller_asks_whether_it_is_one_stays() -> None:
    text = HEAD + (
        "    @torch.no_grad()\n    def part(self, x, m):\n        return x[m].mean() if m.any() else 0.0\n\n"
        "    def forward(self, x, m):\n        loss = self.part(x, m)\n"
        "        return x if type(loss) is float else x * loss\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any("a Python number on another" in each for each in mended.refusals), mended.refusals


def test_a_branch_that_leads_to_what_cannot_be_traced_stays() -> None:
    """In eager mode, too, torch.cond traces what its functions call: the mended code would no longer run."""
    helper = "def helper(x: torch.Tensor):\n    if x.sum() > 1:\n        return None\n    return x\n\n\n"
    body = "if x.mean() > 0:\n    z, _ = [helper(x) for _ in range(2)]\n    x = x + 1 if z is None else z\nreturn x"
    forward = "    def forward(self, x: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    text = HEAD.replace("class M", helper + "class M") + forward
    mended = mend(text)
    assert mended.text == text
    assert any("line 6 of model.py, which it leads to" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize("text", CALLERS)
def test_what_a_caller_writes_in_place_is_not_given_memory_of_its_own(text: str) -> None:
    mended = mend("import torch\nfrom torch import nn\n\n\n" + text)
    assert any("a caller writes it in place" in each for each in mended.refusals), mended.refusals


def test_what_a_caller_in_another_file_writes_in_place_is_not_given_memory_of_its_own(tmp_path: Path) -> None:
    head = "import torch\nfrom torch import nn\n\n\n"
    block = "class {}(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x if x.sum() > 0 else x + 1\n\n\n"
    (tmp_path / "parts.py").write_text(
        head + CALLERS[0].partition("class M")[0] + block.format("Block") + block.format("Fine")
    )
    (tmp_path / "model.py").write_text(
        head.replace("nn\n\n", "nn\n\nfrom parts import Block, Fine\nfrom parts import pick as choose\n\n")
        + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.block = Block()\n        self.fine = Fine()\n\n    def forward(self, x: torch.Tensor):\n"
        "        y = choose(x)\n        y[0] = 1.0\n        y = self.block(y)\n        y += 1\n        return self.fine(y)\n"
    )
    for files in ([tmp_path / "parts.py"], sorted(tmp_path.glob("*.py"))):
        findings = check_files(files, {}).findings
        refused = [any("a caller writes it in place" in note for note in each.notes) for each in findings]
        # `pick` is no entry point, it is only found from the model.
        assert refused == [True, True, False][3 - len(findings) :]
        assert len(findings) == len(files) + 1
        assert findings[-1].fix is not None


def test_what_a_submodule_computes_is_not_asked_twice() -> None:
    text = (
        HEAD
        + """    def __init__(self):
        super().__init__()
        self.block = nn.Module()
        self.block.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        if (self.block.norm(x) > 1).any():
            print("large")
            x = x.clamp(-1, 1)
        return x
"""
    )
    mended = mend(text).text
    assert mended.count("self.block.norm(x)") == 1
    assert "if not torch.compiler.is_compiling():\n                print(" in mended


@pytest.mark.parametrize(("other", "bounded"), [("3", False), ("", True)])
def test_a_bound_that_another_call_may_give_as_a_number_is_not_read(other: str, bounded: bool) -> None:
    body = "y = put(torch.zeros(6), n, x)\nreturn y" + (
        f" + put(torch.zeros(6), {other}, x)" if other else ""
    )
    put = "def put(y, n, x):\n    y[:n] = x[:n]\n    return y\n\n\nclass M"
    text = HEAD.replace("class M", put) + "    def forward(self, x, n: torch.Tensor):\n"
    mended = mend(text + textwrap.indent(body, "        ") + "\n")
    assert ("y[:n.item()] = x[:n.item()]" in mended.text) is bounded
    assert any("to be a tensor each time" in each for each in mended.refusals) is not bounded


WRAPPER = """import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, module, name="weight"):
        super().__init__()
        self.module = module
        self.name = name
        self.share = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        weight = getattr(self.module, self.name)
        weight.data = weight.data * self.share.data
        return self.module(x)
"""


WRAPPED = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Scaled(nn.Linear(4, 4))

    def forward(self, x):
        return self.layer(x)
"""


def test_data_is_not_rewritten_in_part() -> None:
    mended = mend(WRAPPER)
    assert mended.text == WRAPPER
    assert any("`weight.data` is assigned here, too" in each for each in mended.refusals), mended.refusals
    text = mend(WRAPPER + WRAPPED).text
    assert "weight.detach().copy_(weight.detach() * self.share.detach())" in text


def test_a_fix_says_that_it_leaves_out_what_is_printed(tmp_path: Path) -> None:
    body = "if x.sum() > 0:\n    x = x * 2\n    print(x.sum())\nreturn x"
    forward = "    def forward(self, x: torch.Tensor):\n" + textwrap.indent(body, "        ") + "\n"
    (tmp_path / "model.py").write_text(HEAD + forward)
    (found,) = (each for each in check_files([tmp_path / "model.py"], {}).findings if each.fix is not None)
    assert isinstance(found.fix, Fix)
    assert "printed or logged in it is left out" in found.fix.message


SCRIPTED = """import torch
from torch import nn


@torch.jit.script
def doubled(x):
    if x.sum() > 0:
        return x * 2
    return x


class M(nn.Module):
    def forward(self, x):
        return doubled(x)
"""


def test_a_scripted_function_gets_no_functions_of_its_own() -> None:
    mended = mend(SCRIPTED)
    assert mended.text == SCRIPTED
    assert any("without `@torch.jit.script`" in each for each in mended.refusals), mended.refusals
    plain = SCRIPTED.replace("@torch.jit.script\n", "")
    assert "torch.cond" in mend(plain).text
    by_call = plain.replace("class M", "doubled = torch.jit.script(doubled)\n\n\nclass M")
    assert mend(by_call).text == by_call


@pytest.mark.parametrize(
    "text",
    [
        "class M(nn.Module):\n    def step(self, x):\n        return x + 1\n\n{forward}\n\n"
        "class Middle(M):\n    pass\n\n\nclass Last(Middle):\n    def step(self, x):\n        return x\n",
        "def step(x):\n    return x + 1\n\n\nclass M(nn.Module):\n{forward}",
    ],
    ids=["a method that a class further below has anew", "a function whose name is a variable here"],
)
def test_what_is_called_may_be_another(text: str) -> None:
    local = "class M(nn.Module):\n{" in text
    lines = ["step = [lambda v: v, 2][0]", "h = step(x)"] if local else ["h = self.step(x)"]
    lines += ["if x.sum() > 0:", "    h[0] = 1", "return h + 1"]
    forward = "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in lines)
    mended = mend("import torch\nfrom torch import nn\n\n\n" + text.format(forward=forward))
    # It may be the input, which is written to then.
    assert "h.copy_(torch.cond(" in mended.text


EARLY_EXIT = """import torch
from torch import nn


class Left(Exception):
    def __init__(self, logits):
        self.logits = logits


class Layers(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() < 1:
            raise Left(y)
        return y + 1


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = Layers()

    def forward(self, x):
        try:
            return self.layers(x)
        except {caught} as left:
            {then}
"""


@pytest.mark.parametrize(
    ("caught", "then", "checked"),
    [
        ("Left", "return left.logits", False),
        ("Exception", "return x", False),
        ("Left", "raise ValueError('left') from left", True),
        ("KeyError", "return x", True),
    ],
)
def test_an_error_that_a_caller_catches_is_no_check(caught: str, then: str, checked: bool) -> None:
    assert ("torch._assert_async(" in mend(EARLY_EXIT.format(caught=caught, then=then)).text) is checked


def test_functions_of_numbers_in_arms() -> None:
    """In an arm `math.isclose` of a number from data raises in eager mode, too: torch compiles what torch.cond runs."""
    body = "y = x\nfor _ in range(3):\n    if math.isclose(y.sum().item(), 1.5):\n        break\n    y = y + 1\nreturn y"
    text = f"import math\n\n{HEAD}" + textwrap.indent(
        f"def forward(self, x):\n{textwrap.indent(body, '    ')}\n", "    "
    )
    mended = mend(text)
    assert any("which torch traces in no arm" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_what_a_caller_unpacks_is_not_none_on_one_way() -> None:
    """Written out there, torch.cond would trace the way on which nothing is returned, and on which Python fails."""
    text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def pick(self, x):\n"
    text += "        if x.max() > 0.5:\n            return 'high', x * 2\n        x = x + 1\n        if x.max() < 100:\n            return 'low', x\n\n"
    text += "    def forward(self, x: torch.Tensor):\n        _, y = self.pick(x)\n        return y\n"
    mended = mend(text)
    assert mended.text == text
    assert any("another returns none" in each for each in mended.refusals), mended.refusals


AGAIN = """

    def walk(self, x, depth: int):
        {walk}

    def other(self, x, depth: int):
        return self.walk(x * 0.25, depth - 1)

    def forward(self, x):
        return self.walk(self.linear(x), 3)
"""


@pytest.mark.parametrize(
    "walk",
    [
        "if x.norm() > 1:\n            return self.walk(x * 0.5, depth)\n        return x + 1",
        "if x.numel() == 0:\n            return x\n        if x.norm() > 1:\n            return self.walk(x * 0.5, depth)\n"
        "        return x + 1",
        "if depth == 0:\n            return x\n        if x.norm() > 1:\n            return self.walk(x * 0.5, depth)\n"
        "        return x + 1",
        "return self.walk(x * 0.5, depth) if x.norm() > 1 else x + 1",
        "if x.norm() > 1:\n            return self.other(x, depth)\n        return x + 1",
    ],
    ids=["data", "a size that stays", "a number that stays", "a ternary", "another function"],
)
def test_a_function_that_calls_itself_until_data_ends_it(walk: str) -> None:
    """Measured on torch 2.13: torch.cond is traced until Python's own limit, and eager raises RecursionError."""
    text = HEAD + INIT.lstrip("\n") + AGAIN.format(walk=walk)[1:]
    mended = mend(text)
    assert mended.text == text
    assert any("`walk` calls itself" in each for each in mended.refusals), mended.refusals


def test_a_function_that_calls_itself_and_gives_numbers_beside_views() -> None:
    walk = "if depth == 0:\n            return self.linear.weight[0], depth\n        if x.sum() > 0:\n"
    walk += "            return self.walk(x, depth - 1)\n        return self.walk(x + 1, depth - 1)"
    text = HEAD + INIT.lstrip("\n") + AGAIN.format(walk=walk)[1:]
    mended = mend(text)
    assert "torch.cond" not in mended.text
    assert mended.refusals


@pytest.mark.parametrize("grows", [True, False], ids=["sizes", "no sizes"])
def test_rounds_of_stages_that_give_other_shapes_where_no_function_can_stand_for_them(grows: bool) -> None:
    """Measured on torch 2.13: torch.cond raises in eager that its arms give other dimensions, or sizes."""
    parts = "nn.Linear(4, 8), nn.Linear(8, 4)" if grows else "nn.Linear(4, 4, bias=False), nn.Linear(4, 4)"
    text = (
        HEAD
        + f"    def __init__(self):\n        super().__init__()\n        self.stages = nn.ModuleList([{parts}])\n\n"
    )
    text += (
        "    def forward(self, x):\n        with torch.no_grad():\n            for stage in self.stages:\n"
    )
    text += "                x = stage(x)\n                if x.sum() > 0:\n                    break\n        return x.sum()\n"
    mended = mend(text)
    assert (mended.text == text) is grows
    assert any("`x` may have another shape in each round" in each for each in mended.refusals) is grows


def test_numbers_in_a_dict_that_each_round_of_a_loop_chooses() -> None:
    """Measured on torch 2.13: non-strict export takes in no number from data where the next round's arms read it."""
    text = (
        HEAD
        + "    def forward(self, x):\n        seen = {'kept': 0, 'left': 0}\n        same = seen\n        for i in range(3):\n"
    )
    text += "            if x[i].sum() > 0:\n                seen['kept'] += 1\n            else:\n                seen['left'] += 1\n"
    text += "        return {key: torch.tensor(value) for key, value in same.items()}\n"
    mended = mend(text)
    assert mended.text == text
    assert any("torch.cond takes in none from the round before" in each for each in mended.refusals), (
        mended.refusals
    )


@pytest.mark.parametrize(
    ("method", "written"),
    [
        ("def step(self, x):\n        self.count += 1\n        return x * 2", "count"),
        ("def step(self, x):\n        return self.note(x)", "seen"),
        ("def step(self, x):\n        y = self.note(x * 2)\n        return y + 1", "seen"),
    ],
    ids=["a number", "by an inherited method", "further down"],
)
def test_a_method_of_a_submodule_that_writes_its_state(method: str, written: str) -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Noted(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.count = 0\n        self.seen = []\n\n    def note(self, x):\n        self.seen.append(x)\n        return x\n\n\n"
    text += f"class Cell(Noted):\n    {method}\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.cell = Cell()\n\n    def forward(self, x):\n        if x.sum() > 0:\n            x = self.cell.step(x)\n        return x\n"
    reason = f"`self.cell.step(x)` calls a submodule that writes its `{written}`"
    assert any(reason in each for each in mend(text).refusals)


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n            x += 0.5\n            y = y * 2.0\n        return y",
        "if x[0, 0] > y[1, 1]:\n            x[0] = 0.5\n            return y * 1.0\n        return y * 2.0",
        "n = 0\n        while n < 3 and y.sum() > 0:\n            x -= 0.5\n            n += 1\n        return y * 2.0",
    ],
)
def test_one_tensor_given_twice(body: str) -> None:
    """What a copy of the one parameter gets would not be seen in the other."""
    text = f"""import torch
from torch import nn


class M(nn.Module):
    def added(self, x, y):
        {body}

    def forward(self, x):
        h = x * 1.0
        z = self.added(h, %s)
        return z, h.sum()
"""
    refused = mend(text % "h")
    assert refused.text == text % "h"
    assert any("gives one tensor both as `x` and as `y`" in each for each in refused.refusals)
    assert "torch.cond" in mend(text % "h.clone()").text or "while_loop" in mend(text % "h.clone()").text
