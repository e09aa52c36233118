"""Control flow on tensor data: one `Truth` place to one Fix, with whatever else inside of it hangs on
tensor data."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Place, Site, Truth
from exportlens.inference.values import Shape, Value
from exportlens.rewriting.asked_numbers import read_as_bools
from exportlens.rewriting.assertions import assert_text, checked_before, raise_text, raises
from exportlens.rewriting.attributes_in_loops import with_named_attributes
from exportlens.rewriting.best_rounds import begun_by_first_round
from exportlens.rewriting.bound_by_tests import bound_before
from exportlens.rewriting.branches import BranchRewrite
from exportlens.rewriting.choices import as_statement, in_loop, ternary_text
from exportlens.rewriting.chosen_results import WRITE_OUT_CHOICE, calls_written_out
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.continues import without_continue
from exportlens.rewriting.counted_loops import as_while
from exportlens.rewriting.cut_lists import cut_behind
from exportlens.rewriting.decisions import (
    decided_loop,
    hazard_among,
    same_place,
    test_of,
    whole,
    with_what_follows,
)
from exportlens.rewriting.draft import (
    Draft,
    Refused,
    RefusedDtypes,
    RefusedLog,
    RefusedNested,
    RefusedNumber,
    RefusedType,
    WholeDraft,
)
from exportlens.rewriting.eager_contexts import MESSAGE, importing, in_eager_alone
from exportlens.rewriting.effects import is_log, kinds_before, logs_kept_out
from exportlens.rewriting.errors_behind import error_as_way, last_way
from exportlens.rewriting.filtered import Comprehension, counted, filtering, written_out
from exportlens.rewriting.first_rounds import first_round_out
from exportlens.rewriting.flat_choices import numbers_chosen_flat
from exportlens.rewriting.gradients import (
    detached_around,
    none_by_default,
    refuse_nested_without_gradients,
)
from exportlens.rewriting.growing import grown, grown_for_sizes, grown_to_leave, with_others_first
from exportlens.rewriting.held_in_loops import held_in_while_loop
from exportlens.rewriting.idle_masks import KEEP_MASK, kept_text
from exportlens.rewriting.idle_writes import written_in_any_case
from exportlens.rewriting.indexing import indexed_by_tensors
from exportlens.rewriting.kept_lists import with_kept
from exportlens.rewriting.kind import Kind
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.later_gradients import refuse_nested_before_switch
from exportlens.rewriting.leaving import Flagged, flagged, left_loop
from exportlens.rewriting.left_counters import last_round_named
from exportlens.rewriting.liveness import exits
from exportlens.rewriting.logical_values import logical, why_not
from exportlens.rewriting.loops import LoopRewrite
from exportlens.rewriting.lost_aliases import refuse_later_writes, refuse_lost_alias
from exportlens.rewriting.matching import as_branches
from exportlens.rewriting.numbers_in_loops import held_for_loop
from exportlens.rewriting.numbers_of_lists import listed_one_by_one
from exportlens.rewriting.one_device import on_one_device
from exportlens.rewriting.optional_results import WRITE_OUT, written_where_called
from exportlens.rewriting.options_outside import binds_alike, held_again, leaves_outside, option_outside
from exportlens.rewriting.outputs import NumbersReadBack, Outputs
from exportlens.rewriting.preparing import keep_tensors, prepared, without_unread
from exportlens.rewriting.rounds import count_of, in_rounds, ways_out
from exportlens.rewriting.running_down import running_down
from exportlens.rewriting.searched_lists import SEARCH, counted_at_once, first_found, is_search, searched
from exportlens.rewriting.searched_loops import first_round_found
from exportlens.rewriting.seen_numbers import SEEN, asked_before
from exportlens.rewriting.selections import refuse_other_shapes, refuse_unlike, where_text
from exportlens.rewriting.sorting import sorted_text
from exportlens.rewriting.squeezed_rows import kept_in_rounds
from exportlens.rewriting.text import Replacement, Source, edits, replaced
from exportlens.rewriting.transposed import transposed_by_methods
from exportlens.rewriting.unset_reads import refuse_unset

_MOST_NESTED = 30
# More rounds than these, each with its branches, are not traced one by one: torch.export takes a second or two for each.
_MOST_UNROLLED = 10


# Eager's while_loop of torch 2.13 loses what flows through a tensor that begins without a need for gradients.
WITH_WHILE_LOOP = "Rewrite with while_loop, for inference: gradients through it may be incomplete"


def rewrite_truth(place: Truth, context: RewriteContext) -> Fix | Refusal:
    """The fix for a test of tensor data: torch.cond, while_loop, an assertion, or a logical operator.

    Where the place's branch holds further branches on tensor data they are rewritten with it, or the whole
    is refused.
    """
    try:
        draft = Draft.of(place, context)
        node = whole(draft.source, draft.source.find(place.node), draft.source.find(place.statement))
        if isinstance(place.value, Shape) and place.site.optional and not _is_for_given(draft.source, node):
            # torch.cond takes no Python bool: it would warn, and trace one side only.
            raise Refused(
                "the size depends on tensor data where an optional argument is given, and is a plain number elsewhere"
            )
        kinds = _kinds(draft, node, place.variables)
        comprehension = filtering(draft.source, node)
        if isinstance(node, ast.Call) and is_search(node):
            return draft.fix(SEARCH, searched(draft.source, node, kinds, draft.torch))
        if comprehension is not None:
            return _filtered(draft, comprehension, kinds)
        value = place.value if test_of(node) is None or same_place(test_of(node), place.node) else None
        if isinstance(node, ast.If) and _only_logs(node, kinds):
            return draft.fix("Keep this out of the traced program", _guarded(draft, node))
        kept = kept_text(draft.source, node, kinds) if isinstance(node, (ast.If, ast.IfExp)) else None
        if kept is not None:
            return draft.fix(KEEP_MASK, kept, uses_torch=False)
        written_out = written_where_called(draft.source, node) if isinstance(node, ast.If) else None
        if written_out is not None:
            return draft.fix(WRITE_OUT, written_out, uses_torch=False)
        seen = asked_before(draft.source, node, kinds) if isinstance(node, ast.If) else None
        if seen is not None:
            return draft.fix(SEEN, seen, uses_torch=False)
        decided = decided_loop(draft.source, node, kinds) if isinstance(node, ast.If) else None
        if decided is not None:
            loop = _decided(draft, decided, place)
            if loop is not None:
                return loop
        own = draft.source.find(place.statement) is node
        arms = (dict(place.then), dict(place.other)) if own else ({}, {})
        selected = _selection(draft, node, kinds.copy(), value, refuse_unlike)
        # torch.cond takes for granted that both sides are of one dtype, too.
        instead = selected or _selection(draft, node, kinds.copy(), value, refuse_other_shapes)
        instead = instead or _prepared_selection(draft, node, kinds.copy())
        fix = replace(_fix_of(draft, node, kinds, value, arms, place.site), without_operator=instead)
        return fix if selected is None else replace(fix, alternatives=(selected,))
    except RefusedType as refused:
        return read_as_bools(draft, node, place) or Refusal(str(refused))
    except (Refused, LookupError, SyntaxError) as refused:
        return _written_out(place, context) or Refusal(_reason(refused))


def _written_out(place: Truth, context: RewriteContext) -> Fix | None:
    """The fix that writes out the function around `place` where it is called; None where there is none."""
    try:
        draft = WholeDraft.around(Draft.of(place, context))
        text = None
        if isinstance(place.node, ast.expr):
            text = calls_written_out(draft.source, draft.found(place.node))
        if text is None:
            return None
        Source(text)
    except (Refused, LookupError, SyntaxError):
        return None
    made = tuple(edits(draft.source.text, text, 0))
    return Fix(WRITE_OUT_CHOICE, made, Applicability.UNSAFE)


def _is_for_given(source: Source, node: ast.AST) -> bool:
    """Whether `node` only runs where an argument is given that is None otherwise."""
    inner = node
    for outer in source.ancestors(node):
        if isinstance(outer, ast.If) and isinstance(outer.test, ast.Compare) and len(outer.test.ops) == 1:
            test = outer.test
            none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
            arm = outer.body if isinstance(test.ops[0], ast.IsNot) else outer.orelse
            function = source.enclosing_function(outer)
            asks = none and isinstance(test.ops[0], (ast.Is, ast.IsNot)) and inner in arm
            if asks and function is not None and ast.unparse(test.left) in none_by_default(function):
                return True
        inner = outer
    return False


def _decided(draft: Draft, loop: ast.While, place: Truth) -> Fix | None:
    """The fix for `loop`, which goes on by numbers that tensor data chooses in it; None where there is none."""
    try:
        return _fix_of(draft, loop, _kinds(draft, loop, place.variables), None, ({}, {}))
    except (Refused, LookupError, SyntaxError):
        return None


def _filtered(draft: Draft, node: Comprehension, kinds: Kinds) -> Fix:
    """The fix for a comprehension that tensor data filters. Raises Refused."""
    text = first_found(draft.source, node, kinds, draft.torch)
    if text is not None:
        return draft.fix(SEARCH, text)
    text = counted_at_once(draft.source, node, kinds) or counted(draft.source, node, kinds, draft.torch)
    if text is not None:
        return draft.fix("Count with a tensor", text)
    source, branch, now = written_out(draft.source, node, kinds)
    try:
        text, message = converted(source, branch, now, draft.torch, None, ({}, {}))
    except Refused:
        if isinstance(node, ast.GeneratorExp):
            raise
        raise Refused(why_not(draft.source, node.generators[0].ifs[0])) from None
    return draft.fix(message, text)


def _selection(
    draft: Draft,
    node: ast.AST,
    kinds: Kinds,
    value: Value | None,
    refuse: Callable[[ast.expr, ast.expr, Kinds], None],
) -> Fix | None:
    """The fix by torch.where, where both sides may be computed and `refuse` does not raise. What torch.cond refuses for shared
    memory it would not notice: it is offered beside that only."""
    if not isinstance(node, (ast.If, ast.IfExp)):
        return None
    try:
        text = where_text(draft.source, node, kinds, draft.torch, value, refuse)
        return draft.fix("Select with torch.where", text)
    except (Refused, LookupError, SyntaxError):
        return None


def _prepared_selection(draft: Draft, node: ast.AST, kinds: Kinds) -> Fix | None:
    """As `_selection`, where what is printed or logged beside the one assignment moves before the branch."""
    if not isinstance(node, ast.If) or not any(isinstance(each, ast.Expr) for each in node.body):
        return None
    try:
        source, branch, now = prepared(draft.source, node, kinds, draft.torch)
        text = where_text(source, branch, now, draft.torch, None, refuse_other_shapes)
        return draft.fix("Select with torch.where", text)
    except (Refused, LookupError, SyntaxError):
        return None


def rewrite_range(place: Place, context: RewriteContext) -> Fix | Refusal:
    """The fix for `for i in range(int(t))`: while_loop."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.enclosing_statement(draft.source.find(place.node))
        if not isinstance(node, ast.For):
            raise Refused("only a `for` statement becomes a while_loop")
        return _fix_of(draft, node, _kinds(draft, node, getattr(place, "variables", {})), None, ({}, {}))
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(_reason(refused))


