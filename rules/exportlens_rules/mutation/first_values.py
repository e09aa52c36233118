"""State that the first call computes of its inputs, and all later calls read: `if self.scale is None: self.scale = x.std()`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

from exportlens.inference.classes import class_attribute
from exportlens.inference.places import AttributeWrite, ContainerWrite
from exportlens.inference.values import ClassValue, Const, Function, Instance, Tensor, Value, options
from exportlens.rewriting.code.names import arguments, assigned_pairs, dotted
from exportlens.rewriting.state.begun_questions import asks_for_it, asks_for_none
from exportlens.rewriting.state.carried_reads import carried_by_calls
from exportlens.rewriting.state.plain_writes import NamedWrite, named_read, named_write

from exportlens_rules.mutation.computed_state import parts_of
from exportlens_rules.mutation.state_reads import (
    ALIKE,
    FACTS,
    certainly_written,
    parents,
    resets_by_kept_names,
    weighs,
)
from exportlens_rules.reading import ancestors, nodes_around

# What reads of its arguments no more than what they look like.
_LOOKING = frozenset(
    {"to", "type_as", "expand_as", "view_as", "reshape_as", "len", "isinstance", "type", "hasattr"}
)
# Functions of Python that give what they are given as a number.
_OF_NUMBERS = frozenset({"abs", "bool", "float", "int", "max", "min", "round", "sum"})
_DEEPEST = 3


def is_kept_from_first_call(place: AttributeWrite) -> bool:
    """Whether the function binds the attribute to what it computes of the values of its inputs where nothing was there yet, so that
    the next call finds it."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    if statement is None or function is None or place.elsewhere or isinstance(function.node, ast.Lambda):
        return False
    # Of several values, as `Stats(x.mean(0), x.std(0), x.shape[0])`, one is enough.
    parts = [[*parts_of(each)] for each in options(place.value)]
    if not isinstance(place.owner, Instance) or not all(any(map(is_made, each)) for each in parts):
        return False
    path = f"self.{place.attr}"
    value = next((value for target, value in assigned_pairs(statement) if dotted(target) == path), None)
    if value is None or not is_asked_first(place, statement, path):
        return False
    ways = [function.node, *(each for _, each in callers_of(place))]
    if any(sets_back(each, place.attr) for each in [*ways, *models_of(place)]) or not any(
        _reads(each, path) for each in ways
    ):
        return False
    values = [value]
    if isinstance(value, ast.Call) and all(getattr(each, "fields", ()) for each in options(place.value)):
        values = [*value.args, *(each.value for each in value.keywords)]
    data = _Data(place.owner)
    return any(data.holds(each, function.node, _given(place)) for each in values)


def is_made(value: Value) -> bool:
    """Whether `value` is a tensor that the call was given, or has computed."""
    return isinstance(value, Tensor) and value.origin in ("fresh", "input")


def is_left_to_later_calls(place: AttributeWrite | ContainerWrite) -> bool:
    """Whether the attribute, or the items of it, that the first call does not find are read by later ones on a way that what calls
    change decides: `y = x if self.steps == 0 else x - self.last`. The program goes the way of the first call for ever."""
    owner, function, value = place.owner, place.site.function, _written(place)
    if not isinstance(owner, Instance) or owner.traced or not isinstance(owner.cls, ClassValue):
        return False
    deciding = carried_by_calls(owner.cls.scope.document, owner.cls.name).get(place.attr)
    if deciding is None or (deciding == {place.attr} and resets_by_kept_names(owner)):
        return False
    # A table is the same whenever it is made.
    tells = value is not None and function is not None
    return tells and _Data(owner).holds(value, function.node, _given(place))  # type: ignore[union-attr,arg-type]


