"""A failed export's finding carries the fix of the rule that knows its cause, and with it the model exports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from exportlens.export.models import proposals_for
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest
from exportlens.fixing import apply_edits
from exportlens.repairing import findings_with_fixes

from .conftest import Runner

HEAD = "import torch\nfrom torch import nn\n"
MAIN = '\nif __name__ == "__main__":\n    torch.export.export(Net(), {inputs})\n'

SIZE_OF_DATA = """
class Net(nn.Module):
    def forward(self, x, n):
        k = n.item()
        y = torch.zeros(1, 1, k, 4) + x.mean()
        return nn.functional.scaled_dot_product_attention(y, y, y)
"""
SCORES = """
class Scores:
    def __init__(self, mean, top):
        self.mean = mean
        self.top = top

class Net(nn.Module):
    def forward(self, x):
        return Scores(x.mean(), x.max())
"""
CACHED = """
class StaticCache:
    def __init__(self, keys):
        self.keys = keys

class Decoder(nn.Module):
    def forward(self, x, use_cache=True):
        y = x * 2
        return (y, StaticCache(y)) if use_cache else (y,)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x):
        return self.decoder(x)
"""
# The same where nothing that is read shows of which class the output is: torch's words alone do.
HIDDEN = {"return Scores(": "return KINDS[FIRST](", "StaticCache(y))": "KINDS[FIRST](y))"}
KINDS = "\nKINDS = {kind.__name__: kind for kind in list(globals().values()) if isinstance(kind, type)}\nFIRST = min(KINDS)\n"
PLAIN = "(torch.randn(2, 4),)"


def hidden(text: str) -> str:
    for shown, unknown in HIDDEN.items():
        text = text.replace(shown, unknown)
    before, after = text.split("\n\nclass ", 1)
    return f"{before}\n{KINDS}\nclass {after}"


@pytest.mark.parametrize(
    ("text", "inputs", "code", "line"),
    [
        (SIZE_OF_DATA, "(torch.randn(4, 4), torch.tensor(3))", "EXL408", "torch._check(k != 0)"),
        (SCORES, PLAIN, "EXL601", "list(vars(value).values())"),
        (hidden(SCORES), PLAIN, "EXL601", "list(vars(value).values())"),
        (CACHED, PLAIN, "EXL602", "list(vars(value).values())"),
        (hidden(CACHED), PLAIN, "EXL602", "self.decoder(x, use_cache=False)"),
    ],
    ids=["a size of data", "a class", "a class torch names", "a cache", "a cache torch names"],
)
def test_the_fix_on_the_failure_makes_it_export(
    worker: Runner, tmp_path: Path, text: str, inputs: str, code: str, line: str
) -> None:
    def export(whole: str) -> Report:
        path.write_text(whole)
        request = ExportRequest(f"{path}:Net", mode="both", targets=())
        report: Report = worker.run(worker.session.run(replace(request, proposals=proposals_for(request))))
        return report

    path, before = tmp_path / "net.py", HEAD + text + MAIN.format(inputs=inputs)
    report = export(before)
    assert [mode.failure.kind for mode in report.modes if mode.failure] == ["export", "export"]
    [finding] = [found for found in findings_with_fixes(report, "both") if found.fix is not None]
    assert finding.code == "EXP001" and finding.data["rule"] == code
    assert finding.fix is not None and any(f"Fix by {code}" in note for note in finding.notes)
    after = apply_edits(before, finding.fix.edits)
    assert line in after
    mended = export(after)
    assert mended.ok, mended.failure
