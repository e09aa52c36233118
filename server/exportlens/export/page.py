"""A report as one self-contained HTML page: the file that `--html` writes, and the editor's webview."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

from exportlens.export.report import Report

ASSETS = Path(__file__).parent / "page_assets"
VENDORED = ("vendor/cytoscape.min.js", "vendor/elk.bundled.js")
"""Cytoscape.js (MIT) draws the graph, elkjs (EPL-2.0) lays it out; their licences lie beside them."""
LARGEST_SOURCE = 1 << 20

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style{nonce}>{style}</style>
</head>
<body>
<header id="head"></header>
<h2>Stages</h2><div id="ladder"></div>
<h2>Findings</h2><div id="findings"></div>
<h2>Programs and targets</h2><div id="targets"></div>
<h2>Graph and source</h2>
<div class="split">
<div class="panel"><div class="bar"><button id="fold">Fold all</button><button id="unfold">Unfold all</button>
<input id="search" placeholder="operator or module" aria-label="Search the graph"><span id="count"
class="dim"></span></div>
<div id="graph"></div><div id="legend" class="dim"></div><div id="detail" class="dim">Click a node for its line, a folded submodule to open it,
a source line for its nodes.</div></div>
<div class="panel"><div class="bar"><select id="file" aria-label="Source file"></select></div>
<div id="source" class="mono"></div></div>
</div>
<h2>Comparison with eager (largest absolute error)</h2><div id="comparison"></div>
<h2>Operators</h2><div id="operators"></div>
<script type="application/json" id="data"{nonce}>{data}</script>
{scripts}
</body>
</html>
"""


def _sources(report: Report) -> dict[str, str]:
    """The text of every user file that a finding or a node points to."""
    files = {str(finding.path) for finding in report.findings}
    files |= {node["file"] for node in (report.graph or {}).get("nodes", []) if node.get("file")}
    found: dict[str, str] = {}
    for file in sorted(files):
        path = Path(file)
        try:
            if path.stat().st_size <= LARGEST_SOURCE:
                found[file] = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return found


def page_data(report: Report) -> dict[str, Any]:
    """What the page shows: the report, the graph (or None) and the sources by path."""
    return {"report": report.to_json(), "graph": report.graph, "sources": _sources(report)}


def page_html(report: Report, *, nonce: str | None = None) -> str:
    """The page. `nonce` is for a webview whose content security policy asks for one on scripts and styles."""
    mark = f' nonce="{nonce}"' if nonce else ""
    # a "<" in a string could end the script element, or begin a comment in it
    data = json.dumps(page_data(report)).replace("<", "\\u003c")
    scripts = [*VENDORED, "layout.js", "report.js"]
    return _PAGE.format(
        title=html.escape(f"{report.model} - ExportLens"),
        nonce=mark,
        style=(ASSETS / "report.css").read_text(encoding="utf-8"),
        data=data,
        scripts="\n".join(
            f"<script{mark}>{(ASSETS / name).read_text(encoding='utf-8')}</script>" for name in scripts
        ),
    )


def write_page(report: Report, path: Path) -> None:
    """Write the page to `path`. Raises OSError where that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(page_html(report), encoding="utf-8")
    os.replace(part, path)
