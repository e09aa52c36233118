"""A set of a tensor's numbers: where it is only asked for its members the tensor or the list of them answers, where it is only counted
torch.unique does, and a loop through it that changes a cell for each number changes all cells at once.

    seen = set(t.tolist())           seen = t
    if 3 in seen: ...          ->    if (seen == 3).any(): ...

    n = len(set(t.tolist()))   ->    n = torch.unique(t).shape[0]
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, every_name
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.int_evidence import is_int_of_tensor
from exportlens.rewriting.lists.listed_tensors import in_brackets
from exportlens.rewriting.loops.cells_at_once import cells_at_once
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.walking import walk

_MESSAGE = "Ask the tensor's numbers without a set"


def without_set(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """The fix for `set(t.tolist())`, where all that is done with it is asking `in` or `len`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        tensor = _tensor(node)
        if tensor is None or not isinstance(node, ast.Call):
            raise Refused(
                "what the tensor stands for as a key is not provable: use a Python value as key, or compare by `==` with torch"
            )
        loop = draft.source.parents[node]
        if isinstance(loop, ast.For) and loop.iter is node:
            kinds = draft.kinds(place.variables)
            swaps = cells_at_once(draft.source, loop, tensor, kinds, draft.torch)
            return draft.replace("Change all cells at once", swaps)
        uses = _uses(draft.source, node)
        unique = f"{draft.torch}.unique({draft.source.of(tensor)})"
        if all(map(_is_members, uses)):
            if _compares_alike(draft.source, uses) and not _is_written(draft.source, node, tensor):
                swaps = [draft.source.swap(node, draft.source.of(tensor))] if uses[0][0] is not node else []
                swaps += [_asked(draft.source, use, parent, tensor) for use, parent in uses]
                return draft.replace(_MESSAGE, swaps, uses_torch=False)
            listed = draft.source.of(node.args[0])
            return draft.replace(_MESSAGE, [draft.source.swap(node, listed)], uses_torch=False)
        if not all(map(_is_length, uses)):
            raise Refused("more is done with the set than asking what is in it, or how many numbers are")
        if uses[0][0] is node:
            return draft.replace(_MESSAGE, [draft.source.swap(uses[0][1], f"{unique}.shape[0]")])
        swaps = [draft.source.swap(node, unique)]
        swaps += [draft.source.swap(parent, f"{draft.source.of(use)}.shape[0]") for use, parent in uses]
        return draft.replace(_MESSAGE, swaps)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _tensor(node: ast.AST) -> ast.expr | None:
    """The tensor of whose numbers `node` makes a set."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    if not isinstance(node.func, ast.Name) or node.func.id not in ("set", "frozenset"):
        return None
    listed = node.args[0]
    if not isinstance(listed, ast.Call) or listed.args or listed.keywords:
        return None
    func = listed.func
    return func.value if isinstance(func, ast.Attribute) and func.attr == "tolist" else None


def _uses(source: Source, node: ast.Call) -> list[tuple[ast.expr, ast.AST]]:
    """What stands for the set, each with what is done with it: the set itself, or the one name that it has. Raises Refused."""
    parent = source.parents[node]
    if not isinstance(parent, ast.Assign):
        return [(node, parent)]
    function = source.enclosing_function(node)
    target = parent.targets[0]
    if function is None or len(parent.targets) != 1 or not isinstance(target, ast.Name):
        raise Refused("the set is given to something else than a name")
    same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == target.id]
    loads = [each for each in same if isinstance(each.ctx, ast.Load)]
    declared = any(
        isinstance(each, (ast.Global, ast.Nonlocal)) and target.id in each.names for each in walk(function)
    )
    if (
        len(same) != len(loads) + 1
        or declared
        or target.id in {each.arg for each in arguments(function.args)}
    ):
        raise Refused(f"`{target.id}` is bound to other things, too")
    inner = [
        each
        for each in walk(function)
        if each is not function and isinstance(each, (ast.FunctionDef, ast.Lambda))
    ]
    if any(target.id in {one.arg for one in arguments(each.args)} for each in inner) or not loads:
        raise Refused(f"`{target.id}` is another name in an inner function, or is not read")
    return [(each, source.parents[each]) for each in loads]


def _is_members(use: tuple[ast.expr, ast.AST]) -> bool:
    node, parent = use
    return (
        isinstance(parent, ast.Compare)
        and len(parent.ops) == 1
        and isinstance(parent.ops[0], (ast.In, ast.NotIn))
        and parent.comparators[0] is node
    )


def _is_length(use: tuple[ast.expr, ast.AST]) -> bool:
    node, parent = use
    plain = isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords
    return plain and isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len"


def _asked(source: Source, use: ast.expr, parent: ast.AST, tensor: ast.expr) -> Replacement:
    """What asks the tensor that has the name of the set by now."""
    assert isinstance(parent, ast.Compare)
    rows = use.id if isinstance(use, ast.Name) else in_brackets(source.of(tensor))
    text = f"({rows} == {source.of(parent.left)}).any()"
    return source.swap(parent, f"not {text}" if isinstance(parent.ops[0], ast.NotIn) else text)


def _compares_alike(source: Source, uses: list[tuple[ast.expr, ast.AST]]) -> bool:
    """Whether branches ask for ints, which the tensor compares as its list does."""
    return all(
        isinstance(parent, ast.Compare)
        and (written_int(parent.left) is not None or is_int_of_tensor(source, parent.left))
        and _is_test(source, parent)
        for _, parent in uses
    )


def _is_test(source: Source, node: ast.AST) -> bool:
    """Whether only the truth of `node` is asked, for which a tensor does as well as a bool."""
    parent = source.parents[node]
    if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return _is_test(source, parent)
    return isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is node


def _is_written(source: Source, node: ast.Call, tensor: ast.expr) -> bool:
    """Whether the function may write to the memory of `tensor` in place, which its list does not see."""
    function = source.enclosing_function(node)
    root = tensor.value if isinstance(tensor, ast.Subscript) else tensor
    if not isinstance(root, ast.Name):
        # Others may have a name for it.
        return True
    return function is not None and any(root.id in every_name(base) for base in written_bases(function))
