"""A branch inside of an arm that reads tensors of the function around the arm, and of the arm itself.

Measured on torch 2.13: strict tracing numbers what a graph computes by its operators (`mul`, `mul_1`), for each arm of torch.cond
anew. Where the inner branch reads a product of the outside and a product of the arm, both come in under one name, and Python takes
no function with that argument twice. A copy that the arm makes is one of the arm's own.

    def if_true():                       def if_true():
        z = x * 3                            z = x * 3
        def if_true_2():          ->         y_2 = y.clone()
            return y + z                     def if_true_2():
                                                 return y_2 + z
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from exportlens.rewriting.arms.numbers_inside import arms_of, loads_in
from exportlens.rewriting.code.liveness import given_to_operators
from exportlens.rewriting.code.names import arguments, assigned_pairs, bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.walking import walk

_NOTE = "  # a copy: strict tracing would give it and a tensor of this arm one name"


def kept_apart(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node`, which stands in an arm itself, read copies of the outside's tensors that are computed by the
    same operator as one of the arm's, and `node` of it; None where there are none."""
    arm = source.enclosing_function(node)
    outside = _around(source, arm) if arm is not None else None
    if arm is None or outside is None or not source.begins_line(node):
        return None
    if source.text.startswith("elif", source.start(node)):
        return None
    blocks = list(arms_of(source, node))
    read = set[str]().union(*(reads(each) for block in blocks for each in block))
    own = set(bound(arm.body))
    before = {name for name in own if _is_bound_before(source, arm, node, name)}
    inside = {each for name in read & before if _is_tensor(kinds, name) for each in _operators(arm, name)}
    taken = every_name(source.tree)
    # A copy that is written would be lost.
    written = {ast.unparse(each) for block in blocks for one in block for each in written_bases(one)}
    # What the arm takes in by a default, and binds no sooner than in the branch; what a loop carries has names of its own.
    defaults = {each.id for each in arm.args.defaults if isinstance(each, ast.Name)}
    given = ({each.arg for each in arguments(arm.args)} & defaults & own) - before
    head, swaps = "", []
    for name in sorted((read - own - written) | (given & (read | set(bound(node))))):
        if not _is_tensor(kinds, name) or not inside.intersection(_operators(outside, name)):
            continue
        copy = name if name in given else fresh(name, taken)
        head += f"{copy} = {name}.clone(){_NOTE}{source.newline}{source.indent_of(node)}"
        kinds.assign(ast.Name(copy, ast.Store()), replace(kinds.names[name], roots=frozenset()))
        if copy != name:
            swaps += [source.swap(each, copy) for block in blocks for each in loads_in(block, name)]
    if not head:
        return None
    begin = source.start(node)
    return read_again(replaced(source.text, [*swaps, Replacement(begin, begin, head)]), begin + len(head))


def _is_bound_before(source: Source, arm: Function, node: ast.If, name: str) -> bool:
    return any(
        isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
        and source.start(each) < source.start(node)
        for each in walk(arm)
    )


def _is_tensor(kinds: Kinds, name: str) -> bool:
    return name in kinds.names and kinds.names[name].what == "tensor"


def _around(source: Source, arm: Function) -> Function | None:
    """The function around `arm`, where `arm` is given to one of torch's operators of control flow there."""
    outside = source.enclosing_function(arm)
    return outside if outside is not None and arm.name in given_to_operators(outside) else None


def _operators(function: Function, name: str) -> Iterator[str]:
    """The operators that compute what `function` binds `name` to, as far as the text tells."""
    for each in walk(function):
        if isinstance(each, ast.Assign):
            for target, value in assigned_pairs(each):
                if isinstance(target, ast.Name) and target.id == name:
                    yield from _operator(value)
                elif isinstance(target, (ast.Tuple, ast.List)) and name in _names(target.elts):
                    yield "getitem"
        elif isinstance(each, ast.For) and name in _names(ast.walk(each.target)):
            yield "getitem"


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {each.id for each in nodes if isinstance(each, ast.Name)}


def _operator(node: ast.expr) -> Iterator[str]:
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        yield type(node.op).__name__
    elif isinstance(node, ast.Subscript):
        yield "getitem"
    elif isinstance(node, ast.Compare):
        yield type(node.ops[0]).__name__
    elif isinstance(node, ast.Call):
        path = dotted(node.func) or str(getattr(node.func, "attr", ""))
        last = path.rpartition(".")[2]
        # What torch.cond gives is taken out of a tuple. What a part of the model computes may be the same for two of them.
        yield "getitem" if last == "cond" else "self" if path.startswith("self.") else last
