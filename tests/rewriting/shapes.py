"""Print how many distinct shapes of code each rule's rewrite is tried on, and the refusals met.

    python -m tests.rewriting.shapes [FOLDER ...]     # folders: other modules, a column of their own

A shape is the flagged statement without its names and its constants: two branches that differ in those alone are one.
The pairs of cases/ are exported and compared by test_pairs.py: in both modes as they are new, all of them by `make pairs`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from exportlens.config import NEWEST_TORCH, Config
from exportlens.engine import Engine
from exportlens.finding import Finding
from exportlens.outcome import Mode
from exportlens.proof.example import whole_file
from exportlens.rule import registry

from tests.rewriting.fixing_all import FILE
from tests.rewriting.test_pairs import CASES, read

NO_FIX = "No fix offered: "


class _Nameless(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("_", node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg("_")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(type(node.value).__name__)


def shape(text: str, line: int) -> str:
    """The innermost statement that holds `line` (from 1), without names and constants; attributes keep theirs."""
    statements = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    innermost = max(statements, key=lambda node: (node.lineno, node.col_offset), default=None)
    return ast.dump(_Nameless().visit(innermost)) if innermost else ""


def findings(text: str) -> list[Finding]:
    engine = Engine(Config(root=Path("/"), modes=tuple(Mode), torch_version=NEWEST_TORCH))
    engine.update(FILE, text)
    return [each for each in engine.with_fixes(engine.check(FILE)) if each.path == FILE]


def sources(arguments: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    yield "pairs", [read(case)[0] for case in CASES]
    yield "rules' examples", [whole_file(example.bad) for rule in registry() for example in rule.examples]
    for argument in arguments:
        files = sorted(Path(argument).rglob("*.py"))
        yield Path(argument).name, [file.read_text(encoding="utf-8", errors="replace") for file in files]


def main() -> int:
    shapes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    refusals: Counter[str] = Counter()
    names = []
    for name, texts in sources(sys.argv[1:]):
        names.append(name)
        for text in texts:
            for finding in findings(text):
                if finding.fix is not None:
                    shapes[finding.code, name].add(shape(text, finding.range.start.line + 1))
                for note in finding.notes:
                    if note.startswith(NO_FIX):
                        refusals[re.sub(r"`[^`]*`", "`_`", note.removeprefix(NO_FIX))] += 1
    print("| rule | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
    titles = {rule.code: rule.name for rule in registry()}
    for code in sorted({code for code, _ in shapes}):
        print(
            f"| {code} {titles[code]} | " + " | ".join(str(len(shapes[code, each])) for each in names) + " |"
        )
    totals = [sum(len(found) for (_, name), found in shapes.items() if name == each) for each in names]
    print("| together | " + " | ".join(map(str, totals)) + " |")
    print(f"\n{len(refusals)} distinct refusals, {refusals.total()} in all:\n")
    for reason, times in sorted(refusals.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"- {times} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
