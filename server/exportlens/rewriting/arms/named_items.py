"""Items of lists and dicts that the arms of a branch set: each gets a name for the branch, and is set behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.inference.values import Sequence
from exportlens.rewriting.arms.kept_items import is_set_elsewhere, sets
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, own_expressions
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def name_items(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where `d["key"]` that the arms of `node` set has a name in the branch, and the branch; None where they set none.
    `kinds` become those just before it."""
    if source.text.startswith("elif", source.start(node)) or not source.begins_line(node):
        return None
    spread = _with_updates_spread(source, node)
    source, node = _returned_behind(*(spread or (source, node)), kinds) or spread or (source, node)
    return _named(source, node, kinds) if exits([node]) == {"falls"} else None


def _named(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If] | None:
    bound_here = set(bound(node))
    taken = every_name(source.tree)
    indent = source.indent_of(node)
    swaps, before, after = [], [], []
    for item, written in _set_items(source, node, kinds).items():
        subscript = parse_python(item, mode="eval").body
        assert isinstance(subscript, ast.Subscript)
        owner = dotted(subscript.value) or ""
        if owner in bound_here or not _only_items(node, owner) or _has_another_name(source, node, owner):
            continue
        earlier = kinds.of(subscript)
        always = all(_always_sets(arm, item) for arm in _arms(node))
        if not always and not _is_known(source, node, subscript, kinds):
            put = _put_before(source, node, item)
            if put is None:
                continue  # whether there is such an item already is not known
            earlier = kinds.of(loaded(put))
        name = fresh(_wish(subscript.slice), taken)
        uses = [
            each for each in ast.walk(node) if isinstance(each, ast.Subscript) and ast.unparse(each) == item
        ]
        swaps += [source.swap(each, name) for each in uses]
        if not always:
            round_name = _name_of_round(source, node, subscript)
            if round_name is not None:
                earlier = kinds.of(ast.Name(round_name, ast.Load()))
            before.append(f"{name} = {round_name or written}")
            kinds.assign(ast.Name(name, ast.Store()), earlier)
        after.append(f"{indent}{written} = {name}")
    if not swaps:
        return None
    end = source.span([node])[1]
    swaps.append(Replacement(end, end, source.newline + source.newline.join(after)))
    head = "".join(line + source.newline + indent for line in before)
    begin = source.start(node)
    swaps.append(Replacement(begin, begin, head))
    return read_again(replaced(source.text, swaps), begin + len(head))


def _with_updates_spread(source: Source, node: ast.If) -> tuple[Source, ast.If] | None:
    """`d.update({"a": x, "b": y})` in the arms, where `d` is a dict, as one assignment for each item."""
    function = source.enclosing_function(node)
    block, index = source.block_of(node)
    # What follows `if done: return` is an arm as well.
    region = block[index : index + 1] if exits([node]) == {"falls"} else block[index:]
    swaps = []
    for each in walk(ast.Module(region, [])):
        call = each.value if isinstance(each, ast.Expr) else None
        if not (isinstance(each, ast.Expr) and isinstance(call, ast.Call) and source.begins_line(each)):
            continue
        func = call.func
        if not (
            isinstance(func, ast.Attribute) and func.attr == "update" and isinstance(func.value, ast.Name)
        ):
            continue
        items = _items_given(source, call)
        if items and function is not None and _is_dict(function, func.value.id):
            line = f"{source.newline}{source.indent_of(each)}"
            text = line.join(f"{func.value.id}[{key}] = {value}" for key, value in items)
            swaps.append(source.swap(each, text))
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


def _items_given(source: Source, call: ast.Call) -> list[tuple[str, str]]:
    """The keys and values that an `update` is given, as texts; empty where it is given others as well."""
    found: list[tuple[str, str]] = []
    for each in call.args:
        if not isinstance(each, ast.Dict) or not all(isinstance(key, ast.Constant) for key in each.keys):
            return []
        found += [
            (source.of(key), source.of(value))
            for key, value in zip(each.keys, each.values, strict=True)
            if key is not None
        ]
    for keyword in call.keywords:
        if keyword.arg is None:
            return []
        found.append((f'"{keyword.arg}"', source.of(keyword.value)))
    # Each value is computed before the first is set.
    name = ast.unparse(call.func).rpartition(".")[0]
    return [] if len(call.args) > 1 or name in reads([*call.args, *call.keywords]) else found


