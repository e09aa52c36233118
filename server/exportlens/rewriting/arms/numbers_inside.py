"""Numbers read out of tensors inside of a branch: torch.cond takes in no number, and decides on none.

Measured on torch 2.13: a number from data that an arm reads stops non-strict tracing; Python's `max` and `min` of such a
number inside of an arm give one of the two for good.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.arms.checked_deeper import is_checked_deeper
from exportlens.rewriting.arms.picked_in_helpers import copied_in_helpers
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness, exits, live_before
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import own_expressions, visit
from exportlens.rewriting.numbers.python_numbers import only_in_quotients

_DTYPES = {"float": "float64", "int": "int64", "bool": "bool"}


def numbers_held(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` read numbers from data again, of a tensor that holds them, and `node` of it; None
    where they read none."""
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    blocks = list(arms_of(source, node))
    anew = set(bound([each for block in blocks for each in block]))
    if any(kinds.names[name].what == "scalar" for name in anew if name in kinds.names):
        source, node = _with_else(source, node)
        blocks = list(arms_of(source, node))
    names = dict.fromkeys(
        each.id
        for block in blocks
        for statement in block
        for each in ast.walk(statement)
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Load)
        and each.id not in anew
        and each.id in kinds.names
        and kinds.names[each.id].what == "scalar"
        and kinds.names[each.id].type in ("int", "float", "bool", "")
    )
    counts = _counts_bound_anew(source, node, blocks, anew, kinds)
    items = _items(node, blocks, anew, kinds)
    listed = _listed(blocks, anew, items, kinds)
    if not (names or counts or items or listed):
        return None
    taken = every_name(source.tree)
    lines, swaps = _named_before(source, node, {*names, *counts})
    indent = source.indent_of(node)
    again_lines: list[str] = []
    for name in counts:
        held, type_ = fresh(f"{name}_held", taken), kinds.names[name].type
        double = f", dtype={torch}.float64" if type_ == "float" else ""
        lines.append(f"{held} = {torch}.full((), {name}{double})")
        kinds.assign(ast.Name(held, ast.Store()), Kind("tensor", _DTYPES.get(type_), 0))
        again_lines.append(f"{name} = {held}.item()")
    swaps += _read_first(source, node, blocks, again_lines) if again_lines else ()
    for name in names:
        held = fresh(f"{name}_held", taken)
        split = None if kinds.names[name].type else _read_apart(source, node, name, held, kinds)
        double = f", dtype={torch}.float64" if kinds.names[name].type == "float" else ""
        if split is None:
            lines.append(f"{held} = {torch}.full((), {name}{double})")
        else:
            swaps.append(split)
        dtype = _DTYPES.get(kinds.names[name].type)
        kinds.assign(ast.Name(held, ast.Store()), Kind("tensor", dtype, 0))
        for block in blocks:
            uses = [
                each
                for statement in block
                for each in ast.walk(statement)
                if isinstance(each, ast.Name) and each.id == name
            ]
            own_line = (
                bool(block)
                and source.begins_line(block[0])
                and not source.text.startswith("elif", source.start(block[0]))
            )
            checked = [each for each in uses if is_checked_deeper(source, each, block)]
            if len(uses) > 1 and own_line:
                again, begin = fresh(name, taken), source.start(block[0])
                read = f"{held}.reshape(1).item()" if checked else f"{held}.item()"
                line = f"{again} = {read}{source.newline}{source.indent_of(block[0])}"
                swaps.append(Replacement(begin, begin, line))
                swaps += [source.swap(each, again) for each in uses]
            else:
                # An index that is nothing else becomes a tensor, which is checked where it runs.
                apart = [each for each in checked if not isinstance(source.parents[each], ast.Subscript)]
                swaps += [source.swap(each, f"{held}.item()") for each in uses if each not in apart]
                swaps += [source.swap(each, f"{held}.reshape(1).item()") for each in apart]
    for text, places in items.items():
        held, type_ = fresh(f"{text.partition('[')[0]}_held", taken), kinds.of(places[0]).type
        double = f", dtype={torch}.float64" if type_ == "float" else ""
        lines.append(f"{held} = {torch}.full((), {text}{double})")
        kinds.assign(ast.Name(held, ast.Store()), Kind("tensor", _DTYPES.get(type_), 0))
        swaps += [source.swap(each, f"{held}.item()") for each in places]
    for name in listed:
        held = fresh(f"{name}_held", taken)
        lines.append(f"{held} = {torch}.tensor({name})")
        kinds.assign(ast.Name(held, ast.Store()), Kind("tensor", "int64", 1))
        for block in blocks:
            uses = loads_in(block, name)
            if len(uses) > 1 and _has_line(source, block[0]):
                again, begin = fresh(name, taken), source.start(block[0])
                line = f"{again} = {held}.tolist(){source.newline}{source.indent_of(block[0])}"
                swaps += [Replacement(begin, begin, line), *(source.swap(each, again) for each in uses)]
            else:
                swaps += [source.swap(each, f"{held}.tolist()") for each in uses]
    head = "".join(f"{line}{source.newline}{indent}" for line in lines)
    return _again(source, node, swaps, head)


