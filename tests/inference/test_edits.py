"""What an engine says after edits is what a new one says of the same texts: nothing is kept that an edit changed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from exportlens.checking import Sources, make_engine
from exportlens.config import load_config
from exportlens.engine import Cancelled
from exportlens.finding import Finding

# Each file in several versions; what the model's `if` comes to hangs on all of them.
VERSIONS = {
    "limits.py": ["LIMIT = 3\n", "import torch\nLIMIT = torch.ones(3)\n", "LIMIT = None\n", ""],
    "names.py": ["from limits import *\n", "LIMIT = 1\n", "import limits\nLIMIT = limits.LIMIT\n"],
    "helpers.py": [
        "def decide(x):\n    return x.sum() > 0\n",
        "def decide(x):\n    return x.dim() > 0\n",
        "from model import Base\n\n\ndef decide(x):\n    return Base.flag\n",
        "def decide(x:\n",
    ],
    "model.py": [
        (
            "import names\nimport torch\nfrom helpers import decide\n\n\nclass Base(torch.nn.Module):\n    flag = True\n\n\n"
            "class Net(Base):\n    def forward(self, x: torch.Tensor):\n        if decide(x):\n            x = x + 1\n"
            "        if names.LIMIT is not None and x.max() > names.LIMIT:\n            x = x - 1\n        return x\n"
        ),
        (
            "import torch\nfrom names import LIMIT\n\n\nclass Base(torch.nn.Module):\n    flag = torch.ones(2)\n\n\n"
            "class Net(Base):\n    def forward(self, x: torch.Tensor):\n        if LIMIT:\n            x = x + self.flag\n"
            "        return x\n"
        ),
    ],
    "deep.py": [
        "from model import Net\n\n\nclass Deep(Net):\n    pass\n",
        "import model\n\n\nclass Deep(model.Base):\n    def forward(self, x):\n        return model.Net()(x)\n",
    ],
}


def told(findings: list[Finding]) -> list[tuple[object, ...]]:
    return [(f.code, f.path.name, f.range, f.severity, f.message, f.entry, f.fix) for f in findings]


@pytest.mark.parametrize("seed", range(6))
def test_edits_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    paths = {name: tmp_path / name for name in VERSIONS}
    texts = {path: VERSIONS[name][0] for name, path in paths.items()}
    for path, text in texts.items():
        path.write_text(text)
    config = load_config(paths["model.py"], {"mode": "both", "torch-version": "2.13"})
    edited = make_engine(config, Sources())
    seen = set()
    for version in range(40):
        name = chosen.choice(list(VERSIONS))
        path = paths[name]
        texts[path] = chosen.choice(VERSIONS[name])
        path.write_text(texts[path])
        edited.update(path, texts[path], version)
        for each in chosen.sample(list(texts), 3):
            fresh = make_engine(config, Sources())
            expected = told(fresh.with_fixes(fresh.check(each)))
            assert told(edited.with_fixes(edited.check(each))) == expected, (
                f"{each.name} after editing {name}"
            )
            seen |= {row[0] for row in expected}
    assert "EXL101" in seen


def test_a_fix_is_given_up_once_nobody_wants_it(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    loops = "        for i in range(3):\n            for j in range(3):\n                y = y + i * j\n"
    path.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        y = x * 2\n"
        f"{loops}        if x.sum() > 0:\n            y = y + 1\n        return y\n"
    )
    engine = make_engine(load_config(path, {"mode": "both", "torch-version": "2.13"}), Sources())
    findings = engine.check(path)
    asked = itertools.count()
    assert [finding.fix for finding in engine.with_fixes(findings, lambda: next(asked) < 0)] != [None]
    often = next(asked)
    assert often > 10
    # Asked the first time before it begins, then for each statement that is followed.
    for limit in (0, often // 2, often - 1):
        asked = itertools.count()
        with pytest.raises(Cancelled):
            engine.with_fixes(findings, lambda asked=asked, limit=limit: next(asked) >= limit)
