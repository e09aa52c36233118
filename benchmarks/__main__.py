"""`python -m benchmarks`: check against TorchFix and a bare parse, keystroke to diagnostics, a second export's start."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from benchmarks import bare_parse, export_start, keystroke
from benchmarks.files import count_lines, modeling_files
from benchmarks.processes import CommandFailed, Contender, Times, race

ROOT = Path(__file__).resolve().parent.parent
TORCHFIX = ROOT / ".tools" / "bench" / "bin" / "torchfix"
RESULT = ROOT / "artifacts" / "bench.json"

# What the wheel with the compiled interpreter holds (setup.py).
COMPILED = ROOT / ".tools" / "compiled"

CHECK, OTHER, BARE = "exportlens check", "torchfix", "libcst.parse_module"
SOURCES = "exportlens, not compiled"
AT_LEAST_FASTER_THAN_TORCHFIX = 10.0
AT_MOST_SLOWER_THAN_PARSING = 2.5
AT_MOST_MS_TO_START = 200


def table(
    times: dict[str, Times],
    keys: keystroke.KeystrokeTimes,
    starts: export_start.StartTimes,
    files: list[Path],
) -> str:
    check, other, bare = times[CHECK], times[OTHER], times[BARE]
    faster = other.median_wall / check.median_wall
    slower = check.median_wall / bare.median_wall
    rows = [
        f"{len(files)} modeling files of transformers, {count_lines(files):,} lines; medians, new processes",
        "",
        f"{'':24}{'wall':>10}{'processor':>12}",
        *(
            f"{name:24}{entry.median_wall:9.2f}s{entry.median_processor:11.2f}s"
            for name, entry in times.items()
        ),
        "",
        f"check is {faster:.1f} times as fast as TorchFix (aim: {AT_LEAST_FASTER_THAN_TORCHFIX:.0f}); "
        f"by processor time {other.median_processor / check.median_processor:.1f}",
        f"check takes {slower:.2f} times as long as a bare parse (aim: {AT_MOST_SLOWER_THAN_PARSING}); "
        f"by processor time {check.median_processor / bare.median_processor:.2f}",
        "",
        f"{files[0].name}, {count_lines(files[:1]):,} lines, over stdio:",
        f"  first diagnostics {keys.opening * 1000:.0f} ms after opening",
        f"  keystroke to diagnostics: median {keys.median * 1000:.0f} ms, worst {keys.worst * 1000:.0f} ms, "
        f"{keys.opening / keys.median:.1f} times as fast as the opening",
        "",
        f"an export begins with the model {starts.first:.2f} s after the request where torch is yet to be imported, "
        f"{starts.later * 1000:.0f} ms after it later on: {starts.first / starts.later:.0f} times as fast",
        f"  (aim: under {AT_MOST_MS_TO_START} ms; a small model's export is there after "
        f"{starts.later_whole * 1000:.0f} ms)",
    ]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--files", type=int, default=50, help="how many modeling files (default: 50)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    options = parser.parse_args()
    try:
        files = modeling_files(options.files)
        for needed in (TORCHFIX, COMPILED):
            if not needed.exists():
                raise FileNotFoundError(f"{needed} is missing: make bench brings it in")
    except FileNotFoundError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    compiled = {"PYTHONPATH": str(COMPILED)}
    check = [sys.executable, "-m", "exportlens", "check", "--output-format", "json"]
    contenders = [
        Contender(CHECK, [*check, *files], accepted=(0, 1), environment=compiled),
        Contender(SOURCES, [*check, *files], accepted=(0, 1)),
        Contender(BARE, [sys.executable, bare_parse.__file__, *files], accepted=(0,)),
        Contender(OTHER, [TORCHFIX, *files], accepted=(0, 1)),
    ]
    try:
        keys = asyncio.run(keystroke.measure(files[0], compiled))
        starts = asyncio.run(export_start.measure())
        times = race(contenders, options.rounds, lambda line: print(line, file=sys.stderr, flush=True))
    except (CommandFailed, RuntimeError, asyncio.TimeoutError) as error:
        print(f"bench: {error or 'the language server did not answer in time'}", file=sys.stderr)
        return 2
    print(table(times, keys, starts, files))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "files": len(files),
                "lines": count_lines(files),
                "wall": {name: entry.wall for name, entry in times.items()},
                "processor": {name: entry.processor for name, entry in times.items()},
                "opening": keys.opening,
                "keystrokes": keys.keystrokes,
                "export_starts": starts.starts,
            },
            indent=2,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