def decides_what_is_carried(place: AttributeWrite) -> bool:
    """Whether the flag that the call turns decides if later calls read what `forward` leaves of its inputs: `self.seen = True`."""
    owner, began, value = place.owner, place.began, place.value
    if not isinstance(owner, Instance) or owner.traced or not isinstance(owner.cls, ClassValue):
        return False
    if not (isinstance(began, Const) and isinstance(value, Const) and type(began.value) is bool):
        return False
    if type(value.value) is not bool or value.value is began.value or place.elsewhere:
        return False
    carried = carried_by_calls(owner.cls.scope.document, owner.cls.name)
    paths = {f"self.{attr}" for attr, deciding in carried.items() if place.attr in deciding}
    forward, _, _ = class_attribute(owner.cls, "forward")
    if not paths or not isinstance(forward, Function) or isinstance(forward.node, ast.Lambda):
        return False
    # What is turned and turned back says nothing.
    turned = [
        each.value
        for each in ast.walk(owner.cls.node)
        if isinstance(each, ast.Assign) and f"self.{place.attr}" in map(dotted, each.targets)
    ]
    if sum(getattr(each, "value", None) is began.value for each in turned) > 1:
        return False
    data, given = _Data(owner), _parameters(forward.node)
    return any(
        dotted(target) in paths and data.holds(each, forward.node, given)
        for statement in ast.walk(forward.node)
        for target, each in _kept_by(statement)
    )


def _kept_by(statement: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What is bound to what, or copied into it."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return assigned_pairs(statement)
    func = statement.func if isinstance(statement, ast.Call) else None
    if isinstance(statement, ast.Call) and isinstance(func, ast.Attribute) and func.attr == "copy_":
        return [(func.value, each) for each in statement.args[:1]]
    return []


def _written(place: AttributeWrite | ContainerWrite) -> ast.expr | None:
    """What is bound to the attribute, or put into the list or dict that it holds."""
    for each in [place.node, *ancestors(place)]:
        if isinstance(each, ast.Call) and each.args:
            return each.args[-1]
        if isinstance(each, (ast.Assign, ast.AnnAssign)):
            pairs = [value for target, value in assigned_pairs(each) if target is place.node]
            return pairs[0] if pairs else each.value
        if isinstance(each, ast.AugAssign):
            return each.value
    return None


def is_begun_by_data(place: AttributeWrite) -> bool:
    """Whether the function asks if there is a number yet, and binds one that data tell, which the next call finds."""
    function = place.site.function
    if function is None or place.elsewhere or place.began != Const(None):
        return False
    path = f"self.{place.attr}"
    ways = [function.node, *(each for _, each in callers_of(place)), *models_of(place)]
    if any(sets_back(each, place.attr) for each in ways) or not _reads(function.node, path):
        return False
    dump, around = ast.dump(ast.parse(path, mode="eval").body), parents(function.node)
    return any(
        isinstance(each, ast.stmt)
        and any(asks_for_none(one, path) is not None for one in ast.walk(each))
        and each is not function.node
        and not certainly_written(function.node, each, dump, around)
        for each in ast.walk(function.node)
    )


def is_set_by_data(place: AttributeWrite) -> bool:
    """Whether data of the inputs, or a number that each call computes of what the last one left, decide that a number or flag which
    is written out is set: `if x.max() > 2: self.open = True`. Also where nothing reads it: no branch of the program writes it."""
    function, began, value = place.site.function, place.began, place.value
    if not (isinstance(began, Const) and isinstance(value, Const) and type(began.value) is type(value.value)):
        return False
    if type(value.value) not in (bool, int, float) or place.elsewhere or place.augmented or function is None:
        return False
    path = f"self.{place.attr}"
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if not isinstance(place.owner, Instance) or target is None or dotted(target) != path:
        return False
    tests = [each.test for each in ancestors(place) if isinstance(each, ast.If)]
    data, given = _Data(place.owner), _given(place)
    return any(
        _asks_counted(each, function.node, path, place.owner) or data.holds(each, function.node, given)
        for each in tests
    )


def _asks_counted(test: ast.expr, function: ast.AST, path: str, owner: Instance) -> bool:
    """Whether `test` reads another number of the model that `function` counts on with, or a buffer."""
    counted = {
        dotted(each.target)
        for each in ast.walk(function)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Attribute)
    }
    counted |= {f"self.{name}" for name, held in owner.attributes.items() if isinstance(held, Tensor)}
    return _asks(test, counted - {path})


