"""What uses a list that has all items, and beside it whether each is kept: loops, comprehensions, and what is asked of the whole."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.source.walking import walk

# Functions of Python that read a list, and keep or change none.
_READING = frozenset({"list", "tuple", "set", "sum", "max", "min", "sorted", "reversed", "any", "all"})


# What makes a tensor of a list of numbers.
_MAKING_TENSORS = frozenset({"tensor", "as_tensor", "LongTensor"})


def named_in(function: Function, name: str) -> list[ast.Name]:
    return [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]


@dataclass(frozen=True, slots=True)
class MarkedList:
    """The list `name` with all items, `marks` whether each is kept. Where it `has_items` it is not empty once it is filled. What `choosing`
    tells of the items: they are "numbers" of Python, or "tensors" of one number, that choose rows. Where it is `chosen_with`, what calls
    the function only chooses rows with what it returns."""

    name: str
    marks: str
    torch: str
    has_items: bool
    choosing: str = ""
    chosen_with: bool = False


def uses_asked(text: str, source: Source, node: ast.AST, told: MarkedList) -> str | None:
    """`text`, which was made of `source` around `node` and in which the list has all items, where each use asks which are kept; None
    where no loop goes through it."""
    loops = 0
    while True:
        now = Source(text)
        inside = now.same_function(source, node)
        if inside is None:
            return None
        use = next((each for each in named_in(inside, told.name) if _is_open(now, each, told)), None)
        if use is None:
            return text if loops else None
        if now.enclosing_function(use) is not inside:
            return None
        swaps = _loop_asked(now, inside, use, told)
        loops += swaps is not None
        if swaps is None:
            swaps = _other_asked(now, inside, use, told)
        if swaps is None:
            return None
        text = replaced(text, swaps)


def _is_open(source: Source, use: ast.Name, told: MarkedList) -> bool:
    """Whether `use` reads the list, and does not ask yet which items are kept."""
    outer = source.parents[use]
    if not isinstance(use.ctx, ast.Load) or (isinstance(outer, ast.Attribute) and outer.attr == "append"):
        return False
    paired = isinstance(outer, ast.Call) and ast.unparse(outer) == f"zip({told.name}, {told.marks})"
    around = source.parents.get(outer)
    if isinstance(outer, ast.IfExp) and outer.test is use:
        around, outer = outer.body, use
    masked = isinstance(around, ast.Subscript) and told.marks in reads(around.slice)
    return not paired and not (masked and isinstance(around, ast.Subscript) and around.slice is not outer)


def _loop_asked(
    source: Source, function: Function, use: ast.Name, told: MarkedList
) -> list[Replacement] | None:
    """A loop, or a comprehension, over the list."""
    over: ast.AST = use
    outer = source.parents[use]
    start: int | None = None
    if isinstance(outer, ast.Call) and ast.unparse(outer.func) == "enumerate" and not outer.keywords:
        start = 0 if len(outer.args) == 1 else written_int(outer.args[1])
        if outer.args[0] is not use or start is None:
            return None
        over, outer = outer, source.parents[outer]
    if not isinstance(outer, (ast.For, ast.comprehension)) or outer.iter is not over:
        return None
    target: ast.expr = outer.target
    number = ""
    if start is not None:
        pair = target.elts if isinstance(target, ast.Tuple) else []
        if len(pair) != 2 or not isinstance(pair[0], ast.Name):
            return None
        number, target = pair[0].id, pair[1]
    flag = fresh("kept", every_name(source.tree))
    item = source.of(target)
    item = f"({item})" if isinstance(target, ast.Tuple) and not item.startswith("(") else item
    pairs = f"{item}, {flag} in zip({told.name}, {told.marks})"
    begin, end = source.start(outer.target), source.end(over)
    if isinstance(outer, ast.comprehension):
        if number and number in reads(_element_of(source, outer)):
            return None
        made = source.parents[outer]
        asking = source.parents[made]
        word = asking.func if isinstance(asking, ast.Call) and asking.args == [made] else None
        if isinstance(made, ast.GeneratorExp) and isinstance(word, ast.Name) and word.id in ("any", "all"):
            asked = f"{flag} and" if word.id == "any" else f"not {flag} or"
            if len(made.generators) == 1 and not outer.ifs:
                swap = source.swap(made.elt, f"({source.of(made.elt)})")
                return [replace(swap, text=f"{asked} {swap.text}"), Replacement(begin, end, pairs)]
        return [Replacement(begin, end, f"{pairs} if {flag}")]
    if not source.begins_line(outer) or not all(map(source.begins_line, outer.body)):
        return None
    if _is_read_behind(source, function, outer):
        return None
    nl, indent = source.newline, source.indent_of(outer.body[0])
    unit = source.indent_unit()
    lines = [f"{indent}if {flag}:"]
    swaps = [Replacement(begin, end, pairs)]
    if number and number in reads(outer.body):
        at = source.start(outer)
        assert start is not None
        line = f"{number} = {start - 1}{nl}{source.indent_of(outer)}"
        swaps.append(Replacement(at, at, line))
        lines.append(f"{indent}{unit}{number} += 1")
    first, last = source.span(outer.body)
    body = source.block(outer.body, indent + unit)
    swaps.append(Replacement(source.line_start(first), last, nl.join([*lines, body])))
    return swaps


def _element_of(source: Source, rounds: ast.comprehension) -> list[ast.AST]:
    outer = source.parents[rounds]
    parts = [outer.key, outer.value] if isinstance(outer, ast.DictComp) else [getattr(outer, "elt", outer)]
    return [*parts, *rounds.ifs]


def _is_read_behind(source: Source, function: Function, loop: ast.For) -> bool:
    """Whether what `loop` goes through last is read behind it, or in a round of a loop around it that comes later."""
    names = set(bound(loop.target))
    again = [each for each in source.ancestors(loop) if isinstance(each, (ast.For, ast.While))]
    begin = source.start(again[-1] if again else loop)

    found = [each for each in walk(function) if isinstance(each, ast.Name) and each.id in names]
    return any(
        isinstance(each.ctx, ast.Load) and source.start(each) > begin and not is_bound_by_loop(source, each)
        for each in found
    )


def is_bound_by_loop(source: Source, name: ast.Name) -> bool:
    """Whether a loop or a comprehension around `name` binds it, or it is what the loop binds."""
    inner: ast.AST = name
    for outer in source.ancestors(name):
        if isinstance(outer, ast.For) and name.id in bound(outer.target):
            return inner in outer.body or inner is outer.target
        rounds = getattr(outer, "generators", ())
        if any(name.id in bound(each.target) for each in rounds):
            return True
        inner = outer
    return False


def _other_asked(
    source: Source, function: Function, use: ast.Name, told: MarkedList
) -> list[Replacement] | None:
    """What is asked of the whole list: how long it is, whether it holds anything, and what reads its items."""
    outer, torch = source.parents[use], told.torch
    certain = told.has_items and source.start(use) > _filled_at(source, function, told.marks)
    if isinstance(outer, ast.Call) and ast.unparse(outer.func) == "len":
        count = f"{torch}.stack({told.marks}).sum().item()" if certain else f"int(sum({told.marks}))"
        return [source.swap(outer, count)]
    if _is_asked(source, use):
        some = f"{torch}.stack({told.marks}).any()" if certain else f"any({told.marks})"
        return [source.swap(use, some)]
    if told.choosing and source.start(use) > _filled_at(source, function, told.marks):
        chosen = isinstance(outer, ast.Subscript) and outer.slice is use
        if chosen or (isinstance(outer, ast.Return) and told.chosen_with):
            return [source.swap(use, _chosen(told, "", ""))]
        if is_made_of(outer, use):
            assert isinstance(outer, ast.Call)
            named = {each.arg: source.of(each.value) for each in outer.keywords}
            text = _chosen(told, named.get("dtype", ""), named.get("device", ""))
            alone = isinstance(source.parents[outer], (ast.Assign, ast.Return)) or told.has_items
            alone = alone or getattr(source.parents[outer], "slice", None) is outer
            return [source.swap(outer, text if alone else f"({text})")]
    reading = isinstance(outer, ast.Subscript) and outer.slice is use
    if isinstance(outer, ast.Call) and use in outer.args:
        name = ast.unparse(outer.func)
        reading = name in _READING or name.startswith((f"{torch}.", "np.", "numpy."))
    if not reading:
        return None
    taken = every_name(source.tree)
    each, flag = fresh("each", taken), fresh("kept", taken)
    return [source.swap(use, f"[{each} for {each}, {flag} in zip({told.name}, {told.marks}) if {flag}]")]


def is_made_of(node: ast.AST, numbers: ast.expr) -> bool:
    """Whether `node` is a call that makes a tensor of the list `numbers`, of another dtype or on another device at most."""
    return (
        isinstance(node, ast.Call)
        and node.args == [numbers]
        and ast.unparse(node.func).rpartition(".")[2] in _MAKING_TENSORS
        and {each.arg for each in node.keywords} <= {"dtype", "device"}
    )


def _chosen(told: MarkedList, dtype: str, device: str) -> str:
    """The tensor of the numbers that are kept."""
    torch, marks = told.torch, f"{told.torch}.stack({told.marks})"
    if told.choosing == "tensors":
        text = f"{torch}.stack({told.name})[{marks}]"
        other = [each for each in (dtype, device) if each and each not in (f"{torch}.long", f"{torch}.int64")]
        text += f".to({', '.join(reversed(other))})" if other else ""
    else:
        there = device or f"{told.marks}[0].device"
        kept = f"{marks}.to({device})" if device else marks
        text = f"{torch}.tensor({told.name}, dtype={dtype or f'{torch}.int64'}, device={there})[{kept}]"
    if told.has_items:
        return text
    empty = f"{torch}.zeros(0, dtype={dtype or f'{torch}.int64'}{f', device={device}' if device else ''})"
    return f"{text} if {told.name} else {empty}"


def _filled_at(source: Source, function: Function, marks: str) -> int:
    """Where the last of the function's own statements ends that puts something into `marks`."""
    filling = [
        each
        for each in function.body
        if f"{marks}.append(" in source.of(each) or (isinstance(each, ast.Assign) and marks in bound(each))
    ]
    return source.end(filling[-1])


def _is_asked(source: Source, use: ast.expr) -> bool:
    """Whether a test asks of `use` whether there is anything."""
    inner: ast.AST = use
    for outer in source.ancestors(use):
        if isinstance(outer, (ast.If, ast.While, ast.IfExp)):
            return outer.test is inner
        if not isinstance(outer, ast.BoolOp) and not (
            isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not)
        ):
            return False
        inner = outer
    return False