def _kinds(draft: Draft, node: ast.AST, variables: Mapping[str, Value]) -> Kinds:
    known = draft.kinds(variables)
    statement = draft.source.enclosing_statement(node)
    function = draft.source.enclosing_function(statement)
    return known if function is None else kinds_before(function, statement, known)


def _reason(refused: Exception) -> str:
    if isinstance(refused, Refused):
        return str(refused)
    return "the rewritten code would not parse" if isinstance(refused, SyntaxError) else str(refused)


def _fix_of(
    draft: Draft,
    node: ast.AST,
    kinds: Kinds,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
    site: Site | None = None,
) -> Fix:
    before = kinds.copy()
    try:
        text, message = converted(draft.source, node, kinds, draft.torch, value, arms)
        return draft.fix(
            message, text if site is None else listed_one_by_one(draft, node, site, before, text)
        )
    except RefusedNested:
        changed = in_eager_alone(draft, draft.source, node, before) if isinstance(node, ast.stmt) else None
        if changed is None:
            raise
        text, message = converted(*changed, before, draft.torch, None, ({}, {}))
        return importing(draft, draft.fix(message + MESSAGE, text))


def converted(
    source: Source,
    node: ast.AST,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
) -> tuple[str, str]:
    """As `convert`, with what prints or logs kept out of the program where it cannot move before a branch."""
    before = kinds.copy()
    try:
        text, message = convert(source, node, kinds, torch, value, arms)
    except RefusedLog:
        changed = (
            logs_kept_out(source, with_what_follows(source, node), node, before, torch)
            if isinstance(node, ast.stmt)
            else None
        )
        if changed is None:
            raise
        text, message = convert(*changed, before, torch, value, ({}, {}))
        # In eager, too, torch compiles what an operator runs.
        message += "; what is printed or logged in it is left out"
    text = numbers_chosen_flat(source, text, before, torch)
    try:
        refuse_nested_without_gradients(source, node, text, torch)
    except Refused:
        changed = detached_around(source, node, before) if isinstance(node, ast.stmt) else None
        if changed is None:
            raise
        text, message = convert(*changed, before, torch, None, ({}, {}))
        message += "; what it computes with is detached"
    refuse_nested_before_switch(source, node, text, torch)
    return on_one_device(source, node, text, before), message


