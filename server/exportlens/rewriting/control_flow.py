"""Control flow on tensor data: one `Truth` place to one Fix, with whatever else inside of it hangs on
tensor data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Place, Site, Truth
from exportlens.inference.values import Shape, TensorScalar, Value
from exportlens.rewriting.arms.gradients import none_by_default
from exportlens.rewriting.arms.idle_masks import KEEP_MASK, kept_text
from exportlens.rewriting.arms.kept_in_training import kept_in_training
from exportlens.rewriting.arms.padded_helpers import padded_in_helpers
from exportlens.rewriting.arms.picked_in_helpers import copied_views
from exportlens.rewriting.arms.preparing import prepared
from exportlens.rewriting.branches.chosen_in_contexts import CHOOSE_BEHIND, chosen_behind
from exportlens.rewriting.branches.chosen_results import WRITE_OUT_CHOICE, calls_written_out
from exportlens.rewriting.branches.left_contexts import LEAVE_BEHIND, left_behind
from exportlens.rewriting.branches.optional_results import WRITE_OUT, written_where_called
from exportlens.rewriting.branches.parts_in_names import parts_in_names
from exportlens.rewriting.branches.selections import refuse_other_shapes, refuse_unlike, where_text
from exportlens.rewriting.calls.eager_contexts import MESSAGE, importing, in_eager_alone
from exportlens.rewriting.checks.guards import logging_guarded, only_logs
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import (
    Draft,
    Refused,
    RefusedNested,
    RefusedState,
    RefusedType,
    WholeDraft,
)
from exportlens.rewriting.code.text import Source, edits
from exportlens.rewriting.conversion import converted
from exportlens.rewriting.decisions.asked_numbers import read_as_bools
from exportlens.rewriting.decisions.decisions import decided_loop, same_place, test_of, whole
from exportlens.rewriting.decisions.logical_values import why_not
from exportlens.rewriting.decisions.named_tests import asked_at_once
from exportlens.rewriting.decisions.searched_constants import (
    WRITE_OUT_SEARCH,
    found_by_comprehension,
    found_by_loop,
)
from exportlens.rewriting.decisions.searched_lists import (
    SEARCH,
    counted_at_once,
    first_found,
    is_search,
    searched,
)
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.counted_rows import counted_behind_break, counted_rows
from exportlens.rewriting.lists.filled_rows import FILL, filled_by_rounds
from exportlens.rewriting.lists.filtered import Comprehension, counted, filtering, written_out
from exportlens.rewriting.lists.gone_through import GO_THROUGH, marked_items
from exportlens.rewriting.lists.last_items import LAST, last_items_named
from exportlens.rewriting.lists.numbers_of_lists import listed_one_by_one
from exportlens.rewriting.lists.padded_buffers import BUFFER, padded_buffer
from exportlens.rewriting.lists.selected_rows import SELECT, selected_in_comprehension, selected_in_loop
from exportlens.rewriting.loops.asked_in_rounds import ASK, asked_in_rounds
from exportlens.rewriting.loops.attributes_set_in_loops import (
    BEHIND,
    NAMED,
    set_behind_branch,
    set_behind_loop,
)
from exportlens.rewriting.loops.idle_rounds import RUN_ANYWAY, run_without_rows
from exportlens.rewriting.loops.masked_rounds import MASKED, masked_rounds
from exportlens.rewriting.loops.seen_numbers import SEEN, asked_before
from exportlens.rewriting.loops.shrinking_rows import MARK, marked_rows
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.sizes.cut_anyway import CUT_ANYWAY, cut_anyway
from exportlens.rewriting.state.asked_empty import ASK_APART, asked_apart
from exportlens.rewriting.state.unbegun_state import begun_for_branch


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
        _refuse_bools_of_numpy(draft, place)
        kinds = _kinds(draft, node, place.variables)
        comprehension = filtering(draft.source, node)
        if isinstance(node, ast.Call) and is_search(node):
            return draft.fix(SEARCH, searched(draft.source, node, kinds, draft.torch))
        if comprehension is not None:
            return _filtered(draft, comprehension, kinds)
        searched_out = found_by_loop(draft, node, kinds)
        if searched_out is None and (asked := asked_at_once(draft.source, node, kinds)) is not None:
            searched_out = found_by_loop(replace(draft, source=asked[0]), asked[1], kinds)
        if searched_out is not None:
            return draft.fix(WRITE_OUT_SEARCH, searched_out, uses_torch=False)
        value = place.value if test_of(node) is None or same_place(test_of(node), place.node) else None
        if isinstance(node, ast.If) and only_logs(node, kinds):
            return draft.fix("Keep this out of the traced program", logging_guarded(draft, node, kinds))
        kept = kept_text(draft.source, node, kinds) if isinstance(node, (ast.If, ast.IfExp)) else None
        if kept is not None:
            return draft.fix(KEEP_MASK, kept, uses_torch=False)
        idle = run_without_rows(draft.source, node, kinds) if isinstance(node, ast.If) else None
        if idle is not None:
            return draft.fix(RUN_ANYWAY, idle, uses_torch=False)
        whole_too = (
            cut_anyway(draft.source, node, kinds, draft.file())
            if isinstance(node, (ast.If, ast.IfExp))
            else None
        )
        if whole_too is not None:
            return draft.fix(CUT_ANYWAY, whole_too, uses_torch=False)
        written_out = written_where_called(draft.source, node) if isinstance(node, ast.If) else None
        if written_out is not None:
            return draft.fix(WRITE_OUT, written_out, uses_torch=False)
        apart = asked_apart(draft.source, node) if isinstance(node, ast.If) else None
        if apart is not None:
            return draft.fix(ASK_APART, apart, uses_torch=False)
        left = left_behind(draft.source, node)
        if left is not None:
            return draft.fix(LEAVE_BEHIND, left, uses_torch=False)
        behind = chosen_behind(draft.source, node)
        if behind is not None:
            return draft.fix(CHOOSE_BEHIND, behind, uses_torch=False)
        named = set_behind_loop(draft.source, node, draft.others())
        if named is not None:
            return draft.fix(NAMED, named, uses_torch=False)
        seen = asked_before(draft.source, node, kinds) if isinstance(node, ast.If) else None
        if seen is not None:
            return draft.fix(SEEN, seen, uses_torch=False)
        rows = counted_behind_break(draft.source, node, kinds, draft.torch)
        if rows is not None:
            return draft.fix(BUFFER, rows)
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
        try:
            fix = _fix_of(draft, node, kinds.copy(), value, arms, place.site)
        except Refused:
            text = marked_rows(draft.source, node, kinds, draft.torch)
            if text is not None:
                return draft.fix(MARK, text)
            text = set_behind_branch(draft.source, node, draft.others()) if isinstance(node, ast.If) else None
            if text is not None:
                return draft.fix(BEHIND, text, uses_torch=False)
            text = (
                selected_in_loop(draft.source, node, kinds, draft.torch) if isinstance(node, ast.If) else None
            )
            if text is not None:
                return draft.fix(SELECT, text)
            text = asked_in_rounds(draft.source, node, kinds) if isinstance(node, ast.If) else None
            if text is not None:
                return draft.fix(ASK, text, uses_torch=False)
            text = last_items_named(draft.source, node, kinds, draft.torch)
            if text is not None:
                return draft.fix(LAST, text, uses_torch=f"{draft.torch}.zeros" in text)
            text = (
                filled_by_rounds(draft.source, node, kinds, draft.torch) if isinstance(node, ast.If) else None
            )
            if text is not None:
                return draft.fix(FILL, text)
            text = padded_buffer(draft.source, node, kinds, draft.torch)
            text = text or counted_rows(draft.source, node, kinds, draft.torch)
            if text is not None:
                return draft.fix(BUFFER, text)
            text = marked_items(draft.source, node, kinds, draft.torch)
            if text is None:
                raise
            return draft.fix(GO_THROUGH, text)
        fix = replace(fix, without_operator=instead)
        return fix if selected is None else replace(fix, alternatives=(selected,))
    except RefusedType as refused:
        return read_as_bools(draft, node, place) or Refusal(str(refused))
    except RefusedState as refused:
        begun = begun_for_branch(refused.path, context)
        return begun or _parts_in_names(place, context, place.variables) or Refusal(str(refused))
    except (Refused, LookupError, SyntaxError) as refused:
        return (
            _parts_in_names(place, context, place.variables)
            or _written_out(place, context)
            or Refusal(_reason(refused))
        )


def _parts_in_names(place: Place, context: RewriteContext, variables: Mapping[str, Value]) -> Fix | None:
    """The fix for the branch or loop where the parts of dicts and objects that it sets have names of their own; None where there is
    none."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if isinstance(place, Truth):
            node = whole(draft.source, node, draft.source.find(place.statement))
        if not isinstance(node, (ast.If, ast.For, ast.While)):
            node = draft.source.enclosing_statement(node)
        if not isinstance(node, (ast.If, ast.For, ast.While)):
            return None
        found = parts_in_names(draft.source, node, _kinds(draft, node, variables))
        if found is None:
            return None
        draft.source, node, names = found
        function = draft.source.enclosing_function(node)
        known = draft.kinds(variables)
        known.names |= names
        kinds = known if function is None else kinds_before(function, node, known)
        decided = decided_loop(draft.source, node, kinds) if isinstance(node, ast.If) else None
        if decided is not None and function is not None:
            node, kinds = decided, kinds_before(function, decided, known)
        return _fix_of(draft, node, kinds, None, ({}, {}))
    except (Refused, LookupError, SyntaxError):
        return None


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


