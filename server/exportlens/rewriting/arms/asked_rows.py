"""Calls in an arm of torch.cond that ask how many rows there are, of rows that data picks before the branch.

Measured on torch 2.13: `torch.topk(rows, 4)` in an arm has `rows` checked to have four, and the exported program checks that
outside of the arm too: it raises where the other arm would run. Of rows that are picked in the arm itself it does not, nor of
rows that certainly are as many: where the branch only runs for those, it may as well take rows of zeros behind them that make
up the number, and cut them off again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exportlens.rewriting.arms.as_many_rows import is_changed, others_from_data, unpacked_with
from exportlens.rewriting.arms.gradients import without_gradients
from exportlens.rewriting.arms.row_sources import RowSources, sources_of, written_index
from exportlens.rewriting.arms.shared_masks import picks_elsewhere, refuse_both
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import fresh
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import Kind, length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.rewriting.memory.helper_writes import called_function, given_arguments
from exportlens.source.walking import walk

# By the name: where the dimension is given among the arguments, and whether it is the last where it is not (else all are).
_ASKING = {
    "topk": (2, True),
    "kthvalue": (2, True),
    "narrow": (1, True),
    "quantile": (2, False),
    "nanquantile": (2, False),
    "argmax": (1, False),
    "argmin": (1, False),
    "amax": (1, False),
    "amin": (1, False),
    "aminmax": (1, False),
    "select": (1, True),
    "norm": (2, False),
    "vector_norm": (2, False),
    "reshape": (1, False),
    "view": (1, False),
}
# By the name: which argument says how many. The others ask for one.
_NUMBER = {"topk": (1, "k"), "kthvalue": (1, "k"), "narrow": (3, "length"), "select": (2, "index")}
_DEEPEST = 3


@dataclass(frozen=True)
class Assured:
    """The first lines of an arm, the names that they bind anew, the lines before the branch, and what is swapped in the arm."""

    lines: list[str]
    names: list[str]
    before: list[str]
    swaps: list[Replacement]


def assure_rows(
    source: Source,
    function: Function,
    branch: ast.If,
    statements: Sequence[ast.stmt],
    taken: bool,
    kinds: Kinds,
    torch: str,
    made_inside: Callable[[str], bool],
    copied: Sequence[str],
    names: set[str],
) -> Assured:
    """What makes rows which are picked outside certainly as many as `statements`, an arm, ask for, and what says before the branch
    what holds on both ways: the arm runs where `branch`'s condition is `taken`. Of masks that pick outside too, except `copied`, the
    arm gets copies; `names` are taken, and get new ones. Raises Refused where the condition does not say that they are as many."""
    said = dict(_said(function, branch.test, taken))
    for name, least in list(said.items()):
        said |= dict.fromkeys(unpacked_with(source, function, branch, name), least)
    wanted: dict[str, int] = {}
    asking: dict[str, list[ast.expr]] = {}
    said_before: list[str] = []
    masks: dict[str, None] = {}
    for call, rows, number, now in _asking(statements, kinds):
        sources, cut, by, picks = sources_of(rows, statements, kinds)
        selects = _is_for_gradients(call, now)
        if not selects:
            masks |= dict.fromkeys(each for each in sorted(by) if each not in copied)
        kind = now.of(rows)
        inside = picks or (bool(kind.roots) and all(made_inside(root) for root in kind.roots or ()))
        # An item may be one of a single row, of which the kinds do not tell how long it is.
        if not sources and (inside or isinstance(call, ast.Subscript) or not length_from_data(kind)):
            continue
        assured = _is_assured(sources, cut, number, said)
        # It is only asked where gradients are recorded: then the program traces both arms with the rows that there are.
        if selects and (not assured or without_gradients(source, function, branch)):
            continue
        if (
            not assured
            and number is not None
            and _are_more_otherwise(function, branch.test, taken, sources, number)
        ):
            # What the program asks for outside, the other way has. Strict tracing does not see that by itself.
            said_before += [f"{torch}._check({name}.shape[0] >= {number})" for name in sources]
            continue
        if number is None or not assured:
            raise Refused(
                f"`{source.of(call)}` in an arm has the exported program ask for as many rows of `{source.of(rows)}` "
                "on the other way too"
            )
        wanted |= {name: max(number, wanted.get(name, 0)) for name in sorted(sources)}
        for name in sources:
            asking.setdefault(name, []).append(rows)
    lines = []
    shared = [each for each in masks if picks_elsewhere(source, function, each, statements)]
    for name in shared:
        refuse_both(source, function, name, statements, kinds)
        lines.append(f"{name} = {name}.clone()  # torch checks what it picks elsewhere, too")
    swaps: list[Replacement] = []
    others = others_from_data(statements, set(wanted), kinds) if wanted else set()
    for name, number in list(wanted.items()):
        beside = unpacked_with(source, function, branch, name) & others
        if others and _are_names(asking[name], name) and not is_changed(statements, name, kinds):
            # What else is as long as data says need not fit what is longer: it is given to what asks alone.
            longer = fresh(f"{name}_padded", names)
            lines.append(_lengthened(longer, name, number, kinds, torch))
            swaps += [source.swap(each, longer) for each in asking[name]]
            del wanted[name]
        else:
            wanted |= {each: max(number, wanted.get(each, 0)) for each in sorted(beside)}
    lines += [_lengthened(name, name, number, kinds, torch) for name, number in wanted.items()]
    return Assured(lines, [*shared, *wanted], list(dict.fromkeys(said_before)), swaps)


def _are_names(asking: Sequence[ast.expr], name: str) -> bool:
    return all(isinstance(each, ast.Name) and each.id == name for each in asking)


def _lengthened(longer: str, name: str, number: int, kinds: Kinds, torch: str) -> str:
    """The line that binds `longer` to the rows `name`, and to zeros behind them where they are fewer than `number`."""
    more = f"{number}" if kinds.names[name].rank == 1 else f"{number}, *{name}.shape[1:]"
    return (
        f"{longer} = {torch}.cat([{name}, {name}.new_zeros({more})])[: {torch}.sym_max({name}.shape[0], {number})]"
        "  # torch checks the number of rows on the other way, too"
    )


def _are_more_otherwise(
    function: Function, test: ast.expr, taken: bool, sources: set[str], number: int
) -> bool:
    """Whether there are more of the rows where `test` is not `taken`: `number` at least, or as many as configuration says."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, taken = test.operand, not taken
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    counted, operator, other = _counted(function, test.left), test.ops[0], test.comparators[0]
    written = _written(other)
    if counted is None or sources != {counted[0]}:
        return False
    if written is None:
        return isinstance(operator, (ast.Lt, ast.LtE) if taken else (ast.Gt, ast.GtE))
    least = _least(operator, other, not taken)
    return least is not None and least >= number