def _asks(node: ast.AST, paths: set[str | None]) -> bool:
    """Whether `node` reads the value of one of the attributes `paths`, not what it looks like."""
    if isinstance(node, ast.Attribute):
        if node.attr in FACTS:
            return False
        if dotted(node) in paths:
            return True
    if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return False
    return any(_asks(each, paths) for each in ast.iter_child_nodes(node))


def reads_itself(statement: ast.stmt, path: str) -> bool:
    """Whether `statement` reads the attribute (dumped), not in a statement that it holds."""
    waiting: list[ast.AST] = [*ast.iter_child_nodes(statement)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and ast.dump(each) == path:
            return True
        if not isinstance(each, ast.stmt):
            waiting += ast.iter_child_nodes(each)
    return False


def is_begun_and_added_to(place: AttributeWrite) -> bool:
    """Whether `self.total += x` adds to what the first call makes where nothing was there yet, and no call sets back."""
    function = place.site.function
    if function is None or not place.augmented or place.elsewhere or place.began != Const(None):
        return False
    if not all(isinstance(each, Tensor) for each in options(place.value)):
        return False
    path = f"self.{place.attr}"
    ways = [function.node, *(each for _, each in callers_of(place)), *models_of(place)]
    return not any(sets_back(each, place.attr) for each in ways) and any(
        isinstance(each, ast.If)
        and (
            _of_test(_asked_alone(each.test, path, True), path) is False
            or _is_turned_with(each.test, each.body, True)
        )
        and any(
            isinstance(one, ast.Assign) and [dotted(to) for to in one.targets] == [path] for one in each.body
        )
        for each in ast.walk(function.node)
    )


def models_of(place: AttributeWrite) -> list[ast.FunctionDef]:
    """Each `forward` of the file: a model may set back what one of its parts keeps before each call."""
    return [
        method
        for placed in place.site.scope.document.placed
        for each in placed.chunk.body
        if isinstance(each, ast.ClassDef)
        for method in each.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
    ]


def is_asked_first(place: AttributeWrite, statement: ast.Assign, path: str) -> bool:
    """Whether nothing but the question whether the state has begun, or a flag that is turned with it, decides about the write."""
    inner: ast.AST = statement
    for each in ancestors(place):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(each, ast.If) and isinstance(inner, ast.stmt):
            in_body = inner in each.body
            if not in_body and inner not in each.orelse:
                return False
            begun = _of_test(_asked_alone(each.test, path, in_body), path)
            if begun is not None:
                return begun is not in_body and (place.began in (None, Const(None)))
            block = each.body if in_body else each.orelse
            return _is_turned_with(each.test, block, in_body) or _is_begun_with(each.test, block, in_body)
        if isinstance(each, ast.stmt):
            inner = each
    return False


def _asked_alone(test: ast.expr, path: str, holds: bool) -> ast.expr:
    """The question in `test`, come out as `holds`, beside which only what the attribute is weighed against decides, or what it looks
    like: `self.peak is None or x > self.peak`, `self.sum is None or self.sum.shape != x.shape`."""
    if not isinstance(test, ast.BoolOp) or isinstance(test.op, ast.Or) is not holds:
        return test
    dump = ast.dump(ast.parse(path, mode="eval").body)
    asking = [each for each in test.values if _of_test(each, path) is not None]
    others = [each for each in test.values if each not in asking]
    fits = all(weighs(each, dump) or _looks_at(each, path) for each in others)
    return asking[0] if len(asking) == 1 and fits else test


def _looks_at(test: ast.expr, path: str) -> bool:
    """Whether `test` compares what the tensor in the attribute looks like."""
    found = [each for each in ast.walk(test) if isinstance(each, ast.Attribute) and dotted(each) == path]
    facts = [each.value for each in ast.walk(test) if isinstance(each, ast.Attribute) and each.attr in FACTS]
    return bool(found) and all(each in facts for each in found)


def _of_test(test: ast.expr, path: str) -> bool | None:
    """Whether `test` comes out true where the state has begun; None where it asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _of_test(test.operand, path)
        return None if inner is None else not inner
    if asks_for_it(test, path.removeprefix("self.")):
        return True
    return asks_for_none(test, path)


def _is_turned_with(test: ast.expr, block: list[ast.stmt], holds: bool) -> bool:
    """Whether `test` is a flag of the model that `block` turns: it comes there once."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_turned_with(test.operand, block, not holds)
    path = dotted(test)
    if path is None or not path.startswith("self."):
        return False
    for each in block:
        for target, value in assigned_pairs(each) if isinstance(each, ast.Assign) else ():
            if dotted(target) == path:
                return isinstance(value, ast.Constant) and value.value is (not holds)
        call = each.value if isinstance(each, ast.Expr) else None
        if isinstance(call, ast.Call) and dotted(call.func) == f"{path}.fill_" and len(call.args) == 1:
            return isinstance(call.args[0], ast.Constant) and call.args[0].value is (not holds)
    return False


def _is_begun_with(test: ast.expr, block: list[ast.stmt], holds: bool) -> bool:
    """Whether `test` asks if another attribute has begun, which `block` then begins: `if self.key is None: self.kept = ...`."""
    for each in block:
        for target, value in assigned_pairs(each) if isinstance(each, ast.Assign) else ():
            path = dotted(target) or ""
            if path.startswith("self.") and not (isinstance(value, ast.Constant) and value.value is None):
                begun = _of_test(_asked_alone(test, path, holds), path)
                if begun is not None:
                    return begun is not holds
    return False


def is_begun_by_name(place: AttributeWrite, write: NamedWrite) -> bool:
    """Whether the first call binds the attribute, by its name, to what it computes of its inputs, under a flag that it turns there:
    `if not getattr(self, name + "_seen"): setattr(self, name + "_low", x.min()); setattr(self, name + "_seen", True)`."""
    function = place.site.function
    if function is None or place.elsewhere or not isinstance(place.owner, Instance):
        return False
    inner: ast.AST | None = None
    for each in ancestors(place):
        if isinstance(each, ast.If) and inner is not None:
            holds, test = inner in each.body, each.test
            while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                holds, test = not holds, test.operand
            asked = named_read(test)
            block = each.body if inner in each.body else each.orelse
            turned = asked is not None and any(
                found is not None
                and [ast.dump(found.owner), ast.dump(found.name)] == [ast.dump(one) for one in asked]
                and isinstance(found.value, ast.Constant)
                and found.value.value is (not holds)
                for found in map(named_write, block)
            )
            return turned and _Data(place.owner).holds(write.value, function.node, _given(place))
        inner = each if isinstance(each, ast.stmt) else None
    return False


def callers_of(place: AttributeWrite | ContainerWrite) -> list[tuple[ast.Call, ast.FunctionDef]]:
    """The calls that lead from the entry point to the function, the innermost first, and the functions that they stand in."""
    found = []
    for _, chunk, node in reversed(place.site.trail):
        function = next(
            (each for each in nodes_around(chunk, node) if isinstance(each, ast.FunctionDef)), None
        )
        if not isinstance(node, ast.Call) or function is None:
            break
        found.append((node, function))
    return found


def ways_to(place: AttributeWrite) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What stands around the write, from the inside, and around the calls that lead to it, each with the function."""
    function = place.site.function
    if function is None:
        return
    for each in ancestors(place):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        yield each, function.node
    for call, outer in callers_of(place):
        around = parents(outer)
        node: ast.AST = call
        while node is not outer and node in around:
            node = around[node]
            yield node, outer


def hands_data_on(statement: ast.stmt, function: ast.AST, place: AttributeWrite) -> bool:
    """Whether `statement` of `function`, which leads to `place`, binds attributes of the model to what is computed of its inputs, or
    calls what belongs to the model with it: `self.mean.copy_(mean)`."""
    own = place.site.function
    given = _given(place) if own is not None and function is own.node else _parameters(function)
    values = []
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        pairs = assigned_pairs(statement)
        values = [value for target, value in pairs if (dotted(target) or "").startswith("self.")]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if (dotted(call.func) or "").startswith("self."):
            values = [*call.args, *(each.value for each in call.keywords)]
    data = _Data(place.owner)
    return any(data.holds(each, function, given) for each in values)


def _given(place: AttributeWrite | ContainerWrite) -> set[str]:
    """The parameters of the function that hold data of the inputs of the entry point."""
    function = place.site.function
    assert function is not None
    calls = callers_of(place)
    if len(calls) != len(place.site.trail):
        return set()
    ways = [function.node, *(each for _, each in calls)]
    given = _parameters(ways[-1])
    data = _Data(place.owner)
    for (call, outer), inner in zip(reversed(calls), reversed(ways[:-1]), strict=True):
        given = data.given(call, inner, partial(data.holds, function=outer, given=given))
    return given


def _parameters(function: ast.AST) -> set[str]:
    args = getattr(function, "args", None)
    return set() if args is None else {each.arg for each in arguments(args)} - {"self"}


def holds_data(place: AttributeWrite | ContainerWrite, value: ast.expr) -> bool:
    """Whether `value`, in the function of `place`, is computed of the values of the inputs."""
    function = place.site.function
    return function is not None and _Data(place.owner).holds(value, function.node, _given(place))


class _Data:
    """What holds data of the inputs, in methods of `owner`."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        # What loops call the layers of the model that they go through.
        self.layers: frozenset[str] = frozenset()

    def holds(self, value: ast.expr, function: ast.AST, given: set[str], depth: int = _DEEPEST) -> bool:
        """Whether `value` of `function` is computed of the values of the parameters `given`."""
        names, outer = set(given), self.layers
        self.layers = _layers_of_loops(function)
        binding = [
            each
            for each in ast.walk(function)
            if isinstance(each, (ast.Assign, ast.AnnAssign, ast.For)) and each.lineno <= value.lineno
        ]
        for each in sorted(binding, key=lambda one: one.lineno):
            for target, one in [_of_items(each)] if isinstance(each, ast.For) else assigned_pairs(each):
                if value is one or not self._reads(one, names, depth):
                    continue
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                names |= {part.id for part in parts if isinstance(part, ast.Name)}
        found = self._reads(value, names, depth)
        self.layers = outer
        return found

    def _reads(self, node: ast.AST, names: set[str], depth: int) -> bool:
        if isinstance(node, ast.Name):
            return node.id in names
        if isinstance(node, ast.Attribute) and node.attr in FACTS:
            return False
        if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            return False
        if isinstance(node, ast.Call):
            return self._call_reads(node, names, depth)
        return any(self._reads(each, names, depth) for each in ast.iter_child_nodes(node))

    def _call_reads(self, call: ast.Call, names: set[str], depth: int) -> bool:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func) or ""
        if name in FACTS:
            return False
        held = isinstance(call.func, ast.Attribute) and self._reads(call.func.value, names, depth)
        given = [*call.args, *(each.value for each in call.keywords)]
        if name in _LOOKING:
            return held
        if name in ALIKE:
            return any(
                self._reads(each, names, depth) for each in (given[1:] if name.endswith("_like") else given)
            )
        if held:
            return True
        path = dotted(call.func) or ""
        if path.startswith("self.") and path.count(".") == 1:
            return self._own_call_reads(call, name, names, depth)
        if isinstance(call.func, ast.Name) and name not in _OF_NUMBERS and name not in self.layers:
            function = self._function(name)
            return function is not None and self._gives(call, function, names, depth)
        return any(self._reads(each, names, depth) for each in given)

    def _function(self, name: str) -> ast.FunctionDef | None:
        """The one function of the file of that name."""
        if not isinstance(self.owner, Instance) or not isinstance(self.owner.cls, ClassValue):
            return None
        found = [
            each
            for placed in self.owner.cls.scope.document.placed
            for each in placed.chunk.body
            if getattr(each, "name", "") == name
        ]
        return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None

    def _gives(self, call: ast.Call, function: ast.FunctionDef, names: set[str], depth: int) -> bool:
        """Whether a function or a method that is given data gives data."""
        if depth == 0:
            return False
        inside = self.given(call, function, lambda each: self._reads(each, names, depth))
        returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value]
        return bool(returned) and all(self.holds(each, function, inside, depth - 1) for each in returned)

    def _own_call_reads(self, call: ast.Call, name: str, names: set[str], depth: int) -> bool:
        """Whether a method or a layer of the model that is given data gives data."""
        if not isinstance(self.owner, Instance) or depth == 0:
            return False
        held = self.owner.attributes.get(name)
        given = [*call.args, *(each.value for each in call.keywords)]
        if held is not None:
            layers = all(isinstance(each, Instance) for each in options(held))
            return layers and any(self._reads(each, names, depth) for each in given)
        method, _, _ = class_attribute(self.owner.cls, name)
        node = method.node if isinstance(method, Function) else None
        return isinstance(node, ast.FunctionDef) and self._gives(call, node, names, depth)

    def given(self, call: ast.Call, function: ast.AST, reads: Callable[[ast.expr], bool]) -> set[str]:
        """The parameters of a method that `call` gives data, as `reads` tells of an expression."""
        args = getattr(function, "args", None)
        if args is None:
            return set()
        plain = [each.arg for each in [*args.posonlyargs, *args.args]]
        plain = plain[1:] if plain[:1] == ["self"] else plain
        pairs = [
            *zip(plain, call.args, strict=False),
            *((each.arg or "", each.value) for each in call.keywords),
        ]
        own = {each.arg for each in arguments(args)}
        rest = "" if args.kwarg is None else args.kwarg.arg
        return {name if name in own else rest for name, each in pairs if name and reads(each)} - {""}


