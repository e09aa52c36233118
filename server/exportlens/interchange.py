"""Findings as JSON: the form that the command line prints and editors carry."""

from __future__ import annotations

from typing import Any

from exportlens.finding import Finding, Fix, Position


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding in the fields of ruff's JSON; rows and columns count from 1, columns in code points."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": str(finding.path),
        "location": location_json(finding.range.start),
        "end_location": location_json(finding.range.end),
        "fix": None if finding.fix is None else fix_json(finding.fix),
        "url": finding.url,
        "entry": list(finding.entry),
        "notes": list(finding.notes),
        "data": dict(finding.data),
    }


def fix_json(fix: Fix) -> dict[str, Any]:
    """A fix: its words, applicability and edits; an edit of another file names it."""
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [
            {
                "content": edit.content,
                "location": location_json(edit.range.start),
                "end_location": location_json(edit.range.end),
                **({} if edit.path is None else {"filename": str(edit.path)}),
            }
            for edit in fix.edits
        ],
    }


def location_json(position: Position) -> dict[str, int]:
    """A position as people count."""
    return {"row": position.line + 1, "column": position.column + 1}
