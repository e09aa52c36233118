"""Refused rewrites of what a Module keeps: what is not registered, not counted in a buffer, not begun elsewhere."""

from __future__ import annotations

import textwrap

import pytest
from exportlens.rewriting.state.registered_lists import ATTRIBUTES
from torch import nn

from tests.rewriting.bodies import HEAD
from tests.rewriting.fixing_all import mend

HOLDER = """import types
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.distributions import Normal


@dataclass
class Held:
    low: torch.Tensor
    high: torch.Tensor

    def moved(self, by):
        return Held(self.low + by, self.high)


class M(nn.Module):
    def made(self, x):
        return Held(x[0], x[1])

    def chosen(self, x, held):
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("self.made(x)", "self.made(x).moved(x[1])"),
        ("Held(x[0], x[1])", "Held(x[0], *x[1:2])"),
        ("replace(held, low=x[0])", "held"),
        ("(x + 1, self.made(x))", "(x - 1, self.made(-x))"),
    ],
)
def test_an_object_that_a_branch_would_give_stays(one: str, other: str) -> None:
    for branch in (
        f"        if x.sum() > 0:\n            return {one}\n        return {other}\n",
        f"        return {one} if x.sum() > 0 else {other}\n",
    ):
        forward = "\n    def forward(self, x):\n        return self.chosen(x, self.made(x))\n"
        mended = mend(HOLDER + branch + forward)
        assert "cond" not in mended.text
        assert any("is an object" in each or "Python object" in each for each in mended.refusals), (
            mended.refusals
        )


def test_a_buffer_that_an_option_gives_the_model_is_not_read_without_it() -> None:
    text = HEAD + (
        "    def __init__(self, momentum: float = 0.0):\n        super().__init__()\n        self.momentum = momentum\n"
        "        if momentum > 0:\n            self.register_buffer('kept', torch.zeros(4))\n\n"
        "    def forward(self, x: torch.Tensor):\n        if x.sum() > 0:\n            for i in range(4):\n"
        "                if self.momentum > i:\n                    self.kept[i] = x.sum()\n            x = x + 1\n"
        "        return x\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any("decides whether the model has it" in each for each in mended.refusals), mended.refusals


HELD = [
    ("self.layers = [nn.Linear(4, 4), nn.Dropout(0.5)]", "do the same in training and in eval mode"),
    ("self.layers = [nn.Linear(4, 4), torch.relu]", "do the same in training and in eval mode"),
    ("self.layers = [nn.Linear(4, 4)] * 2", "not written out as a list"),
    ("self.layers = [nn.Linear(4, 4)]\n        self.all = self.layers + []", "used in a way"),
    ("self.layers = [nn.Linear(4, 4)]\n        self.apply(print)", "the class calls `apply`"),
    ("self.layers = [nn.Linear(4, 4)]\n        self.held = len(list(self.buffers()))", "calls `buffers`"),
    ("self.layers = [Dropped()]", "do the same in training and in eval mode"),
    ("self.layers = [Scaled()]", "do the same in training and in eval mode"),
    ("self.layers = [nn.Parameter(x)]\n        self.layers.insert(0, nn.Parameter(x))", "may not have"),
]


BY_MODE = """import torch
from torch import nn


class Base(nn.Module):
    def finish(self, x):
        return nn.functional.dropout(x, 0.5, self.training)


class Dropped(Base):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.finish(self.linear(x))


class Scaled(nn.Dropout):
    def __init__(self):
        super().__init__(0.5)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return super().forward(x) * self.scale


class M(nn.Module):
    def __init__(self, x=torch.ones(4)):
        super().__init__()