def _of_items(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """What the loop binds to parts of what it goes through: not the counter, and not the keys."""
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    counts = getattr(called, "id", "") == "enumerate" or getattr(called, "attr", "") == "items"
    if counts and isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2:
        return loop.target.elts[1], loop.iter
    return loop.target, loop.iter


def _layers_of_loops(function: ast.AST) -> frozenset[str]:
    """The names that loops over parts of the model give these: `for i, (layer, head) in enumerate(zip(self.layers, self.heads))`."""
    return frozenset(
        each.id
        for loop in ast.walk(function)
        if isinstance(loop, ast.For)
        and any((dotted(one) or "").startswith("self.") for one in ast.walk(loop.iter))
        for each in ast.walk(loop.target)
        if isinstance(each, ast.Name)
    )


def sets_back(function: ast.AST, attr: str) -> bool:
    """Whether `function` sets such an attribute to None, or deletes it: no call finds what the last one left."""
    return any(
        isinstance(each, ast.Attribute)
        and each.attr == attr
        and (isinstance(each.ctx, ast.Del) or _is_none_for(function, each))
        for each in ast.walk(function)
    )


def _is_none_for(function: ast.AST, target: ast.Attribute) -> bool:
    return any(
        isinstance(each, ast.Assign)
        and any(one is target and isinstance(value, ast.Constant) for one, value in assigned_pairs(each))
        for each in ast.walk(function)
    )


def _reads(function: ast.AST, path: str) -> bool:
    """Whether `function` reads the attribute for more than to ask whether it is there."""
    questions = {
        id(part)
        for each in ast.walk(function)
        if asks_for_none(each, path) is not None
        for part in ast.walk(each)
    }
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Load)
        and each.attr == path.removeprefix("self.")
        and id(each) not in questions
        for each in ast.walk(function)
    )
