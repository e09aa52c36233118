"""`exportlens check` as a user runs it: real processes, real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """import torch


class Gate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y
"""
CLEAN = MODEL.replace("x.sum() > 0", "x.dim() > 0")


def run(*words: str | Path, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlens", *(str(word) for word in words)]
    return subprocess.run(
        command, cwd=cwd, input=stdin, text=True, capture_output=True, check=False, timeout=120
    )


def check(*words: str | Path, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return run("check", "--torch-version", "2.13", *words, cwd=cwd, stdin=stdin)


def found(*words: str | Path, cwd: Path) -> list[dict[str, object]]:
    answer: list[dict[str, object]] = json.loads(check("--output-format", "json", *words, cwd=cwd).stdout)
    return answer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "clean.py").write_text(CLEAN)
    return tmp_path


def test_text_names_place_code_and_sum(project: Path) -> None:
    done = check(cwd=project)
    assert done.returncode == 1
    assert "model.py:6:12: error EXL101" in done.stdout
    assert "6 |         if x.sum() > 0:\n  |            ^^^^^^^^^^^\n" in done.stdout
    assert "Found 1 error in 2 files for torch 2.13, non-strict mode." in done.stdout
    assert "\x1b" not in done.stdout


def test_clean_code_ends_with_zero(project: Path) -> None:
    done = check("clean.py", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Nothing found in 1 file")


def test_json_has_the_fields_of_ruff(project: Path) -> None:
    [finding] = found(cwd=project)
    assert (
        finding["code"] == "EXL101"
        and finding["name"] == "data-dependent-if"
        and finding["severity"] == "error"
    )
    assert finding["location"] == {"row": 6, "column": 12} and finding["end_location"] == {
        "row": 6,
        "column": 23,
    }
    assert Path(str(finding["filename"])) == project / "model.py"
    assert finding["entry"] == [f"{project / 'model.py'}:Gate"]
    assert {"message", "fix", "url", "notes"} <= finding.keys()


@pytest.mark.parametrize(
    "comment",
    ["# noqa", "# noqa: EXL101", "# NOQA:E501,EXL101", "# exportlens: ignore",
     "# exportlens: ignore[EXL101, EXL2]",
     "# exportlens:ignore[data-dependent-if]", "# type: ignore  # exportlens: ignore[EXL1]"],
)  # fmt: skip
def test_a_comment_silences(project: Path, comment: str) -> None:
    (project / "model.py").write_text(MODEL.replace("> 0:", f"> 0:  {comment}"))
    assert found("model.py", cwd=project) == []


@pytest.mark.parametrize(
    "comment", ["# noqa: E501", "# exportlens: ignore[EXL2]", "# noqa-ish", "# exportlens: ignored"]
)
def test_another_comment_does_not_silence(project: Path, comment: str) -> None:
    (project / "model.py").write_text(MODEL.replace("> 0:", f"> 0:  {comment}"))
    assert len(found("model.py", cwd=project)) == 1


def test_text_in_a_string_does_not_silence(project: Path) -> None:
    (project / "model.py").write_text(MODEL.replace("x.sum() > 0:", "x.sum() > len('# noqa'):"))
    assert len(found("model.py", cwd=project)) == 1


def test_a_comment_at_the_end_of_the_logical_line_silences(project: Path) -> None:
    text = MODEL.replace(
        "if x.sum() > 0:", "if (\n            x.sum()\n            > 0\n        ):  # noqa: EXL101"
    )
    (project / "model.py").write_text(text)
    assert found("model.py", cwd=project) == []


def test_ignore_file(project: Path) -> None:
    (project / "model.py").write_text(MODEL + "# exportlens: ignore-file\n")
    assert found("model.py", cwd=project) == []


@pytest.mark.parametrize(
    ("words", "count"),
    [(["--select", "EXL1"], 1), (["--select", "EXL2"], 0), (["--ignore", "EXL101"], 0),
     (["--ignore", "data-dependent-if"], 0),
     (["--select", "EXL101", "--ignore", "EXL1"], 1), (["--select", "EXL1", "--ignore", "EXL101"], 0)],
)  # fmt: skip
def test_select_and_ignore(project: Path, words: list[str], count: int) -> None:
    assert len(found(*words, cwd=project)) == count


def test_settings_of_pyproject_and_their_errors(project: Path) -> None:
    settings = project / "pyproject.toml"
    settings.write_text('[tool.exportlens]\nper-file-ignores = {"model.py" = ["EXL1"]}\n')
    assert found(cwd=project) == []
    settings.write_text('[tool.exportlens]\nextend-exclude = ["mod*.py"]\n')
    assert found(cwd=project) == [] and len(found("model.py", cwd=project)) == 1
    for line, words in {
        'mode = "strickt"': "strickt",
        'torch-version = "new"': "new",
        'selct = ["EXL1"]': "did you mean 'select'",
        "select = 3": "must be a list",
        "mode = ": "not valid TOML",
        'training = "yes"': "must be true or false",
    }.items():
        settings.write_text(f"[tool.exportlens]\n{line}\n")
        done = run("check", cwd=project)
        assert done.returncode == 2 and words in done.stderr and "pyproject.toml" in done.stderr, done
        assert "Traceback" not in done.stderr


def test_what_only_training_runs_is_judged_where_models_are_exported_so(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.norm = nn.BatchNorm1d(4)\n\n    def forward(self, x):\n        if self.training and x.max() > 1:\n"
        "            x = x / x.max()\n        return x\n"
    )
    assert found(cwd=tmp_path) == []
    assert [each["code"] for each in found("--training", cwd=tmp_path)] == ["EXL101"]
    (tmp_path / "pyproject.toml").write_text("[tool.exportlens]\ntraining = true\n")
    assert [each["code"] for each in found(cwd=tmp_path)] == ["EXL101"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["nowhere.py"], "nowhere.py does not exist"), (["--select", "EXL999x"], "no rule is called 'EXL999x'"),
     (["--mode", "fast"], "mode is 'fast'"), (["--interpreter", "nopython"], "does not exist"),
     (["--explain", "model.py"], "no FILE:LINE"), (["--explain", "model.py:999"], "no line 999")],
)  # fmt: skip
def test_what_cannot_be_run_says_so_and_ends_with_two(project: Path, words: list[str], message: str) -> None:
    done = check(*words, cwd=project)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"x = 1\0\n", "binary file"), (b"# caf\xe9\n", "not valid utf-8: byte 0xe9 on line 1"),
     (b"# -*- coding: klingon -*-\n", "klingon"), (b"def f(:\n    pass\n", "bad.py:1:7: syntax error"),
     (b"x = (" * 200 + b"\n", "syntax error")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_does_not_stop_the_others(
    project: Path, data: bytes, message: str
) -> None:
    (project / "bad.py").write_bytes(data)
    done = check(cwd=project)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    assert "model.py:6:12: error EXL101" in done.stdout


def test_a_declared_encoding_and_a_byte_order_mark_are_honoured(project: Path) -> None:
    (project / "model.py").write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + MODEL.encode())
    assert found("model.py", cwd=project)[0]["location"] == {"row": 8, "column": 12}
    (project / "model.py").write_bytes(b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode())
    assert found("model.py", cwd=project)[0]["location"] == {"row": 6, "column": 12}


def test_folders_that_are_not_the_users_are_not_walked(project: Path) -> None:
    for name in (".venv/lib/python3.11/site-packages/pack", "node_modules/pack", ".git"):
        (project / name).mkdir(parents=True)
        (project / name / "inner.py").write_text(MODEL)
    assert len(found(cwd=project)) == 1
    assert len(found("node_modules", cwd=project)) == 1


def test_a_helper_is_reported_once_with_its_entry_points(project: Path) -> None:
    (project / "model.py").unlink()
    (project / "helper.py").write_text(
        "def choose(t):\n    if t.sum() > 0:\n        return t\n    return -t\n"
    )
    for name in ("first", "second"):
        text = f"import torch\nfrom helper import choose\n\n\nclass {name.title()}(torch.nn.Module):\n"
        (project / f"{name}.py").write_text(
            text + "    def forward(self, x: torch.Tensor):\n        return choose(x)\n"
        )
    [finding] = found(cwd=project)
    assert Path(str(finding["filename"])).name == "helper.py"
    assert finding["entry"] == [f"{project / 'first.py'}:First", f"{project / 'second.py'}:Second"]
    [finding] = found("second.py", cwd=project)
    assert Path(str(finding["filename"])).name == "helper.py"


def test_standard_input(project: Path) -> None:
    done = check("-", "--stdin-filename", "given.py", cwd=project, stdin=MODEL)
    assert done.returncode == 1 and "given.py:6:12" in done.stdout


def test_explain_says_what_is_believed(project: Path) -> None:
    done = check("--explain", "model.py:6", cwd=project)
    assert done.returncode == 0
    assert "`x`: an input tensor" in done.stdout


def test_statistics_and_exit_zero(project: Path) -> None:
    done = check("--statistics", "--exit-zero", cwd=project)
    assert done.returncode == 0
    assert "1  EXL101  data-dependent-if" in done.stdout


def test_a_notebook_is_checked_cell_by_cell(project: Path) -> None:
    lines = MODEL.splitlines(keepends=True)
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n"]},
        {**code, "source": ["%matplotlib inline\n", "!ls\n", "import torch"]},
        {**code, "source": ["%%bash\n", "echo {"]},
        {**code, "source": lines[1:]},
    ]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "book.ipynb").write_text(json.dumps(content, indent=1) + "\n")
    done = check("book.ipynb", cwd=project)
    assert done.returncode == 1 and done.stderr == ""
    assert "book.ipynb:cell 4:5:12: error EXL101" in done.stdout
    [finding] = found("book.ipynb", cwd=project)
    assert (finding["cell"], finding["location"]) == (4, {"row": 5, "column": 12})


def test_help_teaches_by_example(project: Path) -> None:
    for words in ([], ["check"], ["rule"], ["server"]):
        done = run(*words, "--help", cwd=project)
        assert done.returncode == 0 and ("Examples:" in done.stdout or "server" in words)


def test_rule_prints_its_page(project: Path) -> None:
    done = run("rule", "exl101", cwd=project)
    assert done.returncode == 0 and "(EXL101)" in done.stdout and "What it does" in done.stdout
    done = run("rule", "EXL1O1", cwd=project)
    assert done.returncode == 2 and "did you mean EXL" in done.stderr


def test_many_files_give_the_same_in_parallel(tmp_path: Path) -> None:
    # Only with enough to read are there several processes.
    remark = "# a long remark\n" * 300
    for number in range(90):
        (tmp_path / f"m{number:02}.py").write_text(MODEL.replace("Gate", f"Gate{number}") + remark)
    findings = found(cwd=tmp_path)
    assert [Path(str(f["filename"])).name for f in findings] == [f"m{number:02}.py" for number in range(90)]


def test_what_is_slow_to_import_waits_until_it_is_needed(project: Path) -> None:
    """`--version` and `--help` answer without the engine, torch or the language server's libraries."""
    code = (
        "import sys; from exportlens.cli import main; sys.argv = ['exportlens', 'check', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))\n"
        "print('OURS', *sorted(name for name in sys.modules if name.startswith('exportlens')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    loaded, ours = done.stdout.splitlines()[-2:]
    assert "click" in loaded.split()
    assert not {"torch", "numpy", "libcst", "pygls", "lsprotocol"} & set(loaded.split())
    assert "exportlens.engine" not in ours.split()


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    command = f"{sys.executable} -m exportlens check --output-format json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.stderr == ""


OTHERS = """import random

import mlx.nn as nn
from flax import linen


class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * random.random()
        return x


class Dense(linen.Module):
    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x if x.sum() > 0 else x.numpy()
"""


def test_modules_of_other_frameworks_are_not_judged(tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    assert found("others.py", cwd=tmp_path) == []
    (tmp_path / "others.py").write_text(OTHERS.replace("mlx.nn", "torch.nn"))
    assert "EXL101" in [each["code"] for each in found("others.py", cwd=tmp_path)]


def test_a_defect_of_its_own_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    # An installation whose interpreter lacks a file.
    broken = "import sys; sys.modules['exportlens.inference.machine'] = None; from exportlens.cli import main; main()"
    command = [sys.executable, "-c", broken, "check", "model.py"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ExportLens itself failed") and done.stderr.count("\n") == 1
    told = subprocess.run(
        command,
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, "EXPORTLENS_TRACEBACK": "1"},
    )
    assert "Traceback" in told.stderr