"""


def held(made: str, used: str) -> str:
    return f"{BY_MODE}        {made}\n\n    def forward(self, x):\n        {used}\n        return x\n"


@pytest.mark.parametrize(("made", "reason"), HELD, ids=[made for made, _ in HELD])
def test_what_registering_would_change_is_not_registered(made: str, reason: str) -> None:
    use = "x * layer" if "Parameter" in made else "layer(x)"
    text = held(made, f"for layer in self.layers:\n            x = {use}")
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize("container", [nn.ModuleDict, nn.ParameterDict])
def test_no_key_is_a_name_that_torchs_container_has(container: type[nn.Module]) -> None:
    assert {name for name in dir(container()) if not name.startswith("_")} <= ATTRIBUTES


@pytest.mark.parametrize(("key", "free"), [("first", True), ("forward", False), ("a.b", False)])
def test_keys_are_names_that_are_free(key: str, free: bool) -> None:
    text = held(f"self.layers = {{{key!r}: nn.Linear(4, 4)}}", f"x = self.layers[{key!r}](x)")
    mended = mend(text)
    assert ("nn.ModuleDict({" in mended.text) is free
    assert any("names that are free" in each for each in mended.refusals) is not free


FIRST_NONE = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.least = None
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
{body}
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "if self.seen == 0:\n    self.least = x.amin(0)\nelse:\n    self.least = torch.minimum(self.least, x.amin(0))\n"
            "self.seen.add_(1)\nreturn x - self.least",
            "`self.least` is None until a call has set it",
        ),
        (
            "self.scale.data = x.abs().mean() * 2\nreturn x / self.scale",
            "has 1 dimensions, and gets one with 0",
        ),
        (
            "self.scale.data = x.mean(0).detach()\nreturn x / self.scale",
            "starts with a tensor of another size",
        ),
        (
            "if self.scale.numel() == 0:\n    self.scale = nn.Parameter(x.amax(0))\nself.scale.data = x.amax(0).detach()\n"
            "return x / self.scale",
            "`self.scale` may be empty here",
        ),
        (
            "if x.sum() > 0:\n    return self.measured(x), x\nreturn 0, x",
            "not known on another",
        ),
    ],
    ids=[
        "an attribute that is None at first",
        "data of another rank",
        "data of more numbers",
        "data of what may be empty",
        "a number or what is not known",
    ],
)
def test_what_a_constructor_does_not_make_alike(body: str, reason: str) -> None:
    text = FIRST_NONE.format(body=textwrap.indent(body, "        "))
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


READ_BY_A_METHOD = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def shown(self, x):
        if x.dim() == 1:
            return self.total
        return self.total * x

    def forward(self, x):
        if x.sum() > 0:
            {before}
            self.total.add_(x.mean(0))
            {behind}
        return x + self.total
"""


