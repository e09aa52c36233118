"""Example inputs of a size that export takes for a constant become larger."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement


def grow_examples(
    place: ExportCall,
    dynamic: Sequence[Sequence[int]],
    named: Mapping[str, Sequence[int]],
    context: RewriteContext,
) -> Fix | Refusal:
    """Example inputs of size 2 where they are of size 0 or 1 in one of their `dynamic` dimensions (by input; `named` by
    keyword)."""
    try:
        draft = Draft.of(place, context)
        call = draft.source.find(place.node)
        inputs = draft.source.find(place.nodes["args"])
        if isinstance(inputs, ast.expr):
            inputs = _creation(draft, call, inputs)
        if not isinstance(inputs, (ast.Tuple, ast.List)):
            raise Refused("the example inputs are not written in the call")
        examples = list(zip(inputs.elts, dynamic, strict=False))
        keywords = draft.source.find(place.nodes["kwargs"]) if "kwargs" in place.nodes else None
        if isinstance(keywords, ast.Dict):
            examples += [
                (each, named.get(key.value, ()))
                for key, each in zip(keywords.keys, keywords.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        swaps: dict[int, Replacement] = {}
        for example, dims in examples:
            made = _creation(draft, call, example) if dims else None
            sizes = written_sizes(made) if made is not None else None
            if dims and sizes is None:
                raise Refused(f"the sizes of `{draft.source.of(example)}` are not written where it is made")
            for dim in dims:
                size = sizes[dim] if sizes is not None and -len(sizes) <= dim < len(sizes) else None
                if isinstance(size, ast.Constant) and size.value in (0, 1):
                    swaps[draft.source.start(size)] = draft.source.swap(size, "2")
        if not swaps:
            raise Refused("no size of 0 or 1 is written in the example inputs")
        return draft.replace("Use an example of size 2", list(swaps.values()), uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _creation(draft: Draft, call: ast.AST, example: ast.expr) -> ast.expr:
    """The expression that makes an example input, or all of them: itself, or what its name is bound to, once, before the call."""
    if not isinstance(example, ast.Name):
        return example
    bindings = [
        node
        for node in ast.walk(draft.source.tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == example.id for name in node.targets)
    ]
    uses = sum(
        isinstance(each, ast.Name)
        and each.id == example.id
        # Whoever is called with all example inputs takes them of any size.
        and not isinstance(draft.source.parents[each], ast.Starred)
        for each in ast.walk(draft.source.tree)
    )
    if len(bindings) != 1 or uses != 2 or draft.source.start(bindings[0]) > draft.source.start(call):
        raise Refused(f"`{example.id}` is used for more than the example")
    return bindings[0].value


def written_sizes(made: ast.expr) -> list[ast.expr] | None:
    """The sizes of `torch.randn(1, 4)` or `torch.randint(0, 9, (1, 4))`; None where they are not written there."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return None
    sizes: list[ast.expr] = list(made.args)
    if made.func.attr == "randint":
        sizes = list([each for each in made.args if isinstance(each, (ast.Tuple, ast.List))][-1:])
    elif made.func.attr not in ("rand", "randn", "zeros", "ones", "empty"):
        return None
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = list(sizes[0].elts)
    return sizes
