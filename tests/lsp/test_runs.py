"""What real runs add to the editor: fixes that are tried, and findings that an export confirms or refutes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsp_editor import Editor
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

ROOT = Path(__file__).resolve().parents[2]
PACKS = ROOT / "tests" / "packs"
EXECUTORCH = ROOT / ".tools" / "targets-executorch" / "bin" / "python"
SECONDS = 180  # A first run imports torch; a machine that is busy with other tests takes its time.

GATE = """import torch


class Gate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y


if __name__ == "__main__":
    torch.export.export(Gate(), (torch.randn(2, 3),))
"""
WAVE = """import torch


class Wave(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


if __name__ == "__main__":
    torch.export.export(Wave(), (torch.randn(2, 3),))
"""
METHOD = """import torch


class Predictor:
    def predict(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x * 2
        return x


predictor = Predictor()

if __name__ == "__main__":
    torch.export.export(predictor.predict, (torch.randn(2, 3),))
"""
# Whether the branch is reached depends on a size, which the example inputs decide.
LARGE = """import torch


class Large(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 4:
            if x.sum() > 0:
                x = x * 2
        return x + 1


if __name__ == "__main__":
    torch.export.export(Large(), (torch.randn(2, 3),))
"""


TIED = """import torch


class Tied(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


if __name__ == "__main__":
    rows = torch.export.Dim("rows", max=64)
    others = torch.export.Dim("others", max=64)
    example = (torch.randn(3, 4), torch.randn(3, 4))
    torch.export.export(Tied(), example, dynamic_shapes={"x": {0: rows}, "y": {0: others}})
"""
# XNNPACK has no kernel for whole numbers.
COUNTS = """import torch


class Counts(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1
"""


@pytest_lsp.fixture(
    config=ClientServerConfig(
        server_command=[sys.executable, "-m", "exportlens", "server"],
        # A rule pack whose only fix is wrong on purpose.
        server_env={**os.environ, "PYTHONPATH": str(PACKS)},
    ),
    params=[{}],
    scope="function",
)
async def client(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path
) -> AsyncIterator[None]:
    settings = {"interpreter": sys.executable, "mode": "both", **request.param}
    lsp_client.set_configuration({"exportlens": settings})
    params = types.InitializeParams(
        capabilities=client_capabilities("visual-studio-code"),
        root_uri=tmp_path.as_uri(),
        workspace_folders=[types.WorkspaceFolder(tmp_path.as_uri(), "work")],
        initialization_options=settings,
    )
    result = await lsp_client.initialize_session(params)
    lsp_client.encoding = result.capabilities.position_encoding or "utf-16"
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def editor(client: LanguageClient, tmp_path: Path) -> Editor:
    return Editor(client, tmp_path)


on_save = pytest.mark.parametrize("client", [{"confirmOnSave": True}], indirect=True)


def messages(found: list[types.Diagnostic], code: str) -> str:
    return "\n".join(diagnostic.message for diagnostic in found if diagnostic.code == code)


def save(editor: Editor, uri: str) -> None:
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))


async def titles_at(editor: Editor, uri: str, diagnostic: types.Diagnostic) -> dict[str, types.CodeAction]:
    return {action.title: action for action in await editor.actions(uri, diagnostic.range)}


async def verified(editor: Editor, uri: str, code: str) -> tuple[list[types.Diagnostic], dict[str, Any]]:
    """Take the action that verifies the fix of `code`; what is shown afterwards, and the server's answer."""
    found = await editor.diagnostics(uri, lambda found: any(d.code == code and d.data["fix"] for d in found))
    [finding] = [diagnostic for diagnostic in found if diagnostic.code == code]
    actions = await titles_at(editor, uri, finding)
    [verify] = [action for title, action in actions.items() if title.startswith("Verify fix: ")]
    fix = verify.title.removeprefix("Verify fix: ")
    assert fix in actions
    assert verify.command is not None
    answer = await editor.client.workspace_execute_command_async(
        types.ExecuteCommandParams(verify.command.command, verify.command.arguments)
    )
    found = await editor.diagnostics(uri, lambda found: "Fix " in messages(found, code), SECONDS)
    return found, answer


@pytest.mark.asyncio
async def test_a_fix_that_holds_says_so_and_is_preferred(editor: Editor) -> None:
    uri = editor.open("gate.py", GATE)
    found, answer = await verified(editor, uri, "EXL101")
    assert answer["verified"], answer
    assert "Fix verified: Gate exports with this fix" in messages(found, "EXL101")
    actions = await titles_at(editor, uri, found[0])
    assert not [title for title in actions if title.startswith("Verify fix")]
    assert [title for title, action in actions.items() if action.is_preferred and "torch.cond" in title]


@pytest.mark.asyncio
async def test_a_fix_that_fails_is_withdrawn_until_the_text_changes(editor: Editor) -> None:
    uri = editor.open("wave.py", WAVE)
    code = "EXL990"
    [wave] = [d for d in await editor.diagnostics(uri, lambda found: messages(found, code)) if d.code == code]
    found, answer = await verified(editor, uri, code)
    assert not answer["verified"] and "withdrawn" in answer["message"], answer
    assert "Fix withdrawn: the fixed model differs from the original" in messages(found, code)
    assert [title for title in await titles_at(editor, uri, wave) if not title.startswith("Disable")] == []
    editor.change(uri, WAVE + "\n")
    found = await editor.diagnostics(uri, lambda found: any(d.code == code and d.data["fix"] for d in found))
    assert "withdrawn" not in messages(found, code)


async def made_exportable(editor: Editor, uri: str, model: str) -> Any:
    return await editor.client.workspace_execute_command_async(
        types.ExecuteCommandParams("exportlens/repair", [{"uri": uri, "model": model}])
    )


@pytest.mark.asyncio
async def test_make_exportable_proposes_one_edit_and_writes_nothing(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open("method.py", METHOD)
    answer = await made_exportable(editor, uri, "Predictor.predict")
    assert answer["ok"], answer
    assert [step["code"] for step in answer["steps"]] == ["EXL613", "EXL101"]
    text = "".join(edit["newText"] for edit in answer["edit"]["changes"][uri])
    assert "class PredictModule(torch.nn.Module):" in text and "torch.cond(" in text
    assert (tmp_path / "method.py").read_text() == METHOD
    editor.change(uri, METHOD + "\n")
    answer = await made_exportable(editor, uri, "Predictor.predict")
    assert (
        not answer["ok"] and answer["edit"] is None and answer["message"].startswith("Save method.py first")
    )


@pytest.mark.asyncio
async def test_what_cannot_be_made_exportable_is_left_with_how_far_it_got(
    editor: Editor, tmp_path: Path
) -> None:
    text = GATE.replace(
        "        return y", "        y = torch.sin(y)\n        if y.max() > 1: return None\n        return y"
    )
    uri = editor.open("gate.py", text)
    answer = await made_exportable(editor, uri, "Gate")
    assert not answer["ok"] and answer["edit"] is None, answer
    assert "was left as it is; after 1 fix there is still:" in answer["message"]
    assert answer["steps"][0]["code"] == "EXL101" and "torch.cond" in answer["steps"][0]["message"]
    assert any("(withdrawn: " in step["message"] for step in answer["steps"] if step["code"] == "EXL990")
    assert (tmp_path / "gate.py").read_text() == text


@pytest.mark.asyncio
@on_save
async def test_saving_confirms_and_a_finding_of_an_export_cannot_be_disabled(editor: Editor) -> None:
    uri = editor.open("gate.py", GATE)
    await editor.diagnostics(uri)
    save(editor, uri)
    found = await editor.diagnostics(
        uri, lambda found: "Confirmed: a real export of Gate" in messages(found, "EXL101"), SECONDS
    )
    [failure] = [diagnostic for diagnostic in found if str(diagnostic.code).startswith("EXP")]
    assert failure.range.start.line == 5
    titles = await titles_at(editor, uri, failure)
    assert any(title.startswith("Disable EXL101") for title in titles)
    assert not any(title.startswith("Disable EXP") for title in titles)
    editor.change(uri, GATE.replace("x.sum() > 0", "x.dim() > 0"))
    found = await editor.diagnostics(uri, lambda found: not messages(found, "EXL101"))
    assert [d.code for d in found if str(d.code).startswith("EXP")] == []


@pytest.mark.asyncio
@on_save
async def test_saving_refutes_what_the_inputs_do_not_reach(editor: Editor) -> None:
    uri = editor.open("large.py", LARGE)
    await editor.diagnostics(uri)
    save(editor, uri)
    found = await editor.diagnostics(
        uri, lambda found: "Refuted here: Large exports in" in messages(found, "EXL101"), SECONDS
    )
    assert [d.code for d in found if str(d.code).startswith("EXP")] == []


@pytest.mark.asyncio
@on_save
async def test_a_second_save_ends_the_first_confirmation(editor: Editor, tmp_path: Path) -> None:
    slow = "import time\n\ntime.sleep(600)\n"
    uri = editor.open("gate.py", slow + GATE)
    await editor.diagnostics(uri)
    save(editor, uri)
    for _ in range(SECONDS):
        if any("Confirming Gate" in str(report) for report in editor.client.progress_reports.values()):
            break
        await editor.pause(1)
    editor.change(uri, GATE)
    (tmp_path / "gate.py").write_text(GATE, encoding="utf-8")
    save(editor, uri)
    await editor.diagnostics(uri, lambda found: "Confirmed" in messages(found, "EXL101"), SECONDS)


@pytest.mark.asyncio
@pytest.mark.parametrize("client", [{"confirmOnSave": True, "trusted": False}], indirect=True)
async def test_nothing_is_run_that_is_not_trusted(editor: Editor, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    uri = editor.open("gate.py", GATE + f"\nopen({str(trap)!r}, 'w').close()\n")
    found = await editor.diagnostics(uri)
    save(editor, uri)
    assert not [title for title in await titles_at(editor, uri, found[0]) if title.startswith("Verify fix")]
    with pytest.raises(Exception, match="not trusted"):
        await editor.client.workspace_execute_command_async(
            types.ExecuteCommandParams("exportlens/export", [{"uri": uri, "model": "Gate"}])
        )
    assert not trap.exists()


@pytest.mark.asyncio
@on_save
async def test_what_only_an_export_shows_comes_with_its_fix(editor: Editor) -> None:
    """No rule finds the tie before torch tells it: the export's own finding has the quick fix."""
    uri = editor.open("tied.py", TIED)
    await editor.diagnostics(uri)
    save(editor, uri)
    found = await editor.diagnostics(uri, lambda found: messages(found, "EXP002"), SECONDS)
    [failure] = [diagnostic for diagnostic in found if diagnostic.code == "EXP002"]
    assert failure.range.start.line == 5
    actions = await titles_at(editor, uri, failure)
    [edits] = [str(action.edit) for title, action in actions.items() if title.startswith("Declare `others`")]
    assert "rows" in edits


@pytest.mark.asyncio
@pytest.mark.parametrize("client", [{"interpreter": str(EXECUTORCH)}], indirect=True)
async def test_lines_that_a_target_leaves_to_the_cpu_are_hints(editor: Editor) -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts" / "set_up_targets.py"), "executorch"], check=True)
    uri = editor.open("counts.py", COUNTS)
    words = {"inputs": "(torch.randint(0, 9, (3, 4)),)", "targets": ["executorch-xnnpack"]}
    answer = await editor.client.workspace_execute_command_async(
        types.ExecuteCommandParams("exportlens/export", [{"uri": uri, "model": "Counts", **words}])
    )
    assert answer["ok"], answer
    found = await editor.diagnostics(uri, lambda found: messages(found, "EXP007"))
    [hint] = [diagnostic for diagnostic in found if diagnostic.code == "EXP007"]
    assert hint.severity is types.DiagnosticSeverity.Hint and hint.range.start.line == 5
    assert "executorch-xnnpack leaves this to the CPU: aten.add.Tensor" in hint.message
