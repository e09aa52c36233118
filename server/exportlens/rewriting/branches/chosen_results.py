"""A function that gives a name, a code, a layer or None as tensor data says, written out where it is called: torch.cond gives
tensors alone, and what is done with the name is a tensor again.

    mode = self.pick(x)                     if x.mean() > 1:
    return self.heads[mode](x)     ->           mode = "hard"
                                            else:
                                                mode = "easy"
                                            return self.heads[mode](x)

The branch then stands where its result is used, and is rewritten with that.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.bound_at_once import bound_at_once
from exportlens.rewriting.code.inlining import NEVER_MOVED
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import (
    arguments,
    bound,
    dotted,
    every_name,
    fresh,
    is_none,
    own_calls,
    reads,
    walk_own,
)
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.memory.moving import writes
from exportlens.source.walking import walk

WRITE_OUT_CHOICE = "Write the function out where it is called"
_LONGEST = 24
# What is written out at more calls than these hides the code more than the rewrite helps.
_MOST_CALLS = 3
# What follows a branch that returns on some of its ways only is written on each of the others.
_MOST_TWICE = 3
_OWN_SCOPE = (ast.ListComp, ast.GeneratorExp)
_UNSUITED = (
    *(each for each in NEVER_MOVED if each is not ast.Return and each not in _OWN_SCOPE),
    *(ast.Yield, ast.Import, ast.ImportFrom),
)
# What may not compute all of its parts, or computes them more than once.
_UNSURE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp),
)
_HOLDING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.If, ast.Match)


def calls_written_out(source: Source, node: ast.AST) -> str | None:
    """The whole text of the file with the function around `node` written out where it is called; None where that gives tensors
    only, or stands for more than can be written in the place of its calls. `source` is that of the file."""
    function = source.enclosing_function(node)
    if not isinstance(function, ast.FunctionDef) or not _may_be_written_out(source, function):
        return None
    calls = list(_calls(source, function))
    if not 1 <= len(calls) <= _MOST_CALLS:
        return None
    taken = {call.caller: every_name(call.caller) for call in calls}
    swaps: list[Replacement] = []
    for call in calls:
        made = _in_place(source, function, call, taken[call.caller])
        if made is None:
            return None
        swaps += made
    return replaced(source.text, swaps)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the function, what stands for its `self` ("" where it has none), and the function that calls."""

    node: ast.Call
    owner: str
    caller: Function


def _may_be_written_out(source: Source, function: ast.FunctionDef) -> bool:
    body = _body(function)
    plain = all(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    args = function.args
    if not plain or args.vararg or args.kwarg or args.posonlyargs or not body:
        return False
    statements = [each for one in body for each in ast.walk(one) if isinstance(each, ast.stmt)]
    if len(statements) > _LONGEST or any(
        isinstance(each, _UNSUITED) for one in body for each in ast.walk(one)
    ):
        return False
    top = source.parents[function]
    # What is written out for a call of a function that calls itself holds such calls again.
    plain = isinstance(top, (ast.Module, ast.ClassDef)) and not own_calls(function)
    return plain and _gives_objects(source, function)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    first = function.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if text else function.body


def _gives_objects(source: Source, function: ast.FunctionDef) -> bool:
    """Whether one of its results, or a part of one, is written as what no tensor is: a name, None, a layer, a member of an enum."""
    values = [
        each.value
        for each in walk_own(function.body)
        if isinstance(each, ast.Return) and each.value is not None
    ]
    names = {each.id for value in values for each in _parts(value) if isinstance(each, ast.Name)}
    values += [
        each.value
        for each in walk_own(function.body)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in each.targets)
    ]
    return any(_is_object(source, part, function) for value in values for part in _parts(value))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, (ast.Tuple, ast.List)):
        for each in value.elts:
            yield from _parts(each)
    elif isinstance(value, ast.Dict):
        for each in value.values:
            yield from _parts(each)
    elif isinstance(value, ast.IfExp):
        yield from _parts(value.body)
        yield from _parts(value.orelse)
    else:
        yield value