def _refuse_bools_of_numpy(draft: Draft, place: Truth) -> None:
    """Raise Refused where a number that NumPy computed elsewhere is asked: torch.cond takes no bool of NumPy's."""
    if not (isinstance(place.value, TensorScalar) and place.value.by_numpy):
        return
    asked = draft.source.find(place.node)
    calls = [each for each in ast.walk(asked) if isinstance(each, ast.Call)]
    if not any(draft.qualified(each.func).startswith("numpy.") for each in calls):
        raise Refused(f"`{draft.source.of(asked)}` is NumPy's: compute it with torch first")


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
    text = found_by_comprehension(draft, node, kinds)
    if text is not None:
        return draft.fix(WRITE_OUT_SEARCH, text, uses_torch=False)
    try:
        source, branch, now = written_out(draft.source, node, kinds.copy())
        text, message = converted(source, branch, now, draft.torch, None, ({}, {}))
        return draft.fix(message, text)
    except Refused:
        if isinstance(node, ast.GeneratorExp):
            raise
        selected = selected_in_comprehension(draft.source, node, kinds, draft.torch)
        if selected is None and isinstance(node, ast.ListComp):
            marked = marked_items(draft.source, node, kinds, draft.torch)
            if marked is not None:
                return draft.fix(GO_THROUGH, marked)
        if selected is None:
            raise Refused(why_not(draft.source, node.generators[0].ifs[0])) from None
        return draft.fix(SELECT, selected)


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
        kinds = _kinds(draft, node, getattr(place, "variables", {}))
        try:
            return _fix_of(draft, node, kinds.copy(), None, ({}, {}))
        except Refused:
            text = masked_rounds(draft.source, node, kinds.copy(), draft.torch)
            if text is not None:
                return draft.fix(MASKED, text, uses_torch=True)
            text = last_items_named(draft.source, node, kinds, draft.torch)
            if text is None:
                raise
            return draft.fix(LAST, text, uses_torch=f"{draft.torch}.zeros" in text)
    except (Refused, LookupError, SyntaxError) as refused:
        return _parts_in_names(place, context, getattr(place, "variables", {})) or Refusal(_reason(refused))


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
    kinds.padded, kinds.views = [], []
    try:
        text, message = converted(draft.source, node, kinds, draft.torch, value, arms)
        if not draft.context.training:
            text = kept_in_training(draft.source, node, before, text) or text
        fix = draft.fix(message, text if site is None else listed_one_by_one(draft, node, site, before, text))
        more = (*padded_in_helpers(draft, kinds.padded), *copied_views(draft, kinds.views))
        return replace(fix, edits=(*fix.edits, *more))
    except RefusedNested:
        changed = in_eager_alone(draft, draft.source, node, before) if isinstance(node, ast.stmt) else None
        if changed is None:
            raise
        text, message = converted(*changed, before, draft.torch, None, ({}, {}))
        return importing(draft, draft.fix(message + MESSAGE, text))
