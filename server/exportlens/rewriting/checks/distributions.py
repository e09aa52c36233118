"""Distributions are made without the check of their parameters and values, which is an `if` on them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from exportlens.finding import Applicability, Edit, Fix, Range, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, behind_imports
from exportlens.rewriting.code.imports import document_imports, import_edit, spelled
from exportlens.rewriting.code.text import Replacement

_MESSAGE = "Make it with validate_args=False"


def without_validation(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`validate_args=False` among the arguments of the constructor."""
    try:
        draft = Draft.of(place, context)
        return draft.replace(_MESSAGE, [_unchecked(draft, draft.source.find(place.node))], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _unchecked(draft: Draft, node: ast.AST) -> Replacement:
    if not isinstance(node, ast.Call):
        raise Refused("the arguments of the distribution are not written out")
    if any(key.arg in (None, "validate_args") for key in node.keywords):
        raise Refused("whether the distribution checks its parameters is decided elsewhere")
    given: list[ast.AST] = [*node.args, *(key.value for key in node.keywords)]
    end = max((draft.source.end(each) for each in given), default=None)
    if end is None:
        raise Refused("the distribution has no parameters")
    if ")" in draft.source.text[end : draft.source.end(node) - 1]:
        # The last argument stands in parentheses.
        end = draft.source.end(node) - 1
    return Replacement(end, end, ", validate_args=False")


def makers_without_validation(cls: str, checked: Set[str], context: RewriteContext) -> Fix | Refusal:
    """`validate_args=False` where the file makes the class `cls`, and in the distributions among its arguments; `checked`
    are the classes that check."""
    try:
        edits: list[Edit] = []
        for placed in context.document.placed:
            if cls.rpartition(".")[2] not in placed.chunk.text:
                continue
            draft = Draft.of_chunk(placed.chunk, context)
            nodes = {
                inner
                for made in _makers(draft, draft.source.tree, frozenset({cls}))
                for part in _parts(draft, made)
                for inner in _makers(draft, part, checked)
            }
            swaps = [_unchecked(draft, each) for each in sorted(nodes, key=draft.source.start)]
            if swaps:
                edits.extend(draft.replace(_MESSAGE, swaps, uses_torch=False).edits)
        if not edits:
            raise Refused(
                "where the distribution is made is not in this file: make it with validate_args=False"
            )
        return Fix(_MESSAGE, tuple(edits), Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _parts(draft: Draft, made: ast.AST) -> list[ast.AST]:
    """`made`, and what its function binds the names to that stand in it: `comp = Normal(...)` of `Mixture(mix, comp)`."""
    parts, names = [made], set[str]()
    function = draft.source.enclosing_function(made)
    bindings = [each for each in ast.walk(function) if isinstance(each, ast.Assign)] if function else []
    for part in parts:
        read = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)} - names
        names |= read
        for each in bindings:
            if any(isinstance(one, ast.Name) and one.id in read for one in each.targets):
                parts.append(each.value)
    return parts


def _makers(draft: Draft, root: ast.AST, classes: Set[str]) -> Iterator[ast.Call]:
    """The calls below `root` of one of `classes` that leave the checks on."""
    for each in ast.walk(root):
        if (
            isinstance(each, ast.Call)
            and draft.qualified(each.func) in classes
            and not any(key.arg == "validate_args" for key in each.keywords)
        ):
            yield each


def validation_switched_off(context: RewriteContext) -> Fix | Refusal:
    """`torch.distributions.Distribution.set_default_validate_args(False)` behind the imports, for all distributions."""
    at = behind_imports(context.document)
    if at is None:
        return Refusal("the file imports nothing: switch the checks off where it is run")
    torch = spelled(document_imports(context.document), "torch")
    nl = "\r\n" if "\r\n" in context.document.text else "\n"
    text = f"{nl}{torch or 'torch'}.distributions.Distribution.set_default_validate_args(False){nl}"
    edits = [Edit(Range(at, at), text)]
    if torch is None:
        edits.insert(0, import_edit(context.document, "import torch"))
    return Fix("Switch the checks of distributions off", tuple(edits), Applicability.UNSAFE)
