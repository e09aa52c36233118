"""What a distribution works out when it is first asked, and keeps, is asked for before the branch whose arms ask.

    dist = Categorical(logits=x)                 dist = Categorical(logits=x)
    if x.mean() > 0:                             entropy = dist.entropy()
        y = y + dist.entropy()          ->       if x.mean() > 0:
                                                     y = y + entropy

Strict tracing takes no arm that writes to an object from outside of it, and sees the distribution work it out each time (measured on
torch 2.13). Nothing else can tell when it was asked: the numbers of such a distribution are tensors of its own.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.code.liveness import certainly_bound_before, exits
from exportlens.rewriting.code.names import arguments, bound, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds

# Their constructors divide by the sum of what they are given, which is a new tensor.
_WORKING_OUT = frozenset({"torch.distributions.Categorical", "torch.distributions.categorical.Categorical"})
_METHODS = frozenset({"entropy", "perplexity"})
# Each of these is worked out where the constructor was given the other one.
_PROPERTIES = frozenset({"probs", "logits", "mode"})


def distributions_asked(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where distributions from before `node` are asked before it; None where its arms ask nothing of them."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, index = source.block_of(node)
    arms = [*node.body, *node.orelse, *(block[index + 1 :] if exits([node]) != {"falls"} else [])]
    certain = certainly_bound_before(function, node) | {each.arg for each in arguments(function.args)}
    certain, taken = certain - set(bound(arms)), every_name(source.tree)
    names: dict[str, str] = {}
    swaps, lines = [], ""
    indent, begin = source.newline + source.indent_of(node), source.start(node)
    for statement in arms:
        for each in ast.walk(statement):
            if not isinstance(each, ast.Attribute) or not isinstance(each.value, ast.Name):
                continue
            asked = _asked(source, each)
            if asked is None or each.value.id not in certain or not _works_out(kinds.of(each.value).value):
                continue
            text = source.of(asked)
            if text not in names:
                name = names[text] = fresh(each.attr, taken)
                kinds.assign(
                    ast.Name(name, ast.Store()),
                    replace(kinds.of(asked), what="tensor", roots=frozenset({name})),
                )
                lines += f"{names[text]} = {text}{indent}"
            swaps.append(source.swap(asked, names[text]))
    if not swaps:
        return None
    return read_again(replaced(source.text, [Replacement(begin, begin, lines), *swaps]), begin + len(lines))


def _asked(source: Source, node: ast.Attribute) -> ast.expr | None:
    """The whole of what asks: `dist.entropy()`, `dist.probs`."""
    parent = source.parents[node]
    if node.attr in _METHODS and isinstance(parent, ast.Call) and parent.func is node:
        return None if parent.args or parent.keywords else parent
    return node if node.attr in _PROPERTIES and isinstance(node.ctx, ast.Load) else None


def _works_out(value: object) -> bool:
    return isinstance(value, Instance) and isinstance(value.cls, Named) and value.cls.name in _WORKING_OUT