def convert(
    source: Source,
    node: ast.AST,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
) -> tuple[str, str]:
    """The new text, and what was done. Raises Refused."""
    before = kinds.copy()
    functions: list[str] = []
    refuse_unset(source, node, kinds.around)
    if isinstance(node, ast.If):
        behind = error_as_way(source, node)
        if behind is not None:
            return _checked_last(*behind, kinds, torch, value)
        if raises(node):
            return raise_text(source, node, kinds, torch, value), "Assert in the graph"
    if (
        isinstance(node, ast.If)
        and not node.orelse
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Assert)
    ):
        return _guarded_assert(source, node, node.body[0], kinds, torch), "Assert in the graph"
    if isinstance(node, ast.Match):
        source, chain, named = as_branches(source, node, kinds)
        now = _after_subjects(source, chain, named, kinds)
        last = last_way(chain)
        if last is not chain and raises(last):
            # What no case takes is an error: the last case is checked.
            return _checked_last(source, chain, now, torch, None)
        return convert(source, chain, now, torch, None, ({}, {}))
    if isinstance(node, ast.While):
        source, node, kinds = bound_before(source, node, kinds) or (source, node, kinds)
        before = kinds.copy()
    loop = left_loop(source, node) if isinstance(node, ast.stmt) else None
    if isinstance(node, ast.While) and exits(node.body) & {"breaks", "returns"}:
        loop = node
    if loop is not None:
        return _searched_or_left(source, loop, kinds, torch)
    if isinstance(node, ast.If):
        return _branch(source, node, kinds, torch, value, arms), "Rewrite with torch.cond"
    if isinstance(node, (ast.While, ast.For)):
        source, node = running_down(source, node) or (source, node)
        try:
            text, functions, before = _looped(source, node, kinds.copy(), torch, value)
        except Refused as refused:
            for changed, loop, now in _other_loops(source, node, kinds, torch):
                try:
                    return convert(changed, loop, now, torch, None, ({}, {}))
                except Refused as other:
                    # What is left of a loop over a range is in the way.
                    refused = other if isinstance(node, ast.For) else refused
            raise refused from None
        message = WITH_WHILE_LOOP
    elif isinstance(node, ast.IfExp):
        source, node = transposed_by_methods(source, node, kinds) or (source, node)
        refuse_lost_alias(source, node, kinds)
        written = as_statement(source, node, kinds)
        if written is not None and grown_for_sizes(*written, kinds) is not None:
            with contextlib.suppress(Refused):
                return convert(*written, kinds.copy(), torch, None, ({}, {}))
        try:
            return ternary_text(source, node, kinds, torch, value), "Rewrite with torch.cond"
        except Refused as refused:
            written = as_statement(source, node, kinds)
            looped = in_loop(source, node, kinds) if written is None else None
            if looped is not None:
                source, node, kinds = looped
                written = as_statement(source, node, kinds)
            if written is None or isinstance(refused, RefusedDtypes):
                raise
            try:
                return convert(*written, kinds, torch, None, ({}, {}))
            except Refused:
                raise refused from None
    elif isinstance(node, ast.Assert):
        return assert_text(source, node, kinds, torch, value), "Assert in the graph"
    elif isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare)) or _calls(node, ("any", "all", "bool")):
        return logical(source, node, kinds, torch), "Use the tensor's logical operator"
    elif _is_sort(node):
        refuse_later_writes(source, node)
        return sorted_text(source, node, kinds, torch), "Sort with torch.sort"
    else:
        raise Refused(why_not(source, node))
    return settled(text, functions, before, torch), message


