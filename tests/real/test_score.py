"""`check` on code that nobody here wrote is no worse than docs/accuracy.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.corpus import MODES, Measured, Row, Sources, half, read_rows
from tests.real.report import PACKAGE_MEASURES, PAGE, TITLES, package_table, recorded
from tests.real.score import (
    RESEARCH_ROWS,
    ROWS,
    Error,
    Judged,
    Share,
    check_by_command,
    judge,
    run,
    score,
    table,
)

FIGURES = recorded(PAGE.read_text()) if PAGE.exists() else {}
# Most of the time goes into the first, half of what is left into the last, and no module of the second fails: only `make real` takes
# that long.
LEFT_TO_THE_LONG_RUN = ("transformers", "timm", "torchmetrics")


def worse(judged: list[Judged]) -> list[str]:
    """What dropped below the record of its package, in words."""
    out = []
    for name in sorted({item.row.distribution for item in judged}):
        for mode in MODES:
            now = score([item for item in judged if item.row.distribution == name], mode)
            for measure in PACKAGE_MEASURES:
                then, value = FIGURES.get((name, measure, mode)), getattr(now, measure)
                if then is None or value is None or not value.whole:
                    continue
                assert then.whole == value.whole, f"{PAGE} is old: run python -m tests.real.report"
                alarms = measure.startswith("alarms")
                if value.part > then.part if alarms else value.part < then.part:
                    out.append(f"{name}, {mode}: {TITLES[measure]}: {value}, was {then}")
    return out


def judged_rows(rows: list[Row], sources: Sources) -> list[Judged]:
    judged, seconds, problems = run(rows, sources, check_by_command, whole=False)
    assert not problems, "\n".join(problems)
    assert len(judged) == len(MODES) * len(rows)
    print(f"\n{len(rows)} modules, {seconds:.0f} s\n{table([score(judged, mode) for mode in MODES])}")
    return judged


def test_packages_in_wide_use(packages: Path, everything: bool) -> None:
    rows = [row for row in read_rows(ROWS) if everything or row.distribution not in LEFT_TO_THE_LONG_RUN]
    judged = judged_rows(rows, Sources(packages))
    missing = {row.distribution for row in rows} - {name for name, _, _ in FIGURES}
    assert not missing, f"{PAGE} holds no figures of {sorted(missing)}: run python -m tests.real.report"
    dropped = worse(judged)
    assert not dropped, "\n".join(dropped)


@pytest.mark.parametrize("name", ["dev", "held-out"])
def test_research_packages(name: str, research: Path) -> None:
    rows = [row for row in read_rows(RESEARCH_ROWS) if half(row.distribution) == name]
    dropped = worse(judged_rows(rows, Sources(research)))
    assert not dropped, "\n".join(dropped)


def test_the_record_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("class M:\n    def forward(self, x):\n        return x.data\n")
    failing = Measured("fail", file="m.py", line=3, exception="RuntimeError")
    row = Row("p==1", "m.M", "m.py", "M", (1, 3), {"strict": Measured("ok", "sound"), "non-strict": failing})
    found = Error("m.py", 3, 3, "EXL201", "message", ("m.py:M",))
    judged = [judge(row, mode, [found], Sources(tmp_path), tmp_path) for mode in MODES]
    figures = recorded(f"# x\n\n{package_table(judged)}\n\nmore\n")
    assert figures == {
        ("p", "line", "non-strict"): Share(1, 1),
        ("p", "function", "non-strict"): Share(1, 1),
        ("p", "alarms_in_class", "strict"): Share(1, 1),
        ("p", "alarms_from_entry", "strict"): Share(1, 1),
    }
