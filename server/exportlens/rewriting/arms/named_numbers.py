"""Attributes that hold a number from data, as names around a branch: an arm of torch.cond reads no such attribute while tracing.

self.alpha = torch.sym_min(n.item() / 4, 1.0)           self.alpha = torch.sym_min(n.item() / 4, 1.0)
if self.alpha < 1.0:                            ->      alpha = self.alpha
    x = self.alpha * x                                  if alpha < 1.0:
                                                            x = alpha * x
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def named_numbers(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text in which `node`, and what follows it in its block, reads such attributes by names, and `node` of it; None where
    there are none. `kinds` gets to know the names."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    region = block[index:]
    reads: dict[str, list[ast.expr]] = {}
    for statement in region:
        for each in ast.walk(statement):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
                path = dotted(each) or ""
                if path.startswith("self.") and path.count(".") == 1 and kinds.of(each).what == "scalar":
                    reads.setdefault(path, []).append(each)
    asked = {dotted(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    paths = [path for path in reads if path in asked and not _may_change(source, function, region, path)]
    if not paths:
        return None
    taken = every_name(source.tree)
    begin, head, swaps = source.start(node), "", []
    for path in paths:
        name = fresh(path.removeprefix("self.").strip("_") or "number", taken)
        head += f"{name} = {path}{source.newline}{source.indent_of(node)}"
        swaps += [source.swap(each, name) for each in reads[path]]
        kinds.names[name] = kinds.of(reads[path][0])
    text = replaced(source.text, [Replacement(begin, begin, head), *swaps])
    return read_again(text, begin + len(head))


def _may_change(source: Source, function: Function, region: list[ast.stmt], path: str) -> bool:
    """Whether `region` of `function` writes the attribute, or another method does that it may call."""
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    methods = [each for each in (owner.body if owner else ()) if isinstance(each, ast.FunctionDef)]
    others = [each for each in methods if each is not function and each.name != "__init__"]
    return owner is None or any(
        isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load) and dotted(each) == path
        for statement in [*region, *others]
        for each in ast.walk(statement)
    )