def _is_dict(function: Function, name: str) -> bool:
    """Whether all that `function` binds `name` to are dicts."""
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    values = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == name for one in each.targets)
    ]
    dicts = [
        each
        for each in values
        if isinstance(each, (ast.Dict, ast.DictComp))
        or (isinstance(each, ast.Call) and ast.unparse(each.func) in ("dict", "OrderedDict"))
    ]
    return bool(stores) and len(dicts) == len(stores)


def _returned_behind(source: Source, node: ast.If, kinds: Kinds) -> tuple[Source, ast.If] | None:
    """`if t: d["key"] = a; return d` and what follows it up to `return d` as `if`/`else` with one return behind; None where
    it is another branch."""
    block, index = source.block_of(node)
    rest = block[index + 1 :]
    if node.orelse or len(node.body) < 2 or not rest or not source.begins_line(node.body[0]):
        return None
    first, last = node.body[-1], rest[-1]
    if not (isinstance(first, ast.Return) and isinstance(last, ast.Return)):
        return None
    if exits(node.body[:-1]) != {"falls"} or exits(rest[:-1]) != {"falls"} or not source.begins_line(last):
        return None
    taken = every_name(source.tree)
    results, swaps = [], []
    ours, theirs = _elements(first), _elements(last)
    if len(ours) != len(theirs):
        return None
    given: tuple[list[str], list[str]] = ([], [])
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, ast.Name) and ast.unparse(one) == ast.unparse(other):
            results.append(one.id)
            continue
        name = fresh("result", taken)
        results.append(name)
        given[0].append(f"{name} = {source.of(one)}")
        given[1].append(f"{name} = {source.of(other)}")
    held = {each for each in results if kinds.of(ast.Name(each, ast.Load())).what == "container"}
    if not held & _owners_set(node.body) & _owners_set(rest):
        return None
    nl, indent = source.newline, source.indent_of(node)
    inner = indent + source.indent_unit()
    begin = source.start(node)
    swaps.append(source.swap(first, f"{nl}{inner}".join(given[0]) or "pass"))
    body = source.block(node.body, inner, swaps) if given[0] else source.block(node.body[:-1], inner)
    head = source.text[begin : source.span([node.body[0]])[0]].rstrip()
    end = [f"{inner}{each}" for each in given[1]]
    lines = [head, body, f"{indent}else:", source.block(rest[:-1], inner), *end]
    lines.append(f"{indent}return {', '.join(results)}")
    whole = Replacement(begin, source.span(rest)[1], nl.join(lines))
    return read_again(replaced(source.text, [whole]), begin)


def _elements(node: ast.Return) -> list[ast.expr]:
    if isinstance(node.value, ast.Tuple) and not any(
        isinstance(each, ast.Starred) for each in node.value.elts
    ):
        return node.value.elts
    return [] if node.value is None else [node.value]


def _owners_set(statements: list[ast.stmt]) -> set[str]:
    """The names of which one of `statements` sets an item."""
    return {
        ast.unparse(each.value)
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
    }


def _arms(node: ast.If) -> Iterator[list[ast.stmt]]:
    """The ends of an `if`/`elif`/`else` chain; an empty list where there is no `else`."""
    yield node.body
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _arms(node.orelse[0])
    else:
        yield node.orelse


def _wish(key: ast.expr) -> str:
    """The name that tells best which item it is."""
    text = str(key.value) if isinstance(key, ast.Constant) else ""
    return text if text.isidentifier() else "item"