def _other_loops(
    source: Source, loop: ast.While | ast.For, kinds: Kinds, torch: str
) -> Iterator[tuple[Source, ast.While, Kinds]]:
    """The texts with another loop for `loop`, which was refused, that does the same, and the kinds just before it."""
    if isinstance(loop, ast.For):
        with contextlib.suppress(Refused):
            yield as_while(source, loop, kinds.copy(), torch)
    else:
        started = first_round_out(source, loop, kinds)
        if started is not None:
            yield started


def _looped(
    source: Source, node: ast.While | ast.For, kinds: Kinds, torch: str, value: Value | None
) -> tuple[str, list[str], Kinds]:
    """The text with `node` as while_loop, the names of its functions, and the kinds inside."""
    source, node = kept_in_rounds(source, node) or (source, node)
    source, node = transposed_by_methods(source, node, kinds) or (source, node)
    source, node = indexed_by_tensors(source, node, kinds.copy(), torch, certain=True) or (source, node)
    now = kinds.copy()
    held = held_in_while_loop(source, node, now, torch)
    if held is not None:
        source, node, kinds = *held, now
    now = kinds.copy()
    numbers = held_for_loop(source, node, now, torch)
    if numbers is not None:
        source, node, kinds = *numbers, now
    now = kinds.copy()
    named = with_named_attributes(source, node, now)
    if named is not None:
        source, node, kinds = *named, now
    loop_rewrite = LoopRewrite(source, node, kinds, torch, value)
    text, functions = loop_rewrite.text()
    return text, functions, loop_rewrite.kinds_inside


