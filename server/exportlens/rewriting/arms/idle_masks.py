"""Masks that are dropped where they mask nothing: `if not padding_mask.any(): padding_mask = None`; or that are only made where
they mask something: `if tokens.eq(pad).any(): padding_mask = tokens.eq(pad)`.

Which it is hangs on data, and a branch gives no None. The mask is kept: what it does where nothing is masked is what None stands for.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, dotted, is_none
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

KEEP_MASK = "Keep the mask, which masks nothing there"


def kept_text(source: Source, node: ast.If | ast.IfExp, kinds: Kinds) -> str | None:
    """The text without the branch that gives None in the place of a mask without effect; None where `node` is no such branch.
    Raises Refused where comments would be lost.
    """
    if isinstance(node, ast.IfExp):
        return _kept_by_ternary(source, node, kinds)
    if node.orelse or len(node.body) != 1:
        return None
    only = node.body[0]
    if isinstance(only, ast.Return) and (only.value is None or is_none(only.value)):
        return _returned_anyhow(source, node, kinds)
    if not (
        isinstance(only, ast.Assign) and len(only.targets) == 1 and isinstance(only.targets[0], ast.Name)
    ):
        return None
    name = only.targets[0].id
    if not is_none(only.value):
        return _always_made(source, node, only, name)
    tests = _parts(node.test, ast.And)
    idle = [each for each in tests if _masks_nothing(each, name, kinds)]
    # What else is asked for decides nothing: where the mask masks nothing, it is as good as None.
    others = [each for each in tests if each not in idle and not _is_none_test(each, name)]
    if not idle or not all(map(_only_asks, others)) or not _only_masks(source, node, name):
        return None
    start, end = source.span([node])
    if source.text.startswith("elif", source.start(node)) or source.comments_between(source.start(node), end):
        raise Refused("the branch has comments")
    block, _ = source.block_of(node)
    if len(block) == 1:
        return replaced(source.text, [Replacement(start, end, f"{source.indent_of(node)}pass")])
    following = source.text[end:]
    return source.text[:start] + following[len(following) - len(following.lstrip("\r\n")) :]


def _parts(test: ast.expr, op: type[ast.boolop]) -> list[ast.expr]:
    """What `test` joins by `op`, or itself."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, op) else [test]


