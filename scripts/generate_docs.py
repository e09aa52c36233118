"""Write the pages that come from the rules: docs/rules/, docs/graph-breaks.md, and with --exportdb docs/exportdb.md.

    python scripts/generate_docs.py [--exportdb] [--check]

`--check` writes nothing and exits 1 when a page is not what it would write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from exportlens.graph_breaks import graph_breaks
from exportlens.rule import registry
from exportlens.rule_page import page, title

DOCS = Path(__file__).resolve().parent.parent / "docs"
_GROUPS = {
    "1": "Control flow",
    "2": "Mutation and aliasing",
    "3": "Python features",
    "4": "Shapes and dynamism",
    "5": "NumPy, random numbers and time",
    "6": "Modules, inputs and outputs",
    "7": "Control-flow operators and custom operators",
    "8": "Targets",
}


def pages() -> dict[Path, str]:
    """Each page of docs/rules/ and docs/graph-breaks.md with its text."""
    found = {DOCS / "rules" / f"{rule.code}.md": page(rule) for rule in registry()}
    found[DOCS / "rules" / "README.md"] = "\n".join(_index()) + "\n"
    found[DOCS / "graph-breaks.md"] = "\n".join(_graph_breaks()) + "\n"
    return found


def _index() -> Iterator[str]:
    yield "# Rules"
    for digit, group in _GROUPS.items():
        rules = [rule for rule in registry() if rule.code.startswith(f"EXL{digit}")]
        if not rules:
            continue
        yield f"\n## {group}\n"
        yield "| code | name | strict | non-strict | fix | |"
        yield "|---|---|---|---|---|---|"
        for rule in rules:
            yield (
                f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.outcome.strict.value} "
                f"| {rule.outcome.non_strict.value} | {'yes' if rule.has_fix() else ''} | {title(rule)} |"
            )
    yield "\nStrict and non-strict say what torch 2.13 does; its page has the other versions measured."


_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{code}.html"


def _graph_breaks() -> Iterator[str]:
    rows = graph_breaks().values()
    named = [row for row in rows if row.rules]
    yield "# torch's graph breaks and the rules\n"
    yield (
        "What strict tracing stops at carries a code of torch's own registry (torch/_dynamo/graph_break_registry.json). "
        f"Of its {len(rows)} types in torch 2.13, {len(named)} are known to a rule; a failed export whose line no rule "
        "had flagged names them."
    )
    yield "\n## Types that a rule knows\n"
    yield "| code | what torch says | rules |"
    yield "|---|---|---|"
    for row in named:
        links = ", ".join(f"[{code}](rules/{code}.md)" for code in row.rules)
        yield f"| [{row.code}]({_PAGE.format(code=row.code.lower())}) | {_cell(row.type)} | {links} |"
    for reason in dict.fromkeys(row.reason for row in rows if not row.rules):
        yield f"\n## No rule\n\n{reason}\n"
        for row in rows:
            if not row.rules and row.reason == reason:
                yield f"- {row.code}: {_cell(row.type)}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write the pages that come from the rules.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a page is out of date"
    )
    parser.add_argument(
        "--exportdb", action="store_true", help="also docs/exportdb.md, which exports torch's examples"
    )
    options = parser.parse_args()
    wanted = pages()
    if options.exportdb:
        from exportdb import table

        wanted[DOCS / "exportdb.md"] = table()
    stale = [
        path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    left = [path for path in (DOCS / "rules").glob("*.md") if path not in wanted]
    if options.check:
        for path in [*stale, *left]:
            print(
                f"{path.relative_to(DOCS.parent)} is out of date: run scripts/generate_docs.py",
                file=sys.stderr,
            )
        return 1 if stale or left else 0
    for path in left:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    print(f"{len(stale)} pages written, {len(wanted) - len(stale)} current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