def _is_object(source: Source, node: ast.expr, function: ast.FunctionDef) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, (str, int, float))
    if isinstance(node, ast.JoinedStr):
        return True
    tops = {each.name for each in source.tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    if isinstance(node, ast.Name):
        return node.id in tops
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = source.parents[function]
        if node.value.id in tops:
            return True
        return isinstance(owner, ast.ClassDef) and node.attr in _layers(owner) and node.value.id != "torch"
    if isinstance(node, ast.Subscript):
        return _is_object(source, node.value, function)
    return False


def _layers(owner: ast.ClassDef) -> set[str]:
    """The attributes that the constructor sets to what it calls or writes out, and the methods: none of them is a tensor that
    data computes."""
    found = {each.name for each in owner.body if isinstance(each, ast.FunctionDef)}
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            for each in walk(method):
                if isinstance(each, ast.Assign) and isinstance(each.value, (ast.Call, ast.Dict, ast.List)):
                    name = dotted(each.value.func) if isinstance(each.value, ast.Call) else ""
                    if name is not None and not name.endswith(
                        ("Parameter", "tensor", "zeros", "ones", "randn")
                    ):
                        found |= {one.attr for one in each.targets if isinstance(one, ast.Attribute)}
    return found


# --- calls ----------------------------------------------------------------------------------------------------


def _calls(source: Source, function: ast.FunctionDef) -> Iterator[_Call]:
    """The calls of `function` in the file."""
    owner = source.parents[function]
    static = bool(function.decorator_list)
    for each in walk(source.tree):
        if not isinstance(each, ast.Call):
            continue
        caller = source.enclosing_function(each)
        if caller is None or caller is function:
            continue
        path = dotted(each.func) or ""
        if not isinstance(owner, ast.ClassDef):
            if path == function.name and path not in _locals(caller):
                yield _Call(each, "", caller)
            continue
        around = next((one for one in source.ancestors(caller) if isinstance(one, ast.ClassDef)), None)
        own = caller.args.args[0].arg if caller.args.args else ""
        if around is None or not path.startswith(f"{own}."):
            continue
        held = path.removeprefix(f"{own}.")
        if held == function.name and (around is owner or _extends(source, around, owner)):
            if not _is_overridden(source, owner, function.name):
                yield _Call(each, "" if static else own, caller)
            continue
        attribute, _, name = held.partition(".")
        if (name or "forward") == function.name and _is_made_of(around, attribute, owner.name) and not static:
            yield _Call(each, f"{own}.{attribute}", caller)


def _is_overridden(source: Source, owner: ast.ClassDef, name: str) -> bool:
    """Whether a class of the file that derives from `owner` has a method `name` of its own."""
    return any(
        isinstance(each, ast.ClassDef)
        and any((dotted(base) or "").split(".")[-1] == owner.name for base in each.bases)
        and any(isinstance(one, ast.FunctionDef) and one.name == name for one in each.body)
        for each in walk(source.tree)
    )


def _extends(source: Source, derived: ast.ClassDef, owner: ast.ClassDef) -> bool:
    """Whether `owner` is the one base of `derived`, or that of its one base."""
    classes = [each for each in source.tree.body if isinstance(each, ast.ClassDef)]
    for _ in classes:
        names = [dotted(each) or "" for each in derived.bases]
        above = [each for each in classes if [each.name] == names]
        if len(above) != 1:
            return False
        derived = above[0]
        if derived is owner:
            return True
    return False


def _is_made_of(owner: ast.ClassDef, attribute: str, name: str) -> bool:
    """Whether all that `owner` sets `self.attribute` to is a call of the class `name`."""
    made = [
        each.value
        for each in walk(owner)
        if isinstance(each, ast.Assign) and any(dotted(one) == f"self.{attribute}" for one in each.targets)
    ]
    return bool(made) and all(isinstance(each, ast.Call) and dotted(each.func) == name for each in made)


def _locals(function: Function) -> set[str]:
    return {*bound(function.body), *(each.arg for each in arguments(function.args))}


# --- writing --------------------------------------------------------------------------------------------------


def _in_place(
    source: Source, function: ast.FunctionDef, call: _Call, taken: set[str]
) -> list[Replacement] | None:
    """What is written for one call: the statements of the function, and a name for the call where it is part of more."""
    statement = source.enclosing_statement(call.node)
    if not isinstance(statement, _HOLDING) or not source.begins_line(statement):
        return None
    if isinstance(statement, ast.If) and source.text.startswith("elif", source.start(statement)):
        return None
    for outer in source.ancestors(call.node):
        if outer is statement:
            break
        if isinstance(outer, _UNSURE):
            return None
    body = _body(function)
    if isinstance(statement, ast.Assign) and _unpacks(statement, call.node) and _may_give_none(body):
        # torch.cond would trace the way on which Python fails.
        return None
    given = _given(source, call, function)
    if given is None:
        return None
    inner = {
        name for one in body for each in walk(one) if isinstance(each, _OWN_SCOPE) for name in _counted(each)
    }
    if inner & {*given, *bound(body)}:
        return None
    free = reads(body) - set(given) - set(bound(body)) - inner
    if free & _locals(call.caller) or "super" in free:
        return None
    private = any(
        isinstance(each, ast.Attribute) and _is_private(each.attr) for one in body for each in walk(one)
    )
    if private and source.parents[function] not in source.ancestors(call.caller):
        return None
    alone = isinstance(statement, ast.Assign) and statement.value is call.node
    earlier = [
        each
        for each in walk(statement)
        if isinstance(each, ast.Call) and source.end(each) <= source.start(call.node)
    ]
    if not alone and (writes(body) or writes(earlier)):
        return None
    first = [name for name, (_, plain) in given.items() if not plain or name in bound(body)]
    texts = [text for text, _ in given.values()]
    same = bound_at_once(statement, body, given, texts) if isinstance(statement, ast.Assign) and alone else {}
    renamed = {name: same.get(name) or fresh(name, taken) for name in [*bound(body), *first]}
    if alone:
        assert isinstance(statement, ast.Assign)
        target = source.text[source.start(statement) : source.start(call.node)]
        after: list[Replacement] = []
    else:
        called = (dotted(call.node.func) or function.name).rpartition(".")[2].strip("_")
        name = fresh(f"{called}_result", taken)
        target, after = f"{name} = ", [source.swap(call.node, name)]
    swaps = [
        source.swap(each, renamed.get(each.id) or given[each.id][0])
        for one in body
        for each in ast.walk(one)
        if isinstance(each, ast.Name) and (each.id in given or each.id in renamed)
    ]
    indent = source.indent_of(statement)
    written = _Ways(source, target, swaps).lines(body, indent)
    if written is None:
        return None
    if same:
        written = written[:-1]
    lines = [*(f"{indent}{renamed[name]} = {given[name][0]}" for name in first), *written]
    text = source.newline.join(lines).removeprefix(indent)
    if alone:
        return [source.swap(statement, text)]
    start = source.start(statement)
    return [Replacement(start, start, text + source.newline + indent), *after]


def _counted(node: ast.ListComp | ast.GeneratorExp) -> list[str]:
    """The names that a comprehension has for itself."""
    return [name for each in node.generators for name in bound(each.target)]


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _given(source: Source, call: _Call, function: ast.FunctionDef) -> dict[str, tuple[str, bool]] | None:
    """The text for each parameter, and whether it may stand in its place, in the order of the call; None where the call is unusual."""
    args = function.args
    places = [each.arg for each in args.args]
    given: dict[str, tuple[str, bool]] = {}
    if call.owner:
        given[places.pop(0)] = (call.owner, True)
    pairs = [
        *zip(places, call.node.args, strict=False),
        *((each.arg or "", each.value) for each in call.node.keywords),
    ]
    names = [*places, *(each.arg for each in args.kwonlyargs)]
    if len(call.node.args) > len(places) or any(isinstance(each, ast.Starred) for each in call.node.args):
        return None
    unchanged = not writes(function.body)
    for name, value in pairs:
        text = source.of(value)
        if name not in names or name in given:
            return None
        plain = isinstance(value, (ast.Constant, ast.Name)) or (unchanged and dotted(value) is not None)
        given[name] = (text, plain)
    defaults = dict(zip(places[::-1], reversed(args.defaults), strict=False))
    defaults |= {
        each.arg: value
        for each, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if value is not None
    }
    for name in names:
        if name not in given:
            default = defaults.get(name)
            if not isinstance(default, ast.Constant):
                return None
            given[name] = (source.of(default), True)
    return given


class _Ways:
    """The statements of a function in which each `return` binds what `target` says."""

    def __init__(self, source: Source, target: str, swaps: Sequence[Replacement]) -> None:
        self.source, self.target, self.swaps = source, target, swaps

    def lines(self, block: Sequence[ast.stmt], indent: str) -> list[str] | None:
        """The lines of `block`, which ends in a result on each way; None where that would write something twice."""
        source = self.source
        index = next((at for at, each in enumerate(block) if "returns" in exits([each])), len(block))
        lines = [self._plain(block[:index], indent)] if index else []
        if index == len(block):
            return lines if block and "falls" not in exits(block) else [*lines, f"{indent}{self.target}None"]
        node, rest = block[index], list(block[index + 1 :])
        if isinstance(node, ast.Return):
            lines += [indent + each for each in source.comments_between(*source.span([node]))]
            return [*lines, f"{indent}{self.target}{self._value(node)}"]
        branch = self._branch(node, rest, indent) if isinstance(node, ast.If) else None
        return None if branch is None else [*lines, *branch]

    def _plain(self, block: Sequence[ast.stmt], indent: str) -> str:
        # Statements that stand apart are not one stretch of the text.
        groups = [
            [each for _, each in group]
            for _, group in itertools.groupby(
                ((id(self.source.block_of(each)[0]), each) for each in block), key=lambda pair: pair[0]
            )
        ]
        return self.source.newline.join(self.source.block(each, indent, self.swaps) for each in groups)

    def _value(self, node: ast.Return) -> str:
        if node.value is None:
            return "None"
        return self.source.of(node.value, self.swaps)

    def _branch(self, node: ast.If, rest: list[ast.stmt], indent: str) -> list[str] | None:
        source = self.source
        falls = ["falls" in exits(each) for each in (node.body, node.orelse)]
        if all(falls) and sum(isinstance(each, ast.stmt) for one in rest for each in walk(one)) > _MOST_TWICE:
            return None
        inner = indent + source.indent_unit()
        then = self.lines([*node.body, *(rest if falls[0] else [])], inner)
        behind = [*node.orelse, *(rest if falls[1] else [])]
        following = behind[0] if behind else None
        chained = isinstance(following, ast.If) and "returns" in exits([following])
        other = self.lines(behind, indent if chained else inner)
        if then is None or other is None:
            return None
        test = source.of(node.test, self.swaps)
        notes = source.comments_between(source.end(node.test), source.span(node.body)[0])
        lines = [
            f"{indent}if {test}:",
            *(inner + each for each in notes),
            *then,
        ]
        if chained:
            return [*lines, f"{indent}el{other[0].removeprefix(indent)}", *other[1:]]
        return [*lines, f"{indent}else:", *other]


def _unpacks(statement: ast.Assign, call: ast.Call) -> bool:
    """Whether `statement` unpacks what `call` gives."""
    return statement.value is call and any(
        isinstance(each, (ast.Tuple, ast.List)) for each in statement.targets
    )


def _may_give_none(body: list[ast.stmt]) -> bool:
    """Whether one way through the function gives None."""
    returned = [each.value for each in walk_own(body) if isinstance(each, ast.Return)]
    return "falls" in exits(body) or any(value is None or is_none(value) for value in returned)