def _listed(
    blocks: list[list[ast.stmt]], anew: set[str], items: dict[str, list[ast.Subscript]], kinds: Kinds
) -> list[str]:
    """The lists of ints from data that the arms go through, or whose items they choose themselves."""
    found = [
        name
        for name in sorted({each.id for block in blocks for each in _all_loads(block)} - anew)
        if name in kinds.names
        and kinds.names[name].what == "container"
        and (element := element_of(kinds.names[name])).what == "scalar"
        and element.type == "int"
    ]
    held = {id(each.value) for places in items.values() for each in places}
    held |= {
        id(each.args[0])
        for block in blocks
        for one in block
        for each in ast.walk(one)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "len" and len(each.args) == 1
    }
    return [
        name
        for name in found
        if any(id(each) not in held for block in blocks for each in loads_in(block, name))
    ]


def _all_loads(block: list[ast.stmt]) -> Iterator[ast.Name]:
    for each in (part for one in block for part in ast.walk(one)):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            yield each


def loads_in(block: list[ast.stmt], name: str) -> list[ast.Name]:
    """Where `block` reads `name`."""
    return [each for each in _all_loads(block) if each.id == name]


def _items(
    node: ast.If, blocks: list[list[ast.stmt]], anew: set[str], kinds: Kinds
) -> dict[str, list[ast.Subscript]]:
    """Where the arms read each number from data that is an item of a list, `counts[c]`, by its text; none of which the condition
    may ask whether it is there (`c < len(counts)`)."""
    found: dict[str, list[ast.Subscript]] = {}
    inside = {
        id(part)
        for each in ast.walk(node.test)
        if isinstance(each, ast.Subscript)
        for part in ast.walk(each.slice)
    }
    asked = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name) and id(each) not in inside}
    for each in (part for block in blocks for one in block for part in ast.walk(one)):
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Load)
            and isinstance(each.value, ast.Name)
            and kinds.of(each.value).what == "container"
            and not reads(each) & anew
            and not reads(each.slice) & asked
            and not any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(each))
            and kinds.of(each).what == "scalar"
            and kinds.of(each).type in ("", *_DTYPES)
        ):
            found.setdefault(ast.unparse(each), []).append(each)
    return found


def _with_else(source: Source, node: ast.If) -> tuple[Source, ast.If]:
    """The text with the `elif` of `node` as an `if` of its own below an `else`, in front of which a line can stand."""
    if len(node.orelse) != 1 or not source.text.startswith("elif", source.start(node.orelse[0])):
        return source, node
    indent, begin = source.indent_of(node), source.start(node)
    start, end = source.start(node.orelse[0]), source.span(node.orelse)[1]
    text = f"else:{source.newline}{source.block(node.orelse, indent + source.indent_unit())}"
    changed = Source(replaced(source.text, [Replacement(start, end, text)]))
    return changed, changed.branch_at(begin)


def _named_before(source: Source, node: ast.If, names: set[str]) -> tuple[list[str], list[Replacement]]:
    """`n = t.item()` in front of `if (n := t.item()) > 2`, and the name in its place. Raises Refused where the condition computes
    something else before it names one of `names`."""
    first = node.test
    while not isinstance(first, ast.NamedExpr):
        if isinstance(first, (ast.Compare, ast.BinOp)):
            first = first.left
        elif isinstance(first, ast.UnaryOp):
            first = first.operand
        elif isinstance(first, ast.BoolOp):
            first = first.values[0]
        else:
            break
    named = [
        each for each in ast.walk(node.test) if isinstance(each, ast.NamedExpr) and each.target.id in names
    ]
    if not named:
        return [], []
    if named != [first]:
        raise Refused(f"the condition names `{named[-1].target.id}` on the way: name it before")
    name = named[0].target.id
    return [f"{name} = {source.of(named[0].value)}"], [source.swap(named[0], name)]