def _checked_last(
    source: Source, node: ast.If, kinds: Kinds, torch: str, value: Value | None
) -> tuple[str, str]:
    """The text where the last way of `node`, which raises, is a check of the way before, and what is left of `node` converted."""
    last, begin = last_way(node), source.start(node)
    if last is node:
        return raise_text(source, node, kinds, torch, value), "Assert in the graph"
    source = Source(raise_text(source, last, kinds.copy(), torch, None))
    return convert(source, source.branch_at(begin), kinds, torch, None, ({}, {}))


def _branch(
    source: Source,
    node: ast.If,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
) -> str:
    """The whole text with the `if` as torch.cond, which takes in what follows where it can give nothing else."""
    source, node = without_unread(source, node)
    text = written_in_any_case(source, node, kinds)
    if text is not None:
        return text
    sized = grown_for_sizes(source, node, kinds)
    if sized is not None:
        with contextlib.suppress(Refused, LookupError, SyntaxError):
            return _cond(*sized, kinds.copy(), torch, value, ({}, {}))
    try:
        return _cond(source, node, kinds, torch, value, arms)
    except Refused as refused:
        if isinstance(refused, RefusedNumber) and refused.counts:
            text = _read_back(source, node, kinds, torch, value, arms)
            if text is not None:
                return text
        for changed, branch, now in _other_forms(source, node, kinds, torch, refused):
            try:
                return _cond(changed, branch, now, torch, value, ({}, {}))
            except (Refused, LookupError, SyntaxError):
                continue
        leaving = grown_to_leave(source, node, kinds)
        if leaving is not None:
            with contextlib.suppress(Refused, LookupError, SyntaxError):
                return convert(*leaving, kinds.copy(), torch, None, ({}, {}))[0]
        text = _by_option(source, node, kinds, torch)
        if text is not None:
            return text
        if isinstance(refused, RefusedNumber) and not refused.counts:
            text = _read_back(source, node, kinds, torch, value, arms)
            if text is not None:
                return text
        raise


def _read_back(
    source: Source,
    node: ast.If,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
) -> str | None:
    """The text where the numbers that the branch chooses are read behind it; None where they cannot be."""
    try:
        return _cond(source, node, kinds, torch, value, arms, NumbersReadBack)
    except (Refused, LookupError, SyntaxError):
        return None


def _by_option(source: Source, node: ast.If, kinds: Kinds, torch: str) -> str | None:
    """The text with an option that `node` asks around it, where the branch becomes torch.cond without the option, and with it
    too where it can: its defaults may say that it does not hold."""
    forms = list(option_outside(source, node, kinds, torch))
    if not forms:
        return None
    (changed, without, _), (_, held, now) = forms
    try:
        text = _branch(changed, without, kinds.copy(), torch, None, ({}, {}))
    except (Refused, LookupError, SyntaxError):
        return None
    again = Source(text)
    same = held_again(again, changed, held)
    if same is None:
        return text
    option = again.parents[same]
    assert isinstance(option, ast.If)
    # What stands before may bind other kinds by now.
    told = dict(now.names)
    for each in reversed([option, *again.ancestors(option)]):
        if isinstance(each, ast.stmt) and again.enclosing_function(each) is again.enclosing_function(option):
            block, index = again.block_of(each)
            now.run(block[:index])
    for name, kind in told.items():
        if now.names[name].what == "unknown" and binds_alike(changed, again, name):
            now.names[name] = kind
    try:
        both = _branch(again, same, now, torch, None, ({}, {}))
    except (Refused, LookupError, SyntaxError):
        return text
    return both if leaves_outside(text, both, again.start(option), again.end(option)) else text


