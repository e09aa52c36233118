"""Many models on many targets: a bounded pool of workers, or a Ray cluster; one JSON line per model as it
comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exportlens.export.models import find_models
from exportlens.export.request import ExportRequest
from exportlens.export.session import Session, run_export

Row = dict[str, Any]
Tell = Callable[[Row], None]


@dataclass(frozen=True, slots=True)
class SurveyJob:
    """One model to confirm; `key` changes with its file's text, the mode and the targets."""

    request: ExportRequest
    key: str


def collect_jobs(files: Iterable[Path], template: ExportRequest) -> list[SurveyJob]:
    """A job for every Module class in these files, with what static analysis proposes as its inputs.

    `template` gives mode, targets and limits; its model is not used.
    """
    found: list[SurveyJob] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        words = (text, template.mode, *template.targets)
        digest = hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]
        for info in find_models(file.absolute(), text):
            if info.kind == "module":
                request = replace(template, model=info.model, proposals=info.proposals)
                found.append(SurveyJob(request, f"{info.model}#{digest}"))
    return found


def read_results(path: Path) -> dict[str, Row]:
    """Earlier results by key; a line that was cut off when a survey was ended counts for nothing."""
    found: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
                found[row["key"]] = row
            except (ValueError, KeyError, TypeError):
                continue
    return found


