"""`exportlens repair` of models whose code lies in several files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from exportlens.config import load_config
from exportlens.export.models import proposals_for
from exportlens.export.repair import Repair, repair_model
from exportlens.export.request import ExportRequest
from exportlens.repairing import Repairer

from .conftest import Runner

NET = """import torch
from torch import nn

{imports}


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 4)

    def forward(self, x):
        h = self.linear(x)
        {use}
"""
PARTS = """def cut(h):
    if h.sum() > 0:
        h = h * 2
    return h
"""


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tried(worker: Runner, file: Path) -> Repair:
    """How far the repair of `Net` comes."""
    request = ExportRequest(f"{file}:Net")
    request = ExportRequest(request.model, proposals=proposals_for(request))
    tools = Repairer(file, load_config(file, {"mode": "both"}))
    done: Repair = worker.run(repair_model(worker.session, request, tools))
    return done


def exportlens(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlens", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def test_a_helper_of_a_package_that_is_imported_by_its_full_name(tmp_path: Path) -> None:
    """The model is named by its module, and what it is made with is proposed all the same."""
    net = NET.format(imports="from nets.parts import cut", use="return cut(h)")
    project(tmp_path, {"nets/__init__.py": "", "nets/parts.py": PARTS, "nets/net.py": net})
    done = exportlens(tmp_path, "repair", "nets.net:Net", "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{Path('nets') / 'parts.py'}, line 2:" in done.stdout
    assert "torch.cond(" in (tmp_path / "nets/parts.py").read_text()
    assert (tmp_path / "nets/net.py").read_text() == net
    again = exportlens(tmp_path, "repair", "nets.net:Net")
    assert "nothing to repair" in again.stdout, again.stdout + again.stderr


def test_files_beside_each_other_that_both_need_a_fix(worker: Runner, tmp_path: Path) -> None:
    """Neither fix alone makes the model export, and one file imports the other only when it is called."""
    use = "from parts import cut\n        h.data.mul_(2)\n        return cut(h)"
    project(tmp_path, {"parts.py": PARTS, "net.py": NET.format(imports="", use=use)})
    done = tried(worker, tmp_path / "net.py")
    assert done.repaired, done.reason
    assert {step.path for step in done.steps} == {tmp_path / "parts.py", tmp_path / "net.py"}
    assert "torch.cond(" in done.changed[tmp_path / "parts.py"] and done.diff().count("+++ ") == 2
    assert (tmp_path / "parts.py").read_text() == PARTS


def test_what_a_package_hands_on_is_that_of_the_fixed_file(worker: Runner, tmp_path: Path) -> None:
    """A base class that the package's `__init__` re-exports, a sibling that is used as an attribute of the package,
    and a file that is read beside the module."""
    base = (
        "import json\nfrom pathlib import Path\n\nimport torch\nimport nets\n\n\n"
        "class Base(torch.nn.Module):\n"
        "    scale = json.loads((Path(__file__).parent / 'base.json').read_text())['scale']\n\n"
        "    def finish(self, h):\n"
        "        if h.mean() > nets.limits.HIGHEST:\n            h = h / self.scale\n        return h\n"
    )
    files = {
        "nets/__init__.py": "from . import limits\nfrom .base import Base\n",
        "nets/limits.py": "HIGHEST = 0.5\n",
        "nets/base.py": base,
        "nets/base.json": '{"scale": 4}',
        "nets/net.py": "import torch\nfrom nets import Base\n\n\nclass Net(Base):\n"
        "    def __init__(self):\n        super().__init__()\n        self.linear = torch.nn.Linear(8, 4)\n\n"
        "    def forward(self, x):\n        assert isinstance(self, Base)\n        return self.finish(self.linear(x))\n",
    }
    project(tmp_path, files)
    done = tried(worker, tmp_path / "nets/net.py")
    assert done.repaired, done.reason
    assert list(done.changed) == [tmp_path / "nets/base.py"]


def test_a_helper_that_its_package_is_asked_for(worker: Runner, tmp_path: Path) -> None:
    """`from package import module`, where nothing else of the package changes; one of the installed packages."""
    net = NET.format(imports="from nets import parts", use="return parts.cut(h)")
    home = tmp_path / "site-packages"
    project(home, {"nets/__init__.py": "", "nets/parts.py": PARTS, "nets/net.py": net, "setup.py": ""})
    done = tried(worker, home / "nets/net.py")
    assert done.repaired, done.reason
    assert list(done.changed) == [home / "nets/parts.py"]


def test_a_helper_in_another_folder_of_the_project(worker: Runner, tmp_path: Path) -> None:
    """Folders without an `__init__.py`, imported from the folder that holds both."""
    net = NET.format(imports="from lib.parts import cut", use="return cut(h)")
    project(tmp_path, {"pyproject.toml": "", "lib/parts.py": PARTS, "nets/net.py": net})
    done = tried(worker, tmp_path / "nets/net.py")
    assert done.repaired, done.reason
    assert list(done.changed) == [tmp_path / "lib/parts.py"]


def test_what_lies_outside_of_the_project_is_left_alone(worker: Runner, tmp_path: Path) -> None:
    found = (
        "import sys\nfrom pathlib import Path\n\nsys.path.append(str(Path(__file__).parents[1] / 'shared'))\n"
    )
    net = found + NET.format(imports="from parts import cut", use="return cut(h)")
    project(tmp_path, {"shared/parts.py": PARTS, "mine/pyproject.toml": "", "mine/net.py": net})
    done = tried(worker, tmp_path / "mine/net.py")
    assert done.could_run and not done.repaired and not done.changed
    last = done.steps[-1]
    assert (last.path, last.fix) == (tmp_path / "mine/net.py", "") and "branching" in last.reason


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    """The model itself changes its helper's file while it is made: nothing of the repair is written."""
    net = NET.format(imports="from parts import cut", use="h.data.mul_(2)\n        return cut(h)").replace(
        "        super().__init__()\n",
        "        super().__init__()\n        with open('parts.py', 'a') as file:\n            file.write('# seen\\n')\n",
    )
    project(tmp_path, {"parts.py": PARTS, "net.py": net})
    done = exportlens(tmp_path, "repair", "net.py:Net", "--write")
    assert done.returncode == 2 and "has changed since the repair began" in done.stderr, done.stdout
    assert (tmp_path / "net.py").read_text() == net