def _other_forms(
    source: Source, node: ast.If, kinds: Kinds, torch: str, refused: Refused
) -> Iterator[tuple[Source, ast.If, Kinds]]:
    """The texts that do the same as `source`, with the `if` statement that stands for `node`, which was refused, and the
    kinds just before that."""
    checked = checked_before(source, node, kinds, torch)
    if checked is not None:
        yield *checked, kinds
    kept = with_kept(source, node, kinds, torch)
    if kept is not None:
        yield kept
    begun = begun_by_first_round(source, node, kinds, torch)
    if begun is not None:
        yield begun
    if not isinstance(refused, RefusedDtypes):
        source, node, kinds = with_others_first(source, node, kinds) or (source, node, kinds)
        yield from ((*each, kinds) for each in grown(source, node, kinds))


def _cond(
    source: Source,
    node: ast.If,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    arms: tuple[dict[str, Value], dict[str, Value]],
    outputs: type[Outputs] = Outputs,
) -> str:
    changed, branch, now = prepared(source, node, kinds, torch)
    before = kinds.copy()
    if changed is not source:
        arms, before = ({}, {}), now.copy()
    text, functions = BranchRewrite(changed, branch, now, torch, value, arms, outputs).text()
    return settled(text, functions, before, torch)


def _after_subjects(source: Source, chain: ast.If, named: int, kinds: Kinds) -> Kinds:
    """The kinds at `chain`, before which `named` statements gave what a `match` compares a name."""
    block, index = source.block_of(chain)
    after = kinds.copy()
    after.run(block[index - named : index])
    return after


def _without_leaving(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str, runs: bool = False
) -> tuple[str, str]:
    """`loop` with a flag in the place of its `break` or `return`, and all branches on the flag rewritten. A `while` that `runs`
    has a first round."""
    function = source.enclosing_function(loop)
    if function is None:
        raise Refused("the loop is not inside a function")
    source, loop, kinds = _asked_of_tensors(source, loop, kinds, torch)
    before = kinds_before(function, loop, kinds)
    made = flagged(source, loop, kinds, torch, runs)
    text, more = made.text, 0
    for _ in range(_MOST_NESTED):
        changed = Source(text)
        statements = made.statements(changed.tree, more)
        found = hazard_among(changed, statements, before.copy(), torch)
        if found is None:
            return text, _flag_message(loop)
        count = _block_length(changed, made)
        text, _ = convert(changed, found[0], found[1], torch, None, ({}, {}))
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


def _searched_or_left(source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str) -> tuple[str, str]:
    """As `_left_early`; a loop that cannot be left so may be one that only looks for a round."""
    try:
        return _left_early(source, loop, kinds, torch)
    except (Refused, LookupError, SyntaxError):
        text = first_round_found(source, loop, kinds, torch) if isinstance(loop, ast.For) else None
        if text is None:
            raise
        return text, SEARCH


def _left_early(source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str) -> tuple[str, str]:
    """`loop`, which tensor data leaves, with a flag or as a function, or to its end where it only fills lists."""
    named = last_round_named(source, loop, kinds) if isinstance(loop, ast.For) else None
    if named is not None:
        return _left_early(*named, torch)
    try:
        return _left(source, loop, kinds, torch)
    except (Refused, LookupError, SyntaxError):
        cut = cut_behind(source, loop, kinds, torch) if isinstance(loop, ast.For) else None
        if cut is not None:
            return cut, "Run all rounds, and take what was filled before the break"
        straight = without_continue(source, loop)
        if straight is None:
            raise
        try:
            return _left(*straight, kinds, torch)
        except RefusedLog:
            raise
        except (Refused, LookupError, SyntaxError):
            pass
        raise


