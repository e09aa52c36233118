"""One statement or expression that tensor data decides, to a text that torch.export takes, with whatever else inside of it
hangs on tensor data."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import TypeGuard

from exportlens.inference.values import Value
from exportlens.rewriting.arms.bare_numbers import refuse_bare_numbers
from exportlens.rewriting.arms.floats_deeper import bound_floats_held
from exportlens.rewriting.arms.gradients import detached_around, refuse_nested_without_gradients
from exportlens.rewriting.arms.idle_writes import written_anyhow, written_in_any_case
from exportlens.rewriting.arms.items_of_views import items_of_copies
from exportlens.rewriting.arms.later_gradients import refuse_nested_before_switch
from exportlens.rewriting.arms.numbers_read_again import numbers_read_again
from exportlens.rewriting.arms.preparing import prepared, without_unread
from exportlens.rewriting.arms.rows_in_arms import rows_unbound
from exportlens.rewriting.branches.branches import BranchRewrite
from exportlens.rewriting.branches.cast_before import refuse_cast_before
from exportlens.rewriting.branches.choices import as_statement, in_loop, ternary_text
from exportlens.rewriting.branches.copies_in_arms import with_other_copies
from exportlens.rewriting.branches.errors_behind import error_as_way, last_way, unbound_as_way
from exportlens.rewriting.branches.flat_choices import numbers_chosen_flat
from exportlens.rewriting.branches.growing import grown, grown_for_sizes, grown_to_leave, with_others_first
from exportlens.rewriting.branches.open_choices import open_choice_of
from exportlens.rewriting.branches.options_outside import (
    binds_alike,
    held_again,
    leaves_outside,
    option_outside,
)
from exportlens.rewriting.branches.outputs import NumbersReadBack, Outputs
from exportlens.rewriting.branches.switched_off import refuse_switched_off
from exportlens.rewriting.calls.one_device import on_one_device
from exportlens.rewriting.checks.assertions import assert_text, checked_before, raise_text, raises
from exportlens.rewriting.checks.caught_by_callers import caught_as_way
from exportlens.rewriting.checks.caught_here import caught_as_branch
from exportlens.rewriting.checks.errors_before import errors_asked_before
from exportlens.rewriting.checks.left_undone import logs_kept_out
from exportlens.rewriting.checks.one_sided import guarded_assert, only_check
from exportlens.rewriting.code.draft import Refused, RefusedDtypes, RefusedLog, RefusedNumber
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.decisions import with_what_follows
from exportlens.rewriting.decisions.logical_values import logical, why_not
from exportlens.rewriting.decisions.matching import as_branches
from exportlens.rewriting.decisions.named_tests import asked_at_once
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.kept_lists import with_kept
from exportlens.rewriting.lists.sorting import sorted_text
from exportlens.rewriting.loops.asked_behind import asked_in_the_loop, returned_behind
from exportlens.rewriting.loops.attributes_in_loops import with_named_attributes
from exportlens.rewriting.loops.begun_by_else import begun_by_else
from exportlens.rewriting.loops.begun_cells import begun_cells
from exportlens.rewriting.loops.best_rounds import begun_by_first_round
from exportlens.rewriting.loops.bound_by_tests import bound_before
from exportlens.rewriting.loops.counted_loops import as_while
from exportlens.rewriting.loops.early_exits import (
    WITH_WHILE_LOOP,
    left_behind_first,
    left_early,
    with_asked_result,
)
from exportlens.rewriting.loops.else_first import else_first, none_as_else
from exportlens.rewriting.loops.first_rounds import first_round_out
from exportlens.rewriting.loops.held_in_loops import held_in_while_loop
from exportlens.rewriting.loops.leaving import left_loop
from exportlens.rewriting.loops.left_counters import last_round_named
from exportlens.rewriting.loops.loops import LoopRewrite
from exportlens.rewriting.loops.none_at_first import (
    none_at_first,
    none_before,
    none_beside,
    refuse_none_at_first,
)
from exportlens.rewriting.loops.not_yet_bound import flags_around, flags_for_none, may_be_passed_over
from exportlens.rewriting.loops.numbers_in_loops import held_for_loop
from exportlens.rewriting.loops.parted_states import parted_states
from exportlens.rewriting.loops.powers_in_loops import powers_of_counts
from exportlens.rewriting.loops.running_down import running_down, without_else
from exportlens.rewriting.loops.settled_first_rounds import first_round_settled
from exportlens.rewriting.loops.slices_in_loops import slices_at_counts
from exportlens.rewriting.loops.texts_before import texts_before
from exportlens.rewriting.memory.lost_aliases import refuse_later_writes, refuse_lost_alias
from exportlens.rewriting.memory.transposed import transposed_by_methods
from exportlens.rewriting.nested_decisions import settled
from exportlens.rewriting.sizes.indexing import indexed_by_tensors
from exportlens.rewriting.sizes.squeezed_rows import kept_in_rounds, refuse_rounds
from exportlens.rewriting.state.unset_reads import refuse_unset


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
    except Refused:
        asked = asked_at_once(source, node, before)
        if asked is None:
            raise
        return converted(*asked, before, torch, None, ({}, {}))
    text = bound_floats_held(source, numbers_chosen_flat(source, text, before, torch), before, torch)
    text = with_other_copies(text, torch)
    try:
        refuse_nested_without_gradients(source, node, text, torch)
    except Refused:
        changed = detached_around(source, node, before) if isinstance(node, ast.stmt) else None
        if changed is None:
            raise
        text, message = convert(*changed, before, torch, None, ({}, {}))
        message += "; what it computes with is detached"
    refuse_nested_before_switch(source, node, text, torch)
    text = rows_unbound(source, node, on_one_device(source, node, text, before), before)
    return numbers_read_again(source, node, items_of_copies(source, node, text)), message


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
    refuse_rounds(source, node)
    if isinstance(node, ast.If):
        refuse_cast_before(source, node, kinds)
    if isinstance(node, ast.If):
        behind = error_as_way(source, node) or unbound_as_way(source, node)
        if behind is not None:
            return _checked_last(*behind, kinds, torch, value)
        if raises(node):
            here = caught_as_branch(source, node, kinds)
            if here is not None:
                return here, "Branch where the error is caught"
            told = caught_as_way(source, node, kinds, torch)
            if told is not None:
                return told, "Branch where the error is caught"
            return raise_text(source, node, kinds, torch, value), "Assert in the graph"
    only = only_check(source, node) if isinstance(node, ast.If) else None
    if isinstance(node, ast.If) and only is not None:
        return guarded_assert(source, node, only, kinds, torch), "Assert in the graph"
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
    if isinstance(node, ast.While) and exits(node.body) & {"breaks", "returns", "raises"}:
        loop = node
    if loop is not None:
        source, loop = none_beside(source, loop) or (source, loop)
        source, loop, kinds = _with_states(source, loop, kinds)
        source, loop = else_first(source, loop, torch) or (source, loop)
        kinds = with_asked_result(kinds, node, value)
        try:
            refuse_none_at_first(source, loop, kinds)
            return left_early(source, loop, kinds, torch, converted_inside)
        except Refused:
            given = bool(none_at_first(source, loop, kinds))
            for changed, same, now in () if given else _other_ends(source, loop, kinds, torch):
                with contextlib.suppress(Refused, LookupError, SyntaxError):
                    return left_early(changed, same, now, torch, converted_inside)
            counted = last_round_named(source, loop, kinds) if isinstance(loop, ast.For) else None
            first = first_round_settled(*(counted or (source, loop, kinds)), torch)
            if first is None:
                raise
            changed, same, now = first.source, first.loop, first.kinds
            with contextlib.suppress(Refused, LookupError, SyntaxError):
                if first.breaking:
                    return left_behind_first(changed, same, now, torch, converted_inside, first.breaking)
                return left_early(changed, same, now, torch, converted_inside)
            raise
    if isinstance(node, ast.If):
        return _branch(source, node, kinds, torch, value, arms), "Rewrite with torch.cond"
    if isinstance(node, (ast.While, ast.For)):
        source, node, kinds = _with_states(source, node, kinds)
        before = kinds.copy()
        source, node = without_else(source, node) or (source, node)
        source, node = running_down(source, node) or (source, node)
        try:
            refuse_none_at_first(source, node, kinds)
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
            refuse_switched_off(source, node)
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
        here = caught_as_branch(source, node, kinds)
        if here is not None:
            return here, "Branch where the error is caught"
        return assert_text(source, node, kinds, torch, value), "Assert in the graph"
    elif isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare)) or _calls(node, ("any", "all", "bool")):
        return logical(source, node, kinds, torch), "Use the tensor's logical operator"
    elif _is_sort(node):
        refuse_later_writes(source, node)
        keyed = any(each.arg == "key" for each in node.keywords)
        return sorted_text(source, node, kinds, torch), (
            "Order the keys as one tensor" if keyed else "Sort with torch.sort"
        )
    else:
        raise Refused(why_not(source, node))
    return settled(text, functions, before, torch, converted_inside), message


def converted_inside(source: Source, node: ast.AST, kinds: Kinds, torch: str) -> str:
    """The text with `node`, a decision inside of code that a rewrite has made, converted. Raises Refused."""
    return convert(source, node, kinds, torch, None, ({}, {}))[0]


def _with_states(
    source: Source, loop: ast.For | ast.While, kinds: Kinds
) -> tuple[Source, ast.For | ast.While, Kinds]:
    """The text where `loop` begins with the states of cells that it carries, and carries them as tensors."""
    begun = begun_cells(source, loop, kinds)
    names = [] if begun is None else [*none_at_first(source, loop, kinds), *none_before(source, loop)]
    source, loop = begun or (source, loop)
    return parted_states(source, loop, kinds, names) or (source, loop, kinds)


def _other_ends(
    source: Source, loop: ast.For | ast.While, kinds: Kinds, torch: str
) -> Iterator[tuple[Source, ast.For | ast.While, Kinds]]:
    """The texts in which `loop`, which was refused, and what follows it do the same in another form, the loop of each and the
    kinds inside of it."""
    instead = none_as_else(source, loop, kinds)
    if instead is not None:
        yield *instead, kinds
    else:
        instead = asked_in_the_loop(source, loop)
        if instead is not None:
            source, loop = instead
        returned = returned_behind(source, loop, kinds)
        instead = returned or instead
    source, loop = instead or (source, loop)
    source, loop = else_first(source, loop, torch) or (source, loop)
    unset = flags_for_none(source, loop, kinds, torch)
    if unset is not None:
        yield unset
        return
    begun = begun_by_else(source, loop, kinds)
    if begun is not None:
        yield *begun, kinds
    elif instead is not None:
        yield source, loop, kinds


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
        first = first_round_settled(source, loop, kinds, torch)
        if first is not None and not first.breaking and isinstance(first.loop, ast.While):
            yield first.source, first.loop, first.kinds_before()


def _looped(
    source: Source, node: ast.While | ast.For, kinds: Kinds, torch: str, value: Value | None
) -> tuple[str, list[str], Kinds]:
    """The text with `node` as while_loop, the names of its functions, and the kinds inside."""
    source, node, kinds = texts_before(source, node, kinds) or (source, node, kinds)
    source, node = kept_in_rounds(source, node) or (source, node)
    source, node = transposed_by_methods(source, node, kinds) or (source, node)
    source, node = indexed_by_tensors(source, node, kinds.copy(), torch, certain=True) or (source, node)
    source, node = powers_of_counts(source, node, kinds) or (source, node)
    source, node = slices_at_counts(source, node, kinds) or (source, node)
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
    text = open_choice_of(source, node, kinds, torch)
    if text is not None:
        return text
    sized = grown_for_sizes(source, node, kinds)
    if sized is not None:
        with contextlib.suppress(Refused, LookupError, SyntaxError):
            return _cond(*sized, kinds.copy(), torch, value, ({}, {}))
    told = flags_around(source, node, kinds, torch) if may_be_passed_over(source, node) else None
    if told is not None:
        with contextlib.suppress(Refused, LookupError, SyntaxError):
            return _cond(*told, torch, value, ({}, {}))
    try:
        return _cond(source, node, kinds, torch, value, arms)
    except Refused as refused:
        if isinstance(refused, RefusedNumber) and refused.counts:
            text = _read_back(source, node, kinds, torch, value, arms)
            if text is not None:
                return text
        with_numbers: list[tuple[Source, ast.If, Kinds]] = []
        for changed, branch, now in _other_forms(source, node, kinds, torch, refused):
            before = now.copy()
            try:
                return _cond(changed, branch, now, torch, value, ({}, {}))
            except RefusedNumber:
                with_numbers.append((changed, branch, before))
            except (Refused, LookupError, SyntaxError):
                continue
        asked = errors_asked_before(source, node, kinds, torch)
        if asked is not None:
            with contextlib.suppress(Refused, LookupError, SyntaxError):
                return _branch(*asked, kinds.copy(), torch, value, ({}, {}))
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
        for form in with_numbers:
            text = _read_back(*form, torch, value, ({}, {}))
            if text is not None:
                return text
        text = written_anyhow(source, node, kinds)
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
    unset = flags_around(source, node, kinds, torch)
    if unset is not None:
        yield unset
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
    text = settled(text, functions, before, torch, converted_inside)
    refuse_bare_numbers(source.text, text)
    return text


def _after_subjects(source: Source, chain: ast.If, named: int, kinds: Kinds) -> Kinds:
    """The kinds at `chain`, before which `named` statements gave what a `match` compares a name."""
    block, index = source.block_of(chain)
    after = kinds.copy()
    after.run(block[index - named : index])
    return after


def _is_sort(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    keyed = name in ("max", "min") and any(each.arg == "key" for each in node.keywords)
    return keyed or name in ("sorted", "sort")


def _calls(node: ast.AST, names: tuple[str, ...]) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