def _counts_bound_anew(
    source: Source, node: ast.If, blocks: list[list[ast.stmt]], anew: set[str], kinds: Kinds
) -> list[str]:
    """The numbers from data that the arms bind anew, where one of them needs what the number was before."""
    function = source.enclosing_function(node)
    counts = [
        name
        for name in sorted(anew)
        if name in kinds.names
        and kinds.names[name].what == "scalar"
        and kinds.names[name].type in ("int", "float", "")
    ]
    begin = [block[0] for block in blocks if block]
    if function is None or not counts or not all(_has_line(source, each) for each in begin):
        return []
    out = Liveness(function).live_after(node) if exits([node]) == {"falls"} else frozenset()
    entering = frozenset(out if len(blocks) == 1 else ()).union(
        *(live_before(block, out, function) for block in blocks)
    )
    return [name for name in counts if name in entering]


def _has_line(source: Source, statement: ast.stmt) -> bool:
    return source.begins_line(statement) and not source.text.startswith("elif", source.start(statement))


def _read_first(
    source: Source, node: ast.If, blocks: list[list[ast.stmt]], lines: list[str]
) -> Iterator[Replacement]:
    """`lines` as the first of each arm, of one that is not written as well."""
    nl, inner = source.newline, source.indent_of(node) + source.indent_unit()
    for block in blocks:
        begin = source.start(block[0])
        yield Replacement(begin, begin, "".join(f"{line}{nl}{source.indent_of(block[0])}" for line in lines))
    if len(blocks) == 1:
        end = source.span([node])[1]
        text = "".join(f"{nl}{inner}{line}" for line in lines)
        yield Replacement(end, end, f"{nl}{source.indent_of(node)}else:{text}")


