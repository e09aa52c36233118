"""Nothing that a model does takes the session down, and what it did is reported as what it was."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Progress, Session

from .conftest import MODELS, Runner

UNRULY = MODELS / "unruly.py"


LINES = UNRULY.read_text().splitlines()


def blamed(report: Report) -> set[str]:
    """Each finding's code with its line, stripped."""
    return {f"{each.code} {LINES[each.range.start.line].strip()}" for each in report.findings}


def is_sound(worker: Runner) -> bool:
    return worker.export("unruly.py:Sound", mode="non-strict").ok


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("Exits", "eager", "EXP008 sys.exit(3)"),
        ("ExitsAtOnce", "crash", None),
        ("Aborts", "crash", "EXP011 os.abort()"),
        ("ReadsNowhere", "crash", "EXP011 ctypes.string_at(0)"),
        ("Recurses", "eager", "EXP008 return self.forward(x)"),
    ],
)
def test_a_model_that_ends_its_process(worker: Runner, name: str, kind: str, line: str | None) -> None:
    report = worker.export(f"unruly.py:{name}")
    assert blamed(report) == ({line} if line else set())
    assert report.failure is not None
    assert (report.failure.stage, report.failure.kind) == ("eager", kind)
    assert not report.ok
    assert is_sound(worker)


@pytest.mark.parametrize(
    ("name", "stage", "limit", "line"),
    [
        ("Hangs", "eager", 2, "time.sleep(0.1)"),
        ("HangsIgnoringSignals", "eager", 2, "time.sleep(0.1)"),
        ("HangsInTheConstructor", "construct", 2, "time.sleep(3600)"),
        ("HangsWhileTraced", "export", 4, "time.sleep(3600)"),
    ],
)
def test_a_model_that_hangs_is_ended_at_its_time_limit(
    worker: Runner, name: str, stage: str, limit: float, line: str
) -> None:
    report = worker.export(f"unruly.py:{name}", timeout=limit, mode="non-strict")
    assert blamed(report) == {f"EXP011 {line}"}
    assert report.failure is not None
    assert (report.failure.stage, report.failure.kind) == (stage, "timeout")
    assert is_sound(worker)


def test_a_model_that_forks_is_heard_once(worker: Runner) -> None:
    report = worker.export("unruly.py:Forks", mode="non-strict")
    assert report.failure is None or report.failure.kind in ("export", "eager")
    assert is_sound(worker)