def _returned_anyhow(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The text where a helper returns the mask that it is given also where it masks nothing: `if m is None or m.all(): return None`."""
    function = source.enclosing_function(node)
    if function is None or function.name in ("forward", "__call__"):
        return None
    tests = _parts(node.test, ast.Or)
    for name in (each.arg for each in arguments(function.args)):
        idle = [each for each in tests if _masks_nothing(each, name, kinds)]
        others = [each for each in tests if each not in idle]
        if len(idle) != 1 or not all(map(_only_asks, others)) or not _returns_only(function, name):
            continue
        if not _callers_only_mask(source, function):
            return None
        if others:
            test = source.of(others[0]) if len(others) == 1 else " or ".join(map(source.of, others))
            return replaced(source.text, [source.swap(node.test, test)])
        start, end = source.span([node])
        if source.comments_between(source.start(node), end) or not source.begins_line(node):
            raise Refused("the branch has comments")
        following = source.text[end:]
        return source.text[:start] + following[len(following) - len(following.lstrip("\r\n")) :]
    return None


# Views of a mask are masks.
_VIEWS = frozenset({"unsqueeze", "view", "reshape", "expand", "transpose", "bool", "expand_as", "squeeze"})


def _returns_only(function: Function, name: str) -> bool:
    """Whether `function` returns None, and the mask `name` or a view of it."""
    returned = [each.value for each in walk(function) if isinstance(each, ast.Return)]
    given = [each for each in returned if each is not None and not is_none(each)]
    for each in given:
        node = each
        while True:
            if isinstance(node, ast.Subscript):
                node = node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _VIEWS
            ):
                node = node.func.value
            else:
                break
        if not isinstance(node, ast.Name) or node.id != name:
            return False
    return bool(given)


def _callers_only_mask(source: Source, function: Function) -> bool:
    """Whether all that names `function` in the file calls it for a mask, which then does nothing but mask."""
    found = False
    for each in walk(source.tree):
        called = (
            each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else None
        )
        if called != function.name:
            continue
        call = source.parents[each]
        bound = source.parents.get(call)
        target = bound.targets[0] if isinstance(bound, ast.Assign) and len(bound.targets) == 1 else None
        if not (
            isinstance(call, ast.Call)
            and call.func is each
            and isinstance(target, ast.Name)
            and "mask" in target.id.lower()
            and bound is not None
            and _only_masks(source, bound, target.id)
        ):
            return False
        found = True
    return found


def _always_made(source: Source, node: ast.If, only: ast.Assign, name: str) -> str | None:
    """The text where the mask `name`, None before, is made whether it masks something or not."""
    tests = _parts(node.test, ast.Or)
    made = ast.dump(only.value)
    asked = [each for each in tests if _asked_for_any(each) == made]
    block, index = source.block_of(node)
    before = block[index - 1] if index else None
    made_none = (
        isinstance(before, (ast.Assign, ast.AnnAssign))
        and [dotted(each) for each in _targets(before)] == [name]
        and before.value is not None
        and is_none(before.value)
    )
    if "pad" not in name.lower() or "mask" not in name.lower() or len(asked) != 1 or not made_none:
        return None
    if not all(_only_asks(each) for each in tests if each not in asked) or not _only_masks(
        source, node, name
    ):
        return None
    assert before is not None
    start, end = source.span([before, node])
    if source.comments_between(source.start(before), source.start(only)):
        raise Refused("the branch has comments")
    text = source.block([only], source.indent_of(node))
    return replaced(source.text, [Replacement(start, end, text)])


def _asked_for_any(test: ast.expr) -> str | None:
    """What `test` asks `.any()` of, without arguments, as a dump."""
    plain = isinstance(test, ast.Call) and not test.args and not test.keywords
    func = test.func if isinstance(test, ast.Call) and plain else None
    return ast.dump(func.value) if isinstance(func, ast.Attribute) and func.attr == "any" else None


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _only_asks(test: ast.expr) -> bool:
    """Whether a test does nothing but ask: it calls nothing."""
    return not any(isinstance(each, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)) for each in walk(test))


def _kept_by_ternary(source: Source, node: ast.IfExp, kinds: Kinds) -> str | None:
    test, kept = node.test, node.orelse
    if is_none(node.orelse):
        is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        test = getattr(test, "operand", test) if is_negated else ast.UnaryOp(ast.Not(), test)
        kept = node.body
    elif not is_none(node.body):
        return None
    name = dotted(kept)
    if name is None or not _masks_nothing(test, name, kinds):
        return None
    bound = source.parents[node]
    target = bound.targets[0] if isinstance(bound, ast.Assign) else None
    if not isinstance(bound, ast.Return) and not (
        isinstance(target, ast.Name) and _only_masks(source, node, target.id)
    ):
        return None
    return replaced(source.text, [source.swap(node, name)])


def _only_masks(source: Source, node: ast.AST, name: str) -> bool:
    """Whether the function does nothing where `name` is a mask but to fill by it, or to make other masks of it."""
    function = source.enclosing_function(node)
    if function is not None and function.name in ("forward", "__call__") and _is_returned(function, name):
        raise Refused(f"`{name}` is an output: whether it is None would be chosen by data")
    for each in walk(function) if function is not None else ():
        if isinstance(each, ast.IfExp) and _asks_for_none(each.test, name):
            bound = source.parents[each]
            if not isinstance(bound, ast.Assign) or not _fills(bound, name):
                return False
        if isinstance(each, ast.If) and each is not node and _asks_for_none(each.test, name):
            is_given = isinstance(each.test, ast.Compare) and isinstance(each.test.ops[0], ast.IsNot)
            if not is_given or each.orelse or not all(_fills(one, name) for one in each.body):
                return False
    return True


def _is_returned(function: Function, name: str) -> bool:
    """Whether `function` returns the object `name`, alone or in a tuple, list or dict."""
    values = [
        each.value for each in walk(function) if isinstance(each, ast.Return) and each.value is not None
    ]
    while values:
        value = values.pop()
        if isinstance(value, ast.Name) and value.id == name:
            return True
        if isinstance(value, (ast.Tuple, ast.List)):
            values += value.elts
        elif isinstance(value, ast.Dict):
            values += value.values
        elif isinstance(value, ast.Call):
            values += [
                key.value
                for key in value.keywords
                if (dotted(value.func) or "").rpartition(".")[2][:1].isupper()
            ]
    return False


def _asks_for_none(test: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Compare) and dotted(each.left) == name for each in walk(test))


def _fills(statement: ast.stmt, name: str) -> bool:
    """Whether `statement` fills by the mask `name`: `x = x.masked_fill(mask, 0)`; or binds another mask."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = dotted(statement.targets[0]) or ""
    if "mask" in target.lower():
        return True
    value = statement.value
    direct = name if "pad" in name.lower() else f"~{name}"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and dotted(value.left) == target:
        return "pad" in name.lower() and _is_one_less(value.right, name, target)
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "masked_fill"
        and dotted(value.func.value) == target
        and bool(value.args)
        # Filled is what the mask of padding marks, or what the mask of what counts leaves out: the other way round, a mask
        # that masks nothing would fill everything.
        and ast.unparse(value.args[0]).startswith(direct)
    )


def _is_one_less(node: ast.expr, name: str, target: str) -> bool:
    """Whether `node` is `1 - mask.type_as(x)`: ones of the dtype of `target`, where the mask masks nothing."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or ast.unparse(node.left) != "1":
        return False
    of = node.right
    converted = False
    while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute):
        given = [ast.unparse(each) for each in of.args]
        if of.func.attr == "type_as" or (of.func.attr == "to" and given in ([target], [f"{target}.dtype"])):
            converted = converted or given[0].partition(".")[0] == target
        elif of.func.attr not in ("unsqueeze", "transpose", "view", "expand"):
            return False
        of = of.func.value
    return converted and dotted(of) == name


def _is_none_test(test: ast.expr, name: str) -> bool:
    return ast.unparse(test) == f"{name} is not None"


def _masks_nothing(test: ast.expr, name: str, kinds: Kinds) -> bool:
    """Whether `test` asks that `name`, True where something is padding, is False everywhere, or that, True where something counts, it
    is True everywhere. Which of the two a mask is, is in its name."""
    is_padding = "pad" in name.lower()
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_padding and _asks(test.operand, "any", name, kinds)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return is_padding and ast.unparse(test.comparators[0]) == "0" and _asks(test.left, "sum", name, kinds)
    return not is_padding and "mask" in name.lower() and _asks(test, "all", name, kinds)


def _asks(node: ast.expr, question: str, name: str, kinds: Kinds) -> bool:
    """Whether `node` is `name.any()` or `torch.any(name)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if kinds.qualified(node.func) == f"torch.{question}":
        return len(node.args) == 1 and dotted(node.args[0]) == name
    func = node.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == question
        and not node.args
        and dotted(func.value) == name
    )
