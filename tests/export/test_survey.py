"""A survey runs every model, goes on where it was ended, and gives the same rows on a cluster of several
nodes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner
from exportlens.cli.survey import command
from exportlens.export.request import ExportRequest
from exportlens.export.survey import SurveyJob, collect_jobs, read_results, survey_locally, survey_on_ray

TEXT = dedent(
    """
    import torch
    from torch import nn

    class Good(nn.Module):
        def forward(self, x):
            return x + 1

    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    """
)
TEMPLATE = ExportRequest("any:model", mode="non-strict", targets=("torch",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(TEXT)
    return tmp_path


def verdicts(rows: list[dict[str, Any]]) -> dict[str, tuple[bool, str]]:
    return {row["model"].rpartition(":")[2]: (row["ok"], row["targets"][0]["status"]) for row in rows}


EXPECTED = {"Good": (True, "ok"), "Branches": (False, "skipped")}


def test_each_model_is_tried(folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    jobs = collect_jobs([folder / "nets.py"], TEMPLATE)
    survey_locally(jobs, Path(sys.executable), 2, rows.append)
    assert verdicts(rows) == EXPECTED


def test_a_survey_goes_on_where_it_was(folder: Path) -> None:
    results, page = folder / "results.jsonl", folder / "matrix.html"
    words = [str(folder), "--results", str(results), "--mode", "non-strict", "--python", sys.executable]
    first = CliRunner().invoke(command, words)
    assert first.exit_code == 1, first.output
    assert "nets.py:Branches: failed (export): " in first.output and "[2/2]" in first.output
    lines = results.read_text().splitlines()
    assert len(lines) == 2
    results.write_text(f"{lines[0]}\n{lines[1][:40]}")  # as a survey that was killed leaves it
    assert len(read_results(results)) == 1
    second = CliRunner().invoke(command, [*words, "--html", str(page), "--targets", "torch,"])
    assert "1 of 2 models are in" in second.output and "1 model to confirm on 1 target" in second.output
    assert verdicts(list(read_results(results).values())) == EXPECTED
    text = page.read_text()
    assert "Branches" in text and "confirmed of 2" in second.output and "confirmed of 2" in text
    assert "What stands against them" in text and "nets.py:11: " in text and "torch.cond" in text


def test_a_model_that_only_a_target_fails_is_told_why(folder: Path) -> None:
    (folder / "nets.py").write_text(TEXT.partition("class Branches")[0])
    words = [str(folder), "--results", str(folder / "r.jsonl"), "--mode", "non-strict"]
    result = CliRunner().invoke(command, [*words, "--python", sys.executable, "--targets", "torch,tensorrt"])
    assert "nets.py:Good: failed (tensorrt unavailable): " in result.output


def test_a_changed_file_is_tried_again(folder: Path) -> None:
    before = {job.key for job in collect_jobs([folder / "nets.py"], TEMPLATE)}
    (folder / "nets.py").write_text(TEXT + "\n# changed\n")
    assert before.isdisjoint(job.key for job in collect_jobs([folder / "nets.py"], TEMPLATE))


def test_a_cluster_of_two_nodes_gives_the_same_rows(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        rows: list[dict[str, Any]] = []
        jobs: list[SurveyJob] = collect_jobs([folder / "nets.py"], TEMPLATE)
        survey_on_ray(jobs, Path(sys.executable), cluster.address, rows.append)
    finally:
        cluster.shutdown()
    assert verdicts(rows) == EXPECTED


def test_a_cluster_that_is_not_there_is_told(folder: Path) -> None:
    words = [str(folder), "--results", str(folder / "r.jsonl"), "--ray", "127.0.0.1:1"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2 and "no Ray cluster answers" in result.output
