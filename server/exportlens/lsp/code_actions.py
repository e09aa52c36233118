"""Code actions: fix this, verify that fix, fix all of this rule, fix all that is safe, silence on this line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from exportlens.export.findings import runtime_codes
from exportlens.finding import Applicability, Edit, Finding, Fix, Position, Range
from exportlens.fixing import applicable, compatible
from exportlens.lsp.analysis import Open
from exportlens.lsp.convert import own_edits, to_diagnostic
from exportlens.lsp.server import Server
from exportlens.lsp.views import CellView, View, view_of
from exportlens.new_names import told_apart
from exportlens.source.lexing import logical_lines
from exportlens.trying import can_be_tried

FIX_ALL = "source.fixAll.exportlens"
_IGNORE = re.compile(r"#\s*exportlens\s*:\s*ignore\[(?P<codes>[^\]]*)\]")


def register(server: Server) -> None:
    """Register the features of this file."""
    options = types.CodeActionOptions([types.CodeActionKind.QuickFix, FIX_ALL])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        view = view_of(server, params.text_document.uri)
        if view is None:
            return []
        document = view.document
        # The fixes may still be on their way.
        await server.analysis.add_fixes(document)
        if not server.analysis.is_current(document):
            return []
        findings = server.analysis.findings_in(document.path)
        place = view.range(params.range)
        actions: list[types.CodeAction] = []
        if _asked(params.context, types.CodeActionKind.QuickFix):
            actions += _quick_fixes(server, view, findings, place)
        if _asked(params.context, FIX_ALL):
            actions += _fix_all(server, view, findings)
        return actions


def _asked(context: types.CodeActionContext, kind: str) -> bool:
    if not context.only:
        return kind != FIX_ALL
    kinds = [only.value if isinstance(only, types.CodeActionKind) else str(only) for only in context.only]
    return any(kind == only or kind.startswith(only + ".") or not only for only in kinds)


def _quick_fixes(
    server: Server, view: View, findings: list[Finding], place: Range
) -> Iterator[types.CodeAction]:
    document = view.document
    here = [finding for finding in findings if _touches(finding.range, place)]
    offered: set[Fix] = set()  # an export's finding carries the fix of the rule that knows its cause
    for finding in sorted(here, key=lambda each: each.code in runtime_codes()):
        if finding.fix is None or finding.fix in offered or not applicable(finding.fix, unsafe=True):
            continue
        edits = own_edits(finding.fix, document.path)
        if edits is None:
            continue
        offered.add(finding.fix)
        same = [each for each in here if each.fix == finding.fix]
        yield from _action(
            server,
            view,
            finding.fix.message,
            edits,
            same,
            preferred=finding.fix.applicability is Applicability.SAFE or _verified(finding),
        )
        for other in finding.fix.alternatives:
            others = own_edits(other, document.path)
            if others is not None:
                yield from _action(server, view, other.message, others, same)
        if server.permissions.trusted and not isinstance(view, CellView) and _to_verify(finding, document):
            yield _verify(server, document, finding, finding.fix.message)
    for code in dict.fromkeys(finding.code for finding in here):
        same = [
            finding for finding in findings if finding.code == code and applicable(finding.fix, unsafe=True)
        ]
        chosen = compatible(document.path, same)
        if len(chosen) > 1:
            edits = told_apart(document.path, document.text, chosen)
            title = f"Fix all {code} ({chosen[0].name}) in this file"
            yield from _action(server, view, title, edits, [f for f in here if f.code == code])
    # What a real export ended in is no opinion that a comment could turn off.
    silenced = [finding for finding in here if finding.code not in runtime_codes()]
    for finding in _one_for_each_code(silenced):
        edit = silence(document, finding)
        title = f"Disable {finding.code} ({finding.name}) for this line"
        yield from _action(server, view, title, [edit], [finding])


def _fix_all(server: Server, view: View, findings: list[Finding]) -> Iterator[types.CodeAction]:
    safe = [finding for finding in findings if applicable(finding.fix, unsafe=False)]
    chosen = compatible(view.document.path, safe)
    if chosen:
        edits = told_apart(view.document.path, view.document.text, chosen)
        yield from _action(server, view, "Fix all safe ExportLens findings", edits, chosen, kind=FIX_ALL)


def _verified(finding: Finding) -> bool:
    return finding.data.get("fix") == "verified"


def _to_verify(finding: Finding, document: Open) -> bool:
    """Whether a fix may change results, has not been tried, and has a model to be tried with."""
    unsafe = finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    return unsafe and not _verified(finding) and can_be_tried(finding, document.path, document.text)


def _verify(server: Server, document: Open, finding: Finding, fix: str) -> types.CodeAction:
    """The action that tries a fix in the worker, before it is taken."""
    diagnostic = to_diagnostic(finding, document.lines, server.encoding)
    place = diagnostic.range
    ends = {"start": place.start, "end": place.end}
    request = {
        "uri": document.uri,
        "range": {key: {"line": end.line, "character": end.character} for key, end in ends.items()},
        "code": finding.code,
    }
    title = f"Verify fix: {fix}"
    command = types.Command(title, "exportlens.verifyFix", arguments=[request])
    return types.CodeAction(
        title=title, kind=types.CodeActionKind.QuickFix, diagnostics=[diagnostic], command=command
    )


def _action(
    server: Server,
    view: View,
    title: str,
    edits: list[Edit],
    findings: list[Finding],
    *,
    kind: types.CodeActionKind | str = types.CodeActionKind.QuickFix,
    preferred: bool = False,
) -> Iterator[types.CodeAction]:
    """The action that makes `edits`; none where the texts that the editor knows cannot be edited so."""
    changed = view.changes(edits)
    if changed is None:
        return
    capabilities = server.client_capabilities.workspace
    edit_capabilities = capabilities.workspace_edit if capabilities else None
    if edit_capabilities and edit_capabilities.document_changes:
        change = types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), [*made])
                for uri, (version, made) in changed.items()
            ]
        )
    else:
        change = types.WorkspaceEdit(changes={uri: made for uri, (_, made) in changed.items()})
    yield types.CodeAction(
        title=title,
        kind=kind,
        diagnostics=[view.diagnostic(finding) for finding in findings],
        is_preferred=preferred or None,
        edit=change,
    )


def silence(document: Open, finding: Finding) -> Edit:
    """The edit that silences `finding` by a comment at the end of its logical line."""
    lines = document.lines
    offset = lines.offset(finding.range.start)
    spans: tuple[tuple[int, int], ...] = ()
    end = offset
    for start, end, comments in logical_lines(document.text):
        if start <= offset < end or end == len(document.text):
            spans = tuple(
                span for span in comments if lines.position(span[0]).line == lines.position(end - 1).line
            )
            break
    for start, stop in spans:
        match = _IGNORE.search(document.text, start, stop)
        if match:
            inside = lines.position(match.end("codes"))
            return Edit(
                Range(inside, inside), f", {finding.code}" if match["codes"].strip() else finding.code
            )
    row = lines.position(max(offset, end - 1)).line
    line = lines.line(row)
    at = Position(row, len(line.rstrip()))
    return Edit(Range(at, Position(row, len(line))), f"  # exportlens: ignore[{finding.code}]")


def _touches(one: Range, other: Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _one_for_each_code(findings: Iterable[Finding]) -> list[Finding]:
    first: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.range.start.line), finding)
    return list(first.values())
