"""Lists that each arm of a branch fills in loops of its own, in as many rounds: each arm begins its own list and gives it.

    rows = []                               if t > 0:
    if t > 0:                                   own_rows = []
        for i in range(n):                      for i in range(n):
            rows.append(f(x, i))    ->              own_rows.append(f(x, i))
    else:                                       rows = [each.clone() for each in own_rows]
        for i in range(n):                  else:
            rows.append(x)                      ...

torch.cond gives lists of as many tensors from both arms, each of memory of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import append_to_path, bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.source.walking import walk


def begun_in_arms(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` begin such lists themselves, and `node` of it; None where there are none."""
    begins_line = source.begins_line(node) and not source.text.startswith("elif", source.start(node))
    if not begins_line or not node.orelse or exits([node]) != {"falls"}:
        return None
    taken, swaps, removed = every_name(source.tree), [], 0
    for begun, name in _begun(source, node):
        arms = (node.body, node.orelse)
        first, second = (_rounds(arm, name) for arm in arms)
        if first is None or first != second or all(isinstance(each, str) and not each for each in first):
            continue
        if not _alike(arms, name, kinds):
            continue
        start = source.start(begun)
        end = source.start(_next(source, begun))
        swaps.append(Replacement(start, end, ""))
        removed += end - start
        for arm in arms:
            own = fresh(f"own_{name}", taken)
            indent = source.indent_of(arm[0])
            begin, last = source.start(arm[0]), source.span([arm[-1]])[1]
            swaps.append(Replacement(begin, begin, f"{own} = []{source.newline}{indent}"))
            swaps += [source.swap(each, own) for one in arm for each in walk(one) if _is(each, name)]
            item = fresh("each", set(taken))
            line = f"{name} = [{item}.clone() for {item} in {own}]"
            swaps.append(Replacement(last, last, f"{source.newline}{indent}{line}"))
    if not swaps:
        return None
    return read_again(replaced(source.text, swaps), source.start(node) - removed)


def _begun(source: Source, node: ast.If) -> Iterator[tuple[ast.Assign, str]]:
    """The statements above `node`, in its block, that begin a list which nothing looks at between."""
    block, index = source.block_of(node)
    between: set[str] = set()
    for each in reversed(block[:index]):
        if (
            isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
            and ast.unparse(each.value) in ("[]", "list()")
            and each.targets[0].id not in between
            and source.begins_line(each)
            and source.begins_line(_next(source, each))
        ):
            yield each, each.targets[0].id
        between |= reads(each) | set(bound(each))


def _next(source: Source, statement: ast.stmt) -> ast.stmt:
    block, index = source.block_of(statement)
    return block[index + 1]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _rounds(arm: Sequence[ast.stmt], name: str) -> list[str] | None:
    """How often the arm appends to the list, in its order: "" for once, the text of what a loop goes through for each round of it.
    None where something else is done to the list, or what is gone through is not the same for both arms."""
    found: list[str] = []
    changed = set(bound(arm))
    for statement in arm:
        if not any(_is(each, name) for each in walk(statement)):
            continue
        if _appends(statement, name):
            found.append("")
            continue
        if not isinstance(statement, ast.For) or statement.orelse or reads(statement.iter) & changed:
            return None
        if any(isinstance(each, (ast.Break, ast.Continue, ast.Return)) for each in walk(statement)):
            return None
        used = [each for each in statement.body if any(_is(one, name) for one in walk(each))]
        if not used or not all(_appends(each, name) for each in used):
            return None
        found += [ast.unparse(statement.iter)] * len(used)
    return found


def _appends(statement: ast.stmt, name: str) -> bool:
    """Whether `statement` is `name.append(value)`, and the value does not look at the list."""
    appended = append_to_path(statement)
    uses = [each for each in walk(statement) if _is(each, name)]
    return appended is not None and appended[0] == name and len(uses) == 1


def _alike(arms: Sequence[Sequence[ast.stmt]], name: str, kinds: Kinds) -> bool:
    """Whether all that is appended is known to be a tensor, and not known to be of two dtypes or numbers of dimensions."""
    dtypes, ranks, known = set[str | None](), set[int | None](), True

    def see(statement: ast.stmt, now: Kinds) -> None:
        nonlocal known
        if not _appends(statement, name):
            return
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        kind = now.of(statement.value.args[0])
        known = known and kind.what == "tensor"
        dtypes.add(kind.dtype)
        ranks.add(kind.rank)

    for arm in arms:
        visit(arm, kinds.copy(), see)
    return known and len(dtypes - {None}) < 2 and len(ranks - {None}) < 2