def _set_items(source: Source, node: ast.If, kinds: Kinds) -> dict[str, str]:
    """The items that the arms set, in one way of writing, each as it is written."""
    found: dict[str, str] = {}
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Store)
            and _is_item(each, node, kinds)
        ):
            found.setdefault(ast.unparse(each), source.of(each))
    return found


def _is_item(subscript: ast.Subscript, node: ast.If, kinds: Kinds) -> bool:
    return (
        dotted(subscript.value) is not None
        and _is_steady(subscript.slice, node, kinds)
        and kinds.of(loaded(subscript.value)).what == "container"
    )


def _is_steady(key: ast.expr, node: ast.If, kinds: Kinds) -> bool:
    """Whether `key` is the same key before, in and behind `node`, which no tensor gives."""
    if isinstance(key, ast.Constant):
        return isinstance(key.value, (str, int))
    for each in ast.walk(key):
        if isinstance(each, ast.Call):
            steady = ast.unparse(each.func) == "str" and len(each.args) == 1 and not each.keywords
        elif isinstance(each, (ast.Name, ast.Attribute)):
            steady = kinds.of(each).what not in ("tensor", "scalar", "array", "container")
        else:
            steady = isinstance(
                each,
                (ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.operator, ast.expr_context),
            )
        if not steady:
            return False
    stored = {
        ast.unparse(each)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
    }
    paths = {ast.unparse(each) for each in ast.walk(key) if isinstance(each, ast.Attribute)}
    return not reads(key) & set(bound(node)) and not paths & stored


def _only_items(node: ast.If, owner: str) -> bool:
    """Whether the arms reach `owner` only through keys of which no two may be the same item."""
    items = [
        each for each in ast.walk(node) if isinstance(each, ast.Subscript) and dotted(each.value) == owner
    ]
    through = {id(each.value) for each in items}
    if any(
        id(each) not in through
        for each in ast.walk(node)
        if isinstance(each, (ast.Name, ast.Attribute)) and dotted(each) == owner
    ):
        return False
    keys = list({ast.unparse(each.slice): each.slice for each in items}.values())
    return all(_differ(one, other) for index, one in enumerate(keys) for other in keys[index + 1 :])


def _has_another_name(source: Source, node: ast.If, owner: str) -> bool:
    """Whether the arms may reach `owner` by another name, which would find what is there before the branch."""
    others: set[str] = set()
    for each in walk(source.enclosing_function(node) or source.tree):
        if isinstance(each, ast.Assign):
            paths = {dotted(one) or "" for one in (*each.targets, each.value)}
            others |= paths if owner in paths else set()
    others -= {owner, ""}
    return any(isinstance(each, (ast.Name, ast.Attribute)) and dotted(each) in others for each in walk(node))