def _is_assured(sources: set[str], cut: bool, number: int | None, said: Mapping[str, int]) -> bool:
    return (
        bool(sources)
        and not cut
        and number is not None
        and all(said.get(name, 0) >= number for name in sources)
    )


def refuse_asked_rows(source: Source, node: ast.expr, kinds: Kinds) -> None:
    """Refuse `node`, a side of a ternary, that asks for a number of rows that are picked outside of it."""
    for call in walk(node):
        rows = _asked(call, kinds)
        if rows is not None and not _selects(call) and sources_of(rows, [], kinds)[0]:
            raise Refused(
                f"`{source.of(call)}` has the exported program ask for as many rows of `{source.of(rows)}` on the other way too: "
                "write an `if` statement"
            )


def _asking(
    statements: Sequence[ast.stmt], kinds: Kinds
) -> Iterator[tuple[ast.expr, ast.expr, int | None, Kinds]]:
    """The calls and items that ask, what they ask for rows, for how many, and the kinds there."""
    found: list[tuple[ast.expr, ast.expr, int | None, Kinds]] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        if hasattr(statement, "body"):
            return
        for call in ast.walk(statement):
            rows = _asked(call, now)
            if rows is not None and isinstance(call, (ast.Call, ast.Subscript)):
                number = written_index(call.slice) if isinstance(call, ast.Subscript) else _number(call, now)
                found.append((call, rows, number, now.copy()))
            elif isinstance(call, ast.Subscript) and _is_cut_by_data(call, now):
                found.append((call, call.value, 1, now.copy()))
            elif isinstance(call, ast.Call):
                found.extend((call, *each, now.copy()) for each in _asked_inside(call, now))
            elif isinstance(call, (ast.BinOp, ast.AugAssign)):
                found.extend((*each, now.copy()) for each in _cut_to_fit(call, now))

    visit(statements, kinds.copy(), see)
    yield from found


