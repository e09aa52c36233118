"""Helpers that write in place to what they are given, `self.fill(mask, n)`, `put(out, row)`, and submodules that do so or write
their own state."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.classes import class_attribute
from exportlens.inference.values import Bound, ClassValue, Function, Instance, Value
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.kinds.function_kinds import module_called, own_methods
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import writes

_DEEPEST = 4
# What changes a list, a set, a dict or a deque.
_PUTTING = frozenset(
    {
        "append",
        "appendleft",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "pop",
        "popleft",
        "clear",
        "remove",
    }
)


def written_arguments(call: ast.Call, kinds: Kinds) -> list[ast.expr]:
    """The arguments of `call`, of a function of the file, a method of the class or a submodule, whose memory it writes in place."""
    function, instance = called_function(call, kinds)
    if function is None or kinds.depth >= _DEEPEST or not _may_write(function, kinds):
        return []
    from exportlens.rewriting.memory.effects import visit
    from exportlens.rewriting.memory.watching import Watch

    given = given_arguments(call, function, instance is not None and module_called(kinds, call) is None)
    inside = kinds.inside_of(function)
    if instance is not None:
        inside.functions = methods_of(instance, function, inside)
        inside.names["self"] = Kind("object", roots=None, value=instance)
    for each in arguments(function.args):
        if instance is not None and each.arg == "self":
            continue
        kind = kinds.of(given[each.arg]) if each.arg in given else Kind("unknown")
        inside.names[each.arg] = replace(kind, roots=frozenset({_mark(each.arg)}))
    watch = Watch()
    visit(function.body, inside, watch.see)
    return [value for name, value in given.items() if _mark(name) in watch.written]


def written_state(call: ast.Call, kinds: Kinds) -> str | None:
    """The attribute of a submodule, of a class of the workspace, that its `forward`, or the method that `call` calls, writes;
    None where it writes none, or only while it is trained."""
    function, instance = _of_submodule(call, kinds)
    if instance is None or function is None or kinds.depth >= _DEEPEST:
        return None
    inside = kinds.inside_of(function)
    inside.names["self"] = Kind("object", roots=None, value=instance)
    functions = methods_of(instance, function, kinds)
    asked, todo = {id(function)}, [function]
    while todo:
        for each in _outside_training(todo.pop().body):
            if isinstance(each, ast.Call):
                method = functions.get(dotted(each.func) or "")
                if method is not None and id(method) not in asked:
                    asked.add(id(method))
                    todo.append(method)
                further = written_state(each, inside) if method is None else None
                if further is not None:
                    return further
            path = path_written(each)
            if path.startswith("self."):
                return path.split(".")[1]
    return None


def path_written(node: ast.AST) -> str:
    """The path of what `node` binds or writes in place, also by a name that is computed, `setattr(self, f"mean_{key}", x)`; "" where
    it does neither."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return dotted(node) or _found_by_name(node.value)
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return dotted(node.value) or _found_by_name(node.value)
    if not isinstance(node, ast.Call):
        return ""
    if dotted(node.func) in ("setattr", "delattr"):
        return _by_name(node)
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__"):
        return dotted(func.value) or _found_by_name(func.value)
    return puts_in(node)


def _found_by_name(node: ast.expr) -> str:
    """The path of what `getattr` finds, of which `node` is a part; "" where it is no such part."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return _by_name(node) if isinstance(node, ast.Call) and dotted(node.func) == "getattr" else ""


def _by_name(call: ast.Call) -> str:
    """The path of the attribute that `getattr`, `setattr` or `delattr` is called with, by the text of a name that is computed."""
    owner = dotted(call.args[0]) if len(call.args) > 1 else None
    if owner is None:
        return ""
    name = call.args[1]
    written = name.value if isinstance(name, ast.Constant) else None
    return f"{owner}.{written if isinstance(written, str) else ast.unparse(name).strip('f').strip(chr(39))}"


def puts_in(node: ast.AST) -> str:
    """The path of the list, set, dict or deque that the call `node` changes; "" where it changes none."""
    func = node.func if isinstance(node, ast.Call) else None
    changes = isinstance(func, ast.Attribute) and func.attr in _PUTTING
    return (dotted(func.value) or "") if changes and isinstance(func, ast.Attribute) else ""


def _outside_training(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of `statements` but those that run only where `self.training` is true, or where nothing is traced."""
    from exportlens.rewriting.memory.effects import is_kept_out

    todo: list[ast.AST] = list(statements)
    while todo:
        node = todo.pop()
        if is_kept_out(node):
            continue
        yield node
        if isinstance(node, ast.If) and _asks_training(node.test):
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)