def _differ(one: ast.expr, other: ast.expr) -> bool:
    """Whether two keys that are written differently are certainly different ones."""
    if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
        # -1 may be the same item of a list as 0.
        return one.value != other.value and not any(
            isinstance(each.value, int) and each.value < 0 for each in (one, other)
        )
    first, second = _parts(one), _parts(other)
    if not any(each.text for each in (*first, *second)):
        return False
    # What is the same at one end leaves the rest to differ.
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    while first and second and first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    if all(each.text for each in (*first, *second)):
        return "".join(each.value for each in first) != "".join(each.value for each in second)
    return _cannot_be(first, second) or _cannot_be(second, first)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the text that a key is put together from: itself, or the expression that gives it."""

    value: str
    text: bool


def _parts(key: ast.expr) -> list[_Part]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return [_Part(key.value, True)]
    if isinstance(key, ast.JoinedStr):
        return [part for each in key.values for part in _parts(each)]
    if isinstance(key, ast.FormattedValue) and key.conversion == -1 and key.format_spec is None:
        return [_Part(ast.unparse(key.value), False)]
    if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Add):
        return [*_parts(key.left), *_parts(key.right)]
    return [_Part(ast.unparse(key), False)]


def _cannot_be(plain: list[_Part], made: list[_Part]) -> bool:
    """Whether no expression could make `made` the constant text `plain`."""
    if not made or not all(each.text for each in plain):
        return False
    whole = "".join(each.value for each in plain)
    start, end = made[0], made[-1]
    return (start.text and not whole.startswith(start.value)) or (end.text and not whole.endswith(end.value))


def _put_before(source: Source, node: ast.If, item: str) -> ast.expr | None:
    """What an earlier statement certainly puts into `item`, where it is there still and made of the same names."""
    subscript = parse_python(item, mode="eval").body
    later: list[ast.stmt] = []
    within: ast.AST = node
    while isinstance(within, (ast.If, ast.For, ast.While, ast.With)):
        block, index = source.block_of(within)
        if isinstance(within, (ast.For, ast.While)):
            later.append(within)
        for statement in reversed(block[:index]):
            if isinstance(statement, ast.Assign) and [ast.unparse(each) for each in statement.targets] == [
                item
            ]:
                names = reads(statement.value) | reads(subscript)
                return None if names & set(bound(later)) or _removes(later) else statement.value
            later.append(statement)
        within = source.parents[within]
    return None


def _is_known(source: Source, node: ast.If, item: ast.Subscript, kinds: Kinds) -> bool:
    """Whether there is such an item before the branch, as far as is seen: what others hand in has what is read of it."""
    if _is_read_by(node.test, ast.unparse(item)):
        return True
    key, function = item.slice, source.enclosing_function(node)
    if isinstance(key, ast.Name) and function is not None:
        return _is_gone_through(source, node, item, kinds)
    if not isinstance(key, ast.Constant) or function is None:
        return False
    if key.value in kinds.of(item.value).keys:
        return True
    if not (isinstance(item.value, ast.Name) and _is_dict(function, item.value.id)):
        return isinstance(key.value, int) or _is_read_anyway(source, node, ast.unparse(item), function)
    return ast.unparse(key) in _keys_of_comprehension(function, item.value.id)


def _is_gone_through(source: Source, node: ast.If, item: ast.Subscript, kinds: Kinds) -> bool:
    """Whether `item` is of the list or dict that a loop around `node` goes through by its places or keys, which stay."""
    key, owner = ast.unparse(item.slice), ast.unparse(item.value)
    for loop in source.ancestors(node):
        if not isinstance(loop, ast.For) or key not in bound(loop.target):
            continue
        places = {f"range(len({owner}))": loop.target, f"{owner}.keys()": loop.target}
        if isinstance(loop.target, ast.Tuple):
            places = dict.fromkeys((f"enumerate({owner})", f"{owner}.items()"), loop.target.elts[0])
        asked = ast.unparse(loop.iter)
        target = places.get(asked)
        if target is None or ast.unparse(target) != key or _removes(loop.body):
            return False
        if not asked.startswith(owner) and not _is_list(source, node, item.value, kinds):
            return False
        whole = {one for each in walk(loop) if isinstance(each, ast.stmt) for one in _set_anew(each)}
        return key not in set(bound(loop.body)) and owner not in whole
    return False


def _name_of_round(source: Source, node: ast.If, item: ast.Subscript) -> str | None:
    """`row` where `item` is `rows[i]`, and nothing has set that in the round of `for i, row in enumerate(rows)` so far."""
    loop = source.parents[node]
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple) or node not in loop.body:
        return None
    place, row = loop.target.elts[0], loop.target.elts[-1]
    of_list = ast.unparse(loop.iter) == f"enumerate({ast.unparse(item.value)})"
    if not of_list or len(loop.target.elts) != 2 or ast.unparse(place) != ast.unparse(item.slice):
        return None
    earlier = loop.body[: loop.body.index(node)]
    if not isinstance(row, ast.Name) or row.id in bound(loop.body):
        return None
    return None if set(reads(item.value)) & reads(earlier) else row.id


def _is_list(source: Source, node: ast.If, owner: ast.expr, kinds: Kinds) -> bool:
    """Whether the places in `owner` are its keys."""
    value, function = kinds.of(owner).value, source.enclosing_function(node)
    if isinstance(value, Sequence):
        return value.kind == "list"
    values = [
        each.value
        for each in walk(function or source.tree)
        if isinstance(each, ast.Assign)
        and any(ast.unparse(one) == ast.unparse(owner) for one in each.targets)
    ]
    return bool(values) and all(
        isinstance(each, (ast.List, ast.ListComp))
        or (isinstance(each, ast.Call) and ast.unparse(each.func) in ("list", "sorted"))
        for each in values
    )


def _set_anew(node: ast.stmt) -> list[str]:
    """The names and paths that the statement `node` itself binds."""
    return [
        ast.unparse(each)
        for each in own_expressions(node)
        if isinstance(each, (ast.Attribute, ast.Name)) and isinstance(each.ctx, ast.Store)
    ]


def _is_read_anyway(source: Source, node: ast.If, item: str, function: Function) -> bool:
    """Whether `function` reads `item` in the branch, or on every way to it or from it. What a Module keeps may be set by the branch
    first, and be read from then on: there it counts only what is read before it is set, or what other methods set."""
    around = [each for each in source.ancestors(node) if isinstance(each, ast.stmt)]
    kept = item.startswith("self.") and not is_set_elsewhere(source, function, item)
    first = min(
        (source.start(each) for each in walk(node) if isinstance(each, ast.Subscript) and sets(each, item)),
        default=source.end(node),
    )
    for each in walk(function):
        reads_it = (
            isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load) and ast.unparse(each) == item
        ) or (isinstance(each, ast.AugAssign) and ast.unparse(each.target) == item)
        if not reads_it or (kept and source.start(each) > first):
            continue
        owners = [
            one for one in source.ancestors(each) if isinstance(one, (ast.If, ast.For, ast.While, ast.Try))
        ]
        if node in owners or all(one in around for one in owners):
            return True
    return False


def _keys_of_comprehension(function: Function, name: str) -> set[str]:
    """The keys of `{key: ... for key in ("a", "b")}`, to which `name` is bound, and nothing else."""
    values = [
        each.value
        for each in walk(function)
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]
    ]
    if len(values) != 1 or not isinstance(values[0], ast.DictComp) or len(values[0].generators) != 1:
        return set()
    made, rounds = values[0], values[0].generators[0]
    if rounds.ifs or ast.unparse(made.key) != ast.unparse(rounds.target) or _removes(function.body):
        return set()
    elements = rounds.iter.elts if isinstance(rounds.iter, (ast.Tuple, ast.List)) else []
    return {ast.unparse(each) for each in elements if isinstance(each, ast.Constant)}


def _is_read_by(test: ast.AST, item: str) -> bool:
    """Whether `test` certainly reads `item`, which it would not get past without."""
    if isinstance(test, ast.BoolOp):
        return _is_read_by(test.values[0], item)
    if isinstance(test, ast.Subscript) and ast.unparse(test) == item:
        return True
    plain = (ast.Compare, ast.Call, ast.Attribute, ast.UnaryOp, ast.BinOp, ast.Subscript, ast.keyword)
    return isinstance(test, plain) and any(
        _is_read_by(each, item)
        for each in ast.iter_child_nodes(test)
        if isinstance(each, (ast.expr, ast.keyword))
    )


def _removes(statements: list[ast.stmt]) -> bool:
    """Whether an item may be taken away again."""
    return any(
        isinstance(each, ast.Delete)
        or (isinstance(each, ast.Attribute) and each.attr in ("pop", "popitem", "clear", "remove"))
        for statement in statements
        for each in ast.walk(statement)
    )


def _always_sets(arm: list[ast.stmt], item: str) -> bool:
    """Whether the arm sets `item` before anything in it reads it."""
    for statement in arm:
        loads = any(
            isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load) and ast.unparse(each) == item
            for each in own_expressions(statement)
        )
        if loads or (isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == item):
            return False
        if isinstance(statement, ast.Assign) and any(ast.unparse(t) == item for t in statement.targets):
            return True
    return False