def _cut_to_fit(
    node: ast.BinOp | ast.AugAssign, kinds: Kinds
) -> Iterator[tuple[ast.expr, ast.expr, int | None]]:
    """The slices `rows[:k]` and `rows[-k:]` that `node` computes with a tensor whose size no data says, what they are cut from, and
    `k`, None where it is not written: that the sizes fit is asked of the rows."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
    for each, other in (sides, reversed(sides)):
        if not isinstance(each, ast.Subscript):
            continue
        beside, first = (
            kinds.of(other),
            each.slice.elts[0] if isinstance(each.slice, ast.Tuple) else each.slice,
        )
        if beside.what != "tensor" or beside.rank == 0 or length_from_data(beside):
            continue
        if not isinstance(first, ast.Slice) or first.step is not None:
            continue
        begin, end = first.lower, first.upper
        if begin is None and end is not None and not isinstance(end, ast.UnaryOp):
            yield each, each.value, _written(end)
        elif end is None and isinstance(begin, ast.UnaryOp) and isinstance(begin.op, ast.USub):
            yield each, each.value, _written(begin.operand)


def _asked_inside(call: ast.Call, kinds: Kinds) -> Iterator[tuple[ast.expr, int | None]]:
    """What a function or module of the workspace asks for rows of what `call` gives it, and for how many."""
    function, instance = called_function(call, kinds) if kinds.depth < _DEEPEST else (None, None)
    if function is None:
        return
    given = given_arguments(call, function, instance is not None)
    inside = kinds.inside_of_own(function)
    if instance is not None:
        inside.names["self"] = Kind("object", roots=None, value=instance)
    inside.names |= {name: kinds.of(value) for name, value in given.items()}
    for node, rows, number, now in _asking(function.body, inside):
        # Where it is a row that is selected, that is only asked for gradients: see `assure_rows`.
        if not _is_for_gradients(node, now):
            found = RowSources(function.body, inside, set(), set(), given=given)
            found.see(rows)
            yield from ((given[name], number) for name in sorted(found.names & given.keys()))


def _is_for_gradients(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` asks for a row only where gradients are recorded: when the program runs, torch traces both arms with the rows that
    there are, and a slice that data bounds of no rows at all it cannot trace (measured on torch 2.13)."""
    return _selects(node) or (isinstance(node, ast.Subscript) and _is_cut_by_data(node, kinds))


def _is_cut_by_data(node: ast.Subscript, kinds: Kinds) -> bool:
    """Whether `node` is `rows[:n]`, `n` being a number from data."""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(first, ast.Slice) or first.step is not None or not isinstance(node.ctx, ast.Load):
        return False
    return any(each is not None and kinds.of(each).from_data for each in (first.lower, first.upper))


def _selects(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "select"


def _asked(call: ast.AST, kinds: Kinds) -> ast.expr | None:
    """The tensor whose first dimension `call` wants long enough."""
    if isinstance(call, ast.Subscript):
        taken = isinstance(call.ctx, ast.Load) and written_index(call.slice) is not None
        return call.value if taken and kinds.of(call.value).what == "tensor" else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr not in _ASKING
    ):
        return None
    place, is_last = _ASKING[call.func.attr]
    operands = _operands(call, kinds)
    if not operands or any(isinstance(each, ast.Starred) for each in operands):
        return None
    if call.func.attr in ("view", "reshape"):
        return operands[0] if _leaves_open(operands[1:]) else None
    if call.func.attr in ("norm", "vector_norm") and "inf" not in ast.unparse(call):
        return None
    dims = [each.value for each in call.keywords if each.arg == "dim"] or operands[place : place + 1]
    rank = kinds.of(operands[0]).rank
    if not dims:
        return operands[0] if not is_last or rank == 1 else None
    try:
        dim = ast.literal_eval(dims[0])
    except ValueError:
        return None
    return operands[0] if dim in (0, None) or (rank is not None and dim == -rank) else None


