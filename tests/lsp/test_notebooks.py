"""A notebook in the editor: its cells are one program, and each has its own findings and fixes."""

from __future__ import annotations

import json

import pytest
from lsp_editor import MODEL, Editor
from lsprotocol import types

HEAD, _, CLASS = MODEL.partition("\n\n\n")
CELLS = [HEAD, "%matplotlib inline\nsize = 3", CLASS]
IF_LINE = 2


class NotebookEditor:
    """What a person does in a notebook, as the protocol has it."""

    def __init__(self, editor: Editor, cells: list[str]) -> None:
        self.editor = editor
        self.version = 1
        (editor.folder / "work.ipynb").write_text(json.dumps({"cells": []}))
        self.uri = editor.uri("work.ipynb")
        self.cells = [
            f"vscode-notebook-cell:{editor.folder}/work.ipynb#W{number}" for number in range(len(cells))
        ]
        editor.client.notebook_document_did_open(
            types.DidOpenNotebookDocumentParams(
                types.NotebookDocument(
                    self.uri,
                    "jupyter-notebook",
                    self.version,
                    [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in self.cells],
                ),
                [
                    types.TextDocumentItem(uri, "python", 1, text)
                    for uri, text in zip(self.cells, cells, strict=True)
                ],
            )
        )

    def change(self, cell: int, text: str) -> None:
        """Replace the text of one cell."""
        self.version += 1
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(self.version, self.cells[cell]),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        self._changed(types.NotebookDocumentCellChanges(text_content=[content]))

    def remove(self, cell: int) -> None:
        """Take one cell out of the notebook."""
        self.version += 1
        gone = self.cells.pop(cell)
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(cell, 1, []), did_close=[types.TextDocumentIdentifier(gone)]
        )
        self._changed(types.NotebookDocumentCellChanges(structure=structure))

    def _changed(self, cells: types.NotebookDocumentCellChanges) -> None:
        self.editor.client.notebook_document_did_change(
            types.DidChangeNotebookDocumentParams(
                types.VersionedNotebookDocumentIdentifier(self.version, self.uri),
                types.NotebookDocumentChangeEvent(cells=cells),
            )
        )


def edited(text: str, edits: list[types.TextEdit]) -> str:
    """`text` after edits, whose columns are those of plain ASCII."""
    lines = text.split("\n")
    for edit in sorted(
        edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True
    ):
        start, end = edit.range.start, edit.range.end
        before, after = lines[start.line][: start.character], lines[end.line][end.character :]
        lines[start.line : end.line + 1] = (before + edit.new_text + after).split("\n")
    return "\n".join(lines)


def by_uri(edit: types.WorkspaceEdit | None) -> dict[str, list[types.TextEdit]]:
    assert edit is not None
    if edit.document_changes:
        return {change.text_document.uri: list(change.edits) for change in edit.document_changes}
    return {uri: list(edits) for uri, edits in (edit.changes or {}).items()}


@pytest.mark.asyncio
async def test_findings_and_fixes_are_in_their_cells(editor: Editor) -> None:
    notebook = NotebookEditor(editor, CELLS)
    last = notebook.cells[2]
    [found] = await editor.diagnostics(last)
    assert found.code == "EXL101" and found.range.start.line == IF_LINE
    assert await editor.diagnostics(notebook.cells[0], lambda found: not found) == []

    actions = await editor.actions(last, found.range)
    [fix] = [action for action in actions if "torch.cond" in action.title]
    assert not [action for action in actions if action.title.startswith("Verify")]
    changed = by_uri(fix.edit)
    assert list(changed) == [last]
    mended = edited(CLASS, changed[last])
    assert "torch.cond" in mended and "if x.sum() > 0" not in mended
    hover = await editor.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(last), types.Position(IF_LINE, 13))
    )
    assert hover is not None and "EXL101" in hover.contents.value and hover.range.start.line == IF_LINE

    notebook.change(2, mended)
    assert await editor.diagnostics(last, lambda found: not found) == []


@pytest.mark.asyncio
async def test_an_import_goes_into_the_cell_of_the_imports(editor: Editor) -> None:
    notebook = NotebookEditor(
        editor, ["from torch import nn, Tensor", CLASS.replace("torch.nn", "nn").replace("torch.", "")]
    )
    [found] = await editor.diagnostics(notebook.cells[1])
    [fix] = [
        action
        for action in await editor.actions(notebook.cells[1], found.range)
        if "torch.cond" in action.title
    ]
    changed = by_uri(fix.edit)
    assert "import torch" in edited("from torch import nn, Tensor", changed[notebook.cells[0]])


@pytest.mark.asyncio
async def test_a_cell_that_goes_takes_its_findings_along(editor: Editor) -> None:
    notebook = NotebookEditor(editor, CELLS)
    gone = notebook.cells[2]
    await editor.diagnostics(gone)
    notebook.remove(2)
    assert await editor.diagnostics(gone, lambda found: not found) == []