def _asks_training(test: ast.expr) -> bool:
    """Whether `test` is `self.training`, alone or with more that must hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_asks_training, test.values))
    return dotted(test) == "self.training"


def called_function(call: ast.Call, kinds: Kinds) -> tuple[ast.FunctionDef | None, Instance | None]:
    """The function that `call` runs, and the submodule or object whose method it is."""
    function = kinds.functions.get(dotted(call.func) or "")
    if function is not None:
        return function, None
    value = kinds.of(call.func).value
    if isinstance(value, Function):
        return _definition(value), None
    if isinstance(value, Bound):
        receiver = value.receiver
        owns = isinstance(receiver, Instance) and isinstance(receiver.cls, ClassValue)
        return (
            (_definition(value.function), receiver)
            if owns and isinstance(receiver, Instance)
            else (None, None)
        )
    return _of_submodule(call, kinds)


def _definition(function: Value) -> ast.FunctionDef | None:
    """The definition of a function of the workspace, also of a lambda."""
    node = function.node if isinstance(function, Function) else None
    if isinstance(node, ast.Lambda):
        returned = ast.copy_location(ast.Return(node.body), node.body)
        made = ast.FunctionDef(name="", args=node.args, body=[returned], decorator_list=[])
        return ast.copy_location(made, node)
    return node if isinstance(node, ast.FunctionDef) else None


def _of_submodule(call: ast.Call, kinds: Kinds) -> tuple[ast.FunctionDef | None, Instance | None]:
    """What `call` runs of a Module of a class of the workspace: its forward, or a method, `self.cell.step(x)`."""
    called = module_called(kinds, call)
    if called is None:
        value = kinds.of(call.func).value
        called = (value, "forward") if isinstance(value, Instance) else None
    if called is None or not isinstance(called[0].cls, ClassValue):
        return None, None
    instance, name = called
    method = class_attribute(called[0].cls, name)[0] if name not in instance.attributes else None
    node = method.node if isinstance(method, Function) else None
    return (node if isinstance(node, ast.FunctionDef) else None), instance


def methods_of(instance: Instance, function: ast.FunctionDef, kinds: Kinds) -> dict[str, ast.FunctionDef]:
    """The functions of the file, and the methods of the submodule in the place of the model's own."""
    return {name: each for name, each in kinds.functions.items() if "." not in name} | {
        f"self.{name}": each for name, each in own_methods(instance).items() if each is not function
    }


def _mark(name: str) -> str:
    return f"given:{name}"


def _may_write(function: ast.FunctionDef, kinds: Kinds) -> bool:
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    ops = ((each, knowledge.lookup_function(kinds.qualified(each.func) or "")) for each in calls)
    return (
        writes(function.body)
        or any((dotted(each.func) or "").startswith("self.") for each in calls)
        or any((dotted(each.func) or "") in kinds.functions for each in calls)
        or any(op is not None and asks_in_place(each, op) for each, op in ops)
    )


def asks_in_place(call: ast.Call, op: knowledge.Op) -> bool:
    """Whether an argument that is given by its place asks to write in place: `F.relu(x, True)`."""
    at = (
        [each.name for each in op.params].index("inplace") if op.mutates_when == "inplace" else len(call.args)
    )
    given = call.args[at] if at < len(call.args) else None
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)


def given_arguments(call: ast.Call, function: ast.FunctionDef, is_module: bool) -> dict[str, ast.expr]:
    """What `call` gives to parameters of `function`, as far as it is written out."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
    if is_module or (isinstance(call.func, ast.Attribute) and not static):
        places = places[1:]
    given: dict[str, ast.expr] = {}
    for name, value in zip(places, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    return given | {each.arg: each.value for each in call.keywords if each.arg}