def _read_apart(source: Source, node: ast.If, name: str, held: str, kinds: Kinds) -> Replacement | None:
    """`name = t.item()` as two statements, the first of which gives the tensor the name `held`: of what type the number is,
    is not known, and the tensor has its dtype. None where `name` is not bound so, and only so."""
    function = source.enclosing_function(node)
    stores = [
        each
        for each in ast.walk(function or source.tree)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    statement = source.parents[stores[0]] if len(stores) == 1 else None
    if not (
        isinstance(statement, ast.Assign)
        and statement.targets == stores
        and source.begins_line(statement)
        and source.end(statement) <= source.start(node)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "item"
        and not statement.value.args
    ):
        return None
    tensor = statement.value.func.value
    text = source.of(tensor)
    if not kinds.of(tensor).fresh:
        text = f"{primary(text)}.clone()"
    line_end = f"{source.newline}{source.indent_of(statement)}"
    return source.swap(statement, f"{held} = {text}{line_end}{name} = {held}.item()")


def picked_elements(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` read numbers out of memory of their own, `t[-1].clone().item()` for `t[-1].item()`, and
    `node` of it; None where they do already. In torch.cond a view that begins further behind has no number, if an arm
    made what it is a view of."""
    swaps: list[Replacement] = []
    inside = set(bound([each for block in arms_of(source, node) for each in block]))

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement):
            if not isinstance(each, ast.Call):
                continue
            swaps.extend(copied_in_helpers(source, each, now, _picked_behind))
            read = _view_read(each, now)
            # One element in a dimension is read out of no view, wherever it begins.
            behind = read is not None and (_begins_behind(read) or now.of(read).rank not in (0, None))
            if read is not None and behind and _is_made(read, inside):
                end = source.end(read)
                swaps.append(Replacement(end, end, ".clone()"))

    for block in arms_of(source, node):
        visit(block, kinds.copy(), see)
    return _again(source, node, swaps, "") if swaps else None


def _view_read(node: ast.AST, kinds: Kinds) -> ast.expr | None:
    """The view of a tensor out of which the call `node` reads a number; None for others."""
    read: ast.expr | None = None
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        read = node.func.value
    elif isinstance(node.func, ast.Name) and node.func.id in ("int", "float") and len(node.args) == 1:
        read = node.args[0]
    return read if read is not None and _is_view(read) and kinds.of(read).what == "tensor" else None


def _picked_behind(node: ast.AST, kinds: Kinds) -> ast.expr | None:
    read = _view_read(node, kinds)
    return read if read is not None and _begins_behind(read) else None


def _is_made(node: ast.expr, inside: set[str]) -> bool:
    """Whether what the view `node` is of is computed there, or has a name of `inside`."""
    while _is_view(node):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in inside)


def _is_view(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "select" and len(node.args) == 2
    return isinstance(node, ast.Subscript)


def _begins_behind(node: ast.expr) -> bool:
    """Whether a view may not begin where the tensor does."""
    return not _is_zero(node.slice if isinstance(node, ast.Subscript) else node.args[1])  # type: ignore[attr-defined]


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def extremes_inside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` choose among numbers from data by `torch.sym_max` and `torch.sym_min`, and `node`
    of it; None where they choose among none. Raises Refused."""
    swaps: list[Replacement] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        if statement is node:
            return
        for each in own_expressions(statement):
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id in ("max", "min")
                and each.func.id not in now.names
                and any(now.of(one).what == "scalar" for one in each.args)
            ):
                types = {now.of(one).type for one in each.args}
                one_type = len(types) == 1 and "" not in types
                if len(each.args) != 2 or not (one_type or only_in_quotients(source, each)):
                    raise Refused(
                        f"`{source.of(each)}` chooses among numbers from data inside of the branch, which are not known to "
                        "be of one type"
                    )
                swaps.append(source.swap(each.func, f"{torch}.sym_{each.func.id}"))

    for block in arms_of(source, node):
        visit(block, kinds.copy(), see)
    return _again(source, node, swaps, "") if swaps else None


def sizes_inside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` divide by and subtract numbers of rows that a tensor holds, and `node` of it; None where
    they do neither. Measured on torch 2.13: where gradients are recorded torch.cond traces both arms with the sizes that there
    are, and Python divides by no 0 in the one that is not taken; and what an arm asks of a size, such as that `3 - n` is none
    below zero, the program asks outside of the branch as well, whichever is taken."""
    swaps: list[Replacement] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        if statement is node:
            return
        for each in own_expressions(statement):
            if (
                isinstance(each, ast.BinOp)
                and (isinstance(each.op, ast.Sub) or _divides_numbers(each, now))
                and isinstance(each.right, (ast.Call, ast.Subscript))
                and not _reads_item(each.right)
                and now.of(each.right).what == "scalar"
                and now.of(each.right).type == "int"
            ):
                swaps.append(source.swap(each.right, f"{torch}.full((), {source.of(each.right)}).item()"))

    for block in arms_of(source, node):
        visit(block, kinds.copy(), see)
    return _again(source, node, swaps, "") if swaps else None


def members_inside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` have `self.heads[int(Mode.HIGH)]` for `self.heads[Mode.HIGH]`, and `node` of it; None where
    no member of an enumeration of ints is an index. Measured on torch 2.13: torch.cond recurses without end to read such an item."""
    swaps: dict[int, Replacement] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement):
            if isinstance(each, ast.Subscript) and now.of(each.value).what != "tensor":
                roots = now.of(each.slice).roots
                if roots and all(now.is_enumeration(root.partition(".")[0], "Int") for root in roots):
                    swaps[source.start(each.slice)] = source.swap(each.slice, f"int({source.of(each.slice)})")

    for block in arms_of(source, node):
        visit(block, kinds.copy(), see)
    return _again(source, node, [*swaps.values()], "") if swaps else None


def _divides_numbers(node: ast.BinOp, kinds: Kinds) -> bool:
    return isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) and kinds.of(node.left).what in (
        "number",
        "size",
        "scalar",
    )


def _reads_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def arms_of(source: Source, node: ast.If) -> Iterator[list[ast.stmt]]:
    """The statements that become the arms: those of `node`, and what follows it where an arm leaves the function."""
    yield node.body
    if node.orelse:
        yield node.orelse
    if exits([node]) != {"falls"}:
        block, index = source.block_of(node)
        if block[index + 1 :]:
            yield block[index + 1 :]


def _again(source: Source, node: ast.If, swaps: list[Replacement], head: str) -> tuple[Source, ast.If]:
    begin = source.start(node)
    unique = {(each.start, each.end, each.text): each for each in swaps}
    text = replaced(
        source.text, [*unique.values(), Replacement(begin, begin, head)] if head else unique.values()
    )
    moved = sum(len(each.text) - (each.end - each.start) for each in unique.values() if each.end <= begin)
    changed, offset = Source(text), begin + moved + len(head)
    return changed, changed.branch_at(offset)
