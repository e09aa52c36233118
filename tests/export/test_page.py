"""The report page stands alone, carries the whole report, and no text of the user's can break out of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from exportlens.export.page import page_html, write_page
from exportlens.export.report import Failure, Report

from .conftest import Runner

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def test_the_page_has_the_report_the_graph_and_the_source(worker: Runner, tmp_path: Path) -> None:
    report = worker.export(
        "traps.py:Convolves", "(torch.randn(2, 3, 8, 8),)", targets=("torch",), mode="both"
    )
    write_page(report, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    match = DATA.search(text)
    assert match is not None
    data = json.loads(match[1])
    assert data["report"]["ok"] and data["report"]["model"].endswith("traps.py:Convolves")
    nodes = {node["op"]: node for node in data["graph"]["nodes"]}
    convolution = nodes["aten.conv2d.default"]
    assert convolution["module"] == "conv"
    source = data["sources"][convolution["file"]].splitlines()
    assert "self.conv(x)" in source[convolution["line"] - 1]
    ids = {node["id"] for node in data["graph"]["nodes"]}
    assert all(start in ids and end in ids for start, end in data["graph"]["edges"])
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", text)


def test_words_of_the_user_stay_words() -> None:
    report = Report("</script><script>alert(1)</script>:Net", failure=Failure("import", "import", "<!-- <b>"))
    text = page_html(report)
    match = DATA.search(text)
    assert match is not None
    assert json.loads(match[1])["report"]["model"] == "</script><script>alert(1)</script>:Net"
    assert "<script>alert(1)" not in text


def test_a_webview_gets_its_nonce_on_every_script_and_style() -> None:
    text = page_html(Report("net.py:Net"), nonce="abc")
    for tag in re.findall(r"<(?:script|style)\b[^>]*>", text.split("<body>")[0] + DATA.sub("", text)):
        assert 'nonce="abc"' in tag or "<script>" not in tag