@pytest.mark.parametrize(
    ("before", "behind", "branched"),
    [
        ("pass", "x = self.shown(x)", False),
        ("pass", "x = self.register(self, x)", False),
        ("x = self.shown(x)", "x = x + 1", True),
    ],
)
def test_what_an_arm_writes_is_not_read_by_a_method(before: str, behind: str, branched: bool) -> None:
    text = mend(READ_BY_A_METHOD.format(before=before, behind=behind)).text
    assert ("torch.cond(" in text) is branched


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "if self.last is None:\n    self.last = torch.zeros(x.size(1))\n"
            "y = x - self.last\nself.last = x[0] * 2\nreturn y",
            "depends on `x`",
        ),
        (
            "y = x if self.last is None else x - self.last\nself.last = x\nreturn y",
            "is None at first",
        ),
        (
            "if self.last is None:\n    self.last = torch.zeros(4)\n    x = x + 1\n"
            "y = x - self.last\nself.last = x[0] * 2\nreturn y",
            "more is done while",
        ),
        (
            "if self.last is None:\n    self.last = torch.randn(4)\n"
            "y = x - self.last\nself.last = x[0] * 2\nreturn y",
            "no plain function of torch",
        ),
    ],
    ids=["a shape of the inputs", "nothing to begin with", "more than to begin", "random numbers"],
)
def test_state_that_the_first_call_makes(body: str, reason: str) -> None:
    """It becomes a buffer only where `__init__` can make the very same."""
    text = HEAD + textwrap.indent(
        f"def __init__(self):\n    super().__init__()\n    self.last = None\n\n"
        f"def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if self.ref is None:\n    self.ref = x.mean(0)\nreturn x - self.ref", "is None at first"),
        (
            "y = use(self.ref)\nif self.ref is None:\n    self.ref = x.mean()\nreturn x - self.ref",
            "may be None",
        ),
        (
            "if self.ref is None:\n    self.ref = x.mean()\nelse:\n    self.ref = x.max(0)[0]\nreturn x - self.ref",
            "without dimensions",
        ),
        (
            "if self.ref is None:\n    self.ref = x.mean()\nsetattr(self, 'ref', self.ref * 2)\nreturn x - self.ref",
            "by its name",
        ),
        ("if self.ref is None:\n    self.ref = x.max()\nreturn x - self.ref", "tensor of ints"),
        (
            "last = x.max()\nif self.ref is None:\n    self.ref = last\n"
            "return torch.ones(9)[x] * 0.5, x - self.ref",
            "tensor of ints",
        ),
    ],
    ids=[
        "a shape of the inputs",
        "handed on",
        "of another shape",
        "set by its name",
        "of ints",
        "of indices",
    ],
)
def test_numbers_that_the_first_call_computes(body: str, reason: str) -> None:
    """A buffer takes the place of the None only where nothing gets to see it, and its shape is known."""
    text = HEAD + textwrap.indent(
        f"def __init__(self):\n    super().__init__()\n    self.ref = None\n\n"
        f"def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("self.level = self.level * 0.5 + x\nreturn x - self.level", "of its final shape"),
        (
            "start = isinstance(self.level, float)\nself.level += x.mean()\nreturn x - self.level + start",
            "tells the number",
        ),
        ("y = x - self.level\nself.level = self.last = x.mean()\nreturn y", "together with other"),
        ("y = x - self.level\nself.level = x.argmax()\nreturn y", "of its final shape"),
    ],
    ids=["of the inputs' shape", "asked for its type", "with another", "an index"],
)
def test_numbers_that_tensors_replace(body: str, reason: str) -> None:
    """A buffer begins with the number only where the tensor that takes its place has no dimensions, and nothing tells them apart."""
    text = HEAD + textwrap.indent(
        f"def __init__(self):\n    super().__init__()\n    self.level = 0.0\n\n"
        f"def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    ("own", "body", "reason"),
    [
        (
            "self.state = torch.ones(4)",
            "return x - self.step(x)",
            "the constructors of `M` and `Base` both set",
        ),
        ("self.k = 2", "y = self.step(x)\nreturn x * self.k, self.state", "keeps the tensor of `self.state`"),
        (
            "self.k = 2",
            "seen = []\nseen.append(self.state)\nreturn self.step(x), seen",
            "keeps the tensor of `self.state`",
        ),
    ],
    ids=["begun by both", "returned by the other", "kept by the other"],
)
def test_state_of_base_classes(own: str, body: str, reason: str) -> None:
    """State is registered where a base class begins it, unless another class of the model begins it or keeps its tensor."""
    text = "import torch\nfrom torch import nn\n\n\n"
    text += "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.state = torch.zeros(4)\n\n"
    text += "    def step(self, x):\n        self.state = self.state * 0.5 + x.mean(0)\n        return self.state * 2\n\n\n"
    text += f"class M(Base):\n    def __init__(self):\n        super().__init__()\n        {own}\n\n"
    text += f"    def forward(self, x: torch.Tensor):\n{textwrap.indent(body, ' ' * 8)}\n"
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_state_whose_items_are_set() -> None:
    """Items that a mask sets are part of the state of the next call, whose shape the first call's input tells."""
    body = "if self.level is None:\n    self.level = torch.zeros_like(x)\nself.level = 0.8 * self.level + x\n"
    body += "fired = self.level >= 1\nself.level[fired] = 0.0\nreturn fired.float()"
    text = HEAD + textwrap.indent(
        f"def __init__(self):\n    super().__init__()\n    self.level = None\n\n"
        f"def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any("depends on `x`" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    ("begin", "body", "reason"),
    [
        ("0", "self.steps += 1\nreturn self.layers[self.steps % 2](x)", "known only when the program runs"),
        (
            "0",
            "self.steps += 1\nfor _ in range(self.steps):\n    x = x + 1\nreturn x",
            "known only when the program runs",
        ),
        (
            "0",
            "self.steps += 1\nif self.steps > 3:\n    open('log').read()\nreturn x * self.steps",
            "hangs on the number",
        ),
        (
            "0",
            "self.steps += 1\nfor i in range(2):\n    if self.steps > 3:\n        return\n    self.layers[i](x)",
            "`return` hangs on the number",
        ),
        ("True", "self.steps += 1\nreturn x * self.steps", "of another type"),
        ("0", "self.steps += 1\nreturn x", "nothing that is exported reads it"),
        (
            "0",
            "self.steps += 1\nother.steps = self.steps\nreturn x * self.steps",
            "perhaps of the same object",
        ),
        ("START", "self.steps += 1\nreturn x * self.steps", "an int or a float, nothing in the file tells"),
    ],
    ids=[
        "an index",
        "rounds",
        "a file",
        "a loop that is left",
        "another type",
        "only counted",
        "another object",
        "a computed start",
    ],
)
def test_numbers_that_stay_numbers(begin: str, body: str, reason: str) -> None:
    """A number that a Module counts becomes a buffer only where what reads it takes a number that is not known while tracing."""
    text = (
        f"START = next(iter([1]))\nother = nn.Identity()\n\n\n{HEAD.partition(chr(10) * 3)[2].lstrip()}"
        + textwrap.indent(
            "def __init__(self):\n    super().__init__()\n    self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])\n"
            f"    self.steps = {begin}\n\ndef forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
            "    ",
        )
    )
    text = "import torch\nfrom torch import nn\n\n" + text
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert "register_buffer" not in mended.text


