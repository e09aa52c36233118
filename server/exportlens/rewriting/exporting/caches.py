"""Caches of keys and values in outputs, registered with torch where the model's file is imported: a program gives back
their tensors, and eager what it gave before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from exportlens.finding import Applicability, Edit, Fix, Position, Range, Refusal
from exportlens.inference.places import Output
from exportlens.inference.values import ClassValue
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, behind_imports
from exportlens.rewriting.code.imports import import_edit
from exportlens.source.document import Chunk, Document

# What transformers has for this (transformers/integrations/executorch.py, from 4.56 on), for a cache of keys and values alone.
_HELPER = "register_dynamic_cache_export_support"
_HELPER_HOME = "integrations.executorch"
_KEYS_AND_VALUES = "DynamicCache"
_PAIR = "EncoderDecoderCache"
# A model that also keeps states of convolutions or of a recurrence in its cache writes them by such a method.
_OTHER_STATES = re.compile(r"\.update_\w*states?\(")


def registers_cache(document: Document, name: str) -> bool:
    """Whether `document` registers the cache class `name` of transformers, with what its objects hold."""
    text = document.text
    if name == _KEYS_AND_VALUES and f"{_HELPER}(" in text:
        return True
    return re.search(rf"register_pytree_node\(\s*(?:\w+\.)*{name}\b", text) is not None


def register_caches(classes: Iterable[ClassValue], place: Output, context: RewriteContext) -> Fix | Refusal:
    """The registration of `classes`, caches of transformers that `place` returns, behind the imports of its file."""
    found = {cls.name: cls for cls in classes}
    document = context.document
    try:
        if not found or not found.keys() <= {_KEYS_AND_VALUES, _PAIR} or _OTHER_STATES.search(document.text):
            raise Refused("the cache may hold more than keys and values: call the model with use_cache=False")
        return _registered(found, Draft.of(place, context))
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _registered(found: Mapping[str, ClassValue], draft: Draft) -> Fix:
    document = draft.context.document
    cls = next(iter(found.values()))
    package = cls.scope.module_name.removesuffix("cache_utils")
    if not cls.scope.workspace.may_define(package + _HELPER_HOME, cls.scope, _HELPER):
        raise Refused("this transformers registers no cache: call the model with use_cache=False")
    behind = behind_imports(document)
    if behind is None:
        raise Refused("the file imports nothing that the registration could stand behind")
    chunk, node = _import_of_caches(document)
    where = (
        "." * node.level + (node.module or "").removesuffix("cache_utils") if node is not None else package
    )
    imports, lines, edits = [], [], []
    if not registers_cache(document, _KEYS_AND_VALUES):
        imports.append(f"from {where}{_HELPER_HOME} import {_HELPER}")
        lines.append(f"{_HELPER}()")
    if _PAIR in found:
        if node is None or _PAIR not in [alias.asname or alias.name for alias in node.names]:
            imports.insert(0, f"from {where}cache_utils import {_PAIR}")
        lines += _pair(draft.torch, draft.source.indent_unit())
        if draft.needs_torch:
            edits.append(import_edit(document, "import torch"))
    nl = draft.source.newline
    at = behind
    if chunk is not None and node is not None:
        at = Position(document.range_of(chunk, node).end.line + 1, 0)
    # One edit where both stand in one place.
    if at != behind:
        edits.append(Edit(Range(at, at), "".join(line + nl for line in imports)))
        imports = []
    text = [*imports, "", *lines]
    edits.append(Edit(Range(behind, behind), "".join(line + nl for line in text)))
    written = ", ".join(f"`{name}`" for name in found)
    return Fix(f"Register {written} with torch.export", tuple(edits), Applicability.UNSAFE)


def _pair(torch: str, unit: str) -> list[str]:
    """The registration of two caches in one. Models of one package may each bring it."""
    return [
        f"if {_PAIR} not in {torch}.utils._pytree.SUPPORTED_NODES:",
        f"{unit}{torch}.utils._pytree.register_pytree_node(",
        f"{unit}{unit}{_PAIR},",
        f"{unit}{unit}lambda cache: ([cache.self_attention_cache, cache.cross_attention_cache], None),",
        f"{unit}{unit}lambda caches, _: {_PAIR}(*caches),",
        f'{unit}{unit}serialized_type_name="{_PAIR}",',
        f"{unit})",
    ]


def _import_of_caches(document: Document) -> tuple[Chunk | None, ast.ImportFrom | None]:
    """The import of caches from the file of transformers that defines them, relative or not."""
    for placed in document.placed:
        for node in placed.chunk.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == "cache_utils":
                return placed.chunk, node
    return None, None
