"""Packages that import what they offer when it is asked for: what `if TYPE_CHECKING:` imports is what they give."""

from __future__ import annotations

from pathlib import Path

import pytest
from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Severity
from exportlens.outcome import TorchVersion

PACKAGE = {
    "lazy/__init__.py": """
import importlib
from typing import TYPE_CHECKING

_MODULES = {"Base": "models", "DynamicCache": "cache_utils", "Output": "outputs"}
EAGER = False

if {test}:
    from .cache_utils import DynamicCache as DynamicCache
    from .models import Base
    from .outputs import Output
else:

    def __getattr__(name):
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
""",
    "lazy/models.py": """
from torch import nn


class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
""",
    "lazy/cache_utils.py": """
class Cache:
    def __init__(self):
        self.keys = []


class DynamicCache(Cache):
    pass
""",
    "lazy/outputs.py": """
from collections import OrderedDict
from dataclasses import dataclass

import torch


class ModelOutput(OrderedDict):
    def __init_subclass__(cls):
        torch.utils._pytree.register_pytree_node(cls, lambda x: (list(x.values()), list(x)), None)


@dataclass
class Output(ModelOutput):
    last: torch.Tensor = None
    past: object = None
""",
    "wrapping.py": """
from functools import wraps


def returning(method):
    @wraps(method)
    def wrapper(self, *args, **kwargs):
        as_tuple = kwargs.pop("as_tuple", False)
        output = method(self, *args, **kwargs)
        if as_tuple:
            output = output.to_tuple()
        return output

    return wrapper
""",
    "model.py": """
from lazy import Base, DynamicCache, Output
from wrapping import returning


class Decides(Base):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Remembers(Base):
    def forward(self, x, use_cache: bool = True):
        past = DynamicCache() if use_cache else None
        return Output(last=x + 1, past=past)


class Forgets(Base):
    def forward(self, x, use_cache: bool = False):
        past = DynamicCache() if use_cache else None
        return Output(last=x + 1, past=past)


class Settings:
    def __init__(self, use_cache=True):
        self.use_cache = use_cache


class Configured(Base):
    config_class = Settings

    def __init__(self, config):
        super().__init__(config)

    def forward(self, x, use_cache=None):
        use_cache = self.config.use_cache if use_cache is None else use_cache
        past = DynamicCache() if use_cache else None
        return Output(last=x + 1, past=past)


class Wrapped(Base):
    config: Settings

    def __init__(self, config):
        super().__init__(config)

    @returning
    def forward(self, x, use_cache=None):
        use_cache = self.config.use_cache if use_cache is None else use_cache
        past = DynamicCache() if use_cache else None
        return Output(last=x + 1, past=past)
""",
}


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "TYPE_CHECKING or EAGER"])
def test_what_a_package_imports_lazily_is_followed(tmp_path: Path, test: str) -> None:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("{test}", test))
    engine = Engine(Config(root=tmp_path, torch_version=TorchVersion(2, 13)))
    found = engine.check(tmp_path / "model.py")
    errors = {(each.code, each.range.start.line + 1) for each in found if each.severity is Severity.ERROR}
    assert errors == {("EXL101", 8), ("EXL602", 16), ("EXL602", 39), ("EXL602", 52)}
    fixes = [each.fix for each in engine.with_fixes(found) if each.code == "EXL602"]
    contents = [edit.content for fix in fixes if fix is not None for edit in fix.edits]
    assert contents == ["import torch\n", "None if torch.compiler.is_exporting() else past"] * 3