def end_last_line(path: Path) -> None:
    """End the line that a survey was ended in, so that the next result gets one of its own."""
    if path.exists() and path.read_bytes()[-1:] not in (b"", b"\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def row_of(job: SurveyJob, report: dict[str, Any]) -> Row:
    """A report as one line: what a table of models and targets needs."""
    return {
        "key": job.key,
        **{name: report[name] for name in ("model", "torch", "mode", "ok", "failure", "seconds")},
    } | {
        "modes": [{"mode": m["mode"], "ok": m["ok"], "failure": m["failure"]} for m in report["modes"]],
        "targets": [
            {
                name: target[name]
                for name in ("name", "status", "seconds", "bytes", "max_abs_error", "failure")
            }
            for target in report["targets"]
        ],
        "findings": [
            {
                "code": f["code"],
                "filename": f["filename"],
                "row": f["location"]["row"],
                "message": f["message"][:300],
            }
            for f in report["findings"]
        ],
    }


async def _pool(jobs: list[SurveyJob], interpreter: Path, workers: int) -> AsyncIterator[Row]:
    queue: asyncio.Queue[SurveyJob] = asyncio.Queue()
    for job in jobs:
        queue.put_nowait(job)
    done: asyncio.Queue[Row] = asyncio.Queue()

    async def work() -> None:
        session = Session(interpreter)
        try:
            while not queue.empty():
                job = queue.get_nowait()
                report = await session.run(job.request)
                done.put_nowait(row_of(job, report.to_json()))
        finally:
            await session.close()

    tasks = [asyncio.create_task(work()) for _ in range(min(workers, len(jobs)))]
    try:
        for _ in jobs:
            getter = asyncio.create_task(done.get())
            await asyncio.wait({getter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            while not getter.done():
                broken = [task for task in tasks if task.done() and task.exception()]
                if broken:
                    getter.cancel()
                    raise broken[0].exception() or RuntimeError("a worker ended")
                await asyncio.wait(
                    {getter, *(t for t in tasks if not t.done())}, return_when="FIRST_COMPLETED"
                )
            yield getter.result()
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
    finally:  # a task that has no more jobs closes its worker by itself
        await asyncio.gather(*tasks, return_exceptions=True)


def survey_locally(jobs: list[SurveyJob], interpreter: Path, workers: int, tell: Tell) -> None:
    """Run the jobs with at most `workers` at a time; `tell` gets each row as it comes."""

    async def whole() -> None:
        async for row in _pool(jobs, interpreter, workers):
            tell(row)

    asyncio.run(whole())


def survey_on_ray(jobs: list[SurveyJob], interpreter: Path, address: str, tell: Tell) -> None:
    """Run the jobs as tasks of an existing Ray cluster; interpreter and files must be at the same paths on
    its nodes.

    Raises ImportError where Ray is not installed, ConnectionError where no cluster answers.
    """
    import ray

    _must_answer(address)
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        task = ray.remote(num_cpus=1, max_retries=2)(_on_node)
        waiting = {task.remote(job.request, str(interpreter)): job for job in jobs}
        while waiting:
            finished, _ = ray.wait(list(waiting), num_returns=1)
            for reference in finished:
                job = waiting.pop(reference)
                tell(row_of(job, ray.get(reference)))
    finally:
        ray.shutdown()


def _must_answer(address: str) -> None:
    """Raise ConnectionError for a `host:port` where nothing listens: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        return  # "auto", "ray://..." and the like are Ray's own to resolve
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ConnectionError(str(error)) from error


def _on_node(request: ExportRequest, interpreter: str) -> dict[str, Any]:
    """One confirmation, on whatever node Ray chose; the report as data, with the node's name."""
    import ray

    report = run_export(Path(interpreter), request).to_json()
    report["node"] = ray.get_runtime_context().get_node_id()
    return report


def cell_of(row: Row, target: str) -> str:
    """What a table shows for one model and target: ok with its seconds, or the stage and kind of the
    failure.
    """
    for entry in row["targets"]:
        if entry["name"] == target:
            if entry["status"] == "ok":
                return f"ok {entry['seconds']:.1f}s"
            failure = entry["failure"] or row["failure"] or {}
            return str(failure.get("kind") or entry["status"])
    return "-"


def summary_lines(rows: list[Row]) -> Iterator[str]:
    """A table of models by targets, and how many are confirmed on each."""
    names = list(dict.fromkeys(entry["name"] for row in rows for entry in row["targets"]))
    table = [["model", *names]]
    for row in sorted(rows, key=lambda row: str(row["model"])):
        table.append([_short(row["model"]), *(cell_of(row, name) for name in names)])
    ok = [sum(cell_of(row, name).startswith("ok") for row in rows) for name in names]
    table.append([f"confirmed of {len(rows)}", *map(str, ok)])
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def _short(model: str) -> str:
    place, _, name = model.rpartition(":")
    return f"{Path(place).name}:{name}"


def why_not(row: Row) -> str:
    """Why a model is not confirmed, as `kind: message`; of targets, each with its name. Empty where it is."""
    if row["ok"]:
        return ""
    if row["failure"]:
        return f"{row['failure']['kind']}: {row['failure']['message']}"
    failed = ((entry["name"], entry["failure"]) for entry in row["targets"] if entry["failure"])
    return "; ".join(f"{name} {failure['kind']}: {failure['message']}" for name, failure in failed)


def matrix_html(rows: list[Row]) -> str:
    """The same table as one self-contained page, with what stands against each model below it; a cell's tooltip has the
    failure's message, or the largest error.
    """
    names = list(dict.fromkeys(entry["name"] for row in rows for entry in row["targets"]))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body, reasons = [], []
    for row in sorted(rows, key=lambda row: str(row["model"])):
        cells = []
        by_name = {entry["name"]: entry for entry in row["targets"]}
        for name in names:
            text = cell_of(row, name)
            kind = "ok" if text.startswith("ok") else "off" if text in ("unavailable", "-") else "bad"
            entry = by_name.get(name) or {}
            said = (entry.get("failure") or row["failure"] or {}).get("message", "")
            if kind == "ok":
                error = entry.get("max_abs_error")
                said = "lowered, not run here" if error is None else f"largest error {error:.2g}"
            title = html.escape(said, quote=True)
            cells.append(f'<td class="{kind}" title="{title}">{html.escape(text)}</td>')
        model, short = html.escape(str(row["model"]), quote=True), html.escape(_short(row["model"]))
        body.append(f'<tr><th title="{model}">{short}</th>{"".join(cells)}</tr>')
        if why := why_not(row):
            reasons.append(f"<dt>{short}</dt><dd>{html.escape(why)}</dd>{_places(row)}")
    counts = (sum(cell_of(row, name).startswith("ok") for row in rows) for name in names)
    totals = "".join(f"<td>{count}</td>" for count in counts)
    against = f"<h2>What stands against them</h2><dl>{''.join(reasons)}</dl>" if reasons else ""
    torch = html.escape(", ".join(sorted({str(row["torch"]) for row in rows if row["torch"]})))
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>ExportLens survey</title><style>'
        ":root{color-scheme:light dark;--line:#d4d7dd;--soft:#f5f6f8;--ok:#dcf5e3;--bad:#fde3e3;--dim:#646b76}"
        "@media(prefers-color-scheme:dark){:root{--line:#383d46;--soft:#23272e;--ok:#1d3d28;--bad:#4a2326;--dim:#9aa2af}}"
        "body{font:14px system-ui,sans-serif;margin:20px}"
        "table{border-collapse:collapse}th,td{border:1px solid var(--line);padding:4px 10px;text-align:left}"
        "thead th{position:sticky;top:0;background:var(--soft)}.ok{background:var(--ok)}.bad{background:var(--bad)}"
        ".off,.dim{color:var(--dim)}dt{font-weight:600;margin-top:10px}dd{margin:2px 0 0 16px;overflow-wrap:anywhere}</style>"
        f'<h1>Survey: {len(rows)} models</h1><p class="dim">torch {torch or "?"}</p>'
        f"<table><thead><tr><th>model</th>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody><tfoot><tr><th>confirmed of {len(rows)}</th>{totals}</tr></tfoot></table>{against}</html>"
    )


def _places(row: Row) -> str:
    """The lines that are blamed, with what is said of them."""
    found = (f"{Path(each['filename']).name}:{each['row']}: {each['message']}" for each in row["findings"])
    return "".join(f'<dd class="dim">{html.escape(text)}</dd>' for text in dict.fromkeys(found))
