"""A rule's page in Markdown, made from its class: for `exportlens rule CODE`, docs/rules/ and the editor."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.outcome import Mode, Outcome, Result, TorchVersion
from exportlens.rule import Example, Rule

_REFERENCES = "## References"
_WORDS = {
    Result.FAILS: "fails",
    Result.WRONG: "exports, wrong",
    Result.BAKED: "exports, a value frozen",
    Result.OK: "exports",
}


def title(rule: Rule) -> str:
    """The first line of the rule's documentation."""
    return rule.documentation().partition("\n")[0]


def page(rule: Rule) -> str:
    """The whole page: what it does, why it matters, example, use instead, outcome, references."""
    text, _, references = rule.documentation().partition(_REFERENCES)
    parts = [f"# {rule.name} ({rule.code})", text.strip()]
    if rule.examples:
        first = rule.examples[0]
        parts += ["## Example", _code(first.bad), "## Use instead", _code(first.good)]
    parts.append("\n".join(["## Outcome", "", *(_of_targets(rule) if rule.targets else _outcome(rule))]))
    parts.append(
        "A fix is offered where it can be proved." if rule.has_fix() else "There is no automatic fix."
    )
    if references.strip():
        parts += [_REFERENCES, references.strip()]
    return "\n\n".join(parts) + "\n"


def _code(text: str) -> str:
    return f"```python\n{text.strip()}\n```"


def _outcome(rule: Rule) -> Iterator[str]:
    kinds: list[tuple[Outcome, Example | None]] = []
    for outcome, example in [(rule.outcome, None), *((each.outcome, each) for each in rule.examples)]:
        if outcome is not None and all(outcome != known for known, _ in kinds):
            kinds.append((outcome, example))
    for outcome, example in kinds:
        if example is not None:
            yield f"For code as in `{_telling_line(example)}`:"
            yield ""
        yield from _table(rule.measured(outcome))
        yield ""


def _of_targets(rule: Rule) -> Iterator[str]:
    yield (
        "torch exports it. The rule looks at code where one of these targets is configured (`target` in "
        "`[tool.exportlens]`, or `exportlens check --target NAME`), which do not take it:"
    )
    yield ""
    yield from (f"- {target}" for target in rule.targets)


def _telling_line(example: Example) -> str:
    lines = [line.strip() for line in example.bad.strip().splitlines() if line.strip()]
    after = [line for line in lines if not line.startswith(("def ", "class ", "import ", "from ", "@"))]
    return max(after or lines, key=len)


def _table(outcome: Outcome) -> Iterator[str]:
    versions = sorted({*map(TorchVersion.parse, outcome.measured), *_bounds(outcome)}, reverse=True)
    if not versions:
        yield f"- strict: {_WORDS[outcome.strict]}"
        yield f"- non-strict: {_WORDS[outcome.non_strict]}"
        return
    yield "| torch | strict | non-strict | |"
    yield "|---|---|---|---|"
    for version in versions:
        cells = [_WORDS[outcome.result(version, mode)] for mode in (Mode.STRICT, Mode.NON_STRICT)]
        yield f"| {version} | {cells[0]} | {cells[1]} | {outcome.source(version, Mode.NON_STRICT)} |"


def _bounds(outcome: Outcome) -> Iterator[TorchVersion]:
    """The versions around each stated change, where nothing was measured."""
    if not outcome.measured:
        for text in outcome.before:
            bound = TorchVersion.parse(text)
            yield TorchVersion(bound.major, bound.minor - 1)
            yield bound
