"""Contexts and exceptions that the user's torch does not take in strict mode: written in words that it takes."""

from __future__ import annotations

import pytest
from exportlens.outcome import TorchVersion

from tests.rewriting.bodies import assert_mended, assert_refused

# The newest torch whose strict tracing follows neither generators nor exceptions of one's own.
OLDER = TorchVersion(2, 6)
HEAD = """import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def frozen(enabled=True):
    with torch.set_grad_enabled(not enabled):
        yield


@contextlib.contextmanager
def with_factor(module, factor):
    \"\"\"The factor holds inside.\"\"\"
    before = module.factor
    module.factor = factor
    try:
        yield module
    finally:
        module.factor = before  # as it was


@contextlib.contextmanager
def counted(module):
    module.depth = 1
    yield
    module.depth = 0


@contextlib.contextmanager
def chosen(flag):
    if flag:
        yield 1
    else:
        yield 2


class TooShort(ValueError):
    pass


class TooLong(ValueError):
    def __init__(self, size, most=8):
        super().__init__(f"{size} steps")
        self.size = size


def checked(x):
    raise TooShort("always")


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.factor = 1.0
        self.depth = 0
        self.layers = 1

    def forward(self, x: torch.Tensor, y: torch.Tensor):
"""
OLD = {
    "a generator around a context": (
        "with frozen():\n    z = self.layer(x)  # no gradients\nreturn z + y",
        "with torch.set_grad_enabled(not True):\n    z = self.layer(x)  # no gradients\nreturn z + y",
    ),
    "what a generator gives": (
        "factor = 3.0\nwith with_factor(self, 2.0) as scaled:\n    z = x * scaled.factor\nreturn z * self.factor + y * factor",
        "factor = 3.0\nbefore = self.factor\nself.factor = 2.0\ntry:\n    scaled = self\n    z = x * scaled.factor\nfinally:\n"
        "    self.factor = before  # as it was\nreturn z * self.factor + y * factor",
    ),
    "a return inside": (
        "before = 1\nwith with_factor(self, x.shape[0] * 2):\n    return x * self.factor + y * before",
        "before = 1\nfactor = x.shape[0] * 2\nbefore_2 = self.factor\nself.factor = factor\ntry:\n"
        "    return x * self.factor + y * before\nfinally:\n    self.factor = before_2  # as it was",
    ),
    "a generator with an end": (
        "with counted(self):\n    z = x * self.depth\nreturn z + y",
        "self.depth = 1\nz = x * self.depth\nself.depth = 0\nreturn z + y",
    ),
    "suppressed": (
        "with contextlib.suppress(KeyError, IndexError):\n    x = x + y\nreturn x",
        "try:\n    x = x + y\nexcept (KeyError, IndexError):\n    pass\nreturn x",
    ),
    "no context at all": (
        "with contextlib.nullcontext(x + 1) as z:\n    # as it is\n    y = z * y\nreturn y",
        "z = x + 1\n# as it is\ny = z * y\nreturn y",
    ),
    "an exception that chooses": (
        "try:\n    if self.layers < 3:\n        raise TooShort('few')\n    x = x.sum(2)\nexcept TooShort:\n    x = x * 2\nreturn x + y",
        "if self.layers < 3:\n    x = x * 2\nelse:\n    try:\n        x = x.sum(2)\n    except TooShort:\n        x = x * 2\nreturn x + y",
    ),
    "an exception before an else": (
        "try:\n    if isinstance(x, torch.Tensor):\n        raise TooShort\nexcept TooShort:\n    x = x * 2\nelse:\n    x = x + 1\nreturn x + y",
        "if isinstance(x, torch.Tensor):\n    x = x * 2\nelse:\n    x = x + 1\nreturn x + y",
    ),
}
NEW = {
    "an assertion": (
        "try:\n    assert self.layers > 1, 'one'\n    x = x * 2\nexcept AssertionError:\n    x = x + y\nreturn x",
        "try:\n    if not self.layers > 1:\n        raise AssertionError('one')\n    x = x * 2\nexcept AssertionError:\n    x = x + y\n"
        "return x",
    ),
    "hooks on saved tensors": (
        "with torch.autograd.graph.save_on_cpu():\n    x = self.layer(x)\nreturn x + y",
        "with contextlib.nullcontext() if torch.compiler.is_exporting() else torch.autograd.graph.save_on_cpu():\n"
        "    x = self.layer(x)\nreturn x + y",
    ),
}
REFUSED = {
    "a generator that chooses": (
        "with chosen(self.layers > 1) as k:\n    x = x * k\nreturn x + y",
        "does not yield by one statement",
    ),
    "an end that a return would leave out": (
        "with counted(self):\n    return x * self.depth + y",
        "before the generator ends",
    ),
    "two contexts": (
        "with frozen(), torch.no_grad():\n    x = self.layer(x)\nreturn x + y",
        "several contexts are entered at once",
    ),
    "an exception of another function": (
        "try:\n    x = checked(x)\nexcept TooShort:\n    x = x * 2\nreturn x + y",
        "not under an `if` in the `try`",
    ),
    "an exception that is read": (
        "try:\n    if self.layers < 3:\n        raise TooShort('few')\nexcept TooShort as error:\n    x = x * len(error.args)\n"
        "return x + y",
        "the handler reads the exception",
    ),
    "an exception that is raised again": (
        "try:\n    try:\n        raise ValueError\n    except ValueError:\n        raise\nexcept ValueError:\n    x = x * 2\n"
        "return x + y",
        "not written where it is raised",
    ),
    "a finally": (
        "try:\n    if self.layers < 3:\n        raise TooShort\nexcept TooShort:\n    x = x * 2\nfinally:\n    x = x + 1\n"
        "return x + y",
        "or a `finally`",
    ),
}


def test_mended_for_older_torch() -> None:
    assert_mended(HEAD, OLD, OLDER)


def test_mended_for_every_torch() -> None:
    assert_mended(HEAD, NEW)


def test_arguments_of_an_exception_are_set() -> None:
    body = "try:\n    raise TooLong(3)\nexcept TooLong as error:\n    x = x * error.size\nreturn x + y"
    assert_mended(HEAD, {"": (body, body)})
    read = body.replace("error.size", "len(str(error))")
    assert_refused(HEAD, read, "reads the exception as a text")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(HEAD, *REFUSED[name], OLDER)
