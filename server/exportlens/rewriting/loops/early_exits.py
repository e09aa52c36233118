"""Loops that tensor data leaves, by `break` or `return`: with a flag, as a function for their rounds, or to their end."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from exportlens.inference.values import TensorScalar, Value
from exportlens.rewriting.arms.preparing import keep_tensors
from exportlens.rewriting.code.draft import Refused, RefusedLog
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.decisions import hazard_among
from exportlens.rewriting.decisions.searched_lists import SEARCH
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.changing_parts import changing_parts
from exportlens.rewriting.loops.continues import without_continue
from exportlens.rewriting.loops.counted_loops import as_while
from exportlens.rewriting.loops.cut_lists import cut_behind
from exportlens.rewriting.loops.held_through_rounds import held_through_rounds
from exportlens.rewriting.loops.leaving import Flagged, flagged
from exportlens.rewriting.loops.left_counters import last_round_named
from exportlens.rewriting.loops.rounds import count_of, has_rounds, in_rounds, ways_out
from exportlens.rewriting.loops.searched_loops import first_round_found
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.nested_decisions import MOST_NESTED, Convert, settled

# More rounds than these, each with its branches, are not traced one by one: torch.export takes a second or two for each.
_MOST_UNROLLED = 10
# Eager's while_loop of torch 2.13 loses what flows through a tensor that begins without a need for gradients.
WITH_WHILE_LOOP = "Rewrite with while_loop, for inference: gradients through it may be incomplete"


def left_behind_first(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert, first: int
) -> tuple[str, str]:
    """As `left_early`, where the `first` statements before `loop` are its first round, which tensor data breaks off as well."""
    if isinstance(loop, ast.For) and not 0 <= _rounds(source, loop, kinds) <= _MOST_UNROLLED:
        with contextlib.suppress(Refused, LookupError, SyntaxError):
            before = _kinds_around(source, loop, kinds)
            changed, found, now = as_while(source, loop, before.copy(), torch)
            inside = kinds.copy()
            inside.names |= {name: kind for name, kind in now.names.items() if name not in before.names}
            more = changed.block_of(found)[1] - source.block_of(loop)[1]
            return _without_leaving(
                *_counter_first(changed, found, first, more), inside, torch, convert, first=first
            )
    return _without_leaving(source, loop, kinds, torch, convert, first=first)


def _counter_first(source: Source, loop: ast.While, first: int, more: int) -> tuple[Source, ast.While]:
    """The text with the `more` statements in front of `loop`, which begin its counter, before those of its `first` round."""
    block, index = source.block_of(loop)
    begun, round_ = block[index - more : index], block[index - more - first : index - more]
    indent = source.indent_of(loop)
    start, end = source.span(round_)[0], source.start(loop)
    lines = [source.block(begun, indent), source.block(round_, indent), indent]
    text = source.newline.join(lines)
    changed = Source(replaced(source.text, [Replacement(start, end, text)]))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, ast.While))
    return changed, next(each for each in loops if changed.start(each) == start + len(text))


def _without_leaving(
    source: Source,
    loop: ast.For | ast.While,
    kinds: Kinds,
    torch: str,
    convert: Convert,
    runs: bool = False,
    first: int = 0,
) -> tuple[str, str]:
    """`loop` with a flag in the place of its `break` or `return`, and all branches on the flag rewritten. A `while` that `runs`
    has a first round; `first` statements before the loop are one."""
    function = source.enclosing_function(loop)
    if function is None:
        raise Refused("the loop is not inside a function")
    source, loop, kinds = _asked_of_tensors(source, loop, kinds, torch)
    block, index = source.block_of(loop)
    rounds = block[index - first : index]
    before = kinds_before(function, rounds[0] if rounds else loop, kinds)
    made = flagged(source, loop, kinds, torch, runs, rounds)
    text, more = made.text, 0
    for _ in range(MOST_NESTED):
        changed = Source(text)
        statements = made.statements(changed.tree, more)
        found = hazard_among(changed, statements, before.copy(), torch)
        if found is None:
            return text, _flag_message(loop)
        count = _block_length(changed, made)
        text = convert(changed, found[0], found[1], torch)
        more += _block_length(Source(text), made) - count
    raise Refused("branches on tensor data are nested too deeply")


def _asked_of_tensors(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str
) -> tuple[Source, ast.For | ast.While, Kinds]:
    """The text where tensors decide to leave `loop`, not numbers read out of them, `loop` of it and the kinds: a flag is set
    without a branch then."""
    begin = source.start(loop)
    for each in loop.body:
        function = source.enclosing_function(each)
        if not (isinstance(each, ast.If) and function is not None and not each.orelse):
            continue
        if len(each.body) != 1 or not isinstance(each.body[0], (ast.Break, ast.Return)):
            continue
        now = kinds_before(function, each, kinds)
        numbers = {name for name, kind in now.names.items() if kind.what == "scalar"}
        changed = keep_tensors(source, each, now, torch)
        if changed is not None and changed[0].text[:begin] == source.text[:begin]:
            known = kinds.copy()
            known.names |= {name: now.names[name] for name in numbers if now.names[name].what == "tensor"}
            same = (one for one in ast.walk(changed[0].tree) if isinstance(one, type(loop)))
            return changed[0], next(one for one in same if changed[0].start(one) == begin), known
    return source, loop, kinds


def left_early(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    """As `_left_or_cut`; a loop that cannot be left so may be one that only looks for a round."""
    try:
        return _left_or_cut(source, loop, kinds, torch, convert)
    except (Refused, LookupError, SyntaxError):
        text = first_round_found(source, loop, kinds, torch) if isinstance(loop, ast.For) else None
        if text is None:
            raise
        return text, SEARCH


def _left_or_cut(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    """`loop`, which tensor data leaves, with a flag or as a function, or to its end where it only fills lists."""
    named = last_round_named(source, loop, kinds) if isinstance(loop, ast.For) else None
    if named is not None:
        try:
            return _left_or_cut(*named, torch, convert)
        except RefusedLog:
            raise
        except (Refused, LookupError, SyntaxError):
            named = last_round_named(source, loop, kinds, True) if isinstance(loop, ast.For) else None
            if named is None:
                raise
            return _left_or_cut(*named, torch, convert)
    try:
        return _left(source, loop, kinds, torch, convert)
    except (Refused, LookupError, SyntaxError):
        asked, same, now = _asked_of_tensors(source, loop, kinds, torch)
        cut = cut_behind(asked, same, now, torch) if isinstance(same, ast.For) else None
        if cut is not None:
            return cut, "Run all rounds, and take what was filled before the break"
        straight = without_continue(source, loop)
        if straight is None:
            raise
        try:
            return _left(*straight, kinds, torch, convert)
        except RefusedLog:
            raise
        except (Refused, LookupError, SyntaxError):
            pass
        raise


def _left(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    """`loop`, which tensor data leaves, with a flag; a `for` that is left in several ways, or whose flag would have ints read
    back in each round, as a function for its rounds."""
    if isinstance(loop, ast.While):
        return _without_leaving(source, loop, kinds, torch, convert)
    kinds = _with_results(source, loop, kinds)
    changing = changing_parts(loop, kinds)
    if changing:
        # A round that is traced inside of the one before takes what that gives as it is.
        try:
            return _by_rounds(source, loop, kinds, torch, convert)
        except (Refused, LookupError, SyntaxError):
            raise Refused(
                f"`{min(changing)}` may have another shape in each round, of which torch.cond could choose none: return "
                "from the loop, and from the function behind it"
            ) from None
    if not 0 <= _rounds(source, loop, kinds) <= _MOST_UNROLLED:
        try:
            return _as_while_left(source, loop, kinds, torch, convert)
        except (Refused, LookupError, SyntaxError):
            # Rounds that are traced one by one may do more.
            pass
    reason: Refused | None = None
    flags: tuple[str, str] | None = None
    if ways_out(loop) == 1:
        try:
            flags = _without_leaving(source, loop, kinds, torch, convert)
            if _numbers_read(Source(flags[0]), loop) <= _numbers_read(source, loop):
                return flags
        except Refused as refused:
            reason = refused
    try:
        return _by_rounds(source, loop, kinds, torch, convert)
    except (Refused, LookupError, SyntaxError) as refused:
        if flags is not None:
            return flags
        if isinstance(refused, RefusedLog):
            # What is printed can be kept out.
            raise
        if reason is not None:
            raise reason from None
    return _without_leaving(source, loop, kinds, torch, convert)


def _rounds(source: Source, loop: ast.For, kinds: Kinds) -> int:
    """How many rounds `loop` has where nothing leaves it, -1 where that is not known."""
    count = count_of(loop.iter, _kinds_around(source, loop, kinds))
    return -1 if count is None else count


def _kinds_around(source: Source, loop: ast.For, kinds: Kinds) -> Kinds:
    """The kinds before `loop`, of which `kinds` are those inside."""
    function = source.enclosing_function(loop)
    if function is None:
        raise Refused("the loop is not inside a function")
    return kinds_before(function, loop, kinds)


def _as_while_left(
    source: Source, loop: ast.For, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    """`loop`, which tensor data leaves, as a `while` with a counter: torch.export would take long to trace all of its rounds."""
    before = _kinds_around(source, loop, kinds)
    runs = has_rounds(loop.iter, before)
    changed, found, now = as_while(source, loop, before.copy(), torch)
    inside = kinds.copy()
    inside.names |= {name: kind for name, kind in now.names.items() if name not in before.names}
    return _without_leaving(changed, found, inside, torch, convert, runs)


def _numbers_read(source: Source, loop: ast.For) -> int:
    """How many numbers each round of `loop`, or of what it has become, reads out of tensors."""
    head = ast.unparse(loop.target), ast.unparse(loop.iter)
    return sum(
        source.of(each).count(".item()")
        for each in ast.walk(source.tree)
        if isinstance(each, ast.For) and (ast.unparse(each.target), ast.unparse(each.iter)) == head
    )


def _with_results(source: Source, loop: ast.For | ast.While, kinds: Kinds) -> Kinds:
    """`kinds` with what the model's own methods and functions give that `loop` calls: the interpreter knows it by the names
    that are bound to nothing else."""
    function = source.enclosing_function(loop)
    found = dict(kinds.results)
    for each in ast.walk(loop) if function is not None else ():
        if not (isinstance(each, ast.Assign) and [type(target) for target in each.targets] == [ast.Name]):
            continue
        name, called = ast.unparse(each.targets[0]), _own_callee(each.value)
        known = kinds.names.get(name)
        if isinstance(getattr(each.value, "func", None), ast.Name) and kinds.of(each.value).what != "unknown":
            continue
        stores = [
            source.parents[one]
            for one in ast.walk(function or loop)
            if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
        ]
        same = all(isinstance(one, ast.Assign) and _own_callee(one.value) == called for one in stores)
        if called and same and known is not None and known.what == "tensor" and known.value is not None:
            # It may be the very tensor that the function is given.
            kind = Kind("tensor", known.dtype, known.rank, None)
            found[called] = kind if found.get(called, kind) == kind else Kind("tensor", roots=None)
    changed = kinds.copy()
    changed.results = found
    return changed


def with_asked_result(kinds: Kinds, node: ast.AST, value: Value | None) -> Kinds:
    """`kinds` with the number that the model's own method or function gives which the decision `node` asks, of which the
    interpreter knows that it is the `value`: `if i < last and self.is_sure(x): return x`."""
    if not isinstance(node, ast.If) or not isinstance(value, TensorScalar):
        return kinds
    asked = [each for each in operands(node.test) if not kinds.of(each).from_data]
    called = [each for each in map(_own_callee, asked) if each]
    if len(called) != 1 or any(kinds.of(each).from_data for each in operands(node.test)):
        return kinds
    changed = kinds.copy()
    changed.results = {called[0]: Kind("scalar", type=value.type), **kinds.results}
    return changed


def operands(test: ast.expr) -> Iterator[ast.expr]:
    """What `and`, `or` and `not` join in `test`."""
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from operands(each)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from operands(test.operand)
    else:
        yield test


def _own_callee(node: ast.expr) -> str:
    """The name of the method of `self`, or of the function, that `node` calls; "" where it is anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _by_rounds(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    """`loop` as a function that calls itself, whose branches are rewritten; tensors decide where numbers of them cannot."""
    try:
        return _in_rounds(source, loop, kinds, torch, convert)
    except (Refused, LookupError, SyntaxError):
        asked = _asked_of_tensors(source, loop, kinds, torch)
        if asked[0] is source:
            raise
        return _in_rounds(*asked, torch, convert)


def _in_rounds(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, convert: Convert
) -> tuple[str, str]:
    if isinstance(loop, ast.For):
        before = _kinds_around(source, loop, kinds)
        now = before.copy()
        held = held_through_rounds(source, loop, now, torch)
        if held is not None:
            source, loop = held
            kinds = kinds.copy()
            kinds.names |= {name: kind for name, kind in now.names.items() if kind != before.names.get(name)}
    text, name, inside = in_rounds(source, loop, kinds, torch)
    return settled(text, [name], inside, torch, convert), _flag_message(loop)


def _block_length(source: Source, made: Flagged) -> int:
    return len(made.block(source.tree))


def _flag_message(loop: ast.For | ast.While) -> str:
    return "Rewrite with torch.cond" if isinstance(loop, ast.For) else WITH_WHILE_LOOP