def _leaves_open(sizes: Sequence[ast.expr]) -> bool:
    """Whether a tensor of these sizes, the first of which is not written, is to find another one by dividing by it."""
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return (
        len(sizes) > 1
        and written_index(sizes[0]) is None
        and any(ast.unparse(each) == "-1" for each in sizes[1:])
    )


def _operands(call: ast.Call, kinds: Kinds) -> list[ast.expr]:
    assert isinstance(call.func, ast.Attribute)
    is_function = (kinds.qualified(call.func) or "").startswith("torch.")
    return call.args if is_function else [call.func.value, *call.args]


def _number(call: ast.Call, kinds: Kinds) -> int | None:
    """How many rows `call` wants; None where that is not written."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr not in _NUMBER:
        return 1
    place, name = _NUMBER[call.func.attr]
    given = [each.value for each in call.keywords if each.arg == name] or _operands(call, kinds)[
        place : place + 1
    ]
    if call.func.attr == "narrow" or not given:
        return None
    if call.func.attr == "select":
        return written_index(given[0])
    return _written(given[0])


def _written(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _said(function: Function, test: ast.expr, taken: bool) -> Iterator[tuple[str, int]]:
    """The names of tensors, and how many rows each has at least where `test` is `taken`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _said(function, test.operand, not taken)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == taken:
            for each in test.values:
                yield from _said(function, each, taken)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        counted, least = _counted(function, test.left), _least(test.ops[0], test.comparators[0], taken)
        if counted is not None and least is not None and least > 0:
            yield counted[0], least if counted[1] else 1
    elif taken:
        counted = _counted(function, test)
        if counted is not None:
            yield counted[0], 1


def _least(operator: ast.cmpop, other: ast.expr, taken: bool) -> int | None:
    """What a number is at least that is compared so."""
    value = _written(other)
    if value is None:
        return None
    if isinstance(operator, ast.Gt if taken else ast.LtE):
        return value + 1
    if isinstance(operator, ast.GtE if taken else ast.Lt):
        return value
    if isinstance(operator, ast.NotEq if taken else ast.Eq):
        return 1 if value == 0 else None
    return value if isinstance(operator, ast.Eq if taken else ast.NotEq) else None


def _counted(function: Function, node: ast.expr) -> tuple[str, bool] | None:
    """The name of the tensor of which `node` is the number of rows, or (False) of elements."""
    if isinstance(node, ast.Name):
        bindings = [
            each
            for each in walk(function)
            if isinstance(each, (ast.Assign, ast.AugAssign, ast.For, ast.NamedExpr))
            and node.id in _bound_by(each)
        ]
        if (
            len(bindings) != 1
            or not isinstance(bindings[0], ast.Assign)
            or isinstance(bindings[0].value, ast.Name)
        ):
            return None
        counted = _counted(function, bindings[0].value)
        # It must be the tensor still that was counted.
        once = counted is not None and sum(counted[0] in _bound_by(each) for each in walk(function)) < 2
        return counted if once else None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            return _named(node.args[0], rows=True)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numel" and not node.args:
            return _named(node.func.value, rows=False)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            return _named(node.func.value, rows=True) if _written(node.args[0]) == 0 else None
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
        and _written(node.slice) == 0
    ):
        return _named(node.value.value, rows=True)
    return None


def _named(node: ast.expr, *, rows: bool) -> tuple[str, bool] | None:
    return (node.id, rows) if isinstance(node, ast.Name) else None


def _bound_by(node: ast.AST) -> Mapping[str, None]:
    """The names that `node` itself binds."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
        targets = [node.target]
    return dict.fromkeys(each.id for target in targets for each in walk(target) if isinstance(each, ast.Name))