def test_a_number_that_nothing_exported_reads_is_not_begun_elsewhere() -> None:
    """Where its fix is refused, the method that begins it is not written out in the constructor either."""
    text = HEAD + (
        "    def __init__(self):\n        super().__init__()\n        self.reset()\n\n"
        "    def reset(self):\n        self.calls = 0\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.calls += 1\n        return x * 2\n"
    )
    assert mend(text).text == text


def test_a_buffer_that_the_constructor_makes_by_a_method_that_forward_calls() -> None:
    """In a plain attribute it would stay on the host when the model is moved to a GPU."""
    text = HEAD + (
        "    def __init__(self):\n        super().__init__()\n        self.begin()\n\n"
        "    def begin(self):\n        self.grow(4)\n\n"
        "    def grow(self, size):\n        self.size = size\n"
        "        self.register_buffer('steps', torch.arange(size).float(), persistent=False)\n\n"
        "    def forward(self, x: torch.Tensor):\n        if x.shape[0] > self.size:\n            self.grow(x.shape[0])\n"
        "        return x * self.steps[: x.shape[0], None]\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any("makes `steps` by `grow` as well" in each for each in mended.refusals), mended.refusals


def test_a_number_that_begins_with_none() -> None:
    """It is told of, although no buffer stands for a None and a float."""
    text = HEAD + (
        "    def __init__(self):\n        super().__init__()\n        self.level = None\n\n"
        "    def forward(self, x: torch.Tensor):\n        if self.level is None:\n            self.level = x.mean().item()\n"
        "        return x - self.level\n"
    )
    mended = mend(text)
    assert any("to a number that is written out" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_a_number_is_followed_to_where_it_is_handed() -> None:
    """A method that runs a loop as often as a number says takes none that is known only when the program runs."""
    text = HEAD + (
        "    def __init__(self):\n        super().__init__()\n        self.steps = 0\n\n"
        "    def again(self, x: torch.Tensor, times: int):\n        for _ in range(times + 1):\n            x = x * 2\n"
        "        return x\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return self.again(x, self.steps)\n"
    )
    mended = mend(text)
    assert any("known only when the program runs" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_nothing_is_registered_before_the_module_is_made() -> None:
    text = HEAD + (
        "    def __init__(self):\n        self.steps = 0\n        self.last = torch.zeros(4)\n        super().__init__()\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        y = x - self.last\n"
        "        self.last = x[0]\n        return y * self.steps\n"
    )
    mended = mend(text)
    assert sum("stands before the Module is made" in refusal for refusal in mended.refusals) == 2, (
        mended.refusals
    )
    assert mended.text == text


@pytest.mark.parametrize(
    "begin, body, reason",
    [
        ("[]", "self.kept.append(x.relu())\nreturn sum(self.kept)", "how many of them are kept"),
        (
            "[torch.zeros(4), torch.zeros(4)]",
            "for i, layer in enumerate(self.layers):\n    self.kept[i] = layer(x[0] + self.kept[i])\nreturn x + self.kept[1]",
            "which item `self.kept[i]` is, is only known when the model runs",
        ),
        (
            '{"a": torch.zeros(4)}',
            "for key, value in self.kept.items():\n    x = x + value\nself.kept['a'] = self.kept['a'] + x[0]\nreturn x - self.kept['a']",
            "takes `self.kept` as a whole",
        ),
        (
            "dict(a=torch.zeros(4))",
            "self.kept['a'] = self.kept['a'] + x.relu()[0]\nreturn x - self.kept['a']",
            "is not written out, key by key",
        ),
        (
            "[1.0, 0.5]",
            "self.kept[0], self.kept[1] = self.kept[1], self.kept[0]\nreturn x * self.kept[0]",
            "may hang on each other",
        ),
        (
            "{}",
            "self.kept['n'] = self.kept.get('n', 0) + 1\nreturn x / self.kept['n']",
            "takes `self.kept` as a whole",
        ),
    ],
    ids=["a list that grows", "a computed key", "all items", "made by a call", "exchanged", "asked for"],
)
def test_items_that_stay_in_their_container(begin: str, body: str, reason: str) -> None:
    text = HEAD + textwrap.indent(
        "def __init__(self):\n    super().__init__()\n    self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])\n"
        f"    self.kept = {begin}\n\ndef forward(self, x: torch.Tensor):\n{textwrap.indent(body, '    ')}\n",
        "    ",
    )
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n    return replace(track, spread=x.mean())\nreturn track",
        "return Track(x, x.std()) if x.sum() > 0 else replace(track, place=x)",
    ],
    ids=["copied", "in a ternary"],
)
def test_objects_that_a_branch_would_give(body: str) -> None:
    text = (
        "from dataclasses import dataclass, replace\n\n"
        + HEAD.replace(
            "class M",
            "@dataclass\nclass Track:\n    place: torch.Tensor\n    spread: torch.Tensor\n\n\nclass M",
        )
        + textwrap.indent(f"def step(self, track, x):\n{textwrap.indent(body, '    ')}\n\n", "    ")
        + "    def forward(self, x: torch.Tensor):\n        return self.step(Track(x, x.sum()), x.relu()).place\n"
    )
    mended = mend(text)
    assert any("object" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


def test_state_that_heirs_begin_as_well_stays_there() -> None:
    """Where another class begins it anew, it would be no buffer of that one."""
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.clear()\n\n    def clear(self):\n        self.trace = torch.zeros(4)\n\n    def forward(self, x):\n"
        "        self.trace = self.trace * 0.5 + x[0]\n        return self.trace\n"
        "\n\nclass Other(M):\n    def clear(self):\n        self.trace = torch.ones(4)\n"
    )
    mended = mend(text)
    assert any("`Other` sets `self.trace` as well" in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


@pytest.mark.parametrize(
    "begin, methods",
    [
        ("self.clear()\nself.start()", "def clear(self):\n    self.trace = torch.zeros(4)\n\ndef start(self):\n    self.trace.fill_(1)"),
        ("self.clear()", "def clear(self, kept=False):\n    if not kept:\n        self.trace = torch.zeros(4)"),
    ],
    ids=["two methods", "a method that may not begin it"],
)  # fmt: skip
def test_state_that_a_method_begins_is_registered_there(begin: str, methods: str) -> None:
    """The constructor's call is written out only where it certainly is what begins the state: else the method registers it."""
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + textwrap.indent(begin, "        ")
        + f"\n\n{textwrap.indent(methods, '    ')}\n\n    def forward(self, x):\n"
        + "        self.trace = self.trace * 0.5 + x[0]\n        return self.trace\n"
    )
    mended = mend(text)
    assert 'self.register_buffer("trace", torch.zeros(4), persistent=False)' in mended.text
    assert "self.trace.copy_(self.trace * 0.5 + x[0])" in mended.text
    assert mended.refusals == []


@pytest.mark.parametrize(
    "body, reason",
    [
        ("return torch.quantile(x * 2, x.mean().sigmoid().item())", "has no name: give it one"),
        ("return F.pad(x, (1, 1), value=x.min().item())", "how the number is to be computed with tensors"),
    ],
    ids=["a tensor computed in the call", "a function that takes no tensor"],
)
def test_numbers_that_torch_looks_at(body: str, reason: str) -> None:
    text = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
    text += f"    def forward(self, x: torch.Tensor):\n        {body}\n"
    mended = mend(text)
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals
    assert mended.text == text


_ITERATORS = """
    def __init__(self):
        super().__init__()
        self.ids = itertools.count()
        self.halves = itertools.count(0.5)
        self.signs = itertools.cycle([1.0, -1.0])
        self.scales = [1.0, 0.5, 0.25]
        self.seen = set()
        self.state = (0, 1.0)
"""


@pytest.mark.parametrize(
    "body, reason",
    [
        ("return x * next(self.signs)", "what `self.signs` gives is not a count"),
        ("return x * next(self.halves)", "does not count by whole numbers that are written out"),
        (
            "return x * next(self.ids) + next(self.ids)",
            "is asked in several places, whose order is not known",
        ),
        ("return x * next(self.ids) if x.shape[0] > 2 else x", "is not asked in any case, or more than once"),
        ("while next(self.ids) % 2:\n    x = x * 2\nreturn x", "no statement that counts fits before"),
        ("print(self.ids)\nreturn x * next(self.ids)", "`self.ids` is used for more than `next`"),
        ("return x * self.scales.pop(0)", "has to be counted in a buffer"),
        (
            "if 'a' in self.seen:\n    return x * 2\nself.seen.add('a')\nreturn x",
            "which keys there are, is not known",
        ),
        (
            "self.state = (self.state[0] + 1, 2.0)\nreturn x * self.state[0]",
            "keep each in an attribute of its own",
        ),
    ],
)
def test_state_that_is_no_count(body: str, reason: str) -> None:
    text = "import itertools\n" + HEAD + _ITERATORS + "\n    def forward(self, x: torch.Tensor):\n"
    mended = mend(text + textwrap.indent(body, "        ") + "\n")
    assert any(reason in refusal for refusal in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    "begun",
    [
        "self.low = torch.zeros(4)\n        self.low = torch.ones(4)",
        "if low is None:\n            self.low = torch.zeros(4)\n        self.low = torch.ones(4)",
        "if low is None:\n            self.low = torch.zeros(4)\n            self.low = torch.ones(4)",
        "if low is None:\n            self.low = torch.zeros(4)\n        else:\n            self.low = low",
        "for k in range(2):\n            self.low = torch.zeros(4)\n        else:\n            self.low = torch.ones(4)",
        "if low is None:\n            self.low = torch.zeros(4)\n        if low is None:\n            self.low = torch.ones(4)",
    ],
)
def test_what_a_constructor_sets_twice_is_no_buffer(begun: str) -> None:
    text = (
        f"{HEAD}class M(nn.Module):\n    def __init__(self, low=None):\n        super().__init__()\n        {begun}\n\n"
        "    def forward(self, x):\n        y = x - self.low\n        self.low = x.amin(0)\n        return y\n"
    )
    mended = mend(text)
    assert "copy_" not in mended.text
    assert "`self.low` is set several times in `__init__`" in mended.refusals


@pytest.mark.parametrize("value", ["self.scale", "self.options.scale"])
def test_an_attribute_that_may_be_no_tensor_is_not_cloned(value: str) -> None:
    text = f"""import torch
from torch import nn


class M(nn.Module):
    def __init__(self, options, scale):
        super().__init__()
        self.options = options
        self.scale = scale

    def forward(self, x):
        y = x * 2
        if x.sum() > 0:
            y = {value}
        return y
"""
    refused = mend(text)
    assert refused.text == text
    assert any(f"it is not known whether `{value}`" in each for each in refused.refusals)


def test_numbers_of_classes_that_one_class_extends() -> None:
    """Where a third class extends both, `self` in the one may be an object of the other."""
    counting = (
        "(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.calls = 0\n\n"
        "    def forward(self, x):\n        self.calls += 1\n        return x * self.calls\n"
    )
    apart = f"import torch\nfrom torch import nn\n\n\nclass Early{counting}\n\nclass Late{counting}"
    assert mend(apart).text.count('register_buffer("calls"') == 2
    mended = mend(f"{apart}\n\nclass Both(Early, Late):\n    pass\n")
    assert "register_buffer" not in mended.text
    assert any("`self.calls` is used as well, perhaps of the same object" in each for each in mended.refusals)


def test_loop_beside_a_method_that_reads_what_it_writes() -> None:
    text = (
        HEAD
        + """    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))

    def cell_of(self, value):
        return (value + self.seen.sum()).long().clamp(0, 5)

    def forward(self, x):
        level = x.sum()
        while level < 6:
            self.seen[self.cell_of(level)] += 1
            level = level * 1.5
        return x.sum() + self.seen
"""
    )
    mended = mend(text)
    assert "while_loop" not in mended.text
    assert any("a tensor that the loop writes is an attribute" in each for each in mended.refusals)


WRITING_METHODS = """
def __init__(self):
    super().__init__()
    for key in ("level", "mean_a"):
        self.register_buffer(key, torch.zeros(4))

def note(self, x):
    self.level.mul_(0.5)

def track(self, x, key="a"):
    if x.dim() == 1:
        return x
    {body}
    return x * 2

def forward(self, x):
    if x.sum() > 0:
        x = self.track(x)
    return x
"""


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("self.level[0] = x.mean()", "level"),
        ("self.note(x)", "level"),
        ("level = self.level\n    level += x.mean(0)", "level"),
        ("torch.add(self.level, x.mean(0), out=self.level)", "level"),
        ("setattr(self, 'level', x.mean(0))", "level"),
        ("getattr(self, f'mean_{key}').add_(x.mean(0))", "mean_{key}"),
    ],
    ids=["an item", "by another method", "by another name", "as the output", "set by name", "found by name"],
)
def test_a_method_that_writes_state_is_not_called_in_a_branch(body: str, written: str) -> None:
    """In whatever way it does so; it returns early, so it is not written out there either."""
    text = HEAD + textwrap.indent(WRITING_METHODS.replace("{body}", body), "    ")
    mended = mend(text)
    assert any(f"`self.track` writes `self.{written}`" in each for each in mended.refusals), mended.refusals
    assert "torch.cond(" not in mended.text
