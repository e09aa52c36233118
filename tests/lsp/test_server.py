"""The server as VS Code, Neovim and Emacs see it."""

from __future__ import annotations

import asyncio

import pytest
from lsp_editor import MODEL, Editor
from lsprotocol import types

IF_LINE = 5


def line(number: int) -> types.Range:
    return types.Range(types.Position(number, 8), types.Position(number, 8))


def with_fix(found: list[types.Diagnostic]) -> bool:
    return bool(found) and all(isinstance(d.data, dict) and d.data.get("fix") for d in found)


@pytest.mark.asyncio
async def test_a_finding_comes_with_link_and_fix_and_goes_when_it_is_mended(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL)
    [found] = await editor.diagnostics(uri)
    assert found.code == "EXL101" and found.source == "exportlens"
    assert found.severity is types.DiagnosticSeverity.Error
    assert found.range.start.line == IF_LINE
    assert found.code_description and found.code_description.href.endswith("docs/rules/EXL101.md")
    editor.change(uri, MODEL.replace("x.sum() > 0", "x.dim() > 0"))
    assert await editor.diagnostics(uri, lambda found: not found) == []


@pytest.mark.asyncio
async def test_incremental_edits_move_the_finding(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL)
    await editor.diagnostics(uri)
    start = types.Position(1, 0)
    editor.change(uri, "# '\U0001f600' \n", types.Range(start, start))
    editor.change(uri, "\n", types.Range(start, start))
    [found] = await editor.diagnostics(
        uri, lambda found: [d.range.start.line for d in found] == [IF_LINE + 2]
    )
    assert found.range.start.character == 11


@pytest.mark.asyncio
async def test_columns_are_in_the_negotiated_encoding(editor: Editor) -> None:
    text = MODEL.replace("        return y", "        return ('\U0001f600', y if x.max() > 0 else x)[1]")
    uri = editor.open("model.py", text)
    found = await editor.diagnostics(uri)
    sizes = {"utf-8": 4, "utf-16": 2, "utf-32": 1}
    row = text.splitlines()[9]
    expected = row.index("x.max") - 1 + sizes[editor.encoding]
    assert expected in {d.range.start.character for d in found if d.range.start.line == 9}


@pytest.mark.asyncio
async def test_silencing_by_code_action(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL)
    await editor.diagnostics(uri)
    actions = await editor.actions(uri, types.Range(types.Position(IF_LINE, 11), types.Position(IF_LINE, 12)))
    [silence] = [action for action in actions if action.title.startswith("Disable EXL101")]
    assert silence.edit is not None
    changes = (
        silence.edit.document_changes[0].edits if silence.edit.document_changes else silence.edit.changes[uri]
    )
    [edit] = changes
    rows = MODEL.split("\n")
    row = rows[edit.range.start.line]
    rows[edit.range.start.line] = row[: edit.range.start.character] + edit.new_text
    assert rows[IF_LINE].endswith("if x.sum() > 0:  # exportlens: ignore[EXL101]")
    editor.change(uri, "\n".join(rows))
    assert await editor.diagnostics(uri, lambda found: not found) == []


@pytest.mark.asyncio
async def test_hover_and_lens(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL)
    await editor.diagnostics(uri)
    identifier = types.TextDocumentIdentifier(uri)
    hover = await editor.client.text_document_hover_async(
        types.HoverParams(identifier, types.Position(IF_LINE, 13))
    )
    assert hover is not None and isinstance(hover.contents, types.MarkupContent)
    assert "EXL101" in hover.contents.value and "`x`" in hover.contents.value
    lenses = await editor.client.text_document_code_lens_async(types.CodeLensParams(identifier))
    assert lenses and lenses[0].command is not None
    assert lenses[0].command.command == "exportlens.export"
    assert lenses[0].range.start.line == 3


@pytest.mark.asyncio
async def test_broken_text_keeps_the_server_and_the_other_findings(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL + "\n\ndef broken(:\n    '''\n")
    assert [d.code for d in await editor.diagnostics(uri)] == ["EXL101"]
    for text in [
        "\0",
        "(" * 3000,
        "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
        "",
        "\f\r\r\n",
    ]:
        editor.change(uri, text)
    editor.change(uri, MODEL)
    assert [d.code for d in await editor.diagnostics(uri, lambda found: len(found) == 1)] == ["EXL101"]


@pytest.mark.asyncio
async def test_fast_typing_ends_with_the_last_version(editor: Editor) -> None:
    uri = editor.open("model.py", MODEL)
    await editor.diagnostics(uri)
    end = types.Position(len(MODEL.split("\n")) - 1, 0)
    for _ in range(30):
        editor.change(uri, "\n", types.Range(end, end))
        await asyncio.sleep(0.01)
    editor.change(uri, MODEL.replace("x.sum() > 0", "x.any()"))
    [found] = await editor.diagnostics(uri, lambda found: bool(found) and "any" in found[0].message)
    assert found.code == "EXL101"


@pytest.mark.asyncio
async def test_a_finding_in_a_helper_file_is_published_there(editor: Editor) -> None:
    helper = "def choose(t):\n    if t.sum() > 0:\n        return t\n    return -t\n"
    user = (
        "import torch\nfrom helper import choose\n\n\n"
        "class M(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return choose(x)\n"
    )
    helper_uri = editor.open("helper.py", helper)
    uri = editor.open("user.py", user)
    [found] = await editor.diagnostics(helper_uri)
    assert found.range.start.line == 1
    assert await editor.diagnostics(uri, lambda found: not found) == []
    editor.change(helper_uri, helper.replace("t.sum() > 0", "t.dim() > 0"))
    assert await editor.diagnostics(helper_uri, lambda found: not found) == []