def test_what_a_model_leaves_running_is_ended(worker: Runner, tmp_path: Path) -> None:
    note = tmp_path / "daemon"
    worker.export("unruly.py:LeavesADaemon", init=repr(str(note)), mode="non-strict")
    pid = int(note.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("hangs", [False, True])
def test_temporary_files_go_with_their_request(worker: Runner, tmp_path: Path, hangs: bool) -> None:
    note = tmp_path / "names"
    init = f"{str(note)!r}, {hangs}"
    worker.export(
        "unruly.py:LeavesTemporaryFiles", init=init, mode="non-strict", timeout=4 if hangs else None
    )
    names = note.read_text().split()
    assert names and not [name for name in names if Path(name).exists()]


def test_what_a_model_prints_goes_to_the_log_only(worker: Runner) -> None:
    report = worker.export("unruly.py:Prints", mode="non-strict")
    assert report.ok, report.failure
    assert "noise" in report.log
    assert "FakeTensor" in report.log  # printed while tracing
    assert len(report.log) < 1_000_000


@pytest.mark.parametrize("name", ["ReadsTheTerminal", "ChangesFolder"])
def test_a_model_that_reads_stdin_or_changes_folder(worker: Runner, name: str, tmp_path: Path) -> None:
    report = worker.export(f"unruly.py:{name}", mode="non-strict", targets=("torch",), output=tmp_path)
    assert report.ok, report.failure
    assert (tmp_path / f"{name}.torch.pt2").is_file()


def test_a_model_that_closes_the_protocol(worker: Runner) -> None:
    report = worker.export("unruly.py:ClosesEverything", mode="non-strict")
    assert report.failure is not None and report.failure.kind == "crash"
    assert is_sound(worker)


def test_the_memory_limit_ends_a_model(worker: Runner) -> None:
    report = worker.export("unruly.py:Devours", mode="non-strict", memory_limit=1 << 30)
    assert report.failure is not None and report.failure.kind == "memory"
    assert "--memory-limit" in report.failure.message
    [line] = blamed(report)
    assert line in ("EXP011 hoard.append(torch.ones(4_000_000))  # 16 MB each", "EXP011 time.sleep(0.01)")
    assert is_sound(worker)


def test_fake_cuda_parameters_end_the_child_only(worker: Runner) -> None:
    report = worker.export("unruly.py:FakeCuda", mode="non-strict")
    assert report.failure is not None and report.failure.kind == "crash"
    assert "SIGABRT" in report.failure.message
    assert blamed(report) == {"EXP011 return x @ self.weight.T"}
    assert is_sound(worker)


def test_cancel_ends_a_run_at_once(worker: Runner) -> None:
    async def cancel_when_running() -> tuple[float, str]:
        seen = asyncio.Event()

        def listen(progress: Progress) -> None:
            if progress.stage == "eager":
                seen.set()

        request = ExportRequest(f"{UNRULY}:Hangs", ModelInputs(inputs="(torch.randn(2, 8),)"))
        task = asyncio.ensure_future(worker.session.run(request, listen))
        await seen.wait()
        started = time.perf_counter()
        worker.session.cancel()
        report = await task
        assert report.failure is not None
        return time.perf_counter() - started, report.failure.kind

    seconds, kind = worker.run(cancel_when_running())
    assert kind == "cancelled"
    assert seconds < 2
    assert is_sound(worker)


@pytest.mark.parametrize(
    "stage", ["import", "construct", "inputs", "eager", "export", "compare", "lower", "save", "run"]
)
def test_killing_the_child_at_any_stage_leaves_the_rest_sound(
    worker: Runner, tmp_path: Path, stage: str
) -> None:
    before = hashlib.sha256(UNRULY.read_bytes()).hexdigest()

    async def kill_at(wanted: str) -> None:
        def listen(progress: Progress) -> None:
            if progress.stage == wanted:
                os.kill(children_of(worker.session)[0], signal.SIGKILL)

        given = ModelInputs(inputs="(torch.randn(2, 8),)")
        request = ExportRequest(
            f"{UNRULY}:Sound", given, targets=("torch",), output=tmp_path, mode="non-strict"
        )
        report = await worker.session.run(request, listen)
        assert not report.ok
        kinds = {report.failure.kind} if report.failure else set()
        kinds |= {target.failure.kind for target in report.targets if target.failure}
        assert "crash" in kinds
        assert not list(tmp_path.iterdir())

    worker.run(kill_at(stage))
    assert is_sound(worker)
    assert hashlib.sha256(UNRULY.read_bytes()).hexdigest() == before
    assert not list(MODELS.glob("__pycache__"))


def children_of(session: Session) -> list[int]:
    from exportlens.export.worker.processes import descendants

    process = session._worker._process
    assert process is not None
    found: list[int] = []
    deadline = time.monotonic() + 5
    while not found and time.monotonic() < deadline:
        found = descendants(process.pid)
    return found


def test_killing_the_warm_parent_costs_one_run(worker: Runner) -> None:
    async def kill_parent() -> str:
        def listen(progress: Progress) -> None:
            if progress.stage == "eager":
                process = worker.session._worker._process
                assert process is not None
                os.kill(process.pid, signal.SIGKILL)

        request = ExportRequest(f"{UNRULY}:Hangs", ModelInputs(inputs="(torch.randn(2, 8),)"))
        report = await worker.session.run(request, listen)
        assert report.failure is not None
        return report.failure.kind

    assert worker.run(kill_parent()) == "crash"
    assert is_sound(worker)


def test_a_second_export_starts_many_times_faster() -> None:
    """The first one waits for torch; the later ones are forked from a process that has it."""
    runner = Runner()

    def seconds_until_import() -> float:
        started = time.perf_counter()
        first: list[float] = []
        request = ExportRequest(f"{UNRULY}:Sound", ModelInputs(inputs="(torch.randn(2, 8),)"), targets=())
        runner.run(
            runner.session.run(
                request,
                lambda p: first.append(time.perf_counter() - started) if p.stage == "import" else None,
            )
        )
        return first[0]

    try:
        cold = seconds_until_import()
        warm = min(seconds_until_import() for _ in range(4))
    finally:
        runner.close()
    assert warm * 15 < cold, (warm, cold)


def test_without_fork_each_run_gets_a_process() -> None:
    runner = Runner(fork=False)
    try:
        report = runner.export("unruly.py:Hangs", mode="non-strict", timeout=2)
        assert report.failure is not None and report.failure.kind == "timeout"
        assert is_sound(runner)
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("interpreter", "words"),
    [("/nowhere/python", "does not start"), ("/bin/true", "is not a usable Python")],
)
def test_an_interpreter_that_is_none(interpreter: str, words: str) -> None:
    async def run() -> str:
        session = Session(Path(interpreter))
        try:
            report = await session.run(ExportRequest(f"{UNRULY}:Sound", targets=()))
        finally:
            await session.close()
        assert report.failure is not None and report.failure.kind == "unavailable"
        assert report.exit_code == 2
        return report.failure.message

    message = asyncio.run(run())
    assert interpreter in message and words in message


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    import subprocess

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    interpreter = tmp_path / "bare" / "bin" / "python"

    async def run() -> str:
        session = Session(interpreter)
        try:
            report = await session.run(ExportRequest(f"{UNRULY}:Sound", targets=()))
        finally:
            await session.close()
        assert report.failure is not None and report.failure.kind == "unavailable"
        return report.failure.message

    message = asyncio.run(run())
    assert f"{interpreter} -m pip install torch" in message
