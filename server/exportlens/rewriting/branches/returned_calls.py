"""Returns of a call that gives a tuple, beside returns that write one out: its parts get names.

if t:                                  if t:
    return self.short(x)                   result, result_2 = self.short(x)
return y, y.sum()              ->          return result, result_2
                                       return y, y.sum()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.knowledge import canonical_name
from exportlens.inference.values import Instance, Named
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import every_name, fresh, walk_own
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def unpacked_returns(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where all returns from `node` on write a tuple out, and the branch; None where they do already, or where it is
    not known what is called."""
    if "returns" not in exits([node]):
        return None
    block, index = source.block_of(node)
    returns = [each for each in walk_own(block[index:]) if isinstance(each, ast.Return)]
    written = [each.value for each in returns if isinstance(each.value, ast.Tuple)]
    calls = [each for each in returns if isinstance(each.value, ast.Call)]
    lengths = {_length(each) for each in written}
    if not calls or not written or len(lengths) != 1 or len(calls) + len(written) != len(returns):
        return None
    length = lengths.pop()
    if length is None or not all(
        source.begins_line(each) and _gives(source, each, length, kinds) for each in calls
    ):
        return None
    taken, swaps = every_name(source.tree), []
    for each in calls:
        names = ", ".join(fresh("result", taken) for _ in range(length))
        begin, value = source.start(each), each.value
        assert value is not None
        line = f"{names} = {source.of(value)}{source.newline}{source.indent_of(each)}return {names}"
        swaps.append(Replacement(begin, source.end(each), line))
    start = source.start(node)
    changed = Source(replaced(source.text, swaps))
    return changed, changed.branch_at(start)


# What recurrent layers of torch give: the output and the state.
_OF_LAYERS = 2
_LAYERS = frozenset({f"torch.nn.{name}" for name in ("LSTM", "GRU", "RNN", "LSTMCell")})


def _is_recurrent(call: ast.Call, kinds: Kinds) -> bool:
    instance = kinds.of(call.func).value
    return (
        isinstance(instance, Instance)
        and isinstance(instance.cls, Named)
        and canonical_name(instance.cls.name) in _LAYERS
    )


def _length(value: ast.expr) -> int | None:
    plain = isinstance(value, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in value.elts)
    return len(value.elts) if isinstance(value, ast.Tuple) and plain else None


def _gives(source: Source, node: ast.Return, length: int, kinds: Kinds) -> bool:
    """Whether what is called certainly gives a tuple of `length` parts: all that it returns is written out so."""
    if isinstance(node.value, ast.Call) and _is_recurrent(node.value, kinds):
        return length == _OF_LAYERS
    if isinstance(node.value, ast.Call) and kinds.qualified(node.value.func) == "torch.cond":
        arms = _arms(source, node, node.value)
        return (
            bool(arms)
            and all("falls" not in exits(arm.body) for arm in arms)
            and all(
                _length(each.value) == length
                if isinstance(each.value, ast.Tuple)
                else isinstance(each.value, ast.Call) and _gives(source, each, length, kinds)
                for arm in arms
                for each in walk_own(arm.body)
                if isinstance(each, ast.Return)
            )
        )
    called = (
        []
        if not isinstance(node.value, ast.Call)
        else list(_called(source, node, node.value, _top_level(source, kinds)))
    )
    if len(called) != 1 or called[0].decorator_list or _is_generator(called[0]):
        return False
    function = called[0]
    returns = [each for each in walk_own(function.body) if isinstance(each, ast.Return)]
    return (
        bool(returns)
        and "falls" not in exits(function.body)
        and all(each.value is not None and _length(each.value) == length for each in returns)
    )


def _arms(source: Source, node: ast.Return, call: ast.Call) -> list[ast.FunctionDef]:
    """The two functions that torch.cond chooses from in `node`, which stand before it; none where they are anything else."""
    block, index = source.block_of(node)
    found = [
        [one for one in block[:index] if isinstance(one, ast.FunctionDef) and one.name == each.id]
        for each in call.args[1:3]
        if isinstance(each, ast.Name)
    ]
    return [each[0] for each in found] if [len(each) for each in found] == [1, 1] else []


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in walk_own(function.body))


def _top_level(source: Source, kinds: Kinds) -> list[ast.stmt]:
    """The functions and classes of the file."""
    own = [each for each in source.tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
    names = {each.name for each in own}
    around = [each for chunk in kinds.around for each in chunk.body]
    return [*own, *(each for each in around if getattr(each, "name", None) not in names)]


def _called(source: Source, node: ast.stmt, call: ast.Call, top: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions of the file that `call` may run, where it runs no other."""
    func = call.func
    if isinstance(func, ast.Name):
        yield from _functions(top, func.id)
        return
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if owner is None or not isinstance(func, ast.Attribute) or ast.unparse(func.value) != "self":
        return
    # A class that extends this one may have a method of its own by that name.
    classes = [each for each in top if isinstance(each, ast.ClassDef)]
    methods = [(each, method) for each in classes for method in _functions(each.body, func.attr)]
    if [each for each, _ in methods] == [owner]:
        yield methods[0][1]
    elif not methods:
        yield from _forward_of(classes, func.attr)


def _functions(body: list[ast.stmt], name: str) -> list[ast.FunctionDef]:
    return [each for each in body if isinstance(each, ast.FunctionDef) and each.name == name]


def _forward_of(classes: list[ast.ClassDef], attribute: str) -> Iterator[ast.FunctionDef]:
    """`forward` of the class of the file of which `self.attribute` is made, and nowhere else set."""
    made = [
        each.value
        for one in classes
        for each in ast.walk(one)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == attribute for target in each.targets)
    ]
    func = made[0].func if len(made) == 1 and isinstance(made[0], ast.Call) else None
    same = [each for each in classes if isinstance(func, ast.Name) and each.name == func.id]
    if len(same) == 1:
        yield from _functions(same[0].body, "forward")
