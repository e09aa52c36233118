"""Functions that call themselves inside of an arm: torch.cond traces both arms, so what ends the calls must be known without data.

def halved(x):                         def halved(x, n):
    if x.norm() > 1:                       if n == 0:                # ends, however the arms are traced
        return halved(x * 0.5)                 return x
    return x                               if x.norm() > 1:
                                               return halved(x * 0.5, n - 1)
                                           return x
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import arguments, bound, dotted, own_names
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_ASKS = (ast.If, ast.IfExp)
_TAKING_PARTS = frozenset(
    {"narrow", "chunk", "split", "select", "unbind", "max_pool1d", "max_pool2d", "avg_pool2d"}
)


def refuse_endless(source: Source, node: ast.AST, traced: Sequence[ast.AST], kinds: Kinds) -> None:
    """Raise Refused where `traced`, one side of the branch `node`, leads to the function around it again, and nothing but data
    ends that."""
    for around in source.ancestors(node):
        if not isinstance(around, ast.FunctionDef):
            continue
        for call in _calls(traced):
            if _leads_to(around, call, kinds) and not _ends(source, around, call, kinds, node):
                raise Refused(
                    f"`{around.name}` calls itself: torch.cond traces that without end, unless an `if` before it, which no "
                    "tensor decides, ends it"
                )


def _calls(parts: Sequence[ast.AST]) -> Iterator[ast.Call]:
    return (each for part in parts for each in walk(part) if isinstance(each, ast.Call))


def _leads_to(function: ast.FunctionDef, call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call`, in `function`, runs it again, itself or by other functions of the file."""
    seen: set[ast.FunctionDef] = set()
    waiting = [call]
    while waiting:
        name = dotted(waiting.pop().func) or ""
        if name in own_names(function):
            return True
        called = kinds.functions.get(name)
        if called is not None and called not in seen:
            seen.add(called)
            waiting += _calls(called.body)
    return False


def _ends(source: Source, function: ast.FunctionDef, call: ast.Call, kinds: Kinds, branch: ast.AST) -> bool:
    """Whether a question that no data decides leads to `call` or past it, and is another one each time: it asks a parameter
    that the call changes. What `branch` itself asks is data, whether that can be seen or not."""
    changed = _changed(function, call, kinds)
    inner: ast.AST = call
    for around in source.ancestors(call):
        if (
            isinstance(around, _ASKS)
            and around is not branch
            and inner is not around.test
            and _asks(function, around.test, _holds_for(around, inner), changed, kinds)
        ):
            return True
        if isinstance(around, (ast.For, ast.comprehension)) and _reads(function, around.iter) & changed:
            return True
        if isinstance(around, (ast.ListComp, ast.GeneratorExp)) and any(
            _reads(function, each.iter) & changed for each in around.generators
        ):
            return True
        for _, block in ast.iter_fields(around):
            if isinstance(block, list) and inner in block:
                before = block[: block.index(inner)]
                if any(
                    isinstance(each, ast.If)
                    and ({"returns", "raises"} & (exits(each.body) | exits(each.orelse)))
                    and _asks(function, each.test, "falls" in exits(each.body), changed, kinds)
                    for each in before
                ):
                    return True
        if around is function:
            break
        inner = around
    return False


def _changed(function: ast.FunctionDef, call: ast.Call, kinds: Kinds) -> set[str]:
    """The parameters of `function` whose values the calls of it change, by name. What calls another function may change all."""
    names = [each.arg for each in arguments(function.args)]
    if (dotted(call.func) or "").rpartition(".")[2] != function.name:
        return set(names)
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = list(zip(names, call.args, strict=False))
    given += [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    again = set(bound(function.body))
    same = {name for name, value in given if isinstance(value, ast.Name) and value.id == name} - again
    return {name for name, value in given if not _keeps_sizes(value, kinds)} - same


def _keeps_sizes(value: ast.expr, kinds: Kinds) -> bool:
    """Whether `value` is another tensor, of which all that no data decides is as before, as far as one can see."""
    if not isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Call)) or kinds.of(value).what != "tensor":
        return False
    return not any(
        isinstance(each, ast.Subscript) or (isinstance(each, ast.Attribute) and each.attr in _TAKING_PARTS)
        for each in walk(value)
    )


def _holds_for(asked: ast.If | ast.IfExp, part: ast.AST) -> bool:
    """Whether `part` of `asked` is what runs where its question holds."""
    return part is asked.body or (isinstance(asked, ast.If) and any(part is each for each in asked.body))


def _asks(function: ast.FunctionDef, test: ast.expr, holds: bool, changed: set[str], kinds: Kinds) -> bool:
    """Whether `test` asks what the call changes, and no data. Of `n == 0 or low(x)` the number alone decides that it holds: such
    a question is written as it is, and torch.cond traces one side of what is a bool."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        return any(_asks(function, each, holds, changed, kinds) for each in test.values)
    return not _is_of_data(test, kinds) and bool(_reads(function, test) & changed)


def _reads(function: ast.FunctionDef, node: ast.expr) -> set[str]:
    """The names that `node` reads, and those of which they are made in `function`."""
    found = _names(node)
    sources: dict[str, set[str]] = {}
    for each in walk(function):
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                for name in bound(target):
                    sources.setdefault(name, set()).update(_names(each.value))
    waiting = list(found)
    while waiting:
        for name in sources.get(waiting.pop(), set()) - found:
            found.add(name)
            waiting.append(name)
    return found


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in walk(node) if isinstance(each, ast.Name)}


def _is_of_data(test: ast.expr, kinds: Kinds) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_is_of_data(each, kinds) for each in test.values)
    if isinstance(test, ast.UnaryOp):
        return _is_of_data(test.operand, kinds)
    if isinstance(test, ast.Compare):
        return any(_is_of_data(each, kinds) for each in (test.left, *test.comparators))
    kind = kinds.of(test)
    return kind.what in ("tensor", "scalar") or kind.from_data
