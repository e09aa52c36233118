"""What a model gets from other files: caches of a library, and callables that its constructor is given."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from exportlens.checking import check_files, fix_files
from exportlens.config import NEWEST_TORCH, Config
from exportlens.engine import Engine
from exportlens.outcome import Mode

from tests.rewriting.driving import assert_equivalent, quietly, same
from tests.rewriting.fixing_all import mend

CACHES = """
import torch


class Cache:
    pass


class DynamicCache(Cache):
    def __init__(self):
        self.layers = []

    def update(self, keys):
        self.layers.append(keys)


class EncoderDecoderCache(Cache):
    def __init__(self, own, cross):
        self.self_attention_cache = own
        self.cross_attention_cache = cross
"""
SUPPORT = """
import torch

from ..cache_utils import DynamicCache


def register_dynamic_cache_export_support():
    def make(layers, _):
        cache = DynamicCache()
        cache.layers = list(layers)
        return cache

    try:
        torch.utils._pytree.register_pytree_node(DynamicCache, lambda cache: (cache.layers, None), make)
    except ValueError:
        pass
"""
MODEL = """
from torch import nn
import torch

from .cache_utils import DynamicCache, EncoderDecoderCache


class M(nn.Module):
    def forward(self, x, use_cache=True):
        own, cross = DynamicCache(), DynamicCache()
        own.update(x * 2)
        return x + 1, EncoderDecoderCache(own, cross)


class Single(nn.Module):
    def forward(self, x):
        cache = DynamicCache()
        cache.update(x * 2)
        return x - 1, cache
"""
STATES = """
import torch
from torch import nn

from .cache_utils import DynamicCache


class M(nn.Module):
    def forward(self, x):
        cache = DynamicCache()
        cache.update_conv_state(x)
        return x - 1, cache
"""


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with caches, as transformers has them; torch forgets them afterwards."""
    package = tmp_path / "kit"
    for name, text in {
        "__init__.py": "",
        "cache_utils.py": CACHES,
        "integrations/__init__.py": "",
        "integrations/executorch.py": SUPPORT,
        "modeling.py": MODEL,
        "modeling_states.py": STATES,
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for cls in list(torch.utils._pytree.SUPPORTED_NODES):
        if cls.__module__ == "kit.cache_utils":
            torch.utils._pytree._deregister_pytree_node(cls)
    for name in [each for each in sys.modules if each.partition(".")[0] == "kit"]:
        del sys.modules[name]


def _fixed(path: Path) -> str:
    checked = check_files([path], {"mode": "both"})
    fix_files(checked, {"mode": "both"}, unsafe=True)
    return checked.changed.get(path, path.read_text())


def test_caches_of_a_library_are_registered(kit: Path) -> None:
    text = _fixed(kit / "modeling.py")
    assert text.count("register_dynamic_cache_export_support()\n") == 1
    (kit / "modeling.py").write_text(text)
    assert _fixed(kit / "modeling.py") == text
    module = importlib.import_module("kit.modeling")
    x = torch.randn(2, 3)
    for name in ("M", "Single"):
        model = vars(module)[name]()
        for strict in (True, False):
            with quietly():
                program = torch.export.export(model, (x,), strict=strict).module()
            assert same(program(x), model(x))


def test_a_cache_that_holds_more_is_left_out_of_what_is_exported(kit: Path) -> None:
    text = _fixed(kit / "modeling_states.py")
    assert "return x - 1, None if torch.compiler.is_exporting() else cache" in text


PASSED_IN = """
import torch
from torch import nn
from torchvision import transforms as T


class Sometimes(nn.Module):
    def __init__(self, fn, p):
        super().__init__()
        self.fn = fn
        self.p = p

    def forward(self, x):
        if x.mean() > self.p:
            return x
        return self.fn(x)
"""
BUILT = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Sometimes({fn}, p=0.3)

    def forward(self, x):
        return self.inner(x)
"""


def test_a_callable_of_unread_code_is_kept_out_of_a_branch() -> None:
    mended = mend(PASSED_IN + BUILT.format(fn="T.ColorJitter(0.8)"))
    assert "torch.cond" not in mended.text
    assert any(
        "calls what the constructor is given, such as `T.ColorJitter(...)`" in each
        for each in mended.refusals
    )


def test_a_layer_that_is_passed_in_is_called_in_a_branch() -> None:
    before = PASSED_IN.replace("from torchvision import transforms as T\n", "") + BUILT.format(
        fn="nn.Linear(3, 3)"
    )
    mended = mend(before)
    assert "torch.cond" in mended.text
    assert_equivalent(before, mended.text, [(torch.rand(2, 3),), (torch.rand(2, 3) - 1,)])


WARNING = """
import warnings

import torch
from torch import nn


def rank_zero_warn(text, category=UserWarning):
    warnings.warn(text, category)


class M(nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            rank_zero_warn(f"negative: {x.shape}")
            x = -x
        return x
"""


def test_a_warning_of_ones_own_is_kept_out_of_what_is_exported() -> None:
    text = mend(WARNING).text
    assert "if not torch.compiler.is_compiling() and x.sum() < 0:" in text
    assert_equivalent(WARNING, text, [(torch.rand(2, 3),), (torch.rand(2, 3) - 1,)])


def test_a_number_that_a_module_of_another_file_reads_out_of_a_view_leaves_the_branch() -> None:
    helper = (
        "from torch import nn\n\n\nclass Last(nn.Module):\n    def forward(self, mask):\n        found = mask.nonzero()[:, 0]\n"
        "        return found[-1]{}.item()\n"
    )
    model = (
        "from torch import nn\n\nfrom finding import Last\n\n\nclass M(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.last = Last()\n\n    def forward(self, x):\n        mask = x > 0\n"
        "        if mask.any():\n            x = x * self.last(mask)\n        return x\n"
    )
    engine = Engine(Config(root=Path("/"), modes=(Mode.STRICT, Mode.NON_STRICT), torch_version=NEWEST_TORCH))
    for copied, is_fixed in (("", False), (".clone()", True)):
        engine.update(Path("/finding.py"), helper.format(copied))
        engine.update(Path("/model.py"), model)
        findings = engine.with_fixes(engine.check(Path("/model.py")))
        [found] = [each for each in findings if each.code == "EXL101"]
        assert (found.fix is not None) is is_fixed
        assert is_fixed or "takes of a copy only" in found.notes[0]