def _left(source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str) -> tuple[str, str]:
    """`loop`, which tensor data leaves, with a flag; a `for` that is left in several ways, or whose flag would have ints read
    back in each round, as a function for its rounds."""
    if isinstance(loop, ast.While):
        return _without_leaving(source, loop, kinds, torch)
    kinds = _with_results(source, loop, kinds)
    if not 0 <= _rounds(source, loop, kinds) <= _MOST_UNROLLED:
        try:
            return _as_while_left(source, loop, kinds, torch)
        except (Refused, LookupError, SyntaxError):
            # Rounds that are traced one by one may do more.
            pass
    reason: Refused | None = None
    flags: tuple[str, str] | None = None
    if ways_out(loop) == 1:
        try:
            flags = _without_leaving(source, loop, kinds, torch)
            if _numbers_read(Source(flags[0]), loop) <= _numbers_read(source, loop):
                return flags
        except Refused as refused:
            reason = refused
    try:
        return _by_rounds(source, loop, kinds, torch)
    except (Refused, LookupError, SyntaxError):
        if flags is not None:
            return flags
        if reason is not None:
            raise reason from None
    return _without_leaving(source, loop, kinds, torch)


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


def _as_while_left(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> tuple[str, str]:
    """`loop`, which tensor data leaves, as a `while` with a counter: torch.export would take long to trace all of its rounds."""
    before = _kinds_around(source, loop, kinds)
    runs = before.has_elements(loop.iter)
    changed, found, now = as_while(source, loop, before.copy(), torch)
    inside = kinds.copy()
    inside.names |= {name: kind for name, kind in now.names.items() if name not in before.names}
    return _without_leaving(changed, found, inside, torch, runs)


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


def _own_callee(node: ast.expr) -> str:
    """The name of the method of `self`, or of the function, that `node` calls; "" where it is anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _by_rounds(source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str) -> tuple[str, str]:
    """`loop` as a function that calls itself, whose branches are rewritten."""
    text, name, inside = in_rounds(source, loop, kinds, torch)
    return settled(text, [name], inside, torch), _flag_message(loop)


def _block_length(source: Source, made: Flagged) -> int:
    return len(made.block(source.tree))


def _flag_message(loop: ast.For | ast.While) -> str:
    return "Rewrite with torch.cond" if isinstance(loop, ast.For) else WITH_WHILE_LOOP


def _guarded_assert(source: Source, node: ast.If, check: ast.Assert, kinds: Kinds, torch: str) -> str:
    """`if c: assert t` asserts `not c or t`."""
    message = f", {source.of(check.msg)}" if check.msg is not None else ""
    text = f"assert not ({source.of(node.test)}) or ({source.of(check.test)}){message}"
    if source.text.startswith("elif", source.start(node)):
        raise Refused("an `elif` that only checks")
    start = source.start(node)
    simple = Source(replaced(source.text, [Replacement(start, source.span([node])[1], text)]))
    statement = next(
        each for each in ast.walk(simple.tree) if isinstance(each, ast.Assert) and simple.start(each) == start
    )
    return assert_text(simple, statement, kinds, torch)


def settled(text: str, functions: list[str], kinds: Kinds, torch: str) -> str:
    """Rewrite what hangs on tensor data inside of the new functions, too."""
    for _ in range(_MOST_NESTED):
        source = Source(text)
        found = None
        for function in ast.walk(source.tree):
            if isinstance(function, ast.FunctionDef) and function.name in functions:
                found = hazard_among(source, function.body, kinds.copy(), torch)
                if found is not None:
                    break
        if found is None:
            return text
        node, now = found
        text, _ = convert(source, node, now, torch, None, ({}, {}))
    raise Refused("branches on tensor data are nested too deeply")


def _only_logs(node: ast.If, kinds: Kinds) -> bool:
    return not node.orelse and all(
        isinstance(each, ast.Expr) and is_log(each.value, kinds) for each in node.body
    )


def _guarded(draft: Draft, node: ast.If) -> str:
    """Printing and logging run as before in eager mode, and are no part of the program."""
    test = draft.source.of(node.test)
    text = (
        f"({test})"
        if isinstance(node.test, (ast.BoolOp, ast.IfExp, ast.NamedExpr))
        and not isinstance(getattr(node.test, "op", None), ast.And)
        else test
    )
    return replaced(
        draft.source.text,
        [draft.source.swap(node.test, f"not {draft.torch}.compiler.is_compiling() and {text}")],
    )


def _is_sort(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name in ("sorted", "sort")


def _calls(node: ast.AST, names: tuple[str, ...]) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
